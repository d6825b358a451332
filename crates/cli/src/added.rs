//! Modules that are added to the domain under names, and what the domain has used in the end.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use ringfence::{CallError, Domain, DomainOptions, LoadOptions, Module, ModuleError};

use crate::failure;
use crate::output;

/// `NAME=FILE` of `--add`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    name: String,
    file: PathBuf,
}

/// Reads `NAME=FILE`.
pub fn named(text: &str) -> Result<Named, String> {
    match text.split_once('=') {
        Some((name, file)) if !name.is_empty() && !file.is_empty() => Ok(Named {
            name: name.to_owned(),
            file: file.into(),
        }),
        _ => Err("write NAME=FILE, as blur=blur.rf".into()),
    }
}

/// Modules to add, loaded.
pub struct Additions(Vec<(String, Module)>);

impl Additions {
    /// Loads them all.
    pub fn load(list: &[Named], options: &LoadOptions) -> Result<Additions, String> {
        let mut all: Vec<(String, Module)> = Vec::with_capacity(list.len());
        for Named { name, file } in list {
            if all.iter().any(|(other, _)| other == name) {
                return Err(format!(
                    "--add {name} is given twice; give each module a name of its own"
                ));
            }
            let module = Module::open_with(file, options).map_err(|e| e.to_string())?;
            all.push((name.clone(), module));
        }
        Ok(Additions(all))
    }

    /// The modules, in the order in which they come.
    pub fn modules(&self) -> impl Iterator<Item = &Module> {
        self.0.iter().map(|(_, module)| module)
    }

    /// The one with this name.
    pub fn named(&self, name: &str) -> Option<&Module> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, module)| module)
    }

    /// What the domain has to be made for.
    pub fn prepare(&self, options: &mut DomainOptions) {
        // Vector registers, the x87 unit, thread-local variables, and host functions that only these need.
        options.extensible |= !self.0.is_empty();
        options.x87 |= !self.0.is_empty();
    }

    /// Adds them to the domain.
    pub fn add(&self, domain: &Domain) -> Result<(), ExitCode> {
        for (name, module) in &self.0 {
            domain.add_module(name, module).map_err(|e| match &e {
                ModuleError::Init { source, .. } if matches!(**source, CallError::Exit(_)) => {
                    failure::call(source)
                }
                ModuleError::Init { source, .. } => {
                    output::error(format!("--add {name}: a constructor failed"));
                    failure::call(source)
                }
                _ => {
                    output::error(format!("--add: {e}"));
                    ExitCode::from(failure::NOT_STARTED)
                }
            })?;
        }
        Ok(())
    }
}

/// Has the domain count what costs something to count.
pub fn count(options: &mut DomainOptions) {
    options.processor_time = Some(Duration::MAX);
}

/// What the domain has used, and what holds it if it has a process of its own, on standard error.
pub fn print_usage(domain: &Domain) {
    let u = domain.usage();
    output::line(format_args!(
        "ringfence: memory {} bytes, processor time {:.3} s, calls {}, faults {}, descriptors {}, disk {} bytes",
        u.memory,
        u.processor_time.as_secs_f64(),
        u.calls,
        u.faults,
        u.descriptors,
        u.disk
    ));
    if let Ok(held) = domain.confinement() {
        output::line(format_args!("ringfence: a process of its own; {held}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_files() {
        let n = named("a=b=c.rf").unwrap();
        assert_eq!((n.name.as_str(), n.file), ("a", PathBuf::from("b=c.rf")));
        for bad in ["blur.rf", "=blur.rf", "blur=", ""] {
            assert!(named(bad).is_err(), "{bad}");
        }
    }
}
