//! The tables of an arena's domains: where the supervisor's decisions go.

use super::table::{Table, WORD};
use ringfence_core::{DomainId, Rights};
use ringfence_isa::PAGE;
use ringfence_words::{NoRoom, Sink};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Words whose bits lie in one page of a table.
const PAGE_WORDS: u32 = PAGE as u32 / WORD;

struct Kept {
    table: Arc<Table>,
    /// Of the domain's window.
    base: u64,
    /// Which of its pages have memory, a bit for each.
    pages: Vec<u64>,
}

/// All tables of an arena. Changed under the arena's lock only.
pub(crate) struct Tables {
    all: BTreeMap<DomainId, Kept>,
    used: u64,
    limit: u64,
    /// Windows whose domains have lost rights since [`take_lowered`](Self::take_lowered).
    lowered: Vec<u64>,
}

impl Tables {
    /// With at most so many bytes of memory.
    pub(crate) fn new(limit: u64) -> Tables {
        Tables {
            all: BTreeMap::new(),
            used: 0,
            limit,
            lowered: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, domain: DomainId, table: Arc<Table>, base: u64) {
        let pages = vec![0; (table.len() / PAGE).div_ceil(64) as usize];
        self.all.insert(domain, Kept { table, base, pages });
    }

    /// The domain has gone, and its window with it.
    pub(crate) fn remove(&mut self, domain: DomainId) {
        if let Some(kept) = self.all.remove(&domain) {
            let pages: u32 = kept.pages.iter().map(|p| p.count_ones()).sum();
            self.used -= u64::from(pages) * PAGE;
            self.lowered.retain(|&base| base != kept.base);
        }
    }

    /// Has memory for all that changes in a domain's table with these words. What there is already stays, also on failure.
    pub(crate) fn room(&mut self, domain: DomainId, words: &Range<u32>) -> Result<(), NoRoom> {
        let Some(kept) = self.all.get_mut(&domain) else {
            return Ok(());
        };
        // What is looked at as well, and what changes with it.
        let all = kept.table.before(words.start)..kept.table.behind(words.end);
        for page in all.start / PAGE_WORDS..all.end.div_ceil(PAGE_WORDS) {
            let (at, bit) = (page as usize / 64, 1 << (page % 64));
            if kept.pages[at] & bit != 0 {
                continue;
            }
            if self.used + PAGE > self.limit || !kept.table.populate(page * PAGE_WORDS) {
                return Err(NoRoom { needed: PAGE });
            }
            kept.pages[at] |= bit;
            self.used += PAGE;
        }
        Ok(())
    }

    /// Bytes that tables have.
    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Windows whose domains have lost rights, once.
    pub(crate) fn take_lowered(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.lowered)
    }
}

impl Sink for Tables {
    fn raise(&mut self, domain: DomainId, words: Range<u32>, rights: Rights) -> Result<(), NoRoom> {
        self.room(domain, &words)?;
        if let Some(kept) = self.all.get(&domain) {
            kept.table.set(words, rights);
        }
        Ok(())
    }

    fn lower(&mut self, domain: DomainId, words: Range<u32>, rights: Rights) {
        let Some(kept) = self.all.get(&domain) else { return };
        // What was raised has memory; a raise that failed may not have come to the rest.
        let page = |word: u32| word / PAGE_WORDS;
        let there = |word: u32| kept.pages[page(word) as usize / 64] & 1 << (page(word) % 64) != 0;
        let mut from = words.start;
        while from < words.end {
            let end = words.end.min((page(from) + 1) * PAGE_WORDS);
            if there(from) {
                kept.table.set(from..end, rights);
            }
            from = end;
        }
        if !self.lowered.contains(&kept.base) {
            self.lowered.push(kept.base);
        }
    }
}
