//! Functions come, call each other, are replaced and deleted; what is wrong is told by its type.

use ringfence::dynamic::Type;
use ringfence::{CallError, Caller, CodeError, DomainOptions, FaultKind, Ptr};
use ringfence_functions::{BuiltIns, Func, FunctionError, Runtime, Value};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn runtime() -> Runtime {
    Runtime::new(BuiltIns::new(), &DomainOptions::default()).unwrap()
}

fn long(f: &Func, n: i64) -> Result<i64, FunctionError> {
    match f.call(&[Value::Int(n)])? {
        Value::Int(n) => Ok(n),
        other => panic!("{other:?}"),
    }
}

fn fault(result: Result<i64, FunctionError>) -> FaultKind {
    match result {
        Err(FunctionError::Call(CallError::Fault(fault))) => fault.kind.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn functions_call_each_other_and_keep_their_data() {
    let r = runtime();
    let count = r
        .create(
            "count",
            "static long n; long count(long by) { n += by; return n; }",
        )
        .unwrap();
    let twice = r
        .create(
            "twice",
            "long count(long); long twice(long by) { count(by); return count(by); }",
        )
        .unwrap();
    assert_eq!(long(&twice, 5).unwrap(), 10);
    assert_eq!(long(&count, 1).unwrap(), 11, "one count for all");
    assert_eq!(r.names(), ["count", "twice"]);

    let pointer = r
        .create(
            "apply",
            "long apply(long (*f)(long), long n) { return f(n) + 1; }",
        )
        .unwrap();
    let at = Value::Pointer(count.address().unwrap());
    assert_eq!(pointer.call(&[at, Value::Int(2)]).unwrap(), Value::Int(14));
}

#[test]
fn one_text_may_have_several_functions() {
    let r = runtime();
    let text = "
        static long square(long n) { return n * n; }
        long cube(long n) { return n * square(n); }
        long fourth(long n) { return n * cube(n); }
    ";
    let fourth = r.create("fourth", text).unwrap();
    assert_eq!(long(&fourth, 3).unwrap(), 81);
    let cube = r.lookup("cube").unwrap();
    assert_eq!(long(&cube, 3).unwrap(), 27);
    assert!(matches!(r.lookup("square"), Err(FunctionError::Unknown { .. })));
    assert!(matches!(r.delete("cube"), Err(FunctionError::Part { with, .. }) if with == "fourth"));
    r.replace("fourth", "long fourth(long n) { return 4; }").unwrap();
    assert_eq!(long(&fourth, 3).unwrap(), 4);
    assert!(matches!(long(&cube, 3), Err(FunctionError::Deleted { name }) if name == "cube"));
    assert_eq!(r.names(), ["fourth"]);
}

#[test]
fn handles_stay_when_functions_are_replaced() {
    let r = runtime();
    let f = r.create("f", "long f(long n) { return n + 1; }").unwrap();
    let g = r
        .create("g", "long f(long); long g(long n) { return 10 * f(n); }")
        .unwrap();
    let typed = f.typed::<(i64,), i64>().unwrap();
    assert_eq!(typed.call(1).unwrap(), 2);
    for by in 2..50 {
        r.replace("f", &format!("long f(long n) {{ return n + {by}; }}"))
            .unwrap();
        assert_eq!(long(&f, 1).unwrap(), 1 + by);
        assert_eq!(typed.call(1).unwrap(), 1 + by);
        assert_eq!(long(&g, 1).unwrap(), 10 * (1 + by));
    }
    let usage = r.domain().usage();
    let other = r.replace("f", "int f(long n) { return 0; }");
    assert!(matches!(other, Err(FunctionError::Type { .. })), "{other:?}");
    assert_eq!(long(&g, 1).unwrap(), 500, "and nothing has changed");
    assert_eq!(r.domain().usage().code, usage.code);
}

#[test]
fn a_deleted_function_is_an_error_with_its_name() {
    let r = runtime();
    let f = r.create("f", "long f(long n) { return n + 1; }").unwrap();
    let g = r
        .create("g", "long f(long); long g(long n) { return 10 * f(n); }")
        .unwrap();
    let typed = f.typed::<(i64,), i64>().unwrap();
    r.delete("f").unwrap();
    assert!(matches!(long(&f, 1), Err(FunctionError::Deleted { name }) if name == "f"));
    assert!(matches!(typed.call(1), Err(FunctionError::Deleted { .. })));
    assert!(matches!(
        f.typed::<(i64,), i64>(),
        Err(FunctionError::Deleted { .. })
    ));
    assert!(matches!(r.lookup("f"), Err(FunctionError::Unknown { .. })));
    assert!(matches!(r.delete("f"), Err(FunctionError::Unknown { .. })));
    assert!(matches!(
        r.replace("f", "long f(long n) { return n; }"),
        Err(FunctionError::Unknown { .. })
    ));
    // Another function of that name is another one.
    let again = r.create("f", "long f(long n) { return n + 100; }").unwrap();
    assert_eq!(long(&again, 1).unwrap(), 101);
    assert!(matches!(long(&g, 1), Err(FunctionError::Deleted { name }) if name == "f"));
    assert!(matches!(
        long(&again, 1),
        Err(FunctionError::Call(CallError::Faulted { .. }))
    ));
    r.reset().unwrap();
    assert_eq!(long(&again, 1).unwrap(), 101);
    assert!(matches!(long(&f, 1), Err(FunctionError::Deleted { .. })));
    assert!(matches!(long(&g, 1), Err(FunctionError::Deleted { name }) if name == "f"));
}

#[test]
fn nothing_grows_as_functions_come_and_go() {
    let r = runtime();
    let text = |i: usize| format!("static long n[100]; long f{i}(long a) {{ n[a]++; return n[a] + {i}; }}");
    let round = |from: usize| {
        for i in from..from + 2000 {
            let f = r.create(&format!("f{i}"), &text(i)).unwrap();
            assert_eq!(long(&f, 3).unwrap(), 1 + i as i64);
            r.delete(&format!("f{i}")).unwrap();
        }
        (r.domain().usage().code, r.domain().memory_used(), r.kept())
    };
    let first = round(0);
    assert_eq!(round(2000), first);
    assert_eq!(first.2, 0);
    // What somebody holds is kept, and no longer.
    let held: Vec<Func> = (0..100)
        .map(|i| {
            let f = r.create("f", &text(i).replace(&format!("f{i}"), "f")).unwrap();
            r.delete("f").unwrap();
            f
        })
        .collect();
    assert_eq!(r.kept(), 100);
    assert!(
        held.iter()
            .all(|f| matches!(long(f, 1), Err(FunctionError::Deleted { .. })))
    );
    drop(held);
    assert_eq!(r.kept(), 0);
    // A function that calls it holds it as well.
    r.create("f", "long f(long n) { return n; }").unwrap();
    r.create("g", "long f(long); long g(long n) { return f(n); }")
        .unwrap();
    r.delete("f").unwrap();
    assert_eq!(r.kept(), 2);
    r.delete("g").unwrap();
    assert_eq!(r.kept(), 0);
}

#[test]
fn built_in_functions_have_types() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let to = said.clone();
    let say = move |caller: &Caller<'_>, text: Ptr<u8>| {
        let text = caller.memory().read_string(text, 100)?.into_inner_unchecked();
        to.lock().unwrap().push(text);
        Ok::<(), ringfence::Error>(())
    };
    assert_eq!(Type::of_host(&say), Type::of::<(Ptr<u8>,), ()>());
    let built_ins = BuiltIns::new()
        .func("say", say)
        .func("scale", |x: f64, by: f32, n: i16| {
            x * f64::from(by) + f64::from(n)
        })
        .dynamic("unsigned sum(unsigned char, long);", |call| {
            let (a, b) = (call.int(0).unwrap_or(0) as u8, call.int(1).unwrap_or(0));
            call.return_int(u64::from(a).wrapping_add(b));
            Ok(())
        })
        .unwrap();
    let r = Runtime::new(built_ins, &DomainOptions::default()).unwrap();
    let text = r#"
        void say(const char *); double scale(double, float, short); unsigned sum(unsigned char, long);
        double f(int n) { say("here"); return scale(n, 0.5f, -1) + sum(255, 2); }
    "#;
    let f = r.create("f", text).unwrap();
    assert_eq!(f.call(&[Value::Int(6)]).unwrap(), Value::Float(259.0));
    assert_eq!(*said.lock().unwrap(), ["here"]);
    for wrong in [
        "void say(const char *, int); void g(void) { say(\"x\", 1); }",
        "long scale(double, float, short); void g(void) { scale(1, 1, 1); }",
        "double scale(double, double, short); void g(void) { scale(1, 1, 1); }",
        "unsigned sum(int, long); void g(void) { sum(1, 1); }",
        "void say(const char *, ...); void g(void) { say(\"x\"); }",
        "long f(int); void g(void) { f(1); }",
        "void *malloc(int); void g(void) { malloc(1); }",
    ] {
        let error = r.create("g", wrong).unwrap_err();
        assert!(matches!(error, FunctionError::Type { .. }), "{wrong}: {error}");
    }
    let missing = r.create("g", "int nobody(void); int g(void) { return nobody(); }");
    assert!(matches!(missing, Err(FunctionError::Missing { name }) if name == "nobody"));
    // What only the runtime may call is no built-in function.
    let own = r.create("g", "void rf_deleted(unsigned); void g(void) { rf_deleted(0); }");
    assert!(matches!(own, Err(FunctionError::Missing { .. })));
    let taken = r.create("say", "void say(const char *text) {}");
    assert!(matches!(taken, Err(FunctionError::Exists { .. })));
    let two = BuiltIns::new().dynamic("int a(void); int b(void)", |_| Ok(()));
    assert!(matches!(two, Err(FunctionError::Declaration { .. })));
    let none = BuiltIns::new().dynamic("int a(int", |_| Ok(()));
    assert!(matches!(none, Err(FunctionError::Text(_))));
}

#[test]
fn long_double_takes_an_option_and_stays_among_texts() {
    let text = "long double third(long double x) { return x / 3; }";
    match runtime().create("third", text) {
        Err(FunctionError::Code(e @ CodeError::Registers { what: "x87", .. })) => {
            assert!(e.to_string().starts_with("third: "), "{e}");
            assert!(e.to_string().contains("DomainOptions::x87"), "{e}");
        }
        other => panic!("{other:?}"),
    }
    let mut options = DomainOptions::default();
    options.x87 = true;
    let r = Runtime::new(BuiltIns::new(), &options).unwrap();
    let third = r.create("third", text).unwrap();
    assert_eq!(
        third.prototype().declaration("third"),
        "long double third(long double)"
    );
    let use_of = "long double third(long double);
        double f(double x, long n) { long double sum = 0; while (n-- > 0) sum += third(x); return sum * 3; }";
    let f = r.create("f", use_of).unwrap().typed::<(f64, i64), f64>().unwrap();
    assert_eq!(f.call(0.1, 1000).unwrap(), 100.0);
    // Object code, too.
    let object = ringfence_functions::compile(text).unwrap().object();
    r.replace_object("third", &object).unwrap();
    assert_eq!(f.call(0.1, 1000).unwrap(), 100.0);
    // The host passes none, and a double is another type.
    let told = third.call(&[Value::Float(1.0)]).unwrap_err().to_string();
    assert!(
        told.contains("long double third") || told.contains("without structures and long double"),
        "{told}"
    );
    assert!(third.typed::<(f64,), f64>().is_err());
    let wrong = "double third(double); double g(double x) { return third(x); }";
    assert!(matches!(r.create("g", wrong), Err(FunctionError::Type { .. })));
}

#[test]
fn the_heap_is_shared_and_limited() {
    let mut options = DomainOptions::default();
    options.memory_limit = 24 << 20;
    let r = Runtime::new(BuiltIns::new(), &options).unwrap();
    let text = "
        void *malloc(unsigned long); void free(void *);
        struct entry { struct entry *next; long key; };
        struct entry *first;
        long put(long key) {
            struct entry *e = malloc(sizeof *e);
            if (!e) return -1;
            e->next = first; e->key = key; first = e;
            return key;
        }
        long sum(long by) { long s = 0; for (struct entry *e = first; e; e = e->next) s += by * e->key; return s; }
    ";
    let put = r.create("put", text).unwrap();
    let sum = r.lookup("sum").unwrap();
    (1..=100).for_each(|n| assert_eq!(long(&put, n).unwrap(), n));
    assert_eq!(long(&sum, 2).unwrap(), 10_100);
    let big = "void *malloc(unsigned long); void free(void *);
        long big(long n) { char *p = malloc(n); if (!p) return 0; p[n - 1] = 1; free(p); return 1; }";
    let big = r.create("big", big).unwrap();
    assert_eq!(long(&big, 1 << 20).unwrap(), 1);
    assert_eq!(long(&big, 1 << 30).unwrap(), 0, "more than the limit");
    assert_eq!(long(&big, -1).unwrap(), 0);
    r.reset().unwrap();
    assert_eq!(long(&sum, 2).unwrap(), 0, "data are as they were at first");
    let twice = "void *malloc(unsigned long); void free(void *);
        long twice(long n) { char *p = malloc(n); free(p); free(p); return 1; }";
    let twice = r.create("twice", twice).unwrap();
    assert!(matches!(
        long(&twice, 5),
        Err(FunctionError::Call(CallError::Host(_)))
    ));
}

#[test]
fn mistakes_end_the_call_and_a_reset_mends_it() {
    let r = runtime();
    let good = r
        .create("good", "long n = 7; long good(long a) { return n++ + a; }")
        .unwrap();
    let typed = good.typed::<(i64,), i64>().unwrap();
    assert_eq!(typed.call(0).unwrap(), 7);
    type Judge = fn(&FaultKind) -> bool;
    let bad: [(&str, Judge); 5] = [
        ("long bad(long n) { return n / (n - n); }", |k| {
            matches!(k, FaultKind::Division)
        }),
        ("long bad(long n) { return *(long *)n; }", |k| {
            matches!(k, FaultKind::BadAccess { .. })
        }),
        ("long bad(long n) { *(long *)(n << 40) = 1; return 0; }", |k| {
            matches!(k, FaultKind::BadAccess { .. })
        }),
        ("long bad(long n) { return bad(n + 1) * 3 + 1; }", |k| {
            matches!(k, FaultKind::ControlStack | FaultKind::DataStack)
        }),
        ("long bad(long n) { for (;;) n++; return n; }", |k| {
            matches!(k, FaultKind::TimeLimit)
        }),
    ];
    for (i, (text, judge)) in bad.into_iter().enumerate() {
        let f = r.create("bad", text).unwrap();
        // Only for the one that does not end: the others may take as long as a busy machine makes them.
        let endless = text.contains("for (;;)");
        let limit = endless.then_some(Duration::from_millis(20));
        r.domain().set_time_limit(limit).unwrap();
        let kind = fault(long(&f, 1));
        r.domain().set_time_limit(None).unwrap();
        assert!(judge(&kind), "{text}: {kind:?}");
        assert!(matches!(
            long(&good, 1),
            Err(FunctionError::Call(CallError::Faulted { .. }))
        ));
        r.reset().unwrap();
        assert_eq!(typed.call(0).unwrap(), 7, "round {i}: as at first");
        assert_eq!(long(&good, 1).unwrap(), 9);
        r.delete("bad").unwrap();
    }
}

#[test]
fn hostile_texts_are_errors() {
    let r = runtime();
    let deep = format!(
        "long f(long n) {{ return {}n{}; }}",
        "(".repeat(100_000),
        ")".repeat(100_000)
    );
    let endless = "long f(long n) { return n".to_owned() + &" + n".repeat(900_000);
    for text in [
        &deep,
        &endless,
        "long f(long n) { return m; }",
        "",
        "\0\0",
        "long f(",
        "int g(void) { return 1; }",
        "static long f(long n) { return n; }",
    ] {
        let error = r.create("f", text).unwrap_err();
        assert!(
            matches!(error, FunctionError::Text(_) | FunctionError::NotDefined { .. }),
            "{error}"
        );
    }
    let FunctionError::Text(errors) = r.create("f", "long f(long n) {\n  return m;\n}").unwrap_err() else {
        panic!("an error of the text");
    };
    assert_eq!((errors.0[0].line, errors.0[0].column), (2, 10));
    assert_eq!(r.kept(), 0);
}

#[test]
fn arguments_are_converted_or_refused() {
    let r = runtime();
    let text = "
        typedef struct { int a, b; } pair;
        float mix(signed char a, unsigned short b, double c, char *p) { return a + b + c + (p != 0); }
        pair make(int a) { pair p = { a, a }; return p; }
        bool is(unsigned n) { return n == 4000000000u; }
        void nothing(void) {}
    ";
    let mix = r.create("mix", text).unwrap();
    let good = [
        Value::Int(-128),
        Value::Unsigned(65_535),
        Value::Int(3),
        Value::Pointer(0),
    ];
    assert_eq!(mix.call(&good).unwrap(), Value::Float(65_410.0));
    for (number, wrong) in [
        (1, Value::Int(128)),
        (2, Value::Int(-1)),
        (1, Value::Float(1.0)),
        (3, Value::Pointer(5)),
        (4, Value::Int(-1)),
        (1, Value::Pointer(1)),
        (3, Value::Void),
    ] {
        let mut values = good;
        values[number - 1] = wrong;
        let error = mix.call(&values).unwrap_err();
        assert!(
            matches!(error, FunctionError::Argument { number: n, .. } if n == number),
            "{error}"
        );
    }
    assert!(matches!(
        mix.call(&good[..3]),
        Err(FunctionError::Count {
            wanted: 4,
            given: 3,
            ..
        })
    ));
    let make = r.lookup("make").unwrap();
    assert!(matches!(
        make.call(&[Value::Int(1)]),
        Err(FunctionError::Type { .. })
    ));
    let is = r.lookup("is").unwrap();
    assert_eq!(
        is.call(&[Value::Unsigned(4_000_000_000)]).unwrap(),
        Value::Unsigned(1)
    );
    assert_eq!(r.lookup("nothing").unwrap().call(&[]).unwrap(), Value::Void);
    let error = mix.typed::<(i8, u16, f64, Ptr<u8>), f64>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "mix has the type float(signed char, unsigned short, double, void *), not double(signed char, unsigned short, double, \
         long)"
    );
    let typed = mix.typed::<(i8, u16, f64, Ptr<u8>), f32>().unwrap();
    assert_eq!(typed.call(1, 2, 3.0, Ptr::NULL).unwrap(), 6.0);
}

#[test]
fn functions_are_replaced_and_deleted_while_others_run() {
    let r = runtime();
    r.create("f", "long f(long n) { return 2 * n; }").unwrap();
    let g = r
        .create("g", "long f(long); long g(long n) { long s = 0; for (int i = 0; i < 1000; i++) s += f(n) == 2 * n; return s; }")
        .unwrap();
    let end = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let typed = g.typed::<(i64,), i64>().unwrap();
                while !end.load(Ordering::Relaxed) {
                    assert_eq!(typed.call(21).unwrap(), 1000);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let changed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for i in 0..300 {
                r.replace("f", &format!("long f(long n) {{ return n + n + {i} - {i}; }}"))
                    .unwrap();
                let name = format!("h{i}");
                r.create(&name, &format!("long {name}(long n) {{ return n; }}"))
                    .unwrap();
                r.delete(&name).unwrap();
            }
            while calls.load(Ordering::Relaxed) < 100 {
                std::thread::yield_now();
            }
        }));
        end.store(true, Ordering::Relaxed);
        changed.unwrap();
    });
    assert_eq!(r.kept(), 2, "all else has gone");
    let before = r.domain().usage().code;
    r.replace("f", "long f(long n) { return n + n; }").unwrap();
    assert!(r.domain().usage().code <= before);
}

#[test]
fn a_function_may_be_deleted_from_inside() {
    let place: Arc<Mutex<Option<Runtime>>> = Arc::default();
    let inside = place.clone();
    let built_ins = BuiltIns::new().func("delete_me", move || {
        let runtime = inside.lock().unwrap().clone().expect("set below");
        runtime.delete("f").map_err(|e| e.to_string())
    });
    let r = Runtime::new(built_ins, &DomainOptions::default()).unwrap();
    *place.lock().unwrap() = Some(r.clone());
    let f = r
        .create(
            "f",
            "void delete_me(void); long f(long n) { delete_me(); return n + 1; }",
        )
        .unwrap();
    assert_eq!(long(&f, 1).unwrap(), 2, "a call in progress finishes");
    assert!(matches!(long(&f, 1), Err(FunctionError::Deleted { .. })));
    drop(f);
    assert_eq!(r.kept(), 0);
    place.lock().unwrap().take();
}

#[test]
fn many_runtimes_know_nothing_of_each_other() {
    let runtimes: Vec<Runtime> = (0..20).map(|_| runtime()).collect();
    let functions: Vec<Func> = runtimes
        .iter()
        .enumerate()
        .map(|(i, r)| {
            r.create(
                "f",
                &format!("static long n = {i}; long f(long by) {{ return n += by; }}"),
            )
            .unwrap()
        })
        .collect();
    for (i, f) in functions.iter().enumerate() {
        assert_eq!(long(f, 1).unwrap(), i as i64 + 1);
        assert_eq!(long(f, 1).unwrap(), i as i64 + 2);
    }
    drop(runtimes);
    assert_eq!(long(&functions[3], 0).unwrap(), 5, "a handle keeps what it needs");
}

#[test]
fn hundreds_of_functions_call_each_other() {
    let r = runtime();
    let mut last = r.create("f0", "long f0(long n) { return n; }").unwrap();
    for i in 1..600 {
        let before = i - 1;
        let text = format!("long f{before}(long); long f{i}(long n) {{ return f{before}(n) + 1; }}");
        last = r.create(&format!("f{i}"), &text).unwrap();
    }
    assert_eq!(long(&last, 0).unwrap(), 599);
    r.reset().unwrap();
    assert_eq!(long(&last, 1).unwrap(), 600);
}

#[test]
fn batches_go_through_the_same_trampoline() {
    use ringfence::Column;
    let r = runtime();
    let f = r.create("f", "int f(int a, int b) { return a * b; }").unwrap();
    let f = f.typed::<(i32, i32), i32>().unwrap();
    let numbers = r.memory().put_slice(&[1, 2, 3]).unwrap();
    let results = r.memory().alloc_array::<i32>(3).unwrap();
    let columns = (Column::Each(numbers.ptr()), Column::Same(10));
    f.target().unwrap().call_batch(3, columns, results.ptr()).unwrap();
    assert_eq!(results.to_vec().unwrap().into_inner_unchecked(), [10, 20, 30]);
    r.replace("f", "int f(int a, int b) { return a + b; }").unwrap();
    f.target().unwrap().call_batch(3, columns, results.ptr()).unwrap();
    assert_eq!(results.to_vec().unwrap().into_inner_unchecked(), [11, 12, 13]);
}

#[test]
fn a_function_that_writes_over_all_memory_misleads_itself_only() {
    let r = runtime();
    let other = runtime();
    let safe = other.create("f", "long f(long n) { return n + 1; }").unwrap();
    let f = r
        .create("f", "static long n = 5; long f(long by) { return n += by; }")
        .unwrap();
    let g = r
        .create("g", "long f(long); long g(long n) { return f(n) + f(n); }")
        .unwrap();
    // The words of all trampolines and the data; each becomes the address of something that is no function.
    let text = "
        long scribble(long from) {
            for (long *at = (long *)from; at < (long *)(from + 4096); at++) *at = from + 8;
            return 1;
        }
    ";
    let scribble = r.create("scribble", text).unwrap();
    // The first page of the heap, where they are.
    let heap = r.memory().alloc::<u64>().unwrap().ptr().address() & !0xFFF;
    assert_eq!(long(&scribble, heap as i64).unwrap(), 1);
    assert!(matches!(
        fault(long(&g, 1)),
        FaultKind::BadTarget | FaultKind::BadAccess { .. }
    ));
    // Verbs do what they can.
    let _ = r.replace("f", "long f(long by) { return by; }");
    let _ = r.delete("scribble");
    let _ = r.create("h", "long h(long n) { return n; }");
    assert_eq!(long(&safe, 1).unwrap(), 2);
    r.reset().unwrap();
    assert_eq!(long(&f, 2).unwrap(), 2, "as it was replaced");
    assert_eq!(long(&g, 2).unwrap(), 4);
}

#[test]
fn functions_are_replaced_while_a_thread_stays_inside() {
    let (inside, go_on) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (tell, wait) = (inside.clone(), go_on.clone());
    let built_ins = BuiltIns::new().func("stay", move || {
        tell.store(true, Ordering::SeqCst);
        while !wait.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
    });
    let r = Runtime::new(built_ins, &DomainOptions::default()).unwrap();
    let f = r
        .create("f", "void stay(void); long f(long n) { stay(); return n + 1; }")
        .unwrap();
    r.create("g", "long g(long n) { return n; }").unwrap();
    let before = r.domain().usage().code;
    std::thread::scope(|scope| {
        let staying = scope.spawn(|| long(&f, 1));
        while !inside.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        for i in 0..50 {
            r.replace("g", &format!("long g(long n) {{ return n + {i}; }}"))
                .unwrap();
        }
        r.replace("f", "long f(long n) { return n + 100; }").unwrap();
        assert_eq!(long(&f, 1).unwrap(), 101);
        assert_eq!(long(&r.lookup("g").unwrap(), 1).unwrap(), 50);
        go_on.store(true, Ordering::SeqCst);
        assert_eq!(
            staying.join().unwrap().unwrap(),
            2,
            "a call in progress finishes in the old one"
        );
    });
    assert_eq!(r.kept(), 2);
    assert!(r.domain().usage().code <= before, "all old code has gone");
}
