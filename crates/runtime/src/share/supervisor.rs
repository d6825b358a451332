//! The supervisor: memory that several domains share, each with its own rights.
//!
//! [`rights`](crate::share::rights) decides; this module brings the mappings of all windows into line with what was decided. A
//! region is a sealed memory file that is mapped at one offset in every window that has rights to it, so a pointer into it
//! differs between domains by their windows' bases only. Read-only mappings are made from a read-only descriptor: no
//! change of rights can make them writable.
//!
//! Everything happens under one lock, which no call into a domain takes. Rights change while domains run: the kernel
//! replaces a mapping at once for all threads, and a thread that used it meanwhile faults.

use crate::domain::{DomainRef, fork as fork_of_domains, regions};
use crate::lanes::signal;
use crate::os::lock::{Lock, Locked, Rank};
use crate::os::{guarded, host, sys};
use crate::share::rights::{Change, DomainId, Grantee, Matrix, Party, RegionId, Rights, RightsError};
use ringfence_core::KeptFile;
use ringfence_core::error::{HostError, MemoryError};
use ringfence_core::{Elsewhere, Unsupported};
use ringfence_isa::{PAGE, window};
use std::collections::BTreeMap;
use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, LazyLock, Weak};

mod files;
mod fork;
mod group;
mod report;

use files::{map_shared, memory_file, read_only, seal};
use fork::at_fork;
pub use group::Group;
pub use report::{GroupRow, Overview, Row, matrix, overview, region};

/// Why an operation on regions or groups failed. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// The domain's back end has no regions.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The rules do not allow it.
    #[error(transparent)]
    Rights(#[from] RightsError),
    /// A region of no or too many bytes.
    #[error("a region of {len} bytes: it must have at least 1 and at most {most}")]
    Size {
        /// What was asked for.
        len: u64,
        /// What can be.
        most: u64,
    },
    /// The part of the windows that is set aside for regions is full, or too scattered.
    #[error(
        "no room for a region of {len} bytes: {used} of {all} bytes of the windows' area for regions are taken"
    )]
    Space {
        /// What was asked for.
        len: u64,
        /// What is taken.
        used: u64,
        /// What there is.
        all: u64,
    },
    /// A donated file can still be made shorter under the domains that map it.
    #[error(
        "a file that becomes a region must be a memory file that allows sealing (MFD_ALLOW_SEALING): {0}"
    )]
    NotSealable(std::io::Error),
    /// A donated file is shorter than the region.
    #[error("the file has {file} bytes, the region {len}")]
    Short {
        /// The file's length.
        file: u64,
        /// The region's.
        len: u64,
    },
    /// A system call failed, or the process has no more room for mappings.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// On whose behalf something is asked for.
#[derive(Clone, Copy)]
pub enum Actor<'a> {
    /// The host program itself.
    Host,
    /// A domain; a host function that acts for one says so here, and the rules for domains hold.
    Domain(DomainRef<'a>),
}

/// Who gets rights.
#[derive(Clone, Copy)]
pub enum Recipient<'a> {
    /// One domain.
    Domain(DomainRef<'a>),
    /// All members of a group, present and future.
    Group(&'a Group),
}

struct Backing {
    offset: u32,
    len: u64,
    /// `None` if nobody can have more than to read.
    writable: Option<KeptFile>,
    readable: KeptFile,
    handle: Weak<Held>,
    /// Keeps regions alive that a domain owns.
    _kept: Option<Arc<Held>>,
}

struct Known {
    base: u64,
    name: String,
    /// Who runs it, if that is another process.
    elsewhere: Option<Weak<dyn Elsewhere>>,
}

#[derive(Default)]
struct State {
    matrix: Matrix,
    regions: BTreeMap<RegionId, Backing>,
    domains: BTreeMap<DomainId, Known>,
    by_base: BTreeMap<u64, DomainId>,
    /// What is taken of the windows' area: offset and length.
    space: BTreeMap<u32, u64>,
}

static STATE: LazyLock<Lock<State>> = LazyLock::new(|| {
    regions::keep(regions::Keeper { forget, has_rights });
    Lock::new(Rank::Supervisor, State::default())
});

/// Mappings that one region in one window adds at most: itself and what it splits.
const MAPPINGS: u64 = 2;

fn lock() -> Locked<'static, State> {
    STATE.lock()
}

/// A region, as the host holds it. Clones are the same region. When the last one goes, the region is freed, unless a domain
/// owns it: then it lives as long as that domain.
#[derive(Clone)]
pub struct Region(Arc<Held>);

struct Held {
    id: RegionId,
    offset: u32,
    len: u64,
    /// The host's own view, of `len` rounded up to pages.
    view: u64,
    host_writes: bool,
    freed_by_owner: bool,
}

impl State {
    fn party(&mut self, actor: Actor<'_>) -> Party {
        match actor {
            Actor::Host => Party::Host,
            Actor::Domain(d) => Party::Domain(self.domain(d)),
        }
    }

    /// The number of a domain; its first use makes it known.
    fn domain(&mut self, domain: DomainRef<'_>) -> DomainId {
        let base = domain.base();
        if let Some(&id) = self.by_base.get(&base) {
            return id;
        }
        let id = self.matrix.add_domain();
        self.by_base.insert(base, id);
        self.domains.insert(
            id,
            Known {
                base,
                name: domain.name().to_owned(),
                elsewhere: domain.space().elsewhere(),
            },
        );
        id
    }

    fn grantee(&mut self, to: Recipient<'_>) -> Grantee {
        match to {
            Recipient::Domain(d) => Grantee::Domain(self.domain(d)),
            Recipient::Group(g) => Grantee::Group(g.0.id),
        }
    }

    /// Makes one window agree with one change.
    fn map(&self, change: &Change, rights: Rights) -> Result<(), HostError> {
        let (Some(known), Some(region)) =
            (self.domains.get(&change.domain), self.regions.get(&change.region))
        else {
            return Ok(());
        };
        let at = known.base + u64::from(region.offset);
        let len = sys::page_up(region.len);
        let elsewhere = known.elsewhere.as_ref().and_then(Weak::upgrade);
        let (prot, file) = match (rights, &region.writable) {
            (Rights::None, _) => (libc::PROT_NONE, None),
            (Rights::Write, Some(file)) => (libc::PROT_READ | libc::PROT_WRITE, Some(file)),
            _ => (libc::PROT_READ, Some(&region.readable)),
        };
        let file = file.map(KeptFile::get).transpose()?;
        if file.is_some() && crate::place::window::is_wide(known.base) {
            // Its table of rights is where regions are.
            return Err(HostError::Os {
                what: "mapping a region into a domain that has an arena",
                source: std::io::ErrorKind::Unsupported.into(),
            });
        }
        if let Some(elsewhere) = &elsewhere {
            elsewhere.map_region(at, len, rights, file)?;
        }
        // SAFETY: the area for regions of a window holds nothing else; the file is sealed against shrinking.
        let mapped = unsafe {
            match file {
                None => sys::map_anonymous(at, len, libc::PROT_NONE, true),
                Some(file) => map_shared(at, len, prot, file, true),
            }
        };
        if let (Err(_), Some(elsewhere)) = (&mapped, &elsewhere) {
            // Less than there should be on one side, so on both.
            let _ = elsewhere.map_region(at, len, Rights::None, None);
        }
        mapped.map(drop)
    }

    /// Brings the windows into line. If that fails, those that were changed are put back, and the caller takes its
    /// decision back.
    fn apply(&self, changes: &[Change]) -> Result<(), HostError> {
        for (i, change) in changes.iter().enumerate() {
            let done = match (change.before, change.after) {
                (Rights::None, _) => host::take_mappings(MAPPINGS).and_then(|()| {
                    self.map(change, change.after)
                        .inspect_err(|_| host::give_mappings(MAPPINGS))
                }),
                (_, Rights::None) => self
                    .map(change, change.after)
                    .inspect(|()| host::give_mappings(MAPPINGS)),
                _ => self.map(change, change.after),
            };
            if let Err(e) = done {
                for change in changes[..i].iter().rev() {
                    match (change.before, change.after) {
                        (Rights::None, _) => host::give_mappings(MAPPINGS),
                        (_, Rights::None) => host::take_back_mappings(MAPPINGS),
                        _ => {}
                    }
                    // The mapping was there before this operation: there is room for it.
                    let _ = self.map(change, change.before);
                }
                return Err(e);
            }
        }
        Ok(())
    }

    /// Takes rights away, for callers that cannot take their decision back. A process that has no mappings left cannot
    /// replace one, but it can make one inaccessible: then there is less than there should be, never more.
    fn withdraw(&self, changes: &[Change]) {
        for change in changes {
            if self.apply(std::slice::from_ref(change)).is_ok() {
                continue;
            }
            let place = self
                .domains
                .get(&change.domain)
                .zip(self.regions.get(&change.region));
            let Some((known, region)) = place else { continue };
            let (at, len) = (known.base + u64::from(region.offset), sys::page_up(region.len));
            // SAFETY: the region's own mapping in a window, whole: the kernel has nothing to split.
            if unsafe { sys::protect(at, len, libc::PROT_NONE) }.is_err() {
                // Rather no process than a domain that keeps what was taken from it.
                std::process::abort();
            }
            if change.after == Rights::None {
                host::give_mappings(MAPPINGS);
            }
        }
    }

    fn place(&mut self, len: u64) -> Result<u32, RegionError> {
        let (start, end) = (u64::from(window::REGIONS), u64::from(window::REGIONS_END));
        // An inaccessible page between neighbours: an overrun of one is no access to the next.
        let wanted = sys::page_up(len) + PAGE;
        let mut at = start;
        for (&taken, &size) in &self.space {
            if at + wanted <= u64::from(taken) {
                break;
            }
            at = u64::from(taken) + size;
        }
        if at + wanted > end {
            let used = self.space.values().sum();
            return Err(RegionError::Space {
                len,
                used,
                all: end - start,
            });
        }
        self.space.insert(at as u32, wanted);
        Ok(at as u32)
    }

    /// In a forked child, whose windows have been emptied.
    fn revoke_all(&mut self) {
        for id in self.domains.keys() {
            // Regions and groups of a domain go with it; the domain becomes known again when it is next named. What the
            // regions keep alive is left to lie: freeing it here could want the lock.
            if let Ok((freed, _)) = self.matrix.remove_domain(*id) {
                for region in freed {
                    std::mem::forget(self.regions.remove(&region));
                }
            }
        }
        self.domains.clear();
        self.by_base.clear();
    }

    fn drop_region(&mut self, id: RegionId) -> Option<Backing> {
        let backing = self.regions.remove(&id)?;
        self.space.remove(&backing.offset);
        Some(backing)
    }
}

impl Region {
    /// New zeroed memory that the host owns.
    ///
    /// # Errors
    /// [`RegionError`].
    pub fn new(len: u64) -> Result<Region, RegionError> {
        Self::make(Actor::Host, len, None, Rights::Write)
    }

    /// New zeroed memory that `owner` owns: mapped there with all rights, given away by it, gone with it.
    ///
    /// # Errors
    /// [`RegionError`].
    pub fn owned_by<'a>(owner: impl Into<DomainRef<'a>>, len: u64) -> Result<Region, RegionError> {
        Self::make(Actor::Domain(owner.into()), len, None, Rights::Write)
    }

    /// The first `len` bytes of a memory file that the host gives. It is sealed against shrinking. Nobody gets more than
    /// `most`; the host can write if the descriptor can and `most` is [`Rights::Write`].
    ///
    /// # Errors
    /// [`RegionError::NotSealable`], [`RegionError::Short`], and the others.
    pub fn from_file(file: OwnedFd, len: u64, most: Rights) -> Result<Region, RegionError> {
        seal(&file).map_err(RegionError::NotSealable)?;
        // SAFETY: all zeroes is a valid `stat`.
        let mut stat: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: the descriptor is open.
        if unsafe { libc::fstat(file.as_raw_fd(), &raw mut stat) } != 0 {
            return Err(HostError::last("asking for a file's length").into());
        }
        let has = stat.st_size as u64;
        // Whole pages: what lies behind the end of a file in its last page is shared too.
        if has < sys::page_up(len) {
            return Err(RegionError::Short { file: has, len });
        }
        Self::make(Actor::Host, len, Some(file), most)
    }

    fn make(owner: Actor<'_>, len: u64, file: Option<OwnedFd>, most: Rights) -> Result<Region, RegionError> {
        let area = u64::from(window::REGIONS_END - window::REGIONS);
        if len == 0 || len > area - PAGE {
            return Err(RegionError::Size {
                len,
                most: area - PAGE,
            });
        }
        host::begin()?;
        fork_of_domains::install()?;
        signal::install()?;
        at_fork()?;
        let (file, kept): (_, fn(OwnedFd) -> _) = match file {
            Some(file) => (file, KeptFile::of_others),
            None => {
                let file = memory_file(len)?;
                seal(&file).map_err(RegionError::NotSealable)?;
                (file, KeptFile::new)
            }
        };
        let readable = KeptFile::new(read_only(&file)?)?;
        let file = kept(file)?;
        let host_writes = most == Rights::Write;
        let shown = if host_writes { file.get()? } else { readable.get()? };
        let prot = if host_writes {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        host::take_mappings(1)?;
        // SAFETY: a fresh mapping at an address the kernel chooses.
        let view = unsafe { map_shared(0, sys::page_up(len), prot, shown, false) }
            .inspect_err(|_| host::give_mappings(1))?;
        // Unmapped again, and the offset given back, if anything fails from here on.
        let mut held = Held {
            id: RegionId(0),
            offset: 0,
            len,
            view,
            host_writes,
            freed_by_owner: true,
        };
        let mut state = lock();
        let party = state.party(owner);
        let offset = match state.place(len) {
            Ok(offset) => offset,
            Err(e) => {
                drop(state);
                return Err(e);
            }
        };
        let (id, changes) = match state.matrix.add_region(party, most) {
            Ok(added) => added,
            Err(e) => {
                state.space.remove(&offset);
                drop(state);
                return Err(e.into());
            }
        };
        held.id = id;
        held.offset = offset;
        held.freed_by_owner = party != Party::Host;
        let held = Arc::new(held);
        let backing = Backing {
            offset,
            len,
            writable: host_writes.then_some(file),
            readable,
            handle: Arc::downgrade(&held),
            _kept: held.freed_by_owner.then(|| held.clone()),
        };
        state.regions.insert(id, backing);
        if let Err(e) = state.apply(&changes) {
            let _ = state.matrix.free(Party::Host, id);
            let backing = state.drop_region(id);
            drop(state);
            drop(backing);
            return Err(e.into());
        }
        Ok(Region(held))
    }

    /// Its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// Always false: there are no empty regions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Its offset, the same in every window.
    #[must_use]
    pub fn offset(&self) -> u32 {
        self.0.offset
    }

    /// Its address in a domain's window, whether the domain has rights to it or not.
    #[must_use]
    pub fn address_in(&self, domain: DomainRef<'_>) -> u64 {
        domain.base() + u64::from(self.0.offset)
    }

    /// Sets what `to` is given to this region, at once, also while domains run; [`Rights::None`] takes it back.
    ///
    /// # Errors
    /// [`RightsError`] as [`RegionError::Rights`], if `actor` may not; [`RegionError::Host`] when mappings run out.
    pub fn give(&self, actor: Actor<'_>, to: Recipient<'_>, rights: Rights) -> Result<(), RegionError> {
        let mut state = lock();
        let (party, grantee) = (state.party(actor), state.grantee(to));
        let before = state.matrix.given(self.0.id, grantee);
        let changes = state.matrix.give(party, self.0.id, grantee, rights)?;
        if let Err(e) = state.apply(&changes) {
            let _ = state.matrix.give(Party::Host, self.0.id, grantee, before);
            return Err(e.into());
        }
        Ok(())
    }

    /// What a domain may do to it.
    #[must_use]
    pub fn rights_of<'a>(&self, domain: impl Into<DomainRef<'a>>) -> Rights {
        let state = lock();
        let id = state.by_base.get(&domain.into().base());
        id.map_or(Rights::None, |&id| state.matrix.effective(id, self.0.id))
    }

    /// Takes it from all domains, at the wish of the host or its owner. The host's own view stays until the last handle goes.
    ///
    /// # Errors
    /// [`RightsError::NoRegion`] if it was freed already, [`RightsError::NotOwner`].
    pub fn free(&self, actor: Actor<'_>) -> Result<(), RegionError> {
        let mut state = lock();
        let party = state.party(actor);
        let changes = state.matrix.free(party, self.0.id)?;
        state.withdraw(&changes);
        let backing = state.drop_region(self.0.id);
        // What it keeps may free in turn: not under the lock.
        drop(state);
        drop(backing);
        Ok(())
    }

    fn check(&self, offset: u64, len: usize) -> Result<u64, MemoryError> {
        let len = len as u64;
        if offset <= self.0.len && len <= self.0.len - offset {
            return Ok(self.0.view + offset);
        }
        Err(MemoryError::Outside { address: offset, len })
    }

    /// Copies out of the region. Domains may write it meanwhile: check the copy, not the original.
    ///
    /// # Errors
    /// [`MemoryError::Outside`].
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let from = self.check(offset, to.len())?;
        signal::thread_ready();
        // SAFETY: `to` is ours, the other range lies in our view; faults become a result.
        match unsafe { guarded::copy(to.as_mut_ptr(), from as *const u8, to.len()) } {
            0 => Ok(()),
            _ => Err(MemoryError::Unmapped {
                address: offset,
                len: to.len() as u64,
            }),
        }
    }

    /// Copies into the region.
    ///
    /// # Errors
    /// [`MemoryError::Outside`]; [`MemoryError::Unmapped`] if nobody may write it.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), MemoryError> {
        let to = self.check(offset, from.len())?;
        let denied = MemoryError::Unmapped {
            address: offset,
            len: from.len() as u64,
        };
        if !self.0.host_writes {
            return Err(denied);
        }
        signal::thread_ready();
        // SAFETY: `from` is ours, the other range lies in our view; faults become a result.
        match unsafe { guarded::copy(to as *mut u8, from.as_ptr(), from.len()) } {
            0 => Ok(()),
            _ => Err(denied),
        }
    }

    /// Address of the host's own view, for hosts that use atomics in it. It stays mapped while a handle lives.
    #[must_use]
    pub fn host_address(&self) -> *mut u8 {
        self.0.view as *mut u8
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Region({}, {:#x}+{:#x})",
            self.0.id.0, self.0.offset, self.0.len
        )
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.freed_by_owner {
            let mut state = lock();
            if let Ok(changes) = state.matrix.free(Party::Host, self.id) {
                state.withdraw(&changes);
                state.drop_region(self.id);
            }
        }
        host::give_mappings(1);
        // SAFETY: our own view; every access to it borrows a handle.
        unsafe { libc::munmap(self.view as *mut _, sys::page_up(self.len) as usize) };
    }
}

/// Whether the domain with this window can do anything to a region.
#[must_use]
pub fn has_rights(base: u64) -> bool {
    let state = lock();
    state
        .by_base
        .get(&base)
        .is_some_and(|&id| !state.matrix.regions_of(id).is_empty())
}

/// Another process runs the domain with this window from now on: it gets what the one before had.
///
/// # Errors
/// [`HostError`].
pub fn renew(base: u64) -> Result<(), HostError> {
    let state = lock();
    let Some(&id) = state.by_base.get(&base) else {
        return Ok(());
    };
    for (region, after) in state.matrix.regions_of(id) {
        let change = Change {
            domain: id,
            region,
            before: after,
            after,
        };
        state.map(&change, after)?;
    }
    Ok(())
}

/// A domain goes: its rights, its regions and its groups go with it. Its window is emptied by the caller.
pub fn forget(base: u64) {
    let mut state = lock();
    let Some(id) = state.by_base.remove(&base) else {
        return;
    };
    let mapped = state.matrix.regions_of(id);
    for &(region, before) in &mapped {
        // The window may outlive its owner, if a thread is still inside.
        state.withdraw(&[Change {
            domain: id,
            region,
            before,
            after: Rights::None,
        }]);
    }
    state.domains.remove(&id);
    let Ok((freed, changes)) = state.matrix.remove_domain(id) else {
        return;
    };
    state.withdraw(&changes);
    let backings: Vec<Backing> = freed.into_iter().filter_map(|r| state.drop_region(r)).collect();
    drop(state);
    drop(backings);
}
