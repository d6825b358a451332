//! Register names.

/// A register as an operand names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reg {
    /// Number in instruction encodings for general registers (`rsp` is 4); otherwise meaningless.
    pub n: u8,
    pub class: Class,
}

/// Kind and width of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// General, 64 bits.
    Q,
    /// General, 32 bits.
    D,
    /// General, 16 bits.
    W,
    /// General, low byte.
    B,
    /// `ah`, `bh`, `ch`, `dh`.
    High,
    /// The instruction pointer.
    Ip,
    /// Segment, control, debug and other registers that modules have no business with.
    System,
    /// Vector, x87, MMX, mask.
    Vector,
}

pub(crate) const RAX: u8 = 0;
pub(crate) const RCX: u8 = 1;
pub(crate) const RDX: u8 = 2;
pub(crate) const RBX: u8 = 3;
pub(crate) const RSP: u8 = 4;
pub(crate) const RBP: u8 = 5;
pub(crate) const RSI: u8 = 6;
pub(crate) const RDI: u8 = 7;
pub(crate) const R11: u8 = 11;
pub(crate) const R15: u8 = 15;

const Q: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];
const D: [&str; 16] = [
    "eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "r8d", "r9d", "r10d", "r11d", "r12d", "r13d",
    "r14d", "r15d",
];
const W: [&str; 16] = [
    "ax", "cx", "dx", "bx", "sp", "bp", "si", "di", "r8w", "r9w", "r10w", "r11w", "r12w", "r13w", "r14w",
    "r15w",
];
const B: [&str; 16] = [
    "al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", "r8b", "r9b", "r10b", "r11b", "r12b", "r13b", "r14b",
    "r15b",
];

/// The 64-bit name of general register `n`.
pub(crate) fn q(n: u8) -> &'static str {
    Q[usize::from(n & 15)]
}

/// The 32-bit name of general register `n`.
pub(crate) fn d(n: u8) -> &'static str {
    D[usize::from(n & 15)]
}

/// The name of general register `n` in the width of `class`.
pub(crate) fn name(n: u8, class: Class) -> &'static str {
    let n = usize::from(n & 15);
    match class {
        Class::D => D[n],
        Class::W => W[n],
        Class::B => B[n],
        _ => Q[n],
    }
}

/// Register number in DWARF of general register `n`.
pub(crate) fn dwarf(n: u8) -> u8 {
    const MAP: [u8; 8] = [0, 2, 1, 3, 7, 6, 4, 5];
    if n < 8 { MAP[usize::from(n)] } else { n }
}

/// General register with the given DWARF number (the mapping is its own inverse).
pub(crate) fn from_dwarf(n: u8) -> Option<u8> {
    match n {
        0..=7 => Some(dwarf_inverse(n)),
        8..=15 => Some(n),
        _ => None,
    }
}

fn dwarf_inverse(n: u8) -> u8 {
    const MAP: [u8; 8] = [RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP];
    MAP[usize::from(n)]
}

fn gpr(n: u8, class: Class) -> Option<Reg> {
    Some(Reg { n, class })
}

/// The register called `name` (without the percent sign).
pub(crate) fn parse(name: &str) -> Option<Reg> {
    let b = name.as_bytes();
    match *b {
        [b'r', c, ..] if c.is_ascii_digit() => {
            let digits = b[1..].iter().take_while(|c| c.is_ascii_digit()).count();
            let n: u8 = name[1..=digits].parse().ok()?;
            if !(8..16).contains(&n) {
                return None;
            }
            match &name[1 + digits..] {
                "" => gpr(n, Class::Q),
                "d" => gpr(n, Class::D),
                "w" => gpr(n, Class::W),
                "b" | "l" => gpr(n, Class::B),
                _ => None,
            }
        }
        [b'r', b'i', b'p'] => gpr(0, Class::Ip),
        [b'r', ..] => position(&Q, name).and_then(|n| gpr(n, Class::Q)),
        [b'e', b'i', b'p'] => gpr(0, Class::Ip),
        [b'e', _, _] => position(&D, name).and_then(|n| gpr(n, Class::D)),
        [_, b's'] => gpr(0, Class::System),
        [b'a'..=b'd', b'h'] => gpr(b"acdb".iter().position(|c| *c == b[0])? as u8, Class::High),
        [_, b'l'] | [_, _, b'l'] => position(&B, name).and_then(|n| gpr(n, Class::B)),
        [b'x' | b'y' | b'm' | b'z', ..] | [b'k', _] => gpr(0, Class::Vector),
        [b's', b't'] | [b's', b't', b'(', ..] => gpr(0, Class::Vector),
        [_, _] => position(&W, name).and_then(|n| gpr(n, Class::W)),
        [b'c', b'r', ..] | [b'd', b'r', ..] | [b'd', b'b', ..] | [b'b', b'n', b'd', ..] => {
            gpr(0, Class::System)
        }
        _ => None,
    }
}

fn position(table: &[&str; 16], name: &str) -> Option<u8> {
    table.iter().position(|t| *t == name).map(|n| n as u8)
}

impl Reg {
    /// Whether this is one of the sixteen general registers, in any width.
    pub(crate) fn is_gpr(self) -> bool {
        matches!(
            self.class,
            Class::Q | Class::D | Class::W | Class::B | Class::High
        )
    }

    /// Whether this is general register `n`, in any width that reaches bit 0.
    pub(crate) fn is(self, n: u8) -> bool {
        self.n == n && matches!(self.class, Class::Q | Class::D | Class::W | Class::B)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for class in [Class::Q, Class::D, Class::W, Class::B] {
            for n in 0..16 {
                assert_eq!(
                    parse(name(n, class)),
                    Some(Reg { n, class }),
                    "{}",
                    name(n, class)
                );
            }
        }
        assert_eq!(
            parse("ah"),
            Some(Reg {
                n: RAX,
                class: Class::High
            })
        );
        assert_eq!(
            parse("bh"),
            Some(Reg {
                n: RBX,
                class: Class::High
            })
        );
        assert_eq!(parse("fs").map(|r| r.class), Some(Class::System));
        assert_eq!(parse("st(3)").map(|r| r.class), Some(Class::Vector));
        assert_eq!(parse("r16"), None);
        assert_eq!(parse("foo"), None);
    }

    #[test]
    fn dwarf_numbers() {
        for n in 0..16 {
            assert_eq!(from_dwarf(dwarf(n)), Some(n));
        }
        assert_eq!(dwarf(RBP), 6);
        assert_eq!(dwarf(RSP), 7);
    }
}
