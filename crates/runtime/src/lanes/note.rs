//! What is known of a failed call, written down while it fails.
//!
//! A call may be made from a signal handler of the host's that has interrupted `malloc`, so nothing here allocates, frees or waits
//! until somebody asks: text and addresses have fixed room, and modules are only ever added to those that are [kept](Kept). Errors for the host
//! are made of notes in [`Notes::error`], for which calls from handlers do not ask.

use crate::load::module::Module;
use crate::load::trace::{MOST_FRAMES, Trace};
use ringfence_core::error::CallError;
use ringfence_core::{Fault, FaultKind, Registers, Text};
use std::sync::Arc;

/// Bytes of a text of the domain's or the host's that belongs to a failure.
pub(crate) const MOST_TEXT: usize = ringfence_core::MOST_TEXT;

/// Bytes of a domain's name in a failure.
const MOST_NAME: usize = 256;

/// Different modules in one backtrace; frames in further ones have addresses only.
const MOST_MODULES: usize = 8;

/// Failures that are told of a chain of calls from domain to domain: the last, and those that came first.
const MOST_LEVELS: usize = 3;

/// Modules that failures name before somebody asks.
const MOST_KEPT: usize = 32;

/// How a call ended. The texts in the kind are empty: [`Note::text`] has them.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Fault(FaultKind),
    Exit(i32),
    /// A domain that this one called failed: the note before this one's.
    Callee,
}

/// A failed call, its modules told by `M`, its text and its domain's name by `T` and `D`.
pub(crate) struct Note<M, T, D> {
    pub end: End,
    pub registers: Registers,
    text: T,
    domain: D,
    count: usize,
    addresses: [u64; MOST_FRAMES],
    modules: [Option<(u64, M)>; MOST_MODULES],
}

/// While the call is in progress, and the domain's modules stay.
pub(crate) type Fresh<'a> = Note<&'a Module, &'a str, &'a str>;

/// In memory of its own.
type Stored = Note<Known, Text<MOST_TEXT>, Text<MOST_NAME>>;

/// A module, known again by its place in memory while it is [kept](Kept).
type Known = usize;

fn known(module: &Module) -> Known {
    Arc::as_ptr(&module.0) as usize
}

impl<M, T, D> Note<M, T, D> {
    pub(crate) fn new(end: End, text: T, domain: D) -> Self {
        Note {
            end,
            registers: Registers::default(),
            text,
            domain,
            count: 0,
            addresses: [0; MOST_FRAMES],
            modules: [const { None }; MOST_MODULES],
        }
    }

    /// Whether there is no room for another address.
    pub(crate) fn is_full(&self) -> bool {
        self.count == MOST_FRAMES
    }

    /// Addresses so far.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Whether the call ended because of another one's failure.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.end, End::Fault(FaultKind::Elsewhere))
    }
}

impl<'a> Fresh<'a> {
    /// The next frame outwards, in the module that lies at `base` if it is in one. There is room.
    pub(crate) fn frame(&mut self, address: u64, module: Option<(u64, &'a Module)>) {
        self.addresses[self.count] = address;
        self.count += 1;
        let Some((base, module)) = module else { return };
        let at_base = |m: &Option<(u64, _)>| m.as_ref().is_none_or(|(b, _)| *b == base);
        if let Some(place) = self.modules.iter_mut().find(|m| at_base(m)) {
            *place = Some((base, module));
        }
    }
}

/// Modules that notes name. They are given back when the notes are: a module that goes frees memory.
struct Kept {
    list: [Option<Module>; MOST_KEPT],
    /// So many from the start are there.
    count: usize,
}

impl Kept {
    const NONE: Kept = Kept {
        list: [const { None }; MOST_KEPT],
        count: 0,
    };

    /// Whether there was room.
    fn keep(&mut self, module: &Module) -> bool {
        if self.find(known(module)).is_some() {
            return true;
        }
        let Some(place) = self.list.get_mut(self.count) else {
            return false;
        };
        *place = Some(module.clone());
        self.count += 1;
        true
    }

    fn find(&self, module: Known) -> Option<&Module> {
        self.list[..self.count]
            .iter()
            .flatten()
            .find(|m| known(m) == module)
    }
}

/// A failure, and those of domains that led to it.
pub(crate) struct Notes {
    count: usize,
    list: [Stored; MOST_LEVELS],
    kept: Kept,
}

impl Notes {
    pub(crate) fn new() -> Box<Notes> {
        let empty = || Note::new(End::Callee, Text::EMPTY, Text::EMPTY);
        Box::new(Notes {
            count: 0,
            list: std::array::from_fn(|_| empty()),
            kept: Kept::NONE,
        })
    }

    /// Forgets what was noted. The modules are kept: see [`release`](Self::release).
    pub(crate) fn clear(&mut self) {
        self.count = 0;
    }

    /// One of the modules, if nothing is noted: to be dropped where memory may be freed. `None` if there is none left.
    pub(crate) fn release(&mut self) -> Option<Module> {
        if self.count != 0 {
            return None;
        }
        self.kept.count = self.kept.count.checked_sub(1)?;
        self.kept.list[self.kept.count].take()
    }

    /// How the calls ended that are noted, the one that came first first.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &End> {
        self.list[..self.count].iter().map(|note| &note.end)
    }

    /// Notes a failure that those that are noted already have led to.
    pub(crate) fn add(&mut self, note: &Fresh<'_>) {
        self.put(note, (note.text, note.domain), |_, module| Some(*module));
    }

    /// Notes what the other one has in the place of what is here.
    pub(crate) fn copy(&mut self, from: &Notes) {
        self.clear();
        for note in &from.list[..from.count] {
            let texts = (note.text.as_str(), note.domain.as_str());
            self.put(note, texts, |_, &module| from.kept.find(module));
        }
    }

    fn put<'a, M, T, D>(
        &mut self,
        note: &'a Note<M, T, D>,
        (text, domain): (&str, &str),
        find: impl Fn(u64, &'a M) -> Option<&'a Module>,
    ) {
        // The last level is always the call that the host has made.
        self.count = (self.count + 1).min(MOST_LEVELS);
        let to = &mut self.list[self.count - 1];
        // The kinds own no memory: their texts are empty.
        to.end = note.end.clone();
        to.registers = note.registers;
        to.text.set(text);
        to.domain.set(domain);
        to.count = note.count;
        to.addresses[..note.count].copy_from_slice(&note.addresses[..note.count]);
        for (to, from) in to.modules.iter_mut().zip(&note.modules) {
            let module = from.as_ref().and_then(|(base, m)| Some((*base, find(*base, m)?)));
            *to = module.and_then(|(base, m)| self.kept.keep(m).then(|| (base, known(m))));
        }
    }

    /// The error, with memory of its own; `None` if nothing is noted.
    pub(crate) fn error(&self) -> Option<CallError> {
        let mut error = None;
        for note in &self.list[..self.count] {
            let text = || note.text.as_str().to_owned();
            let kind = match &note.end {
                End::Exit(status) => {
                    error = Some(CallError::Exit(*status));
                    continue;
                }
                End::Callee => match error {
                    Some(CallError::Fault(callee)) => FaultKind::Callee(callee),
                    _ => FaultKind::Host(text()),
                },
                End::Fault(FaultKind::Host(_)) => FaultKind::Host(text()),
                End::Fault(FaultKind::Uncaught(_)) => FaultKind::Uncaught(text()),
                End::Fault(FaultKind::NotUnwound(_)) => FaultKind::NotUnwound(text()),
                End::Fault(kind) => kind.clone(),
            };
            let find = |m: &Option<(u64, Known)>| {
                let (base, module) = (*m)?;
                Some((base, self.kept.find(module)?.clone()))
            };
            let images = note.modules.iter().filter_map(find).collect();
            let trace = Trace::new(images, note.addresses[..note.count].to_vec());
            let domain = note.domain.as_str().to_owned();
            let fault = Fault::new(kind, note.registers, domain, Arc::new(trace));
            error = Some(CallError::Fault(Box::new(fault)));
        }
        error
    }
}
