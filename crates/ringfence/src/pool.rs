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
/// time limit. Heap of up to [`DomainOptions::idle_heap`](crate::DomainOptions::idle_heap) bytes that was zeroed stays accessible for the
/// next user, who has not asked for it yet: it is not in use, counts against the limit of memory, and [`Domain::trim`] takes it back. If resetting fails, or if somebody kept a handle to it (a clone
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
pub struct Pool<T: Member = Domain, E = DomainError>(Arc<Shared<T, E>>);

/// What a [`Pool`] keeps: a [`Domain`], or one with what the host keeps beside it.
pub trait Member: Send + 'static {
    /// The domain; nobody else may have a handle to it when it is given back.
    fn domain(&self) -> &Domain;
    /// The domain has been made like new: so must be what is kept beside it.
    fn cleaned(&self) {}
}

impl Member for Domain {
    fn domain(&self) -> &Domain {
        self
    }
}

struct Shared<T, E> {
    make: Box<dyn Fn() -> Result<T, E> + Send + Sync>,
    most: usize,
    idle: Mutex<Vec<T>>,
}

impl<T: Member, E> Shared<T, E> {
    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<T>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, member: T) {
        let domain = member.domain();
        if !domain.0.is_unique() || domain.instance().recycle().is_err() {
            return;
        }
        member.cleaned();
        let mut idle = self.idle();
        if idle.len() < self.most {
            idle.push(member);
        }
    }
}

impl<T: Member, E> Clone for Pool<T, E> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl Pool {
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
}

impl<T: Member, E> Pool<T, E> {
    /// A pool that keeps up to `most` domains while nobody uses them, and makes more with `make` when it has none.
    pub fn new(most: usize, make: impl Fn() -> Result<T, E> + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            make: Box::new(make),
            most,
            idle: Mutex::default(),
        }))
    }

    /// A clean domain. It goes back when the guard is dropped.
    ///
    /// # Errors
    /// What `make` returned, if the pool had to make one.
    pub fn take(&self) -> Result<Pooled<T, E>, E> {
        Ok(Pooled {
            member: Some(self.take_out()?),
            pool: self.0.clone(),
        })
    }

    /// A clean domain, without a guard: for hosts that [give](Pool::give) it back by hand.
    ///
    /// # Errors
    /// What `make` returned, if the pool had to make one.
    pub fn take_out(&self) -> Result<T, E> {
        let waiting = self.0.idle().pop();
        match waiting {
            Some(member) => Ok(member),
            None => (self.0.make)(),
        }
    }

    /// Takes a domain back that was [taken out](Pool::take_out).
    pub fn give(&self, member: T) {
        self.0.put(member);
    }

    /// Makes domains until `count` of them wait, or as many as the pool keeps.
    ///
    /// # Errors
    /// What `make` returned. Those made before stay.
    pub fn fill(&self, count: usize) -> Result<(), E> {
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

impl<T: Member, E> fmt::Debug for Pool<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({} of {} wait)", self.waiting(), self.0.most)
    }
}

/// A domain from a [`Pool`], given back when this is dropped.
pub struct Pooled<T: Member = Domain, E = DomainError> {
    /// `None` only while it is dropped.
    member: Option<T>,
    pool: Arc<Shared<T, E>>,
}

impl<T: Member, E> Deref for Pooled<T, E> {
    type Target = Domain;
    fn deref(&self) -> &Domain {
        self.member
            .as_ref()
            .expect("there until the guard is dropped")
            .domain()
    }
}

impl<T: Member, E> Drop for Pooled<T, E> {
    fn drop(&mut self) {
        if let Some(member) = self.member.take() {
            self.pool.put(member);
        }
    }
}

impl<T: Member, E> fmt::Debug for Pooled<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}
