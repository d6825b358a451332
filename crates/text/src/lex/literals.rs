//! Numbers, characters and strings.

use super::{Kind, Lexer, is_name};
use crate::types::Ty;

impl Lexer<'_> {
    pub fn number(&mut self) {
        let at = self.at;
        let hex = self.peek(0) == b'0' && self.peek(1) | 32 == b'x';
        let mut float = false;
        loop {
            let c = self.peek(0);
            let exponent = if hex { c | 32 == b'p' } else { c | 32 == b'e' };
            if exponent
                && (hex
                    || self.text[at..self.at]
                        .iter()
                        .all(|&c| c.is_ascii_digit() || c == b'.'))
            {
                float = true;
                self.at += 1;
                if matches!(self.peek(0), b'+' | b'-') {
                    self.at += 1;
                }
            } else if c == b'.' {
                float = true;
                self.at += 1;
            } else if is_name(c) {
                self.at += 1;
            } else {
                break;
            }
        }
        let word = &self.text[at..self.at];
        if float {
            self.float(at, word, hex);
        } else {
            self.int(at, word, hex);
        }
    }

    fn float(&mut self, at: usize, word: &[u8], hex: bool) {
        let text = std::str::from_utf8(word).unwrap_or("");
        let (digits, single) = match text.strip_suffix(['f', 'F']) {
            Some(digits) => (digits, true),
            None => (text, false),
        };
        if text.ends_with(['l', 'L']) {
            self.wrong(at, "long double is not supported", Some("use double"));
            return;
        }
        let value = if hex {
            hex_float(digits)
        } else {
            digits.parse::<f64>().ok()
        };
        // A `float` is rounded once, from its digits.
        let value = match (single, hex) {
            (true, false) => digits
                .parse::<f32>()
                .ok()
                .map(f64::from)
                .filter(|_| value.is_some()),
            (true, true) => value.map(|v| f64::from(v as f32)),
            (false, _) => value,
        };
        match value {
            Some(value) => {
                self.out.floats.push((value, single));
                self.push(Kind::Float(self.out.floats.len() as u32 - 1), at);
            }
            None => self.wrong(at, "this is no number", None),
        }
    }

    fn int(&mut self, at: usize, word: &[u8], hex: bool) {
        let binary = !hex && word.len() > 2 && word[0] == b'0' && word[1] | 32 == b'b';
        let (base, from) = match word {
            _ if hex => (16, 2),
            _ if binary => (2, 2),
            [b'0', _, ..] => (8, 1),
            _ => (10, 0),
        };
        let len = word[from..]
            .iter()
            .take_while(|c| (**c as char).is_digit(base))
            .count();
        let (digits, suffix) = word[from..].split_at(len);
        let mut value = Some(0u64);
        for &c in digits {
            let digit = u64::from((c as char).to_digit(base).unwrap_or(0));
            value = value.and_then(|v| v.checked_mul(u64::from(base))?.checked_add(digit));
        }
        let suffix = suffix.to_ascii_lowercase();
        let (unsigned, longs) = match &suffix[..] {
            b"" => (false, 0),
            b"u" => (true, 0),
            b"l" => (false, 1),
            b"ul" | b"lu" => (true, 1),
            b"ll" => (false, 2),
            b"ull" | b"llu" => (true, 2),
            _ => {
                self.wrong(at, "this is no number", None);
                return;
            }
        };
        if digits.is_empty() && from == 2 {
            self.wrong(at, "this is no number", None);
            return;
        }
        let Some(value) = value else {
            self.wrong(at, "this number does not fit into 64 bits", None);
            return;
        };
        let fits = |ty: Ty| match ty {
            Ty::INT => value <= i32::MAX as u64,
            Ty::UINT => value <= u64::from(u32::MAX),
            Ty::LONG | Ty::LLONG => value <= i64::MAX as u64,
            _ => true,
        };
        let all: &[Ty] = match (unsigned, longs, base == 10) {
            (false, 0, true) => &[Ty::INT, Ty::LONG, Ty::ULONG],
            (false, 0, false) => &[Ty::INT, Ty::UINT, Ty::LONG, Ty::ULONG],
            (true, 0, _) => &[Ty::UINT, Ty::ULONG],
            (false, 1, _) => &[Ty::LONG, Ty::ULONG],
            (true, 1, _) => &[Ty::ULONG],
            (false, _, _) => &[Ty::LLONG, Ty::ULLONG],
            (true, _, _) => &[Ty::ULLONG],
        };
        let ty = all.iter().copied().find(|&t| fits(t)).unwrap_or(Ty::ULONG);
        self.out.ints.push((value, ty));
        self.push(Kind::Int(self.out.ints.len() as u32 - 1), at);
    }

    /// The character behind a backslash, which is at the present place.
    fn escape(&mut self) -> Option<u8> {
        let at = self.at;
        self.at += 1;
        let c = self.peek(0);
        self.at += 1;
        Some(match c {
            b'n' => 10,
            b't' => 9,
            b'r' => 13,
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'e' => 27,
            b'\\' | b'\'' | b'"' | b'?' => c,
            b'0'..=b'7' => {
                let mut value = u32::from(c - b'0');
                for _ in 0..2 {
                    if matches!(self.peek(0), b'0'..=b'7') {
                        value = value * 8 + u32::from(self.peek(0) - b'0');
                        self.at += 1;
                    }
                }
                value as u8
            }
            b'x' => {
                let (from, mut value) = (self.at, 0u32);
                while let Some(digit) = (self.peek(0) as char).to_digit(16) {
                    value = value.saturating_mul(16).saturating_add(digit);
                    self.at += 1;
                }
                if value > 255 || self.at == from {
                    self.wrong(at, "this is no character", None);
                    return None;
                }
                value as u8
            }
            _ => {
                self.at = self.at.min(self.text.len());
                self.wrong(at, "unknown escape sequence", None);
                return None;
            }
        })
    }

    /// Bytes up to a closing quote.
    fn quoted(&mut self, quote: u8) -> Option<Vec<u8>> {
        let (at, mut bytes, mut good) = (self.at, Vec::new(), true);
        self.at += 1;
        loop {
            match self.peek(0) {
                c if c == quote => {
                    self.at += 1;
                    return good.then_some(bytes);
                }
                b'\\' if self.peek(1) == b'\n' => self.at += 2,
                b'\\' => match self.escape() {
                    Some(c) => bytes.push(c),
                    None => good = false,
                },
                b'\n' | 0 if self.peek(0) == b'\n' || self.at >= self.text.len() => {
                    self.notes
                        .note(at as u32, 1, "this quote is not closed on its line".into(), None);
                    return None;
                }
                c => {
                    bytes.push(c);
                    self.at += 1;
                }
            }
        }
    }

    pub fn string(&mut self) {
        let at = self.at;
        let bytes = self.quoted(b'"').unwrap_or_default();
        self.out.strings.push(bytes);
        self.push(Kind::Str(self.out.strings.len() as u32 - 1), at);
    }

    pub fn character(&mut self) {
        let at = self.at;
        let value = match self.quoted(b'\'').as_deref() {
            Some([c]) => i64::from(*c as i8) as u64,
            Some(_) => {
                self.wrong(at, "a character constant has one character", None);
                0
            }
            None => 0,
        };
        self.out.ints.push((value, Ty::INT));
        self.push(Kind::Int(self.out.ints.len() as u32 - 1), at);
    }
}

/// `0x1.8p3`, with up to 13 digits that count; `None` if it is malformed.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text[2..].split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 5000)?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits: String = [whole, part].concat();
    let significant = digits.trim_start_matches('0');
    if digits.is_empty() || significant.len() > 13 {
        return None;
    }
    let value = if significant.is_empty() {
        0
    } else {
        u64::from_str_radix(significant, 16).ok()?
    };
    let scale = exponent - 4 * part.len() as i32;
    // In two steps, so that neither factor leaves the range.
    let half = scale / 2;
    Some(value as f64 * 2f64.powi(half) * 2f64.powi(scale - half))
}
