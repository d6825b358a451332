//! Workers as processes: finding the program, starting it, noticing its end.

use crate::worker;
use ringfence_core::{Confinement, DomainError, thread};
use std::ffi::{CStr, c_void};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

const NAME: &str = "ringfence-worker";
/// Names the program, for who has it elsewhere.
const VARIABLE: &str = "RINGFENCE_WORKER";

/// The directory of the file that this code is in: a library, or the program.
fn own_directory() -> Option<PathBuf> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    let here = own_directory as *const c_void;
    // SAFETY: an address of ours, and room for the answer.
    let file = unsafe {
        if libc::dladdr(here, info.as_mut_ptr()) == 0 || info.assume_init_ref().dli_fname.is_null() {
            return None;
        }
        CStr::from_ptr(info.assume_init_ref().dli_fname)
    };
    let path = std::fs::canonicalize(Path::new(std::ffi::OsStr::from_bytes(file.to_bytes()))).ok()?;
    Some(path.parent()?.to_owned())
}

fn find() -> Result<PathBuf, DomainError> {
    if let Some(path) = std::env::var_os(VARIABLE) {
        let path = PathBuf::from(path);
        return match path.is_file() {
            true => Ok(path),
            false => Err(DomainError::Worker {
                reason: format!("{VARIABLE} names {}, which is no file", path.display()),
            }),
        };
    }
    let program = std::env::current_exe().ok();
    let directories = [
        own_directory(),
        program.as_deref().and_then(Path::parent).map(Path::to_owned),
    ];
    let mut tried = Vec::new();
    for directory in directories.into_iter().flatten() {
        // Installed, and in a build's directory, where tests are one further down.
        for place in ["../libexec/ringfence", "", ".."] {
            let path = directory.join(place).join(NAME);
            if path.is_file() {
                return Ok(path);
            }
            tried.push(path.display().to_string());
        }
    }
    tried.dedup();
    Err(DomainError::Worker {
        reason: format!(
            "there is no {NAME} at {}; install it, or set {VARIABLE} to its path",
            tried.join(", ")
        ),
    })
}

/// Bytes of the keeper's stack.
const KEEPER_STACK: usize = 512 << 10;

type Job = Box<dyn FnOnce() + Send>;

/// Runs `f` on a thread that lives as long as the process: a worker dies with the thread that started it.
fn on_keeper<T: Send + 'static>(f: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    static KEEPER: Mutex<Option<(u32, Sender<Job>)>> = Mutex::new(None);
    let (answer, answered) = channel();
    let job: Job = Box::new(move || {
        let _ = answer.send(f());
    });
    {
        let mut keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner);
        let me = std::process::id();
        // A forked child has none.
        if keeper.as_ref().is_none_or(|k| k.0 != me) {
            let (sender, jobs) = channel::<Job>();
            thread::spawn(c"rf-keeper", KEEPER_STACK, move || {
                jobs.iter().for_each(|job| job())
            })
            .ok()?;
            *keeper = Some((me, sender));
        }
        keeper.as_ref()?.1.send(job).ok()?;
    }
    answered.recv().ok()
}

/// Starts a worker with these files. Its number.
pub(crate) fn start(socket: OwnedFd, shared: OwnedFd) -> Result<i32, DomainError> {
    let path = find()?;
    let shown = path.display().to_string();
    let run = move || {
        Command::new(path)
            .arg(std::process::id().to_string())
            .env_clear()
            .stdin(Stdio::from(socket))
            .stdout(Stdio::from(shared))
            .stderr(Stdio::null())
            .spawn()
            .map(|child| child.id() as i32)
    };
    let started = on_keeper(run).unwrap_or_else(|| Err(std::io::Error::other("no thread to start it")));
    started.map_err(|e| DomainError::Worker {
        reason: format!("{shown}: {e}"),
    })
}

/// What a worker is locked in with on this machine: one is started, locks itself in, says so and ends.
///
/// # Errors
/// [`DomainError::Worker`]: there is no such program, or it cannot lock itself in.
pub fn confinement() -> Result<Confinement, DomainError> {
    let path = find()?;
    let failed = |reason: String| DomainError::Worker { reason };
    let output = Command::new(&path)
        .arg(worker::CONFINEMENT)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .map_err(|e| failed(format!("{}: {e}", path.display())))?;
    let mut held = Confinement::default();
    match output.stdout.as_slice() {
        &[system_calls, namespaces, landlock] if output.status.success() => {
            held.system_calls = system_calls == b'y';
            held.namespaces = namespaces == b'y';
            held.landlock = landlock == b'y';
            Ok(held)
        }
        _ => Err(failed(format!(
            "{} cannot lock itself in ({}): {}",
            path.display(),
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ))),
    }
}

/// How the process has ended, if it has. It keeps its number.
pub(crate) fn ended(pid: i32) -> Option<String> {
    // SAFETY: all bytes 0 are one.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: room for the answer.
    let asked = unsafe { libc::waitid(libc::P_PID, pid as u32, &raw mut info, options) };
    if asked != 0 {
        return Some("somebody else has waited for it".to_owned());
    }
    // SAFETY: filled in by the call, for a child that has ended.
    let (of, status) = unsafe { (info.si_pid(), info.si_status()) };
    if of == 0 {
        return None;
    }
    Some(match info.si_code {
        libc::CLD_EXITED => format!("it ended with status {status}"),
        _ => format!("signal {status} killed it"),
    })
}

/// Ends the process and takes its number back.
pub(crate) fn end(pid: i32) {
    // SAFETY: our own child, which has not been waited for.
    unsafe {
        libc::kill(pid, libc::SIGKILL);
        while libc::waitpid(pid, std::ptr::null_mut(), 0) < 0 && *libc::__errno_location() == libc::EINTR {}
    }
}

/// A word that is 0 in children of this process, whatever made them.
fn word() -> Option<&'static AtomicI32> {
    static WORD: OnceLock<Option<usize>> = OnceLock::new();
    let at = WORD.get_or_init(|| {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new page, which stays.
        unsafe {
            let at = libc::mmap(std::ptr::null_mut(), 4096, rights, flags, -1, 0);
            if at == libc::MAP_FAILED || libc::madvise(at, 4096, libc::MADV_WIPEONFORK) != 0 {
                return None;
            }
            Some(at as usize)
        }
    });
    // SAFETY: as above; aligned, and only used as an atomic.
    at.map(|at| unsafe { &*(at as *const AtomicI32) })
}

/// Which process made something.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker(i32);

impl Maker {
    /// This one.
    pub(crate) fn me() -> Maker {
        // SAFETY: no arguments.
        let me = unsafe { libc::getpid() };
        if let Some(word) = word() {
            word.store(me, Ordering::Relaxed);
        }
        Maker(me)
    }

    /// Whether that is still this process, and no child of it.
    pub(crate) fn is_me(self) -> bool {
        match word() {
            Some(word) => word.load(Ordering::Relaxed) == self.0,
            // SAFETY: no arguments.
            None => unsafe { libc::getpid() == self.0 },
        }
    }
}
