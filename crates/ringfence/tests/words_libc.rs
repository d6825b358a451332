//! The libc of the words mode on objects of the host's: right up to the last word that was given, and nothing behind it is touched.

mod support;

use ringfence::{Access, Arena, CallError, Domain, FaultKind, Imports, LoadOptions, Rights};
use support::from_text_with;

const SOURCE: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char near[4096], own[2048];
static volatile char keep;

/* The words before `end`, `room` bytes, may be written, what follows may not be touched. 0, or the line that found another result
 * than a loop over bytes. */
#define SAME(a, b) do { if ((a) != (b)) return __LINE__; } while (0)
static int sign(int n) { return n < 0 ? -1 : n > 0; }
static void text(char *s, int n, int salt) { for (int i = 0; i < n; i++) { s[i] = (char)('a' + (i * 7 + salt) % 23); keep = s[i]; } }
static int equal(const char *a, const char *b, long n) { for (long i = 0; i < n; i++) if (a[i] != b[i]) return 0; return 1; }

long strings(char *end)
{
    if (!end) end = own + sizeof own;
    for (int left = 0; left < 4; left++)
        for (int n = 0; n < 70; n++) {
            char *s = end - left - n - 1, *other = end - 512 - (n + left) % 7;
            text(s, n, n);
            s[n] = 0;
            for (char *p = s + n + 1; p < end; p++) *p = 'z';
            SAME(strlen(s), (size_t)n);
            SAME(strnlen(s, 1000), (size_t)n);
            SAME(strnlen(s, (size_t)n / 2), (size_t)n / 2);
            SAME(rawmemchr(s, 0), (void *)(s + n));
            SAME(memchr(s, 0, (size_t)-1), (void *)(s + n));
            SAME(memchr(s, 'Z', (size_t)n + 1), NULL);
            SAME(memrchr(s, 'Z', (size_t)n + 1), NULL);
            SAME(strchr(s, 'Z'), NULL);
            SAME(strrchr(s, 'Z'), NULL);
            SAME(strchrnul(s, 'Z'), s + n);
            if (n) {
                char c = s[n - 1];
                int i = 0;
                while (s[i] != c) i++;
                SAME(strchr(s, c), s + i);
                SAME(memchr(s, c, (size_t)n), (void *)(s + i));
                SAME(memchr(s, c, (size_t)i), NULL);
                SAME(strrchr(s, c), s + n - 1);
                SAME(memrchr(s, c, (size_t)n), (void *)(s + n - 1));
            }
            /* From far to near, near to far, far to far. */
            for (int way = 0; way < 3; way++) {
                char *from = way == 1 ? near + n % 9 : s, *to = way == 0 ? near + 2000 + left : other;
                if (way == 1) { text(from, n, n); from[n] = 0; }
                to[-1] = 'x';
                for (int i = 0; i < n + 3; i++) { to[i] = 'y'; keep = to[i]; }
                SAME(stpcpy(to, from), to + n);
                SAME(equal(to, s, n + 1), 1);
                SAME(to[-1] == 'x' && to[n + 1] == 'y', 1);
                SAME(strcmp(to, from), 0);
                SAME(strncmp(to, from, (size_t)n + 9), 0);
                SAME(memcmp(to, from, (size_t)n + 1), 0);
                for (int i = 0; i < n; i += 5) {
                    to[i]++;
                    SAME(sign(strcmp(to, from)), 1);
                    SAME(sign(strncmp(from, to, (size_t)i + 1)), -1);
                    SAME(strncmp(from, to, (size_t)i), 0);
                    SAME(sign(memcmp(from, to, (size_t)n)), -1);
                    SAME(memcmp(from, to, (size_t)i), 0);
                    to[i]--;
                }
                SAME(memcpy(to, from, (size_t)n), (void *)to);
                SAME(equal(to, from, n), 1);
                SAME(memccpy(to, from, 0, 1000), (void *)(to + n + 1));
                SAME(strlcpy(to, from, 20), (size_t)n);
                SAME(strlen(to), (size_t)(n < 20 ? n : 19));
                strncpy(to, from, (size_t)n + 2);
                SAME(to[n] == 0 && to[n + 1] == 0 && equal(to, from, n), 1);
                to[0] = 0;
                strcat(to, from);
                strncat(to, from, 3);
                SAME(strlen(to), (size_t)(n + (n < 3 ? n : 3)));
            }
            memset(s, 'q', (size_t)n);
            for (int i = 0; i < n; i++) SAME(s[i], 'q');
            SAME(s[n], 0);
        }
    return 0;
}

long moves(char *end)
{
    if (!end) end = own + sizeof own;
    static char twin[300];
    for (int n = 0; n < 200; n += n < 70 ? 1 : 13)
        for (int shift = -20; shift <= 20; shift++) {
            char *s = end - 256;
            int d = 28 + shift;
            text(s, 256, n); text(twin, 256, n);
            memmove(s + d, s + 28, (size_t)n);
            for (int i = 0; i < n; i++) { int k = shift > 0 ? n - 1 - i : i; twin[d + k] = twin[28 + k]; keep = twin[d + k]; }
            SAME(equal(s, twin, 256), 1);
        }
    return 0;
}

static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* What is above the string functions. */
long rest(char *end)
{
    if (!end) end = own + sizeof own;
    int *v = (int *)(end - 40 * 4);
    for (int i = 0; i < 40; i++) v[i] = (i * 17) % 41;
    qsort(v, 40, sizeof *v, order);
    for (int i = 1; i < 40; i++) SAME(v[i - 1] <= v[i], 1);
    int key = v[20];
    SAME(bsearch(&key, v, 40, sizeof *v, order) != NULL, 1);
    char *s = end - 16;
    SAME(snprintf(s, 16, "%s %d %.2f", "abc", -12, 1.5), 12);
    SAME(equal(s, "abc -12 1.50", 13), 1);
    int n = 0; char word[8]; double f = 0;
    SAME(sscanf(s, "%7s %d %lf", word, &n, &f), 3);
    SAME(n == -12 && f == 1.5 && equal(word, "abc", 4), 1);
    snprintf(near, 64, "[%s]", s);
    SAME(strcmp(near, "[abc -12 1.50]"), 0);
    s = end - 4; s[0] = '4'; s[1] = '2'; s[2] = '7'; s[3] = 0;
    SAME(strtol(s, NULL, 10), 427);
    SAME(atoi(s), 427);
    SAME(strcasecmp(s, "427"), 0);
    SAME(strspn(s, "0123456789"), 3);
    SAME(strcspn(s, "7"), 2);
    SAME(strstr(s, "27"), s + 1);
    SAME(memmem(s, 4, "27", 2), (void *)(s + 1));
    char *copy = strdup(s);
    SAME(strcmp(copy, "427"), 0);
    free(copy);
    FILE *f2 = fmemopen(near, sizeof near, "w");
    fwrite(s, 1, 3, f2); fputs(s, f2); fclose(f2);
    SAME(strcmp(near, "427427"), 0);
    return 0;
}

long unended(char *s) { return (long)strlen(s); }
long find(char *s) { return memchr(s, 1, (size_t)-1) != NULL; }
long same(char *s) { memset(near, 'z', 600); return strcmp(s, near); }
long copy(char *s) { memcpy(near, s, 65); return 0; }
long back(char *s) { memmove(s, near, 65); return 0; }
long fill(char *s) { memset(s, 'z', 65); return 0; }
long print(char *s) { return snprintf(near, sizeof near, "%s", s); }
struct large { long word[40]; };
long whole(struct large *to, struct large *from) { *to = *from; return 0; }
long cleared(struct large *to) { *to = (struct large){{0}}; return 0; }
"#;

fn domain(level: &str) -> (Arena, Domain) {
    let mut accepting = LoadOptions::default();
    accepting.allow_words = true;
    let sysroot = concat!(
        "--sysroot-rf=",
        env!("CARGO_MANIFEST_DIR"),
        "/../../build/sysroot"
    );
    let options = [
        level,
        "-Wno-all",
        "-fno-builtin",
        "-shared",
        "--isolation=words",
        sysroot,
    ];
    let module = from_text_with(SOURCE, &options, &accepting);
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = Domain::new(&module, Imports::new().arena(&arena)).expect("a domain");
    (arena, domain)
}

fn call(domain: &Domain, name: &str, arguments: [u64; 2]) -> Result<i64, FaultKind> {
    let function = domain.func::<(u64, u64), i64>(name).expect("a function");
    match function.call(arguments[0], arguments[1]) {
        Ok(value) => Ok(value.into_inner_unchecked()),
        Err(CallError::Fault(fault)) => {
            domain.reset().expect("a reset");
            Err(fault.kind)
        }
        Err(other) => panic!("{name}: {other}"),
    }
}

#[test]
fn functions_are_right_up_to_the_last_word() {
    needs!(Words);
    for level in ["-O0", "-O2"] {
        let (arena, domain) = domain(level);
        let at = arena.alloc(2048).expect("a place");
        domain.give_words(at, 1024, Rights::Write).expect("rights");
        for name in ["strings", "moves", "rest"] {
            assert_eq!(
                call(&domain, name, [at + 1024, 0]),
                Ok(0),
                "{name} {level}: its line"
            );
            assert_eq!(
                call(&domain, name, [0, 0]),
                Ok(0),
                "{name} {level}, of its own: its line"
            );
        }
        // The end of the whole object: behind it is nobody's word.
        domain.give_words(at, 2048, Rights::Write).expect("rights");
        assert_eq!(call(&domain, "strings", [at + 2048, 0]), Ok(0));
    }
}

#[test]
fn what_goes_too_far_is_denied_at_the_first_word_behind() {
    needs!(Words);
    let (arena, domain) = domain("-O2");
    let at = arena.alloc(256).expect("a place");
    domain.give_words(at, 256, Rights::Write).expect("rights");
    assert_eq!(call(&domain, "fill", [at, 0]), Ok(0));
    for rights in [Rights::Read, Rights::Write] {
        domain.give_words(at, 256, Rights::None).expect("rights");
        domain.give_words(at, 64, rights).expect("rights");
        for name in ["unended", "find", "same", "print", "copy", "back", "fill"] {
            let writes = matches!(name, "back" | "fill");
            let denied = call(&domain, name, [at, 0]).expect_err(name);
            let FaultKind::Denied { address, access, .. } = denied else {
                panic!("{name}: {denied:?}");
            };
            if writes && rights == Rights::Read {
                assert!((at..at + 65).contains(&address), "{name}: {address:#x}");
            } else {
                assert_eq!(address, at + 64, "{name}");
            }
            assert_eq!(access == Access::Write, writes, "{name}");
        }
    }
}

#[test]
fn structures_are_copied_without_string_instructions() {
    needs!(Words);
    for level in ["-O1", "-O2", "-Os"] {
        let (arena, domain) = domain(level);
        let (to, from) = (
            arena.put([[0_u64; 8]; 5]).expect("a place"),
            arena.put([[7_u64; 8]; 5]).expect("a place"),
        );
        domain
            .give_words(to.address(), 320, Rights::Write)
            .expect("rights");
        domain
            .give_words(from.address(), 320, Rights::Read)
            .expect("rights");
        assert_eq!(
            call(&domain, "whole", [to.address(), from.address()]),
            Ok(0),
            "{level}"
        );
        assert_eq!(call(&domain, "cleared", [to.address(), 0]), Ok(0), "{level}");
        assert!(
            matches!(
                call(&domain, "cleared", [from.address(), 0]),
                Err(FaultKind::Denied { .. })
            ),
            "{level}"
        );
    }
}
