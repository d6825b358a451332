//! A caller that stands still at any instruction of a gate, while another thread takes away what it calls.

mod support;

use ringfence_runtime::domain::{last_call, restore_call, save_call};
use ringfence_runtime::{Code, Domain, FaultKind, LastCall, Signature};
use std::arch::asm;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use support::{call, domain, entry, imports, module};

/// What a function pointer takes and returns here.
const SUM: Signature = Signature {
    ints: 2,
    int_results: 1,
    ..Signature::NOTHING
};

/// A function's marker, `leal N(%rdi,%rsi), %eax`, `ret`.
const ADDS_1: [u8; 13] = [
    0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x44, 0x37, 1, 0xC3,
];

/// As long as `ADDS_1`, and in its place: a call to where that was would run it from the middle of an instruction if it came in at all.
const OTHER: [u8; 16] = [
    0x48, 0xB8, 0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x63, 0xB8, 99, 0, 0, 0, 0xC3,
];

/// Whose turn it is, in memory that the parent and the child share.
struct Turns {
    /// Rounds in which the second thread was told to change things, and in which it had.
    asked: AtomicU32,
    changed: AtomicU32,
}

fn shared() -> &'static Turns {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: new memory, of zeroes, which is never unmapped.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        );
        assert_ne!(at, libc::MAP_FAILED);
        &*at.cast::<Turns>()
    }
}

/// Calls a function pointer between two breakpoints.
fn call_between(function: *const c_void, a: u64, b: u64) -> u64 {
    let result;
    // SAFETY: a C function of two integers, which has an integer result.
    unsafe {
        asm!("int3", "call {f}", "int3", f = in(reg) function, inout("rdi") a => _, inout("rsi") b => _,
             out("rax") result, clobber_abi("C"));
    }
    result
}

/// What is called while something changes.
#[derive(Clone, Copy)]
struct Scene {
    /// A function pointer for two numbers that returns their sum and 1, as good as new in each round.
    function: fn(&Domain) -> *const c_void,
    change: fn(&Domain),
    /// Whether a call may end so.
    fine: fn(&LastCall) -> bool,
    /// Whether a signal comes behind the change, whose handler calls another function of the domain.
    interrupted: bool,
}

/// What the handler calls.
static OWN: AtomicU64 = AtomicU64::new(0);

extern "C" fn handler(_signal: i32) {
    // SAFETY: a function pointer of that type.
    let plain: extern "C" fn(u64, u64) -> u64 =
        unsafe { std::mem::transmute(OWN.load(SeqCst) as *const c_void) };
    let saved = save_call();
    plain(1, 2);
    restore_call(saved);
}

/// The child: round after round the caller calls what `change` takes away when the parent says so.
fn child(turns: &'static Turns, scene: Scene) -> ! {
    let d = domain();
    let other = d.clone();
    OWN.store(own(&d) as u64, SeqCst);
    // SAFETY: the handler may run at any moment.
    unsafe { libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t) };
    std::thread::spawn(move || {
        for round in 1.. {
            while turns.asked.load(SeqCst) < round {
                std::thread::yield_now();
            }
            (scene.change)(&other);
            turns.changed.store(round, SeqCst);
        }
    });
    // SAFETY: the parent traces this thread.
    unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
    for round in 1.. {
        if d.faulted() {
            d.reset().expect("nobody is inside");
        }
        let function = (scene.function)(&d);
        // SAFETY: the type is that of the signature.
        let plain: extern "C" fn(u64, u64) -> u64 = unsafe { std::mem::transmute(function) };
        let before = plain(3, 4);
        assert_eq!(before, 8, "and no bit asks for attention from here on");
        let result = call_between(function, 6, 7);
        let last = last_call();
        let right = if last == LastCall::Returned { 14 } else { 0 };
        if result != right || !(last == LastCall::Returned || (scene.fine)(&last)) {
            eprintln!("round {round}: {result}, {last:?}");
            // SAFETY: ends the child.
            unsafe { libc::_exit(1) };
        }
        if turns.changed.load(SeqCst) < round {
            // The parent saw the end of the call before it had found a place to stop at.
            break;
        }
    }
    // SAFETY: ends the child.
    unsafe { libc::_exit(0) }
}

/// Stops the caller behind 0, 1, 2 … instructions of a call, has `change` run to its end, and lets the call go on: what comes back is its
/// result, or what the scene allows.
fn at_each_step(scene: Scene) {
    module();
    drop(imports());
    let turns = shared();
    // SAFETY: the child does what is said above, and ends.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        child(turns, scene);
    }
    let go = |request| {
        let (mut status, mut signal) = (0, 0);
        loop {
            // SAFETY: the child is this thread's, and stopped.
            unsafe {
                assert_eq!(libc::ptrace(request, pid, 0, signal), 0);
                assert_eq!(libc::waitpid(pid, &raw mut status, 0), pid);
            }
            // The watchdog's are for the child.
            signal = if libc::WIFSTOPPED(status) {
                libc::WSTOPSIG(status)
            } else {
                0
            };
            if signal == 0 || signal == libc::SIGTRAP {
                return status;
            }
        }
    };
    let stopped = |status| libc::WIFSTOPPED(status) && libc::WSTOPSIG(status) == libc::SIGTRAP;
    let mut status = 0;
    // SAFETY: waits for the child.
    assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
    let mut steps = 0;
    loop {
        assert!(
            stopped(status),
            "{status:#x} in front of the call, with {steps} steps"
        );
        for _ in 0..steps {
            status = go(libc::PTRACE_SINGLESTEP);
            assert!(stopped(status), "{status:#x}, one of {steps} steps");
        }
        // SAFETY: asks about the stopped child, into memory of ours.
        let over = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            assert_eq!(libc::ptrace(libc::PTRACE_GETSIGINFO, pid, 0, &raw mut info), 0);
            // A breakpoint's; that of a step is TRAP_TRACE.
            steps > 0 && info.si_code != libc::TRAP_TRACE
        };
        if over {
            break;
        }
        turns.asked.store(steps + 1, SeqCst);
        while turns.changed.load(SeqCst) <= steps {
            std::thread::yield_now();
        }
        if scene.interrupted {
            // SAFETY: the child is this thread's, stopped, and not yet waited for.
            let sent = unsafe { libc::syscall(libc::SYS_tgkill, pid, pid, libc::SIGUSR1) };
            assert_eq!(sent, 0);
        }
        // To the breakpoint behind the call, and to that of the next round.
        status = go(libc::PTRACE_CONT);
        assert!(stopped(status), "{status:#x} behind {steps} steps");
        status = go(libc::PTRACE_CONT);
        steps += 1;
    }
    assert!(steps > 40, "{steps} instructions are no call");
    status = go(libc::PTRACE_CONT);
    assert_eq!(status, 0, "the child's own end");
}

/// Added code.
fn added(d: &Domain) -> *const c_void {
    if d.find_code("other").is_ok() {
        d.remove_code("other").expect("removed");
    }
    if d.find_code("sum").is_err() {
        let code = Code {
            bytes: &ADDS_1,
            entry: 0,
        };
        d.add_code("sum", &code).expect("added");
    }
    d.find_code("sum").expect("added").thunk(SUM)
}

/// Other code in the place of what was removed.
fn add_other(d: &Domain) {
    let code = Code {
        bytes: &OTHER,
        entry: 0,
    };
    d.add_code("other", &code).expect("added");
}

fn was_removed(last: &LastCall) -> bool {
    *last == LastCall::Removed
}

/// The module's own function, which nobody takes away.
fn own(d: &Domain) -> *const c_void {
    entry(d, "call_out").thunk(SUM)
}

fn never(_: &LastCall) -> bool {
    false
}

/// Tests, each of a scene.
macro_rules! at_each_step {
    ($($name:ident: $scene:expr;)*) => {$(
        #[test]
        #[cfg_attr(
            ringfence_tsan,
            ignore = "ThreadSanitizer has no children of processes with several threads that start threads themselves"
        )]
        fn $name() {
            at_each_step($scene);
        }
    )*};
}

at_each_step! {
    a_reset_takes_code_from_who_stands_in_the_gate: Scene {
        function: added,
        change: |d| {
            if d.reset().is_ok() {
                add_other(d);
            }
        },
        fine: was_removed,
        interrupted: false,
    };
    removed_code_stays_removed_for_who_stands_in_the_gate: Scene {
        function: added,
        change: |d| {
            if d.remove_code("sum").is_ok() {
                add_other(d);
            }
        },
        fine: was_removed,
        interrupted: false,
    };
    a_reset_behind_a_removal_lets_nobody_in_to_what_was_removed: Scene {
        function: added,
        change: |d| {
            if d.remove_code("sum").is_ok() && d.reset().is_ok() {
                add_other(d);
            }
        },
        fine: was_removed,
        interrupted: false,
    };
    a_reset_is_not_seen_by_who_stands_in_the_gate: Scene {
        function: own,
        change: |d| {
            let _ = d.reset();
        },
        fine: never,
        interrupted: false,
    };
    a_checkpoint_is_not_seen_by_who_stands_in_the_gate: Scene {
        function: own,
        change: |d| {
            let _ = d.checkpoint().is_ok() && d.reset().is_ok();
        },
        fine: never,
        interrupted: false,
    };
    who_stands_in_the_gate_loses_a_lane_and_gets_another: Scene {
        function: own,
        change: |d| {
            d.trim().expect("trimmed");
        },
        fine: never,
        interrupted: false,
    };
    a_fault_elsewhere_ends_or_refuses_the_call_of_who_stands_in_the_gate: Scene {
        function: own,
        change: |d| {
            let _ = call(d, "illegal", &[]);
        },
        fine: |last| matches!(last, LastCall::Faulted | LastCall::Fault(FaultKind::Elsewhere)),
        interrupted: false,
    };
    a_handlers_call_does_not_see_a_removal_for_whom_it_interrupted: Scene {
        function: added,
        change: |d| {
            if d.remove_code("sum").is_ok() {
                add_other(d);
            }
        },
        fine: was_removed,
        interrupted: true,
    };
    nor_a_reset: Scene {
        function: added,
        change: |d| {
            if d.reset().is_ok() {
                add_other(d);
            }
        },
        fine: was_removed,
        interrupted: true,
    };
    nor_a_lane_that_was_lost: Scene {
        function: own,
        change: |d| {
            d.trim().expect("trimmed");
        },
        fine: never,
        interrupted: true,
    };
}
