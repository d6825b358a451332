//! How many bytes an instruction accesses, as the verifier counts them. What is not known here stays local.

use crate::parse::{Insn, Op};
use crate::regs::Class;

/// The size of the memory operand.
pub(crate) fn size(i: &Insn<'_>) -> Option<u8> {
    let m = i.mnemonic;
    let vectors = i.ops().iter().filter_map(|o| match o {
        Op::Reg(r, text) if r.class == Class::Vector => Some(*text),
        _ => None,
    });
    if let Some(widest) = vectors.max_by_key(|text| text.starts_with("%ymm")) {
        return match widest.get(..4)? {
            "%xmm" => vector(m, false),
            "%ymm" => vector(m, true),
            _ => None,
        };
    }
    if m.starts_with('f') {
        return x87(m);
    }
    let by_suffix = |m: &str| {
        Some(match m.bytes().last()? {
            b'b' => 1,
            b'w' => 2,
            b'l' => 4,
            b'q' => 8,
            _ => return None,
        })
    };
    if m.starts_with("movz") || m.starts_with("movs") && m.len() == 6 {
        // Behind the size of the source stands that of the destination.
        return by_suffix(&m[..m.len() - 1]);
    }
    match m {
        "cmpxchg16b" => return Some(16),
        "cmpxchg8b" => return Some(8),
        _ if m.starts_with("set") => return Some(1),
        _ if m.starts_with("crc32") => return by_suffix(m),
        _ => {}
    }
    let count = ["sal", "sar", "shl", "shr", "rol", "ror", "rcl", "rcr"];
    let register = i.ops().iter().rev().find_map(|o| match o {
        Op::Reg(r, _) if r.is_gpr() => Some(r.class),
        _ => None,
    });
    match register
        .filter(|_| !count.iter().any(|c| m.starts_with(c)) && !m.starts_with("shl") && !m.starts_with("shr"))
    {
        Some(Class::Q) => Some(8),
        Some(Class::D) => Some(4),
        Some(Class::W) => Some(2),
        Some(Class::B | Class::High) => Some(1),
        _ => by_suffix(m),
    }
}

fn x87(m: &str) -> Option<u8> {
    const INTEGER: [&str; 8] = [
        "fild", "fist", "fiadd", "fisub", "fimul", "fidiv", "ficom", "fisttp",
    ];
    const REAL: [&str; 6] = ["fld", "fst", "fadd", "fsub", "fmul", "fdiv"];
    if INTEGER.iter().any(|n| m.starts_with(n)) {
        return Some(match m {
            _ if m.ends_with("ll") || m.ends_with('q') => 8,
            _ if m.ends_with('l') => 4,
            _ if m.ends_with('s') => 2,
            _ => return None,
        });
    }
    if matches!(
        m,
        "fldcw" | "fldenv" | "fstcw" | "fnstcw" | "fstenv" | "fstsw" | "fnstsw"
    ) {
        return None;
    }
    let real = REAL.iter().any(|n| m.starts_with(n)) || m.starts_with("fcom");
    match m.bytes().last().filter(|_| real)? {
        b's' => Some(4),
        b'l' => Some(8),
        b't' => Some(10),
        _ => None,
    }
}

fn vector(m: &str, wide: bool) -> Option<u8> {
    let m = m.strip_prefix('v').unwrap_or(m);
    let full = if wide { 32 } else { 16 };
    let half = full / 2;
    Some(match m {
        "pinsrb" | "pextrb" | "pbroadcastb" => 1,
        "pinsrw" | "pextrw" | "pbroadcastw" => 2,
        "movd" | "pinsrd" | "pextrd" | "insertps" | "extractps" | "broadcastss" | "pbroadcastd" => 4,
        "movq" | "movhps" | "movlps" | "movhpd" | "movlpd" | "pinsrq" | "pextrq" | "broadcastsd"
        | "pbroadcastq" => 8,
        "broadcastf128" | "broadcasti128" | "insertf128" | "inserti128" | "extractf128" | "extracti128" => 16,
        "movddup" if !wide => 8,
        "cvtps2pd" | "cvtdq2pd" | "pmovsxbw" | "pmovzxbw" | "pmovsxwd" | "pmovzxwd" | "pmovsxdq"
        | "pmovzxdq" => half,
        "pmovsxbd" | "pmovzxbd" | "pmovsxwq" | "pmovzxwq" => half / 2,
        "pmovsxbq" | "pmovzxbq" => half / 4,
        "psllw" | "pslld" | "psllq" | "psrlw" | "psrld" | "psrlq" | "psraw" | "psrad" => 16,
        "cvtsi2sdl" | "cvtsi2ssl" => 4,
        "cvtsi2sdq" | "cvtsi2ssq" => 8,
        _ if m.starts_with("cvtsi2") || m.starts_with("maskmov") || m.starts_with("pmaskmov") => return None,
        _ if m.starts_with("cvtss2") || m.starts_with("cvttss2") => 4,
        _ if m.starts_with("cvtsd2") || m.starts_with("cvttsd2") => 8,
        _ if m.starts_with("cvtpd2") || m.starts_with("cvttpd2") => match m.bytes().last()? {
            b'y' => 32,
            _ => 16,
        },
        _ if m.starts_with('p') => full,
        _ if m.ends_with("ss") => 4,
        _ if m.ends_with("sd") => 8,
        _ => full,
    })
}

#[cfg(test)]
mod tests {
    use crate::parse::insn;

    #[test]
    fn sizes() {
        let size = |text: &str| super::size(&insn(text).unwrap());
        for (text, expected) in [
            ("movb $1, (%rax)", Some(1)),
            ("movzbl (%rax), %ecx", Some(1)),
            ("movzwl (%rax), %ecx", Some(2)),
            ("movslq (%rax), %rcx", Some(4)),
            ("movsbq (%rax), %rcx", Some(1)),
            ("addq %rcx, (%rax)", Some(8)),
            ("cmove (%rax), %cx", Some(2)),
            ("sete (%rax)", Some(1)),
            ("shlq %cl, (%rax)", Some(8)),
            ("incw (%rax)", Some(2)),
            ("imulq $3, (%rax), %rcx", Some(8)),
            ("fldt (%rax)", Some(10)),
            ("fildl (%rax)", Some(4)),
            ("filds (%rax)", Some(2)),
            ("flds (%rax)", Some(4)),
            ("fstpl (%rax)", Some(8)),
            ("fnstcw (%rax)", None),
            ("movss (%rax), %xmm0", Some(4)),
            ("movsd %xmm0, (%rax)", Some(8)),
            ("movups (%rax), %xmm1", Some(16)),
            ("vmovdqu (%rax), %ymm1", Some(32)),
            ("pmaxsd (%rax), %xmm0", Some(16)),
            ("cvtsi2sdl (%rax), %xmm0", Some(4)),
            ("cvtss2sd (%rax), %xmm0", Some(4)),
            ("vpmovzxbw (%rax), %ymm0", Some(16)),
            ("vmaskmovps (%rax), %xmm0, %xmm1", None),
            ("lock cmpxchg16b (%rax)", Some(16)),
            ("lock xaddl %eax, (%rcx)", Some(4)),
        ] {
            assert_eq!(size(text), expected, "{text}");
        }
    }
}
