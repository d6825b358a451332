//! The domain's memory, as system calls name it.

use ringfence_core::DomainRef;
use ringfence_core::work::Budget;

use crate::slices::total;
use crate::span::Span;
use crate::sys::Outcome;

/// Most elements of an `iovec` array, as in Linux.
const IOV_MAX: u64 = 1024;

/// Longest path, its NUL included, as in Linux.
pub const PATH_MAX: usize = 4096;

/// Most bytes of one copy for a call: a slice of a transfer, or the sets and vectors of 65,536 descriptors.
const MOST: u64 = 1 << 20;

/// A buffer for a copy.
pub fn zeroed(len: usize) -> Outcome<Vec<u8>> {
    let mut bytes = Budget::new(0, MOST).vec(len).map_err(|_| libc::ENOMEM)?;
    bytes.resize(len, 0);
    Ok(bytes)
}

/// Access to a domain's memory with the errors that system calls give.
#[derive(Clone, Copy)]
pub struct Memory<'a>(pub DomainRef<'a>);

impl Memory<'_> {
    /// Whether a range ends inside the window.
    fn inside(self, pointer: u64, len: u64) -> bool {
        let end = (pointer & 0xFFFF_FFFF).checked_add(len);
        end.is_some_and(|end| end <= 1 << 32)
    }

    /// The range at `pointer`, which must end inside the window, for the kernel to read, or to fill if it `fills` it: up to where
    /// the domain's rights end, if it can tell.
    pub fn span(self, pointer: u64, len: u64, fills: bool) -> Outcome<Span> {
        if !self.inside(pointer, len) {
            return Err(libc::EFAULT);
        }
        let address = self.0.translate(pointer);
        if self.0.is_foreign(address) {
            // How far the rights reach is looked up when it is copied.
            return Ok(Span::foreign(address, len));
        }
        match self.0.reach(address, len, fills) {
            0 if len > 0 => Err(libc::EFAULT),
            reach => Ok(Span::checked(address, reach)),
        }
    }

    /// The part of a span, of a slice at most, where the domain has rights.
    pub fn reached(self, span: Span, fills: bool) -> Span {
        match span.is_foreign() {
            true => span.first(self.0.reach(span.address(), span.len(), fills)),
            false => span,
        }
    }

    /// Copies `N` bytes out of the domain, once.
    pub fn get<const N: usize>(self, pointer: u64) -> Outcome<[u8; N]> {
        let mut bytes = [0; N];
        self.0
            .read(self.0.translate(pointer), &mut bytes)
            .map_err(|_| libc::EFAULT)?;
        Ok(bytes)
    }

    /// Copies `len` bytes out of the domain, once.
    pub fn get_bytes(self, pointer: u64, len: usize) -> Outcome<Vec<u8>> {
        let mut bytes = zeroed(len)?;
        self.0
            .read(self.0.translate(pointer), &mut bytes)
            .map_err(|_| libc::EFAULT)?;
        Ok(bytes)
    }

    /// Copies `N` words out of the domain, once.
    pub fn words<const N: usize>(self, pointer: u64) -> Outcome<[u64; N]> {
        let bytes = self.get_bytes(pointer, 8 * N)?;
        let mut words = [0; N];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_ne_bytes(chunk.try_into().unwrap_or_default());
        }
        Ok(words)
    }

    /// Copies bytes into the domain.
    pub fn put(self, pointer: u64, bytes: &[u8]) -> Outcome<()> {
        self.0
            .write(self.0.translate(pointer), bytes)
            .map_err(|_| libc::EFAULT)
    }

    /// A `timespec`, with its nanoseconds in range.
    pub fn time(self, pointer: u64) -> Outcome<[i64; 2]> {
        let [seconds, nanoseconds] = self.words::<2>(pointer)?.map(|w| w as i64);
        if seconds < 0 || !(0..1_000_000_000).contains(&nanoseconds) {
            return Err(libc::EINVAL);
        }
        Ok([seconds, nanoseconds])
    }

    /// A path, without its NUL.
    pub fn path(self, pointer: u64) -> Outcome<Vec<u8>> {
        if pointer as u32 == 0 {
            return Err(libc::EFAULT);
        }
        let path = self.0.read_c_string(self.0.translate(pointer), PATH_MAX);
        // No NUL within the limit and no memory look the same; the limit is the likelier one only if all is readable.
        path.map_err(|_| match self.get_bytes(pointer, PATH_MAX) {
            Ok(_) => libc::ENAMETOOLONG,
            Err(e) => e,
        })
    }

    /// An `iovec` array, copied once, each element checked.
    pub fn spans(self, pointer: u64, count: u64, fills: bool) -> Outcome<Vec<Span>> {
        if count > IOV_MAX {
            return Err(libc::EINVAL);
        }
        let bytes = self.get_bytes(pointer, 16 * count as usize)?;
        let word = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        let mut spans: Vec<Span> = Vec::with_capacity(count as usize);
        for (pointer, len) in (0..count as usize).map(|i| (word(16 * i), word(16 * i + 8))) {
            match self.span(pointer, len, fills) {
                Ok(span) => spans.push(span),
                // What went before is moved, as by the kernel, unless the numbers make no range.
                Err(_) if self.inside(pointer, len) && total(&spans) > 0 => break,
                Err(errno) => return Err(errno),
            }
            if spans.last().is_some_and(|s| s.len() < len) {
                break;
            }
        }
        Ok(spans)
    }
}
