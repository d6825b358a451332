//! Control: functions, branches, loops, checked transfers, jump tables; and what is forbidden of it.

use super::Maker;
use crate::elf::DATA;
use ringfence_isa::{identifier, sequence, window};

impl Maker<'_> {
    pub(super) fn function(&mut self, number: usize) -> usize {
        while !self.here().is_multiple_of(8) {
            self.put(&[0xCC]);
        }
        let start = self.here();
        self.put(&identifier::marker(identifier::FUNCTION));
        self.depth = 0;
        self.function = number;
        if let Some(arena) = self.arena.clone().filter(|_| self.out.only_known) {
            self.views(&arena);
            self.put(&[0xC3]);
            return start;
        }
        if number == 0 {
            for _ in 0..self.rng.below(6) {
                self.constant();
            }
        }
        let statements = 1 + self.rng.below(24);
        for _ in 0..statements {
            self.statement(number);
        }
        if std::mem::take(&mut self.open_end) {
            self.put(&[0x56]);
            return start;
        }
        while self.depth > 0 {
            self.pop();
        }
        match self.rng.below(40) {
            0 => self.put(&[0x0F, 0x0B]),
            1 => self.put(&[0xCC]),
            2..=4 if number + 1 < self.functions => {
                self.put(&[0xE9, 0, 0, 0, 0]);
                let next = number + 1;
                self.calls.push((self.here() - 4, next));
            }
            5 if number + 1 < self.functions => self.indirect(false, Some(number + 1)),
            _ => self.put(&[0xC3]),
        }
        start
    }

    /// What the rules forbid about control.
    pub(super) fn trick(&mut self, number: usize) {
        match self.rng.below(7) {
            // A tail call with something pushed.
            0 if number + 1 < self.functions => {
                self.put(&[0x56, 0xE9, 0, 0, 0, 0]);
                self.calls.push((self.here() - 4, number + 1));
            }
            // mov %rsi, %r11, and past the compare.
            1 => {
                self.align_check(5);
                self.put(&[0x49, 0x89, 0xF3, 0xEB, (sequence::ID_OFFSET + 4) as u8]);
                self.check(identifier::FUNCTION, sequence::JMP);
            }
            // A marker in a constant, with one word pushed in front of what follows it.
            2 => {
                self.put(&[0x56]);
                let place = self.lea();
                self.check(identifier::FUNCTION, sequence::CALL);
                self.align(8, 6);
                self.put(&[0x49, 0xBB]);
                self.link(place);
                self.put(&identifier::marker(identifier::FUNCTION));
                self.put(&[0x58, 0xC3]);
            }
            // A call of a label, with one word pushed in front of what follows it.
            3 => {
                self.labels = self.labels.wrapping_add(1);
                let Some(id) = identifier::label(self.labels) else {
                    return;
                };
                self.put(&[0x56]);
                let place = self.lea();
                self.check(id, sequence::CALL);
                self.align(8, 0);
                self.link(place);
                self.put(&identifier::marker(id));
                self.put(&[0x58, 0xC3]);
            }
            // A jump to another function's label, which there may be one of here as well.
            4 | 5 => {
                let earlier = self.markers.iter().rev().find(|m| m.2 != number).copied();
                let Some((id, at, _)) = earlier else { return };
                self.put(&[0x56]);
                let place = self.lea();
                let distance = at as i64 - place as i64;
                self.out.text[place - 4..place].copy_from_slice(&(distance as i32).to_le_bytes());
                self.check(id, sequence::JMP);
                if self.rng.one_in(2) {
                    self.align(8, 0);
                    self.put(&identifier::marker(id));
                }
                self.put(&[0x5E]);
            }
            // A function that ends with something pushed, and no return.
            _ => self.open_end = true,
        }
    }

    /// `lea place(%rip), %r11`; [`Self::link`] says where it leads.
    pub(super) fn lea(&mut self) -> usize {
        self.put(&[0x4C, 0x8D, 0x1D, 0, 0, 0, 0]);
        self.here()
    }

    pub(super) fn link(&mut self, place: usize) {
        let distance = (self.here() - place) as u32;
        self.out.text[place - 4..place].copy_from_slice(&distance.to_le_bytes());
    }

    /// So that the checked sequence needs no filler, `before` bytes from here.
    pub(super) fn align_check(&mut self, before: usize) {
        while (self.here() + before + sequence::ID_OFFSET) % 8 == 4 {
            self.put(&[0x90]);
        }
    }

    /// A conditional jump over a few statements.
    pub(super) fn branch(&mut self, number: usize) {
        if self.nesting > 2 {
            return;
        }
        self.nesting += 1;
        let condition = self.rng.below(16) as u8;
        self.put(&[0x0F, 0x80 | condition, 0, 0, 0, 0]);
        let place = self.here();
        let depth = self.depth;
        self.block(number, depth);
        let distance = (self.here() - place) as u32;
        self.out.text[place - 4..place].copy_from_slice(&distance.to_le_bytes());
        self.nesting -= 1;
    }

    /// A few statements that leave the depth as it was.
    pub(super) fn block(&mut self, number: usize, depth: u32) {
        for _ in 0..=self.rng.below(5) {
            if self.depth > depth || !self.rng.one_in(8) {
                self.statement(number);
            }
            if self.depth < depth {
                self.put(&[0x53]);
                self.depth += 1;
            }
        }
        while self.depth > depth {
            self.pop();
        }
    }

    /// A loop that counts down in memory.
    pub(super) fn repeat(&mut self, number: usize) {
        if self.nesting > 1 {
            return;
        }
        self.nesting += 1;
        let counter = window::IMAGES + DATA + 0x1_8000 + self.nesting * 8;
        self.put(&[0x65, 0x67, 0xC7, 0x04, 0x25]);
        self.put(&counter.to_le_bytes());
        let turns = 1 + self.rng.below(6) as u32;
        self.put(&turns.to_le_bytes());
        let top = self.here();
        let depth = self.depth;
        self.block(number, depth);
        self.put(&[0x65, 0x67, 0x83, 0x2C, 0x25]);
        self.put(&counter.to_le_bytes());
        self.put(&[1, 0x0F, 0x8F]);
        let distance = top as i64 - (self.here() as i64 + 4);
        self.put(&(distance as i32).to_le_bytes());
        self.nesting -= 1;
    }

    /// The checked sequence, behind something that fills `r11`.
    pub(super) fn check(&mut self, id: u32, last: [u8; 3]) {
        while (self.here() + sequence::ID_OFFSET) % 8 == 4 {
            self.put(&[0x90]);
        }
        self.put(&sequence::AND);
        self.put(&sequence::CMP);
        self.put(&id.to_le_bytes());
        self.put(&sequence::CMOV);
        self.put(&sequence::ADD);
        self.put(&last);
    }

    pub(super) fn indirect(&mut self, call: bool, to: Option<usize>) {
        match to {
            Some(to) => {
                self.put(&[0x4C, 0x8D, 0x1D, 0, 0, 0, 0]); // lea to(%rip), %r11
                self.calls.push((self.here() - 4, to));
            }
            None => {
                let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7]);
                self.put(&[0x41, 0x89, 0xC3 | register << 3]); // mov %register, %r11d
            }
        }
        self.check(
            identifier::FUNCTION,
            if call { sequence::CALL } else { sequence::JMP },
        );
    }

    /// A jump to one of some labels of the same function.
    pub(super) fn switch(&mut self) {
        self.labels = self.labels.wrapping_add(1);
        let Some(id) = identifier::label(self.labels) else {
            return;
        };
        self.put(&[0x4C, 0x8D, 0x1D, 0, 0, 0, 0]);
        let place = self.here();
        self.check(id, sequence::JMP);
        let labels = 1 + self.rng.below(3);
        let chosen = self.rng.below(labels);
        for n in 0..labels {
            self.align(8, 0);
            if n == chosen {
                self.link(place);
            }
            self.markers.push((id, self.here(), self.function));
            self.put(&identifier::marker(id));
            for _ in 0..self.rng.below(3) {
                self.instruction();
            }
        }
    }

    /// A jump through a table to some places of the same function, by whatever a register holds.
    pub(super) fn table(&mut self) {
        let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13]);
        if register >= 8 {
            self.put(&[0x41]);
        }
        let slots = 1 << self.rng.below(5);
        self.put(&[0x83, 0xE0 | register & 7, slots as u8 - 1]);
        self.put(&sequence::TABLE);
        self.put(&[0; 4]);
        let next = self.here();
        self.put(&sequence::slot(register));
        self.put(&sequence::ADD);
        self.put(&sequence::JMP);
        self.align(8, 0);
        let table = self.here() + 4;
        self.out.text[next - 4..next].copy_from_slice(&((table - next) as u32).to_le_bytes());
        for _ in 0..slots {
            self.put(&[0x0F, 0x1F, 0x84, 0x40, 0, 0, 0, 0]);
        }
        let mut places = Vec::new();
        for _ in 0..=self.rng.below(3) {
            places.push(self.here());
            for _ in 0..self.rng.below(3) {
                self.instruction();
            }
        }
        for n in 0..slots {
            let distance = (self.rng.pick(&places) - table) as u32;
            let at = table + n * sequence::SLOT_STEP;
            self.out.text[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }
}
