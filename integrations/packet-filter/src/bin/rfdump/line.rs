//! One line that tells what a packet is.

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
