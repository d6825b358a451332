//! `ringfence verify`.

use std::path::PathBuf;
use std::process::ExitCode;

use ringfence::plain;
use ringfence_driver::check::{self, Finding, Rules, Verdict};
use ringfence_driver::inspect::feature_names;
use ringfence_isa::{Addressing, Isolation};
use serde_json::{Value, json};

use crate::input;
use crate::output::{self, Colour, paint};

/// Options of `ringfence verify`.
#[derive(clap::Args)]
pub struct Args {
    /// Modules, or files of bare code with --raw
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The files hold bare code, verified as if it stood at address 0 of an image
    #[arg(long)]
    raw: bool,
    /// An offset at which a host may enter bare code (default 0); may be given several times
    #[arg(long, value_name = "OFF", requires = "raw", value_parser = number)]
    entry: Vec<u32>,
    /// Demand this isolation of bare code (a module says in its note which it has)
    #[arg(long, value_name = "full|integrity|words", requires = "raw", value_parser = isolation)]
    isolation: Option<Isolation>,
    /// Demand operands through gs only, or take those through r14 as well (default)
    #[arg(long, value_name = "any|segment", value_parser = addressing)]
    addressing: Option<Addressing>,
    /// Accept reads of the time stamp counter
    #[arg(long)]
    allow_tsc: bool,
    /// Refuse x87 instructions
    #[arg(long)]
    no_x87: bool,
    /// Largest file to read, as 512M (default 256M)
    #[arg(long, value_name = "SIZE", value_parser = crate::failure::size)]
    max_file: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn number(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|e| format!("{e}; write a number, or 0x and hexadecimal digits"))
}

fn isolation(text: &str) -> Result<Isolation, String> {
    Isolation::named(text).ok_or_else(|| "use full, integrity or words".to_owned())
}

fn addressing(text: &str) -> Result<Addressing, String> {
    Addressing::named(text).ok_or_else(|| "use any or segment".to_owned())
}

/// Runs the command: 0 all accepted, 1 some rejected, 2 some unreadable.
pub fn run(args: &Args) -> ExitCode {
    let mut rules = Rules {
        allow_tsc: args.allow_tsc,
        allow_x87: !args.no_x87,
        ..Rules::default()
    };
    rules.isolation = args.isolation.unwrap_or_default();
    rules.addressing = args.addressing.unwrap_or_default();
    let mut worst = 0;
    let mut results = Vec::new();
    for path in &args.files {
        let shown = path.display().to_string();
        let verdict = input::read(path, args.max_file).and_then(|data| {
            if args.raw {
                let entries = if args.entry.is_empty() {
                    vec![0]
                } else {
                    args.entry.clone()
                };
                Ok(check::check_raw(&data, &entries, &rules))
            } else {
                check::check(&data, &rules).map_err(|e| e.to_string())
            }
        });
        match verdict {
            Err(reason) => {
                worst = 2;
                if args.json {
                    results.push(json!({ "file": shown, "verdict": "unreadable", "reason": reason }));
                } else {
                    output::error(format_args!("{shown}: {reason}"));
                }
            }
            Ok(verdict) => {
                worst = worst.max(u8::from(!verdict.accepted()));
                if args.json {
                    results.push(to_json(&shown, &verdict));
                } else {
                    print(&shown, &verdict);
                }
            }
        }
    }
    if args.json {
        // A value made of strings and numbers always has a text.
        output::out(serde_json::to_string_pretty(&Value::Array(results)).unwrap_or_default());
    }
    ExitCode::from(worst)
}

fn print(path: &str, verdict: &Verdict) {
    if let Some(report) = &verdict.report {
        output::out(format_args!(
            "{path}: {} ({} functions, {} instructions, {} of text, {} isolation)",
            paint(Colour::Green, "accepted"),
            report.functions().len(),
            report.instructions,
            output::bytes(verdict.text as u64),
            verdict.isolation.name(),
        ));
        return;
    }
    output::out(format_args!("{path}: {}", paint(Colour::Red, "rejected")));
    for f in &verdict.findings {
        output::out(format_args!("  {}", describe(f)));
    }
    if verdict.truncated {
        output::out("  … and more");
    }
    if let Some(cut) = verdict.cut {
        output::out(format_args!("  (some lines are not told: looking them up {cut})"));
    }
}

fn describe(f: &Finding) -> String {
    let bytes: Vec<String> = f.bytes.iter().map(|b| format!("{b:02x}")).collect();
    let mut place = format!("{:#x}", f.offset);
    if let Some(symbol) = &f.symbol {
        place.push_str(&format!(" <{}>", plain(symbol)));
    }
    if let Some(line) = &f.line {
        place.push_str(&format!(" {}", plain(line)));
    }
    format!(
        "{place}: {}  {}\n      {}: {}",
        f.instruction,
        paint(Colour::Dim, format_args!("[{}]", bytes.join(" "))),
        paint(Colour::Bold, format_args!("rule {}", f.rule)),
        f.reason
    )
}

fn to_json(path: &str, verdict: &Verdict) -> Value {
    let mut value = json!({
        "file": path,
        "verdict": if verdict.accepted() { "accepted" } else { "rejected" },
        "isolation": verdict.isolation.name(),
        "text_bytes": verdict.text,
    });
    if let Some(report) = &verdict.report {
        value["functions"] = json!(report.functions().len());
        value["instructions"] = json!(report.instructions);
        value["max_depth"] = json!(report.max_depth);
        value["uses_vector"] = json!(report.uses_vector);
        value["through_r14"] = json!(report.through_r14);
        value["uses_x87"] = json!(report.uses_x87);
        value["features"] = json!(feature_names(report.features));
    } else {
        let findings: Vec<Value> = verdict
            .findings
            .iter()
            .map(|f| {
                json!({
                    "offset": f.offset,
                    "symbol": f.symbol,
                    "line": f.line,
                    "instruction": f.instruction,
                    "bytes": f.bytes,
                    "rule": f.rule,
                    "name": f.name,
                    "reason": f.reason,
                })
            })
            .collect();
        value["rejections"] = json!(findings);
        value["truncated"] = json!(verdict.truncated);
        value["cut"] = json!(verdict.cut.map(|cut| cut.to_string()));
    }
    value
}
