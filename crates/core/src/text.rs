//! Text of a stated length.

use std::fmt;

/// Text in memory of its own, `N` bytes at most: what does not fit is cut, and ends with `…`. Writing to it allocates nothing.
#[derive(Clone, Copy)]
pub struct Text<const N: usize> {
    len: u16,
    cut: bool,
    bytes: [u8; N],
}

const CUT: &str = "…";

/// The last end of a character in `text` that is not behind `most`; `text` is longer.
fn boundary(text: &str, most: usize) -> usize {
    (0..=most)
        .rev()
        .find(|&at| text.is_char_boundary(at))
        .unwrap_or(0)
}

impl<const N: usize> Text<N> {
    /// No text.
    pub const EMPTY: Self = {
        assert!(N >= CUT.len() && N <= u16::MAX as usize);
        Self {
            len: 0,
            cut: false,
            bytes: [0; N],
        }
    };

    /// As much of `text` as fits.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut this = Self::EMPTY;
        this.push(text);
        this
    }

    /// Adds as much of `text` as fits.
    pub fn push(&mut self, text: &str) {
        if self.cut || text.is_empty() {
            return;
        }
        let len = usize::from(self.len);
        let (text, end) = if text.len() <= N - len {
            (text, "")
        } else {
            self.cut = true;
            let room = N - CUT.len();
            if len > room {
                // The mark takes the place of what was the last to fit.
                let kept = boundary(self.as_str(), room);
                self.len = kept as u16;
                ("", CUT)
            } else {
                (&text[..boundary(text, room - len)], CUT)
            }
        };
        for part in [text, end] {
            if part.is_empty() {
                continue;
            }
            let len = usize::from(self.len);
            self.bytes[len..len + part.len()].copy_from_slice(part.as_bytes());
            self.len += part.len() as u16;
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        // SAFETY: whole characters of texts, one behind the other: `push` cuts at their boundaries.
        unsafe { std::str::from_utf8_unchecked(&self.bytes[..self.len.into()]) }
    }

    /// As much of `text` as fits, in the place of what was there.
    pub fn set(&mut self, text: &str) {
        (self.len, self.cut) = (0, false);
        self.push(text);
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;

    #[test]
    fn what_does_not_fit_is_cut() {
        for (text, shown) in [
            ("", ""),
            ("12345678", "12345678"),
            ("123456789", "12345…"),
            ("1234ö789", "1234…"),
        ] {
            assert_eq!(Text::<8>::new(text).as_str(), shown);
        }
        let mut text = Text::<8>::new("12345678");
        text.push("");
        assert_eq!(text.as_str(), "12345678");
        text.push("9");
        assert_eq!(text.as_str(), "12345…");
        text.push("a");
        assert_eq!(text.as_str(), "12345…");
        let mut text = Text::<8>::EMPTY;
        write!(text, "{}-{}", 12, 34).unwrap();
        assert_eq!(text.as_str(), "12-34");
        let mut other = Text::<8>::new("876543210");
        other.set(text.as_str());
        assert_eq!(other.as_str(), "12-34");
    }
}
