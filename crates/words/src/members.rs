//! Domains, groups, who is in which, and what each was given: pure bookkeeping.

use crate::bits::{filled, mask};
use crate::error::Error;
use crate::layer::{Layer, Room};
use ringfence_core::{DomainId, GroupId, Party, Rights};
use std::collections::BTreeMap;
use std::ops::Range;

/// Rights that a call has while it is in progress.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub call: u64,
    pub words: Range<u32>,
    pub rights: Rights,
}

/// A domain.
#[derive(Debug)]
pub(crate) struct Domain {
    pub id: DomainId,
    /// What it owns.
    pub owned: Layer,
    /// What was exported to it itself.
    pub given: Layer,
    /// Groups that it is in itself.
    pub direct: Vec<u32>,
    /// Groups whose rights it has: those, and those that they are in.
    pub groups: Vec<u32>,
    /// What its calls in progress have, in the order in which they began.
    pub held: Vec<Held>,
}

/// A group.
#[derive(Debug)]
pub(crate) struct Group {
    pub id: GroupId,
    pub owner: Party,
    pub open: bool,
    /// What was exported to it.
    pub given: Layer,
    /// Groups in it.
    pub inner: Vec<u32>,
    /// Groups that it is in.
    pub outer: Vec<u32>,
    /// Domains that have its rights.
    pub members: Vec<u32>,
}

/// A source of rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// What the domain of that slot owns.
    Owned(u32),
    /// What was exported to the domain of that slot.
    Domain(u32),
    /// What was exported to the group of that slot.
    Group(u32),
}

impl Source {
    /// The bit of an object that tells of exports to it.
    #[inline]
    pub fn bit(self) -> u64 {
        match self {
            Source::Owned(_) => 0,
            Source::Domain(n) => 1 << (n % 64),
            // From the other end, so that a few of both do not meet.
            Source::Group(n) => 1 << (63 - n % 64),
        }
    }
}

/// Things in numbered slots, which are used again.
#[derive(Debug)]
pub(crate) struct Slots<T> {
    all: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Slots {
            all: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T> Slots<T> {
    fn add(&mut self, thing: T) -> u32 {
        if let Some(n) = self.free.pop() {
            self.all[n as usize] = Some(thing);
            return n;
        }
        self.all.push(Some(thing));
        self.all.len() as u32 - 1
    }

    fn remove(&mut self, n: u32) -> Option<T> {
        let thing = self.all.get_mut(n as usize)?.take();
        self.free.extend(thing.is_some().then_some(n));
        thing
    }

    #[inline]
    pub fn get(&self, n: u32) -> Option<&T> {
        self.all.get(n as usize)?.as_ref()
    }

    #[inline]
    pub fn get_mut(&mut self, n: u32) -> Option<&mut T> {
        self.all.get_mut(n as usize)?.as_mut()
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        (0..).zip(&self.all).filter_map(|(n, t)| Some((n, t.as_ref()?)))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut T)> {
        (0..)
            .zip(&mut self.all)
            .filter_map(|(n, t)| Some((n, t.as_mut()?)))
    }

    /// Numbers that have been used.
    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }
}

/// All domains and groups.
#[derive(Debug, Default)]
pub(crate) struct Members {
    pub domains: Slots<Domain>,
    pub groups: Slots<Group>,
    domain_ids: BTreeMap<DomainId, u32>,
    group_ids: BTreeMap<GroupId, u32>,
    next_group: u64,
}

impl Members {
    #[inline]
    pub fn domain(&self, id: DomainId) -> Result<u32, Error> {
        self.domain_ids.get(&id).copied().ok_or(Error::NoDomain(id))
    }

    pub fn group(&self, id: GroupId) -> Result<u32, Error> {
        self.group_ids.get(&id).copied().ok_or(Error::NoGroup(id))
    }

    #[inline]
    pub fn party(&self, party: Party) -> Result<(), Error> {
        match party {
            Party::Host => Ok(()),
            Party::Domain(id) => self.domain(id).map(drop),
        }
    }

    pub fn add_domain(&mut self, id: DomainId) -> Result<(), Error> {
        if self.domain_ids.contains_key(&id) {
            return Err(Error::SameDomain(id));
        }
        let slot = self.domains.add(Domain {
            id,
            owned: Layer::default(),
            given: Layer::default(),
            direct: Vec::new(),
            groups: Vec::new(),
            held: Vec::new(),
        });
        self.domain_ids.insert(id, slot);
        Ok(())
    }

    pub fn remove_domain(&mut self, slot: u32, room: &mut Room) {
        if let Some(mut domain) = self.domains.remove(slot) {
            self.domain_ids.remove(&domain.id);
            domain.owned.clear(room);
            domain.given.clear(room);
            for group in domain.groups {
                if let Some(g) = self.groups.get_mut(group) {
                    g.members.retain(|&d| d != slot);
                }
            }
        }
    }

    pub fn add_group(&mut self, owner: Party, open: bool) -> GroupId {
        self.next_group += 1;
        let id = GroupId(self.next_group);
        let slot = self.groups.add(Group {
            id,
            owner,
            open,
            given: Layer::default(),
            inner: Vec::new(),
            outer: Vec::new(),
            members: Vec::new(),
        });
        self.group_ids.insert(id, slot);
        id
    }

    /// Removes a group that nobody is in and that is in no other.
    pub fn remove_group(&mut self, slot: u32, room: &mut Room) {
        if let Some(mut group) = self.groups.remove(slot) {
            self.group_ids.remove(&group.id);
            group.given.clear(room);
        }
    }

    /// The groups whose rights a domain has, from whom it is in.
    pub fn reached(&self, domain: u32) -> Vec<u32> {
        let direct = self.domains.get(domain).map(|d| d.direct.clone());
        self.upwards(direct.unwrap_or_default())
    }

    /// Groups, and those that they are in.
    pub fn upwards(&self, mut groups: Vec<u32>) -> Vec<u32> {
        let mut at = 0;
        while let Some(&group) = groups.get(at) {
            at += 1;
            for &outer in self.groups.get(group).iter().flat_map(|g| &g.outer) {
                if !groups.contains(&outer) {
                    groups.push(outer);
                }
            }
        }
        groups
    }

    #[inline]
    pub fn source(&self, source: Source) -> Option<&Layer> {
        match source {
            Source::Owned(n) => self.domains.get(n).map(|d| &d.owned),
            Source::Domain(n) => self.domains.get(n).map(|d| &d.given),
            Source::Group(n) => self.groups.get(n).map(|g| &g.given),
        }
    }

    #[inline]
    pub fn source_mut(&mut self, source: Source) -> Option<&mut Layer> {
        match source {
            Source::Owned(n) => self.domains.get_mut(n).map(|d| &mut d.owned),
            Source::Domain(n) => self.domains.get_mut(n).map(|d| &mut d.given),
            Source::Group(n) => self.groups.get_mut(n).map(|g| &mut g.given),
        }
    }

    /// Domains that have a source's rights. `single`: where the only one's slot is put.
    #[inline]
    pub fn having<'a>(&'a self, source: Source, single: &'a mut [u32; 1]) -> &'a [u32] {
        match source {
            Source::Group(n) => self.groups.get(n).map_or(&[], |g| &g.members),
            Source::Domain(n) | Source::Owned(n) => {
                *single = [n];
                single
            }
        }
    }

    /// What a domain has by itself: owned, exported to it, held by its calls.
    #[inline]
    pub fn own(&self, domain: &Domain, chunk: u32) -> u64 {
        let mut bits = domain.owned.get(chunk) | domain.given.get(chunk);
        for held in &domain.held {
            bits |= filled(held.rights) & mask(chunk, &held.words);
        }
        bits
    }

    /// What groups give.
    #[inline]
    pub fn by_groups(&self, groups: &[u32], chunk: u32) -> u64 {
        let given = |&g: &u32| self.groups.get(g).map_or(0, |g| g.given.get(chunk));
        groups.iter().map(given).fold(0, |a, b| a | b)
    }

    /// A domain's rights to the words of a chunk.
    #[inline]
    pub fn effective(&self, domain: &Domain, chunk: u32) -> u64 {
        self.own(domain, chunk) | self.by_groups(&domain.groups, chunk)
    }

    /// The same, but for one source.
    #[inline]
    pub fn others(&self, domain: &Domain, but: Source, chunk: u32) -> u64 {
        let mut bits = 0;
        if !matches!(but, Source::Owned(_)) {
            bits |= domain.owned.get(chunk);
        }
        if !matches!(but, Source::Domain(_)) {
            bits |= domain.given.get(chunk);
        }
        for held in &domain.held {
            bits |= filled(held.rights) & mask(chunk, &held.words);
        }
        for &g in &domain.groups {
            if but != Source::Group(g) {
                bits |= self.groups.get(g).map_or(0, |g| g.given.get(chunk));
            }
        }
        bits
    }
}
