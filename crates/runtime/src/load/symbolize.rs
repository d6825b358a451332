//! Names for addresses: a module's own symbols and debug information. For messages only, and only when somebody asks.
//!
//! The file's author may have made it of anything, and whoever asks may stand on a small stack. So all of it is done by a thread
//! that is made for it and has a stack of a known size, under a budget; what is not found within it is not told.

use super::debug::{self, Name};
use super::module::Module;
use super::names::plain;
use ringfence_core::work::{Budget, Exceeded};
use std::mem::zeroed;
use std::ptr::null_mut;

/// Steps that one report may take: fifty milliseconds at most, and tens of megabytes of debug information.
const STEPS: u64 = 2_500_000;

/// Memory that grows with what is read.
const BYTES: u64 = 16 << 20;

/// The stack of the thread that looks names up. The deepest on it is the reader of Rust's names, which stops at 500 levels.
const STACK: usize = 2 << 20;

/// Longest name that is taken apart; longer ones are shown as they are.
const LONGEST: usize = 2048;

/// One function at a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    pub function: Option<String>,
    pub file: Option<String>,
    pub line: Option<u32>,
}

/// The functions at each place of some modules, inlined ones first, at least one for each; and what was exceeded if they are not all
/// that could be told.
pub(crate) fn functions(places: &[(&Module, Vec<u64>)]) -> (Vec<Vec<Vec<Named>>>, Option<Exceeded>) {
    apart(|| read(places)).unwrap_or_else(|| {
        let nothing = |(_, offsets): &(&Module, Vec<u64>)| vec![vec![Named::default()]; offsets.len()];
        (places.iter().map(nothing).collect(), None)
    })
}

fn read(places: &[(&Module, Vec<u64>)]) -> (Vec<Vec<Vec<Named>>>, Option<Exceeded>) {
    let (mut budget, mut cut) = (Budget::new(STEPS, BYTES), None);
    let mut all = Vec::with_capacity(places.len());
    for (module, offsets) in places {
        let (found, exceeded) = debug::look_up(module.original(), offsets, &mut budget);
        cut = cut.or(exceeded);
        let named = |mut names: Vec<Name>| {
            if names.is_empty() {
                names.push(Name::default());
            }
            names.into_iter().map(shown).collect()
        };
        all.push(found.into_iter().map(named).collect());
    }
    (all, cut)
}

fn shown(name: Name) -> Named {
    Named {
        function: name.function.filter(|n| !n.is_empty()).map(|n| demangled(&n)),
        file: name.file.map(|n| plain(&String::from_utf8_lossy(&n))),
        line: name.line.and_then(|l| u32::try_from(l).ok()),
    }
}

/// A name as its source has it, if it is one of Rust or C++.
fn demangled(raw: &[u8]) -> String {
    let name = String::from_utf8_lossy(raw);
    if name.len() <= LONGEST
        && let Ok(rust) = rustc_demangle::try_demangle(&name)
    {
        let mut text = Short(String::new());
        // Cut where there is no more room.
        let _ = std::fmt::Write::write_fmt(&mut text, format_args!("{rust:#}"));
        return plain(&text.0);
    }
    plain(&debug::cxx::demangle(&name).unwrap_or_else(|| name.into_owned()))
}

/// Text that takes no more than is shown anyway: short names can stand for endless ones.
struct Short(String);

impl std::fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.push_str(text);
        match self.0.len() > debug::cxx::WRITTEN {
            true => Err(std::fmt::Error),
            false => Ok(()),
        }
    }
}

/// Does `work` on a thread with a stack of its own. `None` if there can be no thread, or the work panics, which would be a defect of ours.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        // No signal of the host's is to be handled by our thread.
        // SAFETY: changes the calling thread's mask and puts it back.
        let thread = unsafe {
            let (mut all, mut old): (libc::sigset_t, libc::sigset_t) = (zeroed(), zeroed());
            libc::sigfillset(&raw mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old);
            let thread = std::thread::Builder::new()
                .name("ringfence-names".into())
                .stack_size(STACK)
                .spawn_scoped(scope, work);
            libc::pthread_sigmask(libc::SIG_SETMASK, &raw const old, null_mut());
            thread
        };
        thread.ok()?.join().ok()
    })
}
