//! The decoder: what one instruction of the accepted subset is.
//!
//! It accepts encodings, not mnemonics: prefixes in the wrong place, redundant ones, and bits that processors ignore or
//! manuals reserve are refused, because that is where decoders and vendors differ.

use crate::op::{Form, Op, Role, SIZE_BY_L, SIZE_V, flag, imm};
use crate::reason::Reason;
use crate::report::RegSet;
use crate::rules::rule_2_stack::names_rsp;
use crate::table::{M0F, M3A, M38, ONE, SIZES, TABLES, VEX, X87_REGISTER};
use ringfence_isa::{window::HELD_REACH, words};

pub use crate::op::{Access, Flow};

/// How an instruction's memory operand forms its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// There is none, or the instruction only computes its address.
    None,
    /// `gs` and 32-bit address size: inside the window whatever the registers hold.
    Confined,
    /// Relative to the end of the instruction.
    Rip,
    /// `DISPLACEMENT(%r14,%r11)` without prefix, the displacement from 0 to [`HELD_REACH`]: inside the window or a little above
    /// it, if `r11` is below 2³². Whether it is, where the instruction stands, is not the decoder's business.
    Held,
    /// [`words::VIEW`]`(%r14,%r11)` without prefix, with which the words mode reaches what is not in the window.
    View,
    /// Any other without prefix: wherever the registers say.
    Free,
}

/// An instruction of the accepted subset. Whether it may stand where it stands is not the decoder's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Length in bytes.
    pub len: u8,
    /// How control goes on.
    pub flow: Flow,
    /// The explicit memory operand.
    pub memory: Memory,
    /// What happens to it.
    pub access: Access,
    /// How many bytes of it are accessed.
    pub size: u8,
    /// General registers that explicit operands write.
    pub written: RegSet,
    /// General registers that explicit operands name, and `rbx` where it is used implicitly.
    pub mentioned: RegSet,
    /// Instruction-set extensions ([`ringfence_isa::window::feature`] bits).
    pub features: u16,
    /// Whether it uses vector registers.
    pub vector: bool,
    /// Whether it is an x87 instruction.
    pub x87: bool,
    /// Whether it reads the time-stamp counter.
    pub time_stamp: bool,
    /// Whether it is one of the moves that write all of `r11` by a 32-bit operation, so that the upper half is 0 behind it:
    /// `movl` from a register or from memory, and `leal`.
    pub holds: bool,
    /// [`Memory::Rip`]: the displacement. Direct branches: the distance. Both from the instruction's end. Else 0.
    pub displacement: i32,
}

/// As many bytes as the decoder ever looks at, and a power of two.
pub(crate) const WINDOW: usize = 32;
const MAX_LEN: usize = 15;
pub(crate) const R11: u8 = 11;
/// The SIB byte of `(%r14,%r11)`, scale 1, with REX.X and REX.B.
pub(crate) const HELD_SIB: u8 = 0x1E;

const GS: u8 = 1;
const ADDR32: u8 = 2;
const OPSIZE: u8 = 4;
const LOCK: u8 = 8;
const F2: u8 = 16;
const F3: u8 = 32;

/// Bit of each legacy prefix that the decoder knows; 0 for all other bytes.
const PREFIX: [u8; 256] = {
    let mut t = [0; 256];
    t[0x65] = GS;
    t[0x67] = ADDR32;
    t[0x66] = OPSIZE;
    t[0xF0] = LOCK;
    t[0xF2] = F2;
    t[0xF3] = F3;
    t
};

/// Decodes the instruction at the start of `bytes`.
///
/// # Errors
///
/// The reason why the bytes are not an instruction of the accepted subset.
pub fn decode(bytes: &[u8]) -> Result<Instruction, Reason> {
    match bytes.first_chunk::<WINDOW>() {
        Some(window) => decode_window(window),
        None => {
            let mut window = [0; WINDOW];
            window[..bytes.len()].copy_from_slice(bytes);
            match decode_window(&window) {
                Ok(i) if usize::from(i.len) <= bytes.len() => Ok(i),
                Ok(_) => Err(Reason::Truncated),
                Err(reason) => Err(reason),
            }
        }
    }
}

/// Prefixes and extension bits of one instruction, from whichever encoding it has.
struct Head {
    prefixes: u8,
    /// The whole REX byte, 0 without one.
    rex: u8,
    w: bool,
    /// [`EXT_REG`], [`EXT_INDEX`] and [`EXT_BASE`]: the fourth bits of register numbers.
    extension: u8,
    l: u8,
    vvvv: u8,
}

const EXT_REG: u8 = 4;
const EXT_INDEX: u8 = 2;
const EXT_BASE: u8 = 1;

#[inline(always)]
pub(crate) fn decode_window(code: &[u8; WINDOW]) -> Result<Instruction, Reason> {
    let byte = |at: usize| code[at % WINDOW];
    let mut at = 0;
    let mut prefixes = 0u8;
    let mut opcode = byte(at);
    while PREFIX[usize::from(opcode)] != 0 {
        let bit = PREFIX[usize::from(opcode)];
        if prefixes & bit != 0 {
            return Err(Reason::RepeatedPrefix);
        }
        prefixes |= bit;
        at += 1;
        opcode = byte(at);
    }
    let mut head = Head {
        prefixes,
        rex: 0,
        w: false,
        extension: 0,
        l: 0,
        vvvv: 0,
    };
    if opcode & 0xF0 == 0x40 {
        head.rex = opcode;
        head.w = opcode & 8 != 0;
        head.extension = opcode & 7;
        at += 1;
        opcode = byte(at);
        if PREFIX[usize::from(opcode)] != 0
            || opcode & 0xF0 == 0x40
            || matches!(opcode, 0x26 | 0x2E | 0x36 | 0x3E | 0x64)
        {
            return Err(Reason::RexPlace);
        }
    }
    at += 1;

    let page;
    if opcode == 0x0F {
        let selected = match prefixes & (F2 | F3 | OPSIZE) {
            0 => 0,
            OPSIZE => 1,
            p if p & (F2 | F3) == F3 => 2,
            p if p & (F2 | F3) == F2 => 3,
            _ => return Err(Reason::Prefix),
        };
        opcode = byte(at);
        at += 1;
        let map = match opcode {
            0x38 => M38,
            0x3A => M3A,
            _ => M0F,
        };
        if map != M0F {
            opcode = byte(at);
            at += 1;
        }
        page = map + selected;
        if page == M0F + 2 && opcode == 0x1E {
            return endbr64(code);
        }
    } else if opcode == 0xC4 || opcode == 0xC5 {
        if head.rex != 0 || prefixes & !(GS | ADDR32) != 0 {
            return Err(Reason::Prefix);
        }
        let first = byte(at);
        let (map, last) = if opcode == 0xC5 {
            at += 1;
            head.extension = !first >> 5 & EXT_REG;
            (1, first)
        } else {
            let second = byte(at + 1);
            at += 2;
            head.extension = !first >> 5;
            head.w = second & 0x80 != 0;
            (first & 0x1F, second & 0x7F)
        };
        head.vvvv = !last >> 3 & 15;
        head.l = last >> 2 & 1;
        if map == 0 || map > 3 {
            return Err(Reason::NotAccepted);
        }
        page = VEX + (map - 1) * 4 + (last & 3);
        opcode = byte(at);
        at += 1;
    } else {
        page = ONE;
    }

    let mut op = &TABLES.ops[usize::from(page) * 256 + usize::from(opcode)];
    if op.form == Form::Group {
        op = &TABLES.groups[usize::from(op.group)][usize::from(byte(at) >> 3 & 7)];
    }
    if page == ONE && opcode & 0xF8 == 0xD8 && byte(at) >= 0xC0 {
        return x87_register(opcode, byte(at), &head);
    }
    finish(code, at, page, opcode, op, &head)
}

/// Decodes what follows the opcode and checks the prefixes against what the opcode allows.
#[inline(always)]
fn finish(
    code: &[u8; WINDOW],
    mut at: usize,
    page: u8,
    opcode: u8,
    op: &Op,
    head: &Head,
) -> Result<Instruction, Reason> {
    let byte = |at: usize| code[at % WINDOW];
    let prefixes = head.prefixes;
    let mut written = 0u16;
    let mut mentioned = 0u16;
    let mut memory = Memory::None;
    let mut displacement = 0;
    let mut other = op.other;
    let reg_extension = (head.extension & EXT_REG) << 1;
    let index_extension = (head.extension & EXT_INDEX) << 2;
    let base_extension = (head.extension & EXT_BASE) << 3;
    // Extension bits that mean nothing here: decoders have been seen to disagree about some of them.
    let mut spare = head.extension;
    let mut name = |number: u8, role: Role| {
        let byte_register = matches!(role, Role::ReadByte | Role::WriteByte);
        // Without REX, the byte registers 4 to 7 are ah, ch, dh and bh.
        let number = if byte_register && head.rex == 0 {
            number & 3
        } else {
            number
        };
        match role {
            Role::Read | Role::ReadByte => mentioned |= 1 << number,
            Role::Write | Role::WriteByte => {
                mentioned |= 1 << number;
                written |= 1 << number;
            }
            Role::Absent | Role::Vector | Role::VectorIfRegister => {}
        }
    };

    match op.form {
        Form::ModRm => {
            let modrm = byte(at);
            at += 1;
            if op.reg != Role::Absent {
                name(modrm >> 3 & 7 | reg_extension, op.reg);
                spare &= !EXT_REG;
            }
            let rm = modrm & 7;
            if modrm >= 0xC0 {
                if op.rm == Role::Absent {
                    return Err(op.reason);
                }
                if op.flags & flag::RM0 != 0 && (rm != 0 || head.rex != 0) {
                    return Err(Reason::NotAccepted);
                }
                name(rm | base_extension, op.rm);
                spare &= !EXT_BASE;
            } else {
                if op.flags & flag::MEMORY == 0 {
                    return Err(op.reason);
                }
                memory = Memory::Free;
                let mut no_base = rm == 5;
                let mut through_r14 = false;
                if rm == 4 {
                    let sib = byte(at);
                    at += 1;
                    through_r14 =
                        head.extension & (EXT_INDEX | EXT_BASE) == EXT_INDEX | EXT_BASE && sib == HELD_SIB;
                    let index = sib >> 3 & 7 | index_extension;
                    spare &= !EXT_INDEX;
                    if index != 4 {
                        name(index, Role::Read);
                    }
                    no_base = sib & 7 == 5;
                    if !no_base || modrm >= 0x40 {
                        name(sib & 7 | base_extension, Role::Read);
                        spare &= !EXT_BASE;
                    }
                } else if !no_base || modrm >= 0x40 {
                    name(rm | base_extension, Role::Read);
                    spare &= !EXT_BASE;
                }
                let reach = match modrm >> 6 {
                    0 => 0,
                    1 => i32::from(byte(at) as i8),
                    _ => dword(code, at),
                };
                if through_r14 && (0..HELD_REACH).contains(&reach) {
                    memory = Memory::Held;
                } else if through_r14 && reach == words::VIEW {
                    memory = Memory::View;
                }
                match modrm >> 6 {
                    0 if no_base => {
                        if rm == 5 {
                            memory = Memory::Rip;
                            displacement = dword(code, at);
                        }
                        at += 4;
                    }
                    0 => {}
                    1 => at += 1,
                    _ => at += 4,
                }
            }
            if other == Role::VectorIfRegister && memory != Memory::None {
                other = Role::Absent;
            }
        }
        Form::LowBits => {
            name(opcode & 7 | base_extension, op.other);
            spare &= !EXT_BASE;
        }
        Form::Plain => {}
        Form::Branch => {
            if prefixes != 0 || head.rex != 0 {
                return Err(Reason::Prefix);
            }
        }
        Form::Refused | Form::Group => return Err(op.reason),
    }

    if page >= VEX {
        name(head.vvvv, other);
        let bad_l = if op.flags & flag::L_ANY == 0 {
            head.l != 0
        } else {
            op.flags & flag::L1 != 0 && head.l == 0
        };
        let bad_w = if op.flags & flag::W_ANY == 0 {
            head.w
        } else {
            op.flags & flag::W1 != 0 && !head.w
        };
        if spare != 0 || bad_l || bad_w || other == Role::Absent && head.vvvv != 0 {
            return Err(Reason::VexReserved);
        }
    } else if prefixes & !(GS | ADDR32) | head.rex != 0 || op.flags & flag::W1 != 0 {
        if spare != 0 {
            return Err(Reason::RexUse);
        }
        legacy_prefixes(op, page, opcode, head, memory)?;
    }

    let mut access = op.access;
    if prefixes & (GS | ADDR32) != 0 {
        if memory == Memory::None {
            return Err(Reason::AddressPrefix);
        }
        if access == Access::Address {
            if prefixes & GS != 0 || op.flags & flag::ADDR32 == 0 || memory == Memory::Rip {
                return Err(Reason::AddressPrefix);
            }
        } else if memory == Memory::Rip {
            return Err(Reason::SegmentedRip);
        } else if prefixes & (GS | ADDR32) == GS | ADDR32 {
            memory = Memory::Confined;
        } else {
            return Err(Reason::Unconfined);
        }
    }
    if access == Access::Address && memory != Memory::None {
        memory = Memory::None;
        displacement = 0;
    } else if memory == Memory::None {
        access = Access::Address;
    }

    let wide = prefixes & OPSIZE == 0;
    match op.imm {
        imm::NONE => {}
        imm::BYTE => {
            let value = byte(at);
            at += 1;
            if op.form == Form::Branch {
                displacement = i32::from(value as i8);
            } else if op.flags & flag::IS4 != 0 && value & 15 != 0 {
                return Err(Reason::VexReserved);
            }
        }
        kind => {
            if op.form == Form::Branch {
                displacement = dword(code, at);
            }
            at += if !wide {
                2
            } else if kind == imm::V && head.w {
                8
            } else {
                4
            };
        }
    }
    if at > MAX_LEN {
        return Err(Reason::TooLong);
    }
    if op.flags & flag::RBX != 0 {
        mentioned |= 1 << 3;
    }
    if names_rsp(mentioned.into()) {
        return Err(Reason::StackPointer);
    }
    let size = if memory == Memory::None {
        0
    } else if op.size == SIZE_V && !wide {
        2
    } else {
        SIZES[usize::from(op.size % 16)][if op.size >= SIZE_BY_L {
            usize::from(head.l)
        } else {
            usize::from(head.w)
        }]
    };
    let mut features = op.features;
    if op.flags & flag::INT256 != 0 && head.l != 0 {
        features |= ringfence_isa::window::feature::AVX2 as u16;
    }
    let holds =
        page == ONE && matches!(opcode, 0x89 | 0x8B | 0x8D) && !head.w && wide && written & 1 << R11 != 0;
    Ok(Instruction {
        len: at as u8,
        flow: op.flow,
        memory,
        access,
        size,
        written: RegSet(written),
        mentioned: RegSet(mentioned),
        features,
        vector: op.flags & flag::VECTOR != 0,
        x87: op.flags & flag::X87 != 0,
        time_stamp: op.flags & flag::TSC != 0,
        holds,
        displacement,
    })
}

/// Checks 66, F2, F3, lock and REX of an instruction without VEX.
#[inline]
fn legacy_prefixes(op: &Op, page: u8, opcode: u8, head: &Head, memory: Memory) -> Result<(), Reason> {
    let prefixes = head.prefixes;
    if page == ONE && prefixes & (F2 | F3) != 0 {
        let pause = prefixes == F3 && opcode == 0x90 && head.rex == 0;
        let rep = prefixes & (F2 | F3) == F3 && op.flags & flag::REP != 0;
        let repne = prefixes & (F2 | F3) == F2 && op.flags & flag::REPNE != 0;
        if !(pause || rep || repne) {
            return Err(Reason::Prefix);
        }
    }
    // On the pages that 66 selects it is part of the opcode, unless the opcode has operands of variable size.
    let selected = page != ONE && (page - M0F) % 4 == 1 && op.flags & flag::OPSIZE == 0;
    if prefixes & OPSIZE != 0 && !selected && (op.flags & flag::OPSIZE == 0 || head.w) {
        return Err(Reason::Prefix);
    }
    if prefixes & LOCK != 0 && (op.flags & flag::LOCK == 0 || memory == Memory::None) {
        return Err(Reason::Lock);
    }
    if head.rex != 0 {
        if head.w && op.flags & flag::W_ANY == 0 {
            return Err(Reason::RexUse);
        }
        if op.form == Form::Plain && head.rex != 0x48 {
            return Err(Reason::RexUse);
        }
    }
    if op.flags & flag::W1 != 0 && !head.w {
        return Err(Reason::NotAccepted);
    }
    Ok(())
}

fn dword(code: &[u8; WINDOW], at: usize) -> i32 {
    let byte = |i: usize| code[(at + i) % WINDOW];
    i32::from_le_bytes([byte(0), byte(1), byte(2), byte(3)])
}

/// An instruction without operands that concern the verifier.
const SIMPLE: Instruction = Instruction {
    len: 0,
    flow: Flow::Next,
    memory: Memory::None,
    access: Access::Address,
    size: 0,
    written: RegSet(0),
    mentioned: RegSet(0),
    features: 0,
    vector: false,
    x87: false,
    time_stamp: false,
    holds: false,
    displacement: 0,
};

/// `F3 0F 1E FA`, the one instruction in that space of no-ops, in the one way to write it.
fn endbr64(code: &[u8; WINDOW]) -> Result<Instruction, Reason> {
    match code {
        [0xF3, 0x0F, 0x1E, 0xFA, ..] => Ok(Instruction { len: 4, ..SIMPLE }),
        _ => Err(Reason::HiddenNop),
    }
}

/// D8 to DF with registers only: no prefixes, and the second byte from a list.
fn x87_register(opcode: u8, second: u8, head: &Head) -> Result<Instruction, Reason> {
    if X87_REGISTER[usize::from(opcode & 7)] >> (second & 0x3F) & 1 == 0 {
        return Err(Reason::ControlState);
    }
    if head.prefixes != 0 || head.rex != 0 {
        return Err(Reason::Prefix);
    }
    Ok(Instruction {
        len: 2,
        x87: true,
        ..SIMPLE
    })
}
