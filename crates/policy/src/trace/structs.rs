//! What pointers among the arguments lead to, as strace prints it.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::text::{SHOWN, address, data};
use crate::memory::Memory;
use crate::names;

/// Most elements of a vector that are shown.
const ELEMENTS: u64 = 16;

fn list(shown: Vec<String>, more: bool) -> String {
    format!("[{}{}]", shown.join(", "), if more { ", ..." } else { "" })
}

/// `count` `iovec`s of which `len` bytes are data.
pub(super) fn vector(memory: Memory<'_>, pointer: u64, count: u64, len: u64) -> String {
    let mut left = len;
    let mut shown = Vec::new();
    for i in 0..count.min(ELEMENTS) {
        let Ok([base, size]) = memory.words::<2>(pointer.wrapping_add(16 * i)) else {
            return address(pointer);
        };
        let here = size.min(left);
        left -= here;
        shown.push(format!(
            "{{iov_base={}, iov_len={size}}}",
            data(memory, base, here)
        ));
    }
    list(shown, count > ELEMENTS)
}

/// A `timespec` or `timeval`.
pub(super) fn time(memory: Memory<'_>, pointer: u64, fraction: &str) -> String {
    match memory.words::<2>(pointer) {
        Ok([seconds, rest]) if pointer != 0 => {
            format!("{{tv_sec={}, tv_{fraction}={}}}", seconds as i64, rest as i64)
        }
        _ => address(pointer),
    }
}

/// Two descriptors.
pub(super) fn pair(memory: Memory<'_>, pointer: u64) -> String {
    memory.get::<8>(pointer).map_or_else(
        |_| address(pointer),
        |b| format!("[{}, {}]", word(&b, 0), word(&b, 4)),
    )
}

fn word(bytes: &[u8], at: usize) -> i32 {
    i32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A `struct stat`.
pub(super) fn status(memory: Memory<'_>, pointer: u64) -> String {
    let Ok(bytes) = memory.get::<144>(pointer) else {
        return address(pointer);
    };
    let mode = word(&bytes, 24) as u32;
    let size = i64::from_ne_bytes(bytes[48..56].try_into().unwrap_or_default());
    let kind = names::TYPE.show(u64::from(mode & libc::S_IFMT));
    format!("{{st_mode={kind}|0{:o}, st_size={size}, ...}}", mode & 0o7777)
}

/// An address to connect to.
pub(super) fn socket_address(memory: Memory<'_>, pointer: u64, len: u64) -> String {
    let Ok(bytes) = memory.get_bytes(pointer, len.min(28) as usize) else {
        return address(pointer);
    };
    let port = |b: &[u8]| u16::from_be_bytes([b[2], b[3]]);
    match (bytes.first().copied().map(i32::from), bytes.len()) {
        (Some(libc::AF_INET), 8..) => {
            let ip = Ipv4Addr::new(bytes[4], bytes[5], bytes[6], bytes[7]);
            format!(
                "{{sa_family=AF_INET, sin_port=htons({}), sin_addr=inet_addr(\"{ip}\")}}",
                port(&bytes)
            )
        }
        (Some(libc::AF_INET6), 28) => {
            let ip = Ipv6Addr::from(<[u8; 16]>::try_from(&bytes[8..24]).unwrap_or_default());
            format!(
                "{{sa_family=AF_INET6, sin6_port=htons({}), inet_pton(AF_INET6, \"{ip}\", &sin6_addr)}}",
                port(&bytes)
            )
        }
        _ => address(pointer),
    }
}

/// `count` `pollfd`s: what they ask for, or those that are ready.
pub(super) fn polled(memory: Memory<'_>, pointer: u64, count: u64, ready: bool) -> String {
    let Ok(bytes) = memory.get_bytes(pointer, 8 * count.min(SHOWN as u64) as usize) else {
        return address(pointer);
    };
    let one = |b: &[u8]| {
        let at = if ready { 6 } else { 4 };
        let bits = u64::from(u16::from_ne_bytes([b[at], b[at + 1]]));
        let name = if ready { "revents" } else { "events" };
        (!ready || bits != 0).then(|| format!("{{fd={}, {name}={}}}", word(b, 0), names::EVENTS.show(bits)))
    };
    list(
        bytes.chunks_exact(8).filter_map(one).collect(),
        count > SHOWN as u64,
    )
}
