//! Names for addresses: a module's own symbols and debug information. For messages only, and only when somebody asks.
//!
//! The file's author may have made it of anything, and whoever asks may stand on a small stack. So all of it is done by a thread
//! that is made for it and has a stack of a known size, under a budget; what is not found within it is not told.

use super::module::Module;
use super::names::plain;
use ringfence_core::thread;
use ringfence_core::work::{Budget, Exceeded};
use ringfence_debug::{Name, cxx, look_up};
use std::time::Duration;

/// Steps that one report may take: tens of megabytes of debug information.
const STEPS: u64 = 2_500_000;

/// Processor time that one report may take, showing names included, which has bounds of its own. Entries of the largest shapes
/// take it up before the steps.
const TIME: Duration = Duration::from_millis(40);

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
    thread::apart(c"ringfence-names", STACK, || read(places)).unwrap_or_else(|| {
        let nothing = |(_, offsets): &(&Module, Vec<u64>)| vec![vec![Named::default()]; offsets.len()];
        (places.iter().map(nothing).collect(), None)
    })
}

fn read(places: &[(&Module, Vec<u64>)]) -> (Vec<Vec<Vec<Named>>>, Option<Exceeded>) {
    let (mut budget, mut cut) = (Budget::new(STEPS, BYTES).of_thread(TIME), None);
    let mut all = Vec::with_capacity(places.len());
    for (module, offsets) in places {
        let (found, exceeded) = look_up(module.original(), offsets, &mut budget);
        cut = cut.or(exceeded);
        let named = |mut names: Vec<Name>| {
            if names.is_empty() {
                names.push(Name::default());
            }
            names
                .into_iter()
                .map(|name| shown(name, &mut budget, &mut cut))
                .collect()
        };
        all.push(found.into_iter().map(named).collect());
    }
    (all, cut)
}

/// When the time is over names are shown as the file has them.
fn shown(name: Name, budget: &mut Budget, cut: &mut Option<Exceeded>) -> Named {
    let function = name.function.filter(|n| !n.is_empty());
    let function = function.map(|n| match budget.clock() {
        Ok(()) => demangled(&n),
        Err(e) => {
            cut.get_or_insert(e);
            plain(&String::from_utf8_lossy(&n))
        }
    });
    Named {
        function,
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
    plain(&cxx::demangle(&name).unwrap_or_else(|| name.into_owned()))
}

/// Text that takes no more than is shown anyway: short names can stand for endless ones.
struct Short(String);

impl std::fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.push_str(text);
        match self.0.len() > cxx::WRITTEN {
            true => Err(std::fmt::Error),
            false => Ok(()),
        }
    }
}
