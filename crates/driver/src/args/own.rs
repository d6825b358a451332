//! Ringfence's own options.

use std::path::PathBuf;

use ringfence_isa::{Addressing, Isolation};

use super::{Front, Invocation};
use crate::error::Error;

/// Options that gcc does not know.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// `--isolation=`.
    pub isolation: Isolation,
    /// `--addressing=`.
    pub addressing: Addressing,
    /// `--twin`: objects have two more beside them: one reaches memory through `gs` only, one has the words mode.
    pub twin: bool,
    /// `--check`: accesses outside the window trap at the instruction.
    pub check: bool,
    /// `--no-rewrite`: assembly is linked as it is.
    pub no_rewrite: bool,
    /// `--no-verify`: a module that breaks the rules is written all the same.
    pub no_verify: bool,
    /// `--print-flags`.
    pub print_flags: bool,
    /// `--sysroot-rf`.
    pub sysroot: Option<PathBuf>,
    /// `--rdtsc=clock`: what asks for the time-stamp counter gets the host's clock.
    pub clock: bool,
    /// `--wrapper=`: programs become a script that runs them with these options of `ringfence run`.
    pub wrapper: Option<String>,
    /// `--import=`, and the names in `--imports-from=` files.
    pub imports: Vec<String>,
    /// `--import-data=`.
    pub data_imports: Vec<String>,
}

/// The options, their arguments, and a line for each.
const OPTIONS: &[(&str, &str, &str)] = &[
    (
        "--isolation",
        "=full|integrity|words",
        "confine all accesses (default), or stores and jumps only; words: and reach an arena of the host's by its rights",
    ),
    (
        "--addressing",
        "=any|segment",
        "reach memory by any form of operands (default), or through gs only",
    ),
    (
        "--twin",
        "",
        "with -c, also write OUTPUT.segment.o and OUTPUT.words.o: the same with --addressing=segment, --isolation=words",
    ),
    (
        "--check",
        "",
        "accesses outside the window trap at the instruction, for debugging",
    ),
    (
        "--import",
        "=NAME,…",
        "functions that the host or another module gives",
    ),
    ("--import-data", "=NAME,…", "variables that another module gives"),
    (
        "--imports-from",
        "=FILE",
        "the same from a file: a name a line, variables as `data NAME`",
    ),
    (
        "--rdtsc",
        "=clock",
        "rdtsc reads the host's clock, by a system call, in nanoseconds",
    ),
    (
        "--wrapper",
        "[=OPTIONS]",
        "make programs scripts that run themselves with `ringfence run OPTIONS` (default --native)",
    ),
    (
        "--sysroot-rf",
        "=DIRECTORY",
        "the fenced libraries and headers, if not those beside this command",
    ),
    (
        "--print-flags",
        "",
        "print what is added to gcc's command line, and stop",
    ),
    (
        "--no-rewrite",
        "",
        "take assembly as it is; the verifier still decides",
    ),
    (
        "--no-verify",
        "",
        "write a module that breaks the rules all the same; no host will load it",
    ),
];

/// What `--help` says before gcc does.
pub(crate) fn help(front: Front) -> String {
    let mut text = format!(
        "Usage: {front} [options] file...\n\
         Compiles and links fenced modules (NAME.rf). Takes gcc's command line, and these options:\n"
    );
    for (name, argument, what) in OPTIONS {
        text += &format!("  {:<28} {what}\n", format!("{name}{argument}"));
    }
    text + "A link with main makes a program for `ringfence run`, one without, or with -shared, a library.\n\nOptions of gcc:\n"
}

impl Invocation {
    /// Ringfence's own options; true when `arg` was one.
    pub(super) fn own_option(
        &mut self,
        arg: &str,
        it: &mut impl Iterator<Item = String>,
    ) -> Result<bool, Error> {
        let (name, value) = match arg.split_once('=') {
            Some((n, v)) => (n, Some(v.to_owned())),
            None => (arg, None),
        };
        let mut value = |what: &str| {
            value
                .clone()
                .or_else(|| it.next())
                .ok_or_else(|| Error::MissingArgument(what.to_owned()))
        };
        match name {
            "--isolation" => {
                let name = value(name)?;
                self.own.isolation = Isolation::named(&name).ok_or(Error::BadValue {
                    option: "--isolation",
                    value: name,
                    choices: "full, integrity, words",
                })?;
            }
            "--addressing" => {
                let name = value(name)?;
                self.own.addressing = Addressing::named(&name).ok_or(Error::BadValue {
                    option: "--addressing",
                    value: name,
                    choices: "any, segment",
                })?;
            }
            "--twin" => self.own.twin = true,
            "--check" => self.own.check = true,
            "--rdtsc" => match value(name)?.as_str() {
                "clock" => self.own.clock = true,
                other => {
                    return Err(Error::BadValue {
                        option: "--rdtsc",
                        value: other.to_owned(),
                        choices: "clock",
                    });
                }
            },
            "--no-rewrite" => self.own.no_rewrite = true,
            "--no-verify" => self.own.no_verify = true,
            "--print-flags" => self.own.print_flags = true,
            // Not with a word of its own: `--wrapper prog.c` would be taken for options.
            "--wrapper" => {
                self.own.wrapper = Some(arg.split_once('=').map_or("--native", |(_, v)| v).to_owned());
            }
            "--sysroot-rf" => self.own.sysroot = Some(PathBuf::from(value(name)?)),
            "--import" => {
                let names = value(name)?;
                self.own.imports.extend(names.split(',').map(str::to_owned));
            }
            "--import-data" => {
                let names = value(name)?;
                self.own.data_imports.extend(names.split(',').map(str::to_owned));
            }
            "--imports-from" => {
                let file = value(name)?;
                let text = std::fs::read_to_string(&file).map_err(|e| Error::read(&file, e))?;
                for line in text.lines().map(|l| l.split('#').next().unwrap_or("").trim()) {
                    match line.split_once(char::is_whitespace) {
                        Some(("data", n)) => self.own.data_imports.push(n.trim().to_owned()),
                        Some(_) => {
                            return Err(Error::ImportsFile {
                                file,
                                line: line.to_owned(),
                            });
                        }
                        None if line.is_empty() => {}
                        None => self.own.imports.push(line.to_owned()),
                    }
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::OPTIONS;

    #[test]
    fn the_help_has_all_options_and_no_other() {
        let source = include_str!("own.rs");
        let parsed: Vec<&str> = source
            .lines()
            .filter_map(|l| l.trim_start().strip_prefix("\"--")?.split_once("\" =>"))
            .map(|(name, _)| name)
            .collect();
        assert!(parsed.len() > 5, "the options are parsed in this file");
        let mut told: Vec<&str> = OPTIONS.iter().map(|(name, ..)| &name[2..]).collect();
        let mut parsed_sorted = parsed.clone();
        told.sort_unstable();
        parsed_sorted.sort_unstable();
        assert_eq!(told, parsed_sorted);
    }
}
