//! Hostile domains against the system calls that a policy grants.

use ringfence_attack::caller::{module, system_call};
use ringfence_attack::child::in_child;
use ringfence_attack::code::data;
use ringfence_attack::fuzz::domain_of;
use ringfence_policy::{Policy, PolicyError, Rights};
use ringfence_runtime::{Call, CallError, Domain, DomainOptions, FaultKind, Imports};
use std::net::TcpListener;
use std::time::{Duration, Instant};

fn domain(policy: Policy) -> Domain {
    let imports = Imports::new()
        .closure("host", |_| Ok(()))
        .policy(policy.start().unwrap());
    domain_of(&module(), imports, &DomainOptions::default()).unwrap()
}

/// By `..` after a directory beside it, or a rename above it, what is for reading would be opened through what is for writing.
#[test]
fn a_read_only_directory_in_a_writable_one_is_refused() {
    let root = std::env::temp_dir().join(format!("rf-nested-{}", std::process::id()));
    let deep = root.join("a/b");
    std::fs::create_dir_all(&deep).unwrap();
    let both = |outer, inner| {
        Policy::new()
            .dir(&root, "/w", outer)
            .dir(&deep, "/w/a/b", inner)
            .start()
            .map(drop)
    };
    let refused = both(Rights::Write, Rights::Read);
    assert!(matches!(&refused, Err(PolicyError::WritableAround { path, .. }) if *path == deep));
    both(Rights::Read, Rights::Write).unwrap();
    both(Rights::Write, Rights::Write).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
}

/// A peer that says nothing and reads nothing must not keep the host's thread beyond the domain's time limit.
#[test]
fn a_silent_peer_does_not_hold_up_the_end_of_a_call() {
    let status = in_child(|| {
        // SAFETY: ends the child if it hangs.
        unsafe { libc::alarm(60) };
        silent_peer();
    });
    assert_eq!(status, 0, "14: the host's thread was held up");
}

fn silent_peer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let domain = domain(Policy::new().connect(address));
    let base = domain.as_ref().base();
    let at = base + u64::from(data(4096));
    let mut name = vec![2, 0];
    name.extend(address.port().to_be_bytes());
    name.extend([127, 0, 0, 1]);
    name.resize(16, 0);
    for (number, flags) in [
        (libc::SYS_recvfrom, libc::MSG_WAITALL),
        (libc::SYS_recvfrom, 0),
        (libc::SYS_sendto, 0),
        (libc::SYS_read, 0),
        (libc::SYS_write, 0),
    ] {
        domain.set_time_limit(None);
        domain.as_ref().write(at, &name).unwrap();
        let socket = system_call(&domain, &[libc::SYS_socket as u64, 2, 1, 0]);
        assert!(socket >= 0, "{socket}");
        let connect = [libc::SYS_connect as u64, socket as u64, at, 16];
        assert_eq!(system_call(&domain, &connect), 0);
        let (mut peer, _) = listener.accept().unwrap();
        // One byte is there at once: with it alone the kernel would wait for the others.
        std::io::Write::write_all(&mut peer, b"x").unwrap();
        if number == libc::SYS_read || number == libc::SYS_recvfrom && flags == 0 {
            let read = [libc::SYS_read as u64, socket as u64, at, 1];
            assert_eq!(system_call(&domain, &read), 1);
        }
        domain.set_time_limit(Some(Duration::from_millis(100)));
        // The rest of the data segment: more than the kernel buffers once it has been sent some times.
        let len = 0x10_0000;
        let call = [number as u64, socket as u64, at, len, flags as u64];
        let begin = Instant::now();
        let entry = domain.entry("call").unwrap();
        let end = loop {
            match entry.call(&mut Call::ints(&call)) {
                Ok(done) => assert!(done.rax as i64 > 0, "{}", done.rax as i64),
                Err(e) => break e,
            }
        };
        let CallError::Fault(fault) = end else {
            panic!("{end}")
        };
        assert_eq!(fault.kind, FaultKind::TimeLimit);
        assert!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        domain.reset().unwrap();
    }
}
