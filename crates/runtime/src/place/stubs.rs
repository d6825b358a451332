//! Gate stubs: the code pages through which every domain leaves, the same in every window.

use crate::lanes::gate;
use crate::os::kept::KeptFile;
use crate::os::sys;
use ringfence_core::error::HostError;
use ringfence_isa::{identifier, window};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

/// The bytes of stub `index`, which jumps through the word at `%fs:offset`.
pub(crate) fn encode(index: u32, offset: i32) -> [u8; window::STUB_SIZE as usize] {
    let mut stub = [0xCC; window::STUB_SIZE as usize];
    stub[..8].copy_from_slice(&identifier::marker(identifier::FUNCTION));
    stub[8..10].copy_from_slice(&[0x41, 0xBB]); // movl $index, %r11d
    stub[10..14].copy_from_slice(&index.to_le_bytes());
    stub[14..18].copy_from_slice(&[0x64, 0xFF, 0x24, 0x25]); // jmp *%fs:offset
    stub[18..22].copy_from_slice(&offset.to_le_bytes());
    stub
}

/// The sealed file with all of them.
pub(crate) fn file() -> Result<BorrowedFd<'static>, HostError> {
    static FILE: OnceLock<KeptFile> = OnceLock::new();
    if let Some(file) = FILE.get() {
        return file.get();
    }
    let len = u64::from(window::STUBS_END - window::STUBS);
    let made = sys::sealed_file(c"ringfence-stubs", len, |bytes| {
        for (index, stub) in bytes.chunks_exact_mut(window::STUB_SIZE as usize).enumerate() {
            stub.copy_from_slice(&encode(index as u32, gate::tls_offset()));
        }
    })?;
    let made = KeptFile::new(made)?;
    FILE.get_or_init(|| made).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_hide_no_identifier() {
        for index in 0..window::STUB_COUNT {
            for offset in [gate::tls_offset(), -8, -0x1_0000, i32::MIN, 0x629A_629A] {
                let stub = encode(index, offset);
                for at in (4..stub.len()).step_by(8).skip(1) {
                    let id = u32::from_le_bytes(stub[at..at + 4].try_into().unwrap());
                    assert!(
                        !identifier::is_reserved(id),
                        "stub {index}, offset {offset:#x}, byte {at}"
                    );
                }
            }
        }
    }
}
