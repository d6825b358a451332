//! Initialisers: of data, whose values are constants, and of locals.

use super::{Parser, R, fold};
use crate::ast::{Bin, Expr, Fill, Id, Target};
use crate::lex::{Kind, p};
use crate::types::{Bits, Shape, Ty};

/// Most values of one initialiser.
const VALUES: usize = 200_000;

/// One place to be filled.
#[derive(Clone, Copy)]
struct Place {
    ty: Ty,
    offset: u32,
    bits: Option<Bits>,
}

impl Parser<'_> {
    /// Where the parts of an array or record lie: the number `index` of it.
    fn part(&self, of: Place, index: u64) -> Option<Place> {
        match *self.unit.types.shape(of.ty) {
            Shape::Array(ty, n) if n.is_none_or(|n| index < n) => {
                let offset = u64::from(of.offset) + index * self.unit.types.size(ty);
                let offset = u32::try_from(offset).ok()?;
                Some(Place {
                    ty,
                    offset,
                    bits: None,
                })
            }
            Shape::Record(r) => {
                let record = &self.unit.types.records[r as usize];
                let field = record
                    .fields
                    .get(index as usize)
                    .filter(|_| !record.union || index == 0)?;
                Some(Place {
                    ty: field.ty,
                    offset: of.offset + field.offset,
                    bits: field.bits,
                })
            }
            _ => None,
        }
    }

    fn is_aggregate(&self, ty: Ty) -> bool {
        matches!(self.unit.types.shape(ty), Shape::Array(..) | Shape::Record(_))
    }

    fn push(&mut self, fills: &mut Vec<Fill>, place: Place, value: Id) -> R<()> {
        if fills.len() >= VALUES {
            let message = format!("an initialiser has more than {VALUES} values");
            return Err(self.notes.last(self.at_of(value), message, None));
        }
        fills.push(Fill {
            offset: place.offset,
            ty: place.ty,
            bits: place.bits,
            value,
        });
        Ok(())
    }

    /// Initialises a place; `pending` is a value that was read already. Returns how many elements an array turned out to have.
    fn initialise(&mut self, place: Place, pending: Option<Id>, fills: &mut Vec<Fill>) -> R<u64> {
        let at = self.at();
        let char_array = self
            .unit
            .types
            .element(place.ty)
            .is_some_and(|t| t.is_int() && self.unit.types.size(t) == 1);
        if pending.is_none() && self.is(p("{")) {
            // A string may stand in braces.
            let string = char_array && matches!(self.ahead(1), Kind::Str(_));
            self.next();
            if !string && self.is_aggregate(place.ty) {
                let count = self.nested(|parser| parser.parts(place, None, true, fills))?;
                self.need("}")?;
                return Ok(count);
            }
            if self.is(p("}")) {
                return Err(self.unexpected("a value"));
            }
            let count = self.nested(|parser| parser.initialise(place, None, fills))?;
            self.eat(p(","));
            self.need("}")?;
            return Ok(count);
        }
        let value = match pending {
            Some(value) => value,
            None => self.assignment()?,
        };
        if char_array && self.is_string(value) {
            return self.fill_string(place, value, fills);
        }
        if !self.is_aggregate(place.ty) {
            let value = self.coerce(value, place.ty)?;
            self.push(fills, place, value)?;
            return Ok(1);
        }
        if self.unit.types.is_record(place.ty) && self.unit.types.same(self.ty(value), place.ty, true) {
            self.push(fills, place, value)?;
            return Ok(1);
        }
        if self.scope_of_list == 0 {
            return Err(self.wrong(at, "this initialiser needs braces", None));
        }
        self.nested(|parser| parser.parts(place, Some(value), false, fills))
    }

    fn fill_string(&mut self, place: Place, value: Id, fills: &mut Vec<Fill>) -> R<u64> {
        let Expr::Global(string) = self.unit.node(value).expr else {
            return Ok(0);
        };
        let len = self.unit.types.size(self.unit.globals[string as usize].ty);
        let room = match *self.unit.types.shape(place.ty) {
            Shape::Array(_, Some(room)) => room,
            _ => len,
        };
        if room + 1 < len {
            return Err(self.wrong(self.at_of(value), "this string is longer than its array", None));
        }
        let ty = self.unit.types.array(Ty::CHAR, Some(len.min(room)));
        self.push(fills, Place { ty, ..place }, value)?;
        Ok(len)
    }

    /// The parts of an array or record, in braces or not.
    fn parts(&mut self, of: Place, pending: Option<Id>, braces: bool, fills: &mut Vec<Fill>) -> R<u64> {
        self.scope_of_list += 1;
        let result = self.parts_of(of, pending, braces, fills);
        self.scope_of_list -= 1;
        result
    }

    fn parts_of(
        &mut self,
        of: Place,
        mut pending: Option<Id>,
        braces: bool,
        fills: &mut Vec<Fill>,
    ) -> R<u64> {
        let (mut index, mut count) = (0u64, 0u64);
        while pending.is_some() || !self.is(p("}")) {
            let at = self.at();
            let designated = pending.is_none() && (self.is(p(".")) || self.is(p("[")));
            let (place, chain) = match designated {
                true => self.designator(of, &mut index)?,
                false => match self.part(of, index) {
                    Some(place) => (place, false),
                    None => return Err(self.wrong(at, "there are more values than places for them", None)),
                },
            };
            self.initialise(place, pending.take(), fills)?;
            index += 1;
            count = count.max(index);
            if !braces && self.part(of, index).is_none() {
                break;
            }
            // Without braces the rest belongs to whatever this is in.
            let more = match self.ahead(1) {
                Kind::Punct(x) => braces || !(x == p("}") || x == p(".") || x == p("[")),
                _ => true,
            };
            if !(self.is(p(",")) && more) {
                break;
            }
            self.next();
            if chain && !(self.is(p("}")) || self.is(p(".")) || self.is(p("["))) {
                let remedy = Some("write another designator, or braces");
                return Err(self.wrong(
                    self.at(),
                    "a value behind nested designators is not supported",
                    remedy,
                ));
            }
        }
        Ok(count)
    }

    /// `.name` and `[index]` up to `=`: the place, and whether there was more than one.
    fn designator(&mut self, of: Place, index: &mut u64) -> R<(Place, bool)> {
        let (mut place, mut steps) = (of, 0);
        while self.is(p(".")) || self.is(p("[")) {
            let at = self.at();
            if self.eat(p("[")) {
                let n = self.constant_int()?;
                self.need("]")?;
                let array = matches!(self.unit.types.shape(place.ty), Shape::Array(..));
                let part = u64::try_from(n)
                    .ok()
                    .filter(|_| array)
                    .and_then(|n| self.part(place, n));
                let Some(part) = part else {
                    return Err(self.wrong(at, "there is no such element", None));
                };
                if steps == 0 {
                    *index = n as u64;
                }
                place = part;
                steps += 1;
                continue;
            }
            self.next();
            let name = self.name()?;
            let Some(path) = self.path(place.ty, name, 0) else {
                let message = format!("there is no member `{}`", self.spell(name));
                return Err(self.wrong(at, message, None));
            };
            for (i, field) in path.iter().enumerate() {
                if steps == 0 && i == 0 {
                    let record = self.unit.types.record_of(place.ty);
                    let number = record.and_then(|r| {
                        r.fields.iter().position(|f| {
                            f.offset == field.offset && f.name == field.name && f.bits == field.bits
                        })
                    });
                    *index = number.unwrap_or(0) as u64;
                }
                place = Place {
                    ty: field.ty,
                    offset: place.offset + field.offset,
                    bits: field.bits,
                };
            }
            steps += path.len();
        }
        self.need("=")?;
        Ok((place, steps > 1))
    }

    /// The initialiser of a place whose type may be an array without a length. Returns the type with it.
    fn whole(&mut self, ty: Ty, fills: &mut Vec<Fill>) -> R<Ty> {
        let at = self.at();
        let outer = std::mem::take(&mut self.scope_of_list);
        let place = Place {
            ty,
            offset: 0,
            bits: None,
        };
        let count = self.nested(|parser| parser.initialise(place, None, fills));
        self.scope_of_list = outer;
        let count = count?;
        match *self.unit.types.shape(ty) {
            Shape::Array(of, None) => {
                let array = self.unit.types.array(of, Some(count)).like(ty);
                if self.unit.types.size(array) > super::DATA {
                    return Err(self.wrong(at, "this is larger than all data may be", None));
                }
                Ok(array)
            }
            Shape::Record(r) => {
                let size = self.unit.types.records[r as usize].size;
                if fills
                    .iter()
                    .any(|f| u64::from(f.offset) + self.unit.types.size(f.ty) > size)
                {
                    return Err(self.wrong(at, "a member of open size cannot have values", None));
                }
                Ok(ty)
            }
            _ => Ok(ty),
        }
    }

    pub fn local_initialiser(&mut self, local: u32) -> R<u32> {
        let ty = self.unit.locals[local as usize].ty;
        let mut fills = Vec::new();
        let ty = self.whole(ty, &mut fills)?;
        self.unit.locals[local as usize].ty = ty;
        // One value for all of it leaves nothing to be zeroed.
        let zero = self.is_aggregate(ty)
            && !matches!(&fills[..], [f] if self.unit.types.size(f.ty) == self.unit.types.size(ty));
        let from = self.unit.fills.len() as u32;
        self.unit.fills.extend(&fills);
        Ok(self.fill(local, zero, from, fills.len() as u32))
    }

    /// The initialiser of an object with static storage.
    pub fn static_initialiser(&mut self, global: u32) -> R<()> {
        let ty = self.unit.globals[global as usize].ty;
        let mut fills = Vec::new();
        let ty = self.whole(ty, &mut fills)?;
        let size = self.unit.types.size(ty);
        let at = self.unit.globals[global as usize].at;
        self.data += size;
        if self.data > super::DATA {
            let message = format!("this text has more than {} MiB of data", super::DATA >> 20);
            return Err(self
                .notes
                .last(at, message, Some("let the host allocate large objects")));
        }
        let (mut bytes, mut addresses) = (vec![0u8; size as usize], Vec::new());
        for fill in fills {
            self.static_value(&fill, &mut bytes, &mut addresses)?;
        }
        // The same place twice: the later value counts.
        let global = &mut self.unit.globals[global as usize];
        global.ty = ty;
        global.bytes = Some(bytes);
        global.addresses = addresses;
        global.defined = true;
        Ok(())
    }

    fn static_value(
        &mut self,
        fill: &Fill,
        bytes: &mut [u8],
        addresses: &mut Vec<(u32, Target, i64)>,
    ) -> R<()> {
        let at = self.at_of(fill.value);
        let from = fill.offset as usize;
        let size = self.unit.types.size(fill.ty) as usize;
        let Some(place) = bytes.get_mut(from..from + size) else {
            return Err(self.wrong(at, "this value lies outside of the object", None));
        };
        addresses.retain(|a| (a.0 as usize) + 8 <= from || a.0 as usize >= from + size);
        match self.unit.node(fill.value).expr {
            Expr::Global(string)
                if self.is_aggregate(fill.ty) && self.unit.types.element(fill.ty).is_some() =>
            {
                if let Some(text) = &self.unit.globals[string as usize].bytes {
                    let len = size.min(text.len());
                    place[..len].copy_from_slice(&text[..len]);
                }
                return Ok(());
            }
            Expr::Float(value) => {
                match size {
                    4 => place.copy_from_slice(&(value as f32).to_le_bytes()),
                    _ => place.copy_from_slice(&value.to_le_bytes()),
                }
                return Ok(());
            }
            Expr::Long(value) if size == 16 => {
                place.fill(0);
                place[..10].copy_from_slice(&value.bytes());
                return Ok(());
            }
            _ => {}
        }
        let known = if self.is_aggregate(fill.ty) {
            None
        } else {
            self.address_constant(fill.value)
        };
        match (known, fill.bits) {
            (Some((None, value)), Some(bits)) => {
                let mut unit = [0u8; 8];
                unit[..size].copy_from_slice(place);
                let mask = (u64::MAX >> (64 - u32::from(bits.len))) << bits.from;
                let old = u64::from_le_bytes(unit) & !mask;
                let new = (old | (value as u64) << bits.from & mask).to_le_bytes();
                place.copy_from_slice(&new[..size]);
                Ok(())
            }
            (Some((None, value)), None) => {
                place.copy_from_slice(&value.to_le_bytes()[..size]);
                Ok(())
            }
            (Some((Some(target), add)), None) if size == 8 => {
                addresses.push((fill.offset, target, add));
                Ok(())
            }
            _ => {
                let remedy = Some("assign it in a function");
                Err(self.wrong(at, "the value of a static object has to be a constant", remedy))
            }
        }
    }

    /// The value of a constant expression: an address and a number, or a number alone.
    fn address_constant(&self, id: Id) -> Option<(Option<Target>, i64)> {
        let node = self.unit.node(id);
        let types = &self.unit.types;
        match node.expr {
            Expr::Int(value) => Some((None, value)),
            Expr::Addr(of) => self.place_constant(of),
            Expr::PtrAdd(a, b, stride) => {
                let (target, value) = self.address_constant(a)?;
                let (None, index) = self.address_constant(b)? else {
                    return None;
                };
                Some((target, value.wrapping_add(index.wrapping_mul(i64::from(stride)))))
            }
            Expr::Binary(op @ (Bin::Add | Bin::Sub), a, b) if types.size(node.ty) == 8 => {
                let (target, x) = self.address_constant(a)?;
                let (None, y) = self.address_constant(b)? else {
                    return None;
                };
                Some((
                    target,
                    if op == Bin::Add {
                        x.wrapping_add(y)
                    } else {
                        x.wrapping_sub(y)
                    },
                ))
            }
            Expr::Convert(a) => {
                let (target, value) = self.address_constant(a)?;
                match target {
                    None if node.ty.is_float() || self.unit.ty(a).is_float() => None,
                    None if types.is_ptr(node.ty) => Some((None, value)),
                    None => Some((None, fold::fit(value, node.ty, types))),
                    // An address keeps its meaning in 64 bits only.
                    Some(_) => (types.size(node.ty) == 8 && !node.ty.is_float()).then_some((target, value)),
                }
            }
            _ => None,
        }
    }

    fn place_constant(&self, id: Id) -> Option<(Option<Target>, i64)> {
        match self.unit.node(id).expr {
            Expr::Global(global) => Some((Some(Target::Global(global)), 0)),
            Expr::Func(func) => Some((Some(Target::Func(func)), 0)),
            Expr::Deref(pointer) => self.address_constant(pointer),
            Expr::Member(of, offset, None) => {
                let (target, value) = self.place_constant(of)?;
                Some((target, value.wrapping_add(i64::from(offset))))
            }
            _ => None,
        }
    }

    /// `(type){…}`; the type was read.
    pub fn compound_literal(&mut self, ty: Ty, at: u32) -> R<Id> {
        if self.unit.types.sig(ty).is_some() || ty.is_void() {
            return Err(self.wrong(at, "there are no objects of this type", None));
        }
        if self.inside.is_none() {
            let global = self.anonymous(ty, at, None)?;
            self.static_initialiser(global)?;
            let ty = self.unit.globals[global as usize].ty;
            return self.make(Expr::Global(global), ty, at);
        }
        let local = self.local(ty)?;
        // It is filled anew where it stands, and lies in memory so that it can be read as a place.
        self.unit.locals[local as usize].in_memory = true;
        let fill = self.local_initialiser(local)?;
        let ty = self.unit.locals[local as usize].ty;
        self.make(Expr::Literal(local, fill), ty, at)
    }
}
