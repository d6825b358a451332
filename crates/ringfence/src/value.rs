//! How Rust values travel in registers, by the System V ABI.
//!
//! Nothing here trusts anything: a value that leaves is bits, a value that arrives is bits, and every
//! bit pattern is a value of the type that the host named. A wrong signature therefore gives wrong
//! numbers, never undefined behaviour in the host.

use ringfence_runtime::domain::batch::Element;

use crate::{Ptr, Untrusted};

/// Which kind of register a value travels in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A general register.
    Int,
    /// The low part of a vector register.
    Float,
}

mod sealed {
    pub trait Sealed {}
}

/// A scalar that can be an argument or a result: integers up to 64 bits, `bool`, `f32`, `f64`,
/// [`Ptr<T>`], and [`Untrusted`] around any of them.
///
/// Sealed: every bit pattern that can arrive is a valid value of each of these types. A `bool` is
/// false if the low byte is 0 and true otherwise.
pub trait Value: sealed::Sealed + Copy + 'static {
    /// Which kind of register it travels in.
    #[doc(hidden)]
    const CLASS: Class;
    /// What it is in memory.
    #[doc(hidden)]
    const ELEMENT: Element;
    /// What it is passed as: `u64` or `f64`, for which the C convention picks the same register.
    #[doc(hidden)]
    type Raw: Copy;
    /// As it is passed.
    #[doc(hidden)]
    fn to_raw(self) -> Self::Raw;
    /// The register's bits.
    #[doc(hidden)]
    fn to_bits(self) -> u64;
    /// From the register's bits, whatever they are.
    #[doc(hidden)]
    fn from_bits(bits: u64) -> Self;
    /// From what a thunk returned.
    #[doc(hidden)]
    fn from_raw_bits(raw: Self::Raw) -> Self;
}

macro_rules! integers {
    ($($t:ty: $element:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Value for $t {
            const CLASS: Class = Class::Int;
            const ELEMENT: Element = Element::$element;
            type Raw = u64;
            #[inline(always)]
            fn to_raw(self) -> u64 { self.to_bits() }
            // Sign- or zero-extended to 64 bits, which satisfies every compiler's idea of the ABI.
            #[inline(always)]
            fn to_bits(self) -> u64 { self as i64 as u64 }
            #[inline(always)]
            fn from_bits(bits: u64) -> Self { bits as $t }
            #[inline(always)]
            fn from_raw_bits(raw: u64) -> Self { raw as $t }
        }
    )*};
}
integers!(
    i8: I8, i16: I16, i32: I32, i64: Word, isize: Word, u8: U8, u16: U16, u32: U32, u64: Word, usize: Word
);

impl sealed::Sealed for bool {}
impl Value for bool {
    const CLASS: Class = Class::Int;
    const ELEMENT: Element = Element::U8;
    type Raw = u64;
    #[inline(always)]
    fn to_raw(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self)
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        bits as u8 != 0
    }
    #[inline(always)]
    fn from_raw_bits(raw: u64) -> Self {
        Self::from_bits(raw)
    }
}

impl sealed::Sealed for f32 {}
impl Value for f32 {
    const CLASS: Class = Class::Float;
    const ELEMENT: Element = Element::F32;
    type Raw = f64;
    #[inline(always)]
    fn to_raw(self) -> f64 {
        f64::from_bits(Value::to_bits(self))
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        u64::from(self.to_bits())
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f32::from_bits(bits as u32)
    }
    #[inline(always)]
    fn from_raw_bits(raw: f64) -> Self {
        <Self as Value>::from_bits(raw.to_bits())
    }
}

impl sealed::Sealed for f64 {}
impl Value for f64 {
    const CLASS: Class = Class::Float;
    const ELEMENT: Element = Element::F64;
    type Raw = f64;
    #[inline(always)]
    fn to_raw(self) -> f64 {
        f64::from_bits(Value::to_bits(self))
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        f64::from_bits(bits)
    }
    #[inline(always)]
    fn from_raw_bits(raw: f64) -> Self {
        raw
    }
}

impl<T> sealed::Sealed for Ptr<T> {}
impl<T: 'static> Value for Ptr<T> {
    const CLASS: Class = Class::Int;
    const ELEMENT: Element = Element::Word;
    type Raw = u64;
    #[inline(always)]
    fn to_raw(self) -> u64 {
        self.to_bits()
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.address()
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self::from_address(bits)
    }
    #[inline(always)]
    fn from_raw_bits(raw: u64) -> Self {
        Self::from_address(raw)
    }
}

impl<T: sealed::Sealed> sealed::Sealed for Untrusted<T> {}
impl<T: Value> Value for Untrusted<T> {
    const CLASS: Class = T::CLASS;
    const ELEMENT: Element = T::ELEMENT;
    type Raw = T::Raw;
    #[inline(always)]
    fn to_raw(self) -> T::Raw {
        self.into_inner_unchecked().to_raw()
    }
    #[inline(always)]
    fn to_bits(self) -> u64 {
        self.into_inner_unchecked().to_bits()
    }
    #[inline(always)]
    fn from_bits(bits: u64) -> Self {
        Self::new(T::from_bits(bits))
    }
    #[inline(always)]
    fn from_raw_bits(raw: T::Raw) -> Self {
        Self::new(T::from_raw_bits(raw))
    }
}

/// What a function may return: a [`Value`] or `()`.
pub trait Return: Copy + 'static {
    /// Integer result registers.
    #[doc(hidden)]
    const INTS: u8;
    /// Vector result registers.
    #[doc(hidden)]
    const FLOATS: u8;
    /// What it is in memory.
    #[doc(hidden)]
    const STORED: Option<Element>;
    /// To the register of its class; `None` for `()`.
    #[doc(hidden)]
    fn to_register(self) -> Option<(Class, u64)>;
    /// What a thunk returns.
    #[doc(hidden)]
    type Raw: Copy;
    /// From what a thunk returned.
    #[doc(hidden)]
    fn from_raw(raw: Self::Raw) -> Self;
}

impl Return for () {
    const INTS: u8 = 0;
    const FLOATS: u8 = 0;
    const STORED: Option<Element> = None;
    #[inline(always)]
    fn to_register(self) -> Option<(Class, u64)> {
        None
    }
    type Raw = ();
    #[inline(always)]
    fn from_raw((): ()) {}
}

impl<V: Value> Return for V {
    const INTS: u8 = matches!(V::CLASS, Class::Int) as u8;
    const FLOATS: u8 = matches!(V::CLASS, Class::Float) as u8;
    const STORED: Option<Element> = Some(V::ELEMENT);
    #[inline(always)]
    fn to_register(self) -> Option<(Class, u64)> {
        Some((V::CLASS, self.to_bits()))
    }
    type Raw = V::Raw;
    #[inline(always)]
    fn from_raw(raw: V::Raw) -> Self {
        V::from_raw_bits(raw)
    }
}

/// The arguments of a typed function: a tuple of up to 12 [`Value`]s. `()` means none.
pub trait Arguments: Copy + 'static {
    /// How many general registers they use.
    #[doc(hidden)]
    const INTS: usize;
    /// How many vector registers they use.
    #[doc(hidden)]
    const FLOATS: usize;
    /// How many words on the stack they use.
    #[doc(hidden)]
    const STACKED: usize;
    /// What they are in memory.
    #[doc(hidden)]
    const ELEMENTS: &'static [Element];
}

const fn count(classes: &[Class], class: Class) -> usize {
    let (mut i, mut n) = (0, 0);
    while i < classes.len() {
        n += (classes[i] as u8 == class as u8) as usize;
        i += 1;
    }
    n
}

const fn capped(n: usize, most: usize) -> usize {
    if n < most { n } else { most }
}

macro_rules! arguments {
    ($($t:ident)*) => {
        impl<$($t: Value),*> Arguments for ($($t,)*) {
            const INTS: usize = capped(count(&[$($t::CLASS),*], Class::Int), 6);
            const FLOATS: usize = capped(count(&[$($t::CLASS),*], Class::Float), 8);
            const STACKED: usize = (count(&[$($t::CLASS),*], Class::Int) - <Self as Arguments>::INTS)
                + (count(&[$($t::CLASS),*], Class::Float) - <Self as Arguments>::FLOATS);
            const ELEMENTS: &'static [Element] = &[$($t::ELEMENT),*];
        }
    };
}
/// Calls `$m` with 0 to 12 type names.
macro_rules! for_each_arity {
    ($m:ident) => {
        $m!();
        $m!(A1);
        $m!(A1 A2);
        $m!(A1 A2 A3);
        $m!(A1 A2 A3 A4);
        $m!(A1 A2 A3 A4 A5);
        $m!(A1 A2 A3 A4 A5 A6);
        $m!(A1 A2 A3 A4 A5 A6 A7);
        $m!(A1 A2 A3 A4 A5 A6 A7 A8);
        $m!(A1 A2 A3 A4 A5 A6 A7 A8 A9);
        $m!(A1 A2 A3 A4 A5 A6 A7 A8 A9 A10);
        $m!(A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11);
        $m!(A1 A2 A3 A4 A5 A6 A7 A8 A9 A10 A11 A12);
    };
}
pub(crate) use for_each_arity;
for_each_arity!(arguments);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_counted_as_the_abi_does() {
        type T = (i32, f64, i8, u64, u64, u64, u64, u64, f32, u16);
        assert_eq!((T::INTS, T::FLOATS, T::STACKED), (6, 2, 2));
        type D = (f64, f64, f64, f64, f64, f64, f64, f64, f64, f32, u8);
        assert_eq!((D::INTS, D::FLOATS, D::STACKED), (1, 8, 2));
        assert_eq!(
            (
                <() as Arguments>::INTS,
                <() as Arguments>::FLOATS,
                <() as Arguments>::STACKED
            ),
            (0, 0, 0)
        );
    }

    #[test]
    fn every_bit_pattern_is_a_value() {
        assert!(<bool as Value>::from_bits(0x100_0000_0002));
        assert!(!<bool as Value>::from_bits(0xFFFF_FF00));
        assert_eq!(<i32 as Value>::from_bits(0xFFFF_FFFF_0000_0001), 1);
        assert_eq!(<i8 as Return>::from_raw(0x1FF), -1);
        assert_eq!(
            <f32 as Return>::from_raw(f64::from_bits(0xAAAA_AAAA_3F80_0000)),
            1.0
        );
    }
}
