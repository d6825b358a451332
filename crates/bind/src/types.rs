//! C types, as the debug information of a compiled file has them.

use std::collections::BTreeMap;
use std::ops::Range;

use gimli::{
    self, AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit, UnitOffset,
};
use object::read::elf::ElfFile64;
use object::{LittleEndian as Le, Object, ObjectSection};

/// Stands in the probe's variables before a function's name: `__typeof__(f) *rfb_probe_f;`.
pub(crate) const PROBE: &str = "rfb_probe_";

/// A type's number in [`Types`].
pub(crate) type Id = usize;

/// A type.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Type {
    Void,
    Integer {
        name: String,
        bytes: u64,
        signed: bool,
    },
    Float {
        name: String,
        bytes: u64,
    },
    Enumeration {
        name: Option<String>,
        bytes: u64,
        signed: bool,
    },
    Pointer(Id),
    Record(Record),
    Array(Id, Option<u64>),
    Function(Function),
    Typedef(String, Id),
    Const(Id),
    /// What nothing here understands, in words.
    Unknown(String),
}

/// A struct or a union.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub union: bool,
    pub name: Option<String>,
    /// `None`: only its name is known.
    pub size: Option<u64>,
    pub fields: Vec<Field>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    pub name: Option<String>,
    pub offset: u64,
    pub to: Id,
    /// Part of a word: which bits of the struct, as far as that is known.
    pub bits: Option<Option<Range<u64>>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Function {
    pub result: Id,
    pub parameters: Vec<Id>,
    pub variadic: bool,
}

/// All types of a file.
#[derive(Debug, Default)]
pub(crate) struct Types {
    all: Vec<Type>,
    /// The functions that were asked for.
    pub functions: BTreeMap<String, Function>,
    /// Structs and unions by name, those of typedefs too.
    pub records: BTreeMap<String, Id>,
    /// Enumerators, and whether they are of the library's own headers.
    pub enumerators: Vec<(String, i128, bool)>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = DebuggingInformationEntry<Slice<'a>>;

/// How many units of a module are read, and how many types of all of them.
const MOST_UNITS: usize = 4096;
const MOST_TYPES: usize = 200_000;
/// How deep types stand in types.
const DEEPEST: usize = 300;

impl Types {
    /// Reads the debug information of the ELF file `data`. `ours` tells which files are the library's headers.
    pub(crate) fn read(data: &[u8], ours: impl Fn(&str) -> bool) -> Option<Types> {
        let file = ElfFile64::<Le>::parse(data).ok()?;
        let sections = gimli::DwarfSections::load(|id| {
            let section = file.section_by_name(id.name());
            let data = section.and_then(|s| s.uncompressed_data().ok());
            Ok::<_, gimli::Error>(data.unwrap_or_default())
        });
        let sections = sections.ok()?;
        let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
        let mut types = Types::default();
        types.all.push(Type::Void);
        let mut units = dwarf.units();
        let mut count = 0;
        while let Some(header) = units.next().ok()? {
            count += 1;
            if count > MOST_UNITS {
                break;
            }
            let Ok(unit) = dwarf.unit(header) else { continue };
            let mut reader = Reader {
                dwarf: &dwarf,
                unit: &unit,
                ids: BTreeMap::new(),
                types: &mut types,
                depth: 0,
            };
            reader.unit(&ours)?;
        }
        (count > 0).then_some(types)
    }

    pub(crate) fn get(&self, id: Id) -> &Type {
        &self.all[id]
    }

    /// Without typedefs and qualifiers.
    pub(crate) fn bare(&self, mut id: Id) -> &Type {
        // Debug information of strangers may go in circles.
        for _ in 0..64 {
            match self.get(id) {
                Type::Typedef(_, to) | Type::Const(to) => id = *to,
                other => return other,
            }
        }
        &Type::Void
    }

    /// What a pointer of this type points to.
    pub(crate) fn target(&self, id: Id) -> Option<Id> {
        match self.bare(id) {
            Type::Pointer(to) | Type::Array(to, _) => Some(*to),
            _ => None,
        }
    }

    /// Whether it cannot be written to.
    pub(crate) fn constant(&self, mut id: Id) -> bool {
        for _ in 0..64 {
            match self.get(id) {
                Type::Const(_) => return true,
                Type::Typedef(_, to) => id = *to,
                _ => break,
            }
        }
        false
    }

    /// The first typedef's name, or the struct's.
    pub(crate) fn name(&self, id: Id) -> Option<&str> {
        match self.get(id) {
            Type::Typedef(name, _) => Some(name),
            Type::Const(to) => self.name(*to),
            Type::Record(record) => record.name.as_deref(),
            Type::Enumeration { name, .. } => name.as_deref(),
            _ => None,
        }
    }

    /// The one number of a struct that typedefs and qualifiers lead to: its own, or that of the typedef that names it.
    pub(crate) fn record_id(&self, mut id: Id) -> Id {
        let mut named = id;
        for _ in 0..64 {
            match self.get(id) {
                Type::Typedef(_, to) => (named, id) = (id, *to),
                Type::Const(to) => id = *to,
                Type::Record(record) if record.name.is_some() => return id,
                _ => break,
            }
        }
        named
    }

    /// Whether a typedef of this name is on the way.
    pub(crate) fn is_named(&self, mut id: Id, wanted: &str) -> bool {
        for _ in 0..64 {
            match self.get(id) {
                Type::Typedef(name, _) if name == wanted => return true,
                Type::Typedef(_, to) | Type::Const(to) => id = *to,
                Type::Record(record) => return record.name.as_deref() == Some(wanted),
                _ => break,
            }
        }
        false
    }

    /// Bytes of one, if that is known.
    pub(crate) fn size(&self, id: Id) -> Option<u64> {
        match self.bare(id) {
            Type::Integer { bytes, .. } | Type::Float { bytes, .. } | Type::Enumeration { bytes, .. } => {
                Some(*bytes)
            }
            Type::Pointer(_) => Some(8),
            Type::Record(record) => record.size,
            Type::Array(to, count) if !matches!(self.bare(*to), Type::Array(..)) => {
                self.size(*to)?.checked_mul((*count)?)
            }
            _ => None,
        }
    }

    /// A declaration in C: `int (*name)(void)`.
    pub(crate) fn declare(&self, id: Id, name: &str) -> String {
        self.declare_within(id, name, 0)
    }

    fn declare_within(&self, id: Id, name: &str, depth: usize) -> String {
        let spaced = |word: &str| match name {
            "" => word.to_owned(),
            _ if name.starts_with('*') => format!("{word} {name}"),
            _ => format!("{word} {name}"),
        };
        if depth > 32 {
            return spaced("void");
        }
        let next = |id, name: &str| self.declare_within(id, name, depth + 1);
        match self.get(id) {
            Type::Void => spaced("void"),
            Type::Integer { name: word, .. } | Type::Float { name: word, .. } | Type::Typedef(word, _) => {
                spaced(word)
            }
            Type::Enumeration { name: tag, .. } => match tag {
                Some(tag) => spaced(&format!("enum {tag}")),
                None => spaced("int"),
            },
            Type::Record(record) => {
                let kind = if record.union { "union" } else { "struct" };
                spaced(&format!(
                    "{kind} {}",
                    record.name.as_deref().unwrap_or("rfb_unnamed")
                ))
            }
            Type::Const(to) => match self.get(*to) {
                Type::Pointer(_) => next(*to, &format!("const {name}")),
                _ => format!("const {}", next(*to, name)),
            },
            Type::Pointer(to) => {
                let star = format!("*{name}");
                match self.get(*to) {
                    Type::Function(_) | Type::Array(..) => next(*to, &format!("({star})")),
                    _ => next(*to, &star),
                }
            }
            Type::Array(to, count) => {
                let count = count.map_or(String::new(), |n| n.to_string());
                next(*to, &format!("{name}[{count}]"))
            }
            Type::Function(function) => {
                let mut list: Vec<String> = function.parameters.iter().map(|p| next(*p, "")).collect();
                if function.variadic {
                    list.push("...".into());
                } else if list.is_empty() {
                    list.push("void".into());
                }
                next(function.result, &format!("{name}({})", list.join(", ")))
            }
            Type::Unknown(word) => spaced(word),
        }
    }
}

struct Reader<'a, 'u> {
    dwarf: &'u Dwarf<Slice<'a>>,
    unit: &'u Unit<Slice<'a>>,
    ids: BTreeMap<UnitOffset, Id>,
    types: &'u mut Types,
    depth: usize,
}

impl<'a> Reader<'a, '_> {
    fn unit(&mut self, ours: &impl Fn(&str) -> bool) -> Option<()> {
        let unit = self.unit;
        let mut tree = unit.entries_tree(None).ok()?;
        let mut children = tree.root().ok()?.children();
        while let Some(child) = children.next().ok()? {
            let entry = child.entry().clone();
            match entry.tag() {
                gimli::DW_TAG_variable => {
                    let name = self.text(&entry, gimli::DW_AT_name).unwrap_or_default();
                    if let Some(name) = name.strip_prefix(PROBE) {
                        let id = self.referred(&entry);
                        let function = self.types.target(id).map(|to| self.types.bare(to).clone());
                        if let Some(Type::Function(function)) = function {
                            self.types.functions.insert(name.to_owned(), function);
                        }
                    }
                }
                gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type => {
                    let id = self.id(entry.offset());
                    self.name(id, self.types.name(id).map(str::to_owned));
                }
                gimli::DW_TAG_typedef => {
                    let id = self.id(entry.offset());
                    if let Type::Record(_) = self.types.bare(id) {
                        self.name(id, self.types.name(id).map(str::to_owned));
                    }
                }
                gimli::DW_TAG_enumeration_type => {
                    self.id(entry.offset());
                    let own = self.file(&entry).is_some_and(|f| ours(&f));
                    self.enumerators(&entry, own);
                }
                _ => {}
            }
        }
        Some(())
    }

    /// Notes a struct under its name; of several in a module the one that is whole.
    fn name(&mut self, id: Id, name: Option<String>) {
        let whole = |types: &Types, id| matches!(types.bare(id), Type::Record(r) if r.size.is_some());
        if let Some(name) = name
            && (whole(self.types, id) || !self.types.records.contains_key(&name))
            && !self
                .types
                .records
                .get(&name)
                .is_some_and(|&old| whole(self.types, old))
        {
            self.types.records.insert(name, id);
        }
    }

    fn enumerators(&mut self, entry: &Entry<'a>, own: bool) {
        let Ok(mut tree) = self.unit.entries_tree(Some(entry.offset())) else {
            return;
        };
        let Ok(root) = tree.root() else { return };
        let mut children = root.children();
        while let Ok(Some(child)) = children.next() {
            let entry = child.entry();
            let value = match entry.attr_value(gimli::DW_AT_const_value) {
                Some(AttributeValue::Sdata(n)) => Some(i128::from(n)),
                Some(v) => v.udata_value().map(i128::from),
                None => None,
            };
            if let (Some(name), Some(value)) = (self.text(entry, gimli::DW_AT_name), value) {
                self.types.enumerators.push((name, value, own));
            }
        }
    }

    fn file(&self, entry: &Entry<'a>) -> Option<String> {
        let number = match entry.attr_value(gimli::DW_AT_decl_file)? {
            AttributeValue::FileIndex(n) => n,
            v => v.udata_value()?,
        };
        let header = self.unit.line_program.as_ref()?.header();
        let file = header.file(number)?;
        let text = |v| {
            Some(
                self.dwarf
                    .attr_string(self.unit, v)
                    .ok()?
                    .to_string_lossy()
                    .into_owned(),
            )
        };
        let name = text(file.path_name())?;
        let directory = file.directory(header).and_then(text);
        Some(match directory {
            Some(directory) if !name.starts_with('/') => format!("{directory}/{name}"),
            _ => name,
        })
    }

    fn text(&self, entry: &Entry<'a>, at: gimli::DwAt) -> Option<String> {
        let text = self.dwarf.attr_string(self.unit, entry.attr_value(at)?).ok()?;
        Some(text.to_string_lossy().into_owned())
    }

    fn number(&self, entry: &Entry<'a>, at: gimli::DwAt) -> Option<u64> {
        entry.attr_value(at)?.udata_value()
    }

    /// The type that an entry refers to; none is `void`.
    fn referred(&mut self, entry: &Entry<'a>) -> Id {
        match entry.attr_value(gimli::DW_AT_type) {
            Some(AttributeValue::UnitRef(offset)) => self.id(offset),
            _ => 0,
        }
    }

    /// The number of the type at `offset`, which is read at its first use.
    fn id(&mut self, offset: UnitOffset) -> Id {
        if let Some(&id) = self.ids.get(&offset) {
            return id;
        }
        if self.types.all.len() >= MOST_TYPES || self.depth >= DEEPEST {
            return 0;
        }
        let id = self.types.all.len();
        self.types.all.push(Type::Void);
        self.ids.insert(offset, id);
        // One that holds itself finds its number.
        self.depth += 1;
        let read = self
            .read(offset)
            .unwrap_or_else(|| Type::Unknown("an unknown type".into()));
        self.depth -= 1;
        self.types.all[id] = read;
        id
    }

    fn read(&mut self, offset: UnitOffset) -> Option<Type> {
        let entry = self.unit.entry(offset).ok()?;
        let name = self.text(&entry, gimli::DW_AT_name);
        let bytes = self.number(&entry, gimli::DW_AT_byte_size);
        let unknown = |what: &str| Type::Unknown(name.clone().unwrap_or_else(|| what.into()));
        Some(match entry.tag() {
            gimli::DW_TAG_base_type => {
                let Some(AttributeValue::Encoding(encoding)) = entry.attr_value(gimli::DW_AT_encoding) else {
                    return Some(unknown("a base type"));
                };
                let word = name.clone().unwrap_or_default();
                let signed = encoding == gimli::DW_ATE_signed || encoding == gimli::DW_ATE_signed_char;
                match (encoding, bytes?) {
                    (gimli::DW_ATE_float, bytes) => Type::Float { name: word, bytes },
                    (gimli::DW_ATE_complex_float, _) => unknown("a complex number"),
                    (_, bytes @ (1 | 2 | 4 | 8)) => Type::Integer {
                        name: word,
                        bytes,
                        signed,
                    },
                    _ => unknown("a base type"),
                }
            }
            gimli::DW_TAG_enumeration_type => {
                let base = self.referred(&entry);
                let signed = matches!(self.types.bare(base), Type::Integer { signed: true, .. });
                Type::Enumeration {
                    name,
                    bytes: bytes.unwrap_or(4),
                    signed,
                }
            }
            gimli::DW_TAG_pointer_type => Type::Pointer(self.referred(&entry)),
            gimli::DW_TAG_const_type => Type::Const(self.referred(&entry)),
            gimli::DW_TAG_volatile_type | gimli::DW_TAG_restrict_type | gimli::DW_TAG_atomic_type => {
                let to = self.referred(&entry);
                self.types.get(to).clone()
            }
            gimli::DW_TAG_typedef => Type::Typedef(name?, self.referred(&entry)),
            tag @ (gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type) => Type::Record(Record {
                union: tag == gimli::DW_TAG_union_type,
                name,
                size: bytes.filter(|_| entry.attr_value(gimli::DW_AT_declaration).is_none()),
                fields: self.fields(&entry),
            }),
            gimli::DW_TAG_array_type if entry.attr_value(gimli::DW_AT_GNU_vector).is_some() => {
                unknown("a vector")
            }
            gimli::DW_TAG_array_type => {
                let to = self.referred(&entry);
                self.array(&entry, to)
            }
            gimli::DW_TAG_subroutine_type => {
                let result = self.referred(&entry);
                let (mut parameters, mut variadic) = (Vec::new(), false);
                for child in self.children(&entry) {
                    match child.tag() {
                        gimli::DW_TAG_formal_parameter => parameters.push(self.referred(&child)),
                        gimli::DW_TAG_unspecified_parameters => variadic = true,
                        _ => {}
                    }
                }
                Type::Function(Function {
                    result,
                    parameters,
                    variadic,
                })
            }
            _ => unknown("another type"),
        })
    }

    fn children(&self, entry: &Entry<'a>) -> Vec<Entry<'a>> {
        let mut found = Vec::new();
        if let Ok(mut tree) = self.unit.entries_tree(Some(entry.offset()))
            && let Ok(root) = tree.root()
        {
            let mut children = root.children();
            while let Ok(Some(child)) = children.next() {
                found.push(child.entry().clone());
            }
        }
        found
    }

    fn fields(&mut self, entry: &Entry<'a>) -> Vec<Field> {
        let mut fields = Vec::new();
        for child in self.children(entry) {
            if child.tag() != gimli::DW_TAG_member {
                continue;
            }
            let bit = self.number(&child, gimli::DW_AT_data_bit_offset);
            let offset = self.location(&child);
            let bit_size = self.number(&child, gimli::DW_AT_bit_size);
            let bits = match (bit, bit_size) {
                (None, None) => None,
                (Some(first), Some(size)) => Some(first.checked_add(size).map(|end| first..end)),
                _ => Some(self.old_bits(&child, bit_size, offset.unwrap_or(0))),
            };
            fields.push(Field {
                name: self.text(&child, gimli::DW_AT_name),
                offset: offset.or(bit.map(|b| b / 8)).unwrap_or(0),
                to: self.referred(&child),
                bits,
            });
        }
        fields
    }

    /// The bits of a bit-field in older debug information, and in unions: counted from the upper end of a word that begins at byte
    /// `offset`.
    fn old_bits(&self, entry: &Entry<'a>, size: Option<u64>, offset: u64) -> Option<Range<u64>> {
        let word = self.number(entry, gimli::DW_AT_byte_size)?;
        let above = self.number(entry, gimli::DW_AT_bit_offset)?;
        let end = offset.checked_add(word)?.checked_mul(8)?.checked_sub(above)?;
        Some(end.checked_sub(size?)?..end)
    }

    /// How far from its struct's start a field is; older debug information has a computation.
    fn location(&self, entry: &Entry<'a>) -> Option<u64> {
        match entry.attr_value(gimli::DW_AT_data_member_location)? {
            AttributeValue::Exprloc(expression) => {
                match expression.operations(self.unit.encoding()).next().ok()?? {
                    gimli::Operation::PlusConstant { value } => Some(value),
                    _ => None,
                }
            }
            value => value.udata_value(),
        }
    }

    fn array(&mut self, entry: &Entry<'a>, mut to: Id) -> Type {
        let mut counts = Vec::new();
        for child in self.children(entry) {
            if child.tag() == gimli::DW_TAG_subrange_type {
                let bound = self.number(&child, gimli::DW_AT_upper_bound);
                let count = self.number(&child, gimli::DW_AT_count);
                counts.push(count.or(bound.and_then(|n| n.checked_add(1))));
            }
        }
        let first = if counts.is_empty() { None } else { counts.remove(0) };
        for count in counts.into_iter().rev() {
            self.types.all.push(Type::Array(to, count));
            to = self.types.all.len() - 1;
        }
        Type::Array(to, first)
    }
}
