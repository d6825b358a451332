//! What Ringfence is for, in one screen: a fenced library at work, and a hostile one that gets nowhere.

mod attacks;
mod codec;
mod show;

use ringfence::{Error, Imports, Module};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// How much of the file is compressed.
const MEGABYTES: usize = 6;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let smoke = args.iter().any(|a| a == "--smoke");
    let [dir, file, ..] = args.as_slice() else {
        eprintln!("usage: ringfence-demo MODULES FILE [--smoke]");
        return ExitCode::from(2);
    };
    let mut show = show::Show::new();
    let done = library(&mut show, Path::new(dir), Path::new(file))
        .and_then(|()| calls(&mut show, Path::new(dir), smoke))
        .and_then(|()| attacks::run(&mut show, &Path::new(dir).join("hostile.rf")));
    if let Err(error) = done {
        show.fail("the demo", &error.to_string());
    }
    smuggled(&mut show, &Path::new(dir).join("smuggle.rf"));
    show.end()
}

/// zlib, fenced and not, on the same bytes.
fn library(show: &mut show::Show, dir: &Path, file: &Path) -> Result<(), Error> {
    show.title("A library behind a fence: zlib, unmodified, in a domain of this process");
    let mut input = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(e) => {
            show.fail("input", &format!("{}: {e}", file.display()));
            return Ok(());
        }
    };
    input.truncate(MEGABYTES << 20);
    let native = match codec::Native::load(&dir.join("zlib.so")) {
        Ok(native) => native,
        Err(e) => {
            show.fail("zlib.so", &e);
            return Ok(());
        }
    };
    let start = Instant::now();
    let module = Module::open(dir.join("zlib.rf"))?;
    let verified = start.elapsed();
    let domain = module.instantiate(Imports::new())?;
    show.fact(
        "loaded and verified",
        &format!("zlib.rf in {:.1} ms", verified.as_secs_f64() * 1e3),
    );
    show.fact(
        "input",
        &format!("{:.1} MB of {}", input.len() as f64 / 1e6, file.display()),
    );

    let (plain, native_time) = timed(|| native.compress(&input));
    let (fenced, fenced_time) = timed(|| codec::compress(&domain, &input));
    let fenced = fenced?;
    show.check(
        "compressed",
        plain == fenced,
        &format!(
            "{} bytes, {} the unfenced library's; {:.0} ms fenced, {:.0} ms unfenced",
            fenced.len(),
            if plain == fenced { "the same as" } else { "NOT" },
            fenced_time * 1e3,
            native_time * 1e3
        ),
    );
    let (restored, fenced_time) = timed(|| codec::restore(&domain, &fenced, input.len()));
    let (_, native_time) = timed(|| native.restore(&fenced, input.len()));
    let same = restored? == input;
    show.check(
        "restored",
        same,
        &format!(
            "{} the input; {:.0} ms fenced, {:.0} ms unfenced",
            if same { "byte for byte" } else { "NOT" },
            fenced_time * 1e3,
            native_time * 1e3
        ),
    );
    Ok(())
}

/// The price of a call.
fn calls(show: &mut show::Show, dir: &Path, smoke: bool) -> Result<(), Error> {
    extern "C" fn plain_add(a: i32, b: i32) -> i32 {
        a.wrapping_add(b)
    }
    show.title("What a call costs");
    let turns = if smoke { 100_000 } else { 10_000_000 };
    let domain = Module::open(dir.join("hostile.rf"))?.instantiate(Imports::new())?;
    let add = domain.func::<(i32, i32), i32>("add")?;
    let right = add.call(20, 22)?.one_of(&[42]).is_ok();
    let plain: extern "C" fn(i32, i32) -> i32 = black_box(plain_add);
    let (_, plain_time) = timed(|| {
        for i in 0..turns {
            black_box(black_box(plain)(i, 1));
        }
    });
    let (_, fenced_time) = timed(|| {
        for i in 0..turns {
            let _ = black_box(add.call(i, 1));
        }
    });
    let per_call = |seconds: f64| format!("{:.1} ns", seconds * 1e9 / f64::from(turns));
    show.fact("plain call through a pointer", &per_call(plain_time));
    show.check(
        "call into a domain and back",
        right,
        &format!("{}, result checked for a fault", per_call(fenced_time)),
    );
    Ok(())
}

/// What the verifier says of a module whose author skipped the rewriter.
fn smuggled(show: &mut show::Show, file: &PathBuf) {
    show.title("Code that was never rewritten: a raw system call");
    match Module::open(file) {
        Ok(_) => show.fail("smuggle.rf", "was loaded"),
        Err(error) => show.check("loading it", true, &format!("refused: {error}")),
    }
    let ringfence = std::env::var_os("RINGFENCE").unwrap_or_else(|| "ringfence".into());
    match Command::new(ringfence).arg("verify").arg(file).output() {
        Ok(run) => {
            let said = String::from_utf8_lossy(if run.stdout.is_empty() {
                &run.stderr
            } else {
                &run.stdout
            })
            .into_owned();
            show.check(
                "ringfence verify",
                run.status.code() == Some(1),
                "exit status 1; it says",
            );
            show.quote(&said);
        }
        Err(e) => show.fail("ringfence verify", &e.to_string()),
    }
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}
