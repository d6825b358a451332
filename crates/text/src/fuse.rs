//! Instructions that the machine has in one: operands in memory, memory that is changed, tests of bits.

use crate::ir::{Func, Ins, MEM, NONE, Op, TEST, Val, cc, is_val};

/// Joins neighbours. `uses` has how often each value is read.
pub fn fuse(f: &mut Func, uses: &[u32]) {
    let once = |v: Val| is_val(v) && uses[v as usize] == 1;
    let code = std::mem::take(&mut f.code);
    let mut out: Vec<Ins> = Vec::with_capacity(code.len());
    for mut ins in code {
        if matches!(ins.op, Op::Br | Op::Set | Op::Choose) {
            if let Some(&last) = out.last()
                && last.op == Op::And
                && last.d == ins.a
                && once(last.d)
                && ins.w == last.w
                && ins.b == NONE
                && ins.imm == 0
                && matches!(ins.cc, cc::E | cc::NE)
                && ins.c != last.d
            {
                out.pop();
                // What is in memory stands first.
                let (a, b) = if last.b == MEM {
                    (MEM, last.a)
                } else {
                    (last.a, last.b)
                };
                ins = Ins {
                    a,
                    b,
                    imm: last.imm,
                    sc: TEST,
                    ..ins
                };
            }
            compare(&mut out, &mut ins, &once);
        } else if ins.op == Op::Store {
            change(&mut out, &mut ins, &once);
        } else if !bytes(&mut out, &mut ins, &once) {
            operand(&mut out, &mut ins, &once);
        }
        if ins.op != Op::Nop {
            out.push(ins);
        }
    }
    f.code = out;
}

/// Two bytes in the order of the network: `p[i] << 8 | p[i + 1]`.
fn bytes(out: &mut Vec<Ins>, or: &mut Ins, once: &impl Fn(Val) -> bool) -> bool {
    let [.., high, shift, low] = out[..] else {
        return false;
    };
    let byte = |ins: &Ins| ins.op == Op::Load && ins.w == 1 && ins.cc == 0 && ins.c == NONE && once(ins.d);
    let joined = matches!(or.op, Op::Or | Op::Add | Op::Xor)
        && or.a == shift.d
        && or.b == low.d
        && shift.op == Op::Shl
        && (shift.a, shift.b, shift.imm) == (high.d, NONE, 8)
        && once(shift.d)
        && byte(&high)
        && byte(&low)
        && (high.a, high.b, high.sc, high.imm + 1) == (low.a, low.b, low.sc, low.imm);
    if joined {
        out.truncate(out.len() - 3);
        out.push(Ins { w: 2, ..high });
        *or = Ins {
            d: or.d,
            a: high.d,
            at: or.at,
            ..Ins::new(Op::Swap)
        };
    }
    joined
}

/// The load before, if what it loads is used once, by what follows.
fn load_of(out: &[Ins], op: Op, once: &impl Fn(Val) -> bool) -> Option<Ins> {
    out.last()
        .copied()
        .filter(|last| last.op == op && last.c == NONE && once(last.d))
}

fn into_memory(out: &mut [Ins]) {
    if let Some(last) = out.last_mut() {
        *last = Ins {
            op: Op::Mem,
            d: NONE,
            ..*last
        };
    }
}

/// Arithmetic with what was just loaded. What can fail of both is the load: its place counts.
fn operand(out: &mut [Ins], ins: &mut Ins, once: &impl Fn(Val) -> bool) {
    use Op::*;
    let load = match ins.op {
        Add | Sub | And | Or | Xor | Mul => Load,
        FAdd | FSub | FMul | FDiv => FLoad,
        _ => return,
    };
    let Some(load) = load_of(out, load, once) else {
        return;
    };
    if load.w != ins.w || !is_val(ins.b) || ins.a == ins.b {
        return;
    }
    if ins.b == load.d {
        ins.b = MEM;
    } else if ins.a == load.d && !matches!(ins.op, Sub | FSub | FDiv) {
        (ins.a, ins.b) = (ins.b, MEM);
    } else {
        return;
    }
    ins.at = load.at;
    into_memory(out);
}

/// A comparison with what was just loaded, whose place counts here too.
fn compare(out: &mut [Ins], ins: &mut Ins, once: &impl Fn(Val) -> bool) {
    let Some(load) = load_of(out, Op::Load, once) else {
        return;
    };
    if ins.op == Op::Choose && (ins.c == load.d || ins.d == load.d) {
        return;
    }
    if ins.b == load.d && ins.a != load.d && load.w == ins.w && is_val(ins.a) {
        ins.b = MEM;
        if ins.sc == TEST {
            (ins.a, ins.b) = (MEM, ins.a);
        }
    } else if ins.a == load.d && ins.b != load.d && load.w == ins.w {
        // With a value, or a constant.
        ins.a = MEM;
    } else if ins.a == load.d && ins.b == NONE && load.w == 1 && load.cc == 0 && (0..256).contains(&ins.imm) {
        // Bytes without sign, as numbers without sign.
        ins.a = MEM;
        ins.w = 1;
        ins.cc = match ins.cc {
            cc::L => cc::B,
            cc::GE => cc::AE,
            cc::LE => cc::BE,
            cc::G => cc::A,
            code => code,
        };
    } else {
        return;
    }
    ins.at = load.at;
    into_memory(out);
}

/// What is loaded, changed and stored at the same place.
fn change(out: &mut Vec<Ins>, store: &mut Ins, once: &impl Fn(Val) -> bool) {
    use Op::*;
    let [.., load, act] = out[..] else { return };
    if !matches!(act.op, Add | Sub | And | Or | Xor) || act.d != store.c || !once(act.d) || act.w != store.w {
        return;
    }
    let place = |ins: &Ins| (ins.a, ins.b, ins.sc, ins.imm, ins.w);
    if place(&load) != place(store) || load.c != NONE {
        return;
    }
    let with = match load.op {
        // The operand is in memory already: it is the place that is changed.
        Mem if act.b == MEM && act.op != Sub => act.a,
        Load if act.a == load.d && act.b != load.d && once(load.d) => act.b,
        _ => return,
    };
    if with == act.d {
        return;
    }
    out.truncate(out.len() - 2);
    out.push(Ins {
        op: Mem,
        d: NONE,
        ..load
    });
    *store = Ins {
        d: NONE,
        a: MEM,
        b: with,
        ..act
    };
}
