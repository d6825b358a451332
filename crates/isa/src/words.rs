//! The words mode: where the host's objects lie, and the sequence by which code reaches them, byte for byte.
//!
//! Objects of the host lie in an *arena*, at an address that is congruent modulo 4 GiB with an offset from [`ARENA`] to
//! [`ARENA_END`]. Nothing is mapped there in the window itself, so every ordinary operand that gets a pointer to such an object
//! faults. What is mapped for the domain is a *view* of the arena, above the window, out of reach of all operands but
//! [`VIEW`]`(%r14,%r11)`; and a *table of rights* in the window, read-only: one byte for each byte of the arena, [`TABLE`] above it.
//!
//! ```text
//!     leal    <address>, %r11d              ; not part of the sequence
//!     testb   $BIT, %gs:TABLE(%r11d)        ; 65 67 41 F6 83 00 00 00 20 BIT
//!     cmovel  %r14d, %r11d                  ; 45 0F 44 DE   without the right: offset 0
//!     <op>    VIEW(%r14,%r11)               ; any with a memory operand of as many bytes as BIT is for
//! ```
//!
//! An access of 2, 10 or 32 bytes has two such tests, of 1, 8 or 16 bytes each: of its first bytes, and with the displacement
//! raised by 1, 2 or 16 of its last. No jump may land behind the first test. Without the right the access goes to [`DENIED`] in the
//! window, where nothing is mapped.

use crate::window;

/// Where the arena's offsets begin.
pub const ARENA: u32 = 0x8010_0000;
/// Where they end.
pub const ARENA_END: u32 = 0x9F00_0000;

/// The offset of an arena's byte in the window, and this, is the offset of its byte in the table.
pub const TABLE: u32 = 0x2000_0000;

/// The displacement of an operand that reaches the view.
pub const VIEW: i32 = 0x7FFF_0000;

/// Where an access goes for which there is no right, as an offset in the window. Up to [`ARENA`] nothing is ever mapped from here.
pub const DENIED: u32 = VIEW as u32;

/// Where the heap of such a window ends.
pub const HEAP_END: u32 = 0x7FF0_0000;

/// Size of such a window with the view above it, and all that is reserved with them.
pub const SIZE: u64 = 2 * window::SIZE;

/// Addresses whose lower half, as a signed number, is below this are foreign: `0x8000_0000` to `0xBFFF_FFFF`.
pub const LOCAL: i32 = -0x4000_0000;

/// The view's place for an offset of the arena, as a distance from the window's base.
#[must_use]
pub const fn view(offset: u32) -> u64 {
    offset as u64 + VIEW as u64
}

const _: () = {
    // The view lies behind the null area above the window, and in what is reserved.
    assert!(view(ARENA) >= window::SIZE + window::NULL_END as u64);
    assert!(view(ARENA_END) + window::NULL_END as u64 <= SIZE);
    // The table is where otherwise regions are, which such a domain does not have.
    assert!(ARENA + TABLE >= window::REGIONS && ARENA_END + TABLE <= window::REGIONS_END);
    assert!(HEAP_END < DENIED && DENIED < ARENA);
};

/// `testb $BIT, %gs:DISPLACEMENT(%r11d)` without displacement and bit.
pub const TEST: [u8; 5] = [0x65, 0x67, 0x41, 0xF6, 0x83];
/// Its length.
pub const TEST_LEN: usize = TEST.len() + 5;
/// `cmovel %r14d, %r11d`
pub const CMOV: [u8; 4] = [0x45, 0x0F, 0x44, 0xDE];

/// One test.
#[must_use]
pub const fn test(displacement: u32, bit: u8) -> [u8; TEST_LEN] {
    let (t, d) = (TEST, displacement.to_le_bytes());
    [t[0], t[1], t[2], t[3], t[4], d[0], d[1], d[2], d[3], bit]
}

/// The bit for reading 1 byte from a byte on. Those for 4, 8 and 16 bytes follow it.
pub const READ: u8 = 1 << 0;
/// The bit for writing 1 byte. Those for 4, 8 and 16 bytes follow it.
pub const WRITE: u8 = 1 << 4;

/// How an access of `size` bytes is tested: the bit for each test, and how far the second is from the first; 0 if there is only one.
/// `None`: of that size there are no accesses.
#[must_use]
pub const fn tests(size: u8, write: bool) -> Option<(u8, u32)> {
    let (class, second) = match size {
        1 => (0, 0),
        2 => (0, 1),
        4 => (1, 0),
        8 => (2, 0),
        10 => (2, 2),
        16 => (3, 0),
        32 => (3, 16),
        _ => return None,
    };
    let first = if write { WRITE } else { READ };
    Some((first << class, second))
}

/// System calls by which an allocator in a domain with a checked heap ([`crate::window::HEADER_HEAP`]) makes its blocks objects of the arena.
/// The runtime answers them itself; without such a heap they go to the policy, as all numbers that it does not know.
pub mod heap {
    /// (length, whether it counts as written) to the object's address.
    pub const ALLOCATE: u64 = 0x5246_0001;
    /// (address)
    pub const FREE: u64 = ALLOCATE + 1;
    /// (address, length) to the new object's address.
    pub const RESIZE: u64 = ALLOCATE + 2;
    /// (address) to the object's length.
    pub const LENGTH: u64 = ALLOCATE + 3;
    /// (address, length): these bytes are about to be written.
    pub const WRITTEN: u64 = ALLOCATE + 4;
    /// (to, from, length): they are about to be copied. What was never written at all stays so, and the copy will be denied.
    pub const COPIED: u64 = ALLOCATE + 5;
    /// The number behind the last.
    pub const END: u64 = ALLOCATE + 6;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_tests_leave_no_byte_out() {
        for size in 1..=64 {
            let Some((bit, second)) = tests(size, false) else {
                continue;
            };
            let each = [1, 4, 8, 16][bit.trailing_zeros() as usize];
            assert!(second <= each, "a gap in {size}");
            assert_eq!(second + each, u32::from(size));
            assert_eq!(tests(size, true), Some((bit << 4, second)));
        }
    }
}
