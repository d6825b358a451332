//! Hostile modules against the runtime.

use ringfence_attack::caller::{module, system_call};
use ringfence_attack::child::in_child;
use ringfence_attack::code::{Code, data};
use ringfence_attack::elf::Builder;
use ringfence_attack::fuzz::domain_of;
use ringfence_isa::window;
use ringfence_runtime::domain::{last_status, take_error};
use ringfence_runtime::{Call, CallError, Domain, DomainOptions, FaultKind, Imports, Signature};
use std::ffi::c_void;
use std::sync::{Arc, Mutex};

const ONE: Signature = Signature {
    ints: 1,
    floats: 0,
    stack: 0,
    int_results: 1,
    float_results: 0,
    x87_results: 0,
    ..Signature::NOTHING
};

fn domain(options: &DomainOptions) -> Domain {
    domain_of(&module(), Imports::new().closure("host", |_| Ok(())), options).expect("a domain")
}

const MMAP: u64 = 9;
const MPROTECT: u64 = 10;
const MUNMAP: u64 = 11;
const BRK: u64 = 12;
const RW: u64 = 3;
const ANONYMOUS: u64 = 0x22;

#[test]
fn a_fragmented_heap_and_a_high_break_are_no_panic() {
    let domain = domain(&DomainOptions::default());
    let base = domain.as_ref().base();
    let top = base + u64::from(window::HEAP) + 0x2FF0_0000;
    assert_eq!(system_call(&domain, &[BRK, top]), top as i64);
    // One page in every 16 MiB above the break's area.
    for n in 0..80u64 {
        let at = base + u64::from(window::HEAP) + 0x3000_0000 + (n << 24) + 0x80_0000;
        if at >= base + u64::from(window::HEAP_END) {
            break;
        }
        let answer = system_call(&domain, &[MMAP, at, 4096, RW, ANONYMOUS | 0x10]);
        // The last part of the area may be set aside for regions.
        assert!(
            answer == at as i64 || n > 40 && answer == -i64::from(libc::EPERM),
            "{n}: {answer:#x}"
        );
    }
    // There is no such room; what matters is that somebody answers.
    let answer = system_call(&domain, &[MMAP, 0, 200 << 20, RW, ANONYMOUS]);
    assert_eq!(answer, -i64::from(libc::ENOMEM));
}

#[test]
fn memory_calls_stay_inside_the_heap() {
    let domain = domain(&DomainOptions::default());
    let base = domain.as_ref().base();
    let places = [
        0,
        window::HEADER,
        window::STUBS,
        window::IMAGES + 0x10_0000,
        window::IMAGES + 0x80_0000,
        window::LANES,
    ];
    let ends = [
        window::HEAP_END - 4096,
        window::LANES_END - 4096,
        0xFFFF_F000,
        window::HEAP - 4096,
    ];
    for at in places.into_iter().chain(ends) {
        for len in [
            4096u64,
            8192,
            1 << 30,
            1 << 32,
            u64::MAX,
            u64::MAX - 4094,
            0xFFFF_F000,
        ] {
            // High halves do not count: the domain may say any.
            for high in [base, 0, u64::MAX << 32, 0x7FFF_0000_0000] {
                let address = high | u64::from(at);
                let last_page = at == window::HEAP_END - 4096 && len == 4096;
                let answer = system_call(&domain, &[MMAP, address, len, RW, ANONYMOUS | 0x10]);
                assert!(answer < 0 || last_page, "mmap {address:#x} {len:#x}: {answer:#x}");
                let answer = system_call(&domain, &[MPROTECT, address, len, 0]);
                assert!(
                    answer < 0 || last_page,
                    "mprotect {address:#x} {len:#x}: {answer:#x}"
                );
                let answer = system_call(&domain, &[MUNMAP, address, len]);
                assert!(
                    answer < 0 || last_page,
                    "munmap {address:#x} {len:#x}: {answer:#x}"
                );
            }
        }
    }
    // Executable memory is for the loader.
    assert!(system_call(&domain, &[MMAP, 0, 4096, 7, ANONYMOUS]) < 0);
    let at = system_call(&domain, &[MMAP, 0, 4096, RW, ANONYMOUS]) as u64;
    assert!(system_call(&domain, &[MPROTECT, at, 4096, 5]) < 0);
    assert_eq!(system_call(&domain, &[MUNMAP, at, 4096]), 0);
}

#[test]
fn hostile_domains_leave_the_host_its_mappings() {
    let status = in_child(|| {
        let domains: Vec<Domain> = (0..24).map(|_| domain(&DomainOptions::default())).collect();
        for domain in &domains {
            let base = domain.as_ref().base();
            // Every other page: two mappings each.
            for n in 0..2100u64 {
                let at = base + u64::from(window::HEAP) + 0x3000_0000 + 2 * n * 4096;
                // In the end there is no room for another thread's stacks, and calls fail.
                let entry = domain.entry("call").unwrap();
                let answer = entry.call(&mut Call::ints(&[MMAP, at, 4096, RW, ANONYMOUS | 0x10]));
                if answer.is_err() || answer.is_ok_and(|a| (a.rax as i64) < 0) {
                    break;
                }
            }
        }
        for _ in 0..1000 {
            for rights in [libc::PROT_READ, libc::PROT_NONE] {
                // SAFETY: fresh mappings; rights alternate so that they are not joined.
                let p = unsafe {
                    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
                    libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0)
                };
                assert_ne!(p, libc::MAP_FAILED, "nothing is left for the host");
            }
        }
    });
    assert_eq!(status, 0);
}

#[test]
fn a_domain_dropped_by_its_own_callback_stays_until_it_is_left() {
    let status = in_child(|| {
        let last: Arc<Mutex<Option<Domain>>> = Arc::default();
        let given = last.clone();
        let imports = Imports::new().closure("host", move |_| {
            drop(given.lock().unwrap().take());
            // What was freed is used for something else.
            let junk: Vec<Vec<u64>> = (1..200).map(|n| vec![u64::MAX; n * 8]).collect();
            assert!(junk.iter().all(|j| j[0] == u64::MAX));
            Ok(())
        });
        let domain = domain_of(&module(), imports, &DomainOptions::default()).unwrap();
        let thunk = domain.entry("out").unwrap().thunk(ONE);
        *last.lock().unwrap() = Some(domain);
        // SAFETY: a thunk of a function with one argument.
        let f: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(thunk) };
        assert_eq!(f(1), 0);
        assert_ne!(last_status(), 0);
        assert!(matches!(take_error(), Some(CallError::Fault(f)) if f.kind == FaultKind::Elsewhere));
        assert_eq!(f(1), 0);
        assert!(matches!(take_error(), Some(CallError::Gone)));
    });
    assert_eq!(status, 0);
}

/// The kernel would write the fault's frame over the handler's: nothing sensible can come after that.
#[test]
fn a_fault_under_a_handler_on_a_foreign_alternate_stack_is_the_end() {
    static CRASH: Mutex<usize> = Mutex::new(0);
    extern "C" fn handler(_: i32) {
        let thunk = *CRASH.lock().unwrap();
        // SAFETY: a thunk of a function with one argument.
        let f: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(thunk as *const c_void) };
        f(1);
    }
    let status = in_child(|| {
        let domain = domain(&DomainOptions::default());
        domain.entry("out").unwrap().call(&mut Call::default()).unwrap();
        *CRASH.lock().unwrap() = domain.entry("crash").unwrap().thunk(ONE) as usize;
        // SAFETY: a fresh alternate stack, and a handler on it.
        unsafe {
            let stack = vec![0u8; 256 << 10].leak();
            let new = libc::stack_t {
                ss_sp: stack.as_mut_ptr().cast(),
                ss_flags: 0,
                ss_size: stack.len(),
            };
            assert_eq!(libc::sigaltstack(&raw const new, std::ptr::null_mut()), 0);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_ONSTACK;
            libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut());
            libc::raise(libc::SIGUSR1);
        }
    });
    assert!(
        libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGABRT,
        "status {status:#x}"
    );
}

/// Masked-out elements do not fault: a masked store may start in the inaccessible end of the window and reach above it.
#[test]
fn a_masked_store_over_the_windows_top_reaches_nothing() {
    if !std::arch::is_x86_feature_detected!("avx") {
        return;
    }
    let mut code = Code::default();
    let store = code.function();
    code.put(&[0xC5, 0xE9, 0x76, 0xD2]); // vpcmpeqd %xmm2, %xmm2, %xmm2: ones
    code.put(&[0xC5, 0xE9, 0x73, 0xFA, 0x08]); // vpslldq $8, %xmm2, %xmm2: the upper two elements
    code.put(&[0xB8, 0xF8, 0xFF, 0xFF, 0xFF]); // mov $-8, %eax
    code.put(&[0x65, 0x67, 0xC4, 0xE2, 0x69, 0x2E, 0x00]); // vmaskmovps %xmm0, %xmm2, %gs:(%eax)
    code.put(&[0xC3]);
    let builder = Builder {
        text: code.0,
        data: vec![0; 64],
        exports: vec![("store".into(), store)],
        ..Builder::default()
    };
    let make = || domain_of(&builder, Imports::new(), &DomainOptions::default()).expect("a domain");
    // The topmost window, one with a neighbour, one whose neighbour is gone.
    let mut domains = vec![make(), make(), make()];
    for round in 0..2 {
        for domain in &domains {
            let above = domain.as_ref().base() + window::SIZE;
            // SAFETY: replaces nothing.
            let page = unsafe {
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE;
                libc::mmap(
                    above as *mut c_void,
                    4096,
                    libc::PROT_READ | libc::PROT_WRITE,
                    flags,
                    -1,
                    0,
                )
            };
            assert_eq!(
                page,
                libc::MAP_FAILED,
                "the host can map memory right above a window, round {round}"
            );
            let entry = domain.entry("store").unwrap();
            let error = entry.call(&mut Call::default()).unwrap_err();
            let CallError::Fault(fault) = error else {
                panic!("{error}")
            };
            // Zen 4 begins again at the window's bottom, where nothing is either.
            let bottom = domain.as_ref().base();
            assert!(
                matches!(fault.kind, FaultKind::BadAccess { address, .. } if [above, bottom].contains(&address)),
                "{fault:?}"
            );
            domain.reset().unwrap();
        }
        domains.remove(1);
    }
}

#[test]
fn a_write_without_a_reader_is_an_error_number() {
    let status = in_child(|| {
        // As in a host that is not written in Rust.
        // SAFETY: sets the default.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let monitor = ringfence_policy::Policy::new().start().unwrap();
        let imports = Imports::new().closure("host", |_| Ok(())).policy(monitor);
        let domain = domain_of(&module(), imports, &DomainOptions::default()).unwrap();
        let base = domain.as_ref().base();
        let buffer = base + u64::from(data(1024));
        assert_eq!(system_call(&domain, &[libc::SYS_pipe as u64, buffer]), 0);
        let mut ends = [0; 8];
        domain.as_ref().read(buffer, &mut ends).unwrap();
        let (read, write) = (u64::from(ends[0]), u64::from(ends[4]));
        assert_eq!(system_call(&domain, &[libc::SYS_close as u64, read]), 0);
        let vector = [buffer.to_le_bytes(), 8u64.to_le_bytes()].concat();
        domain.as_ref().write(buffer + 64, &vector).unwrap();
        let write_call = [libc::SYS_write as u64, write, buffer, 8];
        assert_eq!(system_call(&domain, &write_call), -i64::from(libc::EPIPE));
        let vector_call = [libc::SYS_writev as u64, write, buffer + 64, 1];
        assert_eq!(system_call(&domain, &vector_call), -i64::from(libc::EPIPE));
    });
    assert_eq!(status, 0);
}

/// The reader goes while the writer waits for room: part of the data is written, so that the call succeeds, and yet the kernel
/// sends the signal.
#[test]
fn a_reader_that_goes_while_a_write_waits_is_no_signal() {
    let status = in_child(|| {
        // As in a host that is not written in Rust.
        // SAFETY: sets the default.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let monitor = ringfence_policy::Policy::new().start().unwrap();
        let imports = Imports::new().closure("host", |_| Ok(())).policy(monitor);
        let domain = domain_of(&module(), imports, &DomainOptions::default()).unwrap();
        let buffer = domain.as_ref().base() + u64::from(data(4096));
        assert_eq!(system_call(&domain, &[libc::SYS_pipe as u64, buffer]), 0);
        let mut ends = [0; 8];
        domain.as_ref().read(buffer, &mut ends).unwrap();
        let (read, write) = (u64::from(ends[0]), u64::from(ends[4]));
        let other = domain.clone();
        let closer = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(60));
            system_call(&other, &[libc::SYS_close as u64, read])
        });
        let written = system_call(&domain, &[libc::SYS_write as u64, write, buffer, 1 << 20]);
        assert!(written > 0 && written < 1 << 20, "{written}");
        assert_eq!(closer.join().unwrap(), 0);
    });
    assert_eq!(status, 0, "a signal of a domain's doing reached the host");
}
