//! Finding identifiers in text whose identifiers are not final: for the last link step and the loader, which renumber
//! labels. Nothing here is part of a verdict; [`crate::verify`] looks at the result afresh.

use crate::decode::{Flow, decode};
use crate::notes::dword;
use crate::reason::Reason;
use crate::report::Rejection;
use alloc::vec::Vec;
use ringfence_isa::{identifier, sequence};

/// A place in the text that holds an identifier, as found by [`identifiers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdPlace {
    /// Address of the identifier's four bytes.
    pub offset: u32,
    /// The value that stands there.
    pub id: u32,
    /// What it is part of.
    pub kind: IdKind,
}

/// What an identifier is part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// A marker: `nopl ID(%rax,%rax,1)` at a multiple of 8.
    Marker,
    /// The compare of a checked indirect jump or call.
    Compare,
}

/// Finds the places of label identifiers in text, finalized or not, in order of address. Function identifiers are left
/// out, and so is every long no-op that only looks like a marker: one whose number no checked jump of the text
/// compares with, unless the number has the reserved prefix.
///
/// # Errors
///
/// The first instruction that does not decode, or [`Reason::NoMemory`].
pub fn identifiers(text: &[u8], text_address: u32) -> Result<Vec<IdPlace>, Rejection> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let address = text_address.wrapping_add(at as u32);
        let i = decode(rest).map_err(|reason| Rejection::new(address, reason, rest))?;
        let found = match i.flow {
            Flow::Next
                if i.len == 8 && rest.starts_with(&identifier::MARKER_HEAD) && address.is_multiple_of(8) =>
            {
                Some((at + 4, IdKind::Marker))
            }
            Flow::IndirectJump if table_before(text, at) => None,
            Flow::IndirectJump | Flow::IndirectCall => Some((
                compare_before(text, at)
                    .ok_or_else(|| Rejection::new(address, Reason::BareIndirect, rest))?,
                IdKind::Compare,
            )),
            _ => None,
        };
        if let Some((place, kind)) = found {
            let id = dword(text, place);
            if id != identifier::FUNCTION && id != 0 {
                reserve(&mut places, 1)?;
                places.push(IdPlace {
                    offset: text_address.wrapping_add(place as u32),
                    id,
                    kind,
                });
            }
        }
        at += usize::from(i.len);
    }
    let mut compared: Vec<u32> = Vec::new();
    let compares = places.iter().filter(|p| p.kind == IdKind::Compare).map(|p| p.id);
    reserve(&mut compared, compares.clone().count())?;
    compared.extend(compares);
    compared.sort_unstable();
    places.retain(|p| identifier::is_reserved(p.id) || compared.binary_search(&p.id).is_ok());
    Ok(places)
}

/// Makes room. A list that grows does so by an eighth, so that old and new together take little more than twice its contents.
fn reserve<T>(list: &mut Vec<T>, more: usize) -> Result<(), Rejection> {
    if list.capacity() - list.len() >= more {
        return Ok(());
    }
    list.try_reserve_exact(more.max(list.len() / 8))
        .map_err(|_| Rejection::new(0, Reason::NoMemory, &[]))
}

/// Whether [`identifiers`] may find any: false only if no bytes look like a label's marker, or like a comparison with a label.
/// Many times faster than finding them, and most small functions have none.
#[must_use]
pub fn may_hold_labels(text: &[u8]) -> bool {
    let compare = sequence::CMP.first_chunk().expect("six bytes");
    text.windows(identifier::MARKER_LEN).enumerate().any(|(at, w)| {
        let head: &[u8; 4] = w.first_chunk().expect("eight bytes");
        if *head == identifier::MARKER_HEAD {
            let id = dword(w, 4);
            return id != identifier::FUNCTION && identifier::is_reserved(id);
        }
        head == compare
            && text[at..].starts_with(&sequence::CMP)
            && text.get(at + sequence::CMP.len()..).is_some_and(|rest| {
                !rest.starts_with(&identifier::FUNCTION.to_le_bytes()) && !rest.starts_with(&[0; 4])
            })
    })
}

/// Where the identifier of the checked sequence stands whose last instruction is at `at`.
fn compare_before(text: &[u8], at: usize) -> Option<usize> {
    let start = at.checked_sub(sequence::LEN - sequence::JMP.len())?;
    let s = text.get(start..)?;
    let complete = s.starts_with(&sequence::AND)
        && s[4..].starts_with(&sequence::CMP)
        && s[14..].starts_with(&sequence::CMOV)
        && s[18..].starts_with(&sequence::ADD);
    complete.then_some(start + sequence::ID_OFFSET)
}

/// Whether the jump at `at` looks like one through a table, which has no identifier.
fn table_before(text: &[u8], at: usize) -> bool {
    let start = at.checked_sub(sequence::TABLE_LEN + sequence::SLOT_LEN + sequence::ADD.len());
    start
        .and_then(|start| text.get(start..))
        .is_some_and(|s| s.starts_with(&sequence::TABLE))
}

#[cfg(test)]
mod tests;
