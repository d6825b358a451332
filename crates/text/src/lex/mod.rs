//! From text to tokens, `#define` of constants included.

mod literals;

use crate::error::Notes;
use crate::extended::Extended;
use crate::types::{Sym, Ty};
use std::collections::HashMap;

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Kind {
    End,
    Name(Sym),
    /// Index into [`Tokens::ints`].
    Int(u32),
    /// Index into [`Tokens::floats`].
    Float(u32),
    /// Index into [`Tokens::strings`].
    Str(u32),
    /// One to three characters, the first in the highest byte that is used.
    Punct(u32),
}

#[derive(Clone, Copy, Debug)]
pub struct Token {
    pub kind: Kind,
    /// Offset in the text, and length.
    pub at: u32,
    pub len: u32,
}

macro_rules! keywords {
    ($($name:ident = $text:literal),* $(,)?) => {
        /// Numbers of the keywords.
        #[allow(non_camel_case_types, clippy::upper_case_acronyms, dead_code)]
        #[repr(u32)]
        enum Order { $($name),*, COUNT }
        $(#[allow(dead_code)] pub const $name: Sym = Order::$name as u32;)*
        /// How many keywords there are.
        pub const KEYWORDS: u32 = Order::COUNT as u32;
        const TEXTS: &[&str] = &[$($text),*];
    };
}
keywords! {
    VOID = "void", BOOL = "_Bool", BOOL2 = "bool", CHAR = "char", SHORT = "short", INT = "int", LONG = "long", SIGNED = "signed",
    SIGNED2 = "__signed__", UNSIGNED = "unsigned", FLOAT = "float", DOUBLE = "double", CONST = "const", VOLATILE = "volatile",
    RESTRICT = "restrict", STRUCT = "struct", UNION = "union", ENUM = "enum", TYPEDEF = "typedef", STATIC = "static", EXTERN = "extern",
    AUTO = "auto", REGISTER = "register", INLINE = "inline", NORETURN = "_Noreturn", IF = "if", ELSE = "else", WHILE = "while",
    DO = "do", FOR = "for", SWITCH = "switch", CASE = "case", DEFAULT = "default", BREAK = "break", CONTINUE = "continue",
    RETURN = "return", GOTO = "goto", SIZEOF = "sizeof", ALIGNOF = "_Alignof", TRUE = "true", FALSE = "false", NULL = "NULL",
    STATIC_ASSERT = "_Static_assert", UNSUPPORTED_COMPLEX = "_Complex", UNSUPPORTED_ATOMIC = "_Atomic",
    UNSUPPORTED_GENERIC = "_Generic", UNSUPPORTED_THREAD = "_Thread_local", UNSUPPORTED_ASM = "asm",
    UNSUPPORTED_ASM2 = "__asm__", UNSUPPORTED_ATTRIBUTE = "__attribute__", UNSUPPORTED_TYPEOF = "__typeof__",
    UNSUPPORTED_ALIGNAS = "_Alignas", UNSUPPORTED_EXTENSION = "__extension__", UNSUPPORTED_INT128 = "__int128",
}

/// The first keyword that is known only to be refused.
pub const FIRST_UNSUPPORTED: Sym = UNSUPPORTED_COMPLEX;

/// The number of a punctuator.
pub const fn p(text: &str) -> u32 {
    let (b, mut i, mut n) = (text.as_bytes(), 0, 0);
    while i < b.len() {
        n = n << 8 | b[i] as u32;
        i += 1;
    }
    n
}

/// Places in the table of names as it is at first; a power of two.
const TABLE: usize = 512;

/// The table of names with all keywords.
const KEYWORD_TABLE: [u32; TABLE] = {
    let (mut table, mut sym) = ([0; TABLE], 0);
    while sym < TEXTS.len() {
        let mut slot = hash(TEXTS[sym].as_bytes()) as usize & (TABLE - 1);
        while table[slot] != 0 {
            slot = (slot + 1) & (TABLE - 1);
        }
        table[slot] = sym as u32 + 1;
        sym += 1;
    }
    table
};

/// Most tokens, those of macros included.
const TOKENS: usize = 400_000;
/// Most bytes of all names and strings together are bounded by the text's; most macros inside macros by this.
const MACRO_DEPTH: u32 = 32;
/// Most bytes of strings that come of macros.
const COPIED: usize = 1 << 20;

/// A floating-point constant, by its type.
#[derive(Clone, Copy, Debug)]
pub enum Number {
    Float(f32),
    Double(f64),
    Long(Extended),
}

#[derive(Default)]
pub struct Tokens {
    pub list: Vec<Token>,
    pub ints: Vec<(u64, Ty)>,
    pub floats: Vec<Number>,
    pub strings: Vec<Vec<u8>>,
    /// Offset and length of each name's first appearance; keywords are elsewhere.
    names: Vec<(u32, u32)>,
}

impl Tokens {
    pub fn name<'a>(&self, text: &'a [u8], sym: Sym) -> &'a str {
        std::str::from_utf8(self.bytes(text, sym)).unwrap_or("?")
    }

    fn bytes<'a>(&self, text: &'a [u8], sym: Sym) -> &'a [u8] {
        match TEXTS.get(sym as usize) {
            Some(text) => text.as_bytes(),
            None => {
                let (at, len) = self.names[(sym - KEYWORDS) as usize];
                &text[at as usize..(at + len) as usize]
            }
        }
    }

    /// How many names there are, keywords included.
    pub fn syms(&self) -> usize {
        self.names.len() + KEYWORDS as usize
    }
}

struct Macro {
    body: Vec<Token>,
    active: bool,
}

struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    out: Tokens,
    /// Open hashing: a name's number + 1, or 0.
    table: Vec<u32>,
    macros: HashMap<Sym, Macro>,
    notes: &'a mut Notes,
    /// Bytes of strings that macros stood for.
    copied: usize,
    /// Where the tokens of a macro's body go while it is read.
    body: Option<Vec<Token>>,
    /// What constants of `long double` have taken.
    long_work: u64,
}

/// Splits a text into tokens; what cannot be one is noted and left out.
pub fn lex(text: &[u8], notes: &mut Notes) -> Tokens {
    let mut lexer = Lexer {
        text,
        at: 0,
        out: Tokens::default(),
        table: KEYWORD_TABLE.to_vec(),
        macros: HashMap::new(),
        notes,
        copied: 0,
        body: None,
        long_work: 0,
    };
    lexer.out.list.reserve(text.len() / 4);
    lexer.out.names.reserve(32);
    lexer.out.ints.reserve(32);
    lexer.run();
    let end = Token {
        kind: Kind::End,
        at: text.len() as u32,
        len: 1,
    };
    lexer.out.list.push(end);
    lexer.out
}

fn is_name(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_'
}

const fn hash(name: &[u8]) -> u32 {
    let (mut h, mut i) = (0x811C_9DC5_u32, 0);
    while i < name.len() {
        h = (h ^ name[i] as u32).wrapping_mul(0x0100_0193);
        i += 1;
    }
    h ^ h >> 15
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn place(&mut self, name: &[u8], sym: Sym) {
        let mask = self.table.len() - 1;
        let mut slot = hash(name) as usize & mask;
        while self.table[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.table[slot] = sym + 1;
    }

    fn intern(&mut self, from: usize, to: usize) -> Sym {
        let text = self.text;
        let name = &text[from..to];
        let mask = self.table.len() - 1;
        let mut slot = hash(name) as usize & mask;
        while let Some(sym) = self.table[slot].checked_sub(1) {
            if self.out.bytes(text, sym) == name {
                return sym;
            }
            slot = (slot + 1) & mask;
        }
        let sym = self.out.syms() as u32;
        self.out.names.push((from as u32, (to - from) as u32));
        self.table[slot] = sym + 1;
        if self.out.syms() * 2 > self.table.len() {
            self.table = vec![0; self.table.len() * 4];
            for sym in 0..self.out.syms() as u32 {
                let name = self.out.bytes(text, sym);
                self.place(name, sym);
            }
        }
        sym
    }

    fn wrong(&mut self, at: usize, message: impl Into<String>, remedy: Option<&'static str>) {
        let width = (self.at.saturating_sub(at)) as u32;
        self.notes.note(at as u32, width, message.into(), remedy);
    }

    // In its callers, so that tokens are made where they stay.
    #[inline(always)]
    fn push(&mut self, kind: Kind, at: usize) {
        let token = Token {
            kind,
            at: at as u32,
            len: (self.at - at) as u32,
        };
        match &mut self.body {
            Some(body) => body.push(token),
            None => match kind {
                Kind::Name(sym) if !self.macros.is_empty() => self.expand(token, sym, 0),
                _ => self.emit(token),
            },
        }
    }

    #[inline(always)]
    fn emit(&mut self, token: Token) {
        if self.out.list.len() >= TOKENS {
            if !self.notes.full {
                let message = format!("the text has more than {TOKENS} tokens");
                self.notes.last(token.at, message, Some("split it"));
            }
            return;
        }
        if let Kind::Str(more) = token.kind
            && self.appended(more, token.at)
        {
            return;
        }
        self.out.list.push(token);
    }

    /// Strings that stand behind each other are one.
    fn appended(&mut self, more: u32, at: u32) -> bool {
        let Some(&Token {
            kind: Kind::Str(first),
            ..
        }) = self.out.list.last()
        else {
            return false;
        };
        let (first, more) = (first as usize, self.out.strings[more as usize].clone());
        if self.out.strings[first].len() + more.len() > 1 << 20 {
            self.notes.last(at, "a string has more than 1 MiB".into(), None);
        } else {
            self.out.strings[first].extend(more);
        }
        true
    }

    /// Emits a name, or what it was defined as.
    fn expand(&mut self, token: Token, sym: Sym, depth: u32) {
        let Some(found) = self.macros.get_mut(&sym).filter(|m| !m.active) else {
            self.emit(token);
            return;
        };
        if depth >= MACRO_DEPTH || self.notes.full {
            self.notes.last(
                token.at,
                format!("macros stand more than {MACRO_DEPTH} deep in macros"),
                None,
            );
            return;
        }
        found.active = true;
        let body = found.body.clone();
        for inner in &body {
            // Errors are told where the macro is used. A string of its own, since those behind it are added to it.
            let mut kind = inner.kind;
            if let Kind::Str(s) = kind {
                kind = Kind::Str(self.out.strings.len() as u32);
                let copy = self.out.strings[s as usize].clone();
                self.copied += copy.len();
                if self.copied > COPIED {
                    self.notes.last(
                        token.at,
                        format!("macros stand for strings of more than {COPIED} bytes"),
                        None,
                    );
                    return;
                }
                self.out.strings.push(copy);
            }
            let inner = Token { kind, ..token };
            match kind {
                Kind::Name(sym) => self.expand(inner, sym, depth + 1),
                _ => self.emit(inner),
            }
            if self.notes.full {
                break;
            }
        }
        if let Some(m) = self.macros.get_mut(&sym) {
            m.active = false;
        }
    }

    fn run(&mut self) {
        let mut fresh = true;
        while self.at < self.text.len() && !self.notes.full {
            let (at, c) = (self.at, self.peek(0));
            match c {
                b'\n' => {
                    self.at += 1;
                    fresh = true;
                    if self.body.is_some() {
                        return;
                    }
                }
                b' ' | b'\t' | b'\r' | 11 | 12 => self.at += 1,
                b'\\' if self.peek(1) == b'\n' => self.at += 2,
                b'\\' if self.peek(1) == b'\r' && self.peek(2) == b'\n' => self.at += 3,
                b'/' if self.peek(1) == b'/' => {
                    while self.at < self.text.len() && self.peek(0) != b'\n' {
                        self.at += 1;
                    }
                }
                b'/' if self.peek(1) == b'*' => self.comment(),
                b'#' if fresh && self.body.is_none() => self.directive(),
                _ => {
                    fresh = false;
                    self.token(at, c);
                }
            }
        }
    }

    fn comment(&mut self) {
        let at = self.at;
        match self.text[at + 2..].windows(2).position(|w| w == b"*/") {
            Some(len) => self.at += len + 4,
            None => {
                self.at = self.text.len();
                self.notes.note(
                    at as u32,
                    2,
                    "this comment does not end".into(),
                    Some("close it with */"),
                );
            }
        }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(0), b' ' | b'\t') {
            self.at += 1;
        }
    }

    fn word(&mut self) -> Option<(usize, usize)> {
        let from = self.at;
        while is_name(self.peek(0)) {
            self.at += 1;
        }
        (self.at > from && !self.text[from].is_ascii_digit()).then_some((from, self.at))
    }

    fn directive(&mut self) {
        let at = self.at;
        self.at += 1;
        self.blanks();
        let word = self.word().map_or(&b""[..], |(a, b)| &self.text[a..b]);
        self.blanks();
        let name = match word {
            b"define" | b"undef" => self.word(),
            _ => None,
        };
        match (word, name) {
            (b"undef", Some((a, b))) => {
                let sym = self.intern(a, b);
                self.macros.remove(&sym);
            }
            (b"define", Some(_)) if self.peek(0) == b'(' => self.wrong(
                at,
                "macros with parameters are not supported",
                Some("write a static function: it is inlined"),
            ),
            (b"define", Some((a, b))) => {
                let sym = self.intern(a, b);
                self.body = Some(Vec::new());
                self.run();
                let body = self.body.take().unwrap_or_default();
                self.macros.insert(sym, Macro { body, active: false });
                return;
            }
            (b"define" | b"undef", None) => self.wrong(at, "a name is missing here", None),
            _ => self.wrong(
                at,
                "only #define of constants and #undef are supported here",
                Some("run a preprocessor over the text first, or leave the line out: built-in functions are declared by their prototypes"),
            ),
        }
        while self.at < self.text.len() && self.peek(0) != b'\n' {
            self.at += 1;
        }
    }

    fn token(&mut self, at: usize, c: u8) {
        match c {
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b'"' => self.string(),
            b'\'' => self.character(),
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                while is_name(self.peek(0)) {
                    self.at += 1;
                }
                if matches!(self.peek(0), b'"' | b'\'')
                    && matches!(&self.text[at..self.at], b"L" | b"u" | b"U" | b"u8")
                {
                    self.wrong(at, "wide characters and strings are not supported", None);
                    return;
                }
                let sym = self.intern(at, self.at);
                self.push(Kind::Name(sym), at);
            }
            _ => self.punctuator(at, c),
        }
    }

    fn punctuator(&mut self, at: usize, c: u8) {
        let (d, e) = (self.peek(1), self.peek(2));
        let len = match (c, d, e) {
            (b'.', b'.', b'.') | (b'<', b'<', b'=') | (b'>', b'>', b'=') => 3,
            (b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', b'=', _)
            | (b'&', b'&', _)
            | (b'|', b'|', _)
            | (b'<', b'<', _)
            | (b'>', b'>', _)
            | (b'+', b'+', _)
            | (b'-', b'-' | b'>', _) => 2,
            (b'(' | b')' | b'[' | b']' | b'{' | b'}' | b';' | b',' | b':' | b'?' | b'.' | b'~', ..)
            | (b'=' | b'!' | b'<' | b'>' | b'+' | b'-' | b'*' | b'/' | b'%' | b'&' | b'|' | b'^', ..) => 1,
            _ => {
                self.at += 1;
                // The rest of a character of several bytes is part of the same mistake.
                while self.peek(0) & 0xC0 == 0x80 {
                    self.at += 1;
                }
                self.wrong(at, "this character has no meaning here", None);
                return;
            }
        };
        let mut n = 0;
        for &b in &self.text[at..at + len] {
            n = n << 8 | u32::from(b);
        }
        self.at += len;
        self.push(Kind::Punct(n), at);
    }
}
