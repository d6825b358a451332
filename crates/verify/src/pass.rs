//! The state of the first pass, which the rules judge by and add to.

use crate::decode::Instruction;
use crate::image::{Image, Rules, Segment};
use crate::notes::{Facts, dword};
use crate::reason::Reason;
use crate::rejections::Rejections;
use crate::rules::rule_1_held::Line;

/// What all parts of the text share.
pub(crate) struct Pass<'a, 'n> {
    pub image: &'a Image<'a>,
    pub rules: &'a Rules,
    /// Sorted by start, none empty.
    pub segments: &'a [Segment],
    pub facts: &'a mut Facts<'n>,
    pub rejections: &'a mut Rejections,
    /// Whether there were bytes that do not decode, so that nothing is known of what follows them.
    pub lost: bool,
}

impl Pass<'_, '_> {
    pub fn reject(&mut self, at: usize, i: &Instruction, reason: Reason) {
        self.rejections.add(self.image, at, usize::from(i.len), reason);
    }

    pub fn dword(&self, at: usize) -> u32 {
        dword(self.image.text, at)
    }
}

/// A part of the text: where the pass is in it.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    pub at: usize,
    pub end: usize,
    pub line: Line,
}

impl Part {
    pub fn new(at: usize, end: usize) -> Part {
        let line = Line::LOST;
        Part { at, end, line }
    }
}
