//! A function's C type, from a module's debug information.

use addr2line::gimli::{
    self, AttributeValue, DebuggingInformationEntry, Dwarf, EndianSlice, LittleEndian, Unit,
};
use object::read::elf::ElfFile64;
use object::{LittleEndian as Le, Object, ObjectSection};

type Reader<'a> = EndianSlice<'a, LittleEndian>;
type Entry<'a> = DebuggingInformationEntry<Reader<'a>>;

/// How many typedefs and qualifiers are followed: debug information may be made in a circle.
const DEEPEST: usize = 32;

/// A C type, as far as a register tells one from the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CType {
    /// Nothing.
    Void,
    /// A signed integer of so many bits.
    Signed(u8),
    /// An unsigned integer, a truth value, or an enumeration without negative values.
    Unsigned(u8),
    /// `float` or `double`, by its bits.
    Float(u8),
    /// A pointer to characters.
    Text,
    /// Any other pointer.
    Pointer,
    /// What does not go in one register; its name, or what it is.
    Other(String),
}

/// A function's type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// What it returns.
    pub result: CType,
    /// What it takes.
    pub parameters: Vec<CType>,
    /// Whether it takes more than that.
    pub variadic: bool,
}

/// The type of the global function `name` in the module `data`; `None` if its debug information does not tell.
///
/// ```
/// assert!(ringfence_driver::prototype::of(b"not a module", "f").is_none());
/// ```
#[must_use]
pub fn of(data: &[u8], name: &str) -> Option<Prototype> {
    let file = ElfFile64::<Le>::parse(data).ok()?;
    // Compressed sections (-gz) have to be held somewhere.
    let sections = gimli::DwarfSections::load(|id| {
        let section = file.section_by_name(id.name());
        let data = section.and_then(|s| s.uncompressed_data().ok());
        Ok::<_, gimli::Error>(data.unwrap_or_default())
    });
    let sections = sections.ok()?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let Ok(unit) = dwarf.unit(header) else { continue };
        if let Some(found) = in_unit(&dwarf, &unit, name) {
            return Some(found);
        }
    }
    None
}

fn in_unit<'a>(dwarf: &Dwarf<Reader<'a>>, unit: &Unit<Reader<'a>>, name: &str) -> Option<Prototype> {
    let mut tree = unit.entries_tree(None).ok()?;
    let mut children = tree.root().ok()?.children();
    while let Some(child) = children.next().ok()? {
        let entry = child.entry().clone();
        let entry = &entry;
        let function = entry.tag() == gimli::DW_TAG_subprogram
            && entry.attr_value(gimli::DW_AT_declaration).is_none()
            && is_named(dwarf, unit, entry, name);
        if !function {
            continue;
        }
        // What a declaration elsewhere has said already is not said again.
        let declared = referred(unit, entry, gimli::DW_AT_specification)
            .or_else(|| referred(unit, entry, gimli::DW_AT_abstract_origin));
        let own = entry.attr_value(gimli::DW_AT_type).is_some();
        let result = match &declared {
            Some(d) if !own => kind(dwarf, unit, d),
            _ => kind(dwarf, unit, entry),
        };
        let mut found = Prototype {
            result,
            parameters: Vec::new(),
            variadic: false,
        };
        let mut parameters = child.children();
        while let Some(p) = parameters.next().ok()? {
            let p = p.entry();
            match p.tag() {
                gimli::DW_TAG_formal_parameter => {
                    let origin = referred(unit, p, gimli::DW_AT_abstract_origin);
                    found
                        .parameters
                        .push(kind(dwarf, unit, origin.as_ref().unwrap_or(p)));
                }
                gimli::DW_TAG_unspecified_parameters => found.variadic = true,
                _ => {}
            }
        }
        return Some(found);
    }
    None
}

/// Whether the linker knows `entry` by this name.
fn is_named<'a>(dwarf: &Dwarf<Reader<'a>>, unit: &Unit<Reader<'a>>, entry: &Entry<'a>, name: &str) -> bool {
    let declared = referred(unit, entry, gimli::DW_AT_specification)
        .or_else(|| referred(unit, entry, gimli::DW_AT_abstract_origin));
    let is = |e: &Entry<'a>, at| {
        let text = e.attr_value(at).and_then(|v| dwarf.attr_string(unit, v).ok());
        text.map(|t| t.slice() == name.as_bytes())
    };
    // With a linkage name, the plain one is not what the symbol table has.
    std::iter::once(entry).chain(declared.as_ref()).any(|e| {
        is(e, gimli::DW_AT_linkage_name)
            .or_else(|| is(e, gimli::DW_AT_name))
            .unwrap_or(false)
    })
}

fn referred<'a>(unit: &Unit<Reader<'a>>, entry: &Entry<'a>, at: gimli::DwAt) -> Option<Entry<'a>> {
    match entry.attr_value(at)? {
        AttributeValue::UnitRef(offset) => unit.entry(offset).ok(),
        _ => None,
    }
}

/// The type that `entry` refers to, without typedefs and qualifiers.
fn target<'a>(unit: &Unit<Reader<'a>>, entry: &Entry<'a>) -> Option<Entry<'a>> {
    let mut at = referred(unit, entry, gimli::DW_AT_type)?;
    for _ in 0..DEEPEST {
        match at.tag() {
            gimli::DW_TAG_typedef
            | gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => at = referred(unit, &at, gimli::DW_AT_type)?,
            _ => return Some(at),
        }
    }
    None
}

fn kind<'a>(dwarf: &Dwarf<Reader<'a>>, unit: &Unit<Reader<'a>>, entry: &Entry<'a>) -> CType {
    let Some(t) = target(unit, entry) else {
        // No type is `void`; so is a qualified one.
        return CType::Void;
    };
    let bits = t
        .attr_value(gimli::DW_AT_byte_size)
        .and_then(|v| v.udata_value())
        .and_then(|n| u8::try_from(8 * n).ok());
    let name = || {
        let name = t
            .attr_value(gimli::DW_AT_name)
            .and_then(|v| dwarf.attr_string(unit, v).ok());
        name.map(|n| n.to_string_lossy().into_owned())
    };
    match t.tag() {
        gimli::DW_TAG_base_type => {
            let encoding = match t.attr_value(gimli::DW_AT_encoding) {
                Some(AttributeValue::Encoding(e)) => e,
                _ => gimli::DwAte(0),
            };
            match (encoding, bits) {
                (gimli::DW_ATE_signed | gimli::DW_ATE_signed_char, Some(b @ (8 | 16 | 32 | 64))) => {
                    CType::Signed(b)
                }
                (
                    gimli::DW_ATE_unsigned
                    | gimli::DW_ATE_unsigned_char
                    | gimli::DW_ATE_boolean
                    | gimli::DW_ATE_UTF,
                    Some(b @ (8 | 16 | 32 | 64)),
                ) => CType::Unsigned(b),
                (gimli::DW_ATE_float, Some(b @ (32 | 64))) => CType::Float(b),
                _ => CType::Other(name().unwrap_or_else(|| "an unknown type".to_owned())),
            }
        }
        gimli::DW_TAG_enumeration_type => {
            let signed = target(unit, &t).is_some_and(|base| {
                matches!(
                    base.attr_value(gimli::DW_AT_encoding),
                    Some(AttributeValue::Encoding(
                        gimli::DW_ATE_signed | gimli::DW_ATE_signed_char
                    ))
                )
            });
            let bits = bits.unwrap_or(32);
            if signed {
                CType::Signed(bits)
            } else {
                CType::Unsigned(bits)
            }
        }
        gimli::DW_TAG_pointer_type => {
            let text = target(unit, &t).is_some_and(|to| {
                let encoding = to.attr_value(gimli::DW_AT_encoding);
                let size = to
                    .attr_value(gimli::DW_AT_byte_size)
                    .and_then(|v| v.udata_value());
                // `unsigned char` is for bytes, not for text.
                let character = Some(AttributeValue::Encoding(gimli::DW_ATE_signed_char));
                size == Some(1) && encoding == character
            });
            if text { CType::Text } else { CType::Pointer }
        }
        gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => CType::Pointer,
        gimli::DW_TAG_structure_type => CType::Other(format!("struct {}", name().unwrap_or_default())),
        gimli::DW_TAG_class_type => CType::Other(format!("class {}", name().unwrap_or_default())),
        gimli::DW_TAG_union_type => CType::Other(format!("union {}", name().unwrap_or_default())),
        _ => CType::Other(name().unwrap_or_else(|| "another type".to_owned())),
    }
}
