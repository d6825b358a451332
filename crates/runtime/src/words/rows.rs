//! All arenas of the process, and who has what of them: rows of the matrix.

use super::Shared;
use crate::os::lock::{Lock, Rank};
use ringfence_core::{DomainId, Party, Rights};
use ringfence_words::Listing;
use std::ops::Range;
use std::sync::{Arc, Weak};

/// Runs of words that are told of a domain or group at most: the matrix shows what there is, not all of it.
const MOST: usize = 16;

/// Arenas, as long as they are there, with their numbers.
static ALL: Lock<All> = Lock::new(
    Rank::Arenas,
    All {
        last: 0,
        arenas: Vec::new(),
    },
);

struct All {
    last: u64,
    arenas: Vec<(u64, Weak<Shared>)>,
}

pub(super) fn remember(arena: &Arc<Shared>) {
    let mut all = ALL.lock();
    all.last += 1;
    let number = all.last;
    all.arenas.retain(|(_, arena)| arena.strong_count() > 0);
    all.arenas.push((number, Arc::downgrade(arena)));
}

/// Bytes of an arena, from its start, that somebody has the same rights to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordsOf {
    /// The first 16 runs.
    pub runs: Vec<(Range<u64>, Rights)>,
    /// How many more there are.
    pub more: usize,
}

impl From<Listing> for WordsOf {
    fn from(listing: Listing) -> WordsOf {
        WordsOf {
            runs: listing.runs,
            more: listing.more,
        }
    }
}

/// A group of an arena's domains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordsGroupRow {
    /// Number of the group in the arena.
    pub group: u64,
    /// Name of the domain that owns it; `None`: the host.
    pub owner: Option<String>,
    /// Whether domains join at their own wish.
    pub open: bool,
    /// Names of the domains that have what it was given.
    pub members: Vec<String>,
    /// What it was given.
    pub words: WordsOf,
}

/// An arena and who has what of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArenaRow {
    /// Number of the arena in the process.
    pub arena: u64,
    /// Its bytes.
    pub len: u64,
    /// How many objects it has.
    pub objects: u64,
    /// Names and rights of its domains, all that they have taken together.
    pub domains: Vec<(String, WordsOf)>,
    /// Its groups.
    pub groups: Vec<WordsGroupRow>,
}

/// Who may do what to which words, in all arenas of the process. Each arena is looked at at one moment.
#[must_use]
pub fn arenas() -> Vec<ArenaRow> {
    let all: Vec<(u64, Weak<Shared>)> = ALL.lock().arenas.clone();
    let there = all.iter().filter_map(|(n, arena)| Some((*n, arena.upgrade()?)));
    there.map(|(number, arena)| row(number, &arena)).collect()
}

fn row(arena: u64, shared: &Shared) -> ArenaRow {
    let state = shared.state.lock();
    let name = |id: DomainId| {
        let name = state.names.get(&id).map_or("", String::as_str);
        format!("{name}#{}", id.0)
    };
    let seen = state.words.overview(MOST);
    let groups = seen.groups.into_iter().map(|g| WordsGroupRow {
        group: g.group.0,
        owner: match g.owner {
            Party::Domain(id) => Some(name(id)),
            Party::Host => None,
        },
        open: g.open,
        members: g.members.into_iter().map(name).collect(),
        words: g.given.into(),
    });
    ArenaRow {
        arena,
        len: shared.len.into(),
        objects: state.words.objects() as u64,
        groups: groups.collect(),
        domains: seen
            .domains
            .into_iter()
            .map(|(id, words)| (name(id), words.into()))
            .collect(),
    }
}
