//! What people use instead of a fence: another process, spoken to through a pipe or through shared memory.

use std::io;
use std::os::fd::IntoRawFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::place::{Place, Processors};

/// Most bytes a request has.
pub const ROOM: usize = 4096;

/// How requests travel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Bytes through two pipes.
    Pipe,
    /// Bytes through a pair of Unix sockets.
    Socket,
    /// Bytes in shared memory, futexes to wake the other side.
    Shared,
    /// Bytes in shared memory, and both sides look all the time: that keeps two processors busy.
    Spinning,
}

#[repr(C)]
struct Shared {
    /// 0: nothing to do; n: a request of n bytes is in `data`.
    request: AtomicU32,
    /// 1: the answer is there.
    answer: AtomicU32,
    data: [u8; ROOM],
}

/// A process that reverses what it is sent.
pub struct Server {
    process: libc::pid_t,
    transport: Transport,
    to: i32,
    from: i32,
    shared: *mut Shared,
}

fn pipe() -> io::Result<[i32; 2]> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for both ends
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(ends)
    }
}

fn wait(transport: Transport, word: &AtomicU32, value: u32) {
    while word.load(Ordering::Acquire) == value {
        if transport == Transport::Spinning {
            std::hint::spin_loop();
        } else {
            // SAFETY: a futex wait on a word that is mapped as long as both processes live
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, 0) };
        }
    }
}

fn wake(transport: Transport, word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Release);
    if transport == Transport::Shared {
        // SAFETY: as in `wait`
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
    }
}

fn read_all(from: i32, to: &mut [u8]) -> bool {
    let mut done = 0;
    while done < to.len() {
        // SAFETY: the range is inside `to`
        let n = unsafe { libc::read(from, to[done..].as_mut_ptr().cast(), to.len() - done) };
        if n <= 0 {
            return false;
        }
        done += n as usize;
    }
    true
}

fn write_all(to: i32, bytes: &[u8]) -> bool {
    // SAFETY: the range is inside `bytes`; a pipe takes 4 KiB and a length at once
    unsafe { libc::write(to, bytes.as_ptr().cast(), bytes.len()) == bytes.len() as isize }
}

impl Server {
    /// Starts one, on the same processor or on another.
    pub fn start(transport: Transport, processors: Processors, place: Place) -> io::Result<Self> {
        // SAFETY: a fresh anonymous mapping
        let shared = unsafe {
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Shared>(),
                rights,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if shared == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let shared = shared.cast::<Shared>();
        let (there, back) = match transport {
            Transport::Socket => {
                // One descriptor of each pair serves both ways; the four ends are closed alike.
                let (near, far) = UnixStream::pair()?;
                let (near_too, far_too) = (near.try_clone()?, far.try_clone()?);
                (
                    [far.into_raw_fd(), near.into_raw_fd()],
                    [near_too.into_raw_fd(), far_too.into_raw_fd()],
                )
            }
            _ => (pipe()?, pipe()?),
        };
        // SAFETY: this program has one thread; the child only serves and exits
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                processors.stay(place);
                // SAFETY: the child dies with its parent; the mapping is its own
                unsafe {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                    serve(transport, there[0], back[1], &mut *shared);
                    libc::_exit(0)
                }
            }
            process => Ok(Server {
                process,
                transport,
                to: there[1],
                from: back[0],
                shared,
            }),
        }
    }

    /// Has `bytes` reversed; at most [`ROOM`] of them.
    pub fn reverse(&mut self, bytes: &mut [u8]) {
        match self.transport {
            Transport::Pipe | Transport::Socket => {
                let mut message = [0; ROOM + 4];
                message[..4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
                message[4..4 + bytes.len()].copy_from_slice(bytes);
                assert!(write_all(self.to, &message[..4 + bytes.len()]) && read_all(self.from, bytes));
            }
            Transport::Shared | Transport::Spinning => {
                // SAFETY: the mapping lives as long as self; the other side touches `data` only between wake and answer
                let shared = unsafe { &mut *self.shared };
                shared.data[..bytes.len()].copy_from_slice(bytes);
                shared.answer.store(0, Ordering::Relaxed);
                wake(self.transport, &shared.request, bytes.len() as u32);
                wait(self.transport, &shared.answer, 0);
                bytes.copy_from_slice(&shared.data[..bytes.len()]);
            }
        }
    }
}

fn serve(transport: Transport, from: i32, to: i32, shared: &mut Shared) {
    let mut buffer = [0; ROOM];
    loop {
        match transport {
            Transport::Pipe | Transport::Socket => {
                let mut length = [0; 4];
                if !read_all(from, &mut length) {
                    return;
                }
                let bytes = &mut buffer[..u32::from_le_bytes(length) as usize];
                if !read_all(from, bytes) {
                    return;
                }
                bytes.reverse();
                write_all(to, bytes);
            }
            Transport::Shared | Transport::Spinning => {
                wait(transport, &shared.request, 0);
                let length = shared.request.swap(0, Ordering::AcqRel) as usize;
                shared.data[..length].reverse();
                wake(transport, &shared.answer, 1);
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: our own child, our own descriptors and mapping
        unsafe {
            libc::kill(self.process, libc::SIGKILL);
            libc::waitpid(self.process, std::ptr::null_mut(), 0);
            libc::close(self.to);
            libc::close(self.from);
            libc::munmap(self.shared.cast(), size_of::<Shared>());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Server, Transport};
    use crate::place::{Place, Processors};

    #[test]
    fn all_transports_reverse() {
        let processors = Processors::of_this_thread();
        let mut ways = vec![
            (Transport::Pipe, Place::Here),
            (Transport::Socket, Place::There),
            (Transport::Shared, Place::Here),
        ];
        if processors.two() {
            ways.push((Transport::Spinning, Place::There));
        }
        for (transport, place) in ways {
            let mut server = Server::start(transport, processors, place).expect("a server");
            for text in ["abc", "", "0123456789"].iter().filter(|t| !t.is_empty()) {
                let mut bytes = text.as_bytes().to_vec();
                server.reverse(&mut bytes);
                let expected: String = text.chars().rev().collect();
                assert_eq!(bytes, expected.as_bytes());
            }
        }
    }
}
