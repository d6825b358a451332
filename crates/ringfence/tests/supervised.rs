//! Who may give, take and free words, and that a running module feels it.

mod support;

use ringfence::{
    Access, Arena, CallError, Domain, Error, FaultKind, Imports, LoadOptions, Module, Ptr, Rights,
    WordsError, WordsPolicy,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::from_text_with;

const SOURCE: &str = r#"
unsigned read4(unsigned *p) { return *p; }
void write4(unsigned *p, unsigned v) { *p = v; }
void fill(unsigned char *p, unsigned long n) { for (unsigned long i = 0; i < n; i++) p[i] = (unsigned char)(i + 1); }
/* Until it is denied. */
void hammer(volatile unsigned *p, unsigned v) { for (;;) { p[0] = v; p[1] = v; p[2] = v; p[3] = v; } }
unsigned asks(void);
unsigned twice(unsigned *p) { unsigned first = *p; asks(); return first + *p; }
unsigned keeper_of;
void keep(unsigned *p) { *p = 7; }
struct node { struct node *next; unsigned value; unsigned secret; };
unsigned sum(struct node *n) { unsigned s = 0; for (; n; n = n->next) s += n->value; return s; }
unsigned peek(struct node *n) { return n->next->secret; }
unsigned length(const char *s) { unsigned n = 0; while (s[n]) n++; return n; }
"#;

fn accepting() -> LoadOptions {
    let mut options = LoadOptions::default();
    options.allow_words = true;
    options
}

fn module() -> Module {
    let options = [
        "-O2",
        "-fno-tree-loop-distribute-patterns",
        "-nostdlib",
        "-Wno-all",
        "--isolation=words",
        "--import=asks",
    ];
    from_text_with(SOURCE, &options, &accepting())
}

fn domain(arena: &Arena) -> Domain {
    let imports = Imports::new().arena(arena).func("asks", || 0_u32);
    Domain::new(&module(), imports).expect("a domain")
}

fn denied(error: &CallError) -> (u64, Access, Rights) {
    match error {
        CallError::Fault(fault) => match fault.kind {
            FaultKind::Denied {
                address,
                access,
                rights,
                ..
            } => (address, access, rights),
            ref other => panic!("{other:?}"),
        },
        other => panic!("{other}"),
    }
}

/// Whether it may, by trying.
fn may(domain: &Domain, address: u64, write: bool) -> bool {
    let tried = match write {
        false => domain
            .func::<(u64,), u32>("read4")
            .expect("a function")
            .call(address)
            .map(drop),
        true => domain
            .func::<(u64, u32), ()>("write4")
            .expect("a function")
            .call(address, 5)
            .map(drop),
    };
    match tried {
        Ok(()) => true,
        Err(e) => {
            assert_eq!(denied(&e).0, address);
            domain.reset().expect("a reset");
            false
        }
    }
}

fn rights_of(domain: &Domain, address: u64) -> Rights {
    let tried = match (may(domain, address, false), may(domain, address, true)) {
        (false, false) => Rights::None,
        (true, false) => Rights::Read,
        (true, true) => Rights::Write,
        (false, true) => panic!("writes and cannot read"),
    };
    assert_eq!(domain.word_rights(address), tried, "the table says so, too");
    tried
}

#[test]
fn owners_give_and_nobody_else() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let (owner, other) = (domain(&arena), domain(&arena));
    let at = arena.alloc_owned(&owner, 64).expect("its own");
    assert_eq!(rights_of(&owner, at + 60), Rights::Write);
    assert_eq!(rights_of(&owner, at + 64), Rights::None, "the word behind it");
    assert_eq!(rights_of(&other, at), Rights::None);
    arena
        .give_as(&owner, &other, at, 8, Rights::Read)
        .expect("its own");
    assert_eq!(
        (rights_of(&other, at + 4), rights_of(&other, at + 8)),
        (Rights::Read, Rights::None)
    );
    let raised = arena.give_as(&other, &other, at, 4, Rights::Write);
    assert!(matches!(raised, Err(WordsError::NotOwner { .. })), "{raised:?}");
    let passed_on = arena.give_as(&other, &owner, at, 4, Rights::Read);
    assert!(
        matches!(passed_on, Err(WordsError::NotOwner { .. })),
        "{passed_on:?}"
    );
    arena
        .give_as(&other, &other, at, 4, Rights::None)
        .expect("given up");
    assert_eq!(
        (rights_of(&other, at), rights_of(&other, at + 4)),
        (Rights::None, Rights::Read)
    );
    assert!(matches!(
        arena.free_as(&other, at),
        Err(WordsError::NotOwner { .. })
    ));
    assert!(matches!(
        arena.revoke_as(&other, at, 64),
        Err(WordsError::NotOwner { .. })
    ));
    arena.revoke_as(&owner, at, 64).expect("its own");
    assert_eq!(
        (rights_of(&other, at + 4), rights_of(&owner, at)),
        (Rights::None, Rights::Write)
    );
    // The host may all that.
    arena.give(&other, at, 64, Rights::Write).expect("the host");
    assert_eq!(rights_of(&other, at + 60), Rights::Write);
    // What goes takes its objects along.
    drop(owner);
    assert_eq!(rights_of(&other, at), Rights::None);
    assert!(matches!(arena.free(at), Err(WordsError::NoObject { .. })));
    let again = arena.alloc(64).expect("the place");
    assert_eq!((again, rights_of(&other, again)), (at, Rights::None));
}

#[test]
fn arenas_are_told_apart() {
    needs!(Words);
    let (one, two) = (Arena::new(4096).expect("one"), Arena::new(4096).expect("another"));
    let stranger = domain(&two);
    let at = one.alloc(16).expect("an object");
    assert!(matches!(
        one.give(&stranger, at, 16, Rights::Read),
        Err(WordsError::OtherArena)
    ));
    assert!(matches!(
        one.alloc_owned(&stranger, 16),
        Err(WordsError::OtherArena)
    ));
    let (group, far) = (
        one.group(true).expect("a group"),
        two.group(true).expect("a group"),
    );
    assert!(matches!(group.admit(&stranger), Err(WordsError::OtherArena)));
    assert!(matches!(
        two.give(&group, at, 16, Rights::Read),
        Err(WordsError::OtherArena)
    ));
    assert!(matches!(group.admit_group(&far), Err(WordsError::OtherArena)));
    assert!(matches!(
        two.give(&stranger, at, 16, Rights::Read),
        Err(WordsError::NoObject { .. })
    ));
}

#[test]
fn groups_have_what_they_were_given() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let (a, b) = (domain(&arena), domain(&arena));
    let at = arena.alloc(64).expect("an object");
    let before = arena.table_bytes();
    let (open, closed) = (
        arena.group(true).expect("one"),
        arena.group(false).expect("another"),
    );
    arena.give(&closed, at, 32, Rights::Write).expect("a group");
    arena.give(&open, at + 16, 32, Rights::Read).expect("a group");
    assert_eq!(rights_of(&a, at), Rights::None);
    assert!(arena.table_bytes() - before < 64 << 10, "virtual until joined");
    open.join(&a).expect("open");
    assert!(matches!(closed.join(&a), Err(WordsError::Closed(_))));
    assert_eq!(
        (rights_of(&a, at + 16), rights_of(&b, at + 16)),
        (Rights::Read, Rights::None)
    );
    closed.admit(&b).expect("the host");
    closed.admit_group(&open).expect("a group in a group");
    assert!(matches!(
        open.admit_group(&closed),
        Err(WordsError::Circle { .. })
    ));
    assert_eq!(
        (rights_of(&a, at), rights_of(&a, at + 32)),
        (Rights::Write, Rights::Read)
    );
    assert_eq!(
        (rights_of(&b, at), rights_of(&b, at + 32)),
        (Rights::Write, Rights::None)
    );
    open.expel(&a).expect("a member");
    assert!(matches!(open.expel(&a), Err(WordsError::NotMember(_))));
    assert_eq!(rights_of(&a, at), Rights::None);
    drop(closed);
    assert_eq!(rights_of(&b, at), Rights::None);
}

#[test]
fn a_call_brings_its_rights_along() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = domain(&arena);
    let policy = WordsPolicy::parse(
        "struct node 16 { next @0 struct node*; value @8 4; secret @12 4 }\n\
         fill(to: bytes, n: number) writes to[32]; keeps nothing\n\
         sum(n: struct node) reads n->value; reads n->next->value; keeps nothing\n\
         peek(n: struct node) reads n->value; reads n->next->value; keeps nothing\n\
         keep(p: bytes) writes p[4]; keeps p[4]\n\
         length(s: text) reads s as string",
    )
    .expect("a policy");
    let fill = domain
        .func_by::<(u64, u64), ()>("fill", &policy)
        .expect("a function");
    let packet = arena.alloc(144).expect("a packet");
    fill.call(packet, 32).expect("its part");
    assert_eq!(domain.word_rights(packet), Rights::None, "gone with the call");
    let Err(Error::Denied { source: error, .. }) = fill.call(packet, 33) else {
        panic!("the 33rd byte was written")
    };
    assert_eq!(denied(&error), (packet + 32, Access::Write, Rights::None));
    assert_eq!(domain.word_rights(packet), Rights::None, "gone by the fault");
    domain.reset().expect("a reset");
    // Two nodes in a list: their values, not their secrets.
    let last = arena.put([0_u32, 0, 5, 99]).expect("a node");
    let next = last.address();
    let first = arena
        .put([next as u32, (next >> 32) as u32, 3, 98])
        .expect("a node");
    let sum = domain.func_by::<(u64,), u32>("sum", &policy).expect("a function");
    // It reads the last one's pointer, too, which the policy does not say.
    let Err(Error::Denied { source: error, .. }) = sum.call(first.address()) else {
        panic!("the end of the list was read")
    };
    assert_eq!(denied(&error).0, next);
    domain.reset().expect("a reset");
    let peek = domain
        .func_by::<(u64,), u32>("peek", &policy)
        .expect("a function");
    let Err(Error::Denied { source: error, .. }) = peek.call(first.address()) else {
        panic!("the secret was read")
    };
    assert_eq!(denied(&error), (next + 12, Access::Read, Rights::None));
    domain.reset().expect("a reset");
    let keep = domain.func_by::<(u64,), ()>("keep", &policy).expect("a function");
    keep.call(packet + 64).expect("its word");
    assert_eq!(
        (domain.word_rights(packet + 64), domain.word_rights(packet + 68)),
        (Rights::Write, Rights::None)
    );
    let text = arena.put(*b"twelve bytes\0\0\0\0").expect("a text");
    let length = domain
        .func_by::<(u64,), u32>("length", &policy)
        .expect("a function");
    assert_eq!(
        length
            .call(text.address())
            .expect("a string")
            .into_inner_unchecked(),
        12
    );
    // What a policy cannot tell is refused before anything is called.
    let faults = domain.usage().faults;
    for (address, wanted) in [(packet + 130, "no object"), (0x1234, "not in the arena")] {
        let error = fill.call(address, 32).expect_err("no such object").to_string();
        assert!(error.contains(wanted), "{error}");
    }
    let nothing = domain
        .func_by::<(u64,), u32>("read4", &policy)
        .expect("a function");
    let error = nothing.call(packet).expect_err("no policy").to_string();
    assert!(error.contains("there is no policy for read4"), "{error}");
    assert_eq!(domain.usage().faults, faults);
}

#[test]
fn objects_of_running_calls_stay() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let at = arena.alloc(16).expect("an object");
    let (tried, revokes) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (in_host, seen, take) = (arena.clone(), tried.clone(), revokes.clone());
    let asks = move || {
        let freed = in_host.free(at);
        seen.store(
            matches!(freed, Err(WordsError::InUse { calls: 1, .. })),
            Ordering::Relaxed,
        );
        if take.load(Ordering::Relaxed) {
            in_host.revoke(at, 16).expect("revoked from the call");
        }
        0_u32
    };
    let imports = Imports::new().arena(&arena).func("asks", asks);
    let domain = Domain::new(&module(), imports).expect("a domain");
    let policy = WordsPolicy::parse("twice(p: bytes) reads p[4]").expect("a policy");
    let twice = domain
        .func_by::<(u64,), u32>("twice", &policy)
        .expect("a function");
    twice.call(at).expect("in use, so still there");
    assert!(tried.load(Ordering::Relaxed));
    revokes.store(true, Ordering::Relaxed);
    let Err(Error::Denied { source: error, .. }) = twice.call(at) else {
        panic!("read after its rights were taken")
    };
    assert_eq!(denied(&error), (at, Access::Read, Rights::None));
    arena.free(at).expect("no call any more");
}

#[test]
fn what_was_taken_is_taken_for_threads_in_the_middle_of_an_access() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = domain(&arena);
    let hammer = domain.func::<(u64, u32), ()>("hammer").expect("a function");
    for round in 0..400_u32 {
        let object = arena.put([0_u32; 4]).expect("an object");
        let address = object.address();
        domain.give_words(address, 16, Rights::Write).expect("rights");
        std::thread::scope(|scope| {
            let running = scope.spawn(|| hammer.call(address, round + 2));
            while object.read()[3] == 0 {
                std::thread::yield_now();
            }
            let taken = match round % 3 {
                0 => arena.revoke(address, 16),
                1 => domain.give_words(address, 16, Rights::None),
                _ => domain.give_words(address, 16, Rights::Read),
            };
            match taken {
                // Not one write comes after that.
                Ok(()) => {
                    object.write([1; 4]);
                    for _ in 0..2000 {
                        assert_eq!(object.read(), [1; 4], "round {round}");
                    }
                }
                // On a machine with more to do than processors the thread may have waited for one.
                Err(WordsError::Inside) => {}
                Err(other) => panic!("{other}"),
            }
            let error = running.join().expect("the thread").expect_err("denied");
            assert_eq!(denied(&error).1, Access::Write);
        });
        domain.reset().expect("a reset");
    }
}

#[test]
fn tables_have_a_limit() {
    needs!(Words);
    let arena = Arena::limited(1 << 20, 256 << 10).expect("an arena");
    let domain = domain(&arena);
    let at = arena.alloc(900 << 10).expect("a large object");
    let given = domain.give_words(at, 900 << 10, Rights::Write);
    assert!(matches!(given, Err(WordsError::Tables { .. })), "{given:?}");
    for part in [0, 4096, 100 << 10, (900 << 10) - 4] {
        assert_eq!(rights_of(&domain, at + part), Rights::None);
    }
    domain.give_words(at + 4096, 4096, Rights::Read).expect("a part");
    assert_eq!(
        (rights_of(&domain, at + 4096), rights_of(&domain, at + 8192)),
        (Rights::Read, Rights::None)
    );
}

#[test]
fn a_run_teaches_its_policy_which_suffices() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = domain(&arena);
    let signatures = WordsPolicy::parse(
        "struct node 16 { next @0 struct node*; value @8 4; secret @12 4 }\n\
         fill(to: bytes, n: number)\n\
         peek(n: struct node)\n\
         length(s: text)",
    )
    .expect("signatures");
    let packet = arena.alloc(144).expect("a packet");
    let last = arena.put([0_u32, 0, 5, 99]).expect("a node");
    let next = last.address();
    let first = arena
        .put([next as u32, (next >> 32) as u32, 3, 98])
        .expect("a node");
    let text = arena.put(*b"twelve bytes\0\0\0\0").expect("a text");
    let fill = domain.func::<(u64, u64), ()>("fill").expect("a function");
    let peek = domain.func::<(u64,), u32>("peek").expect("a function");
    let length = domain.func::<(u64,), u32>("length").expect("a function");
    let mut learner = domain.learn_words(&signatures).expect("it learns");
    learner
        .call("fill", &[packet, 32], || fill.call(packet, 32))
        .expect("allowed");
    let secret = learner.call("peek", &[first.address()], || peek.call(first.address()));
    assert_eq!(secret.expect("allowed").into_inner_unchecked(), 99);
    let twelve = learner.call("length", &[text.address()], || length.call(text.address()));
    assert_eq!(twelve.expect("allowed").into_inner_unchecked(), 12);
    let learned = learner.policy().expect("all noted");
    for line in [
        "fill(to: bytes, n: number) writes to[32]; keeps nothing",
        "peek(n: struct node) reads n->next->secret; keeps nothing",
        "length(s: text) reads s as string; keeps nothing",
    ] {
        assert!(learned.contains(line), "{learned}");
    }
    drop(learner);
    // Nothing was granted by it.
    assert_eq!(rights_of(&domain, packet), Rights::None);
    let policy = WordsPolicy::parse(&learned).expect("it is one");
    let fill = domain
        .func_by::<(u64, u64), ()>("fill", &policy)
        .expect("a function");
    fill.call(packet, 32).expect("as it was learned");
    let error = fill.call(packet, 33).expect_err("not learned").to_string();
    assert!(
        error.contains("a policy that allows it: fill(to: bytes, n: number) writes to[33]"),
        "{error}"
    );
    domain.reset().expect("a reset");
    let peek = domain
        .func_by::<(u64,), u32>("peek", &policy)
        .expect("a function");
    peek.call(first.address()).expect("as it was learned");
    let length = domain
        .func_by::<(u64,), u32>("length", &policy)
        .expect("a function");
    length.call(text.address()).expect("as it was learned");
}

#[test]
fn a_denial_tells_where_what_and_what_is_missing() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = domain(&arena);
    let policy = WordsPolicy::parse(
        "struct node 16 { next @0 struct node*; value @8 4; secret @12 4 }\n\
         sum(n: struct node) reads n->value; keeps nothing",
    )
    .expect("a policy");
    let node = arena.alloc_as(&policy, "node").expect("a node");
    let sum = domain.func_by::<(u64,), u32>("sum", &policy).expect("a function");
    let error = sum.call(node).expect_err("it follows the list").to_string();
    for part in [
        "sum",
        "may not read struct node.next, 8 bytes",
        "the object: 16 bytes at 0x0 of the host",
        "it has: no rights",
        "a policy that allows it: sum(n: struct node) reads n->next",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(arena.alloc_as(&policy, "nodes").is_err());
}

#[test]
fn the_host_is_no_way_around_the_tables() {
    needs!(Words);
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = domain(&arena);
    let at = arena.alloc(64).expect("an object");
    domain.give_words(at, 64, Rights::Write).expect("rights");
    // What the host reads and writes for a domain is what the domain names: objects as far as its rights reach, and nothing of them by the
    // host's address, in the view or in the table.
    let memory = domain.memory();
    let alias = memory.base() + (at & 0xFFFF_FFFF);
    memory
        .write::<u32>(Ptr::from_address(alias + 60), 1)
        .expect("its word");
    assert!(memory.write::<u32>(Ptr::from_address(alias + 62), 1).is_err());
    domain.give_words(at, 64, Rights::Read).expect("rights");
    assert!(memory.write::<u32>(Ptr::from_address(alias), 1).is_err());
    let word = memory
        .read::<u32>(Ptr::from_address(alias + 60))
        .expect("its word");
    assert_eq!(word.into_inner_unchecked(), 1);
    domain.give_words(at, 64, Rights::None).expect("taken");
    for address in [at, alias, alias + 0x7FFF_0000, memory.base() + 0x7FFF_0000] {
        assert!(
            memory.read::<u32>(Ptr::from_address(address)).is_err(),
            "{address:#x}"
        );
        assert!(
            memory.write::<u32>(Ptr::from_address(address), 1).is_err(),
            "{address:#x}"
        );
    }
    // The table can be read, as the domain does, and not be written.
    let table = alias + 0x2000_0000;
    assert!(memory.write::<u8>(Ptr::from_address(table), 0xFF).is_err());
    assert_eq!(rights_of(&domain, at + 64), Rights::None);
}

/// What is written behind a function for objects of the host's keeps the lines of what it stands for.
#[test]
fn a_denied_access_is_told_with_its_line() {
    const LINES: &str = "#line 1
void put(unsigned *a, unsigned *b, unsigned *c)
{
    *a = 1;
    *b = 2;
    *c = 3;
}
int add(unsigned *n, unsigned *from)
{
    for (unsigned i = 0; i < *n; i++)
        from[1] +=
            from[0];
    return 0;
}
";
    let options = ["-O2", "-g", "-nostdlib", "-Wno-all", "--isolation=words"];
    let module = from_text_with(LINES, &options, &accepting());
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = Domain::new(&module, Imports::new().arena(&arena)).expect("a domain");
    let object = |rights| {
        let address = arena.alloc(64).expect("room");
        domain.give_words(address, 64, rights).expect("whole words");
        address
    };
    let (mine, seen, not) = (object(Rights::Write), object(Rights::Read), object(Rights::None));
    arena.give(&domain, seen, 4, Rights::Write).expect("whole words");
    let line = |name: &str, arguments: [u64; 3]| {
        let f = domain.func::<(u64, u64, u64), ()>(name).expect("a function");
        let error = f
            .call(arguments[0], arguments[1], arguments[2])
            .expect_err("denied")
            .to_string();
        domain.reset().expect("a reset");
        let end = error.rsplit_once(".c:").map(|(_, line)| line.to_owned());
        end.unwrap_or_else(|| panic!("no line in: {error}"))
    };
    assert_eq!(line("put", [not, mine, mine]), "3)");
    assert_eq!(line("put", [mine, seen + 4, mine]), "4)");
    assert_eq!(line("put", [mine, mine, not]), "5)");
    domain
        .func::<(u64, u64, u64), ()>("put")
        .expect("a function")
        .call(mine, mine, mine)
        .expect("all given");
    assert_eq!(line("add", [not, mine, 0]), "9)");
    assert_eq!(line("add", [mine, seen + 4, 0]), "10)");
}
