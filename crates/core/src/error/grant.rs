//! Why a function of one domain was not granted to another.

use super::HostError;
use crate::backend::Unsupported;

/// Why a function was not granted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The domain has no such slot.
    #[error(
        "the domain has no import {name:?} that takes entries of other domains; name it with Imports::slot or \
         Imports::domain when the domain is made"
    )]
    NoSlot {
        /// The import's name.
        name: String,
    },
    /// Only registers pass from domain to domain.
    #[error(
        "{name:?} has {words} words of arguments on the stack; between domains only those in registers pass"
    )]
    StackArguments {
        /// The import's name.
        name: String,
        /// How many there are.
        words: u8,
    },
    /// No memory for a thunk.
    #[error(transparent)]
    Host(#[from] HostError),
}
