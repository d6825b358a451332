//! System calls that the kernel refuses, by filters that stay for ever: for tests in a process or a thread of their own.

const LOAD: u16 = 0x20;
const EQUAL: u16 = 0x15;
const ANY: u16 = 0x45;
const RETURN: u16 = 0x06;

fn step(code: u16, jt: u8, jf: u8, k: u32) -> libc::sock_filter {
    libc::sock_filter { code, jt, jf, k }
}

/// For the calling thread and those that it makes.
fn install(filter: &mut [libc::sock_filter]) {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: the program outlives the call.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::syscall(libc::SYS_seccomp, 1, 0, &raw const program), 0);
    }
}

/// Refuses these system calls.
pub fn calls(calls: &[i64]) {
    let mut filter = vec![step(LOAD, 0, 0, 0)];
    for &call in calls {
        filter.push(step(EQUAL, 0, 1, call as u32));
        filter.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32));
    }
    filter.push(step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    install(&mut filter);
}

/// Refuses to make memory executable.
pub fn text() {
    // What is asked for is the third argument of both calls.
    install(&mut [
        step(LOAD, 0, 0, 0),
        step(EQUAL, 1, 0, libc::SYS_mmap as u32),
        step(EQUAL, 0, 2, libc::SYS_mprotect as u32),
        step(LOAD, 0, 0, 32),
        step(ANY, 1, 0, libc::PROT_EXEC as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOMEM as u32),
    ]);
}
