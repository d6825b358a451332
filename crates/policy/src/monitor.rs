//! The reference monitor of one domain: every system call comes through here.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ringfence_core::DomainRef;
use ringfence_core::EndCall;
use ringfence_core::LimitHit;
use ringfence_core::policy::{Syscall, SyscallHandler};

use crate::calls;
use crate::calls::context::Reply;
use crate::grant::{Decision, Policy, PolicyError, Request};
use crate::memory::Memory;
use crate::state::State;
use crate::sys;
use crate::trace;

/// Answers the system calls of one domain by a [`Policy`].
#[derive(Debug)]
pub struct Monitor(pub(crate) State);

impl Policy {
    /// Puts the policy into force for one domain.
    ///
    /// # Errors
    ///
    /// A directory that cannot be granted, a string that cannot be passed.
    pub fn start(self) -> Result<Arc<Monitor>, PolicyError> {
        Ok(Arc::new(Monitor(State::new(self)?)))
    }
}

impl Monitor {
    /// A program's arguments.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.0.policy.args
    }

    /// A program's environment.
    #[must_use]
    pub fn environment(&self) -> &[(String, String)] {
        &self.0.policy.environment
    }

    /// What becomes of a program that writes to a pipe which nobody reads.
    fn unread(&self, call: &Syscall, answer: Result<i64, EndCall>) -> Result<i64, EndCall> {
        let flags = match call.number as libc::c_long {
            libc::SYS_sendto => call.args[3],
            libc::SYS_sendmsg => call.args[2],
            _ => 0,
        };
        let asked_not_to = flags & libc::MSG_NOSIGNAL as u64 != 0;
        if answer == Ok(-i64::from(libc::EPIPE))
            && self.0.policy.broken_pipes_end
            && !asked_not_to
            && !self.0.ignores_pipe.load(Ordering::Relaxed)
        {
            return Err(EndCall::Exit(128 + libc::SIGPIPE));
        }
        answer
    }

    fn decide(&self, domain: &DomainRef<'_>, call: &Syscall) -> Result<i64, EndCall> {
        if let Some(callback) = &self.0.policy.callback {
            let request = Request {
                number: call.number,
                name: trace::name(call.number),
                args: call.args,
                domain: *domain,
            };
            match callback(&request) {
                Decision::Policy => {}
                Decision::Deny(errno) => return Ok(-i64::from(errno.clamp(1, 4095))),
                Decision::Return(value) => return Ok(value),
            }
        }
        let dispatch = || calls::dispatch(&self.0, domain, Memory(*domain), call);
        match if self.0.file_limit {
            sys::quietly(dispatch)
        } else {
            dispatch()
        } {
            Ok(Reply::Value(value)) => Ok(value),
            Ok(Reply::End(how)) => Err(how),
            Err(errno) => {
                let limit = self.0.table.limit();
                if errno == libc::EMFILE && self.0.table.open() >= limit {
                    domain.limit_reached(&LimitHit::Descriptors { limit: limit as u64 });
                }
                Ok(-i64::from(errno))
            }
        }
    }
}

impl SyscallHandler for Monitor {
    fn syscall(&self, domain: &DomainRef<'_>, call: &Syscall) -> Result<i64, EndCall> {
        if !self.0.file_limit
            && self.0.policy.callback.is_none()
            && self.0.policy.trace.is_none()
            && let Some(result) = calls::transfer::fast(&self.0, Memory(*domain), call)
        {
            return self.unread(call, Ok(result.unwrap_or_else(|errno| -i64::from(errno))));
        }
        let Some(print) = &self.0.policy.trace else {
            return self.unread(call, self.decide(domain, call));
        };
        let begun = trace::Begun::new(Memory(*domain), call);
        let answer = self.decide(domain, call);
        print(&begun.end(Memory(*domain), call, &answer));
        self.unread(call, answer)
    }

    fn reset(&self) {
        self.0.reset();
    }

    fn holds(&self) -> Option<String> {
        self.0.holds()
    }

    fn disk(&self) -> u64 {
        self.0.disk.used()
    }

    fn descriptors(&self) -> u64 {
        self.0.table.open() as u64
    }
}
