//! The reference monitor of one domain: every system call comes through here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use ringfence_runtime::LimitHit;
use ringfence_runtime::domain::DomainRef;
use ringfence_runtime::policy::{Answer, Policy as Hook, Syscall};

use crate::calls;
use crate::calls::thread::Threads;
use crate::memory::Memory;
use crate::sys;
use crate::table::{Kind, Table};
use crate::trace;
use crate::tree::{Mount, Tree};
use crate::{Decision, Policy, PolicyError, Request, Stream};

/// Answers the system calls of one domain by a [`Policy`].
#[derive(Debug)]
pub struct Monitor {
    pub(crate) policy: Policy,
    pub(crate) tree: Tree,
    pub(crate) table: Table,
    /// Where relative paths start, as an absolute guest name.
    pub(crate) directory: Mutex<Vec<u8>>,
    pub(crate) umask: Mutex<u32>,
    pub(crate) threads: Arc<Threads>,
    /// The program ignores `SIGPIPE`.
    pub(crate) ignores_pipe: AtomicBool,
    /// The host has a limit on the size of files: writes have to be kept from signalling.
    file_limit: bool,
}

/// What a handler decides: a value, an errno, or the end of the call into the domain.
pub(crate) enum Reply {
    Value(i64),
    End(Answer),
}

impl Monitor {
    pub(crate) fn new(policy: Policy) -> Result<Monitor, PolicyError> {
        let mut tree = Tree::default();
        for (host, guest, rights) in &policy.directories {
            tree.add(Mount::open(host, guest, *rights)?);
        }
        let path = |n: usize| policy.directories[n].0.clone();
        match tree.writable_around() {
            Ok(None) => {}
            Ok(Some((inner, around))) => {
                return Err(PolicyError::WritableAround {
                    path: path(inner),
                    around: path(around),
                });
            }
            Err(errno) => {
                return Err(PolicyError::Directory {
                    path: path(0),
                    source: std::io::Error::from_raw_os_error(errno),
                });
            }
        }
        for arg in &policy.args {
            if arg.contains('\0') {
                return Err(PolicyError::Nul {
                    what: format!("argument {arg:?}"),
                });
            }
        }
        for (name, value) in &policy.environment {
            if name.contains(['\0', '=']) || value.contains('\0') {
                return Err(PolicyError::Nul {
                    what: format!("environment variable {name:?}"),
                });
            }
        }
        let monitor = Monitor {
            directory: Mutex::new(tree.start()),
            tree,
            table: Table::new(policy.descriptors),
            umask: Mutex::new(0o022),
            threads: Arc::default(),
            ignores_pipe: AtomicBool::new(false),
            file_limit: sys::file_size_limited(),
            policy,
        };
        monitor.open_streams();
        Ok(monitor)
    }

    fn open_streams(&self) {
        for (number, stream) in self.policy.streams.iter().enumerate() {
            let kind = match stream {
                Stream::Closed => continue,
                Stream::Null => Kind::Null,
                Stream::Inherit => {
                    let number = number as i32;
                    Kind::Standard {
                        number,
                        waits: sys::waits(sys::standard(number)),
                    }
                }
                Stream::Capture(buffer) => Kind::Capture(buffer.clone(), self.policy.capture_limit),
                Stream::Bytes(bytes) => Kind::Input(Arc::new(bytes.clone()), Mutex::new(0)),
            };
            // Three always fit.
            let _ = self.table.put(Arc::new(kind), number as u64, false);
        }
    }

    /// A program's arguments.
    #[must_use]
    pub fn args(&self) -> &[String] {
        &self.policy.args
    }

    /// A program's environment.
    #[must_use]
    pub fn environment(&self) -> &[(String, String)] {
        &self.policy.environment
    }

    /// What becomes of a program that writes to a pipe which nobody reads.
    fn unread(&self, call: &Syscall, answer: Answer) -> Answer {
        let asked_not_to =
            call.number == libc::SYS_sendto as u64 && call.args[3] & libc::MSG_NOSIGNAL as u64 != 0;
        if answer == Answer::Return(-i64::from(libc::EPIPE))
            && self.policy.broken_pipes_end
            && !asked_not_to
            && !self.ignores_pipe.load(Ordering::Relaxed)
        {
            return Answer::Exit(128 + libc::SIGPIPE);
        }
        answer
    }

    fn decide(&self, domain: &DomainRef<'_>, call: &Syscall) -> Answer {
        if let Some(callback) = &self.policy.callback {
            let request = Request {
                number: call.number,
                name: trace::name(call.number),
                args: call.args,
                domain: *domain,
            };
            match callback(&request) {
                Decision::Policy => {}
                Decision::Deny(errno) => return Answer::Return(-i64::from(errno.clamp(1, 4095))),
                Decision::Return(value) => return Answer::Return(value),
            }
        }
        let dispatch = || calls::dispatch(self, domain, Memory(*domain), call);
        match if self.file_limit {
            sys::quietly(dispatch)
        } else {
            dispatch()
        } {
            Ok(Reply::Value(value)) => Answer::Return(value),
            Ok(Reply::End(answer)) => answer,
            Err(errno) => {
                let limit = self.table.limit();
                if errno == libc::EMFILE && self.table.open() >= limit {
                    domain.limit_reached(&LimitHit::Descriptors { limit: limit as u64 });
                }
                Answer::Return(-i64::from(errno))
            }
        }
    }
}

impl Hook for Monitor {
    fn syscall(&self, domain: &DomainRef<'_>, call: &Syscall) -> Answer {
        if !self.file_limit
            && self.policy.callback.is_none()
            && self.policy.trace.is_none()
            && let Some(result) = calls::files::fast(&self.table, Memory(*domain), call)
        {
            return self.unread(
                call,
                Answer::Return(result.unwrap_or_else(|errno| -i64::from(errno))),
            );
        }
        let Some(print) = &self.policy.trace else {
            return self.unread(call, self.decide(domain, call));
        };
        let begun = trace::Begun::new(Memory(*domain), call);
        let answer = self.decide(domain, call);
        print(&begun.end(Memory(*domain), call, &answer));
        self.unread(call, answer)
    }

    fn reset(&self) {
        self.table.clear();
        self.threads.forget();
        self.ignores_pipe.store(false, Ordering::Relaxed);
        *self.umask.lock().unwrap_or_else(PoisonError::into_inner) = 0o022;
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = self.tree.start();
        self.open_streams();
    }

    fn holds(&self) -> Option<String> {
        if self.table.more_than_streams() {
            return Some("open descriptors, or has read from standard input".into());
        }
        let directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if *directory != self.tree.start() {
            return Some("changed its directory".into());
        }
        let umask = *self.umask.lock().unwrap_or_else(PoisonError::into_inner);
        (umask != 0o022).then(|| "changed its umask".into())
    }

    fn descriptors(&self) -> u64 {
        self.table.open() as u64
    }
}
