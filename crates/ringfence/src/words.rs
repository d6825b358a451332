//! Objects of the host's that modules reach word for word, as far as rights go (`--isolation=words`).

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, fence};

use bytemuck::Pod;
use ringfence_core::{Feature, Rights, WordsError};
use ringfence_runtime as runtime;

use crate::{Domain, Imports};

/// Memory of the host's for objects that domains can be given rights to, word for word: 4 bytes.
///
/// Its addresses mean the same to host and domains: a pointer goes to a module as it is, and so do pointers inside objects. Cheap to clone.
///
/// # Examples
/// ```no_run
/// use ringfence::{Arena, Domain, DomainOptions, Imports, LoadOptions, Module, Rights};
///
/// let mut options = LoadOptions::default();
/// options.allow_words = true;
/// let module = Module::open_with("driver.rf", &options)?;
/// let arena = Arena::new(1 << 20)?;
/// let domain = Domain::new(&module, Imports::new().arena(&arena))?;
/// let packet = arena.put([[0_u32; 4]; 9])?;
/// // 32 of 144 bytes.
/// domain.give_words(packet.address(), 32, Rights::Write)?;
/// let fill = domain.func::<(u64,), i32>("fill")?;
/// fill.call(packet.address())?;
/// println!("{:?}", packet.read());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Arena(pub(crate) runtime::Arena);

impl Arena {
    /// An arena for up to `len` bytes of objects, at most 490 MiB. What is not used takes no memory.
    ///
    /// # Errors
    /// [`WordsError::Length`], [`WordsError::Host`].
    pub fn new(len: u64) -> Result<Self, WordsError> {
        runtime::Arena::new(len).map(Self)
    }

    /// An object with this value. No domain has rights to it.
    ///
    /// # Errors
    /// [`WordsError::Full`]; [`WordsError::Length`] for a value that needs more than an alignment of 16.
    pub fn put<T: Pod>(&self, value: T) -> Result<InArena<T>, WordsError> {
        let len = size_of::<T>() as u64;
        if align_of::<T>() > 16 {
            return Err(WordsError::Length { len, most: 16 });
        }
        let object = InArena {
            arena: self.clone(),
            address: self.0.alloc(len)?,
            value: PhantomData,
        };
        object.write(value);
        Ok(object)
    }

    /// A place for `len` bytes, zeroed, at a multiple of 16, until [`free`](Self::free). No domain has rights to it.
    ///
    /// # Errors
    /// [`WordsError::Full`], [`WordsError::Length`].
    pub fn alloc(&self, len: u64) -> Result<u64, WordsError> {
        self.0.alloc(len)
    }

    /// Takes a place back. All domains lose their rights to it first.
    ///
    /// # Errors
    /// [`WordsError::NoObject`]: none begins there.
    pub fn free(&self, address: u64) -> Result<(), WordsError> {
        self.0.free(address)
    }
}

/// An object in an [`Arena`], which owns it. Domains with rights may read and change it at any time.
pub struct InArena<T: Pod> {
    arena: Arena,
    address: u64,
    value: PhantomData<T>,
}

impl<T: Pod> InArena<T> {
    /// Its address: what goes to a module, and into other objects as a pointer.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.address
    }

    /// A copy of the value, as it is now. Where a domain writes meanwhile, parts are old and parts are new.
    #[must_use]
    pub fn read(&self) -> T {
        fence(Ordering::Acquire);
        // SAFETY: an object of the arena, aligned for the type, of which every pattern of bits is a value; others may write it, so
        // it is not read as what nobody else changes.
        unsafe { (self.address as *const T).read_volatile() }
    }

    /// Changes the value.
    pub fn write(&self, value: T) {
        // SAFETY: as in `read`; nobody has a reference to it.
        unsafe { (self.address as *mut T).write_volatile(value) };
        fence(Ordering::Release);
    }
}

impl<T: Pod> Drop for InArena<T> {
    fn drop(&mut self) {
        // It is there: nobody else frees it but by its address.
        let _ = self.arena.free(self.address);
    }
}

impl<T: Pod> fmt::Debug for InArena<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InArena({:#x})", self.address)
    }
}

impl Imports {
    /// Gives the arena whose objects the domain may get rights to. All the domain's modules are then of `--isolation=words`.
    #[must_use]
    pub fn arena(self, arena: &Arena) -> Self {
        Self(self.0.arena(&arena.0), self.1)
    }
}

impl Domain {
    /// What the domain may do from now on with `len` bytes at `address` of its [`Arena`]: whole words of 4 bytes of one object. Where
    /// rights are taken away, every access that begins afterwards is denied; one that was just allowed may still be made, once for each
    /// thread inside. A fault or a reset takes no rights away.
    ///
    /// # Errors
    /// [`WordsError`].
    pub fn give_words(&self, address: u64, len: u64, rights: Rights) -> Result<(), WordsError> {
        let domain = self.0.window(Feature::Words).map_err(|_| WordsError::NoArena)?;
        domain.give_words(address, len, rights)
    }

    /// What the domain may do with the word of its [`Arena`] at `address`.
    #[must_use]
    pub fn word_rights(&self, address: u64) -> Rights {
        let domain = self.0.window(Feature::Words);
        domain.map_or(Rights::None, |domain| domain.word_rights(address))
    }
}
