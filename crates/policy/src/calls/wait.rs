//! Waiting, in slices: a call into the domain that has to end must not be held up by a read from a terminal.

use std::time::Duration;

use super::Context;
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
