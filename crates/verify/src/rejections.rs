//! Collects what is wrong, up to the limit.

use crate::image::Image;
use crate::reason::Reason;
use crate::report::{Rejected, Rejection};
use alloc::vec::Vec;

#[derive(Default)]
pub(crate) struct Rejections {
    list: Vec<Rejection>,
    /// Whether there were more, or no memory for them.
    truncated: bool,
}

impl Rejections {
    /// `len` 0: the instruction's length is not known.
    pub fn add(&mut self, image: &Image, at: usize, len: usize, reason: Reason) {
        if self.list.len() >= Rejected::LIMIT || self.list.try_reserve(1).is_err() {
            self.truncated = true;
            return;
        }
        let rest = image.text.get(at..).unwrap_or_default();
        let known = if len == 0 { rest.len() } else { len };
        let code = rest.get(..known).unwrap_or(rest);
        let address = image.text_address.wrapping_add(at as u32);
        self.list.push(Rejection::new(address, reason, code));
    }

    pub fn is_empty(&self) -> bool {
        self.list.is_empty() && !self.truncated
    }

    pub fn clear(&mut self) {
        self.list.clear();
        self.truncated = false;
    }

    /// Ends the check if there is anything.
    pub fn verdict(&mut self) -> Result<(), Rejected> {
        if self.is_empty() {
            return Ok(());
        }
        Err(Rejected {
            rejections: core::mem::take(&mut self.list),
            truncated: self.truncated,
        })
    }
}
