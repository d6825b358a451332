//! Modules that go again: by name, with a reset, with the domain.

use super::{Family, State};
use crate::domain::family::Added;
use crate::domain::quiet::{Grave, may_go};
use crate::domain::relocate::GAP;
use crate::domain::series::Series;
use crate::domain::{Domain, Inner};
use crate::lanes::lane::Lane;
use crate::lanes::world::{self, Guard};
use crate::os::{host, sys};
use ringfence_core::error::{HostError, ModuleError};
use std::sync::Arc;

impl Family {
    /// Takes a module away at a moment in which no other thread is in the domain; `own` is the calling thread's lane.
    pub(super) fn take_out(
        &mut self,
        domain: &Inner,
        index: usize,
        own: Option<&Lane>,
    ) -> Result<(), HostError> {
        let added = self.members[index].added.clone();
        let (at, len) = (added.placed.offset, added.size);
        self.ready(domain)?;
        let address = domain.base() + u64::from(at);
        // SAFETY: the module's own place in our window; nobody is in its code, or comes back to it.
        unsafe { sys::map_anonymous(address, u64::from(len) - GAP, libc::PROT_NONE, true)? };
        added.handles.kill();
        self.members.remove(index);
        self.list(domain);
        domain.added.set(self.members.iter().map(|m| &m.added));
        domain.memory().discharge(added.data);
        host::give_mappings(added.mappings);
        self.tell_status(domain);
        match own {
            Some(lane) => self.graves.push(Grave::new((at, len), lane)),
            None => {
                self.room(domain).give(at, len);
                self.used -= u64::from(len);
            }
        }
        Ok(())
    }

    /// Tries to get rid of modules whose constructors failed.
    pub(super) fn reap(&mut self, domain: &Inner) {
        while let Some(dead) = self.members.iter().position(|m| m.state == State::Dead) {
            let added = self.members[dead].added.clone();
            match may_go(domain, "", |offset| added.returns_to(offset)) {
                Ok(own) if self.take_out(domain, dead, own).is_ok() => {}
                _ => return,
            }
        }
    }
}

impl Inner {
    /// The domain goes: the host's calls fail. How many mappings its modules have.
    pub(in crate::domain) fn kill_added(&mut self) -> u64 {
        let family = self.family.get_mut();
        for member in &family.members {
            member.added.handles.kill();
        }
        family.members.iter().map(|m| m.added.mappings).sum()
    }

    /// Drops all that was added. Nobody is inside, and nobody enters; `poisoned` tells whether threads may still hold
    /// frames on lanes that were left in disorder.
    pub(in crate::domain) fn remove_all(&self, _world: &mut Guard, poisoned: bool) -> Result<(), HostError> {
        let mut family = self.family();
        if family.members.is_empty() && family.graves.is_empty() && family.left.is_empty() {
            return Ok(());
        }
        family.ready(self)?;
        family.hide(self);
        if !family.left.is_empty() {
            return Err(HostError::last("taking back a module's place"));
        }
        for member in &family.members {
            member.added.handles.kill();
        }
        let all: Vec<_> = family.members.iter().map(|m| m.added.clone()).collect();
        for added in &all {
            let address = self.base() + u64::from(added.placed.offset);
            // SAFETY: the module's own place in our window, with nobody inside.
            unsafe { sys::map_anonymous(address, u64::from(added.size) - GAP, libc::PROT_NONE, true)? };
        }
        if poisoned {
            family.retired.push(self.added.take());
        } else {
            self.added.set(std::iter::empty());
        }
        let data = all.iter().map(|added| added.data).sum();
        self.memory().discharge(data);
        host::give_mappings(all.iter().map(|added| added.mappings).sum());
        family.members.clear();
        family.graves.clear();
        (family.room, family.used) = (None, 0);
        family.tell_status(self);
        family.list(self);
        Ok(())
    }
}

impl Domain {
    /// A constructor failed.
    pub(super) fn take_back(&self, added: &Arc<Added>) {
        let inner = &*self.0;
        let Some(_world) = world::lock() else { return };
        let mut family = inner.family();
        let Some(index) = family.index(added) else { return };
        family.members[index].state = State::Dead;
        added.handles.kill();
        family.reap(inner);
    }

    /// Runs the destructors of a module that was added, and takes it away. Calls of its functions fail from then on: the host's
    /// with [`CallError::Removed`], the domain's own like any call to something that is no function.
    ///
    /// Before the destructors run, and again after them, it needs a moment in which no other thread is in the domain, waits for it
    /// at most 100 µs, and lets nobody enter meanwhile. The calling thread may itself be in a host function that the
    /// domain called.
    ///
    /// # Errors
    /// [`ModuleError`]; nothing has changed then, except as [`ModuleError::InUse`] and [`ModuleError::Fini`] say.
    pub fn remove(&self, name: &str) -> Result<(), ModuleError> {
        let inner = &*self.0;
        let own = || name.to_string();
        let added = {
            let _world = world::lock().ok_or(ModuleError::Handler)?;
            let mut family = inner.family();
            let member = family
                .named(name)
                .ok_or_else(|| ModuleError::Unknown { name: own() })?;
            if member.state != State::Live {
                return Err(ModuleError::Changing { name: own() });
            }
            if inner.faulted() {
                return Err(ModuleError::Faulted);
            }
            let added = member.added.clone();
            let mut others = family.members.iter();
            if let Some(by) = others.find(|m| m.added.needs.contains(&added.placed.offset)) {
                return Err(ModuleError::Needed {
                    name: own(),
                    by: by.name.clone(),
                });
            }
            family.reap(inner);
            family.bury(inner);
            let index = family.index(&added).expect("found above");
            if added.to_end().next().is_none() {
                return self.take_away(&mut family, index, name);
            }
            self.may_go(&added, name)?;
            family.members[index].state = State::Leaving;
            added
        };
        let ended = self.end_added(&added, &Series::new(self));
        let _world = world::lock().ok_or(ModuleError::Handler)?;
        let mut family = inner.family();
        let Some(index) = family.index(&added) else {
            // A reset came in between.
            return Ok(());
        };
        family.members[index].state = State::Live;
        ended.map_err(|source| ModuleError::Fini {
            name: own(),
            source: Box::new(source),
        })?;
        self.take_away(&mut family, index, name)
    }

    /// Whether a module can go now: the calling thread's lane if it has one.
    pub(super) fn may_go(&self, added: &Added, name: &str) -> Result<Option<&Lane>, ModuleError> {
        let inner = &*self.0;
        Ok(may_go(inner, name, |offset| added.returns_to(offset))?)
    }

    pub(super) fn take_away(&self, family: &mut Family, index: usize, name: &str) -> Result<(), ModuleError> {
        let own = self.may_go(&family.members[index].added.clone(), name)?;
        Ok(family.take_out(&self.0, index, own)?)
    }
}
