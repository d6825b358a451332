//! Accepted encodings, from which programs are made.

use crate::encodings;
use crate::rng::Rng;
use ringfence_verify::{Flow, Memory, decode};

/// An encoding: its bytes, how many, and where the ModRM byte stands.
pub(super) type Encoded = ([u8; 15], u8, u8);

/// Accepted encodings to choose from, by form.
#[derive(Debug)]
pub struct Pool {
    pub(super) forms: Vec<Vec<Encoded>>,
}

/// How much data operands may reach, from [`crate::elf::DATA`] on.
pub(super) const REACH: u64 = 0x1_0000;
/// How many encodings of one form are kept.
const KEEP: usize = 12;

impl Pool {
    /// Draws `draws` encodings and keeps what the decoder accepts.
    #[must_use]
    pub fn new(draws: u64, rng: &mut Rng) -> Pool {
        let mut by_form = std::collections::HashMap::<u32, Vec<_>>::new();
        for _ in 0..draws {
            let Some(e) = encodings::encoding(rng.below(encodings::TOTAL), rng) else {
                continue;
            };
            let Ok(i) = decode(&e.bytes) else { continue };
            // The data stack's pointer is rarely spoilt: gates would end most calls.
            let spoils = i.written.contains(14) || i.written.contains(15) && !rng.one_in(100);
            if i.flow != Flow::Next || spoils || matches!(i.memory, Memory::Free | Memory::Held) {
                continue;
            }
            // The loader takes these for labels, wherever they stand at a multiple of 8.
            if e.bytes[..3] == [0x0F, 0x1F, 0x84] {
                continue;
            }
            // Operands through r14 are made of confined ones (`held.rs`), all others without `gs` are nothing the grammar has; `lea` and no-ops report no memory.
            let modrm = e.bytes[e.modrm];
            let head = e.bytes[..e.modrm].iter().fold(0u32, |h, b| {
                let prefix =
                    matches!(b, 0x65 | 0x67) || b & 0xF0 == 0x40 && e.bytes[0] != 0xC4 && e.bytes[0] != 0xC5;
                if prefix {
                    h
                } else {
                    h.wrapping_mul(257) + u32::from(*b)
                }
            });
            let form = head.wrapping_mul(64) + u32::from(modrm >> 3 & 7) * 2 + u32::from(modrm >= 0xC0);
            let list = by_form.entry(form).or_default();
            if list.len() < KEEP {
                let mut bytes = [0; 15];
                bytes.copy_from_slice(&e.bytes[..15]);
                list.push((bytes, i.len, e.modrm as u8));
            }
        }
        let mut forms: Vec<_> = by_form.into_iter().collect();
        forms.sort_by_key(|f| f.0);
        Pool {
            forms: forms.into_iter().map(|f| f.1).collect(),
        }
    }

    /// Number of forms.
    #[must_use]
    pub fn forms(&self) -> usize {
        self.forms.len()
    }
}
