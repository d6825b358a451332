//! What a domain learns of its own frames, and how it names one to resume in: the memory that the stubs
//! [`UNWIND`](crate::window::stub::UNWIND) and [`RESUME`](crate::window::stub::RESUME) write and read, all u64.
//!
//! Places on the control stack are told by their *distance* from the outermost return address of the present call in: a
//! number, no address.
//!
//! `UNWIND` writes: `rbx rbp r12 r13 r15` of the caller; the distance of the first word that follows; how many follow; the
//! words of the control stack from there upwards, as the domain's own pushes and calls left them.
//!
//! `RESUME` reads: the distance of the stack pointer that the frame has at its call; the landing pad's address; then
//! `rax rdx rbx rbp r12 r13 r15`.

/// How many words of the control stack `UNWIND` writes at most.
pub const WORDS: usize = 64;

/// Number of u64 in front of the words.
pub const HEAD: usize = 7;

/// Number of u64 in a record of `RESUME`.
pub const RECORD: usize = 9;
