//! Which values are alive where: basic blocks, and for each value one interval of places.
//!
//! Instruction `k` reads its operands at `2k` and writes its result at `2k + 1`.

use crate::ir::{Func, Ins, NONE, Op, Val, is_val};

/// Most words in one of the three sets that all blocks have together, and most steps of the search for what does not change.
const WORDS: usize = 1 << 21;
const STEPS: usize = 200 << 20;

/// The function is too involved.
pub struct TooLarge;

#[derive(Default)]
pub struct Live {
    /// First and last place; `start` is [`NONE`] for values that are nowhere.
    pub start: Vec<u32>,
    pub end: Vec<u32>,
    /// How often it is used, loops counted several times.
    pub weight: Vec<f32>,
    pub calls: Vec<u32>,
    pub divisions: Vec<u32>,
}

struct Block {
    from: u32,
    to: u32,
    /// Where control goes on.
    next: [u32; 2],
    depth: u8,
}

/// Takes away instructions that are never reached, or whose result nobody wants. How often each value is used.
pub fn clean(f: &mut Func) -> Vec<u32> {
    let mut aimed = vec![false; f.labels as usize];
    for label in f.code.iter().filter_map(Ins::target) {
        aimed[label as usize] = true;
    }
    let mut dead = false;
    for ins in &mut f.code {
        if ins.op == Op::Label && !aimed[ins.c as usize] {
            *ins = Ins::new(Op::Nop);
        }
        dead &= ins.op != Op::Label;
        if dead {
            *ins = Ins::new(Op::Nop);
        }
        dead |= ins.ends();
    }
    let mut uses = vec![0u32; f.floats.len()];
    let count = |v: Val, uses: &mut Vec<u32>, by: i32| {
        if is_val(v) {
            uses[v as usize] = uses[v as usize].wrapping_add_signed(by);
        }
    };
    for ins in &f.code {
        for v in ins.uses() {
            count(v, &mut uses, 1);
        }
        if ins.is_call() {
            for arg in f.call_args(ins) {
                count(arg.val, &mut uses, 1);
            }
        }
    }
    for k in (0..f.code.len()).rev() {
        let ins = f.code[k];
        if ins.is_pure() && uses[ins.d as usize] == 0 {
            for v in ins.uses() {
                count(v, &mut uses, -1);
            }
            f.code[k] = Ins::new(Op::Nop);
        }
    }
    f.code.retain(|ins| ins.op != Op::Nop);
    uses
}

fn blocks(f: &Func) -> Vec<Block> {
    let (mut list, mut at_label, mut from) = (Vec::with_capacity(32), vec![NONE; f.labels as usize], 0);
    let close = |list: &mut Vec<Block>, from: u32, to: u32| {
        if to > from {
            list.push(Block {
                from,
                to,
                next: [NONE; 2],
                depth: 0,
            });
        }
    };
    for (k, ins) in f.code.iter().enumerate() {
        let k = k as u32;
        if ins.op == Op::Label {
            close(&mut list, from, k);
            from = k;
            at_label[ins.c as usize] = list.len() as u32;
        } else if ins.target().is_some() || ins.ends() {
            close(&mut list, from, k + 1);
            from = k + 1;
        }
    }
    close(&mut list, from, f.code.len() as u32);
    let count = list.len() as u32;
    let mut loops = vec![0i32; list.len() + 1];
    for (b, block) in list.iter_mut().enumerate() {
        let last = &f.code[block.to as usize - 1];
        if let Some(label) = last.target() {
            let target = at_label[label as usize];
            block.next[0] = target;
            if target <= b as u32 {
                loops[target as usize] += 1;
                loops[b + 1] -= 1;
            }
        }
        if !last.ends() && b as u32 + 1 < count {
            block.next[1] = b as u32 + 1;
        }
    }
    let mut depth = 0;
    for (block, change) in list.iter_mut().zip(loops) {
        depth += change;
        block.depth = depth.clamp(0, 4) as u8;
    }
    list
}

fn each_use(f: &Func, ins: &Ins, mut what: impl FnMut(usize)) {
    for v in ins.uses() {
        if is_val(v) {
            what(v as usize);
        }
    }
    if ins.is_call() {
        for arg in f.call_args(ins) {
            what(arg.val as usize);
        }
    }
}

fn each_def(f: &Func, ins: &Ins, mut what: impl FnMut(usize)) {
    if ins.d != NONE {
        what(ins.d as usize);
    }
    if ins.op == Op::Params {
        for param in &f.params {
            what(param.val as usize);
        }
    }
}

/// For each value that is alive in more than one block its number among those; and how many there are.
fn shared(f: &Func, blocks: &[Block]) -> (Vec<u32>, Vec<Val>) {
    const UNSEEN: u32 = NONE;
    let (mut home, mut number, mut list) = (
        vec![UNSEEN; f.floats.len()],
        vec![NONE; f.floats.len()],
        Vec::with_capacity(64),
    );
    for (b, block) in blocks.iter().enumerate() {
        let b = b as u32;
        for ins in &f.code[block.from as usize..block.to as usize] {
            let mut see = |v: usize, read: bool| {
                // Read before it is written: it comes from elsewhere.
                if number[v] == NONE && ((home[v] == UNSEEN && read) || (home[v] != UNSEEN && home[v] != b)) {
                    number[v] = list.len() as u32;
                    list.push(v as Val);
                }
                home[v] = b;
            };
            each_use(f, ins, |v| see(v, true));
            each_def(f, ins, |v| see(v, false));
        }
    }
    (number, list)
}

/// Finds the intervals of all values.
pub fn intervals(f: &Func) -> Result<Live, TooLarge> {
    let blocks = blocks(f);
    let (number, list) = shared(f, &blocks);
    let words = list.len().div_ceil(64);
    let total = blocks.len() * words;
    if total > WORDS {
        return Err(TooLarge);
    }
    let (mut alive, mut used, mut written) = (vec![0u64; total], vec![0u64; total], vec![0u64; total]);
    for (b, block) in blocks.iter().enumerate() {
        for ins in &f.code[block.from as usize..block.to as usize] {
            let place = |v: usize| {
                (number[v] != NONE).then(|| (b * words + number[v] as usize / 64, 1u64 << (number[v] % 64)))
            };
            each_use(f, ins, |v| {
                if let Some((at, bit)) = place(v)
                    && written[at] & bit == 0
                {
                    used[at] |= bit;
                }
            });
            each_def(f, ins, |v| {
                if let Some((at, bit)) = place(v) {
                    written[at] |= bit;
                }
            });
        }
    }
    let (mut changed, mut steps) = (true, 0);
    while changed {
        changed = false;
        steps += total;
        if steps > STEPS {
            return Err(TooLarge);
        }
        for (b, block) in blocks.iter().enumerate().rev() {
            for w in 0..words {
                let out = leaving(block, &alive, words, w);
                let at = b * words + w;
                let new = used[at] | out & !written[at];
                changed |= new != alive[at];
                alive[at] = new;
            }
        }
    }
    let mut live = Live {
        start: vec![NONE; f.floats.len()],
        end: vec![0; f.floats.len()],
        weight: vec![0.0; f.floats.len()],
        ..Live::default()
    };
    for (b, block) in blocks.iter().enumerate() {
        for w in 0..words {
            live.cover(alive[b * words + w], w, &list, 2 * block.from);
            live.cover(leaving(block, &alive, words, w), w, &list, 2 * block.to);
        }
        let weight = [1.0, 8.0, 64.0, 512.0, 4096.0][block.depth as usize];
        for k in block.from..block.to {
            let ins = &f.code[k as usize];
            match ins.op {
                Op::Div | Op::Rem | Op::UDiv | Op::URem => live.divisions.push(k),
                _ if ins.is_call() => live.calls.push(k),
                _ => {}
            }
            each_use(f, ins, |v| live.touch(v, 2 * k, weight));
            if ins.op == Op::Mem {
                // The next instruction reads them.
                each_use(f, ins, |v| live.touch(v, 2 * k + 2, 0.0));
            }
            each_def(f, ins, |v| {
                live.touch(v, 2 * k + 1, weight);
                // What is written takes its register even if nobody reads it.
                live.end[v] = live.end[v].max(2 * k + 2);
            });
        }
    }
    Ok(live)
}

fn leaving(block: &Block, alive: &[u64], words: usize, w: usize) -> u64 {
    let of = |b: u32| {
        if b == NONE {
            0
        } else {
            alive[b as usize * words + w]
        }
    };
    of(block.next[0]) | of(block.next[1])
}

impl Live {
    fn cover(&mut self, mut bits: u64, word: usize, list: &[Val], at: u32) {
        while bits != 0 {
            let v = list[word * 64 + bits.trailing_zeros() as usize] as usize;
            bits &= bits - 1;
            self.start[v] = self.start[v].min(at);
            self.end[v] = self.end[v].max(at);
        }
    }

    fn touch(&mut self, v: usize, at: u32, weight: f32) {
        self.start[v] = self.start[v].min(at);
        self.end[v] = self.end[v].max(at);
        self.weight[v] += weight;
    }

    /// Whether the value is alive across one of these instructions.
    pub fn crosses(&self, v: usize, list: &[u32]) -> bool {
        let first = list.partition_point(|&k| 2 * k < self.start[v]);
        list.get(first).is_some_and(|&k| self.end[v] > 2 * k + 1)
    }
}
