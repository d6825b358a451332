//! From what a domain's rights were and are to what its table is told: first all that becomes more, which can fail, then the rest.

use crate::bits::{Runs, chunks, filled, mask, more};
use crate::error::Error;
use crate::members::{Domain, Members, Source};
use crate::sink::{NoRoom, Sink};
use ringfence_core::{DomainId, Rights};
use std::ops::Range;

/// What becomes of a domain's rights to a chunk when a source gives others to words.
#[inline]
pub(crate) fn change<'a>(
    members: &'a Members,
    domain: &'a Domain,
    source: Source,
    words: &'a Range<u32>,
    rights: Rights,
) -> impl Fn(u32) -> (u64, u64) + 'a {
    let layer = members.source(source);
    move |chunk| {
        let others = members.others(domain, source, chunk);
        let mask = mask(chunk, words);
        let before = layer.map_or(0, |l| l.get(chunk));
        (others | before, others | before & !mask | filled(rights) & mask)
    }
}

/// Raises what becomes more. Whether anything becomes less; on failure nothing is raised.
#[inline]
pub(crate) fn raise<S: Sink>(
    sink: &mut S,
    domain: DomainId,
    words: &Range<u32>,
    change: impl Fn(u32) -> (u64, u64),
) -> Result<bool, Error> {
    match raise_chunks(sink, domain, chunks(words), &change) {
        Ok(less) => Ok(less),
        Err(why) => {
            unraise(sink, domain, chunks(words), change);
            Err(Error::Table { domain, why })
        }
    }
}

#[inline]
pub(crate) fn raise_chunks<S: Sink>(
    sink: &mut S,
    domain: DomainId,
    chunks: Range<u32>,
    change: impl Fn(u32) -> (u64, u64),
) -> Result<bool, NoRoom> {
    let (mut runs, mut less) = (Runs::default(), false);
    let mut to = |words, rights| sink.raise(domain, words, rights);
    for chunk in chunks {
        let (before, after) = change(chunk);
        less |= more(after, before) != 0;
        runs.add(chunk, more(before, after), after, &mut to)?;
    }
    runs.end(&mut to)?;
    Ok(less)
}

/// Lowers what has become, or was to become, more: some of it may not have.
#[cold]
pub(crate) fn unraise<S: Sink>(
    sink: &mut S,
    domain: DomainId,
    chunks: Range<u32>,
    change: impl Fn(u32) -> (u64, u64),
) {
    lower_chunks(sink, domain, chunks, |chunk| {
        let (before, after) = change(chunk);
        (after, before)
    });
}

#[inline]
pub(crate) fn lower<S: Sink>(
    sink: &mut S,
    domain: DomainId,
    words: &Range<u32>,
    change: impl Fn(u32) -> (u64, u64),
) {
    lower_chunks(sink, domain, chunks(words), change);
}

/// The same in each of these domains' tables, where a source's rights become less.
#[inline]
pub(crate) fn lower_all<'a, S: Sink>(
    sink: &mut S,
    members: &Members,
    slots: impl IntoIterator<Item = &'a u32>,
    source: Source,
    words: &Range<u32>,
    rights: Rights,
) {
    for &slot in slots {
        if let Some(domain) = members.domains.get(slot) {
            lower(
                sink,
                domain.id,
                words,
                change(members, domain, source, words, rights),
            );
        }
    }
}

#[inline]
pub(crate) fn lower_chunks<S: Sink>(
    sink: &mut S,
    domain: DomainId,
    chunks: Range<u32>,
    change: impl Fn(u32) -> (u64, u64),
) {
    let mut runs = Runs::default();
    let mut to = |words, rights| {
        sink.lower(domain, words, rights);
        Ok::<(), std::convert::Infallible>(())
    };
    for chunk in chunks {
        let (before, after) = change(chunk);
        let Ok(()) = runs.add(chunk, more(after, before), after, &mut to);
    }
    let Ok(()) = runs.end(&mut to);
}
