//! How a worker locks itself in: what it can do without comes first, then a filter for system calls. Each step that a kernel does not
//! have is left out, but for the filter, without which a worker does not begin.

use ringfence_core::Confinement;
use std::io;

/// What everything of the module's runs under.
fn allowed() -> Vec<u32> {
    [
        // Waiting for the host, and each other.
        libc::SYS_futex,
        libc::SYS_sched_yield,
        libc::SYS_nanosleep,
        libc::SYS_clock_nanosleep,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_restart_syscall,
        // Memory. What may become executable, `PROTECTED` says.
        libc::SYS_munmap,
        libc::SYS_madvise,
        libc::SYS_mremap,
        libc::SYS_brk,
        libc::SYS_membarrier,
        // The window's own files, which are in memory: none can be opened.
        libc::SYS_memfd_create,
        libc::SYS_ftruncate,
        libc::SYS_fallocate,
        libc::SYS_fcntl,
        libc::SYS_fstat,
        libc::SYS_lseek,
        libc::SYS_pread64,
        libc::SYS_pwrite64,
        libc::SYS_write,
        libc::SYS_read,
        libc::SYS_close,
        // Files of regions, which the host hands over.
        libc::SYS_recvmsg,
        // Faults and limits.
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_getpid,
        libc::SYS_gettid,
        // Threads of its own, and their end.
        libc::SYS_set_robust_list,
        libc::SYS_rseq,
        libc::SYS_sched_getaffinity,
        // Seeds of hash tables.
        libc::SYS_getrandom,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ]
    .iter()
    .map(|&n| n as u32)
    .collect()
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const BITS: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The lower half of the n-th argument.
const fn argument(n: u32) -> u32 {
    16 + 8 * n
}

const X86_64: u32 = 0xC000_003E;
/// The numbers of x32, which the table does not have.
const X32: u32 = 0x4000_0000;

fn step(code: u16, k: u32, jt: u8, jf: u8) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

fn refuse(errno: i32) -> libc::sock_filter {
    step(RETURN, libc::SECCOMP_RET_ERRNO | errno as u32, 0, 0)
}

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

/// A call that may be made if no bit (or one at least) of an argument is set.
fn bits(program: &mut Vec<libc::sock_filter>, number: i64, n: u32, bits: u32, set: bool) {
    program.push(step(EQUAL, number as u32, 0, 4));
    program.push(step(LOAD, argument(n), 0, 0));
    program.push(step(BITS, bits, u8::from(!set), u8::from(set)));
    program.push(step(RETURN, ALLOW, 0, 0));
    program.push(refuse(libc::EPERM));
}

fn filter(executable: bool) -> Vec<libc::sock_filter> {
    let mut p = vec![
        step(LOAD, ARCHITECTURE, 0, 0),
        step(EQUAL, X86_64, 1, 0),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
        step(LOAD, NUMBER, 0, 0),
        step(ABOVE, X32, 0, 1),
        step(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
    ];
    for number in allowed() {
        p.push(step(EQUAL, number, 0, 1));
        p.push(step(RETURN, ALLOW, 0, 0));
    }
    if executable {
        // The second filter.
        p.push(step(EQUAL, libc::SYS_seccomp as u32, 0, 1));
        p.push(step(RETURN, ALLOW, 0, 0));
    }
    for number in [libc::SYS_mmap, libc::SYS_mprotect] {
        let refused = if executable { 0 } else { libc::PROT_EXEC as u32 };
        bits(&mut p, number, 2, refused, false);
    }
    // Threads, and no processes. The other call has its flags in memory, where a filter cannot look: the C library takes
    // this one when it is told that there is no other.
    bits(&mut p, libc::SYS_clone, 0, libc::CLONE_THREAD as u32, true);
    p.push(step(EQUAL, libc::SYS_clone3 as u32, 0, 1));
    p.push(refuse(libc::ENOSYS));
    // SAFETY: no arguments.
    let me = unsafe { libc::getpid() } as u32;
    for (number, first) in [
        // Signals to its own threads.
        (libc::SYS_tgkill, me),
        (libc::SYS_rt_tgsigqueueinfo, me),
        // Names and timers of threads.
        (libc::SYS_prctl, libc::PR_SET_NAME as u32),
        (libc::SYS_prctl, libc::PR_SET_TIMERSLACK as u32),
        // Questions about itself.
        (libc::SYS_personality, u32::MAX),
        (libc::SYS_prlimit64, 0),
    ] {
        p.push(step(EQUAL, number as u32, 0, 4));
        p.push(step(LOAD, argument(0), 0, 0));
        p.push(step(EQUAL, first, 0, 1));
        p.push(step(RETURN, ALLOW, 0, 0));
        p.push(step(LOAD, NUMBER, 0, 0));
    }
    p.push(refuse(libc::EPERM));
    p
}

/// Only these system calls from now on, for all threads that there will be. Once with what making a domain takes, then without new
/// executable memory.
pub(crate) fn system_calls(executable: bool) -> io::Result<()> {
    let mut program = filter(executable);
    let list = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    let tsync = if executable {
        0
    } else {
        libc::SECCOMP_FILTER_FLAG_TSYNC
    };
    // SAFETY: a program of ours, which the kernel copies and checks.
    let done = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            tsync,
            &raw const list,
        )
    };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Dies with the host, whoever else holds what: `host` is its number, to notice that it has died already.
pub(crate) fn die_with(host: i32) -> bool {
    // SAFETY: numbers only.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0) == 0 && libc::getppid() == host }
}

/// Nothing of the host's stays open but the two files that the worker was started with.
pub(crate) fn close_others() {
    // SAFETY: closes what nobody in this program has opened.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}

/// No files, network, processes or names of the host's, no new privileges, no core files. Call it while there is one thread.
pub(crate) fn leave_the_world() -> io::Result<Confinement> {
    let mut held = Confinement::default();
    // SAFETY: numbers, and structs of ours, only.
    unsafe {
        let none = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 {
            return Err(io::Error::last_os_error());
        }
        // Best effort: a kernel or an administrator may not allow them. The filter stands without them.
        let spaces = libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS | libc::CLONE_NEWNS;
        held.namespaces = libc::unshare(libc::CLONE_NEWUSER | spaces) == 0 || libc::unshare(spaces) == 0;
        // That has taken it away; who may look at the host with a debugger may look at its workers.
        libc::prctl(libc::PR_SET_DUMPABLE, 1, 0, 0, 0);
        // Landlock: no file may be opened, by whatever name. All rights of its first version.
        let handled: u64 = (1 << 13) - 1;
        let ruleset = libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, 8usize, 0);
        if ruleset >= 0 {
            held.landlock = libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) == 0;
            libc::close(ruleset as i32);
        }
    }
    held.system_calls = true;
    Ok(held)
}
