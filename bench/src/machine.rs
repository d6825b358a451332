//! The machine that figures come from.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::process::Command;

/// What a reader has to know to compare figures.
#[derive(PartialEq, Serialize, Deserialize)]
pub struct Machine {
    processor: String,
    /// What the processor says of itself: `GenuineIntel`, its family and model. Names in virtual machines are vague.
    #[serde(default)]
    maker: String,
    #[serde(default)]
    family: u32,
    #[serde(default)]
    model: u32,
    processors: usize,
    kernel: String,
    gcc: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let mut lines = info.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(key, _)| key.trim() == name);
            found.map_or("", |(_, value)| value.trim())
        };
        let processor = match field("model name") {
            "" => "unknown",
            name => name,
        };
        let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let gcc = Command::new("gcc").arg("-dumpfullversion").output();
        Machine {
            processor: processor.to_owned(),
            maker: field("vendor_id").to_owned(),
            family: field("cpu family").parse().unwrap_or_default(),
            model: field("model").parse().unwrap_or_default(),
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel.trim().to_owned(),
            gcc: gcc
                .map(|o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
                .unwrap_or_default(),
        }
    }
}

impl Machine {
    /// For file names: `intel-6-167`.
    pub fn slug(&self) -> String {
        let maker = match self.maker.as_str() {
            "GenuineIntel" => "intel",
            "AuthenticAMD" => "amd",
            _ => "other",
        };
        format!("{maker}-{}-{}", self.family, self.model)
    }

    /// For the heads of columns: `Intel, family 6, model 167`.
    pub fn title(&self) -> String {
        let maker = match self.maker.as_str() {
            "GenuineIntel" => "Intel",
            "AuthenticAMD" => "AMD",
            _ => return self.processor.clone(),
        };
        match self.model {
            0 => format!("{maker}, family {}", self.family),
            model => format!("{maker}, family {}, model {model}", self.family),
        }
    }

    /// Whether AMD made the processor.
    pub fn is_amd(&self) -> bool {
        self.maker == "AuthenticAMD"
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}), {} processors, Linux {}, gcc {}",
            self.processor,
            self.title(),
            self.processors,
            self.kernel,
            self.gcc
        )
    }
}
