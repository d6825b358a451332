//! The matrix against a model that is too simple to be wrong: lists of facts, everything recomputed each time.

use super::*;

/// Facts, and nothing derived.
#[derive(Clone, Default)]
struct Model {
    domains: Vec<DomainId>,
    regions: Vec<(RegionId, Party, Rights)>,
    groups: Vec<(GroupId, Party, bool)>,
    members: Vec<(GroupId, DomainId)>,
    given: Vec<(RegionId, Grantee, Rights)>,
}

impl Model {
    fn effective(&self, d: DomainId, r: RegionId) -> Rights {
        let Some((_, owner, most)) = self.regions.iter().find(|x| x.0 == r) else {
            return Rights::None;
        };
        if !self.domains.contains(&d) {
            return Rights::None;
        }
        let mut best = if *owner == Party::Domain(d) {
            *most
        } else {
            Rights::None
        };
        for (region, grantee, rights) in &self.given {
            let applies = match grantee {
                Grantee::Domain(g) => *g == d,
                Grantee::Group(g) => self.members.contains(&(*g, d)),
            };
            if *region == r && applies {
                best = best.max(*rights);
            }
        }
        best
    }

    fn owner_of_group(&self, g: GroupId) -> Option<(Party, bool)> {
        self.groups.iter().find(|x| x.0 == g).map(|x| (x.1, x.2))
    }

    fn may(actor: Party, owner: Party) -> bool {
        actor == Party::Host || actor == owner
    }

    fn drop_group(&mut self, g: GroupId) {
        self.groups.retain(|x| x.0 != g);
        self.members.retain(|x| x.0 != g);
        self.given.retain(|x| x.1 != Grantee::Group(g));
    }

    fn drop_region(&mut self, r: RegionId) {
        self.regions.retain(|x| x.0 != r);
        self.given.retain(|x| x.0 != r);
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
}

/// One of `all`, or now and then something that never existed.
fn pick<T: Copy>(random: &mut Random, all: &[T], wrong: T) -> T {
    if all.is_empty() || random.below(40) == 0 {
        wrong
    } else {
        all[random.below(all.len())]
    }
}

fn party(random: &mut Random, domains: &[DomainId]) -> Party {
    if random.below(3) == 0 {
        Party::Host
    } else {
        Party::Domain(pick(random, domains, DomainId(999_999)))
    }
}

fn table(m: &Matrix, domains: &[DomainId], regions: &[RegionId]) -> BTreeMap<(DomainId, RegionId), Rights> {
    domains
        .iter()
        .flat_map(|&d| regions.iter().map(move |&r| ((d, r), m.effective(d, r))))
        .collect()
}

#[test]
fn the_matrix_agrees_with_the_model() {
    for seed in 0..60 {
        let mut random = Random(seed * 7919 + 1);
        let (mut matrix, mut model) = (Matrix::new(), Model::default());
        // Everything that ever existed: what is gone must stay without rights.
        let (mut domains, mut regions, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        for step in 0..400 {
            let context = format!("seed {seed}, step {step}");
            let before = table(&matrix, &domains, &regions);
            let known_domain = |d: DomainId, m: &Model| m.domains.contains(&d);
            let known = |p: Party, m: &Model| match p {
                Party::Host => true,
                Party::Domain(d) => m.domains.contains(&d),
            };
            // What the matrix says, and whether the model expects success.
            let (result, expected): (Done<Vec<Change>>, bool) = match random.below(12) {
                0 if domains.len() < 12 => {
                    let d = matrix.add_domain();
                    domains.push(d);
                    model.domains.push(d);
                    (Ok(Vec::new()), true)
                }
                1 if random.below(6) == 0 => {
                    let d = pick(&mut random, &domains, DomainId(777_777));
                    let expected = known_domain(d, &model);
                    let result = matrix.remove_domain(d).map(|x| x.1);
                    if expected {
                        let owned = |p: Party| p == Party::Domain(d);
                        for (g, ..) in model.groups.clone().into_iter().filter(|x| owned(x.1)) {
                            model.drop_group(g);
                        }
                        for (r, ..) in model.regions.clone().into_iter().filter(|x| owned(x.1)) {
                            model.drop_region(r);
                        }
                        model.members.retain(|x| x.1 != d);
                        model.given.retain(|x| x.1 != Grantee::Domain(d));
                        model.domains.retain(|&x| x != d);
                    }
                    // The caller is not told of the ended domain's own losses.
                    let result = result.map(|mut changes| {
                        changes.extend(
                            before
                                .iter()
                                .filter(|((x, _), r)| *x == d && **r != Rights::None)
                                .map(|(&(domain, region), &before)| Change {
                                    domain,
                                    region,
                                    before,
                                    after: Rights::None,
                                }),
                        );
                        changes
                    });
                    (result, expected)
                }
                2 | 3 if regions.len() < 16 => {
                    let (owner, most) = (party(&mut random, &domains), random.rights().max(Rights::Read));
                    let expected = known(owner, &model);
                    let result = matrix.add_region(owner, most);
                    if let Ok((r, _)) = result {
                        regions.push(r);
                        model.regions.push((r, owner, most));
                    }
                    (result.map(|x| x.1), expected)
                }
                4 if random.below(4) == 0 => {
                    let (actor, r) = (
                        party(&mut random, &domains),
                        pick(&mut random, &regions, RegionId(888_888)),
                    );
                    let region = model.regions.iter().find(|x| x.0 == r).copied();
                    let expected = region.is_some_and(|x| Model::may(actor, x.1));
                    if expected {
                        model.drop_region(r);
                    }
                    (matrix.free(actor, r), expected)
                }
                5 if groups.len() < 8 => {
                    let (owner, open) = (party(&mut random, &domains), random.below(2) == 0);
                    let expected = known(owner, &model);
                    let result = matrix.add_group(owner, open);
                    if let Ok(g) = result {
                        groups.push(g);
                        model.groups.push((g, owner, open));
                    }
                    (result.map(|_| Vec::new()), expected)
                }
                6 if random.below(6) == 0 => {
                    let (actor, g) = (
                        party(&mut random, &domains),
                        pick(&mut random, &groups, GroupId(555_555)),
                    );
                    let expected = model.owner_of_group(g).is_some_and(|(o, _)| Model::may(actor, o));
                    if expected {
                        model.drop_group(g);
                    }
                    (matrix.end_group(actor, g), expected)
                }
                7 | 8 => {
                    let (actor, g) = (
                        party(&mut random, &domains),
                        pick(&mut random, &groups, GroupId(555_555)),
                    );
                    let d = match actor {
                        Party::Domain(d) if random.below(2) == 0 => d,
                        _ => pick(&mut random, &domains, DomainId(777_777)),
                    };
                    let allowed = model.owner_of_group(g).is_some_and(|(owner, open)| {
                        Model::may(actor, owner) || (open && actor == Party::Domain(d))
                    });
                    let expected = allowed && known(actor, &model) && known_domain(d, &model);
                    if expected && !model.members.contains(&(g, d)) {
                        model.members.push((g, d));
                    }
                    (matrix.join(actor, d, g), expected)
                }
                9 => {
                    let (actor, g) = (
                        party(&mut random, &domains),
                        pick(&mut random, &groups, GroupId(555_555)),
                    );
                    let d = pick(&mut random, &domains, DomainId(777_777));
                    let allowed = model
                        .owner_of_group(g)
                        .is_some_and(|(owner, _)| Model::may(actor, owner) || actor == Party::Domain(d));
                    let expected = allowed && model.members.contains(&(g, d));
                    if expected {
                        model.members.retain(|x| *x != (g, d));
                    }
                    (matrix.expel(actor, d, g), expected)
                }
                _ => {
                    let (actor, r) = (
                        party(&mut random, &domains),
                        pick(&mut random, &regions, RegionId(888_888)),
                    );
                    let grantee = if random.below(2) == 0 {
                        Grantee::Domain(pick(&mut random, &domains, DomainId(777_777)))
                    } else {
                        Grantee::Group(pick(&mut random, &groups, GroupId(555_555)))
                    };
                    let rights = random.rights();
                    let exists = match grantee {
                        Grantee::Domain(d) => known_domain(d, &model),
                        Grantee::Group(g) => model.owner_of_group(g).is_some(),
                    };
                    let region = model.regions.iter().find(|x| x.0 == r).copied();
                    let expected = exists
                        && known(actor, &model)
                        && region.is_some_and(|x| Model::may(actor, x.1) && rights <= x.2);
                    if expected {
                        model.given.retain(|x| !(x.0 == r && x.1 == grantee));
                        model.given.push((r, grantee, rights));
                    }
                    (matrix.give(actor, r, grantee, rights), expected)
                }
            };
            assert_eq!(result.is_ok(), expected, "{context}: {result:?}");
            let after = table(&matrix, &domains, &regions);
            for (&(d, r), &rights) in &after {
                assert_eq!(rights, model.effective(d, r), "{context}: {d:?} to {r:?}");
            }
            // The changes tell exactly what changed, each pair possibly in several steps; an error changes nothing.
            let Ok(changes) = result else {
                assert_eq!(before, after, "{context}");
                continue;
            };
            let mut replayed = before;
            for c in changes {
                let rights = replayed.insert((c.domain, c.region), c.after);
                assert_eq!(rights.unwrap_or_default(), c.before, "{context}: {c:?}");
            }
            replayed.retain(|_, rights| *rights != Rights::None);
            let after: BTreeMap<_, _> = after
                .into_iter()
                .filter(|(_, rights)| *rights != Rights::None)
                .collect();
            assert_eq!(replayed, after, "{context}");
            // Both ways of listing agree with asking one by one.
            for &d in &domains {
                let listed: Vec<_> = matrix
                    .regions_of(d)
                    .into_iter()
                    .map(|(r, x)| ((d, r), x))
                    .collect();
                let asked: Vec<_> = after
                    .iter()
                    .filter(|((x, _), _)| *x == d)
                    .map(|(&k, &v)| (k, v))
                    .collect();
                assert_eq!(listed, asked, "{context}");
            }
            for &r in &regions {
                let listed: Vec<_> = matrix
                    .domains_of(r)
                    .into_iter()
                    .map(|(d, x)| ((d, r), x))
                    .collect();
                let asked: Vec<_> = after
                    .iter()
                    .filter(|((_, x), _)| *x == r)
                    .map(|(&k, &v)| (k, v))
                    .collect();
                assert_eq!(listed, asked, "{context}");
            }
        }
    }
}

#[test]
fn errors_say_who_could_have() {
    let mut m = Matrix::new();
    let (a, b) = (m.add_domain(), m.add_domain());
    let (r, _) = m.add_region(Party::Domain(a), Rights::Read).unwrap();
    let e = m
        .give(Party::Domain(b), r, Grantee::Domain(b), Rights::Read)
        .unwrap_err();
    assert_eq!(
        e,
        RightsError::NotOwner {
            owner: Party::Domain(a)
        }
    );
    let e = m
        .give(Party::Host, r, Grantee::Domain(b), Rights::Write)
        .unwrap_err();
    assert_eq!(
        e.to_string(),
        "cannot give the right to write: the giver has the right to read"
    );
    let owned = |owner| RightsError::NotOwner { owner }.to_string();
    assert!(owned(Party::Host).ends_with("the owner is the host"));
    assert!(owned(Party::Domain(DomainId(7))).ends_with("the owner is domain #7"));
    let g = m.add_group(Party::Host, false).unwrap();
    let e = m.join(Party::Domain(b), b, g).unwrap_err();
    assert_eq!(e, RightsError::Closed(g));
}
