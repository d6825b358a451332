//! The words mode: accesses through pointers that may lead to the host's objects.
//!
//! An ordinary operand never reaches the arena: such a pointer faults there. So nothing here makes code safe (the rules do), all
//! of it makes code work. In a straight line (labels, calls and the like end it, branches out of it do not) the first access
//! through a register, or a pair, is preceded by a test whether that is *local*; behind it, all accesses through the same are.
//! If it is not, control goes on in a copy of the line behind the function, where each access looks at its own address, and
//! foreign ones run the tests of `ringfence_isa::words`. The copy leads back to where the line ends.
//!
//! The tests change the flags. They are moved up to where nobody looks at them, or the flags wait in `rax`, and that on the control
//! stack.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::check::{flags_wanted, reads_flags};
use crate::func::{Code, Function, Item};
use crate::insn::{self, Class};
use crate::parse::{IP, Insn, NONE, Op};
use crate::regs::{self, R11, R15, RAX, RBP, RCX, RSP};
use crate::state::State;
use crate::through::{may_stand_beside_rex, numbers, targets, wide, writes};
use crate::unwind::Unwind;
use crate::words_size::size;
use ringfence_isa::words::{self, LOCAL, TABLE, VIEW};

/// What is known to be local: registers as an operand has them.
type Key = ([u8; 2], u8);

/// An access through a pointer.
struct Access {
    key: Key,
    /// The operand's text, `8(%eax,%ecx,4)` without `%gs:`, and its registers in 64 bits.
    displacement: String,
    registers: String,
    /// Where the operand with its prefix is in the instruction's text.
    operand: std::ops::Range<usize>,
    /// The tests, if it can be done in foreign memory: bit, and displacement of the second.
    tests: Option<(u8, u32)>,
}

/// One instruction of a line, and where its text is.
struct Entry {
    i: u32,
    start: usize,
    end: usize,
    access: Option<Access>,
    /// A register that has the address of something local behind it.
    local: Option<u8>,
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
    lines: u32,
    cfi: bool,
    line: Vec<Entry>,
    /// In front of the line.
    state: Option<(State, u32)>,
    copies: Vec<Copy>,
}

const RESTORE: &str = "\taddb\t$127, %al\n\tsahf\n";

impl<'f, 'a> Words<'f, 'a> {
    pub(crate) fn new(f: &'f Function<'a>, number: u32, cfi: bool) -> Self {
        Words {
            f,
            targets: targets(f),
            number,
            lines: 0,
            cfi,
            line: Vec::new(),
            state: None,
            copies: Vec::new(),
        }
    }

    /// What stands in front of the next instruction.
    pub(crate) fn item(&mut self, item: &Item<'_>, buf: &mut String) {
        let passed = match item {
            Item::Code(i) => !self.targets.contains(i),
            Item::Label(name) => name.starts_with(".L"),
            Item::Raw(text) => text.starts_with(".loc"),
            Item::Align(_) | Item::ArgsSize(_) => false,
        };
        if !passed {
            self.close(buf);
        }
    }

    /// Instruction `i` has become the text from `mark` on.
    pub(crate) fn instruction(&mut self, i: u32, st: &State, buf: &mut String, mark: usize) {
        let code = &self.f.codes[i as usize];
        let plain = matches!(code.class, Class::Plain | Class::Lea | Class::Nop | Class::Jcc);
        if self
            .line
            .last()
            .is_some_and(|last| buf[last.end..mark].contains(".cfi"))
        {
            let behind = buf.split_off(mark);
            self.close(buf);
            buf.push_str(&behind);
            // The text has moved.
            let mark = buf.len() - behind.len();
            return self.instruction(i, st, buf, mark);
        }
        if !plain || buf[mark..].contains(":\n") {
            let behind = buf.split_off(mark);
            self.close(buf);
            buf.push_str(&behind);
            return;
        }
        if self.line.is_empty() {
            self.state = Some((*st, code.row));
        }
        let entry = Entry {
            i,
            start: mark,
            end: buf.len(),
            access: access(code, st, &buf[mark..]),
            local: local_address(code, st),
        };
        self.line.push(entry);
    }

    /// Ends the line: tests are put into it, and its copy is kept for later.
    pub(crate) fn close(&mut self, buf: &mut String) {
        let line = std::mem::take(&mut self.line);
        let Some(last) = line.iter().rposition(|e| e.access.is_some()) else {
            return;
        };
        let tests = self.tests(&line);
        let Some(first) = tests.iter().position(|t| !t.is_empty()) else {
            return;
        };
        let Some((state, row)) = self.state else { return };
        self.lines += 1;
        let name = format!(".Lrf_w{}_{}", self.number, self.lines);
        let [push, pop] = self.cfi_moves();

        let end = line[last].end;
        let mut main = String::with_capacity(2 * (end - line[first].start));
        let mut copy = String::with_capacity(6 * (end - line[first].start));
        let mut kept = String::new();
        let mut at = line[first].start;
        for (n, entry) in line.iter().enumerate().take(last + 1).skip(first) {
            main.push_str(&buf[at..entry.start]);
            at = entry.end;
            if !tests[n].is_empty() {
                let _ = writeln!(copy, "{name}_{n}:");
            }
            for (k, test) in tests[n].iter().enumerate() {
                let Some(access) = &line[test.access].access else {
                    continue;
                };
                let load = (access.key.0[1] != NONE).then(|| access.load());
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
            main.push_str(text);
            match entry
                .access
                .as_ref()
                .and_then(|a| self.foreign(entry.i, a, text, &format!("{name}_{n}")))
            {
                Some(foreign) => copy.push_str(&foreign),
                None => copy.push_str(text),
            }
        }
        let _ = writeln!(main, "{name}:");
        let _ = writeln!(copy, "\tjmp\t{name}");
        buf.replace_range(line[first].start..end, &main);
        copy.push_str(&kept);
        self.copies.push(Copy {
            state,
            row,
            text: copy,
        });
    }

    /// Where tests are needed, for each instruction.
    fn tests(&self, line: &[Entry]) -> Vec<Vec<Test>> {
        let mut tests: Vec<Vec<Test>> = line.iter().map(|_| Vec::new()).collect();
        let code = |e: &Entry| &self.f.codes[e.i as usize];
        let changes = |e: &Entry, key: &Key| key.0.iter().any(|&r| writes(code(e), r));
        let mut known: Vec<Key> = Vec::new();
        for (n, entry) in line.iter().enumerate() {
            if let Some(access) = &entry.access
                && !known.contains(&access.key)
            {
                let mut at = n;
                while at > 0 && flags_wanted(self.f, line[at].i) && !changes(&line[at - 1], &access.key) {
                    at -= 1;
                }
                let keep = flags_wanted(self.f, line[at].i);
                let at = if keep { n } else { at };
                tests[at].push(Test { access: n, keep });
                known.push(access.key);
            }
            known.retain(|key| !changes(entry, key));
            known.extend(entry.local.map(|r| ([r, NONE], 1)));
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
        if !may_stand_beside_rex(code) {
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
            return Some(format!(
                "{load}{look}{tests}{op}\tjmp\t{name}n\n{name}l:\n{text}{name}n:\n",
                op = place(&view)
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

    /// Writes the copies, behind all of the function's own code.
    pub(crate) fn finish(&mut self, buf: &mut String, mut unwind: Option<&mut Unwind>) {
        self.close(buf);
        for copy in std::mem::take(&mut self.copies) {
            if let Some(unwind) = &mut unwind {
                unwind.sync(buf, &copy.state, &self.f.rows[copy.row as usize], copy.row);
            }
            buf.push_str(&copy.text);
        }
    }
}

impl Access {
    /// Its address into `r11d`.
    fn load(&self) -> String {
        format!("\tleal\t{}({}), %r11d\n", self.displacement, self.registers)
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
    let m = code.insn.mem().filter(|_| code.class == Class::Lea)?;
    let own = matches!(m.base, RSP | IP) || m.base == RBP && st.frame != 0;
    (own && m.index == NONE && !m.fs)
        .then(|| code.insn.dest())
        .flatten()
        .filter(|r| r.class == regs::Class::Q)
        .map(|r| r.n)
}
