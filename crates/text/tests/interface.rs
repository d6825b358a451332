//! What comes of a text besides code: exports, imports, fix-ups; and calls of built-in functions.

mod support;

use ringfence_text::{DataFix, Kind, Target, compile};
use support::{Machine, Outcome};

#[test]
fn exports_and_imports_have_their_types() {
    let text = "
        double host_mix(int, double, float, long); void host_note(const char *, ...); int unused(void);
        static int hidden(void) { return 1; }
        unsigned char g(float x, char *p) { host_note(p); return hidden() + (int)host_mix(1, x, x, 2); }
    ";
    let compiled = compile(text).unwrap();
    assert_eq!(compiled.exports.len(), 1);
    assert_eq!(compiled.exports[0].name, "g");
    assert_eq!(compiled.exports[0].params, [Kind::Float(4), Kind::Pointer]);
    assert_eq!(compiled.exports[0].result, Kind::Int(1, false));
    assert_eq!(
        compile("_Bool b(bool x) { return !x; }").unwrap().exports[0].params,
        [Kind::Bool]
    );
    let imports: Vec<_> = compiled
        .imports
        .iter()
        .map(|i| (&i.name[..], i.variadic, i.result))
        .collect();
    assert_eq!(
        imports,
        [
            ("host_mix", false, Kind::Float(8)),
            ("host_note", true, Kind::Void)
        ]
    );
    let numbers: Vec<u32> = compiled.code_imports.iter().map(|i| i.1).collect();
    assert_eq!(numbers, [1, 0], "in the order of the calls");
}

#[test]
fn addresses_in_data_are_told() {
    let compiled =
        compile("long f(long a) { return a; } int x[4]; void *p[] = { f, &x[2], p + 1, 0 };").unwrap();
    let fix = |at, to, offset| DataFix { at, to, offset };
    let expected = [
        fix(16, Target::Code, 0),
        fix(24, Target::Data, 8),
        fix(32, Target::Data, 24),
    ];
    assert_eq!(compiled.data_fixes, expected);
    let data = compiled.link_data(0x1_4000_0000, 0x1_3F00_0000, &[]);
    assert_eq!(data[16..24], 0x1_3F00_0000_u64.to_le_bytes());
    assert_eq!(data[32..40], 0x1_4000_0018_u64.to_le_bytes());
}

#[test]
fn data_move_where_an_identifier_would_arise() {
    let text: String = (0..64)
        .map(|i| format!("static long v{i}; long f{i}(void) {{ return v{i}++; }}\n"))
        .collect();
    let compiled = compile(&text).unwrap();
    // The upper half of every address is the prefix of identifiers: somewhere it falls on a place of one.
    assert!(compiled.link_code(0x629A_0000, &[]).is_err());
    assert!(compiled.link_code(0x4000_0000, &[]).is_ok());
}

#[test]
fn built_in_functions_are_called() {
    let machine = Machine::new();
    let text = "
        long host_add(long, long); double host_mix(int, double, float, long);
        static long (*add)(long, long) = host_add;
        long test(long a, long b) {
            long (*again)(long, long) = host_add;
            return host_add(a, b) * 1000 + add(1, 2) * 100 + again(3, 4) + (long)host_mix(1, 2.5, 0.5f, 10) + (again == add);
        }
    ";
    assert_eq!(machine.run(text, "test", [5, 6]), Outcome::Value(11_322));
}

/// E-code has the type `boolean`. Texts that define it, or something else of that name, mean their own.
#[test]
fn e_code_has_a_type_more_than_c() {
    let machine = Machine::new();
    let text = "
        struct image { unsigned char *pixels; int width; boolean grey; };
        static boolean seen;
        boolean is_dark(boolean before, int value) { boolean dark = value; return dark || before; }
        long test(long a, long b) {
            struct image image = { (unsigned char *)0, 3, 7 };
            int i;
            for (i = 0; i < 3; i++) { boolean now = a; if (now) seen = 1; }
            return is_dark(0, 256) + image.grey * 10 + (boolean)a * 100 + sizeof(boolean) * 1000 + seen * 10000;
        }
    ";
    assert_eq!(machine.run(text, "test", [5, 6]), Outcome::Value(11_111));
    for own in [
        "typedef int boolean; long test(long a, long b) { boolean x = a; return x * 10 + sizeof(boolean); }",
        "typedef enum { NO, YES = 50 } boolean; long test(long a, long b) { boolean x = YES; return x + sizeof x; }",
        "static int boolean = 54; long test(long a, long b) { return boolean; }",
        "long test(long a, long boolean) { struct s { int boolean; } s = { 48 }; return s.boolean + boolean; }",
    ] {
        assert_eq!(machine.run(own, "test", [5, 6]), Outcome::Value(54), "{own}");
    }
}

#[test]
fn mistakes_end_the_call_only() {
    let machine = Machine::new();
    let fault = |text: &str| machine.run(text, "test", [0, 0]);
    assert_eq!(
        fault("long test(long a, long b) { return 1 / a; }"),
        Outcome::Fault("Division".into())
    );
    assert_eq!(
        fault("long test(long a, long b) { return *(int *)a; }"),
        Outcome::Access(0)
    );
    assert_eq!(
        fault("long test(long a, long b) { return ((long (*)(void))a)(); }"),
        Outcome::Fault("BadTarget".into())
    );
    assert_eq!(
        fault("long test(long a, long b) { return test(a, b + 1) * 3 + 1; }"),
        Outcome::Fault("ControlStack".into())
    );
    let deep = "long test(long a, long b) { volatile char room[100000]; room[0] = a; return test(a, b) * 3 + room[0]; }";
    assert_eq!(fault(deep), Outcome::Fault("DataStack".into()));
    assert_eq!(
        machine.run("long test(long a, long b) { return a + b; }", "test", [1, 2]),
        Outcome::Value(3)
    );
}
