//! Loading: the steps from a file's bytes to a verified image, in their order.
//!
//! The file is [taken apart](elf), its demands are compared with what host and machine allow, its label identifiers are moved to
//! numbers that no other module of the process has, and all is laid out in a sealed memory file: text with every byte behind it
//! `int3`, pristine data. What is verified is that memory, which nobody can change any more, and domains map that memory.

use crate::load::elf::{self, Load, Parsed, Relocation, RelocationKind, Symbol};
use crate::load::labels;
use crate::load::names::{Names, plain};
use crate::load::options::LoadOptions;
use crate::load::stubs;
use crate::load::symbols::{Export, ExportKind, Import};
use crate::os::host;
use crate::os::sys::{self, Scratch, View};
use object::elf as e;
use ringfence_core::KeptFile;
use ringfence_core::error::LoadError;
use ringfence_core::work::{Budget, Exceeded};
use ringfence_isa::{Isolation, identifier, note};
use ringfence_verify::{IdPlace, Image, Report, Rules, SegmentKind};
use std::os::fd::{AsFd, OwnedFd};

/// What loading a file leaves.
pub(crate) struct Loaded {
    pub parsed: Parsed,
    /// The sealed image, behind [`stubs::LEAD`] bytes of stubs.
    pub file: KeptFile,
    pub report: Report,
    pub exports: Vec<Export>,
    pub by_name: Names,
    /// What relocations need from elsewhere: numbers of symbols, ascending; and the same as imports.
    pub foreign: Vec<u32>,
    pub imports: Vec<Import>,
    pub isolation: Isolation,
    /// Keeps the numbers of its labels from being handed out again.
    _labels: labels::Range,
}

/// All steps.
pub(crate) fn load(name: &str, bytes: &[u8], options: &LoadOptions) -> Result<Loaded, LoadError> {
    let host = host::begin()?;
    let len = bytes.len() as u64;
    let mut step = Steps {
        name,
        bytes,
        options,
        budget: Budget::for_file(len),
    };
    step.pay(len)?;
    let parsed = elf::parse(name, bytes, &mut step.budget)?;
    let isolation = step.accept_isolation(&parsed)?;
    step.accept_features(parsed.note.features, host.features)?;
    let (labels, places) = step.number_labels(&parsed)?;
    let (file, text) = step.seal(&parsed, &places)?;
    let report = step.verify(&parsed, &text, isolation, &labels)?;
    step.accept_features(report.features, host.features)?;
    let exports = step.bounded(|b| exports(&parsed, &report, bytes, b))?;
    let by_name = step.bounded(|b| Names::new(&exports, b))?;
    let foreign = step.bounded(|b| foreign(&parsed, b))?;
    let imports = step.bounded(|b| imports(&parsed, &foreign, bytes, b))?;
    Ok(Loaded {
        parsed,
        file: KeptFile::new(file)?,
        report,
        exports,
        by_name,
        foreign,
        imports,
        isolation,
        _labels: labels,
    })
}

/// What the steps share.
struct Steps<'a> {
    name: &'a str,
    bytes: &'a [u8],
    options: &'a LoadOptions,
    budget: Budget,
}

impl Steps<'_> {
    /// Work under the budget, whose error names the module.
    fn bounded<T>(&mut self, work: impl FnOnce(&mut Budget) -> Result<T, Exceeded>) -> Result<T, LoadError> {
        work(&mut self.budget).map_err(|source| LoadError::Exceeded {
            name: self.name.into(),
            source,
        })
    }

    fn pay(&mut self, bytes: u64) -> Result<(), LoadError> {
        self.bounded(|b| b.bytes(bytes))
    }

    fn rejected(&self, reason: String) -> LoadError {
        LoadError::Rejected {
            name: self.name.into(),
            reason,
        }
    }

    /// What the module's accesses are confined to, if the host takes that.
    fn accept_isolation(&self, parsed: &Parsed) -> Result<Isolation, LoadError> {
        let name = || self.name.into();
        match note::isolation(parsed.note.flags) {
            Some(Isolation::Integrity) if !self.options.allow_integrity => {
                Err(LoadError::Integrity { name: name() })
            }
            Some(Isolation::Words) if !self.options.allow_words => Err(LoadError::Words { name: name() }),
            Some(isolation) => Ok(isolation),
            None => Err(self.rejected("its note claims two kinds of isolation".to_owned())),
        }
    }

    /// The processor has what the code uses.
    fn accept_features(&self, needs: u32, has: u32) -> Result<(), LoadError> {
        match needs & !has {
            0 => Ok(()),
            missing => Err(LoadError::Features {
                name: self.name.into(),
                missing,
            }),
        }
    }

    /// What a segment has in the file.
    fn in_file(&self, load: &Load) -> &[u8] {
        &self.bytes[load.file_offset..load.file_offset + load.file_len as usize]
    }

    /// Numbers for the labels, and where in the text they stand, with them.
    fn number_labels(&mut self, parsed: &Parsed) -> Result<(labels::Range, Vec<IdPlace>), LoadError> {
        let text = parsed.loads[parsed.text];
        let mut places = ringfence_verify::identifiers(self.in_file(&text), text.start)
            .map_err(|r| self.rejected(r.to_string()))?;
        let mut numbers: Vec<u32> = self.bounded(|b| b.vec(places.len()))?;
        numbers.extend(places.iter().map(|p| p.id));
        numbers.sort_unstable();
        numbers.dedup();
        if numbers.len() > self.options.max_labels {
            return Err(LoadError::Labels {
                name: self.name.into(),
                wanted: numbers.len(),
                limit: self.options.max_labels,
            });
        }
        let range = labels::Range::take(numbers.len()).map_err(|free| LoadError::Identifiers {
            name: self.name.into(),
            wanted: numbers.len(),
            free,
        })?;
        for place in &mut places {
            let number = numbers.binary_search(&place.id).expect("all places' are there");
            let number = range.number(number).expect("so many were taken");
            place.id = identifier::label(number).expect("ranges hold label numbers only");
        }
        Ok((range, places))
    }

    /// Stubs and the image in a memory file that nobody can change, and its text as the verifier is to see it. The text's labels get
    /// their numbers on the way, part by part: room for all of it would cost a page fault for each page.
    fn seal(&mut self, parsed: &Parsed, places: &[IdPlace]) -> Result<(OwnedFd, Text), LoadError> {
        // What the file's pages in memory will take.
        self.pay(stubs::LEAD.into())?;
        for load in &parsed.loads {
            self.pay((load.file_page_end() - load.page_start()).into())?;
        }
        let lead = u64::from(stubs::LEAD);
        let text = parsed.loads[parsed.text];
        let pages = (text.page_end() - text.start) as usize;
        let mut part: Vec<u8> = self.bounded(|b| b.vec(pages.min(Text::PART)))?;
        let len = lead + u64::from(parsed.image_len);
        let file = sys::sealed_file_of(&memory_name(self.name), len, |file| {
            file.put(0, stubs::lead())?;
            for (_, load) in parsed.loads.iter().enumerate().filter(|(n, _)| *n != parsed.text) {
                file.put(lead + u64::from(load.start), self.in_file(load))?;
            }
            for at in (0..pages).step_by(Text::PART) {
                let end = pages.min(at + Text::PART);
                let code = self.in_file(&text).get(at..).unwrap_or_default();
                part.clear();
                part.extend_from_slice(&code[..code.len().min(end - at)]);
                part.resize(end - at, 0xCC);
                write_labels(&mut part, text.start + at as u32, places);
                file.put(lead + u64::from(text.start) + at as u64, &part)?;
            }
            Ok(())
        })?;
        if pages <= Text::PART {
            return Ok((file, Text::Copy(part.into())));
        }
        self.budget.give_back(part.capacity() as u64);
        let view = View::new(file.as_fd(), lead + u64::from(text.start), pages as u64)?;
        Ok((file, Text::View(view)))
    }

    /// The verdict.
    fn verify(
        &mut self,
        parsed: &Parsed,
        text: &Text,
        isolation: Isolation,
        labels: &labels::Range,
    ) -> Result<Report, LoadError> {
        let segments: Vec<_> = parsed
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
            addressing: self.options.addressing,
            label_numbers: labels.inclusive(),
            allow_tsc: self.options.allow_tsc,
            ..Rules::default()
        };
        let image = Image {
            text: text.bytes(),
            text_address: parsed.loads[parsed.text].start,
            segments: &segments,
            image_offset: None,
        };
        let entries = self.bounded(|b| entries(parsed, b))?;
        let verdict = match Scratch::new(text.bytes().len() + ringfence_verify::MARGIN) {
            Some(mut notes) => ringfence_verify::verify_in(notes.bytes(), &image, &entries, &rules),
            None => ringfence_verify::verify(&image, &entries, &rules),
        };
        verdict.map_err(|r| self.rejected(describe(&r, &parsed.symbols, self.bytes)))
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
    /// So much is written at a time, and kept as a copy if it is all.
    const PART: usize = 64 << 10;

    fn bytes(&self) -> &[u8] {
        match self {
            Text::Copy(code) => code,
            Text::View(view) => view.bytes(),
        }
    }
}

/// Writes labels into the part of the text that begins at `start`; `places` are in order, and may have one at either end of which
/// only some bytes lie there.
fn write_labels(part: &mut [u8], start: u32, places: &[IdPlace]) {
    let end = start + part.len() as u32;
    let first = places.partition_point(|place| place.offset + 4 <= start);
    for place in places[first..].iter().take_while(|place| place.offset < end) {
        for (at, byte) in (place.offset..).zip(place.id.to_le_bytes()) {
            if (start..end).contains(&at) {
                part[(at - start) as usize] = byte;
            }
        }
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

fn foreign(parsed: &Parsed, budget: &mut Budget) -> Result<Vec<u32>, Exceeded> {
    let foreign = |r: &&Relocation| {
        r.kind != RelocationKind::Relative && r.symbol != 0 && !parsed.symbols[r.symbol as usize].defined
    };
    let mut used = budget.vec(parsed.relocations.iter().filter(foreign).count())?;
    used.extend(parsed.relocations.iter().filter(foreign).map(|r| r.symbol));
    used.sort_unstable();
    used.dedup();
    Ok(used)
}

fn imports(
    parsed: &Parsed,
    foreign: &[u32],
    file: &[u8],
    budget: &mut Budget,
) -> Result<Vec<Import>, Exceeded> {
    let mut imports = budget.vec(foreign.len())?;
    for &symbol in foreign {
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

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_verify::IdKind;

    #[test]
    fn labels_are_written_whole_wherever_parts_end() {
        let place = |offset, id| IdPlace {
            offset,
            id,
            kind: IdKind::Marker,
        };
        let places = [
            place(100, 0x0403_0201),
            place(104, 0x0807_0605),
            place(120, 0xA0B0_C0D0),
        ];
        let mut whole = [0u8; 32];
        write_labels(&mut whole, 98, &places);
        assert_eq!(whole[..12], [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0]);
        assert_eq!(whole[22..26], [0xD0, 0xC0, 0xB0, 0xA0]);
        for part in 1..=whole.len() {
            let mut parts = [0u8; 32];
            for (n, bytes) in parts.chunks_mut(part).enumerate() {
                write_labels(bytes, 98 + (n * part) as u32, &places);
            }
            assert_eq!(parts, whole, "in parts of {part}");
        }
    }
}
