//! The processes of a program: the one that the host started, and those that it has made by `fork`.
//!
//! Each is a copy of the host's process with one thread, which goes on with the call in progress and never comes back into the host's
//! code: it ends where the call ends. None outlives the one that made it.

use std::collections::HashSet;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::sys::Outcome;
use crate::sys::process::{self, Ended, Words};
use crate::table::Held;

/// The number of the process that the host started.
const FIRST: u32 = 1;

/// The group and the session that the first process was started in; no process has this number.
const OUTSIDE: u32 = 2;

/// Most processes besides the first, whatever was granted.
const MOST: usize = 4096;

/// Words that all processes of a program have: the last number given, bytes on disk, and two for each process besides the first. These say
/// its number and its parent's (0: nobody's), and its group and session. They are numbers of the program's own, which nothing of the host's
/// is found by: a signal goes by the handle of a process that one has made.
const LAST: usize = 0;
pub(crate) const DISK: usize = 1;
const PLACES: usize = 2;

/// The two halves of such a word.
fn pair(one: u32, other: u32) -> u64 {
    u64::from(one) | u64::from(other) << 32
}

fn halves(word: u64) -> (u32, u32) {
    (word as u32, (word >> 32) as u32)
}

/// Which processes are meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whom {
    /// All that this one has made.
    Any,
    /// The one of this number.
    One(u32),
    /// Those of this group.
    Group(u32),
}

/// A process that this one has made and not waited for.
#[derive(Debug)]
struct Child {
    /// As the domain knows it.
    number: u32,
    /// As the host knows it.
    host: i32,
    /// Can be read from once it has ended.
    handle: Held,
    /// Its place in the words that are shared.
    place: usize,
}

/// What one process knows of itself and of those that it has made.
#[derive(Debug)]
pub(crate) struct Processes {
    /// None is granted without.
    shared: Option<Arc<Words>>,
    limit: usize,
    own: AtomicU32,
    /// This one's place in the words that are shared; the first has none.
    place: AtomicUsize,
    parent: AtomicU32,
    /// A program runs in the domain: a process has an end of its own.
    program: AtomicBool,
    children: Mutex<Vec<Child>>,
}

impl Processes {
    /// For a program that may have so many besides its first.
    pub(crate) fn new(limit: usize) -> Outcome<Processes> {
        let limit = limit.min(MOST);
        let shared = match limit {
            0 => None,
            _ => {
                let words = Words::new(PLACES + 2 * limit)?;
                words.get(LAST).store(OUTSIDE.into(), Ordering::Relaxed);
                Some(Arc::new(words))
            }
        };
        Ok(Processes {
            shared,
            limit,
            own: FIRST.into(),
            place: 0.into(),
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
        // As a `pid_t`; whoever makes so many meets old numbers.
        let number = (shared.get(LAST).fetch_add(1, Ordering::Relaxed) as u32 % (1 << 30)) + 1;
        let place = self.take_place(shared, number).ok_or(libc::EAGAIN)?;
        let maker = process::own();
        // Not to be copied while it is locked.
        let mut children = self.children();
        let made = fork().inspect_err(|_| self.forget(place))?;
        if made == 0 {
            process::begin(maker);
            // They are its parent's to wait for.
            children.clear();
            self.parent.store(self.own(), Ordering::Relaxed);
            self.own.store(number, Ordering::Relaxed);
            self.place.store(place, Ordering::Relaxed);
            return Ok(0);
        }
        match process::handle(made).and_then(Held::new) {
            Ok(handle) => children.push(Child {
                number,
                host: made,
                handle,
                place,
            }),
            Err(errno) => {
                process::kill(made);
                self.forget(place);
                return Err(errno);
            }
        }
        Ok(number.into())
    }

    /// A place for a new process of this one's, in its group and session. `None` if all that are granted are taken.
    fn take_place(&self, shared: &Words, number: u32) -> Option<usize> {
        let (group, session) = self.membership();
        let take = || {
            (0..self.limit).map(|n| PLACES + 2 * n).find(|&place| {
                let mine = pair(number, self.own());
                let free = shared.get(place);
                free.compare_exchange(0, mine, Ordering::Relaxed, Ordering::Relaxed)
                    .is_ok()
            })
        };
        let place = take().or_else(|| {
            self.sweep(shared);
            take()
        })?;
        shared
            .get(place + 1)
            .store(pair(group, session), Ordering::Relaxed);
        Some(place)
    }

    /// Frees the places of processes whose makers are gone, and who have gone with them.
    fn sweep(&self, shared: &Words) {
        loop {
            let alive: Vec<_> = self.members(shared).collect();
            let numbers: HashSet<u32> = alive.iter().map(|&(_, (number, _))| number).collect();
            let mut gone = alive
                .iter()
                .filter(|(_, (_, maker))| *maker != FIRST && !numbers.contains(maker))
                .peekable();
            if gone.peek().is_none() {
                return;
            }
            for &(place, (number, maker)) in gone {
                let word = shared.get(place);
                let _ = word.compare_exchange(pair(number, maker), 0, Ordering::Relaxed, Ordering::Relaxed);
            }
        }
    }

    /// All processes besides the first: the place of each, its number and its maker's.
    fn members(&self, shared: &Words) -> impl Iterator<Item = (usize, (u32, u32))> {
        let places = (0..self.limit).map(|n| PLACES + 2 * n);
        places
            .map(|place| (place, halves(shared.get(place).load(Ordering::Relaxed))))
            .filter(|&(_, (number, _))| number != 0)
    }

    /// The group and the session of who has this place.
    fn membership_at(&self, place: usize) -> (u32, u32) {
        match &self.shared {
            Some(shared) if place != 0 => halves(shared.get(place + 1).load(Ordering::Relaxed)),
            _ => (OUTSIDE, OUTSIDE),
        }
    }

    /// This process's group and session.
    pub(crate) fn membership(&self) -> (u32, u32) {
        self.membership_at(self.place.load(Ordering::Relaxed))
    }

    /// The group and session of the process of this number, or of this one (0).
    pub(crate) fn membership_of(&self, number: u32) -> Outcome<(u32, u32)> {
        if number == 0 || number == self.own() {
            return Ok(self.membership());
        }
        if number == FIRST {
            return Ok((OUTSIDE, OUTSIDE));
        }
        let shared = self.shared.as_ref().ok_or(libc::ESRCH)?;
        let found = self.members(shared).find(|&(_, (other, _))| other == number);
        found
            .map(|(place, _)| self.membership_at(place))
            .ok_or(libc::ESRCH)
    }

    /// Puts a process, this one (0) or one that it has made, into a group of its session: one that is there, or a new one of the
    /// process's own number (0).
    pub(crate) fn set_group(&self, number: u32, group: u32) -> Outcome {
        let own = number == 0 || number == self.own();
        let (number, place) = if own {
            (self.own(), self.place.load(Ordering::Relaxed))
        } else {
            let children = self.children();
            let child = children.iter().find(|child| child.number == number);
            child.map(|child| (number, child.place)).ok_or(libc::ESRCH)?
        };
        let group = if group == 0 { number } else { group };
        let (_, session) = self.membership_at(place);
        // The first one stays where its host started it, and who leads a session leads a group.
        let (Some(shared), true) = (
            &self.shared,
            place != 0 && session != number && session == self.membership().1,
        ) else {
            return Err(libc::EPERM);
        };
        let there = |group| {
            (group, session) == (OUTSIDE, OUTSIDE)
                || self
                    .members(shared)
                    .any(|(place, _)| self.membership_at(place) == (group, session))
        };
        if group != number && !there(group) {
            return Err(libc::EPERM);
        }
        shared
            .get(place + 1)
            .store(pair(group, session), Ordering::Relaxed);
        Ok(0)
    }

    /// Makes this process lead a session and a group of its own: its number.
    pub(crate) fn new_session(&self) -> Outcome {
        let (own, place) = (self.own(), self.place.load(Ordering::Relaxed));
        match &self.shared {
            Some(shared) if place != 0 && !self.is_group(own) => {
                shared.get(place + 1).store(pair(own, own), Ordering::Relaxed);
                Ok(own.into())
            }
            _ => Err(libc::EPERM),
        }
    }

    /// Whether any process is in this group.
    fn is_group(&self, group: u32) -> bool {
        let within = |shared: &Arc<Words>| {
            self.members(shared)
                .any(|(place, _)| self.membership_at(place).0 == group)
        };
        group == OUTSIDE || self.shared.as_ref().is_some_and(within)
    }

    /// Whether a process that this one has made is meant.
    fn is_meant(&self, child: &Child, whom: Whom) -> bool {
        match whom {
            Whom::Any => true,
            Whom::One(number) => child.number == number,
            Whom::Group(group) => self.membership_at(child.place).0 == group,
        }
    }

    /// An ended process of these, which is forgotten: its number and how it ended. `None` while all run.
    pub(crate) fn ended(&self, whom: Whom) -> Outcome<Option<(u32, Ended)>> {
        let mut children = self.children();
        let mut any = false;
        for (at, child) in children.iter().enumerate() {
            if !self.is_meant(child, whom) {
                continue;
            }
            any = true;
            if let Some(ended) = process::ended(child.host)? {
                let child = children.remove(at);
                self.forget(child.place);
                return Ok(Some((child.number, ended)));
            }
        }
        if any { Ok(None) } else { Err(libc::ECHILD) }
    }

    fn forget(&self, place: usize) {
        if let Some(shared) = &self.shared {
            shared.get(place).store(0, Ordering::Relaxed);
            self.sweep(shared);
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

    /// Sends those that this process has made a signal: `ESRCH` if there is none, `EPERM` if only others are there.
    pub(crate) fn signal(&self, whom: Whom, signal: i32) -> Outcome {
        let children = self.children();
        let mut meant = children
            .iter()
            .filter(|child| self.is_meant(child, whom))
            .peekable();
        if meant.peek().is_none() {
            return match whom {
                Whom::Group(group) if self.is_group(group) => Err(libc::EPERM),
                _ => Err(libc::ESRCH),
            };
        }
        for child in meant {
            process::signal(child.handle.fd()?, signal)?;
        }
        Ok(0)
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
            self.forget(child.place);
        }
    }
}
