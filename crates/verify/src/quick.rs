//! The quick decoder: what most instructions are, by three looks into tables and hardly a branch that the processor could
//! mispredict. It knows a part of what [`crate::decode`] accepts and says nothing of the rest, which goes the slow way;
//! of what it knows it must say the same. Its table is made from the same lines, so there is no second list of opcodes.

use crate::decode::{self, HELD_SIB};
use crate::notes::{Class, Note};
use crate::op::{Access, Flow, Form, Op, Role, flag, imm};
use crate::rules::rule_1_held::{self, R11};
use crate::rules::{rule_2_stack::names_rsp, rule_5_indirect::writes_r14};
use crate::table::{M0F, ONE, TABLES};
use core::hint::select_unpredictable;
use ringfence_isa::window::HELD_REACH;

/// As many bytes as the quick decoder wants to see. What it accepts is shorter.
pub(crate) const AHEAD: usize = 16;

/// An instruction that obeys all rules that can be judged of it alone, whatever else the module is allowed, and needs no
/// extension of the instruction set. Its memory operand is confined, or there is none, or it relies on what `r11` holds.
#[derive(Clone, Copy)]
pub(crate) struct Quick {
    pub len: usize,
    /// Length, class and facts. No marker.
    pub note: Note,
    /// General registers that it names.
    pub mentioned: u32,
    pub r11: R11,
    /// Direct jumps and calls: the distance.
    pub distance: i32,
}

/// What there is about an instruction, as bits: each entry has a set of those that it cannot have, in the register form
/// and in the memory form.
mod state {
    /// The lower half of REX as it is, 0 without one.
    pub const B: u32 = 1 << 0;
    pub const X: u32 = 1 << 1;
    pub const R: u32 = 1 << 2;
    pub const W: u32 = 1 << 3;
    pub const NOT_W: u32 = 1 << 4;
    pub const REX: u32 = 1 << 5;
    /// A REX without any bit set.
    pub const EMPTY_REX: u32 = 1 << 6;
    /// Behind 65 67; not behind them.
    pub const CONFINED: u32 = 1 << 7;
    pub const BARE: u32 = 1 << 8;
    pub const RIP: u32 = 1 << 9;
    /// ModRM.reg is 4 to 7 without REX, which means another register if it has 8 bits; the same for ModRM.rm or the opcode.
    pub const HIGH_REG: u32 = 1 << 10;
    pub const HIGH_RM: u32 = 1 << 11;
    /// 66, F2 or F3.
    pub const SELECTOR: u32 = 1 << 12;
    /// Every instruction has it.
    pub const ANY: u32 = 1 << 13;
    /// The byte is 66, F2 or F3, and not yet what stands behind. Nothing refuses it.
    pub const SELECTS: u32 = 1 << 14;
}

/// One opcode with a value of ModRM.reg and a prefix that selects.
#[derive(Clone, Copy)]
struct Entry {
    /// The [`state`]s that are not accepted in the register form, and in the memory form.
    refused: [u16; 2],
    /// See below.
    bits: u16,
    /// What is the same in all notes: class and [`Note::VECTOR`].
    note: u16,
    /// Masks for a [`Layout`]'s operands: those that are general registers, and those that are written.
    named: u16,
    written: u16,
}

/// Bytes of immediate: bits 0 to 2 of an entry's bits. The next: four more with W.
const IMMEDIATE: u16 = 7;
const IMMEDIATE_W: u32 = 3;
const MODRM: u16 = 1 << 4;
/// Of two operands as one word: ModRM.reg, and ModRM.rm or the register in the opcode.
const REG: u16 = 0xFF;
const RM: u16 = 0xFF00;
/// The memory operand is read, and not written.
const READ: u16 = 1 << 9;
/// Without W, it is one of the moves that make `r11` hold a lower half, if that is what it writes.
const HOLDS: u32 = 10;
/// Behind it nothing is known of `r11`: the bit of `r11` in a set of registers.
const ENDS: u32 = decode::R11 as u32;

const UNKNOWN: Entry = Entry {
    refused: [state::ANY as u16; 2],
    bits: 0,
    note: 0,
    named: 0,
    written: 0,
};

/// Which of the pages an opcode is on: bits 0 and 1 the prefix (none, 66, F3, F2), bit 2 for the map 0F.
const PAGES: usize = 8;

static ENTRIES: [Entry; PAGES << 11] = {
    let mut entries = [UNKNOWN; PAGES << 11];
    let mut i = 0;
    while i < entries.len() {
        entries[i] = entry(i >> 11, i >> 3 & 0xFF, i & 7);
        i += 1;
    }
    entries
};

/// What the tables say of an opcode, if it is one for the quick decoder.
const fn entry(page: usize, opcode: usize, digit: usize) -> Entry {
    let selected = page & 3;
    let two = page >= 4;
    // 66 is all that the one-byte map takes, and only for size. The maps behind 38 and 3A, and `endbr64`, go the slow way.
    if !two && selected > 1 || two && matches!(opcode, 0x1E | 0x38 | 0x3A) {
        return UNKNOWN;
    }
    let table = if two {
        M0F as usize + selected
    } else {
        ONE as usize
    };
    let mut op = TABLES.ops[table * 256 + opcode];
    if matches!(op.form, Form::Group) {
        op = TABLES.groups[op.group as usize][digit];
    }
    let unusual =
        flag::X87 | flag::TSC | flag::RBX | flag::RM0 | flag::INT256 | flag::L_ANY | flag::L1 | flag::IS4;
    let opsize = op.flags & flag::OPSIZE != 0;
    if op.features != 0 || op.flags & unusual != 0 || !two && selected == 1 && !opsize {
        return UNKNOWN;
    }
    let class = match op.flow {
        Flow::Next => Class::Plain,
        Flow::Push => Class::Push,
        Flow::Pop => Class::Pop,
        Flow::Return => Class::Return,
        Flow::Jump => Class::Jump,
        Flow::Branch => Class::Branch,
        Flow::Call => Class::Call,
        Flow::Trap => Class::Trap,
        Flow::IndirectJump | Flow::IndirectCall | Flow::String => return UNKNOWN,
    };
    // 66 as the size of an operand excludes W.
    let w_set = op.flags & flag::W_ANY != 0 && !(selected == 1 && opsize);
    let w = if w_set { 0 } else { state::W } | if op.flags & flag::W1 == 0 { 0 } else { state::NOT_W };
    let Some((register, memory, (named, written))) = forms(&op) else {
        return UNKNOWN;
    };
    let immediate = match op.imm {
        imm::NONE => 0,
        imm::BYTE => 1,
        _ if selected == 1 => 2,
        imm::Z => 4,
        _ => 4 | 1 << IMMEDIATE_W,
    };
    let modrm = if matches!(op.form, Form::ModRm) { MODRM } else { 0 };
    let read = if matches!(op.access, Access::Read) {
        READ
    } else {
        0
    };
    let holds = if !two && selected == 0 && matches!(opcode, 0x89 | 0x8B | 0x8D) {
        1 << HOLDS
    } else {
        0
    };
    let ends = (rule_1_held::ends(class) as u16) << ENDS;
    Entry {
        refused: [(register | w) as u16, (memory | w) as u16],
        bits: immediate | modrm | read | holds | ends,
        note: Note::of_class(class, op.flags & flag::VECTOR != 0),
        named,
        written,
    }
}

/// What the register form and the memory form of an opcode refuse, and the masks of the registers.
const fn forms(op: &Op) -> Option<(u32, u32, (u16, u16))> {
    use state::*;
    let unextended = B | X | R;
    Some(match op.form {
        Form::Refused | Form::Group => return None,
        Form::Branch => (REX | CONFINED | SELECTOR, ANY, (0, 0)),
        Form::Plain => (unextended | EMPTY_REX | CONFINED, ANY, (0, 0)),
        Form::LowBits => {
            let (named, written, high) = role(op.other, RM);
            let high = if high { HIGH_RM } else { 0 };
            (X | R | CONFINED | high, ANY, (named, written))
        }
        Form::ModRm => {
            let (reg, reg_written, reg_high) = role(op.reg, REG);
            let (rm, rm_written, rm_high) = role(op.rm, RM);
            let both =
                if matches!(op.reg, Role::Absent) { R } else { 0 } | if reg_high { HIGH_REG } else { 0 };
            let register = both | X | CONFINED | if rm_high { HIGH_RM } else { 0 };
            let register = if matches!(op.rm, Role::Absent) {
                ANY
            } else {
                register
            };
            // An address that is only computed has no prefixes, and may be relative to RIP.
            let place = if matches!(op.access, Access::Address) {
                CONFINED
            } else {
                BARE | RIP
            };
            let memory = if op.flags & flag::MEMORY == 0 {
                ANY
            } else {
                both | place
            };
            (register, memory, (reg | rm, reg_written | rm_written))
        }
    })
}

/// `place` if the operand is a general register, and if that is written; and whether it has 8 bits.
const fn role(role: Role, place: u16) -> (u16, u16, bool) {
    match role {
        Role::Absent | Role::Vector | Role::VectorIfRegister => (0, 0, false),
        Role::Read => (place, 0, false),
        Role::Write => (place, place, false),
        Role::ReadByte => (place, 0, true),
        Role::WriteByte => (place, place, true),
    }
}

/// What a ModRM byte says.
#[derive(Clone, Copy)]
struct Layout {
    /// The [`state`]s that it brings about.
    state: u16,
    /// The ones that it refuses: bits of REX that extend nothing.
    refused: u16,
    /// ModRM.reg and the register or base in ModRM.rm ([`REG`], [`RM`]), each a set of one. No base: empty.
    operands: u16,
    /// [`RM`] if that is a base: it is always named, and never written.
    base: u16,
    /// How many bytes there are with it, but for what SIB says.
    len: u8,
    /// 1 if there is a memory operand, with SIB 3.
    memory: u8,
}

static LAYOUTS: [Layout; 256] = {
    let nothing = Layout {
        state: 0,
        refused: 0,
        operands: 0,
        base: 0,
        len: 0,
        memory: 0,
    };
    let mut layouts = [nothing; 256];
    let mut modrm = 0;
    while modrm < 256 {
        let (mode, reg, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
        let (sib, rip) = (mode != 3 && rm == 4, mode == 0 && rm == 5);
        let high_rm = if mode == 3 && rm >= 4 { state::HIGH_RM } else { 0 };
        let state = if rip { state::RIP } else { high_rm } | if reg >= 4 { state::HIGH_REG } else { 0 };
        let refused = if sib { 0 } else { state::X } | if rip { state::B } else { 0 };
        layouts[modrm] = Layout {
            state: state as u16,
            refused: refused as u16,
            operands: 1 << reg | if sib || rip { 0 } else { 1 << (8 + rm) },
            base: if mode == 3 { 0 } else { RM },
            len: 1 + sib as u8 + if mode == 2 || rip { 4 } else { (mode == 1) as u8 },
            memory: (mode != 3) as u8 | (sib as u8) << 1,
        };
        modrm += 1;
    }
    layouts
};

/// For the byte behind the prefixes, REX or not: the [`state`]s, and which of a [`Layout`]'s to keep (upper half).
static REX: [u32; 256] = {
    let high = state::HIGH_REG | state::HIGH_RM;
    let mut states = [state::ANY | state::NOT_W | 0xFFFF << 16; 256];
    states[0x66] |= state::SELECTS;
    states[0xF2] |= state::SELECTS;
    states[0xF3] |= state::SELECTS;
    let mut rex = 0x40;
    while rex < 0x50 {
        let w = if rex & 8 == 0 { state::NOT_W } else { 0 };
        let empty = if rex == 0x40 { state::EMPTY_REX } else { 0 };
        states[rex] = rex as u32 & 15 | state::ANY | state::REX | w | empty | (0xFFFF & !high) << 16;
        rex += 1;
    }
    states
};

/// The prefixes that may stand between 65 67 and REX, as [`ENTRIES`] counts them.
const fn selector(byte: u8) -> usize {
    match byte {
        0x66 => 1,
        0xF3 => 2,
        0xF2 => 3,
        _ => 0,
    }
}

/// 65 67, as a little-endian word.
const PREFIXES: u16 = 0x6765;
/// `0F 1F 84` is how markers begin; with nothing but zeroes behind, it is what assemblers fill gaps with.
const FILLER: u64 = 0x84_1F0F;
const INDEX_AND_BASE: u32 = state::X | state::B;

/// The instruction at the start of `code`, if it is of the usual kind. `free` tells whether loads may stand without prefixes.
///
/// Up to and including SIB it has 8 bytes at most (65 67, 66 F2 or F3, REX, 0F, opcode, ModRM, SIB), so that one word
/// holds all that matters; and at most 14 in all. The next instruction cannot be looked at before this one's length is known,
/// so the way from `code` to `len` is kept short, and free of branches where programs vary.
#[inline(always)]
pub(crate) fn quick(code: &[u8; AHEAD], free: bool) -> Option<Quick> {
    let word = |at: usize| {
        code[at..]
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    };
    let confined = word(0) as u16 == PREFIXES;
    let mut rest = select_unpredictable(confined, word(2), word(0));
    let mut len = usize::from(confined) * 2 + 1;
    let mut state = if confined { state::CONFINED } else { state::BARE };
    let mut page = 0;
    let mut rex = REX[usize::from(rest as u8)];
    if rex & state::SELECTS != 0 {
        page = selector(rest as u8);
        state |= state::SELECTOR;
        rest >>= 8;
        len += 1;
        rex = REX[usize::from(rest as u8)];
    }
    let has_rex = rex & state::REX != 0;
    state |= rex & 0xFFFF;
    let rest = select_unpredictable(has_rex, rest >> 8, rest);
    let two = rest as u8 == 0x0F;
    let rest = select_unpredictable(two, rest >> 8, rest);
    len += usize::from(has_rex) + usize::from(two);
    let behind_opcode = len;
    page |= usize::from(two) << 2;
    let [opcode, modrm, sib, ..] = rest.to_le_bytes();
    let entry =
        &ENTRIES[(page << 11 | usize::from(opcode) << 3 | usize::from(modrm >> 3 & 7)) % (PAGES << 11)];
    let bits = u32::from(entry.bits);
    let one = |bit: u32| bits >> bit & 1;

    // The fourth bits of the registers' numbers, as the distance of the upper eight from the lower.
    let r = (rex & state::R) << 1;
    let b = (rex & state::B) << 3;
    let immediate = (entry.bits & IMMEDIATE) as usize;
    let wide = (bits >> IMMEDIATE_W & rex >> 3 & 1) as usize;
    len += immediate + wide * 4;
    let has_modrm = entry.bits & MODRM != 0;
    len += select_unpredictable(has_modrm, usize::from(LAYOUTS[usize::from(modrm)].len), 0);
    // Without ModRM, a register is in the opcode, as if there were one with mod = 3.
    let form = select_unpredictable(has_modrm, modrm, 0xC0 | opcode & 7);
    let layout = &LAYOUTS[usize::from(form)];
    let memory = u32::from(layout.memory & 1);
    state |= u32::from(layout.state) & rex >> 16;
    let mut operands = layout.operands;
    let mut own = u32::from(layout.refused);
    let mut index = 0;
    let mut through_r14 = false;
    if layout.memory & 2 != 0 {
        let number = u32::from(sib) >> 3 & 7 | (rex & state::X) << 2;
        index = u32::from(number != 4) << number;
        // Without displacement, base 5 is none, but a displacement of four bytes.
        let no_base = modrm < 0x40 && sib & 7 == 5;
        len += usize::from(no_base) * 4;
        own |= if no_base { state::B } else { 0 };
        operands = operands & REG | u16::from(!no_base) << (8 + (sib & 7));
        if sib == HELD_SIB && !confined && rex & INDEX_AND_BASE == INDEX_AND_BASE {
            // Behind ModRM and SIB, at the tenth byte at the latest.
            let place = code[behind_opcode + 2..].first_chunk();
            let behind = place.map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes)) as i32;
            let reach = match modrm >> 6 {
                0 => 0,
                1 => i32::from(behind as i8),
                _ => behind,
            };
            through_r14 = (0..HELD_REACH).contains(&reach);
        }
    }
    let registers = |mask: u16| {
        let set = u32::from(operands & mask);
        (set & u32::from(REG)) << r | (set >> 8) << b
    };
    let mentioned = registers(entry.named | layout.base) | index;
    let written = registers(entry.written & !layout.base);
    let refused = u32::from(entry.refused[memory as usize]) | own;
    // Integrity mode.
    if free && memory == 1 && entry.bits & READ != 0 {
        state &= !state::BARE;
    }
    // It is accessed, and not free.
    let mut relies = false;
    if through_r14 {
        relies = refused & state & state::BARE != 0;
        state &= !state::BARE;
    }
    let r11 = written >> decode::R11;
    let holds = r11 & one(HOLDS) & !(rex >> 3) & 1 == 1;
    let lost = (bits | written) >> ENDS & 1 == 1;
    // What could be a marker goes the slow way as well.
    let marker = word(0) & 0xFF_FFFF == FILLER && word(0) != FILLER;
    if state & refused != 0 || names_rsp(mentioned) || writes_r14(written) || marker {
        return None;
    }
    let behind = rest >> 8;
    Some(Quick {
        len,
        note: Note::from_parts(len, entry.note, written),
        mentioned,
        r11: R11 { relies, lost, holds },
        distance: if immediate == 1 {
            i32::from(behind as i8)
        } else {
            behind as i32
        },
    })
}

#[cfg(test)]
mod tests;
