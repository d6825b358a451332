//! Accesses through pointers: what is known of them from the instruction alone.

use crate::func::Code;
use crate::insn::{self, Class};
use crate::parse::{IP, Insn, Mem, NONE, Op};
use crate::regs::{self, R15, RBP, RSP};
use crate::state::State;
use crate::through::{numbers, wide};
use crate::words_size::size;
use ringfence_isa::words;

/// What is known to be local: registers as an operand has them.
pub(crate) type Key = ([u8; 2], u8);

/// An access through a pointer.
pub(crate) struct Access {
    pub key: Key,
    /// The register that is tested for it; `None`: the address of the pair.
    pub pointer: Option<u8>,
    /// The operand's text, `8(%eax,%ecx,4)` without `%gs:`, and its registers in 64 bits.
    pub displacement: String,
    pub registers: String,
    /// The same as they are in the operand.
    pub printed: String,
    /// Where the operand with its prefix is in the instruction's text.
    pub operand: std::ops::Range<usize>,
    /// The tests, if it can be done in foreign memory: bit, and displacement of the second.
    pub tests: Option<(u8, u32)>,
}

impl Access {
    /// Its address into `r11d`.
    pub(crate) fn load(&self) -> String {
        format!("\tleal\t{}({}), %r11d\n", self.displacement, self.registers)
    }

    /// Its displacement, if it is a number.
    pub(crate) fn number(&self) -> Option<i64> {
        match self.displacement.as_str() {
            "" => Some(0),
            number => number.parse().ok(),
        }
    }
}

/// The suffix of a move between general registers.
pub(crate) fn suffix(class: regs::Class) -> Option<char> {
    Some(match class {
        regs::Class::Q => 'q',
        regs::Class::D => 'l',
        regs::Class::W => 'w',
        regs::Class::B => 'b',
        _ => return None,
    })
}

/// Whether an instruction changes flags, so that those in front of it cannot be restored behind it. Asked only where they are
/// wanted: then it is one that leaves some alone.
pub(crate) fn sets_flags_too(insn: &Insn<'_>) -> bool {
    let vector = insn
        .ops()
        .iter()
        .any(|o| matches!(o, Op::Reg(r, _) if r.class == regs::Class::Vector));
    !vector && !insn.mnemonic.starts_with("mov") && !insn.mnemonic.starts_with("not")
}

/// The access that an instruction makes through a pointer, if it is one line with one operand through `gs`.
pub(crate) fn access(code: &Code<'_>, st: &State, text: &str) -> Option<Access> {
    let m = code.insn.mem()?;
    // The frame is local.
    if code.class != Class::Plain
        || m.fs
        || m.vector
        || matches!(m.base, RSP | IP)
        || m.base == RBP && st.frame != 0
        || code.insn.mnemonic.starts_with("prefetch")
        || text.contains("r11")
        || text.trim_end().contains('\n')
    {
        return None;
    }
    let start = text.find("%gs:")?;
    let (displacement, rest) = text[start + 4..].split_once('(')?;
    let (registers, _) = rest.split_once(')')?;
    let numbers = numbers(registers)?;
    if numbers.contains(&R15) {
        return None;
    }
    let operand = start..start + 4 + displacement.len() + registers.len() + 2;
    let scale = if numbers[1] == NONE { 1 } else { m.scale };
    let write = !insn::only_reads(&code.insn);
    Some(Access {
        key: (numbers, scale),
        pointer: (numbers[1] == NONE).then_some(numbers[0]),
        displacement: displacement.to_owned(),
        registers: wide_of(registers)?,
        printed: registers.to_owned(),
        operand,
        tests: size(&code.insn).and_then(|size| words::tests(size, write)),
    })
}

/// The registers in 64 bits; with an index alone there is none before it.
fn wide_of(registers: &str) -> Option<String> {
    match registers.strip_prefix(',') {
        None => wide(registers),
        Some(index) => {
            let (name, scale) = index.split_once(',')?;
            let r = name.strip_prefix('%').and_then(regs::parse)?;
            Some(format!(",%{},{scale}", regs::q(r.n)))
        }
    }
}

/// The register that `lea` puts an address of the frame or of the module into.
pub(crate) fn local_address(code: &Code<'_>, st: &State) -> Option<u8> {
    let table = |m: &Mem<'_>| code.insn.mnemonic == "movq" && m.base == IP && m.disp.ends_with("@GOTPCREL");
    let m = code.insn.mem().filter(|m| code.class == Class::Lea || table(m))?;
    let own = matches!(m.base, RSP | IP) || m.base == RBP && st.frame != 0;
    (own && m.index == NONE && !m.fs)
        .then(|| code.insn.dest())
        .flatten()
        .filter(|r| r.class == regs::Class::Q)
        .map(|r| r.n)
}
