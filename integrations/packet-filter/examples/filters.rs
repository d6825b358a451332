//! What filters cost: nanoseconds a packet beside libpcap's interpreter, and microseconds to make one.
//!
//!     cargo run --release -p ringfence-packet-filter --example filters [-- --json FILE]
//!
//! The packets are there already: what is measured is looking at them, in batches of 4,096.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use libloading::{Library, Symbol};
use ringfence::DomainOptions;
use ringfence_packet_filter::pcap::{Interpreted, compile};
use ringfence_packet_filter::{Batch, ETHERNET, Engine, Filter};

#[path = "../../../crates/functions/examples/support/figures.rs"]
mod figures;
#[path = "../tests/support/mod.rs"]
mod support;

use figures::{Figures, Series};

const PACKETS: usize = 4096;
/// Terms of the filters in the chart.
const TERMS: [usize; 6] = [1, 2, 4, 8, 12, 16];

type Failure = Box<dyn std::error::Error>;
type Packets = [(Vec<u8>, u32)];
type Native = unsafe extern "C" fn(*const *const u8, *const u32, i64) -> i64;

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

/// The same as a function in C, with the comparison of lengths that libpcap makes for each load.
fn terms_in_c(count: usize) -> String {
    let terms: Vec<String> = (0..count)
        .map(|k| format!("length > {} && packet[{0}] != {}", 14 + k, 200 + k))
        .collect();
    let types = "const unsigned char *packet, unsigned length, unsigned wire";
    format!("int filter({types})\n{{ return {}; }}\n", terms.join(" && "))
}

/// Cycles of the time stamp counter in a nanosecond.
fn cycles() -> f64 {
    // SAFETY: every processor of x86-64 has the counter, and Linux lets programs read it.
    let now = || unsafe { std::arch::x86_64::_rdtsc() };
    let (begun, from) = (Instant::now(), now());
    std::thread::sleep(Duration::from_millis(100));
    (now() - from) as f64 / begun.elapsed().as_nanos() as f64
}

/// Nanoseconds a packet.
fn per(time: Duration) -> f64 {
    time.as_nanos() as f64 / PACKETS as f64
}

/// A filter over packets that are behind the fence.
fn fenced(filter: &Filter, batch: &mut Batch) -> f64 {
    per(best(300, || {
        std::hint::black_box(filter.run(batch).expect("it does not fail"));
    }))
}

/// libpcap's interpreter, and how many it accepts.
fn interpreted(program: &Interpreted, packets: &Packets) -> (f64, usize) {
    let mut count = 0;
    let time = best(300, || {
        count = packets
            .iter()
            .filter(|(bytes, wire)| program.accepts(bytes, *wire))
            .count();
    });
    (per(time), count)
}

/// A function in C from `gcc -O2`, with the loop over the packets in C as well, and how many it accepts.
fn native(directory: &Path, text: &str, packets: &Packets) -> Result<(f64, usize), Failure> {
    let (source, object) = (directory.join("filter.c"), directory.join("filter.so"));
    let all = "long run(const unsigned char *const *packets, const unsigned *lengths, long count)\n\
        { long accepted = 0; for (long i = 0; i < count; i++) accepted += filter(packets[i], lengths[i], lengths[i]) != 0; return accepted; }\n";
    std::fs::write(&source, format!("static {text}{all}"))?;
    let gcc = Command::new("gcc")
        .args(["-O2", "-shared", "-fPIC", "-o"])
        .args([&object, &source])
        .status()?;
    if !gcc.success() {
        return Err("gcc does not take the filter".into());
    }
    // SAFETY: what gcc has just made of our own text.
    let library = unsafe { Library::new(&object) }?;
    // SAFETY: the type that the text gives it.
    let run: Symbol<'_, Native> = unsafe { library.get(b"run\0") }?;
    let starts: Vec<_> = packets.iter().map(|p| p.0.as_ptr()).collect();
    let lengths: Vec<_> = packets.iter().map(|p| p.0.len() as u32).collect();
    let mut accepted = 0;
    // SAFETY: both arrays have as many elements as are told, and the packets live.
    let mut act = || accepted = unsafe { run(starts.as_ptr(), lengths.as_ptr(), starts.len() as i64) };
    let time = per(best(300, &mut act));
    Ok((time, accepted as usize))
}

/// Palladium's figure 7: cycles over the number of terms.
fn chart(engine: &Engine, packets: &Packets, figures: &mut Figures) -> Result<(), Failure> {
    let directory = std::env::temp_dir().join(format!("rf-filters-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let mut found = [const { Vec::new() }; 4];
    let cycles = cycles();
    for count in TERMS {
        let program = compile(&terms(count), ETHERNET)?;
        let text = terms_in_c(count);
        let (filter, function) = (engine.program(&program)?, engine.function(&text)?);
        let mut batch = engine.batch();
        for (bytes, wire) in packets {
            assert!(batch.push(bytes, *wire));
        }
        let accepted = [filter.run(&mut batch)?.len(), function.run(&mut batch)?.len()];
        let (plain, by_gcc) = native(&directory, &text, packets)?;
        let (interpreter, by_libpcap) = interpreted(&Interpreted::new(&program)?, packets);
        assert_eq!(accepted, [by_gcc, by_libpcap], "{count} terms");
        let values = [
            fenced(&filter, &mut batch),
            fenced(&function, &mut batch),
            plain,
            interpreter,
        ];
        for (list, value) in found.iter_mut().zip(values) {
            list.push((count as f64, value * cycles));
        }
    }
    std::fs::remove_dir_all(&directory)?;
    let names = [
        "expression, fenced",
        "function in C, fenced",
        "function in C, gcc -O2",
        "libpcap's interpreter",
    ];
    let rows = TERMS.iter().enumerate().map(|(i, count)| {
        let cells = found
            .iter()
            .map(|list| format!("{:.1} ({:.2})", list[i].1, list[i].1 / cycles));
        std::iter::once(count.to_string()).chain(cells).collect()
    });
    let head: Vec<&str> = std::iter::once("terms").chain(names).collect();
    figures.table("filter-terms-table", &head, rows.collect());
    let series: Vec<_> = names
        .iter()
        .zip(found.clone())
        .map(|(name, list)| Series::new(name, list))
        .collect();
    let titles = [
        "A packet through a filter, all terms of which hold",
        "terms",
        "cycles",
    ];
    figures.chart("filter-terms", titles, &series);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let engine = Engine::new(&DomainOptions::default())?;
    let mut figures = Figures::default();
    let plain: Vec<(Vec<u8>, u32)> = (0..PACKETS).map(|i| (vec![(i % 100) as u8; 64], 64)).collect();
    let mixed = support::packets(9, PACKETS);
    chart(&engine, &plain, &mut figures)?;
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
    let mut rows = Vec::new();
    for (name, text, packets) in expressions {
        let program = compile(&text, ETHERNET)?;
        let filter = engine.program(&program)?;
        let mut batch = engine.batch();
        packets
            .iter()
            .for_each(|(bytes, wire)| assert!(batch.push(bytes, *wire)));
        let accepted = filter.run(&mut batch)?.len();
        let (interpreter, count) = interpreted(&Interpreted::new(&program)?, packets);
        assert_eq!(accepted, count, "{text}");
        let ours = fenced(&filter, &mut batch);
        let compiling = median(|| drop(compile(&text, ETHERNET)));
        // Without taking it away again: all are kept until the end.
        let mut kept = Vec::new();
        let adding = median(|| kept.push(engine.program(&program).expect("it can be encoded")));
        rows.push(vec![
            name.to_owned(),
            format!("{ours:.1}"),
            format!("{interpreter:.1}"),
            format!("{:.1} ×", interpreter / ours),
            format!("{compiling:.1}"),
            format!("{adding:.1}"),
            format!("{:.1}", compiling + adding),
        ]);
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
        let mut row = vec![name.to_owned(), format!("{:.1}", fenced(filter, &mut batch))];
        row.resize(7, String::new());
        rows.push(row);
    }
    figures.table(
        "filters",
        &[
            "filter",
            "ns a packet",
            "libpcap's interpreter, ns",
            "ratio",
            "libpcap compiles, µs",
            "to code, verified and added, µs",
            "together, µs",
        ],
        rows,
    );
    figures.end()
}
