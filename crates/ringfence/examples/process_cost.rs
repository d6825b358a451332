//! What a call costs in a process of its own, next to a plain process behind shared memory and a futex, paired in one run:
//!     cargo build --release --workspace && cargo run --release -p ringfence --example process_cost -- MODULE.rf
//! The module exports `nothing`. With one processor both sleep and wake each other; with two, the domain's process looks for its
//! turn on the other one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use ringfence::{Backend, Domain, DomainOptions, Imports, Module};

const CALLS: u32 = 20_000;
const ROUNDS: usize = 15;

/// Has a thread, or all threads of a process, run on one processor only.
fn pin(pid: i32, processor: usize) {
    // SAFETY: a set of ours, for processes of ours.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(pid, size_of::<libc::cpu_set_t>(), &raw const set);
    }
}

/// Threads of the workers that this process has started.
fn worker_threads() -> Vec<i32> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|&b| b == 0);
        if !words.next().is_some_and(|w| w.ends_with(b"ringfence-worker"))
            || words.next() != Some(me.as_bytes())
        {
            continue;
        }
        let tasks = std::fs::read_dir(entry.path().join("task"))
            .into_iter()
            .flatten()
            .flatten();
        found.extend(tasks.filter_map(|t| t.file_name().to_str()?.parse::<i32>().ok()));
    }
    found
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // SAFETY: a word that is mapped for ever.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, 0) };
}

/// A process that answers each request with a word.
fn plain() -> (&'static [AtomicU32; 2], i32) {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new page, zeroed; the child only serves until it is killed.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0);
        assert_ne!(at, libc::MAP_FAILED);
        let words = &*at.cast::<[AtomicU32; 2]>();
        match libc::fork() {
            0 => {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                loop {
                    while words[0].swap(0, Ordering::AcqRel) == 0 {
                        futex(&words[0], libc::FUTEX_WAIT, 0);
                    }
                    words[1].store(1, Ordering::Release);
                    futex(&words[1], libc::FUTEX_WAKE, 1);
                }
            }
            pid => (words, pid),
        }
    }
}

fn ask(words: &[AtomicU32; 2]) {
    words[0].store(1, Ordering::Release);
    futex(&words[0], libc::FUTEX_WAKE, 1);
    while words[1].swap(0, Ordering::AcqRel) == 0 {
        futex(&words[1], libc::FUTEX_WAIT, 0);
    }
}

/// Nanoseconds of one.
fn time(mut f: impl FnMut()) -> f64 {
    let begin = Instant::now();
    for _ in 0..CALLS {
        f();
    }
    begin.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

fn median(mut list: Vec<f64>) -> f64 {
    list.sort_by(f64::total_cmp);
    list[list.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("process_cost MODULE.rf")?;
    let module = Module::open(path)?;
    let mut options = DomainOptions::default();
    options.backend = Backend::Process;
    let make = || {
        let mut imports = Imports::new();
        for import in module.imports() {
            imports = imports.dynamic(&import.name, |_| Ok(()));
        }
        Domain::instantiate(std::slice::from_ref(&module), imports, &options)
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    if processors > 1 {
        let domain = make()?;
        let nothing = domain.func::<(), ()>("nothing")?;
        nothing.call()?;
        pin(0, 0);
        worker_threads().into_iter().for_each(|t| pin(t, 1));
        let rounds = (0..ROUNDS).map(|_| time(|| drop(nothing.call()))).collect();
        println!("process, spinning on another processor: {:.0} ns", median(rounds));
    }
    pin(0, 0);
    // Made while there is one processor: nobody looks, all sleep.
    let domain = make()?;
    let nothing = domain.func::<(), ()>("nothing")?;
    nothing.call()?;
    worker_threads().into_iter().for_each(|t| pin(t, 0));
    let (words, pid) = plain();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        ours.push(time(|| drop(nothing.call())));
        theirs.push(time(|| ask(words)));
    }
    let ratios = ours.iter().zip(&theirs).map(|(a, b)| a / b).collect();
    println!("process, sleeping on the same processor: {:.0} ns", median(ours));
    println!(
        "a plain process, likewise: {:.0} ns; ratio {:.2}",
        median(theirs),
        median(ratios)
    );
    // SAFETY: our own child.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    Ok(())
}
