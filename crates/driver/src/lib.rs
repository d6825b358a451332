//! Drop-in gcc and g++ drivers that yield fenced modules, and what looks at modules from outside.
//!
//! [`cc`] is the whole of `ringfence cc`: gcc compiles to assembly, the rewriter fences it, the assembler makes an
//! object; a link ends with the finalizer and the verifier. [`image`], [`check`] and [`inspect`] read the result.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod args;
pub mod check;
mod compile;
mod error;
pub mod finalize;
pub mod image;
mod inputs;
pub mod inspect;
mod link;
mod nudge;
mod room;
mod temp;
mod tools;

pub use error::{Error, Undefined};
pub use inputs::linked_with;

use args::{Front, Invocation, Item, Language, Mode};
use compile::{Compiler, stem};
use temp::TempDir;
use tools::Tools;

/// Runs `ringfence cc` (or `c++`) with the arguments that follow it, prints what there is to print, and returns the
/// exit status.
#[must_use]
pub fn cc(front: Front, args: Vec<std::ffi::OsString>) -> i32 {
    match args
        .into_iter()
        .map(std::ffi::OsString::into_string)
        .collect::<Result<Vec<_>, _>>()
    {
        Err(bad) => {
            eprintln!(
                "ringfence: error: the argument '{}' is not UTF-8; rename the file",
                bad.to_string_lossy()
            );
            1
        }
        Ok(args) => match run(front, args) {
            Ok(status) => status,
            // The tool has said it all.
            Err(Error::Failed(tool, status)) => {
                eprintln!("ringfence: error: {tool} failed; its messages are above");
                status
            }
            Err(e) => {
                eprintln!("ringfence: error: {e}");
                e.status()
            }
        },
    }
}

fn run(front: Front, args: Vec<String>) -> Result<i32, Error> {
    let inv = Invocation::parse(front, args)?;
    let tools = Tools::find(&inv)?;
    for note in &inv.notes {
        eprintln!("ringfence: note: {note}");
    }
    if inv.own.print_flags {
        print_flags(&inv, &tools)?;
        return Ok(0);
    }
    if inv.mode == Mode::PassOn || !inv.has_inputs() {
        return pass_on(&inv, &tools);
    }
    let compiled: Vec<(&str, &Language)> = inv
        .items
        .iter()
        .filter_map(|i| match i {
            Item::Input {
                language: Language::Linker,
                ..
            } => None,
            Item::Input { path, language } => Some((path.as_str(), language)),
            _ => None,
        })
        .collect();
    if matches!(inv.mode, Mode::Object | Mode::Assembly) {
        for item in &inv.items {
            if let Item::Input {
                path,
                language: Language::Linker,
            } = item
            {
                eprintln!("ringfence: warning: {path}: linker input file unused because linking not done");
            }
        }
        if inv.output.is_some() && compiled.len() > 1 {
            return Err(Error::OneOutput);
        }
    }
    match inv.mode {
        Mode::PassOn => unreachable!("handled above"),
        Mode::Check => {
            let mut flags = compile::flags(&inv, &tools)?;
            flags.extend(compiled.iter().map(|(path, _)| (*path).to_owned()));
            tools.pass_on(&flags)
        }
        Mode::Assembly => {
            let compiler = Compiler::new(&inv, &tools)?;
            for (path, language) in compiled {
                let output = inv.output.clone().unwrap_or_else(|| format!("{}.s", stem(path)));
                let target = inv.output.clone().unwrap_or_else(|| format!("{}.o", stem(path)));
                let text = compiler.assembly(path, language, &target)?;
                if tools.dry_run() {
                    continue;
                }
                let text = if inv.own.no_rewrite {
                    text
                } else {
                    format!("{}\n{text}", compile::FENCED)
                };
                if output == "-" {
                    print!("{text}");
                } else {
                    std::fs::write(&output, text).map_err(|e| Error::read(&output, e))?;
                }
            }
            Ok(0)
        }
        Mode::Object => {
            let compiler = Compiler::new(&inv, &tools)?;
            for (path, language) in compiled {
                let output = inv.output.clone().unwrap_or_else(|| format!("{}.o", stem(path)));
                compiler.object(path, language, &output, &output)?;
            }
            Ok(0)
        }
        Mode::Relocatable | Mode::Link => {
            let temp = TempDir::new()?;
            let mut objects = Vec::new();
            if !compiled.is_empty() {
                let compiler = Compiler::new(&inv, &tools)?;
                let program = inv.output.as_deref().unwrap_or("a");
                for (n, (path, language)) in compiled.iter().enumerate() {
                    let object = temp.file(&format!("{n}.o"));
                    // gcc names the dependency file of a source that is compiled and linked at once like this.
                    let target = format!("{program}-{}.o", stem(path));
                    compiler.object(path, language, &object, &target)?;
                    objects.push(object);
                }
            }
            if inv.mode == Mode::Relocatable {
                link::relocatable(&inv, &tools, objects)?;
            } else {
                link::link(&inv, &tools, &temp, objects)?;
            }
            Ok(0)
        }
    }
}

/// The compiler that a front would run: the first line of what it says about itself.
///
/// # Errors
///
/// There is none, or it is too old, or it is Clang.
pub fn compiler(front: Front) -> Result<String, Error> {
    let inv = Invocation::parse(front, vec!["--version".to_owned()])?;
    Tools::find(&inv)?.version()
}

/// The directory with headers and libraries for fenced code, if there is one.
///
/// # Errors
///
/// `RINGFENCE_SYSROOT` names one that is not there.
pub fn sysroot() -> Result<Option<std::path::PathBuf>, Error> {
    let inv = Invocation::parse(Front::C, Vec::new())?;
    tools::sysroot(&inv)
}

/// What gcc answers by itself: preprocessing and dependencies with the flags of a fenced compile, questions as they are.
fn pass_on(inv: &Invocation, tools: &Tools) -> Result<i32, Error> {
    let preprocesses = inv.raw.iter().any(|a| matches!(a.as_str(), "-E" | "-M" | "-MM"));
    let asks_version = inv.raw.iter().any(|a| a == "--version");
    if !preprocesses {
        if let Some(name) = inv.raw.iter().find_map(|a| a.strip_prefix("-print-file-name="))
            && let Some(path) = tools.sysroot_file(&format!("lib/{name}"))
        {
            println!("{path}");
            return Ok(0);
        }
        if inv.raw.iter().any(|a| a == "-print-libgcc-file-name")
            && let Some(path) = tools.sysroot_file("lib/libgcc.a")
        {
            println!("{path}");
            return Ok(0);
        }
        if !inv.has_inputs() && !inv.verbose && inv.raw.iter().all(|a| !args::is_question(a)) {
            return Err(Error::NoInputs);
        }
        if inv.raw.iter().any(|a| a == "--help") {
            print!("{}", args::help(inv.front));
            // gcc writes the rest to the same place.
            std::io::Write::flush(&mut std::io::stdout()).map_err(|e| Error::read("<stdout>", e))?;
        }
        // The fenced libc is musl, and its headers lie in no directory of the distribution's.
        let asks = |names: &[&str]| inv.raw.iter().any(|a| names.contains(&a.as_str()));
        if tools.hosted(inv) && !inv.has_inputs() {
            if asks(&["-dumpmachine", "--dump-machine"]) {
                println!("x86_64-linux-musl");
                return Ok(0);
            }
            if asks(&["-print-multiarch", "--print-multiarch"]) {
                println!();
                return Ok(0);
            }
        }
        let status = tools.pass_on(&inv.raw)?;
        if asks_version {
            println!("Driven by {} {}", inv.front, env!("CARGO_PKG_VERSION"));
        }
        return Ok(status);
    }
    if !inv.has_inputs() {
        return Err(Error::NoInputs);
    }
    let mut flags = compile::flags(inv, tools)?;
    if let Some(output) = &inv.output {
        flags.extend(["-o".to_owned(), output.clone()]);
    }
    for item in &inv.items {
        if let Item::Input { path, language } = item {
            let x = match language {
                Language::Source(Some(name)) => name.as_str(),
                Language::AssemblyCpp => "assembler-with-cpp",
                _ => "none",
            };
            flags.extend(["-x".to_owned(), x.to_owned(), path.clone()]);
        }
    }
    tools.pass_on(&flags)
}

fn print_flags(inv: &Invocation, tools: &Tools) -> Result<(), Error> {
    let words = |flags: &[String]| {
        flags
            .iter()
            .map(|f| tools::quote(f))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let compiler = Compiler::new(inv, tools)?;
    println!("compiler: {}", tools.compiler);
    println!("compile:  {}", words(compiler.flags()));
    println!(
        "link:     {}",
        words(&link::FLAGS.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
    );
    println!("rewriter: {}", env!("RINGFENCE_REWRITER"));
    match &tools.sysroot {
        Some(dir) => println!("sysroot:  {}", dir.display()),
        None => println!("sysroot:  none (--sysroot-rf DIR, or RINGFENCE_SYSROOT)"),
    }
    Ok(())
}
