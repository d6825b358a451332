//! What the handles of arenas stand for.

use std::ffi::c_void;

use ringfence::Arena;

use crate::handles::Table;
use crate::status::{Failure, Status};

/// All arenas that have a handle.
pub(crate) static ARENAS: Table<Arena> = Table::new(0x5AC);

/// The arena behind a handle.
pub(crate) fn arena(handle: *const c_void) -> Result<Arena, Failure> {
    let found = ARENAS.get(handle as u64);
    found.map_err(|_| Failure::new(Status::ERROR_HANDLE, "not an open arena handle"))
}
