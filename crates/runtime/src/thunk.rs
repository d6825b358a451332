//! Thunks: plain C function pointers into domains.
//!
//! A thunk clears the argument registers (and parts of them) that its function does not take, loads its target from a word beside the
//! code, and jumps to the gate. The code of a page is written once, before it becomes executable, for one signature;
//! only the words change. Both are private memory, so that a forked child has its own.

use crate::domain::Signature;
use crate::error::HostError;
use crate::lane::{Target, gone};
use crate::sys;
use std::collections::{HashMap, VecDeque};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};

/// Bytes of code for one thunk.
const SIZE: usize = 64;
/// A thunk's place is used again only after so many others of its kind were freed: a stale pointer should fail, not
/// call something else.
const QUARANTINE: usize = 1024;

/// What the code depends on.
type Kind = (u8, u8, bool);

/// Where a thunk is, and the word that names its target.
#[derive(Clone, Copy)]
struct Place {
    code: u64,
    word: u64,
}

#[derive(Default)]
struct Pool {
    fresh: Vec<Place>,
    /// With the targets that stale pointers still lead to.
    freed: VecDeque<(Place, Box<Target>)>,
}

// SAFETY: targets are only read, but for their atomic.
unsafe impl Send for Pool {}

static POOLS: LazyLock<Mutex<HashMap<Kind, Pool>>> = LazyLock::new(Mutex::default);

/// A thunk of a live domain.
pub(crate) struct Thunk {
    kind: Kind,
    place: Place,
    target: *mut Target,
}

// SAFETY: the target is only read, but for its atomic.
unsafe impl Send for Thunk {}
// SAFETY: as above.
unsafe impl Sync for Thunk {}

impl Thunk {
    pub(crate) fn new(target: Target, s: &Signature) -> Result<Thunk, HostError> {
        let kind = if s.variadic {
            (6, 8, true)
        } else {
            (s.ints.min(6), s.floats.min(8), false)
        };
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.entry(kind).or_default();
        let reused = if pool.freed.len() > QUARANTINE {
            pool.freed.pop_front()
        } else {
            None
        };
        let place = match reused {
            Some((place, _target)) => place,
            None => {
                if pool.fresh.is_empty() {
                    pool.fresh = page(kind)?;
                }
                pool.fresh.pop().expect("just filled")
            }
        };
        let target = Box::into_raw(Box::new(target));
        // SAFETY: the word is ours, aligned, and lives for ever.
        unsafe { &*(place.word as *const AtomicPtr<Target>) }.store(target, Ordering::Release);
        Ok(Thunk { kind, place, target })
    }

    pub(crate) fn code(&self) -> *const c_void {
        self.place.code as *const c_void
    }

    fn target(&self) -> &Target {
        // SAFETY: made by `new`, freed by nobody before `drop`.
        unsafe { &*self.target }
    }

    /// From now on calls fail: the function was revoked, or its domain goes.
    pub(crate) fn disable(&self, revoked: bool) {
        let target = self.target();
        if revoked && self.live() {
            target.revoked.store(gone::REVOKED, Ordering::Release);
        }
        target.index.store(0, Ordering::Release);
    }

    /// Whether calls get anywhere.
    pub(crate) fn live(&self) -> bool {
        self.target().index.load(Ordering::Acquire) != 0
    }
}

impl Drop for Thunk {
    /// From now on calls fail. The place is not used again for a long time.
    fn drop(&mut self) {
        self.disable(false);
        // SAFETY: made by `new`, taken back once, here.
        let target = unsafe { Box::from_raw(self.target) };
        let mut pools = POOLS.lock().unwrap_or_else(PoisonError::into_inner);
        pools
            .entry(self.kind)
            .or_default()
            .freed
            .push_back((self.place, target));
    }
}

/// A page of code and a page of words.
fn page(kind: Kind) -> Result<Vec<Place>, HostError> {
    let len = sys::PAGE as u64;
    // SAFETY: fresh memory, written before it becomes executable, and never unmapped.
    unsafe {
        let code = sys::map_anonymous(0, 2 * len, libc::PROT_READ | libc::PROT_WRITE, false)?;
        let places: Vec<Place> = (0..len / SIZE as u64)
            .rev()
            .map(|i| Place {
                code: code + i * SIZE as u64,
                word: code + len + i * 8,
            })
            .collect();
        for place in &places {
            let bytes = encode(kind, *place);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.code as *mut u8, bytes.len());
        }
        sys::protect(code, len, libc::PROT_READ | libc::PROT_EXEC)?;
        Ok(places)
    }
}

fn encode((ints, floats, variadic): Kind, place: Place) -> [u8; SIZE] {
    let mut code = vec![0xF3, 0x0F, 0x1E, 0xFA]; // endbr64
    const CLEAR: [&[u8]; 6] = [
        &[0x31, 0xFF],       // xorl %edi, %edi
        &[0x31, 0xF6],       // xorl %esi, %esi
        &[0x31, 0xD2],       // xorl %edx, %edx
        &[0x31, 0xC9],       // xorl %ecx, %ecx
        &[0x45, 0x31, 0xC0], // xorl %r8d, %r8d
        &[0x45, 0x31, 0xC9], // xorl %r9d, %r9d
    ];
    if !variadic {
        for clear in CLEAR.iter().skip(ints.into()) {
            code.extend_from_slice(clear);
        }
        code.extend_from_slice(&[0x31, 0xC0]); // xorl %eax, %eax
        // With no vector arguments the gate clears all. A number is in the lower half; what a compiler left in the upper
        // one is the host's.
        if floats > 0 {
            for register in 0..floats {
                code.extend_from_slice(&[0xF3, 0x0F, 0x7E, 0xC0 | register << 3 | register]); // movq
            }
            for register in floats..8 {
                code.extend_from_slice(&[0x0F, 0x57, 0xC0 | register << 3 | register]); // xorps
            }
        }
    }
    let after = place.code + code.len() as u64 + 7;
    code.extend_from_slice(&[0x4C, 0x8B, 0x1D]); // movq word(%rip), %r11
    code.extend_from_slice(&((place.word - after) as u32).to_le_bytes());
    code.extend_from_slice(&[0x41, 0xFF, 0x63, offset_of!(Target, gate) as u8]); // jmp *gate(%r11)
    let mut bytes = [0xCC; SIZE];
    bytes[..code.len()].copy_from_slice(&code);
    bytes
}

const _: () = assert!(offset_of!(Target, gate) < 128);
