//! Who has what, to be looked at.

use crate::bits::{CHUNK, Runs, more};
use crate::layer::Layer;
use crate::members::{Domain, Group, Members};
use ringfence_core::{DomainId, GroupId, Party, Rights};
use std::convert::Infallible;
use std::fmt;
use std::ops::Range;

/// Bytes of a word.
const WORD: u64 = 4;

/// One letter or two for rights, as the matrix of regions has them.
fn short(rights: Rights) -> &'static str {
    match rights {
        Rights::None => "-",
        Rights::Read => "r",
        Rights::Write => "rw",
    }
}

/// Bytes from the arena's start that have the same rights, in runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// As many as were asked for.
    pub runs: Vec<(Range<u64>, Rights)>,
    /// How many more there are.
    pub more: usize,
}

impl fmt::Display for Listing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (run, rights) in &self.runs {
            write!(f, " {:#x}..{:#x}={}", run.start, run.end, short(*rights))?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// A group, who is in it, and what it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedGroup {
    /// Its number.
    pub group: GroupId,
    /// Who decides.
    pub owner: Party,
    /// Whether domains join by themselves.
    pub open: bool,
    /// The domains that have what it was given.
    pub members: Vec<DomainId>,
    /// What that is.
    pub given: Listing,
}

/// Who has what: each domain's effective rights, each group's exports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// Domains, in the order in which they came.
    pub domains: Vec<(DomainId, Listing)>,
    /// Groups.
    pub groups: Vec<ListedGroup>,
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, listing) in &self.domains {
            writeln!(f, "domain #{}:{listing}", id.0)?;
        }
        for g in &self.groups {
            let open = if g.open { "open" } else { "closed" };
            write!(f, "group {}, {open}, of {}:", g.group.0, g.owner)?;
            for id in &g.members {
                write!(f, " #{}", id.0)?;
            }
            writeln!(f, ";{}", g.given)?;
        }
        Ok(())
    }
}

/// At most so many runs of words, in bytes; then how many more there are.
fn runs(parts: impl Iterator<Item = Range<u32>>, bits: impl Fn(u32) -> u64, most: usize) -> Listing {
    let (mut all, mut listing) = (Runs::default(), Listing::default());
    let mut tell = |words: Range<u32>, rights| {
        match listing.runs.len() < most {
            true => listing
                .runs
                .push((u64::from(words.start) * WORD..u64::from(words.end) * WORD, rights)),
            false => listing.more += 1,
        }
        Ok::<(), Infallible>(())
    };
    for chunk in parts.flatten() {
        let bits = bits(chunk);
        let Ok(()) = all.add(chunk, more(0, bits), bits, &mut tell);
    }
    let Ok(()) = all.end(&mut tell);
    listing
}

/// Leaves that any of a domain's rights stand in, each once, ascending.
fn parts(members: &Members, domain: &Domain) -> Vec<Range<u32>> {
    let groups = domain.groups.iter().filter_map(|&g| members.groups.get(g));
    let layers = [&domain.owned, &domain.given]
        .into_iter()
        .chain(groups.map(|g| &g.given));
    let mut firsts: Vec<u32> = layers.flat_map(Layer::used).map(|r| r.start).collect();
    for held in &domain.held {
        let leaves = held.words.start / (CHUNK * 32)..held.words.end.div_ceil(CHUNK * 32);
        firsts.extend(leaves.map(|leaf| leaf * 32));
    }
    firsts.sort_unstable();
    firsts.dedup();
    firsts.into_iter().map(|first| first..first + 32).collect()
}

pub(crate) fn look(members: &Members, most: usize) -> Overview {
    let domain = |domain: &Domain| {
        let parts = parts(members, domain).into_iter();
        let listing = runs(parts, |chunk| members.effective(domain, chunk), most);
        (domain.id, listing)
    };
    let group = |group: &Group| ListedGroup {
        group: group.id,
        owner: group.owner,
        open: group.open,
        members: group
            .members
            .iter()
            .filter_map(|&d| members.domains.get(d))
            .map(|d| d.id)
            .collect(),
        given: runs(group.given.used(), |chunk| group.given.get(chunk), most),
    };
    Overview {
        domains: members.domains.iter().map(|(_, d)| domain(d)).collect(),
        groups: members.groups.iter().map(|(_, g)| group(g)).collect(),
    }
}
