//! What is being done and when it will be ready.

use std::fmt;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant, SystemTime};

/// One line on a terminal that the next one overwrites; nothing elsewhere.
pub struct Progress(bool);

impl Progress {
    /// Shows itself if standard error is a terminal.
    pub fn new() -> Self {
        Progress(std::io::stderr().is_terminal())
    }

    /// Replaces the line.
    pub fn say(&self, what: fmt::Arguments<'_>) {
        if self.0 {
            let _ = write!(std::io::stderr(), "\r\x1b[K{what}");
        }
    }

    /// Removes the line.
    pub fn clear(&self) {
        self.say(format_args!(""));
    }
}

/// How long everything may take.
#[derive(Clone, Copy)]
pub struct Budget {
    end: Instant,
}

impl Budget {
    /// So many minutes from when `bench/run.sh` began (`RINGFENCE_BENCH_STARTED`, seconds since 1970), or from now.
    pub fn new(minutes: f64) -> Self {
        let began = std::env::var("RINGFENCE_BENCH_STARTED")
            .ok()
            .and_then(|s| s.parse().ok())
            .map(|s| SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        let spent = began.and_then(|b| b.elapsed().ok()).unwrap_or_default();
        let whole = Duration::from_secs_f64(minutes * 60.0);
        Budget {
            end: Instant::now() + whole.saturating_sub(spent),
        }
    }

    /// How often something that takes `once` can be done, if `left` things of its kind are still to be done: at least
    /// `least` times, at most `most`.
    pub fn turns(&self, once: Duration, left: usize, least: usize, most: usize) -> usize {
        let share = self.end.saturating_duration_since(Instant::now()).as_secs_f64() / left.max(1) as f64;
        ((share / once.as_secs_f64().max(1e-9)) as usize).clamp(least.min(most), most)
    }

    /// Whether nothing is left.
    pub fn spent(&self) -> bool {
        Instant::now() >= self.end
    }
}

/// How far things are.
pub struct Pace {
    began: Instant,
    total: usize,
}

impl Pace {
    /// Begins with the first of `total` things.
    pub fn new(total: usize) -> Self {
        Pace {
            began: Instant::now(),
            total,
        }
    }

    /// What is left after `done` of them, if all take as long: `7 min, until 14:05`.
    pub fn left(&self, done: usize) -> String {
        if done == 0 {
            return format!("1 of {}", self.total);
        }
        let each = self.began.elapsed().as_secs_f64() / done as f64;
        let left = each * self.total.saturating_sub(done) as f64;
        let (hour, minute) = clock(left as i64);
        format!(
            "{} of {}, {:.0} min left, until {hour:02}:{minute:02}",
            (done + 1).min(self.total),
            self.total,
            left / 60.0
        )
    }
}

/// Hour and minute of the local time in so many seconds.
fn clock(seconds: i64) -> (i32, i32) {
    // SAFETY: all-zero is a valid `tm`, and both calls only write to what is ours
    let time = unsafe {
        let at = libc::time(std::ptr::null_mut()) + seconds;
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const at, &raw mut time);
        time
    };
    (time.tm_hour, time.tm_min)
}

#[cfg(test)]
mod tests {
    use super::{Budget, Pace};
    use std::time::{Duration, Instant};

    #[test]
    fn runs_are_cut_to_the_time() {
        let budget = Budget {
            end: Instant::now() + Duration::from_secs(100),
        };
        let turns = |once| budget.turns(Duration::from_secs_f64(once), 10, 3, 7);
        assert_eq!((turns(1.0), turns(1.9), turns(30.0)), (7, 5, 3));
        assert!(!budget.spent());
        let over = Budget { end: Instant::now() };
        assert_eq!(over.turns(Duration::from_secs(1), 5, 3, 7), 3);
        assert_eq!(over.turns(Duration::from_secs(1), 5, 3, 1), 1);
        assert!(over.spent());
    }

    #[test]
    fn the_pace_tells_what_is_left() {
        let pace = Pace {
            began: Instant::now() - Duration::from_secs(600),
            total: 4,
        };
        assert_eq!(pace.left(0), "1 of 4");
        assert!(
            pace.left(1).starts_with("2 of 4, 30 min left, until "),
            "{}",
            pace.left(1)
        );
    }
}
