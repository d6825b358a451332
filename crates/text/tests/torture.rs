//! gcc's own execution tests, those that are in the language: none gives a wrong result, and enough are taken.
//!
//! The sources are what `sysroot/fetch.sh gcc` brings; where they are not, there is nothing to run.

mod support;

use std::path::Path;
use support::{Machine, Outcome};

/// As many are taken at least, and give the right result.
const FLOOR: usize = 600;

/// The functions that the tests need, in the language itself. A program that ends says so by the address that it writes to.
const LIBRARY: &str = r#"
#define __inline__ inline
#define __inline inline
#define __extension__
#define __restrict__ restrict
#define __restrict restrict
#define __const const
#define __volatile__ volatile
#define __signed signed
#define __SIZE_TYPE__ unsigned long
#define __PTRDIFF_TYPE__ long
#define __INTPTR_TYPE__ long
#define __UINTPTR_TYPE__ unsigned long
#define __INT64_TYPE__ long
#define __INT32_TYPE__ int
#define __UINT32_TYPE__ unsigned
#define __UINT8_TYPE__ unsigned char
#define __CHAR_BIT__ 8
#define __INT_MAX__ 2147483647
#define __LONG_LONG_MAX__ 9223372036854775807LL
#define __builtin_abort abort
#define __builtin_exit exit
#define __builtin_memcpy memcpy
#define __builtin_memset memset
#define __builtin_memcmp memcmp
#define __builtin_strlen strlen
#define __builtin_strcmp strcmp
typedef unsigned long size_t;
void exit(int status) { *(volatile char *)(long)(8 + (status != 0)) = 0; for (;;) ; }
void abort(void) { *(volatile char *)24 = 0; for (;;) ; }
void *memset(void *to, int value, size_t n) { char *p = to; while (n--) *p++ = value; return to; }
void *memcpy(void *to, const void *from, size_t n) { char *p = to; const char *q = from; while (n--) *p++ = *q++; return to; }
int memcmp(const void *a, const void *b, size_t n) { const unsigned char *p = a, *q = b; for (; n--; p++, q++) if (*p != *q) return *p - *q; return 0; }
size_t strlen(const char *s) { const char *p = s; while (*p) p++; return p - s; }
int strcmp(const char *a, const char *b) { while (*a && *a == *b) a++, b++; return (unsigned char)*a - (unsigned char)*b; }
char *strcpy(char *to, const char *from) { char *p = to; while ((*p++ = *from++)) ; return to; }
"#;

/// Programs about what is another compiler's own: precision of wide bit-fields, functions known by their names, and bytes
/// that are no UTF-8.
const OTHERS: [&str; 5] = [
    "bitfld-3.c",
    "pr32244-1.c",
    "pr34971.c",
    "20021127-1.c",
    "20000227-1.c",
];

/// Attributes that change nothing about what a correct program does.
const HARMLESS: [&str; 14] = [
    "noinline",
    "noclone",
    "noipa",
    "unused",
    "used",
    "noreturn",
    "const",
    "pure",
    "nothrow",
    "cold",
    "hot",
    "malloc",
    "always_inline",
    "returns_nonnull",
];

/// The text without harmless attributes.
fn plain(text: &str) -> String {
    let mut rest = text;
    let mut out = String::new();
    while let Some(at) = rest.find("__attribute__") {
        let behind = &rest[at + "__attribute__".len()..];
        let mut depth = 0;
        let end = behind.char_indices().find_map(|(i, c)| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            (c == ')' && depth == 0).then_some(i + 1)
        });
        let Some(end) = end else { break };
        let words = behind[..end]
            .split(|c: char| !(c.is_alphanumeric() || c == '_'))
            .filter(|w| !w.is_empty());
        out.push_str(&rest[..at]);
        if !words.map(|w| w.trim_matches('_')).all(|w| HARMLESS.contains(&w)) {
            out.push_str("__attribute__");
        }
        rest = &behind[end..];
    }
    out + rest
}

/// What calls the program.
const START: &str = "\nlong ringfence_start(long a, long b) { return main(); }\n";

#[test]
fn gccs_tests_in_the_language_pass() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../build/sources/gcc-12.2.0/gcc/testsuite/gcc.c-torture/execute");
    let Ok(entries) = std::fs::read_dir(&directory) else {
        eprintln!("{} is not there: run sysroot/fetch.sh gcc", directory.display());
        return;
    };
    let mut files: Vec<_> = entries
        .map(|e| e.unwrap().path())
        .filter(|f| f.extension().is_some_and(|e| e == "c"))
        .collect();
    files.sort();
    let machine = Machine::new();
    let (mut passed, mut refused, mut wrong) = (0, 0, Vec::new());
    for file in files {
        let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        if OTHERS.contains(&&name[..]) {
            continue;
        }
        let compiled = ringfence_text::compile(&format!("{LIBRARY}{}{START}", plain(&text)));
        let Some(compiled) = compiled.ok().filter(|c| c.imports.is_empty()) else {
            refused += 1;
            continue;
        };
        match machine.call(&compiled, "ringfence_start", [0, 0]) {
            Outcome::Value(value) if value as i32 == 0 => passed += 1,
            Outcome::Access(8) => passed += 1,
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    println!(
        "torture: {passed} passed, {refused} not in the language, {} failed",
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed >= FLOOR, "{passed} of at least {FLOOR}");
}
