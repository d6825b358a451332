//! A filter for system calls, for processes that run what may well escape: with a hole planted in the verifier, a program
//! can get to a real `syscall` with anything in its registers.

use std::io;

/// System calls that the runtime and the attack itself need.
const ALLOWED: &[i64] = &[
    libc::SYS_mmap,
    libc::SYS_munmap,
    libc::SYS_mprotect,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_fcntl,
    libc::SYS_ioctl,
    libc::SYS_read,
    libc::SYS_pread64,
    libc::SYS_close,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_futex,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sigaltstack,
    libc::SYS_rt_tgsigqueueinfo,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_getrandom,
    libc::SYS_clone3,
    libc::SYS_set_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_prctl,
    libc::SYS_gettid,
    libc::SYS_getpid,
    libc::SYS_getuid,
    libc::SYS_sched_yield,
    libc::SYS_sched_getaffinity,
    libc::SYS_arch_prctl,
    libc::SYS_personality,
    libc::SYS_restart_syscall,
];

/// From here on any other system call, opening for writing, writing to anything but the standard streams, and `pwrite64` to
/// one of these end the process with `SIGSYS`.
///
/// # Errors
///
/// What the kernel says to the filter.
pub fn enter() -> io::Result<()> {
    let step = |code: u32, k: u32, yes: u8, no: u8| libc::sock_filter {
        code: code as u16,
        jt: yes,
        jf: no,
        k,
    };
    let load = |at: u32| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, at, 0, 0);
    let equal = |k: u32, yes: u8, no: u8| step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, k, yes, no);
    let end = |k: u32| step(libc::BPF_RET | libc::BPF_K, k, 0, 0);
    // `struct seccomp_data`: number, architecture, instruction pointer, six arguments.
    let argument = |n: u32| 16 + 8 * n;
    let mut filter = vec![
        load(4),
        equal(0xC000_003E, 1, 0),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        load(0),
        // write to 0, 1 or 2
        equal(libc::SYS_write as u32, 0, 4),
        load(argument(0)),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 2, 0, 1),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        end(libc::SECCOMP_RET_ALLOW),
        // pwrite64 to memory files, with which the runtime fills its own: nothing else beyond 2 is open for writing
        equal(libc::SYS_pwrite64 as u32, 0, 4),
        load(argument(0)),
        step(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K, 2, 1, 0),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        end(libc::SECCOMP_RET_ALLOW),
        // openat for reading
        equal(libc::SYS_openat as u32, 0, 4),
        load(argument(2)),
        step(
            libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K,
            (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC) as u32,
            0,
            1,
        ),
        end(libc::SECCOMP_RET_KILL_PROCESS),
        end(libc::SECCOMP_RET_ALLOW),
    ];
    for call in ALLOWED {
        filter.push(equal(*call as u32, 0, 1));
        filter.push(end(libc::SECCOMP_RET_ALLOW));
    }
    filter.push(end(libc::SECCOMP_RET_KILL_PROCESS));
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program and its steps are ours.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const program,
            ) == 0
    };
    if done {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
