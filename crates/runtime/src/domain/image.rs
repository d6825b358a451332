//! Modules in a window: mapping, relocating, restoring, and the table of imports.

use super::{Inner, Signature, avx};
use crate::domain::imports::Binding;
use crate::domain::relocate::{self, Layout, Resolver, Used};
use crate::domain::slot::Slot;
use crate::lanes::gate::{self, kind, vectors};
use crate::lanes::lane::Import;
use crate::load::elf::{Load, Parsed};
use crate::load::stubs::{self, LEAD};
use crate::os::looks::Looks;
use crate::os::{host, pages, sys};
use ringfence_core::error::{DomainError, HostError};
use ringfence_isa::window;
use ringfence_verify::SegmentKind;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::sync::atomic::AtomicU64;

/// Zeroed data up to this size is mapped from the module's file, which has holes there, so that it is one mapping with the data
/// before it. More is anonymous: that is faster where most of it is used, and may have huge pages.
const ZEROES_IN_FILE: u32 = 256 << 10;

/// Where the part of a segment ends that is mapped from the file.
fn file_mapped_end(load: &Load) -> u32 {
    let (file_end, end) = (load.file_page_end().max(load.page_start()), load.page_end());
    if file_end > load.page_start() && end - file_end <= ZEROES_IN_FILE {
        end
    } else {
        file_end
    }
}

/// One mapping of an image.
#[derive(Clone, Copy)]
struct Piece {
    start: u32,
    end: u32,
    prot: i32,
    from_file: bool,
}

/// What an image consists of, low to high, as few pieces as there can be; with the rights that it has in the end, or those that it
/// needs while relocations are written.
fn pieces(parsed: &Parsed, relocated: bool) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::with_capacity(2 + parsed.loads.len());
    let mut add = |start: u32, end: u32, prot: i32, from_file: bool| match pieces.last_mut() {
        _ if start >= end => {}
        Some(last) if (last.end, last.prot, last.from_file) == (start, prot, from_file) => last.end = end,
        _ => pieces.push(Piece {
            start,
            end,
            prot,
            from_file,
        }),
    };
    let relro = parsed.relro.filter(|_| relocated || !relro_is_written(parsed));
    let settles = settling(parsed).filter(|_| !relocated);
    for load in &parsed.loads {
        let (start, file_end, end) = (load.page_start(), file_mapped_end(load), load.page_end());
        let mut both = |from: u32, to: u32, prot: i32| {
            add(from, to.min(file_end), prot, true);
            add(from.max(file_end), to, prot, false);
        };
        match (load.kind, relro) {
            (SegmentKind::Text, _) => both(start, end, libc::PROT_READ | libc::PROT_EXEC),
            (SegmentKind::ReadOnly, _) if settles.is_some_and(|(first, _)| first == start) => {
                both(start, end, libc::PROT_READ | libc::PROT_WRITE)
            }
            (SegmentKind::ReadOnly, _) => both(start, end, libc::PROT_READ),
            (SegmentKind::Data, Some((a, b))) if a >= start && b <= end => {
                both(start, a, libc::PROT_READ | libc::PROT_WRITE);
                both(a, b, libc::PROT_READ);
                both(b, end, libc::PROT_READ | libc::PROT_WRITE);
            }
            (SegmentKind::Data, _) => both(start, end, libc::PROT_READ | libc::PROT_WRITE),
        }
    }
    pieces
}

/// Whether relocations write to what is read-only afterwards.
fn relro_is_written(parsed: &Parsed) -> bool {
    let (start, end) = parsed.relro.unwrap_or_default();
    let mut relocations = parsed.relocations.iter();
    relocations.any(|r| r.offset < end && r.offset + 8 > start)
}

/// What is writable until relocations are written and read-only afterwards. A read-only segment right before the pages that they
/// write is of it: the two and the data behind them are one mapping then, and get their rights in one step.
fn settling(parsed: &Parsed) -> Option<(u32, u32)> {
    let (start, end) = parsed.relro.filter(|(start, end)| end > start)?;
    let in_front =
        |l: &&Load| l.kind == SegmentKind::ReadOnly && l.page_end() == start && file_mapped_end(l) == start;
    let first = parsed.loads.iter().find(in_front).map_or(start, Load::page_start);
    relro_is_written(parsed).then_some((first, end))
}

/// How many mappings an image needs, what is inaccessible in it and behind it included.
pub(super) fn mappings(p: &relocate::Placed) -> u64 {
    let (mut count, mut at) = (1, 0);
    for piece in pieces(&p.module.0.parsed, true) {
        count += 1 + u64::from(piece.start > at);
        at = piece.end;
    }
    count
}

/// Maps an image, the text last, at its place, where nothing accessible is. `data` fills what was mapped until then.
pub(super) fn map_image(
    p: &relocate::Placed,
    base: u64,
    data: impl FnOnce() -> Result<(), HostError>,
) -> Result<(), HostError> {
    let (pieces, file) = (pieces(&p.module.0.parsed, false), p.module.0.file.get()?);
    let text = |piece: &&Piece| piece.prot & libc::PROT_EXEC != 0;
    pieces
        .iter()
        .filter(|p| !text(p))
        .try_for_each(|piece| map_piece(p, file, base, piece))?;
    data()?;
    pieces
        .iter()
        .filter(text)
        .try_for_each(|piece| map_piece(p, file, base, piece))
}

/// Whether the image begins with its text and lies behind the stubs, which are one mapping with it then.
fn behind_stubs(p: &relocate::Placed) -> bool {
    p.offset == window::IMAGES && p.module.0.parsed.text == 0
}

/// Where in the sealed file an image's byte is.
fn in_file(offset: u32) -> u64 {
    u64::from(LEAD) + u64::from(offset)
}

/// Maps the stubs that do not come with the first image, from the one at offset `start` on. `mappings` becomes more by what that takes.
pub(super) fn map_stubs(layout: &Layout, base: u64, start: u32, mappings: &mut u64) -> Result<(), HostError> {
    let with_text = layout.placed.first().is_some_and(behind_stubs);
    let end = window::STUBS_END - if with_text { LEAD } else { 0 };
    if start == end {
        return Ok(());
    }
    host::take_mappings(1)?;
    *mappings += 1;
    let (at, prot) = (base + u64::from(start), libc::PROT_READ | libc::PROT_EXEC);
    let offset = u64::from(start - window::STUBS);
    // SAFETY: inside our own window, the part that is for stubs, and nobody is inside.
    unsafe { sys::map_file(at, (end - start).into(), prot, stubs::file()?, offset) }
}

fn map_piece(p: &relocate::Placed, file: BorrowedFd<'_>, base: u64, piece: &Piece) -> Result<(), HostError> {
    let lead = if piece.start == 0 && behind_stubs(p) {
        LEAD
    } else {
        0
    };
    let at = base + u64::from(p.offset) + u64::from(piece.start) - u64::from(lead);
    let len = u64::from(piece.end - piece.start + lead);
    // SAFETY: inside our own window, in the part that is for this image or for stubs.
    unsafe {
        if piece.from_file {
            sys::map_file(at, len, piece.prot, file, in_file(piece.start) - u64::from(lead))
        } else {
            sys::map_anonymous(at, len, piece.prot, true).map(drop)
        }
    }
}

/// Makes read-only what relocations have written and nobody may write afterwards.
pub(super) fn protect_relocated(p: &relocate::Placed, base: u64) -> Result<(), HostError> {
    match settling(&p.module.0.parsed) {
        Some((start, end)) => {
            let at = base + u64::from(p.offset) + u64::from(start);
            // SAFETY: whole pages of the module's data, nobody inside.
            unsafe { sys::protect(at, (end - start).into(), libc::PROT_READ) }
        }
        None => Ok(()),
    }
}

/// What relocations have written to modules' writable data: a few words of pages that are the module's file otherwise.
#[derive(Default)]
pub(super) struct Pristine {
    /// Their addresses, ascending.
    places: Vec<u64>,
    /// Eight bytes at each, in the same order.
    words: Vec<[u8; WORD]>,
}

const WORD: usize = 8;

impl Pristine {
    /// Notes what stands at these addresses.
    ///
    /// # Safety
    /// All are of readable words of a domain's, which nobody changes meanwhile.
    unsafe fn note(&mut self, mut places: Vec<u64>) -> Result<(), HostError> {
        places.sort_unstable();
        places.dedup();
        let room =
            (self.words.try_reserve_exact(places.len())).and(self.places.try_reserve_exact(places.len()));
        room.map_err(|_| HostError::NoMemory)?;
        // SAFETY: the caller's promise.
        let word = |&place: &u64| unsafe { (place as *const [u8; WORD]).read_unaligned() };
        self.words.extend(places.iter().map(word));
        self.places.append(&mut places);
        Ok(())
    }

    /// Writes those from `from` to `to`, or the part of them that lies there.
    ///
    /// # Safety
    /// The range is of a domain's writable memory, and nobody is inside.
    unsafe fn write(&self, from: u64, to: u64) {
        let first = self.places.partition_point(|&place| place + WORD as u64 <= from);
        let noted = self.places[first..].iter().zip(&self.words[first..]);
        for (&place, word) in noted.take_while(|(place, _)| **place < to) {
            let (start, end) = (place.max(from), (place + WORD as u64).min(to));
            let bytes = &word[(start - place) as usize..(end - place) as usize];
            // SAFETY: the caller's promise.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start as *mut u8, bytes.len()) };
        }
    }
}

/// Writes all relocations, makes read-only what is to be, and notes those in writable data.
pub(super) fn relocate_all(
    layout: &Layout,
    linker: &mut Resolver<'_>,
    base: u64,
) -> Result<Pristine, DomainError> {
    let mut pristine = Pristine::default();
    for (number, p) in layout.placed.iter().enumerate() {
        let parsed = &p.module.0.parsed;
        let image = base + u64::from(p.offset);
        let relro = parsed.relro.unwrap_or((0, 0));
        let mut places: Vec<u64> = Vec::new();
        for relocation in &parsed.relocations {
            let value = linker.value(number, relocation, base)?;
            let at = image + u64::from(relocation.offset);
            // SAFETY: the parser checked that the eight bytes lie in a data segment, which is mapped writable.
            unsafe { (at as *mut u64).write_unaligned(value) };
            if relocation.offset < relro.0 || relocation.offset + WORD as u32 > relro.1 {
                host::push(&mut places, at)?;
            }
        }
        // SAFETY: as above; no code of the domain's has run.
        unsafe { pristine.note(places)? };
        protect_relocated(p, base)?;
    }
    Ok(pristine)
}

/// Puts data and heap back as they were after relocation; for the next user of a pool, zeroed heap may stay accessible.
pub(super) fn restore(inner: &Inner, looks: &mut Looks, pooled: bool) -> Result<(), HostError> {
    for p in &inner.layout.placed {
        for (start, end) in data_of(p) {
            restore_data(inner, looks, p, start - p.offset, end - p.offset)?;
        }
    }
    if pooled {
        return inner.memory().recycle(inner.options.idle_heap);
    }
    inner.memory().clear()
}

/// A module's writable data, as offsets in the window. Pages that are read-only after relocation are not in it: nobody changes them.
pub(super) fn data_of(p: &relocate::Placed) -> Vec<(u32, u32)> {
    let parsed = &p.module.0.parsed;
    let mut data = Vec::new();
    for load in parsed.loads.iter().filter(|l| l.kind == SegmentKind::Data) {
        let (start, end) = (load.page_start(), load.page_end());
        let (a, b) = match parsed.relro {
            Some((a, b)) if a >= start && b <= end => (a, b),
            _ => (start, start),
        };
        data.extend([(p.offset + start, p.offset + a), (p.offset + b, p.offset + end)]);
    }
    data.retain(|(start, end)| start < end);
    data
}

/// How many bytes that are.
pub(super) fn data_len(p: &relocate::Placed) -> u64 {
    let pieces = data_of(p).into_iter();
    pieces.map(|(start, end)| u64::from(end - start)).sum()
}

/// Puts writable pages of a module back.
fn restore_data(
    inner: &Inner,
    looks: &mut Looks,
    p: &relocate::Placed,
    start: u32,
    end: u32,
) -> Result<(), HostError> {
    // Pages behind the file's are zero at first.
    let mut loads = p.module.0.parsed.loads.iter();
    let load = loads.find(|l| (l.page_start()..l.page_end()).contains(&start));
    let file_end = load.map_or(end, Load::file_page_end).clamp(start, end);
    let mapped_end = load.map_or(start, file_mapped_end);
    let image = inner.base() + u64::from(p.offset);
    let (from, to) = (image + u64::from(start), image + u64::from(end));
    let mut ranges = pages::Ranges::none();
    let own = match mapped_end >= end {
        true => looks.own(from, to, &mut ranges),
        // What is anonymous may be made huge.
        false => pages::own(from, to, &mut ranges),
    };
    if let Some(own) = own
        && let Some(bytes) = p.module.0.pristine(start, (file_end - start) as usize)
    {
        for (a, b) in own.iter() {
            // SAFETY: writable pages of a module's data, in which nobody is.
            let to = unsafe { std::slice::from_raw_parts_mut(a as *mut u8, (b - a) as usize) };
            let rest = bytes.get((a - from) as usize..).unwrap_or_default();
            let (copied, zeroed) = to.split_at_mut(rest.len().min(to.len()));
            copied.copy_from_slice(&rest[..copied.len()]);
            zeroed.fill(0);
            // SAFETY: as above.
            unsafe { inner.pristine.write(a, b) };
        }
        return Ok(());
    }
    // SAFETY: nobody is inside.
    unsafe {
        let known = u64::from(file_end - start);
        sys::drop_to_file(from, to - from, &p.module.0.file, in_file(start), known)?;
    }
    // SAFETY: mapped, writable data of a module, in which nobody is.
    unsafe { inner.pristine.write(from, to) };
    Ok(())
}

/// What the gate out needs for every stub of a window.
pub(super) fn import_table(
    used: &[Used],
    uses_vectors: bool,
    uses_x87: bool,
) -> Result<(Vec<Import>, BTreeMap<usize, Slot>), DomainError> {
    let mut slots = BTreeMap::new();
    let x87_kind = if uses_x87 { kind::X87 } else { 0 };
    let avx = if avx() { vectors::AVX } else { 0 };
    let clear = |floats: u8| match (uses_vectors, floats, avx) {
        (false, ..) => vectors::NONE,
        (true, 0, vectors::AVX) => vectors::ZERO,
        (true, 0, _) => vectors::GENERAL | avx,
        (true, 1, _) => vectors::GENERAL | vectors::KEEP_0 | avx,
        (true, ..) => vectors::GENERAL | vectors::KEEP_0 | vectors::KEEP_1 | avx,
    };
    let keep = |yes: bool| if yes { u64::MAX } else { 0 };
    let closure = |floats| Import {
        function: AtomicU64::new(0),
        rax_mask: u64::MAX,
        rdx_mask: u64::MAX,
        kind: kind::CLOSURE | x87_kind,
        vectors: clear(floats),
        x87: 0,
        pad: 0,
    };
    let plain = |function: u64, s: &Signature, extra: u32| Import {
        function: AtomicU64::new(function),
        rax_mask: keep(s.int_results > 0) & s.narrow.int_result.mask(),
        rdx_mask: keep(s.int_results > 1),
        kind: x87_kind | extra,
        vectors: match clear(s.float_results) {
            v if v & vectors::GENERAL != 0 && s.narrow.single_result => v | vectors::SINGLE,
            v => v,
        },
        x87: s.x87_results.into(),
        pad: 0,
    };
    let mut table: Vec<Import> = (0..window::STUB_FIRST_IMPORT).map(|_| closure(0)).collect();
    use window::stub::{RESUME, UNWIND};
    for stub in [UNWIND, RESUME] {
        table[stub as usize].kind = kind::JUMP;
        table[stub as usize].rdx_mask = keep(stub == RESUME);
    }
    let one = Signature {
        int_results: 1,
        ..Signature::NOTHING
    };
    table[window::stub::CALL_STATUS as usize] = plain(gate::call_status(), &one, 0);
    for import in used {
        table.push(match &import.binding {
            Binding::Plain { function, signature } => plain(*function as u64, signature, 0),
            Binding::Closure(_) => closure(2),
            Binding::Slot {
                entry,
                signature,
                on_failure,
            } => {
                let slot = Slot::new(&import.name, *signature, *on_failure)?;
                let import = plain(slot.empty(), signature, kind::DOMAIN);
                if let Some((domain, export)) = entry {
                    slot.fill_first(&import, &domain.entry(export)?.grant(signature)?);
                }
                slots.insert(table.len(), slot);
                import
            }
        });
    }
    Ok((table, slots))
}
