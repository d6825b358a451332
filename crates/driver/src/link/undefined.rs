//! What a link leaves undefined: from ld's messages, and from the symbol table.

use std::collections::BTreeMap;
use std::fs;

use object::LittleEndian;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};
use ringfence_isa::note::IMPORT_PREFIX;

use crate::image::Image;

pub(super) fn demangled(name: &str) -> String {
    if !name.starts_with("_Z") {
        return name.to_owned();
    }
    let out = std::process::Command::new("c++filt").arg(name).output();
    out.ok().filter(|o| o.status.success()).map_or_else(
        || name.to_owned(),
        |o| String::from_utf8_lossy(&o.stdout).trim().to_owned(),
    )
}

/// Takes apart what ld says: undefined symbols with their places, and all other lines.
pub(super) fn undefined_references(messages: &str) -> (BTreeMap<String, Vec<String>>, Vec<String>) {
    let mut undefined: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut rest = Vec::new();
    let mut context = String::new();
    let mut object = String::new();
    let quoted = |text: &str| {
        text.split('`')
            .nth(1)
            .and_then(|t| t.split('\'').next())
            .map(str::to_owned)
    };
    for line in messages.lines() {
        let text = strip_linker(line);
        if let Some((place, tail)) = text.split_once("undefined reference to ") {
            let Some(name) = quoted(tail) else { continue };
            let place = place
                .trim()
                .trim_end_matches("warning:")
                .trim()
                .trim_end_matches(':')
                .to_owned();
            let place = if place.starts_with('(') {
                format!("{object}:{place}")
            } else {
                place
            };
            let place = if context.is_empty() {
                place
            } else {
                format!("{place} in {context}")
            };
            let places = undefined.entry(name).or_default();
            if !places.contains(&place) {
                places.push(place);
            }
        } else if text.contains(": in function `") {
            object = text.split(": in function").next().unwrap_or("").to_owned();
            context = quoted(text).unwrap_or_default();
        } else if text.contains("isn't defined") && text.contains("symbol `") {
            undefined.extend(quoted(text).map(|n| (n, Vec::new())));
        } else if !(text.contains("more undefined references to")
            || text.contains("final link failed")
            || text.starts_with("collect2: error: ld returned"))
        {
            rest.push(line.to_owned());
        }
    }
    (undefined, rest)
}

/// References that take for granted that a symbol's place is known when the module is linked: object and symbol.
pub(super) fn direct_references(messages: &str) -> Vec<(String, String)> {
    let one = |line| {
        let (object, tail) = strip_linker(line).split_once(": relocation R_X86_64_")?;
        let symbol = tail.split_once("undefined symbol `")?.1.split_once('\'')?.0;
        Some((object.to_owned(), symbol.to_owned()))
    };
    messages.lines().filter_map(one).collect()
}

fn strip_linker(line: &str) -> &str {
    match line.split_once("ld: ") {
        Some((head, tail)) if head.is_empty() || head.ends_with('/') || head.ends_with('-') => tail,
        _ => line,
    }
}

/// What the dynamic symbol table of a linked file leaves undefined, imports excepted. Nothing if there is no file yet.
pub(super) fn undefined_symbols(path: &str) -> Vec<String> {
    let Ok(data) = fs::read(path) else {
        return Vec::new();
    };
    let Ok(image) = Image::parse(&data) else {
        return Vec::new();
    };
    let undefined = image.dynamic.into_iter().filter(|s| !s.defined && !s.weak);
    undefined
        .filter(|s| !s.name.starts_with(IMPORT_PREFIX))
        .map(|s| s.name.to_owned())
        .collect()
}

/// Whether ld made stubs of its own, for direct calls of what is known at load time only.
pub(super) fn has_plt(path: &str) -> bool {
    let Ok(data) = fs::read(path) else {
        return false;
    };
    let Ok(file) = ElfFile64::<LittleEndian>::parse(&*data) else {
        return false;
    };
    file.sections()
        .any(|s| s.size() > 0 && s.name().is_ok_and(|n| n.starts_with(".plt")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn direct_references_are_found() {
        let text = "/usr/bin/ld: a.o: warning: relocation against `x' in read-only section `.text'\n\
                    /usr/bin/ld: a.o: relocation R_X86_64_PC32 against undefined symbol `x' can not be used when \
                    making a shared object; recompile with -fPIC\n";
        assert_eq!(direct_references(text), [("a.o".to_owned(), "x".to_owned())]);
    }

    #[test]
    fn linker_messages_are_taken_apart() {
        let text = "/usr/bin/ld: a.o: in function `f':\n(.text+0x9): warning: undefined reference to `g'\n\
                    /usr/bin/ld: src/b.c:12: warning: undefined reference to `g'\n\
                    /usr/bin/ld: x.so: hidden symbol `hh' isn't defined\n/usr/bin/ld: final link failed: bad value\n\
                    collect2: error: ld returned 1 exit status\n/usr/bin/ld: cannot find crt9.o\n";
        let (undefined, rest) = undefined_references(text);
        assert_eq!(undefined["g"], ["a.o:(.text+0x9) in f", "src/b.c:12 in f"]);
        assert!(undefined.contains_key("hh"));
        assert_eq!(rest, ["/usr/bin/ld: cannot find crt9.o"]);
    }
}
