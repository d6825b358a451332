//! Modules: verified images.
//!
//! A file is read once, taken apart by [`crate::load::elf`], and laid out in a sealed memory file: text with its label
//! identifiers moved to numbers that no other module of the process uses and every byte behind it `int3`, pristine
//! data. What is verified is that memory, which nobody can change any more, and domains map that memory.

use crate::load::elf::{self, Parsed, Relocation, RelocationKind, Symbol};
use crate::load::labels;
use crate::load::names::{Names, plain};
pub use crate::load::symbols::{Export, ExportKind, Import, Note, Segment};
use crate::os::file;
use crate::os::host;
use crate::os::sys::{self, View};
use object::elf as e;
use ringfence_core::error::{HostError, LoadError};
use ringfence_core::work::{Budget, Exceeded};
use ringfence_isa::{Isolation, identifier, note};
use ringfence_verify::{Image, Report, Rules, SegmentKind};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// What the host accepts.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LoadOptions {
    /// Accept modules that confine stores and jumps only.
    pub allow_integrity: bool,
    /// Accept code that reads the time-stamp counter.
    pub allow_tsc: bool,
    /// Largest file in bytes, debug information included: 256 MiB; 4 GiB at most. A larger one is not read. Loading a file of
    /// *n* bytes takes no more than 64 MiB + 8 *n* of memory, whatever the file says.
    pub max_file_size: u64,
    /// How many of the 65,533 label identifiers that a process has one module may take: 16,384.
    pub max_labels: usize,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            allow_integrity: false,
            allow_tsc: false,
            max_file_size: 256 << 20,
            max_labels: 16 << 10,
        }
    }
}

/// Memory that loading a file may take besides [`BYTES_FOR_EACH`] of its bytes.
const BYTES: u64 = 64 << 20;
const BYTES_FOR_EACH: u64 = 8;
/// Entries of tables and bytes of names that may be looked at, besides [`STEPS_FOR_EACH`] byte of the file.
const STEPS: u64 = 16 << 20;
const STEPS_FOR_EACH: u64 = 4;

/// A verified image, ready to become domains. Cheap to clone.
#[derive(Clone)]
pub struct Module(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub name: String,
    pub parsed: Parsed,
    pub file: OwnedFd,
    pub report: Report,
    pub exports: Vec<Export>,
    by_name: Names,
    pub imports: Vec<Import>,
    pub isolation: Isolation,
    segments: Vec<Segment>,
    /// The file itself: its symbols and debug information serve messages.
    pub original: Vec<u8>,
    /// The whole image, for resets to copy from.
    image: OnceLock<Option<View>>,
    /// Keeps the numbers of its labels from being handed out again.
    _labels: labels::Range,
}

impl Module {
    /// Reads and verifies a module file, which is a regular one: pipes and devices are refused.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the file.
    pub fn open(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Module, LoadError> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let limit = options.max_file_size.min(u32::MAX.into());
        match file::read(path, limit) {
            Ok(bytes) => Module::load(name, bytes, options),
            Err(source) if source.kind() == std::io::ErrorKind::FileTooLarge => {
                Err(LoadError::TooLarge { name, limit })
            }
            Err(source) => Err(LoadError::Read { name, source }),
        }
    }

    /// Verifies a module file that is in memory. `name` is for messages.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the bytes.
    pub fn from_bytes(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Module, LoadError> {
        let limit = options.max_file_size.min(u32::MAX.into());
        let name = name.to_owned();
        if bytes.len() as u64 > limit {
            return Err(LoadError::TooLarge { name, limit });
        }
        let copy = Budget::unlimited().vec(bytes.len());
        let mut copy: Vec<u8> = copy.map_err(|source| LoadError::Exceeded {
            name: name.clone(),
            source,
        })?;
        copy.extend_from_slice(bytes);
        Module::load(name, copy, options)
    }

    fn load(name: String, bytes: Vec<u8>, options: &LoadOptions) -> Result<Module, LoadError> {
        let host = host::check()?;
        let len = bytes.len() as u64;
        let mut budget = Budget::new(STEPS + STEPS_FOR_EACH * len, BYTES + BYTES_FOR_EACH * len);
        let over = |source: Exceeded| LoadError::Exceeded {
            name: name.clone(),
            source,
        };
        budget.bytes(len).map_err(over)?;
        let parsed = elf::parse(&name, &bytes, &mut budget)?;
        let isolation = match parsed.note.flags & note::flag::INTEGRITY {
            0 => Isolation::Full,
            _ if options.allow_integrity => Isolation::Integrity,
            _ => return Err(LoadError::Integrity { name: name.clone() }),
        };
        check_features(&name, parsed.note.features, host.features)?;

        let text = parsed.loads[parsed.text];
        let from = &bytes[text.file_offset..text.file_offset + text.file_len as usize];
        let rejected = |reason: String| LoadError::Rejected {
            name: name.clone(),
            reason,
        };
        let places = match ringfence_verify::may_hold_labels(from) {
            true => ringfence_verify::identifiers(from, text.start).map_err(|r| rejected(r.to_string()))?,
            false => Vec::new(),
        };
        let mut numbers: Vec<u32> = budget.vec(places.len()).map_err(over)?;
        numbers.extend(places.iter().map(|p| p.id));
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() > options.max_labels {
            return Err(LoadError::Labels {
                name: name.clone(),
                wanted: numbers.len(),
                limit: options.max_labels,
            });
        }
        let range = labels::Range::take(numbers.len()).map_err(|free| LoadError::Identifiers {
            name: name.clone(),
            wanted: numbers.len(),
            free,
        })?;

        let pages = (text.page_end() - text.start) as usize;
        let mut code = budget.vec(pages).map_err(over)?;
        code.extend_from_slice(from);
        code.resize(pages, 0xCC);
        for place in &places {
            let at = (place.offset - text.start) as usize;
            let number = numbers.binary_search(&place.id).expect("all places' are there");
            let number = range.number(number).expect("so many were taken");
            let label = identifier::label(number).expect("ranges hold label numbers only");
            code[at..at + 4].copy_from_slice(&label.to_le_bytes());
        }
        drop((places, numbers));
        // What the file's pages in memory will take.
        for load in &parsed.loads {
            let pages = load.file_page_end() - load.page_start();
            budget.bytes(pages.into()).map_err(over)?;
        }
        let mut pieces: Vec<(u64, &[u8])> = Vec::with_capacity(parsed.loads.len());
        for load in &parsed.loads {
            let bytes = &bytes[load.file_offset..load.file_offset + load.file_len as usize];
            pieces.push((load.start.into(), bytes));
        }
        pieces[parsed.text].1 = &code;
        let file = sys::sealed_file_of(&memory_name(&name), u64::from(parsed.image_len), &pieces)?;
        let text = Text::new(code, &file, text.start)?;
        if matches!(text, Text::View(_)) {
            budget.give_back(pages as u64);
        }
        let verify_segments: Vec<_> = parsed
            .loads
            .iter()
            .map(|l| ringfence_verify::Segment {
                start: l.start,
                len: l.len,
                kind: l.kind,
            })
            .collect();
        let rules = Rules {
            isolation,
            label_numbers: range.inclusive(),
            allow_tsc: options.allow_tsc,
            ..Rules::default()
        };
        let image = Image {
            text: text.bytes(),
            text_address: parsed.loads[parsed.text].start,
            segments: &verify_segments,
            image_offset: None,
        };
        let entries = entries(&parsed, &mut budget).map_err(over)?;
        let report = ringfence_verify::verify(&image, &entries, &rules)
            .map_err(|r| rejected(describe(&r, &parsed.symbols, &bytes)))?;
        check_features(&name, report.features, host.features)?;

        let exports = exports(&parsed, &report, &bytes, &mut budget).map_err(over)?;
        let by_name = Names::new(&exports, &mut budget).map_err(over)?;
        let imports = imports(&parsed, &bytes, &mut budget).map_err(over)?;
        let segments = parsed
            .loads
            .iter()
            .map(|l| Segment {
                offset: l.start,
                len: l.len,
                file_len: l.file_len,
                kind: l.kind,
            })
            .collect();
        Ok(Module(Arc::new(Inner {
            name,
            parsed,
            file,
            report,
            exports,
            by_name,
            imports,
            isolation,
            segments,
            original: bytes,
            image: OnceLock::new(),
            _labels: range,
        })))
    }

    /// The name it was loaded under.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Defined symbols of default visibility.
    #[must_use]
    pub fn exports(&self) -> &[Export] {
        &self.0.exports
    }

    /// Undefined symbols.
    #[must_use]
    pub fn imports(&self) -> &[Import] {
        &self.0.imports
    }

    /// Loadable segments in order of address.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.0.segments
    }

    /// Instruction-set extensions that the code uses ([`ringfence_isa::window::feature`] bits), as the verifier found.
    #[must_use]
    pub fn features(&self) -> u32 {
        self.report().features
    }

    /// What its memory accesses are confined to.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.0.isolation
    }

    /// What its note claims.
    #[must_use]
    pub fn note(&self) -> Note {
        self.0.parsed.note
    }

    /// What the verifier found out.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.0.report
    }

    /// The bytes it was made of.
    #[must_use]
    pub fn original(&self) -> &[u8] {
        &self.0.original
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if matches!(self.image.get(), Some(Some(_))) {
            host::give_mappings(1);
        }
    }
}

impl std::fmt::Debug for Module {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Module")
            .field("name", &self.0.name)
            .finish_non_exhaustive()
    }
}

impl Inner {
    /// `len` bytes of the pristine image. `None` if there is no room for a view of it.
    pub(crate) fn pristine(&self, offset: u32, len: usize) -> Option<&[u8]> {
        let view = self.image.get_or_init(|| {
            host::take_mappings(1).ok()?;
            View::new(&self.file, 0, self.parsed.image_len.into())
                .inspect_err(|_| host::give_mappings(1))
                .ok()
        });
        view.as_ref()?.bytes().get(offset as usize..offset as usize + len)
    }

    /// The export of that name.
    pub(crate) fn export(&self, name: &str) -> Option<&Export> {
        self.by_name.find(&self.exports, name)
    }

    /// Bytes on the control stack at an instruction, the return address not counted.
    pub(crate) fn depth_at(&self, offset: u32) -> Option<u32> {
        self.report.depth_at(offset)
    }

    /// What is known of an instruction: its depth, and its function's tail calls.
    pub(crate) fn place_at(&self, offset: u32) -> Option<Place> {
        Some(Place {
            depth: self.report.depth_at(offset)?,
            tail_calls: self.report.function_at(offset)?.tail_calls,
        })
    }

    /// Whether the host may enter at `offset`.
    pub(crate) fn is_entry(&self, offset: u32) -> bool {
        self.report.function_with_entry(offset).is_some()
    }
}

/// What the verifier checks: memory that nobody changes any more.
enum Text {
    /// The very bytes that the sealed file was made of. Faster than a mapping while there are few.
    Copy(Box<[u8]>),
    /// The sealed file itself.
    View(View),
}

impl Text {
    /// Largest text that is kept as a copy.
    const COPIED: usize = 64 << 10;

    fn new(code: Vec<u8>, file: &OwnedFd, start: u32) -> Result<Text, HostError> {
        if code.len() <= Self::COPIED {
            return Ok(Text::Copy(code.into()));
        }
        Ok(Text::View(View::new(file, start.into(), code.len() as u64)?))
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Text::Copy(code) => code,
            Text::View(view) => view.bytes(),
        }
    }
}

/// What is known of an instruction that something returns to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// The bytes pushed there since the function's entry: a multiple of 8.
    pub depth: u32,
    /// Whether its function leaves by a tail call anywhere.
    pub tail_calls: bool,
}

fn check_features(name: &str, needs: u32, has: u32) -> Result<(), LoadError> {
    match needs & !has {
        0 => Ok(()),
        missing => Err(LoadError::Features {
            name: name.into(),
            missing,
        }),
    }
}

/// Where the host may enter: exported functions, constructors and destructors.
fn entries(parsed: &Parsed, budget: &mut Budget) -> Result<Vec<u32>, Exceeded> {
    let text = &parsed.loads[parsed.text];
    let entry = |s: &&Symbol| s.exported && s.kind == e::STT_FUNC.0 && text.contains(s.value.into(), 1);
    let functions = parsed.symbols.iter().filter(entry);
    let count = functions.clone().count() + parsed.constructors.len() + parsed.destructors.len();
    let mut entries = budget.vec(count)?;
    entries.extend(functions.map(|s| s.value));
    entries.extend_from_slice(&parsed.constructors);
    entries.extend_from_slice(&parsed.destructors);
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

fn exports(
    parsed: &Parsed,
    report: &Report,
    file: &[u8],
    budget: &mut Budget,
) -> Result<Vec<Export>, Exceeded> {
    let kind = |s: &Symbol| {
        if s.kind == e::STT_TLS.0 {
            parsed.tls.filter(|t| s.value <= t.len)?;
            return Some(ExportKind::ThreadLocal);
        }
        if s.kind == e::STT_FUNC.0 {
            report.function_with_entry(s.value)?;
            return Some(ExportKind::Function);
        }
        parsed
            .loads
            .iter()
            .find(|l| l.kind != SegmentKind::Text && l.contains(s.value.into(), 0))?;
        Some(ExportKind::Object)
    };
    let mut exports = budget.vec(parsed.symbols.iter().filter(|s| s.exported).count())?;
    for s in parsed.symbols.iter().filter(|s| s.exported) {
        let Some(kind) = kind(s) else { continue };
        exports.push(Export {
            name: budget.text(s.name(file))?,
            kind,
            offset: s.value,
            size: s.size,
        });
    }
    Ok(exports)
}

fn imports(parsed: &Parsed, file: &[u8], budget: &mut Budget) -> Result<Vec<Import>, Exceeded> {
    let foreign = |r: &&Relocation| {
        r.kind != RelocationKind::Relative && r.symbol != 0 && !parsed.symbols[r.symbol as usize].defined
    };
    let mut used = budget.vec(parsed.relocations.iter().filter(foreign).count())?;
    used.extend(parsed.relocations.iter().filter(foreign).map(|r| r.symbol));
    used.sort_unstable();
    used.dedup();
    let mut imports = budget.vec(used.len())?;
    for symbol in used {
        let symbol = &parsed.symbols[symbol as usize];
        let name = symbol.name(file);
        let function = name.strip_prefix(note::IMPORT_PREFIX);
        imports.push(Import {
            name: budget.text(function.unwrap_or(name))?,
            function: function.is_some(),
            weak: symbol.weak,
        });
    }
    Ok(imports)
}

/// Rejections with the names of the functions they are in, one a line.
fn describe(rejected: &ringfence_verify::Rejected, symbols: &[Symbol], file: &[u8]) -> String {
    const SHOWN: usize = 10;
    let mut text = String::from("the verifier rejects the code:");
    for r in rejected.rejections.iter().take(SHOWN) {
        let inside = |s: &&Symbol| {
            s.defined
                && s.kind == e::STT_FUNC.0
                && r.offset
                    .checked_sub(s.value)
                    .is_some_and(|inside| u64::from(inside) < s.size)
        };
        let function = symbols
            .iter()
            .find(inside)
            .map(|s| format!(" in {}", plain(s.name(file))))
            .unwrap_or_default();
        text += &format!("\n  {r}{function}");
    }
    let more = rejected.rejections.len().saturating_sub(SHOWN);
    if more > 0 || rejected.truncated {
        text += &format!(
            "\n  and {more}{} more",
            if rejected.truncated { " or" } else { "" }
        );
    }
    text
}

/// The name that debuggers and profilers find in the process's map: `ringfence:` and the file's own name.
fn memory_name(name: &str) -> std::ffi::CString {
    let file = name.rsplit('/').next().unwrap_or(name);
    let plain: String = file.chars().filter(|c| c.is_ascii_graphic()).take(200).collect();
    // No NUL is graphic.
    std::ffi::CString::new(format!("ringfence:{plain}")).unwrap_or_default()
}
