//! Programs made by a grammar: mostly what the rules allow, now and then what they forbid, then mutated.

mod control;
mod forbidden;
mod gates;
mod held;
mod pool;
mod straight;
mod view;

pub use pool::Pool;
pub use view::Known;

use crate::rng::Rng;
use forbidden::FORBIDDEN;
use std::ops::Range;

/// A program: functions one behind the other, the first one to be called.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The code; it stands at a multiple of 16.
    pub text: Vec<u8>,
    /// The forms of [`Pool`] that it uses.
    pub forms: Vec<u32>,
    /// How many operands through `r14` it was made with.
    pub through_r14: u32,
    /// How many operands behind the window it was made with, in the words mode.
    pub views: u32,
    /// Those whose places are known; all that it does, in this order, if [`Program::only_known`].
    pub known: Vec<Known>,
    /// Whether it does nothing else.
    pub only_known: bool,
    /// Whether it was mutated after it was made.
    pub mutated: bool,
    /// Whether something forbidden was put into it.
    pub hostile: bool,
}

struct Maker<'a> {
    pool: &'a Pool,
    rng: &'a mut Rng,
    out: Program,
    depth: u32,
    /// Calls to be patched: place of the displacement, number of the function.
    calls: Vec<(usize, usize)>,
    functions: usize,
    labels: u16,
    nesting: u32,
    hostility: u64,
    /// The offsets of the host's objects, in the words mode.
    arena: Option<Range<u32>>,
    /// Labels so far: identifier, place, function.
    markers: Vec<(u32, usize, usize)>,
    /// The function in hand ends without a return.
    open_end: bool,
    function: usize,
}

/// Makes a program. Label numbers are taken from `labels` upwards. One in `hostility` statements is forbidden. With an arena it is one
/// of the words mode.
#[must_use]
pub fn make(
    pool: &Pool,
    rng: &mut Rng,
    labels: &mut u16,
    hostility: u64,
    arena: Option<Range<u32>>,
) -> Program {
    let only_known = arena.is_some() && hostility == 0 && rng.one_in(3);
    let functions = if only_known { 1 } else { 1 + rng.below(4) as usize };
    let mut maker = Maker {
        pool,
        rng,
        out: Program {
            only_known,
            ..Program::default()
        },
        depth: 0,
        calls: Vec::new(),
        functions,
        labels: *labels,
        nesting: 0,
        hostility,
        arena,
        markers: Vec::new(),
        open_end: false,
        function: 0,
    };
    let mut starts = Vec::new();
    for number in 0..functions {
        starts.push(maker.function(number));
    }
    for (place, number) in std::mem::take(&mut maker.calls) {
        let displacement = starts[number] as i64 - (place as i64 + 4);
        maker.out.text[place..place + 4].copy_from_slice(&(displacement as i32).to_le_bytes());
    }
    *labels = maker.labels;
    maker.out
}

/// Changes a few bytes; `other` is where pieces may come from.
pub fn mutate(program: &mut Program, other: &[u8], rng: &mut Rng) {
    program.mutated = true;
    for _ in 0..=rng.below(3) {
        let len = program.text.len() as u64;
        if len < 16 {
            return;
        }
        let at = rng.below(len) as usize;
        match rng.below(6) {
            0 => program.text[at] ^= 1 << rng.below(8),
            1 => program.text[at] = rng.bits() as u8,
            2 => {
                program.text.remove(at);
                program.text.push(0xCC);
            }
            3 => program.text.insert(
                at,
                rng.pick(&[0x65, 0x67, 0x66, 0xF2, 0xF3, 0xF0, 0x48, 0x41, 0x64, 0x90]),
            ),
            4 if other.len() > 16 => {
                let from = rng.below(other.len() as u64 - 12) as usize;
                let count = (1 + rng.below(12) as usize).min(program.text.len() - at);
                program.text[at..at + count].copy_from_slice(&other[from..from + count]);
            }
            _ => {
                let byte = &mut program.text[at];
                *byte = byte.wrapping_add(rng.pick(&[1u8, 0xFF, 8, 0xF8]));
            }
        }
    }
    while !program.text.len().is_multiple_of(16) {
        program.text.push(0xCC);
    }
}

impl Maker<'_> {
    fn here(&self) -> usize {
        self.out.text.len()
    }

    fn put(&mut self, bytes: &[u8]) {
        self.out.text.extend_from_slice(bytes);
    }

    fn align(&mut self, to: usize, remainder: usize) {
        while self.here() % to != remainder {
            self.put(&[0x90]);
        }
    }

    /// A general register that may be used freely.
    fn register(&mut self) -> u8 {
        let odd = self.rng.one_in(200);
        if odd {
            15
        } else {
            self.rng.pick(&[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13])
        }
    }

    fn statement(&mut self, number: usize) {
        if self.hostility != 0 && self.rng.one_in(self.hostility) {
            self.out.hostile = true;
            if let Some(arena) = self.arena.clone().filter(|_| self.rng.one_in(2)) {
                return self.view(&arena, true);
            }
            match self.rng.below(8) {
                0 | 1 => return self.trick(number),
                2 => return self.broken_line(number),
                _ => {}
            }
            let piece = self.rng.pick(FORBIDDEN);
            self.put(piece);
            return;
        }
        if let Some(arena) = self.arena.clone().filter(|_| self.rng.one_in(3)) {
            return self.view(&arena, false);
        }
        match self.rng.below(100) {
            0..=51 => self.instruction(),
            52..=59 => self.held(),
            60..=65 => {
                let register = self.register();
                self.depth += 1;
                match self.rng.below(4) {
                    0 => {
                        let value = self.rng.bits() as u32;
                        self.put(&[0x68]);
                        self.put(&value.to_le_bytes());
                    }
                    _ if register >= 8 => self.put(&[0x41, 0x50 | register & 7]),
                    _ => self.put(&[0x50 | register]),
                }
            }
            66..=70 if self.depth > 0 => self.pop(),
            71..=77 => self.branch(number),
            78..=79 => self.repeat(number),
            80..=83 if number + 1 < self.functions => {
                let to = number + 1 + self.rng.below((self.functions - number - 1) as u64) as usize;
                self.put(&[0xE8, 0, 0, 0, 0]);
                self.calls.push((self.here() - 4, to));
            }
            84..=86 if number + 1 < self.functions => {
                let to = number + 1 + self.rng.below((self.functions - number - 1) as u64) as usize;
                self.indirect(true, Some(to));
            }
            87 => self.switch(),
            88 => self.table(),
            89..=92 => self.string(),
            93 => match self.rng.below(4) {
                0 => self.jump_stub(),
                1 => self.system_call(),
                _ => self.stub(),
            },
            94 if self.rng.one_in(40) => {
                // Anything at all as the target.
                self.indirect(true, None);
            }
            _ => self.constant(),
        }
    }
}
