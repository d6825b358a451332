//! Loops that count from one constant to another, and those of them that only write zeroes: these write eight bytes at
//! once.

use super::{Lower, Place, R};
use crate::ast::{Bin, Expr, Id, Stmt};
use crate::ir::{Ins, NONE, Op, Val, cc};

/// Bytes of one store.
const WIDE: u8 = 8;
/// Fewest rounds of a loop that is changed, most arrays in it, and most stores of each in one round.
const ROUNDS: i64 = 16;
const ARRAYS: usize = 4;
const STORES: i64 = 4;

/// A loop that counts by one.
struct Count {
    local: u32,
    /// The variable, and its bytes.
    index: Val,
    w: u8,
    from: i64,
    rounds: i64,
}

impl Lower<'_> {
    /// The variable of a loop, what it is at first, and what it is compared with: `i = 0; i < 10`.
    pub fn counts(&self, first: u32, cond: Id) -> Option<(u32, i64, Bin, i64)> {
        let unit = self.unit;
        let (local, value) = match unit.stmts[first as usize] {
            Stmt::Fill(local, _, from, 1) => (local, unit.fills[from as usize].value),
            Stmt::Expr(id) => match self.expr_of(id) {
                Expr::Assign(place, value) => match self.expr_of(place) {
                    Expr::Local(local) => (local, value),
                    _ => return None,
                },
                _ => return None,
            },
            _ => return None,
        };
        let Expr::Binary(op, a, b) = self.expr_of(cond) else {
            return None;
        };
        let ty = unit.ty(a);
        if self.expr_of(a) != Expr::Local(local) || !ty.is_int() || unit.types.size(ty) < 4 {
            return None;
        }
        // Up to there all types have the same order.
        let small = |id| unit.int(id).filter(|n| (0..1 << 31).contains(n));
        Some((local, small(value)?, op, small(b)?))
    }

    /// Loops whose rounds are known: how often, and with which variable.
    fn rounds(&self, first: u32, cond: Option<Id>, step: Option<Id>) -> Option<Count> {
        let (cond, step) = (cond?, step?);
        let (local, from, op, bound) = self.counts(first, cond)?;
        let rounds = match op {
            Bin::Lt | Bin::Ne => bound - from,
            Bin::Le => bound - from + 1,
            _ => return None,
        };
        let Place::Value(index) = self.places[(local - self.first_local) as usize] else {
            return None;
        };
        (rounds >= ROUNDS && self.is_next(step, local)).then_some(Count {
            local,
            index,
            w: self.width(self.unit.locals[local as usize].ty),
            from,
            rounds,
        })
    }

    /// A loop that is written otherwise than it stands in the text, if it is one of those.
    pub fn counted(&mut self, first: u32, cond: Option<Id>, step: Option<Id>, body: u32) -> R<bool> {
        let Some(count) = self.rounds(first, cond, step) else {
            return Ok(false);
        };
        self.clear(first, &count, body)
    }

    /// `for (i = 0; i < 4096; i++) a[i] = 0;`
    fn clear(&mut self, first: u32, count: &Count, body: u32) -> R<bool> {
        let (mut list, mut size) = (Vec::new(), 0);
        if !self.zeroes(body, count.local, &mut list, &mut size) {
            return Ok(false);
        }
        let each = i64::from(WIDE / size);
        let fits = |s: &i64| count.rounds % (s * each) == 0;
        let Some(stores) = [STORES, 2, 1].into_iter().find(fits) else {
            return Ok(false);
        };
        self.stmt(first)?;
        let (top, floor) = (self.new_label(), self.floor);
        self.put_top(top)?;
        for place in list {
            self.at = self.unit.node(place).at;
            let mem = self.place(place)?;
            for k in 0..stores {
                let ins = self.access(Op::StoreI, mem.plus(8 * k as u32), WIDE);
                self.push(Ins { c: 0, ..ins })?;
            }
        }
        self.memory_changed();
        self.next_round(count, stores * each, top)?;
        self.floor = floor;
        Ok(true)
    }

    fn next_round(&mut self, count: &Count, by: i64, top: u32) -> R<()> {
        let &Count { index, w, .. } = count;
        self.push(Ins {
            d: index,
            a: index,
            imm: by,
            w,
            ..Ins::new(Op::Add)
        })?;
        // It may be 2³¹, which is no constant of a comparison with sign in 32 bits, but has its bits.
        let end = count.from + count.rounds;
        let imm = if w == 4 { i64::from(end as i32) } else { end };
        let short = i64::from(imm as i32) == imm;
        let b = if short { NONE } else { self.integer(imm)? };
        self.push(Ins {
            a: index,
            b,
            w,
            cc: cc::NE,
            imm: if short { imm } else { 0 },
            c: top,
            ..Ins::new(Op::Br)
        })
    }

    /// `i++`, or `i += 1`.
    fn is_next(&self, step: Id, local: u32) -> bool {
        let Expr::Update(place, value, _) = self.expr_of(step) else {
            return false;
        };
        let Expr::Binary(Bin::Add, old, one) = self.expr_of(value) else {
            return false;
        };
        self.expr_of(place) == Expr::Local(local)
            && self.expr_of(old) == Expr::Old
            && self.unit.int(one) == Some(1)
    }

    /// Whether a statement only writes zeroes to `array[i]`: which places, and the size of all of them.
    fn zeroes(&self, stmt: u32, local: u32, list: &mut Vec<Id>, size: &mut u8) -> bool {
        let unit = self.unit;
        match unit.stmts[stmt as usize] {
            Stmt::Expr(id) => self.zero_expr(id, local, list, size),
            Stmt::Block(from, count) => {
                count > 0
                    && count as usize <= ARRAYS
                    && unit.lists[from as usize..(from + count) as usize]
                        .iter()
                        .all(|&s| {
                            matches!(unit.stmts[s as usize], Stmt::Expr(_))
                                && self.zeroes(s, local, list, size)
                        })
            }
            _ => false,
        }
    }

    fn zero_expr(&self, id: Id, local: u32, list: &mut Vec<Id>, size: &mut u8) -> bool {
        let unit = self.unit;
        match self.expr_of(id) {
            Expr::Comma(a, b) => self.zero_expr(a, local, list, size) && self.zero_expr(b, local, list, size),
            Expr::Assign(place, value) => {
                let ty = unit.ty(place);
                let bytes = unit.types.size(ty);
                let fits = unit.int(value) == Some(0)
                    && (ty.is_int() || ty.is_float())
                    && !ty.is_volatile()
                    && matches!(bytes, 1 | 2 | 4)
                    && (list.is_empty() || u64::from(*size) == bytes)
                    && list.len() < ARRAYS;
                if !fits || !self.is_element(place, local, bytes as u32) {
                    return false;
                }
                *size = bytes as u8;
                list.push(place);
                true
            }
            _ => false,
        }
    }

    /// `array[i]`, or `p[i]` of a pointer that no store can change.
    fn is_element(&self, place: Id, local: u32, size: u32) -> bool {
        let unit = self.unit;
        let Expr::Deref(pointer) = self.expr_of(place) else {
            return false;
        };
        let Expr::PtrAdd(base, mut index, stride) = self.expr_of(pointer) else {
            return false;
        };
        while let Expr::Convert(inner) = self.expr_of(index) {
            let ty = unit.ty(index);
            if !ty.is_int() || unit.types.size(ty) < 4 {
                return false;
            }
            index = inner;
        }
        if stride != size || self.expr_of(index) != Expr::Local(local) {
            return false;
        }
        match self.expr_of(base) {
            Expr::Addr(object) => matches!(self.expr_of(object), Expr::Local(_) | Expr::Global(_)),
            Expr::Local(of) => {
                of != local && matches!(self.places[(of - self.first_local) as usize], Place::Value(_))
            }
            _ => false,
        }
    }
}
