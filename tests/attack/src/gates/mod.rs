//! Single steps through the gates: at every instruction something happens that must not matter.
//!
//! A call into a domain, which calls a host function and comes back, runs under the trap flag. At instruction number *n*
//! the handler of the trap does something nasty, and the call continues at full speed; then the host looks around. For
//! all *n*.

mod agent;
mod modules;

use crate::code::data;
use crate::fuzz::{domain_of, signal_mask};
use crate::host;
use modules::{SPIN, module};
use ringfence_runtime::domain::{last_status, take_error};
use ringfence_runtime::{
    CallError, Code, Domain, DomainOptions, EndCall, Entry, FaultKind, Imports, OnFailure, Signature,
};
use std::arch::global_asm;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

pub use modules::seed;

/// What happens at the chosen instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Nothing: how many instructions there are.
    Nothing,
    /// The handler calls the same domain.
    EnterSame,
    /// The handler calls another domain.
    EnterOther,
    /// The handler calls a function of the same domain that crashes.
    CrashSame,
    /// Somebody interrupts the domain.
    Interrupt,
    /// The domain's data become inaccessible.
    Withdraw,
    /// The domain gets a time limit that ends before its call does.
    Deadline,
    /// Another thread resets the domain.
    Reset,
    /// Another thread makes the domain fit for its next user, as a pool does that gets one back.
    Recycle,
    /// Another thread replaces the added code that is called (or a piece that nobody calls) by other code at the same place.
    Replace,
    /// The domain that is called from this one crashes in a call of the handler's.
    CrashCallee,
}

impl Event {
    /// All that happen.
    pub const ALL: [Event; 11] = [
        Event::Nothing,
        Event::EnterSame,
        Event::EnterOther,
        Event::CrashSame,
        Event::Interrupt,
        Event::Withdraw,
        Event::Deadline,
        Event::Reset,
        Event::Recycle,
        Event::Replace,
        Event::CrashCallee,
    ];

    /// Whether the handler enters a domain.
    #[must_use]
    pub fn enters(self) -> bool {
        matches!(
            self,
            Event::EnterSame | Event::EnterOther | Event::CrashSame | Event::CrashCallee
        )
    }
}

/// What the module has in it, which decides about the gates that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Integers only.
    Bare,
    /// Vector instructions.
    Vectors,
    /// x87 instructions as well.
    X87,
    /// The host function is a closure.
    Closure,
    /// `setjmp` before the host function is called, `longjmp` after it.
    Jumps,
    /// `UNWIND` before the host function is called, `RESUME` in the calling function after it.
    Frames,
    /// Another domain is called, which crashes; its caller asks how that went.
    Callee,
    /// Another domain is called, whose call a host function ends; its caller asks how that went.
    Failing,
    /// The code that is called was added to the living domain.
    Added,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 9] = [
        Kind::Bare,
        Kind::Vectors,
        Kind::X87,
        Kind::Closure,
        Kind::Jumps,
        Kind::Frames,
        Kind::Callee,
        Kind::Failing,
        Kind::Added,
    ];

    /// Whether `event` is tried with it. Known and open: a handler that enters a domain changes the status of the call that it
    /// interrupted, so a call from domain to domain that has just failed is taken for one that returned 0.
    #[must_use]
    pub fn bears(self, event: Event) -> bool {
        self != Kind::Failing || !event.enters()
    }
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Instructions of the longest way.
    pub instructions: u64,
    /// Calls made.
    pub calls: u64,
    /// Calls that returned their result although something happened.
    pub unaffected: u64,
    /// Calls that ended with an error.
    pub ended: u64,
    /// Nested calls that were let in, and that were refused.
    pub nested: (u64, u64),
    /// Anything wrong; must be empty.
    pub violations: Vec<String>,
}

struct World {
    domain: Domain,
    work: AtomicPtr<c_void>,
    crash: *const c_void,
    place: *const c_void,
    dive: *const c_void,
    other: *const c_void,
    /// The domain that is called from this one, its crash, and its loop counter.
    callee: Domain,
    callee_crash: *const c_void,
    /// Loop counters of both.
    spin: [*mut u32; 2],
    added: bool,
}

// SAFETY: shared with the agent, which uses the domain and the address of `work`.
unsafe impl Sync for World {}

impl World {
    fn work(&self) -> *const c_void {
        self.work.load(Ordering::Relaxed)
    }

    fn set_spin(&self, turns: u32) {
        for spin in self.spin {
            // SAFETY: a word of a domain's data.
            unsafe { spin.write_volatile(turns) };
        }
    }

    /// Links the piece that is called, or one that nobody calls.
    fn add_code(&self) -> Entry {
        let code = Code {
            bytes: modules::piece(),
            entry: 0,
        };
        let entry = self.domain.add_code("piece", &code).expect("a piece");
        if self.added {
            self.work.store(entry.thunk(ONE).cast_mut(), Ordering::Relaxed);
        }
        entry
    }
}

/// What all functions here take and give.
const ONE: Signature = Signature {
    ints: 1,
    int_results: 1,
    ..Signature::NOTHING
};

static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());
static COUNT: AtomicI64 = AtomicI64::new(0);
static CHOSEN: AtomicI64 = AtomicI64::new(-1);
static EVENT: AtomicU64 = AtomicU64::new(0);
static FIRED: AtomicU64 = AtomicU64::new(0);
static NESTED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
/// Whether a call is to be made step by step, and nothing has happened yet.
static STEPPING: AtomicU64 = AtomicU64::new(0);
static WRONG: AtomicU64 = AtomicU64::new(0);
/// What the interrupted code's status was; a handler has to put it back, as with `errno`.
static mut STEPPED: *const c_void = std::ptr::null();

global_asm!(
    ".pushsection .text.rf_attack_step,\"ax\",@progbits",
    ".globl rf_attack_stepped",
    "rf_attack_stepped:",
    "push rbx",
    "mov r10, [rip + {target}]",
    "pushfq; or dword ptr [rsp], 0x100; popfq",
    "call r10",
    "pushfq; and dword ptr [rsp], ~0x100; popfq",
    "pop rbx",
    "ret",
    ".popsection",
    target = sym STEPPED,
);

unsafe extern "C" {
    fn rf_attack_stepped();
}

extern "C" fn add_seven(a: u64) -> u64 {
    a.wrapping_add(7)
}

const LONG: u32 = 2_000_000;
/// Longer than a time limit of a millisecond.
const VERY_LONG: u32 = 20_000_000;

fn enter(thunk: *const c_void, x: u64) -> (u64, u64) {
    // SAFETY: a thunk of that signature.
    let f: extern "C" fn(u64) -> u64 = unsafe { std::mem::transmute(thunk) };
    let result = f(x);
    (result, last_status())
}

extern "C" fn on_trap(_: c_int, _: *mut libc::siginfo_t, context: *mut c_void) {
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    if n != CHOSEN.load(Ordering::Relaxed) {
        return;
    }
    FIRED.store(1, Ordering::Relaxed);
    STEPPING.store(0, Ordering::Relaxed);
    // SAFETY: the kernel's frame; WORLD is set while the handler is installed.
    let (context, world) = unsafe {
        (
            &mut *context.cast::<libc::ucontext_t>(),
            &*WORLD.load(Ordering::Relaxed),
        )
    };
    context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !0x100;
    let nested = |thunk, x: u64, wanted: Option<u64>| {
        let (result, status) = enter(thunk, x);
        if status == 0 {
            NESTED.fetch_add(1, Ordering::Relaxed);
            if wanted != Some(result) {
                WRONG.store(result | 1 << 63, Ordering::Relaxed);
            }
        } else {
            REFUSED.fetch_add(1, Ordering::Relaxed);
            drop(take_error());
        }
    };
    match EVENT.load(Ordering::Relaxed) {
        1 => nested(world.work(), 5, Some(22)),
        2 => nested(world.other, 6, Some(25)),
        3 => nested(world.crash, 0, None),
        4 => {
            world.set_spin(LONG);
            world.domain.interrupt();
        }
        5 => withdraw(world, libc::PROT_NONE),
        6 => {
            world.set_spin(VERY_LONG);
            agent::ask(Event::Deadline);
        }
        7 => agent::ask(Event::Reset),
        8 => agent::ask(Event::Recycle),
        9 => agent::ask(Event::Replace),
        10 => nested(world.callee_crash, 0, None),
        _ => {}
    }
}

fn withdraw(world: &World, rights: c_int) {
    // SAFETY: the page of the domain's data that has the loop counter.
    unsafe { libc::mprotect((world.spin[0] as u64 & !4095) as *mut c_void, 4096, rights) };
}

/// Lets `event` happen at every `stride`-th instruction. `on_stack`: the handler runs on the alternate stack.
/// Call it in a process of its own: it takes over SIGTRAP.
///
/// # Panics
///
/// If the runtime refuses the module.
#[must_use]
pub fn run(event: Event, kind: Kind, on_stack: bool, stride: u64, first: u64) -> Outcome {
    let mut outcome = Outcome::default();
    let world = make(kind);
    // SAFETY: a handler for SIGTRAP, which stays.
    unsafe {
        STEPPED = world.work();
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | if on_stack { libc::SA_ONSTACK } else { 0 };
        assert!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()) == 0);
    }
    EVENT.store(event as u64, Ordering::Relaxed);
    // SAFETY: a thunk of a function that takes an integer.
    let idle = unsafe { host::call(world.work(), &[1; 6]) };
    let mask = signal_mask();
    refresh(world);
    let depths = Depths::measure(world);
    let mut n = first;
    while outcome.violations.is_empty() {
        COUNT.store(0, Ordering::Relaxed);
        FIRED.store(0, Ordering::Relaxed);
        STEPPING.store(1, Ordering::Relaxed);
        CHOSEN.store(n as i64, Ordering::Relaxed);
        // Not the number that the handler uses.
        let x = n + 16;
        if event == Event::Replace {
            // Leaves the lane held: the way in is the slow one.
            drop(world.domain.remove_code("piece"));
            drop(world.add_code());
        }
        // SAFETY: as above, under the trap flag.
        let state = unsafe {
            STEPPED = world.work();
            host::call(rf_attack_stepped as *const c_void, &[x, 0, 0, 0, 0, 0])
        };
        let status = last_status();
        STEPPING.store(0, Ordering::Relaxed);
        outcome.calls += 1;
        let mut wrong = state.compare(&idle);
        wrong.extend(agent::settle());
        withdraw(world, libc::PROT_READ | libc::PROT_WRITE);
        world.set_spin(1);
        world.domain.set_time_limit(None);
        let fired = FIRED.load(Ordering::Relaxed) != 0;
        let result = state.results()[0];
        // A handler that ran after the call had ended may have left its own status.
        let error = if status == 0 { None } else { take_error() };
        match (&error, status) {
            (None, 0) => {
                outcome.unaffected += u64::from(fired);
                if result != 3 * x + 7 {
                    wrong.push(format!("result {result:#x}"));
                }
            }
            _ if result == 3 * x + 7 => outcome.unaffected += 1,
            (error, _) => {
                outcome.ended += 1;
                if !expected(event, kind, error.as_ref()) {
                    wrong.push(format!("ended with {error:?}"));
                }
            }
        }
        if signal_mask() != mask {
            wrong.push(format!("signal mask {:#x}, was {mask:#x}", signal_mask()));
        }
        let bad = WRONG.load(Ordering::Relaxed);
        if bad != 0 {
            wrong.push(format!("the nested call's result {bad:#x}"));
        }
        wrong.extend(refresh(world));
        for (thunk, name) in [(world.work(), "this domain"), (world.other, "the other domain")] {
            let after = enter(thunk, 2);
            if after != (13, 0) {
                wrong.push(format!("{name} gives {after:?} afterwards: {:?}", take_error()));
            }
        }
        wrong.extend(refresh(world));
        wrong.extend(depths.compare(world));
        if !wrong.is_empty() {
            outcome
                .violations
                .push(format!("{event:?} at instruction {n}: {}", wrong.join("; ")));
        }
        if !fired {
            outcome.instructions = COUNT.load(Ordering::Relaxed) as u64;
            break;
        }
        n += stride;
    }
    outcome.nested = (NESTED.load(Ordering::Relaxed), REFUSED.load(Ordering::Relaxed));
    outcome
}

/// The domains, each entered once: lanes are made before a handler is installed, for the runtime takes its signals back then.
fn make(kind: Kind) -> &'static World {
    let mut options = DomainOptions::default();
    options.control_stack = 64 << 10;
    options.extensible = true;
    // One that is never reached: the gate takes its second path.
    let mut counted = options.clone();
    counted.call_limit = Some(1 << 40);
    if kind == Kind::Closure {
        options.call_limit = counted.call_limit;
    }
    let plain = || {
        // SAFETY: a function of that signature.
        unsafe { Imports::new().plain("add_seven", add_seven as *const c_void, ONE) }
    };
    let fails = Imports::new().closure("add_seven", |_| Err(EndCall::Fail("as it should".into())));
    let (callee, export) = match kind {
        Kind::Failing => (domain_of(&module(Kind::Bare), fails, &counted), "work"),
        _ => (domain_of(&module(Kind::Bare), plain(), &counted), "slow_crash"),
    };
    let callee = callee.expect("a domain");
    let make = || {
        let imports = match kind {
            Kind::Closure => Imports::new().closure("add_seven", |frame| {
                frame.result[0] = frame.ints[0].wrapping_add(7);
                Ok(())
            }),
            Kind::Callee | Kind::Failing => {
                let failure = OnFailure::Return(100);
                let imports = Imports::new().domain_or("add_seven", &callee, export, ONE, failure);
                imports.on_callee_failure(|_| {
                    go_on_stepping();
                    Ok(())
                })
            }
            _ => plain(),
        };
        domain_of(&module(kind), imports, &options).expect("a domain")
    };
    let domain = make();
    // It never calls another domain: what it would say of its last call is not what this one has to say.
    let other = match kind {
        Kind::Callee | Kind::Failing => domain_of(&module(Kind::Bare), plain(), &options).expect("a domain"),
        _ => make(),
    };
    let thunk = |d: &Domain, name: &str| d.entry(name).expect("an export").thunk(ONE);
    let spin = |d: &Domain| (d.as_ref().base() + u64::from(data(SPIN))) as *mut u32;
    let world: &'static World = Box::leak(Box::new(World {
        work: AtomicPtr::new(thunk(&domain, "work").cast_mut()),
        crash: thunk(&domain, "crash"),
        place: thunk(&domain, "place"),
        dive: thunk(&domain, "dive"),
        other: thunk(&other, "work"),
        callee_crash: thunk(&callee, "crash"),
        spin: [spin(&domain), spin(&callee)],
        callee,
        domain,
        added: kind == Kind::Added,
    }));
    std::mem::forget(other);
    drop(world.add_code());
    agent::start(world);
    for thunk in [world.work(), world.other] {
        assert_eq!(enter(thunk, 1), (10, 0), "{:?}", take_error());
        drop(refresh(world));
    }
    WORLD.store(std::ptr::from_ref(world).cast_mut(), Ordering::Relaxed);
    world
}

/// The runtime's handler of faults ends single steps.
fn go_on_stepping() {
    if STEPPING.load(Ordering::Relaxed) != 0 {
        // SAFETY: sets the trap flag, whose handler is installed.
        unsafe { std::arch::asm!("pushfq", "or dword ptr [rsp], 0x100", "popfq") };
    }
}

/// Clears away what a call has left: faults, and added code that went with a reset. What is wrong about it.
fn refresh(world: &World) -> Vec<String> {
    let mut wrong = Vec::new();
    for domain in [&world.domain, &world.callee] {
        if domain.faulted()
            && let Err(e) = domain.reset()
        {
            wrong.push(format!("reset: {e}"));
        }
    }
    if world.domain.find_code("piece").is_err() {
        drop(world.add_code());
    }
    wrong
}

/// How far down both stacks the domain gets: any word that a gate leaves on them shows.
struct Depths {
    place: u64,
    frames: u64,
}

impl Depths {
    fn measure(world: &World) -> Depths {
        let (mut fits, mut too_deep) = (1, 1 << 20);
        while too_deep - fits > 1 {
            let middle = u64::midpoint(fits, too_deep);
            if enter(world.dive, middle).1 == 0 {
                fits = middle;
            } else {
                too_deep = middle;
                drop(take_error());
                world.domain.reset().expect("nobody is inside");
            }
        }
        drop(refresh(world));
        Depths {
            place: enter(world.place, 0).0,
            frames: fits,
        }
    }

    fn compare(&self, world: &World) -> Vec<String> {
        let mut wrong = Vec::new();
        let place = enter(world.place, 0);
        if place != (self.place, 0) {
            wrong.push(format!("the data stack is at {place:x?}, was {:#x}", self.place));
        }
        if enter(world.dive, self.frames).1 != 0 {
            wrong.push(format!("the control stack is shorter: {:?}", take_error()));
        }
        wrong
    }
}

fn expected(event: Event, kind: Kind, error: Option<&CallError>) -> bool {
    match (event, error) {
        (Event::CrashSame, Some(CallError::Faulted { .. })) => true,
        (Event::CrashSame, Some(CallError::Fault(f))) => {
            matches!(f.kind, FaultKind::Elsewhere | FaultKind::IllegalInstruction)
        }
        (Event::Interrupt, Some(CallError::Fault(f))) => f.kind == FaultKind::Interrupted,
        (Event::Deadline, Some(CallError::Fault(f))) => f.kind == FaultKind::TimeLimit,
        (Event::Withdraw, Some(CallError::Fault(f))) => matches!(f.kind, FaultKind::BadAccess { .. }),
        (Event::Reset | Event::Recycle | Event::Replace, Some(CallError::Removed)) => kind == Kind::Added,
        _ => false,
    }
}
