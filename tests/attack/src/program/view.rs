//! The words mode: operands behind the window with the tests of their rights in front, and tests that are broken in one place.

use super::Maker;
use super::held::through_r14;
use ringfence_isa::words::{self, CMOV, TABLE, VIEW};
use ringfence_verify::{Access, Memory, decode};
use std::ops::Range;

/// One access whose address is known when the program is made.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    /// Its offset in the window.
    pub at: u32,
    /// How many bytes.
    pub size: u8,
    /// Whether it may write.
    pub write: bool,
}

impl Maker<'_> {
    /// A place in the arena or a little beside.
    fn place(&mut self, arena: &Range<u32>) -> u32 {
        let len = u64::from(arena.end - arena.start);
        match self.rng.below(20) {
            0 => arena.end - self.rng.below(40) as u32,
            1 => arena.start.wrapping_sub(self.rng.below(40) as u32),
            _ => arena.start + self.rng.below(len) as u32 / self.rng.pick(&[1, 4, 4, 4]) as u32,
        }
    }

    /// `leal to, %r11d`.
    fn lead(&mut self, to: u32) {
        self.put(&[0x44, 0x8D, 0x1C, 0x25]);
        self.put(&to.to_le_bytes());
    }

    /// An access by its tests; one in a few is broken if something forbidden is wanted.
    pub(super) fn view(&mut self, arena: &Range<u32>, broken: bool) {
        let to = self.place(arena);
        let known = match self.rng.below(4) {
            0 => {
                // An argument, which may be the host's own pointer.
                let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7]);
                self.put(&[0x41, 0x89, 0xC3 | register << 3]);
                None
            }
            1 => {
                let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7]);
                self.put(&[0x44, 0x8D, 0x98 | register]);
                let further = self.rng.below(64) as u32;
                self.put(&further.to_le_bytes());
                None
            }
            _ => {
                self.lead(to);
                Some(to)
            }
        };
        let Some((form, encoding, _)) = self.pick(|i| i.memory == Memory::Confined) else {
            return;
        };
        let made = through_r14(encoding, VIEW as u32, Memory::View, self.rng);
        let Some((bytes, len)) = made else { return };
        let Ok(i) = decode(&bytes) else { return };
        // By their mask, `vmaskmov` and `vpmaskmov` may access nothing.
        let masked =
            bytes[0] == 0xC4 && bytes[1] & 0x1F == 2 && matches!(bytes[3], 0x2C..=0x2F | 0x8C | 0x8E);
        let known = known.filter(|_| !masked);
        let write = i.access == Access::Write;
        let Some((bit, second)) = words::tests(i.size, write) else {
            return;
        };
        let mut steps: Vec<Vec<u8>> = Vec::new();
        for displacement in [0, second].into_iter().take(1 + usize::from(second != 0)) {
            steps.push(words::test(TABLE + displacement, bit).to_vec());
            steps.push(CMOV.to_vec());
        }
        if broken {
            self.break_steps(&mut steps);
        }
        steps.iter().for_each(|step| self.put(step));
        self.put(&bytes[..len]);
        self.out.forms.push(form as u32);
        self.out.views += 1;
        self.out.known.extend(known.map(|at| Known {
            at,
            size: i.size,
            write,
        }));
    }

    /// Something that makes the tests say nothing.
    fn break_steps(&mut self, steps: &mut Vec<Vec<u8>>) {
        let at = self.rng.below(steps.len() as u64) as usize;
        match self.rng.below(8) {
            0 => drop(steps.remove(at)),
            // For another size, or to read.
            1 => *steps[0].last_mut().unwrap_or(&mut 0) = 1 << self.rng.below(8),
            // Of another byte.
            2 => steps[0][5] ^= 1 << self.rng.below(6),
            // The other way round, or into another register.
            3 => steps.insert(at, vec![0x45, 0x0F, 0x45, 0xDE]),
            4 => steps[1] = vec![0x41, 0x0F, 0x44, 0xDE],
            // r11 changes behind its test.
            5 => {
                let change: &[u8] = self.rng.pick(&[
                    &[0x41, 0x89, 0xF3][..], // movl %esi, %r11d
                    &[0x49, 0x83, 0xC3, 4],  // addq $4, %r11
                    &[0x41, 0xFF, 0xC3],     // incl %r11d
                    &[0x41, 0xB3, 8],        // movb $8, %r11b
                ]);
                steps.push(change.to_vec());
            }
            // Over the first test, or over all.
            6 => {
                let over: usize = steps[..=at].iter().map(Vec::len).sum();
                steps.insert(0, vec![0xEB, over as u8]);
            }
            _ => steps.swap(0, 1),
        }
    }

    /// A program of accesses at known places only.
    pub(super) fn views(&mut self, arena: &Range<u32>) {
        for _ in 0..=self.rng.below(4) {
            let before = (self.here(), self.out.known.len());
            self.view(arena, false);
            if self.out.known.len() == before.1 {
                // None, or of an unknown place.
                self.out.text.truncate(before.0);
            }
        }
    }
}
