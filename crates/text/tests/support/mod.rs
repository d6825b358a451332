//! Runs compiled texts in domains, and the same texts through gcc.
#![allow(dead_code)] // each test program uses a part

use ringfence::{CallError, Code, Domain, DomainOptions, FaultKind, Imports, Module};
use ringfence_text::{Compiled, compile};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Value(i64),
    /// An access to this offset in the window that failed.
    Access(u64),
    /// Anything else that ended the call.
    Fault(String),
}

fn host() -> &'static Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE.get_or_init(|| {
        let directory = scratch();
        let (source, output) = (directory.join("host.c"), directory.join("host.rf"));
        std::fs::write(&source, HOST).unwrap();
        let mut arguments: Vec<std::ffi::OsString> = [
            "-O1",
            "-ffreestanding",
            "-nostdlib",
            "--import=host_add",
            "--import=host_mix",
            "-o",
        ]
        .map(Into::into)
        .into();
        arguments.extend([output.clone().into(), source.into()]);
        assert_eq!(
            ringfence_driver::cc(ringfence_driver::args::Front::C, arguments),
            0
        );
        Module::open(output).unwrap()
    })
}

/// The module of the domains: it hands out the addresses of its imports.
const HOST: &str = r#"
long host_add(long, long);
double host_mix(int, double, float, long);
void *host_address(int n)
{
	switch (n) {
	case 0: return (void *)host_add;
	case 1: return (void *)host_mix;
	default: return (void *)0;
	}
}
"#;

/// The built-in functions that texts may call, in the order of their numbers.
pub const BUILT_IN: [&str; 2] = ["host_add", "host_mix"];

/// A directory of this process.
pub fn scratch() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("text-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    directory
}

/// A domain in which texts run.
pub struct Machine {
    domain: Domain,
    names: AtomicU32,
}

impl Machine {
    pub fn new() -> Machine {
        let mut options = DomainOptions::default();
        options.extensible = true;
        options.x87 = true;
        options.code_limit = 16 << 20;
        options.time_limit = Some(Duration::from_secs(20));
        let imports = Imports::new()
            .func("host_add", |a: i64, b: i64| a.wrapping_add(b))
            .func("host_mix", |a: i32, x: f64, y: f32, b: i64| {
                f64::from(a) + x + f64::from(y) + b as f64
            });
        let domain = Domain::instantiate(std::slice::from_ref(host()), imports, &options).unwrap();
        Machine {
            domain,
            names: AtomicU32::new(0),
        }
    }

    /// Makes it as it was.
    pub fn reset(&self) {
        self.domain.reset().unwrap();
    }

    /// Compiles a text and calls one of its functions with integers.
    pub fn run(&self, text: &str, entry: &str, args: [i64; 2]) -> Outcome {
        let compiled = compile(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
        self.call(&compiled, entry, args)
    }

    pub fn call(&self, compiled: &Compiled, entry: &str, args: [i64; 2]) -> Outcome {
        self.calls(compiled, entry, &[args]).remove(0)
    }

    /// Calls one after the other, which share the text's data. The first that fails is the last.
    pub fn calls(&self, compiled: &Compiled, entry: &str, args: &[[i64; 2]]) -> Vec<Outcome> {
        let address = self.domain.func::<(i32,), u64>("host_address").unwrap();
        let imports: Vec<u64> = compiled
            .imports
            .iter()
            .map(|i| {
                let number = BUILT_IN.iter().position(|b| *b == i.name);
                let number = number.unwrap_or_else(|| panic!("no built-in function {}", i.name));
                address.call(number as i32).unwrap().into_inner_unchecked()
            })
            .collect();
        let memory = self.domain.memory();
        let room = memory.alloc_array::<u8>(compiled.data.len() + 64).unwrap();
        let start = room.ptr().address().next_multiple_of(16);
        // The first place at which the code holds no identifier.
        let (data, code) = (0..4)
            .map(|i| start + 16 * i)
            .find_map(|at| Some((at, compiled.link_code(at, &imports).ok()?)))
            .expect("a place for the data");
        verify(compiled, &code);
        let export = compiled
            .exports
            .iter()
            .find(|e| e.name == entry)
            .expect("the entry is there");
        let name = format!("t{}", self.names.fetch_add(1, Ordering::Relaxed));
        let code = Code {
            bytes: &code,
            entry: export.offset,
        };
        let function = self.domain.add_code::<(i64, i64), i64>(&name, &code).unwrap();
        let base = function.untyped().address() - u64::from(export.offset);
        memory
            .write_slice(
                ringfence::Ptr::from_address(data),
                &compiled.link_data(data, base, &imports),
            )
            .unwrap();
        let mut outcomes = Vec::new();
        for &[a, b] in args {
            let outcome = match function.call(a, b) {
                Ok(value) => Outcome::Value(value.into_inner_unchecked()),
                Err(CallError::Fault(fault)) => match fault.kind {
                    FaultKind::BadAccess { address, .. } => Outcome::Access(address & 0xFFFF_FFFF),
                    ref kind => Outcome::Fault(format!("{kind:?}")),
                },
                Err(error) => Outcome::Fault(error.to_string()),
            };
            let failed = !matches!(outcome, Outcome::Value(_));
            outcomes.push(outcome);
            if failed {
                drop(room);
                self.reset();
                return outcomes;
            }
        }
        drop(room);
        self.domain.remove_code(&name).unwrap();
        outcomes
    }
}

/// What the runtime will ask of the verifier, asked here so that a rejection is told in full.
pub fn verify(compiled: &Compiled, code: &[u8]) {
    let mut text = code.to_vec();
    text.resize(text.len().next_multiple_of(64), 0xCC);
    let segment = ringfence_verify::Segment {
        start: 0,
        len: text.len() as u32,
        kind: ringfence_verify::SegmentKind::Text,
    };
    let image = ringfence_verify::Image {
        text: &text,
        text_address: 0,
        segments: &[segment],
        image_offset: None,
    };
    let entries: Vec<u32> = compiled.exports.iter().map(|e| e.offset).collect();
    if let Err(rejected) = ringfence_verify::verify(&image, &entries, &ringfence_verify::Rules::default()) {
        panic!("rejected: {rejected}");
    }
}

/// The standard output of a program in C that gcc made.
pub fn gcc(text: &str, options: &[&str]) -> Option<String> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let directory = scratch();
    let (source, output) = (
        directory.join(format!("g{number}.c")),
        directory.join(format!("g{number}")),
    );
    std::fs::write(&source, text).unwrap();
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-w", "-std=gnu11", "-ffp-contract=off"])
        .args(options)
        .arg("-o")
        .args([&output, &source]);
    assert!(gcc.status().expect("gcc").success(), "gcc does not take\n{text}");
    let out = Command::new(&output).output().unwrap();
    std::fs::remove_file(source).unwrap();
    std::fs::remove_file(output).unwrap();
    out.status
        .success()
        .then(|| String::from_utf8_lossy(&out.stdout).into_owned())
}
