//! Programs that csmith makes up, built natively and fenced, and compared by what they print.

use crate::options::Options;
use crate::program::{finish, finish_within, first_error};
use crate::worker::{GOOD, Worker};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Fenced programs are built at these levels in turn; native ones always at `-O1`.
const LEVELS: [&str; 6] = ["-O0", "-O1", "-O2", "-O3", "-Os", "-O3 -march=x86-64-v3"];
/// A program that runs longer natively is not worth its time.
const NATIVE_PATIENCE: Duration = Duration::from_secs(3);
/// For some seeds csmith looks for a program without end; it takes a second for the others.
const GENERATOR_PATIENCE: Duration = Duration::from_secs(60);

/// What became of a seed.
enum Compared {
    /// Both print the same.
    Equal,
    /// The native program runs too long, or fails.
    Long,
    /// The generator made no program of it.
    NoProgram,
}

/// Compares `count` programs; whether all agree.
pub fn run(count: usize, options: &Options) -> Result<bool, String> {
    std::fs::create_dir_all(&options.build).map_err(|e| format!("{}: {e}", options.build.display()))?;
    let next = AtomicUsize::new(0);
    let [passed, failed, long, none] = [const { AtomicUsize::new(0) }; 4];
    std::thread::scope(|scope| {
        for _ in 0..options.jobs {
            scope.spawn(|| {
                let mut worker = Worker::new();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= count {
                        break;
                    }
                    let seed = options.seed + index as u64;
                    let level = LEVELS[index % LEVELS.len()];
                    let counter = match compare(&mut worker, seed, level, options) {
                        Ok(Compared::Equal) => &passed,
                        Ok(Compared::Long) => &long,
                        Ok(Compared::NoProgram) => &none,
                        Err(why) => {
                            println!("csmith --seed {seed}, {level}: {why}");
                            &failed
                        }
                    };
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let [passed, failed, long, none] = [passed, failed, long, none].map(AtomicUsize::into_inner);
    println!("random programs: {long} ran too long natively to compare, {none} seeds made none in time");
    println!("random: {passed} passed, {failed} failed");
    Ok(failed == 0)
}

/// Compares one program.
fn compare(worker: &mut Worker, seed: u64, level: &str, options: &Options) -> Result<Compared, String> {
    let path = |extension: &str| options.build.join(format!("random{seed}.{extension}"));
    let (source, native, module) = (path("c"), path("native"), absolute(&path("rf")));
    // It reads a file `platform.info` where it runs, or makes it: another one at the same time would find half of it.
    let place = path("directory");
    std::fs::create_dir_all(&place).map_err(|e| format!("{}: {e}", place.display()))?;
    let mut csmith = Command::new("csmith");
    csmith
        .current_dir(&place)
        .arg("--seed")
        .arg(seed.to_string())
        .arg("-o")
        .arg(absolute(&source))
        .stdout(Stdio::null());
    let made = finish_within(GENERATOR_PATIENCE, &mut csmith);
    // What stays behind disturbs nobody.
    let _ = std::fs::remove_dir_all(&place);
    match made {
        Ok(Some((true, _))) => {}
        Ok(Some((false, said))) | Err(said) => return Err(format!("csmith: {}", first_error(&said))),
        Ok(None) => {
            remove(&[&source]);
            return Ok(Compared::NoProgram);
        }
    }
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-w", "-I/usr/include/csmith", "-o"])
        .arg(&native)
        .arg(&source);
    done(&mut gcc).map_err(|e| format!("gcc: {e}"))?;
    let Some(expected) = output(&native) else {
        remove(&[&source, &native]);
        return Ok(Compared::Long);
    };
    let mut ringfence = Command::new(std::env::var_os("RINGFENCE").unwrap_or_else(|| "ringfence".into()));
    ringfence
        .arg("cc")
        .args(level.split(' '))
        .args(["-w", "-I/usr/include/csmith", "-o"])
        .arg(&module)
        .arg(&source);
    done(&mut ringfence).map_err(|e| format!("does not build: {e}"))?;
    let fenced = worker.ask(&module)?;
    let Some(got) = fenced.strip_prefix(GOOD) else {
        return Err(fenced);
    };
    if got != expected {
        return Err(format!(
            "prints '{got}' where the native program prints '{expected}'"
        ));
    }
    remove(&[&source, &native, &module]);
    Ok(Compared::Equal)
}

fn remove(files: &[&Path]) {
    for file in files {
        let _ = std::fs::remove_file(file);
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn done(command: &mut Command) -> Result<(), String> {
    match finish(command) {
        Ok((true, _)) => Ok(()),
        Ok((false, said)) | Err(said) => Err(first_error(&said)),
    }
}

/// What a native program prints, escaped; `None` if it takes too long or fails.
fn output(program: &Path) -> Option<String> {
    let run = Command::new("timeout")
        .arg(NATIVE_PATIENCE.as_secs().to_string())
        .arg(absolute(program))
        .stderr(Stdio::null())
        .output()
        .ok()?;
    run.status
        .success()
        .then(|| run.stdout.escape_ascii().to_string())
}
