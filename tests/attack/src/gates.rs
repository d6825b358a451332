//! Single steps through the gates: at every instruction something happens that must not matter.
//!
//! A call into a domain, which calls a host function and comes back, runs under the trap flag. At instruction number *n*
//! the handler of the trap does something nasty, and the call continues at full speed; then the host looks around. For
//! all *n*.

use crate::code::{Code, data};
use crate::elf::Builder;
use crate::fuzz::domain_of;
use crate::host;
use ringfence_isa::window::stub;
use ringfence_runtime::domain::{last_status, take_error};
use ringfence_runtime::{CallError, Domain, DomainOptions, FaultKind, Imports, Signature, Verdict};
use std::arch::global_asm;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};

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
    /// `setjmp` before the host function is called, `longjmp` after it; the return is hooked.
    Jumps,
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
    work: *const c_void,
    crash: *const c_void,
    other: *const c_void,
    spin: *mut u32,
}

static WORLD: AtomicPtr<World> = AtomicPtr::new(std::ptr::null_mut());
static COUNT: AtomicI64 = AtomicI64::new(0);
static CHOSEN: AtomicI64 = AtomicI64::new(-1);
static EVENT: AtomicU64 = AtomicU64::new(0);
static FIRED: AtomicU64 = AtomicU64::new(0);
static NESTED: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);
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
        1 => nested(world.work, 5, Some(22)),
        2 => nested(world.other, 6, Some(25)),
        3 => nested(world.crash, 0, None),
        4 => {
            // SAFETY: a word of the domain's data.
            unsafe { world.spin.write_volatile(LONG) };
            world.domain.interrupt();
        }
        5 => withdraw(world, libc::PROT_NONE),
        _ => {}
    }
}

fn withdraw(world: &World, rights: c_int) {
    // SAFETY: the page of the domain's data that has the loop counter.
    unsafe { libc::mprotect((world.spin as u64 & !4095) as *mut c_void, 4096, rights) };
}

/// `setjmp`, the host function, `longjmp`; then goes on behind them with the host function's result in `rax`. `ebx` numbers the
/// buffer, so that calls in a call do not share it.
fn jumps(code: &mut Code) {
    let place = |code: &mut Code| {
        code.put(&[0x89, 0xDF, 0xC1, 0xE7, 4, 0x81, 0xC7])
            .put(&data(4096).to_le_bytes()); // mov %ebx, %edi; shl $4, %edi; add $buffers, %edi
    };
    place(code);
    code.load_target(Code::stub(stub::SETJMP)).call();
    code.put(&[0x85, 0xC0, 0x0F, 0x85, 0, 0, 0, 0]); // test %eax, %eax; jne 1f
    let (over, from) = (code.here() - 4, code.here());
    code.put(&[0x89, 0xDF]); // mov %ebx, %edi
    code.load_import(0).call();
    place(code);
    code.put(&[0x65, 0x67, 0x48, 0x89, 0x47, 8]); // mov %rax, %gs:8(%edi)
    code.put(&[0xBE, 1, 0, 0, 0]); // mov $1, %esi
    code.load_target(Code::stub(stub::LONGJMP)).call();
    code.put(&[0x0F, 0x0B]);
    let distance = code.here() - from;
    code.0[over as usize..][..4].copy_from_slice(&distance.to_le_bytes());
    place(code);
    code.put(&[0x65, 0x67, 0x48, 0x8B, 0x47, 8]); // mov %gs:8(%edi), %rax
}

/// A module whose `work(x)` is `3x + 7`, by way of a host function, and whose `crash` crashes.
fn module(kind: Kind) -> Builder {
    let mut code = Code::default();
    let work = code.function();
    let spin = data(64);
    code.put(&[0x53, 0x89, 0xFB]); // push %rbx; mov %edi, %ebx
    let wait = |code: &mut Code| {
        code.put(&[0x65, 0x67, 0x8B, 0x0C, 0x25]).put(&spin.to_le_bytes()); // mov %gs:spin, %ecx
        code.put(&[0xFF, 0xC9, 0x75, 0xFC]); // 1: dec %ecx; jnz 1b
    };
    wait(&mut code);
    if kind == Kind::Jumps {
        jumps(&mut code);
    } else {
        code.load_import(0).call();
    }
    wait(&mut code);
    code.put(&[0x48, 0x8D, 0x04, 0x58, 0x5B, 0xC3]); // lea (%rax,%rbx,2), %rax; pop %rbx; ret
    let crash = code.function();
    match kind {
        Kind::Bare | Kind::Jumps => {}
        Kind::Vectors => _ = code.put(&[0x0F, 0x57, 0xC0]), // xorps %xmm0, %xmm0
        // xorps; fld1; fstp %st(0)
        Kind::X87 | Kind::Closure => _ = code.put(&[0x0F, 0x57, 0xC0, 0xD9, 0xE8, 0xDD, 0xD8]),
    }
    code.put(&[0x0F, 0x0B]);
    let mut initial = vec![0; 128];
    initial[64] = 1;
    Builder {
        text: code.0,
        data: initial,
        exports: vec![("work".into(), work), ("crash".into(), crash)],
        imports: vec!["add_seven".into()],
        ..Builder::default()
    }
}

/// A small module file to start from.
#[must_use]
pub fn seed() -> Vec<u8> {
    let mut builder = module(Kind::X87);
    builder.constructors = vec![builder.exports[0].1];
    builder.build()
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
    let signature = Signature {
        ints: 1,
        floats: 0,
        stack: 0,
        int_results: 1,
        float_results: 0,
        x87_results: 0,
        ..Signature::NOTHING
    };
    let make = || {
        let imports = if kind == Kind::Closure {
            Imports::new().closure("add_seven", |frame| {
                frame.result[0] = frame.ints[0].wrapping_add(7);
                Verdict::Return
            })
        } else {
            // SAFETY: a function of that signature.
            unsafe { Imports::new().plain("add_seven", add_seven as *const c_void, signature) }
        };
        domain_of(&module(kind), imports, &DomainOptions::default()).expect("a domain")
    };
    let (domain, other) = (make(), make());
    let thunk = |d: &Domain, name: &str| d.entry(name).expect("an export").thunk(signature);
    let world = Box::leak(Box::new(World {
        work: thunk(&domain, "work"),
        crash: thunk(&domain, "crash"),
        other: thunk(&other, "work"),
        spin: (domain.as_ref().base() + u64::from(data(64))) as *mut u32,
        domain,
    }));
    // Lanes are made before the handler is installed: the runtime takes its signals back when it makes one.
    assert_eq!(enter(world.work, 1), (10, 0));
    assert_eq!(enter(world.other, 1), (10, 0));
    WORLD.store(world, Ordering::Relaxed);
    // SAFETY: a handler for SIGTRAP, which stays.
    unsafe {
        STEPPED = world.work;
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_trap as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | if on_stack { libc::SA_ONSTACK } else { 0 };
        assert!(libc::sigaction(libc::SIGTRAP, &action, std::ptr::null_mut()) == 0);
    }
    EVENT.store(event as u64, Ordering::Relaxed);
    // SAFETY: a thunk of a function that takes an integer.
    let idle = unsafe { host::call(world.work, &[1; 6]) };
    let mut n = first;
    while outcome.violations.is_empty() {
        COUNT.store(0, Ordering::Relaxed);
        FIRED.store(0, Ordering::Relaxed);
        CHOSEN.store(n as i64, Ordering::Relaxed);
        // Not the number that the handler uses.
        let x = n + 16;
        // SAFETY: as above.
        let state = unsafe { host::call(rf_attack_stepped as *const c_void, &[x, 0, 0, 0, 0, 0]) };
        let status = last_status();
        outcome.calls += 1;
        withdraw(world, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a word of the domain's data.
        unsafe { world.spin.write_volatile(1) };
        let mut wrong = state.compare(&idle);
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
                if !expected(event, error.as_ref()) {
                    wrong.push(format!("ended with {error:?}"));
                }
            }
        }
        let bad = WRONG.load(Ordering::Relaxed);
        if bad != 0 {
            wrong.push(format!("the nested call's result {bad:#x}"));
        }
        if world.domain.faulted()
            && let Err(e) = world.domain.reset()
        {
            wrong.push(format!("reset: {e}"));
        }
        for (thunk, name) in [(world.work, "this domain"), (world.other, "the other domain")] {
            let after = enter(thunk, 2);
            if after != (13, 0) {
                wrong.push(format!("{name} gives {after:?} afterwards: {:?}", take_error()));
            }
        }
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

fn expected(event: Event, error: Option<&CallError>) -> bool {
    match (event, error) {
        (Event::CrashSame, Some(CallError::Faulted)) => true,
        // The crash ends all records of `setjmp`; a call that is past the gate's look at the fault may ask for one.
        (Event::CrashSame, Some(CallError::Fault(f))) => matches!(
            f.kind,
            FaultKind::Elsewhere | FaultKind::IllegalInstruction | FaultKind::Host(_)
        ),
        (Event::Interrupt, Some(CallError::Fault(f))) => f.kind == FaultKind::Interrupted,
        (Event::Withdraw, Some(CallError::Fault(f))) => matches!(f.kind, FaultKind::BadAccess { .. }),
        _ => false,
    }
}
