//! Memory that several domains share, each with its own rights.

use std::fmt;
use std::os::fd::OwnedFd;

use bytemuck::{AnyBitPattern, NoUninit};
use ringfence_core::DomainRef;
use ringfence_runtime::supervisor::{self, Actor, Recipient};
use ringfence_runtime::{Feature, RegionError, Rights, Unsupported};

use crate::{Domain, MemoryError, Ptr, Untrusted};

/// The domain's window, if its back end has regions.
fn window(domain: &Domain) -> Result<DomainRef<'_>, Unsupported> {
    domain.backend().require(Feature::Regions)?;
    Ok(domain.instance().space())
}

/// Memory that any number of domains map, each with rights of its own: none, read, read and write.
///
/// A region lies at the same [offset](Region::offset) in every window, so translating a pointer into it from one
/// domain to another is an addition. The host has a view of its own. Rights change at any time, also while domains run; a domain
/// that uses memory that it just lost gets a fault.
///
/// Clones are the same region. When the last one goes, the region is freed and all rights to it end, unless a
/// domain [owns](Region::owned_by) it: then it lives as long as that domain.
///
/// # Examples
/// ```no_run
/// use ringfence::{Domain, Imports, Module, Region, Rights};
///
/// let module = Module::open("filter.rf")?;
/// let (writer, reader) = (module.instantiate(Imports::new())?, module.instantiate(Imports::new())?);
/// let frame = Region::new(1 << 20)?;
/// frame.give(&writer, Rights::Write)?;
/// frame.give(&reader, Rights::Read)?;
/// writer.func::<(ringfence::Ptr<u8>, u64), ()>("draw")?.call(frame.ptr_in(&writer), frame.len())?;
/// let sum = reader.func::<(ringfence::Ptr<u8>, u64), u32>("sum")?.call(frame.ptr_in(&reader), frame.len())?;
/// frame.give(&writer, Rights::None)?; // from now on it faults if it writes
/// # let _ = sum;
/// # Ok::<(), ringfence::Error>(())
/// ```
#[derive(Clone)]
pub struct Region(supervisor::Region);

impl Region {
    /// New zeroed memory that the host owns. Nobody else has rights to it yet.
    ///
    /// # Errors
    /// [`RegionError::Size`], [`RegionError::Space`], [`RegionError::Host`].
    pub fn new(len: u64) -> Result<Self, RegionError> {
        supervisor::Region::new(len).map(Self)
    }

    /// New zeroed memory that `owner` owns: it has all rights to it, may give them away, and takes it along when it goes.
    ///
    /// # Errors
    /// As [`Region::new`].
    pub fn owned_by(owner: &Domain, len: u64) -> Result<Self, RegionError> {
        supervisor::Region::owned_by(window(owner)?, len).map(Self)
    }

    /// The first `len` bytes of a memory file, which is sealed against shrinking. Nobody gets more than `most`.
    ///
    /// # Errors
    /// [`RegionError::NotSealable`] for ordinary files, [`RegionError::Short`], and as [`Region::new`].
    pub fn from_file(file: OwnedFd, len: u64, most: Rights) -> Result<Self, RegionError> {
        supervisor::Region::from_file(file, len, most).map(Self)
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Always false: there are no empty regions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Offset from the base, the same in every window.
    #[must_use]
    pub fn offset(&self) -> u32 {
        self.0.offset()
    }

    /// Where it is in `domain`, whether the domain has rights to it or not.
    #[must_use]
    pub fn ptr_in<T>(&self, domain: &Domain) -> Ptr<T> {
        Ptr::from_address(self.0.address_in(domain.instance().space()))
    }

    /// Sets what `domain` may do, at once. [`Rights::None`] takes back what was given to it; what it owns, or has
    /// through a group, stays.
    ///
    /// # Errors
    /// [`RegionError::Rights`] if that exceeds what anybody can have, [`RegionError::Host`].
    pub fn give(&self, domain: &Domain, rights: Rights) -> Result<(), RegionError> {
        self.0
            .give(Actor::Host, Recipient::Domain(window(domain)?), rights)
    }

    /// Sets what all members of `group` may do, present and future.
    ///
    /// # Errors
    /// As [`Region::give`].
    pub fn give_group(&self, group: &Group, rights: Rights) -> Result<(), RegionError> {
        self.0.give(Actor::Host, Recipient::Group(&group.0), rights)
    }

    /// As [`Region::give`], at the wish of the domain `giver`: only the region's owner may.
    ///
    /// # Errors
    /// [`RegionError::Rights`] if `giver` does not own the region or wants to give more than it has.
    pub fn give_as(&self, giver: &Domain, domain: &Domain, rights: Rights) -> Result<(), RegionError> {
        self.0.give(
            Actor::Domain(window(giver)?),
            Recipient::Domain(window(domain)?),
            rights,
        )
    }

    /// As [`Region::give_group`], at the wish of the domain `giver`.
    ///
    /// # Errors
    /// As [`Region::give_as`].
    pub fn give_group_as(&self, giver: &Domain, group: &Group, rights: Rights) -> Result<(), RegionError> {
        self.0
            .give(Actor::Domain(window(giver)?), Recipient::Group(&group.0), rights)
    }

    /// What `domain` may do, all taken together.
    #[must_use]
    pub fn rights_of(&self, domain: &Domain) -> Rights {
        window(domain).map_or(Rights::None, |d| self.0.rights_of(d))
    }

    /// Takes the region from all domains. The host's view stays until the last handle goes.
    ///
    /// # Errors
    /// [`RegionError::Rights`] if it was freed before.
    pub fn free(&self) -> Result<(), RegionError> {
        self.0.free(Actor::Host)
    }

    /// As [`Region::free`], at the wish of the domain `owner`.
    ///
    /// # Errors
    /// [`RegionError::Rights`] if it does not own the region.
    pub fn free_as(&self, owner: &Domain) -> Result<(), RegionError> {
        self.0.free(Actor::Domain(window(owner)?))
    }

    /// A copy of the value at `offset` of the host's view. Domains may change the original meanwhile.
    ///
    /// # Errors
    /// [`MemoryError::Outside`].
    pub fn read<T: AnyBitPattern>(&self, offset: u64) -> Result<Untrusted<T>, MemoryError> {
        let mut value = std::mem::MaybeUninit::<T>::zeroed();
        // SAFETY: `value` is ours, and all its bytes, padding included, have just been zeroed.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
        self.0.read(offset, bytes)?;
        // SAFETY: every bit pattern is a `T`.
        Ok(Untrusted::new(unsafe { value.assume_init() }))
    }

    /// A copy of `len` bytes from `offset` on.
    ///
    /// # Errors
    /// [`MemoryError::Outside`], before anything is allocated.
    pub fn read_bytes(&self, offset: u64, len: usize) -> Result<Untrusted<Vec<u8>>, MemoryError> {
        let len64 = len as u64;
        if offset.checked_add(len64).is_none_or(|end| end > self.len()) {
            return Err(MemoryError::Outside {
                address: offset,
                len: len64,
            });
        }
        let mut bytes = vec![0; len];
        self.0.read(offset, &mut bytes)?;
        Ok(Untrusted::new(bytes))
    }

    /// Writes `value` at `offset`, for all domains that can read to see.
    ///
    /// # Errors
    /// [`MemoryError::Outside`]; [`MemoryError::Unmapped`] if the region is one that nobody can write.
    pub fn write<T: NoUninit>(&self, offset: u64, value: T) -> Result<(), MemoryError> {
        self.0.write(offset, bytemuck::bytes_of(&value))
    }

    /// Writes all of `values` from `offset` on.
    ///
    /// # Errors
    /// As [`Region::write`].
    pub fn write_slice<T: NoUninit>(&self, offset: u64, values: &[T]) -> Result<(), MemoryError> {
        self.0.write(offset, bytemuck::cast_slice(values))
    }

    /// Address of the host's own view, for hosts that need atomics in it. Mapped while this handle lives; domains write it at
    /// any time, so it must never be made a reference.
    #[must_use]
    pub fn host_address(&self) -> *mut u8 {
        self.0.host_address()
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Domains that are given rights together.
///
/// Rights given to a group hold for all its members; a domain has the greatest of what it was given itself and what its
/// groups were given. When the last handle goes, the group ends, unless a domain owns it.
///
/// # Examples
/// ```no_run
/// # use ringfence::{Group, Imports, Module, Region, Rights};
/// # let domain = Module::open("x.rf")?.instantiate(Imports::new())?;
/// let (readers, table) = (Group::new(false), Region::new(4096)?);
/// table.give_group(&readers, Rights::Read)?;
/// readers.admit(&domain)?; // may read from now on
/// # Ok::<(), ringfence::Error>(())
/// ```
#[derive(Clone)]
pub struct Group(supervisor::Group);

impl Group {
    /// A group that the host owns. Domains join an open one at their own wish.
    #[must_use]
    pub fn new(open: bool) -> Self {
        Self(supervisor::Group::new(open))
    }

    /// A group that a domain owns.
    ///
    /// # Errors
    /// [`RegionError::Rights`].
    pub fn owned_by(owner: &Domain, open: bool) -> Result<Self, RegionError> {
        supervisor::Group::owned_by(window(owner)?, open).map(Self)
    }

    /// The host lets `domain` in.
    ///
    /// # Errors
    /// [`RegionError::Rights`] if the group has ended, [`RegionError::Host`].
    pub fn admit(&self, domain: &Domain) -> Result<(), RegionError> {
        self.0.admit(Actor::Host, window(domain)?)
    }

    /// `actor` lets `domain` in: itself, if the group is open, or anybody, if it owns the group.
    ///
    /// # Errors
    /// [`RegionError::Rights`] if the group is closed, or not `actor`'s.
    pub fn admit_as(&self, actor: &Domain, domain: &Domain) -> Result<(), RegionError> {
        self.0.admit(Actor::Domain(window(actor)?), window(domain)?)
    }

    /// The host takes `domain` out.
    ///
    /// # Errors
    /// [`RegionError::Rights`] if it is not in.
    pub fn expel(&self, domain: &Domain) -> Result<(), RegionError> {
        self.0.expel(Actor::Host, window(domain)?)
    }

    /// `actor` takes `domain` out: itself, or anybody, if it owns the group.
    ///
    /// # Errors
    /// [`RegionError::Rights`].
    pub fn expel_as(&self, actor: &Domain, domain: &Domain) -> Result<(), RegionError> {
        self.0.expel(Actor::Domain(window(actor)?), window(domain)?)
    }
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
