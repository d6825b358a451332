//! A domain's memory, across processes.

use crate::ask::Ask;
use crate::domain::Shared;
use crate::shared;
use crate::wire::{self, Reader};
use ringfence_core::{
    Call, CallError, Elsewhere, Ended, HostError, LimitHit, MemoryError, Rights, Space, SpawnError, Syscall,
    thread,
};
use ringfence_runtime::backed;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;
use std::sync::{PoisonError, Weak};
use std::time::Duration;

/// How often an interrupt looks whether all are inside, a millisecond apart.
const MOST_LOOKS: u32 = 1000;

/// Bytes of a spawned thread's stack.
const STACK: usize = 2 << 20;

impl Shared {
    /// How many threads have a call in progress in the worker.
    fn active(&self) -> Option<u32> {
        let bytes = self.whole(&Ask::Usage).ok()?;
        let mut r = Reader(&bytes);
        (!bytes.is_empty() && r.number() == 0).then(|| wire::get_usage(&mut r).active)
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
        self.twin.base()
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
        match self.link.usable().is_ok() && self.twin.read(address, to) {
            true => Ok(()),
            false => Err(MemoryError::Unmapped { address, len }),
        }
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let len = from.len() as u64;
        self.check(address, len)?;
        match self.link.usable().is_ok() && self.twin.write(address, from) {
            true => Ok(()),
            false => Err(MemoryError::Unmapped { address, len }),
        }
    }

    /// The kernel is held to the host's rights, which are all: it gets no further than the domain's.
    fn reach(&self, address: u64, len: u64, fills: bool) -> u64 {
        let rights = if fills { backed::WRITE } else { backed::READ };
        match self.link.usable() {
            Ok(()) => self.twin.allowed(address, len, rights),
            Err(_) => 0,
        }
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

    fn memory_call(&self, call: &Syscall) -> Option<i64> {
        let Syscall { number, args } = *call;
        let bytes = self.ask(&Ask::MemoryCall { number, args }).ok()?;
        let mut r = Reader(&bytes);
        (!bytes.is_empty() && r.number() == 0).then(|| r.number() as i64)
    }

    fn ending(&self) -> bool {
        // A domain whose process has ended is at its end.
        self.value(&Ask::Ending).is_none_or(|n| n != Ok(0))
    }

    fn interrupt(&self) {
        // A thread that was told to be inside may be on its way still.
        for _ in 0..MOST_LOOKS {
            let spawned = self.spawned.load(Ordering::Acquire);
            if spawned == 0 || self.active().is_none_or(|active| active >= spawned) {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.whole(&Ask::Interrupt).is_err() && self.link.making.load(Ordering::SeqCst) {
            self.link.end("it was interrupted while its constructors ran");
        }
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
        let run = move || match crate::threads::channel(&domain) {
            Ok(_) => {
                domain.spawned.fetch_add(1, Ordering::AcqRel);
                let _ = tell.send(Ok(()));
                let result = domain.call(function, &Call::ints(&[argument]));
                domain.spawned.fetch_sub(1, Ordering::AcqRel);
                ended(result.map(drop));
            }
            Err(e) => {
                let _ = tell.send(Err(e));
            }
        };
        thread::spawn(c"ringfence-spawn", STACK, run)
            .map_err(|e| CallError::Lane(format!("no thread: {e}")))?;
        Ok(told.recv().unwrap_or(Err(CallError::Gone))?)
    }

    fn elsewhere(&self) -> Option<Weak<dyn Elsewhere>> {
        let me: Weak<Shared> = self.me.clone();
        Some(me)
    }

    fn own(&self) -> *const () {
        std::ptr::from_ref(self).cast()
    }
}

impl Elsewhere for Shared {
    fn map_region(
        &self,
        address: u64,
        len: u64,
        rights: Rights,
        file: Option<BorrowedFd<'_>>,
    ) -> Result<(), HostError> {
        // Another worker gets all of them when it has begun.
        if self.link.usable().is_err() {
            return Ok(());
        }
        // One that another thread makes gets them when it is made. What its constructors may have got already is gone with it.
        if self.link.making.load(Ordering::SeqCst) && !crate::threads::makes(self) {
            if file.is_none() {
                self.link.end("a region was taken from it while it was made");
            }
            return Ok(());
        }
        let bits = match rights {
            Rights::None => 0,
            Rights::Read => backed::READ,
            Rights::Write => backed::READ | backed::WRITE,
        };
        // One file on the way at a time.
        let socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = match (&*socket, file) {
            (Some(socket), Some(file)) => socket.get().and_then(|socket| shared::send(socket, file)),
            _ => Ok(()),
        };
        let ask = Ask::Region {
            address,
            len,
            rights: bits.into(),
            file: file.is_some(),
        };
        let done = sent.and_then(|()| match self.ask(&ask) {
            Ok(bytes) if !bytes.is_empty() && Reader(&bytes).number() == 0 => Ok(()),
            _ => Err(HostError::Os {
                what: "mapping a region in the domain's process",
                source: std::io::Error::other("it did not do it"),
            }),
        });
        if done.is_ok() {
            self.twin.note(address, len, bits);
        }
        match (done, file) {
            // What is taken away is gone, in any case.
            (Err(_), None) => {
                self.link.end("it did not give a region back, and was ended");
                Ok(())
            }
            (done, _) => done,
        }
    }
}
