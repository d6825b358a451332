//! What a policy costs: reads and writes of a file through it against plain system calls, and how long `ringfence run` takes to
//! start a program that says hello.
//!
//! ```text
//! cargo build --release && cargo run --release -p ringfence --example system_calls
//! ```
//!
//! Rounds are interleaved; times are the thread's processor time, minimum and median.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ringfence::policy::{Policy, Rights};
use ringfence::{Domain, Imports, Module};

const CALLS: i64 = 20_000;
const ROUNDS: usize = 41;

type Failure = Box<dyn std::error::Error>;

fn thread_time() -> Duration {
    let mut t = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills a structure of ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut t) };
    Duration::new(t.tv_sec as u64, t.tv_nsec as u32)
}

/// Minimum and median.
fn summary(mut all: Vec<f64>) -> (f64, f64) {
    all.sort_by(f64::total_cmp);
    (all[0], all[all.len() / 2])
}

fn build(directory: &Path, name: &str, args: &[&str]) -> Result<PathBuf, Failure> {
    let output = directory.join(format!("{name}.rf"));
    let mut all: Vec<OsString> = args.iter().map(Into::into).collect();
    all.extend(["-O2".into(), "-o".into(), output.clone().into()]);
    match ringfence_driver::cc(ringfence_driver::args::Front::C, all) {
        0 => Ok(output),
        status => Err(format!("{name} does not build (status {status})").into()),
    }
}

fn calls(directory: &Path) -> Result<(), Failure> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/api/modules/syscall.c");
    let module = Module::open(build(
        directory,
        "syscall",
        &["-ffreestanding", "-nostdlib", source],
    )?)?;
    let path = directory.join("file");
    std::fs::write(&path, vec![b'x'; 1 << 16])?;
    let file = File::options().read(true).write(true).open(&path)?;
    let policy = Policy::new().dir(directory, "/d", Rights::Write);
    // Everything that is written counts.
    let monitor = policy.disk_limit(u64::MAX).start()?;
    let domain = Domain::new(&module, Imports::new().policy(monitor))?;
    let repeat = domain.func::<(i64, i64, i64, i64, i64), i64>("repeat")?;
    let memory = domain.memory();
    let inside = memory.alloc_array::<u8>(4096)?.leak().address() as i64;
    let name = memory.put_c_string("/d/file")?.leak().address() as i64;
    let fd = repeat
        .call(1, libc::SYS_open, name, libc::O_RDWR.into(), 0)?
        .into_inner_unchecked();
    let mut buffer = vec![0u8; 4096];
    println!("call, bytes           plain ns  fenced ns  difference   (minimum; median in brackets)");
    for (what, number, len) in [
        ("write", libc::SYS_pwrite64, 1),
        ("write", libc::SYS_pwrite64, 4096),
        ("read", libc::SYS_pread64, 1),
        ("read", libc::SYS_pread64, 4096),
        ("getpid", libc::SYS_getpid, 0),
    ] {
        let (mut plain, mut fenced) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let begin = thread_time();
            for _ in 0..CALLS {
                // SAFETY: the buffer is ours and long enough.
                unsafe { libc::syscall(number, file.as_raw_fd(), buffer.as_mut_ptr(), len, 0) };
            }
            plain.push((thread_time() - begin).as_nanos() as f64 / CALLS as f64);
            let begin = thread_time();
            let last = repeat
                .call(CALLS, number, fd, inside, len)?
                .into_inner_unchecked();
            fenced.push((thread_time() - begin).as_nanos() as f64 / CALLS as f64);
            assert!(last == len || number == libc::SYS_getpid, "{what}: {last}");
        }
        let ((p, pm), (f, fm)) = (summary(plain), summary(fenced));
        println!(
            "{:<20} {p:6.0} ({pm:.0})  {f:6.0} ({fm:.0})  {:6.0} ({:.0})",
            format!("{what} {len}"),
            f - p,
            fm - pm
        );
    }
    Ok(())
}

fn start(directory: &Path) -> Result<(), Failure> {
    let here = std::env::current_exe()?;
    let release = here
        .parent()
        .and_then(Path::parent)
        .ok_or("no target directory")?;
    let command = release.join("ringfence");
    let source = directory.join("hello.c");
    std::fs::write(
        &source,
        "#include <stdio.h>\nint main(void) { puts(\"hello, world\"); }\n",
    )?;
    let sysroot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");
    let program = build(
        directory,
        "hello",
        &["--sysroot-rf", sysroot, &source.to_string_lossy()],
    )?;
    let (mut wall, mut used) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        // SAFETY: fills a structure of ours.
        let children = || unsafe {
            let mut u: libc::rusage = std::mem::zeroed();
            libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut u);
            (u.ru_utime.tv_sec + u.ru_stime.tv_sec) as f64 * 1e3
                + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) as f64 / 1e3
        };
        let (begin, before) = (Instant::now(), children());
        let out = Command::new(&command)
            .arg("run")
            .arg(&program)
            .stdin(Stdio::null())
            .output()?;
        wall.push(begin.elapsed().as_secs_f64() * 1e3);
        used.push(children() - before);
        assert_eq!(out.stdout, b"hello, world\n");
    }
    let ((w, wm), (u, um)) = (summary(wall), summary(used));
    println!("ringfence run hello: {w:.1} ms (median {wm:.1}), processor time {u:.1} ms ({um:.1})");
    Ok(())
}

fn main() -> Result<(), Failure> {
    let directory = std::env::temp_dir().join(format!("rf-system-calls-{}", std::process::id()));
    std::fs::create_dir_all(&directory)?;
    let result = calls(&directory).and_then(|()| start(&directory));
    let _ = std::fs::remove_dir_all(&directory);
    result
}
