//! Makes a capture of generated packets, or counts those that libpcap selects in one: for the demonstration.
//!
//!     capture FILE COUNT | capture FILE count EXPRESSION

use std::path::Path;
use std::time::Duration;

use ringfence_packet_filter::ETHERNET;
use ringfence_packet_filter::capture::{Capture, Packet, Writer};
use ringfence_packet_filter::pcap::{Interpreted, compile};

#[path = "../tests/support/mod.rs"]
mod support;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        [file, "count", expression] => {
            let program = Interpreted::new(&compile(expression, ETHERNET)?)?;
            let mut capture = Capture::open(Path::new(file))?;
            let mut count = 0;
            while let Some(packet) = capture.next_packet()? {
                count += u32::from(program.accepts(packet.bytes, packet.wire));
            }
            println!("{count}");
        }
        [file, count] => {
            let mut writer = Writer::create(Path::new(file))?;
            for (i, (bytes, wire)) in support::packets(11, count.parse()?).iter().enumerate() {
                writer.write(&Packet {
                    time: Duration::from_micros(43_200_000_000 + 137 * i as u64),
                    wire: *wire,
                    link: ETHERNET,
                    bytes,
                })?;
            }
            writer.finish()?;
        }
        _ => return Err("usage: capture FILE COUNT | capture FILE count EXPRESSION".into()),
    }
    Ok(())
}
