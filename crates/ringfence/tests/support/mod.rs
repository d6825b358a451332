//! Builds the modules of `tests/api/modules` with the driver, once for each test program.
#![allow(dead_code)] // each test program uses a part

pub mod features;
pub mod guest;
pub mod workers;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use ringfence::{Backend, Domain, DomainError, DomainOptions, Imports, LoadOptions, Module};
use ringfence_driver::args::Front;

static BUILT: Mutex<Option<HashMap<String, PathBuf>>> = Mutex::new(None);

fn top() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The path of a module's source.
pub fn source(name: &str) -> PathBuf {
    top().join("tests/api/modules").join(format!("{name}.c"))
}

/// The file of a module, built with `options` besides the usual ones.
pub fn build(name: &str, options: &[&str]) -> PathBuf {
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let built = built.get_or_insert_with(HashMap::new);
    let key = format!("{name} {options:?}");
    if let Some(path) = built.get(&key) {
        return path.clone();
    }
    // One directory for each process: test programs run side by side.
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("modules-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("directory for modules");
    let output = directory.join(format!("{name}-{}.rf", built.len()));
    let include = top().join("include");
    let mut arguments: Vec<std::ffi::OsString> = [
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-ffreestanding",
        "-nostdlib",
        "-I",
    ]
    .map(Into::into)
    .into();
    arguments.push(include.into());
    arguments.extend(options.iter().map(Into::into));
    arguments.extend(["-o".into(), output.clone().into(), source(name).into()]);
    let status = ringfence_driver::cc(Front::C, arguments);
    assert_eq!(status, 0, "the driver could not build {name}");
    built.insert(key, output.clone());
    output
}

/// Names the back end that the tests run on; the step `backends` of `scripts/test.sh` runs them on each.
const VARIABLE: &str = "RINGFENCE_TEST_BACKEND";

/// The back end that the tests run on.
pub fn backend() -> Backend {
    match std::env::var(VARIABLE) {
        Ok(name) => name.parse().expect(VARIABLE),
        Err(_) => Backend::default(),
    }
}

/// Default options, for that back end.
pub fn options() -> DomainOptions {
    features::options(backend())
}

/// A domain of that back end.
pub trait Start {
    fn start(&self, imports: Imports) -> Result<Domain, DomainError>;
}

impl Start for Module {
    fn start(&self, imports: Imports) -> Result<Domain, DomainError> {
        Domain::instantiate(std::slice::from_ref(self), imports, &options())
    }
}

/// A module of `tests/api/modules`, for the back end.
pub fn module(name: &str) -> Module {
    if backend() == Backend::None {
        let source = std::fs::read_to_string(source(name)).expect("the source is there");
        return features::plain(&source, &["-Wno-all"]);
    }
    Module::open(build(name, &[])).expect("the module loads")
}

/// What `basic` needs from its host.
pub fn basic_imports() -> Imports {
    Imports::new()
        .func("host_add", |a: i32, b: i32| a.wrapping_add(b))
        .func("host_mix", |a: i32, x: f64, b: i64, y: f32| {
            f64::from(a) + x + b as f64 + f64::from(y)
        })
        .func(
            "host_eight",
            |a: i64, b: i64, c: i64, d: i64, e: i64, f: i64, g: i64, h: i64| {
                a + 10 * b + 100 * c + 1000 * d + 10_000 * e + 100_000 * f + 1_000_000 * g + 10_000_000 * h
            },
        )
        .func("host_note", |_text: u64, _length: u64| {})
}

/// A fresh domain of `basic`.
pub fn basic() -> Domain {
    module("basic")
        .start(basic_imports())
        .expect("the domain is made")
}

/// The number of the line of a module's source that carries the comment `line: NAME`.
pub fn line(name: &str, marker: &str) -> u32 {
    let text = std::fs::read_to_string(source(name)).expect("the source is there");
    let marker = format!("/* line: {marker} */");
    let at = text
        .lines()
        .position(|l| l.contains(&marker))
        .expect("the marker is there");
    at as u32 + 1
}

/// For modules whose text is in a test: `call`, which makes a system call.
const SYSTEM_CALL: &str = r#"
static long call(long n, long a, long b, long c)
{
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	register long r9 __asm__("r9") = 0;
	__asm__ volatile("call __rf_syscall" : "+a"(n), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9) : :
		"rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
		"xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
	return n;
}
"#;

/// Compiles a module from its text, behind [`SYSTEM_CALL`] and without a libc, and opens it.
pub fn from_text(text: &str, options: &[&str]) -> Module {
    from_text_with(text, options, &LoadOptions::default())
}

/// The same, for a host that accepts more.
pub fn from_text_with(text: &str, options: &[&str], load: &LoadOptions) -> Module {
    opened(Front::C, &format!("{SYSTEM_CALL}{text}"), options, load)
}

/// The same for a text in C++.
pub fn from_cxx_with(text: &str, options: &[&str], load: &LoadOptions) -> Module {
    opened(Front::Cxx, text, options, load)
}

fn opened(front: Front, text: &str, options: &[&str], load: &LoadOptions) -> Module {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = format!(
        "text-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Ordering::Relaxed)
    );
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let end = if front == Front::C { "c" } else { "cc" };
    let (source, output) = (directory.join(format!("p.{end}")), directory.join("p.rf"));
    std::fs::write(&source, text).unwrap();
    let mut arguments = Vec::from(["-O1", "--sysroot-rf=", "-o"].map(std::ffi::OsString::from));
    arguments.extend([output.clone().into_os_string(), source.into_os_string()]);
    arguments.extend(options.iter().map(Into::into));
    assert_eq!(ringfence_driver::cc(front, arguments), 0);
    let module = Module::open_with(&output, load).unwrap();
    let _ = std::fs::remove_dir_all(&directory);
    module
}
