//! Jumps through switch tables and constant arrays of labels.
//!
//! gcc loads an offset from a table in read-only data, adds the table's address and jumps; for computed goto it loads the
//! label's address. In the fenced program it adds a distance from a table among the code, which
//! the verifier reads, with the index clamped by a mask. That takes no identifier, and the labels in the table need no markers.

use std::collections::{HashMap, HashSet};

use crate::func::{Code, Function};
use crate::insn::{Class, direct};
use crate::parse::{IP, Mem, Op};
use crate::regs::Class::Vector;
use crate::regs::{self, RAX, RBP, RBX, RCX, RDI, RDX, RSI};
use crate::tables::{Arrays, Dispatch, MASK_SLOTS, Part};
use ringfence_isa::sequence::SLOTS_MAX;

/// Finds the jumps through tables.
pub(crate) fn find<'a>(f: &Function<'a>, arrays: &Arrays<'a>) -> Dispatch<'a> {
    let mut found = Dispatch::default();
    let indirect = |c: &Code<'_>| c.class == Class::Jmp && c.insn.star && !c.stmt.note.contains("sibcall");
    if !f.codes.iter().any(indirect) {
        return found;
    }
    let labels = f.label_places();
    let mut jumps: Vec<u32> = f.tables.keys().copied().collect();
    jumps.sort_unstable();
    for jump in jumps {
        let table = &f.tables[&jump];
        if !table.relative || !fits(f, jump, &table.entries) {
            continue;
        }
        let Some(parts) = sequence(f, &labels, jump, found.tables.len() as u32) else {
            continue;
        };
        found.parts.extend(parts);
        found.tables.push(table.entries.clone());
        // Nothing else can know the table's address, so that whoever loads it has no use for it any more.
        let users: Vec<u32> = (0..f.codes.len() as u32)
            .filter(|&i| names(&f.codes[i as usize], table.label))
            .collect();
        if users
            .iter()
            .all(|&i| loads_address(&f.codes[i as usize], table.label).is_some())
        {
            found.parts.extend(users.into_iter().map(|i| (i, Part::Dropped)));
            found.dropped.extend(&table.items);
        }
    }
    computed(f, arrays, &labels, &mut found);
    for jump in masked(f, &labels, &found) {
        if let Some(part) = found.parts.get_mut(&jump)
            && let Part::Jump(register, table) = *part
        {
            *part = Part::JumpMasked(register, table);
        }
    }
    let checked = |(i, c): (usize, &Code<'_>)| indirect(c) && !found.parts.contains_key(&(i as u32));
    if !f.codes.iter().enumerate().any(checked) {
        let reached = found.tables.iter().flatten().filter_map(|l| f.find(l, 0));
        found.unmarked = reached.collect();
        for pad in f.codes.iter().filter_map(|c| c.pad) {
            found.unmarked.retain(|i| f.find(pad, 0) != Some(*i));
        }
    }
    found
}

/// The jumps whose index the program masks itself, as an interpreter does with its opcodes: with the very instruction that
/// begins the checked sequence, and nothing that stays in between.
fn masked(f: &Function<'_>, labels: &HashSet<u32>, found: &Dispatch<'_>) -> Vec<u32> {
    let masks = |jump: u32, register: u8, table: u32| {
        let mut i = jump;
        loop {
            if labels.contains(&i) {
                return false;
            }
            i = match i.checked_sub(1) {
                Some(i) => i,
                None => return false,
            };
            match found.parts.get(&i) {
                Some(Part::Dropped) => continue,
                Some(Part::Copy(from, to)) if from == to => continue,
                Some(_) => return false,
                None => {}
            }
            let insn = &f.codes[i as usize].insn;
            let slots = found.tables[table as usize].len().next_power_of_two();
            return matches!(insn.ops(), [Op::Imm(value), Op::Reg(r, _)]
                if insn.mnemonic == "andl" && r.class == regs::Class::D && r.n == register
                    && slots <= MASK_SLOTS && value.strip_prefix('$').unwrap_or(value).parse() == Ok(slots - 1));
        }
    };
    let jumps = found.parts.iter().filter_map(|(&jump, part)| match *part {
        Part::Jump(register, table) if masks(jump, register, table) => Some(jump),
        _ => None,
    });
    jumps.collect()
}

/// Whether the labels can be a table among this function's code.
fn fits(f: &Function<'_>, jump: u32, labels: &[&str]) -> bool {
    (1..=SLOTS_MAX).contains(&labels.len()) && labels.iter().all(|l| f.find(l, jump).is_some())
}

/// Computed goto: `jmp *(%BASE,%INDEX,8)`, or a load of that kind and `jmp *%T`, where `BASE` holds the address of a constant
/// array of labels. An index outside the array is an error of the program, so the index may be masked where it is.
fn computed<'a>(f: &Function<'a>, arrays: &Arrays<'a>, labels: &HashSet<u32>, found: &mut Dispatch<'a>) {
    if arrays.is_empty() {
        return;
    }
    let mut graph = None;
    let mut proofs: HashMap<(&str, u8), (u32, Vec<bool>)> = HashMap::new();
    for (i, code) in f.codes.iter().enumerate() {
        let jump = i as u32;
        let note = code.stmt.note;
        if code.class != Class::Jmp || !code.insn.star || !note.contains("indirect_jump") {
            continue;
        }
        let (load, m, target) = match code.insn.ops() {
            [Op::Mem(m)] => (jump, *m, m.index),
            [Op::Reg(r, _)] => {
                let Some(load) = before(f, labels, jump, &[r.n]) else {
                    continue;
                };
                match f.codes[load as usize].insn.ops() {
                    [Op::Mem(m), Op::Reg(t, _)]
                        if t == r && f.codes[load as usize].insn.mnemonic == "movq" =>
                    {
                        (load, *m, r.n)
                    }
                    _ => continue,
                }
            }
            _ => continue,
        };
        let plain =
            m.number() == Some(0) && m.scale == 8 && m.base < 16 && m.index < 16 && !m.fs && !m.vector;
        if !plain {
            continue;
        }
        let graph = graph.get_or_insert_with(|| successors(f));
        // The array whose address BASE may hold; there is hardly ever more than one.
        let candidate = f.codes.iter().find_map(|c| {
            let (label, register) = loaded_address(c)?;
            (register == m.base && arrays.get(label).is_some_and(|a| fits(f, jump, a))).then_some(label)
        });
        let Some(label) = candidate else { continue };
        let next = found.tables.len() as u32;
        let (table, holds) = proofs.entry((label, m.base)).or_insert_with(|| {
            found.tables.push(arrays[label].clone());
            (next, holds_address(f, graph, label, m.base))
        });
        // The load goes, so nobody may look at what it loaded.
        if !holds[load as usize] || load != jump && !dead_behind(f, graph, jump, target) {
            continue;
        }
        if load != jump {
            found.parts.insert(load, Part::Copy(m.index, target));
        }
        found.parts.insert(jump, Part::Jump(target, *table));
    }
}

/// Where control may go from each instruction. A label at the end, behind the last one, is no place to go.
pub(crate) fn successors(f: &Function<'_>) -> Vec<Vec<u32>> {
    let n = f.codes.len() as u32;
    (0..n)
        .map(|i| {
            let code = &f.codes[i as usize];
            let mut to: Vec<u32> = f.targets(i).unwrap_or_default();
            if let (Class::Jmp | Class::Jcc, Some(op)) = (code.class, code.insn.ops().first()) {
                to.extend(direct(code.insn.star, op).and_then(|name| f.find(name, i)));
            }
            to.extend(code.pad.and_then(|p| f.find(p, i)));
            to.extend(Some(i + 1).filter(|_| f.falls_through(i)));
            to.retain(|&to| to < n);
            to
        })
        .collect()
}

/// In front of which instructions a register holds the address of `label`, on whatever way control came.
fn holds_address(f: &Function<'_>, graph: &[Vec<u32>], label: &str, register: u8) -> Vec<bool> {
    let mut holds = vec![true; f.codes.len()];
    let mut work = Vec::new();
    let after = |i: u32, before: bool| {
        let code = &f.codes[i as usize];
        loaded_address(code) == Some((label, register)) || before && !may_write(code, register)
    };
    // Nothing is known at the entry, nor where nobody is seen to come from.
    let mut reached = vec![false; f.codes.len()];
    for &to in graph.iter().flatten() {
        reached[to as usize] = true;
    }
    for i in 0..f.codes.len() as u32 {
        if i == 0 || !reached[i as usize] {
            holds[i as usize] = false;
        }
        if !after(i, holds[i as usize]) {
            work.push(i);
        }
    }
    while let Some(i) = work.pop() {
        for &to in &graph[i as usize] {
            if std::mem::replace(&mut holds[to as usize], false) && !after(to, false) {
                work.push(to);
            }
        }
    }
    holds
}

/// Whether whatever comes behind the jump writes a register before it looks at it. A byte alone may be written first, as
/// by `setnb %al`, if nothing but this byte is looked at then.
fn dead_behind(f: &Function<'_>, graph: &[Vec<u32>], jump: u32, register: u8) -> bool {
    let mut seen = vec![[false; 2]; f.codes.len()];
    let mut work: Vec<(u32, bool)> = graph[jump as usize].iter().map(|&to| (to, false)).collect();
    while let Some((i, low)) = work.pop() {
        if std::mem::replace(&mut seen[i as usize][usize::from(low)], true) {
            continue;
        }
        match effect(&f.codes[i as usize], graph[i as usize].is_empty(), register, low) {
            Effect::Reads => return false,
            Effect::Writes => {}
            Effect::WritesLow => work.extend(graph[i as usize].iter().map(|&to| (to, true))),
            Effect::None => work.extend(graph[i as usize].iter().map(|&to| (to, low))),
        }
    }
    true
}

/// What an instruction does with a register.
enum Effect {
    /// Uses what it holds, or may.
    Reads,
    /// Replaces all of it.
    Writes,
    /// Replaces its low byte.
    WritesLow,
    None,
}

/// `ends`: control does not go on in this function. `low`: the low byte is known to have been replaced.
fn effect(code: &Code<'_>, ends: bool, register: u8, low: bool) -> Effect {
    let insn = &code.insn;
    let ops = insn.ops();
    let is = |op: &Op<'_>| matches!(op, Op::Reg(r, _) if r.is_gpr() && r.n == register);
    let byte = |op: &Op<'_>| matches!(op, Op::Reg(r, _) if r.n == register && r.class == regs::Class::B);
    let plain = code.class == Class::Plain && !code.stmt.app;
    if let ([op], true) = (ops, plain && insn.mnemonic.starts_with("set"))
        && byte(op)
    {
        return Effect::WritesLow;
    }
    if let ([from, to], true) = (ops, plain && low && ops.first().is_some_and(byte)) {
        // Only the byte is read, and it has nothing of the old value.
        if insn.mnemonic == "movzbl" && is(to) {
            return Effect::Writes;
        }
        let reads_byte = matches!(insn.mnemonic, "movzbl" | "movb" | "testb" | "cmpb");
        if reads_byte && (byte(to) || matches!(to, Op::Reg(r, _) if r.n != register)) && byte(from) {
            return Effect::None;
        }
    }
    let names = |op: &Op<'_>| is(op) || matches!(op, Op::Mem(m) if m.base == register || m.index == register);
    if let (Some((Op::Reg(r, _), rest)), Class::Plain | Class::Lea | Class::Pop) =
        (ops.split_last(), code.class)
        && r.is_gpr()
        && r.n == register
        && matches!(r.class, regs::Class::Q | regs::Class::D)
        && !code.stmt.app
    {
        let zero = matches!(insn.mnemonic, "xorl" | "xorq") && rest.iter().all(is);
        let moved = insn.mnemonic.starts_with("mov") || matches!(code.class, Class::Lea | Class::Pop);
        if zero || moved && !rest.iter().any(names) {
            return Effect::Writes;
        }
    }
    let leaves = match code.class {
        Class::Ret => matches!(register, RAX | RDX) || matches!(register, RBX | RBP | 12 | 13),
        Class::Call => !matches!(register, RAX | RBX | RBP | 12 | 13),
        // A tail call.
        Class::Jmp => ends,
        _ => false,
    };
    if leaves
        || code.stmt.app
        || ops.iter().any(names)
        || may_write(code, register) && code.class != Class::Call
    {
        return Effect::Reads;
    }
    if code.class == Class::Call && register == RAX {
        return Effect::Writes;
    }
    Effect::None
}

/// Whether an instruction may change a general register. Yes, where that is not plain to see.
pub(crate) fn may_write(code: &Code<'_>, register: u8) -> bool {
    /// Beginnings of the names of instructions that change `rax`, `rcx` or `rdx` without naming them.
    const IMPLICIT: [&str; 14] = [
        "mul", "imul", "div", "idiv", "cltd", "cltq", "cqto", "cwtl", "cwtd", "cbtw", "cmpxchg", "rdtsc",
        "pcmp", "vpcmp",
    ];
    let insn = &code.insn;
    let kept = matches!(register, RBX | RBP | 12 | 13);
    let named = |op: &Op<'_>| matches!(op, Op::Reg(r, _) if r.is_gpr() && r.n == register);
    let implicit = match code.class {
        Class::Call => !kept,
        Class::Str(_) => matches!(register, RAX | RCX | RSI | RDI),
        Class::Leave => register == RBP,
        // Of vectors' `mul` and `div` the results are named.
        Class::Plain => {
            let named = matches!(insn.ops().last(), Some(Op::Reg(r, _)) if r.class == Vector);
            matches!(register, RAX | RCX | RDX)
                && IMPLICIT.iter().any(|m| insn.mnemonic.starts_with(m))
                && !(insn.mnemonic.starts_with("imul") && insn.ops().len() > 1)
                && (!named || insn.mnemonic.contains("cmp"))
        }
        _ => false,
    };
    let several = insn.mnemonic.starts_with('x') || insn.mnemonic.starts_with("mulx");
    code.stmt.app
        || implicit
        || insn.ops().last().is_some_and(named)
        || (several || insn.mnemonic.starts_with("cmpxchg")) && insn.ops().iter().any(named)
}

/// The load, the sum and the jump, in one block, if they are what gcc makes of a switch:
/// `movslq (%BASE,%INDEX,4), %T; addq %BASE, %T; jmp *%T`, or the sum in `BASE`.
fn sequence(f: &Function<'_>, labels: &HashSet<u32>, jump: u32, table: u32) -> Option<[(u32, Part); 3]> {
    let [Op::Reg(target, _)] = f.codes[jump as usize].insn.ops() else {
        return None;
    };
    let target = target.n;
    let sum = before(f, labels, jump, &[target])?;
    let insn = &f.codes[sum as usize].insn;
    let other = match insn.ops() {
        [Op::Reg(a, _), Op::Reg(b, _)]
            if insn.mnemonic == "addq" && b.is(target) && a.is_gpr() && !a.is(target) =>
        {
            a.n
        }
        _ => return None,
    };
    let load = before(f, labels, sum, &[target, other])?;
    let insn = &f.codes[load as usize].insn;
    let [Op::Mem(m), Op::Reg(loaded, _)] = insn.ops() else {
        return None;
    };
    let base = match loaded.n {
        n if n == target => other,
        n if n == other => target,
        _ => return None,
    };
    // Beside `rbp` and `r13` gcc writes the 0 out.
    let plain = Mem {
        disp: if m.number() == Some(0) { m.disp } else { "" },
        base,
        index: m.index,
        scale: 4,
        fs: false,
        vector: false,
    };
    if insn.mnemonic != "movslq" || *m != plain || usize::from(m.index) >= 16 || m.index == base {
        return None;
    }
    // The target's register is nobody else's between the sum and the jump, the other's may be.
    let sum_part = if loaded.n == target {
        Part::Dropped
    } else {
        Part::Copy(loaded.n, target)
    };
    Some([
        (load, Part::Copy(m.index, loaded.n)),
        (sum, sum_part),
        (jump, Part::Jump(target, table)),
    ])
}

/// The last instruction in front of `at` in its block that names one of the registers.
fn before(f: &Function<'_>, labels: &HashSet<u32>, at: u32, registers: &[u8]) -> Option<u32> {
    let mut i = at;
    loop {
        if labels.contains(&i) {
            return None;
        }
        i = i.checked_sub(1)?;
        let code = &f.codes[i as usize];
        if !matches!(code.class, Class::Plain | Class::Lea) || code.stmt.app {
            return None;
        }
        let named = |op: &Op<'_>| match op {
            Op::Reg(r, _) => r.is_gpr() && registers.contains(&r.n),
            Op::Mem(m) => registers.contains(&m.base) || registers.contains(&m.index),
            Op::Imm(_) => false,
        };
        if code.insn.ops().iter().any(named) {
            return Some(i);
        }
    }
}

/// Whether an instruction has to do with a label.
fn names(code: &Code<'_>, label: &str) -> bool {
    code.stmt.text.match_indices(label).any(|(at, _)| {
        let after = code.stmt.text[at + label.len()..].bytes().next();
        !after.is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'.' || b == b'$')
    })
}

/// The register into which it loads the label's address, if that is all it does.
fn loads_address(code: &Code<'_>, label: &str) -> Option<u8> {
    loaded_address(code).filter(|(l, _)| *l == label).map(|(_, r)| r)
}

/// The label whose address an instruction loads, if that is all it does, and the register.
fn loaded_address<'a>(code: &Code<'a>) -> Option<(&'a str, u8)> {
    match code.insn.ops() {
        [Op::Mem(m), Op::Reg(r, _)]
            if code.class == Class::Lea && m.base == IP && r.class == regs::Class::Q =>
        {
            Some((m.disp, r.n))
        }
        _ => None,
    }
}
