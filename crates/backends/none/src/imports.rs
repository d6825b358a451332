//! Host functions as C function pointers.

use crate::domain::Inner;
use ringfence_calls::{Pointer, Then, in_call};
use ringfence_core::{
    CallError, Closure, EndCall, Fault, FaultKind, HostError, HostFunction, OutFrame, Reporting, Space,
};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Weak};

/// What the libraries call.
#[derive(Default)]
pub(crate) struct Table {
    addresses: BTreeMap<String, u64>,
    /// By the number that their pointers have. Here, and not with the pointers, which outlive the domain.
    closures: Vec<Arc<Closure>>,
    pointers: Vec<Pointer>,
}

impl Table {
    pub(crate) fn find(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }
}

/// What `ringfence/module.h` declares besides imports.
fn own(name: &str) -> Option<Box<Closure>> {
    Some(match name {
        "__rf_abort" => Box::new(|frame| Err(EndCall::Abort(frame.ints[0] as i32))),
        "__rf_exit" => Box::new(|frame| Err(EndCall::Exit(frame.ints[0] as i32))),
        // There are no calls of other domains that could have failed, and the C library ends its threads by itself.
        "__rf_call_status" | "__rf_thread_exit" => Box::new(|_| Ok(())),
        _ => return None,
    })
}

fn arrive(domain: &Weak<Inner>, number: usize, frame: &mut OutFrame) -> Then {
    let Some(domain) = domain.upgrade() else {
        // A thread that the library has made, and that outlives it: the next instruction will be its end.
        return Then::Return;
    };
    let closure = &domain.imports.closures[number];
    // SAFETY: the domain is kept until the frame is done with.
    unsafe { frame.set_space(&*domain) };
    let outcome = catch_unwind(AssertUnwindSafe(|| closure(frame)))
        .unwrap_or_else(|panic| Err(EndCall::panicked("a host function", &*panic)));
    let fault = |kind| CallError::Fault(Box::new(Fault::untraced(kind, domain.name().to_owned())));
    let error = match outcome {
        Ok(()) => return Then::Return,
        Err(EndCall::Exit(status)) => CallError::Exit(status),
        Err(EndCall::Fail(why)) => fault(FaultKind::Host(why)),
        Err(EndCall::Abort(reason)) => fault(FaultKind::Abort(reason)),
        Err(EndCall::Uncaught(kind)) => fault(FaultKind::Uncaught(kind)),
        Err(EndCall::OutOfMemory) => fault(FaultKind::OutOfMemory),
    };
    if !in_call() {
        // A thread of the object's own: nothing that could end but the process.
        eprintln!("ringfence: {}: {error}, outside of any call", domain.name());
        std::process::abort();
    }
    domain.fail(error);
    Then::GiveUp
}

/// The addresses of what the modules need of the host.
pub(crate) fn table<'a>(
    domain: &Weak<Inner>,
    reporting: Reporting,
    given: &BTreeMap<String, HostFunction>,
    wanted: impl Iterator<Item = &'a str>,
) -> Result<Table, HostError> {
    let mut table = Table::default();
    for name in wanted {
        if table.addresses.contains_key(name) {
            continue;
        }
        let closure: Arc<Closure> = match (given.get(name), own(name)) {
            (Some(HostFunction::Plain { function, .. }), _) => {
                table.addresses.insert(name.to_owned(), *function as u64);
                continue;
            }
            (Some(HostFunction::Closure(closure)), _) => closure.clone(),
            (None, Some(closure)) => closure.into(),
            (None, None) => continue,
        };
        let (domain, number) = (domain.clone(), table.closures.len());
        let stub = Pointer::stub(reporting, Arc::new(move |frame| arrive(&domain, number, frame)))?;
        table.addresses.insert(name.to_owned(), stub.code() as u64);
        table.closures.push(closure);
        table.pointers.push(stub);
    }
    Ok(table)
}
