//! Errors of loading, of making domains, of calls and of memory access.

use crate::backend::{Backend, Unsupported};
use crate::fault::Fault;
use crate::host_cause::HostCause;
use std::{fmt, io};

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
         (sysctl -w vm.max_map_count=1048576, 7 for each domain and 8 for each thread in it are usual), trim idle domains, or use fewer"
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

/// Why a file did not become a `Module`.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file is a fenced module, and was to be loaded for the back end `none`.
    #[error("{name}: {}", not_for(Backend::None))]
    Fenced {
        /// The file.
        name: String,
    },
    /// The file cannot be read.
    #[error("{name}: {source}")]
    Read {
        /// The file.
        name: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not a module at all: another format, another processor, no Ringfence note.
    #[error("{name}: not a Ringfence module: {reason}")]
    NotModule {
        /// The file.
        name: String,
        /// What is missing or wrong.
        reason: String,
    },
    /// The file claims to be a module but breaks the format.
    #[error("{name}: malformed module at offset {offset:#x}: {reason}")]
    Malformed {
        /// The file.
        name: String,
        /// Offset in the file, or address in the image, where it goes wrong.
        offset: u64,
        /// What is wrong there.
        reason: String,
    },
    /// The module was built for another version of the interface.
    #[error("{name}: built for ABI version {found}, this runtime speaks {expected}; build it again")]
    Version {
        /// The file.
        name: String,
        /// What the module's note says.
        found: u32,
        /// What this runtime needs.
        expected: u32,
    },
    /// The module was compiled for a processor with more extensions than this one has.
    #[error("{name}: needs processor features that this machine lacks (bits {missing:#x})")]
    Features {
        /// The file.
        name: String,
        /// The missing [`ringfence_isa::window::feature`] bits.
        missing: u32,
    },
    /// An integrity-only module was not expressly allowed.
    #[error(
        "{name}: confines stores only (--isolation=integrity); set LoadOptions::allow_integrity to load it"
    )]
    Integrity {
        /// The file.
        name: String,
    },
    /// The verifier refused the code.
    #[error("{name}: {reason}")]
    Rejected {
        /// The file.
        name: String,
        /// Every rejection, one a line.
        reason: String,
    },
    /// All label identifiers of the process are taken by loaded modules.
    #[error("{name}: needs {wanted} label identifiers, {free} are free; drop modules that are not needed")]
    Identifiers {
        /// The file.
        name: String,
        /// How many the module needs.
        wanted: usize,
        /// How many are left, in one piece.
        free: usize,
    },
    /// The module has more label identifiers than one may take of those that the process has.
    #[error(
        "{name}: needs {wanted} label identifiers, one module may have {limit}; raise LoadOptions::max_labels"
    )]
    Labels {
        /// The file.
        name: String,
        /// How many the module needs.
        wanted: usize,
        /// How many it may have.
        limit: usize,
    },
    /// The file is larger than the host accepts. It was not read.
    #[error("{name}: larger than {limit} bytes; raise LoadOptions::max_file_size")]
    TooLarge {
        /// The file.
        name: String,
        /// How large it may be.
        limit: u64,
    },
    /// What the file says would cost more memory or work than a file of its size may.
    #[error("{name}: loading it {source}")]
    Exceeded {
        /// The file.
        name: String,
        /// Which bound.
        source: crate::work::Exceeded,
    },
    /// The process cannot host modules, or a system call failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// What a domain's option says of a module with the other form of operands.
const THROUGH_R14: &str = "has operands through r14, and the domain takes such through gs only (DomainOptions::addressing); \
                           compile and link it with --addressing=segment ('ringfence verify --addressing segment' tells where)";

/// What a file for another back end has to become.
fn not_for(backend: Backend) -> String {
    match backend {
        Backend::None => "a fenced module, and the back end none runs ordinary shared objects: build one from the same sources with \
                          'cc -shared -fPIC', and load it with LoadOptions::backend set to none"
            .to_owned(),
        other => format!(
            "an ordinary shared object, loaded for the back end none, and the back end {other} runs verified modules: build one \
             from the same sources with 'ringfence cc -shared'"
        ),
    }
}

/// Why a `Domain` was not made, not reset, or has no such entry.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DomainError {
    /// The module's file is none that the back end runs.
    #[error("{module}: {}", not_for(*.backend))]
    NotFor {
        /// The module.
        module: String,
        /// The back end that the domain was to have.
        backend: Backend,
    },
    /// The module goes through `r14`, and [`DomainOptions::addressing`](crate::DomainOptions::addressing) refuses that.
    #[error("{module}: {}", THROUGH_R14)]
    Addressing {
        /// The module.
        module: String,
    },
    /// The domain's process could not be started, or is of no use.
    #[error("the domain's process: {reason}")]
    Worker {
        /// Why, and what helps.
        reason: String,
    },
    /// The system's dynamic linker did not load the shared object.
    #[error("{module}: {reason}")]
    Dlopen {
        /// The shared object.
        module: String,
        /// What the linker said.
        reason: String,
    },
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// No module was given, or more than fit.
    #[error("the modules do not fit into one window: {reason}")]
    Layout {
        /// What does not fit.
        reason: String,
    },
    /// A symbol that nobody defines.
    #[error(
        "{module} needs {symbol}, which nobody gives: name it among the imports, or add a module that exports it"
    )]
    Unresolved {
        /// The module that needs it.
        module: String,
        /// The symbol.
        symbol: String,
    },
    /// More imports than there are stubs.
    #[error("{count} host imports, {limit} fit into one window")]
    TooManyImports {
        /// How many there are.
        count: usize,
        /// How many fit.
        limit: usize,
    },
    /// An option has a value that cannot work.
    #[error("domain option {option}: {reason}")]
    Option {
        /// The option's name.
        option: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// No such export.
    #[error("no export {name:?}; 'ringfence inspect' lists what a module exports")]
    NoExport {
        /// What was asked for.
        name: String,
    },
    /// No module was added under that name.
    #[error("no module was added under the name {name:?}")]
    NoModule {
        /// What was asked for.
        name: String,
    },
    /// The export is not a function whose entry the verifier knows.
    #[error("export {name:?} is not a function that can be called")]
    NotFunction {
        /// What was asked for.
        name: String,
    },
    /// No function starts at the address.
    #[error("no function of the domain starts at {address:#x}")]
    NoEntry {
        /// What was given.
        address: u64,
    },
    /// A link to another domain could not be made.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// The domain could not start from its snapshot.
    #[error(transparent)]
    Snapshot(Box<SnapshotError>),
    /// Something that the domain was made with was revoked or is gone.
    #[error(
        "{import:?}, with which the domain was made, was revoked or is gone: the domain cannot be like new"
    )]
    Spent {
        /// The import.
        import: String,
    },
    /// The domain has faulted as often as it may.
    #[error(
        "the domain has faulted {faults} times, {limit} are allowed; make a new one, or raise DomainOptions::fault_limit"
    )]
    Faults {
        /// How often it faulted.
        faults: u64,
        /// The limit.
        limit: u64,
    },
    /// Calls are in progress; a reset has to wait for them.
    #[error("{lanes} calls are in progress in the domain")]
    Busy {
        /// How many lanes have a call in progress.
        lanes: usize,
    },
    /// A static constructor of the module failed.
    #[error("initialising {module}: {source}")]
    Init {
        /// The module.
        module: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// A destructor of the module failed. Those behind it have not run.
    #[error("{module}: a destructor failed: {source}")]
    Fini {
        /// The module.
        module: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// Not enough memory under the domain's limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// The process cannot host domains, or a system call failed.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Why code was not linked into a living domain, not found, or not unlinked. Nothing has changed then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The domain already has something of that name: an export of its modules, or linked code.
    #[error("the domain already has a {name:?}; unlink it first, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// Nothing was linked under that name.
    #[error("nothing was linked under the name {name:?}")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The verifier refused the code.
    #[error("{name}: {reason}")]
    Rejected {
        /// The name.
        name: String,
        /// Every rejection, one a line.
        reason: String,
    },
    /// There is no code.
    #[error("{name}: there is no code")]
    Empty {
        /// The name.
        name: String,
    },
    /// The code uses registers that the domain's gates do not look after.
    #[error("{name}: uses {what} registers, and the domain was made without them; {remedy}")]
    Registers {
        /// The name.
        name: String,
        /// `vector` or `x87`.
        what: &'static str,
        /// How to make a domain that takes such code.
        remedy: &'static str,
    },
    /// The code needs extensions that this processor lacks.
    #[error("{name}: needs processor features that this machine lacks (bits {missing:#x})")]
    Features {
        /// The name.
        name: String,
        /// The missing [`ringfence_isa::window::feature`] bits.
        missing: u32,
    },
    /// No room for so much code under the domain's limit.
    #[error(
        "{wanted} bytes of code do not fit: the domain's limit is {limit}, {used} are in use; raise DomainOptions::code_limit, or unlink something"
    )]
    Full {
        /// Bytes that the code takes.
        wanted: u32,
        /// Bytes in use, those included that wait for a call in progress to end.
        used: u32,
        /// The limit.
        limit: u32,
    },
    /// The code is in the middle of a call on the calling thread: something below it on the stack returns into it.
    #[error("{name} is on the stack of the calling thread; let it return first")]
    OnStack {
        /// The name.
        name: String,
    },
    /// Other threads are inside the domain and did not leave it in time, so nobody knows whether they are in this code.
    #[error("{name}: {lanes} other threads are inside the domain; try again, or interrupt their calls")]
    Busy {
        /// The name.
        name: String,
        /// How many.
        lanes: usize,
    },
    /// Called from a signal handler that interrupted the runtime.
    #[error("code cannot be linked or unlinked from a signal handler that interrupted the runtime")]
    Handler,
    /// A system call failed, or the process is out of mappings.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Why a module was not added to a living domain, or not removed. Nothing has changed then, unless the variant says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModuleError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The name is taken by a module that was added.
    #[error("the domain already has a module {name:?}; remove it first, or choose another name")]
    Exists {
        /// The name.
        name: String,
    },
    /// Nothing was added under that name.
    #[error("no module was added under the name {name:?}")]
    Unknown {
        /// What was asked for.
        name: String,
    },
    /// The domain has this very module: two copies would have the same label identifiers.
    #[error("{name}: the domain has this module already; load its file once more for a second one")]
    Twice {
        /// The name.
        name: String,
    },
    /// The code uses registers that the domain's gates do not look after.
    #[error("{name}: uses {what} registers, and the domain was made without them; {remedy}")]
    Registers {
        /// The name.
        name: String,
        /// `vector` or `x87`.
        what: &'static str,
        /// How to make a domain that takes such code.
        remedy: &'static str,
    },
    /// The code goes through `r14`, and [`DomainOptions::addressing`](crate::DomainOptions::addressing) refuses that.
    #[error("{name}: {}", THROUGH_R14)]
    Addressing {
        /// The name.
        name: String,
    },
    /// No room for so large an image under the domain's limit, or in its window.
    #[error(
        "{name}: an image of {wanted} bytes does not fit: the domain's limit is {limit}, {used} are in use; raise DomainOptions::module_limit, or remove a module"
    )]
    Full {
        /// The name.
        name: String,
        /// Bytes that the image takes.
        wanted: u64,
        /// Bytes in use, those included that wait for a call in progress to end.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Not enough room in the lanes for its thread-local variables.
    #[error(
        "{name}: {wanted} bytes of thread-local variables, aligned to {align}, do not fit into what lanes keep for modules that are added; set DomainOptions::extensible, or raise thread_local_reserve"
    )]
    ThreadLocal {
        /// The name.
        name: String,
        /// How many bytes.
        wanted: u32,
        /// Their alignment.
        align: u32,
    },
    /// A symbol that nobody gives. Host functions are those that the domain was made with: the ones that its modules need,
    /// or all if [`DomainOptions::extensible`](crate::DomainOptions::extensible) is set.
    #[error("{name}: {source}")]
    Link {
        /// The name.
        name: String,
        /// What is missing.
        source: Box<DomainError>,
    },
    /// Another module was linked against this one.
    #[error("{name} is needed by {by}; remove that first")]
    Needed {
        /// The name.
        name: String,
        /// The name of the other one.
        by: String,
    },
    /// Something on the stack of the calling thread returns into the module.
    #[error("{name} is on the stack of the calling thread; let it return first")]
    OnStack {
        /// The name.
        name: String,
    },
    /// Other threads are inside the domain and did not leave it in time, so nobody knows whether they are in this module. If they
    /// came while its destructors ran, these do not run again at the next try.
    #[error("{name}: {lanes} other threads are inside the domain; try again, or interrupt their calls")]
    Busy {
        /// The name.
        name: String,
        /// How many.
        lanes: usize,
    },
    /// Its constructors or destructors are running.
    #[error("{name} is being added or removed at this moment")]
    Changing {
        /// The name.
        name: String,
    },
    /// A constructor failed. The module is gone again; if the error is a fault, the domain has faulted.
    #[error("initialising {name}: {source}")]
    Init {
        /// The name.
        name: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// A destructor failed. The module is still there, and its destructors that have run do not run again; if the error is a
    /// fault, the domain has faulted, and its reset will take the module away.
    #[error("{name}: a destructor failed: {source}")]
    Fini {
        /// The name.
        name: String,
        /// What happened.
        source: Box<CallError>,
    },
    /// The domain has faulted. A reset removes all that was added.
    #[error("the domain has faulted; reset it first, which removes all modules that were added")]
    Faulted,
    /// Called from a signal handler that interrupted the runtime.
    #[error("modules cannot be added or removed from a signal handler that interrupted the runtime")]
    Handler,
    /// Its data does not fit under the domain's memory limit.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A system call failed, or the process is out of mappings.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Why a call has no result: the one outcome that all interfaces have, from the gate to C's `rf_status`.
///
/// After [`Fault`](Self::Fault), [`Host`](Self::Host), [`Exit`](Self::Exit) and a limit of time that was
/// [`Exceeded`](Self::Exceeded) the domain refuses calls, with [`Faulted`](Self::Faulted), until it is reset: its data may
/// be half-changed. After all others it is as it was.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The domain's code failed during this call; the fault tells where.
    #[error(transparent)]
    Fault(Box<Fault>),
    /// A host function that the domain called returned an error or panicked. (From functions that are called by their Rust
    /// types; else such a call has a fault with the kind `Host`.)
    #[error(transparent)]
    Host(std::sync::Arc<HostFailure>),
    /// The domain asked to exit. It refuses calls until it is reset.
    #[error("the module called exit({0})")]
    Exit(i32),
    /// The domain failed in an earlier call and was not reset.
    #[error("the domain has faulted; reset it first{}", first_failure(first.as_deref()))]
    Faulted {
        /// How the first call failed that did, if that is still known: it was not reset since, and nobody else was asking at
        /// the same moment.
        first: Option<Box<CallError>>,
    },
    /// The domain no longer exists.
    #[error("the domain is gone")]
    Gone,
    /// The domain had a process of its own, which is not there any more. A reset starts another one.
    #[error("the domain's process is of no use: {how}; reset the domain")]
    Process {
        /// What has become of it.
        how: String,
    },
    /// The function was revoked, or not handed out yet.
    #[error("the function was revoked, or not handed out yet")]
    Revoked,
    /// The function came to the living domain, and has been removed since.
    #[error("the function has been removed")]
    Removed,
    /// The thread is inside a domain: a signal handler tried to enter one.
    #[error("a domain cannot be entered from a signal handler that interrupted one")]
    Inside,
    /// The caller runs on the alternate signal stack, which a fault would overwrite.
    #[error("a domain cannot be entered from a handler that runs on the alternate signal stack")]
    SignalStack,
    /// Too many calls are nested in each other on this lane, or too little of the thread's stack is left for what the domain may call.
    /// The domain is as it was.
    #[error(
        "host and domains call each other too deeply: more than 100 calls of this domain, or 16 KiB of the thread's stack left"
    )]
    Nesting,
    /// The call that this one is nested in has run out of time, or was interrupted.
    #[error("the call in progress on this thread has to end")]
    Ending,
    /// The domain has had all the calls that it may get.
    #[error(
        "the domain has had the {limit} calls that it may get; make a new one, or raise DomainOptions::call_limit"
    )]
    Calls {
        /// The limit.
        limit: u64,
    },
    /// All lanes of the domain are taken by other threads.
    #[error(
        "{limit} threads already have a lane in this domain; let one of them end, trim the domain, or raise DomainOptions::max_lanes (63 at most)"
    )]
    NoLane {
        /// The limit.
        limit: u32,
    },
    /// The arguments do not fit.
    #[error("{given} words of stack arguments, at most {limit} are allowed")]
    Arguments {
        /// How many were given.
        given: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// Several calls that have one limit together, constructors or destructors, were given up. The domain has faulted.
    #[error("its constructors or destructors: {0}")]
    Exceeded(crate::work::Exceeded),
    /// The lane could not be made.
    #[error("making a lane: {0}")]
    Lane(String),
}

impl CallError {
    /// What a server may show to its users, as [`Fault::public`] has it.
    #[must_use]
    pub fn public(&self) -> impl fmt::Display + '_ {
        struct Public<'a>(&'a CallError);
        impl fmt::Display for Public<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self.0 {
                    CallError::Faulted { first: Some(first) } => {
                        write!(f, "failed before: {}", first.public())
                    }
                    CallError::Faulted { first: None } => f.write_str("failed before"),
                    // The text of the system's may name what is the host's.
                    CallError::Lane(_) => f.write_str("no room for the call"),
                    error => match error.fault() {
                        Some(fault) => write!(f, "{}", fault.public()),
                        None => write!(f, "{error}"),
                    },
                }
            }
        }
        Public(self)
    }

    /// The fault, if the domain's code failed, or a host function ended it.
    #[must_use]
    pub fn fault(&self) -> Option<&Fault> {
        match self {
            Self::Fault(fault) => Some(fault),
            Self::Host(failure) => Some(&failure.fault),
            _ => None,
        }
    }

    /// Goes on with the panic that ended the call, if a panic in a host function did; otherwise gives the error back.
    ///
    /// A panic in a host function does not unwind through the domain: it ends the domain's call, and the call returns
    /// [`CallError::Host`]. Hosts for which a panic is a bug that must not be swallowed write
    /// `f.call(…).map_err(CallError::resume_panic)?`.
    ///
    /// # Panics
    /// With the original payload, if the call was ended by a panic that nobody has gone on with yet.
    #[must_use]
    pub fn resume_panic(self) -> Self {
        if let Self::Host(failure) = &self
            && let HostCause::Panic(panic) = &failure.cause
            && let Some(payload) = panic.take()
        {
            std::panic::resume_unwind(payload);
        }
        self
    }
}

/// The end of a message about a domain that is of no use because of an earlier failure.
fn first_failure(first: Option<&CallError>) -> String {
    first.map_or(String::new(), |first| format!(" (the first failure: {first})"))
}

/// A host function ended a domain's call.
#[derive(Debug)]
#[non_exhaustive]
pub struct HostFailure {
    /// Name of the import.
    pub import: String,
    /// Why it failed.
    pub cause: HostCause,
    /// Where the domain was: its backtrace names the function that called the host.
    pub fault: Fault,
}

impl HostFailure {
    /// What ended the call that has this fault.
    #[must_use]
    pub fn new(import: String, cause: HostCause, fault: Fault) -> Self {
        Self { import, cause, fault }
    }
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host function {} {}", self.import, self.cause)?;
        if let Some(frame) = self.fault.backtrace().first()
            && let Some(function) = &frame.function
        {
            write!(f, " (called from {function}")?;
            if let (Some(file), Some(line)) = (&frame.file, frame.line) {
                write!(f, " at {file}:{line}")?;
            }
            write!(f, ")")?;
        }
        Ok(())
    }
}

impl std::error::Error for HostFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.cause {
            HostCause::Error(e) => Some(&**e),
            HostCause::Panic(_) => None,
        }
    }
}

/// Why an access to a domain's memory failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The range is not inside the domain's window.
    #[error("{len} bytes at {address:#x} are not inside the domain's window")]
    Outside {
        /// First byte.
        address: u64,
        /// Length.
        len: u64,
    },
    /// Nothing is mapped there, or not with these rights.
    #[error("{len} bytes at {address:#x} are not accessible in the domain")]
    Unmapped {
        /// First byte.
        address: u64,
        /// Length.
        len: u64,
    },
    /// The domain's memory limit, or its address space, is used up.
    #[error("{wanted} bytes do not fit under the domain's memory limit of {limit} bytes ({used} used)")]
    Limit {
        /// How much was asked for.
        wanted: u64,
        /// How much is used.
        used: u64,
        /// The limit.
        limit: u64,
    },
    /// Not the start of a live host allocation.
    #[error("{address:#x} is not a live allocation of this domain")]
    NotAllocated {
        /// What was given.
        address: u64,
    },
    /// A size or alignment that cannot work.
    #[error("alignment {align} is not a power of two up to 4096")]
    Alignment {
        /// What was given.
        align: u64,
    },
}

/// Why a link could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The domain has no such slot.
    #[error(
        "the domain has no import {name:?} that takes entries of other domains; name it with Imports::slot or \
         Imports::domain when the domain is made"
    )]
    NoSlot {
        /// The import's name.
        name: String,
    },
    /// Only registers pass from domain to domain.
    #[error(
        "{name:?} has {words} words of arguments on the stack; between domains only those in registers pass"
    )]
    StackArguments {
        /// The import's name.
        name: String,
        /// How many there are.
        words: u8,
    },
    /// No memory for a thunk.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Why there is no snapshot, or no domain of it. Nothing has changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The domain's back end cannot do that.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// Several threads have been in the domain: whose thread-local variables would a new domain have?
    #[error(
        "{count} threads have been in the domain; only what one thread initialised can become a snapshot"
    )]
    Lanes {
        /// How many.
        count: u32,
    },
    /// The domain has failed.
    #[error("the domain has faulted; reset it first")]
    Faulted,
    /// It has rights to regions, which belong to others too.
    #[error("the domain has rights to regions; take them back first")]
    Regions,
    /// The policy holds something for it that a snapshot cannot hold.
    #[error("the domain has {0}, which no snapshot can hold")]
    Held(String),
    /// The two runs of the initialisation differ.
    #[error(
        "two runs of the initialisation differ at offset {offset:#x} of the window{}: {first:#010x} and \
         {second:#010x}; it depends on time, on chance, or on its address in a way that cannot be moved",
        symbol.as_ref().map_or(String::new(), |s| format!(" (in {s})"))
    )]
    Differs {
        /// Where.
        offset: u32,
        /// The exported object that it is in, if it is in one.
        symbol: Option<String>,
        /// What the first run left there.
        first: u32,
        /// What the second run left.
        second: u32,
    },
    /// The two runs have not even the same memory.
    #[error("two runs of the initialisation differ in {what}")]
    Shape {
        /// In what.
        what: &'static str,
    },
    /// The snapshot was taken of one domain and fits into its window only.
    #[error(
        "a snapshot of a single domain serves that domain's resets; make one for new domains with Snapshot::new"
    )]
    Fixed,
    /// Other imports than the snapshot was made with.
    #[error("a snapshot was made with the imports {wanted:?}, and got {got:?}")]
    Imports {
        /// The names that it was made with, in the order of their stubs.
        wanted: Vec<String>,
        /// Those given now.
        got: Vec<String>,
    },
    /// The host's initialisation failed.
    #[error("the initialisation failed: {0}")]
    Init(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The domain could not be made, or is busy.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// A system call failed.
    #[error(transparent)]
    Host(#[from] HostError),
}
