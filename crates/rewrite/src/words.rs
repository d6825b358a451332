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
use crate::func::{Function, Item};
use crate::insn::{self, Class};
use crate::out::{jump_by_table, jump_table};
use crate::parse::{NONE, Op};
use crate::regs::{self, R11, RAX, RCX};
use crate::state::State;
use crate::through::{Through, targets, writes};
use crate::unwind::Unwind;
use crate::words_access::{Access, Key, access, local_address, sets_flags_too, suffix};
use crate::words_known::{Known, Set, behind, goes, passed, set};
use ringfence_isa::words::{LOCAL, TABLE, VIEW};

/// One instruction of a line, and where its text is.
pub(crate) struct Entry {
    pub i: u32,
    start: usize,
    end: usize,
    access: Option<Access>,
    /// A register that has the address of something local behind it.
    pub local: Option<u8>,
    /// A register that is tested here since it, or what this instruction makes of it, is a pointer behind it.
    pub ahead: Option<u8>,
}

impl Entry {
    /// The register that is tested in front of it.
    pub(crate) fn single(&self) -> Option<u8> {
        match &self.access {
            Some(access) => access.pointer,
            None => self.ahead,
        }
    }

    /// Of a pair's two registers, which has the pointer.
    pub(crate) fn find_pointer(&mut self, of: impl Fn([u8; 2], u8) -> Option<u8>) {
        if let Some(access) = self.access.as_mut().filter(|a| a.pointer.is_none()) {
            access.pointer = of(access.key.0, access.key.1);
        }
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
    /// The register; `None`: the address of this entry's pair.
    pointer: Option<u8>,
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
    /// The item that tells an instruction's place in the source: the last `.loc` in front of it.
    places: Vec<Option<u32>>,
    /// How many lines had copies.
    copied: u32,
    cfi: bool,
    /// Operands by way of `r14`, if they may be.
    through: Option<Through<'f, 'a>>,
    /// The function has landing pads.
    pads: bool,
    /// Which tables have been written once more, for copies.
    tables: HashSet<u32>,
    lines: Vec<Line>,
    line: Vec<Entry>,
    /// In front of the line.
    state: Option<(State, u32)>,
}

/// The last `.loc` in front of each instruction, by its item.
fn places(f: &Function<'_>) -> Vec<Option<u32>> {
    let (mut last, mut all) = (None, vec![None; f.codes.len()]);
    for (at, item) in (0..).zip(&f.items) {
        match item {
            Item::Raw(text) if text.starts_with(".loc") => last = Some(at),
            Item::Code(i) => all[*i as usize] = last,
            _ => {}
        }
    }
    all
}

const RESTORE: &str = "\taddb\t$127, %al\n\tsahf\n";

impl<'f, 'a> Words<'f, 'a> {
    pub(crate) fn new(f: &'f Function<'a>, number: u32, cfi: bool, through: Option<Through<'f, 'a>>) -> Self {
        Words {
            f,
            targets: targets(f),
            number,
            places: places(f),
            copied: 0,
            cfi,
            through,
            pads: f
                .items
                .iter()
                .any(|item| matches!(item, Item::Raw(text) if text.starts_with(".cfi_lsda"))),
            tables: HashSet::new(),
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

    /// Instruction `i` has become the text from `mark` on; `cut`: control must not go on behind it.
    pub(crate) fn instruction(&mut self, i: u32, st: &State, buf: &str, mark: usize, cut: bool) {
        let code = &self.f.codes[i as usize];
        let table = self.f.dispatch.jump(i).is_some();
        let plain = table || matches!(code.class, Class::Plain | Class::Lea | Class::Nop | Class::Jcc);
        let labels = buf[mark..].contains(":\n") && !table;
        // A call is a line by itself, where no exception has to find its place.
        let call = code.class == Class::Call && !cut && !self.pads && !code.stmt.app;
        let moved = |last: &Entry| buf[last.end..mark].contains(".cfi");
        if self.line.last().is_some_and(moved) || !plain || labels {
            self.close();
        }
        if !(plain || call) || labels {
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
            ahead: None,
        });
        if call || table {
            self.close();
        }
    }

    /// The line ends.
    fn close(&mut self) {
        let mut entries = std::mem::take(&mut self.line);
        if let Some(last) = entries.last()
            && self.f.dispatch.jump(last.i).is_some()
            && mask(self.f, &entries).is_none()
        {
            entries.pop();
        }
        if let Some((state, row)) = self.state.take().filter(|_| !entries.is_empty()) {
            self.lines.push(Line { entries, state, row });
        }
    }

    /// Puts tests into the lines, and writes their copies behind all of the function's own code.
    pub(crate) fn finish(&mut self, buf: &mut String, mut unwind: Option<&mut Unwind>) {
        self.close();
        let mut lines = std::mem::take(&mut self.lines);
        let begin = match lines.first() {
            Some(line) if lines.iter().flat_map(|l| &l.entries).any(|e| e.access.is_some()) => {
                line.entries[0].start
            }
            _ => return,
        };
        let known = Known::new(self.f, &mut lines);
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

    /// A `.loc` once more: file, line and column, without the label that views are told by.
    fn place(&self, item: Option<u32>) -> String {
        let Some(Item::Raw(text)) = item.map(|i| &self.f.items[i as usize]) else {
            return String::new();
        };
        let numbers: Vec<&str> = text.split_whitespace().take(4).collect();
        format!("\t{}\n", numbers.join(" "))
    }

    /// Where the copy of the line that begins with an instruction begins.
    fn other(&self, i: u32) -> String {
        format!(".Lrf_v{}_{i}", self.number)
    }

    /// Where a copy goes on instead of instruction `i`: in another copy, if something is known there.
    fn on(&self, known: &Known, mut i: u32) -> Option<String> {
        for _ in 0..self.f.codes.len() {
            self.f.codes.get(i as usize)?;
            match goes(self.f, i).or_else(|| passed(self.f, i)) {
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
        let jump = mask(self.f, entries).filter(|_| known.copied(entries[entries.len() - 1].i));
        let stays = on.is_some()
            || jump.is_some()
            || entries[after_accesses..]
                .iter()
                .any(|e| self.branch(known, e.i).is_some());
        let end = match mask(self.f, entries) {
            Some(mask) if jump.is_none() => {
                if stays {
                    mask
                } else {
                    after_accesses
                }
            }
            _ if stays => entries.len(),
            _ => after_accesses,
        };
        self.copied += u32::from(first.is_some());
        let name = format!(".Lrf_w{}_{}", self.number, self.copied);
        let [push, pop] = self.cfi_moves();

        let (mut copy, mut kept, mut told) = (String::new(), String::new(), None);
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
                if let (None, Some(access)) = (test.pointer, &entries[test.access].access) {
                    if let Some(through) = &mut through {
                        through.hold(&access.printed, access.key.0, access.number());
                    }
                    main.push_str(&access.load());
                }
                let tested = test.pointer.map_or("r11d", regs::d);
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
            let place = self.places[entry.i as usize];
            if place != told {
                copy.push_str(&self.place(place));
                told = place;
            }
            if let Some((masked, register, table)) = self.f.dispatch.jump(entry.i) {
                self.jump(known, masked, register, table, &mut copy);
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
        if jump.is_none() {
            if end == entries.len() {
                let _ = writeln!(main, "{name}:");
            }
            let _ = writeln!(copy, "\tjmp\t{}", on.unwrap_or(name));
        }
        copy.push_str(&kept);
        Some(Copy {
            state: line.state,
            row: line.row,
            text: copy,
        })
    }

    /// The jump through a table that leads to copies.
    fn jump(&mut self, known: &Known, masked: bool, register: u8, table: u32, copy: &mut String) {
        let name = format!(".Lrf_c{}_{table}", self.number);
        let labels = &self.f.dispatch.tables[table as usize];
        jump_by_table(copy, masked, register, &name, labels.len().next_power_of_two());
        if self.tables.insert(table) {
            let to = |label: &&str| self.f.find(label, 0).and_then(|to| self.on(known, to));
            let slots: Vec<_> = labels
                .iter()
                .map(|l| to(l).unwrap_or_else(|| (*l).to_owned()))
                .collect();
            jump_table(copy, &name, &slots);
        }
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
            // A test for what comes behind stands where nobody looks at the flags.
            let registers = match (&entry.access, entry.ahead) {
                (Some(access), _) => Some(single.map_or(access.key, |r| ([r, NONE], 1))),
                (None, Some(r)) => Some(([r, NONE], 1)),
                (None, None) => None,
            };
            if let Some(key) = registers
                && !facts.own(entry.i, key.0)
                && !single.map_or(pairs.contains(&key), |r| known & set(r) != 0)
            {
                let mut at = n;
                while at > 0 && flags_wanted(self.f, line[at].i) && !changes(&line[at - 1], &key) {
                    at -= 1;
                }
                let keep = flags_wanted(self.f, line[at].i);
                let at = if keep { n } else { at };
                tests[at].push(Test {
                    pointer: single,
                    access: n,
                    keep,
                });
                if single.is_none() {
                    pairs.push(key);
                }
            }
            if let Some(mask) = mask(self.f, line).filter(|_| n + 1 == line.len()) {
                let missing = facts.demanded(entry.i) & !known;
                for r in (0..16).filter(|&r| missing & set(r) != 0 && !facts.own(entry.i, [r, NONE])) {
                    tests[mask].push(Test {
                        pointer: Some(r),
                        access: n,
                        keep: false,
                    });
                }
            }
            let tested = single.filter(|&r| !facts.own(entry.i, [r, NONE]));
            known = behind(code(entry), facts.bits(entry.i), tested, entry.local, known);
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

/// Where in a line that ends with a jump through a table the sequence for it begins: behind that no test may stand.
pub(crate) fn mask(f: &Function<'_>, line: &[Entry]) -> Option<usize> {
    let (last, before) = line.split_last()?;
    let (masked, ..) = f.dispatch.jump(last.i)?;
    match masked {
        true => before.iter().rposition(|e| !f.dispatch.parts.contains_key(&e.i)),
        false => Some(before.len()),
    }
}
