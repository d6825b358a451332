//! System calls on objects of the host's: as far as the domain's rights to words reach.

mod support;

use ringfence::policy::{Policy, Rights as Access};
use ringfence::{Arena, Domain, Func, Imports, LoadOptions, Rights, WordsPolicy};
use support::from_text_with;
use support::guest::{Scratch, errno};

const SOURCE: &str = "long sys(long n, long a, long b, long c) { return call(n, a, b, c); }\n";

type Sys = Func<(i64, u64, u64, u64), i64>;

struct Driver {
    arena: Arena,
    domain: Domain,
    sys: Sys,
}

impl Driver {
    fn new(policy: Policy) -> Driver {
        let mut options = LoadOptions::default();
        options.allow_words = true;
        let module = from_text_with(
            SOURCE,
            &["--isolation=words", "-nostdlib", "-ffreestanding"],
            &options,
        );
        let arena = Arena::new(4 << 20).expect("an arena");
        let imports = Imports::new()
            .arena(&arena)
            .policy(policy.start().expect("a policy"));
        let domain = Domain::new(&module, imports).expect("a domain");
        let sys = domain.func("sys").expect("a function");
        Driver { arena, domain, sys }
    }

    fn call(&self, number: libc::c_long, a: u64, b: u64, c: u64) -> i64 {
        let result = self.sys.call(number, a, b, c).expect("the call ends");
        result.into_inner_unchecked()
    }

    fn open(&self, path: u64, flags: i32) -> u64 {
        let fd = self.call(libc::SYS_open, path, flags as u64, 0);
        assert!(fd >= 0, "{fd}");
        fd as u64
    }

    /// An object with these bytes, of which the domain may read the first `len`.
    fn readable(&self, bytes: &[u8], len: u64) -> u64 {
        let at = self.empty(bytes.len() as u64, 0);
        // SAFETY: an object of the arena, as long as they are.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), at as *mut u8, bytes.len()) };
        self.domain.give_words(at, len, Rights::Read).expect("words");
        at
    }

    /// An object of which the domain may write the first `len` bytes.
    fn empty(&self, size: u64, len: u64) -> u64 {
        let at = self.arena.alloc(size).expect("an object");
        self.domain.give_words(at, len, Rights::Write).expect("words");
        at
    }

    fn path(&self, path: &str) -> u64 {
        let mut bytes = path.as_bytes().to_vec();
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0xFF);
        self.readable(&bytes, bytes.len() as u64)
    }

    fn bytes(&self, at: u64, len: usize) -> Vec<u8> {
        // SAFETY: in an object of the arena; no call is in progress.
        unsafe { std::slice::from_raw_parts(at as *const u8, len) }.to_vec()
    }
}

fn with_files(name: &str) -> (Scratch, Driver) {
    let scratch = Scratch::new(name);
    let driver = Driver::new(Policy::new().dir(&scratch.0, "/d", Access::Write));
    (scratch, driver)
}

#[test]
fn files_are_read_and_written_as_far_as_rights_reach() {
    needs!(Words);
    let (scratch, d) = with_files("words-files");
    let file = d.path("/d/file");
    let fd = d.open(file, libc::O_RDWR);
    // Up to the last word that may be written, as the kernel fills memory up to what is not there.
    let to = d.empty(32, 12);
    assert_eq!(d.call(libc::SYS_read, fd, to, 16), 12);
    assert_eq!(d.bytes(to, 16), b"0123456789ab\0\0\0\0");
    assert_eq!(d.call(libc::SYS_read, fd, to + 10, 16), 2);
    assert_eq!(d.bytes(to, 16), b"0123456789cd\0\0\0\0");
    assert_eq!(d.call(libc::SYS_read, fd, to + 12, 4), errno(libc::EFAULT));
    // What may be read only is not filled.
    let from = d.readable(b"abcdefghijklmnop", 8);
    assert_eq!(d.call(libc::SYS_read, fd, from, 4), errno(libc::EFAULT));
    assert_eq!(d.call(libc::SYS_write, fd, from + 2, 14), 6);
    assert_eq!(d.call(libc::SYS_write, fd, from + 8, 4), errno(libc::EFAULT));
    assert_eq!(
        std::fs::read(scratch.0.join("file")).expect("the file"),
        b"0123456789abcdcdefgh"
    );
    // Rights that were taken are gone; so is what lies beyond the arena.
    d.domain.give_words(from, 8, Rights::None).expect("taken");
    assert_eq!(d.call(libc::SYS_write, fd, from, 4), errno(libc::EFAULT));
    assert_eq!(
        d.call(libc::SYS_write, fd, d.arena.range().end, 4),
        errno(libc::EFAULT)
    );
    assert_eq!(d.call(libc::SYS_write, fd, from, 0), 0);
}

#[test]
fn large_ones_move_as_a_whole() {
    needs!(Words);
    let (scratch, d) = with_files("words-large");
    let len = 1_000_000;
    let bytes: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
    let from = d.readable(&bytes, len);
    let fd = d.open(d.path("/d/large"), libc::O_RDWR | libc::O_CREAT);
    assert_eq!(d.call(libc::SYS_write, fd, from, len), len as i64);
    assert_eq!(std::fs::read(scratch.0.join("large")).expect("the file"), bytes);
    assert_eq!(d.call(libc::SYS_lseek, fd, 0, 0), 0);
    let to = d.empty(len, len - 4);
    assert_eq!(d.call(libc::SYS_read, fd, to, len), len as i64 - 4);
    assert_eq!(d.bytes(to, len as usize - 4), bytes[..len as usize - 4]);
    assert_eq!(d.bytes(to + len - 4, 4), [0; 4]);
}

#[test]
fn vectors_mix_both_kinds_of_memory() {
    needs!(Words);
    let (scratch, d) = with_files("words-vectors");
    let fd = d.open(d.path("/d/file"), libc::O_RDWR);
    let own = d.domain.memory().alloc_array::<u8>(4).expect("memory").leak();
    let (one, two) = (d.empty(8, 8), d.empty(8, 4));
    let vector = [one, 6, own.address(), 4, two, 8].map(u64::to_ne_bytes);
    // The vector itself is an object, too.
    let vector = d.readable(vector.as_flattened(), 48);
    assert_eq!(d.call(libc::SYS_readv, fd, vector, 3), 14);
    assert_eq!(d.bytes(one, 8), b"012345\0\0");
    let middle = d.domain.memory().read_vec(own, 4).expect("bytes");
    assert_eq!(middle.into_inner_unchecked(), b"6789");
    assert_eq!(d.bytes(two, 8), b"abcd\0\0\0\0");
    assert_eq!(d.call(libc::SYS_writev, fd, vector, 3), 14);
    assert_eq!(
        std::fs::read(scratch.0.join("file")).expect("the file"),
        b"0123456789abcd0123456789abcd"
    );
}

#[test]
fn structures_and_names_are_objects_too() {
    needs!(Words);
    let (_scratch, d) = with_files("words-structures");
    let file = d.path("/d/file");
    let stat = d.empty(144, 144);
    assert_eq!(d.call(libc::SYS_stat, file, stat, 0), 0);
    assert_eq!(d.bytes(stat + 48, 8), 16_u64.to_ne_bytes());
    // One word less, and nothing is written.
    let short = d.empty(144, 140);
    assert_eq!(d.call(libc::SYS_stat, file, short, 0), errno(libc::EFAULT));
    assert_eq!(d.bytes(short, 144), [0; 144]);
    // A name without an end in what may be read.
    let open_end = d.readable(b"/d/file\0", 4);
    assert_eq!(d.call(libc::SYS_stat, open_end, stat, 0), errno(libc::EFAULT));
    let directory = d.open(d.path("/d"), libc::O_RDONLY | libc::O_DIRECTORY);
    let list = d.empty(1024, 1024);
    let len = d.call(libc::SYS_getdents64, directory, list, 1024);
    assert!(len > 0, "{len}");
    let entries = d.bytes(list, len as usize);
    assert!(entries.windows(5).any(|w| w == b"file\0"));
}

#[test]
fn streams_give_what_is_there() {
    needs!(Words);
    let (_scratch, d) = with_files("words-streams");
    let both = d.empty(8, 8);
    assert_eq!(d.call(libc::SYS_pipe, both, 0, 0), 0);
    let ends = d.bytes(both, 8);
    let end = |at: usize| u64::from(ends[at]);
    let text = d.readable(b"some text...", 12);
    assert_eq!(d.call(libc::SYS_write, end(4), text, 9), 9);
    // More room than one step takes, and less in the pipe: nobody waits.
    let to = d.empty(600_000, 600_000);
    assert_eq!(d.call(libc::SYS_read, end(0), to, 600_000), 9);
    assert_eq!(d.bytes(to, 12), b"some text\0\0\0");
    // A counter, whose eight bytes go as a whole.
    let counter = d.call(libc::SYS_eventfd2, 7, 0, 0) as u64;
    assert_eq!(d.call(libc::SYS_read, counter, to, 8), 8);
    assert_eq!(d.bytes(to, 8), 7_u64.to_ne_bytes());
    assert_eq!(
        d.call(libc::SYS_read, counter, d.empty(8, 4), 8),
        errno(libc::EINVAL)
    );
}

#[test]
fn random_bytes_fill_objects() {
    needs!(Words);
    let d = Driver::new(Policy::new().randomness(true));
    let to = d.empty(400_000, 399_996);
    let n = d.call(libc::SYS_getrandom, to, 400_000, 0);
    assert!((1..=399_996).contains(&n), "{n}");
    assert_ne!(d.bytes(to, 16), [0; 16]);
    assert_eq!(d.bytes(to + 399_996, 4), [0; 4]);
}

#[test]
fn learning_notes_them() {
    needs!(Words);
    let (_scratch, d) = with_files("words-learning");
    let fd = d.open(d.path("/d/file"), libc::O_RDWR);
    let name = d.arena.put(*b"/d/file\0").expect("a name");
    let to = d.empty(144, 0);
    let signatures = WordsPolicy::parse("sys(n: number, a: bytes, b: bytes, c: number)").expect("signatures");
    let mut learner = d.domain.learn_words(&signatures).expect("it learns");
    let arguments = [libc::SYS_read as u64, fd, to, 12];
    let read = learner.call("sys", &arguments, || d.call(libc::SYS_read, fd, to, 12));
    assert_eq!(read, 12);
    let path = name.address();
    let arguments = [libc::SYS_open as u64, path, 0, 0];
    let opened = learner.call("sys", &arguments, || d.call(libc::SYS_open, path, 0, 0));
    assert!(opened >= 0, "{opened}");
    let learned = learner.policy().expect("all noted");
    assert!(learned.contains("reads a[8]; writes b[12]"), "{learned}");
    drop(learner);
    assert_eq!(d.call(libc::SYS_read, fd, to, 12), errno(libc::EFAULT));
}
