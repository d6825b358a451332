//! The last step of a link: gives jump labels their compact numbers, replaces fillers that the verifier does not
//! accept, and moves bytes that look like an identifier but are none.
//!
//! It decodes with a decoder of its own, for it has to look at no-ops that the verifier refuses. Nothing here is
//! trusted: what comes out is verified.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use ringfence_isa::{identifier, note, sequence};

use crate::error::Error;
use crate::image::{Image, ImageError, Note, SymbolKind};

/// What the finalizer did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Classes of jump labels.
    pub labels: usize,
    /// Bytes of no-ops replaced.
    pub fillers: usize,
    /// Calls of weak functions that nobody defines, which now trap.
    pub weak_calls: usize,
    /// Calls led through a jump because their displacement looked like an identifier.
    pub detours: usize,
    /// Addresses of bytes that still look like an identifier: another layout is needed.
    pub accidental: Vec<u64>,
}

/// No-ops of 1 to 9 bytes that the verifier accepts.
const NOPS: [&[u8]; 9] = [
    &[0x90],
    &[0x66, 0x90],
    &[0x0F, 0x1F, 0x00],
    &[0x0F, 0x1F, 0x40, 0x00],
    &[0x0F, 0x1F, 0x44, 0x00, 0x00],
    &[0x66, 0x0F, 0x1F, 0x44, 0x00, 0x00],
    &[0x0F, 0x1F, 0x80, 0x00, 0x00, 0x00, 0x00],
    &[0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
    &[0x66, 0x0F, 0x1F, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00],
];

const INT3: u8 = 0xCC;

/// A stretch of no-ops that do nothing but fill.
struct Run {
    start: usize,
    end: usize,
    /// Whether control can come in from above.
    reachable: bool,
    /// Whether any of them is one that the verifier refuses.
    bad: bool,
}

#[derive(Default)]
struct Survey {
    /// Identifier places of labels in order: offset of the four bytes.
    labels: Vec<usize>,
    /// Offsets of all markers' identifiers, function markers included.
    markers: HashSet<usize>,
    runs: Vec<Run>,
    targets: HashSet<u64>,
    entries: BTreeSet<u64>,
    /// Direct branches: offset to length.
    branches: BTreeMap<usize, usize>,
    /// Calls and jumps to address 0.
    to_nothing: Vec<(usize, usize, FlowControl)>,
    /// `int3` runs.
    traps: Vec<(usize, usize)>,
}

fn read32(text: &[u8], at: usize) -> u32 {
    text.get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

fn is_filler(i: &Instruction) -> bool {
    match i.code() {
        Code::Nopw | Code::Nopd | Code::Nopq => true,
        Code::Nop_rm16 | Code::Nop_rm32 | Code::Nop_rm64 => {
            i.op0_kind() == OpKind::Memory && i.memory_displacement64() == 0
        }
        _ => false,
    }
}

fn needs_replacing(bytes: &[u8]) -> bool {
    let prefixes = bytes
        .iter()
        .take_while(|b| matches!(b, 0x66 | 0x2E | 0x3E | 0x26 | 0x36 | 0x64 | 0x65 | 0x67));
    let (mut count, mut other) = (0, false);
    for p in prefixes {
        count += 1;
        other |= *p != 0x66;
    }
    count > 1 || other
}

/// Where the identifier stands in the compare of a checked jump or call, if the instruction at `at` is one.
fn compare_place(bytes: &[u8], at: usize) -> Option<usize> {
    let found = bytes.len() == sequence::CMP.len() + 4 && bytes[..sequence::CMP.len()] == sequence::CMP;
    found.then_some(at + sequence::CMP.len())
}

/// The values that checked jumps compare with. A long no-op with any other value marks nothing: it is a filler that
/// somebody wrote, or a landing pad, which no jump of the module goes to.
fn compared(text: &[u8], base: u64) -> HashSet<u32> {
    let mut values = HashSet::new();
    let mut decoder = Decoder::with_ip(64, text, base, DecoderOptions::NONE);
    let mut i = Instruction::default();
    while decoder.can_decode() {
        let at = decoder.position();
        decoder.decode_out(&mut i);
        if let Some(place) = compare_place(&text[at..at + i.len()], at) {
            values.insert(read32(text, place));
        }
    }
    values.remove(&identifier::FUNCTION);
    values.remove(&0);
    values
}

fn survey(text: &[u8], base: u64) -> Survey {
    let mut s = Survey::default();
    let mut decoder = Decoder::with_ip(64, text, base, DecoderOptions::NONE);
    let mut i = Instruction::default();
    let mut falls = false;
    // Of the table at hand: where it begins, and where it ends so far.
    let mut table = (0, 0);
    let compared = compared(text, base);
    while decoder.can_decode() {
        let at = decoder.position();
        decoder.decode_out(&mut i);
        let len = i.len();
        let bytes = &text[at..at + len];
        if bytes.len() == identifier::MARKER_LEN
            && bytes[..4] == identifier::MARKER_HEAD
            && (base as usize + at).is_multiple_of(8)
        {
            let value = read32(text, at + 4);
            let label = compared.contains(&value) || identifier::is_reserved(value);
            if value == identifier::FUNCTION {
                s.entries.insert(base + at as u64);
            } else if label {
                s.labels.push(at + 4);
            }
            if label || value == identifier::FUNCTION {
                s.markers.insert(at + 4);
                falls = true;
                continue;
            }
        }
        // A jump through a table leads where its slots say.
        if len == sequence::SLOT_STEP
            && bytes.starts_with(&sequence::SLOT_HEAD)
            && (base as usize + at).is_multiple_of(sequence::SLOT_STEP)
        {
            if table.1 != at {
                table.0 = at;
            }
            table.1 = at + len;
            let distance = i64::from(read32(text, at + sequence::SLOT_HEAD.len()).cast_signed());
            let origin = base + (table.0 + sequence::SLOT_HEAD.len()) as u64;
            s.targets.insert(origin.wrapping_add_signed(distance));
            falls = true;
            continue;
        }
        if is_filler(&i) {
            let bad = needs_replacing(bytes);
            match s.runs.last_mut() {
                Some(run) if run.end == at => {
                    run.end = at + len;
                    run.bad |= bad;
                }
                _ => s.runs.push(Run {
                    start: at,
                    end: at + len,
                    reachable: falls,
                    bad,
                }),
            }
            continue;
        }
        if i.mnemonic() == Mnemonic::Int3 {
            match s.traps.last_mut() {
                Some(t) if t.1 == at => t.1 = at + 1,
                _ => s.traps.push((at, at + 1)),
            }
            falls = false;
            continue;
        }
        if let Some(place) = compare_place(bytes, at)
            && read32(text, place) != identifier::FUNCTION
        {
            s.labels.push(place);
        }
        let flow = i.flow_control();
        // By operand, not by flow: `syscall` is a call of some kind too.
        if i.op_count() > 0 && i.op0_kind() == OpKind::NearBranch64 {
            let target = i.near_branch_target();
            s.branches.insert(at, len);
            s.targets.insert(target);
            if flow == FlowControl::Call {
                s.entries.insert(target);
            }
            if target == 0 {
                s.to_nothing.push((at, len, flow));
            }
        }
        falls = !matches!(
            flow,
            FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Return
                | FlowControl::Exception
        ) && i.mnemonic() != Mnemonic::Ud2;
    }
    s
}

/// Finalizes the linked file `data` in place.
///
/// # Errors
///
/// The file is not a module, or has more label classes than there are numbers.
pub fn finalize(data: &mut [u8], path: &str, claims: Note) -> Result<Summary, Error> {
    let wrong = |source: ImageError| Error::Image {
        path: path.to_owned(),
        source,
    };
    let (file, base, gaps, functions, notes, merged) = {
        let image = Image::parse(data).map_err(wrong)?;
        let functions: Vec<u64> = image
            .symbols
            .iter()
            .filter(|s| s.defined && s.kind == SymbolKind::Function)
            .map(|s| s.address)
            .collect();
        let merged = image.note.map_or(claims, |n| Note {
            version: ringfence_isa::ABI_VERSION,
            flags: n.flags | claims.flags,
            features: n.features | claims.features,
        });
        (
            image.text_file(),
            image.text.address,
            image.gaps.clone(),
            functions,
            image.note_places.clone(),
            merged,
        )
    };
    if notes.is_empty() {
        return Err(wrong(ImageError::NoNote));
    }
    for place in notes {
        let words = [merged.version, merged.flags, merged.features, 0];
        for (i, w) in words.iter().enumerate() {
            data[place.start + 4 * i..place.start + 4 * i + 4].copy_from_slice(&w.to_le_bytes());
        }
        debug_assert_eq!(place.len(), note::DESC_LEN);
    }
    let text = &mut data[file];
    for gap in gaps {
        text[(gap.start - base) as usize..(gap.end - base) as usize].fill(INT3);
    }
    let mut found = survey(text, base);
    found.entries.extend(functions);
    let mut summary = Summary {
        labels: number_labels(text, &found)?,
        ..Summary::default()
    };
    for (at, len, flow) in &found.to_nothing {
        // Never taken in a correct program: a weak function that nobody defines was tested against null before.
        summary.weak_calls += 1;
        if *flow == FlowControl::ConditionalBranch {
            continue;
        }
        text[*at..at + len].fill(INT3);
        text[*at..at + 2].copy_from_slice(&[0x0F, 0x0B]);
    }
    for run in &found.runs {
        let span = base + run.start as u64..base + run.end as u64;
        let targeted = span.clone().any(|a| found.targets.contains(&a));
        let dead = !run.reachable && !targeted;
        if dead || found.entries.contains(&span.end) && !targeted {
            text[run.start..run.end].fill(INT3);
            found.traps.push((run.start, run.end));
            summary.fillers += run.end - run.start;
        } else if run.bad {
            replace_fillers(text, run, &found.targets, base);
            summary.fillers += run.end - run.start;
        }
    }
    summary.accidental = accidental(text, base, &found.markers);
    if !summary.accidental.is_empty() {
        summary.detours = detour(text, base, &mut found, &summary.accidental);
        summary.accidental = accidental(text, base, &found.markers);
    }
    Ok(summary)
}

/// Gives each distinct label value a number, in order of appearance, and writes it.
fn number_labels(text: &mut [u8], found: &Survey) -> Result<usize, Error> {
    let mut numbers: HashMap<u32, u32> = HashMap::new();
    let mut next = identifier::LABEL_MIN;
    for place in &found.labels {
        let value = read32(text, *place);
        let id = match numbers.get(&value) {
            Some(id) => *id,
            None => {
                if next == identifier::LABEL_NEVER {
                    next += 1;
                }
                let id = identifier::label(next).ok_or(Error::TooManyLabels {
                    limit: usize::from(identifier::LABEL_MAX) - 1,
                })?;
                next += 1;
                numbers.insert(value, id);
                id
            }
        };
        text[*place..place + 4].copy_from_slice(&id.to_le_bytes());
    }
    Ok(numbers.len())
}

/// Fills a run with accepted no-ops that begin wherever something jumps to.
fn replace_fillers(text: &mut [u8], run: &Run, targets: &HashSet<u64>, base: u64) {
    let mut at = run.start;
    while at < run.end {
        let limit = (at + 1..run.end)
            .find(|a| targets.contains(&(base + *a as u64)))
            .unwrap_or(run.end);
        while at < limit {
            let n = (limit - at).min(NOPS.len());
            text[at..at + n].copy_from_slice(NOPS[n - 1]);
            at += n;
        }
    }
}

/// Addresses ≡ 4 (mod 8) whose dword has the reserved prefix without being a marker's.
pub(crate) fn accidental(text: &[u8], base: u64, markers: &HashSet<usize>) -> Vec<u64> {
    let first = (4u64.wrapping_sub(base) & 7) as usize;
    (first..text.len().saturating_sub(3))
        .step_by(8)
        .filter(|at| identifier::is_reserved(read32(text, *at)) && !markers.contains(at))
        .map(|at| base + at as u64)
        .collect()
}

/// Leads direct calls whose displacement looks like an identifier through a jump in dead space.
fn detour(text: &mut [u8], base: u64, found: &mut Survey, places: &[u64]) -> usize {
    let mut count = 0;
    for place in places {
        let hit = (place - base) as usize;
        let Some((&at, &len)) = found.branches.range(..=hit + 3).next_back() else {
            continue;
        };
        // `call` and `jmp` with 32 bits; conditional jumps never leave their function and so never change at a link.
        if len != 5 || at + len <= hit + 2 {
            continue;
        }
        let next = base + at as u64 + 5;
        let target = next.wrapping_add_signed(i64::from(read32(text, at + 1) as i32));
        let mut done = None;
        for (index, (start, end)) in found.traps.iter().enumerate() {
            if end - start < 6 {
                continue;
            }
            // One byte of trap stays in front, so that the jump is no continuation of what precedes it.
            let spot = start + 1;
            let spot_address = base + spot as u64;
            let old: [u8; 5] = [text[at], text[at + 1], text[at + 2], text[at + 3], text[at + 4]];
            let first = (spot_address.wrapping_sub(next)) as u32;
            let second = (target.wrapping_sub(spot_address + 5)) as u32;
            text[at + 1..at + 5].copy_from_slice(&first.to_le_bytes());
            text[spot] = 0xE9;
            text[spot + 1..spot + 5].copy_from_slice(&second.to_le_bytes());
            let near = |a: usize| {
                accidental(
                    &text[a & !7..(a + 16).min(text.len())],
                    base + (a & !7) as u64,
                    &HashSet::new(),
                )
            };
            let clean = near(at)
                .iter()
                .chain(near(spot).iter())
                .all(|a| found.markers.contains(&((a - base) as usize)));
            if clean {
                done = Some(index);
                break;
            }
            text[at..at + 5].copy_from_slice(&old);
            text[spot..spot + 5].fill(INT3);
        }
        if let Some(index) = done {
            found.traps[index].0 += 6;
            count += 1;
        }
    }
    count
}

/// Whether an instruction may be separated from the one before it by a no-op: not inside the sequence of a checked jump.
pub(crate) fn may_shift(i: &Instruction) -> bool {
    !(i.mnemonic() == Mnemonic::Cmp && i.memory_base() == Register::R11D)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_appearance() {
        let mut text = vec![0x0F, 0x1F, 0x84, 0x00, 0x11, 0x22, 0xFF, 0xFF];
        text.extend([0x65, 0x67, 0x41, 0x81, 0x7B, 0x04, 0x11, 0x22, 0xFF, 0xFF]);
        text.extend([0x65, 0x67, 0x41, 0x81, 0x7B, 0x04, 0xFF, 0xFF, 0x9A, 0x62]);
        let found = survey(&text, 0x1000);
        assert_eq!(found.labels, [4, 14]);
        assert_eq!(number_labels(&mut text, &found).unwrap(), 1);
        assert_eq!(read32(&text, 4), identifier::label(1).unwrap());
        assert_eq!(read32(&text, 14), identifier::label(1).unwrap());
        assert_eq!(read32(&text, 24), identifier::FUNCTION);
    }

    #[test]
    fn slots_of_a_table_are_targets() {
        let slot = |distance: i32| [&sequence::SLOT_HEAD[..], &distance.to_le_bytes()].concat();
        let mut text = [slot(0x20), slot(0x1C), vec![0xC3], vec![0x90; 15]].concat();
        text.extend(slot(-4));
        let found = survey(&text, 0x1000);
        assert_eq!(found.targets, HashSet::from([0x1024, 0x1020]));
        assert!(!found.runs[0].reachable);
    }

    #[test]
    fn replaced_fillers_decode_to_the_same_length() {
        for len in 1..60 {
            let mut text = vec![0x2E; len];
            let run = Run {
                start: 0,
                end: len,
                reachable: true,
                bad: true,
            };
            replace_fillers(&mut text, &run, &HashSet::from([5]), 0);
            let found = survey(&text, 0);
            assert_eq!(found.runs.len(), 1, "{text:x?}");
            assert_eq!((found.runs[0].end, found.runs[0].bad), (len, false));
        }
    }

    #[test]
    fn accidental_identifiers_are_found_at_their_residue_only() {
        let bytes = [0, 0, 0, 0, 0x34, 0x12, 0x9A, 0x62, 0x34, 0x12, 0x9A, 0x62];
        assert_eq!(accidental(&bytes, 0x1000, &HashSet::new()), [0x1004]);
        assert_eq!(accidental(&bytes, 0x1004, &HashSet::new()), [0x100C]);
        assert!(accidental(&bytes, 0x1000, &HashSet::from([4])).is_empty());
    }

    #[test]
    fn a_call_that_looks_like_an_identifier_takes_a_detour() {
        // call at 3: displacement bytes 4..8 hold the prefix at 6.
        let mut text = vec![0x90; 3];
        text.push(0xE8);
        text.extend([0x10, 0x00, 0x9A, 0x62]);
        text.push(0xC3);
        text.extend([INT3; 23]);
        let mut found = survey(&text, 0x1000);
        let hits = accidental(&text, 0x1000, &found.markers);
        assert_eq!(hits, [0x1004]);
        assert_eq!(detour(&mut text, 0x1000, &mut found, &hits), 1);
        assert!(accidental(&text, 0x1000, &found.markers).is_empty());
        let again = survey(&text, 0x1000);
        let wanted = 0x1008 + 0x629A_0010;
        assert!(again.targets.contains(&wanted), "{:x?}", again.targets);
    }
}
