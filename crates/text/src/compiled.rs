//! What comes of a text: code, data, and what is to be written into both before the code is verified.

use crate::emit::collides;

/// Most characters of a name in a message.
const NAME: usize = 200;

/// A function that the text defines and others may call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Export {
    /// Its name.
    pub name: String,
    /// Offset of its entry, a marker, in [`Compiled::code`].
    pub offset: u32,
    /// What it is called with.
    pub params: Vec<Kind>,
    /// What it returns.
    pub result: Kind,
}

/// A function that the text declares, uses and does not define.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Import {
    /// Its name.
    pub name: String,
    /// What the text calls it with.
    pub params: Vec<Kind>,
    /// What the text takes from it.
    pub result: Kind,
    /// Whether any number of further arguments may follow.
    pub variadic: bool,
}

/// A type as far as calls need it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing; of results only.
    Void,
    /// `_Bool`: 0 or 1, in a byte. Code relies on it, so whoever calls passes nothing else.
    Bool,
    /// An integer: bytes, and whether it has a sign.
    Int(u8, bool),
    /// `float`, `double` or `long double`: 4, 8 or 16 bytes.
    Float(u8),
    /// A pointer.
    Pointer,
    /// A structure or union, in the way of this compiler only (`docs/text.md`).
    Record,
}

/// Where an address in the data leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Into the data.
    Data,
    /// Into the code.
    Code,
    /// To an import, by its number.
    Import(u32),
}

/// Eight bytes of data that hold an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataFix {
    /// Offset in [`Compiled::data`].
    pub at: u32,
    /// Where it leads.
    pub to: Target,
    /// Offset there.
    pub offset: i64,
}

/// A text as machine code that has not got its addresses yet.
///
/// Code reaches data and imports by the lower halves of their addresses, and itself by distances: it may lie anywhere in the
/// window at a multiple of 8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compiled {
    /// The text's functions, each at a multiple of 16.
    pub code: Vec<u8>,
    /// Objects with static storage as they are at first, to be placed at a multiple of [`Compiled::ALIGN`], writable.
    pub data: Vec<u8>,
    /// Functions that others may call.
    pub exports: Vec<Export>,
    /// Functions that the text needs.
    pub imports: Vec<Import>,
    /// Offsets in the code of 32 bits to which the lower half of the data's address is added.
    pub code_data: Vec<u32>,
    /// Offsets in the code of 32 bits, each with the number of the import whose lower half it gets.
    pub code_imports: Vec<(u32, u32)>,
    /// Addresses in the data.
    pub data_fixes: Vec<DataFix>,
    /// Which of the code is of which line.
    pub source: Source,
}

/// The text, and which of the code is of which part of it. Code that comes of no text has an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// From which offset in the code on it is of which offset in the text, in the order of the code.
    pub(crate) places: Vec<(u32, u32)>,
    /// Where the names of the functions are that the text defines, and how long they are.
    pub(crate) functions: Vec<(u32, u32)>,
    pub(crate) text: Box<[u8]>,
}

/// A place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The function in whose body it is.
    pub function: String,
    /// Line, from 1.
    pub line: u32,
}

/// The patched code would look like an identifier in a wrong place, and be refused; the data have to lie elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collides;

impl std::fmt::Display for Collides {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("with data at this address the code would hold an identifier in a wrong place: place them elsewhere")
    }
}

impl std::error::Error for Collides {}

impl Compiled {
    /// The alignment of the data.
    pub const ALIGN: u64 = 16;

    /// The place in the text of an instruction, by its offset in the code; `None` if there is none. A function that stands in the
    /// place of its call has places of its own. Reads the text up to there.
    ///
    /// # Examples
    /// ```
    /// let compiled = ringfence_text::compile("int zero;\nint f(int n)\n{\n  return n / zero;\n}").unwrap();
    /// let place = compiled.place(compiled.exports[0].offset + 16).unwrap();
    /// assert_eq!((place.function.as_str(), place.line), ("f", 4));
    /// ```
    #[must_use]
    pub fn place(&self, offset: u32) -> Option<Place> {
        if offset as usize >= self.code.len() {
            return None;
        }
        let source = &self.source;
        let after = source.places.partition_point(|p| p.0 <= offset);
        let at = source.places[..after].last()?.1 as usize;
        let own = source.functions.iter().filter(|f| f.0 as usize <= at);
        let &(from, len) = own.max_by_key(|f| f.0)?;
        let name = source.text.get(from as usize..(from + len) as usize)?;
        let line = source.text.get(..at)?.iter().filter(|&&c| c == b'\n').count() + 1;
        // Object code says where names are: what is there need not be one, nor short.
        let letter = |&c: &u8| match c {
            b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(c),
            _ => '?',
        };
        Some(Place {
            function: name.iter().take(NAME).map(letter).collect(),
            line: line as u32,
        })
    }

    /// The code for data and imports at these addresses. Missing imports count as 0, and a call of them is a fault.
    ///
    /// # Errors
    /// [`Collides`]: with these addresses the verifier would refuse it. Another address of the data helps.
    pub fn link_code(&self, data: u64, imports: &[u64]) -> Result<Vec<u8>, Collides> {
        let mut code = self.code.clone();
        let import = |number: u32| imports.get(number as usize).copied().unwrap_or(0) as u32;
        let fixes = self.code_data.iter().map(|&at| (at, data as u32));
        for (at, add) in fixes.chain(self.code_imports.iter().map(|&(at, number)| (at, import(number)))) {
            let at = at as usize;
            let mut field = [0; 4];
            field.copy_from_slice(&code[at..at + 4]);
            let value = u32::from_le_bytes(field).wrapping_add(add);
            code[at..at + 4].copy_from_slice(&value.to_le_bytes());
            if collides(&code, at, at + 4) || collides(&code, at + 1, at + 5) {
                return Err(Collides);
            }
        }
        Ok(code)
    }

    /// The data for addresses of itself, of the code and of the imports.
    #[must_use]
    pub fn link_data(&self, data: u64, code: u64, imports: &[u64]) -> Vec<u8> {
        let mut bytes = self.data.clone();
        for fix in &self.data_fixes {
            let base = match fix.to {
                Target::Data => data,
                Target::Code => code,
                Target::Import(number) => imports.get(number as usize).copied().unwrap_or(0),
            };
            let value = base.wrapping_add_signed(fix.offset);
            let at = fix.at as usize;
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }
}
