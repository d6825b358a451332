//! What a call passes: types, arguments, results.

/// How much of a register, or of a word on the stack, an integer fills. The ABI leaves the rest of it undefined, so a compiler
/// leaves there what it had there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Width {
    /// All of it: a pointer, `long`.
    #[default]
    Word,
    /// 32 bits.
    Int,
    /// 16 bits, signed or not.
    Short {
        /// The rest of the 32 bits repeats the sign, as compilers expect it of arguments.
        signed: bool,
    },
    /// 8 bits, signed or not.
    Byte {
        /// As above.
        signed: bool,
    },
    /// Nothing of it: padding.
    Nothing,
}

impl Width {
    /// The bits that carry something.
    #[must_use]
    pub const fn mask(self) -> u64 {
        match self {
            Width::Word => u64::MAX,
            Width::Int => 0xFFFF_FFFF,
            Width::Short { .. } => 0xFFFF,
            Width::Byte { .. } => 0xFF,
            Width::Nothing => 0,
        }
    }
}

/// What is narrower than the register or the word that it travels in. Gates clear the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Narrow {
    /// Integer arguments in registers.
    pub ints: [Width; 6],
    /// Floating-point arguments in registers: bit *n* says that number *n* is a `float`.
    pub singles: u8,
    /// Words on the stack.
    pub stack: [Width; 16],
    /// The first integer result, of host functions.
    pub int_result: Width,
    /// The first vector result is a `float`, of host functions.
    pub single_result: bool,
}

impl Narrow {
    /// Nothing is.
    pub const NONE: Narrow = Narrow {
        ints: [Width::Word; 6],
        singles: 0,
        stack: [Width::Word; 16],
        int_result: Width::Word,
        single_result: false,
    };
}

/// What a gate must know of a C function's type to pass exactly what it uses. Everything else is cleared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature {
    /// Integer arguments in registers, 0 to 6.
    pub ints: u8,
    /// `float` and `double` arguments in registers, 0 to 8. Upper halves are cleared unless the function is variadic.
    pub floats: u8,
    /// Words of stack arguments.
    pub stack: u8,
    /// Integer registers of the result, 0 to 2.
    pub int_results: u8,
    /// Vector registers of the result, 0 to 2.
    pub float_results: u8,
    /// x87 registers of the result, 0 to 2 (`long double`).
    pub x87_results: u8,
    /// Takes a variable number of arguments: `al` counts the vector ones.
    pub variadic: bool,
    /// What does not fill its register.
    pub narrow: Narrow,
}

impl Signature {
    /// No arguments and no result.
    pub const NOTHING: Signature = Signature {
        ints: 0,
        floats: 0,
        stack: 0,
        int_results: 0,
        float_results: 0,
        x87_results: 0,
        variadic: false,
        narrow: Narrow::NONE,
    };

    /// Not known: all argument and result registers are passed as they are, none from the stack. Those that the function does
    /// not use **show the domain what the host's compiler left there**, host addresses among them.
    pub const UNKNOWN: Signature = Signature {
        ints: 6,
        floats: 8,
        stack: 0,
        int_results: 2,
        float_results: 2,
        x87_results: 2,
        variadic: true,
        narrow: Narrow::NONE,
    };
}

/// Arguments of a call in the raw form. Unused ones are 0.
#[derive(Clone, Copy, Debug, Default)]
pub struct Call<'a> {
    /// `rdi rsi rdx rcx r8 r9`.
    pub ints: [u64; 6],
    /// `xmm0` to `xmm7`, low halves.
    pub floats: [f64; 8],
    /// Arguments on the stack.
    pub stack: &'a [u64],
}

impl Call<'_> {
    /// Integer arguments only, up to six.
    ///
    /// # Panics
    /// If there are more than six.
    #[must_use]
    pub fn ints(args: &[u64]) -> Self {
        let mut ints = [0; 6];
        ints[..args.len()].copy_from_slice(args);
        Call {
            ints,
            ..Default::default()
        }
    }
}

/// Result registers after a call.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Returned {
    /// `rax`.
    pub rax: u64,
    /// `rdx`.
    pub rdx: u64,
    /// `xmm0`, low half.
    pub xmm0: f64,
    /// `xmm1`, low half.
    pub xmm1: f64,
    /// `st0` in its 80-bit format (`long double` results), zero-padded.
    pub st0: [u8; 16],
}
