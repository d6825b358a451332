//! What is a label and what only looks like one.

use super::*;
use std::vec;

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
    let found = identifiers(&nop(id), 0x1000).unwrap();
    assert_eq!(found.iter().map(|p| p.id).collect::<Vec<_>>(), [id]);
}

#[test]
fn functions_and_fillers_are_no_labels() {
    let mut text = [nop(identifier::FUNCTION), nop(0x100), nop(0)].concat();
    text.extend(jump(identifier::FUNCTION));
    text.extend(jump(0));
    assert_eq!(identifiers(&text, 0x1000).unwrap(), []);
}

/// Finalized text of any length, in front of and behind a block's end, at any distance of the comparison from it.
#[test]
fn bytes_and_instructions_tell_the_same_of_finalized_text() {
    let id = 0x629A_0007;
    for before in 0..2 * BLOCK {
        let mut text = vec![0x90; before];
        text.extend(jump(id));
        text.extend(jump(identifier::FUNCTION));
        text.resize(text.len().next_multiple_of(8), 0x90);
        text.extend([nop(id), nop(0x100), nop(identifier::FUNCTION), nop(id)].concat());
        for after in [0, 1, 7, BLOCK] {
            text.resize(text.len() + after, 0x90);
            let found = by_bytes(&text, 0x1000).unwrap().expect("all is final");
            assert_eq!(found, by_instructions(&text, 0x1000).unwrap());
            assert_eq!(found.len(), 3);
        }
    }
}

#[test]
fn what_is_not_final_is_decoded() {
    let text = [&nop(0x11)[..], &jump(0x629A_0007), &jump(0x11)].concat();
    assert_eq!(by_bytes(&text, 0x1000).unwrap(), None);
    assert_eq!(identifiers(&text, 0x1000).unwrap().len(), 3);
    // Parts of a sequence are no comparison.
    let parts = [&sequence::CMP[..], &[7, 0, 0x9A, 0x62], &[0x90; 24]].concat();
    assert_eq!(by_bytes(&parts, 0x1000).unwrap(), Some(vec![]));
    for len in 0..parts.len() {
        assert_eq!(by_bytes(&parts[..len], 0x1001).unwrap(), Some(vec![]));
    }
}
