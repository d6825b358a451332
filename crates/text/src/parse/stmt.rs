//! Statements, and declarations in functions.

use super::specifiers::{Specifiers, Storage};
use super::{Label, Name, Parser, R};
use crate::ast::{Expr, Stmt, Switch};
use crate::lex::{self, Kind, p};
use crate::types::{Sym, Ty};

impl Parser<'_> {
    fn put(&mut self, stmt: Stmt) -> u32 {
        self.unit.stmts.push(stmt);
        self.unit.stmts.len() as u32 - 1
    }

    fn sequence(&mut self, list: &[u32]) -> u32 {
        if let [one] = list {
            return *one;
        }
        let from = self.unit.lists.len() as u32;
        self.unit.lists.extend(list);
        self.put(Stmt::Block(from, list.len() as u32))
    }

    /// A block with its braces, in the scope that there is. Errors in its statements do not end it.
    pub fn block(&mut self) -> R<u32> {
        let at = self.at();
        self.need("{")?;
        let mut list = Vec::new();
        while !self.eat(p("}")) {
            if self.kind() == Kind::End {
                return Err(self.wrong(at, "this brace is not closed", None));
            }
            if self.notes.full {
                return Err(crate::error::Stop);
            }
            let (from, depth) = (self.p, self.depth);
            match self.item(&mut list) {
                Ok(()) => {}
                Err(_) if self.notes.full => return Err(crate::error::Stop),
                Err(_) => {
                    self.depth = depth;
                    self.resume(from);
                }
            }
        }
        Ok(self.sequence(&list))
    }

    /// After an error in a statement: on to behind its `;`, or to the `}` of the block that it is in.
    fn resume(&mut self, from: usize) {
        let opened = self.tokens.list[from..self.p]
            .iter()
            .fold(0i32, |d, t| match t.kind {
                Kind::Punct(x) if x == p("{") => d + 1,
                Kind::Punct(x) if x == p("}") => d - 1,
                _ => d,
            });
        let mut depth = opened.max(0);
        if self.p > from
            && depth == 0
            && matches!(self.tokens.list[self.p - 1].kind, Kind::Punct(x) if x == p(";"))
        {
            return;
        }
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Punct(x) if x == p("{") => depth += 1,
                Kind::Punct(x) if x == p("}") => {
                    if depth == 0 {
                        return;
                    }
                    depth -= 1;
                    if depth == 0 {
                        self.next();
                        return;
                    }
                }
                Kind::Punct(x) if x == p(";") && depth == 0 => {
                    self.next();
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    fn item(&mut self, list: &mut Vec<u32>) -> R<()> {
        if self.kind() == Kind::Name(lex::STATIC_ASSERT) {
            return self.static_assert();
        }
        let label = matches!(self.kind(), Kind::Name(sym) if sym >= lex::KEYWORDS)
            && self.ahead(1) == Kind::Punct(p(":"));
        if self.starts_type(0) && !label {
            return self.declaration(list);
        }
        let stmt = self.nested(Self::stmt)?;
        list.push(stmt);
        Ok(())
    }

    fn declaration(&mut self, list: &mut Vec<u32>) -> R<()> {
        let specifiers = self.specifiers()?;
        if self.eat(p(";")) {
            return Ok(());
        }
        loop {
            let at = self.at();
            let (name, ty) = self.declarator(specifiers.ty)?;
            let Some(name) = name else {
                return Err(self.unexpected("a name"));
            };
            if let Some(stmt) = self.variable(name, ty, at, &specifiers)? {
                list.push(stmt);
            }
            if !self.eat(p(",")) {
                break;
            }
        }
        self.need(";")
    }

    fn variable(&mut self, name: Sym, ty: Ty, at: u32, specifiers: &Specifiers) -> R<Option<u32>> {
        let elsewhere = matches!(specifiers.storage, Storage::Typedef | Storage::Extern);
        if elsewhere || self.unit.types.sig(ty).is_some() {
            return self.declare(name, ty, at, specifiers).map(|()| None);
        }
        if self.find_here(name, false).is_some() {
            let message = format!("`{}` is declared twice", self.spell(name));
            return Err(self.wrong(at, message, None));
        }
        if ty.is_void() {
            return Err(self.wrong(at, "a variable cannot be void", None));
        }
        let initialised = self.is(p("="));
        if specifiers.storage == Storage::Static {
            let global = self.anonymous(ty, at, None)?;
            self.bind(name, Name::Global(global));
            if self.eat(p("=")) {
                self.static_initialiser(global)?;
            }
            let ty = self.unit.globals[global as usize].ty;
            if !self.unit.types.complete(ty) {
                return Err(self.wrong(at, "this variable's size is not known", None));
            }
            return Ok(None);
        }
        let local = self.local(ty)?;
        self.bind(name, Name::Local(local));
        let stmt = match initialised {
            true => {
                self.next();
                Some(self.local_initialiser(local)?)
            }
            false => None,
        };
        if !self.unit.types.complete(self.unit.locals[local as usize].ty) {
            return Err(self.wrong(at, "this variable's size is not known", None));
        }
        Ok(stmt)
    }

    pub fn fill(&mut self, local: u32, zero: bool, from: u32, count: u32) -> u32 {
        self.put(Stmt::Fill(local, zero, from, count))
    }

    fn new_label(&mut self) -> u32 {
        self.inside.as_mut().map_or(0, |inside| {
            inside.next_label += 1;
            inside.next_label - 1
        })
    }

    fn label(&mut self, name: Sym, at: u32, defines: bool) -> R<u32> {
        let fresh = self.new_label();
        let Some(inside) = &mut self.inside else {
            return Ok(fresh);
        };
        let label = inside.labels.entry(name).or_insert(Label {
            number: fresh,
            defined: false,
            at,
        });
        let number = label.number;
        if defines {
            if label.defined {
                let message = format!("label `{}` is defined twice", self.spell(name));
                return Err(self.wrong(at, message, None));
            }
            label.defined = true;
        }
        Ok(number)
    }

    /// Statements that can be left by `break`, and by `continue` if it is a loop.
    fn body(&mut self, continues: bool) -> R<u32> {
        if let Some(inside) = &mut self.inside {
            inside.breaks += 1;
            inside.loops += u32::from(continues);
        }
        let stmt = self.nested(Self::stmt);
        if let Some(inside) = &mut self.inside {
            inside.breaks -= 1;
            inside.loops -= u32::from(continues);
        }
        stmt
    }

    fn parenthesised(&mut self) -> R<u32> {
        self.need("(")?;
        let id = self.expr()?;
        let id = self.condition(id)?;
        self.need(")")?;
        Ok(id)
    }

    fn stmt(&mut self) -> R<u32> {
        let at = self.at();
        match self.kind() {
            Kind::Punct(x) if x == p("{") => self.scoped(Self::block),
            Kind::Punct(x) if x == p(";") => {
                self.next();
                Ok(0)
            }
            Kind::Name(sym) if sym < lex::KEYWORDS => self.keyword(sym, at),
            Kind::Name(sym) if self.ahead(1) == Kind::Punct(p(":")) => {
                self.next();
                self.next();
                let number = self.label(sym, at, true)?;
                self.labelled(number)
            }
            _ => self.expression(),
        }
    }

    /// What a label stands in front of; nothing, at a block's end, as C23 has it.
    fn labelled(&mut self, number: u32) -> R<u32> {
        let stmt = match self.is(p("}")) {
            true => 0,
            false if self.starts_type(0) => {
                return Err(self.unexpected("a statement, for example `;`,"));
            }
            false => self.nested(Self::stmt)?,
        };
        Ok(self.put(Stmt::Label(number, stmt)))
    }

    fn expression(&mut self) -> R<u32> {
        let id = self.expr()?;
        let id = match self.ty(id).is_void() {
            true => id,
            false => self.value(id)?,
        };
        self.need(";")?;
        Ok(self.put(Stmt::Expr(id)))
    }

    fn keyword(&mut self, word: Sym, at: u32) -> R<u32> {
        match word {
            lex::SIZEOF | lex::ALIGNOF | lex::TRUE | lex::FALSE | lex::NULL => return self.expression(),
            lex::FIRST_UNSUPPORTED.. => return Err(self.unsupported_word(word)),
            _ if self.starts_type(0) => {
                return Err(self.wrong(
                    at,
                    "a declaration cannot stand here alone",
                    Some("put braces around it"),
                ));
            }
            _ => self.next(),
        }
        match word {
            lex::IF => {
                let cond = self.parenthesised()?;
                let then = self.scoped(|parser| parser.nested(Self::stmt))?;
                let other = match self.eat_word(lex::ELSE) {
                    true => self.scoped(|parser| parser.nested(Self::stmt))?,
                    false => 0,
                };
                Ok(self.put(Stmt::If(cond, then, other)))
            }
            lex::WHILE => {
                let cond = self.parenthesised()?;
                let body = self.scoped(|parser| parser.body(true))?;
                Ok(self.put(Stmt::While(cond, body)))
            }
            lex::DO => {
                let body = self.scoped(|parser| parser.body(true))?;
                if !self.eat_word(lex::WHILE) {
                    return Err(self.unexpected("`while`"));
                }
                let cond = self.parenthesised()?;
                self.need(";")?;
                Ok(self.put(Stmt::DoWhile(body, cond)))
            }
            lex::FOR => self.scoped(Self::for_loop),
            lex::SWITCH => self.switch(),
            lex::CASE => self.case(at),
            lex::DEFAULT => {
                self.need(":")?;
                let label = self.new_label();
                let innermost = self.inside.as_ref().and_then(|i| i.switches.last().copied());
                let Some((switch, _)) = innermost else {
                    return Err(self.wrong(at, "this stands in no switch", None));
                };
                if self.unit.switches[switch as usize]
                    .default
                    .replace(label)
                    .is_some()
                {
                    return Err(self.wrong(at, "this switch has a default already", None));
                }
                self.labelled(label)
            }
            lex::BREAK | lex::CONTINUE => {
                let breaks = word == lex::BREAK;
                let depth = self
                    .inside
                    .as_ref()
                    .map_or(0, |i| if breaks { i.breaks } else { i.loops });
                if depth == 0 {
                    return Err(self.wrong(at, "this stands in nothing that it could leave", None));
                }
                self.need(";")?;
                Ok(self.put(if breaks { Stmt::Break } else { Stmt::Continue }))
            }
            lex::GOTO => {
                if self.is(p("*")) {
                    return Err(self.wrong(at, "goto to an address is not supported", Some("use switch")));
                }
                let name_at = self.at();
                let name = self.name()?;
                let number = self.label(name, name_at, false)?;
                self.need(";")?;
                Ok(self.put(Stmt::Goto(number)))
            }
            lex::RETURN => self.return_stmt(at),
            lex::ELSE => Err(self.wrong(at, "this else belongs to no if", None)),
            _ => Err(self.wrong(at, "this cannot begin a statement", None)),
        }
    }

    fn return_stmt(&mut self, at: u32) -> R<u32> {
        let ret = self.inside.as_ref().map_or(Ty::VOID, |i| i.ret);
        if self.eat(p(";")) {
            if !ret.is_void() {
                return Err(self.wrong(at, "this function returns a value", None));
            }
            return Ok(self.put(Stmt::Return(None)));
        }
        let id = self.expr()?;
        let id = match ret.is_void() {
            // As gcc has it: a void expression may be returned.
            true if self.ty(id).is_void() => id,
            true => return Err(self.wrong(at, "this function returns no value", None)),
            false => self.coerce(id, ret)?,
        };
        self.need(";")?;
        Ok(self.put(Stmt::Return(Some(id))))
    }

    fn for_loop(&mut self) -> R<u32> {
        self.need("(")?;
        let mut first = Vec::new();
        if self.starts_type(0) {
            self.declaration(&mut first)?;
        } else if !self.eat(p(";")) {
            first.push(self.expression()?);
        }
        let cond = match self.is(p(";")) {
            true => None,
            false => {
                let id = self.expr()?;
                Some(self.condition(id)?)
            }
        };
        self.need(";")?;
        let step = match self.is(p(")")) {
            true => None,
            false => {
                let id = self.expr()?;
                Some(if self.ty(id).is_void() {
                    id
                } else {
                    self.value(id)?
                })
            }
        };
        self.need(")")?;
        let body = self.scoped(|parser| parser.body(true))?;
        let first = self.sequence(&first);
        Ok(self.put(Stmt::For(first, cond, step, body)))
    }

    fn switch(&mut self) -> R<u32> {
        let at = self.at();
        self.need("(")?;
        let id = self.expr()?;
        let id = self.value(id)?;
        if !self.ty(id).is_int() {
            return Err(self.wrong(at, "a switch takes an integer", None));
        }
        let id = self.promote(id)?;
        self.need(")")?;
        let number = self.unit.switches.len() as u32;
        self.unit.switches.push(Switch::default());
        let ty = self.ty(id);
        if let Some(inside) = &mut self.inside {
            inside.switches.push((number, ty));
        }
        let body = self.scoped(|parser| parser.body(false));
        if let Some(inside) = &mut self.inside {
            inside.switches.pop();
        }
        let body = body?;
        let mut values: Vec<i64> = self.unit.switches[number as usize]
            .cases
            .iter()
            .map(|c| c.0)
            .collect();
        values.sort_unstable();
        if let Some(pair) = values.windows(2).find(|w| w[0] == w[1]) {
            return Err(self.wrong(
                at,
                format!("this switch has two cases of the value {}", pair[0]),
                None,
            ));
        }
        Ok(self.put(Stmt::Switch(id, body, number)))
    }

    fn case(&mut self, at: u32) -> R<u32> {
        // Cases follow each other often; they are not nested then.
        let (mut at, mut labels) = (at, Vec::new());
        loop {
            let innermost = self.inside.as_ref().and_then(|i| i.switches.last().copied());
            let Some((switch, ty)) = innermost else {
                return Err(self.wrong(at, "this stands in no switch", None));
            };
            let value = self.constant_int()?;
            if self.is(p("...")) {
                return Err(self.wrong(
                    self.at(),
                    "ranges of cases are not supported",
                    Some("write each case"),
                ));
            }
            self.need(":")?;
            let value = super::fold::fit(value, ty, &self.unit.types);
            let label = self.new_label();
            self.unit.switches[switch as usize].cases.push((value, label));
            labels.push(label);
            at = self.at();
            if !self.eat_word(lex::CASE) {
                break;
            }
        }
        let last = labels.pop().unwrap_or(0);
        let stmt = self.labelled(last)?;
        // The others lead to the same place.
        let list: Vec<u32> = labels
            .iter()
            .map(|&l| self.put(Stmt::Label(l, 0)))
            .chain([stmt])
            .collect();
        Ok(self.sequence(&list))
    }

    /// Whether an expression can be a statement of its own in an initialiser: keeps literals in one place.
    pub fn is_string(&self, id: crate::ast::Id) -> bool {
        match self.unit.node(id).expr {
            Expr::Global(g) => {
                let global = &self.unit.globals[g as usize];
                global.name.is_none()
                    && global.bytes.is_some()
                    && self.unit.types.element(global.ty).is_some()
            }
            _ => false,
        }
    }
}
