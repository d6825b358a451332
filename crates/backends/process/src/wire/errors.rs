//! Errors, and the faults and backtraces that they hold.

use super::{Reader, Writer};
use ringfence_core::work::{Bound, Exceeded};
use ringfence_core::{
    Access, CallError, DomainError, Fault, FaultKind, Frame, FramesError, HostError, MemoryError, Registers,
    SnapshotError, Trace,
};
use std::sync::Arc;

/// Most frames that travel, and addresses.
const FRAMES: usize = 64;
/// How deeply errors may name each other.
const DEPTH: u32 = 4;

/// A backtrace that was made in the worker.
struct Told {
    addresses: Vec<u64>,
    frames: Vec<Frame>,
    cut: Option<Exceeded>,
}

impl Trace for Told {
    fn addresses(&self) -> &[u64] {
        &self.addresses
    }

    fn frames(&self) -> Vec<Frame> {
        self.frames.clone()
    }

    fn cut(&self) -> Option<Exceeded> {
        self.cut
    }
}

fn put_exceeded(w: &mut Writer, e: Exceeded) {
    let bound = match e.bound {
        Bound::Steps => 0,
        Bound::Bytes => 1,
        Bound::Time => 2,
        Bound::Memory => 3,
    };
    w.number(bound).number(e.limit);
}

fn get_exceeded(r: &mut Reader<'_>) -> Exceeded {
    let bound = match r.number() {
        0 => Bound::Steps,
        1 => Bound::Bytes,
        2 => Bound::Time,
        _ => Bound::Memory,
    };
    Exceeded {
        bound,
        limit: r.number(),
    }
}

const FRAME_ERRORS: [FramesError; 5] = [
    FramesError::Pointer,
    FramesError::NoFrame,
    FramesError::NoPad,
    FramesError::OtherFunction,
    FramesError::OtherDepth,
];

fn put_kind(w: &mut Writer, kind: &FaultKind, depth: u32) {
    match kind {
        FaultKind::BadAccess { address, access } => w.number(1).number(*address).number(match access {
            Access::Read => 0,
            Access::Write => 1,
            Access::Execute => 2,
        }),
        FaultKind::OutsideWindow { address } => w.number(2).number(*address),
        FaultKind::BadTarget => w.number(3),
        FaultKind::Division => w.number(4),
        FaultKind::FloatingPoint => w.number(5),
        FaultKind::IllegalInstruction => w.number(6),
        FaultKind::Trap => w.number(7),
        FaultKind::Protection => w.number(8),
        FaultKind::ControlStack => w.number(9),
        FaultKind::DataStack => w.number(10),
        FaultKind::TimeLimit => w.number(11),
        FaultKind::Interrupted => w.number(12),
        FaultKind::OutOfMemory => w.number(13),
        FaultKind::Abort(reason) => w.number(14).number(*reason as u32 as u64),
        FaultKind::Uncaught(text) => w.number(15).text(text),
        FaultKind::NotUnwound(text) => w.number(16).text(text),
        FaultKind::Frames(why) => {
            let place = FRAME_ERRORS.iter().position(|e| e == why).unwrap_or(0);
            w.number(17).number(place as u64)
        }
        FaultKind::Unbound(stub) => w.number(18).number(u64::from(*stub)),
        FaultKind::OutOfOrder => w.number(20),
        FaultKind::Host(text) => w.number(21).text(text),
        FaultKind::Callee(fault) if depth < DEPTH => {
            put_fault(w.number(22), fault, depth + 1);
            w
        }
        FaultKind::Elsewhere => w.number(23),
        other => w.number(21).text(&other.to_string()),
    };
}

fn get_kind(r: &mut Reader<'_>, depth: u32) -> FaultKind {
    match r.number() {
        1 => FaultKind::BadAccess {
            address: r.number(),
            access: match r.number() {
                0 => Access::Read,
                1 => Access::Write,
                _ => Access::Execute,
            },
        },
        2 => FaultKind::OutsideWindow { address: r.number() },
        3 => FaultKind::BadTarget,
        4 => FaultKind::Division,
        5 => FaultKind::FloatingPoint,
        6 => FaultKind::IllegalInstruction,
        7 => FaultKind::Trap,
        8 => FaultKind::Protection,
        9 => FaultKind::ControlStack,
        10 => FaultKind::DataStack,
        11 => FaultKind::TimeLimit,
        12 => FaultKind::Interrupted,
        13 => FaultKind::OutOfMemory,
        14 => FaultKind::Abort(r.number() as i32),
        15 => FaultKind::Uncaught(r.text()),
        16 => FaultKind::NotUnwound(r.text()),
        17 => FaultKind::Frames(FRAME_ERRORS[r.number().min(4) as usize]),
        18 => FaultKind::Unbound(r.number() as u32),
        20 => FaultKind::OutOfOrder,
        21 => FaultKind::Host(r.text()),
        22 if depth < DEPTH => FaultKind::Callee(Box::new(get_fault(r, depth + 1))),
        _ => FaultKind::Elsewhere,
    }
}

fn put_fault(w: &mut Writer, fault: &Fault, depth: u32) {
    put_kind(w, &fault.kind, depth);
    for n in fault.registers.general {
        w.number(n);
    }
    w.number(fault.registers.rip).number(fault.registers.rflags);
    w.text(&fault.domain);
    let addresses = fault.addresses();
    let addresses = &addresses[..addresses.len().min(FRAMES)];
    w.number(addresses.len() as u64);
    for &a in addresses {
        w.number(a);
    }
    let mut frames = fault.backtrace();
    // They have to fit into a channel.
    frames.truncate(if depth == 0 { 32 } else { 4 });
    w.number(frames.len() as u64);
    for f in &frames {
        w.number(f.address)
            .number(f.offset)
            .number(f.line.map_or(0, |l| u64::from(l) + 1))
            .maybe(f.module.as_deref())
            .maybe(f.function.as_deref())
            .maybe(f.file.as_deref());
    }
    w.number(u64::from(fault.cut().is_some()));
    if let Some(cut) = fault.cut() {
        put_exceeded(w, cut);
    }
}

fn get_fault(r: &mut Reader<'_>, depth: u32) -> Fault {
    let kind = get_kind(r, depth);
    let mut registers = Registers::default();
    for n in &mut registers.general {
        *n = r.number();
    }
    registers.rip = r.number();
    registers.rflags = r.number();
    let domain = r.text();
    let count = (r.number() as usize).min(FRAMES);
    let addresses = (0..count).map(|_| r.number()).collect();
    let count = (r.number() as usize).min(FRAMES);
    let frame = |r: &mut Reader<'_>| Frame {
        address: r.number(),
        offset: r.number(),
        line: r.number().checked_sub(1).map(|l| l as u32),
        module: r.maybe(),
        function: r.maybe(),
        file: r.maybe(),
    };
    let frames = (0..count).map(|_| frame(r)).collect();
    let cut = (r.number() != 0).then(|| get_exceeded(r));
    let trace = Told {
        addresses,
        frames,
        cut,
    };
    Fault::new(kind, registers, domain, Arc::new(trace))
}

pub(crate) fn put_call_error(w: &mut Writer, error: &CallError, depth: u32) {
    match error {
        CallError::Fault(fault) => {
            put_fault(w.number(1), fault, depth);
        }
        CallError::Exit(status) => {
            w.number(2).number(*status as u32 as u64);
        }
        CallError::Faulted { first } => {
            let first = first.as_ref().filter(|_| depth < DEPTH);
            w.number(3).number(u64::from(first.is_some()));
            if let Some(first) = first {
                put_call_error(w, first, depth + 1);
            }
        }
        CallError::Gone => {
            w.number(4);
        }
        CallError::Removed => {
            w.number(5);
        }
        CallError::Inside => {
            w.number(6);
        }
        CallError::Ending => {
            w.number(7);
        }
        CallError::Calls { limit } => {
            w.number(8).number(*limit);
        }
        CallError::NoLane { limit } => {
            w.number(9).number(u64::from(*limit));
        }
        CallError::Arguments { given, limit } => {
            w.number(10).number(*given as u64).number(*limit as u64);
        }
        CallError::Exceeded(e) => put_exceeded(w.number(11), *e),
        CallError::Nesting => {
            w.number(13);
        }
        CallError::Memory(MemoryError::Limit { wanted, used, limit }) => {
            w.number(14).number(*wanted).number(*used).number(*limit);
        }
        other => {
            w.number(12).text(&other.to_string());
        }
    }
}

pub(crate) fn get_call_error(r: &mut Reader<'_>, depth: u32) -> CallError {
    match r.number() {
        1 => CallError::Fault(Box::new(get_fault(r, depth))),
        2 => CallError::Exit(r.number() as i32),
        3 => {
            let there = r.number() != 0 && depth < DEPTH;
            CallError::Faulted {
                first: there.then(|| Box::new(get_call_error(r, depth + 1))),
            }
        }
        4 => CallError::Gone,
        5 => CallError::Removed,
        6 => CallError::Inside,
        7 => CallError::Ending,
        8 => CallError::Calls { limit: r.number() },
        9 => CallError::NoLane {
            limit: r.number() as u32,
        },
        10 => CallError::Arguments {
            given: r.number() as usize,
            limit: r.number() as usize,
        },
        11 => CallError::Exceeded(get_exceeded(r)),
        13 => CallError::Nesting,
        14 => CallError::Memory(MemoryError::Limit {
            wanted: r.number(),
            used: r.number(),
            limit: r.number(),
        }),
        _ => CallError::Lane(r.text()),
    }
}

pub(crate) fn put_memory_error(w: &mut Writer, error: &MemoryError) {
    match *error {
        MemoryError::Outside { address, len } => w.number(1).number(address).number(len),
        MemoryError::Unmapped { address, len } => w.number(2).number(address).number(len),
        MemoryError::Limit { wanted, used, limit } => w.number(3).number(wanted).number(used).number(limit),
        MemoryError::NotAllocated { address } => w.number(4).number(address),
        MemoryError::Alignment { align } => w.number(5).number(align),
        _ => w.number(2).number(0).number(0),
    };
}

pub(crate) fn get_memory_error(r: &mut Reader<'_>) -> MemoryError {
    match r.number() {
        1 => MemoryError::Outside {
            address: r.number(),
            len: r.number(),
        },
        3 => MemoryError::Limit {
            wanted: r.number(),
            used: r.number(),
            limit: r.number(),
        },
        4 => MemoryError::NotAllocated { address: r.number() },
        5 => MemoryError::Alignment { align: r.number() },
        _ => MemoryError::Unmapped {
            address: r.number(),
            len: r.number(),
        },
    }
}

pub(crate) fn put_domain_error(w: &mut Writer, error: &DomainError) {
    match error {
        DomainError::NoExport { name } => w.number(1).text(name),
        DomainError::NotFunction { name } => w.number(2).text(name),
        DomainError::NoEntry { address } => w.number(3).number(*address),
        DomainError::Faults { faults, limit } => w.number(4).number(*faults).number(*limit),
        DomainError::Busy { lanes } => w.number(5).number(*lanes as u64),
        DomainError::Init { module, source } => {
            put_call_error(w.number(6).text(module), source, 0);
            w
        }
        DomainError::Fini { module, source } => {
            put_call_error(w.number(7).text(module), source, 0);
            w
        }
        DomainError::Memory(e) => {
            put_memory_error(w.number(8), e);
            w
        }
        DomainError::Unresolved { module, symbol } => w.number(9).text(module).text(symbol),
        DomainError::Layout { reason } => w.number(10).text(reason),
        DomainError::TooManyImports { count, limit } => {
            w.number(11).number(*count as u64).number(*limit as u64)
        }
        other => w.number(12).text(&other.to_string()),
    };
}

pub(crate) fn get_domain_error(r: &mut Reader<'_>) -> DomainError {
    match r.number() {
        1 => DomainError::NoExport { name: r.text() },
        2 => DomainError::NotFunction { name: r.text() },
        3 => DomainError::NoEntry { address: r.number() },
        4 => DomainError::Faults {
            faults: r.number(),
            limit: r.number(),
        },
        5 => DomainError::Busy {
            lanes: r.number() as usize,
        },
        6 => DomainError::Init {
            module: r.text(),
            source: Box::new(get_call_error(r, 0)),
        },
        7 => DomainError::Fini {
            module: r.text(),
            source: Box::new(get_call_error(r, 0)),
        },
        8 => DomainError::Memory(get_memory_error(r)),
        9 => DomainError::Unresolved {
            module: r.text(),
            symbol: r.text(),
        },
        10 => DomainError::Layout { reason: r.text() },
        11 => DomainError::TooManyImports {
            count: r.number() as usize,
            limit: r.number() as usize,
        },
        _ => DomainError::Host(HostError::Os {
            what: "in the domain's process",
            source: std::io::Error::other(r.text()),
        }),
    }
}

/// Why a checkpoint was not made.
pub(crate) fn put_snapshot_error(w: &mut Writer, error: &SnapshotError) {
    match error {
        SnapshotError::Faulted => w.number(1),
        SnapshotError::Lanes { count } => w.number(2).number((*count).into()),
        SnapshotError::Regions => w.number(3),
        SnapshotError::Held(what) => w.number(4).text(what),
        SnapshotError::Domain(e) => {
            put_domain_error(w.number(5), e);
            w
        }
        other => w.number(4).text(&other.to_string()),
    };
}

pub(crate) fn get_snapshot_error(r: &mut Reader<'_>) -> SnapshotError {
    match r.number() {
        1 => SnapshotError::Faulted,
        2 => SnapshotError::Lanes {
            count: r.number() as u32,
        },
        3 => SnapshotError::Regions,
        4 => SnapshotError::Held(r.text()),
        _ => SnapshotError::Domain(get_domain_error(r)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds() -> Vec<FaultKind> {
        let fault = Fault::untraced(FaultKind::Division, "inner".into());
        vec![
            FaultKind::BadAccess {
                address: 5,
                access: Access::Write,
            },
            FaultKind::OutsideWindow { address: 1 << 40 },
            FaultKind::BadTarget,
            FaultKind::Abort(-3),
            FaultKind::Uncaught("std::string".into()),
            FaultKind::Frames(FramesError::OtherDepth),
            FaultKind::Unbound(9),
            FaultKind::Host("why".into()),
            FaultKind::Callee(Box::new(fault)),
            FaultKind::Elsewhere,
        ]
    }

    #[test]
    fn faults_come_back() {
        for kind in kinds() {
            let mut registers = Registers::default();
            registers.general[3] = 7;
            registers.rip = 99;
            let trace = Told {
                addresses: vec![99, 100],
                frames: vec![Frame {
                    address: 99,
                    function: Some("f".into()),
                    line: Some(0),
                    ..Frame::default()
                }],
                cut: Some(Exceeded {
                    bound: Bound::Time,
                    limit: 8,
                }),
            };
            let fault = Fault::new(kind, registers, "name".into(), Arc::new(trace));
            let error = CallError::Faulted {
                first: Some(Box::new(CallError::Fault(Box::new(fault.clone())))),
            };
            let mut w = Writer::default();
            put_call_error(&mut w, &error, 0);
            let CallError::Faulted { first: Some(first) } = get_call_error(&mut Reader(&w.0), 0) else {
                panic!()
            };
            let CallError::Fault(back) = *first else { panic!() };
            assert_eq!(*back, fault);
            assert_eq!(back.backtrace(), fault.backtrace());
            assert_eq!((back.addresses(), back.cut()), (fault.addresses(), fault.cut()));
        }
    }
}
