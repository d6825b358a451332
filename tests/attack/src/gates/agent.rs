//! Another thread, which does what the handler of the trap asks for while the call stands still.

use super::{Event, World, modules};
use ringfence_runtime::{Code, DomainError};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The [`Event`] that is asked for, 0 when it is done.
static WANTED: AtomicU64 = AtomicU64::new(0);
/// Something went wrong.
static WRONG: AtomicU64 = AtomicU64::new(0);

/// How long a call that was stopped stands still for it: it may hold a lock that is needed.
const PATIENCE: Duration = Duration::from_millis(20);

/// Starts it. It stays.
pub fn start(world: &'static World) {
    std::thread::spawn(move || {
        loop {
            let wanted = WANTED.load(Ordering::Acquire);
            let Some(event) = Event::ALL
                .into_iter()
                .find(|e| *e as u64 == wanted && wanted != 0)
            else {
                std::thread::sleep(Duration::from_micros(20));
                continue;
            };
            if !act(world, event) {
                WRONG.store(wanted, Ordering::Relaxed);
            }
            WANTED.store(0, Ordering::Release);
        }
    });
}

/// Asks for something, in a signal handler. Waits for it unless that takes long.
pub fn ask(event: Event) {
    WANTED.store(event as u64, Ordering::Release);
    let end = Instant::now() + PATIENCE;
    while WANTED.load(Ordering::Acquire) != 0 && Instant::now() < end {
        std::hint::spin_loop();
    }
}

/// Waits until nothing is under way, and says what was wrong.
pub fn settle() -> Option<String> {
    let end = Instant::now() + Duration::from_secs(10);
    while WANTED.load(Ordering::Acquire) != 0 {
        if Instant::now() > end {
            return Some("the other thread hangs".into());
        }
        std::thread::yield_now();
    }
    let wrong = WRONG.swap(0, Ordering::Relaxed);
    (wrong != 0).then(|| format!("the other thread failed at {:?}", Event::ALL[wrong as usize]))
}

fn act(world: &World, event: Event) -> bool {
    let domain = &world.domain;
    match event {
        Event::Deadline => {
            domain.set_time_limit(Some(Duration::from_millis(1)));
            true
        }
        Event::Reset => matches!(domain.reset(), Ok(()) | Err(DomainError::Busy { .. })),
        Event::Recycle => matches!(domain.recycle(), Ok(()) | Err(DomainError::Busy { .. })),
        Event::Replace => {
            // While the call is inside, nothing changes. If not, something else stands in the place at once: all of it traps.
            if domain.remove_code("piece").is_err() {
                return true;
            }
            let mut bytes = ringfence_isa::identifier::marker(ringfence_isa::identifier::FUNCTION).to_vec();
            bytes.resize(modules::piece().len(), 0xCC);
            let code = Code {
                bytes: &bytes,
                entry: 0,
            };
            domain.add_code("trap", &code).is_ok() && domain.remove_code("trap").is_ok()
        }
        _ => false,
    }
}
