//! Compares the decoder with iced-x86, an independent one: whatever our decoder accepts, iced must see as the same
//! length, the same memory operand, the same registers written, and an instruction of a kind that may be accepted.
//!
//! `RINGFENCE_SOAK=1` multiplies the number of encodings tried by 50. `tests/enumerate` goes through all of them.

use iced_x86::{
    CodeSize, CpuidFeature, Decoder, DecoderOptions, EncodingKind, FlowControl, InstructionInfoFactory,
    Mnemonic, OpAccess, Register, RflagsBits,
};
use ringfence_isa::window::feature;
use ringfence_verify::{Access, Flow, Instruction, Memory, decode};

/// xorshift64*: good enough to pick bytes, and the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = (self.next() >> 40) as u8;
        }
    }
}

fn general_register(r: Register) -> Option<u8> {
    let full = r.full_register();
    full.is_gpr64().then(|| full as u8 - Register::RAX as u8)
}

/// Registers that some instructions use implicitly; no rule depends on them.
const IMPLICIT: u16 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7;

fn expected_feature(f: CpuidFeature) -> Option<u32> {
    Some(match f {
        CpuidFeature::INTEL8086
        | CpuidFeature::INTEL186
        | CpuidFeature::INTEL286
        | CpuidFeature::INTEL386
        | CpuidFeature::INTEL486
        | CpuidFeature::X64
        | CpuidFeature::CMOV
        | CpuidFeature::CX8
        | CpuidFeature::CMPXCHG16B
        | CpuidFeature::FPU
        | CpuidFeature::FPU287
        | CpuidFeature::FPU387
        | CpuidFeature::MULTIBYTENOP
        | CpuidFeature::PAUSE
        | CpuidFeature::PREFETCHW
        | CpuidFeature::D3NOW
        | CpuidFeature::SSE
        | CpuidFeature::SSE2
        | CpuidFeature::CET_IBT
        | CpuidFeature::TSC => 0,
        CpuidFeature::SSE3 | CpuidFeature::SSSE3 => feature::SSSE3,
        CpuidFeature::SSE4_1 | CpuidFeature::SSE4_2 | CpuidFeature::POPCNT => feature::SSE4,
        CpuidFeature::AVX => feature::AVX,
        CpuidFeature::AVX2 => feature::AVX2,
        CpuidFeature::FMA => feature::FMA,
        CpuidFeature::BMI1 | CpuidFeature::BMI2 | CpuidFeature::LZCNT => feature::BMI,
        CpuidFeature::MOVBE => feature::MOVBE,
        CpuidFeature::F16C => feature::F16C,
        CpuidFeature::AES | CpuidFeature::PCLMULQDQ => feature::AES,
        CpuidFeature::SHA => feature::SHA,
        CpuidFeature::ADX => feature::ADX,
        _ => return None,
    })
}

/// Says what is wrong if iced does not agree with `ours`.
fn disagreement(
    bytes: &[u8],
    ours: &Instruction,
    options: u32,
    info_factory: &mut InstructionInfoFactory,
) -> Result<(), String> {
    let mut decoder = Decoder::with_ip(64, bytes, 0x40_0000, options);
    let theirs = decoder.decode();
    if theirs.is_invalid() {
        return Err("iced: invalid".into());
    }
    let say = |what: &str| Err(format!("iced: {what}; {theirs:?}"));
    if theirs.len() != usize::from(ours.len) {
        return say(&format!("length {}", theirs.len()));
    }
    if theirs.is_privileged() || theirs.is_save_restore_instruction() || theirs.is_vsib() {
        return say("privileged, save/restore or vsib");
    }
    let encoding = theirs.encoding();
    if !matches!(encoding, EncodingKind::Legacy | EncodingKind::VEX) {
        return say("encoding");
    }
    for f in theirs.cpuid_features() {
        match expected_feature(*f) {
            None => return say(&format!("needs {f:?}")),
            Some(bit) if u32::from(ours.features) & bit != bit => {
                // The register forms of these are AVX2; nothing but #UD depends on it.
                let broadcast = matches!(theirs.mnemonic(), Mnemonic::Vbroadcastss | Mnemonic::Vbroadcastsd);
                if !broadcast {
                    return say(&format!("feature {f:?} not reported"));
                }
            }
            Some(_) => {}
        }
    }
    let modified = theirs.rflags_modified();
    if modified & (RflagsBits::DF | RflagsBits::IF | RflagsBits::AC) != 0 {
        return say("lasting flags");
    }

    let flow = match theirs.flow_control() {
        FlowControl::Next => Flow::Next,
        FlowControl::UnconditionalBranch => Flow::Jump,
        FlowControl::IndirectBranch => Flow::IndirectJump,
        FlowControl::ConditionalBranch => Flow::Branch,
        FlowControl::Return => Flow::Return,
        FlowControl::Call => Flow::Call,
        FlowControl::IndirectCall => Flow::IndirectCall,
        FlowControl::Exception | FlowControl::Interrupt => Flow::Trap,
        FlowControl::XbeginXabortXend => return say("transaction"),
    };
    let string = theirs.is_string_instruction();
    let same_flow = match ours.flow {
        Flow::Push => flow == Flow::Next && theirs.stack_pointer_increment() == -8,
        Flow::Pop => flow == Flow::Next && theirs.stack_pointer_increment() == 8,
        Flow::String => flow == Flow::Next && string,
        Flow::Next => flow == Flow::Next && theirs.stack_pointer_increment() == 0 && !string,
        other => flow == other,
    };
    if !same_flow {
        return say(&format!("flow {flow:?}"));
    }
    if matches!(flow, Flow::Jump | Flow::Branch | Flow::Call) {
        let target = (0x40_0000u64 + u64::from(ours.len)).wrapping_add_signed(i64::from(ours.displacement));
        if theirs.near_branch_target() != target {
            return say("branch target");
        }
    }

    let info = info_factory.info(&theirs);
    let mut written = 0u16;
    let mut named = 0u16;
    for used in info.used_registers() {
        let r = used.register();
        let writes = matches!(
            used.access(),
            OpAccess::Write | OpAccess::CondWrite | OpAccess::ReadWrite | OpAccess::ReadCondWrite
        );
        if let Some(n) = general_register(r) {
            named |= 1 << n;
            if writes {
                written |= 1 << n;
            }
        } else if r.is_vector_register() {
            if !ours.vector {
                return say("vector register not reported");
            }
        } else if r.is_st() {
            if !ours.x87 {
                return say("x87 not reported");
            }
        } else if writes || !(r.is_ip() || r.is_segment_register() && r != Register::FS) {
            return say(&format!("uses {r:?}"));
        }
    }
    let stack = matches!(
        ours.flow,
        Flow::Push | Flow::Pop | Flow::Return | Flow::Call | Flow::IndirectCall
    );
    let free = IMPLICIT | if stack { 1 << 4 } else { 0 };
    if written & !ours.written.0 & !free != 0
        || ours.written.0 & !written != 0 && !same_register_move(&theirs)
    {
        return say(&format!("writes {written:04x}, we say {:04x}", ours.written.0));
    }
    let unused = matches!(
        theirs.mnemonic(),
        Mnemonic::Nop
            | Mnemonic::Pause
            | Mnemonic::Lea
            | Mnemonic::Lfence
            | Mnemonic::Mfence
            | Mnemonic::Sfence
    );
    if named & !ours.mentioned.0 & !free != 0 || ours.mentioned.0 & !named != 0 && !unused {
        return say(&format!("names {named:04x}, we say {:04x}", ours.mentioned.0));
    }

    let mut explicit = 0;
    for m in info.used_memory() {
        if m.access() == OpAccess::NoMemAccess {
            continue;
        }
        let on_stack = m.base() == Register::RSP && stack && m.segment() == Register::SS;
        if on_stack {
            continue;
        }
        if ours.flow == Flow::String {
            let pointer = matches!(m.base(), Register::RSI | Register::RDI);
            if !pointer || !matches!(m.segment(), Register::DS | Register::ES) {
                return say("string operand");
            }
            continue;
        }
        explicit += 1;
        let form = if m.base() == Register::RIP || theirs.is_ip_rel_memory_operand() {
            if m.segment() != Register::DS {
                return say("segment of a RIP-relative operand");
            }
            let target =
                (0x40_0000u64 + u64::from(ours.len)).wrapping_add_signed(i64::from(ours.displacement));
            if theirs.ip_rel_memory_address() != target {
                return say("RIP-relative address");
            }
            Memory::Rip
        } else if m.segment() == Register::GS && m.address_size() == CodeSize::Code32 {
            Memory::Confined
        } else if matches!(m.segment(), Register::DS | Register::SS) && m.address_size() == CodeSize::Code64 {
            Memory::Free
        } else {
            return say(&format!("memory {m:?}"));
        };
        if form != ours.memory {
            return say(&format!("memory form {form:?}"));
        }
        let writes = !matches!(m.access(), OpAccess::Read | OpAccess::CondRead);
        let prefetch = matches!(theirs.mnemonic(), Mnemonic::Prefetchw);
        if writes != (ours.access == Access::Write) && !prefetch {
            return say(&format!("access {:?}", m.access()));
        }
        let size = m.memory_size().size();
        if size != usize::from(ours.size) && !(size == 0 && prefetch_like(&theirs)) {
            return say(&format!("access of {size} bytes"));
        }
    }
    let expected = usize::from(ours.memory != Memory::None);
    if explicit != expected && !prefetch_like(&theirs) {
        return say(&format!("{explicit} memory operands"));
    }
    Ok(())
}

/// `xchg %eax, %eax` in disguise and moves of a register to itself count as no-ops for iced.
fn same_register_move(i: &iced_x86::Instruction) -> bool {
    matches!(i.mnemonic(), Mnemonic::Nop | Mnemonic::Pause)
}

fn prefetch_like(i: &iced_x86::Instruction) -> bool {
    matches!(
        i.mnemonic(),
        Mnemonic::Prefetchw
            | Mnemonic::Prefetcht0
            | Mnemonic::Prefetcht1
            | Mnemonic::Prefetcht2
            | Mnemonic::Prefetchnta
    )
}

#[derive(Default)]
struct Tally {
    /// What has been reported, so that each kind of disagreement shows once.
    seen: std::collections::HashSet<String>,
    tried: u64,
    accepted: u64,
    wrong: u64,
}

impl Tally {
    fn check(&mut self, bytes: &[u8; 15], factory: &mut InstructionInfoFactory) {
        self.tried += 1;
        let Ok(ours) = decode(bytes) else { return };
        self.accepted += 1;
        for options in [DecoderOptions::NONE, DecoderOptions::AMD] {
            if let Err(what) = disagreement(bytes, &ours, options, factory) {
                self.wrong += 1;
                let (kind, code) = what.split_once(';').unwrap_or((&what, ""));
                let code = code
                    .split("code: ")
                    .nth(1)
                    .and_then(|c| c.split(',').next())
                    .unwrap_or_default();
                if self.seen.len() < 100 && self.seen.insert(format!("{kind} {code}")) {
                    println!("{bytes:02x?}: {kind} {code}\n    ours: {ours:?}");
                }
                break;
            }
        }
    }

    fn finish(&self, name: &str) {
        println!(
            "{name}: {} tried, {} accepted, {} disagreements",
            self.tried, self.accepted, self.wrong
        );
        assert_eq!(self.wrong, 0, "iced-x86 disagrees about accepted encodings");
        assert!(
            self.accepted * 100 > self.tried,
            "the test hardly exercises anything"
        );
    }
}

/// 1 in ordinary tests, more in long ones.
fn effort() -> usize {
    match std::env::var("RINGFENCE_SOAK").ok().and_then(|n| n.parse().ok()) {
        None | Some(0) => 1,
        Some(1) => 50,
        Some(n) => n,
    }
}

/// Every opcode of every map with every ModRM byte, each with some prefixes and tails at random.
#[test]
fn systematic_encodings() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut factory = InstructionInfoFactory::new();
    let mut tally = Tally::default();
    let prefixes: [&[u8]; 10] = [
        &[0x65, 0x67],
        &[0x65, 0x67],
        &[0x67, 0x65],
        &[],
        &[],
        &[0x67],
        &[0x65, 0x67, 0xF0],
        &[0xF0, 0x65, 0x67],
        &[0xF3],
        &[0xF2],
    ];
    let rexes: [&[u8]; 8] = [&[], &[], &[], &[0x48], &[0x41], &[0x4C], &[0x40], &[0x4F]];
    let selectors: [&[u8]; 5] = [&[], &[0x66], &[0xF3], &[0xF2], &[0x66, 0xF2]];
    for map in 0..4 + 12 {
        for opcode in 0..=255u8 {
            for modrm in 0..=255u8 {
                for _ in 0..6 * effort() {
                    let mut head = [0u8; 32];
                    let mut n = 0;
                    let put = |bytes: &[u8], head: &mut [u8; 32], n: &mut usize| {
                        head[*n..*n + bytes.len()].copy_from_slice(bytes);
                        *n += bytes.len();
                    };
                    put(random.pick(&prefixes), &mut head, &mut n);
                    if map < 4 {
                        put(random.pick(&selectors), &mut head, &mut n);
                        put(random.pick(&rexes), &mut head, &mut n);
                        put(
                            [&[][..], &[0x0F], &[0x0F, 0x38], &[0x0F, 0x3A]][map],
                            &mut head,
                            &mut n,
                        );
                    } else {
                        let (vex_map, pp) = ((map - 4) as u8 / 4 + 1, (map - 4) as u8 % 4);
                        let unused = if random.below(2) == 0 {
                            0x78
                        } else {
                            random.next() as u8 & 0x78
                        };
                        let l = random.next() as u8 & 4;
                        if vex_map == 1 && random.below(3) == 0 {
                            put(
                                &[0xC5, random.next() as u8 & 0x80 | unused | l | pp],
                                &mut head,
                                &mut n,
                            );
                        } else {
                            let w = if random.below(3) == 0 { 0x80 } else { 0 };
                            put(
                                &[0xC4, random.next() as u8 & 0xE0 | vex_map, w | unused | l | pp],
                                &mut head,
                                &mut n,
                            );
                        }
                    }
                    put(&[opcode, modrm], &mut head, &mut n);
                    random.fill(&mut head[n..]);
                    if random.below(4) == 0 {
                        head[n] = 0x25; // SIB without base and index
                    }
                    let code: [u8; 15] = *head.first_chunk().expect("32 bytes");
                    tally.check(&code, &mut factory);
                }
            }
        }
    }
    tally.finish("systematic");
}

/// Bytes at random, with a bias to what prefixes look like.
#[test]
fn random_bytes() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    let mut factory = InstructionInfoFactory::new();
    let mut tally = Tally::default();
    let common = [
        0x65, 0x67, 0x66, 0xF0, 0xF2, 0xF3, 0x0F, 0xC4, 0xC5, 0x48, 0x41, 0x26, 0x64,
    ];
    for _ in 0..2_000_000 * effort() {
        let mut code = [0; 15];
        random.fill(&mut code);
        for byte in code.iter_mut().take(4) {
            if random.below(3) == 0 {
                *byte = random.pick(&common);
            }
        }
        tally.check(&code, &mut factory);
    }
    tally.finish("random");
}
