//! `setjmp` and `longjmp`.
//!
//! A domain cannot restore its control stack pointer: it has no way to name it. So the gate keeps the records. A record
//! must die with the frame of the function that called `setjmp`; to learn of that, the gate *hooks* this function's
//! return address, which lies on the control stack, out of the domain's reach, at a depth that the verifier knows.
//! When the function returns, the hook drops the records of its frame and goes on to the true return address.
//!
//! `longjmp` needs a live record of the same lane and of the same call in, above the present stack pointer, with the hook
//! still in its place. It drops all records of frames that it leaves: all whose place is below the record's *place*, not only
//! those below its stack pointer, for a frame can call at a smaller depth than it had at `setjmp`.
//!
//! All of this runs while the lane's top is 0: no signal handler can enter the lane and change the records meanwhile.

use crate::domain::DomainRef;
use crate::gates::fault::{self, FaultKind};
use crate::gates::frames;
use crate::lanes::gate::{self, JumpFrame, OutWords};
use crate::lanes::lane::{Import, Lane};
use crate::lanes::last_error;
use crate::lanes::records::{Record, Records};
use ringfence_isa::window::stub;
use std::sync::atomic::Ordering;

/// Most records that a lane may have at one time.
const MOST: usize = 4096;

/// The depth at a return address, if its function may call `setjmp`.
fn depth(lane: &Lane, rip: u64) -> Option<u32> {
    // SAFETY: the calling thread is in the domain.
    let (placed, offset) = unsafe { lane.domain().image_at(rip.checked_sub(lane.base)?)? };
    // A tail call would leave the function without a return.
    let place = placed.module.0.place_at(offset).filter(|p| !p.tail_calls)?;
    Some(place.depth)
}

/// The gate out, for these stubs and those of exceptions. 0: goes on with `result`; 1: the call in ends.
pub(crate) unsafe extern "C" fn jump(
    lane: *const Lane,
    frame: *mut JumpFrame,
    import: *const Import,
    out: *mut OutWords,
) -> u32 {
    // SAFETY: the gate passes its lane, its frames and an entry of the lane's own table.
    let (lane, frame, out) = unsafe { (&*lane, &mut *frame, &mut *out) };
    let number = (import as usize - lane.imports as usize) / size_of::<Import>();
    // SAFETY: only the lane's own thread uses its records, and only with the lane's top at 0.
    let records = unsafe { &mut *lane.records.get() };
    frame.result = [0; 2];
    let host = |why: &'static str| (FaultKind::Host(String::new()), why);
    let done = match number as u32 {
        stub::SETJMP => set(lane, records, frame, out).map_err(host),
        stub::LONGJMP => long(lane, records, frame, out).map_err(host),
        stub::UNWIND => frames::tell(lane, records, frame, out).map_err(|why| (FaultKind::Frames(why), "")),
        _ => frames::resume(lane, records, frame, out).map_err(|why| match why {
            frames::Refused::Frames(why) => (FaultKind::Frames(why), ""),
            frames::Refused::Ending(bits) => (fault::kind_of(bits), ""),
        }),
    };
    match done {
        Ok(()) => 0,
        Err(why) => {
            fault::end_call_at(lane, why, out.top);
            1
        }
    }
}

fn set(
    lane: &Lane,
    records: &mut Records,
    frame: &mut JumpFrame,
    out: &OutWords,
) -> Result<(), &'static str> {
    // SAFETY: the domain's return address stands at the top of its control stack.
    let rip = unsafe { (out.top as *const u64).read() };
    let Some(depth) = depth(lane, rip) else {
        return Err("setjmp called by a function that also leaves by a tail call");
    };
    let rsp = out.top + 8;
    let place = rsp + u64::from(depth);
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    let buffer = frame.rdi as u32;
    // SAFETY: the place is on the lane's control stack, below the gate's own words: the verifier knows the depth.
    let found = unsafe { (place as *const u64).read() };
    let original = if found == gate::hook() {
        records
            .original(place)
            .ok_or("the control stack has a hook without a record")?
    } else {
        found
    };
    // No frame below the calling function's is live. And the same buffer in the same frame again: the old record cannot be
    // meant any more.
    records
        .list
        .retain(|r| r.place >= place && (r.place != place || r.buffer != buffer));
    if records.list.len() >= MOST {
        return Err("too many live setjmp records");
    }
    if records.is_full() && last_error::is_saved() {
        // The handler may have interrupted the heap.
        return Err("too many live setjmp records for a call in a signal handler");
    }
    records.next += 1;
    let id = records.next;
    let domain = DomainRef::of(lane.domain());
    if domain
        .write(domain.translate(frame.rdi), &id.to_le_bytes())
        .is_err()
    {
        return Err("setjmp with a bad pointer");
    }
    records.list.push(Record {
        id,
        buffer,
        host_sp,
        rsp,
        rip,
        place,
        original,
        saved: frame.saved,
    });
    // SAFETY: as above; from now on the record exists.
    unsafe { (place as *mut u64).write(gate::hook()) };
    Ok(())
}

fn long(
    lane: &Lane,
    records: &mut Records,
    frame: &mut JumpFrame,
    out: &mut OutWords,
) -> Result<(), &'static str> {
    let domain = DomainRef::of(lane.domain());
    let mut id = [0; 8];
    if domain.read(domain.translate(frame.rdi), &mut id).is_err() {
        return Err("longjmp with a bad pointer");
    }
    let id = u64::from_le_bytes(id);
    let dead = "longjmp to a function that has returned, or with a buffer that setjmp has not filled";
    let record = *records.list.iter().rev().find(|r| r.id == id).ok_or(dead)?;
    if record.host_sp != lane.host_sp.load(Ordering::Relaxed) {
        return Err("longjmp across a call of the host");
    }
    // Above the present stack pointer: what stands between is what the function itself has pushed.
    if record.rsp < out.top + 8 {
        return Err(dead);
    }
    // SAFETY: the place is on the lane's control stack.
    if unsafe { (record.place as *const u64).read() } != gate::hook() {
        return Err(dead);
    }
    records.leave_below(record.place);
    frame.saved = record.saved;
    frame.result[0] = match frame.rsi as u32 {
        0 => 1,
        value => value.into(),
    };
    // Back through the gate as from the call of setjmp: its return address once more where it stood.
    out.top = record.rsp - 8;
    // SAFETY: below the record's frame, where only frames that are left now have been.
    unsafe { (out.top as *mut u64).write(record.rip) };
    Ok(())
}

/// A hooked function has returned; `rsp` is what it is after the return. Gives the true return address, or 0: the call ends.
pub(crate) unsafe extern "C" fn unhook(lane: *const Lane, rsp: u64) -> u64 {
    // SAFETY: the gate passes its lane; see `jump`.
    let (lane, records) = unsafe { (&*lane, &mut *(*lane).records.get()) };
    let place = rsp - 8;
    let original = records.original(place);
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    records.list.retain(|r| r.place > place || r.host_sp != host_sp);
    if original.is_none() {
        // A fault ends all records of a lane. One in a signal handler of the host's, which came after the gate had looked for
        // faults on its way back into the domain, leaves frames that go on until their hook.
        fault::lost(lane);
    }
    original.unwrap_or(0)
}
