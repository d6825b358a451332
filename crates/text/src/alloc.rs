//! Registers for values: a linear scan over their intervals.

use crate::ir::{Func, NONE, Op, is_val};
use crate::live::Live;

pub const RAX: u8 = 0;
pub const RCX: u8 = 1;
pub const RDX: u8 = 2;
pub const RBX: u8 = 3;
pub const RBP: u8 = 5;
pub const RSI: u8 = 6;
pub const RDI: u8 = 7;
pub const R11: u8 = 11;
pub const R14: u8 = 14;
pub const R15: u8 = 15;

/// No register: the value is in its slot, or nowhere.
pub const NO_REG: u8 = 255;

/// Where arguments are passed.
pub const ARGS: [u8; 6] = [RDI, RSI, RDX, RCX, 8, 9];
pub const FLOAT_ARGS: u8 = 8;
/// Registers that a function leaves as they were.
pub const SAVED: [u8; 4] = [RBX, RBP, 12, 13];

/// General registers for values, in the order in which they are taken. `rcx` and `r11` are scratch, `r14` and `r15` have
/// their meaning.
const GENERAL: [u8; 12] = [RDX, RSI, RDI, 8, 9, 10, RAX, RBX, RBP, 12, 13, NO_REG];
/// `xmm0` to `xmm13`; the two others are scratch.
const FLOATS: u8 = 14;

pub struct Allocation {
    /// A register for each value.
    pub reg: Vec<u8>,
    /// The slot of each value that has no register.
    pub slot: Vec<u32>,
    pub slots: u32,
    /// Which general registers are written.
    pub used: u16,
}

/// Registers that would save a move: for each value one, or another value whose register it would be.
struct Hints {
    reg: Vec<u8>,
    val: Vec<u32>,
}

fn hints(f: &Func) -> Hints {
    let mut h = Hints {
        reg: vec![NO_REG; f.floats.len()],
        val: vec![NONE; f.floats.len()],
    };
    let positions = |args: &[crate::ir::Arg], reg: &mut Vec<u8>| {
        let (mut ints, mut floats) = (0, 0);
        for arg in args {
            if arg.long_double {
                continue;
            }
            if arg.float {
                if floats < FLOAT_ARGS {
                    reg[arg.val as usize] = floats;
                }
                floats += 1;
            } else {
                if let Some(&r) = ARGS.get(ints) {
                    reg[arg.val as usize] = r;
                }
                ints += 1;
            }
        }
    };
    for ins in &f.code {
        match ins.op {
            Op::Params => positions(&f.params, &mut h.reg),
            Op::Call | Op::CallImport | Op::CallPtr => {
                positions(f.call_args(ins), &mut h.reg);
                if ins.d != NONE && h.reg[ins.d as usize] == NO_REG {
                    h.reg[ins.d as usize] = 0;
                }
            }
            Op::Ret | Op::FRet if is_val(ins.a) => h.reg[ins.a as usize] = 0,
            Op::Div | Op::UDiv => h.reg[ins.d as usize] = RAX,
            Op::Rem | Op::URem => h.reg[ins.d as usize] = RDX,
            Op::Choose => {}
            _ if ins.d != NONE && is_val(ins.a) => {
                h.val[ins.d as usize] = ins.a;
                if matches!(ins.op, Op::Mov | Op::FMov) {
                    h.val[ins.a as usize] = ins.d;
                }
            }
            _ => {}
        }
    }
    h
}

/// Gives each value a register or a slot.
pub fn allocate(f: &Func, live: &Live) -> Allocation {
    let count = f.floats.len();
    let mut result = Allocation {
        reg: vec![NO_REG; count],
        slot: vec![NONE; count],
        slots: 0,
        used: 0,
    };
    let hints = hints(f);
    let mut order: Vec<u32> = (0..count as u32)
        .filter(|&v| live.start[v as usize] != NONE)
        .collect();
    order.sort_unstable_by_key(|&v| live.start[v as usize]);
    let mut owners = [[NONE; 16]; 2];
    for &v in &order {
        let (value, at) = (v, live.start[v as usize]);
        let v = v as usize;
        let float = f.floats[v];
        let owner = &mut owners[usize::from(float)];
        for o in owner.iter_mut() {
            if *o != NONE && live.end[*o as usize] <= at {
                *o = NONE;
            }
        }
        let call = live.crosses(v, &live.calls);
        let division = !float && live.crosses(v, &live.divisions);
        let allowed = |r: u8| match float {
            true => r < FLOATS && !call,
            false => {
                (!call || SAVED.contains(&r))
                    && !(division && (r == RAX || r == RDX))
                    && r != RCX
                    && r != R11
                    && r != 4
                    && r < R14
            }
        };
        let free = |r: u8, owner: &[u32; 16]| r != NO_REG && allowed(r) && owner[r as usize] == NONE;
        let near = hints.val[v];
        let near = if near != NONE && f.floats[near as usize] == float {
            result.reg[near as usize]
        } else {
            NO_REG
        };
        let mut pick = [hints.reg[v], near]
            .into_iter()
            .find(|&r| free(r, owner))
            .unwrap_or(NO_REG);
        if pick == NO_REG {
            let mut all = (0..FLOATS).map(|r| {
                if float {
                    r
                } else {
                    GENERAL.get(r as usize).copied().unwrap_or(NO_REG)
                }
            });
            pick = all.find(|&r| free(r, owner)).unwrap_or(NO_REG);
        }
        if pick == NO_REG {
            // Whoever is used least goes into memory.
            let mut least = live.weight[v];
            for r in 0..16u8 {
                let o = owner[r as usize];
                if o != NONE && allowed(r) && live.weight[o as usize] < least {
                    least = live.weight[o as usize];
                    pick = r;
                }
            }
            if pick != NO_REG {
                let spilled = owner[pick as usize] as usize;
                result.reg[spilled] = NO_REG;
                result.slot[spilled] = result.slots;
                result.slots += 1;
            }
        }
        if pick == NO_REG {
            result.slot[v] = result.slots;
            result.slots += 1;
            continue;
        }
        owner[pick as usize] = value;
        result.reg[v] = pick;
    }
    for (v, &r) in result.reg.iter().enumerate() {
        if r != NO_REG && !f.floats[v] {
            result.used |= 1 << r;
        }
    }
    result
}
