//! What a module is made of, for people and for scripts.

use ringfence_isa::Addressing;
use ringfence_isa::note::{self, IMPORT_PREFIX};
use ringfence_isa::window::feature;

use crate::check::{Rules, check};
use crate::image::{Image, ImageError, SymbolKind};

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
    let image = Image::parse(data)?;
    let note = image.require_note()?;
    let kind = |k: SymbolKind| match k {
        SymbolKind::Function => "function",
        SymbolKind::Object => "object",
        SymbolKind::Tls => "thread-local",
        SymbolKind::Untyped => "label",
    };
    let mut exports: Vec<SymbolInfo> = image
        .dynamic
        .iter()
        .filter(|s| s.defined)
        .map(|s| SymbolInfo {
            name: s.name.clone(),
            kind: kind(s.kind),
            address: Some(s.address),
            size: Some(s.size),
        })
        .collect();
    exports.sort_by(|a, b| a.name.cmp(&b.name));
    let mut imports: Vec<SymbolInfo> = image
        .dynamic
        .iter()
        .filter(|s| !s.defined)
        .map(|s| {
            let function = s.name.strip_prefix(IMPORT_PREFIX);
            SymbolInfo {
                name: function.unwrap_or(&s.name).to_owned(),
                kind: match function {
                    Some(_) => "function",
                    None if s.weak => "weak",
                    None => "object",
                },
                address: None,
                size: None,
            }
        })
        .collect();
    imports.sort_by(|a, b| a.name.cmp(&b.name));
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
    let report = check(data, &Rules::default())?.report;
    let sum = |rights: &str| {
        segments
            .iter()
            .filter(|s| s.rights == rights)
            .map(|s| s.memory)
            .sum()
    };
    Ok(Info {
        abi: note.version,
        isolation: if note.flags & note::flag::INTEGRITY != 0 {
            "integrity"
        } else {
            "full"
        },
        addressing: report.as_ref().map(|r| match r.through_r14 {
            true => Addressing::Any.name(),
            false => Addressing::Segment.name(),
        }),
        check: note.flags & note::flag::CHECK != 0,
        features: feature_names(note.features),
        accepted: report.is_some(),
        used: report.map(|r| {
            let mut used = feature_names(r.features);
            used.extend(r.uses_x87.then_some("x87"));
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
