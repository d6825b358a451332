//! A module that means harm, and what becomes of each attempt.

use crate::show::Show;
use ringfence::{CallError, Domain, Error, Fault, Imports, Module, Ptr};
use std::path::Path;
use std::time::{Duration, Instant};

/// What the attacks are after.
const SECRET: u64 = 0x5EC2_E700_0000_0001;
/// How long a call may take.
const LIMIT: Duration = Duration::from_millis(50);

/// Where the module would like to jump.
extern "C" fn host_function() {
    println!(" !! the module ran a host function that it was never given");
}

/// Lets the module try one thing after the other.
pub fn run(show: &mut Show, file: &Path) -> Result<(), Error> {
    show.title("A hostile module: every attempt is an error of the call, and the host goes on");
    let domain = Module::open(file)?.instantiate(Imports::new())?;
    domain.set_time_limit(Some(LIMIT))?;
    let secret = Box::new(SECRET);
    let address = std::ptr::from_ref::<u64>(&secret) as u64;
    let host_code = host_function as *const () as u64;

    let pointer = Ptr::<u64>::from_address;
    let name = "wild read";
    let read = domain.func::<(Ptr<u64>,), u64>("wild_read")?;
    // an address outside names a place inside: the lower half counts. What is there is the module's own, or nothing
    match read.call(pointer(address)) {
        Ok(value) => {
            let value = value.check(|_| true)?;
            show.check(
                name,
                value != SECRET,
                "came to an address of its own, not to the secret",
            );
        }
        failed => attempt(show, &domain, name, failed.map(drop))?,
    }
    let write = domain.func::<(Ptr<u64>,), ()>("wild_write")?;
    attempt(
        show,
        &domain,
        "wild write",
        write.call(pointer(address)).map(drop),
    )?;
    show.check(
        "the secret",
        *std::hint::black_box(&secret) == Box::new(SECRET),
        "is what it was",
    );
    let jump = domain.func::<(Ptr<()>,), ()>("jump_into_host")?;
    attempt(
        show,
        &domain,
        "jump into the host",
        jump.call(Ptr::from_address(host_code)).map(drop),
    )?;
    let smash = domain.func::<(), i32>("smash_return_address")?;
    attempt(show, &domain, "smashed return address", smash.call().map(drop))?;
    let recurse = domain.func::<(u64,), u64>("recurse")?;
    attempt(show, &domain, "endless recursion", recurse.call(0).map(drop))?;
    let forever = domain.func::<(), ()>("loop_forever")?;
    let start = Instant::now();
    attempt(show, &domain, "endless loop", forever.call().map(drop))?;
    let late = start.elapsed().saturating_sub(LIMIT);
    show.fact(
        "",
        &format!(
            "ended {:.1} ms after its {} ms",
            late.as_secs_f64() * 1e3,
            LIMIT.as_millis()
        ),
    );
    Ok(())
}

/// Shows how one attempt ended, resets the domain and lets it do honest work.
fn attempt(show: &mut Show, domain: &Domain, name: &str, result: Result<(), CallError>) -> Result<(), Error> {
    match result {
        Err(CallError::Fault(fault)) => show.check(name, true, &describe(&fault)),
        Err(other) => show.fail(name, &other.to_string()),
        Ok(()) => show.fail(name, "came back as if nothing had happened"),
    }
    domain.reset()?;
    let works = domain
        .func::<(i32, i32), i32>("add")?
        .call(20, 22)?
        .one_of(&[42])
        .is_ok();
    if !works {
        show.fail(name, "the domain does not work after its reset");
    }
    Ok(())
}

/// One line of a fault: what, and where in the module's source.
fn describe(fault: &Fault) -> String {
    let frames = fault.backtrace();
    let place = frames.first().and_then(|frame| {
        let file = Path::new(frame.file.as_ref()?).file_name()?.to_str()?;
        Some(format!("{}, {file}:{}", frame.function.as_ref()?, frame.line?))
    });
    format!(
        "{:<40} {}",
        fault.kind.to_string(),
        place.unwrap_or_else(|| "in an unknown place".to_owned())
    )
}
