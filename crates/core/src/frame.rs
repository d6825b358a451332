//! Calls out of a domain, as host functions see them.

use crate::space::{DomainRef, Space};
use std::fmt;
use std::mem::MaybeUninit;

/// What a domain passed to a host function, and where the function leaves its results.
#[repr(C, align(16))]
pub struct OutFrame {
    /// `rdi rsi rdx rcx r8 r9`.
    pub ints: [u64; 6],
    /// `rax`: the number of vector arguments of a variadic call, or a system call's number.
    pub rax: u64,
    /// `r10`.
    pub r10: u64,
    /// Low 16 bytes of `xmm0` to `xmm7`.
    pub vectors: [[u64; 2]; 8],
    /// Result in `rax` and `rdx`; 0 when not set.
    pub result: [u64; 2],
    /// Result in `xmm0` and `xmm1`; 0 when not set.
    pub vector_result: [[u64; 2]; 2],
    /// The domain's data stack pointer: stack arguments stand from here on, in the window.
    pub stack: u64,
    /// What the back end keeps here, at the gate.
    #[doc(hidden)]
    pub origin: [u64; 2],
    /// Set before a host function sees the frame.
    space: MaybeUninit<&'static dyn Space>,
}

impl OutFrame {
    /// A frame without arguments, of a call out of `domain`.
    #[must_use]
    pub fn new(domain: &dyn Space) -> OutFrame {
        let mut frame = OutFrame {
            ints: [0; 6],
            rax: 0,
            r10: 0,
            vectors: [[0; 2]; 8],
            result: [0; 2],
            vector_result: [[0; 2]; 2],
            stack: 0,
            origin: [0; 2],
            space: MaybeUninit::uninit(),
        };
        // SAFETY: whoever has the frame has a borrow of the domain, or is inside a call of it.
        unsafe { frame.set_space(domain) };
        frame
    }

    /// Notes whose call it is, in a frame that a gate has made.
    ///
    /// # Safety
    /// The domain outlives the frame.
    pub unsafe fn set_space(&mut self, domain: &dyn Space) {
        // SAFETY: only the lifetime changes, for which the caller answers.
        self.space =
            MaybeUninit::new(unsafe { std::mem::transmute::<&dyn Space, &'static dyn Space>(domain) });
    }

    /// Floating-point argument `index` (0 to 7) as a double.
    #[must_use]
    pub fn double(&self, index: usize) -> f64 {
        f64::from_bits(self.vectors[index][0])
    }

    /// The calling domain.
    #[must_use]
    pub fn domain(&self) -> DomainRef<'_> {
        // SAFETY: whoever makes a frame safe to look at has set it; the domain lives longer than the frame.
        DomainRef::of(unsafe { self.space.assume_init() })
    }

    /// Stack argument `index` (the seventh integer argument is 0). `None` if the domain has nothing there.
    #[must_use]
    pub fn stack_argument(&self, index: usize) -> Option<u64> {
        let at = self.stack.checked_add((index as u64).checked_mul(8)?)?;
        let mut word = [0; 8];
        self.domain().read(at, &mut word).ok()?;
        Some(u64::from_le_bytes(word))
    }
}

impl fmt::Debug for OutFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutFrame")
            .field("ints", &self.ints)
            .field("rax", &self.rax)
            .field("r10", &self.r10)
            .field("vectors", &self.vectors)
            .field("result", &self.result)
            .field("vector_result", &self.vector_result)
            .field("stack", &self.stack)
            .finish_non_exhaustive()
    }
}
