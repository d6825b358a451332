//! Puts files and bare code before the verifier, and says where and what it refuses.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, Instruction};
use ringfence_core::work::{Budget, Exceeded};
use ringfence_debug::Name;
use ringfence_isa::{Isolation, PAGE, note};
pub use ringfence_verify::{Report, Rules};
use ringfence_verify::{Segment, SegmentKind};

use crate::image::{Image, ImageError, SymbolKind};

/// A refused place, as a reader wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Address in the image (or offset in bare code).
    pub offset: u64,
    /// Function and offset in it.
    pub symbol: Option<String>,
    /// Source file and line, when there is debug information.
    pub line: Option<String>,
    /// The instruction in AT&T syntax.
    pub instruction: String,
    /// The bytes there.
    pub bytes: Vec<u8>,
    /// Number of the broken rule.
    pub rule: u8,
    /// The reason's name.
    pub name: &'static str,
    /// The reason in words.
    pub reason: String,
}

/// What the verifier says of a file.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// What gates need to know, if the code was accepted.
    pub report: Option<Report>,
    /// What was refused.
    pub findings: Vec<Finding>,
    /// Whether there was more.
    pub truncated: bool,
    /// Which isolation was demanded.
    pub isolation: Isolation,
    /// Bytes of text.
    pub text: usize,
    /// Why the findings do not all have their lines, if what they are looked up in takes too much.
    pub cut: Option<Exceeded>,
}

impl Verdict {
    /// Whether the code was accepted.
    #[must_use]
    pub fn accepted(&self) -> bool {
        self.report.is_some()
    }

    /// The refusals as an error message; `strangers` are inputs that `ringfence cc` did not make.
    #[must_use]
    pub fn explain(&self, path: &str, strangers: &[String]) -> String {
        const SHOWN: usize = 10;
        let mut text = format!("{path}: the verifier rejects the module, so it was not written");
        for f in self.findings.iter().take(SHOWN) {
            text.push_str(&format!("\n    {f}"));
        }
        if self.findings.len() > SHOWN || self.truncated {
            let least = if self.truncated { "at least " } else { "" };
            let more = self.findings.len().saturating_sub(SHOWN);
            text.push_str(&format!("\n    … and {least}{more} more"));
        }
        if strangers.is_empty() {
            text.push_str("\n    (--no-verify writes it all the same; no host will load it)");
        } else {
            let shown: Vec<&str> = strangers.iter().take(5).map(String::as_str).collect();
            text.push_str(&format!("\n    not built by ringfence cc: {}", shown.join(", ")));
            if strangers.len() > shown.len() {
                text.push_str(&format!(" and {} more", strangers.len() - shown.len()));
            }
        }
        text
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.offset)?;
        if let Some(symbol) = &self.symbol {
            write!(f, " <{symbol}>")?;
        }
        if let Some(line) = &self.line {
            write!(f, " {line}")?;
        }
        write!(f, ": {}: rule {}: {}", self.instruction, self.rule, self.reason)
    }
}

/// Verifies a module file by the isolation that its note claims.
///
/// # Errors
///
/// The file is not a module.
pub fn check(data: &[u8], rules: &Rules) -> Result<Verdict, ImageError> {
    let mut budget = Budget::for_file(data.len() as u64);
    budget.bytes(data.len() as u64)?;
    check_image(&Image::within(data, &mut budget)?, rules, &mut budget)
}

/// What the verifier takes at most for each byte of text, and besides (docs/security/loading.md).
const VERIFIER: (u64, u64) = (4, 512 << 10);

/// The same, for what was read already and under what is left of its budget.
pub(crate) fn check_image(
    image: &Image<'_>,
    rules: &Rules,
    budget: &mut Budget,
) -> Result<Verdict, ImageError> {
    let note = image.require_note()?;
    let mut rules = rules.clone();
    // What claims two kinds obeys the rules of neither by its claim; hosts refuse it.
    rules.isolation = note::isolation(note.flags).unwrap_or_default();
    let len = image.text.file.next_multiple_of(PAGE);
    let cost = (1 + VERIFIER.0) * len + VERIFIER.1;
    budget.bytes(cost)?;
    let text = image.text_pages();
    let segments = image.segments();
    let verdict = ringfence_verify::verify(
        &ringfence_verify::Image {
            text: &text,
            text_address: image.text.address as u32,
            segments: &segments,
            image_offset: None,
        },
        &entries(image, budget)?,
        &rules,
    );
    let verdict = finish(
        verdict,
        &rules,
        text.len(),
        &text,
        image.text.address,
        |offsets| {
            let (lines, cut) = lines(image.data, offsets, budget);
            let symbols = offsets.iter().map(|&at| image.place(at));
            (symbols.zip(lines).collect(), cut)
        },
    );
    budget.give_back(cost);
    Ok(verdict)
}

/// `file:line` of some addresses; and what was exceeded if they are not all that could be told.
fn lines(file: &[u8], offsets: &[u64], budget: &mut Budget) -> (Vec<Option<String>>, Option<Exceeded>) {
    let (mut lines, mut cut) = (Vec::new(), None);
    for some in offsets.chunks(ringfence_debug::MOST) {
        let (names, exceeded) = ringfence_debug::look_up(file, some, budget);
        cut = cut.or(exceeded);
        lines.extend(names.into_iter().map(|names| {
            let Name { file, line, .. } = names.into_iter().next()?;
            Some(format!("{}:{}", String::from_utf8_lossy(&file?), line?))
        }));
    }
    (lines, cut)
}

/// Where a host may enter a module: exported functions and initialisers.
///
/// # Errors
///
/// The budget does not suffice.
pub fn entries(image: &Image<'_>, budget: &mut Budget) -> Result<Vec<u32>, Exceeded> {
    let text = image.text.address..image.text.address + image.text.memory;
    let functions = image
        .dynamic
        .iter()
        .filter(|s| s.defined && s.kind == SymbolKind::Function)
        .map(|s| s.address)
        .chain(image.initialisers.iter().map(|(_, a)| *a))
        .filter(|a| text.contains(a));
    let mut entries = budget.vec(functions.clone().count())?;
    entries.extend(functions.map(|a| a as u32));
    entries.sort_unstable();
    entries.dedup();
    Ok(entries)
}

/// Verifies bare code as if it stood at address 0 of an image of its own.
#[must_use]
pub fn check_raw(code: &[u8], entries: &[u32], rules: &Rules) -> Verdict {
    let mut text = code.to_vec();
    text.resize(
        text.len().next_multiple_of(PAGE as usize).max(PAGE as usize),
        0xCC,
    );
    let segments = [Segment {
        start: 0,
        len: u32::try_from(text.len()).unwrap_or(u32::MAX),
        kind: SegmentKind::Text,
    }];
    let verdict = ringfence_verify::verify(
        &ringfence_verify::Image {
            text: &text,
            text_address: 0,
            segments: &segments,
            image_offset: None,
        },
        entries,
        rules,
    );
    finish(verdict, rules, code.len(), &text, 0, |offsets| {
        (vec![(None, None); offsets.len()], None)
    })
}

/// The name and the line of a place.
type Place = (Option<String>, Option<String>);

fn finish(
    verdict: Result<Report, ringfence_verify::Rejected>,
    rules: &Rules,
    len: usize,
    text: &[u8],
    base: u64,
    places: impl FnOnce(&[u64]) -> (Vec<Place>, Option<Exceeded>),
) -> Verdict {
    let isolation = rules.isolation;
    match verdict {
        Ok(report) => Verdict {
            report: Some(report),
            findings: Vec::new(),
            truncated: false,
            isolation,
            text: len,
            cut: None,
        },
        Err(rejected) => {
            let offsets: Vec<u64> = rejected.rejections.iter().map(|r| r.offset.into()).collect();
            let (places, cut) = places(&offsets);
            let findings = rejected.rejections.iter().zip(places).map(|(r, (symbol, line))| {
                let offset = u64::from(r.offset);
                let bytes = offset
                    .checked_sub(base)
                    .and_then(|at| text.get(at as usize..))
                    .map_or(r.bytes.as_slice(), |b| &b[..b.len().min(15)]);
                let (instruction, len) = disassemble(bytes, offset);
                Finding {
                    offset,
                    symbol,
                    line,
                    instruction,
                    bytes: bytes[..len.min(bytes.len())].to_vec(),
                    rule: r.rule.0,
                    name: r.reason.name(),
                    reason: r.reason.to_string(),
                }
            });
            Verdict {
                report: None,
                findings: findings.collect(),
                truncated: rejected.truncated,
                isolation,
                text: len,
                cut,
            }
        }
    }
}

/// The instruction at the start of `bytes` in AT&T syntax, and its length.
#[must_use]
pub fn disassemble(bytes: &[u8], address: u64) -> (String, usize) {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let instruction: Instruction = decoder.decode();
    if instruction.is_invalid() {
        return ("(bad)".to_owned(), bytes.len().min(8));
    }
    let mut formatter = GasFormatter::new();
    formatter.options_mut().set_uppercase_hex(false);
    formatter.options_mut().set_space_after_operand_separator(true);
    let mut text = String::new();
    formatter.format(&instruction, &mut text);
    (text, instruction.len())
}
