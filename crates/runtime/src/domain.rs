//! Domains: running instances of modules.

use crate::error::{CallError, DomainError, MemoryError};
use crate::fault::Fault;
use crate::imports::Imports;
use crate::module::Module;
use crate::policy::{Answer, Syscall};
use std::ffi::c_void;
use std::marker::PhantomData;
use std::time::Duration;

/// How deeply host and domains may call each other on one lane.
pub const MAX_NESTING: u32 = 100;

/// How many words of stack arguments a call may have.
pub const MAX_STACK_WORDS: usize = 128;

/// Limits of a domain.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DomainOptions {
    /// Most bytes of heap, anonymous maps and host allocations together.
    pub heap_limit: u64,
    /// Bytes of data stack a lane has; at most 15 MiB.
    pub data_stack: u32,
    /// Bytes of control stack a lane has.
    pub control_stack: u32,
    /// How long a call may take, time in host functions included. `None`: for ever.
    pub time_limit: Option<Duration>,
    /// How many threads may be in the domain, at most 63.
    pub max_lanes: u32,
    /// How many processors the domain is told of.
    pub processors: u32,
}

impl Default for DomainOptions {
    fn default() -> Self {
        DomainOptions {
            heap_limit: 1 << 30,
            data_stack: 8 << 20,
            control_stack: 1 << 20,
            time_limit: None,
            max_lanes: ringfence_isa::window::LANE_COUNT,
            processors: 1,
        }
    }
}

/// What a gate must know of a C function's type to pass exactly what it uses. Everything else is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Integer arguments in registers, 0 to 6.
    pub ints: u8,
    /// Vector arguments in registers, 0 to 8.
    pub floats: u8,
    /// Words of stack arguments.
    pub stack: u8,
    /// Integer registers of the result, 0 to 2.
    pub int_results: u8,
    /// Vector registers of the result, 0 to 2.
    pub float_results: u8,
    /// x87 registers of the result, 0 to 2 (`long double`).
    pub x87_results: u8,
    /// Takes a variable number of arguments: `al` counts the vector ones.
    pub variadic: bool,
}

impl Signature {
    /// Not known: all argument and result registers are passed as they are, none from the stack.
    pub const UNKNOWN: Signature = Signature {
        ints: 6,
        floats: 8,
        stack: 0,
        int_results: 2,
        float_results: 2,
        x87_results: 2,
        variadic: true,
    };
}

/// Arguments of a call in the raw form. Unused ones are 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// `rdi rsi rdx rcx r8 r9`.
    pub ints: [u64; 6],
    /// `xmm0` to `xmm7`, low halves.
    pub floats: [f64; 8],
    /// Arguments on the stack.
    pub stack: &'a [u64],
}

impl Call<'_> {
    /// Integer arguments only, up to six.
    ///
    /// # Panics
    /// If there are more than six.
    #[must_use]
    pub fn ints(args: &[u64]) -> Self {
        let mut ints = [0; 6];
        ints[..args.len()].copy_from_slice(args);
        Call {
            ints,
            ..Default::default()
        }
    }
}

/// Result registers after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Returned {
    /// `rax`.
    pub rax: u64,
    /// `rdx`.
    pub rdx: u64,
    /// `xmm0`, low half.
    pub xmm0: f64,
    /// `xmm1`, low half.
    pub xmm1: f64,
    /// `st0` in its 80-bit format (`long double` results), zero-padded.
    pub st0: [u8; 16],
}

/// A running instance. Cheap to clone; it goes when the last clone, [`Entry`] included, is dropped.
#[derive(Clone)]
pub struct Domain(PhantomData<()>);

/// A borrowed domain, as host functions and policies see it.
#[derive(Clone, Copy)]
pub struct DomainRef<'a>(PhantomData<&'a ()>);

/// A function of a domain.
#[derive(Clone)]
pub struct Entry(Domain);

impl Domain {
    /// Makes a domain of one module or several linked together, and runs their constructors.
    ///
    /// # Errors
    /// [`DomainError`].
    pub fn new(modules: &[Module], imports: Imports, options: &DomainOptions) -> Result<Domain, DomainError> {
        let _ = (modules, imports, options);
        todo!()
    }

    /// Finds an exported function.
    ///
    /// # Errors
    /// [`DomainError::NoExport`], [`DomainError::NotFunction`].
    pub fn entry(&self, name: &str) -> Result<Entry, DomainError> {
        let _ = name;
        todo!()
    }

    /// Address of an exported variable or function.
    #[must_use]
    pub fn symbol(&self, name: &str) -> Option<u64> {
        let _ = name;
        todo!()
    }

    /// The borrowed form, which has the memory operations.
    #[must_use]
    pub fn as_ref(&self) -> DomainRef<'_> {
        DomainRef(PhantomData)
    }

    /// Restores the pristine image: data, heap, stacks; runs constructors again. Host allocations are gone.
    ///
    /// # Errors
    /// [`DomainError::Busy`] while calls are in progress.
    pub fn reset(&self) -> Result<(), DomainError> {
        todo!()
    }

    /// Ends all calls in progress with [`FaultKind::Interrupted`](crate::FaultKind::Interrupted). From any thread.
    pub fn interrupt(&self) {
        todo!()
    }

    /// Whether the domain refuses calls until it is reset.
    #[must_use]
    pub fn faulted(&self) -> bool {
        todo!()
    }

    /// The time limit of calls that start from now on.
    pub fn set_time_limit(&self, limit: Option<Duration>) {
        let _ = limit;
        todo!()
    }
}

impl DomainRef<'_> {
    /// The window's base.
    #[must_use]
    pub fn base(&self) -> u64 {
        todo!()
    }

    /// What the domain means by `pointer`: its low half in this window.
    #[must_use]
    pub fn translate(&self, pointer: u64) -> u64 {
        self.base() | (pointer & 0xFFFF_FFFF)
    }

    /// Copies out of the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let _ = (address, to);
        todo!()
    }

    /// Copies into the domain.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`].
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let _ = (address, from);
        todo!()
    }

    /// Copies a C string of at most `limit` bytes out of the domain, without the NUL.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], [`MemoryError::Unmapped`]; also when there is no NUL within the limit.
    pub fn read_c_string(&self, address: u64, limit: usize) -> Result<Vec<u8>, MemoryError> {
        let _ = (address, limit);
        todo!()
    }

    /// Allocates zeroed memory in the domain, for the host to pass data in. Its bookkeeping is out of the domain's reach.
    ///
    /// # Errors
    /// [`MemoryError::Limit`], [`MemoryError::Alignment`].
    pub fn alloc(&self, len: u64, align: u64) -> Result<u64, MemoryError> {
        let _ = (len, align);
        todo!()
    }

    /// Frees what [`alloc`](Self::alloc) gave.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    pub fn free(&self, address: u64) -> Result<(), MemoryError> {
        let _ = address;
        todo!()
    }

    /// Performs the call if it is one of `brk mmap munmap mprotect mremap madvise` on the domain's own anonymous memory.
    #[must_use]
    pub fn memory_call(&self, call: &Syscall) -> Option<Answer> {
        let _ = call;
        todo!()
    }
}

impl Entry {
    /// The domain.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.0
    }

    /// Address of the function.
    #[must_use]
    pub fn address(&self) -> u64 {
        todo!()
    }

    /// Calls it.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&self, call: &mut Call<'_>) -> Result<Returned, CallError> {
        let _ = call;
        todo!()
    }

    /// A plain C function pointer that calls this entry; arguments and results in C's own registers. When the call fails
    /// the result is 0, [`last_status`] is not 0, and [`take_error`] tells why.
    ///
    /// The pointer is good while the domain lives; afterwards it fails with [`CallError::Gone`].
    #[must_use]
    pub fn thunk(&self, signature: Signature) -> *const c_void {
        let _ = signature;
        todo!()
    }
}

/// Whether the last call through a thunk on this thread failed: 0 means it succeeded.
#[inline]
#[must_use]
pub fn last_status() -> u64 {
    todo!()
}

/// Why the last failed call through a thunk on this thread failed; empties the slot.
#[must_use]
pub fn take_error() -> Option<CallError> {
    let _: Option<Fault> = None;
    todo!()
}
