//! Calling functions of a domain.

use super::handles::Handles;
use super::{Domain, MAX_STACK_WORDS, WeakDomain};
use crate::domain::link::Link;
use crate::lanes::gate::{self, RawCall};
use crate::lanes::lane::{Target, gone};
use crate::lanes::last_error;
use crate::lanes::thunk::Thunk;
use crate::lanes::world;
use crate::outcome::error::CallError;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// How much of a register, or of a word on the stack, an integer fills. The ABI leaves the rest of it undefined, so a compiler
/// leaves there what it had there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Width {
    /// All of it: a pointer, `long`.
    #[default]
    Word,
    /// 32 bits.
    Int,
    /// 16 bits, signed or not.
    Short {
        /// The rest of the 32 bits repeats the sign, as compilers expect it of arguments.
        signed: bool,
    },
    /// 8 bits, signed or not.
    Byte {
        /// As above.
        signed: bool,
    },
    /// Nothing of it: padding.
    Nothing,
}

impl Width {
    /// The bits that carry something.
    #[must_use]
    pub const fn mask(self) -> u64 {
        match self {
            Width::Word => u64::MAX,
            Width::Int => 0xFFFF_FFFF,
            Width::Short { .. } => 0xFFFF,
            Width::Byte { .. } => 0xFF,
            Width::Nothing => 0,
        }
    }
}

/// What is narrower than the register or the word that it travels in. Gates clear the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Narrow {
    /// Integer arguments in registers.
    pub ints: [Width; 6],
    /// Floating-point arguments in registers: bit *n* says that number *n* is a `float`.
    pub singles: u8,
    /// Words on the stack.
    pub stack: [Width; 16],
    /// The first integer result, of host functions.
    pub int_result: Width,
    /// The first vector result is a `float`, of host functions.
    pub single_result: bool,
}

impl Narrow {
    /// Nothing is.
    pub const NONE: Narrow = Narrow {
        ints: [Width::Word; 6],
        singles: 0,
        stack: [Width::Word; 16],
        int_result: Width::Word,
        single_result: false,
    };
}

/// What a gate must know of a C function's type to pass exactly what it uses. Everything else is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Integer arguments in registers, 0 to 6.
    pub ints: u8,
    /// `float` and `double` arguments in registers, 0 to 8. Upper halves are cleared unless the function is variadic.
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
    /// What does not fill its register.
    pub narrow: Narrow,
}

impl Signature {
    /// No arguments and no result.
    pub const NOTHING: Signature = Signature {
        ints: 0,
        floats: 0,
        stack: 0,
        int_results: 0,
        float_results: 0,
        x87_results: 0,
        variadic: false,
        narrow: Narrow::NONE,
    };

    /// Not known: all argument and result registers are passed as they are, none from the stack. Those that the function does
    /// not use **show the domain what the host's compiler left there**, host addresses among them.
    pub const UNKNOWN: Signature = Signature {
        ints: 6,
        floats: 8,
        stack: 0,
        int_results: 2,
        float_results: 2,
        x87_results: 2,
        variadic: true,
        narrow: Narrow::NONE,
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

/// A function of a domain.
#[derive(Clone)]
pub struct Entry {
    pub(super) domain: Domain,
    pub(super) target: Arc<Target>,
    /// Set if its code came to the living domain and may go again.
    pub(super) linked: Option<Arc<Handles>>,
}

impl Entry {
    /// The domain.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Address of the function.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.target.entry
    }

    /// Calls it.
    ///
    /// # Errors
    /// [`CallError`].
    pub fn call(&self, call: &mut Call<'_>) -> Result<Returned, CallError> {
        if call.stack.len() > MAX_STACK_WORDS {
            return Err(CallError::Arguments {
                given: call.stack.len(),
                limit: MAX_STACK_WORDS,
            });
        }
        let words = call.stack.len() as u32;
        let raw = RawCall {
            ints: call.ints,
            floats: call.floats,
            stack: call.stack.as_ptr(),
            words: call.stack.len() as u64,
        };
        let returned = match &self.linked {
            None => {
                let t = &*self.target;
                let target = self.domain.0.target(t.entry, t.flags, words, 2, t.gate);
                // SAFETY: the entry is one that the verifier knows, the domain lives as long as `self`.
                unsafe { gate::call(&target, &raw) }
            }
            // The gate must see the very target that unlinking changes, not a copy. It looks at it again after it has
            // announced itself and found that something was unlinked.
            // SAFETY: as above, as long as the target has its index.
            Some(_) if words == 0 => unsafe { gate::call(&self.target, &raw) },
            Some(handles) => {
                let target = handles
                    .target(&self.domain.0, self.target.entry, words)
                    .ok_or(CallError::Inside)?;
                // SAFETY: as above.
                unsafe { gate::call(&target, &raw) }
            }
        };
        if last_status() == 0 {
            Ok(returned)
        } else {
            Err(take_error().unwrap_or(CallError::Gone))
        }
    }

    pub(crate) fn target_for(&self, signature: &Signature) -> (Target, WeakDomain) {
        let inner = &self.domain.0;
        let mut target = inner.target_for(self.target.entry, signature);
        if self.linked.is_some() {
            target.revoked = AtomicU32::new(gone::UNLINKED);
        }
        (target, WeakDomain(Arc::downgrade(inner)))
    }

    /// Notes that another domain may call it.
    pub(crate) fn granted(&self, link: &Arc<Link>) {
        self.domain.remember(link);
        if let Some(handles) = &self.linked {
            handles.granted(link);
        }
    }

    /// A plain C function pointer that calls this entry; arguments and results in C's own registers. When the call fails
    /// the result is 0, [`last_status`] is not 0, and [`take_error`] tells why.
    ///
    /// The pointer is good while the domain lives; afterwards it fails with [`CallError::Gone`].
    ///
    /// # Panics
    /// If there is no memory for another thunk.
    #[must_use]
    pub fn thunk(&self, signature: Signature) -> *const c_void {
        let inner = &self.domain.0;
        let make = |gone: u32, alive: bool| {
            let mut target = inner.target_for(self.target.entry, &signature);
            target.revoked = AtomicU32::new(gone);
            if !alive {
                target.index.store(0, Ordering::Relaxed);
            }
            Thunk::new(target, &signature).expect("memory for a thunk")
        };
        if let Some(handles) = &self.linked {
            return handles.thunk(self.target.entry, signature, |alive| make(gone::UNLINKED, alive));
        }
        inner
            .thunks()
            .entry((self.target.entry, signature))
            .or_insert_with(|| make(gone::DOMAIN, true))
            .code()
    }
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("address", &format_args!("{:#x}", self.address()))
            .finish()
    }
}

/// The [tag](Domain::set_tag) of the innermost domain that has called out on this thread; 0 if none has.
#[must_use]
pub fn current_tag() -> u64 {
    // A lane with a call in progress has a domain that stays.
    world::innermost().map_or(0, |lane| lane.domain().tag.load(Ordering::Relaxed))
}

/// Whether the last call through a thunk on this thread failed: 0 means it succeeded.
#[inline]
#[must_use]
pub fn last_status() -> u64 {
    // SAFETY: the calling thread's own words.
    unsafe { (*gate::tls()).status }
}

/// Why the last failed call through a thunk on this thread failed; empties the slot.
#[must_use]
pub fn take_error() -> Option<CallError> {
    last_error::take_error()
}
