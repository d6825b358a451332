//! Strings, data and addresses as strace prints them.

use crate::memory::Memory;

/// Most bytes of a string that are shown, as in strace.
pub(super) const SHOWN: usize = 32;

pub(super) fn quoted(bytes: &[u8], more: bool) -> String {
    let mut text = String::from("\"");
    for (i, b) in bytes.iter().enumerate() {
        match b {
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*b));
            }
            0x20..0x7F => text.push(char::from(*b)),
            0x0B => text.push_str("\\v"),
            0x0C => text.push_str("\\f"),
            // As short as the next character allows.
            _ if bytes.get(i + 1).is_some_and(u8::is_ascii_digit) => text.push_str(&format!("\\{b:03o}")),
            _ => text.push_str(&format!("\\{b:o}")),
        }
    }
    text.push('"');
    if more {
        text.push_str("...");
    }
    text
}

/// A pointer of the domain's, as an offset in its window: all that counts, and nothing about where that lies in the host.
pub(super) fn address(value: u64) -> String {
    if value as u32 == 0 {
        "NULL".to_owned()
    } else {
        format!("{:#x}", value as u32)
    }
}

/// Any argument: a pointer into the window as [`address`] shows it.
pub(super) fn anything(memory: Memory<'_>, value: u64) -> String {
    if value >> 32 == memory.0.base() >> 32 {
        address(value)
    } else {
        format!("{value:#x}")
    }
}

/// `len` bytes of the domain's, or as many of them as are shown.
pub(super) fn data(memory: Memory<'_>, pointer: u64, len: u64) -> String {
    let n = len.min(SHOWN as u64) as usize;
    memory
        .get_bytes(pointer, n)
        .map_or_else(|_| address(pointer), |b| quoted(&b, len > n as u64))
}
