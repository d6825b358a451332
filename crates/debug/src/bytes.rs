//! Reading bytes that nobody vouches for.

use ringfence_core::work::Exceeded;

/// Why reading ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// What is there makes no sense.
    Malformed,
    /// It is too much.
    Exceeded(Exceeded),
}

impl From<Exceeded> for Stop {
    fn from(e: Exceeded) -> Stop {
        Stop::Exceeded(e)
    }
}

/// Longest string that is looked at; what is longer is cut.
const LONGEST: usize = 4096;

/// A place in a section.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn new(bytes: &'a [u8], at: u64) -> Result<Cursor<'a>, Stop> {
        let at = usize::try_from(at).ok().filter(|&at| at <= bytes.len());
        Ok(Cursor {
            bytes,
            at: at.ok_or(Stop::Malformed)?,
        })
    }

    pub fn done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn take(&mut self, count: u64) -> Result<&'a [u8], Stop> {
        let end = usize::try_from(count).ok().and_then(|n| self.at.checked_add(n));
        let taken = end
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or(Stop::Malformed)?;
        self.at += taken.len();
        Ok(taken)
    }

    /// A number of up to 8 bytes, little-endian.
    pub fn number(&mut self, len: u64) -> Result<u64, Stop> {
        let mut word = [0; 8];
        let bytes = self.take(len)?;
        word.get_mut(..bytes.len())
            .ok_or(Stop::Malformed)?
            .copy_from_slice(bytes);
        Ok(u64::from_le_bytes(word))
    }

    pub fn u8(&mut self) -> Result<u8, Stop> {
        Ok(self.number(1)? as u8)
    }

    pub fn u16(&mut self) -> Result<u16, Stop> {
        Ok(self.number(2)? as u16)
    }

    pub fn u32(&mut self) -> Result<u32, Stop> {
        Ok(self.number(4)? as u32)
    }

    pub fn uleb(&mut self) -> Result<u64, Stop> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Stop::Malformed)
    }

    pub fn sleb(&mut self) -> Result<i64, Stop> {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = self.u8()?;
            value |= i64::from(byte & 0x7F).checked_shl(shift).unwrap_or(0);
            if byte & 0x80 == 0 {
                let rest = shift + 7;
                let negative = byte & 0x40 != 0 && rest < 64;
                return Ok(if negative { value | -1 << rest } else { value });
            }
        }
        Err(Stop::Malformed)
    }

    /// A string that ends with a NUL. What is longer than is looked at makes no sense.
    pub fn text(&mut self) -> Result<&'a [u8], Stop> {
        let rest = self.bytes.get(self.at..).ok_or(Stop::Malformed)?;
        let seen = &rest[..rest.len().min(LONGEST)];
        let len = seen.iter().position(|&b| b == 0).ok_or(Stop::Malformed)?;
        self.at += len + 1;
        Ok(&seen[..len])
    }
}

/// The string at an offset, up to its NUL, or cut.
pub(crate) fn text_at(bytes: &[u8], at: u64) -> Option<&[u8]> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let seen = &rest[..rest.len().min(LONGEST)];
    Some(seen.split(|&b| b == 0).next().unwrap_or_default())
}
