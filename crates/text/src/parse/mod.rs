//! From tokens to a typed [`Unit`]: names, scopes, and what all parts of the parser share.

mod build;
mod call;
mod decl;
mod expr;
mod fold;
mod init;
mod parts;
mod specifiers;
mod stmt;

pub use decl::PARAMS;

use crate::ast::{Body, Func, Stmt, Unit};
use crate::error::{Notes, Stop};
use crate::lex::{Kind, Token, Tokens, p};
use crate::types::{Sym, Ty, Types};
use std::collections::HashMap;

pub type R<T> = Result<T, Stop>;

/// How deep statements, parentheses, initialisers and declarators may stand in each other.
const NESTING: u32 = 150;
/// How deep an expression's tree may be.
const TREE: u16 = 400;
/// Most bytes of data in a text.
pub const DATA: u64 = 16 << 20;

/// What a name stands for.
#[derive(Clone, Copy)]
enum Name {
    Typedef(Ty),
    Local(u32),
    Global(u32),
    Func(u32),
    Const(i64),
    /// A tag: these have names of their own, by number of keywords and all names added.
    Tag(Ty),
}

struct Binding {
    sym: Sym,
    name: Name,
    outer: u32,
    scope: u32,
}

#[derive(Clone, Copy)]
struct Label {
    number: u32,
    defined: bool,
    at: u32,
}

/// The function that is being read.
struct Inside {
    func: u32,
    /// Where its name is, if it asks for that.
    own_name: Option<u32>,
    ret: Ty,
    first_local: u32,
    labels: HashMap<Sym, Label>,
    next_label: u32,
    loops: u32,
    breaks: u32,
    switches: Vec<(u32, Ty)>,
}

pub struct Parser<'a> {
    text: &'a [u8],
    tokens: &'a Tokens,
    p: usize,
    pub unit: Unit,
    notes: &'a mut Notes,
    bindings: Vec<Binding>,
    /// For each name, and behind them each tag, the number of its innermost binding + 1.
    heads: Vec<u32>,
    scope: u32,
    depth: u32,
    inside: Option<Inside>,
    /// Parameters of the declarator that was read last.
    params: Vec<(Option<Sym>, Ty, u32)>,
    /// Bytes of data so far.
    data: u64,
    /// How many lists of an initialiser stand around the present value.
    scope_of_list: u32,
}

/// Reads all declarations of a text.
pub fn parse<'a>(text: &'a [u8], tokens: &'a Tokens, notes: &'a mut Notes) -> Unit {
    let mut unit = Unit {
        types: Types::new(),
        nodes: Vec::with_capacity(tokens.list.len()),
        stmts: Vec::with_capacity(64),
        lists: Vec::with_capacity(64),
        fills: Vec::new(),
        switches: Vec::new(),
        locals: Vec::with_capacity(16),
        parts: Vec::new(),
        funcs: Vec::new(),
        globals: Vec::new(),
    };
    unit.stmts.push(Stmt::Empty);
    let mut parser = Parser {
        text,
        tokens,
        p: 0,
        unit,
        notes,
        bindings: Vec::with_capacity(32),
        heads: vec![0; 2 * tokens.syms()],
        scope: 0,
        depth: 0,
        inside: None,
        params: Vec::new(),
        data: 0,
        scope_of_list: 0,
    };
    while parser.kind() != Kind::End && !parser.notes.full {
        let from = parser.p;
        if parser.external().is_err() {
            parser.recover(from);
        }
    }
    parser.finish();
    parser.unit
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens.list[self.p]
    }

    fn kind(&self) -> Kind {
        self.tokens.list[self.p].kind
    }

    fn ahead(&self, n: usize) -> Kind {
        let last = self.tokens.list.len() - 1;
        self.tokens.list[(self.p + n).min(last)].kind
    }

    fn at(&self) -> u32 {
        self.token().at
    }

    fn next(&mut self) {
        if self.kind() != Kind::End {
            self.p += 1;
        }
    }

    fn is(&self, punct: u32) -> bool {
        self.kind() == Kind::Punct(punct)
    }

    fn eat(&mut self, punct: u32) -> bool {
        let found = self.is(punct);
        if found {
            self.p += 1;
        }
        found
    }

    fn eat_word(&mut self, word: Sym) -> bool {
        let found = self.kind() == Kind::Name(word);
        if found {
            self.p += 1;
        }
        found
    }

    fn need(&mut self, punct: &'static str) -> R<()> {
        if self.eat(p(punct)) {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{punct}`")))
    }

    /// The present token is not what was expected.
    fn unexpected(&mut self, wanted: &str) -> Stop {
        let token = self.token();
        let found = match token.kind {
            Kind::End => "the end of the text".to_string(),
            _ => {
                let from = token.at as usize;
                let shown = &self.text[from..(from + token.len.min(40) as usize).min(self.text.len())];
                format!("`{}`", String::from_utf8_lossy(shown))
            }
        };
        let message = format!("{wanted} is expected here, not {found}");
        self.notes.note(token.at, token.len, message, None)
    }

    fn wrong(&mut self, at: u32, message: impl Into<String>, remedy: Option<&'static str>) -> Stop {
        let found = self.tokens.list.partition_point(|t| t.at < at);
        let width = self
            .tokens
            .list
            .get(found)
            .filter(|t| t.at == at)
            .map_or(1, |t| t.len);
        self.notes.note(at, width, message.into(), remedy)
    }

    fn spell(&self, sym: Sym) -> String {
        let mut name = self.tokens.name(self.text, sym).to_string();
        if name.len() > 60 {
            name.truncate(60);
            name.push('…');
        }
        name
    }

    /// A name that is no keyword.
    fn name(&mut self) -> R<Sym> {
        match self.kind() {
            Kind::Name(sym) if sym >= crate::lex::KEYWORDS => {
                self.p += 1;
                Ok(sym)
            }
            Kind::Name(sym) if sym >= crate::lex::FIRST_UNSUPPORTED => Err(self.unsupported_word(sym)),
            _ => Err(self.unexpected("a name")),
        }
    }

    fn unsupported_word(&mut self, sym: Sym) -> Stop {
        let message = format!("`{}` is not supported", self.spell(sym));
        self.wrong(self.at(), message, None)
    }

    /// Runs one level deeper.
    fn nested<T>(&mut self, what: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        if self.depth >= NESTING {
            let message = format!("this stands more than {NESTING} deep in braces or parentheses");
            return Err(self
                .notes
                .last(self.at(), message, Some("divide it into functions or statements")));
        }
        self.depth += 1;
        let result = what(self);
        self.depth -= 1;
        if self.unit.types.too_deep && !self.notes.full {
            let message = "this type has more than 64 types in it".to_string();
            return Err(self.notes.last(self.at(), message, None));
        }
        result
    }

    fn head(&self, sym: Sym, tag: bool) -> usize {
        sym as usize + if tag { self.tokens.syms() } else { 0 }
    }

    fn bind(&mut self, sym: Sym, name: Name) {
        let head = self.head(sym, matches!(name, Name::Tag(_)));
        self.bindings.push(Binding {
            sym,
            name,
            outer: self.heads[head],
            scope: self.scope,
        });
        self.heads[head] = self.bindings.len() as u32;
    }

    fn find(&self, sym: Sym, tag: bool) -> Option<&Binding> {
        let number = self.heads[self.head(sym, tag)].checked_sub(1)?;
        Some(&self.bindings[number as usize])
    }

    /// What a name stands for in the present scope itself.
    fn find_here(&self, sym: Sym, tag: bool) -> Option<Name> {
        self.find(sym, tag)
            .filter(|b| b.scope == self.scope)
            .map(|b| b.name)
    }

    fn scoped<T>(&mut self, what: impl FnOnce(&mut Self) -> R<T>) -> R<T> {
        let mark = self.bindings.len();
        self.scope += 1;
        let result = what(self);
        self.scope -= 1;
        while self.bindings.len() > mark {
            if let Some(b) = self.bindings.pop() {
                let head = self.head(b.sym, matches!(b.name, Name::Tag(_)));
                self.heads[head] = b.outer;
            }
        }
        result
    }

    /// After an error outside of functions: on to behind the next `;` or the `}` of what began.
    fn recover(&mut self, from: usize) {
        self.depth = 0;
        self.inside = None;
        if self.p == from {
            self.next();
        }
        let mut depth = self.tokens.list[from..self.p]
            .iter()
            .fold(0i32, |d, t| match t.kind {
                Kind::Punct(x) if x == p("{") => d + 1,
                Kind::Punct(x) if x == p("}") => d - 1,
                _ => d,
            });
        loop {
            match self.kind() {
                Kind::End => return,
                Kind::Punct(x) if x == p("{") => depth += 1,
                Kind::Punct(x) if x == p("}") => {
                    depth -= 1;
                    if depth <= 0 {
                        self.next();
                        self.eat(p(";"));
                        return;
                    }
                }
                Kind::Punct(x) if x == p(";") && depth <= 0 => {
                    self.next();
                    return;
                }
                _ => {}
            }
            self.next();
        }
    }

    /// What can only be said when all was read: functions that were declared and not defined are imports.
    fn finish(&mut self) {
        let mut imports = 0;
        for i in 0..self.unit.funcs.len() {
            let Func {
                body,
                used,
                internal,
                at,
                name,
                ..
            } = self.unit.funcs[i];
            if body.is_none() && used {
                if internal {
                    let message = format!("static function `{}` is used, but not defined", self.spell(name));
                    self.wrong(at, message, None);
                }
                self.unit.funcs[i].import = Some(imports);
                imports += 1;
            }
        }
        for i in 0..self.unit.globals.len() {
            let global = &self.unit.globals[i];
            let (at, name) = (global.at, global.name);
            let ty = global.ty;
            if !global.defined && global.used {
                let message = format!(
                    "`{}` is declared, but not defined",
                    name.map_or(String::new(), |n| self.spell(n))
                );
                self.wrong(
                    at,
                    message,
                    Some("define it here: data of others cannot be reached by name"),
                );
            } else if global.defined && !self.unit.types.complete(ty) {
                self.wrong(at, "this object's size is not known", None);
            }
        }
        self.place_data();
    }

    /// Gives all data their offsets.
    fn place_data(&mut self) {
        let mut end = 0u64;
        for global in &mut self.unit.globals {
            if !global.defined {
                continue;
            }
            let (size, align) = (self.unit.types.size(global.ty), self.unit.types.align(global.ty));
            end = end.next_multiple_of(u64::from(align.max(1)));
            global.offset = end as u32;
            end += size;
            if end > DATA {
                let message = format!("this text has more than {} MiB of data", DATA >> 20);
                self.notes
                    .note(global.at, 1, message, Some("let the host allocate large objects"));
                return;
            }
        }
        self.data = end;
    }
}

impl Inside {
    fn body(&self, unit: &Unit, params: u32, stmt: u32, nodes: usize) -> Body {
        Body {
            first_local: self.first_local,
            locals: unit.locals.len() as u32 - self.first_local,
            params,
            labels: self.next_label,
            stmt,
            nodes: (unit.nodes.len() - nodes) as u32,
            inline: self.next_label == 0,
            recursive: false,
            sums: false,
        }
    }
}
