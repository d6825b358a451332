//! Functions and variables of modules that were added.

use crate::domain::family::Added;
use crate::domain::{Domain, Entry, Inner};
use crate::lanes::world;
use crate::load::module::ExportKind;
use ringfence_core::error::DomainError;
use std::sync::Arc;

impl Inner {
    pub(super) fn find_added<T>(&self, mut look: impl FnMut(&Arc<Added>) -> Option<T>) -> Option<T> {
        let _world = world::lock()?;
        self.family().live().find_map(|m| look(&m.added))
    }
}

impl Domain {
    pub(super) fn entry_of_added(&self, added: &Added, offset: u32) -> Entry {
        let address = self.0.base() + u64::from(added.placed.offset) + u64::from(offset);
        Entry {
            domain: self.clone(),
            target: added.handles.target_locked(&self.0, address, 0),
            handles: Some(added.handles.clone()),
        }
    }

    /// The function that one of the modules has under a name.
    pub(in crate::domain) fn entry_in_added(&self, name: &str) -> Option<Result<Entry, DomainError>> {
        self.0.find_added(|added| self.export_of(added, name))
    }

    pub(super) fn export_of(&self, added: &Added, name: &str) -> Option<Result<Entry, DomainError>> {
        let (kind, offset) = added.export(name)?;
        let callable = kind == ExportKind::Function && added.placed.module.0.is_entry(offset);
        Some(if callable {
            Ok(self.entry_of_added(added, offset))
        } else {
            Err(DomainError::NotFunction { name: name.into() })
        })
    }

    /// The function that starts at `address`.
    pub(in crate::domain) fn added_at(&self, address: u64) -> Option<Entry> {
        let offset = u32::try_from(address.wrapping_sub(self.0.base())).ok()?;
        self.0.find_added(|added| {
            let inside = added.inside(offset)?;
            let known = added.placed.module.0.is_entry(inside);
            known.then(|| self.entry_of_added(added, inside))
        })
    }

    /// Finds a function of a module that was [added](Self::add).
    ///
    /// # Errors
    /// [`DomainError::NoModule`], [`DomainError::NoExport`], [`DomainError::NotFunction`].
    pub fn entry_in(&self, module: &str, name: &str) -> Result<Entry, DomainError> {
        let none = || DomainError::NoModule { name: module.into() };
        let _world = world::lock().ok_or_else(none)?;
        let family = self.0.family();
        let member = family.live().find(|m| m.name == module).ok_or_else(none)?;
        self.export_of(&member.added, name)
            .unwrap_or_else(|| Err(DomainError::NoExport { name: name.into() }))
    }

    /// Names of the modules that were added, in the order in which they came.
    #[must_use]
    pub fn added_names(&self) -> Vec<String> {
        let _world = world::lock_plain();
        self.0.family().live().map(|m| m.name.clone()).collect()
    }
}

impl Inner {
    /// Address of an exported variable or function: of a module that was [added](Domain::add) under the name `module`, or of
    /// any module, those that the domain was made of first.
    pub(crate) fn symbol(&self, module: Option<&str>, name: &str) -> Option<u64> {
        if module.is_none()
            && let Some(found) = self.find(name)
        {
            return (found.1 != ExportKind::ThreadLocal).then_some(found.0);
        }
        let _world = world::lock()?;
        let family = self.family();
        family
            .live()
            .filter(|m| module.is_none_or(|module| m.name == module))
            .find_map(|m| {
                let (kind, offset) = m.added.export(name)?;
                let address = self.base() + u64::from(m.added.placed.offset) + u64::from(offset);
                (kind != ExportKind::ThreadLocal).then_some(address)
            })
    }
}
