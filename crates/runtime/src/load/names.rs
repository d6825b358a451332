//! Names that a module's author chose: finding exports by them, and showing them.

use crate::load::symbols::Export;
use ringfence_core::work::{Budget, Exceeded};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Sixteen bytes that nobody outside of the process knows. From the kernel, at its start: the standard library's `RandomState` asks for others,
/// and panics if a filter of system calls refuses them.
fn secret() -> [u8; 16] {
    // SAFETY: asks for an address of the process's own.
    let at = unsafe { libc::getauxval(libc::AT_RANDOM) } as *const [u8; 16];
    // SAFETY: null, or what the kernel has put on the first stack for ever.
    unsafe { at.as_ref() }.copied().unwrap_or_default()
}

/// Places in a list of exports by their names: an open table of twice their number, with keys that a module's author
/// cannot foresee.
pub(crate) struct Names {
    key: [u8; 16],
    /// One more than a place in the list; 0 is free. Its length is a power of two.
    table: Vec<u32>,
}

impl Names {
    /// Of several exports with the same name the last one counts.
    pub(crate) fn new(exports: &[Export], budget: &mut Budget) -> Result<Names, Exceeded> {
        let size = (exports.len() * 2).next_power_of_two();
        let mut names = Names {
            key: secret(),
            table: budget.vec(size)?,
        };
        names.table.resize(size, 0);
        for (i, export) in exports.iter().enumerate() {
            budget.step()?;
            let bucket = names.bucket(exports, &export.name);
            names.table[bucket] = i as u32 + 1;
        }
        Ok(names)
    }

    /// The export of that name, in the list that this was made of.
    pub(crate) fn find<'a>(&self, exports: &'a [Export], name: &str) -> Option<&'a Export> {
        let place = self.table[self.bucket(exports, name)].checked_sub(1)?;
        exports.get(place as usize)
    }

    /// Where the name is in the table, or would be. At most half the buckets are taken.
    fn bucket(&self, exports: &[Export], name: &str) -> usize {
        let mask = self.table.len() - 1;
        let mut hasher = DefaultHasher::new();
        (self.key, name).hash(&mut hasher);
        let mut bucket = hasher.finish() as usize & mask;
        while let Some(place) = self.table[bucket].checked_sub(1)
            && exports[place as usize].name != name
        {
            bucket = (bucket + 1) & mask;
        }
        bucket
    }
}

/// A name that a module's author chose, for a message: control characters escaped, and cut if it is long.
#[must_use]
pub fn plain(name: &str) -> String {
    const SHOWN: usize = 200;
    let mut text: String = name.chars().take(SHOWN).flat_map(escaped).collect();
    if name.chars().nth(SHOWN).is_some() {
        text.push('…');
    }
    text
}

/// As it is, unless it is a control character or could reorder what stands around it.
fn escaped(c: char) -> impl Iterator<Item = char> {
    let odd = c.is_control()
        || matches!(c, '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}');
    let escape = odd.then(|| c.escape_default());
    escape.into_iter().flatten().chain((!odd).then_some(c))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::symbols::ExportKind;

    #[test]
    fn all_names_are_found_and_no_others() {
        for count in [0, 1, 2, 3, 1000] {
            let export = |i: usize| Export {
                name: format!("name{}", i.min(997)),
                kind: ExportKind::Object,
                offset: i as u32,
                size: 0,
            };
            let exports: Vec<Export> = (0..count).map(export).collect();
            let names = Names::new(&exports, &mut Budget::unlimited()).unwrap();
            for (i, export) in exports.iter().enumerate().take(997) {
                let found = names.find(&exports, &export.name).unwrap();
                assert_eq!(found.offset as usize, i);
            }
            assert!(names.find(&exports, "name").is_none());
            let last = names.find(&exports, "name997").map(|e| e.offset);
            assert_eq!(last, (count > 997).then_some(999), "the last one");
        }
    }

    #[test]
    fn shown_names_are_plain_and_short() {
        assert_eq!(plain("größe<int>"), "größe<int>");
        assert_eq!(plain("a\x1b[31m\nb\u{202e}"), "a\\u{1b}[31m\\nb\\u{202e}");
        assert_eq!(plain(&"x".repeat(10_000)).chars().count(), 201);
    }
}
