//! Calls, and functions that stand in the place of their calls.

use super::{Activation, Lower, Place, R, Return};
use crate::ast::{Bin, Body, Expr, Id};
use crate::extended::Extended;
use crate::ir::{Arg, CallInfo, FRAME, Ins, NONE, Op, Val};
use crate::lower::memory::Mem;
use crate::types::{Shape, Ty};

/// Functions of at most as many expressions stand in the place of their calls, this deep, and in functions of at most
/// as many instructions.
const INLINE_NODES: u32 = 60;
const INLINE_DEPTH: usize = 5;
const INLINE_INTO: usize = 4000;
/// Functions of at most as many expressions stand in themselves, all together so often.
const AGAIN_NODES: u32 = 40;
pub const AGAIN: u32 = 4;

impl Lower<'_> {
    /// A call. A record that it returns is written to `room` in the frame.
    pub fn call(&mut self, callee: Id, from: u32, count: u32, ty: Ty, room: Option<u32>) -> R<Val> {
        let unit = self.unit;
        self.at = unit.node(callee).at;
        let args = &unit.lists[from as usize..(from + count) as usize];
        let room = match room {
            None if unit.types.is_record(ty) => Some(self.record_room(ty)?),
            room => room,
        };
        if let Expr::Func(func) = self.expr_of(callee)
            && let Some(body) = unit.funcs[func as usize].body
            && self.fits(func, &body)
        {
            return self.inline(func, body, args, ty, room, false);
        }
        let pointer = match self.expr_of(callee) {
            Expr::Func(_) => NONE,
            _ => self.value(callee)?,
        };
        let mut list = Vec::new();
        if let Some(room) = room
            && unit.types.is_record(ty)
        {
            let ins = Ins {
                a: FRAME,
                imm: i64::from(room),
                ..Ins::new(Op::Lea)
            };
            list.push(Arg::new(self.pure(ins, false)?, ty));
        }
        for &arg in args {
            list.push(self.argument(arg)?);
        }
        let sig_ty = match *unit.types.shape(unit.ty(callee)) {
            Shape::Ptr(to) => to,
            _ => unit.ty(callee),
        };
        let variadic = unit.types.sig(sig_ty).is_some_and(|s| s.variadic);
        let scalar = unit.types.is_scalar(ty) && !ty.is_long_double();
        let float = scalar && ty.is_float();
        self.f.calls.push(CallInfo {
            from: self.f.args.len() as u32,
            count: list.len() as u32,
            float,
            variadic,
        });
        self.f.args.extend(list);
        let (op, imm) = match self.expr_of(callee) {
            Expr::Func(func) => match unit.funcs[func as usize].import {
                Some(import) => (Op::CallImport, import),
                None => (Op::Call, func),
            },
            _ => (Op::CallPtr, 0),
        };
        let result = if scalar { self.new_value(float, true) } else { NONE };
        let number = self.f.calls.len() as u32 - 1;
        self.push(Ins {
            d: result,
            a: pointer,
            b: number,
            imm: i64::from(imm),
            ..Ins::new(op)
        })?;
        self.memory_changed();
        if let Some(room) = room
            && ty.is_long_double()
        {
            self.long_returned(Mem::frame(room))?;
            return Ok(NONE);
        }
        self.narrowed(result, ty)
    }

    /// A narrow result of somebody else has anything above its own bits.
    fn narrowed(&mut self, val: Val, ty: Ty) -> R<Val> {
        match self.unit.types.size(ty) as u8 {
            size @ (1 | 2) if ty.is_int() => self.extend(val, size, ty.signed(), 4),
            _ => Ok(val),
        }
    }

    fn argument(&mut self, arg: Id) -> R<Arg> {
        let ty = self.unit.ty(arg);
        if self.unit.types.is_record(ty) {
            let mem = self.place(arg)?;
            let ins = Ins {
                a: mem.base,
                b: mem.index,
                sc: mem.scale,
                imm: i64::from(mem.offset),
                ..Ins::new(Op::Lea)
            };
            let val = match (mem.base, mem.index) {
                (crate::ir::DATA, NONE) => self.data_address(mem.offset)?,
                _ => self.pure(
                    Ins {
                        w: if mem.base == FRAME { 8 } else { 4 },
                        ..ins
                    },
                    false,
                )?,
            };
            return Ok(Arg::new(val, ty));
        }
        if ty.is_long_double() {
            let mem = self.long_own(arg)?;
            return Ok(Arg::new(self.lea(mem)?, ty));
        }
        let val = self.value(arg)?;
        // A variable may be written again before the call, by a later argument that stands in the place of its call.
        Ok(Arg::new(val, ty))
    }

    fn fits(&self, func: u32, body: &Body) -> bool {
        let fits = body.inline && self.active.len() <= INLINE_DEPTH && self.f.code.len() <= INLINE_INTO;
        match self.active.iter().any(|a| a.func == func) {
            // In themselves only: who calls them from elsewhere has them once.
            true => fits && body.nodes <= AGAIN_NODES && self.again > 0 && self.active[0].func == func,
            false => fits && body.nodes <= INLINE_NODES,
        }
    }

    /// What a function starts with that returns what it adds to the result of a call of itself.
    pub fn sum(&mut self, body: Body, ty: Ty) -> R<Val> {
        if !body.sums || !ty.is_int() || self.unit.types.size(ty) < 4 {
            return Ok(NONE);
        }
        let sum = self.variable(false);
        self.push(Ins {
            d: sum,
            ..Ins::new(Op::MovI)
        })?;
        Ok(sum)
    }

    /// Notes which function's statements come, and that it may begin anew here.
    pub fn activate(&mut self, func: u32, body: Body, tail: bool, outermost: bool) -> R<()> {
        let in_memory = self.places.iter().any(|p| matches!(p, Place::Frame(_)));
        let params: Option<Vec<Val>> = match in_memory {
            true => None,
            false => self.places[..body.params as usize]
                .iter()
                .map(|place| match place {
                    Place::Value(val) => Some(*val),
                    _ => None,
                })
                .collect(),
        };
        let again = match params {
            Some(params) if outermost || body.recursive => {
                let head = self.new_label();
                self.put_top(head)?;
                Some((head, params))
            }
            _ => None,
        };
        self.active.push(Activation {
            func,
            again,
            tail,
            in_memory,
        });
        Ok(())
    }

    /// The function around here that may begin anew instead of being called by what is returned.
    fn beginner(&self, func: u32) -> Option<usize> {
        for (i, active) in self.active.iter().enumerate().rev() {
            if active.func == func {
                return active.again.is_some().then_some(i);
            }
            // What is left here may be pointed to by what is handed on.
            if !active.tail || active.in_memory {
                return None;
            }
        }
        None
    }

    /// Writes the parameters of a function around here, and goes to where it begins.
    fn begin_anew(&mut self, number: usize, args: &[Id]) -> R<()> {
        let Some((head, params)) = self.active[number].again.clone() else {
            return Ok(());
        };
        let mut vals = Vec::new();
        for (&arg, &param) in args.iter().zip(&params) {
            let float = self.unit.ty(arg).is_float();
            let mut val = self.value(arg)?;
            if val != param && !self.temps[val as usize] {
                // A variable that may be a parameter, which is written before it is read.
                let copy = self.new_value(float, true);
                let op = if float { Op::FMov } else { Op::Mov };
                self.push(Ins {
                    d: copy,
                    a: val,
                    ..Ins::new(op)
                })?;
                val = copy;
            }
            vals.push((param, val, float));
        }
        for (param, val, float) in vals {
            self.set(param, val, float)?;
        }
        self.push(Ins {
            c: head,
            ..Ins::new(Op::Jmp)
        })
    }

    /// A call whose result is returned as it is: its function.
    fn called(&self, id: Id) -> Option<(u32, &[Id])> {
        let unit = self.unit;
        match self.expr_of(id) {
            Expr::Call(callee, from, count) => match self.expr_of(callee) {
                Expr::Func(func) => Some((func, &unit.lists[from as usize..(from + count) as usize])),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether what is returned may be a call that begins a function around here anew.
    fn returns_call(&self, id: Id) -> bool {
        match self.expr_of(id) {
            Expr::Cond(_, a, b) => self.returns_call(a) || self.returns_call(b),
            Expr::Binary(Bin::Add, a, b) => {
                self.ret.sum != NONE && [a, b].into_iter().any(|id| self.begins(id).is_some())
            }
            Expr::Call(..) => self.called(id).is_some(),
            _ => false,
        }
    }

    fn begins(&self, id: Id) -> Option<usize> {
        self.beginner(self.called(id)?.0)
    }

    /// The function's body here, with places of its own. `tail`: what it returns is returned here.
    fn inline(
        &mut self,
        func: u32,
        body: Body,
        args: &[Id],
        ty: Ty,
        room: Option<u32>,
        tail: bool,
    ) -> R<Val> {
        if self.active.iter().any(|a| a.func == func) {
            self.again -= 1;
        }
        // The arguments are computed among the caller's locals, and the places are made before those are left.
        let (first, mut places) = (self.first_local, std::mem::take(&mut self.places));
        self.enter(body)?;
        std::mem::swap(&mut self.places, &mut places);
        self.first_local = first;
        for (i, &arg) in args.iter().enumerate() {
            let arg = self.argument(arg)?;
            std::mem::swap(&mut self.places, &mut places);
            let done = self.parameter(body, i as u32, arg.val, false);
            std::mem::swap(&mut self.places, &mut places);
            done?;
        }
        let mut ret = self.ret;
        let end = self.new_label();
        if !tail {
            let sum = self.sum(body, ty)?;
            let value = match () {
                () if sum != NONE => sum,
                () if ty.is_long_double() => NONE,
                () if self.unit.types.is_scalar(ty) => self.variable(ty.is_float()),
                () => NONE,
            };
            let record = match room {
                Some(room) if self.unit.types.is_record(ty) => {
                    let ins = Ins {
                        a: FRAME,
                        imm: i64::from(room),
                        ..Ins::new(Op::Lea)
                    };
                    self.pure(ins, false)?
                }
                _ => NONE,
            };
            ret = Return {
                value,
                label: Some(end),
                record,
                long: room.unwrap_or(0),
                ty,
                sum,
            };
        }
        let value = ret.value;
        let at = self.at;
        let ret = std::mem::replace(&mut self.ret, ret);
        std::mem::swap(&mut self.places, &mut places);
        self.first_local = body.first_local;
        self.activate(func, body, tail, false)?;
        let (breaks, continues) = (
            std::mem::take(&mut self.breaks),
            std::mem::take(&mut self.continues),
        );
        let (olds, given) = (std::mem::take(&mut self.olds), std::mem::take(&mut self.given));
        let (long_olds, long_given) = (
            std::mem::take(&mut self.long_olds),
            std::mem::take(&mut self.long_given),
        );
        self.stmt(body.stmt)?;
        if tail {
            self.return_nothing()?;
        } else {
            // The last statement's jump to the end is not needed.
            if matches!(self.f.code.last(), Some(last) if last.op == Op::Jmp && last.c == end) {
                self.f.code.pop();
            }
            self.put_label(end)?;
        }
        self.olds = olds;
        self.given = given;
        self.long_olds = long_olds;
        self.long_given = long_given;
        self.breaks = breaks;
        self.continues = continues;
        self.active.pop();
        self.first_local = first;
        self.places = places;
        self.ret = ret;
        self.at = at;
        Ok(value)
    }

    /// The end of a function that stands in the place of what is returned: C leaves open what it gives.
    fn return_nothing(&mut self) -> R<()> {
        if self.f.code.last().is_some_and(Ins::ends) {
            return Ok(());
        }
        let ty = self.ret.ty;
        if ty.is_long_double() {
            let zero = self.long_constant(Extended::ZERO)?;
            return self.hand_long_over(zero);
        }
        let val = match ty {
            _ if ty.is_void() => NONE,
            _ if ty.is_float() => self.float_constant(0.0, ty)?,
            _ => self.integer(0)?,
        };
        self.hand_back(val)
    }

    /// A `return` with its value.
    pub fn leave(&mut self, value: Option<Id>) -> R<()> {
        let ret = self.ret;
        let Some(id) = value else {
            return self.hand_back(NONE);
        };
        if self.unit.types.is_record(ret.ty) {
            let size = self.unit.types.size(ret.ty);
            let from = self.place(id)?;
            self.copy(Mem::at(ret.record), from, size)?;
            return self.hand_back(NONE);
        }
        if ret.ty.is_void() {
            self.effect(id)?;
            return self.hand_back(NONE);
        }
        self.give(id)
    }

    /// Returns a scalar; a call of the function itself that is returned goes to its beginning.
    fn give(&mut self, id: Id) -> R<()> {
        let unit = self.unit;
        match self.expr_of(id) {
            Expr::Cond(cond, a, b) if self.returns_call(id) => {
                let other = self.new_label();
                self.branch(cond, other, false)?;
                self.give(a)?;
                self.put_label(other)?;
                return self.give(b);
            }
            Expr::Binary(Bin::Add, a, b) if self.ret.sum != NONE => {
                let (add, call) = match (self.begins(b), self.begins(a)) {
                    (Some(_), _) => (a, b),
                    (None, Some(_)) => (b, a),
                    _ => return self.give_value(id),
                };
                self.add_to_sum_value(add)?;
                return self.give(call);
            }
            Expr::Call(callee, from, count) => {
                let args = &unit.lists[from as usize..(from + count) as usize];
                let Expr::Func(func) = self.expr_of(callee) else {
                    return self.give_value(id);
                };
                if let Some(number) = self.beginner(func) {
                    return self.begin_anew(number, args);
                }
                if let Some(body) = unit.funcs[func as usize].body
                    && self.fits(func, &body)
                    && !self.active.iter().any(|a| a.func == func)
                {
                    self.at = unit.node(callee).at;
                    return self.inline(func, body, args, self.ret.ty, None, true).map(|_| ());
                }
            }
            _ => {}
        }
        self.give_value(id)
    }

    fn give_value(&mut self, id: Id) -> R<()> {
        if self.ret.ty.is_long_double() {
            let val = self.long(id)?;
            return self.hand_long_over(val);
        }
        if self.ret.sum != NONE && self.unit.int(id).is_some() {
            self.add_to_sum_value(id)?;
            return self.hand_sum_back();
        }
        let val = self.value(id)?;
        self.hand_back(val)
    }

    /// Adds what may be a constant.
    fn add_to_sum_value(&mut self, id: Id) -> R<()> {
        let w = self.width(self.ret.ty);
        let short = |value: i64| if w == 4 { i64::from(value as i32) } else { value };
        match self.unit.int(id).map(short) {
            Some(0) => Ok(()),
            Some(value) if i64::from(value as i32) == value => self.push(Ins {
                d: self.ret.sum,
                a: self.ret.sum,
                imm: value,
                w,
                ..Ins::new(Op::Add)
            }),
            _ => {
                let val = self.value(id)?;
                self.add_to_sum(val)
            }
        }
    }

    fn add_to_sum(&mut self, val: Val) -> R<()> {
        self.push(Ins {
            d: self.ret.sum,
            a: self.ret.sum,
            b: val,
            w: self.width(self.ret.ty),
            ..Ins::new(Op::Add)
        })
    }

    fn hand_back(&mut self, val: Val) -> R<()> {
        if val != NONE && self.ret.sum != NONE {
            self.add_to_sum(val)?;
            return self.hand_sum_back();
        }
        self.hand_over(val)
    }

    fn hand_sum_back(&mut self) -> R<()> {
        self.hand_over(self.ret.sum)
    }

    pub fn hand_long_over(&mut self, val: Mem) -> R<()> {
        let ret = self.ret;
        match ret.label {
            Some(label) => {
                self.long_move(Mem::frame(ret.long), val)?;
                self.jump(label)
            }
            None => {
                self.long_return(val)?;
                self.push(Ins::new(Op::Ret))
            }
        }
    }

    fn hand_over(&mut self, val: Val) -> R<()> {
        let ret = self.ret;
        let float = ret.ty.is_float();
        match ret.label {
            Some(label) => {
                if val != NONE {
                    self.set(ret.value, val, float)?;
                }
                self.jump(label)
            }
            None => {
                let w = if val == NONE { 8 } else { self.width(ret.ty) };
                let op = if float && val != NONE { Op::FRet } else { Op::Ret };
                self.push(Ins {
                    a: val,
                    w,
                    ..Ins::new(op)
                })
            }
        }
    }
}
