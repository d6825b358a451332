//! A number for the code that decides what objects hold, so that `ringfence cc --print-flags` tells whether old objects
//! are still what this command would make.

use std::fs;
use std::path::{Path, PathBuf};

/// Whatever of the sources has a say in an object file.
const SOURCES: &[&str] = &["../rewrite/src", "../isa/src", "src/compile.rs", "src/nudge.rs"];

fn main() {
    let mut files = Vec::new();
    for source in SOURCES {
        println!("cargo:rerun-if-changed={source}");
        collect(Path::new(source), &mut files);
    }
    files.sort();
    // FNV-1a: no attacker here, and no crate for it.
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for file in &files {
        let content = fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for byte in file.to_string_lossy().bytes().chain(content) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    println!("cargo:rustc-env=RINGFENCE_REWRITER={hash:016x}");
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    match fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|e| collect(&e.path(), files)),
        Err(_) => files.push(path.to_owned()),
    }
}
