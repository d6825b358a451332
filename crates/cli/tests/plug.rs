//! `ringfence plug`: calls of functions from text, and the dialogue.

mod common;

use common::{Dir, Ran};

const TEXT: &str = "
static long calls;
long twice(long n) { calls++; return 2 * n; }
double scale(double x, float by, signed char n) { return x * by + n; }
int length(const char *s) { int n = 0; while (s[n]) n++; return n; }
void nothing(void) {}
long divide(long a, long b) { return a / b; }
double precise(double x, long n) { long double sum = 0; while (n-- > 0) sum += x; return sum; }
long wild(long at) { return *(char *)at; }
long endless(void) { for (;;) calls++; return calls; }
long deep(long n) { return deep(n + 1) * 3 + 1; }
";

fn plug(dir: &Dir, words: &[&str]) -> Ran {
    dir.write("f.c", TEXT);
    let mut all = vec!["plug", "f.c", "--call"];
    all.extend(words);
    dir.rf(&all)
}

#[test]
fn functions_are_called_from_the_command_line() {
    let dir = Dir::new();
    for (words, out) in [
        (&["twice", "21"][..], "42\n"),
        (&["twice", "-21"], "-42\n"),
        (&["twice", "0x10"], "32\n"),
        (&["scale", "1.5", "2", "-1"], "2\n"),
        (&["length", "four"], "4\n"),
        (&["length", "12"], "2\n"),
        (&["nothing"], ""),
        (&["divide", "7", "2"], "3\n"),
        (&["precise", "0.1", "1000"], "100\n"),
    ] {
        let ran = plug(&dir, words).ok();
        assert_eq!((&*ran.out, &*ran.err), (out, ""), "{words:?}");
    }
    plug(&dir, &["twice"]).fails(2, &["twice takes 1 argument, not 0"]);
    plug(&dir, &["twice", "1", "2"]).fails(2, &["twice takes 1 argument, not 2"]);
    plug(&dir, &["twice", "x"]).fails(2, &["argument 1 of twice has to be long"]);
    plug(&dir, &["scale", "1", "1", "128"]).fails(2, &["argument 3", "from -128 to 127"]);
    let help = dir.rf(&["plug", "--help"]).ok().out;
    assert!(help.contains("A call may take 10s unless"), "{help}");
    plug(&dir, &["nobody"]).fails(2, &["there is no function nobody"]);
}

#[test]
fn failures_have_the_statuses_of_call() {
    let dir = Dir::new();
    plug(&dir, &["divide", "1", "0"]).fails(139, &["division"]);
    plug(&dir, &["wild", "64"]).fails(139, &["bad read at 0x"]);
    plug(&dir, &["deep", "1"]).fails(139, &["stack"]);
    dir.write("f.c", TEXT);
    dir.rf(&["plug", "f.c", "--time-limit", "20ms", "--call", "endless"])
        .fails(124, &["time limit"]);
}

#[test]
fn errors_of_a_text_show_their_place() {
    let dir = Dir::new();
    dir.write("g.c", "long g(long n)\n{\n\treturn m +\n\t\t\"a\" * n;\n}\n");
    let ran = dir
        .rf(&["plug", "g.c", "--call", "g", "1"])
        .fails(1, &["g.c:3:9: error: unknown name `m`"]);
    assert!(
        ran.err.contains("     return m +\n            ^\n"),
        "{}",
        ran.err
    );
    dir.write("h.c", "static long h(long n) { return n; }\n");
    dir.rf(&["plug", "h.c"])
        .fails(1, &["h.c: the text defines no function that can be called"]);
    dir.write("i.c", "long other(long); long i(long n) { return other(n); }\n");
    dir.rf(&["plug", "i.c"]).fails(1, &["i.c: the text calls other"]);
    dir.write("j.c", b"long j(void) { return '\xFF'; }");
    dir.rf(&["plug", "j.c"]).fails(2, &["j.c: it is not UTF-8"]);
    dir.rf(&["plug", "none.c"]).fails(2, &["none.c"]);
    dir.rf(&["plug", "--call", "f"]).fails(2, &["FILE"]);
}

#[test]
fn object_code_is_made_and_taken() {
    let dir = Dir::new();
    dir.write("f.c", TEXT);
    dir.rf(&["plug", "f.c", "-o", "f.rfo"]).ok();
    let ran = dir.rf(&["plug", "f.rfo", "--call", "twice", "21"]).ok();
    assert_eq!(ran.out, "42\n");
    // A fault in it still tells function and line.
    dir.rf(&["plug", "f.rfo", "--call", "divide", "1", "0"])
        .fails(139, &["divide (text:7)"]);
    dir.rf(&["plug", "f.rfo", "-o", "again.rfo"]).ok();
    let bytes = |name: &str| dir.read(name);
    assert!(bytes("f.rfo") == bytes("again.rfo"));
    dir.write("cut.rfo", &bytes("f.rfo")[..100]);
    dir.rf(&["plug", "cut.rfo"])
        .fails(1, &["cut.rfo: this is no object code of a function"]);
    dir.write("g.c", "long g(");
    dir.rf(&["plug", "g.c", "-o", "g.rfo"]).fails(1, &["g.c:1:"]);
    dir.rf(&["plug", "f.c", "-o", "none/f.rfo"])
        .fails(2, &["none/f.rfo"]);
    dir.rf(&["plug", "f.c", "-o", "x", "--call", "twice", "1"])
        .fails(2, &["cannot be used"]);
}

/// A dialogue with these lines.
fn dialogue(dir: &Dir, lines: &str) -> Ran {
    dir.write("lines", lines);
    dir.sh("\"$RF\" plug <lines")
}

#[test]
fn a_dialogue_defines_calls_replaces_and_deletes() {
    let dir = Dir::new();
    let lines = r#"
        long twice(long n) { return 2 * n; }
        twice(21)
        long twice(long n) {
            return n << 1;
        }
        twice(-4);
        long twice(long);
        void print(const char *); void print_long(long);
        long four(long n) { print("four }"); print_long(n); return twice(twice(n)); }
        four(5)
        int length(const char *s) { int n = 0; while (s[n]) n++; return n; }
        length("a \"b\"")
        list
        delete length
        list
        help
        quit
        twice(1)
    "#;
    let ran = dialogue(&dir, lines).ok();
    let expected = "\
created twice: long(long)
42
replaced twice: long(long)
-8
created four: long(long)
four }
5
20
created length: int(void *)
5
four: long(long)
length: int(void *)
twice: long(long)
four: long(long)
twice: long(long)
";
    let help = ran
        .out
        .strip_prefix(expected)
        .unwrap_or_else(|| panic!("{}", ran.out));
    assert!(
        help.starts_with("long twice(long n)") && help.contains("help, quit"),
        "{help}"
    );
    assert_eq!(ran.err, "", "no prompt");
}

#[test]
fn a_dialogue_goes_on_after_mistakes_and_tells_them_in_the_end() {
    let dir = Dir::new();
    let lines = "
        long f(long n) { return m; }
        long f(long n) { static long count; count += n; return 100 / (count - 3); }
        f(1)
        f(2)
        f(1)
        f(1, 2)
        f(x)
        g(1)
        delete g
        int f(long n) { return 0; }
        delete f
        f(1)
    ";
    let ran = dialogue(&dir, lines).fails(1, &[]);
    assert_eq!(ran.out, "created f: long(long)\n-50\n-50\n");
    for part in [
        "1:25: error: unknown name `m`",
        "division",
        "the data of all functions are as they were at first again",
        "f takes 1 argument, not 2",
        "x is no number and no string; try help",
        "there is no function g",
        "f has the type long(long), not int(long)",
        "there is no function f",
    ] {
        assert!(ran.err.contains(part), "no {part:?} in {}", ran.err);
    }
}

#[test]
fn a_slip_of_a_command_takes_no_more_lines() {
    let dir = Dir::new();
    dir.write("lines", "lokup twice\nlong twice(long n)\n{ return 2 * n; }\ntwice 4\ntwice(2)\n_Bool on(_Bool b) { return b; }\non(1)\non(2)\nquit\n");
    let ran = dir.sh("\"$RF\" plug <lines").fails(
        1,
        &["this is no call", "argument 1 of on has to be _Bool: 0 or 1"],
    );
    assert_eq!(
        ran.out,
        "created twice: long(long)\n4\ncreated on: _Bool(_Bool)\n1\n"
    );
}

#[test]
fn a_text_is_loaded_before_a_dialogue() {
    let dir = Dir::new();
    dir.write("f.c", TEXT);
    dir.write("lines", "twice(2)\ndelete twice\ndelete deep\ntwice(1)\n");
    let ran = dir
        .sh("\"$RF\" plug f.c <lines")
        .fails(1, &["twice came with deep", "there is no function twice"]);
    assert_eq!(ran.out, "4\n");
}

#[test]
fn endless_input_ends() {
    let dir = Dir::new();
    dir.sh("yes 'long f(long n) { return n' | head -c 3000000 | \"$RF\" plug")
        .fails(1, &["the text has more than"]);
    dir.sh("head -c 2000000 /dev/zero | tr '\\0' '(' | \"$RF\" plug")
        .fails(1, &["error"]);
    let ran = dir.sh("\"$RF\" plug </dev/null").ok();
    assert_eq!(ran.out, "");
}

#[test]
fn times_are_told_if_asked() {
    let dir = Dir::new();
    dir.write("f.c", TEXT);
    let ran = dir.rf(&["plug", "f.c", "--time", "--call", "twice", "1"]).ok();
    assert_eq!(ran.out, "2\n");
    assert!(
        ran.err.contains("compiled in ") && ran.err.contains("called in "),
        "{}",
        ran.err
    );
}
