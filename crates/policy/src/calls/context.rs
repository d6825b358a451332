//! What every handler works with.

use std::sync::Arc;

use ringfence_runtime::domain::DomainRef;
use ringfence_runtime::policy::{Answer, Syscall};

use crate::memory::Memory;
use crate::state::State;
use crate::sys::Outcome;
use crate::table::Kind;

/// What a handler decides: a value, an errno, or the end of the call into the domain.
pub(crate) enum Reply {
    Value(i64),
    End(Answer),
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
            Some(Answer::Return(value)) => Ok(Reply::Value(value)),
            Some(answer) => Ok(Reply::End(answer)),
            None => Err(libc::ENODEV),
        }
    }
    /// What the descriptor in this argument stands for.
    pub(crate) fn open(&self, argument: usize) -> Outcome<Arc<Kind>> {
        self.state.table.get(self.args[argument])
    }
}
