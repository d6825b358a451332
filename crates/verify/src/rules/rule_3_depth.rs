//! Rule 3: the depth of the control stack, by following control through each function once.

use crate::check::Check;
use crate::depths::Depths;
use crate::notes::{Class, NoMemory, Note, dword, filled, push};
use crate::reason::Reason;
use crate::report::Function;
use crate::rules::rule_4_direct::{self, MAX_DEPTH};
use crate::rules::rule_5_tables;
use alloc::vec::Vec;
use core::ops::Range;
use ringfence_isa::identifier;

/// Depths are kept in slots of 8 bytes.
const UNKNOWN: u16 = u16::MAX;
const MAX_SLOTS: u16 = (MAX_DEPTH / 8) as u16;

/// Follows control. One is used for all functions, so that its lists are.
pub(crate) struct Walker {
    /// Depth at each byte of the function in hand, where an instruction starts.
    depths: Vec<u16>,
    /// A bit for each byte of it, set where control came from elsewhere or the depth changed: nowhere else can the depth
    /// differ from that of the instruction before.
    changes: Vec<u64>,
    /// Depths of all functions so far.
    pub found: Depths,
    /// Places yet to be visited, with their depths.
    pending: Vec<(u32, u16)>,
    /// Tables are taken slot by slot, so that what is pending does not grow with them.
    pending_tables: Vec<PendingTable>,
    /// For each label number whose jumps have been met: their depth.
    label_depths: Vec<u16>,
}

/// A table whose slots are yet to be visited: by index, the next of them, and the jump's depth.
struct PendingTable {
    index: usize,
    next: u16,
    depth: u16,
}

/// What walking a function shows.
#[derive(Default)]
struct Walk {
    max_depth: u16,
    facts: Note,
    tail_calls: bool,
}

impl Walker {
    pub fn new(labels: usize) -> Result<Walker, NoMemory> {
        Ok(Walker {
            depths: Vec::new(),
            changes: Vec::new(),
            found: Depths::default(),
            pending: Vec::new(),
            pending_tables: Vec::new(),
            label_depths: filled(labels, UNKNOWN)?,
        })
    }

    /// Notes the depths of the function at `entry`, which was walked.
    fn keep_depths(&mut self, entry: usize) -> Result<(), NoMemory> {
        for (word, &bits) in self.changes.iter().enumerate() {
            let mut rest = bits;
            while rest != 0 {
                let at = 64 * word + rest.trailing_zeros() as usize;
                rest &= rest - 1;
                match self.depths.get(at) {
                    Some(&slots) if slots != UNKNOWN => {
                        self.found.add(entry + at, slots).map_err(|_| NoMemory)?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The depth at this byte of the function in hand may differ from that before.
    fn mark(&mut self, at: usize) {
        if let Some(word) = self.changes.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    /// Follows control through one function, gives every reachable instruction its depth, and describes it.
    pub fn function(&mut self, check: &mut Check, function: Range<usize>) -> Result<Function, NoMemory> {
        let walk = self.walk(check, &function)?;
        self.keep_depths(function.start)?;
        let address = |at: usize| check.image.text_address.wrapping_add(at as u32);
        Ok(Function {
            entry: address(function.start),
            end: address(function.end),
            marked: check.facts.notes[function.start].class() == Class::FunctionMarker,
            max_depth: u32::from(walk.max_depth) * 8,
            writes: walk.facts.writes(),
            uses_vector: walk.facts.vector(),
            uses_x87: walk.facts.x87(),
            tail_calls: walk.tail_calls,
        })
    }

    fn walk(&mut self, check: &mut Check, function: &Range<usize>) -> Result<Walk, NoMemory> {
        let mut walk = Walk::default();
        self.depths.clear();
        self.depths.try_reserve(function.len()).map_err(|_| NoMemory)?;
        self.depths.resize(function.len(), UNKNOWN);
        self.changes.clear();
        let words = function.len().div_ceil(64);
        self.changes.try_reserve(words).map_err(|_| NoMemory)?;
        self.changes.resize(words, 0);
        self.pending.clear();
        self.pending_tables.clear();
        push(&mut self.pending, (function.start as u32, 0))?;
        self.start_at_pads(check, function, &mut walk)?;
        while let Some((start, depth)) = self.pending.pop().or_else(|| self.next_slot(check, function)) {
            self.run(check, function, start as usize, depth, &mut walk)?;
        }
        Ok(walk)
    }

    /// Control may come from the runtime to each landing pad, with the depth that the pad claims (rule 4 has looked at it).
    fn start_at_pads(
        &mut self,
        check: &Check,
        function: &Range<usize>,
        walk: &mut Walk,
    ) -> Result<(), NoMemory> {
        let pads = &check.facts.pads;
        let offset = |at: u32| at.wrapping_sub(check.image.text_address);
        let first = pads.partition_point(|pad| (offset(pad.offset) as usize) < function.start);
        for pad in pads
            .iter()
            .skip(first)
            .take_while(|pad| (offset(pad.offset) as usize) < function.end)
        {
            let depth = (pad.depth / 8) as u16;
            // Nothing need have been pushed for what a pad claims.
            walk.max_depth = walk.max_depth.max(depth);
            push(&mut self.pending, (offset(pad.offset), depth))?;
        }
        Ok(())
    }

    /// The next slot of a table that was jumped through: where it leads, and the jump's depth.
    fn next_slot(&mut self, check: &Check, function: &Range<usize>) -> Option<(u32, u16)> {
        loop {
            let pending = self.pending_tables.last_mut()?;
            let (table, n, depth) = (&check.facts.tables[pending.index], pending.next, pending.depth);
            pending.next += 1;
            if n == table.more {
                self.pending_tables.pop();
            }
            // Rule 5 has seen that all slots lead to places in this function.
            let target = rule_5_tables::target(check.image, table, n, function);
            let inside = target
                .and_then(|to| usize::try_from(to).ok())
                .filter(|at| function.contains(at));
            if let Some(at) = inside {
                return Some((at as u32, depth));
            }
        }
    }

    /// Follows control from `at` until it ends or meets what has been visited.
    fn run(
        &mut self,
        check: &mut Check,
        function: &Range<usize>,
        mut at: usize,
        mut depth: u16,
        walk: &mut Walk,
    ) -> Result<(), NoMemory> {
        let facts = check.facts;
        let mut from = at;
        self.mark(at.wrapping_sub(function.start));
        loop {
            let depths = at
                .checked_sub(function.start)
                .and_then(|at| self.depths.get_mut(at));
            let Some(known) = depths else {
                check.reject(from, Reason::FallsOff);
                return Ok(());
            };
            if *known != UNKNOWN {
                if *known != depth {
                    check.reject(at, Reason::DepthMismatch);
                }
                return Ok(());
            }
            *known = depth;
            let note = facts.notes[at];
            walk.facts = walk.facts.or(note);
            from = at;
            at += note.len();
            // Nearly always; and the processor cannot know where a match goes.
            if note.goes_on() {
                continue;
            }
            match note.class() {
                Class::Plain | Class::FunctionMarker | Class::LabelMarker => {}
                Class::Interior | Class::IndirectCall | Class::Call => {}
                Class::Push if depth == MAX_SLOTS => {
                    check.reject(from, Reason::DepthOverflow);
                    return Ok(());
                }
                Class::Push => {
                    depth += 1;
                    walk.max_depth = walk.max_depth.max(depth);
                    self.mark(at - function.start);
                }
                Class::Pop => match depth.checked_sub(1) {
                    Some(less) => {
                        depth = less;
                        self.mark(at - function.start);
                    }
                    None => {
                        check.reject(from, Reason::DepthUnderflow);
                        return Ok(());
                    }
                },
                Class::Return => {
                    if depth != 0 {
                        check.reject(from, Reason::ReturnDepth);
                    }
                    return Ok(());
                }
                Class::Trap => return Ok(()),
                Class::Branch => self.jump(check, function, from, depth, walk)?,
                Class::Jump => return self.jump(check, function, from, depth, walk),
                Class::IndirectJump => return self.indirect_jump(check, function, from, depth, walk),
            }
        }
    }

    /// A direct jump. Rule 4 has seen that the target is one.
    fn jump(
        &mut self,
        check: &mut Check,
        function: &Range<usize>,
        from: usize,
        depth: u16,
        walk: &mut Walk,
    ) -> Result<(), NoMemory> {
        match rule_4_direct::target(check.image, from, check.facts.notes[from]) {
            Some(to) if function.contains(&to) => push(&mut self.pending, (to as u32, depth)),
            _ => {
                tail_call(check, from, depth, walk);
                Ok(())
            }
        }
    }

    /// A checked jump goes wherever its table leads, or to all labels of its identifier, which are in this function, or to functions.
    fn indirect_jump(
        &mut self,
        check: &mut Check,
        function: &Range<usize>,
        from: usize,
        depth: u16,
        walk: &mut Walk,
    ) -> Result<(), NoMemory> {
        let facts = check.facts;
        if let Ok(index) = facts.tables.binary_search_by_key(&from, |t| t.from as usize) {
            let next = 0;
            return push(&mut self.pending_tables, PendingTable { index, next, depth });
        }
        // The jump ends the sequence (the first pass saw to it); its identifier is 11 bytes back.
        let id = dword(check.image.text, from.saturating_sub(11));
        if id == identifier::FUNCTION {
            tail_call(check, from, depth, walk);
            return Ok(());
        }
        let Some(slot) = check.chains.slot(id as u16) else {
            check.reject(from, Reason::UnknownLabel);
            return Ok(());
        };
        let chains = check.chains;
        if chains
            .places(slot)
            .next()
            .is_none_or(|at| !function.contains(&at))
        {
            check.reject(from, Reason::ForeignLabel);
            return Ok(());
        }
        match self.label_depths[slot] {
            UNKNOWN => self.label_depths[slot] = depth,
            known if known == depth => return Ok(()),
            _ => {
                check.reject(from, Reason::DepthMismatch);
                return Ok(());
            }
        }
        // All are in this function (rule 6).
        chains
            .places(slot)
            .filter(|at| function.contains(at))
            .try_for_each(|at| push(&mut self.pending, (at as u32, depth)))
    }
}

fn tail_call(check: &mut Check, from: usize, depth: u16, walk: &mut Walk) {
    walk.tail_calls = true;
    if depth != 0 {
        check.reject(from, Reason::TailCallDepth);
    }
}
