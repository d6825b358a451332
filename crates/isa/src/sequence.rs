//! The checked indirect jump and call, and the jump through a table of code (rule 5), byte for byte.
//!
//! ```text
//!     movl    <target>, %r11d          ; any accepted way to fill r11; not part of the sequence
//!     andl    $-8, %r11d               ; 41 83 E3 F8
//!     cmpl    $ID, %gs:4(%r11d)        ; 65 67 41 81 7B 04 id32
//!     cmovnel %r14d, %r11d             ; 45 0F 45 DE   a wrong target becomes offset 0, never mapped
//!     addq    %r14, %r11               ; 4D 01 F3
//!     jmp     *%r11                    ; 41 FF E3      or call *%r11: 41 FF D3
//! ```
//!
//! The sequence that the verifier knows starts at `andl`: from there on nothing depends on what
//! `r11` held, so the `movl` in front of it needs no rule of its own. No jump may land inside.
//!
//! A jump through a table needs no identifier, because all places it can reach are known beforehand:
//!
//! ```text
//!     andl    $MASK, %eREG             ; [41] 83 E0+reg imm8   MASK is 0 to 127; or
//!     movzbl  <byte>, %eREG            ; [REX] 0F B6 /r        between registers, and MASK is 255
//!     leaq    TABLE(%rip), %r11        ; 4C 8D 1D rel32
//!     addl    %gs:(%r11d,%eREG,8), %r11d ; 65 67 45 03 1C C3, the register's number in REX.X and SIB.index
//!     addq    %r14, %r11               ; 4D 01 F3
//!     jmp     *%r11                    ; 41 FF E3
//! ```
//!
//! The table is in the text: `MASK + 1` distances from `TABLE` of 32 bits, 8 bytes apart, each in an instruction that nobody
//! executes (`nopl DISTANCE(%rax,%rax,2)`). The verifier reads them, so that the jump is as good as that many direct
//! jumps. The register is any but `r11` (and none that nobody may write).

/// `andl $-8, %r11d`
pub const AND: [u8; 4] = [0x41, 0x83, 0xE3, 0xF8];
/// `cmpl $ID, %gs:4(%r11d)` without its identifier.
pub const CMP: [u8; 6] = [0x65, 0x67, 0x41, 0x81, 0x7B, 0x04];
/// `cmovnel %r14d, %r11d`
pub const CMOV: [u8; 4] = [0x45, 0x0F, 0x45, 0xDE];
/// `addq %r14, %r11`
pub const ADD: [u8; 3] = [0x4D, 0x01, 0xF3];
/// `jmp *%r11`
pub const JMP: [u8; 3] = [0x41, 0xFF, 0xE3];
/// `call *%r11`
pub const CALL: [u8; 3] = [0x41, 0xFF, 0xD3];

/// Offset of the identifier from the start of the sequence. It must not fall on an address
/// ≡ 4 (mod 8), where only markers may carry one (rule 6).
pub const ID_OFFSET: usize = AND.len() + CMP.len();
/// Length of the whole sequence in bytes.
pub const LEN: usize = ID_OFFSET + 4 + CMOV.len() + ADD.len() + JMP.len();

/// What a module built with `--check` ends in when an address is outside its window: `nopl 0x63(%rax)`, `ud2`. The
/// no-op tells this trap from any other. No rule depends on it; the address is in `r11`.
pub const CHECK_TRAP: [u8; 6] = [0x0F, 0x1F, 0x40, 0x63, 0x0F, 0x0B];

/// `leaq TABLE(%rip), %r11` without its displacement, in the jump through a table.
pub const TABLE: [u8; 3] = [0x4C, 0x8D, 0x1D];
/// Length of `leaq TABLE(%rip), %r11`.
pub const TABLE_LEN: usize = TABLE.len() + 4;
/// Length of `addl %gs:(%r11d,%eREG,8), %r11d`.
pub const SLOT_LEN: usize = 6;
/// What stands in front of each distance of a table: `nopl DISTANCE(%rax,%rax,2)` without it.
pub const SLOT_HEAD: [u8; 4] = [0x0F, 0x1F, 0x84, 0x40];
/// Bytes from one distance of a table to the next: the scale in [`slot`].
pub const SLOT_STEP: usize = 8;
/// Most slots that a table can have.
pub const SLOTS_MAX: usize = 256;

/// `addl %gs:(%r11d,%eREG,8), %r11d` for the register of that number, 0 to 15.
#[must_use]
pub const fn slot(register: u8) -> [u8; SLOT_LEN] {
    let (low, high) = (register & 7, register >> 3 & 1);
    [0x65, 0x67, 0x45 | high << 1, 0x03, 0x1C, 0xC3 | low << 3]
}
