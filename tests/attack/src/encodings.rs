//! All encodings, by number: legacy opcode maps and VEX, each with every ModRM byte and with every set of prefixes.

use crate::rng::Rng;

/// Sets of the six prefixes the decoder knows × REX or none × four maps × opcode × ModRM.
const LEGACY: u64 = 64 * 17 * 4 * 256 * 256;
/// Address prefixes × the whole second byte × opcode × ModRM.
const VEX2: u64 = 4 * 256 * 256 * 256;
/// Address prefixes × maps 1 to 3 × RXB × W × four values of vvvv × L × pp × opcode × ModRM.
const VEX3: u64 = 4 * 3 * 8 * 2 * 4 * 2 * 4 * 256 * 256;

/// How many encodings there are, SIB bytes, displacements and immediates not counted.
pub const TOTAL: u64 = LEGACY + VEX2 + VEX3;

/// One encoding, with random bytes behind its ModRM byte.
#[derive(Clone, Debug)]
pub struct Encoding {
    /// The bytes; more than any instruction has.
    pub bytes: [u8; 32],
    /// Where the ModRM byte stands, if the opcode has one.
    pub modrm: usize,
    /// REX.X or VEX.X, as 0 or 8.
    pub x: u8,
    /// REX.B or VEX.B, as 0 or 8.
    pub b: u8,
}

/// Encoding number `n`, which is below [`TOTAL`]. What the number leaves open comes from `rng`. `None` if the opcode is a
/// prefix or leads to another map: then the same bytes have another number.
#[must_use]
pub fn encoding(n: u64, rng: &mut Rng) -> Option<Encoding> {
    if n < LEGACY {
        let opcode = (n >> 8) as u8;
        let elsewhere = match n >> 16 & 3 {
            0 => matches!(opcode, 0x0F | 0x40..=0x4F | 0x65..=0x67 | 0xC4 | 0xC5 | 0xF0 | 0xF2 | 0xF3),
            1 => matches!(opcode, 0x38 | 0x3A),
            _ => false,
        };
        if elsewhere {
            return None;
        }
    }
    let mut bytes = [0; 32];
    for chunk in bytes.chunks_exact_mut(8) {
        chunk.copy_from_slice(&rng.bits().to_le_bytes());
    }
    let mut e = Encoding {
        bytes,
        modrm: 0,
        x: 0,
        b: 0,
    };
    let mut at = 0;
    let mut put = |byte: u8| {
        e.bytes[at] = byte;
        at += 1;
    };
    let modrm = n as u8;
    let opcode = (n >> 8) as u8;
    if n < LEGACY {
        let mut rest = n >> 16;
        let map = rest % 4;
        rest /= 4;
        let rex = rest % 17;
        let mut prefixes = rest / 17;
        let order = rng.bits();
        for turn in 0..6 {
            // A random rotation of the order is enough: each pair occurs in both orders.
            let i = (turn + order) % 6;
            if prefixes >> i & 1 == 1 {
                put([0x65, 0x67, 0x66, 0xF2, 0xF3, 0xF0][i as usize]);
                prefixes &= !(1 << i);
            }
        }
        if rex != 0 {
            let rex = 0x40 + (rex - 1) as u8;
            put(rex);
            e.x = (rex & 2) << 2;
            e.b = (rex & 1) << 3;
        }
        if map != 0 {
            put(0x0F);
        }
        match map {
            2 => put(0x38),
            3 => put(0x3A),
            _ => {}
        }
    } else {
        let n = n - LEGACY;
        let short = n < VEX2;
        let mut rest = (if short { n } else { n - VEX2 }) >> 16;
        let prefixes = rest % 4;
        rest /= 4;
        if prefixes & 1 != 0 {
            put(0x65);
        }
        if prefixes & 2 != 0 {
            put(0x67);
        }
        if short {
            put(0xC5);
            put(rest as u8);
        } else {
            let pp = (rest % 4) as u8;
            let l = (rest / 4 % 2) as u8;
            let vvvv = [15u8, 0, 11, 1][(rest / 8 % 4) as usize];
            let w = (rest / 32 % 2) as u8;
            let rxb = (rest / 64 % 8) as u8;
            let map = (rest / 512) as u8 + 1;
            put(0xC4);
            put(rxb << 5 | map);
            put(w << 7 | vvvv << 3 | l << 2 | pp);
            e.x = (!rxb & 2) << 2;
            e.b = (!rxb & 1) << 3;
        }
    }
    put(opcode);
    put(modrm);
    e.modrm = at - 1;
    Some(e)
}
