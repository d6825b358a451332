//! Addresses, loads, stores and copies.

use super::{Lower, Place, R};
use crate::ast::{Bin, Expr, Id};
use crate::ir::{DATA, FRAME, IN_DATA, Ins, NONE, Op, Val};
use crate::types::{Bits, Ty};

/// An address in memory. Only its lower half counts: what is above is the window's.
#[derive(Clone, Copy, Debug)]
pub struct Mem {
    pub base: Val,
    pub index: Val,
    pub scale: u8,
    pub offset: i32,
}

impl Mem {
    pub fn at(base: Val) -> Mem {
        Mem {
            base,
            index: NONE,
            scale: 1,
            offset: 0,
        }
    }

    pub fn frame(offset: u32) -> Mem {
        Mem {
            offset: offset as i32,
            ..Mem::at(FRAME)
        }
    }

    pub fn plus(self, offset: u32) -> Mem {
        Mem {
            offset: self.offset.wrapping_add(offset as i32),
            ..self
        }
    }
}

/// Copies and zeroes of at most as many bytes are written out.
const UNROLLED: u64 = 64;

impl Lower<'_> {
    pub fn access(&self, op: Op, mem: Mem, w: u8) -> Ins {
        Ins {
            w,
            a: mem.base,
            b: mem.index,
            sc: mem.scale,
            imm: i64::from(mem.offset),
            ..Ins::new(op)
        }
    }

    /// Where a place is. A record that is no place is put into memory.
    pub fn place(&mut self, id: Id) -> R<Mem> {
        match self.expr_of(id) {
            Expr::Local(local) => match self.places[(local - self.first_local) as usize] {
                Place::Frame(offset) => Ok(Mem::frame(offset)),
                // What is a value is not asked for.
                Place::Value(_) | Place::Parts(..) => Ok(Mem::at(NONE)),
            },
            Expr::Literal(local, fill) => {
                self.stmt(fill)?;
                match self.places[(local - self.first_local) as usize] {
                    Place::Frame(offset) => Ok(Mem::frame(offset)),
                    Place::Value(_) | Place::Parts(..) => Ok(Mem::at(NONE)),
                }
            }
            Expr::Global(global) => Ok(Mem {
                offset: self.unit.globals[global as usize].offset as i32,
                ..Mem::at(DATA)
            }),
            Expr::Deref(pointer) => self.pointed(pointer),
            Expr::Member(of, offset, _) => Ok(self.place(of)?.plus(offset)),
            _ => self.record(id),
        }
    }

    /// Where the record is that an expression other than a place stands for.
    fn record(&mut self, id: Id) -> R<Mem> {
        match self.expr_of(id) {
            Expr::Call(callee, from, count) => {
                let ty = self.unit.ty(id);
                let room = self.record_room(ty)?;
                self.call(callee, from, count, ty, Some(room))?;
                Ok(Mem::frame(room))
            }
            Expr::Assign(to, value) => {
                let size = self.unit.types.size(self.unit.ty(to));
                let from = self.place(value)?;
                let to = self.place(to)?;
                self.copy(to, from, size)?;
                Ok(to)
            }
            Expr::Comma(a, b) => {
                self.effect(a)?;
                self.place(b)
            }
            Expr::Cond(cond, a, b) => {
                let address = self.variable(false);
                let (other, end) = (self.new_label(), self.new_label());
                self.branch(cond, other, false)?;
                let mem = self.place(a)?;
                let val = self.lea(mem)?;
                self.set(address, val, false)?;
                self.jump(end)?;
                self.put_label(other)?;
                let mem = self.place(b)?;
                let val = self.lea(mem)?;
                self.set(address, val, false)?;
                self.put_label(end)?;
                Ok(Mem::at(address))
            }
            _ => {
                let val = self.value(id)?;
                Ok(Mem::at(val))
            }
        }
    }

    /// Where a pointer leads to: its lower half is enough, so indices need not be extended.
    pub fn pointed(&mut self, pointer: Id) -> R<Mem> {
        match self.expr_of(pointer) {
            Expr::Int(value) => Ok(Mem {
                offset: value as i32,
                ..Mem::at(NONE)
            }),
            Expr::Addr(place) if !matches!(self.expr_of(place), Expr::Func(_)) => self.place(place),
            Expr::Convert(inner)
                if self.unit.types.size(self.unit.ty(inner)) == 8
                    && !self.unit.ty(inner).is_float()
                    && self.unit.types.is_scalar(self.unit.ty(inner)) =>
            {
                self.pointed(inner)
            }
            Expr::PtrAdd(base, index, stride) => {
                let mem = self.pointed(base)?;
                self.indexed(mem, index, stride)
            }
            _ => Ok(Mem::at(self.value(pointer)?)),
        }
    }

    /// An address and so many times a size.
    fn indexed(&mut self, mem: Mem, index: Id, stride: u32) -> R<Mem> {
        // Constants go into the offset; what only extends to 64 bits goes.
        let (mut id, mut add) = (index, 0i64);
        loop {
            match self.expr_of(id) {
                Expr::Convert(inner) => {
                    let ty = self.unit.ty(inner);
                    if !ty.is_int() || self.unit.types.size(ty) < 4 {
                        break;
                    }
                    if self.unit.types.size(self.unit.ty(id)) < 4 {
                        break;
                    }
                    id = inner;
                }
                Expr::Binary(op @ (Bin::Add | Bin::Sub), a, b) if self.unit.int(b).is_some() => {
                    let value = self.unit.int(b).unwrap_or(0);
                    add = if op == Bin::Add {
                        add.wrapping_add(value)
                    } else {
                        add.wrapping_sub(value)
                    };
                    id = a;
                }
                Expr::Int(value) => {
                    let all = add.wrapping_add(value).wrapping_mul(i64::from(stride));
                    return Ok(mem.plus(all as u32));
                }
                _ => break,
            }
        }
        let mem = mem.plus(add.wrapping_mul(i64::from(stride)) as u32);
        let mut val = self.value(id)?;
        let mut scale = stride;
        if !matches!(stride, 1 | 2 | 4 | 8) {
            val = self.multiply(val, i64::from(stride), 4)?;
            scale = 1;
        }
        if mem.base == NONE && mem.index == NONE && scale == 1 {
            return Ok(Mem { base: val, ..mem });
        }
        let mem = match mem.index {
            NONE => mem,
            // The data's address goes into the displacement.
            index if mem.base == DATA && mem.scale == 1 => {
                scale |= IN_DATA as u32;
                Mem {
                    base: index,
                    index: NONE,
                    ..mem
                }
            }
            _ => {
                let offset = mem.offset;
                let base = self.lea_low(Mem { offset: 0, ..mem })?;
                Mem {
                    offset,
                    ..Mem::at(base)
                }
            }
        };
        Ok(Mem {
            index: val,
            scale: scale as u8,
            ..mem
        })
    }

    /// The lower half of an address, whatever is above.
    fn lea_low(&mut self, mem: Mem) -> R<Val> {
        let ins = self.access(Op::Lea, mem, 4);
        self.pure(ins, false)
    }

    /// An address as a pointer. It is one of an object, so what was left out above is what the window has.
    pub fn lea(&mut self, mem: Mem) -> R<Val> {
        if mem.index == NONE && mem.offset == 0 && mem.base < DATA {
            return Ok(mem.base);
        }
        if mem.base == DATA && mem.index == NONE {
            return self.data_address(mem.offset);
        }
        if mem.base == FRAME && mem.index == NONE {
            let ins = self.access(Op::Lea, mem, 8);
            return self.pure(ins, false);
        }
        self.lea_low(mem)
    }

    pub fn data_address(&mut self, offset: i32) -> R<Val> {
        let ins = Ins {
            imm: i64::from(offset),
            ..Ins::new(Op::DataAddr)
        };
        self.pure(ins, false)
    }

    /// The exact address of a place.
    pub fn address(&mut self, id: Id) -> R<Val> {
        let (base, offset) = self.exact(id)?;
        self.plus(base, offset)
    }

    fn plus(&mut self, base: Val, offset: i64) -> R<Val> {
        match offset {
            0 => Ok(base),
            _ => self.add_constant(base, offset, 8),
        }
    }

    fn exact(&mut self, id: Id) -> R<(Val, i64)> {
        match self.expr_of(id) {
            Expr::Deref(pointer) => Ok((self.value(pointer)?, 0)),
            Expr::Member(of, offset, _) => {
                let (base, add) = self.exact(of)?;
                Ok((base, add + i64::from(offset)))
            }
            Expr::Func(func) => {
                let (op, imm) = match self.unit.funcs[func as usize].import {
                    Some(import) => (Op::ImportAddr, import),
                    None => (Op::FuncAddr, func),
                };
                let ins = Ins {
                    imm: i64::from(imm),
                    ..Ins::new(op)
                };
                Ok((self.pure(ins, false)?, 0))
            }
            // What is chosen, assigned or called for its address: a place whose address was computed exactly.
            Expr::Cond(cond, a, b) => {
                let address = self.variable(false);
                let (other, end) = (self.new_label(), self.new_label());
                self.branch(cond, other, false)?;
                let val = self.address(a)?;
                self.set(address, val, false)?;
                self.jump(end)?;
                self.put_label(other)?;
                let val = self.address(b)?;
                self.set(address, val, false)?;
                self.put_label(end)?;
                Ok((address, 0))
            }
            Expr::Comma(a, b) => {
                self.effect(a)?;
                self.exact(b)
            }
            Expr::Assign(to, value) => {
                let size = self.unit.types.size(self.unit.ty(to));
                let from = self.place(value)?;
                let (base, offset) = self.exact(to)?;
                let mem = Mem {
                    offset: offset as i32,
                    ..Mem::at(base)
                };
                self.copy(mem, from, size)?;
                Ok((base, offset))
            }
            _ => {
                let mem = self.place(id)?;
                Ok((self.lea(mem)?, 0))
            }
        }
    }

    /// Reads a scalar.
    pub fn load(&mut self, mem: Mem, ty: Ty) -> R<Val> {
        let size = self.unit.types.size(ty) as u8;
        let float = ty.is_float();
        let op = if float { Op::FLoad } else { Op::Load };
        let mut ins = self.access(op, mem, size);
        ins.cc = u8::from(!float && ty.signed() && size < 4);
        if ty.is_volatile() {
            // Each read is one of its own.
            let val = self.new_value(float, true);
            self.push(Ins { d: val, c: 0, ..ins })?;
            return Ok(val);
        }
        self.pure(ins, float)
    }

    /// Writes a scalar.
    pub fn store(&mut self, mem: Mem, val: Val, ty: Ty) -> R<()> {
        let size = self.unit.types.size(ty) as u8;
        let op = if ty.is_float() { Op::FStore } else { Op::Store };
        let ins = self.access(op, mem, size);
        self.push(Ins { c: val, ..ins })?;
        self.memory_changed();
        Ok(())
    }

    pub fn store_constant(&mut self, mem: Mem, value: i32, w: u8) -> R<()> {
        let ins = self.access(Op::StoreI, mem, w);
        self.push(Ins {
            c: value as u32,
            ..ins
        })?;
        self.memory_changed();
        Ok(())
    }

    /// Writes the value of an expression, which has the type already. Returns the value if it is wanted.
    pub fn store_value(&mut self, mem: Mem, value: Id, ty: Ty) -> R<()> {
        if ty.is_long_double() {
            let val = self.long(value)?;
            return self.long_move(mem, val);
        }
        if let Some(n) = self.unit.int(value)
            && i64::from(n as i32) == n
        {
            return self.store_constant(mem, n as i32, self.unit.types.size(ty) as u8);
        }
        let val = self.value(self.unextended(value, ty))?;
        self.store(mem, val, ty)
    }

    /// What is converted to a narrow integer only to be stored as one.
    fn unextended(&self, mut value: Id, ty: Ty) -> Id {
        let size = self.unit.types.size(ty);
        let narrow = |ty: Ty| ty.is_int() && ty.plain() != Ty::BOOL && self.unit.types.size(ty) >= size;
        while let Expr::Convert(inner) = self.expr_of(value)
            && size < 8
            && narrow(ty)
            && narrow(self.unit.ty(value))
            && narrow(self.unit.ty(inner))
        {
            value = inner;
        }
        value
    }

    pub fn load_bits(&mut self, mem: Mem, ty: Ty, bits: Bits) -> R<Val> {
        let w = self.width(ty);
        let unit = self.load(mem, if ty.signed() { ty } else { ty.plain() })?;
        let all = w * 8;
        let up = all - bits.from - bits.len;
        let val = self.shift(Op::Shl, unit, up, w)?;
        self.shift(
            if ty.signed() { Op::Sar } else { Op::Shr },
            val,
            all - bits.len,
            w,
        )
    }

    /// Writes a bit-field; returns what it then holds.
    pub fn store_bits(&mut self, mem: Mem, val: Val, ty: Ty, bits: Bits) -> R<Val> {
        let w = self.width(ty);
        let mask = u64::MAX >> (64 - u32::from(bits.len));
        let unit = self.load(mem, ty)?;
        let kept = !(mask << bits.from) as i64;
        let kept = self.with_constant(
            Op::And,
            unit,
            if w == 4 { i64::from(kept as i32) } else { kept },
            w,
        )?;
        let field = self.with_constant(
            Op::And,
            val,
            if w == 4 {
                i64::from(mask as i32)
            } else {
                mask as i64
            },
            w,
        )?;
        let field = self.shift(Op::Shl, field, bits.from, w)?;
        let ins = Ins {
            a: kept,
            b: field,
            w,
            ..Ins::new(Op::Or)
        };
        let new = self.pure(ins, false)?;
        self.store(mem, new, ty)?;
        let up = w * 8 - bits.len;
        let val = self.shift(Op::Shl, val, up, w)?;
        self.shift(if ty.signed() { Op::Sar } else { Op::Shr }, val, up, w)
    }

    pub fn shift(&mut self, op: Op, val: Val, by: u8, w: u8) -> R<Val> {
        match by {
            0 => Ok(val),
            _ => self.pure(
                Ins {
                    a: val,
                    w,
                    imm: i64::from(by),
                    ..Ins::new(op)
                },
                false,
            ),
        }
    }

    /// The pieces in which memory of a size is copied: offsets and widths.
    fn pieces(size: u64) -> Vec<(u32, u8)> {
        let (mut list, mut at) = (Vec::new(), 0);
        for w in [8u8, 4, 2, 1] {
            while size - at >= u64::from(w) {
                list.push((at as u32, w));
                at += u64::from(w);
            }
        }
        list
    }

    pub fn copy(&mut self, to: Mem, from: Mem, size: u64) -> R<()> {
        if size <= UNROLLED {
            for (offset, w) in Self::pieces(size) {
                let ins = self.access(Op::Load, from.plus(offset), w);
                let val = self.pure(ins, false)?;
                let ins = self.access(Op::Store, to.plus(offset), w);
                self.push(Ins { c: val, ..ins })?;
                self.memory_changed();
            }
            return Ok(());
        }
        let whole = size & !7;
        let (to, from) = (self.lea_low(to)?, self.lea_low(from)?);
        self.each_word(whole, |lower, i| {
            let at = |base| Mem {
                index: i,
                ..Mem::at(base)
            };
            let ins = lower.access(Op::Load, at(from), 8);
            let val = lower.pure(ins, false)?;
            let ins = lower.access(Op::Store, at(to), 8);
            lower.push(Ins { c: val, ..ins })
        })?;
        self.copy(
            Mem::at(to).plus(whole as u32),
            Mem::at(from).plus(whole as u32),
            size - whole,
        )
    }

    pub fn zero(&mut self, to: Mem, size: u64) -> R<()> {
        if size <= UNROLLED {
            for (offset, w) in Self::pieces(size) {
                self.store_constant(to.plus(offset), 0, w)?;
            }
            return Ok(());
        }
        let whole = size & !7;
        let to = self.lea_low(to)?;
        self.each_word(whole, |lower, i| {
            let at = Mem {
                index: i,
                ..Mem::at(to)
            };
            lower.store_constant(at, 0, 8)
        })?;
        self.zero(Mem::at(to).plus(whole as u32), size - whole)
    }

    /// A loop over offsets 0, 8, … below `whole`, which is not 0.
    fn each_word(&mut self, whole: u64, body: impl FnOnce(&mut Self, Val) -> R<()>) -> R<()> {
        let i = self.variable(false);
        self.push(Ins {
            d: i,
            ..Ins::new(Op::MovI)
        })?;
        let (top, floor) = (self.new_label(), self.floor);
        self.put_top(top)?;
        body(self, i)?;
        self.memory_changed();
        self.push(Ins {
            d: i,
            a: i,
            imm: 8,
            ..Ins::new(Op::Add)
        })?;
        self.push(Ins {
            a: i,
            imm: whole as i64,
            cc: crate::ir::cc::NE,
            c: top,
            ..Ins::new(Op::Br)
        })?;
        self.floor = floor;
        Ok(())
    }
}
