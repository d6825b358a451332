//! Deliberate holes, for test builds only (feature `holes`): mistakes in the verifier that the corpus and the fuzzers must
//! notice. In every other build [`hole!`] is the constant `false`, and no release build compiles with the feature.

/// Whether deliberate hole number `$n` is open.
macro_rules! hole {
    ($n:literal) => {{
        #[cfg(feature = "holes")]
        let open = crate::holes::open($n);
        #[cfg(not(feature = "holes"))]
        let open = false;
        open
    }};
}
pub(crate) use hole;

#[cfg(all(feature = "holes", not(debug_assertions)))]
compile_error!("the feature `holes` makes the verifier unsound on purpose: it is for test builds only");

#[cfg(feature = "holes")]
mod planted {
    use std::cell::Cell;

    thread_local!(static OPEN: Cell<u32> = const { Cell::new(0) });

    pub(crate) fn open(n: u32) -> bool {
        OPEN.get() == n
    }

    /// Opens deliberate hole `n` of [`HOLES`] for this thread, and closes any other; 0 closes all.
    pub fn plant(n: u32) {
        OPEN.set(n);
    }

    /// What each hole is, from number 1 on.
    pub const HOLES: &[&str] = &[
        "gs alone makes an operand confined",
        "the address-size prefix alone makes an operand confined",
        "the end of a RIP-relative access is not checked",
        "RIP-relative stores may go to read-only data and text",
        "rsp may be read",
        "VEX.vvvv as a destination is overlooked",
        "writes to byte registers are overlooked",
        "ret is accepted at any depth",
        "pop is accepted at depth 0",
        "paths may meet at different depths",
        "tail calls are accepted at any depth",
        "jumps may land inside instructions",
        "jumps may land inside fixed sequences",
        "control may fall off a function's end",
        "the checked sequence may compare another register and skip the cmov",
        "identifiers may hide in immediates and displacements",
        "one label may be in two functions",
        "string instructions may have address-size and segment prefixes",
        "movs and cmps need only the pair before them",
        "register-only forms may have a memory operand",
        "integrity mode takes a read and write for a read",
        "lock is accepted on everything",
        "unused VEX.vvvv may be anything",
        "branches may have prefixes",
        "the same prefix may stand twice",
        "stub calls may land inside stubs",
        "label numbers of other modules may be used",
        "calls may name labels",
        "a jump may go to the labels of another function",
        "66 with REX.W is a 16-bit operand size",
        "data segments may overlap the text",
        "entries and targets of calls may be inside instructions",
        "nothing follows control from landing pads",
        "the depths that landing pads claim may be anything",
        "the index of a table jump may be r11, which holds the table's address",
        "the clamp of a table jump may be of another register",
        "jumps may land inside the sequence of a table jump",
        "the clamp of a table jump may have a negative mask",
        "only the first slot of a table is checked",
        "slots of a table may lead to another function",
        "slots of a table may have another depth than the jump",
        "a table may be in another function",
        "a table may have bytes of an identifier",
        "the quick decoder takes operands without both prefixes",
        "the quick decoder overlooks rsp",
        "the quick decoder overlooks writes to r14",
        "the displacement of an operand through r14 may be anything",
        "a call does not end what is known of r11",
        "a marker does not end what is known of r11",
        "writes of r11 do not end what is known of it",
        "jumps may land where an operand through r14 relies on r11",
        "leaq makes r11 hold a lower half",
        "operands through r14 need no r11 that holds",
        "operands through r14 may have a scale",
        "movw makes r11 hold a lower half",
        "the quick decoder overlooks the displacement of an operand through r14",
        "the quick decoder overlooks that an operand through r14 relies on r11",
        "a jump, return or trap does not end what is known of r11",
        "a landing pad does not end what is known of r11",
        "an operand through r14 may be jumped to itself",
    ];
}
#[cfg(feature = "holes")]
pub(crate) use planted::open;
#[cfg(feature = "holes")]
pub use planted::{HOLES, plant};
