//! Calls of stubs: system calls, `setjmp` and `longjmp`, host functions.

use super::Maker;
use crate::code::{ONE, SAVE};
use crate::elf::DATA;
use ringfence_isa::{identifier, pad, sequence, window};

impl Maker<'_> {
    /// `setjmp` on one of a few buffers, or `longjmp` to it: every other time that it comes by.
    pub(super) fn jump_stub(&mut self) {
        let buffer = window::IMAGES + DATA + 0x1_9000 + 128 * self.rng.below(3) as u32;
        if self.rng.one_in(2) {
            self.put(&[0xBF]);
            self.put(&buffer.to_le_bytes());
            self.put(&[0x48, 0x8D, 0x05, 0, 0, 0, 0]); // lea pad(%rip), %rax
            let place = self.here();
            self.put(&SAVE);
            self.call_stub(window::stub::DISTANCE);
            self.put(&[0x65, 0x67, 0x48, 0x89, 0x07, 0x31, 0xC0]); // mov %rax, %gs:(%edi); xor %eax, %eax
            self.link(place);
            return self.put(&pad::marker(8 * self.depth as u16));
        }
        // incb %gs:counter; testb $1, %gs:counter; je past the call
        let counter = window::IMAGES + DATA + 0x1_9180;
        self.put(&[0x65, 0x67, 0xFE, 0x04, 0x25]);
        self.put(&counter.to_le_bytes());
        self.put(&[0x65, 0x67, 0xF6, 0x04, 0x25]);
        self.put(&counter.to_le_bytes());
        self.put(&[1, 0x0F, 0x84, 0, 0, 0, 0]);
        let place = self.here();
        self.put(&[0xBF]);
        self.put(&buffer.to_le_bytes());
        self.put(&ONE);
        self.call_stub(window::stub::RESUME);
        self.link(place);
    }

    /// A system call with random arguments: numbers, and places in the data.
    pub(super) fn system_call(&mut self) {
        let number = match self.rng.below(4) {
            0 => self.rng.below(460) as u32,
            _ => self.rng.pick(&[
                0u32, 1, 2, 3, 4, 8, 9, 10, 11, 12, 16, 19, 20, 22, 28, 32, 72, 77, 87, 202, 228, 257, 262,
                318,
            ]),
        };
        // mov to rdi, rsi, rdx, r10, r8, r9
        for load in [
            &[0xBF][..],
            &[0xBE],
            &[0xBA],
            &[0x41, 0xBA],
            &[0x41, 0xB8],
            &[0x41, 0xB9],
        ] {
            let value = match self.rng.below(4) {
                0 => self.rng.below(16) as u32,
                1 => self.rng.bits() as u32,
                2 => 1 << self.rng.below(16),
                _ => self.data(),
            };
            self.put(load);
            self.put(&value.to_le_bytes());
        }
        self.put(&[0xB8]);
        self.put(&number.to_le_bytes());
        self.call_stub(window::stub::SYSCALL);
    }

    pub(super) fn call_stub(&mut self, number: u32) {
        self.put(&[0x41, 0xBB]);
        let to = window::stub_at(number);
        self.put(&to.to_le_bytes());
        self.check(identifier::FUNCTION, sequence::CALL);
    }

    /// A call of a gate stub, with whatever is in the registers.
    pub(super) fn stub(&mut self) {
        let number = match self.rng.below(8) {
            0 if self.rng.one_in(8) => self.rng.below(u64::from(window::STUB_COUNT)) as u32,
            1..=3 => self.rng.below(7) as u32,
            _ => window::STUB_FIRST_IMPORT + self.rng.below(4) as u32,
        };
        if number == window::stub::SYSCALL && !self.rng.one_in(4) {
            // mov $number, %eax: what the runtime answers itself (mmap, mprotect, munmap, mremap, madvise, brk).
            let call = self.rng.pick(&[9u32, 10, 11, 25, 28, 12, 60, 1, 0, 231]);
            self.put(&[0xB8]);
            self.put(&call.to_le_bytes());
        }
        self.call_stub(number);
    }
}
