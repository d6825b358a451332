//! Waiting, in slices: a call into the domain that has to end must not be held up by a read from a terminal.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use super::Context;
use crate::memory::Span;
use crate::sys::{self, Outcome};

/// How long one wait lasts before the question is asked whether the call has to end.
const SLICE: Duration = Duration::from_millis(4);

impl Context<'_> {
    /// `EINTR` if the call into the domain has to end. The domain never sees it: the gate ends the call.
    fn going_on(&self) -> Outcome<()> {
        if self.domain.ending() {
            Err(libc::EINTR)
        } else {
            Ok(())
        }
    }

    /// Sleeps.
    pub(super) fn sleep(&self, mut left: Duration) -> Outcome<()> {
        loop {
            let now = left.min(SLICE);
            std::thread::sleep(now);
            left -= now;
            if left.is_zero() {
                return Ok(());
            }
            self.going_on()?;
        }
    }

    /// Polls for at most `timeout` milliseconds; for ever if it is negative.
    pub(super) fn poll(&self, fds: &mut [libc::pollfd], timeout: i32) -> Outcome {
        let mut left = u64::try_from(timeout).ok();
        loop {
            let slice = SLICE.as_millis() as u64;
            let now = left.unwrap_or(slice).min(slice);
            match sys::poll(fds, now as i32) {
                Ok(0) => {}
                // A handler of the host's ran; the domain has no signals.
                Err(libc::EINTR) => {}
                other => return other,
            }
            if let Some(left) = &mut left {
                *left -= now;
                if *left == 0 {
                    return Ok(0);
                }
            }
            self.going_on()?;
        }
    }

    /// Reads from or writes to something that may keep us waiting.
    pub(super) fn stream(&self, write: bool, fd: BorrowedFd<'_>, spans: &mut [Span]) -> Outcome {
        let events = if write { libc::POLLOUT } else { libc::POLLIN };
        let mut done = 0;
        loop {
            let mut moved = sys::at_once(write, fd, spans);
            if matches!(moved, Err(libc::EAGAIN | libc::EOPNOTSUPP)) {
                let waited = self.poll(
                    &mut [libc::pollfd {
                        fd: fd.as_raw_fd(),
                        events,
                        revents: 0,
                    }],
                    -1,
                );
                moved = match (waited, moved) {
                    (Err(e), _) => Err(e),
                    (Ok(_), Err(libc::EAGAIN)) => continue,
                    // Terminals, sockets: the kernel has no way to promise; somebody else may take what poll saw.
                    (Ok(_), _) => sys::vectored(write, fd, spans, None),
                };
            }
            match moved {
                Ok(n) => {
                    done += n;
                    let mut n = n as u64;
                    for span in spans.iter_mut() {
                        let part = n.min(span.len());
                        *span = span.skip(part);
                        n -= part;
                    }
                    // A write goes on until all is written, as it does where waiting is left to the kernel.
                    if !write || spans.iter().all(|s| s.len() == 0) {
                        return Ok(done);
                    }
                }
                Err(e) if done == 0 => return Err(e),
                Err(_) => return Ok(done),
            }
        }
    }

    /// Repeats an attempt that fails with `EAGAIN` where it would have to wait.
    pub(super) fn until(&self, mut attempt: impl FnMut() -> Outcome) -> Outcome {
        loop {
            match attempt() {
                Err(libc::EAGAIN) => std::thread::sleep(SLICE),
                other => return other,
            }
            self.going_on()?;
        }
    }
}
