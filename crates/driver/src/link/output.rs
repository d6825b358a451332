//! The module as a file.

use std::fs;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};

use object::{Object, ObjectSection, SectionKind};

use super::read;
use crate::error::Error;
use crate::temp::TempDir;
use crate::tools::{self, Tools};

/// `-s`, after the finalizer and the verifier have used the symbols for their messages.
pub(super) fn strip(tools: &Tools, temp: &TempDir, data: &[u8]) -> Result<Vec<u8>, Error> {
    let path = temp.file("stripped");
    fs::write(&path, data).map_err(|e| Error::read(&path, e))?;
    let status = std::process::Command::new("strip")
        .arg("--strip-all")
        .arg(&path)
        .status();
    match status {
        Ok(s) if s.success() => read(&path),
        _ => {
            eprintln!(
                "ringfence: note: {} works, but strip does not; symbols are kept",
                tools.compiler
            );
            Ok(data.to_vec())
        }
    }
}

/// Writes the module. An ordinary file is replaced, so that a process that reads the old one keeps it; anything else
/// (`/dev/null`) is written to.
pub(super) fn write_output(output: &str, data: &[u8]) -> Result<(), Error> {
    let failed = |e| Error::read(output, e);
    if let Ok(meta) = fs::symlink_metadata(output)
        && (meta.file_type().is_char_device() || meta.file_type().is_fifo())
    {
        return fs::write(output, data).map_err(failed);
    }
    if fs::symlink_metadata(output).is_ok_and(|m| m.is_file()) {
        fs::remove_file(output).map_err(failed)?;
    }
    fs::write(output, data).map_err(failed)?;
    let meta = fs::metadata(output).map_err(failed)?;
    if meta.is_file() {
        // Executable wherever readable, as a linker leaves its output.
        let mode = meta.permissions().mode();
        fs::set_permissions(output, fs::Permissions::from_mode(mode | (mode & 0o444) >> 2))
            .map_err(failed)?;
    }
    Ok(())
}

/// What a module's data sections hold, one after the other: nothing if it cannot be read.
fn initial_data(module: &[u8]) -> Vec<u8> {
    let Ok(file) = object::File::parse(module) else {
        return Vec::new();
    };
    let kinds = [
        SectionKind::Data,
        SectionKind::ReadOnlyData,
        SectionKind::ReadOnlyString,
    ];
    let data = file.sections().filter(|s| kinds.contains(&s.kind()));
    data.filter_map(|s| s.data().ok()).flatten().copied().collect()
}

/// `--wrapper`: the module goes to `OUTPUT.rf`, and a script that runs it becomes `OUTPUT`. So a build's own tests, which
/// start what was built, need no change. Behind the script stands the module's initial data: a configuration that runs
/// nothing looks there for what a type's size is, and which byte comes first.
pub(super) fn write_wrapped(
    output: &str,
    data: &[u8],
    options: &str,
    modules: &[String],
) -> Result<(), Error> {
    let module = format!("{output}.rf");
    write_output(&module, data)?;
    let command = std::env::current_exe().map_err(|e| Error::read("ringfence", e))?;
    let own = options.split(',').filter(|o| !o.is_empty()).map(str::to_owned);
    let modules = modules.iter().map(|m| format!("--module={m}"));
    let options: Vec<String> = own.chain(modules).map(|o| tools::quote(&o)).collect();
    // By another name (a link, a copy that was installed) it runs the module that was made here.
    let place = std::path::absolute(&module).map_err(|e| Error::read(output, e))?;
    let script = format!(
        "#!/bin/sh\nm=$0.rf\n[ -f \"$m\" ] || m={}\nexec {} run --argv0=\"$0\" {} \"$m\" -- \"$@\"\n",
        tools::quote(&place.to_string_lossy()),
        tools::quote(&command.to_string_lossy()),
        options.join(" ")
    );
    let mut file = script.into_bytes();
    file.extend(initial_data(data));
    write_output(output, &file)
}
