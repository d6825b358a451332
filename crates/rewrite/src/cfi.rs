//! gcc's call-frame directives, read: where a frame starts and what is saved in it.

use crate::parse::number;
use crate::regs;

/// How the frame's start (CFA) is found in gcc's own layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cfa {
    /// No call-frame directives.
    Unknown,
    /// General register plus offset.
    Reg(u8, i64),
    /// A DWARF expression: its bytes, as text.
    Expr(String),
}

/// Where a register of the caller is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Saved {
    /// At CFA plus offset.
    At(i64),
    /// At the address that a DWARF expression gives: its bytes, as text.
    Expr(String),
}

/// The row in force at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub cfa: Cfa,
    /// In the order of the directives; the key is the number of the general register.
    pub saved: Vec<(u8, Saved)>,
}

impl Row {
    /// The row at a function's entry.
    pub(crate) fn entry() -> Row {
        Row {
            cfa: Cfa::Reg(regs::RSP, 8),
            saved: Vec::new(),
        }
    }

    /// No call-frame directives.
    pub(crate) fn unknown() -> Row {
        Row {
            cfa: Cfa::Unknown,
            saved: Vec::new(),
        }
    }

    /// The offset from the frame's start of the slot that holds `reg`.
    pub(crate) fn slot(&self, reg: u8) -> Option<i64> {
        self.saved.iter().find_map(|(r, s)| match s {
            Saved::At(o) if *r == reg => Some(*o),
            _ => None,
        })
    }

    fn save(&mut self, reg: u8, how: Saved) {
        self.restore(reg);
        self.saved.push((reg, how));
    }

    fn restore(&mut self, reg: u8) {
        self.saved.retain(|(r, _)| *r != reg);
    }
}

/// What a directive means for the rest of the rewriter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect<'a> {
    /// The row is as it was or changed; nothing else is to be done.
    Row,
    /// The directive stands as it is in the output (personality, `startproc` and such).
    Keep,
    /// Size of the outgoing arguments at calls (C++).
    ArgsSize(&'a str),
}

/// Reads directives in the order of the text.
pub(crate) struct Reader {
    pub row: Row,
    stack: Vec<Row>,
    /// Whether `row` changed since it was last looked at.
    pub changed: bool,
}

impl Reader {
    pub(crate) fn new() -> Reader {
        Reader {
            row: Row::unknown(),
            stack: Vec::new(),
            changed: true,
        }
    }

    /// Applies one `.cfi_…` directive.
    pub(crate) fn apply<'a>(&mut self, name: &str, args: &'a str) -> Result<Effect<'a>, String> {
        let mut parts = args.splitn(2, ',').map(str::trim);
        let first = parts.next().unwrap_or("");
        let second = parts.next().unwrap_or("");
        let reg = || register(first).ok_or_else(|| format!("register {first} in a call-frame directive"));
        let int = |t: &str| number(t).ok_or_else(|| format!("number {t} in a call-frame directive"));
        match name {
            ".cfi_startproc" => {
                self.row = Row::entry();
                self.stack.clear();
                self.changed = true;
                return Ok(Effect::Keep);
            }
            ".cfi_endproc" => {
                self.row = Row::unknown();
                self.changed = true;
                return Ok(Effect::Keep);
            }
            ".cfi_def_cfa" => self.row.cfa = Cfa::Reg(reg()?, int(second)?),
            ".cfi_def_cfa_register" => match self.row.cfa {
                Cfa::Reg(_, o) => self.row.cfa = Cfa::Reg(reg()?, o),
                _ => return Err("a frame register without an offset".to_owned()),
            },
            ".cfi_def_cfa_offset" | ".cfi_adjust_cfa_offset" => {
                let n = int(first)?;
                match self.row.cfa {
                    Cfa::Reg(r, o) => {
                        self.row.cfa = Cfa::Reg(r, if name == ".cfi_def_cfa_offset" { n } else { o + n });
                    }
                    _ => return Err("a frame offset without a register".to_owned()),
                }
            }
            ".cfi_offset" => {
                let (r, o) = (register(first), int(second)?);
                if let Some(r) = r {
                    self.row.save(r, Saved::At(o));
                }
            }
            ".cfi_rel_offset" => {
                let (r, o) = (reg()?, int(second)?);
                match self.row.cfa {
                    Cfa::Reg(_, c) => self.row.save(r, Saved::At(o - c)),
                    _ => return Err("a relative slot without a frame".to_owned()),
                }
            }
            ".cfi_restore" | ".cfi_same_value" => {
                if let Some(r) = register(first) {
                    self.row.restore(r);
                }
            }
            ".cfi_undefined" => {}
            ".cfi_remember_state" => {
                self.stack.push(self.row.clone());
                return Ok(Effect::Row);
            }
            ".cfi_restore_state" => {
                self.row = self
                    .stack
                    .pop()
                    .ok_or("a restored state that was not remembered")?;
            }
            ".cfi_escape" => {
                let bytes: Vec<i64> = args.split(',').map(|b| int(b.trim())).collect::<Result<_, _>>()?;
                match bytes[..] {
                    // DW_CFA_GNU_args_size
                    [0x2e, ..] => return Ok(Effect::ArgsSize(args)),
                    // DW_CFA_def_cfa_expression
                    [0x0f, ..] => self.row.cfa = Cfa::Expr(nth_comma(args, 2).to_owned()),
                    // DW_CFA_expression
                    [0x10, r, ..] => {
                        let r = u8::try_from(r).ok().and_then(regs::from_dwarf);
                        let r = r.ok_or("an escape for an unknown register")?;
                        self.row.save(r, Saved::Expr(nth_comma(args, 3).to_owned()));
                    }
                    _ => return Err("an escape that the rewriter does not know".to_owned()),
                }
            }
            _ => return Ok(Effect::Keep),
        }
        self.changed = true;
        Ok(Effect::Row)
    }
}

fn nth_comma(text: &str, n: usize) -> &str {
    let mut at = 0;
    for _ in 0..n {
        match text[at..].find(',') {
            Some(i) => at += i + 1,
            None => return "",
        }
    }
    &text[at..]
}

fn register(text: &str) -> Option<u8> {
    let text = text.trim();
    if let Some(name) = text.strip_prefix('%') {
        return regs::parse(name).filter(|r| r.is_gpr()).map(|r| r.n);
    }
    match text.parse::<u8>() {
        Ok(n) => regs::from_dwarf(n),
        Err(_) => regs::parse(text).filter(|r| r.is_gpr()).map(|r| r.n),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regs::{RBP, RBX, RSP};

    #[test]
    fn rows_follow_the_directives() {
        let mut r = Reader::new();
        assert_eq!(r.apply(".cfi_startproc", ""), Ok(Effect::Keep));
        r.apply(".cfi_def_cfa_offset", "16").unwrap();
        r.apply(".cfi_offset", "6, -16").unwrap();
        r.apply(".cfi_remember_state", "").unwrap();
        r.apply(".cfi_def_cfa_register", "6").unwrap();
        r.apply(".cfi_offset", "3, -24").unwrap();
        assert_eq!(r.row.cfa, Cfa::Reg(RBP, 16));
        assert_eq!((r.row.slot(RBP), r.row.slot(RBX)), (Some(-16), Some(-24)));
        r.apply(".cfi_restore_state", "").unwrap();
        assert_eq!(r.row.cfa, Cfa::Reg(RSP, 16));
        assert_eq!(r.row.slot(RBX), None);
        assert!(r.apply(".cfi_restore_state", "").is_err());
    }

    #[test]
    fn escapes_of_realigned_frames() {
        let mut r = Reader::new();
        r.apply(".cfi_startproc", "").unwrap();
        r.apply(".cfi_escape", "0xf,0x3,0x76,0x78,0x6").unwrap();
        r.apply(".cfi_escape", "0x10,0x6,0x2,0x76,0").unwrap();
        assert_eq!(r.row.cfa, Cfa::Expr("0x76,0x78,0x6".to_owned()));
        assert_eq!(r.row.saved, vec![(RBP, Saved::Expr("0x76,0".to_owned()))]);
        assert_eq!(
            r.apply(".cfi_escape", "0x2e,0x10"),
            Ok(Effect::ArgsSize("0x2e,0x10"))
        );
        assert!(r.apply(".cfi_escape", "0x2f,0x10").is_err());
    }
}
