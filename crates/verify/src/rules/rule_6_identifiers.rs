//! Rule 6: markers, and nothing else that looks like one.

use crate::check::Check;
use crate::decode::Instruction;
use crate::notes::{Class, Label, NoMemory, push};
use crate::pass::{Part, Pass};
use crate::reason::Reason;
use crate::report::Pad;
use crate::rules::rule_1_held::Line;
use core::ops::Range;
use ringfence_isa::{identifier, pad};

/// The class of an instruction that just goes on, which may be a marker or a landing pad.
#[inline(always)]
pub(crate) fn marker(pass: &mut Pass, part: &mut Part, i: &Instruction) -> Result<Class, NoMemory> {
    if i.len != 8 {
        return Ok(Class::Plain);
    }
    let at = part.at;
    let code = &pass.image.text[at..];
    let address = pass.image.text_address.wrapping_add(at as u32);
    if let Some(depth) = pad::claim(code) {
        let pad = Pad {
            offset: address,
            depth: depth.into(),
        };
        push(&mut part.pads, pad)?;
        // Control arrives there from the runtime.
        part.line = Line::LOST;
    }
    if !code.starts_with(&identifier::MARKER_HEAD)
        || !(address as usize).is_multiple_of(identifier::MARKER_LEN)
    {
        return Ok(Class::Plain);
    }
    let id = pass.dword(at + 4);
    if id == identifier::FUNCTION {
        pass.facts.entries.insert(at);
        return Ok(Class::FunctionMarker);
    }
    if !identifier::is_reserved(id) {
        return Ok(Class::Plain);
    }
    let number = id as u16;
    if !may_use(pass, number) {
        pass.reject(at, i, Reason::MarkerIdentifier);
        return Ok(Class::Plain);
    }
    push(
        &mut part.labels,
        Label {
            at: at as u32,
            number,
        },
    )?;
    Ok(Class::LabelMarker)
}

/// Whether the module may use a label's number.
pub(crate) fn may_use(pass: &Pass, number: u16) -> bool {
    identifier::label(number).is_some() && pass.rules.label_numbers.contains(&number)
}

/// Whatever looks like an identifier where identifiers stand must be in a marker.
pub(crate) fn hidden(pass: &mut Pass) {
    let text = pass.image.text;
    let prefix = identifier::PREFIX.to_le_bytes();
    // The prefix is the upper half of a dword at an address ≡ 4 (mod 8), and the text starts on a page.
    for (n, word) in text[..].chunks(8).enumerate() {
        if word.get(6..) != Some(&prefix[..]) {
            continue;
        }
        if !pass.facts.notes[n * 8].is_marker() {
            pass.rejections
                .add(pass.image, n * 8 + 4, 4, Reason::HiddenIdentifier);
        }
    }
}

/// All labels of one number are in one function: those of this one, from number `next` on. Returns the number of the first behind it.
pub(crate) fn labels(check: &mut Check, mut next: usize, function: &Range<usize>) -> usize {
    let facts = check.facts;
    while let Some(label) = facts.labels.get(next).filter(|l| (l.at as usize) < function.end) {
        if check.chains.previous(next).is_some_and(|p| p < function.start) {
            check.reject(label.at as usize, Reason::SharedLabel);
        }
        next += 1;
    }
    next
}
