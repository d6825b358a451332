//! What is known to be local where a line of the words mode begins: registers that were tested, or hold an address of the module's
//! own, on every way that leads there, and have not changed since. The tests of a loop's own registers are moved in front of it, and those
//! that most targets of a jump through a table begin with, in front of the jump.

use std::collections::{HashMap, HashSet};

use crate::check::flags_wanted;
use crate::dispatch::successors;
use crate::func::{Code, Function};
use crate::insn::{Class, direct};
use crate::parse::{NONE, Op};
use crate::regs;
use crate::through::writes;
use crate::words::{Entry, Line, mask};
use crate::words_small::{Bits, NEAR_BITS, pointer, small};

/// A set of general registers.
pub(crate) type Set = u16;

/// An address of the module's own and a number of so many bits are no address of the arena's part of the window: images end, and lanes
/// begin, a gigabyte away from it.
const OWN_BITS: u8 = 30;

/// Whether a register has the difference of two pointers somewhere: with one of them it is the other, another object's.
fn differs(f: &Function<'_>, register: u8) -> bool {
    f.codes.iter().any(|code| {
        matches!(code.insn.ops(), [Op::Reg(..), Op::Reg(to, _)]
            if to.n == register && to.is_gpr() && code.insn.mnemonic.starts_with("sub"))
    })
}

/// Which registers are local, for the instructions of one function's lines.
#[derive(Default)]
pub(crate) struct Known {
    /// In front of an instruction, if there are any.
    before: HashMap<u32, Set>,
    /// Registers with an address in one of the module's own variables or of the frame, in front of an instruction: with any index they
    /// stay in it.
    own: Vec<Set>,
    /// Which may be an index there.
    index: Set,
    /// How large numbers in registers can be, in front of an instruction.
    bits: Vec<Bits>,
    /// To be tested between an instruction and the loop that begins behind it.
    pub hoisted: HashMap<u32, Set>,
    /// What has to be known at jumps through tables.
    demanded: HashMap<u32, Set>,
    /// Jumps through tables that lead to where something is known.
    copied: HashSet<u32>,
}

impl Known {
    /// Also tells the lines' accesses which of their registers has the pointer.
    pub(crate) fn new(f: &Function<'_>, lines: &mut [Line]) -> Known {
        let graph = successors(f);
        let bits = small(f, &graph);
        for entry in lines.iter_mut().flat_map(|line| &mut line.entries) {
            let bits = &bits[entry.i as usize];
            entry.find_pointer(|registers, scale| pointer(bits, NEAR_BITS, registers, scale));
        }
        lines
            .iter_mut()
            .for_each(|line| ahead(f, &bits, &mut line.entries));
        let mut walk = Walk::new(f, lines, &graph, &bits);
        let own = own(f, &graph, &bits, |i| {
            walk.places[i as usize].and_then(|p| p.local)
        });
        let wanted = walk.wanted(&own);
        walk.hoist(lines, &wanted);
        walk.demand(lines, &wanted);
        walk.solve();
        while walk.relent() {
            walk.solve();
        }
        let mut known = Known::default();
        for (h, hoisted) in std::mem::take(&mut walk.hoisted) {
            let there = walk.after(h - 1) | own[h as usize];
            let needed = hoisted & walk.before[h as usize] & !there;
            if needed != 0 {
                known.hoisted.insert(h, needed);
            }
        }
        let tested = walk.before.iter().zip(&own).map(|(before, own)| before & !own);
        let there = (0..).zip(tested).filter(|(_, set)| *set != 0);
        known.before = there.collect();
        known.copied = (0..f.codes.len() as u32)
            .filter(|&i| {
                walk.targets(i)
                    .iter()
                    .any(|&to| known.before(passed(f, to).unwrap_or(to)) != 0)
            })
            .collect();
        known.demanded = std::mem::take(&mut walk.demanded);
        known.own = own;
        known.bits = bits;
        known.index = (0..16)
            .filter(|&r| !differs(f, r))
            .map(set)
            .fold(0, |all, r| all | r);
        known
    }

    /// What was tested in front of an instruction.
    pub(crate) fn before(&self, i: u32) -> Set {
        self.before.get(&i).copied().unwrap_or_default()
    }

    /// What a jump through a table needs to be known.
    pub(crate) fn demanded(&self, i: u32) -> Set {
        self.demanded.get(&i).copied().unwrap_or_default()
    }

    /// Whether a jump through a table leads to a line that has something known in front of it, and so a copy.
    pub(crate) fn copied(&self, i: u32) -> bool {
        self.copied.contains(&i)
    }

    /// How large numbers can be in front of an instruction.
    pub(crate) fn bits(&self, i: u32) -> &Bits {
        &self.bits[i as usize]
    }

    /// Whether an operand's address is the module's own in front of an instruction, whatever is tested.
    pub(crate) fn own(&self, i: u32, [base, index]: [u8; 2]) -> bool {
        let own = self.own.get(i as usize).copied().unwrap_or_default();
        own & set(base) != 0 && (index == NONE || self.index & set(index) != 0)
    }
}

/// One register.
pub(crate) fn set(register: u8) -> Set {
    if register < 16 { 1 << register } else { 0 }
}

/// What is known behind an instruction of a line, by how large numbers are in front of it.
pub(crate) fn behind(
    code: &Code<'_>,
    bits: &Bits,
    tested: Option<u8>,
    local: Option<u8>,
    before: Set,
) -> Set {
    step(code, bits, NEAR_BITS, tested, local, before)
}

/// The same; a pointer and a number of so many bits lead to the same.
fn step(code: &Code<'_>, bits: &Bits, near: u8, tested: Option<u8>, local: Option<u8>, before: Set) -> Set {
    let before = before | tested.map_or(0, set);
    let moved = moved(code, bits, near).filter(|(from, _)| before & from == *from);
    let changed = (0..16).filter(|&r| writes(code, r)).map(set);
    let kept = before & !changed.fold(0, |all, r| all | r);
    kept | moved.map_or(0, |(_, to)| set(to)) | local.map_or(0, set)
}

/// The register that a pointer comes from, or the two of which one is taken, and the one that it is in behind the instruction, the
/// same or some bytes further on.
pub(crate) fn moved(code: &Code<'_>, bits: &Bits, near: u8) -> Option<(Set, u8)> {
    let quad = |op: &Op<'_>| match op {
        Op::Reg(r, _) if r.class == regs::Class::Q => Some(r.n),
        _ => None,
    };
    let reach = 1_i64 << near;
    let within = |text: &str| text.parse().is_ok_and(|n: i64| n.abs() <= reach);
    match (code.class, code.insn.ops()) {
        _ if code.stmt.app => None,
        (Class::Plain, [from, to]) if code.insn.mnemonic == "movq" => Some((set(quad(from)?), quad(to)?)),
        (Class::Plain, [from, to]) if code.insn.mnemonic.starts_with("cmov") => {
            let to = quad(to)?;
            Some((set(quad(from)?) | set(to), to))
        }
        (Class::Plain, [Op::Imm(n), to]) if matches!(code.insn.mnemonic, "addq" | "subq") => {
            let r = quad(to)?;
            within(n.trim_start_matches('$')).then_some((set(r), r))
        }
        (Class::Plain, [to]) if matches!(code.insn.mnemonic, "incq" | "decq") => {
            let r = quad(to)?;
            Some((set(r), r))
        }
        (Class::Plain, [from, to]) if code.insn.mnemonic == "addq" => {
            let (from, to) = (quad(from)?, quad(to)?);
            Some((set(pointer(bits, near, [to, from], 1)?), to))
        }
        (Class::Plain, [from, to]) if code.insn.mnemonic == "subq" => {
            let (from, to) = (quad(from)?, quad(to)?);
            (bits[usize::from(from)] <= near).then_some((set(to), to))
        }
        (Class::Lea, [Op::Mem(m), to]) if m.base < 16 && !m.fs && (m.disp.is_empty() || within(m.disp)) => {
            let from = match m.index {
                NONE => m.base,
                index => pointer(bits, near, [m.base, index], m.scale)?,
            };
            Some((set(from), quad(to)?))
        }
        _ => None,
    }
}

/// In front of each instruction: the registers that hold an address of the module's own by where it came from.
fn own(f: &Function<'_>, graph: &[Vec<u32>], bits: &[Bits], local: impl Fn(u32) -> Option<u8>) -> Vec<Set> {
    let n = f.codes.len();
    let mut reached = vec![false; n];
    graph.iter().flatten().for_each(|&to| reached[to as usize] = true);
    let mut before: Vec<Set> = reached
        .into_iter()
        .map(|r| if r { Set::MAX } else { 0 })
        .collect();
    before[..1.min(n)].fill(0);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for (i, to) in graph.iter().enumerate() {
            let after = step(&f.codes[i], &bits[i], OWN_BITS, None, local(i as u32), before[i]);
            for &to in to {
                let set = before[to as usize] & after;
                changed |= set != before[to as usize];
                before[to as usize] = set;
            }
        }
    }
    before
}

/// A place of a line.
#[derive(Clone, Copy)]
struct Place {
    tested: Option<u8>,
    local: Option<u8>,
    /// Whether it is its line's first, or last.
    first: bool,
    last: bool,
}

struct Walk<'g, 'f, 'a> {
    f: &'f Function<'a>,
    graph: &'g [Vec<u32>],
    bits: &'g [Bits],
    from: Vec<Vec<u32>>,
    places: Vec<Option<Place>>,
    /// Where anything may come from.
    open: Vec<bool>,
    before: Vec<Set>,
    hoisted: HashMap<u32, Set>,
    demanded: HashMap<u32, Set>,
}

impl<'g, 'f, 'a> Walk<'g, 'f, 'a> {
    fn new(f: &'f Function<'a>, lines: &[Line], graph: &'g [Vec<u32>], bits: &'g [Bits]) -> Self {
        let n = f.codes.len();
        let (mut from, mut places, mut open) = (vec![Vec::new(); n], vec![None; n], vec![false; n]);
        for (i, to) in graph.iter().enumerate() {
            to.iter().for_each(|&to| from[to as usize].push(i as u32));
        }
        for line in lines {
            for (k, entry) in line.entries.iter().enumerate() {
                places[entry.i as usize] = Some(Place {
                    tested: entry.single(),
                    local: entry.local,
                    first: k == 0,
                    last: k + 1 == line.entries.len(),
                });
            }
        }
        for (i, code) in f.codes.iter().enumerate() {
            let i = i as u32;
            let pad = code.pad.and_then(|pad| f.find(pad, i));
            let marked = Some(i).filter(|i| f.marks.contains_key(i) && passed(f, *i).is_none());
            let jump = f.dispatch.jump(i).is_none();
            let table = f.targets(i).filter(|_| jump).unwrap_or_default();
            table.into_iter().chain(pad).chain(marked).for_each(|to| {
                if let Some(open) = open.get_mut(to as usize) {
                    *open = true;
                }
            });
        }
        Walk {
            f,
            graph,
            bits,
            from,
            places,
            open,
            before: vec![0; n],
            hoisted: HashMap::new(),
            demanded: HashMap::new(),
        }
    }

    /// Whether something can be known behind an instruction.
    fn passes(&self, i: u32) -> bool {
        self.places[i as usize].is_some() || goes(self.f, i).or_else(|| passed(self.f, i)).is_some()
    }

    fn after(&self, i: u32) -> Set {
        let before = self.before[i as usize];
        match self.places[i as usize] {
            Some(place) => {
                let (code, bits) = (&self.f.codes[i as usize], &self.bits[i as usize]);
                let demanded = self.demanded.get(&i).copied().unwrap_or_default();
                behind(code, bits, place.tested, place.local, before) | demanded
            }
            None if self.passes(i) => before,
            None => 0,
        }
    }

    /// The greatest solution.
    fn solve(&mut self) {
        let n = self.before.len() as u32;
        let may = |walk: &Self, i: u32| {
            let (at, none) = (i as usize, walk.from[i as usize].is_empty());
            i > 0 && !walk.open[at] && !none && walk.passes(i)
        };
        for i in 0..n {
            self.before[i as usize] = if may(self, i) { Set::MAX } else { 0 };
        }
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for i in 0..n {
                let now = self.before[i as usize];
                if now == 0 {
                    continue;
                }
                let into = |&p: &u32| {
                    let hoisted = self.hoisted.get(&i).filter(|_| p + 1 == i);
                    self.after(p) | hoisted.copied().unwrap_or_default()
                };
                let set = self.from[i as usize].iter().map(into).fold(now, |all, s| all & s);
                changed |= set != now;
                self.before[i as usize] = set;
            }
        }
    }

    /// What a jump through a table leads to, if an instruction is one.
    fn targets(&self, jump: u32) -> Vec<u32> {
        let Some((_, _, table)) = self.f.dispatch.jump(jump) else {
            return Vec::new();
        };
        let labels = &self.f.dispatch.tables[table as usize];
        let mut to: Vec<u32> = labels.iter().filter_map(|l| self.f.find(l, jump)).collect();
        to.sort_unstable();
        to.dedup();
        to
    }

    /// In front of each instruction: the registers that have what will be tested. Jumps through tables end the view.
    fn wanted(&self, own: &[Set]) -> Vec<Set> {
        let mut wanted: Vec<Set> = vec![0; self.graph.len()];
        let mut changed = true;
        while std::mem::take(&mut changed) {
            for i in (0..self.graph.len()).rev() {
                let code = &self.f.codes[i];
                let to = match self.f.dispatch.jump(i as u32) {
                    Some(_) => &[][..],
                    None => &self.graph[i][..],
                };
                let behind = to.iter().fold(0, |set, &to| set | wanted[to as usize]);
                let written = (0..16).filter(|&r| writes(code, r)).map(set);
                let mut now = behind & !written.fold(0, |all, r| all | r);
                if let Some((from, to)) =
                    moved(code, &self.bits[i], NEAR_BITS).filter(|(_, to)| behind & set(*to) != 0)
                {
                    now |= if from.count_ones() == 1 {
                        from
                    } else {
                        behind & set(to)
                    };
                }
                now |= self.places[i].and_then(|p| p.tested).map_or(0, set);
                now &= !own[i];
                changed |= now != wanted[i];
                wanted[i] = now;
            }
        }
        wanted
    }

    /// Lets the registers that most targets of a jump through a table test be tested in front of it, where they are not known.
    fn demand(&mut self, lines: &[Line], wanted: &[Set]) {
        let jumps: Vec<&Line> = lines
            .iter()
            .filter(|line| {
                line.entries
                    .last()
                    .is_some_and(|e| self.f.dispatch.jump(e.i).is_some())
            })
            .collect();
        if jumps.is_empty() {
            return;
        }
        for line in jumps {
            let Some(begin) = mask(self.f, &line.entries) else {
                continue;
            };
            let jump = line.entries[line.entries.len() - 1].i;
            let to = self.targets(jump);
            let most = |r: &u8| {
                2 * to
                    .iter()
                    .filter(|&&to| wanted[to as usize] & set(*r) != 0)
                    .count()
                    >= to.len()
            };
            let changes = |r: &u8| {
                line.entries[begin..]
                    .iter()
                    .any(|e| writes(&self.f.codes[e.i as usize], *r))
            };
            let demanded = (0..16).filter(|r| most(r) && !changes(r)).map(set);
            let demanded = demanded.fold(0, |all, r| all | r);
            self.demanded.insert(jump, demanded);
        }
    }

    /// Gives up what most targets of a jump do not know after all; tells whether there was any.
    fn relent(&mut self) -> bool {
        let mut demanded = std::mem::take(&mut self.demanded);
        let mut less = false;
        for (&jump, demanded) in &mut demanded {
            let to = self.targets(jump);
            for r in (0..16).map(set) {
                let known = to.iter().filter(|&&to| self.before[to as usize] & r != 0).count();
                if *demanded & r != 0 && 2 * known < to.len() {
                    *demanded &= !r;
                    less = true;
                }
            }
        }
        self.demanded = demanded;
        less
    }

    /// Lets the registers that a loop's accesses go through be tested in front of it, as far as they are known where it goes back.
    fn hoist(&mut self, lines: &[Line], wanted: &[Set]) {
        // The last instruction that goes back to it, for each loop's first.
        let mut ends: HashMap<u32, u32> = HashMap::new();
        for (i, to) in self.graph.iter().enumerate() {
            for &h in to.iter().filter(|&&h| h as usize <= i) {
                let end = ends.entry(h).or_insert(i as u32);
                *end = (*end).max(i as u32);
            }
        }
        let starts = lines.iter().filter_map(|line| Some(line.entries.first()?.i));
        for h in starts.filter(|&h| h > 0) {
            let Some(&end) = ends.get(&h) else { continue };
            let entered = self.places[h as usize - 1].is_some_and(|p| p.last);
            let begins = self.places[h as usize].is_some_and(|p| p.first);
            if !entered || !begins || flags_wanted(self.f, h) {
                continue;
            }
            let tested = |i: u32| self.places[i as usize].and_then(|p| p.tested).map_or(0, set);
            let tested = (h..=end).fold(0, |all, i| all | tested(i));
            let wanted = tested & wanted[h as usize];
            if wanted != 0 {
                self.hoisted.insert(h, wanted);
            }
        }
    }
}

/// Where control goes on behind a mark that only jumps through tables lead to.
pub(crate) fn passed(f: &Function<'_>, i: u32) -> Option<u32> {
    f.dispatch.unmarked.contains(&i).then_some(i + 1)
}

/// Lets registers be tested where something is computed of them, if it, or they, are accessed in the same line behind it: so both are
/// known.
fn ahead(f: &Function<'_>, bits: &[Bits], line: &mut [Entry]) {
    for n in (0..line.len()).rev() {
        let (i, rest) = (line[n].i, &line[n + 1..]);
        let Some((from, to)) = moved(&f.codes[i as usize], &bits[i as usize], NEAR_BITS) else {
            continue;
        };
        let own = from == set(regs::RSP) || line[n].local.is_some();
        if own || from.count_ones() != 1 || from == set(to) || flags_wanted(f, i) {
            continue;
        }
        let mut pointers = from | set(to);
        for entry in rest {
            let code = &f.codes[entry.i as usize];
            if entry.single().is_some_and(|r| pointers & set(r) != 0) {
                line[n].ahead = Some(from.trailing_zeros() as u8);
                break;
            }
            let changed = (0..16).filter(|&r| writes(code, r)).map(set);
            pointers &= !changed.fold(0, |all, r| all | r);
            if code.class == Class::Jcc || pointers == 0 {
                break;
            }
        }
    }
}

/// Where a direct jump goes, if that is in the function.
pub(crate) fn goes(f: &Function<'_>, i: u32) -> Option<u32> {
    let code = &f.codes[i as usize];
    let op = code.insn.ops().first().filter(|_| code.class == Class::Jmp)?;
    direct(code.insn.star, op).and_then(|name| f.find(name, i))
}
