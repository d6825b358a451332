//! The quick decoder against the other.

use super::*;
use crate::decode::{Memory, decode};
use ringfence_isa::{identifier, pad};
use std::println;

/// What the decoder says, where it is something that the quick one may say: the note, whether it is a call and has vector registers,
/// and what it does to `r11`.
fn slow(code: &[u8; AHEAD], free: bool) -> Option<(Note, bool, bool, [bool; 3])> {
    let i = decode(code).ok()?;
    let memory = match i.memory {
        Memory::None | Memory::Confined | Memory::Held => true,
        Memory::Free | Memory::View => free && i.access == Access::Read,
        Memory::Rip => false,
    };
    let filler = code[4..8] == [0; 4];
    let marker = code.starts_with(&identifier::MARKER_HEAD) && !filler || pad::claim(code).is_some();
    let usual = memory && !marker && !i.x87 && !i.time_stamp && i.features == 0;
    let class = Class::of(i.flow);
    if !usual || i.written.contains(14) || i.mentioned.contains(4) || class == Class::Sequence {
        return None;
    }
    let r11 = R11::of(&i, free && i.access == Access::Read);
    Some((
        Note(Note::of_class(class) | i.len),
        i.flow == Flow::Call,
        i.vector,
        effects(r11),
    ))
}

fn effects(r11: R11) -> [bool; 3] {
    [r11.relies, r11.lost, r11.lost && r11.holds]
}

/// What the quick decoder says; it is what the other says.
fn agreed(code: &[u8; AHEAD], free: bool) -> Option<Quick> {
    let q = quick(code, free)?;
    let Some((note, call, vector, r11)) = slow(code, free) else {
        panic!("{code:02x?} is not for the quick decoder (free: {free})");
    };
    assert_eq!(note, q.note, "{code:02x?}: note");
    assert_eq!(call, q.bits & CALL != 0, "{code:02x?}: call");
    assert_eq!(vector, q.bits & VECTOR != 0, "{code:02x?}: vector registers");
    assert_eq!(r11, effects(q.r11), "{code:02x?}: r11 (free: {free})");
    assert_eq!(q.len, note.len(), "{code:02x?}: length");
    Some(q)
}

#[test]
fn long_no_ops_of_tables_are_quick_and_markers_are_not() {
    let displacements = [
        [0; 4],
        [1, 0, 0, 0],
        [0xFF; 4],
        identifier::FUNCTION.to_le_bytes(),
        identifier::label(1).expect("a label").to_le_bytes(),
        pad::marker(8)[4..].try_into().expect("four bytes"),
    ];
    for (head, sib) in [&[][..], &[0x66], &[0x40], &[0x65, 0x67]]
        .into_iter()
        .flat_map(|head| (0..=0xFF).map(move |sib| (head, sib)))
    {
        for displacement in displacements {
            let mut code = [0x90; AHEAD];
            let all = [head, &[0x0F, 0x1F, 0x84, sib], &displacement].concat();
            code[..all.len()].copy_from_slice(&all);
            let quick = agreed(&code, false).is_some();
            if head.is_empty() && sib == 0x40 {
                assert!(quick, "{code:02x?}");
            }
        }
    }
}

#[test]
fn the_quick_decoder_says_what_the_other_says() {
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    let rounds = if std::env::var("RINGFENCE_SOAK").is_ok_and(|v| v == "1") {
        64
    } else {
        1
    };
    let (mut both, mut only_slow, mut through_r14) = (0u64, 0u64, 0u64);
    let heads: [&[u8]; 10] = [
        &[],
        &[0x65, 0x67],
        &[0x66],
        &[0xF3],
        &[0xF2],
        &[0x65, 0x67, 0x66],
        &[0x65, 0x67, 0xF3],
        &[0x65, 0x67, 0xF2],
        &[0x65],
        &[0x67],
    ];
    let rexes = (0x40..0x50u8).map(Some).chain([None]);
    for (head, rex) in heads
        .iter()
        .flat_map(|head| rexes.clone().map(move |rex| (head, rex)))
    {
        for middle in 0..0x2_0000 * rounds {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let mut code = [0; AHEAD];
            let two = middle >> 16 & 1 == 1;
            let bytes = [(middle >> 8) as u8, middle as u8]
                .into_iter()
                .chain(random.to_le_bytes());
            let all = head
                .iter()
                .copied()
                .chain(rex)
                .chain(two.then_some(0x0F))
                .chain(bytes);
            code.iter_mut().zip(all).for_each(|(place, byte)| *place = byte);
            // The operand through r14 often enough, with displacements about its limits.
            let sib = head.len() + usize::from(rex.is_some()) + usize::from(two) + 2;
            if random >> 62 == 0 {
                code[sib] = HELD_SIB;
                code[sib + 2] &= 0x80 | random as u8;
                code[sib + 3..sib + 5].fill(if random >> 59 & 1 == 0 { 0 } else { 0xFF });
            }
            for free in [false, true] {
                let Some(q) = agreed(&code, free) else {
                    only_slow += u64::from(slow(&code, free).is_some());
                    continue;
                };
                through_r14 += u64::from(q.r11.relies);
                both += 1;
            }
        }
    }
    println!("{both} by both, {only_slow} by the slow one only, {through_r14} operands through r14");
    assert!(through_r14 > 1000);
    assert!(both > only_slow * 5);
}
