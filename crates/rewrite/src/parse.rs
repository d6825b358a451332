//! Assembly text into statements, and statements into operands.

use crate::regs::{self, Class, Reg};

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `name:`; the text is the name.
    Label,
    /// `.something …`
    Directive,
    /// An instruction.
    Insn,
    /// `name = value`
    Assign,
}

/// One statement of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stmt<'a> {
    pub kind: Kind,
    /// The line counts from 1.
    pub line: u32,
    /// Inside `#APP` … `#NO_APP`: the text of an `asm` statement.
    pub app: bool,
    pub text: &'a str,
    /// The comment behind it, where gcc's `-dp` prints the name of the pattern.
    pub note: &'a str,
}

/// Splits a file into statements. Comments disappear, except as notes.
pub(crate) fn statements(input: &str) -> Result<Vec<Stmt<'_>>, (u32, String)> {
    let mut out = Vec::with_capacity(input.len() / 24);
    let mut app = false;
    let mut in_comment = false;
    let mut lines = input.split('\n').zip(1u32..);
    while let Some((line, number)) = lines.next() {
        let b = line.as_bytes();
        match b.first() {
            None => continue,
            Some(b'#') if !in_comment => {
                if line.starts_with("#APP") {
                    app = true;
                } else if line.starts_with("#NO_APP") {
                    app = false;
                }
                continue;
            }
            Some(b'/') if !in_comment && b.get(1) != Some(&b'*') => continue,
            _ => {}
        }
        split_line(line, number, app, &mut in_comment, &mut out)?;
        if let Some(text) = line.find(STRING_COMMENT).and(out.last()).map(|s| s.text) {
            for _ in 0..line_breaks(input, text) {
                lines.next();
            }
        }
    }
    if in_comment {
        return Err((input.lines().count() as u32, "a comment is not closed".to_owned()));
    }
    Ok(out)
}

/// What gcc writes behind the reference to a constant string in debug information, and then the string as it is: with its line breaks.
const STRING_COMMENT: &str = "# DW_AT_const_value: \"";

/// How many line breaks are in the string that a statement of debug information refers to, `.long .LASF3`.
fn line_breaks(input: &str, statement: &str) -> usize {
    let label = directive(statement).1;
    if !label.starts_with(".LASF") {
        return 0;
    }
    let Some(at) = input.find(&format!("\n{label}:\n")) else {
        return 0;
    };
    let text = input[at + label.len() + 3..].trim_start();
    let Some(text) = text.strip_prefix(".string").map(str::trim_start) else {
        return 0;
    };
    let (mut count, mut b) = (0, text.as_bytes().iter().skip(1).peekable());
    while let Some(c) = b.next() {
        match c {
            b'"' => break,
            b'\\' => match b.next() {
                Some(b'n') => count += 1,
                // Three digits, or fewer in front of something else.
                Some(first @ b'0'..=b'7') => {
                    let mut value = u32::from(first - b'0');
                    for _ in 0..2 {
                        if let Some(digit) = b.next_if(|d| (b'0'..=b'7').contains(d)) {
                            value = 8 * value + u32::from(digit - b'0');
                        }
                    }
                    count += usize::from(value == 10);
                }
                _ => {}
            },
            _ => {}
        }
    }
    count
}

fn split_line<'a>(
    line: &'a str,
    number: u32,
    app: bool,
    in_comment: &mut bool,
    out: &mut Vec<Stmt<'a>>,
) -> Result<(), (u32, String)> {
    let b = line.as_bytes();
    let mut start = 0;
    let mut i = 0;
    while i < b.len() {
        if *in_comment {
            match line[i..].find("*/") {
                Some(at) => {
                    *in_comment = false;
                    i += at + 2;
                    start = i;
                    continue;
                }
                None => return Ok(()),
            }
        }
        match b[i] {
            b'"' => {
                i += 1;
                while i < b.len() && b[i] != b'"' {
                    i += if b[i] == b'\\' { 2 } else { 1 };
                }
            }
            b'\'' if b.get(i + 1) == Some(&b'\\') => i += 2,
            b'\'' => i += 1,
            b'#' => {
                push(&line[start..i], line[i + 1..].trim(), number, app, out);
                return Ok(());
            }
            b'/' if b.get(i + 1) == Some(&b'*') => {
                push(&line[start..i], "", number, app, out);
                *in_comment = true;
                i += 2;
                start = i;
                continue;
            }
            b';' => {
                push(&line[start..i], "", number, app, out);
                start = i + 1;
            }
            _ => {}
        }
        i += 1;
    }
    if !*in_comment && start <= b.len() {
        let Some(rest) = line.get(start..) else {
            return Err((number, "a string is not closed".to_owned()));
        };
        push(rest, "", number, app, out);
    }
    Ok(())
}

fn is_symbol_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'_' | b'.' | b'$' | b'@') || c >= 0x80
}

fn push<'a>(text: &'a str, note: &'a str, line: u32, app: bool, out: &mut Vec<Stmt<'a>>) {
    let mut text = text.trim();
    loop {
        let b = text.as_bytes();
        let Some(&first) = b.first() else { return };
        let end = if first == b'"' {
            text[1..].find('"').map_or(b.len(), |n| n + 2)
        } else {
            b.iter().position(|c| !is_symbol_byte(*c)).unwrap_or(b.len())
        };
        let after = text[end..].trim_start();
        if end > 0 && after.starts_with(':') {
            out.push(Stmt {
                kind: Kind::Label,
                line,
                app,
                text: &text[..end],
                note: "",
            });
            text = after[1..].trim_start();
            continue;
        }
        let kind = if end > 0 && after.starts_with('=') && !after.starts_with("==") {
            Kind::Assign
        } else if first == b'.' {
            Kind::Directive
        } else {
            Kind::Insn
        };
        out.push(Stmt {
            kind,
            line,
            app,
            text,
            note,
        });
        return;
    }
}

/// Splits a directive into its name (with the dot) and its arguments.
pub(crate) fn directive(text: &str) -> (&str, &str) {
    match text.find([' ', '\t']) {
        Some(at) => (&text[..at], text[at..].trim()),
        None => (text, ""),
    }
}

/// No register, in [`Mem::base`] and [`Mem::index`].
pub(crate) const NONE: u8 = 255;
/// The instruction pointer, in [`Mem::base`].
pub(crate) const IP: u8 = 16;

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Mem<'a> {
    pub disp: &'a str,
    pub base: u8,
    pub index: u8,
    pub scale: u8,
    /// An explicit `%fs:`.
    pub fs: bool,
    /// The index is a vector register (gathers and scatters).
    pub vector: bool,
}

impl Mem<'_> {
    /// The displacement as a number, if it is one.
    pub(crate) fn number(&self) -> Option<i64> {
        number(self.disp)
    }
}

/// An operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    Reg(Reg, &'a str),
    Imm(&'a str),
    Mem(Mem<'a>),
}

/// Most operands that an instruction has.
const MAX_OPS: usize = 5;

/// An instruction, taken apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Insn<'a> {
    /// `lock`, `rep`, `repz`, `repnz`; empty otherwise.
    pub prefix: &'a str,
    pub mnemonic: &'a str,
    ops: [Op<'a>; MAX_OPS],
    count: u8,
    /// The operand of a jump or call has a star.
    pub star: bool,
}

impl<'a> Insn<'a> {
    pub(crate) fn ops(&self) -> &[Op<'a>] {
        &self.ops[..usize::from(self.count)]
    }

    /// The memory operand.
    pub(crate) fn mem(&self) -> Option<&Mem<'a>> {
        self.ops()
            .iter()
            .find_map(|o| if let Op::Mem(m) = o { Some(m) } else { None })
    }

    /// Where the last operand, the destination, is a register: that register.
    pub(crate) fn dest(&self) -> Option<Reg> {
        match self.ops().last() {
            Some(Op::Reg(r, _)) => Some(*r),
            _ => None,
        }
    }
}

/// Parses an instruction statement.
pub(crate) fn insn(text: &str) -> Result<Insn<'_>, String> {
    let mut prefix = "";
    let mut rest = text;
    let mnemonic = loop {
        let end = rest.find([' ', '\t']).unwrap_or(rest.len());
        let word = &rest[..end];
        rest = rest[end..].trim_start();
        match word {
            "lock" | "rep" | "repe" | "repz" | "repne" | "repnz" => prefix = word,
            // Meaningless here: hints, and padding in front of thread-local sequences.
            "notrack" | "bnd" | "data16" | "rex64" | "rex.W" | "rex.w" | "cs" | "ds" | "es" | "ss" => {}
            "xacquire" | "xrelease" | "addr32" | "addr16" | "data32" | "fs" | "gs" | "rex" => {
                return Err(format!("the prefix {word} is not supported"));
            }
            w if w.starts_with('{') => {}
            w => break w,
        }
        if rest.is_empty() {
            break "";
        }
    };
    let mut out = Insn {
        prefix,
        mnemonic,
        ops: [Op::Imm(""); MAX_OPS],
        count: 0,
        star: false,
    };
    if rest.is_empty() {
        return Ok(out);
    }
    let b = rest.as_bytes();
    let mut depth = 0;
    let mut start = 0;
    for i in 0..=b.len() {
        let c = if i < b.len() { b[i] } else { b',' };
        match c {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 || i == b.len() => {
                if usize::from(out.count) == MAX_OPS {
                    return Err("too many operands".to_owned());
                }
                let mut word = rest[start..i].trim();
                if let Some(w) = word.strip_prefix('*') {
                    out.star = true;
                    word = w.trim_start();
                }
                out.ops[usize::from(out.count)] = operand(word)?;
                out.count += 1;
                start = i + 1;
            }
            _ => {}
        }
    }
    Ok(out)
}

fn operand(word: &str) -> Result<Op<'_>, String> {
    let b = word.as_bytes();
    match b.first() {
        None => Err("an operand is missing".to_owned()),
        Some(b'$') => Ok(Op::Imm(word)),
        Some(b'%') => {
            if let Some((seg, rest)) = word.split_once(':') {
                let mut m = memory(rest.trim_start())?;
                match seg {
                    "%fs" => m.fs = true,
                    "%ds" | "%es" | "%ss" | "%cs" => {}
                    _ => return Err(format!("the segment {seg} belongs to the window")),
                }
                return Ok(Op::Mem(m));
            }
            let end = word.find('{').unwrap_or(word.len());
            match regs::parse(word[1..end].trim_end()) {
                Some(r) => Ok(Op::Reg(r, word)),
                None => Err(format!("unknown register {word}")),
            }
        }
        _ => memory(word).map(Op::Mem),
    }
}

fn memory(word: &str) -> Result<Mem<'_>, String> {
    let mut m = Mem {
        disp: word,
        base: NONE,
        index: NONE,
        scale: 1,
        fs: false,
        vector: false,
    };
    let body = match word.find('{') {
        Some(at) if !word.contains('"') => word[..at].trim_end(),
        _ => word,
    };
    let Some(inner) = body.strip_suffix(')') else {
        return Ok(m);
    };
    let open = inner
        .rfind('(')
        .ok_or_else(|| format!("unbalanced parentheses in {word}"))?;
    let inside = &inner[open + 1..];
    if !inside.contains('%') && !inside.starts_with(',') {
        return Ok(m);
    }
    m.disp = inner[..open].trim();
    for (i, part) in inside.split(',').enumerate() {
        let part = part.trim();
        if i == 2 {
            m.scale = match part {
                "" | "1" => 1,
                "2" => 2,
                "4" => 4,
                "8" => 8,
                _ => return Err(format!("bad scale in {word}")),
            };
            continue;
        }
        if part.is_empty() || part == "%riz" || part == "%eiz" {
            continue;
        }
        let reg = part.strip_prefix('%').and_then(regs::parse);
        match (reg, i) {
            (Some(Reg { class: Class::Ip, .. }), 0) => m.base = IP,
            (
                Some(Reg {
                    n,
                    class: Class::Q | Class::D,
                }),
                0,
            ) => m.base = n,
            (
                Some(Reg {
                    n,
                    class: Class::Q | Class::D,
                }),
                1,
            ) => m.index = n,
            (
                Some(Reg {
                    class: Class::Vector, ..
                }),
                1,
            ) => m.vector = true,
            _ => return Err(format!("bad address register in {word}")),
        }
    }
    Ok(m)
}

/// The value of a sum of integers such as `-40`, `0x10` or `8+16-4`; empty counts as 0.
pub(crate) fn number(text: &str) -> Option<i64> {
    let b = text.as_bytes();
    let mut sum = 0i64;
    let mut i = 0;
    while i < b.len() {
        let mut negative = false;
        while i < b.len() && matches!(b[i], b'+' | b'-' | b' ') {
            negative ^= b[i] == b'-';
            i += 1;
        }
        let start = i;
        while i < b.len() && b[i].is_ascii_alphanumeric() {
            i += 1;
        }
        if start == i {
            return None;
        }
        let word = &text[start..i];
        let value = if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            u64::from_str_radix(hex, 16).ok()? as i64
        } else if word.len() > 1 && word.starts_with('0') {
            i64::from_str_radix(word, 8).ok()?
        } else {
            word.parse::<u64>().ok()? as i64
        };
        sum = if negative {
            sum.wrapping_sub(value)
        } else {
            sum.wrapping_add(value)
        };
    }
    // Nothing real is larger; sums of two stay in range.
    (-(1 << 62)..1 << 62).contains(&sum).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(Kind, &str)> {
        statements(text)
            .unwrap()
            .iter()
            .map(|s| (s.kind, s.text))
            .collect()
    }

    #[test]
    fn lines_fall_into_statements() {
        assert_eq!(
            split("f:\t.cfi_startproc\n\tnop; ret # x\n\t.string \"a#;b\\\"\"\n"),
            vec![
                (Kind::Label, "f"),
                (Kind::Directive, ".cfi_startproc"),
                (Kind::Insn, "nop"),
                (Kind::Insn, "ret"),
                (Kind::Directive, ".string \"a#;b\\\"\""),
            ]
        );
        assert_eq!(
            split("/* a\n b */ nop\n/x\n# y\n a = 5"),
            vec![(Kind::Insn, "nop"), (Kind::Assign, "a = 5")]
        );
        assert!(statements("/* a").is_err());
    }

    #[test]
    fn app_and_notes_are_kept() {
        let s = statements("#APP\n\tnop\n#NO_APP\n\tret\t\t# 7\t[c=0 l=1]  simple_return\n").unwrap();
        assert!(s[0].app && !s[1].app);
        assert!(s[1].note.ends_with("simple_return"));
    }

    /// A string in gcc's comment goes on over lines that are no statements, whatever they look like.
    #[test]
    fn strings_in_comments_have_line_breaks() {
        let text = "\t.long\t.LASF6\t# DW_AT_const_value: \"usage: \"x\"\n\t-a\n\"\n.text\n#APP\n\"; x\"\n\t.byte 1\n\
                    .LASF6:\n\t.string\t\"usage: \\\"x\\\"\\n\\t-a\\n\\\"\\012.text\\n#APP\\n\\\"; x\"\n";
        let s = statements(text).unwrap();
        let found: Vec<&str> = s.iter().map(|s| s.text).collect();
        assert_eq!(found[..3], [".long\t.LASF6", ".byte 1", ".LASF6"]);
        assert_eq!((s[1].line, s[1].app), (7, false));
    }

    #[test]
    fn operands() {
        let i = insn("lock cmpxchgl %edx, -8+4(%rax,%rcx,4)").unwrap();
        assert_eq!((i.prefix, i.mnemonic, i.ops().len()), ("lock", "cmpxchgl", 2));
        let m = *i.mem().unwrap();
        assert_eq!((m.base, m.index, m.scale, m.number()), (0, 1, 4, Some(-4)));
        let i = insn("movq x@GOTPCREL(%rip), %r12").unwrap();
        assert_eq!(i.mem().unwrap().base, IP);
        assert_eq!(insn("fstp %st(1)").unwrap().ops().len(), 1);
        let i = insn("jmp *0(,%rax,8)").unwrap();
        assert!(i.star);
        assert_eq!(i.mem().unwrap().base, NONE);
        assert!(insn("movq %fs:0, %rax").unwrap().mem().unwrap().fs);
        assert!(insn("movq %gs:0, %rax").is_err());
        assert!(insn("movq %rxx, %rax").is_err());
        assert_eq!(insn("rep ret").unwrap().mnemonic, "ret");
        assert!(
            insn("vgatherdps %ymm0, (%rax,%ymm1,4), %ymm2")
                .unwrap()
                .mem()
                .unwrap()
                .vector
        );
    }

    #[test]
    fn numbers() {
        assert_eq!(number(""), Some(0));
        assert_eq!(number("8+0x10-4"), Some(20));
        assert_eq!(number("-010"), Some(-8));
        assert_eq!(number("x+4"), None);
        assert_eq!(number("4*2"), None);
    }
}
