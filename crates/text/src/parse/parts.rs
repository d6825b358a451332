//! What is to be known of a whole function: whether it calls itself, and which records need no memory.

use super::Parser;
use crate::ast::{Bin, Body, Expr, Id, Stmt};
use crate::types::Ty;

/// Most members of a record that are values of their own.
const PARTS: usize = 16;

impl Parser<'_> {
    /// Looks at the expressions and statements of a function, which are the last ones.
    pub fn look_over(&mut self, func: u32, body: &mut Body, nodes: usize, stmts: usize) {
        let unit = &self.unit;
        let is_self = |id: Id| matches!(unit.node(id).expr, Expr::Func(f) if f == func);
        for id in nodes as Id..unit.nodes.len() as Id {
            match unit.node(id).expr {
                Expr::Call(callee, ..) => body.recursive |= is_self(callee),
                Expr::Binary(Bin::Add, a, b) if body.recursive => {
                    let calls = |id: Id| matches!(unit.node(id).expr, Expr::Call(f, ..) if is_self(f));
                    body.sums |= calls(a) || calls(b);
                }
                _ => {}
            }
        }
        let record = |local: u32| unit.types.is_record(unit.locals[local as usize].ty);
        let own = body.first_local + body.params..body.first_local + body.locals;
        if own.clone().any(record) {
            self.find_parts(*body, nodes, stmts);
        }
    }

    /// Finds records of which only scalar members are used, each always by the same type.
    fn find_parts(&mut self, body: Body, nodes: usize, stmts: usize) {
        let unit = &self.unit;
        let mut found: Vec<Option<Vec<(u32, Ty)>>> = (0..body.locals)
            .map(|i| {
                let ty = unit.locals[(body.first_local + i) as usize].ty;
                (i >= body.params && unit.types.is_record(ty) && !ty.is_volatile()).then(Vec::new)
            })
            .collect();
        let number = |local: u32| (local - body.first_local) as usize;
        let whole = |id: Id, found: &mut Vec<Option<_>>| {
            if let Some((local, _)) = unit.part(id) {
                found[number(local)] = None;
            }
        };
        let member = |local: u32, offset: u32, ty: Ty, found: &mut Vec<Option<Vec<_>>>| {
            let place = &mut found[number(local)];
            let Some(list) = place else { return };
            let end = |(at, ty): &(u32, Ty)| *at + unit.types.size(*ty) as u32;
            let new = (offset, ty.plain());
            if list.contains(&new) {
                return;
            }
            if ty.is_volatile()
                || list.len() >= PARTS
                || list.iter().any(|old| old.0 < end(&new) && new.0 < end(old))
            {
                *place = None;
                return;
            }
            list.push(new);
        };
        let in_register = |ty: Ty| unit.types.is_scalar(ty) && !ty.is_long_double();
        for id in nodes as Id..unit.nodes.len() as Id {
            let node = unit.node(id);
            let scalar = |id| in_register(unit.ty(id));
            match node.expr {
                // Of bit-fields the whole is used.
                Expr::Member(of, _, Some(_)) => whole(of, &mut found),
                Expr::Member(..) if scalar(id) => {
                    if let Some((local, offset)) = unit.part(id) {
                        member(local, offset, node.ty, &mut found);
                    }
                }
                Expr::Member(..) if node.ty.is_long_double() => whole(id, &mut found),
                Expr::Member(..) => {}
                Expr::Addr(of) => whole(of, &mut found),
                Expr::Literal(local, _) => found[number(local)] = None,
                expr => unit.each_operand(expr, |id| {
                    if !scalar(id) {
                        whole(id, &mut found);
                    }
                }),
            }
        }
        for stmt in &unit.stmts[stmts..] {
            match *stmt {
                Stmt::Expr(id) | Stmt::Return(Some(id)) if !unit.types.is_scalar(unit.ty(id)) => {
                    whole(id, &mut found)
                }
                Stmt::Fill(local, _, from, count) => {
                    for fill in &unit.fills[from as usize..(from + count) as usize] {
                        if !in_register(fill.ty) {
                            whole(fill.value, &mut found);
                        }
                        match fill.bits.is_some() || !in_register(fill.ty) {
                            true => found[number(local)] = None,
                            false => member(local, fill.offset, fill.ty, &mut found),
                        }
                    }
                }
                _ => {}
            }
        }
        for (i, list) in found.into_iter().enumerate() {
            if let Some(list) = list {
                let from = self.unit.parts.len() as u32;
                self.unit.locals[body.first_local as usize + i].parts = (from, list.len() as u32);
                self.unit.parts.extend(list);
            }
        }
    }
}
