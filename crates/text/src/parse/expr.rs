//! Expressions.

use super::{Name, Parser, R};
use crate::ast::{Bin, Expr, Id};
use crate::lex::{self, Kind, Number, p};
use crate::types::{Field, Shape, Sym, Ty};

/// Operators of two operands, with how strongly they bind.
fn operator(punct: u32) -> Option<(Bin, u8)> {
    const TABLE: &[(u32, Bin, u8)] = &[
        (p("*"), Bin::Mul, 10),
        (p("/"), Bin::Div, 10),
        (p("%"), Bin::Rem, 10),
        (p("+"), Bin::Add, 9),
        (p("-"), Bin::Sub, 9),
        (p("<<"), Bin::Shl, 8),
        (p(">>"), Bin::Shr, 8),
        (p("<"), Bin::Lt, 7),
        (p(">"), Bin::Gt, 7),
        (p("<="), Bin::Le, 7),
        (p(">="), Bin::Ge, 7),
        (p("=="), Bin::Eq, 6),
        (p("!="), Bin::Ne, 6),
        (p("&"), Bin::And, 5),
        (p("^"), Bin::Xor, 4),
        (p("|"), Bin::Or, 3),
    ];
    TABLE.iter().find(|t| t.0 == punct).map(|t| (t.1, t.2))
}

/// Operators that assign: the operator in them.
fn assignment(punct: u32) -> Option<Bin> {
    const TABLE: &[(u32, Bin)] = &[
        (p("+="), Bin::Add),
        (p("-="), Bin::Sub),
        (p("*="), Bin::Mul),
        (p("/="), Bin::Div),
        (p("%="), Bin::Rem),
        (p("&="), Bin::And),
        (p("|="), Bin::Or),
        (p("^="), Bin::Xor),
        (p("<<="), Bin::Shl),
        (p(">>="), Bin::Shr),
    ];
    TABLE.iter().find(|t| t.0 == punct).map(|t| t.1)
}

/// How strongly `&&` and `||` bind.
const AND: u8 = 2;
const OR: u8 = 1;

impl Parser<'_> {
    pub fn expr(&mut self) -> R<Id> {
        let mut left = self.assignment()?;
        while self.is(p(",")) {
            let at = self.at();
            self.next();
            let right = self.assignment()?;
            let right = self.value(right)?;
            let ty = self.ty(right).plain();
            left = self.make(Expr::Comma(left, right), ty, at)?;
        }
        Ok(left)
    }

    /// An expression without a comma operator.
    pub fn assignment(&mut self) -> R<Id> {
        self.nested(Self::assigned)
    }

    fn assigned(&mut self) -> R<Id> {
        let left = self.conditional()?;
        let at = self.at();
        let Kind::Punct(punct) = self.kind() else {
            return Ok(left);
        };
        if punct == p("=") {
            self.next();
            let right = self.assignment()?;
            return self.assign(left, right, at);
        }
        if let Some(op) = assignment(punct) {
            self.next();
            let right = self.assignment()?;
            return self.update(op, left, right, false, at);
        }
        Ok(left)
    }

    /// An expression without assignments and commas outside of parentheses: what a constant may be.
    pub fn conditional(&mut self) -> R<Id> {
        let left = self.operators(OR)?;
        let at = self.at();
        if !self.eat(p("?")) {
            return Ok(left);
        }
        let cond = self.condition(left)?;
        let a = self.nested(Self::expr)?;
        self.need(":")?;
        let b = self.nested(Self::conditional)?;
        self.choose(cond, a, b, at)
    }

    fn operators(&mut self, least: u8) -> R<Id> {
        let mut left = self.cast()?;
        loop {
            let Kind::Punct(punct) = self.kind() else {
                return Ok(left);
            };
            let at = self.at();
            if let Some((op, binds)) = operator(punct) {
                if binds < least {
                    return Ok(left);
                }
                self.next();
                let right = self.operators(binds + 1)?;
                left = self.binary(op, left, right, at)?;
                continue;
            }
            let and = punct == p("&&");
            let binds = if and { AND } else { OR };
            if !(and || punct == p("||")) || binds < least {
                return Ok(left);
            }
            self.next();
            let left_cond = self.condition(left)?;
            let right = self.operators(binds + 1)?;
            let right = self.condition(right)?;
            left = match (self.truth(left_cond), self.truth(right)) {
                (Some(a), _) if a != and => self.constant(i64::from(a), Ty::INT, at)?,
                (Some(_), Some(b)) => self.constant(i64::from(b), Ty::INT, at)?,
                _ if and => self.make(Expr::And(left_cond, right), Ty::INT, at)?,
                _ => self.make(Expr::Or(left_cond, right), Ty::INT, at)?,
            };
        }
    }

    /// Whether a constant is not 0.
    fn truth(&self, id: Id) -> Option<bool> {
        match self.unit.node(id).expr {
            Expr::Int(value) => Some(value != 0),
            Expr::Float(value) => Some(value != 0.0),
            Expr::Long(value) => Some(!value.is_zero()),
            _ => None,
        }
    }

    fn cast(&mut self) -> R<Id> {
        if !(self.is(p("(")) && self.starts_type(1)) {
            return self.unary();
        }
        let at = self.at();
        self.next();
        let ty = self.type_name()?;
        self.need(")")?;
        if self.is(p("{")) {
            let literal = self.compound_literal(ty, at)?;
            return self.postfix(literal);
        }
        let operand = self.nested(Self::cast)?;
        self.cast_to(operand, ty, at)
    }

    fn cast_to(&mut self, operand: Id, ty: Ty, at: u32) -> R<Id> {
        let operand = self.value(operand)?;
        let from = self.ty(operand);
        let types = &self.unit.types;
        let good = match (types.is_ptr(ty), types.is_ptr(from)) {
            _ if ty.is_void() => true,
            (true, true) => true,
            (true, false) => from.is_int(),
            (false, true) => ty.is_int(),
            (false, false) => ty.is_arith() && from.is_arith(),
        };
        if !good {
            return Err(self.wrong(at, "this cannot be cast to that type", None));
        }
        if ty.is_void() {
            return self.make(Expr::Convert(operand), Ty::VOID, at);
        }
        // An integer becomes a pointer by way of 64 bits.
        let operand = match from.is_int() && self.unit.types.is_ptr(ty) {
            true => self.convert(operand, if from.signed() { Ty::LONG } else { Ty::ULONG })?,
            false => operand,
        };
        let id = self.convert(operand, ty)?;
        match self.is_place(id) {
            // The value only.
            true => self.make(Expr::Convert(id), ty.plain(), at),
            false => Ok(id),
        }
    }

    fn unary(&mut self) -> R<Id> {
        let at = self.at();
        let punct = match self.kind() {
            Kind::Punct(punct) => punct,
            Kind::Name(lex::SIZEOF | lex::ALIGNOF) => return self.sizes(),
            _ => 0,
        };
        if punct == p("++") || punct == p("--") {
            self.next();
            let place = self.nested(Self::unary)?;
            return self.step(place, punct, false, at);
        }
        let simple = [p("-"), p("+"), p("~"), p("!"), p("*"), p("&")];
        if !simple.contains(&punct) {
            let first = self.primary()?;
            return self.postfix(first);
        }
        self.next();
        let operand = self.nested(Self::cast)?;
        if punct == p("&") {
            return self.address(operand, at);
        }
        let operand = self.value(operand)?;
        let ty = self.ty(operand);
        if punct == p("*") {
            return self.deref(operand, at);
        }
        if punct == p("!") {
            let operand = self.condition(operand)?;
            return match self.truth(operand) {
                Some(truth) => self.constant(i64::from(!truth), Ty::INT, at),
                None => self.make(Expr::LogNot(operand), Ty::INT, at),
            };
        }
        if !ty.is_arith() || (punct == p("~") && !ty.is_int()) {
            return Err(self.wrong(at, "this operator takes a number", None));
        }
        if punct == p("-") {
            return self.negate(operand, at);
        }
        let operand = self.promote(operand)?;
        let ty = self.ty(operand).plain();
        match (punct == p("~"), self.unit.int(operand)) {
            (true, Some(value)) => self.constant(!value, ty, at),
            (true, None) => self.make(Expr::Not(operand), ty, at),
            // Not a place any more.
            (false, _) if self.is_place(operand) => self.make(Expr::Convert(operand), ty, at),
            (false, _) => Ok(operand),
        }
    }

    fn step(&mut self, place: Id, punct: u32, post: bool, at: u32) -> R<Id> {
        let one = self.constant(1, Ty::INT, at)?;
        let op = if punct == p("++") { Bin::Add } else { Bin::Sub };
        self.update(op, place, one, post, at)
    }

    fn address(&mut self, operand: Id, at: u32) -> R<Id> {
        let ty = self.ty(operand);
        match self.unit.node(operand).expr {
            Expr::Deref(pointer) => {
                let to = self.unit.types.pointer(ty);
                return self.convert_quiet(pointer, to);
            }
            Expr::Member(_, _, Some(_)) => return Err(self.wrong(at, "a bit-field has no address", None)),
            Expr::Func(_) => {}
            _ if self.is_place(operand) => self.take_address(operand),
            _ => return Err(self.wrong(at, "this has no address", None)),
        }
        let pointer = self.unit.types.pointer(ty);
        self.make(Expr::Addr(operand), pointer, at)
    }

    /// A pointer as one of another type: not a place any more.
    fn convert_quiet(&mut self, pointer: Id, ty: Ty) -> R<Id> {
        let at = self.at_of(pointer);
        self.make(Expr::Convert(pointer), ty, at)
    }

    pub fn deref(&mut self, pointer: Id, at: u32) -> R<Id> {
        match self.unit.types.pointee(self.ty(pointer)) {
            None => Err(self.wrong(at, "this is no pointer", None)),
            Some(to) if to.is_void() => Err(self.wrong(
                at,
                "void * points to nothing of a size",
                Some("cast it to the type that is meant"),
            )),
            Some(to) => match (self.unit.types.shape(to), self.unit.node(pointer).expr) {
                (Shape::Func(_), Expr::Addr(func)) => Ok(func),
                _ => self.make(Expr::Deref(pointer), to, at),
            },
        }
    }

    fn sizes(&mut self) -> R<Id> {
        let (at, size) = (self.at(), self.kind() == Kind::Name(lex::SIZEOF));
        self.next();
        let ty = if self.is(p("(")) && self.starts_type(1) {
            self.next();
            let ty = self.type_name()?;
            self.need(")")?;
            if self.is(p("{")) {
                let literal = self.compound_literal(ty, at)?;
                let id = self.postfix(literal)?;
                self.ty(id)
            } else {
                ty
            }
        } else {
            let id = self.nested(Self::unary)?;
            if matches!(self.unit.node(id).expr, Expr::Member(_, _, Some(_))) {
                return Err(self.wrong(at, "a bit-field has no size", None));
            }
            self.ty(id)
        };
        let known = self.unit.types.complete(ty) || ty.is_void() || self.unit.types.sig(ty).is_some();
        if !known {
            return Err(self.wrong(at, "the size of this type is not known", None));
        }
        let types = &self.unit.types;
        let value = if size {
            types.size(ty)
        } else {
            u64::from(types.align(ty))
        };
        self.constant(value as i64, Ty::ULONG, at)
    }

    fn primary(&mut self) -> R<Id> {
        let at = self.at();
        match self.kind() {
            Kind::Int(n) => {
                self.next();
                let (value, ty) = self.tokens.ints[n as usize];
                self.constant(value as i64, ty, at)
            }
            Kind::Float(n) => {
                self.next();
                let (expr, ty) = match self.tokens.floats[n as usize] {
                    Number::Float(value) => (Expr::Float(value.into()), Ty::FLOAT),
                    Number::Double(value) => (Expr::Float(value), Ty::DOUBLE),
                    Number::Long(value) => (Expr::Long(value), Ty::LDOUBLE),
                };
                self.make(expr, ty, at)
            }
            Kind::Str(n) => {
                self.next();
                self.string(n, at)
            }
            Kind::Punct(x) if x == p("(") => {
                self.next();
                if self.is(p("{")) {
                    return Err(self.wrong(
                        at,
                        "statements in expressions are not supported",
                        Some("write a function"),
                    ));
                }
                let id = self.nested(Self::expr)?;
                self.need(")")?;
                Ok(id)
            }
            Kind::Name(lex::TRUE | lex::FALSE) => {
                let value = self.kind() == Kind::Name(lex::TRUE);
                self.next();
                self.constant(i64::from(value), Ty::INT, at)
            }
            Kind::Name(lex::NULL) => {
                self.next();
                let zero = self.constant(0, Ty::INT, at)?;
                let pointer = self.unit.types.pointer(Ty::VOID);
                self.convert(zero, pointer)
            }
            Kind::Name(sym) if sym >= lex::KEYWORDS => {
                self.next();
                self.named(sym, at)
            }
            Kind::Name(sym) if sym >= lex::FIRST_UNSUPPORTED => Err(self.unsupported_word(sym)),
            _ => Err(self.unexpected("an expression")),
        }
    }

    fn named(&mut self, sym: Sym, at: u32) -> R<Id> {
        match self.find(sym, false).map(|b| b.name) {
            Some(Name::Local(local)) => {
                let ty = self.unit.locals[local as usize].ty;
                self.make(Expr::Local(local), ty, at)
            }
            Some(Name::Global(global)) => {
                self.unit.globals[global as usize].used = true;
                let ty = self.unit.globals[global as usize].ty;
                self.make(Expr::Global(global), ty, at)
            }
            Some(Name::Func(func)) => {
                self.unit.funcs[func as usize].used = true;
                let ty = self.unit.funcs[func as usize].ty;
                self.make(Expr::Func(func), ty, at)
            }
            Some(Name::Const(value)) => {
                let ty = if i64::from(value as i32) == value {
                    Ty::INT
                } else {
                    Ty::LONG
                };
                self.constant(value, ty, at)
            }
            Some(Name::Typedef(_)) => Err(self.wrong(at, "this is a type, not a value", None)),
            None if self.inside.is_some() && self.spell(sym) == "__func__" => self.own_name(at),
            Some(Name::Tag(_)) | None => {
                let call = self.is(p("("));
                let message = format!("unknown name `{}`", self.spell(sym));
                let remedy = match call {
                    true => {
                        "declare the function before it is called; a prototype does for a built-in function"
                    }
                    false => "declare it before it is used",
                };
                Err(self.wrong(at, message, Some(remedy)))
            }
        }
    }

    /// `__func__`: the name of the function that it stands in.
    fn own_name(&mut self, at: u32) -> R<Id> {
        let func = self.inside.as_ref().map_or(0, |inside| inside.func);
        let known = self.inside.as_ref().and_then(|inside| inside.own_name);
        let global = match known {
            Some(global) => global,
            None => {
                let name = self.unit.funcs[func as usize].name;
                let bytes = [self.tokens.name(self.text, name).as_bytes(), b"\0"].concat();
                let of = Ty::CHAR.qualified(true, false);
                let ty = self.unit.types.array(of, Some(bytes.len() as u64));
                self.anonymous(ty, at, Some(bytes))?
            }
        };
        if let Some(inside) = &mut self.inside {
            inside.own_name = Some(global);
        }
        let ty = self.unit.globals[global as usize].ty;
        self.make(Expr::Global(global), ty, at)
    }

    pub fn string(&mut self, n: u32, at: u32) -> R<Id> {
        let mut bytes = self.tokens.strings[n as usize].clone();
        bytes.push(0);
        let ty = self.unit.types.array(Ty::CHAR, Some(bytes.len() as u64));
        let global = self.anonymous(ty, at, Some(bytes))?;
        self.make(Expr::Global(global), ty, at)
    }

    pub fn postfix(&mut self, first: Id) -> R<Id> {
        let mut id = first;
        loop {
            let at = self.at();
            let Kind::Punct(punct) = self.kind() else {
                return Ok(id);
            };
            if punct == p("[") {
                self.next();
                let index = self.nested(Self::expr)?;
                self.need("]")?;
                let sum = self.binary(Bin::Add, id, index, at)?;
                id = self.deref(sum, at)?;
            } else if punct == p("(") {
                id = self.call(id)?;
            } else if punct == p(".") || punct == p("->") {
                self.next();
                if punct == p("->") {
                    let pointer = self.value(id)?;
                    id = self.deref(pointer, at)?;
                }
                let name_at = self.at();
                let name = self.name()?;
                id = self.member(id, name, name_at)?;
            } else if punct == p("++") || punct == p("--") {
                self.next();
                id = self.step(id, punct, true, at)?;
            } else {
                return Ok(id);
            }
        }
    }

    /// The members, outermost first, by which a name is found in a record.
    pub fn path(&self, ty: Ty, name: Sym, depth: u8) -> Option<Vec<Field>> {
        let record = self.unit.types.record_of(ty)?;
        for field in &record.fields {
            match field.name {
                Some(n) if n == name => return Some(vec![*field]),
                None if depth < 32 => {
                    if let Some(mut path) = self.path(field.ty, name, depth + 1) {
                        path.insert(0, *field);
                        return Some(path);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn member(&mut self, of: Id, name: Sym, at: u32) -> R<Id> {
        let outer = self.ty(of);
        let Some(record) = self.unit.types.record_of(outer) else {
            return Err(self.wrong(at, "this is no structure and no union", None));
        };
        if !record.complete {
            return Err(self.wrong(at, "this structure's members are not known", None));
        }
        let Some(path) = self.path(outer, name, 0) else {
            let message = format!("there is no member `{}`", self.spell(name));
            return Err(self.wrong(at, message, None));
        };
        let mut id = of;
        for field in path {
            let ty = field.ty.like(outer);
            id = self.make(Expr::Member(id, field.offset, field.bits), ty, at)?;
        }
        Ok(id)
    }
}
