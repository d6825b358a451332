//! One function's text, collected and indexed.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use crate::cfi::{Effect, Reader, Row};
use crate::insn::{self, Class};
use crate::parse::{self, Insn, Kind, Op, Stmt};
use crate::tables::{Dispatch, Table};

/// A thing in a function's text, in order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
    /// An instruction, by index into [`Function::codes`].
    Code(u32),
    Label(&'a str),
    /// Stands as it is in the output.
    Raw(&'a str),
    /// An alignment directive among code.
    Align(&'a str),
    /// `DW_CFA_GNU_args_size`.
    ArgsSize(i64),
}

/// An instruction and what is known about it from the text alone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Code<'a> {
    pub insn: Insn<'a>,
    pub class: Class,
    pub stmt: Stmt<'a>,
    /// Call-frame rows in front of it and behind it, by index into [`Function::rows`].
    pub row: u32,
    pub row_after: u32,
    /// Landing pad for exceptions that a call here lets through.
    pub pad: Option<&'a str>,
    /// Bytes of outgoing arguments that an exception removes.
    pub args: i64,
    /// The index in the items.
    pub item: u32,
}

/// What an `endbr64` is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// Marks a label: the target of an indirect jump, or a landing pad.
    Label,
    /// Nothing: control comes back to it from a call.
    Return,
}

/// A function.
pub(crate) struct Function<'a> {
    pub name: &'a str,
    pub items: Vec<Item<'a>>,
    pub codes: Vec<Code<'a>>,
    pub rows: Vec<Row>,
    /// Labels, as indices of the instruction that follows.
    labels: HashMap<&'a str, u32>,
    numeric: Vec<(&'a str, u32)>,
    /// Jumps through a table, with the labels in the table.
    pub tables: HashMap<u32, Table<'a>>,
    /// Which of them become tables among the code.
    pub dispatch: Dispatch<'a>,
    /// What the `endbr64` instructions other than the entry's are for.
    pub marks: HashMap<u32, Mark>,
    /// Labels that indirect jumps without a table may reach.
    loose: Vec<u32>,
    /// Landing pads that no indirect jump reaches, ascending.
    pads: Vec<u32>,
    /// Whether gcc's call-frame directives describe it.
    pub has_cfi: bool,
}

/// Where exceptions land: for each label that begins a call-site region, its end and its pad.
pub(crate) type Regions<'a> = HashMap<&'a str, (&'a str, &'a str)>;

/// A statement that cannot be rewritten.
pub(crate) struct Refusal<'a> {
    pub stmt: Stmt<'a>,
    pub reason: String,
    pub advice: String,
}

impl<'a> Refusal<'a> {
    pub(crate) fn new(stmt: Stmt<'a>, reason: impl Into<String>, advice: impl Into<String>) -> Refusal<'a> {
        Refusal {
            stmt,
            reason: reason.into(),
            advice: advice.into(),
        }
    }
}

/// Builds a [`Function`] statement by statement.
pub(crate) struct Builder<'a, 'r> {
    pub f: Function<'a>,
    regions: &'r Regions<'a>,
    reader: Reader,
    region: Option<(&'a str, &'a str)>,
    table: Option<u32>,
    after_call: bool,
    args: i64,
    /// A prefix that stood alone.
    prefix: &'a str,
}

impl<'a, 'r> Builder<'a, 'r> {
    pub(crate) fn new(name: &'a str, regions: &'r Regions<'a>) -> Self {
        Builder {
            f: Function {
                name,
                items: Vec::new(),
                codes: Vec::new(),
                rows: Vec::new(),
                labels: HashMap::new(),
                numeric: Vec::new(),
                tables: HashMap::new(),
                dispatch: Dispatch::default(),
                marks: HashMap::new(),
                loose: Vec::new(),
                pads: Vec::new(),
                has_cfi: false,
            },
            regions,
            reader: Reader::new(),
            region: None,
            table: None,
            after_call: false,
            args: 0,
            prefix: "",
        }
    }

    /// A statement in a section without code, in the middle of the function: switch tables.
    pub(crate) fn data(&mut self, s: &Stmt<'a>) {
        if let Some(jump) = self.table {
            let (name, args) = parse::directive(s.text);
            let item = self.f.items.len() as u32;
            if s.kind == Kind::Label {
                let label = s.text;
                let table = Table {
                    label,
                    relative: true,
                    items: vec![item],
                    ..Table::default()
                };
                match self.f.tables.entry(jump) {
                    Entry::Vacant(e) => {
                        e.insert(table);
                    }
                    Entry::Occupied(_) => self.table = None,
                }
            } else if matches!(name, ".long" | ".quad" | ".int" | ".4byte" | ".8byte") {
                let table = self.f.tables.entry(jump).or_default();
                table.items.push(item);
                for a in args.split(',') {
                    let (target, base) = a.split_once('-').unwrap_or((a, ""));
                    table.entries.push(target.trim());
                    table.relative &=
                        base.trim() == table.label && matches!(name, ".long" | ".int" | ".4byte");
                }
            }
        }
        self.raw(s);
    }

    /// A statement that stands as it is.
    pub(crate) fn raw(&mut self, s: &Stmt<'a>) {
        if s.kind == Kind::Label {
            self.f.items.push(Item::Label(s.text));
        } else {
            self.f.items.push(Item::Raw(s.text));
        }
    }

    pub(crate) fn align(&mut self, s: &Stmt<'a>) {
        self.f.items.push(Item::Align(s.text));
    }

    /// A label among the code.
    pub(crate) fn label(&mut self, s: &Stmt<'a>) {
        let at = self.f.codes.len() as u32;
        if s.text.as_bytes()[0].is_ascii_digit() {
            self.f.numeric.push((s.text, at));
        } else {
            self.f.labels.insert(s.text, at);
        }
        if let Some(&(end, pad)) = self.regions.get(s.text) {
            self.region = Some((end, pad));
        } else if self.region.is_some_and(|(end, _)| end == s.text) {
            self.region = None;
        }
        self.after_call = false;
        self.f.items.push(Item::Label(s.text));
    }

    /// A call-frame directive.
    pub(crate) fn cfi(&mut self, s: &Stmt<'a>) -> Result<(), Refusal<'a>> {
        let (name, args) = parse::directive(s.text);
        match self.reader.apply(name, args) {
            Ok(Effect::Row) => {}
            Ok(Effect::Keep) => {
                self.f.has_cfi |= name == ".cfi_startproc";
                self.f.items.push(Item::Raw(s.text));
            }
            Ok(Effect::ArgsSize(a)) => {
                self.args = args_size(a);
                self.f.items.push(Item::ArgsSize(self.args));
            }
            Err(reason) => {
                return Err(Refusal::new(
                    *s,
                    reason,
                    "only what gcc prints is understood here",
                ));
            }
        }
        Ok(())
    }

    /// An instruction.
    pub(crate) fn code(&mut self, s: &Stmt<'a>) -> Result<(), Refusal<'a>> {
        let mut insn = parse::insn(s.text).map_err(|r| Refusal::new(*s, r, "write it in another way"))?;
        // A prefix as a statement of its own, `lock; xaddl …`, belongs to the next instruction.
        if insn.mnemonic.is_empty() {
            self.prefix = insn.prefix;
            return Ok(());
        }
        if !self.prefix.is_empty() {
            insn.prefix = self.prefix;
            self.prefix = "";
            if insn.mnemonic == "ret" || insn.mnemonic == "retq" {
                insn.prefix = "";
            }
        }
        let class = insn::classify(&insn);
        if let Class::Refused(reason, advice) = class {
            return Err(Refusal::new(*s, reason, advice));
        }
        for op in insn.ops() {
            let reserved = match op {
                Op::Reg(r, _) => r.is_gpr() && matches!(r.n, 11 | 14 | 15),
                Op::Mem(m) => matches!(m.base, 11 | 14 | 15) || matches!(m.index, 11 | 14 | 15),
                Op::Imm(_) => false,
            };
            if reserved {
                return Err(Refusal::new(
                    *s,
                    "r11, r14 and r15 are reserved",
                    "use other registers; gcc itself uses r11 in frames above 2 GiB and with -mcmodel=large",
                ));
            }
        }
        let at = self.f.codes.len() as u32;
        if self.reader.changed {
            self.reader.changed = false;
            if self.f.rows.last() != Some(&self.reader.row) {
                self.f.rows.push(self.reader.row.clone());
            }
        }
        let row = self.f.rows.len() as u32 - 1;
        if let Some(last) = self.f.codes.last_mut() {
            last.row_after = row;
        }
        if class == Class::Endbr && at > 0 {
            self.f.marks.insert(
                at,
                if self.after_call {
                    Mark::Return
                } else {
                    Mark::Label
                },
            );
        }
        self.after_call = class == Class::Call;
        if class == Class::Jmp && insn.star && s.note.contains("tablejump") {
            self.table = Some(at);
        } else {
            self.table = None;
        }
        let pad = if class == Class::Call {
            self.region.map(|(_, p)| p)
        } else {
            None
        };
        let item = self.f.items.len() as u32;
        self.f.codes.push(Code {
            insn,
            class,
            stmt: *s,
            row,
            row_after: row,
            pad,
            args: self.args,
            item,
        });
        self.f.items.push(Item::Code(at));
        Ok(())
    }
}

/// The operand of `DW_CFA_GNU_args_size`, a ULEB128.
fn args_size(text: &str) -> i64 {
    let bytes = text.split(',').skip(1).filter_map(|b| parse::number(b.trim()));
    bytes
        .enumerate()
        .fold(0, |n, (i, b)| n | (b & 0x7f) << (7 * i.min(8)))
}

impl<'a> Function<'a> {
    /// The instruction that a label of this function stands in front of; `from` is where it is named.
    pub(crate) fn find(&self, label: &str, from: u32) -> Option<u32> {
        let b = label.as_bytes();
        if b.first().is_some_and(u8::is_ascii_digit) {
            let (name, way) = label.split_at_checked(b.len() - 1)?;
            return match way {
                "f" => self
                    .numeric
                    .iter()
                    .find(|(n, at)| *n == name && *at > from)
                    .map(|x| x.1),
                "b" => self
                    .numeric
                    .iter()
                    .rev()
                    .find(|(n, at)| *n == name && *at <= from)
                    .map(|x| x.1),
                _ => None,
            };
        }
        self.labels.get(label).copied()
    }

    /// Whether control goes from instruction `i` to the next.
    pub(crate) fn falls_through(&self, i: u32) -> bool {
        !matches!(
            self.codes[i as usize].class,
            Class::Jmp | Class::Ret | Class::Trap
        )
    }

    /// The row in front of instruction `i`.
    pub(crate) fn row(&self, i: u32) -> &Row {
        &self.rows[self.codes[i as usize].row as usize]
    }

    /// The row behind instruction `i`.
    pub(crate) fn row_after(&self, i: u32) -> &Row {
        &self.rows[self.codes[i as usize].row_after as usize]
    }

    /// The instructions that an indirect jump may reach in this function; none if it leaves it.
    pub(crate) fn targets(&self, jump: u32) -> Option<Vec<u32>> {
        let code = &self.codes[jump as usize];
        if !code.insn.star || code.class != Class::Jmp || code.stmt.note.contains("sibcall") {
            return None;
        }
        if let Some(table) = self.tables.get(&jump) {
            let mut list: Vec<u32> = table.entries.iter().filter_map(|l| self.find(l, jump)).collect();
            list.sort_unstable();
            list.dedup();
            return Some(list);
        }
        if self.loose.is_empty() {
            return None;
        }
        Some(self.loose.clone())
    }

    /// Whether instruction `i` is a landing pad, reached by the runtime and by nothing else that is indirect.
    pub(crate) fn is_pad(&self, i: u32) -> bool {
        self.pads.binary_search(&i).is_ok()
    }

    /// Whether a jump leads to this label, and no instruction stands behind it.
    pub(crate) fn is_end(&self, label: &str) -> bool {
        let end = self.codes.len() as u32;
        let place = |name: &str, from| self.find(name, from) == Some(end);
        let jumps = |(i, c): (u32, &Code<'_>)| {
            matches!(c.class, Class::Jmp | Class::Jcc)
                && c.insn
                    .ops()
                    .first()
                    .and_then(|op| insn::direct(c.insn.star, op))
                    .is_some_and(|to| {
                        let name = to
                            .strip_suffix('f')
                            .filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
                        (to == label || name == Some(label)) && place(to, i)
                    })
        };
        let known = self.labels.get(label) == Some(&end) || self.numeric.contains(&(label, end));
        known && (0..).zip(&self.codes).any(jumps)
    }

    /// Finds the labels that a jump without a table may reach: marked ones that are in no table
    /// and are no landing pads; if there are none, all marked ones. The pads are what is left.
    pub(crate) fn finish(&mut self) {
        let marked: Vec<u32> = {
            let mut v: Vec<u32> = self
                .marks
                .iter()
                .filter(|m| *m.1 == Mark::Label)
                .map(|m| *m.0)
                .collect();
            v.sort_unstable();
            v
        };
        let mut known: Vec<u32> = self
            .tables
            .values()
            .flat_map(|t| &t.entries)
            .filter_map(|l| self.find(l, 0))
            .collect();
        let mut pads: Vec<u32> = self
            .codes
            .iter()
            .filter_map(|c| c.pad)
            .filter_map(|p| self.find(p, 0))
            .collect();
        pads.sort_unstable();
        pads.dedup();
        let tabled = known.clone();
        known.extend(&pads);
        let rest: Vec<u32> = marked.iter().copied().filter(|m| !known.contains(m)).collect();
        let free = |c: &Code<'_>| c.insn.star && c.class == Class::Jmp && !c.stmt.note.contains("sibcall");
        let jumps = (0..)
            .zip(&self.codes)
            .any(|(i, c)| free(c) && !self.tables.contains_key(&i));
        let all = rest.is_empty() && jumps;
        self.loose = if rest.is_empty() { marked } else { rest };
        pads.retain(|p| !all && !tabled.contains(p));
        self.pads = pads;
    }

    /// The instructions that labels stand in front of.
    pub(crate) fn label_places(&self) -> HashSet<u32> {
        let named = self.labels.values().copied();
        named.chain(self.numeric.iter().map(|n| n.1)).collect()
    }

    /// Whether the label at instruction `i` carries an identifier.
    pub(crate) fn is_marked(&self, i: u32) -> bool {
        self.marks.get(&i) == Some(&Mark::Label) && !self.dispatch.unmarked.contains(&i)
    }
}
