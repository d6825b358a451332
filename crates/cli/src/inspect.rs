//! `ringfence inspect`.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use ringfence::plain;
use ringfence_driver::inspect::{Info, SymbolInfo, inspect};

use crate::input;
use crate::output::{self, Colour, bytes, paint};

/// Options of `ringfence inspect`.
#[derive(clap::Args)]
pub struct Args {
    /// The module
    module: PathBuf,
    /// Largest file to read, as 512M (default 256M)
    #[arg(long, value_name = "SIZE", value_parser = crate::failure::size)]
    max_file: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command: 0, or 2 if the file is no module.
pub fn run(args: &Args) -> ExitCode {
    let path = args.module.display();
    let info = match input::read(&args.module, args.max_file)
        .and_then(|data| inspect(&data).map_err(|e| e.to_string()))
    {
        Ok(info) => info,
        Err(reason) => {
            output::error(format_args!("{path}: {reason}"));
            return ExitCode::from(2);
        }
    };
    // Written as it is made: the names may be many. If nobody reads it any more, that changes nothing.
    let mut out = BufWriter::new(std::io::stdout().lock());
    let _ = match args.json {
        true => serde_json::to_writer_pretty(&mut out, &info)
            .map_err(Into::into)
            .and_then(|()| writeln!(out)),
        false => show(&mut out, &path.to_string(), &info),
    };
    let _ = out.flush();
    ExitCode::SUCCESS
}

fn show(out: &mut impl Write, path: &str, info: &Info) -> io::Result<()> {
    let list = |names: &[&str]| {
        if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(" ")
        }
    };
    let mut line = |name: &str, value: String| {
        writeln!(out, "{}{value}", paint(Colour::Bold, format_args!("{name:<12}")))
    };
    line("module", path.to_owned())?;
    let check = if info.check { ", with checks" } else { "" };
    line("isolation", format!("{}{check}", info.isolation))?;
    if let Some(addressing) = info.addressing {
        line("addressing", addressing.to_owned())?;
    }
    line("interface", format!("version {}", info.abi))?;
    line(
        "verifier",
        if info.accepted {
            "accepts it"
        } else {
            "rejects it: see ringfence verify"
        }
        .to_owned(),
    )?;
    line("needs", list(&info.features))?;
    if let Some(used) = &info.used {
        line("uses", list(used))?;
    }
    line(
        "size",
        format!(
            "{} text, {} read-only, {} data, {} thread-local; {} in the file{}",
            bytes(info.text),
            bytes(info.read_only),
            bytes(info.data),
            bytes(info.tls),
            bytes(info.file_size),
            if info.debug_info {
                " with debug information"
            } else {
                ""
            }
        ),
    )?;
    let relocations: Vec<String> = info.relocations.iter().map(|(k, n)| format!("{n} {k}")).collect();
    line(
        "relocations",
        if relocations.is_empty() {
            "none".to_owned()
        } else {
            relocations.join(", ")
        },
    )?;
    line(
        "start-up",
        format!("{} functions at load and unload", info.initialisers),
    )?;
    line("segments", String::new())?;
    for s in &info.segments {
        writeln!(
            out,
            "  {:#010x}  {:<2}  {:>10}",
            s.address,
            s.rights,
            bytes(s.memory)
        )?;
    }
    for (title, symbols) in [("exports", &info.exports), ("imports", &info.imports)] {
        writeln!(
            out,
            "{}",
            paint(Colour::Bold, format_args!("{:<12}{}", title, symbols.len()))
        )?;
        for s in symbols {
            writeln!(out, "  {}", symbol(s))?;
        }
    }
    Ok(())
}

fn symbol(s: &SymbolInfo) -> String {
    let name = plain(&s.name);
    match (s.address, s.size) {
        (Some(address), Some(size)) => format!("{address:#010x}  {:<12} {:>8}  {name}", s.kind, size),
        _ => format!("{:<10}  {:<12} {:>8}  {name}", "", s.kind, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_move_no_cursor() {
        for (address, size) in [(Some(4), Some(5)), (None, None)] {
            let name = "clear\x1b[2J\u{202e}".to_owned();
            let line = symbol(&SymbolInfo {
                name,
                kind: "function",
                address,
                size,
            });
            assert!(line.ends_with("  clear\\u{1b}[2J\\u{202e}"), "{line:?}");
        }
    }
}
