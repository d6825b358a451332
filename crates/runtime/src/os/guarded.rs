//! Copies between host memory and a window that survive what the domain does to its pages.
//!
//! A bounds check says that an address lies in the window, not that something is mapped there, and
//! another thread of the domain may unmap it at any moment. So the host never touches window
//! memory with ordinary loads and stores: it goes through the three routines below, whose every
//! faulting instruction stands between two labels. The fault handler asks [`fixup`] first, and a
//! fault in here becomes a return value.
//!
//! The routines are assembly, opaque to the compiler: a domain that writes the same bytes at the
//! same time is no data race in Rust's sense, it only decides what is copied.

use core::arch::global_asm;

global_asm!(
    ".pushsection .text.__rf_guarded,\"ax\",@progbits",
    ".hidden __rf_guarded_begin",
    ".hidden __rf_guarded_end",
    ".hidden __rf_guarded_failed",
    ".hidden __rf_guarded_copy",
    ".hidden __rf_guarded_fill",
    ".globl __rf_guarded_begin",
    ".globl __rf_guarded_end",
    ".globl __rf_guarded_failed",
    ".globl __rf_guarded_copy",
    ".globl __rf_guarded_fill",
    // copy(rdi = to, rsi = from, rdx = length) -> rax = bytes left, 0 when all went well.
    // Up to 32 bytes go in one piece: all loads first, then all stores, so that a short value is
    // never half old and half new because of us.
    ".p2align 6",
    "__rf_guarded_begin:",
    ".type __rf_guarded_copy,@function",
    "__rf_guarded_copy:",
    ".cfi_startproc",
    "endbr64",
    "mov rcx, rdx",
    "cmp rdx, 8",
    "je 8f",
    "cmp rdx, 4",
    "je 4f",
    "ja 5f",
    "cmp rdx, 1",
    "je 1f",
    "jb 9f",
    "movzx eax, word ptr [rsi]",
    "movzx r8d, word ptr [rsi + rdx - 2]",
    "mov word ptr [rdi], ax",
    "mov word ptr [rdi + rdx - 2], r8w",
    "xor ecx, ecx",
    "jmp 9f",
    "1:",
    "movzx eax, byte ptr [rsi]",
    "mov byte ptr [rdi], al",
    "xor ecx, ecx",
    "jmp 9f",
    "4:",
    "mov eax, dword ptr [rsi]",
    "mov dword ptr [rdi], eax",
    "xor ecx, ecx",
    "jmp 9f",
    "8:",
    "mov rax, qword ptr [rsi]",
    "mov qword ptr [rdi], rax",
    "xor ecx, ecx",
    "jmp 9f",
    "5:",
    "cmp rdx, 8",
    "ja 6f",
    "mov eax, dword ptr [rsi]",
    "mov r8d, dword ptr [rsi + rdx - 4]",
    "mov dword ptr [rdi], eax",
    "mov dword ptr [rdi + rdx - 4], r8d",
    "xor ecx, ecx",
    "jmp 9f",
    "6:",
    "cmp rdx, 16",
    "ja 7f",
    "mov rax, qword ptr [rsi]",
    "mov r8, qword ptr [rsi + rdx - 8]",
    "mov qword ptr [rdi], rax",
    "mov qword ptr [rdi + rdx - 8], r8",
    "xor ecx, ecx",
    "jmp 9f",
    "7:",
    "cmp rdx, 32",
    "ja 3f",
    "movups xmm0, xmmword ptr [rsi]",
    "movups xmm1, xmmword ptr [rsi + rdx - 16]",
    "movups xmmword ptr [rdi], xmm0",
    "movups xmmword ptr [rdi + rdx - 16], xmm1",
    "xor ecx, ecx",
    "jmp 9f",
    // Up to 128 in pieces of 16: a string instruction takes longer to begin than these take.
    "3:",
    "cmp rdx, 128",
    "ja 2f",
    "10:",
    "movups xmm0, xmmword ptr [rsi]",
    "movups xmmword ptr [rdi], xmm0",
    "add rsi, 16",
    "add rdi, 16",
    "sub rcx, 16",
    "cmp rcx, 16",
    "ja 10b",
    "movups xmm0, xmmword ptr [rsi + rcx - 16]",
    "movups xmmword ptr [rdi + rcx - 16], xmm0",
    "xor ecx, ecx",
    "jmp 9f",
    "2:",
    "rep movsb",
    "9:",
    "mov rax, rcx",
    "ret",
    ".cfi_endproc",
    ".size __rf_guarded_copy,.-__rf_guarded_copy",
    // fill(rdi = to, esi = byte, rdx = length) -> rax = bytes left.
    ".p2align 4",
    ".type __rf_guarded_fill,@function",
    "__rf_guarded_fill:",
    ".cfi_startproc",
    "endbr64",
    "mov rcx, rdx",
    "mov eax, esi",
    "rep stosb",
    "mov rax, rcx",
    "ret",
    ".cfi_endproc",
    ".size __rf_guarded_fill,.-__rf_guarded_fill",
    "__rf_guarded_end:",
    // Where the fault handler sends a copy that faulted: rcx holds the bytes left (a string
    // instruction keeps it up to date; pieces have done nothing yet, or one of two stores).
    "__rf_guarded_failed:",
    ".cfi_startproc",
    "mov rax, rcx",
    "ret",
    ".cfi_endproc",
    ".popsection",
);

unsafe extern "C" {
    static __rf_guarded_begin: u8;
    static __rf_guarded_end: u8;
    static __rf_guarded_failed: u8;
    fn __rf_guarded_copy(to: *mut u8, from: *const u8, length: usize) -> usize;
    fn __rf_guarded_fill(to: *mut u8, byte: u32, length: usize) -> usize;
}

/// Where the thread continues if it faulted at `rip`, when `rip` is in one of the guarded copies.
///
/// Async-signal-safe. The fault handler sets the instruction pointer to the result and returns;
/// no other register is to be changed.
#[must_use]
pub fn fixup(rip: u64) -> Option<u64> {
    let begin = (&raw const __rf_guarded_begin) as u64;
    let end = (&raw const __rf_guarded_end) as u64;
    (begin..end)
        .contains(&rip)
        .then_some((&raw const __rf_guarded_failed) as u64)
}

/// Copies `length` bytes; returns how many were *not* copied because a page was not accessible.
///
/// # Safety
/// Of the two ranges, the one outside windows must be valid for the access, and nothing that the
/// compiler knows about may be written through the other. The ranges do not overlap.
#[inline]
#[must_use]
pub unsafe fn copy(to: *mut u8, from: *const u8, length: usize) -> usize {
    // SAFETY: the caller's promise; a fault in the window's range is turned into a result.
    unsafe { __rf_guarded_copy(to, from, length) }
}

/// Sets `length` bytes to `byte`; returns how many were *not* set because a page was not accessible.
///
/// # Safety
/// The range must lie in a window or be valid for writes.
#[inline]
#[must_use]
pub unsafe fn fill(to: *mut u8, byte: u8, length: usize) -> usize {
    // SAFETY: the caller's promise; a fault in the window's range is turned into a result.
    unsafe { __rf_guarded_fill(to, u32::from(byte), length) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_and_nothing_else() {
        for length in 0..200 {
            let from: Vec<u8> = (0..length).map(|i| i as u8 ^ 0x5A).collect();
            let mut to = vec![0xEE; length + 16];
            // SAFETY: both ranges are ours.
            let left = unsafe { copy(to[8..].as_mut_ptr(), from.as_ptr(), length) };
            assert_eq!(left, 0, "length {length}");
            assert_eq!(&to[8..8 + length], &from[..], "length {length}");
            assert!(
                to[..8].iter().chain(&to[8 + length..]).all(|&b| b == 0xEE),
                "length {length}"
            );
        }
    }

    #[test]
    fn fill_sets_the_range_and_nothing_else() {
        let mut to = [1u8; 40];
        // SAFETY: the range is ours.
        assert_eq!(unsafe { fill(to[4..].as_mut_ptr(), 7, 30) }, 0);
        assert!(to[4..34].iter().all(|&b| b == 7) && to[..4].iter().chain(&to[34..]).all(|&b| b == 1));
    }

    #[test]
    fn fixup_knows_its_own_code_only() {
        let copy_at = __rf_guarded_copy as *const () as u64;
        let to = fixup(copy_at + 4).expect("inside");
        assert!(fixup(to).is_none(), "the landing place must not loop");
        assert!(fixup(copy_at - 0x100_000).is_none());
        assert!(fixup(0).is_none());
    }
}
