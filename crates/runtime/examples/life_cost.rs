//! What it costs to make a domain, and to reset it by how many pages were written: medians, in microseconds, of rounds in turn.
//!
//! `life_cost MODULE.rf [ROUNDS]`, the module being `bench/modules/calls.c` built with
//! `ringfence cc -O2 --import=host_add -o MODULE.rf calls.c`. *Faults between*: the program has a page fault of its own before each reset.

use ringfence_runtime::{Call, Domain, DomainOptions, Imports, LoadOptions, Module, Signature};
use std::ffi::c_void;
use std::time::Instant;

const ADD: Signature = Signature {
    ints: 2,
    int_results: 1,
    ..Signature::NOTHING
};

extern "C" fn host_add(a: i64, b: i64) -> i64 {
    a.wrapping_add(b)
}

/// A page fault.
fn fault() {
    let (len, rights) = (4096, libc::PROT_READ | libc::PROT_WRITE);
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh page, which goes at once.
    unsafe {
        let page = libc::mmap(std::ptr::null_mut(), len, rights, kind, -1, 0);
        assert_ne!(page, libc::MAP_FAILED);
        page.cast::<u8>().write_volatile(1);
        libc::munmap(page, len);
    }
}

type Way = (&'static str, Domain, fn(&Domain), bool);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().expect("life_cost MODULE.rf [ROUNDS]");
    let rounds: usize = arguments.next().map_or(2_000, |n| n.parse().expect("a number"));
    let module = Module::open(path, &LoadOptions::default()).expect("module");
    let domain = |heap: u64| {
        // SAFETY: host_add is sound for all arguments.
        let imports = unsafe { Imports::new().plain("host_add", host_add as *const c_void, ADD) };
        let made = Domain::new(std::slice::from_ref(&module), imports, &DomainOptions::default());
        let domain = made.expect("domain");
        if heap > 0 {
            let at = domain.as_ref().alloc(heap, 16).expect("heap");
            domain.as_ref().write(at, &vec![1; heap as usize]).expect("write");
            domain.checkpoint().expect("checkpoint");
        }
        domain
    };
    let reset = |d: &Domain| d.reset().expect("reset");
    let recycle = |d: &Domain| d.recycle().expect("recycle");
    let ways: [Way; 5] = [
        ("reset", domain(0), reset, false),
        ("reset, faults between", domain(0), reset, true),
        (
            "reset to a checkpoint with 64 KiB of heap",
            domain(64 << 10),
            reset,
            false,
        ),
        ("the same, faults between", domain(64 << 10), reset, true),
        ("recycled for a pool", domain(0), recycle, false),
    ];
    let counts = [0, 1, 4, 16];
    let mut times = vec![Vec::new(); ways.len() * counts.len()];
    for _ in 0..rounds / 20 {
        for (n, (_, domain, restore, faults)) in ways.iter().enumerate() {
            let dirty = domain.entry("dirty").expect("entry");
            for (k, &pages) in counts.iter().enumerate() {
                for turn in 0..21 {
                    dirty.call(&mut Call::ints(&[pages])).expect("call");
                    if *faults {
                        fault();
                    }
                    let start = Instant::now();
                    restore(domain);
                    let took = start.elapsed().as_secs_f64() * 1e6;
                    // The first finds another domain's state in the caches.
                    if turn > 0 {
                        times[n * counts.len() + k].push(took);
                    }
                }
            }
        }
    }
    let mut made = [Vec::new(), Vec::new()];
    for turn in 0..rounds {
        // Twenty with one header, then twenty whose headers differ, by the number of processors.
        let differ = turn / 20 % 2;
        let mut options = DomainOptions::default();
        options.processors = 1 + (turn * differ % 2) as u32;
        // SAFETY: as above.
        let imports = unsafe { Imports::new().plain("host_add", host_add as *const c_void, ADD) };
        let start = Instant::now();
        let domain = Domain::new(std::slice::from_ref(&module), imports, &options).expect("domain");
        made[differ].push(start.elapsed().as_secs_f64() * 1e6);
        drop(domain);
    }
    for (all, name) in made
        .iter_mut()
        .zip(["made", "made, the window's last domain had another header"])
    {
        all.sort_by(f64::total_cmp);
        println!("{name:50} {:6.2} µs", all[all.len() / 2]);
    }
    println!("{:44} {counts:?} pages", "µs");
    for (row, (name, ..)) in times.chunks_mut(counts.len()).zip(&ways) {
        print!("{name:44}");
        for all in row {
            all.sort_by(f64::total_cmp);
            print!(" {:6.2}", all[all.len() / 2]);
        }
        println!();
    }
}
