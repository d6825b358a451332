//! `setjmp` and `longjmp` against the control stack.

use ringfence_attack::child::in_child;
use ringfence_attack::code::{Code, data};
use ringfence_attack::elf::Builder;
use ringfence_attack::fuzz::domain_of;
use ringfence_isa::window;
use ringfence_runtime::{Call, CallError, DomainOptions, FaultKind, Imports};

extern "C" fn escaped() -> ! {
    // SAFETY: ends the child.
    unsafe { libc::_exit(42) }
}

/// `stub(buffer, 1)`.
fn jump(code: &mut Code, stub: u32, buffer: u32) {
    code.put(&[0xBF]).put(&buffer.to_le_bytes()); // mov $buffer, %edi
    code.put(&[0xBE, 1, 0, 0, 0]); // mov $1, %esi
    code.load_target(Code::stub(stub)).call();
}

/// Lets the four bytes at `place` say how far it is to `target`.
fn link(code: &mut Code, place: u32, target: u32) {
    let distance = target.wrapping_sub(place + 4);
    code.0[place as usize..][..4].copy_from_slice(&distance.to_le_bytes());
}

/// A jump back to a record at a greater depth than the frame has now lays frames that are left, hooked return addresses
/// among them, into what the frame takes for its own pushes. Their records must not outlive that.
#[test]
fn a_record_dies_with_its_frame() {
    let (outer, inner, wanted, leaked) = (data(256), data(264), data(272), data(280));
    let mut code = Code::default();
    let main = code.function();
    code.put(&[0x65, 0x67, 0x48, 0x89, 0x3C, 0x25])
        .put(&wanted.to_le_bytes()); // mov %rdi, %gs:wanted
    code.put(&[0x50; 4]); // push %rax, four times: depth 32
    jump(&mut code, window::stub::SETJMP, outer);
    code.put(&[0x85, 0xC0, 0x75, 10]); // test %eax, %eax; jne past what follows
    code.put(&[0x58; 4]); // pop %rax, four times
    code.put(&[0xE8, 0, 0, 0, 0, 0xC3]); // call middle; ret
    let call_middle = code.here() - 5;
    // Back again, at depth 32: above a word of its own lie the callee's return address and the middle's.
    code.put(&[0x59, 0x59, 0x5E, 0x5A]); // pop %rcx; pop %rcx; pop %rsi; pop %rdx
    code.put(&[0x65, 0x67, 0x48, 0x89, 0x34, 0x25])
        .put(&leaked.to_le_bytes()); // mov %rsi, %gs:leaked
    code.put(&[0x65, 0x67, 0x48, 0x8B, 0x04, 0x25])
        .put(&wanted.to_le_bytes()); // mov %gs:wanted, %rax
    code.put(&[0x50, 0x56]); // push %rax; push %rsi
    code.put(&[0xE8, 0, 0, 0, 0, 0x0F, 0x0B]); // call again; ud2
    let call_again = code.here() - 6;
    let middle = code.function();
    code.put(&[0xE8, 0, 0, 0, 0, 0xC3]); // call callee; ret
    let call_callee = code.here() - 5;
    let callee = code.function();
    jump(&mut code, window::stub::SETJMP, inner);
    code.put(&[0x85, 0xC0, 0x74, 1, 0xC3]); // test %eax, %eax; je 1f; ret; 1:
    code.put(&[0x50; 4]);
    jump(&mut code, window::stub::LONGJMP, outer);
    code.put(&[0x0F, 0x0B]);
    let again = code.function();
    jump(&mut code, window::stub::LONGJMP, inner);
    code.put(&[0x0F, 0x0B]);
    for (place, target) in [(call_middle, middle), (call_again, again), (call_callee, callee)] {
        link(&mut code, place, target);
    }
    let builder = Builder {
        text: code.0,
        data: vec![0; 64],
        exports: vec![("main".into(), main)],
        ..Builder::default()
    };
    let status = in_child(|| {
        let domain = domain_of(&builder, Imports::new(), &DomainOptions::default()).expect("a domain");
        let target = escaped as *const () as u64;
        let result = domain.entry("main").unwrap().call(&mut Call::ints(&[target]));
        let error = result.expect_err("the second record is dead");
        let CallError::Fault(fault) = error else {
            panic!("{error}")
        };
        assert!(matches!(fault.kind, FaultKind::Host(_)), "{fault:?}");
        let mut word = [0; 8];
        domain
            .as_ref()
            .read(domain.as_ref().base() + u64::from(leaked), &mut word)
            .unwrap();
        let word = u64::from_le_bytes(word);
        assert!(
            word >> 32 == 0 || word >> 32 == domain.as_ref().base() >> 32,
            "host address {word:#x}"
        );
    });
    assert_ne!(status >> 8, 42, "the domain has jumped to a host function");
    assert_eq!(status, 0);
}

/// The same code twice, but for one `push` and its `pop`: `deep` has them, and so another depth where it calls `setjmp`.
///
/// What a lane remembers of the first module would make the gate take the word that the second one has pushed for a return
/// address: its record holds that word as the place to return to.
fn twin(deep: bool) -> Builder {
    let (outer, inner, wanted, stage) = (data(256), data(264), data(272), data(280));
    let mut code = Code::default();
    let main = code.function();
    code.put(&[0x65, 0x67, 0x48, 0x89, 0x3C, 0x25])
        .put(&wanted.to_le_bytes()); // mov %rdi, %gs:wanted
    let again = code.here();
    code.put(&[0x65, 0x67, 0x48, 0x8B, 0x04, 0x25])
        .put(&wanted.to_le_bytes()); // mov %gs:wanted, %rax
    code.put(&[if deep { 0x50 } else { 0x90 }]); // push %rax
    jump(&mut code, window::stub::SETJMP, outer);
    code.put(&[if deep { 0x59 } else { 0x90 }]); // pop %rcx
    code.put(&[0x65, 0x67, 0xFF, 0x04, 0x25])
        .put(&stage.to_le_bytes()); // incl %gs:stage
    code.put(&[0x65, 0x67, 0x8B, 0x14, 0x25])
        .put(&stage.to_le_bytes()); // mov %gs:stage, %edx
    if !deep {
        code.put(&[0xC3]);
    }
    // First: the callee makes a record whose frame is left by a jump to ours.
    code.put(&[0x83, 0xFA, 1, 0x75, 6]); // cmp $1, %edx; jne 1f
    code.put(&[0xE8, 0, 0, 0, 0, 0xC3]); // call callee; ret; 1:
    let call_callee = code.here() - 5;
    // Second: a record of ours behind it, at the same slot.
    code.put(&[0x83, 0xFA, 2, 0x0F, 0x84, 0, 0, 0, 0]); // cmp $2, %edx; je again
    let back = code.here() - 4;
    // Third: the popped word is the hook; in its place again, the callee's record looks alive.
    code.put(&[0x51, 0xE8, 0, 0, 0, 0, 0x0F, 0x0B]); // push %rcx; call last; ud2
    let call_last = code.here() - 6;
    let callee = code.function();
    jump(&mut code, window::stub::SETJMP, inner);
    code.put(&[0x85, 0xC0, 0x74, 1, 0xC3]); // test %eax, %eax; je 1f; ret; 1:
    code.put(&[0xE8, 0, 0, 0, 0, 0x0F, 0x0B]); // call first; ud2
    let call_first = code.here() - 6;
    let first = code.function();
    jump(&mut code, window::stub::LONGJMP, outer);
    code.put(&[0x0F, 0x0B]);
    let last = code.function();
    jump(&mut code, window::stub::LONGJMP, inner);
    code.put(&[0x0F, 0x0B]);
    for (place, target) in [
        (call_callee, callee),
        (back, again),
        (call_last, last),
        (call_first, first),
    ] {
        link(&mut code, place, target);
    }
    Builder {
        text: code.0,
        data: vec![0; 64],
        exports: vec![("main".into(), main)],
        ..Builder::default()
    }
}

#[test]
fn what_a_lane_knows_of_one_domain_does_not_hold_in_the_next() {
    let status = in_child(|| {
        let target = escaped as *const () as u64;
        let make =
            |deep| domain_of(&twin(deep), Imports::new(), &DomainOptions::default()).expect("a domain");
        let shallow = make(false);
        let base = shallow.as_ref().base();
        let main = shallow.entry("main").unwrap();
        main.call(&mut Call::ints(&[target])).expect("no trick");
        drop((main, shallow));
        let deep = make(true);
        assert_eq!(deep.as_ref().base(), base, "the attack needs the same window");
        let result = deep.entry("main").unwrap().call(&mut Call::ints(&[target]));
        assert!(matches!(result, Err(CallError::Fault(_))), "{result:?}");
    });
    assert_ne!(status >> 8, 42, "the domain has jumped to a host function");
    assert_eq!(status, 0);
}
