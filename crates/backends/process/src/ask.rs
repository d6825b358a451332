//! What a host asks a worker for besides calls.

use crate::shared;
use crate::wire::{self, Reader, Writer};
use crate::worker::SOCKET;
use ringfence_core::{DomainError, DomainRef, Instance, MemoryError, Syscall};
use ringfence_runtime::{Domain, backed};
use std::time::Duration;

/// A question. Answers begin with 0 if it went well.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ask {
    /// A thread for the channel of this number.
    Thread(u64),
    Function(String),
    FunctionAt(u64),
    Symbol(String),
    Reset,
    Recycle,
    Destructors,
    Trim,
    Usage,
    Faulted,
    Interrupt,
    TimeLimit(Option<u64>),
    Alloc {
        len: u64,
        align: u64,
    },
    Free {
        address: u64,
        resets: Option<u64>,
    },
    MemoryUsed,
    MemoryCall {
        number: u64,
        args: [u64; 6],
    },
    Ending,
    Checkpoint,
    /// A region has come, or gone, at this place. With a file, that was handed over.
    Region {
        address: u64,
        len: u64,
        rights: u64,
        file: bool,
    },
}

impl Ask {
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut w = Writer::default();
        let maybe = |w: &mut Writer, n: Option<u64>| {
            w.number(u64::from(n.is_some())).number(n.unwrap_or(0));
        };
        match self {
            Ask::Thread(number) => {
                w.number(1).number(*number);
            }
            Ask::Function(name) => {
                w.number(2).text(name);
            }
            Ask::FunctionAt(address) => {
                w.number(3).number(*address);
            }
            Ask::Symbol(name) => {
                w.number(4).text(name);
            }
            Ask::Reset => {
                w.number(5);
            }
            Ask::Recycle => {
                w.number(6);
            }
            Ask::Destructors => {
                w.number(7);
            }
            Ask::Trim => {
                w.number(8);
            }
            Ask::Usage => {
                w.number(9);
            }
            Ask::Faulted => {
                w.number(10);
            }
            Ask::Interrupt => {
                w.number(11);
            }
            Ask::TimeLimit(limit) => maybe(w.number(12), *limit),
            Ask::Alloc { len, align } => {
                w.number(13).number(*len).number(*align);
            }
            Ask::Free { address, resets } => maybe(w.number(14).number(*address), *resets),
            Ask::MemoryUsed => {
                w.number(15);
            }
            Ask::MemoryCall { number, args } => {
                w.number(16).number(*number);
                for a in args {
                    w.number(*a);
                }
            }
            Ask::Ending => {
                w.number(17);
            }
            Ask::Checkpoint => {
                w.number(18);
            }
            Ask::Region {
                address,
                len,
                rights,
                file,
            } => {
                w.number(19).number(*address).number(*len);
                w.number(*rights).number((*file).into());
            }
        }
        w.0
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Ask> {
        let r = &mut Reader(bytes);
        let maybe = |r: &mut Reader<'_>| {
            let there = r.number() != 0;
            let n = r.number();
            there.then_some(n)
        };
        Some(match r.number() {
            1 => Ask::Thread(r.number()),
            2 => Ask::Function(r.text()),
            3 => Ask::FunctionAt(r.number()),
            4 => Ask::Symbol(r.text()),
            5 => Ask::Reset,
            6 => Ask::Recycle,
            7 => Ask::Destructors,
            8 => Ask::Trim,
            9 => Ask::Usage,
            10 => Ask::Faulted,
            11 => Ask::Interrupt,
            12 => Ask::TimeLimit(maybe(r)),
            13 => Ask::Alloc {
                len: r.number(),
                align: r.number(),
            },
            14 => Ask::Free {
                address: r.number(),
                resets: maybe(r),
            },
            15 => Ask::MemoryUsed,
            16 => Ask::MemoryCall {
                number: r.number(),
                args: std::array::from_fn(|_| r.number()),
            },
            17 => Ask::Ending,
            18 => Ask::Checkpoint,
            19 => Ask::Region {
                address: r.number(),
                len: r.number(),
                rights: r.number(),
                file: r.number() != 0,
            },
            _ => return None,
        })
    }

    /// What the domain says to it. While it is being made, only its memory can be asked.
    pub(crate) fn answer(self, domain: Option<&Domain>, space: Option<DomainRef<'_>>, w: &mut Writer) {
        if let Some(space) = space
            && self.answer_of(space, w)
        {
            return;
        }
        match domain {
            Some(domain) => self.answer_by(domain, w),
            None => {
                let reason = "the domain is being made".to_owned();
                wire::put_domain_error(w.number(1), &DomainError::Layout { reason });
            }
        }
    }

    /// Questions about memory.
    fn answer_of(&self, space: DomainRef<'_>, w: &mut Writer) -> bool {
        let memory = |w: &mut Writer, done: Result<u64, MemoryError>| match done {
            Ok(n) => {
                w.number(0).number(n);
            }
            Err(e) => wire::put_memory_error(w.number(1), &e),
        };
        match self {
            Ask::Symbol(name) => {
                let found = space.find(None, name);
                w.number(found.is_none().into()).number(found.unwrap_or(0));
            }
            Ask::Alloc { len, align } => memory(w, space.alloc(*len, *align)),
            Ask::Free { address, resets } => memory(w, space.space().free(*address, *resets).map(|()| 0)),
            Ask::MemoryUsed => memory(w, Ok(space.memory_used())),
            Ask::MemoryCall { number, args } => {
                let call = Syscall {
                    number: *number,
                    args: *args,
                };
                let value = space.memory_call(&call);
                w.number(value.is_none().into()).number(value.unwrap_or(0) as u64);
            }
            Ask::Ending => {
                w.number(0).number(space.ending().into());
            }
            Ask::Region {
                address,
                len,
                rights,
                file,
            } => {
                use std::os::fd::AsFd;
                let taken = file.then(|| shared::receive(SOCKET));
                let mapped = match &taken {
                    Some(None) => false,
                    other => {
                        let file = other.as_ref().and_then(|f| f.as_ref()).map(AsFd::as_fd);
                        backed::map_region(*address, *len, *rights as i32, file).is_ok()
                    }
                };
                w.number((!mapped).into());
            }
            _ => return false,
        }
        true
    }

    fn answer_by(self, domain: &Domain, w: &mut Writer) {
        let done = |w: &mut Writer, done: Result<u64, DomainError>| match done {
            Ok(n) => {
                w.number(0).number(n);
            }
            Err(e) => wire::put_domain_error(w.number(1), &e),
        };
        match self {
            Ask::Function(name) => done(w, domain.function(&name)),
            Ask::FunctionAt(at) => done(w, domain.function_at(at)),
            Ask::Reset => done(w, domain.reset().map(|()| 0)),
            Ask::Recycle => done(w, domain.recycle().map(|()| 0)),
            Ask::Destructors => done(w, domain.run_destructors().map(|()| 0)),
            Ask::Trim => done(w, domain.trim().map(|n| n as u64).map_err(DomainError::Host)),
            Ask::Usage => wire::put_usage(w.number(0), &domain.usage()),
            Ask::Faulted => done(w, Ok(domain.faulted().into())),
            Ask::Interrupt => {
                domain.interrupt();
                w.number(0);
            }
            Ask::TimeLimit(limit) => {
                domain.set_time_limit(limit.map(Duration::from_nanos));
                w.number(0);
            }
            Ask::Checkpoint => match domain.checkpoint() {
                Ok(()) => {
                    w.number(0);
                }
                Err(e) => wire::put_snapshot_error(w.number(1), &e),
            },
            // Threads are the worker's own affair, and the rest was answered.
            _ => {
                w.number(1);
            }
        }
    }
}
