//! From text to policies.

use super::{Clause, Copied, Count, Extent, Function, Parameter, ParameterKind, Place, Policy, Step, within};
use ringfence_core::Rights;
use ringfence_debug::structure::{Field, Kind, Structure};
use std::fmt;

/// What is wrong with a policy's text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// How many characters are meant.
    pub width: usize,
    /// The line's text.
    pub text: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line, self.column);
        writeln!(f, "policy, line {line}, column {column}: {}", self.message)?;
        writeln!(f, "  {}", self.text)?;
        write!(f, "  {}{}", " ".repeat(column - 1), "^".repeat(self.width.max(1)))
    }
}

impl std::error::Error for PolicyError {}

/// A token: where it begins, and its text; empty at the end of the line.
#[derive(Clone, Copy, Debug)]
struct Token<'a> {
    at: usize,
    text: &'a str,
}

struct Line<'a> {
    number: usize,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    next: usize,
}

type Parsed<T> = Result<T, PolicyError>;

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Tokens: names and numbers, `->`, and single other characters.
fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let len = match first {
            '#' => break,
            c if c.is_whitespace() => {
                at += c.len_utf8();
                continue;
            }
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                end.unwrap_or(rest.len())
            }
            _ if rest.starts_with("->") => 2,
            c => c.len_utf8(),
        };
        found.push(Token {
            at,
            text: &rest[..len],
        });
        at += len;
    }
    found
}

impl<'a> Line<'a> {
    fn peek(&self) -> Token<'a> {
        let end = Token {
            at: self.text.trim_end().len(),
            text: "",
        };
        self.tokens.get(self.next).copied().unwrap_or(end)
    }

    fn take(&mut self) -> Token<'a> {
        let token = self.peek();
        self.next += 1;
        token
    }

    fn error(&self, token: Token<'_>, message: impl Into<String>) -> PolicyError {
        PolicyError {
            line: self.number,
            column: self.text[..token.at].chars().count() + 1,
            width: token.text.chars().count().max(1),
            text: self.text.trim_end().into(),
            message: message.into(),
        }
    }

    fn is(&mut self, text: &str) -> bool {
        let is = self.peek().text == text;
        self.next += usize::from(is);
        is
    }

    fn expect(&mut self, text: &str, after: &str) -> Parsed<()> {
        let token = self.peek();
        match self.is(text) {
            true => Ok(()),
            false => Err(self.error(token, format!("`{text}` is expected {after}"))),
        }
    }

    fn name(&mut self, what: &str) -> Parsed<Token<'a>> {
        let token = self.take();
        match is_name(token.text) {
            true => Ok(token),
            false => Err(self.error(token, format!("{what} is expected"))),
        }
    }

    fn number(&mut self, what: &str) -> Parsed<u64> {
        let token = self.take();
        let value = match token.text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => token.text.parse(),
        };
        value.map_err(|_| self.error(token, format!("{what} is expected, a number")))
    }
}

impl Policy {
    /// Reads policies. Structures that the text does not declare itself are asked of `known`, by their names: a module's debug
    /// information tells them ([`ringfence_debug::structure::of`]).
    ///
    /// # Errors
    /// The first mistake, with its line, its column and a caret.
    ///
    /// ```
    /// use ringfence_words::policy::Policy;
    /// let text = "struct request 144 { uri @0 char*; cb @16 1[48] }\n\
    ///             handle(req: struct request) reads req->uri as string; writes req->cb[32]; keeps nothing";
    /// let policy = Policy::parse(text, |_| None)?;
    /// assert_eq!(policy.functions().collect::<Vec<_>>(), ["handle"]);
    /// let wrong = Policy::parse("f(n: number) reads m", |_| None).unwrap_err();
    /// assert!(wrong.to_string().ends_with("  f(n: number) reads m\n                     ^"));
    /// # Ok::<(), ringfence_words::policy::PolicyError>(())
    /// ```
    pub fn parse(text: &str, mut known: impl FnMut(&str) -> Option<Structure>) -> Parsed<Policy> {
        let mut policy = Policy::default();
        let lines = || {
            let lines = (1..).zip(text.lines()).map(|(number, text)| Line {
                number,
                text,
                tokens: tokens(text),
                next: 0,
            });
            lines.filter(|l| !l.tokens.is_empty())
        };
        // Structures may be declared behind where they are used.
        for mut line in lines().filter(|l| l.tokens[0].text == "struct") {
            policy.declaration(&mut line)?;
        }
        for mut line in lines().filter(|l| l.tokens[0].text != "struct") {
            policy.function(&mut line, &mut known)?;
        }
        Ok(policy)
    }

    fn declaration(&mut self, line: &mut Line<'_>) -> Parsed<()> {
        line.take();
        let title = line.name("a structure's name")?;
        let size = line.number("the structure's size in bytes")?;
        line.expect("{", "before the fields")?;
        let mut fields: Vec<Field> = Vec::new();
        while !line.is("}") {
            let name = line.name("a field's name, or `}`,")?;
            line.expect("@", "before the field's offset")?;
            let offset = line.number("the field's offset")?;
            let (size_of, element, kind) = field_type(line)?;
            if offset.checked_add(size_of).is_none_or(|end| end > size) {
                let message = format!("`{}` goes beyond the structure's {size} bytes", name.text);
                return Err(line.error(name, message));
            }
            if fields.iter().any(|f| f.name == name.text) {
                return Err(line.error(name, format!("there is a field `{}` already", name.text)));
            }
            fields.push(Field {
                name: name.text.into(),
                offset,
                size: size_of,
                element,
                kind,
            });
            let after = line.peek();
            if !line.is(";") && after.text != "}" {
                return Err(line.error(after, "`;` or `}` is expected behind a field"));
            }
        }
        end(line)?;
        let structure = Structure {
            name: title.text.into(),
            size,
            fields,
        };
        match self.structures.insert(title.text.into(), structure) {
            None => Ok(()),
            Some(_) => Err(line.error(title, format!("struct {} is declared twice", title.text))),
        }
    }

    fn function(
        &mut self,
        line: &mut Line<'_>,
        known: &mut impl FnMut(&str) -> Option<Structure>,
    ) -> Parsed<()> {
        let title = line.name("a function's name")?;
        line.expect("(", "before the parameters")?;
        let mut function = Function {
            parameters: Vec::new(),
            clauses: Vec::new(),
        };
        while !line.is(")") {
            if !function.parameters.is_empty() {
                line.expect(",", "between parameters")?;
            }
            let name = line.name("a parameter's name, or `)`,")?;
            if function.parameters.iter().any(|p| p.name == name.text) {
                return Err(line.error(name, format!("there is a parameter `{}` already", name.text)));
            }
            line.expect(":", "before a parameter's type")?;
            let copied = line.is("copied");
            let kind = line.name("a parameter's type")?;
            let kind_token = kind;
            let kind = match kind.text {
                "number" => ParameterKind::Number,
                "bytes" => ParameterKind::Bytes,
                "text" => ParameterKind::Text,
                "struct" => {
                    let name = line.name("a structure's name")?;
                    self.learn(name.text, known);
                    if !self.structures.contains_key(name.text) {
                        let how = "declare it, or compile the module with -g";
                        return Err(line.error(name, format!("struct {} is not known: {how}", name.text)));
                    }
                    ParameterKind::Structure(name.text.into())
                }
                _ => {
                    let kinds = "`struct NAME`, `text`, `bytes` or `number`";
                    return Err(line.error(kind, format!("a parameter is {kinds}")));
                }
            };
            let copied = match (copied, &kind) {
                (false, _) => None,
                (true, ParameterKind::Structure(name)) => {
                    Some(Copied::Bytes(self.structures.get(name).map_or(0, |s| s.size)))
                }
                (true, ParameterKind::Bytes) => Some(self.copied(line, &function)?),
                (true, _) => {
                    let message = "what is copied is `struct NAME` or `bytes[N]`, N being a number or a parameter before";
                    return Err(line.error(kind_token, message));
                }
            };
            function.parameters.push(Parameter {
                name: name.text.into(),
                kind,
                copied,
            });
        }
        while !line.peek().text.is_empty() {
            self.clause(line, &mut function, known)?;
            let after = line.peek();
            if !line.is(";") && !after.text.is_empty() {
                return Err(line.error(after, "`;` is expected between clauses"));
            }
        }
        match self.functions.insert(title.text.into(), function) {
            None => Ok(()),
            Some(_) => Err(line.error(title, format!("there is a policy for {} already", title.text))),
        }
    }

    /// How many bytes are copied.
    fn copied(&self, line: &mut Line<'_>, function: &Function) -> Parsed<Copied> {
        line.expect("[", "behind `copied bytes`")?;
        let count = line.peek();
        let copied = match is_name(count.text) {
            false => Copied::Bytes(line.number("how many bytes")?),
            true => {
                let name = line.name("a parameter's name")?;
                let number = |p: &Parameter| p.name == name.text && p.kind == ParameterKind::Number;
                let of = function.parameters.iter().position(number);
                let message = format!("`{}` is no number among the parameters before", name.text);
                Copied::Argument(of.ok_or_else(|| line.error(name, message))?)
            }
        };
        line.expect("]", "behind the number of bytes")?;
        Ok(copied)
    }

    /// Takes over a structure, if somebody knows it.
    fn learn(&mut self, name: &str, known: &mut impl FnMut(&str) -> Option<Structure>) {
        if !self.structures.contains_key(name)
            && let Some(structure) = known(name)
        {
            self.structures.insert(name.into(), structure);
        }
    }

    fn clause(
        &mut self,
        line: &mut Line<'_>,
        function: &mut Function,
        known: &mut impl FnMut(&str) -> Option<Structure>,
    ) -> Parsed<()> {
        let verb = line.take();
        let rights = match verb.text {
            "reads" => Rights::Read,
            "writes" => Rights::Write,
            "keeps" if line.is("nothing") => return Ok(()),
            "keeps" => {
                let first = line.peek();
                let place = self.place(line, function, known, false)?;
                let mut kept = function
                    .clauses
                    .iter_mut()
                    .filter(|c| c.place == place)
                    .peekable();
                if kept.peek().is_none() {
                    let message = "what is kept has to be what it reads or writes, by a clause before";
                    return Err(line.error(first, message));
                }
                kept.for_each(|c| c.kept = true);
                return Ok(());
            }
            _ => return Err(line.error(verb, "a clause begins with `reads`, `writes` or `keeps`")),
        };
        let first = line.peek();
        let place = self.place(line, function, known, false)?;
        if place.steps.is_empty() && place.extent == Extent::Field {
            let message = format!(
                "`{0}` itself needs no rights; what it points to is `*{0}`, `{0}->FIELD` or `{0}[N]`",
                first.text
            );
            return Err(line.error(first, message));
        }
        function.clauses.push(Clause {
            rights,
            place,
            kept: false,
        });
        Ok(())
    }

    /// A place, or, with `counts`, one that tells how many elements another one has.
    fn place(
        &mut self,
        line: &mut Line<'_>,
        function: &Function,
        known: &mut impl FnMut(&str) -> Option<Structure>,
        counts: bool,
    ) -> Parsed<Place> {
        let star = line.peek();
        let whole = line.is("*");
        let first = line.name("a parameter's name")?;
        let parameter = function.parameters.iter().position(|p| p.name == first.text);
        let parameter =
            parameter.ok_or_else(|| line.error(first, format!("there is no parameter `{}`", first.text)))?;
        let kind = &function.parameters[parameter].kind;
        let mut inside = match kind {
            ParameterKind::Structure(name) => Some(name.clone()),
            _ => None,
        };
        let mut steps: Vec<Step> = Vec::new();
        let (mut last, mut token): (Option<Field>, _) = (None, first);
        while matches!(line.peek().text, "->" | ".") {
            let arrow = line.take();
            let follows = arrow.text == "->";
            let pointer = last
                .as_ref()
                .is_none_or(|f| matches!(f.kind, Kind::Pointer { .. }));
            if pointer != follows {
                let (is, with) = if pointer {
                    ("a pointer", "->")
                } else {
                    ("no pointer", ".")
                };
                let message = format!("`{}` is {is}: `{with}` leads to its fields", token.text);
                return Err(line.error(arrow, message));
            }
            let name = line.name("a field's name")?;
            let Some(title) = inside else {
                return Err(line.error(token, format!("`{}` has no fields that are known", token.text)));
            };
            self.learn(&title, known);
            let structure = self.structures.get(&title);
            let Some(structure) = structure else {
                let message =
                    format!("struct {title} is not known: declare it, or compile the module with -g");
                return Err(line.error(token, message));
            };
            let Some(field) = structure.fields.iter().find(|f| f.name == name.text) else {
                let names = structure
                    .fields
                    .iter()
                    .map(|f| f.name.as_str())
                    .collect::<Vec<_>>();
                let message = format!(
                    "there is no `{}` in struct {title}; there are {}",
                    name.text,
                    names.join(", ")
                );
                return Err(line.error(name, message));
            };
            inside = within(field);
            last = Some(field.clone());
            token = name;
            steps.push(Step {
                follows,
                field: name.text.into(),
            });
        }
        let pointer = match &last {
            Some(f) => matches!(f.kind, Kind::Pointer { .. }),
            None => !matches!(kind, ParameterKind::Number),
        };
        let extent = if whole {
            match inside.filter(|_| pointer) {
                Some(title) => {
                    self.learn(&title, known);
                    if !self.structures.contains_key(&title) {
                        return Err(line.error(token, format!("struct {title} is not known")));
                    }
                    Extent::Target
                }
                None => return Err(line.error(star, "`*` stands before a pointer to a structure")),
            }
        } else if line.is("[") {
            let array = last.as_ref().is_some_and(|f| f.size != f.element);
            if !pointer && !array {
                return Err(line.error(
                    token,
                    format!("`{}` is neither an array nor a pointer", token.text),
                ));
            }
            let count = line.peek();
            let count = match is_name(count.text) {
                true if counts => {
                    return Err(line.error(count, "a number of elements is a parameter or a field"));
                }
                true => Count::Place(Box::new(self.place(line, function, known, true)?)),
                false => Count::Number(line.number("how many elements")?),
            };
            if let Count::Place(place) = &count
                && place.extent != Extent::Field
            {
                return Err(line.error(token, "a number of elements is a parameter or a field"));
            }
            if let (Count::Number(n), Some(f), false) = (&count, &last, pointer)
                && *n > f.size / f.element.max(1)
            {
                let message = format!("`{}` has {} elements", token.text, f.size / f.element.max(1));
                return Err(line.error(token, message));
            }
            line.expect("]", "behind the number of elements")?;
            Extent::Elements(count)
        } else if line.is("as") {
            line.expect("string", "behind `as`")?;
            if !pointer && last.as_ref().is_none_or(|f| f.element != 1) {
                return Err(line.error(token, format!("`{}` is no string", token.text)));
            }
            Extent::Text
        } else {
            Extent::Field
        };
        Ok(Place {
            parameter,
            steps,
            extent,
        })
    }
}

fn end(line: &Line<'_>) -> Parsed<()> {
    let token = line.peek();
    match token.text.is_empty() {
        true => Ok(()),
        false => Err(line.error(token, "nothing more is expected in this line")),
    }
}

/// A field's bytes, those of an element, and what it is: `8`, `1[48]`, `char*`, `void*`, `4*`, `struct NAME`, `struct NAME*`.
fn field_type(line: &mut Line<'_>) -> Parsed<(u64, u64, Kind)> {
    let pointer = |size, structure, text| Kind::Pointer {
        size,
        structure,
        text,
    };
    let token = line.peek();
    let (size, kind) = match token.text {
        "char" | "void" => {
            line.take();
            line.expect(
                "*",
                "behind `char` and `void`: other fields are told by their size",
            )?;
            let text = token.text == "char";
            (8, pointer(u64::from(text), None, text))
        }
        "struct" => {
            line.take();
            let name = line.name("a structure's name")?.text.to_string();
            match line.is("*") {
                true => (8, pointer(0, Some(name), false)),
                false => (line.number("the bytes of the structure")?, Kind::Structure(name)),
            }
        }
        _ => {
            let size = line.number("a field's type")?;
            match line.is("*") {
                true => (8, pointer(size, None, false)),
                false => (size, Kind::Plain),
            }
        }
    };
    if !line.is("[") {
        return Ok((size, size, kind));
    }
    let count = line.number("how many elements")?;
    line.expect("]", "behind the number of elements")?;
    Ok((size.saturating_mul(count), size, kind))
}
