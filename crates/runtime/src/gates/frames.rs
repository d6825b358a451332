//! Exceptions: what a domain learns of its own frames, and how it resumes in one of them.
//!
//! An unwinder needs return addresses and saved registers. They are on the control stack, where no code of a domain can
//! read; so the gate hands out copies of the words that the present call in has put there, and of no others. All of them
//! are the domain's own: return addresses into its text, and registers that its code pushed.
//!
//! To resume at a landing pad the control stack pointer has to move up. The gate finds out by itself which frames are
//! live, from the return address of its own caller up to the gate in, with the depths that the verifier knows. It moves the
//! stack pointer only to where it stands in one of these frames when the call in progress there returns, and sends control
//! only to a landing pad of the same function, at the same depth: one that could have been reached by `ret`, for all that
//! the stack can tell. `docs/security/exceptions.md` has the argument.

use crate::domain::DomainRef;
use crate::lanes::gate::{self, JumpFrame, OutWords};
use crate::lanes::lane::Lane;
use crate::lanes::records::Records;
pub use ringfence_core::FramesError;
use ringfence_isa::frames::{HEAD, RECORD, WORDS};
use ringfence_isa::window;
use std::sync::atomic::Ordering;

/// Why a frame is not resumed in.
pub(crate) enum Refused {
    Frames(FramesError),
    /// The call has to end, for these bits of [`attention`](crate::lanes::lane::attention).
    Ending(u32),
}

impl From<FramesError> for Refused {
    fn from(why: FramesError) -> Refused {
        Refused::Frames(why)
    }
}

/// A walk looks so often, in frames, at whether its call has to end: less than a tenth of a millisecond.
const LOOK: u32 = 512;

/// Counts the frames of a walk. A control stack holds more than a hundred thousand, and who walks them is not in the domain, so
/// no signal makes the thread leave.
#[derive(Default)]
struct Walk(u32);

impl Walk {
    /// One frame more. An error if the call has to end.
    fn step(&mut self, lane: &Lane) -> Result<(), Refused> {
        self.0 += 1;
        match self.0.is_multiple_of(LOOK) {
            true if lane.ending() != 0 => Err(Refused::Ending(lane.ending())),
            _ => Ok(()),
        }
    }
}

/// Where the return address to the gate in stands: the first word that is not the domain's.
fn end(lane: &Lane) -> u64 {
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    // SAFETY: the gate's frame of the innermost call in, which is in progress.
    unsafe { (*(host_sp as *const gate::InFrame)).top - 24 }
}

/// The stub `UNWIND`.
pub(crate) fn tell(
    lane: &Lane,
    records: &Records,
    frame: &JumpFrame,
    out: &OutWords,
) -> Result<(), FramesError> {
    // A fault, one in a host's signal handler too, has ended all records: hooks are not known any more. The gate ends the
    // call on its way back.
    if lane.domain().faulted() {
        return Ok(());
    }
    let end = end(lane);
    let start = match frame.rsi {
        0 => out.top,
        distance => end
            .checked_sub(distance)
            .filter(|at| at.is_multiple_of(8) && (out.top..end).contains(at))
            .ok_or(FramesError::NoFrame)?,
    };
    let count = WORDS.min(((end - start) / 8) as usize);
    let mut told = [0; HEAD + WORDS];
    told[..5].copy_from_slice(&frame.saved);
    (told[5], told[6]) = (end - start, count as u64);
    for (i, word) in told[HEAD..HEAD + count].iter_mut().enumerate() {
        // SAFETY: between the domain's stack pointer and the gate's own words, on the lane's control stack.
        *word = unsafe { ((start + 8 * i as u64) as *const u64).read() };
    }
    // A hook is an address of the host's. It is looked up by its place: comparing words with it would tell a domain that
    // pushes guesses when one is right.
    for (place, original) in records.hooked(start, start + 8 * count as u64) {
        told[HEAD + ((place - start) / 8) as usize] = original;
    }
    let mut bytes = [0; 8 * (HEAD + WORDS)];
    for (chunk, word) in bytes.chunks_exact_mut(8).zip(&told[..HEAD + count]) {
        chunk.copy_from_slice(&word.to_le_bytes());
    }
    let domain = DomainRef::of(lane.domain());
    domain
        .write(domain.translate(frame.rdi), &bytes[..8 * (HEAD + count)])
        .map_err(|_| FramesError::Pointer)
}

/// The stub `RESUME`.
pub(crate) fn resume(
    lane: &Lane,
    records: &mut Records,
    frame: &mut JumpFrame,
    out: &mut OutWords,
) -> Result<(), Refused> {
    let domain = DomainRef::of(lane.domain());
    let mut bytes = [0; 8 * RECORD];
    // Copied once: another thread may be writing there.
    domain
        .read(domain.translate(frame.rdi), &mut bytes)
        .map_err(|_| FramesError::Pointer)?;
    let mut record = [0; RECORD];
    for (word, chunk) in record.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(chunk.try_into().expect("8 bytes"));
    }
    let [distance, pad, rax, rdx, saved @ ..] = record;
    // SAFETY: the calling thread is in the domain.
    let image_at = |offset| unsafe { lane.domain().image_at(offset) };
    let end = end(lane);

    let (mut at, mut walk) = (out.top, Walk::default());
    let (placed, offset, depth) = loop {
        walk.step(lane)?;
        debug_assert!(
            u64::from(walk.0 - 1) * 8 <= at - out.top,
            "a step moves up by a word at least"
        );
        // SAFETY: the place of a return address on the lane's control stack: the first is the gate's caller's, each further one
        // stands where the depth that the verifier knows puts it.
        let found = unsafe { (at as *const u64).read() };
        let rip = if found == gate::hook() {
            records.original(at).ok_or(FramesError::NoFrame)?
        } else {
            found
        };
        let (placed, offset) = rip
            .checked_sub(lane.base)
            .and_then(image_at)
            .ok_or(FramesError::NoFrame)?;
        let depth = placed.module.0.depth_at(offset).ok_or(FramesError::NoFrame)?;
        let here = end.checked_sub(at + 8).ok_or(FramesError::NoFrame)?;
        if here == distance {
            break (placed, offset, depth);
        }
        let next = at + 8 + u64::from(depth);
        if here < distance || next >= end {
            return Err(FramesError::NoFrame.into());
        }
        at = next;
    };

    let (sp, report) = (at + 8, &placed.module.0.report);
    let (other, pad_offset) = pad
        .checked_sub(lane.base)
        .and_then(image_at)
        .ok_or(FramesError::NoPad)?;
    let pad_depth = other
        .module
        .0
        .report
        .pad_depth(pad_offset)
        .ok_or(FramesError::NoPad)?;
    // Functions do not overlap: what lies between a function's entry and its end belongs to it.
    let in_function = |f: ringfence_verify::Function| (f.entry..f.end).contains(&pad_offset);
    if other.offset != placed.offset || !report.function_at(offset).is_some_and(in_function) {
        return Err(FramesError::OtherFunction.into());
    }
    if pad_depth != depth {
        return Err(FramesError::OtherDepth.into());
    }

    records.leave_below(sp + u64::from(depth));
    frame.saved = saved;
    frame.result = [rax, rdx];
    // Back through the gate as if the call in progress had returned to the pad.
    out.top = at;
    // SAFETY: where the return address of the frame's callee stood, which is left.
    unsafe { (at as *mut u64).write(pad) };
    Ok(())
}

/// Whether code that was added to the domain is among the frames of this call, from its call out at `top` up: it has no unwind
/// tables, so no unwinder passes it. For a message only.
pub(crate) fn through_added(lane: &Lane, top: u64) -> bool {
    let kept = lane.top.load(Ordering::Relaxed);
    // No handler may enter the lane and change its records meanwhile.
    lane.top.store(0, Ordering::Relaxed);
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    // SAFETY: only the lane's own thread uses its records, with the lane's top at 0.
    let records = unsafe { &*lane.records.get() };
    let (end, mut at, mut added, mut walk) = (end(lane), top, false, Walk::default());
    // The call ends in any case: a walk that takes too long only says less.
    while at < end && walk.step(lane).is_ok() {
        // SAFETY: as in `resume`: places of return addresses on the lane's control stack, below the gate's.
        let found = unsafe { (at as *const u64).read() };
        let rip = if found == gate::hook() {
            records.original(at)
        } else {
            Some(found)
        };
        let Some(offset) = rip.and_then(|rip| rip.checked_sub(lane.base)) else {
            break;
        };
        added = (u64::from(window::ARENA)..u64::from(window::HEAP)).contains(&offset);
        // SAFETY: the calling thread is in the domain.
        let image = unsafe { lane.domain().image_at(offset) };
        match image.and_then(|(placed, offset)| placed.module.0.depth_at(offset)) {
            Some(depth) => at += 8 + u64::from(depth),
            None => break,
        }
    }
    std::sync::atomic::compiler_fence(Ordering::SeqCst);
    lane.top.store(kept, Ordering::Relaxed);
    added
}
