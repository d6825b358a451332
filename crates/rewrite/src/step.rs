//! One instruction: what it does to the two stacks, and what stands for it in the output.
//!
//! The same code serves the walk over the graph (without output) and the translation, so that
//! the two cannot disagree.

use crate::cfi::Cfa;
use crate::func::{Code, Function};
use crate::insn::{self, Class};
use crate::out::{Out, Target};
use crate::parse::{self, IP, Mem, NONE, Op};
use crate::regs::{self, R15, RBP, RBX, RSP};
use crate::state::{Mode, State};
use crate::unwind::Unwind;
use crate::{bits, check, strings};

/// Why an instruction could not be taken.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub reason: String,
    pub advice: String,
    /// Another mode may do better.
    pub retry: bool,
}

impl Fail {
    fn retry(reason: impl Into<String>) -> Fail {
        Fail {
            reason: reason.into(),
            advice: "rewrite the function without it".to_owned(),
            retry: true,
        }
    }

    fn hard(reason: impl Into<String>, advice: impl Into<String>) -> Fail {
        Fail {
            reason: reason.into(),
            advice: advice.into(),
            retry: false,
        }
    }
}

impl From<String> for Fail {
    fn from(reason: String) -> Fail {
        Fail::hard(reason, "write it in another way")
    }
}

/// A function being translated in one mode.
pub(crate) struct Step<'f, 'a> {
    pub f: &'f Function<'a>,
    pub mode: Mode,
    pub handwritten: bool,
}

/// Where the output goes, and the call-frame rows with it.
pub(crate) struct Sink<'s, 'o> {
    pub out: &'s mut Out<'o>,
    pub unwind: Option<&'s mut Unwind>,
    /// What the checked jump at this instruction demands.
    pub target: Target,
}

type Sunk<'x, 's, 'o> = Option<&'x mut Sink<'s, 'o>>;

impl Step<'_, '_> {
    fn distance(&self, s: i64, st: &State) -> i64 {
        self.mode.distance(s, st.ctl)
    }

    /// The offset of a plain stack slot from the frame's start.
    fn slot(m: &Mem<'_>, st: &State) -> Option<i64> {
        if m.index != NONE || m.fs {
            return None;
        }
        match (m.base, st.sp) {
            (RSP, Some((s, _))) => m.number().map(|n| n - s),
            (RBP, _) if st.frame != 0 => m.number().map(|n| n - st.frame),
            _ => None,
        }
    }

    /// Moves gcc's `rsp` to `s` below the frame's start; `r15` follows by an adjustment.
    fn move_to(&self, s: i64, st: &mut State) -> Result<i64, Fail> {
        let Some((_, d)) = st.sp else {
            return Err(Fail::retry("the stack pointer's place is not known"));
        };
        if s < 8 + 8 * st.ctl.len() {
            return Err(Fail::retry(
                "the stack pointer passes saved registers or the return address",
            ));
        }
        let new = self.distance(s, st);
        st.sp = Some((s, new));
        Ok(d - new)
    }

    /// What the call-frame row behind an instruction says about gcc's `rsp`.
    fn row_stack(&self, i: u32, st: &State) -> Option<(i64, i64)> {
        match self.f.row_after(i).cfa {
            Cfa::Reg(RSP, o) => Some((o, self.distance(o, st))),
            _ => None,
        }
    }

    /// Takes instruction `i` in state `st`.
    pub(crate) fn take(&self, i: u32, st: &mut State, mut sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
        let code = &self.f.codes[i as usize];
        if let Cfa::Reg(RSP, o) = self.f.row(i).cfa
            && !code.stmt.app
        {
            match st.sp {
                Some((s, _)) if s != o => {
                    return Err(Fail::retry(
                        "the frame is not where the call-frame directives say",
                    ));
                }
                None => st.sp = Some((o, o)),
                _ => {}
            }
        }
        let insn = &code.insn;
        match code.class {
            Class::Push => self.push(i, code, st, sink),
            Class::Pop => self.pop(i, code, st, sink),
            Class::Leave => self.leave(i, st, sink),
            Class::Enter => Err(Fail::hard(
                "enter is not supported",
                "write push %rbp, mov %rsp,%rbp and sub instead",
            )),
            Class::Ret => {
                if !insn.ops().is_empty() {
                    return Err(Fail::hard(
                        "ret cannot remove arguments",
                        "let the caller remove them",
                    ));
                }
                self.at_entry_depth(st)?;
                if let Some(s) = sink {
                    s.out.line("ret");
                }
                Ok(())
            }
            Class::Call => self.call(code, st, sink),
            Class::Jmp | Class::Jcc => self.jump(i, code, st, sink),
            Class::Trap => {
                if let Some(s) = sink {
                    s.out.line(if insn.mnemonic == "int3" { "int3" } else { "ud2" });
                }
                Ok(())
            }
            Class::Endbr => Ok(()),
            Class::Nop => {
                if let Some(s) = sink
                    && insn.ops().is_empty()
                {
                    s.out.line("nop");
                }
                Ok(())
            }
            Class::Str(which) => {
                if let Some(s) = sink {
                    let dead = self.flags_dead(i, s.out);
                    strings::emit(s.out, insn, which, dead);
                }
                Ok(())
            }
            Class::BitString => {
                self.check_slots(insn.mem(), insn.prefix, st)?;
                if let Some(s) = sink {
                    bits::emit(s, insn, st)?;
                }
                Ok(())
            }
            Class::Lea => self.lea(i, code, st, sink),
            Class::Refused(reason, advice) => Err(Fail::hard(reason, advice)),
            Class::Plain => {
                if self.stack_arithmetic(i, code, st, &mut sink)? {
                    return Ok(());
                }
                self.check_slots(insn.mem(), insn.prefix, st)?;
                if let Some(s) = sink {
                    s.out.access(insn, st, self.flags_dead(i, s.out))?;
                }
                self.note_rbp(i, code, st);
                Ok(())
            }
        }
    }

    /// Whether nobody looks at the flags as they are now; found out only where it matters.
    fn flags_dead(&self, i: u32, out: &Out<'_>) -> bool {
        out.options.check && check::flags_dead(self.f, i)
    }

    /// In check mode, the test of the place that a jump's target is read from.
    fn check_target(&self, op: &Op<'_>, st: &State, k: &mut Sink<'_, '_>) {
        if let Op::Mem(m) = op
            && k.out.confine_loads()
        {
            k.out.check(m, st, true);
        }
    }

    /// `rbp` stops being a frame pointer when something else is put into it.
    fn note_rbp(&self, i: u32, code: &Code<'_>, st: &mut State) {
        let insn = &code.insn;
        if insn.dest().is_some_and(|r| r.is(RBP)) && !insn::compares(insn.mnemonic) {
            st.frame = match self.f.row_after(i).cfa {
                Cfa::Reg(RBP, o) => o,
                Cfa::Unknown
                    if insn
                        .ops()
                        .first()
                        .is_some_and(|o| matches!(o, Op::Reg(r, _) if r.is(RSP))) =>
                {
                    st.sp.map_or(0, |(s, _)| s)
                }
                _ => 0,
            };
        }
    }

    fn at_entry_depth(&self, st: &State) -> Result<(), Fail> {
        match st.sp {
            Some((8, 0)) if st.ctl.len() == 0 => Ok(()),
            _ => Err(Fail::retry("the function is left with something on its stack")),
        }
    }

    /// Refuses to touch the slots where gcc keeps the return address and saved registers.
    fn check_slots(&self, m: Option<&Mem<'_>>, prefix: &str, st: &State) -> Result<(), Fail> {
        let Some(m) = m else { return Ok(()) };
        let slot = Self::slot(m, st);
        // Incoming arguments are no locals.
        if m.base == RSP && self.mode == Mode::NoData && prefix != "lock" && slot.is_none_or(|o| o < 0) {
            return Err(Fail::retry("the function has locals"));
        }
        let Some(o) = slot else { return Ok(()) };
        if (-8..0).contains(&o) && prefix != "lock" {
            return Err(Fail::hard(
                "the return address is out of a module's reach",
                "do without __builtin_return_address and its kin",
            ));
        }
        if o < 0 && o >= -8 - 8 * st.ctl.len() && prefix != "lock" {
            return Err(Fail::retry("a saved register is used in its slot"));
        }
        Ok(())
    }

    fn push(&self, i: u32, code: &Code<'_>, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
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

    fn pop(&self, i: u32, code: &Code<'_>, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
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
    fn leave(&self, i: u32, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
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

    fn call(&self, code: &Code<'_>, st: &State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
        let insn = &code.insn;
        let Some(op) = insn.ops().first() else {
            return Err("call needs a target".to_owned().into());
        };
        let name = direct(insn.star, op);
        if let Some(name) = name {
            if name == "__tls_get_addr" {
                return Err(Fail::hard(
                    "thread-local storage of this model is not supported",
                    "compile with -ftls-model=initial-exec",
                ));
            }
            if name.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
                return Err(Fail::hard(
                    "a call to a label inside a function",
                    "make it a function",
                ));
            }
            if let Some(k) = sink {
                k.out.fmt(format_args!("\tcall\t{name}\n"));
            }
            return Ok(());
        }
        if !insn.star {
            return Err("a call needs a name or a star".to_owned().into());
        }
        if let Op::Mem(m) = op {
            self.check_slots(Some(m), "", st)?;
        }
        if let Some(k) = sink {
            self.check_target(op, st, k);
            k.out.checked("call", op, st, Target::Function)?;
        }
        Ok(())
    }

    fn jump(&self, i: u32, code: &Code<'_>, st: &State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
        let insn = &code.insn;
        let Some(op) = insn.ops().first() else {
            return Err("a jump needs a target".to_owned().into());
        };
        if insn.star && direct(true, op).is_none() {
            if let Op::Mem(m) = op {
                self.check_slots(Some(m), "", st)?;
            }
            if self.f.targets(i).is_none() {
                self.at_entry_depth(st).map_err(|f| Fail {
                    reason: "an indirect jump out of the function, with something on its stack".to_owned(),
                    advice: "goto out of a nested function, __builtin_setjmp and __builtin_longjmp are not supported"
                        .to_owned(),
                    ..f
                })?;
            }
            if let Some(k) = sink {
                self.check_target(op, st, k);
                let t = k.target;
                k.out.checked("jmp", op, st, t)?;
            }
            return Ok(());
        }
        let Some(name) = direct(insn.star, op) else {
            return Err("a jump needs a name".to_owned().into());
        };
        if self.f.find(name, i).is_none() {
            if name.starts_with(".L") && !name.starts_with(".LTHUNK")
                || name.starts_with(|c: char| c.is_ascii_digit())
            {
                return Err(Fail::hard(
                    "the label is not in this function",
                    "jump to the start of functions only",
                ));
            }
            self.at_entry_depth(st)?;
        }
        if let Some(k) = sink {
            k.out.fmt(format_args!("\t{}\t{name}\n", insn.mnemonic));
        }
        Ok(())
    }

    fn lea(&self, i: u32, code: &Code<'_>, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
        let insn = &code.insn;
        let Some(m) = insn.mem() else {
            return Err("lea needs an address".to_owned().into());
        };
        if insn.dest().is_some_and(|r| r.is(RSP)) {
            if m.base == RSP && m.index == NONE {
                let Some(n) = m.number() else {
                    return Err("an odd address".to_owned().into());
                };
                return self.add_to_stack(n, st, sink);
            }
            return self.set_stack(i, code, st, sink);
        }
        if m.base == RSP && self.mode == Mode::NoData {
            return Err(Fail::retry("the function has locals"));
        }
        if let Some(k) = sink {
            k.out.lea(insn, st)?;
        }
        self.note_rbp(i, code, st);
        Ok(())
    }

    /// `rsp += n` for a constant.
    fn add_to_stack(&self, n: i64, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
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
    fn set_stack(&self, i: u32, code: &Code<'_>, st: &mut State, sink: Sunk<'_, '_, '_>) -> Result<(), Fail> {
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
                let mut p = crate::out::Placed {
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
    fn stack_arithmetic(
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

/// The symbol that a call or jump goes to without a check.
pub(crate) fn direct<'a>(star: bool, op: &Op<'a>) -> Option<&'a str> {
    let Op::Mem(m) = op else { return None };
    if star {
        return if m.base == IP {
            m.disp.strip_suffix("@GOTPCREL")
        } else {
            None
        };
    }
    if m.base != NONE || m.index != NONE || m.fs {
        return None;
    }
    Some(
        m.disp
            .strip_suffix("@PLT")
            .or(m.disp.strip_suffix("@plt"))
            .unwrap_or(m.disp),
    )
}
