//! Rule 6: markers, and nothing else that looks like one.

use crate::check::Check;
use crate::decode::Instruction;
use crate::image::{Image, Rules};
use crate::notes::{Facts, NoMemory, dword, filled};
use crate::pass::Pass;
use crate::reason::Reason;
use alloc::vec::Vec;
use core::ops::Range;
use ringfence_isa::{identifier, pad};

/// Whether control may arrive at an instruction that just goes on from where nobody looks: it is a landing pad, which is noted, or
/// the marker of a function or a label.
pub(crate) fn control_may_arrive(pass: &mut Pass, at: usize, i: &Instruction) -> bool {
    if i.len != 8 {
        return false;
    }
    let is_pad = pass.image.text.get(at..).and_then(pad::claim).is_some();
    if is_pad {
        pass.facts.leaders.insert(at);
    }
    is_pad || looks_like_marker(pass.image.text, at)
}

fn looks_like_marker(text: &[u8], at: usize) -> bool {
    // The text starts on a page.
    at.is_multiple_of(identifier::MARKER_LEN)
        && text
            .get(at..)
            .is_some_and(|t| t.starts_with(&identifier::MARKER_HEAD))
        && identifier::is_reserved(dword(text, at + 4))
}

/// Whether a marker starts here.
pub(crate) fn is_marker(image: &Image, facts: &Facts, at: usize) -> bool {
    facts.note(at).len() == identifier::MARKER_LEN && looks_like_marker(image.text, at)
}

/// Whether a function's marker starts here.
pub(crate) fn is_functions(image: &Image, facts: &Facts, at: usize) -> bool {
    is_marker(image, facts, at) && dword(image.text, at + 4) == identifier::FUNCTION
}

/// Whether the module may use a label's number.
pub(crate) fn may_use(pass: &Pass, number: u16) -> bool {
    identifier::label(number).is_some() && pass.rules.label_numbers.contains(&number)
}

/// All places with what may be a marker's identifier, and its lower half: the upper one is the prefix.
pub(crate) fn places(text: &[u8]) -> impl Iterator<Item = (usize, u32)> + '_ {
    let reserved = |word: u64| identifier::is_reserved((word >> 32) as u32);
    let words = text.as_chunks().0.iter().zip(0..);
    words.filter_map(move |(eight, n)| {
        let word = u64::from_le_bytes(*eight);
        reserved(word).then_some((n * identifier::MARKER_LEN, (word >> 32) as u32))
    })
}

/// Whatever looks like an identifier where identifiers stand must be in a marker that the module may have.
pub(crate) fn markers(pass: &mut Pass) {
    for (at, id) in places(pass.image.text) {
        let marker = is_marker(pass.image, pass.facts, at);
        if marker && id == identifier::FUNCTION {
            pass.facts.entries.insert(at);
        } else if marker && may_use(pass, id as u16) {
            pass.facts.labels.insert(at);
        } else {
            let (place, len, reason) = match marker {
                true => (at, identifier::MARKER_LEN, Reason::MarkerIdentifier),
                false => (at + 4, 4, Reason::HiddenIdentifier),
            };
            pass.rejections.add(pass.image, place, len, reason);
        }
    }
}

/// The labels, by number.
#[derive(Default)]
pub(crate) struct Labels {
    /// Smallest number that the module may use.
    pub first: u16,
    /// For each number from `first` on, where its places begin; and where the last one's end.
    pub starts: Vec<u32>,
    pub places: Vec<u32>,
}

impl Labels {
    pub fn new(image: &Image, facts: &Facts, rules: &Rules) -> Result<Labels, NoMemory> {
        if facts.labels.next(0).is_none() {
            return Ok(Labels::default());
        }
        let first = *rules.label_numbers.start();
        let mut starts = filled(rules.label_numbers.len() + 2, 0u32)?;
        let all = || {
            facts
                .labels
                .iter()
                .map(|at| (at as u32, usize::from(number(image.text, at).wrapping_sub(first))))
        };
        // First how many there are of each, two further on; then where they begin, one further on, which moves while places are filled in.
        for (_, slot) in all() {
            if let Some(number) = starts.get_mut(slot + 2) {
                *number += 1;
            }
        }
        for slot in 2..starts.len() {
            starts[slot] += starts[slot - 1];
        }
        let mut places = filled(facts.labels.count(), 0)?;
        for (at, slot) in all() {
            let Some(next) = starts.get_mut(slot + 1) else {
                continue;
            };
            if let Some(place) = places.get_mut(*next as usize) {
                *place = at;
                *next += 1;
            }
        }
        Ok(Labels {
            first,
            starts,
            places,
        })
    }

    /// A small number for a label's, below [`Self::slots`], and where its markers are, in order of address.
    pub fn of(&self, number: u16) -> (usize, &[u32]) {
        let slot = usize::from(number.wrapping_sub(self.first));
        let places = match self.starts.get(slot..).and_then(|starts| starts.first_chunk()) {
            Some(&[start, end]) => self.places.get(start as usize..end as usize),
            None => None,
        };
        (slot, places.unwrap_or_default())
    }

    pub fn slots(&self) -> usize {
        self.starts.len().saturating_sub(2)
    }
}

/// The number of the label at `at`.
fn number(text: &[u8], at: usize) -> u16 {
    dword(text, at + identifier::MARKER_HEAD.len()) as u16
}

/// All labels of one number are in one function: `function`, which has the marker at `at`.
pub(crate) fn label(check: &mut Check, at: usize, function: &Range<usize>) {
    let first = check.labels.of(number(check.image.text, at)).1.first();
    if first.is_some_and(|&first| (first as usize) < function.start) {
        check.reject(at, Reason::SharedLabel);
    }
    check.facts.lead(at);
}
