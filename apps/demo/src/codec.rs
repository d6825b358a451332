//! zlib's `compress2` and `uncompress`, in a domain and outside of one.

use ringfence::{Domain, Error, Ptr};
use std::ffi::{CString, c_int, c_ulong, c_void};
use std::path::Path;

/// zlib's default.
const LEVEL: i32 = 6;

/// Room for the result: zlib's own bound, generously.
fn bound(len: usize) -> usize {
    len + len / 1000 + 64
}

/// Compresses inside the domain. Nothing that it says is believed before it is checked.
pub fn compress(domain: &Domain, input: &[u8]) -> Result<Vec<u8>, Error> {
    type Compress = (Ptr<u8>, Ptr<u64>, Ptr<u8>, u64, i32);
    let compress2 = domain.func::<Compress, i32>("compress2")?;
    let memory = domain.memory();
    let from = memory.put_slice(input)?;
    let to = memory.alloc_array::<u8>(bound(input.len()))?;
    let length = memory.put(to.len() as u64)?;
    compress2
        .call(to.ptr(), length.ptr(), from.ptr(), from.len() as u64, LEVEL)?
        .one_of(&[0])?;
    let length = length.read()?.within(0..=to.len() as u64)? as usize;
    Ok(memory.read_vec(to.ptr(), length)?.check(|_| true)?)
}

/// Restores inside the domain.
pub fn restore(domain: &Domain, packed: &[u8], len: usize) -> Result<Vec<u8>, Error> {
    type Uncompress = (Ptr<u8>, Ptr<u64>, Ptr<u8>, u64);
    let uncompress = domain.func::<Uncompress, i32>("uncompress")?;
    let memory = domain.memory();
    let from = memory.put_slice(packed)?;
    let to = memory.alloc_array::<u8>(len)?;
    let length = memory.put(len as u64)?;
    uncompress
        .call(to.ptr(), length.ptr(), from.ptr(), from.len() as u64)?
        .one_of(&[0])?;
    let length = length.read()?.within(0..=len as u64)? as usize;
    Ok(memory.read_vec(to.ptr(), length)?.check(|_| true)?)
}

type Compress2 = extern "C" fn(*mut u8, *mut c_ulong, *const u8, c_ulong, c_int) -> c_int;
type Uncompress = extern "C" fn(*mut u8, *mut c_ulong, *const u8, c_ulong) -> c_int;

/// The same library as everybody else loads it.
pub struct Native {
    compress2: Compress2,
    uncompress: Uncompress,
}

impl Native {
    /// Loads it with `dlopen`, for good.
    pub fn load(file: &Path) -> Result<Self, String> {
        let path = CString::new(file.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: a C string; zlib has no constructors
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let symbol = |name: &std::ffi::CStr| {
            // SAFETY: dlsym copes with the null handle of a failed dlopen, which means "this program"
            let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
            if handle.is_null() || address.is_null() {
                Err(format!("{} has no {name:?}", file.display()))
            } else {
                Ok(address)
            }
        };
        let (compress2, uncompress) = (symbol(c"compress2")?, symbol(c"uncompress")?);
        Ok(Native {
            // SAFETY: zlib.h declares it like this
            compress2: unsafe { std::mem::transmute::<*mut c_void, Compress2>(compress2) },
            // SAFETY: zlib.h declares it like this
            uncompress: unsafe { std::mem::transmute::<*mut c_void, Uncompress>(uncompress) },
        })
    }

    /// Compresses; empty on failure.
    pub fn compress(&self, input: &[u8]) -> Vec<u8> {
        let mut to = vec![0; bound(input.len())];
        let mut length = to.len() as c_ulong;
        let status = (self.compress2)(
            to.as_mut_ptr(),
            &mut length,
            input.as_ptr(),
            input.len() as c_ulong,
            LEVEL,
        );
        to.truncate(if status == 0 { length as usize } else { 0 });
        to
    }

    /// Restores; empty on failure.
    pub fn restore(&self, packed: &[u8], len: usize) -> Vec<u8> {
        let mut to = vec![0; len];
        let mut length = len as c_ulong;
        let status = (self.uncompress)(
            to.as_mut_ptr(),
            &mut length,
            packed.as_ptr(),
            packed.len() as c_ulong,
        );
        to.truncate(if status == 0 { length as usize } else { 0 });
        to
    }
}
