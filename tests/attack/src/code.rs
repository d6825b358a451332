//! Bits of fenced code, for modules made by hand.

use crate::elf::{DATA, TEXT};
use ringfence_isa::{identifier, sequence, window};

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
