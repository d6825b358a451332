//! Call-frame directives for the result: the frame's start by `rsp`, and expressions on `r15` or
//! `rbp` for what moved to the data stack.

use std::fmt::Write as _;

use crate::cfi::{Cfa, Row, Saved};
use crate::regs::{R15, RBP, RBX, RSP, dwarf};
use crate::state::State;

/// How the caller's `r15` is found.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Data {
    /// It is in `r15`.
    Same,
    /// Register plus offset.
    Reg(u8, i64),
    /// The bytes of an expression, as text.
    Expr(String),
}

/// Where a register of the caller is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
enum SavedAt {
    /// On the control stack, at CFA plus offset.
    Control(i64),
    /// In memory at register plus offset.
    Reg(u8, i64),
    /// In memory at what an expression gives.
    Expr(String),
}

/// The row that the output's directives have established so far.
pub(crate) struct Unwind {
    cfa: i64,
    data: Data,
    saved: Vec<(u8, SavedAt)>,
    last: Option<(State, u32)>,
    /// Registers that the function saves on the control stack; gcc's rows go on naming their slots
    /// when they have been popped.
    pushed: u16,
}

impl Unwind {
    /// The row behind `.cfi_startproc`.
    pub(crate) fn new(pushed: u16) -> Unwind {
        Unwind {
            cfa: 8,
            data: Data::Same,
            saved: Vec::new(),
            last: None,
            pushed,
        }
    }

    /// Writes the directives that lead to the row for `state`; `row` is gcc's, number `index` in the function.
    pub(crate) fn sync(&mut self, out: &mut String, state: &State, row: &Row, index: u32) {
        if self.last.as_ref() == Some(&(*state, index)) {
            return;
        }
        self.last = Some((*state, index));
        let cfa = 8 + state.depth();
        if cfa != self.cfa {
            self.cfa = cfa;
            let _ = writeln!(out, "\t.cfi_def_cfa_offset {cfa}");
        }
        let data = data_rule(state, row);
        let mut saved = Vec::with_capacity(self.saved.len());
        for (i, r) in state.ctl.regs().iter().enumerate() {
            if matches!(*r, RBX | RBP | 12 | 13) {
                saved.push((*r, SavedAt::Control(-16 - 8 * i as i64)));
            }
        }
        for (r, how) in &row.saved {
            if state.ctl.regs().contains(r) || *r == RSP || self.pushed >> r & 1 != 0 {
                continue;
            }
            match (how, &data) {
                (Saved::Expr(e), _) => saved.push((*r, SavedAt::Expr(e.clone()))),
                (Saved::At(o), Data::Reg(base, offset)) => saved.push((*r, SavedAt::Reg(*base, offset + o))),
                (Saved::At(o), Data::Same) => saved.push((*r, SavedAt::Reg(R15, *o))),
                (Saved::At(_), Data::Expr(_)) => {}
            }
        }
        if data != self.data {
            match &data {
                Data::Same => out.push_str("\t.cfi_same_value 15\n"),
                Data::Reg(r, o) => escape(out, 0x16, R15, &breg(*r, *o)),
                Data::Expr(e) => escape_text(out, 0x16, R15, e),
            }
            self.data = data;
        }
        if saved == self.saved {
            return;
        }
        for (r, _) in &self.saved {
            if !saved.iter().any(|(s, _)| s == r) {
                let _ = writeln!(out, "\t.cfi_restore {}", dwarf(*r));
            }
        }
        for (r, slot) in &saved {
            if self.saved.iter().any(|(s, old)| s == r && old == slot) {
                continue;
            }
            match slot {
                SavedAt::Control(o) => {
                    let _ = writeln!(out, "\t.cfi_offset {}, {o}", dwarf(*r));
                }
                SavedAt::Reg(base, o) => escape(out, 0x10, *r, &breg(*base, *o)),
                SavedAt::Expr(e) => escape_text(out, 0x10, *r, e),
            }
        }
        self.saved = saved;
    }
}

fn data_rule(state: &State, row: &Row) -> Data {
    match (state.sp, &row.cfa) {
        (Some((_, 0)), _) => Data::Same,
        (_, Cfa::Expr(e)) => Data::Expr(e.clone()),
        (_, Cfa::Reg(r, o)) if *r != RSP => Data::Reg(*r, *o),
        (Some((_, d)), _) => Data::Reg(R15, d),
        (None, _) if state.frame != 0 => Data::Reg(RBP, state.frame),
        (None, _) => Data::Same,
    }
}

/// The bytes of `DW_OP_breg` for a general register.
pub(crate) fn breg(reg: u8, offset: i64) -> Vec<u8> {
    let mut bytes = vec![0x70 + dwarf(reg)];
    sleb(offset, &mut bytes);
    bytes
}

fn sleb(mut v: i64, out: &mut Vec<u8>) {
    loop {
        let byte = (v & 0x7f) as u8;
        v >>= 7;
        let done = v == 0 && byte & 0x40 == 0 || v == -1 && byte & 0x40 != 0;
        out.push(if done { byte } else { byte | 0x80 });
        if done {
            return;
        }
    }
}

fn escape(out: &mut String, op: u8, reg: u8, bytes: &[u8]) {
    let _ = write!(out, "\t.cfi_escape {op:#x},{:#x},{:#x}", dwarf(reg), bytes.len());
    for b in bytes {
        let _ = write!(out, ",{b:#x}");
    }
    out.push('\n');
}

fn escape_text(out: &mut String, op: u8, reg: u8, bytes: &str) {
    let count = bytes.split(',').count();
    let _ = writeln!(out, "\t.cfi_escape {op:#x},{:#x},{count:#x},{bytes}", dwarf(reg));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Ctl;

    #[test]
    fn numbers_are_leb128() {
        assert_eq!(breg(R15, 8), [0x7f, 8]);
        assert_eq!(breg(R15, 64), [0x7f, 0xc0, 0]);
        assert_eq!(breg(RBP, -8), [0x76, 0x78]);
        assert_eq!(breg(R15, 128), [0x7f, 0x80, 1]);
    }

    #[test]
    fn only_differences_are_written() {
        let mut u = Unwind::new(0);
        let mut out = String::new();
        let mut ctl = Ctl::default();
        u.sync(&mut out, &State::entry(), &Row::entry(), 0);
        assert_eq!(out, "");
        ctl.push(RBX);
        let row = Row {
            cfa: Cfa::Reg(RSP, 16),
            saved: vec![(RBX, Saved::At(-16))],
        };
        u.sync(
            &mut out,
            &State {
                sp: Some((16, 0)),
                frame: 0,
                ctl,
            },
            &row,
            1,
        );
        assert_eq!(out, "\t.cfi_def_cfa_offset 16\n\t.cfi_offset 3, -16\n");
        out.clear();
        u.sync(
            &mut out,
            &State {
                sp: Some((32, 32)),
                frame: 0,
                ctl,
            },
            &row,
            1,
        );
        assert_eq!(out, "\t.cfi_escape 0x16,0xf,0x2,0x7f,0x20\n");
        out.clear();
        u.sync(&mut out, &State::entry(), &Row::entry(), 0);
        assert_eq!(
            out,
            "\t.cfi_def_cfa_offset 8\n\t.cfi_same_value 15\n\t.cfi_restore 3\n"
        );
    }
}
