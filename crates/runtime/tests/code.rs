//! Code that comes to a living domain and goes again, and what can be tried with that.

mod support;

use ringfence_runtime::{
    Call, CallError, Code, CodeError, Domain, DomainError, DomainOptions, Entry, FaultKind, InUse,
    ModuleError, OnFailure, Signature,
};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use support::living::{Callers, Named, PATIENCE, is_bad_target, run};
use support::{build, call, domain, domain_with, entry, imports, in_child, module};

/// What begins a function that can be called through a pointer.
const MARKER: [u8; 8] = [0x0F, 0x1F, 0x84, 0x00, 0xFF, 0xFF, 0x9A, 0x62];
/// `andl $-8,%r11d; cmpl $FUNCTION,%gs:4(%r11d); cmovnel %r14d,%r11d; addq %r14,%r11`, without what it ends in.
const CHECK: [u8; 21] = [
    0x41, 0x83, 0xE3, 0xF8, 0x65, 0x67, 0x41, 0x81, 0x7B, 0x04, 0xFF, 0xFF, 0x9A, 0x62, 0x45, 0x0F, 0x45,
    0xDE, 0x4D, 0x01, 0xF3,
];

/// A marker, and then code.
fn function(code: &[u8]) -> Vec<u8> {
    [&MARKER, code].concat()
}

/// `leal n(%rdi,%rsi), %eax; ret`
fn adds(n: u8) -> Vec<u8> {
    function(&[0x8D, 0x44, 0x37, n, 0xC3])
}

/// Calls `stub` with its own arguments, and returns 7.
fn calls_out(stub: u32) -> Vec<u8> {
    let address = ringfence_isa::window::stub_at(stub);
    let mut code = vec![0x41, 0xBB];
    code.extend(address.to_le_bytes());
    // The identifier in the compare must not lie at 4 modulo 8: 8 + 6 + 1 + 10 = 25.
    code.push(0x90);
    code.extend(CHECK);
    code.extend([0x41, 0xFF, 0xD3]); // call *%r11
    code.extend([0xB8, 7, 0, 0, 0, 0xC3]); // movl $7, %eax; ret
    function(&code)
}

fn code(bytes: &[u8]) -> Code<'_> {
    Code { bytes, entry: 0 }
}

/// A domain whose `host_call(f, x)` runs what is in the slot.
type Callback = Box<dyn FnMut(&Domain) + Send>;

struct Hooked {
    domain: Domain,
    hook: Arc<Mutex<Option<Callback>>>,
}

/// The number of the stub for `host_call` in the test module, which the domain itself calls through it.
fn hooked() -> Hooked {
    let hook: Arc<Mutex<Option<Callback>>> = Arc::default();
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let (h, o) = (hook.clone(), own.clone());
    let imports = imports().closure("host_call", move |_| {
        let mut hook = h.lock().unwrap();
        if let (Some(hook), Some(domain)) = (hook.as_mut(), o.get()) {
            hook(domain);
        }
        Ok(())
    });
    let domain = Domain::new(&[module()], imports, &DomainOptions::default()).expect("domain");
    assert!(own.set(domain.clone()).is_ok());
    Hooked { domain, hook }
}

impl Hooked {
    fn on_call(&self, hook: impl FnMut(&Domain) + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
    }

    /// The stub that the module's `host_call` is bound to: the one that reaches the hook.
    fn stub(&self) -> u32 {
        let reached = Arc::new(AtomicBool::new(false));
        for stub in 16..32 {
            let seen = reached.clone();
            self.on_call(move |_| seen.store(true, Ordering::SeqCst));
            let bytes = calls_out(stub);
            let e = self.domain.add_code("probe", &code(&bytes)).expect("added");
            let _ = run(&e, &[0, 0]);
            if self.domain.faulted() {
                self.domain.reset().expect("reset");
            } else {
                self.domain.remove_code("probe").expect("removed");
            }
            if reached.load(Ordering::SeqCst) {
                return stub;
            }
        }
        panic!("no stub reaches host_call");
    }
}

#[test]
fn added_code_is_called_by_host_and_domain() {
    let d = domain();
    let e = d.add_code("sum", &code(&adds(1))).expect("added");
    assert_eq!(run(&e, &[2, 3]).unwrap(), 6);
    assert_eq!(call(&d, "through", &[e.address(), 20, 30]).unwrap(), 52);
    assert_eq!(run(&d.find_code("sum").unwrap(), &[1, 1]).unwrap(), 3);
    assert_eq!(run(&d.entry("sum").unwrap(), &[1, 2]).unwrap(), 4);
    assert_eq!(
        run(&d.entry_by_address(e.address()).unwrap(), &[1, 3]).unwrap(),
        5
    );
    assert_eq!(d.code_names(), ["sum"]);
    assert_eq!(d.code_bytes(), 64);
    // With arguments on the stack too, and through a plain pointer.
    let mut long = Call {
        ints: [4, 5, 0, 0, 0, 0],
        stack: &[1, 2, 3],
        ..Call::default()
    };
    assert_eq!(e.call(&mut long).unwrap().rax, 10);
    type Sum = extern "C" fn(u64, u64) -> u64;
    let signature = Signature {
        ints: 2,
        floats: 0,
        stack: 0,
        int_results: 1,
        float_results: 0,
        x87_results: 0,
        ..Signature::NOTHING
    };
    // SAFETY: a thunk for two integers and an integer result.
    let thunk = unsafe { std::mem::transmute::<*const std::ffi::c_void, Sum>(e.thunk(signature)) };
    assert_eq!(thunk(6, 7), 14);
    d.remove_code("sum").expect("removed");
    assert!(matches!(run(&e, &[2, 3]), Err(CallError::Removed)));
    assert!(matches!(e.call(&mut long), Err(CallError::Removed)));
    assert_eq!(thunk(6, 7), 0);
    assert!(matches!(
        ringfence_runtime::domain::take_error(),
        Some(CallError::Removed)
    ));
    assert!(!d.faulted(), "the host's calls do not reach the domain");
    assert!(matches!(d.find_code("sum"), Err(CodeError::Unknown { .. })));
    assert!(matches!(d.entry("sum"), Err(DomainError::NoExport { .. })));
    assert!(matches!(
        d.entry_by_address(e.address()),
        Err(DomainError::NoEntry { .. })
    ));
    assert_eq!(d.code_bytes(), 0);
    assert!(
        is_bad_target(call(&d, "through", &[e.address(), 20, 30])),
        "a stale pointer"
    );
}

#[test]
fn added_pieces_call_each_other_without_a_gate() {
    let d = domain();
    let one = d.add_code("one", &code(&adds(1))).unwrap();
    // movl %edx, %r11d; (check); jmp *%r11: the identifier at 8 + 3 + 10 = 21.
    let mut tail = vec![0x41, 0x89, 0xD3];
    tail.extend(CHECK);
    tail.extend([0x41, 0xFF, 0xE3]);
    let jumps = d.add_code("jumps", &code(&function(&tail))).unwrap();
    assert_eq!(run(&jumps, &[5, 6, one.address()]).unwrap(), 12);
    assert_eq!(run(&jumps, &[5, 6, entry(&d, "add").address()]).unwrap(), 11);
    d.remove_code("one").unwrap();
    assert!(is_bad_target(run(&jumps, &[5, 6, one.address()])));
}

#[test]
fn names_are_unique_and_known() {
    let d = domain();
    d.add_code("f", &code(&adds(1))).unwrap();
    assert!(matches!(
        d.add_code("f", &code(&adds(2))),
        Err(CodeError::Exists { .. })
    ));
    assert!(
        matches!(d.add_code("add", &code(&adds(2))), Err(CodeError::Exists { .. })),
        "an export"
    );
    assert_eq!(
        run(&d.find_code("f").unwrap(), &[1, 1]).unwrap(),
        3,
        "the first is still there"
    );
    assert!(matches!(d.remove_code("g"), Err(CodeError::Unknown { .. })));
    assert!(matches!(d.find_code("g"), Err(CodeError::Unknown { .. })));
    assert!(
        matches!(d.remove_code("add"), Err(CodeError::Unknown { .. })),
        "exports stay"
    );
    assert!(matches!(
        d.add_code("e", &code(&[])),
        Err(CodeError::Empty { .. })
    ));
    d.remove_code("f").unwrap();
    let again = d.add_code("f", &code(&adds(9))).unwrap();
    assert_eq!(run(&again, &[1, 1]).unwrap(), 11);
}

#[test]
fn only_verified_code_is_added() {
    let d = domain();
    let label = [0x0F, 0x1F, 0x84, 0x00, 0x07, 0x00, 0x9A, 0x62];
    let mut hidden = vec![0x90; 3];
    hidden.extend([0xB8, 0xFF, 0xFF, 0x9A, 0x62, 0xC3]); // movl $identifier, %eax at 8 + 3: its operand at 12
    let mut direct = vec![0xE8];
    direct.extend(0x1000i32.to_le_bytes());
    // addl $0, %eax; andl $0, %eax; a jump through a table whose only distance, 0x562, begins with the identifier's last byte. Until the
    // identifier is written it is 0x5CC, where a jump lands in the middle of a movabs.
    let mut table = function(&[
        0x05, 0, 0, 0, 0, 0x83, 0xE0, 0, 0x4C, 0x8D, 0x1D, 0xF0, 0xFF, 0xFF, 0xFF,
    ]);
    table.extend([
        0x65, 0x67, 0x45, 0x03, 0x1C, 0xC3, 0x4D, 0x01, 0xF3, 0x41, 0xFF, 0xE3,
    ]);
    table.resize(7 + 0x562, 0xCC);
    table.push(0xC3);
    table.resize(7 + 0x5CC - 2, 0x90);
    table.extend([0x48, 0xB8, 0x48, 0x89, 0x07, 0xC3, 0x90, 0x90, 0x90, 0x90, 0xC3]);
    for (what, bytes) in [
        ("no end", function(&[0x90; 56])),
        ("a plain load", function(&[0x8B, 0x07, 0xC3])),
        ("syscall", function(&[0x0F, 0x05, 0xC3])),
        ("pop beyond the entry", function(&[0x58, 0xC3])),
        ("writes r14", function(&[0x49, 0x89, 0xFE, 0xC3])),
        ("a marker in an immediate", function(&hidden)),
        (
            "a label",
            [function(&[0xC3]), vec![0xCC; 7], label.to_vec(), vec![0xC3]].concat(),
        ),
        ("a call out of the piece", function(&direct)),
        ("a jump out of the piece", function(&[0xEB, 0x70])),
        ("a jump back out of it", function(&[0xEB, 0x80])),
        ("data behind the end", function(&[0xC3, 0x06])),
        ("a table over an identifier", table),
    ] {
        let result = d.add_code(what, &code(&bytes));
        assert!(
            matches!(result, Err(CodeError::Rejected { .. })),
            "{what}: {result:?}"
        );
        assert!(d.find_code(what).is_err(), "{what}");
    }
    let bytes = adds(1);
    for entry in [2, 9, 64, u32::MAX] {
        let result = d.add_code("entry", &Code { bytes: &bytes, entry });
        assert!(
            matches!(result, Err(CodeError::Rejected { .. })),
            "{entry}: {result:?}"
        );
    }
    assert_eq!(d.code_bytes(), 0);
    assert_eq!(call(&d, "add", &[2, 3]).unwrap(), 5);
}

#[test]
fn registers_that_the_gates_do_not_keep_are_refused() {
    let out = build("plain", &[]);
    let bytes = std::fs::read(&out).unwrap();
    let _ = std::fs::remove_file(out);
    let plain = ringfence_runtime::Module::from_bytes("plain.rf", &bytes, &Default::default()).unwrap();
    assert!(
        !plain.report().uses_vector && !plain.report().uses_x87,
        "the test needs a module without"
    );
    let out = build("extended", &["--import=host_add"]);
    let extended = ringfence_runtime::Module::open(&out, &Default::default()).unwrap();
    let _ = std::fs::remove_file(out);
    let vector = function(&[0x0F, 0x57, 0xC0, 0xC3]); // xorps
    let x87 = function(&[0xD9, 0xE8, 0xDD, 0xD8, 0xC3]); // fld1; fstp %st(0)
    let mut options = DomainOptions::default();
    for (extensible, kept) in [(false, false), (true, false), (true, true)] {
        options.extensible = extensible;
        options.x87 = kept;
        let d = Domain::new(std::slice::from_ref(&plain), imports(), &options).unwrap();
        let result = d.add_code("v", &code(&vector));
        if extensible {
            run(&result.unwrap(), &[]).unwrap();
        } else {
            assert!(
                matches!(result, Err(CodeError::Registers { what: "vector", .. })),
                "{result:?}"
            );
        }
        let result = d.add_code("x", &code(&x87));
        let module = d.add("m", &extended);
        if kept {
            run(&result.unwrap(), &[]).unwrap();
            module.unwrap();
        } else {
            assert!(
                matches!(result, Err(CodeError::Registers { what: "x87", .. })),
                "{result:?}"
            );
            assert!(
                matches!(module, Err(ModuleError::Registers { what: "x87", .. })),
                "{module:?}"
            );
        }
    }
}

#[test]
fn code_may_span_pages_and_fill_the_arena() {
    let mut options = DomainOptions::default();
    options.code_limit = 128 << 10;
    let d = domain_with(&options);
    // Three pages of `incl %eax`, so that control walks over two borders.
    let mut long = vec![0x31, 0xC0];
    long.extend([0xFF, 0xC0].repeat(6000));
    long.push(0xC3);
    let long = function(&long);
    let mut names = Vec::new();
    let full = loop {
        let name = format!("f{}", names.len());
        match d.add_code(&name, &code(&long)) {
            Ok(e) => assert_eq!(run(&e, &[]).unwrap(), 6000),
            Err(e) => break e,
        }
        names.push(name);
    };
    assert!(
        matches!(full, CodeError::Full { limit, .. } if limit == 128 << 10),
        "{full:?}"
    );
    assert_eq!(names.len(), (128 << 10) / long.len().next_multiple_of(64));
    // The smallest still fits, and one that is too long for ever does not.
    d.add_code("small", &code(&adds(0))).unwrap();
    assert!(matches!(
        d.add_code("huge", &code(&[0xCC; 200 << 10])),
        Err(CodeError::Full { .. })
    ));
    for name in &names {
        assert_eq!(
            run(&d.find_code(name).unwrap(), &[]).unwrap(),
            6000,
            "{name} is as before"
        );
        d.remove_code(name).unwrap();
    }
    d.remove_code("small").unwrap();
    assert_eq!(d.code_bytes(), 0);
    // All of it is one free piece again.
    let whole = [function(&[0xC3]), vec![0xCC; (128 << 10) - 9]].concat();
    d.add_code("whole", &code(&whole)).unwrap();
    assert_eq!(d.code_bytes(), 128 << 10);
}

#[test]
fn nothing_is_left_of_removed_code() {
    let d = domain();
    let secret = [0xB8, 0x53, 0x45, 0x43, 0x52, 0xC3]; // movl $"SECR", %eax; ret
    let e = d.add_code("s", &code(&function(&secret))).unwrap();
    let mut bytes = [0; 64];
    d.as_ref().read(e.address(), &mut bytes).unwrap();
    assert_eq!(bytes[..14], function(&secret));
    assert!(bytes[14..].iter().all(|&b| b == 0xCC));
    d.remove_code("s").unwrap();
    d.as_ref().read(e.address(), &mut bytes).unwrap();
    assert_eq!(bytes, [0xCC; 64]);
    assert!(
        d.as_ref().write(e.address(), &[0xC3]).is_err(),
        "the window's side is not writable"
    );
}

#[test]
fn stale_pointers_do_not_enter_new_code() {
    let d = domain();
    let old = d
        .add_code(
            "old",
            &Code {
                bytes: &[vec![0xCC; 64], adds(1)].concat(),
                entry: 64,
            },
        )
        .unwrap();
    let pointer = old.address();
    d.remove_code("old").unwrap();
    // Something else where it was, without a marker at that place.
    let mut other = vec![0x31, 0xC0];
    other.extend([0xFF, 0xC0].repeat(60));
    other.push(0xC3);
    let new = d.add_code("new", &code(&function(&other))).unwrap();
    assert!(
        pointer > new.address() && pointer < new.address() + 128,
        "the place is used again"
    );
    assert!(is_bad_target(call(&d, "through", &[pointer, 1, 2])));
    assert!(matches!(run(&old, &[1, 2]), Err(CallError::Removed)));
}

#[test]
fn reset_drops_added_code() {
    let d = domain();
    let e = d.add_code("f", &code(&adds(1))).unwrap();
    d.reset().unwrap();
    assert!(matches!(run(&e, &[1, 1]), Err(CallError::Removed)));
    assert!(d.code_names().is_empty());
    assert!(!is_bad_target(call(&d, "add", &[1, 1])));
    assert!(call(&d, "through", &[e.address(), 1, 1]).is_err());
    d.reset().unwrap();
    assert_eq!(
        run(&d.add_code("f", &code(&adds(5))).unwrap(), &[1, 1]).unwrap(),
        7
    );
}

#[test]
fn code_on_the_stack_stays() {
    let h = hooked();
    let stub = h.stub();
    let bytes = calls_out(stub);
    let e = h.domain.add_code("caller", &code(&bytes)).unwrap();
    h.domain.add_code("other", &code(&adds(3))).unwrap();
    let results: Arc<Mutex<Vec<Result<(), CodeError>>>> = Arc::default();
    let seen = results.clone();
    let places: Arc<Mutex<Vec<u64>>> = Arc::default();
    let added = places.clone();
    h.on_call(move |d| {
        let mut seen = seen.lock().unwrap();
        seen.push(d.remove_code("caller"));
        let other = d.find_code("other").unwrap().address();
        seen.push(d.remove_code("other"));
        // Its place is not used while the call goes on.
        let again = d.add_code("again", &code(&adds(4))).unwrap();
        added.lock().unwrap().extend([other, again.address()]);
        assert_eq!(run(&again, &[1, 1]).unwrap(), 6, "nested");
        d.remove_code("again").unwrap();
    });
    // Directly, and below a frame of the module.
    assert_eq!(run(&e, &[1, 2]).unwrap(), 7);
    {
        let results = std::mem::take(&mut *results.lock().unwrap());
        assert!(
            matches!(
                &results[..],
                [Err(CodeError::InUse(InUse::OnStack { .. })), Ok(())]
            ),
            "{results:?}"
        );
        let places = std::mem::take(&mut *places.lock().unwrap());
        assert_ne!(places[0], places[1]);
    }
    h.domain.add_code("other", &code(&adds(3))).unwrap();
    assert_eq!(call(&h.domain, "through", &[e.address(), 1, 2]).unwrap(), 8);
    assert!(matches!(
        &results.lock().unwrap()[..],
        [Err(CodeError::InUse(InUse::OnStack { .. })), Ok(())]
    ));
    // It has returned.
    h.on_call(|_| {});
    assert_eq!(run(&e, &[1, 2]).unwrap(), 7);
    h.domain.remove_code("caller").unwrap();
    assert_eq!(h.domain.code_bytes(), 0);
}

#[test]
fn a_pointer_to_the_code_on_the_stack_does_not_hold_it() {
    let h = hooked();
    let e = h.domain.add_code("f", &code(&adds(1))).unwrap();
    h.on_call(|d| d.remove_code("f").expect("only its address is on the stack"));
    // The module passes the pointer through the host.
    assert_eq!(call(&h.domain, "call_host_with", &[e.address(), 5]).unwrap(), 5);
    assert!(matches!(run(&e, &[1, 2]), Err(CallError::Removed)));
}

#[test]
fn other_threads_inside_keep_code_added() {
    let d = domain();
    let e = d.add_code("f", &code(&adds(1))).unwrap();
    let spinning = {
        let d = d.clone();
        std::thread::spawn(move || call(&d, "forever", &[]))
    };
    let busy = loop {
        match d.remove_code("f") {
            Err(e) => break e,
            Ok(()) => drop(d.add_code("f", &code(&adds(1))).unwrap()),
        }
    };
    assert!(
        matches!(busy, CodeError::InUse(InUse::Busy { lanes: 1, .. })),
        "{busy:?}"
    );
    let e = d.find_code("f").unwrap_or(e);
    assert_eq!(run(&e, &[1, 1]).unwrap(), 3, "as before");
    assert_eq!(call(&d, "through", &[e.address(), 1, 1]).unwrap(), 4);
    d.add_code("g", &code(&adds(2))).expect("adding needs no quiet");
    d.interrupt();
    assert!(spinning.join().unwrap().is_err());
    d.remove_code("f").unwrap();
}

/// One thread calls through a pointer as fast as it can, another adds and removes what it points to. What comes back is
/// the result of code that was added there, or a fault of the domain, and never anything else.
#[test]
fn calls_race_with_adding() {
    let d = domain();
    let pointer = d.add_code("f", &code(&adds(0))).unwrap().address();
    let named = Named {
        find: |d| d.find_code("f").ok(),
        args: &[100, 1000],
        results: 1100..1200,
    };
    let callers = Callers::start(&d, pointer, 1101..1101 + 100, named);
    let begin = Instant::now();
    let (mut round, mut added, mut busy, mut resets) = (0u8, 0u64, 0u64, 0u64);
    // As many as prove something, however busy the machine is.
    let enough = |added: u64| added > 400 && begin.elapsed() > Duration::from_millis(1500);
    while !enough(added) && begin.elapsed() < PATIENCE {
        round = (round + 1) % 90;
        match d.remove_code("f") {
            Ok(()) => added += 1,
            Err(CodeError::InUse(InUse::Busy { .. })) => busy += 1,
            Err(CodeError::Unknown { .. }) => {}
            Err(e) => panic!("{e:?}"),
        }
        // At another place now and then, and with its marker at another offset of it.
        let pad = usize::from(round % 3) * 64;
        let bytes = [vec![0xCC; pad], adds(round)].concat();
        match d.add_code(
            "f",
            &Code {
                bytes: &bytes,
                entry: pad as u32,
            },
        ) {
            Ok(e) => callers.pointer.store(e.address(), Ordering::Relaxed),
            Err(CodeError::Exists { .. }) => {}
            Err(e) => panic!("{e:?}"),
        }
        if d.faulted() && d.reset().is_ok() {
            resets += 1;
        }
    }
    let (good, bad) = callers.stop();
    println!("{good} good calls, {bad} faults, {added} added, {busy} busy, {resets} resets");
    assert!(good > 100 && added > 100);
}

#[test]
fn a_forked_child_has_added_code_of_its_own() {
    in_child("a_forked_child_has_added_code_of_its_own", || {
        let d = domain();
        let e = d.add_code("f", &code(&adds(1))).unwrap();
        let both = |d: &Domain, first: &Entry, n: u8| {
            assert_eq!(run(first, &[1, 1]).unwrap(), 3);
            d.remove_code("f").unwrap();
            let new = d.add_code("f", &code(&adds(n))).unwrap();
            assert_eq!(run(&new, &[1, 1]).unwrap(), 2 + u64::from(n));
            let pointer = new.address();
            assert_eq!(call(d, "through", &[pointer, 1, 1]).unwrap(), 3 + u64::from(n));
        };
        let mut pipe = [0; 2];
        // SAFETY: a pipe and a child of our own.
        let child = unsafe {
            assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
            libc::fork()
        };
        let mut byte = [0u8];
        if child == 0 {
            // The parent has changed its own by now.
            // SAFETY: reads one byte into a buffer of one.
            assert_eq!(unsafe { libc::read(pipe[0], byte.as_mut_ptr().cast(), 1) }, 1);
            both(&d, &e, 20);
            // SAFETY: ends the child without running the test harness again.
            unsafe { libc::_exit(0) };
        }
        both(&d, &e, 30);
        let mut status = -1;
        // SAFETY: writes one byte; waits for our own child.
        unsafe {
            libc::write(pipe[1], byte.as_ptr().cast(), 1);
            libc::waitpid(child, &raw mut status, 0);
        }
        assert_eq!(status, 0, "the child");
        let f = d.find_code("f").unwrap();
        assert_eq!(
            run(&f, &[1, 1]).unwrap(),
            32,
            "the child has not changed the parent's"
        );
    });
}

#[test]
fn what_was_granted_to_another_domain_goes_with_the_code() {
    let a = domain();
    let two = Signature {
        ints: 2,
        int_results: 1,
        ..Signature::NOTHING
    };
    let b = Domain::new(
        &[module()],
        imports().slot("host_add", two, OnFailure::End),
        &DomainOptions::default(),
    )
    .expect("domain");
    let e = a.add_code("f", &code(&adds(1))).unwrap();
    let grant = b.grant("host_add", &e).unwrap();
    assert_eq!(call(&b, "call_out", &[10, 20]).unwrap(), 32);
    a.remove_code("f").unwrap();
    assert!(!grant.is_live());
    let failed = call(&b, "call_out", &[10, 20]);
    assert!(
        matches!(&failed, Err(CallError::Fault(f)) if matches!(f.kind, FaultKind::Host(_))),
        "{failed:?}"
    );
    assert!(!a.faulted());
    // Granted when it is gone already.
    b.reset().unwrap();
    assert!(!b.grant("host_add", &e).unwrap().is_live());
}

#[test]
fn a_domain_that_goes_takes_added_code_with_it() {
    let d = domain();
    let e = d.add_code("f", &code(&adds(1))).unwrap();
    type Sum = extern "C" fn(u64, u64) -> u64;
    // SAFETY: a thunk that passes all registers.
    let thunk = unsafe { std::mem::transmute::<*const std::ffi::c_void, Sum>(e.thunk(Signature::UNKNOWN)) };
    assert_eq!(thunk(1, 2), 4);
    drop(e);
    drop(d);
    assert_eq!(thunk(1, 2), 0);
    assert!(ringfence_runtime::domain::take_error().is_some());
}
