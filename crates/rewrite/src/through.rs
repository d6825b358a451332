//! Operands by way of `r14`: confined places that are reached without `gs`.
//!
//! Behind `movl %eax, %r11d`, `8(%r14,%r11)` is the place that `%gs:8(%eax)` is: `r14` holds the window's base, and the verifier
//! accepts that where nothing comes between. It takes an instruction more, but processors of one family need two cycles longer
//! for a load through `gs`, and take one store through it in a cycle instead of two (`docs/performance-causes.md`). So the form is for
//! loads that lead to an address (`leads.rs`; but not from a place that the same register goes back to), and for several stores in a
//! row; and for what else goes through the same registers while `r11` holds them. Other loads nobody waits for as long, and the
//! instruction costs more than it gives. Addresses with an index would need `leal` first, which takes back half of the gain and as many
//! slots: measured, and left alone.

use std::collections::HashSet;

use crate::dispatch::may_write;
use crate::func::{Code, Function, Item};
use crate::insn::{self, Class, direct};
use crate::leads::leads;
use crate::parse::{IP, Mem, NONE, Op};
use crate::regs::{self, R15, RSP};
use ringfence_isa::window::HELD_REACH;

/// As many stores through the same registers, in a row without a branch, are worth it.
const STORES: usize = 3;

/// What `r11` holds the lower half of.
struct Held {
    /// The registers of the operand as it is printed, `%eax` or `%eax,%ecx,4`.
    registers: String,
    numbers: [u8; 2],
    /// What was added to them.
    add: i64,
}

/// The decisions for one function, and where its output stands.
pub(crate) struct Through<'f, 'a> {
    f: &'f Function<'a>,
    /// Which instructions begin to hold their operand, if it is not held yet, and the displacement to add for that.
    begins: Vec<Option<i64>>,
    /// Where control may come from elsewhere.
    targets: HashSet<u32>,
    held: Option<Held>,
}

impl<'f, 'a> Through<'f, 'a> {
    pub(crate) fn new(f: &'f Function<'a>) -> Self {
        let targets = targets(f);
        // A counter in memory: what the load waits for is the last store, and it may come too early for that.
        let counts: HashSet<_> = (f.codes.iter())
            .filter_map(|code| Some((stores(code)?, register(code.insn.ops().first()?)?)))
            .collect();
        let counter = |code: &Code<'_>| {
            let loaded = place(code).zip(code.insn.ops().last().and_then(register));
            loaded.is_some_and(|l| counts.contains(&l))
        };
        let mut begins = (f.codes.iter())
            .zip(leads(f))
            .map(|(code, leads)| (leads && loads(code) && !counter(code)).then_some(0))
            .collect::<Vec<_>>();
        stores_in_a_row(f, &targets, &mut begins);
        Through {
            f,
            begins,
            targets,
            held: None,
        }
    }

    /// Something that is no instruction stands in front of the next one. Of the labels that compilers make many only serve
    /// debug information.
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        const PASSED: [&str; 2] = [".loc", ".cfi"];
        let passed = match item {
            Item::Code(i) => !self.targets.contains(i),
            Item::Label(name) => name.starts_with(".L"),
            Item::Raw(text) => PASSED.iter().any(|p| text.starts_with(p)),
            Item::Align(_) | Item::ArgsSize(_) => true,
        };
        if !passed {
            self.forget();
        }
    }

    /// Something else than one instruction's ordinary text stands here.
    pub(crate) fn forget(&mut self) {
        self.held = None;
    }

    /// `r11` holds the sum of these registers of an operand, as it is printed, and a number.
    pub(crate) fn hold(&mut self, registers: &str, numbers: [u8; 2], add: Option<i64>) {
        self.held = add.map(|add| Held {
            registers: registers.to_owned(),
            numbers,
            add,
        });
    }

    /// Instruction `i` has become the text from `mark` on.
    pub(crate) fn instruction(&mut self, i: u32, buf: &mut String, mark: usize) {
        let code = &self.f.codes[i as usize];
        let text = &buf[mark..];
        if text.contains("r11") || !keeps(code.class) {
            return self.forget();
        }
        if let Some((text, held)) = self.changed(i, text) {
            buf.truncate(mark);
            buf.push_str(&text);
            self.held = Some(held);
        }
        let moved = |r: u8| writes(code, r) || r == R15 && buf[mark..].contains(", %r15\n");
        if self
            .held
            .as_ref()
            .is_some_and(|h| h.numbers.iter().any(|&r| moved(r)))
        {
            self.forget();
        }
    }

    /// The instruction with its operand by way of `r14`, if that is possible and worth it, and what is held then.
    fn changed(&mut self, i: u32, text: &str) -> Option<(String, Held)> {
        let code = &self.f.codes[i as usize];
        if code.class != Class::Plain || !code.insn.prefix.is_empty() || !may_stand_beside_rex(code) {
            return None;
        }
        let (before, operand) = text.split_once("%gs:")?;
        let (displacement, operand) = operand.split_once('(')?;
        let (registers, behind) = operand.split_once(')')?;
        if before.contains('\n') || !behind.ends_with('\n') || behind.trim_end().contains('\n') {
            return None;
        }
        let displacement: i64 = match displacement {
            "" => 0,
            number => number.parse().ok()?,
        };
        let reaches = |add: i64| (0..i64::from(HELD_REACH)).contains(&(displacement - add));
        let mut first = String::new();
        let held = match self.held.take() {
            Some(held) if held.registers == registers && reaches(held.add) => held,
            other => {
                self.held = other;
                let numbers = numbers(registers)?;
                let add = self.begins[i as usize].filter(|&add| reaches(add))?;
                first = match (numbers[1], add) {
                    (NONE, 0) => format!("\tmovl\t{registers}, %r11d\n"),
                    _ => format!("\tleal\t{add}({}), %r11d\n", wide(registers)?),
                };
                Held {
                    registers: registers.to_owned(),
                    numbers,
                    add,
                }
            }
        };
        let rest = match displacement - held.add {
            0 => String::new(),
            n => n.to_string(),
        };
        Some((format!("{first}{before}{rest}(%r14,%r11){behind}"), held))
    }
}

/// Whether `r11` is what it was behind such an instruction (unless its text names it).
fn keeps(class: Class) -> bool {
    matches!(
        class,
        Class::Plain | Class::Lea | Class::Push | Class::Pop | Class::Jcc | Class::Nop
    )
}

/// Whether an instruction may change a register.
pub(crate) fn writes(code: &Code<'_>, register: u8) -> bool {
    register != NONE && !insn::compares(code.insn.mnemonic) && may_write(code, register)
}

/// `ah` and its kin cannot stand beside registers from `r8` on.
fn may_stand_beside_rex(code: &Code<'_>) -> bool {
    !(code.insn.ops().iter()).any(|o| matches!(o, Op::Reg(r, _) if r.class == regs::Class::High))
}

/// The numbers of the base and the index in `%eax,%ecx,4`; no base: nothing.
pub(crate) fn numbers(registers: &str) -> Option<[u8; 2]> {
    let mut parts = registers.split(',');
    let mut number = || match parts.next() {
        None => Some(NONE),
        Some(name) => name.strip_prefix('%').and_then(regs::parse).map(|r| r.n),
    };
    Some([number()?, number()?])
}

/// The same registers in their 64-bit names.
pub(crate) fn wide(registers: &str) -> Option<String> {
    let [base, index] = numbers(registers)?;
    let mut text = format!("%{}", regs::q(base));
    if index != NONE {
        let scale = registers.rsplit(',').next()?;
        text.push_str(&format!(",%{},{scale}", regs::q(index)));
    }
    Some(text)
}

/// Whether an instruction loads a general register from a place with a base and without an index.
fn loads(code: &Code<'_>) -> bool {
    let base = |m: &Mem<'_>| m.index == NONE && !m.fs && !matches!(m.base, NONE | IP | RSP);
    matches!(code.insn.ops(), [Op::Mem(m), Op::Reg(r, _)]
        if code.class == Class::Plain && code.insn.mnemonic.starts_with("mov") && r.is_gpr() && base(m))
}

/// The general register that an operand is.
fn register(op: &Op<'_>) -> Option<u8> {
    match op {
        Op::Reg(r, _) if r.is_gpr() => Some(r.n),
        _ => None,
    }
}

/// The registers and the displacement of an instruction's operand.
fn place<'a>(code: &Code<'a>) -> Option<(Mem<'a>, i64)> {
    code.insn
        .mem()
        .and_then(|m| Some((Mem { disp: "", ..*m }, m.number()?)))
}

/// The place that an instruction stores to, and does nothing else with: its registers, and the displacement.
fn stores<'a>(code: &Code<'a>) -> Option<(Mem<'a>, i64)> {
    let mnemonic = code.insn.mnemonic;
    match code.insn.ops() {
        [Op::Reg(..) | Op::Imm(_), Op::Mem(m)]
            if code.class == Class::Plain
                && (mnemonic.starts_with("mov") || mnemonic.starts_with("vmov"))
                && !m.fs
                && !matches!(m.base, NONE | IP | RSP) =>
        {
            place(code)
        }
        _ => None,
    }
}

/// The instructions that jumps in this function, and exceptions, lead to.
pub(crate) fn targets(f: &Function<'_>) -> HashSet<u32> {
    let mut set: HashSet<u32> = f.marks.keys().copied().collect();
    for (i, code) in f.codes.iter().enumerate() {
        set.extend(f.targets(i as u32).unwrap_or_default());
        if let (Class::Jmp | Class::Jcc, Some(op)) = (code.class, code.insn.ops().first()) {
            set.extend(direct(code.insn.star, op).and_then(|name| f.find(name, i as u32)));
        }
        set.extend(code.pad.and_then(|pad| f.find(pad, i as u32)));
    }
    set
}

/// Marks the first of several stores through the same registers that nothing separates, with the lowest of their displacements.
fn stores_in_a_row(f: &Function<'_>, targets: &HashSet<u32>, begins: &mut [Option<i64>]) {
    let mut i = 0;
    while i < f.codes.len() {
        let Some((place, first)) = stores(&f.codes[i]) else {
            i += 1;
            continue;
        };
        let (mut count, mut lowest, mut next) = (1, first, i + 1);
        while let Some(code) = f.codes.get(next) {
            let moved = [place.base, place.index].iter().any(|&r| writes(code, r));
            if code.class != Class::Plain || targets.contains(&(next as u32)) || moved {
                break;
            }
            if let Some((other, displacement)) = stores(code)
                && other == place
            {
                count += 1;
                lowest = lowest.min(displacement);
            }
            next += 1;
        }
        if count >= STORES {
            begins[i] = Some(lowest);
            i = next;
        } else {
            i += 1;
        }
    }
}
