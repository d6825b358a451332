//! Declarators, and declarations outside of functions.

use super::specifiers::{Specifiers, Storage};
use super::{Inside, Name, Parser, R};
use crate::ast::{Func, Global, Local};
use crate::lex::{self, Kind, p};
use crate::types::{SIZE_MAX, Shape, Sig, Sym, Ty};
use std::collections::HashMap;

/// Most parameters of a function.
pub const PARAMS: usize = 64;
/// Most locals of a text's functions together.
const LOCALS: usize = 200_000;

type Params = Vec<(Option<Sym>, Ty, u32)>;

enum Suffix {
    Array(Option<u64>, u32),
    Func(Vec<Ty>, bool, u32),
}

impl Parser<'_> {
    fn stars(&mut self, base: Ty) -> R<Ty> {
        let mut ty = base;
        while self.eat(p("*")) {
            ty = self.unit.types.pointer(ty);
            loop {
                match self.kind() {
                    Kind::Name(lex::CONST) => ty = ty.qualified(true, false),
                    Kind::Name(lex::VOLATILE) => ty = ty.qualified(false, true),
                    Kind::Name(lex::RESTRICT) => {}
                    _ => break,
                }
                self.next();
            }
            if self.unit.types.too_deep {
                return self.nested(|_| Ok(ty));
            }
        }
        Ok(ty)
    }

    /// A declarator: its name, if it has one, and the type.
    pub fn declarator(&mut self, base: Ty) -> R<(Option<Sym>, Ty)> {
        self.nested(|parser| parser.declared(base))
    }

    fn declared(&mut self, base: Ty) -> R<(Option<Sym>, Ty)> {
        let ty = self.stars(base)?;
        // `(` begins a declarator in parentheses, unless it begins parameters of one without a name.
        let inner = self.is(p("(")) && !self.starts_type(1) && self.ahead(1) != Kind::Punct(p(")"));
        if inner {
            let from = self.p + 1;
            self.skip_parentheses()?;
            let ty = self.suffixes(ty)?;
            let end = std::mem::replace(&mut self.p, from);
            let result = self.declarator(ty)?;
            self.need(")")?;
            self.p = end;
            return Ok(result);
        }
        let name = match self.kind() {
            Kind::Name(sym) if sym >= lex::KEYWORDS => Some(self.name()?),
            _ => None,
        };
        Ok((name, self.suffixes(ty)?))
    }

    fn skip_parentheses(&mut self) -> R<()> {
        let (at, mut depth) = (self.at(), 0);
        loop {
            match self.kind() {
                Kind::Punct(x) if x == p("(") => depth += 1,
                Kind::Punct(x) if x == p(")") => depth -= 1,
                Kind::End => return Err(self.wrong(at, "this parenthesis is not closed", None)),
                _ => {}
            }
            self.next();
            if depth == 0 {
                return Ok(());
            }
        }
    }

    fn suffixes(&mut self, base: Ty) -> R<Ty> {
        let mut list = Vec::new();
        loop {
            let at = self.at();
            if self.eat(p("[")) {
                while matches!(
                    self.kind(),
                    Kind::Name(lex::STATIC | lex::CONST | lex::RESTRICT | lex::VOLATILE)
                ) {
                    self.next();
                }
                let count = match self.is(p("]")) {
                    true => None,
                    false => Some(self.length(at)?),
                };
                self.need("]")?;
                list.push(Suffix::Array(count, at));
            } else if self.is(p("(")) {
                let (types, variadic, params) = self.parameters()?;
                self.params = params;
                list.push(Suffix::Func(types, variadic, at));
            } else {
                break;
            }
        }
        let mut ty = base;
        for suffix in list.into_iter().rev() {
            ty = match suffix {
                Suffix::Array(count, at) => {
                    if !self.unit.types.complete(ty) {
                        return Err(self.wrong(at, "the elements of this array have no size", None));
                    }
                    let array = self.unit.types.array(ty, count);
                    if self.unit.types.size(array) > SIZE_MAX {
                        return Err(self.wrong(at, "this array is larger than 256 MiB", None));
                    }
                    array
                }
                Suffix::Func(params, variadic, at) => {
                    if matches!(self.unit.types.shape(ty), Shape::Array(..) | Shape::Func(_)) {
                        return Err(self.wrong(
                            at,
                            "a function cannot return this",
                            Some("return a pointer to it"),
                        ));
                    }
                    let ret = ty.plain();
                    self.unit.types.function(Sig {
                        ret,
                        params,
                        variadic,
                    })
                }
            };
        }
        if self.unit.types.too_deep {
            return self.nested(|_| Ok(ty));
        }
        Ok(ty)
    }

    fn length(&mut self, at: u32) -> R<u64> {
        let id = self.assignment()?;
        let id = self.value(id)?;
        match self.unit.int(id) {
            Some(n) if n >= 0 && self.ty(id).is_int() => Ok(n as u64),
            Some(_) => Err(self.wrong(at, "an array has a length of 0 or more", None)),
            None => Err(self.wrong(
                at,
                "arrays of variable length are not supported",
                Some("use a constant length"),
            )),
        }
    }

    fn parameters(&mut self) -> R<(Vec<Ty>, bool, Params)> {
        self.need("(")?;
        let (mut params, mut variadic) = (Params::new(), false);
        if self.kind() == Kind::Name(lex::VOID) && self.ahead(1) == Kind::Punct(p(")")) {
            self.next();
        }
        // Tags that are declared here are known here only.
        self.scoped(|parser| {
            while !parser.is(p(")")) {
                if parser.eat(p("...")) {
                    variadic = true;
                    break;
                }
                if params.len() >= PARAMS {
                    return Err(parser.wrong(
                        parser.at(),
                        format!("a function has at most {PARAMS} parameters"),
                        None,
                    ));
                }
                let at = parser.at();
                let base = parser.specifiers()?;
                let name_at = parser.at();
                let (name, ty) = parser.declarator(base.ty)?;
                let ty = match *parser.unit.types.shape(ty) {
                    Shape::Array(of, _) => parser.unit.types.pointer(of),
                    Shape::Func(_) => parser.unit.types.pointer(ty),
                    _ if ty.is_void() => return Err(parser.wrong(at, "a parameter cannot be void", None)),
                    _ => ty,
                };
                params.push((name, ty, name_at));
                if !parser.eat(p(",")) {
                    break;
                }
            }
            Ok(())
        })?;
        self.need(")")?;
        Ok((params.iter().map(|p| p.1.plain()).collect(), variadic, params))
    }

    /// A type without a name, as in a cast.
    pub fn type_name(&mut self) -> R<Ty> {
        let at = self.at();
        let base = self.specifiers()?;
        match self.declarator(base.ty)? {
            (None, ty) if base.storage == Storage::None => Ok(ty),
            _ => Err(self.wrong(at, "only a type can stand here", None)),
        }
    }

    pub fn static_assert(&mut self) -> R<()> {
        let at = self.at();
        self.next();
        self.need("(")?;
        let value = self.constant_int()?;
        if self.eat(p(",")) {
            self.next();
        }
        self.need(")")?;
        if value == 0 {
            self.wrong(at, "this assertion does not hold", None);
        }
        self.need(";")
    }

    /// A declaration or definition outside of functions.
    pub fn external(&mut self) -> R<()> {
        if self.eat(p(";")) {
            return Ok(());
        }
        if self.kind() == Kind::Name(lex::STATIC_ASSERT) {
            return self.static_assert();
        }
        let specifiers = self.specifiers()?;
        if self.eat(p(";")) {
            return Ok(());
        }
        let mut first = true;
        loop {
            let at = self.at();
            let (name, ty) = self.declarator(specifiers.ty)?;
            let Some(name) = name else {
                return Err(self.unexpected("a name"));
            };
            if first && self.is(p("{")) && self.unit.types.sig(ty).is_some() {
                return self.definition(name, ty, at, specifiers.storage);
            }
            first = false;
            self.declare(name, ty, at, &specifiers)?;
            if !self.eat(p(",")) {
                break;
            }
        }
        self.need(";")
    }

    /// What is no local variable: types, functions, and objects outside of functions.
    pub fn declare(&mut self, name: Sym, ty: Ty, at: u32, specifiers: &Specifiers) -> R<()> {
        if specifiers.storage == Storage::Typedef {
            match self.find_here(name, false) {
                Some(Name::Typedef(old)) if self.unit.types.same(old, ty, false) => {}
                Some(_) => return Err(self.twice(name, at)),
                None => self.bind(name, Name::Typedef(ty)),
            }
            return Ok(());
        }
        if self.unit.types.sig(ty).is_some() {
            return self.function(name, ty, at, specifiers.storage).map(|_| ());
        }
        self.object(name, ty, at, specifiers.storage)
    }

    pub fn twice(&mut self, name: Sym, at: u32) -> crate::error::Stop {
        let message = format!("`{}` was declared differently before", self.spell(name));
        self.wrong(at, message, None)
    }

    fn function(&mut self, name: Sym, ty: Ty, at: u32, storage: Storage) -> R<u32> {
        // A function has one meaning in the whole text, wherever it is declared.
        let known = match self.find(name, false).map(|b| b.name) {
            Some(Name::Func(func)) => Some(func),
            Some(_) if self.find_here(name, false).is_some() => return Err(self.twice(name, at)),
            _ => self
                .unit
                .funcs
                .iter()
                .position(|f| f.name == name)
                .map(|i| i as u32),
        };
        if let Some(func) = known {
            let old = self.unit.funcs[func as usize].ty;
            if !self.unit.types.same(old, ty, true) {
                return Err(self.twice(name, at));
            }
            if self.find(name, false).is_none() {
                self.bind(name, Name::Func(func));
            }
            return Ok(func);
        }
        let func = self.unit.funcs.len() as u32;
        self.unit.funcs.push(Func {
            name,
            ty,
            at,
            internal: storage == Storage::Static,
            body: None,
            import: None,
            used: false,
        });
        self.bind(name, Name::Func(func));
        Ok(func)
    }

    fn definition(&mut self, name: Sym, ty: Ty, at: u32, storage: Storage) -> R<()> {
        let params = std::mem::take(&mut self.params);
        let func = self.function(name, ty, at, storage)?;
        let Some(sig) = self.unit.types.sig(ty) else {
            return Ok(());
        };
        let (ret, variadic) = (sig.ret, sig.variadic);
        if storage == Storage::Typedef {
            return Err(self.wrong(at, "a function is no type", None));
        }
        if variadic {
            return Err(self.wrong(
                at,
                "functions with `...` can be called, but not defined",
                Some("pass an array"),
            ));
        }
        if self.unit.funcs[func as usize].body.is_some() {
            return Err(self.wrong(at, format!("`{}` is defined twice", self.spell(name)), None));
        }
        self.unit.funcs[func as usize].at = at;
        if !ret.is_void() && !self.unit.types.complete(ret) {
            return Err(self.wrong(at, "this function returns a type that is not complete", None));
        }
        let first_local = self.unit.locals.len() as u32;
        let (nodes, stmts) = (self.unit.nodes.len(), self.unit.stmts.len());
        self.inside = Some(Inside {
            func,
            own_name: None,
            ret,
            first_local,
            labels: HashMap::new(),
            next_label: 0,
            loops: 0,
            breaks: 0,
            switches: Vec::new(),
        });
        let count = params.len() as u32;
        let stmt = self.scoped(|parser| {
            for (name, ty, at) in params {
                let Some(name) = name else {
                    return Err(parser.wrong(at, "this parameter needs a name", None));
                };
                if !parser.unit.types.complete(ty) {
                    return Err(parser.wrong(at, "this parameter's type is not complete", None));
                }
                if parser.find_here(name, false).is_some() {
                    return Err(parser.twice(name, at));
                }
                let local = parser.local(ty)?;
                parser.bind(name, Name::Local(local));
            }
            parser.block()
        })?;
        let Some(inside) = self.inside.take() else {
            return Ok(());
        };
        let mut missing: Vec<_> = inside.labels.iter().filter(|l| !l.1.defined).collect();
        missing.sort_by_key(|l| l.1.at);
        for (&name, label) in missing {
            let message = format!("there is no label `{}` in this function", self.spell(name));
            self.wrong(label.at, message, None);
        }
        let mut body = inside.body(&self.unit, count, stmt, nodes);
        self.look_over(func, &mut body, nodes, stmts);
        self.unit.funcs[func as usize].body = Some(body);
        Ok(())
    }

    pub fn local(&mut self, ty: Ty) -> R<u32> {
        if self.unit.locals.len() >= LOCALS {
            return Err(self.notes.last(
                self.at(),
                format!("the text has more than {LOCALS} local variables"),
                None,
            ));
        }
        let in_memory = !self.unit.types.is_scalar(ty) || ty.is_volatile() || ty.is_long_double();
        let parts = (0, 0);
        self.unit.locals.push(Local { ty, in_memory, parts });
        Ok(self.unit.locals.len() as u32 - 1)
    }

    /// An object without a name: a string, or a static local. Zeroes without bytes.
    pub fn anonymous(&mut self, ty: Ty, at: u32, bytes: Option<Vec<u8>>) -> R<u32> {
        self.data += self.unit.types.size(ty);
        if self.data > super::DATA {
            let message = format!("this text has more than {} MiB of data", super::DATA >> 20);
            return Err(self
                .notes
                .last(at, message, Some("let the host allocate large objects")));
        }
        self.unit.globals.push(Global {
            name: None,
            ty,
            at,
            bytes,
            addresses: Vec::new(),
            defined: true,
            used: true,
            offset: 0,
        });
        Ok(self.unit.globals.len() as u32 - 1)
    }

    fn object(&mut self, name: Sym, ty: Ty, at: u32, storage: Storage) -> R<()> {
        if ty.is_void() {
            return Err(self.wrong(at, "an object cannot be void", None));
        }
        let known = match self.find_here(name, false) {
            Some(Name::Global(global)) => Some(global),
            Some(_) => return Err(self.twice(name, at)),
            None if self.scope > 0 => self
                .unit
                .globals
                .iter()
                .position(|g| g.name == Some(name))
                .map(|i| i as u32),
            None => None,
        };
        let global = match known {
            Some(global) => {
                let old = self.unit.globals[global as usize].ty;
                if !self.unit.types.same(old, ty, false) {
                    return Err(self.twice(name, at));
                }
                if self.unit.types.complete(ty) {
                    self.unit.globals[global as usize].ty = ty;
                }
                if self.find_here(name, false).is_none() {
                    self.bind(name, Name::Global(global));
                }
                global
            }
            None => {
                let global = self.unit.globals.len() as u32;
                self.unit.globals.push(Global {
                    name: Some(name),
                    ty,
                    at,
                    bytes: None,
                    addresses: Vec::new(),
                    defined: false,
                    used: false,
                    offset: 0,
                });
                self.bind(name, Name::Global(global));
                global
            }
        };
        if self.eat(p("=")) {
            if self.unit.globals[global as usize].bytes.is_some() || self.scope > 0 {
                return Err(self.wrong(at, "this cannot have an initialiser here", None));
            }
            return self.static_initialiser(global);
        }
        if storage != Storage::Extern {
            self.unit.globals[global as usize].defined = true;
        }
        Ok(())
    }
}
