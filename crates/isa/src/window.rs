//! The layout of a window, in offsets from its base. See `docs/abi.md`.

/// Size and alignment of a window.
pub const SIZE: u64 = 1 << 32;

/// Up to here nothing is ever mapped: null pointers, and the overrun of the window below.
pub const NULL_END: u32 = 0x0001_0000;

/// An operand through `r14`, `DISPLACEMENT(%r14,%r11)`, has a displacement below this. With the largest `r11` it reaches that far above
/// the window's end, where [`NULL_END`] bytes are inaccessible, be it the null area of the next window or a guard.
pub const HELD_REACH: i32 = 0x8000;
const _: () = assert!(HELD_REACH as u32 + 64 < NULL_END);

/// The header page: constants for the domain, read-only, no host address among them. Behind it, up to the window's stubs, are zeroes:
/// an inaccessible gap would be one mapping more in every window.
pub const HEADER: u32 = 0x0001_0000;
/// Header: the window's base, a u64.
pub const HEADER_BASE: u32 = HEADER;
/// Header: [`crate::ABI_VERSION`], a u32.
pub const HEADER_ABI: u32 = HEADER + 8;
/// Header: processor features as [`feature`] bits, a u32.
pub const HEADER_FEATURES: u32 = HEADER + 12;
/// Header: number of processors the domain may assume, a u32.
pub const HEADER_CPUS: u32 = HEADER + 16;
/// Header: how many module images the window holds, a u32; not more than [`HEADER_IMAGES_MOST`] are listed.
pub const HEADER_IMAGE_COUNT: u32 = HEADER + 20;
/// Header: a number that is another one whenever the list of images is, a u32.
pub const HEADER_IMAGE_CHANGES: u32 = HEADER + 24;
/// Header: a u32 that is 1 if allocations of the domain's libc are objects of its arena ([`crate::words::heap`]).
pub const HEADER_HEAP: u32 = HEADER + 28;
/// Header: two u32 for functions that use vectors of 32 bytes where there is AVX2. An offset in a page that is below the first leaves
/// room for one vector, below the second for four. Both are 0 without AVX2, so that one comparison answers both questions.
pub const HEADER_VECTOR_ROOM: u32 = HEADER + 32;
/// Header: three u64, the bytes of two, four and eight such vectors; 0 without AVX2.
pub const HEADER_VECTOR_SIZES: u32 = HEADER + 40;
/// Header: for each image its offset in the window and its length, two u32 each.
pub const HEADER_IMAGES: u32 = HEADER + 64;
/// How many images the header has room for.
pub const HEADER_IMAGES_MOST: u32 = 320;
/// Header: for each image the offset in the window of its table of frames (`.eh_frame_hdr`), a u32; 0 if it has none.
pub const HEADER_FRAMES: u32 = HEADER_IMAGES + 8 * HEADER_IMAGES_MOST;
const _: () = assert!(HEADER_FRAMES + 4 * HEADER_IMAGES_MOST <= HEADER + crate::PAGE as u32);

/// Gate stubs: executable and readable, the same pages in every window; those that a window uses. Number 0 is the last one, so that
/// they end where the first image begins.
pub const STUBS: u32 = 0x0002_0000;
/// Bytes from one stub to the next.
pub const STUB_SIZE: u32 = 32;
/// How many stubs there are.
pub const STUB_COUNT: u32 = 4096;
/// Where the stubs end.
pub const STUBS_END: u32 = STUBS + STUB_SIZE * STUB_COUNT;

/// Offset of stub `number`, which is below [`STUB_COUNT`].
#[must_use]
pub const fn stub_at(number: u32) -> u32 {
    STUBS_END - STUB_SIZE * (number + 1)
}

/// Stubs below this number belong to the runtime ([`stub`]); imports are numbered from here.
pub const STUB_FIRST_IMPORT: u32 = 16;

/// Module images are mapped from here on, one behind the other; only the loader maps here. The first follows the stubs
/// without a gap.
pub const IMAGES: u32 = STUBS_END;
/// The arena: code that is added to a living domain; only the loader maps here.
pub const ARENA: u32 = 0x3F00_0000;
/// Where the area of images ends.
pub const IMAGES_END: u32 = 0x4000_0000;

/// Heap, anonymous maps and host allocations.
pub const HEAP: u32 = 0x4000_0000;
/// Where that area ends.
pub const HEAP_END: u32 = REGIONS;

/// Regions: memory shared between domains, each at one offset in all windows. Only the supervisor maps here.
pub const REGIONS: u32 = 0xA000_0000;
/// Where that area ends.
pub const REGIONS_END: u32 = 0xC000_0000;

/// Lanes: berths of [`LANE_BERTH`] bytes, aligned to their size.
pub const LANES: u32 = 0xC000_0000;
/// Where the lanes end. From here to the window's end nothing is ever mapped.
pub const LANES_END: u32 = 0xFF00_0000;
/// Size and alignment of a lane's berth. At the berth's first 8 bytes stands the lane's thread pointer
/// (what `%fs:0` holds in unfenced code), as a 64-bit address; the thread block ends there
/// (TLS variant II) in the berth's first pages; the data stack grows down from the berth's end;
/// between the two nothing is mapped.
pub const LANE_BERTH: u32 = 0x0100_0000;
/// How many lanes fit.
pub const LANE_COUNT: u32 = (LANES_END - LANES) / LANE_BERTH;

/// Bytes below `r15` that a gate leaves alone: the red zone of the System V ABI.
pub const RED_ZONE: u32 = 128;

/// Numbers of the runtime's own stubs.
pub mod stub {
    /// A system call under the policy: number in `rax`, arguments in `rdi rsi rdx r10 r8 r9`,
    /// result (or `-errno`) in `rax`.
    pub const SYSCALL: u32 = 0;
    /// Tells in `rax` how far the stack pointer is, behind this call, from the outermost return address: a *distance* of
    /// [`frames`](crate::frames). The stub itself answers, and changes no other register; for `setjmp`.
    pub const DISTANCE: u32 = 1;
    /// Ends the call with an error: `abort`, failed assertions. `edi` is a reason chosen by the domain.
    pub const ABORT: u32 = 2;
    /// Ends the call with an exit status in `edi`.
    pub const EXIT: u32 = 3;
    /// Tells a domain about its own frames: `rdi` points to room for [frame words](crate::frames), `rsi` is where to
    /// start, 0 for the caller's own frame.
    pub const UNWIND: u32 = 4;
    /// Resumes at a landing pad: `rdi` points to a record, see [`frames`](crate::frames).
    pub const RESUME: u32 = 5;
    /// How the last call of another domain went: one of [`call_status`](super::call_status).
    pub const CALL_STATUS: u32 = 6;
    /// Ends the call with an error: nobody catches an exception. `rdi` and `rsi` are its type's name and the length.
    pub const UNCAUGHT: u32 = 7;

    /// The symbol by which module code calls a runtime stub; it is an import like any other,
    /// bound to the stub by the loader.
    pub const NAMES: [(&str, u32); 8] = [
        ("__rf_syscall", SYSCALL),
        ("__rf_distance", DISTANCE),
        ("__rf_abort", ABORT),
        ("__rf_exit", EXIT),
        ("__rf_unwind", UNWIND),
        ("__rf_resume", RESUME),
        ("__rf_call_status", CALL_STATUS),
        ("__rf_uncaught", UNCAUGHT),
    ];
}

/// What [`stub::CALL_STATUS`] returns.
pub mod call_status {
    /// The call succeeded, or there was none.
    pub const OK: u32 = 0;
    /// The other domain failed during the call.
    pub const FAULT: u32 = 1;
    /// The call took too long, or was interrupted.
    pub const TIME: u32 = 2;
    /// The host has revoked the function, or not handed it out yet.
    pub const REVOKED: u32 = 3;
    /// The other domain is gone.
    pub const GONE: u32 = 4;
    /// The other domain failed earlier and was not reset.
    pub const FAULTED: u32 = 5;
    /// The other domain asked to exit.
    pub const EXIT: u32 = 6;
    /// The other domain cannot be entered now: all its lanes are taken, or the call in progress has to end.
    pub const REFUSED: u32 = 7;
}

/// Bits of [`HEADER_FEATURES`] and of a module's note: instruction set extensions.
pub mod feature {
    /// SSE3, SSSE3.
    pub const SSSE3: u32 = 1 << 0;
    /// SSE4.1, SSE4.2, POPCNT.
    pub const SSE4: u32 = 1 << 1;
    /// AVX.
    pub const AVX: u32 = 1 << 2;
    /// AVX2.
    pub const AVX2: u32 = 1 << 3;
    /// FMA.
    pub const FMA: u32 = 1 << 4;
    /// BMI1, BMI2, LZCNT.
    pub const BMI: u32 = 1 << 5;
    /// MOVBE.
    pub const MOVBE: u32 = 1 << 6;
    /// F16C.
    pub const F16C: u32 = 1 << 7;
    /// AES, PCLMULQDQ.
    pub const AES: u32 = 1 << 8;
    /// SHA.
    pub const SHA: u32 = 1 << 9;
    /// Enhanced `rep movsb`.
    pub const ERMS: u32 = 1 << 10;
    /// ADX.
    pub const ADX: u32 = 1 << 11;
}
