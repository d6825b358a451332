//! `ringfence bind`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ringfence_bind::{Language, Request, bind};

use crate::output;

/// Options of `ringfence bind`.
#[derive(clap::Args)]
#[command(after_help = "docs/bind.md has the notes, and what becomes of each kind of parameter.")]
pub struct Args {
    /// The library's headers: paths, or what stands behind #include
    #[arg(required = true, value_name = "HEADER")]
    headers: Vec<String>,
    /// What the binding is called (default: the first header's name)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// What the headers do not say: lengths, owners, structs that are filled in
    #[arg(long, value_name = "FILE")]
    notes: Option<PathBuf>,
    /// Compare the module's functions and structs with the headers: exit 1 if they differ
    #[arg(long, value_name = "FILE")]
    module: Option<PathBuf>,
    /// Languages: c, c++, rust, python
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',', default_value = "c")]
    lang: Vec<Language>,
    /// Where the files go
    #[arg(short, long, value_name = "DIRECTORY", default_value = ".")]
    output: PathBuf,
    /// gcc's flags: -I, -D, -include
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// Runs the command: 0, 1 if the module is another, 2 if nothing was written.
pub fn run(args: &Args) -> ExitCode {
    let stem = || {
        let stem = Path::new(&args.headers[0]).file_stem().unwrap_or_default();
        let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
        stem.to_string_lossy().chars().map(letter).collect()
    };
    let request = Request {
        headers: args.headers.clone(),
        name: args.name.clone().unwrap_or_else(stem),
        notes: args.notes.clone(),
        module: args.module.clone(),
        flags: args.flags.clone(),
    };
    let done = match bind(&request, &args.lang) {
        Ok(done) => done,
        Err(e) => {
            output::error(e);
            return ExitCode::from(2);
        }
    };
    for (name, text) in &done.files {
        let path = args.output.join(name);
        let written = std::fs::create_dir_all(&args.output).and_then(|()| std::fs::write(&path, text));
        if let Err(e) = written {
            output::error(format_args!("{}: {e}", path.display()));
            return ExitCode::from(2);
        }
    }
    output::out(format_args!(
        "{}: {} functions bound",
        request.name, done.functions
    ));
    for (name, why) in &done.refused {
        output::out(format_args!("  not bound: {name} {why}"));
    }
    for difference in &done.differences {
        output::error(difference);
    }
    ExitCode::from(u8::from(!done.differences.is_empty()))
}
