//! The words mode: host objects in memory that domains can name by the host's own pointers, and reach as far as a table of rights says.

mod table;

use crate::lanes::watchdog;
use crate::os::lock::{Lock, Rank};
use crate::os::{backed, sys};
use crate::place::room::Room;
use ringfence_core::error::HostError;
use ringfence_core::{Rights, WordsError};
use ringfence_isa::{window, words};
use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};
use table::{Table, WORD};

/// Objects are as many bytes apart as a vector is long, so that none has words that another has, nor lines of rights.
const GRAIN: u32 = 16;

/// Memory of the host's for objects that domains of the words mode may be given rights to, word for word.
///
/// Its addresses are the host's own, and mean the same to every domain that was made with this arena
/// ([`Imports::arena`](crate::Imports::arena)): a pointer goes to a module as it is, and so do pointers inside objects. A domain begins without any
/// rights; [`Domain::give_words`](crate::Domain::give_words) gives them. All of it can be used from any thread. What domains may write changes under the host's
/// hands, so it is for plain data that is read with care.
#[derive(Clone)]
pub struct Arena(Arc<Shared>);

/// No descriptor is kept: a host that closes what is not its own, and opens other files, changes nothing here.
struct Shared {
    /// Its first address, congruent with [`words::ARENA`] modulo 4 GiB.
    host: u64,
    len: u32,
    objects: Lock<Objects>,
}

struct Objects {
    free: Room,
    /// Length by offset.
    live: BTreeMap<u32, u32>,
    tables: Vec<Weak<Table>>,
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
        let objects = Objects {
            free: Room::new(0, len),
            live: BTreeMap::new(),
            tables: Vec::new(),
        };
        Ok(Arena(Arc::new(Shared {
            host,
            len,
            objects: Lock::new(Rank::Words, objects),
        })))
    }

    /// A place for an object of `len` bytes, zeroed, at a multiple of 16. No domain has rights to it.
    ///
    /// # Errors
    /// [`WordsError::Full`], [`WordsError::Length`].
    pub fn alloc(&self, len: u64) -> Result<u64, WordsError> {
        let most = u64::from(self.0.len);
        let size = len.max(1).checked_next_multiple_of(GRAIN.into());
        let size = size
            .filter(|&size| size <= most)
            .ok_or(WordsError::Length { len, most })? as u32;
        let mut objects = self.0.objects.lock();
        let at = objects.free.take(size).ok_or(WordsError::Full { len })?;
        objects.live.insert(at, size);
        drop(objects);
        let address = self.0.host + u64::from(at);
        // SAFETY: in the arena, and nobody else's yet: no domain has rights to what was free.
        unsafe { std::ptr::write_bytes(address as *mut u8, 0, size as usize) };
        Ok(address)
    }

    /// Takes the object at `address` back. All domains lose their rights to it first, see [`Domain::give_words`](crate::Domain::give_words).
    ///
    /// # Errors
    /// [`WordsError::NoObject`]: none begins there.
    pub fn free(&self, address: u64) -> Result<(), WordsError> {
        let mut objects = self.0.objects.lock();
        let known = address
            .checked_sub(self.0.host)
            .and_then(|at| u32::try_from(at).ok());
        let (at, len) = known
            .and_then(|at| objects.live.remove_entry(&at))
            .ok_or(WordsError::NoObject { address })?;
        let words = at / WORD..(at + len) / WORD;
        objects.tables.retain(|table| match table.upgrade() {
            Some(table) => {
                table.set(words.clone(), Rights::None);
                true
            }
            None => false,
        });
        // With the lock held: nobody gets the place before all have lost it.
        watchdog::barrier();
        objects.free.give(at, len);
        Ok(())
    }

    /// Its first address and its length.
    #[must_use]
    pub fn range(&self) -> Range<u64> {
        self.0.host..self.0.host + u64::from(self.0.len)
    }

    /// The words of a range that begins and ends with whole ones, inside one object.
    /// The object stays while `with` runs.
    fn with_words(&self, address: u64, len: u64, with: impl FnOnce(Range<u32>)) -> Result<(), WordsError> {
        if !address.is_multiple_of(WORD.into()) || !len.is_multiple_of(WORD.into()) {
            return Err(WordsError::Misaligned { address, len });
        }
        let outside = WordsError::NoObject { address };
        let at = address
            .checked_sub(self.0.host)
            .and_then(|at| u32::try_from(at).ok());
        let (at, len) = at.zip(u32::try_from(len).ok()).ok_or(outside)?;
        let objects = self.0.objects.lock();
        let object = objects.live.range(..=at).next_back();
        let inside =
            |(&start, &size): (&u32, &u32)| at.checked_add(len).is_some_and(|end| end <= start + size);
        if !object.is_some_and(inside) {
            return Err(WordsError::NoObject { address });
        }
        with(at / WORD..(at + len) / WORD);
        Ok(())
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
    table: Arc<Table>,
    base: u64,
}

impl Attached {
    /// Maps the view of the arena, and a table without rights, for the window at `base`.
    ///
    /// # Safety
    /// The window is one of [`words::SIZE`], and nobody runs in it yet.
    pub(crate) unsafe fn new(arena: &Arena, base: u64) -> Result<Attached, HostError> {
        debug_assert!(backed::base().is_none());
        let shared = &arena.0;
        let len = shared.len.into();
        let (table, file) = Table::new(shared.len)?;
        let table = Arc::new(table);
        // The table first: where there is a view there is its table.
        // SAFETY: for both, the caller's promise: nothing else is ever mapped in these places.
        unsafe {
            let at = base + u64::from(words::ARENA + words::TABLE);
            sys::map_shared(at, len, libc::PROT_READ, file.as_fd(), 0)?;
            sys::map_shared_again(shared.host, base + words::view(words::ARENA), len)?;
        }
        let mut objects = shared.objects.lock();
        objects.tables.retain(|table| table.strong_count() > 0);
        objects.tables.push(Arc::downgrade(&table));
        drop(objects);
        Ok(Attached {
            arena: arena.clone(),
            table,
            base,
        })
    }

    /// Gives rights to words, or takes them.
    pub(crate) fn give(&self, address: u64, len: u64, rights: Rights) -> Result<(), WordsError> {
        self.arena.with_words(address, len, |words| {
            let lower = words.clone().any(|w| self.table.rights(w) > rights);
            self.table.set(words, rights);
            if lower {
                // From here on every thread's tests see it.
                watchdog::barrier();
            }
        })
    }

    /// The rights to the word with this address.
    pub(crate) fn rights(&self, address: u64) -> Rights {
        let at = address.checked_sub(self.arena.0.host);
        let word = at.and_then(|at| u32::try_from(at / u64::from(WORD)).ok());
        word.map_or(Rights::None, |word| self.table.rights(word))
    }

    /// The host's address of an offset in the arena's range.
    pub(crate) fn host_address(&self, offset: u32) -> u64 {
        self.arena.0.host + u64::from(offset.wrapping_sub(words::ARENA))
    }

    /// In a forked child: what was shared with the parent becomes inaccessible.
    pub(crate) fn after_fork(&self) -> Result<(), HostError> {
        let len = self.table.len();
        for at in [
            self.base + words::view(words::ARENA),
            self.base + u64::from(words::ARENA + words::TABLE),
        ] {
            // SAFETY: our own places in the domain's window; no thread is in it.
            unsafe { sys::map_anonymous(at, len, libc::PROT_NONE, true)? };
        }
        Ok(())
    }
}
