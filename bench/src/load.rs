//! How long it takes until a module can be called.

use std::hint::black_box;
use std::time::Instant;

use ringfence_runtime::{Domain, DomainOptions, Imports, LoadOptions, Module};
use serde::{Deserialize, Serialize};

use crate::build::{Kitchen, Native};
use crate::configuration::Configuration;
use crate::measure::{Subject, Summary, interleave};
use crate::peer::Peer;
use crate::program;
use crate::progress::Progress;

/// One program; microseconds, with the file in the page cache.
#[derive(Clone, Serialize, Deserialize)]
pub struct Row {
    /// The program.
    pub name: String,
    /// Bytes of its own text, native.
    pub text: u64,
    /// `dlopen`, and `dlclose`.
    pub dlopen: Summary,
    /// Read, relocated, verified and sealed, once for all domains.
    pub module: Summary,
    /// A domain of it, and its end.
    pub domain: Summary,
    /// Wasmtime compiles it.
    pub wasm_compile: Option<Summary>,
    /// Wasmtime makes an instance, and drops it.
    pub wasm_instance: Option<Summary>,
}

fn microseconds(body: impl FnOnce() -> Result<(), String>) -> Result<f64, String> {
    let start = Instant::now();
    body()?;
    Ok(start.elapsed().as_secs_f64() * 1e6)
}

/// Measures some libraries, small and large.
pub fn measure(
    kitchen: &Kitchen,
    runs: usize,
    names: &[String],
    wasm: bool,
    progress: &Progress,
) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    for mut program in program::all()?.into_iter().filter(|p| names.contains(&p.name)) {
        progress.say(format_args!("loading {}", program.name));
        program::complete(&mut program)?;
        let native = kitchen.build(&program, Configuration::Native)?;
        let fenced = kitchen.build(&program, Configuration::Full)?;
        let open = || Module::open(&fenced.file, &LoadOptions::default()).map_err(|e| e.to_string());
        let ready = open()?;
        // Without the tools for it the columns stay empty; `measure` of the workloads says why.
        let peer = kitchen
            .build(&program, Configuration::Wasmtime)
            .and_then(|b| Peer::start(&b.file, Configuration::Wasmtime))
            .ok()
            .filter(|_| wasm);
        let mut subjects: Vec<Subject> = vec![
            (
                "dlopen",
                Box::new(|| {
                    microseconds(|| {
                        Native::load(&native.file)?.close();
                        Ok(())
                    })
                }),
            ),
            (
                "module",
                Box::new(|| {
                    microseconds(|| {
                        black_box(open()?);
                        Ok(())
                    })
                }),
            ),
            (
                "domain",
                Box::new(|| {
                    microseconds(|| {
                        let made = Domain::new(
                            std::slice::from_ref(&ready),
                            Imports::new(),
                            &DomainOptions::default(),
                        );
                        made.map(drop).map_err(|e| e.to_string())
                    })
                }),
            ),
        ];
        if let Some(peer) = &peer {
            for what in ["load", "instantiate"] {
                subjects.push((what, Box::new(move || Ok(peer.run(what, 1)?.1 * 1e6))));
            }
        }
        let summaries = interleave(runs, &mut subjects)?;
        rows.push(Row {
            text: native.text,
            dlopen: summaries[0],
            module: summaries[1],
            domain: summaries[2],
            wasm_compile: summaries.get(3).copied(),
            wasm_instance: summaries.get(4).copied(),
            name: program.name.clone(),
        });
    }
    Ok(rows)
}
