//! Each thing that is refused, by the error that says why, and that nothing has changed; and what the rules promise, one by one.

use ringfence_words::{DomainId, Error, Grantee, Listed, NoRoom, Party, Rights, Supervisor, TypeId};

const A: DomainId = DomainId(1);
const B: DomainId = DomainId(2);
const TO_A: Grantee = Grantee::Domain(A);

fn two_domains() -> Supervisor<Listed> {
    let mut s = Supervisor::new(Listed::default(), 1 << 16, 1 << 20);
    s.add_domain(A).expect("the first");
    s.add_domain(B).expect("the second");
    s
}

#[test]
fn bytes_that_are_no_words_of_the_arena() {
    let s = two_domains();
    assert_eq!(s.words(0x100, 8).expect("words"), 0x40..0x42);
    assert!(matches!(
        s.words(0x101, 8),
        Err(Error::Misaligned {
            start: 0x101,
            end: 0x109
        })
    ));
    assert!(matches!(s.words(0x100, 7), Err(Error::Misaligned { .. })));
    assert!(matches!(s.words(0x100, 0), Err(Error::Empty(_))));
    assert!(matches!(
        s.words(0xFFFC, 8),
        Err(Error::Outside { size: 0x10000, .. })
    ));
    assert!(matches!(s.words(u64::MAX - 3, 8), Err(Error::Outside { .. })));
    let said = s.words(0x101, 8).expect_err("half words").to_string();
    assert!(said.contains("multiples of 4"), "{said}");
}

#[test]
fn exports_of_what_one_does_not_own() {
    let mut s = two_domains();
    s.allocate(Party::Domain(A), 0..16, TypeId(0)).expect("room");
    s.allocate(Party::Host, 16..32, TypeId(0)).expect("room");
    let to_b = Grantee::Domain(B);
    let by_b = |s: &mut Supervisor<Listed>, words| s.export(Party::Domain(B), words, Rights::Read, to_b);
    assert!(matches!(
        by_b(&mut s, 0..4),
        Err(Error::NotOwner {
            owner: Party::Domain(A)
        })
    ));
    assert!(matches!(
        by_b(&mut s, 16..20),
        Err(Error::NotOwner { owner: Party::Host })
    ));
    assert!(matches!(by_b(&mut s, 40..44), Err(Error::Nobodys { word: 40 })));
    // Over the end of one into the next, also where both have one owner.
    s.allocate(Party::Host, 32..48, TypeId(0)).expect("room");
    let over = s.export(Party::Host, 30..34, Rights::Read, to_b);
    assert!(matches!(over, Err(Error::Beyond { .. })), "{over:?}");
    assert_eq!(s.rights(B, 30), Rights::None);
    // The owner may, and so may the host with what a domain owns.
    s.export(Party::Domain(A), 0..4, Rights::Read, to_b)
        .expect("its own");
    s.export(Party::Host, 4..8, Rights::Write, to_b)
        .expect("the host");
    assert_eq!(
        [0, 4, 8].map(|w| s.rights(B, w)),
        [Rights::Read, Rights::Write, Rights::None]
    );
    // Overlapping ones replace what was there, word by word.
    s.export(Party::Host, 2..6, Rights::Read, to_b).expect("the host");
    let now = [0, 2, 4, 6].map(|w| s.rights(B, w));
    assert_eq!(now, [Rights::Read, Rights::Read, Rights::Read, Rights::Write]);
    // Who has rights may give them up, and not take them again.
    s.export(Party::Domain(B), 6..8, Rights::None, to_b)
        .expect("less");
    assert!(by_b(&mut s, 6..8).is_err());
    assert!(
        s.export(Party::Domain(B), 0..2, Rights::Read, TO_A).is_err(),
        "passed on"
    );
}

#[test]
fn objects_do_not_overlap_and_are_freed_by_their_start() {
    let mut s = two_domains();
    s.allocate(Party::Domain(A), 8..16, TypeId(7)).expect("room");
    let over = s.allocate(Party::Host, 0..9, TypeId(0)).expect_err("overlaps");
    assert_eq!(
        over.to_string(),
        "0..9 overlaps an object that is there: 32 bytes at 0x20 of domain #1"
    );
    assert!(matches!(
        s.free(Party::Host, 9),
        Err(Error::Inside { word: 9, .. })
    ));
    assert!(matches!(s.free(Party::Host, 0), Err(Error::Nobodys { word: 0 })));
    assert!(matches!(s.free(Party::Domain(B), 8), Err(Error::NotOwner { .. })));
    assert_eq!(
        s.object(15).map(|o| (o.words, o.owner, o.kind)),
        Some((8..16, Party::Domain(A), TypeId(7)))
    );
    s.free(Party::Domain(A), 8).expect("its own");
    assert!(
        matches!(s.free(Party::Host, 8), Err(Error::Nobodys { .. })),
        "twice"
    );
    assert_eq!(s.objects(), 0);
}

#[test]
fn freeing_takes_rights_back_everywhere_and_the_place_is_clean_for_the_next() {
    let mut s = two_domains();
    let group = s.add_group(Party::Host, true).expect("a group");
    s.join(Party::Domain(B), B, group).expect("open");
    s.allocate(Party::Host, 100..5000, TypeId(0)).expect("room");
    s.export(Party::Host, 100..5000, Rights::Read, TO_A)
        .expect("host");
    s.export(Party::Host, 2000..2100, Rights::Write, TO_A)
        .expect("host");
    s.export(Party::Host, 1000..5000, Rights::Read, Grantee::Group(group))
        .expect("host");
    assert_eq!(s.sink().rights.len(), 4900 + 4000);
    s.free(Party::Host, 100).expect("host");
    assert!(s.sink().rights.is_empty());
    s.allocate(Party::Host, 100..5000, TypeId(0)).expect("room");
    assert_eq!(
        (s.rights(A, 2050), s.rights(B, 2050)),
        (Rights::None, Rights::None)
    );
    // Also for whoever joins later.
    s.join(Party::Host, A, group).expect("host");
    assert!(s.sink().rights.is_empty());
}

#[test]
fn a_group_is_virtual_until_somebody_joins() {
    let mut s = two_domains();
    let (inner, outer) = (
        s.add_group(Party::Host, false),
        s.add_group(Party::Domain(A), false),
    );
    let (inner, outer) = (inner.expect("a group"), outer.expect("a group"));
    s.allocate(Party::Host, 0..16, TypeId(0)).expect("room");
    s.export(Party::Host, 0..16, Rights::Read, Grantee::Group(outer))
        .expect("host");
    assert!(s.sink().rights.is_empty());
    s.admit_group(Party::Domain(A), inner, outer).expect("its owner");
    assert!(s.sink().rights.is_empty(), "nobody is in either");
    assert!(matches!(
        s.join(Party::Domain(B), B, inner),
        Err(Error::Closed(_))
    ));
    s.join(Party::Host, B, inner).expect("host");
    assert_eq!(s.rights(B, 3), Rights::Read);
    s.expel_group(Party::Domain(A), inner, outer).expect("its owner");
    assert!(s.sink().rights.is_empty());
}

#[test]
fn groups_that_contain_each_other() {
    let mut s = two_domains();
    let g: Vec<_> = (0..4)
        .map(|_| s.add_group(Party::Host, true).expect("a group"))
        .collect();
    assert!(matches!(
        s.admit_group(Party::Host, g[0], g[0]),
        Err(Error::Circle { .. })
    ));
    for n in 0..3 {
        s.admit_group(Party::Host, g[n], g[n + 1]).expect("no circle");
    }
    let circle = s.admit_group(Party::Host, g[3], g[0]).expect_err("a circle");
    assert_eq!(circle.to_string(), "group 4 cannot be in group 1, which is in it");
    assert!(matches!(
        s.admit_group(Party::Domain(A), g[0], g[3]),
        Err(Error::NotOwner { .. })
    ));
    // Two ways to the same group are none.
    s.admit_group(Party::Host, g[0], g[3]).expect("no circle");
    assert!(matches!(s.expel(Party::Host, A, g[0]), Err(Error::NotMember(_))));
}

#[test]
fn rights_of_a_call_end_with_it_and_are_counted() {
    let mut s = two_domains();
    s.allocate(Party::Host, 0..36, TypeId(0)).expect("room");
    let first = s
        .enter(Party::Host, A, &[(0..36, Rights::Read), (8..16, Rights::Write)])
        .expect("host");
    let second = s.enter(Party::Host, A, &[(8..12, Rights::Write)]).expect("host");
    assert_eq!(
        [0, 8, 15, 16].map(|w| s.rights(A, w)),
        [Rights::Read, Rights::Write, Rights::Write, Rights::Read]
    );
    // An object that calls work on is not freed under them.
    let in_use = s.free(Party::Host, 0).expect_err("in use");
    assert!(
        matches!(
            in_use,
            Error::InUse {
                domain: A,
                calls: 2,
                ..
            }
        ),
        "{in_use}"
    );
    s.leave(first);
    s.leave(first);
    assert_eq!(
        [0, 8, 12].map(|w| s.rights(A, w)),
        [Rights::None, Rights::Write, Rights::None]
    );
    // It has faulted: all its calls are over.
    s.end_calls(A).expect("it is there");
    s.leave(second);
    assert!(s.sink().rights.is_empty());
    s.free(Party::Host, 0).expect("nobody has it");
}

#[test]
fn what_is_revoked_goes_from_calls_too_and_then_it_can_be_freed() {
    let mut s = two_domains();
    s.allocate(Party::Host, 0..36, TypeId(0)).expect("room");
    s.export(Party::Host, 4..8, Rights::Read, TO_A).expect("host");
    let call = s.enter(Party::Host, B, &[(0..36, Rights::Write)]).expect("host");
    s.revoke(Party::Host, 4..10).expect("host");
    assert_eq!(
        [3, 4, 9, 10].map(|w| s.rights(B, w)),
        [Rights::Write, Rights::None, Rights::None, Rights::Write]
    );
    assert_eq!(s.rights(A, 4), Rights::None);
    s.revoke(Party::Host, 0..36).expect("host");
    assert!(s.sink().rights.is_empty());
    s.free(Party::Host, 0).expect("nobody has it");
    s.leave(call);
}

#[test]
fn a_domain_that_ends_takes_along_what_it_owns() {
    let mut s = two_domains();
    s.allocate(Party::Domain(A), 0..3000, TypeId(0)).expect("room");
    s.allocate(Party::Domain(A), 3000..3016, TypeId(0)).expect("room");
    s.allocate(Party::Host, 4000..4016, TypeId(0)).expect("room");
    s.export(Party::Domain(A), 10..20, Rights::Write, Grantee::Domain(B))
        .expect("its own");
    let call = s
        .enter(Party::Domain(A), B, &[(3000..3016, Rights::Read)])
        .expect("its own");
    assert!(matches!(s.remove_domain(A), Err(Error::InUse { domain: B, .. })));
    s.leave(call);
    s.remove_domain(A).expect("nobody works on its objects");
    assert_eq!((s.objects(), s.rights(B, 15)), (1, Rights::None));
    assert!(matches!(s.remove_domain(A), Err(Error::NoDomain(A))));
    assert!(matches!(s.add_domain(B), Err(Error::SameDomain(B))));
    // Its number again, for another: nothing is left.
    s.add_domain(A).expect("free");
    assert_eq!((0..4096).filter(|&w| s.rights(A, w) != Rights::None).count(), 0);
}

#[test]
fn tables_that_would_exceed_memory() {
    // A domain's table.
    let mut s = two_domains();
    s.sink_mut().most = Some(10);
    s.allocate(Party::Host, 0..64, TypeId(0)).expect("room");
    s.export(Party::Host, 0..4, Rights::Read, TO_A)
        .expect("four words");
    let full = s
        .export(Party::Host, 0..32, Rights::Write, TO_A)
        .expect_err("ten words");
    assert_eq!(
        full,
        Error::Table {
            domain: A,
            why: NoRoom { needed: 1 }
        }
    );
    assert_eq!((s.rights(A, 0), s.rights(A, 5)), (Rights::Read, Rights::None));
    assert_eq!(s.sink().rights.len(), 4);
    assert!(
        s.enter(Party::Host, B, &[(0..2, Rights::Read), (8..16, Rights::Read)])
            .is_err()
    );
    assert_eq!(s.sink().rights.len(), 4);
    s.free(Party::Host, 0).expect("no call has it");

    // The supervisor's own: whoever asks for the whole arena word by word ends at the limit, with all that was exported before.
    let mut s = Supervisor::new(Listed::default(), 1 << 32, 1 << 20);
    s.add_domain(A).expect("the first");
    s.allocate(Party::Host, 0..1 << 30, TypeId(0))
        .expect_err("a table of all of it");
    let mut made = 0;
    let refused = loop {
        let words = made * 1024..made * 1024 + 1;
        let done = s.allocate(Party::Host, words.clone(), TypeId(0));
        match done.and_then(|()| s.export(Party::Host, words, Rights::Read, TO_A)) {
            Ok(()) => made += 1,
            Err(e) => break e,
        }
    };
    assert!(
        matches!(refused, Error::Memory { limit: 0x10_0000, .. }),
        "{refused}"
    );
    assert!(s.memory() <= 1 << 20 && made > 1000);
    assert_eq!(s.sink().rights.len() as u32, made);
    // What is freed can be had again.
    for n in 0..made {
        s.free(Party::Host, n * 1024).expect("an object");
    }
    s.trim();
    s.allocate(Party::Host, 0..1, TypeId(0)).expect("room again");
    s.export(Party::Host, 0..1, Rights::Read, TO_A)
        .expect("room again");
}

#[test]
fn who_has_what_as_text() {
    let mut s = two_domains();
    let group = s.add_group(Party::Domain(A), true).expect("a group");
    s.join(Party::Domain(B), B, group).expect("open");
    s.allocate(Party::Domain(A), 0..16, TypeId(0)).expect("room");
    s.export(Party::Domain(A), 4..8, Rights::Read, Grantee::Group(group))
        .expect("its own");
    s.export(Party::Domain(A), 8..9, Rights::Write, Grantee::Group(group))
        .expect("its own");
    assert_eq!(
        s.overview(10).to_string(),
        "domain #1: 0x0..0x40=rw\n\
         domain #2: 0x10..0x20=r 0x20..0x24=rw\n\
         group 1, open, of domain #1: #2; 0x10..0x20=r 0x20..0x24=rw\n"
    );
    assert!(
        s.overview(1)
            .to_string()
            .contains("domain #2: 0x10..0x20=r and 1 more\n")
    );
}
