//! What the gate out calls when it is no plain function.

use crate::domain::imports::{EndCall, OutFrame};
use crate::domain::{DomainRef, Inner};
use crate::gates::fault;
use crate::lanes::lane::{Import, Lane};
use crate::lanes::note::MOST_TEXT;
use ringfence_core::Text;
use ringfence_core::policy::Syscall;
use ringfence_isa::window;

/// Called by the gate out for everything that is not a plain function. 0: the domain goes on; 1: the call in ends.
pub(crate) unsafe extern "C" fn dispatch(frame: *mut OutFrame) -> u32 {
    // SAFETY: the gate passes its own frame and lane.
    let (frame, lane) = unsafe { (&mut *frame, &*((*frame).origin[1] as *const Lane)) };
    let domain = lane.domain();
    // SAFETY: the call is in progress, and so the domain stays.
    unsafe { frame.set_space(domain) };
    let number = (frame.origin[0] as usize - domain.imports().as_ptr() as usize) / size_of::<Import>();
    if number == window::stub::UNCAUGHT as usize {
        return end_with(lane, frame, || {
            fault::end_uncaught(lane, frame, type_name(domain, frame).as_str())
        });
    }
    let outcome = if number < window::STUB_FIRST_IMPORT as usize {
        runtime_stub(lane, domain, number as u32, frame)
    } else {
        let Some(f) = domain.closure(number) else {
            return end(lane, frame, Err(number as u32));
        };
        let call = std::panic::AssertUnwindSafe(|| f(frame));
        Some(
            std::panic::catch_unwind(call)
                .unwrap_or_else(|panic| Err(EndCall::panicked("a host function", &*panic))),
        )
    };
    match outcome {
        Some(Ok(())) => 0,
        Some(Err(how)) => end(lane, frame, Ok(how)),
        None => end(lane, frame, Err(number as u32)),
    }
}

fn end(lane: &Lane, frame: &OutFrame, why: Result<EndCall, u32>) -> u32 {
    end_with(lane, frame, || fault::end_call(lane, frame, why))
}

/// Ends the call in, if this is the innermost call out.
fn end_with(lane: &Lane, frame: &OutFrame, end: impl FnOnce()) -> u32 {
    // SAFETY: the gate's own frame is above this one.
    let above = unsafe { std::ptr::from_ref(frame).add(1) };
    // Out of order, the gate finds out next: this lane's call is another one, or none.
    if !fault::is_at(lane, above.cast()) {
        return 0;
    }
    end();
    1
}

/// The runtime's own stubs. `None`: not bound.
fn runtime_stub(
    lane: &Lane,
    domain: &Inner,
    number: u32,
    frame: &mut OutFrame,
) -> Option<Result<(), EndCall>> {
    use window::stub;
    match number {
        stub::SYSCALL => {
            let [a, b, c, _, e, f] = frame.ints;
            let call = Syscall {
                number: frame.rax,
                args: [a, b, c, frame.r10, e, f],
            };
            let words = domain.words();
            if let Some(answer) =
                words.and_then(|w| w.heap_call(call.number, [a, b, c], || fault::callers(lane)))
            {
                let failed = |misused| EndCall::Fail(Inner::heap_misused(&misused));
                let told = answer.map(|value| frame.result[0] = value as u64);
                return Some(told.map_err(failed));
            }
            let policy =
                std::panic::AssertUnwindSafe(|| domain.policy().syscall(&DomainRef::of(domain), &call));
            Some(match std::panic::catch_unwind(policy) {
                Ok(answer) => answer.map(|value| frame.result[0] = value as u64),
                Err(panic) => Err(EndCall::panicked("the policy", &*panic)),
            })
        }
        stub::ABORT => Some(Err(EndCall::Abort(frame.ints[0] as i32))),
        stub::EXIT => Some(Err(EndCall::Exit(frame.ints[0] as i32))),
        _ => None,
    }
}

/// Most bytes of the name of an exception's type that an error tells.
const NAME: usize = 256;

/// What the domain calls its exception: text for a message, from a stranger.
fn type_name(domain: &Inner, frame: &OutFrame) -> Text<MOST_TEXT> {
    let domain = DomainRef::of(domain);
    let mut bytes = [0; NAME];
    let bytes = &mut bytes[..NAME.min(frame.ints[1] as usize)];
    let mut text = Text::EMPTY;
    if domain.read(domain.translate(frame.ints[0]), bytes).is_ok() {
        for chunk in bytes.utf8_chunks() {
            chunk
                .valid()
                .split(char::is_control)
                .for_each(|part| text.push(part));
            if !chunk.invalid().is_empty() {
                text.push("\u{FFFD}");
            }
        }
    }
    text
}
