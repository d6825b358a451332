//! How much memory the verifier takes, and that it says so where there is none.

use ringfence_isa::{identifier, pad, sequence};
use ringfence_verify::{Image, Reason, Rejected, Report, Rules, Segment, SegmentKind, identifiers, verify};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts what this thread allocates, and refuses when it is told to.
struct Counting;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    /// How many allocations are left.
    static LEFT: Cell<usize> = const { Cell::new(usize::MAX) };
}

fn add(len: usize) {
    NOW.set(NOW.get() + len);
    PEAK.set(PEAK.get().max(NOW.get()));
}

fn refused() -> bool {
    let left = LEFT.get();
    if left != usize::MAX {
        LEFT.set(left.saturating_sub(1));
    }
    left == 0
}

// SAFETY: hands everything on to the system's allocator, or returns null, which an allocator may.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if refused() {
            return std::ptr::null_mut();
        }
        add(layout.size());
        // SAFETY: as our caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        NOW.set(NOW.get().saturating_sub(layout.size()));
        // SAFETY: as our caller promises.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        if refused() {
            return std::ptr::null_mut();
        }
        // Old and new may exist at the same time.
        add(len);
        NOW.set(NOW.get().saturating_sub(layout.size()));
        // SAFETY: as our caller promises.
        unsafe { System.realloc(place, layout, len) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn check(text: &[u8]) -> Result<Report, Rejected> {
    let segments = [Segment {
        start: 0x1000,
        len: text.len() as u32,
        kind: SegmentKind::Text,
    }];
    verify(&image(text, &segments), &[0x1000], &Rules::default())
}

fn image<'a>(text: &'a [u8], segments: &'a [Segment]) -> Image<'a> {
    Image {
        text,
        text_address: 0x1000,
        segments,
        image_offset: None,
    }
}

fn label(n: usize) -> [u8; 8] {
    identifier::marker(0x629A_0000 | n as u32)
}

/// The jump to all labels of a number, or with the function identifier a tail call.
fn jump(id: u32) -> Vec<u8> {
    let mut code = [&sequence::AND[..], &sequence::CMP].concat();
    code.extend(id.to_le_bytes());
    code.extend([&sequence::CMOV[..], &sequence::ADD, &sequence::JMP].concat());
    code
}

#[test]
fn memory_is_bounded_by_the_text() {
    const LEN: usize = 1 << 20;
    let function = identifier::marker(identifier::FUNCTION);
    let mut one_label = jump(0x629A_0001);
    one_label.resize(24, 0xCC);
    one_label.extend(label(1).repeat(LEN / 8));
    let mut calls: Vec<u8> = (0..LEN / 6)
        .flat_map(|n| [0xE8, n as u8, (n >> 8) as u8, 0, 0, 0xC3])
        .collect();
    calls.extend([0xC3; 1 << 17]);
    // The verdict does not matter.
    let shapes: [(&str, Vec<u8>, usize); 9] = [
        (
            "usual code",
            [
                &function[..],
                &[
                    0x48, 0x89, 0xC8, 0x74, 0x01, 0x90, 0x50, 0x58, 0x31, 0xC0, 0xC3, 0xCC, 0xCC, 0xCC, 0xCC,
                    0xCC,
                ],
            ]
            .concat()
            .repeat(LEN / 24),
            5,
        ),
        (
            "functions",
            [&function[..], &[0xC3; 8]].concat().repeat(LEN / 16),
            24,
        ),
        ("branches", [0x74, 0x00].repeat(LEN / 2), 24),
        ("labels", one_label, 24),
        (
            "numbered labels",
            (0..LEN / 8).flat_map(|n| label(n % 0x6000 + 1)).collect(),
            24,
        ),
        ("pads", pad::marker(8).repeat(LEN / 8), 24),
        ("called functions", calls, 24),
        ("returns", vec![0xC3; LEN], 24),
        ("bad bytes", vec![0x06; LEN], 24),
    ];
    for (name, mut text, most) in shapes {
        text.push(0xC3);
        let before = NOW.get();
        PEAK.set(before);
        let verdict = check(&text);
        let each = (PEAK.get() - before) as f64 / text.len() as f64;
        println!(
            "{name}: accepted: {}, {each:.2} bytes for a byte of text",
            verdict.is_ok()
        );
        assert!(
            each < most as f64 + 0.2,
            "{name}: {each} bytes for a byte of text"
        );
    }
}

#[test]
fn every_allocation_may_fail() {
    // A bit of everything: a call, a jump to labels, a landing pad, a function with a tail call, and enough for two parts.
    let mut text = vec![0x53, 0xE8, 0xFA, 0x0F, 0x00, 0x00, 0x5B, 0xCC];
    text.resize(0x18, 0x90);
    text.extend(jump(0x629A_0001));
    text.resize(0x38, 0xCC);
    text.extend(label(1));
    text.extend([0xC3; 8]);
    text.extend(pad::marker(8));
    text.extend([0x5B, 0xC3]);
    text.resize(0x1000, 0xCC);
    text.extend(identifier::marker(identifier::FUNCTION));
    text.extend([0x74, 0x01, 0x90, 0xC3]);
    text.resize(0x2000, 0xCC);
    check(&text).expect("accepted");
    let mut failed = 0;
    loop {
        LEFT.set(failed);
        let verdict = check(&text);
        LEFT.set(usize::MAX);
        match verdict {
            Ok(_) => break,
            Err(e) => assert!(e.truncated || e.rejections[0].reason == Reason::NoMemory, "{e}"),
        }
        failed += 1;
    }
    println!("{failed} allocations");
    assert!(failed > 8, "{failed} allocations");

    // With no memory at all there is none to say so.
    LEFT.set(0);
    let verdict = check(&text);
    let places = identifiers(&text, 0x1000);
    LEFT.set(usize::MAX);
    let rejected = verdict.expect_err("no memory");
    assert!(rejected.truncated && rejected.rejections.is_empty());
    assert_eq!(places.expect_err("no memory").reason, Reason::NoMemory);
}
