//! The state of the first pass, which the rules judge by and add to.

use crate::decode::Instruction;
use crate::image::{Image, Rules, Segment};
use crate::notes::{Facts, Label, NoMemory, Table, dword, push};
use crate::reason::Reason;
use crate::rejections::Rejections;
use crate::report::{Pad, RegSet};
use crate::rules::rule_1_held::Line;
use alloc::vec::Vec;

/// What all parts of the text share.
pub(crate) struct Pass<'a> {
    pub image: &'a Image<'a>,
    pub rules: &'a Rules,
    /// Sorted by start, none empty.
    pub segments: &'a [Segment],
    pub facts: &'a mut Facts,
    pub rejections: &'a mut Rejections,
    /// Whether there were bytes that do not decode, so that nothing is known of what follows them.
    pub lost: bool,
}

impl Pass<'_> {
    pub fn reject(&mut self, at: usize, i: &Instruction, reason: Reason) {
        self.rejections.add(self.image, at, usize::from(i.len), reason);
    }

    pub fn dword(&self, at: usize) -> u32 {
        dword(self.image.text, at)
    }

    /// Whether the instructions from `start` on are the given ones, by offset and length.
    pub fn decoded_as(&self, start: usize, parts: &[(usize, usize)]) -> bool {
        parts
            .iter()
            .all(|&(part, len)| self.facts.notes[start + part].len() == len)
    }
}

/// A part of the text: where the pass is in it, and what it has found there.
pub(crate) struct Part {
    pub at: usize,
    pub end: usize,
    pub line: Line,
    pub tables: Vec<Table>,
    pub labels: Vec<Label>,
    pub pads: Vec<Pad>,
    pub features: u32,
    pub mentions: RegSet,
    pub instructions: u64,
}

impl Part {
    pub fn new(at: usize, end: usize) -> Part {
        Part {
            at,
            end,
            line: Line::LOST,
            tables: Vec::new(),
            labels: Vec::new(),
            pads: Vec::new(),
            features: 0,
            mentions: RegSet::default(),
            instructions: 0,
        }
    }

    /// Adds what was found here to what was found before.
    pub fn finish(self, facts: &mut Facts) -> Result<(), NoMemory> {
        append(&mut facts.tables, self.tables)?;
        append(&mut facts.labels, self.labels)?;
        append(&mut facts.pads, self.pads)?;
        facts.features |= self.features;
        facts.mentions = facts.mentions.or(self.mentions);
        facts.instructions += self.instructions;
        Ok(())
    }
}

fn append<T>(all: &mut Vec<T>, more: Vec<T>) -> Result<(), NoMemory> {
    if all.is_empty() {
        *all = more;
        return Ok(());
    }
    more.into_iter().try_for_each(|item| push(all, item))
}
