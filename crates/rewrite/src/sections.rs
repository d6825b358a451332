//! Which section a statement stands in.

use std::collections::HashMap;

use crate::parse::{Kind, Stmt, directive};

/// What matters about a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Section {
    pub code: bool,
    /// Nothing of it is wanted.
    pub dropped: bool,
}

impl Section {
    const TEXT: Section = Section {
        code: true,
        dropped: false,
    };
    const DATA: Section = Section {
        code: false,
        dropped: false,
    };
}

/// Follows the directives that change the section.
pub(crate) struct Sections<'a> {
    /// The section at hand.
    pub now: Section,
    previous: Section,
    stack: Vec<(Section, Section)>,
    /// Whether a section has code: its flags are told when it is named for the first time, and often not again.
    known: HashMap<&'a str, bool>,
}

impl<'a> Sections<'a> {
    pub(crate) fn new() -> Sections<'a> {
        Sections {
            now: Section::TEXT,
            previous: Section::TEXT,
            stack: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Whether `s` changes the section, which is done then.
    pub(crate) fn follow(&mut self, s: &Stmt<'a>) -> bool {
        if s.kind != Kind::Directive {
            return false;
        }
        let (name, args) = directive(s.text);
        let old = self.now;
        match name {
            ".text" => self.now = Section::TEXT,
            ".data" | ".bss" => self.now = Section::DATA,
            ".section" => self.now = self.named(args),
            ".pushsection" => {
                self.stack.push((self.now, self.previous));
                self.now = self.named(args);
            }
            ".popsection" => {
                if let Some((now, previous)) = self.stack.pop() {
                    self.now = now;
                    self.previous = previous;
                }
            }
            ".previous" => self.now = self.previous,
            ".subsection" => {}
            _ => return false,
        }
        if !matches!(name, ".popsection" | ".subsection") {
            self.previous = old;
        }
        true
    }

    fn named(&mut self, args: &'a str) -> Section {
        let mut parts = args.splitn(3, ',').map(str::trim);
        let name = parts.next().unwrap_or("").trim_matches('"');
        let code = match parts.next() {
            Some(flags) if flags.starts_with('"') => {
                let code = flags.contains('x');
                *self.known.entry(name).or_insert(code)
            }
            _ => self.known.get(name).copied().unwrap_or_else(|| {
                name == ".text" || name.starts_with(".text.") || name == ".init" || name == ".fini"
            }),
        };
        // The property note promises endbr64 at the targets of indirect jumps, which are gone.
        Section {
            code,
            dropped: name == ".note.gnu.property",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::statements;

    /// The flags stand where a section is named first.
    #[test]
    fn a_section_keeps_its_flags() {
        let text = ".section env,\"ax\",@progbits\n.data\n.section env\n.section other\n.pushsection env\n.popsection\n\
                    .previous\n.section \"env\"";
        let mut sections = Sections::new();
        let code: Vec<bool> = statements(text)
            .unwrap()
            .iter()
            .map(|s| {
                assert!(sections.follow(s));
                sections.now.code
            })
            .collect();
        assert_eq!(code, [true, false, true, false, true, false, true, true]);
    }
}
