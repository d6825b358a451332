//! The classic table: a string is reversed by a plug-in, unprotected, fenced, and in another process.

use crate::build::Native;
use crate::measure::{Subject, Summary, interleave, nanoseconds, thread_nanoseconds};
use crate::place::{Pinned, Place, Processors};
use crate::rpc::{ROOM, Server, Transport};
use ringfence_runtime::{Call, Domain, Entry};
use serde::{Deserialize, Serialize};
use std::ffi::c_void;
use std::hint::black_box;

/// One size; nanoseconds.
#[derive(Clone, Serialize, Deserialize)]
pub struct Row {
    /// Bytes.
    pub size: usize,
    /// A call through `dlopen`.
    pub plain: Summary,
    /// A checked call; the string lies in the domain already.
    pub fenced: Summary,
    /// The same, with copies in and out.
    pub copied: Summary,
    /// Another process on the same processor, shared memory and futexes.
    pub shared: Summary,
    /// The same, pipes.
    pub pipe: Summary,
    /// The same, Unix sockets.
    pub socket: Summary,
}

type Reverse = extern "C" fn(*mut u8, u64);

/// Measures all sizes and prints the table.
pub fn measure(native: &Native, domain: &Domain, runs: usize, many: u32) -> Result<Vec<Row>, String> {
    // SAFETY: plain.c defines it with this type
    let plain = unsafe { std::mem::transmute::<*const c_void, Reverse>(native.symbol("reverse")?) };
    let entry = domain.entry("reverse").map_err(|e| e.to_string())?;
    let buffer = domain
        .as_ref()
        .alloc(ROOM as u64, 64)
        .map_err(|e| e.to_string())?;
    let processors = Processors::of_this_thread();
    let _pin = Pinned::to(Place::Here);
    let start = |transport| Server::start(transport, processors, Place::Here).map_err(|e| e.to_string());
    let (mut shared, mut pipe, mut socket) = (
        start(Transport::Shared)?,
        start(Transport::Pipe)?,
        start(Transport::Socket)?,
    );
    let few = many / 40 + 1;
    println!(
        "reverse a string, ns{:>8} {:>10} {:>10} {:>12} {:>10} {:>10}",
        "plain", "fenced", "+ copies", "shared+futex", "pipe", "socket"
    );
    let mut rows = Vec::new();
    for size in [32, 64, 128, 256, 512, 1024, 2048, 4096] {
        let mut text: Vec<u8> = (0..size).map(|i| b'a' + (i % 26) as u8).collect();
        let mut copy = text.clone();
        let (mut one, mut two, mut three) = (text.clone(), text.clone(), text.clone());
        let call = |entry: &Entry| {
            entry
                .call(&mut Call::ints(&[buffer, size as u64]))
                .map(drop)
                .map_err(|e| e.to_string())
        };
        call(&entry)?;
        let mut subjects: Vec<Subject> = vec![
            (
                "plain",
                Box::new(|| {
                    Ok(thread_nanoseconds(many, || {
                        black_box(plain)(text.as_mut_ptr(), size as u64)
                    }))
                }),
            ),
            (
                "fenced",
                Box::new(|| {
                    Ok(thread_nanoseconds(many, || {
                        call(black_box(&entry)).unwrap_or_default()
                    }))
                }),
            ),
            (
                "copied",
                Box::new(|| {
                    Ok(thread_nanoseconds(many, || {
                        let _ = domain.as_ref().write(buffer, black_box(&copy));
                        let _ = call(black_box(&entry));
                        let _ = domain.as_ref().read(buffer, black_box(&mut copy));
                    }))
                }),
            ),
            (
                "shared",
                Box::new(|| Ok(nanoseconds(few, || shared.reverse(black_box(&mut one))))),
            ),
            (
                "pipe",
                Box::new(|| Ok(nanoseconds(few, || pipe.reverse(black_box(&mut two))))),
            ),
            (
                "socket",
                Box::new(|| Ok(nanoseconds(few, || socket.reverse(black_box(&mut three))))),
            ),
        ];
        let summaries = interleave(runs, &mut subjects)?;
        let row = Row {
            size,
            plain: summaries[0],
            fenced: summaries[1],
            copied: summaries[2],
            shared: summaries[3],
            pipe: summaries[4],
            socket: summaries[5],
        };
        println!(
            "{size:>20}{:>8.0} {:>10.0} {:>10.0} {:>12.0} {:>10.0} {:>10.0}",
            row.plain.median,
            row.fenced.median,
            row.copied.median,
            row.shared.median,
            row.pipe.median,
            row.socket.median
        );
        rows.push(row);
    }
    println!();
    Ok(rows)
}
