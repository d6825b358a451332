//! What a plan looks like in each language.

mod c;

use std::str::FromStr;

use crate::Request;
use crate::plan::Plan;
use crate::types::Types;

/// All that writers know.
pub(crate) struct Library<'a> {
    pub request: &'a Request,
    pub types: &'a Types,
    pub plan: &'a Plan,
}

/// A language that bindings are written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// `NAME_fenced.h`, `NAME_fenced.c`, and `NAME_layout.c` for the module.
    C,
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "c" => Language::C,
            _ => return Err(format!("there are c, c++, rust and python, not {text}")),
        })
    }
}

impl Language {
    pub(crate) fn write(self, library: &Library<'_>) -> Vec<(String, String)> {
        match self {
            Language::C => c::write(library),
        }
    }
}
