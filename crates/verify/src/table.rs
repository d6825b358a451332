//! Every accepted opcode, one line each, in the notation of [`crate::op`]; then the opcodes that are refused with
//! a reason of their own. What stands in neither list is refused as [`Reason::NotAccepted`].
//!
//! One file, however long: a reader holds it beside the manual's opcode maps, in their order, and nothing else accepts.

use crate::op::{Form, Op, flag};
use crate::reason::Reason;
use ringfence_isa::window::feature::{ADX, AES, AVX, AVX2, BMI, F16C, FMA, MOVBE, SHA, SSE4, SSSE3};

// Pages of the opcode space: an opcode map together with the prefix that selects within it. The order of
// prefixes is that of VEX.pp: none, 66, F3, F2.
pub(crate) const ONE: u8 = 0;
pub(crate) const M0F: u8 = 1;
pub(crate) const M38: u8 = 5;
pub(crate) const M3A: u8 = 9;
/// First page of the VEX maps 1 to 3, four pages each.
pub(crate) const VEX: u8 = 13;
pub(crate) const PAGES: usize = 25;

const NP: u8 = M0F;
const P66: u8 = M0F + 1;
const PF3: u8 = M0F + 2;
const PF2: u8 = M0F + 3;
const T38: u8 = M38;
const T38_66: u8 = M38 + 1;
const T38_F3: u8 = M38 + 2;
const T38_F2: u8 = M38 + 3;
const T3A: u8 = M3A;
const T3A_66: u8 = M3A + 1;
const V1: u8 = VEX;
const V1_66: u8 = VEX + 1;
const V1_F3: u8 = VEX + 2;
const V1_F2: u8 = VEX + 3;
const V2: u8 = VEX + 4;
const V2_66: u8 = VEX + 5;
const V2_F3: u8 = VEX + 6;
const V2_F2: u8 = VEX + 7;
const V3_66: u8 = VEX + 9;
const V3_F2: u8 = VEX + 11;

/// Bytes accessed, by size code and by VEX.L or W, whichever matters. For `v`, 66 halves the first.
pub(crate) const SIZES: [[u8; 2]; 16] = [
    [0, 0],
    [1, 1],
    [2, 2],
    [4, 4],
    [8, 8],
    [16, 16],
    [10, 10],
    [4, 8],
    [4, 8],
    [8, 16],
    [16, 32],
    [8, 16],
    [4, 8],
    [2, 4],
    [8, 32],
    [0, 0],
];
/// The pages with no prefix and with 66, of either encoding.
const PACKED: &[u8] = &[NP, P66];
const VPACKED: &[u8] = &[V1, V1_66];

/// One line of the tables: opcodes `first` to `last` in steps of `step`, on each of `pages`; if `digits` is not
/// empty, only with these values of ModRM.reg.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub pages: &'static [u8],
    pub first: u8,
    pub last: u8,
    pub step: u8,
    pub digits: &'static str,
    /// For readers only.
    #[allow(dead_code)]
    pub name: &'static str,
    pub line: &'static str,
}

const fn r(pages: &'static [u8], first: u8, name: &'static str, line: &'static str) -> Row {
    Row {
        pages,
        first,
        last: first,
        step: 1,
        digits: "",
        name,
        line,
    }
}
const fn rr(pages: &'static [u8], first: u8, last: u8, name: &'static str, line: &'static str) -> Row {
    Row {
        pages,
        first,
        last,
        step: 1,
        digits: "",
        name,
        line,
    }
}
/// The same operation eight times, eight opcodes apart: add or adc sbb and sub xor, and (without the last) no cmp.
const fn alu(first: u8, name: &'static str, line: &'static str) -> Row {
    Row {
        pages: &[ONE],
        first,
        last: first + 0x30,
        step: 8,
        digits: "",
        name,
        line,
    }
}
const fn g(
    pages: &'static [u8],
    first: u8,
    digits: &'static str,
    name: &'static str,
    line: &'static str,
) -> Row {
    Row {
        pages,
        first,
        last: first,
        step: 1,
        digits,
        name,
        line,
    }
}

/// A list of lines that need the same instruction-set extensions.
pub(crate) struct Set {
    /// For readers only.
    #[allow(dead_code)]
    pub name: &'static str,
    pub features: u32,
    pub rows: &'static [Row],
}

pub(crate) const SETS: &[Set] = &[
    Set {
        name: "general",
        features: 0,
        rows: GENERAL,
    },
    Set {
        name: "x87",
        features: 0,
        rows: X87,
    },
    Set {
        name: "SSE, SSE2",
        features: 0,
        rows: SSE,
    },
    Set {
        name: "SSE3, SSSE3",
        features: SSSE3,
        rows: SSSE3_ROWS,
    },
    Set {
        name: "SSE4, POPCNT",
        features: SSE4,
        rows: SSE4_ROWS,
    },
    Set {
        name: "AES, PCLMUL",
        features: AES,
        rows: AES_ROWS,
    },
    Set {
        name: "SHA",
        features: SHA,
        rows: SHA_ROWS,
    },
    Set {
        name: "MOVBE",
        features: MOVBE,
        rows: MOVBE_ROWS,
    },
    Set {
        name: "ADX",
        features: ADX,
        rows: ADX_ROWS,
    },
    Set {
        name: "BMI, LZCNT",
        features: BMI,
        rows: BMI_ROWS,
    },
    Set {
        name: "AVX",
        features: AVX,
        rows: AVX_ROWS,
    },
    Set {
        name: "AVX2",
        features: AVX | AVX2,
        rows: AVX2_ROWS,
    },
    Set {
        name: "FMA",
        features: AVX | FMA,
        rows: FMA_ROWS,
    },
    Set {
        name: "F16C",
        features: AVX | F16C,
        rows: F16C_ROWS,
    },
    Set {
        name: "AES with VEX",
        features: AVX | AES,
        rows: VAES_ROWS,
    },
];

const GENERAL: &[Row] = &[
    alu(0x00, "add..xor", "+Eb Gb lock"),
    alu(0x01, "add..xor", "+Ev Gv lock"),
    alu(0x02, "add..xor", "+Gb Eb"),
    alu(0x03, "add..xor", "+Gv Ev"),
    alu(0x04, "add..xor", "Ib"),
    alu(0x05, "add..xor", "v Iz"),
    r(&[ONE], 0x38, "cmp", "Eb Gb"),
    r(&[ONE], 0x39, "cmp", "Ev Gv"),
    r(&[ONE], 0x3A, "cmp", "Gb Eb"),
    r(&[ONE], 0x3B, "cmp", "Gv Ev"),
    r(&[ONE], 0x3C, "cmp", "Ib"),
    r(&[ONE], 0x3D, "cmp", "v Iz"),
    rr(&[ONE], 0x50, 0x57, "push", "Zq push"),
    rr(&[ONE], 0x58, 0x5F, "pop", "=Zq pop"),
    r(&[ONE], 0x63, "movslq", "=Gq Ed W1"),
    r(&[ONE], 0x68, "push", "Iz push"),
    r(&[ONE], 0x69, "imul", "=Gv Ev Iz"),
    r(&[ONE], 0x6A, "push", "Ib push"),
    r(&[ONE], 0x6B, "imul", "=Gv Ev Ib"),
    rr(&[ONE], 0x70, 0x7F, "jcc", "Jb jcc"),
    g(&[ONE], 0x80, "0123456", "add..xor", "+Eb Ib lock"),
    g(&[ONE], 0x80, "7", "cmp", "Eb Ib"),
    g(&[ONE], 0x81, "0123456", "add..xor", "+Ev Iz lock"),
    g(&[ONE], 0x81, "7", "cmp", "Ev Iz"),
    g(&[ONE], 0x83, "0123456", "add..xor", "+Ev Ib lock"),
    g(&[ONE], 0x83, "7", "cmp", "Ev Ib"),
    r(&[ONE], 0x84, "test", "Eb Gb"),
    r(&[ONE], 0x85, "test", "Ev Gv"),
    r(&[ONE], 0x86, "xchg", "+Eb +Gb lock"),
    r(&[ONE], 0x87, "xchg", "+Ev +Gv lock"),
    r(&[ONE], 0x88, "mov", "=Eb Gb"),
    r(&[ONE], 0x89, "mov", "=Ev Gv"),
    r(&[ONE], 0x8A, "mov", "=Gb Eb"),
    r(&[ONE], 0x8B, "mov", "=Gv Ev"),
    r(&[ONE], 0x8D, "lea", "=Gv Az a32"),
    g(&[ONE], 0x8F, "0", "pop", "=Mq pop"),
    rr(&[ONE], 0x90, 0x97, "xchg nop pause", "+Zv"),
    r(&[ONE], 0x98, "cbtw cwtl cltq", "v"),
    r(&[ONE], 0x99, "cwtd cltd cqto", "v"),
    r(&[ONE], 0x9E, "sahf", ""),
    r(&[ONE], 0x9F, "lahf", ""),
    rr(&[ONE], 0xA4, 0xA5, "movs", "v rep str"),
    rr(&[ONE], 0xA6, 0xA7, "cmps", "v rep repne str"),
    r(&[ONE], 0xA8, "test", "Ib"),
    r(&[ONE], 0xA9, "test", "v Iz"),
    rr(&[ONE], 0xAA, 0xAD, "stos lods", "v rep str"),
    rr(&[ONE], 0xAE, 0xAF, "scas", "v rep repne str"),
    rr(&[ONE], 0xB0, 0xB7, "mov", "=Zb Ib"),
    rr(&[ONE], 0xB8, 0xBF, "mov", "=Zv Iv"),
    g(&[ONE], 0xC0, "0123457", "rol..sar", "+Eb Ib"),
    g(&[ONE], 0xC1, "0123457", "rol..sar", "+Ev Ib"),
    r(&[ONE], 0xC3, "ret", "ret"),
    g(&[ONE], 0xC6, "0", "mov", "=Eb Ib"),
    g(&[ONE], 0xC7, "0", "mov", "=Ev Iz"),
    r(&[ONE], 0xCC, "int3", "trap"),
    g(&[ONE], 0xD0, "0123457", "rol..sar", "+Eb"),
    g(&[ONE], 0xD1, "0123457", "rol..sar", "+Ev"),
    g(&[ONE], 0xD2, "0123457", "rol..sar", "+Eb"),
    g(&[ONE], 0xD3, "0123457", "rol..sar", "+Ev"),
    r(&[ONE], 0xE8, "call", "Jz call"),
    r(&[ONE], 0xE9, "jmp", "Jz jmp"),
    r(&[ONE], 0xEB, "jmp", "Jb jmp"),
    r(&[ONE], 0xF5, "cmc", ""),
    g(&[ONE], 0xF6, "0", "test", "Eb Ib"),
    g(&[ONE], 0xF6, "23", "not neg", "+Eb lock"),
    g(&[ONE], 0xF6, "4567", "mul imul div idiv", "Eb"),
    g(&[ONE], 0xF7, "0", "test", "Ev Iz"),
    g(&[ONE], 0xF7, "23", "not neg", "+Ev lock"),
    g(&[ONE], 0xF7, "4567", "mul imul div idiv", "Ev"),
    rr(&[ONE], 0xF8, 0xF9, "clc stc", ""),
    g(&[ONE], 0xFE, "01", "inc dec", "+Eb lock"),
    g(&[ONE], 0xFF, "01", "inc dec", "+Ev lock"),
    g(&[ONE], 0xFF, "2", "call", "Rq icall"),
    g(&[ONE], 0xFF, "4", "jmp", "Rq ijmp"),
    g(&[ONE], 0xFF, "6", "push", "Mq push"),
    r(&[NP], 0x0B, "ud2", "trap"),
    g(&[NP], 0x0D, "1", "prefetchw", "=Mb"),
    g(&[NP], 0x18, "0123", "prefetch", "Mb"),
    g(&[NP], 0x1F, "0", "nop", "Nv"),
    r(&[NP], 0x31, "rdtsc", "tsc"),
    rr(&[NP], 0x40, 0x4F, "cmov", "=Gv Ev"),
    rr(&[NP], 0x80, 0x8F, "jcc", "Jz jcc"),
    Row {
        pages: &[NP],
        first: 0x90,
        last: 0x9F,
        step: 1,
        digits: "0",
        name: "set",
        line: "=Eb",
    },
    r(&[NP], 0xA3, "bt", "Rv Gv"),
    r(&[NP], 0xA4, "shld", "+Ev Gv Ib"),
    r(&[NP], 0xA5, "shld", "+Ev Gv"),
    r(&[NP], 0xAB, "bts", "+Rv Gv"),
    r(&[NP], 0xAC, "shrd", "+Ev Gv Ib"),
    r(&[NP], 0xAD, "shrd", "+Ev Gv"),
    g(&[NP], 0xAE, "567", "lfence mfence sfence", "Rz rm0"),
    r(&[NP], 0xAF, "imul", "+Gv Ev"),
    r(&[NP], 0xB0, "cmpxchg", "+Eb Gb lock"),
    r(&[NP], 0xB1, "cmpxchg", "+Ev Gv lock"),
    r(&[NP], 0xB3, "btr", "+Rv Gv"),
    r(&[NP], 0xB6, "movzb", "=Gv Eb"),
    r(&[NP], 0xB7, "movzw", "=Gv Ew"),
    g(&[NP], 0xBA, "4", "bt", "Ev Ib"),
    g(&[NP], 0xBA, "567", "bts btr btc", "+Ev Ib lock"),
    r(&[NP], 0xBB, "btc", "+Rv Gv"),
    rr(&[NP], 0xBC, 0xBD, "bsf bsr", "+Gv Ev"),
    r(&[NP], 0xBE, "movsb", "=Gv Eb"),
    r(&[NP], 0xBF, "movsw", "=Gv Ew"),
    r(&[NP], 0xC0, "xadd", "+Eb +Gb lock"),
    r(&[NP], 0xC1, "xadd", "+Ev +Gv lock"),
    r(&[NP], 0xC3, "movnti", "=My Gy"),
    g(&[NP], 0xC7, "1", "cmpxchg8b cmpxchg16b", "+Mp lock rbx"),
    rr(&[NP], 0xC8, 0xCF, "bswap", "+Zy"),
];

/// x87 with a memory operand; the register forms are [`X87_REGISTER`]. Left out: what touches control word or environment
/// (`fldenv fldcw fnstenv frstor fnsave`) and undocumented aliases.
const X87: &[Row] = &[
    g(&[ONE], 0xD8, "01234567", "fadd..fdivr", "Md x87"),
    g(&[ONE], 0xD9, "0", "fld", "Md x87"),
    g(&[ONE], 0xD9, "23", "fst fstp", "=Md x87"),
    g(&[ONE], 0xD9, "7", "fnstcw", "=Mw x87"),
    g(&[ONE], 0xDA, "01234567", "fiadd..fidivr", "Md x87"),
    g(&[ONE], 0xDB, "0", "fild", "Md x87"),
    g(&[ONE], 0xDB, "23", "fist fistp", "=Md x87"),
    g(&[ONE], 0xDB, "5", "fld", "Mt x87"),
    g(&[ONE], 0xDB, "7", "fstp", "=Mt x87"),
    g(&[ONE], 0xDC, "01234567", "fadd..fdivr", "Mq x87"),
    g(&[ONE], 0xDD, "0", "fld", "Mq x87"),
    g(&[ONE], 0xDD, "23", "fst fstp", "=Mq x87"),
    g(&[ONE], 0xDD, "7", "fnstsw", "=Mw x87"),
    g(&[ONE], 0xDE, "01234567", "fiadd..fidivr", "Mw x87"),
    g(&[ONE], 0xDF, "0", "fild", "Mw x87"),
    g(&[ONE], 0xDF, "23", "fist fistp", "=Mw x87"),
    g(&[ONE], 0xDF, "4", "fbld", "Mt x87"),
    g(&[ONE], 0xDF, "5", "fild", "Mq x87"),
    g(&[ONE], 0xDF, "6", "fbstp", "=Mt x87"),
    g(&[ONE], 0xDF, "7", "fistp", "=Mq x87"),
    r(&[ONE], 0x9B, "fwait", "x87"),
];

/// Accepted second bytes C0 to FF of D8 to DF, one bit each. Left out: `ffree`, `fincstp`, `fdecstp` (they make the
/// stack's depth something that only a full save can restore), `fninit`, `fnclex`, and undocumented aliases.
pub(crate) const X87_REGISTER: [u64; 8] = [
    u64::MAX, // D8: all
    x87(0xC0, 0xD0) | x87(0xE0, 0xE1) | x87(0xE4, 0xE5) | x87(0xE8, 0xEE) | x87(0xF0, 0xF5) | x87(0xF8, 0xFF),
    x87(0xC0, 0xDF) | x87(0xE9, 0xE9),                   // DA: fcmov, fucompp
    x87(0xC0, 0xDF) | x87(0xE8, 0xF7),                   // DB: fcmovn, fucomi, fcomi
    x87(0xC0, 0xCF) | x87(0xE0, 0xFF),                   // DC: fadd fmul fsub(r) fdiv(r)
    x87(0xD0, 0xEF),                                     // DD: fst fstp fucom fucomp
    x87(0xC0, 0xCF) | x87(0xD9, 0xD9) | x87(0xE0, 0xFF), // DE: with pop, fcompp
    x87(0xE0, 0xE0) | x87(0xE8, 0xF7),                   // DF: fnstsw %ax, fucomip, fcomip
];

const fn x87(first: u8, last: u8) -> u64 {
    let (first, last) = (first - 0xC0, last - 0xC0);
    (u64::MAX >> (63 - (last - first))) << first
}

const SSE: &[Row] = &[
    r(PACKED, 0x10, "movup", "Vo Wo"),
    r(&[PF3], 0x10, "movss", "Vo Wd"),
    r(&[PF2], 0x10, "movsd", "Vo Wq"),
    r(PACKED, 0x11, "movup", "=Wo Vo"),
    r(&[PF3], 0x11, "movss", "=Wd Vo"),
    r(&[PF2], 0x11, "movsd", "=Wq Vo"),
    r(&[NP], 0x12, "movlps movhlps", "Vo Wq"),
    r(&[P66], 0x12, "movlpd", "Vo Mq"),
    r(PACKED, 0x13, "movlp", "=Mq Vo"),
    rr(PACKED, 0x14, 0x15, "unpck", "Vo Wo"),
    r(&[NP], 0x16, "movhps movlhps", "Vo Wq"),
    r(&[P66], 0x16, "movhpd", "Vo Mq"),
    r(PACKED, 0x17, "movhp", "=Mq Vo"),
    r(PACKED, 0x28, "movap", "Vo Wo"),
    r(PACKED, 0x29, "movap", "=Wo Vo"),
    r(&[PF3, PF2], 0x2A, "cvtsi2s", "Vo Ey"),
    r(PACKED, 0x2B, "movntp", "=Mo Vo"),
    rr(&[PF3], 0x2C, 0x2D, "cvt(t)ss2si", "=Gy Wd"),
    rr(&[PF2], 0x2C, 0x2D, "cvt(t)sd2si", "=Gy Wq"),
    rr(&[NP], 0x2E, 0x2F, "(u)comiss", "Vo Wd"),
    rr(&[P66], 0x2E, 0x2F, "(u)comisd", "Vo Wq"),
    r(PACKED, 0x50, "movmskp", "=Gd Uo"),
    r(PACKED, 0x51, "sqrtp", "Vo Wo"),
    rr(&[NP], 0x52, 0x53, "rsqrtps rcpps", "Vo Wo"),
    rr(PACKED, 0x54, 0x57, "andp..xorp", "Vo Wo"),
    rr(PACKED, 0x58, 0x59, "addp mulp", "Vo Wo"),
    rr(&[PF3], 0x51, 0x53, "sqrtss rsqrtss rcpss", "Vo Wd"),
    r(&[PF2], 0x51, "sqrtsd", "Vo Wq"),
    rr(&[PF3], 0x58, 0x5A, "addss mulss cvtss2sd", "Vo Wd"),
    rr(&[PF2], 0x58, 0x5A, "addsd mulsd cvtsd2ss", "Vo Wq"),
    r(&[NP], 0x5A, "cvtps2pd", "Vo Wq"),
    r(&[P66], 0x5A, "cvtpd2ps", "Vo Wo"),
    r(&[NP, P66, PF3], 0x5B, "cvtdq2ps cvt(t)ps2dq", "Vo Wo"),
    rr(PACKED, 0x5C, 0x5F, "subp..maxp", "Vo Wo"),
    rr(&[PF3], 0x5C, 0x5F, "subss..maxss", "Vo Wd"),
    rr(&[PF2], 0x5C, 0x5F, "subsd..maxsd", "Vo Wq"),
    rr(&[P66], 0x60, 0x6D, "punpck pack pcmpgt", "Vo Wo"),
    r(&[P66], 0x6E, "movd movq", "Vo Ey"),
    r(&[P66, PF3], 0x6F, "movdqa movdqu", "Vo Wo"),
    r(&[P66, PF3, PF2], 0x70, "pshuf", "Vo Wo Ib"),
    g(&[P66], 0x71, "246", "psrlw psraw psllw", "Uo Ib"),
    g(&[P66], 0x72, "246", "psrld psrad pslld", "Uo Ib"),
    g(&[P66], 0x73, "2367", "psrlq psrldq psllq pslldq", "Uo Ib"),
    rr(&[P66], 0x74, 0x76, "pcmpeq", "Vo Wo"),
    r(&[P66], 0x7E, "movd movq", "=Ey Vo"),
    r(&[PF3], 0x7E, "movq", "Vo Wq"),
    r(&[P66, PF3], 0x7F, "movdqa movdqu", "=Wo Vo"),
    r(PACKED, 0xC2, "cmpp", "Vo Wo Ib"),
    r(&[PF3], 0xC2, "cmpss", "Vo Wd Ib"),
    r(&[PF2], 0xC2, "cmpsd", "Vo Wq Ib"),
    r(&[P66], 0xC4, "pinsrw", "Vo Ew Ib"),
    r(&[P66], 0xC5, "pextrw", "=Gd Uo Ib"),
    r(PACKED, 0xC6, "shufp", "Vo Wo Ib"),
    rr(&[P66], 0xD1, 0xD5, "psrl paddq pmullw", "Vo Wo"),
    r(&[P66], 0xD6, "movq", "=Wq Vo"),
    r(&[P66], 0xD7, "pmovmskb", "=Gd Uo"),
    rr(&[P66], 0xD8, 0xE5, "psubus..pmulhw", "Vo Wo"),
    r(&[P66, PF2], 0xE6, "cvt(t)pd2dq", "Vo Wo"),
    r(&[PF3], 0xE6, "cvtdq2pd", "Vo Wq"),
    r(&[P66], 0xE7, "movntdq", "=Mo Vo"),
    rr(&[P66], 0xE8, 0xEF, "psubs..pxor", "Vo Wo"),
    rr(&[P66], 0xF1, 0xF6, "psll pmuludq pmaddwd psadbw", "Vo Wo"),
    rr(&[P66], 0xF8, 0xFE, "psub padd", "Vo Wo"),
];

const SSSE3_ROWS: &[Row] = &[
    g(&[ONE], 0xDB, "1", "fisttp", "=Md x87"),
    g(&[ONE], 0xDD, "1", "fisttp", "=Mq x87"),
    g(&[ONE], 0xDF, "1", "fisttp", "=Mw x87"),
    r(&[PF2], 0x12, "movddup", "Vo Wq"),
    r(&[PF3], 0x12, "movsldup", "Vo Wo"),
    r(&[PF3], 0x16, "movshdup", "Vo Wo"),
    rr(&[P66, PF2], 0x7C, 0x7D, "hadd hsub", "Vo Wo"),
    r(&[P66, PF2], 0xD0, "addsub", "Vo Wo"),
    r(&[PF2], 0xF0, "lddqu", "Vo Mo"),
    rr(&[T38_66], 0x00, 0x0B, "pshufb..pmulhrsw", "Vo Wo"),
    rr(&[T38_66], 0x1C, 0x1E, "pabs", "Vo Wo"),
    r(&[T3A_66], 0x0F, "palignr", "Vo Wo Ib"),
];

const SSE4_ROWS: &[Row] = &[
    r(&[PF3], 0xB8, "popcnt", "=Gv Ev"),
    r(&[T38_66], 0x10, "pblendvb", "Vo Wo"),
    rr(&[T38_66], 0x14, 0x15, "blendvp", "Vo Wo"),
    r(&[T38_66], 0x17, "ptest", "Vo Wo"),
    r(&[T38_66], 0x20, "pmovsxbw", "Vo Wq"),
    r(&[T38_66], 0x21, "pmovsxbd", "Vo Wd"),
    r(&[T38_66], 0x22, "pmovsxbq", "Vo Ww"),
    r(&[T38_66], 0x23, "pmovsxwd", "Vo Wq"),
    r(&[T38_66], 0x24, "pmovsxwq", "Vo Wd"),
    r(&[T38_66], 0x25, "pmovsxdq", "Vo Wq"),
    rr(&[T38_66], 0x28, 0x29, "pmuldq pcmpeqq", "Vo Wo"),
    r(&[T38_66], 0x2A, "movntdqa", "Vo Mo"),
    r(&[T38_66], 0x2B, "packusdw", "Vo Wo"),
    r(&[T38_66], 0x30, "pmovzxbw", "Vo Wq"),
    r(&[T38_66], 0x31, "pmovzxbd", "Vo Wd"),
    r(&[T38_66], 0x32, "pmovzxbq", "Vo Ww"),
    r(&[T38_66], 0x33, "pmovzxwd", "Vo Wq"),
    r(&[T38_66], 0x34, "pmovzxwq", "Vo Wd"),
    r(&[T38_66], 0x35, "pmovzxdq", "Vo Wq"),
    rr(
        &[T38_66],
        0x37,
        0x41,
        "pcmpgtq pmin pmax pmulld phminposuw",
        "Vo Wo",
    ),
    r(&[T38_F2], 0xF0, "crc32b", "+Gy Eb"),
    r(&[T38_F2], 0xF1, "crc32", "+Gv Ev"),
    rr(&[T3A_66], 0x08, 0x09, "roundp", "Vo Wo Ib"),
    r(&[T3A_66], 0x0A, "roundss", "Vo Wd Ib"),
    r(&[T3A_66], 0x0B, "roundsd", "Vo Wq Ib"),
    rr(&[T3A_66], 0x0C, 0x0E, "blendp pblendw", "Vo Wo Ib"),
    r(&[T3A_66], 0x14, "pextrb", "=E1 Vo Ib"),
    r(&[T3A_66], 0x15, "pextrw", "=Ew Vo Ib"),
    r(&[T3A_66], 0x16, "pextrd pextrq", "=Ey Vo Ib"),
    r(&[T3A_66], 0x17, "extractps", "=Ed Vo Ib"),
    r(&[T3A_66], 0x20, "pinsrb", "Vo E1 Ib"),
    r(&[T3A_66], 0x21, "insertps", "Vo Wd Ib"),
    r(&[T3A_66], 0x22, "pinsrd pinsrq", "Vo Ey Ib"),
    rr(&[T3A_66], 0x40, 0x42, "dpps dppd mpsadbw", "Vo Wo Ib"),
    rr(&[T3A_66], 0x60, 0x63, "pcmpestr pcmpistr", "Vo Wo Ib"),
];

const AES_ROWS: &[Row] = &[
    rr(&[T38_66], 0xDB, 0xDF, "aesimc aesenc aesdec", "Vo Wo"),
    r(&[T3A_66], 0x44, "pclmulqdq", "Vo Wo Ib"),
    r(&[T3A_66], 0xDF, "aeskeygenassist", "Vo Wo Ib"),
];

const SHA_ROWS: &[Row] = &[
    rr(&[T38], 0xC8, 0xCD, "sha1 sha256", "Vo Wo"),
    r(&[T3A], 0xCC, "sha1rnds4", "Vo Wo Ib"),
];

const MOVBE_ROWS: &[Row] = &[
    r(&[T38], 0xF0, "movbe", "=Gv Mv"),
    r(&[T38], 0xF1, "movbe", "=Mv Gv"),
];

const ADX_ROWS: &[Row] = &[r(&[T38_66, T38_F3], 0xF6, "adcx adox", "+Gy Ey")];

const BMI_ROWS: &[Row] = &[
    rr(&[PF3], 0xBC, 0xBD, "tzcnt lzcnt", "=Gv Ev"),
    r(&[V2], 0xF2, "andn", "=Gy By Ey"),
    g(&[V2], 0xF3, "123", "blsr blsmsk blsi", "=By Ey"),
    r(&[V2], 0xF5, "bzhi", "=Gy Ey By"),
    r(&[V2_F3, V2_F2], 0xF5, "pext pdep", "=Gy By Ey"),
    r(&[V2_F2], 0xF6, "mulx", "=Gy =By Ey"),
    r(&[V2], 0xF7, "bextr", "=Gy Ey By"),
    r(&[V2_66, V2_F3, V2_F2], 0xF7, "shlx sarx shrx", "=Gy Ey By"),
    r(&[V3_F2], 0xF0, "rorx", "=Gy Ey Ib"),
];

const AVX_ROWS: &[Row] = &[
    r(VPACKED, 0x10, "vmovup", "Vx Wx"),
    r(&[V1_F3], 0x10, "vmovss", "Vo Hr Wd"),
    r(&[V1_F2], 0x10, "vmovsd", "Vo Hr Wq"),
    r(VPACKED, 0x11, "vmovup", "=Wx Vx"),
    r(&[V1_F3], 0x11, "vmovss", "=Wd Vo Hr"),
    r(&[V1_F2], 0x11, "vmovsd", "=Wq Vo Hr"),
    r(&[V1], 0x12, "vmovlps vmovhlps", "Vo Ho Wq"),
    r(&[V1_66], 0x12, "vmovlpd", "Vo Ho Mq"),
    r(&[V1_F2], 0x12, "vmovddup", "Vx Wk"),
    r(&[V1_F3], 0x12, "vmovsldup", "Vx Wx"),
    r(VPACKED, 0x13, "vmovlp", "=Mq Vo"),
    rr(VPACKED, 0x14, 0x15, "vunpck", "Vx Hx Wx"),
    r(&[V1], 0x16, "vmovhps vmovlhps", "Vo Ho Wq"),
    r(&[V1_66], 0x16, "vmovhpd", "Vo Ho Mq"),
    r(&[V1_F3], 0x16, "vmovshdup", "Vx Wx"),
    r(VPACKED, 0x17, "vmovhp", "=Mq Vo"),
    r(VPACKED, 0x28, "vmovap", "Vx Wx"),
    r(VPACKED, 0x29, "vmovap", "=Wx Vx"),
    r(&[V1_F3, V1_F2], 0x2A, "vcvtsi2s", "Vo Ho Ey"),
    r(VPACKED, 0x2B, "vmovntp", "=Mx Vx"),
    rr(&[V1_F3], 0x2C, 0x2D, "vcvt(t)ss2si", "=Gy Wd"),
    rr(&[V1_F2], 0x2C, 0x2D, "vcvt(t)sd2si", "=Gy Wq"),
    rr(&[V1], 0x2E, 0x2F, "v(u)comiss", "Vo Wd"),
    rr(&[V1_66], 0x2E, 0x2F, "v(u)comisd", "Vo Wq"),
    r(VPACKED, 0x50, "vmovmskp", "=Gd Ux"),
    r(VPACKED, 0x51, "vsqrtp", "Vx Wx"),
    rr(&[V1], 0x52, 0x53, "vrsqrtps vrcpps", "Vx Wx"),
    rr(&[V1_F3], 0x51, 0x53, "vsqrtss vrsqrtss vrcpss", "Vo Ho Wd"),
    r(&[V1_F2], 0x51, "vsqrtsd", "Vo Ho Wq"),
    rr(VPACKED, 0x54, 0x59, "vandp..vmulp", "Vx Hx Wx"),
    rr(&[V1_F3], 0x58, 0x5A, "vaddss vmulss vcvtss2sd", "Vo Ho Wd"),
    rr(&[V1_F2], 0x58, 0x5A, "vaddsd vmulsd vcvtsd2ss", "Vo Ho Wq"),
    r(&[V1], 0x5A, "vcvtps2pd", "Vx Wh"),
    r(&[V1_66], 0x5A, "vcvtpd2ps", "Vx Wx"),
    r(&[V1, V1_66, V1_F3], 0x5B, "vcvtdq2ps vcvt(t)ps2dq", "Vx Wx"),
    rr(VPACKED, 0x5C, 0x5F, "vsubp..vmaxp", "Vx Hx Wx"),
    rr(&[V1_F3], 0x5C, 0x5F, "vsubss..vmaxss", "Vo Ho Wd"),
    rr(&[V1_F2], 0x5C, 0x5F, "vsubsd..vmaxsd", "Vo Ho Wq"),
    rr(&[V1_66], 0x60, 0x6D, "vpunpck vpack vpcmpgt", "Vx Hx Wx i"),
    r(&[V1_66], 0x6E, "vmovd vmovq", "Vo Ey"),
    r(&[V1_66, V1_F3], 0x6F, "vmovdqa vmovdqu", "Vx Wx"),
    r(&[V1_66, V1_F3, V1_F2], 0x70, "vpshuf", "Vx Wx Ib i"),
    g(&[V1_66], 0x71, "246", "vpsrlw vpsraw vpsllw", "Hx Ux Ib i"),
    g(&[V1_66], 0x72, "246", "vpsrld vpsrad vpslld", "Hx Ux Ib i"),
    g(
        &[V1_66],
        0x73,
        "2367",
        "vpsrlq vpsrldq vpsllq vpslldq",
        "Hx Ux Ib i",
    ),
    rr(&[V1_66], 0x74, 0x76, "vpcmpeq", "Vx Hx Wx i"),
    r(&[V1], 0x77, "vzeroupper vzeroall", "L* vec"),
    rr(&[V1_66, V1_F2], 0x7C, 0x7D, "vhadd vhsub", "Vx Hx Wx"),
    r(&[V1_66], 0x7E, "vmovd vmovq", "=Ey Vo"),
    r(&[V1_F3], 0x7E, "vmovq", "Vo Wq"),
    r(&[V1_66, V1_F3], 0x7F, "vmovdqa vmovdqu", "=Wx Vx"),
    r(VPACKED, 0xC2, "vcmpp", "Vx Hx Wx Ib"),
    r(&[V1_F3], 0xC2, "vcmpss", "Vo Ho Wd Ib"),
    r(&[V1_F2], 0xC2, "vcmpsd", "Vo Ho Wq Ib"),
    r(&[V1_66], 0xC4, "vpinsrw", "Vo Ho Ew Ib"),
    r(&[V1_66], 0xC5, "vpextrw", "=Gd Uo Ib"),
    r(VPACKED, 0xC6, "vshufp", "Vx Hx Wx Ib"),
    r(&[V1_66, V1_F2], 0xD0, "vaddsub", "Vx Hx Wx"),
    rr(&[V1_66], 0xD1, 0xD3, "vpsrl", "Vx Hx Wo i L*"),
    rr(&[V1_66], 0xD4, 0xD5, "vpaddq vpmullw", "Vx Hx Wx i"),
    r(&[V1_66], 0xD6, "vmovq", "=Wq Vo"),
    r(&[V1_66], 0xD7, "vpmovmskb", "=Gd Ux i"),
    rr(&[V1_66], 0xD8, 0xE0, "vpsubus..vpavgb", "Vx Hx Wx i"),
    rr(&[V1_66], 0xE1, 0xE2, "vpsra", "Vx Hx Wo i L*"),
    rr(&[V1_66], 0xE3, 0xE5, "vpavgw vpmulh", "Vx Hx Wx i"),
    r(&[V1_66, V1_F2], 0xE6, "vcvt(t)pd2dq", "Vx Wx"),
    r(&[V1_F3], 0xE6, "vcvtdq2pd", "Vx Wh"),
    r(&[V1_66], 0xE7, "vmovntdq", "=Mx Vx"),
    rr(&[V1_66], 0xE8, 0xEF, "vpsubs..vpxor", "Vx Hx Wx i"),
    r(&[V1_F2], 0xF0, "vlddqu", "Vx Mx"),
    rr(&[V1_66], 0xF1, 0xF3, "vpsll", "Vx Hx Wo i L*"),
    rr(&[V1_66], 0xF4, 0xF6, "vpmuludq vpmaddwd vpsadbw", "Vx Hx Wx i"),
    rr(&[V1_66], 0xF8, 0xFE, "vpsub vpadd", "Vx Hx Wx i"),
    rr(&[V2_66], 0x00, 0x0B, "vpshufb..vpmulhrsw", "Vx Hx Wx i"),
    rr(&[V2_66], 0x0C, 0x0D, "vpermilp", "Vx Hx Wx"),
    rr(&[V2_66], 0x0E, 0x0F, "vtestp", "Vx Wx"),
    r(&[V2_66], 0x17, "vptest", "Vx Wx"),
    r(&[V2_66], 0x18, "vbroadcastss", "Vx Wd L*"),
    r(&[V2_66], 0x19, "vbroadcastsd", "Vx Wq L1"),
    r(&[V2_66], 0x1A, "vbroadcastf128", "Vx Mo L1"),
    rr(&[V2_66], 0x1C, 0x1E, "vpabs", "Vx Wx i"),
    r(&[V2_66], 0x20, "vpmovsxbw", "Vx Wh i"),
    r(&[V2_66], 0x21, "vpmovsxbd", "Vx Wf i"),
    r(&[V2_66], 0x22, "vpmovsxbq", "Vx We i"),
    r(&[V2_66], 0x23, "vpmovsxwd", "Vx Wh i"),
    r(&[V2_66], 0x24, "vpmovsxwq", "Vx Wf i"),
    r(&[V2_66], 0x25, "vpmovsxdq", "Vx Wh i"),
    rr(&[V2_66], 0x28, 0x29, "vpmuldq vpcmpeqq", "Vx Hx Wx i"),
    r(&[V2_66], 0x2A, "vmovntdqa", "Vx Mx i"),
    r(&[V2_66], 0x2B, "vpackusdw", "Vx Hx Wx i"),
    rr(&[V2_66], 0x2C, 0x2D, "vmaskmovp", "Vx Hx Mx"),
    rr(&[V2_66], 0x2E, 0x2F, "vmaskmovp", "=Mx Hx Vx"),
    r(&[V2_66], 0x30, "vpmovzxbw", "Vx Wh i"),
    r(&[V2_66], 0x31, "vpmovzxbd", "Vx Wf i"),
    r(&[V2_66], 0x32, "vpmovzxbq", "Vx We i"),
    r(&[V2_66], 0x33, "vpmovzxwd", "Vx Wh i"),
    r(&[V2_66], 0x34, "vpmovzxwq", "Vx Wf i"),
    r(&[V2_66], 0x35, "vpmovzxdq", "Vx Wh i"),
    rr(&[V2_66], 0x37, 0x40, "vpcmpgtq vpmin vpmax vpmulld", "Vx Hx Wx i"),
    r(&[V2_66], 0x41, "vphminposuw", "Vo Wo"),
    rr(&[V3_66], 0x04, 0x05, "vpermilp", "Vx Wx Ib"),
    r(&[V3_66], 0x06, "vperm2f128", "Vx Hx Wx Ib L1"),
    rr(&[V3_66], 0x08, 0x09, "vroundp", "Vx Wx Ib"),
    r(&[V3_66], 0x0A, "vroundss", "Vo Ho Wd Ib"),
    r(&[V3_66], 0x0B, "vroundsd", "Vo Ho Wq Ib"),
    rr(&[V3_66], 0x0C, 0x0D, "vblendp", "Vx Hx Wx Ib"),
    rr(&[V3_66], 0x0E, 0x0F, "vpblendw vpalignr", "Vx Hx Wx Ib i"),
    r(&[V3_66], 0x14, "vpextrb", "=E1 Vo Ib"),
    r(&[V3_66], 0x15, "vpextrw", "=Ew Vo Ib"),
    r(&[V3_66], 0x16, "vpextrd vpextrq", "=Ey Vo Ib"),
    r(&[V3_66], 0x17, "vextractps", "=Ed Vo Ib"),
    r(&[V3_66], 0x18, "vinsertf128", "Vx Hx Wo Ib L1"),
    r(&[V3_66], 0x19, "vextractf128", "=Wo Vx Ib L1"),
    r(&[V3_66], 0x20, "vpinsrb", "Vo Ho E1 Ib"),
    r(&[V3_66], 0x21, "vinsertps", "Vo Ho Wd Ib"),
    r(&[V3_66], 0x22, "vpinsrd vpinsrq", "Vo Ho Ey Ib"),
    r(&[V3_66], 0x40, "vdpps", "Vx Hx Wx Ib"),
    r(&[V3_66], 0x41, "vdppd", "Vo Ho Wo Ib"),
    r(&[V3_66], 0x42, "vmpsadbw", "Vx Hx Wx Ib i"),
    rr(&[V3_66], 0x4A, 0x4B, "vblendvp", "Vx Hx Wx L"),
    r(&[V3_66], 0x4C, "vpblendvb", "Vx Hx Wx L i"),
    rr(&[V3_66], 0x60, 0x63, "vpcmpestr vpcmpistr", "Vo Wo Ib"),
];

const AVX2_ROWS: &[Row] = &[
    r(&[V2_66], 0x16, "vpermps", "Vx Hx Wx L1"),
    r(&[V2_66], 0x36, "vpermd", "Vx Hx Wx L1"),
    r(&[V2_66], 0x45, "vpsrlv", "Vx Hx Wx W*"),
    r(&[V2_66], 0x46, "vpsravd", "Vx Hx Wx"),
    r(&[V2_66], 0x47, "vpsllv", "Vx Hx Wx W*"),
    r(&[V2_66], 0x58, "vpbroadcastd", "Vx Wd L*"),
    r(&[V2_66], 0x59, "vpbroadcastq", "Vx Wq L*"),
    r(&[V2_66], 0x5A, "vbroadcasti128", "Vx Mo L1"),
    r(&[V2_66], 0x78, "vpbroadcastb", "Vx Wb L*"),
    r(&[V2_66], 0x79, "vpbroadcastw", "Vx Ww L*"),
    r(&[V2_66], 0x8C, "vpmaskmov", "Vx Hx Mx W*"),
    r(&[V2_66], 0x8E, "vpmaskmov", "=Mx Hx Vx W*"),
    rr(&[V3_66], 0x00, 0x01, "vpermq vpermpd", "Vx Wx Ib L1 W1"),
    r(&[V3_66], 0x02, "vpblendd", "Vx Hx Wx Ib"),
    r(&[V3_66], 0x38, "vinserti128", "Vx Hx Wo Ib L1"),
    r(&[V3_66], 0x39, "vextracti128", "=Wo Vx Ib L1"),
    r(&[V3_66], 0x46, "vperm2i128", "Vx Hx Wx Ib L1"),
];

const FMA_ROWS: &[Row] = &[
    fma(0x96, "vfmaddsub", "Vx Hx Wx W*"),
    fma(0x97, "vfmsubadd", "Vx Hx Wx W*"),
    fma(0x98, "vfmadd", "Vx Hx Wx W*"),
    fma(0x99, "vfmadds", "Vo Ho Wy"),
    fma(0x9A, "vfmsub", "Vx Hx Wx W*"),
    fma(0x9B, "vfmsubs", "Vo Ho Wy"),
    fma(0x9C, "vfnmadd", "Vx Hx Wx W*"),
    fma(0x9D, "vfnmadds", "Vo Ho Wy"),
    fma(0x9E, "vfnmsub", "Vx Hx Wx W*"),
    fma(0x9F, "vfnmsubs", "Vo Ho Wy"),
];

/// The forms 132, 213 and 231 of an operation, 16 opcodes apart.
const fn fma(first: u8, name: &'static str, line: &'static str) -> Row {
    Row {
        pages: &[V2_66],
        first,
        last: first + 0x20,
        step: 16,
        digits: "",
        name,
        line,
    }
}

const F16C_ROWS: &[Row] = &[
    r(&[V2_66], 0x13, "vcvtph2ps", "Vx Wh"),
    r(&[V3_66], 0x1D, "vcvtps2ph", "=Wh Vx Ib"),
];

const VAES_ROWS: &[Row] = &[
    r(&[V2_66], 0xDB, "vaesimc", "Vo Wo"),
    rr(&[V2_66], 0xDC, 0xDF, "vaesenc vaesdec", "Vo Ho Wo"),
    r(&[V3_66], 0x44, "vpclmulqdq", "Vo Ho Wo Ib"),
    r(&[V3_66], 0xDF, "vaeskeygenassist", "Vo Wo Ib"),
];

/// Opcodes that are refused with a reason of their own: pages, first, last, values of ModRM.reg or none, reason.
/// Both forms of a group's member are meant.
const REFUSED: &[(&[u8], u8, u8, &str, Reason)] = &[
    (&[ONE], 0x26, 0x26, "", Reason::Prefix),
    (&[ONE], 0x2E, 0x2E, "", Reason::Prefix),
    (&[ONE], 0x36, 0x36, "", Reason::Prefix),
    (&[ONE], 0x3E, 0x3E, "", Reason::Prefix),
    (&[ONE], 0x64, 0x64, "", Reason::Prefix),
    (&[ONE], 0x62, 0x62, "", Reason::Evex),
    (&[ONE], 0x6C, 0x6F, "", Reason::Privileged),
    (&[ONE], 0x8C, 0x8C, "", Reason::SegmentRegister),
    (&[ONE], 0x8E, 0x8E, "", Reason::SegmentRegister),
    (&[ONE], 0x9A, 0x9A, "", Reason::FarTransfer),
    (&[ONE], 0x9C, 0x9D, "", Reason::OutlivingFlags),
    (&[ONE], 0xA0, 0xA3, "", Reason::AbsoluteOffset),
    (&[ONE], 0xC2, 0xC2, "", Reason::ReturnImmediate),
    (&[ONE], 0xC6, 0xC7, "7", Reason::Transaction),
    (&[ONE], 0xC8, 0xC9, "", Reason::StackInstruction),
    (&[ONE], 0xCA, 0xCB, "", Reason::FarTransfer),
    (&[ONE], 0xCD, 0xCD, "", Reason::SystemCall),
    (&[ONE], 0xCF, 0xCF, "", Reason::FarTransfer),
    (&[ONE], 0xD7, 0xD7, "", Reason::TableLookup),
    (&[ONE], 0xD9, 0xD9, "456", Reason::ControlState),
    (&[ONE], 0xDD, 0xDD, "46", Reason::ControlState),
    (&[ONE], 0xE4, 0xE7, "", Reason::Privileged),
    (&[ONE], 0xEA, 0xEA, "", Reason::FarTransfer),
    (&[ONE], 0xEC, 0xEF, "", Reason::Privileged),
    (&[ONE], 0xF1, 0xF1, "", Reason::SystemCall),
    (&[ONE], 0xF4, 0xF4, "", Reason::Privileged),
    (&[ONE], 0xFA, 0xFB, "", Reason::Privileged),
    (&[ONE], 0xFC, 0xFD, "", Reason::OutlivingFlags),
    (&[ONE], 0xFF, 0xFF, "35", Reason::FarTransfer),
    (LEGACY_0F, 0x00, 0x00, "", Reason::SegmentRegister),
    (LEGACY_0F, 0x01, 0x01, "", Reason::ProcessorState),
    (LEGACY_0F, 0x02, 0x03, "", Reason::SegmentRegister),
    (LEGACY_0F, 0x05, 0x05, "", Reason::SystemCall),
    (LEGACY_0F, 0x06, 0x06, "", Reason::Privileged),
    (LEGACY_0F, 0x07, 0x07, "", Reason::SystemCall),
    (LEGACY_0F, 0x08, 0x09, "", Reason::Privileged),
    (LEGACY_0F, 0x0E, 0x0F, "", Reason::Mmx),
    (LEGACY_0F, 0x1E, 0x1E, "", Reason::HiddenNop),
    (LEGACY_0F, 0x19, 0x1D, "", Reason::HiddenNop),
    (LEGACY_0F, 0x20, 0x23, "", Reason::Privileged),
    (LEGACY_0F, 0x30, 0x30, "", Reason::Privileged),
    (LEGACY_0F, 0x32, 0x33, "", Reason::Privileged),
    (LEGACY_0F, 0x34, 0x35, "", Reason::SystemCall),
    (LEGACY_0F, 0x37, 0x37, "", Reason::Privileged),
    (LEGACY_0F, 0xA0, 0xA1, "", Reason::SegmentRegister),
    (LEGACY_0F, 0xA2, 0xA2, "", Reason::ProcessorState),
    (LEGACY_0F, 0xA8, 0xA9, "", Reason::SegmentRegister),
    (&[NP], 0xAE, 0xAE, "01234", Reason::ControlState),
    (&[P66], 0xAE, 0xAE, "", Reason::ProcessorState),
    (&[PF3], 0xAE, 0xAE, "0123", Reason::SegmentRegister),
    (&[PF3], 0xAE, 0xAE, "4567", Reason::ProcessorState),
    (&[PF2], 0xAE, 0xAE, "", Reason::ProcessorState),
    (LEGACY_0F, 0xB2, 0xB2, "", Reason::SegmentRegister),
    (LEGACY_0F, 0xB4, 0xB5, "", Reason::SegmentRegister),
    (&[P66, PF3, PF2], 0xC7, 0xC7, "", Reason::ProcessorState),
    (&[NP], 0xC7, 0xC7, "345", Reason::ControlState),
    (&[NP], 0xC7, 0xC7, "67", Reason::ProcessorState),
    (&[NP, P66], 0x2A, 0x2A, "", Reason::Mmx),
    (&[NP, P66], 0x2C, 0x2D, "", Reason::Mmx),
    (&[NP], 0x60, 0x6B, "", Reason::Mmx),
    (&[NP], 0x6E, 0x77, "", Reason::Mmx),
    (&[NP], 0x7E, 0x7F, "", Reason::Mmx),
    (&[NP], 0xC4, 0xC5, "", Reason::Mmx),
    (&[NP], 0xD1, 0xD5, "", Reason::Mmx),
    (&[PF3, PF2], 0xD6, 0xD6, "", Reason::Mmx),
    (&[NP], 0xD7, 0xE5, "", Reason::Mmx),
    (&[NP], 0xE7, 0xEF, "", Reason::Mmx),
    (&[NP], 0xF1, 0xF6, "", Reason::Mmx),
    (&[NP, P66, V1_66], 0xF7, 0xF7, "", Reason::ImplicitStore),
    (&[NP], 0xF8, 0xFE, "", Reason::Mmx),
    (&[V1], 0xAE, 0xAE, "23", Reason::ControlState),
    (&[T38], 0x00, 0x0B, "", Reason::Mmx),
    (&[T38], 0x1C, 0x1E, "", Reason::Mmx),
    (&[T3A], 0x0F, 0x0F, "", Reason::Mmx),
    (&[T38, T38_66], 0xF5, 0xF5, "", Reason::ProcessorState),
    (&[T38], 0xF6, 0xF6, "", Reason::ProcessorState),
    (&[T38_66, T38_F3, T38_F2], 0xF8, 0xF8, "", Reason::ImplicitStore),
    (&[V2_66], 0x90, 0x93, "", Reason::Gather),
];
const LEGACY_0F: &[u8] = &[NP, P66, PF3, PF2];

/// Opcodes accepted in one form only (register or memory) where the other form deserves its own reason.
const OTHER_FORM: &[(u8, u8, &str, Reason)] = &[
    (ONE, 0xFF, "24", Reason::BareIndirect),
    (NP, 0xA3, "", Reason::BitString),
    (NP, 0xAB, "", Reason::BitString),
    (NP, 0xB3, "", Reason::BitString),
    (NP, 0xBB, "", Reason::BitString),
    (P66, 0xA3, "", Reason::BitString),
    (P66, 0xAB, "", Reason::BitString),
    (P66, 0xB3, "", Reason::BitString),
    (P66, 0xBB, "", Reason::BitString),
    (NP, 0xAE, "5", Reason::ControlState),
    (NP, 0xAE, "6", Reason::ControlState),
    (NP, 0xAE, "7", Reason::ProcessorState),
];

/// All opcodes, page by page, and the groups that some of them lead to.
pub(crate) struct Tables {
    pub ops: [Op; PAGES * 256],
    pub groups: [[Op; 8]; GROUPS],
    groups_used: usize,
}

const GROUPS: usize = 80;

pub(crate) static TABLES: Tables = Tables::build();

impl Tables {
    const fn build() -> Tables {
        let unknown = Op::refused(Reason::NotAccepted);
        let mut tables = Tables {
            ops: [unknown; PAGES * 256],
            groups: [[unknown; 8]; GROUPS],
            groups_used: 0,
        };
        let mut i = 0;
        while i < REFUSED.len() {
            let (pages, first, last, digits, reason) = REFUSED[i];
            tables = tables.set(pages, (first, last, 1), digits, Op::refused(reason));
            i += 1;
        }
        let mut i = 0;
        while i < SETS.len() {
            let mut j = 0;
            while j < SETS[i].rows.len() {
                let row = SETS[i].rows[j];
                let op = Op::parse(row.line, SETS[i].features);
                tables = tables.set(row.pages, (row.first, row.last, row.step), row.digits, op);
                // In 0F and 0F38, 66 is an operand-size prefix for instructions on general registers.
                if op.flags & flag::OPSIZE != 0 && row.pages.len() == 1 && matches!(row.pages[0], NP | T38) {
                    let page: &[u8] = if row.pages[0] == NP { &[P66] } else { &[T38_66] };
                    tables = tables.set(page, (row.first, row.last, row.step), row.digits, op);
                }
                j += 1;
            }
            i += 1;
        }
        let mut i = 0;
        while i < OTHER_FORM.len() {
            let (page, opcode, digits, reason) = OTHER_FORM[i];
            let op = &mut tables.ops[page as usize * 256 + opcode as usize];
            if digits.is_empty() {
                op.reason = reason;
            } else {
                let mut d = 0;
                while d < digits.len() {
                    tables.groups[op.group as usize][(digits.as_bytes()[d] - b'0') as usize].reason = reason;
                    d += 1;
                }
            }
            i += 1;
        }
        tables
    }

    /// Enters `op` for a range of opcodes. Nothing that is accepted may be entered twice.
    const fn set(mut self, pages: &[u8], range: (u8, u8, u8), digits: &str, op: Op) -> Tables {
        let mut p = 0;
        while p < pages.len() {
            let mut opcode = range.0 as usize;
            while opcode <= range.1 as usize {
                let index = pages[p] as usize * 256 + opcode;
                let old = self.ops[index];
                if digits.is_empty() {
                    assert!(matches!(old.form, Form::Refused), "two lines for one opcode");
                    self.ops[index] = op;
                } else {
                    if !matches!(old.form, Form::Group) {
                        assert!(matches!(old.form, Form::Refused), "two lines for one opcode");
                        self.groups[self.groups_used] = [Op::refused(old.reason); 8];
                        self.ops[index].form = Form::Group;
                        self.ops[index].group = self.groups_used as u8;
                        self.groups_used += 1;
                    }
                    let group = self.ops[index].group as usize;
                    let mut d = 0;
                    while d < digits.len() {
                        let digit = (digits.as_bytes()[d] - b'0') as usize;
                        assert!(
                            matches!(self.groups[group][digit].form, Form::Refused),
                            "two lines for one member of a group"
                        );
                        self.groups[group][digit] = op;
                        d += 1;
                    }
                }
                opcode += range.2 as usize;
            }
            p += 1;
        }
        self
    }
}
