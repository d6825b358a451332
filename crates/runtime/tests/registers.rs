//! What a domain finds in registers: at its entry and behind every kind of gate, with the host having left a secret in each
//! before. Values are compared exactly: what carries nothing is 0.

mod support;

use ringfence_runtime::{
    Domain, DomainOptions, Entry, Imports, LoadOptions, Module, Narrow, OnFailure, Signature, Width, domain,
};
use std::arch::global_asm;
use std::ffi::c_void;
use support::{build_file, entry};

const SECRET: u64 = 0x7E57_5EC2_E757_5EC3;

global_asm!(
    // The secret everywhere, flags and the x87 unit's signs and flags included.
    ".macro RF_TEST_DIRTY",
    "movabs rax, {secret}",
    "vmovq xmm0, rax; vpbroadcastq ymm0, xmm0",
    ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "vmovdqa ymm\\n, ymm0",
    ".endr",
    ".rept 8",
    "fld1; fchs",
    ".endr",
    "fldpi; fstp st(0)",
    ".rept 8",
    "fstp st(0)",
    ".endr",
    "fld1; fldpi; fdivp; fldpi; fcompp", // inexact
    "mov rdi, rax; mov rsi, rax; mov rdx, rax; mov rcx, rax",
    "mov r8, rax; mov r9, rax; mov r10, rax; mov r11, rax",
    ".endm",
    ".globl rf_test_dirty_call", // (thunk, flags to have)
    "rf_test_dirty_call:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15",
    "sub rsp, 88; stmxcsr [rsp + 72]",
    "mov [rsp + 64], rdi; mov [rsp + 80], rsi",
    "RF_TEST_DIRTY",
    "mov rbx, rax; mov rbp, rax; mov r12, rax; mov r13, rax; mov r14, rax; mov r15, rax",
    ".set at, 0",
    ".rept 8",
    "mov [rsp + at], rax",
    ".set at, at + 8",
    ".endr",
    "push [rsp + 80]; popfq",
    "call [rsp + 64]",
    "vzeroupper; fninit; cld; ldmxcsr [rsp + 72]",
    "add rsp, 88; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    "ret",
    ".globl rf_test_dirty_host",
    "rf_test_dirty_host:",
    "RF_TEST_DIRTY",
    "stc",
    "ret",
    secret = const SECRET,
);

unsafe extern "C" {
    fn rf_test_dirty_call(thunk: *const c_void, flags: u64) -> u64;
    fn rf_test_dirty_host();
}

/// Status flags: none, and all but that of direction.
const FLAGS: [u64; 2] = [0x202, 0x202 | 0x8D5];

const LONG: Signature = Signature {
    int_results: 1,
    ..Signature::NOTHING
};

fn narrow(int_result: Width) -> Signature {
    let narrow = Narrow {
        int_result,
        ..Narrow::NONE
    };
    Signature { narrow, ..LONG }
}

fn float_result(single_result: bool) -> Signature {
    Signature {
        float_results: 1,
        narrow: Narrow {
            single_result,
            ..Narrow::NONE
        },
        ..Signature::NOTHING
    }
}

fn module(x87: bool) -> Module {
    const IMPORTS: &str = "--import=host_void,host_byte,host_int,host_long,host_float,host_double,host_untyped,host_closure,\
                           other,failing";
    let mut flags = vec!["--no-rewrite", IMPORTS];
    if x87 {
        flags.push("-Wa,--defsym,X87=1");
    }
    Module::open(build_file("registers.s", &flags), &LoadOptions::default()).expect("the module")
}

fn make(module: &Module, callee: Option<&Domain>) -> Domain {
    let function = rf_test_dirty_host as *const c_void;
    let mut imports = Imports::new().closure("host_closure", |f| {
        // SAFETY: changes registers that a function may change.
        unsafe { rf_test_dirty_host() };
        f.result[0] = 1;
        f.vector_result[0] = [2, 0];
        Ok(())
    });
    for (name, signature) in [
        ("host_void", Signature::NOTHING),
        ("host_byte", narrow(Width::Byte { signed: false })),
        ("host_int", narrow(Width::Int)),
        ("host_long", LONG),
        ("host_float", float_result(true)),
        ("host_double", float_result(false)),
        ("host_untyped", Signature::UNKNOWN),
    ] {
        // SAFETY: it takes nothing, and is called by tests that know what it returns.
        imports = unsafe { imports.plain(name, function, signature) };
    }
    imports = match callee {
        Some(callee) => imports.domain("other", callee, "entered", LONG).domain_or(
            "failing",
            callee,
            "fails",
            LONG,
            OnFailure::Return(3),
        ),
        None => imports
            .slot("other", LONG, OnFailure::Tell)
            .slot("failing", LONG, OnFailure::Tell),
    };
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).expect("a domain")
}

/// What a domain has found.
#[derive(Debug, PartialEq)]
struct Found {
    /// By number; for `rsp` the low 16 bits of `rax` after `lahf`.
    general: [u64; 16],
    vectors: [[u64; 4]; 16],
    /// Status words: with each register in front, after `fxam`, and the one that was found.
    x87: [u16; 9],
}

fn found(d: &Domain, area: u64) -> Found {
    let mut bytes = [0; 1024];
    let at = d.symbol("areas").expect("areas") + 1024 * area;
    d.as_ref().read(at, &mut bytes).expect("readable");
    let word = |n: usize| u64::from_le_bytes(bytes[8 * n..8 * n + 8].try_into().unwrap());
    Found {
        general: std::array::from_fn(word),
        vectors: std::array::from_fn(|n| std::array::from_fn(|k| word(16 + 4 * n + k))),
        x87: std::array::from_fn(|n| u16::from_le_bytes(bytes[640 + 2 * n..642 + 2 * n].try_into().unwrap())),
    }
}

/// Where a register holds an address of the domain's own, or what the domain itself has put there, the value is looked at apart.
const FLAGS_AT: usize = 4;
const R11: usize = 11;
const R14: usize = 14;
const R15: usize = 15;

/// Compares with `general` (by number) and `vectors` (lower halves), all else being 0.
fn check(
    d: &Domain,
    area: u64,
    what: &str,
    general: &[(usize, u64)],
    vectors: &[(usize, [u64; 2])],
    x87: bool,
) {
    let mut got = found(d, area);
    let base = d.as_ref().base();
    assert_eq!(got.general[R14], base, "{what}: r14");
    assert_eq!(
        got.general[R15] >> 32,
        base >> 32,
        "{what}: r15 {:#x}",
        got.general[R15]
    );
    assert!(
        got.general[R11] == 0 || got.general[R11] >> 32 == base >> 32,
        "{what}: r11 {:#x}",
        got.general[R11]
    );
    let flags = got.general[FLAGS_AT] >> 8 & 0xFF;
    // Of rax only what lahf leaves of it.
    assert_eq!(
        got.general[FLAGS_AT] & !0xFF00,
        got.general[0] & !0xFF00,
        "{what}: rax"
    );
    for n in [FLAGS_AT, R11, R14, R15] {
        got.general[n] = 0;
    }
    let mut want = Found {
        general: [0; 16],
        vectors: [[0; 4]; 16],
        // The first is empty and positive, with the condition codes of that; what follows are the domain's own faults.
        x87: got.x87,
    };
    for &(n, value) in general {
        want.general[n] = value;
    }
    for &(n, [low, high]) in vectors {
        want.vectors[n] = [low, high, 0, 0];
    }
    assert_eq!(got, want, "{what}");
    if x87 {
        let [registers @ .., found] = got.x87;
        assert_eq!(found, 0x4000, "{what}: the x87 unit as found: {found:#x}");
        for status in registers {
            assert_eq!(
                status & 0x4700,
                0x4100,
                "{what}: an empty, positive register: {status:#x}"
            );
        }
    }
    // The same flags whatever the host had: see the comparison of runs below.
    assert_eq!(flags & 2, 2, "{what}");
}

fn flags(d: &Domain, areas: std::ops::Range<u64>) -> Vec<u64> {
    areas.map(|n| found(d, n).general[FLAGS_AT] >> 8 & 0xFF).collect()
}

fn dirty(e: &Entry, signature: Signature, flags: u64) {
    // SAFETY: a thunk takes any values; the registers that a function preserves come back.
    unsafe { rf_test_dirty_call(e.thunk(signature), flags) };
    assert_eq!(domain::last_status(), 0, "{:?}", domain::take_error());
}

fn at_entry(d: &Domain, x87: bool) {
    const S: u64 = SECRET;
    let e = entry(d, "entered");
    let mut seen = Vec::new();
    for f in FLAGS {
        dirty(&e, Signature::NOTHING, f);
        check(d, 0, "no argument", &[], &[], x87);
        seen.extend(flags(d, 0..1));
    }
    assert_eq!(seen[0], seen[1], "flags");
    dirty(
        &e,
        Signature {
            ints: 6,
            floats: 8,
            ..Signature::NOTHING
        },
        0x202,
    );
    let all: Vec<(usize, [u64; 2])> = (0..8).map(|n| (n, [S, 0])).collect();
    let registers = [7, 6, 2, 1, 8, 9];
    check(
        d,
        0,
        "six words and eight doubles",
        &registers.map(|n| (n, S)),
        &all,
        x87,
    );

    let mut typed = Signature {
        ints: 5,
        floats: 2,
        stack: 5,
        ..Signature::NOTHING
    };
    typed.narrow.ints[..4].copy_from_slice(&[
        Width::Byte { signed: true },
        Width::Short { signed: false },
        Width::Int,
        Width::Byte { signed: false },
    ]);
    typed.narrow.singles = 0b01;
    typed.narrow.stack[..5].copy_from_slice(&[
        Width::Int,
        Width::Byte { signed: true },
        Width::Nothing,
        Width::Word,
        Width::Short { signed: false },
    ]);
    let byte = 0xFFFF_FFC3;
    dirty(&e, typed, 0x202);
    let ints = [
        (7, byte),
        (6, S & 0xFFFF),
        (2, S & 0xFFFF_FFFF),
        (1, 0xC3),
        (8, S),
    ];
    check(
        d,
        0,
        "narrow arguments",
        &ints,
        &[(0, [S & 0xFFFF_FFFF, 0]), (1, [S, 0])],
        x87,
    );
    let mut stacked = [0; 64];
    d.as_ref()
        .read(d.symbol("stacked").unwrap(), &mut stacked)
        .unwrap();
    let stacked: Vec<u64> = stacked
        .chunks(8)
        .map(|w| u64::from_le_bytes(w.try_into().unwrap()))
        .collect();
    assert_eq!(stacked[..5], [S & 0xFFFF_FFFF, byte, 0, S, S & 0xFFFF]);
    assert!(!stacked[5..].contains(&S), "beyond the arguments: {stacked:x?}");

    let mut odd = Signature {
        ints: 6,
        floats: 8,
        ..Signature::NOTHING
    };
    odd.narrow.ints = [Width::Short { signed: true }; 6];
    odd.narrow.singles = 0xFF;
    dirty(&e, odd, 0x202);
    let all: Vec<(usize, [u64; 2])> = (0..8).map(|n| (n, [S & 0xFFFF_FFFF, 0])).collect();
    check(
        d,
        0,
        "shorts and floats",
        &registers.map(|n| (n, 0x5EC3)),
        &all,
        x87,
    );
    odd.narrow.ints = [Width::Byte { signed: true }; 6];
    dirty(&e, odd, 0x202);
    check(
        d,
        0,
        "signed chars and floats",
        &registers.map(|n| (n, byte)),
        &all,
        x87,
    );

    // What an untyped function gets is what the documentation says, and no more.
    dirty(&e, Signature::UNKNOWN, 0x202);
    let whole: Vec<(usize, [u64; 2])> = (0..8).map(|n| (n, [S, S])).collect();
    let mut general = registers.map(|n| (n, S)).to_vec();
    general.push((0, S & 0xFF));
    check(d, 0, "untyped", &general, &whole, x87);
}

fn behind_gates(module: &Module, x87: bool) {
    const S: u64 = SECRET;
    let mut seen: Vec<Vec<u64>> = Vec::new();
    for f in FLAGS {
        let callee = make(module, None);
        let d = &make(module, Some(&callee));
        dirty(&entry(d, "out_and_back"), Signature::NOTHING, f);
        let int = |value| vec![(0, value)];
        check(d, 1, "host_void", &[], &[], x87);
        check(d, 2, "host_byte", &int(0xC3), &[], x87);
        check(d, 3, "host_int", &int(S & 0xFFFF_FFFF), &[], x87);
        check(d, 4, "host_long", &int(S), &[], x87);
        check(d, 5, "host_float", &[], &[(0, [S & 0xFFFF_FFFF, 0])], x87);
        check(d, 6, "host_double", &[], &[(0, [S, 0])], x87);
        check(
            d,
            7,
            "host_untyped",
            &[(0, S), (2, S)],
            &[(0, [S, 0]), (1, [S, 0])],
            x87,
        );
        check(d, 8, "host_closure", &int(1), &[(0, [2, 0])], x87);
        check(
            d,
            9,
            "__rf_syscall",
            &int(-i64::from(libc::ENOSYS) as u64),
            &[],
            x87,
        );
        check(d, 10, "__rf_call_status", &[], &[], x87);
        // What the callee had there: the last word that it has copied from its stack.
        check(d, 11, "other", &int(found(d, 11).general[0]), &[], x87);
        check(d, 12, "failing", &int(3), &[], x87);
        // These leave the x87 unit alone: it is as the domain itself left it.
        check(d, 13, "__rf_unwind", &int(found(d, 13).general[0]), &[], false);
        check(d, 14, "__rf_distance", &int(found(d, 14).general[0]), &[], false);
        seen.push(flags(d, 1..15));
        dirty(&entry(d, "jumps"), Signature::NOTHING, f);
        check(d, 15, "__rf_resume", &[], &[], false);
        seen.last_mut().unwrap().extend(flags(d, 15..16));
    }
    assert_eq!(seen[0], seen[1], "flags");
}

#[test]
fn registers_hold_nothing_of_the_host() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return;
    }
    for x87 in [false, true] {
        let module = module(x87);
        let callee = make(&module, None);
        let d = make(&module, Some(&callee));
        at_entry(&d, x87);
        behind_gates(&module, x87);
    }
}
