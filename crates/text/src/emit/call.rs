//! Calls, and what a function is called with.

use super::asm::Address;
use super::{Emit, moves};
use crate::alloc::{ARGS, FLOAT_ARGS, NO_REG, R11, R15, RAX, RCX};
use crate::ir::{Arg, Ins, NONE, Op};
use ringfence_isa::{identifier, sequence};

/// Where an argument is passed.
enum Way {
    Reg(u8),
    Float(u8),
    Stack(u32),
    /// A `long double`, of which the value is the address.
    Long(u32),
}

/// Where all arguments are passed, and how many bytes and vector registers they take.
fn ways(args: &[Arg]) -> (Vec<Way>, u32, u8) {
    let (mut ints, mut floats, mut stack) = (0, 0, 0);
    let list = args.iter().map(|arg| {
        if arg.long_double {
            stack = u32::next_multiple_of(stack, 16) + 16;
            return Way::Long(stack - 16);
        }
        if arg.float && floats < FLOAT_ARGS {
            floats += 1;
            return Way::Float(floats - 1);
        }
        if !arg.float && ints < ARGS.len() {
            ints += 1;
            return Way::Reg(ARGS[ints - 1]);
        }
        stack += 8;
        Way::Stack(stack - 8)
    });
    let list = list.collect();
    (list, stack, floats)
}

/// Bytes of the stack that arguments take.
pub fn stacked(args: &[Arg]) -> u32 {
    ways(args).1
}

impl Emit<'_> {
    pub fn call(&mut self, ins: &Ins) {
        let f = self.f;
        let info = f.calls[ins.b as usize];
        let args = f.call_args(ins);
        let (ways, _, floats) = ways(args);
        if ins.op == Op::CallPtr {
            let pointer = self.use_in(ins.a, R11);
            self.out.asm.mov(8, R11, pointer);
        }
        let (mut ints, mut vectors, mut loads) = (Vec::new(), Vec::new(), Vec::new());
        for (arg, way) in args.iter().zip(&ways) {
            match *way {
                Way::Stack(offset) => {
                    let to = Address::at(R15, offset as i32);
                    if arg.float {
                        let from = self.use_float(arg.val, 15);
                        self.store_float(from, to, 8);
                    } else {
                        let from = self.use_in(arg.val, RCX);
                        self.out.asm.rm(0, &[0x89], 8, from, to);
                    }
                }
                Way::Long(offset) => {
                    let from = self.use_in(arg.val, RCX);
                    self.x87_copy(Address::at(from, 0), Address::at(R15, offset as i32));
                }
                Way::Reg(r) | Way::Float(r) if self.reg(arg.val) == NO_REG => loads.push((r, arg)),
                Way::Reg(r) => ints.push((r, self.reg(arg.val))),
                Way::Float(r) => vectors.push((r, self.reg(arg.val))),
            }
        }
        moves::parallel(&mut self.out.asm, ints, false);
        moves::parallel(&mut self.out.asm, vectors, true);
        for (r, arg) in loads {
            match arg.float {
                true => self.use_float(arg.val, r),
                false => self.use_in(arg.val, r),
            };
        }
        if info.variadic {
            self.out.asm.constant32(RAX, u32::from(floats));
        }
        match ins.op {
            Op::Call => {
                self.out.asm.bytes(&[0xE8, 0, 0, 0, 0]);
                self.out
                    .funcs
                    .push((self.out.asm.code.len() as u32 - 4, ins.imm as u32));
            }
            Op::CallImport => {
                self.out.asm.constant32(R11, 0);
                self.out
                    .imports
                    .push((self.out.asm.code.len() as u32 - 4, ins.imm as u32));
                self.checked_call();
            }
            _ => self.checked_call(),
        }
        if ins.d == NONE {
            return;
        }
        match (self.reg(ins.d), info.float) {
            (NO_REG, _) if self.regs.slot[ins.d as usize] == NONE => {}
            (NO_REG, true) => {
                let slot = self.slot(ins.d);
                self.store_float(0, slot, 8);
            }
            (NO_REG, false) => {
                let slot = self.slot(ins.d);
                self.out.asm.rm(0, &[0x89], 8, RAX, slot);
            }
            (d, true) => self.out.asm.movaps(d, 0),
            (d, false) => self.out.asm.mov(8, d, RAX),
        }
    }

    /// The fixed sequence that calls the function whose address is in `r11`.
    fn checked_call(&mut self) {
        let asm = &mut self.out.asm;
        while (asm.code.len() + sequence::ID_OFFSET) % 8 == 4 {
            asm.code.push(0x90);
        }
        asm.bytes(&sequence::AND);
        asm.bytes(&sequence::CMP);
        asm.bytes(&identifier::FUNCTION.to_le_bytes());
        asm.bytes(&sequence::CMOV);
        asm.bytes(&sequence::ADD);
        asm.bytes(&sequence::CALL);
    }

    /// Brings what the function was called with to where it is expected.
    pub fn params(&mut self) {
        let f = self.f;
        let (ways, _, _) = ways(&f.params);
        let (mut ints, mut vectors, mut loads) = (Vec::new(), Vec::new(), Vec::new());
        for (param, way) in f.params.iter().zip(&ways) {
            let (reg, slot) = (self.reg(param.val), self.regs.slot[param.val as usize]);
            if reg == NO_REG && slot == NONE {
                continue;
            }
            match (way, reg) {
                (Way::Reg(r), NO_REG) => {
                    let to = self.slot(param.val);
                    self.out.asm.rm(0, &[0x89], 8, *r, to);
                }
                (Way::Float(r), NO_REG) => {
                    let to = self.slot(param.val);
                    self.store_float(*r, to, 8);
                }
                (Way::Reg(r), reg) => ints.push((reg, *r)),
                (Way::Float(r), reg) => vectors.push((reg, *r)),
                (Way::Stack(offset) | Way::Long(offset), _) => loads.push((*offset, param)),
            }
        }
        moves::parallel(&mut self.out.asm, ints, false);
        moves::parallel(&mut self.out.asm, vectors, true);
        for (offset, param) in loads {
            let from = self.incoming(offset);
            if param.long_double {
                let d = self.def(param.val);
                self.out.asm.lea(8, d, from);
                self.done(param.val);
                continue;
            }
            match (self.reg(param.val), param.float) {
                (NO_REG, _) => {
                    self.out.asm.rm(0, &[0x8B], 8, R11, from);
                    let to = self.slot(param.val);
                    self.out.asm.rm(0, &[0x89], 8, R11, to);
                }
                (reg, true) => self.load_float(reg, from, 8),
                (reg, false) => self.out.asm.rm(0, &[0x8B], 8, reg, from),
            }
        }
    }
}
