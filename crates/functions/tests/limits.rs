//! A runtime's limits: of calls, of code, of time.

use ringfence::{CallError, CodeError, DomainOptions, FaultKind};
use ringfence_functions::{BuiltIns, FunctionError, Runtime, Value};
use std::time::Duration;

fn runtime(set: impl FnOnce(&mut DomainOptions)) -> Runtime {
    let mut options = DomainOptions::default();
    set(&mut options);
    Runtime::new(BuiltIns::new(), &options).unwrap()
}

#[test]
fn calls_are_counted_and_end() {
    let r = runtime(|options| options.call_limit = Some(5));
    let twice = r.create("twice", "long twice(long n) { return 2 * n; }").unwrap();
    let typed = twice.typed::<(i64,), i64>().unwrap();
    for n in 0..3 {
        assert_eq!(typed.call(n).unwrap(), 2 * n);
    }
    for n in 0..2 {
        assert_eq!(twice.call(&[Value::Int(n)]).unwrap(), Value::Int(2 * n));
    }
    let no_more = |e: FunctionError| matches!(e, FunctionError::Call(CallError::Calls { limit: 5 }));
    assert!(no_more(typed.call(1).unwrap_err()));
    assert!(no_more(twice.call(&[Value::Int(1)]).unwrap_err()));
    assert!(!r.domain().faulted());
    // Another runtime has calls of its own.
    let other = runtime(|_| {});
    let one = other.create("one", "long one(void) { return 1; }").unwrap();
    assert_eq!(one.call(&[]).unwrap(), Value::Int(1));
    // A reset gives none anew: it is the runtime that has so many.
    r.reset().unwrap();
    assert!(no_more(twice.call(&[Value::Int(4)]).unwrap_err()));
}

#[test]
fn code_has_a_limit_and_comes_back() {
    let r = runtime(|options| options.code_limit = 4096);
    let text = |n: usize| format!("long f{n}(long x) {{ return x / {} + {n}; }}", n + 2);
    let mut made = 0;
    let full = loop {
        match r.create(&format!("f{made}"), &text(made)) {
            Ok(_) => made += 1,
            Err(e) => break e,
        }
        assert!(made < 1000, "4 KiB hold no thousand functions");
    };
    assert!(
        matches!(full, FunctionError::Code(CodeError::Full { limit: 4096, .. })),
        "{full}"
    );
    assert!(made > 4, "{made}");
    r.delete("f0").unwrap();
    r.create("g", "long g(long x) { return x; }").unwrap();
}

#[test]
fn a_call_has_its_time_and_the_next_one_too() {
    let r = runtime(|options| options.time_limit = Some(Duration::from_millis(30)));
    let endless = r
        .create("endless", "long endless(void) { for (;;); return 1; }")
        .unwrap();
    for _ in 0..2 {
        match endless.call(&[]) {
            Err(FunctionError::Call(CallError::Fault(fault))) => {
                assert!(matches!(fault.kind, FaultKind::TimeLimit));
            }
            other => panic!("{other:?}"),
        }
        r.reset().unwrap();
    }
}
