//! The modules that are called step by step.

use super::Kind;
use crate::code::{Code, data};
use crate::elf::{Builder, DATA};
use ringfence_isa::identifier;
use ringfence_isa::window::{self, call_status, stub};
use std::arch::global_asm;

/// Where the loops that wait have their number of turns.
pub const SPIN: u32 = 64;

global_asm!(
    include_str!("frames.s"),
    function = const identifier::FUNCTION,
    stub_0 = const window::stub_at(0),
    stub_size = const window::STUB_SIZE,
    spin = const window::IMAGES + DATA + SPIN,
    buffers = const window::IMAGES + DATA + 0x1_0000,
    unwind = const stub::UNWIND,
    resume = const stub::RESUME,
    call_status = const stub::CALL_STATUS,
    import = const window::STUB_FIRST_IMPORT,
    fault = const call_status::FAULT,
    faulted = const call_status::FAULTED,
    refused = const call_status::REFUSED,
    options(att_syntax)
);

macro_rules! text {
    ($start:ident, $end:ident) => {{
        unsafe extern "C" {
            static $start: u8;
            static $end: u8;
        }
        let (start, end) = (&raw const $start, &raw const $end);
        // SAFETY: from one label of the same section to another one.
        unsafe { std::slice::from_raw_parts(start, end as usize - start as usize) }
    }};
}

/// Code to be added to a living domain: `work` once more.
pub fn piece() -> &'static [u8] {
    text!(rf_attack_piece, rf_attack_piece_end)
}

/// `setjmp`, the host function, `longjmp`; then goes on behind them with the host function's result in `rax`. `ebx` numbers the
/// buffer, so that calls in a call do not share it.
fn jumps(code: &mut Code) {
    let place = |code: &mut Code| {
        code.put(&[0x89, 0xDF, 0xC1, 0xE7, 7, 0x81, 0xC7])
            .put(&data(4096).to_le_bytes()); // mov %ebx, %edi; shl $7, %edi; add $buffers, %edi
    };
    place(code);
    code.setjmp(8);
    code.put(&[0x85, 0xC0, 0x0F, 0x85, 0, 0, 0, 0]); // test %eax, %eax; jne 1f
    let (over, from) = (code.here() - 4, code.here());
    code.put(&[0x89, 0xDF]); // mov %ebx, %edi
    code.load_import(0).call();
    place(code);
    code.put(&[0x65, 0x67, 0x48, 0x89, 0x47, 72]); // mov %rax, %gs:72(%edi)
    code.longjmp();
    let distance = code.here() - from;
    code.0[over as usize..][..4].copy_from_slice(&distance.to_le_bytes());
    place(code);
    code.put(&[0x65, 0x67, 0x48, 0x8B, 0x47, 72]); // mov %gs:72(%edi), %rax
}

/// A module whose `work(x)` is `3x + 7`, by way of a host function, and which has a few functions more.
pub fn module(kind: Kind) -> Builder {
    let written = match kind {
        Kind::Frames => Some(text!(rf_attack_frames, rf_attack_frames_end)),
        Kind::Callee | Kind::Failing => Some(text!(rf_attack_callee, rf_attack_callee_end)),
        _ => None,
    };
    let mut code = Code::default();
    if let Some(text) = written {
        code.put(text);
        return finish(code, 0, None);
    }
    let work = code.function();
    let spin = data(SPIN);
    code.put(&[0x53, 0x89, 0xFB]); // push %rbx; mov %edi, %ebx
    let wait = |code: &mut Code| {
        code.put(&[0x65, 0x67, 0x8B, 0x0C, 0x25]).put(&spin.to_le_bytes()); // mov %gs:spin, %ecx
        code.put(&[0xFF, 0xC9, 0x75, 0xFC]); // 1: dec %ecx; jnz 1b
    };
    wait(&mut code);
    if kind == Kind::Jumps {
        jumps(&mut code);
    } else {
        code.load_import(0).call();
    }
    wait(&mut code);
    code.put(&[0x48, 0x8D, 0x04, 0x58, 0x5B, 0xC3]); // lea (%rax,%rbx,2), %rax; pop %rbx; ret
    let crash = code.function();
    match kind {
        Kind::Vectors => _ = code.put(&[0x0F, 0x57, 0xC0]), // xorps %xmm0, %xmm0
        // xorps; fld1; fstp %st(0)
        Kind::X87 | Kind::Closure => _ = code.put(&[0x0F, 0x57, 0xC0, 0xD9, 0xE8, 0xDD, 0xD8]),
        _ => {}
    }
    code.put(&[0x0F, 0x0B]);
    finish(code, work, Some(crash))
}

/// Puts what all have behind the code.
fn finish(mut code: Code, work: u32, crash: Option<u32>) -> Builder {
    while !code.here().is_multiple_of(64) {
        code.put(&[0xCC]);
    }
    let common = code.here();
    code.put(text!(rf_attack_common, rf_attack_common_end));
    let marker = identifier::marker(identifier::FUNCTION);
    let mut functions = (common..code.here())
        .step_by(8)
        .filter(|&at| code.0[at as usize..].starts_with(&marker));
    let mut next = || functions.next().expect("another function");
    let (plain_crash, slow_crash, place, dive) = (next(), next(), next(), next());
    let mut initial = vec![0; 128];
    initial[SPIN as usize] = 1;
    let export = |name: &str, at| (name.to_string(), at);
    Builder {
        exports: vec![
            export("work", work),
            export("crash", crash.unwrap_or(plain_crash)),
            export("slow_crash", slow_crash),
            export("place", place),
            export("dive", dive),
        ],
        text: code.0,
        data: initial,
        imports: vec!["add_seven".into()],
        ..Builder::default()
    }
}

/// A small module file to start from.
#[must_use]
pub fn seed() -> Vec<u8> {
    let mut builder = module(Kind::X87);
    builder.constructors = vec![builder.exports[0].1];
    builder.build()
}
