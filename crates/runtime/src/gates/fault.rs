//! How calls end that fail: what the gates and the signal handler noted becomes an error.

use crate::domain::imports::{EndCall, OutFrame};
use crate::domain::slot::{self, OnFailure, Slot};
use crate::domain::{DomainRef, Inner};
use crate::gates::denied::denied;
use crate::gates::frames;
use crate::lanes::gate;
use crate::lanes::lane::{Lane, attention, disorder};
use crate::lanes::last_error::{self, LastCall};
use crate::lanes::note::{End, Fresh, MOST_TEXT};
use crate::lanes::raw_fault::RawFault;
use crate::lanes::world;
use crate::words::heap::Site;
use ringfence_core::Text;
use ringfence_core::error::CallError;
use ringfence_isa::window;
use std::fmt::Write;
use std::sync::atomic::Ordering;

pub use ringfence_core::{Access, Fault, FaultKind, Frame, Registers};

/// Why a call ends: the kind, whose texts are empty, and the text that belongs to it.
pub(crate) type Why<'a> = (FaultKind, &'a str);

/// Walks the control stack: the verifier knows how deep it is at every instruction.
fn walk<'a>(lane: &'a Lane, note: &mut Fresh<'a>, first: u64, rsp: u64, in_frame: &gate::InFrame) {
    // The gate's own return address; nothing of the domain is above it.
    let end = in_frame.top - 24;
    let (low, high) = (lane.berth.control_low(), lane.berth.control_top());
    let domain = lane.domain();
    let (mut rip, mut rsp) = (note.registers.rip, rsp);
    loop {
        // SAFETY: the lane is the calling thread's, with the failed call still in progress.
        let image = rip
            .checked_sub(lane.base)
            .and_then(|o| unsafe { domain.image_at(o) });
        let module = image.map(|(placed, _)| (lane.base + u64::from(placed.offset), &placed.module));
        let is_first = note.count() == 0;
        note.frame(if is_first { first } else { rip }, module);
        let depth = match image {
            Some((placed, offset)) => placed.module.0.depth_at(offset),
            // In a stub, or nowhere after a jump to something that is no code.
            None if is_first => Some(0),
            None => None,
        };
        let Some(depth) = depth else { break };
        let at = rsp.wrapping_add(depth.into());
        if note.is_full() || at >= end || at < low || at + 8 > high || at % 8 != 0 {
            break;
        }
        // SAFETY: on the lane's control stack, which is mapped and which nobody but this thread uses.
        rip = unsafe { (at as *const u64).read() };
        rsp = at + 8;
    }
}

/// Where a call failed: on the domain's stack `rsp`, with `first` as what the backtrace begins with.
struct Place<'a> {
    first: u64,
    rsp: u64,
    in_frame: &'a gate::InFrame,
}

/// A call fails in the domain's own code.
fn fail_at(lane: &Lane, end: End, text: &str, registers: &Registers, at: &Place<'_>, callee: u64) {
    let mut note = Fresh::new(end, text, lane.domain().name(), registers);
    walk(lane, &mut note, at.first, at.rsp, at.in_frame);
    fail_after(lane, &note, callee);
}

/// A call fails at a call out: `top` is where the domain's stack stands, its return address on it.
fn fail_at_call_out(
    lane: &Lane,
    end: End,
    text: &str,
    top: u64,
    general: [u64; 16],
    host_sp: u64,
    callee: u64,
) {
    // SAFETY: the gate saved the top of this lane's control stack; the word there is the return address into the domain.
    let rip = unsafe { (top as *const u64).read() };
    let registers = Registers {
        general,
        rip,
        rflags: 0,
    };
    let place = Place {
        // The address is a return address already, as those of the frames above are.
        first: rip - 1,
        rsp: top + 8,
        // SAFETY: the gate's frame at `host_sp`.
        in_frame: unsafe { &*(host_sp as *const gate::InFrame) },
    };
    fail_at(lane, end, text, &registers, &place, callee);
}

/// Who has called the innermost call out of a lane, which is in progress: return addresses, innermost first.
pub(crate) fn callers(lane: &Lane) -> Site {
    let top = lane.top.load(Ordering::Relaxed);
    let registers = Registers {
        general: [0; 16],
        // SAFETY: as in `fail_at_call_out`.
        rip: unsafe { (top as *const u64).read() },
        rflags: 0,
    };
    // SAFETY: as there.
    let in_frame = unsafe { &*(lane.host_sp.load(Ordering::Relaxed) as *const gate::InFrame) };
    let mut note = Fresh::new(End::Exit(0), "", "", &registers);
    walk(lane, &mut note, registers.rip - 1, top + 8, in_frame);
    let mut site = Site::default();
    site.iter_mut()
        .zip(note.addresses())
        .for_each(|(to, &at)| *to = at);
    site
}

/// A failure where nothing is known of the domain's frames.
fn without_trace<'a>(lane: &'a Lane, kind: FaultKind) -> Fresh<'a> {
    static UNKNOWN: Registers = Registers {
        general: [0; 16],
        rip: 0,
        rflags: 0,
    };
    Fresh::new(End::Fault(kind), "", lane.domain().name(), &UNKNOWN)
}

/// The call ends, and the domain is of no use any more. `callee`: the status word of the call of another domain because of which it ends,
/// or 0. From here to the end of the call nothing is allocated and nobody waited for, but by hooks of the host's: the call may have been
/// made by a signal handler.
fn fail_after(lane: &Lane, note: &Fresh<'_>, callee: u64) {
    let (domain, first) = (lane.domain(), &lane.domain().lanes.first);
    let elsewhere = note.is_elsewhere();
    if !elsewhere {
        last_error::keep_first(first, Some(lane), note);
        if !matches!(note.end, End::Exit(_)) {
            domain.faults.fetch_add(1, Ordering::Relaxed);
        }
    }
    domain.set_faulted(Some(lane));
    if matches!(note.end, End::Fault(FaultKind::TimeLimit)) {
        domain.tell_time();
    }
    last_error::note(note, callee, elsewhere.then_some((first, lane)));
}

/// Which of several reasons to end a call is told.
pub(crate) fn kind_of(bits: u32) -> FaultKind {
    if bits & attention::INTERRUPT != 0 {
        FaultKind::Interrupted
    } else if bits & attention::TIME != 0 {
        FaultKind::TimeLimit
    } else {
        FaultKind::Elsewhere
    }
}

/// The thread has left the domain after a signal; `host_sp` is still that of the failed call.
pub(crate) unsafe extern "C" fn landed(lane: *const Lane) {
    // SAFETY: the landing passes the lane that the handler gave it.
    let lane = unsafe { &*lane };
    // SAFETY: written by this thread's handler, before. Nothing writes it until the call has been left: `top` is 0, so no handler of the
    // host's can enter by this lane.
    let raw = unsafe { &*lane.fault.get() };
    // SAFETY: the gate's frame.
    let in_frame = unsafe { &*(lane.host_sp.load(Ordering::Relaxed) as *const gate::InFrame) };
    let kind = if raw.bits == 0 {
        classify(lane, raw)
    } else {
        kind_of(raw.bits)
    };
    let end = End::Fault(kind);
    let place = Place {
        first: raw.registers.rip,
        rsp: raw.rsp,
        in_frame,
    };
    fail_at(lane, end, "", &raw.registers, &place, 0);
}

/// Modules built with `--check` trap with the address in r11 when it lies outside the window.
fn outside(lane: &Lane, raw: &RawFault) -> Option<FaultKind> {
    let (rip, address) = (raw.registers.rip, raw.registers.general[11]);
    // SAFETY: the lane is the calling thread's, with the failed call still in progress.
    let (placed, _) = unsafe { lane.domain().image_at(rip.checked_sub(lane.base)?)? };
    if placed.module.0.parsed.note.flags & ringfence_isa::note::flag::CHECK == 0 {
        return None;
    }
    // Other traps of the module, `__builtin_trap` for one, have anything in r11.
    use ringfence_isa::sequence::CHECK_TRAP;
    let mut code = [0; CHECK_TRAP.len()];
    let start = rip.wrapping_sub(CHECK_TRAP.len() as u64 - 2);
    let marked = DomainRef::of(lane.domain()).read(start, &mut code).is_ok() && code == CHECK_TRAP;
    (marked && address.wrapping_sub(lane.base) >= window::SIZE)
        .then_some(FaultKind::OutsideWindow { address })
}

fn classify(lane: &Lane, raw: &RawFault) -> FaultKind {
    match raw.signal {
        libc::SIGFPE if matches!(raw.code, 1 | 2) => FaultKind::Division,
        libc::SIGFPE => FaultKind::FloatingPoint,
        libc::SIGILL => outside(lane, raw).unwrap_or(FaultKind::IllegalInstruction),
        libc::SIGTRAP => FaultKind::Trap,
        _ if !raw.has_address() => {
            // A signal for which there was no room left on the control stack arrives like this.
            if raw.rsp < lane.berth.control_low() + (32 << 10) {
                FaultKind::ControlStack
            } else {
                FaultKind::Protection
            }
        }
        _ => {
            let address = raw.address;
            let berth = lane.berth.start(lane.base);
            let domain = lane.domain();
            let low = berth + u64::from(window::LANE_BERTH) - u64::from(domain.options.data_stack);
            if lane.berth.below_control(address) {
                FaultKind::ControlStack
            } else if (berth + domain.thread_area()..low).contains(&address) {
                FaultKind::DataStack
            } else if let Some(kind) = denied(
                domain,
                &raw.registers.general,
                raw.registers.rip,
                address,
                raw.error & 2 != 0,
            ) {
                kind
            } else if checks_target(lane, raw.registers.rip) {
                FaultKind::BadTarget
            } else if raw.error & 16 != 0 {
                if address.wrapping_sub(lane.base) < u64::from(window::NULL_END) {
                    FaultKind::BadTarget
                } else {
                    FaultKind::BadAccess {
                        address,
                        access: Access::Execute,
                    }
                }
            } else {
                let access = if raw.error & 2 != 0 {
                    Access::Write
                } else {
                    Access::Read
                };
                FaultKind::BadAccess { address, access }
            }
        }
    }
}

/// Whether the instruction is the compare of a checked indirect jump or call: its target is not even mapped.
fn checks_target(lane: &Lane, rip: u64) -> bool {
    use ringfence_isa::sequence::CMP;
    let mut code = [0; CMP.len()];
    DomainRef::of(lane.domain()).read(rip, &mut code).is_ok() && code == CMP
}

/// The gate out does not let a call through.
pub(crate) unsafe extern "C" fn refused(lane: *const Lane, reason: u64, stub: u64, out_frame: *const u64) {
    // SAFETY: the gate passes its lane and frame; the second word is the domain's stack top.
    let (lane, top) = unsafe { (&*lane, *out_frame.add(1)) };
    let kind = match reason {
        gate::refused::DATA_STACK => FaultKind::DataStack,
        _ => FaultKind::Unbound(stub as u32),
    };
    let host_sp = out_frame as u64 + 32;
    fail_at_call_out(lane, End::Fault(kind), "", top, [0; 16], host_sp, 0);
}

/// A host function, or a runtime stub, ends the call in.
pub(crate) fn end_call(lane: &Lane, frame: &OutFrame, why: Result<EndCall, u32>) {
    let none = String::new;
    let (end, text) = match &why {
        Ok(EndCall::Exit(status)) => (End::Exit(*status), ""),
        Ok(EndCall::Abort(reason)) => (End::Fault(FaultKind::Abort(*reason)), ""),
        Ok(EndCall::Uncaught(name)) => return end_uncaught(lane, frame, name),
        Ok(EndCall::Fail(why)) => (End::Fault(FaultKind::Host(none())), &**why),
        Ok(EndCall::OutOfMemory) => (End::Fault(FaultKind::OutOfMemory), ""),
        Err(stub) => (End::Fault(FaultKind::Unbound(*stub)), ""),
    };
    end_at_call(lane, frame, end, text);
}

/// Nobody in the domain has caught an exception of the type `name`.
pub(crate) fn end_uncaught(lane: &Lane, frame: &OutFrame, name: &str) {
    let none = String::new();
    let kind = if frames::through_added(lane, lane.top.load(Ordering::Relaxed)) {
        FaultKind::NotUnwound(none)
    } else {
        FaultKind::Uncaught(none)
    };
    end_at_call(lane, frame, End::Fault(kind), name);
}

fn end_at_call(lane: &Lane, frame: &OutFrame, end: End, text: &str) {
    let mut general = [0; 16];
    for (value, register) in frame.ints.iter().zip([7, 6, 2, 1, 8, 9]) {
        general[register] = *value;
    }
    (general[0], general[10], general[15]) = (frame.rax, frame.r10, frame.stack);
    let top = lane.top.load(Ordering::Relaxed);
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    fail_at_call_out(lane, end, text, top, general, host_sp, 0);
}

/// Ends the call in from a stub that knows its own frame.
pub(crate) fn end_call_at(lane: &Lane, (kind, text): Why<'_>, top: u64) {
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    fail_at_call_out(lane, End::Fault(kind), text, top, [0; 16], host_sp, 0);
}

/// Whether the call out whose frame of four words is at `out_frame` is the innermost of its lane, on the lane's own thread.
pub(crate) fn is_at(lane: &Lane, out_frame: *const u64) -> bool {
    // SAFETY: the gate's frame; its second word is the domain's stack top.
    let top = unsafe { *out_frame.add(1) };
    lane.thread.load(Ordering::Relaxed) == gate::thread_pointer()
        && lane.top.load(Ordering::Relaxed) == top
        && lane.host_sp.load(Ordering::Relaxed) == out_frame as u64 + 32
}

/// What the gate does after a failed call of another domain.
#[repr(C)]
pub(crate) struct AfterFailure {
    /// Not 0: the call in ends.
    end: u64,
    /// The result, if it does not.
    value: u64,
}

/// A domain that this one called failed; the thread's cell has its error.
pub(crate) unsafe extern "C" fn callee_failed(lane: *const Lane, out_frame: *const u64) -> AfterFailure {
    let goes_on = |value| AfterFailure { end: 0, value };
    // SAFETY: the gate passes its lane, whose memory is never unmapped, and its own frame of four words.
    let (lane, [_, top, import, _]) = unsafe { (&*lane, *out_frame.cast::<[u64; 4]>()) };
    // On another thread or out of order: what the gate looks at next tells it so, and this lane is not ours.
    if !is_at(lane, out_frame) {
        return goes_on(0);
    }
    let domain = lane.domain();
    lane.in_callee.store(0, Ordering::Relaxed);
    let last = last_error::last_call();
    let told = slot::code(&last, last_error::last_is_callees());
    lane.call_status.store(told, Ordering::Relaxed);
    let number =
        (import - domain.imports().as_ptr() as u64) as usize / size_of::<crate::lanes::lane::Import>();
    let slot = domain.slot(number);
    let mut reason = Text::<MOST_TEXT>::EMPTY;
    let noted = matches!(last, LastCall::Fault(_)) && last_error::last_is_noted();
    if !noted {
        let _ = last_error::with_reason(|error| write!(reason, "a domain that it called: {error}"));
    }
    let (outcome, callee) = match slot.filter(|_| domain.has_hook()) {
        Some(slot) => ask_host(domain, slot),
        None => (Ok(()), last_error::take_word()),
    };
    let none = String::new;
    let mut text = Text::<MOST_TEXT>::EMPTY;
    let end = match (&outcome, slot.map(|s| s.on_failure)) {
        (Ok(()), Some(OnFailure::Return(value))) => return goes_on(value),
        (Ok(()), Some(OnFailure::Tell)) if domain.asks_call_status() => return goes_on(0),
        (Ok(()), _) if noted => End::Callee,
        (Ok(()), _) => {
            text = reason;
            End::Fault(FaultKind::Host(none()))
        }
        (Err(EndCall::Exit(status)), _) => End::Exit(*status),
        (Err(EndCall::Abort(reason)), _) => End::Fault(FaultKind::Abort(*reason)),
        (Err(EndCall::Fail(why)), _) => {
            text.push(why);
            End::Fault(FaultKind::Host(none()))
        }
        (Err(EndCall::Uncaught(name)), _) => {
            text.push(name);
            End::Fault(FaultKind::Uncaught(none()))
        }
        (Err(EndCall::OutOfMemory), _) => End::Fault(FaultKind::OutOfMemory),
    };
    let host_sp = out_frame as u64 + 32;
    fail_at_call_out(lane, end, text.as_str(), top, [0; 16], host_sp, callee);
    AfterFailure { end: 1, value: 0 }
}

/// What the host's hook says to a failed call. And the call's status word: the hook may have called domains itself, so what is noted of the
/// call is kept for it. (The hook gets an error, which is allocated: domains that have one are no domains for signal handlers.)
fn ask_host(domain: &Inner, slot: &Slot) -> (Result<(), EndCall>, u64) {
    let notes = last_error::copy_notes();
    let word = last_error::take_word();
    let error = last_error::error_of(word).unwrap_or(CallError::Gone);
    let outcome = domain.tell(slot, &error);
    last_error::put_notes(&notes);
    last_error::take_word();
    (outcome, word)
}

/// On the way back into the domain something is amiss. 0: go on; 1: the call in ends.
pub(crate) unsafe extern "C" fn attention(lane: *const Lane) -> u32 {
    // SAFETY: the gate passes its lane.
    let lane = unsafe { &*lane };
    let bits = lane.attention.load(Ordering::Acquire);
    if bits & attention::PAUSED != 0 {
        lane.resume();
    }
    let why = lane.ending();
    if bits & attention::FAULTED == 0 && why == 0 {
        lane.forget_ending();
        return 0;
    }
    if lane.domain().uses_x87() {
        // A result may be left in it.
        gate::empty_unit();
    }
    let kind = kind_of(why);
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    let top = lane.top.load(Ordering::Relaxed);
    fail_at_call_out(lane, End::Fault(kind), "", top, [0; 16], host_sp, 0);
    1
}

/// A host function returned on another thread or out of order. `in_frame` is the frame of the call in that ends here.
pub(crate) unsafe extern "C" fn disorder(lane: *const Lane, in_frame: *const gate::InFrame) {
    // SAFETY: the gate passes its lane, whose memory is never unmapped, and its own frame.
    let (lane, in_frame) = unsafe { (&*lane, &*in_frame) };
    let note = without_trace(lane, FaultKind::OutOfOrder);
    {
        // Another thread may be about to reset or to drop the domain. (A handler that interrupted the runtime goes without the lock.)
        let _world = world::lock();
        let sound = 0;
        let found =
            lane.poisoned
                .compare_exchange(sound, disorder::POISONED, Ordering::AcqRel, Ordering::Acquire);
        // Reset since, or its thread is gone: the domain has nothing to do with this call any more.
        if found != Err(disorder::SPENT) {
            let _ = lane.host_sp.compare_exchange(
                std::ptr::from_ref(in_frame) as u64,
                in_frame.previous,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
            last_error::keep_first(&lane.domain().lanes.first, None, &note);
            lane.domain().set_faulted(None);
        }
    }
    last_error::note(&note, 0, None);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lanes::lane::tests::marked;

    #[test]
    fn a_mark_whose_bit_has_not_come_ends_nothing() {
        // Who marks a call stores its number first. Until the bit is there nobody knows why the call ends; the watchdog's tick follows it.
        let lane = marked(7, 7, attention::PAUSED);
        // SAFETY: a lane that nobody else has; what goes on needs no domain.
        assert_eq!(unsafe { super::attention(&raw const *lane) }, 0);
        assert_eq!(lane.attention.load(Ordering::Relaxed), 0);
    }
}
