//! The quick decoder: what most instructions are, by five looks into tables and hardly a branch that the processor could
//! mispredict. It knows a part of what [`crate::decode`] accepts and says nothing of the rest, which goes the slow way;
//! of what it knows it must say the same. Its table is made from the same lines, so there is no second list of opcodes.

use crate::decode::HELD_SIB;
use crate::notes::{Class, Note};
use crate::op::{Access, Flow, Form, Op, Role, flag, imm};
use crate::rules::rule_1_held::{self, R11};
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
    pub note: Note,
    /// [`VECTOR`] and [`CALL`], among others.
    pub bits: u8,
    pub r11: R11,
}

/// It uses vector registers.
pub(crate) const VECTOR: u8 = 1 << 0;
/// It is a direct call.
pub(crate) const CALL: u8 = 1 << 1;
/// The memory operand is read, and not written.
const READ: u8 = 1 << 2;
/// It is one of the moves that make `r11` hold a lower half, if that is what it writes, and without W.
const HOLDS: u8 = 1 << 3;

/// What there is about an instruction, as bits of one word. Each entry of the table of opcodes has those that it refuses.
mod state {
    /// Bytes of SIB and displacement, but for what SIB says.
    pub const LEN: u32 = 15;
    /// From REX: the registers' fourth bits, the others, and whether there is one.
    pub const R: u32 = 1 << 4;
    pub const NOT_B: u32 = 1 << 5;
    pub const W: u32 = 1 << 6;
    pub const NOT_W: u32 = 1 << 7;
    // These four with SIB are an index of [`super::SIBS`].
    pub const X: u32 = 1 << 8;
    pub const B: u32 = 1 << 9;
    /// ModRM.mod is 0.
    pub const NEAR: u32 = 1 << 10;
    pub const SIB: u32 = 1 << 11;
    pub const REX: u32 = 1 << 12;
    /// A REX without any bit set.
    pub const EMPTY_REX: u32 = 1 << 13;
    /// ModRM.reg is `rsp` or `r14`, if it is a general register, and 4 to 7 without REX, which is another if it has 8 bits.
    pub const REG_RSP: u32 = 1 << 14;
    /// 66, F2 or F3.
    pub const SELECTOR: u32 = 1 << 15;
    pub const REG_R14: u32 = 1 << 16;
    pub const REG_HIGH: u32 = 1 << 17;
    /// The same for ModRM.rm, in the register form.
    pub const RM_RSP: u32 = 1 << 18;
    pub const RM_R14: u32 = 1 << 20;
    pub const RM_HIGH: u32 = 1 << 21;
    /// The memory form.
    pub const MEMORY: u32 = 1 << 22;
    pub const RIP: u32 = 1 << 23;
    /// With SIB and a displacement of four bytes, as the no-ops are that may be markers.
    pub const FAR_SIB: u32 = 1 << 24;
    /// A bit of REX that extends nothing. Whatever has ModRM refuses it.
    pub const SPARE: u32 = 1 << 25;
    /// Behind 65 67; not behind them.
    pub const CONFINED: u32 = 1 << 26;
    pub const BARE: u32 = 1 << 27;
    // The upper byte: what may have to do with `r11`.
    pub const B_AGAIN: u32 = 1 << 28;
    /// Every instruction has it.
    pub const ANY: u32 = 1 << 29;
    pub const REG_R11: u32 = 1 << 30;
    pub const RM_R11: u32 = 1 << 31;
    /// What is from REX, and so means something without ModRM too.
    pub const FROM_REX: u32 = R | NOT_B | W | NOT_W | X | B | B_AGAIN | REX | EMPTY_REX;
}
use state::*;

/// One opcode with a value of ModRM.reg and a prefix that selects.
#[derive(Clone, Copy)]
struct Entry {
    /// The states that are not accepted in the register form, and in the memory form.
    refused: [u32; 2],
    /// The states of REX and ModRM that mean something.
    keep: u32,
    /// Those in which nothing is known of `r11` behind it: their upper byte.
    lost: u8,
    /// Bytes from the opcode on, but for [`state::LEN`].
    len: u8,
    /// The [`Note`], but for the length.
    note: u8,
    bits: u8,
}

const UNKNOWN: Entry = Entry {
    refused: [ANY; 2],
    keep: 0,
    lost: 0,
    len: 0,
    note: 0,
    bits: 0,
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
    let table = if two { M0F + selected as u8 } else { ONE };
    let mut op = TABLES.ops[table as usize * 256 + opcode];
    if matches!(op.form, Form::Group) {
        op = TABLES.groups[op.group as usize][digit];
    }
    let unusual =
        flag::X87 | flag::TSC | flag::RBX | flag::RM0 | flag::INT256 | flag::L_ANY | flag::L1 | flag::IS4;
    let opsize = op.flags & flag::OPSIZE != 0;
    if op.features != 0 || op.flags & unusual != 0 || !two && selected == 1 && !opsize {
        return UNKNOWN;
    }
    let class = Class::of(op.flow);
    if matches!(class, Class::Sequence) {
        return UNKNOWN;
    }
    // 66 as the size of an operand excludes W.
    let w_set = op.flags & flag::W_ANY != 0 && !(selected == 1 && opsize);
    let immediate = match op.imm {
        imm::NONE => 0,
        imm::BYTE => 1,
        _ if selected == 1 => 2,
        _ => 4,
    };
    // With W, an immediate of kind V has eight bytes.
    let w = when(!w_set || op.imm == imm::V, W) | when(op.flags & flag::W1 != 0, NOT_W);
    let Some((register, memory, written)) = forms(&op, opcode as u32 & 7) else {
        return UNKNOWN;
    };
    // A no-op that may be a marker.
    let marker = when(two && opcode == 0x1F && selected == 0, FAR_SIB);
    let modrm = matches!(op.form, Form::ModRm);
    let holds = !two && selected == 0 && matches!(opcode, 0x89 | 0x8B | 0x8D);
    let bits = when(matches!(op.access, Access::Read), READ as u32)
        | when(op.flags & flag::VECTOR != 0, VECTOR as u32)
        | when(matches!(op.flow, Flow::Call), CALL as u32)
        | when(holds, HOLDS as u32);
    Entry {
        refused: [register | w, memory | w | marker],
        keep: if modrm { u32::MAX } else { FROM_REX },
        lost: ((written | when(rule_1_held::ends(op.flow), ANY)) >> 24) as u8,
        len: 1 + modrm as u8 + immediate,
        note: Note::of_class(class),
        bits: bits as u8,
    }
}

/// What the register form and the memory form of an opcode refuse, and the states in which it writes `r11`. `low`: the opcode's low bits.
const fn forms(op: &Op, low: u32) -> Option<(u32, u32, u32)> {
    let (other, written) = role(op.other);
    Some(match op.form {
        Form::Refused | Form::Group => return None,
        Form::Branch => (REX | CONFINED | SELECTOR, ANY, 0),
        Form::Plain => (B | X | R | EMPTY_REX | CONFINED, ANY, 0),
        Form::LowBits => {
            let rsp = when(low == 4, NOT_B);
            let r14 = when(low == 6 && written, B);
            // Without REX, the byte registers 4 to 7 are others: the slow decoder knows.
            let high = when(low >= 4 && other & RM_HIGH != 0, ANY);
            let r11 = when(low == 3 && written, B_AGAIN);
            (X | R | CONFINED | rsp | r14 | high, ANY, r11)
        }
        Form::ModRm => {
            let ((reg, reg_written), (rm, rm_written)) = (role(op.reg), role(op.rm));
            let of_reg = REG_RSP | REG_HIGH | when(reg_written, REG_R14);
            let of_rm = RM_RSP | RM_HIGH | when(rm_written, RM_R14);
            let both = SPARE | when(matches!(op.reg, Role::Absent), R) | reg & of_reg;
            let no_register = when(matches!(op.rm, Role::Absent), ANY);
            let no_memory = when(op.flags & flag::MEMORY == 0, ANY);
            // An address that is only computed has no prefixes, and may be relative to RIP.
            let computed = matches!(op.access, Access::Address);
            let place = if computed { CONFINED } else { BARE | RIP };
            let r11 = when(reg_written, REG_R11) | when(rm_written, RM_R11);
            (
                both | CONFINED | rm & of_rm | no_register,
                both | place | no_memory,
                r11,
            )
        }
    })
}

/// The states that matter to an operand, be it in ModRM.reg or ModRM.rm, and whether it is a general register that is written.
const fn role(role: Role) -> (u32, bool) {
    let general = REG_RSP | REG_R14 | RM_RSP | RM_R14;
    match role {
        Role::Absent | Role::Vector | Role::VectorIfRegister => (0, false),
        Role::Read => (general, false),
        Role::Write => (general, true),
        Role::ReadByte => (general | REG_HIGH | RM_HIGH, false),
        Role::WriteByte => (general | REG_HIGH | RM_HIGH, true),
    }
}

/// What REX and ModRM say: by the lower half of REX, 16 without one, and ModRM.
static LAYOUTS: [u32; 32 << 8] = {
    let mut layouts = [0; 32 << 8];
    let mut i = 0;
    while i < 17 << 8 {
        layouts[i] = layout(i >> 8, i as u32 & 0xFF);
        i += 1;
    }
    layouts
};

const fn layout(rex: usize, modrm: u32) -> u32 {
    let (mode, reg, rm) = (modrm >> 6, modrm >> 3 & 7, modrm & 7);
    let (w, r, x, b) = (rex & 24 == 8, rex & 20 == 4, rex & 18 == 2, rex & 17 == 1);
    let rex_bits = when(rex < 16, REX)
        | when(rex == 0, EMPTY_REX)
        | when(r, R)
        | when(x, X)
        | if w { W } else { NOT_W }
        | if b { B | B_AGAIN } else { NOT_B };
    let of_reg = register(reg, r, rex == 16, [REG_RSP, REG_R11, REG_R14, REG_HIGH]);
    if mode == 3 {
        let of_rm = register(rm, b, rex == 16, [RM_RSP, RM_R11, RM_R14, RM_HIGH]);
        return rex_bits | of_reg | of_rm | when(x, SPARE);
    }
    let (sib, rip) = (rm == 4, mode == 0 && rm == 5);
    let displacement = if mode == 2 || rip { 4 } else { mode };
    rex_bits
        | of_reg
        | MEMORY
        | (displacement + sib as u32)
        | when(mode == 0, NEAR)
        | when(sib, SIB)
        | when(sib && mode == 2, FAR_SIB)
        | when(rip, RIP)
        | when(x && !sib || b && rip, SPARE)
}

/// `bits` under a condition.
const fn when(condition: bool, bits: u32) -> u32 {
    if condition { bits } else { 0 }
}

/// The states of a register: `rsp`, `r11`, `r14`, and whether it has another meaning as one of 8 bits.
const fn register(number: u32, fourth: bool, no_rex: bool, [rsp, r11, r14, high]: [u32; 4]) -> u32 {
    match (number, fourth) {
        (4, false) => rsp | when(no_rex, high),
        (5..=7, false) if no_rex => high,
        (3, true) => r11,
        (6, true) => r14,
        _ => 0,
    }
}

/// What SIB adds, by four states and its value. The third bit is also how many bytes a displacement has that stands for a base.
static SIBS: [u8; 16 << 8] = {
    let mut sibs = [0; 16 << 8];
    let mut i = SIB as usize;
    while i < sibs.len() {
        let (state, base) = (i as u32, i & 7);
        let (x, b) = (state & X != 0, state & B != 0);
        let no_base = base == 5 && state & NEAR != 0;
        // A base that is `rsp`, or a bit of REX that extends nothing.
        let refused = base == 4 && !b || no_base && b;
        let held = x && b && i & 0xFF == HELD_SIB as usize;
        let bits = when(no_base, SIB_DISPLACEMENT as u32) | when(refused, SIB_REFUSED as u32);
        sibs[i] = (bits | when(held, SIB_HELD as u32)) as u8;
        i += 1;
    }
    sibs
};
const SIB_REFUSED: u8 = 1;
/// `(%r14,%r11)`.
const SIB_HELD: u8 = 2;
const SIB_DISPLACEMENT: u8 = 4;

/// For the byte behind the prefixes: the upper half of an index of [`LAYOUTS`], whether it is REX, and whether it is 66, F2 or F3
/// (with the page in [`ENTRIES`]), behind which REX may stand.
static PREFIXES: [u16; 256] = {
    let mut prefixes = [NO_REX; 256];
    let mut rex = 0;
    while rex < 16 {
        prefixes[0x40 + rex] = (rex as u16) << 8 | IS_REX;
        rex += 1;
    }
    prefixes[0x66] |= 1;
    prefixes[0xF3] |= 2;
    prefixes[0xF2] |= 3;
    prefixes
};
const NO_REX: u16 = 16 << 8;
const IS_REX: u16 = 4;
const SELECTS: u16 = 3;

/// `nopl DISTANCE(%rax,%rax,2)` without its distance, as a little-endian word.
const SLOT: u32 = u32::from_le_bytes(ringfence_isa::sequence::SLOT_HEAD);
/// 65 67, likewise.
const GS_ADDR32: u16 = 0x6765;

/// The instruction at the start of `code`, if it is of the usual kind. `free` tells whether loads may stand without prefixes.
///
/// Up to and including SIB it has 8 bytes at most (65 67, 66 F2 or F3, REX, 0F, opcode, ModRM, SIB), so that one word
/// holds all that matters; and at most 15 in all. The next instruction cannot be looked at before this one's length is known,
/// so the way from `code` to `len` is kept short, and free of branches where programs vary.
#[inline(always)]
pub(crate) fn quick(code: &[u8; AHEAD], free: bool) -> Option<Quick> {
    let word = code.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let confined = word as u16 == GS_ADDR32;
    let mut rest = select_unpredictable(confined, word >> 16, word);
    let mut outer = select_unpredictable(confined, CONFINED | ANY, BARE | ANY);
    let mut len = usize::from(confined) * 2;
    let mut page = 0;
    let mut prefix = PREFIXES[usize::from(rest as u8)];
    if prefix & SELECTS != 0 {
        page = usize::from(prefix & SELECTS);
        outer |= SELECTOR;
        rest >>= 8;
        len += 1;
        prefix = PREFIXES[usize::from(rest as u8)];
    }
    let has_rex = prefix & IS_REX != 0;
    let rest = select_unpredictable(has_rex, rest >> 8, rest);
    let two = rest as u8 == 0x0F;
    let rest = select_unpredictable(two, rest >> 8, rest);
    len += usize::from(has_rex) + usize::from(two);
    let behind_prefixes = len;

    let (opcode, modrm) = (rest as usize & 0xFF, rest as usize >> 8 & 0xFF);
    page |= usize::from(two) << 2;
    let entry = &ENTRIES[(page << 11 | opcode << 3 | modrm >> 3 & 7) % (PAGES << 11)];
    let layout = LAYOUTS[(usize::from(prefix) & 0x1F00 | modrm) % LAYOUTS.len()];
    let state = layout & entry.keep | outer;
    let sib = SIBS[(state & (X | B | NEAR | SIB)) as usize | rest as usize >> 16 & 0xFF];
    len += usize::from(entry.len) + (state & LEN) as usize + usize::from(sib & SIB_DISPLACEMENT);

    let memory = state & MEMORY != 0;
    let mut wrong = state & entry.refused[usize::from(memory)];
    if free && memory && entry.bits & READ != 0 {
        wrong &= !BARE;
    }
    let mut relies = false;
    if sib & SIB_HELD != 0 && wrong & BARE != 0 {
        // Behind ModRM and SIB, at the tenth byte at the latest.
        let place = code
            .get(behind_prefixes + 3..)
            .and_then(|code| code.first_chunk());
        let behind = place.map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes)) as i32;
        let reach = match modrm >> 6 {
            0 => 0,
            1 => i32::from(behind as i8),
            _ => behind,
        };
        if (0..HELD_REACH).contains(&reach) {
            wrong &= !BARE;
            relies = true;
        }
    }
    if wrong | u32::from(sib & SIB_REFUSED) != 0 {
        // What assemblers fill gaps with is no marker, nor is the no-op that a table's distances stand in.
        let no_marker = word >> 32 == 0 || word as u32 == SLOT;
        if wrong != FAR_SIB || sib & SIB_REFUSED != 0 || !no_marker {
            return None;
        }
    }
    Some(Quick {
        len,
        note: Note(entry.note | len as u8),
        bits: entry.bits,
        r11: R11 {
            relies,
            lost: (state >> 24) as u8 & entry.lost != 0,
            holds: entry.bits & HOLDS != 0 && state & NOT_W != 0,
        },
    })
}

#[cfg(test)]
mod tests;
