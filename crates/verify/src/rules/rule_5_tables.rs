//! Rule 5: jumps through tables.

use crate::check::Check;
use crate::decode::R11;
use crate::image::Image;
use crate::notes::{NoMemory, Note, Table, dword, push};
use crate::pass::{Part, Pass};
use crate::reason::Reason;
use crate::rules::rule_4_direct::{is_target, refusal};
use core::ops::Range;
use ringfence_isa::{identifier, sequence};

/// Where the instructions from `leaq TABLE(%rip), %r11` on start, and their lengths.
const TABLE_PARTS: [(usize, usize); 3] = [
    (0, sequence::TABLE_LEN),
    (sequence::TABLE_LEN, sequence::SLOT_LEN),
    (TABLE_PARTS_LEN - sequence::ADD.len(), sequence::ADD.len()),
];
const TABLE_PARTS_LEN: usize = sequence::TABLE_LEN + sequence::SLOT_LEN + sequence::ADD.len();

/// Whether the jump in hand ends the sequence that goes through a table. Notes the table, which the second pass checks.
pub(crate) fn table_jump(pass: &mut Pass, part: &mut Part) -> Result<bool, NoMemory> {
    let at = part.at;
    let Some(start) = at.checked_sub(TABLE_PARTS_LEN) else {
        return Ok(false);
    };
    let (table, rest) = pass.image.text[start..].split_at(sequence::TABLE_LEN);
    let (slot, rest) = rest.split_at(sequence::SLOT_LEN);
    if !table.starts_with(&sequence::TABLE)
        || !rest.starts_with(&sequence::ADD)
        || !rest[sequence::ADD.len()..].starts_with(&sequence::JMP)
        || !pass.decoded_as(start, &TABLE_PARTS)
    {
        return Ok(false);
    }
    let Some((register, more)) = clamp_before(pass, start) else {
        return Ok(false);
    };
    // The table's address is in r11 by then.
    if register == R11 || slot != sequence::slot(register) {
        return Ok(false);
    }
    for (part, _) in &TABLE_PARTS {
        pass.facts.notes[start + part].set_interior();
    }
    let distance = pass.dword(start + sequence::TABLE.len()) as i32;
    let table = Table {
        from: at as u32,
        at: (start + sequence::TABLE_LEN) as i64 + i64::from(distance),
        more,
    };
    push(&mut part.tables, table)?;
    Ok(true)
}

/// The instruction that ends at `end`, if it is one that leaves a small number in a register: the register, and the largest
/// number that it can hold then.
fn clamp_before(pass: &Pass, end: usize) -> Option<(u8, u16)> {
    let code = [3, 4].into_iter().find_map(|len| {
        let start = end.checked_sub(len)?;
        (pass.facts.notes[start].len() == len).then(|| &pass.image.text[start..end])
    })?;
    match *code {
        // andl $MASK, %eREG. The immediate is sign-extended.
        [0x83, modrm @ 0xE0..=0xE7, mask] if mask < 0x80 => Some((modrm & 7, u16::from(mask))),
        [0x41, 0x83, modrm @ 0xE0..=0xE7, mask] if mask < 0x80 => Some((modrm & 7 | 8, u16::from(mask))),
        // movzbl between registers
        [0x0F, 0xB6, modrm @ 0xC0..=0xFF] => Some((modrm >> 3 & 7, 0xFF)),
        [rex @ 0x40..=0x4F, 0x0F, 0xB6, modrm @ 0xC0..=0xFF] => Some((modrm >> 3 & 7 | (rex & 4) << 1, 0xFF)),
        _ => None,
    }
}

/// Where slot `n` is, if anywhere.
fn slot(table: &Table, n: u16) -> i64 {
    table.at + i64::from(n) * sequence::SLOT_STEP as i64
}

/// Where slot `n` leads, if it is inside of `function`; and so is what it leads to, but for code that is refused.
pub(crate) fn target(image: &Image, table: &Table, n: u16, function: &Range<usize>) -> Option<i64> {
    let place = usize::try_from(slot(table, n)).ok();
    let place = place.filter(|&p| p >= function.start && p + 4 <= function.end)?;
    Some(table.at + i64::from(dword(image.text, place) as i32))
}

/// The function that jumps through a table has the table in it, and all slots lead to its instructions: for the tables from number
/// `next` on that this function jumps through. Returns the number of the first behind it.
pub(crate) fn tables(check: &mut Check, mut next: usize, function: &Range<usize>) -> usize {
    let facts = check.facts;
    while let Some(table) = facts
        .tables
        .get(next)
        .filter(|t| (t.from as usize) < function.end)
    {
        next += 1;
        if let Some(reason) = (0..=table.more).find_map(|n| bad_slot(check, table, n, function)) {
            check.reject(table.from as usize, reason);
        }
    }
    next
}

fn bad_slot(check: &Check, table: &Table, n: u16, function: &Range<usize>) -> Option<Reason> {
    let target = target(check.image, table, n, function);
    if target.is_none() || over_identifier(check, slot(table, n)) {
        return Some(Reason::TablePlace);
    }
    let own = target
        .and_then(|to| usize::try_from(to).ok())
        .filter(|at| function.contains(at));
    let note = own.map_or(Note::default(), |at| check.facts.notes[at]);
    (!is_target(note)).then(|| refusal(note, Reason::TableSlot))
}

/// Whether a distance at `slot` has bytes of a marker's identifier. Text never changes but for these: when code is linked into
/// a living domain they are written after the rest, one by one, and a jump of its could read something else until then.
fn over_identifier(check: &Check, slot: i64) -> bool {
    let within = (slot + i64::from(check.image.text_address)) % identifier::MARKER_LEN as i64;
    let marker = usize::try_from(slot - within)
        .ok()
        .and_then(|at| check.facts.notes.get(at));
    // The identifier is the marker's second half, and a distance as long as it.
    within > 0 && marker.is_some_and(|note| note.is_marker())
}
