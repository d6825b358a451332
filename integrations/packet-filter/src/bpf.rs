//! BPF programs, as libpcap's compiler makes them: decoded and checked.

use std::fmt;

/// An instruction as libpcap has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Raw {
    /// What it does.
    pub code: u16,
    /// How many instructions to skip if a condition holds, and if not.
    pub jt: u8,
    /// See `jt`.
    pub jf: u8,
    /// A constant.
    pub k: u32,
}

/// Most instructions of a program.
pub const MOST: usize = 16_384;

/// Words of scratch memory.
pub const SCRATCH: u32 = 16;

/// Bytes that a load reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Byte = 1,
    Half = 2,
    Word = 4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alu {
    Add,
    Sub,
    Mul,
    Div,
    Or,
    And,
    Lsh,
    Rsh,
    Mod,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Test {
    Equal,
    Greater,
    GreaterOrEqual,
    Bits,
}

/// The second operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum With {
    K(u32),
    X,
}

/// An instruction. Targets are numbers of instructions; only [`Op::Jump`] may lead back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// `A` from the packet, at `k`, or at `X + k`.
    Load {
        width: Width,
        k: u32,
        at_x: bool,
    },
    Imm(u32),
    Len,
    Mem(u32),
    ImmX(u32),
    LenX,
    MemX(u32),
    /// `X` from four times the lower half of a byte: the length of an IPv4 header.
    Msh(u32),
    Store(u32),
    StoreX(u32),
    Alu(Alu, With),
    Neg,
    Jump(usize),
    If {
        test: Test,
        with: With,
        yes: usize,
        no: usize,
    },
    Ret(u32),
    RetA,
    Tax,
    Txa,
}

/// A program that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {at} of the BPF program {what}")]
pub struct BadProgram {
    /// Which instruction, from 0.
    pub at: usize,
    /// What is wrong with it.
    pub what: &'static str,
}

/// Decodes a program: every jump leads to an instruction that is there, and the last one returns.
pub(crate) fn decode(raw: &[Raw]) -> Result<Vec<Op>, BadProgram> {
    if raw.len() > MOST {
        return Err(BadProgram {
            at: MOST,
            what: "is one too many",
        });
    }
    let one = |(at, insn): (usize, &Raw)| one(at, *insn, raw.len()).map_err(|what| BadProgram { at, what });
    let ops: Vec<Op> = raw.iter().enumerate().map(one).collect::<Result<_, _>>()?;
    match ops.last() {
        Some(Op::Ret(_) | Op::RetA) => Ok(ops),
        _ => Err(BadProgram {
            at: raw.len(),
            what: "is missing: the program does not return",
        }),
    }
}

fn one(at: usize, insn: Raw, count: usize) -> Result<Op, &'static str> {
    const UNKNOWN: &str = "is unknown";
    let (code, k) = (insn.code, insn.k);
    let target = |skip: u32| match at as u64 + 1 + u64::from(skip) {
        to if to < count as u64 => Ok(to as usize),
        _ => Err("jumps out of the program"),
    };
    let word = match k {
        k if k < SCRATCH => Ok(k),
        _ => Err("has no such scratch memory"),
    };
    let with = if code & 8 == 0 { With::K(k) } else { With::X };
    Ok(match code & 7 {
        0 => {
            let width = match code & 0x18 {
                0x00 => Width::Word,
                0x08 => Width::Half,
                0x10 => Width::Byte,
                _ => return Err(UNKNOWN),
            };
            match code & 0xE0 {
                0x00 if width == Width::Word => Op::Imm(k),
                0x20 | 0x40 => Op::Load {
                    width,
                    k,
                    at_x: code & 0x40 != 0,
                },
                0x60 if width == Width::Word => Op::Mem(word?),
                0x80 if width == Width::Word => Op::Len,
                _ => return Err(UNKNOWN),
            }
        }
        1 => match code & 0xF8 {
            0x00 => Op::ImmX(k),
            0x60 => Op::MemX(word?),
            0x80 => Op::LenX,
            0xB0 => Op::Msh(k),
            _ => return Err(UNKNOWN),
        },
        2 if code == 2 => Op::Store(word?),
        3 if code == 3 => Op::StoreX(word?),
        4 => {
            let alu = match code & 0xF0 {
                0x00 => Alu::Add,
                0x10 => Alu::Sub,
                0x20 => Alu::Mul,
                0x30 => Alu::Div,
                0x40 => Alu::Or,
                0x50 => Alu::And,
                0x60 => Alu::Lsh,
                0x70 => Alu::Rsh,
                // libpcap's interpreter ends the process at the other one.
                0x80 if with != With::X => return Ok(Op::Neg),
                0x90 => Alu::Mod,
                0xA0 => Alu::Xor,
                _ => return Err(UNKNOWN),
            };
            if matches!(alu, Alu::Div | Alu::Mod) && with == With::K(0) {
                return Err("divides by zero");
            }
            Op::Alu(alu, with)
        }
        5 => {
            let test = match code & 0xF0 {
                // libpcap's compiler makes loops of `protochain`: they lead back.
                0x00 => {
                    let to = at as i64 + 1 + i64::from(k as i32);
                    return usize::try_from(to)
                        .ok()
                        .filter(|to| *to < count)
                        .map(Op::Jump)
                        .ok_or("jumps out of the program");
                }
                0x10 => Test::Equal,
                0x20 => Test::Greater,
                0x30 => Test::GreaterOrEqual,
                0x40 => Test::Bits,
                _ => return Err(UNKNOWN),
            };
            Op::If {
                test,
                with,
                yes: target(insn.jt.into())?,
                no: target(insn.jf.into())?,
            }
        }
        6 => match code & 0x18 {
            0x00 => Op::Ret(k),
            0x10 => Op::RetA,
            _ => return Err(UNKNOWN),
        },
        7 => match code & 0xF8 {
            0x00 => Op::Tax,
            0x80 => Op::Txa,
            _ => return Err(UNKNOWN),
        },
        _ => return Err(UNKNOWN),
    })
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#06x} {} {} {:#010x}", self.code, self.jt, self.jf, self.k)
    }
}
