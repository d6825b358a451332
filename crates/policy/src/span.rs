//! Ranges of a domain's window.

/// A range inside a domain's window. Whether anything is mapped there is for the kernel to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    address: u64,
    len: u64,
}

impl Span {
    /// The range of `len` bytes at `address`. For [`Memory`](crate::memory::Memory), which has checked it.
    pub(crate) fn checked(address: u64, len: u64) -> Span {
        Span { address, len }
    }

    /// The first byte.
    #[must_use]
    pub fn address(self) -> u64 {
        self.address
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(self) -> u64 {
        self.len
    }

    /// Its first `n` bytes (or all of them).
    #[must_use]
    pub fn first(self, n: u64) -> Span {
        Span {
            len: n.min(self.len),
            ..self
        }
    }

    /// Without its first `n` bytes (or all of them).
    #[must_use]
    pub fn skip(self, n: u64) -> Span {
        let n = n.min(self.len);
        Span {
            address: self.address + n,
            len: self.len - n,
        }
    }
}
