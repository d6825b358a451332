//! What a fault in the words mode was about: which access was denied.

use crate::domain::{DomainRef, Inner};
use crate::lanes::tested;
use ringfence_core::{Access, FaultKind};
use ringfence_isa::words::{self, TABLE};

/// The access that was denied, if that is why an instruction at `rip` failed to access `address`. Signal handlers' landings call it: it
/// allocates nothing. Nothing relies on what it tells.
pub(crate) fn denied(
    domain: &Inner,
    registers: &[u64; 16],
    rip: u64,
    address: u64,
    write: bool,
) -> Option<FaultKind> {
    let attached = domain.words()?;
    let offset = u32::try_from(address.wrapping_sub(domain.base())).ok();
    let told = |offset: u32, access: Access, len: u8| {
        let address = attached.host_address(offset);
        let rights = attached.rights(address);
        FaultKind::Denied {
            address,
            access,
            len,
            rights,
        }
    };
    let read_or_write = |write: bool| if write { Access::Write } else { Access::Read };
    if let Some(offset) = offset
        && (words::ARENA..words::ARENA_END).contains(&offset)
    {
        // An ordinary operand: library code, or a string instruction.
        return Some(told(offset, read_or_write(write), 0));
    }
    let code = tested::Code::around(rip, |at, to| DomainRef::of(domain).read(at, to).is_ok())?;
    let (before, here) = code.parts();
    let found = tested::access(before, here)?;
    let access = read_or_write(found.write);
    let len = found.len;
    if found.at_test
        && let Some(offset) = offset.and_then(|o| o.checked_sub(TABLE))
        && offset >= words::ARENA
    {
        // Behind the arena's end there is no table either.
        return Some(told(offset, access, len));
    }
    match tested::effective(&before[..found.from], registers) {
        Some(offset) => Some(told(offset, access, len)),
        None => Some(FaultKind::Denied {
            address: 0,
            access,
            len,
            rights: ringfence_core::Rights::None,
        }),
    }
}
