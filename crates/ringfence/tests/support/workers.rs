//! Domains in processes of their own, and which processes these are.

use ringfence::{Backend, Domain, DomainOptions, Imports, Module};

/// Functions that end or do not.
pub const LOOPS: &str = "
    volatile int go = 1;
    int loop(int value) { while (go) { } return value; }
    int same(int value) { return value; }
";

pub fn options() -> DomainOptions {
    let mut options = DomainOptions::default();
    options.backend = Backend::Process;
    options
}

pub fn make(module: &Module, imports: Imports) -> Domain {
    Domain::instantiate(std::slice::from_ref(module), imports, &options()).expect("a domain in a process")
}

pub fn basic() -> Domain {
    make(&super::module("basic"), super::basic_imports())
}

/// Processes of this one's that run the worker.
pub fn workers() -> Vec<i32> {
    let me = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else {
            continue;
        };
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let mut words = line.split(|&b| b == 0);
        let worker = words.next().is_some_and(|w| w.ends_with(b"ringfence-worker"));
        if worker && words.next() == Some(me.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// The one worker that this adds.
pub fn worker_of(make: impl FnOnce() -> Domain) -> (Domain, i32) {
    // Other tests of this program start workers too.
    static ONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let domain = make();
    // The window's header is where only its worker has something.
    let base = domain.memory().base();
    let name = format!("{base:x}-");
    let mark = domain
        .memory()
        .put(0x1234_5678_9ABC_DEF0_u64 ^ u64::from(std::process::id()))
        .unwrap();
    let expected = mark.read().unwrap().into_inner_unchecked();
    for pid in workers() {
        let _ = &name;
        let mut word = [0u8; 8];
        let mine = libc::iovec {
            iov_base: word.as_mut_ptr().cast(),
            iov_len: 8,
        };
        let theirs = libc::iovec {
            iov_base: mark.ptr().address() as *mut _,
            iov_len: 8,
        };
        // SAFETY: our own buffer.
        let n = unsafe { libc::process_vm_readv(pid, &raw const mine, 1, &raw const theirs, 1, 0) };
        if n != 8 || u64::from_le_bytes(word) != expected {
            continue;
        }
        mark.read().unwrap();
        domain.memory().write(mark.ptr(), 0).unwrap();
        // SAFETY: as above.
        unsafe { libc::process_vm_readv(pid, &raw const mine, 1, &raw const theirs, 1, 0) };
        if u64::from_le_bytes(word) == 0 {
            drop(mark);
            return (domain, pid);
        }
        domain.memory().write(mark.ptr(), expected).unwrap();
    }
    panic!("no worker has what was written");
}
