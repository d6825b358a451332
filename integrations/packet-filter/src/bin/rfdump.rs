//! `rfdump`: packets of a capture file, through a fenced filter.

#![forbid(unsafe_code)]

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use ringfence_packet_filter::capture::{Capture, CaptureError, Packet, Writer};
use ringfence_packet_filter::{Batch, Engine, Filter, FilterError};

/// Print, count or copy the packets of a capture file that an expression selects.
#[derive(Parser)]
#[command(name = "rfdump", version, max_term_width = 100)]
struct Args {
    /// The capture, pcap or pcapng; - is standard input
    #[arg(short, long, value_name = "FILE")]
    read: PathBuf,
    /// Write the packets to this pcap file instead of printing them; - is standard output
    #[arg(short, long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print how many packets there are, and nothing else
    #[arg(short, long, conflicts_with = "write")]
    count: bool,
    /// Select by a function in C: int filter(const unsigned char *packet, unsigned length, unsigned wire)
    #[arg(short, long, value_name = "FILE", conflicts_with = "expression")]
    function: Option<PathBuf>,
    /// Which packets, as pcap-filter(7) tells; without it all
    #[arg(trailing_var_arg = true)]
    expression: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error("{0}: {1}")]
    Capture(String, CaptureError),
    #[error("{0}")]
    Filter(#[from] FilterError),
    #[error("{0}: {1}")]
    File(String, io::Error),
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
                None => self.engine.expression(&self.expression, link)?,
            };
            self.by_link.insert(link, filter);
        }
        Ok(&self.by_link[&link])
    }
}

/// Most packets that wait to be looked at: nobody is to wait long for the first.
const WAITING: usize = 4096;

fn run(args: &Args) -> Result<(), Error> {
    let from = args.read.display().to_string();
    let broken = |e| Error::Capture(from.clone(), e);
    let function = match &args.function {
        Some(file) => {
            let name = file.display().to_string();
            Some(std::fs::read_to_string(file).map_err(|e| Error::File(name, e))?)
        }
        None => None,
    };
    let mut filters = Filters {
        engine: Engine::new(&Default::default())?,
        expression: args.expression.join(" "),
        function,
        by_link: HashMap::new(),
    };
    // What is wrong with it is told also of a capture without packets.
    filters.of(ringfence_packet_filter::ETHERNET)?;
    let mut output = match &args.write {
        _ if args.count => Output::Count(0),
        Some(file) => {
            let name = file.display().to_string();
            let writer = Writer::create(file).map_err(|e| Error::Capture(name.clone(), e))?;
            Output::File(name, writer)
        }
        None => Output::Lines(BufWriter::new(io::stdout())),
    };
    let mut capture = Capture::open(&args.read).map_err(broken)?;
    let mut waiting = Waiting {
        batch: filters.engine.batch(),
        times: Vec::new(),
        link: ringfence_packet_filter::ETHERNET,
    };
    // What comes before a place that is wrong is shown.
    let read = loop {
        match capture.next_packet() {
            Ok(Some(packet)) => waiting.add(&packet, &mut filters, &mut output)?,
            Ok(None) => break Ok(()),
            Err(e) => break Err(broken(e)),
        }
    };
    waiting.through(&mut filters, &mut output)?;
    match output {
        Output::Lines(mut lines) => lines.flush()?,
        Output::File(name, writer) => writer.finish().map_err(|e| Error::Capture(name, e))?,
        Output::Count(count) if read.is_ok() => writeln!(io::stdout(), "{count}")?,
        Output::Count(_) => {}
    }
    read
}

/// Packets of one link type that have not been looked at.
struct Waiting {
    batch: Batch,
    times: Vec<Duration>,
    link: i32,
}

impl Waiting {
    fn add(&mut self, packet: &Packet<'_>, filters: &mut Filters, output: &mut Output) -> Result<(), Error> {
        if packet.link != self.link || self.batch.len() >= WAITING {
            self.through(filters, output)?;
            self.link = packet.link;
        }
        if !self.batch.push(packet.bytes, packet.wire) {
            self.through(filters, output)?;
            self.batch.push(packet.bytes, packet.wire);
        }
        self.times.push(packet.time);
        Ok(())
    }

    /// Has all of them looked at.
    fn through(&mut self, filters: &mut Filters, output: &mut Output) -> Result<(), Error> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let accepted = filters.of(self.link)?.run(&mut self.batch)?.to_vec();
        for number in accepted {
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
            match output {
                Output::Lines(lines) => writeln!(lines, "{}", line::of(&packet))?,
                Output::File(name, writer) => {
                    writer
                        .write(&packet)
                        .map_err(|e| Error::Capture(name.clone(), e))?;
                }
                Output::Count(count) => *count += 1,
            }
        }
        self.batch.clear();
        self.times.clear();
        Ok(())
    }
}

/// One line that tells what a packet is.
mod line {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use ringfence_packet_filter::capture::Packet;

    pub fn of(packet: &Packet<'_>) -> String {
        let seconds = packet.time.as_secs();
        let (h, m, s) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let what = match packet.link {
            1 => ethernet(packet.bytes),
            12 => ip(packet.bytes),
            other => Some(format!("link type {other}")),
        };
        let what = what.unwrap_or_else(|| "truncated".into());
        let micros = packet.time.subsec_micros();
        format!("{h:02}:{m:02}:{s:02}.{micros:06} {what}, length {}", packet.wire)
    }

    fn half(bytes: &[u8], at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
    }

    fn ethernet(bytes: &[u8]) -> Option<String> {
        let (mut at, mut tags) = (12, String::new());
        loop {
            let kind = half(bytes, at)?;
            let rest = bytes.get(at + 2..)?;
            return match kind {
                0x8100 | 0x88A8 | 0x9100 => {
                    tags += &format!("vlan {}, ", half(rest, 0)? & 0xFFF);
                    at += 4;
                    continue;
                }
                0x0800 | 0x86DD => Some(tags + &ip(rest)?),
                0x0806 => Some(tags + &arp(rest)?),
                0..=1500 => Some(format!("{tags}802.3")),
                other => Some(format!("{tags}ethertype {other:#06x}")),
            };
        }
    }

    fn arp(bytes: &[u8]) -> Option<String> {
        let address = |at: usize| {
            let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
            Some(Ipv4Addr::from(octets))
        };
        Some(match half(bytes, 6)? {
            1 => format!("ARP who-has {} tell {}", address(24)?, address(14)?),
            2 => format!("ARP {} is there", address(14)?),
            other => format!("ARP operation {other}"),
        })
    }

    fn ip(bytes: &[u8]) -> Option<String> {
        match bytes.first()? >> 4 {
            4 => {
                let address = |at: usize| {
                    let octets: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
                    Some(Ipv4Addr::from(octets).to_string())
                };
                let header = usize::from(bytes[0] & 15) * 4;
                let fragment = half(bytes, 6)? & 0x1FFF != 0;
                let rest = bytes.get(header..).filter(|_| !fragment);
                Some(format!(
                    "IP {}",
                    transport(*bytes.get(9)?, rest, &address(12)?, &address(16)?)
                ))
            }
            6 => {
                let address = |at: usize| {
                    let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
                    Some(Ipv6Addr::from(octets).to_string())
                };
                let rest = bytes.get(40..);
                Some(format!(
                    "IP6 {}",
                    transport(*bytes.get(6)?, rest, &address(8)?, &address(24)?)
                ))
            }
            other => Some(format!("IP version {other}")),
        }
    }

    fn transport(protocol: u8, rest: Option<&[u8]>, from: &str, to: &str) -> String {
        let ports = rest.and_then(|rest| Some((half(rest, 0)?, half(rest, 2)?)));
        match (protocol, ports) {
            (6, Some((a, b))) => format!("{from}.{a} > {to}.{b}: tcp"),
            (17, Some((a, b))) => format!("{from}.{a} > {to}.{b}: udp"),
            (6, None) => format!("{from} > {to}: tcp, no ports"),
            (17, None) => format!("{from} > {to}: udp, no ports"),
            (1, _) => format!("{from} > {to}: icmp"),
            (58, _) => format!("{from} > {to}: icmp6"),
            (other, _) => format!("{from} > {to}: protocol {other}"),
        }
    }
}
