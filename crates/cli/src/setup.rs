//! `ringfence setup`: the libraries that modules are linked with, for a command that came alone, by `cargo install`.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::output;

/// Their sources: path, mode, content.
const FILES: &[(&str, u32, &[u8])] = &include!(concat!(env!("OUT_DIR"), "/setup.rs"));

/// Options of `ringfence setup`.
#[derive(clap::Args)]
#[command(
    after_help = "Needs gcc, g++, make, python3 with pip, and apt-get on Debian 12, by which the sources of musl and of gcc's \
                        libraries come; RINGFENCE_SOURCES names a directory where they are, or are to stay."
)]
pub struct Args {
    /// What to build: min, builtins, libc, cxx, or all
    #[arg(value_name = "PART", default_value = "all", value_parser = ["min", "builtins", "libc", "cxx", "all"])]
    parts: Vec<String>,
    /// Where they go (default: lib/ringfence/sysroot beside the directory of this command, where it looks for them)
    #[arg(long, value_name = "DIRECTORY")]
    to: Option<PathBuf>,
    /// Replace what is there
    #[arg(long)]
    again: bool,
}

/// Runs the command: 0 if they are there afterwards, else 2.
pub fn run(args: &Args) -> ExitCode {
    match build(args) {
        Ok(told) => {
            output::out(told);
            ExitCode::SUCCESS
        }
        Err(e) => {
            output::error(e);
            ExitCode::from(2)
        }
    }
}

fn build(args: &Args) -> Result<String, String> {
    let own = std::env::current_exe().map_err(|e| format!("cannot tell where this command is: {e}"))?;
    let to = match &args.to {
        Some(dir) => std::path::absolute(dir).map_err(|e| format!("{}: {e}", dir.display()))?,
        None => beside(&own)
            .ok_or("this command is in no directory beside which lib/ could be; name a place by --to")?,
    };
    if to.symlink_metadata().is_ok() && !args.again {
        return Err(format!(
            "{} is there already; --again builds it anew",
            to.display()
        ));
    }
    let work = to.with_extension("setup");
    let failed = |what: &Path, e: std::io::Error| {
        format!(
            "{}: {e}; if you may not write there, name another place by --to, and later by RINGFENCE_SYSROOT",
            what.display()
        )
    };
    if work.exists() {
        fs::remove_dir_all(&work).map_err(|e| failed(&work, e))?;
    }
    unpack(&work).map_err(|e| failed(&work, e))?;
    let status = Command::new(work.join("sysroot/build.sh"))
        .args(&args.parts)
        .env("RINGFENCE", &own)
        .status()
        .map_err(|e| format!("{}: {e}", work.join("sysroot/build.sh").display()))?;
    if !status.success() {
        return Err(format!(
            "the libraries were not built ({status}); what is missing stands above, what was done in {}",
            work.display()
        ));
    }
    if let Ok(there) = to.symlink_metadata() {
        let removed = if there.is_dir() {
            fs::remove_dir_all(&to)
        } else {
            fs::remove_file(&to)
        };
        removed.map_err(|e| failed(&to, e))?;
    }
    fs::rename(work.join("build/sysroot"), &to).map_err(|e| failed(&to, e))?;
    fs::remove_dir_all(&work).map_err(|e| failed(&work, e))?;
    Ok(format!("modules are linked with what is in {}", to.display()))
}

/// Where a command of this path looks for them.
fn beside(own: &Path) -> Option<PathBuf> {
    Some(own.parent()?.parent()?.join("lib/ringfence/sysroot"))
}

fn unpack(to: &Path) -> std::io::Result<()> {
    use std::io::Write;
    for (name, mode, content) in FILES {
        let path = to.join(name);
        if let Some(dir) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
        }
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(*mode)
            .open(&path)?;
        file.write_all(content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_a_build_needs_is_there() {
        let to = std::env::temp_dir().join(format!("rf-setup-{}", std::process::id()));
        unpack(&to).unwrap();
        for name in [
            "sysroot/build.sh",
            "sysroot/fetch.sh",
            "sysroot/Makefile",
            "include/ringfence/module.h",
        ] {
            assert!(to.join(name).is_file(), "{name}");
        }
        assert!(unpack(&to).is_err(), "what is there is not written over");
        fs::remove_dir_all(to).unwrap();
    }

    #[test]
    fn what_is_there_stays() {
        let to = std::env::temp_dir().join(format!("rf-setup-there-{}", std::process::id()));
        fs::create_dir(&to).unwrap();
        let args = Args {
            parts: vec!["min".into()],
            to: Some(to.clone()),
            again: false,
        };
        assert!(build(&args).unwrap_err().contains("--again"));
        fs::remove_dir(to).unwrap();
    }
}
