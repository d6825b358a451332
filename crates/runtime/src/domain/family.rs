//! A module that was added, and the list of them that gates look at.

use super::handles::Handles;
use crate::domain::relocate::Placed;
use crate::load::module::ExportKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A module that came to a living domain.
pub(crate) struct Added {
    pub placed: Placed,
    /// Bytes of the window that it takes, what is inaccessible behind it included.
    pub size: u32,
    /// Bytes of its writable data.
    pub data: u64,
    pub mappings: u64,
    /// Offsets of the modules that were added before and that it was resolved against.
    pub needs: Vec<u32>,
    /// Whether it can learn how its calls of other domains went.
    pub asks_call_status: bool,
    pub handles: Arc<Handles>,
    /// How many of its destructors have run.
    pub ended: AtomicUsize,
}

impl Added {
    /// An offset of the window as one in the image.
    pub(super) fn inside(&self, offset: u32) -> Option<u32> {
        self.placed.inside(offset.into())
    }

    /// Whether an offset of the window may be a return address into the module. A pointer to a function of it is none.
    pub(super) fn returns_to(&self, offset: u64) -> bool {
        let Some(inside) = u32::try_from(offset).ok().and_then(|o| self.inside(o)) else {
            return false;
        };
        let image = &self.placed.module.0;
        image.parsed.loads[image.parsed.text].contains(inside.into(), 1) && !image.is_entry(inside)
    }

    /// Destructors that have not run, in the order in which they do: the last of the array first.
    pub(super) fn to_end(&self) -> impl Iterator<Item = u32> + '_ {
        let all = self.placed.module.0.parsed.destructors.iter();
        all.rev().skip(self.ended.load(Ordering::Relaxed)).copied()
    }

    pub(super) fn export(&self, name: &str) -> Option<(ExportKind, u32)> {
        let image = &self.placed.module.0;
        let export = image.export(name)?;
        Some((export.kind, export.offset))
    }
}

struct Node {
    added: Arc<Added>,
    next: *mut Node,
}

/// All modules that were added, the last first. Threads in the domain read it without a lock; it is changed with the world locked,
/// and nothing is taken out of it while another thread is in the domain.
#[derive(Default)]
pub(crate) struct Chain(AtomicPtr<Node>);

// SAFETY: nodes do not change once they are in, and `Arc<Added>` may be shared.
unsafe impl Send for Chain {}
// SAFETY: as above.
unsafe impl Sync for Chain {}

impl Chain {
    /// With the world locked.
    pub(super) fn push(&self, added: &Arc<Added>) {
        let node = Box::new(Node {
            added: added.clone(),
            next: self.0.load(Ordering::Relaxed),
        });
        self.0.store(Box::into_raw(node), Ordering::Release);
    }

    /// Puts these in, the last of them first, and frees what was in. With the world locked and no other thread in the domain.
    pub(super) fn set<'a>(&self, all: impl Iterator<Item = &'a Arc<Added>>) {
        drop(self.take());
        all.for_each(|added| self.push(added));
    }

    /// Takes out all, for threads that may still look at it. Otherwise as [`set`](Self::set).
    pub(super) fn take(&self) -> Chain {
        Chain(AtomicPtr::new(
            self.0.swap(std::ptr::null_mut(), Ordering::AcqRel),
        ))
    }

    /// What is in.
    ///
    /// # Safety
    /// The calling thread has a call in progress in the domain, or holds the world's lock, until it is done with the result.
    pub(crate) unsafe fn iter(&self) -> impl Iterator<Item = &Placed> {
        let mut at = self.0.load(Ordering::Acquire);
        std::iter::from_fn(move || {
            // SAFETY: nodes are freed only while no thread is in the domain and the world is locked.
            let node = unsafe { at.as_ref()? };
            at = node.next;
            Some(&node.added.placed)
        })
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        let mut at = std::mem::take(self.0.get_mut());
        while !at.is_null() {
            // SAFETY: made by `Box::into_raw`, and ours alone now.
            let node = unsafe { Box::from_raw(at) };
            at = node.next;
        }
    }
}
