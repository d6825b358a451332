//! String instructions: their address registers are rebuilt from the lower halves and the window's
//! base first.

use crate::insn::Strings;
use crate::out::Out;
use crate::parse::Insn;

/// Writes the sequence that the verifier knows.
pub(crate) fn emit(out: &mut Out<'_>, insn: &Insn<'_>, which: Strings, flags_dead: bool) {
    if which.rdi {
        out.check_register("rdi", flags_dead);
    }
    if which.rsi {
        out.check_register("rsi", flags_dead);
    }
    if which.rdi {
        out.buf
            .push_str("\tmovl\t%edi, %edi\n\tleaq\t(%r14,%rdi), %rdi\n");
    }
    if which.rsi {
        out.buf
            .push_str("\tmovl\t%esi, %esi\n\tleaq\t(%r14,%rsi), %rsi\n");
    }
    let space = if insn.prefix.is_empty() { "" } else { " " };
    out.fmt(format_args!("\t{}{space}{}\n", insn.prefix, insn.mnemonic));
}
