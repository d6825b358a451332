//! Filters in C that keep state, those of `filters/`: each selects what a model of it in Rust selects.

mod support;

use ringfence::DomainOptions;
use ringfence_functions::FunctionError;
use ringfence_packet_filter::{Batch, Engine, FilterError};
use std::collections::HashMap;
use std::time::Duration;
use support::Random;

fn engine() -> Engine {
    Engine::new(&DomainOptions::default()).unwrap()
}

/// A packet over Ethernet and IPv4.
fn packet(from: [u8; 4], to: [u8; 4], ports: [u16; 2], flags: u8) -> Vec<u8> {
    let mut bytes = vec![0; 54];
    bytes[12] = 8;
    (bytes[14], bytes[23]) = (0x45, 6);
    bytes[26..30].copy_from_slice(&from);
    bytes[30..34].copy_from_slice(&to);
    bytes[34..36].copy_from_slice(&ports[0].to_be_bytes());
    bytes[36..38].copy_from_slice(&ports[1].to_be_bytes());
    (bytes[46], bytes[47]) = (0x50, flags);
    bytes
}

/// Runs packets through a filter in batches of different sizes: state stays from one to the next. The numbers of those selected.
fn selected(text: &str, packets: &[(Vec<u8>, Duration)]) -> Vec<usize> {
    let engine = engine();
    let filter = engine.function(text).unwrap();
    let mut batch: Batch = engine.batch();
    let (mut all, mut done, mut size) = (Vec::new(), 0, 1);
    while done < packets.len() {
        let some = &packets[done..packets.len().min(done + size)];
        batch.clear();
        for (bytes, time) in some {
            assert!(batch.push_at(bytes, bytes.len() as u32, *time));
        }
        let accepted = filter.run(&mut batch).unwrap();
        all.extend(accepted.iter().map(|&n| done + n as usize));
        done += some.len();
        size = size * 2 % 1021 + 1;
    }
    all
}

#[test]
fn rates_are_limited_by_the_packets_times() {
    let text = include_str!("../filters/rate-limit.c");
    let mut r = Random(11);
    let mut now = Duration::from_secs(1_700_000_000);
    let mut packets = Vec::new();
    for _ in 0..20_000 {
        // Now and then a pause, in which buckets fill.
        now += Duration::from_nanos(if r.one_in(500) {
            r.below(400_000_000)
        } else {
            r.below(3_000_000)
        });
        let source = [10, 0, 0, 1 + (r.below(100) as u8).min(5)];
        packets.push((packet(source, [10, 9, 9, 9], [1, 2], 0), now));
    }
    let (mut buckets, mut expected) = (HashMap::new(), Vec::new());
    for (number, (bytes, time)) in packets.iter().enumerate() {
        let (tokens, last) = buckets.entry(bytes[29]).or_insert((200_000_000_u64, *time));
        *tokens = (*tokens + (*time - *last).as_nanos() as u64).min(200_000_000);
        *last = *time;
        if *tokens >= 10_000_000 {
            *tokens -= 10_000_000;
            expected.push(number);
        }
    }
    let got = selected(text, &packets);
    assert_eq!(got, expected);
    assert!(
        got.len() > 2000 && got.len() < 18_000,
        "some, and not all: {}",
        got.len()
    );
}

/// What `connections.c` knows of connections: their states, and which number their last packets have.
#[derive(Default)]
struct Followed {
    open: HashMap<([u8; 6], [u8; 6]), (u8, usize)>,
    /// How many there may be, and after how many new ones there is no memory for one.
    limit: Option<(usize, usize)>,
    new: usize,
    evicted: usize,
}

impl Followed {
    /// Whether the packet is selected.
    fn packet(&mut self, key: ([u8; 6], [u8; 6]), back: bool, flags: u8, number: usize) -> bool {
        let state = self.open.get(&key).map_or(0, |c| c.0);
        let next = match (state, flags & 0x17) {
            (0, 2) => {
                let full = self.limit.is_some_and(|(most, each)| {
                    let full = self.open.len() >= most;
                    self.new += usize::from(!full);
                    full || self.new.is_multiple_of(each)
                });
                if full {
                    let silent = *self.open.iter().min_by_key(|c| c.1.1).unwrap().0;
                    self.open.remove(&silent);
                    self.evicted += 1;
                }
                1
            }
            (0, _) => return false,
            (state, f) if f & 5 != 0 => {
                self.open.remove(&key);
                return state == 3;
            }
            (1, 0x12) if back => 2,
            (2, 0x10) if !back => 3,
            (state, _) => state,
        };
        self.open.insert(key, (next, number));
        next == 3
    }
}

/// Compares the filter's choice with the model's; returns the most connections at once, and how many packets were selected.
fn follow(text: &str, model: &mut Followed) -> (usize, usize) {
    let mut r = Random(7);
    let (mut expected, mut packets, mut most) = (Vec::new(), Vec::new(), 0);
    for number in 0..60_000 {
        // The same client ports again and again, so that connections begin, go on and end.
        let client = ([10, 0, 0, r.below(4) as u8], 1000 + r.below(100) as u16);
        let server = ([10, 1, 0, r.below(3) as u8], [80, 443][r.below(2) as usize]);
        let end = |(a, port): ([u8; 4], u16)| {
            let [p, q] = port.to_be_bytes();
            [a[0], a[1], a[2], a[3], p, q]
        };
        let key = (end(client), end(server));
        let state = model.open.get(&key).map(|c| c.0);
        let back = r.one_in(2);
        let flags = *r.pick(&[0x02, 0x12, 0x10, 0x10, 0x18, 0x11, 0x04]);
        let flags = match state {
            // Most handshakes succeed.
            None if r.below(4) > 0 => 0x02,
            Some(1) if back && r.below(8) > 0 => 0x12,
            Some(2) if !back && r.below(8) > 0 => 0x10,
            Some(3) if r.below(8) > 0 => 0x18,
            _ => flags,
        };
        let back = back && state.is_some();
        let (from, to) = if back { (server, client) } else { (client, server) };
        packets.push((packet(from.0, to.0, [from.1, to.1], flags), Duration::ZERO));
        if model.packet(key, back, flags, number) {
            expected.push(number);
        }
        most = most.max(model.open.len());
    }
    assert_eq!(selected(text, &packets), expected);
    (most, expected.len())
}

#[test]
fn connections_are_followed_in_a_table() {
    let text = include_str!("../filters/connections.c");
    let (most, count) = follow(text, &mut Followed::default());
    assert!(most > 1000, "the table has grown: {most}");
    assert!(count > 5000, "many are of open connections: {count}");
}

#[test]
fn where_memory_ends_the_most_silent_connection_goes() {
    // The table has at most 512 places, and each 29th connection finds no memory.
    let scarce = "
        static unsigned asked;
        static void *scarce(unsigned long size)
        {
            if (size > 512 * 8 || (size < 100 && ++asked % 29 == 0))
                return 0;
            return malloc(size);
        }
        static struct connection **table";
    let text = include_str!("../filters/connections.c")
        .replace("malloc(more", "scarce(more")
        .replace("malloc(sizeof *c)", "scarce(sizeof *c)")
        .replacen("static struct connection **table", scarce, 1);
    let mut model = Followed {
        limit: Some((512, 29)),
        ..Followed::default()
    };
    let (most, count) = follow(&text, &mut model);
    assert_eq!(most, 512);
    assert!(model.evicted > 2000, "many had to go: {}", model.evicted);
    assert!(count > 500, "some are of open connections: {count}");
}

#[test]
fn a_flood_of_connections_fills_the_memory_and_hides_no_open_one() {
    let mut options = DomainOptions::default();
    options.memory_limit = 64 << 20;
    let engine = Engine::new(&options).unwrap();
    let filter = engine.function(include_str!("../filters/connections.c")).unwrap();
    let mut batch = engine.batch();
    let (client, server) = ([10, 0, 0, 2], [10, 0, 0, 1]);
    // Three connections: from the beginning, from the middle of the flood, and from its end.
    for round in 0..40_u32 {
        batch.clear();
        let port = 1000 + round as u16;
        if round % 19 == 0 {
            batch.push(&packet(client, server, [port, 80], 2), 54);
            batch.push(&packet(server, client, [80, port], 0x12), 54);
            batch.push(&packet(client, server, [port, 80], 0x10), 54);
        }
        // Each of them sends something now and then.
        let mut expected = if round % 19 == 0 { vec![2] } else { vec![] };
        for port in (0..=round).step_by(19) {
            expected.push(batch.len() as u32);
            batch.push(&packet(client, server, [1000 + port as u16, 80], 0x18), 54);
        }
        // Nobody else but a flood of SYN: two million connections do not fit.
        for n in 0..50_000_u32 {
            let from = (1 << 30 | (round * 50_000 + n)).to_be_bytes();
            batch.push(&packet(from, server, [9, 80], 2), 54);
        }
        assert_eq!(filter.run(&mut batch).unwrap(), expected);
    }
    assert!(!engine.runtime().domain().faulted());
}

#[test]
fn every_third_packet_of_a_port() {
    let text = include_str!("../filters/every-third.c");
    let packets: Vec<_> = [80, 80, 443, 80, 443, 443, 80, 80, 80]
        .map(|port| (packet([1; 4], [2; 4], [port, 9], 0), Duration::ZERO))
        .to_vec();
    assert_eq!(selected(text, &packets), [3, 5, 8]);
}

#[test]
fn a_filter_has_one_of_two_types() {
    for (text, good) in [
        (
            "int filter(const unsigned char *p, unsigned n, unsigned w, unsigned long t) { return t != 0; }",
            true,
        ),
        (
            "int filter(const unsigned char *p, unsigned n, unsigned w) { return 1; }",
            true,
        ),
        (
            "int filter(const unsigned char *p, unsigned n, unsigned w, unsigned t) { return 1; }",
            false,
        ),
        (
            "int filter(const unsigned char *p, unsigned n, unsigned w, unsigned long t, int x) { return 1; }",
            false,
        ),
        (
            "void filter(const unsigned char *p, unsigned n, unsigned w) {}",
            false,
        ),
        (
            "int filter(const unsigned char *p, unsigned n) { return 1; }",
            false,
        ),
    ] {
        let engine = engine();
        match engine.function(text) {
            Ok(filter) => {
                assert!(good, "{text}");
                let mut batch = engine.batch();
                batch.push_at(&[0; 20], 20, Duration::from_nanos(1));
                assert_eq!(filter.run(&mut batch).unwrap(), [0]);
            }
            Err(FilterError::Function(FunctionError::Type { has, .. })) => {
                assert!(!good, "{text}");
                assert!(has.contains("(void *, unsigned"), "its own type is told: {has}");
            }
            Err(e) => panic!("{text}: {e}"),
        }
    }
}
