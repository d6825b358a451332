//! Policies of an interface: what they say, what is wrong with them, what they grant to a call, and those that a run teaches.

use ringfence_words::policy::learn::Recorder;
use ringfence_words::policy::{Copy, EvaluationError, Memory, Policy, Structure};
use ringfence_words::{Denied, DomainId, Grantee, Listed, Party, Rights, Supervisor, TypeId, Types};
use std::ops::Range;
use std::process::Command;

const BASE: u64 = 0x7F00_0000_0000;

/// An arena with objects.
struct Arena {
    bytes: Vec<u8>,
    objects: Vec<Range<u64>>,
}

impl Memory for Arena {
    fn offset(&self, pointer: u64) -> Option<u64> {
        pointer.checked_sub(BASE).filter(|&o| o < self.bytes.len() as u64)
    }
    fn read(&self, offset: u64, to: &mut [u8]) -> bool {
        let there = self.bytes.get(offset as usize..offset as usize + to.len());
        there.map(|b| to.copy_from_slice(b)).is_some()
    }
    fn object(&self, offset: u64) -> Option<Range<u64>> {
        self.objects.iter().find(|o| o.contains(&offset)).cloned()
    }
}

impl Arena {
    fn put(&mut self, at: u64, bytes: &[u8]) {
        self.bytes[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
    }
    fn point(&mut self, at: u64, to: u64) {
        self.put(at, &(BASE + to).to_le_bytes());
    }
}

const REQUEST: &str = "struct request 144 {\
    uri @0 char*; length @8 8; cb @16 1[48]; body @64 void*; next @72 struct request*; \
    peer @80 struct address 16; parts @96 4[8]; ids @128 4*; flags @136 4; mode @140 4 }\n\
    struct address 16 { family @0 2; port @2 2; host @4 1[8]; scope @12 4 }\n";

/// Two requests in a list, with their strings and a body of 40 bytes.
fn arena() -> Arena {
    let objects = vec![
        0x100..0x190,
        0x200..0x290,
        0x300..0x320,
        0x340..0x360,
        0x380..0x3A8,
        0x400..0x440,
    ];
    let mut a = Arena {
        bytes: vec![0; 0x1000],
        objects,
    };
    for (at, text, next) in [(0x100, 0x300, 0x200), (0x200, 0x340, 0)] {
        a.point(at, text);
        a.put(at + 8, &40_u64.to_le_bytes());
        a.point(at + 64, 0x380);
        a.point(at + 128, 0x400);
        if next != 0 {
            a.point(at + 72, next);
        }
    }
    a.put(0x300, b"/index.html\0rest");
    a.put(0x340, b"/\0");
    a
}

fn policy(line: &str) -> Policy {
    Policy::parse(&format!("{REQUEST}{line}"), |_| None).unwrap_or_else(|e| panic!("{e}"))
}

/// What a line grants to a call, in bytes.
fn needs(line: &str, arguments: &[u64]) -> Result<Vec<(Range<u64>, Rights, bool)>, EvaluationError> {
    let needed = policy(line).needs("f", arguments, &arena())?;
    let bytes = |w: Range<u32>| u64::from(w.start) * 4..u64::from(w.end) * 4;
    Ok(needed
        .into_iter()
        .map(|n| (bytes(n.words), n.rights, n.kept))
        .collect())
}

use Rights::{Read, Write};

#[test]
fn the_example_of_the_issue() {
    let line = "f(req: struct request) reads req->uri as string; writes req->cb[32]; keeps nothing";
    let got = needs(line, &[BASE + 0x100]).expect("all there");
    assert_eq!(
        got,
        [
            (0x100..0x108, Read, false),
            (0x300..0x30C, Read, false),
            (0x110..0x130, Write, false)
        ]
    );
}

#[test]
fn places_of_every_kind() {
    let one = |line: &str| {
        let got = needs(line, &[BASE + 0x100]).unwrap_or_else(|e| panic!("{line}: {e}"));
        got.last().cloned().expect("a range")
    };
    assert_eq!(one("f(r: struct request) reads *r"), (0x100..0x190, Read, false));
    assert_eq!(
        one("f(r: struct request) writes *r->next"),
        (0x200..0x290, Write, false)
    );
    assert_eq!(
        one("f(r: struct request) reads r->next->uri as string"),
        (0x340..0x344, Read, false)
    );
    assert_eq!(
        one("f(r: struct request) reads r->body[r->length]"),
        (0x380..0x3A8, Read, false)
    );
    assert_eq!(
        one("f(r: struct request) reads r->next->body[r->next->length]"),
        (0x380..0x3A8, Read, false)
    );
    assert_eq!(
        one("f(r: struct request) reads r->ids[3]"),
        (0x400..0x40C, Read, false)
    );
    assert_eq!(
        one("f(r: struct request) reads r->parts[2]"),
        (0x160..0x168, Read, false)
    );
    // Whole words: a field of two bytes comes with the other two.
    assert_eq!(
        one("f(r: struct request) reads r->peer.port"),
        (0x150..0x154, Read, false)
    );
    assert_eq!(
        one("f(r: struct request) writes r->peer.host[5]"),
        (0x154..0x15C, Write, false)
    );
    assert_eq!(
        one("f(r: struct request) writes r->cb; keeps r->cb"),
        (0x110..0x140, Write, true)
    );
    let copy = "f(to: bytes, from: bytes, n: number) writes to[n]; reads from[n]";
    let got = needs(copy, &[BASE + 0x200, BASE + 0x380, 24]).expect("all there");
    assert_eq!(got, [(0x200..0x218, Write, false), (0x380..0x398, Read, false)]);
    assert_eq!(
        needs("f(s: text) reads s as string", &[BASE + 0x300]).expect("a string"),
        [(0x300..0x30C, Read, false)]
    );
    // Null leads to nothing: not the string, not the next one's.
    assert_eq!(needs("f(s: text) reads s as string", &[0]).expect("null"), []);
    let end = needs(
        "f(r: struct request) reads r->next->uri as string",
        &[BASE + 0x200],
    )
    .expect("null");
    assert_eq!(end, [(0x248..0x250, Read, false)]);
}

#[test]
fn calls_whose_rights_cannot_be_told() {
    let why = |line: &str, arguments: &[u64]| needs(line, arguments).expect_err(line).to_string();
    assert_eq!(why("g()", &[]), "there is no policy for f: add a line `f(…) …`");
    assert_eq!(
        why("f(n: number)", &[]),
        "f takes 1 parameters by its policy, and is called with 0"
    );
    let line = "f(r: struct request) reads r->uri as string";
    assert!(why(line, &[0x1234]).contains("r->uri as string is at 0x1234, which is not in the arena"));
    // A string of an object's full length has no end.
    let mut a = arena();
    a.put(0x300, &[b'x'; 0x20]);
    let endless = policy(line).needs("f", &[BASE + 0x100], &a);
    assert!(
        matches!(endless, Err(EvaluationError::Endless { .. })),
        "{endless:?}"
    );
    // Numbers that the callee may have written.
    a.put(0x108, &u64::MAX.to_le_bytes());
    let many = policy("f(r: struct request) writes r->cb[r->length]").needs("f", &[BASE + 0x100], &a);
    assert!(
        matches!(many, Err(EvaluationError::Many { most: 48, .. })),
        "{many:?}"
    );
    let far = policy("f(r: struct request) writes r->body[r->length]").needs("f", &[BASE + 0x100], &a);
    let far = far.expect("ranges").pop().expect("one");
    let mut s = Supervisor::new(Listed::default(), 0x1000, 1 << 20);
    s.add_domain(DomainId(1)).expect("the first");
    s.allocate(Party::Host, 0xE0..0xEA, TypeId(0)).expect("room");
    assert!(
        s.enter(Party::Host, DomainId(1), &[(far.words, far.rights)])
            .is_err(),
        "more than there is"
    );
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let cases = [
        (
            "f(r: struct request) reads r->urii",
            "there is no `urii` in struct request; there are uri, length",
            "urii",
        ),
        (
            "f(r: struct request) reads q->uri",
            "there is no parameter `q`",
            "q->uri",
        ),
        (
            "f(r: struct request) reads r.uri",
            "`r` is a pointer: `->` leads to its fields",
            ".uri",
        ),
        (
            "f(r: struct request) reads r->peer->port",
            "`peer` is no pointer: `.` leads to its fields",
            "->port",
        ),
        (
            "f(r: struct request) reads r->flags[2]",
            "`flags` is neither an array nor a pointer",
            "flags[2]",
        ),
        (
            "f(r: struct request) writes r->cb[49]",
            "`cb` has 48 elements",
            "cb[49]",
        ),
        (
            "f(r: struct request) writes r->cb[r->parts[r->ids[2]]]",
            "a number of elements is a parameter or a field",
            "r->ids",
        ),
        (
            "f(r: struct request) writes r->cb[",
            "how many elements is expected, a number",
            "",
        ),
        (
            "f(r: struct request) writes *r->flags",
            "`*` stands before a pointer to a structure",
            "*r",
        ),
        (
            "f(r: struct request) reads r->flags as string",
            "`flags` is no string",
            "flags as",
        ),
        ("f(r: struct request) reads r", "`r` itself needs no rights", "r"),
        (
            "f(r: struct reqest) reads *r",
            "struct reqest is not known: declare it, or compile the module with -g",
            "reqest",
        ),
        (
            "f(r: int)",
            "a parameter is `struct NAME`, `text`, `bytes` or `number`",
            "int",
        ),
        (
            "f(r: text) touches r",
            "a clause begins with `reads`, `writes` or `keeps`",
            "touches",
        ),
        (
            "f(r: text) reads r as string, keeps nothing",
            "`;` is expected between clauses",
            ", keeps",
        ),
        (
            "f(r: struct request) keeps r->cb",
            "what is kept has to be what it reads or writes",
            "r->cb",
        ),
        (
            "f(r: text, r: text)",
            "there is a parameter `r` already",
            "r: text)",
        ),
        ("f r", "`(` is expected before the parameters", "r"),
        (
            "struct s 8 { a @4 8 }",
            "`a` goes beyond the structure's 8 bytes",
            "a @4",
        ),
        (
            "struct s 8 { a @0 4; a @4 4 }",
            "there is a field `a` already",
            "a @4",
        ),
        (
            "struct request 4 { }",
            "struct request is declared twice",
            "request",
        ),
        ("f() § reads", "a clause begins with", "§"),
    ];
    for (line, message, at) in cases {
        let e = Policy::parse(&format!("{REQUEST}# a comment\n\n{line}"), |_| None).expect_err(line);
        assert!(e.message.contains(message), "{line}: {e}");
        assert_eq!((e.line, &*e.text), (5, line), "{line}");
        let rest: String = line.chars().skip(e.column - 1).collect();
        assert!(
            rest.starts_with(at) && (at.is_empty() == rest.is_empty()),
            "{line}: {e}"
        );
    }
    let twice = Policy::parse("f()\nf()", |_| None).expect_err("twice");
    assert_eq!(
        twice.to_string(),
        "policy, line 2, column 1: there is a policy for f already\n  f()\n  ^"
    );
}

#[test]
fn texts_of_any_shape_end() {
    let words = [
        "f", "(", ")", "r", ":", "struct", "request", "->", "uri", "[", "]", ";", "*", "reads", "as", "{",
        "}", "@", "9", "é", "",
    ];
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::from(REQUEST);
        for _ in 0..12 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            text.push_str(words[(state >> 33) as usize % words.len()]);
            text.push_str(["", " "][(state >> 60) as usize & 1]);
        }
        if let Err(e) = Policy::parse(&text, |_| None) {
            assert!(e.to_string().contains('^'));
        }
    }
}

#[test]
fn layouts_come_from_debug_information() {
    let directory = std::env::temp_dir().join(format!("ringfence-words-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let (source, object) = (directory.join("a.c"), directory.join("a.so"));
    let text = "struct address { unsigned short family, port; char host[8]; int scope; };\n\
        typedef const struct request *link;\n\
        struct request { char *uri; long length; unsigned char cb[48]; void *body; link next;\n\
          struct address peer; int parts[2][4]; int *ids; unsigned flags : 4, more : 28; int mode; };\n\
        typedef struct { int a; struct address at[3]; } named;\n\
        struct request r; named n;\n";
    std::fs::write(&source, text).expect("written");
    let built = Command::new("gcc")
        .args(["-g", "-shared"])
        .arg(&source)
        .arg("-o")
        .arg(&object)
        .status();
    assert!(built.expect("gcc").success());
    let file = std::fs::read(&object).expect("built");
    std::fs::remove_dir_all(&directory).expect("removed");
    let known = |name: &str| -> Option<Structure> {
        let mut budget = ringfence_core::work::Budget::for_file(file.len() as u64);
        ringfence_debug::structure::of(&file, name, &mut budget).expect("within its budget")
    };
    let request = known("request").expect("by its tag");
    let names = request
        .fields
        .iter()
        .map(|f| (f.name.as_str(), f.offset, f.size, f.element));
    assert_eq!(
        names.collect::<Vec<_>>(),
        [
            ("uri", 0, 8, 8),
            ("length", 8, 8, 8),
            ("cb", 16, 48, 1),
            ("body", 64, 8, 8),
            ("next", 72, 8, 8),
            ("peer", 80, 16, 16),
            ("parts", 96, 32, 4),
            ("ids", 128, 8, 8),
            ("flags", 136, 4, 4),
            ("more", 136, 4, 4),
            ("mode", 140, 4, 4)
        ]
    );
    let named = known("named").expect("by its typedef");
    assert_eq!(
        (named.size, named.fields[1].size, named.fields[1].element),
        (52, 48, 16)
    );
    assert_eq!(known("nobody"), None);
    // The same policy, without a declaration.
    let line =
        "f(req: struct request) reads req->uri as string; reads req->next->peer.port; writes req->ids[2]";
    let told = Policy::parse(line, known).expect("known");
    let declared = policy(line);
    let of = |p: Policy| p.needs("f", &[BASE + 0x100], &arena()).expect("all there");
    assert_eq!(of(told), of(declared));
}

/// A run at random: what it taught allows just what it touched.
#[test]
fn what_a_run_teaches_allows_the_run() {
    let signatures = "f(req: struct request)\ncopy(to: bytes, n: number)\nlook(s: text)";
    let soak = std::env::var("RINGFENCE_SOAK").is_ok_and(|v| v == "1");
    let mut state = 7_u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for round in 0..if soak { 100_000 } else { 2_000 } {
        let a = arena();
        let mut recorder = Recorder::new(policy(signatures));
        let mut accesses = Vec::new();
        for _ in 0..1 + below(3) {
            let (function, arguments) = match below(5) {
                0 => ("copy", vec![BASE + 0x380, 40]),
                1 => ("look", vec![BASE + 0x300]),
                _ => ("f", vec![BASE + 0x100 * (1 + below(2))]),
            };
            recorder.begin(function, &arguments);
            for _ in 0..1 + below(6) {
                let (object, write) = (a.objects[below(6) as usize].clone(), below(3) == 0);
                let len = [1, 4, 8][below(3) as usize];
                let at = (object.start + below(object.end - object.start)) / len * len;
                if recorder.access(BASE + at, len, write, &a) {
                    accesses.push((function, arguments.clone(), at, len, write));
                }
            }
            recorder.end();
        }
        let text = recorder.text();
        let learned =
            Policy::parse(&format!("{REQUEST}{text}"), |_| None).unwrap_or_else(|e| panic!("{e}\n{text}"));
        for (function, arguments, at, len, write) in &accesses {
            let needed = learned
                .needs(function, arguments, &a)
                .unwrap_or_else(|e| panic!("{e}\n{text}"));
            for word in at / 4..(at + len).div_ceil(4) {
                let wanted = if *write { Write } else { Read };
                let allowed = needed
                    .iter()
                    .any(|n| n.rights >= wanted && n.words.contains(&(word as u32)));
                assert!(
                    allowed,
                    "round {round}: {function} at {at:#x}, {len} bytes, write {write}:\n{text}"
                );
            }
        }
        // What nobody wrote cannot be written.
        for function in ["f", "copy", "look"] {
            let wrote = accesses.iter().any(|x| x.0 == function && x.4);
            let line = text
                .lines()
                .find(|l| l.starts_with(&format!("{function}(")))
                .unwrap_or_default();
            assert_eq!(wrote, line.contains("writes"), "round {round}:\n{text}");
        }
    }
}

#[test]
fn the_smallest_policy_of_a_run() {
    let learned = |accesses: &[(u64, u64, bool)]| {
        let a = arena();
        let mut recorder = Recorder::new(policy("f(req: struct request)"));
        recorder.begin("f", &[BASE + 0x100]);
        for &(at, len, write) in accesses {
            assert!(recorder.access(BASE + at, len, write, &a), "{at:#x}");
        }
        recorder.end();
        recorder.text()
    };
    // The driver: the string, byte by byte, and 32 of the 144 bytes.
    let mut run: Vec<(u64, u64, bool)> = vec![(0x100, 8, false)];
    run.extend((0..12).map(|n| (0x300 + n, 1, false)));
    run.extend((0..32).flat_map(|n| [(0x110 + n, 1, false), (0x110 + n, 1, true)]));
    assert_eq!(
        learned(&run),
        "f(req: struct request) reads req->uri as string; writes req->cb[32]; keeps nothing\n"
    );
    assert_eq!(
        learned(&[
            (0x148, 8, false),
            (0x200 + 72, 8, false),
            (0x256, 2, true),
            (0x404, 4, false)
        ]),
        "f(req: struct request) reads req->ids[2]; reads req->next->next; writes req->next->peer.host[4]; keeps nothing\n"
    );
    // All of it, in words.
    let all: Vec<_> = (0..36).map(|n| (0x100 + 4 * n, 4, n == 3)).collect();
    assert!(
        learned(&all).starts_with("f(req: struct request) reads *req; writes req->length;"),
        "{}",
        learned(&all)
    );
    let mut recorder = Recorder::new(policy("f(req: struct request)"));
    recorder.begin("f", &[BASE + 0x100]);
    assert!(!recorder.access(BASE + 0x800, 4, true, &arena()));
    assert!(
        recorder
            .text()
            .ends_with("# f writes what none of its parameters leads to\n")
    );
}

#[test]
fn structures_that_contain_themselves_end() {
    let text = "struct a 16 { x @0 struct a 16; y @0 struct a 16; z @0 struct a 16; n @8 struct a* }\nf(p: struct a)";
    let p = Policy::parse(text, |_| None).expect("a policy");
    let mut recorder = Recorder::new(p.clone());
    recorder.begin("f", &[BASE + 0x100]);
    recorder.access(BASE + 0x108, 8, true, &arena());
    recorder.access(BASE + 0x400, 8, true, &arena());
    assert!(!recorder.text().is_empty());
    let mut types = Types::default();
    let kind = types.number("struct a", p.structure("a").cloned());
    assert!(types.name(kind, 4).expect("known").starts_with("struct a.x.x"));
}

#[test]
fn a_denied_access_tells_what_is_missing() {
    let p = policy("handle(req: struct request) reads req->uri as string; writes req->cb[32]");
    let a = arena();
    let mut s = Supervisor::new(Listed::default(), 0x1000, 1 << 20);
    let mut types = Types::default();
    let driver = DomainId(3);
    s.add_domain(driver).expect("the first");
    let request = types.number("struct request", p.structure("request").cloned());
    types.number("struct address", p.structure("address").cloned());
    s.allocate(Party::Host, 0x40..0x64, request).expect("room");
    s.allocate(Party::Host, 0xC0..0xC8, TypeId(0)).expect("room");
    let arguments = [BASE + 0x100];
    let given: Vec<_> = p.needs("handle", &arguments, &a).expect("all there");
    let given: Vec<_> = given.into_iter().map(|n| (n.words, n.rights)).collect();
    let call = s.enter(Party::Host, driver, &given).expect("the host's");

    let told = |s: &Supervisor<Listed>, at, len, write| {
        let denied = Denied::look_up(s, &types, driver, at, len, write);
        let mut denied = denied.suggest(&p, "handle", &arguments, BASE + at, &a);
        denied.module = "codec.rf".into();
        denied.function = Some("handle".into());
        denied.line = Some(("codec.c".into(), 33));
        denied.to_string()
    };
    assert_eq!(
        told(&s, 0x148, 8, true),
        "codec.rf, handle (codec.c:33): domain #3 may not write struct request.next, 8 bytes at 0x148\n  \
         the object: 144 bytes at 0x100 of the host\n  \
         it has: no rights\n  \
         a policy that allows it: handle(req: struct request) writes req->next"
    );
    let cb = told(&s, 0x130, 1, true);
    assert!(
        cb.contains("struct request.cb[32]") && cb.ends_with("writes req->cb[33]"),
        "{cb}"
    );
    let uri = told(&s, 0x100, 8, true);
    assert!(uri.contains("it has: the right to read"), "{uri}");
    let port = told(&s, 0x152, 2, false);
    assert!(
        port.contains("may not read struct request.peer.port") && port.ends_with("reads req->peer.port"),
        "{port}"
    );
    s.leave(call);
    let nothing = told(&s, 0x800, 4, false);
    assert!(
        nothing.contains("the object: none") && !nothing.contains("a policy"),
        "{nothing}"
    );
    let untyped = told(&s, 0x300, 1, false);
    assert!(
        untyped.contains("what has no type") && untyped.ends_with("reads req->uri as string"),
        "{untyped}"
    );
    s.export(Party::Host, 0x40..0x64, Write, Grantee::Domain(driver))
        .expect("the host's");
}

#[test]
fn what_is_copied_is_said_by_the_policy() {
    let text = "struct point 8 { x @0 4; y @4 4 }\n\
        mirror(p: copied struct point) writes *p; keeps nothing\n\
        sum(n: number, of: copied bytes[n], more: copied bytes[12], far: bytes) reads of[n]; reads more[12]; keeps nothing\n";
    let parse = |text: &str| Policy::parse(text, |_| None);
    let policy = parse(text).expect("a policy");
    let a = arena();
    let copies = |name: &str, arguments: &[u64]| policy.copies(name, arguments, &a);
    let copy = |argument, len, back| Copy { argument, len, back };
    assert_eq!(copies("mirror", &[0x7000]), Ok(vec![copy(0, 8, true)]));
    // What is in the arena, or nowhere, goes as it is.
    assert_eq!(copies("mirror", &[BASE + 0x100]), Ok(vec![]));
    assert_eq!(copies("mirror", &[0]), Ok(vec![]));
    assert_eq!(
        copies("sum", &[5, 0x7000, 0x7100, 0x7200]),
        Ok(vec![copy(1, 5, false), copy(2, 12, false)])
    );
    assert!(copies("sum", &[1 << 40, 0x7000, 0, 0]).is_err());
    assert_eq!(copies("nobody", &[1]), Ok(vec![]));
    // Without a copy such a pointer is refused.
    assert!(policy.needs("mirror", &[0x7000], &a).is_err());
    for (wrong, why) in [
        ("f(p: copied number)", "what is copied"),
        ("f(p: copied text)", "what is copied"),
        ("f(p: copied bytes)", "behind `copied bytes`"),
        (
            "f(p: copied bytes[n], n: number)",
            "no number among the parameters before",
        ),
        (
            "f(q: bytes, p: copied bytes[q])",
            "no number among the parameters before",
        ),
    ] {
        let error = parse(wrong).expect_err(wrong).to_string();
        assert!(error.contains(why), "{error}");
    }
}
