//! Builds one set of sources in several ways, and loads the results.

use std::ffi::{CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How sources are built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Configuration {
    /// `gcc -O2`.
    Native,
    /// `gcc -O2` with the loop alignment that the fenced build uses, so that layout luck is the same on both sides.
    Aligned,
    /// `ringfence cc -O2`.
    Fenced,
    /// `ringfence cc -O2 --isolation=integrity`.
    Integrity,
}

impl Configuration {
    /// A short name, for files and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Configuration::Native => "native",
            Configuration::Aligned => "aligned",
            Configuration::Fenced => "fenced",
            Configuration::Integrity => "integrity",
        }
    }
}

/// Where things are built.
pub struct Kitchen {
    dir: PathBuf,
    sources: PathBuf,
}

impl Kitchen {
    /// Builds below `dir`.
    pub fn new(dir: &str) -> Result<Self, String> {
        std::fs::create_dir_all(dir).map_err(|e| format!("{dir}: {e}"))?;
        let dir = Path::new(dir).canonicalize().map_err(|e| format!("{dir}: {e}"))?;
        Ok(Kitchen {
            dir,
            sources: PathBuf::from(env!("CARGO_MANIFEST_DIR")),
        })
    }

    /// The benchmark's own sources.
    pub fn sources(&self) -> &Path {
        &self.sources
    }

    /// Builds a shared object, or a module, of `sources`.
    pub fn build(
        &self,
        name: &str,
        sources: &[PathBuf],
        flags: &[String],
        configuration: Configuration,
    ) -> Result<PathBuf, String> {
        let fenced = matches!(configuration, Configuration::Fenced | Configuration::Integrity);
        let extension = if fenced { "rf" } else { "so" };
        let output = self
            .dir
            .join(format!("{name}.{}.{extension}", configuration.name()));
        let mut command = if fenced {
            let mut command =
                Command::new(std::env::var_os("RINGFENCE").unwrap_or_else(|| "ringfence".into()));
            command.arg("cc");
            command
        } else {
            Command::new("gcc")
        };
        command.args(["-O2", "-fno-math-errno", "-fPIC", "-shared", "-w"]);
        match configuration {
            Configuration::Aligned => command.arg("-falign-loops=64"),
            Configuration::Integrity => command.arg("--isolation=integrity"),
            _ => &mut command,
        };
        command.args(flags).arg("-o").arg(&output).args(sources);
        let run = command.output().map_err(|e| format!("{command:?}: {e}"))?;
        if run.status.success() {
            Ok(output)
        } else {
            Err(format!(
                "{command:?} failed:\n{}",
                String::from_utf8_lossy(&run.stderr)
            ))
        }
    }
}

/// A native shared object, loaded for good.
pub struct Native(*mut c_void);

impl Native {
    /// Loads it as any program would.
    pub fn load(path: &Path) -> Result<Self, String> {
        let text = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: the path is a C string; the object is one that this program built a moment ago, without constructors.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            Err(format!("{}: dlopen failed", path.display()))
        } else {
            Ok(Native(handle))
        }
    }

    /// Address of a symbol.
    pub fn symbol(&self, name: &str) -> Result<*const c_void, String> {
        let text = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: the handle came from dlopen and is never closed; the name is a C string.
        let address = unsafe { libc::dlsym(self.0, text.as_ptr()) };
        if address.is_null() {
            Err(format!("no symbol {name}"))
        } else {
            Ok(address)
        }
    }
}
