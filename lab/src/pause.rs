//! Pauses of the whole machine, or of the laboratory: the limits of servers go by the clock, so that a trial in which it stood still
//! tells nothing and is made again.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How often the clock is looked at, and how late a look is after a pause.
const LOOK: Duration = Duration::from_millis(20);
const LATE: u64 = 500_000_000;
/// How often a trial is made again.
const TIMES: u32 = 20;

static BEGIN: OnceLock<Instant> = OnceLock::new();
static LOOKED: AtomicU64 = AtomicU64::new(0);
static PAUSES: AtomicU64 = AtomicU64::new(0);
static AGAIN: AtomicU64 = AtomicU64::new(0);

/// Nanoseconds since the first look.
fn now() -> u64 {
    let begin = BEGIN.get_or_init(Instant::now);
    u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// A look; counts a pause if there was one since the last.
fn look(late: u64) {
    let at = now();
    if at.saturating_sub(LOOKED.load(Ordering::Acquire)) > late {
        PAUSES.fetch_add(1, Ordering::AcqRel);
    }
    LOOKED.store(at, Ordering::Release);
}

/// Looks at the clock from now on, as long as the process lives.
pub fn watch() {
    look(u64::MAX);
    std::thread::spawn(|| {
        loop {
            std::thread::sleep(LOOK);
            look(LATE);
        }
    });
}

/// Pauses up to now: one that has just ended may not have been counted yet.
fn pauses() -> u64 {
    let at = now();
    while at.saturating_sub(LOOKED.load(Ordering::Acquire)) > LATE {
        std::thread::sleep(Duration::from_millis(1));
    }
    PAUSES.load(Ordering::Acquire)
}

/// Does it, and again as long as there is a pause meanwhile.
pub fn steady<T>(mut what: impl FnMut() -> T) -> T {
    for _ in 0..TIMES {
        let before = pauses();
        let done = what();
        if pauses() == before {
            return done;
        }
        AGAIN.fetch_add(1, Ordering::Relaxed);
    }
    what()
}

/// How often something was done again.
pub fn again() -> u64 {
    AGAIN.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_pause_met_is_done_again() {
        look(u64::MAX);
        let mut times = 0;
        let done = steady(|| {
            times += 1;
            // A look that comes late, the first two times.
            look(if times < 3 { 0 } else { u64::MAX });
            times
        });
        assert_eq!((done, again()), (3, 2));
    }
}
