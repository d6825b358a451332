//! What is known to be local where a line of the words mode begins: registers that were tested, or hold an address of the module's
//! own, on every way that leads there, and have not changed since. The tests of a loop's own registers are moved in front of it.

use std::collections::HashMap;

use crate::check::flags_wanted;
use crate::dispatch::successors;
use crate::func::{Code, Function};
use crate::insn::{Class, direct};
use crate::parse::{NONE, Op};
use crate::regs;
use crate::through::writes;
use crate::words::Line;

/// A set of general registers.
pub(crate) type Set = u16;

/// A pointer and a number as small as this are both in the arena's part of the window, or both not: nothing is mapped for as many
/// bytes below the arena and behind it.
const NEAR: i64 = 64 << 10;

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
    /// To be tested between an instruction and the loop that begins behind it.
    pub hoisted: HashMap<u32, Set>,
}

impl Known {
    pub(crate) fn new(f: &Function<'_>, lines: &[Line]) -> Known {
        let graph = successors(f);
        let mut walk = Walk::new(f, lines, &graph);
        walk.hoist(lines);
        walk.solve();
        let own = own(f, &graph, |i| walk.places[i as usize].and_then(|p| p.local));
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
        known.own = own;
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

/// What is known behind an instruction of a line.
pub(crate) fn behind(code: &Code<'_>, tested: Option<u8>, local: Option<u8>, before: Set) -> Set {
    let before = before | tested.map_or(0, set);
    let moved = moved(code).filter(|(from, _)| before & set(*from) != 0);
    let changed = (0..16).filter(|&r| writes(code, r)).map(set);
    let kept = before & !changed.fold(0, |all, r| all | r);
    kept | moved.map_or(0, |(_, to)| set(to)) | local.map_or(0, set)
}

/// The register that a pointer comes from, and the one that it is in behind the instruction, the same or some bytes further on.
fn moved(code: &Code<'_>) -> Option<(u8, u8)> {
    let quad = |op: &Op<'_>| match op {
        Op::Reg(r, _) if r.class == regs::Class::Q => Some(r.n),
        _ => None,
    };
    let near = |text: &str| text.parse().is_ok_and(|n: i64| n.abs() <= NEAR);
    match (code.class, code.insn.ops()) {
        _ if code.stmt.app => None,
        (Class::Plain, [from, to]) if code.insn.mnemonic == "movq" => Some((quad(from)?, quad(to)?)),
        (Class::Plain, [Op::Imm(n), to]) if matches!(code.insn.mnemonic, "addq" | "subq") => {
            let r = quad(to)?;
            near(n.trim_start_matches('$')).then_some((r, r))
        }
        (Class::Plain, [to]) if matches!(code.insn.mnemonic, "incq" | "decq") => {
            let r = quad(to)?;
            Some((r, r))
        }
        (Class::Lea, [Op::Mem(m), to]) => {
            let plain = m.index == NONE && !m.fs && m.base < 16 && (m.disp.is_empty() || near(m.disp));
            plain.then_some((m.base, quad(to)?))
        }
        _ => None,
    }
}

/// In front of each instruction: the registers that hold an address of the module's own by where it came from.
fn own(f: &Function<'_>, graph: &[Vec<u32>], local: impl Fn(u32) -> Option<u8>) -> Vec<Set> {
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
            let after = behind(&f.codes[i], None, local(i as u32), before[i]);
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
    from: Vec<Vec<u32>>,
    places: Vec<Option<Place>>,
    /// Where anything may come from.
    open: Vec<bool>,
    before: Vec<Set>,
    hoisted: HashMap<u32, Set>,
}

impl<'g, 'f, 'a> Walk<'g, 'f, 'a> {
    fn new(f: &'f Function<'a>, lines: &[Line], graph: &'g [Vec<u32>]) -> Self {
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
            let pad = code.pad.and_then(|pad| f.find(pad, i as u32));
            let marked = f.marks.contains_key(&(i as u32)).then_some(i as u32);
            let table = f.targets(i as u32).unwrap_or_default();
            table.into_iter().chain(pad).chain(marked).for_each(|to| {
                if let Some(open) = open.get_mut(to as usize) {
                    *open = true;
                }
            });
        }
        Walk {
            f,
            graph,
            from,
            places,
            open,
            before: vec![0; n],
            hoisted: HashMap::new(),
        }
    }

    /// Whether something can be known behind an instruction.
    fn passes(&self, i: u32) -> bool {
        self.places[i as usize].is_some() || goes(self.f, i).is_some()
    }

    fn after(&self, i: u32) -> Set {
        let before = self.before[i as usize];
        match self.places[i as usize] {
            Some(place) => behind(&self.f.codes[i as usize], place.tested, place.local, before),
            None if goes(self.f, i).is_some() => before,
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

    /// The registers that the accesses of a loop without calls go through, and nothing in it makes another object's.
    fn hoist(&mut self, lines: &[Line]) {
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
            let body = h..=end;
            if !entered || !begins || flags_wanted(self.f, h) || !body.clone().all(|i| self.passes(i)) {
                continue;
            }
            let mut wanted: Set = 0;
            for i in body.clone() {
                wanted |= self.places[i as usize].and_then(|p| p.tested).map_or(0, set);
            }
            for i in body {
                let code = &self.f.codes[i as usize];
                let same = moved(code).filter(|(from, to)| from == to).map(|(r, _)| r);
                let lost = (0..16).filter(|&r| writes(code, r) && Some(r) != same);
                wanted &= !lost.map(set).fold(0, |all, r| all | r);
            }
            if wanted != 0 {
                self.hoisted.insert(h, wanted);
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
