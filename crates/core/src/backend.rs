//! The back ends there are, and what each of them has.

use std::fmt;
use std::str::FromStr;

/// The ways in which a domain can be kept from the host. `docs/backends.md` has a table of what each can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Backend {
    /// In a window of the host's own address space, fenced by the verifier. A call takes nanoseconds.
    #[default]
    Window,
    /// The same window at the same address in a process of its own, without system calls: two fences. A call takes a fraction of
    /// a microsecond while both sides spin, microseconds otherwise.
    Process,
    /// Not at all: an ordinary shared object, loaded with `dlopen`. For debugging and as a baseline, **not a fence**.
    None,
}

impl Backend {
    /// All of them.
    pub const ALL: [Backend; 3] = [Backend::Window, Backend::Process, Backend::None];

    /// The name that the command line and messages use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Backend::Window => "window",
            Backend::Process => "process",
            Backend::None => "none",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Backend {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Backend::ALL
            .into_iter()
            .find(|b| b.name() == name)
            .ok_or_else(|| format!("no back end {name:?}; there are window, process and none"))
    }
}

/// What some back ends have and others have not. `docs/backends.md` has the same table as [`Backend::offers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Feature {
    /// Crashes, endless loops and failed host functions end the call, with a report, and not the process.
    Faults,
    /// Calls in progress are ended from outside: `interrupt`, [`DomainOptions::cancel`](crate::DomainOptions::cancel).
    Interrupt,
    /// Options other than the back end itself: limits, sizes of stacks.
    Limits,
    /// The host is told of limits: `Imports::on_limit`.
    OnLimit,
    /// A policy answers the domain's system calls.
    Policy,
    /// Plain C functions as imports.
    Plain,
    /// Functions of other domains: `Imports::export`, slots, `Domain::grant`.
    Grants,
    /// Memory that domains share, and groups.
    Regions,
    /// Machine code that comes to the living domain.
    Code,
    /// Modules that come to the living domain.
    Modules,
    /// A later state that resets return to.
    Checkpoints,
    /// New domains that start from a state.
    Snapshots,
    /// A process of the domain's own, and what that is locked in with: `Domain::confinement`.
    Confinement,
    /// Plain C functions learn which domain calls: `dynamic::current_tag`, `rf_caller_domain(NULL)`.
    Caller,
    /// Hosts jump over calls, as with `longjmp`: `dynamic::mark`, `rf_call_mark`.
    Unwind,
    /// Modules of `ringfence cc`, which the verifier has checked: what they cannot reach, and what they see in registers.
    Fence,
    /// Calls from signal handlers, whatever these have interrupted.
    Handlers,
    /// Time limits that do not count what host functions wait for: `Caller::wait`, `rf_domain_pause_time`.
    Pauses,
    /// Maps of files that are shared with whoever else has the file: `mmap` with `MAP_SHARED`, where a policy grants the file.
    FileMaps,
    /// Processes that a program makes, where a policy grants them: `fork`.
    Processes,
    /// Rights to single words of the host's objects: arenas.
    Words,
}

impl Feature {
    /// All of them, in the order of the page.
    pub const ALL: [Feature; 21] = [
        Feature::Faults,
        Feature::Interrupt,
        Feature::Limits,
        Feature::OnLimit,
        Feature::Policy,
        Feature::Plain,
        Feature::Grants,
        Feature::Regions,
        Feature::Code,
        Feature::Modules,
        Feature::Checkpoints,
        Feature::Snapshots,
        Feature::Confinement,
        Feature::Caller,
        Feature::Unwind,
        Feature::Fence,
        Feature::Handlers,
        Feature::Pauses,
        Feature::FileMaps,
        Feature::Processes,
        Feature::Words,
    ];

    /// What messages and the page call it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Feature::Faults => "faults as error values",
            Feature::Interrupt => "ends of calls from outside (interrupt, cancel)",
            Feature::Limits => "limits and sizes (DomainOptions)",
            Feature::OnLimit => "functions that are told of limits (on_limit)",
            Feature::Policy => "policies for system calls",
            Feature::Plain => "plain C functions as imports",
            Feature::Grants => "functions of other domains (export, slot, grant)",
            Feature::Regions => "regions and groups",
            Feature::Code => "code that is added later (add_code)",
            Feature::Modules => "modules that are added later (add_module)",
            Feature::Checkpoints => "checkpoints",
            Feature::Snapshots => "snapshots",
            Feature::Confinement => "process of its own (confinement)",
            Feature::Caller => "callers of plain C functions (current_tag)",
            Feature::Unwind => "jumps over calls (mark, unwind)",
            Feature::Fence => "fence (modules of ringfence cc)",
            Feature::Handlers => "calls from signal handlers",
            Feature::Pauses => "pauses of the time limit (wait, pause_time)",
            Feature::FileMaps => "shared maps of files (MAP_SHARED)",
            Feature::Processes => "processes that a program makes (fork)",
            Feature::Words => "rights to single words (arenas)",
        }
    }
}

impl Backend {
    /// Whether the back end has the feature.
    #[must_use]
    pub const fn offers(self, feature: Feature) -> bool {
        match self {
            Backend::Window => !matches!(feature, Feature::Confinement),
            Backend::Process => matches!(
                feature,
                Feature::Faults
                    | Feature::Interrupt
                    | Feature::Limits
                    | Feature::OnLimit
                    | Feature::Policy
                    | Feature::Plain
                    | Feature::Regions
                    | Feature::Checkpoints
                    | Feature::Confinement
                    | Feature::Caller
                    | Feature::Fence
            ),
            Backend::None => matches!(feature, Feature::Plain),
        }
    }

    /// That it has the feature.
    ///
    /// # Errors
    /// [`Unsupported`] if it has not.
    pub const fn require(self, feature: Feature) -> Result<(), Unsupported> {
        if self.offers(feature) {
            return Ok(());
        }
        Err(Unsupported {
            feature,
            backend: self,
        })
    }
}

/// The domain's back end has no such thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// What was asked for.
    pub feature: Feature,
    /// Of which back end.
    pub backend: Backend,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unsupported { feature, backend } = self;
        write!(
            f,
            "the back end {backend} has no {}; make the domain with ",
            feature.name()
        )?;
        let others = Backend::ALL.into_iter().filter(|b| b.offers(*feature));
        for (i, other) in others.enumerate() {
            write!(f, "{}{other}", if i > 0 { " or " } else { "" })?;
        }
        f.write_str(" (DomainOptions::backend)")
    }
}

impl std::error::Error for Unsupported {}
