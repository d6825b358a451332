//! Hostile hosts: programs with limits of resources, filters that refuse system calls, clocks that jump, handlers, forks and fibers
//! in callbacks. Wanted are typed errors and success, and never the end of the process.

use crate::adapter::{Domain, DomainOptions, End, Module};
use crate::case::{Case, Op, Shape};
use ringfence::{Imports, Region, Rights, Untrusted};
use ringfence_attack::caller;
use std::cell::UnsafeCell;
use std::mem::{MaybeUninit, zeroed};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// What there is. Each operation is one step of a program.
pub const SHAPES: &[Shape] = &[
    // A limit: which, and how much, as a power of two (64: none).
    Shape {
        name: "limit",
        numbers: &[(0, LIMITS.len() as u64 - 1), (0, 64)],
    },
    // From now on a system call fails: which, and how.
    Shape {
        name: "refuse",
        numbers: &[(0, CALLS.len() as u64 - 1), (0, 2)],
    },
    // The clock jumps: seconds forward, or as many backward from half the range on.
    Shape {
        name: "clock",
        numbers: &[(0, 1 << 40)],
    },
    // What the program does.
    Shape {
        name: "do",
        numbers: &[(0, 16)],
    },
];

/// System calls that the runtime makes, but for those without which no program gets anywhere (`futex`, `exit`, `rt_sigreturn`), with
/// which the C library or Rust's ends it (`rseq`, `getrandom`; `brk`, whose refusal by a filter glibc takes for success), and those
/// that the watchdog is nothing without (`rt_tgsigqueueinfo`, `gettid`): `docs/security/host-process.md`.
const CALLS: &[i64] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_openat,
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_write,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    libc::SYS_tgkill,
    libc::SYS_clock_nanosleep,
    libc::SYS_clone,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_membarrier,
    libc::SYS_prctl,
    libc::SYS_prlimit64,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_arch_prctl,
    libc::SYS_personality,
    libc::SYS_mlock,
    libc::SYS_process_vm_readv,
];

/// All that there are but `RLIMIT_CPU`, by which the kernel ends the process.
const LIMITS: [u32; 15] = [
    libc::RLIMIT_NOFILE,
    libc::RLIMIT_AS,
    libc::RLIMIT_DATA,
    libc::RLIMIT_STACK,
    libc::RLIMIT_NPROC,
    libc::RLIMIT_FSIZE,
    libc::RLIMIT_MEMLOCK,
    libc::RLIMIT_SIGPENDING,
    libc::RLIMIT_CORE,
    libc::RLIMIT_RSS,
    libc::RLIMIT_LOCKS,
    libc::RLIMIT_MSGQUEUE,
    libc::RLIMIT_NICE,
    libc::RLIMIT_RTPRIO,
    libc::RLIMIT_RTTIME,
];

/// Seconds that the clocks of this program are ahead.
static AHEAD: AtomicI64 = AtomicI64::new(0);

/// The C library's function of that name, for all of this program: its clocks can jump. Clocks of processor time do not.
///
/// # Safety
/// As the library's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: libc::clockid_t, time: *mut libc::timespec) -> libc::c_int {
    // SAFETY: the caller's promise.
    unsafe {
        let done = libc::syscall(libc::SYS_clock_gettime, clock, time);
        if done == 0 && matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC) {
            (*time).tv_sec = (*time).tv_sec.saturating_add(AHEAD.load(Relaxed)).max(0);
        }
        done as libc::c_int
    }
}

/// Runs the program in a process of its own.
///
/// # Errors
/// How it ended.
pub fn run(case: &Case) -> Result<String, String> {
    // SAFETY: this process has one thread; the child does not come back.
    let status = unsafe {
        let child = libc::fork();
        if child == 0 {
            // What waits for ever is an error, too.
            libc::alarm(120);
            libc::_exit(program(case));
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        status
    };
    match () {
        () if libc::WIFSIGNALED(status) => Err(format!("signal {} ended it", libc::WTERMSIG(status))),
        () if libc::WEXITSTATUS(status) == 0 => Ok("all steps succeeded".into()),
        () if libc::WEXITSTATUS(status) == 1 => Ok("some steps were refused".into()),
        () => Err(format!("it ended with {}", libc::WEXITSTATUS(status))),
    }
}

/// 0: all succeeded; 1: there were typed errors; more: it panicked.
fn program(case: &Case) -> i32 {
    let steps = || {
        let mut host = Host::default();
        let mut refused = false;
        for op in &case.ops {
            refused |= !host.step(op);
        }
        // With all that they hold.
        drop(host);
        match taken_is_whole() {
            true => i32::from(refused),
            false => 60,
        }
    };
    std::panic::catch_unwind(steps).unwrap_or(101)
}

#[derive(Default)]
struct Host {
    module: Option<Module>,
    domain: Option<Domain>,
}

/// What the host function does: nothing; fork; go to the other fiber.
static CALLBACK: AtomicU32 = AtomicU32::new(0);
/// For handlers and fibers.
static SHARED: OnceLock<Domain> = OnceLock::new();

struct Context(UnsafeCell<MaybeUninit<libc::ucontext_t>>);
// SAFETY: one thread uses them.
unsafe impl Sync for Context {}
static MAIN: Context = Context(UnsafeCell::new(MaybeUninit::zeroed()));
static FIBER: Context = Context(UnsafeCell::new(MaybeUninit::zeroed()));

fn switch(from: &Context, to: &Context) {
    // SAFETY: `to` was filled and is not running.
    unsafe { libc::swapcontext(from.0.get().cast(), to.0.get().cast()) };
}

fn host(argument: Untrusted<u64>) -> u64 {
    match CALLBACK.swap(0, Relaxed) {
        1 => forked(|| {
            i32::from(
                SHARED
                    .get()
                    .is_some_and(|d| matches!(d.call("flip", 0, 0), End::Returned(_))),
            )
        }),
        2 => switch(&FIBER, &MAIN),
        _ => {}
    }
    argument.into_inner_unchecked()
}

/// Does `work` in a child, which leaves with what it returns.
fn forked(work: impl FnOnce() -> i32) {
    // SAFETY: the child does not come back.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            libc::alarm(60);
            libc::_exit(work());
        }
        let mut status = 0;
        while child > 0 && libc::waitpid(child, &raw mut status, 0) < 0 {}
        // What ends the child ends this program, so that it is seen.
        if libc::WIFSIGNALED(status) {
            libc::_exit(50 + libc::WTERMSIG(status));
        }
    }
}

extern "C" fn handler(_: libc::c_int) {
    if let Some(domain) = SHARED.get() {
        let _ = domain.call("out", 7, 0);
    }
}

extern "C" fn on_thread(_: *mut libc::c_void) -> *mut libc::c_void {
    handler(0);
    std::ptr::null_mut()
}

extern "C" fn in_fiber() {
    if let Some(domain) = SHARED.get() {
        let _ = domain.call("out", 7, 0);
    }
}

impl Host {
    /// One step. Whether it succeeded.
    fn step(&mut self, op: &Op) -> bool {
        match op.name.as_str() {
            "limit" => limit(LIMITS[op.n(0) as usize % LIMITS.len()], op.n(1)),
            "refuse" => {
                let errno = [libc::EPERM, libc::ENOSYS, libc::ENOMEM][op.n(1) as usize % 3];
                refuse(CALLS[op.n(0) as usize % CALLS.len()], errno)
            }
            "clock" => {
                let jump = op.n(0) as i64;
                AHEAD.fetch_add(if jump > 1 << 39 { -(jump >> 1) } else { jump }, Relaxed);
                true
            }
            _ => self.perform(op.n(0)).is_some(),
        }
    }

    fn module(&mut self) -> Option<Module> {
        if self.module.is_none() {
            self.module = crate::adapter::load(&caller::module().build()).ok();
        }
        self.module.clone()
    }

    fn make(&mut self) -> Option<Domain> {
        let mut options = DomainOptions::default();
        options.time_limit = Some(Duration::from_millis(20));
        options.data_stack = 64 << 10;
        options.extensible = true;
        self.module()?
            .domain_with(Imports::new().func("host", host), &options)
            .ok()
    }

    fn domain(&mut self) -> Option<Domain> {
        if self.domain.is_none() {
            self.domain = self.make();
        }
        self.domain.clone()
    }

    fn perform(&mut self, what: u64) -> Option<()> {
        let domain = self.domain()?;
        let _ = SHARED.set(domain.clone());
        let reset = || domain.0.reset().ok();
        match what {
            0 => drop(self.make()?),
            1 => returned(domain.call("out", 1, 0))?,
            // A crash, with all that can be told of it.
            2 => {
                if let End::Fault(fault) = domain.call("crash", 0, 0) {
                    let _ = fault.backtrace();
                    let _ = fault.to_string();
                }
                reset()?;
            }
            3 => reset()?,
            4 => domain.0.checkpoint().ok()?,
            5 => {
                let region = Region::new(1 << 20).ok()?;
                region.give(&domain.0, Rights::Write).ok()?;
            }
            6 => {
                domain.0.add_module("more", &self.module()?.0).ok()?;
                domain.0.remove_module("more").ok()?;
            }
            // As good as for ever: the time limit ends it.
            7 => {
                let at = domain.0.memory().base() + u64::from(ringfence_attack::code::data(128));
                let flip = domain.0.function("flip").ok()?;
                let _ = flip.call([at, 1, 2, u64::MAX].map(ringfence::dynamic::Argument::Int));
                reset()?;
            }
            8 => {
                // Not by the standard library, which ends the process when a thread's start goes wrong.
                // SAFETY: the thread is joined.
                unsafe {
                    let mut thread: libc::pthread_t = zeroed();
                    if libc::pthread_create(
                        &raw mut thread,
                        std::ptr::null(),
                        on_thread,
                        std::ptr::null_mut(),
                    ) != 0
                    {
                        return None;
                    }
                    libc::pthread_join(thread, std::ptr::null_mut());
                }
            }
            9 | 10 => handled(what == 10)?,
            11 => {
                CALLBACK.store(1, Relaxed);
                returned(domain.call("out", 1, 0))?;
            }
            12 => forked(|| i32::from(returned(domain.call("out", 1, 0)).is_none())),
            13 => fiber(&domain),
            14 => domain.0.run_destructors().ok()?,
            16 => take_descriptors()?,
            _ => {
                domain.0.trim().ok()?;
                let _ = domain.0.usage();
                self.domain = None;
            }
        }
        Some(())
    }
}

/// As many numbers are taken.
const NUMBERS: i32 = 64;
/// Which were: a bit for each.
static NUMBERED: AtomicU64 = AtomicU64::new(0);
/// Bytes of the file that gets them, and what it is full of.
const TAKEN: usize = 64 << 10;
const FULL: u8 = 0xAB;
/// Where the file is in memory.
static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// Closes what is not its own, as a daemon does when it starts, and has a file of its own at all those numbers.
fn take_descriptors() -> Option<()> {
    // SAFETY: what a host does that knows no better; this program has no descriptors that it needs. The map stays.
    unsafe {
        // Where no file may be so long, making one would be this program's own end.
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) != 0 || limit.rlim_cur < TAKEN as u64 {
            return None;
        }
        NUMBERED.store(0, Relaxed);
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0);
        let file = libc::memfd_create(c"taken".as_ptr(), 0);
        if file < 0 || libc::ftruncate(file, TAKEN as i64) != 0 {
            return None;
        }
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let at = libc::mmap(std::ptr::null_mut(), TAKEN, rights, libc::MAP_SHARED, file, 0);
        if at == libc::MAP_FAILED {
            return None;
        }
        at.cast::<u8>().write_bytes(FULL, TAKEN);
        for number in 3..NUMBERS {
            if libc::dup2(file, number) == number {
                NUMBERED.fetch_or(1 << number, Relaxed);
            }
        }
        SHOWN.store(at as usize, Relaxed);
    }
    Some(())
}

/// Whether nobody has changed the file, or closed it at any of the numbers that it has.
fn taken_is_whole() -> bool {
    let at = SHOWN.load(Relaxed) as *const u8;
    if at.is_null() {
        return true;
    }
    // SAFETY: mapped above and never unmapped. A file that was made shorter is a signal, which ends the program and is seen.
    let bytes = unsafe { std::slice::from_raw_parts(at, TAKEN) };
    // SAFETY: a copy, which is let be. Where there may be no more descriptors it says so, and not that there is none.
    let open = |n: &i32| unsafe { libc::dup(*n) >= 0 || *libc::__errno_location() != libc::EBADF };
    let numbered = |n: &i32| NUMBERED.load(Relaxed) >> n & 1 != 0;
    bytes.iter().all(|&b| b == FULL) && (3..NUMBERS).filter(numbered).all(|n| open(&n))
}

fn returned(end: End) -> Option<()> {
    matches!(end, End::Returned(_)).then_some(())
}

/// A call from a signal handler, on an alternate stack or without.
fn handled(alternate: bool) -> Option<()> {
    // SAFETY: the handler is a function of the right type; the stack stays.
    unsafe {
        if alternate {
            let stack = libc::stack_t {
                ss_sp: Box::leak(vec![0_u8; 64 << 10].into_boxed_slice())
                    .as_mut_ptr()
                    .cast(),
                ss_flags: 0,
                ss_size: 64 << 10,
            };
            libc::sigaltstack(&raw const stack, std::ptr::null_mut());
        }
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = if alternate { libc::SA_ONSTACK } else { 0 };
        if libc::sigaction(libc::SIGUSR1, &raw const action, std::ptr::null_mut()) != 0 {
            return None;
        }
        (libc::raise(libc::SIGUSR1) == 0).then_some(())
    }
}

/// A call on a stack of its own stays in its callback while another one comes and goes, and the domain is reset.
fn fiber(domain: &Domain) {
    const STACK: usize = 256 << 10;
    // SAFETY: the context and its stack live as long as the process.
    unsafe {
        let (rights, flags) = (
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
        );
        let stack = libc::mmap(std::ptr::null_mut(), STACK, rights, flags, -1, 0);
        if stack == libc::MAP_FAILED {
            return;
        }
        let fiber: *mut libc::ucontext_t = FIBER.0.get().cast();
        if libc::getcontext(fiber) != 0 {
            return;
        }
        (*fiber).uc_stack.ss_sp = stack;
        (*fiber).uc_stack.ss_size = STACK;
        (*fiber).uc_link = MAIN.0.get().cast();
        libc::makecontext(fiber, in_fiber, 0);
    }
    CALLBACK.store(2, Relaxed);
    switch(&MAIN, &FIBER);
    // If the call came so far, it waits in its callback.
    let waits = CALLBACK.swap(0, Relaxed) == 0;
    let _ = domain.call("out", 1, 0);
    let _ = domain.0.reset();
    if waits {
        switch(&MAIN, &FIBER);
    }
    let _ = domain.0.reset();
}

fn limit(which: u32, power: u64) -> bool {
    let value = if power >= 63 {
        libc::RLIM_INFINITY
    } else {
        (1 << power) - 1
    };
    // SAFETY: reads and writes one structure.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        libc::getrlimit(which, &raw mut limit);
        limit.rlim_cur = value.min(limit.rlim_max);
        libc::setrlimit(which, &raw const limit) == 0
    }
}

/// From now on the kernel refuses a system call of this process with this error.
fn refuse(number: i64, errno: i32) -> bool {
    let step = |code: u32, k: u32, no: u8| libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: no,
        k,
    };
    let mut filter = [
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, number as u32, 1),
        step(
            libc::BPF_RET | libc::BPF_K,
            libc::SECCOMP_RET_ERRNO | errno as u32,
            0,
        ),
        step(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the filter is there during the call.
    unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_TSYNC,
            &raw const program,
        ) == 0
    }
}
