//! Conversions between scalar types.

use super::{Lower, R};
use crate::ast::Id;
use crate::ir::{Ins, Op, Val, cc};
use crate::types::Ty;

impl Lower<'_> {
    pub fn extend(&mut self, a: Val, from: u8, signed: bool, to: u8) -> R<Val> {
        let ins = Ins {
            a,
            w: from,
            sc: to,
            cc: u8::from(signed),
            ..Ins::new(Op::Ext)
        };
        self.pure(ins, false)
    }

    pub fn converted(&mut self, id: Id, to: Ty) -> R<Val> {
        let from = self.unit.ty(id).plain();
        let to = to.plain();
        if to.is_void() {
            self.effect(id)?;
            return self.integer(0);
        }
        if to == Ty::BOOL && from != Ty::BOOL {
            return match self.comparison(id)? {
                Some(ins) => self.set_of(ins),
                None => self.value(id),
            };
        }
        if from.is_long_double() {
            return self.long_to(id, to);
        }
        let val = self.value(id)?;
        match (from.is_float(), to.is_float()) {
            (false, false) => self.integers(val, from, to),
            (true, true) if from == to => Ok(val),
            (true, true) => {
                let ins = Ins {
                    a: val,
                    w: self.width(to),
                    ..Ins::new(Op::FCvt)
                };
                self.pure(ins, true)
            }
            (false, true) => self.number(val, from, to),
            (true, false) => self.whole(val, from, to),
        }
    }

    pub fn integers(&mut self, val: Val, from: Ty, to: Ty) -> R<Val> {
        let (a, b) = (self.unit.types.size(from), self.unit.types.size(to));
        if b == 8 && a < 8 {
            // Narrow ones are extended to 32 bits already; those without sign have zeroes above.
            return self.extend(val, 4, from.signed() || a < 4, 8);
        }
        if b < 4
            && (b < a
                || (b == a && from.signed() != to.signed())
                || a >= 4
                || (from.signed() && !to.signed()))
        {
            return self.extend(val, b as u8, to.signed(), 4);
        }
        Ok(val)
    }

    fn signed_number(&mut self, val: Val, w: u8, to: Ty) -> R<Val> {
        let ins = Ins {
            a: val,
            w,
            sc: self.width(to),
            ..Ins::new(Op::FromInt)
        };
        self.pure(ins, true)
    }

    fn number(&mut self, val: Val, from: Ty, to: Ty) -> R<Val> {
        match (self.unit.types.size(from), from.is_int() && from.signed()) {
            (8, true) => self.signed_number(val, 8, to),
            (4, false) => {
                let wide = self.extend(val, 4, false, 8)?;
                self.signed_number(wide, 8, to)
            }
            (8, false) => self.unsigned_number(val, to),
            _ => self.signed_number(val, 4, to),
        }
    }

    /// 64 bits without sign: large ones by their half, with the last bit kept so that they are rounded right.
    fn unsigned_number(&mut self, val: Val, to: Ty) -> R<Val> {
        let result = self.variable(true);
        let (large, end) = (self.new_label(), self.new_label());
        self.push(Ins {
            a: val,
            cc: cc::L,
            c: large,
            ..Ins::new(Op::Br)
        })?;
        let small = self.signed_number(val, 8, to)?;
        self.set(result, small, true)?;
        self.jump(end)?;
        self.put_label(large)?;
        let half = self.shift(Op::Shr, val, 1, 8)?;
        let last = self.with_constant(Op::And, val, 1, 8)?;
        let both = Ins {
            a: half,
            b: last,
            ..Ins::new(Op::Or)
        };
        let both = self.pure(both, false)?;
        let number = self.signed_number(both, 8, to)?;
        let twice = Ins {
            a: number,
            b: number,
            w: self.width(to),
            ..Ins::new(Op::FAdd)
        };
        let twice = self.pure(twice, true)?;
        self.set(result, twice, true)?;
        self.put_label(end)?;
        Ok(result)
    }

    fn whole(&mut self, val: Val, from: Ty, to: Ty) -> R<Val> {
        let size = self.unit.types.size(to);
        let signed = to.is_int() && to.signed();
        if size == 8 && !signed {
            return self.unsigned_whole(val, from);
        }
        // Through 64 bits where 32 with sign do not hold all values.
        let wide = size == 4 && !signed;
        let ins = Ins {
            a: val,
            w: if size == 8 || wide { 8 } else { 4 },
            sc: self.width(from),
            ..Ins::new(Op::ToInt)
        };
        let val = self.pure(ins, false)?;
        match size {
            1 | 2 => self.extend(val, size as u8, signed, 4),
            _ => Ok(val),
        }
    }

    fn unsigned_whole(&mut self, val: Val, from: Ty) -> R<Val> {
        let result = self.variable(false);
        let (large, end) = (self.new_label(), self.new_label());
        let limit = self.float_constant(9_223_372_036_854_775_808.0, from)?;
        let w = self.width(from);
        self.push(Ins {
            a: val,
            b: limit,
            w,
            cc: cc::AE,
            c: large,
            ..Ins::new(Op::FBr)
        })?;
        let convert = Ins {
            a: val,
            w: 8,
            sc: w,
            ..Ins::new(Op::ToInt)
        };
        let small = self.pure(convert, false)?;
        self.set(result, small, false)?;
        self.jump(end)?;
        self.put_label(large)?;
        let less = Ins {
            a: val,
            b: limit,
            w,
            ..Ins::new(Op::FSub)
        };
        let less = self.pure(less, true)?;
        let low = self.pure(Ins { a: less, ..convert }, false)?;
        let top = self.integer(i64::MIN)?;
        let all = Ins {
            a: low,
            b: top,
            ..Ins::new(Op::Xor)
        };
        let all = self.pure(all, false)?;
        self.set(result, all, false)?;
        self.put_label(end)?;
        Ok(result)
    }
}
