//! What a thread of the host and its thread in the worker share: one message at a time, in shared memory.
//!
//! The word `turn` says whose turn it is. Who has it reads the message, writes another one and hands the turn over, so no two
//! write at once. Who waits looks for some time and then sleeps on the word; a bit in it tells the other that it has to be woken.
//!
//! **The other side may write anything at any time.** All is read once, through atomics or by a copy, and then checked.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

/// How many channels there are: one for what concerns the whole domain, and one for each thread.
pub(crate) const CHANNELS: usize = 64;
/// Bytes of a message that are not in its words.
pub(crate) const ROOM: usize = 32 << 10;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Side {
    Host = 0,
    Worker = 1,
}

const ASLEEP: u32 = 2;

/// A channel as it lies in the shared memory. What a call without floating-point or stack arguments needs is in the first 64 bytes.
#[repr(C, align(64))]
pub(crate) struct Channel {
    turn: AtomicU32,
    kind: AtomicU32,
    /// What the message is about: a function, a number, the first result.
    pub(crate) first: AtomicU64,
    pub(crate) words: [AtomicU64; 6],
    /// Vector registers, and what else a frame has.
    pub(crate) more: [AtomicU64; 24],
    room: [AtomicU8; ROOM],
}

/// How long both sides look before they sleep.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spin(pub(crate) Duration);

impl Spin {
    /// Twenty microseconds; nothing where the other side could not run meanwhile.
    pub(crate) fn usual() -> Spin {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Spin(Duration::from_micros(if processors > 1 { 20 } else { 0 }))
    }
}

impl Channel {
    /// A copy of the message's kind.
    pub(crate) fn kind(&self) -> u32 {
        self.kind.load(Ordering::Relaxed)
    }

    /// Hands the turn over, with a message of that kind.
    pub(crate) fn post(&self, to: Side, kind: u32) {
        self.kind.store(kind, Ordering::Relaxed);
        if self.turn.swap(to as u32, Ordering::AcqRel) & ASLEEP != 0 {
            // SAFETY: wakes whoever sleeps on a word that is ours.
            unsafe { libc::syscall(libc::SYS_futex, self.turn.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    }

    pub(crate) fn is(&self, side: Side) -> bool {
        self.turn.load(Ordering::Acquire) & 1 == side as u32
    }

    /// Looks for the turn, for as long as `spin` says. Whether it has come.
    pub(crate) fn look(&self, me: Side, spin: Spin) -> bool {
        if spin.0.is_zero() {
            return self.is(me);
        }
        // The clock is looked at when it has taken some time already.
        let mut begin = None;
        loop {
            for _ in 0..64 {
                if self.is(me) {
                    return true;
                }
                std::hint::spin_loop();
            }
            if begin.get_or_insert_with(Instant::now).elapsed() >= spin.0 {
                return false;
            }
        }
    }

    /// Waits for the turn, awake for some time, then asleep.
    pub(crate) fn wait(&self, me: Side, spin: Spin) {
        if !self.look(me, spin) {
            // Nobody has to be looked after: a worker dies with its host.
            while !self.sleep(me, Duration::from_secs(60)) {}
        }
    }

    /// Sleeps until the turn comes. False if it has not come after `nap`, from when on it is time to look whether the other side lives.
    pub(crate) fn sleep(&self, me: Side, nap: Duration) -> bool {
        let theirs = 1 - me as u32;
        let set = self
            .turn
            .compare_exchange(theirs, theirs | ASLEEP, Ordering::AcqRel, Ordering::Acquire);
        match set {
            Ok(_) => {}
            Err(now) if now & 1 == me as u32 => return true,
            Err(_) => {}
        }
        let time = libc::timespec {
            tv_sec: nap.as_secs() as i64,
            tv_nsec: nap.subsec_nanos().into(),
        };
        let at = self.turn.as_ptr();
        // SAFETY: sleeps on a word that is ours while it has this value, and not for ever.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                at,
                libc::FUTEX_WAIT,
                theirs | ASLEEP,
                &raw const time,
            )
        };
        self.is(me)
    }

    /// Leaves bytes for the other side, as many as there is room for.
    pub(crate) fn put(&self, bytes: &[u8]) {
        let len = bytes.len().min(ROOM);
        self.more[23].store(len as u64, Ordering::Relaxed);
        let to = self.room.as_ptr().cast::<u8>().cast_mut();
        // SAFETY: inside the channel; it is our turn, and what the other side does meanwhile are bytes that nobody trusts.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, len) };
        fence(Ordering::Release);
    }

    /// A copy of the bytes that the other side has left.
    pub(crate) fn get(&self) -> Vec<u8> {
        let len = (self.more[23].load(Ordering::Relaxed) as usize).min(ROOM);
        let mut bytes = vec![0; len];
        // SAFETY: as above.
        unsafe { std::ptr::copy_nonoverlapping(self.room.as_ptr().cast::<u8>(), bytes.as_mut_ptr(), len) };
        bytes
    }

    /// Words of arguments on the stack.
    pub(crate) fn put_words(&self, words: &[u64]) {
        let to = self.room.as_ptr().cast::<u64>().cast_mut();
        // SAFETY: 128 words at most, as callers check; otherwise as above.
        unsafe { std::ptr::copy_nonoverlapping(words.as_ptr(), to, words.len().min(ROOM / 8)) };
    }

    /// As many words.
    pub(crate) fn get_words(&self, count: usize) -> Vec<u64> {
        let mut words = vec![0; count.min(ROOM / 8)];
        // SAFETY: as above.
        unsafe {
            std::ptr::copy_nonoverlapping(self.room.as_ptr().cast::<u64>(), words.as_mut_ptr(), words.len());
        }
        words
    }
}

/// The channels, mapped.
pub(crate) struct Channels(*mut Channel);

// SAFETY: channels are made of atomics, and bytes that are copied.
unsafe impl Send for Channels {}
// SAFETY: as above.
unsafe impl Sync for Channels {}

impl Channels {
    pub(crate) const BYTES: usize = CHANNELS * size_of::<Channel>();

    /// Maps them, from where they are in the file.
    pub(crate) fn map(fd: i32, offset: u64) -> std::io::Result<Channels> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                Self::BYTES,
                rights,
                libc::MAP_SHARED,
                fd,
                offset as i64,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Channels(at.cast()))
    }

    pub(crate) fn get(&self, number: usize) -> &Channel {
        assert!(number < CHANNELS);
        // SAFETY: mapped while `self` lives; all bytes are a channel.
        unsafe { &*self.0.add(number) }
    }
}

impl Drop for Channels {
    fn drop(&mut self) {
        // SAFETY: our own mapping.
        unsafe { libc::munmap(self.0.cast(), Self::BYTES) };
    }
}

/// Kinds of messages. The second byte of a kind counts vector arguments, the upper half words on the stack.
pub(crate) mod kind {
    // From the host.
    pub(crate) const CALL: u32 = 1;
    /// What a host function returned: results in words.
    pub(crate) const RETURN: u32 = 2;
    /// What ends the call instead: bytes.
    pub(crate) const END_CALL: u32 = 3;
    /// Something else that is asked for: bytes.
    pub(crate) const ASK: u32 = 4;
    /// The thread is done.
    pub(crate) const END: u32 = 5;
    // From the worker.
    pub(crate) const RETURNED: u32 = 16;
    pub(crate) const FAILED: u32 = 17;
    /// The domain calls a host function: `first` is its number.
    pub(crate) const IMPORT: u32 = 18;
    pub(crate) const SYSCALL: u32 = 19;
    /// A limit was reached: bytes.
    pub(crate) const LIMIT: u32 = 20;
    /// The policy is to forget what it had open.
    pub(crate) const FORGET: u32 = 21;
    /// The answer to something that was asked for: bytes.
    pub(crate) const ANSWER: u32 = 22;
}
