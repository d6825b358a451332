//! System calls as text, the way strace prints them.

use ringfence_runtime::policy::{Answer, Syscall};

use crate::memory::Memory;
use crate::names::{self, Names};

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
    /// Flags of `open`: without a file to be made the mode behind them is not passed.
    Opening,
}

use As::{Data, Descriptor as Fd, Hex, Number as Num, Octal, Opening, Text};

macro_rules! named {
    ($($short:ident = $table:ident),*) => { $(pub(super) const $short: As = As::Names(&names::$table);)* };
}
#[allow(non_upper_case_globals)] // beside the variants, in the table
mod kinds {
    use super::As;
    use crate::names;
    named! {
        Created = CREATED, Protection = PROTECTION, Map = MAP, Whence = WHENCE, Access = ACCESS, Control = CONTROL,
        At = AT, Remove = REMOVE, Check = CHECK, Move = MOVE, Advice = ADVICE, Lock = LOCK, Family = FAMILY,
        Socket = SOCKET, Shutdown = SHUTDOWN, Clock = CLOCK, Random = RANDOM
    }
}
use kinds::*;

macro_rules! table {
    ($($call:ident $name:literal [$($kind:ident),*];)*) => {
        const TABLE: &[(libc::c_long, &str, &[As])] = &[$((libc::$call, $name, &[$($kind),*]),)*];
    };
}

table! {
    SYS_read "read" [Fd, Hex, Num];
    SYS_write "write" [Fd, Data, Num];
    SYS_open "open" [Text, Opening, Octal];
    SYS_close "close" [Fd];
    SYS_stat "stat" [Text, Hex];
    SYS_fstat "fstat" [Fd, Hex];
    SYS_lstat "lstat" [Text, Hex];
    SYS_poll "poll" [Hex, Num, Num];
    SYS_lseek "lseek" [Fd, Num, Whence];
    SYS_mmap "mmap" [Hex, Num, Protection, Map, Fd, Num];
    SYS_mprotect "mprotect" [Hex, Num, Protection];
    SYS_munmap "munmap" [Hex, Num];
    SYS_brk "brk" [Hex];
    SYS_rt_sigaction "rt_sigaction" [Num, Hex, Hex];
    SYS_rt_sigprocmask "rt_sigprocmask" [Num, Hex, Hex];
    SYS_ioctl "ioctl" [Fd, Hex, Hex];
    SYS_pread64 "pread64" [Fd, Hex, Num, Num];
    SYS_pwrite64 "pwrite64" [Fd, Data, Num, Num];
    SYS_readv "readv" [Fd, Hex, Num];
    SYS_writev "writev" [Fd, Hex, Num];
    SYS_access "access" [Text, Access];
    SYS_pipe "pipe" [Hex];
    SYS_select "select" [Num, Hex, Hex, Hex, Hex];
    SYS_sched_yield "sched_yield" [];
    SYS_mremap "mremap" [Hex, Num, Num, Move];
    SYS_madvise "madvise" [Hex, Num, Advice];
    SYS_dup "dup" [Fd];
    SYS_dup2 "dup2" [Fd, Fd];
    SYS_nanosleep "nanosleep" [Hex, Hex];
    SYS_getpid "getpid" [];
    SYS_socket "socket" [Family, Socket, Num];
    SYS_connect "connect" [Fd, Hex, Num];
    SYS_sendto "sendto" [Fd, Data, Num, Hex, Hex, Num];
    SYS_recvfrom "recvfrom" [Fd, Hex, Num, Hex, Hex, Hex];
    SYS_shutdown "shutdown" [Fd, Shutdown];
    SYS_bind "bind" [Fd, Hex, Num];
    SYS_listen "listen" [Fd, Num];
    SYS_getsockopt "getsockopt" [Fd, Num, Num, Hex, Hex];
    SYS_setsockopt "setsockopt" [Fd, Num, Num, Hex, Num];
    SYS_clone "clone" [Hex, Hex, Hex, Hex, Hex];
    SYS_fork "fork" [];
    SYS_vfork "vfork" [];
    SYS_execve "execve" [Text, Hex, Hex];
    SYS_exit "exit" [Num];
    SYS_wait4 "wait4" [Num, Hex, Hex, Hex];
    SYS_kill "kill" [Num, Num];
    SYS_uname "uname" [Hex];
    SYS_fcntl "fcntl" [Fd, Control, Hex];
    SYS_flock "flock" [Fd, Lock];
    SYS_fsync "fsync" [Fd];
    SYS_fdatasync "fdatasync" [Fd];
    SYS_truncate "truncate" [Text, Num];
    SYS_ftruncate "ftruncate" [Fd, Num];
    SYS_getcwd "getcwd" [Hex, Num];
    SYS_chdir "chdir" [Text];
    SYS_fchdir "fchdir" [Fd];
    SYS_rename "rename" [Text, Text];
    SYS_mkdir "mkdir" [Text, Octal];
    SYS_rmdir "rmdir" [Text];
    SYS_creat "creat" [Text, Octal];
    SYS_link "link" [Text, Text];
    SYS_unlink "unlink" [Text];
    SYS_symlink "symlink" [Text, Text];
    SYS_readlink "readlink" [Text, Hex, Num];
    SYS_chmod "chmod" [Text, Octal];
    SYS_fchmod "fchmod" [Fd, Octal];
    SYS_umask "umask" [Octal];
    SYS_gettimeofday "gettimeofday" [Hex, Hex];
    SYS_getrlimit "getrlimit" [Num, Hex];
    SYS_getrusage "getrusage" [Num, Hex];
    SYS_sysinfo "sysinfo" [Hex];
    SYS_times "times" [Hex];
    SYS_ptrace "ptrace" [Num, Num, Hex, Hex];
    SYS_getuid "getuid" [];
    SYS_getgid "getgid" [];
    SYS_geteuid "geteuid" [];
    SYS_getegid "getegid" [];
    SYS_getppid "getppid" [];
    SYS_prctl "prctl" [Num, Hex, Hex, Hex, Hex];
    SYS_gettid "gettid" [];
    SYS_tkill "tkill" [Num, Num];
    SYS_time "time" [Hex];
    SYS_futex "futex" [Hex, Hex, Num, Hex];
    SYS_sched_getaffinity "sched_getaffinity" [Num, Num, Hex];
    SYS_getdents64 "getdents64" [Fd, Hex, Num];
    SYS_set_tid_address "set_tid_address" [Hex];
    SYS_fadvise64 "fadvise64" [Fd, Num, Num, Num];
    SYS_clock_gettime "clock_gettime" [Clock, Hex];
    SYS_clock_getres "clock_getres" [Clock, Hex];
    SYS_clock_nanosleep "clock_nanosleep" [Clock, Num, Hex, Hex];
    SYS_exit_group "exit_group" [Num];
    SYS_tgkill "tgkill" [Num, Num, Num];
    SYS_openat "openat" [Fd, Text, Opening, Octal];
    SYS_mkdirat "mkdirat" [Fd, Text, Octal];
    SYS_newfstatat "newfstatat" [Fd, Text, Hex, At];
    SYS_pselect6 "pselect6" [Num, Hex, Hex, Hex, Hex, Hex];
    SYS_ppoll "ppoll" [Hex, Num, Hex, Hex];
    SYS_unlinkat "unlinkat" [Fd, Text, Remove];
    SYS_renameat "renameat" [Fd, Text, Fd, Text];
    SYS_linkat "linkat" [Fd, Text, Fd, Text, At];
    SYS_readlinkat "readlinkat" [Fd, Text, Hex, Num];
    SYS_fchmodat "fchmodat" [Fd, Text, Octal];
    SYS_faccessat "faccessat" [Fd, Text, Access];
    SYS_utimensat "utimensat" [Fd, Text, Hex, At];
    SYS_fallocate "fallocate" [Fd, Hex, Num, Num];
    SYS_dup3 "dup3" [Fd, Fd, Created];
    SYS_pipe2 "pipe2" [Hex, Created];
    SYS_preadv "preadv" [Fd, Hex, Num, Num];
    SYS_pwritev "pwritev" [Fd, Hex, Num, Num];
    SYS_prlimit64 "prlimit64" [Num, Num, Hex, Hex];
    SYS_renameat2 "renameat2" [Fd, Text, Fd, Text, Hex];
    SYS_getrandom "getrandom" [Hex, Num, Random];
    SYS_statx "statx" [Fd, Text, At, Hex, Hex];
    SYS_faccessat2 "faccessat2" [Fd, Text, Access, Check];
}

fn find(number: u64) -> Option<&'static (libc::c_long, &'static str, &'static [As])> {
    TABLE.iter().find(|(n, ..)| *n as u64 == number)
}

/// The name of a call, if it is one that programs commonly make.
#[must_use]
pub fn name(number: u64) -> Option<&'static str> {
    find(number).map(|(_, name, _)| *name)
}

/// Most bytes of a string that are shown, as in strace.
const SHOWN: usize = 32;

fn quoted(bytes: &[u8], more: bool) -> String {
    let mut text = String::from("\"");
    for b in bytes {
        match b {
            b'\n' => text.push_str("\\n"),
            b'\t' => text.push_str("\\t"),
            b'\r' => text.push_str("\\r"),
            b'"' | b'\\' => {
                text.push('\\');
                text.push(char::from(*b));
            }
            0x20..0x7F => text.push(char::from(*b)),
            _ => text.push_str(&format!("\\{b:o}")),
        }
    }
    text.push('"');
    if more {
        text.push_str("...");
    }
    text
}

/// The call with its arguments, before it is made.
pub(crate) fn call(memory: Memory<'_>, call: &Syscall) -> String {
    let Some((_, name, kinds)) = find(call.number) else {
        return format!("syscall_{}({:#x}, …)", call.number, call.args[0]);
    };
    // A mode is passed only with these.
    let makes = |flags: u64| flags as i32 & (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY) != 0;
    let passed = kinds
        .iter()
        .position(|kind| matches!(kind, Opening))
        .filter(|at| !makes(call.args[*at]))
        .map_or(kinds.len(), |at| at + 1);
    let shown: Vec<String> = kinds[..passed]
        .iter()
        .enumerate()
        .map(|(i, kind)| {
            let value = call.args[i];
            match kind {
                Num => (value as i64).to_string(),
                Octal => format!("0{value:o}"),
                Opening => names::OPEN.show(value),
                As::Names(names) => names.show(value),
                Fd if value as i32 == libc::AT_FDCWD => "AT_FDCWD".to_owned(),
                Fd => (value as i32).to_string(),
                Hex if value == 0 => "0".to_owned(),
                Hex => format!("{value:#x}"),
                Text => match memory.path(value) {
                    Ok(bytes) => quoted(&bytes, false),
                    Err(_) => format!("{value:#x}"),
                },
                Data => {
                    let len = call.args.get(i + 1).copied().unwrap_or(0);
                    let n = (len as usize).min(SHOWN);
                    memory
                        .get_bytes(value, n)
                        .map_or_else(|_| format!("{value:#x}"), |b| quoted(&b, len as usize > n))
                }
            }
        })
        .collect();
    format!("{name}({})", shown.join(", "))
}

/// What the call gave.
pub(crate) fn answer(answer: &Answer) -> String {
    match answer {
        Answer::Return(value @ -4095..=-1) => {
            let error = std::io::Error::from_raw_os_error(-value as i32).to_string();
            let text = error.split(" (os error").next().unwrap_or("");
            format!("-1 {} ({text})", errno_name(-value as i32))
        }
        Answer::Return(value) if *value > 0xFFFF_FFFF => format!("{value:#x}"),
        Answer::Return(value) => value.to_string(),
        Answer::Exit(_) | Answer::Abort(_) => "?".to_owned(),
        Answer::OutOfMemory => "? (memory limit)".to_owned(),
        other => format!("{other:?}"),
    }
}

fn errno_name(errno: i32) -> String {
    let name = match errno {
        libc::EPERM => "EPERM",
        libc::ENOENT => "ENOENT",
        libc::ESRCH => "ESRCH",
        libc::EINTR => "EINTR",
        libc::EIO => "EIO",
        libc::EBADF => "EBADF",
        libc::ECHILD => "ECHILD",
        libc::EAGAIN => "EAGAIN",
        libc::ENOMEM => "ENOMEM",
        libc::EACCES => "EACCES",
        libc::EFAULT => "EFAULT",
        libc::EBUSY => "EBUSY",
        libc::EEXIST => "EEXIST",
        libc::EXDEV => "EXDEV",
        libc::ENODEV => "ENODEV",
        libc::ENOTDIR => "ENOTDIR",
        libc::EISDIR => "EISDIR",
        libc::EINVAL => "EINVAL",
        libc::EMFILE => "EMFILE",
        libc::ENOTTY => "ENOTTY",
        libc::ENOSPC => "ENOSPC",
        libc::ESPIPE => "ESPIPE",
        libc::EROFS => "EROFS",
        libc::EPIPE => "EPIPE",
        libc::ERANGE => "ERANGE",
        libc::ENAMETOOLONG => "ENAMETOOLONG",
        libc::ENOSYS => "ENOSYS",
        libc::ENOTEMPTY => "ENOTEMPTY",
        libc::ELOOP => "ELOOP",
        libc::ETIMEDOUT => "ETIMEDOUT",
        libc::ECONNREFUSED => "ECONNREFUSED",
        other => return format!("E{other}"),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text() {
        assert_eq!(quoted(b"a\n\"\x01", true), "\"a\\n\\\"\\1\"...");
        assert_eq!(
            answer(&Answer::Return(-2)),
            "-1 ENOENT (No such file or directory)"
        );
        assert_eq!(answer(&Answer::Return(5)), "5");
        assert_eq!(name(0), Some("read"));
        assert_eq!(name(9999), None);
    }
}
