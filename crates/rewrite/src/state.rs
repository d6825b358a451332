//! Where a function stands at one of its instructions.
//!
//! gcc's own layout has one stack. Ours has two: return address and saved registers on the control
//! stack (`rsp`), everything else on the data stack (`r15`), which mirrors gcc's frame once there
//! are locals: the old slot `CFA+k` is the new slot `DC+k`, where `DC` is `r15` at entry.

use crate::cfi::{Cfa, Row};
use crate::regs::RSP;

/// Most registers that one function can have on the control stack at a time.
const MAX_CTL: usize = 12;

/// The registers on the control stack, in the order of their pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Ctl {
    regs: [u8; MAX_CTL],
    len: u8,
}

impl Ctl {
    pub(crate) fn len(self) -> i64 {
        i64::from(self.len)
    }

    pub(crate) fn regs(&self) -> &[u8] {
        &self.regs[..usize::from(self.len)]
    }

    pub(crate) fn top(&self) -> Option<u8> {
        self.regs().last().copied()
    }

    pub(crate) fn push(&mut self, reg: u8) -> bool {
        let fits = usize::from(self.len) < MAX_CTL;
        if fits {
            self.regs[usize::from(self.len)] = reg;
            self.len += 1;
        }
        fits
    }

    pub(crate) fn pop(&mut self) {
        if self.len > 0 {
            self.len -= 1;
            self.regs[usize::from(self.len)] = 0;
        }
    }
}

/// How a function's stack is taken apart. Tried in this order until one works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The function has no locals: `r15` is never touched.
    NoData,
    /// `r15` moves when the first local appears.
    Lazy,
    /// `r15` mirrors `rsp` from the first push on.
    Mirror,
    /// As `Mirror`, and saved registers live on the data stack; only the return address stays on
    /// the control stack.
    AllData,
}

impl Mode {
    /// The distance of `r15` from its value at entry, where gcc's `rsp` is `s` below the frame's start.
    pub(crate) fn distance(self, s: i64, ctl: Ctl) -> i64 {
        match self {
            Mode::NoData => 0,
            Mode::Lazy if s == 8 + 8 * ctl.len() => 0,
            Mode::Mirror | Mode::AllData if s == 8 => 0,
            _ => s,
        }
    }
}

/// The stacks in front of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Bytes from gcc's `rsp` to the frame's start and from `r15` to its value at entry.
    /// `None`: not known, and `r15` is where gcc's `rsp` would be.
    pub sp: Option<(i64, i64)>,
    /// `rbp` is this much below the frame's start; 0: it is no frame pointer.
    pub frame: i64,
    pub ctl: Ctl,
}

impl State {
    pub(crate) fn entry() -> State {
        State {
            sp: Some((8, 0)),
            frame: 0,
            ctl: Ctl::default(),
        }
    }

    /// What to add to a displacement from gcc's `rsp` to make it one from `r15`.
    pub(crate) fn shift(&self) -> i64 {
        match self.sp {
            Some((s, d)) => d - s,
            None => 0,
        }
    }

    /// Whether `r15` is where gcc's `rsp` would be.
    pub(crate) fn mirrored(&self) -> bool {
        self.shift() == 0
    }

    /// The bytes on the control stack since entry.
    pub(crate) fn depth(&self) -> i64 {
        8 * self.ctl.len()
    }

    /// What holds when control comes with `self` or with `other`; `None` when no code can serve both.
    pub(crate) fn join(&self, other: &State, row: &Row) -> Option<State> {
        if self.ctl != other.ctl {
            return None;
        }
        let frame = if self.frame == other.frame { self.frame } else { 0 };
        let sp = if self.sp == other.sp {
            self.sp
        } else if self.mirrored() && other.mirrored() && !matches!(row.cfa, Cfa::Reg(RSP, _)) {
            None
        } else {
            return None;
        };
        Some(State {
            sp,
            frame,
            ctl: self.ctl,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regs::{RBP, RBX};

    #[test]
    fn distances() {
        let mut ctl = Ctl::default();
        assert_eq!(Mode::Lazy.distance(8, ctl), 0);
        assert_eq!(Mode::Lazy.distance(16, ctl), 16);
        ctl.push(RBX);
        assert_eq!(Mode::Lazy.distance(16, ctl), 0);
        assert_eq!(Mode::Mirror.distance(16, ctl), 16);
        assert_eq!(Mode::NoData.distance(40, ctl), 0);
    }

    #[test]
    fn joins() {
        let by_rbp = Row {
            cfa: Cfa::Reg(RBP, 16),
            saved: Vec::new(),
        };
        let a = State {
            sp: Some((32, 32)),
            frame: 16,
            ctl: Ctl::default(),
        };
        let b = State {
            sp: Some((48, 48)),
            ..a
        };
        assert_eq!(a.join(&b, &by_rbp), Some(State { sp: None, ..a }));
        assert_eq!(a.join(&b, &Row::entry()), None);
        let c = State {
            sp: Some((48, 0)),
            ..a
        };
        assert_eq!(a.join(&c, &by_rbp), None);
        let mut ctl = Ctl::default();
        ctl.push(RBX);
        assert_eq!(a.join(&State { ctl, ..a }, &by_rbp), None);
    }
}
