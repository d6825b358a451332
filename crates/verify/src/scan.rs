//! The first pass: every byte of the text belongs to exactly one decoded instruction, and each is judged by itself.
//!
//! Where the next instruction starts is known only when this one's length is, and a processor waits for that most of the time. So a
//! long text is taken in two parts at once, the second from a function's marker on. They fit together if the first ends where the
//! second begins: then the same instructions have been seen as from the first byte to the last, and no rule looks back over the
//! marker of a function (no fixed sequence contains one, and it ends what is known of `r11`). If they do not fit, or anything is
//! wrong, the text is taken once more, in one piece.

use crate::bitmap::Bitmap;
use crate::decode::{Flow, Instruction, Memory, WINDOW, decode, decode_window};
use crate::notes::{Class, Note, dword};
use crate::pass::{Part, Pass};
use crate::quick::{self, AHEAD, quick};
use crate::rules::rule_1_held::{Line, R11};
use crate::rules::{
    rule_1_memory, rule_4_direct, rule_5_indirect, rule_6_identifiers, rule_7_strings, rule_8_state,
};
use ringfence_isa::{Isolation, identifier};

/// Texts shorter than this are not worth two parts.
const LONG: usize = 4096;

/// Goes through the text. Rejections in order of address.
pub(crate) fn scan(pass: &mut Pass) {
    let len = pass.image.text.len();
    if len >= LONG && pass.rejections.is_empty() {
        let middle = marker_from(pass.image.text, len / 2);
        let fit = scan_parts(pass, Part::new(0, middle), Part::new(middle, len));
        if fit && pass.rejections.is_empty() {
            return;
        }
        pass.rejections.clear();
        pass.facts.clear();
    }
    scan_parts(pass, Part::new(0, len), Part::new(len, len));
}

/// Whether the first part ends where the second begins.
fn scan_parts(pass: &mut Pass, mut first: Part, mut second: Part) -> bool {
    while first.at < first.end || second.at < second.end {
        let in_first = match pass.rules.isolation {
            Isolation::Integrity => usual::<true>(pass, &mut first, &mut second),
            Isolation::Full | Isolation::Words => usual::<false>(pass, &mut first, &mut second),
        };
        let part = if in_first { &mut first } else { &mut second };
        if part.at < part.end {
            next(pass, part);
        }
    }
    first.at == first.end && second.at == second.end
}

/// Where the first marker of a function stands behind `from`, or the end. Of code that does not decode the verdict is clear; to go on
/// from there is for the messages.
fn marker_from(text: &[u8], from: usize) -> usize {
    let marker = identifier::marker(identifier::FUNCTION);
    let first = from / 8 * 8 + 8;
    (first..text.len())
        .step_by(8)
        .find(|&at| text[at..].starts_with(&marker))
        .unwrap_or(text.len())
}

/// One instruction of any kind.
fn next(pass: &mut Pass, part: &mut Part) {
    let rest = &pass.image.text[part.at..];
    let decoded = match rest.first_chunk::<WINDOW>() {
        Some(window) => decode_window(window),
        None => decode(rest),
    };
    match decoded {
        Ok(i) => {
            instruction(pass, part, &i);
            part.at += usize::from(i.len);
        }
        Err(reason) => {
            pass.rejections.add(pass.image, part.at, 0, reason);
            part.at = marker_from(pass.image.text, part.at);
            part.line = Line::LOST;
            pass.lost = true;
        }
    }
}

/// The rules about one instruction. Rules 2 and 9, and what else can be said of an encoding alone, the decoder has looked at.
fn instruction(pass: &mut Pass, part: &mut Part, i: &Instruction) {
    let at = part.at;
    pass.facts.instructions += 1;
    pass.facts.features |= u32::from(i.features);
    pass.facts.vector |= i.vector;
    pass.facts.x87 |= i.x87;
    let free = rule_1_memory::may_be_free(pass, i);

    rule_5_indirect::window_base(pass, at, i);
    rule_1_memory::operand(pass, part, i, free);
    rule_8_state::allowed(pass, at, i);
    let mut r11 = R11::of(i, free);
    match i.flow {
        Flow::Next => r11.lost |= rule_6_identifiers::control_may_arrive(pass, at, i),
        Flow::Call => rule_4_direct::call(pass, at, i),
        Flow::IndirectJump | Flow::IndirectCall => rule_5_indirect::checked(pass, at, i),
        Flow::String => rule_7_strings::string(pass, at, i),
        _ => {}
    }
    let look = u8::from(i.flow == Flow::IndirectJump) * Note::LOOK;
    // An operand behind the window: refused, or the end of a sequence.
    let class = if i.memory == Memory::View {
        Class::Sequence
    } else {
        Class::of(i.flow)
    };
    pass.facts.set(at, Note(i.len | Note::of_class(class) | look));
    if r11.relies {
        part.line = part.line.rely(&mut pass.facts.held, at);
    }
    part.line = part.line.behind(r11, at + usize::from(i.len));
}

/// What the quick decoder's instructions are noted in.
struct Usual<'a> {
    text: &'a [u8],
    notes: &'a mut [u8],
    entries: &'a mut Bitmap,
    held: &'a mut Bitmap,
    instructions: u64,
    bits: u8,
}

/// Takes what the quick decoder knows, until a part has something else, or ends. Whether it is the first. `FREE`: in integrity mode.
fn usual<const FREE: bool>(pass: &mut Pass, first: &mut Part, second: &mut Part) -> bool {
    let mut usual = Usual {
        text: pass.image.text,
        notes: pass.facts.notes,
        entries: &mut pass.facts.entries,
        held: &mut pass.facts.held,
        instructions: 0,
        bits: 0,
    };
    // Nothing that is looked at starts behind a part's end.
    let (text, most) = (pass.image.text, AHEAD - 1);
    let text_of = |part: &Part| text.get(..part.end + most).unwrap_or(text);
    let (text_a, text_b) = (text_of(first), text_of(second));
    let (mut a, mut b) = (*first, *second);
    let in_first = if a.at < a.end && b.at < b.end {
        loop {
            if !usual.step::<FREE>(text_a, &mut a) {
                break true;
            }
            if !usual.step::<FREE>(text_b, &mut b) {
                break false;
            }
        }
    } else if a.at < a.end {
        while usual.step::<FREE>(text_a, &mut a) {}
        true
    } else {
        while usual.step::<FREE>(text_b, &mut b) {}
        false
    };
    (*first, *second) = (a, b);
    pass.facts.instructions += usual.instructions;
    pass.facts.vector |= usual.bits & quick::VECTOR != 0;
    in_first
}

impl Usual<'_> {
    /// One instruction or a run of `int3`. Whether there was one for the quick decoder.
    #[inline(always)]
    fn step<const FREE: bool>(&mut self, text: &[u8], c: &mut Part) -> bool {
        let at = c.at;
        let Some(ahead) = text.get(at..).and_then(|rest| rest.first_chunk()) else {
            return false;
        };
        // Padding comes in long runs, and makes up most of a small function's page.
        if ahead[0] == 0xCC {
            let run = padding(text, self.notes, at);
            self.instructions += run as u64;
            c.at += run;
            c.line = Line::LOST;
            return true;
        }
        let Some(q) = quick(ahead, FREE) else {
            return false;
        };
        if q.r11.relies {
            if !c.line.holds() {
                return false;
            }
            c.line = c.line.rely(self.held, at);
        }
        let next = at + q.len;
        if q.bits & quick::CALL != 0 {
            let distance = dword(self.text, at + 1) as i32;
            let to = usize::try_from(next as i64 + i64::from(distance)).ok();
            let Some(to) = to.filter(|&to| to < self.text.len()) else {
                return false;
            };
            self.entries.insert(to);
        }
        if let Some(note) = self.notes.get_mut(at) {
            *note = q.note.0;
        }
        self.instructions += 1;
        self.bits |= q.bits;
        c.at = next;
        c.line = c.line.behind(q.r11, next);
        true
    }
}

/// Notes the run of `int3` at `at`, and returns how long it is.
#[inline(never)]
fn padding(text: &[u8], notes: &mut [u8], at: usize) -> usize {
    let eights = text[at..].as_chunks().0.iter();
    let run = match eights.take_while(|&&eight| eight == [0xCC; 8]).count() {
        0 => text[at..].iter().take_while(|&&byte| byte == 0xCC).count(),
        eights => 8 * eights,
    };
    notes[at..at + run].fill(Note::INT3.0);
    run
}
