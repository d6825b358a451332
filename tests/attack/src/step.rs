//! Every accepted encoding, one instruction at a time, on the processor itself.
//!
//! The decoder under attack says how long an instruction is, what it writes, and where its memory is. Here the processor
//! is asked: each encoding is executed under the trap flag with random registers, and what changed is compared with what
//! the decoder claims. It all happens inside a signal handler, which turns the frame of one signal
//! into the start of the next instruction: one signal for each.

use crate::encodings::{self, Encoding};
use crate::rng::Rng;
use libc::{c_int, c_void, siginfo_t, ucontext_t};
use ringfence_verify::{Flow, Instruction, Memory, decode};
use std::arch::asm;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Which encodings, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Where random values start from.
    pub seed: u64,
    /// Every how many encodings one is taken.
    pub stride: u64,
    /// When to stop at the latest.
    pub limit: Duration,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Encodings given to the decoder.
    pub tried: u64,
    /// Encodings it accepted.
    pub accepted: u64,
    /// Of these: with an operand through `r14`.
    pub through_r14: u64,
    /// Of the accepted: executed to the end.
    pub completed: u64,
    /// Ended by a fault inside the window.
    pub faulted: u64,
    /// That the processor does not have.
    pub unknown: u64,
    /// Different (map, opcode, ModRM.reg, register or memory) among the accepted.
    pub forms: usize,
    /// Where processor and decoder disagree; must be empty.
    pub violations: Vec<String>,
    /// Accepted encodings that the processor refuses, by opcode bytes: harmless, but worth a look.
    pub unknown_forms: BTreeMap<String, u64>,
}

const WINDOW: u64 = 0x6000_0000_0000;
const SPAN: u64 = 1 << 32;
const TEXT: u64 = WINDOW + 0x20_0000;
const DATA: u64 = WINDOW + 0x4000_0000;
const DATA_LEN: u64 = 0x4000;
const STACK: u64 = 0x6100_0000_0000;
const STACK_LEN: usize = 0x1000;
const PAGE: u64 = 4096;
/// Where the instruction stands in the text page.
const AT: u64 = 0x800;
const LIVE_FLAGS: u64 = 0xC_D5 | 0x1_0000; // CF PF AF ZF SF OF, RF
const DF_AC_AND_KIN: u64 = !LIVE_FLAGS & !0x8_00;

struct Machine {
    options: Options,
    rng: Rng,
    next: u64,
    end: Instant,
    encoding: Encoding,
    decoded: Option<Instruction>,
    before: [i64; 23],
    vectors: [u32; 64],
    stack: [u64; 32],
    effective: Option<u64>,
    fs: u64,
    text: *mut u8,
    saved: Option<Saved>,
    forms: Vec<u64>,
    outcome: Outcome,
}

struct Saved {
    registers: [i64; 23],
    mask: libc::sigset_t,
    cwd: u16,
    mxcsr: u32,
}

static mut MACHINE: *mut Machine = std::ptr::null_mut();

/// Steps through the encodings. Call it in a process of its own: it takes over signal handlers and `gs`.
///
/// # Panics
///
/// If the system refuses the mappings or handlers it needs.
#[must_use]
pub fn run(options: Options) -> Outcome {
    let mut machine = Box::new(Machine {
        options,
        rng: Rng::new(options.seed),
        next: 0,
        end: Instant::now() + options.limit,
        encoding: Encoding {
            bytes: [0; 32],
            modrm: 0,
            x: 0,
            b: 0,
        },
        decoded: None,
        before: [0; 23],
        vectors: [0; 64],
        stack: [0; 32],
        effective: None,
        fs: 0,
        text: std::ptr::null_mut(),
        saved: None,
        forms: vec![0; 1 << 14],
        outcome: Outcome::default(),
    });
    machine.next = machine.rng.below(options.stride);
    // SAFETY: the mappings are at addresses that nothing else uses (checked by MAP_FIXED_NOREPLACE); `gs` belongs to
    // nobody in a Rust program; the handlers stay inside this function's call.
    unsafe {
        let map = |at: u64, len: u64, prot: c_int, flags: c_int, fd: c_int| {
            let flags = flags | libc::MAP_FIXED;
            let p = libc::mmap(at as *mut c_void, len as usize, prot, flags, fd, 0);
            assert!(
                p as u64 == at,
                "mmap {at:#x}: {}",
                std::io::Error::last_os_error()
            );
        };
        let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        map(WINDOW, SPAN + PAGE, libc::PROT_NONE, private, -1);
        map(DATA, DATA_LEN, rw, private, -1);
        map(STACK - PAGE, 3 * PAGE, libc::PROT_NONE, private, -1);
        map(STACK, STACK_LEN as u64, rw, private, -1);
        let fd = libc::memfd_create(c"attack".as_ptr(), 0);
        assert!(fd >= 0 && libc::ftruncate(fd, PAGE as i64) == 0);
        map(
            TEXT,
            PAGE,
            libc::PROT_READ | libc::PROT_EXEC,
            libc::MAP_SHARED,
            fd,
        );
        let alias = libc::mmap(std::ptr::null_mut(), PAGE as usize, rw, libc::MAP_SHARED, fd, 0);
        assert!(alias != libc::MAP_FAILED);
        machine.text = alias.cast();
        std::ptr::write_bytes(machine.text, 0xCC, PAGE as usize);

        let alternate = vec![0u8; 256 << 10].leak();
        let stack = libc::stack_t {
            ss_sp: alternate.as_mut_ptr().cast(),
            ss_flags: 0,
            ss_size: alternate.len(),
        };
        assert!(libc::sigaltstack(&stack, std::ptr::null_mut()) == 0);
        for signal in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGTRAP,
        ] {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            assert!(libc::sigaction(signal, &action, std::ptr::null_mut()) == 0);
        }
        asm!("rdfsbase {}", out(reg) machine.fs);
        asm!("wrgsbase {}", in(reg) WINDOW);
        MACHINE = &raw mut *machine;
        // The handler takes over here and comes back once all is done.
        asm!("ud2", clobber_abi("C"));
        MACHINE = std::ptr::null_mut();
        asm!("wrgsbase {}", in(reg) 0u64);
    }
    machine.outcome.forms = machine.forms.iter().map(|w| w.count_ones() as usize).sum();
    machine.outcome
}

extern "C" fn handler(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel passes a valid frame; MACHINE is set while handlers of ours can run.
    unsafe {
        let context = &mut *context.cast::<ucontext_t>();
        let machine = &mut *MACHINE;
        let registers = &mut context.uc_mcontext.gregs;
        if machine.saved.is_none() {
            machine.saved = Some(Saved {
                registers: *registers,
                mask: context.uc_sigmask,
                cwd: (*context.uc_mcontext.fpregs).cwd,
                mxcsr: (*context.uc_mcontext.fpregs).mxcsr,
            });
        } else {
            machine.check(signal, &*info, context);
        }
        if machine.advance() {
            machine.prepare(context);
        } else if let Some(saved) = &machine.saved {
            context.uc_mcontext.gregs = saved.registers;
            context.uc_mcontext.gregs[libc::REG_RIP as usize] += 2; // past ud2
            context.uc_sigmask = saved.mask;
            (*context.uc_mcontext.fpregs).cwd = saved.cwd;
            (*context.uc_mcontext.fpregs).mxcsr = saved.mxcsr;
        }
    }
}

/// ModRM's number of a register in the order of `gregs`.
const GREGS: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

impl Machine {
    /// Finds the next accepted encoding.
    fn advance(&mut self) -> bool {
        loop {
            if self.next >= encodings::TOTAL || self.outcome.violations.len() >= 40 {
                return false;
            }
            if self.outcome.tried.is_multiple_of(4096) && Instant::now() > self.end {
                return false;
            }
            let n = self.next;
            self.next += self.options.stride;
            self.outcome.tried += 1;
            let Some(mut e) = encodings::encoding(n, &mut self.rng) else {
                continue;
            };
            // By chance alone there would hardly be an operand through r14.
            let sib = e.modrm + 1;
            if e.bytes[e.modrm] & 7 == 4 && (e.x, e.b) == (8, 8) && self.rng.one_in(2) {
                e.bytes[sib] = 0x1E;
                e.bytes[sib + 2] &= 0x7F;
                e.bytes[sib + 3..sib + 5].fill(0);
            }
            let Ok(i) = decode(&e.bytes) else { continue };
            self.outcome.accepted += 1;
            self.outcome.through_r14 += u64::from(i.memory == Memory::Held);
            let (opcode, modrm) = (e.bytes[e.modrm - 1], e.bytes[e.modrm]);
            let map = (n >> 16) % 12;
            let form = map << 12
                | u64::from(opcode) << 4
                | u64::from(modrm >> 3 & 7) << 1
                | u64::from(modrm >= 0xC0);
            self.forms[(form / 64) as usize % (1 << 14)] |= 1 << (form % 64);
            self.encoding = e;
            self.decoded = Some(i);
            return true;
        }
    }

    /// Makes the frame start the instruction with random registers.
    unsafe fn prepare(&mut self, context: &mut ucontext_t) {
        let i = self.decoded.expect("there is an instruction");
        // Behind the instruction stands int3; its bytes end where the decoder says.
        let len = usize::from(i.len);
        // SAFETY: our own page.
        unsafe {
            let at = self.text.add(AT as usize);
            std::ptr::copy_nonoverlapping(self.encoding.bytes.as_ptr(), at, len);
            std::ptr::write_bytes(at.add(len), 0xCC, 16);
        }
        let mut values: [u64; 16] = std::array::from_fn(|_| {
            // Addresses that are canonical and never mapped, also as the sum of a base and eight times an index.
            let bits = self.rng.bits();
            match bits >> 61 {
                0 => bits & 0xFF,
                _ => bits & ((1 << 42) - 1),
            }
        });
        let text = self.encoding.bytes;
        let string = i.flow == Flow::String;
        if string {
            for register in [6, 7] {
                values[register] = DATA + DATA_LEN / 2 + (values[register] & 0xFF8);
            }
            values[1] &= 3;
        }
        values[4] = STACK + STACK_LEN as u64 / 2;
        self.effective = self.effective_address(&i, &mut values);
        let registers = &mut context.uc_mcontext.gregs;
        for (value, place) in values.iter().zip(GREGS) {
            registers[place as usize] = *value as i64;
        }
        registers[libc::REG_RIP as usize] = (TEXT + AT) as i64;
        let flags = self.rng.bits() & 0x8D5;
        registers[libc::REG_EFL as usize] = (flags | 0x102 | 0x200) as i64;
        for slot in &mut self.stack {
            *slot = self.rng.bits() & ((1 << 42) - 1);
        }
        // SAFETY: our own stack page, and the frame's floating-point part.
        unsafe {
            let middle = (STACK + STACK_LEN as u64 / 2 - 128) as *mut u64;
            std::ptr::copy_nonoverlapping(self.stack.as_ptr(), middle, 32);
            let fp = &mut *context.uc_mcontext.fpregs;
            fp.cwd = 0x037F;
            fp.swd = 0;
            fp.ftw = 0;
            fp.mxcsr = 0x1F80;
            if self.rng.one_in(8) {
                for word in &mut self.vectors {
                    *word = self.rng.bits() as u32;
                }
            }
            for (n, word) in self.vectors.iter().enumerate() {
                fp._xmm[n / 4].element[n % 4] = *word;
            }
        }
        self.before = context.uc_mcontext.gregs;
        let _ = text;
    }

    /// Where the memory operand is. Mostly moves the base so that the operand ends where its page ends: if
    /// the access is longer than the decoder thinks, it faults.
    fn effective_address(&mut self, i: &Instruction, values: &mut [u64; 16]) -> Option<u64> {
        let e = &self.encoding;
        match i.memory {
            Memory::None => return None,
            Memory::Rip => {
                let end = TEXT + AT + u64::from(i.len);
                return Some(end.wrapping_add_signed(i64::from(i.displacement)));
            }
            Memory::Held => {
                values[14] = WINDOW;
                values[11] &= 0xFFFF_FFFF;
            }
            Memory::Confined | Memory::View | Memory::Free => {}
        }
        let modrm = e.bytes[e.modrm];
        let mut at = e.modrm + 1;
        let mut base = Some(usize::from(modrm & 7 | e.b));
        let mut index = None;
        let mut wide = modrm >> 6 == 2;
        if modrm & 7 == 4 {
            let sib = e.bytes[at];
            at += 1;
            base = Some(usize::from(sib & 7 | e.b));
            let number = usize::from(sib >> 3 & 7 | e.x);
            if number != 4 {
                index = Some((number, sib >> 6));
            }
            if sib & 7 == 5 && modrm >> 6 == 0 {
                base = None;
                wide = true;
            }
        }
        let displacement = if wide {
            i64::from(i32::from_le_bytes([
                e.bytes[at],
                e.bytes[at + 1],
                e.bytes[at + 2],
                e.bytes[at + 3],
            ]))
        } else if modrm >> 6 == 1 {
            i64::from(e.bytes[at] as i8)
        } else {
            0
        };
        let scaled = |values: &[u64; 16]| index.map_or(0, |(n, scale)| values[n] << scale);
        if let Some(b) = base
            && index.is_none_or(|(n, _)| n != b)
            && i.memory == Memory::Confined
            && i.flow != Flow::String
            && !self.rng.one_in(4)
        {
            let want = DATA + DATA_LEN - u64::from(i.size);
            let rest = scaled(values).wrapping_add_signed(displacement);
            let high = values[b] & !0xFFFF_FFFF;
            values[b] = high | u64::from((want as u32).wrapping_sub(rest as u32));
        }
        if i.memory == Memory::Held && !self.rng.one_in(4) {
            let want = DATA + DATA_LEN - u64::from(i.size);
            values[11] = want.wrapping_add_signed(-displacement) - WINDOW;
        }
        let sum = base
            .map_or(0, |b| values[b])
            .wrapping_add(scaled(values))
            .wrapping_add_signed(displacement);
        Some(match i.memory {
            Memory::Confined => WINDOW + (sum & 0xFFFF_FFFF),
            _ => sum,
        })
    }

    fn violation(&mut self, context: &ucontext_t, what: &str) {
        let i = self.decoded.expect("there is an instruction");
        let bytes: Vec<String> = self.encoding.bytes[..usize::from(i.len)]
            .iter()
            .map(|b| format!("{b:02x}"))
            .collect();
        let rip = context.uc_mcontext.gregs[libc::REG_RIP as usize];
        let registers: Vec<String> = GREGS
            .iter()
            .map(|r| format!("{:x}", self.before[*r as usize]))
            .collect();
        let cr2 = context.uc_mcontext.gregs[libc::REG_CR2 as usize];
        self.outcome.violations.push(format!(
            "{}: {what} (rip {rip:#x}, cr2 {cr2:#x}, registers {}) {i:?}",
            bytes.join(" "),
            registers.join(" ")
        ));
    }

    /// Compares what happened with what the decoder says.
    unsafe fn check(&mut self, signal: c_int, info: &siginfo_t, context: &ucontext_t) {
        let i = self.decoded.expect("there is an instruction");
        let after = context.uc_mcontext.gregs;
        let get = |r: &[i64; 23], n: c_int| r[n as usize] as u64;
        let (rip, start) = (get(&after, libc::REG_RIP), TEXT + AT);
        let next = start + u64::from(i.len);
        // SAFETY: plain reads of the bases and of our own frame.
        let (gs, fs, fp) = unsafe {
            let (gs, fs): (u64, u64);
            asm!("rdgsbase {}", out(reg) gs);
            asm!("rdfsbase {}", out(reg) fs);
            (gs, fs, &*context.uc_mcontext.fpregs)
        };
        if gs != WINDOW || fs != self.fs {
            return self.violation(context, "segment base");
        }
        if get(&after, libc::REG_CSGSFS) != get(&self.before, libc::REG_CSGSFS) {
            return self.violation(context, "segment register");
        }
        if (get(&after, libc::REG_EFL) ^ get(&self.before, libc::REG_EFL)) & DF_AC_AND_KIN != 0 {
            return self.violation(context, "flags that outlive the call");
        }
        if fp.mxcsr & !0x3F != 0x1F80 || fp.cwd != 0x037F {
            return self.violation(context, "floating-point control");
        }
        if !i.x87 && (fp.ftw != 0 || fp.swd != 0) {
            return self.violation(context, "x87 state");
        }
        let vectors_changed = (0..64).any(|n| fp._xmm[n / 4].element[n % 4] != self.vectors[n]);
        if vectors_changed && !i.vector {
            return self.violation(context, "vector register");
        }
        // What no operand names may change only where the instruction says so by itself: rax, rcx, rdx, and for strings
        // rsi, rdi.
        let implicit = 0b111 | if i.flow == Flow::String { 0b1100_0000 } else { 0 };
        let allowed = i.written.0 | implicit;
        for (n, place) in GREGS.into_iter().enumerate() {
            let changed = after[place as usize] != self.before[place as usize];
            if n != 4 && changed && allowed >> n & 1 == 0 {
                return self.violation(context, &format!("register {n}"));
            }
        }
        let r11 = after[libc::REG_R11 as usize] as u64;
        if i.holds && signal == libc::SIGTRAP && r11 >> 32 != 0 {
            return self.violation(context, "r11 holds more than a lower half");
        }
        let pushed = (get(&after, libc::REG_RSP) as i64) - (get(&self.before, libc::REG_RSP) as i64);
        let wanted = match i.flow {
            _ if signal != libc::SIGTRAP || rip == start => 0,
            Flow::Push | Flow::Call | Flow::IndirectCall => -8,
            Flow::Pop | Flow::Return => 8,
            _ => 0,
        };
        if pushed != wanted {
            return self.violation(context, "rsp");
        }
        // SAFETY: our own stack page.
        let stack = unsafe { &*((STACK + STACK_LEN as u64 / 2 - 128) as *const [u64; 32]) };
        for (n, (new, old)) in stack.iter().zip(&self.stack).enumerate() {
            if new != old && !(n == 15 && wanted == -8) {
                return self.violation(context, "control stack");
            }
        }
        match signal {
            libc::SIGTRAP if i.flow == Flow::Trap => {
                self.outcome.completed += 1;
            }
            libc::SIGTRAP => self.check_target(context, &i, rip, start, next),
            libc::SIGILL => {
                self.outcome.unknown += 1;
                if i.flow == Flow::Trap {
                    return;
                }
                let opcode = &self.encoding.bytes[..self.encoding.modrm.min(8)];
                let key = opcode
                    .iter()
                    .map(|b| format!("{b:02x}"))
                    .collect::<Vec<_>>()
                    .join(" ");
                *self.outcome.unknown_forms.entry(key).or_default() += 1;
            }
            libc::SIGFPE => self.outcome.faulted += 1,
            libc::SIGSEGV | libc::SIGBUS => {
                self.outcome.faulted += 1;
                // SAFETY: a SEGV or BUS carries an address.
                let address = unsafe { info.si_addr() } as u64;
                // 14: page fault, which has an address. 13: general protection, for misaligned vector operands.
                if after[libc::REG_TRAPNO as usize] == 14 {
                    let Some(effective) = self.effective else {
                        if i.flow != Flow::String {
                            self.violation(context, &format!("access to {address:#x}, none expected"));
                        }
                        return;
                    };
                    if address.wrapping_sub(effective) >= u64::from(i.size.max(1)) {
                        self.violation(
                            context,
                            &format!("access to {address:#x}, expected at {effective:#x}"),
                        );
                    } else if effective.wrapping_add(u64::from(i.size)) == DATA + DATA_LEN {
                        self.violation(context, "mapped operand faults: longer than decoded?");
                    }
                } else if self.effective.is_none() && i.flow == Flow::Next {
                    self.violation(context, "general protection without memory operand");
                }
            }
            _ => self.violation(context, &format!("signal {signal}")),
        }
    }

    fn check_target(&mut self, context: &ucontext_t, i: &Instruction, rip: u64, start: u64, next: u64) {
        self.outcome.completed += 1;
        let jump = next.wrapping_add_signed(i64::from(i.displacement));
        let fine = match i.flow {
            Flow::Next | Flow::Push | Flow::Pop | Flow::Trap => rip == next,
            Flow::String => rip == next || rip == start,
            Flow::Jump | Flow::Call => rip == jump,
            Flow::Branch => rip == jump || rip == next,
            Flow::Return => rip == self.stack[16],
            Flow::IndirectJump | Flow::IndirectCall => {
                let e = &self.encoding;
                let register = usize::from(e.bytes[e.modrm] & 7 | e.b);
                rip == self.before[GREGS[register] as usize] as u64
            }
        };
        if !fine {
            self.violation(context, "control went elsewhere");
        }
    }
}
