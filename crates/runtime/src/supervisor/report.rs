//! The matrix of a running process, to be looked at.

use super::{Region, lock};
use crate::rights::{DomainId, Party, RegionId, Rights};
use std::fmt;

/// One line of the matrix: a region and who may do what to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Number of the region.
    pub region: u64,
    /// Its offset in every window.
    pub offset: u32,
    /// Its length.
    pub len: u64,
    /// Name of the domain that owns it; `None`: the host.
    pub owner: Option<String>,
    /// Names and rights of the domains that have any, in the order in which they became known.
    pub rights: Vec<(String, Rights)>,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owner = self.owner.as_deref().unwrap_or("host");
        write!(
            f,
            "region {} at {:#010x}, {} bytes, of {owner}:",
            self.region, self.offset, self.len
        )?;
        if self.rights.is_empty() {
            write!(f, " nobody")?;
        }
        for (name, rights) in &self.rights {
            write!(f, " {name}={}", if *rights == Rights::Write { "rw" } else { "r" })?;
        }
        Ok(())
    }
}

/// Who may do what to which region, in the whole process, at this moment.
#[must_use]
pub fn matrix() -> Vec<Row> {
    let state = lock();
    let name = |id: DomainId| match state.domains.get(&id) {
        Some(known) => format!("{}#{}", known.name, id.0),
        None => format!("#{}", id.0),
    };
    let row = |id: RegionId| {
        let backing = state.regions.get(&id)?;
        Some(Row {
            region: id.0,
            offset: backing.offset,
            len: backing.len,
            owner: match state.matrix.owner(id) {
                Ok(Party::Domain(d)) => Some(name(d)),
                _ => None,
            },
            rights: state
                .matrix
                .domains_of(id)
                .into_iter()
                .map(|(d, r)| (name(d), r))
                .collect(),
        })
    };
    state.matrix.regions().filter_map(row).collect()
}

/// The region with this number, if the host still holds it or a domain owns it.
#[must_use]
pub fn region(number: u64) -> Option<Region> {
    lock()
        .regions
        .get(&RegionId(number))?
        .handle
        .upgrade()
        .map(Region)
}
