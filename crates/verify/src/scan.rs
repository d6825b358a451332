//! First stage: one linear pass over the text. It decodes every byte exactly once, checks all that can be judged of an
//! instruction by itself (rules 1, 2, 5 to 9), and notes down what the second stage needs.

use crate::decode::{self, Access, Flow, Instruction, Memory, WINDOW, decode, decode_window};
use crate::holes::hole;
use crate::quick::quick;
use crate::reason::Reason;
use crate::report::{Image, Pad, RegSet, Rejected, Rejection, Rules, Segment, SegmentKind};
use ringfence_isa::{Isolation, identifier, pad, sequence, window};
use std::hint::select_unpredictable;
use std::ops::RangeInclusive;

/// What the second stage has to know of an instruction, and of bytes that do not start one.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Class {
    // After these, control goes on with the same depth; see [`Note::goes_on`].
    Plain,
    FunctionMarker,
    LabelMarker,
    /// Inside a fixed sequence: nothing may jump here.
    Interior,
    IndirectCall,
    Call,
    // After these it may not.
    Jump,
    Branch,
    Push,
    Pop,
    Return,
    IndirectJump,
    Trap,
}

/// The side array's element for one byte of text: 0 inside an instruction; at its start its length (bits
/// 0 to 3), its [`Class`] (4 to 7), facts for the report (8 to 13, 15), and whether it is where `r11` holds (14), for the bytes
/// inside of it as well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Note(u16);

impl Note {
    const CLASSES: [Class; 16] = {
        use Class::*;
        [
            Plain,
            FunctionMarker,
            LabelMarker,
            Interior,
            IndirectCall,
            Call,
            Jump,
            Branch,
            Push,
            Pop,
            Return,
            IndirectJump,
            Trap,
            Interior,
            Interior,
            Interior,
        ]
    };
    /// `int3`.
    const INT3: Note = Note(1 | (Class::Trap as u16) << 4);
    const VECTOR: u16 = 1 << 9;
    const X87: u16 = 1 << 11;
    /// Behind a move to `r11d` and not behind the last operand through `r14` that relies on it.
    const HELD: u16 = 1 << 14;
    /// The classes behind which nothing is known of `r11`, as a set.
    pub const ENDING: u16 = 1 << Class::FunctionMarker as u16
        | 1 << Class::LabelMarker as u16
        | 1 << Class::IndirectCall as u16
        | 1 << Class::Call as u16
        | 1 << Class::Jump as u16
        | 1 << Class::Return as u16
        | 1 << Class::IndirectJump as u16
        | 1 << Class::Trap as u16;

    /// Callee-saved registers as facts: `rbx` and `rbp` are bits 8 and 10, `r12`, `r13` and `r15` their own numbers.
    #[inline(always)]
    fn facts_of(written: u32) -> u16 {
        ((written & 0x28) << 5 | written & 0xB000) as u16
    }

    pub fn new(i: &Instruction, class: Class) -> Note {
        let note = Note::from_parts(i.len.into(), Note::of_class(class, i.vector), i.written.0.into());
        Note(note.0 | if i.x87 { Note::X87 } else { 0 })
    }

    /// What all instructions of a class have in common, without or with vector registers.
    pub const fn of_class(class: Class, vector: bool) -> u16 {
        (class as u16) << 4 | if vector { Note::VECTOR } else { 0 }
    }

    /// `class` is from [`Self::of_class`].
    #[inline(always)]
    pub fn from_parts(len: usize, class: u16, written: u32) -> Note {
        Note(len as u16 | class | Note::facts_of(written))
    }

    /// Length of the instruction that starts here, 0 if none does.
    pub fn len(self) -> usize {
        usize::from(self.0 & 15)
    }

    pub fn class(self) -> Class {
        Note::CLASSES[usize::from(self.0 >> 4 & 15)]
    }

    /// Whether control goes on to the next instruction, with the same depth.
    #[inline(always)]
    pub fn goes_on(self) -> bool {
        (self.0 >> 4 & 15) < Class::Jump as u16
    }

    /// Whether this is a direct jump or call.
    #[inline(always)]
    pub fn is_transfer(self) -> bool {
        (Class::Call as u16..=Class::Branch as u16).contains(&(self.0 >> 4 & 15))
    }

    /// Whether an instruction starts here that control may be sent to.
    pub fn is_target(self) -> bool {
        self.0 & 15 != 0
            && (self.0 & Note::HELD == 0 || hole!(51))
            && (hole!(13)
                || !matches!(
                    self.class(),
                    Class::Interior | Class::IndirectJump | Class::IndirectCall
                ))
    }

    /// Why control may not be sent to the instruction that starts here, if [`Self::is_target`] says so.
    pub fn refusal(self) -> Reason {
        if self.0 & Note::HELD != 0 {
            Reason::IntoHeld
        } else {
            Reason::IntoSequence
        }
    }

    /// The facts of both; of the rest nothing is known.
    pub fn or(self, other: Note) -> Note {
        Note(self.0 | other.0)
    }

    /// Callee-saved registers that are written.
    pub fn writes(self) -> RegSet {
        RegSet(self.0 >> 5 & 0x28 | self.0 & 0xB000)
    }

    pub fn vector(self) -> bool {
        self.0 & Note::VECTOR != 0
    }

    pub fn x87(self) -> bool {
        self.0 & Note::X87 != 0
    }

    pub fn set_interior(&mut self) {
        self.0 = self.0 & !0xF0 | (Class::Interior as u16) << 4;
    }
}

/// What is known of `r11` in the straight line of code that is being scanned (rule 1).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Line(usize);

impl Line {
    /// Nothing.
    const LOST: Line = Line(usize::MAX);

    /// The instruction at `at` has an operand that relies on `r11`: nothing may be sent to what stands between it and the move to
    /// `r11d`, nor to itself. Each note is looked at once, however many operands there are.
    #[inline(always)]
    fn rely(self, notes: &mut [Note], at: usize) -> Line {
        let last = if hole!(60) { at } else { at + 1 };
        let Some(between) = notes.get_mut(self.0..last) else {
            return self;
        };
        between.iter_mut().for_each(|note| note.0 |= Note::HELD);
        Line(last)
    }

    /// What is known behind an instruction that ends at `next`.
    #[inline(always)]
    fn behind(self, r11: R11, next: usize) -> Line {
        let lost = 0_usize.wrapping_sub(usize::from(r11.lost));
        select_unpredictable(r11.holds, Line(next), Line(self.0 | lost))
    }
}

/// What an instruction has to do with `r11`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct R11 {
    /// Its operand is inside the window only if `r11` is below 2³².
    pub relies: bool,
    /// Behind it nothing is known of `r11`: it writes it, in whole or in part, or control does not just go on.
    pub lost: bool,
    /// Except that it makes `r11` a number below 2³².
    pub holds: bool,
}

impl R11 {
    /// Whether an instruction of this class ends all knowledge, if its entry in [`Note::ENDING`] says so.
    #[inline(always)]
    pub fn ends(class: impl Fn() -> Class, ending: bool) -> bool {
        let spared = match class() {
            Class::Call | Class::IndirectCall => hole!(48),
            Class::FunctionMarker | Class::LabelMarker => hole!(49),
            Class::Jump | Class::Return | Class::Trap => hole!(58),
            _ => false,
        };
        ending && !spared
    }

    /// `free`: its operand may be anywhere.
    pub fn of(i: &Instruction, class: Class, free: bool) -> R11 {
        R11 {
            relies: i.memory == Memory::Held && !free,
            lost: i.written.contains(decode::R11) && !hole!(50)
                || R11::ends(|| class, Note::ENDING >> class as u16 & 1 == 1),
            holds: i.holds,
        }
    }
}

/// A set of offsets into the text.
pub(crate) struct Bitmap(Vec<u64>);

impl Bitmap {
    fn new(len: usize) -> Bitmap {
        Bitmap(vec![0; len / 64 + 1])
    }

    pub fn insert(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub fn contains(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 == 1)
    }

    /// All members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros() as usize;
                rest &= rest.wrapping_sub(1);
                (bit < 64).then_some(i * 64 + bit)
            })
        })
    }
}

/// A direct jump, by offsets into the text. The target may be anywhere.
pub(crate) struct Jump {
    pub from: usize,
    pub to: i64,
}

/// A jump through a table, by offsets into the text. The table may be anywhere.
pub(crate) struct Table {
    pub from: usize,
    /// Where the first distance stands.
    pub at: i64,
    /// How many follow it.
    pub more: u16,
}

impl Table {
    /// Where slot `n` is, if anywhere.
    pub fn slot(&self, n: u16) -> i64 {
        self.at + i64::from(n) * sequence::SLOT_STEP as i64
    }

    /// Where slot `n` leads, if it is inside of `text` between `start` and `end`.
    pub fn target(&self, text: &[u8], start: usize, end: usize, n: u16) -> Option<i64> {
        let place = usize::try_from(self.slot(n))
            .ok()
            .filter(|&p| p >= start && p + 4 <= end)?;
        Some(self.at + i64::from(dword(text, place) as i32))
    }
}

/// The label markers of the text.
#[derive(Default)]
pub(crate) struct Labels {
    /// In order of address.
    list: Vec<Label>,
    /// Smallest number that the module may use.
    first: u16,
    /// For each number from `first` on, one more than the index of its latest marker; 0 for none.
    latest: Vec<u32>,
}

/// A label marker. Those with the same number form a chain, latest first.
pub(crate) struct Label {
    pub at: usize,
    /// One more than the index of the marker before; 0 for none.
    previous: u32,
}

impl Labels {
    fn add(&mut self, at: usize, number: u16, allowed: &RangeInclusive<u16>) {
        if self.latest.is_empty() {
            self.first = *allowed.start();
            self.latest = vec![0; allowed.len()];
        }
        if let Some(latest) = self.latest.get_mut(usize::from(number.wrapping_sub(self.first))) {
            self.list.push(Label {
                at,
                previous: *latest,
            });
            *latest = self.list.len() as u32;
        }
    }

    pub fn get(&self, index: usize) -> Option<&Label> {
        self.list.get(index)
    }

    /// The marker before `label` with the same number.
    pub fn previous(&self, label: &Label) -> Option<&Label> {
        self.list.get((label.previous as usize).checked_sub(1)?)
    }

    /// A small index for each number that may occur, and the latest marker that carries it.
    pub fn latest(&self, number: u16) -> Option<(usize, &Label)> {
        let slot = usize::from(number.wrapping_sub(self.first));
        let index = (*self.latest.get(slot)? as usize).checked_sub(1)?;
        Some((slot, self.list.get(index)?))
    }

    /// How many different indices [`Self::latest`] can return.
    pub fn slots(&self) -> usize {
        self.latest.len()
    }

    /// All numbers that occur, ascending.
    pub fn numbers(&self) -> Vec<u16> {
        let numbered = self.latest.iter().zip(self.first..=u16::MAX);
        numbered
            .filter(|(latest, _)| **latest != 0)
            .map(|(_, number)| number)
            .collect()
    }
}

/// What the first stage found. All offsets are from the start of the text.
pub(crate) struct Scan {
    pub notes: Vec<Note>,
    pub entries: Bitmap,
    pub jumps: Vec<Jump>,
    /// In order of address, as the jumps are.
    pub tables: Vec<Table>,
    pub labels: Labels,
    /// What the text says of its landing pads, in order of address.
    pub pads: Vec<Pad>,
    pub features: u32,
    pub mentions: RegSet,
    pub instructions: u64,
}

/// Collects rejections up to the limit.
#[derive(Default)]
pub(crate) struct Rejections {
    list: Vec<Rejection>,
    truncated: bool,
}

impl Rejections {
    pub fn add(&mut self, image: &Image, at: usize, len: usize, reason: Reason) {
        if self.list.len() < Rejected::LIMIT {
            let rest = image.text.get(at..).unwrap_or_default();
            let code = if len == 0 {
                rest
            } else {
                &rest[..len.min(rest.len())]
            };
            self.list.push(Rejection::new(
                image.text_address.wrapping_add(at as u32),
                reason,
                code,
            ));
        } else {
            self.truncated = true;
        }
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub fn into_rejected(self) -> Rejected {
        Rejected {
            rejections: self.list,
            truncated: self.truncated,
        }
    }
}

pub(crate) struct Scanner<'a> {
    pub image: &'a Image<'a>,
    rules: &'a Rules,
    /// Sorted by start.
    segments: Vec<Segment>,
    line: Line,
    pub scan: Scan,
    pub rejections: Rejections,
}

impl<'a> Scanner<'a> {
    pub fn new(image: &'a Image<'a>, rules: &'a Rules) -> Self {
        let mut scanner = Scanner {
            image,
            rules,
            segments: image.segments.to_vec(),
            line: Line::LOST,
            scan: Scan {
                notes: vec![Note::default(); image.text.len()],
                entries: Bitmap::new(image.text.len()),
                jumps: Vec::new(),
                tables: Vec::new(),
                labels: Labels::default(),
                pads: Vec::new(),
                features: 0,
                mentions: RegSet::default(),
                instructions: 0,
            },
            rejections: Rejections::default(),
        };
        scanner.check_layout();
        scanner
    }

    /// The segments must not overlap, and only text may lie where the text is: rule 1 relies on it.
    fn check_layout(&mut self) {
        self.segments.retain(|s| s.len != 0);
        self.segments.sort_by_key(|s| s.start);
        let text = u64::from(self.image.text_address);
        let text_end = text + self.image.text.len() as u64;
        let limit = u64::from(window::IMAGES_END - window::IMAGES);
        let mut end = 0;
        let mut fits = true;
        for s in &self.segments {
            let (start, next) = (u64::from(s.start), u64::from(s.start) + u64::from(s.len));
            let hits_text = start < text_end && text < next;
            fits &= end <= start && next <= limit && (s.kind == SegmentKind::Text || !hits_text || hole!(31));
            end = next;
        }
        if !fits {
            self.rejections.add(self.image, 0, 0, Reason::Segments);
        }
    }

    pub fn run(mut self) -> (Scan, Rejections) {
        let text = self.image.text;
        let mut at = 0;
        let mut lost = false;
        while at < text.len() {
            at = self.usual(at);
            if at == text.len() {
                break;
            }
            let decoded = match text[at..].first_chunk::<WINDOW>() {
                Some(window) => decode_window(window),
                None => decode(&text[at..]),
            };
            match decoded {
                Ok(i) => {
                    self.instruction(at, &i);
                    at += usize::from(i.len);
                }
                Err(reason) => {
                    self.rejections.add(self.image, at, 0, reason);
                    at = self.resume_after(at);
                    self.line = Line::LOST;
                    lost = true;
                }
            }
        }
        if !lost {
            self.hidden_identifiers();
        }
        (self.scan, self.rejections)
    }

    /// After something that does not decode nothing is known of where instructions start, until the next marker of a
    /// function. The verdict is decided; this is for the messages.
    fn resume_after(&self, at: usize) -> usize {
        let marker = identifier::marker(identifier::FUNCTION);
        let text = self.image.text;
        let first = at / 8 * 8 + 8;
        (first..text.len())
            .step_by(8)
            .find(|&i| text[i..].starts_with(&marker))
            .unwrap_or(text.len())
    }

    pub fn reject(&mut self, at: usize, i: &Instruction, reason: Reason) {
        self.rejections.add(self.image, at, usize::from(i.len), reason);
    }

    /// Takes what the quick decoder knows, from `at` on, and returns where it ends.
    fn usual(&mut self, mut at: usize) -> usize {
        let text = self.image.text;
        let free = self.rules.isolation == Isolation::Integrity;
        let scan = &mut self.scan;
        let notes = &mut scan.notes[..text.len()];
        let (mut instructions, mut mentioned) = (0, 0);
        let mut line = self.line;
        while let Some(ahead) = text[at..].first_chunk() {
            // Padding comes in long runs, and makes up most of a small function's page.
            if ahead[0] == 0xCC {
                let run = text[at..].iter().take_while(|&&byte| byte == 0xCC).count();
                notes[at..at + run].fill(Note::INT3);
                instructions += run as u64;
                at += run;
                if R11::ends(|| Class::Trap, true) {
                    line = Line::LOST;
                }
                continue;
            }
            let Some(q) = quick(ahead, free) else { break };
            if q.r11.relies && line == Line::LOST && !hole!(53) {
                break;
            }
            if q.note.is_transfer() {
                let to = (at + q.len) as i64 + i64::from(q.distance);
                if q.note.class() != Class::Call {
                    scan.jumps.push(Jump { from: at, to });
                } else if let Some(to) = usize::try_from(to).ok().filter(|&to| to < text.len()) {
                    scan.entries.insert(to);
                } else {
                    break;
                }
            }
            notes[at] = q.note;
            if q.r11.relies {
                line = line.rely(notes, at);
            }
            instructions += 1;
            mentioned |= q.mentioned;
            at += q.len;
            line = line.behind(q.r11, at);
        }
        self.line = line;
        scan.instructions += instructions;
        scan.mentions.0 |= mentioned as u16;
        at
    }

    #[inline(always)]
    fn instruction(&mut self, at: usize, i: &Instruction) {
        self.scan.instructions += 1;
        self.scan.features |= u32::from(i.features);
        self.scan.mentions = self.scan.mentions.or(i.mentioned);
        if i.written.contains(14) {
            self.reject(at, i, Reason::WindowBase);
        }
        let read = i.access == Access::Read || hole!(21);
        let free_load = self.rules.isolation == Isolation::Integrity && read;
        let relies = i.memory == Memory::Held && !free_load;
        if i.memory == Memory::Rip {
            self.rip_relative(at, i);
        } else if i.memory == Memory::Free && !free_load {
            self.reject(at, i, Reason::Unconfined);
        } else if relies && self.line == Line::LOST && !hole!(53) {
            self.reject(at, i, Reason::NotHeld);
        }
        if i.x87 && !self.rules.allow_x87 {
            self.reject(at, i, Reason::X87Refused);
        }
        if i.time_stamp && !self.rules.allow_tsc {
            self.reject(at, i, Reason::TimeStamp);
        }
        let class = match i.flow {
            Flow::Next => self.marker(at, i),
            Flow::Push => Class::Push,
            Flow::Pop => Class::Pop,
            Flow::Return => Class::Return,
            Flow::Trap => Class::Trap,
            Flow::Jump | Flow::Branch => {
                let to = (at + usize::from(i.len)) as i64 + i64::from(i.displacement);
                self.scan.jumps.push(Jump { from: at, to });
                if i.flow == Flow::Jump {
                    Class::Jump
                } else {
                    Class::Branch
                }
            }
            Flow::Call => {
                self.direct_call(at, i);
                Class::Call
            }
            Flow::IndirectJump => self.indirect(at, i, sequence::JMP, Class::IndirectJump),
            Flow::IndirectCall => self.indirect(at, i, sequence::CALL, Class::IndirectCall),
            Flow::String => self.string(at, i),
        };
        self.scan.notes[at] = Note::new(i, class);
        if relies {
            self.line = self.line.rely(&mut self.scan.notes, at);
        }
        self.line = self
            .line
            .behind(R11::of(i, class, free_load), at + usize::from(i.len));
    }

    /// Rule 1 for RIP-relative operands: the whole access in one segment, stores in data only.
    fn rip_relative(&mut self, at: usize, i: &Instruction) {
        let next = i64::from(self.image.text_address) + (at + usize::from(i.len)) as i64;
        let start = next + i64::from(i.displacement);
        let end = start + i64::from(i.size);
        let after = self.segments.partition_point(|s| i64::from(s.start) <= start);
        let segment = self.segments[..after].last();
        match segment.filter(|s| hole!(3) || end <= i64::from(s.start) + i64::from(s.len)) {
            None => self.reject(at, i, Reason::OutsideImage),
            Some(s) if i.access == Access::Write && s.kind != SegmentKind::Data && !hole!(4) => {
                self.reject(at, i, Reason::StoreToConstants);
            }
            Some(_) => {}
        }
    }

    /// The class of an instruction that just goes on, which may be a marker (rule 6).
    #[inline(always)]
    fn marker(&mut self, at: usize, i: &Instruction) -> Class {
        if i.len != 8 {
            return Class::Plain;
        }
        if let Some(depth) = pad::claim(&self.image.text[at..]) {
            self.scan.pads.push(Pad {
                offset: self.image.text_address.wrapping_add(at as u32),
                depth: depth.into(),
            });
            if !hole!(59) {
                self.line = Line::LOST;
            }
        }
        if !self.image.text[at..].starts_with(&identifier::MARKER_HEAD) {
            return Class::Plain;
        }
        if !(at + self.image.text_address as usize).is_multiple_of(identifier::MARKER_LEN) {
            return Class::Plain;
        }
        let id = self.dword(at + 4);
        if id == identifier::FUNCTION {
            self.scan.entries.insert(at);
            return Class::FunctionMarker;
        }
        if !identifier::is_reserved(id) {
            return Class::Plain;
        }
        let number = id as u16;
        if !self.may_use(number) {
            self.reject(at, i, Reason::MarkerIdentifier);
            return Class::Plain;
        }
        self.scan.labels.add(at, number, &self.rules.label_numbers);
        Class::LabelMarker
    }

    pub fn may_use(&self, number: u16) -> bool {
        identifier::label(number).is_some() && (self.rules.label_numbers.contains(&number) || hole!(27))
    }

    /// Rule 4 for calls.
    fn direct_call(&mut self, at: usize, i: &Instruction) {
        let to = (at + usize::from(i.len)) as i64 + i64::from(i.displacement);
        if let Some(to) = usize::try_from(to).ok().filter(|&to| to < self.image.text.len()) {
            self.scan.entries.insert(to);
            return;
        }
        let stub = self.image.image_offset.is_some_and(|image| {
            let target = i64::from(image) + i64::from(self.image.text_address) + to;
            (i64::from(window::STUBS)..i64::from(window::STUBS_END)).contains(&target)
                && ((target - i64::from(window::STUBS)) % i64::from(window::STUB_SIZE) == 0 || hole!(26))
        });
        if !stub {
            self.reject(at, i, Reason::CallTarget);
        }
    }

    /// Rule 6: whatever looks like an identifier where identifiers stand must be in a marker.
    fn hidden_identifiers(&mut self) {
        let text = self.image.text;
        let prefix = identifier::PREFIX.to_le_bytes();
        let phase = (8 - self.image.text_address as usize % 8) % 8;
        // Offsets of the prefix, which is the upper half of a dword at an address ≡ 4 (mod 8).
        let first = (phase + 6) % 8;
        let mut at = first;
        while at + 2 <= text.len() {
            if text[at] == prefix[0] && text[at + 1] == prefix[1] && !hole!(16) {
                let marker = at.checked_sub(6).is_some_and(|start| {
                    matches!(
                        self.scan.notes[start].class(),
                        Class::FunctionMarker | Class::LabelMarker
                    )
                });
                if !marker {
                    self.rejections
                        .add(self.image, at.saturating_sub(2), 4, Reason::HiddenIdentifier);
                }
            }
            at += 8;
        }
    }

    pub fn dword(&self, at: usize) -> u32 {
        dword(self.image.text, at)
    }
}

pub(crate) fn dword(text: &[u8], at: usize) -> u32 {
    text.get(at..)
        .and_then(|t| t.first_chunk())
        .map_or(0, |b| u32::from_le_bytes(*b))
}
