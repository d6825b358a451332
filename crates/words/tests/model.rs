//! The supervisor against a model that is too simple to be wrong: rights word by word, everything recomputed each time. Operations that
//! make no sense, and tables that run out of memory, are as frequent as the others.

use ringfence_words::{
    Call, DomainId, Error, Grantee, GroupId, NoRoom, Party, Rights, Sink, Supervisor, TypeId,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Words of the arena: some buckets and leaves.
const WORDS: u32 = 2600;

type Row = Vec<Rights>;

fn row() -> Row {
    vec![Rights::None; WORDS as usize]
}

fn of<'a>(row: &'a mut Row, words: &Range<u32>) -> &'a mut [Rights] {
    &mut row[words.start as usize..words.end as usize]
}

/// Tables that check what they are told, and fail when asked to.
#[derive(Default)]
struct Tables {
    rows: BTreeMap<DomainId, Row>,
    /// Raises until one fails, half done.
    until_failure: Option<u32>,
    raised: Vec<(DomainId, Range<u32>, Rights)>,
}

impl Sink for Tables {
    fn raise(&mut self, domain: DomainId, words: Range<u32>, rights: Rights) -> Result<(), NoRoom> {
        assert!(!words.is_empty());
        let row = of(self.rows.entry(domain).or_insert_with(row), &words);
        assert!(row.iter().all(|&r| r <= rights), "raised to less: {words:?}");
        self.raised.push((domain, words, rights));
        let fails = self.until_failure.is_some_and(|n| n == 0);
        let len = if fails { row.len() / 2 } else { row.len() };
        row[..len].fill(rights);
        if fails {
            return Err(NoRoom { needed: 4096 });
        }
        self.until_failure = self.until_failure.map(|n| n - 1);
        Ok(())
    }

    fn lower(&mut self, domain: DomainId, words: Range<u32>, rights: Rights) {
        assert!(!words.is_empty());
        let row = of(self.rows.entry(domain).or_insert_with(row), &words);
        if self.until_failure != Some(0) {
            assert!(row.iter().all(|&r| r >= rights), "lowered to more: {words:?}");
        }
        row.fill(rights);
    }
}

#[derive(Clone)]
struct Object {
    words: Range<u32>,
    owner: Party,
}

/// What a call has.
type Given = Vec<(Range<u32>, Rights)>;

/// Facts, and nothing derived.
#[derive(Clone, Default)]
struct Model {
    domains: Vec<DomainId>,
    objects: Vec<Object>,
    groups: Vec<(GroupId, Party, bool)>,
    members: Vec<(GroupId, DomainId)>,
    /// Inner, outer.
    nested: Vec<(GroupId, GroupId)>,
    given: BTreeMap<Grantee, Row>,
    calls: Vec<(Call, DomainId, Given)>,
}

impl Model {
    fn known(&self, party: Party) -> bool {
        match party {
            Party::Host => true,
            Party::Domain(d) => self.domains.contains(&d),
        }
    }

    fn object(&self, word: u32) -> Option<&Object> {
        self.objects.iter().find(|o| o.words.contains(&word))
    }

    fn may(actor: Party, owner: Party) -> bool {
        actor == Party::Host || actor == owner
    }

    fn group(&self, g: GroupId) -> Option<(Party, bool)> {
        self.groups.iter().find(|x| x.0 == g).map(|x| (x.1, x.2))
    }

    fn contains(&self, outer: GroupId, inner: GroupId) -> bool {
        outer == inner
            || self
                .nested
                .iter()
                .any(|&(i, o)| o == outer && self.contains(i, inner))
    }

    fn in_group(&self, d: DomainId, g: GroupId) -> bool {
        self.members
            .iter()
            .any(|&(group, domain)| domain == d && self.contains(g, group))
    }

    fn effective(&self, d: DomainId) -> Row {
        let mut all = row();
        if !self.domains.contains(&d) {
            return all;
        }
        for o in self.objects.iter().filter(|o| o.owner == Party::Domain(d)) {
            of(&mut all, &o.words).fill(Rights::Write);
        }
        for (grantee, given) in &self.given {
            let applies = match *grantee {
                Grantee::Domain(to) => to == d,
                Grantee::Group(g) => self.in_group(d, g),
            };
            if applies {
                all.iter_mut().zip(given).for_each(|(a, &g)| *a = (*a).max(g));
            }
        }
        for (_, _, given) in self.calls.iter().filter(|c| c.1 == d) {
            for (words, rights) in given {
                of(&mut all, words)
                    .iter_mut()
                    .for_each(|a| *a = (*a).max(*rights));
            }
        }
        all
    }

    fn exportable(&self, actor: Party, words: &Range<u32>) -> bool {
        words.start < words.end
            && words.end <= WORDS
            && self.known(actor)
            && self
                .object(words.start)
                .is_some_and(|o| words.end <= o.words.end && Model::may(actor, o.owner))
    }

    fn take_back(&mut self, words: &Range<u32>) {
        for given in self.given.values_mut() {
            of(given, words).fill(Rights::None);
        }
    }

    fn drop_group(&mut self, g: GroupId) {
        self.groups.retain(|x| x.0 != g);
        self.members.retain(|x| x.0 != g);
        self.nested.retain(|x| x.0 != g && x.1 != g);
        self.given.remove(&Grantee::Group(g));
    }

    fn in_use(&self, words: &Range<u32>, aside: Option<DomainId>) -> bool {
        let touches = |given: &[(Range<u32>, Rights)]| {
            given
                .iter()
                .any(|(w, _)| w.start < words.end && words.start < w.end)
        };
        self.calls
            .iter()
            .any(|(_, d, given)| Some(*d) != aside && touches(given))
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
    fn rights(&mut self) -> Rights {
        [Rights::None, Rights::Read, Rights::Write][self.below(3)]
    }
    /// One of `all`, or now and then something that never existed.
    fn pick<T: Copy>(&mut self, all: &[T], wrong: T) -> T {
        if all.is_empty() || self.below(40) == 0 {
            wrong
        } else {
            all[self.below(all.len())]
        }
    }
    fn domain(&mut self, m: &Model) -> DomainId {
        self.pick(&m.domains, DomainId(999))
    }
    fn party(&mut self, m: &Model) -> Party {
        if self.below(2) == 0 {
            Party::Host
        } else {
            Party::Domain(self.domain(m))
        }
    }
    fn group(&mut self, m: &Model) -> GroupId {
        let all: Vec<GroupId> = m.groups.iter().map(|g| g.0).collect();
        self.pick(&all, GroupId(888))
    }
    fn grantee(&mut self, m: &Model) -> Grantee {
        if self.below(3) == 0 {
            Grantee::Group(self.group(m))
        } else {
            Grantee::Domain(self.domain(m))
        }
    }
    /// Words anywhere: small ones, large ones, none, too many.
    fn anywhere(&mut self) -> Range<u32> {
        let start = self.below(WORDS as usize) as u32;
        let most = [1, 16, 40, 1500, 3000][self.below(5)];
        start..start + self.below(most + 1) as u32
    }
    /// Words of an object, mostly.
    fn within(&mut self, m: &Model) -> Range<u32> {
        if m.objects.is_empty() || self.below(12) == 0 {
            return self.anywhere();
        }
        let o = &m.objects[self.below(m.objects.len())].words;
        match self.below(3) {
            0 => o.clone(),
            _ => {
                let start = o.start + self.below(o.len()) as u32;
                let most = (o.end - start) as usize + usize::from(self.below(8) == 0);
                start..start + 1 + self.below(most) as u32
            }
        }
    }
}

type Done = Result<(), Error>;

/// One operation: what the supervisor said, and whether the model wants it to succeed. The model has been changed as if it did.
fn step(random: &mut Random, s: &mut Supervisor<Tables>, m: &mut Model) -> (&'static str, Done, bool) {
    match random.below(20) {
        0 if m.domains.len() < 6 => {
            let d = DomainId(random.below(12) as u64);
            let wanted = !m.domains.contains(&d);
            if wanted {
                m.domains.push(d);
            }
            ("add domain", s.add_domain(d), wanted)
        }
        1 if random.below(6) == 0 => {
            let d = random.domain(m);
            let owned: Vec<Object> = m
                .objects
                .iter()
                .filter(|o| o.owner == Party::Domain(d))
                .cloned()
                .collect();
            let wanted = m.domains.contains(&d) && !owned.iter().any(|o| m.in_use(&o.words, Some(d)));
            if wanted {
                owned.iter().for_each(|o| m.take_back(&o.words));
                m.objects.retain(|o| o.owner != Party::Domain(d));
                m.calls.retain(|c| c.1 != d);
                m.members.retain(|x| x.1 != d);
                m.given.remove(&Grantee::Domain(d));
                m.domains.retain(|&x| x != d);
                for (g, ..) in m.groups.clone().iter().filter(|g| g.1 == Party::Domain(d)) {
                    m.drop_group(*g);
                }
            }
            let done = s.remove_domain(d);
            if done.is_ok() {
                s.sink_mut().rows.remove(&d);
            }
            ("remove domain", done, wanted)
        }
        2..=4 => {
            let (owner, words) = (random.party(m), random.anywhere());
            let free = !m
                .objects
                .iter()
                .any(|o| o.words.start < words.end && words.start < o.words.end);
            let wanted = m.known(owner) && !words.is_empty() && words.end <= WORDS && free;
            if wanted {
                m.objects.push(Object {
                    words: words.clone(),
                    owner,
                });
            }
            ("allocate", s.allocate(owner, words, TypeId(0)), wanted)
        }
        5 if random.below(3) == 0 => {
            let (actor, words) = (random.party(m), random.within(m));
            let object = m.object(words.start).cloned();
            let fits = |o: &Object| {
                o.words.start == words.start && Model::may(actor, o.owner) && !m.in_use(&o.words, None)
            };
            let wanted = m.known(actor) && object.as_ref().is_some_and(fits);
            if let (true, Some(o)) = (wanted, object) {
                m.take_back(&o.words);
                m.objects.retain(|x| x.words != o.words);
            }
            ("free", s.free(actor, words.start), wanted)
        }
        6..=10 => {
            let (actor, words, rights, to) = (
                random.party(m),
                random.within(m),
                random.rights(),
                random.grantee(m),
            );
            let exists = match to {
                Grantee::Domain(d) => m.domains.contains(&d),
                Grantee::Group(g) => m.group(g).is_some(),
            };
            let fits = !words.is_empty() && words.end <= WORDS;
            let in_object = fits && m.object(words.start).is_some_and(|o| words.end <= o.words.end);
            let given = m.given.get(&to).cloned().unwrap_or_else(row);
            let lowers = in_object
                && m.known(actor)
                && matches!((actor, to), (Party::Domain(a), Grantee::Domain(t)) if a == t)
                && given[words.start as usize..words.end as usize]
                    .iter()
                    .all(|&r| r >= rights);
            let wanted = exists && (m.exportable(actor, &words) || lowers);
            if wanted {
                of(m.given.entry(to).or_insert_with(row), &words).fill(rights);
            }
            ("export", s.export(actor, words, rights, to), wanted)
        }
        11 if random.below(3) == 0 => {
            let (actor, words) = (random.party(m), random.within(m));
            let wanted = m.exportable(actor, &words);
            if wanted {
                m.take_back(&words);
                for (_, _, given) in &mut m.calls {
                    *given = given
                        .iter()
                        .flat_map(|(w, r)| {
                            [w.start..w.end.min(words.start), w.start.max(words.end)..w.end].map(|w| (w, *r))
                        })
                        .filter(|(w, _)| !w.is_empty())
                        .collect();
                }
            }
            ("revoke", s.revoke(actor, words), wanted)
        }
        12 | 13 => {
            let (actor, d) = (random.party(m), random.domain(m));
            let given: Vec<_> = (0..random.below(4))
                .map(|_| (random.within(m), random.rights()))
                .collect();
            let wanted = m.domains.contains(&d) && given.iter().all(|(w, _)| m.exportable(actor, w));
            let done = s.enter(actor, d, &given);
            if let Ok(call) = done {
                m.calls.push((call, d, given));
            } else if wanted {
                // What it would have been, for the bound on what was raised.
                let never = s.enter(Party::Host, d, &[]).expect("nothing to refuse");
                m.calls.push((never, d, given));
            }
            ("enter", done.map(drop), wanted)
        }
        14 if !m.calls.is_empty() => {
            let (call, ..) = m.calls.remove(random.below(m.calls.len()));
            s.leave(call);
            if random.below(4) == 0 {
                s.leave(call);
            }
            ("leave", Ok(()), true)
        }
        15 if random.below(8) == 0 => {
            let d = random.domain(m);
            let wanted = m.domains.contains(&d);
            m.calls.retain(|c| c.1 != d);
            ("end calls", s.end_calls(d), wanted)
        }
        16 if m.groups.len() < 6 => {
            let (owner, open) = (random.party(m), random.below(2) == 0);
            let wanted = m.known(owner);
            let done = s.add_group(owner, open);
            if let Ok(g) = done {
                m.groups.push((g, owner, open));
            }
            ("add group", done.map(drop), wanted)
        }
        17 => {
            let (actor, d, g) = (random.party(m), random.domain(m), random.group(m));
            let wanted = m.domains.contains(&d)
                && m.known(actor)
                && m.group(g).is_some_and(|(owner, open)| {
                    if actor == Party::Domain(d) && actor != owner {
                        open
                    } else {
                        Model::may(actor, owner)
                    }
                });
            if wanted && !m.members.contains(&(g, d)) {
                m.members.push((g, d));
            }
            ("join", s.join(actor, d, g), wanted)
        }
        18 => {
            let (actor, inner, outer) = (random.party(m), random.group(m), random.group(m));
            let both = m.known(actor) && m.group(inner).is_some();
            let may = both && m.group(outer).is_some_and(|(owner, _)| Model::may(actor, owner));
            let wanted = may && !m.contains(inner, outer);
            if wanted && !m.nested.contains(&(inner, outer)) {
                m.nested.push((inner, outer));
            }
            ("admit group", s.admit_group(actor, inner, outer), wanted)
        }
        19 => match random.below(3) {
            0 => {
                let (actor, d, g) = (random.party(m), random.domain(m), random.group(m));
                let may = m
                    .group(g)
                    .is_some_and(|(o, _)| actor == Party::Domain(d) || Model::may(actor, o));
                let wanted = may && m.known(actor) && m.domains.contains(&d) && m.members.contains(&(g, d));
                if wanted {
                    m.members.retain(|x| *x != (g, d));
                }
                ("expel", s.expel(actor, d, g), wanted)
            }
            1 => {
                let (actor, i, o) = (random.party(m), random.group(m), random.group(m));
                let owner = |g| m.group(g).map(|x| x.0);
                let may = actor == Party::Host || owner(i) == Some(actor) || owner(o) == Some(actor);
                let wanted = m.known(actor) && may && m.nested.contains(&(i, o));
                if wanted {
                    m.nested.retain(|x| *x != (i, o));
                }
                ("expel group", s.expel_group(actor, i, o), wanted)
            }
            _ => {
                let (actor, g) = (random.party(m), random.group(m));
                let wanted = m.known(actor) && m.group(g).is_some_and(|(o, _)| Model::may(actor, o));
                if wanted && random.below(3) == 0 {
                    m.drop_group(g);
                    return ("end group", s.end_group(actor, g), true);
                }
                ("look", Ok(()), true)
            }
        },
        _ => ("look", Ok(()), true),
    }
}

/// How often a table failed.
fn agree(seed: u64, steps: usize) -> u32 {
    let mut random = Random(seed * 7919 + 1);
    let mut s = Supervisor::new(Tables::default(), u64::from(WORDS) * 4, 1 << 20);
    let mut m = Model::default();
    let mut failures = 0;
    for n in 0..steps {
        let context = format!("seed {seed}, step {n}");
        let before = m.clone();
        s.sink_mut().until_failure = (random.below(4) == 0).then(|| random.below(3) as u32);
        s.sink_mut().raised.clear();
        let (what, done, wanted) = step(&mut random, &mut s, &mut m);
        for (domain, words, rights) in &s.sink().raised {
            let (mut was, mut is) = (before.effective(*domain), m.effective(*domain));
            let bound = of(&mut was, words).iter().zip(of(&mut is, words));
            for (w, i) in bound {
                assert!(*rights <= (*w).max(*i), "{context}: {what} raised too much");
            }
        }
        if wanted && matches!(done, Err(Error::Table { .. })) {
            assert_eq!(s.sink().until_failure, Some(0), "{context}: {what}");
            failures += 1;
            m = before;
        } else {
            assert_eq!(done.is_ok(), wanted, "{context}: {what}: {done:?}");
        }
        for d in (0..12).map(DomainId) {
            let expected = m.effective(d);
            let none = row();
            let table = s.sink().rows.get(&d).unwrap_or(&none);
            assert!(
                *table == expected,
                "{context}: {what}: the table of {d:?} is another"
            );
            let word = random.below(WORDS as usize) as u32;
            assert_eq!(s.rights(d, word), expected[word as usize], "{context}: {what}");
        }
        assert_eq!(s.objects(), m.objects.len(), "{context}: {what}");
    }
    failures
}

#[test]
fn the_supervisor_agrees_with_the_model() {
    let soak = std::env::var("RINGFENCE_SOAK").is_ok_and(|v| v == "1");
    let seeds = if soak { 1000 } else { 60 };
    let failures: u32 = (0..seeds).map(|seed| agree(seed, 500)).sum();
    assert!(
        u64::from(failures) > seeds,
        "tables hardly ever failed: {failures} times"
    );
}
