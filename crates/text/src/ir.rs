//! The code of one function as a list of simple instructions on numbered values.

use crate::types::Ty;

/// A value: a variable, or what an instruction computed.
pub type Val = u32;

/// No value.
pub const NONE: Val = u32::MAX;
/// As the base of an address: the function's frame, and the text's data.
pub const FRAME: Val = u32::MAX - 1;
pub const DATA: Val = u32::MAX - 2;

/// As an operand: what is in memory where the [`Op::Mem`] before says.
pub const MEM: Val = u32::MAX - 3;

/// Whether it is a value, not one of the above.
pub const fn is_val(v: Val) -> bool {
    v < MEM
}

/// In the scale of an address: it is one in the text's data, although it has a base.
pub const IN_DATA: u8 = 0x80;

/// The scale of a comparison with 0 of `a & b`, or `a & imm`.
pub const TEST: u8 = 2;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    Nop,
    /// `d = a`.
    Mov,
    /// `d = imm`.
    MovI,
    FMov,
    /// `d` = the number whose bits are `imm`.
    FConst,
    /// `d = a op b`, or `a op imm` without `b`.
    Add,
    Sub,
    Mul,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    Sar,
    Div,
    Rem,
    UDiv,
    URem,
    Neg,
    Not,
    /// `d` = the two lower bytes of `a`, exchanged; what is above is 0 already.
    Swap,
    /// `d` = the address, 64 bits; of data only its lower half, without index.
    Lea,
    /// `d` = the address of data at `imm`, or of function `imm`, or of import `imm`.
    DataAddr,
    FuncAddr,
    ImportAddr,
    /// `d` = what is at the address, `w` bytes, extended by its sign if `cc`.
    Load,
    /// `c` to the address, `w` bytes.
    Store,
    /// The number `c` (as 32 bits with sign) to the address.
    StoreI,
    FLoad,
    FStore,
    /// `d` = `a` of `w` bytes extended to `sc` bytes, by its sign if `cc`.
    Ext,
    /// `d` (float of `sc` bytes) = integer `a` of `w` bytes with sign.
    FromInt,
    /// `d` (integer of `w` bytes) = float `a` of `sc` bytes, towards 0.
    ToInt,
    /// `d` (float of `w` bytes) = float `a` of the other size.
    FCvt,
    /// `d` = float `a` with the bits of `imm` inverted.
    FFlip,
    FAdd,
    FSub,
    FMul,
    FDiv,
    /// Of the x87 unit: its topmost number = what is at the address, an integer with sign if `cc`, or a float of `w` bytes.
    XLoad,
    /// The topmost number goes to the address, as a float of `w` bytes.
    XStore,
    /// The topmost number takes the place of the topmost two; it is the one below, and the topmost one.
    XAdd,
    XSub,
    XMul,
    XDiv,
    /// The topmost number with the other sign.
    XNeg,
    /// `d` = whether the topmost number `cc` the one below; both go.
    XSet,
    /// `d = a cc b`, as 0 or 1.
    Set,
    FSet,
    /// `d = c` if `a cc b`, and as it was otherwise.
    Choose,
    /// The address of what the next instruction has as [`MEM`].
    Mem,
    /// To label `c` if `a cc b`.
    Br,
    FBr,
    Jmp,
    Label,
    Ret,
    FRet,
    /// Calls function `imm`, or import `imm`, or what `a` points to; `b`: number in [`Func::calls`].
    Call,
    CallImport,
    CallPtr,
    /// What the function was called with, in the order of [`Func::params`].
    Params,
}

/// Conditions, numbered as in machine code; of floats there are two more.
pub mod cc {
    pub const B: u8 = 2;
    pub const AE: u8 = 3;
    pub const E: u8 = 4;
    pub const NE: u8 = 5;
    pub const BE: u8 = 6;
    pub const A: u8 = 7;
    pub const L: u8 = 12;
    pub const GE: u8 = 13;
    pub const LE: u8 = 14;
    pub const G: u8 = 15;
    /// Equal, and not: of numbers that may not be comparable.
    pub const FEQ: u8 = 0x14;
    pub const FNE: u8 = 0x15;

    /// The condition that holds with the operands exchanged.
    pub const fn swapped(cc: u8) -> u8 {
        match cc {
            B => A,
            A => B,
            AE => BE,
            BE => AE,
            L => G,
            G => L,
            GE => LE,
            LE => GE,
            cc => cc,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ins {
    pub op: Op,
    /// Width in bytes.
    pub w: u8,
    pub cc: u8,
    /// Scale of the index.
    pub sc: u8,
    /// Result.
    pub d: Val,
    /// Operands; of memory accesses base and index.
    pub a: Val,
    pub b: Val,
    /// What is stored, or a label.
    pub c: u32,
    /// Where the text says so.
    pub at: u32,
    pub imm: i64,
}

impl Ins {
    pub const fn new(op: Op) -> Ins {
        Ins {
            op,
            w: 8,
            cc: 0,
            sc: 1,
            d: NONE,
            a: NONE,
            b: NONE,
            c: NONE,
            at: 0,
            imm: 0,
        }
    }

    /// The values that it reads, without arguments of calls.
    pub fn uses(&self) -> [Val; 4] {
        let c = if matches!(self.op, Op::Store | Op::FStore | Op::Choose) {
            self.c
        } else {
            NONE
        };
        let b = if matches!(self.op, Op::Call | Op::CallImport | Op::CallPtr) {
            NONE
        } else {
            self.b
        };
        let d = if self.op == Op::Choose { self.d } else { NONE };
        [self.a, b, c, d]
    }

    pub fn is_call(&self) -> bool {
        matches!(self.op, Op::Call | Op::CallImport | Op::CallPtr)
    }

    /// Whether nothing is lost if nobody uses the result.
    pub fn is_pure(&self) -> bool {
        use Op::*;
        matches!(
            self.op,
            Mov | MovI
                | FMov
                | FConst
                | Add
                | Sub
                | Mul
                | And
                | Or
                | Xor
                | Shl
                | Shr
                | Sar
                | Neg
                | Not
                | Swap
                | Lea
                | DataAddr
                | FuncAddr
                | ImportAddr
                | Ext
                | FromInt
                | ToInt
                | FCvt
                | FFlip
                | FAdd
                | FSub
                | FMul
                | FDiv
                | Set
                | FSet
        ) || matches!(self.op, Load | FLoad) && self.c == NONE
    }

    /// Where control may go besides the next instruction.
    pub fn target(&self) -> Option<u32> {
        matches!(self.op, Op::Br | Op::FBr | Op::Jmp).then_some(self.c)
    }

    /// Whether the next instruction is never reached from here.
    pub fn ends(&self) -> bool {
        matches!(self.op, Op::Jmp | Op::Ret | Op::FRet)
    }
}

/// An argument or parameter: the value, and whether it is a float.
#[derive(Clone, Copy, Debug)]
pub struct Arg {
    pub val: Val,
    pub float: bool,
    /// It is the address of a `long double`, which is passed on the stack.
    pub long_double: bool,
}

impl Arg {
    /// An argument of that type of number; of records and `long double` the address.
    pub fn new(val: Val, ty: Ty) -> Arg {
        Arg {
            val,
            float: ty.is_float() && !ty.is_long_double(),
            long_double: ty.is_long_double(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct CallInfo {
    /// The arguments are in [`Func::args`].
    pub from: u32,
    pub count: u32,
    /// The result is a float.
    pub float: bool,
    pub variadic: bool,
}

#[derive(Default)]
pub struct Func {
    pub code: Vec<Ins>,
    /// For each value: is it a float?
    pub floats: Vec<bool>,
    pub labels: u32,
    pub calls: Vec<CallInfo>,
    pub args: Vec<Arg>,
    pub params: Vec<Arg>,
    /// Labels at which innermost loops begin.
    pub tops: Vec<bool>,
    /// Bytes of locals in the frame.
    pub frame: u32,
}

impl Func {
    /// The arguments of a call.
    pub fn call_args(&self, ins: &Ins) -> &[Arg] {
        let info = &self.calls[ins.b as usize];
        &self.args[info.from as usize..(info.from + info.count) as usize]
    }
}
