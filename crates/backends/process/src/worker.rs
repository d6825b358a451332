//! The worker: a window of the ordinary kind, in a process that the host talks to through [channels](crate::channel).

use crate::ask::Ask;
use crate::channel::{CHANNELS, Channel, Channels, Side, Spin, kind};
use crate::lock;
use crate::setup::Setup;
use crate::shared;
use crate::wire::{self, Reader, Writer};
use ringfence_core::{
    Call, CallError, Confinement, DomainError, DomainRef, EndCall, Instance, LimitHit, OnLimit, OutFrame,
    Returned, Space, Syscall, SyscallHandler, thread,
};
use ringfence_runtime::{Domain, Imports, LoadOptions, Module};
use std::cell::Cell;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// Standard input, by which the host hands over files.
pub(crate) const SOCKET: i32 = 0;

/// What all threads share.
struct World {
    channels: Channels,
    spin: Spin,
    domain: OnceLock<Domain>,
}

thread_local! {
    /// The channel that this thread serves.
    static MINE: Cell<Option<(&'static World, usize)>> = const { Cell::new(None) };
    /// The domain that has called out on this thread, while the host is asked.
    static OUTSIDE: Cell<Option<*const dyn Space>> = const { Cell::new(None) };
}

/// Runs `f` with the domain noted as one that has called out.
fn outside<T>(domain: DomainRef<'_>, f: impl FnOnce() -> T) -> T {
    // SAFETY: only the lifetime changes; it is forgotten before this returns.
    let space = unsafe { std::mem::transmute::<&dyn Space, &'static dyn Space>(domain.space()) };
    let before = OUTSIDE.replace(Some(std::ptr::from_ref(space)));
    let result = f();
    OUTSIDE.set(before);
    result
}

fn channel(mine: (&'static World, usize)) -> &'static Channel {
    mine.0.channels.get(mine.1)
}

/// Sends a message to the host, and serves what it asks for until it has sent something of `until`'s. That kind.
fn tell(mine: (&'static World, usize), kind: u32, until: &[u32]) -> u32 {
    let channel = channel(mine);
    channel.post(Side::Host, kind);
    loop {
        channel.wait(Side::Worker, mine.0.spin);
        let kind = channel.kind();
        if until.contains(&(kind & 0xFF)) {
            return kind;
        }
        serve(mine, kind);
    }
}

/// Does what the host asks for, and leaves the answer in the channel, posted.
fn serve(mine: (&'static World, usize), message: u32) {
    use std::sync::atomic::Ordering::Relaxed;
    let channel = channel(mine);
    let domain = mine.0.domain.get();
    match (message & 0xFF, domain) {
        (kind::CALL, Some(domain)) => {
            let function = channel.first.load(Relaxed);
            let mut call = Call::default();
            for (n, word) in call.ints.iter_mut().zip(&channel.words) {
                *n = word.load(Relaxed);
            }
            let floats = (message >> 8 & 0xFF) as usize;
            for (x, word) in call.floats.iter_mut().zip(&channel.more).take(floats) {
                *x = f64::from_bits(word.load(Relaxed));
            }
            let words = match message >> 16 {
                0 => Vec::new(),
                count => channel.get_words(count as usize),
            };
            call.stack = &words;
            match enter(domain, function, &mut call) {
                Ok(returned) => {
                    let Returned {
                        rax,
                        rdx,
                        xmm0,
                        xmm1,
                        st0,
                    } = returned;
                    channel.first.store(rax, Relaxed);
                    let (low, high) = st0.split_at(8);
                    let half = |b: &[u8]| b.iter().rev().fold(0, |n, &b| n << 8 | u64::from(b));
                    let all = [rdx, xmm0.to_bits(), xmm1.to_bits(), half(low), half(high)];
                    for (word, n) in channel.words.iter().zip(all) {
                        word.store(n, Relaxed);
                    }
                    channel.post(Side::Host, kind::RETURNED);
                }
                Err(error) => {
                    let mut w = Writer::default();
                    wire::put_call_error(&mut w, &error, 0);
                    channel.put(&w.0);
                    channel.post(Side::Host, kind::FAILED);
                }
            }
        }
        (kind::ASK, _) => {
            let mut w = Writer::default();
            match Ask::read(&channel.get()) {
                Some(Ask::Thread(number)) => {
                    let number = (number as usize).min(CHANNELS - 1);
                    let made = begin(mine.0, number);
                    w.number(made.is_err().into())
                        .text(&made.err().unwrap_or_default());
                }
                Some(ask) => {
                    // SAFETY: set for as long as the domain waits for the host.
                    let outside = OUTSIDE.get().map(|space| DomainRef::of(unsafe { &*space }));
                    ask.answer(domain, outside.or(domain.map(|d| d.space())), &mut w);
                }
                None => {}
            }
            channel.put(&w.0);
            channel.post(Side::Host, kind::ANSWER);
        }
        (kind::CALL, None) => {
            let mut w = Writer::default();
            let error = CallError::Lane("the domain is being made".to_owned());
            wire::put_call_error(&mut w, &error, 0);
            channel.put(&w.0);
            channel.post(Side::Host, kind::FAILED);
        }
        // Nothing that a host of this build sends.
        _ => std::process::abort(),
    }
}

thread_local! {
    /// The function that this thread has called last, found.
    static LAST: std::cell::RefCell<Option<ringfence_runtime::Entry>> = const { std::cell::RefCell::new(None) };
}

fn enter(domain: &Domain, function: u64, call: &mut Call<'_>) -> Result<Returned, CallError> {
    // Taken out meanwhile: calls may nest.
    let entry = match LAST.take().filter(|e| e.address() == function) {
        Some(entry) => entry,
        None => domain
            .entry_by_address(function)
            .map_err(|_| CallError::Removed)?,
    };
    let returned = entry.call(call);
    LAST.set(Some(entry));
    returned
}

/// Starts the thread that serves a channel.
fn begin(world: &'static World, number: usize) -> Result<(), String> {
    let run = move || {
        let mine = (world, number);
        MINE.set(Some(mine));
        loop {
            channel(mine).wait(Side::Worker, world.spin);
            match channel(mine).kind() {
                kind::END => break,
                message => serve(mine, message),
            }
        }
        LAST.set(None);
        channel(mine).post(Side::Host, kind::ANSWER);
    };
    thread::spawn(c"ringfence-call", 512 << 10, run).map_err(|e| e.to_string())
}

/// A host function is called.
fn import(number: usize, frame: &mut OutFrame) -> Result<(), EndCall> {
    use std::sync::atomic::Ordering::Relaxed;
    let Some(mine) = MINE.get() else {
        return Err(EndCall::Fail(
            "a thread that the host does not know has called it".to_owned(),
        ));
    };
    let channel = channel(mine);
    channel.first.store(number as u64, Relaxed);
    for (word, n) in channel.words.iter().zip(frame.ints) {
        word.store(n, Relaxed);
    }
    let vectors = frame.vectors.iter().flatten().copied();
    for (word, n) in channel
        .more
        .iter()
        .zip(vectors.chain([frame.rax, frame.r10, frame.stack]))
    {
        word.store(n, Relaxed);
    }
    let answer = outside(frame.domain(), || {
        tell(mine, kind::IMPORT, &[kind::RETURN, kind::END_CALL])
    });
    match answer & 0xFF {
        kind::RETURN => {
            let word = |n: usize| channel.words[n].load(Relaxed);
            frame.result = [word(0), word(1)];
            frame.vector_result = [[word(2), word(3)], [word(4), word(5)]];
            Ok(())
        }
        _ => Err(wire::get_end(&mut Reader(&channel.get()))),
    }
}

/// The host's policy.
struct Forward;

impl SyscallHandler for Forward {
    fn syscall(&self, domain: &DomainRef<'_>, call: &Syscall) -> Result<i64, EndCall> {
        use std::sync::atomic::Ordering::Relaxed;
        let Some(mine) = MINE.get() else {
            return Ok(-i64::from(libc::ENOSYS));
        };
        let channel = channel(mine);
        channel.first.store(call.number, Relaxed);
        for (word, n) in channel.words.iter().zip(call.args) {
            word.store(n, Relaxed);
        }
        let answer = outside(*domain, || {
            tell(mine, kind::SYSCALL, &[kind::RETURN, kind::END_CALL])
        });
        match answer & 0xFF {
            kind::RETURN => Ok(channel.words[0].load(Relaxed) as i64),
            _ => Err(wire::get_end(&mut Reader(&channel.get()))),
        }
    }

    fn reset(&self) {
        if let Some(mine) = MINE.get() {
            tell(mine, kind::FORGET, &[kind::RETURN]);
        }
    }
}

fn on_limit(domain: &DomainRef<'_>, hit: &LimitHit) -> OnLimit {
    let Some(mine) = MINE.get() else {
        return OnLimit::Keep;
    };
    let channel = channel(mine);
    let mut w = Writer::default();
    wire::put_hit(&mut w, hit);
    channel.put(&w.0);
    outside(*domain, || tell(mine, kind::LIMIT, &[kind::RETURN]));
    match channel.words[0].load(std::sync::atomic::Ordering::Relaxed) {
        0 => OnLimit::Keep,
        to => OnLimit::Raise(to),
    }
}

fn make(setup: &Setup<'_>) -> Result<Domain, DomainError> {
    let mut load = LoadOptions::default();
    load.allow_integrity = setup.allow_integrity;
    load.max_file_size = u32::MAX.into();
    load.max_labels = 65_533;
    let modules: Vec<Module> = setup
        .modules
        .iter()
        .map(|(name, bytes)| Module::from_bytes(name, bytes, &load))
        .collect::<Result<_, _>>()
        .map_err(|e| DomainError::Layout {
            reason: e.to_string(),
        })?;
    let os = |what| move |source| DomainError::Host(ringfence_core::HostError::Os { what, source });
    lock::system_calls(true).map_err(os("filtering system calls"))?;
    let mut imports = Imports::new();
    for (number, name) in setup.imports.iter().enumerate() {
        imports = imports.closure(name, move |frame| import(number, frame));
    }
    if setup.policy {
        imports = imports.policy(Arc::new(Forward));
    }
    if setup.on_limit {
        imports = imports.on_limit(on_limit);
    }
    let domain = Domain::new(&modules, imports, &setup.options())?;
    lock::system_calls(false).map_err(os("filtering system calls"))?;
    Ok(domain)
}

/// The argument by which a worker is asked what it is locked in with here.
pub(crate) const CONFINEMENT: &str = "--confinement";

/// Locks itself in and tells what took hold: a letter each, `y` or `n`.
fn tell_confinement() -> ExitCode {
    let held = lock::leave_the_world().and_then(|held| lock::system_calls(false).map(|()| held));
    match held {
        Ok(held) => {
            let letters =
                [held.system_calls, held.namespaces, held.landlock].map(|yes| if yes { b'y' } else { b'n' });
            match std::io::Write::write_all(&mut std::io::stdout(), &letters) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            }
        }
        Err(e) => {
            eprintln!("{e}");
            ExitCode::FAILURE
        }
    }
}

/// What the program `ringfence-worker` does: its argument is the host's process, its standard input a socket by which it is told what to make, and its standard
/// output the file that it shares with the host.
#[must_use]
pub fn worker() -> ExitCode {
    let told = std::env::args().nth(1);
    if told.as_deref() == Some(CONFINEMENT) {
        return tell_confinement();
    }
    let host = told.and_then(|n| n.parse().ok());
    let Some(host) = host else {
        eprintln!("ringfence-worker: part of Ringfence's back end 'process', which starts it by itself");
        return ExitCode::from(2);
    };
    if !lock::die_with(host) {
        return ExitCode::FAILURE;
    }
    lock::close_others();
    // A thread that ends without a word would leave the host waiting; a process that ends does not.
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        told(panic);
        std::process::abort();
    }));
    let mut bytes = Vec::new();
    let told = shared::receive(SOCKET).map(std::fs::File::from);
    let read = told.and_then(|mut file| std::io::Read::read_to_end(&mut file, &mut bytes).ok());
    let (Some(_), Ok(channels)) = (read, Channels::map(1, shared::CHANNELS_AT)) else {
        return ExitCode::FAILURE;
    };
    let setup = Setup::read(&bytes);
    // SAFETY: standard output is the file that is shared, and nobody else's.
    let file = unsafe { OwnedFd::from_raw_fd(1) };
    if let Ok(setup) = &setup
        && ringfence_runtime::backed::install(setup.base, file).is_err()
    {
        return ExitCode::FAILURE;
    }
    let spin = Spin(Duration::from_nanos(setup.as_ref().map_or(0, |s| s.spin)));
    let world: &'static World = Box::leak(Box::new(World {
        channels,
        spin,
        domain: OnceLock::new(),
    }));
    let mine = (world, 0);
    MINE.set(Some(mine));
    channel(mine).wait(Side::Worker, world.spin);
    let mut confinement = Confinement::default();
    let made = match &setup {
        Ok(setup) => match lock::leave_the_world() {
            Ok(held) => {
                confinement = held;
                make(setup)
            }
            Err(source) => Err(DomainError::Host(ringfence_core::HostError::Os {
                what: "giving up privileges",
                source,
            })),
        },
        Err(reason) => Err(DomainError::Layout {
            reason: reason.clone(),
        }),
    };
    // It is as large as the modules' files.
    drop(setup);
    drop(bytes);
    let mut w = Writer::default();
    match made {
        Ok(domain) => {
            wire::put_confinement(w.number(0), &confinement);
            let _ = world.domain.set(domain);
        }
        Err(e) => wire::put_domain_error(w.number(1), &e),
    }
    channel(mine).put(&w.0);
    // The host ends this process when it is done with it.
    tell(mine, kind::ANSWER, &[kind::END]);
    ExitCode::SUCCESS
}
