//! Assembly as gcc writes it: lines, instructions, registers. Only what the faults need to know.

use std::ops::Range;

/// The assembly of one source file.
pub struct Unit {
    /// The file's name, without directory and suffix.
    pub name: String,
    /// Its lines.
    pub lines: Vec<String>,
}

impl Unit {
    /// A unit from its text.
    pub fn new(name: &str, text: &str) -> Unit {
        Unit {
            name: name.into(),
            lines: text.lines().map(String::from).collect(),
        }
    }

    /// The instruction in a line, if there is one.
    pub fn instruction(&self, line: usize) -> Option<Instruction<'_>> {
        Instruction::read(self.lines.get(line)?)
    }

    /// The lines of each function, from its label to its `.size`, parts in other sections among them.
    pub fn functions(&self) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        for (at, line) in self.lines.iter().enumerate() {
            let Some(rest) = line.strip_prefix("\t.size\t") else {
                continue;
            };
            let Some((name, size)) = rest.split_once(", ") else {
                continue;
            };
            let from = found.last().map_or(0, |f: &Range<usize>| f.end);
            let label = format!("{name}:");
            // A part of a function has a size of its own behind the function's: it is in there already. Data has a number for its size.
            if size.starts_with(".-")
                && let Some(begin) = (from..at).find(|&l| self.lines[l] == label)
            {
                found.push(begin..at + 1);
            }
        }
        found
    }
}

/// An instruction: `\tname\toperand, operand` and a comment.
#[derive(Debug, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// The mnemonic, prefixes before it.
    pub name: &'a str,
    /// Operands in AT&T's order: the destination is the last.
    pub operands: Vec<&'a str>,
}

/// A line without its comment.
pub fn bare(line: &str) -> &str {
    line.split("\t#").next().unwrap_or(line).trim_end()
}

impl Instruction<'_> {
    /// The instruction in a line.
    pub fn read(line: &str) -> Option<Instruction<'_>> {
        let text = bare(line).strip_prefix('\t')?;
        if text.starts_with(['.', '#']) || text.is_empty() {
            return None;
        }
        let (name, rest) = text.split_once('\t').unwrap_or((text, ""));
        let (mut operands, mut depth, mut begin) = (Vec::new(), 0, 0);
        for (at, c) in rest.char_indices() {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 0 => {
                    operands.push(rest[begin..at].trim());
                    begin = at + 1;
                }
                _ => {}
            }
        }
        if !rest[begin..].trim().is_empty() {
            operands.push(rest[begin..].trim());
        }
        Some(Instruction { name, operands })
    }

    /// Whether it is one of some instructions, whatever its suffix for the operands' size.
    pub fn is(&self, names: &[&str]) -> bool {
        names.iter().any(|&n| {
            self.name
                .strip_prefix(n)
                .is_some_and(|suffix| matches!(suffix, "" | "b" | "w" | "l" | "q"))
        })
    }

    /// The condition of a conditional jump to a label of the function.
    pub fn condition(&self) -> Option<&str> {
        let condition = self.name.strip_prefix('j').filter(|&c| c != "mp")?;
        self.operands
            .first()
            .filter(|o| o.starts_with(".L"))
            .map(|_| condition)
    }

    /// The function that it calls by name.
    pub fn callee(&self) -> Option<&str> {
        let target = self.operands.first().filter(|_| self.name == "call")?;
        Some(target.split('@').next().unwrap_or(target)).filter(|t| !t.starts_with('*'))
    }

    /// The function that it calls, or goes on in at its own end, by name.
    pub fn target(&self) -> Option<&str> {
        let target = self
            .operands
            .first()
            .filter(|_| matches!(self.name, "call" | "jmp"))?;
        Some(target.split('@').next().unwrap_or(target)).filter(|t| !t.starts_with(['*', '.']))
    }

    /// Whether it moves the stack pointer, or belongs to a function's begin and end.
    pub fn frames(&self) -> bool {
        let framing = [
            "push", "pop", "ret", "endbr", "leave", "call", "notrack", "hlt", "ud2",
        ];
        framing.iter().any(|f| self.name.starts_with(f)) || self.operands.last().is_some_and(|o| *o == "%rsp")
    }
}

const WIDE: [&str; 12] = [
    "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "r8", "r9", "r10", "r12", "r13",
];
const NARROW: [&str; 12] = [
    "eax", "ebx", "ecx", "edx", "esi", "edi", "ebp", "r8d", "r9d", "r10d", "r12d", "r13d",
];

/// The registers of 64 and 32 bits in a text that a fault may exchange, with their places behind the `%`.
pub fn registers(text: &str) -> Vec<(Range<usize>, &str)> {
    let places = text.match_indices('%').filter_map(|(at, _)| {
        let rest = &text[at + 1..];
        let length = rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(rest.len());
        let name = &rest[..length];
        (WIDE.contains(&name) || NARROW.contains(&name)).then_some((at + 1..at + 1 + length, name))
    });
    places.collect()
}

/// The registers that have the same size as this one, without it.
pub fn others(register: &str) -> Vec<&'static str> {
    let all = if WIDE.contains(&register) { WIDE } else { NARROW };
    all.into_iter().filter(|&r| r != register).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read() {
        let line = "\tmovq\t%rax, 8(%rdi,%rcx,8)\t# 12\t[c=4 l=3]";
        let i = Instruction::read(line).expect("one");
        assert_eq!(
            (i.name, i.operands.as_slice()),
            ("movq", &["%rax", "8(%rdi,%rcx,8)"][..])
        );
        assert!(i.is(&["mov"]) && !i.is(&["add"]));
        assert_eq!(
            Instruction::read("\tjne\t.L4").and_then(|i| i.condition().map(String::from)),
            Some("ne".into())
        );
        assert_eq!(
            Instruction::read("\tcall\tmemcpy@PLT").and_then(|i| i.callee().map(String::from)),
            Some("memcpy".into())
        );
        assert!(Instruction::read("\t.p2align 4,,10").is_none() && Instruction::read(".L4:").is_none());
        let named: Vec<_> = registers("8(%rdi,%r10), %xmm0, %eax")
            .into_iter()
            .map(|(_, n)| n)
            .collect();
        assert_eq!(named, ["rdi", "r10", "eax"]);
    }
}
