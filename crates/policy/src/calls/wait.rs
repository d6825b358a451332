//! Waiting, in slices: a call into the domain that has to end must not be held up by a read from a terminal.

use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::{Duration, Instant};

use crate::calls::context::Context;
use crate::slices::{SLICE, Slices};
use crate::span::Span;
use crate::sys::{self, Outcome};

/// How long one wait lasts before the question is asked whether the call has to end.
const WAIT: Duration = Duration::from_millis(4);

/// What a terminal takes without waiting once poll says that it is ready: the kernel's `WAKEUP_CHARS`.
const LITTLE: u64 = 256;

/// How long to wait now, when all has to be over at `end`.
fn slice(end: Option<Instant>) -> Duration {
    end.map_or(WAIT, |end| {
        end.saturating_duration_since(Instant::now()).min(WAIT)
    })
}

impl Context<'_> {
    /// `EINTR` if the call into the domain has to end. The domain never sees it: the gate ends the call.
    pub(super) fn going_on(&self) -> Outcome<()> {
        if self.domain.ending() {
            Err(libc::EINTR)
        } else {
            Ok(())
        }
    }

    /// Sleeps.
    pub(super) fn sleep(&self, time: Duration) -> Outcome<()> {
        let end = Instant::now().checked_add(time);
        loop {
            let now = slice(end);
            if now.is_zero() {
                return Ok(());
            }
            std::thread::sleep(now);
            self.going_on()?;
        }
    }

    /// Polls for at most `timeout`; for ever without.
    pub(super) fn poll(&self, fds: &mut [libc::pollfd], timeout: Option<Duration>) -> Outcome {
        self.repeat(timeout, |now| sys::poll(fds, now))
    }

    /// Makes a call that waits as long as it is told, and then gives 0, until it gives something else or `timeout` is over.
    pub(super) fn repeat(
        &self,
        timeout: Option<Duration>,
        mut attempt: impl FnMut(Duration) -> Outcome,
    ) -> Outcome {
        let end = timeout.and_then(|t| Instant::now().checked_add(t));
        loop {
            let now = slice(end);
            match attempt(now) {
                Ok(0) if now.is_zero() => return Ok(0),
                // A handler of the host's ran; the domain has no signals.
                Ok(0) | Err(libc::EINTR) => {}
                other => return other,
            }
            self.going_on()?;
        }
    }

    /// Waits until a descriptor can be read from or written to.
    pub(super) fn ready(&self, fd: BorrowedFd<'_>, events: i16) -> Outcome<()> {
        let fd = fd.as_raw_fd();
        let mut one = [libc::pollfd {
            fd,
            events,
            revents: 0,
        }];
        self.poll(&mut one, None).map(drop)
    }

    /// Reads from or writes to something that may keep us waiting.
    pub(super) fn stream(&self, write: bool, fd: BorrowedFd<'_>, spans: &[Span]) -> Outcome {
        let mut left = Slices::new(spans);
        let events = if write { libc::POLLOUT } else { libc::POLLIN };
        let mut done = 0;
        loop {
            let next = left.next(SLICE);
            let mut moved = sys::at_once(write, fd, &next);
            if matches!(moved, Err(libc::EAGAIN | libc::EOPNOTSUPP)) {
                moved = match (self.ready(fd, events), moved) {
                    (Err(e), _) => Err(e),
                    (Ok(()), Err(libc::EAGAIN)) => continue,
                    // The kernel has no way to promise. What is the domain's own does not wait in any case; of the host's
                    // streams those are left that can be read now, and a terminal, which has room for a little.
                    (Ok(()), _) => match sys::vectored(write, fd, &left.next(LITTLE), None) {
                        Err(libc::EAGAIN) => continue,
                        other => other,
                    },
                };
            }
            match moved {
                Ok(n) => {
                    done += n;
                    left.done(n as u64);
                    // A write goes on until all is written, as it does where waiting is left to the kernel.
                    if !write || left.is_empty() {
                        return Ok(done);
                    }
                    if self.going_on().is_err() {
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
                Err(libc::EAGAIN) => std::thread::sleep(WAIT),
                other => return other,
            }
            self.going_on()?;
        }
    }
}
