//! Conditions: comparisons and branches.

use super::{Lower, R};
use crate::ast::{Bin, Expr, Id};
use crate::ir::{Ins, Op, cc};
use crate::types::Ty;

/// Most parts of expressions that are computed although perhaps nobody wants them.
const CHEAP: u32 = 8;

impl Lower<'_> {
    /// Goes to a label if the condition is (or is not) 0, and on otherwise.
    pub fn branch(&mut self, id: Id, label: u32, when: bool) -> R<()> {
        match self.expr_of(id) {
            Expr::Int(value) => {
                return match (value != 0) == when {
                    true => self.jump(label),
                    false => Ok(()),
                };
            }
            Expr::LogNot(a) => return self.branch(a, label, !when),
            Expr::And(a, b) | Expr::Or(a, b) if self.in_range(id, a, b, label, when)? => return Ok(()),
            Expr::And(a, b) if !when => {
                self.branch(a, label, false)?;
                return self.branch(b, label, false);
            }
            Expr::Or(a, b) if when => {
                self.branch(a, label, true)?;
                return self.branch(b, label, true);
            }
            Expr::And(a, b) | Expr::Or(a, b) => {
                let past = self.new_label();
                self.branch(a, past, !when)?;
                self.branch(b, label, when)?;
                return self.put_label(past);
            }
            Expr::Comma(a, b) => {
                self.effect(a)?;
                return self.branch(b, label, when);
            }
            _ => {}
        }
        let Some(ins) = self.comparison(id)? else {
            return Ok(());
        };
        let cc = if when { ins.cc } else { ins.cc ^ 1 };
        self.push(Ins { c: label, cc, ..ins })
    }

    /// `x >= low && x <= high`, or the opposite, of a variable: one comparison without sign.
    fn in_range(&mut self, id: Id, a: Id, b: Id, label: u32, when: bool) -> R<bool> {
        let unit = self.unit;
        let inside = matches!(self.expr_of(id), Expr::And(..));
        let (Expr::Binary(op, x, low), Expr::Binary(other, again, high)) = (self.expr_of(a), self.expr_of(b))
        else {
            return Ok(false);
        };
        let (Some(low), Some(high)) = (unit.int(low), unit.int(high)) else {
            return Ok(false);
        };
        let ty = unit.ty(x);
        let of = |id| match self.expr_of(id) {
            Expr::Convert(inner) if unit.ty(inner).is_int() => inner,
            _ => id,
        };
        let first = match self.expr_of(of(x)) {
            Expr::Assign(place, _) => place,
            _ => of(x),
        };
        let (first, second) = (self.variable_of(first), self.variable_of(of(again)));
        if first.is_none() || first != second || unit.ty(again) != ty || !ty.is_int() || !ty.signed() {
            return Ok(false);
        }
        let (low, high) = match (op, other, inside) {
            (Bin::Ge, Bin::Le, true) | (Bin::Lt, Bin::Gt, false) => (low, high),
            (Bin::Ge, Bin::Lt, true) | (Bin::Lt, Bin::Ge, false) => (low, high.wrapping_sub(1)),
            _ => return Ok(false),
        };
        let width = high.checked_sub(low).filter(|w| (0..1 << 31).contains(w));
        let Some(width) = width.filter(|_| i32::try_from(low).is_ok()) else {
            return Ok(false);
        };
        let w = self.width(ty);
        let x = self.value(x)?;
        let above = self.add_constant(x, low.wrapping_neg(), w)?;
        self.push(Ins {
            a: above,
            w,
            cc: if inside == when { cc::BE } else { cc::A },
            imm: width,
            c: label,
            ..Ins::new(Op::Br)
        })?;
        Ok(true)
    }

    /// Whether an expression is so little that it may be computed although nobody wants it: no effects, no memory.
    fn is_cheap(&self, id: Id, left: &mut u32) -> bool {
        if *left == 0 {
            return false;
        }
        *left -= 1;
        match self.expr_of(id) {
            Expr::Int(_) | Expr::Old => true,
            Expr::Local(_) | Expr::Member(..) => self.variable_of(id).is_some(),
            Expr::Cond(cond, a, b) => {
                let Expr::Binary(_, x, y) = self.expr_of(cond) else {
                    return false;
                };
                [x, y, a, b].into_iter().all(|id| self.is_cheap(id, left)) && self.can_choose(cond, &[a, b])
            }
            Expr::Convert(a) => {
                !self.unit.ty(id).is_float() && !self.unit.ty(a).is_float() && self.is_cheap(a, left)
            }
            Expr::Neg(a) | Expr::Not(a) => self.is_cheap(a, left),
            Expr::Binary(Bin::Add | Bin::Sub | Bin::And | Bin::Or | Bin::Xor, a, b) => {
                self.is_cheap(a, left) && self.is_cheap(b, left)
            }
            Expr::Binary(Bin::Shl | Bin::Shr, a, b) => self.unit.int(b).is_some() && self.is_cheap(a, left),
            _ => false,
        }
    }

    /// Whether a value takes a conditional move, and no branch.
    pub fn can_choose(&self, cond: Id, values: &[Id]) -> bool {
        let Expr::Binary(Bin::Lt | Bin::Gt | Bin::Le | Bin::Ge | Bin::Eq | Bin::Ne | Bin::And, a, _) =
            self.expr_of(cond)
        else {
            return false;
        };
        // What calls is dear anyway, and may write what is chosen.
        if self.unit.ty(a).is_float() || self.unit.node(cond).calls {
            return false;
        }
        let mut left = CHEAP;
        values.iter().all(|&id| {
            let ty = self.unit.ty(id);
            !ty.is_float() && self.unit.types.is_scalar(ty) && self.is_cheap(id, &mut left)
        })
    }

    /// The branch, without its label, that is taken if the condition holds. `None` for `&&`, `||` and `!`.
    pub fn comparison(&mut self, id: Id) -> R<Option<Ins>> {
        let expr = self.expr_of(id);
        if matches!(expr, Expr::And(..) | Expr::Or(..) | Expr::LogNot(_)) {
            return Ok(None);
        }
        let Expr::Binary(op @ (Bin::Lt | Bin::Gt | Bin::Le | Bin::Ge | Bin::Eq | Bin::Ne), a, b) = expr
        else {
            return self.not_zero(id).map(Some);
        };
        let ty = self.unit.ty(a);
        if ty.is_long_double() {
            return self.long_comparison(op, a, b).map(Some);
        }
        if ty.is_float() {
            return self.float_comparison(op, a, b, ty).map(Some);
        }
        let signed = ty.is_int() && ty.signed();
        let code = match (op, signed) {
            (Bin::Lt, true) => cc::L,
            (Bin::Gt, true) => cc::G,
            (Bin::Le, true) => cc::LE,
            (Bin::Ge, true) => cc::GE,
            (Bin::Lt, false) => cc::B,
            (Bin::Gt, false) => cc::A,
            (Bin::Le, false) => cc::BE,
            (Bin::Ge, false) => cc::AE,
            (Bin::Eq, _) => cc::E,
            _ => cc::NE,
        };
        let (a, b, code) = match self.unit.int(a) {
            Some(_) => (b, a, cc::swapped(code)),
            None => (a, b, code),
        };
        let w = self.width(ty);
        let left = self.value(a)?;
        let ins = Ins {
            a: left,
            w,
            cc: code,
            ..Ins::new(Op::Br)
        };
        if let Some(value) = self.unit.int(b) {
            let value = if w == 4 { i64::from(value as i32) } else { value };
            if i64::from(value as i32) == value {
                return Ok(Some(Ins { imm: value, ..ins }));
            }
        }
        let right = self.value(b)?;
        Ok(Some(Ins { b: right, ..ins }))
    }

    /// Whether a scalar is something else than 0.
    fn not_zero(&mut self, id: Id) -> R<Ins> {
        let ty = self.unit.ty(id);
        // What only extends, or makes 0 or 1 of it, says the same.
        if let Expr::Convert(a) = self.expr_of(id) {
            let from = self.unit.ty(a);
            let wider =
                from.is_int() && ty.is_int() && self.unit.types.size(ty) >= self.unit.types.size(from);
            if wider && ty != Ty::BOOL {
                return match self.comparison(a)? {
                    Some(ins) => Ok(ins),
                    None => self.plain_not_zero(a),
                };
            }
        }
        self.plain_not_zero(id)
    }

    fn plain_not_zero(&mut self, id: Id) -> R<Ins> {
        let ty = self.unit.ty(id);
        if ty.is_long_double() {
            return self.long_not_zero(id);
        }
        let a = self.value(id)?;
        let w = self.width(ty);
        if ty.is_float() {
            let zero = self.float_constant(0.0, ty)?;
            return Ok(Ins {
                a,
                b: zero,
                w,
                cc: cc::FNE,
                ..Ins::new(Op::FBr)
            });
        }
        Ok(Ins {
            a,
            w,
            cc: cc::NE,
            ..Ins::new(Op::Br)
        })
    }

    fn float_comparison(&mut self, op: Bin, a: Id, b: Id, ty: Ty) -> R<Ins> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        let (a, b, cc) = float_order(op, x, y);
        Ok(Ins {
            a,
            b,
            cc,
            w: self.width(ty),
            ..Ins::new(Op::FBr)
        })
    }
}

/// By the flags of a comparison that also knows "not comparable": above is right for that, below is not. What is compared, with what, and
/// the condition.
pub(super) fn float_order<T>(op: Bin, x: T, y: T) -> (T, T, u8) {
    match op {
        Bin::Lt => (y, x, cc::A),
        Bin::Le => (y, x, cc::AE),
        Bin::Gt => (x, y, cc::A),
        Bin::Ge => (x, y, cc::AE),
        Bin::Eq => (x, y, cc::FEQ),
        _ => (x, y, cc::FNE),
    }
}
