//! The hook through which a domain's system calls reach whoever decides on them.

use crate::end::EndCall;
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

/// Decides on, and performs, the system calls of a domain. Called on the host's stack, by any thread that is in the
/// domain, several at once.
pub trait SyscallHandler: Send + Sync {
    /// Performs one call, or refuses it: `Ok` goes on in the domain with this value (or `-errno`).
    fn syscall(&self, domain: &DomainRef<'_>, call: &Syscall) -> Result<i64, EndCall>;

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
/// `brk`, `mmap` (anonymous, private, not executable), `munmap`, `mremap`, `mprotect`, `madvise` within the domain's heap limit,
/// `exit`, `exit_group`. Clocks are `EPERM`: a libc takes `ENOSYS` for an old kernel, and gives a time that nobody told it.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoPolicy;

impl SyscallHandler for NoPolicy {
    fn syscall(&self, domain: &DomainRef<'_>, call: &Syscall) -> Result<i64, EndCall> {
        if let Some(value) = domain.memory_call(call) {
            return Ok(value);
        }
        match call.number as i64 {
            libc::SYS_exit | libc::SYS_exit_group => Err(EndCall::Exit(call.args[0] as i32)),
            libc::SYS_clock_gettime | libc::SYS_clock_getres | libc::SYS_gettimeofday | libc::SYS_time => {
                Ok(-i64::from(libc::EPERM))
            }
            _ => Ok(-i64::from(libc::ENOSYS)),
        }
    }
}
