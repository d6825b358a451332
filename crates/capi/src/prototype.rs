//! C prototypes as text: `int add(int, int)`. They name a function and tell the gate what its registers carry.

use ringfence::{Narrow, Signature, Width};

use crate::status::{Failure, Status};

/// Most bytes of stack arguments that a pointer of `rf_dlsym` passes.
pub(crate) const STACK_ARGS_MAX: usize = 128;

/// What stands before the name of a function whose type is not told: `RF_UNTYPED` of the header.
const UNTYPED: &str = "untyped ";

/// How a program names something.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Named<'a> {
    /// A name only: good for an object.
    Bare(&'a str),
    /// A function that may see whatever is in the host's registers.
    Untyped(&'a str),
    /// A function with its type.
    Function(&'a str, Signature),
}

/// Reads `text`.
pub(crate) fn read(text: &str) -> Result<Named<'_>, Failure> {
    if let Some(name) = text.strip_prefix(UNTYPED)
        && !name.contains(['(', ' '])
    {
        return Ok(Named::Untyped(name));
    }
    if !text.contains('(') {
        return Ok(Named::Bare(text));
    }
    let mut parser = Parser {
        text,
        tokens: tokens(text)?,
        next: 0,
    };
    let (name, signature) = parser.prototype()?;
    Ok(Named::Function(name, signature))
}

/// A function was named without its type.
pub(crate) fn no_type(name: &str, advice: &str) -> Failure {
    let message = format!("{name} is a function, and its type is not told: {advice}");
    Failure::new(Status::ERROR_TYPE, message)
}

/// What a parameter or a result is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Void,
    Int(Width),
    Float,
    Double,
    LongDouble,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Number,
    Sign(char),
    Ellipsis,
}

/// With the column that each begins at, from 1.
fn tokens(text: &str) -> Result<Vec<(Token<'_>, usize)>, Failure> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let run = |more: fn(char) -> bool| rest.find(|c| !more(c)).unwrap_or(rest.len());
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
        let (token, length) = match c {
            c if c.is_ascii_whitespace() => {
                at += 1;
                continue;
            }
            '0'..='9' => (Token::Number, run(|c| c.is_ascii_alphanumeric())),
            c if word(c) => {
                let length = run(word);
                (Token::Word(&rest[..length]), length)
            }
            '.' if rest.starts_with("...") => (Token::Ellipsis, 3),
            '*' | '(' | ')' | '[' | ']' | ',' | ';' | '&' => (Token::Sign(c), 1),
            c => return Err(wrong(text, at + 1, &format!("{c:?} has no place in a prototype"))),
        };
        found.push((token, at + 1));
        at += length;
    }
    Ok(found)
}

fn wrong(text: &str, column: usize, message: &str) -> Failure {
    Failure::new(
        Status::ERROR_TYPE,
        format!("the prototype \"{text}\", column {column}: {message}"),
    )
}

/// What the words in front of stars and names stand for.
enum Base {
    Known(Type),
    /// Not known here: good only for a pointer.
    Unknown {
        column: usize,
        message: String,
    },
}

struct Parser<'a> {
    text: &'a str,
    tokens: Vec<(Token<'a>, usize)>,
    next: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.next).map(|t| t.0)
    }

    fn column(&self) -> usize {
        self.tokens.get(self.next).map_or(self.text.len() + 1, |t| t.1)
    }

    fn wrong<T>(&self, message: &str) -> Result<T, Failure> {
        Err(wrong(self.text, self.column(), message))
    }

    fn take(&mut self, sign: char) -> bool {
        let found = self.peek() == Some(Token::Sign(sign));
        self.next += usize::from(found);
        found
    }

    fn prototype(&mut self) -> Result<(&'a str, Signature), Failure> {
        let start = self.column();
        let base = self.specifiers()?;
        let pointer = self.stars()?;
        let result = self.finish(base, pointer)?;
        let Some(Token::Word(name)) = self.peek() else {
            if self.peek() == Some(Token::Sign('(')) && self.next > 0 {
                return self.wrong(
                    "no parentheses around the name; for a function that returns a pointer to a function write void *",
                );
            }
            return self.wrong("the function's name belongs here");
        };
        self.next += 1;
        if !self.take('(') {
            return self.wrong("the parameters belong here, in parentheses");
        }
        let mut passed = Passed::default();
        self.parameters(&mut passed)?;
        let _ = self.take(';');
        if self.peek().is_some() {
            return self.wrong("the prototype ends before this");
        }
        let signature = passed
            .signature(result)
            .map_err(|m| wrong(self.text, start, &m))?;
        Ok((name, signature))
    }

    /// What stands between the parentheses, and the closing one.
    fn parameters(&mut self, passed: &mut Passed) -> Result<(), Failure> {
        if self.peek() == Some(Token::Sign(')')) {
            return self.wrong("() leaves the parameters open in C: write (void) if there are none");
        }
        for first in [true].into_iter().chain(std::iter::repeat(false)) {
            if self.peek() == Some(Token::Ellipsis) {
                return self.wrong(
                    "variable arguments have no type here: call the function with rf_function_call, or by the types of one call",
                );
            }
            let column = self.column();
            let base = self.specifiers()?;
            let pointer = self.declarator()?;
            match self.finish(base, pointer)? {
                Type::Void if first && self.peek() == Some(Token::Sign(')')) && self.unnamed_void() => {}
                Type::Void => return Err(wrong(self.text, column, "void is no type of a parameter")),
                kind => passed.add(kind),
            }
            if self.take(')') {
                return Ok(());
            }
            if !self.take(',') {
                return self.wrong("a comma or the closing parenthesis belongs here");
            }
        }
        unreachable!("the iterator has no end")
    }

    /// Whether the parameters are `(void` so far.
    fn unnamed_void(&self) -> bool {
        matches!(self.tokens[self.next - 1].0, Token::Word("void"))
    }

    /// `const unsigned long`, up to what is no part of it.
    fn specifiers(&mut self) -> Result<Base, Failure> {
        let begin = self.column();
        let (mut base, mut sign, mut short, mut long) = (None, None, 0, 0);
        let mut named: Option<Base> = None;
        while let Some(Token::Word(word)) = self.peek() {
            let plain = base.is_none() && sign.is_none() && short + long == 0;
            match word {
                "const" | "volatile" | "restrict" | "__restrict" | "__restrict__" | "extern" | "static"
                | "inline" | "register" | "_Noreturn" | "noreturn" => {}
                "signed" | "unsigned" if named.is_none() && sign.is_none() => sign = Some(word),
                "short" if named.is_none() && short == 0 && long == 0 => short = 1,
                "long" if named.is_none() && short == 0 && long < 2 => long += 1,
                "char" | "int" | "float" | "double" | "void" | "_Bool" | "bool"
                    if named.is_none() && base.is_none() =>
                {
                    base = Some(word);
                }
                "signed" | "unsigned" | "short" | "long" | "char" | "int" | "float" | "double" | "void"
                | "_Bool" | "bool" => return self.wrong("this does not go with the type before it"),
                "_Complex" | "__int128" | "_Float128" | "__float128" | "_Decimal64" | "_Decimal128" => {
                    return self.wrong(&format!(
                        "{word} does not pass: give a pointer to it, into the domain's memory"
                    ));
                }
                "struct" | "union" if plain && named.is_none() => {
                    let column = self.column();
                    self.tag()?;
                    let message = format!(
                        "a {word} does not pass by value: give a pointer to it, into the domain's memory"
                    );
                    named = Some(Base::Unknown { column, message });
                    continue;
                }
                "enum" if plain && named.is_none() => {
                    self.tag()?;
                    named = Some(Base::Known(Type::Int(Width::Int)));
                    continue;
                }
                _ if !plain || named.is_some() => break, // the parameter's name
                _ => {
                    let known = typedef(word).map(|t| Base::Known(Type::Int(t)));
                    let unknown = || Base::Unknown {
                        column: self.column(),
                        message: format!(
                            "{word} is no type that is known here: write the one it stands for, such as \
                             unsigned long (void * for a pointer, int for an enumeration)"
                        ),
                    };
                    named = Some(known.unwrap_or_else(unknown));
                }
            }
            self.next += 1;
        }
        if let Some(named) = named {
            return Ok(named);
        }
        let signed = sign != Some("unsigned");
        let int = |width| Ok(Base::Known(Type::Int(width)));
        match (base, sign, short, long) {
            (None, None, 0, 0) => self.wrong("a type belongs here"),
            (Some("char"), _, 0, 0) => int(Width::Byte { signed }),
            (None | Some("int"), _, 1, 0) => int(Width::Short { signed }),
            (None | Some("int"), _, 0, 0) => int(Width::Int),
            (None | Some("int"), _, 0, _) => int(Width::Word),
            (Some("_Bool" | "bool"), None, 0, 0) => int(Width::Byte { signed: false }),
            (Some("float"), None, 0, 0) => Ok(Base::Known(Type::Float)),
            (Some("double"), None, 0, 0) => Ok(Base::Known(Type::Double)),
            (Some("double"), None, 0, 1) => Ok(Base::Known(Type::LongDouble)),
            (Some("void"), None, 0, 0) => Ok(Base::Known(Type::Void)),
            _ => Err(wrong(self.text, begin, "these words make no type")),
        }
    }

    /// The name behind `struct` and its like.
    fn tag(&mut self) -> Result<(), Failure> {
        self.next += 1;
        if !matches!(self.peek(), Some(Token::Word(_))) {
            return self.wrong("a name belongs here");
        }
        self.next += 1;
        Ok(())
    }

    /// `* const *`: whether there is a star.
    fn stars(&mut self) -> Result<bool, Failure> {
        let mut any = false;
        loop {
            match self.peek() {
                Some(Token::Sign('*')) => any = true,
                Some(Token::Sign('&')) => return self.wrong("C has no references: write a pointer"),
                Some(Token::Word(
                    "const" | "volatile" | "restrict" | "__restrict" | "__restrict__" | "_Nonnull"
                    | "_Nullable",
                )) => {}
                _ => return Ok(any),
            }
            self.next += 1;
        }
    }

    /// What stands behind a parameter's type: whether it makes a pointer of it.
    fn declarator(&mut self) -> Result<bool, Failure> {
        let mut pointer = self.stars()?;
        if matches!(self.peek(), Some(Token::Word(_))) {
            self.next += 1;
        }
        // Arrays, functions and pointers to both are pointers; what they point to does not matter.
        while let Some(Token::Sign(open @ ('(' | '['))) = self.peek() {
            pointer = true;
            let column = self.column();
            let mut closing = Vec::new();
            loop {
                match self.peek() {
                    Some(Token::Sign('(')) => closing.push(')'),
                    Some(Token::Sign('[')) => closing.push(']'),
                    Some(Token::Sign(c @ (')' | ']'))) if closing.last() == Some(&c) => {
                        closing.pop();
                    }
                    Some(Token::Sign(')' | ']')) | None => {
                        return Err(wrong(self.text, column, &format!("this {open} is not closed")));
                    }
                    Some(_) => {}
                }
                self.next += 1;
                if closing.is_empty() {
                    break;
                }
            }
        }
        Ok(pointer)
    }

    fn finish(&self, base: Base, pointer: bool) -> Result<Type, Failure> {
        match base {
            _ if pointer => Ok(Type::Int(Width::Word)),
            Base::Known(known) => Ok(known),
            Base::Unknown { column, message } => Err(wrong(self.text, column, &message)),
        }
    }
}

/// Integers that everybody has by name. `char16_t` and `wchar_t` are what gcc makes of them on x86-64.
fn typedef(word: &str) -> Option<Width> {
    Some(match word {
        "size_t" | "ssize_t" | "ptrdiff_t" | "intptr_t" | "uintptr_t" | "intmax_t" | "uintmax_t"
        | "int64_t" | "uint64_t" | "int_least64_t" | "uint_least64_t" | "int_fast64_t" | "uint_fast64_t"
        | "int_fast32_t" | "uint_fast32_t" | "int_fast16_t" | "uint_fast16_t" => Width::Word,
        "int32_t" | "uint32_t" | "int_least32_t" | "uint_least32_t" | "wchar_t" | "char32_t" => Width::Int,
        "int16_t" | "int_least16_t" => Width::Short { signed: true },
        "uint16_t" | "uint_least16_t" | "char16_t" => Width::Short { signed: false },
        "int8_t" | "int_least8_t" | "int_fast8_t" => Width::Byte { signed: true },
        "uint8_t" | "uint_least8_t" | "uint_fast8_t" | "char8_t" => Width::Byte { signed: false },
        _ => return None,
    })
}

/// Arguments, by the rules of the System V ABI.
#[derive(Default)]
struct Passed {
    ints: Vec<Width>,
    floats: Vec<bool>,
    stack: Vec<Width>,
}

impl Passed {
    fn add(&mut self, kind: Type) {
        match kind {
            Type::Void => {}
            Type::Int(width) if self.ints.len() < 6 => self.ints.push(width),
            Type::Int(width) => self.stack.push(width),
            Type::Float | Type::Double if self.floats.len() < 8 => self.floats.push(kind == Type::Float),
            Type::Float => self.stack.push(Width::Int),
            Type::Double => self.stack.push(Width::Word),
            Type::LongDouble => {
                if self.stack.len() % 2 == 1 {
                    self.stack.push(Width::Nothing); // aligned to 16
                }
                self.stack.extend([Width::Word, Width::Short { signed: false }]);
            }
        }
    }

    fn signature(&self, result: Type) -> Result<Signature, String> {
        let mut narrow = Narrow::NONE;
        let bytes = 8 * self.stack.len();
        if bytes > STACK_ARGS_MAX {
            return Err(format!(
                "{bytes} bytes of arguments travel on the stack; at most {STACK_ARGS_MAX} pass"
            ));
        }
        narrow.ints[..self.ints.len()].copy_from_slice(&self.ints);
        narrow.stack[..self.stack.len()].copy_from_slice(&self.stack);
        for (n, _) in self.floats.iter().enumerate().filter(|f| *f.1) {
            narrow.singles |= 1 << n;
        }
        if let Type::Int(width) = result {
            narrow.int_result = width;
        }
        narrow.single_result = result == Type::Float;
        Ok(Signature {
            ints: self.ints.len() as u8,
            floats: self.floats.len() as u8,
            stack: self.stack.len() as u8,
            int_results: matches!(result, Type::Int(_)).into(),
            float_results: matches!(result, Type::Float | Type::Double).into(),
            x87_results: (result == Type::LongDouble).into(),
            variadic: false,
            narrow,
        })
    }
}

#[cfg(test)]
mod tests;
