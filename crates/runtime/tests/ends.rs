//! How modules end: destructors run when a module is taken away and when the host asks for it, in the order of `dlclose`, and a failing
//! one is an error.

mod support;

use ringfence_driver::args::Front;
use ringfence_runtime::{
    CallError, Domain, DomainError, DomainOptions, FaultKind, Imports, LoadOptions, Module, ModuleError,
};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use support::call;

fn build(name: &str, front: Front, flag: &str) -> Module {
    support::with_libc(name, front, &["--import=host_note", flag])
}

fn cxx() -> Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE
        .get_or_init(|| build("ending.cc", Front::Cxx, "-O1"))
        .clone()
}

/// With x87 code, as the C++ library has it.
fn base() -> Module {
    let out = support::build("extended", &["--import=host_add"]);
    let module = Module::open(&out, &LoadOptions::default()).unwrap();
    let _ = std::fs::remove_file(out);
    module
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<i64>>>);

impl Log {
    fn imports(&self) -> Imports {
        let log = self.clone();
        support::imports().closure("host_note", move |f| {
            log.0.lock().unwrap().push(f.ints[0] as i64);
            Ok(())
        })
    }

    fn take(&self) -> Vec<i64> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

fn made(modules: &[Module], log: &Log, limit: Option<Duration>) -> Domain {
    let mut options = DomainOptions::default();
    options.extensible = true;
    options.time_limit = limit.or(Some(Duration::from_secs(20)));
    Domain::new(modules, log.imports(), &options).expect("domain")
}

/// Thread's objects, functions with the attribute, `atexit` and static objects the last first, functions with a priority.
const ALL: [i64; 7] = [-3, -5, -4, -7, -2, -1, -6];

#[test]
fn a_module_that_is_removed_runs_its_destructors() {
    let log = Log::default();
    let d = made(&[base()], &log, None);
    for _ in 0..3 {
        d.add("e", &cxx()).unwrap();
        assert_eq!(call(&d, "touch", &[]).unwrap(), 10);
        assert_eq!(log.take(), [1, 2, 3, 7]);
        d.remove("e").unwrap();
        assert_eq!(log.take(), ALL);
    }
    // Nothing of it is left to run.
    d.run_destructors().unwrap();
    assert_eq!(log.take(), []);
    // What is not needed does not run: no object of the thread, no local static.
    d.add("e", &cxx()).unwrap();
    d.remove("e").unwrap();
    assert_eq!(log.take(), [1, 2, -5, -2, -1, -6]);
}

#[test]
fn a_domain_runs_its_destructors_once() {
    let log = Log::default();
    let d = made(&[cxx()], &log, None);
    let later = build("ending.c", Front::C, "-O1");
    call(&d, "touch", &[]).unwrap();
    d.add("later", &later).unwrap();
    assert_eq!(log.take(), [1, 2, 3, 7, 1]);
    d.run_destructors().unwrap();
    let all: Vec<i64> = [-5, -4, -6].into_iter().chain(ALL).collect();
    assert_eq!(log.take(), all);
    d.run_destructors().unwrap();
    d.remove("later").unwrap();
    assert_eq!(log.take(), []);
    d.reset().unwrap();
    assert_eq!(log.take(), [1, 2]);
    d.run_destructors().unwrap();
    assert_eq!(log.take(), [-5, -2, -1, -6]);
    // A domain that is dropped runs nothing.
    d.reset().unwrap();
    drop(d);
    assert_eq!(log.take(), [1, 2]);
}

#[test]
fn both_libcs_end_the_same_way() {
    for flag in ["-O1", "-ffreestanding"] {
        let log = Log::default();
        let d = made(&[build("ending.c", Front::C, flag)], &log, None);
        d.run_destructors().unwrap();
        assert_eq!(log.take(), [1, -5, -4, -6], "{flag}");
        // By exit() first what was registered, as everywhere.
        d.reset().unwrap();
        assert!(matches!(call(&d, "leave", &[]), Err(CallError::Exit(3))));
        assert_eq!(log.take(), [1, -4, -5, -6], "{flag}");
        assert!(
            matches!(d.run_destructors(), Err(DomainError::Fini { .. })),
            "it has ended"
        );
        assert_eq!(log.take(), []);
    }
}

#[test]
fn a_destructor_that_fails_is_an_error() {
    let log = Log::default();
    let d = made(&[cxx()], &log, Some(Duration::from_millis(50)));
    for how in 1..=3 {
        log.take();
        call(&d, "misbehave", &[how]).unwrap();
        let failed = d.run_destructors();
        let Err(DomainError::Fini { source, .. }) = &failed else {
            panic!("{failed:?}")
        };
        match (how, &**source) {
            (1, CallError::Fault(f)) => {
                assert!(matches!(f.kind, FaultKind::BadAccess { .. }), "{f}");
                let names: Vec<_> = f.backtrace().into_iter().filter_map(|f| f.function).collect();
                assert!(names.iter().any(|n| n.contains("Noted")), "{names:?}");
            }
            (2, CallError::Fault(f)) => assert_eq!(f.kind, FaultKind::TimeLimit),
            (3, CallError::Exit(9)) => {}
            other => panic!("{other:?}"),
        }
        // What exit() runs then belongs to it: the rest of what was registered, and all functions with the attribute.
        let rest: &[i64] = if how == 3 {
            &[-5, -2, -1, -5, -6]
        } else {
            &[-5, -2]
        };
        assert_eq!(log.take(), rest, "{how}");
        assert!(matches!(call(&d, "works", &[]), Err(CallError::Faulted { .. })));
        d.reset().unwrap();
        assert_eq!(call(&d, "works", &[]).unwrap(), 8);
    }
}

#[test]
fn a_module_whose_destructor_fails_stays_until_the_reset() {
    let log = Log::default();
    let d = made(&[base()], &log, Some(Duration::from_millis(50)));
    for how in 1..=3 {
        d.add("e", &cxx()).unwrap();
        call(&d, "misbehave", &[how]).unwrap();
        let failed = d.remove("e");
        assert!(matches!(failed, Err(ModuleError::Fini { .. })), "{failed:?}");
        assert_eq!(d.added_names(), ["e"]);
        d.reset().unwrap();
        assert!(d.added_names().is_empty());
        assert!(d.entry("works").is_err());
    }
}

#[test]
fn nothing_ends_under_a_call() {
    let log = Log::default();
    let slot: Arc<OnceLock<Domain>> = Arc::default();
    let (own, seen) = (slot.clone(), Arc::new(Mutex::new(None)));
    let into = seen.clone();
    let imports = log.imports().closure("host_note", move |_| {
        if let Some(d) = own.get() {
            *into.lock().unwrap() = Some(d.run_destructors());
        }
        Ok(())
    });
    let d = Domain::new(&[cxx()], imports, &DomainOptions::default()).unwrap();
    assert!(slot.set(d.clone()).is_ok());
    call(&d, "touch", &[]).unwrap();
    assert!(matches!(
        seen.lock().unwrap().take(),
        Some(Err(DomainError::Busy { lanes: 1 }))
    ));
    assert_eq!(call(&d, "works", &[]).unwrap(), 8);
}

#[test]
fn a_thread_s_objects_go_when_the_module_is_told() {
    let log = Log::default();
    let d = made(&[cxx()], &log, None);
    assert_eq!(log.take(), [1, 2]);
    for told in [true, false] {
        std::thread::scope(|s| {
            s.spawn(|| {
                call(&d, "touch", &[]).unwrap();
                if told {
                    call(&d, "thread_ends", &[]).unwrap();
                    call(&d, "thread_ends", &[]).unwrap();
                }
            });
        });
        // A thread that merely ends runs nothing in the domain.
        let seen = log.take();
        assert_eq!(seen.contains(&-3), told, "{seen:?}");
    }
    d.run_destructors().unwrap();
    assert!(!log.take().contains(&-3), "this thread has none");
}
