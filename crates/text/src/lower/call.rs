//! Calls, and functions that stand in the place of their calls.

use super::{Lower, R, Return};
use crate::ast::{Body, Expr, Id};
use crate::ir::{Arg, CallInfo, FRAME, Ins, NONE, Op, Val};
use crate::lower::memory::Mem;
use crate::types::{Shape, Ty};

/// Functions of at most as many expressions stand in the place of their calls, this deep, and in functions of at most
/// as many instructions.
const INLINE_NODES: u32 = 60;
const INLINE_DEPTH: usize = 5;
const INLINE_INTO: usize = 4000;

impl Lower<'_> {
    /// A call. A record that it returns is written to `room` in the frame.
    pub fn call(&mut self, callee: Id, from: u32, count: u32, ty: Ty, room: Option<u32>) -> R<Val> {
        let unit = self.unit;
        self.at = unit.node(callee).at;
        let args = &unit.lists[from as usize..(from + count) as usize];
        let room = match room {
            None if unit.types.is_record(ty) => Some(self.room(unit.types.size(ty).max(1), 8)?),
            room => room,
        };
        if let Expr::Func(func) = self.expr_of(callee)
            && let Some(body) = unit.funcs[func as usize].body
            && self.fits(func, &body)
        {
            return self.inline(func, body, args, ty, room);
        }
        let pointer = match self.expr_of(callee) {
            Expr::Func(_) => NONE,
            _ => self.value(callee)?,
        };
        let mut list = Vec::new();
        if let Some(room) = room {
            let ins = Ins {
                a: FRAME,
                imm: i64::from(room),
                ..Ins::new(Op::Lea)
            };
            list.push(Arg {
                val: self.pure(ins, false)?,
                float: false,
            });
        }
        for &arg in args {
            list.push(self.argument(arg)?);
        }
        let sig_ty = match *unit.types.shape(unit.ty(callee)) {
            Shape::Ptr(to) => to,
            _ => unit.ty(callee),
        };
        let variadic = unit.types.sig(sig_ty).is_some_and(|s| s.variadic);
        let scalar = unit.types.is_scalar(ty);
        let float = ty.is_float();
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
            return Ok(Arg { val, float: false });
        }
        let val = self.value(arg)?;
        // A variable may be written again before the call, by a later argument that stands in the place of its call.
        Ok(Arg {
            val,
            float: ty.is_float(),
        })
    }

    fn fits(&self, func: u32, body: &Body) -> bool {
        body.inline
            && body.nodes <= INLINE_NODES
            && self.inlined.len() <= INLINE_DEPTH
            && !self.inlined.contains(&func)
            && self.f.code.len() <= INLINE_INTO
    }

    /// The function's body here, with places of its own.
    fn inline(&mut self, func: u32, body: Body, args: &[Id], ty: Ty, room: Option<u32>) -> R<Val> {
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
        let end = self.new_label();
        let scalar = self.unit.types.is_scalar(ty);
        let value = if scalar {
            self.variable(ty.is_float())
        } else {
            NONE
        };
        let record = match room {
            Some(room) => {
                let ins = Ins {
                    a: FRAME,
                    imm: i64::from(room),
                    ..Ins::new(Op::Lea)
                };
                self.pure(ins, false)?
            }
            None => NONE,
        };
        let ret = Return {
            value,
            label: Some(end),
            record,
            ty,
        };
        let ret = std::mem::replace(&mut self.ret, ret);
        std::mem::swap(&mut self.places, &mut places);
        self.first_local = body.first_local;
        self.inlined.push(func);
        let (breaks, continues) = (
            std::mem::take(&mut self.breaks),
            std::mem::take(&mut self.continues),
        );
        let (olds, given) = (std::mem::take(&mut self.olds), std::mem::take(&mut self.given));
        self.stmt(body.stmt)?;
        // The last statement's jump to the end is not needed.
        if matches!(self.f.code.last(), Some(last) if last.op == Op::Jmp && last.c == end) {
            self.f.code.pop();
        }
        self.put_label(end)?;
        self.olds = olds;
        self.given = given;
        self.breaks = breaks;
        self.continues = continues;
        self.inlined.pop();
        self.first_local = first;
        self.places = places;
        self.ret = ret;
        Ok(value)
    }

    /// A `return` with its value.
    pub fn leave(&mut self, value: Option<Id>) -> R<()> {
        let ret = self.ret;
        let mut val = NONE;
        if let Some(id) = value {
            if self.unit.types.is_record(ret.ty) {
                let size = self.unit.types.size(ret.ty);
                let from = self.place(id)?;
                self.copy(Mem::at(ret.record), from, size)?;
            } else if ret.ty.is_void() {
                self.effect(id)?;
            } else {
                val = self.value(id)?;
            }
        }
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
