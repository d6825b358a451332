//! Types: what there is, how large it is, and what becomes of it in expressions.

/// A name: its number in the order of first appearance, keywords first.
pub type Sym = u32;

/// A type: a number in [`Types`], with its qualifiers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Ty(u32);

const CONST: u32 = 1 << 31;
const VOLATILE: u32 = 1 << 30;

#[allow(missing_docs)]
impl Ty {
    pub const VOID: Ty = Ty(0);
    pub const BOOL: Ty = Ty(1);
    pub const CHAR: Ty = Ty(2);
    pub const SCHAR: Ty = Ty(3);
    pub const UCHAR: Ty = Ty(4);
    pub const SHORT: Ty = Ty(5);
    pub const USHORT: Ty = Ty(6);
    pub const INT: Ty = Ty(7);
    pub const UINT: Ty = Ty(8);
    pub const LONG: Ty = Ty(9);
    pub const ULONG: Ty = Ty(10);
    pub const LLONG: Ty = Ty(11);
    pub const ULLONG: Ty = Ty(12);
    pub const FLOAT: Ty = Ty(13);
    pub const DOUBLE: Ty = Ty(14);
    pub const LDOUBLE: Ty = Ty(15);

    pub fn plain(self) -> Ty {
        Ty(self.0 & !(CONST | VOLATILE))
    }
    pub fn is_const(self) -> bool {
        self.0 & CONST != 0
    }
    pub fn is_volatile(self) -> bool {
        self.0 & VOLATILE != 0
    }
    pub fn qualified(self, constant: bool, volatile: bool) -> Ty {
        Ty(self.0 | if constant { CONST } else { 0 } | if volatile { VOLATILE } else { 0 })
    }
    /// With the qualifiers of another type too.
    pub fn like(self, other: Ty) -> Ty {
        Ty(self.0 | other.0 & (CONST | VOLATILE))
    }
    pub fn is_void(self) -> bool {
        self.plain() == Ty::VOID
    }
    pub fn is_int(self) -> bool {
        (1..=12).contains(&self.plain().0)
    }
    pub fn is_float(self) -> bool {
        matches!(self.plain().0, 13..=15)
    }
    /// `long double`, which is in memory or in the x87 unit.
    pub fn is_long_double(self) -> bool {
        self.plain() == Ty::LDOUBLE
    }
    pub fn is_arith(self) -> bool {
        (1..=15).contains(&self.plain().0)
    }
    /// Whether an integer type is signed.
    pub fn signed(self) -> bool {
        matches!(self.plain().0, 2 | 3 | 5 | 7 | 9 | 11)
    }
    /// What an integer type becomes in an expression.
    pub fn promoted(self) -> Ty {
        match self.plain().0 {
            1..=6 => Ty::INT,
            n => Ty(n),
        }
    }
    /// An integer type of the same width without sign.
    pub fn unsigned(self) -> Ty {
        match self.plain() {
            Ty::INT => Ty::UINT,
            Ty::LONG => Ty::ULONG,
            Ty::LLONG => Ty::ULLONG,
            ty => ty,
        }
    }
    fn index(self) -> usize {
        self.plain().0 as usize
    }
}

#[derive(Clone, Debug)]
pub enum Shape {
    /// `void` and the arithmetic types.
    Basic,
    Ptr(Ty),
    /// Elements; `None` where their number is not known yet.
    Array(Ty, Option<u64>),
    Func(u32),
    Record(u32),
}

/// A function's type.
#[derive(Clone, Debug)]
pub struct Sig {
    pub ret: Ty,
    pub params: Vec<Ty>,
    pub variadic: bool,
}

/// A member that is a bit-field: from which bit of the unit at its offset, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bits {
    pub from: u8,
    pub len: u8,
}

#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// `None`: an anonymous structure or union.
    pub name: Option<Sym>,
    pub ty: Ty,
    pub offset: u32,
    pub bits: Option<Bits>,
}

#[derive(Clone, Debug)]
pub struct Record {
    pub union: bool,
    pub complete: bool,
    pub fields: Vec<Field>,
    pub size: u64,
    pub align: u32,
}

struct Entry {
    shape: Shape,
    size: u64,
    align: u32,
    /// The pointer type to this, if it was made.
    pointer: Option<Ty>,
    depth: u8,
}

/// How deep types may stand in types.
const DEPTH: u8 = 64;
/// Largest size of an object.
pub const SIZE_MAX: u64 = 1 << 28;

pub struct Types {
    list: Vec<Entry>,
    pub sigs: Vec<Sig>,
    pub records: Vec<Record>,
    /// A type was refused: too deep, or too large.
    pub too_deep: bool,
}

impl Types {
    pub fn new() -> Types {
        const SIZES: [u64; 16] = [1, 1, 1, 1, 1, 2, 2, 4, 4, 8, 8, 8, 8, 4, 8, 16];
        let list = SIZES.iter().map(|&size| Entry {
            shape: Shape::Basic,
            size,
            align: size as u32,
            pointer: None,
            depth: 0,
        });
        let mut basic = Vec::with_capacity(32);
        basic.extend(list);
        Types {
            list: basic,
            sigs: Vec::new(),
            records: Vec::new(),
            too_deep: false,
        }
    }

    fn add(&mut self, shape: Shape, size: u64, align: u32, inner: Option<Ty>) -> Ty {
        let mut depth = inner.map_or(0, |t| self.list[t.index()].depth + 1);
        if depth > DEPTH {
            self.too_deep = true;
            depth = DEPTH;
        }
        self.list.push(Entry {
            shape,
            size,
            align,
            pointer: None,
            depth,
        });
        Ty(self.list.len() as u32 - 1)
    }

    pub fn shape(&self, ty: Ty) -> &Shape {
        &self.list[ty.index()].shape
    }

    pub fn pointer(&mut self, to: Ty) -> Ty {
        // The cache is for the type without qualifiers.
        if to == to.plain()
            && let Some(known) = self.list[to.index()].pointer
        {
            return known;
        }
        let ty = self.add(Shape::Ptr(to), 8, 8, Some(to));
        if to == to.plain() {
            self.list[to.index()].pointer = Some(ty);
        }
        ty
    }

    pub fn array(&mut self, of: Ty, count: Option<u64>) -> Ty {
        let (each, align) = (self.size(of), self.align(of));
        let size = each.saturating_mul(count.unwrap_or(0));
        self.add(Shape::Array(of, count), size, align, Some(of))
    }

    pub fn function(&mut self, sig: Sig) -> Ty {
        let deepest = sig
            .params
            .iter()
            .chain([&sig.ret])
            .copied()
            .max_by_key(|t| self.list[t.index()].depth);
        self.sigs.push(sig);
        self.add(Shape::Func(self.sigs.len() as u32 - 1), 1, 1, deepest)
    }

    pub fn record(&mut self, union: bool) -> Ty {
        self.records.push(Record {
            union,
            complete: false,
            fields: Vec::new(),
            size: 0,
            align: 1,
        });
        self.add(Shape::Record(self.records.len() as u32 - 1), 0, 1, None)
    }

    pub fn size(&self, ty: Ty) -> u64 {
        match *self.shape(ty) {
            Shape::Record(r) => self.records[r as usize].size,
            Shape::Array(of, Some(n)) => self.size(of).saturating_mul(n),
            _ => self.list[ty.index()].size,
        }
    }

    pub fn align(&self, ty: Ty) -> u32 {
        match *self.shape(ty) {
            Shape::Record(r) => self.records[r as usize].align,
            Shape::Array(of, _) => self.align(of),
            _ => self.list[ty.index()].align,
        }
    }

    /// What a pointer points to.
    pub fn pointee(&self, ty: Ty) -> Option<Ty> {
        match *self.shape(ty) {
            Shape::Ptr(to) => Some(to),
            _ => None,
        }
    }

    pub fn element(&self, ty: Ty) -> Option<Ty> {
        match *self.shape(ty) {
            Shape::Array(of, _) => Some(of),
            _ => None,
        }
    }

    pub fn is_ptr(&self, ty: Ty) -> bool {
        matches!(self.shape(ty), Shape::Ptr(_))
    }

    pub fn sig(&self, ty: Ty) -> Option<&Sig> {
        match *self.shape(ty) {
            Shape::Func(s) => Some(&self.sigs[s as usize]),
            _ => None,
        }
    }

    pub fn record_of(&self, ty: Ty) -> Option<&Record> {
        match *self.shape(ty) {
            Shape::Record(r) => Some(&self.records[r as usize]),
            _ => None,
        }
    }

    pub fn is_record(&self, ty: Ty) -> bool {
        matches!(self.shape(ty), Shape::Record(_))
    }

    /// A number or a pointer: what fits into one register, but for `long double`.
    pub fn is_scalar(&self, ty: Ty) -> bool {
        ty.is_arith() || self.is_ptr(ty)
    }

    /// Whether objects of the type can be made.
    pub fn complete(&self, ty: Ty) -> bool {
        match *self.shape(ty) {
            Shape::Basic => !ty.is_void(),
            Shape::Ptr(_) => true,
            Shape::Array(of, n) => n.is_some() && self.complete(of),
            Shape::Func(_) => false,
            Shape::Record(r) => self.records[r as usize].complete,
        }
    }

    /// Whether a const member stands anywhere in the type.
    pub fn has_const(&self, ty: Ty) -> bool {
        match *self.shape(ty) {
            _ if ty.is_const() => true,
            Shape::Array(of, _) => self.has_const(of),
            Shape::Record(r) => self.records[r as usize]
                .fields
                .iter()
                .any(|f| self.has_const(f.ty)),
            _ => false,
        }
    }

    /// Whether two types are the same, but for their own qualifiers if `loose`.
    pub fn same(&self, a: Ty, b: Ty, loose: bool) -> bool {
        if a == b {
            return true;
        }
        if !loose && (a.is_const(), a.is_volatile()) != (b.is_const(), b.is_volatile()) {
            return false;
        }
        if a.plain() == b.plain() {
            return true;
        }
        match (self.shape(a), self.shape(b)) {
            (Shape::Ptr(a), Shape::Ptr(b)) => self.same(*a, *b, false),
            (Shape::Array(a, n), Shape::Array(b, m)) => {
                (n == m || n.is_none() || m.is_none()) && self.same(*a, *b, false)
            }
            (Shape::Func(a), Shape::Func(b)) => {
                let (a, b) = (&self.sigs[*a as usize], &self.sigs[*b as usize]);
                a.variadic == b.variadic
                    && a.params.len() == b.params.len()
                    && self.same(a.ret, b.ret, true)
                    && a.params
                        .iter()
                        .zip(&b.params)
                        .all(|(x, y)| self.same(*x, *y, true))
            }
            _ => false,
        }
    }

    /// The type in which two arithmetic operands meet.
    pub fn arithmetic(&self, a: Ty, b: Ty) -> Ty {
        for float in [Ty::LDOUBLE, Ty::DOUBLE, Ty::FLOAT] {
            if a.plain() == float || b.plain() == float {
                return float;
            }
        }
        let (a, b) = (a.promoted(), b.promoted());
        let (high, low) = if rank(a) >= rank(b) { (a, b) } else { (b, a) };
        if rank(high) == rank(low) {
            return if high.signed() { low } else { high };
        }
        if !high.signed() || low.signed() || self.size(high) > self.size(low) {
            high
        } else {
            high.unsigned()
        }
    }
}

fn rank(ty: Ty) -> u8 {
    match ty.plain() {
        Ty::INT | Ty::UINT => 4,
        Ty::LONG | Ty::ULONG => 5,
        Ty::LLONG | Ty::ULLONG => 6,
        _ => 3,
    }
}

/// Where the members of a structure or union lie, as gcc places them.
pub struct Layout {
    union: bool,
    bit: u64,
    size: u64,
    align: u32,
}

impl Layout {
    pub fn new(union: bool) -> Layout {
        Layout {
            union,
            bit: 0,
            size: 0,
            align: 1,
        }
    }

    /// Places a member of that size and alignment; for a bit-field with its width. An unnamed bit-field of width 0 ends a unit.
    pub fn place(&mut self, size: u64, align: u32, bits: Option<u8>, named: bool) -> (u32, Option<Bits>) {
        if self.union {
            self.bit = 0;
        }
        let unit = u64::from(align) * 8;
        let (offset, result) = match bits {
            None => {
                self.bit = self.bit.next_multiple_of(unit);
                let offset = self.bit / 8;
                self.bit = self.bit.saturating_add(size.saturating_mul(8));
                (offset, None)
            }
            Some(0) => {
                self.bit = self.bit.next_multiple_of(unit);
                (self.bit / 8, Some(Bits { from: 0, len: 0 }))
            }
            Some(len) => {
                let unit = size * 8;
                if self.bit % unit + u64::from(len) > unit {
                    self.bit = self.bit.next_multiple_of(unit);
                }
                let (offset, from) = (self.bit / unit * size, (self.bit % unit) as u8);
                self.bit += u64::from(len);
                (offset, Some(Bits { from, len }))
            }
        };
        if named || bits.is_none() {
            self.align = self.align.max(align);
        }
        self.size = self.size.max(self.bit.div_ceil(8));
        (offset.min(u64::from(u32::MAX)) as u32, result)
    }

    pub fn finish(&self) -> (u64, u32) {
        (self.size.next_multiple_of(u64::from(self.align)), self.align)
    }
}
