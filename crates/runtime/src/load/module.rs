//! Modules: verified images.
//!
//! A file is read once, and [`crate::load::steps`] tells what happens to it then.

pub use crate::load::options::LoadOptions;
use crate::load::steps::{self, Loaded};
use crate::load::stubs;
pub use crate::load::symbols::{Export, ExportKind, Import, Note, Segment};
use crate::os::file;
use crate::os::host;
use crate::os::sys::View;
use ringfence_core::DomainOptions;
use ringfence_core::error::{DomainError, LoadError};
use ringfence_core::work::Budget;
use ringfence_isa::{Addressing, Isolation};
use ringfence_verify::{Place, Report};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A verified image, ready to become domains. Cheap to clone.
#[derive(Clone)]
pub struct Module(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub name: String,
    loaded: Loaded,
    segments: Vec<Segment>,
    /// The file itself: its symbols and debug information serve messages.
    pub original: Vec<u8>,
    /// The whole image, for resets to copy from.
    image: OnceLock<Option<View>>,
    places: Places,
}

impl std::ops::Deref for Inner {
    type Target = Loaded;
    fn deref(&self) -> &Loaded {
        &self.loaded
    }
}

/// A file's name for messages, and its bytes. It is a regular one, and not larger than the options say.
///
/// # Errors
/// [`LoadError::Read`], [`LoadError::TooLarge`].
pub fn read(path: &Path, options: &LoadOptions) -> Result<(String, Vec<u8>), LoadError> {
    let name = path.display().to_string();
    let limit = options.max_file_size.min(u32::MAX.into());
    match file::read(path, limit) {
        Ok(bytes) => Ok((name, bytes)),
        Err(source) if source.kind() == std::io::ErrorKind::FileTooLarge => {
            Err(LoadError::TooLarge { name, limit })
        }
        Err(source) => Err(LoadError::Read { name, source }),
    }
}

impl Module {
    /// Reads and verifies a module file, which is a regular one: pipes and devices are refused.
    ///
    /// # Errors
    /// [`LoadError`] tells what is wrong with the file.
    pub fn open(path: impl AsRef<Path>, options: &LoadOptions) -> Result<Module, LoadError> {
        let (name, bytes) = read(path.as_ref(), options)?;
        Module::load(name, bytes, options)
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
        let loaded = steps::load(&name, &bytes, options)?;
        let segments = loaded.parsed.loads.iter().map(|l| Segment {
            offset: l.start,
            len: l.len,
            file_len: l.file_len,
            kind: l.kind,
        });
        Ok(Module(Arc::new(Inner {
            name,
            segments: segments.collect(),
            loaded,
            original: bytes,
            image: OnceLock::new(),
            places: Places::default(),
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

    /// By which forms of operands it reaches memory, as the verifier found.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        match self.report().through_r14 {
            true => Addressing::Any,
            false => Addressing::Segment,
        }
    }

    /// Whether a domain with these options takes the forms of its operands.
    ///
    /// # Errors
    /// [`DomainError::Addressing`].
    pub fn check_addressing(&self, options: &DomainOptions) -> Result<(), DomainError> {
        if options.addressing == Addressing::Segment && self.addressing() == Addressing::Any {
            return Err(DomainError::Addressing {
                module: self.name().to_owned(),
            });
        }
        Ok(())
    }

    /// Whether it may come into a domain that has an arena, or has none.
    ///
    /// # Errors
    /// [`DomainError::Isolation`].
    pub fn check_isolation(&self, arena: bool) -> Result<(), DomainError> {
        let reason = match (self.isolation() == Isolation::Words, arena) {
            (true, false) => {
                "reaches objects of the host's (--isolation=words), and the domain has no arena: give one among its imports"
            }
            (false, true) => {
                "the domain has an arena, and this module was not compiled for it: build it with --isolation=words"
            }
            _ => return Ok(()),
        };
        Err(DomainError::Isolation {
            module: self.name().to_owned(),
            reason,
        })
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
            let view = |file| View::new(file, stubs::LEAD.into(), self.parsed.image_len.into());
            let made = self.file.get().and_then(view);
            made.inspect_err(|_| host::give_mappings(1)).ok()
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

    /// What is known of an instruction that control can reach.
    pub(crate) fn place_at(&self, offset: u32) -> Option<Place> {
        self.places.at(offset, || self.report.place_at(offset))
    }

    /// Whether the host may enter at `offset`.
    pub(crate) fn is_entry(&self, offset: u32) -> bool {
        self.report.function_with_entry(offset).is_some()
    }
}

/// Answers that were given before: a program leaves the same frames again and again. Each is one word, which holds the place's offset
/// too, so threads see all of it or nothing; and no answer ages, for text and what the verifier found never change.
struct Places([AtomicU64; SLOTS]);

/// How many answers are kept, by their offsets. Of 64, two of the nine frames that Lua leaves for an error shared one.
const SLOTS: usize = 1024;

impl Default for Places {
    fn default() -> Places {
        Places([const { AtomicU64::new(0) }; SLOTS])
    }
}

impl Places {
    /// Bits of a word, whose upper half is the place's offset. The depth, a multiple of 8, stands as it is: a walk's next step waits for it.
    const KNOWN: u32 = 1;
    const PAD: u32 = 2;
    const DEPTH: u32 = 0x1FF8;
    const FUNCTION: u32 = 13;

    #[inline]
    fn at(&self, offset: u32, look: impl FnOnce() -> Option<Place>) -> Option<Place> {
        let word = &self.0[(offset ^ offset >> 10) as usize % SLOTS];
        let known = word.load(Ordering::Relaxed);
        let told = known as u32;
        if known >> 32 == offset.into() && told & Self::KNOWN != 0 {
            return Some(Place {
                depth: told & Self::DEPTH,
                function: told >> Self::FUNCTION,
                is_pad: told & Self::PAD != 0,
            });
        }
        let place = look()?;
        // What has no room, functions behind the first half a million, is found anew each time.
        if place.function < 1 << (32 - Self::FUNCTION) && place.depth & !Self::DEPTH == 0 {
            let pad = if place.is_pad { Self::PAD } else { 0 };
            let told = place.function << Self::FUNCTION | place.depth | pad | Self::KNOWN;
            word.store(u64::from(offset) << 32 | u64::from(told), Ordering::Relaxed);
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_as_they_were_found() {
        let places = Places::default();
        let of = |offset: u32| {
            (!offset.is_multiple_of(3)).then_some(Place {
                depth: offset % 513 * 8,
                function: offset,
                is_pad: offset.is_multiple_of(2),
            })
        };
        for offset in (0..4000).chain(0..40).chain([500_000, 0, 500_000]) {
            for _ in 0..2 {
                assert_eq!(places.at(offset, || of(offset)), of(offset), "{offset}");
            }
            if of(offset).is_some() {
                let again = places.at(offset, || panic!("known"));
                assert_eq!(again, of(offset), "{offset}");
            }
        }
    }
}
