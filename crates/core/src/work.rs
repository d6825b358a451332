//! A budget for work whose size a module's author decides.
//!
//! A module's own instructions are bounded by limits of time and of memory. The host's work *about* a module is not, unless it is
//! counted: reading its tables and debug information, walking its frames, copying for it. Whoever does such work takes a
//! [`Budget`], tells it of each step and each byte *before* doing it, and passes [`Exceeded`] on.
//!
//! Nothing here allocates by itself, locks or makes system calls but reading a clock, so that it can be used in signal handlers
//! too ([`Budget::vec`] and [`Budget::grow`] are for others).

use std::time::{Duration, Instant};

/// What can be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bound {
    /// Units of work: entries of tables, instructions, frames.
    Steps,
    /// Bytes of the host's memory, in use at the same time.
    Bytes,
    /// Time.
    Time,
    /// Memory of the system: an allocation that the budget allowed has failed.
    Memory,
}

/// Work that a module's author shapes was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exceeded {
    /// Which bound.
    pub bound: Bound,
    /// Where it lies: steps, bytes, nanoseconds; for [`Bound::Memory`] how many bytes were asked for.
    pub limit: u64,
}

impl std::fmt::Display for Exceeded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let limit = self.limit;
        match self.bound {
            Bound::Steps => write!(f, "takes more than the {limit} steps that are allowed"),
            Bound::Bytes => write!(f, "takes more than the {limit} bytes of memory that are allowed"),
            Bound::Time => write!(
                f,
                "takes longer than the {:?} that are allowed",
                Duration::from_nanos(limit)
            ),
            Bound::Memory => write!(f, "takes {limit} bytes of memory more than the system has"),
        }
    }
}

impl std::error::Error for Exceeded {}

/// What some piece of work may still cost. `u64::MAX` is no limit.
#[derive(Clone, Debug)]
pub struct Budget {
    steps: u64,
    steps_limit: u64,
    bytes: u64,
    bytes_limit: u64,
    time: Option<Deadline>,
    /// Steps until the clock is looked at again.
    look: u64,
}

#[derive(Clone, Copy, Debug)]
struct Deadline {
    at: Moment,
    /// How long it was at first, in nanoseconds: for the message.
    limit: u64,
}

/// By which clock.
#[derive(Clone, Copy, Debug)]
enum Moment {
    Wall(Instant),
    /// The calling thread's processor time.
    Thread(Duration),
}

impl Moment {
    fn over(self) -> bool {
        match self {
            Moment::Wall(at) => Instant::now() >= at,
            Moment::Thread(at) => thread_time() >= at,
        }
    }
}

/// The calling thread's processor time.
fn thread_time() -> Duration {
    // SAFETY: the clock is always there; the call fills the structure in, which may be all zeroes before.
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t);
        Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
    }
}

impl Budget {
    /// The clock is looked at once in so many steps. A step is less than a microsecond, so this is less than a quarter of a
    /// millisecond.
    pub const LOOK: u64 = 256;

    /// Without any limit.
    #[must_use]
    pub const fn unlimited() -> Budget {
        Budget::new(u64::MAX, u64::MAX)
    }

    /// So many steps, and so many bytes at the same time.
    #[must_use]
    pub const fn new(steps: u64, bytes: u64) -> Budget {
        Budget {
            steps,
            steps_limit: steps,
            bytes,
            bytes_limit: bytes,
            time: None,
            look: Budget::LOOK,
        }
    }

    /// What taking a file of `len` bytes apart may cost, its bytes in memory included. Time that is linear in them follows from the
    /// steps: entries of tables, and bytes of names.
    #[must_use]
    pub const fn for_file(len: u64) -> Budget {
        let steps = (16_u64 << 20).saturating_add(len.saturating_mul(4));
        Budget::new(steps, (64_u64 << 20).saturating_add(len.saturating_mul(8)))
    }

    /// The same, and no later than this long from now. Another deadline that is earlier stays.
    #[must_use]
    pub fn within(self, time: Duration) -> Budget {
        let limit = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        match Instant::now().checked_add(time) {
            Some(at) => self.until(at, limit),
            None => self,
        }
    }

    /// The same, and no later than `at`. `limit` is for the message: nanoseconds from where the work began to `at`.
    #[must_use]
    pub fn until(mut self, at: Instant, limit: u64) -> Budget {
        if !matches!(self.time, Some(Deadline { at: Moment::Wall(before), .. }) if before <= at) {
            let at = Moment::Wall(at);
            self.time = Some(Deadline { at, limit });
        }
        self
    }

    /// The same, and no more than this much of the calling thread's processor time from now on, whatever else the machine does.
    /// Takes the place of another deadline. The work has to stay on this thread.
    #[must_use]
    pub fn of_thread(mut self, time: Duration) -> Budget {
        self.time = Some(Deadline {
            at: Moment::Thread(thread_time().saturating_add(time)),
            limit: u64::try_from(time.as_nanos()).unwrap_or(u64::MAX),
        });
        self
    }

    /// One step more.
    ///
    /// # Errors
    /// [`Exceeded`]: there are no more, or the time is over.
    #[inline]
    pub fn step(&mut self) -> Result<(), Exceeded> {
        self.steps(1)
    }

    /// `count` steps more.
    ///
    /// # Errors
    /// [`Exceeded`]: there are not so many, or the time is over.
    #[inline]
    pub fn steps(&mut self, count: u64) -> Result<(), Exceeded> {
        let Some(left) = self.steps.checked_sub(count) else {
            self.steps = 0;
            return Err(Exceeded {
                bound: Bound::Steps,
                limit: self.steps_limit,
            });
        };
        if self.steps_limit != u64::MAX {
            self.steps = left;
        }
        if count >= self.look {
            return self.clock();
        }
        self.look -= count;
        Ok(())
    }

    /// Looks at the clock now: before something that is a long step by itself.
    ///
    /// # Errors
    /// [`Exceeded`]: the time is over.
    #[cold]
    pub fn clock(&mut self) -> Result<(), Exceeded> {
        self.look = Budget::LOOK;
        match self.time {
            Some(d) if d.at.over() => {
                // Everything after the first refusal is refused at once.
                self.look = 0;
                Err(Exceeded {
                    bound: Bound::Time,
                    limit: d.limit,
                })
            }
            _ => Ok(()),
        }
    }

    /// `count` bytes more.
    ///
    /// # Errors
    /// [`Exceeded`]: there are not so many. Nothing was taken then.
    #[inline]
    pub fn bytes(&mut self, count: u64) -> Result<(), Exceeded> {
        let Some(left) = self.bytes.checked_sub(count) else {
            return Err(Exceeded {
                bound: Bound::Bytes,
                limit: self.bytes_limit,
            });
        };
        if self.bytes_limit != u64::MAX {
            self.bytes = left;
        }
        Ok(())
    }

    /// `count` bytes that were taken are free again.
    pub fn give_back(&mut self, count: u64) {
        self.bytes = self.bytes.saturating_add(count).min(self.bytes_limit);
    }

    /// An empty vector with room for exactly `count`, which are counted.
    ///
    /// # Errors
    /// [`Exceeded`]: the budget or the system does not have so much.
    pub fn vec<T>(&mut self, count: usize) -> Result<Vec<T>, Exceeded> {
        let mut vec = Vec::new();
        self.grow(&mut vec, count)?;
        Ok(vec)
    }

    /// Makes sure that `more` fit into a vector that was made with [`vec`](Self::vec), and counts its growth; it grows to twice
    /// its size at least, if the budget has so much.
    ///
    /// # Errors
    /// [`Exceeded`]: the budget or the system does not have so much. The vector is as before.
    pub fn grow<T>(&mut self, vec: &mut Vec<T>, more: usize) -> Result<(), Exceeded> {
        let room = vec.capacity() - vec.len();
        if more <= room || size_of::<T>() == 0 {
            return Ok(());
        }
        let size = |count: usize| (count as u64).saturating_mul(size_of::<T>() as u64);
        let least = more - room;
        let mut extra = least.max(vec.capacity());
        if self.bytes(size(extra)).is_err() {
            extra = least;
            self.bytes(size(extra))?;
        }
        let before = vec.capacity();
        vec.try_reserve_exact(room + extra).map_err(|_| {
            self.give_back(size(extra));
            Exceeded {
                bound: Bound::Memory,
                limit: size(before.saturating_add(extra)),
            }
        })
    }

    /// Adds to the end of a vector that was made with [`vec`](Self::vec).
    ///
    /// # Errors
    /// As for [`grow`](Self::grow).
    #[inline]
    pub fn push<T>(&mut self, vec: &mut Vec<T>, value: T) -> Result<(), Exceeded> {
        if vec.len() == vec.capacity() {
            self.grow(vec, 1)?;
        }
        vec.push(value);
        Ok(())
    }

    /// A copy of some text, which is counted.
    ///
    /// # Errors
    /// [`Exceeded`]: the budget or the system does not have so much.
    pub fn text(&mut self, text: &str) -> Result<String, Exceeded> {
        let mut copy = self.vec(text.len())?;
        copy.extend_from_slice(text.as_bytes());
        // It was text before.
        Ok(String::from_utf8(copy).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound<T: std::fmt::Debug>(result: Result<T, Exceeded>) -> (Bound, u64) {
        let e = result.unwrap_err();
        (e.bound, e.limit)
    }

    #[test]
    fn steps_end_exactly() {
        let mut b = Budget::new(1000, 0);
        for _ in 0..1000 {
            b.step().unwrap();
        }
        assert_eq!(bound(b.step()), (Bound::Steps, 1000));
        let mut b = Budget::new(1000, 0);
        assert_eq!(bound(b.steps(1001)), (Bound::Steps, 1000));
        assert_eq!(bound(b.step()), (Bound::Steps, 1000), "and stays so");
        let mut b = Budget::unlimited();
        b.steps(u64::MAX).unwrap();
        b.steps(u64::MAX).unwrap();
    }

    #[test]
    fn time_is_looked_at_every_so_many_steps() {
        let mut b = Budget::unlimited().within(Duration::ZERO);
        let done = (0..).find(|_| b.step().is_err()).unwrap();
        assert!(done <= Budget::LOOK, "{done}");
        assert_eq!(bound(b.step()), (Bound::Time, 0), "at once from then on");
        // The earlier one holds.
        let mut b = Budget::unlimited()
            .within(Duration::ZERO)
            .within(Duration::from_secs(3600));
        assert_eq!(bound(b.clock()), (Bound::Time, 0));
        let mut b = Budget::unlimited().within(Duration::MAX);
        b.clock().unwrap();
    }

    #[test]
    fn processor_time_is_counted() {
        let mut b = Budget::unlimited().of_thread(Duration::from_millis(2));
        // What sleeps uses none.
        std::thread::sleep(Duration::from_millis(20));
        b.clock().unwrap();
        while b.step().is_ok() {}
        assert_eq!(bound(b.step()), (Bound::Time, 2_000_000));
        let mut b = Budget::new(10, 0).of_thread(Duration::MAX);
        assert_eq!((0..).find(|_| b.step().is_err()), Some(10));
    }

    #[test]
    fn bytes_come_back() {
        let mut b = Budget::new(0, 100);
        b.bytes(60).unwrap();
        assert_eq!(bound(b.bytes(41)), (Bound::Bytes, 100));
        b.bytes(40).unwrap();
        b.give_back(60);
        b.give_back(1000);
        b.bytes(100).unwrap();
    }

    #[test]
    fn vectors_grow_to_the_last_byte() {
        let mut b = Budget::new(0, 8 * 100);
        let mut v = b.vec::<u64>(3).unwrap();
        let pushed = (0..).find(|&i| b.push(&mut v, i).is_err()).unwrap();
        assert_eq!(pushed, 100);
        assert_eq!(v, (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn an_allocation_that_fails_is_an_error() {
        let mut b = Budget::unlimited();
        assert_eq!(bound(b.vec::<u8>(1 << 62)), (Bound::Memory, 1 << 62));
        assert_eq!(bound(b.vec::<u64>(usize::MAX)).0, Bound::Memory);
        assert_eq!(b.text("plain").unwrap(), "plain");
    }
}
