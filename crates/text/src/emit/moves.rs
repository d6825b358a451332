//! Moves between registers that happen at once.

use super::asm::Asm;

/// Moves (to, from), all of which read what was there before. No register is written twice.
pub fn parallel(asm: &mut Asm, mut moves: Vec<(u8, u8)>, float: bool) {
    moves.retain(|m| m.0 != m.1);
    while let Some(&first) = moves.last() {
        // One whose target nobody reads any more.
        if let Some(i) = moves.iter().position(|m| moves.iter().all(|n| n.1 != m.0)) {
            let (to, from) = moves.swap_remove(i);
            match float {
                true => asm.movaps(to, from),
                false => asm.mov(8, to, from),
            }
            continue;
        }
        // All are parts of circles: exchange two, and go on with what is where now.
        let (a, b) = first;
        if float {
            asm.movaps(15, a);
            asm.movaps(a, b);
            asm.movaps(b, 15);
        } else {
            asm.rr(0, &[0x87], 8, a, b);
        }
        for m in &mut moves {
            m.1 = match m.1 {
                r if r == a => b,
                r if r == b => a,
                r => r,
            };
        }
        moves.retain(|m| m.0 != m.1);
    }
}
