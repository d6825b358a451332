//! No input makes the verifier panic, and what it accepts hangs together.

mod common;

use ringfence_verify::{Image, Rejected, Rules, Segment, SegmentKind, decode, identifiers, verify};

/// xorshift64*: the same bytes on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n.max(1)
    }
}

/// 1 in ordinary tests, more in long ones.
fn effort() -> usize {
    match std::env::var("RINGFENCE_SOAK").ok().and_then(|n| n.parse().ok()) {
        None | Some(0) => 1,
        Some(1) => 50,
        Some(n) => n,
    }
}

/// Verifies, and checks that what comes out makes sense.
fn exercise(text: &[u8], random: &mut Random) -> bool {
    let len = text.len() as u32;
    let segments = [
        Segment {
            start: 0x1000,
            len: len.max(1),
            kind: SegmentKind::Text,
        },
        Segment {
            start: (0x1000 + len.max(1)).next_multiple_of(4096),
            len: 0x1000,
            kind: SegmentKind::Data,
        },
    ];
    let image = Image {
        text,
        text_address: 0x1000,
        segments: &segments,
        image_offset: Some(0x10_0000),
    };
    let entries: Vec<u32> = (0..random.below(3))
        .map(|_| 0x1000 + random.below(text.len() + 8) as u32)
        .collect();
    let _ = identifiers(text, 0x1000);
    match verify(&image, &entries, &Rules::default()) {
        Err(rejected) => {
            assert!(!rejected.rejections.is_empty() && rejected.rejections.len() <= Rejected::LIMIT);
            assert!(!rejected.to_string().is_empty());
            false
        }
        Ok(report) => {
            let mut end = 0;
            for f in report.functions() {
                assert!(f.entry >= end && f.end > f.entry && f.end <= 0x1000 + len);
                assert_eq!(report.depth_at(f.entry), Some(0));
                let somewhere = f.entry + random.below((f.end - f.entry) as usize) as u32;
                let depth = report.depth_at(somewhere);
                assert!(
                    depth.is_none_or(|d| d <= f.max_depth),
                    "depth {depth:?} at {somewhere:#x} of {f:?}: {text:02x?}"
                );
                let place = report.place_at(somewhere);
                assert_eq!(place.map(|p| p.depth), depth);
                let function = place.and_then(|p| report.functions().nth(p.function as usize));
                assert_eq!(function, depth.map(|_| f));
                assert_eq!(report.function_at(somewhere), Some(f));
                end = f.end;
            }
            // Decoding again covers every byte exactly once.
            let mut at = 0;
            let mut count = 0;
            while at < text.len() {
                at += usize::from(decode(&text[at..]).expect("accepted text decodes").len);
                count += 1;
            }
            assert_eq!((at, count), (text.len(), report.instructions));
            true
        }
    }
}

#[test]
fn random_text_of_every_length() {
    let mut random = Random(0x0123_4567_89AB_CDEF);
    for round in 0..20_000 * effort() {
        let mut text: Vec<u8> = (0..round % 100).map(|_| (random.next() >> 40) as u8).collect();
        // Mostly plain instructions, so that verification gets somewhere.
        for byte in &mut text {
            if random.below(4) != 0 {
                const COMMON: [u8; 16] = [
                    0x90, 0xC3, 0x50, 0x58, 0x74, 0xEB, 0x00, 0x01, 0x48, 0x89, 0xC0, 0xCC, 0x65, 0x67, 0x0F,
                    0xF8,
                ];
                *byte = COMMON[random.below(COMMON.len())];
            }
        }
        exercise(&text, &mut random);
    }
}

#[test]
fn mutated_cases() {
    let mut random = Random(0xFEDC_BA98_7654_3210);
    let cases = common::all();
    let texts: Vec<Vec<u8>> = cases
        .iter()
        .map(|(name, source)| {
            common::parse(source)
                .unwrap_or_else(|e| panic!("{name}: {e}"))
                .text
        })
        .collect();
    let mut accepted = 0;
    let rounds = 20_000 * effort();
    for _ in 0..rounds {
        let mut text = texts[random.below(texts.len())].clone();
        text.truncate(random.below(120) + 1);
        let other = &texts[random.below(texts.len())];
        for _ in 0..random.below(4) {
            let at = random.below(text.len());
            match random.below(4) {
                0 => text[at] ^= 1 << random.below(8),
                1 => text[at] = (random.next() >> 40) as u8,
                2 => text.truncate(at + 1),
                _ => {
                    let piece = &other[..random.below(40).min(other.len())];
                    text.splice(at..at, piece.iter().copied());
                }
            }
        }
        accepted += usize::from(exercise(&text, &mut random));
    }
    println!("{accepted} of {rounds} accepted");
    assert!(
        accepted * 100 > rounds,
        "the mutations hardly leave anything valid"
    );
}

/// Time must not grow faster than the text: hostile shapes with very many functions, labels, jumps and segments.
#[test]
fn hostile_shapes_take_linear_time() {
    const LEN: usize = 1 << 21;
    let label = |n: u16| ringfence_isa::identifier::marker(0x629A_0000 | u32::from(n));
    let mut shapes: Vec<(&str, Vec<u8>)> = Vec::new();
    shapes.push((
        "functions",
        [
            &ringfence_isa::identifier::marker(ringfence_isa::identifier::FUNCTION)[..],
            &[0xC3; 8],
        ]
        .concat()
        .repeat(LEN / 16),
    ));
    shapes.push((
        "one label",
        [&[0xEB, 0x06][..], &[0xCC; 6], &label(1)]
            .concat()
            .repeat(LEN / 16),
    ));
    let many: Vec<u8> = (0..LEN / 16)
        .flat_map(|n| {
            let mut piece = vec![0x75, 0x06, 0xC3, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC];
            piece.extend(label((n % 0x6000 + 1) as u16));
            piece
        })
        .collect();
    shapes.push(("labels of all numbers", many));
    shapes.push((
        "jumps to the start",
        (0..LEN / 6)
            .flat_map(|n| {
                let mut jump = vec![0x0F, 0x84];
                jump.extend((-6 * (n as i32 + 1)).to_le_bytes());
                jump
            })
            .collect(),
    ));
    // One move to r11d, and nothing but operands that rely on it; then moves and jumps that stand between move and operand.
    let operand = [0x43, 0x8B, 0x04, 0x1E];
    shapes.push((
        "operands through r14",
        [vec![0x41, 0x89, 0xC3], operand.repeat(LEN / 4)].concat(),
    ));
    shapes.push((
        "moves and operands through r14",
        [&[0x41, 0x89, 0xC3, 0x41, 0x89, 0xC3, 0x75, 0x00][..], &operand]
            .concat()
            .repeat(LEN / 12),
    ));
    let mut late = [0x41, 0x89, 0xC3].repeat(LEN / 3);
    late.extend(operand);
    shapes.push(("many moves, one operand", late));
    shapes.push(("bad bytes", vec![0x06; LEN]));
    shapes.push(("prefixes", vec![0x66; LEN]));
    for (name, mut text) in shapes {
        text.push(0xC3);
        let before = processor_time();
        let mut segments: Vec<Segment> = (0..20_000u32)
            .map(|n| Segment {
                start: 0x200_0000 + n * 16,
                len: 8,
                kind: SegmentKind::Data,
            })
            .collect();
        segments.push(Segment {
            start: 0x1000,
            len: text.len() as u32,
            kind: SegmentKind::Text,
        });
        let image = Image {
            text: &text,
            text_address: 0x1000,
            segments: &segments,
            image_offset: None,
        };
        let verdict = verify(&image, &[0x1000], &Rules::default());
        let seconds = (processor_time() - before).as_secs_f64();
        println!(
            "{name}: {} bytes in {seconds:.3} s, accepted: {}",
            text.len(),
            verdict.is_ok()
        );
        // Two megabytes take some hundredths of a second; anything quadratic takes minutes.
        assert!(seconds < 20.0, "{name} takes {seconds} s");
    }
}

/// A frame may be unwound from inside the checked sequence (its compare can fault). Resumed is at landing pads only.
#[test]
fn depths_are_known_inside_a_sequence() {
    use ringfence_isa::{identifier, sequence};
    let mut text = vec![0x53]; // push %rbx
    text.extend(sequence::AND);
    text.extend(sequence::CMP);
    text.extend(identifier::FUNCTION.to_le_bytes());
    text.extend(sequence::CMOV);
    text.extend(sequence::ADD);
    text.extend(sequence::CALL);
    text.extend([0x5B, 0xC3]); // pop %rbx; ret
    text.extend(ringfence_isa::pad::marker(8));
    text.extend([0x5B, 0xC3]);
    let segments = [Segment {
        start: 0x1000,
        len: text.len() as u32,
        kind: SegmentKind::Text,
    }];
    let image = Image {
        text: &text,
        text_address: 0x1000,
        segments: &segments,
        image_offset: None,
    };
    let report = verify(&image, &[0x1000], &Rules::default()).expect("accepted");
    for (offset, depth, resume) in [
        (0, Some(0), None),
        (1, Some(8), None),
        (5, Some(8), None),
        (15, Some(8), None),
        (19, Some(8), None),
        (22, Some(8), None),
        (25, Some(8), None),
        (26, Some(0), None),
        (27, Some(8), Some(8)),
        (36, Some(0), None),
        (37, None, None),
        (35, Some(8), None),
    ] {
        assert_eq!(report.depth_at(0x1000 + offset), depth, "depth at {offset}");
        let resumes = report.place_at(0x1000 + offset).filter(|p| p.is_pad);
        assert_eq!(resumes.map(|p| p.depth), resume, "resume at {offset}");
    }
}

/// What this thread has used of a processor: however busy the machine is, the same work takes about the same.
fn processor_time() -> std::time::Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the time there.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    assert_eq!(status, 0);
    std::time::Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
