//! What a failed call tells.

use std::fmt;

/// What kind of access a fault was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch: a jump to something that is not code.
    Execute,
}

/// What went wrong in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Access to memory that is not there, or not with these rights.
    BadAccess {
        /// The address, inside the window. 0 when the processor did not tell.
        address: u64,
        /// What kind of access.
        access: Access,
    },
    /// An indirect call or jump to something that is no function (it ends at the window's offset 0).
    BadTarget,
    /// Integer division by zero, or its overflow.
    Division,
    /// An unmasked floating-point exception.
    FloatingPoint,
    /// `ud2` (`__builtin_trap`), or an instruction this processor does not have.
    IllegalInstruction,
    /// `int3`.
    Trap,
    /// A misaligned access that demands alignment, or another error the processor reports without an address.
    Protection,
    /// Too deep recursion: no room left for return addresses.
    ControlStack,
    /// No room left for locals.
    DataStack,
    /// The call took longer than its time limit.
    TimeLimit,
    /// Somebody called `interrupt`.
    Interrupted,
    /// The domain used more memory than it may.
    OutOfMemory,
    /// The domain gave up: `abort`, a failed assertion. The number is chosen by the domain.
    Abort(i32),
    /// An import that was not bound, or a stub that does not exist, was called.
    Unbound(u32),
    /// Host and domain called each other more deeply than [`crate::domain::MAX_NESTING`].
    Nesting,
    /// A host function returned into the domain on another thread, or out of order (fibers, `longjmp`).
    OutOfOrder,
    /// A host function asked to end the call, with this message.
    Host(String),
    /// A domain that this one called failed.
    Callee(Box<Fault>),
    /// Another thread's call made the domain fault while this one was in it.
    Elsewhere,
}

/// The general registers at a fault. `rsp` is left out on purpose: it is a host address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Registers {
    /// By the number that encodings use: 0 `rax`, 1 `rcx`, 2 `rdx`, 3 `rbx`, 4 always 0, 5 `rbp`, 6 `rsi`, 7 `rdi`, then
    /// `r8` to `r15`.
    pub general: [u64; 16],
    /// The instruction pointer.
    pub rip: u64,
    /// The flags.
    pub rflags: u64,
}

/// One fenced frame, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The instruction: where the fault was, or the call that is in progress.
    pub address: u64,
    /// Name of the module, if the address is in one.
    pub module: Option<String>,
    /// Offset in the module's image.
    pub offset: u64,
    /// Name of the function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
}

/// A failed call.
#[derive(Clone, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The registers at that moment.
    pub registers: Registers,
    /// Name of the domain's first module.
    pub domain: String,
    pub(crate) frames: Vec<Frame>,
}

impl Fault {
    /// The instruction that failed.
    #[must_use]
    pub fn instruction(&self) -> u64 {
        self.registers.rip
    }

    /// Fenced frames, innermost first, with function, file and line as far as the modules have symbols and debug
    /// information.
    #[must_use]
    pub fn backtrace(&self) -> Vec<Frame> {
        self.frames.clone()
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {:#x}", self.kind, self.registers.rip)
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("kind", &self.kind)
            .field("domain", &self.domain)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Fault {}
