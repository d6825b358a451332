//! Which handler answers which call. What is not here is denied.

pub(crate) mod context;
mod copy;
mod events;
mod files;
mod fork;
mod map;
mod message;
mod network;
mod paths;
mod process;
mod ready;
mod thread;
mod time;
pub(crate) mod transfer;
mod wait;
mod watch;

use ringfence_core::DomainRef;
use ringfence_core::EndCall;
use ringfence_core::policy::Syscall;

use crate::calls::context::{Context, Reply};
use crate::memory::Memory;
use crate::state::State;
use crate::sys::Outcome;

/// Answers one call.
pub(crate) fn dispatch(
    state: &State,
    domain: &DomainRef<'_>,
    memory: Memory<'_>,
    call: &Syscall,
) -> Outcome<Reply> {
    let cx = Context {
        state,
        domain,
        memory,
        args: call.args,
    };
    let number = call.number as libc::c_long;
    // The busiest first.
    let value = match number {
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_preadv
        | libc::SYS_pwritev => transfer::transfer(cx, number)?,
        libc::SYS_brk | libc::SYS_munmap | libc::SYS_mprotect | libc::SYS_mremap | libc::SYS_madvise => {
            return cx.memory_call(call);
        }
        libc::SYS_mmap => return map::map(cx, call),
        libc::SYS_exit | libc::SYS_exit_group => return Ok(Reply::End(EndCall::Exit(call.args[0] as i32))),
        libc::SYS_kill | libc::SYS_tkill | libc::SYS_tgkill => return process::kill(cx, number),
        _ => match other(cx, number) {
            Some(result) => result?,
            None => return Err(denied(number)),
        },
    };
    Ok(Reply::Value(value))
}

fn other(cx: Context<'_>, number: libc::c_long) -> Option<Outcome> {
    Some(match number {
        libc::SYS_close => cx.state.table.close(cx.args[0]),
        libc::SYS_lseek => files::seek(cx),
        libc::SYS_fsync | libc::SYS_fdatasync => files::sync(cx, number),
        libc::SYS_ftruncate => files::truncate(cx),
        libc::SYS_fallocate => files::allocate(cx),
        libc::SYS_fadvise64 => files::advise(cx),
        libc::SYS_fchmod => files::change_mode(cx),
        libc::SYS_flock => files::lock_whole(cx),
        libc::SYS_fstat => files::stat(cx),
        libc::SYS_getdents64 => files::list(cx),
        libc::SYS_fcntl => files::control(cx),
        libc::SYS_ioctl => files::device_control(cx),
        libc::SYS_dup | libc::SYS_dup2 | libc::SYS_dup3 => files::duplicate(cx, number),
        libc::SYS_pipe | libc::SYS_pipe2 => files::pipe(cx, number),
        libc::SYS_poll | libc::SYS_ppoll => ready::poll(cx, number),
        libc::SYS_select | libc::SYS_pselect6 => ready::select(cx, number),
        libc::SYS_sendfile => copy::send(cx),
        libc::SYS_copy_file_range => copy::range(cx),
        libc::SYS_eventfd | libc::SYS_eventfd2 => events::event(cx, number),
        libc::SYS_epoll_create | libc::SYS_epoll_create1 => events::create(cx, number),
        libc::SYS_epoll_ctl => events::change(cx),
        libc::SYS_epoll_wait | libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => events::wait(cx, number),
        libc::SYS_inotify_init | libc::SYS_inotify_init1 => watch::create(cx, number),
        libc::SYS_inotify_add_watch => watch::add(cx),
        libc::SYS_inotify_rm_watch => watch::remove(cx),
        libc::SYS_timerfd_create => events::timer(cx),
        libc::SYS_timerfd_settime | libc::SYS_timerfd_gettime => events::timer_time(cx, number),

        libc::SYS_open => paths::open(cx, libc::AT_FDCWD as u64, cx.args[0], cx.args[1], cx.args[2]),
        libc::SYS_creat => {
            let flags = (libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC) as u64;
            paths::open(cx, libc::AT_FDCWD as u64, cx.args[0], flags, cx.args[1])
        }
        libc::SYS_openat => paths::open(cx, cx.args[0], cx.args[1], cx.args[2], cx.args[3]),
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_newfstatat => paths::stat(cx, number),
        libc::SYS_statx => paths::statx(cx),
        libc::SYS_statfs => paths::file_system(cx),
        libc::SYS_fstatfs => files::file_system(cx),
        libc::SYS_access | libc::SYS_faccessat | libc::SYS_faccessat2 => paths::access(cx, number),
        libc::SYS_mkdir | libc::SYS_mkdirat => paths::make_directory(cx, number),
        libc::SYS_rmdir | libc::SYS_unlink | libc::SYS_unlinkat => paths::remove(cx, number),
        libc::SYS_rename | libc::SYS_renameat | libc::SYS_renameat2 => paths::rename(cx, number),
        libc::SYS_link | libc::SYS_linkat => paths::link(cx, number),
        libc::SYS_symlink | libc::SYS_symlinkat if cx.state.policy.symlinks => {
            paths::symbolic_link(cx, number)
        }
        libc::SYS_readlink | libc::SYS_readlinkat => paths::read_link(cx, number),
        libc::SYS_chmod | libc::SYS_fchmodat => paths::change_mode(cx, number),
        libc::SYS_utimensat => paths::set_times(cx),
        libc::SYS_chown | libc::SYS_lchown | libc::SYS_fchown | libc::SYS_fchownat => {
            paths::change_owner(cx, number)
        }
        libc::SYS_truncate => paths::truncate(cx),
        libc::SYS_chdir => paths::change_directory(cx),
        libc::SYS_fchdir => paths::change_directory_to(cx),
        libc::SYS_getcwd => paths::current_directory(cx),
        libc::SYS_umask => paths::umask(cx),

        libc::SYS_clock_gettime | libc::SYS_clock_getres | libc::SYS_gettimeofday | libc::SYS_time => {
            time::get(cx, number)
        }
        libc::SYS_times | libc::SYS_getrusage => time::usage(cx, number),
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => time::sleep(cx, number),

        libc::SYS_getrandom => process::random(cx),
        libc::SYS_getpid | libc::SYS_gettid | libc::SYS_set_tid_address => {
            Ok(cx.state.processes.own().into())
        }
        libc::SYS_getppid => Ok(cx.state.processes.parent().into()),
        libc::SYS_getpgrp => Ok(cx.state.processes.membership().0.into()),
        libc::SYS_getpgid | libc::SYS_getsid => process::membership(cx, number),
        libc::SYS_setpgid => process::set_group(cx),
        libc::SYS_setsid => cx.state.processes.new_session(),
        // It is nobody else already, and in no other group.
        libc::SYS_setuid | libc::SYS_setgid if cx.args[0] as u32 == 1000 => Ok(0),
        libc::SYS_getgroups => Ok(0),
        libc::SYS_getpriority => Ok(20), // nice 0
        libc::SYS_sched_getscheduler => Ok(0),
        libc::SYS_rt_sigpending => process::signals_pending(cx),
        libc::SYS_msync => map::sync(cx),
        // There is nothing locked to be unlocked.
        libc::SYS_munlock | libc::SYS_munlockall => Ok(0),
        libc::SYS_getuid | libc::SYS_geteuid | libc::SYS_getgid | libc::SYS_getegid => Ok(1000),
        libc::SYS_uname => process::name(cx),
        libc::SYS_sysinfo => process::system(cx),
        libc::SYS_sched_getaffinity => process::affinity(cx),
        libc::SYS_sched_yield => crate::sys::plain(crate::sys::Plain::Yield, [0; 4]),
        libc::SYS_getrlimit | libc::SYS_prlimit64 => process::limit(cx, number),
        libc::SYS_futex => process::futex(cx),
        libc::SYS_rt_sigaction => process::signal_action(cx),
        // There are no signals to block.
        libc::SYS_rt_sigprocmask | libc::SYS_set_robust_list | libc::SYS_sigaltstack => Ok(0),

        libc::SYS_clone if cx.args[0] == libc::SIGCHLD as u64 => fork::fork(cx),
        libc::SYS_clone => thread::create(cx),
        libc::SYS_fork | libc::SYS_vfork => fork::fork(cx),
        libc::SYS_wait4 => fork::wait(cx),
        libc::SYS_waitid => fork::wait_for(cx),

        libc::SYS_socket => network::socket(cx),
        libc::SYS_socketpair => network::pair(cx),
        libc::SYS_connect => network::connect(cx),
        libc::SYS_bind => network::bind(cx),
        libc::SYS_listen => network::listen(cx),
        libc::SYS_accept | libc::SYS_accept4 => network::accept(cx, number),
        libc::SYS_getsockname | libc::SYS_getpeername => network::own_name(cx, number),
        libc::SYS_sendto | libc::SYS_recvfrom => message::transfer(cx, number),
        libc::SYS_sendmsg | libc::SYS_recvmsg => message::message(cx, number),
        libc::SYS_shutdown => network::shutdown(cx),
        libc::SYS_getsockopt | libc::SYS_setsockopt => network::option(cx, number),
        _ => return None,
    })
}

/// The errno of a call that no policy can grant: what portable programs take for "not here" or "not for you".
fn denied(number: libc::c_long) -> i32 {
    match number {
        libc::SYS_ptrace
        | libc::SYS_mlock
        | libc::SYS_mlockall
        | libc::SYS_setpriority
        | libc::SYS_mount
        | libc::SYS_umount2
        | libc::SYS_chroot
        | libc::SYS_pivot_root
        | libc::SYS_setuid
        | libc::SYS_setgid
        | libc::SYS_setreuid
        | libc::SYS_setregid
        | libc::SYS_setresuid
        | libc::SYS_setresgid
        | libc::SYS_setgroups
        | libc::SYS_sethostname
        | libc::SYS_settimeofday
        | libc::SYS_clock_settime
        | libc::SYS_prctl
        | libc::SYS_setrlimit
        | libc::SYS_mknod
        | libc::SYS_mknodat
        | libc::SYS_symlink
        | libc::SYS_symlinkat => libc::EPERM,
        libc::SYS_execve | libc::SYS_execveat => libc::EACCES,
        libc::SYS_clone3 => libc::EAGAIN,
        _ => libc::ENOSYS,
    }
}
