//! What modules decide the size of is allocated so that it can fail: for hosts without the reserve, too.

mod support;

use ringfence_runtime::{Code, Domain, DomainOptions, Imports, LoadOptions, Module};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use support::elf::{File, Symbol};
use support::in_child;

/// Allocations that are so large are a file's doing: the runtime's own records are not.
const LARGE: usize = 64 << 10;

/// Fails for the calling thread, where a large allocation is asked for.
struct Failing;

thread_local! {
    /// Large allocations until one fails; `None` lets all pass.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
}

fn fails(size: usize) -> bool {
    if size < LARGE {
        return false;
    }
    match LEFT.get() {
        Some(0) => {
            LEFT.set(None);
            true
        }
        left => {
            LEFT.set(left.map(|n| n - 1));
            false
        }
    }
}

// SAFETY: what does not fail is passed on.
unsafe impl GlobalAlloc for Failing {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match fails(layout.size()) {
            true => std::ptr::null_mut(),
            // SAFETY: the caller's promise.
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static MEMORY: Failing = Failing;

/// Does `work` again and again, each time with the next large allocation failing, until it needs no more. How many failed.
fn each_failing<T>(work: impl Fn() -> Result<T, String>) -> u32 {
    for n in 0..1000 {
        LEFT.set(Some(n));
        let told = work().map(drop);
        if LEFT.take().is_some() {
            assert_eq!(told, Ok(()), "without a failure");
            return n;
        }
        assert!(told.is_err(), "allocation {n} failed, and nothing was told");
    }
    panic!("no end");
}

/// 30,000 relocations in 59 pages of data, many of them by symbols, which the module has, or another one gives.
fn file(own: bool) -> Vec<u8> {
    const MANY: u64 = 20_000;
    let mut file = File {
        data: 240_000,
        ..File::default()
    };
    let data = file.data_start();
    for n in 0..MANY {
        let text = format!("s{n}\0");
        let mut symbol = Symbol::object(file.strings.len() as u32, data);
        symbol.section = own.into();
        file.symbols.push(symbol);
        file.strings.extend(text.into_bytes());
    }
    file.relocations = (0..30_000).map(|n| [data + 8 * n, 8, data]).collect();
    for n in 0..MANY / 2 {
        file.relocations[n as usize][1] = (n + 1) << 32 | 6;
    }
    file.bytes()
}

fn text(e: impl ToString) -> String {
    e.to_string()
}

#[test]
fn what_a_file_decides_the_size_of_may_fail() {
    in_child("what_a_file_decides_the_size_of_may_fail", || {
        let load = |own: bool| {
            let file = file(own);
            move || Module::from_bytes("many.rf", &file, &LoadOptions::default()).map_err(text)
        };
        let (giver, taker) = (load(true), load(false));
        let failed = each_failing(&giver) + each_failing(&taker);
        assert!(failed >= 8, "{failed}");
        let both = [giver().unwrap(), taker().unwrap()];
        let make = || Domain::new(&both, Imports::new(), &DomainOptions::default()).map_err(text);
        let failed = each_failing(make);
        assert!(failed >= 3, "{failed}");
        let mut options = DomainOptions::default();
        options.code_limit = 1 << 20;
        let modules = [support::module(), both[0].clone()];
        let home = Domain::new(&modules, support::imports(), &options).unwrap();
        let failed = each_failing(|| {
            home.add("many", &both[1]).map_err(text)?;
            home.remove("many").map_err(text)
        });
        assert!(failed >= 2, "{failed}");
        // marker; ret; and functions without end.
        let mut bytes = Vec::new();
        for _ in 0..20_000 {
            bytes.extend([0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0xC3]);
            bytes.resize(bytes.len().next_multiple_of(16), 0xCC);
        }
        let failed = each_failing(|| {
            let code = Code {
                bytes: &bytes,
                entry: 0,
            };
            home.add_code("many", &code).map_err(text)?;
            home.remove_code("many").map_err(text)
        });
        assert!(failed >= 1, "{failed}");
    });
}
