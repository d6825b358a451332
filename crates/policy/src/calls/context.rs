//! What every handler works with.

use std::sync::Arc;

use ringfence_core::DomainRef;
use ringfence_core::EndCall;
use ringfence_core::LimitHit;
use ringfence_core::policy::Syscall;

use crate::memory::Memory;
use crate::state::State;
use crate::sys::Outcome;
use crate::table::Kind;

/// What a handler decides: a value, an errno, or the end of the call into the domain.
pub(crate) enum Reply {
    Value(i64),
    End(EndCall),
}

/// Everything that a handler needs.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) state: &'a State,
    pub(crate) domain: &'a DomainRef<'a>,
    pub(crate) memory: Memory<'a>,
    pub(crate) args: [u64; 6],
}

impl Context<'_> {
    /// Anonymous memory is the runtime's business, which knows the window and the limit.
    pub(crate) fn memory_call(&self, call: &Syscall) -> Outcome<Reply> {
        match self.domain.memory_call(call) {
            Some(value) => Ok(Reply::Value(value)),
            None => Err(libc::ENODEV),
        }
    }
    /// What the descriptor in this argument stands for.
    pub(crate) fn open(&self, argument: usize) -> Outcome<Arc<Kind>> {
        self.state.table.get(self.args[argument])
    }
    /// The domain may put no more on disk, and wants `wanted` bytes. An error unless the host allows more.
    pub(crate) fn more_disk(&self, wanted: u64) -> Outcome<()> {
        let disk = &self.state.disk;
        let (used, limit) = (disk.used(), disk.limit());
        match self.domain.limit_reached(&LimitHit::Disk { wanted, used, limit }) {
            Some(to) => {
                disk.raise(to);
                Ok(())
            }
            None => Err(libc::EDQUOT),
        }
    }

    /// Does what takes `bytes` on disk, if the domain may.
    pub(crate) fn on_disk<T>(&self, bytes: u64, f: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        while self.state.disk.take(bytes, 0).is_none() {
            self.more_disk(bytes)?;
        }
        f().inspect_err(|_| self.state.disk.give_back(bytes))
    }

    /// Whether the domain may know the time, or wait for a time.
    pub(crate) fn clocks(&self) -> Outcome<()> {
        if self.state.policy.clocks {
            Ok(())
        } else {
            Err(libc::EPERM)
        }
    }

    /// Puts a `struct stat` into the domain.
    pub(crate) fn put_status(&self, pointer: u64, mut status: [u8; 144]) -> Outcome {
        if self.clocks().is_err() {
            // The three times: they tell when something was written just now, and the kernel's clock with it.
            status[72..120].fill(0);
        }
        self.memory.put(pointer, &status)?;
        Ok(0)
    }
}
