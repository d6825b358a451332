//! Measures how fast the verifier is: `throughput [TEXT-FILE [MEGABYTES]]`.
//!
//! The file holds bare code bytes that the verifier accepts at address 0x1000 (with one data page right behind); they are
//! repeated to the given size (default 64). Without a file a small built-in function is used.

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

fn main() {
    let mut arguments = std::env::args().skip(1);
    let unit = match arguments.next() {
        Some(path) => std::fs::read(&path).unwrap_or_else(|e| panic!("cannot read {path}: {e}")),
        None => FUNCTION.to_vec(),
    };
    let megabytes: usize = arguments
        .next()
        .map_or(64, |n| n.parse().expect("a number of megabytes"));
    let copies = (megabytes << 20) / unit.len().max(1);
    let text = unit.repeat(copies.max(1));
    let len = text.len() as u32;
    let data = (0x1000 + len).next_multiple_of(4096);
    // Repeated code finds its data page at the end of each copy, so all but text is one big data segment here.
    let segments = [
        Segment {
            start: 0x1000,
            len,
            kind: SegmentKind::Text,
        },
        Segment {
            start: data,
            len: 1 << 20,
            kind: SegmentKind::Data,
        },
    ];
    let image = Image {
        text: &text,
        text_address: 0x1000,
        segments: &segments,
        image_offset: Some(0x10_0000),
    };
    let mut best = f64::INFINITY;
    for _ in 0..7 {
        let start = processor_time();
        match verify(&image, &[], &Rules::default()) {
            Ok(report) => {
                let seconds = processor_time() - start;
                best = best.min(seconds);
                println!(
                    "{:.1} MB/s, {} functions, {} instructions, {:.1} ns each",
                    f64::from(len) / 1e6 / seconds,
                    report.functions.len(),
                    report.instructions,
                    seconds * 1e9 / report.instructions as f64
                );
            }
            Err(e) => {
                eprintln!("not accepted: {e}");
                std::process::exit(1);
            }
        }
    }
    println!("best: {:.1} MB/s", f64::from(len) / 1e6 / best);
}
