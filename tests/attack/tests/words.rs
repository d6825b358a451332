//! Rights to words against a module that was made to get around them: its own text, not what a compiler makes.

use ringfence_attack::code::Code;
use ringfence_attack::elf::{Builder, TEXT};
use ringfence_isa::words::{CMOV, HEAP_END, READ, TABLE, VIEW, WRITE, heap, test};
use ringfence_isa::{note, window};
use ringfence_policy::{Captured, Policy, Stream};
use ringfence_runtime::{
    Arena, Call, CallError, Domain, DomainOptions, FaultKind, Grantee, Imports, LoadOptions, Module, Party,
    Rights, WordsError,
};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};

/// A test for four bytes at `edi`, and the move that follows it; then the access.
fn tested(code: &mut Code, bit: u8, access: &[u8]) {
    code.put(&[0x44, 0x8D, 0x1F]); // leal (%rdi), %r11d
    code.put(&test(TABLE, bit << 1))
        .put(&CMOV)
        .put(access)
        .put(&VIEW.to_le_bytes());
}

const LOAD: [u8; 4] = [0x43, 0x8B, 0x84, 0x1E]; // movl VIEW(%r14,%r11), %eax
const STORE: [u8; 4] = [0x43, 0x89, 0xB4, 0x1E]; // movl %esi, VIEW(%r14,%r11)

struct Hostile {
    builder: Builder,
    /// Offsets in the text behind a test, and behind its move.
    behind: [u32; 2],
}

fn hostile() -> Hostile {
    let mut code = Code::default();
    let mut exports = Vec::new();
    let mut export = |name: &str, at: u32| exports.push((name.to_string(), at));
    let peek = code.function();
    export("peek", peek);
    tested(&mut code, READ, &LOAD);
    let load = code.here() - 8;
    code.put(&[0xC3]);
    export("poke", code.function());
    tested(&mut code, WRITE, &STORE);
    code.put(&[0xC3]);
    // Without end.
    export("storm", code.function());
    let top = code.here();
    tested(&mut code, WRITE, &STORE);
    let back = top.wrapping_sub(code.here() + 2) as u8;
    code.put(&[0xEB, back]);
    // An ordinary operand: movl %esi, %gs:(%edi).
    export("plain", code.function());
    code.put(&[0x65, 0x67, 0x89, 0x37, 0xC3]);
    // The call of the system (or of the allocator) with the number in rdi, then its arguments.
    export("ask", code.function());
    code.put(&[
        0x48, 0x89, 0xF8, 0x48, 0x89, 0xF7, 0x48, 0x89, 0xD6, 0x48, 0x89, 0xCA,
    ]);
    code.load_target(Code::stub(window::stub::SYSCALL))
        .call()
        .put(&[0xC3]);
    // To wherever rdi points.
    export("leap", code.function());
    code.put(&[0x41, 0x89, 0xFB]).call().put(&[0xC3]);
    Hostile {
        builder: Builder {
            text: code.0,
            data: vec![0; 64],
            exports,
            flags: note::flag::WORDS,
            ..Builder::default()
        },
        behind: [load - CMOV.len() as u32, load],
    }
}

fn module(builder: &Builder) -> Result<Module, String> {
    let mut options = LoadOptions::default();
    options.allow_words = true;
    Module::from_bytes("hostile", &builder.build(), &options).map_err(|e| e.to_string())
}

fn domain(module: &Module, arena: &Arena) -> Domain {
    let policy = Policy::new().start().expect("a policy");
    let imports = Imports::new().arena(arena).policy(policy);
    Domain::new(std::slice::from_ref(module), imports, &DomainOptions::default()).expect("a domain")
}

fn call(domain: &Domain, name: &str, arguments: &[u64]) -> Result<u64, CallError> {
    let entry = domain.entry(name).expect("exported");
    entry.call(&mut Call::ints(arguments)).map(|r| r.rax)
}

/// The kind of a fault that a call ends with; the domain is as at the beginning then.
fn fault(domain: &Domain, name: &str, arguments: &[u64]) -> FaultKind {
    match call(domain, name, arguments) {
        Err(CallError::Fault(fault)) => {
            domain.reset().expect("reset");
            fault.kind
        }
        other => panic!("{name}: {other:?}"),
    }
}

fn word(at: u64) -> u32 {
    // SAFETY: a word of an object of ours.
    unsafe { (at as *const u32).read_volatile() }
}

fn denied(kind: &FaultKind) -> bool {
    matches!(kind, FaultKind::Denied { .. })
}

#[test]
fn nothing_leads_behind_a_test() {
    let made = hostile();
    let module_ = module(&made.builder).expect("accepted");
    let arena = Arena::new(1 << 16).expect("an arena");
    let domain = domain(&module_, &arena);
    let object = arena.alloc(64).expect("an object");
    // By an address: the check of the target fails.
    for at in made.behind {
        let kind = fault(&domain, "leap", &[u64::from(window::IMAGES + TEXT + at), object]);
        assert!(matches!(kind, FaultKind::BadTarget), "{kind:?}");
    }
    // By a jump or a call of its own: nothing of it is accepted, whichever byte of the sequence it leads to.
    let start = made.behind[0] - 10;
    for to in start + 1..=made.behind[1] {
        for direct in [0xE9, 0xE8] {
            let mut code = Code(made.builder.text.clone());
            let at = code.function();
            let distance = to.wrapping_sub(code.here() + 5);
            code.put(&[direct]).put(&distance.to_le_bytes()).put(&[0xC3]);
            let mut builder = Builder {
                text: code.0,
                ..made.builder.clone()
            };
            builder.exports.push(("jump".into(), at));
            assert!(module(&builder).is_err(), "{direct:#x} to {to:#x}");
        }
    }
    assert_eq!(word(object), 0);
}

#[test]
fn the_table_and_the_arenas_addresses_are_nobodys_to_write() {
    let made = hostile();
    let module = module(&made.builder).expect("accepted");
    let arena = Arena::new(1 << 16).expect("an arena");
    let domain = domain(&module, &arena);
    let object = arena.alloc(64).expect("an object");
    domain.give_words(object, 4, Rights::Read).expect("a word");
    // Its row of the table, where it has one, and where it has none.
    for at in [object, object + 32768] {
        let row = u64::from((at as u32).wrapping_add(TABLE));
        let kind = fault(&domain, "plain", &[row, u64::MAX]);
        assert!(!matches!(kind, FaultKind::Host(_)), "{kind:?}");
    }
    assert!(denied(&fault(&domain, "poke", &[object, 1])));
    // Without a test, by numbers of any upper half, and behind the heap's end.
    for at in [
        object,
        object & 0xFFFF_FFFF,
        object | 0xABCD << 48,
        u64::from(HEAP_END),
    ] {
        fault(&domain, "plain", &[at, 1]);
    }
    assert_eq!((word(object), domain.word_rights(object)), (0, Rights::Read));
    assert_eq!(call(&domain, "peek", &[object]).expect("given"), 0);
    let kind = fault(&domain, "peek", &[object + 4]);
    assert!(denied(&kind), "{kind:?}");
}

#[test]
fn system_calls_have_the_domains_rights() {
    let made = hostile();
    let module = module(&made.builder).expect("accepted");
    let arena = Arena::new(1 << 16).expect("an arena");
    let out = Captured::default();
    let policy = Policy::new()
        .randomness(true)
        .stdin(Stream::Bytes(vec![0xEE; 1000]))
        .stdout(Stream::Capture(out.clone()));
    let imports = Imports::new()
        .arena(&arena)
        .policy(policy.start().expect("a policy"));
    let domain = Domain::new(&[module], imports, &DomainOptions::default()).expect("a domain");
    let ask = |number: i64, first: u64, second: u64, third: u64| {
        let answer = call(&domain, "ask", &[number as u64, first, second, third]);
        answer.expect("an answer") as i64
    };
    // Four words to be read, and a secret behind them; before and behind both what is nobody's.
    let object = arena.alloc(64).expect("an object");
    let secret = |at: u64| 0x5EC2_E700 + at as u32;
    for at in (0..64).step_by(4) {
        // SAFETY: in the object; no call is in progress.
        unsafe { ((object + at) as *mut u32).write(secret(at)) };
    }
    domain.give_words(object, 16, Rights::Read).expect("words");
    let fault = -i64::from(libc::EFAULT);
    // By numbers of any upper half, up to the last byte and not further; and never from where the rights do not begin.
    for upper in [0, 0xABCD << 48, u64::from(u32::MAX) << 32] {
        let at = |by: u64| (object & 0xFFFF_FFFF | upper) + by;
        assert_eq!(ask(libc::SYS_write, 1, at(2), 64), 14);
        for by in [16, 60, 64, (1 << 16) - 4, 0u64.wrapping_sub(4)] {
            assert_eq!(ask(libc::SYS_write, 1, at(0).wrapping_add(by), 64), fault, "{by}");
        }
        // A vector that begins in one's own words and goes on in others'.
        assert_eq!(ask(libc::SYS_writev, 1, at(8), 2), fault);
        // To be filled: nothing here.
        assert_eq!(ask(libc::SYS_read, 0, at(0), 16), fault);
        assert_eq!(ask(libc::SYS_getrandom, at(0), 16, 0), fault);
        assert!(ask(libc::SYS_uname, at(0), 0, 0) < 0);
        assert!(ask(libc::SYS_pipe, at(0), 0, 0) < 0);
    }
    // Half of a pair that the kernel's answer would fill: none of it is.
    domain.give_words(object + 32, 4, Rights::Write).expect("a word");
    assert_eq!(ask(libc::SYS_pipe, object + 32, 0, 0), fault);
    assert_eq!(ask(libc::SYS_read, 0, object + 30, 16), fault);
    assert_eq!(ask(libc::SYS_read, 0, object + 32, 1 << 40), fault);
    assert_eq!(ask(libc::SYS_read, 0, object + 33, 64), 3);
    let told = out.take();
    assert_eq!(told.len(), 3 * 14);
    let given: Vec<u8> = (0..16)
        .step_by(4)
        .flat_map(|at| secret(at).to_ne_bytes())
        .collect();
    assert!(told.chunks(14).all(|part| part == &given[2..]), "{told:x?}");
    for at in (0..64).step_by(4) {
        let now = word(object + at);
        let filled = secret(at).to_ne_bytes()[0] as u32 | 0xEEEE_EE00;
        assert_eq!(now, if at == 32 { filled } else { secret(at) }, "{at}");
    }
    // Neither may its places be mapped, moved or protected otherwise.
    for number in [libc::SYS_munmap, libc::SYS_mprotect, libc::SYS_mremap] {
        for at in [
            object,
            u64::from((object as u32).wrapping_add(TABLE)),
            u64::from(HEAP_END),
        ] {
            let answer = call(&domain, "ask", &[number as u64, at & !4095, 4096, 3]).expect("an answer");
            assert!(
                (answer as i64) < 0 || number == libc::SYS_munmap,
                "{number}: {answer:#x}"
            );
        }
    }
    assert_eq!(
        call(&domain, "peek", &[object]).expect("still given") as u32,
        secret(0)
    );
}

#[test]
fn an_allocators_calls_give_no_rights_to_what_is_others() {
    let made = hostile();
    let module = module(&made.builder).expect("accepted");
    let arena = Arena::new(1 << 20).expect("an arena");
    arena.check_heaps();
    let (mine, other) = (domain(&module, &arena), domain(&module, &arena));
    let hosts = arena.alloc(64).expect("an object");
    let allocate = |domain: &Domain| call(domain, "ask", &[heap::ALLOCATE, 64, 0]).expect("an address");
    let theirs = allocate(&other);
    call(&other, "poke", &[theirs, 7]).expect("its own");
    // What is another's is neither freed, moved, measured nor written, whatever the upper half says.
    for at in [
        hosts,
        theirs,
        theirs + 64,
        theirs - 16,
        0,
        u64::MAX,
        theirs | 1 << 63,
    ] {
        for number in [heap::FREE, heap::RESIZE, heap::LENGTH] {
            let kind = fault(&mine, "ask", &[number, at, 1 << 40]);
            assert!(matches!(kind, FaultKind::Host(_)), "{kind:?}");
        }
        for number in [heap::WRITTEN, heap::COPIED] {
            assert_eq!(
                call(&mine, "ask", &[number, at, u64::MAX, u64::MAX]).expect("nothing"),
                0
            );
        }
        assert!(denied(&fault(&mine, "peek", &[at])) || at.wrapping_add(1) < 2);
    }
    assert_eq!(
        (mine.word_rights(hosts), mine.word_rights(theirs)),
        (Rights::None, Rights::None)
    );
    assert_eq!(call(&other, "peek", &[theirs]).expect("still its own"), 7);
    // Its own: what was said to be written is, no further than the block goes, and not behind its end.
    let own = allocate(&mine);
    call(&mine, "ask", &[heap::WRITTEN, own, u64::MAX]).expect("nothing");
    call(&mine, "poke", &[own + 60, 1]).expect("its own");
    assert!(denied(&fault(&mine, "poke", &[own + 64, 1])));
    let own = allocate(&mine);
    call(&mine, "ask", &[heap::FREE, own]).expect("freed");
    for name in ["peek", "poke"] {
        assert!(denied(&fault(&mine, name, &[own, 1])));
        let own = allocate(&mine);
        call(&mine, "ask", &[heap::FREE, own]).expect("freed");
        call(&mine, "ask", &[heap::WRITTEN, own, 64]).expect("nothing");
        assert!(denied(&fault(&mine, name, &[own, 1])));
    }
    // Nothing of any length is too much for the host.
    for len in [1 << 20, (1 << 20) + 1, 1 << 32, u64::MAX] {
        let answer = call(&mine, "ask", &[heap::ALLOCATE, len, 1]).expect("an answer");
        assert!(
            arena.range().contains(&answer) || answer as i64 == -i64::from(libc::ENOMEM),
            "{answer:#x}"
        );
    }
    // Numbers next to these are the policy's.
    for number in [heap::ALLOCATE - 1, heap::END] {
        assert_eq!(
            call(&mine, "ask", &[number, 64, 0]).expect("an answer") as i64,
            -i64::from(libc::ENOSYS)
        );
    }
}

/// A heap that is checked, of a module that asks for what it likes.
fn checked(len: u64, tables: u64) -> (Arena, Domain) {
    let module = module(&hostile().builder).expect("accepted");
    let arena = Arena::limited(len, tables).expect("an arena");
    arena.check_heaps();
    let domain = domain(&module, &arena);
    (arena, domain)
}

const NO_MEMORY: u64 = -(libc::ENOMEM as i64) as u64;

#[test]
fn a_block_that_could_not_be_made_leaves_no_rights() {
    // Tables for half of it.
    let (arena, mine) = checked(1 << 20, 1 << 19);
    let allocate = || call(&mine, "ask", &[heap::ALLOCATE, 4000, 0]).expect("an answer");
    let made = (0..1 << 10).take_while(|_| allocate() != NO_MEMORY).count();
    assert!((100..200).contains(&made), "{made}");
    // The place that there was no table for is the host's next.
    let hosts = arena.alloc(64).expect("an object");
    assert!(denied(&fault(&mine, "poke", &[hosts, 1])));
    assert_eq!((word(hosts), mine.word_rights(hosts)), (0, Rights::None));
}

#[test]
fn a_block_is_freed_by_its_heap_only() {
    let (arena, mine) = checked(1 << 20, 1 << 24);
    let (_, id) = mine.arena().expect("its arena");
    let block = call(&mine, "ask", &[heap::ALLOCATE, 64, 0]).expect("an address");
    let freed = [Party::Host, Party::Domain(id)].map(|actor| arena.free(actor, block));
    let hosts = arena.alloc(64).expect("an object");
    // SAFETY: a word of an object of ours.
    unsafe { (hosts as *mut u32).write_volatile(5) };
    assert!(denied(&fault(&mine, "poke", &[hosts, 1])));
    assert_eq!((word(hosts), mine.word_rights(hosts)), (5, Rights::None));
    for freed in freed {
        assert!(matches!(freed, Err(WordsError::NoObject { .. })), "{freed:?}");
    }
}

#[test]
fn a_forked_child_gives_no_rights_in_its_parent() {
    let (arena, mine) = checked(1 << 20, 1 << 24);
    let block = call(&mine, "ask", &[heap::ALLOCATE, 64, 1]).expect("an address");
    call(&mine, "poke", &[block, 7]).expect("its own");
    // One that nobody has entered yet.
    let idle = domain(&module(&hostile().builder).expect("accepted"), &arena);
    // SAFETY: the child makes calls, which it may after a fork, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let asks = |number: u64, first: u64| call(&mine, "ask", &[number, first, 1]).ok();
        let none = asks(heap::ALLOCATE, 64) == Some(NO_MEMORY) && asks(heap::FREE, block) == Some(0);
        let gone = asks(heap::RESIZE, block).is_none();
        let again = mine.reset().is_ok() && asks(heap::ALLOCATE, 64) == Some(NO_MEMORY);
        let away = matches!(call(&mine, "poke", &[block, 8]), Err(CallError::Fault(_)));
        // Neither does what the host decides there.
        let given = idle.give_words(block, 4, Rights::Write).is_ok();
        let idle = call(&idle, "ask", &[heap::ALLOCATE, 64, 1]).ok() == Some(NO_MEMORY)
            && matches!(call(&idle, "poke", &[block, 8]), Err(CallError::Fault(_)));
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!(none && gone && again && away && given && idle))) };
    }
    let mut status = -1;
    // SAFETY: waits for our child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0);
    assert_eq!((word(block), idle.word_rights(block)), (7, Rights::None));
    let hosts = arena.alloc(64).expect("an object");
    assert_eq!(mine.word_rights(hosts), Rights::None);
    assert!(denied(&fault(&mine, "poke", &[hosts, 1])));
    assert_eq!(word(hosts), 0);
}

#[test]
fn a_heap_has_so_many_blocks_at_most() {
    let (arena, mine) = checked(4 << 20, 1 << 26);
    let allocate = || call(&mine, "ask", &[heap::ALLOCATE, 4, 1]).expect("an answer");
    let made = (0..70_000).take_while(|_| allocate() != NO_MEMORY).count();
    assert_eq!(made, 1 << 16);
    assert!(arena.alloc(64).is_ok(), "the arena has room");
    // Those whose places are empty are among them, and go first.
    mine.reset().expect("reset");
    for _ in 0..70_000 {
        let block = allocate();
        assert_ne!(block, NO_MEMORY);
        call(&mine, "ask", &[heap::FREE, block]).expect("freed");
    }
}

#[test]
fn rights_that_are_taken_in_the_middle_of_a_storm_are_gone() {
    let made = hostile();
    let module = module(&made.builder).expect("accepted");
    let arena = Arena::new(1 << 16).expect("an arena");
    let domain = domain(&module, &arena);
    for round in 0..20 {
        let object = arena.alloc(64).expect("an object");
        domain.give_words(object, 4, Rights::Write).expect("a word");
        let (begun, ended) = (Barrier::new(2), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                begun.wait();
                let end = call(&domain, "storm", &[object, u64::from(u32::MAX)]);
                assert!(matches!(end, Err(CallError::Fault(f)) if denied(&f.kind)));
                ended.store(true, Ordering::Release);
            });
            begun.wait();
            while word(object) != u32::MAX {
                std::hint::spin_loop();
            }
            // One that did not answer in time has its one access; else none comes behind this.
            let sure = match round % 2 {
                0 => arena.revoke(Party::Host, object, 4),
                _ => arena.free(Party::Host, object),
            };
            // SAFETY: the word, which no domain has rights to, and which no object has yet.
            unsafe { (object as *mut u32).write_volatile(3) };
            while !ended.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            match sure {
                Ok(()) => assert_eq!(word(object), 3),
                Err(e) => assert!(matches!(e, WordsError::Inside), "{e}"),
            }
        });
        domain.reset().expect("reset");
    }
}

#[test]
fn neither_groups_nor_arenas_are_taken_for_others() {
    let made = hostile();
    let module = module(&made.builder).expect("accepted");
    let (arena, other) = (
        Arena::new(1 << 16).expect("an arena"),
        Arena::new(1 << 16).expect("another"),
    );
    let (domain, stranger) = (domain(&module, &arena), domain(&module, &other));
    let object = arena.alloc(64).expect("an object");
    // A number of the other arena means nobody here: there is no second domain.
    let (_, first) = domain.arena().expect("its arena");
    let nobody = ringfence_runtime::DomainId(first.0 + 1);
    let given = arena.give(Party::Host, Grantee::Domain(nobody), object, 4, Rights::Read);
    assert!(matches!(given, Err(WordsError::NoArena)));
    assert!(stranger.give_words(object, 4, Rights::Read).is_err());
    assert!(denied(&fault(&stranger, "peek", &[object])));
    // Groups that contain each other, by way of a third.
    let groups = [0, 1, 2].map(|_| arena.add_group(Party::Domain(first), true).expect("a group"));
    for (inner, outer) in [(0, 1), (1, 2)] {
        arena
            .admit_group(Party::Domain(first), groups[inner], groups[outer])
            .expect("no circle");
    }
    let circle = arena.admit_group(Party::Domain(first), groups[2], groups[0]);
    assert!(matches!(circle, Err(WordsError::Circle { .. })));
    // What is not one's own is neither given, taken nor freed.
    let me = Party::Domain(first);
    let given = arena.give(me, Grantee::Group(groups[0]), object, 4, Rights::Read);
    assert!(matches!(given, Err(WordsError::NotOwner { .. })));
    assert!(matches!(
        arena.revoke(me, object, 4),
        Err(WordsError::NotOwner { .. })
    ));
    assert!(matches!(arena.free(me, object), Err(WordsError::NotOwner { .. })));
    assert!(denied(&fault(&domain, "peek", &[object])));
}
