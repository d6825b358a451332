//! What a preprocessed header declares, by name: functions with the names of their parameters, data, constants.
//!
//! Types are the compiler's to know (`types`); here only names are read, so what is not understood costs a name.

use std::collections::BTreeMap;

/// A piece of C.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    Number(String),
    /// A string or character constant, with its quotes.
    Quoted(String),
    Sign(char),
}

impl Token {
    pub(crate) fn is(&self, sign: char) -> bool {
        *self == Token::Sign(sign)
    }

    fn word(&self) -> Option<&str> {
        match self {
            Token::Word(word) => Some(word),
            _ => None,
        }
    }
}

/// Splits `text` into tokens.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80;
    while at < bytes.len() {
        let begin = at;
        let b = bytes[at];
        at += 1;
        if b.is_ascii_whitespace() {
            continue;
        }
        let piece = |at: usize| String::from_utf8_lossy(&bytes[begin..at]).into_owned();
        if b == b'"' || b == b'\'' {
            while at < bytes.len() && bytes[at] != b {
                at += 1 + usize::from(bytes[at] == b'\\');
            }
            at = (at + 1).min(bytes.len());
            found.push(Token::Quoted(piece(at)));
        } else if word(b) {
            while at < bytes.len() && (word(bytes[at]) || (b.is_ascii_digit() && bytes[at] == b'.')) {
                at += 1;
            }
            let text = piece(at);
            found.push(if b.is_ascii_digit() {
                Token::Number(text)
            } else {
                Token::Word(text)
            });
        } else {
            found.push(Token::Sign(char::from(b)));
        }
    }
    found
}

/// A function of the header.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Declared {
    pub name: String,
    /// Names of its parameters, where they have any.
    pub parameters: Vec<Option<String>>,
}

/// All that was found.
#[derive(Debug, Default)]
pub(crate) struct Scanned {
    pub functions: Vec<Declared>,
    /// Variables.
    pub data: Vec<String>,
    /// Macros without parameters of the header, in order.
    pub constants: Vec<String>,
    /// The text behind every macro without parameters, of all headers.
    pub macros: BTreeMap<String, String>,
}

/// Reads what `gcc -E -dD` has printed. `ours` tells which files the library's declarations are in.
pub(crate) fn scan(text: &str, ours: impl Fn(&str) -> bool) -> Scanned {
    let mut scanned = Scanned::default();
    let mut inside = false;
    let mut code = String::new();
    for line in text.lines() {
        let Some(directive) = line.strip_prefix('#') else {
            if inside {
                code.push_str(line);
                code.push('\n');
            }
            continue;
        };
        let directive = directive.trim_start();
        if let Some(define) = directive.strip_prefix("define ") {
            let end = define.find([' ', '(']).unwrap_or(define.len());
            let (name, body) = define.split_at(end);
            if !body.starts_with('(') {
                scanned.macros.insert(name.to_owned(), body.trim().to_owned());
                if inside {
                    scanned.constants.push(name.to_owned());
                }
            }
        } else if let Some(name) = directive.strip_prefix("undef ") {
            scanned.macros.remove(name.trim());
        } else if directive.starts_with(|c: char| c.is_ascii_digit()) {
            let file = directive.split('"').nth(1).unwrap_or_default();
            inside = ours(file);
        }
    }
    let code = tokens(&code);
    let mut at = 0;
    while at < code.len() {
        let end = declaration(&code, at);
        read(&code[at..end], &mut scanned);
        at = end.max(at + 1);
    }
    let mut seen = std::collections::BTreeSet::new();
    scanned.functions.retain(|f| seen.insert(f.name.clone()));
    scanned
}

/// Where the declaration that begins at `at` ends: behind its semicolon, or the braces of a function.
fn declaration(code: &[Token], at: usize) -> usize {
    let (mut depth, mut called) = (0usize, false);
    for (i, token) in code.iter().enumerate().skip(at) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']') => {
                depth = depth.saturating_sub(1);
                called |= depth == 0;
            }
            Token::Sign('}') => {
                depth = depth.saturating_sub(1);
                // A function's body.
                if depth == 0 && called {
                    return i + 1;
                }
            }
            Token::Sign(';') if depth == 0 => return i + 1,
            _ => {}
        }
    }
    code.len()
}

/// The end of the brackets that open at `at`.
fn closing(code: &[Token], at: usize) -> usize {
    let mut depth = 0usize;
    for (i, token) in code.iter().enumerate().skip(at) {
        match token {
            Token::Sign('(' | '[' | '{') => depth += 1,
            Token::Sign(')' | ']' | '}') => {
                depth -= 1;
                if depth == 0 {
                    return i;
                }
            }
            _ => {}
        }
    }
    code.len()
}

/// Words with brackets behind them that are no function's name.
const ATTRIBUTES: [&str; 8] = [
    "__attribute__",
    "__attribute",
    "__declspec",
    "__asm__",
    "asm",
    "__asm",
    "_Static_assert",
    "__typeof__",
];

fn read(code: &[Token], scanned: &mut Scanned) {
    let first = code.first().and_then(Token::word).unwrap_or_default();
    if first == "typedef" || first == "_Static_assert" || code.iter().any(|t| t.word() == Some("static")) {
        return;
    }
    let external = code.iter().any(|t| t.word() == Some("extern"));
    let mut at = 0;
    let mut last = None;
    while at < code.len() {
        match &code[at] {
            Token::Word(word) if code.get(at + 1).is_some_and(|t| t.is('(')) => {
                let end = closing(code, at + 1);
                if ATTRIBUTES.contains(&word.as_str()) {
                    at = end + 1;
                    continue;
                }
                // `int (f)(int)` and functions that return functions are left to nobody: names are all that is read here.
                scanned.functions.push(Declared {
                    name: word.clone(),
                    parameters: parameters(&code[at + 2..end.min(code.len())]),
                });
                return;
            }
            Token::Sign('{') => {
                at = closing(code, at) + 1;
                last = None;
                continue;
            }
            Token::Sign('(') => return,
            Token::Word(word) => last = Some(word.clone()),
            Token::Sign('=' | '[' | ';') => break,
            _ => {}
        }
        at += 1;
    }
    if let Some(name) = last.filter(|_| external) {
        scanned.data.push(name);
    }
}

/// Words that end a type, and are no parameter's name.
const TYPES: [&str; 14] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "const",
    "volatile",
    "restrict",
    "__restrict",
];

fn parameters(code: &[Token]) -> Vec<Option<String>> {
    let (mut found, mut begin, mut at) = (Vec::new(), 0, 0);
    while at <= code.len() {
        match code.get(at) {
            Some(Token::Sign('(' | '[' | '{')) => at = closing(code, at),
            None | Some(Token::Sign(',')) => {
                found.push(parameter(&code[begin..at]));
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if found.len() == 1 && code.len() < 2 && code.first().is_none_or(|t| t.word() == Some("void")) {
        found.clear();
    }
    found
}

fn parameter(code: &[Token]) -> Option<String> {
    // `int (*name)(void)`
    for (i, token) in code.iter().enumerate() {
        if token.is('(') && code.get(i + 1).is_some_and(|t| t.is('*')) {
            return match code.get(i + 2) {
                Some(Token::Word(name)) if !TYPES.contains(&name.as_str()) => Some(name.clone()),
                _ => None,
            };
        }
    }
    let end = code.iter().position(|t| t.is('[')).unwrap_or(code.len());
    let code = &code[..end];
    let name = code.last()?.word()?;
    let alone = code.iter().filter(|t| t.word().is_some()).count() < 2;
    let tag = code.len() > 1 && matches!(code[code.len() - 2].word(), Some("struct" | "union" | "enum"));
    (!alone && !tag && !TYPES.contains(&name)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<(String, Vec<Option<String>>)> {
        let text = format!("# 1 \"a.h\"\n{text}");
        let found = scan(&text, |f| f == "a.h").functions;
        found.into_iter().map(|f| (f.name, f.parameters)).collect()
    }

    fn one(text: &str) -> (String, Vec<String>) {
        let mut found = names(text);
        assert_eq!(found.len(), 1, "{found:?}");
        let (name, parameters) = found.remove(0);
        (
            name,
            parameters.into_iter().map(|p| p.unwrap_or_default()).collect(),
        )
    }

    #[test]
    fn declarations_give_names() {
        assert_eq!(one("int f(void);"), ("f".into(), vec![]));
        assert_eq!(one("extern int f();"), ("f".into(), vec![]));
        assert_eq!(
            one("const char *f(struct s *a, unsigned int, int b[], int (*c)(int, void *), long);").1,
            ["a", "", "b", "c", ""]
        );
        assert_eq!(
            one("extern int f(sqlite3*, void(*)(void*)) __attribute__((nonnull(1)));").1,
            ["", ""]
        );
        assert_eq!(
            one("typedef int (*t)(int); struct s { int (*f)(int); }; void g(t);").0,
            "g"
        );
        assert_eq!(
            one("struct s { int x; } *h(int y);"),
            ("h".into(), vec!["y".into()])
        );
        assert!(names("static inline int f(int x) { return g(x); }").is_empty());
        assert_eq!(
            names("static int f(int x) { return x; } int g(int); int h(int);").len(),
            2
        );
    }

    #[test]
    fn only_files_of_the_library_count() {
        let text = "# 1 \"b.h\"\n#define B 1\nint b(void);\n# 1 \"a.h\"\n#define A (B + 1)\n#define F(x) x\nextern const int v[];\nint a(int);\n";
        let found = scan(text, |f| f == "a.h");
        assert_eq!(found.functions.len(), 1);
        assert_eq!(found.data, ["v"]);
        assert_eq!(found.constants, ["A"]);
        assert_eq!(found.macros.len(), 2);
    }

    #[test]
    fn nonsense_ends() {
        for text in [
            "((((",
            "int f(",
            "}}};;",
            "int f(int {",
            "\"abc",
            "a(b(c",
            "x = {",
        ] {
            let _ = names(text);
        }
    }
}
