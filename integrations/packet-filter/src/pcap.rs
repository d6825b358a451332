//! libpcap's compiler of expressions, found when it is needed.

use std::ffi::{CStr, CString, c_char, c_int};
use std::ptr::null_mut;
use std::sync::OnceLock;

use libloading::{Library, Symbol};

use crate::FilterError;
use crate::bpf::Raw;

/// Longest expression. libpcap's parser recurses, in memory of its own.
pub const LONGEST: usize = 16 << 10;

/// More than any packet has: what libpcap's filters return for accepted ones.
const SNAPLEN: c_int = 262_144;

/// `PCAP_NETMASK_UNKNOWN`.
const NETMASK_UNKNOWN: u32 = 0xFFFF_FFFF;

/// `pcap_t`.
#[repr(C)]
struct Handle([u8; 0]);

/// `struct bpf_program`.
#[repr(C)]
struct Program {
    len: u32,
    insns: *mut Raw,
}

type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut Handle;
type Compile = unsafe extern "C" fn(*mut Handle, *mut Program, *const c_char, c_int, u32) -> c_int;
type GetErr = unsafe extern "C" fn(*mut Handle) -> *const c_char;
type FreeCode = unsafe extern "C" fn(*mut Program);
type Close = unsafe extern "C" fn(*mut Handle);
type Filter = unsafe extern "C" fn(*const Raw, *const u8, u32, u32) -> u32;

/// The library's functions.
struct Functions {
    open_dead: OpenDead,
    compile: Compile,
    geterr: GetErr,
    freecode: FreeCode,
    close: Close,
    filter: Filter,
    _library: Library,
}

impl Functions {
    fn load() -> Result<Functions, libloading::Error> {
        // SAFETY: the system's libpcap, whose initialisers do nothing that matters here.
        let library = unsafe { Library::new("libpcap.so.0.8") }.or_else(|first| {
            // SAFETY: the same under the name that other distributions have.
            unsafe { Library::new("libpcap.so.1") }.map_err(|_| first)
        })?;
        Ok(Functions {
            open_dead: get(&library, b"pcap_open_dead\0")?,
            compile: get(&library, b"pcap_compile\0")?,
            geterr: get(&library, b"pcap_geterr\0")?,
            freecode: get(&library, b"pcap_freecode\0")?,
            close: get(&library, b"pcap_close\0")?,
            filter: get(&library, b"bpf_filter\0")?,
            _library: library,
        })
    }
}

/// One of the library's functions, with the type that `pcap.h` declares for it: those above.
fn get<T: Copy>(library: &Library, name: &[u8]) -> Result<T, libloading::Error> {
    // SAFETY: the types above are those of the functions of these names.
    let symbol: Symbol<'_, T> = unsafe { library.get(name) }?;
    Ok(*symbol)
}

fn functions() -> Result<&'static Functions, FilterError> {
    static FUNCTIONS: OnceLock<Result<Functions, String>> = OnceLock::new();
    FUNCTIONS
        .get_or_init(|| Functions::load().map_err(|e| e.to_string()))
        .as_ref()
        .map_err(|reason| FilterError::NoLibrary {
            reason: reason.clone(),
        })
}

/// Compiles an expression for packets of a link type (`DLT_…`), with libpcap's optimiser.
///
/// # Errors
/// [`FilterError::Expression`] in libpcap's words; [`FilterError::NoLibrary`].
pub fn compile(expression: &str, link: i32) -> Result<Vec<Raw>, FilterError> {
    let wrong = |message: String| FilterError::Expression { message };
    if expression.len() > LONGEST {
        return Err(wrong(format!("it has more than {LONGEST} bytes")));
    }
    let text = CString::new(expression).map_err(|_| wrong("it has a NUL in it".into()))?;
    let functions = functions()?;
    // SAFETY: takes numbers, and gives a handle of its own.
    let handle = unsafe { (functions.open_dead)(link, SNAPLEN) };
    if handle.is_null() {
        return Err(wrong(format!("libpcap has no memory for link type {link}")));
    }
    let mut program = Program {
        len: 0,
        insns: null_mut(),
    };
    // SAFETY: the handle is open, the text ends with a NUL, the program is filled in on success.
    let status = unsafe { (functions.compile)(handle, &raw mut program, text.as_ptr(), 1, NETMASK_UNKNOWN) };
    let result = if status == 0 {
        // SAFETY: what a successful compilation has filled in; freed once.
        unsafe {
            let raw = match program.insns.is_null() {
                true => Vec::new(),
                false => std::slice::from_raw_parts(program.insns, program.len as usize).to_vec(),
            };
            (functions.freecode)(&raw mut program);
            Ok(raw)
        }
    } else {
        // SAFETY: the handle is open, and its message a string that lives as long.
        let message = unsafe { CStr::from_ptr((functions.geterr)(handle)) };
        Err(wrong(message.to_string_lossy().into_owned()))
    };
    // SAFETY: opened above, and not used any more.
    unsafe { (functions.close)(handle) };
    result
}

/// A program for libpcap's own interpreter, to compare with.
pub struct Interpreted {
    raw: Vec<Raw>,
    filter: Filter,
}

impl Interpreted {
    /// Checks the program.
    ///
    /// # Errors
    /// [`FilterError::NoLibrary`]; [`FilterError::Program`] for a program that is none.
    pub fn new(raw: &[Raw]) -> Result<Self, FilterError> {
        crate::bpf::decode(raw)?;
        Ok(Interpreted {
            raw: raw.to_vec(),
            filter: functions()?.filter,
        })
    }

    /// Whether it accepts a packet.
    #[must_use]
    pub fn accepts(&self, packet: &[u8], wire: u32) -> bool {
        // SAFETY: the program was checked, so that the interpreter stays in it; it looks at no more than the packet's bytes.
        unsafe { (self.filter)(self.raw.as_ptr(), packet.as_ptr(), wire, packet.len() as u32) != 0 }
    }
}
