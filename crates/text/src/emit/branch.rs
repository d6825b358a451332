//! Comparisons: as branches, and as values.

use super::Emit;
use super::asm::alu;
use crate::alloc::{R11, RCX};
use crate::ir::{Ins, MEM, NONE, Op, TEST, cc};

impl Emit<'_> {
    pub fn branches(&mut self, ins: &Ins, k: usize) {
        match ins.op {
            Op::Jmp => {
                // Not to what comes next anyway.
                let mut rest = self.f.code[k + 1..].iter().take_while(|i| i.op == Op::Label);
                if !rest.any(|i| i.c == ins.c) {
                    self.jump(None, ins.c);
                }
            }
            Op::Br => {
                self.compare(ins, k);
                self.jump(Some(ins.cc), ins.c);
            }
            Op::FBr => {
                self.compare_floats(ins);
                match ins.cc {
                    cc::FEQ => {
                        // Past the jump if they are not comparable.
                        self.out.asm.bytes(&[0x7A, 0]);
                        let from = self.out.asm.code.len();
                        self.jump(Some(cc::E), ins.c);
                        self.out.asm.code[from - 1] = (self.out.asm.code.len() - from) as u8;
                    }
                    cc::FNE => {
                        self.jump(Some(cc::NE), ins.c);
                        self.jump(Some(0xA), ins.c);
                    }
                    code => self.jump(Some(code), ins.c),
                }
            }
            _ => self.set(ins, k),
        }
    }

    fn jump(&mut self, code: Option<u8>, label: u32) {
        let at = self.labels[label as usize];
        let here = self.out.asm.code.len() as i64;
        if at != NONE {
            let short = i64::from(at) - (here + 2);
            if short >= -128 {
                self.out
                    .asm
                    .bytes(&[code.map_or(0xEB, |c| 0x70 | c), short as u8]);
                return;
            }
        }
        match code {
            Some(code) => self.out.asm.bytes(&[0x0F, 0x80 | code]),
            None => self.out.asm.code.push(0xE9),
        }
        self.jumps.push((self.out.asm.code.len() as u32, label));
        self.out.asm.bytes(&[0; 4]);
    }

    fn compare(&mut self, ins: &Ins, k: usize) {
        if ins.a == MEM || ins.b == MEM {
            return self.compare_memory(ins, k);
        }
        if ins.sc != TEST && self.in_slot(ins.a) && (ins.b == NONE || !self.in_slot(ins.b)) {
            let slot = self.slot(ins.a);
            if ins.b == NONE {
                self.out.asm.alu_memory(alu::CMP, ins.w, slot, ins.imm as i32);
            } else {
                let b = self.use_in(ins.b, RCX);
                self.out.asm.rm(0, &[0x39], ins.w, b, slot);
            }
            return;
        }
        let a = self.use_in(ins.a, R11);
        if ins.b != NONE {
            let b = self.use_in(ins.b, RCX);
            let op = if ins.sc == TEST { 0x85 } else { alu::CMP };
            self.out.asm.rr(0, &[op], ins.w, a, b);
        } else {
            self.compare_constant(ins, a);
        }
    }

    fn compare_constant(&mut self, ins: &Ins, a: u8) {
        let (asm, value) = (&mut self.out.asm, ins.imm as i32);
        if ins.sc == TEST {
            // Of the lower byte, where that says the same.
            let byte = (0..128).contains(&value);
            asm.rr(
                0,
                &[if byte { 0xF6 } else { 0xF7 }],
                if byte { 1 } else { ins.w },
                0,
                a,
            );
            asm.immediate(if byte { 1 } else { 4 }, value);
        } else if value == 0 {
            asm.rr(0, &[0x85], ins.w, a, a);
        } else {
            asm.alu_constant(alu::CMP, ins.w, a, value);
        }
    }

    /// Of an operand in memory.
    fn compare_memory(&mut self, ins: &Ins, k: usize) {
        let Some(m) = self.direct(k) else {
            // Its address takes both scratch registers, then it does.
            let value = self.fetch(k, RCX);
            match (ins.a == MEM, ins.b) {
                (true, NONE) => self.compare_constant(ins, value),
                (true, b) => {
                    let b = self.use_in(b, R11);
                    self.out.asm.rr(
                        0,
                        &[if ins.sc == TEST { 0x85 } else { alu::CMP }],
                        ins.w,
                        value,
                        b,
                    );
                }
                _ => {
                    let a = self.use_in(ins.a, R11);
                    self.out.asm.rr(0, &[alu::CMP], ins.w, a, value);
                }
            }
            return;
        };
        let value = ins.imm as i32;
        match (ins.a == MEM, ins.b) {
            (true, NONE) if ins.sc == TEST => {
                self.out
                    .asm
                    .rm(0, &[if ins.w == 1 { 0xF6 } else { 0xF7 }], ins.w.max(4), 0, m);
                self.out.asm.immediate(ins.w.min(4), value);
            }
            (true, NONE) => self.out.asm.alu_memory(alu::CMP, ins.w, m, value),
            (true, b) => {
                let b = self.use_in(b, RCX);
                self.out
                    .asm
                    .rm(0, &[if ins.sc == TEST { 0x85 } else { 0x39 }], ins.w, b, m);
            }
            _ => {
                let a = self.use_in(ins.a, RCX);
                self.out.asm.rm(0, &[alu::CMP], ins.w, a, m);
            }
        }
    }

    /// A move if a condition holds.
    pub fn choose(&mut self, ins: &Ins, k: usize) {
        self.compare(ins, k);
        // Loads leave the flags as they are.
        let d = self.use_in(ins.d, R11);
        let c = self.use_in(ins.c, RCX);
        self.out.asm.rr(0, &[0x0F, 0x40 | ins.cc], 8, d, c);
        self.done(ins.d);
    }

    fn compare_floats(&mut self, ins: &Ins) {
        let (a, b) = (self.use_float(ins.a, 15), self.use_float(ins.b, 14));
        self.out
            .asm
            .rr(if ins.w == 8 { 0x66 } else { 0 }, &[0x0F, 0x2E], 4, a, b);
    }

    fn set(&mut self, ins: &Ins, k: usize) {
        if ins.op == Op::FSet {
            self.compare_floats(ins);
        } else {
            self.compare(ins, k);
        }
        self.set_flags(ins);
    }

    /// What the flags say, as 0 or 1.
    pub fn set_flags(&mut self, ins: &Ins) {
        let set = |asm: &mut super::asm::Asm, code: u8, reg: u8| asm.rr(0, &[0x0F, 0x90 | code], 1, 0, reg);
        let d = self.def(ins.d);
        let asm = &mut self.out.asm;
        match ins.cc {
            cc::FEQ => {
                set(asm, cc::E, RCX);
                set(asm, 0xB, R11);
                asm.rr(0, &[alu::AND], 4, RCX, R11);
            }
            cc::FNE => {
                set(asm, cc::NE, RCX);
                set(asm, 0xA, R11);
                asm.rr(0, &[alu::OR], 4, RCX, R11);
            }
            code => set(asm, code, RCX),
        }
        asm.rr(0, &[0x0F, 0xB6], 1, d, RCX);
        self.done(ins.d);
    }
}
