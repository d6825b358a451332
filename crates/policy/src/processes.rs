//! The processes of a program: the one that the host started, and those that it has made by `fork`.
//!
//! Each is a copy of the host's process with one thread, which goes on with the call in progress and never comes back into the host's
//! code: it ends where the call ends. None outlives the one that made it.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys::Outcome;
use crate::sys::process::{self, Ended, Words};
use crate::table::Held;

/// The number of the process that the host started.
const FIRST: u32 = 1;

/// Words that all processes of a program have: how many there are besides the first, the last number given, and bytes on disk.
const LIVE: usize = 0;
const LAST: usize = 1;
pub(crate) const DISK: usize = 2;

/// A process that this one has made and not waited for.
#[derive(Debug)]
struct Child {
    /// As the domain knows it.
    number: u32,
    /// As the host knows it.
    host: i32,
    /// Can be read from once it has ended.
    handle: Held,
}

/// What one process knows of itself and of those that it has made.
#[derive(Debug)]
pub(crate) struct Processes {
    /// None is granted without.
    shared: Option<Arc<Words>>,
    limit: u64,
    own: AtomicU32,
    parent: AtomicU32,
    /// A program runs in the domain: a process has an end of its own.
    program: AtomicBool,
    children: Mutex<Vec<Child>>,
}

impl Processes {
    /// For a program that may have so many besides its first.
    pub(crate) fn new(limit: usize) -> Outcome<Processes> {
        let shared = match limit {
            0 => None,
            _ => {
                let words = Words::new()?;
                words.get(LAST).store(FIRST.into(), Ordering::Relaxed);
                Some(Arc::new(words))
            }
        };
        Ok(Processes {
            shared,
            limit: limit as u64,
            own: FIRST.into(),
            parent: 0.into(),
            program: false.into(),
            children: Mutex::default(),
        })
    }

    fn children(&self) -> MutexGuard<'_, Vec<Child>> {
        self.children.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any are granted.
    pub(crate) fn granted(&self) -> bool {
        self.shared.is_some()
    }

    /// The words that all of them have, if any are granted.
    pub(crate) fn shared(&self) -> Option<Arc<Words>> {
        self.shared.clone()
    }

    /// This process's number.
    pub(crate) fn own(&self) -> u32 {
        self.own.load(Ordering::Relaxed)
    }

    /// The number of the one that made it; 0 for the first.
    pub(crate) fn parent(&self) -> u32 {
        self.parent.load(Ordering::Relaxed)
    }

    /// Whether this is not the process that the host started.
    pub(crate) fn is_child(&self) -> bool {
        self.own() != FIRST
    }

    /// A program begins.
    pub(crate) fn begin(&self) {
        self.program.store(true, Ordering::Relaxed);
    }

    /// Makes one by `fork`: its number, or 0 in the new one.
    pub(crate) fn make(&self, fork: impl FnOnce() -> Outcome<i32>) -> Outcome {
        let Some(shared) = &self.shared else {
            return Err(libc::EAGAIN);
        };
        // Of a library's function nobody knows where its process would end.
        if !self.program.load(Ordering::Relaxed) {
            return Err(libc::EPERM);
        }
        let one_more = |live: u64| (live < self.limit).then_some(live + 1);
        shared
            .get(LIVE)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .map_err(|_| libc::EAGAIN)?;
        // As a `pid_t`; whoever makes so many meets old numbers.
        let number = (shared.get(LAST).fetch_add(1, Ordering::Relaxed) as u32 % (1 << 30)) + 1;
        let maker = process::own();
        // Not to be copied while it is locked.
        let mut children = self.children();
        let made = fork().inspect_err(|_| self.forget())?;
        if made == 0 {
            process::begin(maker);
            // They are its parent's to wait for.
            children.clear();
            self.parent.store(self.own(), Ordering::Relaxed);
            self.own.store(number, Ordering::Relaxed);
            return Ok(0);
        }
        match process::handle(made).and_then(Held::new) {
            Ok(handle) => children.push(Child {
                number,
                host: made,
                handle,
            }),
            Err(errno) => {
                process::kill(made);
                self.forget();
                return Err(errno);
            }
        }
        Ok(number.into())
    }

    /// The ended process of this number, or any, which is forgotten: its number and how it ended. `None` while it runs.
    pub(crate) fn ended(&self, number: Option<u32>) -> Outcome<Option<(u32, Ended)>> {
        let mut children = self.children();
        let mut any = false;
        for (at, child) in children.iter().enumerate() {
            if number.is_some_and(|n| n != child.number) {
                continue;
            }
            any = true;
            if let Some(ended) = process::ended(child.host)? {
                let child = children.remove(at);
                self.forget();
                return Ok(Some((child.number, ended)));
            }
        }
        if any { Ok(None) } else { Err(libc::ECHILD) }
    }

    fn forget(&self) {
        if let Some(shared) = &self.shared {
            shared.get(LIVE).fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// What to poll to learn that one of them has ended.
    pub(crate) fn handles(&self) -> Vec<libc::pollfd> {
        let poll = |child: &Child| libc::pollfd {
            // Not looked at where the host has closed it.
            fd: child.handle.fd().map_or(-1, |fd| fd.as_raw_fd()),
            events: libc::POLLIN,
            revents: 0,
        };
        self.children().iter().map(poll).collect()
    }

    /// Sends one of them a signal.
    pub(crate) fn signal(&self, number: u32, signal: i32) -> Outcome {
        match self.children().iter().find(|child| child.number == number) {
            Some(child) => process::signal(child.handle.fd()?, signal),
            None => Err(libc::ESRCH),
        }
    }

    /// How many this process has made that nobody has waited for.
    pub(crate) fn count(&self) -> usize {
        self.children().len()
    }

    /// Ends all that this process has made. A program runs no more.
    pub(crate) fn stop(&self) {
        self.program.store(false, Ordering::Relaxed);
        for child in self.children().drain(..) {
            process::kill(child.host);
            self.forget();
        }
    }
}
