//! Finding identifiers in text whose identifiers are not final: for the last link step and the loader, which renumber
//! labels. Nothing here is part of a verdict; [`crate::verify`] looks at the result afresh.

use crate::decode::{Flow, decode};
use crate::notes::dword;
use crate::quick::quick;
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
/// Finalized text is not decoded for it: in accepted text whatever looks like an identifier is one (rule 6), and of other text
/// [`crate::verify`] says what is wrong.
///
/// # Errors
///
/// The first instruction that does not decode of text that is not final, or [`Reason::NoMemory`].
pub fn identifiers(text: &[u8], text_address: u32) -> Result<Vec<IdPlace>, Rejection> {
    match by_bytes(text, text_address)? {
        Some(places) => Ok(places),
        None => by_instructions(text, text_address),
    }
}

/// The places in finalized text, by their bytes alone; nothing if some comparison is not final.
fn by_bytes(text: &[u8], text_address: u32) -> Result<Option<Vec<IdPlace>>, Rejection> {
    let mut places = Vec::new();
    let mut add = |at: usize, id, kind| {
        reserve(&mut places, 1)?;
        places.push(IdPlace {
            offset: text_address.wrapping_add(at as u32),
            id,
            kind,
        });
        Ok(())
    };
    let mut at = 0;
    while at < text.len() {
        let next = at + BLOCK;
        if text[at..]
            .first_chunk()
            .is_some_and(|block| !holds_compare(block))
        {
            at = next;
            continue;
        }
        for at in at..next.min(text.len()) {
            let Some(place) = compare_at(text, at) else {
                continue;
            };
            match dword(text, place) {
                0 | identifier::FUNCTION => {}
                id if identifier::is_reserved(id) => add(place, id, IdKind::Compare)?,
                _ => return Ok(None),
            }
        }
        at = next;
    }
    let first = text_address.wrapping_neg() as usize % identifier::MARKER_LEN;
    let words = text.get(first..).unwrap_or_default().as_chunks::<8>().0.iter();
    for (eight, at) in words.zip((first..).step_by(identifier::MARKER_LEN)) {
        let (head, id) = (dword(eight, 0), dword(eight, 4));
        if head == u32::from_le_bytes(identifier::MARKER_HEAD)
            && identifier::is_reserved(id)
            && id != identifier::FUNCTION
        {
            add(at + 4, id, IdKind::Marker)?;
        }
    }
    places.sort_unstable_by_key(|place| place.offset);
    Ok(Some(places))
}

/// Bytes that are looked at together.
const BLOCK: usize = 64;
/// The comparison without its prefixes: few other instructions have these bytes.
const COMPARE: [u8; 4] = [
    sequence::CMP[2],
    sequence::CMP[3],
    sequence::CMP[4],
    sequence::CMP[5],
];

/// Whether the inner bytes of [`COMPARE`], which are as rare as all of it, stand anywhere in a block. Without a way out in between, so
/// that compilers look at many places at once.
fn holds_compare(block: &[u8; BLOCK + COMPARE.len() - 1]) -> bool {
    let mut found = 0;
    for at in 0..BLOCK {
        found |= u8::from(block[at + 1] == COMPARE[1]) & u8::from(block[at + 2] == COMPARE[2]);
    }
    found != 0
}

/// Where the identifier of a complete checked sequence stands, if its [`COMPARE`] is at `at`.
fn compare_at(text: &[u8], at: usize) -> Option<usize> {
    if !text.get(at..)?.starts_with(&COMPARE) {
        return None;
    }
    let start = (at + COMPARE.len()).checked_sub(sequence::ID_OFFSET)?;
    let last = start + sequence::LEN - sequence::JMP.len();
    let end = text.get(last..)?;
    let jumps = end.starts_with(&sequence::JMP) || end.starts_with(&sequence::CALL);
    compare_before(text, last).filter(|&place| jumps && place == at + COMPARE.len())
}

/// The same for any text, which has to decode.
fn by_instructions(text: &[u8], text_address: u32) -> Result<Vec<IdPlace>, Rejection> {
    let mut places = Vec::new();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        // Nearly all instructions. It knows neither indirect jumps nor markers that carry a number.
        if let Some(q) = rest.first_chunk().and_then(|ahead| quick(ahead, true)) {
            at += q.len;
            continue;
        }
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
