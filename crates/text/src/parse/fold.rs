//! Arithmetic on constants, as the program would do it.

use crate::ast::{Bin, Expr};
use crate::extended::Extended;
use crate::types::{Ty, Types};

/// An integer as a type holds it, extended to 64 bits by the type's sign.
pub fn fit(value: i64, ty: Ty, types: &Types) -> i64 {
    if ty.plain() == Ty::BOOL {
        return i64::from(value != 0);
    }
    match (types.size(ty), ty.signed()) {
        (1, true) => i64::from(value as i8),
        (1, false) => i64::from(value as u8),
        (2, true) => i64::from(value as i16),
        (2, false) => i64::from(value as u16),
        (4, true) => i64::from(value as i32),
        (4, false) => i64::from(value as u32),
        _ => value,
    }
}

/// `None` where the result is not defined.
pub fn ints(op: Bin, a: i64, b: i64, ty: Ty, types: &Types) -> Option<i64> {
    let signed = ty.signed();
    let bits = types.size(ty) as i64 * 8;
    let order = if signed {
        a.cmp(&b)
    } else {
        (a as u64).cmp(&(b as u64))
    };
    let value = match op {
        Bin::Add => a.wrapping_add(b),
        Bin::Sub => a.wrapping_sub(b),
        Bin::Mul => a.wrapping_mul(b),
        Bin::Div | Bin::Rem if b == 0 || (signed && b == -1 && a == fit(1 << (bits - 1), ty, types)) => {
            return None;
        }
        Bin::Div if signed => a.wrapping_div(b),
        Bin::Div => (a as u64 / b as u64) as i64,
        Bin::Rem if signed => a.wrapping_rem(b),
        Bin::Rem => (a as u64 % b as u64) as i64,
        Bin::And => a & b,
        Bin::Or => a | b,
        Bin::Xor => a ^ b,
        Bin::Shl | Bin::Shr if !(0..bits).contains(&b) => return None,
        Bin::Shl => a << b,
        Bin::Shr if signed => a >> b,
        Bin::Shr => ((a as u64) >> b) as i64,
        Bin::Lt => i64::from(order.is_lt()),
        Bin::Gt => i64::from(order.is_gt()),
        Bin::Le => i64::from(order.is_le()),
        Bin::Ge => i64::from(order.is_ge()),
        Bin::Eq => i64::from(order.is_eq()),
        Bin::Ne => i64::from(order.is_ne()),
    };
    Some(fit(value, ty, types))
}

/// The result of an arithmetic operator on numbers of a type.
pub fn floats(op: Bin, a: f64, b: f64, ty: Ty) -> Option<f64> {
    let single = ty.plain() == Ty::FLOAT;
    let (x, y) = (a as f32, b as f32);
    let pick = |double: f64, float: f32| Some(if single { f64::from(float) } else { double });
    match op {
        Bin::Add => pick(a + b, x + y),
        Bin::Sub => pick(a - b, x - y),
        Bin::Mul => pick(a * b, x * y),
        Bin::Div => pick(a / b, x / y),
        _ => None,
    }
}

/// The result of a comparison.
pub fn compares(op: Bin, a: f64, b: f64) -> Option<bool> {
    Some(match op {
        Bin::Lt => a < b,
        Bin::Gt => a > b,
        Bin::Le => a <= b,
        Bin::Ge => a >= b,
        Bin::Eq => a == b,
        Bin::Ne => a != b,
        _ => return None,
    })
}

/// A number as an integer type holds it; `None` where C does not define that.
pub fn from_float(value: f64, ty: Ty, types: &Types) -> Option<i64> {
    if ty.plain() == Ty::BOOL {
        return Some(i64::from(value != 0.0));
    }
    let whole = value.trunc();
    let bits = types.size(ty) as i32 * 8;
    let (low, high) = match ty.signed() {
        true => (-(2f64.powi(bits - 1)), 2f64.powi(bits - 1)),
        false => (0.0, 2f64.powi(bits)),
    };
    if !(whole >= low && whole < high) {
        return None;
    }
    Some(if ty.signed() {
        whole as i64
    } else {
        whole as u64 as i64
    })
}

/// An integer of a type as a number.
pub fn to_float(value: i64, from: Ty, to: Ty) -> f64 {
    match (from.signed(), to.plain() == Ty::FLOAT) {
        (true, false) => value as f64,
        (true, true) => f64::from(value as f32),
        (false, false) => value as u64 as f64,
        (false, true) => f64::from(value as u64 as f32),
    }
}

/// The result of an arithmetic operator on numbers of `long double`.
pub fn longs(op: Bin, a: Extended, b: Extended) -> Option<Extended> {
    match op {
        Bin::Add => Some(a.add(b)),
        Bin::Sub => Some(a.subtract(b)),
        Bin::Mul => Some(a.multiply(b)),
        Bin::Div => Some(a.divide(b)),
        _ => None,
    }
}

/// The result of a comparison of such numbers.
pub fn compares_longs(op: Bin, a: Extended, b: Extended) -> Option<bool> {
    let order = a.compare(b);
    Some(match op {
        Bin::Lt => order.is_some_and(|o| o.is_lt()),
        Bin::Gt => order.is_some_and(|o| o.is_gt()),
        Bin::Le => order.is_some_and(|o| o.is_le()),
        Bin::Ge => order.is_some_and(|o| o.is_ge()),
        Bin::Eq => order.is_some_and(|o| o.is_eq()),
        Bin::Ne => !order.is_some_and(|o| o.is_eq()),
        _ => return None,
    })
}

/// A constant of `long double` in another type; `None` where C does not define that.
pub fn from_long(value: Extended, ty: Ty, types: &Types) -> Option<Expr> {
    match ty.plain() {
        Ty::LDOUBLE => Some(Expr::Long(value)),
        Ty::DOUBLE | Ty::FLOAT => Some(Expr::Float(value.to_float(ty.plain() == Ty::FLOAT))),
        Ty::BOOL => Some(Expr::Int(i64::from(!value.is_zero()))),
        _ if ty.is_int() => {
            let whole = value.to_int()?;
            let bits = types.size(ty) as u32 * 8;
            let range = match ty.signed() {
                true => -(1i128 << (bits - 1))..1i128 << (bits - 1),
                false => 0..1i128 << bits,
            };
            range.contains(&whole).then_some(Expr::Int(whole as i64))
        }
        _ => None,
    }
}

/// A constant as one of `long double`.
pub fn to_long(value: Expr, from: Ty) -> Option<Extended> {
    match value {
        Expr::Int(value) if from.is_int() && !from.signed() => Some(Extended::from_unsigned(value as u64)),
        Expr::Int(value) => Some(Extended::from_int(value)),
        Expr::Float(value) => Some(Extended::from_float(value)),
        Expr::Long(value) => Some(value),
        _ => None,
    }
}
