//! What libFuzzer calls with each file: load it, and make a domain of what is accepted.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use ringfence_runtime::{Call, Domain, DomainOptions, ExportKind, Imports, LoadOptions, Module};
use std::time::Duration;

fuzz_target!(|data: &[u8]| -> Corpus {
    let Ok(module) = Module::from_bytes("fuzz", data, &LoadOptions::default()) else {
        return Corpus::Keep;
    };
    let mut imports = Imports::new();
    for import in module.imports() {
        imports = imports.closure(&import.name, |_| Ok(()));
    }
    let mut options = DomainOptions::default();
    options.memory_limit = 1 << 20;
    (options.data_stack, options.control_stack) = (64 << 10, 64 << 10);
    options.time_limit = Some(Duration::from_millis(10));
    let Ok(domain) = Domain::new(std::slice::from_ref(&module), imports, &options) else {
        return Corpus::Keep;
    };
    let functions = module.exports().iter().filter(|e| e.kind == ExportKind::Function);
    for export in functions.take(4) {
        let Ok(entry) = domain.entry(&export.name) else {
            continue;
        };
        if let Err(e) = entry.call(&mut Call::ints(&[1, 2, 3])) {
            // What a fault tells, from whatever symbols the file has.
            let _ = e.to_string();
            let _ = domain.reset();
        }
    }
    Corpus::Keep
});
