//! `ringfence call`: one call of one function, from the command line.

use std::path::PathBuf;
use std::process::ExitCode;

use ringfence::dynamic::Argument;
use ringfence::{Domain, Imports, LoadOptions, Module, Ptr};
use ringfence_core::work::Budget;
use ringfence_debug::prototype;

use crate::added::{self, Additions, Named};
use crate::failure;
use crate::options::Options;
use crate::output;
use crate::signature::{Signature, Type, Value};

/// Longest string that is taken as a result.
const STRING_LIMIT: usize = 1 << 20;

/// Options of `ringfence call`.
#[derive(clap::Args)]
pub struct Args {
    /// The module
    module: PathBuf,
    /// The exported function
    function: String,
    /// Numbers, strings (copied into the domain), or file names where the signature says so
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    args: Vec<String>,
    /// The function's type, as 'i32(i64, f64, str)'; else from debug information, else guessed from the arguments
    #[arg(long, value_name = "TYPE")]
    sig: Option<String>,
    /// Another module for the same domain, whose exports the first one uses; may be given several times
    #[arg(long = "module", value_name = "FILE")]
    modules: Vec<PathBuf>,
    /// Add a module to the domain once that is made, under a name; it may use the exports of all that are there, and they call each
    /// other directly; may be given several times
    #[arg(long = "add", value_name = "NAME=FILE", value_parser = added::named)]
    added: Vec<Named>,
    /// Take the function from the module that was added under this name
    #[arg(long = "in", value_name = "NAME")]
    of: Option<String>,
    /// Print what the domain has used in the end: memory, time, calls, faults, descriptors; and what its process is locked in with, if it
    /// has one of its own (--backend process)
    #[arg(long)]
    usage: bool,
    /// Largest module file to load, as 512M (default 256M)
    #[arg(long, value_name = "SIZE", value_parser = crate::failure::size)]
    max_file: Option<u64>,
    /// Accept a module whose loads are not confined
    #[arg(long)]
    allow_integrity: bool,
    #[command(flatten)]
    domain: Options,
}

/// Runs the command.
pub fn run(args: &Args) -> ExitCode {
    match try_run(args) {
        Ok(text) => {
            if let Some(text) = text {
                output::out(text);
            }
            ExitCode::SUCCESS
        }
        Err(code) => code,
    }
}

fn try_run(args: &Args) -> Result<Option<String>, ExitCode> {
    let usage = |text: String| {
        output::error(text);
        ExitCode::from(2)
    };
    let mut load = LoadOptions::default();
    load.allow_integrity = args.allow_integrity;
    load.max_file_size = args.max_file.unwrap_or(load.max_file_size);
    load.backend = args.domain.0.backend;
    load.addressing = args.domain.0.addressing;
    let files = std::iter::once(&args.module).chain(&args.modules);
    let modules: Vec<Module> = files
        .map(|f| Module::open_with(f, &load))
        .collect::<Result<_, _>>()
        .map_err(|e| usage(e.to_string()))?;

    let additions = Additions::load(&args.added, &load).map_err(usage)?;
    let all: Vec<&Module> = modules.iter().chain(additions.modules()).collect();
    let home = match &args.of {
        Some(name) => additions
            .named(name)
            .ok_or_else(|| usage(format!("--in {name}: no module is added under this name")))?,
        None => all
            .iter()
            .find(|m| m.exports().iter().any(|e| e.name == args.function))
            .unwrap_or(&all[0]),
    };
    let declared = || {
        let mut budget = Budget::for_file(home.original().len() as u64);
        prototype::of(home.original(), &args.function, &mut budget)
    };
    let mut guessed = false;
    let signature = match &args.sig {
        Some(text) => Signature::parse(text).map_err(usage)?,
        None => match declared().map_err(|e| {
            let name = &args.function;
            usage(format!(
                "finding {name}'s type in the debug information {e}; --sig tells it"
            ))
        })? {
            Some(p) => Signature::of(&args.function, &p, &args.args).map_err(usage)?,
            None => {
                guessed = true;
                Signature::guess(&args.args)
            }
        },
    };
    if signature.parameters.len() != args.args.len() {
        let (wants, got) = (signature.parameters.len(), args.args.len());
        return Err(usage(format!(
            "{} takes {wants} arguments by --sig, {got} were given",
            args.function
        )));
    }
    let values: Vec<Value> = signature
        .parameters
        .iter()
        .zip(&args.args)
        .enumerate()
        .map(|(n, (t, a))| t.value(a).map_err(|e| usage(format!("argument {}: {e}", n + 1))))
        .collect::<Result<_, _>>()?;

    let mut options = args.domain.0.clone();
    additions.prepare(&mut options);
    if args.usage {
        added::count(&mut options);
    }
    let domain = Domain::instantiate(&modules, missing(&all), &options).map_err(|e| failure::domain(&e))?;
    additions.add(&domain)?;
    let entry = match &args.of {
        Some(name) => domain.function_in(name, &args.function),
        None => domain.function(&args.function),
    }
    .map_err(|e| usage(e.to_string()))?;

    let mut arguments = Vec::with_capacity(values.len());
    for value in values {
        arguments.push(match value {
            Value::Vector(bits) => Argument::Float(bits),
            Value::Word(word) => Argument::Int(word),
            Value::Bytes(bytes) => {
                let memory = domain.memory();
                // Not nothing: the address is to be one of the domain's.
                let place = memory
                    .alloc_array::<u8>(bytes.len().max(1))
                    .and_then(|place| memory.write_slice(place.ptr(), &bytes).map(|()| place.leak()))
                    .map_err(|e| usage(e.to_string()))?;
                Argument::Int(place.address())
            }
        });
    }
    let returned = entry.call(arguments);
    if args.usage {
        added::print_usage(&domain);
    }
    let returned = returned.map_err(|e| failure::call(&e))?;
    if guessed && let Ok(low) = u32::try_from(returned.int) {
        let int = low as i32;
        if int < 0 {
            // An `int` leaves the upper half of the register clear, whatever its sign.
            output::line(format_args!(
                "ringfence: note: as a 32-bit int this is {int}; build with -g, or give --sig 'i32(…)'"
            ));
        }
    }
    let base = domain.memory().base();
    if guessed && base != 0 && returned.int >> 32 == base >> 32 {
        return Ok(Some(Type::Ptr.show_word(returned.int)));
    }
    Ok(match signature.result {
        Type::Void => None,
        Type::F32 => Some(f32::from_bits(returned.float as u32).to_string()),
        Type::F64 => Some(f64::from_bits(returned.float).to_string()),
        Type::Str if returned.int as u32 == 0 => Some("(null)".to_owned()),
        Type::Str => {
            let bytes = domain
                .memory()
                .read_c_string(Ptr::from_address(returned.int), STRING_LIMIT)
                .map_err(|e| usage(format!("the result is no string: {e}")))?
                .into_inner_unchecked();
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        t => Some(t.show_word(returned.int)),
    })
}

/// Stands for every host function that the modules want: the call goes on until it needs one.
fn missing(modules: &[&Module]) -> Imports {
    let given = |name: &str| {
        ringfence_isa::window::stub::NAMES.iter().any(|(n, _)| *n == name)
            || modules.iter().any(|m| m.exports().iter().any(|e| e.name == name))
    };
    let wanted = modules
        .iter()
        .flat_map(|m| m.imports())
        .filter(|i| i.function && !given(&i.name));
    wanted.fold(Imports::new(), |imports, import| {
        let message = format!(
            "it called {}, a host function that 'ringfence call' does not have",
            import.name
        );
        imports.dynamic(&import.name, move |_| Err(message.clone()))
    })
}
