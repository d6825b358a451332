//! Rewrites standard input to standard output: `rewrite [--check] [--integrity] [--words] [--segment] [--handwritten] < in.s > out.s`.

use std::io::{Read, Write};
use std::process::ExitCode;

use ringfence_rewrite::{Addressing, Isolation, Options, rewrite};

fn main() -> ExitCode {
    let mut options = Options::default();
    for a in std::env::args().skip(1) {
        match a.as_str() {
            "--check" => options.check = true,
            "--integrity" => options.isolation = Isolation::Integrity,
            "--words" => options.isolation = Isolation::Words,
            "--segment" => options.addressing = Addressing::Segment,
            "--handwritten" => options.handwritten = true,
            _ => {
                eprintln!("unknown argument {a}");
                return ExitCode::from(2);
            }
        }
    }
    let mut input = String::new();
    if let Err(e) = std::io::stdin().read_to_string(&mut input) {
        eprintln!("standard input: {e}");
        return ExitCode::from(2);
    }
    match rewrite(&input, "<stdin>", &options) {
        Ok(text) => match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(2),
        },
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}
