//! The first pass: every byte of the text belongs to exactly one decoded instruction, and each is judged by itself.
//!
//! Where the next instruction starts is known only when this one's length is, and a processor waits for that most of the time. So a
//! long text is taken in two parts at once, the second from a function's marker on. They fit together if the first ends where the
//! second begins: then the same instructions have been seen as from the first byte to the last, and no rule looks back over the
//! marker of a function (no fixed sequence contains one, and it ends what is known of `r11`). If they do not fit, or anything is
//! wrong, the text is taken once more, in one piece.

use crate::decode::{Flow, Instruction, WINDOW, decode, decode_window};
use crate::notes::{Bitmap, Class, NoMemory, Note};
use crate::pass::{Part, Pass};
use crate::quick::quick;
use crate::rules::rule_1_held::{Line, R11};
use crate::rules::{
    rule_1_memory, rule_4_direct, rule_5_indirect, rule_6_identifiers, rule_7_strings, rule_8_state,
};
use ringfence_isa::{Isolation, identifier};

/// Texts shorter than this are not worth two parts.
const LONG: usize = 4096;

/// Goes through the text. Rejections in order of address.
pub(crate) fn scan(pass: &mut Pass) -> Result<(), NoMemory> {
    let len = pass.image.text.len();
    if len >= LONG && pass.rejections.is_empty() {
        let middle = marker_from(pass.image.text, len / 2);
        let fit = scan_parts(pass, Part::new(0, middle), Part::new(middle, len))?;
        if fit && pass.rejections.is_empty() {
            return Ok(());
        }
        pass.rejections.clear();
        pass.facts.clear();
    }
    in_one_piece(pass)
}

pub(crate) fn in_one_piece(pass: &mut Pass) -> Result<(), NoMemory> {
    let len = pass.image.text.len();
    scan_parts(pass, Part::new(0, len), Part::new(len, len)).map(|_| ())
}

/// Whether the first part ends where the second begins.
fn scan_parts(pass: &mut Pass, mut first: Part, mut second: Part) -> Result<bool, NoMemory> {
    loop {
        if pass.rules.isolation == Isolation::Integrity {
            usual::<true>(pass, &mut first, &mut second);
        } else {
            usual::<false>(pass, &mut first, &mut second);
        }
        if first.at >= first.end && second.at >= second.end {
            break;
        }
        for part in [&mut first, &mut second] {
            if part.at < part.end {
                next(pass, part)?;
            }
        }
    }
    let fit = first.at == first.end && second.at == second.end;
    first.finish(pass.facts)?;
    second.finish(pass.facts)?;
    Ok(fit)
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
fn next(pass: &mut Pass, part: &mut Part) -> Result<(), NoMemory> {
    let rest = &pass.image.text[part.at..];
    let decoded = match rest.first_chunk::<WINDOW>() {
        Some(window) => decode_window(window),
        None => decode(rest),
    };
    match decoded {
        Ok(i) => {
            instruction(pass, part, &i)?;
            part.at += usize::from(i.len);
        }
        Err(reason) => {
            pass.rejections.add(pass.image, part.at, 0, reason);
            part.at = marker_from(pass.image.text, part.at);
            part.line = Line::LOST;
            pass.lost = true;
        }
    }
    Ok(())
}

/// The rules about one instruction. Rules 2 and 9, and what else can be said of an encoding alone, the decoder has looked at.
#[inline(always)]
fn instruction(pass: &mut Pass, part: &mut Part, i: &Instruction) -> Result<(), NoMemory> {
    let at = part.at;
    part.instructions += 1;
    part.features |= u32::from(i.features);
    part.mentions = part.mentions.or(i.mentioned);
    let free = rule_1_memory::may_be_free(pass, i);

    rule_5_indirect::window_base(pass, at, i);
    rule_1_memory::operand(pass, part, i, free);
    rule_8_state::allowed(pass, at, i);
    let class = match i.flow {
        Flow::Next => rule_6_identifiers::marker(pass, part, i)?,
        Flow::Push => Class::Push,
        Flow::Pop => Class::Pop,
        Flow::Return => Class::Return,
        Flow::Trap => Class::Trap,
        Flow::Jump => Class::Jump,
        Flow::Branch => Class::Branch,
        Flow::Call => {
            rule_4_direct::call(pass, at, i);
            Class::Call
        }
        Flow::IndirectJump => rule_5_indirect::checked(pass, part, i, Class::IndirectJump)?,
        Flow::IndirectCall => rule_5_indirect::checked(pass, part, i, Class::IndirectCall)?,
        Flow::String => rule_7_strings::string(pass, at, i),
    };

    if matches!(class, Class::Jump | Class::Branch) {
        pass.facts.jumps.insert(at);
    }
    pass.facts.notes[at] = Note::new(i, class);
    let r11 = R11::of(i, class, free);
    if r11.relies {
        part.line = part.line.rely(&mut pass.facts.notes, at);
    }
    part.line = part.line.behind(r11, at + usize::from(i.len));
    Ok(())
}

/// Where one part is, while the quick decoder is at work.
struct Cursor {
    at: usize,
    end: usize,
    line: Line,
    mentioned: u32,
    instructions: u64,
}

impl Cursor {
    fn of(part: &Part) -> Cursor {
        Cursor {
            at: part.at,
            end: part.end,
            line: part.line,
            mentioned: part.mentions.0.into(),
            instructions: part.instructions,
        }
    }

    fn back(self, part: &mut Part) {
        (part.at, part.line, part.instructions) = (self.at, self.line, self.instructions);
        part.mentions.0 = self.mentioned as u16;
    }
}

/// What the quick decoder's instructions are noted in.
struct Usual<'a> {
    text: &'a [u8],
    notes: &'a mut [Note],
    entries: &'a mut Bitmap,
    jumps: &'a mut Bitmap,
}

/// Takes what the quick decoder knows, until one of the parts has something else or both have ended. `FREE`: in integrity mode.
fn usual<const FREE: bool>(pass: &mut Pass, first: &mut Part, second: &mut Part) {
    let text = pass.image.text;
    let mut usual = Usual {
        text,
        notes: &mut pass.facts.notes[..text.len()],
        entries: &mut pass.facts.entries,
        jumps: &mut pass.facts.jumps,
    };
    let (mut a, mut b) = (Cursor::of(first), Cursor::of(second));
    if a.at < a.end && b.at < b.end {
        while usual.step::<FREE>(&mut a) && usual.step::<FREE>(&mut b) {}
    } else {
        let left = if a.at < a.end { &mut a } else { &mut b };
        while usual.step::<FREE>(left) {}
    }
    a.back(first);
    b.back(second);
}

impl Usual<'_> {
    /// One instruction or a run of `int3`. Whether there was one for the quick decoder.
    #[inline(always)]
    fn step<const FREE: bool>(&mut self, c: &mut Cursor) -> bool {
        let text = self.text;
        let at = c.at;
        if at >= c.end {
            return false;
        }
        let Some(ahead) = text[at..].first_chunk() else {
            return false;
        };
        // Padding comes in long runs, and makes up most of a small function's page.
        if ahead[0] == 0xCC {
            let run = text[at..].iter().take_while(|&&byte| byte == 0xCC).count();
            self.notes[at..at + run].fill(Note::INT3);
            c.instructions += run as u64;
            c.at += run;
            c.line = Line::LOST;
            return true;
        }
        let Some(q) = quick(ahead, FREE) else {
            return false;
        };
        if q.r11.relies && !c.line.holds() {
            return false;
        }
        let next = at + q.len;
        if q.note.is_transfer() {
            if q.note.class() != Class::Call {
                self.jumps.insert(at);
            } else {
                let to = next as i64 + i64::from(q.distance);
                let Some(to) = usize::try_from(to).ok().filter(|&to| to < text.len()) else {
                    return false;
                };
                self.entries.insert(to);
            }
        }
        self.notes[at] = q.note;
        if q.r11.relies {
            c.line = c.line.rely(self.notes, at);
        }
        c.instructions += 1;
        c.mentioned |= q.mentioned;
        c.at = next;
        c.line = c.line.behind(q.r11, next);
        true
    }
}
