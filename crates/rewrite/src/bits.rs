//! Bit instructions with a register offset and a memory operand. They reach far from their
//! operand's address, so they are taken apart: the address of the word first, then the bit in it.

use crate::parse::{IP, Insn, NONE, Op};
use crate::regs::{self, Class, RAX, RBX, RCX, RDX, RSI, RSP};
use crate::sink::Sink;
use crate::state::State;

/// Writes what stands for `insn`. Temporaries are saved on the control stack.
pub(crate) fn emit(k: &mut Sink<'_, '_>, insn: &Insn<'_>, st: &State) -> Result<(), String> {
    let [Op::Reg(offset, _), Op::Mem(m)] = insn.ops() else {
        return Err("odd operands".to_owned());
    };
    let (shift, suffix, class, words) = match offset.class {
        Class::Q => (6, 'q', Class::Q, 8),
        Class::D => (5, 'l', Class::D, 4),
        _ => return Err("a bit offset of 16 bits".to_owned()),
    };
    k.out.check(m, st, false);
    let operation = insn.mnemonic.trim_end_matches(['q', 'l']);
    let taken = [offset.n, m.base, m.index];
    if offset.is(RSP) {
        return Err("the stack pointer as a bit offset".to_owned());
    }
    let mut free = [RDX, RCX, RSI, RBX].into_iter().filter(|r| !taken.contains(r));
    let (Some(bit), Some(new)) = (free.next(), free.next()) else {
        return Err("no register is free".to_owned());
    };
    let out = &mut *k.out;
    let locked = insn.prefix == "lock";
    let adjust = |out: &mut crate::out::Out<'_>, cfi: bool, n: i64| {
        if cfi {
            out.fmt(format_args!("\t.cfi_adjust_cfa_offset {n}\n"));
        }
    };
    let cfi = out.cfi;
    let saved: &[u8] = if locked { &[bit, new, RAX] } else { &[bit, new] };
    for r in saved {
        out.fmt(format_args!("\tpushq\t%{}\n", regs::q(*r)));
        adjust(out, cfi, 8);
    }
    // r11: the operand's address, then that of the word.
    if m.base == NONE && m.index == NONE || m.fs {
        return Err("an absolute or thread-local operand".to_owned());
    }
    let mut p = crate::out::Placed {
        mem: *m,
        add: 0,
        confined: false,
    };
    if m.base == RSP {
        p.mem.base = regs::R15;
        p.add = st.shift();
    }
    out.settle(&mut p);
    out.buf.push_str("\tleaq\t");
    if p.mem.base == IP {
        out.fmt(format_args!("{}(%rip)", m.disp));
    } else {
        out.mem(&p, false);
    }
    out.buf.push_str(", %r11\n");
    let b = regs::q(bit);
    if class == Class::Q {
        out.fmt(format_args!("\tmovq\t%{}, %{b}\n", regs::q(offset.n)));
    } else {
        out.fmt(format_args!("\tmovslq\t%{}, %{b}\n", regs::d(offset.n)));
    }
    out.fmt(format_args!(
        "\tsarq\t${shift}, %{b}\n\tleaq\t(%r11,%{b},{words}), %r11\n"
    ));
    out.fmt(format_args!("\tmovq\t%{}, %{b}\n", regs::q(offset.n)));
    let (bit, new) = (regs::name(bit, class), regs::name(new, class));
    if locked {
        let rax = regs::name(RAX, class);
        out.local += 1;
        let label = out.local;
        out.fmt(format_args!(
            "\tmov{suffix}\t%gs:(%r11d), %{rax}\n.Lrf_b{label}:\n\tmov{suffix}\t%{rax}, %{new}\n\t{operation}{suffix}\t%{bit}, %{new}\n\
             \tlock cmpxchg{suffix}\t%{new}, %gs:(%r11d)\n\tjne\t.Lrf_b{label}\n\tbt{suffix}\t%{bit}, %{rax}\n"
        ));
    } else {
        out.fmt(format_args!(
            "\tmov{suffix}\t%gs:(%r11d), %{new}\n\t{operation}{suffix}\t%{bit}, %{new}\n"
        ));
        if operation != "bt" {
            out.fmt(format_args!("\tmov{suffix}\t%{new}, %gs:(%r11d)\n"));
        }
    }
    for r in saved.iter().rev() {
        out.fmt(format_args!("\tpopq\t%{}\n", regs::q(*r)));
        adjust(out, cfi, -8);
    }
    Ok(())
}
