//! What Capstone says of an encoding, compared with what our decoder says. Capstone's operand lists have gaps, so only what it is
//! good at is compared: length, prefixes, and the form of memory operands; and `rsp` and `r14` may not be written.

use capstone::arch::x86::{ArchMode, ArchSyntax, X86OperandType, X86Reg};
use capstone::arch::{BuildsCapstone, BuildsCapstoneSyntax, DetailsArchInsn};
use capstone::{AccessType, Capstone as Engine, RegId};
use ringfence_isa::window::HELD_REACH;
use ringfence_isa::words::VIEW;
use ringfence_verify::{Flow, Instruction, Memory};

/// Compares one encoding.
pub struct Capstone(Engine);

impl Capstone {
    /// A 64-bit decoder.
    pub fn new() -> Capstone {
        let engine = Engine::new()
            .x86()
            .mode(ArchMode::Mode64)
            .syntax(ArchSyntax::Att)
            .detail(true)
            .build();
        Capstone(engine.expect("Capstone for x86-64"))
    }

    /// Says what is wrong if Capstone does not agree with `ours`: a kind, and the name of the instruction.
    pub fn disagreement(&self, bytes: &[u8], ours: &Instruction) -> Result<(), String> {
        let found = self
            .0
            .disasm_count(bytes, 0x40_0000, 1)
            .map_err(|e| format!("capstone: {e}"))?;
        let Some(theirs) = found.first() else {
            return Err("capstone: invalid".into());
        };
        let name = theirs.mnemonic().unwrap_or_default();
        let say = |what: &str| Err(format!("capstone: {what}; {name}"));
        if theirs.len() != usize::from(ours.len) {
            return say(&format!("length {}", theirs.len()));
        }
        let detail = self.0.insn_detail(theirs).map_err(|e| format!("capstone: {e}"))?;
        let arch = detail.arch_detail();
        let Some(x86) = arch.x86() else {
            return say("no detail");
        };
        let gs = RegId(X86Reg::X86_REG_GS as u16);
        let none = RegId(0);
        let rip = RegId(X86Reg::X86_REG_RIP as u16);
        for operand in x86.operands() {
            match operand.op_type {
                X86OperandType::Mem(m) => {
                    let form = if m.base() == rip && m.segment() == none {
                        Memory::Rip
                    } else if m.segment() == gs && x86.addr_size() == 4 {
                        Memory::Confined
                    } else if m.segment() == none && x86.addr_size() == 8 {
                        let [r14, r11] = [X86Reg::X86_REG_R14, X86Reg::X86_REG_R11].map(|r| RegId(r as u16));
                        let through_r14 = m.base() == r14 && m.index() == r11 && m.scale() == 1;
                        if through_r14 && (0..i64::from(HELD_REACH)).contains(&m.disp()) {
                            Memory::Held
                        } else if through_r14 && m.disp() == i64::from(VIEW) {
                            Memory::View
                        } else {
                            Memory::Free
                        }
                    } else if ours.memory == Memory::None {
                        continue;
                    } else {
                        return say("form of the memory operand");
                    };
                    if ours.memory != Memory::None && form != ours.memory {
                        return say(&format!("memory form {form:?}"));
                    }
                }
                X86OperandType::Reg(r) => {
                    let writes = operand.access.is_some_and(AccessType::is_writable);
                    if writes && is_reserved(r) && !ours.written.contains(if is_r14(r) { 14 } else { 4 }) {
                        return say("writes a reserved register");
                    }
                }
                _ => {}
            }
        }
        let stack = matches!(
            ours.flow,
            Flow::Push | Flow::Pop | Flow::Return | Flow::Call | Flow::IndirectCall
        );
        for r in detail.regs_write() {
            if is_reserved(*r) && !stack && !ours.written.contains(if is_r14(*r) { 14 } else { 4 }) {
                return say("implicitly writes a reserved register");
            }
        }
        Ok(())
    }
}

fn is_r14(r: RegId) -> bool {
    [
        X86Reg::X86_REG_R14,
        X86Reg::X86_REG_R14D,
        X86Reg::X86_REG_R14W,
        X86Reg::X86_REG_R14B,
    ]
    .iter()
    .any(|x| RegId(*x as u16) == r)
}

fn is_reserved(r: RegId) -> bool {
    let rsp = [
        X86Reg::X86_REG_RSP,
        X86Reg::X86_REG_ESP,
        X86Reg::X86_REG_SP,
        X86Reg::X86_REG_SPL,
    ];
    is_r14(r) || rsp.iter().any(|x| RegId(*x as u16) == r)
}
