//! Objects of the host's, reached word for word.

mod support;

use ringfence::{
    Access, Arena, CallError, Domain, DomainError, FaultKind, Imports, LoadError, LoadOptions, Module,
    Rights, WordsError,
};
use support::from_text_with;

const SOURCE: &str = r#"
typedef long long wide __attribute__((vector_size(16), aligned(1), may_alias));
typedef long long wider __attribute__((vector_size(32), aligned(1), may_alias));
struct packet { unsigned id; unsigned short kind, flags; struct packet *next; unsigned char cb[32]; char rest[96]; };
unsigned char r1(unsigned char *p) { return *p; }
unsigned short r2(unsigned short *p) { return *p; }
unsigned r4(unsigned *p) { return *p; }
unsigned long r8(unsigned long *p) { return *p; }
long double r10(long double *p, int *n) { *n = (int)*p; return 0; }
unsigned long r16(wide *p) { wide v = *p; return v[0] ^ v[1]; }
void w1(unsigned char *p) { *p = 0x11; }
void w2(unsigned short *p) { *p = 0x2222; }
void w4(unsigned *p) { *p = 0x44444444; }
void w8(unsigned long *p) { *p = 0x8888888888888888; }
void w16(wide *p) { *p = (wide){-1, -1}; }
void add(unsigned *p) { __atomic_fetch_add(p, 5, __ATOMIC_SEQ_CST); }
int flag(unsigned char *p, int a, int b) { *p = a < b; return a < b; }
int choose(int *p, int a) { return a > 3 ? *p : a; }
unsigned long walk(struct packet *p) { unsigned long s = 0; for (; p; p = p->next) s += p->id + p->kind; return s; }
void fill(struct packet *p, int n) { for (int i = 0; i < n; i++) p->cb[i] = (unsigned char)(i + 1); }
void zero(void *p, long n) { __asm__ volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0) : "memory"); }
unsigned long mixed(unsigned *far) { unsigned near[4] = {1, 2, 3, 4}; unsigned *p[2] = {near, far}; unsigned long s = 0;
  for (int i = 0; i < 8; i++) s = s * 10 + p[i & 1][i / 2]; return s; }
"#;

/// Pointers that stay known over calls, jumps through tables and loops: each may lead to the host's objects, or not.
const KEPT: &str = r#"
struct node { struct node *next; long value; };
struct value { long number, kind; };
static long near_table[256], near_stack[16];
static unsigned char near_text[64];
__attribute__((noipa)) long see(long x) { return x * 3; }
__attribute__((noipa)) long calls(struct node *n, int count) {
  long sum = 0;
  for (int i = 0; i < count; i++) { n->value += see(i); sum += n->value; }
  return sum; }
__attribute__((noipa)) long small(const long *table, const unsigned char *text) {
  long sum = 0;
  while (*text) sum += table[*text++];
  return sum; }
__attribute__((noipa)) void move(struct value *base, unsigned op) {
  struct value *to = base + (op >> 7 & 255), *from = base + (op >> 16 & 255);
  to->number = from->number; to->kind = from->kind; }
__attribute__((noipa)) long machine(const unsigned char *pc, long *stack) {
  for (;;) switch (*pc++ & 7) {
    case 0: *stack++ = *pc++; break;
    case 1: stack--; stack[-1] += stack[0]; break;
    case 2: stack--; stack[-1] *= stack[0]; break;
    case 3: stack--; stack[-1] -= stack[0]; break;
    case 4: stack[0] = stack[-1]; stack++; break;
    case 5: pc += *--stack ? *pc : 1; break;
    case 6: stack[-1] = see(stack[-1]); break;
    default: return stack[-1]; } }
__attribute__((noipa)) long both(long *one, long *other, int n) {
  long sum = 0, *p = one;
  for (int i = 0; i < n; i++) { sum += p[i] + see(0); p = p == one ? other : one; }
  return sum; }
long run(int far, long *table, unsigned char *text, long *stack) {
  static const unsigned char program[] = {0, 5, 0, 7, 1, 4, 2, 6, 0, 32, 3, 0, 0, 5, 9, 0, 1, 5, 2, 7, 0, 11, 1, 7};
  if (!(far & 1)) table = near_table;
  if (!(far & 2)) text = near_text;
  if (!(far & 4)) stack = near_stack;
  for (int i = 0; i < 256; i++) table[i] = (long)i * i;
  text[0] = 1; text[1] = 2; text[2] = 3; text[3] = 0;
  struct node *n = (struct node *)(stack + 8);
  n->value = 10;
  move((struct value *)table, 5 << 7 | 9 << 16);
  long sum = calls(n, 4) + small(table, text) * 1000 + (table[10] + table[11]) * 100000;
  for (unsigned i = 0; i < sizeof program; i++) text[i] = program[i];
  for (int i = 0; i < 16; i++) stack[i] = i;
  return sum + both(table, stack, 4) * 10000000 + machine(text, stack) * 1000000000; }
"#;

fn accepting() -> LoadOptions {
    let mut options = LoadOptions::default();
    options.allow_words = true;
    options
}

fn module(level: &str) -> Module {
    let options = [level, "-nostdlib", "-Wno-all", "--isolation=words"];
    from_text_with(SOURCE, &options, &accepting())
}

fn domain(level: &str) -> (Arena, Domain) {
    let arena = Arena::new(1 << 20).expect("an arena");
    let domain = Domain::new(&module(level), Imports::new().arena(&arena)).expect("a domain");
    (arena, domain)
}

/// Calls with an address; whether it was allowed. A denial tells the access.
fn call(domain: &Domain, name: &str, address: u64) -> Result<u64, (u64, Access, u8, Rights)> {
    let function = domain.func::<(u64, u64, u64), u64>(name).expect("a function");
    match function.call(address, 1, 2) {
        Ok(value) => Ok(value.into_inner_unchecked()),
        Err(CallError::Fault(fault)) => {
            domain.reset().expect("a reset");
            match fault.kind {
                FaultKind::Denied {
                    address,
                    access,
                    len,
                    rights,
                } => Err((address, access, len, rights)),
                ref other => panic!("{name}: {other:?}"),
            }
        }
        Err(other) => panic!("{name}: {other}"),
    }
}

#[test]
fn a_host_refuses_them_unless_it_asks() {
    needs!(Words);
    let module = module("-O2");
    let error =
        Module::from_bytes("m.rf", module.original(), &LoadOptions::default()).expect_err("not asked");
    assert!(matches!(error, LoadError::Words { .. }), "{error}");
    let error = Domain::new(&module, Imports::new()).expect_err("no arena");
    assert!(matches!(error, DomainError::Isolation { .. }), "{error}");
    let arena = Arena::new(4096).expect("an arena");
    let full = support::from_text("int f(void) { return 1; }", &["-nostdlib"]);
    let error = Domain::new(&full, Imports::new().arena(&arena)).expect_err("not of the mode");
    assert!(matches!(error, DomainError::Isolation { .. }), "{error}");
    let both = Domain::instantiate(
        &[module, full],
        Imports::new().arena(&arena),
        &ringfence::DomainOptions::default(),
    );
    assert!(matches!(both, Err(DomainError::Isolation { .. })));
}

#[test]
fn what_is_known_of_pointers_is_kept() {
    const EXPECTED: u64 =
        70 + 14_000 + (324 + 361) * 100_000 + (1 + 4 + 3) * 10_000_000 + 411 * 1_000_000_000;
    needs!(Words);
    for level in ["-O1", "-O2", "-O3", "-Os"] {
        let options = [
            level,
            "-nostdlib",
            "-fno-tree-loop-distribute-patterns",
            "--isolation=words",
        ];
        let arena = Arena::new(1 << 20).expect("an arena");
        let module = from_text_with(KEPT, &options, &accepting());
        let domain = Domain::new(&module, Imports::new().arena(&arena)).expect("a domain");
        let [table, text, stack] = [2048, 64, 128].map(|len| {
            let at = arena.alloc(len).expect("a place");
            domain.give_words(at, len, Rights::Write).expect("rights");
            at
        });
        let run = domain
            .func::<(u64, u64, u64, u64), u64>("run")
            .expect("a function");
        for far in 0..8 {
            let got = run.call(far, table, text, stack).expect("a result");
            assert_eq!(got.into_inner_unchecked(), EXPECTED, "{level}: {far}");
        }
    }
}

#[test]
fn each_access_is_allowed_as_the_words_say() {
    needs!(Words);
    for level in ["-O0", "-O1", "-O2", "-Os"] {
        let (arena, domain) = domain(level);
        let at = arena.alloc(256).expect("a place");
        // Words 8 to 23 may be read, 12 to 19 written.
        let (read, write) = (at + 32..at + 96, at + 48..at + 80);
        domain.give_words(read.start, 64, Rights::Read).expect("rights");
        domain.give_words(write.start, 32, Rights::Write).expect("rights");
        for (size, access) in [
            (1, Access::Read),
            (2, Access::Read),
            (4, Access::Read),
            (8, Access::Read),
            (16, Access::Read),
            (1, Access::Write),
            (2, Access::Write),
            (4, Access::Write),
            (8, Access::Write),
            (16, Access::Write),
        ] {
            let (name, granted) = match access {
                Access::Write => (format!("w{size}"), &write),
                _ => (format!("r{size}"), &read),
            };
            for begin in at + 20..at + 100 {
                let expected = begin >= granted.start && begin + size <= granted.end;
                let outcome = call(&domain, &name, begin);
                assert_eq!(outcome.is_ok(), expected, "{level}: {name} at {}", begin - at);
                if let Err((address, told, len, rights)) = outcome {
                    // gcc may take large values in parts.
                    assert!((begin..begin + size).contains(&address), "{level}: {name}");
                    assert!(
                        told == access && len > 0 && u64::from(len) <= size,
                        "{level}: {name}"
                    );
                    assert!(rights == domain.word_rights(address & !3), "{level}: {name}");
                }
            }
        }
        // SAFETY: an object of the arena, which nobody frees.
        let byte = |offset: u64| unsafe { ((at + offset) as *const u8).read_volatile() };
        assert!(
            (0..48).chain(80..256).all(|n| byte(n) == 0),
            "{level}: written beyond the grant"
        );
    }
}

#[test]
fn pointers_inside_objects_lead_on() {
    needs!(Words);
    for level in ["-O0", "-O2", "-O3"] {
        let (arena, domain) = domain(level);
        let last = arena.put([7_u32, 1, 0, 0]).expect("an object");
        let next = last.address();
        let first = arena
            .put([5_u32, 2, next as u32, (next >> 32) as u32])
            .expect("an object");
        for object in [&first, &last] {
            domain
                .give_words(object.address(), 16, Rights::Read)
                .expect("rights");
        }
        assert_eq!(call(&domain, "walk", first.address()), Ok(5 + 2 + 7 + 1));
        domain
            .give_words(last.address(), 16, Rights::None)
            .expect("rights");
        let denied = call(&domain, "walk", first.address());
        assert!(matches!(denied, Err((at, Access::Read, 2 | 4, Rights::None)) if at - next < 8));
        // Local memory and the host's by one instruction.
        let far = arena.put([9_u32, 8, 7, 6]).expect("an object");
        domain
            .give_words(far.address(), 16, Rights::Read)
            .expect("rights");
        assert_eq!(call(&domain, "mixed", far.address()), Ok(19_283_746));
    }
}

#[test]
fn flags_survive_the_tests() {
    needs!(Words);
    for level in ["-O1", "-O2", "-O3"] {
        let (arena, domain) = domain(level);
        let object = arena.put([7_u32, 100]).expect("an object");
        domain
            .give_words(object.address(), 8, Rights::Write)
            .expect("rights");
        let flag = domain.func::<(u64, i32, i32), i32>("flag").expect("a function");
        assert_eq!(
            (
                flag.call(object.address(), 1, 2).unwrap().into_inner_unchecked(),
                object.read()[0]
            ),
            (1, 1)
        );
        assert_eq!(
            (
                flag.call(object.address(), 2, 2).unwrap().into_inner_unchecked(),
                object.read()[0]
            ),
            (0, 0)
        );
        let choose = domain.func::<(u64, i32), i32>("choose").expect("a function");
        assert_eq!(
            choose
                .call(object.address() + 4, 4)
                .unwrap()
                .into_inner_unchecked(),
            100
        );
        assert_eq!(
            choose
                .call(object.address() + 4, 3)
                .unwrap()
                .into_inner_unchecked(),
            3
        );
        assert!(call(&domain, "add", object.address() + 4).is_ok());
        assert_eq!(object.read()[1], 105);
    }
}

fn bytes(words: [u64; 18]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn a_driver_writes_its_32_of_144_bytes() {
    needs!(Words);
    let (arena, domain) = domain("-O2");
    let packet = arena.put([0_u64; 18]).expect("a packet");
    domain
        .give_words(packet.address() + 16, 32, Rights::Write)
        .expect("rights");
    let fill = domain.func::<(u64, i32), ()>("fill").expect("a function");
    fill.call(packet.address(), 32).expect("its own part");
    let expected: Vec<u8> = (1..=32).collect();
    assert_eq!(bytes(packet.read())[16..48], expected);
    let Err(CallError::Fault(fault)) = fill.call(packet.address(), 33) else {
        panic!("the 33rd byte was written")
    };
    let address = packet.address() + 48;
    assert_eq!(
        fault.kind,
        FaultKind::Denied {
            address,
            access: Access::Write,
            len: 1,
            rights: Rights::None
        }
    );
    let text = fault.to_string();
    assert!(
        text.contains("write of 1 bytes") && text.contains("denied") && text.contains("fill"),
        "{text}"
    );
    assert!(bytes(packet.read())[48..].iter().all(|&b| b == 0));
}

#[test]
fn what_does_not_look_at_rights_does_not_reach_them() {
    needs!(Words);
    let (arena, domain) = domain("-O2");
    let object = arena.put([3_u64; 8]).expect("an object");
    domain
        .give_words(object.address(), 64, Rights::Write)
        .expect("rights");
    let zero = domain.func::<(u64, i64), ()>("zero").expect("a function");
    let Err(CallError::Fault(fault)) = zero.call(object.address(), 64) else {
        panic!("a string instruction wrote")
    };
    assert!(matches!(fault.kind, FaultKind::Denied { len: 0, .. }), "{fault}");
    assert_eq!(object.read(), [3; 8]);
    domain.reset().expect("a reset");
    // Behind the arena's end, before its beginning, and where none is.
    let far = Arena::new(1 << 20).expect("an arena");
    let end = arena.alloc(16).expect("a place") | 0xF_FFFF;
    for address in [
        end + 1,
        end + (64 << 20),
        far.alloc(16).expect("a place") + 0x1000_0000,
    ] {
        assert!(call(&domain, "r8", address).is_err(), "{address:#x}");
        assert!(call(&domain, "w8", address).is_err(), "{address:#x}");
    }
}

#[test]
fn freed_objects_and_bad_grants() {
    needs!(Words);
    let (arena, domain) = domain("-O2");
    let at = arena.alloc(64).expect("a place");
    domain.give_words(at, 64, Rights::Write).expect("rights");
    assert!(call(&domain, "w8", at + 56).is_ok());
    arena.free(at).expect("freed");
    assert_eq!(domain.word_rights(at), Rights::None);
    assert!(call(&domain, "w8", at).is_err());
    assert!(matches!(arena.free(at), Err(WordsError::NoObject { .. })));
    let give = |address, len| domain.give_words(address, len, Rights::Read);
    assert!(matches!(give(at, 64), Err(WordsError::NoObject { .. })), "freed");
    let at = arena.alloc(60).expect("a place");
    assert!(matches!(give(at + 1, 4), Err(WordsError::Misaligned { .. })));
    assert!(matches!(give(at, 3), Err(WordsError::Misaligned { .. })));
    assert!(
        matches!(give(at, 80), Err(WordsError::NoObject { .. })),
        "longer than the object"
    );
    assert!(matches!(give(0, 4), Err(WordsError::NoObject { .. })));
    assert!(matches!(give(at, u64::MAX - 3), Err(WordsError::NoObject { .. })));
    assert!(matches!(arena.alloc(2 << 20), Err(WordsError::Length { .. })));
    assert!(matches!(Arena::new(1 << 40), Err(WordsError::Length { .. })));
    let full = support::from_text("int f(void) { return 1; }", &["-nostdlib"]);
    let plain = Domain::new(&full, Imports::new()).expect("a domain");
    assert!(matches!(
        plain.give_words(at, 4, Rights::Read),
        Err(WordsError::NoArena)
    ));
}

#[test]
fn taken_rights_are_gone_for_threads_inside() {
    needs!(Words);
    use std::sync::atomic::{AtomicBool, Ordering};
    let (arena, domain) = domain("-O2");
    let object = arena.put([0_u32; 4]).expect("an object");
    let address = object.address();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let write = domain.func::<(u64,), ()>("w4").expect("a function");
            while !stop.load(Ordering::Relaxed) {
                match write.call(address) {
                    Ok(_) => {}
                    Err(CallError::Fault(_) | CallError::Faulted { .. }) => {
                        domain.reset().expect("a reset");
                    }
                    Err(other) => panic!("{other}"),
                }
            }
        });
        for _ in 0..2000 {
            domain.give_words(address, 16, Rights::Write).expect("rights");
            domain.give_words(address, 16, Rights::None).expect("rights");
            // One access may have been allowed before; the next is not.
            std::thread::sleep(std::time::Duration::from_micros(20));
            object.write([1; 4]);
            std::hint::spin_loop();
            assert_eq!(object.read()[1..], [1; 3]);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().expect("the writer");
    });
}

#[test]
fn no_descriptor_stands_for_an_arena() {
    needs!(Words);
    // A host that closes all of its descriptors would give the domains made later other files.
    let (arena, first) = domain("-O1");
    let packet = arena.alloc(144).expect("an object");
    first.give_words(packet, 32, Rights::Write).expect("words");
    // Nine more arenas and domains, so that what other tests are making just then does not count.
    let more: Vec<_> = (0..9).map(|_| domain("-O1")).collect();
    let links = std::fs::read_dir("/proc/self/fd").expect("a list");
    let names = links.filter_map(|e| std::fs::read_link(e.ok()?.path()).ok());
    let ours = ["ringfence-arena", "ringfence-rights"];
    let kept = names
        .filter(|n| ours.iter().any(|o| n.to_string_lossy().contains(o)))
        .count();
    assert!(kept < more.len(), "{kept} descriptors");
    let second = Domain::new(&module("-O1"), Imports::new().arena(&arena)).expect("another domain");
    second.give_words(packet, 4, Rights::Read).expect("words");
    assert!(call(&second, "r4", packet).is_ok());
    assert!(call(&second, "r8", packet).is_err());
}
