//! The devices that every program expects. They are made here: no device node of the host's is ever opened.

use crate::memory::Memory;
use crate::span::Span;
use crate::stage::Stage;
use crate::sys::{self, Outcome};

/// A device that a domain may open by its usual name, whatever directories it was granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// `/dev/null`: reads end, writes vanish.
    Null,
    /// `/dev/zero`: reads give zeros, writes vanish.
    Zero,
    /// `/dev/urandom` and `/dev/random`, where the policy grants randomness; writes vanish.
    Random,
}

impl Device {
    /// The device with this absolute name, if there is one.
    pub fn named(name: &[u8], randomness: bool) -> Option<Device> {
        match name {
            b"/dev/null" => Some(Device::Null),
            b"/dev/zero" => Some(Device::Zero),
            b"/dev/urandom" | b"/dev/random" if randomness => Some(Device::Random),
            _ => None,
        }
    }

    /// Reads into `wanted`, which is a slice at most.
    pub fn read(self, memory: Memory<'_>, wanted: Span) -> Outcome<u64> {
        match self {
            Device::Null => Ok(0),
            Device::Zero => {
                const ZEROS: [u8; 4096] = [0; 4096];
                let mut at = 0;
                while at < wanted.len() {
                    let n = (wanted.len() - at).min(ZEROS.len() as u64);
                    memory.put(wanted.address() + at, &ZEROS[..n as usize])?;
                    at += n;
                }
                Ok(at)
            }
            Device::Random if wanted.len() == 0 => Ok(0),
            Device::Random => {
                let stage = Stage::new(memory, vec![wanted], true)?;
                let n = sys::random(stage.spans()[0], 0)?;
                stage.moved(n)?;
                Ok(n as u64)
            }
        }
    }

    /// `struct stat`, as Linux fills it for such a node.
    pub fn stat(self) -> [u8; 144] {
        let minor = match self {
            Device::Null => 3,
            Device::Zero => 5,
            Device::Random => 9u32,
        };
        let mut bytes = [0; 144];
        bytes[8..16].copy_from_slice(&u64::from(minor).to_ne_bytes());
        bytes[16..24].copy_from_slice(&1u64.to_ne_bytes());
        bytes[24..28].copy_from_slice(&(libc::S_IFCHR | 0o666).to_ne_bytes());
        bytes[40..48].copy_from_slice(&libc::makedev(1, minor).to_ne_bytes());
        bytes[56..64].copy_from_slice(&4096u64.to_ne_bytes());
        bytes
    }
}
