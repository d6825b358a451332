//! Packets of an interface, as they come: a ring that the kernel fills (`AF_PACKET`, `TPACKET_V3`).

use std::ffi::{CString, c_int, c_void};
use std::io::{Error, ErrorKind};
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::time::Duration;

use crate::capture::Packet;

/// Why packets cannot be had from an interface.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// There is no interface of that name.
    #[error("there is no interface `{0}`; `ip link` lists them")]
    NoInterface(String),
    /// Its packets have no link type that is known here.
    #[error("packets of `{0}` are of a kind that is not supported ({1})")]
    Kind(String, u16),
    /// Capturing is not allowed.
    #[error(
        "capturing needs the capability CAP_NET_RAW: run as root, or `setcap cap_net_raw+ep` on this program"
    )]
    NotAllowed,
    /// The interface is down, or went away.
    #[error("the interface `{0}` is down")]
    Down(String),
    /// What the system says.
    #[error("{what}: {error}")]
    System {
        /// What was asked of it.
        what: &'static str,
        /// What it answers.
        error: Error,
    },
}

/// How many packets came, since the capture began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that the kernel had for us, dropped ones among them.
    pub received: u64,
    /// Packets that found the ring full.
    pub dropped: u64,
}

/// The ring: blocks that the kernel hands over when they are full, or after [`RETIRE`] milliseconds.
const BLOCK: usize = 1 << 20;
const BLOCKS: usize = 16;
const FRAME: usize = 2048;
const RETIRE: u32 = 60;

/// An interface whose packets are captured. Not shared between threads.
#[derive(Debug)]
pub struct Live {
    name: String,
    link: i32,
    loopback: bool,
    ring: Ring,
    /// The block that comes next.
    next: usize,
    counts: Counts,
    /// A packet whose VLAN tag was put back.
    tagged: Vec<u8>,
    // Closed after the ring is unmapped.
    socket: OwnedFd,
}

/// The kernel's memory that is mapped here.
#[derive(Debug)]
struct Ring(NonNull<u8>);

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: mapped in `Ring::map` with this length, and nobody else has it.
        unsafe { libc::munmap(self.0.as_ptr().cast(), BLOCK * BLOCKS) };
    }
}

fn failed(what: &'static str) -> LiveError {
    let error = Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => LiveError::NotAllowed,
        _ => LiveError::System { what, error },
    }
}

/// Sets an option of the level `SOL_PACKET`.
fn set<T>(socket: &OwnedFd, option: c_int, value: &T, what: &'static str) -> Result<(), LiveError> {
    let from: *const T = value;
    // SAFETY: the kernel reads the value's bytes.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            option,
            from.cast(),
            size_of::<T>() as u32,
        )
    };
    if set == 0 { Ok(()) } else { Err(failed(what)) }
}

impl Live {
    /// Begins to capture. `promiscuous`: also packets that are for others.
    ///
    /// # Errors
    /// [`LiveError`].
    pub fn open(interface: &str, promiscuous: bool) -> Result<Live, LiveError> {
        let unknown = || LiveError::NoInterface(interface.into());
        let name = CString::new(interface).map_err(|_| unknown())?;
        // SAFETY: a string that ends with 0.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        if index == 0 || name.as_bytes().len() >= libc::IFNAMSIZ {
            return Err(unknown());
        }
        // Protocol 0: nothing comes before the socket is bound to the interface.
        // SAFETY: makes a descriptor, which is ours.
        let socket = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(failed("a socket of packets"));
        }
        // SAFETY: as above.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let (link, loopback) = match kind(&socket, &name)? {
            libc::ARPHRD_ETHER => (crate::ETHERNET, false),
            libc::ARPHRD_LOOPBACK => (crate::ETHERNET, true),
            libc::ARPHRD_NONE => (crate::RAW_IP, false),
            other => return Err(LiveError::Kind(interface.into(), other)),
        };
        let version = libc::tpacket_versions::TPACKET_V3 as c_int;
        set(&socket, libc::PACKET_VERSION, &version, "a ring of version 3")?;
        let request = libc::tpacket_req3 {
            tp_block_size: BLOCK as u32,
            tp_block_nr: BLOCKS as u32,
            tp_frame_size: FRAME as u32,
            tp_frame_nr: (BLOCK / FRAME * BLOCKS) as u32,
            tp_retire_blk_tov: RETIRE,
            tp_sizeof_priv: 0,
            tp_feature_req_word: 0,
        };
        set(&socket, libc::PACKET_RX_RING, &request, "a ring")?;
        let ring = Ring::map(&socket)?;
        // SAFETY: of zeroes it is an address without anything.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as c_int;
        let from: *const libc::sockaddr_ll = &address;
        // SAFETY: the kernel reads the address.
        let bound = unsafe { libc::bind(socket.as_raw_fd(), from.cast(), size_of_val(&address) as u32) };
        let live = Live {
            name: interface.into(),
            link,
            loopback,
            ring,
            next: 0,
            counts: Counts::default(),
            tagged: Vec::new(),
            socket,
        };
        if bound != 0 {
            return Err(live.told(failed("the interface")));
        }
        live.look()?;
        if promiscuous && !loopback {
            let member = libc::packet_mreq {
                mr_ifindex: index as c_int,
                mr_type: libc::PACKET_MR_PROMISC as u16,
                mr_alen: 0,
                mr_address: [0; 8],
            };
            set(
                &live.socket,
                libc::PACKET_ADD_MEMBERSHIP,
                &member,
                "packets that are for others",
            )?;
        }
        Ok(live)
    }

    /// The link type of the packets, `DLT_…`.
    #[must_use]
    pub fn link(&self) -> i32 {
        self.link
    }

    /// Waits for packets, not longer than a signal or a moment (0.2 s), and hands over those of one block.
    /// `None` if none came. What `each` fails with ends it.
    ///
    /// # Errors
    /// [`LiveError::Down`] if the interface went away; what `each` returns.
    pub fn packets<E: From<LiveError>>(
        &mut self,
        mut each: impl FnMut(&Packet<'_>) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        let block = self.ring.block(self.next);
        if !block.is_ours() {
            self.wait()?;
            if !block.is_ours() {
                return Ok(None);
            }
        }
        let result = block.each(|frame| match frame.of(self.loopback, &mut self.tagged) {
            Some((bytes, wire)) => each(&Packet {
                time: frame.time,
                wire,
                link: self.link,
                bytes,
            }),
            None => Ok(()),
        });
        block.give_back();
        self.next = (self.next + 1) % BLOCKS;
        result.map(Some)
    }

    /// How many packets came so far, and how many the kernel had to drop.
    ///
    /// # Errors
    /// [`LiveError::System`].
    pub fn counts(&mut self) -> Result<Counts, LiveError> {
        // SAFETY: of zeroes it is no packets.
        let mut stats: libc::tpacket_stats_v3 = unsafe { zeroed() };
        let mut len = size_of_val(&stats) as u32;
        let to: *mut libc::tpacket_stats_v3 = &mut stats;
        // SAFETY: the kernel writes at most `len` bytes there.
        let got = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                to.cast(),
                &mut len,
            )
        };
        if got != 0 {
            return Err(failed("how many packets came"));
        }
        // Reading them sets the kernel's to 0.
        self.counts.received += u64::from(stats.tp_packets);
        self.counts.dropped += u64::from(stats.tp_drops);
        Ok(self.counts)
    }

    fn wait(&self) -> Result<(), LiveError> {
        let mut poll = libc::pollfd {
            fd: self.socket.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, which is open.
        let ready = unsafe { libc::poll(&mut poll, 1, 200) };
        if ready < 0 && Error::last_os_error().kind() != ErrorKind::Interrupted {
            return Err(failed("waiting for packets"));
        }
        match poll.revents & (libc::POLLERR | libc::POLLHUP) {
            0 => Ok(()),
            _ => self.look(),
        }
    }

    /// Whether something is wrong with the interface.
    fn look(&self) -> Result<(), LiveError> {
        let (mut error, mut len): (c_int, u32) = (0, size_of::<c_int>() as u32);
        let to: *mut c_int = &mut error;
        // SAFETY: the kernel writes an integer.
        let got = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ERROR,
                to.cast(),
                &mut len,
            )
        };
        match (got, error) {
            (0, 0) => Ok(()),
            (0, code) => Err(self.told(LiveError::System {
                what: "the interface",
                error: Error::from_raw_os_error(code),
            })),
            _ => Err(failed("the interface")),
        }
    }

    fn told(&self, error: LiveError) -> LiveError {
        match &error {
            LiveError::System { error: e, .. }
                if matches!(e.raw_os_error(), Some(libc::ENETDOWN | libc::ENODEV)) =>
            {
                LiveError::Down(self.name.clone())
            }
            _ => error,
        }
    }
}

/// The interface's kind, `ARPHRD_…`.
fn kind(socket: &OwnedFd, name: &CString) -> Result<u16, LiveError> {
    // SAFETY: of zeroes it is a request without anything.
    let mut request: libc::ifreq = unsafe { zeroed() };
    for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from as _;
    }
    let to: *mut libc::ifreq = &mut request;
    // SAFETY: the kernel reads the name, which ends with 0, and writes an address.
    let asked = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR as _, to) };
    if asked != 0 {
        return Err(failed("the interface's kind"));
    }
    // SAFETY: the kernel has written this one.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

impl Ring {
    fn map(socket: &OwnedFd) -> Result<Ring, LiveError> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the kernel chooses where.
        let at: *mut c_void = unsafe {
            libc::mmap(
                null_mut(),
                BLOCK * BLOCKS,
                access,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        match NonNull::new(at.cast()) {
            Some(start) if at != libc::MAP_FAILED => Ok(Ring(start)),
            _ => Err(failed("the ring's memory")),
        }
    }

    fn block(&self, number: usize) -> Block {
        // SAFETY: `number` is below `BLOCKS`.
        Block(unsafe { self.0.add(number * BLOCK) })
    }
}

/// One block of the ring, for as long as it is ours. It is used while the ring is mapped only.
#[derive(Clone, Copy)]
struct Block(NonNull<u8>);

/// A packet in a block.
struct Frame<'a> {
    time: Duration,
    wire: u32,
    status: u32,
    tag: (u16, u16),
    outgoing: bool,
    bytes: &'a [u8],
}

impl Block {
    fn status(&self) -> &AtomicU32 {
        let at = size_of::<[u32; 2]>();
        // SAFETY: the word `block_status` behind two others, which kernel and we hand to and fro.
        unsafe { &*self.0.add(at).as_ptr().cast() }
    }

    fn is_ours(&self) -> bool {
        self.status().load(Ordering::Acquire) & libc::TP_STATUS_USER != 0
    }

    fn give_back(&self) {
        fence(Ordering::Release);
        self.status().store(libc::TP_STATUS_KERNEL, Ordering::Release);
    }

    /// A structure in the block, if it lies in it.
    fn read<T: Copy>(&self, at: usize) -> Option<T> {
        let end = at.checked_add(size_of::<T>())?;
        // SAFETY: inside the block; the kernel's structures are plain numbers, at any place.
        (end <= BLOCK).then(|| unsafe { self.0.add(at).as_ptr().cast::<T>().read_unaligned() })
    }

    fn bytes(&self, at: usize, len: usize) -> Option<&[u8]> {
        let end = at.checked_add(len)?;
        // SAFETY: inside the block, which the kernel leaves alone until it is given back.
        (end <= BLOCK).then(|| unsafe { std::slice::from_raw_parts(self.0.add(at).as_ptr(), len) })
    }

    /// Hands over its packets; how many there were.
    fn each<E>(&self, mut what: impl FnMut(&Frame<'_>) -> Result<(), E>) -> Result<usize, E> {
        let Some(header) = self.read::<libc::tpacket_hdr_v1>(size_of::<[u32; 2]>()) else {
            return Ok(0);
        };
        let mut at = header.offset_to_first_pkt as usize;
        for _ in 0..header.num_pkts {
            let Some(frame) = self.read::<libc::tpacket3_hdr>(at) else {
                break;
            };
            let address = at + size_of::<libc::tpacket3_hdr>().next_multiple_of(libc::TPACKET_ALIGNMENT);
            let sender = self.read::<libc::sockaddr_ll>(address);
            let outgoing = sender.is_some_and(|s| s.sll_pkttype == libc::PACKET_OUTGOING);
            if let Some(bytes) = self.bytes(at + usize::from(frame.tp_mac), frame.tp_snaplen as usize) {
                what(&Frame {
                    time: Duration::new(frame.tp_sec.into(), frame.tp_nsec.min(999_999_999)),
                    wire: frame.tp_len,
                    status: frame.tp_status,
                    tag: (frame.hv1.tp_vlan_tpid, frame.hv1.tp_vlan_tci as u16),
                    outgoing,
                    bytes,
                })?;
            }
            at += frame.tp_next_offset as usize;
        }
        Ok(header.num_pkts as usize)
    }
}

impl<'a> Frame<'a> {
    /// The packet as it was on the wire, and its length there. `None` if it comes once more: what a loopback interface sends it receives.
    fn of(&'a self, loopback: bool, tagged: &'a mut Vec<u8>) -> Option<(&'a [u8], u32)> {
        if loopback && self.outgoing {
            return None;
        }
        if self.status & libc::TP_STATUS_VLAN_VALID == 0 || self.bytes.len() < 12 {
            return Some((self.bytes, self.wire));
        }
        // The kernel has taken the tag out.
        let (kind, tag) = self.tag;
        let kind = match self.status & libc::TP_STATUS_VLAN_TPID_VALID {
            0 => 0x8100,
            _ => kind,
        };
        tagged.clear();
        tagged.extend_from_slice(&self.bytes[..12]);
        tagged.extend_from_slice(&kind.to_be_bytes());
        tagged.extend_from_slice(&tag.to_be_bytes());
        tagged.extend_from_slice(&self.bytes[12..]);
        Some((tagged, self.wire.saturating_add(4)))
    }
}
