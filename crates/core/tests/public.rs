//! What strangers are shown of a failure has no address, no path and no word of the host's in it.

use ringfence_core::{
    Access, CallError, Fault, FaultKind, Frame, FramesError, HostCause, HostFailure, MemoryError, Registers,
    Trace,
};
use std::sync::Arc;

struct Named(Frame);

impl Trace for Named {
    fn addresses(&self) -> &[u64] {
        &[]
    }
    fn frames(&self) -> Vec<Frame> {
        vec![self.0.clone()]
    }
}

const SECRET: &str = "/srv/host/secret.key at 0x7f12345678 of the host";

fn fault(kind: FaultKind) -> Fault {
    let frame = Frame {
        address: 0x7000_1234_5678,
        module: Some("/srv/modules/codec.rf".into()),
        function: Some("decode<int>\u{1b}[2J 0x7f00deadbeef \"</p>".into()),
        file: Some("/home/me/codec.c".into()),
        line: Some(12),
        ..Frame::default()
    };
    let registers = Registers {
        rip: 0x7000_1234_5678,
        ..Registers::default()
    };
    Fault::new(
        kind,
        registers,
        "/srv/modules/codec.rf".into(),
        Arc::new(Named(frame)),
    )
}

fn kinds() -> Vec<FaultKind> {
    let address = 0x7fab_cdef_0123;
    let mut kinds = vec![
        FaultKind::OutsideWindow { address },
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
        FaultKind::Abort(3),
        FaultKind::Uncaught(String::new()),
        FaultKind::Uncaught("std::out_of_range".into()),
        FaultKind::NotUnwound("/etc/passwd 0x7f0011223344".into()),
        FaultKind::Frames(FramesError::NoFrame),
        FaultKind::Unbound(7),
        FaultKind::OutOfOrder,
        FaultKind::Host(SECRET.into()),
        FaultKind::Elsewhere,
    ];
    for access in [Access::Read, Access::Write, Access::Execute] {
        kinds.push(FaultKind::BadAccess { address, access });
    }
    let callees: Vec<_> = kinds
        .iter()
        .map(|k| FaultKind::Callee(Box::new(fault(k.clone()))))
        .collect();
    kinds.extend(callees);
    kinds
}

fn check(text: &str) {
    // Five hexadecimal digits in a row of which one is a digit make an address.
    let mut digits = String::new();
    for c in text.chars().chain([' ']) {
        if c.is_ascii_hexdigit() {
            digits.push(c);
            continue;
        }
        assert!(
            digits.len() < 5 || !digits.contains(|c: char| c.is_ascii_digit()),
            "{text}"
        );
        digits.clear();
    }
    for bad in ["/", "\\", "secret", "srv", "home", "\u{1b}", "\"", "\n"] {
        assert!(!text.contains(bad), "{bad:?} in {text}");
    }
}

#[test]
fn no_kind_tells_addresses_or_paths() {
    for kind in kinds() {
        let fault = fault(kind.clone());
        let text = fault.public().to_string();
        check(&text);
        assert!(text.starts_with("codec.rf: "), "{text}");
        assert!(text.contains(" in decode<int>"), "{text}");
        let error = CallError::Fault(Box::new(fault.clone()));
        assert_eq!(error.public().to_string(), text);
        let again = CallError::Faulted {
            first: Some(Box::new(error)),
        };
        assert_eq!(again.public().to_string(), format!("failed before: {text}"));
    }
}

#[test]
fn other_errors_tell_none_either() {
    let cause = HostCause::Error(SECRET.into());
    let failure = HostFailure::new("open".into(), cause, fault(FaultKind::Host(SECRET.into())));
    let errors = [
        CallError::Host(Arc::new(failure)),
        CallError::Exit(1),
        CallError::Faulted { first: None },
        CallError::Gone,
        CallError::Revoked,
        CallError::Removed,
        CallError::Inside,
        CallError::SignalStack,
        CallError::Nesting,
        CallError::Ending,
        CallError::Calls { limit: 5 },
        CallError::NoLane { limit: 5 },
        CallError::Memory(MemoryError::Limit {
            wanted: 9,
            used: 1,
            limit: 5,
        }),
        CallError::Arguments {
            given: 200,
            limit: 128,
        },
        CallError::Lane(SECRET.into()),
    ];
    for error in errors {
        check(&error.public().to_string());
    }
}
