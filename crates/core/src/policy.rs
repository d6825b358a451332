//! The hook through which a domain's system calls reach whoever decides on them.

use crate::space::DomainRef;

/// A system call of a domain, as it arrived at the stub. Pointers among the arguments are the domain's: use them
/// through [`DomainRef::read`] and [`DomainRef::write`] only.
#[derive(Clone, Copy, Debug)]
pub struct Syscall {
    /// The number, x86-64 Linux.
    pub number: u64,
    /// `rdi rsi rdx r10 r8 r9`.
    pub args: [u64; 6],
}

/// What a policy does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Goes on in the domain with this value (or `-errno`).
    Return(i64),
    /// Ends the call into the domain with this exit status.
    Exit(i32),
    /// Ends the call into the domain as if it had called `abort`.
    Abort(i32),
    /// Ends the call because the domain used more memory than it may.
    OutOfMemory,
}

/// Decides on, and performs, the system calls of a domain. Called on the host's stack, by any thread that is in the
/// domain, several at once.
pub trait SyscallHandler: Send + Sync {
    /// Answers one call.
    fn syscall(&self, domain: &DomainRef<'_>, call: &Syscall) -> Answer;

    /// The domain is about to be reset: forget what it had open.
    fn reset(&self) {}

    /// What the policy keeps for the domain that a reset would take away, in words: a snapshot of the domain could not hold it.
    /// `None` if there is nothing.
    fn holds(&self) -> Option<String> {
        None
    }

    /// How many bytes the domain has put on disk.
    fn disk(&self) -> u64 {
        0
    }

    /// How many descriptors it has open for the domain.
    fn descriptors(&self) -> u64 {
        0
    }
}

/// Knows memory and exit, denies the rest with `ENOSYS`. What a domain without a policy gets.
///
/// `brk`, `mmap` (anonymous, private, not executable), `munmap`, `mprotect`, `madvise` within the domain's heap limit,
/// `exit`, `exit_group`. Clocks are `EPERM`: a libc takes `ENOSYS` for an old kernel, and gives a time that nobody told it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPolicy;

impl SyscallHandler for NoPolicy {
    fn syscall(&self, domain: &DomainRef<'_>, call: &Syscall) -> Answer {
        domain.memory_call(call).unwrap_or(match call.number as i64 {
            libc::SYS_exit | libc::SYS_exit_group => Answer::Exit(call.args[0] as i32),
            libc::SYS_clock_gettime | libc::SYS_clock_getres | libc::SYS_gettimeofday | libc::SYS_time => {
                Answer::Return(-i64::from(libc::EPERM))
            }
            _ => Answer::Return(-i64::from(libc::ENOSYS)),
        })
    }
}
