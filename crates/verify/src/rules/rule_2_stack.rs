//! Rule 2: no operand, base or index is `rsp`. What changes it otherwise is rule 3's.

/// Whether the registers that an instruction names, as a set, have `rsp` among them. The quick decoder's table has the same.
#[inline(always)]
pub(crate) fn names_rsp(mentioned: u32) -> bool {
    mentioned & 1 << 4 != 0
}
