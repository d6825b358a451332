//! The machine that figures come from.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::process::Command;

/// What a reader has to know to compare figures.
#[derive(PartialEq, Serialize, Deserialize)]
pub struct Machine {
    processor: String,
    processors: usize,
    kernel: String,
    gcc: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let processor = info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("unknown", |(_, name)| name);
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let gcc = Command::new("gcc").arg("-dumpfullversion").output();
        Machine {
            processor: processor.to_owned(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            gcc: gcc
                .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
                .unwrap_or_default(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}, {} processors, Linux {}, gcc {}",
            self.processor, self.processors, self.kernel, self.gcc
        )
    }
}
