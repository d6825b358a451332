//! One instruction: what it does to the two stacks, and what stands for it in the output.
//!
//! The same code serves the walk over the graph (without output) and the translation, so that
//! the two cannot disagree.

use crate::cfi::Cfa;
use crate::func::{Code, Function};
use crate::insn::{self, Class, direct};
use crate::out::{Out, Target};
use crate::parse::{Mem, NONE, Op};
use crate::regs::{RBP, RSP};
use crate::sink::{Sink, Sunk};
use crate::state::{Mode, State};
use crate::{bits, check, setjmp, strings};

/// Why an instruction could not be taken.
#[derive(Clone, Debug)]
pub(crate) struct Fail {
    pub reason: String,
    pub advice: String,
    /// Another mode may do better.
    pub retry: bool,
}

impl Fail {
    pub(crate) fn retry(reason: impl Into<String>) -> Fail {
        Fail {
            reason: reason.into(),
            advice: "rewrite the function without it".to_owned(),
            retry: true,
        }
    }

    pub(crate) fn hard(reason: impl Into<String>, advice: impl Into<String>) -> Fail {
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

impl Step<'_, '_> {
    pub(crate) fn distance(&self, s: i64, st: &State) -> i64 {
        self.mode.distance(s, st.ctl)
    }

    /// The offset of a plain stack slot from the frame's start.
    pub(crate) fn slot(m: &Mem<'_>, st: &State) -> Option<i64> {
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
    pub(crate) fn move_to(&self, s: i64, st: &mut State) -> Result<i64, Fail> {
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
    pub(crate) fn row_stack(&self, i: u32, st: &State) -> Option<(i64, i64)> {
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
        self.check_caller(i, code, st)?;
        self.check_frame_address(code, st)?;
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
                    s.out.line(if matches!(insn.mnemonic, "int3" | "int") {
                        "int3"
                    } else {
                        "ud2"
                    });
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
    pub(crate) fn note_rbp(&self, i: u32, code: &Code<'_>, st: &mut State) {
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
    pub(crate) fn check_slots(&self, m: Option<&Mem<'_>>, prefix: &str, st: &State) -> Result<(), Fail> {
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

    /// Refuses what gcc makes of `__builtin_frame_address` of callers: it reads the frame pointer saved at `(%rbp)`, and
    /// follows it to slots that are on the control stack here.
    fn check_caller(&self, i: u32, code: &Code<'_>, st: &State) -> Result<(), Fail> {
        if self.handwritten || code.stmt.app || st.frame == 0 || code.class == Class::Lea {
            return Ok(());
        }
        let insn = &code.insn;
        let saved = self.f.row(i).slot(RBP);
        if let Some(m) = insn.mem()
            && m.base == RBP
            && saved.is_some()
            && Self::slot(m, st) == saved
            && !insn.dest().is_some_and(|r| r.is(RBP))
        {
            return Err(Fail::hard(
                "the frames of callers are out of a module's reach",
                "do without __builtin_frame_address and __builtin_return_address of other levels than 0",
            ));
        }
        Ok(())
    }

    /// `__builtin_frame_address(0)` copies `rbp`. What it names has to lie in this function's part of the data stack, not
    /// in that of the functions that it calls, where a function without locals has it.
    fn check_frame_address(&self, code: &Code<'_>, st: &State) -> Result<(), Fail> {
        let copies = matches!(code.insn.mnemonic, "mov" | "movq")
            && matches!(code.insn.ops(), [Op::Reg(from, _), Op::Reg(to, _)] if from.is(RBP) && !to.is(RSP));
        match st.sp {
            Some((_, d)) if copies && st.frame != 0 && d < st.frame => {
                Err(Fail::retry("the address of the frame is taken"))
            }
            _ => Ok(()),
        }
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
            match sink {
                Some(k) if setjmp::is(name) => setjmp::emit(k.out, st),
                Some(k) if k.out.weak.contains(name) => k.out.checked_slot("call", name),
                Some(k) => k.out.fmt(format_args!("\tcall\t{name}\n")),
                None => {}
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
        if setjmp::is(name) {
            return Err(Fail::hard(
                "a jump to setjmp, which needs a caller that goes on behind it",
                "call it",
            ));
        }
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
        match sink {
            Some(k) if k.out.weak.contains(name) && code.class == Class::Jmp => {
                k.out.checked_slot("jmp", name)
            }
            Some(k) if k.out.weak.contains(name) => {
                return Err(Fail::hard(
                    "a conditional jump to a weak function of another file",
                    "jump around a jump to it",
                ));
            }
            Some(k) => k.out.fmt(format_args!("\t{}\t{name}\n", insn.mnemonic)),
            None => {}
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
}
