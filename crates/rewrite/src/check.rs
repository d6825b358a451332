//! Segment matching (`--check`): in front of an access the full 64-bit address is compared with
//! the window, and the code traps right there when it lies outside.

use crate::Isolation;
use crate::func::Function;
use crate::insn::{self, Class};
use crate::out::{Out, Placed};
use crate::parse::{IP, Insn, Mem, NONE, Op};
use crate::regs::{R15, RBP, RSP};
use crate::state::State;

/// How far ahead the flags are followed.
const LOOK_AHEAD: u32 = 12;

/// `ringfence_isa::sequence::CHECK_TRAP`: not every `ud2` of a module built so is about an address.
const TRAP: &str = "\tnopl\t0x63(%rax)\n\tud2\n";

impl Out<'_> {
    /// Whether loads are confined too.
    pub(crate) fn confine_loads(&self) -> bool {
        self.options.isolation != Isolation::Integrity
    }

    /// An instruction that may access memory, checked if the options ask for it.
    pub(crate) fn access(&mut self, insn: &Insn<'_>, st: &State, flags_dead: bool) -> Result<(), String> {
        if let Some(m) = insn.mem()
            && (self.confine_loads() || !insn::only_reads(insn))
            && !insn.mnemonic.starts_with("prefetch")
        {
            self.check(m, st, flags_dead);
        }
        self.plain(insn, st)
    }

    /// The test in front of an access through `m`, when the options ask for one.
    pub(crate) fn check(&mut self, m: &Mem<'_>, st: &State, flags_dead: bool) {
        if !self.options.check || m.base == IP || m.fs || m.base == NONE && m.index == NONE {
            return;
        }
        // A fixed place in the frame needs no check.
        if m.index == NONE && (m.base == RSP || m.base == RBP && st.frame != 0) {
            return;
        }
        let mut p = Placed {
            mem: *m,
            add: 0,
            confined: false,
        };
        if m.base == RSP {
            p.mem.base = R15;
            p.add = st.shift();
        }
        let start = self.buf.len();
        self.settle(&mut p);
        self.buf.push_str("\tleaq\t");
        self.mem(&p, false);
        self.buf.push_str(", %r11\n");
        let load = self.buf[start..].to_owned();
        self.match_window(&load, flags_dead);
    }

    /// The test of the address in a register.
    pub(crate) fn check_register(&mut self, name: &str, flags_dead: bool) {
        if self.options.check {
            let load = format!("\tmovq\t%{name}, %r11\n");
            self.buf.push_str(&load);
            self.match_window(&load, flags_dead);
        }
    }

    /// Traps unless the address that `load` has put into `r11` is in the window. At the trap `r11` holds it
    /// again, and every other register is as it was.
    fn match_window(&mut self, load: &str, flags_dead: bool) {
        self.local += 1;
        let n = self.local;
        if flags_dead {
            self.fmt(format_args!(
                "\tsubq\t%r14, %r11\n\tshrq\t$32, %r11\n\tje\t.Lrf_c{n}\n{load}{TRAP}.Lrf_c{n}:\n"
            ));
            return;
        }
        // The flags, the overflow flag included, wait in rax, and rax on the control stack.
        let [push, pop, again] = if self.cfi {
            [
                "\t.cfi_adjust_cfa_offset 8\n",
                "\t.cfi_adjust_cfa_offset -8\n",
                "\t.cfi_adjust_cfa_offset 8\n",
            ]
        } else {
            [""; 3]
        };
        self.fmt(format_args!(
            "\tpushq\t%rax\n{push}\tlahf\n\tseto\t%al\n\tsubq\t%r14, %r11\n\tshrq\t$32, %r11\n\tje\t.Lrf_c{n}\n\
             \tpopq\t%rax\n{pop}{load}{TRAP}{again}\
             .Lrf_c{n}:\n\taddb\t$127, %al\n\tsahf\n\tpopq\t%rax\n{pop}"
        ));
    }
}

/// What an instruction does with the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flags {
    /// Leaves or partly changes them.
    Keeps,
    /// Uses them, or may.
    Reads,
    /// Sets all that anybody looks at, without looking.
    Sets,
}

fn flags(i: &Insn<'_>) -> Flags {
    const READERS: [&str; 12] = [
        "set", "cmov", "adc", "sbb", "rcl", "rcr", "lahf", "pushf", "cmc", "fcmov", "adox", "adcx",
    ];
    const SETTERS: [&str; 14] = [
        "add", "sub", "cmp", "test", "and", "or", "xor", "neg", "imul", "mul", "ucomis", "comis", "xadd",
        "popcnt",
    ];
    let m = i.mnemonic;
    if READERS.iter().any(|r| m.starts_with(r)) {
        return Flags::Reads;
    }
    let vector = matches!(i.ops().last(), Some(Op::Reg(r, _)) if !r.is_gpr());
    let base = m.strip_prefix('v').unwrap_or(m);
    if base.starts_with("ucomis") || base.starts_with("comis") {
        return Flags::Sets;
    }
    if !vector && SETTERS.iter().any(|s| m.starts_with(s)) && !m.starts_with("mulx") {
        return Flags::Sets;
    }
    Flags::Keeps
}

/// Whether an instruction looks at the flags, or may.
pub(crate) fn reads_flags(i: &Insn<'_>) -> bool {
    flags(i) == Flags::Reads
}

/// Whether nothing looks at the flags as they are in front of instruction `at`.
pub(crate) fn flags_dead(f: &Function<'_>, at: u32) -> bool {
    for i in at..(at + LOOK_AHEAD) {
        let Some(code) = f.codes.get(i as usize) else {
            return false;
        };
        match code.class {
            Class::Call | Class::Ret | Class::Trap => return true,
            Class::Jmp => return code.insn.star,
            Class::Jcc => return false,
            Class::Str(_)
                if code.insn.mnemonic.starts_with("cmps") || code.insn.mnemonic.starts_with("scas") =>
            {
                return false;
            }
            _ => {}
        }
        match flags(&code.insn) {
            Flags::Reads => return false,
            Flags::Sets => return true,
            Flags::Keeps => {}
        }
    }
    false
}

/// Why a jump is refused: what stands for it in fenced code changes the flags.
pub(crate) const FLAGS_LOST: &str =
    "the flags are looked at behind an indirect jump, which does not keep them";

/// Whether an instruction that `flags` calls one that keeps them sets those that are looked at behind it.
fn sets_some(mnemonic: &str) -> bool {
    const SETTERS: [&str; 19] = [
        "inc", "dec", "sal", "sar", "shl", "shr", "rol", "ror", "bt", "bs", "tzcnt", "lzcnt", "bls", "bextr",
        "bzhi", "ptest", "vptest", "fcomi", "fucomi",
    ];
    let keeps = mnemonic.ends_with('x') || mnemonic.starts_with("bswap");
    !keeps && SETTERS.iter().any(|s| mnemonic.starts_with(s))
}

/// Whether the flags as they are in front of instruction `at` are looked at: what gcc leaves in front of a jump through a table
/// when all that it leads to begins with the same comparison.
pub(crate) fn flags_wanted(f: &Function<'_>, at: u32) -> bool {
    let mut at = at;
    for _ in 0..f.codes.len() {
        let Some(code) = f.codes.get(at as usize) else {
            return false;
        };
        match (code.class, code.insn.ops().first()) {
            (Class::Jcc, _) => return true,
            (Class::Call | Class::Ret | Class::Trap | Class::Str(_) | Class::BitString, _) => return false,
            (Class::Jmp, Some(op)) => {
                let to = insn::direct(code.insn.star, op).and_then(|name| f.find(name, at));
                let Some(to) = to else { return false };
                at = to;
                continue;
            }
            _ => {}
        }
        match flags(&code.insn) {
            Flags::Reads => return true,
            Flags::Sets => return false,
            Flags::Keeps if code.class == Class::Plain && sets_some(code.insn.mnemonic) => return false,
            Flags::Keeps => at += 1,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::insn;

    #[test]
    fn flags_that_only_some_instructions_look_at() {
        for m in ["btq", "shll", "incl", "bsrl", "blsrl"] {
            assert!(sets_some(m), "{m}");
        }
        for m in ["movl", "shlx", "rorx", "bswap", "movsbl", "leaq"] {
            assert!(!sets_some(m), "{m}");
        }
    }

    #[test]
    fn flags_of_instructions() {
        let f = |t: &str| flags(&insn(t).unwrap());
        assert_eq!(f("adcq %rax, (%rdx)"), Flags::Reads);
        assert_eq!(f("sete (%rdx)"), Flags::Reads);
        assert_eq!(f("addl (%rdx), %eax"), Flags::Sets);
        assert_eq!(f("incl (%rdx)"), Flags::Keeps);
        assert_eq!(f("shll %cl, (%rdx)"), Flags::Keeps);
        assert_eq!(f("addps (%rdx), %xmm0"), Flags::Keeps);
        assert_eq!(f("mulx (%rdx), %rax, %rcx"), Flags::Keeps);
        assert_eq!(f("vucomisd (%rdx), %xmm0"), Flags::Sets);
        assert_eq!(f("btl $1, (%rdx)"), Flags::Keeps);
        assert_eq!(f("movq (%rdx), %rax"), Flags::Keeps);
    }
}
