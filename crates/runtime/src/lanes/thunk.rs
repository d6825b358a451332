//! Thunks: plain C function pointers into domains.
//!
//! A thunk clears the argument registers (and parts of them, and of words on the stack) that its function does not take, loads its
//! target from a word beside the code, and jumps to the gate. The code of a page is written once, before it becomes executable, for
//! signatures that are cleared alike; only the words change. Both are private memory, so that a forked child has its own.

use crate::lanes::lane::{Target, gone};
use crate::os::lock::{Lock, Rank};
use crate::os::sys;
use ringfence_core::error::HostError;
use ringfence_core::{Signature, Width};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Bytes of code for one thunk at least; more have a power of two.
const SIZE: usize = 64;
/// A thunk's place is used again only after so many others of its kind were freed: a stale pointer should fail, not
/// call something else.
const QUARANTINE: usize = 1024;

/// What clears: all of a thunk's code that its signature decides.
type Kind = Arc<[u8]>;

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

static POOLS: Lock<BTreeMap<Kind, Pool>> = Lock::new(Rank::ThunkPools, BTreeMap::new());

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
        let kind = Kind::from(clearing(s));
        let mut pools = POOLS.lock();
        let pool = pools.entry(kind.clone()).or_default();
        let reused = if pool.freed.len() > QUARANTINE {
            pool.freed.pop_front()
        } else {
            None
        };
        let place = match reused {
            Some((place, _target)) => place,
            None => {
                if pool.fresh.is_empty() {
                    pool.fresh = page(&kind)?;
                }
                pool.fresh.pop().expect("just filled")
            }
        };
        // Stored once more in its place, for whoever comes by gates and loads the index: which word it found the thunk by, the
        // compiler and ThreadSanitizer do not see.
        let target = Box::new(target);
        let index = target.index.load(Ordering::Relaxed);
        target.index.store(index, Ordering::Release);
        let target = Box::into_raw(target);
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
        let mut pools = POOLS.lock();
        pools
            .entry(self.kind.clone())
            .or_default()
            .freed
            .push_back((self.place, target));
    }
}

/// The lock, held until what is returned goes: for `fork`.
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(POOLS.lock())
}

/// A page of code and a page of words.
fn page(clearing: &[u8]) -> Result<Vec<Place>, HostError> {
    let len = sys::PAGE as u64;
    let size = (clearing.len() + JUMP).next_power_of_two().max(SIZE);
    // SAFETY: fresh memory, written before it becomes executable, and never unmapped.
    unsafe {
        let code = sys::map_anonymous(0, 2 * len, libc::PROT_READ | libc::PROT_WRITE, false)?;
        let places: Vec<Place> = (0..len / size as u64)
            .rev()
            .map(|i| Place {
                code: code + i * size as u64,
                word: code + len + i * 8,
            })
            .collect();
        for place in &places {
            let mut bytes = encode(clearing, *place);
            bytes.resize(size, 0xCC);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), place.code as *mut u8, bytes.len());
        }
        let executable = sys::protect(code, len, libc::PROT_READ | libc::PROT_EXEC);
        // Nobody knows of the places yet.
        if let Err(e) = executable {
            libc::munmap(code as *mut _, 2 * len as usize);
            return Err(e);
        }
        Ok(places)
    }
}

/// Bytes that load the target and jump to the gate.
const JUMP: usize = 11;

fn encode(clearing: &[u8], place: Place) -> Vec<u8> {
    let mut code = clearing.to_vec();
    let after = place.code + code.len() as u64 + 7;
    code.extend_from_slice(&[0x4C, 0x8B, 0x1D]); // movq word(%rip), %r11
    code.extend_from_slice(&((place.word - after) as u32).to_le_bytes());
    code.extend_from_slice(&[0x41, 0xFF, 0x63, offset_of!(Target, gate) as u8]); // jmp *gate(%r11)
    debug_assert_eq!(code.len(), clearing.len() + JUMP);
    code
}

/// The instructions that leave nothing but arguments where a domain can read.
fn clearing(s: &Signature) -> Vec<u8> {
    let mut code = vec![0xF3, 0x0F, 0x1E, 0xFA]; // endbr64
    if s.variadic {
        return code;
    }
    let (ints, floats) = (s.ints.min(6), s.floats.min(8));
    const REGISTERS: [u8; 6] = [7, 6, 2, 1, 8, 9]; // rdi rsi rdx rcx r8 r9
    for (n, register) in REGISTERS.into_iter().enumerate() {
        let width = if n < ints.into() {
            s.narrow.ints[n]
        } else {
            Width::Nothing
        };
        let both = 0xC0 | (register & 7) << 3 | register & 7;
        // REX.RB for r8 and r9, an empty one for the lowest bytes of rsi and rdi.
        let rex = if register >= 8 { Some(0x45) } else { None };
        let byte = rex.or(Some(0x40));
        let (rex, opcode): (Option<u8>, &[u8]) = match width {
            Width::Word => continue,
            Width::Int => (rex, &[0x89]), // movl %edi, %edi
            Width::Short { signed: false } => (rex, &[0x0F, 0xB7]), // movzwl
            Width::Short { signed: true } => (rex, &[0x0F, 0xBF]), // movswl
            Width::Byte { signed: false } => (byte, &[0x0F, 0xB6]), // movzbl
            Width::Byte { signed: true } => (byte, &[0x0F, 0xBE]), // movsbl
            Width::Nothing => (rex, &[0x31]), // xorl
        };
        code.extend(rex);
        code.extend_from_slice(opcode);
        code.push(both);
    }
    // Words of arguments are the callee's to write, by the ABI, so they can be cleared where the caller has put them: behind the
    // return address.
    let stacked = usize::from(s.stack).min(s.narrow.stack.len());
    for (n, width) in s.narrow.stack[..stacked].iter().enumerate() {
        let load: &[u8] = match width {
            Width::Word => continue,
            Width::Int => &[0x8B],
            Width::Short { signed: false } => &[0x0F, 0xB7],
            Width::Short { signed: true } => &[0x0F, 0xBF],
            Width::Byte { signed: false } => &[0x0F, 0xB6],
            Width::Byte { signed: true } => &[0x0F, 0xBE],
            Width::Nothing => &[],
        };
        let place = (8 + 8 * n as u32).to_le_bytes();
        if load.is_empty() {
            code.extend_from_slice(&[0x31, 0xC0]); // xorl %eax, %eax
        } else {
            code.extend_from_slice(load);
            code.extend_from_slice(&[0x84, 0x24]); // place(%rsp), %eax
            code.extend_from_slice(&place);
        }
        code.extend_from_slice(&[0x48, 0x89, 0x84, 0x24]); // movq %rax, place(%rsp)
        code.extend_from_slice(&place);
    }
    code.extend_from_slice(&[0x31, 0xC0]); // xorl %eax, %eax
    // With no vector arguments the gate clears all. A number is in the lower half or quarter; what a compiler left above is the
    // host's.
    if floats > 0 {
        for register in 0..8 {
            let xmm = 0xC0 | register << 3 | register;
            if register >= floats {
                code.extend_from_slice(&[0x0F, 0x57, xmm]); // xorps
            } else if s.narrow.singles & 1 << register != 0 {
                code.extend_from_slice(&[0x66, 0x0F, 0x73, 0xF8 | register, 12]); // pslldq
                code.extend_from_slice(&[0x66, 0x0F, 0x73, 0xD8 | register, 12]); // psrldq
            } else {
                code.extend_from_slice(&[0xF3, 0x0F, 0x7E, xmm]); // movq
            }
        }
    }
    code
}

const _: () = assert!(offset_of!(Target, gate) < 128);
