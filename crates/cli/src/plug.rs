//! `ringfence plug`: functions from text, called at once or in a dialogue.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use ringfence::{Caller, Ptr};
use ringfence_functions::{BuiltIns, Compiled, Errors, Func, FunctionError, Kind, Runtime, Value, compile};

use crate::failure;
use crate::input;
use crate::options::Options;
use crate::output;

mod dialogue;

/// How long a call may take unless `--time-limit` says otherwise.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Longest text that `print` writes.
const PRINTED: usize = 1 << 20;

/// Options of `ringfence plug`.
#[derive(clap::Args)]
#[command(after_help = "A call may take 10s unless --time-limit says otherwise. Texts may have long double.")]
pub struct Args {
    /// A text in C, as docs/text.md has it, or object code; functions that are not static can be called
    file: Option<PathBuf>,
    /// Compile the text to object code, write it to this file, and do no more
    #[arg(long, short, value_name = "FILE", requires = "file", conflicts_with = "call")]
    output: Option<PathBuf>,
    /// Call this function with the arguments that follow, numbers or strings, and print the result; without it a dialogue begins,
    /// which reads definitions and calls from standard input (try help)
    #[arg(
        long,
        value_names = ["FUNCTION", "ARGUMENT"],
        num_args = 1..,
        allow_hyphen_values = true,
        requires = "file"
    )]
    call: Vec<String>,
    /// Tell how long compiling, adding and calling took
    #[arg(long)]
    time: bool,
    #[command(flatten)]
    domain: Options,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    if let (Some(file), Some(output)) = (&args.file, &args.output) {
        return match compile_to(file, output) {
            Ok(()) => ExitCode::SUCCESS,
            Err(code) => code,
        };
    }
    let mut options = args.domain.0.clone();
    options.time_limit.get_or_insert(TIME_LIMIT);
    // For texts with long double.
    options.x87 = true;
    let runtime = match Runtime::new(built_ins(), &options) {
        Ok(runtime) => runtime,
        Err(e) => {
            output::error(e);
            return ExitCode::from(failure::NOT_STARTED);
        }
    };
    let plug = Plug {
        runtime,
        time: args.time,
    };
    if let Some(file) = &args.file
        && let Err(code) = plug.file(file)
    {
        return code;
    }
    match args.call.split_first() {
        None => dialogue::run(&plug),
        Some((name, arguments)) => plug.once(name, arguments),
    }
}

/// What is wrong with a file, and the status for it.
fn wrong(file: &Path, what: impl std::fmt::Display) -> ExitCode {
    output::error(format_args!("{}: {what}", file.display()));
    ExitCode::from(2)
}

/// What a file comes to, and how long that took.
fn compiled(file: &Path) -> Result<(Compiled, Duration), ExitCode> {
    let bytes = input::read(file, None).map_err(|what| wrong(file, what))?;
    if Compiled::is_object(&bytes) {
        let begun = Instant::now();
        let compiled = Compiled::from_object(&bytes).map_err(|e| {
            wrong(file, e);
            ExitCode::FAILURE
        })?;
        return Ok((compiled, begun.elapsed()));
    }
    let text = String::from_utf8(bytes).map_err(|_| wrong(file, "it is not UTF-8"))?;
    let begun = Instant::now();
    let compiled = compile(&text).map_err(|errors| {
        show(&errors, &format!("{}:", file.display()));
        ExitCode::FAILURE
    })?;
    Ok((compiled, begun.elapsed()))
}

/// Writes object code.
fn compile_to(file: &Path, output: &Path) -> Result<(), ExitCode> {
    let object = compiled(file)?.0.object();
    std::fs::write(output, object).map_err(|e| wrong(output, e))
}

/// What functions of the command line may call.
fn built_ins() -> BuiltIns {
    BuiltIns::new()
        .func("print", |caller: &Caller<'_>, text: Ptr<u8>| {
            let text = caller
                .memory()
                .read_c_string(text, PRINTED)?
                .into_inner_unchecked();
            output::out(String::from_utf8_lossy(&text));
            Ok::<(), ringfence::TextError>(())
        })
        .func("print_long", |n: i64| output::out(n))
        .func("print_double", |x: f64| output::out(x))
}

/// The runtime of one run of the command.
struct Plug {
    runtime: Runtime,
    time: bool,
}

/// Whether a text brought new functions, or others in their place.
enum Came {
    Created,
    Replaced,
}

impl Plug {
    /// Creates the functions of a text, or replaces them if those are there that it was given for: the last one of a text.
    fn bring(&self, text: &str) -> Result<(Func, Came), FunctionError> {
        let begun = Instant::now();
        let compiled = compile(text)?;
        self.add(compiled, begun.elapsed())
    }

    /// The same of what was compiled in `compiling`.
    fn add(&self, compiled: Compiled, compiling: Duration) -> Result<(Func, Came), FunctionError> {
        let begun = Instant::now();
        let name = main(&compiled)?.to_owned();
        let (func, came) = match self.runtime.lookup(&name) {
            Ok(_) => (self.runtime.replace_compiled(&name, compiled)?, Came::Replaced),
            Err(_) => (self.runtime.create_compiled(&name, compiled)?, Came::Created),
        };
        if self.time {
            let adding = begun.elapsed();
            output::line(format_args!(
                "compiled in {}, verified and added in {}",
                micros(compiling),
                micros(adding)
            ));
        }
        Ok((func, came))
    }

    fn file(&self, file: &Path) -> Result<(), ExitCode> {
        let (compiled, compiling) = compiled(file)?;
        self.add(compiled, compiling).map(|_| ()).map_err(|e| {
            wrong(file, e);
            ExitCode::FAILURE
        })
    }

    /// One call, from the command line.
    fn once(&self, name: &str, arguments: &[String]) -> ExitCode {
        let called = self.runtime.lookup(name).and_then(|func| {
            let params = func.prototype().params.iter().map(Some);
            // One too many, or too few, is told by the call.
            let given: Vec<Given<'_>> = arguments
                .iter()
                .zip(params.chain(std::iter::repeat(None)))
                .map(|(text, kind)| Given::of(text, kind.copied()))
                .collect();
            self.call(&func, &given)
        });
        match called {
            Ok(Value::Void) => ExitCode::SUCCESS,
            Ok(value) => {
                output::out(value);
                ExitCode::SUCCESS
            }
            Err(FunctionError::Call(e)) => failure::call(&e),
            Err(e) => {
                output::error(e);
                ExitCode::from(2)
            }
        }
    }

    /// Calls a function; strings are copied into the runtime's memory for the time of the call.
    fn call(&self, func: &Func, arguments: &[Given<'_>]) -> Result<Value, FunctionError> {
        let memory = self.runtime.memory();
        let mut strings = Vec::new();
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(match argument {
                Given::Value(value) => *value,
                Given::String(text) => {
                    let copy = memory.put_c_string(text)?;
                    let at = Value::Pointer(copy.ptr().address());
                    strings.push(copy);
                    at
                }
            });
        }
        let begun = Instant::now();
        let called = func.call(&values);
        if self.time {
            output::line(format_args!("called in {}", micros(begun.elapsed())));
        }
        called
    }
}

/// What a text was given for: its last function.
fn main(compiled: &Compiled) -> Result<&str, FunctionError> {
    let last = compiled.exports.last().map(|e| &*e.name);
    last.ok_or_else(|| FunctionError::NotDefined {
        name: "that can be called".into(),
    })
}

/// An argument that somebody typed.
enum Given<'a> {
    Value(Value),
    String(&'a str),
}

impl<'a> Given<'a> {
    /// By the type of its parameter.
    fn of(text: &'a str, kind: Option<Kind>) -> Self {
        match kind {
            Some(Kind::Pointer) => Given::String(text),
            _ => number(text).map_or(Given::String(text), Given::Value),
        }
    }
}

/// A number as C has it.
fn number(text: &str) -> Option<Value> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let magnitude = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    match (magnitude, negative) {
        (Ok(n), false) => Some(Value::Unsigned(n)),
        (Ok(n), true) => i64::try_from(-i128::from(n)).ok().map(Value::Int),
        (Err(_), _) => text.parse().ok().map(Value::Float),
    }
}

/// Shows what is wrong with a text, each place with its caret.
fn show(errors: &Errors, place: &str) {
    for error in &errors.0 {
        output::line(format_args!("{place}{error}"));
    }
}

fn micros(time: Duration) -> String {
    format!("{:.1} µs", time.as_nanos() as f64 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_c_has_them() {
        assert_eq!(number("12"), Some(Value::Unsigned(12)));
        assert_eq!(number("-12"), Some(Value::Int(-12)));
        assert_eq!(number("0xFf"), Some(Value::Unsigned(255)));
        assert_eq!(number("-9223372036854775808"), Some(Value::Int(i64::MIN)));
        assert_eq!(number("18446744073709551615"), Some(Value::Unsigned(u64::MAX)));
        assert_eq!(number("1.5e3"), Some(Value::Float(1500.0)));
        assert_eq!(number("-.5"), Some(Value::Float(-0.5)));
        for none in ["", "-", "x", "inf", "12x", "-9223372036854775809", "1 2"] {
            assert!(
                !matches!(number(none), Some(Value::Int(_) | Value::Unsigned(_))),
                "{none}"
            );
        }
        assert_eq!(number("nan"), None);
    }
}
