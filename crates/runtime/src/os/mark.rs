//! One runtime in a process.
//!
//! Two copies of the runtime, of whatever versions, in libraries that each link it statically, in link name spaces of their own, or one
//! beside the other, would each believe that `gs` and the signal handlers are theirs. The first that gets to work maps a page at a
//! fixed address, which all copies know: the kernel lets only one have it. What is in the page tells whose it is.
//! A forked child inherits the page together with the copy that made it; after `exec` both are gone. Modules cannot reach it: no window
//! lies there, and the page is a sealed file's.

use ringfence_isa::PAGE;
use std::ffi::{CStr, c_void};
use std::io;
use std::mem::zeroed;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Where the mark may be; other versions have the same addresses. Usually the first is free; sanitizers have things at the others, or there.
/// No row of windows covers them (see `window`).
const PLACES: [u64; 3] = [0x10ff_5246_0000, 0x5100_5246_0000, 0x7eed_f000];

const MAGIC: [u8; 16] = *b"ringfence\0mark\0\0";

/// The page. Other versions read it: its fields stay as they are.
#[derive(Clone, Copy)]
#[repr(C)]
struct Mark {
    magic: [u8; 16],
    /// An address in the copy that has made it: tells copies apart.
    owner: u64,
    /// The copy's version and file, for people: text with a NUL behind it.
    version: [u8; 32],
    file: [u8; 456],
}

const SIZE: usize = size_of::<Mark>();
const _: () = assert!(SIZE == 512);

/// Set once the mark is this copy's. Its address is what identifies the copy.
static CLAIMED: AtomicBool = AtomicBool::new(false);

/// Whose the process is.
pub(crate) enum Claim {
    Ours,
    /// That of a copy of this version, in this file.
    Other {
        version: String,
        file: String,
    },
    /// There is nowhere to say so.
    NoPlace,
}

/// Whether the process is known to be this copy's.
pub(crate) fn is_claimed() -> bool {
    CLAIMED.load(Ordering::Acquire)
}

/// What the page says if it is this copy's.
pub(crate) fn page() -> [u8; SIZE] {
    // SAFETY: plain bytes without padding.
    unsafe { std::mem::transmute(Mark::mine()) }
}

/// Makes this copy the process's runtime, if there is no other. `file` is a sealed one, and begins with [`page`].
pub(crate) fn claim(file: &OwnedFd) -> io::Result<Claim> {
    let (mut made, mut known) = (Vec::new(), false);
    for place in PLACES {
        if map_at(place, file)? {
            made.push(place);
        } else if let Some(found) = look_at(place)? {
            if found.owner != (&raw const CLAIMED) as u64 {
                for place in made {
                    // SAFETY: mapped above; nobody relies on it.
                    unsafe { libc::syscall(libc::SYS_munmap, place, PAGE) };
                }
                return Ok(Claim::Other {
                    version: text(&found.version),
                    file: text(&found.file),
                });
            }
            // Another thread's work, just now.
            known = true;
        }
    }
    if made.is_empty() && !known {
        return Ok(Claim::NoPlace);
    }
    stay();
    CLAIMED.store(true, Ordering::Release);
    Ok(Claim::Ours)
}

impl Mark {
    fn mine() -> Mark {
        let mut mark = Mark {
            magic: MAGIC,
            owner: (&raw const CLAIMED) as u64,
            version: [0; 32],
            file: [0; 456],
        };
        put(&mut mark.version, env!("CARGO_PKG_VERSION").as_bytes());
        if let Some(file) = own_file() {
            put(&mut mark.file, file.to_bytes());
        }
        mark
    }
}

/// Copies text, cut short so that a NUL fits behind it.
fn put(to: &mut [u8], text: &[u8]) {
    let len = text.len().min(to.len() - 1);
    to[..len].copy_from_slice(&text[..len]);
}

/// What another copy has put there, for a message.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
    let text = String::from_utf8_lossy(&bytes[..end]);
    if text.is_empty() {
        "an unknown file".into()
    } else {
        text.into_owned()
    }
}

/// The file that this copy is part of.
fn own_file() -> Option<&'static CStr> {
    // SAFETY: writes the structure; the name belongs to the dynamic linker, and stays as long as this code.
    unsafe {
        let mut info: libc::Dl_info = zeroed();
        let found =
            libc::dladdr((&raw const CLAIMED).cast(), &raw mut info) != 0 && !info.dli_fname.is_null();
        found.then(|| CStr::from_ptr(info.dli_fname))
    }
}

/// Keeps `dlclose` from unmapping the library that this copy is part of: signal handlers, thread-local destructors and hooks of `fork`
/// point into it. A program that is linked statically cannot be unmapped, and has no `dlopen`.
fn stay() {
    if let Some(file) = own_file() {
        let flags = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_LAZY;
        // SAFETY: a file that is loaded; only marks it. The program itself is not found by its name, and needs no mark.
        unsafe { libc::dlopen(file.as_ptr(), flags) };
    }
}

/// Maps the file at a place where nothing is. Whether that was so.
fn map_at(place: u64, file: &OwnedFd) -> io::Result<bool> {
    let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE;
    // The kernel itself is asked, as for windows.
    // SAFETY: NOREPLACE takes nothing away from anybody.
    let at = unsafe {
        libc::syscall(
            libc::SYS_mmap,
            place,
            PAGE,
            libc::PROT_READ,
            flags,
            file.as_raw_fd(),
            0u64,
        )
    };
    if at as u64 == place {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EEXIST) {
        return Ok(false);
    }
    Err(error)
}

/// The mark at a place where something is, if it is one. The kernel does the reading: whatever is there may not be readable, or go.
fn look_at(place: u64) -> io::Result<Option<Mark>> {
    let mut ends = [0; 2];
    // SAFETY: two new descriptors, closed below; the kernel refuses to read what cannot be read. All bytes are a mark.
    unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) != 0 {
            return Err(io::Error::last_os_error());
        }
        let mut found: Mark = zeroed();
        let whole = libc::write(ends[1], place as *const c_void, SIZE) == SIZE as isize
            && libc::read(ends[0], (&raw mut found).cast(), SIZE) == SIZE as isize;
        libc::close(ends[0]);
        libc::close(ends[1]);
        Ok((whole && found.magic == MAGIC).then_some(found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_this_copys_and_claimed_once() {
        crate::os::host::check().expect("the process's only copy");
        assert!(is_claimed());
        let marks: Vec<Mark> = PLACES
            .iter()
            .filter_map(|&p| look_at(p).expect("looked"))
            .collect();
        assert!(!marks.is_empty());
        for mark in marks {
            assert_eq!(mark.owner, (&raw const CLAIMED) as u64);
            assert_eq!(text(&mark.version), env!("CARGO_PKG_VERSION"));
            assert_ne!(text(&mark.file), "an unknown file");
        }
    }

    #[test]
    fn something_else_at_a_place_is_no_mark() {
        // SAFETY: fresh mappings, at addresses that the kernel chooses.
        let (hidden, plain) = unsafe {
            let map = |prot| crate::os::sys::map_anonymous(0, PAGE, prot, false).expect("memory");
            (map(libc::PROT_NONE), map(libc::PROT_READ))
        };
        assert!(look_at(hidden).expect("looked").is_none());
        assert!(look_at(plain).expect("looked").is_none());
    }
}
