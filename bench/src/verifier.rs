//! How fast the verifier is.

use crate::Cost;
use crate::build::Kitchen;
use crate::configuration::Configuration;
use crate::measure::{interleave, thread_seconds};
use crate::program;
use object::elf::{FileHeader64, PF_W, PF_X, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};
use ringfence_verify::{Image, Rules, Segment, SegmentKind};
use std::hint::black_box;

/// Megabytes of text per second, on zlib's text.
pub fn measure(kitchen: &Kitchen, runs: usize) -> Result<Cost, String> {
    let mut programs = program::all()?;
    let zlib = programs
        .iter_mut()
        .find(|p| p.name == "zlib")
        .ok_or("there is no zlib")?;
    program::complete(zlib)?;
    let module = kitchen.build(zlib, Configuration::Full)?;
    let bytes = std::fs::read(&module.file).map_err(|e| e.to_string())?;
    let (text, text_address, segments) = parts(&bytes).map_err(|e| e.to_string())?;
    let image = Image {
        text,
        text_address,
        segments: &segments,
        image_offset: None,
    };
    let rules = Rules::default();
    let turns = (2 << 20) / text.len().max(1) + 1;
    let subject = || {
        let start = thread_seconds();
        for _ in 0..turns {
            black_box(ringfence_verify::verify(&image, &[], &rules))
                .map_err(|r| format!("zlib is rejected: {r:?}"))?;
        }
        Ok((text.len() * turns) as f64 / (thread_seconds() - start) / 1e6)
    };
    subject()?;
    let summary = interleave(runs, &mut [("verifier", Box::new(subject))])?[0];
    Ok(Cost {
        name: "verifier".into(),
        unit: "MB/s".into(),
        summary,
        target: "200 MB/s".into(),
        ratio: None,
    })
}

type Parts<'a> = (&'a [u8], u32, Vec<Segment>);

fn parts(bytes: &[u8]) -> object::Result<Parts<'_>> {
    let header = FileHeader64::<object::Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let mut segments = Vec::new();
    let mut text = (&bytes[..0], 0);
    for segment in header.program_headers(endian, bytes)? {
        if segment.p_type(endian) != PT_LOAD {
            continue;
        }
        let start = segment.p_vaddr(endian) as u32;
        let flags = segment.p_flags(endian);
        let kind = match ((flags & PF_X).0 != 0, (flags & PF_W).0 != 0) {
            (true, _) => SegmentKind::Text,
            (_, true) => SegmentKind::Data,
            _ => SegmentKind::ReadOnly,
        };
        segments.push(Segment {
            start,
            len: segment.p_memsz(endian) as u32,
            kind,
        });
        if kind == SegmentKind::Text {
            text = (segment.data(endian, bytes).unwrap_or_default(), start);
        }
    }
    Ok((text.0, text.1, segments))
}
