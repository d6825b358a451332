//! A module that does what it is told.

use crate::code::Code;
use crate::elf::Builder;
use ringfence_isa::window;
use ringfence_runtime::{Call, Domain};

/// A module that passes any system call on (`call`), calls its import (`out`), crashes (`crash`).
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
    Builder {
        text: code.0,
        data: vec![0; 64],
        exports: vec![
            ("call".into(), call),
            ("out".into(), out),
            ("crash".into(), crash),
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
