//! A domain's memory, across processes.

use crate::ask::Ask;
use crate::domain::Shared;
use crate::wire::{self, Reader};
use ringfence_calls::peer;
use ringfence_core::transfer::{self, Span, Transfer};
use ringfence_core::{Answer, Call, CallError, Ended, LimitHit, MemoryError, Space, SpawnError, Syscall};
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

/// Most bytes that one transfer moves.
const PIECE: u64 = 1 << 20;

impl Shared {
    /// The worker's process, if there is one that may be asked.
    fn peer(&self) -> Option<libc::pid_t> {
        self.link.usable().ok()?;
        Some(self.link.pid.load(Ordering::Acquire)).filter(|&pid| pid > 0)
    }

    /// An answer that is a number.
    fn value(&self, ask: &Ask) -> Option<Result<u64, MemoryError>> {
        let bytes = self.ask(ask).ok()?;
        let mut r = Reader(&bytes);
        (!bytes.is_empty()).then(|| match r.number() {
            0 => Ok(r.number()),
            _ => Err(wire::get_memory_error(&mut r)),
        })
    }
}

impl Space for Shared {
    fn base(&self) -> u64 {
        self.link.base.load(Ordering::Acquire)
    }

    fn name(&self) -> &str {
        &self.link.name
    }

    fn resets(&self) -> u64 {
        self.resets.load(Ordering::Acquire)
    }

    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let len = to.len() as u64;
        self.check(address, len)?;
        let gone = MemoryError::Unmapped { address, len };
        peer::read(Some(self.peer().ok_or(gone)?), address, to)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let len = from.len() as u64;
        self.check(address, len)?;
        let gone = MemoryError::Unmapped { address, len };
        peer::write(Some(self.peer().ok_or(gone)?), address, from)
    }

    /// By way of a buffer of the host's: the kernel cannot move bytes between a descriptor here and memory there.
    fn transfer(&self, how: Transfer, fd: BorrowedFd<'_>, spans: &[Span]) -> Result<i64, i32> {
        let mut room = PIECE;
        let mut spans: Vec<Span> = spans.to_vec();
        for span in &mut spans {
            *span = span.first(room);
            room -= span.len();
            self.check(span.address(), span.len()).map_err(|_| libc::EFAULT)?;
        }
        let mut buffer = vec![0u8; (PIECE - room) as usize];
        let mut at = 0;
        for span in &spans {
            // Also what is to be filled: that it is there has to be known before bytes are taken from a stream.
            let piece = &mut buffer[at..at + span.len() as usize];
            self.read(span.address(), piece).map_err(|_| libc::EFAULT)?;
            if how.fills() {
                self.write(span.address(), piece).map_err(|_| libc::EFAULT)?;
            }
            at += span.len() as usize;
        }
        let own = Span::new(buffer.as_mut_ptr() as u64, buffer.len() as u64);
        // SAFETY: the span is the buffer.
        let moved = unsafe { transfer::direct(how, fd, &[own]) }?;
        if how.fills() {
            let mut rest = &buffer[..usize::try_from(moved).unwrap_or(0).min(buffer.len())];
            for span in &spans {
                let (piece, more) = rest.split_at((span.len() as usize).min(rest.len()));
                self.write(span.address(), piece).map_err(|_| libc::EFAULT)?;
                rest = more;
            }
        }
        Ok(moved)
    }

    /// Never: the address means something else here.
    fn lend(&self, span: Span, _fills: bool) -> Result<(), MemoryError> {
        Err(MemoryError::Unmapped {
            address: span.address(),
            len: span.len(),
        })
    }

    fn alloc(&self, len: u64, align: u64) -> Result<u64, MemoryError> {
        let gone = MemoryError::Limit {
            wanted: len,
            used: 0,
            limit: 0,
        };
        let address = self.value(&Ask::Alloc { len, align }).unwrap_or(Err(gone))?;
        self.check(address, len)?;
        Ok(address)
    }

    fn free(&self, address: u64, resets: Option<u64>) -> Result<(), MemoryError> {
        let gone = MemoryError::NotAllocated { address };
        let freed = self.value(&Ask::Free { address, resets });
        freed.unwrap_or(Err(gone)).map(drop)
    }

    fn memory_used(&self) -> u64 {
        self.value(&Ask::MemoryUsed).and_then(Result::ok).unwrap_or(0)
    }

    fn memory_call(&self, call: &Syscall) -> Option<Answer> {
        let Syscall { number, args } = *call;
        let bytes = self.ask(&Ask::MemoryCall { number, args }).ok()?;
        let mut r = Reader(&bytes);
        (!bytes.is_empty() && r.number() == 0).then(|| Answer::Return(r.number() as i64))
    }

    fn ending(&self) -> bool {
        // A domain whose process has ended is at its end.
        self.value(&Ask::Ending).is_none_or(|n| n != Ok(0))
    }

    fn interrupt(&self) {
        let _ = self.whole(&Ask::Interrupt);
    }

    fn limit_reached(&self, hit: &LimitHit) -> Option<u64> {
        self.link.tell_limit(self, hit)
    }

    fn find(&self, module: Option<&str>, name: &str) -> Option<u64> {
        if module.is_some() {
            return None;
        }
        let bytes = self.ask(&Ask::Symbol(name.to_owned())).ok()?;
        let mut r = Reader(&bytes);
        (!bytes.is_empty() && r.number() == 0).then(|| r.number())
    }

    fn spawn(&self, function: u64, argument: u64, ended: Ended) -> Result<(), SpawnError> {
        let domain = self.me.upgrade().ok_or(CallError::Gone)?;
        domain
            .function_at(function)
            .map_err(|_| SpawnError::NoEntry(function))?;
        let (tell, told) = std::sync::mpsc::channel();
        let run = move || match crate::threads::slot(&domain) {
            Ok(_) => {
                let _ = tell.send(Ok(()));
                ended(domain.call(function, &Call::ints(&[argument])).map(drop));
            }
            Err(e) => {
                let _ = tell.send(Err(e));
            }
        };
        std::thread::Builder::new()
            .spawn(run)
            .map_err(|e| CallError::Lane(e.to_string()))?;
        Ok(told.recv().unwrap_or(Err(CallError::Gone))?)
    }

    fn own(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }
}
