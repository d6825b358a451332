//! Texts from strangers: whatever they are, the compiler comes back, with errors or with code that the verifier accepts.

mod support;

use ringfence_text::{Errors, compile};
use std::path::Path;
use support::verify;

/// Compiles; what comes of it is accepted.
fn judged(text: &str) -> Result<(), Errors> {
    let compiled = compile(text)?;
    for base in [
        0x4000_0000_u64,
        0x629A_0000,
        0x629A_6290,
        0x7FFF_FFF0,
        0x9A62_9A60,
    ] {
        if let Ok(code) = compiled.link_code(base, &vec![0x2_0200; compiled.imports.len()]) {
            verify(&compiled, &code);
        }
    }
    Ok(())
}

fn refused(text: &str, part: &str) {
    let errors = judged(text).expect_err("it is refused");
    let message = errors.to_string();
    assert!(message.contains(part), "{message}\nhas no {part:?}");
    assert!(message.len() < 20_000, "the message is short");
}

/// Numbers that look random, the same each time.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}

fn programs() -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .map(|f| std::fs::read_to_string(f).unwrap())
        .collect()
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [
        ("(", ")"),
        ("{", "}"),
        ("-", ""),
        ("!", ""),
        ("(long)", ""),
        ("&", ""),
        ("*", ""),
        ("if (1) ", ""),
        ("for (;;) ", ""),
    ] {
        let text = format!(
            "long f(long x) {{ {}x;{} return 0; }}",
            open.repeat(20_000),
            close.repeat(20_000)
        );
        assert!(judged(&text).is_err(), "{open}");
    }
    refused(
        &format!("int x = {}1{};", "(".repeat(1000), ")".repeat(1000)),
        "deep",
    );
    refused(&format!("int a{} = 1;", "[1]".repeat(1000)), "64 types");
    refused(&format!("int {}a;", "*".repeat(1000)), "64 types");
    refused(&format!("int {}a{};", "(".repeat(1000), ")".repeat(1000)), "deep");
    refused(
        &format!("int x[] = {}1{};", "{".repeat(1000), "}".repeat(1000)),
        "deep",
    );
    refused(&"struct s { ".repeat(1000), "deep");
    for op in ["+", "&&", "||", ",", "*", "<", "=", "? x :"] {
        refused(
            &format!(
                "long f(long x) {{ return {}x; }}",
                format!("x {op} ").repeat(2000)
            ),
            "",
        );
    }
    refused(
        &format!("long f(long x) {{ return x{}; }}", " ? x : x".repeat(2000)),
        "",
    );
}

#[test]
fn size_is_bounded() {
    refused(&" ".repeat(10 << 20), "more than 1048576 bytes");
    refused(&";".repeat(500_000), "tokens");
    refused(
        "#define A A A\nint a = 1;\n#define B0 1+1+1+1+1+1+1+1\n#define B1 B0+B0+B0+B0+B0+B0+B0+B0\n#define B2 B1+B1+B1+B1+B1+B1+B1+B1\n#define B3 B2+B2+B2+B2+B2+B2+B2+B2\n#define B4 B3+B3+B3+B3+B3+B3+B3+B3\n#define B5 B4+B4+B4+B4+B4+B4+B4+B4\n#define B6 B5+B5+B5+B5+B5+B5+B5+B5\nint b = B6;",
        "tokens",
    );
    let long = format!(
        "#define S \"{}\"\nchar *s = {};",
        "x".repeat(10_000),
        "S ".repeat(10_000)
    );
    refused(&long, "strings of more than");
    refused("char a[1 << 28]; char b[1 << 28];", "MiB of data");
    refused("char a[1 << 29];", "256 MiB");
    refused("char a[0x7FFFFFFFFFFFFFFF][0x7FFFFFFFFFFFFFFF];", "256 MiB");
    refused("int a[] = { [100000000] = 1 };", "");
    refused("long f(void) { char a[1 << 21]; return a[0]; }", "locals");
    refused(
        "struct s { char a[1 << 27]; char b[1 << 27]; char c[1 << 27]; };",
        "256 MiB",
    );
    // Many small functions, each of which calls the one before twice: they stand in each other only so deep.
    let mut text = "static long f0(long x) { return x + 1; }\n".to_string();
    for i in 1..200 {
        text += &format!(
            "static long f{i}(long x) {{ return f{0}(x) + f{0}(x * 2); }}\n",
            i - 1
        );
    }
    judged(&(text + "long f(long x) { return f199(x); }")).unwrap();
    // A value that lives across very many blocks, and many such values.
    let many: String = (0..3000).map(|i| format!("long v{i} = x + {i};\n")).collect();
    let blocks: String = (0..3000)
        .map(|i| format!("if (v{i}) x += v{};\n", 2999 - i))
        .collect();
    let _ = judged(&format!("long f(long x) {{ {many}{blocks} return x; }}"));
    let labels: String = (0..3000)
        .map(|i| format!("l{i}: if (x & {i}) goto l{}; x++;\n", (i * 7919) % 3000))
        .collect();
    let _ = judged(&format!("long f(long x) {{ {labels} return x; }}"));
    let cases: String = (0..5000)
        .map(|i| format!("case {}: x += {i}; break;\n", i * 37))
        .collect();
    judged(&format!(
        "long f(long x) {{ switch (x) {{ {cases} }} return x; }}"
    ))
    .unwrap();
}

#[test]
fn what_does_not_end_is_told() {
    refused("long f(void) { return 1;", "not closed");
    refused("/* comment", "comment");
    refused("char *s = \"abc", "quote");
    refused("char c = 'a", "quote");
    refused("long f(", "expected");
    refused("#define", "name");
    refused("long f(void) { return 1 / 0 ? g", "unknown name");
    refused("\u{0}\u{1}\u{ff}", "no meaning");
    for end in 0..200 {
        for text in programs() {
            let end = (0..=end)
                .rev()
                .find(|&e| text.is_char_boundary(e))
                .unwrap_or(0)
                .min(text.len());
            let _ = judged(&text[..end]);
        }
    }
}

#[test]
fn immediates_that_look_like_identifiers_are_accepted() {
    let mut body = String::new();
    for i in 0..400_u64 {
        let n = [
            0x629A_629A_629A_629A_u64,
            0x9A62_9A62_9A62_9A62,
            0x0062_9A00,
            0x6200_629A,
            0x629A,
        ][i as usize % 5];
        body += &format!("x = x * {n} + {}; p[{}] = {n}; ", n ^ i, n & 0xFFFF);
    }
    judged(&format!("long f(long x, long *p) {{ {body} return x; }}")).unwrap();
    judged("static long a[100]; long f(long i) { a[1] = i; a[i]++; return a[7] + a[i] + *(a + i * 2) + (long)&a[3]; }").unwrap();
}

#[test]
fn mutated_programs_do_no_harm() {
    let programs = programs();
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    for entry in std::fs::read_dir(corpus).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        let _ = judged(&String::from_utf8_lossy(&bytes));
    }
    let rounds = std::env::var("RINGFENCE_TEXT_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1500);
    let seed = std::env::var("RINGFENCE_TEXT_SEED")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(1);
    let mut random = Random(seed);
    let mut accepted = 0;
    const PIECES: [&str; 40] = [
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        ";",
        ",",
        "*",
        "&",
        "-",
        "!",
        "~",
        "++",
        "<<",
        "/",
        "%",
        "?",
        ":",
        "=",
        "+=",
        "->",
        ".",
        "0",
        "1",
        "-1",
        "0x629A629A",
        "1.5f",
        "\"s\"",
        "long",
        "char",
        "struct",
        "unsigned",
        "double",
        "static",
        "goto",
        "case",
        "sizeof",
        "return",
        "const",
    ];
    for round in 0..rounds {
        let mut text = programs[random.next(programs.len())].clone();
        for _ in 0..=random.next(4) {
            let words: Vec<&str> = text.split_inclusive(|c: char| !c.is_alphanumeric()).collect();
            let at = random.next(words.len());
            let mut words: Vec<String> = words.into_iter().map(String::from).collect();
            match random.next(5) {
                0 => drop(words.remove(at)),
                1 => words.insert(at, PIECES[random.next(PIECES.len())].into()),
                2 => words[at] = PIECES[random.next(PIECES.len())].into(),
                3 => {
                    let other = words[random.next(words.len())].clone();
                    words[at] = other;
                }
                _ => {
                    let other = random.next(words.len());
                    words.swap(at, other);
                }
            }
            text = words.concat();
        }
        let result = std::panic::catch_unwind(|| judged(&text).is_ok());
        match result {
            Ok(good) => accepted += usize::from(good),
            Err(_) => {
                let file = support::scratch().join(format!("panic-{round}.c"));
                std::fs::write(&file, &text).unwrap();
                panic!(
                    "round {round} with seed {seed} failed; the text is in {}",
                    file.display()
                );
            }
        }
    }
    assert!(accepted > rounds / 50, "{accepted} of {rounds} were programs");
}
