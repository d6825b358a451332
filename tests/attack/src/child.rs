//! Attacks that may end the process run in one of their own.

/// Runs `f` in a child; gives its wait status. The child ends with 0, with 1 after a panic, or by a signal.
///
/// # Panics
///
/// If there is no child to be had.
pub fn in_child(f: impl FnOnce()) -> i32 {
    // SAFETY: the child does not go back into the test harness.
    unsafe {
        let child = libc::fork();
        assert!(child >= 0);
        if child == 0 {
            let fine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)).is_ok();
            libc::_exit(i32::from(!fine));
        }
        let mut status = 0;
        assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
        status
    }
}
