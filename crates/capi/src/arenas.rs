//! What the handles of arenas stand for.

use std::ffi::c_void;

use ringfence::Arena;

use crate::arguments::{bad_handle, number};
use crate::handles::Table;
use crate::status::Failure;

/// All arenas that have a handle.
pub(crate) static ARENAS: Table<Arena> = Table::new(0x5AC);

/// The arena behind a handle.
pub(crate) fn arena(handle: *const c_void) -> Result<Arena, Failure> {
    ARENAS
        .get(number(handle))
        .map_err(|_| bad_handle("arena", handle))
}
