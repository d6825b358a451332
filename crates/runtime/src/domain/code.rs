//! Code that comes to a living domain under a name, and goes again.
//!
//! A piece is verified as a private copy of its bytes, and those very bytes are written to the domain's arena. Three things
//! make that safe while other threads run in the domain:
//!
//! * *Adding*: the identifiers of its markers are written last, after a serialising instruction in all threads. Until
//!   then no checked jump can land in it; whoever sees an identifier fetches the code behind it as it was written. The
//!   identifier itself is the displacement of a no-op: it does not matter which one a processor has fetched.
//! * *Removing*: it needs a moment in which no other thread is in the domain, and nobody enters while it lasts; the
//!   calling thread's own control stack is searched for return addresses into the piece. Then the identifiers go, and the
//!   host's targets.
//! * *Using the place again*: only once the calls that were in progress (the calling thread's own) have ended.

use super::handles::Handles;
use super::quiet::{Grave, may_go};
use super::{Domain, Entry, Inner};
use crate::lanes::watchdog;
use crate::lanes::world::{self, Guard};
use crate::os::lock::Locked;
use crate::os::{host, sys};
use crate::place::arena::Arena;
use ringfence_core::error::CodeError;
use ringfence_isa::{identifier, window};
use ringfence_verify::{Image, Rules, SegmentKind};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Machine code to be added to a living domain: one or more functions, in full isolation, without relocations, labels
/// of jump tables, and data.
///
/// It may lie anywhere: it reaches other code by the checked call only, with addresses that it is given (those of
/// [`Entry::address`], or of stubs), and data by addresses too.
#[derive(Clone, Copy, Debug)]
pub struct Code<'a> {
    /// The text. What follows it in its last cache line is filled with `int3`.
    pub bytes: &'a [u8],
    /// Offset of the function that the name stands for. With a function marker there it can be called from inside the
    /// domain as well.
    pub entry: u32,
}

/// A piece of added code.
pub(crate) struct Piece {
    /// Offset in the window, and size.
    place: u32,
    size: u32,
    entry: u32,
    /// Offsets of function entries from `place`, ascending.
    functions: Vec<u32>,
    /// Where its markers have their identifiers: offsets in the window.
    markers: Vec<u32>,
    handles: Arc<Handles>,
}

/// All of a domain's added code.
#[derive(Default)]
pub(crate) struct Added {
    arena: Option<Arena>,
    names: BTreeMap<String, Arc<Piece>>,
    graves: Vec<Grave<Arc<Piece>>>,
    used: u32,
}

impl Piece {
    fn contains(&self, offset: u64) -> bool {
        // A return address stands behind a call, so it is not the beginning; a pointer to the piece's first function is.
        (u64::from(self.place) + 1..u64::from(self.place + self.size)).contains(&offset)
    }
}

impl Added {
    /// Makes places free whose calls have ended.
    fn bury(&mut self) {
        let Some(arena) = &mut self.arena else { return };
        let used = &mut self.used;
        self.graves.retain(|grave| {
            let waits = grave.waits();
            if !waits {
                arena.give(grave.what.place, grave.what.size);
                *used -= grave.what.size;
            }
            waits
        });
    }

    fn at(&self, offset: u32) -> Option<&Arc<Piece>> {
        self.names
            .values()
            .find(|p| (p.place..p.place + p.size).contains(&offset))
    }
}

impl Inner {
    fn added_code(&self) -> Locked<'_, Added> {
        self.added_code.lock()
    }

    /// The domain goes: the host's calls fail.
    pub(super) fn kill_code(&mut self) {
        let added = self.added_code.get_mut();
        added.names.values().for_each(|piece| piece.handles.kill());
    }

    /// Whether there is code that came later. With the world locked.
    pub(super) fn has_code(&self) -> bool {
        !self.added_code().names.is_empty()
    }

    /// Drops all that was added. Nobody is inside, and nobody enters.
    pub(super) fn remove_all_code(&self, _world: &mut Guard) -> Result<(), ringfence_core::error::HostError> {
        let mut added = self.added_code();
        for piece in added.names.values() {
            piece.handles.kill();
        }
        if added.arena.is_some() {
            let at = self.base() + u64::from(window::ARENA);
            let len = u64::from(window::IMAGES_END - window::ARENA);
            // SAFETY: the part of our own window that is for added code, with nobody inside.
            unsafe { sys::map_anonymous(at, len, libc::PROT_NONE, true)? };
        }
        *added = Added::default();
        Ok(())
    }
}

/// What comes of checking code: the bytes to be written, entries of functions, and places of identifiers.
struct Checked {
    bytes: Vec<u8>,
    functions: Vec<u32>,
    markers: Vec<u32>,
}

fn check(domain: &Inner, name: &str, code: &Code<'_>) -> Result<Checked, CodeError> {
    let name = || name.to_string();
    let len = u32::try_from(code.bytes.len()).unwrap_or(u32::MAX);
    if len == 0 {
        return Err(CodeError::Empty { name: name() });
    }
    let limit = domain.options.code_limit;
    if len > limit {
        return Err(CodeError::Full {
            wanted: len,
            used: 0,
            limit,
        });
    }
    let size = Arena::size(len) as usize;
    let mut bytes = host::vec(size)?;
    bytes.extend_from_slice(code.bytes);
    bytes.resize(size, 0xCC);
    let segment = ringfence_verify::Segment {
        start: 0,
        len: size as u32,
        kind: SegmentKind::Text,
    };
    let image = Image {
        text: &bytes,
        text_address: 0,
        segments: &[segment],
        image_offset: None,
    };
    let rules = Rules {
        // No label at all: two pieces could have the same.
        #[allow(clippy::reversed_empty_ranges)]
        label_numbers: 1..=0,
        addressing: domain.options.addressing,
        ..Rules::default()
    };
    let report =
        ringfence_verify::verify(&image, &[code.entry], &rules).map_err(|r| CodeError::Rejected {
            name: name(),
            reason: r.to_string(),
        })?;
    let missing = report.features & !host::begin()?.features;
    if missing != 0 {
        return Err(CodeError::Features {
            name: name(),
            missing,
        });
    }
    if report.uses_vector && !domain.uses_vectors {
        return Err(CodeError::Registers {
            name: name(),
            what: "vector",
            remedy: "set DomainOptions::extensible",
        });
    }
    if report.uses_x87 && !domain.uses_x87 {
        return Err(CodeError::Registers {
            name: name(),
            what: "x87",
            remedy: "set DomainOptions::x87",
        });
    }
    let mut functions = host::vec(report.functions().len())?;
    functions.extend(report.functions().map(|f| f.entry));
    // Every marker of a function is an entry, reachable or not, and the verifier lets no other dword look like one.
    let mut markers: Vec<u32> = host::vec(report.functions().len())?;
    markers.extend(report.functions().filter(|f| f.marked).map(|f| f.entry + 4));
    Ok(Checked {
        bytes,
        functions,
        markers,
    })
}

impl Domain {
    /// Adds code to the living domain under a name. From now on it can be called: by the host through the result, by
    /// the domain's own code through its address, if it begins with a marker.
    ///
    /// Any thread may call this, while others run in the domain. The code stays until it is removed or the domain is reset.
    ///
    /// # Errors
    /// [`CodeError`]; nothing has changed then.
    ///
    /// # Examples
    /// ```no_run
    /// # use ringfence_runtime::{Call, Code, Domain};
    /// # fn example(domain: &Domain) -> Result<(), Box<dyn std::error::Error>> {
    /// // marker; leal (%rdi,%rsi), %eax; ret
    /// let bytes = [0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x04, 0x37, 0xC3];
    /// let sum = domain.add_code("sum", &Code { bytes: &bytes, entry: 0 })?;
    /// assert_eq!(sum.call(&mut Call::ints(&[2, 3]))?.rax, 5);
    /// domain.remove_code("sum")?;
    /// # Ok(()) }
    /// ```
    pub fn add_code(&self, name: &str, code: &Code<'_>) -> Result<Entry, CodeError> {
        let inner = &*self.0;
        let checked = check(inner, name, code)?;
        let size = checked.bytes.len() as u32;

        let _world = world::lock().ok_or(CodeError::Handler)?;
        let mut added = inner.added_code();
        if added.names.contains_key(name) || inner.find(name).is_some() {
            return Err(CodeError::Exists { name: name.into() });
        }
        added.bury();
        let limit = inner.options.code_limit;
        let full = CodeError::Full {
            wanted: size,
            used: added.used,
            limit,
        };
        if size > limit - added.used {
            return Err(full);
        }
        if added.arena.is_none() {
            added.arena = Some(Arena::new(inner.base(), limit)?);
        }
        let Added { arena, used, .. } = &mut *added;
        let arena = arena.as_mut().expect("made above");
        let place = arena.take(size)?.ok_or(full)?;
        // All but the identifiers, then a serialising instruction everywhere, then these.
        let mut bytes = checked.bytes;
        for &at in &checked.markers {
            bytes[at as usize..at as usize + 4].fill(0xCC);
        }
        arena.write(place, &bytes);
        if let Err(e) = watchdog::serialise() {
            arena.give(place, size);
            return Err(e.into());
        }
        let mut markers = checked.markers;
        for at in &mut markers {
            *at += place;
            arena.set(*at, identifier::FUNCTION);
        }
        *used += size;
        let piece = Arc::new(Piece {
            place,
            size,
            entry: code.entry,
            functions: checked.functions,
            markers,
            handles: Arc::default(),
        });
        added.names.insert(name.into(), piece.clone());
        Ok(self.entry_of(&piece, code.entry))
    }

    /// Finds added code by its name.
    ///
    /// # Errors
    /// [`CodeError::Unknown`].
    pub fn find_code(&self, name: &str) -> Result<Entry, CodeError> {
        let _world = world::lock().ok_or(CodeError::Handler)?;
        let added = self.0.added_code();
        let piece = added
            .names
            .get(name)
            .ok_or_else(|| CodeError::Unknown { name: name.into() })?;
        Ok(self.entry_of(piece, piece.entry))
    }

    /// Names of all added code, in no order.
    #[must_use]
    pub fn code_names(&self) -> Vec<String> {
        let _world = world::lock_plain();
        self.0.added_code().names.keys().cloned().collect()
    }

    /// Bytes that added code takes, of [`DomainOptions::code_limit`](crate::DomainOptions::code_limit).
    #[must_use]
    pub fn code_bytes(&self) -> u32 {
        let _world = world::lock_plain();
        self.0.added_code().used
    }

    /// Unlinks code. Calls of it fail from now on: the host's with [`CallError::Removed`](crate::CallError::Removed), the
    /// domain's own like any call to something that is no function.
    ///
    /// It needs a moment in which no other thread is in the domain, waits for it at most 100 µs, and lets nobody enter
    /// meanwhile. The calling thread may itself be in a host function that the domain called.
    ///
    /// # Errors
    /// [`CodeError::Unknown`]; [`CodeError::InUse`] if the calling thread is to return into the code, or
    /// other threads stay in the domain. Nothing has changed then.
    pub fn remove_code(&self, name: &str) -> Result<(), CodeError> {
        let inner = &*self.0;
        let _world = world::lock().ok_or(CodeError::Handler)?;
        let mut added = inner.added_code();
        let piece = added
            .names
            .get(name)
            .cloned()
            .ok_or_else(|| CodeError::Unknown { name: name.into() })?;
        added.bury();
        added.arena.as_mut().expect("has a piece").ready()?;
        let own = may_go(inner, name, |offset| piece.contains(offset))?;
        piece.handles.kill();
        let Added {
            arena,
            names,
            graves,
            used,
        } = &mut *added;
        let arena = arena.as_mut().expect("has a piece");
        for &at in &piece.markers {
            arena.set(at, 0xCCCC_CCCC);
        }
        names.remove(name);
        match own {
            Some(lane) => graves.push(Grave::new(piece, lane)),
            None => {
                arena.give(piece.place, piece.size);
                *used -= piece.size;
            }
        }
        Ok(())
    }

    fn entry_of(&self, piece: &Arc<Piece>, offset: u32) -> Entry {
        let address = self.0.base() + u64::from(piece.place + offset);
        Entry {
            domain: self.clone(),
            target: piece.handles.target_locked(&self.0, address, 0),
            handles: Some(piece.handles.clone()),
        }
    }

    /// The added function that starts at `address`.
    pub(super) fn code_at(&self, address: u64) -> Option<Entry> {
        let offset = u32::try_from(address.wrapping_sub(self.0.base())).ok()?;
        let _world = world::lock()?;
        let added = self.0.added_code();
        let piece = added.at(offset)?;
        let within = offset - piece.place;
        piece.functions.binary_search(&within).ok()?;
        Some(self.entry_of(piece, within))
    }
}
