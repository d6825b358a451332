//! Each system call of a domain's life fails once: typed errors, nothing leaks, and everything works again afterwards.

#[path = "../../tests/support/elf.rs"]
mod elf;

use super::{Call, Code, Domain, DomainOptions};
use crate::domain::imports::Imports;
use crate::load::module::{LoadOptions, Module};
use crate::os::{host, refusals, sys};
use elf::{File, Symbol};
use ringfence_core::error::CallError;
use ringfence_core::{FileMap, Signature, Syscall};
use ringfence_isa::identifier;
use std::error::Error;
use std::os::fd::AsFd;

/// Where a function that fails is in the text.
const BROKEN: usize = 32;

/// A module with a function that returns 42, one that fails, data, and a relocation.
fn file() -> Vec<u8> {
    let mut text = identifier::MARKER_HEAD.to_vec();
    text.extend(identifier::FUNCTION.to_le_bytes());
    text.extend([0xB8, 42, 0, 0, 0, 0xC3]);
    text.resize(BROKEN, 0xCC);
    text.extend(identifier::MARKER_HEAD);
    text.extend(identifier::FUNCTION.to_le_bytes());
    text.extend([0x0F, 0x0B]);
    // More than is kept as a copy.
    text.resize(100 << 10, 0xCC);
    let mut file = File {
        text,
        data: 3 * 4096,
        zeroes: 1 << 20,
        strings: b"\0variable\0function\0broken\0".to_vec(),
        ..File::default()
    };
    let data = file.data_start();
    let function = |name, at| {
        let mut function = Symbol::object(name, 0x1000 + at as u64);
        function.info = 1 << 4 | 2;
        function
    };
    file.symbols = vec![Symbol::object(1, data), function(10, 0), function(19, BROKEN)];
    file.relocations = vec![[data, 8, 0x1000], [data + 8192, 8, 0x1000]];
    file.bytes()
}

fn life(file: &[u8]) -> Result<(), Box<dyn Error>> {
    let load = |name: &str| Module::from_bytes(name, file, &LoadOptions::default());
    let mut options = DomainOptions::default();
    options.extensible = true;
    let domain = Domain::new(&[load("first")?], Imports::new(), &options)?;
    let call = |domain: &Domain| -> Result<(), Box<dyn Error>> {
        let returned = domain.entry("function")?.call(&mut Call::default())?;
        assert_eq!(returned.rax, 42);
        Ok(())
    };
    call(&domain)?;
    let memory = domain.as_ref();
    let at = memory.alloc(1 << 20, 16)?;
    memory.write(at, &[1; 100])?;
    // A file in its memory, which a reset takes away.
    let file = sys::memory_file(c"ringfence-test", 8192)?;
    let mut map = FileMap {
        file: file.as_fd(),
        offset: 0,
        len: 8192,
        address: 0,
        rights: libc::PROT_READ | libc::PROT_WRITE,
        flags: 0,
        writable: true,
    };
    let os = |errno| std::io::Error::from_raw_os_error(errno);
    map.address = memory.map_file(&map).map_err(os)?;
    map.flags = libc::MAP_FIXED;
    memory.map_file(&map).map_err(os)?;
    memory.write(map.address, &[1; 100])?;
    let (number, may_move) = (libc::SYS_mremap as u64, libc::MREMAP_MAYMOVE as u64);
    let args = [map.address, 4096, 16384, may_move, 0, 0];
    let moved = memory.memory_call(&Syscall { number, args }).unwrap_or(-1);
    if moved < 0 {
        return Err(os(-moved as i32).into());
    }
    // A fault with its report, the reason kept, and a function for the host.
    let broken = domain.entry("broken")?;
    match broken.call(&mut Call::default()) {
        Err(CallError::Fault(fault)) => assert!(!fault.backtrace().is_empty()),
        other => drop(other?),
    }
    match call(&domain) {
        Err(e) if e.to_string().contains("reset it first") => domain.reset()?,
        other => return other,
    }
    assert!(!domain.entry("function")?.try_thunk(Signature::NOTHING)?.is_null());
    // marker; leal (%rdi,%rsi), %eax; ret
    let code = [
        0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x04, 0x37, 0xC3,
    ];
    let sum = domain.add_code(
        "sum",
        &Code {
            bytes: &code,
            entry: 0,
        },
    )?;
    assert_eq!(sum.call(&mut Call::ints(&[2, 3]))?.rax, 5);
    domain.remove_code("sum")?;
    domain.add("second", &load("second")?)?;
    domain
        .entry_in("second", "function")?
        .call(&mut Call::default())?;
    domain.remove("second")?;
    domain.add("third", &load("third")?)?;
    domain.reset()?;
    call(&domain)?;
    domain.checkpoint()?;
    memory.write(memory.alloc(4096, 16)?, &[1; 100])?;
    domain.reset()?;
    call(&domain)?;
    domain.run_destructors()?;
    domain.trim()?;
    Ok(())
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

#[test]
fn every_system_call_may_fail() {
    const NAME: &str = "RINGFENCE_TEST_SWEEP";
    if std::env::var_os(NAME).is_none() {
        // Alone in a process: what others map and open is not ours.
        let out = std::process::Command::new(std::env::current_exe().expect("own path"))
            .args([
                "--exact",
                "domain::sweep::every_system_call_may_fail",
                "--nocapture",
            ])
            .env(NAME, "1")
            .output()
            .expect("own process");
        let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{:?}\n{text}", out.status);
        return;
    }
    let file = file();
    // What is made once for the process and the thread stays.
    life(&file).expect("without failures");
    let before = (host::mappings(), descriptors());
    let mut failed = 0;
    for n in 0..10_000 {
        refusals::after(Some(n));
        let lived = life(&file);
        if !refusals::after(None) {
            assert!(lived.is_ok(), "{lived:?}");
            assert!(n > 20, "only {n} calls");
            assert!(failed * 2 > n, "{failed} of {n} were told");
            return;
        }
        failed += u64::from(lived.is_err());
        assert_eq!(
            (host::mappings(), descriptors()),
            before,
            "after failure {n}: {lived:?}"
        );
        life(&file).unwrap_or_else(|e| panic!("after failure {n}: {e}"));
    }
    panic!("no end");
}
