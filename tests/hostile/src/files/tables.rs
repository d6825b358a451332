//! Tables that the loader reads: symbols, relocations, headers, notes, machine code; and their bytes.

use super::elf::{CRASH, LONG, Part, Patch, SHORT, Section, Segment, Spec, Symbol, TEXT};
use crate::case::Op;
use ringfence_attack::rng::Rng;
use ringfence_isa::{PAGE, identifier};

/// What no operation makes larger than this many bytes at a time.
const MOST: u64 = 8 << 20;

/// Applies an operation. Whether it is one of ours.
#[must_use]
pub fn apply(spec: &mut Spec, op: &Op) -> bool {
    let (a, b, c) = (op.n(0), op.n(1), op.n(2));
    match op.name.as_str() {
        "symbols" => symbols(spec, a, b, c),
        "symtab" => symtab(spec, a, b, c),
        "relocations" => relocations(spec, a, b),
        "constructors" => spec.constructors = Some(functions(spec, a, b)),
        "destructors" => spec.destructors = Some(functions(spec, a, b)),
        "notes" => notes(spec, a, b),
        "segments" => segments(spec, a, b),
        "segment" => spec.segments.push(segment(op)),
        "sections" => sections(spec, a, b),
        "zeroes" => spec.zeroes = a,
        "data" => spec.data.resize(a.min(2 * MOST) as usize, 0x5A),
        "dynamic" => {
            let (tag, value) = (a, place(spec, b));
            spec.dynamic.extend((0..c.min(100_000)).map(|_| (tag, value)));
        }
        "code" => code(spec, a, b),
        "labels" => labels(spec, a, b),
        "sparse" => spec.len = Some(a),
        "truncate" => spec.len = Some(a),
        "byte" => patch(spec, Part::Any, a, b, c),
        "head" => patch(spec, Part::Head, a, b, c),
        "heading" => patch(spec, Part::Sections, a, b, c),
        "table" => patch(spec, Part::Dynamic, a, b, c),
        "instruction" => patch(spec, Part::Text, a, b, c),
        _ => return false,
    }
    true
}

fn patch(spec: &mut Spec, part: Part, at: u64, len: u64, value: u64) {
    spec.patches.push(Patch { part, at, len, value });
}

/// A number that is near something of the file, in most cases.
fn place(spec: &Spec, n: u64) -> u64 {
    match n % 7 {
        0 => 0,
        1 => TEXT + n % PAGE,
        2 => spec.data_start() + n % PAGE,
        3 => spec.data_start() + spec.data.len() as u64,
        4 => n,
        5 => n << 32,
        _ => u64::MAX - n % PAGE,
    }
}

/// `count` symbols with names of `len` bytes each: their own, one for all, or each the end of the next.
fn symbols(spec: &mut Spec, count: u64, len: u64, how: u64) {
    let (kind, place) = ((how / 3) % 3, how / 9);
    let count = count.min(MOST / 24);
    let len = len.min(MOST);
    let first = spec.strings.len() as u64;
    let own = how.is_multiple_of(3) && count * (len + 1) < MOST;
    if !own {
        spec.strings.extend(b"n".repeat(len as usize));
        spec.strings.push(0);
    }
    let data = spec.data_start();
    for n in 0..count {
        let name = if own {
            let at = spec.strings.len() as u64;
            let text = format!("{n:x}");
            spec.strings.extend(text.bytes().cycle().take(len as usize));
            spec.strings.push(0);
            at
        } else if how % 3 == 1 {
            first
        } else {
            first + n % len.max(1)
        };
        spec.symbols.push(Symbol {
            name: name as u32,
            // A function, a variable, something that nobody knows.
            info: [0x12, 0x11, 0x2F][kind as usize],
            section: u16::from(place != 1),
            value: match place {
                0 => TEXT + CRASH,
                1 => 0,
                2 => data + (count - n) % 64,
                _ => u64::MAX - n,
            },
            size: if place == 3 { u64::MAX } else { n },
        });
    }
}

/// `count` symbols for messages, whose names of `len` bytes are shared, and whose places overlap or do not.
fn symtab(spec: &mut Spec, count: u64, len: u64, how: u64) {
    let first = spec.strtab.len() as u32;
    spec.strtab.extend(b"s".repeat(len.min(MOST) as usize));
    if how.is_multiple_of(2) {
        spec.strtab.push(0);
    }
    for n in 0..count.min(MOST / 24) {
        let at = match how / 2 {
            0 => TEXT,
            1 => TEXT + n % spec.text.len() as u64,
            2 => TEXT + (count - n) % spec.text.len() as u64,
            _ => n.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        };
        spec.symtab.push(Symbol {
            name: first + (n % len.max(1)) as u32,
            info: 0x12,
            section: 1,
            value: at,
            size: if n % 3 == 0 { 0 } else { u64::MAX },
        });
    }
}

/// `count` relocations: in order, in reverse, all at one place, overlapping, at random; with symbols or without.
fn relocations(spec: &mut Spec, count: u64, how: u64) {
    let count = count.min(MOST / 24);
    let room = (8 * count).min(2 * MOST);
    if (spec.data.len() as u64) < room {
        spec.data.resize(room as usize, 0);
    }
    let (data, len) = (spec.data_start(), spec.data.len() as u64);
    let symbols = spec.symbols.len() as u64 + 1;
    let mut rng = Rng::new(how);
    for n in 0..count {
        let offset = match how % 5 {
            0 => 8 * n,
            1 => 8 * (count - 1 - n),
            2 => 0,
            3 => n % len.saturating_sub(8).max(1),
            _ => rng.below(len),
        };
        let info = match how / 5 {
            0 => 8,
            1 => (n % symbols) << 32 | 1,
            2 => (n % symbols) << 32 | 6,
            3 => (n % symbols) << 32 | 18,
            4 => rng.bits(),
            // Never the first, which is none.
            5 => (1 + n % (symbols - 1).max(1)) << 32 | 6,
            _ => (1 + n % (symbols - 1).max(1)) << 32 | 18,
        };
        let addend = if how.is_multiple_of(2) { n } else { TEXT + CRASH };
        spec.relocations.push([data + offset, info, addend]);
    }
}

/// `count` constructors or destructors: which fault, which are no functions, which the relocations do not fill, which are
/// short, which are long. Where the table is in the data, and its size.
fn functions(spec: &mut Spec, count: u64, how: u64) -> (u64, u64) {
    let count = count.min(100_000);
    let at = spec.data.len().next_multiple_of(8) as u64;
    spec.data.resize((at + 8 * count) as usize, 0);
    let data = spec.data_start();
    for n in 0..count {
        let target = match how {
            0 => TEXT + CRASH,
            1 => TEXT + n,
            2 => n << 20,
            3 => TEXT + SHORT,
            _ => TEXT + LONG,
        };
        spec.relocations.push([data + at + 8 * n, 8, target]);
    }
    (at, 8 * count)
}

/// `count` notes before the right one, with names and contents of so many bytes, or that say so.
fn notes(spec: &mut Spec, count: u64, how: u64) {
    for n in 0..count.min(2000) {
        let (name, desc) = match how {
            0 => (4, 0),
            1 => (4, 16),
            2 => (10, 16),
            3 => (u32::MAX, u32::MAX),
            _ => (n as u32, u32::MAX - n as u32),
        };
        for word in [name, desc, n as u32 & 3] {
            spec.notes.extend(word.to_le_bytes());
        }
        if how < 3 {
            spec.notes.extend(
                b"Ringfence\0\0\0"
                    .iter()
                    .take((name as usize).next_multiple_of(4)),
            );
            spec.notes.extend(vec![0xEE; desc as usize]);
        }
    }
}

fn segment(op: &Op) -> Segment {
    const KINDS: [u32; 8] = [1, 2, 3, 4, 6, 7, 0x6474_E551, 0x6474_E552];
    Segment {
        kind: KINDS[op.n(0) as usize % 8],
        flags: op.n(1) as u32 & 7,
        words: [op.n(2), op.n(3), op.n(4), op.n(5), op.n(6)],
    }
}

/// `count` more program headers: notes that share everything, small loadable ones, or empty ones.
fn segments(spec: &mut Spec, count: u64, how: u64) {
    for n in 0..count.min(400) {
        let (kind, words) = match how {
            0 => (4, [0, 0, TEXT, TEXT, 4]),
            1 => (1, [0, (1 << 28) + n * PAGE, 0, PAGE, 1]),
            2 => (1, [n, (1 << 28) + n * PAGE + n, 1, 1, 1 << (n % 64)]),
            3 => (1, [0, (1 << 28) + n, 0, 0, 0]),
            _ => (7, [0, TEXT, n, u64::MAX - n, 1 << (n % 64)]),
        };
        spec.segments.push(Segment {
            kind,
            flags: if n % 2 == 0 { 6 } else { 4 },
            words,
        });
    }
}

/// `count` more sections: without a name, with one name for all, tables of symbols that are the whole file, without bytes but
/// with a length.
fn sections(spec: &mut Spec, count: u64, how: u64) {
    for n in 0..count.min(65_000) {
        spec.sections.push(Section {
            name: if how == 1 { b".debug_info".to_vec() } else { vec![] },
            kind: match how {
                2 => 2,
                3 => 11,
                4 => 8,
                _ => 1,
            },
            flags: if how == 5 { 0x800 } else { 0 },
            bytes: vec![],
            beyond: if how >= 2 { n } else { 0 },
        });
    }
}

/// Machine code of `len` bytes behind the functions that there are: nops, calls, jumps, functions, or anything.
fn code(spec: &mut Spec, len: u64, how: u64) {
    let len = len.min(MOST);
    let marker = identifier::marker(identifier::FUNCTION);
    while !spec.text.len().is_multiple_of(16) {
        spec.text.push(0xCC);
    }
    let start = spec.text.len();
    spec.text.extend(marker);
    let mut rng = Rng::new(how);
    while ((spec.text.len() - start) as u64) < len {
        match how {
            0 => spec.text.push(0x90),
            1 => {
                let back = start as i64 - (spec.text.len() as i64 + 5);
                spec.text.push(0xE8);
                spec.text.extend((back as i32).to_le_bytes());
            }
            2 => spec.text.extend([0x74, 0x00]),
            3 => {
                spec.text.push(0xC3);
                while !spec.text.len().is_multiple_of(16) {
                    spec.text.push(0xCC);
                }
                spec.text.extend(marker);
            }
            4 => spec.text.extend([0x53, 0x5B]),
            5 => spec.text.extend([0x0F, 0x84, 0, 0, 0, 0]),
            6 => {
                let back = start as i64 + 8 - (spec.text.len() as i64 + 6);
                spec.text.extend([0x0F, 0x84]);
                spec.text.extend((back as i32).to_le_bytes());
            }
            7 => spec.text.push(0xCC),
            _ => spec.text.push(rng.bits() as u8),
        }
    }
    spec.text.push(0xC3);
}

/// `count` labels, with numbers of their own or the same for all.
fn labels(spec: &mut Spec, count: u64, how: u64) {
    for n in 0..count.min(MOST / 8) {
        let n = if how == 0 { n } else { 0 };
        let number = identifier::LABEL_MIN.saturating_add((n % 60_000) as u16);
        if let Some(label) = identifier::label(number) {
            spec.text.extend(identifier::MARKER_HEAD);
            spec.text.extend(label.to_le_bytes());
        }
    }
    spec.text.push(0xC3);
}
