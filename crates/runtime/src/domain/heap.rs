//! What a checked heap tells: who has allocated a block, who has freed it, and what was wrong with an access.

use super::Inner;
use crate::load::module::Module;
use crate::load::trace::Trace;
use crate::words::heap::{Misused, Site, Story};
use ringfence_core::{Frame, Trace as _};

/// Functions that allocate for others: who calls them is told.
const ALLOCATORS: [&str; 18] = [
    "__rf_gate",
    "malloc",
    "calloc",
    "realloc",
    "reallocarray",
    "free",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
    "strdup",
    "__strdup",
    "strndup",
    "asprintf",
    "vasprintf",
    "operator new(unsigned long)",
    "operator new[](unsigned long)",
    "operator delete(void*)",
    "operator delete(void*, unsigned long)",
];

impl Inner {
    /// Who called an allocator, `function (file:line)`.
    fn caller(&self, site: &Site) -> Option<String> {
        let addresses: Vec<u64> = site.iter().copied().take_while(|&at| at != 0).collect();
        let mut images: Vec<(u64, Module)> = Vec::new();
        for &address in &addresses {
            let offset = address.wrapping_sub(self.base());
            if let Some((placed, _)) = self.layout.find(offset) {
                let at = self.base() + u64::from(placed.offset);
                if images.iter().all(|(base, _)| *base != at) {
                    images.push((at, placed.module.clone()));
                }
            }
        }
        let mut images = images.into_iter();
        let frames = Trace::new(images.next(), images.collect(), addresses).frames();
        let own = |f: &&Frame| {
            let name = f.function.as_deref().unwrap_or("");
            !ALLOCATORS.contains(&name) && !name.starts_with("__libc_") && !name.starts_with("__rf_")
        };
        let found = frames.iter().find(own)?;
        let name = found
            .function
            .clone()
            .unwrap_or_else(|| format!("{:#x}", found.offset));
        Some(match (&found.file, found.line) {
            (Some(file), Some(line)) => format!("{name} ({file}:{line})"),
            _ => name,
        })
    }

    fn told(&self, story: &Story) -> Vec<String> {
        let by = |verb: &str, site: &Site| match self.caller(site) {
            Some(who) => format!("{verb} by {who}"),
            None => verb.to_string(),
        };
        let (len, at) = (story.len, story.address);
        let mut lines = vec![format!(
            "{}: {len} bytes at {at:#x}",
            by("allocated", &story.made)
        )];
        lines.extend(story.freed.as_ref().map(|site| by("freed", site)));
        lines
    }

    /// What is known of an access that was denied.
    pub(super) fn heap_story(&self, address: u64, write: bool) -> Vec<String> {
        let Some(story) = self.words().and_then(|words| words.story(address)) else {
            return Vec::new();
        };
        let verb = if write { "write" } else { "read" };
        let what = match (&story.freed, story.beyond) {
            (Some(_), _) => format!("a {verb} after it was freed"),
            (None, Some(bytes)) => format!("a {verb} beyond the end, {bytes} bytes behind it"),
            (None, None) if story.unwritten => "an uninitialised read: nothing was written there yet".into(),
            (None, None) => return self.told(&story),
        };
        let mut lines = vec![what];
        lines.extend(self.told(&story));
        lines
    }

    /// Why an allocator's call ends. Names are looked up when somebody asks for [more](Self::heap_misuse).
    pub(crate) fn heap_misused(misused: &Misused) -> String {
        let Misused::NoBlock(address, story) = misused;
        let what = match story.as_deref() {
            Some(Story { freed: Some(_), .. }) => "was freed already",
            Some(_) => "is inside of a block, or behind its end",
            None => "is no block of the heap",
        };
        let block = story
            .as_ref()
            .map(|s| format!(": {} bytes at {:#x}", s.len, s.address));
        format!(
            "free or realloc of {address:#x}, which {what}{}",
            block.unwrap_or_default()
        )
    }

    /// Who has allocated and freed the block, if such a call of the allocator has ended a call with these words.
    pub(super) fn heap_misuse(&self, why: &str) -> Option<Vec<String>> {
        let misused = self.words()?.misused()?;
        let Misused::NoBlock(_, story) = &misused;
        let mut lines = vec![Self::heap_misused(&misused)];
        lines.extend(self.told(story.as_deref().filter(|_| why.contains(&lines[0]))?));
        Some(lines)
    }
}
