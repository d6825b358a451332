//! Typed expressions out of parts: conversions, checks, constants.

use super::{Parser, R, TREE, fold};
use crate::ast::{Bin, Expr, Id, Node};
use crate::extended::Extended;
use crate::types::{Shape, Ty};

impl Parser<'_> {
    pub fn make(&mut self, expr: Expr, ty: Ty, at: u32) -> R<Id> {
        // The values of a literal are statements of their own.
        let mut deepest = u16::from(matches!(expr, Expr::Literal(..)));
        let mut calls = matches!(expr, Expr::Call(..));
        self.unit.each_operand(expr, |id| {
            let node = self.unit.node(id);
            calls |= node.calls;
            deepest = deepest.max(node.depth);
        });
        if deepest >= TREE {
            let message = format!("this expression has more than {TREE} operators inside each other");
            return Err(self.notes.last(at, message, Some("divide it into statements")));
        }
        self.unit.nodes.push(Node {
            expr,
            ty,
            at,
            depth: deepest + 1,
            calls,
        });
        Ok(self.unit.nodes.len() as Id - 1)
    }

    pub fn constant(&mut self, value: i64, ty: Ty, at: u32) -> R<Id> {
        let value = fold::fit(value, ty, &self.unit.types);
        self.make(Expr::Int(value), ty.plain(), at)
    }

    pub fn ty(&self, id: Id) -> Ty {
        self.unit.ty(id)
    }

    pub fn at_of(&self, id: Id) -> u32 {
        self.unit.node(id).at
    }

    pub fn is_place(&self, id: Id) -> bool {
        match self.unit.node(id).expr {
            Expr::Local(_) | Expr::Global(_) | Expr::Deref(_) | Expr::Literal(..) => true,
            Expr::Member(of, ..) => self.is_place(of),
            _ => false,
        }
    }

    /// What was used as a value: arrays and functions become pointers.
    pub fn value(&mut self, id: Id) -> R<Id> {
        let (ty, at) = (self.ty(id), self.at_of(id));
        match *self.unit.types.shape(ty) {
            Shape::Array(of, _) => {
                self.take_address(id);
                let pointer = self.unit.types.pointer(of);
                self.make(Expr::Addr(id), pointer, at)
            }
            Shape::Func(_) => {
                let pointer = self.unit.types.pointer(ty);
                match self.unit.node(id).expr {
                    Expr::Deref(pointer) => Ok(pointer),
                    _ => self.make(Expr::Addr(id), pointer, at),
                }
            }
            _ if ty.is_void() => Ok(id),
            _ if !self.unit.types.complete(ty) => {
                Err(self.wrong(at, "this has a type that is not complete", None))
            }
            _ => Ok(id),
        }
    }

    /// Notes that a place has to be in memory.
    pub fn take_address(&mut self, id: Id) {
        let mut id = id;
        loop {
            match self.unit.node(id).expr {
                Expr::Local(local) => {
                    self.unit.locals[local as usize].in_memory = true;
                    return;
                }
                Expr::Member(of, ..) => id = of,
                _ => return,
            }
        }
    }

    /// The type that an arithmetic operand is promoted to; bit-fields by their width.
    fn promotion(&self, id: Id) -> Ty {
        let ty = self.ty(id).plain();
        // What was assigned to a bit-field is as wide as that.
        let mut place = id;
        while let Expr::Assign(to, _) | Expr::Update(to, ..) | Expr::Before(_, to) =
            self.unit.node(place).expr
        {
            place = to;
        }
        if let Expr::Member(_, _, Some(bits)) = self.unit.node(place).expr {
            let narrow = bits.len < 32 || (bits.len == 32 && ty.signed());
            return match narrow {
                true => Ty::INT,
                false if bits.len == 32 => Ty::UINT,
                false => ty,
            };
        }
        if ty.is_int() { ty.promoted() } else { ty }
    }

    pub fn promote(&mut self, id: Id) -> R<Id> {
        let ty = self.promotion(id);
        self.convert(id, ty)
    }

    /// The value in another scalar type, whatever it was; checks are the caller's.
    pub fn convert(&mut self, id: Id, ty: Ty) -> R<Id> {
        let (from, ty, at) = (self.ty(id).plain(), ty.plain(), self.at_of(id));
        if from == ty {
            return Ok(id);
        }
        let to_bits = |ty: Ty| if ty.is_arith() { ty } else { Ty::ULONG };
        match self.unit.node(id).expr {
            expr if ty.is_long_double() => {
                if let Some(value) = fold::to_long(expr, from) {
                    return self.make(Expr::Long(value), ty, at);
                }
            }
            Expr::Long(value) => {
                if let Some(expr) = fold::from_long(value, ty, &self.unit.types) {
                    return self.make(expr, ty, at);
                }
            }
            Expr::Int(value) if ty.is_float() => {
                return self.make(Expr::Float(fold::to_float(value, from, ty)), ty, at);
            }
            Expr::Int(value) if !ty.is_void() => {
                let value = fold::fit(value, to_bits(ty), &self.unit.types);
                return self.make(Expr::Int(value), ty, at);
            }
            Expr::Float(value) if ty.is_float() => {
                let value = if ty == Ty::FLOAT {
                    f64::from(value as f32)
                } else {
                    value
                };
                return self.make(Expr::Float(value), ty, at);
            }
            Expr::Float(value) if ty.is_int() => {
                if let Some(value) = fold::from_float(value, ty, &self.unit.types) {
                    return self.make(Expr::Int(value), ty, at);
                }
            }
            _ => {}
        }
        self.make(Expr::Convert(id), ty, at)
    }

    /// Whether it is the constant 0, which is a null pointer as well.
    fn is_null(&self, id: Id) -> bool {
        let node = self.unit.node(id);
        let void = self.unit.types.pointee(node.ty).is_some_and(|t| t == Ty::VOID);
        matches!(node.expr, Expr::Int(0)) && (node.ty.is_int() || void)
    }

    /// A value for a place of that type, as in an assignment, an argument or a `return`.
    pub fn coerce(&mut self, id: Id, ty: Ty) -> R<Id> {
        let id = self.value(id)?;
        let (from, to, at) = (self.ty(id), ty.plain(), self.at_of(id));
        if from.is_void() {
            return Err(self.wrong(at, "this has no value", None));
        }
        if to.is_arith() && from.is_arith() {
            return self.convert(id, to);
        }
        let types = &self.unit.types;
        let (a, b) = (types.pointee(to), types.pointee(from));
        match (a, b) {
            _ if types.is_record(to) && types.same(from, to, true) => return Ok(id),
            (Some(_), _) if self.is_null(id) => return self.convert(id, to),
            (Some(a), Some(b)) => {
                let void = a.is_void() || b.is_void();
                // `unsigned char *` for text is too usual to be refused.
                let signs = a.is_int() && b.is_int() && types.size(a) == types.size(b);
                if !(void || signs || types.same(a, b, true)) {
                    return Err(self.wrong(
                        at,
                        "this points to another type",
                        Some("if that is meant, cast it"),
                    ));
                }
                if (b.is_const() && !a.is_const()) || (b.is_volatile() && !a.is_volatile()) {
                    let remedy = Some("make the other pointer one to const, or cast it");
                    return Err(self.wrong(at, "this drops the qualifier of what is pointed to", remedy));
                }
                return self.convert(id, to);
            }
            (None, Some(_)) if to == Ty::BOOL => return self.convert(id, to),
            (Some(_), None) if from.is_int() => {
                return Err(self.wrong(at, "an integer is no pointer", Some("if that is meant, cast it")));
            }
            (None, Some(_)) if to.is_int() => {
                return Err(self.wrong(at, "a pointer is no integer", Some("if that is meant, cast it")));
            }
            _ => {}
        }
        Err(self.wrong(at, "this has another type than is needed here", None))
    }

    /// A value that can be compared with 0.
    pub fn condition(&mut self, id: Id) -> R<Id> {
        let id = self.value(id)?;
        if !self.unit.types.is_scalar(self.ty(id)) {
            return Err(self.wrong(self.at_of(id), "a condition is a number or a pointer", None));
        }
        if self.ty(id).is_long_double() {
            let (at, zero) = (self.at_of(id), Expr::Long(Extended::ZERO));
            let zero = self.make(zero, Ty::LDOUBLE, at)?;
            return self.arithmetic(Bin::Ne, id, zero, at);
        }
        Ok(id)
    }

    /// The size of what a pointer points to, for arithmetic.
    fn stride(&mut self, pointer: Ty, at: u32) -> R<u32> {
        let to = self.unit.types.pointee(pointer).unwrap_or(Ty::VOID);
        if to.is_void() || matches!(self.unit.types.shape(to), Shape::Func(_)) {
            // As gcc has it.
            return Ok(1);
        }
        if !self.unit.types.complete(to) {
            return Err(self.wrong(at, "the size of what this points to is not known", None));
        }
        Ok(self.unit.types.size(to) as u32)
    }

    pub fn binary(&mut self, op: Bin, a: Id, b: Id, at: u32) -> R<Id> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        let (x, y) = (self.ty(a).plain(), self.ty(b).plain());
        if x.is_arith() && y.is_arith() {
            return self.arithmetic(op, a, b, at);
        }
        let types = &self.unit.types;
        let (p, q) = (types.is_ptr(x), types.is_ptr(y));
        match op {
            Bin::Add if p && y.is_int() => self.offset(a, b, false, at),
            Bin::Add if q && x.is_int() => self.offset(b, a, false, at),
            Bin::Sub if p && y.is_int() => self.offset(a, b, true, at),
            Bin::Sub if p && q => {
                let (s, t) = (self.stride(x, at)?, self.stride(y, at)?);
                if s != t || s == 0 {
                    return Err(self.wrong(at, "these pointers point to different types", None));
                }
                self.make(Expr::PtrDiff(a, b, s), Ty::LONG, at)
            }
            Bin::Lt | Bin::Gt | Bin::Le | Bin::Ge | Bin::Eq | Bin::Ne if p || q => {
                let (a, b) = match (p, q) {
                    (true, true) => (a, b),
                    (true, false) if self.is_null(b) => (a, self.convert(b, x)?),
                    (false, true) if self.is_null(a) => (self.convert(a, y)?, b),
                    _ => {
                        let remedy = Some("cast one of them");
                        return Err(self.wrong(at, "a pointer is compared with what is none", remedy));
                    }
                };
                self.compare(op, a, b, Ty::ULONG, at)
            }
            _ => Err(self.wrong(at, "this operator does not take operands of these types", None)),
        }
    }

    fn offset(&mut self, pointer: Id, index: Id, minus: bool, at: u32) -> R<Id> {
        let ty = self.ty(pointer).plain();
        let stride = self.stride(ty, at)?;
        let index = self.promote(index)?;
        let index = self.convert(index, Ty::LONG)?;
        let index = if minus { self.negate(index, at)? } else { index };
        self.make(Expr::PtrAdd(pointer, index, stride), ty, at)
    }

    fn compare(&mut self, op: Bin, a: Id, b: Id, ty: Ty, at: u32) -> R<Id> {
        if let (Some(x), Some(y)) = (self.unit.int(a), self.unit.int(b))
            && let Some(value) = fold::ints(op, x, y, ty, &self.unit.types)
        {
            return self.constant(value, Ty::INT, at);
        }
        self.make(Expr::Binary(op, a, b), Ty::INT, at)
    }

    fn arithmetic(&mut self, op: Bin, a: Id, b: Id, at: u32) -> R<Id> {
        let shift = matches!(op, Bin::Shl | Bin::Shr);
        let (x, y) = (self.promotion(a), self.promotion(b));
        let whole = matches!(op, Bin::Rem | Bin::And | Bin::Or | Bin::Xor | Bin::Shl | Bin::Shr);
        if whole && !(x.is_int() && y.is_int()) {
            return Err(self.wrong(at, "this operator takes integers", None));
        }
        let ty = if shift {
            x
        } else {
            self.unit.types.arithmetic(x, y)
        };
        let a = self.convert(a, ty)?;
        let b = self.convert(b, if shift { y } else { ty })?;
        if matches!(op, Bin::Lt | Bin::Gt | Bin::Le | Bin::Ge | Bin::Eq | Bin::Ne) {
            if let (Expr::Float(x), Expr::Float(y)) = (self.unit.node(a).expr, self.unit.node(b).expr)
                && let Some(value) = fold::compares(op, x, y)
            {
                return self.constant(i64::from(value), Ty::INT, at);
            }
            if let (Expr::Long(x), Expr::Long(y)) = (self.unit.node(a).expr, self.unit.node(b).expr)
                && let Some(value) = fold::compares_longs(op, x, y)
            {
                return self.constant(i64::from(value), Ty::INT, at);
            }
            return self.compare(op, a, b, ty, at);
        }
        let known = match (self.unit.node(a).expr, self.unit.node(b).expr) {
            (Expr::Int(x), Expr::Int(y)) => fold::ints(op, x, y, ty, &self.unit.types).map(Expr::Int),
            (Expr::Float(x), Expr::Float(y)) => fold::floats(op, x, y, ty).map(Expr::Float),
            (Expr::Long(x), Expr::Long(y)) => fold::longs(op, x, y).map(Expr::Long),
            _ => None,
        };
        self.make(known.unwrap_or(Expr::Binary(op, a, b)), ty, at)
    }

    pub fn negate(&mut self, id: Id, at: u32) -> R<Id> {
        let id = self.promote(id)?;
        let ty = self.ty(id).plain();
        match self.unit.node(id).expr {
            Expr::Int(value) => self.constant(value.wrapping_neg(), ty, at),
            Expr::Float(value) => self.make(Expr::Float(-value), ty, at),
            Expr::Long(value) => self.make(Expr::Long(value.negated()), ty, at),
            _ => self.make(Expr::Neg(id), ty, at),
        }
    }

    /// A place that can be written.
    pub fn writable(&mut self, id: Id, at: u32) -> R<Ty> {
        let ty = self.ty(id);
        if !self.is_place(id) || matches!(self.unit.types.shape(ty), Shape::Array(..) | Shape::Func(_)) {
            return Err(self.wrong(at, "this cannot be assigned to", None));
        }
        if self.unit.types.has_const(ty) {
            return Err(self.wrong(at, "this is const", None));
        }
        if !self.unit.types.complete(ty) {
            return Err(self.wrong(at, "this has a type that is not complete", None));
        }
        Ok(ty)
    }

    pub fn assign(&mut self, place: Id, value: Id, at: u32) -> R<Id> {
        let ty = self.writable(place, at)?;
        let value = self.coerce(value, ty)?;
        self.make(Expr::Assign(place, value), ty.plain(), at)
    }

    /// `place op= value`, and `++` and `--`.
    pub fn update(&mut self, op: Bin, place: Id, value: Id, post: bool, at: u32) -> R<Id> {
        let ty = self.writable(place, at)?;
        if !self.unit.types.is_scalar(ty) {
            return Err(self.wrong(at, "this operator takes numbers and pointers", None));
        }
        let mut value = self.value(value)?;
        let first = self.unit.node(value).calls && self.unit.types.is_scalar(self.ty(value));
        let before = value;
        if first {
            let promoted = self.promotion(value);
            value = self.make(Expr::Given, promoted, at)?;
        }
        // As wide as the bit-field itself, if it is one.
        let old = self.make(Expr::Old, ty.plain(), at)?;
        let old = match self.unit.node(place).expr {
            Expr::Member(_, _, Some(_)) => {
                let promoted = self.promotion(place);
                self.convert(old, promoted)?
            }
            _ => old,
        };
        let new = self.binary(op, old, value, at)?;
        let new = self.coerce(new, ty)?;
        let update = self.make(Expr::Update(place, new, post), ty.plain(), at)?;
        if !first {
            return Ok(update);
        }
        let before = self.promote(before)?;
        self.make(Expr::Before(before, update), ty.plain(), at)
    }

    /// Both branches of `?:` in one type.
    pub fn choose(&mut self, cond: Id, a: Id, b: Id, at: u32) -> R<Id> {
        let (a, b) = (self.value(a)?, self.value(b)?);
        let (x, y) = (self.ty(a), self.ty(b));
        let types = &self.unit.types;
        let ty = match (types.pointee(x), types.pointee(y)) {
            _ if x.is_arith() && y.is_arith() => {
                let (x, y) = (self.promotion(a), self.promotion(b));
                types.arithmetic(x, y)
            }
            _ if x.is_void() && y.is_void() => Ty::VOID,
            _ if types.is_record(x) && types.same(x, y, true) => x.plain(),
            (Some(_), None) if self.is_null(b) => x.plain(),
            (None, Some(_)) if self.is_null(a) => y.plain(),
            (Some(p), Some(q)) => {
                let to = match () {
                    () if self.is_null(a) => q,
                    () if self.is_null(b) => p,
                    () if p.is_void() || q.is_void() => Ty::VOID,
                    () if types.same(p, q, true) => p,
                    () => {
                        return Err(self.wrong(
                            at,
                            "the branches point to different types",
                            Some("cast one of them"),
                        ));
                    }
                };
                let to = to.qualified(p.is_const() || q.is_const(), p.is_volatile() || q.is_volatile());
                self.unit.types.pointer(to)
            }
            _ => return Err(self.wrong(at, "the branches have different types", None)),
        };
        let (a, b) = match self.unit.types.is_scalar(ty) {
            true => (self.convert(a, ty)?, self.convert(b, ty)?),
            false => (a, b),
        };
        if let Some(value) = self.unit.int(cond) {
            let taken = if value != 0 { a } else { b };
            // Only constants stay constants: a place must not become one that can be written.
            if matches!(
                self.unit.node(taken).expr,
                Expr::Int(_) | Expr::Float(_) | Expr::Long(_)
            ) {
                return Ok(taken);
            }
        }
        self.make(Expr::Cond(cond, a, b), ty, at)
    }
}
