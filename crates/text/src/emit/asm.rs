//! Encodings of single instructions.

/// No base or index.
pub const NO: u8 = 255;

/// An operand in memory.
#[derive(Clone, Copy, Debug)]
pub struct Address {
    pub base: u8,
    pub index: u8,
    pub scale: u8,
    pub disp: i32,
    /// The text's data are added to the displacement, which is written out then.
    pub data: bool,
}

impl Address {
    pub fn at(base: u8, disp: i32) -> Address {
        Address {
            base,
            index: NO,
            scale: 1,
            disp,
            data: false,
        }
    }
}

/// Operations of two operands, by the opcode of their form "register, register or memory".
pub mod alu {
    pub const ADD: u8 = 0x03;
    pub const OR: u8 = 0x0B;
    pub const AND: u8 = 0x23;
    pub const SUB: u8 = 0x2B;
    pub const XOR: u8 = 0x33;
    pub const CMP: u8 = 0x3B;
}

/// Code as it grows.
#[derive(Default)]
pub struct Asm {
    pub code: Vec<u8>,
    /// Where addresses of data have to be added to 32 bits.
    pub data: Vec<u32>,
}

impl Asm {
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    /// No-ops up to a multiple.
    pub fn align(&mut self, to: usize) {
        const NOPS: [&[u8]; 7] = [
            &[0x90],
            &[0x66, 0x90],
            &[0x0F, 0x1F, 0x00],
            &[0x0F, 0x1F, 0x40, 0],
            &[0x0F, 0x1F, 0x44, 0, 0],
            &[0x66, 0x0F, 0x1F, 0x44, 0, 0],
            &[0x0F, 0x1F, 0x80, 0, 0, 0, 0],
        ];
        let mut left = self.code.len().next_multiple_of(to) - self.code.len();
        while left > 0 {
            let len = left.min(NOPS.len());
            self.bytes(NOPS[len - 1]);
            left -= len;
        }
    }

    fn rex(&mut self, wide: bool, reg: u8, index: u8, base: u8, force: bool) {
        let bit = |r: u8| if r == NO { 0 } else { r >> 3 & 1 };
        let rex = 0x40 | u8::from(wide) << 3 | bit(reg) << 2 | bit(index) << 1 | bit(base);
        if rex != 0x40 || force {
            self.code.push(rex);
        }
    }

    /// An instruction of two registers.
    pub fn rr(&mut self, prefix: u8, op: &[u8], w: u8, reg: u8, rm: u8) {
        if prefix != 0 {
            self.code.push(prefix);
        }
        // Of bytes it is the second; the lower bytes of rsp, rbp, rsi and rdi need the prefix.
        let byte = w == 1 && rm >= 4;
        self.rex(w == 8, reg, 0, rm, byte);
        self.bytes(op);
        self.code.push(0xC0 | (reg & 7) << 3 | rm & 7);
    }

    fn modrm(&mut self, reg: u8, m: Address) {
        let reg = (reg & 7) << 3;
        let scale = (m.scale.trailing_zeros() as u8) << 6;
        let index = if m.index == NO { 4 } else { m.index & 7 };
        let full = |asm: &mut Asm| {
            if m.data {
                asm.data.push(asm.code.len() as u32);
            }
            asm.bytes(&m.disp.to_le_bytes());
        };
        if m.base == NO {
            self.bytes(&[reg | 4, scale | index << 3 | 5]);
            full(self);
            return;
        }
        let mode = match m.disp {
            _ if m.data => 0x80,
            0 if m.base & 7 != 5 => 0,
            d if i32::from(d as i8) == d => 0x40,
            _ => 0x80,
        };
        if m.index != NO || m.base & 7 == 4 {
            self.bytes(&[mode | reg | 4, scale | index << 3 | m.base & 7]);
        } else {
            self.code.push(mode | reg | m.base & 7);
        }
        match mode {
            0x40 => self.code.push(m.disp as u8),
            0x80 => full(self),
            _ => {}
        }
    }

    /// An instruction with an operand in the window.
    pub fn rm(&mut self, prefix: u8, op: &[u8], w: u8, reg: u8, m: Address) {
        self.bytes(&[0x65, 0x67]);
        if prefix != 0 {
            self.code.push(prefix);
        }
        self.rex(w == 8, reg, m.index, m.base, w == 1 && reg >= 4);
        self.bytes(op);
        self.modrm(reg, m);
    }

    pub fn lea(&mut self, w: u8, reg: u8, m: Address) {
        self.rex(w == 8, reg, m.index, m.base, false);
        self.code.push(0x8D);
        self.modrm(reg, m);
    }

    /// `lea` of a place in the code that is not known yet; returns where its distance is.
    pub fn lea_code(&mut self, reg: u8) -> u32 {
        self.rex(true, reg, 0, 0, false);
        self.bytes(&[0x8D, (reg & 7) << 3 | 5, 0, 0, 0, 0]);
        self.code.len() as u32 - 4
    }

    pub fn mov(&mut self, w: u8, to: u8, from: u8) {
        if to != from {
            self.rr(0, &[0x8B], w, to, from);
        }
    }

    pub fn constant(&mut self, to: u8, value: i64) {
        if value == 0 {
            // It changes flags, which nothing here keeps across instructions.
            self.rr(0, &[0x33], 4, to, to);
        } else if let Ok(low) = u32::try_from(value) {
            self.constant32(to, low);
        } else if i64::from(value as i32) == value {
            self.rr(0, &[0xC7], 8, 0, to);
            self.bytes(&(value as i32).to_le_bytes());
        } else {
            self.rex(true, 0, 0, to, false);
            self.code.push(0xB8 | to & 7);
            self.bytes(&value.to_le_bytes());
        }
    }

    pub fn constant32(&mut self, to: u8, value: u32) {
        self.rex(false, 0, 0, to, false);
        self.code.push(0xB8 | to & 7);
        self.bytes(&value.to_le_bytes());
    }

    /// An operation of `alu` with a constant.
    pub fn alu_constant(&mut self, op: u8, w: u8, reg: u8, value: i32) {
        let digit = op >> 3;
        if i32::from(value as i8) == value {
            self.rr(0, &[0x83], w, digit, reg);
            self.code.push(value as u8);
        } else {
            self.rr(0, &[0x81], w, digit, reg);
            self.bytes(&value.to_le_bytes());
        }
    }

    /// The same with what is in memory; of a byte too.
    pub fn alu_memory(&mut self, op: u8, w: u8, m: Address, value: i32) {
        let short = i32::from(value as i8) == value;
        let code = match w {
            1 => 0x80,
            _ if short => 0x83,
            _ => 0x81,
        };
        self.rm(0, &[code], w.max(4), op >> 3, m);
        self.immediate(if w == 1 || short { 1 } else { 4 }, value);
    }

    /// The constant at the end of an instruction.
    pub fn immediate(&mut self, w: u8, value: i32) {
        self.bytes(&value.to_le_bytes()[..usize::from(w)]);
    }

    pub fn push(&mut self, reg: u8) {
        self.rex(false, 0, 0, reg, false);
        self.code.push(0x50 | reg & 7);
    }

    pub fn pop(&mut self, reg: u8) {
        self.rex(false, 0, 0, reg, false);
        self.code.push(0x58 | reg & 7);
    }

    /// A move between vector registers.
    pub fn movaps(&mut self, to: u8, from: u8) {
        if to != from {
            self.rr(0, &[0x0F, 0x28], 4, to, from);
        }
    }

    /// An instruction on floats of `w` bytes, between vector registers.
    pub fn float(&mut self, op: u8, w: u8, reg: u8, rm: u8) {
        self.rr(if w == 4 { 0xF3 } else { 0xF2 }, &[0x0F, op], 4, reg, rm);
    }

    /// Loads or stores a float.
    pub fn float_memory(&mut self, op: u8, w: u8, reg: u8, m: Address) {
        self.rm(if w == 4 { 0xF3 } else { 0xF2 }, &[0x0F, op], 4, reg, m);
    }
}
