//! Domains in processes of their own: what is left when one ends, is killed, stopped or replaced, and when its host goes.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use ringfence::{CallError, Domain, FaultKind, Imports, Ptr};
use support::workers::{LOOPS, basic, make, worker_of, workers};

#[test]
fn a_worker_that_is_killed_is_an_error_and_a_reset_away() {
    let module = support::from_text(LOOPS, &[]);
    let (domain, worker) = worker_of(|| make(&module, Imports::new()));
    let call = domain.func::<(i32,), i32>("loop").unwrap();
    let same = domain.func::<(i32,), i32>("same").unwrap();
    let text = domain.memory().put(5u32).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(50));
            // SAFETY: a child of ours.
            unsafe { libc::kill(worker, libc::SIGKILL) };
        });
        let begin = Instant::now();
        match call.call(1) {
            Err(CallError::Process { how }) => assert!(how.contains("signal 9"), "{how}"),
            other => panic!("{other:?}"),
        }
        assert!(begin.elapsed() < Duration::from_secs(20));
    });
    assert!(domain.faulted());
    assert!(matches!(same.call(1), Err(CallError::Process { .. })));
    assert!(text.read().is_err());
    domain.reset().unwrap();
    assert!(!domain.faulted());
    assert_eq!(same.call(7).unwrap(), 7, "functions stay valid");
    // Nothing is left of the first one.
    let there = || workers().contains(&worker);
    assert!(!there());
}

#[test]
fn dropped_domains_leave_no_process() {
    let (domain, worker) = worker_of(basic);
    assert!(workers().contains(&worker));
    let status = std::fs::read_to_string(format!("/proc/{worker}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(
        (field("Seccomp:"), field("NoNewPrivs:")),
        ("2".to_owned(), "1".to_owned())
    );
    // Nothing of the host's is open in it.
    for fd in std::fs::read_dir(format!("/proc/{worker}/fd")).unwrap().flatten() {
        let target = std::fs::read_link(fd.path()).unwrap_or_default();
        let target = target.to_string_lossy();
        // By the socket it gets files, and the host reads nothing from it.
        let known = ["memfd:", "/dev/null", "socket:"];
        assert!(known.iter().any(|k| target.contains(k)), "{target}");
    }
    drop(domain);
    assert!(!workers().contains(&worker));
}

#[test]
fn a_forked_host_has_no_part_in_it() {
    let domain = basic();
    let add = domain.func::<(i32, i32), i32>("add").unwrap();
    assert_eq!(add.call(1, 2).unwrap(), 3);
    // SAFETY: the child makes calls that are refused at once, and ends without running anything else.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(add.call(1, 2), Err(CallError::Process { .. }));
        let read = domain
            .memory()
            .read::<i32>(Ptr::from_address(domain.memory().base() + 0x1000));
        drop(add);
        drop(domain);
        // SAFETY: ends this child.
        unsafe { libc::_exit(if refused && read.is_err() { 7 } else { 1 }) };
    }
    let mut status = 0;
    // SAFETY: our own child.
    unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(libc::WEXITSTATUS(status), 7);
    assert_eq!(add.call(1, 2).unwrap(), 3, "the worker lives");
}

#[test]
fn checkpoints_are_kept_until_the_worker_ends() {
    let (domain, worker) = worker_of(basic);
    let bump = domain.func::<(), i64>("bump").unwrap();
    let next = || bump.call().unwrap().into_inner_unchecked();
    assert_eq!((next(), next()), (8, 9));
    domain.checkpoint().unwrap();
    assert_eq!(next(), 10);
    domain.reset().unwrap();
    assert_eq!(next(), 10, "the checkpoint's state");
    let before = domain.resets();
    // SAFETY: a child of ours.
    unsafe { libc::kill(worker, libc::SIGKILL) };
    while bump.call().is_ok() {}
    domain.reset().unwrap();
    assert!(
        domain.resets() > before,
        "{} resets, then {before}",
        domain.resets()
    );
    assert_eq!(next(), 8, "another worker has what the module begins with");
}

#[test]
fn regions_are_there_for_another_worker_too() {
    use ringfence::{Region, Rights};
    let (domain, worker) = worker_of(basic);
    let region = Region::new(4096).unwrap();
    region.give(&domain, Rights::Read).unwrap();
    region.write(0, 4711i32).unwrap();
    let read = domain.func::<(Ptr<i32>,), i32>("wild_read").unwrap();
    assert_eq!(read.call(region.ptr_in(&domain)).unwrap(), 4711);
    // SAFETY: a child of ours.
    unsafe { libc::kill(worker, libc::SIGKILL) };
    while read.call(region.ptr_in(&domain)).is_ok() {}
    domain.reset().unwrap();
    assert_eq!(read.call(region.ptr_in(&domain)).unwrap(), 4711);
    region.give(&domain, Rights::None).unwrap();
    assert!(read.call(region.ptr_in(&domain)).is_err());
}

/// While a worker takes the place of one that has ended, its constructors call the host, and others want something of the domain: nobody
/// waits for anybody who waits for him.
#[test]
fn constructors_of_a_replacement_meet_others() {
    use ringfence::{Region, Rights};
    use std::sync::{OnceLock, mpsc};
    let text = "
        long begin(void);
        static long begun;
        __attribute__((constructor)) static void construct(void) { begun = begin(); }
        long get_begun(void) { return begun; }
        int wild_read(const int *at) { return *at; }
    ";
    let module = support::from_text(text, &["--import=begin"]);
    let own: Arc<OnceLock<Domain>> = Arc::default();
    let region = Arc::new(Region::new(4096).unwrap());
    region.write(0, 4711i32).unwrap();
    let (told, ended) = mpsc::channel();
    let (inner, shared) = (own.clone(), region.clone());
    let imports = Imports::new().func("begin", move || {
        let Some(domain) = inner.get() else { return 0 };
        // Another thread gives the domain a region. It is well inside when this one takes the same locks.
        let (at, of) = (inner.clone(), shared.clone());
        let (told, begun) = (told.clone(), mpsc::channel());
        let other = std::thread::spawn(move || {
            let domain = at.get().unwrap();
            begun.0.send(()).unwrap();
            told.send(of.give(domain, Rights::Read).map_err(|e| e.to_string()))
                .unwrap();
            let _ = domain.usage();
            assert!(domain.func::<(), i64>("get_begun").is_err(), "it is being made");
        });
        begun.1.recv().unwrap();
        std::thread::sleep(Duration::from_millis(200));
        let mine = Region::new(4096).unwrap();
        mine.give(domain, Rights::Write).unwrap();
        let _ = domain.usage();
        other.join().unwrap();
        7
    });
    let (domain, worker) = worker_of(|| make(&module, imports));
    own.set(domain).expect("set once");
    let domain = own.get().unwrap();
    assert_eq!(domain.func::<(), i64>("get_begun").unwrap().call().unwrap(), 0);
    // SAFETY: a child of ours.
    unsafe { libc::kill(worker, libc::SIGKILL) };
    while domain.func::<(), i64>("get_begun").is_ok() {}
    let (done, finished) = mpsc::channel();
    let at = own.clone();
    std::thread::spawn(move || done.send(at.get().unwrap().reset().map_err(|e| e.to_string())));
    let reset = finished.recv_timeout(Duration::from_secs(60));
    assert_eq!(reset.expect("nobody waits for ever"), Ok(()));
    assert_eq!(ended.recv().unwrap(), Ok(()));
    assert_eq!(domain.func::<(), i64>("get_begun").unwrap().call().unwrap(), 7);
    let read = domain.func::<(Ptr<i32>,), i32>("wild_read").unwrap();
    assert_eq!(read.call(region.ptr_in(domain)).unwrap(), 4711);
}

/// Stops a worker. All of its threads stand when this returns: the signal alone reaches them later.
fn stop(worker: i32) {
    // SAFETY: a child of ours; writes one structure, and leaves the child's state for whoever waits for it.
    unsafe {
        libc::kill(worker, libc::SIGSTOP);
        let mut told: libc::siginfo_t = std::mem::zeroed();
        let done = libc::waitid(
            libc::P_PID,
            worker as u32,
            &raw mut told,
            libc::WSTOPPED | libc::WNOWAIT,
        );
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

#[test]
fn a_worker_that_does_not_end_a_call_in_time_is_ended() {
    let module = support::from_text(LOOPS, &[]);
    let (domain, worker) = worker_of(|| make(&module, Imports::new()));
    let same = domain.func::<(i32,), i32>("same").unwrap();
    assert_eq!(same.call(1).unwrap(), 1);
    domain.set_time_limit(Some(Duration::from_millis(30))).unwrap();
    // It cannot do its work.
    stop(worker);
    match same.call(1) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.kind, FaultKind::TimeLimit),
        other => panic!("{other:?}"),
    }
    assert!(!workers().contains(&worker));
    // Time enough for another one to begin.
    domain.set_time_limit(None).unwrap();
    domain.reset().unwrap();
    assert_eq!(same.call(7).unwrap(), 7);
}

#[test]
fn a_worker_ends_with_a_host_that_is_killed() {
    let me = std::env::current_exe().unwrap();
    if std::env::var_os("RINGFENCE_TEST_ORPHAN").is_some() {
        let (_domain, worker) = worker_of(basic);
        println!("worker {worker}");
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
    let name = "a_worker_ends_with_a_host_that_is_killed";
    let mut host = std::process::Command::new(me)
        .args(["--exact", name, "--nocapture"])
        .env("RINGFENCE_TEST_ORPHAN", "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(host.stdout.take().unwrap()));
    let worker: i32 = lines
        .map_while(Result::ok)
        .find_map(|line| line.split_once("worker ")?.1.parse().ok())
        .expect("the number of the worker");
    let runs = || {
        let status = std::fs::read_to_string(format!("/proc/{worker}/stat")).unwrap_or_default();
        status.contains("ringfence-worke") && !status.contains(") Z ")
    };
    assert!(runs());
    host.kill().unwrap();
    host.wait().unwrap();
    for _ in 0..3000 {
        if !runs() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the worker {worker} lives on");
}
