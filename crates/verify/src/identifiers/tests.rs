//! What is a label and what only looks like one.

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
