//! Groups: who is in which, and what that does to the tables.

use super::Supervisor;
use crate::error::Error;
use crate::members::{Domain, Source};
use crate::sink::Sink;
use crate::tell::{lower_chunks, raise_chunks, unraise};
use ringfence_core::{DomainId, GroupId, Party};
use std::ops::Range;

/// Is told of chunks of a domain's that may change.
type Visitor<'a> = dyn FnMut(&Domain, Range<u32>) -> Result<(), Error> + 'a;

impl<S: Sink> Supervisor<S> {
    /// A new group without members.
    ///
    /// # Errors
    /// [`Error::NoDomain`] if the owner is none.
    pub fn add_group(&mut self, owner: Party, open: bool) -> Result<GroupId, Error> {
        self.members.party(owner)?;
        Ok(self.members.add_group(owner, open))
    }

    /// `domain` joins by itself, or `actor`, the host or the group's owner, admits it.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NoDomain`], [`Error::Closed`], [`Error::NotOwner`], [`Error::Table`].
    pub fn join(&mut self, actor: Party, domain: DomainId, group: GroupId) -> Result<(), Error> {
        let n = self.members.group(group)?;
        let slot = self.members.domain(domain)?;
        self.members.party(actor)?;
        let Some((owner, open)) = self.members.groups.get(n).map(|g| (g.owner, g.open)) else {
            return Err(Error::NoGroup(group));
        };
        if actor == Party::Domain(domain) && actor != owner {
            if !open {
                return Err(Error::Closed(group));
            }
        } else {
            Self::entitled(actor, owner)?;
        }
        let Some(direct) = self.members.domains.get_mut(slot).map(|d| &mut d.direct) else {
            return Err(Error::NoDomain(domain));
        };
        if direct.contains(&n) {
            return Ok(());
        }
        direct.push(n);
        self.regroup(&[slot]).inspect_err(|_| self.drop_direct(slot, n))
    }

    fn drop_direct(&mut self, slot: u32, group: u32) {
        if let Some(d) = self.members.domains.get_mut(slot) {
            d.direct.retain(|&g| g != group);
        }
    }

    /// Takes `domain` out of the group, at the wish of the host, the group's owner or the domain itself.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NoDomain`], [`Error::NotOwner`], [`Error::NotMember`].
    pub fn expel(&mut self, actor: Party, domain: DomainId, group: GroupId) -> Result<(), Error> {
        let n = self.members.group(group)?;
        let slot = self.members.domain(domain)?;
        self.members.party(actor)?;
        if actor != Party::Domain(domain) {
            Self::entitled(actor, self.members.groups.get(n).map_or(Party::Host, |g| g.owner))?;
        }
        if !self
            .members
            .domains
            .get(slot)
            .is_some_and(|d| d.direct.contains(&n))
        {
            return Err(Error::NotMember(group));
        }
        self.drop_direct(slot, n);
        self.regroup(&[slot])
    }

    /// All that are in the group `inner`, now and later, get what is exported to `outer`, too. The host or the owner of `outer` asks.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NotOwner`], [`Error::Circle`], [`Error::Table`].
    pub fn admit_group(&mut self, actor: Party, inner: GroupId, outer: GroupId) -> Result<(), Error> {
        let (i, o) = (self.members.group(inner)?, self.members.group(outer)?);
        self.members.party(actor)?;
        Self::entitled(actor, self.members.groups.get(o).map_or(Party::Host, |g| g.owner))?;
        if self.members.upwards(vec![o]).contains(&i) {
            return Err(Error::Circle { inner, outer });
        }
        if self.members.groups.get(i).is_some_and(|g| g.outer.contains(&o)) {
            return Ok(());
        }
        self.link(i, o, true);
        let members = self.members.having(Source::Group(i), &mut [0]).to_vec();
        self.regroup(&members).inspect_err(|_| self.link(i, o, false))
    }

    /// Takes the group `inner` out of `outer`, at the wish of the host or the owner of either.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NotOwner`], [`Error::NotMember`].
    pub fn expel_group(&mut self, actor: Party, inner: GroupId, outer: GroupId) -> Result<(), Error> {
        let (i, o) = (self.members.group(inner)?, self.members.group(outer)?);
        self.members.party(actor)?;
        let owner = |n| self.members.groups.get(n).map_or(Party::Host, |g| g.owner);
        if actor != owner(i) {
            Self::entitled(actor, owner(o))?;
        }
        if !self.members.groups.get(i).is_some_and(|g| g.outer.contains(&o)) {
            return Err(Error::NotMember(outer));
        }
        self.link(i, o, false);
        let members = self.members.having(Source::Group(i), &mut [0]).to_vec();
        self.regroup(&members)
    }

    fn link(&mut self, inner: u32, outer: u32, in_it: bool) {
        let mut set = |at: u32, other: u32, up: bool| {
            let Some(group) = self.members.groups.get_mut(at) else {
                return;
            };
            let list = if up { &mut group.outer } else { &mut group.inner };
            list.retain(|&g| g != other);
            list.extend(in_it.then_some(other));
        };
        set(inner, outer, true);
        set(outer, inner, false);
    }

    /// Ends a group: its members lose what it gave them.
    ///
    /// # Errors
    /// [`Error::NoGroup`], [`Error::NotOwner`].
    pub fn end_group(&mut self, actor: Party, group: GroupId) -> Result<(), Error> {
        let n = self.members.group(group)?;
        self.members.party(actor)?;
        Self::entitled(actor, self.members.groups.get(n).map_or(Party::Host, |g| g.owner))?;
        self.dissolve(n);
        Ok(())
    }

    pub(super) fn dissolve(&mut self, n: u32) {
        let Some(group) = self.members.groups.get(n) else {
            return;
        };
        let (inner, outer, members) = (group.inner.clone(), group.outer.clone(), group.members.clone());
        for i in inner {
            self.link(i, n, false);
        }
        for o in outer {
            self.link(n, o, false);
        }
        for &domain in &members {
            self.drop_direct(domain, n);
        }
        // Rights go only: no table grows.
        let _ = self.regroup(&members);
        self.members.remove_group(n, &mut self.room);
    }

    /// Brings the tables of these domains in line with the groups that they are in now.
    fn regroup(&mut self, domains: &[u32]) -> Result<(), Error> {
        let Self { sink, members, .. } = self;
        let now: Vec<Vec<u32>> = domains.iter().map(|&d| members.reached(d)).collect();
        // Where anything may change: what comes or goes.
        let visit = |slot: u32, groups: &[u32], to: &mut Visitor<'_>| {
            let Some(domain) = members.domains.get(slot) else {
                return Ok(());
            };
            let come = groups.iter().filter(|g| !domain.groups.contains(g));
            let go = domain.groups.iter().filter(|g| !groups.contains(g));
            for group in come.chain(go).filter_map(|&g| members.groups.get(g)) {
                for part in group.given.used() {
                    to(domain, part)?;
                }
            }
            Ok(())
        };
        let change = |domain: &Domain, groups: &[u32], chunk: u32| {
            let own = members.own(domain, chunk);
            (
                own | members.by_groups(&domain.groups, chunk),
                own | members.by_groups(groups, chunk),
            )
        };
        for (n, (&slot, groups)) in domains.iter().zip(&now).enumerate() {
            let raised = visit(slot, groups, &mut |d, part| {
                raise_chunks(sink, d.id, part, |c| change(d, groups, c))
                    .map(drop)
                    .map_err(|why| Error::Table { domain: d.id, why })
            });
            if raised.is_err() {
                for (&slot, groups) in domains.iter().zip(&now).take(n + 1) {
                    visit(slot, groups, &mut |d, part| {
                        unraise(sink, d.id, part, |c| change(d, groups, c));
                        Ok(())
                    })?;
                }
                return raised;
            }
        }
        for (&slot, groups) in domains.iter().zip(&now) {
            visit(slot, groups, &mut |d, part| {
                lower_chunks(sink, d.id, part, |c| change(d, groups, c));
                Ok(())
            })?;
        }
        for (&slot, groups) in domains.iter().zip(now) {
            let Some(domain) = self.members.domains.get_mut(slot) else {
                continue;
            };
            let before = std::mem::replace(&mut domain.groups, groups.clone());
            for (group, in_it) in before
                .iter()
                .map(|g| (g, false))
                .chain(groups.iter().map(|g| (g, true)))
            {
                if let Some(g) = self.members.groups.get_mut(*group) {
                    g.members.retain(|&d| d != slot);
                    g.members.extend(in_it.then_some(slot));
                }
            }
        }
        Ok(())
    }
}
