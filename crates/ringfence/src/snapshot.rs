//! Snapshots of initialised domains.

use std::fmt;

use ringfence_runtime::{self as runtime, Feature};

use crate::backend::Kind;
use crate::{Domain, DomainError, Imports, SnapshotError};

/// What an initialised domain looks like: the state that new domains start from.
///
/// For work that takes long and is the same for every domain: an interpreter with its libraries loaded, tables
/// that were computed. Domains of a snapshot share the memory that they do not write. To have one domain's
/// [reset](Domain::reset) return to a state, use [`Domain::checkpoint`].
///
/// # Examples
/// ```no_run
/// use ringfence::{Error, Snapshot, Imports, Module, Pool};
///
/// let module = Module::open("interpreter.rf")?;
/// let snapshot = Snapshot::new(
///     || module.instantiate(Imports::new()),
///     |domain| {
///         domain.func::<(), i32>("load_libraries")?.call()?;
///         Ok::<(), Error>(())
///     },
/// )?;
/// let pool = Pool::from_snapshot(16, snapshot, Imports::new);
/// let domain = pool.take()?; // with libraries loaded
/// # let _ = domain;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Snapshot(runtime::Snapshot);

impl Snapshot {
    /// Makes two domains with `make`, runs `init` in each, and makes a snapshot of what they have in common.
    ///
    /// Pointers are addresses, and every domain has another window. The words that have to be moved are found by
    /// comparing two runs, so `init` must do the same each time, and nothing in the domain may depend on time, chance, or on an
    /// address other than as a pointer (such as a hash of one). Two runs that differ are an error that says where.
    ///
    /// # Errors
    /// [`SnapshotError`].
    pub fn new<E: Into<Box<dyn std::error::Error + Send + Sync>>>(
        make: impl Fn() -> Result<Domain, DomainError>,
        init: impl Fn(&Domain) -> Result<(), E>,
    ) -> Result<Self, SnapshotError> {
        let made = || Ok(make()?.0.window(Feature::Snapshots)?.clone());
        runtime::Snapshot::new(made, |domain| init(&Domain(Kind::Window(domain.clone())))).map(Self)
    }

    /// A new domain in the snapshot's state, to which its [`reset`](Domain::reset) returns. `imports` must have the names that
    /// the snapshot was made with. The thread that enters first has the thread-local variables of the snapshot, others have fresh
    /// ones.
    ///
    /// # Errors
    /// [`SnapshotError::Imports`], [`SnapshotError::Domain`], [`SnapshotError::Host`].
    pub fn instantiate(&self, imports: Imports) -> Result<Domain, SnapshotError> {
        imports.1.map_or(Ok(()), Err)?;
        Ok(Domain(Kind::Window(self.0.instantiate(imports.0)?)))
    }

    /// How many bytes the snapshot holds, and how many words of them are moved in each window.
    #[must_use]
    pub fn size(&self) -> (u64, usize) {
        self.0.size()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
