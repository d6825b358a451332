//! Declaration specifiers: basic types, structures, unions, enumerations, and where things are kept.

use super::{Name, Parser, R};
use crate::lex::{self, Kind, p};
use crate::types::{Bits, Field, Layout, SIZE_MAX, Shape, Sym, Ty};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Storage {
    None,
    Typedef,
    Static,
    Extern,
}

pub struct Specifiers {
    pub ty: Ty,
    pub storage: Storage,
}

#[derive(Default)]
struct Words {
    base: Option<Sym>,
    short: bool,
    longs: u8,
    signed: bool,
    unsigned: bool,
}

impl Words {
    fn any(&self) -> bool {
        self.base.is_some() || self.short || self.longs > 0 || self.signed || self.unsigned
    }

    fn ty(&self) -> Option<Ty> {
        let sign = self.signed || self.unsigned;
        if self.signed && self.unsigned {
            return None;
        }
        let pick = |signed: Ty, unsigned: Ty| Some(if self.unsigned { unsigned } else { signed });
        match (self.base, self.short, self.longs) {
            (Some(lex::VOID), false, 0) if !sign => Some(Ty::VOID),
            (Some(lex::BOOL), false, 0) if !sign => Some(Ty::BOOL),
            (Some(lex::FLOAT), false, 0) if !sign => Some(Ty::FLOAT),
            (Some(lex::DOUBLE), false, 0) if !sign => Some(Ty::DOUBLE),
            (Some(lex::DOUBLE), false, 1) if !sign => Some(Ty::LDOUBLE),
            (Some(lex::CHAR), false, 0) if !sign => Some(Ty::CHAR),
            (Some(lex::CHAR), false, 0) => pick(Ty::SCHAR, Ty::UCHAR),
            (None | Some(lex::INT), true, 0) => pick(Ty::SHORT, Ty::USHORT),
            (None | Some(lex::INT), false, 0) => pick(Ty::INT, Ty::UINT),
            (None | Some(lex::INT), false, 1) => pick(Ty::LONG, Ty::ULONG),
            (None | Some(lex::INT), false, 2) => pick(Ty::LLONG, Ty::ULLONG),
            _ => None,
        }
    }
}

impl Parser<'_> {
    /// Whether a type begins some tokens ahead.
    pub fn starts_type(&self, ahead: usize) -> bool {
        match self.ahead(ahead) {
            Kind::Name(sym) if sym < lex::KEYWORDS => {
                (lex::VOID..=lex::NORETURN).contains(&sym)
                    || (sym >= lex::FIRST_UNSUPPORTED
                        && sym != lex::UNSUPPORTED_ASM
                        && sym != lex::UNSUPPORTED_ASM2)
            }
            Kind::Name(sym) => self.type_named(sym).is_some(),
            _ => false,
        }
    }

    /// The type that a name stands for. `boolean` is one in E-code, unless the text says what it is.
    fn type_named(&self, sym: Sym) -> Option<Ty> {
        match self.find(sym, false).map(|b| b.name) {
            Some(Name::Typedef(ty)) => Some(ty),
            Some(_) => None,
            None => (self.spell(sym) == "boolean").then_some(Ty::BOOL),
        }
    }

    pub fn specifiers(&mut self) -> R<Specifiers> {
        let at = self.at();
        let (mut words, mut other) = (Words::default(), None);
        let (mut constant, mut volatile, mut storage) = (false, false, Storage::None);
        while let Kind::Name(sym) = self.kind() {
            match sym {
                lex::CONST => constant = true,
                lex::VOLATILE => volatile = true,
                lex::RESTRICT | lex::AUTO | lex::REGISTER | lex::INLINE | lex::NORETURN => {}
                lex::TYPEDEF | lex::STATIC | lex::EXTERN => {
                    if storage != Storage::None {
                        return Err(self.wrong(
                            self.at(),
                            "only one of typedef, static and extern can stand here",
                            None,
                        ));
                    }
                    storage = match sym {
                        lex::TYPEDEF => Storage::Typedef,
                        lex::STATIC => Storage::Static,
                        _ => Storage::Extern,
                    };
                }
                lex::SHORT => words.short = true,
                lex::LONG => words.longs += u8::from(words.longs < 3),
                lex::SIGNED | lex::SIGNED2 => words.signed = true,
                lex::UNSIGNED => words.unsigned = true,
                lex::VOID | lex::BOOL | lex::BOOL2 | lex::CHAR | lex::INT | lex::FLOAT | lex::DOUBLE => {
                    if words.base.is_some() {
                        return Err(self.wrong(self.at(), "two types stand here", None));
                    }
                    words.base = Some(if sym == lex::BOOL2 { lex::BOOL } else { sym });
                }
                lex::STRUCT | lex::UNION | lex::ENUM if other.is_none() && !words.any() => {
                    other = Some(match sym {
                        lex::ENUM => self.nested(Self::enumeration)?,
                        _ => self.nested(Self::record)?,
                    });
                    continue;
                }
                lex::FIRST_UNSUPPORTED..lex::KEYWORDS => return Err(self.unsupported_word(sym)),
                _ => match self.type_named(sym) {
                    Some(ty) if other.is_none() && !words.any() => other = Some(ty),
                    _ => break,
                },
            }
            self.next();
        }
        let ty = match other {
            Some(_) if words.any() => None,
            Some(ty) => Some(ty),
            None if words.any() => words.ty(),
            None => {
                if let Kind::Name(sym) = self.kind()
                    && sym >= lex::KEYWORDS
                    && self.find(sym, false).is_none()
                    && matches!(self.ahead(1), Kind::Name(_) | Kind::Punct(_))
                {
                    let message = format!("`{}` is expected to be a type, but is unknown", self.spell(sym));
                    return Err(self.wrong(
                        self.at(),
                        message,
                        Some("declare it with typedef, or write struct in front of it"),
                    ));
                }
                return Err(self.unexpected("a type"));
            }
        };
        match ty {
            Some(ty) => Ok(Specifiers {
                ty: ty.qualified(constant, volatile),
                storage,
            }),
            None => Err(self.wrong(at, "these words together are no type", None)),
        }
    }

    fn enumeration(&mut self) -> R<Ty> {
        self.next();
        let at = self.at();
        let tag = match self.kind() {
            Kind::Name(_) => Some(self.name()?),
            _ => None,
        };
        if !self.eat(p("{")) {
            let Some(tag) = tag else {
                return Err(self.unexpected("`{`"));
            };
            return match self.find(tag, true).map(|b| b.name) {
                Some(Name::Tag(ty)) if ty.is_int() => Ok(ty),
                _ => Err(self.wrong(
                    at,
                    "this enumeration is not known",
                    Some("define it before it is used"),
                )),
            };
        }
        let (mut next, mut least, mut most) = (0i64, 0i64, 0i64);
        while !self.is(p("}")) {
            let name_at = self.at();
            let name = self.name()?;
            if self.eat(p("=")) {
                next = self.constant_int()?;
            }
            if self.find_here(name, false).is_some() {
                let message = format!("`{}` is declared twice", self.spell(name));
                return Err(self.wrong(name_at, message, None));
            }
            self.bind(name, Name::Const(next));
            (least, most) = (least.min(next), most.max(next));
            next = next.wrapping_add(1);
            if !self.eat(p(",")) {
                break;
            }
        }
        self.need("}")?;
        let ty = match least < 0 {
            true if least >= i64::from(i32::MIN) && most <= i64::from(i32::MAX) => Ty::INT,
            true => Ty::LONG,
            false if most <= i64::from(u32::MAX) => Ty::UINT,
            false => Ty::ULONG,
        };
        if let Some(tag) = tag {
            if self.find_here(tag, true).is_some() {
                let message = format!("`{}` is defined twice", self.spell(tag));
                return Err(self.wrong(at, message, None));
            }
            self.bind(tag, Name::Tag(ty));
        }
        Ok(ty)
    }

    fn record(&mut self) -> R<Ty> {
        let union = self.kind() == Kind::Name(lex::UNION);
        self.next();
        let at = self.at();
        let tag = match self.kind() {
            Kind::Name(_) => Some(self.name()?),
            _ => None,
        };
        let defines = self.is(p("{"));
        if tag.is_none() && !defines {
            return Err(self.unexpected("`{`"));
        }
        // A definition, and a declaration of nothing else, are about this scope's.
        let here = defines || self.is(p(";"));
        let known = tag.and_then(|tag| match here {
            true => self.find_here(tag, true),
            false => self.find(tag, true).map(|b| b.name),
        });
        let ty = match known {
            Some(Name::Tag(ty)) => ty,
            _ => {
                let ty = self.unit.types.record(union);
                if let Some(tag) = tag {
                    self.bind(tag, Name::Tag(ty));
                }
                ty
            }
        };
        let Shape::Record(number) = *self.unit.types.shape(ty) else {
            return Err(self.wrong(at, "this is the name of an enumeration", None));
        };
        let record = &self.unit.types.records[number as usize];
        if record.union != union {
            return Err(self.wrong(at, "one is a structure, the other a union", None));
        }
        if !defines {
            return Ok(ty);
        }
        if record.complete {
            return Err(self.wrong(at, "this is defined twice", None));
        }
        self.next();
        self.members(number, union)?;
        Ok(ty)
    }

    fn members(&mut self, number: u32, union: bool) -> R<()> {
        let mut layout = Layout::new(union);
        while !self.eat(p("}")) {
            let base = self.specifiers()?;
            if base.storage != Storage::None {
                return Err(self.wrong(self.at(), "members have no typedef, static or extern", None));
            }
            if self.is(p(";")) && self.unit.types.is_record(base.ty) {
                self.add_member(&mut layout, number, None, base.ty)?;
            } else {
                loop {
                    let at = self.at();
                    let (name, ty) = match self.is(p(":")) {
                        true => (None, base.ty),
                        false => {
                            let (name, ty) = self.declarator(base.ty)?;
                            if name.is_none() {
                                return Err(self.wrong(at, "a member's name is missing", None));
                            }
                            (name, ty)
                        }
                    };
                    self.add_member(&mut layout, number, name, ty)?;
                    if !self.eat(p(",")) {
                        break;
                    }
                }
            }
            self.need(";")?;
        }
        let (size, align) = layout.finish();
        if size > SIZE_MAX {
            return Err(self.wrong(self.at(), "this is larger than 256 MiB", None));
        }
        let record = &mut self.unit.types.records[number as usize];
        record.complete = true;
        (record.size, record.align) = (size, align);
        Ok(())
    }

    fn add_member(&mut self, layout: &mut Layout, number: u32, name: Option<Sym>, ty: Ty) -> R<()> {
        let at = self.at();
        let width = match self.eat(p(":")) {
            true => Some(self.constant_int()?),
            false => None,
        };
        let types = &self.unit.types;
        let flexible = matches!(types.shape(ty), Shape::Array(of, None) if types.complete(*of));
        if !types.complete(ty) && !flexible {
            return Err(self.wrong(at, "this member's type is not complete", None));
        }
        if flexible && self.is(p(";")) && self.ahead(1) != Kind::Punct(p("}")) {
            return Err(self.wrong(at, "only the last member can have an open size", None));
        }
        let (size, align) = (types.size(ty), types.align(ty));
        if let Some(width) = width {
            let most = if ty.plain() == Ty::BOOL {
                1
            } else {
                size as i64 * 8
            };
            if !ty.is_int() || !(0..=most).contains(&width) || (width == 0 && name.is_some()) {
                return Err(self.wrong(at, "this bit-field has no possible width", None));
            }
        }
        if let Some(name) = name
            && self.unit.types.records[number as usize]
                .fields
                .iter()
                .rev()
                .take(64)
                .any(|f| f.name == Some(name))
        {
            let message = format!("there is a member `{}` already", self.spell(name));
            return Err(self.wrong(at, message, None));
        }
        let (offset, bits) = layout.place(size, align, width.map(|w| w as u8), name.is_some());
        // Bit-fields without a name take room only.
        if name.is_some() || width.is_none() {
            let bits = bits.filter(|b: &Bits| b.len > 0);
            self.unit.types.records[number as usize].fields.push(Field {
                name,
                ty,
                offset,
                bits,
            });
        }
        Ok(())
    }

    /// The value of an integer constant expression.
    pub fn constant_int(&mut self) -> R<i64> {
        let at = self.at();
        let id = self.nested(Self::conditional)?;
        let id = self.value(id)?;
        match self.unit.int(id) {
            Some(value) if self.ty(id).is_int() => Ok(value),
            _ => Err(self.wrong(at, "an integer constant is needed here", None)),
        }
    }
}
