//! Reports of faults in modules that were made to be hard to report.

mod support;

use ringfence_runtime::{Domain, DomainOptions, FaultKind, Imports, LoadOptions, Module};
use std::fmt::Write as _;
use support::{fault, unused_path};

/// A module of assembly, in its final form.
fn module(name: &str, text: &str, change: impl FnOnce(&mut [u8])) -> Module {
    let (source, out) = (unused_path(name).with_extension("s"), unused_path(name));
    std::fs::write(&source, text).unwrap();
    let args = [
        "--no-rewrite".into(),
        "-nostdlib".into(),
        "-o".into(),
        out.clone().into(),
        source.clone().into(),
    ];
    assert_eq!(
        ringfence_driver::cc(ringfence_driver::args::Front::C, args.into()),
        0,
        "{name}"
    );
    let mut bytes = std::fs::read(&out).unwrap();
    std::fs::remove_file(out).unwrap();
    change(&mut bytes);
    let module = Module::from_bytes(name, &bytes, &LoadOptions::default()).unwrap();
    std::fs::remove_file(source).unwrap();
    module
}

fn domain(module: Module) -> Domain {
    Domain::new(&[module], Imports::new(), &DomainOptions::default()).unwrap()
}

const FUNCTION: &str = "\
    .macro function name
    .p2align 3
    .globl \\name
    .type \\name, @function
\\name:
    nopl 0x629AFFFF(%rax,%rax,1)
    .endm
";

fn processor_time() -> std::time::Duration {
    // SAFETY: reads a clock.
    unsafe {
        let mut t: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t);
        std::time::Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
    }
}

/// Each frame is at another place of a function of some megabytes. Its depth is known without looking at the function again:
/// that took about a second for this one, and nobody could end it.
#[test]
fn frames_of_a_giant_function_are_found_at_once() {
    const LEVELS: u32 = 64;
    const CALLS: u32 = 125_000;
    let mut text = format!("\t.text\n{FUNCTION}\n\tfunction giant\n\tpushq %rbx\n");
    for level in 0..LEVELS {
        write!(text, "\tcmpl ${level}, %edi\n\tje 1{level}f\n").unwrap();
    }
    text.push_str("\tud2\n");
    for level in 0..LEVELS {
        write!(
            text,
            "1{level}:\n\taddl $1, %edi\n\tcall giant\n\t.rept {}\n\tmovl %edi, %eax\n\tcall giant\n\tmovl %eax, %edi\n\t.endr\n\tpopq %rbx\n\tret\n",
            CALLS / LEVELS
        )
        .unwrap();
    }
    text.push_str("\t.size giant, . - giant\n");
    let d = domain(module("giant", &text, |_| {}));
    let start = processor_time();
    let f = fault(&d, "giant", &[0]);
    let took = processor_time() - start;
    assert_eq!(f.kind, FaultKind::IllegalInstruction);
    let frames = f.backtrace();
    assert_eq!(frames.len(), 64);
    assert!(
        frames.iter().all(|f| f.function.as_deref() == Some("giant")),
        "{frames:?}"
    );
    let mut offsets: Vec<_> = frames.iter().map(|f| f.offset).collect();
    offsets.dedup();
    assert_eq!(offsets.len(), 64);
    assert!(took.as_millis() < 50, "{took:?}");
}

/// Debug information whose reader would recurse 22,000 levels deep, and a name that a terminal would obey.
#[test]
fn a_hostile_file_is_reported_on_a_small_stack() {
    let text = format!(
        "\t.text\n{FUNCTION}\n\tfunction cra_ctl_sh\n1:\tud2\n2:\n\t.size cra_ctl_sh, . - cra_ctl_sh\n\
         \tfunction _ZN4demo5crashEii\n\tud2\n\t.size _ZN4demo5crashEii, . - _ZN4demo5crashEii\n\
         \t.section .debug_abbrev,\"\",@progbits\n\
         \t.byte 1, 0x11, 1, 0x11, 1, 0x12, 1, 0, 0, 2, 0x1d, 1, 0, 0, 0\n\
         \t.section .debug_info,\"\",@progbits\n\
         \t.long 4f - 3f\n3:\t.short 4\n\t.long 0\n\t.byte 8\n\t.byte 1\n\t.quad 1b\n\t.quad 2b\n\
         \t.rept 22000\n\t.byte 2\n\t.endr\n4:\n"
    );
    // No assembler writes such a name.
    let d = domain(module("hostile", &text, |bytes| {
        let (plain, hostile) = (b"cra_ctl_sh", b"cra\x1b[2J\x07sh");
        for at in 0..bytes.len() - plain.len() {
            if bytes[at..].starts_with(plain) {
                bytes[at..at + plain.len()].copy_from_slice(hostile);
            }
        }
    }));
    let reported = |name: &'static str| {
        let d = d.clone();
        let small = std::thread::Builder::new().stack_size(64 << 10);
        let work = move || {
            let f = fault(&d, name, &[]);
            (f.backtrace(), f.to_string())
        };
        small.spawn(work).unwrap().join().unwrap()
    };
    let (frames, message) = reported("cra\x1b[2J\x07sh");
    assert_eq!(frames[0].function.as_deref(), Some("cra\\u{1b}[2J\\u{7}sh"));
    assert!(!message.chars().any(char::is_control), "{message:?}");
    d.reset().unwrap();
    let (frames, message) = reported("_ZN4demo5crashEii");
    assert_eq!(frames[0].function.as_deref(), Some("demo::crash"));
    assert!(message.contains("in demo::crash"), "{message}");
}
