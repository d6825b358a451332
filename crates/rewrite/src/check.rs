//! Segment matching (`--check`): the full address is compared with the window before the access.

use crate::out::Out;
use crate::parse::{Insn, Mem};
use crate::state::State;

impl Out<'_> {
    /// Whether loads are confined too.
    pub(crate) fn confine_loads(&self) -> bool {
        self.options.isolation == ringfence_isa::Isolation::Full
    }

    /// The test in front of an access, when the options ask for one.
    pub(crate) fn check(
        &mut self,
        insn: &Insn<'_>,
        m: Option<&Mem<'_>>,
        st: &State,
        flags_dead: bool,
    ) -> Result<(), String> {
        let _ = (insn, m, st, flags_dead);
        if self.options.check {
            return Err("check mode is not there yet".to_owned());
        }
        Ok(())
    }

    /// An instruction that may access memory.
    pub(crate) fn access(&mut self, insn: &Insn<'_>, st: &State) -> Result<(), String> {
        if self.options.check && insn.mem().is_some() {
            self.check(insn, None, st, false)?;
        }
        self.plain(insn, st)
    }
}
