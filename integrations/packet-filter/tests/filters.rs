//! Filters select the packets that libpcap's own interpreter selects; filters in C keep state; what is wrong is told.

mod support;

use ringfence::{CallError, DomainOptions, FaultKind};
use ringfence_functions::FunctionError;
use ringfence_packet_filter::pcap::{Interpreted, compile};
use ringfence_packet_filter::{Batch, ETHERNET, Engine, FilterError, Raw};
use std::time::Duration;
use support::{EXPRESSIONS, Names, Random, expression, packets};

/// Whether libpcap is here: expressions need it. Where all has to be tested, it has to be.
fn has_libpcap() -> bool {
    match compile("ip", ETHERNET) {
        Err(FilterError::NoLibrary { reason }) => {
            let all = std::env::var("CI").is_ok_and(|ci| ci == "true");
            assert!(!all, "no libpcap: {reason}");
            println!("left out: there is no libpcap ({reason})");
            false
        }
        other => other.is_ok(),
    }
}

fn engine() -> Engine {
    Engine::new(&DomainOptions::default()).unwrap()
}

type Packets = Vec<(Vec<u8>, u32)>;

fn batch(engine: &Engine, packets: &Packets) -> Batch {
    let mut batch = engine.batch();
    packets
        .iter()
        .for_each(|(bytes, wire)| assert!(batch.push(bytes, *wire)));
    batch
}

/// Compares a program with libpcap's interpreter; how many packets it accepts.
fn same(engine: &Engine, batch: &mut Batch, packets: &Packets, program: &[Raw], what: &str) -> usize {
    let interpreted = Interpreted::new(program).unwrap_or_else(|e| panic!("{what}: {e}: {program:?}"));
    let expected: Vec<u32> = packets
        .iter()
        .zip(0..)
        .filter(|((bytes, wire), _)| interpreted.accepts(bytes, *wire))
        .map(|(_, number)| number)
        .collect();
    let filter = engine.program(program).unwrap_or_else(|e| panic!("{what}: {e}"));
    let got = filter.run(batch).unwrap_or_else(|e| panic!("{what}: {e}"));
    if got != expected {
        let wrong = (0..packets.len() as u32)
            .find(|n| got.contains(n) != expected.contains(n))
            .unwrap();
        let (bytes, wire) = &packets[wrong as usize];
        let listing: Vec<String> = program.iter().map(ToString::to_string).collect();
        panic!(
            "{what}: packet {wrong} ({wire}): {bytes:02x?}\n{}",
            listing.join("\n")
        );
    }
    got.len()
}

#[test]
fn known_expressions_select_what_libpcap_selects() {
    if !has_libpcap() {
        return;
    }
    let (engine, packets) = (engine(), packets(1, 4000));
    let mut batch = batch(&engine, &packets);
    let (mut tried, mut hits) = (0, 0);
    for line in EXPRESSIONS
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        match compile(line, ETHERNET) {
            Ok(program) => {
                tried += 1;
                hits += usize::from(same(&engine, &mut batch, &packets, &program, line) > 0);
            }
            // What one version of libpcap takes, another does not: a few may be.
            Err(FilterError::Expression { message }) => println!("not taken: {line}: {message}"),
            Err(e) => panic!("{line}: {e}"),
        }
    }
    assert!(
        tried >= 150 && hits * 10 >= tried * 7,
        "{tried} expressions, {hits} with packets"
    );
}

#[test]
fn generated_expressions_select_what_libpcap_selects() {
    if !has_libpcap() {
        return;
    }
    let rounds = std::env::var("RINGFENCE_FILTER_ROUNDS").map_or(5000, |n| n.parse().expect("a number"));
    let (engine, packets) = (engine(), packets(2, 400));
    let mut batch = batch(&engine, &packets);
    let (mut random, names) = (Random(77), Names::made());
    let (mut tried, mut some) = (0, 0);
    while tried < rounds {
        let text = expression(&mut random, 4, &names);
        match compile(&text, ETHERNET) {
            Ok(program) => {
                tried += 1;
                let accepted = same(&engine, &mut batch, &packets, &program, &text);
                some += usize::from(accepted > 0 && accepted < packets.len());
            }
            // "expression rejects all packets", a host that is no address of a protocol
            Err(FilterError::Expression { .. }) => {}
            Err(e) => panic!("{text}: {e}"),
        }
    }
    assert!(
        some * 2 > tried,
        "{some} of {tried} select some packets and not all"
    );
}

/// A program of which libpcap's compiler would make only some: every instruction, in any order.
fn program(random: &mut Random) -> Vec<Raw> {
    let count = 3 + random.below(30) as usize;
    let mut program = Vec::new();
    let mut stored: Vec<u32> = Vec::new();
    for at in 0..count {
        let left = (count - at) as u64;
        let k = match random.below(4) {
            0 => random.next() as u32,
            1 => 0x629A_629A,
            _ => random.below(80) as u32,
        };
        let (mut jt, mut jf) = (0, 0);
        let (code, k) = match random.below(12) {
            0..=2 => (*random.pick(&[0x20, 0x28, 0x30]), k),
            3 => (*random.pick(&[0x40, 0x48, 0x50]), k),
            4 => (*random.pick(&[0x00, 0x80, 0x01, 0x81]), k),
            5 => (0xB1, k),
            6 => {
                let word = random.below(16) as u32;
                // What was not stored on each way is not the same in two interpreters.
                match stored.first() {
                    Some(&known) if random.one_in(2) => (*random.pick(&[0x60, 0x61]), known),
                    _ if at < 4 => {
                        stored.push(word);
                        (*random.pick(&[0x02, 0x03]), word)
                    }
                    _ => (*random.pick(&[0x02, 0x03]), word),
                }
            }
            7 => (
                4 | *random.pick(&[0x00, 0x10, 0x20, 0x40, 0x50, 0xA0]) | *random.pick(&[0, 8]),
                k,
            ),
            // What shifts by constants of 32 and more are is the machine's business there.
            8 => match random.one_in(2) {
                true => (*random.pick(&[0x64, 0x74]), random.below(32) as u32),
                false => (*random.pick(&[0x6C, 0x7C]), 0),
            },
            9 => (4 | *random.pick(&[0x30, 0x90]) | *random.pick(&[0, 8]), k.max(1)),
            10 if at >= 4 => {
                (jt, jf) = (random.below(left.min(6)) as u8, random.below(left.min(6)) as u8);
                (
                    5 | *random.pick(&[0x10, 0x20, 0x30, 0x40]) | *random.pick(&[0, 8]),
                    k,
                )
            }
            _ => (*random.pick(&[0x07, 0x87, 0x84]), 0),
        };
        program.push(Raw { code, jt, jf, k });
    }
    program.push(match random.one_in(2) {
        true => Raw {
            code: 0x16,
            jt: 0,
            jf: 0,
            k: 0,
        },
        false => Raw {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: 1,
        },
    });
    program.push(Raw {
        code: 0x06,
        jt: 0,
        jf: 0,
        k: 0,
    });
    program
}

#[test]
fn random_programs_do_what_libpcap_does() {
    if !has_libpcap() {
        return;
    }
    let (engine, packets) = (engine(), packets(3, 100));
    let mut batch = batch(&engine, &packets);
    let mut random = Random(78);
    for number in 0..3000 {
        let program = program(&mut random);
        same(
            &engine,
            &mut batch,
            &packets,
            &program,
            &format!("program {number}"),
        );
    }
}

#[test]
fn programs_that_are_none_are_refused() {
    let engine = engine();
    let insn = |code, jt, jf, k| Raw { code, jt, jf, k };
    let end = insn(6, 0, 0, 0);
    for (program, at) in [
        (vec![], 0),
        (vec![insn(0x20, 0, 0, 0)], 1),
        (vec![insn(0x15, 0, 1, 0), end], 0),
        (vec![insn(0x05, 0, 0, 1), end], 0),
        (vec![insn(0x05, 0, 0, -2_i32 as u32), end], 0),
        (vec![insn(0x05, 0, 0, i32::MIN as u32), end], 0),
        (vec![insn(0x8C, 0, 0, 0), end], 0),
        (vec![insn(0x60, 0, 0, 16), end], 0),
        (vec![insn(0x34, 0, 0, 0), end], 0),
        (vec![insn(0xFF, 0, 0, 0), end], 0),
        (vec![insn(0x18, 0, 0, 0), end], 0),
    ] {
        match engine.program(&program) {
            Err(FilterError::Program(bad)) => assert_eq!(bad.at, at, "{program:?}"),
            other => panic!("{program:?}: {other:?}"),
        }
    }
    assert!(matches!(
        engine.program(&vec![end; 20_000]),
        Err(FilterError::Program(_))
    ));
    let longest: Vec<Raw> = (0..16_000).map(|n| insn(0x04, 0, 0, n)).chain([end]).collect();
    engine.program(&longest).expect("long ones are fine");
    // A loop without end is ended by the limit of time.
    let mut batch = engine.batch();
    batch.push(&[1; 60], 60);
    let endless = engine.program(&[insn(0x05, 0, 0, u32::MAX), end]).unwrap();
    engine
        .runtime()
        .domain()
        .set_time_limit(Some(Duration::from_millis(20)))
        .unwrap();
    assert!(matches!(
        endless.run(&mut batch),
        Err(FilterError::Function(FunctionError::Call(_)))
    ));
}

#[test]
fn expressions_that_do_not_parse_are_errors() {
    if !has_libpcap() {
        return;
    }
    let engine = engine();
    let nested = format!("{}ip{}", "(".repeat(8000), ")".repeat(8000));
    let long = "ip or ".repeat(10_000) + "ip";
    for text in [
        "tcp port",
        "nonsense 5",
        "ip[",
        "host 1.2.3.4.5",
        "((ip)",
        "tcp portrange x",
        "ip\0",
        &long,
        &nested,
    ] {
        match engine.expression(text, ETHERNET) {
            Err(FilterError::Expression { message }) => assert!(!message.is_empty()),
            Ok(_) if text == nested => {}
            other => panic!("{text:.40}: {other:?}"),
        }
    }
    assert!(engine.expression("tcp", 99_999).is_err());
    // Nothing at all selects everything.
    let mut batch = engine.batch();
    batch.push(&[1, 2, 3], 3);
    batch.push(&[], 0);
    assert_eq!(
        engine.expression("", ETHERNET).unwrap().run(&mut batch).unwrap(),
        [0, 1]
    );
    // Raw IP is another link type.
    let v4 = engine.expression("ip and tcp", 12).unwrap();
    batch.clear();
    batch.push(&[&[0x45][..], &[0; 8], &[6], &[0; 10]].concat(), 20);
    assert_eq!(v4.run(&mut batch).unwrap(), [0]);
}

const COUNTER: &str = "
#define EVERY 3
static unsigned seen;
static unsigned lengths[2048];
/* every third packet of a length */
int filter(const unsigned char *packet, unsigned length, unsigned wire)
{
	seen++;
	return ++lengths[wire & 2047] % EVERY == 0;
}
";

#[test]
fn filters_in_c_keep_state() {
    let engine = engine();
    let filter = engine.function(COUNTER).unwrap();
    let mut batch = engine.batch();
    for wire in [60, 60, 70, 60, 70, 70, 60, 60] {
        batch.push(&[0; 20], wire);
    }
    assert_eq!(filter.run(&mut batch).unwrap(), [3, 5]);
    assert_eq!(filter.run(&mut batch).unwrap(), [0, 5, 6]);
    // Two of the same text have their own state.
    let other = engine.function(COUNTER).unwrap();
    assert_eq!(other.run(&mut batch).unwrap(), [3, 5]);
    drop(other);
    engine.reset().unwrap();
    assert_eq!(filter.run(&mut batch).unwrap(), [3, 5]);
}

#[test]
fn filters_in_c_fail_for_themselves() {
    let engine = engine();
    let mut batch = engine.batch();
    batch.push(&[7; 64], 64);
    let text =
        |body: &str| format!("int filter(const unsigned char *p, unsigned n, unsigned wire) {{ {body} }}");
    type Judge = fn(&FaultKind) -> bool;
    let bad: [(&str, Judge); 3] = [
        ("return *(int *)1234;", |k| {
            matches!(k, FaultKind::BadAccess { .. })
        }),
        ("return 1 / (n - 64);", |k| matches!(k, FaultKind::Division)),
        ("for (;;) n++; return n;", |k| matches!(k, FaultKind::TimeLimit)),
    ];
    for (body, judge) in bad {
        let filter = engine.function(&text(body)).unwrap();
        // Only for the one that does not end: the others may take as long as a busy machine makes them.
        let limit = body.contains("for (;;)").then_some(Duration::from_millis(20));
        engine.runtime().domain().set_time_limit(limit).unwrap();
        match filter.run(&mut batch) {
            Err(FilterError::Function(FunctionError::Call(CallError::Fault(fault)))) => {
                assert!(judge(&fault.kind), "{body}: {:?}", fault.kind);
            }
            other => panic!("{body}: {other:?}"),
        }
        engine.reset().unwrap();
    }
    engine.runtime().domain().set_time_limit(None).unwrap();
    let good = engine.function(&text("return p[0] == 7;")).unwrap();
    assert_eq!(good.run(&mut batch).unwrap(), [0]);
    for wrong in [
        "int filter(void) { return 1; }",
        "static int filter(const unsigned char *p, unsigned n, unsigned w) { return 1; }",
        "int other(const unsigned char *p, unsigned n, unsigned w) { return 1; }",
        "int filter(const unsigned char *p, unsigned n, unsigned w) { return m; }",
        "int filter(",
    ] {
        assert!(
            matches!(engine.function(wrong), Err(FilterError::Function(_))),
            "{wrong}"
        );
    }
}

#[test]
fn batches_take_what_fits() {
    let engine = engine();
    let all = engine
        .function("int filter(const unsigned char *p, unsigned n, unsigned w) { return 1; }")
        .unwrap();
    let mut batch = engine.batch();
    assert_eq!(all.run(&mut batch).unwrap(), [0_u32; 0]);
    assert!(!batch.push(&vec![0; 17 << 20], 1), "no packet is so large");
    let mut count = 0;
    while batch.push(&[1; 1000], 1000) {
        count += 1;
    }
    assert!(count > 10_000, "{count}");
    assert_eq!(all.run(&mut batch).unwrap().len(), count);
    assert_eq!(batch.packet(count - 1).unwrap(), (&[1; 1000][..], 1000));
    assert!(batch.packet(count).is_none());
    batch.clear();
    assert!(batch.is_empty() && batch.push(&[1], 1));
    assert_eq!(all.run(&mut batch).unwrap(), [0]);
    let before = engine.runtime().memory().base();
    assert_ne!(before, 0);
    // Filters go, and nothing is left of them.
    let used = engine.runtime().domain().usage().code;
    for _ in 0..100 {
        drop(
            engine
                .function("int filter(const unsigned char *p, unsigned n, unsigned w) { return 0; }")
                .unwrap(),
        );
    }
    assert_eq!(engine.runtime().domain().usage().code, used);
}

/// A table of connections in the heap: the first packet of each pair of addresses.
const CONNECTIONS: &str = "
void *malloc(unsigned long);
struct connection { struct connection *next; unsigned from, to; };
static struct connection *table[256];
static unsigned word(const unsigned char *p) { return p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3]; }
int filter(const unsigned char *packet, unsigned length, unsigned wire)
{
	if (length < 34 || packet[12] != 8 || packet[13] != 0)
		return 0;
	unsigned from = word(packet + 26), to = word(packet + 30);
	struct connection **at = &table[(from * 31 ^ to) & 255];
	for (struct connection *c = *at; c; c = c->next)
		if (c->from == from && c->to == to)
			return 0;
	struct connection *c = malloc(sizeof *c);
	if (!c)
		return 0;
	c->next = *at;
	c->from = from;
	c->to = to;
	*at = c;
	return 1;
}
";

#[test]
fn filters_in_c_have_tables_in_the_heap() {
    let (engine, packets) = (engine(), packets(4, 5000));
    let filter = engine.function(CONNECTIONS).unwrap();
    let mut seen = std::collections::HashSet::new();
    let is_first = |(bytes, _): &(Vec<u8>, u32)| {
        bytes.len() >= 34 && bytes[12..14] == [8, 0] && seen.insert(bytes[26..34].to_vec())
    };
    let expected: Vec<bool> = packets.iter().map(is_first).collect();
    let expected: Vec<u32> = (0..).zip(expected).filter(|e| e.1).map(|e| e.0).collect();
    let mut all = batch(&engine, &packets);
    assert!(expected.len() > 20);
    assert_eq!(filter.run(&mut all).unwrap(), expected);
    assert_eq!(filter.run(&mut all).unwrap(), [0_u32; 0], "all are known now");
}
