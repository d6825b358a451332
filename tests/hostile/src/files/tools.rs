//! The tools read the same files: `ringfence verify`, `inspect` and `call` before it loads.

use crate::bounds::{self, Memory};
use ringfence_core::work::Budget;
use ringfence_debug::prototype;
use ringfence_driver::check::{Rules, check};
use ringfence_driver::inspect::inspect;
use std::time::Duration;

/// Processor time of all the steps that a small file may take; more come with its size.
const STEPS: Duration = Duration::from_secs(1);

/// Lets each of them read a file.
///
/// # Errors
/// Which bound did not hold.
pub fn hold(file: &[u8]) -> Result<(), String> {
    let of = |name: &str| prototype::of(file, name, &mut Budget::for_file(file.len() as u64));
    let tools: [(&str, &dyn Fn()); 3] = [
        ("verify", &|| drop(check(file, &Rules::default()))),
        ("inspect", &|| drop(inspect(file))),
        ("a prototype", &|| drop((of("run"), of("no such function")))),
    ];
    for (tool, read) in tools {
        let memory = Memory::begin();
        let (mut took, mut tries) = (Duration::MAX, 0);
        let len = file.len() as u64;
        let limit = (STEPS + bounds::loading(len)) * bounds::NOISE;
        while took > limit && tries < bounds::TRIES {
            let begin = bounds::thread();
            read();
            took = bounds::thread() - begin;
            tries += 1;
        }
        let ((heap, resident), most) = (memory.most(), bounds::memory(len));
        if heap > most || resident > most {
            return Err(format!(
                "{tool}: a file of {len} bytes took {heap} bytes of heap, {resident} bytes of the system; {most} are allowed"
            ));
        }
        if took > limit {
            return Err(format!(
                "{tool}: a file of {len} bytes took {took:?}, {limit:?} are allowed"
            ));
        }
    }
    Ok(())
}
