//! Why code is refused.

/// The number of a rule in `docs/verifier.md`, 1 to 10; 0 stands for the decoder itself: the
/// bytes are not an instruction of the accepted subset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule(pub u8);

macro_rules! reasons {
    ($($name:ident $rule:literal $text:literal;)*) => {
        /// What exactly is wrong; [`core::fmt::Display`] says it in words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Reason {
            $(#[doc = $text] $name,)*
        }

        impl Reason {
            /// All of them.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The rule that is broken.
            #[must_use]
            pub const fn rule(self) -> Rule {
                match self { $(Reason::$name => Rule($rule),)* }
            }

            /// The name that `tests/verifier` and `--json` use.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Reason::$name => stringify!($name),)* }
            }

            pub(crate) const fn text(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }
        }
    };
}

reasons! {
    NotAccepted 0 "no instruction of the accepted subset";
    Truncated 0 "the text ends inside an instruction";
    TooLong 0 "longer than 15 bytes";
    TextTooLarge 0 "text does not fit a window";
    TextMisplaced 0 "text does not start on a page";
    Segments 0 "segments overlap or end outside the image area";
    NoMemory 0 "not enough memory to check the text";

    Unconfined 1 "memory operand is not confined (needs gs and 32-bit address size, RIP, or D(%r14,%r11) with D from 0 to 0x7fff)";
    NotHeld 1 "operand through r14, but r11 does not hold a lower half (needs movl or leal to r11d before it, and no call, jump, marker or other write of r11 between)";
    HeldRefused 1 "an operand through r14, here or further on, where only gs is accepted (build and link with --addressing=segment)";
    SegmentedRip 1 "RIP-relative operand with a segment or address-size prefix";
    AddressPrefix 1 "segment or address-size prefix without a confined memory operand";
    OutsideImage 1 "RIP-relative operand reaches outside the image's segments";
    StoreToConstants 1 "RIP-relative store into text or read-only data";
    AbsoluteOffset 1 "moffs operand";

    StackPointer 2 "names rsp";
    StackInstruction 2 "changes rsp in a way that is not push, pop, call or ret";

    DepthMismatch 3 "reached with two different depths";
    DepthUnderflow 3 "pop of something the function did not push";
    DepthOverflow 3 "control stack deeper than any function may need";
    ReturnDepth 3 "ret with pushed bytes left on the control stack";
    TailCallDepth 3 "tail call with pushed bytes left on the control stack";

    JumpTarget 4 "jump does not land on an instruction of the same function or on an entry";
    CallTarget 4 "call does not land on an instruction of this text or on a gate stub";
    IntoSequence 4 "lands inside a fixed sequence";
    IntoHeld 4 "lands between a move to r11d and an operand through r14 that relies on it";
    EntryTarget 4 "given entry is not an instruction";
    PadClaim 4 "landing pad in no function, or at a depth that no function may have";
    FallsOff 4 "control falls off the end of the function";

    BareIndirect 5 "indirect jump or call outside the checked sequence";
    SequenceIdentifier 5 "checked sequence compares with something that is not an identifier of this module";
    CallIdentifier 5 "indirect call with a label's identifier";
    ForeignLabel 5 "indirect jump to labels of another function";
    TablePlace 5 "jump table outside the function that jumps through it, or over the identifier of a marker";
    TableSlot 5 "slot of a jump table does not lead to an instruction of the same function";
    UnknownLabel 5 "indirect jump to a label that does not exist";
    WindowBase 5 "writes r14, the window's base";

    HiddenIdentifier 6 "reserved identifier prefix outside a marker";
    MarkerIdentifier 6 "marker carries an identifier that this module may not use";
    SharedLabel 6 "one label identifier in two functions";

    BareString 7 "string instruction outside the fixed sequence";

    Prefix 8 "prefix that is not accepted, or not here";
    RepeatedPrefix 8 "the same prefix twice";
    RexPlace 8 "REX not directly before the opcode";
    RexUse 8 "REX where it is not accepted";
    Lock 8 "lock on something that is not a lockable memory operand";
    VexReserved 8 "reserved or ignored bits of VEX are not as required";
    Evex 8 "EVEX";
    SystemCall 8 "system call or interrupt";
    Privileged 8 "privileged instruction or port access";
    SegmentRegister 8 "touches segment registers or their bases";
    FarTransfer 8 "far transfer";
    OutlivingFlags 8 "changes, saves or restores flags that outlive the call";
    HiddenNop 8 "a no-op encoding that hides other instructions on some processors";
    ControlState 8 "changes MXCSR, the x87 control state, or saves or restores extended state";
    ProcessorState 8 "reads or changes processor state (identification, caches, protection keys, shadow stack)";
    TimeStamp 8 "reads the time stamp counter";
    Transaction 8 "transactional memory";
    X87Refused 8 "x87 instruction where the policy refuses x87";
    Mmx 8 "MMX";
    ReturnImmediate 8 "ret with an immediate";

    BitString 9 "bit-string operand in memory with a register offset";
    TableLookup 9 "xlat";
    ImplicitStore 9 "store to an implicit address";
    Gather 9 "gather or scatter";

    BareView 11 "operand behind the window without the tests of its rights in front of it";
    ViewOperation 11 "operand behind the window of an instruction that has none there (size, push, pop, jump or call)";
}
