//! Where the translation of an instruction goes.

use crate::out::{Out, Target};
use crate::unwind::Unwind;

/// Where the output goes, and the call-frame rows with it.
pub(crate) struct Sink<'s, 'o> {
    pub out: &'s mut Out<'o>,
    pub unwind: Option<&'s mut Unwind>,
    /// What the checked jump at this instruction demands.
    pub target: Target,
}

pub(crate) type Sunk<'x, 's, 'o> = Option<&'x mut Sink<'s, 'o>>;
