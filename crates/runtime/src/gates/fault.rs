//! How calls end that fail: what the gates and the signal handler noted becomes an error.

use crate::domain::DomainRef;
use crate::domain::imports::{OutFrame, Verdict};
use crate::domain::slot::{self, OnFailure};
use crate::gates::frames;
use crate::lanes::gate;
use crate::lanes::lane::{Lane, attention, disorder};
use crate::lanes::last_error::{set_error, take_error};
use crate::lanes::raw_fault::RawFault;
use crate::lanes::world;
use crate::load::module::Module;
use ringfence_core::error::CallError;
use ringfence_isa::window;
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod report;

use report::Trace;
pub use ringfence_core::{Access, Fault, FaultKind, Frame, Registers};

/// Backtraces stop after so many frames, inlined ones included.
const MOST_FRAMES: usize = 64;

fn images(lane: &Lane) -> Vec<(u64, Module)> {
    // SAFETY: the lane is the calling thread's, with the failed call still in progress.
    unsafe { lane.domain().images() }
}

/// Walks the control stack: the verifier knows how deep it is at every instruction.
fn walk(lane: &Lane, images: &[(u64, Module)], rip: u64, rsp: u64, in_frame: &gate::InFrame) -> Vec<u64> {
    let mut addresses = vec![rip];
    // The gate's own return address; nothing of the domain is above it.
    let end = in_frame.top - 24;
    let (low, high) = (lane.slot.control_low(), lane.slot.control_top());
    let (mut rip, mut rsp) = (rip, rsp);
    while addresses.len() < MOST_FRAMES {
        let image = images
            .iter()
            .find(|(base, module)| (*base..*base + u64::from(module.0.parsed.image_len)).contains(&rip));
        let depth = match image {
            Some((base, module)) => module.0.depth_at((rip - base) as u32),
            // In a stub, or nowhere after a jump to something that is no code.
            None if addresses.len() == 1 => Some(0),
            None => None,
        };
        let Some(depth) = depth else { break };
        let at = rsp.wrapping_add(depth.into());
        if at >= end || at < low || at + 8 > high || at % 8 != 0 {
            break;
        }
        // SAFETY: on the lane's control stack, which is mapped and which nobody but this thread uses.
        rip = unsafe { (at as *const u64).read() };
        if rip == gate::hook() {
            // SAFETY: as for the stack itself.
            match unsafe { &*lane.records.get() }.original(at) {
                Some(original) => rip = original,
                None => break,
            }
        }
        rsp = at + 8;
        addresses.push(rip);
    }
    addresses
}

/// `first` is what the backtrace begins with.
fn build(
    lane: &Lane,
    kind: FaultKind,
    registers: Registers,
    first: u64,
    rsp: u64,
    in_frame: &gate::InFrame,
) -> Fault {
    let images = images(lane);
    let mut addresses = walk(lane, &images, registers.rip, rsp, in_frame);
    addresses[0] = first;
    let domain = lane.domain().name().to_string();
    Fault::new(
        kind,
        registers,
        domain,
        Arc::new(Trace {
            images,
            addresses,
            named: Default::default(),
        }),
    )
}

/// A fault at a call out: `top` is where the domain's stack stands, its return address on it.
fn at_call_out(lane: &Lane, kind: FaultKind, top: u64, general: [u64; 16], host_sp: u64) -> Fault {
    // SAFETY: the gate saved the top of this lane's control stack; the word there is the return address into the domain.
    let rip = unsafe { (top as *const u64).read() };
    // SAFETY: the gate's frame at `host_sp`.
    let in_frame = unsafe { &*(host_sp as *const gate::InFrame) };
    let registers = Registers {
        general,
        rip,
        rflags: 0,
    };
    // The address is a return address already, as those of the frames above are.
    build(lane, kind, registers, rip - 1, top + 8, in_frame)
}

fn fail(lane: &Lane, fault: Fault) {
    // No frame of this lane ever goes on.
    // SAFETY: the lane's own thread, outside the domain.
    unsafe { (*lane.records.get()).clear() };
    if fault.kind != FaultKind::Elsewhere {
        lane.domain().faults.fetch_add(1, Ordering::Relaxed);
    }
    let timed_out = fault.kind == FaultKind::TimeLimit;
    let elsewhere = fault.kind == FaultKind::Elsewhere;
    fail_with(lane, CallError::Fault(Box::new(fault)), elsewhere);
    if timed_out {
        lane.domain().tell_time();
    }
}

/// The domain is of no use any more, and this is why. `elsewhere`: because of another call; if that was nested in this one, its failure is
/// what is told.
fn fail_with(lane: &Lane, error: CallError, elsewhere: bool) {
    let first = &lane.domain().first;
    let nested = elsewhere.then(|| first.get_of(lane)).flatten();
    first.keep(Some(lane), &error);
    lane.domain().set_faulted(Some(lane));
    set_error(nested.unwrap_or(error));
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
    // SAFETY: written by this thread's handler, before.
    let raw = unsafe { *lane.fault.get() };
    // SAFETY: the gate's frame.
    let in_frame = unsafe { &*(lane.host_sp.load(Ordering::Relaxed) as *const gate::InFrame) };
    // `top` is 0 while the thread is inside, and so no handler can have entered since.
    let kind = if raw.bits == 0 {
        classify(lane, &raw)
    } else {
        kind_of(raw.bits)
    };
    let fault = build(lane, kind, raw.registers, raw.registers.rip, raw.rsp, in_frame);
    fail(lane, fault);
}

/// Modules built with `--check` trap with the address in r11 when it lies outside the window.
fn outside(lane: &Lane, raw: &RawFault) -> Option<FaultKind> {
    let (rip, address) = (raw.registers.rip, raw.registers.general[11]);
    let checked = images(lane).iter().any(|(base, module)| {
        (*base..*base + u64::from(module.0.parsed.image_len)).contains(&rip)
            && module.0.parsed.note.flags & ringfence_isa::note::flag::CHECK != 0
    });
    // Other traps of the module, `__builtin_trap` for one, have anything in r11.
    use ringfence_isa::sequence::CHECK_TRAP;
    let mut code = [0; CHECK_TRAP.len()];
    let start = rip.wrapping_sub(CHECK_TRAP.len() as u64 - 2);
    let marked = DomainRef::of(lane.domain()).read(start, &mut code).is_ok() && code == CHECK_TRAP;
    (checked && marked && address.wrapping_sub(lane.base) >= window::SIZE)
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
            if raw.rsp < lane.slot.control_low() + (32 << 10) {
                FaultKind::ControlStack
            } else {
                FaultKind::Protection
            }
        }
        _ => {
            let address = raw.address;
            let slot = lane.slot.start(lane.base);
            let domain = lane.domain();
            let low = slot + u64::from(window::LANE_SLOT) - u64::from(domain.options.data_stack);
            if lane.slot.below_control(address) {
                FaultKind::ControlStack
            } else if (slot + domain.thread_area()..low).contains(&address) {
                FaultKind::DataStack
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
        gate::refused::NESTING => FaultKind::Nesting,
        _ => FaultKind::Unbound(stub as u32),
    };
    fail(lane, at_call_out(lane, kind, top, [0; 16], out_frame as u64 + 32));
}

/// A host function, or a runtime stub, ends the call in.
pub(crate) fn end_call(lane: &Lane, frame: &OutFrame, why: Result<Verdict, u32>) {
    let kind = match why {
        Ok(Verdict::Exit(status)) => {
            return fail_with(lane, CallError::Exit(status), false);
        }
        Ok(Verdict::Abort(reason)) => FaultKind::Abort(reason),
        Ok(Verdict::Uncaught(name)) => {
            if frames::through_linked(lane, lane.top.load(Ordering::Relaxed)) {
                FaultKind::NotUnwound(name)
            } else {
                FaultKind::Uncaught(name)
            }
        }
        Ok(Verdict::Fail(why)) => FaultKind::Host(why),
        Ok(Verdict::OutOfMemory) => FaultKind::OutOfMemory,
        Ok(Verdict::Return) => return,
        Err(stub) => FaultKind::Unbound(stub),
    };
    let mut general = [0; 16];
    for (value, register) in frame.ints.iter().zip([7, 6, 2, 1, 8, 9]) {
        general[register] = *value;
    }
    (general[0], general[10], general[15]) = (frame.rax, frame.r10, frame.stack);
    let top = lane.top.load(Ordering::Relaxed);
    fail(
        lane,
        at_call_out(lane, kind, top, general, lane.host_sp.load(Ordering::Relaxed)),
    );
}

/// Ends the call in from a stub that knows its own frame.
pub(crate) fn end_call_at(lane: &Lane, kind: FaultKind, top: u64) {
    fail(
        lane,
        at_call_out(lane, kind, top, [0; 16], lane.host_sp.load(Ordering::Relaxed)),
    );
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

/// A domain that this one called failed; the thread's slot has its error.
pub(crate) unsafe extern "C" fn callee_failed(lane: *const Lane, out_frame: *const u64) -> AfterFailure {
    let goes_on = |value| AfterFailure { end: 0, value };
    // SAFETY: the gate passes its lane, whose memory is never unmapped, and its own frame of four words.
    let (lane, [_, top, import, _]) = unsafe { (&*lane, *out_frame.cast::<[u64; 4]>()) };
    // On another thread or out of order: what the gate looks at next tells it so, and this lane is not ours.
    if !is_at(lane, out_frame) {
        return goes_on(0);
    }
    let error = take_error().unwrap_or(CallError::Gone);
    let domain = lane.domain();
    lane.linked.store(0, Ordering::Relaxed);
    lane.call_status.store(slot::code(&error), Ordering::Relaxed);
    let number =
        (import - domain.imports().as_ptr() as u64) as usize / size_of::<crate::lanes::lane::Import>();
    let slot = domain.slot(number);
    let verdict = domain.tell(slot, &error);
    // The hook may have called domains itself.
    // SAFETY: our own thread's words.
    unsafe { (*gate::tls()).status = 0 };
    let kind = match (verdict, slot.map(|s| s.on_failure)) {
        (Verdict::Return, Some(OnFailure::Return(value))) => return goes_on(value),
        (Verdict::Return, Some(OnFailure::Tell)) if domain.asks_call_status() => return goes_on(0),
        (Verdict::Return, _) => match error {
            CallError::Fault(fault) => FaultKind::Callee(fault),
            other => FaultKind::Host(format!("a domain that it called: {other}")),
        },
        (Verdict::Exit(status), _) => {
            fail_with(lane, CallError::Exit(status), false);
            return AfterFailure { end: 1, value: 0 };
        }
        (Verdict::Abort(reason), _) => FaultKind::Abort(reason),
        (Verdict::Fail(why), _) => FaultKind::Host(why),
        (Verdict::Uncaught(name), _) => FaultKind::Uncaught(name),
        (Verdict::OutOfMemory, _) => FaultKind::OutOfMemory,
    };
    fail(lane, at_call_out(lane, kind, top, [0; 16], out_frame as u64 + 32));
    AfterFailure { end: 1, value: 0 }
}

/// On the way back into the domain something is amiss. 0: go on; 1: the call in ends.
pub(crate) unsafe extern "C" fn attention(lane: *const Lane) -> u32 {
    // SAFETY: the gate passes its lane.
    let lane = unsafe { &*lane };
    let bits = lane.attention.load(Ordering::Acquire);
    let ending = attention::TIME | attention::INTERRUPT | attention::ELSEWHERE;
    let current = lane.expired.load(Ordering::Acquire) == lane.sequence.load(Ordering::Relaxed);
    if bits & attention::FAULTED == 0 && !current {
        lane.attention.fetch_and(!ending, Ordering::AcqRel);
        return 0;
    }
    if lane.domain().uses_x87() {
        // A result may be left in it.
        gate::empty_unit();
    }
    let kind = if current && bits & ending != 0 {
        kind_of(bits)
    } else {
        FaultKind::Elsewhere
    };
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    fail(
        lane,
        at_call_out(lane, kind, lane.top.load(Ordering::Relaxed), [0; 16], host_sp),
    );
    1
}

/// A host function returned on another thread or out of order. `in_frame` is the frame of the call in that ends here.
pub(crate) unsafe extern "C" fn disorder(lane: *const Lane, in_frame: *const gate::InFrame) {
    // SAFETY: the gate passes its lane, whose memory is never unmapped, and its own frame.
    let (lane, in_frame) = unsafe { (&*lane, &*in_frame) };
    let error = without_trace(lane, FaultKind::OutOfOrder);
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
            lane.domain().first.keep(None, &error);
            lane.domain().set_faulted(None);
        }
    }
    set_error(error);
}

/// A frame of the domain has returned to a hook whose record a fault has ended. The call in ends.
pub(crate) fn lost(lane: &Lane) {
    fail_with(lane, without_trace(lane, FaultKind::Elsewhere), true);
}

/// A fault where nothing is known of the domain's frames.
fn without_trace(lane: &Lane, kind: FaultKind) -> CallError {
    CallError::Fault(Box::new(Fault::untraced(kind, lane.domain().name().to_string())))
}
