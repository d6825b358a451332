//! What went wrong, as C has it: `rf_status`, and the one place where outcomes become statuses.

use ringfence::dynamic::LastCall;
use ringfence::policy::PolicyError;
use ringfence::policy::program::RunError;
use ringfence::{
    BatchError, Bound, CallError, CodeError, DomainError, Fault, FaultKind, GrantError, HostError, LoadError,
    MemoryError, ModuleError, RegionError, SnapshotError, TextError, Unsupported,
};
use ringfence_functions::FunctionError;

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
    ERROR_TEXT = 24,
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

/// What a domain knows of the error that a call of it ended with.
type Report = fn(usize, &CallError) -> Option<String>;

/// An error on its way to `rf_error`.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) code: i32,
    /// What a person is to read. Without it, that of the call's error is made when somebody asks: it takes reading the
    /// module's debug information.
    message: Option<String>,
    /// What became of a call.
    outcome: Option<CallError>,
    /// The domain, by its handle, that may know more of it, as long as it is there; and what asks that.
    more: Option<(usize, Report)>,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl Into<String>) -> Self {
        Self {
            status,
            code: 0,
            message: Some(message.into()),
            outcome: None,
            more: None,
        }
    }

    /// The fault that a call ended with; of a domain that was of no use any more, the one that is the cause.
    pub(crate) fn fault(&self) -> Option<&Fault> {
        match self.outcome.as_ref()? {
            CallError::Faulted { first } => first.as_deref()?.fault(),
            outcome => outcome.fault(),
        }
    }

    /// What became of the call, if it is one's failure.
    pub(crate) fn outcome(&self) -> Option<&CallError> {
        self.outcome.as_ref()
    }

    /// The same, where `more` is asked what the domain with this handle knows, when somebody asks for the message.
    pub(crate) fn of(self, domain: usize, more: Report) -> Self {
        let more = Some((domain, more));
        Self { more, ..self }
    }

    /// The message, with what the domain knows.
    pub(crate) fn told(&self) -> String {
        let report = self.more.zip(self.outcome());
        match report.and_then(|((domain, more), outcome)| more(domain, outcome)) {
            Some(report) => format!("{self}\n{report}"),
            None => self.to_string(),
        }
    }

    /// The same with more lines for a person to read.
    pub(crate) fn with(self, more: &str) -> Self {
        let message = Some(format!("{self}\n{more}"));
        Self { message, ..self }
    }

    /// What strangers may be shown: without addresses, paths and the host's own words.
    pub(crate) fn public(&self) -> String {
        match &self.outcome {
            Some(error) => error.public().to_string(),
            None => self.status.meaning().into(),
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
        match (&self.message, &self.outcome) {
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
            LoadError::Host(HostError::NoMemory) => Status::ERROR_LIMIT,
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

impl From<Unsupported> for Failure {
    fn from(e: Unsupported) -> Self {
        Self::new(Status::ERROR_UNSUPPORTED, e.to_string())
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
            DomainError::Unsupported(e) => return e.into(),
            DomainError::NotFor { .. } => Status::ERROR_FORMAT,
            DomainError::Addressing { .. } | DomainError::Isolation { .. } => Status::ERROR_REJECTED,
            DomainError::Dlopen { .. } => Status::ERROR_FILE,
            DomainError::Worker { .. } => Status::ERROR_UNSUPPORTED,
            DomainError::Unanswered { source } => return (*source).into(),
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
            CallError::Host(failure) => status_of(&failure.fault.kind),
            CallError::Exit(status) => (Status::FAULT_EXIT, *status),
            CallError::Exceeded(over) if over.bound == Bound::Time => (Status::FAULT_TIME, 0),
            CallError::Exceeded(_) => (Status::ERROR_LIMIT, 0),
            CallError::Faulted { .. } => (Status::ERROR_FAULTED, 0),
            CallError::Gone | CallError::Revoked => (Status::ERROR_HANDLE, 0),
            CallError::Process { .. } => (Status::ERROR_FAULTED, 0),
            CallError::Removed => (Status::ERROR_NO_FUNCTION, 0),
            CallError::Calls { .. }
            | CallError::NoLane { .. }
            | CallError::Memory(_)
            | CallError::Lane(_) => (Status::ERROR_LIMIT, 0),
            CallError::Arguments { .. } => (Status::ERROR_TOO_LONG, 0),
            CallError::Inside | CallError::SignalStack | CallError::Nesting => (Status::ERROR_NESTING, 0),
            _ => (Status::FAULT_OTHER, 0),
        };
        Self {
            status,
            code,
            message: None,
            outcome: Some(e),
            more: None,
        }
    }
}

impl From<BatchError> for Failure {
    fn from(e: BatchError) -> Self {
        match e {
            BatchError::Memory(e) => e.into(),
            BatchError::Code(e) => e.into(),
            BatchError::Call { source, .. } => source.into(),
            other => Self::new(Status::ERROR_TOO_LONG, other.to_string()),
        }
    }
}

impl From<FunctionError> for Failure {
    fn from(e: FunctionError) -> Self {
        let status = match e {
            FunctionError::Call(e) => return e.into(),
            FunctionError::Code(e) => return e.into(),
            FunctionError::Domain(e) => return e.into(),
            FunctionError::Memory(e) => return e.into(),
            FunctionError::Text(_)
            | FunctionError::Object(_)
            | FunctionError::NotDefined { .. }
            | FunctionError::Declaration { .. }
            | FunctionError::Place { .. } => Status::ERROR_TEXT,
            FunctionError::Exists { .. } => Status::ERROR_EXISTS,
            FunctionError::Unknown { .. } | FunctionError::Part { .. } | FunctionError::Deleted { .. } => {
                Status::ERROR_NO_FUNCTION
            }
            FunctionError::Missing { .. } => Status::ERROR_IMPORT,
            FunctionError::Type { .. } | FunctionError::Argument { .. } | FunctionError::Count { .. } => {
                Status::ERROR_TYPE
            }
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<LastCall> for Status {
    fn from(last: LastCall) -> Self {
        match last {
            LastCall::Returned => Status::OK,
            LastCall::Fault(kind) => status_of(&kind).0,
            LastCall::Exit(_) => Status::FAULT_EXIT,
            LastCall::Faulted => Status::ERROR_FAULTED,
            LastCall::Gone | LastCall::Revoked => Status::ERROR_HANDLE,
            LastCall::Removed => Status::ERROR_NO_FUNCTION,
            LastCall::Inside | LastCall::Nesting => Status::ERROR_NESTING,
            LastCall::Refused => Status::ERROR_LIMIT,
            _ => Status::FAULT_OTHER,
        }
    }
}

fn status_of(kind: &FaultKind) -> (Status, i32) {
    let status = match kind {
        FaultKind::BadAccess { .. }
        | FaultKind::OutsideWindow { .. }
        | FaultKind::Denied { .. }
        | FaultKind::Protection => Status::FAULT_ACCESS,
        FaultKind::BadTarget => Status::FAULT_TARGET,
        FaultKind::Division => Status::FAULT_DIVIDE,
        FaultKind::IllegalInstruction | FaultKind::Trap => Status::FAULT_ILLEGAL,
        FaultKind::ControlStack | FaultKind::DataStack => Status::FAULT_STACK,
        FaultKind::TimeLimit => Status::FAULT_TIME,
        FaultKind::Interrupted => Status::FAULT_INTERRUPT,
        FaultKind::OutOfMemory => Status::FAULT_MEMORY,
        FaultKind::Abort(reason) => return (Status::FAULT_ABORT, *reason),
        FaultKind::Uncaught(_) | FaultKind::NotUnwound(_) => Status::FAULT_EXCEPTION,
        FaultKind::OutOfOrder => Status::ERROR_NESTING,
        FaultKind::Host(_) => Status::FAULT_HOST,
        FaultKind::Callee(inner) => return status_of(&inner.kind),
        FaultKind::Elsewhere => Status::FAULT_ELSEWHERE,
        _ => Status::FAULT_OTHER,
    };
    (status, 0)
}

impl From<CodeError> for Failure {
    fn from(e: CodeError) -> Self {
        let status = match &e {
            CodeError::Exists { .. } => Status::ERROR_EXISTS,
            CodeError::Unknown { .. } => Status::ERROR_NO_FUNCTION,
            CodeError::Rejected { .. } => Status::ERROR_REJECTED,
            CodeError::Empty { .. } => Status::ERROR_ARGUMENT,
            CodeError::Registers { .. } | CodeError::Features { .. } | CodeError::Unsupported(_) => {
                Status::ERROR_UNSUPPORTED
            }
            CodeError::InUse(_) => Status::ERROR_BUSY,
            CodeError::Handler => Status::ERROR_NESTING,
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<ModuleError> for Failure {
    fn from(e: ModuleError) -> Self {
        let message = e.to_string();
        let status = match e {
            ModuleError::Exists { .. } | ModuleError::Twice { .. } => Status::ERROR_EXISTS,
            ModuleError::Unknown { .. } => Status::ERROR_NO_OBJECT,
            ModuleError::Registers { .. } | ModuleError::Unsupported(_) => Status::ERROR_UNSUPPORTED,
            ModuleError::Link { .. } => Status::ERROR_IMPORT,
            ModuleError::Addressing { .. } | ModuleError::Isolation { .. } => Status::ERROR_REJECTED,
            ModuleError::Needed { .. } | ModuleError::InUse(_) | ModuleError::Changing { .. } => {
                Status::ERROR_BUSY
            }
            ModuleError::Init { source, .. } | ModuleError::Fini { source, .. } => {
                return Self::from(*source).in_constructor(message);
            }
            ModuleError::Faulted => Status::ERROR_FAULTED,
            ModuleError::Handler => Status::ERROR_NESTING,
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, message)
    }
}

impl From<GrantError> for Failure {
    fn from(e: GrantError) -> Self {
        let status = match &e {
            GrantError::Unsupported(_) => Status::ERROR_UNSUPPORTED,
            GrantError::NoSlot { .. } => Status::ERROR_IMPORT,
            GrantError::StackArguments { .. } => Status::ERROR_ARGUMENT,
            _ => Status::ERROR_LIMIT,
        };
        Failure::new(status, e.to_string())
    }
}

impl From<SnapshotError> for Failure {
    fn from(e: SnapshotError) -> Self {
        let status = match e {
            SnapshotError::Domain(e) => return e.into(),
            SnapshotError::Unsupported(e) => return e.into(),
            SnapshotError::Faulted => Status::ERROR_FAULTED,
            SnapshotError::Host(_) => Status::ERROR_LIMIT,
            SnapshotError::Imports { .. } => Status::ERROR_IMPORT,
            _ => Status::ERROR_SNAPSHOT,
        };
        Failure::new(status, e.to_string())
    }
}

impl From<RegionError> for Failure {
    fn from(e: RegionError) -> Self {
        let status = match &e {
            RegionError::Unsupported(_) => Status::ERROR_UNSUPPORTED,
            RegionError::Rights(_) => Status::ERROR_RIGHTS,
            RegionError::Size { .. } | RegionError::Short { .. } | RegionError::NotSealable(_) => {
                Status::ERROR_ARGUMENT
            }
            _ => Status::ERROR_LIMIT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<PolicyError> for Failure {
    fn from(e: PolicyError) -> Self {
        let status = match &e {
            PolicyError::Directory { .. } => Status::ERROR_FILE,
            PolicyError::KernelFiles { .. } => Status::ERROR_RIGHTS,
            _ => Status::ERROR_ARGUMENT,
        };
        Self::new(status, e.to_string())
    }
}

impl From<RunError> for Failure {
    fn from(e: RunError) -> Self {
        match e {
            RunError::NoMain(_) => Failure::new(Status::ERROR_NO_FUNCTION, e.to_string()),
            RunError::Arguments(e) => e.into(),
            RunError::Call(e) => e.into(),
            other => Failure::new(Status::ERROR_INTERNAL, other.to_string()),
        }
    }
}

impl From<TextError> for Failure {
    fn from(e: TextError) -> Self {
        match e {
            TextError::Memory(e) => e.into(),
            other => Failure::new(Status::ERROR_TOO_LONG, other.to_string()),
        }
    }
}

impl Status {
    /// The class of failure, for people.
    fn meaning(self) -> &'static str {
        match self.0 {
            1..=9 => "the host made a mistake",
            16..=20 => "the module cannot be used",
            21 => "a limit was reached",
            22..=23 => "the module could not be prepared",
            24 => "the text cannot be used",
            32..=47 => "the module failed",
            48 => "the module failed before",
            49..=50 => "the module is busy",
            51..=52 => "not allowed",
            _ => "internal error",
        }
    }
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
}
