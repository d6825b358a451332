//! The host's end of the channels of one worker: messages, and what the worker wants in between.

use crate::ask::Ask;
use crate::channel::{CHANNELS, Channel, Channels, Side, Spin, kind};
use crate::child::{self, Maker};
use crate::wire::{self, Reader, Writer};
use ringfence_core::calling::while_calling;
use ringfence_core::{
    CallError, Cancel, DomainRef, EndCall, Fault, FaultKind, HostFunction, LimitHit, LimitHook, OnLimit,
    OutFrame, Returned, Signature, Space, Syscall, SyscallHandler, Width,
};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a host sleeps before it looks whether the worker lives.
const NAP: Duration = Duration::from_millis(10);
/// The same if there is a word to look at.
const SHORT_NAP: Duration = Duration::from_millis(1);
/// How much longer than its limit a call may take before the worker, whose affair that is, is taken for one that does not do its work.
const GRACE: Duration = Duration::from_secs(2);

pub(crate) struct Link {
    pub(crate) channels: Channels,
    pub(crate) spin: Spin,
    pub(crate) maker: Maker,
    pub(crate) name: String,
    /// The worker's process; 0 when it is gone and waited for.
    pub(crate) pid: AtomicI32,
    /// Set once the worker is known to have ended.
    lost: AtomicBool,
    how: Mutex<String>,
    /// Channels that a message is on the way in.
    busy: [AtomicBool; CHANNELS],
    /// By their numbers.
    pub(crate) functions: Vec<HostFunction>,
    pub(crate) policy: Option<Arc<dyn SyscallHandler>>,
    pub(crate) on_limit: Option<Arc<LimitHook>>,
    pub(crate) cancel: Option<Cancel>,
    /// A number of the host's.
    pub(crate) tag: AtomicU64,
    /// Changes with the worker. No two domains of a process have the same, ever.
    id: AtomicU64,
    /// Whether a thread makes the domain, through the first channel.
    pub(crate) making: AtomicBool,
}

/// A thread's channel, of the worker that it was given by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) number: usize,
    pub(crate) id: u64,
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

impl Link {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn new(
        channels: Channels,
        spin: Spin,
        name: String,
        functions: Vec<HostFunction>,
        policy: Option<Arc<dyn SyscallHandler>>,
        on_limit: Option<Arc<LimitHook>>,
        cancel: Option<Cancel>,
    ) -> Link {
        Link {
            channels,
            spin,
            maker: Maker::me(),
            name,
            pid: AtomicI32::new(0),
            lost: AtomicBool::new(true),
            how: Mutex::new("it was not started".to_owned()),
            busy: [const { AtomicBool::new(false) }; CHANNELS],
            functions,
            policy,
            on_limit,
            cancel,
            tag: AtomicU64::new(0),
            id: AtomicU64::new(next_id()),
            making: AtomicBool::new(false),
        }
    }

    /// A worker has been started.
    pub(crate) fn started(&self, pid: i32) {
        self.pid.store(pid, Ordering::Release);
        self.lost.store(false, Ordering::Release);
    }

    /// Which worker it is.
    pub(crate) fn id(&self) -> u64 {
        self.id.load(Ordering::SeqCst)
    }

    /// Takes all threads' channels from them.
    pub(crate) fn renumber(&self) {
        self.id.store(next_id(), Ordering::SeqCst);
    }

    /// The channel for what concerns the whole domain.
    pub(crate) fn first(&self) -> Place {
        Place {
            number: 0,
            id: self.id(),
        }
    }

    /// Whether there is no worker any more.
    pub(crate) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    fn lose(&self, how: String) {
        *self.how.lock().unwrap_or_else(PoisonError::into_inner) = how;
        self.lost.store(true, Ordering::Release);
    }

    /// Why nothing can be asked.
    pub(crate) fn gone(&self) -> CallError {
        let how = match self.maker.is_me() {
            true => self.how.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            false => "it belongs to the process that this one was forked from".to_owned(),
        };
        CallError::Process { how }
    }

    /// That there is a worker, and that it is ours.
    pub(crate) fn usable(&self) -> Result<(), CallError> {
        match self.maker.is_me() && !self.is_lost() {
            true => Ok(()),
            false => Err(self.gone()),
        }
    }

    /// Ends the worker, if this process has made it.
    pub(crate) fn end(&self, how: &str) {
        if !self.maker.is_me() {
            return;
        }
        let pid = self.pid.swap(0, Ordering::AcqRel);
        if !self.is_lost() {
            self.lose(how.to_owned());
        }
        if pid > 0 {
            child::end(pid);
        }
    }

    /// Whether no thread waits for an answer.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.busy.iter().any(|b| b.load(Ordering::SeqCst))
    }

    /// Nobody uses the channel: it is the host's turn in it.
    pub(crate) fn clear(&self, number: usize) {
        self.channels.get(number).post(Side::Host, 0);
    }

    /// Sends a message, which `write` leaves in the channel, and does what the worker wants until it has an answer. `limit` is how long the
    /// domain itself may take, in nanoseconds; 0 is for ever.
    pub(crate) fn exchange(
        &self,
        place: Place,
        space: Option<&dyn Space>,
        limit: u64,
        write: impl FnOnce(&Channel) -> u32,
    ) -> Result<u32, CallError> {
        self.usable()?;
        let number = place.number;
        // In the middle of another message: a signal handler.
        if self.busy[number].swap(true, Ordering::SeqCst) {
            return Err(CallError::Inside);
        }
        // Behind the channel of another worker's is no thread of this one's.
        if self.id() != place.id {
            self.busy[number].store(false, Ordering::Release);
            return Err(self.gone());
        }
        let channel = self.channels.get(number);
        let mut message = write(channel);
        let ended = loop {
            channel.post(Side::Worker, message);
            if let Err(e) = self.wait(place, channel, limit) {
                break Err(e);
            }
            let answer = channel.kind() & 0xFF;
            if let kind::RETURNED | kind::FAILED | kind::ANSWER = answer {
                break Ok(answer);
            }
            // The host's own code runs: it may send messages of its own.
            self.busy[number].store(false, Ordering::Release);
            let wanted = match (answer, space) {
                (kind::IMPORT, Some(space)) => self.import(channel, space),
                (kind::SYSCALL, Some(space)) => self.syscall(channel, space),
                (kind::LIMIT, Some(space)) => self.limit(channel, space),
                (kind::FORGET, _) => {
                    if let Some(policy) = &self.policy {
                        let _ = catch_unwind(AssertUnwindSafe(|| policy.reset()));
                    }
                    Some(kind::RETURN)
                }
                _ => None,
            };
            match wanted {
                Some(_) if self.is_lost() => break Err(self.gone()),
                Some(next) => message = next,
                None => {
                    self.end("it sent what no worker sends, and was ended");
                    break Err(self.gone());
                }
            }
            self.busy[number].store(true, Ordering::Release);
        };
        self.busy[number].store(false, Ordering::Release);
        ended
    }

    /// Asks for something; the answer.
    pub(crate) fn ask(
        &self,
        place: Place,
        space: Option<&dyn Space>,
        ask: &Ask,
    ) -> Result<Vec<u8>, CallError> {
        let write = |channel: &Channel| {
            channel.put(&ask.write());
            kind::ASK
        };
        match self.exchange(place, space, 0, write)? {
            kind::ANSWER => Ok(self.channels.get(place.number).get()),
            _ => Ok(Vec::new()),
        }
    }

    fn wait(&self, place: Place, channel: &Channel, limit: u64) -> Result<(), CallError> {
        // Most calls are over before anybody has looked at a clock.
        if channel.look(Side::Host, self.spin) {
            return Ok(());
        }
        let deadline = match limit {
            0 => None,
            limit => Instant::now().checked_add(Duration::from_nanos(limit) + GRACE),
        };
        let nap = if self.cancel.is_some() { SHORT_NAP } else { NAP };
        while !channel.sleep(Side::Host, nap) {
            if self.is_lost() {
                return Err(self.gone());
            }
            if let Some(how) = child::ended(self.pid.load(Ordering::Acquire)) {
                // Its last word may have come meanwhile.
                if channel.is(Side::Host) {
                    return Ok(());
                }
                self.lose(how);
                return Err(self.gone());
            }
            if deadline.is_some_and(|d| Instant::now() >= d) {
                self.end("it did not end a call whose time was up, and was ended");
                let fault = Fault::untraced(FaultKind::TimeLimit, self.name.clone());
                return Err(CallError::Fault(Box::new(fault)));
            }
            if self.cancel.as_ref().is_some_and(Cancel::is_set) {
                if place.number == 0 && self.making.load(Ordering::SeqCst) {
                    self.end("it was cancelled while its constructors ran");
                    return Err(self.gone());
                }
                // Who is interrupted has to come out by itself; the next look is in a millisecond.
                let _ = self.ask(self.first(), None, &Ask::Interrupt);
            }
        }
        Ok(())
    }

    /// The domain calls a host function. What the worker gets back.
    fn import(&self, channel: &Channel, space: &dyn Space) -> Option<u32> {
        let function = self
            .functions
            .get(usize::try_from(channel.first.load(Relaxed)).ok()?)?;
        let mut frame = OutFrame::new(space);
        for (n, word) in frame.ints.iter_mut().zip(&channel.words) {
            *n = word.load(Relaxed);
        }
        let mut more = channel.more.iter().map(|w| w.load(Relaxed));
        for half in frame.vectors.iter_mut().flatten() {
            *half = more.next()?;
        }
        (frame.rax, frame.r10, frame.stack) = (more.next()?, more.next()?, more.next()?);
        let outcome = match function {
            HostFunction::Plain { function, signature } => {
                let words = words(space, frame.stack, signature);
                let returned = while_calling(self.tag.load(Relaxed), || {
                    // SAFETY: the host has given the function for all arguments.
                    unsafe { ringfence_calls::call(*function as *const _, &frame, &words) }
                });
                let Returned {
                    rax, rdx, xmm0, xmm1, ..
                } = returned;
                // Registers that carry no result are the host's own.
                let narrow = &signature.narrow;
                let ints = [rax & mask(narrow.int_result), rdx];
                for (to, n) in frame
                    .result
                    .iter_mut()
                    .zip(ints)
                    .take(signature.int_results.into())
                {
                    *to = n;
                }
                let single = if narrow.single_result {
                    u64::from(u32::MAX)
                } else {
                    u64::MAX
                };
                let floats = [xmm0.to_bits() & single, xmm1.to_bits()];
                for (to, n) in frame
                    .vector_result
                    .iter_mut()
                    .zip(floats)
                    .take(signature.float_results.into())
                {
                    to[0] = n;
                }
                Ok(())
            }
            HostFunction::Closure(closure) => match catch_unwind(AssertUnwindSafe(|| {
                while_calling(self.tag.load(Relaxed), || closure(&mut frame))
            })) {
                Ok(outcome) => outcome,
                Err(panic) => Err(EndCall::panicked("a host function", &*panic)),
            },
        };
        if let Err(how) = outcome {
            return Some(ends(channel, &how));
        }
        let results = frame
            .result
            .into_iter()
            .chain(frame.vector_result.into_iter().flatten());
        for (word, n) in channel.words.iter().zip(results) {
            word.store(n, Relaxed);
        }
        Some(kind::RETURN)
    }

    fn syscall(&self, channel: &Channel, space: &dyn Space) -> Option<u32> {
        let policy = self.policy.as_ref()?;
        let call = Syscall {
            number: channel.first.load(Relaxed),
            args: std::array::from_fn(|n| channel.words[n].load(Relaxed)),
        };
        let answer = catch_unwind(AssertUnwindSafe(|| policy.syscall(&DomainRef::of(space), &call)))
            .unwrap_or_else(|panic| Err(EndCall::panicked("the policy", &*panic)));
        match answer {
            Ok(value) => {
                channel.words[0].store(value as u64, Relaxed);
                Some(kind::RETURN)
            }
            Err(how) => Some(ends(channel, &how)),
        }
    }

    fn limit(&self, channel: &Channel, space: &dyn Space) -> Option<u32> {
        let hit = wire::get_hit(&mut Reader(&channel.get()));
        let to = self.tell_limit(space, &hit);
        channel.words[0].store(to.unwrap_or(0), Relaxed);
        Some(kind::RETURN)
    }

    /// What the host's function for limits decides.
    pub(crate) fn tell_limit(&self, space: &dyn Space, hit: &LimitHit) -> Option<u64> {
        let hook = self.on_limit.as_ref()?;
        match catch_unwind(AssertUnwindSafe(|| hook(&DomainRef::of(space), hit))) {
            Ok(OnLimit::Raise(to)) if to > hit.limit() => Some(to),
            _ => None,
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.end("it was ended");
    }
}

/// A function's arguments on the stack; 0 where the domain has nothing.
fn words(space: &dyn Space, stack: u64, signature: &Signature) -> Vec<u64> {
    let mut words = vec![0u64; signature.stack.into()];
    for (n, word) in words.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        if space.read(stack.wrapping_add(8 * n as u64), &mut bytes).is_ok() {
            *word = u64::from_le_bytes(bytes);
        }
    }
    words
}

fn mask(width: Width) -> u64 {
    width.mask()
}

fn ends(channel: &Channel, how: &EndCall) -> u32 {
    let mut w = Writer::default();
    wire::put_end(&mut w, how);
    channel.put(&w.0);
    kind::END_CALL
}
