//! All that the hunt knows of the interface that it hunts: how to load, make, call, ask.

use crate::bounds;
use ringfence::dynamic::Argument;
use std::path::Path;
use std::time::Duration;

pub use ringfence::{DomainOptions, FaultKind};

/// A loaded module.
#[derive(Clone)]
pub struct Module(pub ringfence::Module);

/// A domain.
#[derive(Clone)]
pub struct Domain(pub ringfence::Domain);

/// How a call ended.
pub enum End {
    /// With this result.
    Returned(u64),
    /// With a fault, of which a report can be asked.
    Fault(Box<ringfence::Fault>),
    /// With an error that has no report.
    Error(String),
}

/// Options for files of any size.
fn any_size() -> ringfence::LoadOptions {
    let mut options = ringfence::LoadOptions::default();
    options.max_file_size = u32::MAX.into();
    options
}

/// Loads what is in memory.
///
/// # Errors
/// The message of a typed error.
pub fn load(bytes: &[u8]) -> Result<Module, String> {
    let loaded = ringfence::Module::from_bytes("hostile.rf", bytes, &any_size());
    loaded.map(Module).map_err(|e| e.to_string())
}

/// Loads a file.
///
/// # Errors
/// The message of a typed error.
pub fn open(path: &Path) -> Result<Module, String> {
    let loaded = ringfence::Module::open_with(path, &any_size());
    loaded.map(Module).map_err(|e| e.to_string())
}

impl Module {
    /// Makes a domain.
    ///
    /// # Errors
    /// The message of a typed error.
    pub fn domain(&self, options: &DomainOptions) -> Result<Domain, String> {
        self.domain_with(ringfence::Imports::new(), options)
    }

    /// The same, with functions of the host's.
    ///
    /// # Errors
    /// The message of a typed error.
    pub fn domain_with(
        &self,
        imports: ringfence::Imports,
        options: &DomainOptions,
    ) -> Result<Domain, String> {
        let made = ringfence::Domain::instantiate(std::slice::from_ref(&self.0), imports, options);
        made.map(Domain).map_err(|e| e.to_string())
    }

    /// Names of functions that it exports, a few.
    #[must_use]
    pub fn functions(&self, most: usize) -> Vec<String> {
        let functions = self.0.exports().iter();
        let functions = functions.filter(|e| e.kind == ringfence::ExportKind::Function);
        functions.take(most).map(|e| e.name.clone()).collect()
    }
}

impl Domain {
    /// Calls a function.
    #[must_use]
    pub fn call(&self, name: &str, a: u64, b: u64) -> End {
        match self.0.function(name) {
            Ok(f) => match f.call([a, b].map(Argument::Int)) {
                Ok(result) => End::Returned(result.int),
                Err(ringfence::CallError::Fault(fault)) => End::Fault(fault),
                Err(e) => End::Error(e.to_string()),
            },
            Err(e) => End::Error(e.to_string()),
        }
    }

    /// The same, with the processor time that the calling thread spent.
    #[must_use]
    pub fn call_timed(&self, name: &str, a: u64, b: u64) -> (End, Duration) {
        let before = bounds::thread();
        let end = self.call(name, a, b);
        (end, bounds::thread() - before)
    }
}

/// All that a report can tell; an error if a name in it is not fit to be shown.
///
/// # Errors
/// The name.
pub fn report(fault: &ringfence::Fault) -> Result<(usize, bool), String> {
    let frames = fault.backtrace();
    let message = fault.to_string();
    let names = frames.iter().flat_map(|f| [&f.function, &f.file, &f.module]);
    let odd = |text: &str| text.chars().any(char::is_control) || text.chars().count() > 4000;
    if let Some(name) = names.flatten().find(|name| odd(name)) {
        return Err(format!("a name that is not fit to be shown: {name:?}"));
    }
    if odd(&message) {
        return Err(format!("a message that is not fit to be shown: {message:?}"));
    }
    if frames.len() > 64 {
        return Err(format!("{} frames", frames.len()));
    }
    let cut = fault.cut().is_some();
    if cut != message.contains("cut short") {
        return Err(format!("cut: {cut}, but the message is: {message}"));
    }
    Ok((frames.len(), cut))
}
