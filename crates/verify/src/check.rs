//! The state of the second pass, which the rules about functions judge by.

use crate::image::{Image, Rules};
use crate::notes::{Facts, Label, NoMemory, filled, push};
use crate::reason::Reason;
use crate::rejections::Rejections;
use alloc::vec::Vec;

pub(crate) struct Check<'a> {
    pub image: &'a Image<'a>,
    pub facts: &'a Facts,
    pub chains: &'a Chains,
    pub rejections: &'a mut Rejections,
}

impl Check<'_> {
    pub fn reject(&mut self, at: usize, reason: Reason) {
        let len = self.facts.notes[at].len();
        self.rejections.add(self.image, at, len, reason);
    }
}

/// The label markers of each number, latest first. Indices are those of [`Facts::labels`].
#[derive(Default)]
pub(crate) struct Chains {
    /// Smallest number that the module may use.
    first: u16,
    /// For each number from `first` on, one more than the index of its latest marker; 0 for none.
    latest: Vec<u32>,
    /// For each marker, one more than the index of the one before with the same number; 0 for none.
    previous: Vec<u32>,
    places: Vec<u32>,
}

impl Chains {
    pub fn new(labels: &[Label], rules: &Rules) -> Result<Chains, NoMemory> {
        if labels.is_empty() {
            return Ok(Chains::default());
        }
        let mut chains = Chains {
            first: *rules.label_numbers.start(),
            latest: filled(rules.label_numbers.len(), 0)?,
            ..Chains::default()
        };
        for (label, count) in labels.iter().zip(1..) {
            let latest = chains
                .latest
                .get_mut(usize::from(label.number.wrapping_sub(chains.first)));
            let before = latest.map_or(0, |latest| core::mem::replace(latest, count));
            push(&mut chains.previous, before)?;
            push(&mut chains.places, label.at)?;
        }
        Ok(chains)
    }

    /// Where the marker before the one with this index is that has the same number.
    pub fn previous(&self, index: usize) -> Option<usize> {
        let before = (*self.previous.get(index)? as usize).checked_sub(1)?;
        self.places.get(before).map(|&at| at as usize)
    }

    /// A small index for each number that may occur, below [`Self::slots`].
    pub fn slot(&self, number: u16) -> Option<usize> {
        let slot = usize::from(number.wrapping_sub(self.first));
        self.latest.get(slot).is_some_and(|&n| n != 0).then_some(slot)
    }

    pub fn slots(&self) -> usize {
        self.latest.len()
    }

    /// Where the markers are that carry the number with this index, latest first.
    pub fn places(&self, slot: usize) -> impl Iterator<Item = usize> + '_ {
        let mut next = self.latest.get(slot).copied().unwrap_or(0);
        core::iter::from_fn(move || {
            let index = (next as usize).checked_sub(1)?;
            next = self.previous.get(index).copied().unwrap_or(0);
            self.places.get(index).map(|&at| at as usize)
        })
    }

    /// All numbers that occur, ascending.
    pub fn numbers(&self) -> Result<Vec<u16>, NoMemory> {
        let mut numbers = Vec::new();
        for (&latest, number) in self.latest.iter().zip(self.first..=u16::MAX) {
            if latest != 0 {
                push(&mut numbers, number)?;
            }
        }
        Ok(numbers)
    }
}
