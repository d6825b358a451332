//! Object code: what is written is what is read, and nothing else is taken.

mod support;

use ringfence_text::{Compiled, compile};

/// One text with everything that object code has.
const TEXT: &str = "
    long host_add(long, long); double host_mix(int, double, float, long); int later(const char *, ...);
    struct s { int a; long b; }; struct s twice(struct s x) { x.a *= 2; return x; }
    static long calls[300]; static const char *names[] = { \"one\", \"two\" };
    float half(float x) { return x / 2; } void nothing(void) {}
    long (*table[])(long, long) = { host_add, 0 };
    _Bool run(unsigned char a, const char *p) { later(p, 1); return calls[a]++ + names[a & 1][0] + table[0](1, 2) + host_mix(1, 2, 3, 4); }
    long f(long a, long b) { return table[0](a, b) + names[1][2] + ++calls[7]; }
";

#[test]
fn what_is_read_is_what_was_written() {
    let mut texts = vec![TEXT.to_owned()];
    let programs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs");
    for entry in std::fs::read_dir(programs).unwrap() {
        texts.push(std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    for text in &texts {
        let compiled = compile(text).unwrap();
        let object = compiled.object();
        assert!(Compiled::is_object(&object));
        assert_eq!(Compiled::from_object(&object), Ok(compiled));
    }
    let long = compile("static char all[1 << 24]; char f(int n) { return all[n]; }").unwrap();
    assert!(long.object().len() < 1000, "zeroes at the end take no room");
}

#[test]
fn it_runs_as_the_text_does() {
    let text = TEXT.replace("later(p, 1); ", "");
    let compiled = compile(&text).unwrap();
    let read = Compiled::from_object(&compiled.object()).unwrap();
    let machine = support::Machine::new();
    let calls = [[1, 2], [-5, 7]];
    let expected = machine.calls(&compiled, "f", &calls);
    assert_eq!(expected[0], support::Outcome::Value(1 + 2 + i64::from(b'o') + 1));
    assert_eq!(machine.calls(&read, "f", &calls), expected);
}

#[test]
fn what_is_cut_is_refused() {
    let object = compile(TEXT).unwrap().object();
    for len in 0..object.len() {
        assert!(Compiled::from_object(&object[..len]).is_err(), "{len} bytes");
    }
    let longer = [&object[..], b"x"].concat();
    let error = Compiled::from_object(&longer).unwrap_err();
    assert_eq!(error.at, object.len());
    assert!(!Compiled::is_object(b"long f(long n) { return n; }"));
}

#[test]
fn bent_object_code_is_refused_or_linked() {
    let object = compile(TEXT).unwrap().object();
    let (mut taken, mut refused) = (0, 0);
    for at in 0..object.len() {
        for value in [0, 1, 0x7F, 0xFF, object[at].wrapping_add(1), object[at] ^ 0x80] {
            let mut bent = object.clone();
            bent[at] = value;
            let Ok(compiled) = Compiled::from_object(&bent) else {
                refused += 1;
                continue;
            };
            taken += 1;
            // Whatever it says, linking stays within it.
            let imports = vec![0x1_2345_6780; compiled.imports.len()];
            if let Ok(code) = compiled.link_code(0x1_4000_0000, &imports) {
                assert_eq!(code.len(), compiled.code.len());
            }
            let data = compiled.link_data(0x1_4000_0000, 0x1_3F00_0000, &imports);
            assert_eq!(data.len(), compiled.data.len());
            for offset in (0..compiled.code.len() as u32).step_by(7) {
                let _ = compiled.place(offset);
            }
        }
    }
    println!("{taken} were taken, {refused} refused");
    assert!(taken > 1000 && refused > 100, "{taken} taken, {refused} refused");
}

/// A message must not get control characters, nor a mebibyte, because object code says that a function's name is there.
#[test]
fn names_in_messages_are_short_and_have_letters_only() {
    let long = "n".repeat(1000);
    for (name, forged) in [("divides", "\x1b[2J\n\r\u{7f}"), (&*long, &*long)] {
        let compiled = compile(&format!("long {name}(long n) {{ return 1 / n; }}")).unwrap();
        let mut object = compiled.object();
        let at = object
            .windows(name.len())
            .rposition(|w| w == name.as_bytes())
            .unwrap();
        object[at..at + name.len()].copy_from_slice(forged.as_bytes());
        let place = Compiled::from_object(&object).unwrap().place(0).unwrap();
        assert!(place.function.len() <= 200, "{}", place.function.len());
        assert!(
            place
                .function
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "_?".contains(c)),
            "{place:?}"
        );
    }
}
