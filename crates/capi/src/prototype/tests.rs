use super::*;

fn signature(text: &str) -> Signature {
    match read(text) {
        Ok(Named::Function(_, signature)) => signature,
        other => panic!("{text}: {other:?}"),
    }
}

fn error(text: &str) -> String {
    let failure = read(text).expect_err(text);
    assert_eq!(failure.status, Status::ERROR_TYPE, "{text}");
    failure.to_string()
}

#[test]
fn names_without_a_type() {
    assert_eq!(read("add").unwrap(), Named::Bare("add"));
    assert_eq!(read("").unwrap(), Named::Bare(""));
    assert_eq!(read("untyped add").unwrap(), Named::Untyped("add"));
    assert_eq!(read("an object?").unwrap(), Named::Bare("an object?"));
}

#[test]
fn every_scalar_has_its_width() {
    use Width::{Byte, Int, Short, Word};
    for (text, width) in [
        ("char", Byte { signed: true }),
        ("signed char", Byte { signed: true }),
        ("const unsigned char", Byte { signed: false }),
        ("_Bool", Byte { signed: false }),
        ("bool", Byte { signed: false }),
        ("uint8_t", Byte { signed: false }),
        ("short", Short { signed: true }),
        ("int short unsigned", Short { signed: false }),
        ("uint16_t", Short { signed: false }),
        ("int", Int),
        ("unsigned", Int),
        ("signed", Int),
        ("uint32_t", Int),
        ("wchar_t", Int),
        ("enum color", Int),
        ("long", Word),
        ("long unsigned int", Word),
        ("long long", Word),
        ("unsigned long long int", Word),
        ("size_t", Word),
        ("intptr_t", Word),
        ("void *", Word),
        ("char **", Word),
        ("z_stream *", Word),
        ("const struct point *const", Word),
        ("int (*)(struct point, float)", Word),
        ("int [4]", Word),
    ] {
        for named in [text.to_owned(), format!("{text} x")] {
            if named.contains(['(', '[']) && named.ends_with('x') {
                continue;
            }
            let s = signature(&format!("void f({named})"));
            assert_eq!((s.ints, s.floats, s.stack), (1, 0, 0), "{named}");
            assert_eq!(s.narrow.ints[0], width, "{named}");
        }
        if !text.contains(['(', '[']) {
            let s = signature(&format!("{text} f(void)"));
            assert_eq!((s.int_results, s.narrow.int_result), (1, width), "{text}");
        }
    }
}

#[test]
fn prototypes_as_people_write_them() {
    let Ok(Named::Function(name, s)) = read("extern double mix(int a, double x, long b, float y) ;") else {
        panic!("refused");
    };
    assert_eq!((name, s.ints, s.floats, s.float_results), ("mix", 2, 2, 1));
    assert_eq!(s.narrow.singles, 0b10);
    assert!(!s.narrow.single_result && signature("float f(float)").narrow.single_result);
    let s = signature(
        "void qsort(void *base, size_t n, size_t size, int (*compare)(const void *, const void *))",
    );
    assert_eq!((s.ints, s.int_results), (4, 0));
    assert_eq!(signature("int main(int argc, char *argv[])").ints, 2);
    assert_eq!(signature("void f(int callback(int), double v[3][4])").ints, 2);
    assert_eq!(signature("char*strchr(const char*,int)").ints, 2);
    assert_eq!(signature("void f(void)").ints, 0);
    assert_eq!(signature("unsigned long f ( void * )").ints, 1);
}

#[test]
fn the_stack_is_laid_out_as_the_abi_says() {
    let s = signature("long f(int,int,int,int,int,int, int, char, long double, unsigned short, float)");
    assert_eq!((s.ints, s.floats, s.stack), (6, 1, 5));
    use Width::{Byte, Int, Nothing, Short, Word};
    let stack = [
        Int,
        Byte { signed: true },
        Word,
        Short { signed: false },
        Short { signed: false },
    ];
    assert_eq!(s.narrow.stack[..5], stack);
    let s = signature(
        "long double f(double,double,double,double,double,double,double,double, float, long double)",
    );
    assert_eq!((s.floats, s.stack, s.x87_results, s.int_results), (8, 4, 1, 0));
    assert_eq!(s.narrow.stack[..4], [Int, Nothing, Word, Short { signed: false }]);
    assert!(error(&format!("void f({}long)", "long,".repeat(22))).contains("136 bytes"));
    assert_eq!(
        signature(&format!("void f({}long)", "long,".repeat(21))).stack,
        16
    );
}

#[test]
fn mistakes_are_told_with_their_place() {
    for (text, column, what) in [
        ("int add(int, itn)", 14, "itn is no type"),
        ("uLong crc(uLong)", 1, "uLong is no type"),
        ("int f(struct point)", 7, "a struct does not pass by value"),
        ("union u f(int)", 1, "a union does not pass by value"),
        ("int f()", 7, "write (void)"),
        ("int f(int, ...)", 12, "variable arguments"),
        ("int f(int", 10, "closing parenthesis"),
        ("int f(int a int b)", 13, "comma"),
        ("int f(int,)", 11, "a type belongs here"),
        ("int f(,int)", 7, "a type belongs here"),
        ("int f(int, void)", 12, "void is no type of a parameter"),
        ("int f(void, int)", 7, "void is no type of a parameter"),
        ("int f(void x)", 7, "void is no type of a parameter"),
        ("int (f)(int)", 5, "no parentheses around the name"),
        ("int (*f(int))(int)", 5, "void *"),
        ("int f(int) int", 12, "ends before this"),
        ("int f(int))", 11, "ends before this"),
        ("int f(int (*g)(int)", 20, "closing parenthesis"),
        ("int f(int [3)", 11, "not closed"),
        ("int f(int &)", 11, "references"),
        ("int f(int a = 3)", 13, "'='"),
        ("int f(unsigned float)", 7, "make no type"),
        ("int f(long long long)", 17, "does not go with"),
        ("int f(short double)", 7, "make no type"),
        ("int f(int double)", 11, "does not go with"),
        ("int f(size_t long)", 14, "does not go with"),
        ("int f(double _Complex)", 14, "_Complex does not pass"),
        ("__int128 f(int)", 1, "__int128 does not pass"),
        ("(int, int)", 1, "a type belongs here"),
        ("add(int, int)", 1, "add is no type"),
        ("int f(5)", 7, "a type belongs here"),
        ("int f(struct)", 13, "a name belongs here"),
        ("int f(\u{e9}t\u{e9} x)", 7, "has no place"),
        ("untyped add(int)", 1, "untyped is no type"),
    ] {
        let message = error(text);
        assert!(
            message.contains(&format!("column {column}:")) && message.contains(what),
            "{text}: {message}"
        );
    }
}

/// Whatever the text: an answer, and one that the gates can do with.
#[test]
fn no_text_is_too_odd() {
    const WORDS: [&str; 17] = [
        "int", "long", "x", "*", "(", ")", "[", "]", ",", "...", "struct", "void", "double", ";", "7", "&",
        "float",
    ];
    let whole = [
        "double f ( int a , long double , char * b , float c )",
        "void * g ( void )",
        "long h ( int ( * ) ( int ) )",
    ];
    let mut state = 1u64;
    let mut chance = |most: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    let (mut good, mut bad) = (0, 0);
    for _ in 0..50_000 {
        let mut words: Vec<&str> = whole[chance(whole.len())].split(' ').collect();
        for _ in 0..=chance(4) {
            let at = chance(words.len());
            match chance(3) {
                0 => words[at] = WORDS[chance(WORDS.len())],
                1 => words.insert(at, WORDS[chance(WORDS.len())]),
                _ => drop(words.remove(at)),
            }
        }
        let text = words.join(" ");
        match read(&text) {
            Ok(Named::Function(_, s)) => {
                good += 1;
                assert!(
                    s.ints <= 6 && s.floats <= 8 && s.stack <= 16 && !s.variadic,
                    "{text}"
                );
            }
            Ok(_) => {}
            Err(_) => bad += 1,
        }
    }
    assert!(good > 2_000 && bad > 20_000, "{good} good, {bad} bad");
}
