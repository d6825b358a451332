//! Floating-point instructions. `xmm14` and `xmm15` are scratch.

use super::Emit;
use super::asm::Address;
use crate::alloc::{NO_REG, R11};
use crate::ir::{Ins, MEM, NONE, Op, Val};

/// Opcodes of loads, stores and arithmetic.
const LOAD: u8 = 0x10;
const STORE: u8 = 0x11;

impl Emit<'_> {
    pub fn use_float(&mut self, v: Val, scratch: u8) -> u8 {
        match self.reg(v) {
            NO_REG => {
                let slot = self.slot(v);
                self.out.asm.float_memory(LOAD, 8, scratch, slot);
                scratch
            }
            r => r,
        }
    }

    fn def_float(&self, v: Val) -> u8 {
        match self.reg(v) {
            NO_REG => 15,
            r => r,
        }
    }

    fn done_float(&mut self, v: Val) {
        if self.reg(v) == NO_REG && self.regs.slot[v as usize] != NONE {
            let slot = self.slot(v);
            self.store_float(15, slot, 8);
        }
    }

    pub fn store_float(&mut self, reg: u8, to: Address, w: u8) {
        self.out.asm.float_memory(STORE, w, reg, to);
    }

    pub fn load_float(&mut self, reg: u8, from: Address, w: u8) {
        self.out.asm.float_memory(LOAD, w, reg, from);
    }

    /// `xmm` = the bits of a general register.
    fn bits(&mut self, to: u8, from: u8) {
        self.out.asm.rr(0x66, &[0x0F, 0x6E], 8, to, from);
    }

    pub fn float(&mut self, ins: &Ins, k: usize) {
        match ins.op {
            Op::FStore => {
                let m = self.address(ins);
                let c = self.use_float(ins.c, 15);
                self.store_float(c, m, ins.w);
                return;
            }
            Op::ToInt => {
                let a = self.use_float(ins.a, 15);
                let d = self.def(ins.d);
                let prefix = if ins.sc == 4 { 0xF3 } else { 0xF2 };
                self.out.asm.rr(prefix, &[0x0F, 0x2C], ins.w, d, a);
                self.done(ins.d);
                return;
            }
            Op::FRet => {
                let a = self.use_float(ins.a, 0);
                self.out.asm.movaps(0, a);
                self.leave();
                return;
            }
            _ => {}
        }
        let d = self.def_float(ins.d);
        match ins.op {
            Op::FMov => {
                let a = self.use_float(ins.a, d);
                self.out.asm.movaps(d, a);
            }
            Op::FConst if ins.imm == 0 => self.out.asm.rr(0, &[0x0F, 0x57], 4, d, d),
            Op::FConst => {
                self.out.asm.constant(R11, ins.imm);
                self.bits(d, R11);
            }
            Op::FLoad => {
                let m = self.address(ins);
                self.load_float(d, m, ins.w);
            }
            Op::FromInt => {
                let a = self.use_in(ins.a, R11);
                // The rest of the register is not waited for.
                self.out.asm.rr(0, &[0x0F, 0x57], 4, d, d);
                let prefix = if ins.sc == 4 { 0xF3 } else { 0xF2 };
                self.out.asm.rr(prefix, &[0x0F, 0x2A], ins.w, d, a);
            }
            Op::FCvt => {
                let a = self.use_float(ins.a, 15);
                let from = if ins.w == 8 { 4 } else { 8 };
                self.out.asm.float(0x5A, from, d, a);
            }
            Op::FFlip => {
                let a = self.use_float(ins.a, 15);
                self.out.asm.constant(R11, ins.imm);
                self.bits(14, R11);
                self.out.asm.movaps(d, a);
                self.out.asm.rr(0, &[0x0F, 0x57], 4, d, 14);
            }
            _ => self.float_arithmetic(ins, d, k),
        }
        self.done_float(ins.d);
    }

    fn float_arithmetic(&mut self, ins: &Ins, d: u8, k: usize) {
        let op = match ins.op {
            Op::FAdd => 0x58,
            Op::FSub => 0x5C,
            Op::FMul => 0x59,
            _ => 0x5E,
        };
        if ins.b == MEM {
            let mem = self.f.code[k - 1];
            let m = self.address(&mem);
            let a = self.use_float(ins.a, 15);
            self.out.asm.movaps(d, a);
            self.out.asm.float_memory(op, ins.w, d, m);
            return;
        }
        let (a, b) = (self.use_float(ins.a, 15), self.use_float(ins.b, 14));
        let asm = &mut self.out.asm;
        if d == b && d != a {
            if matches!(ins.op, Op::FAdd | Op::FMul) {
                asm.float(op, ins.w, d, a);
                return;
            }
            asm.movaps(15, a);
            asm.float(op, ins.w, 15, b);
            asm.movaps(d, 15);
            return;
        }
        asm.movaps(d, a);
        asm.float(op, ins.w, d, b);
    }
}
