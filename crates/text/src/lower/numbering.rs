//! Value numbering: what was computed already on every way to here.
//!
//! What is known is a list in the order of the code. What stands in it dominates whatever follows, because it is taken off
//! again at labels that were first aimed at before it. Writes are counted, so that what they change is not found any more.

use super::{Lower, R};
use crate::ir::{Ins, NONE, Op, Val, is_val};

/// How far back is looked.
const BACK: usize = 24;

/// Something that was computed, and the value that holds it.
pub struct Known {
    ins: Ins,
    versions: [u32; 2],
    memory: u32,
    pub result: Val,
    /// How many were known before it, ever.
    serial: u32,
}

/// What was known where a label was first aimed at.
#[derive(Clone, Copy)]
pub struct Mark {
    serial: u32,
    floor: u32,
}

impl Lower<'_> {
    fn version(&self, val: Val) -> u32 {
        if is_val(val) {
            self.versions[val as usize]
        } else {
            0
        }
    }

    /// The value of an instruction without effects; computed once.
    pub fn pure(&mut self, ins: Ins, float: bool) -> R<Val> {
        let versions = [self.version(ins.a), self.version(ins.b)];
        let memory = if matches!(ins.op, Op::Load | Op::FLoad) {
            self.memory
        } else {
            0
        };
        let found = self
            .known
            .iter()
            .rev()
            .take(BACK)
            .take_while(|k| k.serial >= self.floor)
            .find(|k| k.ins == ins && k.versions == versions && k.memory == memory);
        if let Some(known) = found {
            // Somebody else may be going to use it.
            self.fresh = NONE;
            return Ok(known.result);
        }
        let result = self.new_value(float, true);
        self.push(Ins { d: result, ..ins })?;
        self.known.push(Known {
            ins: Ins { d: NONE, ..ins },
            versions,
            memory,
            result,
            serial: self.serial,
        });
        self.serial += 1;
        self.fresh = result;
        Ok(result)
    }

    /// Memory was written, by a store or by somebody else.
    pub fn memory_changed(&mut self) {
        self.memory += 1;
    }

    /// A branch leads to this label.
    pub fn aim(&mut self, label: u32) {
        let label = label as usize;
        if self.marks.len() <= label {
            self.marks.resize(label + 1, None);
        }
        let (serial, floor) = (self.serial, self.floor);
        self.marks[label].get_or_insert(Mark { serial, floor });
    }

    /// A label at which only branches from above arrive. Nothing if there are none.
    pub fn put_label(&mut self, label: u32) -> R<()> {
        let Some(mark) = self.marks.get(label as usize).copied().flatten() else {
            return Ok(());
        };
        while self.known.last().is_some_and(|k| k.serial >= mark.serial) {
            self.known.pop();
        }
        self.floor = mark.floor;
        self.push_label(label)
    }

    /// A label at which branches from below arrive. What was known above it is not in the loop, and is again behind it.
    pub fn put_top(&mut self, label: u32) -> R<()> {
        self.floor = self.serial;
        self.push_label(label)
    }

    /// A label at which branches arrive from anywhere.
    pub fn put_any(&mut self, label: u32) -> R<()> {
        self.known.clear();
        self.push_label(label)
    }

    fn push_label(&mut self, label: u32) -> R<()> {
        self.push(Ins {
            c: label,
            ..Ins::new(Op::Label)
        })
    }
}
