//! Checked heaps: what a module's libc allocates are objects of the arena, and mistakes with them are told by name.

mod support;

use ringfence::policy::Policy;
use ringfence::{Arena, CallError, Domain, FaultKind, Imports, LoadOptions, Rights};
use support::{from_cxx_with, from_text_with};

const SOURCE: &str = r#"
#line 3
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair { int a; int unused; double b; };
static char *kept;

__attribute__((noinline)) char *make(long n) {
    return malloc((size_t)n); /* made here */
}
__attribute__((noinline)) void drop(char *p) {
    free(p); /* freed here */
}
long keep(long n) { return (long)(kept = make(n)); }
void release(void) { drop(kept); }
long get(long at) { return kept[at]; }
void put(long at, long c) { kept[at] = (char)c; }
long words(long at) { return ((int *)kept)[at]; }
long grow(long n) { return (long)(kept = realloc(kept, (size_t)n)); }
void wrong(long by) { drop(kept + by); }
long wholes(long n) { return (long)(kept = calloc((size_t)n, 1)); }
struct sixteen { char c[16]; } out;
long wide(void) { out = *(struct sixteen *)kept; return out.c[1]; }

/* 0, or the line: nothing of this is wrong. */
long rightly(void)
{
    struct pair *p = malloc(sizeof *p), other;
    p->a = 1, p->b = 2;
    other = *p; /* with the hole */
    struct pair *q = malloc(sizeof *q);
    memcpy(q, p, sizeof *q);
    if (other.a != 1 || q->a != 1 || q->b != 2) return __LINE__;
    char *text = strdup("a text that is as long as some words"), *more;
    if (strlen(text) != 36 || strcmp(text, "a text that is as long as some words")) return __LINE__;
    text = realloc(text, 1000);
    strcat(text, ", and some more of them");
    if (strlen(text) != 59) return __LINE__;
    if (asprintf(&more, "%s %d", text, 7) != 61 || more[60] != '7') return __LINE__;
    long *list = malloc(800);
    for (int i = 0; i < 100; i++) list[i] = 99 - i;
    long sum = 0;
    for (int i = 0; i < 100; i++) sum += list[i];
    if (sum != 4950) return __LINE__;
    char *big = malloc(3 << 20); /* local */
    memset(big, 1, 3 << 20);
    char *zero = calloc(300, 7);
    for (int i = 0; i < 2100; i++) if (zero[i]) return __LINE__;
    char *block = malloc(5000), *copy = malloc(5000);
    memset(block, 5, 5000);
    memcpy(copy, block, 5000);
    if (memcmp(copy, block, 5000)) return __LINE__;
    void *aligned = aligned_alloc(64, 128);
    if (!aligned || (long)aligned & 63) return __LINE__;
    FILE *f = fmemopen(block, 100, "w");
    if (!f || fprintf(f, "%d", 12) != 2 || fclose(f)) return __LINE__;
    char *part = realloc(malloc(100), 2 << 20); /* local, of words that nobody has written */
    if (!part) return __LINE__;
    char *some = malloc(100);
    some[0] = 3;
    some = realloc(some, 2 << 20);
    if (!some || some[0] != 3) return __LINE__;
    int *three = malloc(12), *others = malloc(12);
    three[0] = 1, three[2] = 3;
    memcpy(others, three, 12);
    if (others[0] != 1 || others[2] != 3) return __LINE__;
    char *first = realloc(0, 10), *kept[200];
    for (int i = 0; i < 200; i++) { kept[i] = malloc((size_t)i); memset(kept[i], i, (size_t)i); }
    for (int i = 0; i < 200; i++) { for (int k = 0; k < i; k++) if (kept[i][k] != (char)i) return __LINE__; free(kept[i]); }
    free(part); free(some); free(three); free(others);
    free(first); free(aligned); free(copy); free(block); free(zero); free(big); free(list); free(more); free(text); free(q); free(p); free(0);
    return 0;
}
long partly(void) { /* a copy, and a realloc, of what nobody has filled whole */
    char *p = malloc(64), q[64];
    memset(p, 1, 32);
    memcpy(q, p, 64);
    p = realloc(p, 200);
    long c = p[31];
    free(p);
    return c + q[0];
}
/* 0, or the line: system calls on blocks. */
long piped(void)
{
    int ends[2], *both = malloc(2 * sizeof *both);
    if (pipe(both)) return __LINE__;
    ends[0] = both[0], ends[1] = both[1];
    char *from = malloc(64), *to = malloc(64);
    memset(from, 'x', 10);
    if (write(ends[1], from, 12) != 12) return __LINE__; /* of a word that was not written as a whole */
    if (read(ends[0], to, 64) != 12 || to[9] != 'x' || to[11]) return __LINE__;
    if (write(ends[1], from + 32, 8) != -1 || errno != EFAULT) return __LINE__; /* never written */
    if (write(ends[1], from, 10) != 10 || read(ends[0], to + 60, 10) != 4) return __LINE__; /* up to its end */
    free(from);
    if (write(ends[1], from, 10) != -1 || errno != EFAULT) return __LINE__;
    return 0;
}
void fill(char *to, long n) { for (long i = 0; i < n; i++) to[i] = 7; }
long copied(void) { char *p = malloc(64), q[64]; memcpy(q, p, 64); return q[0]; }
"#;

const FLAGS: [&str; 7] = [
    "--isolation=words",
    "-O1",
    "-g",
    "-Wno-all",
    "-fno-builtin",
    "-shared",
    concat!(
        "--sysroot-rf=",
        env!("CARGO_MANIFEST_DIR"),
        "/../../build/sysroot"
    ),
];

fn allowing() -> LoadOptions {
    let mut options = LoadOptions::default();
    options.allow_words = true;
    options
}

fn module() -> ringfence::Module {
    from_text_with(SOURCE, &FLAGS, &allowing())
}

fn made(module: &ringfence::Module, len: u64, check: bool) -> (Arena, Domain) {
    let arena = Arena::new(len).expect("an arena");
    if check {
        arena.check_heaps();
    }
    let domain = Domain::new(module, Imports::new().arena(&arena)).expect("a domain");
    (arena, domain)
}

fn call(domain: &Domain, name: &str, arguments: &[i64]) -> Result<i64, CallError> {
    match *arguments {
        [] => domain
            .func::<(), i64>(name)
            .expect("a function")
            .call()
            .map(|r| r.into_inner_unchecked()),
        [a] => domain
            .func::<(i64,), i64>(name)
            .expect("a function")
            .call(a)
            .map(|r| r.into_inner_unchecked()),
        _ => domain
            .func::<(i64, i64), i64>(name)
            .expect("a function")
            .call(arguments[0], arguments[1])
            .map(|r| r.into_inner_unchecked()),
    }
}

/// The report of a call that is denied.
fn denied(domain: &Domain, name: &str, arguments: &[i64]) -> String {
    let error = call(domain, name, arguments).expect_err("it is denied");
    let report = domain.explain_words(&error, None);
    domain.reset().expect("reset");
    report.unwrap_or_else(|| panic!("{error}"))
}

fn has(report: &str, parts: &[&str]) {
    for part in parts {
        assert!(report.contains(part), "no {part:?} in: {report}");
    }
}

fn line(text: &str) -> usize {
    SOURCE.lines().position(|l| l.contains(text)).expect("a line") + 1
}

#[test]
fn mistakes_are_denied_and_told() {
    needs!(Words);
    let module = module();
    let (arena, domain) = made(&module, 4 << 20, true);
    let keep = |n: i64| call(&domain, "keep", &[n]).expect("kept") as u64;
    let made_by = format!(":{})", line("made here"));
    let at = keep(24);
    assert!(arena.range().contains(&at), "an object of the arena");
    // Over the end, at the first word behind; below the beginning.
    let report = denied(&domain, "put", &[24, 1]);
    has(
        &report,
        &[
            "write beyond the end, 0 bytes behind it",
            "allocated by make (",
            &made_by,
            "24 bytes at",
            "put (",
        ],
    );
    keep(24);
    has(&denied(&domain, "get", &[27]), &["read beyond the end, 3 bytes"]);
    keep(24);
    has(&denied(&domain, "get", &[-1]), &["may not read"]);
    // What was never written, a word of it or a vector; what was is fine.
    keep(24);
    call(&domain, "put", &[5, 9]).expect("its own");
    assert_eq!(call(&domain, "get", &[5]).expect("written"), 9);
    assert_eq!(call(&domain, "get", &[4]).expect("of the same word"), 0);
    has(
        &denied(&domain, "get", &[0]),
        &["an uninitialised read", "allocated by make (", &made_by],
    );
    keep(24);
    has(
        &denied(&domain, "words", &[2]),
        &["an uninitialised read", "words ("],
    );
    keep(24);
    has(&denied(&domain, "wide", &[]), &["an uninitialised read"]);
    keep(24);
    call(&domain, "put", &[9, 9]).expect("its own");
    call(&domain, "wide", &[]).expect("a word of four was written");
    // After free, and twice.
    call(&domain, "release", &[]).expect("freed");
    let freed_by = "freed by drop (";
    has(
        &denied(&domain, "get", &[0]),
        &[
            "a read after it was freed",
            freed_by,
            &format!(":{})", line("freed here")),
        ],
    );
    keep(24);
    call(&domain, "release", &[]).expect("freed");
    has(&denied(&domain, "put", &[8, 1]), &["a write after it was freed"]);
    for (by, what) in [
        (0, "was freed already: 24 bytes at "),
        (8, "inside of a block"),
        (1 << 19, "is no block"),
    ] {
        keep(24);
        if by == 0 {
            call(&domain, "release", &[]).expect("freed");
        }
        let error = call(&domain, "wrong", &[by]).expect_err("not freed");
        let CallError::Fault(fault) = &error else {
            panic!("{error}")
        };
        assert!(
            matches!(&fault.kind, FaultKind::Host(why) if why.contains(what)),
            "{error}"
        );
        let report = domain.explain_words(&error, None);
        match report {
            None => assert_eq!(what, "is no block"),
            Some(report) => has(&report, &[what, "allocated by make (", &made_by]),
        }
        assert_eq!(
            domain
                .explain_words(&error, None)
                .is_some_and(|r| r.contains(freed_by)),
            by == 0
        );
        domain.reset().expect("reset");
        assert_eq!(domain.explain_words(&error, None), None, "it is forgotten");
    }
    // By realloc the old one is freed, and what was not written is not yet.
    keep(24);
    call(&domain, "put", &[0, 7]).expect("its own");
    let moved = call(&domain, "grow", &[100]).expect("grown");
    assert!(arena.range().contains(&(moved as u64)));
    assert_eq!(call(&domain, "get", &[0]).expect("copied"), 7);
    has(&denied(&domain, "get", &[8]), &["an uninitialised read"]);
    call(&domain, "wholes", &[100]).expect("zeroed");
    assert_eq!(call(&domain, "get", &[50]).expect("zeroed"), 0);
    has(
        &denied(&domain, "copied", &[]),
        &["an uninitialised read", "copied ("],
    );
}

#[test]
fn what_is_right_goes_on() {
    needs!(Words);
    let module = module();
    for check in [true, false] {
        let (arena, domain) = made(&module, 4 << 20, check);
        for _ in 0..3 {
            assert_eq!(call(&domain, "rightly", &[]).expect("no mistake"), 0);
            assert_eq!(call(&domain, "partly", &[]).expect("no mistake"), 2);
        }
        let at = call(&domain, "keep", &[24]).expect("kept") as u64;
        assert_eq!(arena.range().contains(&at), check);
        assert_eq!(arena.revoke(at, 4).is_ok(), check);
    }
}

#[test]
fn blocks_come_back_and_places_stay_empty_for_a_while() {
    needs!(Words);
    let module = module();
    let (arena, domain) = made(&module, 1 << 20, true);
    let first = call(&domain, "keep", &[1000]).expect("kept");
    call(&domain, "release", &[]).expect("freed");
    let second = call(&domain, "keep", &[1000]).expect("kept");
    assert_ne!(first, second, "the place of what was freed is empty");
    call(&domain, "release", &[]).expect("freed");
    // Far more than there is.
    for _ in 0..5000 {
        let at = call(&domain, "keep", &[1000]).expect("kept");
        assert!(arena.range().contains(&(at as u64)));
        call(&domain, "release", &[]).expect("freed");
    }
    // All of it at once: what does not fit is local.
    let fit = (0..2000).filter(|_| {
        let at = call(&domain, "keep", &[1000]).expect("kept");
        arena.range().contains(&(at as u64))
    });
    let fit = fit.count();
    assert!((900..=1040).contains(&fit), "{fit}");
    domain.reset().expect("reset");
    let at = call(&domain, "keep", &[1000]).expect("kept");
    assert!(arena.range().contains(&(at as u64)), "a reset frees all");
    drop(domain);
    assert!(arena.revoke(at as u64, 4).is_err(), "and so does the end");
}

#[test]
fn others_get_rights_to_a_block_like_to_any_object() {
    needs!(Words);
    let module = module();
    let (arena, one) = made(&module, 1 << 20, true);
    let other = Domain::new(&module, Imports::new().arena(&arena)).expect("another");
    let at = call(&one, "keep", &[64]).expect("kept") as u64;
    assert_eq!(other.word_rights(at), Rights::None);
    arena
        .give_as(&one, &other, at, 8, Rights::Read)
        .expect("its owner gives");
    assert_eq!(
        (one.word_rights(at), other.word_rights(at)),
        (Rights::None, Rights::Read)
    );
    call(&one, "put", &[0, 5]).expect("its own");
    assert_eq!(
        (one.word_rights(at), other.word_rights(at)),
        (Rights::Write, Rights::Read)
    );
    call(&one, "release", &[]).expect("freed");
    assert_eq!(
        (one.word_rights(at), other.word_rights(at)),
        (Rights::None, Rights::None)
    );
}

#[test]
fn the_matrix_shows_words() {
    needs!(Words);
    let module = module();
    let (arena, domain) = made(&module, 1 << 20, false);
    let object = arena.alloc(144).expect("an object");
    domain.give_words(object + 32, 32, Rights::Write).expect("words");
    let group = arena.group(false).expect("a group");
    arena.give(&group, object, 8, Rights::Read).expect("words");
    let now = ringfence::overview();
    // Other tests have arenas, too; this one's has a group.
    let row = now
        .arenas
        .iter()
        .find(|a| !a.groups.is_empty())
        .expect("it is there");
    assert_eq!((row.len, row.objects, row.domains.len()), (1 << 20, 1, 1));
    assert_eq!(row.domains[0].1.runs, [(32..64, Rights::Write)]);
    assert!(row.domains[0].0.ends_with(".rf#1"), "{}", row.domains[0].0);
    assert_eq!(row.groups[0].words.runs, [(0..8, Rights::Read)]);
    let line = format!("arena {}, 1048576 bytes, 1 objects", row.arena);
    assert!(now.to_string().contains(&line), "{now}");
    assert!(now.to_json().contains("\"from\":32,\"to\":64"));
}

#[test]
fn a_value_of_the_stack_is_lent() {
    needs!(Words);
    let module = module();
    let (arena, domain) = made(&module, 1 << 20, false);
    let mut numbers = [0_u32; 4];
    let lent = arena.lend(&mut numbers).expect("lent");
    let address = lent.address();
    domain.give_words(address, 8, Rights::Write).expect("words");
    let fill = domain.func::<(u64, i64), ()>("fill").expect("a function");
    fill.call(address, 8).expect("its words");
    assert!(fill.call(address, 9).is_err(), "no more of it");
    drop(lent);
    assert_eq!(numbers, [0x0707_0707, 0x0707_0707, 0, 0]);
    assert!(arena.revoke(address, 4).is_err(), "the copy is gone");
}

/// The C++ library's own objects: exceptions, which it clears, strings, streams, containers.
#[test]
fn the_cxx_library_works_on_blocks() {
    needs!(Words);
    let text = r#"
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

static long thrown(long n)
{
    if (n % 3 == 0) throw std::runtime_error("number " + std::to_string(n));
    if (n % 3 == 1) throw n;
    return n;
}

extern "C" long rightly()
{
    long sum = 0;
    for (long n = 0; n < 30; n++) {
        try {
            sum += thrown(n);
        } catch (const std::exception &e) {
            sum += (long)std::string(e.what()).size();
        } catch (long m) {
            sum += 100 * m;
        }
    }
    std::map<std::string, std::vector<long>> map;
    std::ostringstream out;
    for (long i = 0; i < 100; i++) map["key " + std::to_string(i % 7)].push_back(i);
    for (auto &[key, list] : map) out << key << ' ' << list.size() << '\n';
    auto shared = std::make_shared<std::string>(out.str());
    std::exception_ptr kept;
    try { throw std::out_of_range("kept"); } catch (...) { kept = std::current_exception(); }
    try { std::rethrow_exception(kept); } catch (const std::out_of_range &e) { sum += e.what()[0]; }
    return sum + 1000000 * (long)shared->size();
}
"#;
    let module = from_cxx_with(text, &FLAGS, &allowing());
    for check in [false, true] {
        let (_arena, domain) = made(&module, 4 << 20, check);
        let (twos, ones, zeros) = (155, 100 * 145, 4 * 8 + 6 * 9);
        assert_eq!(
            call(&domain, "rightly", &[]).expect("nothing is wrong"),
            twos + ones + zeros + 107 + 1_000_000 * 7 * 9,
        );
    }
}

#[test]
fn system_calls_take_blocks() {
    needs!(Words);
    let arena = Arena::new(4 << 20).expect("an arena");
    arena.check_heaps();
    let policy = Policy::new().start().expect("a policy");
    let domain = Domain::new(&module(), Imports::new().arena(&arena).policy(policy)).expect("a domain");
    assert_eq!(call(&domain, "piped", &[]).expect("no fault"), 0);
}
