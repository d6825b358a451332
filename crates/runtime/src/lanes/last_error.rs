//! Why the calling thread's last call failed.
//!
//! A word of the thread's tells how the last call ended, and what more is known lies in the thread's [`Record`], as notes. Both are
//! written without allocating, freeing or waiting. Errors are made of them when somebody takes one.

use crate::lanes::first::{First, LaneId};
use crate::lanes::gate::{self, status};
use crate::lanes::lane::Lane;
use crate::lanes::note::{End, Fresh, Notes};
use crate::lanes::world;
use ringfence_core::FaultKind;
use ringfence_core::error::CallError;
use ringfence_core::local;
use std::cell::{RefCell, UnsafeCell};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, compiler_fence};

local! {
    /// Errors that own memory: of calls that could not begin.
    static ERROR: RefCell<Option<CallError>>
}

/// What a thread that has entered a domain once knows of its last failed call.
pub(crate) struct Record {
    /// Whether the thread is reading or writing it: then a call that fails in a signal handler leaves it alone.
    busy: AtomicBool,
    /// How many signal handlers have [saved](save_call) what is here: the same.
    saved: AtomicU32,
    noted: UnsafeCell<Noted>,
}

struct Noted {
    /// The lane whose domain refused the last call, and the number of the lane's binding.
    refused: (*const Lane, u64),
    notes: Box<Notes>,
}

impl Record {
    pub(crate) fn new() -> Box<Record> {
        Box::new(Record {
            busy: AtomicBool::new(false),
            saved: AtomicU32::new(0),
            noted: UnsafeCell::new(Noted {
                refused: (null(), 0),
                notes: Notes::new(),
            }),
        })
    }
}

fn record() -> Option<&'static Record> {
    // SAFETY: our own thread's words; null, or the thread's own until it ends.
    unsafe { (*gate::tls()).record.cast::<Record>().as_ref() }
}

/// Lets `f` at what the calling thread has noted, unless it has no record, or is at it already, in the code that a signal handler
/// has interrupted.
fn with_notes<T>(f: impl FnOnce(&mut Noted) -> T) -> Option<T> {
    let record = record()?;
    if record.busy.load(Ordering::Relaxed) {
        return None;
    }
    record.busy.store(true, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    // SAFETY: the thread's own, and handlers find `busy`.
    let result = f(unsafe { &mut *record.noted.get() });
    compiler_fence(Ordering::SeqCst);
    record.busy.store(false, Ordering::Relaxed);
    Some(result)
}

/// Whether a handler has saved what is noted: the thread is in one.
pub(crate) fn is_saved() -> bool {
    record().is_some_and(|record| record.saved.load(Ordering::Relaxed) > 0)
}

fn set_status(word: u64) {
    // SAFETY: our own thread's words.
    unsafe { (*gate::tls()).status = word };
}

/// Numbers of endings in the status word.
static KINDS: [FaultKind; 20] = [
    FaultKind::BadAccess {
        address: 0,
        access: ringfence_core::Access::Read,
    },
    FaultKind::OutsideWindow { address: 0 },
    FaultKind::BadTarget,
    FaultKind::Division,
    FaultKind::FloatingPoint,
    FaultKind::IllegalInstruction,
    FaultKind::Trap,
    FaultKind::Protection,
    FaultKind::ControlStack,
    FaultKind::DataStack,
    FaultKind::TimeLimit,
    FaultKind::Interrupted,
    FaultKind::OutOfMemory,
    FaultKind::Uncaught(String::new()),
    FaultKind::NotUnwound(String::new()),
    FaultKind::OutOfOrder,
    FaultKind::Host(String::new()),
    FaultKind::Elsewhere,
    FaultKind::Unbound(0),
    FaultKind::Denied {
        address: 0,
        access: ringfence_core::Access::Read,
        len: 0,
        rights: ringfence_core::Rights::None,
    },
];
const EXIT: u64 = 64;
const ABORT: u64 = 65;
const FRAMES: u64 = 66;
/// Set besides if a domain that was called failed so.
const CALLEE: u64 = 128;

/// Where the number is in the word, and the code.
const NUMBER: u32 = 8;
const CODE: u32 = 32;

/// A kind without its texts and addresses, which owns no memory.
fn plain(kind: &FaultKind) -> FaultKind {
    let same = |k: &&FaultKind| std::mem::discriminant(*k) == std::mem::discriminant(kind);
    match kind {
        FaultKind::Abort(_) | FaultKind::Frames(_) => kind.clone(),
        FaultKind::Callee(callee) => plain(&callee.kind),
        _ => KINDS.iter().find(same).cloned().unwrap_or(FaultKind::Trap),
    }
}

/// The word for an end that the record has more about; `callee`: that of the failed call that led to it.
fn word(end: &End, callee: u64) -> u64 {
    let (number, code) = match end {
        End::Callee => return callee & !0xFF | status::NOTED | CALLEE << NUMBER,
        End::Exit(code) => (EXIT, *code),
        End::Fault(FaultKind::Abort(reason)) => (ABORT, *reason),
        End::Fault(FaultKind::Frames(_)) => (FRAMES, 0),
        End::Fault(kind) => {
            let same = |k: &FaultKind| std::mem::discriminant(k) == std::mem::discriminant(kind);
            (KINDS.iter().position(same).map_or(FRAMES, |n| n as u64), 0)
        }
    };
    status::NOTED | number << NUMBER | u64::from(code as u32) << CODE
}

/// How the calling thread's last call ended, as far as a word tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastCall {
    /// It returned.
    Returned,
    /// The domain's code failed, or that of a domain that it called. Neither addresses nor texts are told.
    Fault(FaultKind),
    /// The domain asked to exit.
    Exit(i32),
    /// The domain failed before.
    Faulted,
    /// The domain no longer exists.
    Gone,
    /// The function was revoked, or not handed out yet.
    Revoked,
    /// The function has been removed.
    Removed,
    /// Calls are not possible here: on an alternate signal stack, or in a handler that interrupted a domain.
    Inside,
    /// Too many calls are nested, or too little of the thread's stack is left.
    Nesting,
    /// The call that this one is nested in has to end.
    Ending,
    /// Any other reason not to begin, a limit for instance.
    Refused,
}

/// How the calling thread's last call ended. Async-signal-safe.
#[must_use]
pub fn last_call() -> LastCall {
    // SAFETY: our own thread's words.
    let word = unsafe { (*gate::tls()).status };
    match word & 0xFF {
        0 => LastCall::Returned,
        status::FAULTED => LastCall::Faulted,
        status::GONE => LastCall::Gone,
        status::REVOKED => LastCall::Revoked,
        status::REMOVED => LastCall::Removed,
        status::INSIDE | status::SIGNAL_STACK => LastCall::Inside,
        status::ENDING => LastCall::Ending,
        status::NESTING => LastCall::Nesting,
        status::NOTED => {
            let code = (word >> CODE) as i32;
            match word >> NUMBER & 0xFF & !CALLEE {
                EXIT => LastCall::Exit(code),
                ABORT => LastCall::Fault(FaultKind::Abort(code)),
                FRAMES => LastCall::Fault(FaultKind::Frames(ringfence_core::FramesError::NoFrame)),
                number => LastCall::Fault(KINDS.get(number as usize).cloned().unwrap_or(FaultKind::Trap)),
            }
        }
        // Kept by another back end, or a call that could not begin. The thread has touched the cell before.
        status::CELL => ERROR
            .look(|cell| cell.try_borrow().ok()?.as_ref().map(last_of))
            .flatten()
            .unwrap_or(LastCall::Refused),
        _ => LastCall::Refused,
    }
}

fn last_of(error: &CallError) -> LastCall {
    match error {
        CallError::Fault(fault) => LastCall::Fault(plain(&fault.kind)),
        CallError::Host(failure) => LastCall::Fault(plain(&failure.fault.kind)),
        CallError::Exit(status) => LastCall::Exit(*status),
        CallError::Faulted { .. } => LastCall::Faulted,
        CallError::Gone => LastCall::Gone,
        CallError::Revoked => LastCall::Revoked,
        CallError::Removed => LastCall::Removed,
        CallError::Inside | CallError::SignalStack => LastCall::Inside,
        CallError::Ending => LastCall::Ending,
        CallError::Nesting => LastCall::Nesting,
        _ => LastCall::Refused,
    }
}

/// Whether there are notes of the last call, which failed.
pub(crate) fn last_is_noted() -> bool {
    // SAFETY: our own thread's words.
    unsafe { (*gate::tls()).status & 0xFF == status::NOTED }
}

/// Whether the last call failed because a domain that it called did. Async-signal-safe, as all below but [`take_error`] and
/// [`set_error`].
pub(crate) fn last_is_callees() -> bool {
    // SAFETY: our own thread's words.
    let word = unsafe { (*gate::tls()).status };
    word & 0xFF == status::NOTED && word & CALLEE << NUMBER != 0
}

/// Empties the status word. What it was.
pub(crate) fn take_word() -> u64 {
    // SAFETY: our own thread's words.
    unsafe { std::mem::take(&mut (*gate::tls()).status) }
}

/// Lets `f` see the error of the last call, if that failed otherwise than by a fault.
pub(crate) fn with_reason<T>(f: impl FnOnce(&CallError) -> T) -> T {
    // SAFETY: our own thread's words.
    let word = unsafe { (*gate::tls()).status };
    match (word & 0xFF, last_call()) {
        (status::FAULTED, _) => f(&CallError::Faulted { first: None }),
        (status::NOTED, LastCall::Exit(status)) => f(&CallError::Exit(status)),
        (status::CELL, _) => {
            let mut f = Some(f);
            let told = ERROR.look(|cell| {
                let error = cell.try_borrow().ok()?;
                Some(f.take()?(error.as_ref()?))
            });
            told.flatten()
                .or_else(|| Some(f.take()?(&CallError::Gone)))
                .expect("told or to be told")
        }
        _ => f(&plain_error(word).unwrap_or(CallError::Gone)),
    }
}

/// The error that a word is all about.
fn plain_error(word: u64) -> Option<CallError> {
    match word {
        status::GONE => Some(CallError::Gone),
        status::REVOKED => Some(CallError::Revoked),
        status::INSIDE => Some(CallError::Inside),
        status::SIGNAL_STACK => Some(CallError::SignalStack),
        status::ENDING => Some(CallError::Ending),
        status::NESTING => Some(CallError::Nesting),
        status::REMOVED => Some(CallError::Removed),
        _ => None,
    }
}

/// Fills the calling thread's cell and sets its status. For errors of calls that have not begun, which may own memory.
pub(crate) fn set_error(error: CallError) {
    let _ = ERROR.with(|cell| cell.try_borrow_mut().map(|mut s| *s = Some(error)));
    set_status(status::CELL);
}

/// A call was refused by the domain of this lane of the thread's, because of an earlier failure.
pub(crate) fn refuse(lane: &Lane) {
    let bound = lane.bound.load(Ordering::Relaxed);
    if !is_saved() {
        with_notes(|noted| noted.refused = (lane, bound));
    }
    set_status(status::FAULTED);
}

/// What the failure of a call was that refused.
fn refused_for() -> Option<CallError> {
    let (lane, bound) = with_notes(|noted| std::mem::replace(&mut noted.refused, (null(), 0)))?;
    let _world = world::lock()?;
    // SAFETY: null, or a lane, which is never unmapped. With the world locked a lane that somebody uses has a live domain.
    let lane = unsafe { lane.as_ref() }.filter(|l| !l.shared.is_null())?;
    // Else it is another domain's by now.
    let same = lane.bound.load(Ordering::Relaxed) == bound;
    same.then(|| lane.shared().first.error())?
}

/// Keeps what is about to be noted as the first failure of a domain, if it is; `lane` as for [`First::keep`].
pub(crate) fn keep_first(first: &First, lane: Option<&Lane>, note: &Fresh<'_>) {
    let lane = lane.map_or(0, |lane| std::ptr::from_ref(lane) as LaneId);
    let alone = |to: &mut Notes| {
        to.clear();
        to.add(note);
    };
    let together = |noted: &mut Noted| {
        first.keep(lane, |to| {
            to.copy(&noted.notes);
            to.add(note);
        });
    };
    if !matches!(note.end, End::Callee) || is_saved() || with_notes(together).is_none() {
        first.keep(lane, alone);
    }
}

/// A call has failed. `callee`: the status word of a failed call that led to it. `around`: the first failure of its domain is told, if that
/// was in a call of the lane that was nested in this one.
pub(crate) fn note(note: &Fresh<'_>, callee: u64, around: Option<(&First, &Lane)>) {
    let mut end = word(&note.end, callee);
    let add = |noted: &mut Noted| {
        let notes = &mut noted.notes;
        if around.is_some_and(|(first, lane)| first.copy_of(std::ptr::from_ref(lane) as LaneId, notes)) {
            end = notes.ends().fold(0, |before, end| word(end, before));
            return;
        }
        if !matches!(note.end, End::Callee) {
            notes.clear();
        }
        notes.add(note);
    };
    if !is_saved() {
        with_notes(add);
    }
    if record().is_none() {
        // A fiber that comes back on a thread that was never in a domain: not in a handler.
        let mut notes = Notes::new();
        notes.add(note);
        return set_error(notes.error().unwrap_or(CallError::Gone));
    }
    set_status(end);
}

/// A copy of what is noted, in memory of its own.
pub(crate) fn copy_notes() -> Box<Notes> {
    let mut copy = Notes::new();
    with_notes(|noted| copy.copy(&noted.notes));
    copy
}

/// Notes again what was copied, with its word.
pub(crate) fn put_notes(notes: &Notes) {
    with_notes(|noted| noted.notes.copy(notes));
}

/// The last failed call's error, but for the word, which is given.
pub(crate) fn error_of(word: u64) -> Option<CallError> {
    match word & 0xFF {
        0 => None,
        status::FAULTED => Some(CallError::Faulted {
            first: refused_for().map(Box::new),
        }),
        status::NOTED => {
            let taken = with_notes(|noted| (noted.notes.take(), noted.notes.release()));
            let (error, mut left) = taken?;
            // Dropping a module may free memory: not while a handler would find the record busy.
            while let (Some(module), more) = left {
                drop(module);
                left = match more {
                    true => with_notes(|noted| noted.notes.release()).unwrap_or_default(),
                    false => break,
                };
            }
            error
        }
        status::CELL => ERROR.look(|cell| cell.try_borrow_mut().ok()?.take()).flatten(),
        _ => plain_error(word),
    }
}

/// The last failed call's error.
pub(crate) fn take_error() -> Option<CallError> {
    error_of(take_word())
}

/// For signal handlers of the host's that call domains: keeps what the interrupted code may still want to know of its last call from being
/// overwritten, until [`restore_call`] is called with what this returns. Of a call that fails meanwhile [`last_call`] tells the end; the
/// domain itself keeps the rest, as its first failure. Async-signal-safe.
#[must_use]
pub fn save_call() -> u64 {
    saved(1);
    take_word()
}

/// Ends what [`save_call`] began. Async-signal-safe.
pub fn restore_call(word: u64) {
    saved(-1);
    set_status(word);
}

fn saved(by: i32) {
    if let Some(record) = record() {
        let now = record.saved.load(Ordering::Relaxed);
        record
            .saved
            .store(now.saturating_add_signed(by), Ordering::Relaxed);
    }
}
