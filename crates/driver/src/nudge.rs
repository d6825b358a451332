//! Moves bytes that happen to look like an identifier, while there is still assembly to move them in.
//!
//! Two bytes in half a million dwords of code look like the reserved prefix at an address where only markers may
//! have it. The verifier refuses them, so one byte of no-op in front of the instruction moves them elsewhere.

use std::collections::HashSet;

use iced_x86::{Decoder, DecoderOptions, Instruction};
use object::read::elf::ElfFile64;
use object::{
    LittleEndian as Le, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind,
};
use ringfence_isa::identifier::{FUNCTION, MARKER_HEAD};

use crate::error::Error;
use crate::finalize::{accidental, may_shift};
use crate::tools::Tools;

/// How often one file is assembled again at most.
pub(crate) const ATTEMPTS: usize = 6;

/// Looks for accidental identifiers in the object file made from `text`; returns better assembly if there are any.
pub(crate) fn nudge(
    tools: &Tools,
    text: &str,
    object: &str,
    flags: &[String],
) -> Result<Option<String>, Error> {
    let data = std::fs::read(object).map_err(|e| Error::read(object, e))?;
    let hits = offending(&data).unwrap_or_default();
    if hits.is_empty() {
        return Ok(None);
    }
    // The listing is the only thing that tells which line became which bytes.
    let mut args = flags.to_vec();
    let listing_file = format!("{object}.lst");
    args.push(format!("-aln={listing_file}"));
    let assembled = tools.assemble(text, object, &args);
    let listing = std::fs::read_to_string(&listing_file).unwrap_or_default();
    let _ = std::fs::remove_file(&listing_file);
    if assembled.is_err() {
        return Ok(None);
    }
    let lines: HashSet<usize> = hits.iter().filter_map(|h| line_of(&listing, text, h)).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (number, line) in text.lines().enumerate() {
        if lines.contains(&(number + 1)) {
            out.push_str("\tnop\n");
        }
        out.push_str(line);
        out.push('\n');
    }
    Ok(Some(out))
}

/// An instruction that has to move: its section and its offset there.
#[derive(Debug, PartialEq, Eq)]
struct Hit {
    section: String,
    offset: u64,
    len: usize,
}

fn offending(data: &[u8]) -> Result<Vec<Hit>, object::read::Error> {
    let file = ElfFile64::<Le>::parse(data)?;
    let mut hits = Vec::new();
    for section in file.sections() {
        if section.kind() != SectionKind::Text || section.align() < 8 {
            continue;
        }
        let mut code = section.data()?.to_vec();
        for (offset, relocation) in section.relocations() {
            // References inside the section keep their value whatever the linker does; others are left for it.
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let symbol = file.symbol_by_index(index)?;
            let RelocationFlags::Elf { r_type } = relocation.flags() else {
                continue;
            };
            let relative = r_type == object::elf::R_X86_64_PC32 || r_type == object::elf::R_X86_64_PLT32;
            let at = offset as usize;
            if relative
                && symbol.section_index() == Some(section.index())
                && let Some(place) = code.get_mut(at..at + 4)
            {
                let value = symbol
                    .address()
                    .wrapping_add_signed(relocation.addend())
                    .wrapping_sub(offset);
                place.copy_from_slice(&(value as u32).to_le_bytes());
            }
        }
        let mut markers = HashSet::new();
        for at in (0..code.len().saturating_sub(7)).step_by(8) {
            if code[at..at + 4] == MARKER_HEAD && code[at + 4..at + 8] == FUNCTION.to_le_bytes() {
                markers.insert(at + 4);
            }
        }
        let found = accidental(&code, 0, &markers);
        if found.is_empty() {
            continue;
        }
        let mut decoder = Decoder::with_ip(64, &code, 0, DecoderOptions::NONE);
        let mut i = Instruction::default();
        while decoder.can_decode() {
            decoder.decode_out(&mut i);
            // The two bytes of the prefix decide which instruction has to move.
            if found.iter().any(|f| i.ip() < f + 4 && f + 2 < i.next_ip()) && may_shift(&i) {
                hits.push(Hit {
                    section: section.name()?.to_owned(),
                    offset: i.ip(),
                    len: i.len(),
                });
            }
        }
    }
    Ok(hits)
}

/// The source line of the instruction at `hit`, from the assembler's listing.
fn line_of(listing: &str, text: &str, hit: &Hit) -> Option<usize> {
    // A line of the listing: number, address in hex, bytes, source. The section is not shown; the source tells.
    let sections = sections_of(text);
    let mut best = None;
    for line in listing.lines() {
        let mut words = line.split_whitespace();
        let (Some(number), Some(address)) = (words.next(), words.next()) else {
            continue;
        };
        let (Ok(number), Ok(address)) = (number.parse::<usize>(), u64::from_str_radix(address, 16)) else {
            continue;
        };
        if address == hit.offset
            && address.checked_add(hit.len as u64).is_some()
            && sections.get(number - 1).is_some_and(|s| *s == hit.section)
            && is_instruction(text.lines().nth(number - 1).unwrap_or(""))
        {
            best = Some(number);
        }
    }
    best
}

fn is_instruction(line: &str) -> bool {
    let line = line.trim_start();
    !line.is_empty() && !line.starts_with(['.', '#']) && !line.trim_end().ends_with(':')
}

/// For each line, the section that it is in.
fn sections_of(text: &str) -> Vec<String> {
    let mut stack = vec![(".text".to_owned(), ".text".to_owned())];
    text.lines()
        .map(|line| {
            let mut words = line.trim().splitn(2, char::is_whitespace);
            let directive = words.next().unwrap_or("");
            let rest = words.next().unwrap_or("").trim();
            let name = || {
                rest.split([',', ' ', '\t'])
                    .next()
                    .unwrap_or("")
                    .trim_matches('"')
                    .to_owned()
            };
            let top = stack.len() - 1;
            match directive {
                ".text" | ".data" | ".bss" => {
                    let old = std::mem::replace(&mut stack[top].0, directive.to_owned());
                    stack[top].1 = old;
                }
                ".section" => {
                    let old = std::mem::replace(&mut stack[top].0, name());
                    stack[top].1 = old;
                }
                ".pushsection" => {
                    let old = stack[top].0.clone();
                    stack.push((name(), old));
                }
                ".popsection" if top > 0 => {
                    stack.pop();
                }
                ".previous" => {
                    let (now, before) = stack[top].clone();
                    stack[top] = (before, now);
                }
                _ => {}
            }
            stack.last().map_or_else(String::new, |s| s.0.clone())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_followed() {
        let text =
            ".text\nnop\n.section .text.a,\"ax\"\nnop\n.pushsection .x\n.popsection\nnop\n.previous\nnop";
        let s = sections_of(text);
        assert_eq!(
            [&s[1], &s[3], &s[4], &s[6], &s[8]],
            [".text", ".text.a", ".x", ".text.a", ".text"]
        );
    }

    #[test]
    fn directives_are_no_instructions() {
        assert!(is_instruction("\tmovl $1, %eax # x"));
        assert!(!is_instruction(".L1:"));
        assert!(!is_instruction("\t.p2align 4"));
    }
}
