//! From a typed function to its list of instructions.

mod call;
mod cond;
mod convert;
mod count;
mod long;
mod memory;
mod numbering;
mod stmt;
mod value;

use crate::ast::{Body, Expr, Id, Unit};
use crate::error::{Notes, Stop};
use crate::extended::Extended;
use crate::ir::{self, Ins, NONE, Op, Val};
use crate::types::Ty;
use numbering::{Known, Mark};

pub type R<T> = Result<T, Stop>;

/// Most instructions of a function.
const CODE: usize = 200_000;
/// Most bytes of a function's locals.
const FRAME: u64 = 1 << 20;

/// Where a local is.
#[derive(Clone, Copy)]
enum Place {
    Value(Val),
    Frame(u32),
    /// Members of a record are values of their own: where in [`Lower::parts`], and how many.
    Parts(u32, u32),
}

/// What a `return` does: in the function itself, or in one that stands in the place of a call.
#[derive(Clone, Copy)]
struct Return {
    /// Where the value goes, and where control goes; without label it returns.
    value: Val,
    label: Option<u32>,
    /// Where a record is written that is returned.
    record: Val,
    /// Where in the frame a `long double` is written that is returned to the place of a call.
    long: u32,
    ty: Ty,
    /// What is added to the value, or [`NONE`].
    sum: Val,
}

/// A function whose statements are being read: the one itself, or one that stands in the place of a call.
struct Activation {
    func: u32,
    /// Where it begins anew if it returns what it calls itself for, and the parameters that are written before.
    /// Only if nothing of it is in memory: a pointer to that may be among what it is called with.
    again: Option<(u32, Vec<Val>)>,
    /// It returns what the one around it returns.
    tail: bool,
    /// A local of it is in memory.
    in_memory: bool,
}

struct Lower<'a> {
    unit: &'a Unit,
    notes: &'a mut Notes,
    f: ir::Func,
    /// How often each value was written, and whether it is a temporary.
    versions: Vec<u32>,
    temps: Vec<bool>,
    known: Vec<Known>,
    /// How many were ever known, and which of them those are that count here: `floor` and later ones.
    serial: u32,
    floor: u32,
    marks: Vec<Option<Mark>>,
    /// What was computed last, if it was asked for once.
    fresh: Val,
    /// How often memory was written.
    memory: u32,
    /// Where the locals of the present function are.
    places: Vec<Place>,
    /// Offsets of members, and the values that they are.
    parts: Vec<(u32, Val)>,
    first_local: u32,
    first_label: u32,
    breaks: Vec<u32>,
    continues: Vec<u32>,
    olds: Vec<Val>,
    given: Vec<Val>,
    /// The same of `long double`.
    long_olds: Vec<memory::Mem>,
    long_given: Vec<memory::Mem>,
    /// Places in the frame for values of that type, and how many of them the present statement has taken.
    slots: Vec<u32>,
    slots_used: usize,
    ret: Return,
    /// The functions that stand in each other, outermost first.
    active: Vec<Activation>,
    /// How often functions may still be put into themselves.
    again: u32,
    /// Where the present statement is, for errors and faults.
    at: u32,
}

/// Makes the instructions of a function.
pub fn lower(unit: &Unit, number: u32, body: Body, notes: &mut Notes) -> R<ir::Func> {
    let func = &unit.funcs[number as usize];
    let ret = unit.types.sig(func.ty).map_or(Ty::VOID, |s| s.ret);
    let mut lower = Lower {
        unit,
        notes,
        // As many as most functions have.
        f: ir::Func {
            code: Vec::with_capacity(256),
            floats: Vec::with_capacity(128),
            ..ir::Func::default()
        },
        versions: Vec::with_capacity(128),
        temps: Vec::with_capacity(128),
        known: Vec::with_capacity(64),
        serial: 0,
        floor: 0,
        marks: Vec::with_capacity(32),
        fresh: NONE,
        memory: 0,
        places: Vec::with_capacity(16),
        parts: Vec::new(),
        first_local: body.first_local,
        first_label: 0,
        breaks: Vec::new(),
        continues: Vec::new(),
        olds: Vec::new(),
        given: Vec::new(),
        long_olds: Vec::new(),
        long_given: Vec::new(),
        slots: Vec::new(),
        slots_used: 0,
        ret: Return {
            value: NONE,
            label: None,
            record: NONE,
            long: 0,
            ty: ret,
            sum: NONE,
        },
        active: Vec::new(),
        again: call::AGAIN,
        at: func.at,
    };
    lower.f.labels = body.labels;
    lower.function(number, body)?;
    Ok(lower.f)
}

impl Lower<'_> {
    fn function(&mut self, number: u32, body: Body) -> R<()> {
        let unit = self.unit;
        let mut params = Vec::new();
        if unit.types.is_record(self.ret.ty) {
            let pointer = self.variable(false);
            self.ret.record = pointer;
            params.push(ir::Arg::new(pointer, self.ret.ty));
        }
        // Parameters arrive as values; those that have to be in memory are written there.
        let mut arrived = Vec::new();
        for i in 0..body.params {
            let ty = unit.locals[(body.first_local + i) as usize].ty;
            let val = self.variable(ty.is_float() && !ty.is_long_double());
            params.push(ir::Arg::new(val, ty));
            arrived.push(val);
        }
        self.f.params = params;
        self.push(Ins::new(Op::Params))?;
        self.enter(body)?;
        for (i, &val) in arrived.iter().enumerate() {
            self.parameter(body, i as u32, val, true)?;
        }
        self.ret.sum = self.sum(body, self.ret.ty)?;
        self.activate(number, body, false, true)?;
        self.stmt(body.stmt)?;
        self.finish()
    }

    /// Makes places for the locals of a function.
    fn enter(&mut self, body: Body) -> R<()> {
        self.places.clear();
        self.first_local = body.first_local;
        for i in 0..body.locals {
            let local = self.unit.locals[(body.first_local + i) as usize];
            let place = match local.in_memory {
                true if local.parts.1 > 0 => {
                    let (from, count) = local.parts;
                    let first = self.parts.len() as u32;
                    for &(offset, ty) in &self.unit.parts[from as usize..(from + count) as usize] {
                        let val = self.variable(ty.is_float());
                        self.parts.push((offset, val));
                    }
                    Place::Parts(first, count)
                }
                true => {
                    let (size, align) = (self.unit.types.size(local.ty), self.unit.types.align(local.ty));
                    Place::Frame(self.room(size, align)?)
                }
                false => Place::Value(self.variable(local.ty.is_float())),
            };
            self.places.push(place);
        }
        Ok(())
    }

    /// Puts what arrived for a parameter where its local is. Narrow integers may come with anything above them.
    fn parameter(&mut self, body: Body, i: u32, val: Val, outside: bool) -> R<()> {
        let ty = self.unit.locals[(body.first_local + i) as usize].ty.plain();
        let size = self.unit.types.size(ty);
        let mem = match self.places[i as usize] {
            Place::Frame(offset) if self.unit.types.is_record(ty) || ty.is_long_double() => {
                let from = memory::Mem::at(val);
                return self.copy(memory::Mem::frame(offset), from, size);
            }
            Place::Frame(offset) => memory::Mem::frame(offset),
            // Records that arrive are in memory.
            Place::Parts(..) => return Ok(()),
            Place::Value(place) => {
                let narrow = outside && ty.is_int() && size < 4;
                let val = match narrow {
                    true if ty == Ty::BOOL => self.extend(val, 1, false, 4)?,
                    true => self.extend(val, size as u8, ty.signed(), 4)?,
                    false => val,
                };
                return self.set(place, val, ty.is_float());
            }
        };
        self.store(mem, val, ty)
    }

    /// What is behind the last statement. A function that should return a value, and does not, returns 0: C leaves it open.
    fn finish(&mut self) -> R<()> {
        if self.f.code.last().is_some_and(Ins::ends) {
            return Ok(());
        }
        let ty = self.ret.ty;
        if ty.is_long_double() {
            let zero = self.long_constant(Extended::ZERO)?;
            return self.hand_long_over(zero);
        }
        if ty.is_float() {
            let a = self.float_constant(0.0, ty)?;
            let w = self.width(ty);
            return self.push(Ins {
                a,
                w,
                ..Ins::new(Op::FRet)
            });
        }
        let a = match self.unit.types.is_scalar(ty) {
            true if self.ret.sum != NONE => self.ret.sum,
            true => self.integer(0)?,
            false => NONE,
        };
        self.push(Ins {
            a,
            ..Ins::new(Op::Ret)
        })
    }

    /// Room in the frame.
    fn room(&mut self, size: u64, align: u32) -> R<u32> {
        let from = u64::from(self.f.frame).next_multiple_of(u64::from(align.max(1)));
        let end = from + size;
        if end > FRAME {
            let message = format!("the locals of this function need more than {} bytes", FRAME);
            return Err(self
                .notes
                .note(self.at, 1, message, Some("make large ones static")));
        }
        self.f.frame = end as u32;
        Ok(from as u32)
    }

    /// Room for a record that a call returns.
    fn record_room(&mut self, ty: Ty) -> R<u32> {
        self.room(self.unit.types.size(ty).max(1), self.unit.types.align(ty).max(8))
    }

    /// The value that a place is, if it is not in memory: a local, or a member of one.
    fn variable_of(&self, place: Id) -> Option<Val> {
        let (local, offset) = self.unit.part(place)?;
        match self.places[(local - self.first_local) as usize] {
            Place::Value(val) => Some(val),
            Place::Parts(from, count) => {
                let parts = &self.parts[from as usize..(from + count) as usize];
                parts.iter().find(|p| p.0 == offset).map(|p| p.1)
            }
            Place::Frame(_) => None,
        }
    }

    fn new_value(&mut self, float: bool, temp: bool) -> Val {
        self.f.floats.push(float);
        self.versions.push(0);
        self.temps.push(temp);
        self.f.floats.len() as Val - 1
    }

    fn variable(&mut self, float: bool) -> Val {
        self.new_value(float, false)
    }

    fn push(&mut self, mut ins: Ins) -> R<()> {
        if self.f.code.len() >= CODE {
            let message = "this function is too large".to_string();
            return Err(self.notes.note(self.at, 1, message, Some("divide it")));
        }
        if ins.d != NONE {
            self.versions[ins.d as usize] += 1;
        }
        if let Some(label) = ins.target() {
            self.aim(label);
        }
        ins.at = self.at;
        self.f.code.push(ins);
        Ok(())
    }

    fn new_label(&mut self) -> u32 {
        self.f.labels += 1;
        self.f.labels - 1
    }

    fn jump(&mut self, label: u32) -> R<()> {
        if self.f.code.last().is_some_and(Ins::ends) {
            return Ok(());
        }
        self.push(Ins {
            c: label,
            ..Ins::new(Op::Jmp)
        })
    }

    /// Writes a variable.
    fn set(&mut self, place: Val, val: Val, float: bool) -> R<()> {
        if place == val {
            return Ok(());
        }
        // What was just computed for nothing else is computed into the variable.
        if let Some(last) = self.f.code.last_mut()
            && last.d == val
            && self.fresh == val
            && self.temps[val as usize]
            && self.known.last().is_some_and(|k| k.result == val)
        {
            last.d = place;
            self.known.pop();
            self.versions[place as usize] += 1;
            return Ok(());
        }
        let op = if float { Op::FMov } else { Op::Mov };
        self.push(Ins {
            d: place,
            a: val,
            ..Ins::new(op)
        })
    }

    /// The number of bytes that a scalar has in a register: 4 or 8.
    fn width(&self, ty: Ty) -> u8 {
        if self.unit.types.size(ty) == 8 { 8 } else { 4 }
    }

    fn expr_of(&self, id: Id) -> Expr {
        self.unit.node(id).expr
    }
}
