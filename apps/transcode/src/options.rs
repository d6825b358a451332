//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use ringfence::{Backend, OptionUnit};

/// What the server does, and how much of everything it allows.
#[derive(Clone, Debug, Parser)]
#[command(
    name = "ringfence-transcode",
    version,
    about = "Serves pictures through functions that clients send as text, fenced"
)]
pub struct Options {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// A directory with pictures; without it there are only those that requests bring
    #[arg(long, value_name = "DIRECTORY")]
    pub pictures: Option<PathBuf>,
    /// A client and its key, which it sends as `Authorization: Bearer KEY`; may be given several times
    #[arg(long = "client", value_name = "NAME:KEY", value_parser = client)]
    pub clients: Vec<(String, String)>,
    /// A file with a line NAME:KEY for each client, so that no key stands on the command line
    #[arg(long, value_name = "FILE")]
    pub clients_file: Option<PathBuf>,
    /// The module with decoders and encoders, from apps/transcode/build.sh; if not given, the one beside the program, in
    /// ../lib/ringfence, or in build/transcode
    #[arg(long, value_name = "FILE", default_value_os_t = installed_module(), hide_default_value = true)]
    pub module: PathBuf,
    /// What keeps decoders from the host: window, process or none. Functions come as text with `window` only
    #[arg(long, value_name = "NAME", default_value = "window", value_parser = backend)]
    pub backend: Backend,
    /// Processors that decode, compute and encode; as many as there are if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=60))]
    pub processors: Option<u16>,
    /// Pictures that are on their way at a time; more are answered 503
    #[arg(long, value_name = "N", default_value = "48", value_parser = clap::value_parser!(u16).range(1..=60))]
    pub requests: u16,
    /// Bytes of a picture that comes
    #[arg(long, value_name = "SIZE", default_value = "32M", value_parser = size)]
    pub size_limit: u64,
    /// Pixels of a picture, when it comes and when it goes
    #[arg(long, value_name = "N", default_value = "50000000")]
    pub pixels_limit: u64,
    /// How long a decoder, a function, an encoder may take for a picture, each
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = time)]
    pub time_limit: Duration,
    /// How long the head of a request, and then its body, may take to come
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time)]
    pub input_limit: Duration,
    /// Memory of a domain: a request's decoder and encoder have one, each client's functions another
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = size)]
    pub memory_limit: u64,
    /// Bytes of a function's text
    #[arg(long, value_name = "SIZE", default_value = "64K", value_parser = size)]
    pub text_limit: u64,
    /// Functions of a client
    #[arg(long, value_name = "N", default_value = "64")]
    pub functions_limit: usize,
    /// How long others may keep a picture that was made (Cache-Control); 0s: they ask each time
    #[arg(long, value_name = "TIME", default_value = "60m", value_parser = time)]
    pub max_age: Duration,
}

/// The module where an installation has it, or where `build.sh` leaves it, from the program's own place.
fn installed_module() -> PathBuf {
    let program = std::env::current_exe().and_then(std::fs::canonicalize);
    let beside = program.ok().and_then(|p| p.parent().map(PathBuf::from));
    beside
        .iter()
        .flat_map(|d| {
            [
                "pictures.rf",
                "../lib/ringfence/pictures.rf",
                "../../build/transcode/pictures.rf",
            ]
            .map(|p| d.join(p))
        })
        .find(|p| p.exists())
        .unwrap_or_else(|| PathBuf::from("build/transcode/pictures.rf"))
}

fn client(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, key)) if !name.is_empty() && key.len() >= 8 => Ok((name.to_owned(), key.to_owned())),
        _ => Err("write NAME:KEY, with a key of eight characters at least".to_owned()),
    }
}

fn backend(text: &str) -> Result<Backend, String> {
    text.parse()
        .map_err(|_| format!("there is no back end {text}: window, process or none"))
}

fn size(text: &str) -> Result<u64, String> {
    OptionUnit::Bytes.read(text)
}

fn time(text: &str) -> Result<Duration, String> {
    OptionUnit::Time.read(text).map(Duration::from_nanos)
}

impl Options {
    /// Those of a command line without any arguments.
    #[must_use]
    pub fn defaults() -> Self {
        Self::parse_from(["ringfence-transcode"])
    }

    /// All clients: of the command line, and of the file.
    pub(crate) fn all_clients(&self) -> Result<Vec<(String, String)>, String> {
        let mut all = self.clients.clone();
        if let Some(path) = &self.clients_file {
            let lines = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
            for (number, line) in lines.lines().enumerate() {
                let line = line.trim();
                if !line.is_empty() && !line.starts_with('#') {
                    let one = client(line).map_err(|e| format!("{}:{}: {e}", path.display(), number + 1))?;
                    all.push(one);
                }
            }
        }
        for (at, (name, key)) in all.iter().enumerate() {
            if all[..at].iter().any(|(other, _)| other == name) {
                return Err(format!("there are two clients of the name {name}"));
            }
            if let Some((other, _)) = all[..at].iter().find(|(_, known)| known == key) {
                return Err(format!("{other} and {name} have the same key"));
            }
        }
        Ok(all)
    }

    pub(crate) fn processors(&self) -> usize {
        self.processors.map_or_else(
            || std::thread::available_parallelism().map_or(1, |n| n.get().min(60)),
            usize::from,
        )
    }
}
