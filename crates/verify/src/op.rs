//! The notation of the opcode tables, and what it is compiled to.
//!
//! [`crate::table`] describes each accepted opcode by a short line in the style of the processor manuals'
//! opcode maps. This module turns those lines into flat arrays while the crate is compiled; a line
//! that does not parse is a compile error.
//!
//! A line is a list of words. Operands are a letter, a size, and in front of them how the operand is accessed:
//! nothing for read, `=` for written, `+` for read and written.
//!
//! | letter | operand |
//! |---|---|
//! | `E` `R` `M` | ModRM.rm: general register or memory; register only; memory only |
//! | `W` `U` | ModRM.rm: vector register or memory; register only |
//! | `A` `N` | ModRM.rm, not accessed: memory whose address is taken; register or memory of a no-op |
//! | `G` `V` | ModRM.reg: general register; vector register |
//! | `B` `H` | VEX.vvvv: general register; vector register (`Hr`: only in the register form) |
//! | `Z` | low three bits of the opcode: general register |
//! | `L` | vector register in the upper half of an immediate byte |
//! | `Ib` `Iz` `Iv` | immediate: one byte; 2 or 4; 2, 4 or 8 |
//! | `Jb` `Jz` | branch displacement: one byte; four |
//!
//! Sizes in bytes: `b` 1, `w` 2, `d` 4, `q` 8, `o` 16, `t` 10; `1` is 1 in memory but not a byte register; `v` 2, 4 or 8 by
//! operand-size prefix and W; `y` 4 or 8 by W; `p` 8 or 16 by W; and by VEX.L `x` 16/32, `h` 8/16, `f` 4/8, `e` 2/4, `k` 8/32.
//!
//! Other words: `v` and `y` alone (the size of an implicit operand), `lock` (lockable in memory), `rep` (F3 accepted), `repne` (F2 accepted),
//! `a32` (address-size prefix accepted), `W1` `W*` (REX.W or VEX.W set; either), `L1` `L*` (the same for VEX.L; default 0, or
//! either if a size depends on it), `rm0` (register form with number 0 only), `rbx` (implicitly used), `vec` (implicitly
//! uses vector registers), `i` (AVX2 if 256 bits wide), `tsc`, `x87`, and how control goes on: `push pop ret jmp jcc call trap icall ijmp str`.

use crate::reason::Reason;

/// How control goes on after an instruction, as far as the encoding tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Flow {
    /// To the next instruction.
    Next,
    /// To the next instruction, with 8 bytes more on the control stack.
    Push,
    /// To the next instruction, with 8 bytes fewer.
    Pop,
    /// `ret`.
    Return,
    /// Direct jump.
    Jump,
    /// Direct conditional jump.
    Branch,
    /// Direct call.
    Call,
    /// Jump to what a register holds.
    IndirectJump,
    /// Call of what a register holds.
    IndirectCall,
    /// `ud2` or `int3`: control ends here.
    Trap,
    /// String instruction; to the next instruction.
    String,
}

/// What an instruction does with its memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Access {
    /// Nothing: only the address is computed (`lea`), or not even that (no-op).
    Address,
    /// Reads.
    Read,
    /// Writes, or reads and writes.
    Write,
}

/// How an opcode is laid out.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Form {
    /// Not accepted; `Op::reason` says why.
    Refused,
    /// ModRM.reg selects one of the eight entries of group `Op::group`.
    Group,
    /// Opcode and immediate only.
    Plain,
    /// Opcode whose low bits name a register.
    LowBits,
    /// Opcode with ModRM.
    ModRm,
    /// Branch or return: no prefixes whatsoever.
    Branch,
}

/// What an instruction does with a register operand.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    /// There is no such operand (ModRM.rm: the register form is refused).
    Absent,
    /// A vector register.
    Vector,
    /// VEX.vvvv only: a vector register in the register form, absent in the memory form.
    VectorIfRegister,
    Read,
    Write,
    ReadByte,
    WriteByte,
}

pub(crate) mod flag {
    /// 66 selects 16-bit operands.
    pub const OPSIZE: u32 = 1 << 0;
    /// W may be set.
    pub const W_ANY: u32 = 1 << 1;
    /// W must be set.
    pub const W1: u32 = 1 << 2;
    pub const LOCK: u32 = 1 << 3;
    pub const REP: u32 = 1 << 4;
    pub const L_ANY: u32 = 1 << 5;
    pub const L1: u32 = 1 << 6;
    /// The immediate's upper half names a register, its lower half is 0.
    pub const IS4: u32 = 1 << 7;
    pub const VECTOR: u32 = 1 << 8;
    pub const X87: u32 = 1 << 9;
    pub const ADDR32: u32 = 1 << 10;
    pub const RBX: u32 = 1 << 11;
    pub const TSC: u32 = 1 << 12;
    pub const RM0: u32 = 1 << 13;
    /// AVX2 if VEX.L is set.
    pub const INT256: u32 = 1 << 14;
    /// There is a memory form.
    pub const MEMORY: u32 = 1 << 15;
    pub const REPNE: u32 = 1 << 16;
}

/// Sizes of operands. The numbers index [`crate::table::SIZES`].
mod size {
    pub const NONE: u8 = 0;
    pub const V: u8 = 7;
    pub const Y: u8 = 8;
    pub const P: u8 = 9;
    pub const BY_L: u8 = 10; // this and all above depend on VEX.L
}

pub(crate) const SIZE_V: u8 = size::V;
pub(crate) const SIZE_BY_L: u8 = size::BY_L;

/// Kinds of immediates.
pub(crate) mod imm {
    pub const NONE: u8 = 0;
    pub const BYTE: u8 = 1;
    /// 2 bytes with 66, else 4.
    pub const Z: u8 = 2;
    /// 2 bytes with 66, 8 with W, else 4.
    pub const V: u8 = 3;
}

/// One opcode, ready for the decoder.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    pub flags: u32,
    /// Instruction-set extensions, `ringfence_isa::window::feature`.
    pub features: u16,
    pub form: Form,
    pub flow: Flow,
    pub reg: Role,
    pub rm: Role,
    /// VEX.vvvv, or the opcode's low bits.
    pub other: Role,
    pub access: Access,
    pub size: u8,
    pub imm: u8,
    pub group: u8,
    /// Why it is refused, or why the other form (register for memory and the reverse) is.
    pub reason: Reason,
}

impl Op {
    pub(crate) const fn refused(reason: Reason) -> Op {
        Op {
            flags: 0,
            features: 0,
            form: Form::Refused,
            flow: Flow::Next,
            reg: Role::Absent,
            rm: Role::Absent,
            other: Role::Absent,
            access: Access::Address,
            size: size::NONE,
            imm: imm::NONE,
            group: 0,
            reason,
        }
    }

    /// Compiles a line of [`crate::table`]. Runs at compile time only.
    pub(crate) const fn parse(line: &str, features: u32) -> Op {
        let mut op = Op::refused(Reason::NotAccepted);
        op.form = Form::Plain;
        op.features = features as u16;
        let mut rest = line.as_bytes();
        while !rest.is_empty() {
            let mut end = 0;
            while end < rest.len() && rest[end] != b' ' {
                end += 1;
            }
            let (word, behind) = rest.split_at(end);
            op = op.word(word);
            rest = match behind {
                [_, next @ ..] => next,
                [] => &[],
            };
        }
        op
    }

    const fn word(mut self, word: &[u8]) -> Op {
        self.flags |= match word {
            b"v" => flag::OPSIZE | flag::W_ANY,
            b"y" | b"W*" => flag::W_ANY,
            b"W1" => flag::W_ANY | flag::W1,
            b"L*" => flag::L_ANY,
            b"L1" => flag::L_ANY | flag::L1,
            b"L" => {
                self.imm = imm::BYTE;
                flag::IS4 | flag::VECTOR
            }
            b"lock" => flag::LOCK,
            b"rep" => flag::REP,
            b"repne" => flag::REPNE,
            b"a32" => flag::ADDR32,
            b"rm0" => flag::RM0,
            b"rbx" => flag::RBX,
            b"vec" => flag::VECTOR,
            b"x87" => flag::X87,
            b"tsc" => flag::TSC,
            b"i" => flag::INT256,
            _ => {
                self.flow = match word {
                    b"push" => Flow::Push,
                    b"pop" => Flow::Pop,
                    b"ret" => Flow::Return,
                    b"jmp" => Flow::Jump,
                    b"jcc" => Flow::Branch,
                    b"call" => Flow::Call,
                    b"trap" => Flow::Trap,
                    b"icall" => Flow::IndirectCall,
                    b"ijmp" => Flow::IndirectJump,
                    b"str" => Flow::String,
                    _ => return self.operand(word),
                };
                if matches!(self.flow, Flow::Return | Flow::Trap) {
                    self.form = Form::Branch;
                }
                0
            }
        };
        self
    }

    const fn operand(mut self, word: &[u8]) -> Op {
        let (writes, letter, unit) = match *word {
            [b'=' | b'+', letter, unit] => (true, letter, unit),
            [letter, unit] => (false, letter, unit),
            _ => panic!("unknown word in an opcode table"),
        };
        let code = match unit {
            b'b' | b'1' => 1,
            b'w' => 2,
            b'd' => 3,
            b'q' => 4,
            b'o' => 5,
            b't' => 6,
            b'v' => size::V,
            b'y' => size::Y,
            b'p' => size::P,
            b'x' => size::BY_L,
            b'h' => size::BY_L + 1,
            b'f' => size::BY_L + 2,
            b'e' => size::BY_L + 3,
            b'k' => size::BY_L + 4,
            b'z' | b'r' => size::NONE,
            _ => panic!("unknown size in an opcode table"),
        };
        if code == size::V {
            self.flags |= flag::OPSIZE | flag::W_ANY;
        } else if code == size::Y || code == size::P {
            self.flags |= flag::W_ANY;
        } else if code >= size::BY_L {
            self.flags |= flag::L_ANY;
        }
        let general = match (writes, unit == b'b') {
            (false, false) => Role::Read,
            (true, false) => Role::Write,
            (false, true) => Role::ReadByte,
            (true, true) => Role::WriteByte,
        };
        let access = if writes { Access::Write } else { Access::Read };
        if matches!(
            letter,
            b'E' | b'R' | b'M' | b'W' | b'U' | b'A' | b'N' | b'G' | b'V'
        ) {
            self.form = Form::ModRm;
        }
        if matches!(letter, b'W' | b'U' | b'V' | b'H') {
            self.flags |= flag::VECTOR;
        }
        if matches!(letter, b'E' | b'M' | b'W' | b'A' | b'N') {
            self.flags |= flag::MEMORY;
            self.size = code;
            self.access = if matches!(letter, b'A' | b'N') {
                Access::Address
            } else {
                access
            };
        }
        match letter {
            b'E' | b'R' => self.rm = general,
            b'W' | b'U' => self.rm = Role::Vector,
            b'N' => self.rm = Role::Read,
            b'M' | b'A' => {}
            b'G' => self.reg = general,
            b'V' => self.reg = Role::Vector,
            b'B' => self.other = general,
            b'H' if unit == b'r' => self.other = Role::VectorIfRegister,
            b'H' => self.other = Role::Vector,
            b'Z' => {
                self.form = Form::LowBits;
                self.other = general;
            }
            b'I' => {
                self.imm = match unit {
                    b'b' => imm::BYTE,
                    b'z' => imm::Z,
                    b'v' => imm::V,
                    _ => panic!("unknown immediate in an opcode table"),
                }
            }
            b'J' => {
                self.form = Form::Branch;
                self.imm = if unit == b'b' { imm::BYTE } else { imm::Z };
            }
            _ => panic!("unknown operand in an opcode table"),
        }
        self
    }
}
