//! Reads the cases in `tests/verifier`, described in the README there, and runs the verifier on them.

// Not every test that includes this uses all of it.
#![allow(dead_code)]

use ringfence_isa::{Addressing, Isolation};
use ringfence_verify::{Image, Rejected, Report, Rules, Segment, SegmentKind, verify};
use std::path::Path;
use std::process::Command;

const TEXT_ADDRESS: u32 = 0x1000;
const PAGE: usize = 4096;
/// Stands for whatever rule comes first.
const ANY_RULE: u8 = u8::MAX;

/// A case, as its file says it.
pub struct Case {
    pub text: Vec<u8>,
    text_address: u32,
    segments: Option<Vec<Segment>>,
    image_offset: Option<u32>,
    entries: Vec<u32>,
    rules: Rules,
    /// Rule number, name of the reason, and address if given; `None` for a case that is accepted.
    pub rejection: Option<(u8, String, Option<u32>)>,
    /// What the report must say of the first function.
    report: Vec<String>,
    pad: bool,
}

fn number(s: &str) -> Result<u32, String> {
    let parsed = match s.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => s.parse(),
    };
    parsed.map_err(|e| format!("{s}: {e}"))
}

pub fn parse(source: &str) -> Result<Case, String> {
    let mut case = Case {
        text: Vec::new(),
        text_address: TEXT_ADDRESS,
        segments: None,
        image_offset: Some(0x10_0000),
        entries: vec![TEXT_ADDRESS],
        rules: Rules {
            label_numbers: 1..=0x0FFF,
            ..Rules::default()
        },
        rejection: None,
        report: Vec::new(),
        pad: true,
    };
    let (head, code) = source
        .split_once("\n\n")
        .ok_or("no empty line between header and code")?;
    let mut verdict = None;
    for line in head.lines() {
        let (key, value) = line
            .split_once(':')
            .ok_or_else(|| format!("header line without colon: {line}"))?;
        let words: Vec<&str> = value.split_whitespace().collect();
        match (key, words.as_slice()) {
            ("what", [_, ..]) => {}
            ("verdict", ["accept"]) => verdict = Some(true),
            ("verdict", ["reject"]) => verdict = Some(false),
            ("rule", ["any"]) => case.rejection = Some((ANY_RULE, String::new(), None)),
            ("rule", [rule, reason]) => {
                case.rejection = Some((number(rule)? as u8, (*reason).to_string(), None));
            }
            ("rule", [rule, reason, "at", place]) => {
                case.rejection = Some((number(rule)? as u8, (*reason).to_string(), Some(number(place)?)));
            }
            ("isolation", ["integrity"]) => case.rules.isolation = Isolation::Integrity,
            ("isolation", ["words"]) => case.rules.isolation = Isolation::Words,
            ("addressing", ["segment"]) => case.rules.addressing = Addressing::Segment,
            ("entries", list) => case.entries = list.iter().map(|e| number(e)).collect::<Result<_, _>>()?,
            ("labels", [first, last]) => {
                case.rules.label_numbers = number(first)? as u16..=number(last)? as u16
            }
            ("tsc", ["allowed"]) => case.rules.allow_tsc = true,
            ("x87", ["refused"]) => case.rules.allow_x87 = false,
            ("image-offset", ["unknown"]) => case.image_offset = None,
            ("image-offset", [offset]) => case.image_offset = Some(number(offset)?),
            ("text-address", [address]) => {
                case.text_address = number(address)?;
                case.entries = vec![case.text_address];
            }
            ("padding", ["none"]) => case.pad = false,
            ("segment", [start, len, kind]) => {
                let kind = match *kind {
                    "text" => SegmentKind::Text,
                    "read-only" => SegmentKind::ReadOnly,
                    "data" => SegmentKind::Data,
                    other => return Err(format!("unknown kind of segment: {other}")),
                };
                let segment = Segment {
                    start: number(start)?,
                    len: number(len)?,
                    kind,
                };
                case.segments.get_or_insert_default().push(segment);
            }
            ("report", facts) => case.report = facts.iter().map(|f| (*f).to_string()).collect(),
            _ => return Err(format!("unknown header line: {line}")),
        }
    }
    if verdict.ok_or("no verdict")? != case.rejection.is_none() {
        return Err("verdict and rule do not go together".into());
    }
    for line in code.lines().filter(|l| !l.trim().is_empty()) {
        if let Some(offset) = line.strip_prefix("@ ") {
            let offset = number(offset.split_whitespace().next().unwrap_or_default())? as usize;
            if offset < case.text.len() {
                return Err(format!("{line}: the code is beyond that already"));
            }
            case.text.resize(offset, 0xCC);
            continue;
        }
        let bytes = line.split("  ").next().unwrap_or_default();
        for byte in bytes.split_whitespace() {
            case.text
                .push(u8::from_str_radix(byte, 16).map_err(|e| format!("{line}: {e}"))?);
        }
    }
    if case.pad {
        case.text
            .resize(case.text.len().next_multiple_of(PAGE).max(PAGE), 0xCC);
    }
    Ok(case)
}

pub fn run(case: &Case) -> Result<Report, Rejected> {
    let len = case.text.len() as u32;
    let usual = vec![
        Segment {
            start: 0,
            len: 0x1000,
            kind: SegmentKind::ReadOnly,
        },
        Segment {
            start: TEXT_ADDRESS,
            len,
            kind: SegmentKind::Text,
        },
        Segment {
            start: (TEXT_ADDRESS + len).next_multiple_of(4096),
            len: 0x1000,
            kind: SegmentKind::Data,
        },
    ];
    let segments = case.segments.as_ref().unwrap_or(&usual);
    let image = Image {
        text: &case.text,
        text_address: case.text_address,
        segments,
        image_offset: case.image_offset,
    };
    verify(&image, &case.entries, &case.rules)
}

/// The report's facts about the first function, in the words that a case's `report:` line uses.
fn facts(report: &Report) -> Vec<String> {
    let Some(f) = report.functions().next() else {
        return vec!["functions=0".into()];
    };
    let mut facts = vec![
        format!("functions={}", report.functions().len()),
        format!("depth={}", f.max_depth),
        format!("features={:#x}", report.features),
        format!("labels={}", report.labels.len()),
        format!("pads={}", report.pads.len()),
    ];
    for (set, word) in [
        (f.marked, "marked"),
        (report.uses_vector, "vector"),
        (report.uses_x87, "x87"),
    ] {
        facts.push(format!("{}{word}", if set { "" } else { "no-" }));
    }
    facts
}

/// Whether the verifier accepts what it must not, or reports of what it accepts what is not so.
pub fn slips(case: &Case) -> bool {
    match (run(case), &case.rejection) {
        (Ok(_), Some(_)) => true,
        (Ok(report), None) => {
            let facts = facts(&report);
            !case.report.iter().all(|f| facts.contains(f))
        }
        (Err(_), _) => false,
    }
}

pub fn check(source: &str) -> Result<(), String> {
    let case = parse(source)?;
    match (run(&case), &case.rejection) {
        (Ok(report), None) => {
            let facts = facts(&report);
            match case.report.iter().find(|f| !facts.contains(f)) {
                Some(missing) => Err(format!("report lacks {missing}; it says {}", facts.join(" "))),
                None => Ok(()),
            }
        }
        (Ok(_), Some((rule, reason, _))) => Err(format!("ACCEPTED, expected rule {rule} {reason}")),
        (Err(rejected), None) => Err(format!("{rejected} ({})", rejected.rejections[0].reason.name())),
        (Err(rejected), Some((rule, reason, place))) => {
            let first = &rejected.rejections[0];
            let same = *rule == ANY_RULE || first.rule.0 == *rule && first.reason.name() == reason;
            if same && place.is_none_or(|p| p == first.offset) {
                Ok(())
            } else {
                Err(format!(
                    "expected rule {rule} {reason}, got {first} ({})",
                    first.reason.name()
                ))
            }
        }
    }
}

/// All cases: name and content, as `tests/verifier/generate.py` prints them.
pub fn all() -> Vec<(String, String)> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|directory| directory.join("tests/verifier/generate.py"))
        .find(|program| program.exists())
        .expect("tests/verifier/generate.py");
    let made = Command::new("python3").arg("-B").arg(&program).output();
    let made =
        made.unwrap_or_else(|e| panic!("the cases are made by {}, with python3: {e}", program.display()));
    let problem = String::from_utf8_lossy(&made.stderr);
    assert!(made.status.success(), "{}: {problem}", program.display());
    let text = String::from_utf8(made.stdout).expect("cases are text");
    let cases = text.split("=== ").skip(1);
    let cases: Vec<_> = cases
        .map(|case| case.split_once('\n').expect("a name and a case"))
        .map(|(name, source)| (name.to_string(), source.to_string()))
        .collect();
    assert_eq!(
        cases.len(),
        3570,
        "a case was added or lost: see tests/verifier/README.md"
    );
    cases
}
