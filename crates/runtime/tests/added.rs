//! Modules that come to a living domain and go again, and what can be tried with that.

mod support;

use ringfence_runtime::{
    CallError, Domain, DomainError, DomainOptions, FaultKind, Imports, InUse, LoadOptions, MemoryError,
    Module, ModuleError, OnFailure, Signature, SnapshotError,
};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use support::living::{Callers, Named, PATIENCE, is_bad_target, run};
use support::{build, call, domain, domain_with, fault, imports, module};

fn load(file: &[u8], name: &str) -> Module {
    Module::from_bytes(name, file, &LoadOptions::default()).expect("module")
}

fn file(name: &str, functions: &str, data: &str) -> Vec<u8> {
    let functions = format!("--import={functions}");
    let data = format!("--import-data={data}");
    let out = build(name, &[&functions, &data]);
    let bytes = std::fs::read(&out).expect("the module");
    let _ = std::fs::remove_file(out);
    bytes
}

/// A fresh one each time.
fn plugin() -> Module {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    load(
        FILE.get_or_init(|| file("plugin", "add,host_add", "counter")),
        "plugin.rf",
    )
}

fn user() -> Module {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    load(FILE.get_or_init(|| file("user", "next", "zeroed")), "user.rf")
}

fn broken() -> Module {
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    load(FILE.get_or_init(|| file("broken", "", "counter")), "broken.rf")
}

fn within(d: &Domain, module: &str, name: &str, args: &[u64]) -> Result<u64, CallError> {
    run(&d.entry_in(module, name).expect("entry"), args)
}

type Callback = Box<dyn FnMut(&Domain) + Send>;

/// A domain whose `host_add` runs what is in the slot first.
struct Hooked {
    domain: Domain,
    hook: Arc<Mutex<Option<Callback>>>,
}

fn hooked(modules: &[Module]) -> Hooked {
    let hook: Arc<Mutex<Option<Callback>>> = Arc::default();
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let (h, o) = (hook.clone(), own.clone());
    let imports = imports().closure("host_add", move |f| {
        let taken = h.lock().unwrap().take();
        if let (Some(mut hook), Some(domain)) = (taken, o.get()) {
            hook(domain);
        }
        f.result[0] = f.ints[0].wrapping_add(f.ints[1]);
        Ok(())
    });
    let domain = Domain::new(modules, imports, &DomainOptions::default()).expect("domain");
    assert!(own.set(domain.clone()).is_ok());
    Hooked { domain, hook }
}

impl Hooked {
    fn on_call(&self, hook: impl FnMut(&Domain) + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }
}

#[test]
fn a_module_is_called_by_host_and_domain() {
    let d = domain();
    let before = d.usage();
    d.add("p", &plugin()).expect("add");
    for (name, args, result) in [
        ("was_constructed", &[][..], 42),
        ("next", &[], 41),
        ("next", &[], 43),
        ("next_zeroed", &[], 1),
        ("next_local", &[], 101),
        ("next_local_zero", &[], 1),
        ("letter", &[0], u64::from(b'p')),
        ("letter", &[1], u64::from(b'g')),
        ("of_first", &[20, 30], 55),
        ("of_host", &[3, 4], 7),
        ("choose", &[0], 11),
        ("choose", &[1], 22),
        ("choose", &[2], 33),
    ] {
        assert_eq!(within(&d, "p", name, args).unwrap(), result, "{name}");
        assert!(run(&d.entry(name).unwrap(), args).is_ok(), "{name}");
    }
    // The module that was there first reaches it through an address, without a gate.
    let pick = d.entry_in("p", "of_host").unwrap();
    assert_eq!(call(&d, "through", &[pick.address(), 20, 30]).unwrap(), 51);
    assert_eq!(
        run(&d.entry_by_address(pick.address()).unwrap(), &[1, 1]).unwrap(),
        2
    );
    assert_eq!(d.as_ref().find(Some("p"), "of_host"), Some(pick.address()));
    assert_eq!(d.as_ref().find(None, "of_host"), Some(pick.address()));
    let zeroed = d.symbol("zeroed").expect("an object");
    let mut word = [0; 8];
    d.as_ref().read(zeroed, &mut word).unwrap();
    assert_ne!(u64::from_le_bytes(word), 0);
    assert_eq!(d.added_names(), ["p"]);
    let during = d.usage();
    assert!(during.modules > 0 && during.memory > before.memory);

    // A thread that comes later has its own variables, with their initial values.
    let other = d.clone();
    std::thread::spawn(move || {
        assert_eq!(within(&other, "p", "next_local", &[]).unwrap(), 101);
        assert_eq!(within(&other, "p", "next_local_zero", &[]).unwrap(), 1);
        assert_eq!(call(&other, "thread_local_next", &[]).unwrap(), 7);
    })
    .join()
    .unwrap();

    // The destructor writes there.
    let seen = d.as_ref().alloc(8, 8).unwrap();
    within(&d, "p", "tell_end", &[seen]).unwrap();
    d.remove("p").expect("remove");
    d.as_ref().read(seen, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 1, "the destructor ran once");
    d.as_ref().free(seen).unwrap();
    assert!(matches!(run(&pick, &[1, 1]), Err(CallError::Removed)));
    assert!(matches!(
        d.entry_in("p", "next"),
        Err(DomainError::NoModule { .. })
    ));
    assert!(matches!(d.entry("next"), Err(DomainError::NoExport { .. })));
    assert!(d.symbol("zeroed").is_none() && d.as_ref().find(Some("p"), "next").is_none());
    assert!(d.entry_by_address(pick.address()).is_err());
    assert_eq!(d.usage().modules, 0);
    // Neither text nor data is accessible any more.
    for address in [pick.address(), zeroed] {
        assert!(matches!(
            d.as_ref().read(address, &mut word),
            Err(MemoryError::Unmapped { .. })
        ));
    }
    assert!(!d.faulted());
    assert!(is_bad_target(call(&d, "through", &[pick.address(), 1, 1])));
}

#[test]
fn it_starts_afresh_each_time() {
    let d = domain();
    call(&d, "add", &[1, 1]).unwrap();
    let memory = d.usage().memory;
    let same = plugin();
    for round in 0..200 {
        // The same module, and one of its own labels, in turn.
        let fresh = plugin();
        d.add("p", if round % 2 == 0 { &same } else { &fresh }).unwrap();
        assert_eq!(within(&d, "p", "was_constructed", &[]).unwrap(), 42);
        for (name, value) in [("next", 41), ("next_local", 101), ("next_local_zero", 1)] {
            assert_eq!(within(&d, "p", name, &[]).unwrap(), value);
        }
        assert_eq!(within(&d, "p", "choose", &[round]).unwrap(), 11 * (1 + round % 3));
        d.remove("p").unwrap();
        assert_eq!((d.usage().memory, d.usage().modules), (memory, 0));
    }
}

#[test]
fn names_and_modules_are_unique() {
    let d = domain();
    let p = plugin();
    d.add("p", &p).unwrap();
    assert!(matches!(d.add("p", &plugin()), Err(ModuleError::Exists { .. })));
    // Two copies would have the same label identifiers.
    assert!(matches!(d.add("q", &p), Err(ModuleError::Twice { .. })));
    assert!(matches!(d.add("q", &module()), Err(ModuleError::Twice { .. })));
    assert!(matches!(
        Domain::new(&[module(), module()], imports(), &DomainOptions::default()),
        Err(DomainError::Layout { .. })
    ));
    assert!(matches!(d.remove("q"), Err(ModuleError::Unknown { .. })));
    // Its file once more is another module.
    d.add("q", &plugin()).unwrap();
    for _ in 0..3 {
        within(&d, "q", "next", &[]).unwrap();
    }
    assert_eq!(within(&d, "p", "next", &[]).unwrap(), 41, "data of its own");
    for n in 0..3 {
        assert_eq!(within(&d, "q", "choose", &[n]).unwrap(), 11 * (n + 1));
        assert_eq!(within(&d, "p", "choose", &[n]).unwrap(), 11 * (n + 1));
    }
    assert_eq!(
        run(&d.entry("next").unwrap(), &[]).unwrap(),
        42,
        "the first one's"
    );
    d.remove("p").unwrap();
    assert_eq!(run(&d.entry("next").unwrap(), &[]).unwrap(), 44);
    assert_eq!(d.added_names(), ["q"]);
}

#[test]
fn what_is_missing_or_too_much_changes_nothing() {
    let d = domain();
    let usage = d.usage();
    let unresolved = d.add("u", &user());
    assert!(
        matches!(&unresolved, Err(ModuleError::Link { source, .. })
            if matches!(&**source, DomainError::Unresolved { symbol, .. } if symbol == "next" || symbol == "zeroed")),
        "{unresolved:?}"
    );
    assert_eq!(d.usage(), usage);
    // What is mapped where a module would go: nothing.
    d.add("p", &plugin()).unwrap();
    let at = d.entry_in("p", "next").unwrap().address();
    d.remove("p").unwrap();
    assert!(d.as_ref().read(at, &mut [0]).is_err());

    let mut options = DomainOptions::default();
    options.module_limit = 64 << 10;
    let small = domain_with(&options);
    assert!(matches!(
        small.add("p", &plugin()),
        Err(ModuleError::Full {
            limit: 0x1_0000,
            used: 0,
            ..
        })
    ));
    options.module_limit = u64::MAX;
    // The data of the first module count, and stacks; nothing is left for another module.
    let called = |options: &DomainOptions| {
        let d = domain_with(options);
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
        d
    };
    options.memory_limit = called(&options).usage().memory + 1000;
    let poor = called(&options);
    assert!(matches!(
        poor.add("p", &plugin()),
        Err(ModuleError::Memory(MemoryError::Limit { limit, .. })) if limit == options.memory_limit
    ));
    options.memory_limit = 16 << 20;
    options.thread_local_reserve = 24;
    let narrow = domain_with(&options);
    narrow.add("p", &plugin()).expect("16 bytes fit");
    assert!(matches!(
        narrow.add("q", &plugin()),
        Err(ModuleError::ThreadLocal { wanted: 16, .. })
    ));
    narrow.remove("p").unwrap();
    narrow.add("q", &plugin()).expect("the room is free again");
    options.thread_local_reserve = 2 << 20;
    assert!(matches!(
        Domain::new(&[module()], imports(), &options),
        Err(DomainError::Option {
            option: "thread_local_reserve",
            ..
        })
    ));
    for d in [d, small, poor] {
        assert_eq!(d.usage().modules, 0);
        assert!(d.added_names().is_empty());
        assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    }
}

#[test]
fn the_area_of_images_is_finite() {
    let mut options = DomainOptions::default();
    options.module_limit = u64::MAX;
    let big = {
        let out = build("big", &[]);
        let bytes = std::fs::read(&out).unwrap();
        let _ = std::fs::remove_file(out);
        bytes
    };
    let len = u64::from(
        load(&big, "big")
            .segments()
            .last()
            .map_or(0, |s| s.offset + s.len),
    );
    options.memory_limit = u64::MAX;
    let d = domain_with(&options);
    let rounds = (1 << 30) / len + 1;
    if rounds > 2000 {
        // Too small a module to fill a gigabyte with: its limit is tested elsewhere.
        return;
    }
    let mut count = 0;
    let full = loop {
        match d.add(&format!("m{count}"), &load(&big, "big")) {
            Ok(()) => count += 1,
            Err(e) => break e,
        }
        assert!(count < rounds);
    };
    assert!(matches!(full, ModuleError::Full { .. }), "{full:?}");
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
    d.remove("m0").unwrap();
    d.add("again", &load(&big, "big")).unwrap();
}

#[test]
fn modules_link_against_those_before_them() {
    let d = domain();
    d.add("p", &plugin()).unwrap();
    d.add("u", &user()).unwrap();
    assert_eq!(within(&d, "u", "twice_next", &[]).unwrap(), 82);
    assert_eq!(within(&d, "p", "next", &[]).unwrap(), 42);
    within(&d, "p", "next_zeroed", &[]).unwrap();
    assert_eq!(within(&d, "u", "see_zeroed", &[]).unwrap(), 1);
    let needed = d.remove("p");
    assert!(
        matches!(&needed, Err(ModuleError::Needed { by, .. }) if by == "u"),
        "{needed:?}"
    );
    assert_eq!(within(&d, "u", "twice_next", &[]).unwrap(), 86, "as before");
    d.remove("u").unwrap();
    d.remove("p").unwrap();
}

#[test]
fn host_functions_are_those_that_the_domain_was_made_with() {
    let bytes = file("plain", "", "");
    let plain = || load(&bytes, "plain.rf");
    let given = || {
        Imports::new().closure("host_add", |f| {
            f.result[0] = f.ints[0] * f.ints[1];
            Ok(())
        })
    };
    let needs_more = file("two", "add,failing", "counter");
    // `plugin` needs `add` of the first module and `host_add` of the host; here the host gives both.
    let both = || {
        given().closure("add", |f| {
            f.result[0] = f.ints[0] + f.ints[1] + 1000;
            Ok(())
        })
    };
    let mut options = DomainOptions::default();
    let d = Domain::new(&[plain()], both(), &options).unwrap();
    let refused = d.add("p", &plugin());
    assert!(
        matches!(
            refused,
            Err(ModuleError::Registers { .. } | ModuleError::Link { .. })
        ),
        "{refused:?}"
    );
    options.extensible = true;
    let d = Domain::new(&[plain()], both(), &options).unwrap();
    let unresolved = d.add("t", &load(&needs_more, "two.rf"));
    assert!(
        matches!(unresolved, Err(ModuleError::Link { .. })),
        "{unresolved:?}"
    );
    let counter = d.add("p", &plugin());
    assert!(
        matches!(&counter, Err(ModuleError::Link { source, .. }) if source.to_string().contains("counter")),
        "variables come from modules: {counter:?}"
    );
    d.add("b", &load(support::bytes(), "basic.rf"))
        .expect_err("host_call is not given");
    let d = Domain::new(
        &[plain()],
        support::imports().closure("add", |f| {
            f.result[0] = f.ints[0] + f.ints[1] + 1000;
            Ok(())
        }),
        &options,
    )
    .unwrap();
    d.add("b", &load(support::bytes(), "basic.rf")).unwrap();
    assert_eq!(within(&d, "b", "call_out", &[2, 3]).unwrap(), 6);
    d.add("p", &plugin()).unwrap();
    assert_eq!(
        within(&d, "p", "of_first", &[2, 3]).unwrap(),
        10,
        "a module's before the host's"
    );
}

#[test]
fn a_failing_constructor_takes_the_module_back() {
    let d = domain();
    let counter = d.symbol("counter").unwrap();
    d.as_ref().write(counter, &77i32.to_le_bytes()).unwrap();
    let usage = d.usage();
    let failed = d.add("b", &broken());
    assert!(
        matches!(&failed, Err(ModuleError::Init { source, .. })
            if matches!(&**source, CallError::Fault(f) if f.backtrace()[0].function.as_deref() == Some("second"))),
        "{failed:?}"
    );
    assert!(d.faulted(), "a fault is one of the domain");
    assert_eq!((d.usage().modules, d.usage().memory), (0, usage.memory));
    assert!(d.added_names().is_empty());
    assert!(matches!(d.add("b", &broken()), Err(ModuleError::Faulted)));
    d.reset().unwrap();
    d.add("b", &broken()).expect("the counter is what it was");
    assert_eq!(within(&d, "b", "how_many", &[]).unwrap(), 1);
    // The destructor fails: the module stays until the reset.
    let failed = d.remove("b");
    assert!(matches!(failed, Err(ModuleError::Fini { .. })), "{failed:?}");
    assert_eq!(d.added_names(), ["b"]);
    assert!(matches!(d.remove("b"), Err(ModuleError::Faulted)));
    d.reset().unwrap();
    assert!(d.added_names().is_empty() && d.usage().modules == 0);
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
}

#[test]
fn faults_in_it_are_told_with_its_names() {
    let d = domain();
    d.add("p", &plugin()).unwrap();
    let f = match within(&d, "p", "fail", &[1]) {
        Err(CallError::Fault(f)) => f,
        other => panic!("{other:?}"),
    };
    let frame = &f.backtrace()[0];
    assert_eq!(frame.function.as_deref(), Some("fail"));
    assert_eq!(frame.module.as_deref(), Some("plugin.rf"));
    assert!(frame.line.is_some());
    // Gone with the reset, and named still.
    d.reset().unwrap();
    assert_eq!(f.backtrace()[0].function.as_deref(), Some("fail"));
}

#[test]
fn a_reset_removes_it_and_a_snapshot_refuses() {
    let d = domain();
    d.add("p", &plugin()).unwrap();
    let e = d.entry_in("p", "next").unwrap();
    assert_eq!(run(&e, &[]).unwrap(), 41);
    assert!(
        matches!(d.checkpoint(), Err(SnapshotError::Held(what)) if what.contains("modules")),
        "a snapshot"
    );
    assert_eq!(run(&e, &[]).unwrap(), 42, "as before");
    d.reset().unwrap();
    assert!(matches!(run(&e, &[]), Err(CallError::Removed)));
    assert!(d.added_names().is_empty());
    assert!(is_bad_target(call(&d, "through", &[e.address(), 1, 1])));
    d.reset().unwrap();
    d.checkpoint().expect("nothing was added");
    d.add("p", &plugin()).unwrap();
    assert_eq!(within(&d, "p", "next", &[]).unwrap(), 41);
    assert_eq!(within(&d, "p", "next_local", &[]).unwrap(), 101);
    // A new lane of a domain with a snapshot.
    let other = d.clone();
    std::thread::spawn(move || assert_eq!(within(&other, "p", "next_local", &[]).unwrap(), 101))
        .join()
        .unwrap();
    d.recycle().unwrap();
    assert_eq!((d.usage().modules, d.added_names().len()), (0, 0));
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
}

#[test]
fn what_is_on_the_stack_stays() {
    let h = hooked(&[module()]);
    h.domain.add("p", &plugin()).unwrap();
    h.domain.add("q", &plugin()).unwrap();
    let results: Arc<Mutex<Vec<Result<(), ModuleError>>>> = Arc::default();
    let places = Arc::new(Mutex::new(Vec::new()));
    let (seen, at) = (results.clone(), places.clone());
    let hook = move |d: &Domain| {
        let mut seen = seen.lock().unwrap();
        seen.push(d.remove("p"));
        let place = d.entry_in("q", "next").unwrap().address();
        seen.push(d.remove("q"));
        // Its place is not used while the call goes on.
        d.add("r", &plugin()).unwrap();
        let next = d.entry_in("r", "next").unwrap();
        at.lock().unwrap().push((place, next.address()));
        assert_eq!(run(&next, &[]).unwrap(), 41, "nested");
        d.remove("r").unwrap();
    };
    h.on_call(hook.clone());
    assert_eq!(within(&h.domain, "p", "of_host", &[2, 3]).unwrap(), 5);
    // Below a frame of the first module.
    h.domain.add("q", &plugin()).unwrap();
    h.on_call(hook);
    let of_host = h.domain.entry_in("p", "of_host").unwrap().address();
    assert_eq!(call(&h.domain, "through", &[of_host, 2, 3]).unwrap(), 6);
    let results = results.lock().unwrap();
    assert!(
        matches!(
            &results[..],
            [
                Err(ModuleError::InUse(InUse::OnStack { .. })),
                Ok(()),
                Err(ModuleError::InUse(InUse::OnStack { .. })),
                Ok(())
            ]
        ),
        "{results:?}"
    );
    for (old, new) in &*places.lock().unwrap() {
        assert_ne!(old, new);
    }
    // It has returned; a pointer to a function of it does not hold it.
    h.on_call(|d| d.remove("p").expect("only a pointer is there"));
    let next = h.domain.entry_in("p", "next").unwrap();
    assert!(is_bad_target(
        call(
            &h.domain,
            "through",
            &[h.domain.entry("call_out").unwrap().address(), next.address(), 0]
        )
        .and_then(|_| call(&h.domain, "through", &[next.address(), 0, 0]))
    ));
}

#[test]
fn a_frame_that_called_setjmp_keeps_it() {
    let h = hooked(&[module()]);
    let bytes = file("jumps", "host_enter", "");
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let tries = Arc::new(Mutex::new(Vec::new()));
    let (o, t) = (own.clone(), tries.clone());
    let imports = imports().closure("host_enter", move |_| {
        t.lock().unwrap().push(o.get().unwrap().remove("j"));
        Ok(())
    });
    let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
    assert!(own.set(d.clone()).is_ok());
    d.add("j", &load(&bytes, "jumps.rf")).unwrap();
    assert_eq!(within(&d, "j", "rounds", &[5]).unwrap(), 1577);
    assert_eq!(within(&d, "j", "outer", &[5]).unwrap(), 42);
    let _ = within(&d, "j", "cross", &[]);
    let tries = tries.lock().unwrap();
    assert!(!tries.is_empty());
    assert!(
        tries
            .iter()
            .all(|t| matches!(t, Err(ModuleError::InUse(InUse::OnStack { .. })))),
        "{tries:?}"
    );
    drop(h);
}

#[test]
fn other_threads_inside_keep_it() {
    let d = domain();
    d.add("p", &plugin()).unwrap();
    let spinning = {
        let d = d.clone();
        std::thread::spawn(move || within(&d, "p", "spin", &[]))
    };
    while d.usage().active == 0 {
        std::thread::yield_now();
    }
    let busy = d.remove("p");
    assert!(
        matches!(busy, Err(ModuleError::InUse(InUse::Busy { lanes: 1, .. }))),
        "{busy:?}"
    );
    assert_eq!(within(&d, "p", "next", &[]).unwrap(), 41, "as before");
    d.add("q", &plugin()).expect("adding needs no quiet");
    assert_eq!(within(&d, "q", "next_local", &[]).unwrap(), 101);
    assert!(matches!(
        d.remove("q"),
        Err(ModuleError::InUse(InUse::Busy { .. }))
    ));
    d.interrupt();
    assert!(spinning.join().unwrap().is_err());
    d.reset().unwrap();
    assert!(d.added_names().is_empty());
}

/// Threads call through pointers and names as fast as they can while modules come and go, at the same places. What comes back is
/// a result of code that was there, or an error, and never anything else.
#[test]
fn calls_race_with_adding_and_removing() {
    let d = domain();
    d.add("p", &plugin()).unwrap();
    let pointer = d.entry_in("p", "of_first").unwrap().address();
    let named = Named {
        find: |d| d.entry_in("p", "choose").ok(),
        args: &[1],
        results: 22..23,
    };
    let callers = Callers::start(&d, pointer, 1106..1107, named);
    let modules = [plugin(), plugin()];
    let begin = Instant::now();
    let (mut added, mut busy, mut resets) = (0u64, 0u64, 0u64);
    // As many as prove something, however busy the machine is.
    let enough = |added: u64| added > 200 && begin.elapsed() > Duration::from_millis(1200);
    while !enough(added) && begin.elapsed() < PATIENCE {
        match d.remove("p") {
            Ok(()) | Err(ModuleError::Unknown { .. } | ModuleError::Faulted) => {}
            Err(ModuleError::InUse(InUse::Busy { .. })) => busy += 1,
            Err(ModuleError::Fini { source, .. }) => assert!(d.faulted(), "{source}"),
            Err(e) => panic!("{e:?}"),
        }
        match d.add("p", &modules[(added % 2) as usize]) {
            Ok(()) => {
                added += 1;
                if let Ok(e) = d.entry_in("p", "of_first") {
                    callers.pointer.store(e.address(), Ordering::Relaxed);
                }
            }
            Err(ModuleError::Exists { .. } | ModuleError::Faulted) => {}
            Err(ModuleError::Init { source, .. }) => assert!(d.faulted(), "{source}"),
            Err(e) => panic!("{e:?}"),
        }
        if d.faulted() && d.reset().is_ok() {
            resets += 1;
        }
    }
    let (good, bad) = callers.stop();
    println!("{good} good calls, {bad} faults, {added} added, {busy} busy, {resets} resets");
    assert!(good > 100 && added > 50);
}

#[test]
fn another_domain_s_grant_goes_with_it() {
    let a = domain();
    let two = Signature {
        ints: 2,
        int_results: 1,
        ..Signature::NOTHING
    };
    let b = Domain::new(
        &[module()],
        imports().slot("host_add", two, OnFailure::End),
        &DomainOptions::default(),
    )
    .expect("domain");
    a.add("p", &plugin()).unwrap();
    let e = a.entry_in("p", "of_host").unwrap();
    let grant = b.grant("host_add", &e).unwrap();
    assert_eq!(call(&b, "call_out", &[10, 20]).unwrap(), 31);
    type Sum = extern "C" fn(u64, u64) -> u64;
    // SAFETY: a thunk that passes all registers.
    let thunk = unsafe { std::mem::transmute::<*const std::ffi::c_void, Sum>(e.thunk(Signature::UNKNOWN)) };
    assert_eq!(thunk(4, 5), 9);
    a.remove("p").unwrap();
    assert!(!grant.is_live());
    assert_eq!(thunk(4, 5), 0);
    assert!(matches!(
        ringfence_runtime::domain::take_error(),
        Some(CallError::Removed)
    ));
    let f = fault(&b, "call_out", &[10, 20]);
    assert!(matches!(f.kind, FaultKind::Host(_)), "{f:?}");
    assert!(!a.faulted());
    a.add("p", &plugin()).unwrap();
    drop((a, e));
    assert_eq!(thunk(4, 5), 0, "the domain is gone with all its modules");
}

#[test]
fn constructors_may_add_through_the_host() {
    // In a host function that the domain called, on the same thread.
    let h = hooked(&[module()]);
    h.on_call(|d| d.add("p", &plugin()).expect("nested"));
    assert_eq!(call(&h.domain, "call_out", &[1, 2]).unwrap(), 4);
    assert_eq!(within(&h.domain, "p", "next", &[]).unwrap(), 41);
    // And twice at the same time from two threads: one of them has the name.
    let d = &h.domain;
    let done: Vec<_> = std::thread::scope(|s| {
        let add = || s.spawn(|| d.add("same", &plugin()));
        let threads: Vec<_> = (0..4).map(|_| add()).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    assert_eq!(done.iter().filter(|r| r.is_ok()).count(), 1, "{done:?}");
    assert!(
        done.iter()
            .all(|r| matches!(r, Ok(()) | Err(ModuleError::Exists { .. }))),
        "{done:?}"
    );
}

/// Its data were there for other threads of the domain to see, so nothing else comes to that place while they are inside.
#[test]
fn a_failed_addition_leaves_its_place_to_the_graves() {
    support::in_child("a_failed_addition_leaves_its_place_to_the_graves", || {
        let h = hooked(&[module()]);
        let place = |d: &Domain| {
            d.add("p", &plugin()).unwrap();
            let at = d.entry_in("p", "next").unwrap().address();
            d.remove("p").unwrap();
            at
        };
        let first = place(&h.domain);
        assert_eq!(place(&h.domain), first, "nobody is inside");
        h.on_call(move |d| {
            let other = d.clone();
            let failed = std::thread::spawn(move || {
                let plugin = plugin();
                support::refuse::text();
                other.add("p", &plugin)
            });
            let e = failed.join().unwrap().unwrap_err();
            assert!(matches!(e, ModuleError::Host(_)), "{e:?}");
            assert!(d.usage().modules > 0, "its place counts still");
            assert_ne!(place(d), first);
        });
        assert_eq!(call(&h.domain, "call_out", &[2, 3]).unwrap(), 6);
        assert_eq!(place(&h.domain), first, "the call has ended");
    });
}

/// Every word of the calling thread's control stack may be a return address; so one that only looks like it holds the module.
#[test]
fn a_pushed_word_holds_it_until_it_is_popped() {
    let edges = {
        let out = support::build_file("edges.s", &["--no-rewrite", "--import=host_add"]);
        let module = Module::open(&out, &LoadOptions::default()).expect("module");
        let _ = std::fs::remove_file(out);
        module
    };
    let h = hooked(&[module(), edges]);
    let d = &h.domain;
    d.add("p", &plugin()).unwrap();
    let next = d.entry_in("p", "next").unwrap().address();
    let results: Arc<Mutex<Vec<Result<(), ModuleError>>>> = Arc::default();
    // Behind an entry: what a call could have pushed, or not.
    let words = [next + 1, next + 8, next + 0x10_0000, next, 8, u64::MAX, 0];
    for word in words {
        let seen = results.clone();
        h.on_call(move |d| seen.lock().unwrap().push(d.remove("p")));
        assert_eq!(call(d, "hold", &[word]).unwrap(), 5, "{word:#x}");
        if d.added_names().is_empty() {
            d.add("p", &plugin()).unwrap();
            assert_eq!(
                d.entry_in("p", "next").unwrap().address(),
                next,
                "nobody is inside"
            );
        }
    }
    let results = results.lock().unwrap();
    let held: Vec<bool> = results
        .iter()
        .map(|r| match r {
            Ok(()) => false,
            Err(ModuleError::InUse(InUse::OnStack { .. })) => true,
            Err(e) => panic!("{e:?}"),
        })
        .collect();
    assert_eq!(held, [true, true, false, false, false, false, false]);
    d.remove("p").expect("it was popped");
}

/// Somebody writes into all of a place while a module comes to it. Its text is what was verified, every time.
#[test]
fn who_writes_while_a_module_is_made_changes_no_text() {
    use std::sync::atomic::{AtomicBool, AtomicU64};
    let d = domain();
    d.add("p", &plugin()).unwrap();
    let text = d.entry_in("p", "next").unwrap().address() & !4095;
    let data = d.symbol("zeroed").expect("an object") & !4095;
    let read = |d: &Domain| {
        let mut page = vec![0; 4096];
        d.as_ref().read(text, &mut page).map(|()| page)
    };
    // Label numbers are of each module's own, so it is the same one that comes again.
    let module = plugin();
    d.remove("p").unwrap();
    d.add("p", &module).unwrap();
    let wanted = read(&d).expect("text");
    d.remove("p").unwrap();
    let (stop, written) = (AtomicBool::new(false), AtomicU64::new(0));
    let pages = text.min(data)..text.max(data) + 8 * 4096;
    std::thread::scope(|s| {
        s.spawn(|| {
            // What a store of the domain's can reach, the host can write for it; and neither reaches more.
            while !stop.load(Ordering::Relaxed) {
                for page in pages.clone().step_by(4096) {
                    let there = d.as_ref().write(page, &text.to_le_bytes()).is_ok();
                    written.fetch_add(u64::from(there), Ordering::Relaxed);
                }
            }
        });
        let begin = Instant::now();
        let mut rounds = 0;
        while (rounds < 200 || written.load(Ordering::Relaxed) < 200) && begin.elapsed() < PATIENCE {
            rounds += 1;
            match d.add("p", &module) {
                Ok(()) => {
                    // Its data are as somebody left them, so a call has a result or a fault.
                    let _ = within(&d, "p", "letter", &[0]);
                    let _ = within(&d, "p", "next", &[]);
                    assert!(read(&d).expect("text") == wanted, "round {rounds}");
                }
                Err(ModuleError::Init { .. }) => {}
                Err(e) => panic!("{e:?}"),
            }
            if d.faulted() {
                d.reset().unwrap();
            } else {
                match d.remove("p") {
                    Ok(()) => {}
                    // The destructor writes where `ended_at` says.
                    Err(ModuleError::Fini { .. }) => d.reset().unwrap(),
                    Err(e) => panic!("{e:?}"),
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        println!(
            "{rounds} rounds, {} pages written",
            written.load(Ordering::Relaxed)
        );
    });
    assert!(written.load(Ordering::Relaxed) >= 200);
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
}

/// The kernel stops a child at each of its system calls, and what is mapped then is looked at: no page of the module's place is ever
/// text after it was data.
#[test]
fn no_page_is_text_after_it_was_data() {
    /// Writable or readable data, or text, of the pages from `start` to `end`, as the process has them.
    fn pages(process: i32, start: u64, end: u64) -> Vec<(u64, bool)> {
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).expect("a stopped child");
        let address = |s: &str| u64::from_str_radix(s, 16).unwrap();
        let mut found = Vec::new();
        for line in maps.lines() {
            let (range, rest) = line.split_once(' ').unwrap();
            let (from, to) = range.split_once('-').unwrap();
            let (from, to) = (address(from).max(start), address(to).min(end));
            if from < to && !rest.starts_with("---") {
                let text = rest.as_bytes()[2] == b'x';
                found.extend((from..to).step_by(4096).map(|page| (page, text)));
            }
        }
        found
    }
    let d = domain();
    let modules = [plugin(), plugin()];
    d.add("p", &modules[0]).unwrap();
    let at = d.entry_in("p", "next").unwrap().address();
    d.remove("p").unwrap();
    let (start, end) = ((at & !0xFFFF) - 0x2_0000, (at & !0xFFFF) + 0x4_0000);
    // SAFETY: the child does what the test tells, and leaves at once; the parent waits for it.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let traced = libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) == 0;
            libc::raise(libc::SIGSTOP);
            for module in [&modules[0], &modules[1], &modules[0]] {
                let fine = d.add("p", module).is_ok() && within(&d, "p", "choose", &[1]).is_ok();
                let fine = fine && d.entry_in("p", "next").is_ok_and(|e| e.address() == at);
                if !traced || !fine || d.remove("p").is_err() {
                    libc::_exit(1);
                }
            }
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        assert!(libc::WIFSTOPPED(status));
        // What each page is since nobody could access it.
        let mut known: std::collections::BTreeMap<u64, bool> = std::collections::BTreeMap::new();
        let (mut calls, mut texts, mut data) = (0, 0, 0);
        let mut signal = 0;
        loop {
            assert_eq!(libc::ptrace(libc::PTRACE_SYSCALL, child, 0, signal), 0);
            libc::waitpid(child, &raw mut status, 0);
            if !libc::WIFSTOPPED(status) {
                break;
            }
            signal = libc::WSTOPSIG(status);
            if signal != libc::SIGTRAP {
                continue;
            }
            signal = 0;
            calls += 1;
            let now = pages(child, start, end);
            known.retain(|page, _| now.iter().any(|(at, _)| at == page));
            for (page, text) in now {
                let before = *known.entry(page).or_insert(text);
                assert_eq!(before, text, "{page:#x} changed what it is, at call {calls}");
                texts += u32::from(text);
                data += u32::from(!text);
            }
        }
        assert_eq!(status, 0, "the child's own end");
        assert!(
            calls > 20 && texts > 0 && data > 0,
            "{calls} calls, {texts} of text, {data} of data"
        );
    }
}
