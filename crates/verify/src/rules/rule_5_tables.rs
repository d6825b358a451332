//! Rule 5: jumps through tables.

use crate::check::Check;
use crate::decode::R11;
use crate::image::Image;
use crate::notes::{Facts, dword};
use crate::pass::Pass;
use crate::reason::Reason;
use crate::rules::rule_4_direct::is_target;
use crate::rules::rule_6_identifiers;
use crate::why::refusal;
use core::ops::Range;
use ringfence_isa::{identifier, sequence};

/// Where the instructions from `leaq TABLE(%rip), %r11` on start, and their lengths.
const TABLE_PARTS: [(usize, usize); 3] = [
    (0, sequence::TABLE_LEN),
    (sequence::TABLE_LEN, sequence::SLOT_LEN),
    (TABLE_PARTS_LEN - sequence::ADD.len(), sequence::ADD.len()),
];
const TABLE_PARTS_LEN: usize = sequence::TABLE_LEN + sequence::SLOT_LEN + sequence::ADD.len();

/// A jump through a table. The table may be anywhere.
pub(crate) struct Table {
    /// Where the first distance stands.
    at: i64,
    /// How many follow it.
    more: u16,
}

impl Table {
    /// The table that the jump at `at` goes through, if it ends the sequence that goes through one.
    pub fn of(image: &Image, facts: &Facts, at: usize) -> Option<Table> {
        let start = at.checked_sub(TABLE_PARTS_LEN)?;
        let (table, rest) = image.text[start..].split_at(sequence::TABLE_LEN);
        let (slot, rest) = rest.split_at(sequence::SLOT_LEN);
        if !table.starts_with(&sequence::TABLE)
            || !rest.starts_with(&sequence::ADD)
            || !rest[sequence::ADD.len()..].starts_with(&sequence::JMP)
            || !facts.decoded_as(start, &TABLE_PARTS)
        {
            return None;
        }
        let (register, more) = clamp_before(image, facts, start)?;
        // The table's address is in r11 by then.
        if register == R11 || slot != sequence::slot(register) {
            return None;
        }
        let distance = dword(table, sequence::TABLE.len()) as i32;
        let at = (start + sequence::TABLE_LEN) as i64 + i64::from(distance);
        Some(Table { at, more })
    }

    /// Where the slots are, if anywhere.
    pub fn slots(&self) -> impl Iterator<Item = i64> + use<> {
        let at = self.at;
        (0..=self.more).map(move |n| at + i64::from(n) * sequence::SLOT_STEP as i64)
    }

    /// Where a slot leads, if both are inside of `function`.
    pub fn target(&self, image: &Image, slot: i64, function: &Range<usize>) -> Option<usize> {
        let place = usize::try_from(slot).ok();
        let place = place.filter(|&p| p >= function.start && p + 4 <= function.end)?;
        let target = self.at + i64::from(dword(image.text, place) as i32);
        usize::try_from(target).ok().filter(|at| function.contains(at))
    }
}

/// Whether the jump in hand goes through a table, which the second pass checks.
pub(crate) fn table_jump(pass: &mut Pass, at: usize) -> bool {
    let found = Table::of(pass.image, pass.facts, at).is_some();
    if found {
        for (part, _) in &TABLE_PARTS {
            pass.facts.set_sequence(at - TABLE_PARTS_LEN + part);
        }
        pass.facts.tables.insert(at);
    }
    found
}

/// The instruction that ends at `end`, if it is one that leaves a small number in a register: the register, and the largest
/// number that it can hold then.
fn clamp_before(image: &Image, facts: &Facts, end: usize) -> Option<(u8, u16)> {
    let code = [3, 4].into_iter().find_map(|len| {
        let start = end.checked_sub(len)?;
        (facts.note(start).len() == len).then(|| &image.text[start..end])
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

/// The function that jumps through a table has the table in it, and all slots lead to its instructions.
pub(crate) fn table(check: &mut Check, from: usize, function: &Range<usize>) {
    let Some(table) = Table::of(check.image, check.facts, from) else {
        return;
    };
    for slot in table.slots() {
        match place(check, &table, slot, function) {
            Ok(to) => check.facts.lead(to),
            Err(reason) => return check.reject(from, reason),
        }
    }
}

fn place(check: &Check, table: &Table, slot: i64, function: &Range<usize>) -> Result<usize, Reason> {
    let inside = slot >= function.start as i64 && slot + 4 <= function.end as i64;
    if !inside || over_identifier(check, slot) {
        return Err(Reason::TablePlace);
    }
    let to = table.target(check.image, slot, function).unwrap_or(usize::MAX);
    match is_target(check.facts, to) {
        true => Ok(to),
        false => Err(refusal(check.facts, to, Reason::TableSlot)),
    }
}

/// Whether a distance at `slot` has bytes of a marker's identifier. Text never changes but for these: when code is added to
/// a living domain they are written after the rest, one by one, and a jump of its could read something else until then.
fn over_identifier(check: &Check, slot: i64) -> bool {
    let within = (slot + i64::from(check.image.text_address)) % identifier::MARKER_LEN as i64;
    let marker = usize::try_from(slot - within).ok();
    // The identifier is the marker's second half, and a distance as long as it.
    within > 0 && marker.is_some_and(|at| rule_6_identifiers::is_marker(check.image, check.facts, at))
}
