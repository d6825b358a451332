//! `longjmp`, and the landing pads of exceptions, against the control stack.

use ringfence_attack::child::in_child;
use ringfence_attack::code::{Code, data};
use ringfence_attack::elf::{Builder, TEXT};
use ringfence_attack::fuzz::domain_of;
use ringfence_isa::{pad, window};
use ringfence_runtime::{Call, CallError, Domain, DomainOptions, FaultKind, Imports};

extern "C" fn escaped() -> ! {
    // SAFETY: ends the child.
    unsafe { libc::_exit(42) }
}

/// `push`es of the attacker's word in a function, and how many of them are left at each of its landing pads.
const PUSHED: usize = 4;
const PADS: [usize; 4] = [4, 3, 1, 0];

/// `main(word, distance, pad)` pushes the word, which is the address of a function of the host's, and calls `inner`, which pushes it too
/// and asks to be resumed at that distance and pad. Each pad pops what it says and returns: to the word, if the gate were wrong by a
/// slot. `extra`: the second function pushes a word more, at the same places of the text.
fn module(extra: bool) -> (Builder, Vec<u32>) {
    let mut code = Code::default();
    let mut pads = Vec::new();
    let mut function = |code: &mut Code, pushed: usize, middle: &dyn Fn(&mut Code)| {
        let at = code.function();
        code.put(&vec![0x57; pushed]); // push %rdi
        code.put(&vec![0x90; PUSHED + 1 - pushed]);
        middle(code);
        for left in PADS {
            pads.push(code.here());
            code.put(&pad::marker(8 * left as u16));
            code.put(&vec![0x58; left]).put(&[0xC3]); // pop %rax; ret
        }
        at
    };
    let main = function(&mut code, PUSHED, &|code| {
        code.put(&[0xE8, 0, 0, 0, 0]); // call inner
        code.put(&[0x58; PUSHED]).put(&[0xC3]);
    });
    let call = code.0.iter().position(|&b| b == 0xE8).expect("the call") + 1;
    let inner = function(&mut code, PUSHED + usize::from(extra), &|code| {
        for (at, bytes) in [
            (0, &[0x48, 0x89, 0x34, 0x25]),
            (8, &[0x48, 0x89, 0x14, 0x25]),
            (64, &[0x4C, 0x89, 0x3C, 0x25]),
        ] {
            // mov %rsi, %gs:record; mov %rdx, …; mov %r15, …
            code.put(&[0x65, 0x67])
                .put(bytes)
                .put(&data(256 + at).to_le_bytes());
        }
        code.put(&[0xBF]).put(&data(256).to_le_bytes()); // mov $record, %edi
        code.load_target(Code::stub(window::stub::RESUME)).call();
        code.put(&[0x0F, 0x0B]);
    });
    let distance = inner - (call as u32 + 4);
    code.0[call..][..4].copy_from_slice(&distance.to_le_bytes());
    let builder = Builder {
        text: code.0,
        data: vec![0; 64],
        exports: vec![("main".into(), main)],
        ..Builder::default()
    };
    (builder, pads)
}

/// Whether each distance and pad leads where control may go, or to an error. How many led somewhere.
fn try_all(domain: &Domain, pads: &[u32]) -> usize {
    let word = escaped as *const () as u64;
    let main = domain.entry("main").unwrap();
    let text = domain.as_ref().base() + u64::from(window::IMAGES + TEXT);
    let near = (0..40 * 4).map(|n| 4 * n - 64_i64);
    let far = [
        i64::MIN,
        i64::MAX,
        1 << 32,
        -(1 << 32),
        word as i64,
        domain.as_ref().base() as i64,
    ];
    let mut led = 0;
    for distance in near.chain(far) {
        for &pad in pads {
            let at = text + u64::from(pad);
            match main.call(&mut Call::ints(&[word, distance as u64, at])) {
                Ok(_) => led += 1,
                Err(CallError::Fault(f)) => {
                    assert!(matches!(f.kind, FaultKind::Frames(_)), "{distance} {pad:#x}: {f}");
                    domain.reset().unwrap();
                }
                Err(e) => panic!("{distance} {pad:#x}: {e}"),
            }
        }
    }
    led
}

/// Two modules of the same shape and another depth, one after the other in the same window: what is known of one says nothing of the
/// other.
#[test]
fn no_record_leads_to_a_word_that_was_pushed() {
    let status = in_child(|| {
        let make = |extra| {
            let (builder, pads) = module(extra);
            (
                domain_of(&builder, Imports::new(), &DomainOptions::default()).expect("a domain"),
                pads,
            )
        };
        let (domain, pads) = make(false);
        let base = domain.as_ref().base();
        // Each pad of both functions, at one distance.
        assert_eq!(try_all(&domain, &pads), pads.len());
        drop(domain);
        let (domain, pads) = make(true);
        assert_eq!(domain.as_ref().base(), base, "the attack needs the same window");
        assert_eq!(try_all(&domain, &pads), pads.len());
    });
    assert_ne!(status >> 8, 42, "the domain has jumped to a host function");
    assert_eq!(status, 0);
}

/// The stub of distances tells where the stack pointer is in the call, and nothing of where the stack is.
#[test]
fn a_distance_is_no_address() {
    let mut code = Code::default();
    let main = code.function();
    code.put(&[0x57, 0x57]); // push %rdi, twice
    code.load_target(Code::stub(window::stub::DISTANCE)).call();
    code.put(&[0x59, 0x59, 0xC3]); // pop %rcx, twice; ret
    let builder = Builder {
        text: code.0,
        data: vec![0; 64],
        exports: vec![("main".into(), main)],
        ..Builder::default()
    };
    let domain = domain_of(&builder, Imports::new(), &DomainOptions::default()).expect("a domain");
    let told = || {
        domain
            .entry("main")
            .unwrap()
            .call(&mut Call::ints(&[0]))
            .unwrap()
            .rax
    };
    assert_eq!(told(), 16);
    std::thread::scope(|s| {
        for _ in 0..4 {
            assert_eq!(s.spawn(told).join().unwrap(), 16);
        }
    });
}
