//! Rights that calls bring along, and that end with them.

use super::Supervisor;
use crate::bits::{filled, mask};
use crate::error::Error;
use crate::members::Held;
use crate::sink::Sink;
use crate::tell::{lower, raise};
use ringfence_core::{DomainId, Party, Rights};
use std::ops::Range;

/// A call in progress that has rights of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Call {
    domain: DomainId,
    number: u64,
}

impl<S: Sink> Supervisor<S> {
    /// A call into a domain begins that has rights to words until it ends: each of one object that the actor may export. Calls are
    /// counted: words that two calls have rights to keep the greater until the second ends.
    ///
    /// # Errors
    /// As for [`export`](Self::export).
    pub fn enter(
        &mut self,
        actor: Party,
        domain: DomainId,
        given: &[(Range<u32>, Rights)],
    ) -> Result<Call, Error> {
        let slot = self.members.domain(domain)?;
        for (words, _) in given {
            if self.exportable(actor, words).is_none() {
                return Err(self.refusal(actor, words));
            }
        }
        self.next_call += 1;
        let call = self.next_call;
        if !given.is_empty() && self.members.domains.get(slot).is_some_and(|d| d.held.is_empty()) {
            self.called.push(slot);
        }
        for (words, rights) in given {
            if let Err(e) = self.hold(slot, call, words, *rights) {
                self.end(slot, call);
                return Err(e);
            }
        }
        Ok(Call { domain, number: call })
    }

    fn hold(&mut self, slot: u32, call: u64, words: &Range<u32>, rights: Rights) -> Result<(), Error> {
        let Self { sink, members, .. } = self;
        let Some(domain) = members.domains.get(slot) else {
            return Ok(());
        };
        let change = |chunk| {
            let before = members.effective(domain, chunk);
            (before, before | filled(rights) & mask(chunk, words))
        };
        raise(sink, domain.id, words, change)?;
        if let Some(domain) = members.domains.get_mut(slot) {
            domain.held.push(Held {
                call,
                words: words.clone(),
                rights,
            });
        }
        Ok(())
    }

    /// A call has ended, as it should or by a fault: its rights are gone. What has ended already has none.
    pub fn leave(&mut self, call: Call) {
        if let Ok(slot) = self.members.domain(call.domain) {
            self.end(slot, call.number);
        }
    }

    fn end(&mut self, slot: u32, call: u64) {
        let held = self.members.domains.get(slot).map_or(0, |d| d.held.len());
        for at in (0..held).rev() {
            if self
                .members
                .domains
                .get(slot)
                .is_some_and(|d| d.held[at].call == call)
            {
                self.drop_held(slot, at, None);
            }
        }
        self.forget_uncalled();
    }

    /// All calls of a domain have ended: it has faulted, or was reset.
    ///
    /// # Errors
    /// [`Error::NoDomain`].
    pub fn end_calls(&mut self, domain: DomainId) -> Result<(), Error> {
        let slot = self.members.domain(domain)?;
        let held = self.members.domains.get(slot).map_or(0, |d| d.held.len());
        for at in (0..held).rev() {
            self.drop_held(slot, at, None);
        }
        self.forget_uncalled();
        Ok(())
    }

    pub(super) fn forget_uncalled(&mut self) {
        let domains = &self.members.domains;
        self.called
            .retain(|&d| domains.get(d).is_some_and(|d| !d.held.is_empty()));
    }

    /// Drops what a call has, or the part of it within `within`.
    pub(super) fn drop_held(&mut self, slot: u32, at: usize, within: Option<&Range<u32>>) {
        let Self { sink, members, .. } = self;
        let Some(held) = members.domains.get_mut(slot).map(|d| &mut d.held) else {
            return;
        };
        let was = held[at].clone();
        let lost = match within {
            None => was.words.clone(),
            Some(w) => was.words.start.max(w.start)..was.words.end.min(w.end),
        };
        if lost.is_empty() {
            return;
        }
        held.remove(at);
        for part in [was.words.start..lost.start, lost.end..was.words.end] {
            if !part.is_empty() {
                held.insert(
                    at,
                    Held {
                        words: part,
                        ..was.clone()
                    },
                );
            }
        }
        if let Some(domain) = members.domains.get(slot) {
            let change = |chunk| {
                let after = members.effective(domain, chunk);
                (after | filled(was.rights) & mask(chunk, &lost), after)
            };
            lower(sink, domain.id, &lost, change);
        }
    }
}
