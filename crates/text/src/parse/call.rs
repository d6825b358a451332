//! Calls.

use super::{Parser, R, decl};
use crate::ast::{Expr, Id};
use crate::lex::p;
use crate::types::{Shape, Ty};

impl Parser<'_> {
    /// A call; the present token is its `(`.
    pub fn call(&mut self, callee: Id) -> R<Id> {
        let at = self.at();
        self.need("(")?;
        let mut args = Vec::new();
        while !self.is(p(")")) {
            let id = self.assignment()?;
            args.push(self.value(id)?);
            if args.len() > decl::PARAMS {
                return Err(self.wrong(at, format!("a call has at most {} arguments", decl::PARAMS), None));
            }
            if !self.eat(p(",")) {
                break;
            }
        }
        self.need(")")?;
        // A function itself, or a pointer to one.
        let ty = self.ty(callee);
        let (callee, ty) = match *self.unit.types.shape(ty) {
            Shape::Func(_) => (callee, ty),
            Shape::Ptr(to) => (callee, to),
            _ => (callee, Ty::VOID),
        };
        let Some(sig) = self.unit.types.sig(ty).cloned() else {
            return Err(self.wrong(self.at_of(callee), "this is no function", None));
        };
        let (wanted, given) = (sig.params.len(), args.len());
        if given < wanted || (given > wanted && !sig.variadic) {
            let s = if wanted == 1 { "" } else { "s" };
            let message = format!("this function takes {wanted} argument{s}, not {given}");
            return Err(self.wrong(at, message, None));
        }
        for (i, arg) in args.iter_mut().enumerate() {
            *arg = match sig.params.get(i) {
                Some(&ty) => self.coerce(*arg, ty)?,
                None if self.ty(*arg).is_long_double() => *arg,
                None if self.ty(*arg).is_float() => self.convert(*arg, Ty::DOUBLE)?,
                None if self.ty(*arg).is_int() => self.promote(*arg)?,
                None if self.unit.types.is_ptr(self.ty(*arg)) => *arg,
                None => {
                    let message = "only numbers and pointers can be passed for `...`";
                    return Err(self.wrong(self.at_of(*arg), message, None));
                }
            };
        }
        if !sig.ret.is_void() && !self.unit.types.complete(sig.ret) {
            return Err(self.wrong(at, "this function returns a type that is not complete", None));
        }
        let callee = match self.unit.node(callee).expr {
            // A function that a pointer leads to: the pointer.
            Expr::Deref(pointer) if self.unit.types.sig(self.ty(callee)).is_some() => pointer,
            Expr::Addr(of) if matches!(self.unit.node(of).expr, Expr::Func(_)) => of,
            _ => callee,
        };
        let from = self.unit.lists.len() as u32;
        self.unit.lists.extend(&args);
        self.make(Expr::Call(callee, from, given as u32), sig.ret, at)
    }
}
