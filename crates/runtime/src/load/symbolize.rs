//! Names for addresses: a module's own symbols and debug information. For messages only.

use crate::gates::fault::Frame;
use crate::load::module::Module;
use addr2line::gimli;
use object::{Object, ObjectSection, ObjectSymbol};
use std::sync::Mutex;

/// Borrows from the module's own copy of its file, which lives as long as what holds this.
type Reader = gimli::EndianSlice<'static, gimli::LittleEndian>;

/// What was read of a module's symbols and debug information, once.
pub(crate) struct Debug {
    /// Functions by address, ascending: start, size, name.
    symbols: Vec<(u64, u64, String)>,
    lines: Option<Mutex<Lines>>,
}

struct Lines(addr2line::Context<Reader>);

// SAFETY: caches inside are touched under the lock only.
unsafe impl Send for Lines {}

impl Debug {
    fn read(data: &[u8]) -> Option<Debug> {
        let file = object::File::parse(data).ok()?;
        let mut symbols: Vec<(u64, u64, String)> = file
            .symbols()
            .chain(file.dynamic_symbols())
            .filter(|s| s.is_definition() && s.kind() == object::SymbolKind::Text)
            .filter_map(|s| Some((s.address(), s.size(), s.name().ok()?.to_string())))
            .collect();
        symbols.sort_by_key(|s| (s.0, std::cmp::Reverse(s.1)));
        symbols.dedup_by_key(|s| s.0);
        let load = |id: gimli::SectionId| -> Result<Reader, gimli::Error> {
            let bytes: &[u8] = file
                .section_by_name(id.name())
                .and_then(|s| s.data().ok())
                .unwrap_or_default();
            // SAFETY: `data` belongs to the module that owns this `Debug`, and is neither changed nor moved while it lives.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
            Ok(gimli::EndianSlice::new(bytes, gimli::LittleEndian))
        };
        let lines = gimli::Dwarf::load(load)
            .and_then(addr2line::Context::from_dwarf)
            .ok()
            .map(|context| Mutex::new(Lines(context)));
        Some(Debug { symbols, lines })
    }

    fn symbol(&self, offset: u64) -> Option<&str> {
        let after = self.symbols.partition_point(|s| s.0 <= offset);
        let (start, size, name) = self.symbols[..after].last()?;
        (*size == 0 || offset < start + size).then_some(name)
    }
}

/// Calls `found` for each function that `offset` is in: inlined ones first, at least one.
pub(crate) fn frames(module: &Module, offset: u64, mut found: impl FnMut(Frame)) {
    let read = || {
        // Debug information is the module's own and may be hostile: a reader's panic must not reach the host.
        let read = std::panic::AssertUnwindSafe(|| Debug::read(module.original()));
        std::panic::catch_unwind(read).ok().flatten()
    };
    let debug = module.0.debug.get_or_init(read).as_ref();
    let lined = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| lined(debug?, offset)))
        .ok()
        .flatten();
    match lined {
        Some(frames) if !frames.is_empty() => frames.into_iter().for_each(&mut found),
        _ => found(Frame {
            function: debug.and_then(|d| d.symbol(offset)).map(demangle),
            ..Frame::default()
        }),
    }
}

fn demangle(name: &str) -> String {
    addr2line::demangle_auto(name.into(), None).into_owned()
}

fn lined(debug: &Debug, offset: u64) -> Option<Vec<Frame>> {
    let lines = debug
        .lines
        .as_ref()?
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let mut frames = Vec::new();
    let mut iter = lines.0.find_frames(offset).skip_all_loads().ok()?;
    while let Ok(Some(f)) = iter.next() {
        let function = f
            .function
            .as_ref()
            .and_then(|n| n.raw_name().ok().map(|n| demangle(n.as_ref())))
            .or_else(|| debug.symbol(offset).map(demangle));
        let (file, line) = f.location.map_or((None, None), |l| {
            (l.file.map(ToString::to_string), l.line.filter(|&l| l > 0))
        });
        frames.push(Frame {
            function,
            file,
            line,
            ..Frame::default()
        });
    }
    // A line without a function's entry still has the line.
    if frames.is_empty()
        && let Ok(Some(l)) = lines.0.find_location(offset)
    {
        let function = debug.symbol(offset).map(demangle);
        frames.push(Frame {
            function,
            file: l.file.map(Into::into),
            line: l.line,
            ..Frame::default()
        });
    }
    Some(frames)
}
