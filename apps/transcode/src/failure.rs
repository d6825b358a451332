//! What a client is told when its request fails.

use hyper::StatusCode;
use ringfence::{CallError, Fault, FaultKind};
use ringfence_functions::FunctionError;

use crate::prelude;

/// A status, and a text for a person. Nothing in it is of other clients or of the host.
#[derive(Debug)]
pub(crate) struct Failure {
    pub status: StatusCode,
    pub message: String,
    /// Of 405: the methods that there are.
    pub allow: &'static str,
}

impl Failure {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Failure {
            status,
            message: message.into(),
            allow: "",
        }
    }

    /// The server's own fault; the reason is for its log.
    pub fn internal(why: &dyn std::fmt::Display) -> Self {
        eprintln!("ringfence-transcode: {why}");
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "the server failed")
    }

    /// A call that did not return; `what` is the module, or the function, for which it was made.
    pub fn of_call(what: &str, error: &CallError) -> Self {
        match error {
            CallError::Fault(fault) => {
                let status = match fault.kind {
                    FaultKind::TimeLimit => StatusCode::GATEWAY_TIMEOUT,
                    _ => StatusCode::INTERNAL_SERVER_ERROR,
                };
                // It begins with the name of the domain's first module, and a runtime has none.
                let public = fault.public().to_string();
                let how = public.split_once(": ").map_or(&*public, |(_, how)| how);
                Failure::new(status, format!("{what}: {how}{}", line_of(fault)))
            }
            other => Failure::new(StatusCode::INTERNAL_SERVER_ERROR, format!("{what}: {other}")),
        }
    }

    /// What a function answered about a picture: 0 if it is content.
    pub fn of_result(name: &str, result: i64) -> Result<(), Self> {
        match result {
            0 => Ok(()),
            other => Err(Failure::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                format!("function {name} refused the picture, or its arguments: it returned {other}"),
            )),
        }
    }

    /// Why a function was not made or called.
    pub fn of_function(name: &str, error: &FunctionError) -> Self {
        let status = match error {
            FunctionError::Call(e) => return Failure::of_call(&format!("function {name}"), e),
            FunctionError::Unknown { .. } | FunctionError::Deleted { .. } => StatusCode::NOT_FOUND,
            FunctionError::Exists { .. } | FunctionError::Part { .. } => StatusCode::CONFLICT,
            FunctionError::Argument { .. } | FunctionError::Count { .. } => StatusCode::BAD_REQUEST,
            FunctionError::Full { .. } | FunctionError::Code(_) | FunctionError::Memory(_) => {
                StatusCode::INSUFFICIENT_STORAGE
            }
            FunctionError::Domain(_) => return Failure::internal(error),
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        // The picture that a function takes before its arguments is none of the client's.
        let message = match error {
            FunctionError::Count { name, wanted, given } if *wanted > 0 => FunctionError::Count {
                name: name.clone(),
                wanted: wanted - 1,
                given: given.saturating_sub(1),
            }
            .to_string(),
            FunctionError::Unknown { name } => format!("there is no function {name}"),
            FunctionError::Argument { name, number, wanted } if *number > 1 => FunctionError::Argument {
                name: name.clone(),
                number: number - 1,
                wanted: wanted.clone(),
            }
            .to_string(),
            error => error.to_string(),
        };
        Failure::new(status, message)
    }
}

/// Where in a client's own text a function failed, if debug information tells: ` (line 7)`.
fn line_of(fault: &Fault) -> String {
    let frame = fault.backtrace().into_iter().next();
    let line = frame
        .filter(|f| f.file.as_deref() == Some(ringfence_functions::TEXT_FILE))
        .and_then(|f| f.line);
    let own = line.and_then(|line| line.checked_sub(prelude::lines()));
    own.map_or_else(String::new, |line| format!(" (line {line})"))
}
