//! How much memory the verifier takes, and that it says so where there is none.

use ringfence_isa::{identifier, pad, sequence};
use ringfence_verify::{
    Image, MARGIN, Reason, Rejected, Report, Rules, Segment, SegmentKind, identifiers, verify, verify_in,
};
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

/// What verifying takes at its peak: a text of `n` bytes, at most 4 n and half a megabyte, whatever is in it. A file of `n` bytes has no
/// more text than that, and a load may take 8 n and 64 MiB altogether.
fn bound(text: &[u8]) -> usize {
    4 * text.len() + (512 << 10)
}

/// Two chains of jumps of two bytes, one 8 bytes deeper than the other: every jump is reached by one, and at another depth than what
/// precedes it.
fn two_layers(len: usize) -> Vec<u8> {
    let mut text = vec![0x74, 0x02, 0xEB, 0x03, 0x50, 0xEB, 0x02];
    text.extend([0xEB, 0x02].repeat(len / 4 * 2));
    text.extend([0xC3, 0x90, 0x58, 0xC3]);
    text
}

#[test]
fn memory_is_bounded_by_the_text() {
    const LEN: usize = 1 << 20;
    let function = identifier::marker(identifier::FUNCTION);
    let mut one_label = jump(0x629A_0001);
    one_label.resize(24, 0xCC);
    one_label.extend(label(1).repeat(LEN / 8));
    let mut numbered: Vec<u8> = (0..LEN / 8).flat_map(|n| label(n % 0x6000 + 1)).collect();
    numbered.push(0xC3);
    let mut pads = vec![0x50];
    pads.extend(pad::marker(8).repeat(LEN / 8));
    pads.extend([0x58, 0xC3]);
    let usual = [
        0x48, 0x89, 0xC8, 0x74, 0x01, 0x90, 0x50, 0x58, 0x31, 0xC0, 0xC3, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC,
    ];
    let accepted: [(&str, Vec<u8>); 9] = [
        ("usual code", [&function[..], &usual].concat().repeat(LEN / 24)),
        ("functions", [&function[..], &[0xC3; 8]].concat().repeat(LEN / 16)),
        (
            "called functions",
            [[0xE8, 1, 0, 0, 0, 0xC3].repeat(LEN / 6), vec![0xC3]].concat(),
        ),
        ("branches", [[0x74, 0x00].repeat(LEN / 2), vec![0xC3]].concat()),
        ("jumps at two depths", two_layers(LEN)),
        (
            "pushes",
            [[[0x50; 512], [0x58; 512]].concat().repeat(LEN / 1024), vec![0xC3]].concat(),
        ),
        ("labels", one_label.into_iter().chain([0xC3]).collect()),
        ("numbered labels", numbered),
        ("pads", pads),
    ];
    let refused = [("returns", vec![0xC3; LEN]), ("bad bytes", vec![0x06; LEN])];
    let shapes = accepted.into_iter().map(|shape| (shape, true));
    for ((name, text), good) in shapes.chain(refused.map(|shape| (shape, false))) {
        let before = NOW.get();
        PEAK.set(before);
        let verdict = check(&text);
        let peak = PEAK.get() - before;
        let kept = NOW.get() - before;
        let each = |bytes: usize| bytes as f64 / text.len() as f64;
        println!(
            "{name}: {:.2} bytes for a byte of text, {:.2} kept",
            each(peak),
            each(kept)
        );
        assert!(
            peak < bound(&text),
            "{name}: {peak} bytes for a text of {}",
            text.len()
        );
        // What is refused late has taken as much as what is accepted.
        assert!(!good || verdict.is_ok(), "{name}: {}", verdict.unwrap_err());
        drop(verdict);

        PEAK.set(before);
        let _ = identifiers(&text, 0x1000);
        let peak = PEAK.get() - before;
        assert!(peak < bound(&text), "{name}: {peak} bytes to find identifiers");
    }
}

#[test]
fn notes_of_the_caller_serve_whatever_is_in_them() {
    let mut text = vec![0x53, 0x74, 0x00, 0x5B, 0xC3];
    text.resize(0x2000, 0xCC);
    let image = image(&text, &[]);
    let known = verify(&image, &[0x1000], &Rules::default());
    let mut notes = vec![0xFF; text.len() + MARGIN + 3];
    for _ in 0..2 {
        let again = verify_in(&mut notes, &image, &[0x1000], &Rules::default());
        assert_eq!(known, again);
    }
    let few = verify_in(&mut notes[4..], &image, &[0x1000], &Rules::default());
    assert_eq!(few.expect_err("too few").rejections[0].reason, Reason::NoMemory);
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
