//! Values as bytes. Both sides are built from these files; what is read is checked all the same, as a worker may have been taken over.

mod bytes;
mod errors;

pub(crate) use bytes::{Reader, Writer};
pub(crate) use errors::{
    get_call_error, get_domain_error, get_memory_error, get_snapshot_error, put_call_error, put_domain_error,
    put_memory_error, put_snapshot_error,
};

use ringfence_core::{Confinement, EndCall, LimitHit, Usage};
use std::time::Duration;

pub(crate) fn put_end(w: &mut Writer, how: &EndCall) {
    match how {
        EndCall::Fail(why) => w.number(1).text(why),
        EndCall::Exit(status) => w.number(2).number(*status as u32 as u64),
        EndCall::Abort(reason) => w.number(3).number(*reason as u32 as u64),
        EndCall::Uncaught(kind) => w.number(4).text(kind),
        EndCall::OutOfMemory => w.number(5),
    };
}

pub(crate) fn get_end(r: &mut Reader<'_>) -> EndCall {
    match r.number() {
        1 => EndCall::Fail(r.text()),
        2 => EndCall::Exit(r.number() as i32),
        3 => EndCall::Abort(r.number() as i32),
        4 => EndCall::Uncaught(r.text()),
        _ => EndCall::OutOfMemory,
    }
}

pub(crate) fn put_hit(w: &mut Writer, hit: &LimitHit) {
    match *hit {
        LimitHit::Memory { wanted, used, limit } => w.number(1).number(limit).number(wanted).number(used),
        LimitHit::CallTime { limit } => w.number(2).number(limit),
        LimitHit::ProcessorTime { used, limit } => w.number(3).number(limit).number(used),
        LimitHit::Faults { faults, limit } => w.number(4).number(limit).number(faults),
        LimitHit::Calls { limit } => w.number(5).number(limit),
        _ => w.number(6).number(hit.limit()),
    };
}

pub(crate) fn get_hit(r: &mut Reader<'_>) -> LimitHit {
    let (what, limit) = (r.number(), r.number());
    match what {
        1 => LimitHit::Memory {
            wanted: r.number(),
            used: r.number(),
            limit,
        },
        2 => LimitHit::CallTime { limit },
        3 => LimitHit::ProcessorTime {
            used: r.number(),
            limit,
        },
        4 => LimitHit::Faults {
            faults: r.number(),
            limit,
        },
        5 => LimitHit::Calls { limit },
        _ => LimitHit::Lanes { limit },
    }
}

pub(crate) fn put_confinement(w: &mut Writer, c: &Confinement) {
    w.number(c.system_calls.into())
        .number(c.namespaces.into())
        .number(c.landlock.into());
}

pub(crate) fn get_confinement(r: &mut Reader<'_>) -> Confinement {
    let mut c = Confinement::default();
    c.system_calls = r.number() != 0;
    c.namespaces = r.number() != 0;
    c.landlock = r.number() != 0;
    c
}

pub(crate) fn put_usage(w: &mut Writer, u: &Usage) {
    w.number(u.memory)
        .number(u.code)
        .number(u.modules)
        .number(u.calls)
        .number(u.faults);
    w.number(u64::try_from(u.processor_time.as_nanos()).unwrap_or(u64::MAX));
    w.number(u.lanes.into())
        .number(u.active.into())
        .number(u.resets)
        .number(u.blocked.into());
}

pub(crate) fn get_usage(r: &mut Reader<'_>) -> Usage {
    let mut u = Usage::default();
    u.memory = r.number();
    u.code = r.number();
    u.modules = r.number();
    u.calls = r.number();
    u.faults = r.number();
    u.processor_time = Duration::from_nanos(r.number());
    u.lanes = r.number() as u32;
    u.active = r.number() as u32;
    u.resets = r.number();
    u.blocked = r.number() as u32;
    u
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_are_read() {
        let mut state = 1u64;
        for len in 0..2000 {
            let bytes: Vec<u8> = (0..len % 300)
                .map(|_| {
                    state = state
                        .wrapping_mul(6364136223846793005)
                        .wrapping_add(1442695040888963407);
                    // Many small numbers, so that they mean something.
                    if state >> 60 < 12 {
                        (state >> 33) as u8 & 31
                    } else {
                        0
                    }
                })
                .collect();
            let _ = get_call_error(&mut Reader(&bytes), 0).to_string();
            let _ = get_domain_error(&mut Reader(&bytes)).to_string();
            let _ = get_memory_error(&mut Reader(&bytes));
            let _ = get_usage(&mut Reader(&bytes));
            let _ = get_end(&mut Reader(&bytes));
            let _ = get_hit(&mut Reader(&bytes));
        }
    }
}
