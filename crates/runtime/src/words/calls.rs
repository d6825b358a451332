//! Calls by a policy: what it says of a function becomes rights for as long as the call runs.

use super::table::WORD;
use super::{Attached, Held, Shared, State};
use ringfence_core::{Grantee, Party, Rights, WordsError};
use ringfence_words::Denied;
use ringfence_words::policy::{Copy, Memory, Policy};
use std::ops::Range;

/// The arena, as policies read it: what domains may write changes meanwhile.
pub(super) struct View<'a> {
    pub shared: &'a Shared,
    pub state: &'a State,
}

impl Memory for View<'_> {
    fn offset(&self, pointer: u64) -> Option<u64> {
        pointer
            .checked_sub(self.shared.host)
            .filter(|&at| at < self.shared.len.into())
    }

    fn read(&self, offset: u64, to: &mut [u8]) -> bool {
        let there = offset
            .checked_add(to.len() as u64)
            .is_some_and(|end| end <= self.shared.len.into());
        if there {
            for (at, byte) in (self.shared.host + offset..).zip(to) {
                // SAFETY: in the arena, which is mapped as long as it is there; others may write it, so it is read as what changes.
                *byte = unsafe { (at as *const u8).read_volatile() };
            }
        }
        there
    }

    fn object(&self, offset: u64) -> Option<Range<u64>> {
        let word = u32::try_from(offset / u64::from(WORD)).ok()?;
        let words = self.state.words.object(word)?.words;
        Some(u64::from(words.start * WORD)..u64::from(words.end * WORD))
    }
}

/// Of a call that was made: its policy, its function, its arguments.
pub type Missing<'a> = Option<(&'a Policy, &'a str, &'a [u64])>;

impl Attached {
    /// What is known of an access that was denied, with the line that the policy of the call lacks.
    pub(crate) fn denied(&self, address: u64, len: u64, write: bool, missing: Missing<'_>) -> Denied {
        let state = self.arena.0.state.lock();
        let at = address.saturating_sub(self.arena.0.host);
        let found = Denied::look_up(&state.words, &state.types, self.id, at, len, write);
        match missing {
            None => found,
            Some((policy, function, arguments)) => {
                let view = View {
                    shared: &self.arena.0,
                    state: &state,
                };
                // The word that was not granted, where the access began before it.
                let first = found.first.max(at) + self.arena.0.host;
                found.suggest(policy, function, arguments, first, &view)
            }
        }
    }

    /// Which arguments of a call are copied.
    pub(crate) fn copies(
        &self,
        policy: &Policy,
        function: &str,
        arguments: &[u64],
    ) -> Result<Vec<Copy>, WordsError> {
        let state = self.arena.0.state.lock();
        let view = View {
            shared: &self.arena.0,
            state: &state,
        };
        let copies = policy.copies(function, arguments, &view);
        copies.map_err(|e| WordsError::Policy(e.to_string()))
    }

    /// A call of a function begins, with these arguments, and what the policy says of it. What it keeps stays; the rest goes with what is
    /// returned.
    pub(crate) fn enter(
        &self,
        policy: &Policy,
        function: &str,
        arguments: &[u64],
    ) -> Result<Held, WordsError> {
        let mut state = self.arena.0.state.lock();
        let view = View {
            shared: &self.arena.0,
            state: &state,
        };
        let needed = policy
            .needs(function, arguments, &view)
            .map_err(|e| WordsError::Policy(e.to_string()))?;
        let given: Vec<(Range<u32>, Rights)> = needed.iter().map(|n| (n.words.clone(), n.rights)).collect();
        let entered = state.words.enter(Party::Host, self.id, &given);
        let call = entered.map_err(|e| self.arena.told(e))?;
        let to = Grantee::Domain(self.id);
        let mut keep = || {
            for kept in needed.iter().filter(|n| n.kept) {
                // What it has already is not lowered.
                for word in kept.words.clone() {
                    if state.words.exported(to, word) < kept.rights {
                        state.words.export(Party::Host, word..word + 1, kept.rights, to)?;
                    }
                }
            }
            Ok(())
        };
        if let Err(e) = keep() {
            state.words.leave(call);
            return Err(self.arena.told(e));
        }
        Ok(Held {
            arena: self.arena.clone(),
            call,
        })
    }
}
