//! What holds at each instruction of a program, whatever way leads there. Where jumps lead forward only, one pass over the
//! instructions tells it. Of a program with loops nothing is known.

use crate::bpf::{Alu, Op, SCRATCH, Test, Width, With};

/// What is known when an instruction begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Known {
    /// The packet has at least so many bytes.
    pub(crate) len: u32,
    /// It has at least so many bytes behind `X`.
    pub(crate) behind_x: u32,
    /// Which words of scratch memory have been stored: bits.
    stored: u32,
}

/// What holds at each instruction.
pub(crate) struct Facts {
    /// What is known there; `None` where nothing leads.
    pub(crate) known: Vec<Option<Known>>,
    /// How many ways lead there.
    pub(crate) ways: Vec<u32>,
    /// Whether `A` is still needed.
    pub(crate) needs_a: Vec<bool>,
    /// Whether the program reads `A` and `X` before it writes them.
    pub(crate) starts_with_a: bool,
    pub(crate) starts_with_x: bool,
    /// Words of scratch memory that it may read before it writes them: bits.
    pub(crate) starts_with: u32,
    /// For what is loaded from the packet, by the number of the load, and of what `A` holds otherwise.
    classes: Vec<usize>,
    /// Whose value `A` is at each instruction.
    value: Vec<usize>,
    /// Whether some use needs it in the machine's order of bytes.
    ordered: Vec<bool>,
}

/// Where control goes from an instruction.
pub(crate) fn successors(op: Op, at: usize) -> [Option<usize>; 2] {
    match op {
        Op::Ret(_) | Op::RetA => [None, None],
        Op::Jump(to) => [Some(to), None],
        Op::If { yes, no, .. } => [Some(yes), Some(no)],
        _ => [Some(at + 1), None],
    }
}

impl Known {
    fn both(self, other: Known) -> Known {
        Known {
            len: self.len.min(other.len),
            behind_x: self.behind_x.min(other.behind_x),
            stored: self.stored & other.stored,
        }
    }

    fn after(mut self, op: Op) -> Known {
        let end = |k: u32, width: Width| k.saturating_add(width as u32);
        match op {
            Op::Load {
                width,
                k,
                at_x: false,
            } => self.len = self.len.max(end(k, width)),
            Op::Load { width, k, at_x: true } => self.behind_x = self.behind_x.max(end(k, width)),
            Op::Msh(k) => {
                self.len = self.len.max(end(k, Width::Byte));
                self.behind_x = 0;
            }
            Op::ImmX(_) | Op::LenX | Op::MemX(_) | Op::Tax => self.behind_x = 0,
            Op::Store(word) | Op::StoreX(word) => self.stored |= 1 << word,
            _ => {}
        }
        self
    }
}

impl Facts {
    pub(crate) fn new(ops: &[Op]) -> Facts {
        let count = ops.len();
        let mut facts = Facts {
            known: vec![None; count],
            ways: vec![0; count],
            needs_a: vec![false; count + 1],
            starts_with_a: false,
            starts_with_x: false,
            starts_with: 0,
            classes: (0..=count).collect(),
            value: vec![count; count],
            ordered: vec![false; count + 1],
        };
        facts.ordered[count] = true;
        let leads_back = |(at, op): (usize, &Op)| matches!(op, Op::Jump(to) if *to <= at);
        if ops.iter().enumerate().any(leads_back) {
            facts.nothing(ops);
            return facts;
        }
        facts.forward(ops);
        facts.backward(ops);
        facts
    }

    /// Everything may lead everywhere, and all may be needed.
    fn nothing(&mut self, ops: &[Op]) {
        let known = Known {
            len: 0,
            behind_x: 0,
            stored: 0,
        };
        self.known.fill(Some(known));
        self.ways.fill(2);
        self.needs_a.fill(true);
        self.ordered.fill(true);
        (self.starts_with_a, self.starts_with_x) = (true, true);
        for op in ops {
            if let Op::Mem(word) | Op::MemX(word) = op {
                self.starts_with |= 1 << word;
            }
        }
    }

    fn forward(&mut self, ops: &[Op]) {
        self.known[0] = Some(Known {
            len: 0,
            behind_x: 0,
            stored: 0,
        });
        self.ways[0] = 1;
        for (at, &op) in ops.iter().enumerate() {
            let Some(known) = self.known[at] else { continue };
            if let Op::Mem(word) | Op::MemX(word) = op {
                self.starts_with |= 1 << word & !known.stored;
            }
            let value = self.next_value(at, op, ops.len());
            let known = known.after(op);
            for to in successors(op, at).into_iter().flatten() {
                let first = self.known[to].is_none();
                self.known[to] = Some(self.known[to].map_or(known, |other| other.both(known)));
                self.ways[to] += 1;
                match first {
                    true => self.value[to] = value,
                    false => self.join(self.value[to], value, ops),
                }
            }
        }
        debug_assert!(self.starts_with < 1 << SCRATCH);
    }

    /// Whose value `A` is behind an instruction, and what that one needs of it.
    fn next_value(&mut self, at: usize, op: Op, other: usize) -> usize {
        let value = self.value[at];
        let needs_order = match op {
            Op::Load {
                width: Width::Byte, ..
            }
            | Op::Imm(_)
            | Op::Len
            | Op::Mem(_)
            | Op::Txa => return other,
            Op::Load { .. } => return at,
            Op::Alu(Alu::And, With::K(_)) => false,
            // What it adds has to be among the bytes that there are.
            Op::Alu(Alu::Or | Alu::Xor, With::K(k)) => k > 0xFFFF,
            Op::Alu(..) | Op::Neg | Op::Store(_) | Op::Tax => true,
            Op::If { test, with, .. } => !matches!((test, with), (Test::Equal | Test::Bits, With::K(_))),
            _ => false,
        };
        if needs_order {
            let root = self.root(value);
            self.ordered[root] = true;
        }
        match op {
            Op::Alu(Alu::And | Alu::Or | Alu::Xor, With::K(_)) => value,
            Op::Alu(..) | Op::Neg => other,
            _ => value,
        }
    }

    fn root(&self, mut value: usize) -> usize {
        while self.classes[value] != value {
            value = self.classes[value];
        }
        value
    }

    /// Two values meet: they have to have the same order of bytes.
    fn join(&mut self, a: usize, b: usize, ops: &[Op]) {
        let width = |value: usize| match ops.get(value) {
            Some(Op::Load { width, .. }) => Some(*width),
            _ => None,
        };
        let (a, b) = (self.root(a), self.root(b));
        let ordered = self.ordered[a] || self.ordered[b] || width(a) != width(b);
        self.classes[a] = b;
        self.ordered[b] = ordered;
    }

    /// The width of what `A` holds as it stands in the packet, when instruction `at` begins; `None` if it is in the machine's order.
    pub(crate) fn as_in_packet(&self, at: usize, ops: &[Op]) -> Option<Width> {
        self.loaded_as_in_packet(self.value[at], ops)
    }

    /// The same of what the load `at` brings.
    pub(crate) fn loaded_as_in_packet(&self, at: usize, ops: &[Op]) -> Option<Width> {
        match ops.get(at) {
            Some(Op::Load { width, .. }) if *width != Width::Byte && !self.ordered[self.root(at)] => {
                Some(*width)
            }
            _ => None,
        }
    }

    fn backward(&mut self, ops: &[Op]) {
        let mut needs_x = vec![false; ops.len() + 1];
        for (at, &op) in ops.iter().enumerate().rev() {
            let (mut a, mut x) = (false, false);
            for to in successors(op, at).into_iter().flatten() {
                a |= self.needs_a[to];
                x |= needs_x[to];
            }
            match op {
                Op::Load { at_x, .. } => (a, x) = (false, x || at_x),
                Op::Imm(_) | Op::Len | Op::Mem(_) => a = false,
                Op::ImmX(_) | Op::LenX | Op::MemX(_) | Op::Msh(_) => x = false,
                Op::Store(_) | Op::RetA | Op::Neg => a = true,
                Op::StoreX(_) => x = true,
                Op::Alu(_, with) | Op::If { with, .. } => (a, x) = (true, x || with == With::X),
                Op::Tax => (a, x) = (true, false),
                Op::Txa => (a, x) = (false, true),
                Op::Jump(_) | Op::Ret(_) => {}
            }
            (self.needs_a[at], needs_x[at]) = (a, x);
        }
        (self.starts_with_a, self.starts_with_x) = (self.needs_a[0], needs_x[0]);
    }
}
