//! Ringfence's own options.

use std::path::PathBuf;

use ringfence_isa::Isolation;

use super::Invocation;
use crate::error::Error;

/// Options that gcc does not know.
#[derive(Clone, Debug, Default)]
pub struct Own {
    /// `--isolation=`.
    pub isolation: Isolation,
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
    /// `--wrapper=`: programs become a script that runs them with these options of `ringfence run`.
    pub wrapper: Option<String>,
    /// `--import=`, and the names in `--imports-from=` files.
    pub imports: Vec<String>,
    /// `--import-data=`.
    pub data_imports: Vec<String>,
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
                self.own.isolation = match value(name)?.as_str() {
                    "full" => Isolation::Full,
                    "integrity" => Isolation::Integrity,
                    other => {
                        return Err(Error::BadValue {
                            option: "--isolation",
                            value: other.to_owned(),
                            choices: "full, integrity",
                        });
                    }
                }
            }
            "--check" => self.own.check = true,
            "--no-rewrite" => self.own.no_rewrite = true,
            "--no-verify" => self.own.no_verify = true,
            "--print-flags" => self.own.print_flags = true,
            // Not with a word of its own: `--wrapper prog.c` would be taken for options.
            "--wrapper" => self.own.wrapper = Some(arg.split_once('=').map_or("", |(_, v)| v).to_owned()),
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
