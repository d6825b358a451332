//! Files of every shape that would be deep, quadratic or endless for a reader that trusts them. What counts is steps.

use super::*;
use crate::structure;
use ringfence_core::work::Bound;

/// An ELF file with these sections and nothing else.
fn elf(sections: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
    let mut names = vec![0];
    let mut file = vec![0; 64];
    let mut headers = vec![[0_u8; 64]];
    let mut add = |file: &mut Vec<u8>, name: u32, kind: u32, bytes: &[u8], link: u32| {
        let mut h = [0; 64];
        h[..4].copy_from_slice(&name.to_le_bytes());
        h[4..8].copy_from_slice(&kind.to_le_bytes());
        h[24..32].copy_from_slice(&(file.len() as u64).to_le_bytes());
        h[32..40].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
        h[40..44].copy_from_slice(&link.to_le_bytes());
        file.extend_from_slice(bytes);
        headers.push(h);
    };
    for (i, (name, kind, bytes)) in sections.iter().enumerate() {
        let at = names.len() as u32;
        names.extend_from_slice(name.as_bytes());
        names.push(0);
        // A table of symbols is followed by its strings.
        add(&mut file, at, *kind, bytes, i as u32 + 2);
    }
    add(&mut file, 0, 3, &names, 0);
    let (at, count) = (file.len() as u64, headers.len() as u16);
    file[0x28..0x30].copy_from_slice(&at.to_le_bytes());
    file[0x3A..0x3C].copy_from_slice(&64_u16.to_le_bytes());
    file[0x3C..0x3E].copy_from_slice(&count.to_le_bytes());
    file[0x3E..0x40].copy_from_slice(&(count - 1).to_le_bytes());
    headers.iter().for_each(|h| file.extend_from_slice(h));
    file
}

/// Shapes of entries: 1 a unit with its code from 0x1000 to 0x2000; 2 an inlined function without a word; 3 a function with two
/// addresses; 4 an inlined function with two; 5 a function with a list of ranges.
const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 1, 0x11, 0x01, 0x12, 0x01, 0x10, 0x17, 0, 0, //
    2, 0x1D, 1, 0, 0, //
    3, 0x2E, 1, 0x11, 0x01, 0x12, 0x01, 0x03, 0x08, 0, 0, //
    4, 0x1D, 1, 0x11, 0x01, 0x12, 0x01, 0x58, 0x0F, 0x59, 0x0F, 0, 0, //
    5, 0x2E, 0, 0x55, 0x17, 0, 0, //
    0,
];

const INFO: &str = ".debug_info";
const BITS: u32 = 1;

fn unit(entries: &[u8]) -> Vec<u8> {
    let mut body = vec![4, 0, 0, 0, 0, 0, 8, 1];
    body.extend([0x1000_u64, 0x2000].iter().flat_map(|a| a.to_le_bytes()));
    body.extend([0; 4]);
    body.extend_from_slice(entries);
    let mut unit = (body.len() as u32).to_le_bytes().to_vec();
    unit.extend(body);
    unit
}

fn with_info(info: Vec<u8>, more: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
    let mut all = vec![
        (INFO, BITS, info),
        (".debug_abbrev", BITS, ABBREVIATIONS.to_vec()),
    ];
    all.extend(more.iter().cloned());
    elf(&all)
}

fn range(low: u64, high: u64) -> Vec<u8> {
    [low, high].iter().flat_map(|a| a.to_le_bytes()).collect()
}

const STEPS: u64 = 1 << 20;

/// Looks up on a stack that hardly anything fits on.
fn look(file: &[u8], at: &[u64]) -> (Vec<Vec<Name>>, Option<Bound>) {
    std::thread::scope(|scope| {
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let work = || {
            let mut budget = Budget::new(STEPS, 1 << 20);
            let (names, cut) = look_up(file, at, &mut budget);
            (names, cut.map(|e| e.bound))
        };
        small.spawn_scoped(scope, work).unwrap().join().unwrap()
    })
}

#[test]
fn depth_is_no_matter() {
    for depth in [150, 22_000, 500_000] {
        let (names, cut) = look(&with_info(unit(&vec![2; depth]), &[]), &[0x1800]);
        assert_eq!((names[0].len(), cut), (1, None), "{depth}");
    }
    // All of them around the place.
    let mut entries = vec![3];
    entries.extend(range(0x1000, 0x2000));
    entries.extend(b"outer\0");
    for n in 0..20_001_u32 {
        entries.push(4);
        entries.extend(range(0x1000, 0x2000));
        entries.extend([1, (n % 100) as u8]);
    }
    let (names, cut) = look(&with_info(unit(&entries), &[]), &[0x1800]);
    assert_eq!((names[0].len(), cut), (INLINED, None));
    assert_eq!(names[0].last().unwrap().function.as_deref(), Some(&b"outer"[..]));
}

#[test]
fn shared_lists_of_ranges_are_counted_each_time() {
    const MANY: usize = 10_000;
    let mut list: Vec<u8> = (0..MANY).flat_map(|_| range(0x10, 0x20)).collect();
    list.extend(range(0, 0));
    let functions = |count| unit(&[5, 0, 0, 0, 0].repeat(count));
    let file = |count| with_info(functions(count), &[(".debug_ranges", BITS, list.clone())]);
    let (names, cut) = look(&file(20), &[0x1800]);
    assert_eq!((names[0].len(), cut), (1, None));
    let (names, cut) = look(&file(MANY), &[0x1800]);
    assert_eq!((names[0].len(), cut), (1, Some(Bound::Steps)));
}

#[test]
fn units_that_share_a_table_of_shapes_do_not_multiply_it() {
    // A megabyte of abbreviations, and units that point into it at different places.
    let mut table = ABBREVIATIONS[..ABBREVIATIONS.len() - 1].to_vec();
    for code in 10..120_u8 {
        table.extend([code, 0x2E, 0]);
        table.extend([0x03, 0x08].repeat(4000));
        table.extend([0, 0]);
    }
    table.push(0);
    let mut info = Vec::new();
    for n in 0..20_000_u32 {
        let mut one = unit(&[]);
        one[6..10].copy_from_slice(&(n % 2 * 11).to_le_bytes());
        info.extend(one);
    }
    let file = elf(&[(INFO, BITS, info), (".debug_abbrev", BITS, table)]);
    assert_eq!(look(&file, &[0x5000]).1, Some(Bound::Steps));
}

#[test]
fn empty_entries_of_a_table_of_files_are_counted() {
    // DWARF 5; a file takes no byte, and there are 2 to the 60.
    let mut table = vec![5, 0, 8, 0];
    let rest = [1, 1, 1, 0xFB, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1];
    let mut tail = rest.to_vec();
    tail.extend([0, 0, 1, 1, 0x19]);
    tail.extend([0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x10]);
    table.extend((tail.len() as u32).to_le_bytes());
    table.extend(&tail);
    // From 0x1000 to 0x2000 file 2 to the 50 and more, line 7.
    let mut program = vec![0, 9, 2];
    program.extend(0x1000_u64.to_le_bytes());
    program.extend([
        4, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 8, 3, 6, 1, 2, 0x80, 0x20, 0, 1, 1,
    ]);
    table.extend(program);
    let mut line = (table.len() as u32).to_le_bytes().to_vec();
    line.extend(table);
    let (names, _) = look(&with_info(unit(&[]), &[(".debug_line", BITS, line)]), &[0x1800]);
    assert_eq!((names[0].len(), names[0][0].line), (1, Some(7)));
    assert_eq!(names[0][0].file, None);
}

#[test]
fn symbols_that_share_a_name_are_not_copied() {
    let mut symbols = Vec::new();
    for n in 0..10_000_u64 {
        symbols.extend(1_u32.to_le_bytes());
        symbols.extend([2, 0, 1, 0]);
        symbols.extend(range(0x1000 + 16 * n, 8));
    }
    let mut strings = vec![0];
    strings.extend(b"x".repeat(1 << 20));
    let file = elf(&[(".symtab", 2, symbols), (".strtab", 3, strings)]);
    let (names, cut) = look(&file, &[0x1004, 0x100A, 0x1014, 0xFFF]);
    assert_eq!(cut, None);
    let lengths: Vec<_> = names
        .iter()
        .map(|n| n[0].function.as_ref().map(Vec::len))
        .collect();
    assert_eq!(lengths, [Some(4096), None, Some(4096), None]);
}

#[test]
fn strings_in_entries_are_paid_by_their_length() {
    // Shape 3 has its name in the entry: 4 KB each, in 2,000 functions that cover nothing.
    let mut entries = Vec::new();
    for _ in 0..2_000 {
        entries.push(3);
        entries.extend(range(0x10, 0x20));
        entries.extend([b'n'; 4_000]);
        entries.extend([0, 0]);
    }
    let file = with_info(unit(&entries), &[]);
    let mut budget = Budget::new(200_000, 1 << 20);
    let (_, cut) = look_up(&file, &[0x1800], &mut budget);
    assert_eq!(cut.map(|e| e.bound), Some(Bound::Steps), "8 MB of names");
    let mut budget = Budget::new(400_000, 1 << 20);
    assert_eq!(look_up(&file, &[0x1800], &mut budget).1, None);
}

#[test]
fn operands_of_unknown_operations_are_counted() {
    // Version 2; operation 13 of 14 has 255 operands.
    let head = [
        1, 1, 0xFB, 14, 15, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 255, 0, 0, 0,
    ];
    let mut table = vec![2, 0];
    table.extend((head.len() as u32).to_le_bytes());
    table.extend(head);
    let operation = [&[13][..], &[0; 255]].concat();
    table.extend(operation.repeat(1_000));
    let mut line = (table.len() as u32).to_le_bytes().to_vec();
    line.extend(table);
    let file = with_info(unit(&[]), &[(".debug_line", BITS, line)]);
    let steps = |count| look_up(&file, &[0x1800], &mut Budget::new(count, 1 << 20)).1;
    assert_eq!(steps(10_000).map(|e| e.bound), Some(Bound::Steps));
    assert_eq!(steps(300_000), None);
}

#[test]
fn any_bytes_end() {
    let mut entries = vec![3];
    entries.extend(range(0x1000, 0x2000));
    entries.extend(b"outer\0");
    entries.push(4);
    entries.extend(range(0x1100, 0x1900));
    entries.extend([1, 5, 0, 0, 5, 0, 0, 0, 0, 0]);
    let list = [range(0x10, 0x20), range(0, 0)].concat();
    let sound = with_info(unit(&entries), &[(".debug_ranges", BITS, list)]);
    assert_eq!(look(&sound, &[0x1800]).0[0].len(), 2);
    let mut random: u64 = 1;
    let mut next = |n: usize| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
        (random >> 33) as usize % n
    };
    for _ in 0..5_000 {
        let mut bent = sound.clone();
        for _ in 0..1 + next(4) {
            let at = next(bent.len());
            bent[at] = next(256) as u8;
        }
        bent.truncate(bent.len() - next(2) * next(bent.len()));
        let mut budget = Budget::new(STEPS, 1 << 20);
        let (names, _) = look_up(&bent, &[0x1800, 0, u64::MAX], &mut budget);
        assert!(names.iter().flatten().count() <= 3 * INLINED);
    }
}

/// Shapes of structures: 1 a unit; 2 a structure with a name and bytes; 3 a member; 4 a typedef.
const STRUCTURES: &[u8] = &[
    1, 0x11, 1, 0, 0, //
    2, 0x13, 1, 0x03, 0x08, 0x0B, 0x0B, 0, 0, //
    3, 0x0D, 0, 0x03, 0x08, 0x49, 0x13, 0x38, 0x0B, 0, 0, //
    4, 0x16, 0, 0x03, 0x08, 0x49, 0x13, 0, 0, //
    0,
];

fn with_structures(entries: &[u8]) -> Vec<u8> {
    let mut body = vec![4, 0, 0, 0, 0, 0, 8, 1];
    body.extend_from_slice(entries);
    let mut info = (body.len() as u32).to_le_bytes().to_vec();
    info.extend(body);
    elf(&[(INFO, BITS, info), (".debug_abbrev", BITS, STRUCTURES.to_vec())])
}

#[test]
fn structures_of_any_shape_end() {
    // Typedefs in a circle: the first entry is at 12, its type the one behind it, and the other way round.
    let circle = [&[4, b't', 0, 20, 0, 0, 0, 4][..], &[b'u', 0, 12, 0, 0, 0, 0]].concat();
    let of = |file: &[u8], name| structure::of(file, name, &mut Budget::new(STEPS, STEPS));
    assert_eq!(of(&with_structures(&circle), "t"), Ok(None));
    // One whose member is itself: told once.
    let own = [&[2, b's', 0, 8][..], &[3, b'm', 0, 12, 0, 0, 0, 0], &[0, 0]].concat();
    let told = of(&with_structures(&own), "s")
        .expect("few steps")
        .expect("there");
    assert_eq!((told.size, told.fields.len()), (8, 1));
    assert_eq!(told.fields[0].kind, structure::Kind::Structure("s".into()));
    // Half a million members: steps, and no memory beyond the budget.
    let many = [
        &[2, b's', 0, 8][..],
        &[3, b'm', 0, 12, 0, 0, 0, 0].repeat(1 << 19),
        &[0, 0],
    ]
    .concat();
    let exceeded = of(&with_structures(&many), "s").expect_err("too many");
    assert!(matches!(exceeded.bound, Bound::Steps | Bound::Bytes));
}
