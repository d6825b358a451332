//! What Zydis says of an encoding, compared with what our decoder says.

use ringfence_isa::window::HELD_REACH;
use ringfence_isa::words::VIEW;
use ringfence_verify::{Access, Flow, Instruction, Memory};
use zydis::ffi::DecodedOperandKind;
use zydis::{
    AllOperands, Decoder, InstructionAttributes, MachineMode, MemoryOperandType, Mnemonic, OperandAction,
    OperandVisibility, PrefixType, Register, RegisterClass,
};

/// Compares one encoding.
pub struct Zydis(Decoder);

/// Registers that some instructions use implicitly; no rule depends on them.
const IMPLICIT: u16 = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 6 | 1 << 7;

impl Zydis {
    /// A 64-bit decoder.
    pub fn new() -> Zydis {
        Zydis(Decoder::new64())
    }

    /// Says what is wrong if Zydis does not agree with `ours`: a kind, and the name of the instruction.
    pub fn disagreement(&self, bytes: &[u8], ours: &Instruction) -> Result<(), String> {
        let theirs = match self.0.decode_first::<AllOperands>(bytes) {
            Ok(Some(i)) => i,
            Ok(None) => return Err("zydis: truncated".into()),
            Err(e) => return Err(format!("zydis: {e:?}")),
        };
        let say = |what: &str| Err(format!("zydis: {what}; {:?}", theirs.mnemonic));
        if theirs.length != ours.len {
            return say(&format!("length {}", theirs.length));
        }
        let attributes = theirs.attributes;
        let state = InstructionAttributes::IS_PRIVILEGED
            | InstructionAttributes::CPU_STATE_CR
            | InstructionAttributes::CPU_STATE_CW
            | InstructionAttributes::XMM_STATE_CR
            | InstructionAttributes::XMM_STATE_CW;
        if attributes.intersects(state) {
            return say("privileged, or state that outlives the call");
        }
        for prefix in &theirs.raw.prefixes[..usize::from(theirs.raw.prefix_count)] {
            let rex = prefix.value & 0xF0 == 0x40;
            if prefix.ty == PrefixType::IGNORED && !rex {
                return say(&format!("ignores prefix {:02x}", prefix.value));
            }
        }

        let stack = matches!(
            ours.flow,
            Flow::Push | Flow::Pop | Flow::Return | Flow::Call | Flow::IndirectCall
        );
        let free = IMPLICIT | if stack { 1 << 4 } else { 0 };
        let (mut written, mut named, mut memories) = (0u16, 0u16, 0);
        for operand in theirs.operands() {
            let writes = operand.action.intersects(OperandAction::MASK_WRITE);
            match &operand.kind {
                DecodedOperandKind::Reg(register) => {
                    let class = register.class();
                    if let Some(n) = general(*register) {
                        named |= 1 << n;
                        if writes {
                            written |= 1 << n;
                        }
                        continue;
                    }
                    match class {
                        RegisterClass::XMM | RegisterClass::YMM if ours.vector => {}
                        RegisterClass::X87 if ours.x87 => {}
                        RegisterClass::FLAGS | RegisterClass::IP => {}
                        // The x87 words: control word and status word are named as registers.
                        _ if ours.x87 && matches!(*register, Register::X87STATUS | Register::X87TAG) => {}
                        _ if ours.x87 && *register == Register::X87CONTROL && !writes => {}
                        _ if *register == Register::MXCSR
                            && !(writes && operand.visibility != OperandVisibility::HIDDEN) => {}
                        _ => return say(&format!("uses {register:?}")),
                    }
                }
                DecodedOperandKind::Mem(m) => {
                    for r in [m.base, m.index] {
                        if let Some(n) = general(r) {
                            named |= 1 << n;
                        }
                    }
                    let hidden = operand.visibility == OperandVisibility::HIDDEN;
                    // Zydis says that a no-op reads its operand. Processors do not access it.
                    let no_op = theirs.mnemonic == Mnemonic::NOP;
                    if m.ty == MemoryOperandType::AGEN || operand.action.bits() == 0 || no_op {
                        continue;
                    }
                    if m.ty != MemoryOperandType::MEM {
                        return say(&format!("memory operand of type {:?}", m.ty));
                    }
                    if hidden && stack && m.base == Register::RSP && m.segment == Register::SS {
                        continue;
                    }
                    if ours.flow == Flow::String {
                        let pointer = matches!(m.base, Register::RSI | Register::RDI);
                        if !pointer || !matches!(m.segment, Register::DS | Register::ES) {
                            return say("string operand");
                        }
                        continue;
                    }
                    memories += 1;
                    let form = if m.base == Register::RIP {
                        if m.disp.displacement != i64::from(ours.displacement) {
                            return say("RIP-relative displacement");
                        }
                        Memory::Rip
                    } else if m.segment == Register::GS && theirs.address_width == 32 {
                        Memory::Confined
                    } else if matches!(m.segment, Register::DS | Register::SS) && theirs.address_width == 64 {
                        let through_r14 = m.base == Register::R14 && m.index == Register::R11 && m.scale == 1;
                        if through_r14 && (0..i64::from(HELD_REACH)).contains(&m.disp.displacement) {
                            Memory::Held
                        } else if through_r14 && m.disp.displacement == i64::from(VIEW) {
                            Memory::View
                        } else {
                            Memory::Free
                        }
                    } else {
                        return say(&format!(
                            "segment {:?}, address width {}",
                            m.segment, theirs.address_width
                        ));
                    };
                    if form != ours.memory {
                        return say(&format!("memory form {form:?}"));
                    }
                    if writes != (ours.access == Access::Write) {
                        return say(&format!("access {:?}", operand.action));
                    }
                    let prefetch = operand.size == 0 || ours.size == 1 && is_prefetch(&theirs.mnemonic);
                    if usize::from(operand.size) != usize::from(ours.size) * 8 && !prefetch {
                        return say(&format!("access of {} bits", operand.size));
                    }
                }
                DecodedOperandKind::Ptr(_) => return say("far pointer"),
                DecodedOperandKind::Imm(imm) => {
                    if imm.is_relative && imm.value as i64 != i64::from(ours.displacement) {
                        return say("branch distance");
                    }
                }
                DecodedOperandKind::Unused => {}
            }
        }
        if written & !ours.written.0 & !free != 0 {
            return say(&format!("writes {written:04x}, we say {:04x}", ours.written.0));
        }
        if named & !ours.mentioned.0 & !free != 0 {
            return say(&format!("names {named:04x}, we say {:04x}", ours.mentioned.0));
        }
        if memories != usize::from(ours.memory != Memory::None) {
            return say(&format!("{memories} memory operands"));
        }
        Ok(())
    }
}

fn is_prefetch(mnemonic: &zydis::Mnemonic) -> bool {
    format!("{mnemonic:?}").starts_with("PREFETCH")
}

/// The number of the 64-bit register that `register` is part of.
fn general(register: Register) -> Option<u8> {
    match register.class() {
        RegisterClass::GPR8 | RegisterClass::GPR16 | RegisterClass::GPR32 | RegisterClass::GPR64 => {
            Some(register.largest_enclosing(MachineMode::LONG_64).id())
        }
        _ => None,
    }
}
