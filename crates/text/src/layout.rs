//! The order in which code stands: ways out of loops behind everything else, and loops with their condition at the end.
//!
//! It comes after registers are chosen: intervals are those of the order in which the text was read.

use crate::ir::{Func, Ins, NONE, Op};

/// Most loops that are looked at for each branch.
const LOOPS: usize = 64;

struct Loop {
    top: usize,
    end: usize,
}

/// Where labels stand, which begin innermost loops, and all loops.
struct Shape {
    at: Vec<u32>,
    innermost: Vec<bool>,
    loops: Vec<Loop>,
}

impl Shape {
    /// Innermost: reached from below, and from below another such label behind it not any more.
    fn new(f: &Func) -> Shape {
        let (mut at, mut innermost) = (vec![NONE; f.labels as usize], vec![false; f.labels as usize]);
        let (mut loops, mut last): (Vec<Loop>, u32) = (Vec::new(), 0);
        for (k, ins) in f.code.iter().enumerate() {
            if ins.op == Op::Label {
                at[ins.c as usize] = k as u32;
            } else if let Some(label) = ins.target()
                && at[label as usize] != NONE
            {
                let top = at[label as usize];
                innermost[label as usize] |= top >= last;
                last = last.max(top);
                let top = top as usize;
                match loops.iter().position(|l| l.top == top) {
                    Some(i) => loops[i].end = k,
                    None if loops.len() < LOOPS => loops.push(Loop { top, end: k }),
                    None => {}
                }
            }
        }
        Shape { at, innermost, loops }
    }

    /// Whether control that goes there from `k` leaves the innermost loop around `k`.
    fn leaves(&self, k: usize, to: Option<u32>) -> bool {
        let around = self.loops.iter().filter(|l| l.top < k && k < l.end);
        let Some(inner) = around.min_by_key(|l| l.end - l.top) else {
            return false;
        };
        match to {
            Some(label) => {
                let at = self.at[label as usize] as usize;
                at < inner.top || at > inner.end
            }
            None => true,
        }
    }

    /// What stands between the branch at `k` and the label that it leads to, if that is a way out of the loop.
    fn exit(&self, f: &Func, k: usize) -> Option<usize> {
        let end = self.at[f.code[k].c as usize] as usize;
        if end <= k + 2 && f.code.get(k + 1).is_none_or(|i| i.op == Op::Label) || end <= k {
            return None;
        }
        let between = &f.code[k + 1..end];
        let plain = between[..between.len() - 1]
            .iter()
            .all(|i| i.op != Op::Label && i.target().is_none() && !i.ends());
        let last = between[between.len() - 1];
        (plain && last.ends() && self.leaves(k, last.target())).then_some(end)
    }
}

/// Longest way between a branch and its label that is looked at.
const EXIT: usize = 24;

/// Puts a function's code into the order in which it is emitted.
pub fn arrange(f: &mut Func) {
    let shape = Shape::new(f);
    f.tops.clone_from(&shape.innermost);
    if shape.loops.is_empty() {
        return;
    }
    let old = std::mem::take(&mut f.code);
    let source = Func {
        code: old,
        ..Func::default()
    };
    let code = &source.code;
    let (mut out, mut cold): (Vec<Ins>, Vec<(u32, usize, usize)>) =
        (Vec::with_capacity(code.len() + 16), Vec::new());
    // Of a label with a branch behind it: where that stands, and where control goes on if it is not taken.
    let mut past: Vec<(u32, usize, u32)> = Vec::new();
    let mut k = 0;
    while k < code.len() {
        let ins = code[k];
        if matches!(ins.op, Op::Br | Op::FBr) {
            let near = (shape.at[ins.c as usize] as usize).wrapping_sub(k) <= EXIT;
            let exit = if near { shape.exit(&source, k) } else { None };
            let head = head_of(code, k).filter(|&label| {
                ins.op == Op::Br
                    && shape
                        .loops
                        .iter()
                        .any(|l| l.top == shape.at[label as usize] as usize)
            });
            if let Some(end) = exit {
                let label = f.labels;
                f.labels += 1;
                f.tops.push(false);
                out.push(Ins {
                    cc: ins.cc ^ 1,
                    c: label,
                    ..ins
                });
                cold.push((label, k + 1, end));
                if let Some(head) = head {
                    past.push((head, k, label));
                }
                k = end;
                continue;
            }
            out.push(ins);
            if let Some(head) = head {
                let label = f.labels;
                f.labels += 1;
                f.tops.push(false);
                past.push((head, k, label));
                out.push(Ins {
                    c: label,
                    ..Ins::new(Op::Label)
                });
            }
        } else if ins.op == Op::Jmp {
            again(code, &past, &mut out, ins);
        } else {
            out.push(ins);
        }
        k += 1;
    }
    for (label, from, end) in cold {
        out.push(Ins {
            c: label,
            ..Ins::new(Op::Label)
        });
        out.extend_from_slice(&code[from..end]);
    }
    f.code = out;
}

/// The label right in front of a branch and its operand.
fn head_of(code: &[Ins], k: usize) -> Option<u32> {
    let mut at = k;
    if at > 0 && code[at - 1].op == Op::Mem {
        at -= 1;
    }
    (at > 0 && code[at - 1].op == Op::Label).then(|| code[at - 1].c)
}

/// A jump back to a branch is that branch, and one jump less on its way.
fn again(code: &[Ins], past: &[(u32, usize, u32)], out: &mut Vec<Ins>, jump: Ins) {
    let Some(&(_, k, label)) = past.iter().rev().take(LOOPS).find(|p| p.0 == jump.c) else {
        out.push(jump);
        return;
    };
    if code[k - 1].op == Op::Mem {
        out.push(code[k - 1]);
    }
    out.push(code[k]);
    out.push(Ins { c: label, ..jump });
}
