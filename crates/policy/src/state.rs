//! What the monitor knows about its domain: the grants, and what the domain has made of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::Disk;
use crate::grant::{Policy, PolicyError, Stream};
use crate::processes::Processes;
use crate::sys;
use crate::table::{File, Kind, Table};
use crate::threads::Threads;
use crate::tree::{Mount, Tree, absolute};

/// A domain's grants and what it has open.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) policy: Policy,
    pub(crate) tree: Tree,
    pub(crate) table: Table,
    /// Where the program starts, as an absolute guest name.
    start: Vec<u8>,
    /// Where relative paths start, as an absolute guest name.
    pub(crate) directory: Mutex<Vec<u8>>,
    pub(crate) umask: Mutex<u32>,
    pub(crate) threads: Arc<Threads>,
    pub(crate) processes: Processes,
    pub(crate) disk: Disk,
    /// The program ignores `SIGPIPE`.
    pub(crate) ignores_pipe: AtomicBool,
    /// The host has a limit on the size of files: writes have to be kept from signalling.
    pub(crate) file_limit: bool,
}

impl State {
    pub(crate) fn new(policy: Policy) -> Result<State, PolicyError> {
        let mut tree = Tree::default();
        for (host, guest, rights) in &policy.directories {
            tree.add(Mount::open(host, guest, *rights)?);
        }
        let named = |n: usize| (policy.directories[n].0.clone(), policy.directories[n].1.clone());
        match tree.writable_too() {
            Ok(None) => {}
            Ok(Some((reading, writing))) => {
                let ((path, guest), (writable, writable_guest)) = (named(reading), named(writing));
                return Err(if tree.same(reading, writing) {
                    PolicyError::TwoRights {
                        path,
                        guest,
                        writable,
                        writable_guest,
                    }
                } else {
                    PolicyError::WritableAround {
                        path,
                        guest,
                        around: writable,
                        around_guest: writable_guest,
                    }
                });
            }
            Err(errno) => {
                return Err(PolicyError::Directory {
                    path: named(0).0,
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
        let start = match &policy.cwd {
            Some(name) if !name.starts_with('/') => {
                return Err(PolicyError::GuestName { name: name.clone() });
            }
            Some(name) if name.contains('\0') => {
                return Err(PolicyError::Nul {
                    what: format!("start directory {name:?}"),
                });
            }
            Some(name) => absolute(b"/", name.as_bytes()),
            None => tree.start(),
        };
        let processes = Processes::new(policy.processes)
            .map_err(|errno| PolicyError::Processes(std::io::Error::from_raw_os_error(errno)))?;
        let state = State {
            directory: Mutex::new(start.clone()),
            start,
            tree,
            table: Table::new(policy.descriptors),
            umask: Mutex::new(0o022),
            threads: Arc::default(),
            disk: Disk::new(policy.disk_limit, processes.shared()),
            processes,
            ignores_pipe: AtomicBool::new(false),
            file_limit: sys::file_size_limited(),
            policy,
        };
        state.open_streams();
        Ok(state)
    }

    fn open_streams(&self) {
        for (number, stream) in self.policy.streams.iter().enumerate() {
            let kind = match stream {
                Stream::Closed => continue,
                Stream::Null => Kind::Null,
                Stream::Inherit | Stream::Positioned => {
                    let number = number as i32;
                    if let (Stream::Positioned, Some(file)) = (stream, File::again(sys::standard(number))) {
                        let _ = self.table.put(Arc::new(Kind::File(file)), number as u64, false);
                        continue;
                    }
                    Kind::Standard {
                        number,
                        waits: sys::waits(sys::standard(number)),
                        disk: sys::is_file(sys::standard(number)),
                    }
                }
                Stream::Capture(buffer) => Kind::Capture(buffer.clone(), self.policy.capture_limit),
                Stream::Bytes(bytes) => Kind::Input(Arc::new(bytes.clone()), Mutex::new(0)),
            };
            // Three always fit.
            let _ = self.table.put(Arc::new(kind), number as u64, false);
        }
    }

    /// As at the start.
    pub(crate) fn reset(&self) {
        self.table.clear();
        self.threads.forget();
        self.processes.stop();
        self.ignores_pipe.store(false, Ordering::Relaxed);
        *self.umask.lock().unwrap_or_else(PoisonError::into_inner) = 0o022;
        *self.directory.lock().unwrap_or_else(PoisonError::into_inner) = self.start.clone();
        self.open_streams();
    }

    /// What a reset would take away.
    pub(crate) fn holds(&self) -> Option<String> {
        if self.table.more_than_streams() {
            return Some("open descriptors, or has read from standard input".into());
        }
        if self.processes.count() > 0 {
            return Some("processes that it has made".into());
        }
        let directory = self.directory.lock().unwrap_or_else(PoisonError::into_inner);
        if *directory != self.start {
            return Some("changed its directory".into());
        }
        let umask = *self.umask.lock().unwrap_or_else(PoisonError::into_inner);
        (umask != 0o022).then(|| "changed its umask".into())
    }
}
