//! Gate stubs: the code pages through which every domain leaves, the same bytes in every window.
//!
//! They end where a window's first image begins, number 0 last, and a window maps the pages that it uses. The last page is enough for
//! most: it stands in front of every module's image in the image's sealed file, so that it is one mapping with the text behind it.

use crate::os::sys;
use core::arch::asm;
use ringfence_core::KeptFile;
use ringfence_core::error::HostError;
use ringfence_isa::{identifier, window};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;

/// Bytes of stubs in front of an image.
pub(crate) const LEAD: u32 = sys::PAGE as u32;

/// What the stub that tells distances reads: the runtime's word with the current lane, whose first word is the innermost call in, whose
/// words have the top of its control stack. `lanes::gate` sees to it that they are there.
pub(crate) const CURRENT: i32 = 16;
pub(crate) const TOP: u8 = 8;
/// From that top to the stack pointer at the stub, in a function that the host has called: the gate's words and two return addresses.
pub(crate) const ABOVE: u8 = 32;

const LEN: usize = (window::STUBS_END - window::STUBS) as usize;

/// Offset of the runtime's thread-local words from `fs`, the same for all threads.
pub(crate) fn tls_offset() -> i32 {
    let offset: i64;
    // SAFETY: reads a constant that the dynamic linker stored.
    unsafe {
        asm!("mov {}, qword ptr [rip + __rf_tls@GOTTPOFF]", out(reg) offset, options(nomem, nostack, preserves_flags, pure));
    }
    offset as i32
}

/// The bytes of stub `index`, which jumps through the word at `%fs:offset`; the one that tells distances answers by itself.
fn encode(index: u32, offset: i32) -> [u8; window::STUB_SIZE as usize] {
    let mut stub = [0xCC; window::STUB_SIZE as usize];
    stub[..8].copy_from_slice(&identifier::marker(identifier::FUNCTION));
    if index == window::stub::DISTANCE {
        let current = offset.wrapping_add(CURRENT);
        stub[8..16].copy_from_slice(&[0x0F, 0x1F, 0x00, 0x64, 0x48, 0x8B, 0x04, 0x25]); // nopl (%rax); movq %fs:current, %rax
        stub[16..20].copy_from_slice(&current.to_le_bytes());
        stub[20..26].copy_from_slice(&[0x48, 0x8B, 0x00, 0x8B, 0x40, TOP]); // movq (%rax), %rax; movl TOP(%rax), %eax
        stub[26..].copy_from_slice(&[0x29, 0xE0, 0x83, 0xE8, ABOVE, 0xC3]); // subl %esp, %eax; subl $ABOVE, %eax; ret
        return stub;
    }
    stub[8..10].copy_from_slice(&[0x41, 0xBB]); // movl $index, %r11d
    stub[10..14].copy_from_slice(&index.to_le_bytes());
    stub[14..18].copy_from_slice(&[0x64, 0xFF, 0x24, 0x25]); // jmp *%fs:offset
    stub[18..22].copy_from_slice(&offset.to_le_bytes());
    stub
}

/// Fills the end of the stubs' area.
fn fill(bytes: &mut [u8]) {
    let stubs = bytes.rchunks_exact_mut(window::STUB_SIZE as usize);
    for (index, stub) in stubs.enumerate() {
        stub.copy_from_slice(&encode(index as u32, tls_offset()));
    }
}

/// The last page.
pub(crate) fn lead() -> &'static [u8; LEAD as usize] {
    static PAGE: OnceLock<[u8; LEAD as usize]> = OnceLock::new();
    PAGE.get_or_init(|| {
        let mut page = [0; LEAD as usize];
        fill(&mut page);
        page
    })
}

/// The sealed file with all of them.
pub(crate) fn file() -> Result<BorrowedFd<'static>, HostError> {
    static FILE: OnceLock<KeptFile> = OnceLock::new();
    if let Some(file) = FILE.get() {
        return file.get();
    }
    let made = KeptFile::new(sys::sealed_file(c"ringfence-stubs", LEN as u64, fill)?)?;
    FILE.get_or_init(|| made).get()
}

/// Where the pages begin that a window with so many imports of the host's uses, as an offset in it.
pub(crate) fn start(imports: usize) -> u32 {
    let last = window::STUB_FIRST_IMPORT + imports as u32 - 1;
    window::stub_at(last) & !(sys::PAGE as u32 - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_hide_no_identifier() {
        for index in 0..window::STUB_COUNT {
            for offset in [tls_offset(), -8, -0x1_0000, i32::MIN, 0x629A_629A] {
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

    #[test]
    fn each_has_its_number_and_the_last_page_is_that_of_the_file() {
        let mut all = vec![0; LEN];
        fill(&mut all);
        for index in 0..window::STUB_COUNT {
            let at = (window::stub_at(index) - window::STUBS) as usize;
            if index == window::stub::DISTANCE {
                continue;
            }
            let number = u32::from_le_bytes(all[at + 10..at + 14].try_into().unwrap());
            assert_eq!(number, index);
        }
        assert_eq!(all[LEN - LEAD as usize..], lead()[..]);
    }

    #[test]
    fn pages_are_those_of_the_imports() {
        let in_lead = (LEAD / window::STUB_SIZE - window::STUB_FIRST_IMPORT) as usize;
        let last = window::STUBS_END - LEAD;
        assert_eq!([0, 1, in_lead].map(start), [last; 3]);
        assert_eq!(start(in_lead + 1), last - LEAD);
        let most = window::STUB_COUNT - window::STUB_FIRST_IMPORT;
        assert_eq!(start(most as usize), window::STUBS);
    }
}
