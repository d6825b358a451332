//! Walks the opcode space, compares what the verifier's decoder accepts with iced-x86, Zydis and Capstone, and prints the set of
//! accepted encodings as a table.
//!
//!     cargo run --release -- [--sample N] [--table FILE]
//!
//! Without `--sample` every encoding of `space.rs` is tried (hours of processor time); with it, one in N. Exit status 1 if
//! there is a disagreement that `KNOWN` does not explain.

mod capstone;
#[path = "../../../crates/verify/tests/iced/mod.rs"]
mod iced;
mod space;
mod zydis;

use iced_x86::{DecoderOptions, InstructionInfoFactory};
use ringfence_verify::{Access, Instruction, Memory, decode};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Disagreements that have been looked at: what is said, of which instructions, and why it does not matter.
const KNOWN: &[(&str, &[&str], &str)] = &[
    (
        "zydis: access OperandAction(READ)",
        &["PREFETCHW"],
        "We treat it as a store, because it takes the line from other processors; that is the stricter reading.",
    ),
    (
        "zydis: privileged, or state that outlives the call",
        &["VZEROALL", "VZEROUPPER"],
        "What is meant are the vector registers, which gates clear anyway. MXCSR is not touched.",
    ),
];

/// Of accepted encodings, one in this many is shown to Capstone, which is slow.
const CAPSTONE_SHARE: u64 = 8;

/// One kind of disagreement.
struct Disagreement {
    count: u64,
    example: String,
    /// The instructions concerned.
    names: BTreeSet<String>,
}

#[derive(Default)]
struct Findings {
    tried: u64,
    accepted: u64,
    /// Form of the instruction, form of its memory operand: number of encodings.
    table: BTreeMap<(String, &'static str), u64>,
    disagreements: BTreeMap<String, Disagreement>,
}

impl Findings {
    fn merge(&mut self, other: Findings) {
        self.tried += other.tried;
        self.accepted += other.accepted;
        for (key, n) in other.table {
            *self.table.entry(key).or_default() += n;
        }
        for (kind, found) in other.disagreements {
            match self.disagreements.entry(kind) {
                Entry::Vacant(v) => {
                    v.insert(found);
                }
                Entry::Occupied(mut o) => {
                    o.get_mut().count += found.count;
                    o.get_mut().names.extend(found.names);
                }
            }
        }
    }

    fn disagree(&mut self, bytes: &[u8; 15], ours: &Instruction, what: &str) {
        let (kind, code) = what.split_once(';').unwrap_or((what, ""));
        // iced prints whole instructions; its name for the form is enough here.
        let code = code
            .split("code: ")
            .nth(1)
            .and_then(|c| c.split(',').next())
            .unwrap_or(code)
            .trim();
        // Register sets and lengths do not make kinds of their own.
        let kind: String = kind
            .chars()
            .map(|c| if c.is_ascii_digit() { '#' } else { c })
            .collect();
        let example = || format!("{:02x?}, ours {ours:?}", &bytes[..usize::from(ours.len)]);
        let entry = self.disagreements.entry(kind).or_insert_with(|| Disagreement {
            count: 0,
            example: example(),
            names: BTreeSet::new(),
        });
        entry.count += 1;
        if entry.names.len() < 40 && !entry.names.contains(code) {
            entry.names.insert(code.to_string());
        }
    }
}

/// How an encoding is accepted: which of the verifier's rules judges its operand.
fn operand_form(i: &Instruction) -> &'static str {
    match (i.memory, i.access) {
        (Memory::None, _) => "no access",
        (Memory::Confined, Access::Write) => "confined store",
        (Memory::Confined, _) => "confined load",
        (Memory::Held, Access::Write) => "store through r14",
        (Memory::Held, _) => "load through r14",
        (Memory::Rip, Access::Write) => "RIP store",
        (Memory::Rip, _) => "RIP load",
        (Memory::View, Access::Write) => "store behind the window: words mode only",
        (Memory::View, _) => "load behind the window: words mode only, and as unconfined ones",
        (Memory::Free, Access::Write) => "unconfined store: rule 1 refuses",
        (Memory::Free, _) => "unconfined load: integrity mode only",
    }
}

struct Worker {
    factory: InstructionInfoFactory,
    zydis: zydis::Zydis,
    capstone: capstone::Capstone,
    findings: Findings,
    /// Counts accepted encodings by iced's number of the form; names are looked up at the end.
    counts: BTreeMap<(u16, &'static str), (u64, [u8; 15])>,
}

impl Worker {
    fn new() -> Worker {
        Worker {
            factory: InstructionInfoFactory::new(),
            zydis: zydis::Zydis::new(),
            capstone: capstone::Capstone::new(),
            findings: Findings::default(),
            counts: BTreeMap::new(),
        }
    }

    fn check(&mut self, bytes: &[u8; 15]) {
        self.findings.tried += 1;
        let Ok(ours) = decode(bytes) else { return };
        self.findings.accepted += 1;
        for options in [DecoderOptions::NONE, DecoderOptions::AMD] {
            if let Err(what) = iced::disagreement(bytes, &ours, options, &mut self.factory) {
                self.findings.disagree(bytes, &ours, &what);
            }
        }
        if let Err(what) = self.zydis.disagreement(bytes, &ours) {
            self.findings.disagree(bytes, &ours, &what);
        }
        if self.findings.accepted.is_multiple_of(CAPSTONE_SHARE)
            && let Err(what) = self.capstone.disagreement(bytes, &ours)
        {
            self.findings.disagree(bytes, &ours, &what);
        }
        let code = iced_x86::Decoder::new(64, bytes, DecoderOptions::NONE)
            .decode()
            .code();
        self.counts
            .entry((code as u16, operand_form(&ours)))
            .or_insert((0, *bytes))
            .0 += 1;
    }

    fn finish(mut self) -> Findings {
        for ((_, form), (n, bytes)) in self.counts {
            let code = iced_x86::Decoder::new(64, &bytes, DecoderOptions::NONE)
                .decode()
                .code();
            *self
                .findings
                .table
                .entry((code.op_code().instruction_string().to_string(), form))
                .or_default() += n;
        }
        self.findings
    }
}

fn main() {
    let mut sample = 1;
    let mut table = None;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next();
        match (argument.as_str(), value) {
            ("--sample", Some(n)) if n.parse::<u64>().is_ok_and(|n| n > 0) => sample = n.parse().unwrap_or(1),
            ("--table", Some(path)) => table = Some(path),
            _ => {
                eprintln!("usage: ringfence-enumerate [--sample N] [--table FILE]");
                std::process::exit(2);
            }
        }
    }

    let heads = space::heads();
    let next = AtomicUsize::new(0);
    let tried = AtomicU64::new(0);
    let start = Instant::now();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut findings = Findings::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut worker = Worker::new();
                    loop {
                        let n = next.fetch_add(1, Ordering::Relaxed);
                        let Some(head) = heads.get(n) else { break };
                        let mut tail = space::Tail::new(n as u64 + 1);
                        // A large sample is taken of the heads as well: walking past encodings takes time too.
                        let (of_heads, sample) = if sample >= 100 {
                            (10, sample / 10)
                        } else {
                            (1, sample)
                        };
                        if !tail.next().is_multiple_of(of_heads) {
                            continue;
                        }
                        let before = worker.findings.tried;
                        space::encodings(head, sample, &mut tail, &mut |bytes| worker.check(bytes));
                        tried.fetch_add(worker.findings.tried - before, Ordering::Relaxed);
                    }
                    worker.finish()
                })
            })
            .collect();
        let mut shown = Instant::now();
        while next.load(Ordering::Relaxed) < heads.len() {
            std::thread::sleep(Duration::from_millis(50));
            if shown.elapsed() > Duration::from_secs(30) {
                shown = Instant::now();
                let done = next.load(Ordering::Relaxed).min(heads.len());
                let last = heads
                    .get(done.saturating_sub(1))
                    .map(space::Head::as_slice)
                    .unwrap_or_default();
                eprintln!(
                    "{done} of {} heads (at {last:02x?}), {} encodings",
                    heads.len(),
                    tried.load(Ordering::Relaxed)
                );
            }
        }
        for worker in workers {
            if let Ok(found) = worker.join() {
                findings.merge(found);
            }
        }
    });

    if let Some(path) = table {
        let mut text = String::from("encodings  operand                               form\n");
        for ((form, operand), n) in &findings.table {
            text.push_str(&format!("{n:>9}  {operand:<36}  {form}\n"));
        }
        if let Err(e) = std::fs::write(&path, text) {
            eprintln!("cannot write {path}: {e}");
            std::process::exit(2);
        }
    }
    let mut unexplained = 0;
    for (kind, d) in &findings.disagreements {
        let names = d.names.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let known = KNOWN.iter().find(|(known, _, _)| kind == known);
        match known.filter(|(_, of, _)| d.names.iter().all(|n| of.contains(&n.as_str()))) {
            Some((_, _, why)) => println!("known: {kind}: {} encodings of {names}. {why}", d.count),
            None => {
                unexplained += 1;
                println!(
                    "DISAGREEMENT {kind}: {} encodings of {names}\n    such as {}",
                    d.count, d.example
                );
            }
        }
    }
    println!(
        "{} encodings tried, {} accepted ({} forms) in {:.0} s; {unexplained} kinds of unexplained disagreement",
        findings.tried,
        findings.accepted,
        findings.table.len(),
        start.elapsed().as_secs_f64()
    );
    if unexplained > 0 || findings.accepted == 0 {
        std::process::exit(1);
    }
}
