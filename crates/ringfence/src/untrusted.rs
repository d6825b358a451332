//! Values that came out of a domain and that nobody has looked at yet.

use std::fmt;
use std::ops::RangeBounds;

/// A value that a domain chose.
///
/// Everything that leaves a domain is wrapped in this type: results of calls, what is read from its
/// memory, and, if the closure asks for it, the arguments of imports. A domain may be malicious, so
/// the value can be anything that its type can hold. The wrapper has no way to the value that does
/// not say what was checked:
///
/// * [`check`](Self::check) and [`within`](Self::within) for a condition,
/// * [`validate`](Self::validate) to turn it into something stronger,
/// * [`into_inner_unchecked`](Self::into_inner_unchecked) when any value will do. It is safe in Rust's
///   sense; its name is there to be found in a review.
///
/// The value is a copy in host memory: the domain cannot change it after the check.
///
/// # Examples
/// ```
/// use ringfence::Untrusted;
///
/// let rows = Untrusted::new(12u32); // what a domain returned
/// let table = [0u8; 64];
/// let rows = rows.within(0..=table.len() as u32)?;
/// assert_eq!(rows, 12);
/// # Ok::<(), ringfence::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct Untrusted<T>(T);

/// A value from a domain failed the host's check.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the domain gave {value}, which the host does not accept: {wanted}")]
pub struct CheckError {
    /// The value, as text.
    pub value: String,
    /// What would have been accepted.
    pub wanted: String,
}

impl CheckError {
    #[cold]
    fn new(value: impl fmt::Debug, wanted: impl Into<String>) -> Self {
        let mut value = format!("{value:?}");
        if value.len() > 80 {
            let cut = (0..=77).rev().find(|&i| value.is_char_boundary(i)).unwrap_or(0);
            value.truncate(cut);
            value.push('…');
        }
        Self {
            value,
            wanted: wanted.into(),
        }
    }
}

impl<T> Untrusted<T> {
    /// Marks a value as untrusted, for hosts that route values of other origin through the same checks.
    #[inline]
    pub const fn new(value: T) -> Self {
        Self(value)
    }

    /// The value, if `accept` says that it is fine.
    ///
    /// # Errors
    /// [`CheckError`] with the value in it, if `accept` returns false.
    ///
    /// # Examples
    /// ```
    /// # use ringfence::Untrusted;
    /// let level = Untrusted::new(7).check(|l| (1..=9).contains(l))?;
    /// assert!(Untrusted::new(70).check(|l| (1..=9).contains(l)).is_err());
    /// # Ok::<(), ringfence::CheckError>(())
    /// ```
    #[inline]
    pub fn check(self, accept: impl FnOnce(&T) -> bool) -> Result<T, CheckError>
    where
        T: fmt::Debug,
    {
        if accept(&self.0) {
            Ok(self.0)
        } else {
            Err(CheckError::new(self.0, "check failed"))
        }
    }

    /// Turns the value into something that needs no further check, such as an enum or an index.
    ///
    /// # Errors
    /// Whatever `convert` returns.
    ///
    /// # Examples
    /// ```
    /// # use ringfence::Untrusted;
    /// let port = Untrusted::new(443i64).validate(u16::try_from)?;
    /// # Ok::<(), std::num::TryFromIntError>(())
    /// ```
    #[inline]
    pub fn validate<U, E>(self, convert: impl FnOnce(T) -> Result<U, E>) -> Result<U, E> {
        convert(self.0)
    }

    /// The value, if it lies in `range`.
    ///
    /// # Errors
    /// [`CheckError`] that names the value and the range.
    #[inline]
    pub fn within<R: RangeBounds<T> + fmt::Debug>(self, range: R) -> Result<T, CheckError>
    where
        T: PartialOrd + fmt::Debug,
    {
        if range.contains(&self.0) {
            Ok(self.0)
        } else {
            Err(CheckError::new(self.0, format!("not within {range:?}")))
        }
    }

    /// The value, if it is one of `accepted`.
    ///
    /// # Errors
    /// [`CheckError`] that names the value.
    #[inline]
    pub fn one_of(self, accepted: &[T]) -> Result<T, CheckError>
    where
        T: PartialEq + fmt::Debug,
    {
        if accepted.contains(&self.0) {
            Ok(self.0)
        } else {
            Err(CheckError::new(self.0, format!("not one of {accepted:?}")))
        }
    }

    /// Computes with the value; the result is as untrusted as the value was.
    #[inline]
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Untrusted<U> {
        Untrusted(f(self.0))
    }

    /// The value without any check.
    ///
    /// Right where every value of the type is acceptable: a checksum to print, bytes to compare.
    #[inline]
    pub fn into_inner_unchecked(self) -> T {
        self.0
    }

    /// A look at the value without any check; see [`into_inner_unchecked`](Self::into_inner_unchecked).
    #[inline]
    pub const fn as_inner_unchecked(&self) -> &T {
        &self.0
    }
}

impl<T, E> Untrusted<Result<T, E>> {
    /// Moves the wrapper inside a result.
    ///
    /// # Errors
    /// The error that was inside.
    #[inline]
    pub fn transpose(self) -> Result<Untrusted<T>, E> {
        self.0.map(Untrusted)
    }
}

/// Comparing tells nothing but whether the value is one that the host knows already, so it is allowed.
impl<T: PartialEq> PartialEq<T> for Untrusted<T> {
    #[inline]
    fn eq(&self, other: &T) -> bool {
        self.0 == *other
    }
}

impl<T: fmt::Debug> fmt::Debug for Untrusted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Untrusted").field(&self.0).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_checks_name_value_and_range() {
        let e = Untrusted::new(300).within(0..=255).unwrap_err();
        assert_eq!(
            e.to_string(),
            "the domain gave 300, which the host does not accept: not within 0..=255"
        );
        assert_eq!(Untrusted::new(255).within(0..=255), Ok(255));
        assert!(
            Untrusted::new(f64::NAN).within(0.0..1.0).is_err(),
            "NaN lies in no range"
        );
    }

    #[test]
    fn long_values_are_cut_in_messages() {
        let e = Untrusted::new("ä".repeat(500)).check(|_| false).unwrap_err();
        assert!(e.value.chars().count() <= 80, "{}", e.value.len());
    }

    #[test]
    fn conversions() {
        assert_eq!(
            Untrusted::new(65u32).validate(|v| char::from_u32(v).ok_or(())),
            Ok('A')
        );
        assert!(Untrusted::new(3).one_of(&[1, 2]).is_err());
        assert_eq!(Untrusted::new(3).map(|v| v * 2), 6);
    }
}
