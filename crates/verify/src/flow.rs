//! Second stage: functions, direct jumps, and the depth of the control stack (rules 3 to 6).

use crate::holes::hole;
use crate::reason::Reason;
use crate::report::{Function, Image};
use crate::scan::{Class, Note, Rejections, Scan, dword};
use ringfence_isa::{identifier, pad};

/// Most bytes that a function may have on the control stack: one page, so that no guard is ever stepped over
/// and a gate can tell how much room a call needs.
pub(crate) const MAX_DEPTH: u32 = 4096;

/// Depths are kept in slots of 8 bytes.
const UNKNOWN: u16 = u16::MAX;
const MAX_SLOTS: u16 = (MAX_DEPTH / 8) as u16;

pub(crate) struct FlowCheck<'a> {
    image: &'a Image<'a>,
    scan: &'a Scan,
    rejections: &'a mut Rejections,
    /// Places where the runtime may resume, with their depths, in order of address.
    pads: Vec<(usize, u16)>,
    /// Depth at each byte of the function in hand, where an instruction starts.
    depths: Vec<u16>,
    /// Places yet to be visited, with their depths.
    pending: Vec<(usize, u16)>,
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
struct Walk {
    max_depth: u16,
    facts: Note,
    tail_calls: bool,
}

impl<'a> FlowCheck<'a> {
    pub fn new(image: &'a Image<'a>, scan: &'a Scan, rejections: &'a mut Rejections) -> Self {
        let mut pads = Vec::with_capacity(scan.pads.len());
        for pad in &scan.pads {
            let at = pad.offset.wrapping_sub(image.text_address) as usize;
            if pad.depth <= MAX_DEPTH && pad.depth.is_multiple_of(8) || hole!(34) {
                pads.push((at, (pad.depth / 8) as u16));
            } else {
                rejections.add(image, at, pad::LEN, Reason::PadClaim);
            }
        }
        let label_depths = vec![UNKNOWN; scan.labels.slots()];
        FlowCheck {
            image,
            scan,
            rejections,
            pads,
            depths: Vec::new(),
            pending: Vec::new(),
            pending_tables: Vec::new(),
            label_depths,
        }
    }

    /// Checks everything and describes each function.
    pub fn functions(&mut self) -> Vec<Function> {
        let end = self.image.text.len();
        let entries: Vec<usize> = self.scan.entries.iter().collect();
        self.structure(&entries, end);
        // Following control relies on what was just checked.
        if !self.rejections.is_empty() {
            return Vec::new();
        }
        let ends = entries.iter().skip(1).copied().chain([end]);
        entries
            .iter()
            .zip(ends)
            .map(|(&entry, end)| self.function(entry, end))
            .collect()
    }

    fn function(&mut self, entry: usize, end: usize) -> Function {
        let walk = self.walk(entry, end);
        Function {
            entry: self.address(entry),
            end: self.address(end),
            marked: self.scan.notes[entry].class() == Class::FunctionMarker,
            max_depth: u32::from(walk.max_depth) * 8,
            writes: walk.facts.writes(),
            uses_vector: walk.facts.vector(),
            uses_x87: walk.facts.x87(),
            tail_calls: walk.tail_calls,
        }
    }

    /// Entries, direct jumps and labels. What precedes the first entry belongs to no function; nothing
    /// reaches it, but its jumps are checked too.
    fn structure(&mut self, entries: &[usize], end: usize) {
        for &entry in entries {
            let note = self.scan.notes[entry];
            if !note.is_target() && !hole!(32) {
                self.reject(
                    entry,
                    if note.len() == 0 {
                        Reason::EntryTarget
                    } else {
                        note.refusal()
                    },
                );
            }
        }
        for pad in 0..self.pads.len() {
            let (at, _) = self.pads[pad];
            if entries.first().is_none_or(|&first| at < first) {
                self.reject(at, Reason::PadClaim);
            }
        }
        let starts = [0].iter().chain(entries).copied();
        let ends = entries.iter().copied().chain([end]);
        let (mut jump, mut table, mut label) = (0, 0, 0);
        for (start, end) in starts.zip(ends) {
            jump = self.check_jumps(jump, start, end);
            table = self.check_tables(table, start, end);
            label = self.check_labels(label, start, end);
        }
    }

    /// Depth in bytes at the instruction at `at`, where the text is one function of length `end`.
    pub fn depth_at(&mut self, end: usize, at: usize) -> Option<u32> {
        self.walk(0, end);
        let slots = *self.depths.get(at)?;
        (slots != UNKNOWN).then_some(u32::from(slots) * 8)
    }

    /// Rule 4: direct jumps from the function between `entry` and `end` land on its instructions or on entries.
    fn check_jumps(&mut self, mut index: usize, entry: usize, end: usize) -> usize {
        let scan = self.scan;
        while let Some(jump) = scan.jumps.get(index).filter(|j| j.from < end) {
            index += 1;
            let target = usize::try_from(jump.to).ok().filter(|&to| to < scan.notes.len());
            let lands = target.is_some_and(|to| (entry..end).contains(&to) || scan.entries.contains(to));
            match target.filter(|_| lands).map(|to| scan.notes[to]) {
                Some(note) if note.is_target() => {}
                _ if hole!(12) && lands => {}
                Some(note) if note.len() != 0 => self.reject(jump.from, note.refusal()),
                _ => self.reject(jump.from, Reason::JumpTarget),
            }
        }
        index
    }

    /// Rule 5: the function that jumps through a table has the table in it, and all slots lead to its instructions.
    fn check_tables(&mut self, mut index: usize, entry: usize, end: usize) -> usize {
        let scan = self.scan;
        while let Some(table) = scan.tables.get(index).filter(|t| t.from < end) {
            index += 1;
            let last = if hole!(39) { 0 } else { table.more };
            let bad = (0..=last).find_map(|n| {
                let (start, end) = if hole!(42) {
                    (0, self.image.text.len())
                } else {
                    (entry, end)
                };
                let Some(target) = table.target(self.image.text, start, end, n) else {
                    return Some(Reason::TablePlace);
                };
                if self.over_identifier(table.slot(n)) && !hole!(43) {
                    return Some(Reason::TablePlace);
                }
                let own = usize::try_from(target)
                    .ok()
                    .filter(|at| (entry..end).contains(at));
                match own.map(|at| scan.notes[at]) {
                    Some(note) if note.is_target() => None,
                    Some(note) if note.len() != 0 => Some(note.refusal()),
                    None if hole!(40) => None,
                    _ => Some(Reason::TableSlot),
                }
            });
            if let Some(reason) = bad {
                self.reject(table.from, reason);
            }
        }
        index
    }

    /// Whether a distance at `slot` has bytes of a marker's identifier. Text never changes but for these: when code is linked into
    /// a living domain they are written after the rest, one by one, and a jump of its could read something else until then.
    fn over_identifier(&self, slot: i64) -> bool {
        let within = (slot + i64::from(self.image.text_address)) % identifier::MARKER_LEN as i64;
        let marker = usize::try_from(slot - within)
            .ok()
            .and_then(|at| self.scan.notes.get(at));
        // The identifier is the marker's second half, and a distance as long as it.
        let class = marker.map(|note| note.class());
        within > 0 && matches!(class, Some(Class::FunctionMarker | Class::LabelMarker))
    }

    /// Rule 6: all labels of one number are in one function.
    fn check_labels(&mut self, mut index: usize, entry: usize, end: usize) -> usize {
        let scan = self.scan;
        while let Some(label) = scan.labels.get(index).filter(|l| l.at < end) {
            index += 1;
            if scan.labels.previous(label).is_some_and(|p| p.at < entry) && !hole!(17) {
                self.reject(label.at, Reason::SharedLabel);
            }
        }
        index
    }

    /// Follows control through one function and gives every reachable instruction its depth.
    fn walk(&mut self, entry: usize, end: usize) -> Walk {
        let mut walk = Walk {
            max_depth: 0,
            facts: Note::default(),
            tail_calls: false,
        };
        self.depths.clear();
        self.depths.resize(end - entry, UNKNOWN);
        self.pending.clear();
        self.pending_tables.clear();
        self.pending.push((entry, 0));
        let first = self.pads.partition_point(|pad| pad.0 < entry);
        let pads = self.pads[first..].iter().take_while(|pad| pad.0 < end);
        if !hole!(33) {
            // Nothing need have been pushed for what a pad claims.
            walk.max_depth = pads.clone().map(|pad| pad.1).max().unwrap_or(0);
            self.pending.extend(pads);
        }
        while let Some((start, depth)) = self.pending.pop().or_else(|| self.next_slot(entry, end)) {
            self.run(entry, end, start, depth, &mut walk);
        }
        walk
    }

    /// The next slot of a table that was jumped through: where it leads, and the jump's depth.
    fn next_slot(&mut self, entry: usize, end: usize) -> Option<(usize, u16)> {
        loop {
            let pending = self.pending_tables.last_mut()?;
            let (table, n, depth) = (&self.scan.tables[pending.index], pending.next, pending.depth);
            pending.next += 1;
            if n == table.more {
                self.pending_tables.pop();
            }
            // [`Self::check_tables`] has seen that all slots lead to places in this function.
            let target = table.target(self.image.text, entry, end, n);
            let inside = target
                .and_then(|to| usize::try_from(to).ok())
                .filter(|at| (entry..end).contains(at));
            if let Some(at) = inside {
                return Some((at, depth));
            }
        }
    }

    /// Follows control from `at` until it ends or meets what has been visited.
    fn run(&mut self, entry: usize, end: usize, mut at: usize, mut depth: u16, walk: &mut Walk) {
        let scan = self.scan;
        let mut from = at;
        loop {
            if at >= end && hole!(14) {
                return;
            }
            if at >= end {
                return self.reject(from, Reason::FallsOff);
            }
            let known = &mut self.depths[at - entry];
            if *known != UNKNOWN {
                if *known != depth && !hole!(10) {
                    self.reject(at, Reason::DepthMismatch);
                }
                return;
            }
            *known = depth;
            let note = scan.notes[at];
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
                Class::Push => {
                    depth += 1;
                    if depth > MAX_SLOTS {
                        return self.reject(from, Reason::DepthOverflow);
                    }
                    walk.max_depth = walk.max_depth.max(depth);
                }
                Class::Pop => match depth.checked_sub(1) {
                    Some(less) => depth = less,
                    None if hole!(9) => {}
                    None => return self.reject(from, Reason::DepthUnderflow),
                },
                Class::Return => {
                    if depth != 0 && !hole!(8) {
                        self.reject(from, Reason::ReturnDepth);
                    }
                    return;
                }
                Class::Trap => return,
                Class::Branch => self.jump(entry, end, from, at, depth, walk),
                Class::Jump => return self.jump(entry, end, from, at, depth, walk),
                Class::IndirectJump => return self.indirect_jump(entry, end, from, depth, walk),
            }
        }
    }

    /// A direct jump at `from` that ends at `next`. [`Self::check_jumps`] has seen that the target is one.
    fn jump(&mut self, entry: usize, end: usize, from: usize, next: usize, depth: u16, walk: &mut Walk) {
        let code = &self.image.text[from..next];
        let distance = match code {
            [_, distance] => i64::from(*distance as i8),
            _ => i64::from(dword(code, code.len().saturating_sub(4)) as i32),
        };
        let to = usize::try_from(next as i64 + distance).unwrap_or(usize::MAX);
        if (entry..end).contains(&to) {
            self.pending.push((to, depth));
        } else {
            self.tail_call(from, depth, walk);
        }
    }

    fn tail_call(&mut self, from: usize, depth: u16, walk: &mut Walk) {
        walk.tail_calls = true;
        if depth != 0 && !hole!(11) {
            self.reject(from, Reason::TailCallDepth);
        }
    }

    /// Rule 5: a checked jump goes wherever its table leads, or to all labels of its identifier, which are in this function, or to
    /// functions.
    fn indirect_jump(&mut self, entry: usize, end: usize, from: usize, depth: u16, walk: &mut Walk) {
        let scan = self.scan;
        if let Ok(index) = scan.tables.binary_search_by_key(&from, |t| t.from) {
            let depth = if hole!(41) { 0 } else { depth };
            self.pending_tables.push(PendingTable {
                index,
                next: 0,
                depth,
            });
            return;
        }
        // The jump ends the sequence (the first stage saw to it); its identifier is 11 bytes back.
        let id = dword(self.image.text, from.saturating_sub(11));
        if id == identifier::FUNCTION {
            return self.tail_call(from, depth, walk);
        }
        let Some((slot, mut label)) = scan.labels.latest(id as u16) else {
            return self.reject(from, Reason::UnknownLabel);
        };
        if !(entry..end).contains(&label.at) && hole!(29) {
            return;
        }
        if !(entry..end).contains(&label.at) {
            return self.reject(from, Reason::ForeignLabel);
        }
        match self.label_depths[slot] {
            UNKNOWN => self.label_depths[slot] = depth,
            known if known == depth => return,
            _ => return self.reject(from, Reason::DepthMismatch),
        }
        loop {
            if (entry..end).contains(&label.at) {
                self.pending.push((label.at, depth));
            }
            match scan.labels.previous(label) {
                Some(previous) => label = previous,
                None => return,
            }
        }
    }

    fn reject(&mut self, at: usize, reason: Reason) {
        let len = self.scan.notes[at].len();
        self.rejections.add(self.image, at, len, reason);
    }

    fn address(&self, at: usize) -> u32 {
        self.image.text_address.wrapping_add(at as u32)
    }
}
