//! How large numbers in registers can be: an index of a byte, a masked one, a field of an instruction's word. A pointer and such a
//! number lead to the same object, or to none.

use crate::func::{Code, Function};
use crate::insn::Class;
use crate::parse::{IP, Mem, NONE, Op, number};
use crate::regs::{self, RAX, RSP};
use crate::through::writes;

/// For each general register: it is less than 2 to this power, without a sign.
pub(crate) type Bits = [u8; 16];

/// A register of which nothing is known.
const ANY: u8 = 64;

/// After so many rounds what still grows is given up.
const ROUNDS: u32 = 6;

/// A pointer and a number of so many bits are both in the arena's part of the window, or both not: nothing is mapped for as many
/// bytes below the arena and behind it.
pub(crate) const NEAR_BITS: u8 = 16;

/// In front of each instruction.
pub(crate) fn small(f: &Function<'_>, graph: &[Vec<u32>]) -> Vec<Bits> {
    let n = f.codes.len();
    // From below: nobody has come there yet.
    let mut before: Vec<Option<Bits>> = vec![None; n];
    let mut reached = vec![false; n];
    graph.iter().flatten().for_each(|&to| reached[to as usize] = true);
    for (i, reached) in reached.into_iter().enumerate() {
        if i == 0 || !reached {
            before[i] = Some([ANY; 16]);
        }
    }
    let mut round = 0;
    loop {
        let mut changed = false;
        for (i, to) in graph.iter().enumerate() {
            let Some(mut bits) = before[i] else { continue };
            pass(&f.codes[i], &mut bits);
            for &to in to {
                let Some(there) = &mut before[to as usize] else {
                    before[to as usize] = Some(bits);
                    changed = true;
                    continue;
                };
                for (there, new) in there.iter_mut().zip(bits) {
                    if new > *there {
                        *there = if round < ROUNDS { new } else { ANY };
                        changed = true;
                    }
                }
            }
        }
        if !changed {
            return before.into_iter().map(|b| b.unwrap_or([ANY; 16])).collect();
        }
        round += 1;
    }
}

/// Which of an operand's registers has the pointer, if the other has a number of `near` bits at most.
pub(crate) fn pointer(bits: &Bits, near: u8, [base, index]: [u8; 2], scale: u8) -> Option<u8> {
    let at = |r: u8| bits.get(usize::from(r)).copied();
    let scaled = at(index)? + scale.trailing_zeros() as u8;
    if at(base)? > near && scaled <= near {
        Some(base)
    } else if scale == 1 && at(index)? > near && at(base)? <= near {
        Some(index)
    } else {
        None
    }
}

/// What an instruction does with the numbers.
fn pass(code: &Code<'_>, bits: &mut Bits) {
    let result = value(code, bits);
    for r in (0..16).filter(|&r| writes(code, r)) {
        bits[usize::from(r)] = ANY;
    }
    if let Some((register, value)) = result {
        bits[usize::from(register)] = value;
    }
}

/// The only register that an instruction changes, and what is known of it behind.
fn value(code: &Code<'_>, bits: &Bits) -> Option<(u8, u8)> {
    let insn = &code.insn;
    let known = matches!(code.class, Class::Plain | Class::Lea);
    let mnemonic = insn.mnemonic;
    if !known || code.stmt.app || !insn.prefix.is_empty() {
        return None;
    }
    let ops = insn.ops();
    if (mnemonic, ops) == ("cltq", &[]) {
        return Some((RAX, signed(bits[usize::from(RAX)])));
    }
    let to = insn.dest().filter(|r| r.is_gpr())?;
    let old = bits[usize::from(to.n)];
    let wide = match to.class {
        regs::Class::Q => 64,
        regs::Class::D => 32,
        _ if mnemonic.starts_with("set") || matches!(mnemonic, "movb" | "movw") => {
            // The rest stays.
            let part = if to.class == regs::Class::B { 8 } else { 16 };
            return Some((to.n, old.max(part)));
        }
        _ => return None,
    };
    let of = |op: &Op<'_>| match op {
        Op::Reg(r, _) if r.is_gpr() => match r.class {
            regs::Class::Q => bits[usize::from(r.n)],
            regs::Class::D => bits[usize::from(r.n)].min(32),
            regs::Class::W => bits[usize::from(r.n)].min(16),
            regs::Class::B => bits[usize::from(r.n)].min(8),
            _ => 8,
        },
        Op::Imm(text) => number(text.trim_start_matches('$')).map_or(ANY, length),
        _ => ANY,
    };
    let old = old.min(wide);
    let stem = mnemonic.strip_suffix(['l', 'q']).unwrap_or(mnemonic);
    let value = match (code.class, stem, ops) {
        (Class::Lea, _, [Op::Mem(m), _]) => address(m, bits),
        (Class::Lea, ..) => return None,
        (_, "movzb", [from, _]) => of(from).min(8),
        (_, "movzw", [from, _]) => of(from).min(16),
        (_, "mov", [from, _]) => of(from),
        (_, "movsl", [from @ Op::Reg(..), _]) => signed(of(from)),
        (_, "and", [from, _]) => of(from).min(old),
        (_, "xor", [Op::Reg(from, _), _]) if *from == to => 0,
        (_, "or" | "xor", [from, _]) => of(from).max(old),
        (_, "add", [from, _]) => of(from).max(old) + 1,
        (_, "shr" | "shl" | "sal", [Op::Imm(by), _]) => {
            let by = number(by.trim_start_matches('$')).filter(|by| (0..64).contains(by))? as u8;
            match stem {
                "shr" => old.saturating_sub(by),
                _ => old + by,
            }
        }
        (_, "shr", [_]) => old.saturating_sub(1),
        _ if stem.starts_with("cmov") && ops.len() == 2 => of(&ops[0]).max(old),
        _ => return None,
    };
    Some((to.n, value.min(wide)))
}

/// Bits of a number without a sign.
fn length(n: i64) -> u8 {
    (64 - n.leading_zeros()) as u8
}

/// A 32-bit number, extended by its sign.
fn signed(bits: u8) -> u8 {
    if bits < 32 { bits } else { ANY }
}

/// What `lea` computes.
fn address(m: &Mem<'_>, bits: &Bits) -> u8 {
    if m.fs || m.vector || matches!(m.base, RSP | IP) {
        return ANY;
    }
    let part = |r: u8, shift: u8| match r {
        NONE => Some(0),
        r => bits.get(usize::from(r)).map(|bits| bits + shift),
    };
    let displacement = match m.disp {
        "" => Some(0),
        text => number(text).map(length),
    };
    let parts = [
        part(m.base, 0),
        part(m.index, m.scale.trailing_zeros() as u8),
        displacement,
    ];
    let mut sum = 0;
    for part in parts {
        match part {
            None => return ANY,
            Some(0) => {}
            Some(bits) => sum = if sum == 0 { bits } else { sum.max(bits) + 1 },
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::successors;
    use crate::func::{Builder, Regions};
    use crate::parse::{Kind, statements};
    use crate::regs::{RCX, RDI};

    /// Bits of a register in front of the last instruction of a function.
    fn last(text: &str, register: u8) -> u8 {
        let (stmts, regions) = (statements(text).unwrap(), Regions::new());
        let mut b = Builder::new("f", &regions);
        for s in &stmts {
            match s.kind {
                Kind::Label => b.label(s),
                _ => assert!(b.code(s).is_ok(), "{}", s.text),
            }
        }
        b.f.finish();
        let bits = small(&b.f, &successors(&b.f));
        bits[bits.len() - 1][usize::from(register)]
    }

    #[test]
    fn numbers_in_registers() {
        for (text, expected) in [
            ("movzbl (%rdi), %eax", 8),
            ("movzbl %cl, %eax; salq $4, %rax", 12),
            ("movl %ecx, %eax; shrl $7, %eax", 25),
            ("movl %ecx, %eax; shrl $7, %eax; movzwl %ax, %eax", 16),
            ("movq (%rdi), %rax; shrq $60, %rax", 4),
            ("andl $1023, %eax", 10),
            ("andl $-2, %eax", 32),
            ("andq $-2, %rax", 64),
            ("xorl %eax, %eax; sete %al", 8),
            ("movl $7, %eax; addl $9, %eax", 5),
            ("movl $7, %eax; addl $-9, %eax", 32),
            ("movl $7, %eax; subq $9, %rax", 64),
            ("movl $255, %eax; leaq 8(,%rax,4), %rax", 11),
            ("movl $255, %eax; leaq -8(%rax), %rax", 64),
            ("movl $255, %eax; movslq %eax, %rax", 8),
            ("movl %ecx, %eax; movslq %eax, %rax", 64),
            ("movl $255, %eax; cltq", 8),
            ("movsbl %cl, %eax", 64),
            ("movl $1, %eax; call g", 64),
            ("movl $1, %eax; mull %ecx", 64),
            ("movl $1, %eax; imulq %rdi, %rcx", 1),
            ("movl $1, %eax; cmpl $100000, %eax", 1),
            ("movl $1, %eax; xchgq %rax, %rdi", 64),
            ("movl $1, %eax; movzbl %cl, %ecx; cmovel %ecx, %eax", 8),
            ("movl $1, %eax; movl %ecx, %eax", 32),
            // By two ways, and around.
            ("movl $1, %eax; jne 1f; movl $256, %eax; 1: nop", 9),
            ("xorl %eax, %eax; 1: addq $8, %rax; jne 1b", 64),
            ("xorl %eax, %eax; 1: andl $63, %eax; addl $1, %eax; jne 1b", 7),
        ] {
            assert_eq!(last(&format!("{text}; ret"), RAX), expected, "{text}");
        }
    }

    #[test]
    fn pointers_beside_numbers() {
        let mut bits = [ANY; 16];
        bits[usize::from(RCX)] = 13;
        assert_eq!(pointer(&bits, NEAR_BITS, [RDI, RCX], 8), Some(RDI));
        assert_eq!(pointer(&bits, NEAR_BITS, [RCX, RDI], 1), Some(RDI));
        assert_eq!(pointer(&bits, NEAR_BITS, [RCX, RDI], 2), None);
        assert_eq!(pointer(&bits, NEAR_BITS, [RAX, RDI], 1), None);
        assert_eq!(pointer(&bits, NEAR_BITS, [RCX, RCX], 1), None);
        assert_eq!(pointer(&bits, NEAR_BITS, [NONE, RCX], 8), None);
        bits[usize::from(RCX)] = 14;
        assert_eq!(pointer(&bits, NEAR_BITS, [RDI, RCX], 8), None);
    }
}
