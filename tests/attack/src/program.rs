//! Programs made by a grammar: mostly what the rules allow, now and then what they forbid, then mutated.

use crate::elf::{DATA, TEXT};
use crate::encodings;
use crate::rng::Rng;
use ringfence_isa::{identifier, sequence, window};
use ringfence_verify::{Flow, Instruction, Memory, decode};

/// An encoding: its bytes, how many, and where the ModRM byte stands.
type Encoded = ([u8; 15], u8, u8);

/// Accepted encodings to choose from, by form.
#[derive(Debug)]
pub struct Pool {
    forms: Vec<Vec<Encoded>>,
}

/// How much data operands may reach, from [`DATA`] on.
const REACH: u64 = 0x1_0000;
/// How many encodings of one form are kept.
const KEEP: usize = 12;

impl Pool {
    /// Draws `draws` encodings and keeps what the decoder accepts.
    #[must_use]
    pub fn new(draws: u64, rng: &mut Rng) -> Pool {
        let mut by_form = std::collections::HashMap::<u32, Vec<_>>::new();
        for _ in 0..draws {
            let Some(e) = encodings::encoding(rng.below(encodings::TOTAL), rng) else {
                continue;
            };
            let Ok(i) = decode(&e.bytes) else { continue };
            // The data stack's pointer is rarely spoilt: gates would end most calls.
            let spoils = i.written.contains(14) || i.written.contains(15) && !rng.one_in(100);
            if i.flow != Flow::Next || spoils || matches!(i.memory, Memory::Free | Memory::Held) {
                continue;
            }
            // The loader takes these for labels, wherever they stand at a multiple of 8.
            if e.bytes[..3] == [0x0F, 0x1F, 0x84] {
                continue;
            }
            // Operands through r14 are made of confined ones ([`Maker::held`]), all others without `gs` are nothing the grammar has; `lea` and no-ops report no memory.
            let modrm = e.bytes[e.modrm];
            let head = e.bytes[..e.modrm].iter().fold(0u32, |h, b| {
                let prefix =
                    matches!(b, 0x65 | 0x67) || b & 0xF0 == 0x40 && e.bytes[0] != 0xC4 && e.bytes[0] != 0xC5;
                if prefix {
                    h
                } else {
                    h.wrapping_mul(257) + u32::from(*b)
                }
            });
            let form = head.wrapping_mul(64) + u32::from(modrm >> 3 & 7) * 2 + u32::from(modrm >= 0xC0);
            let list = by_form.entry(form).or_default();
            if list.len() < KEEP {
                let mut bytes = [0; 15];
                bytes.copy_from_slice(&e.bytes[..15]);
                list.push((bytes, i.len, e.modrm as u8));
            }
        }
        let mut forms: Vec<_> = by_form.into_iter().collect();
        forms.sort_by_key(|f| f.0);
        Pool {
            forms: forms.into_iter().map(|f| f.1).collect(),
        }
    }

    /// Number of forms.
    #[must_use]
    pub fn forms(&self) -> usize {
        self.forms.len()
    }
}

/// A program: functions one behind the other, the first one to be called.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// The code; it stands at a multiple of 16.
    pub text: Vec<u8>,
    /// The forms of [`Pool`] that it uses.
    pub forms: Vec<u32>,
    /// How many operands through `r14` it was made with.
    pub through_r14: u32,
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
    /// Labels so far: identifier, place, function.
    markers: Vec<(u32, usize, usize)>,
    /// The function in hand ends without a return.
    open_end: bool,
    function: usize,
}

/// Makes a program. Label numbers are taken from `labels` upwards. One in `hostility` statements is forbidden.
#[must_use]
pub fn make(pool: &Pool, rng: &mut Rng, labels: &mut u16, hostility: u64) -> Program {
    let functions = 1 + rng.below(4) as usize;
    let mut maker = Maker {
        pool,
        rng,
        out: Program::default(),
        depth: 0,
        calls: Vec::new(),
        functions,
        labels: *labels,
        nesting: 0,
        hostility,
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

/// What the rules forbid, one piece each; registers are left to chance by [`mutate`].
const FORBIDDEN: &[&[u8]] = &[
    &[0x48, 0x89, 0x07],                         // mov %rax, (%rdi)
    &[0x48, 0x8B, 0x07],                         // mov (%rdi), %rax
    &[0x67, 0x89, 0x07],                         // mov %eax, (%edi)
    &[0x65, 0x48, 0x89, 0x07],                   // mov %rax, %gs:(%rdi)
    &[0x64, 0x67, 0x8B, 0x07],                   // mov %fs:(%edi), %eax
    &[0x64, 0x48, 0x8B, 0x04, 0x25, 0, 0, 0, 0], // mov %fs:0, %rax
    &[0x49, 0x89, 0xFE],                         // mov %rdi, %r14
    &[0x49, 0x87, 0xFE],                         // xchg %rdi, %r14
    &[0x4C, 0x0F, 0xC1, 0xF7],                   // xadd %r14, %rdi
    &[0x41, 0x5E],                               // pop %r14
    &[0x49, 0x0F, 0xCE],                         // bswap %r14
    &[0x45, 0x31, 0xF6],                         // xor %r14d, %r14d
    &[0x41, 0x80, 0xC6, 1],                      // add $1, %r14b
    &[0x41, 0x0F, 0x94, 0xC6],                   // sete %r14b
    &[0x4C, 0x0F, 0x44, 0xF7],                   // cmove %rdi, %r14
    &[0xC4, 0x62, 0xFB, 0xF6, 0xF0],             // mulx %rax, %rax, %r14
    &[0xC4, 0xE2, 0x8B, 0xF6, 0xC0],             // mulx %rax, %r14, %rax
    &[0xC4, 0xC2, 0x88, 0xF3, 0xC8],             // blsr %r8, %r14
    &[0xC4, 0x41, 0xF9, 0x7E, 0xC6],             // vmovq %xmm8, %r14
    &[0x66, 0x4D, 0x0F, 0x7E, 0xC6],             // movq %xmm8, %r14
    &[0x66, 0x45, 0x0F, 0x3A, 0x16, 0xC6, 0],    // pextrd $0, %xmm8, %r14d
    &[0x44, 0x0F, 0x50, 0xF0],                   // movmskps %xmm0, %r14d
    &[0x66, 0x44, 0x0F, 0xD7, 0xF0],             // pmovmskb %xmm0, %r14d
    &[0xF2, 0x4C, 0x0F, 0x2C, 0xF0],             // cvttsd2si %xmm0, %r14
    &[0xF2, 0x4C, 0x0F, 0x38, 0xF1, 0xF0],       // crc32q %rax, %r14
    &[0x48, 0x89, 0xE0],                         // mov %rsp, %rax
    &[0x48, 0x8D, 0x44, 0x24, 0xF8],             // lea -8(%rsp), %rax
    // add $imm, %rax, whose length is another for who thinks that 66 counts: mov %eax, (%rdx) is in the rest
    &[0x66, 0x48, 0x05, 0, 0, 0xB8, 0x48, 0x89, 0x02, 0x90],
    &[0x74, 1, 0x50], // je 1f; push %rax; 1:
    &[
        0x48, 0x89, 0xF7, 0xEB, 6, 0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E, 0xAA,
    ], // mov %rsi, %rdi; jmp to the stos
    // call into the constant of a movabs: mov %rax, (%rdx); ret
    &[
        0xE8, 2, 0, 0, 0, 0x48, 0xB8, 0x48, 0x89, 0x02, 0xC3, 0x90, 0x90, 0x90, 0x90,
    ],
    &[0x48, 0x89, 0xC4],                // mov %rax, %rsp
    &[0x48, 0x83, 0xC4, 8],             // add $8, %rsp
    &[0x5C],                            // pop %rsp
    &[0x54],                            // push %rsp
    &[0xC9],                            // leave
    &[0x48, 0x8D, 0x64, 0x24, 8],       // lea 8(%rsp), %rsp
    &[0x8F, 0x04, 0x24],                // pop (%rsp)
    &[0x65, 0x67, 0x8B, 0x04, 0x24],    // mov %gs:(%esp), %eax
    &[0xC3],                            // ret, at whatever depth
    &[0x58],                            // pop %rax, at whatever depth
    &[0x53],                            // push %rbx, not popped
    &[0xC2, 8, 0],                      // ret $8
    &[0x66, 0xC3],                      // retw
    &[0xF3, 0xC3],                      // rep ret
    &[0xFF, 0xE0],                      // jmp *%rax
    &[0xFF, 0xD0],                      // call *%rax
    &[0x41, 0xFF, 0xE3],                // jmp *%r11
    &[0x65, 0x67, 0xFF, 0x27],          // jmp *%gs:(%edi)
    &[0xFF, 0x24, 0x25, 0, 0, 0x90, 0], // jmp *0x900000
    &[0xEB, 0x01],                      // jmp +1, perhaps into an instruction
    &[0x74, 0x02],                      // je +2
    &[0xEB, 0xFE],                      // jmp to itself, which is allowed
    &[0xEB, 0xF0],                      // jmp -16
    &[0xF3, 0xA4],                      // rep movsb
    &[0xAA],                            // stosb
    &[0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E, 0x67, 0xF3, 0xAA],
    &[0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E, 0x90, 0xF3, 0xAA],
    &[0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E, 0xF3, 0xA4],
    &[0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E, 0x64, 0xAC],
    &[0xD7],                               // xlat
    &[0xFD],                               // std
    &[0x9D],                               // popf
    &[0x9C],                               // pushf
    &[0xF3, 0x48, 0x0F, 0xAE, 0xD8],       // wrgsbase %rax
    &[0xF3, 0x48, 0x0F, 0xAE, 0xC8],       // rdgsbase %rax
    &[0x8E, 0xE8],                         // mov %eax, %gs
    &[0x0F, 0xA9],                         // pop %gs
    &[0x65, 0x67, 0x0F, 0xAE, 0x10],       // ldmxcsr %gs:(%eax)
    &[0x65, 0x67, 0xC5, 0xF8, 0xAE, 0x10], // vldmxcsr %gs:(%eax)
    &[0x65, 0x67, 0xD9, 0x28],             // fldcw %gs:(%eax)
    &[0xDB, 0xE3],                         // fninit
    &[0xD9, 0xF7],                         // fincstp
    &[0x65, 0x67, 0x0F, 0xAE, 0x08],       // fxrstor
    &[0x65, 0x67, 0x0F, 0xAE, 0x28],       // xrstor
    &[0x0F, 0x05],                         // syscall
    &[0xCD, 0x80],                         // int $0x80
    &[0x0F, 0x34],                         // sysenter
    &[0x0F, 0x01, 0xEF],                   // wrpkru
    &[0x0F, 0x01, 0xD0],                   // xgetbv
    &[0x0F, 0x77],                         // emms
    &[0x0F, 0x6F, 0xC1],                   // movq %mm1, %mm0
    &[0xC5, 0xF9, 0xF7, 0xC1],             // vmaskmovdqu
    &[0x66, 0x0F, 0xF7, 0xC1],             // maskmovdqu
    &[0xC4, 0xE2, 0x71, 0x90, 0x04, 0x10], // vpgatherdd
    &[0x65, 0x67, 0x0F, 0xAB, 0x07],       // bts %eax, %gs:(%edi)
    &[0x65, 0x67, 0x48, 0x0F, 0xA3, 0x07], // bt %rax, %gs:(%edi)
    &[0x62, 0xF1, 0x7C, 0x48, 0x11, 0x07], // vmovups %zmm0, (%rdi)
    &[0x0F, 0x1A, 0x00],                   // bndldx
    &[0xC6, 0xF8, 0],                      // xabort
    &[0xC7, 0xF8, 0, 0, 0, 0],             // xbegin
    &[0x0F, 0xC7, 0xF0],                   // rdrand %eax
    &[0x0F, 0xA2],                         // cpuid
    &[0x0F, 0x00, 0xC0],                   // sldt %eax
    &[0x0F, 0x01, 0xE0],                   // smsw %eax
    &[0x0F, 0x02, 0xC0],                   // lar
    &[0xA1, 0, 0, 0, 0, 0, 0, 0, 0],       // mov moffs, %eax
    &[0x65, 0x67, 0xA3, 0, 0, 0, 0],       // mov %eax, %gs:moffs32
    &[0x66, 0xE9, 0, 0, 0, 0],             // jmpw
    &[0x66, 0xE8, 0, 0, 0, 0],             // callw
    &[0xE8, 0, 0, 0, 0],                   // call the next instruction
    &[0x8F, 0xE9, 0x78, 0xE1, 0xC0],       // XOP
];

/// A confined instruction with its operand at `reach(%r14,%r11)` instead.
fn through_r14(encoding: Encoded, reach: u32, rng: &mut Rng) -> Option<([u8; 15], usize)> {
    let (old, len, modrm) = (encoding.0, usize::from(encoding.1), usize::from(encoding.2));
    let wide = match old[modrm] >> 6 {
        0 => usize::from(old[modrm] & 7 == 4 && old[modrm + 1] & 7 == 5) * 4,
        1 => 1,
        _ => 4,
    };
    let immediate = &old[modrm + 1 + usize::from(old[modrm] & 7 == 4) + wide..len];
    // 65 and 67 stand in front of what comes before the opcode.
    let legacy = old
        .iter()
        .take_while(|b| matches!(b, 0x65..=0x67 | 0xF0 | 0xF2 | 0xF3))
        .count();
    let mut new: Vec<u8> = old[..legacy]
        .iter()
        .copied()
        .filter(|b| !matches!(b, 0x65 | 0x67))
        .collect();
    match old[legacy] {
        0xC5 => {
            new.extend([0xC4, old[legacy + 1] & 0x80 | 1, old[legacy + 1] & 0x7F]);
            new.extend(&old[legacy + 2..modrm]);
        }
        0xC4 => {
            new.extend([0xC4, old[legacy + 1] & !0x60]);
            new.extend(&old[legacy + 2..modrm]);
        }
        rex @ 0x40..=0x4F => {
            new.push(rex | 3);
            new.extend(&old[legacy + 1..modrm]);
        }
        _ => {
            new.push(0x43);
            new.extend(&old[legacy..modrm]);
        }
    }
    let mode: u8 = match reach {
        0 if rng.one_in(2) => 0,
        0..0x80 if rng.one_in(2) => 1,
        _ => 2,
    };
    new.extend([old[modrm] & 0x38 | mode << 6 | 4, 0x1E]);
    new.extend(&reach.to_le_bytes()[..[0, 1, 4][usize::from(mode)]]);
    new.extend(immediate);
    let mut bytes = [0; 15];
    bytes.get_mut(..new.len())?.copy_from_slice(&new);
    // Some had a byte register without REX, which is another one with it.
    let good = decode(&bytes).is_ok_and(|i| i.memory == Memory::Held && usize::from(i.len) == new.len());
    let spoils = decode(&bytes).is_ok_and(|i| i.written.contains(14) || i.written.contains(15));
    (good && !spoils).then_some((bytes, new.len()))
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

    fn function(&mut self, number: usize) -> usize {
        while !self.here().is_multiple_of(8) {
            self.put(&[0xCC]);
        }
        let start = self.here();
        self.put(&identifier::marker(identifier::FUNCTION));
        self.depth = 0;
        self.function = number;
        if number == 0 {
            for _ in 0..self.rng.below(6) {
                self.constant();
            }
        }
        let statements = 1 + self.rng.below(24);
        for _ in 0..statements {
            self.statement(number);
        }
        if std::mem::take(&mut self.open_end) {
            self.put(&[0x56]);
            return start;
        }
        while self.depth > 0 {
            self.pop();
        }
        match self.rng.below(40) {
            0 => self.put(&[0x0F, 0x0B]),
            1 => self.put(&[0xCC]),
            2..=4 if number + 1 < self.functions => {
                self.put(&[0xE9, 0, 0, 0, 0]);
                let next = number + 1;
                self.calls.push((self.here() - 4, next));
            }
            5 if number + 1 < self.functions => self.indirect(false, Some(number + 1)),
            _ => self.put(&[0xC3]),
        }
        start
    }

    /// `movabs` of something interesting; sometimes an address of the window.
    fn constant(&mut self) {
        let register = self.register();
        let value = match self.rng.below(6) {
            0 => self.rng.bits(),
            1 => self.rng.bits() & 0xFF,
            2 => u64::MAX - (self.rng.bits() & 0x3F),
            3 => {
                // lea disp32(%r14), register
                let to = window::IMAGES + DATA + self.rng.below(REACH) as u32;
                self.put(&[0x49 | (register & 8) >> 1, 0x8D, 0x86 | (register & 7) << 3]);
                self.put(&to.to_le_bytes());
                return;
            }
            _ => self.rng.bits() & 0xFFFF_FFFF,
        };
        self.put(&[0x48 | register >> 3, 0xB8 | register & 7]);
        self.put(&value.to_le_bytes());
    }

    fn pop(&mut self) {
        self.depth -= 1;
        if self.rng.one_in(12) {
            // pop %gs:disp32
            self.put(&[0x65, 0x67, 0x8F, 0x04, 0x25]);
            let to = self.data();
            self.put(&to.to_le_bytes());
            return;
        }
        let register = self.register();
        if register >= 8 {
            self.put(&[0x41]);
        }
        self.put(&[0x58 | register & 7]);
    }

    /// Offset in the window of a place in the data segment.
    fn data(&mut self) -> u32 {
        window::IMAGES
            + DATA
            + 64
            + (self.rng.below(REACH - 128) as u32 & !63)
            + if self.rng.one_in(60) {
                self.rng.pick(&[8, 1, 60])
            } else {
                0
            }
    }

    fn statement(&mut self, number: usize) {
        if self.hostility != 0 && self.rng.one_in(self.hostility) {
            self.out.hostile = true;
            match self.rng.below(8) {
                0 | 1 => return self.trick(number),
                2 => return self.broken_line(number),
                _ => {}
            }
            let piece = self.rng.pick(FORBIDDEN);
            self.put(piece);
            return;
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

    /// What the rules forbid about control.
    fn trick(&mut self, number: usize) {
        match self.rng.below(7) {
            // A tail call with something pushed.
            0 if number + 1 < self.functions => {
                self.put(&[0x56, 0xE9, 0, 0, 0, 0]);
                self.calls.push((self.here() - 4, number + 1));
            }
            // mov %rsi, %r11, and past the compare.
            1 => {
                self.align_check(5);
                self.put(&[0x49, 0x89, 0xF3, 0xEB, (sequence::ID_OFFSET + 4) as u8]);
                self.check(identifier::FUNCTION, sequence::JMP);
            }
            // A marker in a constant, with one word pushed in front of what follows it.
            2 => {
                self.put(&[0x56]);
                let place = self.lea();
                self.check(identifier::FUNCTION, sequence::CALL);
                self.align(8, 6);
                self.put(&[0x49, 0xBB]);
                self.link(place);
                self.put(&identifier::marker(identifier::FUNCTION));
                self.put(&[0x58, 0xC3]);
            }
            // A call of a label, with one word pushed in front of what follows it.
            3 => {
                self.labels = self.labels.wrapping_add(1);
                let Some(id) = identifier::label(self.labels) else {
                    return;
                };
                self.put(&[0x56]);
                let place = self.lea();
                self.check(id, sequence::CALL);
                self.align(8, 0);
                self.link(place);
                self.put(&identifier::marker(id));
                self.put(&[0x58, 0xC3]);
            }
            // A jump to another function's label, which there may be one of here as well.
            4 | 5 => {
                let earlier = self.markers.iter().rev().find(|m| m.2 != number).copied();
                let Some((id, at, _)) = earlier else { return };
                self.put(&[0x56]);
                let place = self.lea();
                let distance = at as i64 - place as i64;
                self.out.text[place - 4..place].copy_from_slice(&(distance as i32).to_le_bytes());
                self.check(id, sequence::JMP);
                if self.rng.one_in(2) {
                    self.align(8, 0);
                    self.put(&identifier::marker(id));
                }
                self.put(&[0x5E]);
            }
            // A function that ends with something pushed, and no return.
            _ => self.open_end = true,
        }
    }

    /// `lea place(%rip), %r11`; [`Self::link`] says where it leads.
    fn lea(&mut self) -> usize {
        self.put(&[0x4C, 0x8D, 0x1D, 0, 0, 0, 0]);
        self.here()
    }

    fn link(&mut self, place: usize) {
        let distance = (self.here() - place) as u32;
        self.out.text[place - 4..place].copy_from_slice(&distance.to_le_bytes());
    }

    /// So that the checked sequence needs no filler, `before` bytes from here.
    fn align_check(&mut self, before: usize) {
        while (self.here() + before + sequence::ID_OFFSET) % 8 == 4 {
            self.put(&[0x90]);
        }
    }

    /// `setjmp` on one of a few buffers, or `longjmp` to it: every other time that it comes by.
    fn jump_stub(&mut self) {
        let buffer = window::IMAGES + DATA + 0x1_9000 + 16 * self.rng.below(3) as u32;
        if self.rng.one_in(2) {
            self.put(&[0xBF]);
            self.put(&buffer.to_le_bytes());
            return self.call_stub(window::stub::SETJMP);
        }
        // incb %gs:counter; testb $1, %gs:counter; je past the call
        let counter = window::IMAGES + DATA + 0x1_9100;
        self.put(&[0x65, 0x67, 0xFE, 0x04, 0x25]);
        self.put(&counter.to_le_bytes());
        self.put(&[0x65, 0x67, 0xF6, 0x04, 0x25]);
        self.put(&counter.to_le_bytes());
        self.put(&[1, 0x0F, 0x84, 0, 0, 0, 0]);
        let place = self.here();
        self.put(&[0xBF]);
        self.put(&buffer.to_le_bytes());
        self.call_stub(window::stub::LONGJMP);
        self.link(place);
    }

    /// A system call with random arguments: numbers, and places in the data.
    fn system_call(&mut self) {
        let number = match self.rng.below(4) {
            0 => self.rng.below(460) as u32,
            _ => self.rng.pick(&[
                0u32, 1, 2, 3, 4, 8, 9, 10, 11, 12, 16, 19, 20, 22, 28, 32, 72, 77, 87, 202, 228, 257, 262,
                318,
            ]),
        };
        // mov to rdi, rsi, rdx, r10, r8, r9
        for load in [
            &[0xBF][..],
            &[0xBE],
            &[0xBA],
            &[0x41, 0xBA],
            &[0x41, 0xB8],
            &[0x41, 0xB9],
        ] {
            let value = match self.rng.below(4) {
                0 => self.rng.below(16) as u32,
                1 => self.rng.bits() as u32,
                2 => 1 << self.rng.below(16),
                _ => self.data(),
            };
            self.put(load);
            self.put(&value.to_le_bytes());
        }
        self.put(&[0xB8]);
        self.put(&number.to_le_bytes());
        self.call_stub(window::stub::SYSCALL);
    }

    fn call_stub(&mut self, number: u32) {
        self.put(&[0x41, 0xBB]);
        let to = window::STUBS + number * window::STUB_SIZE;
        self.put(&to.to_le_bytes());
        self.check(identifier::FUNCTION, sequence::CALL);
    }

    /// A form of the pool whose instruction is fit: its number and one encoding.
    fn pick(&mut self, fit: impl Fn(&Instruction) -> bool) -> Option<(usize, Encoded, Instruction)> {
        for _ in 0..16 {
            let form = self.rng.below(self.pool.forms.len() as u64) as usize;
            let encoding = self.rng.pick(&self.pool.forms[form]);
            if let Some(i) = decode(&encoding.0).ok().filter(&fit) {
                return Some((form, encoding, i));
            }
        }
        None
    }

    /// Any accepted instruction; most operands are moved to memory that is there.
    fn instruction(&mut self) {
        self.fitting(|_| true);
    }

    /// Any accepted instruction that is fit.
    fn fitting(&mut self, fit: impl Fn(&Instruction) -> bool) {
        let Some((form, (mut bytes, mut len, modrm), i)) = self.pick(fit) else {
            return;
        };
        match i.memory {
            Memory::Rip => {
                let to = i64::from(DATA) + 64 + (self.rng.below(REACH - 128) & !15) as i64;
                let next = i64::from(TEXT) + self.here() as i64 + i64::from(len);
                let at = usize::from(modrm) + 1;
                bytes[at..at + 4].copy_from_slice(&((to - next) as i32).to_le_bytes());
            }
            Memory::Confined if !self.rng.one_in(300) => {
                // (%no base, %no index) and a displacement, with the immediate behind it.
                let at = usize::from(modrm);
                let old = bytes;
                let displacement = match old[at] >> 6 {
                    0 if old[at] & 7 == 4 && old[at + 1] & 7 == 5 => 4,
                    0 => 0,
                    1 => 1,
                    _ => 4,
                };
                let tail = at + 1 + usize::from(old[at] & 7 == 4) + displacement;
                let immediate = usize::from(len) - tail;
                if at + 6 + immediate > 15 {
                    return;
                }
                bytes[at] = old[at] & 0x38 | 4;
                bytes[at + 1] = 0x25;
                let to = self.data();
                bytes[at + 2..at + 6].copy_from_slice(&to.to_le_bytes());
                bytes[at + 6..at + 6 + immediate].copy_from_slice(&old[tail..tail + immediate]);
                len = (at + 6 + immediate) as u8;
                // Bits that would extend base or index extend nothing now.
                let first = bytes
                    .iter()
                    .position(|b| !matches!(b, 0x65..=0x67 | 0xF0 | 0xF2 | 0xF3));
                match first.map(|i| (i, bytes[i])) {
                    Some((i, 0x40..=0x4F)) => bytes[i] &= !3,
                    Some((i, 0xC4)) => bytes[i + 1] |= 0x60,
                    _ => {}
                }
                if !decode(&bytes).is_ok_and(|new| new.len == len) {
                    return;
                }
            }
            _ => {}
        }
        self.out.forms.push(form as u32);
        self.put(&bytes[..usize::from(len)]);
    }

    /// Makes `r11` hold a place in the data, so that operands with displacement `reach` are there.
    fn hold(&mut self, reach: u32) {
        let to = self.data() - reach;
        match self.rng.below(6) {
            0 => {
                self.put(&[0x44, 0x8D, 0x1C, 0x25]); // leal to, %r11d
                self.put(&to.to_le_bytes());
            }
            1 => {
                self.put(&[0x67, 0x44, 0x8D, 0x1C, 0x25]);
                self.put(&to.to_le_bytes());
            }
            2 => {
                // Whatever a register holds.
                let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7]);
                self.put(&[0x41, 0x89, 0xC3 | register << 3]);
            }
            3 => {
                self.put(&[0x41, 0xBB]); // movl $to, %r11d; movl %r11d, %r11d
                self.put(&to.to_le_bytes());
                self.put(&[0x45, 0x8B, 0xDB]);
            }
            4 => {
                // An address as the host has it: leaq to(%r14), %rax; movl %eax, %r11d
                self.put(&[0x49, 0x8D, 0x86]);
                self.put(&to.to_le_bytes());
                self.put(&[0x41, 0x89, 0xC3]);
            }
            _ => {
                self.put(&[0xB8]); // movl $to, %eax; movl %eax, %r11d
                self.put(&to.to_le_bytes());
                self.put(&[0x44, 0x8B, 0xD8]);
            }
        }
    }

    /// A straight line of code in which `r11` holds a place and operands rely on it.
    fn held(&mut self) {
        let limit = self.rng.pick(&[1, 0x80, 0x100, window::HELD_REACH as u64]);
        let reach = self.rng.below(limit) as u32;
        self.hold(reach);
        let mut out = Vec::new();
        for _ in 0..=self.rng.below(3) {
            match self.rng.below(8) {
                0 | 1 => self.fitting(|i| !i.written.contains(11)),
                2 => {
                    // A conditional jump to behind the line.
                    let condition = self.rng.below(16) as u8;
                    self.put(&[0x0F, 0x80 | condition, 0, 0, 0, 0]);
                    out.push(self.here());
                }
                3 => {
                    self.put(&[0x50]);
                    self.put(&[0x59]);
                }
                _ => {}
            }
            let Some((form, encoding, i)) = self.pick(|i| i.memory == Memory::Confined) else {
                break;
            };
            let Some((bytes, len)) = through_r14(encoding, reach, self.rng) else {
                continue;
            };
            self.out.forms.push(form as u32);
            self.out.through_r14 += 1;
            self.put(&bytes[..len]);
            if i.written.contains(11) {
                break;
            }
        }
        for place in out {
            self.link(place);
        }
    }

    /// A line of code in which `r11` does not hold what an operand relies on: a distance from the window to what was in `rsi`, which
    /// may be the host's.
    fn broken_line(&mut self, number: usize) {
        let stores = self.rng.one_in(2);
        // movq %rsi, %r11; subq %r14, %r11
        let far: &[u8] = &[0x49, 0x89, 0xF3, 0x4D, 0x29, 0xF3];
        let relies: &[u8] = if stores {
            &[0x4B, 0x89, 0x04, 0x1E]
        } else {
            &[0x4B, 0x8B, 0x04, 0x1E]
        };
        let hold: &[u8] = &[0x45, 0x89, 0xDB]; // movl %r11d, %r11d
        match self.rng.below(8) {
            0 => self.put(far),
            // Another write of all or of a part.
            1 => {
                self.put(hold);
                self.put(far);
            }
            2 => {
                let part: &[u8] = self.rng.pick(&[
                    &[0x41, 0xB3, 8][..],            // mov $8, %r11b
                    &[0x41, 0x0F, 0x94, 0xC3],       // sete %r11b
                    &[0x66, 0x41, 0x89, 0xF3],       // movw %si, %r11w
                    &[0x49, 0xC1, 0xE3, 12],         // shlq $12, %r11
                    &[0x49, 0x87, 0xF3],             // xchgq %rsi, %r11
                    &[0x49, 0x0F, 0xBA, 0xEB, 40],   // btsq $40, %r11
                    &[0x49, 0x83, 0xC3, 0xF8],       // addq $-8, %r11
                    &[0x4C, 0x0F, 0x45, 0xDE],       // cmovneq %rsi, %r11
                    &[0xC4, 0x62, 0xC8, 0xF2, 0xDE], // andnq %rsi, %rsi, %r11
                ]);
                self.put(hold);
                self.put(part);
            }
            // A move that leaves more.
            3 => {
                self.put(far);
                let wide: &[u8] = self.rng.pick(&[
                    &[0x4D, 0x89, 0xDB][..],   // movq %r11, %r11
                    &[0x4D, 0x8D, 0x1B],       // leaq (%r11), %r11
                    &[0x66, 0x45, 0x89, 0xDB], // movw %r11w, %r11w
                    &[0x66, 0x45, 0x8D, 0x1B], // leaw (%r11), %r11w
                ]);
                self.put(wide);
            }
            // Into the middle.
            4 => {
                self.put(far);
                self.put(&[0xEB, hold.len() as u8]);
                self.put(hold);
            }
            // A call, which may leave anything there.
            5 if number + 1 < self.functions => {
                self.put(hold);
                self.put(&[0xE8, 0, 0, 0, 0]);
                self.calls.push((self.here() - 4, number + 1));
            }
            // A label, and with it the address of the label in r11.
            6 => {
                self.labels = self.labels.wrapping_add(1);
                let Some(id) = identifier::label(self.labels) else {
                    return;
                };
                let place = self.lea();
                self.check(id, sequence::JMP);
                self.put(hold);
                self.align(8, 0);
                self.link(place);
                self.put(&identifier::marker(id));
            }
            // Beyond the reach, or with a scale.
            _ => {
                self.put(&[0x41, 0xBB]);
                let start = self.rng.pick(&[0u32, 0xFFFF_FFF8, 0x8000_0000]);
                self.put(&start.to_le_bytes());
                self.put(hold);
                let opcode = if stores { 0x89 } else { 0x8B };
                let (sib, reach) =
                    self.rng
                        .pick(&[(0x1E, -8), (0x1E, 0x2_0000), (0xDE, 0), (0x1E, i32::MIN)]);
                self.put(&[0x4B, opcode, 0x84, sib]);
                return self.put(&i32::to_le_bytes(reach));
            }
        }
        self.put(relies);
    }

    /// A conditional jump over a few statements.
    fn branch(&mut self, number: usize) {
        if self.nesting > 2 {
            return;
        }
        self.nesting += 1;
        let condition = self.rng.below(16) as u8;
        self.put(&[0x0F, 0x80 | condition, 0, 0, 0, 0]);
        let place = self.here();
        let depth = self.depth;
        self.block(number, depth);
        let distance = (self.here() - place) as u32;
        self.out.text[place - 4..place].copy_from_slice(&distance.to_le_bytes());
        self.nesting -= 1;
    }

    /// A few statements that leave the depth as it was.
    fn block(&mut self, number: usize, depth: u32) {
        for _ in 0..=self.rng.below(5) {
            if self.depth > depth || !self.rng.one_in(8) {
                self.statement(number);
            }
            if self.depth < depth {
                self.put(&[0x53]);
                self.depth += 1;
            }
        }
        while self.depth > depth {
            self.pop();
        }
    }

    /// A loop that counts down in memory.
    fn repeat(&mut self, number: usize) {
        if self.nesting > 1 {
            return;
        }
        self.nesting += 1;
        let counter = window::IMAGES + DATA + 0x1_8000 + self.nesting * 8;
        self.put(&[0x65, 0x67, 0xC7, 0x04, 0x25]);
        self.put(&counter.to_le_bytes());
        let turns = 1 + self.rng.below(6) as u32;
        self.put(&turns.to_le_bytes());
        let top = self.here();
        let depth = self.depth;
        self.block(number, depth);
        self.put(&[0x65, 0x67, 0x83, 0x2C, 0x25]);
        self.put(&counter.to_le_bytes());
        self.put(&[1, 0x0F, 0x8F]);
        let distance = top as i64 - (self.here() as i64 + 4);
        self.put(&(distance as i32).to_le_bytes());
        self.nesting -= 1;
    }

    /// The checked sequence, behind something that fills `r11`.
    fn check(&mut self, id: u32, last: [u8; 3]) {
        while (self.here() + sequence::ID_OFFSET) % 8 == 4 {
            self.put(&[0x90]);
        }
        self.put(&sequence::AND);
        self.put(&sequence::CMP);
        self.put(&id.to_le_bytes());
        self.put(&sequence::CMOV);
        self.put(&sequence::ADD);
        self.put(&last);
    }

    fn indirect(&mut self, call: bool, to: Option<usize>) {
        match to {
            Some(to) => {
                self.put(&[0x4C, 0x8D, 0x1D, 0, 0, 0, 0]); // lea to(%rip), %r11
                self.calls.push((self.here() - 4, to));
            }
            None => {
                let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7]);
                self.put(&[0x41, 0x89, 0xC3 | register << 3]); // mov %register, %r11d
            }
        }
        self.check(
            identifier::FUNCTION,
            if call { sequence::CALL } else { sequence::JMP },
        );
    }

    /// A jump to one of some labels of the same function.
    fn switch(&mut self) {
        self.labels = self.labels.wrapping_add(1);
        let Some(id) = identifier::label(self.labels) else {
            return;
        };
        self.put(&[0x4C, 0x8D, 0x1D, 0, 0, 0, 0]);
        let place = self.here();
        self.check(id, sequence::JMP);
        let labels = 1 + self.rng.below(3);
        let chosen = self.rng.below(labels);
        for n in 0..labels {
            self.align(8, 0);
            if n == chosen {
                self.link(place);
            }
            self.markers.push((id, self.here(), self.function));
            self.put(&identifier::marker(id));
            for _ in 0..self.rng.below(3) {
                self.instruction();
            }
        }
    }

    /// A jump through a table to some places of the same function, by whatever a register holds.
    fn table(&mut self) {
        let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7, 8, 9, 10, 12, 13]);
        if register >= 8 {
            self.put(&[0x41]);
        }
        let slots = 1 << self.rng.below(5);
        self.put(&[0x83, 0xE0 | register & 7, slots as u8 - 1]);
        self.put(&sequence::TABLE);
        self.put(&[0; 4]);
        let next = self.here();
        self.put(&sequence::slot(register));
        self.put(&sequence::ADD);
        self.put(&sequence::JMP);
        self.align(8, 0);
        let table = self.here() + 4;
        self.out.text[next - 4..next].copy_from_slice(&((table - next) as u32).to_le_bytes());
        for _ in 0..slots {
            self.put(&[0x0F, 0x1F, 0x84, 0x40, 0, 0, 0, 0]);
        }
        let mut places = Vec::new();
        for _ in 0..=self.rng.below(3) {
            places.push(self.here());
            for _ in 0..self.rng.below(3) {
                self.instruction();
            }
        }
        for n in 0..slots {
            let distance = (self.rng.pick(&places) - table) as u32;
            let at = table + n * sequence::SLOT_STEP;
            self.out.text[at..at + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }

    fn string(&mut self) {
        let opcode = self
            .rng
            .pick(&[0xA4u8, 0xA5, 0xA6, 0xA7, 0xAA, 0xAB, 0xAC, 0xAD, 0xAE, 0xAF]);
        for register in [6u8, 7] {
            if !self.rng.one_in(16) {
                let to = self.data();
                self.put(&[0xB8 | register]);
                self.put(&to.to_le_bytes());
            }
        }
        let count = self.rng.below(40) as u32;
        self.put(&[0xB9]);
        self.put(&count.to_le_bytes());
        let rdi: &[u8] = &[0x89, 0xFF, 0x49, 0x8D, 0x3C, 0x3E];
        let rsi: &[u8] = &[0x89, 0xF6, 0x49, 0x8D, 0x34, 0x36];
        match opcode {
            0xA4..=0xA7 => self.put(&[rdi, rsi].concat()),
            0xAC | 0xAD => self.put(rsi),
            _ => self.put(rdi),
        }
        if self.rng.one_in(2) {
            let compares = matches!(opcode, 0xA6 | 0xA7 | 0xAE | 0xAF);
            let repeat = if compares && self.rng.one_in(2) {
                0xF2
            } else {
                0xF3
            };
            self.put(&[repeat]);
        }
        if opcode & 1 == 1 && self.rng.one_in(2) {
            let prefix = self.rng.pick(&[0x48, 0x48]);
            self.put(&[prefix]);
        }
        self.put(&[opcode]);
    }

    /// A call of a gate stub, with whatever is in the registers.
    fn stub(&mut self) {
        let number = match self.rng.below(8) {
            0 if self.rng.one_in(8) => self.rng.below(u64::from(window::STUB_COUNT)) as u32,
            1..=3 => self.rng.below(7) as u32,
            _ => window::STUB_FIRST_IMPORT + self.rng.below(4) as u32,
        };
        if number == window::stub::SYSCALL && !self.rng.one_in(4) {
            // mov $number, %eax: what the runtime answers itself (mmap, mprotect, munmap, mremap, madvise, brk).
            let call = self.rng.pick(&[9u32, 10, 11, 25, 28, 12, 60, 1, 0, 231]);
            self.put(&[0xB8]);
            self.put(&call.to_le_bytes());
        }
        self.call_stub(number);
    }
}
