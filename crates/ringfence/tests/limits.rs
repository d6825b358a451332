//! More than fits: domains, lanes, arguments. Typed errors, and afterwards everything works as before. A program of its
//! own, since it uses up what the process has.

mod support;

use ringfence::{
    Backend, Domain, DomainError, DomainOptions, Error, Imports, LoadError, LoadOptions, Module,
};
use support::Start as _;
use support::{basic_imports, build, module};

/// Held by tests that need what another one uses up.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[test]
fn more_domains_than_fit() -> Result<(), Error> {
    needs!(Fence);
    let _alone = ALONE.lock();
    let module = module("basic");
    let mut all: Vec<Domain> = Vec::new();
    // Where a domain takes a process it takes descriptors too: few enough for the machine.
    let own_process = support::backend() == Backend::Process;
    if own_process {
        let few = libc::rlimit {
            rlim_cur: 200,
            rlim_max: 200,
        };
        // SAFETY: a struct of ours.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const few) };
    }
    let least = if own_process { 20 } else { 1000 };
    let e = loop {
        match module.start(basic_imports()) {
            Ok(d) => all.push(d),
            Err(e) => break e,
        }
        assert!(all.len() < 40_000, "47 bits of addresses hold 32,768 windows");
    };
    let expected = match &e {
        DomainError::Worker { .. } => own_process,
        e => matches!(e, DomainError::Host(_)),
    };
    assert!(expected, "{e}");
    assert!(all.len() > least, "only {} domains fit: {e}", all.len());
    // Those that are there work, with room for the stacks that a first call needs.
    all.truncate(all.len() - least / 20);
    for d in all.iter().step_by(500) {
        assert_eq!(d.func::<(i32, i32), i32>("add")?.call(1, 2)?, 3);
    }
    all.truncate(10);
    for _ in 0..least / 10 {
        all.push(module.start(basic_imports())?);
    }
    Ok(())
}

#[test]
fn options_that_cannot_work() {
    needs!(Limits);
    let _alone = ALONE.lock();
    let module = module("basic");
    let with = |change: &dyn Fn(&mut DomainOptions)| {
        let mut options = support::options();
        change(&mut options);
        Domain::instantiate(std::slice::from_ref(&module), basic_imports(), &options)
    };
    for change in [
        &(|o: &mut DomainOptions| o.data_stack = u32::MAX) as &dyn Fn(&mut DomainOptions),
        &|o| o.max_lanes = 64,
        &|o| o.max_lanes = u32::MAX,
    ] {
        let e = with(change).map(drop).unwrap_err();
        assert!(matches!(e, DomainError::Option { .. }), "{e}");
    }
    assert!(matches!(
        Domain::instantiate(&[], Imports::new(), &support::options()),
        Err(DomainError::Layout { .. })
    ));
}

#[test]
fn a_domain_of_one_lane() -> Result<(), Error> {
    needs!(Limits);
    let _alone = ALONE.lock();
    let mut options = support::options();
    options.max_lanes = 1;
    let d = Domain::instantiate(&[module("basic")], basic_imports(), &options)?;
    let add = d.func::<(i32, i32), i32>("add")?;
    assert_eq!(add.call(1, 2)?, 3);
    std::thread::scope(|s| {
        s.spawn(|| {
            let e = add.call(1, 2).unwrap_err();
            assert!(e.to_string().contains("lane"), "{e}");
        });
    });
    assert_eq!(add.call(1, 2)?, 3);
    Ok(())
}

#[test]
fn files_that_are_no_modules() -> Result<(), Box<dyn std::error::Error>> {
    let options = LoadOptions::default();
    let bytes = std::fs::read(build("basic", &[]))?;
    assert!(matches!(
        Module::open("/nonexistent"),
        Err(LoadError::Read { .. })
    ));
    assert!(matches!(Module::open("/"), Err(LoadError::Read { .. })));
    assert!(matches!(Module::open("/dev/null"), Err(LoadError::Read { .. })));
    // The test program itself is an ELF file, but no module.
    assert!(matches!(
        Module::open(std::env::current_exe()?),
        Err(LoadError::NotModule { .. })
    ));
    // Another architecture, another class, another byte order.
    for (at, value) in [(18, 0xB7), (4, 1), (5, 2), (16, 2), (0, 0)] {
        let mut other = bytes.clone();
        other[at] = value;
        let e = Module::from_bytes("other", &other, &options).unwrap_err();
        assert!(
            matches!(e, LoadError::NotModule { .. } | LoadError::Malformed { .. }),
            "byte {at}: {e}"
        );
    }
    // Whatever is cut off or overwritten: an error or a module that was verified, never a crash.
    for cut in (0..bytes.len()).step_by(61) {
        let _ = Module::from_bytes("cut", &bytes[..cut], &options);
    }
    // Where a domain takes a process, fewer of them.
    let step = if support::backend() == Backend::Process {
        61
    } else {
        1
    };
    for at in (0..0x400).step_by(step) {
        for value in [0, 0xFF, bytes[at] ^ 1, bytes[at] ^ 0x80] {
            let mut bad = bytes.clone();
            bad[at] = value;
            if let Ok(module) = Module::from_bytes("bad", &bad, &options) {
                let _ = module.start(basic_imports());
            }
        }
    }
    Ok(())
}

#[test]
fn code_that_the_verifier_refuses() -> Result<(), Box<dyn std::error::Error>> {
    let mut bytes = std::fs::read(build("basic", &[]))?;
    // `cmp $-1, %edi` in one of the functions becomes `syscall` and a no-op.
    let at = bytes
        .windows(3)
        .position(|w| w == [0x83, 0xFF, 0xFF])
        .ok_or("the instruction is not there")?;
    bytes[at..at + 3].copy_from_slice(&[0x0F, 0x05, 0x90]);
    let e = Module::from_bytes("evil", &bytes, &LoadOptions::default()).unwrap_err();
    assert!(matches!(e, LoadError::Rejected { .. }), "{e}");
    assert!(e.to_string().contains("system call"), "{e}");
    Ok(())
}
