//! What people read when a text is wrong: place, line, caret, remedy, several at once.

use ringfence_text::compile;

fn told(text: &str) -> String {
    compile(text).expect_err("it is wrong").to_string()
}

#[test]
fn errors_tell_line_column_and_remedy() {
    let text = "long f(long n)\n{\n\treturn n + m;\n}\n";
    let expected = "3:13: error: unknown name `m`
     return n + m;
                ^
    declare it before it is used";
    assert_eq!(told(text), expected);
}

#[test]
fn several_are_told_at_once() {
    let text = "int f(void) { return x; }\nint g(int a) { int b = a + ; foo(3); return *a; }\nstruct s { int a; } q;\nvoid h(void) { q.b = 1; }";
    let errors = compile(text).unwrap_err();
    let told: Vec<_> = errors
        .0
        .iter()
        .map(|e| (e.line, e.column, &e.message[..]))
        .collect();
    let expected = [
        (1, 22, "unknown name `x`"),
        (2, 28, "an expression is expected here, not `;`"),
        (2, 30, "unknown name `foo`"),
        (2, 45, "this is no pointer"),
        (4, 18, "there is no member `b`"),
    ];
    assert_eq!(told, expected);
    let many: String = (0..100)
        .map(|i| format!("int f{i}(void) {{ return x; }}\n"))
        .collect();
    assert_eq!(compile(&many).unwrap_err().0.len(), ringfence_text::Errors::LIMIT);
}

#[test]
fn long_lines_are_cut_around_the_place() {
    let text = format!("int a; {}int b = c;{}", " ".repeat(5000), " ".repeat(5000));
    let error = &compile(&text).unwrap_err().0[0];
    assert_eq!((error.line, error.column), (1, 5016));
    assert!(error.source.len() <= 120);
    assert_eq!(&error.source[error.caret as usize..][..1], "c");
}

/// Texts, and a part of what is said.
#[test]
fn what_is_not_taken_is_an_error() {
    let cases = [
        ("#include <stdio.h>\n", "only #define of constants"),
        ("#define F(x) x\n", "macros with parameters"),
        ("long long double x;", "these words together are no type"),
        ("long double x = 1.5e;", "this is no number"),
        ("long double x = 0x1.8L;", "this is no number"),
        ("long double f(long double x) { return x % 2; }", "takes integers"),
        ("long double f(long double x) { return x & 2; }", "takes integers"),
        ("int f(long double x) { switch (x) { } return 0; }", "integer"),
        ("int f(int *p, long double x) { return p[x]; }", "types"),
        ("int f(long double x) { return *x; }", "this is no pointer"),
        ("long double f(int *p) { return p; }", "another type"),
        ("int *f(long double x) { return (int *)x; }", "cannot be cast"),
        ("struct s { long double x : 3; };", "no possible width"),
        ("long double x; long double y = x;", "has to be a constant"),
        ("int f(void) { return 'abcde'; }", "one to four characters"),
        ("int f(void) { return ''; }", "one to four characters"),
        ("_Complex double x;", "`_Complex` is not supported"),
        (
            "__attribute__((packed)) struct s { int a; };",
            "`__attribute__` is not supported",
        ),
        ("int f(int n) { int a[n]; return 0; }", "variable length"),
        ("int f(int n, ...) { return n; }", "called, but not defined"),
        (
            "int f(void) { int g(void) { return 1; } return g(); }",
            "is expected here",
        ),
        ("int f(int n) { return ({ n; }); }", "statements in expressions"),
        (
            "int f(int n) { switch (n) { case 1 ... 3: return 1; } return 0; }",
            "ranges of cases",
        ),
        (
            "int f(void) { void *p = &&l; goto *p; l: return 0; }",
            "an expression is expected",
        ),
        (
            "int f(void) { asm(\"nop\"); return 0; }",
            "`asm` is not supported",
        ),
        ("int f(void) { return 08; }", "this is no number"),
        ("int x = 1; int x = 2;", "cannot have an initialiser"),
        ("int f(void); long f(void);", "declared differently"),
        ("int f(int a) { return f(a, 1); }", "takes 1 argument, not 2"),
        ("int f(int *p) { return p; }", "a pointer is no integer"),
        ("int *f(void) { return 5; }", "an integer is no pointer"),
        ("int *f(double *p) { return p; }", "points to another type"),
        ("int *f(const int *p) { return p; }", "drops the qualifier"),
        ("void f(const int *p) { *p = 1; }", "this is const"),
        (
            "void f(void) { const struct { int a; } s = { 1 }; s.a = 2; }",
            "this is const",
        ),
        ("int f(int a) { a + 1 = 2; return a; }", "cannot be assigned"),
        (
            "int f(int a, int b, int c) { a ? b : c = 1; return a; }",
            "cannot be assigned",
        ),
        ("int f(void) { break; }", "nothing that it could leave"),
        ("int f(void) { case 1: return 0; }", "in no switch"),
        (
            "int f(int a) { switch (a) { case 1: case 1: return 1; } return 0; }",
            "two cases",
        ),
        ("int f(void) { goto out; }", "no label `out`"),
        ("int x = f(); int f(void);", "unknown name `f`"),
        ("int f(void); int x = f();", "has to be a constant"),
        (
            "static int f(void); int g(void) { return f(); }",
            "used, but not defined",
        ),
        (
            "extern int x; int g(void) { return x; }",
            "declared, but not defined",
        ),
        ("struct s; int f(struct s *p) { return p->a; }", "not known"),
        ("struct s { int a : 40; };", "no possible width"),
        (
            "int f(void) { struct { int a : 3; } s; return *&s.a; }",
            "a bit-field has no address",
        ),
        ("void v(void); int f(void) { return v(); }", "this has no value"),
        ("float f(float a) { return a % 2; }", "takes integers"),
        ("int a[2] = { 1, 2, 3 };", "more values than places"),
        ("char a[2] = \"abc\";", "longer than its array"),
        ("_Static_assert(1 == 2, \"no\");", "does not hold"),
        (
            "int f(void) { return 1; } int f(void) { return 2; }",
            "defined twice",
        ),
        ("int f(char *p) { return p->x; }", "no structure"),
    ];
    for (text, part) in cases {
        let message = told(text);
        assert!(message.contains(part), "{text}\n{message}\nhas no {part:?}");
    }
}
