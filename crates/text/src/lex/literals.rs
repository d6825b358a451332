//! Numbers, characters and strings.

use super::{Kind, Lexer, Number, is_name};
use crate::extended::{DOUBLE, Extended, SINGLE, rounded, scaled};
use crate::types::Ty;

/// Most digits of a `long double` that count: halves between two of them have fewer.
const DIGITS: usize = 12_000;
/// Most digits and powers of 10 of all decimal constants of `long double`: each takes time by its square.
const LONG_WORK: u64 = 16_000_000;

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
        let (digits, suffix) = match text.as_bytes().last() {
            Some(last @ (b'f' | b'F' | b'l' | b'L')) => (&text[..text.len() - 1], last | 32),
            _ => (text, 0),
        };
        let value = match (suffix, hex) {
            (b'l', true) => hex_parts(digits)
                .map(|(value, scale, more)| Number::Long(Extended::from_hex(value, scale, more))),
            (b'l', false) => match self.long_decimal(at, digits) {
                Some(value) => value.map(Number::Long),
                None => return,
            },
            (b'f', true) => hex_float(digits, true).map(|value| Number::Float(value as f32)),
            (_, true) => hex_float(digits, false).map(Number::Double),
            // A `float` is rounded once, from its digits.
            (b'f', false) => digits.parse().ok().map(Number::Float),
            (_, false) => digits.parse().ok().map(Number::Double),
        };
        match value {
            Some(value) => {
                self.out.floats.push(value);
                self.push(Kind::Float(self.out.floats.len() as u32 - 1), at);
            }
            None => self.wrong(at, "this is no number", None),
        }
    }

    /// `1.5e-3` as a `long double`; `Some(None)` if it is malformed, and `None` if that was told.
    fn long_decimal(&mut self, at: usize, text: &str) -> Option<Option<Extended>> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digit = |c: char| c.is_ascii_digit();
        let good = whole.len() + part.len() > 0 && whole.chars().chain(part.chars()).all(digit);
        let size = exponent.trim_start_matches(['+', '-']);
        if !good || size.is_empty() || exponent.len() > size.len() + 1 || !size.chars().all(digit) {
            return Some(None);
        }
        // Larger ones are too large for any number of digits that a text has room for.
        let size = size.parse().unwrap_or(i32::MAX).min(1 << 22);
        let exponent = if exponent.starts_with('-') { -size } else { size };
        let mut digits = [whole, part].concat().into_bytes();
        let mut power = exponent - part.len() as i32;
        let zeroes = digits.iter().take_while(|&&c| c == b'0').count();
        digits.drain(..zeroes);
        // Of the digits behind these only whether they are all 0 counts.
        if digits.len() > DIGITS {
            let rest = digits.split_off(DIGITS - 1);
            power += rest.len() as i32 - 1;
            let more = rest.iter().any(|&c| c != b'0');
            digits.push(if more { b'1' } else { b'0' });
        }
        self.long_work += digits.len() as u64 + power.unsigned_abs().min(20_000) as u64;
        if self.long_work > LONG_WORK {
            let message = "this text has too many constants of long double with large exponents";
            self.wrong(at, message, Some("write some of them in hexadecimal"));
            return None;
        }
        Some(Some(Extended::from_decimal(&digits, power)))
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
            // As gcc has it: the last of them is in the lowest byte.
            Some(bytes @ [_, ..]) if bytes.len() <= 4 => {
                let value = bytes.iter().fold(0u32, |n, &c| n << 8 | u32::from(c));
                i64::from(value as i32) as u64
            }
            Some(_) => {
                self.wrong(at, "a character constant has one to four characters", None);
                0
            }
            None => 0,
        };
        self.out.ints.push((value, Ty::INT));
        self.push(Kind::Int(self.out.ints.len() as u32 - 1), at);
    }
}

/// `0x1.8p3`: a number, what 2 is raised to for its factor, and whether there is a little more; `None` if it is malformed.
fn hex_parts(text: &str) -> Option<(u128, i32, bool)> {
    let (mantissa, exponent) = text[2..].split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 50_000)?;
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.len() + part.len() == 0 || mantissa.len() > 1000 {
        return None;
    }
    // As many digits as have room; of the others only whether they are all 0.
    let (mut value, mut scale, mut more) = (0u128, exponent - 4 * part.len() as i32, false);
    for c in whole.chars().chain(part.chars()) {
        let digit = u128::from(c.to_digit(16)?);
        match value >> 124 {
            0 => value = value << 4 | digit,
            _ => {
                more |= digit != 0;
                scale += 4;
            }
        }
    }
    Some((value, scale, more))
}

/// The same, rounded once to a `double` or to a `float`.
fn hex_float(text: &str, single: bool) -> Option<f64> {
    let (value, scale, more) = hex_parts(text)?;
    let format = if single { SINGLE } else { DOUBLE };
    Some(scaled(rounded(value, scale, more, format), single))
}

#[cfg(test)]
mod tests {
    use super::{DIGITS, hex_float};
    use crate::error::Notes;
    use crate::extended::Extended;
    use crate::lex::{Number, lex};

    #[test]
    fn zeroes_before_a_number_are_no_digits_of_it() {
        let text = format!("0.{}5e{}L", "0".repeat(DIGITS), DIGITS + 1);
        let tokens = lex(text.as_bytes(), &mut Notes::default());
        assert!(matches!(tokens.floats[..], [Number::Long(x)] if x == Extended::from_int(5)));
    }

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
            ("0x0p4000", 0.0),
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
