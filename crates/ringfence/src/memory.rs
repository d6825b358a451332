//! A domain's memory, as the host reads and writes it: by copies, with every range checked.

use std::fmt;
use std::mem::MaybeUninit;

use bytemuck::{AnyBitPattern, NoUninit, Pod, Zeroable};
use ringfence_runtime::domain::DomainRef;

use crate::{MemoryError, Ptr, TextError, Untrusted};

/// The memory of one domain.
///
/// Every access is checked against the domain's window, and a page that is not there, or that the domain takes
/// away at that very moment, is an error value. There are no references into a domain's memory: its threads
/// may write it at any time, so the host works on copies.
///
/// Pointers may be passed as they come, [`Ptr<T>`] or [`Untrusted<Ptr<T>>`](Untrusted).
#[derive(Clone, Copy)]
pub struct Memory<'a>(DomainRef<'a>);

/// How much `read_vec` reads at once, in bytes.
const PIECE: usize = 1 << 20;

/// Bytes that `count` elements take; a number of elements that no window holds stays one.
fn bytes_of<T>(count: usize) -> u64 {
    (count as u64).saturating_mul(size_of::<T>() as u64)
}

impl<'a> Memory<'a> {
    pub(crate) fn new(domain: DomainRef<'a>) -> Self {
        Self(domain)
    }

    /// The window's first address. The window is 4 GiB long.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.0.base()
    }

    /// Whether the `count` elements at `at` can be the domain's: with a window, lie in it. Says nothing about what is mapped there.
    #[must_use]
    pub fn contains<T>(&self, at: impl Into<Ptr<T>>, count: usize) -> bool {
        self.range(at.into().address(), bytes_of::<T>(count)).is_ok()
    }

    fn range(&self, address: u64, len: u64) -> Result<(), MemoryError> {
        self.0.check(address, len)
    }

    /// A copy of the value at `at`.
    ///
    /// # Errors
    /// [`MemoryError`] when it is not inside the window, or not mapped.
    #[inline]
    pub fn read<T: AnyBitPattern>(&self, at: impl Into<Ptr<T>>) -> Result<Untrusted<T>, MemoryError> {
        let mut value = MaybeUninit::<T>::zeroed();
        // SAFETY: `value` is ours, and all its bytes, padding included, have just been zeroed.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>()) };
        self.0.read(at.into().address(), bytes)?;
        // SAFETY: every bit pattern is a `T`.
        Ok(Untrusted::new(unsafe { value.assume_init() }))
    }

    /// Fills `to` with the elements at `at`. On an error some of `to` may have been written.
    ///
    /// # Errors
    /// [`MemoryError`] when they are not wholly inside the window, or not mapped.
    pub fn read_slice<T: Pod>(&self, at: impl Into<Ptr<T>>, to: &mut [T]) -> Result<(), MemoryError> {
        self.0.read(at.into().address(), bytemuck::cast_slice_mut(to))
    }

    /// A copy of the `count` elements at `at`.
    ///
    /// `count` usually comes from the domain: bound it before. Even if you do not, no more host memory is allocated than
    /// twice what the domain has mapped there.
    ///
    /// # Errors
    /// [`MemoryError`] when they are not wholly inside the window, or not mapped.
    pub fn read_vec<T: AnyBitPattern>(
        &self,
        at: impl Into<Ptr<T>>,
        count: usize,
    ) -> Result<Untrusted<Vec<T>>, MemoryError> {
        let at = at.into();
        self.range(at.address(), bytes_of::<T>(count))?;
        let mut values = Vec::<T>::new();
        // In pieces, so that a count that the domain made up fails at the first page that is not there.
        let piece = (PIECE / size_of::<T>().max(1)).max(1);
        while values.len() < count {
            let n = piece.min(count - values.len());
            if count <= piece {
                values.reserve_exact(n)
            } else {
                values.reserve(n)
            }
            let done = values.len();
            let spare = values.spare_capacity_mut().as_mut_ptr().cast::<u8>();
            // SAFETY: there is room for `n` more; afterwards all their bytes, padding included, are initialised.
            let bytes = unsafe {
                spare.write_bytes(0, n * size_of::<T>());
                std::slice::from_raw_parts_mut(spare, n * size_of::<T>())
            };
            self.0.read(at.wrapping_add(done as u64).address(), bytes)?;
            // SAFETY: these elements have been written, and every bit pattern is a `T`.
            unsafe { values.set_len(done + n) };
        }
        Ok(Untrusted::new(values))
    }

    /// The bytes of the NUL-terminated string at `at`, without the NUL, at most `limit` of them.
    ///
    /// # Errors
    /// [`TextError::TooLong`] if no NUL comes within `limit` bytes; [`TextError::Memory`].
    pub fn read_c_string(
        &self,
        at: impl Into<Ptr<u8>>,
        limit: usize,
    ) -> Result<Untrusted<Vec<u8>>, TextError> {
        let start = at.into().address();
        let mut bytes = Vec::new();
        let mut piece = [0u8; 256];
        while bytes.len() <= limit {
            let address = start.wrapping_add(bytes.len() as u64);
            // Not across a page's end: the string may be the last thing that is mapped.
            let to_page_end = (ringfence_isa::PAGE - address % ringfence_isa::PAGE) as usize;
            let n = piece.len().min(to_page_end);
            self.0.read(address, &mut piece[..n])?;
            if let Some(end) = piece[..n].iter().position(|&b| b == 0) {
                bytes.extend_from_slice(&piece[..end]);
                if bytes.len() <= limit {
                    return Ok(Untrusted::new(bytes));
                }
                break;
            }
            bytes.extend_from_slice(&piece[..n]);
        }
        Err(TextError::TooLong {
            address: start,
            limit,
        })
    }

    /// The NUL-terminated UTF-8 string at `at`, at most `limit` bytes long.
    ///
    /// # Errors
    /// [`TextError`] when it is too long, not UTF-8, or cannot be read.
    pub fn read_string(&self, at: impl Into<Ptr<u8>>, limit: usize) -> Result<Untrusted<String>, TextError> {
        let at = at.into();
        let bytes = self.read_c_string(at, limit)?.into_inner_unchecked();
        String::from_utf8(bytes)
            .map(Untrusted::new)
            .map_err(|e| TextError::NotUtf8 {
                address: at.address(),
                valid: e.utf8_error().valid_up_to(),
            })
    }

    /// Writes `value` at `at`.
    ///
    /// # Errors
    /// [`MemoryError`] when it is not inside the window, or not writable.
    #[inline]
    pub fn write<T: NoUninit>(&self, at: impl Into<Ptr<T>>, value: T) -> Result<(), MemoryError> {
        self.0.write(at.into().address(), bytemuck::bytes_of(&value))
    }

    /// Writes all of `from` at `at`.
    ///
    /// # Errors
    /// [`MemoryError`] when it is not wholly inside the window, or not writable.
    pub fn write_slice<T: NoUninit>(&self, at: impl Into<Ptr<T>>, from: &[T]) -> Result<(), MemoryError> {
        self.0.write(at.into().address(), bytemuck::cast_slice(from))
    }

    /// Whether the `len` bytes at `address` lie in the window, as an error if not.
    ///
    /// # Errors
    /// [`MemoryError::Outside`].
    pub fn check_range(&self, address: u64, len: u64) -> Result<(), MemoryError> {
        self.range(address, len)
    }

    /// Frees memory that was [left](Owned::leak) to the domain.
    ///
    /// # Errors
    /// [`MemoryError::NotAllocated`].
    pub fn free<T>(&self, at: Ptr<T>) -> Result<(), MemoryError> {
        self.0.free(at.address())
    }

    /// Allocates room for one `T` in the domain, zeroed. It is freed when the guard goes.
    ///
    /// # Errors
    /// [`MemoryError::Limit`] when the domain may have no more memory.
    pub fn alloc<T: Zeroable>(&self) -> Result<Owned<'a, T>, MemoryError> {
        self.alloc_array(1)
    }

    /// Allocates room for `count` elements in the domain, zeroed. It is freed when the guard goes.
    ///
    /// # Errors
    /// [`MemoryError::Limit`] when the domain may have no more memory.
    pub fn alloc_array<T: Zeroable>(&self, count: usize) -> Result<Owned<'a, T>, MemoryError> {
        let align = (align_of::<T>() as u64).max(16);
        let resets = self.0.resets();
        let address = self.0.alloc(bytes_of::<T>(count).max(1), align)?;
        Ok(Owned {
            memory: *self,
            ptr: Ptr::from_address(address),
            count,
            resets,
        })
    }

    /// Copies `value` into new memory of the domain.
    ///
    /// # Errors
    /// [`MemoryError::Limit`] when the domain may have no more memory.
    pub fn put<T: NoUninit + Zeroable>(&self, value: T) -> Result<Owned<'a, T>, MemoryError> {
        let owned = self.alloc()?;
        self.write(owned.ptr(), value)?;
        Ok(owned)
    }

    /// Copies `values` into new memory of the domain.
    ///
    /// # Errors
    /// [`MemoryError::Limit`] when the domain may have no more memory.
    pub fn put_slice<T: NoUninit + Zeroable>(&self, values: &[T]) -> Result<Owned<'a, T>, MemoryError> {
        let owned = self.alloc_array(values.len())?;
        self.write_slice(owned.ptr(), values)?;
        Ok(owned)
    }

    /// Copies `text` and a NUL into new memory of the domain. C code sees the text up to the first NUL in it.
    ///
    /// # Errors
    /// [`MemoryError::Limit`] when the domain may have no more memory.
    pub fn put_c_string(&self, text: impl AsRef<[u8]>) -> Result<Owned<'a, u8>, MemoryError> {
        let text = text.as_ref();
        let owned = self.alloc_array(text.len() + 1)?; // zeroed, so the NUL is there
        self.write_slice(owned.ptr(), text)?;
        Ok(owned)
    }
}

impl fmt::Debug for Memory<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memory({:#x})", self.base())
    }
}

/// Memory of a domain that the host allocated, freed when this value goes.
///
/// The domain can read and write it like all its memory, also after it was freed; the bookkeeping is out of its
/// reach. A [reset](crate::Domain::reset) of the domain frees all such memory; accesses through an older guard then
/// touch whatever is there, within the window.
pub struct Owned<'a, T> {
    memory: Memory<'a>,
    ptr: Ptr<T>,
    count: usize,
    /// How often the domain had been reset.
    resets: u64,
}

impl<T> Owned<'_, T> {
    /// The address, to pass to the domain.
    #[inline]
    #[must_use]
    pub fn ptr(&self) -> Ptr<T> {
        self.ptr
    }

    /// How many elements there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// A copy of the first element.
    ///
    /// # Errors
    /// [`MemoryError`], if the domain unmapped it.
    pub fn read(&self) -> Result<Untrusted<T>, MemoryError>
    where
        T: AnyBitPattern,
    {
        self.memory.read(self.ptr)
    }

    /// A copy of all elements.
    ///
    /// # Errors
    /// [`MemoryError`], if the domain unmapped them.
    pub fn to_vec(&self) -> Result<Untrusted<Vec<T>>, MemoryError>
    where
        T: AnyBitPattern,
    {
        self.memory.read_vec(self.ptr, self.count)
    }

    /// Leaves the memory to the domain, for good; it is freed by a reset, or with the domain.
    pub fn leak(self) -> Ptr<T> {
        let ptr = self.ptr;
        std::mem::forget(self);
        ptr
    }
}

impl<T> Drop for Owned<'_, T> {
    fn drop(&mut self) {
        self.memory.0.free_unless_reset(self.ptr.address(), self.resets);
    }
}

impl<T> fmt::Debug for Owned<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owned({:?}; {})", self.ptr, self.count)
    }
}
