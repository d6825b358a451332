//! The process that a domain of the back end `process` runs in. Started by the library, for nobody else.

fn main() -> std::process::ExitCode {
    ringfence_process::worker()
}
