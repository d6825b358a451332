//! From instructions on values to machine code that the verifier accepts.

pub mod asm;
mod branch;
mod call;
mod early;
mod float;
mod moves;
mod x87;

use crate::alloc::{Allocation, NO_REG, R11, R14, R15, RAX, RCX, RDX, SAVED};
use crate::ir::{DATA, FRAME, Func, IN_DATA, Ins, MEM, NONE, Op, Val, is_val};
use asm::{Address, Asm, NO, alu};
use ringfence_isa::identifier;

/// Frames larger than this are touched step by step, so that the end of the stack is met and not stepped over.
const STEP: u32 = 32 << 10;

/// Innermost loops begin at multiples of this, so that small ones lie in one line of the processor's caches.
const LOOPS: usize = 32;

/// All code of a text, and what is to be written into it.
#[derive(Default)]
pub struct Output {
    pub asm: Asm,
    /// Distances to functions: where, and of which.
    pub funcs: Vec<(u32, u32)>,
    /// Addresses of imports: where, and of which.
    pub imports: Vec<(u32, u32)>,
    /// From where on the code is of which place in the text.
    pub places: Vec<(u32, u32)>,
}

struct Emit<'a> {
    f: &'a Func,
    regs: &'a Allocation,
    out: &'a mut Output,
    /// Where labels are, and where jumps to them have their distances.
    labels: Vec<u32>,
    jumps: Vec<(u32, u32)>,
    /// Distance from `r15` as it is in the function to as it was at its entry, to the locals, and to the slots.
    entry: u32,
    locals: i32,
    slots: i32,
    saved: Vec<u8>,
}

/// Appends a function that stands at `at` in the text; returns where it begins. `salt` no-ops stand in it for nothing else than other distances.
pub fn function(f: &Func, regs: &Allocation, at: u32, salt: usize, out: &mut Output) -> u32 {
    while !out.asm.code.len().is_multiple_of(16) {
        out.asm.code.push(0xCC);
    }
    let start = out.asm.code.len() as u32;
    let calls: Vec<&Ins> = f.code.iter().filter(|ins| ins.is_call()).collect();
    let stacked = calls
        .iter()
        .map(|ins| call::stacked(f.call_args(ins)))
        .max()
        .unwrap_or(0);
    let locals = stacked.next_multiple_of(16);
    let slots = (locals + f.frame).next_multiple_of(8);
    let frame = (slots + 8 * regs.slots).next_multiple_of(16);
    // A function that calls nobody may use what is below the stack pointer.
    let red = calls.is_empty() && frame <= 128;
    let below = if red { frame as i32 } else { 0 };
    let mut emit = Emit {
        f,
        regs,
        labels: vec![NONE; f.labels as usize],
        jumps: Vec::with_capacity(32),
        entry: if red { 0 } else { frame },
        locals: locals as i32 - below,
        slots: slots as i32 - below,
        saved: SAVED.into_iter().filter(|&r| regs.used >> r & 1 == 1).collect(),
        out,
    };
    emit.out.asm.bytes(&identifier::marker(identifier::FUNCTION));
    for _ in 0..salt {
        emit.out.asm.code.push(0x90);
    }
    emit.out.places.push((start, at));
    emit.enter();
    for k in 0..f.code.len() {
        emit.guarded(k);
    }
    for (at, label) in std::mem::take(&mut emit.jumps) {
        let distance = emit.labels[label as usize].wrapping_sub(at + 4);
        emit.out.patch(at, distance);
    }
    start
}

impl Output {
    /// With room for most texts.
    pub fn new() -> Output {
        Output {
            asm: Asm {
                code: Vec::with_capacity(2048),
                data: Vec::with_capacity(16),
            },
            places: Vec::with_capacity(128),
            ..Output::default()
        }
    }

    pub fn patch(&mut self, at: u32, value: u32) {
        self.asm.code[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    }
}

/// Whether the bytes from one place to another, with those around them, look like an identifier where only markers have one.
pub fn collides(code: &[u8], from: usize, to: usize) -> bool {
    let prefix = identifier::PREFIX.to_le_bytes();
    let first = from.saturating_sub(1);
    // The upper half of a dword at an address ≡ 4 (mod 8).
    let mut at = first + (14 - first % 8) % 8;
    while at + 2 <= to.min(code.len()) {
        let marker = at >= 6 && code[at - 6..at - 2] == identifier::MARKER_HEAD;
        if code[at..at + 2] == prefix && !marker {
            return true;
        }
        at += 8;
    }
    false
}

impl Emit<'_> {
    fn enter(&mut self) {
        if self.entry > 0 || !self.saved.is_empty() {
            self.early();
        }
        for r in self.saved.clone() {
            self.out.asm.push(r);
        }
        if self.entry > 0 {
            let mut at = STEP;
            while at < self.entry {
                // cmpb $0, -at(%r15)
                self.out.asm.rm(0, &[0x80], 4, 7, Address::at(R15, -(at as i32)));
                self.out.asm.code.push(0);
                at += STEP;
            }
            self.out.asm.lea(8, R15, Address::at(R15, -(self.entry as i32)));
        }
    }

    fn leave(&mut self) {
        if self.entry > 0 {
            self.out.asm.lea(8, R15, Address::at(R15, self.entry as i32));
        }
        for r in self.saved.clone().into_iter().rev() {
            self.out.asm.pop(r);
        }
        self.out.asm.code.push(0xC3);
    }

    /// Emits an instruction, with no-ops in front if its bytes would look like an identifier.
    fn guarded(&mut self, k: usize) {
        let at = self.out.asm.code.len();
        let place = self.f.code[k].at;
        if self.out.places.last().is_none_or(|last| last.1 != place) {
            self.out.places.push((at as u32, place));
        }
        let marks = (
            self.jumps.len(),
            self.out.funcs.len(),
            self.out.imports.len(),
            self.out.asm.data.len(),
        );
        for _ in 0..8 {
            self.ins(k);
            if !collides(&self.out.asm.code, at, self.out.asm.code.len()) {
                return;
            }
            // What was written so far goes, and the next try is one byte further.
            let pad = self.out.asm.code[at..].iter().take_while(|&&b| b == 0x90).count();
            self.out.asm.code.truncate(at);
            self.jumps.truncate(marks.0);
            self.out.funcs.truncate(marks.1);
            self.out.imports.truncate(marks.2);
            self.out.asm.data.truncate(marks.3);
            for _ in 0..=pad {
                self.out.asm.code.push(0x90);
            }
        }
        self.ins(k);
    }

    fn reg(&self, v: Val) -> u8 {
        self.regs.reg[v as usize]
    }

    fn slot(&self, v: Val) -> Address {
        let slot = self.regs.slot[v as usize];
        Address::at(R15, self.slots + 8 * slot as i32)
    }

    /// The register that a value is in, or the scratch register that it is loaded to.
    fn use_in(&mut self, v: Val, scratch: u8) -> u8 {
        match self.reg(v) {
            NO_REG => {
                let slot = self.slot(v);
                self.out.asm.rm(0, &[0x8B], 8, scratch, slot);
                scratch
            }
            r => r,
        }
    }

    /// Whether a value that somebody uses has no register.
    fn in_slot(&self, v: Val) -> bool {
        self.reg(v) == NO_REG && self.regs.slot[v as usize] != NONE
    }

    /// The register that a result is computed in.
    fn def(&self, v: Val) -> u8 {
        match self.reg(v) {
            NO_REG => R11,
            r => r,
        }
    }

    /// Stores a result that has no register.
    fn done(&mut self, v: Val) {
        if self.reg(v) == NO_REG && self.regs.slot[v as usize] != NONE {
            let slot = self.slot(v);
            self.out.asm.rm(0, &[0x89], 8, R11, slot);
        }
    }

    /// The operand of a memory access; uses `r11` and `rcx` for what has no register.
    fn address(&mut self, ins: &Ins) -> Address {
        let disp = ins.imm as i32;
        let index = if is_val(ins.b) {
            self.use_in(ins.b, RCX)
        } else {
            NO
        };
        let (base, disp) = match ins.a {
            FRAME => (R15, disp + self.locals),
            DATA | NONE => (NO, disp),
            v => (self.use_in(v, R11), disp),
        };
        Address {
            base,
            index,
            scale: ins.sc & !IN_DATA,
            disp,
            data: ins.a == DATA || ins.sc & IN_DATA != 0,
        }
    }

    fn ins(&mut self, k: usize) {
        let ins = self.f.code[k];
        match ins.op {
            Op::Nop | Op::Mem => {}
            Op::Mov => match (self.reg(ins.d), self.reg(ins.a)) {
                (NO_REG, NO_REG) => {
                    self.use_in(ins.a, R11);
                    self.done(ins.d);
                }
                (NO_REG, from) => {
                    let slot = self.slot(ins.d);
                    self.out.asm.rm(0, &[0x89], 8, from, slot);
                }
                (to, NO_REG) => {
                    self.use_in(ins.a, to);
                }
                (to, from) => self.out.asm.mov(8, to, from),
            },
            Op::MovI if self.in_slot(ins.d) && i64::from(ins.imm as i32) == ins.imm => {
                let slot = self.slot(ins.d);
                self.out.asm.rm(0, &[0xC7], 8, 0, slot);
                self.out.asm.immediate(4, ins.imm as i32);
            }
            Op::MovI => {
                let d = self.def(ins.d);
                self.out.asm.constant(d, ins.imm);
                self.done(ins.d);
            }
            Op::Add | Op::Sub | Op::And | Op::Or | Op::Xor | Op::Mul => self.arithmetic(&ins, k),
            Op::Shl | Op::Shr | Op::Sar => self.shift(&ins),
            Op::Div | Op::Rem | Op::UDiv | Op::URem => self.divide(&ins),
            Op::Neg | Op::Not => {
                let (a, d) = (self.use_in(ins.a, R11), self.def(ins.d));
                self.out.asm.mov(ins.w, d, a);
                let digit = if ins.op == Op::Neg { 3 } else { 2 };
                self.out.asm.rr(0, &[0xF7], ins.w, digit, d);
                self.done(ins.d);
            }
            Op::Swap => {
                let (a, d) = (self.use_in(ins.a, R11), self.def(ins.d));
                self.out.asm.mov(4, d, a);
                self.out.asm.code.push(0x66);
                self.out.asm.rr(0, &[0xC1], 4, 0, d);
                self.out.asm.code.push(8);
                self.done(ins.d);
            }
            Op::Lea => self.lea(&ins),
            Op::DataAddr | Op::ImportAddr | Op::FuncAddr => self.symbol(&ins),
            Op::Load => {
                let m = self.address(&ins);
                let d = self.def(ins.d);
                let (op, w): (&[u8], u8) = match (ins.w, ins.cc) {
                    (1, 0) => (&[0x0F, 0xB6], 4),
                    (1, _) => (&[0x0F, 0xBE], 4),
                    (2, 0) => (&[0x0F, 0xB7], 4),
                    (2, _) => (&[0x0F, 0xBF], 4),
                    (w, _) => (&[0x8B], w),
                };
                self.out.asm.rm(0, op, w, d, m);
                self.done(ins.d);
            }
            Op::Store => self.store(&ins),
            Op::StoreI => {
                let m = self.address(&ins);
                let (prefix, op) = (
                    if ins.w == 2 { 0x66 } else { 0 },
                    if ins.w == 1 { 0xC6 } else { 0xC7 },
                );
                self.out
                    .asm
                    .rm(prefix, &[op], if ins.w == 8 { 8 } else { 4 }, 0, m);
                let len = usize::from(ins.w.min(4));
                self.out.asm.bytes(&ins.c.to_le_bytes()[..len]);
            }
            Op::Ext => {
                let (a, d) = (self.use_in(ins.a, R11), self.def(ins.d));
                let wide = if ins.cc == 1 { ins.sc } else { 4 };
                match (ins.w, ins.cc) {
                    (1, 0) => self.out.asm.rr(0, &[0x0F, 0xB6], 1, d, a),
                    (1, _) if wide == 4 => self.out.asm.rr(0, &[0x0F, 0xBE], 1, d, a),
                    (1, _) => self.out.asm.rr(0, &[0x0F, 0xBE], 8, d, a),
                    (2, 0) => self.out.asm.rr(0, &[0x0F, 0xB7], 4, d, a),
                    (2, _) => self.out.asm.rr(0, &[0x0F, 0xBF], wide, d, a),
                    (_, 0) => self.out.asm.rr(0, &[0x8B], 4, d, a),
                    _ => self.out.asm.rr(0, &[0x63], 8, d, a),
                }
                self.done(ins.d);
            }
            Op::Choose => self.choose(&ins, k),
            Op::Set | Op::FSet | Op::Br | Op::FBr | Op::Jmp => self.branches(&ins, k),
            Op::Label => {
                if self.f.tops[ins.c as usize] {
                    self.out.asm.align(LOOPS);
                }
                self.labels[ins.c as usize] = self.out.asm.code.len() as u32;
            }
            Op::Ret => {
                if ins.a != NONE {
                    let a = self.use_in(ins.a, RAX);
                    self.out.asm.mov(8, RAX, a);
                }
                self.leave();
            }
            Op::Call | Op::CallImport | Op::CallPtr => self.call(&ins),
            Op::Params => self.params(),
            Op::XLoad | Op::XStore | Op::XAdd | Op::XSub | Op::XMul | Op::XDiv | Op::XNeg | Op::XSet => {
                self.x87(&ins);
            }
            Op::FMov
            | Op::FConst
            | Op::FLoad
            | Op::FStore
            | Op::FromInt
            | Op::ToInt
            | Op::FCvt
            | Op::FFlip
            | Op::FAdd
            | Op::FSub
            | Op::FMul
            | Op::FDiv
            | Op::FRet => self.float(&ins, k),
        }
    }

    /// The address of what instruction `k` has as an operand in memory, if that needs no scratch register.
    fn direct(&mut self, k: usize) -> Option<Address> {
        let mem = self.f.code[k - 1];
        let has = |v: Val| !is_val(v) || self.reg(v) != NO_REG;
        (has(mem.a) && has(mem.b)).then(|| self.address(&mem))
    }

    /// Loads it; its address may take both scratch registers.
    fn fetch(&mut self, k: usize, to: u8) -> u8 {
        let mem = self.f.code[k - 1];
        let m = self.address(&mem);
        let (op, w): (&[u8], u8) = match mem.w {
            1 => (&[0x0F, 0xB6], 4),
            w => (&[0x8B], w),
        };
        self.out.asm.rm(0, op, w, to, m);
        to
    }

    /// Changes what is in memory.
    fn change(&mut self, ins: &Ins, op: u8, k: usize) {
        let mem = self.f.code[k - 1];
        let mut m = self.address(&mem);
        if ins.b == NONE {
            self.out.asm.alu_memory(op, ins.w, m, ins.imm as i32);
            return;
        }
        if self.reg(ins.b) == NO_REG && m.index == RCX {
            self.out.asm.lea(4, R11, m);
            m = Address::at(R11, 0);
        }
        let b = self.use_in(ins.b, RCX);
        self.out.asm.rm(0, &[op - 2], ins.w, b, m);
    }

    fn arithmetic(&mut self, ins: &Ins, k: usize) {
        let op = match ins.op {
            Op::Add => alu::ADD,
            Op::Sub => alu::SUB,
            Op::And => alu::AND,
            Op::Or => alu::OR,
            _ => alu::XOR,
        };
        if ins.a == MEM {
            return self.change(ins, op, k);
        }
        if ins.a == ins.d && ins.op != Op::Mul && self.in_slot(ins.d) && (ins.b == NONE || is_val(ins.b)) {
            // Where it is. Above 32 bits nothing is read that was not extended.
            let slot = self.slot(ins.d);
            if ins.b == NONE {
                self.out.asm.alu_memory(op, ins.w, slot, ins.imm as i32);
            } else {
                let b = self.use_in(ins.b, RCX);
                self.out.asm.rm(0, &[op - 2], ins.w, b, slot);
            }
            return;
        }
        let two: &[u8] = if ins.op == Op::Mul { &[0x0F, 0xAF] } else { &[op] };
        let d = self.def(ins.d);
        if is_val(ins.b) && self.in_slot(ins.b) && self.reg(ins.a) == d {
            let slot = self.slot(ins.b);
            self.out.asm.rm(0, two, ins.w, d, slot);
            return self.done(ins.d);
        }
        if ins.b == MEM
            && let Some(m) = self.direct(k)
            && (self.reg(ins.a) == d || (m.base != d && m.index != d))
        {
            let a = self.use_in(ins.a, R11);
            self.out.asm.mov(ins.w, d, a);
            self.out.asm.rm(0, two, ins.w, d, m);
            return self.done(ins.d);
        }
        let fetched = (ins.b == MEM).then(|| self.fetch(k, RCX));
        let a = self.use_in(ins.a, R11);
        let asm = &mut self.out.asm;
        if ins.b == NONE {
            let value = ins.imm as i32;
            match ins.op {
                Op::Mul => {
                    let short = i32::from(value as i8) == value;
                    asm.rr(0, &[if short { 0x6B } else { 0x69 }], ins.w, d, a);
                    match short {
                        true => asm.code.push(value as u8),
                        false => asm.bytes(&value.to_le_bytes()),
                    }
                }
                Op::Add if d != a => asm.lea(ins.w, d, Address::at(a, value)),
                _ => {
                    asm.mov(ins.w, d, a);
                    asm.alu_constant(op, ins.w, d, value);
                }
            }
            self.done(ins.d);
            return;
        }
        let b = match fetched {
            Some(b) => b,
            None => self.use_in(ins.b, RCX),
        };
        let asm = &mut self.out.asm;
        if d == a {
            asm.rr(0, two, ins.w, d, b);
        } else if d == b && ins.op == Op::Sub {
            asm.mov(ins.w, RCX, b);
            asm.mov(ins.w, d, a);
            asm.rr(0, two, ins.w, d, RCX);
        } else if d == b {
            asm.rr(0, two, ins.w, d, a);
        } else if ins.op == Op::Add {
            let sum = Address {
                index: b,
                ..Address::at(a, 0)
            };
            asm.lea(ins.w, d, sum);
        } else {
            asm.mov(ins.w, d, a);
            asm.rr(0, two, ins.w, d, b);
        }
        self.done(ins.d);
    }

    fn shift(&mut self, ins: &Ins) {
        let digit = match ins.op {
            Op::Shl => 4,
            Op::Shr => 5,
            _ => 7,
        };
        if ins.b != NONE {
            let b = self.use_in(ins.b, RCX);
            self.out.asm.mov(4, RCX, b);
        }
        let a = self.use_in(ins.a, R11);
        let d = self.def(ins.d);
        let asm = &mut self.out.asm;
        asm.mov(ins.w, d, a);
        if ins.b != NONE {
            asm.rr(0, &[0xD3], ins.w, digit, d);
        } else {
            asm.rr(0, &[0xC1], ins.w, digit, d);
            asm.code.push(ins.imm as u8);
        }
        self.done(ins.d);
    }

    /// In `rax` and `rdx`, in which nothing is that is needed afterwards.
    fn divide(&mut self, ins: &Ins) {
        let mut b = self.use_in(ins.b, RCX);
        if b == RAX || b == RDX {
            self.out.asm.mov(ins.w, RCX, b);
            b = RCX;
        }
        let a = self.use_in(ins.a, RAX);
        let asm = &mut self.out.asm;
        asm.mov(ins.w, RAX, a);
        if matches!(ins.op, Op::Div | Op::Rem) {
            if ins.w == 8 {
                asm.code.push(0x48);
            }
            asm.code.push(0x99);
            asm.rr(0, &[0xF7], ins.w, 7, b);
        } else {
            asm.rr(0, &[alu::XOR], 4, RDX, RDX);
            asm.rr(0, &[0xF7], ins.w, 6, b);
        }
        let result = if matches!(ins.op, Op::Div | Op::UDiv) {
            RAX
        } else {
            RDX
        };
        let d = self.def(ins.d);
        self.out.asm.mov(ins.w, d, result);
        self.done(ins.d);
    }

    fn lea(&mut self, ins: &Ins) {
        let m = self.address(ins);
        let d = self.def(ins.d);
        let asm = &mut self.out.asm;
        match (m.base, m.index) {
            (NO, NO) => {
                asm.constant32(d, m.disp as u32);
                if m.data {
                    asm.data.push(asm.code.len() as u32 - 4);
                }
            }
            (base, NO) if m.disp == 0 && !m.data => asm.mov(ins.w, d, base),
            _ => asm.lea(ins.w, d, m),
        }
        self.done(ins.d);
    }

    fn symbol(&mut self, ins: &Ins) {
        let d = self.def(ins.d);
        if ins.op == Op::FuncAddr {
            let at = self.out.asm.lea_code(d);
            self.out.funcs.push((at, ins.imm as u32));
        } else {
            let low = if ins.op == Op::DataAddr { ins.imm as u32 } else { 0 };
            self.out.asm.constant32(d, low);
            let at = self.out.asm.code.len() as u32 - 4;
            match ins.op {
                Op::DataAddr => self.out.asm.data.push(at),
                _ => self.out.imports.push((at, ins.imm as u32)),
            }
            // The upper half is the window's.
            self.out.asm.rr(0, &[alu::ADD], 8, d, R14);
        }
        self.done(ins.d);
    }

    fn store(&mut self, ins: &Ins) {
        let mut m = self.address(ins);
        let mut value = self.reg(ins.c);
        if value == NO_REG {
            let mut scratch = RCX;
            if m.index == RCX {
                if m.base == R11 || m.data {
                    self.out.asm.lea(4, R11, m);
                    m = Address::at(R11, 0);
                } else {
                    scratch = R11;
                }
            }
            value = self.use_in(ins.c, scratch);
        }
        let (prefix, op) = (
            if ins.w == 2 { 0x66 } else { 0 },
            if ins.w == 1 { 0x88 } else { 0x89 },
        );
        self.out.asm.rm(prefix, &[op], ins.w, value, m);
    }

    /// Where the argument at `offset` of the caller's stack is.
    fn incoming(&self, offset: u32) -> Address {
        Address::at(R15, (self.entry + offset) as i32)
    }
}
