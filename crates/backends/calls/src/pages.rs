//! Pages of code that loads a word and jumps. The code is written once, before it becomes executable; only the words change.

use crate::Record;
use ringfence_core::HostError;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, PoisonError};

const PAGE: usize = 4096;
/// Bytes of code for one pointer, and bytes of words.
const SIZE: usize = 32;
const WORDS: usize = 16;
/// A place is used again only after so many others were freed: a stale pointer should fail, not call something else, and a thread
/// that has just read its record may still use it.
const QUARANTINE: usize = 1024;

/// Where a pointer's code is, and its words: the record, and where to go with it.
#[derive(Clone, Copy)]
struct Jump {
    code: u64,
    words: u64,
}

impl Jump {
    fn word(self, n: u64) -> &'static AtomicPtr<Record> {
        // SAFETY: aligned, ours, and there for ever.
        unsafe { &*((self.words + 8 * n) as *const AtomicPtr<Record>) }
    }
}

#[derive(Default)]
struct Pool {
    fresh: Vec<Jump>,
    freed: VecDeque<(Jump, Box<Record>)>,
}

static POOL: Mutex<Option<Pool>> = Mutex::new(None);

/// A place that is in use.
pub(crate) struct Place {
    jump: Jump,
    record: *mut Record,
}

// SAFETY: the record is only read.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl Place {
    /// A place whose code goes to `way` with `record` in `r11`.
    pub(crate) fn take(way: u64, record: Box<Record>) -> Result<Place, HostError> {
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pool.get_or_insert_default();
        let reused = match pool.freed.len() > QUARANTINE {
            true => pool.freed.pop_front(),
            false => None,
        };
        let jump = match reused {
            Some((jump, _record)) => jump,
            None => {
                if pool.fresh.is_empty() {
                    pool.fresh = page()?;
                }
                pool.fresh.pop().ok_or(HostError::NoMark)?
            }
        };
        let record = Box::into_raw(record);
        jump.word(1).store(way as *mut Record, Ordering::Release);
        jump.word(0).store(record, Ordering::Release);
        Ok(Place { jump, record })
    }

    pub(crate) fn code(&self) -> u64 {
        self.jump.code
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jump.word(0).store(std::ptr::null_mut(), Ordering::Release);
        // SAFETY: made by `take`, taken back once, here.
        let record = unsafe { Box::from_raw(self.record) };
        let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
        pool.get_or_insert_default().freed.push_back((self.jump, record));
    }
}

/// A page of code and one of words.
fn page() -> Result<Vec<Jump>, HostError> {
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: fresh memory, which nobody else knows.
    let at = unsafe { libc::mmap(std::ptr::null_mut(), 2 * PAGE, rights, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return Err(HostError::last("memory for function pointers"));
    }
    let jumps: Vec<Jump> = (0..PAGE / SIZE)
        .rev()
        .map(|i| Jump {
            code: at as u64 + (i * SIZE) as u64,
            words: at as u64 + (PAGE + i * WORDS) as u64,
        })
        .collect();
    for jump in &jumps {
        let mut code = [0xCC; SIZE];
        code[..4].copy_from_slice(&[0xF3, 0x0F, 0x1E, 0xFA]); // endbr64
        code[4..7].copy_from_slice(&[0x4C, 0x8B, 0x1D]); // movq words(%rip), %r11
        code[7..11].copy_from_slice(&((jump.words - jump.code - 11) as u32).to_le_bytes());
        code[11..13].copy_from_slice(&[0xFF, 0x25]); // jmp *words+8(%rip)
        code[13..17].copy_from_slice(&((jump.words + 8 - jump.code - 17) as u32).to_le_bytes());
        // SAFETY: inside the fresh page.
        unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), jump.code as *mut u8, SIZE) };
    }
    // SAFETY: our own page.
    if unsafe { libc::mprotect(at, PAGE, libc::PROT_READ | libc::PROT_EXEC) } != 0 {
        return Err(HostError::last("making function pointers executable"));
    }
    Ok(jumps)
}

#[cfg(test)]
mod tests {
    use crate::{Pointer, Then, call};
    use ringfence_core::{CallError, Reporting, Returned};
    use std::ffi::c_void;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    thread_local!(static FAILED: std::cell::RefCell<Option<CallError>> = const { std::cell::RefCell::new(None) });

    // A word of the thread's that thunks may clear.
    std::arch::global_asm!(
        ".section .tbss,\"awT\",@nobits",
        ".balign 8",
        "test_status:",
        ".zero 8",
        ".text"
    );

    fn reporting() -> Reporting {
        let status: i64;
        // SAFETY: reads a constant of the linker's.
        unsafe { std::arch::asm!("mov {}, qword ptr [rip + test_status@GOTTPOFF]", out(reg) status) };
        Reporting {
            status,
            fail: |e| FAILED.set(Some(e)),
            take: || FAILED.take(),
        }
    }

    struct Nowhere;
    impl ringfence_core::Space for Nowhere {
        fn base(&self) -> u64 {
            0
        }
        fn size(&self) -> u64 {
            u64::MAX
        }
        fn name(&self) -> &str {
            ""
        }
        fn resets(&self) -> u64 {
            0
        }
        fn read(&self, at: u64, to: &mut [u8]) -> Result<(), ringfence_core::MemoryError> {
            crate::peer::read(None, at, to)
        }
        fn write(&self, at: u64, from: &[u8]) -> Result<(), ringfence_core::MemoryError> {
            crate::peer::write(None, at, from)
        }
        fn alloc(&self, len: u64, _: u64) -> Result<u64, ringfence_core::MemoryError> {
            Err(ringfence_core::MemoryError::Limit {
                wanted: len,
                used: 0,
                limit: 0,
            })
        }
        fn free(&self, address: u64, _: Option<u64>) -> Result<(), ringfence_core::MemoryError> {
            Err(ringfence_core::MemoryError::NotAllocated { address })
        }
        fn memory_used(&self) -> u64 {
            0
        }
        fn memory_call(&self, _: &ringfence_core::Syscall) -> Option<i64> {
            None
        }
        fn ending(&self) -> bool {
            false
        }
        fn interrupt(&self) {}
        fn limit_reached(&self, _: &ringfence_core::LimitHit) -> Option<u64> {
            None
        }
        fn find(&self, _: Option<&str>, _: &str) -> Option<u64> {
            None
        }
        fn spawn(&self, f: u64, _: u64, _: ringfence_core::Ended) -> Result<(), ringfence_core::SpawnError> {
            Err(ringfence_core::SpawnError::NoEntry(f))
        }
        fn own(&self) -> *const () {
            std::ptr::null()
        }
    }

    extern "C" fn eleven(
        a: u64,
        b: u64,
        c: u64,
        d: u64,
        e: u64,
        f: u64,
        x: f64,
        y: f64,
        g: u64,
        h: u64,
        i: u64,
    ) -> f64 {
        (a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * i) as f64 + x - y
    }

    #[test]
    fn all_arguments_come_through_each_way() {
        let closed = Arc::new(AtomicBool::new(false));
        // SAFETY: the function is there for ever and takes any numbers.
        let thunk = unsafe {
            Pointer::thunk(
                reporting(),
                eleven as *const () as u64,
                3,
                closed.clone(),
                Arc::new(|_| {
                    FAILED.set(Some(CallError::Revoked));
                    Then::Return
                }),
            )
        }
        .unwrap();
        let mut frame = ringfence_core::OutFrame::new(&Nowhere);
        frame.ints = [1, 2, 3, 4, 5, 6];
        frame.vectors[0][0] = 0.5f64.to_bits();
        frame.vectors[1][0] = 0.25f64.to_bits();
        let expected = (1 + 4 + 9 + 16 + 25 + 36 + 70 + 160 + 270) as f64 + 0.25;
        // SAFETY: the pointer calls `eleven`.
        let got: Returned = unsafe { call(thunk.code(), &frame, &[10, 20, 30]) };
        assert_eq!(got.xmm0, expected);
        closed.store(true, Ordering::Release);
        // SAFETY: as above.
        let got = unsafe { call(thunk.code(), &frame, &[10, 20, 30]) };
        assert_eq!((got.rax, got.xmm0), (0, 0.0));
        assert!(matches!(FAILED.take(), Some(CallError::Revoked)));
        let code = thunk.code();
        drop(thunk);
        // SAFETY: the pointer's code stays.
        assert_eq!(unsafe { call(code, &frame, &[10, 20, 30]) }.rax, 0);
        assert!(matches!(FAILED.take(), Some(CallError::Gone)));
    }

    #[test]
    fn a_stub_sees_registers_and_words() {
        let stub = Pointer::stub(
            reporting(),
            Arc::new(|frame| {
                // SAFETY: the frame does not outlive this.
                unsafe { frame.set_space(&Nowhere) };
                frame.result[0] = frame.ints.iter().sum::<u64>() + frame.stack_argument(1).unwrap();
                frame.vector_result[0][0] = (frame.double(0) * 2.0).to_bits();
                Then::Return
            }),
        )
        .unwrap();
        let mut frame = ringfence_core::OutFrame::new(&Nowhere);
        frame.ints = [1, 2, 3, 4, 5, 6];
        frame.vectors[0][0] = 1.5f64.to_bits();
        // SAFETY: a stub takes any arguments.
        let got = unsafe { call(stub.code(), &frame, &[100, 1000]) };
        assert_eq!((got.rax, got.xmm0), (1021, 3.0));
    }

    static STUB: AtomicBool = AtomicBool::new(false);

    extern "C" fn calls_back(stub: extern "C" fn() -> u64) -> u64 {
        let got = stub();
        STUB.store(true, Ordering::Relaxed);
        got + 1
    }

    #[test]
    fn a_call_is_given_up_from_inside() {
        let give_up = Arc::new(AtomicBool::new(true));
        let asked = give_up.clone();
        let stub = Pointer::stub(
            reporting(),
            Arc::new(move |frame| {
                frame.result[0] = 41;
                match asked.load(Ordering::Relaxed) {
                    true => Then::GiveUp,
                    false => Then::Return,
                }
            }),
        )
        .unwrap();
        let open = Arc::new(AtomicBool::new(false));
        // SAFETY: called with a stub below.
        let thunk = unsafe {
            Pointer::thunk(
                reporting(),
                calls_back as *const () as u64,
                0,
                open,
                Arc::new(|_| Then::Return),
            )
        }
        .unwrap();
        // SAFETY: that is what the thunk calls.
        let thunk: extern "C" fn(*const c_void) -> u64 = unsafe { std::mem::transmute(thunk.code()) };
        assert_eq!(thunk(stub.code()), 0);
        assert!(!STUB.load(Ordering::Relaxed), "it did not go on");
        give_up.store(false, Ordering::Relaxed);
        assert_eq!(thunk(stub.code()), 42, "the list of calls is as it was");
        assert!(STUB.load(Ordering::Relaxed));
    }
}
