//! Statements.

use super::{Lower, Place, R};
use crate::ast::{Bin, Id, Stmt};
use crate::ir::{Ins, Op, Val, cc};
use crate::lower::memory::Mem;
use std::ops::Range;

impl Lower<'_> {
    pub fn stmt(&mut self, number: u32) -> R<()> {
        let used = self.slots_used;
        let done = self.one_stmt(number);
        self.slots_used = used;
        done
    }

    fn one_stmt(&mut self, number: u32) -> R<()> {
        let unit = self.unit;
        match unit.stmts[number as usize] {
            Stmt::Empty => Ok(()),
            Stmt::Expr(id) => {
                self.at = unit.node(id).at;
                self.effect(id)
            }
            Stmt::Block(from, count) => {
                for &stmt in &unit.lists[from as usize..(from + count) as usize] {
                    self.stmt(stmt)?;
                }
                Ok(())
            }
            Stmt::If(cond, then, other) => {
                self.at = unit.node(cond).at;
                if let (Some(then), Stmt::Empty) = (self.only(then), unit.stmts[other as usize])
                    && self.choose_into(cond, then)?
                {
                    return Ok(());
                }
                if let (Some(label), Stmt::Empty) = (self.jumps_to(then), unit.stmts[other as usize]) {
                    return self.branch(cond, label, true);
                }
                let end = self.new_label();
                if matches!(unit.stmts[other as usize], Stmt::Empty) {
                    self.branch(cond, end, false)?;
                    self.stmt(then)?;
                    return self.put_label(end);
                }
                let no = self.new_label();
                self.branch(cond, no, false)?;
                self.stmt(then)?;
                self.jump(end)?;
                self.put_label(no)?;
                self.stmt(other)?;
                self.put_label(end)
            }
            Stmt::While(cond, body) => self.repeat(Some(cond), None, body, true),
            Stmt::DoWhile(body, cond) => self.repeat(Some(cond), None, body, false),
            Stmt::For(first, cond, step, body) => {
                if self.counted(first, cond, step, body)? {
                    return Ok(());
                }
                self.stmt(first)?;
                let holds = cond.is_some_and(|cond| self.holds_at_first(first, cond));
                self.repeat(cond, step, body, !holds)
            }
            Stmt::Switch(id, body, number) => {
                self.at = unit.node(id).at;
                self.switch(id, body, number)
            }
            Stmt::Label(label, stmt) => {
                self.put_any(self.first_label + label)?;
                self.stmt(stmt)
            }
            Stmt::Goto(label) => self.jump(self.first_label + label),
            Stmt::Break => match self.breaks.last() {
                Some(&label) => self.jump(label),
                None => Ok(()),
            },
            Stmt::Continue => match self.continues.last() {
                Some(&label) => self.jump(label),
                None => Ok(()),
            },
            Stmt::Return(value) => {
                if let Some(id) = value {
                    self.at = unit.node(id).at;
                }
                self.leave(value)
            }
            Stmt::Fill(local, zero, from, count) => self.fill(local, zero, from, count),
        }
    }

    /// Where a statement leads that does nothing else.
    fn jumps_to(&self, stmt: u32) -> Option<u32> {
        match self.unit.stmts[stmt as usize] {
            Stmt::Goto(label) => Some(self.first_label + label),
            Stmt::Break => self.breaks.last().copied(),
            Stmt::Continue => self.continues.last().copied(),
            Stmt::Block(from, 1) => self.jumps_to(self.unit.lists[from as usize]),
            _ => None,
        }
    }

    /// The expression that a statement consists of.
    fn only(&self, stmt: u32) -> Option<Id> {
        match self.unit.stmts[stmt as usize] {
            Stmt::Expr(id) => Some(id),
            Stmt::Block(from, 1) => match self.unit.stmts[self.unit.lists[from as usize] as usize] {
                Stmt::Expr(id) => Some(id),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a loop's condition holds where it begins: `int i = 0; i < 10`.
    fn holds_at_first(&self, first: u32, cond: Id) -> bool {
        self.counts(first, cond)
            .is_some_and(|(_, value, op, bound)| match op {
                Bin::Lt => value < bound,
                Bin::Le => value <= bound,
                Bin::Gt => value > bound,
                Bin::Ge => value >= bound,
                Bin::Ne => value != bound,
                _ => false,
            })
    }

    /// A loop, turned round: the condition stands behind the body, and in front of it once more.
    fn repeat(&mut self, cond: Option<Id>, step: Option<Id>, body: u32, first: bool) -> R<()> {
        let (top, next, end) = (self.new_label(), self.new_label(), self.new_label());
        let floor = self.floor;
        let at = cond.map(|cond| self.unit.node(cond).at);
        self.at = at.unwrap_or(self.at);
        if let (Some(cond), true) = (cond, first) {
            self.branch(cond, end, false)?;
        }
        self.put_top(top)?;
        self.breaks.push(end);
        self.continues.push(next);
        self.stmt(body)?;
        self.breaks.pop();
        self.continues.pop();
        self.put_label(next)?;
        if let Some(step) = step {
            self.at = self.unit.node(step).at;
            self.effect(step)?;
        }
        self.at = at.unwrap_or(self.at);
        match cond {
            Some(cond) => self.branch(cond, top, true)?,
            None => self.jump(top)?,
        }
        self.put_label(end)?;
        self.floor = floor;
        Ok(())
    }

    fn switch(&mut self, id: Id, body: u32, number: u32) -> R<()> {
        let unit = self.unit;
        let switch = &unit.switches[number as usize];
        let ty = unit.ty(id);
        let (w, signed) = (self.width(ty), ty.signed());
        let val = self.value(id)?;
        // A variable may be written in the body, but that is behind all comparisons.
        let mut cases = switch.cases.clone();
        match signed {
            true => cases.sort_unstable(),
            false => cases.sort_unstable_by_key(|c| c.0 as u64),
        }
        let end = self.new_label();
        let other = switch.default.map_or(end, |d| self.first_label + d);
        self.choose(val, w, signed, &cases, other)?;
        self.breaks.push(end);
        self.stmt(body)?;
        self.breaks.pop();
        self.put_label(end)
    }

    fn compare(&mut self, val: Val, value: i64, w: u8, code: u8, label: u32) -> R<()> {
        let value = if w == 4 { i64::from(value as i32) } else { value };
        let ins = Ins {
            a: val,
            w,
            cc: code,
            c: label,
            ..Ins::new(Op::Br)
        };
        if i64::from(value as i32) == value {
            return self.push(Ins { imm: value, ..ins });
        }
        let b = self.integer(value)?;
        self.push(Ins { b, ..ins })
    }

    /// Few cases one after the other, many by halves.
    fn choose(&mut self, val: Val, w: u8, signed: bool, cases: &[(i64, u32)], other: u32) -> R<()> {
        if cases.len() <= 4 {
            for &(value, label) in cases {
                self.compare(val, value, w, cc::E, self.first_label + label)?;
            }
            return self.jump(other);
        }
        let (low, high) = cases.split_at(cases.len() / 2);
        let upper = self.new_label();
        self.compare(val, high[0].0, w, if signed { cc::GE } else { cc::AE }, upper)?;
        self.choose(val, w, signed, low, other)?;
        self.put_label(upper)?;
        self.choose(val, w, signed, high, other)
    }

    fn fill(&mut self, local: u32, zero: bool, from: u32, count: u32) -> R<()> {
        let unit = self.unit;
        let fills = &unit.fills[from as usize..(from + count) as usize];
        let ty = unit.locals[local as usize].ty;
        let offset = match self.places[(local - self.first_local) as usize] {
            Place::Value(place) => {
                for fill in fills {
                    self.at = unit.node(fill.value).at;
                    let val = self.value(fill.value)?;
                    self.set(place, val, ty.is_float())?;
                }
                return Ok(());
            }
            Place::Parts(first, count) => {
                return self.fill_parts(first, count, zero, from..from + fills.len() as u32);
            }
            Place::Frame(offset) => offset,
        };
        if zero {
            self.zero(Mem::frame(offset), unit.types.size(ty))?;
        }
        for fill in fills {
            let to = Mem::frame(offset).plus(fill.offset);
            self.at = unit.node(fill.value).at;
            if let Some(bits) = fill.bits {
                let val = self.value(fill.value)?;
                self.store_bits(to, val, fill.ty, bits)?;
            } else if unit.types.is_scalar(fill.ty) {
                self.store_value(to, fill.value, fill.ty)?;
            } else {
                let from = self.place(fill.value)?;
                self.copy(to, from, unit.types.size(fill.ty))?;
            }
        }
        Ok(())
    }

    fn fill_parts(&mut self, first: u32, count: u32, zero: bool, fills: Range<u32>) -> R<()> {
        for i in first..first + count {
            let val = self.parts[i as usize].1;
            let op = if self.f.floats[val as usize] {
                Op::FConst
            } else {
                Op::MovI
            };
            if zero {
                self.push(Ins {
                    d: val,
                    ..Ins::new(op)
                })?;
            }
        }
        for fill in fills {
            let fill = &self.unit.fills[fill as usize];
            self.at = self.unit.node(fill.value).at;
            let val = self.value(fill.value)?;
            let place = (first..first + count).find(|&i| self.parts[i as usize].0 == fill.offset);
            if let Some(place) = place {
                self.set(self.parts[place as usize].1, val, fill.ty.is_float())?;
            }
        }
        Ok(())
    }
}
