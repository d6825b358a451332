//! What `make demo-words` shows: a driver that works on 32 of 144 bytes of the host's own descriptor, what it is told of the 33rd, and a run
//! that writes its own policy.
//!
//!     cargo run --release -p ringfence --example words -- examples/words/driver.rf

use ringfence::{Arena, Domain, Imports, LoadOptions, Module, WordsPolicy};

/// `struct packet` of `examples/words/packet.h`.
const PACKET: &str = "struct packet 144 { next @0 struct packet*; data @8 1*; length @16 4; id @20 4; \
                      driver @24 1[32]; route @56 8[8]; owner @120 1[24] }\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: words DRIVER.rf")?;
    let mut options = LoadOptions::default();
    options.allow_words = true;
    let module = Module::open_with(&path, &options)?;
    let arena = Arena::new(1 << 20)?;
    let domain = Domain::new(&module, Imports::new().arena(&arena))?;

    let lines = "receive(p: struct packet, n: number) reads p->length; reads p->data[p->length]; writes p->driver; keeps nothing";
    let policy = WordsPolicy::parse(&format!("{PACKET}{lines}"))?;
    println!("A descriptor of 144 bytes, and the policy of the driver's function:\n  {lines}\n");
    let data = arena.put(*b"hello, world....")?;
    let packet = arena.alloc_as(&policy, "packet")?;
    let next = arena.alloc_as(&policy, "packet")?;
    // SAFETY: objects of the arena that nobody frees, of 144 bytes each, at multiples of 16; no domain has rights to them yet.
    unsafe {
        for (at, length, after) in [(packet, 12, next), (next, 30, 0)] {
            (at as *mut u64).write_volatile(after);
            ((at + 8) as *mut u64).write_volatile(data.address());
            ((at + 16) as *mut u32).write_volatile(length);
        }
    }
    // SAFETY: as above.
    let driver = |n: u64| unsafe { ((packet + 24 + n) as *const u8).read_volatile() };

    let receive = domain.func_by::<(u64, i32), i32>("receive", &policy)?;
    let seen = receive.call(packet, 32)?.into_inner_unchecked();
    println!(
        "receive(p, 32): {seen} bytes seen, p->driver[31] is {}\n",
        driver(31)
    );
    match receive.call(packet, 33) {
        Ok(_) => return Err("the 33rd byte was written".into()),
        Err(error) => println!("receive(p, 33): {error}\n"),
    }
    println!("p->route[0] is still {}\n", driver(32));
    domain.reset()?;

    println!("The same without a policy: the run writes it.");
    let signatures = WordsPolicy::parse(&format!(
        "{PACKET}receive(p: struct packet, n: number)\ntotal(p: struct packet)"
    ))?;
    let (free, total) = (
        domain.func::<(u64, i32), i32>("receive")?,
        domain.func::<(u64,), i64>("total")?,
    );
    let mut learner = domain.learn_words(&signatures)?;
    learner.call("receive", &[packet, 20], || free.call(packet, 20))?;
    learner.call("total", &[packet], || total.call(packet))?;
    let learned = learner.policy()?;
    drop(learner);
    println!("{learned}");

    println!("With that policy, and no more:");
    let policy = WordsPolicy::parse(&learned)?;
    let receive = domain.func_by::<(u64, i32), i32>("receive", &policy)?;
    let total = domain.func_by::<(u64,), i64>("total", &policy)?;
    println!(
        "receive(p, 20): {}",
        receive.call(packet, 20)?.into_inner_unchecked()
    );
    println!("total(p): {}", total.call(packet)?.into_inner_unchecked());
    match receive.call(packet, 21) {
        Ok(_) => Err("the 21st byte was written".into()),
        Err(error) => {
            println!("receive(p, 21): {error}");
            Ok(())
        }
    }
}
