//! A domain that makes the system calls that a test tells it to.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;

use super::Start;
use ringfence::policy::Policy;
use ringfence::{CallError, Domain, Func, Imports, Ptr};

pub type Call = Func<(i64, i64, i64, i64, i64, i64, i64), i64>;

/// The domain, and its function.
pub struct Guest {
    pub domain: Domain,
    pub call: Call,
}

impl Guest {
    pub fn new(policy: Policy) -> Guest {
        let monitor = policy.start().unwrap();
        let domain = super::module("syscall")
            .start(Imports::new().policy(monitor))
            .unwrap();
        let call = domain.func("system_call").unwrap();
        Guest { domain, call }
    }

    pub fn raw(&self, number: i64, args: &[i64]) -> Result<i64, CallError> {
        let a = |i: usize| args.get(i).copied().unwrap_or(0);
        let result = self.call.call(number, a(0), a(1), a(2), a(3), a(4), a(5))?;
        Ok(result.into_inner_unchecked())
    }

    pub fn sys(&self, number: i64, args: &[i64]) -> i64 {
        self.raw(number, args).unwrap()
    }

    /// The words in memory of the domain.
    pub fn words(&self, words: &[i64]) -> i64 {
        self.domain.memory().put_slice(words).unwrap().leak().address() as i64
    }

    pub fn read_words(&self, at: i64, count: usize) -> Vec<i64> {
        let at = Ptr::<i64>::from_address(at as u64);
        self.domain
            .memory()
            .read_vec(at, count)
            .unwrap()
            .into_inner_unchecked()
    }

    pub fn text(&self, text: &str) -> i64 {
        self.domain.memory().put_c_string(text).unwrap().leak().address() as i64
    }

    pub fn buffer(&self, len: usize) -> i64 {
        self.domain
            .memory()
            .alloc_array::<u8>(len)
            .unwrap()
            .leak()
            .address() as i64
    }

    pub fn pipe(&self) -> [i64; 2] {
        let at = self.words(&[0]);
        assert_eq!(self.sys(libc::SYS_pipe, &[at]), 0);
        let both = self.read_words(at, 1)[0];
        [both & 0xFFFF_FFFF, both >> 32]
    }

    /// A `sockaddr_in`.
    pub fn address(&self, address: SocketAddr) -> i64 {
        let SocketAddr::V4(v4) = address else {
            panic!("IPv4")
        };
        let mut bytes = [0u8; 16];
        bytes[0] = libc::AF_INET as u8;
        bytes[2..4].copy_from_slice(&v4.port().to_be_bytes());
        bytes[4..8].copy_from_slice(&v4.ip().octets());
        self.domain.memory().put_slice(&bytes).unwrap().leak().address() as i64
    }

    pub fn socket(&self, flags: i32) -> i64 {
        let kind = i64::from(libc::SOCK_STREAM | flags);
        let fd = self.sys(libc::SYS_socket, &[libc::AF_INET.into(), kind, 0]);
        assert!(fd >= 0, "{fd}");
        fd
    }

    /// A socket that is connected to one of ours.
    pub fn connected(&self, listener: &TcpListener) -> (i64, TcpStream) {
        let fd = self.socket(0);
        let address = self.address(listener.local_addr().unwrap());
        assert_eq!(self.sys(libc::SYS_connect, &[fd, address, 16]), 0);
        (fd, listener.accept().unwrap().0)
    }
}

/// A directory of a test's own, gone with the test.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn empty(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("rf-test-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// With a `file` of 16 bytes in it.
    pub fn new(name: &str) -> Scratch {
        let scratch = Scratch::empty(name);
        std::fs::write(scratch.0.join("file"), "0123456789abcdef").unwrap();
        scratch
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a call that fails with `e` returns.
pub fn errno(e: i32) -> i64 {
    -i64::from(e)
}
