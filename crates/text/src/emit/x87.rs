//! Instructions of the x87 unit, for `long double`.

use super::Emit;
use super::asm::Address;
use crate::ir::{Ins, Op};

impl Emit<'_> {
    pub fn x87(&mut self, ins: &Ins) {
        match ins.op {
            Op::XLoad => {
                let m = self.address(ins);
                self.x87_memory(if ins.cc == 1 { (0xDF, 5) } else { load(ins.w) }, m);
            }
            Op::XStore => {
                let m = self.address(ins);
                self.x87_memory(store(ins.w), m);
            }
            Op::XNeg => self.out.asm.bytes(&[0xD9, 0xE0]),
            Op::XSet => {
                // fcomip or fucomip, which leaves what is not comparable alone; then the other one goes.
                let quiet = matches!(ins.cc, crate::ir::cc::FEQ | crate::ir::cc::FNE);
                self.out
                    .asm
                    .bytes(&[0xDF, if quiet { 0xE9 } else { 0xF1 }, 0xDD, 0xD8]);
                self.set_flags(ins);
            }
            op => {
                let second = match op {
                    Op::XAdd => 0xC1,
                    Op::XMul => 0xC9,
                    Op::XSub => 0xE9,
                    _ => 0xF9,
                };
                self.out.asm.bytes(&[0xDE, second]);
            }
        }
    }

    fn x87_memory(&mut self, (op, digit): (u8, u8), m: Address) {
        self.out.asm.rm(0, &[op], 4, digit, m);
    }

    /// Copies a number from one place to another.
    pub fn x87_copy(&mut self, from: Address, to: Address) {
        self.x87_memory(load(10), from);
        self.x87_memory(store(10), to);
    }
}

/// Opcode and what stands in the place of a register, by the width.
const fn load(w: u8) -> (u8, u8) {
    match w {
        4 => (0xD9, 0),
        8 => (0xDD, 0),
        _ => (0xDB, 5),
    }
}

const fn store(w: u8) -> (u8, u8) {
    match w {
        4 => (0xD9, 3),
        8 => (0xDD, 3),
        _ => (0xDB, 7),
    }
}
