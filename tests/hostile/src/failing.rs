//! Allocations that fail: the first, the second, and so on, of each operation, once or for good. Wanted are typed errors or success,
//! nothing left behind, and never the end of the process.

use crate::adapter::{self, Domain, DomainOptions, End, Module};
use crate::bounds::Kept;
use crate::case::{Case, Shape};
use crate::{files, meter};
use ringfence::{Pool, Region, Rights, Snapshot};
use std::time::Duration;

/// What there is: which operation, and whether all allocations behind the one fail as well; in a process that has done all of it
/// before, or that has done nothing.
pub const SHAPES: &[Shape] = &[
    Shape {
        name: "warm",
        numbers: &[(0, 10), (0, 1)],
    },
    Shape {
        name: "fresh",
        numbers: &[(0, 10), (0, 1)],
    },
];

/// More places than any of the operations has.
const PLACES: u64 = 10_000;

/// A debugged module that can be called, and faults.
const FILE: &str = "inlined 5 1 4; rows 100 50 5; data 5000; relocations 20 0";

/// Tries every place.
///
/// # Errors
/// The places at which the process ended, or something was left behind.
pub fn run(case: &Case) -> Result<String, String> {
    let Some(op) = case.ops.first() else {
        return Ok(String::new());
    };
    let file = Case::parse(FILE, files::SHAPES)?;
    let bytes = files::spec(&file).bytes();
    let (operation, sticky, warm) = (op.n(0), op.n(1) != 0, op.name == "warm");
    let mut wrong = Vec::new();
    let (mut errors, mut fine) = (0, 0);
    for n in 1..=PLACES {
        match in_child(|| place(&bytes, operation, n, sticky, warm)) {
            Some(0) => {
                return match wrong.is_empty() {
                    true => Ok(format!(
                        "every place was tried; places={} errors={errors} successes={fine}",
                        n - 1
                    )),
                    false => Err(format!(
                        "of {n} places {} are wrong: {}",
                        wrong.len(),
                        wrong[..wrong.len().min(8)].join(", ")
                    )),
                };
            }
            Some(1) => errors += 1,
            Some(2) => fine += 1,
            Some(3) => wrong.push(format!("{n} (left behind)")),
            Some(end) => wrong.push(format!("{n} (ended with {end})")),
            None => wrong.push(format!("{n} (aborted)")),
        }
    }
    Err(format!("more than {PLACES} places"))
}

/// Does `work` in a forked child, and gives what it returns; `None` if a signal ended it.
fn in_child(work: impl FnOnce() -> i32) -> Option<i32> {
    // SAFETY: this process has one thread; the child does not come back.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::_exit(work());
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status))
    }
}

/// 0: nothing failed; 1: a typed error; 2: success all the same; 3: something was left behind.
fn place(bytes: &[u8], operation: u64, n: u64, sticky: bool, warm: bool) -> i32 {
    // With all that an operation needs before it.
    let ready = warm.then(|| Ready::new(bytes));
    let fail = || {
        meter::arm(n, sticky);
        let done = perform(bytes, ready.as_ref(), operation);
        let failed = meter::disarm();
        let error = done.err().map(|e| e.to_string());
        (failed, error.is_some())
    };
    let (failed, refused) = fail();
    if failed == 0 {
        return 0;
    }
    if warm {
        // What a first time makes, stays; so does what comes to lie elsewhere because of the failure. A second time adds nothing.
        let mut kept = Vec::with_capacity(3);
        for _ in 0..3 {
            let _ = fail();
            let _ = perform(bytes, ready.as_ref(), operation);
            kept.push(Kept::now());
        }
        if kept[2].leaked(&kept[1]).is_some() {
            // The kernel lists a thread for a moment after whoever waited for it goes on.
            std::thread::sleep(Duration::from_millis(50));
            kept[2] = Kept::now();
        }
        if let Some(leaked) = kept[2].leaked(&kept[1]) {
            eprintln!("operation {operation}, place {n}: {leaked}");
            return 3;
        }
    }
    if refused { 1 } else { 2 }
}

struct Ready {
    module: Module,
    domain: Domain,
}

fn options() -> DomainOptions {
    let mut options = DomainOptions::default();
    options.extensible = true;
    options.data_stack = 64 << 10;
    options
}

impl Ready {
    fn new(bytes: &[u8]) -> Ready {
        let module = adapter::load(bytes).expect("the module");
        let domain = module.domain(&options()).expect("a domain");
        let _ = domain.call("sum", 2, 3);
        Ready { module, domain }
    }
}

/// One operation, or all of them.
fn perform(bytes: &[u8], ready: Option<&Ready>, operation: u64) -> Result<(), ringfence::Error> {
    let made;
    let (module, domain) = match ready {
        Some(ready) if operation > 0 => (&ready.module.0, &ready.domain),
        _ => {
            let module =
                ringfence::Module::from_bytes("memory.rf", bytes, &ringfence::LoadOptions::default())?;
            if operation == 0 {
                return Ok(());
            }
            let domain = ringfence::Domain::instantiate(
                std::slice::from_ref(&module),
                ringfence::Imports::new(),
                &options(),
            )?;
            made = (module, Domain(domain));
            (&made.0, &made.1)
        }
    };
    let all = [1, 2, 3, 4, 5, 6, 7, 8, 9];
    let some = if operation < 10 {
        &all[operation as usize - 1..operation as usize]
    } else {
        &all
    };
    for &operation in some {
        one(module, domain, operation)?;
    }
    Ok(())
}

fn one(module: &ringfence::Module, domain: &Domain, operation: u64) -> Result<(), ringfence::Error> {
    let modules = std::slice::from_ref(module);
    match operation {
        1 => {
            let made = ringfence::Domain::instantiate(modules, ringfence::Imports::new(), &options())?;
            made.run_destructors()?;
        }
        2 => {
            let two = [module.clone(), module.clone()];
            ringfence::Domain::instantiate(&two, ringfence::Imports::new(), &options())?;
        }
        3 => {
            if domain.0.add_module("more", module).is_ok() {
                let _ = domain.0.remove_module("more");
            }
        }
        4 => {
            // From a thread that has never called, if there can be one.
            std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, || domain.call("sum", 2, 3));
                let _ = thread.map(|thread| thread.join());
            });
        }
        5 => {
            if let End::Fault(fault) = domain.call("deep", 20, 0) {
                let _ = fault.backtrace();
                let _ = fault.cut();
            }
            domain.0.reset()?;
        }
        6 => domain.0.reset()?,
        7 => {
            domain.0.checkpoint()?;
            domain.0.reset()?;
        }
        8 => {
            let region = Region::new(8192)?;
            region.give(&domain.0, Rights::Write)?;
            region.give(&domain.0, Rights::None)?;
        }
        _ => {
            let module = module.clone();
            let make = move || {
                let modules = std::slice::from_ref(&module);
                ringfence::Domain::instantiate(modules, ringfence::Imports::new(), &options())
            };
            let snapshot = Snapshot::new(&make, |_| Ok::<(), ringfence::Error>(()))?;
            drop(snapshot.instantiate(ringfence::Imports::new())?);
            let pool = Pool::new(2, make);
            drop(pool.take()?);
            drop(pool.take()?);
        }
    }
    Ok(())
}
