//! A fault tells function and line of the text; bad input of every kind ends with an error, and the runtime goes on.

use ringfence::{CallError, DomainOptions, Fault, Frame};
use ringfence_functions::{BuiltIns, Func, FunctionError, Runtime, Value};
use std::time::Duration;

fn runtime() -> Runtime {
    Runtime::new(BuiltIns::new(), &DomainOptions::default()).unwrap()
}

fn fault(f: &Func, n: i64) -> Fault {
    match f.call(&[Value::Int(n)]) {
        Err(FunctionError::Call(CallError::Fault(fault))) => (*fault).clone(),
        other => panic!("{other:?}"),
    }
}

fn place(frame: &Frame) -> (&str, u32) {
    (frame.function.as_deref().unwrap_or("?"), frame.line.unwrap_or(0))
}

const INNER: &str = "int zero;
/* a function that is put in its caller's place */
static long divide(long n)
{
	return n / zero;
}
long inner(long n)
{
	long sum = 0;
	for (long i = 0; i < n; i++)
		sum += i;
	if (n == 3)
		return divide(n);
	if (n == 4) {
		sum += 7;
		*(long *)(n << 4) = sum;
	}
	switch (*(int *)sum) {
	case 1: return 5;
	}
	return sum;
}
";

#[test]
fn faults_tell_function_and_line() {
    let r = runtime();
    let inner = r.create("inner", INNER).unwrap();
    for (n, expected) in [(3, ("divide", 5)), (4, ("inner", 16)), (2, ("inner", 18))] {
        let fault = fault(&inner, n);
        let frames = fault.backtrace();
        assert_eq!(place(&frames[0]), expected, "{n}: {fault}");
        let told = fault.to_string();
        let (function, line) = expected;
        assert!(told.ends_with(&format!("in {function} (text:{line})")), "{told}");
        r.reset().unwrap();
    }
    // Another text that calls it, after a reset, and after a replacement with other lines.
    let text = "\n\nlong inner(long);\nlong outer(long n) {\n  return inner(n) * 3;\n}";
    let outer = r.create("outer", text).unwrap();
    assert_eq!(place(&fault(&outer, 3).backtrace()[0]), ("divide", 5));
    r.reset().unwrap();
    r.replace("inner", "\nlong inner(long n)\n{\n\n\treturn *(long *)n;\n}")
        .unwrap();
    assert_eq!(place(&fault(&outer, 3).backtrace()[0]), ("inner", 5));
    r.reset().unwrap();
    // Its handle tells as much when the runtime's own is gone.
    drop(r);
    assert_eq!(place(&fault(&outer, 3).backtrace()[0]), ("inner", 5));
}

#[test]
fn what_is_read_as_an_operand_is_told_where_it_is_read() {
    let r = runtime();
    let text = "static long read(long at) { return *(long *)at; }
long sum(long n)
{
	return n +
		read(n);
}
long test(long n)
{
	if (read(n) == 7)
		return 1;
	return 0;
}
";
    r.create("sum", text).unwrap();
    for name in ["sum", "test"] {
        let fault = fault(&r.lookup(name).unwrap(), 8);
        assert_eq!(place(&fault.backtrace()[0]), ("read", 1), "{name}: {fault}");
        r.reset().unwrap();
    }
}

#[test]
fn initialisers_have_lines_of_their_own() {
    let r = runtime();
    let text = "struct pair { long a, b; };
long one(long n)
{
	long v = *(long *)n;
	return v / 3 * v;
}
long two(long n)
{
	struct pair p = { n,
		*(long *)n };
	return p.a / 3 * p.b;
}
";
    r.create("one", text).unwrap();
    for (name, line) in [("one", 4), ("two", 10)] {
        let fault = fault(&r.lookup(name).unwrap(), 8);
        assert_eq!(place(&fault.backtrace()[0]), (name, line), "{fault}");
        r.reset().unwrap();
    }
}

/// The texts of bad input that are no calls: each is an error that tells a line, and nothing is left of it.
#[test]
fn texts_that_are_too_much_are_errors() {
    let r = runtime();
    let line = "long f(long n) { return n; } ".repeat(400_000);
    let long = "long f(long n) { return n".to_owned() + &" + 1".repeat(2_500_000) + "; }";
    let nested = |open: &str, close: &str| {
        format!(
            "long f(long n) {{ {}n++;{} return n; }}",
            open.repeat(50_000),
            close.repeat(50_000)
        )
    };
    assert!(line.len() > 10 << 20 && long.len() > 10_000_000);
    for text in [
        "long f(long n) { /* and nobody ends it",
        "long f(long n) { return \"abc",
        "long f(long n) { if (n) { return 1;",
        "#define N (",
        &line,
        &long,
        &nested("{", "}"),
        &nested("if (n) ", ""),
        &nested("for (;;) ", ""),
    ] {
        match r.create("f", text) {
            Err(FunctionError::Text(errors)) => {
                assert!(!errors.0.is_empty() && errors.0[0].line > 0);
                assert!(
                    errors.to_string().len() < 10_000,
                    "the errors of a long text are short"
                );
            }
            Err(FunctionError::NotDefined { .. }) => assert!(text.starts_with('#')),
            other => panic!("{text:.60}: {other:?}"),
        }
        assert_eq!(r.kept(), 0);
    }
    let good = r.create("f", "long f(long n) { return n; }").unwrap();
    assert_eq!(good.call(&[Value::Int(3)]).unwrap(), Value::Int(3));
}

/// Built-in functions that are declared in another way than they are, and deleted ones that others call.
#[test]
fn what_is_called_is_checked() {
    let built_ins = BuiltIns::new().func("add", |a: i64, b: i64| a.wrapping_add(b));
    let r = Runtime::new(built_ins, &DomainOptions::default()).unwrap();
    for wrong in [
        "long add(long); long f(long n) { return add(n); }",
        "double add(long, long); long f(long n) { return add(n, n); }",
        "long add(double, long); long f(long n) { return add(n, n); }",
        "long add(void); long f(long n) { return add(); }",
    ] {
        match r.create("f", wrong) {
            Err(FunctionError::Type { name, .. }) => assert_eq!(name, "add"),
            other => panic!("{wrong}: {other:?}"),
        }
    }
    r.create("g", "long g(long n) { return n + 1; }").unwrap();
    let f = r
        .create("f", "long g(long); long f(long n) { return g(n); }")
        .unwrap();
    assert_eq!(f.call(&[Value::Int(3)]).unwrap(), Value::Int(4));
    r.delete("g").unwrap();
    match f.call(&[Value::Int(3)]) {
        Err(FunctionError::Deleted { name }) => assert_eq!(name, "g"),
        other => panic!("{other:?}"),
    }
    r.reset().unwrap();
    r.create("g", "long g(long n) { return n + 2; }").unwrap();
    assert!(f.call(&[Value::Int(3)]).is_err(), "the deleted one was another");
}

/// What fails in one runtime is not seen in another, and each failed call tells its line.
#[test]
fn failures_stay_where_they_are() {
    let (bad, good) = (runtime(), runtime());
    let kept = good
        .create("kept", "static long n; long kept(long by) { return n += by; }")
        .unwrap();
    for (n, text) in [
        "long f(long n)\n{\n\treturn 7 / (n - n);\n}",
        "long f(long n)\n{\n\t*(int *)(n + 5) = 1; return 0;\n}",
        "long f(long n)\n{\n\tfor (;;) n++;\n}",
        "long f(long n)\n{\n\tchar big[1000]; big[n & 7] = n; return f(n + big[3]) * 3 + big[n & 7];\n}",
    ]
    .into_iter()
    .enumerate()
    {
        let f = bad.create("f", text).unwrap();
        let limit = text.contains("for (;;)").then_some(Duration::from_millis(20));
        bad.domain().set_time_limit(limit).unwrap();
        let fault = fault(&f, 1);
        assert_eq!(place(&fault.backtrace()[0]), ("f", 3), "{fault}");
        assert_eq!(kept.call(&[Value::Int(1)]).unwrap(), Value::Int(n as i64 + 1));
        bad.domain().set_time_limit(None).unwrap();
        bad.reset().unwrap();
        bad.delete("f").unwrap();
    }
}
