//! Identifiers: the numbers that mark legal targets of indirect jumps and calls.
//!
//! An identifier is a 32-bit number whose upper half is [`PREFIX`]. It stands in code inside a
//! *marker*, a long no-op (`nopl ID(%rax,%rax,1)`) at an address that is a multiple of 8, so
//! that the identifier itself is at an address ≡ 4 (mod 8). Any dword at such an address with
//! that upper half must be part of a marker (rule 6).
//!
//! The two bytes of the prefix, `9A` and `62`, are opcodes that no accepted code contains (far
//! call; EVEX), which keeps accidental matches to one pair of data bytes in about half a million.

/// Upper 16 bits of every identifier.
pub const PREFIX: u16 = 0x629A;

/// The identifier of function entries: what an indirect call, or an indirect tail call, demands.
pub const FUNCTION: u32 = ((PREFIX as u32) << 16) | 0xFFFF;

/// Smallest label number; label identifiers are `PREFIX << 16 | number`.
pub const LABEL_MIN: u16 = 1;

/// Largest label number.
pub const LABEL_MAX: u16 = 0xFFFE;

/// The one label number that is never handed out: both halves of the identifier would be the
/// prefix, so that a shifted reading of it would look like an identifier.
pub const LABEL_NEVER: u16 = PREFIX;

/// Length of a marker in bytes: `0F 1F 84 00 id32`.
pub const MARKER_LEN: usize = 8;

/// The first four bytes of a marker.
pub const MARKER_HEAD: [u8; 4] = [0x0F, 0x1F, 0x84, 0x00];

/// Whether `id` has the reserved prefix, and so may appear at an address ≡ 4 (mod 8) in a marker only.
#[must_use]
pub const fn is_reserved(id: u32) -> bool {
    id >> 16 == PREFIX as u32
}

/// The identifier of label number `number`.
///
/// Returns `None` for numbers outside [`LABEL_MIN`]..=[`LABEL_MAX`] and for [`LABEL_NEVER`].
#[must_use]
pub const fn label(number: u16) -> Option<u32> {
    if number < LABEL_MIN || number > LABEL_MAX || number == LABEL_NEVER {
        None
    } else {
        Some(((PREFIX as u32) << 16) | number as u32)
    }
}

/// The bytes of a marker that carries `id`.
#[must_use]
pub const fn marker(id: u32) -> [u8; MARKER_LEN] {
    let i = id.to_le_bytes();
    [0x0F, 0x1F, 0x84, 0x00, i[0], i[1], i[2], i[3]]
}
