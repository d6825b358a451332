//! What is done while allocations fail: one operation of each part of the interface.

use super::guests;
use crate::adapter::{self, Domain, DomainOptions, End, Module};
use ringfence::policy::{Policy, Rights as Granted};
use ringfence::{
    Arena, Backend, CallError, Code, Column, Func, Group, Imports, LoadOptions, OnFailure, OnLimit, Pool,
    Region, Rights, Signature, Snapshot,
};
use ringfence_functions::{BuiltIns, Runtime};
use std::path::PathBuf;
use std::time::Duration;

/// Those up to 9 together.
pub const ALL: u64 = 10;
const CODE: u64 = 11;
const SLOTS: u64 = 12;
const HOST: u64 = 13;
const TEXTS: u64 = 14;
/// Making a domain with a policy.
pub const POLICY: u64 = 15;
/// What such a domain asks for.
pub const SYSTEM_CALLS: u64 = 16;
const WORKER: u64 = 17;
/// Rights on single words.
pub const WORDS: u64 = 18;
const BATCH: u64 = 19;
const GROUPS: u64 = 20;
const ERRORS: u64 = 21;
const LIMITS: u64 = 22;
/// The last operation.
pub const LAST: u64 = ADDED;
const ADDED: u64 = 23;

type Done = Result<(), String>;

fn told(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// What an operation finds in a process that has done it before.
pub struct Ready {
    module: Module,
    domain: Domain,
    texts: Option<Runtime>,
    guest: Option<Guest>,
    words: Option<Words>,
}

struct Guest {
    domain: ringfence::Domain,
    place: PathBuf,
}

struct Words {
    arena: Arena,
    domain: ringfence::Domain,
}

fn options() -> DomainOptions {
    let mut options = DomainOptions::default();
    options.extensible = true;
    options.data_stack = 64 << 10;
    options
}

/// A directory of this process's own.
fn scratch() -> PathBuf {
    let path = std::env::temp_dir().join(format!("ringfence-failing-{}", std::process::id()));
    let _ = std::fs::create_dir(&path);
    let _ = std::fs::write(path.join("file"), "0123456789abcdef");
    path
}

impl Guest {
    fn new() -> Result<Guest, String> {
        let module = guests::system_calls()?;
        let place = scratch();
        let policy = Policy::new().clocks(true).dir(&place, "/d", Granted::Write);
        let monitor = policy.start().map_err(told)?;
        let imports = Imports::new().policy(monitor);
        let domain = ringfence::Domain::instantiate(&[module], imports, &options()).map_err(told)?;
        Ok(Guest { domain, place })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

impl Words {
    fn new() -> Result<Words, String> {
        let module = guests::of_words()?;
        let arena = Arena::new(1 << 20).map_err(told)?;
        let imports = Imports::new().arena(&arena);
        let mut options = options();
        options.extensible = false;
        let domain = ringfence::Domain::instantiate(&[module], imports, &options).map_err(told)?;
        Ok(Words { arena, domain })
    }
}

impl Ready {
    /// All that `operation` needs.
    ///
    /// # Errors
    /// What is not to be had.
    pub fn new(bytes: &[u8], operation: u64) -> Result<Ready, String> {
        let module = adapter::load(bytes)?;
        let domain = module.domain(&options())?;
        let _ = domain.call("sum", 2, 3);
        let texts = || Runtime::new(BuiltIns::new(), &options()).map_err(told);
        Ok(Ready {
            module,
            domain,
            texts: (operation == TEXTS).then(texts).transpose()?,
            guest: (operation == SYSTEM_CALLS).then(Guest::new).transpose()?,
            words: (operation == WORDS).then(Words::new).transpose()?,
        })
    }
}

/// One operation, or [`ALL`] of them; from the beginning, if nothing is ready.
///
/// # Errors
/// A typed error's message.
pub fn perform(bytes: &[u8], ready: Option<&Ready>, operation: u64) -> Done {
    if operation == 0 {
        return ringfence::Module::from_bytes("memory.rf", bytes, &LoadOptions::default())
            .map(drop)
            .map_err(told);
    }
    let made;
    let ready = match ready {
        Some(ready) => ready,
        None => {
            made = Ready::new(bytes, operation)?;
            &made
        }
    };
    let some = if operation == ALL {
        1..=9
    } else {
        operation..=operation
    };
    for operation in some {
        one(ready, operation)?;
    }
    Ok(())
}

fn one(ready: &Ready, operation: u64) -> Done {
    let domain = &ready.domain;
    match operation {
        1..=9 => basic(&ready.module.0, domain, operation).map_err(told),
        CODE => code(&domain.0),
        SLOTS => slots(&domain.0),
        HOST => host(&ready.module.0),
        TEXTS => texts(ready.texts.as_ref().ok_or("no runtime")?),
        POLICY => Guest::new().map(drop),
        SYSTEM_CALLS => system_calls(&ready.guest.as_ref().ok_or("no guest")?.domain),
        WORKER => worker(&ready.module.0),
        WORDS => words(ready.words.as_ref().ok_or("no arena")?),
        BATCH => batch(&domain.0),
        GROUPS => groups(&domain.0),
        ERRORS => errors(&ready.module.0, domain),
        LIMITS => limits(&ready.module.0, domain),
        _ => added(&ready.module.0, domain),
    }
}

fn basic(module: &ringfence::Module, domain: &Domain, operation: u64) -> Result<(), ringfence::Error> {
    let modules = std::slice::from_ref(module);
    match operation {
        1 => {
            let made = ringfence::Domain::instantiate(modules, Imports::new(), &options())?;
            made.run_destructors()?;
        }
        2 => {
            let two = [module.clone(), module.clone()];
            ringfence::Domain::instantiate(&two, Imports::new(), &options())?;
        }
        3 => {
            if domain.0.add_module("more", module).is_ok() {
                let _ = domain.0.remove_module("more");
            }
        }
        4 => {
            // From a thread that has never called, if there can be one.
            std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().spawn_scoped(scope, || domain.call("sum", 2, 3));
                let _ = thread.map(|thread| thread.join());
            });
        }
        5 => {
            if let End::Fault(fault) = domain.call("deep", 20, 0) {
                let _ = fault.backtrace();
                let _ = fault.cut();
            }
            domain.0.reset()?;
        }
        6 => domain.0.reset()?,
        7 => {
            domain.0.checkpoint()?;
            domain.0.reset()?;
        }
        8 => {
            let region = Region::new(8192)?;
            region.give(&domain.0, Rights::Write)?;
            region.give(&domain.0, Rights::None)?;
        }
        _ => {
            let module = module.clone();
            let make = move || {
                let modules = std::slice::from_ref(&module);
                ringfence::Domain::instantiate(modules, Imports::new(), &options())
            };
            let snapshot = Snapshot::new(&make, |_| Ok::<(), ringfence::Error>(()))?;
            drop(snapshot.instantiate(Imports::new())?);
            let pool = Pool::new(2, make);
            drop(pool.take()?);
            drop(pool.take()?);
        }
    }
    Ok(())
}

/// Code that comes and goes, and is called.
fn code(domain: &ringfence::Domain) -> Done {
    // marker; leal (%rdi,%rsi), %eax; ret
    const SUM: [u8; 12] = [
        0x0F, 0x1F, 0x84, 0, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x04, 0x37, 0xC3,
    ];
    let code = Code {
        bytes: &SUM,
        entry: 0,
    };
    let done = (|| {
        let sum = domain.add_code::<(i32, i32), i32>("more", &code).map_err(told)?;
        sum.call(2, 3).map_err(told)?;
        domain.find_code::<(i32, i32), i32>("more").map_err(told)?;
        let wrong = Code {
            bytes: &SUM[1..],
            entry: 0,
        };
        match domain.add_code::<(), ()>("wrong", &wrong) {
            Ok(_) => Err("what is no function was added".to_owned()),
            Err(e) => {
                drop(told(e));
                Ok(())
            }
        }
    })();
    // Also what an earlier time could not.
    let removed = domain.remove_code("more").map_err(told);
    done.and(removed)
}

/// A module that comes, is called, and goes: the file once more, since one module is in a domain once.
fn added(module: &ringfence::Module, domain: &Domain) -> Done {
    let again = ringfence::Module::from_bytes("again.rf", module.original(), &LoadOptions::default());
    let done = again.map_err(told).and_then(|again| {
        domain.0.add_module("again", &again).map_err(told)?;
        let sum: Func<(i32, i32), i32> = domain.0.func_in("again", "sum").map_err(told)?;
        sum.call(2, 3).map(drop).map_err(told)
    });
    // Also what an earlier time could not.
    let removed = domain.0.remove_module("again").map_err(told);
    done.and(removed)
}

/// Grants from domain to domain.
fn slots(domain: &ringfence::Domain) -> Done {
    let imports = Imports::new().slot("other", Signature::NOTHING, OnFailure::Tell);
    let caller = ringfence::Domain::instantiate(&[], imports, &options()).map_err(told)?;
    let first = caller.grant("other", domain, "sum").map_err(told)?;
    let second = caller.grant("other", domain, "deep").map_err(told)?;
    caller.revoke("other").map_err(told)?;
    domain.revoke_all();
    drop((first, second));
    Ok(())
}

/// Functions of the host's.
fn host(module: &ringfence::Module) -> Done {
    let imports = Imports::new()
        .func("add", |a: i32, b: i32| a.wrapping_add(b))
        .func("fail", |_: i32| Err::<(), _>(std::fmt::Error))
        .on_limit(|_, _| OnLimit::Keep)
        .slot("other", Signature::NOTHING, OnFailure::End);
    let modules = std::slice::from_ref(module);
    let domain = ringfence::Domain::instantiate(modules, imports, &options()).map_err(told)?;
    domain.import_address("add").map_err(told)?;
    let all: Vec<Func<(i32, i32), i32>> = ["sum", "sum", "deep"]
        .into_iter()
        .map(|name| domain.func(name))
        .collect::<Result<_, _>>()
        .map_err(told)?;
    all[0].call(2, 3).map(drop).map_err(told)
}

/// Functions that arrive as text.
fn texts(runtime: &Runtime) -> Done {
    const TWICE: &str = "long twice(long n) { return 2 * n; }";
    const SUMS: &str = "long twice(long n);
        struct pair { long a; double b; };
        static long kept[4];
        static long other(struct pair *p, int n) { switch (n & 3) { case 0: return p->a; case 1: return (long)p->b; default: return n; } }
        long sums(long n) {
            long sum = 0;
            struct pair p = { n, n * 0.5 };
            for (long i = 0; i < n; i++) { kept[i & 3] += twice(i); sum += other(&p, (int)i) + kept[i & 3]; }
            return sum;
        }";
    let done = (|| {
        runtime.create("twice", TWICE).map_err(told)?;
        let sums = runtime.create("sums", SUMS).map_err(told)?;
        let sums = sums.typed::<(i64,), i64>().map_err(told)?;
        sums.call(9).map_err(told)?;
        match runtime.create("wrong", "long wrong(long n) { return m + ; }") {
            Ok(_) => return Err("a wrong text was taken".to_owned()),
            Err(e) => drop(told(e)),
        }
        runtime
            .replace("twice", "long twice(long n) { return n / (n - 4); }")
            .map_err(told)?;
        if let Err(e) = sums.call(9) {
            drop(told(e));
        }
        let _ = (runtime.names(), runtime.kept());
        runtime.lookup("sums").map(drop).map_err(told)
    })();
    let ended = runtime.reset().map_err(told);
    for name in ["sums", "twice"] {
        let _ = runtime.delete(name);
    }
    done.and(ended)
}

/// What a program asks of a policy.
fn system_calls(domain: &ringfence::Domain) -> Done {
    // Ends what an earlier time has left open.
    domain.reset().map_err(told)?;
    type Call = Func<(i64, i64, i64, i64, i64, i64, i64), i64>;
    let call: Call = domain.func("system_call").map_err(told)?;
    let sys = |number: i64, args: &[i64]| -> Result<i64, String> {
        let a = |i: usize| args.get(i).copied().unwrap_or(0);
        let done = call
            .call(number, a(0), a(1), a(2), a(3), a(4), a(5))
            .map_err(told)?;
        Ok(done.into_inner_unchecked())
    };
    let text = |text: &str| -> Result<i64, String> {
        let put = domain.memory().put_c_string(text).map_err(told)?;
        Ok(put.leak().address() as i64)
    };
    let buffer = domain
        .memory()
        .alloc_array::<u8>(8192)
        .map_err(told)?
        .leak()
        .address() as i64;
    let words = |words: &[i64]| -> Result<i64, String> {
        let put = domain.memory().put_slice(words).map_err(told)?;
        Ok(put.leak().address() as i64)
    };
    let (file, new, moved, directory) = (text("/d/file")?, text("/d/new")?, text("/d/moved")?, text("/d")?);
    let n = |number: i32| i64::from(number);
    let fd = sys(libc::SYS_open, &[file, n(libc::O_RDWR)])?;
    let other = sys(libc::SYS_open, &[new, n(libc::O_RDWR | libc::O_CREAT), 0o600])?;
    let list = sys(libc::SYS_open, &[directory, n(libc::O_DIRECTORY)])?;
    let set = sys(libc::SYS_epoll_create1, &[0])?;
    let counter = sys(libc::SYS_eventfd2, &[1, 0])?;
    let timer = sys(libc::SYS_timerfd_create, &[n(libc::CLOCK_MONOTONIC), 0])?;
    let inotify = sys(libc::SYS_inotify_init1, &[0])?;
    let vector = words(&[buffer, 8, buffer + 100, 8])?;
    let event = words(&[1, 1])?;
    let poll = words(&[counter | 1 << 32])?;
    let calls: [(i64, &[i64]); 34] = [
        (libc::SYS_read, &[fd, buffer, 8]),
        (libc::SYS_write, &[fd, buffer, 8]),
        (libc::SYS_pread64, &[fd, buffer, 8, 0]),
        (libc::SYS_writev, &[other, vector, 2]),
        (libc::SYS_readv, &[fd, vector, 2]),
        (libc::SYS_lseek, &[fd, 0, 0]),
        (libc::SYS_fstat, &[fd, buffer]),
        (libc::SYS_stat, &[file, buffer]),
        (libc::SYS_getdents64, &[list, buffer, 4096]),
        (libc::SYS_ftruncate, &[other, 100]),
        (libc::SYS_rename, &[new, moved]),
        (libc::SYS_unlink, &[moved]),
        (libc::SYS_mkdir, &[new, 0o700]),
        (libc::SYS_chdir, &[new]),
        (libc::SYS_getcwd, &[buffer, 4096]),
        (libc::SYS_chdir, &[directory]),
        (libc::SYS_rmdir, &[new]),
        (libc::SYS_symlink, &[file, new]),
        (libc::SYS_readlink, &[new, buffer, 100]),
        (libc::SYS_unlink, &[new]),
        (libc::SYS_pipe, &[buffer]),
        (
            libc::SYS_socketpair,
            &[n(libc::AF_UNIX), n(libc::SOCK_STREAM), 0, buffer],
        ),
        (libc::SYS_dup, &[fd]),
        (
            libc::SYS_epoll_ctl,
            &[set, n(libc::EPOLL_CTL_ADD), counter, event],
        ),
        (libc::SYS_epoll_wait, &[set, buffer, 4, 0]),
        (libc::SYS_poll, &[poll, 1, 0]),
        (libc::SYS_timerfd_settime, &[timer, 0, buffer, 0]),
        (libc::SYS_inotify_add_watch, &[inotify, directory, 2]),
        (
            libc::SYS_mmap,
            &[0, 8192, 3, n(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS), -1, 0],
        ),
        (libc::SYS_mmap, &[0, 4096, 1, n(libc::MAP_SHARED), fd, 0]),
        (libc::SYS_brk, &[0]),
        (libc::SYS_clock_gettime, &[n(libc::CLOCK_MONOTONIC), buffer]),
        (libc::SYS_uname, &[buffer]),
        (libc::SYS_close, &[fd]),
    ];
    for (number, args) in calls {
        sys(number, args)?;
    }
    domain.reset().map_err(told)
}

/// A domain in a process of its own.
fn worker(module: &ringfence::Module) -> Done {
    let mut options = options();
    options.extensible = false;
    options.backend = Backend::Process;
    let modules = std::slice::from_ref(module);
    let domain = ringfence::Domain::instantiate(modules, Imports::new(), &options).map_err(told)?;
    let sum: Func<(i32, i32), i32> = domain.func("sum").map_err(told)?;
    sum.call(2, 3).map_err(told)?;
    let crash: Func<(i32, i32), i32> = domain.func("deep").map_err(told)?;
    if let Err(CallError::Fault(fault)) = crash.call(3, 0) {
        let _ = (fault.backtrace(), told(fault));
    }
    domain.reset().map_err(told)?;
    domain.memory().put_slice(&[1_u64; 100]).map(drop).map_err(told)
}

/// Objects of the host's, some words of them given, and an access that is denied.
fn words(with: &Words) -> Done {
    let (arena, domain) = (&with.arena, &with.domain);
    let object = arena.put([1_u32; 32]).map_err(told)?;
    let at = object.address();
    domain.give_words(at, 32, Rights::Write).map_err(told)?;
    let put: Func<(u64, u32), ()> = domain.func("put").map_err(told)?;
    put.call(at, 5).map_err(told)?;
    if let Err(CallError::Fault(fault)) = put.call(at + 64, 5) {
        let _ = (fault.backtrace(), told(fault));
    }
    domain.reset().map_err(told)?;
    domain.give_words(at, 32, Rights::None).map_err(told)
}

/// A call for each element of an array.
fn batch(domain: &ringfence::Domain) -> Done {
    let sum: Func<(i32, i32), i32> = domain.func("sum").map_err(told)?;
    let values = domain.memory().put_slice(&[1_i32, 2, 3]).map_err(told)?;
    let results = domain.memory().alloc_array::<i32>(3).map_err(told)?;
    sum.call_batch(3, (Column::Each(values.ptr()), Column::Same(2)), results.ptr())
        .map_err(told)?;
    results.to_vec().map(drop).map_err(told)
}

/// Regions of a domain's own, and groups.
fn groups(domain: &ringfence::Domain) -> Done {
    let other = ringfence::Domain::instantiate(&[], Imports::new(), &options()).map_err(told)?;
    let region = Region::owned_by(domain, 8192).map_err(told)?;
    let group = Group::owned_by(domain, false).map_err(told)?;
    group.admit_as(domain, &other).map_err(told)?;
    region.give_group_as(domain, &group, Rights::Read).map_err(told)?;
    region.give_as(domain, &other, Rights::Write).map_err(told)?;
    let _ = (
        ringfence::matrix(),
        ringfence::overview(),
        region.rights_of(&other),
    );
    group.expel_as(domain, &other).map_err(told)?;
    region.free_as(domain).map_err(told)
}

/// What is asked for and is not there, and files that are none.
fn errors(module: &ringfence::Module, domain: &Domain) -> Done {
    let _ = told(domain.0.func::<(), ()>("nobody").map(drop).unwrap_err());
    let _ = told(domain.0.remove_module("nobody").unwrap_err());
    let _ = told(domain.0.find_code::<(), ()>("nobody").map(drop).unwrap_err());
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(module.original().len()).map_err(told)?;
    bytes.extend_from_slice(module.original());
    let text = bytes.windows(4).position(|w| w == [0x8D, 0x04, 0x37, 0xC3]);
    for (at, with) in [(0, 0), (4, 1), (18, 3), (32, 0xFF), (text.unwrap_or(0), 0xF4)] {
        let was = std::mem::replace(&mut bytes[at], with);
        if let Err(e) = ringfence::Module::from_bytes("bent.rf", &bytes, &LoadOptions::default()) {
            drop(told(e));
        }
        bytes[at] = was;
    }
    match ringfence::Module::open("/nowhere/there.rf") {
        Ok(_) => Err("what is nowhere was opened".into()),
        Err(e) => {
            drop(told(e));
            Ok(())
        }
    }
}

/// Limits that are reached and told, memory for the host, what is used.
fn limits(module: &ringfence::Module, domain: &Domain) -> Done {
    let mut options = options();
    options.time_limit = Some(Duration::from_millis(1));
    options.call_limit = Some(2);
    options.memory_limit = 2 << 20;
    let imports = Imports::new().on_limit(|_, _| OnLimit::Keep);
    let modules = std::slice::from_ref(module);
    let made = ringfence::Domain::instantiate(modules, imports, &options).map_err(told)?;
    for _ in 0..3 {
        let made = Domain(made.clone());
        drop(made.call("sum", 1, 2));
    }
    if let Err(e) = made.memory().alloc_array::<u8>(4 << 20) {
        drop(told(e));
    }
    let memory = domain.0.memory();
    let text = memory.put_c_string("text").map_err(told)?;
    memory.read_string(text.ptr(), 100).map_err(told)?;
    let _ = (domain.0.usage(), domain.0.module_names());
    domain.0.trim().map(drop).map_err(told)
}
