//! System calls at random, under several policies: the domain may get any answer, the host must stay as it was.

use crate::caller;
use crate::code::data;
use crate::fuzz::domain_of;
use crate::rng::Rng;
use ringfence_policy::{Captured, Policy, Rights, Stream};
use ringfence_runtime::{Call, CallError, Domain, DomainOptions, FaultKind, Imports};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// System calls made.
    pub calls: u64,
    /// Of these: succeeded.
    pub succeeded: u64,
    /// Different numbers of calls that succeeded at least once.
    pub kinds: usize,
    /// Calls that ended the call into the domain, by the reason.
    pub ends: BTreeMap<String, u64>,
    /// How often the host was compared with what it was.
    pub comparisons: u64,
    /// Anything wrong; must be empty.
    pub violations: Vec<String>,
}

/// Bytes of the domain's data that hold paths, structures and rubbish, from this one on.
const PLACE: u32 = 0x1000;
const PLACES: u32 = 0x1_0000;

const PATHS: &[&str] = &[
    "a",
    "b",
    "dir",
    "dir/a",
    "dir/../b",
    "../out/secret",
    "/out/secret",
    "/in/../out/secret",
    "/in/link",
    "link",
    "link/secret",
    "absolute",
    "absolute/passwd",
    "fifo",
    "/",
    "",
    ".",
    "..",
    "/in",
    "/ro/a",
    "/ro/../in/a",
    "/ro",
    "/proc/self/mem",
    "/dev/null",
    "a/",
    "dir/",
    "dir/./../dir//a",
];

/// Everything of the host that a domain must not be able to change.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    descriptors: Vec<String>,
    directory: PathBuf,
    status: Vec<String>,
    limits: String,
    timers: String,
    files: Vec<String>,
    mappings: Vec<String>,
    alarm: u32,
}

impl Host {
    fn look(outside: &[PathBuf]) -> Host {
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let mut descriptors: Vec<String> = fs::read_dir("/proc/self/fd")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|e| Some(format!("{:?} {:?}", e.file_name(), fs::read_link(e.path()).ok()?)))
            // The look itself.
            .filter(|line| !line.contains("/proc/"))
            .collect();
        descriptors.sort();
        let known = [
            "Umask",
            "Name",
            "SigPnd",
            "ShdPnd",
            "SigBlk",
            "SigIgn",
            "SigCgt",
            "NoNewPrivs",
            "Seccomp",
        ];
        let status = text("/proc/self/status")
            .lines()
            .filter(|l| known.iter().any(|k| l.starts_with(k)))
            .map(str::to_string)
            .collect();
        let files = outside.iter().map(|p| describe(p)).collect();
        // Code, and files: the allocator's own areas come and go.
        let mappings = text("/proc/self/maps")
            .lines()
            .filter(|l| l.split_whitespace().nth(1).is_some_and(|mode| mode.contains('x')))
            .map(str::to_string)
            .collect();
        // SAFETY: reads what is left, and puts it back.
        let alarm = unsafe { libc::alarm(0) };
        if alarm > 0 {
            // SAFETY: as above.
            unsafe { libc::alarm(alarm) };
        }
        Host {
            descriptors,
            directory: std::env::current_dir().unwrap_or_default(),
            status,
            limits: text("/proc/self/limits"),
            timers: text("/proc/self/timers"),
            files,
            mappings,
            alarm,
        }
    }
}

fn describe(path: &Path) -> String {
    let Ok(m) = fs::symlink_metadata(path) else {
        return format!("{} is not there", path.display());
    };
    let content = if m.is_dir() {
        let mut names: Vec<_> = fs::read_dir(path)
            .into_iter()
            .flatten()
            .flatten()
            .map(|e| e.file_name())
            .collect();
        names.sort();
        format!("{names:?}")
    } else {
        format!("{:?}", fs::read(path).unwrap_or_default())
    };
    format!(
        "{} {:o} {} {} {}.{:09} {content}",
        path.display(),
        m.permissions().mode(),
        m.len(),
        m.nlink(),
        m.mtime(),
        m.mtime_nsec()
    )
}

/// A directory with `in`, which is granted, `ro`, which is granted for reading, and `out`, which is not; removed on drop.
pub struct Yard(PathBuf);

impl Yard {
    /// Makes it.
    ///
    /// # Panics
    ///
    /// If there is no room.
    #[must_use]
    pub fn new() -> Yard {
        let root = std::env::temp_dir().join(format!("rf-attack-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let yard = Yard(root);
        yard.fill();
        yard
    }

    fn fill(&self) {
        for name in ["in/dir", "ro/dir", "out"] {
            fs::create_dir_all(self.0.join(name)).expect("a directory");
        }
        fs::write(self.path("out/secret"), "secret").expect("a file");
        self.fill_in("in");
        self.fill_in("ro");
    }

    fn fill_in(&self, granted: &str) {
        let root = self.path(granted);
        fs::create_dir_all(root.join("dir")).expect("a directory");
        for name in ["a", "b", "dir/a"] {
            fs::write(root.join(name), name).expect("a file");
        }
        let _ = symlink("../out", root.join("link"));
        let _ = symlink("/etc", root.join("absolute"));
        let name = root.join("fifo").into_os_string().into_encoded_bytes();
        let name = std::ffi::CString::new(name).expect("no NUL");
        // SAFETY: a C string.
        unsafe { libc::mkfifo(name.as_ptr(), 0o600) };
    }

    /// Makes `in` anew: what the domain did there is its own affair.
    fn refill(&self) {
        for entry in fs::read_dir(self.path("in")).into_iter().flatten().flatten() {
            if fs::remove_file(entry.path()).is_err() {
                let _ = fs::remove_dir_all(entry.path());
            }
        }
        let _ = fs::set_permissions(self.path("in"), fs::Permissions::from_mode(0o755));
        self.fill_in("in");
    }

    /// Where a part of it is.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn outside(&self) -> Vec<PathBuf> {
        [
            "",
            "out",
            "out/secret",
            "ro",
            "ro/a",
            "ro/dir",
            "ro/link",
            "ro/absolute",
        ]
        .iter()
        .map(|p| self.0.join(p))
        .collect()
    }
}

impl Default for Yard {
    fn default() -> Self {
        Yard::new()
    }
}

impl Drop for Yard {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn policies(yard: &Yard) -> Vec<Policy> {
    let all = || {
        Policy::new()
            .dir(yard.path("in"), "/in", Rights::Write)
            .dir(yard.path("ro"), "/ro", Rights::Read)
            .clocks(true)
            .randomness(true)
            .stdin(Stream::Bytes(b"input".to_vec()))
            .stdout(Stream::Capture(Captured::default()))
            .stderr(Stream::Null)
            .capture_limit(1 << 16)
    };
    vec![
        Policy::new(),
        all(),
        all()
            .connect("127.0.0.1:9".parse().expect("an address"))
            .descriptors(12),
        Policy::new().dir(yard.path("ro"), "/", Rights::Read),
        all().callback(|_| ringfence_policy::Decision::Policy),
    ]
}

/// Makes random system calls until the limit is reached. Call it in a process of its own: it limits the size of files.
///
/// # Panics
///
/// If the runtime refuses the module.
#[must_use]
pub fn run(seed: u64, limit: Duration) -> Outcome {
    let mut rng = Rng::new(seed);
    let mut outcome = Outcome::default();
    let yard = Yard::new();
    // SAFETY: no file of ours is to grow large; the signal for it would end the process.
    unsafe {
        let small = libc::rlimit {
            rlim_cur: 32 << 20,
            rlim_max: 32 << 20,
        };
        libc::setrlimit(libc::RLIMIT_FSIZE, &raw const small);
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    let mut seen = std::collections::HashSet::new();
    let mut options = DomainOptions::default();
    options.memory_limit = 4 << 20;
    (options.data_stack, options.control_stack) = (1 << 20, 256 << 10);
    options.time_limit = Some(Duration::from_millis(30));
    let domains: Vec<Domain> = policies(&yard)
        .into_iter()
        .map(|policy| {
            let imports = Imports::new()
                .closure("host", |_| Ok(()))
                .policy(policy.start().expect("a policy"));
            domain_of(&caller::module(), imports, &options).expect("a domain")
        })
        .collect();
    for domain in &domains {
        // Lanes are made, the watchdog runs, and the kernel's table of pages is open.
        let _ = domain
            .entry("from_memory")
            .expect("an export")
            .call(&mut Call::default());
        domain.reset().expect("nobody is in");
    }
    let canary = vec![0xC5u8; 1 << 16];
    let before = Host::look(&yard.outside());
    let end = Instant::now() + limit;
    while Instant::now() < end && outcome.violations.is_empty() {
        let domain = &domains[rng.below(domains.len() as u64) as usize];
        for _ in 0..400 {
            let number = round(domain, &mut rng, canary.as_ptr() as u64, &mut outcome);
            seen.extend(number);
        }
        if let Err(e) = domain.reset() {
            outcome.violations.push(format!("reset: {e}"));
        }
        yard.refill();
        let after = Host::look(&yard.outside());
        outcome.comparisons += 1;
        if after != before {
            outcome
                .violations
                .push(format!("the host was {before:#?}\nand is {after:#?}"));
        }
        if canary.iter().any(|b| *b != 0xC5) {
            outcome.violations.push("host memory was written".into());
        }
    }
    outcome.kinds = seen.len();
    outcome
}

/// An argument: a number, a descriptor, a flag, a pointer to something or to nothing.
fn argument(rng: &mut Rng, base: u64, canary: u64) -> u64 {
    let place = base + u64::from(data(PLACE + (rng.below(u64::from(PLACES)) as u32 & !7)));
    match rng.below(14) {
        0 => rng.bits(),
        1 => rng.below(8),
        2 => rng.below(16),
        3 => 1 << rng.below(24),
        4 => rng.below(4096),
        5 => 0,
        6 => libc::AT_FDCWD as u64,
        // The window's last bytes, its first, what belongs to the gates.
        7 => {
            base + rng.pick(&[
                0,
                0x1_0000,
                0x2_0000,
                0xFFFF_FFF8,
                0xFFFF_F000,
                0xC000_0000,
                0x4000_0000,
            ])
        }
        8 => canary + rng.below(1 << 15),
        9 => u64::MAX - rng.below(5000),
        _ => place,
    }
}

fn round(domain: &Domain, rng: &mut Rng, canary: u64, outcome: &mut Outcome) -> Option<u64> {
    let memory = domain.as_ref();
    let base = memory.base();
    // Something to point to: paths, and structures of small numbers and pointers.
    let mut block = [0u8; 256];
    if rng.one_in(2) {
        let path = rng.pick(PATHS).as_bytes();
        block[..path.len()].copy_from_slice(path);
    } else {
        for word in block.chunks_exact_mut(8) {
            word.copy_from_slice(&argument(rng, base, canary).to_le_bytes());
        }
    }
    let at = base + u64::from(data(PLACE)) + rng.below(u64::from(PLACES - 256) / 8) * 8;
    let _ = memory.write(at, &block);
    let number = match rng.below(8) {
        0 => rng.bits(),
        1 => rng.below(512),
        _ => rng.pick(KNOWN) as u64,
    };
    let mut words = [number, 0, 0, 0, 0, 0, 0];
    for word in &mut words[1..] {
        *word = if rng.one_in(3) {
            at
        } else {
            argument(rng, base, canary)
        };
    }
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    memory
        .write(base + u64::from(data(caller::CALL)), &bytes)
        .expect("the domain's data");
    outcome.calls += 1;
    match domain
        .entry("from_memory")
        .expect("an export")
        .call(&mut Call::default())
    {
        Ok(returned) if (-4095..0).contains(&(returned.rax as i64)) => None,
        Ok(_) => {
            outcome.succeeded += 1;
            Some(number)
        }
        Err(e) => {
            let name = match &e {
                CallError::Exit(_) => "exit".to_string(),
                CallError::Fault(f) => match f.kind {
                    FaultKind::TimeLimit => "time limit".into(),
                    FaultKind::Abort(_) => "signal to itself".into(),
                    ref other => {
                        outcome.violations.push(format!("{words:x?}: {other:?}"));
                        "fault".into()
                    }
                },
                other => {
                    outcome.violations.push(format!("{words:x?}: {other}"));
                    "error".into()
                }
            };
            *outcome.ends.entry(name).or_default() += 1;
            if let Err(e) = domain.reset() {
                outcome.violations.push(format!("reset: {e}"));
            }
            None
        }
    }
}

/// Calls that the monitor knows, and some that it must not.
const KNOWN: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_brk,
    libc::SYS_mmap,
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_exit,
    libc::SYS_kill,
    libc::SYS_tgkill,
    libc::SYS_close,
    libc::SYS_lseek,
    libc::SYS_fsync,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_fchmod,
    libc::SYS_flock,
    libc::SYS_fstat,
    libc::SYS_getdents64,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_dup,
    libc::SYS_dup2,
    libc::SYS_dup3,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_wait,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_sendfile,
    libc::SYS_copy_file_range,
    libc::SYS_pipe,
    libc::SYS_pipe2,
    libc::SYS_poll,
    libc::SYS_ppoll,
    libc::SYS_select,
    libc::SYS_pselect6,
    libc::SYS_open,
    libc::SYS_open,
    libc::SYS_creat,
    libc::SYS_openat,
    libc::SYS_openat,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_access,
    libc::SYS_faccessat2,
    libc::SYS_mkdir,
    libc::SYS_mkdirat,
    libc::SYS_rmdir,
    libc::SYS_unlink,
    libc::SYS_unlinkat,
    libc::SYS_rename,
    libc::SYS_renameat2,
    libc::SYS_link,
    libc::SYS_linkat,
    libc::SYS_symlink,
    libc::SYS_readlink,
    libc::SYS_readlinkat,
    libc::SYS_chmod,
    libc::SYS_fchmodat,
    libc::SYS_utimensat,
    libc::SYS_truncate,
    libc::SYS_chdir,
    libc::SYS_fchdir,
    libc::SYS_getcwd,
    libc::SYS_umask,
    libc::SYS_clock_gettime,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_times,
    libc::SYS_getrusage,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_sched_getaffinity,
    libc::SYS_prlimit64,
    libc::SYS_setrlimit,
    libc::SYS_futex,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_sigaltstack,
    libc::SYS_socket,
    libc::SYS_connect,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_bind,
    libc::SYS_socketpair,
    libc::SYS_execve,
    libc::SYS_fork,
    libc::SYS_clone,
    libc::SYS_ptrace,
    libc::SYS_prctl,
    libc::SYS_arch_prctl,
    libc::SYS_process_vm_writev,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_memfd_create,
    libc::SYS_alarm,
    libc::SYS_setitimer,
    libc::SYS_timer_create,
    libc::SYS_personality,
    libc::SYS_chroot,
    libc::SYS_mount,
    libc::SYS_seccomp,
    libc::SYS_bpf,
    libc::SYS_pidfd_open,
    libc::SYS_shmat,
    libc::SYS_msync,
    libc::SYS_mlockall,
    libc::SYS_pkey_mprotect,
    libc::SYS_membarrier,
    libc::SYS_open_by_handle_at,
];
