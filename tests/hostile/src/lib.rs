//! Machines that hunt for work whose size a module's author decides. `docs/security/hunting.md` tells what they look for.

#![deny(missing_docs)]

pub mod adapter;
pub mod bounds;
pub mod case;
pub mod children;
pub mod failing;
pub mod figures;
pub mod files;
pub mod frames;
pub mod hosts;
pub mod meter;
pub mod table;
pub mod throws;

use case::{Case, Shape};

#[global_allocator]
static MEMORY: ringfence::Reserve<meter::Meter> = ringfence::Reserve::around(meter::Meter);

/// A kind of cases.
pub struct Kind {
    /// Its name in options and texts.
    pub name: &'static str,
    /// What its cases are made of.
    pub shapes: &'static [Shape],
    /// Operations of one case at most.
    pub most: u64,
    /// Cases of one child process.
    pub batch: usize,
    /// Tries one: what became of it, or what is wrong.
    pub run: fn(&Case) -> Result<String, String>,
    /// Cases that were worth keeping: a line each, `#` before remarks.
    pub kept: &'static str,
}

/// All kinds.
pub static KINDS: &[Kind] = &[
    Kind {
        name: "files",
        shapes: files::SHAPES,
        most: 4,
        batch: 20,
        run: files::run,
        kept: include_str!("../corpus/files.txt"),
    },
    Kind {
        name: "frames",
        shapes: frames::SHAPES,
        most: 5,
        batch: 10,
        run: frames::run,
        kept: include_str!("../corpus/frames.txt"),
    },
    Kind {
        name: "throws",
        shapes: throws::SHAPES,
        most: 5,
        batch: 50,
        run: throws::run,
        kept: include_str!("../corpus/throws.txt"),
    },
    Kind {
        name: "memory",
        shapes: failing::SHAPES,
        most: 4,
        batch: 4,
        run: failing::run,
        kept: include_str!("../corpus/memory.txt"),
    },
    Kind {
        name: "hosts",
        shapes: hosts::SHAPES,
        most: 8,
        batch: 50,
        run: hosts::run,
        kept: include_str!("../corpus/hosts.txt"),
    },
];

/// The kind of that name.
#[must_use]
pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().chain(table::KINDS).find(|k| k.name == name)
}

/// What is told of a case that never came to what it is for begins with one of these.
const NOT_TRIED: &[&str] = &["refused", "no domain", "not assembled", "not thrown", "too large"];

/// Whether a case came to what it is for, by what [`Kind::run`] told.
#[must_use]
pub fn was_tried(told: &str) -> bool {
    !NOT_TRIED.iter().any(|start| told.starts_with(start))
}

impl Kind {
    /// What was kept.
    ///
    /// # Errors
    /// The line that is no case.
    pub fn corpus(&self) -> Result<Vec<Case>, String> {
        let lines = self
            .kept
            .lines()
            .map(|l| l.split('#').next().unwrap_or_default().trim());
        let lines = lines.filter(|l| !l.is_empty());
        let case = |l| Case::parse(l, self.shapes).map_err(|e| format!("{}: {l}: {e}", self.name));
        lines.map(case).collect()
    }
}
