//! What the rewriter has to know about instructions.

use crate::parse::{IP, Insn, NONE, Op};
use crate::regs::Class as RegClass;

/// How an instruction concerns the rewriter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Only its operands may need attention.
    Plain,
    Push,
    Pop,
    Call,
    Ret,
    Jmp,
    /// Conditional jumps.
    Jcc,
    Leave,
    Enter,
    Lea,
    Endbr,
    /// A no-op with operands.
    Nop,
    /// `ud2`, `int3`: control does not come back.
    Trap,
    /// `movs`, `stos`, `lods`, `scas`, `cmps`.
    Str(Strings),
    /// `bt`, `bts`, `btr`, `btc` with a register offset and a memory operand.
    BitString,
    /// Refused, for this reason and with this advice.
    Refused(&'static str, &'static str),
}

/// Which of its two address registers a string instruction uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Strings {
    pub rdi: bool,
    pub rsi: bool,
}

const OTHER_WAY: &str = "leave it out, or do it in the host";

/// Classifies an instruction.
pub(crate) fn classify(i: &Insn<'_>) -> Class {
    let m = i.mnemonic;
    let b = m.as_bytes();
    match b.first() {
        Some(b'j') => {
            return match m {
                "jmp" | "jmpq" => Class::Jmp,
                "jrcxz" | "jecxz" | "jcxz" => no_loops(),
                _ => Class::Jcc,
            };
        }
        Some(b'p') => match m {
            "push" | "pushq" => return Class::Push,
            "pop" | "popq" => return Class::Pop,
            "pushf" | "pushfq" | "popf" | "popfq" => {
                return Class::Refused(
                    "modules cannot copy the flags register through the stack",
                    OTHER_WAY,
                );
            }
            "pushw" | "popw" => {
                return Class::Refused("only 64-bit pushes and pops are allowed", "push 64 bits");
            }
            _ => {}
        },
        Some(b'l') => match m {
            "lea" | "leaq" | "leal" | "leaw" => return Class::Lea,
            "leave" | "leaveq" => return Class::Leave,
            "loop" | "loope" | "loopne" | "loopz" | "loopnz" => return no_loops(),
            "lret" | "lretq" | "ljmp" | "lcall" | "lgdt" | "lidt" | "lldt" | "ltr" | "lmsw" | "lar"
            | "lsl" => {
                return privileged();
            }
            "ldmxcsr" => return control_word(),
            _ => {}
        },
        Some(b'c') => match m {
            "call" | "callq" => return Class::Call,
            "cli" | "clts" => return privileged(),
            "cld" => return Class::Refused("the direction flag is always clear in a module", "leave it out"),
            "clflush" | "clflushopt" | "clwb" | "cldemote" => {
                return Class::Refused("cache control is not allowed", OTHER_WAY);
            }
            _ => {}
        },
        Some(b'e') => match m {
            "endbr64" => return Class::Endbr,
            "enter" | "enterq" => return Class::Enter,
            "emms" => {}
            _ => {}
        },
        Some(b'r') => match m {
            "ret" | "retq" => return Class::Ret,
            "rdtsc" | "rdtscp" => {
                return Class::Refused(
                    "modules cannot read the time-stamp counter",
                    "compile with --rdtsc=clock to read a clock in its place, or leave it out",
                );
            }
            "rdpmc" | "rdmsr" | "rdpid" | "rdpru" => {
                return Class::Refused("modules cannot read processor counters", OTHER_WAY);
            }
            "rdfsbase" | "rdgsbase" => {
                return Class::Refused("modules cannot see segment bases", OTHER_WAY);
            }
            _ => {}
        },
        Some(b'n') if m.starts_with("nop") => return Class::Nop,
        Some(b's') => match m {
            "syscall" | "sysenter" | "sysret" | "sysexit" => {
                return Class::Refused(
                    "a system call cannot be made directly",
                    "call __rf_syscall, which asks the host's policy",
                );
            }
            "std" => {
                return Class::Refused("the direction flag is always clear in a module", "count upwards");
            }
            "sti" | "swapgs" | "sgdt" | "sidt" | "sldt" | "smsw" | "str" => return privileged(),
            _ => {}
        },
        Some(b'i') => match m {
            // The assembler's way to write the one-byte breakpoint.
            "int" if matches!(i.ops(), [Op::Imm("$3")]) => return Class::Trap,
            "int" | "int1" | "into" | "icebp" | "iret" | "iretq" => {
                return Class::Refused("interrupts are not allowed", "use ud2 or int3 to trap");
            }
            "int3" => return Class::Trap,
            "in" | "inb" | "inw" | "inl" | "insb" | "insw" | "insl" | "invd" | "invlpg" => {
                return privileged();
            }
            _ => {}
        },
        Some(b'o') => {
            if matches!(m, "out" | "outb" | "outw" | "outl" | "outsb" | "outsw" | "outsl") {
                return privileged();
            }
        }
        Some(b'u') => match m {
            "ud2" | "ud1" | "ud0" | "ud2a" | "ud2b" => return Class::Trap,
            _ => {}
        },
        Some(b'f') => match m {
            "fldcw" | "fldenv" | "frstor" | "finit" | "fninit" | "fsave" | "fnsave" | "fstenv"
            | "fnstenv" | "fxsave" | "fxsave64" | "fxrstor" | "fxrstor64" => return control_word(),
            _ => {}
        },
        Some(b'h') if m == "hlt" => return privileged(),
        Some(b'w') => match m {
            "wrfsbase" | "wrgsbase" | "wrpkru" | "wrmsr" | "wbinvd" => return privileged(),
            _ => {}
        },
        Some(b'x') => {
            if m == "xlat" || m == "xlatb" {
                return Class::Refused("xlat is not allowed", "use an ordinary load");
            }
            if m.starts_with("xsave") || m.starts_with("xrstor") {
                return control_word();
            }
            if matches!(m, "xbegin" | "xend" | "xabort" | "xtest") {
                return Class::Refused("transactions are not allowed", OTHER_WAY);
            }
        }
        Some(b'm') => {
            if matches!(m, "maskmovq" | "maskmovdqu" | "movdir64b" | "monitor" | "mwait") {
                return Class::Refused("this store has an implicit address", "use an ordinary store");
            }
        }
        Some(b'v') => match m {
            "vldmxcsr" => return control_word(),
            "vmaskmovdqu" => {
                return Class::Refused("this store has an implicit address", "use an ordinary store");
            }
            _ => {}
        },
        Some(b'b')
            if m.len() <= 4
                && (m == "bt" || m.starts_with("bt") && b[2..].iter().all(|c| b"srcwlq".contains(c)))
                && matches!(i.ops(), [Op::Reg(..), Op::Mem(_)]) =>
        {
            return Class::BitString;
        }
        _ => {}
    }
    if let Some(s) = strings(m, i) {
        return Class::Str(s);
    }
    if let Some(mem) = i.mem()
        && mem.vector
    {
        return Class::Refused(
            "gathers and scatters are not allowed",
            "compile with the flags of ringfence cc --print-flags, or write single loads",
        );
    }
    if i.ops().iter().any(evex) {
        return Class::Refused("AVX-512 is not allowed in a module", "compile with -mno-avx512f");
    }
    if hidden(m) {
        return Class::Refused("this instruction is not allowed in a module", OTHER_WAY);
    }
    if i.ops()
        .iter()
        .any(|o| matches!(o, Op::Reg(r, _) if r.class == RegClass::System))
    {
        return Class::Refused(
            "segment, control and debug registers belong to the system",
            OTHER_WAY,
        );
    }
    Class::Plain
}

/// Whether an operand needs an EVEX prefix: wide or high registers, masks.
fn evex(op: &Op<'_>) -> bool {
    let Op::Reg(r, text) = op else { return false };
    let high = |t: &str| {
        t.get(4..)
            .and_then(|n| n.parse::<u8>().ok())
            .is_some_and(|n| n > 15)
    };
    r.class == RegClass::Vector
        && (text.starts_with("%zmm")
            || text.starts_with("%k")
            || text.contains('{')
            || (text.starts_with("%xmm") || text.starts_with("%ymm")) && high(text))
}

/// What the verifier never accepts and no compiler makes unasked: state of the processor, waiting, randomness.
fn hidden(m: &str) -> bool {
    const NAMES: [&str; 12] = [
        "xgetbv", "xsetbv", "stmxcsr", "vstmxcsr", "monitorx", "mwaitx", "umonitor", "umwait", "tpause",
        "clzero", "vmcall", "ptwrite",
    ];
    m.starts_with("rdrand") || m.starts_with("rdseed") || NAMES.contains(&m)
}

fn privileged() -> Class {
    Class::Refused("this instruction is privileged or hidden from modules", OTHER_WAY)
}

fn no_loops() -> Class {
    Class::Refused(
        "loop and jrcxz are not allowed",
        "test the register and use an ordinary jump",
    )
}

fn control_word() -> Class {
    Class::Refused(
        "this instruction changes or copies floating-point control state, which belongs to the host",
        "compile without -ffast-math, which makes gcc round long doubles this way",
    )
}

fn strings(m: &str, i: &Insn<'_>) -> Option<Strings> {
    let b = m.as_bytes();
    if b.len() != 5 || b[3] != b's' || !matches!(b[4], b'b' | b'w' | b'l' | b'q' | b'd') {
        return None;
    }
    // `movsd`, `cmpsd` and `movsq`-like names with operands other than (%rsi), (%rdi), rax are vector instructions.
    if i.ops().iter().any(|o| match o {
        Op::Reg(r, _) => !r.is_gpr(),
        Op::Imm(_) => true,
        Op::Mem(m) => !matches!(m.base, crate::regs::RSI | crate::regs::RDI),
    }) {
        return None;
    }
    match &b[..3] {
        _ if b[4] == b'd' && i.ops().is_empty() => None,
        b"mov" if i.ops().is_empty() || i.ops().iter().all(|o| matches!(o, Op::Mem(_))) => {
            Some(Strings { rdi: true, rsi: true })
        }
        b"cmp" if i.ops().is_empty() || i.ops().iter().all(|o| matches!(o, Op::Mem(_))) => {
            Some(Strings { rdi: true, rsi: true })
        }
        _ => None,
    }
    .or(match &b[..4] {
        b"stos" | b"scas" => Some(Strings {
            rdi: true,
            rsi: false,
        }),
        b"lods" => Some(Strings {
            rdi: false,
            rsi: true,
        }),
        _ => None,
    })
}

/// Whether a memory operand is only read, so that integrity isolation leaves it alone.
/// When in doubt the answer is no.
pub(crate) fn only_reads(i: &Insn<'_>) -> bool {
    let ops = i.ops();
    let m = i.mnemonic;
    // As gcc writes tzcnt and lzcnt for every processor.
    let counts = i.prefix == "rep" && (m.starts_with("bsf") || m.starts_with("bsr"));
    if !i.prefix.is_empty() && !counts
        || m.starts_with("xchg")
        || m.starts_with("xadd")
        || m.starts_with("prefetchw")
    {
        return false;
    }
    match ops {
        [Op::Mem(_)] => {
            const READERS: [&str; 14] = [
                "mul", "imul", "div", "idiv", "fld", "fild", "fadd", "fsub", "fmul", "fdiv", "fiadd", "fcom",
                "push", "prefetch",
            ];
            const MORE: [&str; 6] = ["fisub", "fimul", "fidiv", "ficom", "call", "jmp"];
            READERS.iter().chain(&MORE).any(|r| m.starts_with(r)) && m != "fldenv" && m != "fldcw"
        }
        [.., Op::Mem(_)] => {
            // The destination is in memory; comparisons have none.
            let base = m.strip_prefix('v').unwrap_or(m);
            base == "cmp"
                || base == "test"
                || base == "bt"
                || matches!(
                    base,
                    "cmpb" | "cmpw" | "cmpl" | "cmpq" | "testb" | "testw" | "testl" | "testq"
                )
                || matches!(base, "btw" | "btl" | "btq")
        }
        _ => true,
    }
}

/// Whether the last operand is not written.
pub(crate) fn compares(m: &str) -> bool {
    m.starts_with("cmp") && !m.starts_with("cmpxchg")
        || m.starts_with("test")
        || matches!(m, "bt" | "btl" | "btq")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::insn;

    fn class(text: &str) -> Class {
        classify(&insn(text).unwrap())
    }

    #[test]
    fn classes() {
        assert_eq!(class("movsbl %al, %eax"), Class::Plain);
        assert_eq!(class("movsd (%rsi), %xmm0"), Class::Plain);
        assert_eq!(class("rep movsq"), Class::Str(Strings { rdi: true, rsi: true }));
        assert_eq!(
            class("rep stosq %rax, (%rdi)"),
            Class::Str(Strings {
                rdi: true,
                rsi: false
            })
        );
        assert_eq!(
            class("repnz scasb"),
            Class::Str(Strings {
                rdi: true,
                rsi: false
            })
        );
        assert_eq!(
            class("lodsb"),
            Class::Str(Strings {
                rdi: false,
                rsi: true
            })
        );
        assert_eq!(class("cmpsd $1, (%rdi), %xmm0"), Class::Plain);
        assert_eq!(class("btl %eax, (%rdx)"), Class::BitString);
        assert_eq!(class("lock btsq %rax, (%rdx)"), Class::BitString);
        assert_eq!(class("btl $3, (%rdx)"), Class::Plain);
        assert_eq!(class("btl %eax, %edx"), Class::Plain);
        assert!(matches!(class("syscall"), Class::Refused(..)));
        assert!(matches!(class("fldcw -2(%rsp)"), Class::Refused(..)));
        assert!(matches!(class("mov %ds, %eax"), Class::Refused(..)));
        assert!(matches!(
            class("vpgatherdd %ymm1, (%rax,%ymm2,4), %ymm0"),
            Class::Refused(..)
        ));
        assert!(matches!(class("jrcxz 1f"), Class::Refused(..)));
        assert_eq!(class("jne 1f"), Class::Jcc);
        assert!(matches!(class("vaddps %zmm1, %zmm2, %zmm3"), Class::Refused(..)));
        assert!(matches!(class("vaddps %ymm16, %ymm2, %ymm3"), Class::Refused(..)));
        assert_eq!(class("vaddps %ymm15, %ymm2, %ymm3"), Class::Plain);
        assert!(matches!(class("rdrand %eax"), Class::Refused(..)));
    }

    #[test]
    fn readers() {
        let reads = |t: &str| only_reads(&insn(t).unwrap());
        assert!(reads("rep bsfq 64(%r13), %rbp") && reads("rep bsrl (%rax), %eax"));
        assert!(!reads("lock addl $1, (%rax)") && !reads("rep stosq"));
        assert!(reads("movl (%rax), %eax"));
        assert!(!reads("movl %eax, (%rax)"));
        assert!(reads("cmpl %eax, (%rax)"));
        assert!(reads("cmpb $1, (%rax)"));
        assert!(!reads("cmpxchgl %eax, (%rax)"));
        assert!(!reads("incl (%rax)"));
        assert!(reads("divl (%rax)"));
        assert!(reads("fldt (%rax)"));
        assert!(!reads("fstpt (%rax)"));
        assert!(!reads("sete (%rax)"));
        assert!(!reads("vmovups %ymm0, (%rax)"));
        assert!(!reads("xchgl (%rax), %eax"));
        assert!(!reads("vcmpltps %xmm0, %xmm1, (%rax)"));
    }
}
