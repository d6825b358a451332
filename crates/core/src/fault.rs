//! What there is to know of a failed call, and how it is said.

use crate::rights::Rights;
use crate::work::Exceeded;
use std::fmt;
use std::sync::Arc;

/// Bytes of a message or name that a fault has at most. What is longer is cut, and ends with `…`.
pub const MOST_TEXT: usize = 512;

/// What kind of access a fault was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An instruction fetch: a jump to something that is not code.
    Execute,
}

/// What went wrong in a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// Access to memory that is not there, or not with these rights.
    BadAccess {
        /// The address, inside the window. 0 when the processor did not tell.
        address: u64,
        /// What kind of access.
        access: Access,
    },
    /// A module built with `--check` was about to use this address, which is outside its window.
    OutsideWindow {
        /// The address, as the module computed it.
        address: u64,
    },
    /// Access to an object of the host's for which the domain has no right (`--isolation=words`).
    Denied {
        /// The address, as the host has it; 0 if it is not known.
        address: u64,
        /// What kind of access.
        access: Access,
        /// How many bytes; 0 for an instruction that does not look at rights, in code that was not compiled for it.
        len: u8,
        /// What the domain may do with the word there.
        rights: Rights,
    },
    /// An indirect call or jump to something that is no function (it ends at the window's offset 0).
    BadTarget,
    /// Integer division by zero, or its overflow.
    Division,
    /// An unmasked floating-point exception.
    FloatingPoint,
    /// `ud2` (`__builtin_trap`), or an instruction this processor does not have.
    IllegalInstruction,
    /// `int3`.
    Trap,
    /// A misaligned access that demands alignment, or another error the processor reports without an address.
    Protection,
    /// Too deep recursion: no room left for return addresses.
    ControlStack,
    /// No room left for locals.
    DataStack,
    /// The call took longer than its time limit.
    TimeLimit,
    /// Somebody called `interrupt`.
    Interrupted,
    /// The domain used more memory than it may.
    OutOfMemory,
    /// The domain gave up: `abort`, a failed assertion. The number is chosen by the domain.
    Abort(i32),
    /// Nobody in the call caught an exception. Exceptions do not cross gates. The text is the type's name, as the domain
    /// tells it; empty if it tells none.
    Uncaught(String),
    /// The same, with code of `Domain::add_code` among the frames above it: that has no unwind tables, and no exception
    /// passes it. Whoever adds code catches below it, or adds it without callees that throw; a module that is
    /// added has tables.
    NotUnwound(String),
    /// The domain asked for something about its frames that is not so.
    Frames(FramesError),
    /// An import that was not bound, or a stub that does not exist, was called.
    Unbound(u32),
    /// A host function returned into the domain on another thread, or out of order (fibers, `longjmp`).
    OutOfOrder,
    /// A host function asked to end the call, with this message, of which [`MOST_TEXT`] bytes are kept.
    Host(String),
    /// A domain that this one called failed.
    Callee(Box<Fault>),
    /// Another thread's call made the domain fault while this one was in it.
    Elsewhere,
}

/// The general registers at a fault. `rsp` is left out on purpose: it is a host address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Registers {
    /// By the number that encodings use: 0 `rax`, 1 `rcx`, 2 `rdx`, 3 `rbx`, 4 always 0, 5 `rbp`, 6 `rsi`, 7 `rdi`, then
    /// `r8` to `r15`.
    pub general: [u64; 16],
    /// The instruction pointer.
    pub rip: u64,
    /// The flags.
    pub rflags: u64,
}

/// One fenced frame, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// The instruction: where the fault was, or the call that is in progress.
    pub address: u64,
    /// Name of the module, if the address is in one.
    pub module: Option<String>,
    /// Offset in the module's image.
    pub offset: u64,
    /// Name of the function.
    pub function: Option<String>,
    /// Source file.
    pub file: Option<String>,
    /// Line in it.
    pub line: Option<u32>,
}

/// A failed call.
#[derive(Clone)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// The registers at that moment.
    pub registers: Registers,
    /// Name of the domain's first module.
    pub domain: String,
    trace: Arc<dyn Trace>,
}

/// What a backtrace is made of. Names are looked up when somebody asks.
pub trait Trace: Send + Sync {
    /// Addresses of the failed instruction, then return addresses.
    fn addresses(&self) -> &[u64];

    /// The frames at these addresses, innermost first, inlined ones included.
    fn frames(&self) -> Vec<Frame>;

    /// Why they have fewer names than there could be; `None` if they have all.
    fn cut(&self) -> Option<Exceeded> {
        None
    }
}

impl Fault {
    /// A failed call with the frames that it was in.
    #[must_use]
    pub fn new(kind: FaultKind, registers: Registers, domain: String, trace: Arc<dyn Trace>) -> Fault {
        Fault {
            kind,
            registers,
            domain,
            trace,
        }
    }

    /// A failed call of whose frames nothing is known.
    #[must_use]
    pub fn untraced(kind: FaultKind, domain: String) -> Fault {
        struct Nothing;
        impl Trace for Nothing {
            fn addresses(&self) -> &[u64] {
                &[]
            }
            fn frames(&self) -> Vec<Frame> {
                Vec::new()
            }
        }
        Fault::new(kind, Registers::default(), domain, Arc::new(Nothing))
    }

    /// The instruction that failed.
    #[must_use]
    pub fn instruction(&self) -> u64 {
        self.registers.rip
    }

    /// Addresses of the failed instruction, then return addresses, innermost first.
    #[must_use]
    pub fn addresses(&self) -> &[u64] {
        self.trace.addresses()
    }

    /// Fenced frames, innermost first, at most 64, with function, file and line as far as the modules have symbols and debug
    /// information. Names have no control characters and are cut behind 200 characters.
    ///
    /// Names are looked up when they are asked for first, by a thread that ends before this returns, in at most some tens of
    /// milliseconds and some tens of megabytes, whatever the module is; [`cut`](Self::cut) tells if that was not enough. Where no thread can be
    /// made there are addresses only.
    #[must_use]
    pub fn backtrace(&self) -> Vec<Frame> {
        self.trace.frames()
    }

    /// Why the backtrace has fewer names than the modules' debug information could give: reading all of that would take too
    /// long. `None` if it has all.
    #[must_use]
    pub fn cut(&self) -> Option<Exceeded> {
        self.trace.cut()
    }
}

impl Fault {
    /// What a server may show to its users: what failed and in which function of which module, without addresses and without paths of
    /// the host's, and without what the host's own functions said. One line. Names are text of the module's author, of which only letters,
    /// digits and the signs of names are shown.
    #[must_use]
    pub fn public(&self) -> impl fmt::Display + '_ {
        Public(self)
    }
}

struct Public<'a>(&'a Fault);

/// A name as strangers may see it.
struct Plain<'a>(&'a str);

/// Characters of a name in a public message.
const MOST_PUBLIC: usize = 100;

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0;
        // What reads like an address is none of ours, and is not shown either.
        let is_address = |at: usize| {
            let run = |c: &char| c.is_ascii_hexdigit();
            let before = name[..at].chars().rev().take_while(run);
            let digits: String = before.chain(name[at..].chars().take_while(run)).collect();
            digits.len() > 4 && digits.contains(|c: char| c.is_ascii_digit())
        };
        for (at, c) in name.char_indices().take(MOST_PUBLIC) {
            if c.is_ascii_hexdigit() && is_address(at) {
                f.write_str("?")?;
                continue;
            }
            let shown = c.is_alphanumeric() || "_.:<>,~$@ ()[]{}*&+-=#".contains(c);
            write!(f, "{}", if shown { c } else { '?' })?;
        }
        if name.chars().count() > MOST_PUBLIC {
            f.write_str("…")
        } else {
            Ok(())
        }
    }
}

impl fmt::Display for Public<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fault = self.0;
        let module = fault.domain.rsplit('/').next().unwrap_or_default();
        write!(f, "{}: ", Plain(module))?;
        match &fault.kind {
            FaultKind::BadAccess { access, .. } => f.write_str(match access {
                Access::Read => "bad read",
                Access::Write => "bad write",
                Access::Execute => "jump to data",
            })?,
            FaultKind::OutsideWindow { .. } => f.write_str("access outside of its memory")?,
            FaultKind::Denied { access, .. } => f.write_str(match access {
                Access::Write => "write without the right to it",
                _ => "read without the right to it",
            })?,
            FaultKind::Uncaught(name) | FaultKind::NotUnwound(name) if !name.is_empty() => {
                write!(f, "uncaught exception of type {}", Plain(name))?;
            }
            FaultKind::Uncaught(_) | FaultKind::NotUnwound(_) => f.write_str("uncaught exception")?,
            FaultKind::Host(_) => f.write_str("a function of the host ended the call")?,
            FaultKind::Callee(callee) => write!(f, "a domain that it called failed: {}", callee.public())?,
            FaultKind::Unbound(_) => f.write_str("call of an import that is not bound")?,
            kind => write!(f, "{kind}")?,
        }
        match fault
            .backtrace()
            .first()
            .and_then(|frame| frame.function.as_deref())
        {
            Some(function) => write!(f, " in {}", Plain(function)),
            None => Ok(()),
        }
    }
}

impl PartialEq for Fault {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind && self.registers == other.registers && self.domain == other.domain
    }
}

impl Eq for Fault {}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultKind::BadAccess { address, access } => {
                let what = match access {
                    Access::Read => "bad read at",
                    Access::Write => "bad write at",
                    Access::Execute => "jump to data at",
                };
                write!(f, "{what} {address:#x}")
            }
            FaultKind::OutsideWindow { address } => write!(f, "access outside the window, at {address:#x}"),
            FaultKind::Denied {
                address,
                access,
                len,
                rights,
            } => {
                let what = match access {
                    Access::Write => "write",
                    _ => "read",
                };
                match len {
                    0 => write!(
                        f,
                        "{what} at {address:#x} by an instruction that does not look at rights; "
                    )?,
                    _ => write!(f, "{what} of {len} bytes at {address:#x} denied; ")?,
                }
                write!(f, "the domain has {rights} there")
            }
            FaultKind::BadTarget => f.write_str("indirect call or jump to something that is no function"),
            FaultKind::Division => f.write_str("division by zero or overflow of a division"),
            FaultKind::FloatingPoint => f.write_str("floating-point exception"),
            FaultKind::IllegalInstruction => f.write_str("illegal instruction"),
            FaultKind::Trap => f.write_str("breakpoint trap"),
            FaultKind::Protection => f.write_str("misaligned access"),
            FaultKind::ControlStack => f.write_str("control stack exhausted"),
            FaultKind::DataStack => f.write_str("data stack exhausted"),
            FaultKind::TimeLimit => f.write_str("time limit exceeded"),
            FaultKind::Interrupted => f.write_str("interrupted"),
            FaultKind::OutOfMemory => f.write_str("memory limit exceeded"),
            FaultKind::Abort(reason) => write!(f, "abort({reason})"),
            FaultKind::Uncaught(name) if name.is_empty() => f.write_str("uncaught exception"),
            FaultKind::Uncaught(name) => write!(f, "uncaught exception of type {name}"),
            FaultKind::NotUnwound(name) => write!(
                f,
                "uncaught exception of type {name}, thrown below code that was added to the domain: that has no unwind tables, \
                 so nothing above it can catch (catch below it, or add the code as a module)"
            ),
            FaultKind::Frames(why) => write!(f, "longjmp or exception: {why}"),
            FaultKind::Unbound(stub) => write!(f, "call of import {stub}, which is not bound"),
            FaultKind::OutOfOrder => {
                f.write_str("a host function returned out of order or on another thread")
            }
            FaultKind::Host(why) => f.write_str(why),
            FaultKind::Callee(fault) => write!(f, "a domain that it called failed: {fault}"),
            FaultKind::Elsewhere => f.write_str("another thread's call made the domain fault"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.domain, self.kind)?;
        let frames = self.backtrace();
        let Some(first) = frames.first() else {
            return Ok(());
        };
        if let Some(function) = &first.function {
            write!(f, " in {function}")?;
        } else {
            write!(f, " at {:#x}", self.registers.rip)?;
        }
        if let (Some(file), Some(line)) = (&first.file, first.line) {
            write!(f, " ({file}:{line})")?;
        }
        if let Some(cut) = self.cut() {
            write!(f, " (names cut short: reading the debug information {cut})")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fault")
            .field("kind", &self.kind)
            .field("domain", &self.domain)
            .field("backtrace", &self.backtrace())
            .finish_non_exhaustive()
    }
}

impl std::error::Error for Fault {}

/// Why a domain does not learn of a frame, or cannot resume in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FramesError {
    /// The memory to write to, or to read the record from, is not the domain's.
    Pointer,
    /// No frame of this call has its stack pointer there: it has returned, it belongs to another call or lane, or it never
    /// was.
    NoFrame,
    /// The place to resume at is no landing pad.
    NoPad,
    /// The landing pad belongs to another function than the frame.
    OtherFunction,
    /// The frame has pushed less than there is at the landing pad.
    OtherDepth,
}

impl fmt::Display for FramesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FramesError::Pointer => "a bad pointer",
            FramesError::NoFrame => {
                "no such frame in this call; has the function that called setjmp returned?"
            }
            FramesError::NoPad => "no landing pad there; has setjmp filled the buffer?",
            FramesError::OtherFunction => {
                "another function's frame is there; has the function that called setjmp returned?"
            }
            FramesError::OtherDepth => "the frame is not as deep as at the landing pad",
        })
    }
}
