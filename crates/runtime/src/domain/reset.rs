//! Back to the beginning: resets, and the snapshots that they may return to.

use super::{Domain, Inner};
use crate::DomainOptions;
use crate::domain::imports::Imports;
use crate::domain::limits::LimitHit;
use crate::domain::regions;
use crate::domain::snapshot::{Area, Frozen, Kind, SnapshotError};
use crate::lanes::gate;
use crate::lanes::lane::{Lane, attention};
use crate::lanes::set::LaneSet;
use crate::lanes::{watchdog, world};
use crate::load::module::{ExportKind, Module};
use crate::os::looks::Looks;
use crate::os::sys::{self, View};
use crate::os::{guarded, pages, reserve};
use crate::words::Attached;
use ringfence_core::KeptFile;
use ringfence_core::error::{DomainError, HostError};
use ringfence_isa::window;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a domain may have that came from elsewhere.
struct Foreign {
    regions: bool,
    code: bool,
    modules: bool,
}

impl Inner {
    /// Keeps everybody out, if nobody is in, until the world is unlocked. Calls in progress do not notice.
    fn close(&self, set: &LaneSet) -> Result<(), DomainError> {
        // First nobody can enter, then nobody is in.
        let me = gate::thread_pointer();
        let mut others = false;
        for &lane in &set.lanes {
            // SAFETY: lanes in the list are this domain's.
            let lane: &Lane = unsafe { &*lane };
            lane.attention.fetch_or(attention::HOLD, Ordering::AcqRel);
            others |= lane.thread.load(Ordering::Relaxed) != me;
        }
        // A thread sees its own bits, and a new one makes its lane when the world is unlocked: nobody else has to be interrupted.
        if others {
            watchdog::barrier();
        }
        let busy = set
            .lanes
            .iter()
            // SAFETY: as above.
            .filter(|l| unsafe { (***l).active() && (***l).poisoned.load(Ordering::Acquire) == 0 });
        let lanes = busy.count();
        if lanes == 0 {
            return Ok(());
        }
        Err(DomainError::Busy { lanes })
    }

    /// Lets threads in again, once they have looked at their targets again: the code behind these may have been removed since. The
    /// watchdog may set `WAKE` at any moment, and a call that does not find it goes the fast way.
    fn open(&self, set: &LaneSet) {
        let stays = attention::LOOK
            | attention::WAKE
            | attention::RESERVE_OPEN
            | attention::COUNTED
            | attention::PAUSED;
        for &lane in &set.lanes {
            // SAFETY: lanes in the list are this domain's.
            let lane: &Lane = unsafe { &*lane };
            lane.attention.fetch_or(attention::LOOK, Ordering::AcqRel);
            lane.attention.fetch_and(stays, Ordering::AcqRel);
        }
    }

    /// What a reset returns to, if it is not the pristine image.
    pub(super) fn initial(&self) -> Option<Arc<Frozen>> {
        self.initial.lock().clone()
    }

    /// Fills the zeroed thread block of a berth from the snapshot that the domain started from, if that has it.
    pub(super) fn copy_thread_block(&self, start: u64) -> bool {
        let Some(frozen) = self.initial() else {
            return false;
        };
        let offset = (start - self.base()) as u32;
        let Some(area) = frozen
            .areas
            .iter()
            .find(|a| a.kind == Kind::Thread && a.offset == offset)
        else {
            return false;
        };
        let bytes = frozen.bytes(area, offset, area.len as usize);
        // SAFETY: the lane's own pages, which are mapped writable and as long as every thread block of this domain.
        unsafe {
            let _ = guarded::copy(start as *mut u8, bytes.as_ptr(), bytes.len());
            frozen.relocate(offset, area.len, self.base());
        }
        true
    }

    /// Writable data of all modules, as offsets in the window.
    fn data(&self) -> Vec<(u32, u32)> {
        self.layout
            .placed
            .iter()
            .flat_map(super::image::data_of)
            .collect()
    }

    /// What the domain has that no snapshot holds. With the world locked.
    fn foreign(&self, regions: bool) -> Foreign {
        Foreign {
            regions,
            code: self.has_code(),
            modules: self.has_added(),
        }
    }

    /// Takes a snapshot of the domain. Nobody is in it.
    fn freeze(&self, set: &LaneSet, foreign: &Foreign) -> Result<Frozen, SnapshotError> {
        if self.faulted() {
            return Err(SnapshotError::Faulted);
        }
        if set.next > 1 || !set.lost.is_empty() {
            return Err(SnapshotError::Lanes { count: set.next });
        }
        if foreign.regions {
            return Err(SnapshotError::Regions);
        }
        if foreign.code {
            return Err(SnapshotError::Held("code that was added to it".into()));
        }
        if foreign.modules {
            return Err(SnapshotError::Held("modules that were added to it".into()));
        }
        if self.words.as_ref().is_some_and(Attached::has_blocks) {
            return Err(SnapshotError::Held("objects of its checked heap".into()));
        }
        if self.memory().has_files() {
            return Err(SnapshotError::Held("maps of files".into()));
        }
        if let Some(held) = self.policy.holds() {
            return Err(SnapshotError::Held(held));
        }
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let heap = self.memory().state()?;
        let mut areas: Vec<Area> = Vec::new();
        let mut file = 0;
        let mut add = |kind, offset, len, rights| {
            areas.push(Area {
                kind,
                offset,
                len,
                rights,
                file,
            });
            file += u64::from(len);
        };
        for (start, end) in self.data() {
            add(Kind::Data, start, end - start, rw);
        }
        for (at, len, rights) in heap.list() {
            add(Kind::Heap, at, len, rights);
        }
        if set.next == 1 && set.empty.is_empty() {
            add(Kind::Thread, window::LANES, self.thread_area() as u32, rw);
        }
        let base = self.base();
        // What the domain has made inaccessible has contents too.
        let hidden = |a: &&Area| a.rights & libc::PROT_READ == 0;
        for a in areas.iter().filter(hidden) {
            // SAFETY: a piece of the heap; nobody is in the domain.
            unsafe { sys::protect(base + u64::from(a.offset), a.len.into(), libc::PROT_READ)? };
        }
        let file = sys::sealed_file(c"ringfence-snapshot", file.max(sys::PAGE as u64), |to| {
            for a in &areas {
                // SAFETY: mapped, readable now, and nobody is in the domain.
                let from = unsafe {
                    std::slice::from_raw_parts((base + u64::from(a.offset)) as *const u8, a.len as usize)
                };
                let to = &mut to[a.file as usize..a.file as usize + a.len as usize];
                for (to, from) in to.chunks_exact_mut(sys::PAGE).zip(from.chunks_exact(sys::PAGE)) {
                    // Pages of zeroes stay holes of the file.
                    if from.iter().any(|&b| b != 0) {
                        to.copy_from_slice(from);
                    }
                }
            }
        });
        for a in areas.iter().filter(hidden) {
            // SAFETY: as above.
            unsafe { sys::protect(base + u64::from(a.offset), a.len.into(), a.rights)? };
        }
        let file = file?;
        let len = areas
            .iter()
            .map(|a| u64::from(a.len))
            .sum::<u64>()
            .max(sys::PAGE as u64);
        let file = KeptFile::new(file)?;
        let view = View::new(file.get()?, 0, len)?;
        Ok(Frozen {
            base,
            areas,
            file,
            view,
            heap,
            moves: None,
        })
    }

    /// Maps a snapshot over data and heap. Nobody is in the domain.
    fn map_frozen(&self, frozen: &Frozen) -> Result<(), HostError> {
        for area in &frozen.areas {
            if area.kind != Kind::Thread {
                self.map_area(frozen, area)?;
            }
        }
        self.memory().adopt(&frozen.heap)
    }

    fn map_area(&self, frozen: &Frozen, area: &Area) -> Result<(), HostError> {
        let (at, rw) = (
            self.base() + u64::from(area.offset),
            libc::PROT_READ | libc::PROT_WRITE,
        );
        // SAFETY: data or heap of a window that nobody is in.
        unsafe {
            sys::map_file(at, area.len.into(), rw, frozen.file.get()?, area.file)?;
            frozen.relocate(area.offset, area.len, self.base());
            if area.rights != rw {
                sys::protect(at, area.len.into(), area.rights)?;
            }
        }
        Ok(())
    }

    /// Puts data and heap back to a snapshot that is mapped.
    pub(super) fn restore_frozen(&self, frozen: &Frozen, looks: &mut Looks) -> Result<(), HostError> {
        let mut memory = self.memory();
        let intact = memory.keep_only(&frozen.heap)?;
        for area in &frozen.areas {
            let writable = area.rights & libc::PROT_WRITE != 0;
            match area.kind {
                Kind::Thread => continue,
                Kind::Heap if !intact => self.map_area(frozen, area)?,
                // Nobody could write it.
                Kind::Heap if !writable => continue,
                Kind::Data | Kind::Heap => self.restore_area(frozen, area, looks)?,
            }
        }
        memory.adopt(&frozen.heap)
    }

    fn restore_area(&self, frozen: &Frozen, area: &Area, looks: &mut Looks) -> Result<(), HostError> {
        let start = self.base() + u64::from(area.offset);
        let mut ranges = pages::Ranges::none();
        let Some(own) = looks.own(start, start + u64::from(area.len), &mut ranges) else {
            // SAFETY: nobody is in the domain; what is dropped is the file's again.
            unsafe {
                sys::drop_to_file(start, area.len.into(), &frozen.file, area.file, area.len.into())?;
                frozen.relocate(area.offset, area.len, self.base());
            }
            return Ok(());
        };
        for (from, to) in own.iter() {
            let (offset, len) = ((from - self.base()) as u32, (to - from) as usize);
            let bytes = frozen.bytes(area, offset, len);
            // SAFETY: writable pages of the domain, in which nobody is.
            unsafe {
                std::ptr::copy_nonoverlapping(bytes.as_ptr(), from as *mut u8, len);
                frozen.relocate(offset, len as u32, self.base());
            }
        }
        Ok(())
    }
}

impl Domain {
    /// Restores the initial state: data, heap, stacks. That is the pristine image, and constructors run again; or what
    /// [`checkpoint`](Self::checkpoint) or the [`Snapshot`](crate::Snapshot) of the domain has. Host allocations made since are gone, and so are
    /// added code and added modules.
    ///
    /// # Errors
    /// [`DomainError::Busy`] while calls are in progress; [`DomainError::Faults`] if it has faulted too often.
    pub fn reset(&self) -> Result<(), DomainError> {
        self.reset_for(false)
    }

    /// Resets; `pooled`: for the next user of a pool.
    pub(super) fn reset_for(&self, pooled: bool) -> Result<(), DomainError> {
        reserve::ready()?;
        let inner = &*self.0;
        let faults = inner.faults.load(Ordering::Relaxed);
        let limit = inner.fault_limit.load(Ordering::Relaxed);
        if faults >= limit {
            match inner.tell_limit(&LimitHit::Faults { faults, limit }) {
                Some(to) if to > faults => inner.fault_limit.fetch_max(to, Ordering::Relaxed),
                _ => return Err(DomainError::Faults { faults, limit }),
            };
        }
        let initial = inner.initial();
        {
            let mut world = world::lock_plain();
            let set = inner.lanes();
            inner.close(&set)?;
            // SAFETY: lanes in the list are this domain's.
            let disorder = |l: &*mut Lane| unsafe { (**l).poisoned.load(Ordering::Acquire) != 0 };
            let disordered = set.lanes.iter().any(disorder);
            inner.policy.reset();
            inner.memory().set_limit(inner.options.memory_limit);
            if pooled {
                inner
                    .lanes
                    .call_credit
                    .renew(inner.options.call_limit, set.credits());
                inner.max_lanes.store(inner.options.max_lanes, Ordering::Relaxed);
            }
            drop(set);
            // Before anything is restored: whoever holds something of the old state must not use it on the new one.
            inner.resets.fetch_add(1, Ordering::AcqRel);
            inner.remove_all_code(&mut world)?;
            inner.remove_all(&mut world, disordered)?;
            inner.words.iter().for_each(Attached::reset_heap);
            let mut looks = inner.looks.lock();
            looks.begin();
            match &initial {
                None => super::image::restore(inner, &mut looks, pooled)?,
                Some(frozen) => inner.restore_frozen(frozen, &mut looks)?,
            }
            // The same lanes: new ones are made with the world locked only.
            let mut set = inner.lanes();
            let poisoned: Vec<*mut Lane> = set.lanes.iter().copied().filter(disorder).collect();
            for lane in poisoned {
                inner.lanes.remove(&mut set, lane);
                // SAFETY: as above.
                let lost: &Lane = unsafe { &*lane };
                set.lost.push(lost.berth);
                set.calls += lost.calls();
                inner.lanes.call_credit.take_back(&lost.credit);
                // SAFETY: the frames on this lane are never returned to: the domain has faulted since. The control
                // stack is not given back, because the lane's thread may still be between two checks.
                unsafe { world::revoke(&mut world, inner.index, lane) };
            }
            // All of the window is the domain's to read: stacks that nobody uses too.
            for berth in set.free.iter().chain(&set.lost) {
                inner.refresh(berth, Some(&mut looks))?;
            }
            for &lane in &set.lanes {
                // SAFETY: nobody is in the lane.
                unsafe {
                    inner.refresh(&(*lane).berth, Some(&mut looks))?;
                    (*lane).rewind();
                }
            }
            inner.lanes.first.forget();
            inner.faulted.store(false, Ordering::Release);
            inner.open(&set);
        }
        if initial.is_some() {
            return Ok(());
        }
        self.construct(None)
    }

    /// Makes the present state the one that [`reset`](Self::reset) returns to: data, heap, and the thread-local variables of
    /// the thread that has been in the domain. Exact, whatever the state depends on, because the domain stays in its window.
    /// Pages that are not written from now on take no memory of their own.
    ///
    /// # Errors
    /// [`SnapshotError`]: refused are domains with calls in progress, a fault, several threads, rights to regions, open descriptors.
    pub fn checkpoint(&self) -> Result<(), SnapshotError> {
        reserve::ready()?;
        let inner = &*self.0;
        let regions = regions::has_rights(inner.base());
        let _world = world::lock_plain();
        inner.looks.lock().forget();
        let foreign = inner.foreign(regions);
        let set = inner.lanes();
        inner.close(&set)?;
        let taken = inner.freeze(&set, &foreign).and_then(|frozen| {
            inner.map_frozen(&frozen)?;
            Ok(frozen)
        });
        if !inner.faulted() {
            inner.open(&set);
        }
        *inner.initial.lock() = Some(Arc::new(taken?));
        Ok(())
    }

    /// A snapshot of the present state.
    pub(crate) fn capture(&self) -> Result<Frozen, SnapshotError> {
        let inner = &*self.0;
        let regions = regions::has_rights(inner.base());
        let _world = world::lock_plain();
        let foreign = inner.foreign(regions);
        let set = inner.lanes();
        inner.close(&set)?;
        let taken = inner.freeze(&set, &foreign);
        if !inner.faulted() {
            inner.open(&set);
        }
        taken
    }

    /// A domain whose constructors have not run.
    pub(crate) fn bare(
        modules: &[Module],
        imports: Imports,
        options: &DomainOptions,
    ) -> Result<Domain, DomainError> {
        Self::prepare(modules, imports, options)
    }

    /// Starts a bare domain from a snapshot.
    pub(crate) fn become_snapshot(&self, frozen: &Arc<Frozen>) -> Result<(), SnapshotError> {
        let inner = &*self.0;
        if frozen.moves.is_none() && frozen.base != inner.base() {
            return Err(SnapshotError::Fixed);
        }
        inner.map_frozen(frozen)?;
        *inner.initial.lock() = Some(frozen.clone());
        Ok(())
    }

    pub(crate) fn modules(&self) -> Vec<Module> {
        self.0.layout.placed.iter().map(|p| p.module.clone()).collect()
    }

    pub(crate) fn options(&self) -> &DomainOptions {
        &self.0.options
    }

    /// The names of the imports, in the order of their stubs.
    pub(crate) fn import_names(&self) -> Vec<String> {
        self.0.used.iter().map(|used| used.name.clone()).collect()
    }

    /// The exported object before an offset in the window.
    pub(crate) fn object_at(&self, offset: u32) -> Option<String> {
        let of = |p: &crate::domain::relocate::Placed| {
            let inner = &p.module.0;
            let within = offset
                .checked_sub(p.offset)
                .filter(|&o| o < inner.parsed.image_len)?;
            let objects = inner
                .exports
                .iter()
                .filter(|e| e.kind == ExportKind::Object && e.offset <= within);
            objects.max_by_key(|e| e.offset).map(|e| e.name.clone())
        };
        self.0.layout.placed.iter().find_map(of)
    }
}
