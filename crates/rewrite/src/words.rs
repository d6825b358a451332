//! The words mode: accesses through pointers that may lead to the host's objects.
//!
//! An ordinary operand never reaches the arena: such a pointer faults there. So nothing here makes code safe (the rules do), all
//! of it makes code work. In a straight line (labels, calls and the like end it, branches out of it do not) the first access
//! through a register, or a pair, is preceded by a test whether that is *local*; behind it, all accesses through the same are.
//! If it is not, control goes on in a copy of the line behind the function, where each access looks at its own address, and
//! foreign ones run the tests of `ringfence_isa::words`. The copy leads back to where the line ends.
//!
//! A pair's address is in `r11` behind its test, and the access goes on from there (`through.rs`).
//!
//! The tests change the flags. They are moved up to where nobody looks at them, or the flags wait in `rax`, and that on the control
//! stack.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::check::{flags_wanted, reads_flags};
use crate::func::{Code, Function, Item};
use crate::insn::{self, Class};
use crate::parse::{IP, Insn, Mem, NONE, Op};
use crate::regs::{self, R11, R15, RAX, RBP, RCX, RSP};
use crate::state::State;
use crate::through::{Through, numbers, targets, wide, writes};
use crate::unwind::Unwind;
use crate::words_known::{Known, Set, behind, goes, set};
use crate::words_size::size;
use ringfence_isa::words::{self, LOCAL, TABLE, VIEW};

/// What is known to be local: registers as an operand has them.
type Key = ([u8; 2], u8);

/// An access through a pointer.
pub(crate) struct Access {
    key: Key,
    /// The operand's text, `8(%eax,%ecx,4)` without `%gs:`, and its registers in 64 bits.
    displacement: String,
    registers: String,
    /// The same as they are in the operand.
    printed: String,
    /// Where the operand with its prefix is in the instruction's text.
    operand: std::ops::Range<usize>,
    /// The tests, if it can be done in foreign memory: bit, and displacement of the second.
    tests: Option<(u8, u32)>,
}

/// One instruction of a line, and where its text is.
pub(crate) struct Entry {
    pub i: u32,
    start: usize,
    end: usize,
    access: Option<Access>,
    /// A register that has the address of something local behind it.
    pub local: Option<u8>,
}

impl Entry {
    /// The only register of its access.
    pub(crate) fn single(&self) -> Option<u8> {
        let [base, index] = self.access.as_ref()?.key.0;
        (index == NONE).then_some(base)
    }
}

/// Instructions that are executed one behind the other.
pub(crate) struct Line {
    pub entries: Vec<Entry>,
    /// In front of it.
    state: State,
    row: u32,
}

/// A test in front of an instruction.
struct Test {
    access: usize,
    /// The flags are looked at: they have to be kept.
    keep: bool,
}

/// A copy of a line, to be written behind the function.
struct Copy {
    state: State,
    row: u32,
    text: String,
}

/// A function's lines.
pub(crate) struct Words<'f, 'a> {
    f: &'f Function<'a>,
    targets: HashSet<u32>,
    /// The function's number in its file.
    number: u32,
    /// How many lines had copies.
    copied: u32,
    cfi: bool,
    /// Operands by way of `r14`, if they may be.
    through: Option<Through<'f, 'a>>,
    lines: Vec<Line>,
    line: Vec<Entry>,
    /// In front of the line.
    state: Option<(State, u32)>,
}

const RESTORE: &str = "\taddb\t$127, %al\n\tsahf\n";

impl<'f, 'a> Words<'f, 'a> {
    pub(crate) fn new(f: &'f Function<'a>, number: u32, cfi: bool, through: Option<Through<'f, 'a>>) -> Self {
        Words {
            f,
            targets: targets(f),
            number,
            copied: 0,
            cfi,
            through,
            lines: Vec::new(),
            line: Vec::new(),
            state: None,
        }
    }

    /// What stands in front of the next instruction.
    pub(crate) fn item(&mut self, item: &Item<'_>) {
        let passed = match item {
            Item::Code(i) => !self.targets.contains(i),
            Item::Label(name) => name.starts_with(".L"),
            Item::Raw(text) => text.starts_with(".loc"),
            Item::Align(_) | Item::ArgsSize(_) => false,
        };
        if !passed {
            self.close();
        }
    }

    /// Instruction `i` has become the text from `mark` on.
    pub(crate) fn instruction(&mut self, i: u32, st: &State, buf: &str, mark: usize) {
        let code = &self.f.codes[i as usize];
        let plain = matches!(code.class, Class::Plain | Class::Lea | Class::Nop | Class::Jcc);
        let moved = |last: &Entry| buf[last.end..mark].contains(".cfi");
        if self.line.last().is_some_and(moved) || !plain || buf[mark..].contains(":\n") {
            self.close();
        }
        if !plain || buf[mark..].contains(":\n") {
            return;
        }
        if self.line.is_empty() {
            self.state = Some((*st, code.row));
        }
        self.line.push(Entry {
            i,
            start: mark,
            end: buf.len(),
            access: access(code, st, &buf[mark..]),
            local: local_address(code, st),
        });
    }

    /// The line ends.
    fn close(&mut self) {
        let entries = std::mem::take(&mut self.line);
        if let Some((state, row)) = self.state.take().filter(|_| !entries.is_empty()) {
            self.lines.push(Line { entries, state, row });
        }
    }

    /// Puts tests into the lines, and writes their copies behind all of the function's own code.
    pub(crate) fn finish(&mut self, buf: &mut String, mut unwind: Option<&mut Unwind>) {
        self.close();
        let lines = std::mem::take(&mut self.lines);
        let begin = match lines.first() {
            Some(line) if lines.iter().flat_map(|l| &l.entries).any(|e| e.access.is_some()) => {
                line.entries[0].start
            }
            _ => return,
        };
        let known = Known::new(self.f, &lines);
        let mut main = String::with_capacity(2 * (buf.len() - begin));
        let (mut copies, mut at) = (Vec::new(), begin);
        for line in &lines {
            let (first, last) = (&line.entries[0], &line.entries[line.entries.len() - 1]);
            let hoisted = known.hoisted.get(&first.i).copied().unwrap_or_default();
            for r in (0..16).filter(|&r| hoisted & set(r) != 0) {
                let (tested, other) = (regs::d(r), self.other(first.i));
                let _ = write!(main, "\tcmpl\t${LOCAL}, %{tested}\n\tjl\t{other}\n");
            }
            main.push_str(&buf[at..first.start]);
            at = last.end;
            copies.extend(self.line(line, &known, buf, &mut main));
        }
        main.push_str(&buf[at..]);
        buf.truncate(begin);
        buf.push_str(&main);
        for copy in copies {
            if let Some(unwind) = &mut unwind {
                unwind.sync(buf, &copy.state, &self.f.rows[copy.row as usize], copy.row);
            }
            buf.push_str(&copy.text);
        }
    }

    /// Where the copy of the line that begins with an instruction begins.
    fn other(&self, i: u32) -> String {
        format!(".Lrf_v{}_{i}", self.number)
    }

    /// Where a copy goes on instead of instruction `i`: in another copy, if something is known there.
    fn on(&self, known: &Known, mut i: u32) -> Option<String> {
        for _ in 0..self.f.codes.len() {
            self.f.codes.get(i as usize)?;
            match goes(self.f, i) {
                Some(to) => i = to,
                None => return (known.before(i) != 0).then(|| self.other(i)),
            }
        }
        None
    }

    /// Where a conditional jump in a copy leads, if that is another copy.
    fn branch(&self, known: &Known, i: u32) -> Option<String> {
        let code = &self.f.codes[i as usize];
        let op = code.insn.ops().first().filter(|_| code.class == Class::Jcc)?;
        let to = insn::direct(code.insn.star, op).and_then(|name| self.f.find(name, i))?;
        self.on(known, to)
    }

    /// Writes a line with its tests; gives its copy, if it has one.
    fn line(&mut self, line: &Line, known: &Known, buf: &str, main: &mut String) -> Option<Copy> {
        let entries = &line.entries;
        let (begin, behind) = (entries[0].i, entries[entries.len() - 1].i + 1);
        let tests = self.tests(line, known);
        // The copy begins where something leads to it, and ends where it does not matter any more which of both is executed.
        let entered = known.before(begin) != 0;
        let first = match entered {
            true => Some(0),
            false => tests.iter().position(|t| !t.is_empty()),
        };
        let on = self.on(known, behind);
        let after_accesses = entries
            .iter()
            .rposition(|e| e.access.is_some())
            .map_or(0, |n| n + 1);
        let stays = on.is_some()
            || entries[after_accesses..]
                .iter()
                .any(|e| self.branch(known, e.i).is_some());
        let end = if stays { entries.len() } else { after_accesses };
        self.copied += u32::from(first.is_some());
        let name = format!(".Lrf_w{}_{}", self.number, self.copied);
        let [push, pop] = self.cfi_moves();

        let (mut copy, mut kept) = (String::new(), String::new());
        if entered {
            let _ = writeln!(copy, "{}:", self.other(begin));
        }
        let mut through = self.through.take();
        // Control may come from elsewhere.
        if let Some(through) = &mut through {
            through.forget();
        }
        let mut at = entries[0].start;
        for (n, entry) in entries.iter().enumerate() {
            if n == end && first.is_some() {
                let _ = writeln!(main, "{name}:");
                if let Some(through) = &mut through {
                    through.forget();
                }
            }
            main.push_str(&buf[at..entry.start]);
            at = entry.end;
            if !tests[n].is_empty() {
                let _ = writeln!(copy, "{name}_{n}:");
            }
            for (k, test) in tests[n].iter().enumerate() {
                let Some(access) = &entries[test.access].access else {
                    continue;
                };
                let load = (access.key.0[1] != NONE).then(|| access.load());
                if let (Some(through), true) = (&mut through, load.is_some()) {
                    through.hold(&access.printed, access.key.0, access.number());
                }
                let tested = match load {
                    Some(_) => "r11d",
                    None => regs::d(access.key.0[0]),
                };
                main.push_str(load.as_deref().unwrap_or_default());
                if test.keep {
                    let _ = write!(
                        main,
                        "\tpushq\t%rax\n{push}\tlahf\n\tseto\t%al\n\tcmpl\t${LOCAL}, %{tested}\n\tjl\t{name}_{n}k{k}\n\
                         {RESTORE}\tpopq\t%rax\n{pop}"
                    );
                    let _ = write!(
                        kept,
                        "{name}_{n}k{k}:\n{push}{RESTORE}\tpopq\t%rax\n{pop}\tjmp\t{name}_{n}\n"
                    );
                } else {
                    let _ = write!(main, "\tcmpl\t${LOCAL}, %{tested}\n\tjl\t{name}_{n}\n");
                }
            }
            let text = &buf[entry.start..entry.end];
            let mark = main.len();
            main.push_str(text);
            if let Some(through) = &mut through {
                through.instruction(entry.i, main, mark);
            }
            if first.is_none_or(|first| n < first) || n >= end {
                continue;
            }
            if let Some(to) = self.branch(known, entry.i) {
                let _ = writeln!(copy, "\t{}\t{to}", self.f.codes[entry.i as usize].insn.mnemonic);
                continue;
            }
            match entry
                .access
                .as_ref()
                .and_then(|a| self.foreign(entry.i, a, text, &format!("{name}_{n}")))
            {
                Some(foreign) => copy.push_str(&foreign),
                None => copy.push_str(text),
            }
        }
        self.through = through;
        first?;
        if end == entries.len() {
            let _ = writeln!(main, "{name}:");
        }
        let _ = writeln!(copy, "\tjmp\t{}", on.unwrap_or(name));
        copy.push_str(&kept);
        Some(Copy {
            state: line.state,
            row: line.row,
            text: copy,
        })
    }

    /// Where tests are needed, for each instruction.
    fn tests(&self, line: &Line, facts: &Known) -> Vec<Vec<Test>> {
        let line = &line.entries;
        let known = facts.before(line[0].i);
        let mut tests: Vec<Vec<Test>> = line.iter().map(|_| Vec::new()).collect();
        let code = |e: &Entry| &self.f.codes[e.i as usize];
        let changes = |e: &Entry, key: &Key| key.0.iter().any(|&r| writes(code(e), r));
        let (mut known, mut pairs): (Set, Vec<Key>) = (known, Vec::new());
        for (n, entry) in line.iter().enumerate() {
            let single = entry.single();
            if let Some(access) = &entry.access
                && !facts.own(entry.i, access.key.0)
                && !single.map_or(pairs.contains(&access.key), |r| known & set(r) != 0)
            {
                let mut at = n;
                while at > 0 && flags_wanted(self.f, line[at].i) && !changes(&line[at - 1], &access.key) {
                    at -= 1;
                }
                let keep = flags_wanted(self.f, line[at].i);
                let at = if keep { n } else { at };
                tests[at].push(Test { access: n, keep });
                if single.is_none() {
                    pairs.push(access.key);
                }
            }
            let tested = single.filter(|&r| !facts.own(entry.i, [r, NONE]));
            known = behind(code(entry), tested, entry.local, known);
            pairs.retain(|key| !changes(entry, key));
        }
        tests
    }

    fn cfi_moves(&self) -> [&'static str; 2] {
        match self.cfi {
            true => ["\t.cfi_adjust_cfa_offset 8\n", "\t.cfi_adjust_cfa_offset -8\n"],
            false => [""; 2],
        }
    }

    /// An access that looks at its own address, if that is possible for this instruction.
    fn foreign(&self, i: u32, access: &Access, text: &str, name: &str) -> Option<String> {
        let (bit, second) = access.tests?;
        let code = &self.f.codes[i as usize];
        // `ah` and its kin cannot stand beside `r11`: they change places with their lower neighbours meanwhile.
        let high = code.insn.ops().iter().find_map(|o| match o {
            Op::Reg(r, name) if r.class == regs::Class::High => {
                Some((*name, regs::name(r.n, regs::Class::B)))
            }
            _ => None,
        });
        if high.is_some() && flags_wanted(self.f, i) {
            return None;
        }
        let [push, pop] = self.cfi_moves();
        let insn = &code.insn;
        let load = access.load();
        let view = format!("{VIEW}(%r14,%r11)");
        let place = |operand: &str| {
            let (before, behind) = (&text[..access.operand.start], &text[access.operand.end..]);
            format!("{before}{operand}{behind}")
        };
        let test = |d: u32| {
            format!(
                "\ttestb\t${bit}, %gs:{}(%r11d)\n\tcmovel\t%r14d, %r11d\n",
                TABLE + d
            )
        };
        let mut tests = test(0);
        if second != 0 {
            tests += &test(second);
        }
        let look = format!("\tcmpl\t${LOCAL}, %r11d\n\tjge\t{name}l\n");
        if !flags_wanted(self.f, i) {
            let (op, swap) = match &high {
                None => (place(&view), String::new()),
                Some((high, low)) => (
                    place(&view).replacen(high, &format!("%{low}"), 1),
                    format!("\txchgb\t%{low}, {high}\n"),
                ),
            };
            return Some(format!(
                "{load}{look}{swap}{tests}{op}{swap}\tjmp\t{name}n\n{name}l:\n{text}{name}n:\n"
            ));
        }
        let wait = format!("\tpushq\t%rax\n{push}\tlahf\n\tseto\t%al\n");
        let resume = format!("{RESTORE}\tpopq\t%rax\n{pop}");
        let other = |foreign: String| {
            format!(
                "{load}{wait}{look}{tests}{foreign}\tjmp\t{name}n\n{name}l:\n{push}{resume}{text}{name}n:\n"
            )
        };
        let of = |op: Option<&Op<'_>>| match op {
            Some(Op::Reg(r, _)) if r.is_gpr() => Some(*r),
            _ => None,
        };
        let moves = insn.mnemonic.starts_with("mov") && insn.prefix.is_empty();
        match insn.ops() {
            [Op::Mem(_)] if insn.mnemonic.starts_with("set") => Some(format!(
                "{load}\tpushq\t%rcx\n{push}\t{set}\t%cl\n{wait}{look}{tests}\tmovb\t%cl, {view}\n\tjmp\t{name}n\n\
                 {name}l:\n\tmovb\t%cl, %gs:(%r11d)\n{name}n:\n{resume}\tpopq\t%rcx\n{pop}",
                set = insn.mnemonic
            )),
            [Op::Mem(_), to @ Op::Reg(..)] if reads_flags(insn) && of(Some(to)).is_some() => {
                let r = of(Some(to))?;
                let via = regs::name(R11, r.class);
                let suffix = suffix(r.class)?;
                let op = place(&format!("%{via}"));
                Some(other(format!("\tmov{suffix}\t{view}, %{via}\n{resume}{op}")))
            }
            _ if reads_flags(insn) => None,
            [Op::Mem(_), to @ Op::Reg(..)] if of(Some(to)).is_some_and(|r| r.n == RAX) => {
                let r = of(Some(to)).filter(|_| moves)?;
                let via = regs::name(R11, r.class);
                let suffix = suffix(r.class)?;
                let to = regs::name(RAX, r.class);
                let op = place(&view);
                let op = op.strip_suffix(&format!("%{to}\n"))?;
                Some(other(format!(
                    "{op}%{via}\n{resume}\tmov{suffix}\t%{via}, %{to}\n"
                )))
            }
            [Op::Reg(r, name_of), Op::Mem(_)] if r.is_gpr() && r.n == RAX => {
                if !moves {
                    return None;
                }
                let op = place(&view).replacen(name_of, &format!("%{}", regs::name(RCX, r.class)), 1);
                Some(format!(
                    "{load}\tpushq\t%rcx\n{push}\tmovq\t%rax, %rcx\n{wait}{look}{tests}{op}{resume}\tpopq\t%rcx\n{pop}\
                     \tjmp\t{name}n\n{name}l:\n{push}{push}{resume}\tpopq\t%rcx\n{pop}{text}{name}n:\n"
                ))
            }
            ops if ops.iter().any(|o| of(Some(o)).is_some_and(|r| r.n == RAX)) => None,
            _ if sets_flags_too(insn) => None,
            _ => Some(other(format!("{}{resume}", place(&view)))),
        }
    }
}

impl Access {
    /// Its address into `r11d`.
    fn load(&self) -> String {
        format!("\tleal\t{}({}), %r11d\n", self.displacement, self.registers)
    }

    /// Its displacement, if it is a number.
    fn number(&self) -> Option<i64> {
        match self.displacement.as_str() {
            "" => Some(0),
            number => number.parse().ok(),
        }
    }
}

/// The suffix of a move between general registers.
fn suffix(class: regs::Class) -> Option<char> {
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
fn sets_flags_too(insn: &Insn<'_>) -> bool {
    let vector = insn
        .ops()
        .iter()
        .any(|o| matches!(o, Op::Reg(r, _) if r.class == regs::Class::Vector));
    !vector && !insn.mnemonic.starts_with("mov") && !insn.mnemonic.starts_with("not")
}

/// The access that an instruction makes through a pointer, if it is one line with one operand through `gs`.
fn access(code: &Code<'_>, st: &State, text: &str) -> Option<Access> {
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
fn local_address(code: &Code<'_>, st: &State) -> Option<u8> {
    let table = |m: &Mem<'_>| code.insn.mnemonic == "movq" && m.base == IP && m.disp.ends_with("@GOTPCREL");
    let m = code.insn.mem().filter(|m| code.class == Class::Lea || table(m))?;
    let own = matches!(m.base, RSP | IP) || m.base == RBP && st.frame != 0;
    (own && m.index == NONE && !m.fs)
        .then(|| code.insn.dest())
        .flatten()
        .filter(|r| r.class == regs::Class::Q)
        .map(|r| r.n)
}
