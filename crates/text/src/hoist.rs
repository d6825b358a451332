//! What a loop computes anew although it stays the same, in front of the loop.

use crate::ir::{Func, Ins, NONE, Op, Val, is_val};

/// Most values that are moved in front of one loop, of either kind: they take registers there.
const GENERAL: usize = 5;
const FLOATS: usize = 6;
/// Most loops that are looked at.
const LOOPS: usize = 64;
/// Most instructions of loops that are looked at, inner ones counted anew, for each instruction of the function.
const EFFORT: usize = 8;

struct Loop {
    top: u32,
    end: u32,
}

/// Moves what does not change in a loop in front of it. Inner loops come first, so what is the same in several leaves all.
pub fn hoist(f: &mut Func) {
    let mut loops = loops(f);
    if loops.is_empty() {
        return;
    }
    loops.sort_unstable_by_key(|l| l.end - l.top);
    let writes = Writes::new(f);
    // In front of which instruction each one stands that was moved; outer loops come later.
    let mut moved: Vec<(u32, u32)> = Vec::new();
    let mut place: Vec<u32> = (0..f.code.len() as u32).collect();
    let mut effort = f.code.len() * EFFORT;
    for l in &loops {
        let length = (l.end - l.top) as usize;
        if length > effort {
            break;
        }
        effort -= length;
        let mut room = [GENERAL, FLOATS];
        for k in l.top..=l.end {
            let ins = &f.code[k as usize];
            if place[k as usize] < l.top || !movable(ins) {
                continue;
            }
            let room = &mut room[usize::from(f.floats[ins.d as usize])];
            let stays = |v: Val| !is_val(v) || !writes.within(v, l, &place);
            if *room > 0 && writes.once(ins.d) && ins.uses().into_iter().all(stays) {
                *room -= 1;
                place[k as usize] = l.top;
                moved.retain(|m| m.1 != k);
                moved.push((l.top, k));
            }
        }
    }
    if moved.is_empty() {
        return;
    }
    // In the order of the code, which is that of their dependence.
    moved.sort_unstable();
    let mut code = Vec::with_capacity(f.code.len());
    let mut next = moved.iter().peekable();
    for (k, ins) in f.code.iter().enumerate() {
        while let Some(&&(_, from)) = next.peek().filter(|m| m.0 == k as u32) {
            code.push(f.code[from as usize]);
            next.next();
        }
        if place[k] == k as u32 {
            code.push(*ins);
        }
    }
    f.code = code;
}

/// Loops that are entered at their top only.
fn loops(f: &Func) -> Vec<Loop> {
    let mut at = vec![NONE; f.labels as usize];
    let mut list: Vec<Loop> = Vec::new();
    // Of each label from where branches come: the first and the last.
    let mut from = vec![(NONE, 0); f.labels as usize];
    for (k, ins) in f.code.iter().enumerate() {
        let k = k as u32;
        if ins.op == Op::Label {
            at[ins.c as usize] = k;
        }
        if let Some(label) = ins.target() {
            let from = &mut from[label as usize];
            *from = (from.0.min(k), from.1.max(k));
            let top = at[label as usize];
            if top != NONE {
                match list.iter().position(|l| l.top == top) {
                    Some(i) => list[i].end = k,
                    None if list.len() < LOOPS => list.push(Loop { top, end: k }),
                    None => {}
                }
            }
        }
    }
    list.retain(|l| {
        f.code[l.top as usize..=l.end as usize].iter().all(|ins| {
            let (first, last) = match ins.op {
                Op::Label => from[ins.c as usize],
                _ => return true,
            };
            first == NONE || first >= l.top && last <= l.end
        })
    });
    list
}

fn movable(ins: &Ins) -> bool {
    // Constants are as cheap where they are; what is read may be written.
    ins.is_pure()
        && !matches!(ins.op, Op::MovI | Op::Load | Op::FLoad | Op::Mov | Op::FMov)
        && !(ins.op == Op::Lea && ins.b == NONE)
}

/// Where values are written.
struct Writes {
    from: Vec<u32>,
    places: Vec<u32>,
}

impl Writes {
    fn new(f: &Func) -> Writes {
        let mut from = vec![0u32; f.floats.len() + 1];
        let each = |what: &mut dyn FnMut(Val, u32)| {
            for (k, ins) in f.code.iter().enumerate() {
                if ins.d != NONE {
                    what(ins.d, k as u32);
                }
                if ins.op == Op::Params {
                    f.params.iter().for_each(|p| what(p.val, k as u32));
                }
            }
        };
        each(&mut |v, _| from[v as usize + 1] += 1);
        for i in 1..from.len() {
            from[i] += from[i - 1];
        }
        let mut places = vec![0; from[from.len() - 1] as usize];
        let mut next = from.clone();
        each(&mut |v, k| {
            let at = &mut next[v as usize];
            places[*at as usize] = k;
            *at += 1;
        });
        Writes { from, places }
    }

    fn of(&self, v: Val) -> &[u32] {
        &self.places[self.from[v as usize] as usize..self.from[v as usize + 1] as usize]
    }

    fn once(&self, v: Val) -> bool {
        self.of(v).len() == 1
    }

    /// Whether a value is written in a loop, by what was not moved out of it.
    fn within(&self, v: Val, l: &Loop, place: &[u32]) -> bool {
        let list = self.of(v);
        let first = list.partition_point(|&k| k < l.top);
        list[first..]
            .iter()
            .take_while(|&&k| k <= l.end)
            .any(|&k| place[k as usize] == k || place[k as usize] > l.top)
    }
}
