//! What a function's Rust type says, for hosts that compare it with what they learn at run time.

use ringfence_runtime::domain::batch::Element;

use crate::HostFunction;
use crate::value::{Arguments, Return};

/// The type of a function: what its arguments and its result are in memory. Pointers and integers of 64 bits are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    /// The arguments.
    pub arguments: Vec<Element>,
    /// The result; `None` if there is none.
    pub result: Option<Element>,
}

impl Type {
    /// That of a [`Func<A, R>`](crate::Func).
    ///
    /// # Examples
    /// ```
    /// use ringfence::dynamic::{Element, Type};
    ///
    /// let power = Type::of::<(f64, i32), f64>();
    /// assert_eq!(power.arguments, [Element::F64, Element::I32]);
    /// assert_eq!(power.result, Some(Element::F64));
    /// ```
    #[must_use]
    pub fn of<A: Arguments, R: Return>() -> Type {
        Type {
            arguments: A::ELEMENTS.to_vec(),
            result: R::STORED,
        }
    }

    /// That of a host function; a [`Caller`](crate::Caller) is no argument.
    ///
    /// # Examples
    /// ```
    /// use ringfence::dynamic::{Element, Type};
    ///
    /// let add = |a: i32, b: i32| a.wrapping_add(b);
    /// assert_eq!(Type::of_host(&add), Type::of::<(i32, i32), i32>());
    /// ```
    #[must_use]
    pub fn of_host<M, F: HostFunction<M>>(_: &F) -> Type {
        Type {
            arguments: F::ARGUMENTS.to_vec(),
            result: F::RESULT,
        }
    }
}
