//! Where the supervisor's decisions go.

use ringfence_core::{DomainId, Rights};
use std::collections::BTreeMap;
use std::ops::Range;

/// There is no memory for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a table of rights takes {needed} bytes more than there are")]
pub struct NoRoom {
    /// How many bytes could not be had.
    pub needed: u64,
}

/// The tables that accesses are checked by, one for each domain. It is told of words whose rights change, in runs that are as long
/// as they can be; what it was not told of has no rights.
pub trait Sink {
    /// The words' rights become these, which are more than they were.
    ///
    /// # Errors
    /// There is no memory for the table. Some of the words may have got their rights: the supervisor lowers them again.
    fn raise(&mut self, domain: DomainId, words: Range<u32>, rights: Rights) -> Result<(), NoRoom>;

    /// The words' rights become these, which are no more than they were. Needs no memory, so it cannot fail. Back with all
    /// accesses stopped that were allowed before, if the caller of the supervisor shall be sure of that.
    fn lower(&mut self, domain: DomainId, words: Range<u32>, rights: Rights);
}

/// Tables in maps, word by word: what tests look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    /// Rights that are not none.
    pub rights: BTreeMap<(DomainId, u32), Rights>,
    /// How many words it takes at most; `None` for all.
    pub most: Option<usize>,
}

impl Sink for Listed {
    fn raise(&mut self, domain: DomainId, words: Range<u32>, rights: Rights) -> Result<(), NoRoom> {
        for word in words {
            if self.most == Some(self.rights.len()) && !self.rights.contains_key(&(domain, word)) {
                return Err(NoRoom { needed: 1 });
            }
            self.rights.insert((domain, word), rights);
        }
        Ok(())
    }

    fn lower(&mut self, domain: DomainId, words: Range<u32>, rights: Rights) {
        for word in words {
            match rights {
                Rights::None => self.rights.remove(&(domain, word)),
                _ => self.rights.insert((domain, word), rights),
            };
        }
    }
}
