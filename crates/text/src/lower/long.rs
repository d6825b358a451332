//! `long double`: its values are in memory, and in the x87 unit only from one instruction to the next ones.
//!
//! Each operation loads its operands from where they are, and stores its result to a slot of the frame. So nothing is in the unit
//! where a call, a branch or a label stands.

use super::cond::float_order;
use super::memory::Mem;
use super::{Lower, R};
use crate::ast::{Bin, Expr, Id};
use crate::extended::Extended;
use crate::ir::{FRAME, Ins, NONE, Op, Val, cc};
use crate::types::Ty;

/// Bytes of the number in memory.
const WIDTH: u8 = 10;
/// 2 to the power of 64.
const WRAP: Extended = Extended {
    exponent: 16383 + 64,
    mantissa: 1 << 63,
};
/// The exponent of 1, and that of numbers whose mantissa is what they are.
const ONE: i64 = 16383;
const WHOLE: i64 = ONE + 63;

impl Lower<'_> {
    /// A place for a value, until the statement is over.
    fn long_slot(&mut self) -> R<u32> {
        if self.slots_used == self.slots.len() {
            let slot = self.room(16, 16)?;
            self.slots.push(slot);
        }
        self.slots_used += 1;
        Ok(self.slots[self.slots_used - 1])
    }

    fn is_slot(&self, mem: Mem) -> bool {
        mem.base == FRAME && mem.index == NONE && self.slots.contains(&(mem.offset as u32))
    }

    fn x_load(&mut self, mem: Mem, w: u8, whole: bool) -> R<()> {
        let ins = self.access(Op::XLoad, mem, w);
        self.push(Ins {
            cc: u8::from(whole),
            ..ins
        })
    }

    fn x_store(&mut self, mem: Mem, w: u8) -> R<()> {
        let ins = self.access(Op::XStore, mem, w);
        self.push(ins)?;
        self.memory_changed();
        Ok(())
    }

    /// The topmost number goes to a slot.
    fn x_keep(&mut self) -> R<Mem> {
        let slot = Mem::frame(self.long_slot()?);
        self.x_store(slot, WIDTH)?;
        Ok(slot)
    }

    pub fn long_move(&mut self, to: Mem, from: Mem) -> R<()> {
        self.x_load(from, WIDTH, false)?;
        self.x_store(to, WIDTH)
    }

    /// To where the result of a function is expected.
    pub fn long_return(&mut self, from: Mem) -> R<()> {
        self.x_load(from, WIDTH, false)
    }

    /// From where the result of a call is.
    pub fn long_returned(&mut self, to: Mem) -> R<()> {
        self.x_store(to, WIDTH)
    }

    /// The value in a place that nothing else writes.
    pub fn long_own(&mut self, id: Id) -> R<Mem> {
        let mem = self.long(id)?;
        if self.is_slot(mem) {
            return Ok(mem);
        }
        self.x_load(mem, WIDTH, false)?;
        self.x_keep()
    }

    pub fn long_constant(&mut self, value: Extended) -> R<Mem> {
        let slot = Mem::frame(self.long_slot()?);
        let mantissa = self.integer(value.mantissa as i64)?;
        self.store(slot, mantissa, Ty::ULONG)?;
        self.store_constant(slot.plus(8), i32::from(value.exponent as i16), 2)?;
        Ok(slot)
    }

    /// The value of an expression: where it is in memory. It may be a variable's place.
    pub fn long(&mut self, id: Id) -> R<Mem> {
        match self.expr_of(id) {
            Expr::Long(value) => self.long_constant(value),
            Expr::Local(_) | Expr::Global(_) | Expr::Deref(_) | Expr::Member(..) | Expr::Literal(..) => {
                let mem = self.place(id)?;
                // Each read is one of its own.
                if self.unit.ty(id).is_volatile() {
                    self.x_load(mem, WIDTH, false)?;
                    return self.x_keep();
                }
                Ok(mem)
            }
            Expr::Neg(a) => {
                let a = self.long(a)?;
                self.x_load(a, WIDTH, false)?;
                self.push(Ins::new(Op::XNeg))?;
                self.x_keep()
            }
            Expr::Binary(op, a, b) => {
                let op = match op {
                    Bin::Add => Op::XAdd,
                    Bin::Sub => Op::XSub,
                    Bin::Mul => Op::XMul,
                    _ => Op::XDiv,
                };
                let (a, b) = self.long_pair(a, b)?;
                self.x_load(a, WIDTH, false)?;
                self.x_load(b, WIDTH, false)?;
                self.push(Ins::new(op))?;
                self.x_keep()
            }
            Expr::Cond(cond, a, b) => {
                let result = Mem::frame(self.long_slot()?);
                let (other, end) = (self.new_label(), self.new_label());
                self.branch(cond, other, false)?;
                let val = self.long(a)?;
                self.long_move(result, val)?;
                self.jump(end)?;
                self.put_label(other)?;
                let val = self.long(b)?;
                self.long_move(result, val)?;
                self.put_label(end)?;
                Ok(result)
            }
            Expr::Comma(a, b) => {
                self.effect(a)?;
                self.long(b)
            }
            Expr::Assign(place, value) => {
                let val = self.long_own(value)?;
                let mem = self.place(place)?;
                self.long_move(mem, val)?;
                Ok(val)
            }
            Expr::Update(place, new, post) => {
                let mem = self.place(place)?;
                self.x_load(mem, WIDTH, false)?;
                let old = self.x_keep()?;
                self.long_olds.push(old);
                let new = self.long(new);
                self.long_olds.pop();
                let new = new?;
                self.long_move(mem, new)?;
                Ok(if post { old } else { new })
            }
            Expr::Before(first, update) => {
                self.give_first(first)?;
                let result = self.long(update);
                self.forget_first(first);
                result
            }
            Expr::Given => Ok(self.long_given.last().copied().unwrap_or(Mem::at(NONE))),
            Expr::Old => Ok(self.long_olds.last().copied().unwrap_or(Mem::at(NONE))),
            Expr::Convert(a) => self.long_of(a),
            Expr::Call(callee, from, count) => {
                let slot = self.long_slot()?;
                self.call(callee, from, count, Ty::LDOUBLE, Some(slot))?;
                Ok(Mem::frame(slot))
            }
            // Of other types.
            _ => Ok(Mem::at(NONE)),
        }
    }

    /// Computes what [`Expr::Given`] stands for, of any scalar type.
    pub fn give_first(&mut self, first: Id) -> R<()> {
        if self.unit.ty(first).is_long_double() {
            let val = self.long_own(first)?;
            self.long_given.push(val);
        } else {
            let val = self.value(first)?;
            self.given.push(val);
        }
        Ok(())
    }

    pub fn forget_first(&mut self, first: Id) {
        if self.unit.ty(first).is_long_double() {
            self.long_given.pop();
        } else {
            self.given.pop();
        }
    }

    /// Two operands, of which the first is read before the second may change it.
    fn long_pair(&mut self, a: Id, b: Id) -> R<(Mem, Mem)> {
        let first = match self.unit.node(b).calls {
            true => self.long_own(a)?,
            false => self.long(a)?,
        };
        Ok((first, self.long(b)?))
    }

    pub fn long_comparison(&mut self, op: Bin, a: Id, b: Id) -> R<Ins> {
        let (x, y) = self.long_pair(a, b)?;
        self.long_compare(op, x, y)
    }

    pub fn long_not_zero(&mut self, id: Id) -> R<Ins> {
        let x = self.long(id)?;
        let zero = self.long_constant(Extended::ZERO)?;
        self.long_compare(Bin::Ne, x, zero)
    }

    fn long_compare(&mut self, op: Bin, x: Mem, y: Mem) -> R<Ins> {
        let (top, below, code) = float_order(op, x, y);
        self.x_load(below, WIDTH, false)?;
        self.x_load(top, WIDTH, false)?;
        let holds = self.new_value(false, true);
        self.push(Ins {
            d: holds,
            cc: code,
            ..Ins::new(Op::XSet)
        })?;
        Ok(Ins {
            a: holds,
            w: 4,
            cc: cc::NE,
            ..Ins::new(Op::Br)
        })
    }

    /// A number of any type as a `long double`.
    fn long_of(&mut self, id: Id) -> R<Mem> {
        let from = self.unit.ty(id).plain();
        if from.is_long_double() {
            return self.long(id);
        }
        let slot = Mem::frame(self.long_slot()?);
        let val = self.value(id)?;
        if from.is_float() {
            self.store(slot, val, from)?;
            self.x_load(slot, self.unit.types.size(from) as u8, false)?;
            self.x_store(slot, WIDTH)?;
            return Ok(slot);
        }
        let val = self.integers(val, from, Ty::LONG)?;
        self.store(slot, val, Ty::LONG)?;
        self.x_load(slot, 8, true)?;
        self.x_store(slot, WIDTH)?;
        if self.unit.types.size(from) == 8 && !from.signed() {
            // It was read as one with a sign.
            let end = self.new_label();
            self.push(Ins {
                a: val,
                cc: cc::GE,
                c: end,
                ..Ins::new(Op::Br)
            })?;
            let wrap = self.long_constant(WRAP)?;
            self.x_load(slot, WIDTH, false)?;
            self.x_load(wrap, WIDTH, false)?;
            self.push(Ins::new(Op::XAdd))?;
            self.x_store(slot, WIDTH)?;
            self.put_label(end)?;
        }
        Ok(slot)
    }

    /// A `long double` as a number of another type.
    pub fn long_to(&mut self, id: Id, to: Ty) -> R<Val> {
        let mem = self.long(id)?;
        if to.is_float() {
            let slot = Mem::frame(self.long_slot()?);
            self.x_load(mem, WIDTH, false)?;
            self.x_store(slot, self.unit.types.size(to) as u8)?;
            return self.load(slot, to);
        }
        let val = self.long_whole(mem)?;
        match self.unit.types.size(to) {
            size @ (1 | 2) => self.extend(val, size as u8, to.signed(), 4),
            _ => Ok(val),
        }
    }

    /// Towards 0, by its bits: the unit rounds otherwise, and nobody may tell it. What has no place in 64 bits becomes what it becomes
    /// with the unit.
    fn long_whole(&mut self, mem: Mem) -> R<Val> {
        let mantissa = self.load(mem, Ty::ULONG)?;
        let head = self.load(mem.plus(8), Ty::USHORT)?;
        let exponent = self.with_constant(Op::And, head, 0x7FFF, 4)?;
        let sign = self.with_constant(Op::And, head, 0x8000, 4)?;
        let less = self.pure(
            Ins {
                a: exponent,
                w: 4,
                ..Ins::new(Op::Neg)
            },
            false,
        )?;
        let down = self.add_constant(less, WHOLE, 4)?;
        let (result, end) = (self.variable(false), self.new_label());
        let number = Ins {
            d: result,
            ..Ins::new(Op::MovI)
        };
        let branch = Ins {
            w: 4,
            c: end,
            ..Ins::new(Op::Br)
        };
        self.push(number)?;
        self.push(Ins {
            a: exponent,
            imm: ONE,
            cc: cc::B,
            ..branch
        })?;
        self.push(Ins {
            imm: i64::MIN,
            ..number
        })?;
        self.push(Ins {
            a: down,
            imm: 63,
            cc: cc::A,
            ..branch
        })?;
        self.push(Ins {
            d: result,
            a: mantissa,
            b: down,
            ..Ins::new(Op::Shr)
        })?;
        self.push(Ins {
            a: sign,
            cc: cc::E,
            ..branch
        })?;
        self.push(Ins {
            d: result,
            a: result,
            ..Ins::new(Op::Neg)
        })?;
        self.put_label(end)?;
        Ok(result)
    }
}
