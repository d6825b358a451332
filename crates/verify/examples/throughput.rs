//! Measures how fast the verifier is: `throughput [MODULE.rf]`. Without a module a small function is repeated.

use ringfence_verify::{Image, Rules, Segment, SegmentKind, verify};

/// Marker; push, confined loads and stores, arithmetic, a branch, a loop, pop, ret: 64 bytes.
const FUNCTION: &[u8] = &[
    0x0F, 0x1F, 0x84, 0x00, 0xFF, 0xFF, 0x9A, 0x62, // nopl FUNCTION(%rax,%rax,1)
    0x53, // push %rbx
    0x65, 0x67, 0x8B, 0x47, 0x08, // mov %gs:8(%edi), %eax
    0x48, 0x89, 0xF3, // mov %rsi, %rbx
    0x85, 0xC0, // test %eax, %eax
    0x74, 0x1D, // je
    0x65, 0x67, 0x48, 0x8B, 0x54, 0xCF, 0x10, // mov %gs:16(%edi,%ecx,8), %rdx
    0x48, 0x8D, 0x4A, 0xFF, // lea -1(%rdx), %rcx
    0x65, 0x67, 0xF2, 0x0F, 0x10, 0x04, 0x1F, // movsd %gs:(%edi,%ebx), %xmm0
    0xF2, 0x0F, 0x58, 0xC1, // addsd %xmm1, %xmm0
    0x48, 0x01, 0xC8, // add %rcx, %rax
    0x31, 0xD2, // xor %edx, %edx
    0x75, 0xE3, // jne
    0x65, 0x67, 0x48, 0x89, 0x07, // mov %rax, %gs:(%edi)
    0x5B, // pop %rbx
    0xC3, // ret
    0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC, 0xCC,
];

/// Processor time of this thread in seconds, so that other work on the machine counts little. Linux only.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("/proc/thread-self/schedstat");
    stat.split(' ')
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .expect("nanoseconds")
        / 1e9
}

/// Text, its address and all segments of an ELF file that is taken to be sound.
fn load(file: &[u8]) -> (Vec<u8>, u32, Vec<Segment>) {
    let number = |at: usize, len: usize| {
        file[at..at + len]
            .iter()
            .rev()
            .fold(0, |n, b| n << 8 | usize::from(*b))
    };
    let (mut text, mut address, mut segments) = (Vec::new(), 0, Vec::new());
    for n in 0..number(56, 2) {
        let header = number(32, 8) + n * number(54, 2);
        let (offset, start) = (number(header + 8, 8), number(header + 16, 8) as u32);
        let (in_file, len) = (number(header + 32, 8), number(header + 40, 8) as u32);
        if number(header, 4) != 1 {
            continue; // not PT_LOAD
        }
        let kind = match number(header + 4, 4) & 3 {
            0 => SegmentKind::ReadOnly,
            2 => SegmentKind::Data,
            _ => SegmentKind::Text,
        };
        if kind == SegmentKind::Text {
            text = file[offset..offset + in_file].to_vec();
            text.resize(in_file.next_multiple_of(4096), 0xCC);
            address = start;
        }
        segments.push(Segment { start, len, kind });
    }
    (text, address, segments)
}

fn main() {
    let (text, text_address, segments) = match std::env::args().nth(1) {
        Some(path) => load(&std::fs::read(&path).unwrap_or_else(|e| panic!("cannot read {path}: {e}"))),
        None => (FUNCTION.repeat(1 << 18), 0x1000, Vec::new()),
    };
    let image = Image {
        text: &text,
        text_address,
        segments: &segments,
        image_offset: Some(0x10_0000),
    };
    let megabytes = text.len() as f64 / 1e6;
    // The clock ticks every few milliseconds: small texts are verified many times in a pass.
    let turns = (16.0 / megabytes).ceil() as usize;
    let passes = 25;
    let mut times = Vec::with_capacity(passes);
    let mut instructions = 0;
    for _ in 0..passes {
        let start = processor_time();
        for _ in 0..turns {
            match verify(&image, &[], &Rules::default()) {
                Ok(report) => instructions = report.instructions,
                Err(e) => {
                    eprintln!("not accepted: {e}");
                    std::process::exit(1);
                }
            }
        }
        times.push((processor_time() - start) / turns as f64);
    }
    times.sort_by(f64::total_cmp);
    for (name, seconds) in [("best", times[0]), ("median", times[passes / 2])] {
        let each = seconds * 1e9 / instructions as f64;
        println!(
            "{name} of {passes}: {:.1} MB/s, {each:.1} ns for each of {instructions} instructions",
            megabytes / seconds
        );
    }
}
