//! What a macro stands for, if that is a number or a text.

use std::collections::BTreeMap;

use crate::scan::{Token, tokens};

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Constant {
    /// A number.
    Number(i128),
    /// A string constant, as it is written in C, with quotes.
    Text(String),
}

/// How deep macros may stand in macros, and brackets in brackets.
const DEEPEST: usize = 64;

/// The value of `text`, where names are macros or enumerators; `None` if it is no constant.
pub(crate) fn value(
    text: &str,
    macros: &BTreeMap<String, String>,
    enumerators: &BTreeMap<String, i128>,
) -> Option<Constant> {
    let code = tokens(text);
    if !code.is_empty()
        && code
            .iter()
            .all(|t| matches!(t, Token::Quoted(q) if q.starts_with('"')))
    {
        let joined: String = code.iter().filter_map(quoted).collect();
        return Some(Constant::Text(format!("\"{joined}\"")));
    }
    if let [Token::Word(name)] = code.as_slice()
        && let Some(Constant::Text(text)) = macros.get(name).filter(|m| *m != text).and_then(|m| {
            let literal = m.starts_with('"');
            literal.then(|| value(m, macros, enumerators)).flatten()
        })
    {
        return Some(Constant::Text(text));
    }
    let mut reader = Reader {
        code: &code,
        at: 0,
        macros,
        enumerators,
        depth: 0,
    };
    let number = reader.binary(0)?;
    (reader.at == code.len()).then_some(Constant::Number(number))
}

fn quoted(token: &Token) -> Option<&str> {
    match token {
        Token::Quoted(text) => text.get(1..text.len() - 1),
        _ => None,
    }
}

struct Reader<'a> {
    code: &'a [Token],
    at: usize,
    macros: &'a BTreeMap<String, String>,
    enumerators: &'a BTreeMap<String, i128>,
    depth: usize,
}

/// Operators, the weakest first.
const OPERATORS: [&[&str]; 6] = [
    &["|"],
    &["^"],
    &["&"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl Reader<'_> {
    fn operator(&self, level: usize) -> Option<&'static str> {
        OPERATORS[level].iter().copied().find(|o| {
            o.chars()
                .enumerate()
                .all(|(i, c)| self.code.get(self.at + i).is_some_and(|t| t.is(c)))
        })
    }

    fn binary(&mut self, level: usize) -> Option<i128> {
        if level == OPERATORS.len() {
            return self.unary();
        }
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(level) {
            self.at += operator.len();
            let right = self.binary(level + 1)?;
            let bits = u32::try_from(right).ok().filter(|&n| n < 64);
            left = match operator {
                "|" => left | right,
                "^" => left ^ right,
                "&" => left & right,
                "<<" => left.checked_shl(bits?)?,
                ">>" => left >> bits?,
                "+" => left.checked_add(right)?,
                "-" => left.checked_sub(right)?,
                "*" => left.checked_mul(right)?,
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            };
        }
        Some(left)
    }

    fn unary(&mut self) -> Option<i128> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let token = self.code.get(self.at)?;
        self.at += 1;
        let found = match token {
            Token::Sign('-') => self.unary()?.checked_neg(),
            Token::Sign('+') => self.unary(),
            // Of an int, which is what constants in headers are.
            Token::Sign('~') => Some(!self.unary()?),
            Token::Sign('(') => {
                let inner = self.binary(0)?;
                let closed = self.code.get(self.at).is_some_and(|t| t.is(')'));
                self.at += 1;
                closed.then_some(inner)
            }
            Token::Number(text) => number(text),
            Token::Quoted(text) => character(text),
            Token::Word(name) => match self.enumerators.get(name) {
                Some(&value) => Some(value),
                None => {
                    let text = self.macros.get(name)?;
                    let code = tokens(text);
                    let mut inner = Reader {
                        code: &code,
                        at: 0,
                        ..*self
                    };
                    let value = inner.binary(0)?;
                    (inner.at == code.len()).then_some(value)
                }
            },
            Token::Sign(_) => None,
        };
        self.depth -= 1;
        found
    }
}

fn number(text: &str) -> Option<i128> {
    let lower = text.to_ascii_lowercase();
    let (radix, digits) = match lower.strip_prefix("0x") {
        Some(hex) => (16, hex),
        None if lower.len() > 1 && lower.starts_with('0') => (8, &lower[1..]),
        None => (10, lower.as_str()),
    };
    let digits = digits.trim_end_matches(['u', 'l']);
    let value = if digits.is_empty() {
        0
    } else {
        i128::from_str_radix(digits, radix).ok()?
    };
    (value <= i128::from(u64::MAX)).then_some(value)
}

fn character(text: &str) -> Option<i128> {
    let inner = text.strip_prefix('\'')?.strip_suffix('\'')?;
    let mut chars = inner.chars();
    let value = match (chars.next()?, chars.next()) {
        ('\\', Some(c)) => match c {
            'n' => 10,
            't' => 9,
            'r' => 13,
            '0' => 0,
            '\\' | '\'' | '"' => i128::from(u32::from(c)),
            _ => return None,
        },
        (c, None) => i128::from(u32::from(c)),
        _ => return None,
    };
    chars.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Constant> {
        let macros = [
            ("ONE", "1"),
            ("TWO", "(ONE + 1)"),
            ("SELF", "SELF"),
            ("NAME", "\"a\""),
        ];
        let macros = macros.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
        value(text, &macros, &[("E".to_owned(), 7)].into())
    }

    #[test]
    fn expressions_of_headers() {
        let cases = [
            ("0x10", 16),
            ("(1<<TWO)|E", 7),
            ("-1", -1),
            ("(SQ)", 0),
            ("10UL", 10),
            ("017", 15),
            ("'A'", 65),
            ("(E | (3<<8))", 775),
            ("~0x1", -2),
            ("2 * 3 + 1", 7),
            ("8 - 2 - 1", 5),
        ];
        for (text, expected) in cases {
            let expected = (expected != 0).then_some(Constant::Number(expected));
            assert_eq!(of(text), expected, "{text}");
        }
        assert_eq!(of("\"a\" \"b\""), Some(Constant::Text("\"ab\"".into())));
        assert_eq!(of("NAME"), Some(Constant::Text("\"a\"".into())));
        for text in [
            "",
            "SELF",
            "f(1)",
            "((void*)0)",
            "1.5",
            "1 +",
            "1 << 200",
            "1/0",
            "int",
            "(((((",
            "0x1p3",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of(&"(".repeat(100_000)), None);
        assert_eq!(of(&"-".repeat(100_000)), None);
    }
}
