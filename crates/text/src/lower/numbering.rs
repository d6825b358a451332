//! Value numbering: what was computed already, in code that only falls through or leaves.

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
            .find(|k| k.ins == ins && k.versions == versions && k.memory == memory);
        if let Some(known) = found {
            return Ok(known.result);
        }
        let result = self.new_value(float, true);
        self.push(Ins { d: result, ..ins })?;
        self.known.push(Known {
            ins: Ins { d: NONE, ..ins },
            versions,
            memory,
            result,
        });
        Ok(result)
    }

    /// Memory was written, by a store or by somebody else.
    pub fn memory_changed(&mut self) {
        self.memory += 1;
    }
}
