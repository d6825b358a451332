//! Resolving: where each module goes in the window, what its symbols mean, and what its relocations write.

use crate::domain::imports::{Binding, Imports};
use crate::load::elf::{Relocation, RelocationKind, Symbol};
use crate::load::module::{ExportKind, Module};
use crate::load::names::plain;
use crate::os::host;
use crate::place::header::Listed;
use ringfence_core::error::{DomainError, HostError};
use ringfence_isa::{PAGE, note, window};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Room between two images.
pub(crate) const GAP: u64 = 64 << 10;

/// A module at its place in a window.
#[derive(Clone)]
pub(crate) struct Placed {
    pub module: Module,
    /// Offset of the image in the window.
    pub offset: u32,
    /// How far below the thread pointer its thread-local block starts.
    pub tls: u32,
}

impl Placed {
    /// The offset in the image of the window's byte at `offset`, if that is in the image.
    pub(crate) fn inside(&self, offset: u64) -> Option<u32> {
        let inside = offset.checked_sub(self.offset.into())?;
        (inside < u64::from(self.module.0.parsed.image_len)).then_some(inside as u32)
    }

    /// What the header page tells of it.
    pub(crate) fn listed(&self) -> Listed {
        let parsed = &self.module.0.parsed;
        Listed {
            offset: self.offset,
            len: parsed.image_len,
            frames: parsed.frames.map_or(0, |frames| self.offset + frames),
        }
    }
}

/// Everything that the window's place does not matter for.
pub(crate) struct Layout {
    pub placed: Vec<Placed>,
    /// Size of all thread-local blocks together.
    pub tls_len: u32,
    pub tls_align: u32,
}

impl Layout {
    /// The module whose image holds the window's byte at `offset`, and the offset in that image.
    pub(crate) fn find(&self, offset: u64) -> Option<(&Placed, u32)> {
        let after = self.placed.partition_point(|p| u64::from(p.offset) <= offset);
        let placed = self.placed[..after].last()?;
        Some((placed, placed.inside(offset)?))
    }
}

/// Puts images one behind the other. Nothing at all is fine for domains to which code comes later.
pub(crate) fn place(modules: &[Module], extensible: bool) -> Result<Layout, DomainError> {
    let err = |reason: &str| DomainError::Layout {
        reason: reason.into(),
    };
    if modules.is_empty() && !extensible {
        return Err(err(
            "no module was given; set DomainOptions::extensible for a domain to which code comes later",
        ));
    }
    let mut at = u64::from(window::IMAGES);
    let (mut tls, mut tls_align) = (0u32, 64u32);
    let mut placed = Vec::with_capacity(modules.len());
    for (number, module) in modules.iter().enumerate() {
        let parsed = &module.0.parsed;
        if modules[..number].iter().any(|m| Arc::ptr_eq(&m.0, &module.0)) {
            return Err(err(&format!(
                "{} is given twice; load its file once more for a second one",
                module.name()
            )));
        }
        let end = at + u64::from(parsed.image_len);
        if end > u64::from(window::ARENA) {
            return Err(err("their images are larger than the area for images"));
        }
        if let Some(t) = parsed.tls {
            tls = (tls + t.len).next_multiple_of(t.align);
            tls_align = tls_align.max(t.align);
        }
        if tls > 4 << 20 {
            return Err(err("their thread-local storage is larger than 4 MiB"));
        }
        placed.push(Placed {
            module: module.clone(),
            offset: at as u32,
            tls,
        });
        at = (end + GAP).next_multiple_of(PAGE);
    }
    Ok(Layout {
        placed,
        tls_len: tls,
        tls_align,
    })
}

/// A host import in use, in the order of its stub.
pub(crate) struct Used {
    pub name: String,
    pub binding: Binding,
}

/// Finds out what every undefined symbol is.
pub(crate) struct Resolver<'a> {
    placed: Vec<&'a Placed>,
    imports: Option<&'a Imports>,
    /// Host imports that have their stubs already.
    bound: &'a [Used],
    pub used: Vec<Used>,
    /// Which modules others were resolved against, by their place in `placed`.
    pub needs: BTreeSet<usize>,
    /// Whether a module can learn how its calls of other domains went.
    pub asks_call_status: bool,
    stubs: BTreeMap<String, u32>,
    known: Known,
}

/// What the symbols that one module needs from elsewhere have come to: a name is looked up once, and not for each relocation.
#[derive(Default)]
struct Known {
    module: usize,
    /// For each of its foreign symbols, as an address and as a thread-local variable.
    values: Vec<[Value; 2]>,
}

/// What a foreign symbol comes to.
#[derive(Clone, Copy)]
enum Value {
    Unknown,
    /// Offset in the window.
    Address(u32),
    /// A weak symbol that nobody defines.
    Nothing,
    /// Of a thread-local variable: its module's block, and the place there.
    ThreadLocal(u32, u32),
}

impl Known {
    /// Where the value of a symbol of module number `module` stands.
    fn place(
        &mut self,
        module: usize,
        of: &Module,
        relocation: &Relocation,
    ) -> Result<&mut Value, HostError> {
        let foreign = &of.0.foreign;
        if self.module != module || self.values.is_empty() {
            self.module = module;
            self.values = host::vec(foreign.len())?;
            self.values.resize(foreign.len(), [Value::Unknown; 2]);
        }
        let number = foreign.binary_search(&relocation.symbol);
        let number = number.expect("all that relocations name are there");
        let thread_local = relocation.kind == RelocationKind::ThreadPointer;
        Ok(&mut self.values[number][usize::from(thread_local)])
    }
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(layout: &'a Layout, imports: &'a Imports) -> Self {
        Resolver {
            imports: Some(imports),
            ..Resolver::later(layout.placed.iter().collect(), &[])
        }
    }

    /// For modules that come to a domain with these modules, whose host imports are bound.
    pub(crate) fn later(placed: Vec<&'a Placed>, bound: &'a [Used]) -> Self {
        Resolver {
            placed,
            imports: None,
            bound,
            used: Vec::new(),
            needs: BTreeSet::new(),
            asks_call_status: false,
            stubs: BTreeMap::new(),
            known: Known::default(),
        }
    }

    /// The value that `relocation` of module number `module` writes, in a window at `base`.
    pub(crate) fn value(
        &mut self,
        module: usize,
        relocation: &Relocation,
        base: u64,
    ) -> Result<u64, DomainError> {
        let placed = self.placed[module];
        let image = base + u64::from(placed.offset);
        let addend = relocation.addend as u64;
        let symbol = placed.module.0.parsed.symbols.get(relocation.symbol as usize);
        let symbol = symbol.filter(|_| relocation.symbol != 0);
        let value = match symbol {
            Some(s) if !s.defined && relocation.kind != RelocationKind::Relative => {
                self.foreign(module, relocation, s)?
            }
            _ => Value::Unknown,
        };
        Ok(match (relocation.kind, value) {
            (RelocationKind::Relative, _) => image.wrapping_add(addend),
            (_, Value::Nothing) => 0,
            (_, Value::Address(offset)) => (base + u64::from(offset)).wrapping_add(addend),
            (_, Value::ThreadLocal(below, value)) => {
                u64::from(value).wrapping_add(addend).wrapping_sub(below.into())
            }
            (kind, Value::Unknown) => {
                let own = symbol.map_or(0, |s| u64::from(s.value)).wrapping_add(addend);
                match kind {
                    RelocationKind::ThreadPointer => own.wrapping_sub(placed.tls.into()),
                    _ => image.wrapping_add(own),
                }
            }
        })
    }

    /// What an undefined symbol comes to.
    fn foreign(
        &mut self,
        module: usize,
        relocation: &Relocation,
        symbol: &Symbol,
    ) -> Result<Value, DomainError> {
        let placed = self.placed[module];
        let of = &placed.module;
        match *self.known.place(module, of, relocation)? {
            Value::Unknown => {}
            known => return Ok(known),
        }
        let name = symbol.name(&of.0.original);
        let found = match relocation.kind {
            RelocationKind::ThreadPointer => self
                .find(name, |k| k == ExportKind::ThreadLocal)
                .map(|(p, value)| Value::ThreadLocal(p.tls, value))
                .ok_or_else(|| self.unresolved(module, name))?,
            _ => self.meaning(module, name, symbol.weak)?,
        };
        *self.known.place(module, of, relocation)? = found;
        Ok(found)
    }

    fn unresolved(&self, module: usize, symbol: &str) -> DomainError {
        let module = self.placed[module].module.name().into();
        DomainError::Unresolved {
            module,
            symbol: plain(symbol),
        }
    }

    fn find(&mut self, name: &str, kind: impl Fn(ExportKind) -> bool) -> Option<(&'a Placed, u32)> {
        let (number, found) = self.placed.iter().enumerate().find_map(|(i, &p)| {
            let export = p.module.0.export(name)?;
            kind(export.kind).then_some((i, (p, export.offset)))
        })?;
        self.needs.insert(number);
        Some(found)
    }

    /// Gives a host import the next stub.
    fn bind(&mut self, function: &str, binding: &Binding) -> Result<u32, DomainError> {
        let stub = window::STUB_FIRST_IMPORT + self.used.len() as u32;
        let limit = (window::STUB_COUNT - window::STUB_FIRST_IMPORT) as usize;
        if stub >= window::STUB_COUNT {
            return Err(DomainError::TooManyImports {
                count: self.used.len() + 1,
                limit,
            });
        }
        self.used.push(Used {
            name: function.into(),
            binding: binding.clone(),
        });
        self.stubs.insert(function.into(), stub);
        Ok(stub)
    }

    /// Gives stubs to what no module needs yet, in the order of the names.
    pub(crate) fn bind_rest(&mut self) -> Result<(), DomainError> {
        let Some(imports) = self.imports else {
            return Ok(());
        };
        let mut rest: Vec<_> = imports
            .functions
            .iter()
            .filter(|(name, _)| !self.stubs.contains_key(*name))
            .collect();
        rest.sort_unstable_by_key(|(name, _)| *name);
        for (name, binding) in rest {
            self.bind(name, binding)?;
        }
        Ok(())
    }

    fn meaning(&mut self, module: usize, name: &str, weak: bool) -> Result<Value, DomainError> {
        let address = |(p, offset): (&Placed, u32)| Value::Address(p.offset + offset);
        let function = name.strip_prefix(note::IMPORT_PREFIX);
        let wanted = |kind| match function {
            Some(_) => kind == ExportKind::Function,
            None => kind != ExportKind::ThreadLocal,
        };
        if let Some(found) = self.find(function.unwrap_or(name), wanted) {
            return Ok(address(found));
        }
        // A weak symbol may be a function, or data: nothing says which.
        let stub = match function.or(weak.then_some(name)) {
            Some(function) => self.stub(function)?,
            None => None,
        };
        match stub {
            Some(stub) => Ok(Value::Address(window::stub_at(stub))),
            None if weak => Ok(Value::Nothing),
            None => Err(self.unresolved(module, function.unwrap_or(name))),
        }
    }

    /// The stub of a function of the runtime's or the host's.
    fn stub(&mut self, function: &str) -> Result<Option<u32>, DomainError> {
        if let Some((_, stub)) = window::stub::NAMES.iter().find(|(n, _)| *n == function) {
            self.asks_call_status |= *stub == window::stub::CALL_STATUS;
            return Ok(Some(*stub));
        }
        if let Some(stub) = self.stubs.get(function) {
            return Ok(Some(*stub));
        }
        if let Some(number) = self.bound.iter().position(|used| used.name == function) {
            return Ok(Some(window::STUB_FIRST_IMPORT + number as u32));
        }
        let binding = self.imports.and_then(|i| i.functions.get(function));
        binding.map(|binding| self.bind(function, binding)).transpose()
    }
}
