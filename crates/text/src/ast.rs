//! A text that was understood: typed expressions, statements, functions and data.

use crate::extended::Extended;
use crate::types::{Bits, Sym, Ty, Types};

/// Number of an expression in [`Unit::nodes`].
pub type Id = u32;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bin {
    Add,
    Sub,
    Mul,
    Div,
    Rem,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Lt,
    Gt,
    Le,
    Ge,
    Eq,
    Ne,
}

/// What an expression is. Operands have been converted; places (lvalues) are read where a value is wanted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Expr {
    Int(i64),
    Float(f64),
    Long(Extended),
    /// Places.
    Local(u32),
    Global(u32),
    Deref(Id),
    Member(Id, u32, Option<Bits>),
    /// A compound literal: the statement that fills the local.
    Literal(u32, u32),
    /// A function.
    Func(u32),
    /// The address of a place, or of a function.
    Addr(Id),
    Neg(Id),
    Not(Id),
    LogNot(Id),
    Binary(Bin, Id, Id),
    /// A pointer, an index of 64 bits, and the size of what is pointed to.
    PtrAdd(Id, Id, u32),
    PtrDiff(Id, Id, u32),
    And(Id, Id),
    Or(Id, Id),
    Cond(Id, Id, Id),
    Comma(Id, Id),
    Assign(Id, Id),
    /// A place, and its new value, in which [`Expr::Old`] is the present one. The value of it all is the new one, or the
    /// old one.
    Update(Id, Id, bool),
    Old,
    /// An update whose right side is computed first, and stands in it as [`Expr::Given`]: what that calls may write the place.
    Before(Id, Id),
    Given,
    Convert(Id),
    /// Callee (a function, or a pointer to one), and where its arguments are in [`Unit::lists`].
    Call(Id, u32, u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub expr: Expr,
    pub ty: Ty,
    /// Where it is in the text.
    pub at: u32,
    /// How deep expressions stand in it.
    pub depth: u16,
    /// It calls a function.
    pub calls: bool,
}

#[derive(Clone, Copy, Debug)]
pub enum Stmt {
    Empty,
    Expr(Id),
    /// Statements in [`Unit::lists`].
    Block(u32, u32),
    If(Id, u32, u32),
    While(Id, u32),
    DoWhile(u32, Id),
    /// First statement, condition, step, body.
    For(u32, Option<Id>, Option<Id>, u32),
    /// Value, body, number in [`Unit::switches`].
    Switch(Id, u32, u32),
    Label(u32, u32),
    Goto(u32),
    Break,
    Continue,
    Return(Option<Id>),
    /// Fills a local: whether it is all zeroed first, and values in [`Unit::fills`].
    Fill(u32, bool, u32, u32),
}

/// One value of an initialiser.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub offset: u32,
    pub ty: Ty,
    pub bits: Option<Bits>,
    pub value: Id,
}

#[derive(Default, Debug)]
pub struct Switch {
    /// Values, as they are in the switch's type, and labels.
    pub cases: Vec<(i64, u32)>,
    pub default: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub struct Local {
    pub ty: Ty,
    /// Its address is taken, so it has to be in memory.
    pub in_memory: bool,
    /// Of a record of which only members are used: where they are in [`Unit::parts`], and how many.
    pub parts: (u32, u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Body {
    /// The locals are `first_local..first_local + locals` of [`Unit::locals`], parameters first.
    pub first_local: u32,
    pub locals: u32,
    pub params: u32,
    pub labels: u32,
    pub stmt: u32,
    /// Expressions in it: its size.
    pub nodes: u32,
    /// It can be put in the place of a call: it has no labels and no switches.
    pub inline: bool,
    /// It calls itself, and adds something to what that returns.
    pub recursive: bool,
    pub sums: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Func {
    pub name: Sym,
    pub ty: Ty,
    pub at: u32,
    pub internal: bool,
    pub body: Option<Body>,
    /// Number among the imports, if it is one that is used.
    pub import: Option<u32>,
    pub used: bool,
}

/// Where an address in data leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    Global(u32),
    Func(u32),
}

#[derive(Clone, Debug)]
pub struct Global {
    pub name: Option<Sym>,
    pub ty: Ty,
    pub at: u32,
    /// Bytes, or `None` for zeroes.
    pub bytes: Option<Vec<u8>>,
    /// Offset in it, where that leads, and what is added.
    pub addresses: Vec<(u32, Target, i64)>,
    /// It is here, not only declared.
    pub defined: bool,
    pub used: bool,
    pub offset: u32,
}

/// A whole text.
pub struct Unit {
    pub types: Types,
    pub nodes: Vec<Node>,
    pub stmts: Vec<Stmt>,
    pub lists: Vec<u32>,
    pub fills: Vec<Fill>,
    pub switches: Vec<Switch>,
    pub locals: Vec<Local>,
    /// Offsets and types of members that are used by themselves.
    pub parts: Vec<(u32, Ty)>,
    pub funcs: Vec<Func>,
    pub globals: Vec<Global>,
}

impl Unit {
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id as usize]
    }

    pub fn ty(&self, id: Id) -> Ty {
        self.nodes[id as usize].ty
    }

    /// The local that an expression is or is a member of, and where in it.
    pub fn part(&self, mut id: Id) -> Option<(u32, u32)> {
        let mut at = 0;
        loop {
            match self.nodes[id as usize].expr {
                Expr::Local(local) => return Some((local, at)),
                Expr::Member(of, offset, None) => (id, at) = (of, at + offset),
                _ => return None,
            }
        }
    }

    /// The expressions of which one consists.
    pub fn each_operand(&self, expr: Expr, mut what: impl FnMut(Id)) {
        match expr {
            Expr::Int(_)
            | Expr::Float(_)
            | Expr::Long(_)
            | Expr::Local(_)
            | Expr::Global(_)
            | Expr::Func(_)
            | Expr::Old
            | Expr::Given
            | Expr::Literal(..) => {}
            Expr::Deref(a)
            | Expr::Member(a, ..)
            | Expr::Addr(a)
            | Expr::Neg(a)
            | Expr::Not(a)
            | Expr::LogNot(a)
            | Expr::Convert(a) => what(a),
            Expr::Binary(_, a, b)
            | Expr::PtrAdd(a, b, _)
            | Expr::PtrDiff(a, b, _)
            | Expr::And(a, b)
            | Expr::Or(a, b)
            | Expr::Comma(a, b)
            | Expr::Assign(a, b)
            | Expr::Before(a, b)
            | Expr::Update(a, b, _) => [a, b].into_iter().for_each(what),
            Expr::Cond(a, b, c) => [a, b, c].into_iter().for_each(what),
            Expr::Call(callee, from, count) => {
                what(callee);
                self.lists[from as usize..(from + count) as usize]
                    .iter()
                    .for_each(|&id| what(id));
            }
        }
    }

    /// The value, if it is a constant integer.
    pub fn int(&self, id: Id) -> Option<i64> {
        match self.nodes[id as usize].expr {
            Expr::Int(value) => Some(value),
            _ => None,
        }
    }
}
