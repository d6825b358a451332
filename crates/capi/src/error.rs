//! The calling thread's pending error: `rf_error` and what fills it.

use std::cell::{OnceCell, RefCell};
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use ringfence_runtime::{
    Bound, CallError, DomainError, Fault, FaultKind, HostError, LoadError, MemoryError, domain,
};

/// `rf_status` of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub i32);

macro_rules! statuses {
    ($($name:ident = $number:literal,)*) => {
        impl Status {
            $(pub(crate) const $name: Status = Status($number);)*

            /// The name in the header, NUL-terminated.
            pub(crate) fn name(self) -> &'static [u8] {
                match self.0 {
                    $($number => concat!("RF_", stringify!($name), "\0").as_bytes(),)*
                    _ => b"unknown status\0",
                }
            }
        }

        #[cfg(test)]
        pub(crate) const ALL: &[(i32, &str)] = &[$(($number, concat!("RF_", stringify!($name)))),*];
    };
}
statuses! {
    OK = 0,
    ERROR_ARGUMENT = 1,
    ERROR_HANDLE = 2,
    ERROR_NO_FUNCTION = 3,
    ERROR_NO_OBJECT = 4,
    ERROR_RANGE = 5,
    ERROR_ACCESS = 6,
    ERROR_TOO_LONG = 7,
    ERROR_FREE = 8,
    ERROR_TYPE = 9,
    ERROR_FILE = 16,
    ERROR_FORMAT = 17,
    ERROR_REJECTED = 18,
    ERROR_IMPORT = 19,
    ERROR_UNSUPPORTED = 20,
    ERROR_LIMIT = 21,
    ERROR_CONSTRUCTOR = 22,
    ERROR_SNAPSHOT = 23,
    FAULT_ACCESS = 32,
    FAULT_DIVIDE = 33,
    FAULT_ILLEGAL = 34,
    FAULT_STACK = 35,
    FAULT_TIME = 36,
    FAULT_INTERRUPT = 37,
    FAULT_MEMORY = 38,
    FAULT_ABORT = 39,
    FAULT_EXIT = 40,
    FAULT_HOST = 41,
    FAULT_TARGET = 42,
    FAULT_ELSEWHERE = 43,
    FAULT_EXCEPTION = 44,
    FAULT_OTHER = 47,
    ERROR_FAULTED = 48,
    ERROR_BUSY = 49,
    ERROR_NESTING = 50,
    ERROR_RIGHTS = 51,
    ERROR_EXISTS = 52,
    ERROR_INTERNAL = 63,
}

/// `rf_frame` of the header.
#[repr(C)]
pub struct CFrame {
    address: u64,
    function: *const c_char,
    file: *const c_char,
    line: u32,
    reserved: u32,
}

/// `rf_error_info` of the header.
#[repr(C)]
pub struct Info {
    size: usize,
    status: Status,
    code: i32,
    message: *const c_char,
    address: u64,
    instruction: u64,
    function: *const c_char,
    file: *const c_char,
    line: u32,
    frame_count: u32,
    frames: *const CFrame,
}

/// An error on its way to `rf_error`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    code: i32,
    /// What a person is to read. Without it, that of the call's error is made when somebody asks: it takes reading the
    /// module's debug information.
    message: Option<String>,
    call: Option<CallError>,
}

impl Failure {
    fn fault(&self) -> Option<&Fault> {
        match &self.call {
            Some(CallError::Fault(fault)) => Some(fault),
            _ => None,
        }
    }

    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            code: 0,
            message: Some(message.into()),
            call: None,
        }
    }

    /// The same, as what happened to a constructor or destructor.
    pub(crate) fn in_constructor(self, message: String) -> Self {
        Self {
            status: Status::ERROR_CONSTRUCTOR,
            message: Some(message),
            ..self
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.message, &self.call) {
            (Some(text), _) => f.write_str(text),
            (None, Some(error)) => write!(f, "{error}"),
            (None, None) => Ok(()),
        }
    }
}

impl From<LoadError> for Failure {
    fn from(e: LoadError) -> Self {
        let status = match &e {
            LoadError::Read { .. } => Status::ERROR_FILE,
            LoadError::Rejected { .. } => Status::ERROR_REJECTED,
            LoadError::Features { .. } | LoadError::Host(_) => Status::ERROR_UNSUPPORTED,
            LoadError::Identifiers { .. }
            | LoadError::Labels { .. }
            | LoadError::TooLarge { .. }
            | LoadError::Exceeded { .. } => Status::ERROR_LIMIT,
            _ => Status::ERROR_FORMAT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<HostError> for Failure {
    fn from(e: HostError) -> Self {
        let status = match e {
            HostError::TickSignal { .. } => Status::ERROR_ARGUMENT,
            HostError::NoFsgsbase | HostError::ReadImpliesExec | HostError::SecondRuntime { .. } => {
                Status::ERROR_UNSUPPORTED
            }
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<DomainError> for Failure {
    fn from(e: DomainError) -> Self {
        let message = e.to_string();
        let status = match e {
            DomainError::Unresolved { .. } => Status::ERROR_IMPORT,
            DomainError::NoExport { .. } | DomainError::NotFunction { .. } | DomainError::NoEntry { .. } => {
                Status::ERROR_NO_FUNCTION
            }
            DomainError::NoModule { .. } => Status::ERROR_NO_OBJECT,
            DomainError::Busy { .. } => Status::ERROR_BUSY,
            DomainError::Option { .. } => Status::ERROR_ARGUMENT,
            DomainError::Host(e) => return e.into(),
            DomainError::Memory(e) => return e.into(),
            DomainError::Grant(e) => return e.into(),
            DomainError::Snapshot(e) => return (*e).into(),
            DomainError::Init { source, .. } | DomainError::Fini { source, .. } => {
                return Self::from(*source).in_constructor(message);
            }
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, message)
    }
}

impl From<MemoryError> for Failure {
    fn from(e: MemoryError) -> Self {
        let status = match e {
            MemoryError::Outside { .. } => Status::ERROR_RANGE,
            MemoryError::Unmapped { .. } => Status::ERROR_ACCESS,
            MemoryError::NotAllocated { .. } => Status::ERROR_FREE,
            MemoryError::Limit { .. } => Status::ERROR_LIMIT,
            _ => Status::ERROR_ARGUMENT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<CallError> for Failure {
    fn from(e: CallError) -> Self {
        let (status, code) = match &e {
            CallError::Fault(fault) => status_of(&fault.kind),
            CallError::Exit(status) => (Status::FAULT_EXIT, *status),
            CallError::Exceeded(over) if over.bound == Bound::Time => (Status::FAULT_TIME, 0),
            CallError::Exceeded(_) => (Status::ERROR_LIMIT, 0),
            CallError::Faulted => (Status::ERROR_FAULTED, 0),
            CallError::Gone | CallError::Revoked => (Status::ERROR_HANDLE, 0),
            CallError::Removed => (Status::ERROR_NO_FUNCTION, 0),
            CallError::Calls { .. } | CallError::NoLane { .. } | CallError::Lane(_) => {
                (Status::ERROR_LIMIT, 0)
            }
            CallError::Arguments { .. } => (Status::ERROR_TOO_LONG, 0),
            CallError::Inside | CallError::SignalStack => (Status::ERROR_NESTING, 0),
            _ => (Status::FAULT_OTHER, 0),
        };
        Self {
            status,
            code,
            message: None,
            call: Some(e),
        }
    }
}

fn status_of(kind: &FaultKind) -> (Status, i32) {
    let status = match kind {
        FaultKind::BadAccess { .. } | FaultKind::OutsideWindow { .. } | FaultKind::Protection => {
            Status::FAULT_ACCESS
        }
        FaultKind::BadTarget => Status::FAULT_TARGET,
        FaultKind::Division => Status::FAULT_DIVIDE,
        FaultKind::IllegalInstruction | FaultKind::Trap => Status::FAULT_ILLEGAL,
        FaultKind::ControlStack | FaultKind::DataStack => Status::FAULT_STACK,
        FaultKind::TimeLimit => Status::FAULT_TIME,
        FaultKind::Interrupted => Status::FAULT_INTERRUPT,
        FaultKind::OutOfMemory => Status::FAULT_MEMORY,
        FaultKind::Abort(reason) => return (Status::FAULT_ABORT, *reason),
        FaultKind::Uncaught(_) | FaultKind::NotUnwound(_) => Status::FAULT_EXCEPTION,
        FaultKind::Nesting | FaultKind::OutOfOrder => Status::ERROR_NESTING,
        FaultKind::Host(_) => Status::FAULT_HOST,
        FaultKind::Callee(inner) => return status_of(&inner.kind),
        FaultKind::Elsewhere => Status::FAULT_ELSEWHERE,
        _ => Status::FAULT_OTHER,
    };
    (status, 0)
}

/// What `Info` points into.
struct Stored {
    info: Info,
    _message: CString,
    _strings: Vec<CString>,
    _frames: Vec<CFrame>,
}

/// A failure, and what `rf_error` gives for it once somebody has asked.
struct Pending {
    failure: Failure,
    stored: OnceCell<Box<Stored>>,
}

thread_local! {
    static PENDING: RefCell<Option<Pending>> = const { RefCell::new(None) };
}

/// A C string of what a person is to read; a NUL inside cannot be kept.
fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{FFFD}")).unwrap_or_default()
}

fn store(failure: &Failure) -> Box<Stored> {
    let message = c_string(&failure.to_string());
    let fault = failure.fault();
    let mut strings = Vec::new();
    let mut keep = |text: &Option<String>| match text {
        Some(text) => {
            strings.push(c_string(text));
            strings[strings.len() - 1].as_ptr()
        }
        None => ptr::null(),
    };
    let frames: Vec<CFrame> = fault.map_or_else(Vec::new, |fault| {
        let frame = |f: &ringfence_runtime::Frame| CFrame {
            address: f.address,
            function: keep(&f.function),
            file: keep(&f.file),
            line: f.line.unwrap_or(0),
            reserved: 0,
        };
        fault.backtrace().iter().map(frame).collect()
    });
    let first = frames.first();
    let info = Info {
        size: size_of::<Info>(),
        status: failure.status,
        code: failure.code,
        message: message.as_ptr(),
        address: match fault.map(|f| &f.kind) {
            Some(FaultKind::BadAccess { address, .. } | FaultKind::OutsideWindow { address }) => *address,
            _ => 0,
        },
        instruction: fault.map_or(0, Fault::instruction),
        function: first.map_or(ptr::null(), |f| f.function),
        file: first.map_or(ptr::null(), |f| f.file),
        line: first.map_or(0, |f| f.line),
        frame_count: frames.len() as u32,
        frames: if frames.is_empty() {
            ptr::null()
        } else {
            frames.as_ptr()
        },
    };
    Box::new(Stored {
        info,
        _message: message,
        _strings: strings,
        _frames: frames,
    })
}

/// Makes `failure` the thread's pending error; returns its status.
pub(crate) fn fail(failure: Failure) -> Status {
    let status = failure.status;
    let pending = Pending {
        failure,
        stored: OnceCell::new(),
    };
    // A thread that is ending has nobody left to ask.
    let _ = PENDING.try_with(|p| p.replace(Some(pending)));
    status
}

/// The pending error, including one that a call through a plain function pointer left in the runtime.
pub(crate) fn pending() -> *const Info {
    if let Some(error) = domain::take_error() {
        fail(error.into());
    }
    PENDING
        .try_with(|p| {
            p.borrow().as_ref().map_or(ptr::null(), |p| {
                &raw const p.stored.get_or_init(|| store(&p.failure)).info
            })
        })
        .unwrap_or(ptr::null())
}

/// Forgets the pending error.
pub(crate) fn clear() {
    let _ = domain::take_error();
    let _ = PENDING.try_with(|p| p.replace(None));
}

/// Runs the body of a C function: errors become the pending error, and a panic, which would be a defect of ours, does
/// not reach C code.
pub(crate) fn border<T>(on_error: impl FnOnce(Status) -> T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => value,
        Ok(Err(failure)) => on_error(fail(failure)),
        Err(_) => on_error(fail(Failure::new(
            Status::ERROR_INTERNAL,
            "a defect in Ringfence: it panicked; please report it",
        ))),
    }
}

/// [`border`] for functions that return a status.
pub(crate) fn status(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    border(|s| s, || body().map(|()| Status::OK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_same_numbers() {
        let header = include_str!("../../../include/ringfence/host/status.h");
        for (number, name) in ALL {
            let line = format!(" {name} = {number}");
            assert!(
                header.contains(&format!("{line},")) || header.contains(&format!("{line} ")),
                "{name} = {number} is not in the header"
            );
        }
        let listed = header
            .lines()
            .map(str::trim_start)
            .filter(|l| {
                ["RF_OK", "RF_ERROR_", "RF_FAULT_"]
                    .iter()
                    .any(|p| l.starts_with(p))
                    && l.contains(" = ")
            })
            .count();
        assert_eq!(listed, ALL.len(), "a status of the header is missing here");
    }

    #[test]
    fn a_panic_becomes_an_error() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        assert_eq!(status(|| panic!("x")), Status::ERROR_INTERNAL);
        std::panic::set_hook(hook);
        // SAFETY: `pending` gives null or a pointer to this thread's error.
        let info = unsafe { pending().as_ref() }.expect("pending");
        assert_eq!(info.status, Status::ERROR_INTERNAL);
        assert_eq!(info.size, size_of::<Info>());
        clear();
        assert!(pending().is_null());
    }
}
