//! A host that closes descriptors which are not its own, as daemons do when they start, and opens files that get their numbers.

mod support;

use std::fs::File;
use std::io::Read;
use std::os::fd::IntoRawFd;

use ringfence::{Backend, Domain, DomainOptions, Imports, Region, Rights};
use support::workers::{LOOPS, make, worker_of};

/// As many descriptors as are closed, and taken by another file.
const NUMBERS: i32 = 200;

/// What nobody may change, large enough for a window's pages to lie in it.
fn victim() -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("ringfence-closed-{}", std::process::id()));
    std::fs::write(&path, vec![0xAB; 1 << 20]).unwrap();
    path
}

#[test]
fn files_that_get_the_numbers_of_the_runtimes_are_left_alone() {
    let module = support::from_text(LOOPS, &[]);
    let mut options = DomainOptions::default();
    options.backend = Backend::Window;
    options.extensible = true;
    let window = || Domain::instantiate(std::slice::from_ref(&module), Imports::new(), &options);
    let first = window().unwrap();
    let (second, worker) = worker_of(|| make(&module, Imports::new()));
    let third = worker_of(|| make(&module, Imports::new())).0;
    let region = Region::new(4096).unwrap();
    let same = |domain: &Domain| domain.func::<(i32,), i32>("same").unwrap();
    let calls = [same(&first), same(&second), same(&third)];
    let path = victim();

    let file = File::options().read(true).write(true).open(&path).unwrap();
    let file = file.into_raw_fd();
    // SAFETY: the point of the test. All numbers from 3 on are of the one file then.
    unsafe {
        let high = libc::dup2(file, NUMBERS);
        assert_eq!(high, NUMBERS);
        for number in 3..NUMBERS {
            assert_eq!(libc::dup2(high, number), number);
        }
    }
    // What there is goes on.
    for call in &calls {
        assert_eq!(call.call(5).unwrap(), 5);
    }
    first.reset().unwrap();
    assert_eq!(calls[0].call(6).unwrap(), 6);
    // What would need a descriptor is an error.
    let told = |error: String| assert!(error.contains("was closed by the host"), "{error}");
    told(window().unwrap_err().to_string());
    let loops = second.func::<(i32,), i32>("loop").unwrap();
    // SAFETY: a child of ours.
    unsafe { libc::kill(worker, libc::SIGKILL) };
    assert!(loops.call(1).is_err());
    told(second.reset().unwrap_err().to_string());
    for domain in [&first, &third] {
        told(region.give(domain, Rights::Write).unwrap_err().to_string());
    }
    drop((calls, loops, first, second, third, region, module));
    // The file is whole, and the host's descriptors are open.
    let mut bytes = Vec::new();
    File::open(&path).unwrap().read_to_end(&mut bytes).unwrap();
    assert!(bytes.len() == 1 << 20 && bytes.iter().all(|&b| b == 0xAB));
    for number in 3..=NUMBERS {
        // SAFETY: asks only.
        assert!(unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0, "{number}");
    }
    std::fs::remove_file(&path).unwrap();
}
