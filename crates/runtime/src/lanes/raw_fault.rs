//! What the signal handler notes of a fault.

use ringfence_core::Registers;

/// What the signal handler writes down; everything else is found out after the call has been left.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct RawFault {
    pub signal: i32,
    pub code: i32,
    pub error: u64,
    pub address: u64,
    pub rsp: u64,
    pub registers: Registers,
    /// Attention bits that made the handler act, when it was no crash.
    pub bits: u32,
}

impl RawFault {
    /// Whether the processor told an address: SEGV_MAPERR, SEGV_ACCERR, or a bus error. What the kernel raises by itself
    /// (a signal for which there is no room on the stack), and general protection, have none.
    pub(crate) fn has_address(&self) -> bool {
        match self.signal {
            libc::SIGSEGV => matches!(self.code, 1 | 2),
            _ => self.signal == libc::SIGBUS && self.code > 1 && self.code < 0x80,
        }
    }
}
