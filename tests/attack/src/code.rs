//! Bits of fenced code, for modules made by hand.

use crate::elf::{DATA, TEXT};
use ringfence_isa::{identifier, pad, sequence, window};

/// Into the buffer at `edi`: the pad in `rax`, and `rbx rbp r12 r13 r15`.
pub const SAVE: [u8; 36] = [
    0x65, 0x67, 0x48, 0x89, 0x47, 8, 0x65, 0x67, 0x48, 0x89, 0x5F, 32, 0x65, 0x67, 0x48, 0x89, 0x6F, 40,
    0x65, 0x67, 0x4C, 0x89, 0x67, 48, 0x65, 0x67, 0x4C, 0x89, 0x6F, 56, 0x65, 0x67, 0x4C, 0x89, 0x7F, 64,
];

/// Into the buffer at `edi`: what `setjmp` returns the next time.
pub const ONE: [u8; 10] = [0x65, 0x67, 0x48, 0xC7, 0x47, 16, 1, 0, 0, 0];

/// Text in the making; offsets are from the text's start.
#[derive(Clone, Debug, Default)]
pub struct Code(pub Vec<u8>);

impl Code {
    /// Offset of what comes next.
    #[must_use]
    pub fn here(&self) -> u32 {
        self.0.len() as u32
    }

    /// Appends bytes.
    pub fn put(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    /// Starts a function and gives its offset.
    pub fn function(&mut self) -> u32 {
        while !self.0.len().is_multiple_of(16) {
            self.0.push(0xCC);
        }
        let at = self.here();
        self.put(&identifier::marker(identifier::FUNCTION));
        at
    }

    /// `movl slot(%rip), %r11d` for the address of import number `import`.
    pub fn load_import(&mut self, import: u32) -> &mut Self {
        let next = TEXT + self.here() + 7;
        let slot = DATA + 8 * import;
        self.put(&[0x44, 0x8B, 0x1D])
            .put(&(slot.wrapping_sub(next)).to_le_bytes())
    }

    /// `movl $offset, %r11d`: an offset in the window.
    pub fn load_target(&mut self, offset: u32) -> &mut Self {
        self.put(&[0x41, 0xBB]).put(&offset.to_le_bytes())
    }

    /// Offset in the window of stub `number`.
    #[must_use]
    pub fn stub(number: u32) -> u32 {
        window::stub_at(number)
    }

    /// What the rewriter makes of `setjmp`, with the buffer's address in `edi` and so many bytes pushed.
    pub fn setjmp(&mut self, depth: u16) -> &mut Self {
        self.put(&[0x48, 0x8D, 0x05, 0, 0, 0, 0]); // lea pad(%rip), %rax
        let from = self.here();
        self.put(&SAVE)
            .load_target(Code::stub(window::stub::DISTANCE))
            .call();
        self.put(&[0x65, 0x67, 0x48, 0x89, 0x07, 0x31, 0xC0]); // mov %rax, %gs:(%edi); xor %eax, %eax
        let distance = self.here() - from;
        self.0[from as usize - 4..][..4].copy_from_slice(&distance.to_le_bytes());
        self.put(&pad::marker(depth))
    }

    /// `longjmp`, with 1, to the buffer at `edi`.
    pub fn longjmp(&mut self) -> &mut Self {
        self.put(&ONE)
            .load_target(Code::stub(window::stub::RESUME))
            .call()
            .put(&[0x0F, 0x0B])
    }

    fn check(&mut self, last: [u8; 3]) -> &mut Self {
        while (self.0.len() + sequence::ID_OFFSET) % 8 == 4 {
            self.0.push(0x90);
        }
        self.put(&sequence::AND)
            .put(&sequence::CMP)
            .put(&identifier::FUNCTION.to_le_bytes())
            .put(&sequence::CMOV)
            .put(&sequence::ADD)
            .put(&last)
    }

    /// Checked call of what `r11` names.
    pub fn call(&mut self) -> &mut Self {
        self.check(sequence::CALL)
    }

    /// Checked jump to what `r11` names.
    pub fn jump(&mut self) -> &mut Self {
        self.check(sequence::JMP)
    }
}

/// Offset in the window of byte `at` of the data segment of the first module.
#[must_use]
pub fn data(at: u32) -> u32 {
    window::IMAGES + DATA + at
}
