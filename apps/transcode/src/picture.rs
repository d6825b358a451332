//! Pictures as functions get them.

use bytemuck::{Pod, Zeroable};
use ringfence::{Memory, MemoryError, Ptr};

/// `struct picture` of `functions/picture.h`.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Raw {
    pub pixels: u64,
    pub stride: i64,
    pub width: i32,
    pub height: i32,
    pub channels: i32,
    pub unused: i32,
}

/// Pixels in the host's memory, a row behind the other.
#[derive(Debug)]
pub(crate) struct Picture {
    pub width: u32,
    pub height: u32,
    pub channels: u32,
    pub pixels: Vec<u8>,
}

impl Picture {
    /// How a domain sees it that has the pixels at this address.
    pub fn raw(&self, pixels: Ptr<u8>) -> Raw {
        Raw {
            pixels: pixels.address(),
            stride: i64::from(self.width * self.channels),
            width: self.width as i32,
            height: self.height as i32,
            channels: self.channels as i32,
            unused: 0,
        }
    }

    /// Copies a picture out of a domain, which may have written anything there. `None`: it is no picture of at most so many pixels.
    pub fn read(memory: Memory<'_>, raw: &Raw, most: u64) -> Result<Option<Picture>, MemoryError> {
        let Some((width, height, channels)) = raw.size(most) else {
            return Ok(None);
        };
        let row = width as usize * channels as usize;
        let pixels = match u64::try_from(raw.stride) {
            Ok(stride) if stride == row as u64 => {
                let all = memory.read_vec(Ptr::from_address(raw.pixels), row * height as usize)?;
                // Any bytes are pixels.
                all.into_inner_unchecked()
            }
            _ => {
                let mut all = vec![0; row * height as usize];
                for (y, into) in all.chunks_exact_mut(row).enumerate() {
                    let at = raw.pixels.wrapping_add_signed(raw.stride.wrapping_mul(y as i64));
                    memory.read_slice(Ptr::<u8>::from_address(at), into)?;
                }
                all
            }
        };
        Ok(Some(Picture {
            width,
            height,
            channels,
            pixels,
        }))
    }
}

impl Raw {
    /// Width, height and channels, if these are a picture's of at most so many pixels.
    pub fn size(&self, most: u64) -> Option<(u32, u32, u32)> {
        let side = |n: i32| u32::try_from(n).ok().filter(|n| (1..=65535).contains(n));
        let (width, height) = (side(self.width)?, side(self.height)?);
        let channels = [1, 3, 4]
            .contains(&self.channels)
            .then_some(self.channels as u32)?;
        (u64::from(width) * u64::from(height) <= most).then_some((width, height, channels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_picture_has_no_size() {
        let good = Raw {
            pixels: 0,
            stride: 6,
            width: 2,
            height: 3,
            channels: 3,
            unused: 0,
        };
        assert_eq!(good.size(6), Some((2, 3, 3)));
        for bad in [
            Raw { width: 0, ..good },
            Raw { width: -2, ..good },
            Raw {
                height: 70000,
                ..good
            },
            Raw { channels: 2, ..good },
            Raw { width: 7, ..good },
        ] {
            assert_eq!(bad.size(6), None, "{bad:?}");
        }
    }
}
