//! Modules from a compiler, for operations that need more than a file made by hand: built once in a process, before it forks.

use ringfence::{LoadOptions, Module};
use ringfence_driver::args::Front;
use std::sync::OnceLock;

/// Makes the system calls that it is told.
const SYSTEM: &str = include_str!("../../../api/modules/syscall.c");

/// Reads and writes where it is told, of `--isolation=words`.
const WORDS: &str =
    "unsigned get(unsigned *p) { return *p; }\nvoid put(unsigned *p, unsigned v) { *p = v; }\n";

fn compiled(name: &str, source: &str, flags: &[&str]) -> Result<Vec<u8>, String> {
    let place = std::env::temp_dir().join(format!("ringfence-failing-{name}-{}", std::process::id()));
    let (text, out) = (place.with_extension("c"), place.with_extension("rf"));
    std::fs::write(&text, source).map_err(|e| e.to_string())?;
    let flags = ["-O1", "-g", "-ffreestanding", "-nostdlib"]
        .iter()
        .chain(flags)
        .chain(&["-o"]);
    let mut args: Vec<std::ffi::OsString> = flags.map(Into::into).collect();
    args.extend([out.clone().into(), text.clone().into()]);
    let status = ringfence_driver::cc(Front::C, args);
    let bytes = std::fs::read(&out);
    let _ = (std::fs::remove_file(&text), std::fs::remove_file(&out));
    match status {
        0 => bytes.map_err(|e| e.to_string()),
        status => Err(format!("ringfence cc ended with {status}")),
    }
}

fn system() -> Result<&'static [u8], String> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| compiled("system", SYSTEM, &[]));
    bytes.as_deref().map_err(Clone::clone)
}

fn words() -> Result<&'static [u8], String> {
    static BYTES: OnceLock<Result<Vec<u8>, String>> = OnceLock::new();
    let bytes = BYTES.get_or_init(|| compiled("words", WORDS, &["--isolation=words"]));
    bytes.as_deref().map_err(Clone::clone)
}

/// Builds what the operation needs.
///
/// # Errors
/// The compiler's.
pub fn prepare(operation: u64) -> Result<(), String> {
    match operation {
        super::work::POLICY | super::work::SYSTEM_CALLS => system().map(drop),
        super::work::WORDS => words().map(drop),
        _ => Ok(()),
    }
}

fn load(name: &str, bytes: Result<&[u8], String>) -> Result<Module, String> {
    let mut options = LoadOptions::default();
    options.allow_words = true;
    Module::from_bytes(name, bytes?, &options).map_err(|e| e.to_string())
}

/// The module that makes system calls.
///
/// # Errors
/// A message.
pub fn system_calls() -> Result<Module, String> {
    load("system.rf", system())
}

/// The module whose accesses are looked up word for word.
///
/// # Errors
/// A message.
pub fn of_words() -> Result<Module, String> {
    load("words.rf", words())
}
