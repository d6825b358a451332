//! Signals: a crash of a domain ends its call, everything else goes where it went before.

use crate::lanes::answer;
use crate::lanes::fresh;
use crate::lanes::gate;
use crate::lanes::lane::{Lane, attention};
use crate::lanes::learn;
use crate::lanes::raw_fault::RawFault;
use crate::lanes::tick::{self, Origin};
use crate::os::lock::{Lock, Rank};
use crate::os::{guarded, sys};
use core::arch::global_asm;
use ringfence_core::error::{CallError, HostError};
use ringfence_isa::window;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of, zeroed};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Signals that a fault raises.
const FAULTS: [i32; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// All numbers of signals are below this.
const SIGNALS: usize = 65;

/// Size of an alternate stack of ours.
const ALT_SIZE: usize = 64 << 10;

/// What the kernel does with a signal, in its own layout.
///
/// Handlers are set in the kernel, not through `sigaction` of the C library: a sanitizer or a preloaded library that takes its place
/// puts a handler of its own before ours, and ThreadSanitizer's lets signals from outside wait until the thread comes by its runtime,
/// where a domain in an endless loop never comes. Such handlers are found, and passed on to, like any that was there before.
#[derive(Clone, Copy)]
#[repr(C)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    /// Signal n is bit n - 1.
    mask: u64,
}

const _: () = assert!(size_of::<Action>() == 32);

const DEFAULT: Action = Action {
    handler: libc::SIG_DFL,
    flags: 0,
    restorer: 0,
    mask: 0,
};

/// All signals but the two that glibc keeps for itself, as its `sigfillset` has it.
const ALL: u64 = !(1 << (32 - 1) | 1 << (33 - 1));

impl Action {
    fn of(signal: i32) -> Option<Action> {
        let mut now = DEFAULT;
        // SAFETY: asks only; the kernel writes one action.
        let e = unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, null::<Action>(), &raw mut now, 8) };
        (e == 0).then_some(now)
    }

    /// # Safety
    /// The handler is one, or `SIG_DFL`.
    unsafe fn set(&self, signal: i32) -> bool {
        // SAFETY: the caller's promise.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, self, null::<Action>(), 8) == 0 }
    }
}

/// Whom a signal went to before.
struct Previous(UnsafeCell<[MaybeUninit<Action>; SIGNALS]>);
// SAFETY: written before the handler that reads it is installed, afterwards only for SA_RESETHAND.
unsafe impl Sync for Previous {}

impl Previous {
    const fn new() -> Previous {
        Previous(UnsafeCell::new([const { MaybeUninit::uninit() }; SIGNALS]))
    }
}

/// The handlers that were there before ours.
static FIRST: Previous = Previous::new();
/// Those that the host has put in the place of ours since, from which the signals were taken back, in the order in which they were
/// found. As many are set as [`CLAIMED`] says.
static LATER: [Previous; CLAIMS] = [const { Previous::new() }; CLAIMS];
/// How often each signal was taken back.
static CLAIMED: [AtomicUsize; SIGNALS] = [const { AtomicUsize::new(0) }; SIGNALS];
/// How often at most: a host that keeps on changing handlers has its way in the end.
const CLAIMS: usize = 8;
static INSTALLED: AtomicBool = AtomicBool::new(false);
static INSTALLING: Lock<()> = Lock::new(Rank::Signals, ());

/// The lock, held until what is returned goes: for `fork`.
pub(crate) fn hold() -> Box<dyn std::any::Any> {
    Box::new(INSTALLING.lock())
}

/// Installs the handlers, once.
pub(crate) fn install() -> Result<(), HostError> {
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    let _guard = INSTALLING.lock();
    if INSTALLED.load(Ordering::Acquire) {
        return Ok(());
    }
    for signal in FAULTS {
        take(signal, entry(signal), &FIRST)?;
    }
    take(tick::number(), entry(tick::number()), &FIRST)?;
    INSTALLED.store(true, Ordering::Release);
    Ok(())
}

/// Chooses the watchdog's signal, before the handlers are installed.
pub(crate) fn choose_tick(signal: i32) -> Result<(), HostError> {
    let refused = |reason| Err(HostError::TickSignal { signal, reason });
    if !(1..SIGNALS as i32).contains(&signal) {
        return refused("there is no such signal");
    }
    if FAULTS.contains(&signal) || [libc::SIGKILL, libc::SIGSTOP].contains(&signal) {
        return refused("it means something else to the system");
    }
    if ALL & 1 << (signal - 1) == 0 {
        return refused("the C library keeps it for itself");
    }
    let _guard = INSTALLING.lock();
    if signal != tick::number() && INSTALLED.load(Ordering::Acquire) {
        return refused("another one is in use: choose before the first domain is made");
    }
    tick::choose(signal);
    Ok(())
}

/// Takes signals back that the host has given to other handlers since: the last of those is chained to. Not `SIGTRAP`: whoever
/// asks for it later steps through the process, and each step is a signal whose instruction may be a domain's.
pub(crate) fn check_installed() {
    if INSTALLED.load(Ordering::Acquire) {
        let _guard = INSTALLING.lock();
        take_back();
    }
}

/// The same, without waiting if another thread is at it.
pub(crate) fn check_installed_if_free() {
    if INSTALLED.load(Ordering::Acquire)
        && let Some(_guard) = INSTALLING.try_lock()
    {
        take_back();
    }
}

fn take_back() {
    let faults = FAULTS.into_iter().filter(|&s| s != libc::SIGTRAP);
    for signal in faults.chain([tick::number()]) {
        let ours = entry(signal);
        let Some(now) = Action::of(signal) else { continue };
        if now.handler == ours {
            continue;
        }
        let claimed = &CLAIMED[signal as usize];
        let count = claimed.load(Ordering::Relaxed);
        // Which of several later handlers passes signals on to which other, nobody knows: the last one gets what is the host's.
        if let Some(later) = LATER.get(count)
            && take(signal, ours, later).is_ok()
        {
            claimed.store(count + 1, Ordering::Release);
        }
    }
}

global_asm!(
    ".pushsection .text",
    ".globl __rf_fault_entry",
    ".hidden __rf_fault_entry",
    ".type __rf_fault_entry, @function",
    "__rf_fault_entry:",
    ".cfi_startproc",
    "endbr64",
    "leaq 8(%rsp), %rcx",
    "jmp {fault}",
    ".cfi_endproc",
    ".size __rf_fault_entry, . - __rf_fault_entry",
    ".globl __rf_tick_entry",
    ".hidden __rf_tick_entry",
    ".type __rf_tick_entry, @function",
    "__rf_tick_entry:",
    ".cfi_startproc",
    "endbr64",
    // Nothing to do for a signal of the watchdog's that finds the thread outside of the current lane's window, and no reserve open. It
    // is told here, because host code is interrupted anywhere: in a sanitizer's runtime too, which what the compiler makes of the handler calls.
    "movq __rf_tls@gottpoff(%rip), %rax",
    "movq %fs:{t_current}(%rax), %rax",
    "testl ${open}, {l_attention}(%rax)",
    "jnz 1f",
    "movl {l_base} + 4(%rax), %eax",
    "cmpl %eax, {c_rip} + 4(%rdx)",
    "je 1f",
    "cmpl ${queue}, 8(%rsi)",
    "jne 1f",
    "movabsq ${magic}, %rax",
    "cmpq %rax, 24(%rsi)",
    "jne 1f",
    "retq",
    "1:",
    "leaq 8(%rsp), %rcx",
    "jmp {tick}",
    ".cfi_endproc",
    ".size __rf_tick_entry, . - __rf_tick_entry",
    // Where handlers return to. Debuggers and unwinders know these very bytes, behind one that belongs to no function.
    ".p2align 4",
    "nop",
    ".globl __rf_restore",
    ".hidden __rf_restore",
    ".type __rf_restore, @function",
    "__rf_restore:",
    "movq $15, %rax",
    "syscall",
    ".size __rf_restore, . - __rf_restore",
    ".popsection",
    fault = sym fault_handler,
    tick = sym tick_handler,
    t_current = const offset_of!(gate::Tls, current),
    l_base = const offset_of!(Lane, base),
    l_attention = const offset_of!(Lane, attention),
    open = const attention::RESERVE_OPEN,
    c_rip = const offset_of!(libc::ucontext_t, uc_mcontext) + 8 * libc::REG_RIP as usize,
    queue = const libc::SI_QUEUE,
    magic = const tick::MAGIC,
    options(att_syntax)
);

unsafe extern "C" {
    /// The handlers as the kernel knows them: they add the address behind the return address to the arguments.
    fn __rf_fault_entry();
    fn __rf_tick_entry();
    fn __rf_restore();
}

/// Our handler of a signal.
fn entry(signal: i32) -> usize {
    if signal == tick::number() {
        __rf_tick_entry as *const () as usize
    } else {
        __rf_fault_entry as *const () as usize
    }
}

/// Who called our handler. The kernel puts the context straight behind the return address, and nobody else does: a
/// handler of the host that took our place, and passes signals on to the one before, calls from further down.
fn called_by_the_kernel(context: *const c_void, behind_return: u64) -> bool {
    context as u64 == behind_return
}

fn take(signal: i32, handler: usize, previous: &Previous) -> Result<(), HostError> {
    let Some(old) = Action::of(signal) else {
        return Err(HostError::last("asking for a signal's handler"));
    };
    const SA_RESTORER: u64 = 0x0400_0000;
    let new = Action {
        handler,
        flags: (libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART) as u64 | SA_RESTORER,
        restorer: __rf_restore as *const () as usize,
        mask: ALL,
    };
    // SAFETY: the old action is stored before the new handler can run, which is ours.
    unsafe {
        (*previous.0.get())[signal as usize].write(old);
        if !new.set(signal) {
            return Err(HostError::last("installing a signal handler"));
        }
    }
    Ok(())
}

/// An alternate signal stack of ours; gone with the thread.
pub(crate) struct AltStack {
    at: u64,
}

impl Drop for AltStack {
    fn drop(&mut self) {
        // SAFETY: the thread's own alternate stack; taken away only if it is still ours.
        unsafe {
            let mut now: libc::stack_t = zeroed();
            libc::sigaltstack(null(), &raw mut now);
            if now.ss_sp as u64 == self.at + sys::PAGE as u64 {
                if now.ss_flags & libc::SS_ONSTACK != 0 {
                    return;
                }
                let off = libc::stack_t {
                    ss_sp: null_mut(),
                    ss_flags: libc::SS_DISABLE,
                    ss_size: 0,
                };
                libc::sigaltstack(&raw const off, null_mut());
            }
            libc::munmap(self.at as *mut c_void, ALT_SIZE + sys::PAGE);
        }
    }
}

/// Makes the calling thread fit for faults: an alternate stack (its own, if that is large enough), nothing blocked.
pub(crate) fn prepare_thread() -> Result<Option<AltStack>, CallError> {
    unblock();
    let os = |what| CallError::Lane(HostError::last(what).to_string());
    // SAFETY: asks for and sets the calling thread's alternate stack.
    unsafe {
        let mut now: libc::stack_t = zeroed();
        if libc::sigaltstack(null(), &raw mut now) != 0 {
            return Err(os("asking for the alternate signal stack"));
        }
        if now.ss_flags & libc::SS_ONSTACK != 0 {
            return Err(CallError::SignalStack);
        }
        let tls = gate::tls();
        const AT_MINSIGSTKSZ: u64 = 51;
        let least = (libc::getauxval(AT_MINSIGSTKSZ) as usize).max(libc::MINSIGSTKSZ) + 4096;
        if now.ss_flags & libc::SS_DISABLE == 0 && now.ss_size >= least {
            (*tls).alt = now.ss_sp as u64;
            (*tls).alt_size = now.ss_size as u64;
            return Ok(None);
        }
        let rw = libc::PROT_READ | libc::PROT_WRITE;
        let at = sys::map_anonymous(0, (ALT_SIZE + sys::PAGE) as u64, rw, false)
            .and_then(|at| sys::protect(at, sys::PAGE as u64, libc::PROT_NONE).map(|()| at))
            .map_err(|e| CallError::Lane(e.to_string()))?;
        let stack = AltStack { at };
        let new = libc::stack_t {
            ss_sp: (at + sys::PAGE as u64) as *mut c_void,
            ss_flags: 0,
            ss_size: ALT_SIZE,
        };
        if libc::sigaltstack(&raw const new, null_mut()) != 0 {
            return Err(os("setting the alternate signal stack"));
        }
        (*tls).alt = new.ss_sp as u64;
        (*tls).alt_size = ALT_SIZE as u64;
        Ok(Some(stack))
    }
}

/// A blocked fault signal would kill the process.
pub(crate) fn unblock() {
    // SAFETY: changes the calling thread's mask.
    unsafe {
        let mut set: libc::sigset_t = zeroed();
        libc::sigemptyset(&raw mut set);
        for signal in FAULTS.into_iter().chain([tick::number()]) {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const set, null_mut());
        (*gate::tls()).ready = 1;
    }
}

/// Before memory of a window is touched from a thread that may never have been in a domain.
#[inline]
pub(crate) fn thread_ready() {
    // SAFETY: the calling thread's own word.
    if unsafe { (*gate::tls()).ready } == 0 {
        unblock();
    }
}

/// Whether `rip` is in the window of the domain that the thread is inside of; and the lane.
///
/// Async-signal-safe: reads thread-local words and a lane, which is never unmapped.
fn inside<'a>() -> Option<&'a Lane> {
    // SAFETY: `current` always points to a lane, or to a word that says that there is none.
    unsafe {
        let lane = (*gate::tls()).current;
        ((*lane).top.load(Ordering::Relaxed) == 0).then(|| &*lane)
    }
}

fn registers(context: &libc::ucontext_t) -> ringfence_core::Registers {
    let g = &context.uc_mcontext.gregs;
    let r = |i: i32| g[i as usize] as u64;
    ringfence_core::Registers {
        general: [
            r(libc::REG_RAX),
            r(libc::REG_RCX),
            r(libc::REG_RDX),
            r(libc::REG_RBX),
            0,
            r(libc::REG_RBP),
            r(libc::REG_RSI),
            r(libc::REG_RDI),
            r(libc::REG_R8),
            r(libc::REG_R9),
            r(libc::REG_R10),
            r(libc::REG_R11),
            r(libc::REG_R12),
            r(libc::REG_R13),
            r(libc::REG_R14),
            r(libc::REG_R15),
        ],
        rip: r(libc::REG_RIP),
        rflags: r(libc::REG_EFL),
    }
}

/// Writes the fault down and lets the thread continue in the gate, on the host's stack.
fn leave(lane: &Lane, context: &mut libc::ucontext_t, signal: i32, info: &libc::siginfo_t, bits: u32) {
    // The host gave this thread another alternate stack since the lane was made, and entered from a handler that runs on
    // it: gates could not see it, and this signal's frame lies over that handler's live frames, with the domain's
    // registers in it. There is nothing left to return to.
    let alt = &context.uc_stack;
    let host_sp = lane.host_sp.load(Ordering::Relaxed);
    if alt.ss_flags & libc::SS_DISABLE == 0 && host_sp.wrapping_sub(alt.ss_sp as u64) < alt.ss_size as u64 {
        const WHY: &[u8] =
            b"ringfence: a domain was entered from a handler on an alternate signal stack that was set \
            after the thread's first call, and was left by a signal on the same stack\n";
        // SAFETY: writes a constant; both calls are async-signal-safe.
        unsafe {
            libc::write(2, WHY.as_ptr().cast(), WHY.len());
            libc::abort();
        }
    }
    let g = &mut context.uc_mcontext.gregs;
    let raw = RawFault {
        signal,
        code: info.si_code,
        error: g[libc::REG_ERR as usize] as u64,
        // SAFETY: faults have an address; for others it is not used.
        address: unsafe { info.si_addr() } as u64,
        rsp: g[libc::REG_RSP as usize] as u64,
        registers: Default::default(),
        bits,
    };
    g[libc::REG_R14 as usize] = std::ptr::from_ref(lane) as i64;
    let mut raw = raw;
    raw.registers = registers(context);
    raw.registers.general[14] = lane.base;
    let g = &mut context.uc_mcontext.gregs;
    // SAFETY: only the lane's own thread touches this, here and after it has left.
    unsafe { *lane.fault.get() = raw };
    g[libc::REG_RIP as usize] = gate::fault_landing() as i64;
    g[libc::REG_RSP as usize] = lane.host_sp.load(Ordering::Relaxed) as i64;
    // Trap, direction, alignment check.
    g[libc::REG_EFL as usize] &= !0x4_0500;
}

unsafe extern "C" fn fault_handler(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
    behind_return: u64,
) {
    // SAFETY: the kernel passes valid pointers.
    let (i, c) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
    let rip = c.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    // Sent by a process, not raised by an instruction?
    let raised = i.si_code > 0;
    if raised {
        if let Some(to) = guarded::fixup(rip) {
            c.uc_mcontext.gregs[libc::REG_RIP as usize] = to as i64;
            return;
        }
        if let Some(lane) = inside() {
            // SAFETY: faults have an address.
            let address = unsafe { i.si_addr() } as u64;
            let in_window = |at: u64| at & !(window::SIZE - 1) == lane.base;
            let page_fault = signal == libc::SIGSEGV && matches!(i.si_code, 1 | 2);
            let gate_fault = gate::contains(rip)
                && page_fault
                && (in_window(address) || lane.berth.below_control(address));
            if page_fault
                && in_window(rip)
                && let Some(r11) = learn::goes_on(lane, &registers(c).general, rip, address)
            {
                c.uc_mcontext.gregs[libc::REG_R11 as usize] = i64::from(r11);
                return;
            }
            if page_fault
                && in_window(rip)
                && let Some(again) = fresh::again(lane, &registers(c).general, rip, address)
            {
                c.uc_mcontext.gregs[libc::REG_R11 as usize] = i64::from(again.r11);
                c.uc_mcontext.gregs[libc::REG_RIP as usize] = again.rip as i64;
                return;
            }
            if in_window(rip) || gate_fault {
                leave(lane, c, signal, i, 0);
                return;
            }
            if page_fault && lane.berth.in_soft_guard(address) && lane.berth.open_reserve() {
                // A host handler that runs on the domain's control stack gets the reserve, until it returns.
                lane.attention.fetch_or(attention::RESERVE_OPEN, Ordering::AcqRel);
                tick_later(lane, c);
                return;
            }
        }
    }
    // SAFETY: as above.
    unsafe { chain(signal, info, context, behind_return) };
}

/// Lets the thread have a tick when what is interrupted here, a host handler, has returned: its own return sets the mask
/// that it was entered with, in which the tick is not blocked.
fn tick_later(lane: &Lane, context: &mut libc::ucontext_t) {
    // SAFETY: the kernel's part of a `sigset_t` is the first word.
    unsafe { *(&raw mut context.uc_sigmask).cast::<u64>() |= 1 << (tick::number() - 1) };
    tick::send(lane.tid.load(Ordering::Relaxed));
}

/// A host handler needed the reserve and has returned. The domain must not get at it: the next handler would find none.
fn take_reserve_back(lane: &Lane, context: &mut libc::ucontext_t) {
    let rsp = context.uc_mcontext.gregs[libc::REG_RSP as usize] as u64;
    if lane.berth.below_control(rsp) {
        // Another handler has begun there.
        tick_later(lane, context);
    } else if (lane.berth.control_low()..=lane.berth.control_top()).contains(&rsp) {
        lane.attention
            .fetch_and(!attention::RESERVE_OPEN, Ordering::AcqRel);
        lane.berth.close_reserve();
    }
}

unsafe extern "C" fn tick_handler(
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
    behind_return: u64,
) {
    // SAFETY: the kernel passes valid pointers.
    let (i, c) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
    let origin = tick::origin(i);
    if origin == Origin::Others
        || !end_call(signal, i, c) && origin == Origin::Unmarked && host_listens(signal)
    {
        // SAFETY: as above.
        unsafe { chain(signal, info, context, behind_return) };
    }
}

/// What a tick is for. Whether the call in progress ends.
fn end_call(signal: i32, i: &libc::siginfo_t, c: &mut libc::ucontext_t) -> bool {
    let Some(lane) = inside() else { return false };
    if lane.attention.load(Ordering::Acquire) & attention::RESERVE_OPEN != 0 {
        take_reserve_back(lane, c);
    }
    let rip = c.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    let bits = lane.ending();
    let in_window = rip & !(window::SIZE - 1) == lane.base;
    if in_window {
        answer::answer(lane, rip);
    }
    let ends = bits != 0 && in_window;
    if ends {
        leave(lane, c, signal, i, bits);
    }
    ends
}

/// Whether the host has a handler for a signal that it may have sent itself.
fn host_listens(signal: i32) -> bool {
    let last = CLAIMED[signal as usize].load(Ordering::Acquire);
    let previous = last.checked_sub(1).map_or(&FIRST, |last| &LATER[last]);
    // SAFETY: stored when our handler was installed.
    let old = unsafe { (*previous.0.get())[signal as usize].assume_init_ref() };
    ![libc::SIG_DFL, libc::SIG_IGN].contains(&old.handler)
}

/// Whether the system does nothing of its own at a signal.
fn ignored_by_default(signal: i32) -> bool {
    [libc::SIGURG, libc::SIGCHLD, libc::SIGWINCH, libc::SIGCONT].contains(&signal)
}

/// Does what would have happened without us. A later handler of the host that passes the signal on to us, as if we were
/// still below it, gets the one below us: else the two would call each other for ever.
unsafe fn chain(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void, behind_return: u64) {
    let claimed = CLAIMED[signal as usize].load(Ordering::Acquire);
    let previous = match claimed.checked_sub(1) {
        Some(last) if called_by_the_kernel(context, behind_return) => &LATER[last],
        _ => &FIRST,
    };
    // SAFETY: stored when our handler was installed.
    let old = unsafe { (*previous.0.get())[signal as usize].assume_init_mut() };
    // SAFETY: the kernel passed valid pointers to our handler, which passes them on.
    unsafe {
        match old.handler {
            libc::SIG_IGN if (*info).si_code <= 0 || signal == tick::number() => {}
            libc::SIG_DFL if ignored_by_default(signal) => {}
            // An instruction that faults again after the default is back in place; a signal that was sent is sent again.
            libc::SIG_DFL | libc::SIG_IGN => {
                DEFAULT.set(signal);
                if (*info).si_code <= 0 || signal == libc::SIGTRAP {
                    let (pid, tid) = (libc::getpid(), libc::gettid());
                    libc::syscall(libc::SYS_rt_tgsigqueueinfo, pid, tid, signal, info);
                }
            }
            handler => {
                let flags = old.flags as i32;
                if flags & libc::SA_RESETHAND != 0 {
                    old.handler = libc::SIG_DFL;
                }
                // The mask that the kernel would have set; its part of a `sigset_t` is the first word.
                let interrupted = &raw const (*context.cast::<libc::ucontext_t>()).uc_sigmask;
                let mut mask = old.mask | interrupted.cast::<u64>().read();
                if flags & libc::SA_NODEFER == 0 {
                    mask |= 1 << (signal - 1);
                }
                let none = null_mut::<u64>();
                libc::syscall(
                    libc::SYS_rt_sigprocmask,
                    libc::SIG_SETMASK,
                    &raw const mask,
                    none,
                    8,
                );
                if flags & libc::SA_SIGINFO != 0 {
                    let handler: unsafe extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void) =
                        std::mem::transmute(handler);
                    handler(signal, info, context);
                } else {
                    let handler: unsafe extern "C" fn(i32) = std::mem::transmute(handler);
                    handler(signal);
                }
            }
        }
    }
}
