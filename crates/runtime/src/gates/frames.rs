//! Exceptions and `longjmp`: what a domain learns of its own frames, and how it resumes in one of them.
//!
//! An unwinder needs return addresses and saved registers. They are on the control stack, where no code of a domain can
//! read; so the gate hands out copies of the words that the present call in has put there, and of no others. All of them
//! are the domain's own: return addresses into its text, and registers that its code pushed.
//!
//! To resume at a landing pad the control stack pointer has to move up. The gate finds out by itself which frames are
//! live, from the return address of its own caller up to the gate in, with the depths that the verifier knows. It moves the
//! stack pointer only to where it stands at the landing pad in one of these frames, and sends control only to a landing pad of
//! the frame's function. So nothing has to be noted when `setjmp` is called: what it leaves in the domain's memory is a record
//! like an unwinder's, and is believed as little. `docs/security/exceptions.md` has the argument.

use crate::domain::DomainRef;
use crate::domain::relocate::Placed;
use crate::gates::fault::{self, FaultKind};
use crate::lanes::gate::{self, JumpFrame, OutWords};
use crate::lanes::lane::{Import, Lane};
pub use ringfence_core::FramesError;
use ringfence_isa::frames::{HEAD, RECORD, WORDS};
use ringfence_isa::window;
use ringfence_verify::Place;
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

/// The gate out, for both stubs. 0: goes on with `result`; 1: the call in ends. The lane's top is 0 meanwhile: no signal handler can
/// enter the lane.
pub(crate) unsafe extern "C" fn stub(
    lane: *const Lane,
    frame: *mut JumpFrame,
    import: *const Import,
    out: *mut OutWords,
) -> u32 {
    // SAFETY: the gate passes its lane, its frames and an entry of the lane's own table.
    let (lane, frame, out) = unsafe { (&*lane, &mut *frame, &mut *out) };
    let number = (import as usize - lane.imports as usize) / size_of::<Import>();
    frame.result = [0; 2];
    let done = match number as u32 {
        window::stub::UNWIND => tell(lane, frame, out).map_err(Refused::Frames),
        _ => resume(lane, frame, out),
    };
    let why = match done {
        Ok(()) => return 0,
        Err(Refused::Frames(why)) => FaultKind::Frames(why),
        Err(Refused::Ending(bits)) => fault::kind_of(bits),
    };
    fault::end_call_at(lane, (why, ""), out.top);
    1
}

/// The stub `UNWIND`.
fn tell(lane: &Lane, frame: &JumpFrame, out: &OutWords) -> Result<(), FramesError> {
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
fn resume(lane: &Lane, frame: &mut JumpFrame, out: &mut OutWords) -> Result<(), Refused> {
    let domain = DomainRef::of(lane.domain());
    let mut record = [0_u64; RECORD];
    // SAFETY: the array's own bytes, any of which are numbers.
    let bytes = unsafe { std::slice::from_raw_parts_mut(record.as_mut_ptr().cast::<u8>(), 8 * RECORD) };
    // Copied once: another thread may be writing there.
    domain
        .read(domain.translate(frame.rdi), bytes)
        .map_err(|_| FramesError::Pointer)?;
    let [distance, pad, rax, rdx, saved @ ..] = record;
    // What is known of an address in the window's text, and whose text that is. Most frames are of the module that the last one is of.
    let mut last = None;
    let mut place = |address: u64| {
        let offset = address.checked_sub(lane.base)?;
        let (placed, inside) = match last.and_then(|placed: &Placed| Some((placed, placed.inside(offset)?))) {
            Some(found) => found,
            // SAFETY: the calling thread is in the domain.
            None => unsafe { lane.domain().image_at(offset)? },
        };
        last = Some(placed);
        Some((placed.offset, placed.module.0.place_at(inside)?))
    };
    let (pad_image, pad_place) = place(pad)
        .filter(|(_, place)| place.is_pad)
        .ok_or(FramesError::NoPad)?;
    let end = end(lane);
    // Where the return address of the frame to resume in stands, if there is such a frame.
    let wanted = (end + u64::from(pad_place.depth))
        .checked_sub(distance)
        .ok_or(FramesError::NoFrame)?;

    let is_same = |image: u32, here: Place| (image, here.function) == (pad_image, pad_place.function);

    let (mut at, mut walk) = (out.top, Walk::default());
    let (image, here) = loop {
        walk.step(lane)?;
        debug_assert!(
            u64::from(walk.0 - 1) * 8 <= at - out.top,
            "a step moves up by a word at least"
        );
        // SAFETY: the place of a return address on the lane's control stack: the first is the gate's caller's, each further one
        // stands where the depth that the verifier knows puts it.
        let found = unsafe { (at as *const u64).read() };
        let (image, here) = place(found).ok_or(FramesError::NoFrame)?;
        let next = at + 8 + u64::from(here.depth);
        if next == wanted {
            break (image, here);
        }
        if next > wanted || next >= end {
            // What a frame of that distance lacks.
            let why = match (end.checked_sub(at + 8) == Some(distance), is_same(image, here)) {
                (false, _) => FramesError::NoFrame,
                (true, false) => FramesError::OtherFunction,
                (true, true) => FramesError::OtherDepth,
            };
            return Err(why.into());
        }
        at = next;
    };
    if !is_same(image, here) {
        return Err(FramesError::OtherFunction.into());
    }
    // What the frame has pushed since is left with its callees; what it had pushed at the pad is there.
    if pad_place.depth > here.depth {
        return Err(FramesError::OtherDepth.into());
    }

    frame.saved = saved;
    frame.result = [rax, rdx];
    // Back through the gate as if a call in progress there had returned to the pad.
    out.top = wanted - u64::from(pad_place.depth) - 8;
    // SAFETY: at or above the place of the return address of the frame's callee, which is left, and below the frame's own.
    unsafe { (out.top as *mut u64).write(pad) };
    Ok(())
}

/// Whether code that was added to the domain is among the frames of this call, from its call out at `top` up: it has no unwind
/// tables, so no unwinder passes it. For a message only.
pub(crate) fn through_added(lane: &Lane, top: u64) -> bool {
    let (end, mut at, mut added, mut walk) = (end(lane), top, false, Walk::default());
    // The call ends in any case: a walk that takes too long only says less.
    while at < end && walk.step(lane).is_ok() {
        // SAFETY: as in `resume`: places of return addresses on the lane's control stack, below the gate's.
        let found = unsafe { (at as *const u64).read() };
        let Some(offset) = found.checked_sub(lane.base) else {
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
    added
}
