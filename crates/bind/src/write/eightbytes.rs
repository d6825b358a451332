//! How structs pass by value: their eightbytes, by the System V ABI (AMD64, 3.2.3).

use std::ops::Range;

use crate::types::{Id, Record, Type, Types};

/// Eight bytes of a struct.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Eightbyte {
    /// All that is there are floating-point numbers: in structs of 16 bytes or less these travel in a vector register.
    pub floating: bool,
    /// The bits that fields fill.
    pub fields: u64,
}

/// As many bytes as there are for arguments on the stack (`RF_STACK_ARGS_MAX`).
const MOST: u64 = 128;

/// The eightbytes of a struct or a union. `None`: it does not pass by value, or nobody knows how.
pub(super) fn eightbytes(types: &Types, record: &Record) -> Option<Vec<Eightbyte>> {
    let size = record.size.filter(|n| (1..=MOST).contains(n))?;
    let mut parts = Vec::new();
    members(types, record, 0, 0, &mut parts)?;
    let words = size.div_ceil(8);
    let mut found = vec![None; usize::try_from(words).ok()?];
    for part in &parts {
        for bit in part.bits.clone() {
            let word: &mut Option<Eightbyte> = found.get_mut(usize::try_from(bit / 64).ok()?)?;
            let word = word.get_or_insert(Eightbyte {
                floating: true,
                fields: 0,
            });
            word.floating &= part.floating;
            word.fields |= 1 << (bit % 64);
        }
    }
    // Eight bytes of nothing but padding: compilers do not agree.
    let found: Vec<Eightbyte> = found.into_iter().collect::<Option<_>>()?;
    // Bit-fields without a name are not in debug information, and some compilers take them for integers.
    let hidden = found
        .iter()
        .enumerate()
        .any(|(n, w)| w.floating && hole(&parts, n, size));
    (!hidden).then_some(found)
}

/// Whether alignment does not explain what lies between the numbers in word `n`.
fn hole(parts: &[Part], n: usize, size: u64) -> bool {
    let (begin, end) = (64 * n as u64, (64 * (n as u64 + 1)).min(8 * size));
    let widest = |at: u64| {
        let there = parts.iter().filter(|p| at == 8 * size || p.bits.start == at);
        there.map(|p| p.bits.end - p.bits.start).max().unwrap_or(0)
    };
    let mut at = begin;
    while at < end {
        if let Some(part) = parts.iter().find(|p| p.bits.contains(&at)) {
            at = part.bits.end;
            continue;
        }
        let later = parts.iter().map(|p| p.bits.start).filter(|&b| b > at);
        let next = later.min().unwrap_or(8 * size);
        if next - at >= widest(next) {
            return true;
        }
        at = next;
    }
    false
}

/// A number in a struct, or a part of one.
struct Part {
    bits: Range<u64>,
    floating: bool,
}

fn members(types: &Types, record: &Record, at: u64, depth: usize, parts: &mut Vec<Part>) -> Option<()> {
    for field in &record.fields {
        match &field.bits {
            Some(bits) => {
                let bits = bits.as_ref()?;
                let bits = bits.start.checked_add(8 * at)?..bits.end.checked_add(8 * at)?;
                // No more than a struct may have.
                if bits.end > 8 * MOST {
                    return None;
                }
                parts.push(Part {
                    bits,
                    floating: false,
                });
            }
            None => member(types, field.to, at.checked_add(field.offset)?, depth + 1, parts)?,
        }
    }
    Some(())
}

fn member(types: &Types, id: Id, at: u64, depth: usize, parts: &mut Vec<Part>) -> Option<()> {
    // Unions have several in the same place, and debug information may be anybody's.
    if depth > 64 || parts.len() > 4096 || at > MOST {
        return None;
    }
    let (bytes, floating) = match types.bare(id) {
        Type::Integer { bytes, .. } | Type::Enumeration { bytes, .. } => (*bytes, false),
        Type::Pointer(_) => (8, false),
        Type::Float {
            bytes: bytes @ (4 | 8),
            ..
        } => (*bytes, true),
        Type::Record(inner) => return members(types, inner, at, depth, parts),
        // A flexible one, behind the struct.
        Type::Array(_, None) => return Some(()),
        Type::Array(to, Some(count)) => {
            for n in 0..*count {
                let before = parts.len();
                let next = at.checked_add(n.checked_mul(types.size(*to)?)?)?;
                member(types, *to, next, depth + 1, parts)?;
                // Elements of no size: as many as they may be, they are nothing.
                if parts.len() == before {
                    break;
                }
            }
            return Some(());
        }
        _ => return None,
    };
    // Fields that are not aligned put a struct in memory.
    if !matches!(bytes, 1 | 2 | 4 | 8) || !at.is_multiple_of(bytes) || at + bytes > MOST {
        return None;
    }
    parts.push(Part {
        bits: 8 * at..8 * (at + bytes),
        floating,
    });
    Some(())
}
