//! Why a process cannot host domains.

use std::io;

/// Why this process cannot host domains at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The kernel or the processor does not offer `wrgsbase` to programs.
    #[error(
        "this system does not let programs set the gs base (needs Linux 5.9 and a processor with FSGSBASE)"
    )]
    NoFsgsbase,
    /// Every readable page would be executable.
    #[error(
        "the process runs with READ_IMPLIES_EXEC; link the host program without an executable stack, \
         or clear the flag with setarch"
    )]
    ReadImpliesExec,
    /// The processor checks return addresses against a second stack, which two stacks cannot live with.
    #[error(
        "the process runs with a user shadow stack; start it with GLIBC_TUNABLES=glibc.cpu.x86_shstk=off"
    )]
    ShadowStack,
    /// Another copy of the runtime is at work in this process: two would write `gs` without knowing of each other.
    #[error(
        "this process has another copy of Ringfence, version {version}, in {file}: a process can have one; \
         link all that use it with the one shared library"
    )]
    SecondRuntime {
        /// The other copy's version.
        version: String,
        /// The file that it is part of: a library, or the program.
        file: String,
    },
    /// The system has no memory for the runtime's records.
    #[error("the system has no memory left for the runtime's records")]
    NoMemory,
    /// A descriptor of the runtime's is closed, or another file has got its number.
    #[error(
        "a descriptor of the runtime's was closed by the host (closefrom, close_range, a loop over all numbers): \
         a program that closes all descriptors does so before it loads modules"
    )]
    Descriptor,
    /// Nowhere to note for other copies of the runtime that this one is at work.
    #[error("all places are taken at which copies of Ringfence in one process find each other")]
    NoMark,
    /// The runtime needs a memory file, and the process may not have one so large.
    #[error(
        "a file of {wanted} bytes is needed, in memory, and the process may have {limit} (RLIMIT_FSIZE, ulimit -f)"
    )]
    FileSize {
        /// Bytes needed.
        wanted: u64,
        /// The limit.
        limit: u64,
    },
    /// The process locks all its memory (`mlockall` with `MCL_FUTURE`), and may not lock a window.
    #[error(
        "the process locks its memory, and may not lock so much as a window takes: raise RLIMIT_MEMLOCK (ulimit -l unlimited), \
         or do not lock future memory"
    )]
    Locked,
    /// The signal cannot be the watchdog's.
    #[error("signal {signal} cannot be the one that ends calls: {reason}")]
    TickSignal {
        /// Its number.
        signal: i32,
        /// Why not.
        reason: &'static str,
    },
    /// A system call that the runtime cannot do without failed.
    #[error("{what}: {source}")]
    Os {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The process is near the system's limit of memory mappings.
    #[error(
        "{used} memory mappings would be in use, and {limit} are allowed for a process; raise the limit \
         (sysctl -w vm.max_map_count=1048576, 5 for each domain and 8 for each thread in it are usual), trim idle domains, or use fewer"
    )]
    Mappings {
        /// Mappings that the runtime has made and an estimate of the host's own.
        used: u64,
        /// `vm.max_map_count`.
        limit: u64,
    },
    /// No room for another window in the address space, or no free domain number.
    #[error("no room for another window: {live} domains are alive")]
    NoWindow {
        /// How many domains there are.
        live: usize,
    },
}

impl HostError {
    /// What the last system call of this thread failed with.
    #[must_use]
    pub fn last(what: &'static str) -> Self {
        HostError::Os {
            what,
            source: io::Error::last_os_error(),
        }
    }
}
