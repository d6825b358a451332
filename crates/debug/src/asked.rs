//! The places that names are looked up for, and sets of them.

/// The places that are asked for, ascending.
pub(crate) struct Asked {
    places: Vec<u64>,
}

impl Asked {
    /// Ascending ones.
    pub fn new(places: Vec<u64>) -> Asked {
        Asked { places }
    }

    pub fn places(&self) -> &[u64] {
        &self.places
    }

    /// The number of the first place at `at` or behind.
    pub fn first_from(&self, at: u64) -> usize {
        self.places.partition_point(|&p| p < at)
    }

    /// The set of places from `low` up to `high`. What the linker has dropped starts at 0, and covers nothing.
    pub fn between(&self, low: u64, high: u64) -> u64 {
        if low == 0 || low >= high {
            return 0;
        }
        let (first, end) = (self.first_from(low), self.first_from(high));
        let below = |n: usize| 1_u64.checked_shl(n as u32).map_or(u64::MAX, |bit| bit - 1);
        below(end) & !below(first)
    }
}
