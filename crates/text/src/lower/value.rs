//! The values of expressions.

use super::{Lower, R};
use crate::ast::{Bin, Expr, Id};
use crate::ir::{Ins, NONE, Op, Val, cc};
use crate::types::Ty;

impl Lower<'_> {
    pub fn integer(&mut self, value: i64) -> R<Val> {
        let ins = Ins {
            imm: value,
            ..Ins::new(Op::MovI)
        };
        self.pure(ins, false)
    }

    pub fn float_constant(&mut self, value: f64, ty: Ty) -> R<Val> {
        let w = self.width(ty);
        let imm = if w == 4 {
            i64::from((value as f32).to_bits())
        } else {
            value.to_bits() as i64
        };
        let ins = Ins {
            w,
            imm,
            ..Ins::new(Op::FConst)
        };
        self.pure(ins, true)
    }

    /// An operator with a constant on its right.
    pub fn with_constant(&mut self, op: Op, a: Val, value: i64, w: u8) -> R<Val> {
        let ins = Ins { a, w, ..Ins::new(op) };
        if i64::from(value as i32) == value {
            return self.pure(Ins { imm: value, ..ins }, false);
        }
        let b = self.integer(value)?;
        self.pure(Ins { b, ..ins }, false)
    }

    pub fn add_constant(&mut self, a: Val, value: i64, w: u8) -> R<Val> {
        self.with_constant(Op::Add, a, value, w)
    }

    pub fn multiply(&mut self, a: Val, by: i64, w: u8) -> R<Val> {
        match by {
            1 => Ok(a),
            2.. if by & (by - 1) == 0 => self.shift(Op::Shl, a, by.trailing_zeros() as u8, w),
            _ => self.with_constant(Op::Mul, a, by, w),
        }
    }

    /// An expression whose value nobody wants.
    pub fn effect(&mut self, id: Id) -> R<()> {
        match self.expr_of(id) {
            // What has parts of other types, or may have two ends, is looked into.
            Expr::Comma(..) | Expr::Before(..) | Expr::Cond(..) | Expr::Convert(_) => {
                self.effect_of_parts(id)
            }
            _ if self.unit.ty(id).is_long_double() => self.long(id).map(|_| ()),
            Expr::Update(place, new, _) => self.update(place, new, false).map(|_| ()),
            Expr::Assign(place, value) if self.unit.types.is_record(self.unit.ty(place)) => {
                let _ = value;
                self.place(id).map(|_| ())
            }
            Expr::Assign(place, value) => self.assign(place, value, false).map(|_| ()),
            Expr::Call(callee, from, count) => {
                let ty = self.unit.ty(id);
                let room = match self.unit.types.is_record(ty) {
                    true => Some(self.record_room(ty)?),
                    false => None,
                };
                self.call(callee, from, count, ty, room).map(|_| ())
            }
            Expr::And(..) | Expr::Or(..) => {
                let end = self.new_label();
                self.branch(id, end, false)?;
                self.put_label(end)
            }
            Expr::Int(_) | Expr::Float(_) | Expr::Local(_) | Expr::Func(_) | Expr::Old | Expr::Given => {
                Ok(())
            }
            _ if self.unit.types.is_scalar(self.unit.ty(id)) => self.value(id).map(|_| ()),
            _ if self.unit.ty(id).is_void() => Ok(()),
            // A record, or an array: its parts may have effects.
            _ => self.place(id).map(|_| ()),
        }
    }

    fn effect_of_parts(&mut self, id: Id) -> R<()> {
        match self.expr_of(id) {
            Expr::Comma(a, b) => {
                self.effect(a)?;
                self.effect(b)
            }
            Expr::Before(first, update) => {
                self.give_first(first)?;
                let done = self.effect(update);
                self.forget_first(first);
                done
            }
            Expr::Convert(a) => self.effect(a),
            Expr::Cond(cond, a, b) => {
                let (other, end) = (self.new_label(), self.new_label());
                self.branch(cond, other, false)?;
                self.effect(a)?;
                self.jump(end)?;
                self.put_label(other)?;
                self.effect(b)?;
                self.put_label(end)
            }
            _ => Ok(()),
        }
    }

    /// The value of a scalar expression.
    pub fn value(&mut self, id: Id) -> R<Val> {
        let ty = self.unit.ty(id);
        match self.expr_of(id) {
            Expr::Int(value) => self.integer(value),
            Expr::Float(value) => self.float_constant(value, ty),
            // It is in memory: `long` has it.
            Expr::Long(_) => Ok(NONE),
            Expr::Local(_) | Expr::Member(_, _, None) => match self.variable_of(id) {
                Some(val) => Ok(val),
                None => self.read(id),
            },
            Expr::Member(_, _, Some(bits)) => {
                let mem = self.place(id)?;
                self.load_bits(mem, ty, bits)
            }
            Expr::Global(_) | Expr::Deref(_) | Expr::Literal(..) => self.read(id),
            Expr::Addr(place) => self.address(place),
            Expr::Func(_) => self.address(id),
            Expr::Neg(a) if ty.is_float() => {
                // By its sign bit, so that zeroes and what is no number change too.
                let sign = if self.width(ty) == 4 { 1 << 31 } else { i64::MIN };
                let val = self.value(a)?;
                let bits = Ins {
                    a: val,
                    w: self.width(ty),
                    imm: sign,
                    ..Ins::new(Op::FFlip)
                };
                self.pure(bits, true)
            }
            Expr::Neg(a) | Expr::Not(a) => {
                let op = if matches!(self.expr_of(id), Expr::Neg(_)) {
                    Op::Neg
                } else {
                    Op::Not
                };
                let val = self.value(a)?;
                let ins = Ins {
                    a: val,
                    w: self.width(ty),
                    ..Ins::new(op)
                };
                self.pure(ins, false)
            }
            Expr::LogNot(_) | Expr::Binary(Bin::Lt | Bin::Gt | Bin::Le | Bin::Ge | Bin::Eq | Bin::Ne, ..) => {
                self.truth(id)
            }
            Expr::Binary(op, a, b) if ty.is_float() => {
                let op = match op {
                    Bin::Add => Op::FAdd,
                    Bin::Sub => Op::FSub,
                    Bin::Mul => Op::FMul,
                    _ => Op::FDiv,
                };
                let (a, b) = (self.value(a)?, self.value(b)?);
                let ins = Ins {
                    a,
                    b,
                    w: self.width(ty),
                    ..Ins::new(op)
                };
                self.pure(ins, true)
            }
            Expr::Binary(op, a, b) => self.arithmetic(op, a, b, ty),
            Expr::PtrAdd(base, index, stride) => self.pointer_sum(base, index, stride),
            Expr::PtrDiff(a, b, stride) => self.pointer_difference(a, b, stride),
            Expr::And(..) | Expr::Or(..) => {
                let result = self.variable(false);
                let (no, end) = (self.new_label(), self.new_label());
                self.branch(id, no, false)?;
                let one = Ins {
                    d: result,
                    imm: 1,
                    ..Ins::new(Op::MovI)
                };
                self.push(one)?;
                self.jump(end)?;
                self.put_label(no)?;
                self.push(Ins { imm: 0, ..one })?;
                self.put_label(end)?;
                Ok(result)
            }
            Expr::Cond(cond, a, b) if self.can_choose(cond, &[a, b]) => {
                let result = self.variable(false);
                let Some(ins) = self.comparison(cond)? else {
                    return Ok(NONE);
                };
                let (yes, no) = (self.value(a)?, self.value(b)?);
                self.copy_to(result, no)?;
                self.push(Ins {
                    op: Op::Choose,
                    d: result,
                    c: yes,
                    ..ins
                })?;
                Ok(result)
            }
            Expr::Cond(cond, a, b) => {
                let float = ty.is_float();
                let result = self.variable(float);
                let (other, end) = (self.new_label(), self.new_label());
                self.branch(cond, other, false)?;
                let val = self.value(a)?;
                self.set(result, val, float)?;
                self.jump(end)?;
                self.put_label(other)?;
                let val = self.value(b)?;
                self.set(result, val, float)?;
                self.put_label(end)?;
                Ok(result)
            }
            Expr::Comma(a, b) => {
                self.effect(a)?;
                self.value(b)
            }
            Expr::Assign(place, value) => self.assign(place, value, true),
            Expr::Update(place, new, post) => self.update(place, new, post),
            Expr::Before(first, update) => {
                self.give_first(first)?;
                let result = self.value(update);
                self.forget_first(first);
                result
            }
            Expr::Given => Ok(self.given.last().copied().unwrap_or(NONE)),
            Expr::Old => Ok(self.olds.last().copied().unwrap_or(NONE)),
            Expr::Convert(a) => self.converted(a, ty),
            Expr::Call(callee, from, count) => self.call(callee, from, count, ty, None),
        }
    }

    fn copy_to(&mut self, to: Val, from: Val) -> R<()> {
        self.push(Ins {
            d: to,
            a: from,
            ..Ins::new(Op::Mov)
        })
    }

    /// `if (cond) local = value;` with a conditional move, where that is worth it.
    pub fn choose_into(&mut self, cond: Id, then: Id) -> R<bool> {
        let (place, value, old) = match self.expr_of(then) {
            Expr::Assign(place, value) => (place, value, false),
            Expr::Update(place, value, _) => (place, value, true),
            _ => return Ok(false),
        };
        let Some(to) = self.variable_of(place) else {
            return Ok(false);
        };
        if !self.can_choose(cond, &[value]) {
            return Ok(false);
        }
        let Some(ins) = self.comparison(cond)? else {
            return Ok(false);
        };
        if old {
            self.olds.push(to);
        }
        let val = self.value(value);
        if old {
            self.olds.pop();
        }
        self.push(Ins {
            op: Op::Choose,
            d: to,
            c: val?,
            ..ins
        })?;
        Ok(true)
    }

    fn read(&mut self, id: Id) -> R<Val> {
        let ty = self.unit.ty(id);
        let mem = self.place(id)?;
        self.load(mem, ty)
    }

    fn assign(&mut self, place: Id, value: Id, wanted: bool) -> R<Val> {
        let ty = self.unit.ty(place);
        if self.unit.types.is_record(ty) {
            let mem = self.place(place)?;
            return Ok(mem.base);
        }
        if let Some(to) = self.variable_of(place) {
            let val = self.value(value)?;
            self.set(to, val, ty.is_float())?;
            return Ok(to);
        }
        let mem = self.place(place)?;
        if let Expr::Member(_, _, Some(bits)) = self.expr_of(place) {
            let val = self.value(value)?;
            return self.store_bits(mem, val, ty, bits);
        }
        if !wanted {
            self.store_value(mem, value, ty)?;
            return Ok(NONE);
        }
        let val = self.value(value)?;
        self.store(mem, val, ty)?;
        Ok(val)
    }

    fn update(&mut self, place: Id, new: Id, post: bool) -> R<Val> {
        let ty = self.unit.ty(place);
        let float = ty.is_float();
        if let Some(var) = self.variable_of(place) {
            let mut result = var;
            if post {
                result = self.new_value(float, true);
                let op = if float { Op::FMov } else { Op::Mov };
                self.push(Ins {
                    d: result,
                    a: var,
                    ..Ins::new(op)
                })?;
            }
            self.olds.push(var);
            let val = self.value(new);
            self.olds.pop();
            self.set(var, val?, float)?;
            return Ok(result);
        }
        let mem = self.place(place)?;
        let bits = match self.expr_of(place) {
            Expr::Member(_, _, bits) => bits,
            _ => None,
        };
        let old = match bits {
            Some(bits) => self.load_bits(mem, ty, bits)?,
            None => self.load(mem, ty)?,
        };
        self.olds.push(old);
        let val = self.value(new);
        self.olds.pop();
        let val = match bits {
            Some(bits) => self.store_bits(mem, val?, ty, bits)?,
            None => {
                let val = val?;
                self.store(mem, val, ty)?;
                val
            }
        };
        Ok(if post { old } else { val })
    }

    fn arithmetic(&mut self, op: Bin, a: Id, b: Id, ty: Ty) -> R<Val> {
        let (w, signed) = (self.width(ty), ty.signed());
        let commutes = matches!(op, Bin::Add | Bin::Mul | Bin::And | Bin::Or | Bin::Xor);
        let (a, b) = if commutes && self.unit.int(a).is_some() {
            (b, a)
        } else {
            (a, b)
        };
        let bits = i64::from(w) * 8;
        if let Some(value) = self.unit.int(b) {
            // Constants of 32 bits without sign are the same in the instruction as those with one.
            let value = if w == 4 { i64::from(value as i32) } else { value };
            match op {
                Bin::Add => {
                    let val = self.value(a)?;
                    return self.add_constant(val, value, w);
                }
                Bin::Sub if value != i64::MIN => {
                    let val = self.value(a)?;
                    return self.add_constant(val, value.wrapping_neg(), w);
                }
                Bin::Mul => {
                    let val = self.value(a)?;
                    return self.multiply(val, value, w);
                }
                Bin::And | Bin::Or | Bin::Xor => {
                    let op = [Op::And, Op::Or, Op::Xor][op as usize - Bin::And as usize];
                    let val = self.value(a)?;
                    return self.with_constant(op, val, value, w);
                }
                Bin::Shl | Bin::Shr if (0..bits).contains(&value) => {
                    let op = match op {
                        Bin::Shl => Op::Shl,
                        _ if signed => Op::Sar,
                        _ => Op::Shr,
                    };
                    let val = self.value(a)?;
                    return self.shift(op, val, value as u8, w);
                }
                Bin::Div | Bin::Rem if value > 0 && value & (value - 1) == 0 => {
                    let val = self.value(a)?;
                    return self.divide_by_power(op == Bin::Rem, val, value, w, signed);
                }
                _ => {}
            }
        }
        let op = match op {
            Bin::Add => Op::Add,
            Bin::Sub => Op::Sub,
            Bin::Mul => Op::Mul,
            Bin::And => Op::And,
            Bin::Or => Op::Or,
            Bin::Xor => Op::Xor,
            Bin::Shl => Op::Shl,
            Bin::Shr if signed => Op::Sar,
            Bin::Shr => Op::Shr,
            Bin::Div if signed => Op::Div,
            Bin::Div => Op::UDiv,
            Bin::Rem if signed => Op::Rem,
            _ => Op::URem,
        };
        let (a, b) = (self.value(a)?, self.value(b)?);
        let ins = Ins {
            a,
            b,
            w,
            ..Ins::new(op)
        };
        self.pure(ins, false)
    }

    /// Division by 2 to the power of something, rounding towards 0.
    fn divide_by_power(&mut self, rem: bool, val: Val, by: i64, w: u8, signed: bool) -> R<Val> {
        let (k, bits) = (by.trailing_zeros() as u8, w * 8);
        if !signed {
            return match rem {
                true => self.with_constant(Op::And, val, by - 1, w),
                false => self.shift(Op::Shr, val, k, w),
            };
        }
        if k == 0 {
            return if rem { self.integer(0) } else { Ok(val) };
        }
        // What negative numbers need to be rounded up.
        let sign = self.shift(Op::Sar, val, bits - 1, w)?;
        let add = self.shift(Op::Shr, sign, bits - k, w)?;
        let sum = Ins {
            a: val,
            b: add,
            w,
            ..Ins::new(Op::Add)
        };
        let sum = self.pure(sum, false)?;
        if !rem {
            return self.shift(Op::Sar, sum, k, w);
        }
        let whole = self.with_constant(Op::And, sum, -by, w)?;
        let ins = Ins {
            a: val,
            b: whole,
            w,
            ..Ins::new(Op::Sub)
        };
        self.pure(ins, false)
    }

    fn pointer_sum(&mut self, base: Id, index: Id, stride: u32) -> R<Val> {
        let base = self.value(base)?;
        if let Some(n) = self.unit.int(index) {
            let add = n.wrapping_mul(i64::from(stride));
            return if add == 0 {
                Ok(base)
            } else {
                self.add_constant(base, add, 8)
            };
        }
        let mut val = self.value(index)?;
        let mut scale = stride;
        if !matches!(stride, 1 | 2 | 4 | 8) {
            val = self.multiply(val, i64::from(stride), 8)?;
            scale = 1;
        }
        let ins = Ins {
            a: base,
            b: val,
            sc: scale as u8,
            ..Ins::new(Op::Lea)
        };
        self.pure(ins, false)
    }

    fn pointer_difference(&mut self, a: Id, b: Id, stride: u32) -> R<Val> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        let bytes = Ins {
            a,
            b,
            ..Ins::new(Op::Sub)
        };
        let bytes = self.pure(bytes, false)?;
        if stride & (stride - 1) == 0 {
            return self.shift(Op::Sar, bytes, stride.trailing_zeros() as u8, 8);
        }
        let by = self.integer(i64::from(stride))?;
        let ins = Ins {
            a: bytes,
            b: by,
            ..Ins::new(Op::Div)
        };
        self.pure(ins, false)
    }

    /// 0 or 1.
    fn truth(&mut self, id: Id) -> R<Val> {
        match self.expr_of(id) {
            Expr::LogNot(a) => {
                if let Some(ins) = self.comparison(a)? {
                    return self.set_of(Ins {
                        cc: ins.cc ^ 1,
                        ..ins
                    });
                }
                // Of && and ||.
                let val = self.value(a)?;
                let ins = Ins {
                    a: val,
                    w: 4,
                    imm: 0,
                    cc: cc::E,
                    ..Ins::new(Op::Br)
                };
                self.set_of(ins)
            }
            _ => match self.comparison(id)? {
                Some(ins) => self.set_of(ins),
                None => self.value(id),
            },
        }
    }

    /// The result of what would be a branch.
    pub fn set_of(&mut self, branch: Ins) -> R<Val> {
        let op = if branch.op == Op::FBr { Op::FSet } else { Op::Set };
        self.pure(Ins { op, ..branch }, false)
    }
}
