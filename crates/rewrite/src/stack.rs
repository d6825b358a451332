//! Instructions that move the stack: pushes and pops, `leave`, arithmetic on `rsp`.

use crate::cfi::Cfa;
use crate::func::Code;
use crate::insn::{self, Class};
use crate::out::Placed;
use crate::parse::{self, NONE, Op};
use crate::regs::{self, R15, RBP, RBX, RSP};
use crate::sink::Sunk;
use crate::state::{Mode, State};
use crate::step::{Fail, Step};

impl Step<'_, '_> {
    pub(crate) fn push(
        &self,
        i: u32,
        code: &Code<'_>,
        st: &mut State,
        sink: Sunk<'_, '_, '_>,
    ) -> Result<(), Fail> {
        let Some(op) = code.insn.ops().first() else {
            return Err("push needs an operand".to_owned().into());
        };
        if let (Op::Reg(r, _), Some((s, d))) = (op, st.sp) {
            let named = if self.f.has_cfi && !code.stmt.app {
                self.f.row_after(i).slot(r.n) == Some(-(s + 8))
            } else {
                // Without directives a save is what looks like one; in an `asm` statement nothing is.
                !self.f.has_cfi || self.handwritten
            };
            if named
                && self.mode != Mode::AllData
                && matches!(r.n, RBX | RBP | 12 | 13)
                && s == 8 + 8 * st.ctl.len()
            {
                if !st.ctl.push(r.n) {
                    return Err(Fail::retry("too many pushes"));
                }
                let new = self.distance(s + 8, st);
                st.sp = Some((s + 8, new));
                if let Some(k) = sink {
                    k.out.fmt(format_args!("\tpushq\t%{}\n", regs::q(r.n)));
                    k.out.adjust(d - new);
                }
                return Ok(());
            }
        }
        let allocates = code.stmt.note.contains("pushdi2_prologue");
        if self.mode == Mode::NoData {
            if !allocates {
                return Err(Fail::retry("the function pushes values"));
            }
            if let Some((s, d)) = st.sp {
                st.sp = Some((s + 8, d));
            }
            return Ok(());
        }
        let old = *st;
        let by = match st.sp {
            Some((s, _)) => self.move_to(s + 8, st)?,
            None => -8,
        };
        let Some(k) = sink else { return Ok(()) };
        if allocates {
            k.out.adjust(by);
            return Ok(());
        }
        match op {
            Op::Reg(r, _) if r.is(RSP) => {
                k.out.fmt(format_args!("\tleaq\t{}(%r15), %r11\n", old.shift()));
                k.out.adjust(by);
                k.out.buf.push_str("\tmovq\t%r11, ");
            }
            Op::Mem(m) => {
                self.check_slots(Some(m), "", &old)?;
                if k.out.confine_loads() {
                    k.out.check(m, &old, false);
                }
                let p = k.out.prepare(m, &old)?;
                k.out.buf.push_str("\tmovq\t");
                let confine = k.out.confine_loads();
                k.out.mem(&p, confine);
                k.out.buf.push_str(", %r11\n");
                k.out.adjust(by);
                k.out.buf.push_str("\tmovq\t%r11, ");
            }
            Op::Reg(_, text) | Op::Imm(text) => {
                k.out.adjust(by);
                k.out.buf.push_str("\tmovq\t");
                k.out.buf.push_str(text);
                k.out.buf.push_str(", ");
            }
        }
        k.out.buf.push_str("%gs:(%r15d)\n");
        Ok(())
    }

    pub(crate) fn pop(
        &self,
        i: u32,
        code: &Code<'_>,
        st: &mut State,
        sink: Sunk<'_, '_, '_>,
    ) -> Result<(), Fail> {
        let Some(op) = code.insn.ops().first() else {
            return Err("pop needs an operand".to_owned().into());
        };
        if let Some((s, d)) = st.sp
            && s == 8 + 8 * st.ctl.len()
        {
            let Op::Reg(r, _) = op else {
                return Err(Fail::retry("a saved register is popped to memory"));
            };
            if st.ctl.top() != Some(r.n) {
                return Err(Fail::retry("a saved register is popped out of order"));
            }
            st.ctl.pop();
            let new = self.distance(s - 8, st);
            st.sp = Some((s - 8, new));
            if r.n == RBP {
                st.frame = 0;
            }
            if let Some(k) = sink {
                k.out.adjust(d - new);
                k.out.fmt(format_args!("\tpopq\t%{}\n", regs::q(r.n)));
            }
            return Ok(());
        }
        let old = *st;
        let by = match st.sp {
            Some((s, _)) => self.move_to(s - 8, st)?,
            None => 8,
        };
        let kept = if let (None, Some(sp)) = (st.sp, self.row_stack(i, st)) {
            st.sp = Some(sp);
            sp.1 - sp.0
        } else {
            0
        };
        if matches!(op, Op::Reg(r, _) if r.is(RBP)) {
            st.frame = match self.f.row_after(i).cfa {
                Cfa::Reg(RBP, o) => o,
                _ => 0,
            };
        }
        if self.mode == Mode::NoData {
            return Ok(());
        }
        let Some(k) = sink else { return Ok(()) };
        match op {
            Op::Reg(r, _) if r.is(RSP) => {
                return Err(Fail::hard(
                    "the stack pointer cannot be popped",
                    "keep it elsewhere",
                ));
            }
            Op::Reg(_, text) => {
                let at = old.shift();
                k.out.fmt(format_args!("\tmovq\t%gs:{at}(%r15d), {text}\n"));
                k.out.adjust(by - kept);
            }
            Op::Mem(m) => {
                let at = old.shift();
                k.out.fmt(format_args!("\tmovq\t%gs:{at}(%r15d), %r11\n"));
                k.out.adjust(by - kept);
                if m.fs || m.number().is_none() || m.base == NONE {
                    return Err(Fail::hard("a pop to this place", "pop to a register first"));
                }
                let p = k.out.prepare(m, st)?;
                k.out.buf.push_str("\tmovq\t%r11, ");
                k.out.mem(&p, true);
                k.out.buf.push('\n');
            }
            Op::Imm(_) => return Err("pop needs a place".to_owned().into()),
        }
        Ok(())
    }

    /// `movq %rbp, %rsp; popq %rbp`
    pub(crate) fn leave(&self, i: u32, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
        let on_control = st.ctl.regs() == [RBP];
        let frame = st.frame;
        let here = st.sp;
        if on_control {
            if frame != 16 {
                return Err(Fail::retry("leave without a frame pointer"));
            }
            st.ctl.pop();
            st.sp = Some((8, 0));
            st.frame = 0;
            if let Some(k) = sink {
                match here {
                    Some((_, d)) => k.out.adjust(d),
                    None => k.out.line("leaq\t16(%rbp), %r15"),
                }
                if let (Some(u), true) = (&mut k.unwind, here != Some((16, 0))) {
                    let mut mid = *st;
                    mid.ctl.push(RBP);
                    u.sync(
                        &mut k.out.buf,
                        &mid,
                        self.f.row_after(i),
                        self.f.codes[i as usize].row_after,
                    );
                }
                k.out.line("popq\t%rbp");
            }
            return Ok(());
        }
        if st.ctl.len() != 0 {
            return Err(Fail::retry("leave drops saved registers"));
        }
        // rbp is on the data stack, in the slot it points to.
        st.sp = self.row_stack(i, st);
        let up = match st.sp {
            Some((s, d)) => s - d,
            None => 0,
        };
        st.frame = 0;
        if let Some(k) = sink {
            k.out.fmt(format_args!(
                "\tleaq\t{}(%rbp), %r15\n\tmovq\t%gs:(%ebp), %rbp\n",
                8 + up
            ));
        }
        Ok(())
    }

    /// `rsp += n` for a constant.
    pub(crate) fn add_to_stack(&self, n: i64, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
        let by = match st.sp {
            Some((s, _)) => self.move_to(s - n, st)?,
            None => n,
        };
        if let Some(k) = sink {
            k.out.adjust(by);
        }
        Ok(())
    }

    /// `rsp = …`: from `rbp`, another register, memory, or an address.
    pub(crate) fn set_stack(
        &self,
        i: u32,
        code: &Code<'_>,
        st: &mut State,
        sink: Sunk<'_, '_, '_>,
    ) -> Result<(), Fail> {
        let insn = &code.insn;
        let old = *st;
        let source = insn.ops().first().copied().unwrap_or(Op::Imm(""));
        // Distance of the new rsp from the frame's start.
        let from_frame = match source {
            Op::Reg(r, _) if r.is(RBP) && st.frame != 0 => Some(st.frame),
            Op::Mem(m) if code.class == Class::Lea && m.base == RBP && m.index == NONE && st.frame != 0 => {
                m.number().map(|n| st.frame - n)
            }
            _ => None,
        };
        st.sp = match from_frame {
            Some(s) => Some((s, self.distance(s, st))),
            None => self.row_stack(i, st),
        };
        if let Some((s, _)) = st.sp
            && s < 8 + 8 * st.ctl.len()
        {
            return Err(Fail::retry(
                "the stack pointer passes saved registers or the return address",
            ));
        }
        if self.mode == Mode::NoData {
            return Err(Fail::retry("the function has a frame"));
        }
        let up = match st.sp {
            Some((s, d)) => s - d,
            None => 0,
        };
        let Some(k) = sink else { return Ok(()) };
        match source {
            Op::Reg(r, _) if r.is_gpr() => k.out.fmt(format_args!("\tleaq\t{up}(%{}), %r15\n", regs::q(r.n))),
            Op::Mem(m) if code.class == Class::Lea => {
                let mut p = Placed {
                    mem: m,
                    add: up,
                    confined: false,
                };
                if m.base == RSP {
                    p.mem.base = R15;
                    p.add += old.shift();
                }
                k.out.buf.push_str("\tleaq\t");
                k.out.mem(&p, false);
                k.out.buf.push_str(", %r15\n");
            }
            Op::Mem(m) => {
                self.check_slots(Some(&m), "", &old)?;
                if k.out.confine_loads() {
                    k.out.check(&m, &old, false);
                }
                let p = k.out.prepare(&m, &old)?;
                k.out.buf.push_str("\tmovq\t");
                let confine = k.out.confine_loads();
                k.out.mem(&p, confine);
                k.out.buf.push_str(", %r15\n");
                k.out.adjust(up);
            }
            _ => return Err("a constant cannot be the stack pointer".to_owned().into()),
        }
        Ok(())
    }

    /// Instructions that read or write `rsp` or restore saved registers. True if `i` was one.
    pub(crate) fn stack_arithmetic(
        &self,
        i: u32,
        code: &Code<'_>,
        st: &mut State,
        sink: &mut Sunk<'_, '_, '_>,
    ) -> Result<bool, Fail> {
        let insn = &code.insn;
        let m = insn.mnemonic;
        let ops = insn.ops();
        if insn.dest().is_some_and(|r| r.is(RSP)) && !insn::compares(m) {
            let [source, _] = ops else {
                return Err(Fail::hard(
                    "the stack pointer is changed in an unusual way",
                    "use sub, add or lea",
                ));
            };
            let base = m.strip_suffix('q').unwrap_or(m);
            match (base, source) {
                ("sub" | "add", Op::Imm(text)) if parse::number(&text[1..]).is_some() => {
                    let n = parse::number(&text[1..]).unwrap_or(0);
                    self.add_to_stack(if base == "sub" { -n } else { n }, st, sink.as_deref_mut())?;
                }
                ("mov", _) => self.set_stack(i, code, st, sink.as_deref_mut())?,
                ("sub" | "add" | "and", Op::Reg(..) | Op::Imm(_) | Op::Mem(_)) => {
                    if self.mode == Mode::NoData {
                        return Err(Fail::retry("the function has a frame"));
                    }
                    let old = *st;
                    let mut at = *st;
                    at.sp = None;
                    st.sp = self.row_stack(i, st).filter(|(s, d)| s == d);
                    if let Some(k) = sink {
                        k.out.adjust(old.shift());
                        k.out.access(insn, &at, false)?;
                    }
                }
                _ => {
                    return Err(Fail::hard(
                        "the stack pointer is changed in an unusual way",
                        "use sub, add or lea",
                    ));
                }
            }
            return Ok(true);
        }
        if matches!(m, "mov" | "movq")
            && let [Op::Reg(from, _), Op::Reg(to, text)] = ops
            && from.is(RSP)
        {
            if self.mode == Mode::NoData {
                return Err(Fail::retry("the function has a frame"));
            }
            if let Some(k) = sink {
                if st.mirrored() {
                    k.out.fmt(format_args!("\tmovq\t%r15, {text}\n"));
                } else {
                    k.out.fmt(format_args!("\tleaq\t{}(%r15), {text}\n", st.shift()));
                }
            }
            if to.is(RBP) {
                self.note_rbp(i, code, st);
            }
            return Ok(true);
        }
        // A saved register read back from its slot, in the order of pops.
        if matches!(m, "mov" | "movq")
            && let [Op::Mem(from), Op::Reg(to, _)] = ops
            && st.ctl.top() == Some(to.n)
            && Self::slot(from, st) == Some(-8 - 8 * st.ctl.len())
            && to.n != RBP
        {
            st.ctl.pop();
            let mut by = 0;
            if let Some((s, d)) = st.sp {
                let new = self.distance(s, st);
                st.sp = Some((s, new));
                by = d - new;
            }
            if let Some(k) = sink {
                k.out.fmt(format_args!("\tpopq\t%{}\n", regs::q(to.n)));
                k.out.adjust(by);
            }
            return Ok(true);
        }
        if self.mode == Mode::NoData && ops.iter().any(|o| matches!(o, Op::Reg(r, _) if r.is(RSP))) {
            return Err(Fail::retry("the function has a frame"));
        }
        Ok(false)
    }
}
