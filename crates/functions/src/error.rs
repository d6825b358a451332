//! What can go wrong.

use ringfence::{CallError, CodeError, DomainError, MemoryError};
use ringfence_text::{Errors, NoObject};

/// Why a function was not made, found or called.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FunctionError {
    /// The compiler does not take the text; it tells each place.
    #[error("{0}")]
    Text(Errors),
    /// The object code is cut, damaged, or none.
    #[error(transparent)]
    Object(#[from] NoObject),
    /// The text does not define the function that it was given for.
    #[error("the text defines no function {name}; it has to, and not as a static one")]
    NotDefined {
        /// The function's name.
        name: String,
    },
    /// A built-in function is declared by something else.
    #[error("{text:?} is not the declaration of one function, such as long add(long, long)")]
    Declaration {
        /// What was given.
        text: String,
    },
    /// The name is taken: by a function of the runtime, or by a built-in one.
    #[error("there is a function {name} already; replace it, delete it first, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// The runtime has no such function.
    #[error("there is no function {name}; a static one is known to its own text only")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The function came with another one, in one text, and goes with it.
    #[error("{name} came with {with}, in one text; replace or delete that one")]
    Part {
        /// The function.
        name: String,
        /// The one whose text it is from.
        with: String,
    },
    /// The text calls a function that is neither there nor built in.
    #[error(
        "the text calls {name}, which is neither a function of the runtime nor a built-in one; create it first"
    )]
    Missing {
        /// The name.
        name: String,
    },
    /// Two sides have different ideas of a function's type.
    #[error("{name} has the type {has}, not {wanted}")]
    Type {
        /// The function.
        name: String,
        /// What it is.
        has: String,
        /// What was claimed.
        wanted: String,
    },
    /// An argument does not fit the function's type.
    #[error("argument {number} of {name} has to be {wanted}")]
    Argument {
        /// The function.
        name: String,
        /// Which one, from 1.
        number: usize,
        /// What fits.
        wanted: String,
    },
    /// The wrong number of arguments.
    #[error("{name} takes {wanted} argument{}, not {given}", if *wanted == 1 { "" } else { "s" })]
    Count {
        /// The function.
        name: String,
        /// How many it takes.
        wanted: usize,
        /// How many were given.
        given: usize,
    },
    /// The function was deleted: the one that was called, or one that it calls.
    #[error("the function {name} was deleted")]
    Deleted {
        /// Its name.
        name: String,
    },
    /// So many functions are in the runtime.
    #[error(
        "the runtime has {limit} functions, deleted ones included that somebody still holds; delete some, or make another"
    )]
    Full {
        /// The limit.
        limit: usize,
    },
    /// There is no place in the runtime's heap at which the text's addresses look like no identifier.
    #[error("no place was found for the data of {name}; change its text a little")]
    Place {
        /// The function.
        name: String,
    },
    /// The call failed; the runtime refuses calls until it is reset.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The code was not added, or not removed.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// The runtime could not be made, or not be reset.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The runtime's heap is full.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl From<Errors> for FunctionError {
    fn from(errors: Errors) -> Self {
        FunctionError::Text(errors)
    }
}
