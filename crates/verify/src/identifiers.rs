//! Finding identifiers in text whose identifiers are not final: for the last link step and the loader, which renumber
//! labels. Nothing here is part of a verdict; [`crate::verify`] looks at the result afresh.

use crate::decode::{Flow, decode};
use crate::reason::Reason;
use crate::report::{IdKind, IdPlace, Rejection};
use crate::scan::dword;
use ringfence_isa::{identifier, sequence};

/// Finds the places of label identifiers in text, finalized or not, in order of address. Function identifiers and
/// plain fillers (value 0) are left out.
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
    Ok(places)
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
