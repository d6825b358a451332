//! C signatures for `ringfence call`: parsed from text, or guessed from the arguments.

use std::fmt;

use ringfence_debug::prototype::{CType, Prototype};

/// A type that can be passed or returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Nothing (results only).
    Void,
    /// A signed integer of so many bits.
    Int(u8),
    /// An unsigned integer of so many bits.
    Unsigned(u8),
    /// `float`.
    F32,
    /// `double`.
    F64,
    /// A C string: copied into the domain, or out of it.
    Str,
    /// A pointer or handle, in hexadecimal.
    Ptr,
    /// A file's content, copied into the domain.
    File,
}

/// A function's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The result.
    pub result: Type,
    /// The parameters.
    pub parameters: Vec<Type>,
}

/// A value in the form that registers take.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// An integer or pointer.
    Word(u64),
    /// A `float` or `double`, as bits.
    Vector(u64),
    /// Bytes that have to be copied into the domain first.
    Bytes(Vec<u8>),
}

impl Type {
    fn parse(text: &str) -> Result<Type, String> {
        Ok(match text {
            "void" => Type::Void,
            "bool" | "u8" => Type::Unsigned(8),
            "u16" => Type::Unsigned(16),
            "u32" | "uint" => Type::Unsigned(32),
            "u64" | "usize" | "size_t" | "ulong" => Type::Unsigned(64),
            "i8" | "char" => Type::Int(8),
            "i16" | "short" => Type::Int(16),
            "i32" | "int" => Type::Int(32),
            "i64" | "isize" | "long" => Type::Int(64),
            "f32" | "float" => Type::F32,
            "f64" | "double" => Type::F64,
            "str" => Type::Str,
            "ptr" => Type::Ptr,
            "file" => Type::File,
            other => {
                return Err(format!(
                    "'{other}' is no type; use void, i8 to i64, u8 to u64, f32, f64, ptr, str, or file"
                ));
            }
        })
    }

    /// The argument `text` as a value of this type.
    pub fn value(self, text: &str) -> Result<Value, String> {
        let bad = |e: &dyn fmt::Display| format!("'{text}' is no {self}: {e}");
        Ok(match self {
            Type::Void => return Err("void is no type for a parameter".to_owned()),
            Type::F32 => Value::Vector(u64::from(text.parse::<f32>().map_err(|e| bad(&e))?.to_bits())),
            Type::F64 => Value::Vector(text.parse::<f64>().map_err(|e| bad(&e))?.to_bits()),
            Type::Str => {
                let mut bytes = text.as_bytes().to_vec();
                bytes.push(0);
                Value::Bytes(bytes)
            }
            Type::File => Value::Bytes(std::fs::read(text).map_err(|e| bad(&e))?),
            Type::Int(_) | Type::Unsigned(_) | Type::Ptr => {
                let number = integer(text).ok_or_else(|| bad(&"write a decimal or 0x hexadecimal number"))?;
                let (low, high) = self.range();
                if number < low || number > high {
                    return Err(bad(&format_args!("out of range {low} to {high}")));
                }
                // Negative numbers are sign-extended, as a C caller does for `int`.
                Value::Word(number as u64)
            }
        })
    }

    fn range(self) -> (i128, i128) {
        match self {
            Type::Int(bits) => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            Type::Unsigned(bits) => (0, (1 << bits) - 1),
            _ => (0, i128::from(u64::MAX)),
        }
    }

    /// An integer result register as text.
    pub fn show_word(self, word: u64) -> String {
        match self {
            Type::Int(bits) => {
                let shift = 64 - u32::from(bits);
                (((word << shift) as i64) >> shift).to_string()
            }
            Type::Unsigned(bits) => {
                let shift = 64 - u32::from(bits);
                ((word << shift) >> shift).to_string()
            }
            _ => format!("{word:#x}"),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Type::Void => f.write_str("void"),
            Type::Int(bits) => write!(f, "i{bits}"),
            Type::Unsigned(bits) => write!(f, "u{bits}"),
            Type::F32 => f.write_str("f32"),
            Type::F64 => f.write_str("f64"),
            Type::Str => f.write_str("str"),
            Type::Ptr => f.write_str("ptr"),
            Type::File => f.write_str("file"),
        }
    }
}

fn integer(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i128::from_str_radix(hex, 16).ok()?,
        None => digits.parse::<i128>().ok()?,
    };
    Some(if negative { -value } else { value })
}

impl Signature {
    /// Reads `RESULT(PARAMETER, …)`, as `i32(i64, f64, str)`.
    pub fn parse(text: &str) -> Result<Signature, String> {
        let wrong = || format!("'{text}' is no signature; write one like 'i32(i64, f64, str)'");
        let (result, rest) = text.split_once('(').ok_or_else(wrong)?;
        let list = rest.trim_end().strip_suffix(')').ok_or_else(wrong)?.trim();
        let parameters = if list.is_empty() || list == "void" {
            Vec::new()
        } else {
            list.split(',')
                .map(|t| Type::parse(t.trim()))
                .collect::<Result<_, _>>()?
        };
        if parameters.contains(&Type::Void) {
            return Err(wrong());
        }
        let result = Type::parse(result.trim())?;
        if result == Type::File {
            return Err(wrong());
        }
        Ok(Signature { result, parameters })
    }

    /// What the arguments look like: numbers are `i64` or `f64`, `@FILE` a file's content, the rest strings.
    /// The result is taken for an `i64`.
    pub fn guess(arguments: &[String]) -> Signature {
        let parameters = arguments
            .iter()
            .map(|a| match () {
                () if integer(a).is_some_and(|n| i64::try_from(n).is_err()) => Type::Unsigned(64),
                () if integer(a).is_some() => Type::Int(64),
                () if a.parse::<f64>().is_ok() => Type::F64,
                () => Type::Str,
            })
            .collect();
        Signature {
            result: Type::Int(64),
            parameters,
        }
    }
}

impl Signature {
    /// What the module's debug information says; pointers take what the arguments look like.
    ///
    /// # Errors
    ///
    /// Another number of arguments than the function takes, types that do not go in a register.
    pub fn of(function: &str, prototype: &Prototype, arguments: &[String]) -> Result<Signature, String> {
        let (wants, got) = (prototype.parameters.len(), arguments.len());
        if got < wants || got > wants && !prototype.variadic {
            let list: Vec<String> = prototype.parameters.iter().map(describe).collect();
            let (more, list) = (if prototype.variadic { "at least " } else { "" }, list.join(", "));
            let plural = if wants == 1 { "argument" } else { "arguments" };
            let list = if wants == 0 {
                String::new()
            } else {
                format!(" ({list})")
            };
            return Err(format!(
                "{function} takes {more}{wants} {plural}{list}, {got} given"
            ));
        }
        let mut parameters = Signature::guess(arguments).parameters;
        for (n, (to, from)) in parameters.iter_mut().zip(&prototype.parameters).enumerate() {
            *to = match from {
                CType::Signed(bits) => Type::Int(*bits),
                CType::Unsigned(bits) => Type::Unsigned(*bits),
                CType::Float(32) => Type::F32,
                CType::Float(_) => Type::F64,
                CType::Text | CType::Pointer if integer(&arguments[n]).is_some() => Type::Ptr,
                CType::Text | CType::Pointer => Type::Str,
                CType::Void | CType::Other(_) => {
                    let what = describe(from);
                    return Err(format!(
                        "argument {} of {function} is of type {what}, which cannot be given on a command line",
                        n + 1
                    ));
                }
            };
        }
        let result = match &prototype.result {
            CType::Void => Type::Void,
            CType::Signed(bits) => Type::Int(*bits),
            CType::Unsigned(bits) => Type::Unsigned(*bits),
            CType::Float(32) => Type::F32,
            CType::Float(_) => Type::F64,
            CType::Text => Type::Str,
            CType::Pointer => Type::Ptr,
            CType::Other(what) => {
                return Err(format!(
                    "{function} returns {what}, which cannot be shown; --sig takes it for something else"
                ));
            }
        };
        Ok(Signature { result, parameters })
    }
}

fn describe(t: &CType) -> String {
    match t {
        CType::Void => "void".to_owned(),
        CType::Signed(bits) => format!("i{bits}"),
        CType::Unsigned(bits) => format!("u{bits}"),
        CType::Float(bits) => format!("f{bits}"),
        CType::Text => "char *".to_owned(),
        CType::Pointer => "pointer".to_owned(),
        CType::Other(what) => what.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures() {
        let s = Signature::parse("i32(i64, f64,str)").unwrap();
        assert_eq!(s.parameters, [Type::Int(64), Type::F64, Type::Str]);
        assert_eq!(Signature::parse("void()").unwrap().parameters, []);
        for bad in ["", "i32", "i32(", "i32(void,int)", "i9(i32)", "file()"] {
            assert!(Signature::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn guesses() {
        let g = Signature::guess(&["1", "-2", "0x10", "1.5", "x", "18446744073709551615"].map(str::to_owned));
        let int = Type::Int(64);
        assert_eq!(
            g.parameters,
            [int, int, int, Type::F64, Type::Str, Type::Unsigned(64)]
        );
    }

    #[test]
    fn values_are_checked() {
        assert_eq!(Type::Int(8).value("-128").unwrap(), Value::Word((-128i64) as u64));
        assert!(Type::Int(8).value("128").is_err());
        assert!(Type::Unsigned(64).value("18446744073709551616").is_err());
        assert_eq!(
            Type::Unsigned(64).value("0xffffffffffffffff").unwrap(),
            Value::Word(u64::MAX)
        );
        assert_eq!(Type::F32.value("1").unwrap(), Value::Vector(0x3F80_0000));
        assert_eq!(Type::Str.value("ab").unwrap(), Value::Bytes(vec![97, 98, 0]));
    }

    #[test]
    fn results() {
        assert_eq!(Type::Int(32).show_word(0xFFFF_FFFF), "-1");
        assert_eq!(Type::Unsigned(32).show_word(u64::MAX), "4294967295");
        assert_eq!(Type::Ptr.show_word(16), "0x10");
    }
}
