//! The host's side of a call into a domain: known values in everything that must survive, and a look at it afterwards.

use std::arch::global_asm;
use std::ffi::c_void;

/// What the host finds after a call.
#[repr(C, align(16))]
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    rax: u64,
    rdx: u64,
    rsp: u64,
    saved: [u64; 6],
    flags: u64,
    mxcsr: u32,
    cwd: u16,
    swd: u16,
    segments: [u16; 8],
    fs: u64,
    xmm: [[u64; 2]; 2],
    stack_ok: u64,
    environment: [u32; 8],
    expected_rsp: u64,
}

const PATTERNS: [u64; 6] = [
    0xB0B0_0000_1111_0001,
    0xB0B0_0000_2222_0002,
    0xB0B0_0000_3333_0003,
    0xB0B0_0000_4444_0004,
    0xB0B0_0000_5555_0005,
    0xB0B0_0000_6666_0006,
];

/// DF, AC, NT, IOPL, TF, ID.
const LIVE: u64 = 0x400 | 0x4_0000 | 0x4000 | 0x3000 | 0x100 | 0x20_0000;

impl State {
    /// Result registers.
    #[must_use]
    pub fn results(&self) -> [u64; 6] {
        [
            self.rax,
            self.rdx,
            self.xmm[0][0],
            self.xmm[0][1],
            self.xmm[1][0],
            self.xmm[1][1],
        ]
    }

    /// What differs between before and after a call, in words.
    #[must_use]
    pub fn compare(&self, before: &State) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.rsp != self.expected_rsp {
            wrong.push(format!("rsp {:#x}, was {:#x}", self.rsp, self.expected_rsp));
        }
        for (n, name) in ["rbx", "rbp", "r12", "r13", "r14", "r15"].iter().enumerate() {
            if self.saved[n] != PATTERNS[n] {
                wrong.push(format!("{name} {:#x}", self.saved[n]));
            }
        }
        if (self.flags ^ before.flags) & LIVE != 0 {
            wrong.push(format!("flags {:#x}, were {:#x}", self.flags, before.flags));
        }
        if (self.mxcsr ^ before.mxcsr) & !0x3F != 0 {
            wrong.push(format!("mxcsr {:#x}", self.mxcsr));
        }
        if self.cwd != before.cwd || self.swd & 0x3800 != before.swd & 0x3800 {
            wrong.push(format!("x87 control {:#x}, status {:#x}", self.cwd, self.swd));
        }
        if self.environment[2] & 0xFFFF != before.environment[2] & 0xFFFF {
            wrong.push(format!("x87 tags {:#x}", self.environment[2]));
        }
        if self.swd & 0xFF != before.swd & 0xFF {
            wrong.push(format!("x87 exceptions {:#x}", self.swd));
        }
        if self.segments != before.segments {
            wrong.push(format!("segment registers {:x?}", self.segments));
        }
        if self.fs != before.fs {
            wrong.push(format!("fs base {:#x}", self.fs));
        }
        if self.stack_ok != 1 {
            wrong.push("host stack contents".into());
        }
        wrong
    }
}

global_asm!(
    ".pushsection .text.rf_attack,\"ax\",@progbits",
    ".globl rf_attack_call",
    ".type rf_attack_call,@function",
    "rf_attack_call:",
    "push rbx; push rbp; push r12; push r13; push r14; push r15",
    "mov [rip+rf_attack_state], rdx",
    "mov r10, rdi; mov r11, rsi",
    "sub rsp, 1032",
    "mov rdi, rsp; mov ecx, 129; movabs rax, 0x5AFE57AC5AFE57AC; rep stosq",
    "mov [rdx+184], rsp",
    "movabs rbx, 0xB0B0000011110001; movabs rbp, 0xB0B0000022220002; movabs r12, 0xB0B0000033330003",
    "movabs r13, 0xB0B0000044440004; movabs r14, 0xB0B0000055550005; movabs r15, 0xB0B0000066660006",
    "mov rdi, [r11]; mov rsi, [r11+8]; mov rdx, [r11+16]; mov rcx, [r11+24]; mov r8, [r11+32]; mov r9, [r11+40]",
    // What is not known to carry no argument is passed as it is.
    "xorps xmm0, xmm0; xorps xmm1, xmm1; xorps xmm2, xmm2; xorps xmm3, xmm3",
    "xorps xmm4, xmm4; xorps xmm5, xmm5; xorps xmm6, xmm6; xorps xmm7, xmm7",
    "xor eax, eax",
    "call r10",
    "mov rcx, [rip+rf_attack_state]",
    "mov [rcx], rax; mov [rcx+8], rdx; mov [rcx+16], rsp",
    "mov rsp, [rcx+184]",
    "mov [rcx+24], rbx; mov [rcx+32], rbp; mov [rcx+40], r12; mov [rcx+48], r13; mov [rcx+56], r14; mov [rcx+64], r15",
    "pushfq; pop [rcx+72]; cld",
    "stmxcsr [rcx+80]; fnstcw [rcx+84]; fnstsw [rcx+86]",
    "mov [rcx+88], ds; mov [rcx+90], es; mov [rcx+92], fs; mov [rcx+94], gs; mov [rcx+96], ss",
    "rdfsbase rax; mov [rcx+104], rax",
    "movups [rcx+112], xmm0; movups [rcx+128], xmm1",
    "fnstenv [rcx+152]; fninit; fldcw [rcx+84]",
    "mov rdi, rsp; mov rdx, rcx; mov ecx, 129; movabs rax, 0x5AFE57AC5AFE57AC; repe scasq; sete al",
    "movzx eax, al; mov [rdx+144], rax",
    "add rsp, 1032",
    "pop r15; pop r14; pop r13; pop r12; pop rbp; pop rbx",
    "ret",
    ".size rf_attack_call,.-rf_attack_call",
    ".popsection",
    ".pushsection .bss.rf_attack,\"aw\",@nobits",
    ".balign 8",
    "rf_attack_state: .quad 0",
    ".popsection",
);

unsafe extern "C" {
    fn rf_attack_call(thunk: *const c_void, arguments: *const [u64; 6], state: *mut State);
}

/// Calls `thunk` with known values in everything that must survive. Not for several threads at once.
///
/// # Safety
///
/// `thunk` must be a function of the C calling convention that takes at most six integers.
#[must_use]
pub unsafe fn call(thunk: *const c_void, arguments: &[u64; 6]) -> State {
    let mut state = State::default();
    // SAFETY: as the caller promises; the state is large enough for what the assembly stores.
    unsafe { rf_attack_call(thunk, arguments, &raw mut state) };
    state
}
