//! Allocations that fail: the first, the second, and so on, of each operation, once or for good. Wanted are typed errors or success,
//! nothing left behind, and never the end of the process.

mod guests;
mod work;

use crate::bounds::Kept;
use crate::case::{Case, Op, Shape};
use crate::{files, meter};
use std::time::Duration;
use work::{Ready, perform};

/// Which operation, and whether all allocations behind the one fail as well.
const OPERATION: &[(u64, u64)] = &[(0, work::LAST), (0, 1)];

/// In a process that has done all of it before, or that has done nothing.
const OWN: [Shape; 2] = [
    Shape {
        name: "warm",
        numbers: OPERATION,
    },
    Shape {
        name: "fresh",
        numbers: OPERATION,
    },
];

const COUNT: usize = OWN.len() + files::SHAPES.len();

/// One operation, on a file that the other words describe as in the kind `files`.
pub const SHAPES: &[Shape; COUNT] = &{
    let mut all = [OWN[0]; COUNT];
    all[1] = OWN[1];
    let mut i = OWN.len();
    while i < COUNT {
        all[i] = files::SHAPES[i - OWN.len()];
        i += 1;
    }
    all
};

/// More places than any of the operations has.
const PLACES: u64 = 20_000;

/// A debugged module that can be called, and faults: what a case has that describes no file.
const FILE: &str = "inlined 5 1 4; rows 100 50 5; data 5000; relocations 20 0";

/// Numbers of a file's description are smaller than this: a large file has the places of a small one, many times.
const SMALL: u64 = 97;

/// And there are fewer functions than this that run when a domain begins and ends: they may take a millisecond, for each place.
const FUNCTIONS: u64 = 5;

/// Tries every place.
///
/// # Errors
/// The places at which the process ended, or something was left behind.
pub fn run(case: &Case) -> Result<String, String> {
    let (own, mut about): (Vec<Op>, Vec<Op>) = case
        .ops
        .iter()
        .cloned()
        .partition(|op| OWN.iter().any(|s| s.name == op.name));
    let (operation, sticky, warm) = match own.first() {
        Some(op) => (op.n(0), op.n(1) != 0, op.name == "warm"),
        None => (work::ALL, false, true),
    };
    for op in &mut about {
        op.numbers.iter_mut().for_each(|n| *n %= SMALL);
        if let ("constructors" | "destructors", [count, ..]) = (op.name.as_str(), &mut op.numbers[..]) {
            *count %= FUNCTIONS;
        }
    }
    let file = match about.is_empty() {
        true => Case::parse(FILE, files::SHAPES)?,
        false => Case { ops: about },
    };
    let bytes = files::spec(&file).bytes();
    guests::prepare(operation)?;
    if let Some(1) = in_child(|| Ready::new(&bytes, operation).map_or(1, |_| 0)) {
        return Ok("refused: not even while there is memory".into());
    }
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
    let ready = warm.then(|| Ready::new(bytes, operation).expect("it was there before"));
    let fail = || {
        meter::arm(n, sticky);
        let done = perform(bytes, ready.as_ref(), operation);
        let failed = meter::disarm();
        (failed, done.is_err())
    };
    let (failed, refused) = fail();
    if failed == 0 {
        return 0;
    }
    if warm && let Some(leaked) = left_behind(fail, || drop(perform(bytes, ready.as_ref(), operation))) {
        eprintln!("operation {operation}, place {n}: {leaked}");
        return 3;
    }
    if refused { 1 } else { 2 }
}

/// What a time that fails leaves behind, and one that does not fail does not.
///
/// What a first time makes, stays; so does what comes to lie elsewhere because of the failure. And what has gone is not all used again
/// at once (a pointer to a function of a domain that has ended stays an error). So it counts only if it is more than two times without
/// a failure leave, each time.
fn left_behind<T>(fail: impl Fn() -> T, succeed: impl Fn()) -> Option<String> {
    let mut last = None;
    for round in 0..6 {
        let before = Kept::now();
        let _ = fail();
        succeed();
        let failed = Kept::now();
        succeed();
        succeed();
        let usual = Kept::now().since(&failed);
        let mut allowed = before.and(&usual);
        if failed.reserve > allowed.reserve {
            // What stays was served from the reserve, which rounds up, and not from the heap.
            allowed.reserve += (before.heap - failed.heap).max(0) as usize + usual.heap as usize * 2 + 64;
        }
        let leaked = failed.leaked(&allowed);
        leaked.as_ref()?;
        last = leaked;
        if round > 2 {
            // The kernel lists a thread, and a process's descriptors, for a moment after whoever waited for it goes on.
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    last
}
