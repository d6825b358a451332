//! What a module is made of, for people and for scripts.

use ringfence_core::work::{Budget, Exceeded};
use ringfence_isa::note::{self, IMPORT_PREFIX};
use ringfence_isa::window::feature;
use ringfence_isa::{Addressing, Isolation};

use crate::check::{Rules, check_image};
use crate::image::{Image, ImageError, Symbol, SymbolKind};

/// A segment of a module.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SegmentInfo {
    /// Address relative to the image's start.
    pub address: u64,
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes in the file.
    pub file: u64,
    /// `r`, `rw` or `rx`.
    pub rights: &'static str,
}

/// An exported or imported symbol.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SymbolInfo {
    /// Its name.
    pub name: String,
    /// `function`, `object`, `thread-local` or `label`.
    pub kind: &'static str,
    /// Where it is; absent for imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<u64>,
    /// Its size; absent for imports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// Everything [`inspect`] finds out without running anything.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Info {
    /// Version of the interface that the module was built for.
    pub abi: u32,
    /// `full` or `integrity`.
    pub isolation: &'static str,
    /// Whether it reaches memory through `gs` only (`segment`) or also through `r14` (`any`); absent when the verifier rejects it.
    pub addressing: Option<&'static str>,
    /// Built with `--check`.
    pub check: bool,
    /// Instruction set extensions that it was compiled for (`-march=`): a host without them refuses it.
    pub features: Vec<&'static str>,
    /// Instruction set extensions that occur in its code; absent when the verifier rejects it.
    pub used: Option<Vec<&'static str>>,
    /// Whether the verifier accepts it.
    pub accepted: bool,
    /// Segments in order of address.
    pub segments: Vec<SegmentInfo>,
    /// Defined dynamic symbols, by name.
    pub exports: Vec<SymbolInfo>,
    /// What a host, a runtime stub or another module has to provide.
    pub imports: Vec<SymbolInfo>,
    /// Size of the thread-local block.
    pub tls: u64,
    /// Functions that run at load and unload.
    pub initialisers: usize,
    /// Number of relocations by name.
    pub relocations: Vec<(String, usize)>,
    /// Whether there is line information.
    pub debug_info: bool,
    /// Bytes of the file.
    pub file_size: u64,
    /// Bytes of text, read-only data and data in memory.
    pub text: u64,
    /// See `text`.
    pub read_only: u64,
    /// See `text`.
    pub data: u64,
}

const FEATURES: &[(u32, &str)] = &[
    (feature::SSSE3, "ssse3"),
    (feature::SSE4, "sse4"),
    (feature::AVX, "avx"),
    (feature::AVX2, "avx2"),
    (feature::FMA, "fma"),
    (feature::BMI, "bmi"),
    (feature::MOVBE, "movbe"),
    (feature::F16C, "f16c"),
    (feature::AES, "aes"),
    (feature::SHA, "sha"),
    (feature::ERMS, "erms"),
    (feature::ADX, "adx"),
];

/// The names of [`feature`] bits.
#[must_use]
pub fn feature_names(bits: u32) -> Vec<&'static str> {
    FEATURES
        .iter()
        .filter(|(b, _)| bits & b != 0)
        .map(|(_, n)| *n)
        .collect()
}

fn relocation_name(kind: u32) -> String {
    match kind {
        1 => "64".to_owned(),
        6 => "GLOB_DAT".to_owned(),
        7 => "JUMP_SLOT".to_owned(),
        8 => "RELATIVE".to_owned(),
        18 => "TPOFF64".to_owned(),
        other => format!("type {other}"),
    }
}

/// Looks at a module file.
///
/// # Errors
///
/// The file is not a module.
pub fn inspect(data: &[u8]) -> Result<Info, ImageError> {
    let mut budget = Budget::for_file(data.len() as u64);
    budget.bytes(data.len() as u64)?;
    let image = Image::within(data, &mut budget)?;
    let note = image.require_note()?;
    // Not kept: it is large.
    let report = check_image(&image, &Rules::default(), &mut budget)?.report;
    let report = report.map(|r| (r.through_r14, r.features, r.uses_x87));
    let kind = |k: SymbolKind| match k {
        SymbolKind::Function => "function",
        SymbolKind::Object => "object",
        SymbolKind::Tls => "thread-local",
        SymbolKind::Untyped => "label",
    };
    let exports = symbols(&image, true, &mut budget, |s| (s.name, kind(s.kind)))?;
    let imports = symbols(&image, false, &mut budget, |s| {
        match s.name.strip_prefix(IMPORT_PREFIX) {
            Some(function) => (function, "function"),
            None if s.weak => (s.name, "weak"),
            None => (s.name, "object"),
        }
    })?;
    let segments: Vec<SegmentInfo> = image
        .loads
        .iter()
        .map(|l| SegmentInfo {
            address: l.address,
            memory: l.memory,
            file: l.file,
            rights: match (l.executable, l.writable) {
                (true, _) => "rx",
                (false, true) => "rw",
                (false, false) => "r",
            },
        })
        .collect();
    let sum = |rights: &str| {
        segments
            .iter()
            .filter(|s| s.rights == rights)
            .map(|s| s.memory)
            .sum()
    };
    Ok(Info {
        abi: note.version,
        isolation: note::isolation(note.flags).map_or("two", Isolation::name),
        addressing: report.map(|(through_r14, ..)| match through_r14 {
            true => Addressing::Any.name(),
            false => Addressing::Segment.name(),
        }),
        check: note.flags & note::flag::CHECK != 0,
        features: feature_names(note.features),
        accepted: report.is_some(),
        used: report.map(|(_, features, uses_x87)| {
            let mut used = feature_names(features);
            used.extend(uses_x87.then_some("x87"));
            used
        }),
        exports,
        imports,
        tls: image.tls.unwrap_or(0),
        initialisers: image.initialisers.len(),
        relocations: image
            .relocations
            .iter()
            .map(|(k, n)| (relocation_name(*k), *n))
            .collect(),
        debug_info: image.debug_info,
        file_size: data.len() as u64,
        text: sum("rx"),
        read_only: sum("r"),
        data: sum("rw"),
        segments,
    })
}

/// The dynamic symbols that are defined, or those that are not, by their names.
fn symbols(
    image: &Image<'_>,
    defined: bool,
    budget: &mut Budget,
    told: impl for<'a> Fn(&'a Symbol<'a>) -> (&'a str, &'static str),
) -> Result<Vec<SymbolInfo>, Exceeded> {
    let of_kind = |s: &&Symbol<'_>| s.defined == defined;
    let mut symbols = budget.vec(image.dynamic.iter().filter(of_kind).count())?;
    for s in image.dynamic.iter().filter(of_kind) {
        let (name, kind) = told(s);
        symbols.push(SymbolInfo {
            name: budget.text(name)?,
            kind,
            address: defined.then_some(s.address),
            size: defined.then_some(s.size),
        });
    }
    symbols.sort_unstable_by(|a, b| (&a.name, a.address).cmp(&(&b.name, b.address)));
    Ok(symbols)
}
