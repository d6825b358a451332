//! What a host grants a domain, and why a grant cannot be put into force.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringfence_core::Rights;

use crate::captured::Captured;
use crate::text::Name;

/// Where a standard stream goes.
#[derive(Clone, Debug, Default)]
pub enum Stream {
    /// The descriptor is not open: calls on it give `EBADF`.
    #[default]
    Closed,
    /// Reads end at once, writes vanish.
    Null,
    /// The host's own stream of that number, without a position, whatever it is.
    Inherit,
    /// The host's own stream of that number. Where it is a file, it is one of the domain's too: with its position, which the domain
    /// and the host share, its size and times, locks and maps. For hosts like `ringfence run --native`, which are there for a program.
    Positioned,
    /// Standard output or error: kept for the host.
    Capture(Captured),
    /// Standard input: these bytes.
    Bytes(Vec<u8>),
}

/// Why a policy cannot be put into force.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A directory that cannot be opened.
    #[error("directory {}: {source}", Name(path))]
    Directory {
        /// Its host name.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// What the processes of a program share cannot be had.
    #[error("the memory that a program's processes share: {0}")]
    Processes(std::io::Error),
    /// A directory of a file system that is a door to the kernel.
    #[error(
        "directory {}: files of procfs, sysfs and their like are never granted",
        Name(path)
    )]
    KernelFiles {
        /// Its host name.
        path: PathBuf,
    },
    /// A directory for reading only that lies in one for writing.
    #[error(
        "directory {} (as {guest:?}): granted for reading only, but it lies in {} (as {around_guest:?}), which is granted for \
         writing, and could be written under that name; grant parts of the latter for writing instead",
        Name(path),
        Name(around)
    )]
    WritableAround {
        /// The host name of the directory for reading.
        path: PathBuf,
        /// Its guest name.
        guest: String,
        /// The host name of the one for writing.
        around: PathBuf,
        /// Its guest name.
        around_guest: String,
    },
    /// One directory under two rights.
    #[error(
        "directory {} (as {guest:?}): granted for reading only, but it is the same directory as {} (as {writable_guest:?}), which \
         is granted for writing; grant it once",
        Name(path),
        Name(writable)
    )]
    TwoRights {
        /// The host name of the grant for reading.
        path: PathBuf,
        /// Its guest name.
        guest: String,
        /// The host name of the grant for writing.
        writable: PathBuf,
        /// Its guest name.
        writable_guest: String,
    },
    /// A guest name that is not absolute.
    #[error("guest name {name:?} does not start with '/'")]
    GuestName {
        /// The name.
        name: String,
    },
    /// A NUL inside an argument or an environment string.
    #[error("{what} contains a NUL byte")]
    Nul {
        /// Which string.
        what: String,
    },
}

/// A system call, as a host's callback sees it before anything is decided.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// Its number.
    pub number: u64,
    /// Its name, if it has one that the monitor knows.
    pub name: Option<&'static str>,
    /// The arguments. Pointers are the domain's: use them through `domain` only.
    pub args: [u64; 6],
    /// The calling domain.
    pub domain: ringfence_core::DomainRef<'a>,
}

/// A host's answer to a [`Request`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The policy decides.
    Policy,
    /// Denied with this errno.
    Deny(i32),
    /// The host has done it; the call returns this.
    Return(i64),
}

pub(crate) type Callback = dyn Fn(&Request<'_>) -> Decision + Send + Sync;
pub(crate) type Printer = dyn Fn(&str) + Send + Sync;

/// What a domain is granted. A new policy grants nothing but memory within the domain's limit, and the end.
#[derive(Clone)]
pub struct Policy {
    pub(crate) directories: Vec<(PathBuf, String, Rights)>,
    pub(crate) cwd: Option<String>,
    pub(crate) streams: [Stream; 3],
    pub(crate) args: Vec<String>,
    pub(crate) environment: Vec<(String, String)>,
    pub(crate) clocks: bool,
    pub(crate) randomness: bool,
    pub(crate) descriptors: usize,
    pub(crate) threads: usize,
    pub(crate) processes: usize,
    pub(crate) symlinks: bool,
    pub(crate) broken_pipes_end: bool,
    pub(crate) capture_limit: usize,
    pub(crate) disk_limit: u64,
    pub(crate) connect: Vec<SocketAddr>,
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) callback: Option<Arc<Callback>>,
    pub(crate) trace: Option<Arc<Printer>>,
}

impl Default for Policy {
    fn default() -> Self {
        Policy::new()
    }
}

impl std::fmt::Debug for Policy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Policy")
            .field("directories", &self.directories)
            .field("clocks", &self.clocks)
            .field("randomness", &self.randomness)
            .field("connect", &self.connect)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

impl Policy {
    /// Grants nothing.
    #[must_use]
    pub fn new() -> Policy {
        Policy {
            directories: Vec::new(),
            cwd: None,
            streams: [Stream::Closed, Stream::Closed, Stream::Closed],
            args: Vec::new(),
            environment: Vec::new(),
            clocks: false,
            randomness: false,
            descriptors: 64,
            threads: 0,
            processes: 0,
            symlinks: false,
            broken_pipes_end: false,
            capture_limit: 64 << 20,
            disk_limit: 1 << 30,
            connect: Vec::new(),
            listen: Vec::new(),
            callback: None,
            trace: None,
        }
    }

    /// Grants a host directory and what is below it, under the absolute name `guest`. The first one is where programs
    /// start, unless [`Policy::cwd`] names another. [`Rights::Read`]: files may be read and directories listed. [`Rights::Write`]: they may also be written, made,
    /// renamed and removed; device nodes cannot be made, and symbolic links by [`Policy::symlinks`] only. [`Rights::None`] grants nothing.
    #[must_use]
    pub fn dir(mut self, host: impl AsRef<Path>, guest: &str, rights: Rights) -> Policy {
        if rights != Rights::None {
            self.directories
                .push((host.as_ref().to_owned(), guest.to_owned(), rights));
        }
        self
    }

    /// Where programs start, an absolute guest name, in place of the first directory. It need not be there: then a program starts in a
    /// directory that is gone.
    #[must_use]
    pub fn cwd(mut self, guest: &str) -> Policy {
        self.cwd = Some(guest.to_owned());
        self
    }

    /// Standard input.
    #[must_use]
    pub fn stdin(mut self, stream: Stream) -> Policy {
        self.streams[0] = stream;
        self
    }

    /// Standard output.
    #[must_use]
    pub fn stdout(mut self, stream: Stream) -> Policy {
        self.streams[1] = stream;
        self
    }

    /// Standard error.
    #[must_use]
    pub fn stderr(mut self, stream: Stream) -> Policy {
        self.streams[2] = stream;
        self
    }

    /// All three streams are the host's own.
    #[must_use]
    pub fn inherit_streams(self) -> Policy {
        self.stdin(Stream::Inherit)
            .stdout(Stream::Inherit)
            .stderr(Stream::Inherit)
    }

    /// A program's arguments, its name first.
    #[must_use]
    pub fn args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Policy {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// An environment variable. The last value of a name is the one that counts.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Policy {
        self.environment.retain(|(n, _)| n != name);
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Whether the time can be asked for and waited for.
    #[must_use]
    pub fn clocks(mut self, granted: bool) -> Policy {
        self.clocks = granted;
        self
    }

    /// Whether the kernel's random numbers can be had.
    #[must_use]
    pub fn randomness(mut self, granted: bool) -> Policy {
        self.randomness = granted;
        self
    }

    /// How many descriptors the domain may have open. The default is 64.
    #[must_use]
    pub fn descriptors(mut self, limit: usize) -> Policy {
        self.descriptors = limit.clamp(3, 1 << 16);
        self
    }

    /// How many threads of its own the domain may have at a time (`pthread_create`, `std::thread`, `thrd_create`), none unless
    /// granted. They are threads of the host's process, with a lane each, and are calls into the domain like others: a fault
    /// in one ends all, the domain's limit of time holds for each, and the domain cannot be reset while one runs. They
    /// are interrupted when a program's `main` has ended ([`program::run`]), and when the domain's last handle is dropped.
    #[must_use]
    pub fn threads(mut self, limit: usize) -> Policy {
        self.threads = limit;
        self
    }

    /// How many processes a program may have besides its first at a time (`fork`), none unless granted; for [`program::run`] on the back end
    /// `window`. Each is a copy of the host's process with one thread: it goes on with the program's call, under the same grants and
    /// with limits of its own, and ends where the program ends, by the status or the signal that its parent waits for. It never
    /// comes back into the host's code, runs none of its `atexit`, and dies with the process that made it; what is left when the program's
    /// `main` has ended is ended. Other programs are not started (`execve` is `EACCES`).
    ///
    /// A host that has threads, or waits for any child of its own (`waitpid(-1)`), takes the program's children for its own, and what its
    /// threads had locked stays locked in them: this is for hosts like `ringfence run`, which run a program and nothing else.
    ///
    /// [`program::run`]: crate::program::run
    #[must_use]
    pub fn processes(mut self, limit: usize) -> Policy {
        self.processes = limit;
        self
    }

    /// Whether symbolic links can be made where writing is granted. They lead the domain nowhere that it could not go by itself, but
    /// everybody else who follows one goes where the domain says, with rights of their own: a host or a program that opens files in such a
    /// directory by name must not follow links there (`O_NOFOLLOW`, `RESOLVE_BENEATH`). Not granted unless asked for.
    #[must_use]
    pub fn symlinks(mut self, granted: bool) -> Policy {
        self.symlinks = granted;
        self
    }

    /// Whether a write that nobody will read ends the program, with exit status 141, as `SIGPIPE` does where there are signals: unless
    /// the program has asked to ignore that signal. Otherwise it is an error like others, `EPIPE`.
    #[must_use]
    pub fn broken_pipes_end(mut self, end: bool) -> Policy {
        self.broken_pipes_end = end;
        self
    }

    /// How many bytes a captured stream may hold before writes fail with `ENOSPC`. The default is 64 MiB.
    #[must_use]
    pub fn capture_limit(mut self, bytes: usize) -> Policy {
        self.capture_limit = bytes;
        self
    }

    /// How many bytes the domain may put on disk, from its start to its end: written to files (also to an inherited stream that is
    /// a file), allocated for them, or jumped over when a file is made longer; 4096 for each name that it makes, and for each
    /// write that does not begin where the last one through that descriptor ended. Removing and shortening files gives nothing
    /// back, nor does a reset. Beyond it calls fail with `EDQUOT`, after the host was asked (`LimitHit::Disk`). The default is
    /// 1 GiB; `u64::MAX` is no limit.
    #[must_use]
    pub fn disk_limit(mut self, bytes: u64) -> Policy {
        self.disk_limit = bytes;
        self
    }

    /// Lets the domain connect to this address, by TCP or UDP.
    #[must_use]
    pub fn connect(mut self, address: SocketAddr) -> Policy {
        self.connect.push(address);
        self
    }

    /// Lets the domain wait for connections at this address of the host's, by TCP: `bind`, `listen` and `accept`. Port 0 is any that
    /// is free. Whoever can reach the address then talks to the domain.
    #[must_use]
    pub fn listen(mut self, address: SocketAddr) -> Policy {
        self.listen.push(address);
        self
    }

    /// Asks the host about each call first.
    #[must_use]
    pub fn callback(mut self, f: impl Fn(&Request<'_>) -> Decision + Send + Sync + 'static) -> Policy {
        self.callback = Some(Arc::new(f));
        self
    }

    /// Prints each call, with its result, as strace does.
    #[must_use]
    pub fn trace(mut self, print: impl Fn(&str) + Send + Sync + 'static) -> Policy {
        self.trace = Some(Arc::new(print));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_without_rights_is_not_granted() {
        let nowhere = |rights| Policy::new().dir("/nowhere/at/all", "/data", rights).start();
        assert!(matches!(
            nowhere(Rights::Read),
            Err(PolicyError::Directory { .. })
        ));
        assert!(nowhere(Rights::None).is_ok(), "nothing is opened");
    }
}
