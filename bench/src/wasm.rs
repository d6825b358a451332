//! WebAssembly from the same sources, and the two engines that run it.
//!
//! clang with Debian's wasi-libc makes a reactor that exports the workloads. `wasm2c` turns it into C, which `gcc -O2`
//! compiles into a process of its own; Wasmtime runs it in `bench/wasmtime`. Memory is checked by guard pages in both,
//! which is their default and the fastest they have. No workload asks the system for anything but what its libc asks
//! for by itself: which directories there are (none), the environment (empty), the time (0) and random numbers (zeros). One that asks for more is
//! told so and left out.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::configuration::Configuration;
use crate::peer::Peer;
use crate::program::{Program, here};
use crate::step::Step;

/// clang for wasm32.
pub fn compiler(cxx: bool) -> Command {
    let mut command = Command::new(if cxx { "clang++-19" } else { "clang-19" });
    command.arg("--target=wasm32-wasi");
    if cxx {
        command.args(["-fno-exceptions", "-fno-rtti"]);
    }
    command
}

/// Links a reactor that exports the workloads.
pub fn link(program: &Program, objects: &[PathBuf], out: &Path) -> Result<PathBuf, String> {
    let file = out.join(format!("{}.wasm", program.name));
    let mut command = compiler(program.cxx());
    command.args(["-O2", "-mexec-model=reactor", "-Wl,-z,stack-size=1048576"]);
    command.args(program.exports.iter().map(|s| format!("-Wl,--export={s}")));
    command.args(objects);
    Step::new(command, &file, objects).run()?;
    Ok(file)
}

/// Makes what the engine of a configuration loads out of WebAssembly.
pub fn engine(
    dir: &Path,
    program: &Program,
    configuration: Configuration,
    wasm: &Path,
) -> Result<PathBuf, String> {
    if configuration != Configuration::Wasm2c {
        return Ok(wasm.to_owned());
    }
    translate(dir, &program.name, &program.exports, wasm)
}

/// Translates WebAssembly to C and compiles it with a main that answers requests.
pub fn translate(dir: &Path, name: &str, symbols: &[String], wasm: &Path) -> Result<PathBuf, String> {
    let dir = dir.join("wasm2c").join(name);
    std::fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let (code, header, main) = (dir.join("module.c"), dir.join("module.h"), dir.join("main.c"));
    let mut command = Command::new("wasm2c");
    command.args(["-n", "module"]).arg(wasm);
    Step::new(command, &code, &[wasm.to_owned()]).run()?;
    let text = std::fs::read_to_string(&header).map_err(|e| format!("{}: {e}", header.display()))?;
    let source = host(&text, symbols)?;
    if std::fs::read_to_string(&main).ok().as_ref() != Some(&source) {
        std::fs::write(&main, source).map_err(|e| format!("{}: {e}", main.display()))?;
    }
    // where Debian's wabt has its sources
    let place = "/usr/share/wabt/wasm2c";
    let runtime = Path::new(place).join("wasm-rt-impl.c");
    let program = dir.join("peer");
    let mut command = Command::new("gcc");
    command
        .args(["-O2", "-w", "-I", place])
        .args([&code, &main, &runtime])
        .arg("-lm");
    Step::new(command, &program, &[code, main, runtime]).run()?;
    Ok(program)
}

/// What a libc asks for before anything else, and the answer: name, arguments and body in C.
const ANSWERS: [(&str, &str, &str); 5] = [
    ("fd_prestat_get", "u32 fd, u32 at", "return 8;"), // EBADF: no directories
    (
        "environ_sizes_get",
        "u32 count, u32 bytes",
        "put(count, 0, 4); put(bytes, 0, 4); return 0;",
    ),
    (
        "random_get",
        "u32 at, u32 size",
        "for (; size; size--) put(at++, 0, 1); return 0;",
    ),
    ("environ_get", "u32 list, u32 bytes", "return 0;"),
    (
        "clock_time_get",
        "u32 clock, u64 precision, u32 at",
        "put(at, 0, 8); return 0;",
    ),
];

/// The main of a translated module, from the header that wasm2c wrote.
fn host(header: &str, symbols: &[String]) -> Result<String, String> {
    let mut text = String::from(
        "#include \"module.h\"\n#include \"wasm-rt-impl.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <time.h>\n\
         static Z_module_instance_t instance;\n\
         static const char *missing;\n\
         static void put(u32 at, u64 value, u32 size) { memcpy(Z_moduleZ_memory(&instance)->data + at, &value, size); }\n\
         static double now(void) { struct timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); return t.tv_sec + t.tv_nsec / 1e9; }\n",
    );
    let mut lines = header.lines();
    let mut hosts = Vec::new();
    while let Some(line) = lines.next() {
        let Some(import) = line.strip_prefix("/* import: '") else {
            continue;
        };
        let words: Vec<_> = import.split('\'').collect();
        let prototype = lines.next().unwrap_or_default();
        let (Some(module), Some(name)) = (words.first(), words.get(2)) else {
            return Err(format!("wasm2c's header has '{line}'"));
        };
        if !hosts.contains(module) {
            let _ = writeln!(text, "struct Z_{module}_instance_t {{ char unused; }} {module};");
            hosts.push(module);
        }
        let prototype = prototype.trim_start_matches("extern ").trim_end_matches(';');
        if *name == "host_add" {
            // the one import of the call benchmarks
            let _ = writeln!(
                text,
                "u64 Z_envZ_host_add(struct Z_env_instance_t *e, u64 a, u64 b) {{ return a + b; }}"
            );
        } else if let Some((_, arguments, body)) = ANSWERS.iter().find(|a| a.0 == *name) {
            let _ = writeln!(
                text,
                "u32 Z_{module}Z_{name}(struct Z_{module}_instance_t *host, {arguments}) {{ {body} }}"
            );
        } else {
            let _ = writeln!(
                text,
                "{prototype} {{ missing = \"{name}\"; wasm_rt_trap(WASM_RT_TRAP_UNREACHABLE); }}"
            );
        }
    }
    text.push_str(
        "int main(void)\n{\n    static char line[200];\n    wasm_rt_init();\n    Z_module_init_module();\n",
    );
    let arguments: String = hosts.iter().map(|h| format!(", &{h}")).collect();
    let _ = writeln!(text, "    Z_module_instantiate(&instance{arguments});");
    if header.contains("Z_moduleZ__initialize(") {
        text.push_str("    Z_moduleZ__initialize(&instance);\n");
    }
    text.push_str(
        "    while (fgets(line, sizeof line, stdin)) {\n        char name[100]; unsigned long long part, sum = 0;\n\
         \x20       if (sscanf(line, \"%99s %llu\", name, &part) != 2) return 1;\n\
         \x20       wasm_rt_trap_t trap = wasm_rt_impl_try();\n\
         \x20       if (trap && missing) { printf(\"error it calls %s, which this host does not offer\\n\", missing); missing = 0; fflush(stdout); continue; }\n\
         \x20       if (trap) { printf(\"error %s\\n\", wasm_rt_strerror(trap)); fflush(stdout); continue; }\n\
         \x20       double start = now();\n        if (0) ;\n",
    );
    for symbol in symbols {
        let call = match symbol.as_str() {
            // By a pointer that the compiler cannot see through, as the others are called.
            "nothing" | "add" | "call_back" => {
                let (add, more) = if symbol == "nothing" {
                    ("", "")
                } else {
                    ("sum += ", ", 2, 3")
                };
                format!(
                    "__typeof__(&Z_moduleZ_{symbol}) volatile f = Z_moduleZ_{symbol}; \
                     for (u64 i = 0; i < part; i++) {add}f(&instance{more});"
                )
            }
            _ => format!("sum = Z_moduleZ_{symbol}(&instance, part);"),
        };
        let _ = writeln!(text, "        else if (!strcmp(name, \"{symbol}\")) {{ {call} }}");
    }
    text.push_str(
        "        else { puts(\"error no such workload\"); fflush(stdout); continue; }\n\
         \x20       printf(\"%llx %.9f\\n\", sum, now() - start);\n        fflush(stdout);\n    }\n    return 0;\n}\n",
    );
    Ok(text)
}

/// The functions of the call benchmarks behind an engine.
pub fn calls(dir: &Path, wasm2c: bool) -> Result<Peer, String> {
    let source = here().join("modules/calls.c");
    let object = dir.join("calls.wasm.o");
    let mut command = compiler(false);
    command.args(["-O2", "-w", "-c"]).arg(&source);
    Step::new(command, &object, &[source]).run()?;
    let symbols = ["nothing", "add", "call_back"].map(str::to_owned);
    let wasm = dir.join("calls.wasm");
    let mut command = compiler(false);
    command.args(["-O2", "-mexec-model=reactor", "-Wl,--allow-undefined"]);
    command
        .args(symbols.iter().map(|s| format!("-Wl,--export={s}")))
        .arg(&object);
    Step::new(command, &wasm, &[object]).run()?;
    if wasm2c {
        let program = translate(dir, "calls", &symbols, &wasm)?;
        Peer::start(&program, Configuration::Wasm2c)
    } else {
        Peer::start(&wasm, Configuration::Wasmtime)
    }
}

#[cfg(test)]
mod tests {
    use super::host;

    #[test]
    fn imports_are_answered() {
        let header = "/* import: 'wasi_snapshot_preview1' 'fd_close' */\nextern u32 Z_wasi_snapshot_preview1Z_fd_close(struct Z_wasi_snapshot_preview1_instance_t*, u32);\n";
        let asks = "/* import: 'wasi_snapshot_preview1' 'fd_prestat_get' */\nextern u32 Z_wasi_snapshot_preview1Z_fd_prestat_get(struct Z_wasi_snapshot_preview1_instance_t*, u32, u32);\n";
        let text = host(&(header.to_owned() + asks), &["run_x".to_owned()]).expect("a main");
        assert!(
            text.contains("u32 Z_wasi_snapshot_preview1Z_fd_prestat_get(struct Z_wasi_snapshot_preview1_instance_t *host, u32 fd, u32 at) { return 8; }"),
            "{text}"
        );
        assert!(
            text.contains("Z_module_instantiate(&instance, &wasi_snapshot_preview1);"),
            "{text}"
        );
        assert!(text.contains("Z_moduleZ_run_x(&instance, part)"), "{text}");
        assert!(text.contains("missing = \"fd_close\""), "{text}");
    }
}
