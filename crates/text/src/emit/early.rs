//! Ways out right at the beginning of a function, in front of its frame: `if (n < 2) return 1;`.

use super::{Emit, collides};
use crate::alloc::{ARGS, RAX};
use crate::ir::{Ins, NONE, Op, TEST, Val};

/// Most ways out, and most instructions that are looked at on each.
const WAYS: usize = 3;
const STEPS: usize = 16;

/// A value that is known without a frame.
#[derive(Clone, Copy)]
enum Known {
    Number(i64),
    Argument(u8),
}

/// The function returns at once if a branch is taken, or not.
struct Exit {
    reg: u8,
    branch: Ins,
    result: Option<Known>,
}

/// Where straight code leads.
enum End {
    Branch(usize),
    Return(Option<Known>),
    Other,
}

impl Emit<'_> {
    /// Writes the ways out, if there are some and nothing of them looks like an identifier.
    pub fn early(&mut self) {
        let from = self.out.asm.code.len();
        for exit in self.exits() {
            let (asm, ins) = (&mut self.out.asm, exit.branch);
            let value = ins.imm as i32;
            if value == 0 {
                asm.rr(0, &[0x85], ins.w, exit.reg, exit.reg);
            } else {
                asm.alu_constant(super::alu::CMP, ins.w, exit.reg, value);
            }
            asm.bytes(&[0x70 | (ins.cc ^ 1), 0]);
            let past = asm.code.len();
            match exit.result {
                Some(Known::Number(n)) => asm.constant(RAX, n),
                Some(Known::Argument(r)) => asm.mov(8, RAX, r),
                None => {}
            }
            asm.code.push(0xC3);
            asm.code[past - 1] = (asm.code.len() - past) as u8;
        }
        if collides(&self.out.asm.code, from, self.out.asm.code.len()) {
            self.out.asm.code.truncate(from);
        }
    }

    fn exits(&self) -> Vec<Exit> {
        let (mut list, mut known, mut at) = (Vec::new(), Vec::new(), 0);
        while list.len() < WAYS {
            let End::Branch(k) = self.follow(at, &mut known) else {
                break;
            };
            let ins = self.f.code[k];
            let Some(Known::Argument(reg)) = find(&known, ins.a) else {
                break;
            };
            if ins.b != NONE || ins.sc == TEST || ins.w < 4 {
                break;
            }
            let Some(taken) = self.label(ins.c) else { break };
            let (mut there, mut here) = (known.clone(), known.clone());
            if let End::Return(result) = self.follow(taken, &mut there) {
                let branch = ins;
                list.push(Exit { reg, branch, result });
                at = k + 1;
            } else if let End::Return(result) = self.follow(k + 1, &mut here) {
                let branch = Ins {
                    cc: ins.cc ^ 1,
                    ..ins
                };
                list.push(Exit { reg, branch, result });
                at = taken;
            } else {
                break;
            }
        }
        list
    }

    fn label(&self, label: u32) -> Option<usize> {
        self.f.code.iter().position(|i| i.op == Op::Label && i.c == label)
    }

    /// Follows code that does nothing but what can be known.
    fn follow(&self, from: usize, known: &mut Vec<(Val, Known)>) -> End {
        let mut k = from;
        for _ in 0..STEPS {
            let Some(ins) = self.f.code.get(k) else {
                return End::Other;
            };
            let value = match ins.op {
                Op::Nop | Op::Label => None,
                Op::Params => {
                    let mut registers = ARGS.into_iter();
                    for param in self.f.params.iter().filter(|p| !p.float && !p.long_double) {
                        if let Some(r) = registers.next() {
                            known.push((param.val, Known::Argument(r)));
                        }
                    }
                    None
                }
                Op::Jmp => match self.label(ins.c) {
                    Some(at) => {
                        k = at;
                        continue;
                    }
                    None => return End::Other,
                },
                Op::Br => return End::Branch(k),
                Op::Ret if ins.a == NONE => return End::Return(None),
                Op::Ret => return find(known, ins.a).map_or(End::Other, |v| End::Return(Some(v))),
                Op::MovI => Some(Known::Number(ins.imm)),
                Op::Mov => find(known, ins.a),
                Op::Add => match (find(known, ins.a), find(known, ins.b)) {
                    (Some(Known::Number(a)), _) if ins.b == NONE => Some(sum(a, ins.imm, ins.w)),
                    (Some(Known::Number(a)), Some(Known::Number(b))) => Some(sum(a, b, ins.w)),
                    _ => return End::Other,
                },
                _ => return End::Other,
            };
            if ins.d != NONE {
                let Some(value) = value else { return End::Other };
                known.retain(|k| k.0 != ins.d);
                known.push((ins.d, value));
            }
            k += 1;
        }
        End::Other
    }
}

fn sum(a: i64, b: i64, w: u8) -> Known {
    let sum = a.wrapping_add(b);
    Known::Number(if w == 4 { i64::from(sum as u32) } else { sum })
}

fn find(known: &[(Val, Known)], val: Val) -> Option<Known> {
    known.iter().rev().find(|k| k.0 == val).map(|k| k.1)
}
