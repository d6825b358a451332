//! Pointers into a domain's window.

use std::fmt;
use std::marker::PhantomData;

use bytemuck::{Pod, Zeroable};

use crate::Untrusted;

/// The address of a `T` in some domain's window, as the domain's own code uses it.
///
/// A `Ptr` is a number, not a permission: any value may be stored in one, and nothing is read or
/// written through it except by the memory functions of [`Domain`](crate::Domain), which check that
/// the whole access lies in the window of the domain they are called on. That is why a pointer that a
/// domain returns may be used without a check of its own ([`Untrusted<Ptr<T>>`](Untrusted) converts
/// to `Ptr<T>`): the worst it can name is the domain's own memory.
///
/// It has the size and the ABI of a C pointer, so it can stand in structs that are read from a domain.
#[repr(transparent)]
pub struct Ptr<T> {
    address: u64,
    // A number that says what it is meant to point to; neither owned nor borrowed.
    pointee: PhantomData<fn() -> T>,
}

impl<T> Ptr<T> {
    /// The null pointer. No domain has anything mapped there.
    pub const NULL: Self = Self::from_address(0);

    /// A pointer to `address`, unchecked: the memory functions check it when it is used.
    #[inline]
    #[must_use]
    pub const fn from_address(address: u64) -> Self {
        Self {
            address,
            pointee: PhantomData,
        }
    }

    /// The address, as host and domain see it.
    #[inline]
    #[must_use]
    pub const fn address(self) -> u64 {
        self.address
    }

    /// Whether this is the null pointer.
    #[inline]
    #[must_use]
    pub const fn is_null(self) -> bool {
        self.address == 0
    }

    /// The same address with another type behind it.
    #[inline]
    #[must_use]
    pub const fn cast<U>(self) -> Ptr<U> {
        Ptr::from_address(self.address)
    }

    /// The address of the element `count` places further, wrapping around.
    #[inline]
    #[must_use]
    pub const fn wrapping_add(self, count: u64) -> Self {
        Self::from_address(
            self.address
                .wrapping_add(count.wrapping_mul(size_of::<T>() as u64)),
        )
    }

    /// The address `bytes` further, wrapping around, with another type behind it: a field of a struct.
    #[inline]
    #[must_use]
    pub const fn field<U>(self, bytes: u64) -> Ptr<U> {
        Ptr::from_address(self.address.wrapping_add(bytes))
    }
}

impl<T> Clone for Ptr<T> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Ptr<T> {}

impl<T> PartialEq for Ptr<T> {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for Ptr<T> {}

impl<T> std::hash::Hash for Ptr<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.address.hash(state);
    }
}

impl<T> Default for Ptr<T> {
    fn default() -> Self {
        Self::NULL
    }
}

impl<T> fmt::Debug for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.address)
    }
}

impl<T> fmt::Pointer for Ptr<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Using a pointer is checked at every use, so an unchecked one is good enough.
impl<T> From<Untrusted<Ptr<T>>> for Ptr<T> {
    #[inline]
    fn from(p: Untrusted<Ptr<T>>) -> Self {
        p.into_inner_unchecked()
    }
}

// SAFETY: all zero bytes are the null pointer.
unsafe impl<T> Zeroable for Ptr<T> {}
// SAFETY: transparent around a u64, the marker has size 0 and alignment 1; every bit pattern is a value.
unsafe impl<T: 'static> Pod for Ptr<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_wraps_and_counts_elements() {
        let p = Ptr::<u32>::from_address(0x1000);
        assert_eq!(p.wrapping_add(3).address(), 0x100C);
        assert_eq!(Ptr::<u64>::from_address(u64::MAX).wrapping_add(1).address(), 7);
        assert_eq!(p.field::<u8>(5).address(), 0x1005);
        assert_eq!(size_of::<Ptr<[u8; 100]>>(), 8);
    }
}
