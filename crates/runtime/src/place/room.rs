//! Free places in an area of a window.

use std::collections::BTreeMap;

/// Free places by offset. Never adjacent, never empty.
#[derive(Debug, Default)]
pub(crate) struct Room(BTreeMap<u32, u32>);

impl Room {
    /// One free place.
    pub(crate) fn new(at: u32, len: u32) -> Room {
        let mut room = Room::default();
        room.give(at, len);
        room
    }

    /// The first place that is large enough.
    pub(crate) fn take(&mut self, size: u32) -> Option<u32> {
        let (&at, &len) = self.0.iter().find(|(_, len)| **len >= size)?;
        self.0.remove(&at);
        if len > size {
            self.0.insert(at + size, len - size);
        }
        Some(at)
    }

    /// Makes a place free, which was not.
    pub(crate) fn give(&mut self, at: u32, len: u32) {
        let (mut at, mut len) = (at, len);
        if len == 0 {
            return;
        }
        if let Some(next) = self.0.remove(&(at + len)) {
            len += next;
        }
        if let Some((&before, &size)) = self.0.range(..at).next_back()
            && before + size == at
        {
            at = before;
            len += size;
        }
        self.0.insert(at, len);
    }

    /// Length of the free place that ends at `end`.
    pub(crate) fn tail(&self, end: u32) -> u32 {
        let tail = self.0.last_key_value();
        tail.filter(|(at, len)| **at + **len == end).map_or(0, |t| *t.1)
    }
}

#[cfg(test)]
mod tests {
    use super::Room;

    #[test]
    fn places_come_back_whole() {
        let mut room = Room::new(100, 50);
        assert_eq!(room.take(20), Some(100));
        assert_eq!(room.take(20), Some(120));
        assert_eq!(room.take(20), None);
        assert_eq!(room.tail(150), 10);
        room.give(100, 20);
        assert_eq!(room.take(21), None, "not adjacent");
        room.give(120, 20);
        assert_eq!(room.tail(150), 50);
        assert_eq!(room.take(50), Some(100));
        assert_eq!((room.take(1), room.tail(150)), (None, 0));
    }
}
