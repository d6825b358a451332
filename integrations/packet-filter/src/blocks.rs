//! pcapng without what nobody here asks for: comments, names, statistics, and options that do not matter may be written in any way,
//! and a file with odd ones is read like any other.

use std::io::{self, Read};

/// The longest block that is looked into.
const LONGEST: u32 = 8_000_000;
const SECTION: u32 = 0x0A0D_0D0A;
const INTERFACE: u32 = 1;
/// The order of bytes of a section, as a big-endian number.
const BIG: [u8; 4] = [0x1A, 0x2B, 0x3C, 0x4D];
/// Options of an interface that are kept, and how long they are: the unit of times, and what is added to them.
const KEPT: [(u16, u16); 2] = [(9, 1), (14, 8)];

/// Reads such a file. Blocks that are cut or damaged are handed on as they are.
pub struct Plain<R> {
    from: R,
    big: bool,
    /// What follows is handed on: the file is damaged.
    rest: bool,
    out: Vec<u8>,
    at: usize,
}

impl<R: Read> Plain<R> {
    pub fn new(from: R) -> Plain<R> {
        Plain {
            from,
            big: false,
            rest: false,
            out: Vec::new(),
            at: 0,
        }
    }

    fn u32(&self, bytes: &[u8]) -> u32 {
        let bytes: [u8; 4] = bytes[..4].try_into().unwrap_or_default();
        match self.big {
            true => u32::from_be_bytes(bytes),
            false => u32::from_le_bytes(bytes),
        }
    }

    fn u16(&self, bytes: &[u8]) -> u16 {
        match self.big {
            true => u16::from_be_bytes([bytes[0], bytes[1]]),
            false => u16::from_le_bytes([bytes[0], bytes[1]]),
        }
    }

    /// Reads so many bytes more, unless the file ends before.
    fn more(&mut self, len: u64) -> io::Result<bool> {
        let read = self.from.by_ref().take(len).read_to_end(&mut self.out)?;
        Ok(read as u64 == len)
    }

    /// The next block in `out`, which is empty if nobody asks for the block; `false` where nothing can be said of it.
    fn block(&mut self) -> io::Result<bool> {
        if !self.more(12)? {
            return Ok(false);
        }
        // Read in either order it is the same.
        let mut kind = u32::from_le_bytes(self.out[..4].try_into().unwrap_or_default());
        if kind == SECTION {
            self.big = self.out[8..] == BIG;
        } else {
            kind = self.u32(&self.out);
        }
        let len = self.u32(&self.out[4..]);
        if !(12..=LONGEST).contains(&len) || !len.is_multiple_of(4) || !self.more(u64::from(len) - 12)? {
            return Ok(false);
        }
        let end = len as usize - 4;
        if self.u32(&self.out[end..]) != len {
            return Ok(false);
        }
        let fixed = match kind {
            SECTION => 24,
            INTERFACE => 16,
            // Packets: what was captured, and zeroes.
            2 | 6 if end >= 28 => 28 + (self.u32(&self.out[20..]) as usize).next_multiple_of(4),
            2 | 6 => return Ok(false),
            3 => end,
            _ => {
                self.out.clear();
                return Ok(true);
            }
        };
        if fixed > end {
            return Ok(false);
        }
        let options = self.out.split_off(fixed);
        if kind == INTERFACE {
            self.keep(&options[..end - fixed]);
        }
        let len = self.out.len() as u32 + 4;
        let len = if self.big {
            len.to_be_bytes()
        } else {
            len.to_le_bytes()
        };
        self.out[4..8].copy_from_slice(&len);
        self.out.extend(len);
        Ok(true)
    }

    /// Appends the options of an interface that are kept, and their end.
    fn keep(&mut self, mut options: &[u8]) {
        let before = self.out.len();
        while let Some((head, rest)) = options.split_at_checked(4) {
            let (code, len) = (self.u16(head), self.u16(&head[2..]));
            let whole = usize::from(len).next_multiple_of(4);
            let Some((value, rest)) = rest.split_at_checked(whole).filter(|_| code != 0) else {
                break;
            };
            if KEPT.contains(&(code, len)) {
                self.out.extend([head, value].concat());
            }
            options = rest;
        }
        if self.out.len() > before {
            self.out.extend([0; 4]);
        }
    }
}

impl<R: Read> Read for Plain<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        while self.at == self.out.len() {
            if self.rest {
                return self.from.read(to);
            }
            self.out.clear();
            self.at = 0;
            self.rest = !self.block()?;
            if self.rest && self.out.is_empty() {
                return Ok(0);
            }
        }
        let count = to.len().min(self.out.len() - self.at);
        to[..count].copy_from_slice(&self.out[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}
