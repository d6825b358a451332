//! Debug information: locations relative to `rsp` become locations relative to `r15`.
//!
//! `-gdwarf-2 -dA` makes gcc print location expressions byte by byte, with comments; whatever is
//! at `rsp+k` in gcc's layout, the frame base included, is at `r15+k+shift` in ours, where the shift is that of
//! the state at the range's first label. Sizes of expressions are fixed in the text, so the new
//! offset is written in as many bytes as the old one had.

use std::collections::HashMap;

use crate::parse::{Kind, Stmt, directive, number};

/// What is known about labels, and where in an expression the text is.
#[derive(Default)]
pub(crate) struct Debug<'a> {
    /// Whether the file has debug information at all.
    pub wanted: bool,
    shifts: HashMap<&'a str, i64>,
    current: i64,
    pending: bool,
}

impl<'a> Debug<'a> {
    pub(crate) fn new(wanted: bool) -> Debug<'a> {
        Debug {
            wanted,
            ..Debug::default()
        }
    }

    /// A label in a function, and the shift in front of the next instruction.
    pub(crate) fn label(&mut self, name: &'a str, shift: i64) {
        if self.wanted {
            self.shifts.insert(name, shift);
        }
    }

    /// A statement outside functions; what stands for it if that is something else.
    pub(crate) fn statement(&mut self, s: &Stmt<'a>) -> Option<String> {
        if !self.wanted || s.kind != Kind::Directive {
            return None;
        }
        let (name, args) = directive(s.text);
        match name {
            ".quad" if s.note.contains("begin address") || s.note.contains("DW_AT_low_pc") => {
                let label = args.split(['-', '+']).next().unwrap_or("").trim();
                self.current = self.shifts.get(label).copied().unwrap_or(-8);
                None
            }
            ".byte" if s.note.starts_with("DW_OP_breg7") => {
                self.pending = true;
                Some(".byte\t0x7f".to_owned())
            }
            ".sleb128" if self.pending => {
                self.pending = false;
                let old = number(args)?;
                Some(sleb(old + self.current, sleb_len(old)))
            }
            _ => None,
        }
    }
}

fn sleb_len(v: i64) -> usize {
    (1..10)
        .find(|n| v >> (7 * n - 1) == 0 || v >> (7 * n - 1) == -1)
        .unwrap_or(10)
}

/// A signed number in at least `len` bytes.
fn sleb(v: i64, len: usize) -> String {
    let len = len.max(sleb_len(v));
    let mut text = ".byte\t".to_owned();
    for i in 0..len {
        let more = if i + 1 < len { 0x80 } else { 0 };
        if i > 0 {
            text.push(',');
        }
        text.push_str(&format!("{:#x}", (v >> (7 * i).min(63)) & 0x7f | more));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statements;

    #[test]
    fn numbers_keep_their_length() {
        assert_eq!(sleb(0, 1), ".byte\t0x0");
        assert_eq!(sleb(0, 2), ".byte\t0x80,0x0");
        assert_eq!(sleb(-8, 2), ".byte\t0xf8,0x7f");
        assert_eq!(sleb(64, 1), ".byte\t0xc0,0x0");
        assert_eq!(
            (sleb_len(63), sleb_len(64), sleb_len(-64), sleb_len(-65)),
            (1, 2, 1, 2)
        );
    }

    #[test]
    fn frame_bases_move_to_r15() {
        let text = "\t.quad\t.LCFI1-.Ltext0\t# Location list begin address (*.LLST0)\n\
                    \t.quad\t.LFE1-.Ltext0\t# Location list end address (*.LLST0)\n\
                    \t.byte\t0x77\t# DW_OP_breg7\n\t.sleb128 32\n\t.byte\t0x77\t# 7\n";
        let mut d = Debug {
            wanted: true,
            ..Debug::default()
        };
        d.label(".LCFI1", -16);
        let out: Vec<_> = statements(text).unwrap().iter().map(|s| d.statement(s)).collect();
        assert_eq!(
            out,
            [
                None,
                None,
                Some(".byte\t0x7f".into()),
                Some(".byte\t0x10".into()),
                None
            ]
        );
    }
}
