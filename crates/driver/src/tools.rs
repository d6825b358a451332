//! The compiler, the assembler and the sysroot, and how they are run.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use ringfence_isa::{Addressing, Isolation};

use crate::args::{Front, Invocation};
use crate::error::Error;

/// What a run works with.
#[derive(Debug)]
pub struct Tools {
    /// The compiler's command.
    pub compiler: String,
    compiler_variable: &'static str,
    assembler: String,
    /// The directory with headers and libraries for fenced code, if there is one.
    pub sysroot: Option<PathBuf>,
    verbose: bool,
    dry_run: bool,
}

impl Tools {
    /// Finds the tools: `RINGFENCE_CC`, `RINGFENCE_CXX`, `RINGFENCE_AS` and `RINGFENCE_SYSROOT` override the defaults.
    ///
    /// # Errors
    ///
    /// A compiler that cannot be used.
    pub fn find(inv: &Invocation) -> Result<Tools, Error> {
        let (variable, default) = match inv.front {
            Front::C => ("RINGFENCE_CC", "gcc"),
            Front::Cxx => ("RINGFENCE_CXX", "g++"),
        };
        let chosen = env::var(variable).ok().filter(|v| !v.is_empty());
        let tools = Tools {
            compiler: chosen.clone().unwrap_or_else(|| default.to_owned()),
            compiler_variable: variable,
            assembler: env::var("RINGFENCE_AS").unwrap_or_else(|_| "as".to_owned()),
            sysroot: sysroot(inv)?,
            verbose: inv.verbose,
            dry_run: inv.dry_run,
        };
        // The default is what the distribution calls gcc; only a compiler that somebody chose is asked who it is.
        if chosen.is_some() {
            tools.check_compiler()?;
        }
        Ok(tools)
    }

    /// The compiler's own word on what it is, once it was found good enough.
    pub(crate) fn version(&self) -> Result<String, Error> {
        self.check_compiler()?;
        let out = self.capture(&["--version".to_owned()])?;
        let text = String::from_utf8_lossy(&out.stdout);
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    fn check_compiler(&self) -> Result<(), Error> {
        let name = Path::new(&self.compiler)
            .file_name()
            .map(|n| n.to_string_lossy().into_owned());
        let version = if name.is_some_and(|n| n.contains("clang")) {
            "clang".to_owned()
        } else {
            let out = self.capture(&["--version".to_owned()])?;
            String::from_utf8_lossy(&out.stdout).into_owned()
        };
        if version.contains("clang") {
            return Err(Error::Clang(self.compiler.clone()));
        }
        let out = self.capture(&["-dumpversion".to_owned()])?;
        let number = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        match number.split('.').next().and_then(|m| m.parse::<u32>().ok()) {
            Some(major) if major >= 12 => Ok(()),
            _ => Err(Error::OldCompiler {
                compiler: self.compiler.clone(),
                version: number,
            }),
        }
    }

    fn command(&self, args: &[String]) -> Command {
        let mut words = self.compiler.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("gcc"));
        command.args(words).args(args);
        command
    }

    fn show(&self, tool: &str, args: &[String]) {
        if self.verbose || self.dry_run {
            let mut line = format!(" {tool}");
            for a in args {
                line.push(' ');
                line.push_str(&quote(a));
            }
            eprintln!("{line}");
        }
    }

    /// Whether commands are only shown.
    #[must_use]
    pub fn dry_run(&self) -> bool {
        self.dry_run
    }

    fn tool_error(&self, source: std::io::Error) -> Error {
        Error::Tool {
            tool: self.compiler.clone(),
            variable: self.compiler_variable,
            source,
        }
    }

    /// Runs the compiler with everything inherited and returns its exit status.
    pub(crate) fn pass_on(&self, args: &[String]) -> Result<i32, Error> {
        self.show(&self.compiler, args);
        if self.dry_run {
            return Ok(0);
        }
        let status = self.command(args).status().map_err(|e| self.tool_error(e))?;
        Ok(status.code().unwrap_or(1))
    }

    /// Runs the compiler and takes its standard output; messages go to the user.
    pub(crate) fn compile(&self, args: &[String]) -> Result<Vec<u8>, Error> {
        self.show(&self.compiler, args);
        if self.dry_run {
            return Ok(Vec::new());
        }
        let out = self
            .command(args)
            .stdin(Stdio::inherit())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|e| self.tool_error(e))?;
        if !out.status.success() {
            return Err(Error::Failed(
                self.compiler.clone(),
                out.status.code().unwrap_or(1),
            ));
        }
        Ok(out.stdout)
    }

    /// Runs the compiler and takes everything it prints, in the language that the linker's messages are parsed in.
    pub(crate) fn capture(&self, args: &[String]) -> Result<Output, Error> {
        self.show(&self.compiler, args);
        self.command(args)
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|e| self.tool_error(e))
    }

    /// Assembles `text` into the file `output`; the assembler's messages are the error.
    pub(crate) fn assemble(&self, text: &str, output: &str, flags: &[String]) -> Result<(), String> {
        let mut args = vec!["--64".to_owned()];
        args.extend_from_slice(flags);
        args.extend(["-o".to_owned(), output.to_owned(), "--".to_owned()]);
        self.show(&self.assembler, &args);
        if self.dry_run {
            return Ok(());
        }
        let hint = |e: std::io::Error| format!("cannot run {}: {e}; set RINGFENCE_AS", self.assembler);
        let mut child = Command::new(&self.assembler)
            .args(&args)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(hint)?;
        let mut stdin = child.stdin.take();
        let out = std::thread::scope(|scope| {
            // In a thread of its own: an assembler with much to say would otherwise wait for us, and we for it.
            scope.spawn(move || {
                if let Some(pipe) = stdin.as_mut() {
                    // An assembler that stops reading says why on its standard error.
                    let _ = pipe.write_all(text.as_bytes());
                }
                drop(stdin);
            });
            child.wait_with_output().map_err(hint)
        })?;
        let messages = String::from_utf8_lossy(&out.stderr).into_owned();
        if out.status.success() {
            eprint!("{messages}");
            Ok(())
        } else {
            Err(messages)
        }
    }

    /// The compiler's own directory of headers.
    pub(crate) fn compiler_include(&self) -> Result<String, Error> {
        let out = self.capture(&["-print-file-name=include".to_owned()])?;
        Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned())
    }

    /// Whether there is a C library, and the command line wants it.
    pub(crate) fn hosted(&self, inv: &Invocation) -> bool {
        !inv.freestanding && self.sysroot_file("lib/libc.a").is_some()
    }

    /// A library or start file in the sysroot, if it is there: of those that are compiled for the
    /// addressing and isolation, if there are.
    pub(crate) fn library(&self, inv: &Invocation, name: &str) -> Option<String> {
        let special = match (inv.own.addressing, inv.own.isolation) {
            (Addressing::Segment, _) => self.sysroot_file(&format!("segment/{name}")),
            (Addressing::Any, Isolation::Words) => self.sysroot_file(&format!("words/{name}")),
            _ => None,
        };
        special.or_else(|| self.sysroot_file(name))
    }

    /// Whether a file is one of the sysroot's.
    pub(crate) fn is_of_sysroot(&self, path: &str) -> bool {
        self.sysroot
            .as_ref()
            .is_some_and(|dir| Path::new(path).starts_with(dir))
    }

    /// A file in the sysroot, if it is there.
    pub(crate) fn sysroot_file(&self, name: &str) -> Option<String> {
        let path = self.sysroot.as_ref()?.join(name);
        path.exists().then(|| path.to_string_lossy().into_owned())
    }
}

/// `--sysroot-rf`, or `RINGFENCE_SYSROOT` (either may be empty: none), or `lib/ringfence/sysroot` beside the directory of
/// the running program, or `build/sysroot` of the source tree that it was built in.
pub(crate) fn sysroot(inv: &Invocation) -> Result<Option<PathBuf>, Error> {
    let named = inv.own.sysroot.clone();
    if let Some(dir) = named.or_else(|| env::var_os("RINGFENCE_SYSROOT").map(PathBuf::from)) {
        // Without this one the host's own headers would be taken, and nothing would say so.
        return match dir.as_os_str().is_empty() {
            true => Ok(None),
            false if dir.is_dir() => Ok(Some(dir)),
            false => Err(Error::NoSysroot(dir.display().to_string())),
        };
    }
    let Some(prefix) = env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.to_owned()))
    else {
        return Ok(None);
    };
    Ok(["lib/ringfence/sysroot", "../build/sysroot", "build/sysroot"]
        .iter()
        .map(|d| prefix.join(d))
        .find(|d| d.is_dir()))
}

/// A word as a shell would take it.
pub(crate) fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./,:@%^~".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}
