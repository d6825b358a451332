//! The words mode: host objects in memory that domains can name by the host's own pointers, and reach as far as a table of rights says.
//!
//! Who may do what is decided in one place, the supervisor (`ringfence_words`); the tables that accesses are tested by are told.

mod calls;
mod copies;
mod fresh;
pub(crate) mod heap;
mod learn;
mod rows;
mod table;
mod tables;
#[cfg(test)]
mod tests;
pub(crate) mod views;

use crate::lanes::settle::settle;
use crate::lanes::touch::Fresh;
use crate::os::lock::{Lock, Rank};
use crate::os::{backed, sys};
use crate::place::room::Room;
pub use calls::Missing;
use heap::Heap;
pub use learn::Learner;
use ringfence_core::error::HostError;
use ringfence_core::{DomainId, Grantee, GroupId, Party, Rights, WordsError};
use ringfence_isa::{window, words};
use ringfence_words::policy::Structure;
use ringfence_words::{Call, Error, Object, Sink, Supervisor, TypeId, Types};
pub use rows::{ArenaRow, WordsGroupRow, WordsOf, arenas};
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use table::{Table, WORD};
use tables::Tables;
use views::View;

/// Objects are at multiples of so many bytes, as long as a vector is.
const GRAIN: u32 = 16;

/// So many bytes at least behind each object are nobody's: no rights lead from one into the next.
const GUARD: u32 = WORD;

/// What blocks of checked heaps are. No type has the number, and nobody but the heap makes or ends such an object: what it knows of its
/// blocks is true. A domain's end ends them with its table.
const BLOCK: TypeId = TypeId(u32::MAX);

/// What an arena's tables and the supervisor's may take, in bytes for one of the arena's.
const TABLES_PER_BYTE: u64 = 16;
/// What they may always take.
const TABLES_LEAST: u64 = 64 << 20;

/// Memory of the host's for objects that domains of the words mode may be given rights to, word for word.
///
/// Its addresses are the host's own, and mean the same to every domain that was made with this arena
/// ([`Imports::arena`](crate::Imports::arena)): a pointer goes to a module as it is, and so do pointers inside objects. A domain begins without any
/// rights; [`give`](Self::give) gives them. All of it can be used from any thread. What domains may write changes under the host's
/// hands, so it is for plain data that is read with care.
///
/// Where rights are taken away, the access that a thread was about to make is over when the operation is: threads inside are asked. Should one
/// not answer for a tenth of a second, the operation has been done, and fails with [`WordsError::Inside`].
#[derive(Clone)]
pub struct Arena(Arc<Shared>);

/// No descriptor is kept: a host that closes what is not its own, and opens other files, changes nothing here.
struct Shared {
    /// Its first address, congruent with [`words::ARENA`] modulo 4 GiB.
    host: u64,
    len: u32,
    /// What tables may take, and all else that grows with what is done.
    limit: u64,
    /// Whether domains that are made with it have checked heaps.
    checks: AtomicBool,
    state: Lock<State>,
}

struct State {
    free: Room,
    words: Supervisor<Tables>,
    types: Types,
    domains: u64,
    /// Names of those that are there.
    names: BTreeMap<DomainId, String>,
    /// Places of objects that are gone, in which a thread may still make an access; and the windows whose threads.
    limbo: Vec<(Range<u32>, Vec<u64>)>,
}

/// The place of an object: a multiple of [`GRAIN`] in bytes, of which some are behind it.
fn place(words: &Range<u32>) -> Range<u32> {
    let end = (words.end * WORD + GUARD).next_multiple_of(GRAIN);
    words.start * WORD..end
}

impl Arena {
    /// An arena for up to `len` bytes of objects, at most 490 MiB. Memory that is not used takes none.
    ///
    /// # Errors
    /// [`WordsError::Length`], or [`WordsError::Host`] if the system refuses.
    ///
    /// # Examples
    /// ```no_run
    /// use ringfence_runtime::{Arena, Domain, DomainOptions, Imports, LoadOptions, Module, Rights};
    ///
    /// let arena = Arena::new(1 << 20)?;
    /// let mut options = LoadOptions::default();
    /// options.allow_words = true;
    /// let module = Module::open("driver.rf", &options)?;
    /// let domain = Domain::new(&[module], Imports::new().arena(&arena), &DomainOptions::default())?;
    /// let packet = arena.alloc(144)?;
    /// domain.give_words(packet, 32, Rights::Write)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(len: u64) -> Result<Arena, WordsError> {
        Arena::limited(len, TABLES_LEAST + TABLES_PER_BYTE * len.min(window::SIZE))
    }

    /// The same, where tables of rights take at most `tables` bytes, and the rules behind them as many: a byte for each byte of the arena
    /// in which a domain was given anything, in pages.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn limited(len: u64, tables: u64) -> Result<Arena, WordsError> {
        let most = words::ARENA_END - words::ARENA;
        let pages = len.checked_next_multiple_of(ringfence_isa::PAGE);
        let len = pages
            .and_then(|len| u32::try_from(len).ok())
            .filter(|&len| len > 0 && len <= most)
            .ok_or(WordsError::Length {
                len,
                most: most.into(),
            })?;
        let file = sys::memory_file(c"ringfence-arena", len.into())?;
        let host = congruent(&file, len)?;
        let state = State {
            free: Room::new(0, len),
            words: Supervisor::new(Tables::new(tables), len.into(), tables as usize),
            types: Types::default(),
            domains: 0,
            names: BTreeMap::new(),
            limbo: Vec::new(),
        };
        let arena = Arc::new(Shared {
            host,
            len,
            limit: tables,
            checks: AtomicBool::new(false),
            state: Lock::new(Rank::Words, state),
        });
        rows::remember(&arena);
        Ok(Arena(arena))
    }

    /// Domains that are made with the arena from now on have *checked heaps*: what their libc allocates are objects of the arena that they
    /// own. The word behind each is nobody's, what was freed has no rights, and words that were never written are not read. It is for
    /// finding mistakes: each allocation leaves the domain, and the first write to each word costs a fault.
    pub fn check_heaps(&self) {
        self.0.checks.store(true, Ordering::Release);
    }

    pub(crate) fn checks_heaps(&self) -> bool {
        self.0.checks.load(Ordering::Acquire)
    }

    /// A place for an object of `len` bytes, zeroed, at a multiple of 16: the host's, or a domain's, which may read and write it. The word
    /// behind it is nobody's.
    ///
    /// # Errors
    /// [`WordsError::Full`], [`WordsError::Length`], [`WordsError::Tables`].
    pub fn alloc_for(&self, owner: Party, len: u64, kind: TypeId) -> Result<u64, WordsError> {
        let kind = if kind == BLOCK { TypeId(0) } else { kind };
        self.alloc_with(owner, len, kind, None)
    }

    /// The same; `fresh`: for this domain, to which its words are fresh.
    fn alloc_with(
        &self,
        owner: Party,
        len: u64,
        kind: TypeId,
        fresh: Option<&Attached>,
    ) -> Result<u64, WordsError> {
        let most = u64::from(self.0.len - GUARD);
        let size = len.max(1).checked_next_multiple_of(WORD.into());
        let size = size
            .filter(|&size| size <= most)
            .ok_or(WordsError::Length { len, most })? as u32;
        let wanted = (size + GUARD).next_multiple_of(GRAIN);
        let mut locked = self.0.state.lock();
        let mut at = locked.free.take(wanted);
        if at.is_none() && !locked.limbo.is_empty() {
            drop(locked);
            self.leave_limbo(settle);
            locked = self.0.state.lock();
            at = locked.free.take(wanted);
        }
        let state = &mut *locked;
        let at = at.ok_or(WordsError::Full { len })?;
        let address = self.0.host + u64::from(at);
        // SAFETY: in the arena, and nobody else's yet: no domain has rights to what was free.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, size as usize) };
        let words = at / WORD..(at + size) / WORD;
        if let Some(of) = fresh {
            // A write to what is fresh changes the table, from the next moment on: its memory comes first.
            if let Err(why) = state.words.sink_mut().room(of.id, &words) {
                state.free.give(at, wanted);
                return Err(self.told(Error::Table { domain: of.id, why }));
            }
            of.table.begin(words.clone());
        }
        let made = state.words.allocate(owner, words.clone(), kind);
        if made.is_err() {
            if let Some(of) = fresh {
                // Another thread of the domain may have written there meanwhile, and got the right to.
                of.table.forget(words.clone());
                state.words.sink_mut().lower(of.id, words, Rights::None);
            }
            let lowered = state.words.sink_mut().take_lowered();
            drop(locked);
            if self.settled(&(at..at + wanted), lowered) {
                self.reuse(at..at + wanted);
            }
        }
        made.map(|()| address).map_err(|e| self.told(e))
    }

    /// The number of a type, for reports: `struct request`, say, with its layout.
    #[must_use]
    pub fn name_type(&self, name: &str, layout: Option<Structure>) -> TypeId {
        self.0.state.lock().types.number(name, layout)
    }

    /// As [`alloc_for`](Self::alloc_for), for the host.
    ///
    /// # Errors
    /// [`WordsError::Full`], [`WordsError::Length`], [`WordsError::Tables`].
    pub fn alloc(&self, len: u64) -> Result<u64, WordsError> {
        self.alloc_for(Party::Host, len, TypeId(0))
    }

    /// Takes the object at `address` back. All domains lose their rights to it first.
    ///
    /// # Errors
    /// [`WordsError::NoObject`]: none begins there, or a block of a checked heap, which its module frees. [`WordsError::NotOwner`]; [`WordsError::InUse`] while calls have rights to it.
    /// [`WordsError::Inside`]: it is gone, and its place is used again when that thread has come out.
    pub fn free(&self, actor: Party, address: u64) -> Result<(), WordsError> {
        self.retire(actor, address, false).map(|place| self.reuse(place))
    }

    /// The place of what was retired may have another object.
    fn reuse(&self, place: Range<u32>) {
        self.0
            .state
            .lock()
            .free
            .give(place.start, place.end - place.start);
    }

    /// As [`free`](Self::free), and the place stays empty until it is [given back](Self::reuse); `block`: a heap's block, and nothing else.
    fn retire(&self, actor: Party, address: u64, block: bool) -> Result<Range<u32>, WordsError> {
        let mut state = self.0.state.lock();
        let at = self.offset(address).filter(|at| at.is_multiple_of(GRAIN));
        let beginning = |at: u32| {
            let object = state.words.object(at / WORD)?;
            (object.words.start == at / WORD).then_some(object)
        };
        let object = at.and_then(beginning).filter(|o| (o.kind == BLOCK) == block);
        let object = object.ok_or(WordsError::NoObject { address })?;
        let freed = state.words.free(actor, object.words.start);
        freed.map_err(|e| self.told(e))?;
        let lowered = state.words.sink_mut().take_lowered();
        let place = place(&object.words);
        drop(state);
        match self.settled(&place, lowered) {
            true => Ok(place),
            false => Err(WordsError::Inside),
        }
    }

    /// Whether no thread is in an access to a place that nobody has rights to any more; else it stays in limbo. A thread may let us wait,
    /// so nobody else does.
    fn settled(&self, place: &Range<u32>, lowered: Vec<u64>) -> bool {
        let settled = lowered.is_empty() || settle(&lowered);
        if !settled {
            self.0.state.lock().limbo.push((place.clone(), lowered));
        }
        settled
    }

    /// Tries again for places in limbo. Each window's threads are asked once, however many places wait for them.
    fn leave_limbo(&self, mut settled: impl FnMut(&[u64]) -> bool) {
        let limbo = std::mem::take(&mut self.0.state.lock().limbo);
        let mut inside: Vec<u64> = limbo.iter().flat_map(|(_, bases)| bases).copied().collect();
        inside.sort_unstable();
        inside.dedup();
        inside.retain(|&base| !settled(&[base]));
        let mut state = self.0.state.lock();
        for (place, bases) in limbo {
            match bases.iter().any(|base| inside.contains(base)) {
                true => state.limbo.push((place, bases)),
                false => state.free.give(place.start, place.end - place.start),
            }
        }
    }

    /// What a domain or group may do from now on with `len` bytes at `address`: whole words of 4 bytes of one object, which the actor owns, if
    /// it is not the host. A domain may lower what it was given.
    ///
    /// # Errors
    /// [`WordsError::Misaligned`], [`WordsError::NoObject`], [`WordsError::NotOwner`], [`WordsError::Tables`], [`WordsError::NoGroup`],
    /// [`WordsError::Inside`].
    pub fn give(
        &self,
        actor: Party,
        to: Grantee,
        address: u64,
        len: u64,
        rights: Rights,
    ) -> Result<(), WordsError> {
        let words = self.words(address, len)?;
        if words.is_empty() {
            return Ok(());
        }
        self.change(|w| w.export(actor, words, rights, to))
    }

    /// Takes all that was given of `len` bytes at `address` back from all domains, groups and calls in progress. What its owner has stays.
    ///
    /// # Errors
    /// As for [`give`](Self::give).
    pub fn revoke(&self, actor: Party, address: u64, len: u64) -> Result<(), WordsError> {
        let words = self.words(address, len)?;
        self.change(|w| w.revoke(actor, words))
    }

    /// A new group without members; domains join an open one by themselves.
    ///
    /// # Errors
    /// [`WordsError::NoArena`] if its owner has gone.
    pub fn add_group(&self, owner: Party, open: bool) -> Result<GroupId, WordsError> {
        self.change(|w| w.add_group(owner, open))
    }

    /// Lets a domain into a group: by itself, if that is open, or at the wish of the host or the group's owner.
    ///
    /// # Errors
    /// [`WordsError::NoGroup`], [`WordsError::Closed`], [`WordsError::NotOwner`], [`WordsError::Tables`].
    pub fn admit(&self, actor: Party, domain: DomainId, group: GroupId) -> Result<(), WordsError> {
        self.change(|w| w.join(actor, domain, group))
    }

    /// Takes a domain out of a group.
    ///
    /// # Errors
    /// [`WordsError::NoGroup`], [`WordsError::NotOwner`], [`WordsError::NotMember`], [`WordsError::Inside`].
    pub fn expel(&self, actor: Party, domain: DomainId, group: GroupId) -> Result<(), WordsError> {
        self.change(|w| w.expel(actor, domain, group))
    }

    /// All that are in `inner` get what `outer` is given, too.
    ///
    /// # Errors
    /// [`WordsError::NoGroup`], [`WordsError::NotOwner`], [`WordsError::Circle`], [`WordsError::Tables`].
    pub fn admit_group(&self, actor: Party, inner: GroupId, outer: GroupId) -> Result<(), WordsError> {
        self.change(|w| w.admit_group(actor, inner, outer))
    }

    /// Takes `inner` out of `outer`.
    ///
    /// # Errors
    /// [`WordsError::NoGroup`], [`WordsError::NotOwner`], [`WordsError::NotMember`], [`WordsError::Inside`].
    pub fn expel_group(&self, actor: Party, inner: GroupId, outer: GroupId) -> Result<(), WordsError> {
        self.change(|w| w.expel_group(actor, inner, outer))
    }

    /// Ends a group: its members lose what it gave them.
    ///
    /// # Errors
    /// [`WordsError::NoGroup`], [`WordsError::NotOwner`], [`WordsError::Inside`].
    pub fn end_group(&self, actor: Party, group: GroupId) -> Result<(), WordsError> {
        self.change(|w| w.end_group(actor, group))
    }

    /// The object that the byte at `address` belongs to, words counted from the arena's start.
    #[must_use]
    pub fn object(&self, address: u64) -> Option<Object> {
        let at = self.offset(address)?;
        self.0.state.lock().words.object(at / WORD)
    }

    /// Bytes that tables and supervisor take.
    #[must_use]
    pub fn tables(&self) -> u64 {
        let state = self.0.state.lock();
        state.words.sink().used() + state.words.memory() as u64
    }

    /// Who has what, as text: a line for each domain and group, with at most `most` runs of words each.
    #[must_use]
    pub fn overview(&self, most: usize) -> String {
        self.0.state.lock().words.overview(most).to_string()
    }

    /// Its first address and its length.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.0.host..self.0.host + u64::from(self.0.len)
    }

    /// Whether it is the same one.
    #[must_use]
    pub fn is(&self, other: &Arena) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An operation of the supervisor's, and the wait for accesses that it has taken the right to.
    fn change<T>(
        &self,
        operation: impl FnOnce(&mut Supervisor<Tables>) -> Result<T, Error>,
    ) -> Result<T, WordsError> {
        let mut state = self.0.state.lock();
        let done = operation(&mut state.words);
        let lowered = state.words.sink_mut().take_lowered();
        // A thread may let us wait, and nobody else.
        drop(state);
        // An operation that failed may have given for a moment what it took back.
        let settled = lowered.is_empty() || settle(&lowered);
        let done = done.map_err(|e| self.told(e))?;
        match settled {
            true => Ok(done),
            false => Err(WordsError::Inside),
        }
    }

    fn offset(&self, address: u64) -> Option<u32> {
        let at = u32::try_from(address.checked_sub(self.0.host)?).ok()?;
        (at < self.0.len).then_some(at)
    }

    fn words(&self, address: u64, len: u64) -> Result<Range<u32>, WordsError> {
        if !address.is_multiple_of(WORD.into()) || !len.is_multiple_of(WORD.into()) {
            return Err(WordsError::Misaligned { address, len });
        }
        let end = address
            .checked_sub(self.0.host)
            .and_then(|at| at.checked_add(len));
        match (self.offset(address), end) {
            (Some(at), Some(end)) if end <= u64::from(self.0.len) => Ok(at / WORD..end as u32 / WORD),
            _ => Err(WordsError::NoObject { address }),
        }
    }

    /// The supervisor's refusals, with the host's addresses.
    fn told(&self, error: Error) -> WordsError {
        let address = |word: u32| self.0.host + u64::from(word) * u64::from(WORD);
        match error {
            Error::Misaligned { start, end } => WordsError::Misaligned {
                address: self.0.host + start,
                len: end - start,
            },
            Error::Empty(bytes) | Error::Outside { bytes, .. } => WordsError::NoObject {
                address: self.0.host + bytes.start,
            },
            Error::Overlaps { wanted: words, .. } | Error::Beyond { wanted: words, .. } => {
                WordsError::NoObject {
                    address: address(words.start),
                }
            }
            Error::Nobodys { word } | Error::Inside { word, .. } => WordsError::NoObject {
                address: address(word),
            },
            Error::NotOwner { owner } => WordsError::NotOwner { owner },
            Error::InUse { domain, calls, .. } => WordsError::InUse { domain, calls },
            Error::NoDomain(_) | Error::SameDomain(_) => WordsError::NoArena,
            Error::NoGroup(group) => WordsError::NoGroup(group),
            Error::Closed(group) => WordsError::Closed(group),
            Error::NotMember(group) => WordsError::NotMember(group),
            Error::Circle { inner, outer } => WordsError::Circle { inner, outer },
            other => WordsError::Tables {
                why: other.to_string(),
            },
        }
    }
}

impl State {
    /// The places of objects that are gone become free, when no thread is in an access.
    fn give_back(&mut self, objects: &[Object]) -> Result<(), WordsError> {
        let lowered = self.words.sink_mut().take_lowered();
        let settled = lowered.is_empty() || settle(&lowered);
        for object in objects {
            let at = place(&object.words);
            match settled {
                true => self.free.give(at.start, at.end - at.start),
                false => self.limbo.push((at, lowered.clone())),
            }
        }
        match settled {
            true => Ok(()),
            false => Err(WordsError::Inside),
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: our own mapping; domains have theirs, and keep this alive.
        unsafe { libc::munmap(self.host as *mut _, self.len as usize) };
    }
}

impl std::fmt::Debug for Arena {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Arena").field(&self.range()).finish()
    }
}

/// Maps the file at an address that is congruent with [`words::ARENA`] modulo 4 GiB.
fn congruent(file: &OwnedFd, len: u32) -> Result<u64, HostError> {
    let all = window::SIZE + u64::from(len);
    // SAFETY: a fresh reservation at an address that the kernel chooses, of which the ends are given back.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let p = libc::mmap(std::ptr::null_mut(), all as usize, libc::PROT_NONE, flags, -1, 0);
        if p == libc::MAP_FAILED {
            return Err(HostError::last("reserving an arena"));
        }
        let from = p as u64;
        let below = u64::from(words::ARENA).wrapping_sub(from) % window::SIZE;
        let (at, end) = (from + below, from + below + u64::from(len));
        if below > 0 {
            libc::munmap(p, below as usize);
        }
        if from + all > end {
            libc::munmap(end as *mut _, (from + all - end) as usize);
        }
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        match sys::map_shared(at, len.into(), rw, file.as_fd(), 0) {
            Ok(()) => Ok(at),
            Err(e) => {
                libc::munmap(at as *mut _, len as usize);
                Err(e)
            }
        }
    }
}

/// What a domain of the words mode has.
pub(crate) struct Attached {
    pub(crate) arena: Arena,
    /// The domain's number in the arena.
    pub(crate) id: DomainId,
    table: Arc<Table>,
    view: Arc<View>,
    heap: Option<Heap>,
}

impl Attached {
    /// Maps the view of the arena, and a table without rights, for the window at `base`; `checks`: with a checked heap.
    ///
    /// # Safety
    /// The window is one of [`words::SIZE`], and nobody runs in it yet.
    pub(crate) unsafe fn new(
        arena: &Arena,
        base: u64,
        checks: bool,
        name: &str,
    ) -> Result<Attached, HostError> {
        debug_assert!(backed::base().is_none());
        let shared = &arena.0;
        let len = shared.len.into();
        let (table, file) = match checks {
            true => Table::with_fresh(shared.len)?,
            false => Table::new(shared.len)?,
        };
        let table = Arc::new(table);
        // The table first: where there is a view there is its table.
        // SAFETY: for both, the caller's promise: nothing else is ever mapped in these places.
        unsafe {
            let at = base + u64::from(words::ARENA + words::TABLE);
            sys::map_shared(at, len, libc::PROT_READ, file.as_fd(), 0)?;
            sys::map_shared_again(shared.host, base + words::view(words::ARENA), len)?;
        }
        let mut state = shared.state.lock();
        state.domains += 1;
        let id = DomainId(state.domains);
        state.names.insert(id, name.into());
        state.words.sink_mut().add(id, table.clone(), base);
        // A number that was never used before.
        let _ = state.words.add_domain(id);
        drop(state);
        let view = View::remember(base, table.clone());
        Ok(Attached {
            arena: arena.clone(),
            id,
            table,
            view,
            heap: checks.then(Heap::default),
        })
    }

    /// The checked heap, which a forked child does not have: its lock may be taken there, and its objects are the parent's.
    fn heap(&self) -> Option<&Heap> {
        self.heap.as_ref().filter(|_| !self.view.is_gone())
    }

    /// Who knows which of the domain's own words were written, if its heap is checked.
    pub(crate) fn fresh(&self) -> Option<Arc<dyn Fresh>> {
        self.heap.as_ref().map(|_| self.table.clone() as Arc<dyn Fresh>)
    }

    /// The rights to the word with this address. Waits for nobody.
    pub(crate) fn rights(&self, address: u64) -> Rights {
        let at = self.arena.offset(address);
        at.map_or(Rights::None, |at| self.table.rights(at / WORD))
    }

    /// The host's address of an offset in the arena's range.
    pub(crate) fn host_address(&self, offset: u32) -> u64 {
        self.arena.0.host + u64::from(offset.wrapping_sub(words::ARENA))
    }
}

impl Drop for Attached {
    /// Nobody is in the domain any more: what it owned goes, also from calls of others.
    fn drop(&mut self) {
        View::forget(&self.view);
        // Places of what was freed, empty until now. The heap's lock comes first.
        let empty = self.heap().map(Heap::end).unwrap_or_default();
        let mut state = self.arena.0.state.lock();
        for place in empty {
            state.free.give(place.start, place.end - place.start);
        }
        let owned = state.words.owned(self.id);
        for object in &owned {
            // It is the domain's, so the host may.
            let _ = state.words.revoke(Party::Host, object.words.clone());
        }
        let _ = state.words.remove_domain(self.id);
        state.names.remove(&self.id);
        state.words.sink_mut().remove(self.id);
        // Else their places wait.
        let _ = state.give_back(&owned);
    }
}

/// The rights of a call in progress, which go with it: when it has returned or failed, drop it.
#[must_use = "the rights are gone as soon as it is dropped"]
pub struct Held {
    arena: Arena,
    call: Call,
}

impl Drop for Held {
    fn drop(&mut self) {
        let call = self.call;
        // A thread of the same domain that does not answer has one access left, as `WordsError::Inside` says.
        let _ = self.arena.change(|w| {
            w.leave(call);
            Ok(())
        });
    }
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Held").field(&self.call).finish()
    }
}
