//! What iced-x86 says of an encoding, compared with what our decoder says. `tests/enumerate` uses this too.

use iced_x86::{
    Code, CodeSize, CpuidFeature, Decoder, EncodingKind, FlowControl, InstructionInfoFactory, Mnemonic,
    OpAccess, Register, RflagsBits,
};
use ringfence_isa::window::feature;
use ringfence_verify::{Access, Flow, Instruction, Memory};

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
pub fn disagreement(
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
    // What leaves a lower half in r11: iced's own names of the listed moves.
    let holds = matches!(
        theirs.code(),
        Code::Mov_r32_rm32 | Code::Mov_rm32_r32 | Code::Lea_r32_m
    ) && theirs.op0_register() == Register::R11D;
    if holds != ours.holds {
        return say("what it leaves in r11");
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
            let through_r14 = m.base() == Register::R14 && m.index() == Register::R11 && m.scale() == 1;
            let reach = 0..ringfence_isa::window::HELD_REACH as u64;
            if through_r14 && reach.contains(&m.displacement()) {
                Memory::Held
            } else if through_r14 && m.displacement() == ringfence_isa::words::VIEW as u64 {
                Memory::View
            } else {
                Memory::Free
            }
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
