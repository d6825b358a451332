//! Builds programs in each configuration, and keeps what is still fresh.

use std::ffi::{CString, OsString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::configuration::{Configuration, Kind};
use crate::program::{self, Program, here};
use crate::step::{Step, run_all};
use crate::wasm;

/// What came of building a program.
#[derive(Clone)]
pub struct Built {
    /// A shared object, a module, or (for WebAssembly) what the peer loads.
    pub file: PathBuf,
    /// Bytes of text of the program's own objects, libraries of the compiler and libc not counted; 0 if nothing tells.
    pub text: u64,
}

/// Where things are built.
pub struct Kitchen {
    dir: PathBuf,
    ringfence: OsString,
}

impl Kitchen {
    /// Builds below `dir`.
    pub fn new(dir: &str) -> Result<Self, String> {
        std::fs::create_dir_all(dir).map_err(|e| format!("{dir}: {e}"))?;
        Ok(Kitchen {
            dir: Path::new(dir).canonicalize().map_err(|e| format!("{dir}: {e}"))?,
            ringfence: std::env::var_os("RINGFENCE").unwrap_or_else(|| "ringfence".into()),
        })
    }

    /// The directory that everything is built in.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// What everything that these tools build depends on beyond its sources: the libc of modules.
    fn runtime(&self, kind: Kind) -> Option<PathBuf> {
        let libc = here().join("../build/sysroot/lib/libc.a");
        (kind == Kind::Fenced && libc.exists()).then_some(libc)
    }

    /// The compiler of a configuration, with the flags that all its uses get.
    fn compiler(&self, configuration: Configuration, cxx: bool) -> Command {
        match configuration.kind() {
            Kind::Native => Command::new(if cxx { "g++" } else { "gcc" }),
            Kind::Fenced => {
                let mut command = Command::new(&self.ringfence);
                command.arg(if cxx { "c++" } else { "cc" });
                command
            }
            Kind::Wasm => wasm::compiler(cxx),
        }
    }

    /// Builds a program.
    pub fn build(&self, program: &Program, configuration: Configuration) -> Result<Built, String> {
        self.build_for(program, configuration, false)
    }

    /// Builds a program whose workloads do less, for counting its instructions.
    pub fn build_counted(&self, program: &Program, configuration: Configuration) -> Result<Built, String> {
        self.build_for(program, configuration, true)
    }

    fn build_for(
        &self,
        program: &Program,
        configuration: Configuration,
        counted: bool,
    ) -> Result<Built, String> {
        let kind = configuration.kind();
        // Both engines get the same WebAssembly.
        let name = if kind == Kind::Wasm {
            "wasm"
        } else {
            configuration.name()
        };
        let runtime = self.runtime(kind);
        let mut objects = Vec::new();
        let mut steps = Vec::new();
        for (i, group) in program.groups.iter().enumerate() {
            // The first is the driver, which knows how much work there is; libraries stay what they are.
            let counted = counted && i == 0;
            let kind_of_work = if counted { "-counted" } else { "" };
            let dir = self
                .dir
                .join("obj")
                .join(format!("{name}{kind_of_work}"))
                .join(&group.name);
            std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
            for source in group.sources(kind) {
                // Libraries have files of one name in several directories.
                let unique: Vec<_> = source.iter().rev().take(2).map(|s| s.to_string_lossy()).collect();
                let object = dir.join(format!("{}.o", unique.join("@")));
                let cxx = program::is_cxx(source);
                let mut command = self.compiler(configuration, cxx);
                command.args(["-O2", "-fno-math-errno", "-w"]);
                if kind == Kind::Native && configuration != Configuration::Executable {
                    // As a plug-in is built when it is meant to be fast: its own calls are direct.
                    command.args(["-fPIC", "-fno-semantic-interposition"]);
                }
                if cxx {
                    command.arg("-std=c++17");
                }
                command.args(group.flags(kind)).args(configuration.flags());
                if counted {
                    command.arg("-DCOUNTED");
                }
                command.arg("-c").arg(source);
                let mut inputs = vec![source.clone()];
                if i == 0 {
                    let headers = ["kernels/kernel.h", "../modules/common/rfcheck.h"];
                    inputs.extend(headers.map(|h| here().join(h)));
                    inputs.extend(program::headers_beside(source)?);
                }
                inputs.extend(runtime.clone());
                steps.push(Step::new(command, &object, &inputs));
                objects.push(object);
            }
        }
        run_all(steps)?;
        let out = self.dir.join("out");
        std::fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
        if kind == Kind::Wasm {
            let file = wasm::link(program, &objects, &out)?;
            let file = wasm::engine(self.dir(), program, configuration, &file)?;
            return Ok(Built { file, text: 0 });
        }
        let extension = match configuration {
            Configuration::Executable => "peer",
            _ if kind == Kind::Fenced => "rf",
            _ => "so",
        };
        let kind_of_work = if counted { "counted." } else { "" };
        let file = out.join(format!(
            "{}.{}.{kind_of_work}{extension}",
            program.name,
            configuration.name()
        ));
        let mut command = self.compiler(configuration, program.cxx());
        let mut inputs: Vec<_> = objects.iter().cloned().chain(runtime).collect();
        command.arg("-O2").args(&objects);
        match configuration {
            Configuration::Executable => {
                let main = here().join("executable.c");
                // It finds workloads by their names, so they have to be in its table of symbols.
                command.args(["-rdynamic", "-x", "c"]).arg(&main).arg("-lm");
                inputs.push(main);
            }
            _ if kind == Kind::Native => drop(command.args(["-shared", "-Wl,-Bsymbolic", "-lm"])),
            _ => drop(command.arg("-shared").args(configuration.flags())),
        }
        Step::new(command, &file, &inputs).run()?;
        let text = objects.iter().map(|o| text_size(o)).sum::<Result<u64, _>>()?;
        Ok(Built { file, text })
    }

    /// Builds one of the modules that the call benchmarks call.
    pub fn module(
        &self,
        source: &str,
        flags: &[&str],
        configuration: Configuration,
    ) -> Result<PathBuf, String> {
        let source = here().join("modules").join(source);
        let fenced = configuration.kind() == Kind::Fenced;
        let file = self.dir.join(format!(
            "{}.{}.{}",
            source.file_stem().unwrap_or_default().to_string_lossy(),
            configuration.name(),
            if fenced { "rf" } else { "so" }
        ));
        let mut command = self.compiler(configuration, false);
        command
            .args(["-O2", "-shared", "-fPIC", "-g"])
            .args(configuration.flags());
        command.args(flags).arg(&source);
        Step::new(command, &file, &[source]).run()?;
        Ok(file)
    }
}

/// Bytes of executable sections.
fn text_size(file: &Path) -> Result<u64, String> {
    use object::{Object, ObjectSection, SectionKind};
    let bytes = std::fs::read(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let elf = object::File::parse(&*bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    let text = elf.sections().filter(|s| s.kind() == SectionKind::Text);
    Ok(text.map(|s| s.size()).sum())
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

    /// Unloads it.
    pub fn close(self) {
        // SAFETY: the handle came from dlopen, and nothing of the object is used after this
        unsafe { libc::dlclose(self.0) };
    }

    /// Address of a symbol.
    pub fn symbol(&self, name: &str) -> Result<*const c_void, String> {
        let text = CString::new(name).map_err(|e| e.to_string())?;
        // SAFETY: the handle came from dlopen and is open; the name is a C string.
        let address = unsafe { libc::dlsym(self.0, text.as_ptr()) };
        if address.is_null() {
            Err(format!("no symbol {name}"))
        } else {
            Ok(address)
        }
    }
}
