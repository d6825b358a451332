//! What is told of accepted text, collected from what the rules have found. Nothing here is part of a verdict.

use crate::bitmap::Bitmap;
use crate::depths::Depths;
use crate::notes::{Facts, NoMemory, reserved};
use crate::report::{Pad, Report};
use crate::rules::rule_3_depth::{UNKNOWN, Walker};
use crate::rules::rule_6_identifiers::Labels;
use alloc::vec::Vec;

/// Adds to a report that has the functions what else is known.
pub(crate) fn complete(
    mut report: Report,
    facts: Facts,
    labels: &Labels,
    walker: Walker,
    pads: Vec<Pad>,
) -> Result<Report, NoMemory> {
    report.pads = pads;
    report.labels = labels.numbers()?;
    report.features = facts.features;
    report.uses_vector = facts.vector;
    report.uses_x87 = facts.x87;
    report.instructions = facts.instructions;
    let len = (report.text.end - report.text.start) as usize;
    report.depths = walker.found(facts.into_leaders(), len)?;
    Ok(report)
}

impl Facts<'_> {
    /// Frees all sets but the leaders.
    pub fn into_leaders(self) -> Bitmap {
        self.leaders
    }
}

impl Labels {
    /// All numbers that occur, ascending.
    pub fn numbers(&self) -> Result<Vec<u16>, NoMemory> {
        let mut numbers = reserved(self.slots().min(self.places.len()))?;
        for (ends, number) in self.starts.windows(2).zip(self.first..=u16::MAX) {
            if ends[0] != ends[1] {
                numbers.push(number);
            }
        }
        Ok(numbers)
    }
}

impl Walker {
    /// What was found, for [`crate::Report::depth_at`].
    pub fn found(self, leaders: Bitmap, len: usize) -> Result<Depths, NoMemory> {
        drop((self.leaders, self.pending, self.tables));
        let known = self.depths.iter().filter(|&&depth| depth != UNKNOWN).count();
        let mut found = Depths::new(len, known + self.pushes.count() + self.pops.count())?;
        let mut at_leaders = self.depths.iter();
        let mut depth = 0_u16;
        let words = leaders.0.iter().zip(&self.pushes.0).zip(&self.pops.0);
        for (((&leader, &push), &pop), start) in words.zip((0..).step_by(64)) {
            let mut rest = leader | push | pop;
            while rest != 0 {
                let bit = rest.trailing_zeros();
                rest &= rest - 1;
                let at = start + bit as usize;
                let here = |set: u64| set >> bit & 1 == 1;
                if here(leader)
                    && let Some(&known) = at_leaders.next().filter(|&&depth| depth != UNKNOWN)
                {
                    depth = known;
                    found.add(at, depth);
                }
                // From some place inside of the instruction on, which is as good as its end.
                if here(push | pop) {
                    depth = if here(push) {
                        depth + 1
                    } else {
                        depth.saturating_sub(1)
                    };
                    found.add(at + 1, depth);
                }
            }
        }
        Ok(found)
    }
}
