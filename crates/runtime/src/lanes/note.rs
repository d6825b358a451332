//! What is known of a failed call, written down while it fails.
//!
//! A call may be made from a signal handler of the host's that has interrupted `malloc`, so nothing here allocates, frees or waits
//! until somebody asks: text and addresses have fixed room, and modules are only ever added to those that are [kept](Kept). Errors for the host
//! are made of notes in [`Notes::error`], for which calls from handlers do not ask.

use crate::load::module::Module;
use crate::load::trace::{MOST_FRAMES, MOST_MODULES, Trace};
use ringfence_core::error::CallError;
use ringfence_core::{Fault, FaultKind, Registers, Text};
use std::mem::{ManuallyDrop, MaybeUninit};
use std::sync::Arc;

/// Bytes of a text of the domain's or the host's that belongs to a failure.
pub(crate) const MOST_TEXT: usize = ringfence_core::MOST_TEXT;

/// Bytes of a domain's name in a failure.
const MOST_NAME: usize = 256;

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

/// The frames of a failed call, their modules told by `M`. Copied as far as it is used.
struct Frames<M> {
    /// How many addresses there are, and how many modules with where they lie.
    count: usize,
    placed: usize,
    addresses: [MaybeUninit<u64>; MOST_FRAMES],
    modules: [(u64, M); MOST_MODULES],
}

impl<M: Copy> Frames<M> {
    fn new(nothing: M) -> Self {
        Frames {
            count: 0,
            placed: 0,
            addresses: [const { MaybeUninit::uninit() }; MOST_FRAMES],
            modules: [(0, nothing); MOST_MODULES],
        }
    }

    fn addresses(&self) -> &[u64] {
        // SAFETY: so many are written.
        unsafe { std::slice::from_raw_parts(self.addresses.as_ptr().cast(), self.count) }
    }

    fn modules(&self) -> &[(u64, M)] {
        &self.modules[..self.placed]
    }
}

/// A failed call while it is in progress, and the domain's modules stay.
pub(crate) struct Fresh<'a> {
    pub end: End,
    pub registers: &'a Registers,
    text: &'a str,
    domain: &'a str,
    frames: Frames<Option<&'a Module>>,
}

impl<'a> Fresh<'a> {
    pub(crate) fn new(end: End, text: &'a str, domain: &'a str, registers: &'a Registers) -> Self {
        Fresh {
            end,
            registers,
            text,
            domain,
            frames: Frames::new(None),
        }
    }

    /// Whether there is no room for another address.
    pub(crate) fn is_full(&self) -> bool {
        self.frames.count == MOST_FRAMES
    }

    /// Addresses of all frames so far.
    pub(crate) fn addresses(&self) -> &[u64] {
        self.frames.addresses()
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.frames.count
    }

    /// Whether the call ended because of another one's failure.
    pub(crate) fn is_elsewhere(&self) -> bool {
        matches!(self.end, End::Fault(FaultKind::Elsewhere))
    }

    /// The next frame outwards, in the module that lies at `base` if it is in one. There is room.
    pub(crate) fn frame(&mut self, address: u64, module: Option<(u64, &'a Module)>) {
        let frames = &mut self.frames;
        frames.addresses[frames.count].write(address);
        frames.count += 1;
        let Some((base, module)) = module else { return };
        if frames.placed < MOST_MODULES && frames.modules().iter().all(|(b, _)| *b != base) {
            frames.modules[frames.placed] = (base, Some(module));
            frames.placed += 1;
        }
    }
}

/// A failed call, in memory of its own.
struct Stored {
    /// Owns no memory: its texts are empty.
    end: ManuallyDrop<End>,
    registers: Registers,
    text: Text<MOST_TEXT>,
    domain: Text<MOST_NAME>,
    frames: Frames<Known>,
}

/// A module, known again by its place in memory while it is [kept](Kept).
type Known = usize;

fn known(module: &Module) -> Known {
    Arc::as_ptr(&module.0) as usize
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

    fn place(&self, module: Known) -> Option<usize> {
        let is_it = |m: &Option<Module>| m.as_ref().is_some_and(|m| known(m) == module);
        self.list[..self.count].iter().position(is_it)
    }

    fn find(&self, module: Known) -> Option<&Module> {
        self.list[self.place(module)?].as_ref()
    }

    /// What there is no more use for.
    fn take(&mut self, module: Known) -> Option<Module> {
        let place = self.place(module)?;
        self.count -= 1;
        self.list.swap(place, self.count);
        self.list[self.count].take()
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
        let empty = || Stored {
            end: ManuallyDrop::new(End::Callee),
            registers: Registers::default(),
            text: Text::EMPTY,
            domain: Text::EMPTY,
            frames: Frames::new(0),
        };
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

    /// One of the modules, if nothing is noted: to be dropped where memory may be freed; and whether there are more.
    pub(crate) fn release(&mut self) -> (Option<Module>, bool) {
        let kept = &mut self.kept;
        if self.count != 0 || kept.count == 0 {
            return (None, false);
        }
        kept.count -= 1;
        (kept.list[kept.count].take(), kept.count > 0)
    }

    /// How the calls ended that are noted, the one that came first first.
    pub(crate) fn ends(&self) -> impl Iterator<Item = &End> {
        self.list[..self.count].iter().map(|note| &*note.end)
    }

    /// Notes a failure that those that are noted already have led to.
    pub(crate) fn add(&mut self, note: &Fresh<'_>) {
        let texts = (note.text, note.domain);
        self.put((&note.end, note.registers), texts, &note.frames, |&module| module);
    }

    /// Notes what the other one has in the place of what is here.
    pub(crate) fn copy(&mut self, from: &Notes) {
        self.clear();
        for note in &from.list[..from.count] {
            let texts = (note.text.as_str(), note.domain.as_str());
            let find = |&module: &Known| from.kept.find(module);
            self.put((&note.end, &note.registers), texts, &note.frames, find);
        }
    }

    fn put<'a, M: Copy>(
        &mut self,
        (end, registers): (&End, &Registers),
        (text, domain): (&str, &str),
        frames: &'a Frames<M>,
        find: impl Fn(&'a M) -> Option<&'a Module>,
    ) {
        // The last level is always the call that the host has made.
        self.count = (self.count + 1).min(MOST_LEVELS);
        let to = &mut self.list[self.count - 1];
        // SAFETY: an end owns no memory, its texts are empty, so a second one with the same bytes is one of its own.
        to.end = unsafe { std::ptr::read(std::ptr::from_ref(end).cast()) };
        to.registers = *registers;
        to.text.set(text);
        to.domain.set(domain);
        let to = &mut to.frames;
        to.count = frames.count;
        to.addresses[..frames.count].copy_from_slice(&frames.addresses[..frames.count]);
        to.placed = 0;
        for (base, module) in frames.modules() {
            if let Some(module) = find(module)
                && self.kept.keep(module)
            {
                to.modules[to.placed] = (*base, known(module));
                to.placed += 1;
            }
        }
    }

    /// The error, with memory of its own; `None` if nothing is noted.
    pub(crate) fn error(&self) -> Option<CallError> {
        error_of(&self.list[..self.count], |module, _| {
            self.kept.find(module).cloned()
        })
    }

    /// The same, and forgets what was noted. What is left of the modules is to be [released](Self::release).
    pub(crate) fn take(&mut self) -> Option<CallError> {
        let Notes { count, list, kept } = self;
        let error = error_of(&list[..*count], |module, is_last| match is_last {
            true => kept.take(module),
            false => kept.find(module).cloned(),
        });
        self.clear();
        error
    }
}

/// The error that failures are, each of which led to the next. `module` gives those that are kept, and is told which is the last use.
fn error_of(list: &[Stored], mut module: impl FnMut(Known, bool) -> Option<Module>) -> Option<CallError> {
    let mut error = None;
    for (i, note) in list.iter().enumerate() {
        let text = || note.text.as_str().to_owned();
        let kind = match &*note.end {
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
        let placed = note.frames.modules();
        let mut images = placed.iter().enumerate().filter_map(|(n, &(base, known))| {
            let again = placed[n + 1..].iter().any(|(_, other)| *other == known);
            let is_last = i + 1 == list.len() && !again;
            Some((base, module(known, is_last)?))
        });
        let trace = Trace::new(images.next(), images.collect(), note.frames.addresses().to_vec());
        let domain = note.domain.as_str().to_owned();
        let fault = Fault::new(kind, note.registers, domain, Arc::new(trace));
        error = Some(CallError::Fault(Box::new(fault)));
    }
    error
}
