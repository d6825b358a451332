//! Jumps through tables, as they are found and as they are written.

use std::collections::{HashMap, HashSet};

/// Most slots for which the mask is an `andl`; 256 take `movzbl`, which is shorter.
pub(crate) const MASK_SLOTS: usize = 128;

/// A switch table as it stands behind its jump.
#[derive(Debug, Default)]
pub(crate) struct Table<'a> {
    pub label: &'a str,
    pub entries: Vec<&'a str>,
    /// All entries are differences to the table's label.
    pub relative: bool,
    /// The items of label and entries.
    pub items: Vec<u32>,
}

/// Constant arrays of labels, for computed goto: by name, what they list.
pub(crate) type Arrays<'a> = HashMap<&'a str, Vec<&'a str>>;

/// What stands for an instruction that takes part in such a jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Nothing.
    Dropped,
    /// The index goes from one register to another.
    Copy(u8, u8),
    /// The jump: the register that holds the index, and which of [`Dispatch::tables`].
    Jump(u8, u32),
    /// The same, straight behind an instruction of the program's own that is the mask.
    JumpMasked(u8, u32),
}

/// What was found in a function.
#[derive(Debug, Default)]
pub(crate) struct Dispatch<'a> {
    pub parts: HashMap<u32, Part>,
    /// Tables among the code: the labels that their slots lead to.
    pub tables: Vec<Vec<&'a str>>,
    /// Items that are not needed: tables in data.
    pub dropped: HashSet<u32>,
    /// Labels that only jumps through tables reach.
    pub unmarked: HashSet<u32>,
}

impl Dispatch<'_> {
    /// Whether an instruction is a jump through a table among the code: whether the program masks the index, its register, and the table.
    pub(crate) fn jump(&self, i: u32) -> Option<(bool, u8, u32)> {
        match *self.parts.get(&i)? {
            Part::Jump(register, table) => Some((false, register, table)),
            Part::JumpMasked(register, table) => Some((true, register, table)),
            Part::Dropped | Part::Copy(..) => None,
        }
    }
}
