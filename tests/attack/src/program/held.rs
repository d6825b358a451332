//! Operands through `r14`: held lines, and lines that are broken in one place.

use super::Maker;
use super::pool::Encoded;
use crate::rng::Rng;
use ringfence_isa::{identifier, sequence, window};
use ringfence_verify::{Memory, decode};

/// A confined instruction with its operand at `reach(%r14,%r11)` instead.
pub(super) fn through_r14(
    encoding: Encoded,
    reach: u32,
    memory: Memory,
    rng: &mut Rng,
) -> Option<([u8; 15], usize)> {
    let (old, len, modrm) = (encoding.0, usize::from(encoding.1), usize::from(encoding.2));
    let wide = match old[modrm] >> 6 {
        0 => usize::from(old[modrm] & 7 == 4 && old[modrm + 1] & 7 == 5) * 4,
        1 => 1,
        _ => 4,
    };
    let immediate = &old[modrm + 1 + usize::from(old[modrm] & 7 == 4) + wide..len];
    // 65 and 67 stand in front of what comes before the opcode.
    let legacy = old
        .iter()
        .take_while(|b| matches!(b, 0x65..=0x67 | 0xF0 | 0xF2 | 0xF3))
        .count();
    let mut new: Vec<u8> = old[..legacy]
        .iter()
        .copied()
        .filter(|b| !matches!(b, 0x65 | 0x67))
        .collect();
    match old[legacy] {
        0xC5 => {
            new.extend([0xC4, old[legacy + 1] & 0x80 | 1, old[legacy + 1] & 0x7F]);
            new.extend(&old[legacy + 2..modrm]);
        }
        0xC4 => {
            new.extend([0xC4, old[legacy + 1] & !0x60]);
            new.extend(&old[legacy + 2..modrm]);
        }
        rex @ 0x40..=0x4F => {
            new.push(rex | 3);
            new.extend(&old[legacy + 1..modrm]);
        }
        _ => {
            new.push(0x43);
            new.extend(&old[legacy..modrm]);
        }
    }
    let mode: u8 = match reach {
        0 if rng.one_in(2) => 0,
        0..0x80 if rng.one_in(2) => 1,
        _ => 2,
    };
    new.extend([old[modrm] & 0x38 | mode << 6 | 4, 0x1E]);
    new.extend(&reach.to_le_bytes()[..[0, 1, 4][usize::from(mode)]]);
    new.extend(immediate);
    let mut bytes = [0; 15];
    bytes.get_mut(..new.len())?.copy_from_slice(&new);
    // Some had a byte register without REX, which is another one with it.
    let good = decode(&bytes).is_ok_and(|i| i.memory == memory && usize::from(i.len) == new.len());
    let spoils = decode(&bytes).is_ok_and(|i| i.written.contains(14) || i.written.contains(15));
    (good && !spoils).then_some((bytes, new.len()))
}

impl Maker<'_> {
    /// Makes `r11` hold a place in the data, so that operands with displacement `reach` are there.
    pub(super) fn hold(&mut self, reach: u32) {
        let to = self.data() - reach;
        match self.rng.below(6) {
            0 => {
                self.put(&[0x44, 0x8D, 0x1C, 0x25]); // leal to, %r11d
                self.put(&to.to_le_bytes());
            }
            1 => {
                self.put(&[0x67, 0x44, 0x8D, 0x1C, 0x25]);
                self.put(&to.to_le_bytes());
            }
            2 => {
                // Whatever a register holds.
                let register = self.rng.pick(&[0u8, 1, 2, 3, 5, 6, 7]);
                self.put(&[0x41, 0x89, 0xC3 | register << 3]);
            }
            3 => {
                self.put(&[0x41, 0xBB]); // movl $to, %r11d; movl %r11d, %r11d
                self.put(&to.to_le_bytes());
                self.put(&[0x45, 0x8B, 0xDB]);
            }
            4 => {
                // An address as the host has it: leaq to(%r14), %rax; movl %eax, %r11d
                self.put(&[0x49, 0x8D, 0x86]);
                self.put(&to.to_le_bytes());
                self.put(&[0x41, 0x89, 0xC3]);
            }
            _ => {
                self.put(&[0xB8]); // movl $to, %eax; movl %eax, %r11d
                self.put(&to.to_le_bytes());
                self.put(&[0x44, 0x8B, 0xD8]);
            }
        }
    }

    /// A straight line of code in which `r11` holds a place and operands rely on it.
    pub(super) fn held(&mut self) {
        let limit = self.rng.pick(&[1, 0x80, 0x100, window::HELD_REACH as u64]);
        let reach = self.rng.below(limit) as u32;
        self.hold(reach);
        let mut out = Vec::new();
        for _ in 0..=self.rng.below(3) {
            match self.rng.below(8) {
                0 | 1 => self.fitting(|i| !i.written.contains(11)),
                2 => {
                    // A conditional jump to behind the line.
                    let condition = self.rng.below(16) as u8;
                    self.put(&[0x0F, 0x80 | condition, 0, 0, 0, 0]);
                    out.push(self.here());
                }
                3 => {
                    self.put(&[0x50]);
                    self.put(&[0x59]);
                }
                _ => {}
            }
            let Some((form, encoding, i)) = self.pick(|i| i.memory == Memory::Confined) else {
                break;
            };
            let Some((bytes, len)) = through_r14(encoding, reach, Memory::Held, self.rng) else {
                continue;
            };
            self.out.forms.push(form as u32);
            self.out.through_r14 += 1;
            self.put(&bytes[..len]);
            if i.written.contains(11) {
                break;
            }
        }
        for place in out {
            self.link(place);
        }
    }

    /// A line of code in which `r11` does not hold what an operand relies on: a distance from the window to what was in `rsi`, which
    /// may be the host's.
    pub(super) fn broken_line(&mut self, number: usize) {
        let stores = self.rng.one_in(2);
        // movq %rsi, %r11; subq %r14, %r11
        let far: &[u8] = &[0x49, 0x89, 0xF3, 0x4D, 0x29, 0xF3];
        let relies: &[u8] = if stores {
            &[0x4B, 0x89, 0x04, 0x1E]
        } else {
            &[0x4B, 0x8B, 0x04, 0x1E]
        };
        let hold: &[u8] = &[0x45, 0x89, 0xDB]; // movl %r11d, %r11d
        match self.rng.below(8) {
            0 => self.put(far),
            // Another write of all or of a part.
            1 => {
                self.put(hold);
                self.put(far);
            }
            2 => {
                let part: &[u8] = self.rng.pick(&[
                    &[0x41, 0xB3, 8][..],            // mov $8, %r11b
                    &[0x41, 0x0F, 0x94, 0xC3],       // sete %r11b
                    &[0x66, 0x41, 0x89, 0xF3],       // movw %si, %r11w
                    &[0x49, 0xC1, 0xE3, 12],         // shlq $12, %r11
                    &[0x49, 0x87, 0xF3],             // xchgq %rsi, %r11
                    &[0x49, 0x0F, 0xBA, 0xEB, 40],   // btsq $40, %r11
                    &[0x49, 0x83, 0xC3, 0xF8],       // addq $-8, %r11
                    &[0x4C, 0x0F, 0x45, 0xDE],       // cmovneq %rsi, %r11
                    &[0xC4, 0x62, 0xC8, 0xF2, 0xDE], // andnq %rsi, %rsi, %r11
                ]);
                self.put(hold);
                self.put(part);
            }
            // A move that leaves more.
            3 => {
                self.put(far);
                let wide: &[u8] = self.rng.pick(&[
                    &[0x4D, 0x89, 0xDB][..],   // movq %r11, %r11
                    &[0x4D, 0x8D, 0x1B],       // leaq (%r11), %r11
                    &[0x66, 0x45, 0x89, 0xDB], // movw %r11w, %r11w
                    &[0x66, 0x45, 0x8D, 0x1B], // leaw (%r11), %r11w
                ]);
                self.put(wide);
            }
            // Into the middle.
            4 => {
                self.put(far);
                self.put(&[0xEB, hold.len() as u8]);
                self.put(hold);
            }
            // A call, which may leave anything there.
            5 if number + 1 < self.functions => {
                self.put(hold);
                self.put(&[0xE8, 0, 0, 0, 0]);
                self.calls.push((self.here() - 4, number + 1));
            }
            // A label, and with it the address of the label in r11.
            6 => {
                self.labels = self.labels.wrapping_add(1);
                let Some(id) = identifier::label(self.labels) else {
                    return;
                };
                let place = self.lea();
                self.check(id, sequence::JMP);
                self.put(hold);
                self.align(8, 0);
                self.link(place);
                self.put(&identifier::marker(id));
            }
            // Beyond the reach, or with a scale.
            _ => {
                self.put(&[0x41, 0xBB]);
                let start = self.rng.pick(&[0u32, 0xFFFF_FFF8, 0x8000_0000]);
                self.put(&start.to_le_bytes());
                self.put(hold);
                let opcode = if stores { 0x89 } else { 0x8B };
                let (sib, reach) =
                    self.rng
                        .pick(&[(0x1E, -8), (0x1E, 0x2_0000), (0xDE, 0), (0x1E, i32::MIN)]);
                self.put(&[0x4B, opcode, 0x84, sib]);
                return self.put(&i32::to_le_bytes(reach));
            }
        }
        self.put(relies);
    }
}
