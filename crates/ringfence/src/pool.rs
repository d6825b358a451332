//! Clean domains, handed out and taken back.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{Domain, DomainError, Imports, Snapshot, SnapshotError};

/// Domains of one kind that wait to be used, so that each user gets a clean one quickly.
///
/// A domain that comes back is made like new before anybody else gets it: a [reset](Domain::reset) takes memory,
/// allocations, stacks, thread-local data and faults of the last user away, and with them go rights to
/// [regions](crate::Region), regions and groups of its own, functions [granted](Domain::grant) to it and by it, and its
/// time limit. Heap of up to 1 MiB that was zeroed may stay accessible for the next user, who has not asked for it yet: it is not in use,
/// counts against the limit of memory, and [`Domain::trim`] takes it back. If resetting fails, or if somebody kept a handle to it (a clone
/// of the [`Domain`], a [`Func`](crate::Func)), it is dropped instead of being handed out again.
///
/// # Examples
/// ```no_run
/// use ringfence::{Imports, Module, Pool};
///
/// let module = Module::open("tenant.rf")?;
/// let pool = Pool::new(16, move || module.instantiate(Imports::new()));
/// // For each request:
/// let domain = pool.take()?;
/// let handle = domain.func::<(u32,), u32>("handle")?;
/// let answer = handle.call(42)?;
/// drop(handle); // before the domain goes back
/// # let _ = answer;
/// # Ok::<(), ringfence::Error>(())
/// ```
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    make: Box<dyn Fn() -> Result<Domain, DomainError> + Send + Sync>,
    most: usize,
    idle: Mutex<Vec<Domain>>,
}

impl Shared {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Domain>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, domain: Domain) {
        if !domain.0.is_unique() || domain.0.recycle().is_err() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() < self.most {
            idle.push(domain);
        }
    }
}

impl Pool {
    /// A pool that keeps up to `most` domains while nobody uses them, and makes more with `make` when it has none.
    pub fn new(most: usize, make: impl Fn() -> Result<Domain, DomainError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            make: Box::new(make),
            most,
            idle: Mutex::default(),
        }))
    }

    /// A pool of domains that start from a snapshot.
    pub fn from_snapshot(
        most: usize,
        snapshot: Snapshot,
        imports: impl Fn() -> Imports + Send + Sync + 'static,
    ) -> Self {
        Self::new(most, move || match snapshot.instantiate(imports()) {
            Ok(domain) => Ok(domain),
            Err(SnapshotError::Domain(e)) => Err(e),
            Err(other) => Err(DomainError::Snapshot(Box::new(other))),
        })
    }

    /// A clean domain. It goes back when the guard is dropped.
    ///
    /// # Errors
    /// What `make` returned, if the pool had to make one.
    pub fn take(&self) -> Result<Pooled, DomainError> {
        let waiting = self.0.idle().pop();
        let domain = match waiting {
            Some(domain) => domain,
            None => (self.0.make)()?,
        };
        Ok(Pooled {
            domain: Some(domain),
            pool: self.0.clone(),
        })
    }

    /// Makes domains until `count` of them wait, or as many as the pool keeps.
    ///
    /// # Errors
    /// What `make` returned. Those made before stay.
    pub fn fill(&self, count: usize) -> Result<(), DomainError> {
        while self.waiting() < count.min(self.0.most) {
            let domain = (self.0.make)()?;
            self.0.idle().push(domain);
        }
        Ok(())
    }

    /// How many domains wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.idle().len()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {} wait)", self.waiting(), self.0.most)
    }
}

/// A domain from a [`Pool`], given back when this is dropped.
pub struct Pooled {
    /// `None` only while it is dropped.
    domain: Option<Domain>,
    pool: Arc<Shared>,
}

impl Deref for Pooled {
    type Target = Domain;
    fn deref(&self) -> &Domain {
        self.domain.as_ref().expect("there until the guard is dropped")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        if let Some(domain) = self.domain.take() {
            self.pool.put(domain);
        }
    }
}

impl fmt::Debug for Pooled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
