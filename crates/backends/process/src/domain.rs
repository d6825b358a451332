//! A domain in a process of its own, as the host has it.

use crate::ask::Ask;
use crate::channel::{Channel, Channels, Spin, kind};
use crate::child;
use crate::link::Link;
use crate::setup::Setup;
use crate::shared;
use crate::threads;
use crate::wire::{self, Reader};
use ringfence_calls::{Pointer, Then};
use ringfence_core::{
    Backend, Call, CallError, Confinement, DomainError, DomainOptions, DomainRef, Given, HostError, Instance,
    OutFrame, Reporting, Returned, Signature, SnapshotError, Space, Unsupported, Usage,
};
use ringfence_isa::Isolation;
use ringfence_runtime::{KeptFile, Module, Twin, supervisor};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::io::{Seek, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How many words of stack arguments a call may have.
const MOST_WORDS: usize = 128;

/// A domain whose code runs in a process of its own.
pub struct Domain(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) me: Weak<Shared>,
    pub(crate) link: Link,
    pub(crate) resets: AtomicU64,
    /// Threads that the domain has asked for, from when they are told to be inside.
    pub(crate) spawned: AtomicU32,
    /// A bit for each channel.
    pub(crate) taken: Mutex<u64>,
    /// Held by who uses the first channel, for a message that the worker answers by itself.
    first: Mutex<()>,
    setup: Vec<u8>,
    /// What the worker has too: the window, what the domain may do there, and the channels.
    file: KeptFile,
    pub(crate) twin: Twin,
    /// The worker's socket, by which it gets files.
    pub(crate) socket: Mutex<Option<KeptFile>>,
    confinement: Mutex<Confinement>,
    /// Nanoseconds; 0 is for ever.
    time_limit: AtomicU64,
    reporting: Reporting,
    thunks: Mutex<BTreeMap<(u64, Signature), Pointer>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn nanoseconds(limit: Option<Duration>) -> u64 {
    limit.map_or(0, |l| u64::try_from(l.as_nanos()).unwrap_or(u64::MAX).max(1))
}

fn os(what: &'static str) -> impl Fn(std::io::Error) -> DomainError {
    move |source| HostError::Os { what, source }.into()
}

fn being_made() -> CallError {
    CallError::Process {
        how: "it is being made anew".to_owned(),
    }
}

/// What a call that was not made says about a question.
fn unanswered(error: CallError) -> DomainError {
    DomainError::Unanswered {
        source: Box::new(error),
    }
}

impl Domain {
    /// Starts a worker and has it make a domain of the modules.
    ///
    /// # Errors
    /// [`DomainError`]; [`DomainError::Worker`] if there is no process for it.
    pub fn new(
        modules: &[Module],
        given: Given,
        options: &DomainOptions,
        reporting: Reporting,
    ) -> Result<Domain, DomainError> {
        options.check()?;
        modules.iter().try_for_each(|m| m.check_addressing(options))?;
        // There is no arena for a domain in a process of its own.
        modules.iter().try_for_each(|m| m.check_isolation(false))?;
        let spin = Spin::usual();
        let (imports, functions): (Vec<_>, Vec<_>) = given.functions.into_iter().unzip();
        let file = shared::file()?;
        let twin = Twin::new(file.as_fd())?;
        let setup = Setup {
            base: twin.base(),
            numbers: DomainOptions::TABLE.iter().map(|row| row.of(options)).collect(),
            modules: modules
                .iter()
                .map(|m| (m.name().to_owned(), m.original()))
                .collect(),
            allow_integrity: modules.iter().any(|m| m.isolation() == Isolation::Integrity),
            imports,
            policy: given.policy.is_some(),
            on_limit: given.on_limit.is_some(),
            spin: spin.0.as_nanos() as u64,
        };
        let setup = setup.write()?;
        let channels = Channels::map(file.as_raw_fd(), shared::CHANNELS_AT)
            .map_err(os("mapping memory for the domain's process"))?;
        let file = KeptFile::new(file)?;
        let name = modules.first().map_or("", Module::name).to_owned();
        let link = Link::new(
            channels,
            spin,
            name,
            functions,
            given.policy,
            given.on_limit,
            options.cancel.clone(),
        );
        let shared = Arc::new_cyclic(|me| Shared {
            me: me.clone(),
            link,
            resets: AtomicU64::new(0),
            spawned: AtomicU32::new(0),
            taken: Mutex::default(),
            first: Mutex::default(),
            setup,
            file,
            twin,
            socket: Mutex::default(),
            confinement: Mutex::default(),
            time_limit: AtomicU64::new(nanoseconds(options.time_limit)),
            reporting,
            thunks: Mutex::default(),
        });
        let domain = Domain(shared);
        let making = domain.0.begin_making()?;
        domain.0.start()?;
        drop(making);
        // What others gave it while its constructors ran.
        supervisor::renew(domain.0.twin.base())?;
        Ok(domain)
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        let shared = &self.0;
        shared.link.end("the domain is gone");
        if shared.link.maker.is_me() {
            supervisor::forget(shared.twin.base());
        }
    }
}

/// While it is there, the first channel is the calling thread's, which makes the domain. Nobody waits for it with a lock held: what the
/// constructors' host functions do may need that lock.
struct Making<'a>(&'a Link);

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.making.store(false, Ordering::SeqCst);
    }
}

impl Shared {
    /// Nobody else gets at the worker from here on.
    fn begin_making(&self) -> Result<Making<'_>, DomainError> {
        let _first = lock(&self.first);
        let busy = || DomainError::Busy { lanes: 1 };
        if self.link.making.swap(true, Ordering::SeqCst) {
            return Err(busy());
        }
        let making = Making(&self.link);
        if !self.link.is_lost() {
            return Ok(making);
        }
        // No thread has a channel any more. One that had looked for its own before is seen here, or sees this.
        self.link.renumber();
        match self.link.is_quiet() {
            true => Ok(making),
            false => Err(busy()),
        }
    }

    /// Starts a worker, which makes the domain.
    fn start(&self) -> Result<(), DomainError> {
        let setup = shared::memory_file(c"ringfence-setup")?;
        let mut file = std::fs::File::from(setup);
        file.write_all(&self.setup)
            .and_then(|()| file.rewind())
            .map_err(os("a memory file for the domain's process"))?;
        let (mine, theirs) = shared::socket()?;
        shared::send(mine.as_fd(), file.as_fd())?;
        *lock(&self.socket) = Some(KeptFile::new(mine)?);
        let channels = self
            .file
            .get()?
            .try_clone_to_owned()
            .map_err(os("a descriptor for the domain's process"))?;
        // The worker waits for the first turn; its first message is what became of the domain, or what it wants meanwhile.
        *lock(&self.taken) = 0;
        self.link.clear(0);
        let pid = child::start(theirs, channels)?;
        self.link.started(pid);
        let place = self.link.first();
        let made = threads::while_making(self, || self.link.exchange(place, Some(self), 0, |_| kind::END));
        let unusable = |error: CallError| DomainError::Worker {
            reason: error.to_string(),
        };
        let bytes = match made.map_err(unusable)? {
            kind::ANSWER => self.link.channels.get(0).get(),
            _ => Vec::new(),
        };
        let mut r = Reader(&bytes);
        let failed = match (bytes.is_empty(), r.number()) {
            (false, 0) => None,
            (true, _) => Some(DomainError::Worker {
                reason: "it said nothing".to_owned(),
            }),
            _ => Some(wire::get_domain_error(&mut r)),
        };
        if let Some(error) = failed {
            self.link.end("the domain was not made");
            return Err(error);
        }
        *lock(&self.confinement) = wire::get_confinement(&mut r);
        Ok(())
    }

    /// Asks the worker, through the calling thread's channel.
    pub(crate) fn ask(&self, ask: &Ask) -> Result<Vec<u8>, CallError> {
        let place = threads::channel(self)?;
        self.link.ask(place, Some(self), ask)
    }

    /// Asks the worker for something that no thread's channel is needed for.
    ///
    /// # Errors
    /// Another thread makes the domain, which takes as long as constructors do.
    pub(crate) fn whole(&self, ask: &Ask) -> Result<Vec<u8>, CallError> {
        let _first = lock(&self.first);
        if self.link.making.load(Ordering::SeqCst) && !threads::makes(self) {
            return Err(being_made());
        }
        self.link.ask(self.link.first(), None, ask)
    }

    /// A number, or why there is none.
    fn number(&self, ask: &Ask) -> Result<u64, DomainError> {
        let bytes = self.ask(ask).map_err(unanswered)?;
        let mut r = Reader(&bytes);
        match (bytes.is_empty(), r.number()) {
            (false, 0) => Ok(r.number()),
            _ => Err(wire::get_domain_error(&mut r)),
        }
    }

    pub(crate) fn function_at(&self, address: u64) -> Result<u64, DomainError> {
        self.number(&Ask::FunctionAt(address))
    }

    pub(crate) fn call(&self, function: u64, call: &Call<'_>) -> Result<Returned, CallError> {
        self.call_with(function, &call.ints, &call.floats, call.stack)
    }

    fn call_with(
        &self,
        function: u64,
        ints: &[u64; 6],
        floats: &[f64],
        stack: &[u64],
    ) -> Result<Returned, CallError> {
        if stack.len() > MOST_WORDS {
            return Err(CallError::Arguments {
                given: stack.len(),
                limit: MOST_WORDS,
            });
        }
        let place = threads::channel(self)?;
        let write = |channel: &Channel| {
            channel.first.store(function, Relaxed);
            for (word, n) in channel.words.iter().zip(ints) {
                word.store(*n, Relaxed);
            }
            for (word, x) in channel.more.iter().zip(floats) {
                word.store(x.to_bits(), Relaxed);
            }
            if !stack.is_empty() {
                channel.put_words(stack);
            }
            kind::CALL | (floats.len() as u32) << 8 | (stack.len() as u32) << 16
        };
        let limit = self.time_limit.load(Relaxed);
        let answer = self.link.exchange(place, Some(self), limit, write)?;
        let channel = self.link.channels.get(place.number);
        let word = |n: usize| channel.words[n].load(Relaxed);
        match answer {
            kind::RETURNED => {
                let mut st0 = [0; 16];
                st0[..8].copy_from_slice(&word(3).to_le_bytes());
                st0[8..].copy_from_slice(&word(4).to_le_bytes());
                Ok(Returned {
                    rax: channel.first.load(Relaxed),
                    rdx: word(0),
                    xmm0: f64::from_bits(word(1)),
                    xmm1: f64::from_bits(word(2)),
                    st0,
                })
            }
            _ => Err(wire::get_call_error(&mut Reader(&channel.get()), 0)),
        }
    }

    /// After a reset: memory of the host's is of the new life.
    fn count_resets(&self) {
        if let Ok(bytes) = self.ask(&Ask::Usage) {
            let mut r = Reader(&bytes);
            r.number();
            self.resets
                .store(wire::get_usage(&mut r).resets, Ordering::Release);
        }
    }

    fn reset(&self, ask: &Ask) -> Result<(), DomainError> {
        if !self.link.maker.is_me() {
            return Err(unanswered(self.link.gone()));
        }
        if self.link.is_lost() {
            return self.replace();
        }
        if self.spawned.load(Ordering::Acquire) > 0 {
            return Err(DomainError::Busy { lanes: 1 });
        }
        match self.number(ask) {
            // It ended meanwhile.
            Err(DomainError::Unanswered { .. }) if self.link.is_lost() => self.replace(),
            other => {
                self.count_resets();
                other.map(drop)
            }
        }
    }

    /// Starts another worker in place of one that has ended.
    fn replace(&self) -> Result<(), DomainError> {
        self.start_again()?;
        Ok(supervisor::renew(self.twin.base())?)
    }

    fn start_again(&self) -> Result<(), DomainError> {
        let _making = self.begin_making()?;
        if !self.link.is_lost() {
            // Somebody else was quicker.
            return Ok(());
        }
        self.link.end("it was replaced");
        // The one before has ended: nobody else has the file.
        shared::empty(self.file.get()?)?;
        if let Some(policy) = &self.link.policy {
            policy.reset();
        }
        self.start()?;
        // What was allocated before is gone. The new worker counts from 0.
        self.resets.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    fn checkpoint(&self) -> Result<(), SnapshotError> {
        // What the worker does not know of.
        if supervisor::has_rights(self.twin.base()) {
            return Err(SnapshotError::Regions);
        }
        if let Some(held) = self.link.policy.as_ref().and_then(|p| p.holds()) {
            return Err(SnapshotError::Held(held));
        }
        let bytes = self.ask(&Ask::Checkpoint).map_err(unanswered)?;
        let mut r = Reader(&bytes);
        match (bytes.is_empty(), r.number()) {
            (false, 0) => Ok(()),
            _ => Err(wire::get_snapshot_error(&mut r)),
        }
    }

    fn arrive(&self, function: u64, signature: &Signature, frame: &mut OutFrame) {
        let floats: [f64; 8] = std::array::from_fn(|n| f64::from_bits(frame.vectors[n][0]));
        let floats = &floats[..usize::from(if signature.variadic {
            8
        } else {
            signature.floats.min(8)
        })];
        let mut ints = [0; 6];
        let taken = if signature.variadic {
            6
        } else {
            usize::from(signature.ints.min(6))
        };
        ints[..taken].copy_from_slice(&frame.ints[..taken]);
        for (n, width) in ints.iter_mut().zip(signature.narrow.ints) {
            *n &= match width {
                // Nothing of a register that is not taken, and the sign of what is narrow, which it has in 32 bits.
                ringfence_core::Width::Short { .. } | ringfence_core::Width::Byte { .. } => 0xFFFF_FFFF,
                other => other.mask(),
            };
        }
        let words: Vec<u64> = (0..usize::from(signature.stack))
            // SAFETY: who calls a function of this type has put so many words there.
            .map(|n| unsafe { (frame.stack as *const u64).add(n).read() })
            .collect();
        match self.call_with(function, &ints, floats, &words) {
            Ok(returned) => {
                frame.result = [returned.rax, returned.rdx];
                frame.vector_result[0][0] = returned.xmm0.to_bits();
                frame.vector_result[1][0] = returned.xmm1.to_bits();
                self.reporting.succeed();
            }
            Err(error) => (self.reporting.fail)(error),
        }
    }
}

impl Instance for Domain {
    fn backend(&self) -> Backend {
        Backend::Process
    }

    fn space(&self) -> DomainRef<'_> {
        DomainRef::of(&*self.0)
    }

    fn function(&self, name: &str) -> Result<u64, DomainError> {
        self.0.number(&Ask::Function(name.to_owned()))
    }

    fn function_at(&self, address: u64) -> Result<u64, DomainError> {
        self.0.function_at(address)
    }

    fn call(&self, function: u64, call: &mut Call<'_>) -> Result<Returned, CallError> {
        self.0.call(function, call)
    }

    fn thunk(&self, function: u64, signature: &Signature) -> Result<*const c_void, DomainError> {
        let mut thunks = lock(&self.0.thunks);
        if let Some(known) = thunks.get(&(function, *signature)) {
            return Ok(known.code());
        }
        let (me, signature, fail) = (self.0.me.clone(), *signature, self.0.reporting.fail);
        let arrive = move |frame: &mut OutFrame| {
            match me.upgrade() {
                Some(shared) => shared.arrive(function, &signature, frame),
                None => fail(CallError::Gone),
            }
            Then::Return
        };
        let made = Pointer::stub(self.0.reporting, Arc::new(arrive))?;
        let code = made.code();
        thunks.insert((function, signature), made);
        Ok(code)
    }

    fn interrupt(&self) -> Result<(), Unsupported> {
        self.0.interrupt();
        Ok(())
    }

    fn faulted(&self) -> bool {
        self.0.link.usable().is_err() || self.0.number(&Ask::Faulted).is_ok_and(|n| n != 0)
    }

    fn set_time_limit(&self, limit: Option<Duration>) -> Result<(), Unsupported> {
        let limit = nanoseconds(limit);
        self.0.time_limit.store(limit, Relaxed);
        let _ = self.0.whole(&Ask::TimeLimit((limit != 0).then_some(limit)));
        Ok(())
    }

    fn reset(&self) -> Result<(), DomainError> {
        self.0.reset(&Ask::Reset)
    }

    fn recycle(&self) -> Result<(), DomainError> {
        supervisor::forget(self.0.twin.base());
        self.0.reset(&Ask::Recycle)
    }

    fn run_destructors(&self) -> Result<(), DomainError> {
        self.0.number(&Ask::Destructors).map(drop)
    }

    fn trim(&self) -> Result<usize, HostError> {
        match self.0.number(&Ask::Trim) {
            Ok(count) => Ok(count as usize),
            Err(e) => Err(HostError::Os {
                what: "giving back stacks",
                source: std::io::Error::other(e.to_string()),
            }),
        }
    }

    fn checkpoint(&self) -> Result<(), SnapshotError> {
        self.0.checkpoint()
    }

    fn confinement(&self) -> Result<Confinement, Unsupported> {
        Ok(*lock(&self.0.confinement))
    }

    fn set_tag(&self, tag: u64) {
        self.0.link.tag.store(tag, Relaxed);
    }

    fn usage(&self) -> Usage {
        let mut usage = match self.0.ask(&Ask::Usage) {
            Ok(bytes) => {
                let mut r = Reader(&bytes);
                r.number();
                wire::get_usage(&mut r)
            }
            Err(_) => Usage::default(),
        };
        // One that is on its way to the worker is inside.
        usage.active = usage.active.max(self.0.spawned.load(Ordering::Acquire));
        if let Some(policy) = &self.0.link.policy {
            usage.descriptors = policy.descriptors();
            usage.disk = policy.disk();
        }
        usage
    }
}
