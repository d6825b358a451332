//! What is allowed: the figures of `docs/security/loading.md` and `docs/security/reports.md`, and how they are measured.

use crate::meter;
use std::time::Duration;

/// Memory for a file of some bytes, loading and reporting.
#[must_use]
pub fn memory(bytes: u64) -> u64 {
    (64 << 20) + 8 * bytes
}

/// Processor time of loading or refusing a file: a second for 16 MiB, and a little for the smallest.
#[must_use]
pub fn loading(bytes: u64) -> Duration {
    Duration::from_millis(20) + Duration::from_secs(1).mul_f64(bytes as f64 / f64::from(16 << 20))
}

/// Processor time of one report.
pub const REPORT: Duration = Duration::from_millis(50);

/// What a call may take beyond its limit.
pub const BEYOND: Duration = Duration::from_millis(2);

/// Times are of the processor, not of the clock on the wall, and the least of [`TRIES`] counts; still, caches and clock rates are
/// shared with whoever else is on the machine. What is no defect stays below this many times the bound.
pub const NOISE: u32 = 3;

/// What takes too long is tried so often before it is told.
pub const TRIES: u32 = 4;

/// The stack that everything has to be content with.
pub const STACK: usize = 64 << 10;

fn clock(which: libc::clockid_t) -> Duration {
    // SAFETY: reads a clock.
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(which, &raw mut t);
        Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
    }
}

/// Processor time of all threads of this process.
#[must_use]
pub fn processor() -> Duration {
    clock(libc::CLOCK_PROCESS_CPUTIME_ID)
}

/// Processor time of this thread.
#[must_use]
pub fn thread() -> Duration {
    clock(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Memory that is mapped and touched, in bytes: now, and at most since [`Memory::begin`].
fn resident() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(name));
        let kilobytes = line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) << 10
    };
    (field("VmRSS:"), field("VmHWM:"))
}

/// Memory of the heap and of the process, the most of a stretch of work.
pub struct Memory {
    heap: i64,
    resident: u64,
}

impl Memory {
    /// Begins to look.
    #[must_use]
    pub fn begin() -> Memory {
        // Resets the process's high-water mark.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        meter::begin();
        Memory {
            heap: meter::live(),
            resident: resident().0,
        }
    }

    /// The most since then, more than before: of the heap, and of what was resident.
    #[must_use]
    pub fn most(&self) -> (u64, u64) {
        let heap = (meter::peak() - self.heap).max(0) as u64;
        (heap, resident().1.saturating_sub(self.resident))
    }
}

/// What a case must leave as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Open descriptors.
    pub descriptors: usize,
    /// Threads.
    pub threads: usize,
    /// Lines of the process's map.
    pub mappings: usize,
    /// Bytes of the heap.
    pub heap: i64,
    /// Bytes of the reserve.
    pub reserve: usize,
}

impl Kept {
    /// Now.
    #[must_use]
    pub fn now() -> Kept {
        let entries = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
        let mappings = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let mappings = mappings.lines().count();
        Kept {
            descriptors: entries("/proc/self/fd"),
            threads: entries("/proc/self/task"),
            mappings,
            heap: meter::live(),
            reserve: ringfence::Reserve::<()>::used(),
        }
    }

    /// How much more of each there is than there was.
    #[must_use]
    pub fn since(&self, before: &Kept) -> Kept {
        Kept {
            descriptors: self.descriptors.saturating_sub(before.descriptors),
            threads: self.threads.saturating_sub(before.threads),
            mappings: self.mappings.saturating_sub(before.mappings),
            heap: (self.heap - before.heap).max(0),
            reserve: self.reserve.saturating_sub(before.reserve),
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(&self, more: &Kept) -> Kept {
        Kept {
            descriptors: self.descriptors + more.descriptors,
            threads: self.threads + more.threads,
            mappings: self.mappings + more.mappings,
            heap: self.heap + more.heap,
            reserve: self.reserve + more.reserve,
        }
    }

    /// What there is more now than there was.
    #[must_use]
    pub fn leaked(&self, before: &Kept) -> Option<String> {
        let leaked = self.descriptors > before.descriptors
            || self.threads > before.threads
            || self.mappings > before.mappings
            || self.heap > before.heap
            || self.reserve > before.reserve;
        leaked.then(|| format!("left behind: {before:?} became {self:?}"))
    }
}

/// Does `work` on a small stack; an error if it panics.
///
/// # Errors
/// Its own, or the panic's text.
pub fn on_small_stack<T: Send, E: From<String> + Send>(
    work: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .stack_size(STACK)
            .spawn_scoped(scope, work)
            .map_err(|e| format!("no thread: {e}"))?;
        thread.join().unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(format!("panic: {}", text.unwrap_or_default()).into())
        })
    })
}
