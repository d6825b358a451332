//! What a denied access tells: who, where, what of which object, which rights were there, and what would allow it.

use crate::object::{Object, TypeId};
use crate::policy::{Kind, Memory, Policy, Structure};
use crate::sink::Sink;
use crate::supervisor::{Supervisor, WORD};
use ringfence_core::{DomainId, Rights};
use std::fmt;

/// How many structures within each other are told.
const DEEPEST: usize = 16;

/// Names and layouts of types, by the numbers that allocators give with their objects.
#[derive(Clone, Debug, Default)]
pub struct Types {
    all: Vec<(String, Option<Structure>)>,
}

impl Types {
    /// The number of a type: `struct request`, say. The same for the same name.
    pub fn number(&mut self, name: &str, layout: Option<Structure>) -> TypeId {
        let there = self.all.iter().position(|(n, _)| n == name);
        let at = there.unwrap_or_else(|| {
            self.all.push((name.into(), None));
            self.all.len() - 1
        });
        if layout.is_some() {
            self.all[at].1 = layout;
        }
        TypeId(at as u32 + 1)
    }

    /// The type's name, and the field that a byte of such an object is in: `struct request.next`, `struct request.cb[32]`.
    pub fn name(&self, kind: TypeId, offset: u64) -> Option<String> {
        let (name, layout) = self.all.get(kind.0.checked_sub(1)? as usize)?;
        let mut text = name.clone();
        let (mut inside, mut left) = (layout.as_ref(), offset);
        // Debug information may say that a structure contains itself.
        for _ in 0..DEEPEST {
            let Some(structure) = inside.take() else { break };
            let field = structure
                .fields
                .iter()
                .find(|f| (f.offset..f.offset.saturating_add(f.size)).contains(&left));
            let Some(field) = field else { break };
            text = format!("{text}.{}", field.name);
            left -= field.offset;
            if field.element > 0 && field.size != field.element {
                text = format!("{text}[{}]", left / field.element);
                left %= field.element;
            }
            if let Kind::Structure(name) = &field.kind {
                let next = self
                    .all
                    .iter()
                    .find(|(n, _)| n.strip_prefix("struct ") == Some(name));
                inside = next.and_then(|(_, layout)| layout.as_ref());
            }
        }
        Some(text)
    }
}

/// An access that was denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The domain.
    pub domain: DomainId,
    /// The module's file.
    pub module: String,
    /// The function that accessed, if it is known, and where in the source.
    pub function: Option<String>,
    /// The source's file and line.
    pub line: Option<(String, u32)>,
    /// The first byte, from the arena's start, and how many.
    pub at: u64,
    /// How many bytes.
    pub len: u64,
    /// Whether it was to be written.
    pub write: bool,
    /// The object, if there is one.
    pub object: Option<Object>,
    /// The first byte that it may not, from the arena's start.
    pub first: u64,
    /// Its type and field.
    pub what: Option<String>,
    /// The rights that were there: the least of its words.
    pub rights: Rights,
    /// A line of a policy that would allow it.
    pub missing: Option<String>,
    /// What a checked heap knows of the place: lines for whoever reads it.
    pub heap: Vec<String>,
}

impl Denied {
    /// Looks up what a supervisor and the types know of an access. Names of the code are the caller's to add.
    pub fn look_up<S: Sink>(
        supervisor: &Supervisor<S>,
        types: &Types,
        domain: DomainId,
        at: u64,
        len: u64,
        write: bool,
    ) -> Denied {
        let word = |byte: u64| u32::try_from(byte / WORD).unwrap_or(u32::MAX);
        let wanted = if write { Rights::Write } else { Rights::Read };
        let words = word(at)..=word(at.saturating_add(len.max(1) - 1));
        let lacking = words.clone().find(|&w| supervisor.rights(domain, w) < wanted);
        let first = lacking.unwrap_or(word(at));
        let object = supervisor.object(first);
        let what = object.as_ref().and_then(|o| {
            let byte = (u64::from(first) * WORD).max(at);
            types.name(o.kind, byte - u64::from(o.words.start) * WORD)
        });
        Denied {
            domain,
            module: String::new(),
            function: None,
            line: None,
            at,
            len,
            write,
            first: (u64::from(first) * WORD).max(at),
            what,
            rights: supervisor.rights(domain, first),
            missing: None,
            heap: Vec::new(),
            object,
        }
    }

    /// Adds the line that a policy lacks, if the arguments of the call that was made lead to what was accessed.
    #[must_use]
    pub fn suggest(
        mut self,
        policy: &Policy,
        function: &str,
        arguments: &[u64],
        pointer: u64,
        memory: &impl Memory,
    ) -> Denied {
        self.missing = policy.clause_for(function, arguments, pointer, self.write, memory);
        self
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = if self.module.is_empty() {
            "a module"
        } else {
            &self.module
        };
        write!(f, "{module}")?;
        if let Some(function) = &self.function {
            write!(f, ", {function}")?;
        }
        if let Some((file, line)) = &self.line {
            write!(f, " ({file}:{line})")?;
        }
        let verb = if self.write { "write" } else { "read" };
        let what = self.what.as_deref().unwrap_or("what has no type");
        writeln!(
            f,
            ": domain #{} may not {verb} {what}, {} bytes at {:#x}",
            self.domain.0, self.len, self.at
        )?;
        match &self.object {
            Some(object) => writeln!(f, "  the object: {object}")?,
            None => writeln!(
                f,
                "  the object: none; nothing was allocated there, or it was freed"
            )?,
        }
        for line in &self.heap {
            writeln!(f, "  {line}")?;
        }
        write!(f, "  it has: {}", self.rights)?;
        if let Some(line) = &self.missing {
            write!(f, "\n  a policy that allows it: {line}")?;
        }
        Ok(())
    }
}
