//! What a fault in the words mode was about: which access was denied.

use crate::domain::{DomainRef, Inner};
use ringfence_core::{Access, FaultKind};
use ringfence_isa::words::{self, CMOV, TABLE, TEST, TEST_LEN};

/// A test and its move.
const STEP: usize = TEST_LEN + CMOV.len();

/// What is read of the code in front of an instruction.
const BEFORE: usize = 2 * STEP + 32;

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
    let mut code = [0; BEFORE + TEST_LEN];
    let at = rip.checked_sub(BEFORE as u64)?;
    DomainRef::of(domain).read(at, &mut code).ok()?;
    let (before, here) = code.split_at(BEFORE);
    // At the access, or at one of the tests.
    let mut end = BEFORE;
    let mut bit = (here.starts_with(&TEST)).then(|| here[TEST_LEN - 1]);
    let mut steps = u8::from(bit.is_some());
    while let Some(start) = end.checked_sub(STEP)
        && before[start..].starts_with(&TEST)
        && before[start + TEST_LEN..].starts_with(&CMOV)
    {
        bit = bit.or(Some(before[start + TEST_LEN - 1]));
        steps += 1;
        end = start;
    }
    let bit = bit?;
    let class = (bit | bit >> 4).trailing_zeros() as usize & 3;
    let one = [1, 4, 8, 16][class];
    let len = match (steps, class) {
        (2, 2) => 10,
        (2, _) => 2 * one,
        _ => one,
    };
    let access = read_or_write(bit >= words::WRITE);
    if here.starts_with(&TEST)
        && let Some(offset) = offset.and_then(|o| o.checked_sub(TABLE))
        && offset >= words::ARENA
    {
        // Behind the arena's end there is no table either.
        return Some(told(offset, access, len));
    }
    match effective(&before[..end], registers) {
        Some(offset) => Some(told(offset, access, len)),
        None => Some(FaultKind::Denied {
            address: 0,
            access,
            len,
            rights: ringfence_core::Rights::None,
        }),
    }
}

/// The address that the `leal` computed that stands in front of the tests.
fn effective(before: &[u8], registers: &[u64; 16]) -> Option<u32> {
    // `cmpl $LOCAL, %r11d; jge` in front of the tests.
    const COMPARE: [u8; 3] = [0x41, 0x81, 0xFB];
    let mut end = before.len();
    for jump in [2, 6] {
        let start = end.checked_sub(jump + 7)?;
        if before[start..].starts_with(&COMPARE) && matches!(before[start + 7], 0x7D | 0x0F) {
            end = start;
            break;
        }
    }
    // `pushq %rax; lahf; seto %al` if the flags wait: then rax has changed.
    const WAIT: [u8; 5] = [0x50, 0x9F, 0x0F, 0x90, 0xC0];
    let waits = before[..end].ends_with(&WAIT);
    if waits {
        end -= WAIT.len();
    }
    let changed = |r: usize| r == 11 || waits && r == 0;
    (3..=9).find_map(|len| {
        let lea = &before[end.checked_sub(len)?..end];
        let [rex @ 0x44..=0x47, 0x8D, modrm, rest @ ..] = lea else {
            return None;
        };
        if modrm >> 3 & 7 != 3 || modrm >> 6 == 3 {
            return None;
        }
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let (base, index, scale, rest) = match (rm, rest) {
            (4, [sib, rest @ ..]) => {
                let index = usize::from(sib >> 3 & 7 | (rex & 2) << 2);
                let base = (mode != 0 || sib & 7 != 5).then(|| usize::from(sib & 7 | (rex & 1) << 3));
                (base, (index != 4).then_some(index), sib >> 6, rest)
            }
            (4, []) => return None,
            (5, _) if mode == 0 => return None,
            _ => (Some(usize::from(rm | (rex & 1) << 3)), None, 0, rest),
        };
        let displacement = match (mode, base, rest) {
            (0, Some(_), []) => 0,
            (1, _, [byte]) => i32::from(*byte as i8) as u32,
            (2, _, [a, b, c, d]) | (0, None, [a, b, c, d]) => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => return None,
        };
        if base.into_iter().chain(index).any(changed) {
            return None;
        }
        let value = |r: Option<usize>| r.map_or(0, |r| registers[r] as u32);
        let sum = value(base).wrapping_add(value(index) << scale);
        Some(sum.wrapping_add(displacement))
    })
}
