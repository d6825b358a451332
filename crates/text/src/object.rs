//! Object code: what came of a text as bytes, to be kept or sent and linked somewhere else.
//!
//! Who reads it trusts it no more than a text. Everything that linking relies on is checked here; whether the code may run, the
//! verifier judges as ever.

use std::collections::HashSet;
use std::fmt;

use crate::compiled::{Compiled, DataFix, Export, Import, Kind, Source, Target};
use crate::parse::{DATA, PARAMS};
use crate::{CODE, TEXT};

/// The first bytes of object code; the last of them is the format's version.
const MAGIC: &[u8; 8] = b"\x7frf-fn\x00\x01";

/// Most functions that are defined, and most that are called: more than any text has.
const FUNCTIONS: usize = 100_000;

/// Why bytes are no object code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoObject {
    /// Where.
    pub at: usize,
    /// What is wrong there.
    pub what: &'static str,
}

impl fmt::Display for NoObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "this is no object code of a function: {} at byte {}; make it anew from its text",
            self.what, self.at
        )
    }
}

impl std::error::Error for NoObject {}

/// What is written.
struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, n: usize) {
        self.0.extend((n as u32).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.extend(bytes);
    }

    fn kind(&mut self, kind: Kind) {
        self.0.push(match kind {
            Kind::Void => 0,
            Kind::Pointer => 1,
            Kind::Record => 2,
            Kind::Bool => 3,
            Kind::Float(size) => 0x20 | size,
            Kind::Int(size, signed) => 0x40 | u8::from(signed) << 7 | size,
        });
    }

    fn function(&mut self, name: &str, params: &[Kind], result: Kind) {
        self.bytes(name.as_bytes());
        self.kind(result);
        self.number(params.len());
        params.iter().for_each(|&kind| self.kind(kind));
    }
}

/// What is read, and where it is.
struct Reader<'a> {
    all: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn wrong<T>(&self, what: &'static str) -> Result<T, NoObject> {
        Err(NoObject { at: self.at, what })
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], NoObject> {
        match self.all.get(self.at..).and_then(|rest| rest.get(..len)) {
            Some(bytes) => {
                self.at += len;
                Ok(bytes)
            }
            None => self.wrong("it ends too early"),
        }
    }

    fn byte(&mut self) -> Result<u8, NoObject> {
        Ok(self.take(1)?[0])
    }

    fn number(&mut self) -> Result<u32, NoObject> {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.take(4)?);
        Ok(u32::from_le_bytes(bytes))
    }

    /// A number of at most `most`.
    fn at_most(&mut self, most: usize, what: &'static str) -> Result<u32, NoObject> {
        match self.number()? {
            n if n as usize <= most => Ok(n),
            _ => self.wrong(what),
        }
    }

    /// How many functions follow.
    fn functions(&mut self, size: usize) -> Result<usize, NoObject> {
        match self.count(size)? {
            count if count <= FUNCTIONS => Ok(count),
            _ => self.wrong("too many functions"),
        }
    }

    /// How many things follow, each of which has so many bytes at least: more than there are bytes is nothing to make room for.
    fn count(&mut self, size: usize) -> Result<usize, NoObject> {
        let count = self.number()? as usize;
        match count.checked_mul(size) {
            Some(bytes) if bytes <= self.all.len() - self.at => Ok(count),
            _ => self.wrong("there are fewer things than it says"),
        }
    }

    fn bytes(&mut self, most: usize) -> Result<&'a [u8], NoObject> {
        let len = self.at_most(most, "something is too long")?;
        self.take(len as usize)
    }

    fn kind(&mut self) -> Result<Kind, NoObject> {
        Ok(match self.byte()? {
            0 => Kind::Void,
            1 => Kind::Pointer,
            2 => Kind::Record,
            3 => Kind::Bool,
            b @ (0x24 | 0x28 | 0x30) => Kind::Float(b & 31),
            b if b & 0x60 == 0x40 && matches!(b & 31, 1 | 2 | 4 | 8) => Kind::Int(b & 31, b & 0x80 != 0),
            _ => return self.wrong("an unknown type"),
        })
    }

    /// A name, a result and parameters.
    fn function(&mut self) -> Result<(String, Kind, Vec<Kind>), NoObject> {
        let name = self.bytes(TEXT)?;
        let word = |c: &u8| c.is_ascii_alphanumeric() || *c == b'_';
        let name = match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() && name.bytes().all(|c| word(&c)) => name.to_owned(),
            _ => return self.wrong("a name that is none"),
        };
        let result = self.kind()?;
        let count = self.count(1)?;
        if count > PARAMS {
            return self.wrong("too many parameters");
        }
        let params = (0..count)
            .map(|_| match self.kind()? {
                Kind::Void => self.wrong("a parameter without a type"),
                kind => Ok(kind),
            })
            .collect::<Result<_, _>>()?;
        Ok((name, result, params))
    }
}

impl Compiled {
    /// It as object code, for [`Compiled::from_object`].
    #[must_use]
    pub fn object(&self) -> Vec<u8> {
        let mut out = Writer(MAGIC.to_vec());
        out.bytes(&self.code);
        out.number(self.data.len());
        // Zeroes at the end go without saying.
        let filled = self.data.iter().rposition(|&b| b != 0).map_or(0, |last| last + 1);
        out.bytes(&self.data[..filled]);
        out.number(self.exports.len());
        for export in &self.exports {
            out.number(export.offset as usize);
            out.function(&export.name, &export.params, export.result);
        }
        out.number(self.imports.len());
        for import in &self.imports {
            out.0.push(u8::from(import.variadic));
            out.function(&import.name, &import.params, import.result);
        }
        out.number(self.code_data.len());
        self.code_data.iter().for_each(|&at| out.number(at as usize));
        for pairs in [&self.code_imports, &self.source.places, &self.source.functions] {
            out.number(pairs.len());
            for &(a, b) in pairs {
                out.number(a as usize);
                out.number(b as usize);
            }
        }
        out.number(self.data_fixes.len());
        for fix in &self.data_fixes {
            out.number(fix.at as usize);
            let (to, number) = match fix.to {
                Target::Data => (0, 0),
                Target::Code => (1, 0),
                Target::Import(number) => (2, number),
            };
            out.0.push(to);
            out.number(number as usize);
            out.0.extend(fix.offset.to_le_bytes());
        }
        out.bytes(&self.source.text);
        out.0
    }

    /// Whether these bytes begin as object code does.
    #[must_use]
    pub fn is_object(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC[..7])
    }

    /// Reads object code, which may come from anybody.
    ///
    /// # Errors
    /// [`NoObject`]: it is cut, damaged, of another version, or not what [`Compiled::object`] made.
    ///
    /// # Examples
    /// ```
    /// use ringfence_text::{Compiled, compile};
    /// let compiled = compile("long twice(long n) { return 2 * n; }").unwrap();
    /// assert_eq!(Compiled::from_object(&compiled.object()), Ok(compiled));
    /// assert!(Compiled::from_object(b"long twice").is_err());
    /// ```
    pub fn from_object(bytes: &[u8]) -> Result<Compiled, NoObject> {
        let mut read = Reader { all: bytes, at: 0 };
        if read.take(MAGIC.len()).ok() != Some(MAGIC) {
            read.at = 0;
            return read.wrong("its beginning, or its version, is another");
        }
        let code = read.bytes(CODE)?.to_vec();
        let data_len = read.at_most(DATA as usize, "too many data")? as usize;
        let mut data = read.bytes(data_len)?.to_vec();
        data.resize(data_len, 0);
        let exports = exports(&mut read, code.len())?;
        let imports = (0..read.functions(10)?)
            .map(|_| {
                let variadic = match read.byte()? {
                    0 => false,
                    1 => true,
                    _ => return read.wrong("neither with nor without further arguments"),
                };
                let (name, result, params) = read.function()?;
                Ok(Import {
                    name,
                    params,
                    result,
                    variadic,
                })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let code_data = (0..read.count(4)?)
            .map(|_| field(&mut read, code.len(), 4))
            .collect::<Result<_, _>>()?;
        let code_imports = pairs(&mut read, |read, at, number| {
            within(read, at, code.len(), 4)?;
            import(read, number, &imports)
        })?;
        let mut last = 0;
        let places = pairs(&mut read, |read, at, _| {
            let ascending = at >= std::mem::replace(&mut last, at);
            if ascending {
                Ok(())
            } else {
                read.wrong("places without order")
            }
        })?;
        // Who looks up a place is content with one that is not in the text.
        let functions = pairs(&mut read, |read, at, len| match at.checked_add(len) {
            Some(_) => Ok(()),
            None => read.wrong("a name outside of the text"),
        })?;
        let data_fixes = (0..read.count(17)?)
            .map(|_| data_fix(&mut read, data_len, &imports))
            .collect::<Result<_, _>>()?;
        let text = read.bytes(TEXT)?.into();
        if read.at != bytes.len() {
            return read.wrong("more than there should be");
        }
        let source = Source {
            places,
            functions,
            text,
        };
        Ok(Compiled {
            code,
            data,
            exports,
            imports,
            code_data,
            code_imports,
            data_fixes,
            source,
        })
    }
}

fn exports(read: &mut Reader<'_>, code: usize) -> Result<Vec<Export>, NoObject> {
    let (mut seen, mut list) = (HashSet::new(), Vec::new());
    for _ in 0..read.functions(13)? {
        let offset = field(read, code, 1)?;
        let (name, result, params) = read.function()?;
        if !seen.insert(name.clone()) {
            return read.wrong("a name that is there already");
        }
        list.push(Export {
            name,
            offset,
            params,
            result,
        });
    }
    Ok(list)
}

/// The offset of something of `size` bytes in something of `len`.
fn field(read: &mut Reader<'_>, len: usize, size: usize) -> Result<u32, NoObject> {
    let at = read.number()?;
    within(read, at, len, size)?;
    Ok(at)
}

fn within(read: &Reader<'_>, at: u32, len: usize, size: usize) -> Result<(), NoObject> {
    match (at as usize).checked_add(size) {
        Some(end) if end <= len => Ok(()),
        _ => read.wrong("an offset that leads out of it"),
    }
}

fn import(read: &Reader<'_>, number: u32, imports: &[Import]) -> Result<(), NoObject> {
    match (number as usize) < imports.len() {
        true => Ok(()),
        false => read.wrong("a function that is not listed"),
    }
}

/// Pairs of numbers, each of which `check` has seen.
fn pairs(
    read: &mut Reader<'_>,
    mut check: impl FnMut(&Reader<'_>, u32, u32) -> Result<(), NoObject>,
) -> Result<Vec<(u32, u32)>, NoObject> {
    (0..read.count(8)?)
        .map(|_| {
            let (a, b) = (read.number()?, read.number()?);
            check(read, a, b)?;
            Ok((a, b))
        })
        .collect()
}

fn data_fix(read: &mut Reader<'_>, data: usize, imports: &[Import]) -> Result<DataFix, NoObject> {
    let at = field(read, data, 8)?;
    let (to, number) = (read.byte()?, read.number()?);
    let to = match to {
        0 => Target::Data,
        1 => Target::Code,
        2 => {
            import(read, number, imports)?;
            Target::Import(number)
        }
        _ => return read.wrong("an address that leads nowhere"),
    };
    let mut offset = [0; 8];
    offset.copy_from_slice(read.take(8)?);
    Ok(DataFix {
        at,
        to,
        offset: i64::from_le_bytes(offset),
    })
}
