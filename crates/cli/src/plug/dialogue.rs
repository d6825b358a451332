//! The dialogue: definitions and calls, line by line.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use ringfence::CallError;
use ringfence_functions::{FunctionError, Value};
use rustyline::error::ReadlineError;

use super::{Came, Given, Plug, number, show};
use crate::output;

const HELP: &str = "\
long twice(long n) { return 2 * n; }   define a function, or replace the one of that name
twice(21)                              call it; strings in quotes are passed by address
list                                   all functions and their types
delete twice                           delete one
reset                                  make all data as they were at first
help, quit

A definition may take several lines, and ends where its braces close or at an empty line. What
another definition has brought is declared before it is called: long twice(long);
Built in: malloc, free, void print(const char *), void print_long(long), void print_double(double).";

/// Where lines come from.
enum Lines {
    /// A person, with a prompt and a history.
    Terminal(Box<rustyline::DefaultEditor>, Option<PathBuf>),
    /// A file or a program.
    Plain(io::StdinLock<'static>),
}

impl Lines {
    fn new() -> Lines {
        if io::stdin().is_terminal()
            && let Ok(mut editor) = rustyline::DefaultEditor::new()
        {
            let history = history();
            if let Some(file) = &history {
                // There is none at first.
                let _ = editor.load_history(file);
            }
            return Lines::Terminal(Box::new(editor), history);
        }
        Lines::Plain(io::stdin().lock())
    }

    /// The next line; `None` at the end. `more` says that it continues what came before.
    fn next(&mut self, more: bool) -> Option<String> {
        match self {
            Lines::Terminal(editor, _) => loop {
                match editor.readline(if more { "... " } else { "> " }) {
                    Ok(line) => {
                        let _ = editor.add_history_entry(&line);
                        return Some(line);
                    }
                    // A line that is given up; what came before it, too.
                    Err(ReadlineError::Interrupted) if more => return Some(String::new()),
                    Err(ReadlineError::Interrupted) => {}
                    Err(_) => return None,
                }
            },
            Lines::Plain(stdin) => {
                let mut line = Vec::new();
                let read = stdin.read_until(b'\n', &mut line).ok()?;
                (read > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
            }
        }
    }

    fn end(self) {
        if let Lines::Terminal(mut editor, Some(file)) = self
            && file.parent().is_some_and(|d| std::fs::create_dir_all(d).is_ok())
        {
            let _ = editor.save_history(&file);
        }
    }
}

/// Where the history is kept, by the rules of freedesktop.org.
fn history() -> Option<PathBuf> {
    let state = match std::env::var_os("XDG_STATE_HOME") {
        Some(state) if !state.is_empty() => PathBuf::from(state),
        _ => PathBuf::from(std::env::var_os("HOME")?).join(".local/state"),
    };
    Some(state.join("ringfence/plug-history"))
}

/// Runs the dialogue. Fails if something in it did and nobody was there to see it.
pub(super) fn run(plug: &Plug) -> ExitCode {
    let mut lines = Lines::new();
    let person = matches!(lines, Lines::Terminal(..));
    let mut failed = false;
    while let Some(text) = read(&mut lines) {
        match one(plug, text.trim()) {
            Ok(true) => {}
            Ok(false) => break,
            Err(()) => failed = true,
        }
    }
    lines.end();
    match failed && !person {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    }
}

/// Lines that belong together.
fn read(lines: &mut Lines) -> Option<String> {
    let mut text = lines.next(false)?;
    let mut state = Progress::default();
    state.line(&text);
    while !state.is_complete(&text) {
        let Some(line) = lines.next(true) else { break };
        if line.trim().is_empty() {
            break;
        }
        state.line(&line);
        text.push('\n');
        text.push_str(&line);
        if text.len() > 1 << 20 {
            break; // the compiler says so
        }
    }
    Some(text)
}

/// What is open in the lines so far.
#[derive(Default)]
struct Progress {
    depth: i64,
    braces: bool,
    /// The last line ends in the middle of a string.
    torn: bool,
}

impl Progress {
    fn line(&mut self, line: &str) {
        let (mut quote, mut escaped) = (None, false);
        for c in line.chars() {
            match quote {
                Some(_) if escaped => escaped = false,
                Some(_) if c == '\\' => escaped = true,
                Some(q) if c == q => quote = None,
                Some(_) => {}
                None => match c {
                    '"' | '\'' => quote = Some(c),
                    '{' | '(' | '[' => {
                        self.depth += 1;
                        self.braces |= c == '{';
                    }
                    '}' | ')' | ']' => self.depth -= 1,
                    _ => {}
                },
            }
        }
        self.torn = quote.is_some();
    }

    /// Whether nothing more is needed: a command or a call is one line, a definition ends with its brace.
    fn is_complete(&self, text: &str) -> bool {
        match self.braces {
            true => self.depth <= 0 && text.trim_end().ends_with('}'),
            // What is torn in a call is a mistake.
            false => self.torn || self.depth <= 0 && !is_declaration(text),
        }
    }
}

/// Whether a line without braces is the beginning of a definition, not a command or a call.
fn is_declaration(text: &str) -> bool {
    let text = text.trim_start();
    let word = text.split(|c: char| !c.is_alphanumeric() && c != '_').next();
    let rest = text[word.map_or(0, str::len)..].trim_start();
    let command = matches!(
        word,
        Some("delete" | "list" | "reset" | "help" | "quit" | "exit" | "")
    );
    let named = text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let begun = word.is_some_and(|word| KEYWORDS.contains(&word)) || rest.contains(['(', '*', '=', ';']);
    text.starts_with('#') || named && begun && !command && !rest.is_empty() && !rest.starts_with('(')
}

/// What a definition may begin with, besides a type that has got a name.
const KEYWORDS: [&str; 20] = [
    "_Bool", "bool", "char", "const", "double", "enum", "extern", "float", "inline", "int", "long",
    "register", "short", "signed", "static", "struct", "typedef", "union", "unsigned", "void",
];

/// Does one thing; whether to go on.
fn one(plug: &Plug, text: &str) -> Result<bool, ()> {
    let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let done = match (word, rest.trim()) {
        ("", _) => Ok(()),
        ("quit" | "exit", "") => return Ok(false),
        ("help", _) => {
            output::out(HELP);
            Ok(())
        }
        ("list", "") => {
            list(plug);
            Ok(())
        }
        ("reset", "") => plug.runtime.reset(),
        ("delete", name) if !name.is_empty() && !name.contains('(') => plug.runtime.delete(name),
        _ if !text.contains('{') && !is_declaration(text) => return call(plug, text).map(|()| true),
        _ => plug.bring(text).map(|(func, came)| {
            let verb = match came {
                Came::Created => "created",
                Came::Replaced => "replaced",
            };
            output::out(format_args!("{verb} {}: {}", func.name(), func.prototype()));
        }),
    };
    done.map(|()| true).map_err(|e| tell(&e))
}

fn list(plug: &Plug) {
    for name in plug.runtime.names() {
        if let Ok(func) = plug.runtime.lookup(&name) {
            output::out(format_args!("{name}: {}", func.prototype()));
        }
    }
}

fn tell(error: &FunctionError) {
    match error {
        FunctionError::Text(errors) => show(errors, ""),
        error => output::error(error),
    }
}

fn call(plug: &Plug, text: &str) -> Result<(), ()> {
    let (name, arguments) = match parse(text) {
        Ok(call) => call,
        Err(why) => {
            output::error(format_args!("{why}; try help"));
            return Err(());
        }
    };
    let given: Vec<Given<'_>> = arguments.iter().map(Argument::given).collect();
    let called = plug
        .runtime
        .lookup(name)
        .and_then(|func| plug.call(&func, &given));
    match called {
        Ok(Value::Void) => Ok(()),
        Ok(value) => {
            output::out(value);
            Ok(())
        }
        Err(e) => {
            tell(&e);
            if plug.runtime.domain().faulted() {
                match plug.runtime.reset() {
                    Ok(()) => output::line("the data of all functions are as they were at first again"),
                    Err(e) => output::error(e),
                }
            }
            // Nothing more to be said of a function that asked to end.
            match e {
                FunctionError::Call(CallError::Exit(_)) => Ok(()),
                _ => Err(()),
            }
        }
    }
}

/// An argument of a call that was typed in.
#[derive(Debug, PartialEq)]
enum Argument {
    Number(Value),
    String(String),
}

impl Argument {
    fn given(&self) -> Given<'_> {
        match self {
            Argument::Number(value) => Given::Value(*value),
            Argument::String(text) => Given::String(text),
        }
    }
}

/// `name(1, -2.5, "text", 'c')`.
fn parse(text: &str) -> Result<(&str, Vec<Argument>), String> {
    let text = text.trim_end_matches(';').trim_end();
    let (name, rest) = text.split_once('(').ok_or("this is no call")?;
    let mut rest = rest
        .strip_suffix(')')
        .ok_or("the call has no closing parenthesis")?
        .trim();
    let mut arguments = Vec::new();
    while !rest.is_empty() {
        let (argument, after) = match rest.chars().next() {
            Some('"') => {
                let (string, after) = quoted(rest, '"')?;
                (Argument::String(string), after)
            }
            Some('\'') => {
                let (string, after) = quoted(rest, '\'')?;
                let mut chars = string.chars();
                let (Some(c), None) = (chars.next(), chars.next()) else {
                    return Err("one character belongs between these quotes".into());
                };
                (Argument::Number(Value::Unsigned(u64::from(u32::from(c)))), after)
            }
            _ => {
                let end = rest.find(',').unwrap_or(rest.len());
                let word = rest[..end].trim();
                let value = number(word).ok_or_else(|| format!("{word} is no number and no string"))?;
                (Argument::Number(value), &rest[end..])
            }
        };
        arguments.push(argument);
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(more) if !more.trim().is_empty() => more.trim_start(),
            None if after.is_empty() => "",
            _ => return Err("an argument is missing, or a comma".into()),
        };
    }
    Ok((name.trim(), arguments))
}

/// What stands in quotes, and what comes behind them.
fn quoted(text: &str, quote: char) -> Result<(String, &str), String> {
    let mut string = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        match c {
            c if c == quote => return Ok((string, &text[at + 1..])),
            '\\' => match chars.next().map(|(_, c)| c) {
                Some('n') => string.push('\n'),
                Some('t') => string.push('\t'),
                Some(c @ ('\\' | '"' | '\'')) => string.push(c),
                _ => return Err(r#"behind a backslash n, t, \, " or ' belongs"#.into()),
            },
            c => string.push(c),
        }
    }
    Err("the quotes do not close".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_complete(text: &str) -> bool {
        let mut state = Progress::default();
        text.lines().for_each(|line| state.line(line));
        state.is_complete(text)
    }

    #[test]
    fn definitions_go_on_until_they_are_complete() {
        for text in [
            "f(1)",
            "",
            "help",
            "delete f",
            "long f(void) { return 1; }",
            "f(\"{\")",
            "f(\"",
            "nonsense",
            "1 + 1",
            "-3",
            "delete",
        ] {
            assert!(is_complete(text), "{text}");
        }
        for text in [
            "long f(void) {",
            "long g(long);",
            "typedef int t;",
            "#define N 3",
            "long f(",
            "struct p { int a; };",
        ] {
            assert!(!is_complete(text), "{text}");
        }
        assert!(is_complete("long g(long);\nlong f(long n) { return g(n); }"));
    }

    #[test]
    fn calls_are_read() {
        let unsigned = |n| Argument::Number(Value::Unsigned(n));
        let all = vec![
            unsigned(1),
            Argument::Number(Value::Float(-2.5)),
            Argument::String("a, \"b\"\n)".into()),
            unsigned(99),
        ];
        assert_eq!(parse(r#"f(1, -2.5 ,"a, \"b\"\n)", 'c');"#), Ok(("f", all)));
        assert_eq!(parse("f()"), Ok(("f", Vec::new())));
        for wrong in [
            "f",
            "f(",
            "f(1",
            "f(1,)",
            "f(,1)",
            "f(x)",
            "f(\"a)",
            "f('ab')",
            "f(\"a\" 1)",
            r#"f("\q")"#,
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
