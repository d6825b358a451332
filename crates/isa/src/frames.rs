//! What a domain learns of its own frames, and how it names one to resume in: the memory that the stubs
//! [`UNWIND`](crate::window::stub::UNWIND) and [`RESUME`](crate::window::stub::RESUME) write and read, all u64.
//!
//! Places on the control stack are told by their *distance* from the outermost return address of the present call in: a
//! number, no address. The stub [`DISTANCE`](crate::window::stub::DISTANCE) tells where the stack pointer is.
//!
//! `UNWIND` writes: `rbx rbp r12 r13 r15` of the caller; the distance of the first word that follows; how many follow; the
//! words of the control stack from there upwards, as the domain's own pushes and calls left them.
//!
//! `RESUME` reads: the distance that the stack pointer has in the frame at the landing pad; the landing pad's address; then
//! `rax rdx rbx rbp r12 r13 r15`. A `jmp_buf` is such a record.

/// How many words of the control stack `UNWIND` writes at most.
pub const WORDS: usize = 64;

/// Number of u64 in front of the words.
pub const HEAD: usize = 7;

/// Number of u64 in a record of `RESUME`.
pub const RECORD: usize = 9;
