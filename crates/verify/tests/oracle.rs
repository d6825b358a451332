//! Compares the decoder with iced-x86, an independent one: whatever our decoder accepts, iced must see as the same
//! length, the same memory operand, the same registers written, and an instruction of a kind that may be accepted.
//!
//! `RINGFENCE_SOAK=1` multiplies the number of encodings tried by 50. `tests/enumerate` goes through all of them.

mod iced;

use iced::disagreement;
use iced_x86::{DecoderOptions, InstructionInfoFactory};
use ringfence_verify::{Memory, decode};

/// xorshift64*: good enough to pick bytes, and the same on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            *byte = (self.next() >> 40) as u8;
        }
    }
}

#[derive(Default)]
struct Tally {
    /// Of the accepted ones: with an operand through r14.
    held: u64,
    /// What has been reported, so that each kind of disagreement shows once.
    seen: std::collections::HashSet<String>,
    tried: u64,
    accepted: u64,
    wrong: u64,
}

impl Tally {
    fn check(&mut self, bytes: &[u8; 15], factory: &mut InstructionInfoFactory) {
        self.tried += 1;
        let Ok(ours) = decode(bytes) else { return };
        self.accepted += 1;
        self.held += u64::from(ours.memory == Memory::Held);
        for options in [DecoderOptions::NONE, DecoderOptions::AMD] {
            if let Err(what) = disagreement(bytes, &ours, options, factory) {
                self.wrong += 1;
                let (kind, code) = what.split_once(';').unwrap_or((&what, ""));
                let code = code
                    .split("code: ")
                    .nth(1)
                    .and_then(|c| c.split(',').next())
                    .unwrap_or_default();
                if self.seen.len() < 100 && self.seen.insert(format!("{kind} {code}")) {
                    println!("{bytes:02x?}: {kind} {code}\n    ours: {ours:?}");
                }
                break;
            }
        }
    }

    fn finish(&self, name: &str) {
        println!(
            "{name}: {} tried, {} accepted, {} disagreements",
            self.tried, self.accepted, self.wrong
        );
        assert_eq!(self.wrong, 0, "iced-x86 disagrees about accepted encodings");
        assert!(
            self.accepted * 100 > self.tried,
            "the test hardly exercises anything"
        );
    }
}

/// 1 in ordinary tests, more in long ones.
fn effort() -> usize {
    match std::env::var("RINGFENCE_SOAK").ok().and_then(|n| n.parse().ok()) {
        None | Some(0) => 1,
        Some(1) => 50,
        Some(n) => n,
    }
}

/// Every opcode of every map with every ModRM byte, each with some prefixes and tails at random.
#[test]
fn systematic_encodings() {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut factory = InstructionInfoFactory::new();
    let mut tally = Tally::default();
    let prefixes: [&[u8]; 10] = [
        &[0x65, 0x67],
        &[0x65, 0x67],
        &[0x67, 0x65],
        &[],
        &[],
        &[0x67],
        &[0x65, 0x67, 0xF0],
        &[0xF0, 0x65, 0x67],
        &[0xF3],
        &[0xF2],
    ];
    let rexes: [&[u8]; 8] = [&[], &[], &[], &[0x48], &[0x41], &[0x4C], &[0x43], &[0x4F]];
    let selectors: [&[u8]; 5] = [&[], &[0x66], &[0xF3], &[0xF2], &[0x66, 0xF2]];
    for map in 0..4 + 12 {
        for opcode in 0..=255u8 {
            for modrm in 0..=255u8 {
                for _ in 0..6 * effort() {
                    let mut head = [0u8; 32];
                    let mut n = 0;
                    let put = |bytes: &[u8], head: &mut [u8; 32], n: &mut usize| {
                        head[*n..*n + bytes.len()].copy_from_slice(bytes);
                        *n += bytes.len();
                    };
                    put(random.pick(&prefixes), &mut head, &mut n);
                    if map < 4 {
                        put(random.pick(&selectors), &mut head, &mut n);
                        put(random.pick(&rexes), &mut head, &mut n);
                        put(
                            [&[][..], &[0x0F], &[0x0F, 0x38], &[0x0F, 0x3A]][map],
                            &mut head,
                            &mut n,
                        );
                    } else {
                        let (vex_map, pp) = ((map - 4) as u8 / 4 + 1, (map - 4) as u8 % 4);
                        let unused = if random.below(2) == 0 {
                            0x78
                        } else {
                            random.next() as u8 & 0x78
                        };
                        let l = random.next() as u8 & 4;
                        if vex_map == 1 && random.below(3) == 0 {
                            put(
                                &[0xC5, random.next() as u8 & 0x80 | unused | l | pp],
                                &mut head,
                                &mut n,
                            );
                        } else {
                            let w = if random.below(3) == 0 { 0x80 } else { 0 };
                            put(
                                &[0xC4, random.next() as u8 & 0xE0 | vex_map, w | unused | l | pp],
                                &mut head,
                                &mut n,
                            );
                        }
                    }
                    put(&[opcode, modrm], &mut head, &mut n);
                    random.fill(&mut head[n..]);
                    if random.below(4) == 0 {
                        head[n] = 0x25; // SIB without base and index
                    }
                    if modrm & 7 == 4 && modrm < 0xC0 && random.below(2) == 0 {
                        // The operand through r14, if REX or VEX says so, and displacements about its limits.
                        head[n] = 0x1E;
                        head[n + 3..n + 5].fill(if random.below(8) == 0 { 0xFF } else { 0 });
                    }
                    let code: [u8; 15] = *head.first_chunk().expect("32 bytes");
                    tally.check(&code, &mut factory);
                }
            }
        }
    }
    println!("{} operands through r14", tally.held);
    assert!(tally.held > 200);
    tally.finish("systematic");
}

/// Bytes at random, with a bias to what prefixes look like.
#[test]
fn random_bytes() {
    let mut random = Random(0xD1B5_4A32_D192_ED03);
    let mut factory = InstructionInfoFactory::new();
    let mut tally = Tally::default();
    let common = [
        0x65, 0x67, 0x66, 0xF0, 0xF2, 0xF3, 0x0F, 0xC4, 0xC5, 0x48, 0x41, 0x26, 0x64,
    ];
    for _ in 0..2_000_000 * effort() {
        let mut code = [0; 15];
        random.fill(&mut code);
        for byte in code.iter_mut().take(4) {
            if random.below(3) == 0 {
                *byte = random.pick(&common);
            }
        }
        tally.check(&code, &mut factory);
    }
    tally.finish("random");
}
