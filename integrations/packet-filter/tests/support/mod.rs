//! Packets and expressions for the tests.
#![allow(dead_code)] // each test program uses a part

/// Numbers that only look random: the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len() as u64) as usize]
    }
}

pub const HOSTS: [[u8; 4]; 6] = [
    [10, 0, 0, 1],
    [10, 0, 0, 2],
    [10, 1, 2, 3],
    [192, 168, 1, 7],
    [224, 0, 0, 5],
    [255, 255, 255, 255],
];
pub const PORTS: [u16; 8] = [22, 53, 80, 123, 443, 1024, 8080, 50000];
const MACS: [[u8; 6]; 4] = [
    [2, 0, 0, 0, 0, 1],
    [2, 0, 0, 0, 0, 2],
    [0xFF; 6],
    [1, 0, 0x5E, 0, 0, 5],
];

fn ports(r: &mut Random) -> Vec<u8> {
    let mut bytes = r.pick(&PORTS).to_be_bytes().to_vec();
    bytes.extend(r.pick(&PORTS).to_be_bytes());
    bytes
}

fn transport(r: &mut Random, protocol: u8) -> Vec<u8> {
    let payload = r.below(40) as usize;
    let mut bytes = match protocol {
        6 => {
            let mut tcp = ports(r);
            tcp.extend((r.next() as u32).to_be_bytes());
            tcp.extend((r.next() as u32).to_be_bytes());
            tcp.extend([
                0x50 | (r.below(3) as u8) << 4,
                r.below(64) as u8,
                0xFF,
                0xFF,
                0,
                0,
                0,
                0,
            ]);
            tcp
        }
        17 => {
            let mut udp = ports(r);
            udp.extend((8 + payload as u16).to_be_bytes());
            udp.extend([0, 0]);
            udp
        }
        132 => ports(r),
        1 | 58 => vec![
            *r.pick(&[0, 3, 8, 11, 128, 129, 135]),
            r.below(4) as u8,
            0,
            0,
            0,
            1,
            0,
            1,
        ],
        _ => Vec::new(),
    };
    bytes.extend((0..payload).map(|_| r.next() as u8));
    bytes
}

fn ipv4(r: &mut Random) -> Vec<u8> {
    let protocol = *r.pick(&[1, 2, 6, 6, 6, 17, 17, 41, 47, 50, 51, 89, 103, 112, 132]);
    let options = if r.one_in(4) { r.below(11) as u8 } else { 0 };
    let body = match protocol {
        41 => ipv6(r),
        other => transport(r, other),
    };
    let length = 20 + 4 * u16::from(options) + body.len() as u16;
    let fragment = match r.below(6) {
        0 => 0x2000 | r.below(3) as u16,
        1 => 1 + r.below(100) as u16,
        _ => (r.below(2) as u16) << 14,
    };
    let mut bytes = vec![0x45 + options, r.below(256) as u8];
    bytes.extend(length.to_be_bytes());
    bytes.extend((r.next() as u16).to_be_bytes());
    bytes.extend(fragment.to_be_bytes());
    bytes.extend([r.below(256) as u8, protocol, 0, 0]);
    bytes.extend(r.pick(&HOSTS));
    bytes.extend(r.pick(&HOSTS));
    bytes.extend((0..4 * options).map(|_| 1));
    bytes.extend(body);
    bytes
}

fn ipv6(r: &mut Random) -> Vec<u8> {
    let protocol = *r.pick(&[6, 6, 17, 58, 59, 89]);
    let mut body = transport(r, protocol);
    let mut next = protocol;
    for _ in 0..r.below(3) {
        // hop by hop, routing, destination: a header of 8 or 16 bytes; a fragment's has 8.
        let kind = *r.pick(&[0, 43, 60, 44]);
        let words = if kind == 44 { 0 } else { r.below(2) as u8 };
        let mut header = vec![next, words];
        header.resize(8 + 8 * usize::from(words), 0);
        header.extend(body);
        (body, next) = (header, kind);
    }
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((body.len() as u16).to_be_bytes());
    bytes.extend([next, 64]);
    for _ in 0..2 {
        let mut address = [0; 16];
        (address[0], address[1]) = *r.pick(&[(0x20, 1), (0xFE, 0x80), (0xFF, 2)]);
        address[15] = 1 + r.below(3) as u8;
        bytes.extend(address);
    }
    bytes.extend(body);
    bytes
}

fn arp(r: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0, 1, 8, 0, 6, 4, 0, 1 + r.below(2) as u8];
    for _ in 0..2 {
        bytes.extend(r.pick(&MACS));
        bytes.extend(r.pick(&HOSTS));
    }
    bytes
}

/// A packet of Ethernet, and its length on the wire.
pub fn packet(r: &mut Random) -> (Vec<u8>, u32) {
    let mut bytes = r.pick(&MACS).to_vec();
    bytes.extend(r.pick(&MACS));
    if r.one_in(4) {
        for _ in 0..1 + r.below(2) {
            bytes.extend(r.pick(&[0x8100_u16, 0x88A8, 0x9100]).to_be_bytes());
            bytes.extend(((r.below(4) as u16 * 100) | ((r.below(8) as u16) << 13)).to_be_bytes());
        }
    }
    let (kind, body) = match r.below(12) {
        0 => (0x0806_u16, arp(r)),
        1 => (0x8035, arp(r)),
        2..=4 => (0x86DD, ipv6(r)),
        5 => (
            *r.pick(&[0x8847, 0x8863, 0x8864, 0x88CC, 0x809B]),
            (0..30).map(|_| r.next() as u8).collect(),
        ),
        6 => (
            r.below(1501) as u16,
            (0..40).map(|_| *r.pick(&[0x42, 0x03, 0xAA, 0xFE, 0])).collect(),
        ),
        _ => (0x0800, ipv4(r)),
    };
    bytes.extend(kind.to_be_bytes());
    bytes.extend(body);
    let wire = bytes.len() as u32 + if r.one_in(10) { 100 } else { 0 };
    if r.one_in(3) {
        bytes.truncate(r.below(bytes.len() as u64 + 1) as usize);
    }
    (bytes, wire)
}

pub fn packets(seed: u64, count: usize) -> Vec<(Vec<u8>, u32)> {
    let mut r = Random(seed);
    (0..count).map(|_| packet(&mut r)).collect()
}

/// Expressions of pcap-filter(7): each primitive at least once.
pub const EXPRESSIONS: &str = include_str!("../expressions.txt");

/// What generated expressions ask for.
pub struct Names {
    hosts: Vec<[u8; 4]>,
    hosts6: Vec<String>,
    macs: Vec<[u8; 6]>,
    ports: Vec<u16>,
}

impl Names {
    /// Those of [`packets`].
    pub fn made() -> Names {
        Names {
            hosts: HOSTS.to_vec(),
            hosts6: ["2001::1", "fe80::2", "ff02::3"].map(str::to_owned).to_vec(),
            macs: MACS.to_vec(),
            ports: PORTS.to_vec(),
        }
    }

    /// What stands in packets where Ethernet and IP have addresses and ports, and those of [`made`](Self::made).
    pub fn of(packets: &[(Vec<u8>, u32)]) -> Names {
        let mut names = Names::made();
        for (bytes, _) in packets.iter().step_by(packets.len().div_ceil(500).max(1)) {
            let Some(&[d0, d1, d2, d3, d4, d5, .., k0, k1]) = bytes.get(..14) else {
                continue;
            };
            names.macs.push([d0, d1, d2, d3, d4, d5]);
            match (k0, k1, &bytes[14..]) {
                (
                    8,
                    0,
                    [
                        _,
                        _,
                        _,
                        _,
                        _,
                        _,
                        _,
                        _,
                        _,
                        _,
                        _,
                        _,
                        a,
                        b,
                        c,
                        d,
                        _,
                        _,
                        _,
                        _,
                        p,
                        q,
                        ..,
                    ],
                ) => {
                    names.hosts.push([*a, *b, *c, *d]);
                    names.ports.push(u16::from_be_bytes([*p, *q]));
                }
                (0x86, 0xDD, body) if body.len() >= 24 => {
                    let mut address = [0; 16];
                    address.copy_from_slice(&body[8..24]);
                    names.hosts6.push(std::net::Ipv6Addr::from(address).to_string());
                }
                _ => {}
            }
        }
        names
    }
}

/// A part of an expression.
fn primitive(r: &mut Random, names: &Names) -> String {
    let host = |r: &mut Random| {
        let [a, b, c, d] = *r.pick(&names.hosts);
        format!("{a}.{b}.{c}.{d}")
    };
    let way = |r: &mut Random| *r.pick(&["", "src ", "dst ", "src or dst ", "src and dst "]);
    match r.below(14) {
        0 => format!("{}host {}", way(r), host(r)),
        1 => format!(
            "{}{}port {}",
            *r.pick(&["", "tcp ", "udp "]),
            way(r),
            r.pick(&names.ports)
        ),
        2 => {
            let (a, b) = (*r.pick(&names.ports), *r.pick(&names.ports));
            format!("{}portrange {}-{}", way(r), a.min(b), a.max(b))
        }
        3 => {
            let bits = r.below(33) as u32;
            let [a, b, c, d] = *r.pick(&names.hosts);
            let address = u32::from_be_bytes([a, b, c, d]) & u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            let [a, b, c, d] = address.to_be_bytes();
            format!("{}net {a}.{b}.{c}.{d}/{bits}", way(r))
        }
        4 => (*r.pick(&[
            "ip", "ip6", "arp", "rarp", "tcp", "udp", "icmp", "icmp6", "sctp", "igmp",
        ]))
        .to_owned(),
        5 => format!("{} {}", r.pick(&["less", "greater"]), r.below(120)),
        6 => format!("ether {}host {}", way(r), mac(r, names)),
        7 => (*r.pick(&[
            "broadcast",
            "multicast",
            "ip multicast",
            "ip6 multicast",
            "ether multicast",
        ]))
        .to_owned(),
        8 => format!(
            "{}[{}{}] {} {}",
            r.pick(&["ether", "ip", "tcp", "udp", "icmp", "arp"]),
            r.below(20),
            r.pick(&["", ":1", ":2", ":4"]),
            r.pick(&["=", "!=", "<", ">", "<=", ">="]),
            r.below(300)
        ),
        9 => format!(
            "{} {} {} {} {}",
            r.pick(&["len", "ip[2:2]", "tcp[12]", "ip[0] & 0xf", "udp[4:2]"]),
            r.pick(&["+", "-", "*", "/", "&", "|", "^", "%", "<<", ">>"]),
            1 + r.below(9),
            r.pick(&["=", ">", "<", "!="]),
            r.below(200)
        ),
        10 => format!(
            "{} proto {}",
            r.pick(&["ip", "ip6"]),
            r.pick(&[1, 2, 6, 17, 41, 58, 89])
        ),
        11 => format!(
            "tcp[tcpflags] & ({}) {} 0",
            r.pick(&["tcp-syn", "tcp-ack|tcp-fin", "tcp-rst"]),
            r.pick(&["=", "!="])
        ),
        12 => format!("ip6 {}host {}", way(r), r.pick(&names.hosts6)),
        _ => format!(
            "ether proto {}",
            r.pick(&["0x800", "0x806", "0x86dd", "\\ip", "\\arp", "0x8847"])
        ),
    }
}

fn mac(r: &mut Random, names: &Names) -> String {
    let parts: Vec<String> = r.pick(&names.macs).iter().map(|b| format!("{b:02x}")).collect();
    parts.join(":")
}

pub fn expression(r: &mut Random, depth: u32, names: &Names) -> String {
    match r.below(6) {
        0 | 1 if depth > 0 => {
            let (a, b) = (expression(r, depth - 1, names), expression(r, depth - 1, names));
            format!("({a} {} {b})", r.pick(&["and", "or"]))
        }
        2 if depth > 0 => format!("not {}", expression(r, depth - 1, names)),
        3 if depth > 2 => format!(
            "vlan {} and {}",
            r.below(4) * 100,
            expression(r, depth - 1, names)
        ),
        _ => primitive(r, names),
    }
}
