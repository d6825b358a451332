//! The `ringfence` command.

#![deny(missing_docs)]
#![forbid(unsafe_code)]

mod added;
mod bench;
mod bind;
mod call;
mod doctor;
mod failure;
mod input;
mod inspect;
mod options;
mod output;
mod plug;
mod run;
mod setup;
mod signature;
mod verify;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use ringfence_driver::args::Front;

/// Fence native extension modules: build them, check them, look at them, call them.
#[derive(Parser)]
#[command(
    name = "ringfence",
    version,
    max_term_width = 100,
    disable_help_subcommand = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Compile and link C into modules: a drop-in for gcc (arguments as gcc's)
    Cc {
        /// gcc's arguments, and: --isolation=full|integrity|words --addressing=any|segment --check --import=NAME --imports-from=FILE --import-data=NAME
        /// --sysroot-rf=DIR --wrapper[=OPTIONS] --no-rewrite --no-verify --print-flags
        args: Vec<OsString>,
    },
    /// Compile and link C++ into modules: a drop-in for g++
    #[command(name = "c++")]
    Cxx {
        /// As for cc
        args: Vec<OsString>,
    },
    /// Check modules, or bare code, against the rules: exit 0 accepted, 1 rejected, 2 unreadable
    Verify(verify::Args),
    /// Show what a module is made of
    Inspect(inspect::Args),
    /// Call one function of a module in a domain of its own and print the result
    Call(call::Args),
    /// Compile functions from text, in microseconds, and call them: once, or in a dialogue
    Plug(plug::Args),
    /// Run a program's main in a domain of its own, under a policy
    Run(run::Args),
    /// Look at this machine: whether modules can be made and run here, and what to do if not
    Doctor(doctor::Args),
    /// Build the libraries that modules are linked with, where `cargo install` has brought the command alone
    Setup(setup::Args),
    /// Write typed bindings of a library from its headers, for C, C++, Rust and Python
    Bind(bind::Args),
    /// Measure fenced against native code and other engines (in a checkout of Ringfence)
    Bench(bench::Args),
}

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_default();
    let rest: Vec<OsString> = words.collect();
    // gcc's arguments are none that a parser of ours should see.
    let name = Path::new(&program)
        .file_name()
        .and_then(|n| n.to_str())
        .unwrap_or("");
    match name {
        "ringfence-cc" => return status(ringfence_driver::cc(Front::C, rest)),
        "ringfence-c++" => return status(ringfence_driver::cc(Front::Cxx, rest)),
        _ => {}
    }
    match rest.first().and_then(|w| w.to_str()) {
        Some("cc") => return status(ringfence_driver::cc(Front::C, rest[1..].to_vec())),
        Some("c++") => return status(ringfence_driver::cc(Front::Cxx, rest[1..].to_vec())),
        _ => {}
    }
    match Cli::parse().command {
        Command::Cc { args } => status(ringfence_driver::cc(Front::C, args)),
        Command::Cxx { args } => status(ringfence_driver::cc(Front::Cxx, args)),
        Command::Verify(args) => verify::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Call(args) => call::run(&args),
        Command::Plug(args) => plug::run(&args),
        Command::Run(args) => run::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Setup(args) => setup::run(&args),
        Command::Bind(args) => bind::run(&args),
        Command::Bench(args) => bench::run(&args),
    }
}

fn status(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
