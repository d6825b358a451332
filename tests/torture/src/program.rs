//! One program of the suite: its options, how it is built and run.

use crate::options::Options;
use crate::outcome::Outcome;
use crate::worker::Worker;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a compiler, or a native program, may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program and the options that it asks for.
pub struct Program {
    /// Its path below the suite's directory, without extension.
    pub name: String,
    file: PathBuf,
    /// It is in C++.
    pub cxx: bool,
    flags: Vec<String>,
}

impl Program {
    /// Reads a program's options from its comments. `None` if it is a C++ file that is not meant to be run.
    pub fn read(file: &Path, suite: &Path) -> Result<Option<Self>, String> {
        let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        let cxx = file.extension().is_some_and(|e| e == "C");
        let run = text.lines().find(|line| line.contains("dg-do run"));
        if cxx && run.is_none() {
            return Ok(None);
        }
        let mut flags = dg_flags(&text);
        if let Ok(extra) = std::fs::read_to_string(file.with_extension("x")) {
            // the older way to ask for options, a piece of Tcl; one option matters to us
            if extra.contains("lappend additional_flags \"-fno-trapping-math\"") {
                flags.push("-fno-trapping-math".into());
            }
        }
        let standard = |name: &str| run.is_some_and(|line| line.contains(name));
        if cxx && !flags.iter().any(|f| f.starts_with("-std=")) {
            // the suite runs such programs with the newer standards only
            if standard("c++23") {
                flags.push("-std=c++23".into());
            } else if standard("c++20") || standard("c++2a") {
                flags.push("-std=c++20".into());
            }
        }
        let name = file.strip_prefix(suite).unwrap_or(file).with_extension("");
        Ok(Some(Program {
            name: name.to_string_lossy().into_owned(),
            file: std::path::absolute(file).map_err(|e| format!("{}: {e}", file.display()))?,
            cxx,
            flags,
        }))
    }

    /// Builds it with `ringfence cc` and runs it in a domain of the worker's process.
    pub fn run_fenced(&self, worker: &mut Worker, level: &str, options: &Options) -> Outcome {
        let module = self.output(level, options, "rf");
        let ringfence = std::env::var_os("RINGFENCE").unwrap_or_else(|| "ringfence".into());
        let mut command = Command::new(ringfence);
        command.arg(if self.cxx { "c++" } else { "cc" });
        let outcome = match self.compile(command, level, &module) {
            Ok(()) => worker.run(&module),
            Err(why) => Outcome::Build(why),
        };
        if !options.keep {
            let _ = std::fs::remove_file(&module);
        }
        outcome
    }

    /// Builds it with gcc and runs it as a process.
    pub fn run_native(&self, level: &str, options: &Options) -> Outcome {
        let program = self.output(level, options, "native");
        if let Err(why) = self.compile(
            Command::new(if self.cxx { "g++" } else { "gcc" }),
            // gcc has levels only.
            level.split(" --isolation").next().unwrap_or(level),
            &program,
        ) {
            return Outcome::Build(why);
        }
        let outcome = match finish(Command::new(&program).stdout(Stdio::null())) {
            Ok((true, _)) => Outcome::Pass,
            Ok((false, why)) | Err(why) => Outcome::Run(why),
        };
        if !options.keep {
            let _ = std::fs::remove_file(&program);
        }
        outcome
    }

    fn output(&self, level: &str, options: &Options, extension: &str) -> PathBuf {
        let name = format!("{}{}", self.name, level).replace(['/', ' ', '='], "_");
        let path = options.build.join(format!("{name}.{extension}"));
        std::path::absolute(&path).unwrap_or(path)
    }

    fn compile(&self, mut command: Command, level: &str, output: &Path) -> Result<(), String> {
        // some programs have the compiler leave files where it runs
        if let Some(directory) = output.parent() {
            command.current_dir(directory);
        }
        command
            .args(level.split(' '))
            .arg("-w")
            .args(&self.flags)
            .arg("-o")
            .arg(output)
            .arg(&self.file)
            .arg("-lm");
        match finish(command.stdout(Stdio::null())) {
            Ok((true, _)) => Ok(()),
            Ok((false, said)) | Err(said) => Err(first_error(&said)),
        }
    }
}

/// The line of a compiler's messages that tells most.
pub fn first_error(said: &str) -> String {
    let line = said
        .lines()
        .find(|l| l.contains("error"))
        .or(said.lines().next())
        .unwrap_or("no message");
    line.chars().take(240).collect()
}

/// Runs a command to its end: whether it succeeded, and its messages or how it ended.
pub fn finish(command: &mut Command) -> Result<(bool, String), String> {
    match finish_within(PATIENCE, command)? {
        Some(ended) => Ok(ended),
        None => Err(format!("took more than {} s", PATIENCE.as_secs())),
    }
}

/// The same with another patience; `None` if that ran out.
pub fn finish_within(patience: Duration, command: &mut Command) -> Result<Option<(bool, String)>, String> {
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{command:?}: {e}"))?;
    let mut stderr = child.stderr.take();
    let reader = std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(stderr) = &mut stderr {
            let _ = stderr.read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).into_owned()
    });
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            break status;
        }
        if start.elapsed() > patience {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(8));
    };
    let said = reader.join().unwrap_or_default();
    Ok(Some((
        status.success(),
        if said.is_empty() { status.to_string() } else { said },
    )))
}

/// The options that a program's `dg-options` comments ask for on this target.
fn dg_flags(text: &str) -> Vec<String> {
    let mut flags = Vec::new();
    for line in text.lines() {
        let Some(at) = line
            .find("dg-options")
            .or_else(|| line.find("dg-additional-options"))
        else {
            continue;
        };
        let Some((_, rest)) = line[at..].split_once('"') else {
            continue;
        };
        let Some((options, selector)) = rest.split_once('"') else {
            continue;
        };
        let elsewhere = selector.contains("target")
            && (!(selector.contains("x86_64") || selector.contains("fpic")) || selector.contains("ia32"));
        if !elsewhere {
            flags.extend(options.split_whitespace().map(str::to_owned));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::{dg_flags, finish_within, first_error};
    use std::process::Command;
    use std::time::Duration;

    #[test]
    fn patience_runs_out() {
        let patience = Duration::from_millis(50);
        assert_eq!(finish_within(patience, Command::new("sleep").arg("60")), Ok(None));
        let ended = finish_within(Duration::from_secs(60), &mut Command::new("true"));
        assert!(matches!(ended, Ok(Some((true, _)))));
    }

    #[test]
    fn options_of_other_targets_are_left_out() {
        let text = "/* { dg-options \"-fwrapv -w\" } */\n\
                    /* { dg-additional-options \"-mno-eabi\" { target powerpc-*-eabi* } } */\n\
                    /* { dg-options \"-mtune=i686\" { target { { i?86-*-* x86_64-*-* } && ia32 } } } */\n\
                    /* { dg-additional-options \"-mno-mmx\" { target { x86_64-*-* i?86-*-* } } } */";
        assert_eq!(dg_flags(text), ["-fwrapv", "-w", "-mno-mmx"]);
    }

    #[test]
    fn the_error_line_is_found() {
        assert_eq!(first_error("in f:\na.c:3: error: no\nmore"), "a.c:3: error: no");
        assert_eq!(first_error(""), "no message");
    }
}
