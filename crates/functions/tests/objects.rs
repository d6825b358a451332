//! Object code does what its text does; what is bent is refused, or stays behind the fence.

use ringfence::{CallError, DomainOptions};
use ringfence_functions::{BuiltIns, Compiled, FunctionError, Runtime, Value, compile};
use std::time::Duration;

fn runtime() -> Runtime {
    let mut options = DomainOptions::default();
    options.time_limit = Some(Duration::from_millis(200));
    let built_ins = BuiltIns::new().func("limit", |n: i64| n.min(100));
    Runtime::new(built_ins, &options).unwrap()
}

const TEXT: &str = "
    long limit(long); static long calls; static long (*also)(long) = limit;
    long more(long n) { return n + ++calls; }
    long run(long n) { return limit(2 * n) + also(n) + more(n); }
";

fn long(runtime: &Runtime, name: &str, n: i64) -> Result<i64, FunctionError> {
    match runtime.lookup(name)?.call(&[Value::Int(n)])? {
        Value::Int(n) => Ok(n),
        other => panic!("{other:?}"),
    }
}

#[test]
fn it_is_created_replaced_reset_and_deleted() {
    let object = compile(TEXT).unwrap().object();
    let r = runtime();
    r.create_object("run", &object).unwrap();
    assert_eq!(long(&r, "run", 70).unwrap(), 100 + 70 + 71);
    assert_eq!(long(&r, "more", 0).unwrap(), 2);
    assert!(matches!(
        r.create_object("run", &object),
        Err(FunctionError::Exists { .. })
    ));
    r.replace("run", &TEXT.replace("2 * n", "3 * n")).unwrap();
    assert_eq!(long(&r, "run", 5).unwrap(), 15 + 5 + 6);
    r.replace_object("run", &object).unwrap();
    assert_eq!(long(&r, "run", 5).unwrap(), 10 + 5 + 6);
    r.reset().unwrap();
    assert_eq!(long(&r, "run", 5).unwrap(), 10 + 5 + 6);
    r.delete("run").unwrap();
    assert!(matches!(
        r.create_object("other", &object),
        Err(FunctionError::NotDefined { .. })
    ));
    assert!(matches!(
        r.create_object("run", TEXT.as_bytes()),
        Err(FunctionError::Object(_))
    ));
    let lonely = Runtime::new(BuiltIns::new(), &DomainOptions::default()).unwrap();
    assert!(matches!(
        lonely.create_object("run", &object),
        Err(FunctionError::Missing { .. })
    ));
    assert!(lonely.names().is_empty());
}

/// Whatever bytes come, the host goes on, and another runtime notices nothing.
#[test]
fn bent_object_code_harms_its_own_runtime_only() {
    let object = compile(TEXT).unwrap().object();
    let other = runtime();
    other.create("run", TEXT).unwrap();
    let r = runtime();
    let (mut refused, mut failed, mut ran) = (0, 0, 0);
    for at in 8..object.len() {
        for value in [object[at] ^ 1, object[at] ^ 0x80, 0xFF] {
            let mut bent = object.clone();
            bent[at] = value;
            let Ok(run) = r.create_object("run", &bent) else {
                refused += 1;
                assert!(r.names().is_empty(), "nothing has changed");
                continue;
            };
            match run.call(&[Value::Int(5)]) {
                Ok(_) => ran += 1,
                Err(FunctionError::Call(CallError::Fault(_))) => {
                    failed += 1;
                    r.reset().unwrap();
                }
                // Other parameters than before.
                Err(
                    FunctionError::Count { .. } | FunctionError::Argument { .. } | FunctionError::Type { .. },
                ) => {}
                Err(e) => panic!("byte {at} is {value:#x}: {e}"),
            }
            r.delete("run").unwrap();
        }
    }
    println!("{refused} refused, {failed} failed, {ran} ran");
    assert!(refused > 500 && failed > 10 && ran > 100);
    assert_eq!(long(&other, "run", 5).unwrap(), 10 + 5 + 6);
}

/// An export may claim to begin anywhere: only the beginnings of functions are called.
#[test]
fn exports_that_begin_in_the_middle_are_not_called() {
    let mut compiled = compile(TEXT).unwrap();
    let r = runtime();
    let length = compiled.code.len() as u32;
    let (more, run) = (compiled.exports[0].offset, compiled.exports[1].offset);
    let mut reached = 0;
    for offset in 0..length {
        compiled.exports[0].offset = offset;
        let Ok(_) = r.create_object("run", &compiled.object()) else {
            continue;
        };
        match long(&r, "more", 1) {
            Ok(_) => {
                assert!(offset == more || offset == run, "{offset} of {length}");
                reached += 1;
            }
            Err(FunctionError::Call(CallError::Fault(_))) => r.reset().unwrap(),
            Err(e) => panic!("{e}"),
        }
        r.delete("run").unwrap();
    }
    assert_eq!(reached, 2);
    let read = Compiled::from_object(&compiled.object()).unwrap();
    assert_eq!(read, compiled);
}
