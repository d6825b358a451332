//! `rfdump`: packets of a capture file or of an interface, through a fenced filter.

#![forbid(unsafe_code)]

mod line;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Parser;
use ringfence::{DomainOptions, OptionUnit};
use ringfence_packet_filter::capture::{Capture, CaptureError, Packet, Writer};
use ringfence_packet_filter::live::{Live, LiveError};
use ringfence_packet_filter::{Batch, Engine, Filter, FilterError};

/// Print, count or copy the packets of a capture file or of an interface that an expression selects.
#[derive(Parser)]
#[command(name = "rfdump", version, max_term_width = 100)]
struct Args {
    /// The capture, pcap or pcapng; - is standard input
    #[arg(short, long, value_name = "FILE", required_unless_present = "interface")]
    read: Option<PathBuf>,
    /// Capture packets of this interface, until SIGINT or SIGTERM
    #[arg(short, long, value_name = "NAME", conflicts_with = "read")]
    interface: Option<String>,
    /// Of an interface only the packets that are for this machine
    #[arg(short = 'p', long, requires = "interface")]
    no_promiscuous_mode: bool,
    /// Stop after so many packets that are selected
    #[arg(short = 'c', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// Write the packets to this pcap file instead of printing them; - is standard output
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print how many packets there are, and nothing else
    #[arg(long, conflicts_with = "write")]
    count: bool,
    /// Select by a function in C: int filter(const unsigned char *packet, unsigned length, unsigned wire), and behind these if it
    /// wants that, unsigned long time, in nanoseconds since 1970
    #[arg(short, long, value_name = "FILE", conflicts_with = "expression")]
    function: Option<PathBuf>,
    /// How long a function may take for a batch of packets, 4,096 at most
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time, requires = "function")]
    time_limit: Duration,
    /// Which packets, as pcap-filter(7) tells; without it all
    #[arg(trailing_var_arg = true)]
    expression: Vec<String>,
}

fn time(text: &str) -> Result<Duration, String> {
    OptionUnit::Time.read(text).map(Duration::from_nanos)
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0} is what is read; write to another file")]
    Same(String),
    #[error("{0}: {1}")]
    Capture(String, CaptureError),
    #[error("{0}")]
    Filter(#[from] FilterError),
    #[error("{0}: {1}")]
    File(String, io::Error),
    #[error(transparent)]
    Live(#[from] LiveError),
    #[error(transparent)]
    Output(#[from] io::Error),
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads on: nothing is wrong.
        Err(Error::Output(e)) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("rfdump: error: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Where packets come from.
enum Input<'a> {
    Interface(&'a str, Live),
    File(&'a Path, Capture),
}

impl<'a> Input<'a> {
    fn open(args: &'a Args) -> Result<Option<Self>, Error> {
        Ok(match (&args.interface, &args.read) {
            (Some(name), _) => Some(Input::Interface(
                name,
                Live::open(name, !args.no_promiscuous_mode)?,
            )),
            (None, Some(file)) => {
                let capture = Capture::open(file).map_err(|e| broken(file, e))?;
                Some(Input::File(file, capture))
            }
            (None, None) => None,
        })
    }
}

fn broken(file: &Path, error: CaptureError) -> Error {
    Error::Capture(file.display().to_string(), error)
}

/// Whether two names are of one file; `-` is standard input.
fn same(read: &Path, write: &Path) -> bool {
    let read = if read.as_os_str() == "-" {
        Path::new("/dev/stdin")
    } else {
        read
    };
    match (std::fs::metadata(read), std::fs::metadata(write)) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// What is done with packets that are selected.
enum Output {
    Lines(BufWriter<io::Stdout>),
    File(String, Writer),
    Count(u64),
}

/// The filters of one run: one for each link type.
struct Filters {
    engine: Engine,
    expression: String,
    function: Option<String>,
    by_link: HashMap<i32, Filter>,
}

impl Filters {
    fn of(&mut self, link: i32) -> Result<&Filter, FilterError> {
        if !self.by_link.contains_key(&link) {
            let filter = match &self.function {
                Some(text) => self.engine.function(text)?,
                None if self.expression.is_empty() => self.engine.function(ALL)?,
                None => self.engine.expression(&self.expression, link)?,
            };
            self.by_link.insert(link, filter);
        }
        Ok(&self.by_link[&link])
    }
}

/// What selects all packets, without libpcap.
const ALL: &str = "int filter(const unsigned char *packet, unsigned length, unsigned wire) { return 1; }";

/// Most packets that wait to be looked at: nobody is to wait long for the first.
const WAITING: usize = 4096;

fn run(args: &Args) -> Result<(), Error> {
    let function = match &args.function {
        Some(file) => {
            let name = file.display().to_string();
            Some(std::fs::read_to_string(file).map_err(|e| Error::File(name, e))?)
        }
        None => None,
    };
    let mut options = DomainOptions::default();
    // Expressions come to an end.
    options.time_limit = function.as_ref().map(|_| args.time_limit);
    let mut filters = Filters {
        engine: Engine::new(&options)?,
        expression: args.expression.join(" "),
        function,
        by_link: HashMap::new(),
    };
    // What is wrong with it is told also of a capture without packets.
    filters.of(ringfence_packet_filter::ETHERNET)?;
    // Nothing is written before there is something to read.
    let input = Input::open(args)?;
    let output = match &args.write {
        _ if args.count => Output::Count(0),
        Some(file) => {
            if args.read.as_ref().is_some_and(|read| same(read, file)) {
                return Err(Error::Same(file.display().to_string()));
            }
            let name = file.display().to_string();
            let writer = Writer::create(file).map_err(|e| Error::Capture(name.clone(), e))?;
            Output::File(name, writer)
        }
        None => Output::Lines(BufWriter::new(io::stdout())),
    };
    let mut sift = Sift {
        batch: filters.engine.batch(),
        filters,
        output,
        times: Vec::new(),
        link: ringfence_packet_filter::ETHERNET,
        left: args.packets.unwrap_or(u64::MAX),
        selected: 0,
    };
    let read = match input {
        Some(Input::Interface(name, live)) => listen(name, live, &mut sift),
        Some(Input::File(file, capture)) => read(file, capture, &mut sift),
        None => Ok(()),
    };
    match sift.output {
        Output::Lines(mut lines) => lines.flush()?,
        Output::File(name, writer) => writer.finish().map_err(|e| Error::Capture(name, e))?,
        Output::Count(count) if read.is_ok() => writeln!(io::stdout(), "{count}")?,
        Output::Count(_) => {}
    }
    read
}

/// What comes before a place of the file that is wrong is shown.
fn read(file: &Path, mut capture: Capture, sift: &mut Sift) -> Result<(), Error> {
    while sift.left > 0 {
        match capture.next_packet() {
            Ok(Some(packet)) => sift.add(&packet)?,
            end => {
                sift.through()?;
                return end.map(|_| ()).map_err(|e| broken(file, e));
            }
        }
    }
    Ok(())
}

fn listen(interface: &str, mut live: Live, sift: &mut Sift) -> Result<(), Error> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    let link = live.link();
    sift.filters.of(link)?;
    eprintln!("rfdump: listening on {interface}, link type {link}");
    let mut end = Ok(());
    while end.is_ok() && sift.left > 0 && !stop.load(Ordering::Relaxed) {
        end = live
            .packets(|packet| sift.add(packet))
            .and_then(|came| match came {
                // What came is shown before more is waited for.
                Some(_) => sift.through().and_then(|()| sift.output.show()),
                None => Ok(()),
            });
    }
    let counts = live.counts()?;
    eprintln!(
        "rfdump: {} packets selected, {} received, {} dropped by the kernel",
        sift.selected, counts.received, counts.dropped
    );
    end
}

/// Packets of one link type that have not been looked at, and what is done with them.
struct Sift {
    filters: Filters,
    output: Output,
    batch: Batch,
    times: Vec<Duration>,
    link: i32,
    /// How many may still be selected, and how many were.
    left: u64,
    selected: u64,
}

impl Sift {
    fn add(&mut self, packet: &Packet<'_>) -> Result<(), Error> {
        if packet.link != self.link || self.batch.len() >= WAITING {
            self.through()?;
            self.link = packet.link;
        }
        if !self.batch.push_at(packet.bytes, packet.wire, packet.time) {
            self.through()?;
            self.batch.push_at(packet.bytes, packet.wire, packet.time);
        }
        self.times.push(packet.time);
        Ok(())
    }

    /// Has all of them looked at.
    fn through(&mut self) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let accepted = self.filters.of(self.link)?.run(&mut self.batch)?.to_vec();
        for number in accepted {
            if self.left == 0 {
                break;
            }
            let number = number as usize;
            let (Some((bytes, wire)), Some(&time)) = (self.batch.packet(number), self.times.get(number))
            else {
                // A filter in C may say anything.
                return Err(FilterError::Lies(number as u64).into());
            };
            let packet = Packet {
                time,
                wire,
                link: self.link,
                bytes,
            };
            self.output.take(&packet)?;
            self.left -= 1;
            self.selected += 1;
        }
        self.batch.clear();
        self.times.clear();
        Ok(())
    }
}

impl Output {
    fn take(&mut self, packet: &Packet<'_>) -> Result<(), Error> {
        match self {
            Output::Lines(lines) => writeln!(lines, "{}", line::of(packet))?,
            Output::File(name, writer) => {
                writer
                    .write(packet)
                    .map_err(|e| Error::Capture(name.clone(), e))?;
            }
            Output::Count(count) => *count += 1,
        }
        Ok(())
    }

    /// Lines are seen when they are there.
    fn show(&mut self) -> Result<(), Error> {
        if let Output::Lines(lines) = self {
            lines.flush()?;
        }
        Ok(())
    }
}
