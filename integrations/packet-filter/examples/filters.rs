//! What filters cost: nanoseconds a packet beside libpcap's interpreter, and microseconds to make one.
//!
//!     cargo run --release -p ringfence-packet-filter --example filters
//!
//! The packets are there already: what is measured is looking at them, in batches of 4,096.

use std::time::{Duration, Instant};

use ringfence::DomainOptions;
use ringfence_packet_filter::pcap::{Interpreted, compile};
use ringfence_packet_filter::{ETHERNET, Engine};

#[path = "../tests/support/mod.rs"]
mod support;

const PACKETS: usize = 4096;

/// The shortest of some runs: what else the machine does makes none shorter.
fn best(rounds: usize, mut act: impl FnMut()) -> Duration {
    let one = |_| {
        let begun = Instant::now();
        act();
        begun.elapsed()
    };
    (0..rounds).map(one).min().unwrap_or_default()
}

/// The middle of some runs, in microseconds.
fn median(mut act: impl FnMut()) -> f64 {
    let one = |_| {
        let begun = Instant::now();
        act();
        begun.elapsed()
    };
    let mut times: Vec<Duration> = (0..500).map(one).collect();
    times.sort_unstable();
    times[times.len() / 2].as_nanos() as f64 / 1000.0
}

/// So many comparisons of bytes, all of which hold.
fn terms(count: usize) -> String {
    let terms: Vec<String> = (0..count)
        .map(|k| format!("ether[{}] != {}", 14 + k, 200 + k))
        .collect();
    terms.join(" and ")
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let engine = Engine::new(&DomainOptions::default())?;
    let plain: Vec<(Vec<u8>, u32)> = (0..PACKETS).map(|i| (vec![(i % 100) as u8; 64], 64)).collect();
    let mixed = support::packets(9, PACKETS);
    let long = "tcp port 80 or tcp port 443 or udp port 53 or icmp or arp or (host 10.0.0.1 and not port 22)";
    let expressions = [
        ("1 term", terms(1), &plain),
        ("4 terms", terms(4), &plain),
        ("16 terms", terms(16), &plain),
        (
            "tcp port 80 and host 10.0.0.1",
            "tcp port 80 and host 10.0.0.1".into(),
            &mixed,
        ),
        ("six primitives", long.into(), &mixed),
    ];
    println!(
        "| filter | ns a packet | libpcap's interpreter, ns | ratio | libpcap compiles, µs | to code, verified and added, µs | together, µs |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, text, packets) in expressions {
        let program = compile(&text, ETHERNET)?;
        let interpreted = Interpreted::new(&program)?;
        let filter = engine.program(&program)?;
        let mut batch = engine.batch();
        packets
            .iter()
            .for_each(|(bytes, wire)| assert!(batch.push(bytes, *wire)));
        let accepted = filter.run(&mut batch)?.len();
        let mut count = 0;
        let interpreter = best(300, || {
            count = packets
                .iter()
                .filter(|(bytes, wire)| interpreted.accepts(bytes, *wire))
                .count();
        });
        assert_eq!(accepted, count, "{text}");
        let ours = best(300, || {
            std::hint::black_box(filter.run(&mut batch).expect("it cannot fail"));
        });
        let per = |time: Duration| time.as_nanos() as f64 / PACKETS as f64;
        let compiling = median(|| drop(compile(&text, ETHERNET)));
        // Without taking it away again: all are kept until the end.
        let mut kept = Vec::new();
        let adding = median(|| kept.push(engine.program(&program).expect("it can be encoded")));
        println!(
            "| {name} | {:.1} | {:.1} | {:.1} × | {compiling:.1} | {adding:.1} | {:.1} |",
            per(ours),
            per(interpreter),
            per(interpreter) / per(ours),
            compiling + adding
        );
    }
    let mut batch = engine.batch();
    mixed
        .iter()
        .for_each(|(bytes, wire)| assert!(batch.push(bytes, *wire)));
    let none =
        engine.function("int filter(const unsigned char *p, unsigned n, unsigned wire) { return 0; }")?;
    let state = engine.function(
        "static unsigned seen[65536];
         int filter(const unsigned char *p, unsigned n, unsigned wire)
         {
             if (n < 36 || p[23] != 6) return 0;
             return ++seen[p[34] << 8 | p[35]] % 3 == 0;
         }",
    )?;
    for (name, filter) in [
        ("a function in C that rejects all", &none),
        ("one that counts by port", &state),
    ] {
        let time = best(300, || {
            std::hint::black_box(filter.run(&mut batch).expect("it does not fail"));
        });
        println!(
            "| {name} | {:.1} | | | | | |",
            time.as_nanos() as f64 / PACKETS as f64
        );
    }
    Ok(())
}
