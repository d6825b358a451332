//! `ringfence bench`: the benchmark of a checkout.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::output;

/// Options of `ringfence bench`.
#[derive(clap::Args)]
pub struct Args {
    /// Ringfence's sources; by default the checkout around the present directory
    #[arg(long, value_name = "DIR")]
    sources: Option<PathBuf>,
    /// The benchmark's own arguments: --quick, --runs N, --only NAME,…, --configs NAME,…, --json FILE, report, --help
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    args: Vec<OsString>,
}

/// Becomes the benchmark; comes back only if that fails.
pub fn run(args: &Args) -> ExitCode {
    let place = match &args.sources {
        Some(dir) => is_checkout(dir).then(|| dir.clone()),
        None => std::env::current_dir().ok().and_then(|here| above(&here)),
    };
    let Some(place) = place else {
        output::error(
            "the benchmark builds workloads from Ringfence's sources, and there is no checkout here; \
             run this inside one, or name it with --sources=DIR",
        );
        return ExitCode::from(2);
    };
    let script = place.join("bench/run.sh");
    let error = Command::new(&script).args(&args.args).exec();
    output::error(format!("{}: {error}", script.display()));
    ExitCode::from(2)
}

fn is_checkout(dir: &Path) -> bool {
    [
        "bench/run.sh",
        "bench/kernels/kernel.h",
        "crates/verify/Cargo.toml",
    ]
    .iter()
    .all(|file| dir.join(file).is_file())
}

/// The checkout that a directory is in.
fn above(here: &Path) -> Option<PathBuf> {
    here.ancestors().find(|dir| is_checkout(dir)).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::above;
    use std::path::Path;

    #[test]
    fn a_checkout_is_found_from_inside_only() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let top = above(here).expect("the checkout that this is compiled in");
        assert!(here.starts_with(&top) && top.join("Cargo.lock").exists());
        assert_eq!(above(Path::new("/")), None);
    }
}
