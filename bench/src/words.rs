//! `bench words`: what rights to words cost, part by part.
//!
//! Four works on objects of the host's are done by one source in four ways: without a fence; fenced, and in the words mode, on a copy
//! in the module's own memory; in the words mode on the host's own objects.

use std::ffi::c_void;
use std::hint::black_box;

use ringfence_runtime::domain::take_error;
use ringfence_runtime::{
    Arena, Domain, DomainOptions, Entry, Imports, LoadOptions, Module, Party, Rights, Signature,
};

use crate::build::{Kitchen, Native};
use crate::configuration::Configuration;
use crate::measure::{Subject, Summary, interleave, thread_nanoseconds, thread_seconds};

/// Place, number and one more in, a number out.
const WORK: Signature = Signature {
    ints: 3,
    int_results: 1,
    ..Signature::NOTHING
};
type Work = extern "C" fn(u64, u64, u64) -> u64;

/// Bytes of a packet's descriptor, of which a driver gets some.
const PACKET: u64 = 144;
/// Where those begin, and how many they are.
const PART: (u64, u64) = (48, 32);
/// Descriptors in the ring.
const RING: u64 = 256;
/// Packets of a call.
const POLL: u64 = 64;
/// Bytes of an object of `spread`.
const OBJECT: u64 = 64;
/// The most of them.
const MOST: u64 = 1 << 20;

/// The works: name, function, elements, and bytes of an object that is given at a time.
const WORKS: [(&str, &str, u64, u64); 4] = [
    ("driver, 64 packets", "driver", POLL, PACKET),
    ("list of 4,096 nodes", "list", 4096, 64),
    ("text of 64 KiB", "words", 1 << 16, 4096),
    ("picture of 64 KiB", "pixels", 1 << 16, 4096),
];

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

/// The module, loaded in one way.
struct Side {
    domain: Option<Domain>,
    native: Option<Native>,
}

impl Side {
    fn native(kitchen: &Kitchen) -> Result<Side, String> {
        let file = kitchen.module("words.c", &["-fno-semantic-interposition"], Configuration::Native)?;
        Ok(Side {
            domain: None,
            native: Some(Native::load(&file)?),
        })
    }

    fn fenced(kitchen: &Kitchen, arena: Option<&Arena>) -> Result<Side, String> {
        let configuration = arena.map_or(Configuration::Full, |_| Configuration::Words);
        let file = kitchen.module("words.c", &["-nostdlib"], configuration)?;
        let mut options = LoadOptions::default();
        options.allow_words = arena.is_some();
        let module = Module::open(&file, &options).map_err(text)?;
        let imports = arena.map_or_else(Imports::new, |arena| Imports::new().arena(arena));
        let domain = Domain::new(&[module], imports, &DomainOptions::default()).map_err(text)?;
        Ok(Side {
            domain: Some(domain),
            native: None,
        })
    }

    fn entry(&self, name: &str) -> Result<Option<Entry>, String> {
        let entry = self.domain.as_ref().map(|d| d.entry(name));
        entry.transpose().map_err(text)
    }

    fn work(&self, name: &str) -> Result<Work, String> {
        let address = match (&self.native, self.entry(name)?) {
            (Some(native), _) => native.symbol(name)?,
            (None, Some(entry)) => entry.thunk(WORK),
            (None, None) => return Err(format!("no {name}")),
        };
        // SAFETY: all functions of words.c that are asked for have this type, or ignore arguments; a thunk is a C function.
        Ok(unsafe { std::mem::transmute::<*const c_void, Work>(address) })
    }

    /// Has the module fill `count` elements at a place; gives the bytes that they take.
    fn prepare(&self, work: u64, place: u64, count: u64) -> Result<u64, String> {
        let bytes = self.work("prepare")?(place, work, count);
        match self.domain.as_ref().is_some_and(Domain::faulted) {
            true => Err(format!(
                "the module could not fill its objects: {}",
                take_error().map_or_else(String::new, |e| e.to_string())
            )),
            false => Ok(bytes),
        }
    }
}

/// Nanoseconds of one call, over enough calls that they can be told.
fn of_call(f: Work, place: u64, count: u64, turns: u32) -> f64 {
    let mut first = 0;
    thread_nanoseconds(turns, || {
        first += count;
        black_box(f(place, count, first));
    })
}

fn summaries(rounds: usize, mut subjects: Vec<Subject<'_>>) -> Result<Vec<Summary>, String> {
    interleave(rounds, &mut subjects)
}

/// Measures, and prints tables in Markdown.
pub fn run(rounds: usize, smoke: bool) -> Result<(), String> {
    let kitchen = Kitchen::new("build/bench")?;
    println!("{}\n", crate::machine::Machine::here());
    let arena = Arena::new(MOST * OBJECT + (8 << 20)).map_err(text)?;
    let [native, full] = [Side::native(&kitchen)?, Side::fenced(&kitchen, None)?];
    let words = Side::fenced(&kitchen, Some(&arena))?;
    let domain = words.domain.as_ref().ok_or("no domain")?;
    let scale = if smoke { 100 } else { 1 };
    parts(rounds, scale, [&native, &full, &words], &arena, domain)?;
    packets(rounds, scale, [&native, &full, &words], &arena, domain)?;
    grants(rounds, scale, [&native, &words], &arena, domain)?;
    incremental(rounds, scale, [&native, &words], &arena, domain)
}

/// Time by parts.
fn parts(rounds: usize, scale: u64, sides: [&Side; 3], arena: &Arena, domain: &Domain) -> Result<(), String> {
    println!("**Time by parts.** Nanoseconds of processor time for one call; shares of the whole.\n");
    println!(
        "| work | native | fence | tests of pointers | rights, looked up | crossing | rights, given and taken | over native |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (number, (title, name, count, object)) in WORKS.into_iter().enumerate() {
        let elements = if number == 0 { RING } else { count };
        let bytes = sides[0].prepare(number as u64, 0, elements)?;
        let place = arena.alloc(bytes).map_err(text)?;
        domain.give_words(place, bytes, Rights::Write).map_err(text)?;
        for side in &sides[1..] {
            side.prepare(number as u64, 0, elements)?;
        }
        sides[2].prepare(number as u64, place, elements)?;
        let [plain, fenced, own] = sides.map(|s| s.work(name));
        let (plain, fenced, own) = (plain?, fenced?, own?);
        let same = [
            plain(0, count, 1),
            fenced(0, count, 1),
            own(0, count, 1),
            own(place, count, 1),
        ];
        if same.iter().any(|&v| v != same[0]) || domain.faulted() {
            return Err(format!("{title}: results differ: {same:?}"));
        }
        let crossing = [sides[0].work("nothing")?, sides[2].work("nothing")?];
        let turns = u32::try_from((4_000_000 / count / scale).max(1)).map_err(text)?;
        let of = |f: Work, place: u64| move || Ok(of_call(f, place, count, turns));
        let nothing = |f: Work| move || Ok(of_call(f, 0, 0, 1_000_000 / scale as u32));
        let given = || {
            let start = thread_seconds();
            let mut at = place;
            while at < place + bytes {
                let len = object.min(place + bytes - at);
                domain.give_words(at, len, Rights::Write).map_err(text)?;
                at += object;
            }
            domain.give_words(place, bytes, Rights::None).map_err(text)?;
            let spent = (thread_seconds() - start) * 1e9;
            domain.give_words(place, bytes, Rights::Write).map_err(text)?;
            Ok(spent * count as f64 / elements as f64)
        };
        let told = summaries(
            rounds,
            vec![
                ("native", Box::new(of(plain, 0))),
                ("full", Box::new(of(fenced, 0))),
                ("words, own", Box::new(of(own, 0))),
                ("words, the host's", Box::new(of(own, place))),
                ("a plain call", Box::new(nothing(crossing[0]))),
                ("a crossing", Box::new(nothing(crossing[1]))),
                ("given", Box::new(given)),
            ],
        )?;
        let m: Vec<f64> = told.iter().map(|s| s.median).collect();
        let cross = m[5] - m[4];
        let steps = [m[1] - m[0] - cross, m[2] - m[1], m[3] - m[2], cross, m[6]];
        let whole = m[3] + m[6];
        let cell = |v: f64| format!("{v:.0} ({:.0} %)", 100.0 * v / whole);
        let cells: Vec<_> = steps.into_iter().map(cell).collect();
        println!(
            "| {title} | {:.0} | {} | {:.2} ×, {:.2} × with rights |",
            m[0],
            cells.join(" | "),
            m[3] / m[0],
            whole / m[0]
        );
        arena.free(Party::Host, place).map_err(text)?;
    }
    println!();
    Ok(())
}

/// What a host does with a packet besides: its payload is copied out and summed.
struct Host {
    payload: Vec<u8>,
    buffer: Vec<u8>,
    sum: u64,
}

impl Host {
    fn new() -> Host {
        Host {
            payload: (0..2048_u32).map(|n| n as u8).collect(),
            buffer: vec![0; 2048],
            sum: 0,
        }
    }

    /// Takes a packet whose descriptor is at an address.
    fn take(&mut self, descriptor: *const u32) {
        // SAFETY: the caller's descriptor, whose part for the driver begins there.
        let length = unsafe { descriptor.byte_add(PART.0 as usize).read_volatile() } as usize;
        let length = length.min(self.payload.len());
        self.buffer[..length].copy_from_slice(&self.payload[..length]);
        let words = self.buffer[..length].chunks_exact(8);
        self.sum = words.fold(self.sum, |sum, word| {
            sum.wrapping_add(u64::from_le_bytes(word.try_into().unwrap_or_default()))
        });
    }
}

/// The seed's example.
fn packets(
    rounds: usize,
    scale: u64,
    sides: [&Side; 3],
    arena: &Arena,
    domain: &Domain,
) -> Result<(), String> {
    let count = 1_000_000 / scale / POLL * POLL;
    println!(
        "**A driver with 32 of 144 bytes of a packet's descriptor**, {count} packets, {POLL} for each call; the host copies \
         each packet's 64 to 1,463 bytes and sums them. Nanoseconds of processor time for a packet.\n"
    );
    let bytes = sides[0].prepare(0, 0, RING)?;
    let place = arena.alloc(bytes).map_err(text)?;
    domain.give_words(place, bytes, Rights::Write).map_err(text)?;
    sides[2].prepare(0, place, RING)?;
    let part = |n: u64| place + n % RING * PACKET + PART.0;
    let only = |rights: Rights| {
        domain.give_words(place, bytes, Rights::None).map_err(text)?;
        (0..RING).try_for_each(|n| domain.give_words(part(n), PART.1, rights).map_err(text))
    };
    only(Rights::Write)?;
    sides[1].prepare(0, 0, RING)?;
    let own = sides[1].work("place_of")?(0, 0, 0);
    let mut memory = vec![0_u64; (bytes / 8) as usize];
    let plain_place = memory.as_mut_ptr() as u64;
    sides[0].prepare(0, plain_place, RING)?;
    let [plain, fenced, words] = sides.map(|s| s.work("driver"));
    let (plain, fenced, words) = (plain?, fenced?, words?);
    let run = |f: Work, at: u64, deliver: bool, rights: bool| {
        let mut host = Host::new();
        let start = thread_seconds();
        for first in (0..count).step_by(POLL as usize) {
            if rights {
                (first..first + POLL)
                    .try_for_each(|n| domain.give_words(part(n), PART.1, Rights::Write))
                    .map_err(text)?;
            }
            f(at, POLL, first);
            if rights {
                domain
                    .give_words(place + first % RING * PACKET, POLL * PACKET, Rights::None)
                    .map_err(text)?;
            }
            for n in (first..first + POLL).filter(|_| deliver) {
                host.take((at + n % RING * PACKET) as *const u32);
            }
        }
        black_box(host.sum);
        Ok((thread_seconds() - start) * 1e9 / count as f64)
    };
    let copied = |deliver: bool| {
        let mut host = Host::new();
        let mut memory = vec![0_u64; (bytes / 8) as usize];
        let at = memory.as_mut_ptr() as u64;
        let start = thread_seconds();
        for first in (0..count).step_by(POLL as usize) {
            let (from, len) = (first % RING * PACKET, (POLL * PACKET) as usize);
            // SAFETY: the descriptors of one call, in memory of ours and in the module's, as long as both.
            unsafe { std::ptr::copy_nonoverlapping((at + from) as *const u8, (own + from) as *mut u8, len) };
            fenced(0, POLL, first);
            // SAFETY: the same, back.
            unsafe { std::ptr::copy_nonoverlapping((own + from) as *const u8, (at + from) as *mut u8, len) };
            for n in (first..first + POLL).filter(|_| deliver) {
                host.take((at + n % RING * PACKET) as *const u32);
            }
        }
        black_box(host.sum);
        Ok((thread_seconds() - start) * 1e9 / count as f64)
    };
    println!(
        "| | driver alone | over unfenced | with the host's work | over unfenced |\n|---|---|---|---|---|"
    );
    let both = |deliver: bool| -> Vec<Subject<'_>> {
        let (run, copied) = (&run, &copied);
        vec![
            (
                "unfenced",
                Box::new(move || run(plain, plain_place, deliver, false)),
            ),
            (
                "words, given once",
                Box::new(move || run(words, place, deliver, false)),
            ),
            ("fenced, copied in and out", Box::new(move || copied(deliver))),
        ]
    };
    let [alone, whole] = [summaries(rounds, both(false))?, summaries(rounds, both(true))?];
    let given = |deliver: bool| -> Vec<Subject<'_>> {
        let run = &run;
        vec![(
            "words, given and taken for each call",
            Box::new(move || run(words, place, deliver, true)),
        )]
    };
    let [given_alone, given_whole] = [summaries(rounds, given(false))?, summaries(rounds, given(true))?];
    if domain.faulted() {
        return Err("the driver was denied what it was given".into());
    }
    let rows = [
        "unfenced",
        "words, rights given once",
        "fenced, copied in and out",
        "words, given and taken for each call",
    ];
    let all = alone
        .iter()
        .chain(&given_alone)
        .zip(whole.iter().chain(&given_whole));
    for (row, (a, w)) in rows.into_iter().zip(all) {
        println!(
            "| {row} | {:.1} | {:.2} × | {:.1} | {:.2} × |",
            a.median,
            a.median / alone[0].median,
            w.median,
            w.median / whole[0].median
        );
    }
    only(Rights::Write)?;
    println!();
    arena.free(Party::Host, place).map_err(text)
}

/// Costs as grants grow, and the table's size.
fn grants(
    rounds: usize,
    scale: u64,
    sides: [&Side; 2],
    arena: &Arena,
    domain: &Domain,
) -> Result<(), String> {
    println!(
        "**As grants grow.** Objects of {OBJECT} bytes, each with a grant of its own; a word of one at random is read.\n"
    );
    println!(
        "| objects | native read | granted read | more | a grant | a revocation for sure | table, bytes for a byte of arena |"
    );
    println!("|---|---|---|---|---|---|---|");
    let reads = 2_000_000 / scale;
    for count in [1 << 10, 1 << 14, 1 << 17, MOST] {
        let bytes = count * OBJECT;
        let place = arena.alloc(bytes).map_err(text)?;
        let before = table();
        let start = thread_seconds();
        for n in 0..count {
            domain
                .give_words(place + n * OBJECT, OBJECT, Rights::Read)
                .map_err(text)?;
        }
        let grant = (thread_seconds() - start) * 1e9 / count as f64;
        let size = table().saturating_sub(before) as f64 / bytes as f64;
        let mut memory = vec![0_u64; (bytes / 8) as usize];
        memory.fill(1);
        let plain_place = memory.as_mut_ptr() as u64;
        let [plain, words] = sides.map(|s| s.work("spread"));
        let (plain, words) = (plain?, words?);
        let of = |f: Work, place: u64| {
            move || {
                let start = thread_seconds();
                black_box(f(place, count, reads));
                Ok((thread_seconds() - start) * 1e9 / reads as f64)
            }
        };
        let revoked = || {
            let some = (1000 / scale).min(count);
            let start = thread_seconds();
            for n in 0..some {
                domain
                    .give_words(place + n * OBJECT, OBJECT, Rights::None)
                    .map_err(text)?;
            }
            let spent = (thread_seconds() - start) * 1e9 / some as f64;
            domain
                .give_words(place, some * OBJECT, Rights::Read)
                .map_err(text)?;
            Ok(spent)
        };
        let told = summaries(
            rounds,
            vec![
                ("native", Box::new(of(plain, plain_place))),
                ("granted", Box::new(of(words, place))),
                ("revoked", Box::new(revoked)),
            ],
        )?;
        if domain.faulted() {
            return Err("a read that was granted was denied".into());
        }
        println!(
            "| {count} | {:.2} ns | {:.2} ns | {:.2} ns | {grant:.0} ns | {:.0} ns | {size:.2} |",
            told[0].median,
            told[1].median,
            told[1].median - told[0].median,
            told[2].median
        );
        arena.free(Party::Host, place).map_err(text)?;
    }
    println!();
    Ok(())
}

/// Bytes of memory that tables of rights take in this process.
fn table() -> u64 {
    let text = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("Pss_Shmem:"));
    line.and_then(|l| l.trim().strip_suffix(" kB")?.parse::<u64>().ok())
        .map_or(0, |kib| kib << 10)
}

/// Isolation step by step, over the whole path of a packet.
fn incremental(
    rounds: usize,
    scale: u64,
    sides: [&Side; 2],
    arena: &Arena,
    domain: &Domain,
) -> Result<(), String> {
    let count = 1_000_000 / scale / POLL * POLL;
    println!(
        "**Isolation step by step**, over the path of a packet with the host's work; the host makes a descriptor for each \
         packet and drops it.\n"
    );
    let bytes = RING * PACKET;
    let place = arena.alloc(bytes).map_err(text)?;
    let mut memory = vec![0_u64; (bytes / 8) as usize];
    let plain_place = memory.as_mut_ptr() as u64;
    domain.give_words(place, bytes, Rights::Write).map_err(text)?;
    sides[0].prepare(0, plain_place, RING)?;
    sides[1].prepare(0, place, RING)?;
    let [plain, words] = sides.map(|s| s.work("driver"));
    let (plain, words) = (plain?, words?);
    let run = |f: Work, at: u64, step: u32| {
        // The step before this measurement may have left other rights.
        let before = if step == 1 { Rights::Write } else { Rights::None };
        domain.give_words(place, bytes, before).map_err(text)?;
        let mut host = Host::new();
        let start = thread_seconds();
        for first in (0..count).step_by(POLL as usize) {
            let objects = (first..first + POLL).map(|n| place + n % RING * PACKET);
            let all = place + first % RING * PACKET;
            if step == 2 {
                // An object is given when it is allocated, and taken when it is freed.
                objects
                    .clone()
                    .try_for_each(|o| domain.give_words(o, PACKET, Rights::Write))
                    .map_err(text)?;
            }
            if step == 3 {
                objects
                    .clone()
                    .try_for_each(|o| domain.give_words(o + PART.0, PART.1, Rights::Write))
                    .map_err(text)?;
            }
            f(at, POLL, first);
            for n in first..first + POLL {
                host.take((at + n % RING * PACKET) as *const u32);
            }
            if step >= 2 {
                domain
                    .give_words(all, POLL * PACKET, Rights::None)
                    .map_err(text)?;
            }
        }
        black_box(host.sum);
        Ok((thread_seconds() - start) * 1e9 / count as f64)
    };
    let run = &run;
    let told = summaries(
        rounds,
        vec![
            ("unfenced", Box::new(move || run(plain, plain_place, 0))),
            ("loader", Box::new(move || run(words, place, 1))),
            ("allocators", Box::new(move || run(words, place, 2))),
            ("policies", Box::new(move || run(words, place, 3))),
        ],
    )?;
    if domain.faulted() {
        return Err("the driver was denied what it was given".into());
    }
    println!("| step | ns for a packet | more than unfenced | the seed |\n|---|---|---|---|");
    let rows = [
        ("unfenced", ""),
        ("loader: all the host's objects given at once", "0.1 %"),
        (
            "allocators: an object given when it is made, taken when it is dropped",
            "1 %",
        ),
        ("policies: 32 of its 144 bytes, for the time of a call", "10 %"),
    ];
    for ((row, seed), s) in rows.into_iter().zip(&told) {
        let more = 100.0 * (s.median / told[0].median - 1.0);
        println!("| {row} | {:.1} | {more:.1} % | {seed} |", s.median);
    }
    println!();
    arena.free(Party::Host, place).map_err(text)
}
