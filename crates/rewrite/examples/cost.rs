//! What rewriting costs beside the compile itself:
//! `cargo run --release -p ringfence-rewrite --example cost -- [--runs N] [--ringfence COMMAND] FILE.c… [-- FLAGS…]`
//!
//! Processor time, medians of interleaved runs: gcc alone, gcc with the flags of a fenced compile, the rewriter, and with
//! `--ringfence` a whole `ringfence cc -c` against `gcc -c`.

use ringfence_rewrite::{FlagKind, Options, compile_flags, rewrite};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("cost: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let (mut runs, mut ringfence, mut files) = (9, None, Vec::new());
    let mut flags = vec!["-O2".to_owned()];
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--runs" => {
                runs = args
                    .next()
                    .and_then(|n| n.parse().ok())
                    .ok_or("--runs needs a number")?
            }
            "--ringfence" => ringfence = Some(args.next().ok_or("--ringfence needs a command")?),
            "--" => {
                flags = args.by_ref().collect();
            }
            _ => files.push(arg),
        }
    }
    if files.is_empty() || runs == 0 {
        return Err("usage: cost [--runs N] [--ringfence COMMAND] FILE.c… [-- FLAGS…]".into());
    }
    println!(
        "{:<24} {:>10} {:>10} {:>10} {:>8}   {:>10} {:>10} {:>8}",
        "milliseconds", "gcc -S", "fenced -S", "rewriter", "of gcc", "gcc -c", "cc -c", "ratio"
    );
    let mut total = [0.0; 5];
    for file in &files {
        let row = measure(file, &flags, ringfence.as_deref(), runs)?;
        let name = file.rsplit('/').next().unwrap_or(file);
        show(name, row);
        for (t, r) in total.iter_mut().zip(row) {
            *t += r;
        }
    }
    if files.len() > 1 {
        show("all", total);
    }
    Ok(())
}

fn show(name: &str, [plain, fenced, rewriter, native, whole]: [f64; 5]) {
    print!(
        "{name:<24} {plain:>10.1} {fenced:>10.1} {rewriter:>10.1} {:>7.1}%",
        100.0 * rewriter / plain
    );
    if whole > 0.0 {
        print!("   {native:>10.1} {whole:>10.1} {:>8.3}", whole / native);
    }
    println!();
}

/// Medians in milliseconds: gcc's assembly, with our flags, rewriting it, and both kinds of object.
fn measure(file: &str, flags: &[String], ringfence: Option<&str>, runs: usize) -> Result<[f64; 5], String> {
    let mut times: [Vec<Duration>; 5] = Default::default();
    for _ in 0..runs {
        let (plain, _) = child("gcc", &[], flags, &["-S", "-o", "-", file])?;
        let ours: Vec<String> = compile_flags(FlagKind::Compile)
            .iter()
            .map(|f| (*f).to_owned())
            .collect();
        let all = [flags, &ours].concat();
        let (fenced, text) = child("gcc", &[], &all, &["-S", "-o", "-", file])?;
        let text = String::from_utf8(text).map_err(|e| e.to_string())?;
        let before = own_time();
        let out = rewrite(&text, file, &Options::default()).map_err(|e| e.to_string())?;
        let rewriter = own_time() - before;
        std::hint::black_box(out);
        times[0].push(plain);
        times[1].push(fenced);
        times[2].push(rewriter);
        if let Some(command) = ringfence {
            times[3].push(child("gcc", &[], flags, &["-c", "-o", "/dev/null", file])?.0);
            times[4].push(child(command, &["cc"], flags, &["-c", "-o", "/dev/null", file])?.0);
        }
    }
    Ok(times.map(|mut t| {
        t.sort_unstable();
        t.get(t.len() / 2).map_or(0.0, |d| d.as_secs_f64() * 1e3)
    }))
}

/// Runs a command, and returns what processor time it and its own children took, and what it printed.
fn child(
    program: &str,
    first: &[&str],
    flags: &[String],
    last: &[&str],
) -> Result<(Duration, Vec<u8>), String> {
    let before = usage(libc::RUSAGE_CHILDREN);
    let out = Command::new(program)
        .args(first)
        .args(flags)
        .args(last)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("{program}: {e}"))?;
    if !out.status.success() {
        return Err(format!("{program} failed"));
    }
    Ok((usage(libc::RUSAGE_CHILDREN) - before, out.stdout))
}

fn own_time() -> Duration {
    usage(libc::RUSAGE_SELF)
}

fn usage(who: libc::c_int) -> Duration {
    // SAFETY: all zeroes is a valid value of this struct of numbers, which the call fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &raw mut usage);
        usage
    };
    let of =
        |t: libc::timeval| Duration::new(t.tv_sec.unsigned_abs(), 1000 * t.tv_usec.unsigned_abs() as u32);
    of(usage.ru_utime) + of(usage.ru_stime)
}
