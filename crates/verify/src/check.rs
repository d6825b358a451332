//! The state of the second pass, which the rules about functions judge by.

use crate::image::Image;
use crate::notes::Facts;
use crate::reason::Reason;
use crate::rejections::Rejections;
use crate::rules::rule_6_identifiers::Labels;

pub(crate) struct Check<'a, 'n> {
    pub image: &'a Image<'a>,
    pub facts: &'a mut Facts<'n>,
    pub labels: &'a Labels,
    pub rejections: &'a mut Rejections,
}

impl Check<'_, '_> {
    pub fn reject(&mut self, at: usize, reason: Reason) {
        let len = self.facts.note(at).len();
        self.rejections.add(self.image, at, len, reason);
    }
}
