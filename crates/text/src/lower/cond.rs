//! Conditions: comparisons and branches.

use super::{Lower, R};
use crate::ast::{Bin, Expr, Id};
use crate::ir::{Ins, Op, cc};
use crate::types::Ty;

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

    /// By the flags of a comparison that also knows "not comparable": above is right for that, below is not.
    fn float_comparison(&mut self, op: Bin, a: Id, b: Id, ty: Ty) -> R<Ins> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        let (a, b, cc) = match op {
            Bin::Lt => (y, x, cc::A),
            Bin::Le => (y, x, cc::AE),
            Bin::Gt => (x, y, cc::A),
            Bin::Ge => (x, y, cc::AE),
            Bin::Eq => (x, y, cc::FEQ),
            _ => (x, y, cc::FNE),
        };
        Ok(Ins {
            a,
            b,
            cc,
            w: self.width(ty),
            ..Ins::new(Op::FBr)
        })
    }
}
