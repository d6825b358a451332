//! The faults: what each type of Rio (Chen and others, 1996) and Nooks (Swift and others, 2003) does to a line of assembly.
//!
//! Each stands for a mistake of a programmer as it comes out of a compiler. Whatever is put in leaves the flags as they are, because
//! nobody knows here who reads them.

use crate::text::{Instruction, Unit, others, registers};
use ringfence_attack::rng::Rng;
use serde::{Deserialize, Serialize};

/// A type of fault.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, clap::ValueEnum,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Another register is read.
    Source,
    /// Another register is written.
    Destination,
    /// Another register is taken for a pointer.
    Pointer,
    /// An argument of a call is not set.
    Interface,
    /// A conditional jump is never taken, or the other way round.
    Branch,
    /// A comparison that ends a loop is off by one: less for less or equal, and the like.
    Loop,
    /// A number in the text has one bit changed.
    Flip,
    /// An instruction is missing.
    Delete,
    /// A variable is not initialised.
    Initialisation,
    /// A word on the stack has its bits turned after it was written.
    Stack,
    /// A byte in memory has its bits turned after it was written.
    Heap,
    /// A copy or fill takes too many bytes.
    Overrun,
    /// A number that something is compared with is one too large or too small.
    OffByOne,
    /// Memory is freed as soon as it was allocated.
    EarlyFree,
    /// A lock is not taken, or not given back.
    Lock,
    /// A lock is given back where it should be taken, and the other way round.
    LockOrder,
    /// Nobody waits for another thread, or wakes it.
    Wait,
}

/// All types.
pub const KINDS: [Kind; 17] = [
    Kind::Source,
    Kind::Destination,
    Kind::Pointer,
    Kind::Interface,
    Kind::Branch,
    Kind::Loop,
    Kind::Flip,
    Kind::Delete,
    Kind::Initialisation,
    Kind::Stack,
    Kind::Heap,
    Kind::Overrun,
    Kind::OffByOne,
    Kind::EarlyFree,
    Kind::Lock,
    Kind::LockOrder,
    Kind::Wait,
];

/// Functions that take a lock, each with the one that gives it back.
const LOCKS: [(&str, &str); 4] = [
    ("pthread_mutex_lock", "pthread_mutex_unlock"),
    ("pthread_rwlock_rdlock", "pthread_rwlock_unlock"),
    ("pthread_rwlock_wrlock", "pthread_rwlock_unlock"),
    ("mtx_lock", "mtx_unlock"),
];
/// Functions that wait for another thread, or wake it.
const WAITS: [&str; 8] = [
    "pthread_cond_wait",
    "pthread_cond_timedwait",
    "pthread_cond_signal",
    "pthread_cond_broadcast",
    "pthread_join",
    "cnd_wait",
    "cnd_signal",
    "thrd_join",
];

impl Kind {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Source => "source",
            Kind::Destination => "destination",
            Kind::Pointer => "pointer",
            Kind::Interface => "interface",
            Kind::Branch => "branch",
            Kind::Loop => "loop",
            Kind::Flip => "flip",
            Kind::Delete => "delete",
            Kind::Initialisation => "initialisation",
            Kind::Stack => "stack",
            Kind::Heap => "heap",
            Kind::Overrun => "overrun",
            Kind::OffByOne => "off by one",
            Kind::EarlyFree => "early free",
            Kind::Lock => "lock missing",
            Kind::LockOrder => "lock in swapped order",
            Kind::Wait => "wait missing",
        }
    }

    /// The lines that stand in the place of this one, if the fault can happen there.
    pub fn inject(self, unit: &Unit, line: usize, rng: &mut Rng) -> Option<Vec<String>> {
        let i = unit.instruction(line)?;
        let was = crate::text::bare(&unit.lines[line]);
        let operand = |n: usize| i.operands.get(n).copied().unwrap_or_default();
        let last = i.operands.last().copied().unwrap_or_default();
        match self {
            Kind::Source
                if i.is(&["mov", "add", "sub", "and", "or", "xor", "cmp", "imul"])
                    && i.operands.len() == 2 =>
            {
                another_register(was, operand(0), was.find(operand(0))?, rng)
            }
            Kind::Destination
                if i.is(&["mov", "add", "sub", "and", "or", "xor", "imul", "lea"]) && !i.frames() =>
            {
                another_register(was, last, was.rfind(last)?, rng)
            }
            Kind::Pointer if !i.is(&["lea"]) && !i.frames() => {
                let at = was.find("(%")? + 1;
                let base = was[at..].split([',', ')']).next()?;
                another_register(was, base, at, rng)
            }
            Kind::Interface
                if !i.frames() && last.starts_with('%') && argument(last) && call_follows(unit, line) =>
            {
                Some(Vec::new())
            }
            Kind::Branch => {
                let condition = i.condition()?;
                let turned = condition
                    .strip_prefix('n')
                    .map_or(format!("n{condition}"), String::from);
                Some(match rng.one_in(2) {
                    true => Vec::new(),
                    false => vec![format!("\tj{turned}\t{}", operand(0))],
                })
            }
            Kind::Loop => {
                let swapped = match i.condition()? {
                    "l" => "le",
                    "le" => "l",
                    "g" => "ge",
                    "ge" => "g",
                    "b" => "be",
                    "be" => "b",
                    "a" => "ae",
                    "ae" => "a",
                    _ => return None,
                };
                Some(vec![format!("\tj{swapped}\t{}", operand(0))])
            }
            Kind::Flip if !i.frames() => number(was, &i, |n| n ^ (1 << rng.below(15))),
            Kind::OffByOne if i.is(&["cmp"]) => {
                number(was, &i, |n| if rng.one_in(2) { n + 1 } else { n - 1 })
            }
            Kind::Delete if !i.frames() && !i.name.starts_with('j') => Some(Vec::new()),
            Kind::Initialisation if i.is(&["mov"]) && operand(0).starts_with('$') => Some(Vec::new()),
            Kind::Initialisation if i.is(&["xor"]) && operand(0) == last && last.starts_with('%') => {
                Some(Vec::new())
            }
            Kind::Stack if i.is(&["mov"]) && last.ends_with("(%rsp)") => {
                Some(vec![was.into(), format!("\tnotb\t{last}")])
            }
            Kind::Heap
                if i.is(&["mov"])
                    && last.ends_with(')')
                    && !last.contains("%rsp")
                    && !last.contains("%rip") =>
            {
                Some(vec![was.into(), format!("\tnotb\t{last}")])
            }
            Kind::Overrun if matches!(i.callee()?, "memcpy" | "memmove" | "memset") => {
                let more = rng.pick(&[1, 8, 64, 1024, 4096, 32768]);
                Some(vec![format!("\tleaq\t{more}(%rdx), %rdx"), was.into()])
            }
            Kind::EarlyFree if matches!(i.callee()?, "malloc" | "calloc" | "realloc") => {
                let call = was.replace(i.callee()?, "free");
                // The directives tell where the frame is: an assembler's input has to be right, whatever the program does.
                let push = ["\tpushq\t%rax", "\t.cfi_adjust_cfa_offset 8"];
                let pop = ["\tpopq\t%rax", "\t.cfi_adjust_cfa_offset -8"];
                let free = ["\tmovq\t%rax, %rdi", &call];
                let lines = [&[was], &push[..], &push, &free, &pop, &pop].concat();
                Some(lines.into_iter().map(String::from).collect())
            }
            Kind::Lock => {
                let target = i.target()?;
                let known = LOCKS.iter().any(|(a, b)| [*a, *b].contains(&target));
                known.then(|| succeeds(&i))
            }
            Kind::LockOrder => {
                let target = i.target()?;
                let swapped = LOCKS.iter().find_map(|&(take, give)| match target {
                    t if t == take => Some(give),
                    t if t == give => Some(take),
                    _ => None,
                })?;
                Some(vec![was.replace(target, swapped)])
            }
            Kind::Wait => WAITS.contains(&i.target()?).then(|| succeeds(&i)),
            _ => None,
        }
    }
}

/// In the place of a call, or of a jump to a function at another's end: nothing is done, and it went well.
fn succeeds(i: &Instruction<'_>) -> Vec<String> {
    let lines: &[&str] = match i.name {
        "jmp" => &["\txorl\t%eax, %eax", "\tret"],
        _ => &["\txorl\t%eax, %eax"],
    };
    lines.iter().map(|&l| l.into()).collect()
}

/// The line with another register in the place of the one that the operand is.
fn another_register(line: &str, operand: &str, at: usize, rng: &mut Rng) -> Option<Vec<String>> {
    let (place, name) = registers(operand)
        .into_iter()
        .next()
        .filter(|(p, _)| p.start == 1 && p.end == operand.len())?;
    let others = others(name);
    let other = rng.pick(&others);
    let (from, to) = (at + place.start, at + place.end);
    Some(vec![format!("{}{other}{}", &line[..from], &line[to..])])
}

/// The line with another number in the place of its immediate operand.
fn number(line: &str, i: &Instruction<'_>, change: impl FnOnce(i64) -> i64) -> Option<Vec<String>> {
    let text = i.operands.first()?.strip_prefix('$')?;
    let n: i64 = text.parse().ok()?;
    Some(vec![line.replacen(
        &format!("${text}"),
        &format!("${}", change(n)),
        1,
    )])
}

/// Whether a register carries one of the first four arguments.
fn argument(register: &str) -> bool {
    matches!(
        register,
        "%edi" | "%esi" | "%edx" | "%ecx" | "%rdi" | "%rsi" | "%rdx" | "%rcx"
    )
}

/// Whether a call follows within eight lines of the same straight line.
fn call_follows(unit: &Unit, line: usize) -> bool {
    let next = (line + 1..line + 9).map_while(|at| unit.instruction(at).filter(|i| !i.name.starts_with('j')));
    next.into_iter().any(|i| i.name == "call")
}

/// A fault in a place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mutation {
    /// Its type.
    pub kind: Kind,
    /// The unit.
    pub unit: String,
    /// The line, from 0.
    pub line: usize,
    /// What stood there.
    pub was: String,
    /// What stands there now.
    pub now: Vec<String>,
}

impl Mutation {
    /// The lines, among those of units, in which a fault of a type can happen.
    pub fn places(kind: Kind, units: &[Unit], lines: &[(usize, usize)]) -> Vec<(usize, usize)> {
        let able =
            |&&(unit, line): &&(usize, usize)| kind.inject(&units[unit], line, &mut Rng::new(1)).is_some();
        lines.iter().filter(able).copied().collect()
    }

    /// Chooses one of a type among its places, each as likely as the others; `None` if there is none.
    pub fn choose(kind: Kind, places: &[(usize, usize)], units: &[Unit], rng: &mut Rng) -> Option<Mutation> {
        let &(unit, line) = places.get(rng.below(places.len().max(1) as u64) as usize)?;
        let unit = &units[unit];
        Some(Mutation {
            kind,
            unit: unit.name.clone(),
            line,
            was: crate::text::bare(&unit.lines[line]).trim().into(),
            now: kind.inject(unit, line, rng)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "f:
\tmovq\t%rdi, %rbx
\tmovl\t$0, 8(%rsp)
\tmovq\t%rsi, 16(%rbx)
\tcmpl\t$7, %eax
\tjle\t.L2
\tmovl\t$1, %edi
\tcall\tmalloc@PLT
\tcall\tmemcpy@PLT
\tcall\tpthread_mutex_lock@PLT
\tcall\tpthread_cond_wait@PLT
\tjmp\tpthread_mutex_unlock@PLT
.L2:
\tret
";

    #[test]
    fn each_type_has_its_places() {
        let unit = Unit::new("f", TEXT);
        let lines: Vec<_> = (0..unit.lines.len()).map(|l| (0, l)).collect();
        let units = [unit];
        for kind in KINDS {
            let places = Mutation::places(kind, &units, &lines);
            let m = Mutation::choose(kind, &places, &units, &mut Rng::new(1))
                .unwrap_or_else(|| panic!("{kind:?} has no place"));
            assert_ne!(m.now, [units[0].lines[m.line].clone()], "{kind:?}");
            assert!(!m.was.starts_with("ret"), "{kind:?}");
        }
    }

    #[test]
    fn the_fault_is_what_its_type_says() {
        let unit = Unit::new("f", TEXT);
        let mut rng = Rng::new(2);
        assert_eq!(
            Kind::Loop.inject(&unit, 5, &mut rng).expect("a place"),
            ["\tjl\t.L2"]
        );
        assert_eq!(
            Kind::Interface.inject(&unit, 6, &mut rng).expect("a place"),
            Vec::<String>::new()
        );
        assert_eq!(
            Kind::Stack.inject(&unit, 2, &mut rng).expect("a place")[1],
            "\tnotb\t8(%rsp)"
        );
        let bound = Kind::OffByOne.inject(&unit, 4, &mut rng).expect("a place");
        assert!(bound == ["\tcmpl\t$8, %eax"] || bound == ["\tcmpl\t$6, %eax"]);
        let pointer = Kind::Pointer.inject(&unit, 3, &mut rng).expect("a place");
        assert!(pointer[0].starts_with("\tmovq\t%rsi, 16(%") && !pointer[0].contains("rbx"));
        assert!(Kind::EarlyFree.inject(&unit, 8, &mut rng).is_none());
        let nothing = ["\txorl\t%eax, %eax"];
        assert_eq!(Kind::Lock.inject(&unit, 9, &mut rng).expect("a place"), nothing);
        assert_eq!(Kind::Wait.inject(&unit, 10, &mut rng).expect("a place"), nothing);
        assert_eq!(
            Kind::Lock.inject(&unit, 11, &mut rng).expect("a place"),
            [nothing[0], "\tret"]
        );
        assert_eq!(
            Kind::LockOrder.inject(&unit, 11, &mut rng).expect("a place"),
            ["\tjmp\tpthread_mutex_lock@PLT"]
        );
    }
}
