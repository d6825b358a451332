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

#[test]
fn connections_are_followed_in_a_table() {
    let text = include_str!("../filters/connections.c");
    let mut r = Random(7);
    let (mut open, mut expected, mut packets) = (HashMap::new(), Vec::new(), Vec::new());
    let mut most = 0;
    for number in 0..60_000 {
        // The same client ports again and again, so that connections begin, go on and end.
        let client = ([10, 0, 0, r.below(4) as u8], 1000 + r.below(100) as u16);
        let server = ([10, 1, 0, r.below(3) as u8], [80, 443][r.below(2) as usize]);
        let back = r.one_in(2);
        let flags = *r.pick(&[0x02, 0x12, 0x10, 0x10, 0x18, 0x11, 0x04]);
        let flags = match open.get(&(client, server)) {
            // Most handshakes succeed.
            None if r.below(4) > 0 => 0x02,
            Some(1) if back && r.below(8) > 0 => 0x12,
            Some(2) if !back && r.below(8) > 0 => 0x10,
            Some(3) if r.below(8) > 0 => 0x18,
            _ => flags,
        };
        let back = back && open.contains_key(&(client, server));
        let (from, to) = if back { (server, client) } else { (client, server) };
        packets.push((packet(from.0, to.0, [from.1, to.1], flags), Duration::ZERO));
        let key = (client, server);
        let state = open.get(&key).copied().unwrap_or(0);
        let wanted = match (state, flags & 0x17) {
            (0, 2) => {
                open.insert(key, 1);
                false
            }
            (0, _) => false,
            (state, f) if f & 5 != 0 => {
                open.remove(&key);
                state == 3
            }
            (1, 0x12) if back => {
                open.insert(key, 2);
                false
            }
            (2, 0x10) if !back => {
                open.insert(key, 3);
                true
            }
            (state, _) => state == 3,
        };
        if wanted {
            expected.push(number);
        }
        most = most.max(open.len());
    }
    assert_eq!(selected(text, &packets), expected);
    assert!(most > 1000, "the table has grown: {most}");
    assert!(
        expected.len() > 5000,
        "many are of open connections: {}",
        expected.len()
    );
}

#[test]
fn a_table_that_grows_meets_the_limit_of_memory() {
    let mut options = DomainOptions::default();
    options.memory_limit = 64 << 20;
    let engine = Engine::new(&options).unwrap();
    let filter = engine.function(include_str!("../filters/connections.c")).unwrap();
    let mut batch = engine.batch();
    // Nobody but a flood of SYN: two million connections do not fit.
    for round in 0..40_u32 {
        batch.clear();
        for n in 0..50_000_u32 {
            let from = (round * 50_000 + n).to_be_bytes();
            batch.push(&packet(from, [10, 0, 0, 1], [9, 80], 2), 54);
        }
        assert_eq!(filter.run(&mut batch).unwrap(), [0_u32; 0]);
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
            Err(FilterError::Function(FunctionError::Type { .. })) => assert!(!good, "{text}"),
            Err(e) => panic!("{text}: {e}"),
        }
    }
}
