//! A walked function into text.

use std::collections::HashSet;

use crate::debug::Debug;
use crate::func::{Function, Item};
use crate::insn::Class;
use crate::out::{Out, Target};
use crate::sink::Sink;
use crate::state::State;
use crate::step::{Fail, Step};
use crate::through::Through;
use crate::unwind::Unwind;
use crate::walk::{At, Walk};
use crate::words::Words;
use crate::{Addressing, Isolation};

/// Where a function stands in its file.
pub(crate) struct Place<'a> {
    /// Number of the function in the file, part of its labels' names.
    pub number: u32,
    /// The function that follows without a gap, for hand-written code that runs into it.
    pub next: Option<&'a str>,
    pub handwritten: bool,
}

/// Label classes: one for each depth.
#[derive(Default)]
struct Classes {
    depths: Vec<i64>,
    marked: Vec<bool>,
}

impl Classes {
    fn of(&mut self, st: &State) -> u32 {
        let depth = st.depth();
        let at = self.depths.iter().position(|d| *d == depth).unwrap_or_else(|| {
            self.depths.push(depth);
            self.marked.push(false);
            self.depths.len() - 1
        });
        at as u32
    }
}

/// Writes the function.
pub(crate) fn emit<'a>(
    f: &Function<'a>,
    w: &Walk,
    place: &Place<'_>,
    out: &mut Out<'_>,
    debug: &mut Debug<'a>,
) -> Result<(), At> {
    let step = Step {
        f,
        mode: w.mode,
        handwritten: place.handwritten,
    };
    let aligned = aligned_items(f, w);
    let mut classes = Classes::default();
    let mut tables = f.dispatch.tables.clone();
    // Hand-written functions without directives get some: their states say all that is needed.
    let own_cfi = !f.has_cfi && !f.items.iter().any(changes_section);
    out.cfi = f.has_cfi || own_cfi;
    let mut unwind = out.cfi.then(|| Unwind::new(pushed(f, w)));
    let mut marked_entry = false;
    let mut stopped = false;
    let mut dead_end = true;
    // What is checked already stays as it is checked.
    let words = out.options.isolation == Isolation::Words;
    let by_r14 = !out.options.check && out.options.addressing == Addressing::Any;
    let mut through = by_r14.then(|| Through::new(f));
    // There the tests of a line come first.
    let mut words = words.then(|| Words::new(f, place.number, out.cfi, through.take()));
    for (at, item) in f.items.iter().enumerate() {
        if let Some(through) = &mut through {
            through.item(item);
        }
        if let Some(words) = &mut words {
            words.item(item);
            if matches!(item, Item::Raw(text) if text.starts_with(".cfi_endproc")) {
                words.finish(&mut out.buf, unwind.as_mut());
            }
        }
        match item {
            Item::Label(_) | Item::Raw(_) if f.dispatch.dropped.contains(&(at as u32)) => {}
            Item::Label(name) => {
                if !marked_entry && is_inner(name) {
                    marked_entry = true;
                    out.function_marker();
                }
                if aligned.contains(&(at as u32)) {
                    out.line(".p2align\t3");
                }
                out.buf.push_str(name);
                out.buf.push_str(":\n");
                // A jump may lead here, to run through an alignment that follows.
                dead_end &= !is_inner(name) || f.tables.values().any(|t| t.label == *name);
                // Behind the last instruction: what comes there must not run into the next function.
                if f.is_end(name) {
                    match place.next {
                        Some(next) if place.handwritten => out.fmt(format_args!("\tjmp\t{next}\n")),
                        _ => out.line("ud2"),
                    }
                }
                if at == 0 && own_cfi {
                    out.line(".cfi_startproc");
                }
                if debug.wanted
                    && let Some(st) = next_state(f, w, at)
                {
                    debug.label(name, st.shift());
                }
            }
            Item::Raw(text) => out.line(text),
            Item::ArgsSize(n) => {
                // The unwinder lets r15 skip the arguments; what it skips is measured in our layout.
                let by = next_state(f, w, at).map_or(*n, |st| match st.sp {
                    Some((s, d)) => d - w.mode.distance(s - n, st.ctl),
                    None => *n,
                });
                out.fmt(format_args!("\t.cfi_escape 0x2e"));
                let mut v = by;
                loop {
                    let more = v >> 7 != 0;
                    out.fmt(format_args!(",{:#x}", v & 0x7f | if more { 0x80 } else { 0 }));
                    v >>= 7;
                    if !more {
                        break;
                    }
                }
                out.buf.push('\n');
            }
            Item::Align(text) => {
                if !marked_entry {
                    marked_entry = true;
                    out.function_marker();
                }
                out.buf.push_str(&alignment(text, dead_end));
            }
            Item::Code(i) => {
                let i = *i;
                if !marked_entry {
                    marked_entry = true;
                    out.function_marker();
                }
                let code = &f.codes[i as usize];
                let Some(st) = w.states[i as usize] else {
                    if !stopped {
                        out.line("ud2");
                    }
                    stopped = true;
                    dead_end = true;
                    continue;
                };
                stopped = false;
                dead_end = false;
                if let Some(u) = &mut unwind {
                    u.sync(&mut out.buf, &st, f.row(i), code.row);
                }
                let mark = out.buf.len();
                if code.class == Class::Endbr {
                    if f.is_pad(i) {
                        out.pad_marker(st.depth());
                    } else if f.is_marked(i) {
                        let class = classes.of(&st);
                        let first = !std::mem::replace(&mut classes.marked[class as usize], true);
                        out.label_marker(place.number, class, first);
                    }
                    // A function without a body, or one that ends behind a label.
                    if w.cut[i as usize] {
                        end(f, i, &st, place, out);
                        dead_end = true;
                    }
                    continue;
                }
                if let Some(part) = f.dispatch.parts.get(&i) {
                    out.table_part(*part, place.number, &mut tables, f);
                    if let Some(through) = &mut through {
                        through.forget();
                    }
                    if let Some(words) = &mut words {
                        words.instruction(i, &st, &out.buf, mark, w.cut[i as usize]);
                    }
                    dead_end = !f.falls_through(i);
                    continue;
                }
                let mut target = Target::Function;
                if code.class == Class::Jmp && code.insn.star && f.targets(i).is_some() {
                    target = Target::Label(place.number, classes.of(&st));
                }
                if code.class == Class::Jmp
                    && target == Target::Function
                    && (code.stmt.note.contains("tablejump") || code.stmt.note.contains("indirect_jump"))
                {
                    return Err(At(
                        i,
                        Fail {
                            reason: "an indirect jump in a function without marked labels".to_owned(),
                            advice: "non-local goto and __builtin_longjmp are not supported".to_owned(),
                            retry: false,
                        },
                    ));
                }
                let mut after = st;
                let mut sink = Sink {
                    out,
                    unwind: unwind.as_mut(),
                    target,
                };
                step.take(i, &mut after, Some(&mut sink)).map_err(|e| At(i, e))?;
                if let Some(through) = &mut through {
                    through.instruction(i, &mut out.buf, mark);
                }
                if let Some(words) = &mut words {
                    words.instruction(i, &st, &out.buf, mark, w.cut[i as usize]);
                }
                if w.cut[i as usize] {
                    end(f, i, &after, place, out);
                    dead_end = true;
                } else if !f.falls_through(i) {
                    dead_end = true;
                }
            }
        }
    }
    if f.codes.is_empty() {
        out.function_marker();
        out.line("ud2");
    }
    if let Some(words) = &mut words {
        words.finish(&mut out.buf, unwind.as_mut().filter(|_| own_cfi));
    }
    if own_cfi {
        out.line(".cfi_endproc");
    }
    Ok(())
}

/// Whether an item may lead to another section, where the directives of a frame cannot follow.
fn changes_section(item: &Item<'_>) -> bool {
    const PASSED: [&str; 9] = [
        ".globl", ".global", ".weak", ".type", ".size", ".hidden", ".local", ".loc", ".set",
    ];
    matches!(item, Item::Raw(text) if !PASSED.iter().any(|p| text.starts_with(p)))
}

/// What stands where control must not go on.
fn end(f: &Function<'_>, i: u32, st: &State, place: &Place<'_>, out: &mut Out<'_>) {
    let last = i as usize + 1 == f.codes.len();
    match place.next {
        Some(next)
            if last && (place.handwritten || !f.has_cfi) && st.sp == Some((8, 0)) && st.ctl.len() == 0 =>
        {
            out.fmt(format_args!("\tjmp\t{next}\n"));
        }
        _ => out.line("ud2"),
    }
}

/// Whether a label in front of the first instruction belongs to the body: not to the debug
/// information about the entry, nor to the function's names.
fn is_inner(name: &str) -> bool {
    let b = name.as_bytes();
    name.starts_with(".L") && b.get(2).is_some_and(u8::is_ascii_digit) || b[0].is_ascii_digit()
}

/// The items in front of which label markers have to be aligned.
fn aligned_items(f: &Function<'_>, w: &Walk) -> HashSet<u32> {
    let mut set = HashSet::new();
    for &i in f.marks.keys() {
        if !f.is_marked(i) || f.is_pad(i) || w.states[i as usize].is_none() {
            continue;
        }
        let own = f.codes[i as usize].item as usize;
        let mut first = None;
        for at in (0..own).rev() {
            match f.items[at] {
                Item::Label(name) if is_inner(name) || name.starts_with(".L") => first = Some(at as u32),
                Item::Raw(text) if text.starts_with(".loc") || text.starts_with(".cfi") => {}
                Item::ArgsSize(_) => {}
                _ => break,
            }
        }
        if let Some(first) = first {
            set.insert(first);
        }
    }
    set
}

/// The registers that are ever on the control stack, as a set of bits.
fn pushed(f: &Function<'_>, w: &Walk) -> u16 {
    let mut set = 0;
    for (c, st) in f.codes.iter().zip(&w.states) {
        if let (Class::Pop | Class::Leave | Class::Call | Class::Ret, Some(st)) = (c.class, st) {
            for r in st.ctl.regs() {
                set |= 1 << r;
            }
        }
    }
    set
}

/// The state in front of the first instruction behind item `at`.
fn next_state(f: &Function<'_>, w: &Walk, at: usize) -> Option<State> {
    f.items[at..]
        .iter()
        .find_map(|x| if let Item::Code(i) = x { Some(*i) } else { None })
        .and_then(|i| w.states[i as usize])
}

/// An alignment directive for code: `int3` where control does not come, no-ops elsewhere.
pub(crate) fn alignment(text: &str, dead_end: bool) -> String {
    let (name, args) = crate::parse::directive(text);
    let mut parts = args.split(',').map(str::trim);
    let to = parts.next().unwrap_or("");
    let _fill = parts.next();
    let max = parts.next().unwrap_or("");
    let fill = if dead_end { "0xcc" } else { "" };
    match (fill, max) {
        ("", "") => format!("\t{name}\t{to}\n"),
        (_, "") => format!("\t{name}\t{to},{fill}\n"),
        _ => format!("\t{name}\t{to},{fill},{max}\n"),
    }
}
