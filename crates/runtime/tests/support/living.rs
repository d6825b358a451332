//! What the tests of code that comes to a living domain, and goes again, have in common.

use ringfence_runtime::{Call, CallError, Domain, Entry, FaultKind};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a race may take to get somewhere, on a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub fn run(entry: &Entry, args: &[u64]) -> Result<u64, CallError> {
    entry.call(&mut Call::ints(args)).map(|r| r.rax)
}

pub fn is_bad_target(result: Result<u64, CallError>) -> bool {
    matches!(result, Err(CallError::Fault(f)) if f.kind == FaultKind::BadTarget)
}

/// What [`Callers`] call by its name, and what may come back from code that was there.
#[derive(Clone)]
pub struct Named {
    pub find: fn(&Domain) -> Option<Entry>,
    pub args: &'static [u64],
    pub results: Range<u64>,
}

/// Two threads that call through a pointer and by a name as fast as they can, while somebody else adds and removes what is there.
/// What comes back is a result of code that was there, or an error, and never anything else.
pub struct Callers {
    pub pointer: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(u64, u64)>>,
}

impl Callers {
    /// `results` may come back from `pointer`, called with 100 and 1000 by the module's `through`.
    pub fn start(d: &Domain, pointer: u64, results: Range<u64>, named: Named) -> Self {
        let pointer = Arc::new(AtomicU64::new(pointer));
        let stop = Arc::new(AtomicBool::new(false));
        let caller = || {
            let (d, pointer, stop) = (d.clone(), pointer.clone(), stop.clone());
            let (results, named) = (results.clone(), named.clone());
            std::thread::spawn(move || {
                let through = d.entry("through").unwrap();
                let (mut good, mut bad) = (0u64, 0u64);
                while !stop.load(Ordering::Relaxed) {
                    match run(&through, &[pointer.load(Ordering::Relaxed), 100, 1000]) {
                        Ok(n) => {
                            assert!(results.contains(&n), "{n}");
                            good += 1;
                        }
                        Err(CallError::Fault(f)) => {
                            assert!(
                                matches!(f.kind, FaultKind::BadTarget | FaultKind::Elsewhere),
                                "{f:?}"
                            );
                            bad += 1;
                        }
                        Err(CallError::Faulted { .. }) => std::thread::yield_now(),
                        Err(e) => panic!("{e:?}"),
                    }
                    if let Some(e) = (named.find)(&d) {
                        match run(&e, named.args) {
                            Ok(n) => assert!(named.results.contains(&n), "{n}"),
                            Err(CallError::Removed | CallError::Faulted { .. }) => {}
                            Err(CallError::Fault(f)) => assert_eq!(f.kind, FaultKind::Elsewhere),
                            Err(e) => panic!("{e:?}"),
                        }
                    }
                }
                (good, bad)
            })
        };
        let threads = vec![caller(), caller()];
        Callers {
            pointer,
            stop,
            threads,
        }
    }

    /// How many calls through the pointer had a result, and how many faulted.
    pub fn stop(self) -> (u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let counts = self
            .threads
            .into_iter()
            .map(|caller| caller.join().expect("no wrong result"));
        counts.fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
    }
}
