//! What gcc knows of the headers, and whether a module is of the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use object::{Object, ObjectSymbol};

use crate::constant::{self, Constant};
use crate::plan::Plan;
use crate::scan::{self, Scanned};
use crate::types::{PROBE, Record, Type, Types};
use crate::{Error, Request};

/// All that is known.
pub(crate) struct Probed {
    pub scanned: Scanned,
    pub types: Types,
    /// Constants of the headers: macros and enumerators.
    pub constants: Vec<(String, Constant)>,
}

/// A directory that goes again.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch, Error> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("ringfence-bind-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).map_err(|source| Error::File {
            path: path.display().to_string(),
            source,
        })?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What stays is in the system's directory for such files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// How a header is included.
pub(crate) fn include(header: &str) -> String {
    match Path::new(header).canonicalize() {
        Ok(path) => format!("#include \"{}\"\n", path.display()),
        Err(_) => format!("#include <{header}>\n"),
    }
}

fn gcc(request: &Request, source: &str, arguments: &[&str]) -> Result<Vec<u8>, Error> {
    use std::io::Write as _;
    let cannot = |e: std::io::Error| Error::Compiler(format!("gcc cannot be run: {e}"));
    let mut child = Command::new("gcc")
        .args(&request.flags)
        .args(arguments)
        .args(["-x", "c", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(cannot)?;
    if let Some(mut input) = child.stdin.take() {
        // A compiler that does not read it says why.
        let _ = input.write_all(source.as_bytes());
    }
    let done = child.wait_with_output().map_err(cannot)?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    Err(Error::Headers {
        output: String::from_utf8_lossy(&done.stderr).trim_end().to_owned(),
    })
}

/// Asks gcc about the headers.
pub(crate) fn probe(request: &Request) -> Result<Probed, Error> {
    let includes: String = request.headers.iter().map(|h| include(h)).collect();
    let own: Vec<(Option<PathBuf>, String)> = request
        .headers
        .iter()
        .map(|h| (Path::new(h).canonicalize().ok(), format!("/{h}")))
        .collect();
    let ours = |file: &str| {
        own.iter().any(|(path, name)| match path {
            Some(path) => Path::new(file).canonicalize().is_ok_and(|f| f == *path),
            None => file.ends_with(name),
        })
    };
    let text = gcc(request, &includes, &["-E", "-dD"])?;
    // Most lines are of few files.
    let mut known = BTreeMap::new();
    let cached = std::cell::RefCell::new(&mut known);
    let scanned = scan::scan(&String::from_utf8_lossy(&text), |file| {
        *cached
            .borrow_mut()
            .entry(file.to_owned())
            .or_insert_with(|| ours(file))
    });
    if scanned.functions.is_empty() {
        return Err(Error::NoFunctions);
    }
    let mut source = includes;
    for function in &scanned.functions {
        let name = &function.name;
        let _ = writeln!(source, "__typeof__({name}) *{PROBE}{name};");
    }
    let scratch = Scratch::new()?;
    let object = scratch.0.join("probe.so");
    let path = object.to_string_lossy().into_owned();
    let arguments = [
        "-w",
        "-g",
        "-O0",
        "-fno-lto",
        "-fPIC",
        "-shared",
        "-nostdlib",
        "-fno-eliminate-unused-debug-types",
        "-o",
        &path,
    ];
    gcc(request, &source, &arguments)?;
    let data = std::fs::read(&object).map_err(|source| Error::File { path, source })?;
    let types = Types::read(&data, ours)
        .ok_or_else(|| Error::Compiler("gcc's debug information cannot be read".to_owned()))?;
    let enumerators: BTreeMap<String, i128> = types
        .enumerators
        .iter()
        .map(|(n, v, _)| (n.clone(), *v))
        .collect();
    let mut constants: Vec<(String, Constant)> = Vec::new();
    for name in &scanned.constants {
        if let Some(text) = scanned.macros.get(name)
            && let Some(value) = constant::value(text, &scanned.macros, &enumerators)
        {
            constants.push((name.clone(), value));
        }
    }
    let named = types.enumerators.iter().filter(|(_, _, own)| *own);
    constants.extend(named.map(|(name, value, _)| (name.clone(), Constant::Number(*value))));
    constants.sort_by(|a, b| a.0.cmp(&b.0));
    constants.dedup_by(|a, b| a.0 == b.0);
    Ok(Probed {
        scanned,
        types,
        constants,
    })
}

/// Takes functions that the module does not have out of the plan, and tells which structs are others there than in the headers, as far
/// as it has debug information.
pub(crate) fn compare(module: &[u8], probed: &Probed, plan: &mut Plan) -> Vec<String> {
    let mut found = Vec::new();
    let Ok(file) = object::File::parse(module) else {
        return vec!["the module is no ELF file".to_owned()];
    };
    let exported: std::collections::BTreeSet<&str> = file
        .dynamic_symbols()
        .filter(|s| s.is_definition())
        .filter_map(|s| s.name().ok())
        .collect();
    plan.functions.retain(|function| {
        let there = exported.contains(function.name.as_str());
        if !there {
            let why = "is not in the module: another build of it may have it".to_owned();
            plan.refused.push((function.name.clone(), why));
        }
        there
    });
    let Some(there) = Types::read(module, |_| false) else {
        return found;
    };
    let record = |types: &Types, id| match types.bare(id) {
        Type::Record(record) if record.size.is_some() => Some(record.clone()),
        _ => None,
    };
    for (name, &id) in &probed.types.records {
        let (Some(here), Some(other)) = (
            record(&probed.types, id),
            there.records.get(name).and_then(|&id| record(&there, id)),
        ) else {
            continue;
        };
        found.extend(differences(name, &here, &other));
    }
    found
}

/// The first thing in which two structs of one name differ.
fn differences(name: &str, here: &Record, there: &Record) -> Option<String> {
    for field in &here.fields {
        let Some(own) = &field.name else { continue };
        match there.fields.iter().find(|f| f.name.as_ref() == Some(own)) {
            None => {
                return Some(format!(
                    "{name}.{own} is in the headers, and not in the module's {name}"
                ));
            }
            Some(other) if other.offset != field.offset => {
                return Some(format!(
                    "{name}.{own} is at {} in the headers and at {} in the module",
                    field.offset, other.offset
                ));
            }
            Some(_) => {}
        }
    }
    let size = |r: &Record| r.size.unwrap_or(0);
    (size(here) != size(there)).then(|| {
        format!(
            "{name} has {} bytes in the headers and {} in the module",
            size(here),
            size(there)
        )
    })
}
