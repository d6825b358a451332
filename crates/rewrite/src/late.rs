//! Operands whose address only the loader knows: thread-local variables, of which gcc takes a fixed distance from the
//! thread pointer for granted (local exec), and data that another module gives. Both go through the global offset table.
//!
//! gcc compiles as for an executable, where everything has its place when it is linked. A module's own code and data do.

use std::collections::HashSet;

use crate::out::{Out, Placed};
use crate::parse::{IP, Kind, Mem, NONE, Op, Stmt, directive, number};
use crate::regs::{self, Class, R11};

/// Where the loader leaves what an operand needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GotSlot<'a> {
    /// The distance of a thread-local variable from the thread pointer.
    Distance(&'a str),
    /// The address of data that another module gives.
    Address(&'a str),
}

/// The part of a displacement that is a symbol, and the number that is added to it: `8+x` and `x+8`.
fn symbol(text: &str) -> Option<(&str, i64)> {
    let part = |c: char| c.is_ascii_alphanumeric() || "_.$@".contains(c);
    let start = text.find(|c: char| c.is_ascii_alphabetic() || "_.$".contains(c))?;
    let end = text[start..].find(|c| !part(c)).map_or(text.len(), |n| start + n);
    let before = &text[..start];
    if !(before.is_empty() || before.ends_with('+')) {
        return None;
    }
    let add = number(before.trim_end_matches('+'))? + number(&text[end..])?;
    Some((&text[start..end], add))
}

/// What stands for `x@tpoff`, with a number added or not.
fn distance(text: &str) -> Option<(GotSlot<'_>, i64)> {
    let (name, add) = symbol(text)?;
    Some((GotSlot::Distance(name.strip_suffix("@tpoff")?), add))
}

impl Out<'_> {
    /// Whether the operand is one of these.
    pub(crate) fn is_late(&self, m: &Mem<'_>) -> bool {
        self.late(m).is_some()
    }

    fn late<'a>(&self, m: &Mem<'a>) -> Option<(GotSlot<'a>, i64)> {
        if m.fs {
            return None;
        }
        if m.base != IP {
            return distance(m.disp);
        }
        let (name, add) = symbol(m.disp)?;
        self.foreign
            .contains(name)
            .then_some((GotSlot::Address(name), add))
    }

    /// Loads what the loader has left, without touching flags.
    fn load(&mut self, slot: GotSlot<'_>, into: u8) {
        let into = regs::q(into);
        match slot {
            GotSlot::Distance(name) => self.fmt(format_args!("\tmovq\t{name}@gottpoff(%rip), %{into}\n")),
            GotSlot::Address(name) => self.fmt(format_args!("\tmovq\t{name}@GOTPCREL(%rip), %{into}\n")),
        }
    }

    /// Brings such an operand's address together in `r11` and the operand's own registers; others stay as they are.
    pub(crate) fn settle(&mut self, p: &mut Placed<'_>) {
        let Some((slot, add)) = self.late(&p.mem) else {
            return;
        };
        self.load(slot, R11);
        let m = &mut p.mem;
        // Nothing to add where the operand is the address itself, or has an index alone.
        if m.base != IP && m.base != NONE {
            if m.index == NONE {
                (m.index, m.scale) = (m.base, 1);
            } else {
                let base = regs::q(m.base);
                self.fmt(format_args!("\tleaq\t(%r11,%{base}), %r11\n"));
            }
        }
        let m = &mut p.mem;
        (m.base, m.disp) = (R11, "");
        p.add += add;
    }

    /// The same for an immediate, `$x@tpoff`: what stands for it, a register of the class that `like` names.
    pub(crate) fn settle_immediate(&mut self, text: &str, like: Class) -> Result<Option<String>, String> {
        let Some(value) = text.strip_prefix('$').filter(|t| t.contains("@tpoff")) else {
            return Ok(None);
        };
        let (slot, add) =
            distance(value).ok_or_else(|| format!("a thread-local distance with more to it: {text}"))?;
        self.load(slot, R11);
        if add != 0 {
            self.fmt(format_args!("\tleaq\t{add}(%r11), %r11\n"));
        }
        Ok(Some(format!("%{}", regs::name(R11, like))))
    }
}

/// Data that other modules give, by the file's own word: strings `=NAME` in the section that `RF_IMPORT_DATA` writes.
pub(crate) fn declared_foreign<'a>(stmts: &[Stmt<'a>]) -> HashSet<&'a str> {
    let mut names = HashSet::new();
    let mut inside = false;
    for s in stmts.iter().filter(|s| s.kind == Kind::Directive) {
        let (name, args) = directive(s.text);
        match name {
            ".pushsection" | ".section" => inside = args.trim_start().starts_with(".rf.imports"),
            ".popsection" | ".text" | ".data" | ".bss" | ".previous" => inside = false,
            ".asciz" | ".string" if inside => {
                names.extend(args.trim().trim_matches('"').strip_prefix('='));
            }
            _ => {}
        }
    }
    names
}

/// The class of the register that stands for an immediate: that of the instruction's other operand.
pub(crate) fn beside(ops: &[Op<'_>], mnemonic: &str) -> Class {
    let register = ops.iter().find_map(|o| match o {
        Op::Reg(r, _) if r.is_gpr() => Some(r.class),
        _ => None,
    });
    register.unwrap_or(if mnemonic.ends_with('l') {
        Class::D
    } else {
        Class::Q
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_and_what_is_added() {
        assert_eq!(symbol("x"), Some(("x", 0)));
        assert_eq!(symbol("8+x@tpoff"), Some(("x@tpoff", 8)));
        assert_eq!(symbol("-4+x"), Some(("x", -4)));
        assert_eq!(symbol("x-4"), Some(("x", -4)));
        assert_eq!(symbol("x.0@tpoff+16"), Some(("x.0@tpoff", 16)));
        assert_eq!(symbol("x-y"), None);
        assert_eq!(symbol("8"), None);
    }
}
