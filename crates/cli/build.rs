//! Puts the sources of the libraries that modules are linked with into the command, for `ringfence setup`.

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn walk(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    let root = fs::canonicalize(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))?;
    let mut files = vec![root.join("include/ringfence/module.h")];
    walk(&root.join("sysroot"), &mut files)?;
    files.sort();
    let mut code = String::from("[\n");
    for file in &files {
        let name = file.strip_prefix(&root).map_err(io::Error::other)?;
        let mode = fs::metadata(file)?.permissions().mode() & 0o777;
        writeln!(code, "({name:?}, 0o{mode:o}, include_bytes!({file:?}) as &[u8]),")
            .map_err(io::Error::other)?;
    }
    code.push(']');
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    fs::write(Path::new(&out).join("setup.rs"), code)?;
    println!("cargo:rerun-if-changed={}", root.join("sysroot").display());
    println!(
        "cargo:rerun-if-changed={}",
        root.join("include/ringfence/module.h").display()
    );
    println!("cargo:rerun-if-changed=build.rs");
    Ok(())
}
