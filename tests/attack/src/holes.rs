//! Mistakes planted in the verifier, one at a time: does execution notice them? Needs the feature `holes`.

use crate::{child, fuzz, jail};
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// What became of one hole.
#[derive(Clone, Debug)]
pub struct Found {
    /// Its number.
    pub hole: u32,
    /// What it is.
    pub what: &'static str,
    /// What was noticed, if anything was.
    pub how: Option<String>,
    /// After how long.
    pub after: Duration,
}

/// Fuzzes with hole `hole` open (0 is none), for `limit`, in a child that may do little.
///
/// # Panics
///
/// If there is no child or pipe to be had.
#[must_use]
pub fn try_one(hole: u32, seed: u64, limit: Duration) -> Found {
    let mut ends = [0; 2];
    // SAFETY: room for two descriptors, which nobody else owns.
    let (read, write) = unsafe {
        assert_eq!(libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC), 0);
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    let began = Instant::now();
    let status = child::in_child(|| {
        // SAFETY: the child's own streams; what an escape does to them is seen here only. The alarm ends a child that hangs.
        unsafe {
            libc::dup2(ends[1], 1);
            libc::alarm(limit.as_secs() as u32 + 30);
        }
        let pool = fuzz::Options {
            seed,
            limit,
            programs: u64::MAX,
            draws: 1_000_000,
            trace: false,
            words: false,
        };
        jail::enter().expect("a filter");
        ringfence_mistakes::plant(hole);
        let outcome = fuzz::run(pool);
        for violation in &outcome.violations {
            println!("{}", violation.chars().take(120).collect::<String>());
        }
        // SAFETY: ends the child, without a panic's own system calls.
        unsafe { libc::_exit(i32::from(!outcome.violations.is_empty())) };
    });
    let after = began.elapsed();
    drop(write);
    let mut text = String::new();
    let _ = std::io::Read::read_to_string(&mut std::fs::File::from(read), &mut text);
    let first = text.lines().next().unwrap_or_default().to_string();
    let how = if !first.is_empty() {
        Some(first)
    } else if libc::WIFSIGNALED(status) {
        Some(match libc::WTERMSIG(status) {
            libc::SIGSYS => "a system call of its own".into(),
            libc::SIGALRM => "the host hangs".into(),
            signal => format!("the host dies by signal {signal}"),
        })
    } else {
        (status != 0).then(|| format!("the child ends with {status:#x}"))
    };
    Found {
        hole,
        what: (hole as usize)
            .checked_sub(1)
            .map_or("no hole, for comparison", |n| ringfence_mistakes::MISTAKES[n]),
        how,
        after,
    }
}
