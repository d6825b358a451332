//! Finding identifiers in text whose identifiers are not final: for the last link step and the loader, which renumber
//! labels. Nothing here is part of a verdict; [`crate::verify`] looks at the result afresh.

use crate::decode::{Flow, decode};
use crate::reason::Reason;
use crate::report::{IdKind, IdPlace, Rejection};
use crate::scan::dword;
use ringfence_isa::{identifier, sequence};
use std::collections::HashSet;

/// Finds the places of label identifiers in text, finalized or not, in order of address. Function identifiers are left
/// out, and so is every long no-op that only looks like a marker: one whose number no checked jump of the text
/// compares with, unless the number has the reserved prefix.
///
/// # Errors
///
/// The first instruction that does not decode.
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
                places.push(IdPlace {
                    offset: text_address.wrapping_add(place as u32),
                    id,
                    kind,
                });
            }
        }
        at += usize::from(i.len);
    }
    let compared: HashSet<u32> = places
        .iter()
        .filter(|p| p.kind == IdKind::Compare)
        .map(|p| p.id)
        .collect();
    places.retain(|p| compared.contains(&p.id) || identifier::is_reserved(p.id));
    Ok(places)
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
mod tests {
    use super::*;

    fn nop(value: u32) -> [u8; 8] {
        let v = value.to_le_bytes();
        [0x0F, 0x1F, 0x84, 0x00, v[0], v[1], v[2], v[3]]
    }

    fn jump(value: u32) -> Vec<u8> {
        let mut code = [&sequence::AND[..], &sequence::CMP].concat();
        code.extend(value.to_le_bytes());
        code.extend([&sequence::CMOV[..], &sequence::ADD, &sequence::JMP].concat());
        code
    }

    #[test]
    fn a_long_nop_marks_a_label_only_if_a_jump_compares_with_its_value() {
        // A filler with a displacement, twice the label that the jump asks for, the jump, and a filler again.
        let mut text = [nop(0x100), nop(0x11), nop(0x11), nop(identifier::FUNCTION)].concat();
        text.extend(jump(0x11));
        text.extend([nop(0x100), nop(0)].concat());
        assert!(may_hold_labels(&text));
        let found = identifiers(&text, 0x1000).unwrap();
        let places: Vec<(u32, IdKind)> = found.iter().map(|p| (p.offset, p.kind)).collect();
        let compare = 0x1020 + sequence::ID_OFFSET as u32;
        let wanted = [
            (0x100C, IdKind::Marker),
            (0x1014, IdKind::Marker),
            (compare, IdKind::Compare),
        ];
        assert_eq!(places, wanted);
    }

    #[test]
    fn what_has_the_reserved_prefix_is_told_whatever_compares_with_it() {
        let id = 0x629A_0007;
        assert!(may_hold_labels(&nop(id)));
        let found = identifiers(&nop(id), 0x1000).unwrap();
        assert_eq!(found.iter().map(|p| p.id).collect::<Vec<_>>(), [id]);
    }

    #[test]
    fn functions_and_fillers_are_no_labels() {
        let mut text = [nop(identifier::FUNCTION), nop(0x100), nop(0)].concat();
        text.extend(jump(identifier::FUNCTION));
        text.extend(jump(0));
        assert!(!may_hold_labels(&text));
        assert_eq!(identifiers(&text, 0x1000).unwrap(), []);
        // At the very end, and at any address: the quick look knows no instructions.
        let mut end = text.clone();
        end.extend(nop(0x629A_0007));
        assert!(may_hold_labels(&end));
        let mut end = [&[0x90], &text[..]].concat();
        end.extend(jump(0x11));
        assert!(may_hold_labels(&end));
        assert!(!may_hold_labels(&[]) && !may_hold_labels(&identifier::MARKER_HEAD));
    }
}
