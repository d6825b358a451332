//! Modules for the tests: compiled once for each test program.
#![allow(dead_code)]

pub mod elf;
pub mod living;
pub mod meter;
pub mod refuse;

use ringfence_driver::args::Front;
use ringfence_runtime::{Call, CallError, Domain, DomainOptions, Entry, Fault, Imports, LoadOptions, Module};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Compiles `tests/modules/NAME.c`.
pub fn build(name: &str, flags: &[&str]) -> PathBuf {
    build_file(&format!("{name}.c"), flags)
}

/// A path that no other test uses, in this program or another: two tests may build the same module at the same time.
pub fn unused_path(name: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}-{n}.rf", std::process::id()))
}

/// Compiles a file under `tests/modules`.
pub fn build_file(name: &str, flags: &[&str]) -> PathBuf {
    let out = unused_path(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/modules")
        .join(name);
    let mut args: Vec<std::ffi::OsString> = ["-O2", "-g", "-nostdlib", "-o"]
        .into_iter()
        .map(Into::into)
        .collect();
    args.push(out.clone().into());
    args.push(source.into());
    args.extend(flags.iter().map(Into::into));
    assert_eq!(ringfence_driver::cc(Front::C, args), 0, "ringfence cc {name}");
    out
}

/// Compiles a file under `tests/modules` with the libc, or the C++ library, of `build/sysroot`, and opens it.
pub fn with_libc(name: &str, front: Front, flags: &[&str]) -> Module {
    let out = unused_path(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/modules")
        .join(name);
    let sysroot = concat!(
        "--sysroot-rf=",
        env!("CARGO_MANIFEST_DIR"),
        "/../../build/sysroot"
    );
    let mut args: Vec<std::ffi::OsString> = ["-O2", "-g", "-shared", sysroot].map(Into::into).into();
    args.extend(flags.iter().map(Into::into));
    args.extend(["-o".into(), out.clone().into(), source.into()]);
    assert_eq!(
        ringfence_driver::cc(front, args),
        0,
        "{name}; does it need the sysroot built anew? sysroot/build.sh"
    );
    let module = Module::open(&out, &LoadOptions::default()).unwrap();
    let _ = std::fs::remove_file(out);
    module
}

pub fn bytes() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let out = build(
            "basic",
            &["--import=host_add,host_call,host_enter,host_stack,host_scale"],
        );
        let bytes = std::fs::read(&out).expect("the module");
        let _ = std::fs::remove_file(out);
        bytes
    })
}

pub fn module() -> Module {
    static MODULE: OnceLock<Module> = OnceLock::new();
    MODULE
        .get_or_init(|| Module::from_bytes("basic.rf", bytes(), &LoadOptions::default()).expect("module"))
        .clone()
}

/// All that `basic` imports, harmless.
pub fn imports() -> Imports {
    Imports::new()
        .closure("host_add", |f| {
            f.result[0] = f.ints[0].wrapping_add(f.ints[1]);
            Ok(())
        })
        .closure("host_enter", |_| Ok(()))
        .closure("host_call", |_| Ok(()))
        .closure("host_stack", |f| {
            let sum: u64 = f.ints.iter().sum();
            f.result[0] = sum + f.stack_argument(0).unwrap() * 100 + f.stack_argument(1).unwrap() * 10_000;
            Ok(())
        })
        .closure("host_scale", |f| {
            f.vector_result[0][0] = (f.double(0) * f.ints[0] as f64).to_bits();
            Ok(())
        })
}

pub fn domain() -> Domain {
    domain_with(&DomainOptions::default())
}

pub fn domain_with(options: &DomainOptions) -> Domain {
    Domain::new(&[module()], imports(), options).expect("domain")
}

pub fn call(domain: &Domain, name: &str, args: &[u64]) -> Result<u64, CallError> {
    entry(domain, name).call(&mut Call::ints(args)).map(|r| r.rax)
}

pub fn entry(domain: &Domain, name: &str) -> Entry {
    domain.entry(name).expect("entry")
}

pub fn fault(domain: &Domain, name: &str, args: &[u64]) -> Box<Fault> {
    match call(domain, name, args) {
        Err(CallError::Fault(fault)) => fault,
        other => panic!("{name}: {other:?}"),
    }
}

/// What a call that never ends by itself ends with, by a limit of time. Nothing else has the limit: what keeps a busy machine's processor
/// from a short call, a constructor or a reset would end these, too.
pub fn out_of_time(domain: &Domain, name: &str) -> Box<Fault> {
    domain.set_time_limit(Some(std::time::Duration::from_millis(20)));
    let fault = fault(domain, name, &[]);
    domain.set_time_limit(None);
    fault
}

/// Waits until a thread is in `announced` or `out_announced`. Only once after a reset.
pub fn wait_until_begun(domain: &Domain) {
    let begun = domain.symbol("begun").expect("the module has it");
    let mut word = [0; 4];
    while word == [0; 4] {
        domain.as_ref().read(begun, &mut word).expect("mapped");
        std::thread::yield_now();
    }
}

/// Runs `body` in a forked child and returns its wait status.
pub fn forked(body: impl FnOnce()) -> i32 {
    // SAFETY: the child runs `body` and leaves at once.
    unsafe {
        let pid = libc::fork();
        if pid == 0 {
            body();
            libc::_exit(0);
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
        status
    }
}

/// What this thread has used of a processor, which is the same for the same work however busy the machine is.
pub fn processor_time() -> std::time::Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes the time there.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    assert_eq!(status, 0);
    std::time::Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Runs the test `name` in a process of its own: what it does to signals and to the process stays there.
pub fn in_child(name: &str, body: impl FnOnce()) {
    const MARK: &str = "RINGFENCE_TEST_CHILD";
    if std::env::var_os(MARK).is_some_and(|v| v == name) {
        return body();
    }
    let out = std::process::Command::new(std::env::current_exe().expect("own path"))
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(MARK, name)
        .output()
        .expect("own process");
    assert!(
        out.status.success(),
        "{name}: {:?}\n{}{}",
        out.status,
        String::from_utf8_lossy(&out.stdout),
        String::from_utf8_lossy(&out.stderr)
    );
}
