//! Packets that are looked at in one crossing.

use std::time::Duration;

use ringfence::{MemoryError, Ptr};
use ringfence_functions::Runtime;

use crate::translate::DESCRIPTOR;

/// Packets, copied into the filters' memory when a filter first runs over them.
pub struct Batch {
    runtime: Runtime,
    bytes: Vec<u8>,
    /// Offset in `bytes`, length, length on the wire.
    packets: Vec<[u32; 3]>,
    /// When each came, in nanoseconds.
    times: Vec<u64>,
    /// What is in the filters' memory is what is here.
    loaded: bool,
    place: Option<Place>,
    accepted: Vec<u32>,
}

/// Memory of the filters, until they are reset.
struct Place {
    start: Ptr<u8>,
    bytes: usize,
    packets: usize,
    /// How often the memory had been emptied.
    resets: u64,
}

/// Most bytes and packets of a batch.
const MOST_BYTES: usize = 16 << 20;
const MOST_PACKETS: usize = 65_536;

/// Behind the last packet: what a load at a packet's end may not leave.
const ALIGN: usize = 16;

impl Batch {
    pub(crate) fn new(runtime: &Runtime) -> Batch {
        Batch {
            runtime: runtime.clone(),
            bytes: Vec::new(),
            packets: Vec::new(),
            times: Vec::new(),
            loaded: false,
            place: None,
            accepted: Vec::new(),
        }
    }

    /// Adds a packet: its bytes, and how many it had on the wire. False if the batch is full: run over it, and
    /// [`clear`](Self::clear) it. An empty batch takes any packet of up to 16 MiB.
    pub fn push(&mut self, packet: &[u8], wire: u32) -> bool {
        self.push_at(packet, wire, Duration::ZERO)
    }

    /// The same of a packet that came at some time, since 1970 or another moment: for filters in C that ask for it.
    pub fn push_at(&mut self, packet: &[u8], wire: u32, time: Duration) -> bool {
        let full = self.packets.len() >= MOST_PACKETS || self.bytes.len() + packet.len() > MOST_BYTES;
        if full {
            return false;
        }
        self.packets
            .push([self.bytes.len() as u32, packet.len() as u32, wire]);
        // 64 bits of them last until 2554.
        self.times
            .push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        self.bytes.extend_from_slice(packet);
        self.loaded = false;
        true
    }

    /// Forgets all packets.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.packets.clear();
        self.times.clear();
        self.loaded = false;
    }

    /// How many packets there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }

    /// The bytes of a packet, by its number in the batch, and its length on the wire.
    #[must_use]
    pub fn packet(&self, number: usize) -> Option<(&[u8], u32)> {
        let &[at, len, wire] = self.packets.get(number)?;
        Some((&self.bytes[at as usize..][..len as usize], wire))
    }

    /// Copies the packets into the filters' memory, if they are not there: descriptors, times, room for the numbers of
    /// accepted ones, bytes. Gives the addresses of descriptors and room.
    pub(crate) fn load(&mut self) -> Result<(Ptr<()>, Ptr<()>), MemoryError> {
        let runtime = self.runtime.clone();
        let memory = runtime.memory();
        let resets = self.runtime.domain().resets();
        let fits =
            |p: &Place| p.resets == resets && p.bytes >= self.bytes.len() && p.packets >= self.packets.len();
        if !self.place.as_ref().is_some_and(fits) {
            self.free();
            let bytes = self.bytes.len().next_power_of_two().max(4096);
            let packets = self.packets.len().next_power_of_two().max(64);
            let room = memory.alloc_array::<u8>(packets * (DESCRIPTOR + 8 + 4) + bytes + ALIGN)?;
            self.loaded = false;
            self.place = Some(Place {
                start: room.leak(),
                bytes,
                packets,
                resets,
            });
        }
        let place = self.place.as_ref().expect("made above");
        let times = place.start.wrapping_add((place.packets * DESCRIPTOR) as u64);
        let results = times.wrapping_add((place.packets * 8) as u64);
        let data = results.wrapping_add(4 * place.packets as u64);
        if !self.loaded {
            let (first, time) = (data.address() as u32, times.address() as u32);
            let descriptors: Vec<[u32; 4]> = self
                .packets
                .iter()
                .zip((time..).step_by(8))
                .map(|(&[at, len, wire], time)| [first + at, len, wire, time])
                .collect();
            memory.write_slice(place.start.cast(), &descriptors)?;
            memory.write_slice(times.cast(), &self.times)?;
            memory.write_slice(data, &self.bytes)?;
            self.loaded = true;
        }
        Ok((place.start.cast(), results.cast()))
    }

    /// The numbers of accepted packets, which a filter has left.
    pub(crate) fn accepted(&mut self, results: Ptr<()>, count: usize) -> Result<&[u32], MemoryError> {
        self.accepted.resize(count, 0);
        self.runtime
            .memory()
            .read_slice(results.cast::<u32>(), &mut self.accepted)?;
        Ok(&self.accepted)
    }

    fn free(&mut self) {
        if let Some(place) = self.place.take()
            && place.resets == self.runtime.domain().resets()
        {
            // A filter in C may have freed it.
            let _ = self.runtime.memory().free(place.start);
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        self.free();
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Batch({} packets, {} bytes)",
            self.packets.len(),
            self.bytes.len()
        )
    }
}
