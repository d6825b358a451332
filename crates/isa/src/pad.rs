//! Landing pads of exceptions: where the runtime may resume a live frame.
//!
//! A pad starts with a long no-op that says how deep the control stack is there, `nopl TAG<<16|DEPTH(%rcx,%rcx,1)`. It is a
//! claim: the verifier checks it like any other way by which control arrives, and the runtime resumes nowhere else.

/// The first four bytes of a pad's no-op.
pub const HEAD: [u8; 4] = [0x0F, 0x1F, 0x84, 0x09];

/// Upper 16 bits of its displacement. The lower half is the depth in bytes.
pub const TAG: u16 = 0x7AD0;

/// Length of the no-op in bytes.
pub const LEN: usize = 8;

/// The bytes of a pad's no-op.
#[must_use]
pub const fn marker(depth: u16) -> [u8; LEN] {
    let (d, t) = (depth.to_le_bytes(), TAG.to_le_bytes());
    [0x0F, 0x1F, 0x84, 0x09, d[0], d[1], t[0], t[1]]
}

/// The depth that the instruction at the start of `code` claims, if it is a pad's no-op.
#[must_use]
pub fn claim(code: &[u8]) -> Option<u16> {
    let code = code.first_chunk::<LEN>()?;
    let depth = u16::from_le_bytes([code[4], code[5]]);
    (*code == marker(depth)).then_some(depth)
}
