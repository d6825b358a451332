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
            hex_float(digits, single)
        } else {
            digits.parse::<f64>().ok()
        };
        // A `float` is rounded once, from its digits.
        let value = match single && !hex {
            true => digits
                .parse::<f32>()
                .ok()
                .map(f64::from)
                .filter(|_| value.is_some()),
            false => value,
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

/// `0x1.8p3`, rounded once to a `double` or to a `float`; `None` if it is malformed.
fn hex_float(text: &str, single: bool) -> Option<f64> {
    let (mantissa, exponent) = text[2..].split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 5000)?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + part.len() == 0 || mantissa.len() > 1000 {
        return None;
    }
    // As many digits as have room; of the others only whether they are all 0.
    let (mut value, mut scale) = (0u64, exponent - 4 * part.len() as i32);
    for c in whole.chars().chain(part.chars()) {
        let digit = u64::from(c.to_digit(16)?);
        match value >> 60 {
            0 => value = value << 4 | digit,
            _ => {
                value |= u64::from(digit != 0);
                scale += 4;
            }
        }
    }
    // Half to even; below the least normal number there are fewer bits.
    let (bits, least) = if single { (24, -126) } else { (53, -1022) };
    let length = 64 - value.leading_zeros() as i32;
    let top = scale + length - 1;
    let cut = length - bits + (least - top).max(0);
    if cut > 0 {
        let wide = u128::from(value);
        let cut = cut.min(100);
        let (half, rest) = (1u128 << (cut - 1), wide & ((1 << cut) - 1));
        let up = rest > half || rest == half && wide >> cut & 1 == 1;
        value = (wide >> cut) as u64 + u64::from(up);
        scale += cut;
    }
    if single && value != 0 && scale + (64 - value.leading_zeros() as i32) > 128 {
        return Some(f64::INFINITY);
    }
    // In two steps, so that neither factor leaves the range.
    let half = scale / 2;
    Some(value as f64 * 2f64.powi(half) * 2f64.powi(scale - half))
}

#[cfg(test)]
mod tests {
    use super::hex_float;

    #[test]
    fn hexadecimal_floats_are_rounded_once() {
        for (text, double) in [
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x1p-1074", f64::from_bits(1)),
            ("0x0.00000000000008p-1022", 0.0),
            ("0x0.00000000000018p-1022", f64::from_bits(2)),
            ("0x0.000000000000080000000001p-1022", f64::from_bits(1)),
            ("0x1.fffffffffffff8p1023", f64::INFINITY),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080000000000000001p0", 1.0 + f64::EPSILON),
            ("0x1.00000000000018p0", 1.0 + 2.0 * f64::EPSILON),
            ("0xffffffffffffffffffp-4", 295_147_905_179_352_825_856.0),
            ("0x.8p1", 1.0),
            ("0x0p0", 0.0),
            ("0x1p-4000", 0.0),
            ("0x1p4000", f64::INFINITY),
        ] {
            assert_eq!(hex_float(text, false), Some(double), "{text}");
        }
        for (text, float) in [
            ("0x1.fffffep127", f32::MAX),
            ("0x1.ffffffp127", f32::INFINITY),
            ("0x1p-149", f32::from_bits(1)),
            ("0x1.8p-150", f32::from_bits(1)),
            ("0x1p-150", 0.0),
            // Rounded to a double first it would be a tie.
            ("0x1.000001000000001p0", 1.0 + f32::EPSILON),
            ("0x1.000001p0", 1.0),
        ] {
            assert_eq!(hex_float(text, true), Some(f64::from(float)), "{text}");
        }
        for bad in ["0xp1", "0x1.g", "0x1p", "0x1p99999", "0x.p1"] {
            assert_eq!(hex_float(bad, false), None, "{bad}");
        }
    }
}
