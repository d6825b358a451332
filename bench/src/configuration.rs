//! The ways in which the same sources are built.

/// One way to build and run a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// `gcc -O2` as a shared object whose own calls are direct, loaded by `dlopen`.
    Native,
    /// `gcc -O2` as an executable, in a process of its own: what most users have.
    Executable,
    /// The same with the loop alignment of a fenced build, so that layout luck is the same on both sides.
    Aligned,
    /// `gcc -O3`.
    O3,
    /// `gcc -O2 -march=x86-64-v3`.
    V3,
    /// `ringfence cc -O2`: loads, stores and jumps confined.
    Full,
    /// The same, `-O3`.
    FullO3,
    /// The same, `-march=x86-64-v3`.
    FullV3,
    /// As `Full`, with operands through `gs` only.
    Segment,
    /// Stores and jumps confined, loads free.
    Integrity,
    /// As `Full`, and pointers may lead to the host's objects, word by word; in the workloads none does.
    Words,
    /// Segment matching: a wrong address traps at its instruction.
    Check,
    /// WebAssembly, translated to C by `wasm2c` and compiled by `gcc -O2`.
    Wasm2c,
    /// WebAssembly, compiled by Wasmtime's Cranelift.
    Wasmtime,
}

/// Which tools build a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// gcc.
    Native,
    /// The driver.
    Fenced,
    /// clang, and one of two engines.
    Wasm,
}

impl Configuration {
    /// All of them, in the order of the tables.
    pub const ALL: [Configuration; 14] = [
        Configuration::Native,
        Configuration::Executable,
        Configuration::Aligned,
        Configuration::O3,
        Configuration::V3,
        Configuration::Full,
        Configuration::FullO3,
        Configuration::FullV3,
        Configuration::Segment,
        Configuration::Integrity,
        Configuration::Words,
        Configuration::Check,
        Configuration::Wasm2c,
        Configuration::Wasmtime,
    ];

    /// A short name, for files, tables and the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Configuration::Native => "native",
            Configuration::Executable => "executable",
            Configuration::Aligned => "aligned",
            Configuration::O3 => "o3",
            Configuration::V3 => "v3",
            Configuration::Full => "full",
            Configuration::FullO3 => "full-o3",
            Configuration::FullV3 => "full-v3",
            Configuration::Segment => "segment",
            Configuration::Integrity => "integrity",
            Configuration::Words => "words",
            Configuration::Check => "check",
            Configuration::Wasm2c => "wasm2c",
            Configuration::Wasmtime => "wasmtime",
        }
    }

    /// The one of this name.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|c| c.name() == name).ok_or_else(|| {
            let all: Vec<_> = Self::ALL.iter().map(|c| c.name()).collect();
            format!("no configuration '{name}'; there are: {}", all.join(", "))
        })
    }

    /// Which tools build it.
    pub const fn kind(self) -> Kind {
        match self {
            Configuration::Native
            | Configuration::Executable
            | Configuration::Aligned
            | Configuration::O3
            | Configuration::V3 => Kind::Native,
            Configuration::Wasm2c | Configuration::Wasmtime => Kind::Wasm,
            _ => Kind::Fenced,
        }
    }

    /// What its compiler is told beyond what all are told. Both engines run the same WebAssembly.
    pub const fn flags(self) -> &'static [&'static str] {
        match self {
            Configuration::Native
            | Configuration::Executable
            | Configuration::Full
            | Configuration::Wasm2c
            | Configuration::Wasmtime => &[],
            Configuration::Aligned => &["-falign-loops=64:32:32:16"],
            Configuration::O3 | Configuration::FullO3 => &["-O3"],
            Configuration::V3 | Configuration::FullV3 => &["-march=x86-64-v3"],
            Configuration::Segment => &["--addressing=segment"],
            Configuration::Integrity => &["--isolation=integrity"],
            Configuration::Words => &["--isolation=words"],
            Configuration::Check => &["--check"],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Configuration;

    #[test]
    fn each_is_found_by_its_name() {
        for c in Configuration::ALL {
            assert_eq!(Configuration::named(c.name()), Ok(c));
        }
        assert!(
            Configuration::named("fast")
                .unwrap_err()
                .contains("native, executable, aligned")
        );
    }
}
