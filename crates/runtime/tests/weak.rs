//! Weak undefined symbols: null if nobody gives them, and filled when the module is loaded if somebody does.

mod support;

use ringfence_runtime::{
    CallError, Domain, DomainOptions, FaultKind, Imports, LoadOptions, Module, ModuleError,
};
use support::{build, call, imports, module};

fn load(name: &str) -> Module {
    let out = build(name, &[]);
    let module = Module::open(&out, &LoadOptions::default()).expect("module");
    let _ = std::fs::remove_file(out);
    module
}

fn host() -> Imports {
    imports().closure("hook", |f| {
        f.result[0] = f.ints[0] + 100;
        Ok(())
    })
}

fn made(modules: &[Module], imports: Imports) -> Domain {
    Domain::new(modules, imports, &DomainOptions::default()).expect("domain")
}

/// What `call_hook(3)`, `by_pointer(3)` and `entry_of(1)` give, as `int`.
fn results(d: &Domain) -> [i32; 3] {
    [("call_hook", 3), ("by_pointer", 3), ("entry_of", 1)]
        .map(|(name, argument)| call(d, name, &[argument]).unwrap() as i32)
}

const NULL: [i32; 3] = [-1, -2, -3];
const OF_HOST: [i32; 3] = [104, 103, -3];
const OF_MODULE: [i32; 3] = [31, 30, 6];

#[test]
fn what_nobody_gives_is_null() {
    let weak = load("weak");
    let names: Vec<_> = weak.imports().iter().map(|i| (i.name.clone(), i.weak)).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.contains(&("hook".into(), true)) && names.contains(&("table".into(), true)));
    let d = made(&[weak], Imports::new());
    assert_eq!(results(&d), NULL);
    assert_eq!(call(&d, "hidden", &[]).unwrap() as i32, -4);
    assert_eq!(call(&d, "calls_own", &[3]).unwrap(), 4);
    match call(&d, "tail_hook", &[3]) {
        Err(CallError::Fault(f)) => assert_eq!(f.kind, FaultKind::BadTarget, "{f}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn host_and_modules_give() {
    let (weak, giver) = (load("weak"), load("giver"));
    let d = made(std::slice::from_ref(&weak), host());
    assert_eq!(results(&d), OF_HOST);
    assert_eq!(call(&d, "tail_hook", &[3]).unwrap(), 103);
    d.reset().unwrap();
    assert_eq!(results(&d), OF_HOST);
    // Modules of the domain come before the host, in whatever order they were given.
    for modules in [[weak.clone(), giver.clone()], [giver.clone(), weak.clone()]] {
        let d = made(&modules, host());
        assert_eq!(results(&d), OF_MODULE);
        // Hidden symbols are the module's own, and so is what it defines, weak or not.
        assert_eq!(call(&d, "hidden", &[]).unwrap() as i32, -4);
        assert_eq!(call(&d, "calls_own", &[3]).unwrap(), 4);
    }
}

#[test]
fn modules_that_come_later_look_for_theirs() {
    let (weak, giver) = (load("weak"), load("giver"));
    let d = made(&[module()], host());
    // The host's function has no stub: no module needed it when the domain was made.
    d.add("weak", &weak).unwrap();
    assert_eq!(results(&d), NULL);
    // What is there is not resolved again, and does not keep what it does not use.
    d.add("giver", &giver).unwrap();
    assert_eq!(results(&d), NULL);
    d.remove("giver").unwrap();
    d.remove("weak").unwrap();
    d.add("giver", &giver).unwrap();
    d.add("weak", &weak).unwrap();
    assert_eq!(results(&d), OF_MODULE);
    let needed = d.remove("giver");
    assert!(
        matches!(&needed, Err(ModuleError::Needed { by, .. }) if by == "weak"),
        "{needed:?}"
    );
    let mut options = DomainOptions::default();
    options.extensible = true;
    let d = Domain::new(&[module()], host(), &options).unwrap();
    d.add("weak", &weak).unwrap();
    assert_eq!(results(&d), OF_HOST);
}
