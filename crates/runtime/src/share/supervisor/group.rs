//! Groups of domains, as the host holds them.

use super::{Actor, RegionError, lock};
use crate::domain::DomainRef;
use crate::share::rights::{GroupId, Party};
use std::fmt;
use std::sync::Arc;

/// A group of domains. When the last clone goes, the group ends, unless a domain owns it: then it lives as long as that.
#[derive(Clone)]
pub struct Group(pub(super) Arc<HeldGroup>);

pub(super) struct HeldGroup {
    pub id: GroupId,
    ends_with_owner: bool,
}

impl Group {
    /// A group that the host owns. Domains may join an open one by themselves.
    #[must_use]
    pub fn new(open: bool) -> Group {
        let id = lock()
            .matrix
            .add_group(Party::Host, open)
            .expect("the host exists");
        Group(Arc::new(HeldGroup {
            id,
            ends_with_owner: false,
        }))
    }

    /// A group that a domain owns, which decides who is in it.
    ///
    /// # Errors
    /// [`RegionError::Rights`].
    pub fn owned_by<'a>(owner: impl Into<DomainRef<'a>>, open: bool) -> Result<Group, RegionError> {
        let mut state = lock();
        let party = state.party(Actor::Domain(owner.into()));
        let id = state.matrix.add_group(party, open)?;
        Ok(Group(Arc::new(HeldGroup {
            id,
            ends_with_owner: true,
        })))
    }

    /// Lets `domain` in. The host and the owner may do that always, the domain itself if the group is open.
    ///
    /// # Errors
    /// [`RightsError::Closed`] or [`RightsError::NotOwner`] as [`RegionError::Rights`]; [`RegionError::Host`].
    pub fn admit<'a>(&self, actor: Actor<'_>, domain: impl Into<DomainRef<'a>>) -> Result<(), RegionError> {
        let mut state = lock();
        let (party, id) = (state.party(actor), state.domain(domain.into()));
        let was_member = state.matrix.is_member(id, self.0.id);
        let changes = state.matrix.join(party, id, self.0.id)?;
        if let Err(e) = state.apply(&changes) {
            if !was_member {
                let _ = state.matrix.expel(Party::Host, id, self.0.id);
            }
            return Err(e.into());
        }
        Ok(())
    }

    /// Takes `domain` out, at the wish of the host, the owner or the domain itself.
    ///
    /// # Errors
    /// [`RightsError::NotMember`] or [`RightsError::NotOwner`] as [`RegionError::Rights`].
    pub fn expel<'a>(&self, actor: Actor<'_>, domain: impl Into<DomainRef<'a>>) -> Result<(), RegionError> {
        let mut state = lock();
        let (party, id) = (state.party(actor), state.domain(domain.into()));
        let changes = state.matrix.expel(party, id, self.0.id)?;
        state.withdraw(&changes);
        Ok(())
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Group({})", self.0.id.0)
    }
}

impl Drop for HeldGroup {
    fn drop(&mut self) {
        if !self.ends_with_owner {
            let mut state = lock();
            if let Ok(changes) = state.matrix.end_group(Party::Host, self.id) {
                state.withdraw(&changes);
            }
        }
    }
}
