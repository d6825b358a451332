//! What lanes ask about the first access to words of a checked heap.

/// Who knows which words were written. It allocates nothing, and does not wait for long: a signal handler asks.
pub(crate) trait Fresh: Send + Sync {
    /// An access to `len` bytes, `at` so many from the arena's start, was denied. Whether it may be tried again: a write to words that were
    /// never written, or a read of some that were not, among others that were.
    fn touch(&self, at: u32, len: u8, write: bool) -> bool;
}
