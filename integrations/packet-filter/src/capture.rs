//! Capture files: pcap and pcapng.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::Path;
use std::time::Duration;

use pcap_file::pcap::{PcapHeader, PcapReader, PcapWriter, RawPcapPacket};
use pcap_file::pcapng::blocks::interface_description::{
    InterfaceDescriptionBlock, InterfaceDescriptionOption,
};
use pcap_file::pcapng::{Block, PcapNgReader};
use pcap_file::{DataLink, PcapError, TsResolution};

use crate::blocks::Plain;

/// What is wrong with a capture file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// It cannot be read or written.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// It is no capture, or damaged.
    #[error("it is no capture file, or damaged, after {packets} packets: {what}")]
    Format {
        /// How many packets were read.
        packets: u64,
        /// What is wrong.
        what: String,
    },
    /// Not even a header is in it.
    #[error("it is empty: whoever captured wrote nothing, not even a header")]
    Empty,
    /// It ends in the middle.
    #[error("it is cut off in the middle, after {packets} packets")]
    Cut {
        /// How many packets were read.
        packets: u64,
    },
    /// Packets of another link type than those before cannot be written to one file.
    #[error(
        "packets of the link types {first} and {other} cannot be in one file; write pcapng by another tool"
    )]
    Links {
        /// Of the file.
        first: i32,
        /// Of the packet.
        other: i32,
    },
}

/// A packet of a capture.
#[derive(Debug)]
pub struct Packet<'a> {
    /// When, since 1970.
    pub time: Duration,
    /// How many bytes it had on the wire.
    pub wire: u32,
    /// Its link type, `DLT_…`.
    pub link: i32,
    /// What was captured of it.
    pub bytes: &'a [u8],
}

enum Reader {
    Pcap(Box<PcapReader<Box<dyn Read>>>),
    Ng(Box<PcapNgReader<Plain<Box<dyn Read>>>>),
}

/// A capture file that is read.
pub struct Capture {
    reader: Reader,
    packets: u64,
    /// The packet that was given last.
    bytes: Vec<u8>,
}

/// The bits of a file's link type that say it; others tell of checksums (pcap-savefile(5)).
const LINK: u32 = 0x03FF_FFFF;

/// Where `DLT_…` of Linux, first, and `LINKTYPE_…` of files have different numbers.
const LINKS: [(i32, u32); 5] = [(11, 100), (12, 101), (15, 102), (16, 103), (19, 106)];

/// `DLT_…` of what a file has.
fn link(of: DataLink) -> i32 {
    let told = u32::from(of) & LINK;
    LINKS.iter().find(|l| l.1 == told).map_or(told as i32, |l| l.0)
}

/// What a file has for a `DLT_…`.
fn link_in_file(link: i32) -> u32 {
    LINKS.iter().find(|l| l.0 == link).map_or(link as u32, |l| l.1)
}

fn wrong(error: PcapError, packets: u64) -> CaptureError {
    match error {
        PcapError::IncompleteBuffer => CaptureError::Cut { packets },
        PcapError::IoError(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            CaptureError::Cut { packets }
        }
        PcapError::IoError(e) => CaptureError::Io(e),
        other => CaptureError::Format {
            packets,
            what: other.to_string(),
        },
    }
}

/// A time of a pcapng file, in units of its interface: 10⁻ⁿ or 2⁻ⁿ seconds, microseconds unless it says otherwise. It may have
/// seconds that are added to all.
fn time(units: u128, interface: &InterfaceDescriptionBlock<'_>) -> Duration {
    let told = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsResol(n) => Some(*n),
        _ => None,
    });
    let (base, power) = match told {
        Some(n) if n & 0x80 != 0 => (2_u128, u32::from(n & 0x7F).min(64)),
        Some(n) => (10, u32::from(n).min(19)),
        None => (10, 6),
    };
    let second = base.pow(power);
    let nanos = (units % second) * 1_000_000_000 / second;
    let added = interface.options.iter().find_map(|option| match option {
        InterfaceDescriptionOption::IfTsOffset(n) => Some(*n as i64),
        _ => None,
    });
    let seconds = (units / second) as i128 + i128::from(added.unwrap_or(0));
    Duration::new(seconds.clamp(0, u64::MAX.into()) as u64, nanos as u32)
}

impl Capture {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn open(path: &Path) -> Result<Capture, CaptureError> {
        match path.as_os_str() == "-" {
            true => Capture::new(std::io::stdin()),
            false => Capture::new(File::open(path)?),
        }
    }

    /// Reads a capture.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn new(from: impl Read + 'static) -> Result<Capture, CaptureError> {
        let mut from = BufReader::new(from);
        let mut magic = [0; 4];
        let mut read = 0;
        while read < magic.len() {
            match from.read(&mut magic[read..])? {
                0 => break,
                n => read += n,
            }
        }
        let ng = magic == [0x0A, 0x0D, 0x0D, 0x0A];
        let all: Box<dyn Read> = Box::new(std::io::Cursor::new(magic).take(read as u64).chain(from));
        let failed = |e| match read {
            0 => CaptureError::Empty,
            1..4 => CaptureError::Cut { packets: 0 },
            _ => wrong(e, 0),
        };
        let reader = match ng {
            true => Reader::Ng(Box::new(PcapNgReader::new(Plain::new(all)).map_err(failed)?)),
            false => Reader::Pcap(Box::new(PcapReader::new(all).map_err(failed)?)),
        };
        Ok(Capture {
            reader,
            packets: 0,
            bytes: Vec::new(),
        })
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// [`CaptureError`].
    pub fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let packets = self.packets;
        let found = match &mut self.reader {
            Reader::Pcap(reader) => {
                let header = reader.header();
                let Some(packet) = reader.next_raw_packet() else {
                    return Ok(None);
                };
                let packet = packet.map_err(|e| wrong(e, packets))?;
                let unit = match header.ts_resolution {
                    TsResolution::MicroSecond => 1000,
                    TsResolution::NanoSecond => 1,
                };
                let time = Duration::from_secs(packet.ts_sec.into())
                    + Duration::from_nanos(u64::from(packet.ts_frac) * unit);
                // What is longer than the file says that packets are is cut, as libpcap does.
                let most = match header.snaplen as usize {
                    0 => packet.data.len(),
                    most => most.min(packet.data.len()),
                };
                self.bytes.clear();
                self.bytes.extend_from_slice(&packet.data[..most]);
                (time, packet.orig_len, link(header.datalink))
            }
            Reader::Ng(reader) => loop {
                let Some(block) = reader.next_block() else {
                    return Ok(None);
                };
                let (interface, units, wire, data) = match block.map_err(|e| wrong(e, packets))? {
                    Block::EnhancedPacket(p) => (
                        p.interface_id,
                        p.timestamp.as_nanos(),
                        p.original_len,
                        p.data.into_owned(),
                    ),
                    Block::SimplePacket(p) => (0, 0, p.original_len, p.data.into_owned()),
                    Block::Packet(p) => (
                        p.interface_id.into(),
                        p.timestamp.into(),
                        p.original_len,
                        p.data.into_owned(),
                    ),
                    _ => continue,
                };
                let interfaces = reader.interfaces();
                let Some(interface) = interfaces.get(interface as usize) else {
                    return Err(CaptureError::Format {
                        packets,
                        what: format!("a packet of interface {interface}, which it does not describe"),
                    });
                };
                self.bytes = data;
                break (time(units, interface), wire, link(interface.linktype));
            },
        };
        self.packets += 1;
        let (time, wire, link) = found;
        Ok(Some(Packet {
            time,
            wire,
            link,
            bytes: &self.bytes,
        }))
    }
}

/// A pcap file that is written, with times in nanoseconds.
pub struct Writer {
    writer: Option<PcapWriter<BufWriter<Box<dyn Write>>>>,
    to: Option<Box<dyn Write>>,
    link: i32,
}

impl Writer {
    /// Makes the file, or empties it; `-` is standard output.
    ///
    /// # Errors
    /// [`CaptureError::Io`].
    pub fn create(path: &Path) -> Result<Writer, CaptureError> {
        let to: Box<dyn Write> = match path.as_os_str() == "-" {
            true => Box::new(std::io::stdout()),
            false => Box::new(File::create(path)?),
        };
        Ok(Writer {
            writer: None,
            to: Some(to),
            link: crate::ETHERNET,
        })
    }

    /// The writer, whose header tells the link type of the first packet.
    fn begin(&mut self, link: i32) -> Result<&mut PcapWriter<BufWriter<Box<dyn Write>>>, CaptureError> {
        if let Some(to) = self.to.take() {
            self.link = link;
            let header = PcapHeader {
                datalink: DataLink::from(link_in_file(link)),
                snaplen: 262_144,
                ts_resolution: TsResolution::NanoSecond,
                ..PcapHeader::default()
            };
            let writer = PcapWriter::with_header(BufWriter::new(to), header);
            self.writer = Some(writer.map_err(|e| wrong(e, 0))?);
        }
        self.writer.as_mut().ok_or(CaptureError::Cut { packets: 0 })
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// [`CaptureError::Io`], [`CaptureError::Links`].
    pub fn write(&mut self, packet: &Packet<'_>) -> Result<(), CaptureError> {
        let other = self.to.is_none() && packet.link != self.link;
        if other {
            return Err(CaptureError::Links {
                first: self.link,
                other: packet.link,
            });
        }
        let raw = RawPcapPacket {
            ts_sec: packet.time.as_secs() as u32,
            ts_frac: packet.time.subsec_nanos(),
            incl_len: packet.bytes.len() as u32,
            orig_len: packet.wire,
            data: packet.bytes.into(),
        };
        let written = self.begin(packet.link)?.write_raw_packet(&raw);
        written.map(|_| ()).map_err(|e| wrong(e, 0))
    }

    /// Writes out what is left; the header, if there was no packet.
    ///
    /// # Errors
    /// [`CaptureError::Io`].
    pub fn finish(mut self) -> Result<(), CaptureError> {
        self.begin(crate::ETHERNET)?;
        match self.writer.take() {
            Some(writer) => Ok(writer.into_writer().flush()?),
            None => Ok(()),
        }
    }
}
