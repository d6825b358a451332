//! The host's own handlers of signals beside the runtime's: what goes to them, what they may do, and on which stack they run.

mod support;

use ringfence_runtime::{CallError, Domain, DomainOptions, FaultKind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use support::{call, domain, domain_with, fault, forked, imports, in_child, module};

static SEEN: AtomicU32 = AtomicU32::new(0);

fn install(signal: i32, handler: usize, flags: i32) {
    // SAFETY: installs a handler that is sound in signal context.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = flags;
        assert_eq!(
            libc::sigaction(signal, &raw const action, std::ptr::null_mut()),
            0
        );
    }
}

/// A page that faults until the handler opens it.
static PAGE: OnceLock<u64> = OnceLock::new();

extern "C" fn open_page(_: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    SEEN.fetch_add(1, Ordering::SeqCst);
    // SAFETY: asks for the address and opens our own page.
    unsafe {
        assert_eq!((*info).si_addr() as u64, *PAGE.get().unwrap());
        libc::mprotect(
            *PAGE.get().unwrap() as *mut _,
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
        );
    }
}

extern "C" fn plain_handler(_: i32) {
    SEEN.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn faults_of_the_host_go_where_they_went_before() {
    in_child("faults_of_the_host_go_where_they_went_before", || {
        // SAFETY: a fresh page.
        let page = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                4096,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        } as u64;
        PAGE.set(page).unwrap();
        install(libc::SIGSEGV, open_page as *const () as usize, libc::SA_SIGINFO);
        install(libc::SIGFPE, plain_handler as *const () as usize, 0);
        let d = domain();
        assert_eq!(fault(&d, "read_at", &[64]).backtrace().len(), 1);
        d.reset().unwrap();
        assert_eq!(SEEN.load(Ordering::SeqCst), 0);
        // SAFETY: faults, and is repeated after the handler has opened the page.
        unsafe { (page as *mut u64).write_volatile(7) };
        assert_eq!(SEEN.load(Ordering::SeqCst), 1);
        // SAFETY: sends ourselves a signal that has a handler.
        unsafe { libc::raise(libc::SIGFPE) };
        assert_eq!(SEEN.load(Ordering::SeqCst), 2);
        assert_eq!(fault(&d, "divide", &[1, 0]).kind, FaultKind::Division);
        assert_eq!(SEEN.load(Ordering::SeqCst), 2);
        // In a callback.
        let page_of_host = imports().closure("host_add", move |_| {
            // SAFETY: as above.
            unsafe {
                libc::mprotect(page as *mut _, 4096, libc::PROT_NONE);
                (page as *mut u64).write_volatile(7);
            }
            Ok(())
        });
        let d = Domain::new(&[module()], page_of_host, &DomainOptions::default()).unwrap();
        call(&d, "call_out", &[1, 2]).unwrap();
        assert_eq!(SEEN.load(Ordering::SeqCst), 3);
    });
}

#[test]
fn without_a_handler_a_host_fault_kills_as_ever() {
    in_child("without_a_handler_a_host_fault_kills_as_ever", || {
        // What Rust installed is not wanted here.
        install(libc::SIGSEGV, libc::SIG_DFL, 0);
        let d = domain();
        let _ = fault(&d, "read_at", &[64]);
        // SAFETY: meant to crash.
        let status = forked(|| unsafe { (64 as *mut u64).write_volatile(1) });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status:#x}"
        );
        // SAFETY: sends a signal.
        let status = forked(|| unsafe {
            libc::raise(libc::SIGSEGV);
        });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status:#x}"
        );
    });
}

extern "C" fn faulty_handler(_: i32) {
    // SAFETY: meant to crash.
    unsafe { (64 as *mut u64).write_volatile(1) };
}

static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Does its part, then passes the signal to the handler that was there before, as handlers are advised to.
extern "C" fn passing_handler(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    if SEEN.fetch_add(1, Ordering::SeqCst) > 100 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(9) };
    }
    let before = BEFORE.get().unwrap().sa_sigaction;
    // SAFETY: the handler before was installed with SA_SIGINFO.
    unsafe {
        let before: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = std::mem::transmute(before);
        before(signal, info, context);
    }
}

#[test]
fn a_handler_of_the_host_that_faults_itself_kills_as_ever() {
    in_child("a_handler_of_the_host_that_faults_itself_kills_as_ever", || {
        for flags in [
            0,
            libc::SA_NODEFER,
            libc::SA_ONSTACK,
            libc::SA_NODEFER | libc::SA_ONSTACK,
        ] {
            let status = forked(|| {
                install(libc::SIGSEGV, faulty_handler as *const () as usize, flags);
                let d = domain();
                let _ = fault(&d, "read_at", &[64]);
                faulty_handler(0);
            });
            assert!(
                libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
                "{status:#x} with flags {flags:#x}"
            );
        }
    });
}

#[test]
fn a_handler_that_passes_signals_on_is_called_once() {
    in_child("a_handler_that_passes_signals_on_is_called_once", || {
        install(libc::SIGSEGV, libc::SIG_DFL, 0);
        let d = domain();
        // SAFETY: asks for the handler, which is the runtime's.
        let before = unsafe {
            let mut before: libc::sigaction = std::mem::zeroed();
            libc::sigaction(libc::SIGSEGV, std::ptr::null(), &raw mut before);
            before
        };
        assert!(BEFORE.set(before).is_ok());
        install(
            libc::SIGSEGV,
            passing_handler as *const () as usize,
            libc::SA_SIGINFO | libc::SA_ONSTACK,
        );
        let _ = fault(&d, "read_at", &[64]);
        d.reset().unwrap();
        // The runtime takes the signal back when the next domain is made, and has a handler to pass it to that passes
        // it to the runtime.
        let e = domain();
        SEEN.store(0, Ordering::SeqCst);
        let _ = fault(&e, "read_at", &[64]);
        assert_eq!(
            SEEN.load(Ordering::SeqCst),
            0,
            "a domain's fault is none of the host's"
        );
        let status = forked(|| {
            faulty_handler(0);
        });
        assert!(
            libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV,
            "{status:#x}"
        );
    });
}

static ENTERED: AtomicU32 = AtomicU32::new(0);
static DOMAIN: OnceLock<Domain> = OnceLock::new();

extern "C" fn enter_from_handler(_: i32) {
    let code = match call(DOMAIN.get().unwrap(), "add", &[1, 2]) {
        Ok(3) => 1,
        Err(CallError::Inside) => 2,
        Err(CallError::SignalStack) => 4,
        _ => 8,
    };
    ENTERED.fetch_or(code, Ordering::SeqCst);
}

#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer lets the host's signals wait until the domain has been left"
)]
fn a_handler_that_interrupts_a_domain_cannot_enter_one() {
    in_child("a_handler_that_interrupts_a_domain_cannot_enter_one", || {
        assert!(DOMAIN.set(domain()).is_ok());
        let d = domain();
        for (flags, allowed) in [(0, 1 | 2), (libc::SA_ONSTACK, 4 | 2)] {
            install(libc::SIGALRM, enter_from_handler as *const () as usize, flags);
            ENTERED.store(0, Ordering::SeqCst);
            bombarded(|| {
                assert_eq!(call(&d, "spin", &[20_000]).unwrap(), 20_000);
                assert_eq!(call(&d, "call_out", &[1, 2]).unwrap(), 4);
            });
            let seen = ENTERED.load(Ordering::SeqCst);
            assert!(
                seen & 2 != 0 && seen & !allowed == 0,
                "{seen} with flags {flags:#x}"
            );
        }
    });
}

/// Repeats `body` for a while, in which this thread gets SIGALRM all the time.
fn bombarded(body: impl Fn()) {
    // SAFETY: asks for the thread's own handle.
    let me = unsafe { libc::pthread_self() };
    let done = AtomicU32::new(0);
    std::thread::scope(|s| {
        s.spawn(|| {
            while done.load(Ordering::SeqCst) == 0 {
                // SAFETY: the thread waits for this one before it ends.
                unsafe { libc::pthread_kill(me, libc::SIGALRM) };
                std::thread::sleep(Duration::from_micros(150));
            }
        });
        struct Stop<'a>(&'a AtomicU32);
        impl Drop for Stop<'_> {
            fn drop(&mut self) {
                self.0.store(1, Ordering::SeqCst);
            }
        }
        let _stop = Stop(&done);
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(200) {
            body();
        }
    });
}

extern "C" fn hungry_handler(_: i32) {
    let mut room = [1u8; 24 << 10];
    std::hint::black_box(&mut room);
    SEEN.fetch_add(u32::from(room[77]), Ordering::SeqCst);
}

#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer's own handler runs on the control stack with SIGSEGV blocked, so the guard cannot open"
)]
fn host_handlers_on_the_control_stack_have_a_reserve() {
    in_child("host_handlers_on_the_control_stack_have_a_reserve", || {
        install(libc::SIGALRM, hungry_handler as *const () as usize, 0);
        let mut options = DomainOptions::default();
        options.control_stack = 64 << 10;
        let d = domain_with(&options);
        bombarded(|| {
            for depth in [100, 2000, 3000] {
                let _ = call(&d, "recurse", &[depth]).unwrap();
            }
            assert_eq!(fault(&d, "recurse", &[1 << 30]).kind, FaultKind::ControlStack);
            d.reset().unwrap();
        });
        assert!(SEEN.load(Ordering::SeqCst) > 10);
    });
}

/// Where [`counting_handler`] counts, in a domain.
static COUNTER: AtomicU64 = AtomicU64::new(0);

extern "C" fn counting_handler(signal: i32) {
    hungry_handler(signal);
    // SAFETY: the test keeps the domain, whose variable this is.
    unsafe { AtomicU32::from_ptr(COUNTER.load(Ordering::SeqCst) as *mut u32) }.fetch_add(1, Ordering::SeqCst);
}

/// A domain that creeps along while handlers come and go must not get at the reserve that they were given: the next one
/// would find none.
#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer's own handler runs on the control stack with SIGSEGV blocked, so the guard cannot open"
)]
fn domains_do_not_get_the_reserve_of_handlers() {
    in_child("domains_do_not_get_the_reserve_of_handlers", || {
        let mut options = DomainOptions::default();
        options.control_stack = 64 << 10;
        let d = domain_with(&options);
        COUNTER.store(call(&d, "signals_place", &[]).unwrap(), Ordering::SeqCst);
        install(libc::SIGALRM, counting_handler as *const () as usize, 0);
        bombarded(|| {
            assert_eq!(fault(&d, "creep", &[2000]).kind, FaultKind::ControlStack);
            d.reset().unwrap();
        });
        assert!(SEEN.load(Ordering::SeqCst) > 10);
    });
}

#[test]
fn threads_with_blocked_signals_and_no_alternate_stack() {
    let d = domain();
    std::thread::scope(|s| {
        s.spawn(|| {
            // SAFETY: changes this thread's own mask and alternate stack.
            unsafe {
                let mut all: libc::sigset_t = std::mem::zeroed();
                libc::sigfillset(&raw mut all);
                libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
                let off = libc::stack_t {
                    ss_sp: std::ptr::null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: 0,
                };
                libc::sigaltstack(&raw const off, std::ptr::null_mut());
            }
            let mut word = [0; 4];
            assert!(d.as_ref().read(d.as_ref().base(), &mut word).is_err());
            assert_eq!(fault(&d, "recurse", &[1 << 40]).kind, FaultKind::ControlStack);
        });
    });
}
