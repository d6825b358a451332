//! What each back end can do: the page, what the crate says of itself, and what it does.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};

use ringfence::{
    Backend, CallError, Domain, DomainError, Feature, Imports, LoadError, LoadOptions, Module, Ptr, Signature,
};
use support::features::{ask, basic, options, plain, shared, unfenced};

fn none(module: &Module, imports: Imports) -> Result<Domain, DomainError> {
    Domain::instantiate(std::slice::from_ref(module), imports, &options(Backend::None))
}

/// The rows of the page's table: a feature, and what the page says for each back end.
fn page() -> Vec<(String, Vec<bool>)> {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/backends.md")).unwrap();
    let table = page
        .split("| | window | process | none |")
        .nth(1)
        .expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| {
        let mut cells = line.trim_matches('|').split('|').map(str::trim);
        let name = cells.next().unwrap().to_owned();
        let yes = |cell: &str| match cell {
            "yes" => true,
            "no" => false,
            other => panic!("{name}: {other}"),
        };
        (name.clone(), cells.map(yes).collect())
    })
    .collect()
}

#[test]
fn the_page_says_what_the_back_ends_answer() {
    let page = page();
    assert_eq!(page.len(), Feature::ALL.len());
    for ((name, told), feature) in page.into_iter().zip(Feature::ALL) {
        assert_eq!(name, feature.name());
        for (backend, told) in Backend::ALL.into_iter().zip(told) {
            assert_eq!(backend.offers(feature), told, "{backend}, {name}");
            let answer = ask(backend, feature);
            let expected = backend.require(feature);
            assert_eq!(answer, expected, "{backend}, {name}");
            if let Err(e) = answer {
                let text = e.to_string();
                let others = Backend::ALL.into_iter().filter(|b| b.offers(feature));
                assert!(text.contains(backend.name()), "{text}");
                assert!(others.into_iter().all(|b| text.contains(b.name())), "{text}");
            }
        }
    }
}

#[test]
fn none_runs_what_an_ordinary_compiler_made() {
    let domain = none(&basic(Backend::None), support::basic_imports()).unwrap();
    assert_eq!(domain.backend(), Backend::None);
    assert_eq!(
        domain.func::<(i32, i32), i32>("add").unwrap().call(2, 3).unwrap(),
        5
    );
    let mixed = domain.func::<(i32, f64, i64, f32, u8), f64>("mixed").unwrap();
    assert_eq!(mixed.call(1, 2.5, 3, 0.5, 4).unwrap(), 15.0);
    type Ten = (f64, f64, f64, f64, f64, f64, f64, f64, f64, f64);
    let ten = domain.func::<Ten, f64>("ten_doubles").unwrap();
    assert_eq!(ten.call(1., 1., 1., 1., 1., 1., 1., 1., 1., 1.).unwrap(), 55.0);
    let eight = domain
        .func::<(i64, i64, i64, i64, i64, i64, i64, i64), i64>("eight")
        .unwrap();
    assert_eq!(eight.call(1, 2, 3, 4, 5, 6, 7, 8).unwrap(), 87_654_321);
    use ringfence::dynamic::Argument::Int;
    let untyped = domain.function("eight").unwrap();
    assert_eq!(untyped.call((1..=8).map(Int)).unwrap().int, 87_654_321);
    // Host functions, with arguments on the stack too.
    let host_eight = domain.func::<(), i64>("call_host_eight").unwrap();
    assert_eq!(host_eight.call().unwrap(), 87_654_321);
    // Pointers are the host's own.
    let text = domain.memory().put_c_string("twelve").unwrap();
    let upper = domain.func::<(Ptr<u8>,), usize>("upper").unwrap();
    assert_eq!(upper.call(text.ptr()).unwrap(), 6);
    let text = domain.memory().read_string(text.ptr(), 100).unwrap();
    assert_eq!(text.into_inner_unchecked(), "TWELVE");
    assert!(domain.memory().read::<u32>(Ptr::NULL).is_err());
    // Functions are found by their addresses.
    let add = domain.func::<(i32, i32), i32>("add").unwrap();
    assert_eq!(
        domain
            .func_at::<(i32, i32), i32>(add.ptr())
            .unwrap()
            .call(4, 5)
            .unwrap(),
        9
    );
    assert!(matches!(
        domain.func_at::<(), ()>(Ptr::from_address(8)),
        Err(DomainError::NoEntry { address: 8 })
    ));
    assert!(matches!(
        domain.func::<(), ()>("counter"),
        Err(DomainError::NotFunction { .. })
    ));
    assert!(matches!(
        domain.func::<(), ()>("nobody"),
        Err(DomainError::NoExport { .. })
    ));
}

#[test]
fn copies_of_a_shared_object_have_data_of_their_own_and_resets() {
    let module = basic(Backend::None);
    let (one, two) = (
        none(&module, support::basic_imports()).unwrap(),
        none(&module, support::basic_imports()).unwrap(),
    );
    let bump = |d: &Domain| {
        d.func::<(), i64>("bump")
            .unwrap()
            .call()
            .unwrap()
            .into_inner_unchecked()
    };
    assert_eq!((bump(&one), bump(&one), bump(&two)), (8, 9, 8));
    let kept = one.func::<(), i64>("bump").unwrap();
    one.memory().alloc::<u64>().unwrap().leak();
    assert_eq!(one.memory_used(), 8);
    one.reset().unwrap();
    assert_eq!((one.memory_used(), one.resets()), (0, 1));
    assert_eq!(kept.call().unwrap(), 8, "functions stay valid");
    assert_eq!(bump(&two), 9);
}

const CONSTRUCTED: &str = r#"
    #include <ringfence/module.h>
    RF_IMPORT(int, next_number, (void))
    RF_IMPORT(void, told, (int what))
    static int number;
    __attribute__((constructor)) static void begin(void) { number = next_number(); }
    __attribute__((destructor)) static void end(void) { told(number); }
    int get_number(void) { return number; }
    void stop(int reason) { __rf_abort(reason); }
    void leave(int status) { __rf_exit(status); }
    int (*const pointer)(void) = next_number; /* a word of data that the host fills in */
    int through_pointer(void) { return pointer(); }
"#;

#[test]
fn constructors_and_destructors_may_call_the_host() {
    // Bound lazily and at once, with a table of addresses that is read-only afterwards.
    for flags in [["-Wl,-z,lazy", "-Wl,-z,norelro"], ["-Wl,-z,now", "-Wl,-z,relro"]] {
        let module = plain(CONSTRUCTED, &flags);
        let next = AtomicU32::new(40);
        let (tell, ended) = std::sync::mpsc::channel();
        let imports = Imports::new()
            .func("next_number", move || next.fetch_add(1, Ordering::Relaxed))
            .func("told", move |what: i32| tell.send(what).unwrap());
        let domain = none(&module, imports).unwrap();
        assert_eq!(domain.func::<(), i32>("get_number").unwrap().call().unwrap(), 40);
        assert_eq!(
            domain.func::<(), i32>("through_pointer").unwrap().call().unwrap(),
            41
        );
        domain.reset().unwrap();
        assert_eq!(domain.func::<(), i32>("get_number").unwrap().call().unwrap(), 42);
        domain.run_destructors().unwrap();
        domain.run_destructors().unwrap();
        drop(domain);
        assert_eq!(ended.iter().collect::<Vec<_>>(), [40, 42], "once for each life");
    }
}

#[test]
fn a_host_function_that_fails_ends_the_call() {
    let module = plain(CONSTRUCTED, &[]);
    let fail = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let asked = fail.clone();
    let imports = Imports::new()
        .func("next_number", move || match asked.load(Ordering::Relaxed) {
            true => Err("no more numbers"),
            false => Ok(1),
        })
        .func("told", |_: i32| {});
    let domain = none(&module, imports).unwrap();
    let call = domain.func::<(), i32>("through_pointer").unwrap();
    fail.store(true, Ordering::Relaxed);
    match call.call() {
        Err(CallError::Host(failure)) => {
            assert!(failure.to_string().contains("no more numbers"), "{failure}")
        }
        other => panic!("{other:?}"),
    }
    assert!(domain.faulted());
    match call.call() {
        Err(e @ CallError::Faulted { .. }) => assert!(e.to_string().contains("no more numbers"), "{e}"),
        other => panic!("{other:?}"),
    }
    fail.store(false, Ordering::Relaxed);
    domain.reset().unwrap();
    assert_eq!(call.call().unwrap(), 1);
    assert_eq!(domain.usage().faults, 1);
    // What the module's own header offers.
    let stop = domain.func::<(i32,), ()>("stop").unwrap();
    match stop.call(7) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind, ringfence::FaultKind::Abort(7)),
        other => panic!("{other:?}"),
    }
    domain.reset().unwrap();
    let leave = domain.func::<(i32,), ()>("leave").unwrap();
    assert!(matches!(leave.call(3), Err(CallError::Exit(3))));
    // A constructor that fails keeps the domain from being made.
    let imports = Imports::new()
        .func("next_number", || Err::<i32, _>("never"))
        .func("told", |_: i32| {});
    assert!(matches!(none(&module, imports), Err(DomainError::Init { .. })));
}

#[test]
fn shared_objects_of_one_domain_call_each_other() {
    let one = plain("int twice(int); int run(int a) { return twice(a) + 1; }", &[]);
    let two = plain("int factor = 2; int twice(int a) { return factor * a; }", &[]);
    let domain = Domain::instantiate(&[one.clone(), two], Imports::new(), &options(Backend::None)).unwrap();
    assert_eq!(domain.func::<(i32,), i32>("run").unwrap().call(20).unwrap(), 41);
    match none(&one, Imports::new()) {
        Err(DomainError::Unresolved { symbol, .. }) => assert_eq!(symbol, "twice"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_function_of_a_domain_that_is_gone_fails() {
    let domain = none(&basic(Backend::None), support::basic_imports()).unwrap();
    let signature = Signature {
        ints: 2,
        int_results: 1,
        ..Signature::NOTHING
    };
    let code = domain.function("add").unwrap().thunk(signature);
    // SAFETY: a pointer to a C function of that type.
    let add: extern "C" fn(i32, i32) -> i32 = unsafe { std::mem::transmute(code) };
    assert_eq!(add(2, 3), 5);
    drop(domain);
    assert_eq!(add(2, 3), 0);
    assert!(matches!(ringfence::dynamic::take_error(), Some(CallError::Gone)));
}

#[test]
fn files_for_another_back_end_are_refused() {
    let fenced = support::build("basic", &[]);
    match unfenced(&fenced) {
        Err(e @ LoadError::Fenced { .. }) => assert!(e.to_string().contains("cc -shared -fPIC"), "{e}"),
        other => panic!("{other:?}"),
    }
    let path = shared("int f(void) { return 1; }", &[]);
    assert!(matches!(Module::open(&path), Err(LoadError::NotModule { .. })));
    let module = unfenced(&path).unwrap();
    assert_eq!(module.isolation(), None);
    match module.instantiate(Imports::new()) {
        Err(
            e @ DomainError::NotFor {
                backend: Backend::Window,
                ..
            },
        ) => {
            assert!(e.to_string().contains("ringfence cc -shared"), "{e}");
        }
        other => panic!("{other:?}"),
    }
    let verified = Module::open(&fenced).unwrap();
    assert!(matches!(
        none(&verified, support::basic_imports()),
        Err(DomainError::NotFor {
            backend: Backend::None,
            ..
        })
    ));
    // What is no shared object at all, or only the beginning of one.
    let bytes = std::fs::read(&path).unwrap();
    let mut load = LoadOptions::default();
    load.backend = Backend::None;
    for text in [
        &b"not a module"[..],
        b"",
        b"\x7fELF\x02\x01",
        &bytes[..64],
        &bytes[..bytes.len() / 2],
    ] {
        assert!(
            Module::from_bytes("part", text, &load).is_err(),
            "{} bytes",
            text.len()
        );
    }
    for at in 0..bytes.len().min(0x400) {
        let mut bent = bytes.clone();
        bent[at] ^= 0x80;
        // Nothing of it runs: it is only taken apart.
        let _ = Module::from_bytes("bent", &bent, &load);
    }
}
