//! Snapshots of initialised domains.
//!
//! A snapshot holds a domain's data, its heap with the bookkeeping of it, and the thread block of its first lane, in a sealed
//! memory file. Domains map that file privately: what they do not write they share.
//!
//! Pointers are true addresses, so the upper half of every pointer into the window is the upper half of the window's base, and
//! a snapshot of one window means nothing in another, unless it is known which words are such halves. Nobody can tell that by
//! looking at one snapshot. So a snapshot that is to be used in other windows is made *twice*, in two windows, by the same
//! initialisation. A word that is the same in both runs does not depend on the window's place, and is kept. A word that is
//! the upper half of the one base in the one run, and of the other base in the other, is moved along. Any other difference (a hash
//! of an address, time, a random number) refuses the snapshot and says where. Nothing is guessed, but one thing is
//! demanded: two runs of the initialisation must do the same.

use crate::domain::Domain;
use crate::domain::imports::Imports;
use crate::load::module::Module;
use crate::os::host;
use crate::os::sys::{self, View};
use crate::place::memory::Heap;
use ringfence_core::KeptFile;
use ringfence_core::error::DomainError;
use std::sync::Arc;

pub use ringfence_core::SnapshotError;

/// What a part of a snapshot is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Writable data of a module.
    Data,
    /// A piece of the heap area.
    Heap,
    /// The thread block of the first lane.
    Thread,
}

/// A part of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    pub kind: Kind,
    /// Offset in the window, and length: whole pages.
    pub offset: u32,
    pub len: u32,
    /// Rights, as for `mmap`.
    pub rights: i32,
    /// Offset in the file.
    pub file: u64,
}

/// A snapshot.
pub(crate) struct Frozen {
    /// Base of the window that it was taken of.
    pub base: u64,
    pub areas: Vec<Area>,
    pub file: KeptFile,
    pub view: View,
    pub heap: Heap,
    /// Offsets in the window of all words that hold the upper half of `base`. `None`: not known.
    pub moves: Option<Vec<u32>>,
}

impl Frozen {
    /// What the snapshot has of an area, or of a part of it.
    pub(crate) fn bytes(&self, area: &Area, offset: u32, len: usize) -> &[u8] {
        let at = (area.file + u64::from(offset - area.offset)) as usize;
        &self.view.bytes()[at..at + len]
    }

    /// Moves the pointers among the `len` bytes of a window at `offset` to its base.
    ///
    /// # Safety
    /// The range is a copy of this snapshot's, writable, in the window at `base`, and nobody is in the domain.
    pub(crate) unsafe fn relocate(&self, offset: u32, len: u32, base: u64) {
        let Some(moves) = self.moves.as_ref().filter(|_| base != self.base) else {
            return;
        };
        let from = moves.partition_point(|&at| at < offset);
        for &at in moves[from..].iter().take_while(|&&at| at - offset < len) {
            // SAFETY: the caller's promise; the words are whole, since ranges are whole pages.
            unsafe { ((base + u64::from(at)) as *mut u32).write((base >> 32) as u32) };
        }
    }
}

/// What an initialised domain looks like: the state that new domains start from. Clones are the same snapshot.
#[derive(Clone)]
pub struct Snapshot(Arc<Inner>);

struct Inner {
    modules: Vec<Module>,
    options: crate::DomainOptions,
    imports: Vec<String>,
    frozen: Arc<Frozen>,
}

impl Snapshot {
    /// Makes two domains with `make`, runs `init` in each, and makes a snapshot of what they have in common.
    ///
    /// `init` has to do the same each time: the same calls with the same arguments, and a policy that answers the same (a
    /// fixed clock, no randomness). Pointers of the host's must not get into the domain. What it sets up outside of
    /// the domain's memory is not in the snapshot: open descriptors are refused, functions granted to the domain are not
    /// granted to new ones.
    ///
    /// # Errors
    /// [`SnapshotError`]; [`SnapshotError::Differs`] tells where two runs differ.
    pub fn new<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        make: impl Fn() -> Result<Domain, DomainError>,
        init: impl Fn(&Domain) -> Result<(), E>,
    ) -> Result<Snapshot, SnapshotError> {
        // Both at a time, so that they are in two windows.
        let (first, second) = (make()?, make()?);
        for domain in [&first, &second] {
            init(domain).map_err(|e| SnapshotError::Init(e.into()))?;
        }
        let (mut frozen, other) = (first.capture()?, second.capture()?);
        frozen.moves = Some(compare(&first, &frozen, &other)?);
        Ok(Snapshot(Arc::new(Inner {
            modules: first.modules(),
            options: first.options().clone(),
            imports: first.import_names(),
            frozen: Arc::new(frozen),
        })))
    }

    /// A new domain in the snapshot's state. Its constructors have run; they do not run again. [`Domain::reset`] returns to this
    /// state. The thread that enters first has the thread-local variables of the one that initialised, other
    /// threads have fresh ones.
    ///
    /// `imports` must have the names that the snapshot was made with; what stands behind them may differ.
    ///
    /// # Errors
    /// [`SnapshotError::Imports`], [`SnapshotError::Domain`], [`SnapshotError::Host`].
    pub fn instantiate(&self, imports: Imports) -> Result<Domain, SnapshotError> {
        let snapshot = &*self.0;
        let domain = Domain::bare(&snapshot.modules, imports, &snapshot.options)?;
        let got = domain.import_names();
        if got != snapshot.imports {
            let wanted = snapshot.imports.clone();
            return Err(SnapshotError::Imports { wanted, got });
        }
        domain.become_snapshot(&snapshot.frozen)?;
        Ok(domain)
    }

    /// How many bytes the snapshot holds, and how many words of them are moved in each window.
    #[must_use]
    pub fn size(&self) -> (u64, usize) {
        let frozen = &self.0.frozen;
        let bytes = frozen.areas.iter().map(|a| u64::from(a.len)).sum();
        (bytes, frozen.moves.as_ref().map_or(0, Vec::len))
    }
}

impl std::fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (bytes, moves) = self.size();
        write!(f, "Snapshot({bytes} bytes, {moves} words moved)")
    }
}

/// The words that differ by the windows' bases; an error if any differ otherwise.
fn compare(domain: &Domain, a: &Frozen, b: &Frozen) -> Result<Vec<u32>, SnapshotError> {
    if a.areas != b.areas {
        return Err(SnapshotError::Shape {
            what: "the memory that they mapped",
        });
    }
    if a.heap != b.heap {
        return Err(SnapshotError::Shape {
            what: "what the host allocated",
        });
    }
    let bases = [a, b].map(|snapshot| (snapshot.base >> 32) as u32);
    let mut moves = Vec::new();
    for area in &a.areas {
        let pages = [a, b].map(|snapshot| {
            snapshot
                .bytes(area, area.offset, area.len as usize)
                .chunks_exact(sys::PAGE)
        });
        let [first, second] = pages;
        for (page, (x, y)) in first.zip(second).enumerate() {
            if x == y {
                continue;
            }
            for (i, (x, y)) in x.chunks_exact(4).zip(y.chunks_exact(4)).enumerate() {
                let [x, y] = [x, y].map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
                let offset = area.offset + (page * sys::PAGE + i * 4) as u32;
                if x == y {
                    continue;
                }
                if [x, y] != bases {
                    return Err(SnapshotError::Differs {
                        offset,
                        symbol: domain.object_at(offset),
                        first: x,
                        second: y,
                    });
                }
                host::push(&mut moves, offset)?;
            }
        }
    }
    Ok(moves)
}
