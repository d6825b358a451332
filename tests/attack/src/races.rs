//! Double fetches: one lane rewrites memory while the host validates it for another. What the host checked must be what it
//! uses, whichever of the two values it saw.

use crate::caller;
use crate::calls::Yard;
use crate::code::data;
use crate::fuzz::domain_of;
use ringfence_policy::{Policy, Rights};
use ringfence_runtime::{Call, Domain, DomainOptions, Imports};
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What came of one race.
#[derive(Clone, Debug)]
pub struct Race {
    /// What was raced for.
    pub name: &'static str,
    /// How often the host looked.
    pub tries: u64,
    /// How often it saw the one value, and the other; both must have happened, or it was no race.
    pub saw: (u64, u64),
    /// Anything wrong; must be empty.
    pub violations: Vec<String>,
}

/// A domain with a thread in it that writes two words in turn to one place.
struct Track<'a> {
    domain: &'a Domain,
    /// Where the flipped word is: an address in the window.
    place: u64,
}

impl Track<'_> {
    fn at(domain: &Domain, byte: u32) -> Track<'_> {
        let place = domain.as_ref().base() + u64::from(data(byte));
        Track { domain, place }
    }

    fn call(&self, number: libc::c_long, args: &[u64]) -> i64 {
        let mut all = vec![number as u64];
        all.extend(args);
        caller::system_call(self.domain, &all)
    }

    /// Calls `look` until the time is over while the word flips between `one` and `other`. It says which it saw, or what is wrong.
    fn run(
        &self,
        name: &'static str,
        limit: Duration,
        (one, other): (u64, u64),
        mut look: impl FnMut(&Self) -> Result<Option<bool>, String>,
    ) -> Race {
        let mut race = Race {
            name,
            tries: 0,
            saw: (0, 0),
            violations: Vec::new(),
        };
        let stop = AtomicBool::new(false);
        let memory = self.domain.as_ref();
        memory.write(self.place, &one.to_le_bytes()).expect("data");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let flip = self.domain.entry("flip").expect("an export");
                while !stop.load(Ordering::Relaxed) {
                    let _ = flip.call(&mut Call::ints(&[self.place, one, other, 20_000]));
                }
            });
            let begin = Instant::now();
            // On a busy machine it may take a while until both run.
            let raced = |race: &Race| race.saw.0 > 0 && race.saw.1 > 0 || begin.elapsed() > 40 * limit;
            while race.violations.is_empty() && !(begin.elapsed() > limit && raced(&race)) {
                race.tries += 1;
                match look(self) {
                    Ok(Some(true)) => race.saw.0 += 1,
                    Ok(Some(false)) => race.saw.1 += 1,
                    Ok(None) => {}
                    Err(wrong) => race.violations.push(wrong),
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        race
    }
}

fn word(text: &[u8; 8]) -> u64 {
    u64::from_le_bytes(*text)
}

/// Races for each of the host's checks, `limit` long each.
///
/// # Panics
///
/// If the runtime refuses the module, or there are no sockets.
#[must_use]
pub fn run(limit: Duration) -> Vec<Race> {
    let yard = Yard::new();
    let allowed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let denied = TcpListener::bind("127.0.0.1:0").expect("a port");
    for listener in [&allowed, &denied] {
        listener.set_nonblocking(true).expect("an option");
    }
    let policy = Policy::new()
        .dir(yard.path("in"), "/in", Rights::Write)
        .connect(allowed.local_addr().expect("an address"));
    let imports = Imports::new()
        .closure("host", |_| Ok(()))
        .policy(policy.start().expect("a policy"));
    let domain = domain_of(&caller::module(), imports, &DomainOptions::default()).expect("a domain");
    vec![
        paths(&domain, limit),
        vectors(&domain, limit),
        addresses(&domain, limit, &allowed, &denied),
        strings(&domain, limit),
        values(&domain, limit),
        mappings(&domain, limit),
    ]
}

/// `/in/a` or `/../ou…`: the path that was opened is one of the two, and never outside.
fn paths(domain: &Domain, limit: Duration) -> Race {
    let track = Track::at(domain, 0x2000);
    // The last bytes lie behind the flipping word: "/in/./../out/secret" in one case.
    let memory = domain.as_ref();
    memory.write(track.place + 8, b"/out/secret\0").expect("data");
    let buffer = track.place + 0x100;
    track.run("paths", limit, (word(b"/in/a\0\0\0"), word(b"/in/../.")), |t| {
        let fd = t.call(libc::SYS_open, &[t.place, 0, 0]);
        if fd < 0 {
            return Ok(Some(false));
        }
        let n = t.call(libc::SYS_read, &[fd as u64, buffer, 64]);
        t.call(libc::SYS_close, &[fd as u64]);
        let mut text = vec![0; n.max(0) as usize];
        memory.read(buffer, &mut text).map_err(|e| e.to_string())?;
        match &text[..] {
            b"a" => Ok(Some(true)),
            other => Err(format!("opened what holds {:?}", String::from_utf8_lossy(other))),
        }
    })
}

/// The base of an `iovec` flips between a buffer and the window's last bytes.
fn vectors(domain: &Domain, limit: Duration) -> Race {
    let track = Track::at(domain, 0x3000);
    let memory = domain.as_ref();
    let base = memory.base();
    let canary = vec![0xC5u8; 4096];
    let good = base + u64::from(data(0x4000));
    // Two elements: what the second is, is copied with the first.
    for (at, value) in [(8, 16u64), (16, good), (24, 16)] {
        memory
            .write(track.place + at, &value.to_le_bytes())
            .expect("data");
    }
    let ends = track.place + 0x800;
    assert_eq!(track.call(libc::SYS_pipe, &[ends]), 0);
    let mut fds = [0; 8];
    memory.read(ends, &mut fds).expect("data");
    let (read, write) = (u64::from(fds[0]), u64::from(fds[4]));
    // An address of the host's, whose lower half is the window's top.
    let bad = canary.as_ptr() as u64 & !0xFFFF_FFFF | 0xFFFF_FFF8;
    let race = track.run("iovec", limit, (good, bad), |t| {
        let n = t.call(libc::SYS_writev, &[write, t.place, 2]);
        if n > 0 {
            let n = t.call(libc::SYS_readv, &[read, t.place, 2]);
            let left = 32 - n.max(0) as u64;
            // What could not be read now.
            if left > 0 {
                t.call(libc::SYS_read, &[read, good, left]);
            }
        }
        if canary.iter().any(|b| *b != 0xC5) {
            return Err("host memory was written".into());
        }
        Ok(Some(n > 0))
    });
    for fd in [read, write] {
        track.call(libc::SYS_close, &[fd]);
    }
    race
}

/// A socket address flips between one that is granted and one that is not.
fn addresses(domain: &Domain, limit: Duration, allowed: &TcpListener, denied: &TcpListener) -> Race {
    let track = Track::at(domain, 0x5000);
    let name = |listener: &TcpListener| {
        let SocketAddr::V4(address) = listener.local_addr().expect("an address") else {
            unreachable!("bound to an IPv4 address")
        };
        let mut bytes = [2, 0, 0, 0, 127, 0, 0, 1];
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        word(&bytes)
    };
    domain.as_ref().write(track.place, &[0; 16]).expect("data");
    track.run("sockaddr", limit, (name(allowed), name(denied)), |t| {
        let fd = t.call(libc::SYS_socket, &[2, 1, 0]);
        if fd < 0 {
            return Err(format!("socket: {fd}"));
        }
        let connected = t.call(libc::SYS_connect, &[fd as u64, t.place, 16]) == 0;
        t.call(libc::SYS_close, &[fd as u64]);
        while allowed.accept().is_ok() {}
        if denied.accept().is_ok() {
            return Err("connected to an address that was not granted".into());
        }
        Ok(Some(connected))
    })
}

/// A string's NUL comes and goes while the host reads it.
fn strings(domain: &Domain, limit: Duration) -> Race {
    let track = Track::at(domain, 0x6000);
    domain.as_ref().write(track.place + 8, b"tail\0").expect("data");
    track.run(
        "strings",
        limit,
        (word(b"short\0\0\0"), word(b"longlong")),
        |t| match t.domain.as_ref().read_c_string(t.place, 64) {
            Ok(text) if text == b"short" => Ok(Some(true)),
            Ok(text) if text == b"longlongtail" => Ok(Some(false)),
            other => Err(format!("{other:?}")),
        },
    )
}

/// A length that is checked and then used: the copy is what counts.
fn values(domain: &Domain, limit: Duration) -> Race {
    let track = Track::at(domain, 0x7000);
    let table = [0u8; 64];
    track.run("values", limit, (63, u64::MAX), |t| {
        let mut bytes = [0; 8];
        t.domain
            .as_ref()
            .read(t.place, &mut bytes)
            .map_err(|e| e.to_string())?;
        let index = u64::from_le_bytes(bytes);
        match index {
            63 => Ok(Some(table[index as usize] == 0)),
            u64::MAX => Ok(Some(false)),
            torn => Err(format!("half of each: {torn:#x}")),
        }
    })
}

/// Memory comes and goes while the host copies it: an error, and nothing worse. The word that flips is no matter.
fn mappings(domain: &Domain, limit: Duration) -> Race {
    let track = Track::at(domain, 0x8000);
    let fixed = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED) as u64;
    let len = 1 << 16;
    let at = track.call(libc::SYS_mmap, &[0, len, 3, fixed & !(libc::MAP_FIXED as u64)]) as u64;
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = Track::at(domain, 0x8000);
            while !stop.load(Ordering::Relaxed) {
                other.call(libc::SYS_munmap, &[at + 0x8000, 0x8000]);
                other.call(libc::SYS_mmap, &[at, len, 3, fixed]);
            }
        });
        let mut copy = vec![0; len as usize];
        let race = track.run("mappings", limit, (0, 1), |t| {
            let memory = t.domain.as_ref();
            let read = memory.read(at, &mut copy).is_ok();
            let _ = memory.write(at, &copy);
            let _ = memory.read_c_string(at + 0x7FF0, 1 << 15);
            Ok(Some(read))
        });
        stop.store(true, Ordering::Relaxed);
        race
    })
}
