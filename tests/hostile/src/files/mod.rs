//! Hostile files: made whole from a description, loaded, made a domain, called, and their faults reported.

pub mod dwarf;
pub mod elf;
pub mod tables;
pub mod tools;

use crate::adapter::{self, DomainOptions, End, Module};
use crate::bounds::{self, Kept, Memory};
use crate::case::{Case, Shape};
use crate::figures::Figures;
use elf::Spec;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::Duration;

const ANY: (u64, u64) = (0, u64::MAX);
const SMALL: (u64, u64) = (0, 1 << 16);
const LARGE: (u64, u64) = (0, 2 << 20);
const VERSION: (u64, u64) = (2, 5);

macro_rules! shapes {
    ($($name:literal $($range:expr),*;)*) => { &[$(Shape { name: $name, numbers: &[$($range),*] }),*] };
}

/// What there is, with the meaning of the numbers where they are applied.
pub const SHAPES: &[Shape] = shapes! {
    "inlined" LARGE, (0, 1), VERSION;
    "ranges" LARGE, LARGE, VERSION;
    "units" LARGE, SMALL, (0, 10_000);
    "forms" ANY, SMALL;
    "origins" SMALL, (0, 3);
    "strings" LARGE, LARGE;
    "siblings" LARGE, (0, 4);
    "lengths" LARGE, (0, 0xFFFF_FFFF);
    "rows" LARGE, LARGE, VERSION;
    "sources" ANY, (0, 255), VERSION;
    "noise" (0, 15), LARGE, SMALL;
    "name" (0, 16), LARGE;
    "symbols" LARGE, LARGE, (0, 35);
    "symtab" LARGE, LARGE, (0, 7);
    "relocations" LARGE, (0, 34);
    "constructors" (0, 100_000), (0, 4);
    "destructors" (0, 100_000), (0, 4);
    "notes" (0, 2000), (0, 4);
    "segments" (0, 400), (0, 4);
    "segment" (0, 7), (0, 7), LARGE, ANY, LARGE, ANY, ANY;
    "sections" (0, 65_000), (0, 5);
    "zeroes" (0, 1 << 33);
    "data" (0, 16 << 20);
    "dynamic" (0, 40), ANY, (0, 100_000);
    "code" (0, 8 << 20), (0, 12);
    "labels" LARGE, (0, 1);
    "sparse" (0, 64 << 20);
    "truncate" LARGE;
    "byte" LARGE, (1, 8), ANY;
    "head" SMALL, (1, 8), ANY;
    "heading" SMALL, (1, 8), ANY;
    "table" SMALL, (1, 8), ANY;
    "instruction" SMALL, (1, 8), ANY;
};

/// Largest file that is made: what takes longer than a second is of no use to a machine that hunts.
const LARGEST: usize = 32 << 20;

/// Makes the file of a case.
#[must_use]
pub fn spec(case: &Case) -> Spec {
    let mut spec = Spec::default();
    for op in &case.ops {
        let _ = dwarf::apply(&mut spec, op) || tables::apply(&mut spec, op);
    }
    spec
}

/// How long each call, the constructors and the destructors may take.
const LIMIT: Duration = Duration::from_millis(20);

/// Loads, makes, calls, reports and ends, all measured. What became of it.
///
/// # Errors
/// Which bound did not hold.
pub fn run(case: &Case) -> Result<String, String> {
    tried(case, 2)
}

/// The same, as often as it takes for the least of each time.
///
/// # Errors
/// Which bound did not hold.
pub fn measure(case: &Case) -> Result<String, String> {
    tried(case, bounds::TRIES)
}

/// At least so many tries, two or more, of which the last holds the bounds.
fn tried(case: &Case, wanted: u32) -> Result<String, String> {
    let spec = spec(case);
    let bytes = spec.bytes();
    if bytes.len() > LARGEST {
        return Ok("too large to be tried".into());
    }
    let len = spec.whole(&bytes);
    let file = (len > bytes.len() as u64)
        .then(|| sparse(&bytes, len))
        .transpose()?;
    drop(spec);
    bounds::on_small_stack(|| tools::hold(&bytes))?;
    let mut last = String::new();
    let mut figures = Figures::default();
    for round in 0..bounds::TRIES + wanted - 2 {
        let before = Kept::now();
        let mut measured = Figures::default();
        measured.note("bytes", len);
        let told = bounds::on_small_stack(|| once(&bytes, file.as_ref(), len, &mut measured));
        figures.least(&measured);
        let mut after = Kept::now();
        if let Ok(told) = &told {
            after.heap -= told.capacity() as i64;
        }
        // The first round makes what stays: windows, the watchdog, tables of the process.
        let leaked = after.leaked(&before).filter(|_| round > 0);
        match (told, leaked) {
            (Ok(told), None) if round + 1 >= wanted => return Ok(format!("{told}; {figures}")),
            (Ok(_), None) => {}
            (Ok(_), Some(leaked)) => last = leaked,
            (Err(Wrong::Slow(why)), _) => last = why,
            (Err(Wrong::Bad(why)), _) => return Err(why),
        }
    }
    Err(last)
}

/// What is wrong for good, and what may be somebody else's fault once.
pub enum Wrong {
    /// A bound of time.
    Slow(String),
    /// Anything else.
    Bad(String),
}

impl From<String> for Wrong {
    fn from(why: String) -> Wrong {
        Wrong::Bad(why)
    }
}

/// A file with a hole at its end, that goes with its descriptor.
fn sparse(bytes: &[u8], len: u64) -> Result<std::fs::File, String> {
    // SAFETY: the name is a C string; the descriptor is ours.
    let mut file = unsafe {
        let fd = libc::memfd_create(c"hostile".as_ptr(), 0);
        if fd < 0 {
            return Err("no memory file".into());
        }
        std::fs::File::from_raw_fd(fd)
    };
    file.write_all(bytes)
        .and_then(|()| file.set_len(len))
        .map_err(|e| format!("no sparse file: {e}"))?;
    Ok(file)
}

fn once(
    bytes: &[u8],
    file: Option<&std::fs::File>,
    len: u64,
    figures: &mut Figures,
) -> Result<String, Wrong> {
    let memory = Memory::begin();
    let fits = |what: &str, figures: &mut Figures| {
        let (heap, resident) = memory.most();
        figures.note("heap", heap);
        figures.note("resident", resident);
        let limit = bounds::memory(len);
        match heap <= limit && resident <= limit {
            true => Ok(()),
            false => Err(Wrong::Bad(format!(
                "{what} a file of {len} bytes took {heap} bytes of heap, {resident} bytes of the system; {limit} are allowed"
            ))),
        }
    };
    let begin = bounds::processor();
    let loaded = match file {
        Some(file) => adapter::open(format!("/proc/self/fd/{}", file.as_raw_fd()).as_ref()),
        None => adapter::load(bytes),
    };
    let took = bounds::processor() - begin;
    figures.time("load_us", took);
    fits("loading", figures)?;
    let limit = bounds::loading(len) * bounds::NOISE;
    if took > limit {
        let why = format!("loading a file of {len} bytes took {took:?}, {limit:?} are allowed");
        return Err(Wrong::Slow(why));
    }
    let module = match loaded {
        Ok(module) => module,
        Err(e) => return Ok(format!("refused: {e}")),
    };
    let told = called(&module, len, figures)?;
    fits("loading and reporting", figures)?;
    Ok(told)
}

/// Time that making or ending a domain may take, within which constructors or destructors have their limit.
fn within_limit(what: &str, len: u64, took: Duration) -> Result<(), Wrong> {
    let limit = LIMIT + bounds::BEYOND + bounds::loading(len) * bounds::NOISE;
    match took > limit {
        true => Err(Wrong::Slow(format!(
            "{what} a domain took {took:?}, {limit:?} are allowed"
        ))),
        false => Ok(()),
    }
}

fn called(module: &Module, len: u64, figures: &mut Figures) -> Result<String, Wrong> {
    let mut options = DomainOptions::default();
    options.time_limit = Some(LIMIT);
    options.memory_limit = 16 << 30;
    let begin = bounds::processor();
    let made = module.domain(&options);
    let took = bounds::processor() - begin;
    figures.time("make_us", took);
    within_limit("making", len, took)?;
    let domain = match made {
        Ok(domain) => domain,
        Err(e) => return Ok(format!("no domain: {e}")),
    };
    let mut told = String::from("loaded");
    for name in module.functions(3) {
        for depth in [0, 100] {
            let (end, took) = domain.call_timed(&name, depth, 0);
            figures.time("call_us", took);
            if took > (LIMIT + bounds::BEYOND) * bounds::NOISE {
                return Err(Wrong::Slow(format!(
                    "a call with a limit of {LIMIT:?} took {took:?}"
                )));
            }
            if let End::Fault(fault) = end {
                let begin = bounds::processor();
                let (frames, cut) = adapter::report(&fault)?;
                let took = bounds::processor() - begin;
                figures.time("report_us", took);
                if took > bounds::REPORT * bounds::NOISE {
                    let why = format!("a report took {took:?}, {:?} are allowed", bounds::REPORT);
                    return Err(Wrong::Slow(why));
                }
                told += &format!(", {frames} frames{}", if cut { " (cut)" } else { "" });
            }
            if let Err(e) = domain.0.reset() {
                return Ok(format!("{told}, no reset: {e}"));
            }
        }
    }
    let begin = bounds::processor();
    let ended = domain.0.run_destructors();
    let took = bounds::processor() - begin;
    figures.time("end_us", took);
    within_limit("ending", len, took)?;
    Ok(match ended {
        Ok(()) => told,
        Err(e) => format!("{told}, not ended: {e}"),
    })
}
