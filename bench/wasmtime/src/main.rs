//! Runs functions of a WebAssembly module in Wasmtime for the benchmark.
//!
//! `ringfence-bench-wasmtime MODULE` answers lines `SYMBOL NUMBER` on standard input with `CHECKSUM SECONDS`, the
//! processor time of the call, or with `error TEXT`. The functions of the call benchmarks are called NUMBER times.
//! `load N` compiles the module N times, `instantiate N` makes N instances; SECONDS is then the wall clock's.

#![deny(missing_docs)]

use std::io::{BufRead, Write};
use std::time::Instant;

use wasmtime::{Caller, Engine, Extern, Instance, Linker, Module, Result, Store};

fn thread_seconds() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the struct is ours; the clock exists since Linux 2.6
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Writes zeros into a module's memory; gives WASI's word for success.
fn zero(caller: &mut Caller<'_, ()>, at: i32, size: usize) -> Result<i32> {
    let Some(Extern::Memory(memory)) = caller.get_export("memory") else {
        return Err(wasmtime::Error::msg("the module exports no memory"));
    };
    memory.write(caller, at.cast_unsigned() as usize, &vec![0; size])?;
    Ok(0)
}

/// A module, and an instance of it.
struct Peer {
    bytes: Vec<u8>,
    module: Module,
    linker: Linker<()>,
    store: Store<()>,
    instance: Instance,
}

impl Peer {
    fn new(bytes: Vec<u8>) -> Result<Self> {
        let engine = Engine::default();
        let module = Module::new(&engine, &bytes)?;
        let mut linker = Linker::new(&engine);
        linker.func_wrap("env", "host_add", |a: i64, b: i64| a.wrapping_add(b))?;
        // What a libc asks for by itself is answered as wasm2c's host does: no directories (EBADF), no environment, the
        // time 0, random numbers all zero. A workload that asks for more is told so.
        let wasi = "wasi_snapshot_preview1";
        linker.func_wrap(wasi, "fd_prestat_get", |_: i32, _: i32| 8)?;
        linker.func_wrap(
            wasi,
            "random_get",
            |mut caller: Caller<'_, ()>, at: i32, size: i32| {
                zero(&mut caller, at, size.cast_unsigned() as usize)
            },
        )?;
        linker.func_wrap(wasi, "environ_get", |_: i32, _: i32| 0)?;
        linker.func_wrap(
            wasi,
            "environ_sizes_get",
            |mut caller: Caller<'_, ()>, count: i32, bytes: i32| {
                zero(&mut caller, count, 4)?;
                zero(&mut caller, bytes, 4)
            },
        )?;
        linker.func_wrap(
            wasi,
            "clock_time_get",
            |mut caller: Caller<'_, ()>, _: i32, _: i64, at: i32| zero(&mut caller, at, 8),
        )?;
        linker.define_unknown_imports_as_traps(&module)?;
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module)?;
        if let Ok(start) = instance.get_typed_func::<(), ()>(&mut store, "_initialize") {
            start.call(&mut store, ())?;
        }
        Ok(Peer {
            bytes,
            module,
            linker,
            store,
            instance,
        })
    }

    /// Checksum and seconds.
    fn answer(&mut self, what: &str, number: u64) -> Result<(i64, f64)> {
        let store = &mut self.store;
        match what {
            "load" | "instantiate" => {
                let start = Instant::now();
                for _ in 0..number {
                    if what == "load" {
                        std::hint::black_box(Module::new(store.engine(), &self.bytes)?);
                    } else {
                        let mut fresh = Store::new(store.engine(), ());
                        std::hint::black_box(self.linker.instantiate(&mut fresh, &self.module)?);
                    }
                }
                Ok((1, start.elapsed().as_secs_f64()))
            }
            "nothing" => {
                let f = self.instance.get_typed_func::<(), ()>(&mut *store, what)?;
                let start = thread_seconds();
                for _ in 0..number {
                    f.call(&mut *store, ())?;
                }
                Ok((1, thread_seconds() - start))
            }
            "add" | "call_back" => {
                let f = self
                    .instance
                    .get_typed_func::<(i64, i64), i64>(&mut *store, what)?;
                let mut sum = 0;
                let start = thread_seconds();
                for _ in 0..number {
                    sum += f.call(&mut *store, (2, 3))?;
                }
                Ok((sum, thread_seconds() - start))
            }
            _ => {
                let f = self.instance.get_typed_func::<i64, i64>(&mut *store, what)?;
                let start = thread_seconds();
                let sum = f.call(&mut *store, number.cast_signed())?;
                Ok((sum, thread_seconds() - start))
            }
        }
    }
}

fn main() -> Result<()> {
    let path = std::env::args_os()
        .nth(1)
        .ok_or_else(|| wasmtime::Error::msg("usage: ringfence-bench-wasmtime MODULE"))?;
    let mut peer = Peer::new(std::fs::read(path)?)?;
    let mut out = std::io::stdout();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (what, number) = line.split_once(' ').unwrap_or((&line, ""));
        let outcome = match number.parse() {
            Ok(number) => peer.answer(what, number),
            Err(e) => Err(wasmtime::Error::msg(format!("'{line}': {e}"))),
        };
        match outcome {
            Ok((sum, seconds)) => writeln!(out, "{sum:x} {seconds:.9}")?,
            // The innermost cause; a trap's own text is a backtrace.
            Err(e) => writeln!(out, "error {}", e.root_cause().to_string().replace('\n', " "))?,
        }
        out.flush()?;
    }
    Ok(())
}
