//! Loads that lead to an address: what they give becomes, itself or by some arithmetic, a part of the address of a later operand. A
//! chain of such loads takes as long as all of them in turn, so it is their latency that a program feels.

use crate::dispatch::successors;
use crate::func::{Code, Function};
use crate::insn::{Class, compares};
use crate::parse::Op;
use crate::regs::{self, RBP, RBX, RDI, RSI, RSP};

/// A set of general registers.
type Set = u16;

/// What a call preserves.
const KEPT: Set = 1 << RBX | 1 << RBP | 1 << 12 | 1 << 13;

/// For each instruction: whether it loads such a value into a general register.
pub(crate) fn leads(f: &Function<'_>) -> Vec<bool> {
    let graph = successors(f);
    // Which registers become addresses, in front of each instruction; backwards until nothing is added.
    let mut needed: Vec<Set> = vec![0; f.codes.len()];
    let behind = |needed: &[Set], i: usize| graph[i].iter().fold(0, |set, &to| set | needed[to as usize]);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for i in (0..f.codes.len()).rev() {
            let set = before(&f.codes[i], behind(&needed, i));
            changed |= set != needed[i];
            needed[i] = set;
        }
    }
    let leads = |(i, code): (usize, &Code<'_>)| loaded(code) & behind(&needed, i) != 0;
    f.codes.iter().enumerate().map(leads).collect()
}

/// The register that an instruction loads, if it does nothing else.
fn loaded(code: &Code<'_>) -> Set {
    match code.insn.ops() {
        [Op::Mem(_), to] if code.class == Class::Plain && code.insn.mnemonic.starts_with("mov") => {
            general(to)
        }
        _ => 0,
    }
}

/// The general register that an operand is.
fn general(op: &Op<'_>) -> Set {
    match op {
        Op::Reg(r, _) if r.is_gpr() => set(r.n),
        _ => 0,
    }
}

fn set(register: u8) -> Set {
    if register < 16 { 1 << register } else { 0 }
}

/// The registers of operands' addresses. The stack pointer needs no waiting.
fn addresses(ops: &[Op<'_>]) -> Set {
    let of = |op: &Op<'_>| match op {
        Op::Mem(m) => (set(m.base) | set(m.index)) & !set(RSP),
        _ => 0,
    };
    ops.iter().fold(0, |set, op| set | of(op))
}

/// Which registers become addresses in front of an instruction, by which do behind it. Too many cost a little time, and so do too few.
fn before(code: &Code<'_>, behind: Set) -> Set {
    let ops = code.insn.ops();
    let mnemonic = code.insn.mnemonic;
    let needed = match (code.class, ops.split_last()) {
        (Class::Call, _) => behind & KEPT,
        (Class::Str(_), _) => behind | set(RDI) | set(RSI),
        (Class::Pop, Some((to, _))) => behind & !general(to),
        (Class::Plain | Class::Lea, Some((to, from)))
            if general(to) & behind != 0 && !compares(mnemonic) && !code.stmt.app =>
        {
            let zero = mnemonic.starts_with("xor") && from.contains(to);
            let whole = matches!(to, Op::Reg(r, _) if matches!(r.class, regs::Class::Q | regs::Class::D));
            let replaced = whole && (zero || mnemonic.starts_with("mov") || code.class == Class::Lea);
            let sources = match code.class {
                Class::Lea => addresses(from),
                _ if zero => 0,
                _ => from.iter().fold(0, |set, op| set | general(op)),
            };
            behind & !(if replaced { general(to) } else { 0 }) | sources
        }
        _ => behind,
    };
    match code.class {
        Class::Lea | Class::Nop => needed,
        _ => needed | addresses(ops),
    }
}
