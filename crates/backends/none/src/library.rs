//! A shared object in this process: a private copy of its file, opened with `dlopen`.

use crate::Module;
use ringfence_calls::peer;
use ringfence_core::{DomainError, HostError};
use std::ffi::{CStr, CString, c_int, c_void};
use std::io::Write;
use std::ops::Range;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

/// The linker's `struct link_map`, as far as it is public.
#[repr(C)]
struct LinkMap {
    address: u64,
}

unsafe extern "C" {
    fn dlinfo(handle: *mut c_void, request: c_int, info: *mut c_void) -> c_int;
}
const RTLD_DI_LINKMAP: c_int = 2;

pub(crate) struct Library {
    pub(crate) module: Module,
    handle: *mut c_void,
    /// Where the image starts.
    pub(crate) base: u64,
    /// Its file: kept open for debuggers, and so that its number names no other.
    _file: OwnedFd,
    /// Writable memory as it was before anything of the object ran.
    pristine: Vec<(u64, Vec<u8>)>,
}

// SAFETY: the handle is used by functions that may be called from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// What the linker says went wrong on this thread.
fn linker_error() -> String {
    // SAFETY: returns null or a string that lives until the thread's next such call.
    let text = unsafe { libc::dlerror() };
    match text.is_null() {
        true => "unknown".to_owned(),
        // SAFETY: as above.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned(),
    }
}

/// A name for a file that no other library had, as the linker takes libraries of one name for one. The number is spelt in
/// slashes and dots, which mean nothing in it.
fn unused_path(file: &OwnedFd) -> CString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let bits = 64 - number.leading_zeros();
    let spelt: String = (0..bits)
        .map(|b| if number >> b & 1 == 0 { "./" } else { ".//" })
        .collect();
    let path = format!("/proc/{}/fd/{spelt}{}", std::process::id(), file.as_raw_fd());
    CString::new(path).unwrap_or_default()
}

impl Library {
    /// Opens a copy of the module. Nothing of it has run. Symbols that `given` names are left out.
    pub(crate) fn open(module: &Module, given: impl Fn(&str) -> bool) -> Result<Library, DomainError> {
        let bytes = module.0.object.prepared(&module.0.bytes, given);
        // SAFETY: a name that ends with NUL.
        let fd = unsafe { libc::memfd_create(c"ringfence-none".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(HostError::last("a memory file for a shared object").into());
        }
        // SAFETY: a fresh descriptor, ours.
        let file = unsafe { OwnedFd::from_raw_fd(fd) };
        let mut written = std::fs::File::from(file);
        written.write_all(&bytes).map_err(|source| HostError::Os {
            what: "a memory file for a shared object",
            source,
        })?;
        let file = OwnedFd::from(written);
        let path = unused_path(&file);
        // SAFETY: the host has asked for this object to be loaded unfenced. No code of it runs here, but for functions that
        // choose implementations (IFUNC).
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            let text = linker_error();
            let module = module.name().to_owned();
            let missing = text.split("undefined symbol: ").nth(1);
            return Err(match missing {
                Some(symbol) => DomainError::Unresolved {
                    module,
                    symbol: symbol.split([' ', ',']).next().unwrap_or(symbol).to_owned(),
                },
                None => DomainError::Dlopen {
                    module,
                    reason: text.replace(&*path.to_string_lossy(), "dlopen"),
                },
            });
        }
        let mut map: *const LinkMap = std::ptr::null();
        // SAFETY: a live handle, and room for a pointer.
        let told = unsafe { dlinfo(handle, RTLD_DI_LINKMAP, (&raw mut map).cast()) };
        if told != 0 || map.is_null() {
            return Err(DomainError::Dlopen {
                module: module.name().to_owned(),
                reason: linker_error(),
            });
        }
        Ok(Library {
            module: module.clone(),
            handle,
            // SAFETY: the linker's own record of a library that is loaded.
            base: unsafe { (*map).address },
            _file: file,
            pristine: Vec::new(),
        })
    }

    /// Fills the places of symbols that were left out.
    pub(crate) fn fill(&self, address_of: impl Fn(&str) -> Option<u64>) -> Result<(), DomainError> {
        let object = &self.module.0.object;
        for relocation in &object.relocations {
            let symbol = &object.undefined[relocation.symbol];
            let Some(address) = address_of(&symbol.name) else {
                continue;
            };
            let at = self.base.wrapping_add(relocation.offset);
            let value = address.wrapping_add(relocation.addend).to_ne_bytes();
            if peer::write(None, at, &value).is_ok() {
                continue;
            }
            // Read-only after relocation.
            let page = (at & !(ringfence_isa::PAGE - 1)) as *mut c_void;
            // SAFETY: a page of the library's own, whose constructors have not run: nobody looks at it yet.
            let done = unsafe {
                libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE) == 0
                    && peer::write(None, at, &value).is_ok()
                    && libc::mprotect(page, 4096, libc::PROT_READ) == 0
            };
            if !done {
                return Err(HostError::last("filling in an import").into());
            }
        }
        Ok(())
    }

    /// Keeps what a reset returns to.
    pub(crate) fn keep(&mut self) -> Result<(), DomainError> {
        for range in &self.module.0.object.writable {
            let mut bytes = vec![0; (range.end - range.start) as usize];
            let at = self.base + range.start;
            peer::read(None, at, &mut bytes)?;
            self.pristine.push((at, bytes));
        }
        Ok(())
    }

    /// Returns to it.
    pub(crate) fn restore(&self) -> Result<(), DomainError> {
        for (at, bytes) in &self.pristine {
            peer::write(None, *at, bytes)?;
        }
        Ok(())
    }

    /// Address of an export.
    pub(crate) fn symbol(&self, name: &str) -> Option<u64> {
        if !self.module.exports().iter().any(|e| e.name == name) {
            return None;
        }
        let name = CString::new(name).ok()?;
        // SAFETY: a live handle and a string.
        let at = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!at.is_null()).then_some(at as u64)
    }

    /// Whether code of it is at the address.
    pub(crate) fn has_code(&self, address: u64) -> bool {
        let offset = address.wrapping_sub(self.base);
        self.module
            .0
            .object
            .executable
            .iter()
            .any(|r| r.contains(&offset))
    }

    fn array(&self, range: &Range<u64>) -> Vec<u64> {
        let mut bytes = vec![0; (range.end - range.start) as usize];
        if peer::read(None, self.base + range.start, &mut bytes).is_err() {
            return Vec::new();
        }
        let words = bytes
            .chunks_exact(8)
            .map(|w| w.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b)));
        // Two values mean that there is none.
        words.filter(|&f| f != 0 && f != u64::MAX).collect()
    }

    /// Constructors in their order.
    pub(crate) fn constructors(&self) -> Vec<u64> {
        let object = &self.module.0.object;
        let first = object.init.iter().map(|f| self.base + f);
        first
            .chain(object.init_arrays.iter().flat_map(|r| self.array(r)))
            .collect()
    }

    /// Destructors in their order.
    pub(crate) fn destructors(&self) -> Vec<u64> {
        let object = &self.module.0.object;
        let arrays = object
            .fini_arrays
            .iter()
            .flat_map(|r| self.array(r).into_iter().rev());
        arrays.chain(object.fini.iter().map(|f| self.base + f)).collect()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is given back once. What still runs in it is the host's affair, as with any library.
        unsafe { libc::dlclose(self.handle) };
    }
}
