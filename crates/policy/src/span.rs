//! Ranges of a domain's window.

/// A range inside a domain's window. Whether anything is mapped there is for the kernel to find out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    address: u64,
    len: u64,
    foreign: bool,
}

impl Span {
    /// The range of `len` bytes at `address`. For [`Memory`](crate::memory::Memory), which has checked it.
    pub(crate) fn checked(address: u64, len: u64) -> Span {
        let foreign = false;
        Span {
            address,
            len,
            foreign,
        }
    }

    /// The range of `len` bytes at `address`, where objects of the host's lie: a [`Stage`](crate::stage::Stage) copies them.
    pub(crate) fn foreign(address: u64, len: u64) -> Span {
        let foreign = true;
        Span {
            address,
            len,
            foreign,
        }
    }

    /// Whether the kernel finds nothing at its address.
    #[must_use]
    pub fn is_foreign(self) -> bool {
        self.foreign
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
            ..self
        }
    }
}
