//! `fork` is for programs: a function of a library that calls it stays in one process, whatever was granted.

mod support;

use ringfence::policy::Policy;
use support::guest::{Guest, errno};

#[test]
fn functions_of_a_library_do_not_fork() {
    needs!(Policy, Processes);
    let none = Guest::new(Policy::new());
    let some = Guest::new(Policy::new().processes(4));
    let calls = [
        (libc::SYS_fork, 0),
        (libc::SYS_vfork, 0),
        (libc::SYS_clone, libc::SIGCHLD.into()),
        (libc::SYS_clone, i64::from(libc::SIGCHLD | libc::CLONE_VM)),
        (libc::SYS_clone3, 0),
    ];
    let own = std::process::id();
    for (number, flags) in calls {
        assert_eq!(none.sys(number, &[flags]), errno(libc::EAGAIN), "{number}");
        let fork = flags == i64::from(libc::SIGCHLD) || [libc::SYS_fork, libc::SYS_vfork].contains(&number);
        let refused = if fork { libc::EPERM } else { libc::EAGAIN };
        assert_eq!(some.sys(number, &[flags]), errno(refused), "{number}");
        assert_eq!(std::process::id(), own);
    }
    // Neither the host nor the domain has a child.
    // SAFETY: asks, without a status.
    let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(child, -1);
    for guest in [&none, &some] {
        assert_eq!(guest.sys(libc::SYS_wait4, &[-1, 0, 0, 0]), errno(libc::ECHILD));
        assert_eq!(
            guest.sys(libc::SYS_wait4, &[own.into(), 0, 0, 0]),
            errno(libc::ECHILD)
        );
        assert_eq!(guest.sys(libc::SYS_kill, &[2, 0]), errno(libc::ESRCH));
        assert_eq!(guest.sys(libc::SYS_kill, &[own.into(), 9]), errno(libc::EPERM));
        assert_eq!(guest.sys(libc::SYS_getpid, &[]), 1);
    }
}
