//! A module that does what it is told.

use crate::code::{Code, data};
use crate::elf::Builder;
use ringfence_isa::window;
use ringfence_runtime::{Call, Domain};

/// Where [`module`]'s `from_memory` finds a system call: number, then six arguments, from this byte of the data on.
pub const CALL: u32 = 64;

/// A module that passes any system call on (`call`, `from_memory`), writes two words in turn to one place (`flip`), calls its
/// import (`out`), crashes (`crash`).
#[must_use]
pub fn module() -> Builder {
    let mut code = Code::default();
    let call = code.function();
    code.put(&[0x48, 0x89, 0xF8]); // mov %rdi, %rax
    code.put(&[0x48, 0x89, 0xF7, 0x48, 0x89, 0xD6]); // mov %rsi, %rdi; mov %rdx, %rsi
    code.put(&[0x48, 0x89, 0xCA, 0x4D, 0x89, 0xC2]); // mov %rcx, %rdx; mov %r8, %r10
    code.put(&[0x4D, 0x89, 0xC8, 0x45, 0x31, 0xC9]); // mov %r9, %r8; xor %r9d, %r9d
    code.load_target(Code::stub(window::stub::SYSCALL))
        .call()
        .put(&[0xC3]);
    let out = code.function();
    code.load_import(0).call().put(&[0xC3]);
    let crash = code.function();
    code.put(&[0x0F, 0x0B]);
    let from_memory = code.function();
    // mov %gs:place, %rax; then rdi, rsi, rdx, r10, r8, r9
    for (n, load) in (0..).zip([
        [0x48, 0x04],
        [0x48, 0x3C],
        [0x48, 0x34],
        [0x48, 0x14],
        [0x4C, 0x14],
        [0x4C, 0x04],
        [0x4C, 0x0C],
    ]) {
        code.put(&[0x65, 0x67, load[0], 0x8B, load[1], 0x25])
            .put(&data(CALL + 8 * n).to_le_bytes());
    }
    code.load_target(Code::stub(window::stub::SYSCALL))
        .call()
        .put(&[0xC3]);
    // flip(place, one, other, times)
    let flip = code.function();
    code.put(&[0x65, 0x67, 0x48, 0x89, 0x37]); // 1: mov %rsi, %gs:(%edi)
    code.put(&[0x65, 0x67, 0x48, 0x89, 0x17]); // mov %rdx, %gs:(%edi)
    code.put(&[0x48, 0xFF, 0xC9, 0x75, 0xF1, 0xC3]); // dec %rcx; jnz 1b; ret
    Builder {
        text: code.0,
        data: vec![0; 256],
        exports: vec![
            ("call".into(), call),
            ("out".into(), out),
            ("crash".into(), crash),
            ("from_memory".into(), from_memory),
            ("flip".into(), flip),
        ],
        imports: vec!["host".into()],
        ..Builder::default()
    }
}

/// Makes a system call in a domain of [`module`]: its number and up to five arguments.
///
/// # Panics
///
/// If the call into the domain fails.
#[must_use]
pub fn system_call(domain: &Domain, args: &[u64]) -> i64 {
    let entry = domain.entry("call").unwrap();
    entry.call(&mut Call::ints(args)).expect("the policy answers").rax as i64
}
