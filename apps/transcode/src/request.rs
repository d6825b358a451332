//! What a request asks for: functions, a size, a format.

use std::fmt::Write;

use hyper::StatusCode;
use ringfence_functions::Value;

use crate::failure::Failure;

/// Most functions that a picture goes through in one request.
const MOST_STEPS: usize = 16;

/// Most arguments of a function.
const MOST_ARGUMENTS: usize = 16;

/// The quality of pictures that are encoded, if none is given.
const QUALITY: u32 = 80;

/// What pictures are encoded in; the numbers are those of `module/codec.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Jpeg = 1,
    Png,
    Webp,
    Pnm,
}

impl Format {
    const ALL: [(Format, &'static str, &'static str); 4] = [
        (Format::Jpeg, "jpeg", "image/jpeg"),
        (Format::Png, "png", "image/png"),
        (Format::Webp, "webp", "image/webp"),
        (Format::Pnm, "pnm", "image/x-portable-anymap"),
    ];

    pub fn of_number(number: i32) -> Option<Self> {
        Self::ALL.iter().map(|row| row.0).find(|&f| f as i32 == number)
    }

    fn of_name(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    /// By the end of a file's name.
    pub fn of_extension(name: &str) -> Option<Self> {
        match name.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "jpg" => Some(Format::Jpeg),
            "ppm" | "pgm" => Some(Format::Pnm),
            other => Self::of_name(other),
        }
    }

    pub fn media(self) -> &'static str {
        Self::ALL[self as usize - 1].2
    }
}

/// A function, and what it is called with behind the picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Step {
    pub name: String,
    pub arguments: Vec<Value>,
}

/// What is to become of a picture.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Wanted {
    pub through: Vec<Step>,
    /// It is made smaller to fit into these; 0 if it need not.
    pub width: u32,
    pub height: u32,
    /// That in which it came, if none is given.
    pub format: Option<Format>,
    /// Of JPEG and WebP.
    pub quality: Option<u32>,
}

fn bad(message: impl Into<String>) -> Failure {
    Failure::new(StatusCode::BAD_REQUEST, message)
}

fn number(key: &str, text: &str, most: u32) -> Result<u32, Failure> {
    let given = text.parse().ok().filter(|n| (1..=most).contains(n));
    given.ok_or_else(|| bad(format!("{key} has to be a number from 1 to {most}")))
}

impl Wanted {
    /// Reads the part of an address behind the `?`.
    pub fn parse(query: &str) -> Result<Self, Failure> {
        let mut wanted = Wanted {
            through: Vec::new(),
            width: 0,
            height: 0,
            format: None,
            quality: None,
        };
        let mut known = Vec::new();
        for (key, text) in form_urlencoded::parse(query.as_bytes()) {
            if known.contains(&key) {
                return Err(bad(format!("{key} is given twice")));
            }
            match &*key {
                "through" => wanted.through = steps(&text)?,
                "width" => wanted.width = number("width", &text, 65535)?,
                "height" => wanted.height = number("height", &text, 65535)?,
                "quality" => wanted.quality = Some(number("quality", &text, 100)?),
                "format" => {
                    let format = Format::of_name(&text);
                    let format = format.ok_or_else(|| bad("format has to be jpeg, png, webp or pnm"))?;
                    wanted.format = Some(format);
                }
                _ => {
                    let known = "through, width, height, format, quality";
                    return Err(bad(format!("there is no parameter {key:?}; there are {known}")));
                }
            }
            known.push(key);
        }
        Ok(wanted)
    }

    /// Whether the picture has to be decoded at all, when it comes in this format.
    pub fn changes(&self, from: Option<Format>) -> bool {
        !self.through.is_empty()
            || self.width > 0
            || self.height > 0
            || self.quality.is_some()
            || self.format.is_some_and(|to| Some(to) != from)
    }

    /// The quality to encode with, if the format has any.
    pub fn quality(&self) -> u32 {
        self.quality.unwrap_or(QUALITY)
    }

    /// The same text for all requests that ask for the same.
    pub fn canonical(&self) -> String {
        let mut text = format!(
            "{}x{} {:?} {}",
            self.width,
            self.height,
            self.format,
            self.quality()
        );
        for step in &self.through {
            let _ = write!(text, " {}{:?}", step.name, step.arguments);
        }
        text
    }
}

/// Whether a function may have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let mut letters = name.bytes();
    let first = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == b'_');
    first && name.len() <= 64 && letters.all(|c| c.is_ascii_alphanumeric() || c == b'_')
}

/// `grey,crop(10,10,200,100)`.
fn steps(text: &str) -> Result<Vec<Step>, Failure> {
    let mut steps = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        if steps.len() == MOST_STEPS {
            return Err(bad(format!("through takes {MOST_STEPS} functions at most")));
        }
        let end = rest.find([',', '(']).unwrap_or(rest.len());
        let name = rest[..end].trim();
        if !is_name(name) {
            return Err(bad(format!(
                "through has to be names of functions, such as grey or crop(10,10,200,100), with commas between; {name:?} is none"
            )));
        }
        rest = &rest[end..];
        let mut arguments = Vec::new();
        if let Some(inside) = rest.strip_prefix('(') {
            let Some((inside, behind)) = inside.split_once(')') else {
                return Err(bad(format!(
                    "the arguments of {name} have no end: a ) is missing"
                )));
            };
            let none = inside.trim().is_empty();
            for word in inside.split(',').map(str::trim).filter(|_| !none) {
                arguments.push(value(word).ok_or_else(|| bad(format!("{word:?} is no number")))?);
            }
            if arguments.len() > MOST_ARGUMENTS {
                return Err(bad(format!(
                    "a function takes {MOST_ARGUMENTS} arguments at most"
                )));
            }
            rest = behind.trim_start();
        }
        steps.push(Step {
            name: name.to_owned(),
            arguments,
        });
        rest = match rest.strip_prefix(',') {
            Some(more) => more.trim_start(),
            None if rest.is_empty() => rest,
            None => return Err(bad(format!("a comma is missing before {rest:?}"))),
        };
    }
    Ok(steps)
}

fn value(word: &str) -> Option<Value> {
    if let Ok(n) = word.parse() {
        return Some(Value::Int(n));
    }
    word.parse()
        .ok()
        .filter(|x: &f64| x.is_finite())
        .map(Value::Float)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read() {
        let wanted = Wanted::parse("through=crop(1,-2,+30,40.5),%20grey&width=500&format=webp").unwrap();
        let [crop, grey] = &wanted.through[..] else {
            panic!("{wanted:?}")
        };
        assert_eq!((&*crop.name, &*grey.name), ("crop", "grey"));
        let (int, float) = (Value::Int, Value::Float(40.5));
        assert_eq!(crop.arguments, [int(1), int(-2), int(30), float]);
        assert_eq!((wanted.width, wanted.height, wanted.quality()), (500, 0, 80));
        assert_eq!(wanted.format, Some(Format::Webp));
        assert!(wanted.changes(Some(Format::Webp)));
        assert!(!Wanted::parse("format=png").unwrap().changes(Some(Format::Png)));
        assert!(Wanted::parse("format=png").unwrap().changes(Some(Format::Jpeg)));
        assert!(Wanted::parse("quality=30").unwrap().changes(Some(Format::Jpeg)));
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (query, part) in [
            ("width=0", "1 to 65535"),
            ("width=-1", "1 to 65535"),
            ("quality=101", "1 to 100"),
            ("format=gif", "jpeg, png"),
            ("width=50&width=60", "width is given twice"),
            ("with=500", "no parameter \"with\""),
            ("through=crop(1,2", "a ) is missing"),
            ("through=crop(1,x)", "\"x\" is no number"),
            ("through=crop(1,,2)", "\"\" is no number"),
            ("through=crop(1,inf)", "\"inf\" is no number"),
            ("through=a(1)b", "a comma is missing before \"b\""),
            ("through=grey,,grey", "\"\" is none"),
            ("through=a/b", "\"a/b\" is none"),
            (&format!("through={}", "a,".repeat(17)), "16 functions at most"),
            (
                &format!("through=a({})", ["1"; 17].join(",")),
                "16 arguments at most",
            ),
        ] {
            let failure = Wanted::parse(query).expect_err(query);
            assert_eq!(failure.status, StatusCode::BAD_REQUEST);
            assert!(failure.message.contains(part), "{query}: {}", failure.message);
        }
    }

    #[test]
    fn formats_have_the_numbers_of_the_module() {
        for (format, name, _) in Format::ALL {
            assert_eq!(Format::of_number(format as i32), Some(format));
            assert_eq!(Format::of_extension(&format!("x.{name}")), Some(format));
        }
        assert_eq!(Format::of_extension("a.JPG"), Some(Format::Jpeg));
        assert_eq!(Format::of_extension("jpg"), None);
        assert_eq!(Format::of_number(9), None);
    }
}
