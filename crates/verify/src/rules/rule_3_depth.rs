//! Rule 3: the depth of the control stack, by following control through each function once.

use crate::bitmap::{Bitmap, Pending, Ranks};
use crate::check::Check;
use crate::notes::{Class, NoMemory, dword, filled};
use crate::reason::Reason;
use crate::report::{Function, Pad};
use crate::rules::rule_4_direct::{self, MAX_DEPTH};
use crate::rules::rule_5_tables::Table;
use crate::rules::rule_6_identifiers;
use crate::why;
use alloc::vec::Vec;
use core::ops::Range;
use ringfence_isa::identifier;

/// Depths are kept in slots of 8 bytes.
pub(crate) const UNKNOWN: u16 = u16::MAX;
const MAX_SLOTS: u16 = (MAX_DEPTH / 8) as u16;

/// Follows control. It has to look only where control does not just go on, and at *leaders*, where it may come from elsewhere: what
/// is between has the depth of what precedes it.
pub(crate) struct Walker {
    /// Where jumps through tables stand.
    pub tables: Bitmap,
    pub leaders: Ranks,
    /// The depth at each leader, once control has been seen to arrive there.
    pub depths: Vec<u16>,
    /// Where the depth changes: `push` and `pop` that are reached.
    pub pushes: Bitmap,
    pub pops: Bitmap,
    /// Leaders from where control is yet to be followed.
    pub pending: Pending,
    /// For each label number whose jumps have been met: their depth.
    label_depths: Vec<u16>,
    /// How many of the pads belong to the functions so far.
    pads: usize,
}

/// What walking a function shows.
struct Walk {
    function: Range<usize>,
    max_depth: u16,
}

impl Walker {
    pub fn new(check: &Check, tables: Bitmap) -> Result<Walker, NoMemory> {
        Ok(Walker {
            tables,
            leaders: Ranks::new(&check.facts.leaders)?,
            depths: filled(check.facts.leaders.count(), UNKNOWN)?,
            pushes: Bitmap::new(check.image.text.len())?,
            pops: Bitmap::new(check.image.text.len())?,
            pending: Pending::new(check.image.text.len())?,
            label_depths: filled(check.labels.slots(), UNKNOWN)?,
            pads: 0,
        })
    }

    /// Follows control through one function, gives every leader that is reached its depth, and describes the function.
    pub fn function(&mut self, check: &mut Check, function: Range<usize>, pads: &[Pad]) -> Function {
        let (entry, end) = (function.start, function.end);
        let mut walk = Walk {
            function,
            max_depth: 0,
        };
        self.arrive(check, entry, 0);
        // Control may come from the runtime to each landing pad, with the depth that the pad claims (rule 4 has looked at it).
        while let Some(pad) = pads.get(self.pads) {
            let at = pad.offset.wrapping_sub(check.image.text_address) as usize;
            if at >= end {
                break;
            }
            self.pads += 1;
            let depth = (pad.depth / 8) as u16;
            // Nothing need have been pushed for what a pad claims.
            walk.max_depth = walk.max_depth.max(depth);
            self.arrive(check, at, depth);
        }
        while let Some(start) = self.pending.take() {
            self.run(check, start, &mut walk);
        }
        let address = |at: usize| check.image.text_address.wrapping_add(at as u32);
        Function {
            entry: address(entry),
            end: address(end),
            marked: rule_6_identifiers::is_functions(check.image, check.facts, entry),
            max_depth: u32::from(walk.max_depth) * 8,
        }
    }

    /// Control arrives at a leader. Whether for the first time.
    fn arrives(&mut self, check: &mut Check, at: usize, depth: u16) -> bool {
        let rank = self.leaders.rank(&check.facts.leaders, at);
        match self.depths.get_mut(rank) {
            Some(known) if *known == UNKNOWN => {
                *known = depth;
                return true;
            }
            Some(known) if *known == depth => {}
            _ => check.reject(at, Reason::DepthMismatch),
        }
        false
    }

    /// Control arrives at a leader, and is to be followed from there.
    fn arrive(&mut self, check: &mut Check, at: usize, depth: u16) {
        if self.arrives(check, at, depth) {
            self.pending.insert(at);
        }
    }

    /// Follows control from a leader until it ends or meets what has been visited.
    fn run(&mut self, check: &mut Check, mut at: usize, walk: &mut Walk) {
        let rank = self.leaders.rank(&check.facts.leaders, at);
        let mut depth = self.depths.get(rank).copied().unwrap_or(UNKNOWN);
        loop {
            let (from, note) = (at, check.facts.note(at));
            match note.class() {
                // Most are these two.
                Class::Plain => {}
                Class::Branch => self.jump(check, from, depth, walk),
                Class::Push if depth >= MAX_SLOTS => return check.reject(from, Reason::DepthOverflow),
                Class::Push => {
                    depth += 1;
                    walk.max_depth = walk.max_depth.max(depth);
                    self.pushes.insert(from);
                }
                Class::Pop if depth == 0 => return check.reject(from, Reason::DepthUnderflow),
                Class::Pop => {
                    depth -= 1;
                    self.pops.insert(from);
                }
                Class::Return => {
                    if depth != 0 {
                        check.reject(from, Reason::ReturnDepth);
                    }
                    return;
                }
                Class::Trap => return,
                Class::Jump => return self.jump(check, from, depth, walk),
                // Only a jump is looked at, or what precedes a sequence.
                Class::Sequence => return self.indirect_jump(check, from, depth, walk),
            }
            at = check.facts.looks.next(from + note.len()).unwrap_or(usize::MAX);
            if at >= walk.function.end {
                let last = why::last_before(check.facts, walk.function.end);
                return check.reject(last, Reason::FallsOff);
            }
            if check.facts.leaders.contains(at) && !self.arrives(check, at, depth) {
                return;
            }
        }
    }

    /// A direct jump. Rule 4 has seen that the target is one.
    fn jump(&mut self, check: &mut Check, from: usize, depth: u16, walk: &mut Walk) {
        match rule_4_direct::target(check.image, from, check.facts.note(from)) {
            Some(to) if walk.function.contains(&to) => self.arrive(check, to, depth),
            _ => tail_call(check, from, depth),
        }
    }

    /// A checked jump goes wherever its table leads, or to all labels of its identifier, which are in this function, or to functions.
    fn indirect_jump(&mut self, check: &mut Check, from: usize, depth: u16, walk: &mut Walk) {
        let table = Some(from).filter(|&at| self.tables.contains(at));
        if let Some(table) = table.and_then(|at| Table::of(check.image, check.facts, at)) {
            // Rule 5 has seen that all slots lead to places in this function.
            for slot in table.slots() {
                if let Some(target) = table.target(check.image, slot, &walk.function) {
                    self.arrive(check, target, depth);
                }
            }
            return;
        }
        // The jump ends the sequence (the first pass saw to it); its identifier is 11 bytes back.
        let id = dword(check.image.text, from.saturating_sub(11));
        if id == identifier::FUNCTION {
            return tail_call(check, from, depth);
        }
        // All are in this function (rule 6), or none is.
        let labels = check.labels;
        let (slot, places) = labels.of(id as u16);
        match places.first() {
            None => return check.reject(from, Reason::UnknownLabel),
            Some(&at) if !walk.function.contains(&(at as usize)) => {
                return check.reject(from, Reason::ForeignLabel);
            }
            Some(_) => {}
        }
        match self.label_depths.get_mut(slot) {
            Some(known) if *known == UNKNOWN => *known = depth,
            Some(known) if *known == depth => return,
            _ => return check.reject(from, Reason::DepthMismatch),
        }
        for &at in places {
            self.arrive(check, at as usize, depth);
        }
    }
}

fn tail_call(check: &mut Check, from: usize, depth: u16) {
    if depth != 0 {
        check.reject(from, Reason::TailCallDepth);
    }
}
