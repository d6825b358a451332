//! Where and why something is refused, for the messages. Nothing here is part of a verdict.

use crate::notes::Facts;
use crate::reason::Reason;

/// Where the last instruction before `end` starts.
pub(crate) fn last_before(facts: &Facts, end: usize) -> usize {
    let before = end.saturating_sub(15)..end;
    before.rev().find(|&at| facts.note(at).len() != 0).unwrap_or(0)
}

/// Why control may not be sent to a place that is no target; `otherwise` if no instruction starts there.
pub(crate) fn refusal(facts: &Facts, at: usize, otherwise: Reason) -> Reason {
    if facts.note(at).len() == 0 {
        otherwise
    } else if facts.held.contains(at) {
        Reason::IntoHeld
    } else {
        Reason::IntoSequence
    }
}
