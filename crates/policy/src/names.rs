//! Flags and choices in arguments of system calls, by the names that strace has for them.

/// What an argument may hold.
pub(crate) struct Names {
    /// These bits are one of `choices`.
    mask: u64,
    choices: &'static [(u64, &'static str)],
    flags: &'static [(u64, &'static str)],
    /// What there is when nothing is set.
    nothing: &'static str,
}

macro_rules! names {
    ($($(#[$doc:meta])* $table:ident: $mask:expr, [$($choice:ident),*], [$($flag:ident),*], $nothing:literal;)*) => {$(
        $(#[$doc])*
        pub(crate) static $table: Names = Names {
            mask: $mask,
            choices: &[$((libc::$choice as u64, stringify!($choice))),*],
            flags: &[$((libc::$flag as u64, stringify!($flag))),*],
            nothing: $nothing,
        };
    )*};
}

/// All bits of an `int`, which is what most such arguments are.
const INT: u64 = 0xFFFF_FFFF;

names! {
    /// `open`. What contains others stands before them.
    OPEN: libc::O_ACCMODE as u64, [O_RDONLY, O_WRONLY, O_RDWR],
        [O_CREAT, O_EXCL, O_NOCTTY, O_TRUNC, O_APPEND, O_NONBLOCK, O_SYNC, O_DSYNC, O_TMPFILE, O_DIRECTORY, O_NOFOLLOW,
         O_CLOEXEC, O_DIRECT, O_NOATIME, O_PATH], "0";
    /// `pipe2`, `dup3`.
    CREATED: 0, [], [O_NONBLOCK, O_CLOEXEC, O_DIRECT], "0";
    PROTECTION: 0, [], [PROT_READ, PROT_WRITE, PROT_EXEC], "PROT_NONE";
    MAP: 3, [MAP_SHARED, MAP_PRIVATE, MAP_SHARED_VALIDATE],
        [MAP_FIXED, MAP_ANONYMOUS, MAP_NORESERVE, MAP_POPULATE, MAP_STACK, MAP_GROWSDOWN, MAP_NONBLOCK, MAP_HUGETLB,
         MAP_FIXED_NOREPLACE], "0";
    WHENCE: INT, [SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE], [], "0";
    ACCESS: 0, [], [R_OK, W_OK, X_OK], "F_OK";
    CONTROL: INT, [F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_DUPFD_CLOEXEC], [], "0";
    AT: 0, [], [AT_SYMLINK_NOFOLLOW, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH, AT_NO_AUTOMOUNT], "0";
    REMOVE: 0, [], [AT_REMOVEDIR], "0";
    CHECK: 0, [], [AT_EACCESS, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH], "0";
    MOVE: 0, [], [MREMAP_MAYMOVE, MREMAP_FIXED, MREMAP_DONTUNMAP], "0";
    ADVICE: INT, [MADV_NORMAL, MADV_RANDOM, MADV_SEQUENTIAL, MADV_WILLNEED, MADV_DONTNEED, MADV_FREE], [], "0";
    LOCK: 0, [], [LOCK_SH, LOCK_EX, LOCK_UN, LOCK_NB], "0";
    FAMILY: INT, [AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET], [], "0";
    SOCKET: 15, [SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET], [SOCK_NONBLOCK, SOCK_CLOEXEC], "0";
    SHUTDOWN: INT, [SHUT_RD, SHUT_WR, SHUT_RDWR], [], "0";
    CLOCK: INT, [CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID,
        CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE, CLOCK_BOOTTIME], [], "0";
    REQUEST: INT, [TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGWINSZ, TIOCSWINSZ, TIOCGPGRP, TIOCSPGRP, FIONREAD, FIONBIO, FIOCLEX,
        FIONCLEX], [], "0";
    WAKES: 127, [FUTEX_WAIT, FUTEX_WAKE, FUTEX_REQUEUE, FUTEX_CMP_REQUEUE, FUTEX_LOCK_PI, FUTEX_UNLOCK_PI, FUTEX_WAIT_BITSET],
        [FUTEX_PRIVATE_FLAG, FUTEX_CLOCK_REALTIME], "0";
    LIMIT: INT, [RLIMIT_CPU, RLIMIT_FSIZE, RLIMIT_DATA, RLIMIT_STACK, RLIMIT_CORE, RLIMIT_NPROC, RLIMIT_NOFILE, RLIMIT_MEMLOCK,
        RLIMIT_AS], [], "0";
    TYPE: libc::S_IFMT as u64, [S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFCHR, S_IFBLK, S_IFSOCK], [], "0";
    EVENTS: 0, [], [POLLIN, POLLPRI, POLLOUT, POLLERR, POLLHUP, POLLNVAL, POLLRDNORM, POLLWRNORM, POLLRDHUP], "0";
    OPERATION: INT, [EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL], [], "0";
    RANDOM: 0, [], [GRND_NONBLOCK, GRND_RANDOM], "0";
}

impl Names {
    /// The names of what is set in `value`, with `|` between them; bits without a name in hexadecimal.
    pub(crate) fn show(&self, value: u64) -> String {
        // Arguments of these kinds are numbers of 32 bits; the rest of the register is not looked at.
        let value = value & INT;
        let mut parts = Vec::new();
        let mut rest = value & !self.mask;
        if self.mask != 0 {
            let chosen = value & self.mask;
            match self.choices.iter().find(|(number, _)| *number == chosen) {
                Some((_, name)) => parts.push((*name).to_owned()),
                None => parts.push(format!("{chosen:#x}")),
            }
        }
        for (bits, name) in self.flags {
            if rest & bits == *bits {
                parts.push((*name).to_owned());
                rest &= !bits;
            }
        }
        if rest != 0 {
            parts.push(format!("{rest:#x}"));
        }
        if parts.is_empty() {
            return self.nothing.to_owned();
        }
        parts.join("|")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_strace_has_them() {
        assert_eq!(OPEN.show(0), "O_RDONLY");
        assert_eq!(OPEN.show(0o101), "O_WRONLY|O_CREAT");
        assert_eq!(OPEN.show(0o4010002), "O_RDWR|O_SYNC");
        assert_eq!(OPEN.show(0o10003), "0x3|O_DSYNC");
        assert_eq!(OPEN.show(1 << 30), "O_RDONLY|0x40000000");
        assert_eq!(PROTECTION.show(0), "PROT_NONE");
        assert_eq!(PROTECTION.show(3), "PROT_READ|PROT_WRITE");
        assert_eq!(MAP.show(0x22), "MAP_PRIVATE|MAP_ANONYMOUS");
        assert_eq!(MAP.show(0x20), "0x0|MAP_ANONYMOUS");
        assert_eq!(WHENCE.show(2), "SEEK_END");
        assert_eq!(WHENCE.show(99), "0x63");
        assert_eq!(ACCESS.show(0), "F_OK");
        assert_eq!(ACCESS.show(5), "R_OK|X_OK");
        assert_eq!(SOCKET.show(0x80001), "SOCK_STREAM|SOCK_CLOEXEC");
        assert_eq!(AT.show(1 << 40 | 0x1000), "AT_EMPTY_PATH");
    }
}
