//! The encodings that are tried: every opcode of every map, with every ModRM byte and the SIB bytes, under sets of prefixes.

/// A way to begin an instruction: everything in front of the opcode byte.
#[derive(Clone)]
pub struct Head {
    bytes: [u8; 12],
    len: usize,
    /// Whether all SIB bytes are tried, or a selection.
    every_sib: bool,
}

impl Head {
    fn new(parts: &[&[u8]], every_sib: bool) -> Head {
        let mut head = Head {
            bytes: [0; 12],
            len: 0,
            every_sib,
        };
        for part in parts {
            head.bytes[head.len..head.len + part.len()].copy_from_slice(part);
            head.len += part.len();
        }
        head
    }

    /// The bytes, for progress messages.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The legacy prefixes that the verifier knows.
const PREFIXES: [u8; 6] = [0x65, 0x67, 0x66, 0xF0, 0xF2, 0xF3];
/// Those that it must refuse wherever they stand.
const REFUSED: [u8; 5] = [0x26, 0x2E, 0x36, 0x3E, 0x64];

/// All ways to begin: every set of prefixes × every REX × every legacy map, other orders and repetitions of prefixes, every
/// VEX payload, and samples of what has to be refused as a whole.
pub fn heads() -> Vec<Head> {
    let maps: [&[u8]; 4] = [&[], &[0x0F], &[0x0F, 0x38], &[0x0F, 0x3A]];
    let rexes: Vec<Vec<u8>> = std::iter::once(vec![])
        .chain((0x40..=0x4F).map(|rex| vec![rex]))
        .collect();
    let mut heads = Vec::new();
    // Every set, in one order; every REX.
    for set in 0..64u32 {
        let prefixes: Vec<u8> = PREFIXES
            .iter()
            .enumerate()
            .filter(|(i, _)| set >> i & 1 == 1)
            .map(|(_, p)| *p)
            .collect();
        for rex in &rexes {
            for map in maps {
                heads.push(Head::new(&[&prefixes, rex, map], prefixes.len() <= 3));
            }
        }
    }
    // Every sequence of up to three prefixes of both kinds, so every order and repetition; with and without REX, before and behind it.
    let all: Vec<u8> = PREFIXES.iter().chain(&REFUSED).copied().collect();
    for first in &all {
        for second in all.iter().map(Some).chain([None]) {
            for third in all.iter().map(Some).chain([None]) {
                if second.is_none() && third.is_some() {
                    continue;
                }
                let sequence: Vec<u8> = [Some(first), second, third]
                    .into_iter()
                    .flatten()
                    .copied()
                    .collect();
                for map in maps {
                    heads.push(Head::new(&[&sequence, map], false));
                    heads.push(Head::new(&[&sequence, &[0x4C], map], false));
                    heads.push(Head::new(&[&[0x49], &sequence, map], false));
                }
            }
        }
    }
    // VEX: every payload of the two-byte form, every payload of the three-byte form for maps 0 to 4, with and without gs + address size.
    for before in [&[][..], &[0x65, 0x67]] {
        for payload in 0..=255u8 {
            heads.push(Head::new(&[before, &[0xC5, payload]], false));
        }
        for map in 0..5u8 {
            for rxb in 0..8u8 {
                for last in 0..=255u8 {
                    heads.push(Head::new(&[before, &[0xC4, rxb << 5 | map, last]], false));
                }
            }
        }
    }
    // VEX behind every single prefix and REX, EVEX, XOP, REX2.
    for first in all.iter().copied().chain(0x40..=0x4F) {
        for payload in [0x78u8, 0x79, 0x7A, 0x7B, 0x7C, 0xF8, 0xC5] {
            heads.push(Head::new(&[&[first, 0xC5, payload]], false));
            heads.push(Head::new(&[&[first, 0xC4, 0xE1, payload]], false));
            heads.push(Head::new(&[&[first, 0xC4, 0xE2, payload]], false));
        }
    }
    for map in 0..8u8 {
        for p1 in [0x7Cu8, 0x7D, 0x7E, 0x7F, 0xFC, 0xFD, 0xFE, 0xFF, 0x05] {
            for p2 in [0x08u8, 0x28, 0x48, 0x18, 0x58, 0x89, 0xC9, 0x00] {
                heads.push(Head::new(&[&[0x62, 0xF0 | map, p1, p2]], false));
                heads.push(Head::new(&[&[0x65, 0x67, 0x62, 0x70 | map, p1, p2]], false));
            }
        }
        heads.push(Head::new(&[&[0x8F, 0xE8 | map, 0x78]], false));
        heads.push(Head::new(&[&[0xD5, map << 4]], false));
    }
    heads
}

/// A quick source of the bytes that follow ModRM and SIB.
pub struct Tail(u64);

impl Tail {
    /// The same seed gives the same bytes.
    pub fn new(seed: u64) -> Tail {
        let mut tail = Tail(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        tail.next();
        tail
    }

    /// The next eight.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// SIB bytes where not all are tried: no base and no index, `rsp` and its namesakes, every index and every base at least once,
/// `(%r14,%r11)`.
const SIBS: [u8; 25] = [
    0x24, 0x25, 0x20, 0x04, 0x0C, 0x14, 0x1C, 0x2C, 0x34, 0x3C, 0x05, 0x0D, 0x45, 0x6D, 0xAD, 0xE4, 0xE5,
    0x01, 0x4A, 0x93, 0xDE, 0xFF, 0x74, 0x3E, 0x1E,
];

/// Calls `visit` with every encoding that begins with `head`, as 15 bytes. Of them, one in `sample` at random.
pub fn encodings(head: &Head, sample: u64, tail: &mut Tail, visit: &mut impl FnMut(&[u8; 15])) {
    let mut code = [0u8; 32];
    code[..head.len].copy_from_slice(&head.bytes[..head.len]);
    let at = head.len;
    let selection: Vec<u8> = if head.every_sib {
        (0..=255).collect()
    } else {
        SIBS.to_vec()
    };
    for opcode in 0..=255u8 {
        code[at] = opcode;
        for modrm in 0..=255u8 {
            code[at + 1] = modrm;
            let sibs: &[u8] = if modrm < 0xC0 && modrm & 7 == 4 {
                &selection
            } else {
                &[0]
            };
            for &sib in sibs {
                let random = tail.next();
                if !(random >> 32).is_multiple_of(sample) {
                    continue;
                }
                // Bytes in a row from one random number; one in four with a zero immediate or displacement.
                let filler = if random & 3 == 0 { 0 } else { random };
                code[at + 2..at + 10].copy_from_slice(&filler.to_le_bytes());
                code[at + 10..at + 18].copy_from_slice(&random.rotate_left(29).to_le_bytes());
                if sibs.len() > 1 {
                    code[at + 2] = sib;
                }
                if let Some(encoding) = code.first_chunk() {
                    visit(encoding);
                }
            }
        }
    }
}
