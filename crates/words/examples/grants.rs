//! What exports cost, as their number grows, and what else could hold them:
//! `cargo run --release -p ringfence-words --example grants`.
//!
//! A million objects of 64 bytes, 16 bytes apart, in random order; the sink is a table of one byte for 8 bytes, as domains have.

use ringfence_words::{DomainId, Grantee, NoRoom, Party, Rights, Sink, Supervisor, TypeId};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ops::Range;
use std::time::Instant;

/// A byte for two words.
struct Bytes(Vec<u8>);

impl Bytes {
    fn fill(&mut self, words: Range<u32>, rights: Rights) {
        self.0[words.start as usize / 2..words.end as usize / 2].fill(rights as u8);
    }
}

impl Sink for Bytes {
    fn raise(&mut self, _: DomainId, words: Range<u32>, rights: Rights) -> Result<(), NoRoom> {
        self.fill(words, rights);
        Ok(())
    }
    fn lower(&mut self, _: DomainId, words: Range<u32>, rights: Rights) {
        self.fill(words, rights);
    }
}

const OBJECT: u32 = 16;
const STRIDE: u32 = 20;

fn shuffled(count: u32) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count).collect();
    let mut state = 1_u64;
    for n in (1..count as usize).rev() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        order.swap(n, (state >> 33) as usize % (n + 1));
    }
    order
}

/// Nanoseconds for each, the least of three runs.
fn each(order: &[u32], mut work: impl FnMut(Range<u32>)) -> f64 {
    let begin = Instant::now();
    for &n in order {
        work(n * STRIDE..n * STRIDE + OBJECT);
    }
    begin.elapsed().as_secs_f64() * 1e9 / order.len() as f64
}

fn main() {
    println!(
        "| objects | allocate | export | again | by a group | revoke | a call's, there and back | free | table, bytes for an object | exports in a map: insert, find |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let counts = match std::env::args().nth(1).map(|n| n.parse()) {
        Some(Ok(count)) => vec![count],
        _ => vec![1_000, 10_000, 100_000, 1_000_000],
    };
    for count in counts {
        let arena = u64::from(count * STRIDE) * 4;
        let mut s = Supervisor::new(Bytes(vec![0; (arena / 8) as usize]), arena, usize::MAX);
        let domain = DomainId(1);
        s.add_domain(domain).expect("the first");
        let group = s.add_group(Party::Host, false).expect("a group");
        for (how, order) in [("in order", (0..count).collect()), ("random", shuffled(count))] {
            let rounds = (4_000_000 / count as usize).clamp(1, 2_000);
            let mut row = [f64::MAX; 7];
            let mut bytes = 0;
            for _ in 0..rounds {
                let mut least = |n: usize, time: f64| row[n] = row[n].min(time);
                let to = Grantee::Domain(domain);
                least(
                    0,
                    each(&order, |w| s.allocate(Party::Host, w, TypeId(1)).expect("free")),
                );
                least(
                    1,
                    each(&order, |w| {
                        s.export(Party::Host, w, Rights::Write, to).expect("an object")
                    }),
                );
                bytes = s.memory();
                least(
                    2,
                    each(&order, |w| {
                        s.export(Party::Host, w, Rights::Read, to).expect("an object")
                    }),
                );
                least(
                    3,
                    each(&order, |w| {
                        s.export(Party::Host, w, Rights::Write, Grantee::Group(group))
                            .expect("an object")
                    }),
                );
                least(
                    4,
                    each(&order, |w| {
                        s.export(Party::Host, w, Rights::None, to).expect("an object")
                    }),
                );
                least(
                    5,
                    each(&order, |w| {
                        let call = s
                            .enter(Party::Host, domain, &[(w, Rights::Write)])
                            .expect("an object");
                        s.leave(call);
                    }),
                );
                least(
                    6,
                    each(&order, |w| s.free(Party::Host, w.start).expect("an object")),
                );
            }
            let mut map = BTreeMap::new();
            let (mut insert, mut find) = (f64::MAX, f64::MAX);
            for _ in 0..rounds {
                map.clear();
                insert = insert.min(each(&order, |w| {
                    black_box(map.insert(w.start, (w.end, Rights::Write)));
                }));
                find = find.min(each(&order, |w| {
                    black_box(map.range(..=w.start + 3).next_back());
                }));
            }
            let [allocate, export, again, by_group, revoke, call, free] = row;
            println!(
                "| {count}, {how} | {allocate:.0} ns | {export:.0} ns | {again:.0} ns | {by_group:.0} ns | {revoke:.0} ns | {call:.0} ns | {free:.0} ns | {:.0} | {insert:.0} ns, {find:.0} ns |",
                bytes as f64 / f64::from(count)
            );
        }
    }
}
