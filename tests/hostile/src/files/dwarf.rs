//! Debug information of every shape, well-formed where that is what makes it expensive.

use super::elf::{Section, Spec, TEXT};
use crate::case::Op;
use ringfence_attack::rng::Rng;

/// What no operation makes larger than this many bytes at a time.
const MOST: u64 = 8 << 20;

fn uleb(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7F {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn word(out: &mut Vec<u8>, n: u64) {
    out.extend(n.to_le_bytes());
}

/// The bytes of a section, which is there from now on.
fn section<'a>(spec: &'a mut Spec, name: &str) -> &'a mut Vec<u8> {
    let found = spec.sections.iter().position(|s| s.name == name.as_bytes());
    let i = found.unwrap_or_else(|| {
        spec.sections.push(Section {
            name: name.into(),
            kind: 1,
            ..Section::default()
        });
        spec.sections.len() - 1
    });
    &mut spec.sections[i].bytes
}

/// Appends a table of abbreviations (without its end); where it starts.
fn abbreviations(spec: &mut Spec, table: &[u8]) -> u64 {
    let all = section(spec, ".debug_abbrev");
    let at = all.len() as u64;
    all.extend(table);
    all.push(0);
    at
}

/// Appends a unit; `body` is what follows its header.
fn unit(spec: &mut Spec, version: u64, wide: bool, abbreviations: u64, body: &[u8]) {
    let mut unit = (version as u16).to_le_bytes().to_vec();
    let mut at = abbreviations.to_le_bytes().to_vec();
    at.truncate(if wide { 8 } else { 4 });
    if version == 5 {
        unit.extend([1, 8]);
        unit.extend(at);
    } else {
        unit.extend(at);
        unit.push(8);
    }
    unit.extend(body);
    let info = section(spec, ".debug_info");
    if wide {
        info.extend([0xFF; 4]);
        word(info, unit.len() as u64);
    } else {
        info.extend((unit.len() as u32).to_le_bytes());
    }
    info.extend(unit);
}

/// The shape of a unit's first entry, as number 1: its addresses, its lines, its bases.
const ROOT: &[u8] = &[1, 0x11, 1, 0x11, 0x01, 0x12, 0x01, 0x10, 0x17, 0x1B, 0x08, 0, 0];

fn root(spec: &Spec, wide: bool, lines: u64) -> Vec<u8> {
    let mut body = vec![1];
    word(&mut body, TEXT);
    word(&mut body, spec.text_end());
    body.extend(&lines.to_le_bytes()[..if wide { 8 } else { 4 }]);
    body.extend(b"/src\0");
    body
}

fn range(spec: &Spec, out: &mut Vec<u8>) {
    word(out, TEXT);
    word(out, spec.text_end());
}

/// Whether it is one of ours.
#[must_use]
pub fn apply(spec: &mut Spec, op: &Op) -> bool {
    let (a, b, c) = (op.n(0), op.n(1), op.n(2));
    match op.name.as_str() {
        "inlined" => inlined(spec, a, b != 0, c),
        "ranges" => ranges(spec, a, b, c),
        "units" => units(spec, a, b, c),
        "forms" => forms(spec, a, b),
        "origins" => origins(spec, a, b),
        "strings" => strings(spec, a, b),
        "siblings" => siblings(spec, a, b),
        "lengths" => lengths(spec, a, b),
        "rows" => rows(spec, a, b, c),
        "sources" => sources(spec, a, b, c),
        "noise" => noise(spec, a, b, c),
        "name" => name(spec, a, b),
        _ => return false,
    }
    true
}

/// `depth` functions inlined into each other, each around all of the text or without addresses.
fn inlined(spec: &mut Spec, depth: u64, around: bool, version: u64) {
    let mut table = ROOT.to_vec();
    table.extend([2, 0x1D, 1, 0, 0]);
    table.extend([3, 0x2E, 1, 0x11, 0x01, 0x12, 0x01, 0x03, 0x08, 0, 0]);
    table.extend([4, 0x1D, 1, 0x11, 0x01, 0x12, 0x01, 0x58, 0x0F, 0x59, 0x0F, 0, 0]);
    let at = abbreviations(spec, &table);
    let mut body = root(spec, false, 0);
    body.push(3);
    range(spec, &mut body);
    body.extend(b"outer\0");
    for n in 0..depth.min(MOST / 20) {
        if around {
            body.push(4);
            range(spec, &mut body);
            body.extend([1, n as u8 & 0x7F]);
        } else {
            body.push(2);
        }
    }
    unit(spec, version, false, at, &body);
}

/// `functions` that share one list of `count` ranges.
fn ranges(spec: &mut Spec, functions: u64, count: u64, version: u64) {
    let mut table = ROOT.to_vec();
    table.extend([5, 0x2E, 0, 0x55, 0x17, 0, 0]);
    table.extend([6, 0x1D, 1, 0x55, 0x17, 0, 0]);
    let at = abbreviations(spec, &table);
    let (functions, count) = (functions.min(MOST / 5), count.min(MOST / 16));
    let end = spec.text_end() - TEXT;
    let list = section(
        spec,
        if version == 5 {
            ".debug_rnglists"
        } else {
            ".debug_ranges"
        },
    );
    let list_at = list.len() as u32;
    for n in 0..count {
        let from = n % end;
        if version == 5 {
            list.push(4);
            uleb(list, from);
            uleb(list, end);
        } else {
            word(list, from);
            word(list, end);
        }
    }
    list.extend([0; 16]);
    let mut body = root(spec, false, 0);
    for n in 0..functions {
        body.push(5 + (n & 1) as u8);
        body.extend(list_at.to_le_bytes());
    }
    unit(spec, version, false, at, &body);
}

/// `count` units that share a table of `shapes` abbreviations with `attributes` each, half of them from its middle on.
fn units(spec: &mut Spec, count: u64, shapes: u64, attributes: u64) {
    let attributes = attributes.min(10_000);
    let shapes = shapes.min(MOST / (2 * attributes + 8));
    let mut table = ROOT.to_vec();
    for n in 0..shapes {
        uleb(&mut table, 10 + n);
        table.extend([0x2E, 0]);
        table.extend([0x03, 0x08].repeat(attributes as usize));
        table.extend([0, 0]);
    }
    let at = abbreviations(spec, &table);
    let body = root(spec, false, 0);
    for n in 0..count.min(MOST / 64) {
        // Every second one reads from behind the first shape.
        unit(spec, 4, false, at + n % 2 * ROOT.len() as u64, &body);
    }
}

/// `count` entries of random shapes with values of random forms that fit them.
fn forms(spec: &mut Spec, seed: u64, count: u64) {
    const FORMS: &[u64] = &[
        0x01, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x10, 0x11, 0x12,
        0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F, 0x20, 0x21, 0x22, 0x23,
        0x24, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2A, 0x2B, 0x2C, 0x1F01, 0x1F20,
    ];
    const NAMES: &[u64] = &[
        0x01, 0x03, 0x10, 0x11, 0x12, 0x1B, 0x31, 0x47, 0x55, 0x58, 0x59, 0x6E, 0x2007, 0x72, 0x73, 0x74,
        0x3A,
    ];
    let mut rng = Rng::new(seed);
    let version = 2 + rng.below(4);
    let wide = rng.one_in(4);
    let mut table = if wide { vec![] } else { ROOT.to_vec() };
    let mut shapes: Vec<Vec<u64>> = Vec::new();
    for n in 0..1 + rng.below(20) {
        uleb(&mut table, 2 + n);
        uleb(&mut table, rng.pick(&[0x2E, 0x1D, 0x0B, 0x01, 0x11, 0x34, 0x3C]));
        table.push(rng.below(2) as u8);
        let forms: Vec<u64> = (0..rng.below(12)).map(|_| rng.pick(FORMS)).collect();
        for &form in &forms {
            uleb(&mut table, rng.pick(NAMES));
            uleb(&mut table, form);
            if form == 0x21 {
                table.push(rng.below(128) as u8);
            }
        }
        table.extend([0, 0]);
        shapes.push(forms);
    }
    let at = abbreviations(spec, &table);
    let mut body = if wide { vec![] } else { root(spec, wide, 0) };
    for _ in 0..count.min(MOST / 100) {
        let shape = rng.below(shapes.len() as u64 + 1);
        if shape == shapes.len() as u64 {
            body.push(0);
            continue;
        }
        uleb(&mut body, 2 + shape);
        for &form in &shapes[shape as usize] {
            value(&mut body, form, wide, spec, &mut rng);
        }
    }
    unit(spec, version, wide, at, &body);
}

fn value(out: &mut Vec<u8>, form: u64, wide: bool, spec: &Spec, rng: &mut Rng) {
    let size = if wide { 8 } else { 4 };
    let number = match rng.below(4) {
        0 => rng.bits(),
        1 => TEXT + rng.below(spec.text.len() as u64 + 1),
        _ => rng.below(64),
    };
    let mut fixed = |len: usize| out.extend(&number.to_le_bytes()[..len]);
    match form {
        0x01 | 0x07 | 0x14 | 0x20 | 0x24 => fixed(8),
        0x05 | 0x12 | 0x26 | 0x2A => fixed(2),
        0x06 | 0x13 | 0x28 | 0x2C | 0x1C => fixed(4),
        0x0B | 0x0C | 0x11 | 0x25 | 0x29 => fixed(1),
        0x27 | 0x2B => fixed(3),
        0x0E | 0x10 | 0x17 | 0x1D | 0x1F | 0x1F20 => fixed(size),
        0x1E => {
            fixed(8);
            out.extend([0; 8]);
        }
        0x08 => out.extend(b"text\0"),
        0x0D | 0x0F | 0x15 | 0x1A | 0x1B | 0x22 | 0x23 => uleb(out, number),
        0x09 | 0x18 | 0x0A => out.extend([3, 1, 2, 3]),
        0x03 => out.extend([3, 0, 1, 2, 3]),
        0x04 => out.extend([3, 0, 0, 0, 1, 2, 3]),
        0x16 => out.extend([0x0B, 7]),
        _ => {}
    }
}

/// A function whose name is that of another entry, and so on for `count` of them; in a circle, each in a unit of its own, or the
/// other end of a long row of units.
fn origins(spec: &mut Spec, count: u64, how: u64) {
    let mut table = ROOT.to_vec();
    table.extend([2, 0x2E, 0, 0x11, 0x01, 0x12, 0x01, 0x31, 0x10, 0, 0]);
    table.extend([3, 0x2E, 0, 0x31, 0x10, 0, 0]);
    table.extend([4, 0x2E, 0, 0x03, 0x08, 0, 0]);
    let at = abbreviations(spec, &table);
    let count = count.min(MOST / 128);
    let start = section(spec, ".debug_info").len() as u64;
    let first = root(spec, false, 0);
    let head = 11 + first.len() as u64;
    // What all units look like but the first and the last: a root, one entry that refers.
    let each = 11 + first.len() as u64 + 5;
    for n in 0..count.max(1) {
        let mut body = first.clone();
        let next = match how {
            // To itself; to the next unit; in a circle of two; to the last.
            0 => start + head,
            1 => start + 16 + (n + 1) * each + head,
            2 => start + head + n % 2 * each,
            _ => start + 16 + count.saturating_sub(1) * each + head,
        };
        if n == 0 {
            body.push(2);
            range(spec, &mut body);
        } else if n + 1 == count {
            body.push(4);
            body.extend(b"last\0");
            unit(spec, 4, false, at, &body);
            break;
        } else {
            body.push(3);
        }
        body.extend((next as u32).to_le_bytes());
        unit(spec, 4, false, at, &body);
    }
}

/// Names through `.debug_str_offsets`, of `len` bytes each, shared by `count` functions.
fn strings(spec: &mut Spec, count: u64, len: u64) {
    let mut table = vec![1, 0x11, 1, 0x72, 0x17, 0x11, 0x01, 0x12, 0x01, 0, 0];
    table.extend([2, 0x2E, 0, 0x11, 0x01, 0x12, 0x01, 0x03, 0x1A, 0, 0]);
    table.extend([3, 0x2E, 0, 0x11, 0x01, 0x12, 0x01, 0x6E, 0x0E, 0, 0]);
    let at = abbreviations(spec, &table);
    let str = section(spec, ".debug_str");
    let name = str.len() as u32;
    str.extend(b"n".repeat(len.min(MOST) as usize));
    str.push(0);
    let count = count.min(MOST / 20);
    let offsets = section(spec, ".debug_str_offsets");
    let base = offsets.len() as u32;
    for n in 0..count.min(1 << 16) {
        offsets.extend((name + (n % len.max(1)) as u32).to_le_bytes());
    }
    let mut body = vec![1];
    body.extend(base.to_le_bytes());
    range(spec, &mut body);
    for n in 0..count {
        body.push(2 + (n & 1) as u8);
        range(spec, &mut body);
        if n & 1 == 0 {
            uleb(&mut body, n);
        } else {
            body.extend(name.to_le_bytes());
        }
    }
    unit(spec, 5, false, at, &body);
}

/// `count` entries whose next sibling is themselves, the one before, the unit's end, or nowhere.
fn siblings(spec: &mut Spec, count: u64, how: u64) {
    let mut table = ROOT.to_vec();
    table.extend([2, 0x2E, 1, 0x01, 0x13, 0, 0]);
    let at = abbreviations(spec, &table);
    let mut body = root(spec, false, 0);
    for _ in 0..count.min(MOST / 5) {
        let here = 11 + body.len() as u32;
        body.push(2);
        let next = match how {
            0 => here,
            1 => here.saturating_sub(5),
            2 => u32::MAX,
            3 => here + 6,
            _ => here + 10,
        };
        body.extend(next.to_le_bytes());
    }
    unit(spec, 4, false, at, &body);
}

/// `count` units without a byte in them, of this many bytes according to their headers.
fn lengths(spec: &mut Spec, count: u64, len: u64) {
    let info = section(spec, ".debug_info");
    for _ in 0..count.min(MOST / 4) {
        info.extend((len as u32).to_le_bytes());
    }
}

/// A table of lines: `count` rows in sequences of `each`, of a version.
fn rows(spec: &mut Spec, count: u64, each: u64, version: u64) {
    let (count, each) = (count.min(MOST), each.max(1));
    let mut program = Vec::new();
    let start = |program: &mut Vec<u8>| {
        program.extend([0, 9, 2]);
        word(program, TEXT);
    };
    start(&mut program);
    for n in 1..=count {
        // Special: one byte further, one line further.
        program.push(if n % 3 == 0 { 1 } else { 13 + 5 + 14 });
        if n % each == 0 {
            program.extend([0, 1, 1]);
            start(&mut program);
        }
    }
    program.extend([2, 0x80, 0x20, 1, 0, 1, 1]);
    let mut table = vec![];
    if version == 5 {
        table.extend([1, 1, 8, 1, b'/', 0, 2, 1, 8, 2, 0x0B, 1, b'f', 0, 0]);
        table[5] = 0;
    } else {
        table.extend(b"dir\0\0file.c\0\x01\0\0\0");
    }
    lines(spec, version, &table, &program);
}

/// Appends a table of lines and a unit that has it.
fn lines(spec: &mut Spec, version: u64, tables: &[u8], program: &[u8]) {
    let mut head = vec![1];
    if version >= 4 {
        head.push(1);
    }
    head.extend([1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]);
    head.extend(tables);
    let mut rest = (version as u16).to_le_bytes().to_vec();
    if version == 5 {
        rest.extend([8, 0]);
    }
    rest.extend((head.len() as u32).to_le_bytes());
    rest.extend(head);
    rest.extend(program);
    let line = section(spec, ".debug_line");
    let at = line.len() as u64;
    line.extend((rest.len() as u32).to_le_bytes());
    line.extend(rest);
    let at_abbreviations = abbreviations(spec, ROOT);
    let body = root(spec, false, at);
    unit(spec, version.min(4), false, at_abbreviations, &body);
}

/// A table of `count` directories and files, of DWARF 5 with `fields` fields of no bytes, or before; the row is of the last.
fn sources(spec: &mut Spec, count: u64, fields: u64, version: u64) {
    let mut program = vec![0, 9, 2];
    word(&mut program, TEXT);
    program.push(4);
    uleb(&mut program, count);
    program.extend([1, 2, 0x80, 0x80, 4, 0, 1, 1]);
    let mut tables = vec![];
    if version == 5 {
        for _ in 0..2 {
            tables.push(fields.min(255) as u8);
            for _ in 0..fields.min(255) {
                tables.extend([1, 0x19]);
            }
            uleb(&mut tables, count);
        }
    } else {
        let count = count.min(MOST / 8);
        for _ in 0..count {
            tables.extend(b"d\0");
        }
        tables.push(0);
        for _ in 0..count {
            tables.extend(b"f\0");
            uleb(&mut tables, count);
            tables.extend([0, 0]);
        }
        tables.push(0);
    }
    lines(spec, version, &tables, &program);
}

/// Random bytes, or bytes that are all the same, in one of the sections.
fn noise(spec: &mut Spec, which: u64, len: u64, seed: u64) {
    const ALL: &[&str] = &[
        ".debug_info",
        ".debug_abbrev",
        ".debug_line",
        ".debug_line_str",
        ".debug_str",
        ".debug_str_offsets",
        ".debug_addr",
        ".debug_ranges",
        ".debug_rnglists",
        ".eh_frame",
        ".eh_frame_hdr",
        ".gcc_except_table",
        ".debug_frame",
        ".debug_names",
        ".gnu_debuglink",
        ".gnu.version",
    ];
    let mut rng = Rng::new(seed);
    let bytes = section(spec, ALL[which as usize % ALL.len()]);
    for _ in 0..len.min(MOST) {
        bytes.push(if seed < 8 {
            [0, 1, 2, 0x7F, 0x80, 0x81, 0xFE, 0xFF][seed as usize]
        } else {
            rng.bits() as u8
        });
    }
}

/// Gives the functions a name that is hard to show.
fn name(spec: &mut Spec, how: u64, size: u64) {
    let n = size.min(MOST / 4) as usize;
    let text: Vec<u8> = match how {
        // Control characters; no text at all; long; long and wide.
        0 => (0..n).map(|i| 1 + (i % 31) as u8).collect(),
        1 => vec![0xFF; n],
        2 => vec![b'x'; n],
        3 => "\u{202E}".repeat(n / 3).into_bytes(),
        // C++: nested, repeated, doubling, without an end.
        4 => [b"_ZN".to_vec(), b"1a".repeat(n / 2), b"Ev".to_vec()].concat(),
        5 => [b"_Z1f".to_vec(), b"P".repeat(n), b"i".to_vec()].concat(),
        6 => {
            // Each argument is a template of the one before, twice.
            let mut text = b"_Z1f1aIiiE".to_vec();
            for i in 0..n.min(400) {
                let s = match i {
                    0 => "S_".into(),
                    i => format!("S{}_", base36(i - 1)),
                };
                text.extend(format!("1bI{s}{s}E").bytes());
            }
            text
        }
        7 => [b"_Z".to_vec(), b"I".repeat(n)].concat(),
        8 => [b"_Z1fIX".to_vec(), b"pl".repeat(n / 2)].concat(),
        9 => [b"_ZZ".to_vec(), b"Z".repeat(n)].concat(),
        // Rust: old, new, and new with references back.
        10 => [
            b"_ZN".to_vec(),
            b"4name".repeat(n / 5),
            b"17h0123456789abcdefE".to_vec(),
        ]
        .concat(),
        11 => [b"_RNvC1a".to_vec(), format!("{n}").into_bytes(), vec![b'b'; n]].concat(),
        12 => [b"_RINvC1a1b".to_vec(), b"TBi_BiBi_E".repeat(n / 9), b"E".to_vec()].concat(),
        13 => [b"_RMC0".to_vec(), b"R".repeat(n), b"u".to_vec()].concat(),
        14 => [b"_RIC0".to_vec(), b"B3_".repeat(n / 3), b"E".to_vec()].concat(),
        15 => [b"_RMC0F".to_vec(), b"TT".repeat(n / 2)].concat(),
        _ => [
            b"_RNvC1au".to_vec(),
            format!("{n}").into_bytes(),
            b"_".to_vec(),
            vec![b'z'; n],
        ]
        .concat(),
    };
    let text: Vec<u8> = text.into_iter().map(|b| b.max(1)).collect();
    let at = spec.strtab.len() as u32;
    spec.strtab.extend(text);
    spec.strtab.push(0);
    let sym = |value| super::elf::Symbol {
        name: at,
        info: 0x12,
        section: 1,
        value,
        // The larger one counts.
        size: 17,
    };
    let (crash, deep) = (TEXT + super::elf::CRASH, TEXT + super::elf::DEEP);
    spec.symtab.extend([sym(crash), sym(deep)]);
}

fn base36(mut n: usize) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[n % 36]);
        n /= 36;
        if n == 0 {
            break;
        }
    }
    digits.reverse();
    String::from_utf8(digits).unwrap_or_default()
}
