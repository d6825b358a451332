//! Who may do what to which region: the one place where these rules live.
//!
//! Pure bookkeeping, without a system call: each operation either fails and changes nothing, or succeeds and
//! tells which domains' *effective* rights to which regions changed, so that the caller can bring the mappings into
//! line. The rules:
//!
//! 1. A region has one owner, the host or a domain, and a most: the rights that anybody can have to it.
//! 2. Only the host and the region's owner give rights away, and never more than they have themselves. What a domain
//!    that owns a region has is fixed when it gets it.
//! 3. Rights are given to a domain or to a group. A domain's effective rights are the greatest of what it owns, what it was
//!    given and what its groups were given.
//! 4. A group has one owner, the host or a domain. Only the host and that owner admit and expel members, and end
//!    it; anybody may join an open group, and every member may leave.
//! 5. Freeing a region takes all rights to it back; so does the end of the domain that owns it. A domain that ends leaves
//!    its groups, and groups that it owns end.

use std::collections::{BTreeMap, BTreeSet};

pub use ringfence_core::{DomainId, Grantee, GroupId, Party, Rights};

/// Number of a region. Never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u64);

/// Why an operation was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RightsError {
    /// No such region, or it was freed.
    #[error("region {} does not exist", .0.0)]
    NoRegion(RegionId),
    /// No such group, or it has ended.
    #[error("group {} does not exist", .0.0)]
    NoGroup(GroupId),
    /// No such domain, or it has ended.
    #[error("domain {} does not exist", .0.0)]
    NoDomain(DomainId),
    /// Neither the host nor the owner asked.
    #[error("only the host and the owner may do this; the owner is {owner}")]
    NotOwner {
        /// Who could have.
        owner: Party,
    },
    /// More than the giver has.
    #[error("cannot give {wanted}: the giver has {has}")]
    Exceeds {
        /// What was to be given.
        wanted: Rights,
        /// What the giver has.
        has: Rights,
    },
    /// The group admits nobody by itself.
    #[error("group {} is closed: its owner admits members", .0.0)]
    Closed(GroupId),
    /// The domain is not in the group.
    #[error("domain {} is not a member of group {}", .0.0, .1.0)]
    NotMember(DomainId, GroupId),
}

/// A domain's effective rights to a region have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Whose.
    pub domain: DomainId,
    /// To what.
    pub region: RegionId,
    /// What they were.
    pub before: Rights,
    /// What they are.
    pub after: Rights,
}

#[derive(Debug, Clone)]
struct Region {
    owner: Party,
    /// What anybody can have, the owner included.
    most: Rights,
    given: BTreeMap<Grantee, Rights>,
}

#[derive(Debug, Clone)]
struct Group {
    owner: Party,
    open: bool,
    members: BTreeSet<DomainId>,
    /// Regions that the group was given rights to.
    regions: BTreeSet<RegionId>,
}

/// What there is to know of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// Who decides who is in it.
    pub owner: Party,
    /// Whether domains join at their own wish.
    pub open: bool,
    /// Who is in it.
    pub members: Vec<DomainId>,
    /// What its members may do.
    pub regions: Vec<(RegionId, Rights)>,
}

#[derive(Debug, Clone, Default)]
struct Member {
    groups: BTreeSet<GroupId>,
    /// Regions that it owns or was itself given rights to.
    regions: BTreeSet<RegionId>,
    owned_groups: BTreeSet<GroupId>,
}

/// The matrix of all rights.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    next: u64,
    regions: BTreeMap<RegionId, Region>,
    groups: BTreeMap<GroupId, Group>,
    domains: BTreeMap<DomainId, Member>,
}

type Done<T> = Result<T, RightsError>;

impl Matrix {
    /// Nobody, nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn region(&self, id: RegionId) -> Done<&Region> {
        self.regions.get(&id).ok_or(RightsError::NoRegion(id))
    }

    fn group(&self, id: GroupId) -> Done<&Group> {
        self.groups.get(&id).ok_or(RightsError::NoGroup(id))
    }

    fn domain(&self, id: DomainId) -> Done<&Member> {
        self.domains.get(&id).ok_or(RightsError::NoDomain(id))
    }

    fn party(&self, party: Party) -> Done<()> {
        match party {
            Party::Host => Ok(()),
            Party::Domain(id) => self.domain(id).map(drop),
        }
    }

    fn grantee(&self, grantee: Grantee) -> Done<()> {
        match grantee {
            Grantee::Domain(id) => self.domain(id).map(drop),
            Grantee::Group(id) => self.group(id).map(drop),
        }
    }

    /// Rule 2 and 4: the host or the owner.
    fn entitled(actor: Party, owner: Party) -> Done<()> {
        if actor == Party::Host || actor == owner {
            Ok(())
        } else {
            Err(RightsError::NotOwner { owner })
        }
    }

    /// What `domain` may do to `region` (rule 3). `None` for what does not exist.
    #[must_use]
    pub fn effective(&self, domain: DomainId, region: RegionId) -> Rights {
        let (Some(member), Some(region)) = (self.domains.get(&domain), self.regions.get(&region)) else {
            return Rights::None;
        };
        let owned = if region.owner == Party::Domain(domain) {
            region.most
        } else {
            Rights::None
        };
        let given = |g: Grantee| region.given.get(&g).copied().unwrap_or_default();
        let groups = member
            .groups
            .iter()
            .map(|&g| given(Grantee::Group(g)))
            .max()
            .unwrap_or_default();
        owned.max(given(Grantee::Domain(domain))).max(groups)
    }

    /// Regions to which `domain` has rights, with these rights.
    #[must_use]
    pub fn regions_of(&self, domain: DomainId) -> Vec<(RegionId, Rights)> {
        let Some(member) = self.domains.get(&domain) else {
            return Vec::new();
        };
        let mut regions: BTreeSet<RegionId> = member.regions.clone();
        for group in member.groups.iter().filter_map(|g| self.groups.get(g)) {
            regions.extend(&group.regions);
        }
        let rights = regions.into_iter().map(|r| (r, self.effective(domain, r)));
        rights.filter(|(_, rights)| *rights != Rights::None).collect()
    }

    /// Domains that have rights to `region`, with these rights.
    #[must_use]
    pub fn domains_of(&self, region: RegionId) -> Vec<(DomainId, Rights)> {
        let Some(r) = self.regions.get(&region) else {
            return Vec::new();
        };
        let mut domains = BTreeSet::new();
        if let Party::Domain(owner) = r.owner {
            domains.insert(owner);
        }
        for grantee in r.given.keys() {
            match grantee {
                Grantee::Domain(d) => {
                    domains.insert(*d);
                }
                Grantee::Group(g) => domains.extend(self.groups.get(g).into_iter().flat_map(|g| &g.members)),
            }
        }
        let rights = domains.into_iter().map(|d| (d, self.effective(d, region)));
        rights.filter(|(_, rights)| *rights != Rights::None).collect()
    }

    /// What a domain or group was itself given to a region.
    #[must_use]
    pub fn given(&self, region: RegionId, grantee: Grantee) -> Rights {
        self.regions
            .get(&region)
            .and_then(|r| r.given.get(&grantee))
            .copied()
            .unwrap_or_default()
    }

    /// Whether a domain is in a group.
    #[must_use]
    pub fn is_member(&self, domain: DomainId, group: GroupId) -> bool {
        self.groups
            .get(&group)
            .is_some_and(|g| g.members.contains(&domain))
    }

    /// All regions.
    pub fn regions(&self) -> impl Iterator<Item = RegionId> {
        self.regions.keys().copied()
    }

    /// Who owns the region.
    ///
    /// # Errors
    /// [`RightsError::NoRegion`].
    pub fn owner(&self, region: RegionId) -> Done<Party> {
        self.region(region).map(|r| r.owner)
    }

    /// All groups.
    pub fn groups(&self) -> impl Iterator<Item = GroupId> {
        self.groups.keys().copied()
    }

    /// Who owns a group and who is in it, and what it was given.
    ///
    /// # Errors
    /// [`RightsError::NoGroup`].
    pub fn about(&self, group: GroupId) -> Done<About> {
        let g = self.groups.get(&group).ok_or(RightsError::NoGroup(group))?;
        let given = |&region: &RegionId| (region, self.given(region, Grantee::Group(group)));
        Ok(About {
            owner: g.owner,
            open: g.open,
            members: g.members.iter().copied().collect(),
            regions: g.regions.iter().map(given).collect(),
        })
    }

    /// Changes `self`, and finds out what became of the effective rights of `domains` to `regions`.
    fn changing<T>(
        &mut self,
        domains: &BTreeSet<DomainId>,
        regions: &BTreeSet<RegionId>,
        change: impl FnOnce(&mut Self) -> T,
    ) -> (T, Vec<Change>) {
        let pairs: Vec<(DomainId, RegionId, Rights)> = domains
            .iter()
            .flat_map(|&d| regions.iter().map(move |&r| (d, r)))
            .map(|(d, r)| (d, r, self.effective(d, r)))
            .collect();
        let value = change(self);
        let changed = pairs.into_iter().filter_map(|(domain, region, before)| {
            let after = self.effective(domain, region);
            (before != after).then_some(Change {
                domain,
                region,
                before,
                after,
            })
        });
        (value, changed.collect())
    }

    /// A new domain, without rights.
    pub fn add_domain(&mut self) -> DomainId {
        let id = DomainId(self.number());
        self.domains.insert(id, Member::default());
        id
    }

    /// A domain has ended (rule 5). The changes tell what others lose.
    ///
    /// # Errors
    /// [`RightsError::NoDomain`].
    pub fn remove_domain(&mut self, id: DomainId) -> Done<(Vec<RegionId>, Vec<Change>)> {
        let member = self.domain(id)?.clone();
        let mut changes = Vec::new();
        let mut freed = Vec::new();
        for group in member.owned_groups {
            changes.extend(self.end_group(Party::Host, group)?);
        }
        for group in member.groups {
            if self.groups.get(&group).is_some_and(|g| g.members.contains(&id)) {
                changes.extend(self.leave(id, group)?);
            }
        }
        for region in member.regions {
            match self.regions.get_mut(&region) {
                Some(r) if r.owner == Party::Domain(id) => {
                    changes.extend(self.free(Party::Host, region)?);
                    freed.push(region);
                }
                Some(r) => {
                    r.given.remove(&Grantee::Domain(id));
                }
                None => {}
            }
        }
        self.domains.remove(&id);
        changes.retain(|c| c.domain != id);
        Ok((freed, changes))
    }

    /// A new region. Its owner has `most` to it.
    ///
    /// # Errors
    /// [`RightsError::NoDomain`] if the owner is none.
    pub fn add_region(&mut self, owner: Party, most: Rights) -> Done<(RegionId, Vec<Change>)> {
        self.party(owner)?;
        let id = RegionId(self.number());
        let domains = match owner {
            Party::Domain(d) => BTreeSet::from([d]),
            Party::Host => BTreeSet::new(),
        };
        let ((), changes) = self.changing(&domains, &BTreeSet::from([id]), |m| {
            m.regions.insert(
                id,
                Region {
                    owner,
                    most,
                    given: BTreeMap::new(),
                },
            );
            if let Party::Domain(d) = owner
                && let Some(member) = m.domains.get_mut(&d)
            {
                member.regions.insert(id);
            }
        });
        Ok((id, changes))
    }

    /// Takes the region from everybody (rule 5).
    ///
    /// # Errors
    /// [`RightsError::NoRegion`], [`RightsError::NotOwner`].
    pub fn free(&mut self, actor: Party, id: RegionId) -> Done<Vec<Change>> {
        let region = self.region(id)?;
        Self::entitled(actor, region.owner)?;
        let domains = self.domains_of(id).into_iter().map(|(d, _)| d).collect();
        let ((), changes) = self.changing(&domains, &BTreeSet::from([id]), |m| {
            let Some(region) = m.regions.remove(&id) else {
                return;
            };
            if let Party::Domain(d) = region.owner
                && let Some(member) = m.domains.get_mut(&d)
            {
                member.regions.remove(&id);
            }
            for grantee in region.given.keys() {
                m.unlink(*grantee, id);
            }
        });
        Ok(changes)
    }

    fn unlink(&mut self, grantee: Grantee, region: RegionId) {
        match grantee {
            Grantee::Domain(d) => {
                if let Some(member) = self.domains.get_mut(&d) {
                    member.regions.remove(&region);
                }
            }
            Grantee::Group(g) => {
                if let Some(group) = self.groups.get_mut(&g) {
                    group.regions.remove(&region);
                }
            }
        }
    }

    /// Sets what `grantee` is given to `region` (rule 2). [`Rights::None`] takes it back.
    ///
    /// # Errors
    /// [`RightsError::NoRegion`], [`RightsError::NoDomain`], [`RightsError::NoGroup`], [`RightsError::NotOwner`],
    /// [`RightsError::Exceeds`].
    pub fn give(
        &mut self,
        actor: Party,
        id: RegionId,
        grantee: Grantee,
        rights: Rights,
    ) -> Done<Vec<Change>> {
        let region = self.region(id)?;
        self.party(actor)?;
        self.grantee(grantee)?;
        Self::entitled(actor, region.owner)?;
        if rights > region.most {
            return Err(RightsError::Exceeds {
                wanted: rights,
                has: region.most,
            });
        }
        let owner = region.owner;
        let domains = match grantee {
            Grantee::Domain(d) => BTreeSet::from([d]),
            Grantee::Group(g) => self.group(g)?.members.clone(),
        };
        let ((), changes) = self.changing(&domains, &BTreeSet::from([id]), |m| {
            let Some(region) = m.regions.get_mut(&id) else {
                return;
            };
            if rights == Rights::None {
                region.given.remove(&grantee);
                if !matches!((grantee, owner), (Grantee::Domain(d), Party::Domain(o)) if d == o) {
                    m.unlink(grantee, id);
                }
                return;
            }
            region.given.insert(grantee, rights);
            match grantee {
                Grantee::Domain(d) => m.domains.entry(d).or_default().regions.insert(id),
                Grantee::Group(g) => m.groups.get_mut(&g).is_some_and(|g| g.regions.insert(id)),
            };
        });
        Ok(changes)
    }

    /// A new group without members.
    ///
    /// # Errors
    /// [`RightsError::NoDomain`] if the owner is none.
    pub fn add_group(&mut self, owner: Party, open: bool) -> Done<GroupId> {
        self.party(owner)?;
        let id = GroupId(self.number());
        self.groups.insert(
            id,
            Group {
                owner,
                open,
                members: BTreeSet::new(),
                regions: BTreeSet::new(),
            },
        );
        if let Party::Domain(d) = owner
            && let Some(member) = self.domains.get_mut(&d)
        {
            member.owned_groups.insert(id);
        }
        Ok(id)
    }

    /// Ends a group: its members lose what it gave them.
    ///
    /// # Errors
    /// [`RightsError::NoGroup`], [`RightsError::NotOwner`].
    pub fn end_group(&mut self, actor: Party, id: GroupId) -> Done<Vec<Change>> {
        let group = self.group(id)?;
        Self::entitled(actor, group.owner)?;
        let (members, regions) = (group.members.clone(), group.regions.clone());
        let ((), changes) = self.changing(&members, &regions, |m| {
            for domain in &members {
                if let Some(member) = m.domains.get_mut(domain) {
                    member.groups.remove(&id);
                }
            }
            for region in &regions {
                if let Some(region) = m.regions.get_mut(region) {
                    region.given.remove(&Grantee::Group(id));
                }
            }
            if let Some(Party::Domain(owner)) = m.groups.remove(&id).map(|g| g.owner)
                && let Some(owner) = m.domains.get_mut(&owner)
            {
                owner.owned_groups.remove(&id);
            }
        });
        Ok(changes)
    }

    /// `domain` joins by itself, or `actor`, the host or the group's owner, admits it (rule 4).
    ///
    /// # Errors
    /// [`RightsError::NoGroup`], [`RightsError::NoDomain`], [`RightsError::Closed`], [`RightsError::NotOwner`].
    pub fn join(&mut self, actor: Party, domain: DomainId, id: GroupId) -> Done<Vec<Change>> {
        let group = self.group(id)?;
        self.party(actor)?;
        self.domain(domain)?;
        let own_wish = actor == Party::Domain(domain) && actor != group.owner;
        if own_wish {
            if !group.open {
                return Err(RightsError::Closed(id));
            }
        } else {
            Self::entitled(actor, group.owner)?;
        }
        let regions = group.regions.clone();
        let ((), changes) = self.changing(&BTreeSet::from([domain]), &regions, |m| {
            if let (Some(group), Some(member)) = (m.groups.get_mut(&id), m.domains.get_mut(&domain)) {
                group.members.insert(domain);
                member.groups.insert(id);
            }
        });
        Ok(changes)
    }

    /// Takes `domain` out of the group, at the wish of the host, the group's owner or the domain itself.
    ///
    /// # Errors
    /// [`RightsError::NoGroup`], [`RightsError::NotMember`], [`RightsError::NotOwner`].
    pub fn expel(&mut self, actor: Party, domain: DomainId, id: GroupId) -> Done<Vec<Change>> {
        let group = self.group(id)?;
        if actor != Party::Domain(domain) {
            Self::entitled(actor, group.owner)?;
        }
        if !group.members.contains(&domain) {
            return Err(RightsError::NotMember(domain, id));
        }
        self.leave(domain, id)
    }

    fn leave(&mut self, domain: DomainId, id: GroupId) -> Done<Vec<Change>> {
        let regions = self.group(id)?.regions.clone();
        let ((), changes) = self.changing(&BTreeSet::from([domain]), &regions, |m| {
            if let Some(group) = m.groups.get_mut(&id) {
                group.members.remove(&domain);
            }
            if let Some(member) = m.domains.get_mut(&domain) {
                member.groups.remove(&id);
            }
        });
        Ok(changes)
    }
}

#[cfg(test)]
mod tests;
