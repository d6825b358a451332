//! Numbers of `long double`, as the x87 unit has them: constants are computed here as the program would do it.

use std::cmp::Ordering;

/// A number of 80 bits: sign and exponent, and a mantissa whose highest bit is written out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extended {
    /// The sign is the highest bit.
    pub exponent: u16,
    pub mantissa: u64,
}

const SIGN: u16 = 0x8000;
/// The exponent of infinities and of what is no number.
const ODD: u16 = 0x7FFF;
/// What is added to exponents of mantissas that are read as integers.
const BIAS: i32 = 16383 + 63;
/// The highest bit of a mantissa.
const TOP: u64 = 1 << 63;

/// Precision and least exponent of a format.
#[derive(Clone, Copy)]
pub struct Format {
    pub bits: i32,
    pub least: i32,
}

pub const SINGLE: Format = Format {
    bits: 24,
    least: -126,
};
pub const DOUBLE: Format = Format {
    bits: 53,
    least: -1022,
};
const EXTENDED: Format = Format {
    bits: 64,
    least: -16382,
};

/// `value * 2^scale`, and a little more if `more`, rounded half to even; below the least normal number there are fewer bits.
/// The result may have one bit more than the format, which is 0 then.
pub fn rounded(value: u128, mut scale: i32, more: bool, format: Format) -> (u128, i32) {
    let length = 128 - value.leading_zeros() as i32;
    let top = scale + length - 1;
    let cut = length - format.bits + (format.least - top).max(0);
    if cut <= 0 {
        return (value, scale);
    }
    scale += cut;
    if cut > 128 {
        return (0, scale);
    }
    let whole = value.checked_shr(cut as u32).unwrap_or(0);
    let half = 1u128 << (cut - 1);
    let rest = value & (half | (half - 1));
    let up = rest > half || rest == half && (more || whole & 1 == 1);
    (whole + u128::from(up), scale)
}

impl Extended {
    pub const ZERO: Extended = Extended {
        exponent: 0,
        mantissa: 0,
    };

    /// The sum of infinities of both signs, as the x87 unit has it.
    const NONE: Extended = Extended {
        exponent: SIGN | ODD,
        mantissa: 3 << 62,
    };

    fn infinity(negative: bool) -> Extended {
        Extended {
            exponent: ODD | if negative { SIGN } else { 0 },
            mantissa: TOP,
        }
    }

    fn is_negative(self) -> bool {
        self.exponent & SIGN != 0
    }

    fn is_odd(self) -> bool {
        self.exponent & ODD == ODD
    }

    fn is_none(self) -> bool {
        self.is_odd() && self.mantissa != TOP
    }

    pub fn is_zero(self) -> bool {
        self.mantissa == 0
    }

    /// The number with the other sign.
    pub fn negated(self) -> Extended {
        Extended {
            exponent: self.exponent ^ SIGN,
            ..self
        }
    }

    /// `value * 2^scale`, and a little more if `more`; what is lost needs two bits more than a mantissa in `value`.
    fn of(negative: bool, value: u128, scale: i32, more: bool) -> Extended {
        let sign = if negative { SIGN } else { 0 };
        let (mut value, mut scale) = rounded(value, scale, more, EXTENDED);
        if value == 0 {
            return Extended {
                exponent: sign,
                mantissa: 0,
            };
        }
        // One bit too many is a 0 at the end.
        if value >> 64 != 0 {
            value >>= 1;
            scale += 1;
        }
        let up = (value as u64).leading_zeros() as i32;
        let up = up.min(scale + BIAS - 1);
        let (mantissa, exponent) = ((value as u64) << up, scale - up + BIAS);
        match exponent {
            _ if mantissa & TOP == 0 => Extended {
                exponent: sign,
                mantissa,
            },
            exponent if exponent >= i32::from(ODD) => Self::infinity(negative),
            exponent => Extended {
                exponent: sign | exponent as u16,
                mantissa,
            },
        }
    }

    /// The mantissa with its highest bit set, and what it is multiplied with: 2 to the power of that.
    fn parts(self) -> (u64, i32) {
        let up = self.mantissa.leading_zeros();
        let exponent = i32::from(self.exponent & ODD).max(1) - BIAS;
        (self.mantissa.checked_shl(up).unwrap_or(0), exponent - up as i32)
    }

    pub fn from_int(value: i64) -> Extended {
        Self::of(value < 0, value.unsigned_abs().into(), 0, false)
    }

    pub fn from_unsigned(value: u64) -> Extended {
        Self::of(false, value.into(), 0, false)
    }

    pub fn from_float(value: f64) -> Extended {
        let bits = value.to_bits();
        let (exponent, mantissa) = ((bits >> 52 & 0x7FF) as i32, bits & ((1 << 52) - 1));
        match exponent {
            0x7FF if mantissa == 0 => Self::infinity(value.is_sign_negative()),
            0x7FF => Extended {
                exponent: ODD | if value.is_sign_negative() { SIGN } else { 0 },
                mantissa: TOP | 1 << 62 | mantissa << 11,
            },
            0 => Self::of(value.is_sign_negative(), mantissa.into(), -1074, false),
            _ => Self::of(
                value.is_sign_negative(),
                (mantissa | 1 << 52).into(),
                exponent - 1075,
                false,
            ),
        }
    }

    /// Rounded to a `double`, or to a `float`.
    pub fn to_float(self, single: bool) -> f64 {
        let (mantissa, scale) = self.parts();
        let value = match () {
            () if self.is_none() => f64::NAN,
            () if self.is_odd() => f64::INFINITY,
            () => scaled(
                rounded(
                    mantissa.into(),
                    scale,
                    false,
                    if single { SINGLE } else { DOUBLE },
                ),
                single,
            ),
        };
        if self.is_negative() { -value } else { value }
    }

    /// Towards 0, with the sign; `None` for what is no finite number or has more than 64 bits.
    pub fn to_int(self) -> Option<i128> {
        let (mantissa, scale) = self.parts();
        let value = match scale {
            _ if self.is_odd() => return None,
            _ if mantissa == 0 => 0,
            1.. => return None,
            scale => i128::from(mantissa.checked_shr(scale.unsigned_abs()).unwrap_or(0)),
        };
        Some(if self.is_negative() { -value } else { value })
    }

    pub fn add(self, other: Extended) -> Extended {
        match (self.is_odd(), other.is_odd()) {
            _ if self.is_none() => return self,
            _ if other.is_none() => return other,
            (true, true) if self != other => return Self::NONE,
            (true, _) => return self,
            (_, true) => return other,
            _ if self.is_zero() && other.is_zero() => {
                let both = self.is_negative() && other.is_negative();
                return if both { self } else { Self::ZERO };
            }
            _ if self.is_zero() => return other,
            _ if other.is_zero() => return self,
            _ => {}
        }
        let (mut high, mut low) = (self, other);
        let order = |x: Extended| {
            let (mantissa, scale) = x.parts();
            (scale, mantissa)
        };
        if order(high) < order(low) {
            (high, low) = (low, high);
        }
        let ((a, scale), (b, other)) = (high.parts(), low.parts());
        // Room for a carry above, and for two bits and what is lost below.
        let (a, b) = (u128::from(a) << 62, u128::from(b) << 62);
        let down = (scale - other) as u32;
        let shifted = b.checked_shr(down).unwrap_or(0);
        let more = shifted.checked_shl(down) != Some(b);
        let same = high.is_negative() == low.is_negative();
        let sum = match (same, more) {
            (true, _) => a + shifted,
            (false, more) => a - shifted - u128::from(more),
        };
        if sum == 0 && !more {
            return Self::ZERO;
        }
        Self::of(high.is_negative(), sum, scale - 62, more)
    }

    pub fn subtract(self, other: Extended) -> Extended {
        if other.is_none() && !self.is_none() {
            return other;
        }
        self.add(other.negated())
    }

    pub fn multiply(self, other: Extended) -> Extended {
        let negative = self.is_negative() != other.is_negative();
        match (self.is_odd(), other.is_odd()) {
            _ if self.is_none() => return self,
            _ if other.is_none() => return other,
            (true, _) | (_, true) if self.is_zero() || other.is_zero() => return Self::NONE,
            (true, _) | (_, true) => return Self::infinity(negative),
            _ => {}
        }
        let ((a, x), (b, y)) = (self.parts(), other.parts());
        Self::of(negative, u128::from(a) * u128::from(b), x + y, false)
    }

    pub fn divide(self, other: Extended) -> Extended {
        let negative = self.is_negative() != other.is_negative();
        match (self.is_odd(), other.is_odd()) {
            _ if self.is_none() => return self,
            _ if other.is_none() => return other,
            (true, true) => return Self::NONE,
            (true, _) => return Self::infinity(negative),
            (_, true) => return Self::of(negative, 0, 0, false),
            _ if other.is_zero() && self.is_zero() => return Self::NONE,
            _ if other.is_zero() => return Self::infinity(negative),
            _ => {}
        }
        let ((a, x), (b, y)) = (self.parts(), other.parts());
        let (a, b) = (u128::from(a) << 64, u128::from(b));
        // In two steps: 64 bits of the quotient, and 32 more.
        let (first, rest) = (a / b, (a % b) << 32);
        let quotient = (first << 32) | (rest / b);
        Self::of(negative, quotient, x - y - 96, rest % b != 0)
    }

    pub fn compare(self, other: Extended) -> Option<Ordering> {
        if self.is_none() || other.is_none() {
            return None;
        }
        let key = |x: Extended| {
            let size = i128::from(x.exponent & ODD) << 64 | i128::from(x.mantissa);
            if x.is_negative() { -size } else { size }
        };
        Some(key(self).cmp(&key(other)))
    }

    /// The ten bytes of it in memory.
    pub fn bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        bytes[..8].copy_from_slice(&self.mantissa.to_le_bytes());
        bytes[8..].copy_from_slice(&self.exponent.to_le_bytes());
        bytes
    }

    /// `value * 2^scale`, and a little more if `more`.
    pub fn from_hex(value: u128, scale: i32, more: bool) -> Extended {
        Self::of(false, value, scale, more)
    }

    /// The number `digits * 10^power`, of decimal digits.
    pub fn from_decimal(digits: &[u8], power: i32) -> Extended {
        let zeroes = digits.iter().take_while(|&&c| c == b'0').count();
        let digits = &digits[zeroes..];
        // The number lies between 10 to the power of this and a tenth of it: at most 10^4933, and half the least is 10^-4951.
        let size = power + digits.len() as i32;
        match size {
            _ if digits.is_empty() => return Self::ZERO,
            4940.. => return Self::infinity(false),
            ..-4960 => return Self::ZERO,
            _ => {}
        }
        let mut value = Big(Vec::new());
        for chunk in digits.chunks(9) {
            let number = chunk.iter().fold(0, |n, c| n * 10 + u32::from(c - b'0'));
            value.multiply_add(10u32.pow(chunk.len() as u32), number);
        }
        let scale = Big::power_of_five(power.unsigned_abs());
        if power >= 0 {
            let (top, cut, more) = value.multiply(&scale).top();
            return Self::of(false, top, cut + power, more);
        }
        // So that the quotient has 96 bits.
        let up = (scale.bits() - value.bits() + 96).max(0);
        let (quotient, more) = value.shifted(up as u32).divide(&scale);
        let (top, cut, rest) = quotient.top();
        Self::of(false, top, cut + power - up, more || rest)
    }
}

/// A number that was rounded, which the factors do not lead out of the range.
pub fn scaled((value, scale): (u128, i32), single: bool) -> f64 {
    if value == 0 {
        return 0.0;
    }
    if single && scale + (128 - value.leading_zeros() as i32) > 128 {
        return f64::INFINITY;
    }
    // In two steps, so that neither factor leaves the range.
    let half = scale.clamp(-2200, 2200) / 2;
    value as f64 * 2f64.powi(half) * 2f64.powi(scale.clamp(-2200, 2200) - half)
}

/// A large number: its lowest 32 bits first.
struct Big(Vec<u32>);

impl Big {
    fn bits(&self) -> i32 {
        match self.0.last() {
            Some(last) => self.0.len() as i32 * 32 - last.leading_zeros() as i32,
            None => 0,
        }
    }

    fn trim(mut self) -> Big {
        while self.0.last() == Some(&0) {
            self.0.pop();
        }
        self
    }

    fn multiply_add(&mut self, by: u32, add: u32) {
        let mut carry = u64::from(add);
        for word in &mut self.0 {
            let n = u64::from(*word) * u64::from(by) + carry;
            *word = n as u32;
            carry = n >> 32;
        }
        if carry != 0 {
            self.0.push(carry as u32);
        }
    }

    fn multiply(&self, by: &Big) -> Big {
        let mut out = vec![0u32; self.0.len() + by.0.len()];
        for (i, &a) in self.0.iter().enumerate() {
            let mut carry = 0;
            for (j, &b) in by.0.iter().enumerate() {
                let n = u64::from(a) * u64::from(b) + u64::from(out[i + j]) + carry;
                out[i + j] = n as u32;
                carry = n >> 32;
            }
            out[i + by.0.len()] = carry as u32;
        }
        Big(out).trim()
    }

    fn power_of_five(power: u32) -> Big {
        let mut value = Big(vec![1]);
        for bit in (0..32 - power.leading_zeros()).rev() {
            value = value.multiply(&value);
            if power >> bit & 1 == 1 {
                value.multiply_add(5, 0);
            }
        }
        value
    }

    fn shifted(&self, by: u32) -> Big {
        let (words, bits) = ((by / 32) as usize, by % 32);
        let mut out = vec![0; words];
        let mut carry = 0u64;
        for &word in &self.0 {
            let n = u64::from(word) << bits | carry;
            out.push(n as u32);
            carry = n >> 32;
        }
        out.push(carry as u32);
        Big(out).trim()
    }

    /// The quotient, and whether something is left, by Knuth's algorithm D.
    fn divide(&self, by: &Big) -> (Big, bool) {
        let up = by.0.last().map_or(0, |word| word.leading_zeros());
        let (mut rest, by) = (self.shifted(up).0, by.shifted(up).0);
        rest.push(0);
        let n = by.len();
        if rest.len() <= n {
            return (Big(Vec::new()), !self.0.is_empty());
        }
        let top = u64::from(by[n - 1]);
        let mut out = vec![0; rest.len() - n];
        for j in (0..out.len()).rev() {
            let high = u64::from(rest[j + n]) << 32 | u64::from(rest[j + n - 1]);
            let mut digit = (high / top).min(u64::from(u32::MAX));
            let (mut borrow, mut carry) = (0i64, 0u64);
            for i in 0..n {
                carry += digit * u64::from(by[i]);
                let d = i64::from(rest[i + j]) - borrow - (carry as u32) as i64;
                rest[i + j] = d as u32;
                borrow = i64::from(d < 0);
                carry >>= 32;
            }
            let d = i64::from(rest[j + n]) - borrow - carry as i64;
            rest[j + n] = d as u32;
            let mut negative = d < 0;
            // At most twice too much was taken, or so.
            while negative {
                digit -= 1;
                let mut carry = 0u64;
                for i in 0..n {
                    carry += u64::from(rest[i + j]) + u64::from(by[i]);
                    rest[i + j] = carry as u32;
                    carry >>= 32;
                }
                let sum = u64::from(rest[j + n]) + carry;
                rest[j + n] = sum as u32;
                negative = sum >> 32 == 0;
            }
            out[j] = digit as u32;
        }
        (Big(out).trim(), rest.iter().any(|&word| word != 0))
    }

    /// The highest 96 bits or more, the bits below, and whether one of those is set.
    fn top(&self) -> (u128, i32, bool) {
        let skip = self.0.len().saturating_sub(4);
        let value = self.0[skip..]
            .iter()
            .rev()
            .fold(0u128, |n, &word| n << 32 | u128::from(word));
        let more = self.0[..skip].iter().any(|&word| word != 0);
        (value, skip as i32 * 32, more)
    }
}
