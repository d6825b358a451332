//! From BPF to machine code: a loop over packets, with the program in it.
//!
//! ```text
//!     edi = descriptors, esi = how many, edx = where numbers of accepted packets go
//!     r8d = the packet, r9d = its length, r10d = its number, eax = A, ecx = X, r11 = scratch
//!
//!     (marker)
//!     testl %esi, %esi ; jz done ; xorl %r10d, %r10d
//! top:    movl %gs:(%edi), %r8d ; movl %gs:4(%edi), %r9d
//!         …                                                   the program
//! accept: movl %r10d, %gs:(%edx) ; addl $4, %edx
//! reject: addl $16, %edi ; incl %r10d ; cmpl %esi, %r10d ; jb top
//! done:   movl %edx, %eax ; ret
//! ```
//!
//! What makes it fast: a length is compared once on each way ([`Facts`]); what is compared with constants only stays in the
//! packet's order of bytes, and the constants are swapped instead.

use ringfence_isa::identifier;

use crate::bpf::{Alu, Op, Test, Width, With};
use crate::facts::{Facts, successors};

/// Bytes of a packet's descriptor: address, length, length on the wire, nothing; 32 bits each.
pub(crate) const DESCRIPTOR: usize = 16;

/// How often a program is translated anew, with no-ops in front of instructions that look like identifiers.
const TRIES: usize = 200;

/// Below the data stack's end, where no call comes: 64 bytes of scratch memory.
const SCRATCH_AT: i32 = -64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Label {
    Insn(usize),
    Accept,
    Reject,
}

/// Condition codes of jumps.
mod cc {
    pub const BELOW: u8 = 2;
    pub const NOT_BELOW: u8 = 3;
    pub const EQUAL: u8 = 4;
    pub const ABOVE: u8 = 7;
}

/// The code of a program that obeys the rules of [`decode`](crate::bpf::decode); `None` if no way is found to encode it.
pub(crate) fn translate(ops: &[Op]) -> Option<Vec<u8>> {
    let facts = Facts::new(ops);
    let mut nudges = vec![0; ops.len() + 2];
    // Jumps that are short if all distances are as in the try before.
    let mut before: Vec<u32> = Vec::new();
    for _ in 0..TRIES {
        let mut text = Text::new(ops, &facts, &nudges, &before);
        text.all();
        let fits = text.patch();
        match (collision(&text.code), fits) {
            (_, false) => before.clear(),
            (None, true) if before.is_empty() => before = text.starts,
            (None, true) => return Some(text.code),
            (Some(at), true) => {
                // A no-op in front of whatever stands there.
                let piece = text.starts.partition_point(|&start| start as usize <= at) - 1;
                nudges[piece] += 1;
                before.clear();
            }
        }
    }
    None
}

/// Where a dword looks like an identifier that is none.
fn collision(code: &[u8]) -> Option<usize> {
    let dwords = code.chunks_exact(4).enumerate().skip(1).step_by(2).skip(1);
    dwords
        .map(|(i, b)| (4 * i, u32::from_le_bytes([b[0], b[1], b[2], b[3]])))
        .find(|&(_, dword)| identifier::is_reserved(dword))
        .map(|(at, _)| at)
}

struct Jump {
    /// Where its distance is, and how many bytes that has.
    at: usize,
    short: bool,
    to: Label,
}

struct Text<'a> {
    ops: &'a [Op],
    facts: &'a Facts,
    /// No-ops in front of each piece.
    nudges: &'a [u8],
    /// Where pieces began in the try before.
    before: &'a [u32],
    code: Vec<u8>,
    /// Where each instruction begins; then accept, then reject.
    starts: Vec<u32>,
    jumps: Vec<Jump>,
    top: usize,
}

impl<'a> Text<'a> {
    fn new(ops: &'a [Op], facts: &'a Facts, nudges: &'a [u8], before: &'a [u32]) -> Self {
        Text {
            ops,
            facts,
            nudges,
            before,
            code: Vec::with_capacity(64 + 12 * ops.len()),
            starts: Vec::with_capacity(ops.len() + 2),
            jumps: Vec::new(),
            top: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        self.code.extend_from_slice(bytes);
    }

    fn imm(&mut self, value: u32) {
        self.put(&value.to_le_bytes());
    }

    fn piece(&mut self, number: usize) {
        for _ in 0..self.nudges[number] {
            self.put(&[0x90]);
        }
        self.starts.push(self.code.len() as u32);
    }

    fn all(&mut self) {
        self.put(&identifier::marker(identifier::FUNCTION));
        // What comes first is moved by the first piece's no-ops: it has no constants.
        self.put(&[0x85, 0xF6, 0x0F, 0x84]);
        let done = self.code.len();
        self.put(&[0; 4]);
        self.put(&[0x45, 0x31, 0xD2]);
        self.top = self.code.len();
        self.put(&[0x65, 0x67, 0x44, 0x8B, 0x07, 0x65, 0x67, 0x44, 0x8B, 0x4F, 0x04]);
        if self.facts.starts_with_a {
            self.put(&[0x31, 0xC0]);
        }
        if self.facts.starts_with_x {
            self.put(&[0x31, 0xC9]);
        }
        for word in (0..crate::bpf::SCRATCH).filter(|w| self.facts.starts_with >> w & 1 != 0) {
            self.put(&[0x65, 0x67, 0x41, 0xC7]); // movl $0, %gs:WORD(%r15d)
            self.scratch(0, word);
            self.imm(0);
        }
        for at in 0..self.ops.len() {
            self.piece(at);
            // What is only jumped to, and returns a constant, is where the jumps lead.
            if self.facts.known[at].is_some() && (!matches!(self.ops[at], Op::Ret(_)) || self.falls_into(at))
            {
                self.one(at);
            }
        }
        self.piece(self.ops.len());
        self.put(&[0x65, 0x67, 0x44, 0x89, 0x12, 0x83, 0xC2, 0x04]);
        self.piece(self.ops.len() + 1);
        self.put(&[0x83, 0xC7, 0x10, 0x41, 0xFF, 0xC2, 0x41, 0x39, 0xF2, 0x0F, 0x82]);
        let back = self.top as i64 - (self.code.len() as i64 + 4);
        self.imm(back as i32 as u32);
        let distance = (self.code.len() - (done + 4)) as u32;
        self.code[done..done + 4].copy_from_slice(&distance.to_le_bytes());
        self.put(&[0x89, 0xD0, 0xC3]);
    }

    /// Whether the instruction before runs into this one.
    fn falls_into(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1) else {
            return true;
        };
        let op = self.ops[before];
        self.facts.known[before].is_some()
            && !matches!(op, Op::If { .. } | Op::Jump(_))
            && successors(op, before)[0] == Some(at)
    }

    /// Whether nothing is emitted between instruction `at` and the label.
    fn is_next(&self, at: usize, label: Label) -> bool {
        let next = match label {
            Label::Insn(to) => to,
            Label::Accept => self.ops.len(),
            Label::Reject => return false,
        };
        let emitted = |i: usize| self.facts.known[i].is_some() && !matches!(self.ops[i], Op::Ret(_));
        next > at && !(at + 1..next).any(emitted)
    }

    fn label(&self, to: usize) -> Label {
        match self.ops[to] {
            Op::Ret(0) => Label::Reject,
            Op::Ret(_) => Label::Accept,
            _ => Label::Insn(to),
        }
    }

    /// A jump, on a condition or always.
    fn jump(&mut self, condition: Option<u8>, to: Label) {
        let piece = match to {
            Label::Insn(to) => to,
            Label::Accept => self.ops.len(),
            Label::Reject => self.ops.len() + 1,
        };
        // Distances have not grown since the try before.
        let here = self.starts.len() - 1;
        let short = match (self.before.get(piece), self.before.get(here)) {
            (Some(&to), Some(&from)) => to >= from && to - from < 120,
            _ => false,
        };
        match (condition, short) {
            (Some(c), true) => self.put(&[0x70 | c]),
            (Some(c), false) => self.put(&[0x0F, 0x80 | c]),
            (None, true) => self.put(&[0xEB]),
            (None, false) => self.put(&[0xE9]),
        }
        self.jumps.push(Jump {
            at: self.code.len(),
            short,
            to,
        });
        self.put(&[0; 4][..if short { 1 } else { 4 }]);
    }

    /// Writes the distances; whether the short ones are short.
    fn patch(&mut self) -> bool {
        for jump in std::mem::take(&mut self.jumps) {
            let piece = match jump.to {
                Label::Insn(to) => to,
                Label::Accept => self.ops.len(),
                Label::Reject => self.ops.len() + 1,
            };
            let end = jump.at + if jump.short { 1 } else { 4 };
            let distance = self.starts[piece] as i64 - end as i64;
            if jump.short {
                let Ok(distance) = i8::try_from(distance) else {
                    return false;
                };
                self.code[jump.at] = distance as u8;
            } else {
                self.code[jump.at..end].copy_from_slice(&(distance as i32).to_le_bytes());
            }
        }
        true
    }

    fn scratch(&mut self, register: u8, word: u32) {
        let at = SCRATCH_AT + 4 * word as i32;
        self.put(&[0x47 | register << 3, at as u8]);
    }

    /// The operand `%gs:k(%r8d)` or `%gs:k(%r8d,%ecx)`, behind an opcode; `register` is what else it has.
    fn packet(&mut self, opcode: &[u8], register: u8, k: u32, at_x: bool) {
        self.put(&[0x65, 0x67, 0x41]);
        self.put(opcode);
        let (mode, len) = if k < 128 { (0x40, 1) } else { (0x80, 4) };
        match at_x {
            true => self.put(&[mode | register << 3 | 4, 0x08]),
            false => self.put(&[mode | register << 3]),
        }
        self.put(&k.to_le_bytes()[..len]);
    }

    /// Rejects packets that end before a load does. False if all do.
    fn bound(&mut self, at: usize, k: u32, width: Width, at_x: bool) -> bool {
        let end = match k.checked_add(width as u32) {
            Some(end) if end < 1 << 31 => end,
            _ => {
                self.jump(None, Label::Reject);
                return false;
            }
        };
        let known = self.facts.known[at].expect("something leads there");
        if at_x && known.behind_x < end {
            self.put(&[0x4C, 0x8D, 0x99]); // leaq end(%rcx), %r11
            self.imm(end);
            self.put(&[0x4D, 0x39, 0xCB]); // cmpq %r9, %r11
            self.jump(Some(cc::ABOVE), Label::Reject);
        } else if !at_x && known.len < end {
            match u8::try_from(end) {
                Ok(end) if end < 128 => self.put(&[0x41, 0x83, 0xF9, end]),
                _ => {
                    self.put(&[0x41, 0x81, 0xF9]);
                    self.imm(end);
                }
            }
            self.jump(Some(cc::BELOW), Label::Reject);
        }
        true
    }

    fn one(&mut self, at: usize) {
        match self.ops[at] {
            Op::Load { width, k, at_x } => self.load(at, width, k, at_x),
            Op::Imm(k) => {
                self.put(&[0xB8]);
                self.imm(k);
            }
            Op::Len => self.put(&[0x65, 0x67, 0x8B, 0x47, 0x08]),
            Op::Mem(word) => {
                self.put(&[0x65, 0x67, 0x41, 0x8B]);
                self.scratch(0, word);
            }
            Op::ImmX(k) => {
                self.put(&[0xB9]);
                self.imm(k);
            }
            Op::LenX => self.put(&[0x65, 0x67, 0x8B, 0x4F, 0x08]),
            Op::MemX(word) => {
                self.put(&[0x65, 0x67, 0x41, 0x8B]);
                self.scratch(1, word);
            }
            Op::Msh(k) => {
                if self.bound(at, k, Width::Byte, false) {
                    self.packet(&[0x0F, 0xB6], 1, k, false);
                    self.put(&[0x83, 0xE1, 0x0F, 0xC1, 0xE1, 0x02]);
                }
            }
            Op::Store(word) => {
                self.put(&[0x65, 0x67, 0x41, 0x89]);
                self.scratch(0, word);
            }
            Op::StoreX(word) => {
                self.put(&[0x65, 0x67, 0x41, 0x89]);
                self.scratch(1, word);
            }
            Op::Alu(alu, with) => self.alu(at, alu, with),
            Op::Neg => self.put(&[0xF7, 0xD8]),
            Op::Jump(to) => {
                let to = self.label(to);
                if !self.is_next(at, to) {
                    self.jump(None, to);
                }
            }
            Op::If { test, with, yes, no } => self.branch(at, test, with, yes, no),
            Op::Ret(k) => {
                let to = if k == 0 { Label::Reject } else { Label::Accept };
                if !self.is_next(at, to) {
                    self.jump(None, to);
                }
            }
            Op::RetA => {
                self.put(&[0x85, 0xC0]);
                self.jump(Some(cc::EQUAL), Label::Reject);
                if !self.is_next(at, Label::Accept) {
                    self.jump(None, Label::Accept);
                }
            }
            Op::Tax => self.put(&[0x89, 0xC1]),
            Op::Txa => self.put(&[0x89, 0xC8]),
        }
    }

    /// Whether a load is compared by the next instruction only, so that it needs no register.
    fn is_fused(&self, at: usize) -> bool {
        let Some(&Op::If {
            test: Test::Equal,
            with: With::K(_),
            yes,
            no,
        }) = self.ops.get(at + 1)
        else {
            return false;
        };
        let plain = match self.ops[at] {
            Op::Load {
                width: Width::Byte, ..
            } => true,
            Op::Load {
                width: Width::Word, ..
            } => self.facts.loaded_as_in_packet(at, self.ops).is_some(),
            _ => false,
        };
        plain && self.facts.ways[at + 1] == 1 && !self.facts.needs_a[yes] && !self.facts.needs_a[no]
    }

    fn load(&mut self, at: usize, width: Width, k: u32, at_x: bool) {
        if !self.bound(at, k, width, at_x) || self.is_fused(at) {
            return;
        }
        match width {
            Width::Byte => self.packet(&[0x0F, 0xB6], 0, k, at_x),
            Width::Half => self.packet(&[0x0F, 0xB7], 0, k, at_x),
            Width::Word => self.packet(&[0x8B], 0, k, at_x),
        }
        if self.facts.loaded_as_in_packet(at, self.ops).is_none() {
            match width {
                Width::Byte => {}
                Width::Half => self.put(&[0x66, 0xC1, 0xC0, 0x08]),
                Width::Word => self.put(&[0x0F, 0xC8]),
            }
        }
    }

    /// A constant as it is compared with `A` at an instruction. `None` if `A` cannot have it.
    fn constant(&self, at: usize, k: u32) -> Option<u32> {
        match self.facts.as_in_packet(at, self.ops) {
            None => Some(k),
            Some(Width::Half) => u16::try_from(k).ok().map(|k| u32::from(k.swap_bytes())),
            Some(_) => Some(k.swap_bytes()),
        }
    }

    fn alu(&mut self, at: usize, alu: Alu, with: With) {
        // What stays in the packet's order takes its constant so. Of a half only the lower bits can matter.
        let masked = |k: u32| {
            self.constant(at, k)
                .or_else(|| self.constant(at, k & 0xFFFF))
                .unwrap_or(0)
        };
        match (alu, with) {
            (Alu::Add, With::K(k)) => self.with_constant(0x05, k),
            (Alu::Sub, With::K(k)) => self.with_constant(0x2D, k),
            (Alu::And, With::K(k)) => self.with_constant(0x25, masked(k)),
            (Alu::Or, With::K(k)) => self.with_constant(0x0D, masked(k)),
            (Alu::Xor, With::K(k)) => self.with_constant(0x35, masked(k)),
            (Alu::Mul, With::K(k)) => {
                self.put(&[0x69, 0xC0]);
                self.imm(k);
            }
            (Alu::Lsh | Alu::Rsh, With::K(k @ 0..32)) => {
                let what = if alu == Alu::Lsh { 0xE0 } else { 0xE8 };
                self.put(&[0xC1, what, k as u8]);
            }
            (Alu::Lsh | Alu::Rsh, With::K(_)) => self.put(&[0x31, 0xC0]),
            (Alu::Add, With::X) => self.put(&[0x01, 0xC8]),
            (Alu::Sub, With::X) => self.put(&[0x29, 0xC8]),
            (Alu::And, With::X) => self.put(&[0x21, 0xC8]),
            (Alu::Or, With::X) => self.put(&[0x09, 0xC8]),
            (Alu::Xor, With::X) => self.put(&[0x31, 0xC8]),
            (Alu::Mul, With::X) => self.put(&[0x0F, 0xAF, 0xC1]),
            (Alu::Lsh | Alu::Rsh, With::X) => {
                // Nothing is left of shifts by 32 and more: cmpl $32, %ecx ; sbbl %r11d, %r11d is all ones below.
                let what = if alu == Alu::Lsh { 0xE0 } else { 0xE8 };
                self.put(&[0x83, 0xF9, 0x20, 0x45, 0x19, 0xDB, 0xD3, what, 0x44, 0x21, 0xD8]);
            }
            (Alu::Div | Alu::Mod, with) => {
                match with {
                    With::K(k) => {
                        self.put(&[0x41, 0xBB]); // movl $k, %r11d
                        self.imm(k);
                    }
                    With::X => {
                        self.put(&[0x85, 0xC9]);
                        self.jump(Some(cc::EQUAL), Label::Reject);
                        self.put(&[0x41, 0x89, 0xCB]); // movl %ecx, %r11d
                    }
                }
                self.put(&[0x52, 0x31, 0xD2, 0x41, 0xF7, 0xF3]); // pushq %rdx ; xorl %edx, %edx ; divl %r11d
                if alu == Alu::Mod {
                    self.put(&[0x89, 0xD0]);
                }
                self.put(&[0x5A]);
            }
        }
    }

    fn with_constant(&mut self, opcode: u8, k: u32) {
        self.put(&[opcode]);
        self.imm(k);
    }

    fn branch(&mut self, at: usize, test: Test, with: With, yes: usize, no: usize) {
        let (yes, no) = (self.label(yes), self.label(no));
        let constant = match with {
            With::K(k) => self.constant(at, k),
            With::X => Some(0),
        };
        let constant = match (constant, test, with) {
            (Some(k), ..) => k,
            // Bits above a half are never set, and no half has them.
            (None, Test::Bits, With::K(k)) => self.constant(at, k & 0xFFFF).unwrap_or(0),
            _ => {
                if !self.is_next(at, no) {
                    self.jump(None, no);
                }
                return;
            }
        };
        let fused = at > 0 && self.facts.known[at - 1].is_some() && self.is_fused(at - 1);
        match (test, with) {
            (_, With::K(k)) if fused => {
                let Op::Load { width, k: from, at_x } = self.ops[at - 1] else {
                    unreachable!("only loads are")
                };
                if width == Width::Byte {
                    let Ok(k) = u8::try_from(k) else {
                        // No byte has it.
                        if !self.is_next(at, no) {
                            self.jump(None, no);
                        }
                        return;
                    };
                    self.packet(&[0x80], 7, from, at_x);
                    self.put(&[k]);
                } else {
                    self.packet(&[0x81], 7, from, at_x);
                    self.imm(constant);
                }
            }
            (Test::Bits, With::K(_)) => self.with_constant(0xA9, constant),
            (_, With::K(_)) => self.with_constant(0x3D, constant),
            (Test::Bits, With::X) => self.put(&[0x85, 0xC8]),
            (_, With::X) => self.put(&[0x39, 0xC8]),
        }
        let condition = match test {
            Test::Equal => cc::EQUAL,
            Test::Greater => cc::ABOVE,
            Test::GreaterOrEqual => cc::NOT_BELOW,
            // Some bit is set: not zero.
            Test::Bits => cc::EQUAL ^ 1,
        };
        if self.is_next(at, yes) {
            self.jump(Some(condition ^ 1), no);
        } else {
            self.jump(Some(condition), yes);
            if !self.is_next(at, no) {
                self.jump(None, no);
            }
        }
    }
}
