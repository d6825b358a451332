//! The instructions by which code of the words mode reaches an arena, as they stand in front of an access: which it was.

use crate::os::sys::PAGE;
use ringfence_isa::words::{self, CMOV, TEST, TEST_LEN};

/// A test and its move.
const STEP: usize = TEST_LEN + CMOV.len();

/// What is to be read of the code in front of an instruction.
const BEFORE: usize = 2 * STEP + 32;

/// The code around an instruction, as far as it is there: what precedes it, and as much of it as a test has.
pub(crate) struct Code([u8; BEFORE + TEST_LEN]);

impl Code {
    /// Reads it by what tells whether all that was asked for could be read. Text begins and ends with a page.
    pub(crate) fn around(rip: u64, read: impl Fn(u64, &mut [u8]) -> bool) -> Option<Code> {
        let mut code = [0; BEFORE + TEST_LEN];
        let (from, to) = (rip.checked_sub(BEFORE as u64)?, rip.checked_add(TEST_LEN as u64)?);
        let page = rip - rip % PAGE as u64;
        let (first, last) = (page.max(from), to.min(page + PAGE as u64));
        let there = [(from, to), (first, to), (from, last), (first, last)];
        there.into_iter().find_map(|(start, end)| {
            let part = &mut code[(start - from) as usize..(end - from) as usize];
            read(start, part).then_some(Code(code))
        })
    }

    /// What precedes the instruction; and its own first bytes.
    pub(crate) fn parts(&self) -> (&[u8], &[u8]) {
        self.0.split_at(BEFORE)
    }
}

/// An access, by its tests.
pub(crate) struct Tested {
    pub write: bool,
    pub len: u8,
    /// Whether the instruction is not the access, but a test.
    pub at_test: bool,
    /// How many tests stand there, up to the instruction.
    pub tests: u8,
    /// Where they begin in the code in front of it.
    pub from: usize,
}

/// What access the instruction at `here` makes, or prepares; `None` if there is no test.
pub(crate) fn access(before: &[u8], here: &[u8]) -> Option<Tested> {
    let mut from = before.len();
    let at_test = here.starts_with(&TEST);
    let mut bit = at_test.then(|| here[TEST_LEN - 1]);
    let mut tests = u8::from(at_test);
    while let Some(start) = from.checked_sub(STEP)
        && before[start..].starts_with(&TEST)
        && before[start + TEST_LEN..].starts_with(&CMOV)
    {
        bit = bit.or(Some(before[start + TEST_LEN - 1]));
        tests += 1;
        from = start;
    }
    let bit = bit?;
    let class = (bit | bit >> 4).trailing_zeros() as usize & 3;
    let one = [1, 4, 8, 16][class];
    let len = match (tests, class) {
        (2, 2) => 10,
        (2, _) => 2 * one,
        _ => one,
    };
    Some(Tested {
        write: bit >= words::WRITE,
        len,
        at_test,
        tests,
        from,
    })
}

/// Where `cmpl $LOCAL, %r11d; jge` begins that the code ends with.
fn compare(code: &[u8]) -> Option<usize> {
    const COMPARE: [u8; 3] = [0x41, 0x81, 0xFB];
    [2, 6].into_iter().find_map(|jump| {
        let start = code.len().checked_sub(jump + 7)?;
        let found = code[start..].starts_with(&COMPARE) && matches!(code[start + 7], 0x7D | 0x0F);
        found.then_some(start)
    })
}

/// The address that the `leal` computed that stands in front of the tests.
pub(crate) fn effective(before: &[u8], registers: &[u64; 16]) -> Option<u32> {
    let mut registers = *registers;
    let mut end = before.len();
    // `xchgb %al, %ah` and its like, where a register's second byte is stored.
    if let [code @ .., 0x86, modrm] = before
        && *modrm >= 0xC0
        && compare(code).is_some()
    {
        let value = &mut registers[usize::from(modrm & 3)];
        *value = *value & !0xFFFF | u64::from((*value as u16).swap_bytes());
        end = code.len();
    }
    end = compare(&before[..end]).unwrap_or(end);
    // `pushq %rax; lahf; seto %al` if the flags wait: then rax is on the stack. In front of that `pushq %rcx`, and `movq %rax, %rcx` or
    // `set.. %cl`, if what is stored waits in rcx.
    const WAIT: [u8; 5] = [0x50, 0x9F, 0x0F, 0x90, 0xC0];
    let mut stored = false;
    if before[..end].ends_with(&WAIT) {
        end -= WAIT.len();
        let mut word = [0; 8];
        let pushed = read(registers[4], &mut word).then_some(u64::from_le_bytes(word))?;
        // `lahf` and `seto` have left all but 16 bits of it. Who only pretends learns nothing of what else stands there.
        if (pushed ^ registers[0]) >> 16 != 0 {
            return None;
        }
        registers[0] = pushed;
        stored = matches!(
            before[..end],
            [.., 0x51, 0x48, 0x89, 0xC1] | [.., 0x51, 0x0F, 0x90..=0x9F, 0xC1]
        );
        end -= if stored { 4 } else { 0 };
    }
    let changed = |r: usize| r == 11 || stored && r == 1;
    (3..=9).find_map(|len| {
        let lea = &before[end.checked_sub(len)?..end];
        let [rex @ 0x44..=0x47, 0x8D, modrm, rest @ ..] = lea else {
            return None;
        };
        if modrm >> 3 & 7 != 3 || modrm >> 6 == 3 {
            return None;
        }
        let (mode, rm) = (modrm >> 6, modrm & 7);
        let (base, index, scale, rest) = match (rm, rest) {
            (4, [sib, rest @ ..]) => {
                let index = usize::from(sib >> 3 & 7 | (rex & 2) << 2);
                let base = (mode != 0 || sib & 7 != 5).then(|| usize::from(sib & 7 | (rex & 1) << 3));
                (base, (index != 4).then_some(index), sib >> 6, rest)
            }
            (4, []) => return None,
            (5, _) if mode == 0 => return None,
            _ => (Some(usize::from(rm | (rex & 1) << 3)), None, 0, rest),
        };
        let displacement = match (mode, base, rest) {
            (0, Some(_), []) => 0,
            (1, _, [byte]) => i32::from(*byte as i8) as u32,
            (2, _, [a, b, c, d]) | (0, None, [a, b, c, d]) => u32::from_le_bytes([*a, *b, *c, *d]),
            _ => return None,
        };
        if base.into_iter().chain(index).any(changed) {
            return None;
        }
        let value = |r: Option<usize>| r.map_or(0, |r| registers[r] as u32);
        let sum = value(base).wrapping_add(value(index) << scale);
        Some(sum.wrapping_add(displacement))
    })
}

/// Reads the process's own memory by the kernel, so that nothing faults. Whether all of it is there.
pub(crate) fn read(at: u64, to: &mut [u8]) -> bool {
    let into = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    let from = libc::iovec {
        iov_base: at as *mut _,
        iov_len: to.len(),
    };
    // SAFETY: writes to `to` only; what is not mapped is an error.
    let read = unsafe {
        libc::syscall(
            libc::SYS_process_vm_readv,
            libc::getpid(),
            &raw const into,
            1_u64,
            &raw const from,
            1_u64,
            0_u64,
        )
    };
    read == to.len() as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::os::sys;

    #[test]
    fn addresses_are_found_where_registers_wait_or_are_swapped() {
        const LOOK: [u8; 9] = [0x41, 0x81, 0xFB, 0, 0, 0, 0xC0, 0x7D, 0x18];
        const WAIT: [u8; 5] = [0x50, 0x9F, 0x0F, 0x90, 0xC0];
        let code = |parts: &[&[u8]]| parts.concat();
        let mut registers = [0; 16];
        let (rax, rcx) = (0xABCD_8010_1234, 0x10);
        registers[0] = rax;
        registers[1] = rcx;
        let lea = [0x44, 0x8D, 0x5C, 0x08, 0x04]; // leal 4(%rax,%rcx), %r11d
        let plain = code(&[&lea, &LOOK]);
        assert_eq!(effective(&plain, &registers), Some(0x8010_1248));
        assert_eq!(effective(&lea, &registers), Some(0x8010_1248));
        // Another register's second byte is stored, and rax's.
        let other = code(&[&lea, &LOOK, &[0x86, 0xF2]]);
        assert_eq!(effective(&other, &registers), Some(0x8010_1248));
        let swapped = code(&[&lea, &LOOK, &[0x86, 0xE0]]);
        registers[0] = 0xABCD_8010_3412;
        assert_eq!(effective(&swapped, &registers), Some(0x8010_1248));
        // The flags wait in rax.
        let stack = [rax, 0xFFFF_0000_1111];
        registers[0] = rax & !0xFFFF | 0x4601;
        registers[4] = stack.as_ptr() as u64;
        let waits = code(&[&lea, &WAIT, &LOOK]);
        assert_eq!(effective(&waits, &registers), Some(0x8010_1248));
        // And what is stored in rcx, which is not known then.
        for store in [[0x51, 0x48, 0x89, 0xC1], [0x51, 0x0F, 0x94, 0xC1]] {
            assert_eq!(effective(&code(&[&lea, &store, &WAIT, &LOOK]), &registers), None);
            let lea = [0x44, 0x8D, 0x18]; // leal (%rax), %r11d
            let waits = code(&[&lea, &store, &WAIT, &LOOK]);
            assert_eq!(effective(&waits, &registers), Some(0x8010_1234));
        }
        // No `pushq %rax` was executed: what stands on the stack is not told.
        registers[0] = 0x4601;
        assert_eq!(effective(&waits, &registers), None);
        registers[4] = 8;
        assert_eq!(effective(&waits, &registers), None);
    }

    #[test]
    fn code_is_read_as_far_as_it_is_there() {
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let len = 3 * PAGE as u64;
        // SAFETY: fresh pages, of which the middle one is accessible.
        let text = unsafe {
            let at = sys::map_anonymous(0, len, rw, false).expect("memory");
            for page in [at, at + 2 * PAGE as u64] {
                sys::protect(page, PAGE as u64, libc::PROT_NONE).expect("rights");
            }
            ((at + PAGE as u64) as *mut u8).write_bytes(0x90, PAGE);
            at + PAGE as u64
        };
        for (at, before, here) in [
            (0, 0, TEST_LEN),
            (1, 1, TEST_LEN),
            (BEFORE, BEFORE, TEST_LEN),
            (PAGE - 3, BEFORE, 3),
        ] {
            let code = Code::around(text + at as u64, read).expect("text");
            let (front, own) = code.parts();
            let count = |bytes: &[u8]| bytes.iter().filter(|&&b| b == 0x90).count();
            assert_eq!((count(front), count(own)), (before, here), "{at}");
            assert!(front[BEFORE - before..].iter().all(|&b| b == 0x90));
        }
        assert!(Code::around(text - 1, read).is_none());
        assert!(Code::around(5, read).is_none());
        // SAFETY: our own pages.
        unsafe { libc::munmap((text - PAGE as u64) as *mut _, len as usize) };
    }
}
