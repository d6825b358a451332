//! Supervisor and tables together: whatever is done, each byte of each table is what the rights of the words say.

use super::table::{Table, WORD};
use super::tables::Tables;
use super::{Arena, BLOCK};
use ringfence_core::{DomainId, Grantee, Party, Rights};
use ringfence_isa::PAGE;
use ringfence_words::{Call, Error, Supervisor, TypeId};
use std::sync::Arc;

/// Words of the arena: four pages of tables.
const WORDS: u32 = 4096;

struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as u32 % n
    }
}

/// What a table's bytes are if these are the rights: each access looked at for itself.
fn expected(rights: &[Rights]) -> Vec<u8> {
    let may = |at: usize, size: usize, least: Rights| {
        (at..at + size).all(|byte| rights.get(byte / 4).is_some_and(|&r| r >= least))
    };
    (0..rights.len() * 4)
        .map(|at| {
            let bits = [1, 4, 8, 16].into_iter().enumerate().map(|(class, size)| {
                u8::from(may(at, size, Rights::Read)) << class
                    | u8::from(may(at, size, Rights::Write)) << (4 + class)
            });
            bits.fold(0, |a, b| a | b)
        })
        .collect()
}

#[test]
fn bytes_of_tables_are_what_the_rights_say() {
    for seed in 0..40 {
        run(seed);
    }
}

fn run(seed: u64) {
    let mut random = Random(seed);
    // Every fourth run has too little memory for its tables.
    let limit = if seed % 4 == 3 { 6 * PAGE } else { u64::MAX };
    let mut words = Supervisor::new(Tables::new(limit), u64::from(WORDS * WORD), 1 << 24);
    let mut tables = Vec::new();
    let ids = [DomainId(1), DomainId(2), DomainId(3)];
    for id in ids {
        let (table, _) = Table::new(WORDS * WORD).expect("a table");
        let table = Arc::new(table);
        words.sink_mut().add(id, table.clone(), id.0 << 33);
        words.add_domain(id).expect("a new one");
        tables.push(table);
    }
    let groups = [0, 1].map(|n| words.add_group(Party::Host, n == 0).expect("a group"));
    let mut calls: Vec<Call> = Vec::new();
    let mut refused = 0;
    for step in 0..300 {
        let start =
            [random.below(WORDS), 1024 * random.below(4) + 1020][random.below(2) as usize].min(WORDS - 1);
        let most = [8, 60, 1500][random.below(3) as usize];
        let range = start..(start + 1 + random.below(most)).min(WORDS);
        let domain = ids[random.below(3) as usize];
        let actor = [Party::Host, Party::Host, Party::Domain(domain)][random.below(3) as usize];
        let rights = [Rights::None, Rights::Read, Rights::Write][random.below(3) as usize];
        let group = groups[random.below(2) as usize];
        let object = words.object(start);
        // Mostly a part of what is there.
        let part = match &object {
            Some(o) if random.below(8) > 0 => start..range.end.min(o.words.end),
            _ => range.clone(),
        };
        let other = ids[random.below(3) as usize];
        let done: Result<(), Error> = match random.below(10) {
            0 | 1 => words.allocate(actor, range, TypeId(0)),
            2 => words.free(actor, object.map_or(start, |o| o.words.start)),
            3..=5 => words.export(actor, part, rights, Grantee::Domain(other)),
            6 => words.export(actor, part, rights, Grantee::Group(group)),
            7 => match random.below(3) {
                0 => words.join(actor, domain, group),
                1 => words.expel(actor, domain, group),
                _ => words.revoke(actor, part),
            },
            8 => words
                .enter(Party::Host, other, &[(part, rights)])
                .map(|call| calls.push(call)),
            _ => {
                if !calls.is_empty() {
                    let at = random.below(calls.len() as u32) as usize;
                    words.leave(calls.swap_remove(at));
                }
                Ok(())
            }
        };
        refused += u32::from(done.is_err());
        if step % 10 == 9 {
            for (id, table) in ids.into_iter().zip(&tables) {
                let now: Vec<Rights> = (0..WORDS).map(|w| words.rights(id, w)).collect();
                let (bytes, wanted) = (table.bytes(), expected(&now));
                let first = (0..bytes.len()).find(|&n| bytes[n] != wanted[n]);
                assert_eq!(first, None, "seed {seed}, step {step}, domain {}", id.0);
            }
        }
    }
    assert!(refused > 10 && refused < 290, "{refused}");
    assert!(words.sink().used() <= limit);
    let lowered = words.sink_mut().take_lowered();
    assert!(
        lowered
            .iter()
            .all(|base| ids.iter().any(|id| id.0 << 33 == *base))
    );
    // All of it comes back.
    for call in calls {
        words.leave(call);
    }
    for id in ids {
        words.remove_domain(id).expect("nothing of it is in use");
        words.sink_mut().remove(id);
    }
    assert_eq!(words.sink().used(), 0);
}

#[test]
fn a_number_that_a_host_chooses_makes_no_block() {
    let arena = Arena::new(1 << 16).expect("an arena");
    let object = arena.alloc_for(Party::Host, 64, BLOCK).expect("an object");
    arena.free(Party::Host, object).expect("an object of the host's");
}

#[test]
fn a_window_is_asked_once_for_all_places_in_limbo() {
    let arena = Arena::new(1 << 16).expect("an arena");
    let (one, other) = (7 << 33, 8 << 33);
    {
        let mut state = arena.0.state.lock();
        for n in 0..100 {
            let at = state.free.take(64).expect("a place");
            let bases = if n % 10 == 0 { vec![other, one] } else { vec![one] };
            state.limbo.push((at..at + 64, bases));
        }
        let at = state.free.take(64).expect("a place");
        state.limbo.push((at..at + 64, vec![other]));
    }
    let mut asked = Vec::new();
    arena.leave_limbo(|bases| {
        asked.extend_from_slice(bases);
        bases == [other]
    });
    assert_eq!(asked, [one, other]);
    assert_eq!(
        arena.0.state.lock().limbo.len(),
        100,
        "those that one answers for alone"
    );
    let all = || arena.0.state.lock().free.take(1 << 16);
    assert_eq!(all(), None);
    arena.leave_limbo(|_| true);
    assert_eq!(all(), Some(0));
}
