//! System calls as text, the way strace prints them.

use ringfence_core::EndCall;
use ringfence_core::policy::Syscall;

use crate::memory::Memory;
use crate::names::{self, Names};

mod structs;
mod text;

use text::{address, anything, data, quoted};

/// How an argument is shown.
#[derive(Clone, Copy)]
enum As {
    Number,
    Hex,
    Octal,
    Descriptor,
    /// A string of the domain's.
    Text,
    /// Bytes of the domain's; the next argument is their number.
    Data,
    /// Flags, or one of several numbers.
    Names(&'static Names),
    /// An address.
    Ptr,
    /// What the call has filled: bytes, as many as it gave; an `iovec` of them; a `stat`, `timespec`, `timeval`, two descriptors.
    Filled,
    FilledVector,
    Status,
    TimeTold,
    DayTime,
    Pair,
    /// An `iovec` of data, as many as the next argument says; a `timespec`; an address, as long as the next argument says.
    Vector,
    Time,
    Socket,
    /// `pollfd`s, as many as the next argument says.
    Polled,
    /// Flags of `open`: without a file to be made the mode behind them is not passed.
    Opening,
}

use As::{
    Data, DayTime, Descriptor as Fd, Filled, FilledVector, Hex, Number as Num, Octal, Opening, Pair, Polled,
    Ptr, Socket, Status, Text, Time, TimeTold, Vector,
};

macro_rules! named {
    ($($short:ident = $table:ident),*) => { $(pub(super) const $short: As = As::Names(&names::$table);)* };
}
#[allow(non_upper_case_globals)] // beside the variants, in the table
mod kinds {
    use crate::names;
    use crate::trace::As;
    named! {
        Created = CREATED, Protection = PROTECTION, Map = MAP, Whence = WHENCE, Access = ACCESS, Control = CONTROL,
        At = AT, Remove = REMOVE, Check = CHECK, Move = MOVE, Advice = ADVICE, Lock = LOCK, Family = FAMILY,
        Kind = SOCKET, Shutdown = SHUTDOWN, Clock = CLOCK, Random = RANDOM, Request = REQUEST, Wakes = WAKES, Limit = LIMIT,
        Operation = OPERATION
    }
}
use kinds::*;

macro_rules! table {
    ($($call:ident $name:literal [$($kind:ident),*];)*) => {
        const TABLE: &[(libc::c_long, &str, &[As])] = &[$((libc::$call, $name, &[$($kind),*]),)*];
    };
}

table! {
    SYS_read "read" [Fd, Filled, Num];
    SYS_write "write" [Fd, Data, Num];
    SYS_open "open" [Text, Opening, Octal];
    SYS_close "close" [Fd];
    SYS_stat "stat" [Text, Status];
    SYS_fstat "fstat" [Fd, Status];
    SYS_lstat "lstat" [Text, Status];
    SYS_poll "poll" [Polled, Num, Num];
    SYS_lseek "lseek" [Fd, Num, Whence];
    SYS_mmap "mmap" [Ptr, Num, Protection, Map, Fd, Num];
    SYS_mprotect "mprotect" [Hex, Num, Protection];
    SYS_munmap "munmap" [Hex, Num];
    SYS_brk "brk" [Ptr];
    SYS_rt_sigaction "rt_sigaction" [Num, Ptr, Ptr];
    SYS_rt_sigprocmask "rt_sigprocmask" [Num, Ptr, Ptr];
    SYS_ioctl "ioctl" [Fd, Request, Ptr];
    SYS_pread64 "pread64" [Fd, Filled, Num, Num];
    SYS_pwrite64 "pwrite64" [Fd, Data, Num, Num];
    SYS_readv "readv" [Fd, FilledVector, Num];
    SYS_writev "writev" [Fd, Vector, Num];
    SYS_access "access" [Text, Access];
    SYS_pipe "pipe" [Pair];
    SYS_select "select" [Num, Ptr, Ptr, Ptr, Ptr];
    SYS_sched_yield "sched_yield" [];
    SYS_mremap "mremap" [Hex, Num, Num, Move];
    SYS_madvise "madvise" [Hex, Num, Advice];
    SYS_dup "dup" [Fd];
    SYS_dup2 "dup2" [Fd, Fd];
    SYS_nanosleep "nanosleep" [Time, Ptr];
    SYS_getpid "getpid" [];
    SYS_socket "socket" [Family, Kind, Num];
    SYS_connect "connect" [Fd, Socket, Num];
    SYS_sendto "sendto" [Fd, Data, Num, Hex, Ptr, Num];
    SYS_recvfrom "recvfrom" [Fd, Filled, Num, Hex, Ptr, Ptr];
    SYS_sendmsg "sendmsg" [Fd, Ptr, Hex];
    SYS_recvmsg "recvmsg" [Fd, Ptr, Hex];
    SYS_getsockname "getsockname" [Fd, Ptr, Ptr];
    SYS_getpeername "getpeername" [Fd, Ptr, Ptr];
    SYS_msync "msync" [Hex, Num, Hex];
    SYS_socketpair "socketpair" [Num, Kind, Num, Pair];
    SYS_epoll_pwait2 "epoll_pwait2" [Fd, Ptr, Num, Time, Ptr, Num];
    SYS_shutdown "shutdown" [Fd, Shutdown];
    SYS_statfs "statfs" [Text, Ptr];
    SYS_fstatfs "fstatfs" [Fd, Ptr];
    SYS_bind "bind" [Fd, Socket, Num];
    SYS_listen "listen" [Fd, Num];
    SYS_inotify_init "inotify_init" []; SYS_inotify_init1 "inotify_init1" [Num];
    SYS_inotify_add_watch "inotify_add_watch" [Fd, Text, Num]; SYS_inotify_rm_watch "inotify_rm_watch" [Fd, Num];
    SYS_accept "accept" [Fd, Ptr, Ptr]; SYS_accept4 "accept4" [Fd, Ptr, Ptr, Num];
    SYS_getsockopt "getsockopt" [Fd, Num, Num, Ptr, Ptr];
    SYS_setsockopt "setsockopt" [Fd, Num, Num, Ptr, Num];
    SYS_clone "clone" [Hex, Ptr, Ptr, Ptr, Ptr];
    SYS_fork "fork" [];
    SYS_vfork "vfork" [];
    SYS_execve "execve" [Text, Ptr, Ptr];
    SYS_exit "exit" [Num];
    SYS_waitid "waitid" [Num, Num, Ptr, Num, Ptr];
    SYS_wait4 "wait4" [Num, Ptr, Num, Ptr];
    SYS_kill "kill" [Num, Num];
    SYS_uname "uname" [Ptr];
    SYS_fcntl "fcntl" [Fd, Control, Hex];
    SYS_flock "flock" [Fd, Lock];
    SYS_fsync "fsync" [Fd];
    SYS_fdatasync "fdatasync" [Fd];
    SYS_truncate "truncate" [Text, Num];
    SYS_ftruncate "ftruncate" [Fd, Num];
    SYS_getcwd "getcwd" [Filled, Num];
    SYS_chdir "chdir" [Text];
    SYS_fchdir "fchdir" [Fd];
    SYS_rename "rename" [Text, Text];
    SYS_mkdir "mkdir" [Text, Octal];
    SYS_rmdir "rmdir" [Text];
    SYS_creat "creat" [Text, Octal];
    SYS_link "link" [Text, Text];
    SYS_unlink "unlink" [Text];
    SYS_symlink "symlink" [Text, Text];
    SYS_readlink "readlink" [Text, Filled, Num];
    SYS_chmod "chmod" [Text, Octal];
    SYS_fchmod "fchmod" [Fd, Octal];
    SYS_umask "umask" [Octal];
    SYS_gettimeofday "gettimeofday" [DayTime, Ptr];
    SYS_getrlimit "getrlimit" [Limit, Ptr];
    SYS_getrusage "getrusage" [Num, Ptr];
    SYS_sysinfo "sysinfo" [Ptr];
    SYS_times "times" [Ptr];
    SYS_ptrace "ptrace" [Num, Num, Hex, Hex];
    SYS_getuid "getuid" [];
    SYS_getgid "getgid" [];
    SYS_geteuid "geteuid" [];
    SYS_getegid "getegid" [];
    SYS_getppid "getppid" [];
    SYS_prctl "prctl" [Num, Hex, Hex, Hex, Hex];
    SYS_gettid "gettid" [];
    SYS_tkill "tkill" [Num, Num];
    SYS_time "time" [Ptr];
    SYS_futex "futex" [Ptr, Wakes, Num, Ptr];
    SYS_sched_getaffinity "sched_getaffinity" [Num, Num, Ptr];
    SYS_getdents64 "getdents64" [Fd, Ptr, Num];
    SYS_set_tid_address "set_tid_address" [Ptr];
    SYS_fadvise64 "fadvise64" [Fd, Num, Num, Num];
    SYS_clock_gettime "clock_gettime" [Clock, TimeTold];
    SYS_clock_getres "clock_getres" [Clock, TimeTold];
    SYS_clock_nanosleep "clock_nanosleep" [Clock, Num, Time, Ptr];
    SYS_sendfile "sendfile" [Fd, Fd, Ptr, Num];
    SYS_copy_file_range "copy_file_range" [Fd, Ptr, Fd, Ptr, Num, Hex];
    SYS_epoll_create "epoll_create" [Num];
    SYS_epoll_wait "epoll_wait" [Fd, Ptr, Num, Num];
    SYS_epoll_ctl "epoll_ctl" [Fd, Operation, Fd, Ptr];
    SYS_epoll_pwait "epoll_pwait" [Fd, Ptr, Num, Num, Ptr, Num];
    SYS_epoll_create1 "epoll_create1" [Created];
    SYS_eventfd "eventfd" [Num];
    SYS_eventfd2 "eventfd2" [Num, Created];
    SYS_timerfd_create "timerfd_create" [Clock, Created];
    SYS_timerfd_settime "timerfd_settime" [Fd, Num, Ptr, Ptr];
    SYS_timerfd_gettime "timerfd_gettime" [Fd, Ptr];
    SYS_exit_group "exit_group" [Num];
    SYS_tgkill "tgkill" [Num, Num, Num];
    SYS_openat "openat" [Fd, Text, Opening, Octal];
    SYS_mkdirat "mkdirat" [Fd, Text, Octal];
    SYS_newfstatat "newfstatat" [Fd, Text, Status, At];
    SYS_pselect6 "pselect6" [Num, Ptr, Ptr, Ptr, Ptr, Ptr];
    SYS_ppoll "ppoll" [Polled, Num, Ptr, Ptr];
    SYS_unlinkat "unlinkat" [Fd, Text, Remove];
    SYS_renameat "renameat" [Fd, Text, Fd, Text];
    SYS_linkat "linkat" [Fd, Text, Fd, Text, At];
    SYS_readlinkat "readlinkat" [Fd, Text, Filled, Num];
    SYS_fchmodat "fchmodat" [Fd, Text, Octal];
    SYS_faccessat "faccessat" [Fd, Text, Access];
    SYS_utimensat "utimensat" [Fd, Text, Ptr, At];
    SYS_fallocate "fallocate" [Fd, Hex, Num, Num];
    SYS_dup3 "dup3" [Fd, Fd, Created];
    SYS_pipe2 "pipe2" [Pair, Created];
    SYS_preadv "preadv" [Fd, FilledVector, Num, Num];
    SYS_pwritev "pwritev" [Fd, Vector, Num, Num];
    SYS_prlimit64 "prlimit64" [Num, Limit, Ptr, Ptr];
    SYS_renameat2 "renameat2" [Fd, Text, Fd, Text, Hex];
    SYS_getrandom "getrandom" [Filled, Num, Random];
    SYS_statx "statx" [Fd, Text, At, Hex, Ptr];
    SYS_faccessat2 "faccessat2" [Fd, Text, Access, Check];
}

macro_rules! others {
    ($($call:ident $name:literal;)*) => {
        const OTHERS: &[(libc::c_long, &str)] = &[$((libc::$call, $name)),*];
    };
}

// The name only.
others! {
    SYS_signalfd "signalfd"; SYS_signalfd4 "signalfd4";
    SYS_splice "splice";
    SYS_tee "tee"; SYS_memfd_create "memfd_create";
    SYS_sendmmsg "sendmmsg"; SYS_recvmmsg "recvmmsg";
    SYS_mlock "mlock"; SYS_munlock "munlock"; SYS_mlockall "mlockall"; SYS_munlockall "munlockall";
    SYS_mincore "mincore"; SYS_setuid "setuid"; SYS_setgid "setgid"; SYS_setreuid "setreuid"; SYS_setregid "setregid";
    SYS_setresuid "setresuid"; SYS_setresgid "setresgid"; SYS_getresuid "getresuid"; SYS_getresgid "getresgid";
    SYS_getgroups "getgroups"; SYS_setgroups "setgroups"; SYS_setpgid "setpgid"; SYS_getpgid "getpgid";
    SYS_getpgrp "getpgrp"; SYS_getsid "getsid"; SYS_setsid "setsid"; SYS_setrlimit "setrlimit";
    SYS_getpriority "getpriority"; SYS_setpriority "setpriority"; SYS_sched_setaffinity "sched_setaffinity";
    SYS_sched_getscheduler "sched_getscheduler"; SYS_sched_setscheduler "sched_setscheduler";
    SYS_sched_getparam "sched_getparam"; SYS_setitimer "setitimer"; SYS_getitimer "getitimer"; SYS_alarm "alarm";
    SYS_pause "pause"; SYS_timer_create "timer_create"; SYS_rt_sigpending "rt_sigpending";
    SYS_rt_sigtimedwait "rt_sigtimedwait"; SYS_rt_sigsuspend "rt_sigsuspend"; SYS_sigaltstack "sigaltstack";
    SYS_set_robust_list "set_robust_list"; SYS_chown "chown"; SYS_fchown "fchown"; SYS_lchown "lchown";
    SYS_fchownat "fchownat"; SYS_mknod "mknod"; SYS_mknodat "mknodat"; SYS_symlinkat "symlinkat"; SYS_chroot "chroot";
    SYS_mount "mount"; SYS_umount2 "umount2"; SYS_clone3 "clone3"; SYS_execveat "execveat";
    SYS_syncfs "syncfs"; SYS_sync "sync"; SYS_sync_file_range "sync_file_range"; SYS_readahead "readahead";
    SYS_preadv2 "preadv2"; SYS_pwritev2 "pwritev2"; SYS_close_range "close_range"; SYS_openat2 "openat2";
    SYS_getxattr "getxattr"; SYS_setxattr "setxattr"; SYS_listxattr "listxattr"; SYS_fgetxattr "fgetxattr";
    SYS_fsetxattr "fsetxattr"; SYS_shmget "shmget"; SYS_shmat "shmat"; SYS_shmctl "shmctl"; SYS_semget "semget";
    SYS_semop "semop"; SYS_msgget "msgget"; SYS_msgsnd "msgsnd"; SYS_msgrcv "msgrcv"; SYS_personality "personality";
    SYS_arch_prctl "arch_prctl"; SYS_io_uring_setup "io_uring_setup"; SYS_bpf "bpf";
    SYS_perf_event_open "perf_event_open"; SYS_process_vm_readv "process_vm_readv";
    SYS_process_vm_writev "process_vm_writev"; SYS_userfaultfd "userfaultfd"; SYS_seccomp "seccomp";
    SYS_unshare "unshare"; SYS_setns "setns"; SYS_membarrier "membarrier"; SYS_rseq "rseq";
    SYS_clock_settime "clock_settime"; SYS_settimeofday "settimeofday"; SYS_sethostname "sethostname";
    SYS_reboot "reboot"; SYS_kcmp "kcmp";
}

fn find(number: u64) -> Option<&'static (libc::c_long, &'static str, &'static [As])> {
    TABLE.iter().find(|(n, ..)| *n as u64 == number)
}

/// The name of a call, if it is one that programs commonly make.
#[must_use]
pub fn name(number: u64) -> Option<&'static str> {
    let other = || OTHERS.iter().find(|(n, _)| *n as u64 == number);
    find(number).map_or_else(|| other().map(|(_, name)| *name), |(_, name, _)| Some(*name))
}

/// A call whose arguments have been looked at before it is made; what it fills is looked at afterwards.
pub(crate) struct Begun {
    name: String,
    /// `None`: to be shown at the end.
    shown: Vec<Option<String>>,
    kinds: &'static [As],
}

impl Begun {
    pub(crate) fn new(memory: Memory<'_>, call: &Syscall) -> Begun {
        let Some((_, name, kinds)) = find(call.number) else {
            let args: Vec<_> = call.args.iter().map(|a| Some(anything(memory, *a))).collect();
            return Begun {
                name: OTHERS.iter().find(|(n, _)| *n as u64 == call.number).map_or_else(
                    || format!("syscall_{:#x}", call.number),
                    |(_, name)| (*name).to_owned(),
                ),
                shown: args,
                kinds: &[],
            };
        };
        // A mode is passed only with these.
        let makes = |flags: u64| flags as i32 & (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) != 0;
        let passed = kinds
            .iter()
            .position(|kind| matches!(kind, Opening))
            .filter(|at| !makes(call.args[*at]))
            .map_or(kinds.len(), |at| at + 1);
        let one = |(i, kind): (usize, &As)| {
            let value = call.args[i];
            let next = call.args.get(i + 1).copied().unwrap_or(0);
            Some(match kind {
                Num => (value as i64).to_string(),
                Octal => format!("0{value:o}"),
                Opening => opening(value),
                As::Names(names) => names.show(value),
                Fd if value as i32 == libc::AT_FDCWD => "AT_FDCWD".to_owned(),
                Fd => (value as i32).to_string(),
                Ptr => address(value),
                Hex if value == 0 => "0".to_owned(),
                Hex => anything(memory, value),
                Text => match memory.path(value) {
                    Ok(bytes) => quoted(&bytes, false),
                    Err(_) => address(value),
                },
                Data => data(memory, value, next),
                Vector => structs::vector(memory, value, next, u64::MAX),
                Time => structs::time(memory, value, "nsec"),
                Socket => structs::socket_address(memory, value, next),
                Polled => structs::polled(memory, value, next, false),
                Filled | FilledVector | Status | TimeTold | DayTime | Pair => return None,
            })
        };
        Begun {
            name: (*name).to_owned(),
            shown: kinds[..passed].iter().enumerate().map(one).collect(),
            kinds,
        }
    }

    /// The whole line.
    pub(crate) fn end(self, memory: Memory<'_>, call: &Syscall, answer: &Result<i64, EndCall>) -> String {
        let gave = match answer {
            Ok(value) if *value >= 0 => Some(*value as u64),
            _ => None,
        };
        let mut after = String::new();
        let shown: Vec<String> = self
            .shown
            .into_iter()
            .enumerate()
            .map(|(i, shown)| {
                let value = call.args[i];
                let next = call.args.get(i + 1).copied().unwrap_or(0);
                if let (Some(Polled), Some(1..)) = (self.kinds.get(i), gave) {
                    after = format!(" ({})", structs::polled(memory, value, next, true));
                }
                shown.unwrap_or_else(|| match (gave, self.kinds.get(i)) {
                    (Some(n), Some(Filled)) => data(memory, value, n.min(next)),
                    (Some(n), Some(FilledVector)) => structs::vector(memory, value, next, n),
                    (Some(_), Some(Status)) => structs::status(memory, value),
                    (Some(_), Some(TimeTold)) => structs::time(memory, value, "nsec"),
                    (Some(_), Some(DayTime)) => structs::time(memory, value, "usec"),
                    (Some(_), Some(Pair)) => structs::pair(memory, value),
                    _ => address(value),
                })
            })
            .collect();
        format!(
            "{}({}) = {}{after}",
            self.name,
            shown.join(", "),
            told(call.number, answer)
        )
    }
}

/// The kernel's `O_LARGEFILE`, which the system's own C library has as 0.
const LARGE: u64 = 0o100_000;

fn opening(flags: u64) -> String {
    let large = if flags & LARGE == 0 { "" } else { "|O_LARGEFILE" };
    names::OPEN.show(flags & !LARGE) + large
}

/// What the call gave.
fn told(number: u64, answer: &Result<i64, EndCall>) -> String {
    match answer {
        Ok(value @ -4095..=-1) => {
            let error = std::io::Error::from_raw_os_error(-value as i32).to_string();
            let text = error.split(" (os error").next().unwrap_or("");
            format!("-1 {} ({text})", errno_name(-value as i32))
        }
        Ok(value)
            if matches!(
                number as libc::c_long,
                libc::SYS_mmap | libc::SYS_brk | libc::SYS_mremap
            ) =>
        {
            address(*value as u64)
        }
        Ok(value) => value.to_string(),
        Err(EndCall::OutOfMemory) => "? (memory limit)".to_owned(),
        Err(_) => "?".to_owned(),
    }
}

macro_rules! errors {
    ($($name:ident)*) => {
        const ERRORS: &[(i32, &str)] = &[$((libc::$name, stringify!($name))),*];
    };
}
errors! {
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG ENOEXEC EBADF ECHILD EAGAIN ENOMEM EACCES EFAULT ENOTBLK EBUSY EEXIST
    EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE EDOM
    ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS ENOTEMPTY ELOOP ENOMSG EIDRM ENODATA ETIME EPROTO EBADMSG EOVERFLOW
    EILSEQ EUSERS ENOTSOCK EDESTADDRREQ EMSGSIZE EPROTOTYPE ENOPROTOOPT EPROTONOSUPPORT ESOCKTNOSUPPORT EOPNOTSUPP
    EPFNOSUPPORT EAFNOSUPPORT EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ENETRESET ECONNABORTED ECONNRESET
    ENOBUFS EISCONN ENOTCONN ESHUTDOWN ETOOMANYREFS ETIMEDOUT ECONNREFUSED EHOSTDOWN EHOSTUNREACH EALREADY
    EINPROGRESS ESTALE EDQUOT ECANCELED EOWNERDEAD ENOTRECOVERABLE
}

fn errno_name(errno: i32) -> String {
    ERRORS
        .iter()
        .find(|(number, _)| *number == errno)
        .map_or_else(|| format!("E{errno}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        assert_eq!(quoted(b"a\n\"\x01", true), "\"a\\n\\\"\\1\"...");
        assert_eq!(told(0, &Ok(-2)), "-1 ENOENT (No such file or directory)");
        assert_eq!(told(0, &Ok(5)), "5");
        assert_eq!(name(0), Some("read"));
        assert_eq!(name(9999), None);
    }
}
