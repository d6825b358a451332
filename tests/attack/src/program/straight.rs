//! Straight lines: confined instructions, the data stack, constants, string instructions.

use super::Maker;
use super::pool::{Encoded, REACH};
use crate::elf::{DATA, TEXT};
use ringfence_isa::window;
use ringfence_verify::{Instruction, Memory, decode};

impl Maker<'_> {
    /// `movabs` of something interesting; sometimes an address of the window.
    pub(super) fn constant(&mut self) {
        let register = self.register();
        let value = match self.rng.below(6) {
            0 => self.rng.bits(),
            1 => self.rng.bits() & 0xFF,
            2 => u64::MAX - (self.rng.bits() & 0x3F),
            3 => {
                // lea disp32(%r14), register
                let to = window::IMAGES + DATA + self.rng.below(REACH) as u32;
                self.put(&[0x49 | (register & 8) >> 1, 0x8D, 0x86 | (register & 7) << 3]);
                self.put(&to.to_le_bytes());
                return;
            }
            _ => self.rng.bits() & 0xFFFF_FFFF,
        };
        self.put(&[0x48 | register >> 3, 0xB8 | register & 7]);
        self.put(&value.to_le_bytes());
    }

    pub(super) fn pop(&mut self) {
        self.depth -= 1;
        if self.rng.one_in(12) {
            // pop %gs:disp32
            self.put(&[0x65, 0x67, 0x8F, 0x04, 0x25]);
            let to = self.data();
            self.put(&to.to_le_bytes());
            return;
        }
        let register = self.register();
        if register >= 8 {
            self.put(&[0x41]);
        }
        self.put(&[0x58 | register & 7]);
    }

    /// Offset in the window of a place in the data segment.
    pub(super) fn data(&mut self) -> u32 {
        window::IMAGES
            + DATA
            + 64
            + (self.rng.below(REACH - 128) as u32 & !63)
            + if self.rng.one_in(60) {
                self.rng.pick(&[8, 1, 60])
            } else {
                0
            }
    }

    /// A form of the pool whose instruction is fit: its number and one encoding.
    pub(super) fn pick(
        &mut self,
        fit: impl Fn(&Instruction) -> bool,
    ) -> Option<(usize, Encoded, Instruction)> {
        for _ in 0..16 {
            let form = self.rng.below(self.pool.forms.len() as u64) as usize;
            let encoding = self.rng.pick(&self.pool.forms[form]);
            if let Some(i) = decode(&encoding.0).ok().filter(&fit) {
                return Some((form, encoding, i));
            }
        }
        None
    }

    /// Any accepted instruction; most operands are moved to memory that is there.
    pub(super) fn instruction(&mut self) {
        self.fitting(|_| true);
    }

    /// Any accepted instruction that is fit.
    pub(super) fn fitting(&mut self, fit: impl Fn(&Instruction) -> bool) {
        let Some((form, (mut bytes, mut len, modrm), i)) = self.pick(fit) else {
            return;
        };
        match i.memory {
            Memory::Rip => {
                let to = i64::from(DATA) + 64 + (self.rng.below(REACH - 128) & !15) as i64;
                let next = i64::from(TEXT) + self.here() as i64 + i64::from(len);
                let at = usize::from(modrm) + 1;
                bytes[at..at + 4].copy_from_slice(&((to - next) as i32).to_le_bytes());
            }
            Memory::Confined if !self.rng.one_in(300) => {
                // (%no base, %no index) and a displacement, with the immediate behind it.
                let at = usize::from(modrm);
                let old = bytes;
                let displacement = match old[at] >> 6 {
                    0 if old[at] & 7 == 4 && old[at + 1] & 7 == 5 => 4,
                    0 => 0,
                    1 => 1,
                    _ => 4,
                };
                let tail = at + 1 + usize::from(old[at] & 7 == 4) + displacement;
                let immediate = usize::from(len) - tail;
                if at + 6 + immediate > 15 {
                    return;
                }
                bytes[at] = old[at] & 0x38 | 4;
                bytes[at + 1] = 0x25;
                let to = self.data();
                bytes[at + 2..at + 6].copy_from_slice(&to.to_le_bytes());
                bytes[at + 6..at + 6 + immediate].copy_from_slice(&old[tail..tail + immediate]);
                len = (at + 6 + immediate) as u8;
                // Bits that would extend base or index extend nothing now.
                let first = bytes
                    .iter()
                    .position(|b| !matches!(b, 0x65..=0x67 | 0xF0 | 0xF2 | 0xF3));
                match first.map(|i| (i, bytes[i])) {
                    Some((i, 0x40..=0x4F)) => bytes[i] &= !3,
                    Some((i, 0xC4)) => bytes[i + 1] |= 0x60,
                    _ => {}
                }
                if !decode(&bytes).is_ok_and(|new| new.len == len) {
                    return;
                }
            }
            _ => {}
        }
        self.out.forms.push(form as u32);
        self.put(&bytes[..usize::from(len)]);
    }

    pub(super) fn string(&mut self) {
        let opcode = self
            .rng
            .pick(&[0xA4u8, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF]);
        for register in [6u8, 7] {
            if !self.rng.one_in(16) {
                let to = self.data();
                self.put(&[0xB8 | register]);
                self.put(&to.to_le_bytes());
            }
        }
        let count = self.rng.below(40) as u32;
        self.put(&[0xB9]);
        self.put(&count.to_le_bytes());
        let rdi: &[u8] = &[0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E];
        let rsi: &[u8] = &[0x89, 0xF6, 0x49, 0x8D, 0x34, 0x36];
        match opcode {
            0xA4..=0xA7 => self.put(&[rdi, rsi].concat()),
            0xAC | 0xAD => self.put(rsi),
            _ => self.put(rdi),
        }
        if self.rng.one_in(2) {
            let compares = matches!(opcode, 0xA6 | 0xA7 | 0xAE | 0xAF);
            let repeat = if compares && self.rng.one_in(2) {
                0xF2
            } else {
                0xF3
            };
            self.put(&[repeat]);
        }
        if opcode & 1 == 1 && self.rng.one_in(2) {
            let prefix = self.rng.pick(&[0x48, 0x48]);
            self.put(&[prefix]);
        }
        self.put(&[opcode]);
    }
}
