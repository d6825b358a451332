//! What a plan looks like in each language.

mod c;
mod cxx;
mod eightbytes;
mod python;
mod rust;

use std::collections::{BTreeSet, VecDeque};
use std::str::FromStr;

use crate::Request;
use crate::constant::Constant;
use crate::plan::Plan;
use crate::types::{Id, Record, Type, Types};

/// A line of a file.
macro_rules! line {
    ($out:expr, $($text:tt)*) => {
        // Into a string nothing fails.
        let _ = writeln!($out, $($text)*);
    };
}
use line;

/// All that writers know.
pub(crate) struct Library<'a> {
    pub request: &'a Request,
    pub types: &'a Types,
    pub constants: &'a [(String, Constant)],
    pub plan: &'a Plan,
}

/// A language that bindings are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `NAME_fenced.h`, `NAME_fenced.c`, and `NAME_layout.c` for the module.
    C,
    /// `NAME_fenced.hpp`: tainted structs.
    Cxx,
    /// `NAME_fenced.rs`, over the C.
    Rust,
    /// `NAME_fenced.py`, over the C.
    Python,
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "c" => Language::C,
            "c++" => Language::Cxx,
            "rust" => Language::Rust,
            "python" => Language::Python,
            _ => return Err(format!("there are c, c++, rust and python, not {text}")),
        })
    }
}

impl Language {
    pub(crate) fn write(self, library: &Library<'_>) -> Vec<(String, String)> {
        match self {
            Language::C => c::write(library),
            Language::Cxx => cxx::write(library),
            Language::Rust => rust::write(library),
            Language::Python => python::write(library),
        }
    }
}

/// Structs and unions that the library's functions reach, each behind those that it holds.
pub(crate) fn records(library: &Library<'_>) -> Vec<(Id, Record)> {
    reached(library.types, bound(library).collect())
}

/// Of those too that functions pass by value which are not bound in C.
pub(crate) fn all_records(library: &Library<'_>) -> Vec<(Id, Record)> {
    reached(library.types, declared(library).collect())
}

/// The types that stand in declarations of these functions.
pub(crate) fn declared<'a>(library: &Library<'a>) -> impl Iterator<Item = Id> + use<'a> {
    let types = library.types;
    let functions = types.functions.values();
    let all = functions.flat_map(|f| f.parameters.iter().copied().chain([f.result]));
    let by_value = all.filter(|&id| matches!(types.bare(id), Type::Record(_)));
    bound(library).chain(by_value)
}

/// The types of bound functions.
fn bound<'a>(library: &Library<'a>) -> impl Iterator<Item = Id> + use<'a> {
    let functions = library.plan.functions.iter();
    functions.flat_map(|f| [f.result].into_iter().chain(f.parameters.iter().map(|p| p.to)))
}

fn reached(types: &Types, mut wanted: VecDeque<Id>) -> Vec<(Id, Record)> {
    let (mut found, mut seen) = (Vec::new(), BTreeSet::new());
    while let Some(id) = wanted.pop_front() {
        reach(types, id, &mut seen, &mut found, &mut wanted, 0);
    }
    found
}

fn reach(
    types: &Types,
    id: Id,
    seen: &mut BTreeSet<Id>,
    found: &mut Vec<(Id, Record)>,
    later: &mut VecDeque<Id>,
    depth: usize,
) {
    // As deep as structs stand in structs.
    if depth > 64 {
        return;
    }
    match types.bare(id) {
        Type::Pointer(to) if seen.insert(id) => later.push_back(*to),
        Type::Array(to, _) => reach(types, *to, seen, found, later, depth + 1),
        Type::Function(function) if seen.insert(id) => {
            later.push_back(function.result);
            later.extend(&function.parameters);
        }
        Type::Record(record) => {
            let id = types.record_id(id);
            if !seen.insert(id) {
                return;
            }
            for field in &record.fields {
                reach(types, field.to, seen, found, later, depth + 1);
            }
            found.push((id, record.clone()));
        }
        _ => {}
    }
}
