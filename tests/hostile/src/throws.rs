//! Bent tables of C++: a module that throws in every way is changed in its unwind tables, its tables of handlers and types and its
//! relocations, and then throws. The tables are read by code inside the fence; what it asks of the gates is what they say.

use crate::adapter::{self, DomainOptions, End, Module};
use crate::bounds::{self, Kept, Memory};
use crate::case::{Case, Op, Shape};
use crate::figures::Figures;
use crate::files::Wrong;
use ringfence_driver::args::Front;
use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

const ANY: (u64, u64) = (0, u64::MAX);
/// A place in a section, taken modulo its size: small ones are the module's own, larger ones the library's.
const PLACE: (u64, u64) = (0, 1 << 16);
const SECTION: (u64, u64) = (0, SECTIONS.len() as u64 - 1);

/// What is bent.
const SECTIONS: &[&str] = &[
    ".gcc_except_table",
    ".eh_frame",
    ".eh_frame_hdr",
    ".rodata",
    ".rela.dyn",
    ".data",
];

/// What there is.
pub const SHAPES: &[Shape] = &[
    // Some bytes are others: section, place, how many, value.
    Shape {
        name: "byte",
        numbers: &[SECTION, PLACE, (1, 8), ANY],
    },
    // Many bytes are the same: section, place, how many, value.
    Shape {
        name: "fill",
        numbers: &[SECTION, PLACE, (0, 1 << 16), (0, 255)],
    },
    // Bytes stand at another place as well: section, from, to, how many.
    Shape {
        name: "copy",
        numbers: &[SECTION, PLACE, PLACE, (0, 4096)],
    },
    // A number whose encoding does not end for so long: section, place, how many bytes.
    Shape {
        name: "long",
        numbers: &[SECTION, PLACE, (1, 4096)],
    },
    // A word of the type tables is that of another one: which, and which other.
    Shape {
        name: "type",
        numbers: &[PLACE, PLACE],
    },
    // What is thrown and how it is caught, and how deep.
    Shape {
        name: "throw",
        numbers: &[(0, 47), (0, 2000)],
    },
    // The time limit, in milliseconds.
    Shape {
        name: "limit",
        numbers: &[(1, 50)],
    },
];

const SOURCE: &str = include_str!("../modules/throws.cc");

/// The memory that the domain may have besides a thread's stacks, which count as they are reserved.
const MEMORY: u64 = 8 << 20;

/// The module as the compiler made it, once in a process.
fn whole() -> Result<&'static [u8], String> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| {
        let place = std::env::temp_dir().join(format!("ringfence-throws-{}", std::process::id()));
        let (source, out) = (place.with_extension("cc"), place.with_extension("rf"));
        std::fs::write(&source, SOURCE).map_err(|e| e.to_string())?;
        let sysroot = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../build/sysroot");
        let mut args: Vec<std::ffi::OsString> = Vec::new();
        args.push(format!("--sysroot-rf={}", sysroot.display()).into());
        args.extend(["-std=c++14", "-O2", "-shared", "-Wno-deprecated", "-o"].map(Into::into));
        args.extend([out.clone().into(), source.clone().into()]);
        let status = ringfence_driver::cc(Front::Cxx, args);
        let bytes = std::fs::read(&out);
        let _ = std::fs::remove_file(&source);
        let _ = std::fs::remove_file(&out);
        match status {
            0 => bytes.map_err(|e| e.to_string()),
            status => Err(format!("ringfence c++ ended with {status}; is there a sysroot?")),
        }
    });
    bytes.as_deref().map_err(Clone::clone)
}

/// Where a section is in the file.
fn section(file: &[u8], name: &str) -> Option<Range<usize>> {
    let number = |at: usize, len: usize| -> Option<usize> {
        let mut word = [0; 8];
        word[..len].copy_from_slice(file.get(at..at + len)?);
        usize::try_from(u64::from_le_bytes(word)).ok()
    };
    let (table, count, names) = (number(40, 8)?, number(60, 2)?, number(62, 2)?);
    let header = |i: usize| table + 64 * i;
    let strings = number(header(names) + 24, 8)?;
    (0..count).find_map(|i| {
        let text = file.get(strings + number(header(i), 4)?..)?;
        let at = number(header(i) + 24, 8)?;
        let found = text.starts_with(name.as_bytes()) && text.get(name.len()) == Some(&0);
        found.then_some(at..at + number(header(i) + 32, 8)?)
    })
}

fn bend(file: &mut [u8], op: &Op) {
    let name = match op.name.as_str() {
        "type" => ".rela.dyn",
        "byte" | "fill" | "copy" | "long" => SECTIONS[op.n(0) as usize % SECTIONS.len()],
        _ => return,
    };
    let Some(bytes) = section(file, name).and_then(|range| file.get_mut(range)) else {
        return;
    };
    let size = bytes.len().max(1);
    let place = |n: usize| op.n(n) as usize % size;
    let end = |at: usize, len: u64| (at + len as usize).min(size);
    match op.name.as_str() {
        "byte" => {
            let value = op.n(3).to_le_bytes();
            let part = &mut bytes[place(1)..end(place(1), op.n(2).min(8))];
            part.copy_from_slice(&value[..part.len()]);
        }
        "fill" => bytes[place(1)..end(place(1), op.n(2))].fill(op.n(3) as u8),
        "copy" => {
            let (from, to) = (place(1), place(2));
            let len = (op.n(3) as usize).min(size - from.max(to));
            bytes.copy_within(from..from + len, to);
        }
        "long" => bytes[place(1)..end(place(1), op.n(2))].fill(0xFF),
        _ => {
            // The addend of a relocation: what a pointer to a type, or in a type, points to.
            let count = (size / 24).max(1);
            let addend = |n: usize| op.n(n) as usize % count * 24 + 16;
            let from = addend(1);
            bytes.copy_within(from..from + 8, addend(0));
        }
    }
}

/// Bends the module, and throws.
///
/// # Errors
/// Which bound did not hold.
pub fn run(case: &Case) -> Result<String, String> {
    let mut file = whole()?.to_vec();
    case.ops.iter().for_each(|op| bend(&mut file, op));
    let mut last = String::new();
    for round in 0..bounds::TRIES {
        let before = Kept::now();
        let mut figures = Figures::default();
        let told = bounds::on_small_stack(|| once(&file, case, &mut figures));
        let mut after = Kept::now();
        if let Ok(told) = &told {
            after.heap -= told.capacity() as i64;
        }
        let leaked = after.leaked(&before).filter(|_| round > 0);
        match (told, leaked) {
            (Ok(told), None) if round > 0 => return Ok(format!("{told}; {figures}")),
            (Ok(_), None) => {}
            (Ok(_), Some(leaked)) => last = leaked,
            (Err(Wrong::Slow(why)), _) => last = why,
            (Err(Wrong::Bad(why)), _) => return Err(why),
        }
    }
    Err(last)
}

fn once(file: &[u8], case: &Case, figures: &mut Figures) -> Result<String, Wrong> {
    let module = match adapter::load(file) {
        Ok(module) => module,
        Err(e) => return Ok(format!("refused: {e}")),
    };
    let of = |name: &'static str| case.ops.iter().filter(move |op| op.name == name);
    let mut options = DomainOptions::default();
    let limit = Duration::from_millis(of("limit").next_back().map_or(20, |op| op.n(0).clamp(1, 50)));
    options.time_limit = Some(limit);
    let stacks = u64::from(options.data_stack) + u64::from(options.control_stack) + (64 << 10);
    options.memory_limit = MEMORY + stacks;
    let domain = match module.domain(&options) {
        Ok(domain) => domain,
        Err(e) => return Ok(format!("no domain: {e}")),
    };
    // What is thrown if the case says nothing: everything, caught in the first way, and some in the others.
    let usual = [0, 1, 2, 3, 4, 5, 6, 7, 9, 17, 25, 34, 41].map(|kind| (kind, 5));
    let mut throws: Vec<(u64, u64)> = of("throw").map(|op| (op.n(0), op.n(1))).collect();
    if throws.is_empty() {
        throws = usual.to_vec();
    }
    let memory = Memory::begin();
    let (mut returned, mut faults, mut reports) = (0, 0, 0);
    for (kind, depth) in throws {
        let (end, took) = domain.call_timed("start", kind, depth);
        figures.time("call_us", took);
        let most = (limit + bounds::BEYOND) * bounds::NOISE;
        if took > most {
            return Err(Wrong::Slow(format!(
                "a throw with a limit of {limit:?} took {took:?}, {most:?} are allowed"
            )));
        }
        match end {
            End::Returned(_) => returned += 1,
            End::Error(_) => reports += 1,
            End::Fault(fault) => {
                faults += 1;
                let begin = bounds::processor();
                adapter::report(&fault)?;
                let took = bounds::processor() - begin;
                figures.time("report_us", took);
                if took > bounds::REPORT * bounds::NOISE {
                    return Err(Wrong::Slow(format!("a report took {took:?}")));
                }
            }
        }
        // Constructors run again, and have the limit.
        if let Err(e) = domain.0.reset() {
            return Ok(format!("no reset: {e}"));
        }
    }
    let (heap, resident) = memory.most();
    figures.note("heap", heap);
    figures.note("resident", resident);
    let most = bounds::memory(file.len() as u64) + options.memory_limit;
    if heap > most || resident > most {
        return Err(Wrong::Bad(format!(
            "throws took {heap} bytes of heap, {resident} of the system; {most} are allowed"
        )));
    }
    // Whoever is beside it has noticed nothing.
    neighbour()?;
    let word = |n: i32, word| if n > 0 { word } else { "" };
    Ok(format!(
        "{}{}{}{}",
        if returned + faults > 0 {
            "thrown"
        } else {
            "not thrown"
        },
        word(returned, ", returned"),
        word(faults, ", faults"),
        word(reports, ", errors")
    ))
}

/// A module with whole tables throws and catches as ever.
fn neighbour() -> Result<(), Wrong> {
    static WHOLE: OnceLock<Option<Module>> = OnceLock::new();
    let module = WHOLE.get_or_init(|| adapter::load(whole().ok()?).ok());
    let module = module
        .as_ref()
        .ok_or_else(|| "the module itself does not load".to_owned())?;
    let domain = module.domain(&DomainOptions::default())?;
    match domain.call("start", 0, 7) {
        // Three times 17, and the number of destructors is odd.
        End::Returned(52) => Ok(()),
        End::Returned(other) => Err(Wrong::Bad(format!("a neighbour caught {other}"))),
        End::Fault(fault) => Err(Wrong::Bad(format!("a neighbour: {fault}"))),
        End::Error(e) => Err(Wrong::Bad(format!("a neighbour: {e}"))),
    }
}
