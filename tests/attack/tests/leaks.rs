//! What a domain can see: at entry and after each kind of gate all registers, and the whole window, without a host
//! address or a byte of the host's data.

use ringfence_attack::code::{Code, data};
use ringfence_attack::elf::Builder;
use ringfence_attack::fuzz::domain_of;
use ringfence_isa::window;
use ringfence_runtime::domain::last_status;
use ringfence_runtime::{Domain, DomainOptions, Imports, Signature};
use std::arch::global_asm;
use std::ffi::c_void;

const SECRET: u64 = 0x7E57_5EC2_E757_5EC3;

// Both leave the secret in everything that the other side has no business with.
global_asm!(
    ".macro RF_ATTACK_DIRTY_VECTORS",
    "vmovq xmm0, rax; vpbroadcastq ymm0, xmm0",
    ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "vmovdqa ymm\\n, ymm0",
    ".endr",
    ".endm",
    ".globl rf_attack_dirty_call", // (thunk, argument)
    "rf_attack_dirty_call:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15; sub rsp, 8",
    "mov r10, rdi; mov rdi, rsi",
    "movabs rax, {secret}",
    "RF_ATTACK_DIRTY_VECTORS",
    "mov rbx, rax; mov rbp, rax; mov r12, rax; mov r13, rax; mov r14, rax; mov r15, rax",
    "mov rsi, rax; mov rdx, rax; mov rcx, rax; mov r8, rax; mov r9, rax; mov r11, rax",
    "push rax; fild qword ptr [rsp]; fstp st(0); pop rax",
    "call r10",
    "vzeroupper",
    "add rsp, 8; pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    "ret",
    ".globl rf_attack_dirty_host",
    "rf_attack_dirty_host:",
    "movabs rax, {secret}",
    "RF_ATTACK_DIRTY_VECTORS",
    "mov rdi, rax; mov rsi, rax; mov rdx, rax; mov rcx, rax",
    "mov r8, rax; mov r9, rax; mov r10, rax; mov r11, rax",
    "push rax; fild qword ptr [rsp]; fstp st(0); pop rax",
    "xor eax, eax",
    "ret",
    // The same for a function of two numbers that gives one: only their upper halves are the host's.
    ".globl rf_attack_dirty_numbers",
    "rf_attack_dirty_numbers:",
    "push rbx; mov r10, rdi",
    "movabs rax, {secret}",
    "RF_ATTACK_DIRTY_VECTORS",
    "push 1; movlps xmm0, [rsp]; movlps xmm1, [rsp]; pop rbx",
    "call r10",
    "vzeroupper",
    "pop rbx; ret",
    ".globl rf_attack_dirty_number",
    "rf_attack_dirty_number:",
    "movabs rax, {secret}",
    "RF_ATTACK_DIRTY_VECTORS",
    "push 1; movlps xmm0, [rsp]; movlps xmm1, [rsp]; pop rax",
    "ret",
    secret = const SECRET,
);

unsafe extern "C" {
    fn rf_attack_dirty_call(thunk: *const c_void, argument: u64) -> u64;
    fn rf_attack_dirty_host();
    fn rf_attack_dirty_numbers(thunk: *const c_void);
    fn rf_attack_dirty_number();
}

fn at(code: &mut Code, bytes: &[u8], slot: u32) {
    code.put(bytes);
    code.put(&data(slot).to_le_bytes());
}

/// Stores every register at `area`.
fn dump(code: &mut Code, area: u32, x87: bool) {
    for n in (0..16u8).filter(|n| *n != 4) {
        let (rex, modrm) = (0x48 | (n & 8) >> 1, 4 | (n & 7) << 3);
        at(
            code,
            &[0x65, 0x67, rex, 0x89, modrm, 0x25],
            area + 8 * u32::from(n),
        );
    }
    for n in 0..16u8 {
        let vex = if n < 8 { 0xFE } else { 0x7E };
        at(
            code,
            &[0x65, 0x67, 0xC5, vex, 0x7F, 4 | (n & 7) << 3, 0x25],
            area + 128 + 32 * u32::from(n),
        );
    }
    if x87 {
        for n in 0..8u32 {
            at(code, &[0x65, 0x67, 0xDB, 0x3C, 0x25], area + 640 + 16 * n); // fstpt
        }
    }
}

const AREAS: u32 = 4;
const AREA: u32 = 1024;

fn module(x87: bool) -> Builder {
    let mut code = Code::default();
    let look = code.function();
    dump(&mut code, AREA, x87);
    for (n, target) in [None, Some(0), Some(1)].into_iter().enumerate() {
        match target {
            Some(import) => _ = code.load_import(import),
            None => {
                code.put(&[0xB8, 39, 0, 0, 0]); // getpid: a call that the policy refuses
                code.load_target(Code::stub(window::stub::SYSCALL));
            }
        }
        code.call();
        dump(&mut code, AREA * (n as u32 + 2), x87);
    }
    code.put(&[0xC3]);
    Builder {
        text: code.0,
        data: vec![0; 64],
        exports: vec![("look".into(), look)],
        imports: vec!["plain".into(), "closure".into()],
        ..Builder::default()
    }
}

/// Address ranges of the process outside `window`, without those that anybody may know.
fn host_ranges(base: u64) -> Vec<(u64, u64)> {
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let ranges = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        if rest.starts_with("---p") {
            return None; // guards, and reserved windows
        }
        let (a, b) = range.split_once('-')?;
        Some((u64::from_str_radix(a, 16).ok()?, u64::from_str_radix(b, 16).ok()?))
    });
    ranges
        .filter(|(a, b)| *b <= base || *a >= base + window::SIZE)
        .collect()
}

/// All that can be read of a window, as offset and byte runs.
fn readable(domain: &Domain) -> Vec<(u64, Vec<u8>)> {
    let base = domain.as_ref().base();
    let maps = std::fs::read_to_string("/proc/self/maps").expect("maps");
    let mut found = Vec::new();
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').expect("a range");
        let (a, b) = range.split_once('-').expect("two ends");
        let (a, b) = (
            u64::from_str_radix(a, 16).unwrap(),
            u64::from_str_radix(b, 16).unwrap(),
        );
        if a < base || a >= base + window::SIZE || !rest.starts_with('r') {
            continue;
        }
        let mut bytes = vec![0; (b - a) as usize];
        domain.as_ref().read(a, &mut bytes).expect("readable memory");
        found.push((a - base, bytes));
    }
    found
}

fn search(domain: &Domain, when: &str) {
    let ranges = host_ranges(domain.as_ref().base());
    for (offset, bytes) in readable(domain) {
        for (n, word) in bytes.windows(8).enumerate() {
            if word[6..] != [0, 0] && word != SECRET.to_le_bytes() {
                continue;
            }
            let value = u64::from_le_bytes(word.try_into().unwrap());
            let place = offset + n as u64;
            assert_ne!(value, SECRET, "host data at {place:#x} {when}");
            // Half a secret is one, too.
            if ranges.iter().any(|(a, b)| (*a..*b).contains(&value)) && value > 0x1_0000_0000 {
                panic!("host address {value:#x} at {place:#x} {when}");
            }
        }
    }
    let mut area = vec![0; (AREA * (AREAS + 1)) as usize];
    domain
        .as_ref()
        .read(domain.as_ref().base() + u64::from(data(0)), &mut area)
        .unwrap();
    let half = (SECRET as u32).to_le_bytes();
    assert!(
        !area.windows(4).any(|w| w == half),
        "half of the host's data {when}"
    );
}

fn look(x87: bool) {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return;
    }
    let signature = Signature {
        ints: 1,
        floats: 0,
        stack: 0,
        int_results: 1,
        float_results: 0,
        x87_results: 0,
        ..Signature::NOTHING
    };
    // SAFETY: it takes nothing and returns an integer.
    let imports = unsafe { Imports::new().plain("plain", rf_attack_dirty_host as *const c_void, signature) };
    let imports = imports.closure("closure", |_| {
        // SAFETY: dirties registers that the calling convention allows it to.
        unsafe { rf_attack_dirty_host() };
        Ok(())
    });
    let domain = domain_of(&module(x87), imports, &DomainOptions::default()).expect("a domain");
    search(&domain, "in a fresh window");
    let thunk = domain.entry("look").unwrap().thunk(signature);
    for turn in 0..3 {
        // SAFETY: a thunk of a function with one argument.
        let result = unsafe { rf_attack_dirty_call(thunk, turn) };
        assert_eq!((result, last_status()), (0, 0));
        search(&domain, &format!("after call {turn}"));
    }
    domain.reset().expect("reset");
    search(&domain, "after a reset");
}

#[test]
fn nothing_of_the_host_is_visible() {
    // One after the other: a window is no secret, but it would look like one.
    look(false);
    look(true);
    look_at_numbers();
}

fn look_at_numbers() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        return;
    }
    let signature = Signature {
        ints: 0,
        floats: 2,
        stack: 0,
        int_results: 0,
        float_results: 1,
        x87_results: 0,
        ..Signature::NOTHING
    };
    // SAFETY: it takes two numbers and returns one.
    let imports =
        unsafe { Imports::new().plain("plain", rf_attack_dirty_number as *const c_void, signature) };
    let imports = imports.closure("closure", |_| Ok(()));
    let domain = domain_of(&module(false), imports, &DomainOptions::default()).expect("a domain");
    let thunk = domain.entry("look").unwrap().thunk(signature);
    // SAFETY: a thunk of a function of two numbers.
    unsafe { rf_attack_dirty_numbers(thunk) };
    assert_eq!(last_status(), 0);
    search(&domain, "after a call with numbers");
}
