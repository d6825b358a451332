//! Part of the first stage: the fixed sequences that must stand in front of indirect transfers (rule 5) and string
//! instructions (rule 7). Nothing may jump into them.

use crate::decode::{Instruction, R11};
use crate::holes::hole;
use crate::reason::Reason;
use crate::scan::{Class, Scanner, Table};
use ringfence_isa::{identifier, sequence};

/// `movl %edi, %edi; leaq (%r14,%rdi), %rdi`: rebuilds `rdi` inside the window.
const REBUILD_RDI: [u8; 6] = [0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E];
/// The same for `rsi`.
const REBUILD_RSI: [u8; 6] = [0x89, 0xF6, 0x49, 0x8D, 0x34, 0x36];
/// Where the instructions of [`REBUILD_RDI`] start, and their lengths.
const REBUILD_PARTS: [(usize, usize); 2] = [(0, 2), (2, 4)];
/// Where the instructions before the jump in the checked sequence start, and their lengths.
const CHECK_PARTS: [(usize, usize); 4] = [(0, 4), (4, 10), (14, 4), (18, 3)];
/// The same for the jump through a table, from `leaq TABLE(%rip), %r11` on.
const TABLE_PARTS: [(usize, usize); 3] = [
    (0, sequence::TABLE_LEN),
    (sequence::TABLE_LEN, sequence::SLOT_LEN),
    (TABLE_PARTS_LEN - sequence::ADD.len(), sequence::ADD.len()),
];
const TABLE_PARTS_LEN: usize = sequence::TABLE_LEN + sequence::SLOT_LEN + sequence::ADD.len();

impl Scanner<'_> {
    /// Rule 5: an indirect jump or call must end the checked sequence, or a jump the one through a table.
    pub fn indirect(&mut self, at: usize, i: &Instruction, last: [u8; 3], class: Class) -> Class {
        let text = self.image.text;
        let complete = at.checked_sub(sequence::LEN - last.len()).filter(|&start| {
            let s = &text[start..];
            s.starts_with(&sequence::AND)
                && s[4..].starts_with(&sequence::CMP)
                && (s[14..].starts_with(&sequence::CMOV) || hole!(15))
                && s[18..].starts_with(&sequence::ADD)
                && s[21..].starts_with(&last)
                && self.decoded_as(start, &CHECK_PARTS)
        });
        let Some(start) = complete else {
            if !(last == sequence::JMP && self.table_jump(at)) {
                self.reject(at, i, Reason::BareIndirect);
            }
            return class;
        };
        for (part, _) in &CHECK_PARTS[1..] {
            self.scan.notes[start + part].set_interior();
        }
        let id = self.dword(start + sequence::ID_OFFSET);
        if id != identifier::FUNCTION {
            if !identifier::is_reserved(id) || !self.may_use(id as u16) {
                self.reject(at, i, Reason::SequenceIdentifier);
            } else if class == Class::IndirectCall && !hole!(28) {
                self.reject(at, i, Reason::CallIdentifier);
            }
        }
        class
    }

    /// Whether the jump at `at` ends the sequence that goes through a table. Notes the table, which the second stage checks.
    fn table_jump(&mut self, at: usize) -> bool {
        let Some(start) = at.checked_sub(TABLE_PARTS_LEN) else {
            return false;
        };
        let (table, rest) = self.image.text[start..].split_at(sequence::TABLE_LEN);
        let (slot, rest) = rest.split_at(sequence::SLOT_LEN);
        if !table.starts_with(&sequence::TABLE)
            || !rest.starts_with(&sequence::ADD)
            || !rest[sequence::ADD.len()..].starts_with(&sequence::JMP)
            || !self.decoded_as(start, &TABLE_PARTS)
        {
            return false;
        }
        let Some((register, more)) = self.clamp_before(start) else {
            return false;
        };
        // The table's address is in r11 by then.
        if register == R11 && !hole!(35) {
            return false;
        }
        if slot != sequence::slot(register) && !hole!(36) {
            return false;
        }
        for (part, _) in &TABLE_PARTS {
            if !hole!(37) {
                self.scan.notes[start + part].set_interior();
            }
        }
        let distance = self.dword(start + sequence::TABLE.len()) as i32;
        self.scan.tables.push(Table {
            from: at,
            at: (start + sequence::TABLE_LEN) as i64 + i64::from(distance),
            more,
        });
        true
    }

    /// The instruction that ends at `end`, if it is one that leaves a small number in a register: the register, and the largest
    /// number that it can hold then.
    fn clamp_before(&self, end: usize) -> Option<(u8, u16)> {
        let code = [3, 4].into_iter().find_map(|len| {
            let start = end.checked_sub(len)?;
            (self.scan.notes[start].len() == len).then(|| &self.image.text[start..end])
        })?;
        match *code {
            // andl $MASK, %eREG. The immediate is sign-extended.
            [0x83, modrm @ 0xE0..=0xE7, mask] if mask < 0x80 || hole!(38) => {
                Some((modrm & 7, u16::from(mask)))
            }
            [0x41, 0x83, modrm @ 0xE0..=0xE7, mask] if mask < 0x80 || hole!(38) => {
                Some((modrm & 7 | 8, u16::from(mask)))
            }
            // movzbl between registers
            [0x0F, 0xB6, modrm @ 0xC0..=0xFF] => Some((modrm >> 3 & 7, 0xFF)),
            [rex @ 0x40..=0x4F, 0x0F, 0xB6, modrm @ 0xC0..=0xFF] => {
                Some((modrm >> 3 & 7 | (rex & 4) << 1, 0xFF))
            }
            _ => None,
        }
    }

    /// Rule 7: a string instruction must follow the instructions that rebuild its pointers.
    pub fn string(&mut self, at: usize, i: &Instruction) -> Class {
        let text = self.image.text;
        // The opcode is the last byte of a string instruction.
        let pairs: &[&[u8; 6]] = match text[at + usize::from(i.len) - 1] {
            0xA4..=0xA7 if hole!(19) => &[&REBUILD_RSI],
            0xA4..=0xA7 => &[&REBUILD_RDI, &REBUILD_RSI],
            0xAC | 0xAD => &[&REBUILD_RSI],
            _ => &[&REBUILD_RDI],
        };
        let Some(start) = at.checked_sub(6 * pairs.len()) else {
            self.reject(at, i, Reason::BareString);
            return Class::Interior;
        };
        for (n, pair) in pairs.iter().enumerate() {
            let pair_at = start + 6 * n;
            if !text[pair_at..].starts_with(*pair) || !self.decoded_as(pair_at, &REBUILD_PARTS) {
                self.reject(at, i, Reason::BareString);
                return Class::Interior;
            }
        }
        for n in 0..pairs.len() {
            for (part, _) in REBUILD_PARTS {
                if n + part != 0 {
                    self.scan.notes[start + 6 * n + part].set_interior();
                }
            }
        }
        Class::Interior
    }

    /// Whether the instructions from `start` on are the given ones, by offset and length.
    fn decoded_as(&self, start: usize, parts: &[(usize, usize)]) -> bool {
        parts
            .iter()
            .all(|&(part, len)| self.scan.notes[start + part].len() == len)
    }
}
