//! The window back end.

use super::{Call, Domain, Returned, Signature};
use ringfence_core::error::{CallError, DomainError, HostError, SnapshotError};
use ringfence_core::{Backend, DomainRef, Instance, Unsupported, Usage};
use std::ffi::c_void;
use std::time::Duration;

impl Instance for Domain {
    fn backend(&self) -> Backend {
        Backend::Window
    }

    fn space(&self) -> DomainRef<'_> {
        self.as_ref()
    }

    fn function(&self, name: &str) -> Result<u64, DomainError> {
        Ok(self.entry(name)?.address())
    }

    fn function_at(&self, address: u64) -> Result<u64, DomainError> {
        Ok(self.entry_by_address(address)?.address())
    }

    fn call(&self, function: u64, call: &mut Call<'_>) -> Result<Returned, CallError> {
        // What went since the address was given cannot be called.
        let entry = self.entry_by_address(function).map_err(|_| CallError::Removed)?;
        entry.call(call)
    }

    fn thunk(&self, function: u64, signature: &Signature) -> Result<*const c_void, DomainError> {
        Ok(self.entry_by_address(function)?.try_thunk(*signature)?)
    }

    fn interrupt(&self) -> Result<(), Unsupported> {
        self.interrupt();
        Ok(())
    }

    fn faulted(&self) -> bool {
        self.faulted()
    }

    fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), Unsupported> {
        self.set_time_limit(limit);
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), SnapshotError> {
        self.checkpoint()
    }

    fn set_tag(&self, tag: u64) {
        self.set_tag(tag);
    }

    fn reset(&self) -> Result<(), DomainError> {
        self.reset()
    }

    fn recycle(&self) -> Result<(), DomainError> {
        self.recycle()
    }

    fn run_destructors(&self) -> Result<(), DomainError> {
        self.run_destructors()
    }

    fn trim(&self) -> Result<usize, HostError> {
        self.trim()
    }

    fn usage(&self) -> Usage {
        self.usage()
    }
}
