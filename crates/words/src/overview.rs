//! Who has what, as text.

use crate::bits::{CHUNK, Runs, more};
use crate::layer::Layer;
use crate::members::{Domain, Members};
use ringfence_core::Rights;
use std::convert::Infallible;
use std::fmt::Write;
use std::ops::Range;

/// One letter or two for rights, as the matrix of regions has them.
fn short(rights: Rights) -> &'static str {
    match rights {
        Rights::None => "-",
        Rights::Read => "r",
        Rights::Write => "rw",
    }
}

/// At most so many runs of words, in bytes; then how many more there are.
fn runs(parts: impl Iterator<Item = Range<u32>>, bits: impl Fn(u32) -> u64, most: usize, to: &mut String) {
    let (mut all, mut count) = (Runs::default(), 0_usize);
    let mut tell = |words: Range<u32>, rights| {
        count += 1;
        if count <= most {
            let (from, end) = (u64::from(words.start) * 4, u64::from(words.end) * 4);
            // Into a String.
            let _ = write!(to, " {from:#x}..{end:#x}={}", short(rights));
        }
        Ok::<(), Infallible>(())
    };
    for chunk in parts.flatten() {
        let bits = bits(chunk);
        let Ok(()) = all.add(chunk, more(0, bits), bits, &mut tell);
    }
    let Ok(()) = all.end(&mut tell);
    if count > most {
        let _ = write!(to, " and {} more", count - most);
    }
}

/// Leaves that any of a domain's rights stand in, each once, ascending.
fn parts(members: &Members, domain: &Domain) -> Vec<Range<u32>> {
    let groups = domain.groups.iter().filter_map(|&g| members.groups.get(g));
    let layers = [&domain.owned, &domain.given]
        .into_iter()
        .chain(groups.map(|g| &g.given));
    let mut firsts: Vec<u32> = layers.flat_map(Layer::used).map(|r| r.start).collect();
    for held in &domain.held {
        let leaves = held.words.start / (CHUNK * 32)..held.words.end.div_ceil(CHUNK * 32);
        firsts.extend(leaves.map(|leaf| leaf * 32));
    }
    firsts.sort_unstable();
    firsts.dedup();
    firsts.into_iter().map(|first| first..first + 32).collect()
}

pub(crate) fn render(members: &Members, most: usize) -> String {
    let mut text = String::new();
    for (_, domain) in members.domains.iter() {
        let _ = write!(text, "domain #{}:", domain.id.0);
        runs(
            parts(members, domain).into_iter(),
            |chunk| members.effective(domain, chunk),
            most,
            &mut text,
        );
        text.push('\n');
    }
    for (_, group) in members.groups.iter() {
        let open = if group.open { "open" } else { "closed" };
        let _ = write!(text, "group {}, {open}, of {}:", group.id.0, group.owner);
        for domain in group.members.iter().filter_map(|&d| members.domains.get(d)) {
            let _ = write!(text, " #{}", domain.id.0);
        }
        text.push(';');
        runs(
            group.given.used(),
            |chunk| group.given.get(chunk),
            most,
            &mut text,
        );
        text.push('\n');
    }
    text
}
