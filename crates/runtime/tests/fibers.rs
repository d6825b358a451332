//! Fibers: host functions that come back out of order, or on another thread.
//!
//! One test program of its own: it switches stacks under Rust's feet.

mod support;

use ringfence_runtime::{CallError, Domain, DomainOptions, EndCall, FaultKind};
use std::cell::UnsafeCell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use support::{call, imports, module};

struct Context(UnsafeCell<std::mem::MaybeUninit<libc::ucontext_t>>);
// SAFETY: the tests hand contexts over explicitly.
unsafe impl Sync for Context {}

impl Context {
    const fn new() -> Self {
        Context(UnsafeCell::new(std::mem::MaybeUninit::zeroed()))
    }

    fn get(&self) -> *mut libc::ucontext_t {
        self.0.get().cast()
    }
}

static MAIN: Context = Context::new();
static FIBER: Context = Context::new();
static DOMAIN: OnceLock<Domain> = OnceLock::new();
static CALLBACKS: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

fn switch(from: &Context, to: &Context) {
    // SAFETY: `to` was filled by makecontext or swapcontext and is not running.
    unsafe { assert_eq!(libc::swapcontext(from.get(), to.get()), 0) };
}

/// Prepares FIBER to run `body` on a stack of its own, and to go on in MAIN afterwards.
fn fiber(body: extern "C" fn()) {
    let stack = Box::leak(vec![0u8; 1 << 20].into_boxed_slice());
    // SAFETY: the context and its stack live as long as the process.
    unsafe {
        libc::getcontext(FIBER.get());
        (*FIBER.get()).uc_stack.ss_sp = stack.as_mut_ptr().cast();
        (*FIBER.get()).uc_stack.ss_size = stack.len();
        (*FIBER.get()).uc_link = MAIN.get();
        libc::makecontext(FIBER.get(), body, 0);
    }
}

/// In the fiber: calls into the domain and notes how that ended.
extern "C" fn call_from_fiber() {
    let code = match call(DOMAIN.get().unwrap(), "nest", &[1]) {
        Err(CallError::Fault(f)) if f.kind == FaultKind::Elsewhere => 1,
        Err(CallError::Fault(f)) if f.kind == FaultKind::OutOfOrder => 2,
        Ok(_) => 3,
        Err(_) => 4,
    };
    ENDED.store(code, Ordering::SeqCst);
}

fn works_again(d: &Domain) {
    assert!(d.faulted());
    assert!(matches!(call(d, "add", &[1, 2]), Err(CallError::Faulted { .. })));
    d.reset().unwrap();
    for _ in 0..3 {
        assert_eq!(call(d, "add", &[1, 2]).unwrap(), 3);
    }
}

fn domain(host_enter: impl Fn(u32) + Send + Sync + 'static) -> Domain {
    let imports = imports().closure("host_enter", move |f| {
        host_enter(CALLBACKS.fetch_add(1, Ordering::SeqCst));
        f.result[0] = 1;
        Ok(())
    });
    Domain::new(&[module()], imports, &DomainOptions::default()).unwrap()
}

#[test]
fn a_host_function_that_comes_back_out_of_order_ends_its_call() {
    support::in_child(
        "a_host_function_that_comes_back_out_of_order_ends_its_call",
        || {
            // First callback, on the main stack: to the fiber. Second, on the fiber's: back to the main stack, which returns
            // into the domain although the fiber's call is on top of the lane.
            let d = domain(|n| match n {
                0 => switch(&MAIN, &FIBER),
                _ => switch(&FIBER, &MAIN),
            });
            assert!(DOMAIN.set(d.clone()).is_ok());
            fiber(call_from_fiber);
            let e = call(&d, "nest", &[1]);
            assert!(
                matches!(&e, Err(CallError::Fault(f)) if f.kind == FaultKind::OutOfOrder),
                "{e:?}"
            );
            // The fiber's call is still there; it ends as soon as its host function returns.
            switch(&MAIN, &FIBER);
            assert_eq!(ENDED.load(Ordering::SeqCst), 1);
            works_again(&d);
        },
    );
}

/// The fiber's call is on a lane that a reset has taken away: it is an error, and touches neither the domain, which is as new,
/// nor the one that has been made since.
fn resumes_after_a_reset(verdict: Result<(), EndCall>) {
    let imports = imports().closure("host_enter", move |f| {
        f.result[0] = 1;
        match CALLBACKS.fetch_add(1, Ordering::SeqCst) {
            0 => {
                switch(&MAIN, &FIBER);
                Ok(())
            }
            1 => {
                switch(&FIBER, &MAIN);
                // The domain is there still.
                assert_eq!(f.domain().translate(0) & 0xFFFF_FFFF, 0);
                verdict.clone()
            }
            _ => Ok(()),
        }
    });
    let d = Domain::new(&[module()], imports, &DomainOptions::default()).unwrap();
    assert!(DOMAIN.set(d.clone()).is_ok());
    fiber(call_from_fiber);
    assert!(call(&d, "nest", &[1]).is_err());
    d.reset().unwrap();
    let others: Vec<Domain> = (0..3).map(|_| support::domain()).collect();
    for other in others.iter().chain([&d]) {
        assert_eq!(call(other, "add", &[1, 2]).unwrap(), 3);
    }
    switch(&MAIN, &FIBER);
    assert_eq!(ENDED.load(Ordering::SeqCst), 2);
    for other in others.iter().chain([&d]) {
        assert!(!other.faulted());
        assert_eq!(call(other, "add", &[1, 2]).unwrap(), 3);
    }
    assert_eq!(call(&d, "nest", &[1]).unwrap(), 2);
}

#[test]
fn a_host_function_that_comes_back_after_a_reset_ends_its_call() {
    support::in_child(
        "a_host_function_that_comes_back_after_a_reset_ends_its_call",
        || resumes_after_a_reset(Ok(())),
    );
}

#[test]
fn a_host_function_that_fails_after_a_reset_ends_its_call() {
    support::in_child("a_host_function_that_fails_after_a_reset_ends_its_call", || {
        resumes_after_a_reset(Err(EndCall::Fail("late".into())))
    });
}

#[test]
#[cfg_attr(
    ringfence_tsan,
    ignore = "ThreadSanitizer does not know that a stack goes on on another thread"
)]
fn a_host_function_that_comes_back_on_another_thread_ends_its_call() {
    support::in_child(
        "a_host_function_that_comes_back_on_another_thread_ends_its_call",
        || {
            let d = domain(|_| switch(&FIBER, &MAIN));
            assert!(DOMAIN.set(d.clone()).is_ok());
            fiber(call_from_fiber);
            // Enters the domain, whose callback comes back here.
            switch(&MAIN, &FIBER);
            assert_eq!(ENDED.load(Ordering::SeqCst), 0);
            std::thread::scope(|s| {
                s.spawn(|| {
                    assert_eq!(call(&d, "add", &[1, 2]).unwrap(), 3);
                    switch(&MAIN, &FIBER);
                });
            });
            assert_eq!(ENDED.load(Ordering::SeqCst), 2);
            works_again(&d);
        },
    );
}
