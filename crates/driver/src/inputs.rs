//! What the inputs of a link say about themselves: declared imports, whether there is a `main`, who made them.

use std::collections::BTreeSet;
use std::path::Path;

use object::elf;
use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile64, FileHeader, Sym};
use object::{LittleEndian as Le, Object, ObjectSection};
use ringfence_isa::note;

use crate::args::{Item, Language};
use crate::error::Error;
use crate::image::{Image, SymbolKind};
use crate::room::{self, Room};

/// The section in which `RF_IMPORT` names what a source wants from outside.
const IMPORTS_SECTION: &str = ".rf.imports";

/// The section in which a module says which other modules it was linked with.
pub(crate) const MODULES_SECTION: &str = ".rf.modules";

/// What was found in all inputs together.
#[derive(Debug, Default)]
pub(crate) struct Inputs {
    /// Functions that the sources declare to be imports.
    pub(crate) imports: BTreeSet<String>,
    /// Data objects that they declare to be imports.
    pub(crate) data_imports: BTreeSet<String>,
    /// Undefined weak symbols.
    pub(crate) weak: BTreeSet<String>,
    /// Whether an object defines `main`, or a member of an archive that is not one of the sysroot's.
    pub(crate) main: bool,
    /// Modules, and those that they were linked with in turn.
    pub(crate) modules: Vec<String>,
    /// Inputs that `ringfence cc` did not make.
    pub(crate) strangers: Vec<String>,
    room: Room,
}

/// What kind of file a link input is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A relocatable object or an archive of them: goes to the linker.
    Code,
    /// A module: what it exports may be imported.
    Module,
    /// Something that the linker may understand (a script).
    Other,
}

impl Inputs {
    /// Looks at one input.
    pub(crate) fn look(&mut self, path: &str) -> Result<Kind, Error> {
        let data = self.room.read(Path::new(path))?;
        if data.starts_with(b"!<arch>\n") || data.starts_with(b"!<thin>\n") {
            self.archive(path, &data)?;
            return Ok(Kind::Code);
        }
        if !data.starts_with(b"\x7fELF") {
            return Ok(Kind::Other);
        }
        let kind = data.get(16..18).map_or(0, |b| u16::from_le_bytes([b[0], b[1]]));
        if kind == elf::ET_DYN.0 {
            return self.module(path, &data).map(|()| Kind::Module);
        }
        self.object(path, &data).map_err(|e| Error::Input {
            path: path.to_owned(),
            what: format!("not a usable object file: {e}"),
        })?;
        Ok(Kind::Code)
    }

    fn archive(&mut self, path: &str, data: &[u8]) -> Result<(), Error> {
        let broken = |e: object::read::Error| Error::Input {
            path: path.to_owned(),
            what: format!("broken archive: {e}"),
        };
        let archive = ArchiveFile::parse(data).map_err(broken)?;
        for member in archive.members() {
            let member = member.map_err(broken)?;
            let name = String::from_utf8_lossy(member.name()).into_owned();
            let owned;
            let content: &[u8] = if archive.is_thin() {
                let file = Path::new(path).parent().unwrap_or(Path::new("")).join(&name);
                owned = self.room.read(&file)?;
                &owned
            } else {
                member.data(data).map_err(broken)?
            };
            // Archives may hold other things than objects.
            if content.starts_with(b"\x7fELF") {
                let _ = self.object(&format!("{path}({name})"), content);
            }
        }
        Ok(())
    }

    fn module(&mut self, path: &str, data: &[u8]) -> Result<(), Error> {
        let wrong = |source| Error::Image {
            path: path.to_owned(),
            source,
        };
        let image = Image::parse(data).map_err(wrong)?;
        image.require_note().map_err(wrong)?;
        let full = std::path::absolute(path).map_err(|e| Error::read(path, e))?;
        for module in std::iter::once(full.to_string_lossy().into_owned()).chain(linked_with(data)) {
            if !self.modules.contains(&module) {
                self.modules.push(module);
            }
        }
        for symbol in image.dynamic.into_iter().filter(|s| s.defined) {
            match symbol.kind {
                SymbolKind::Function => self.imports.insert(symbol.name.to_owned()),
                SymbolKind::Object => self.data_imports.insert(symbol.name.to_owned()),
                _ => false,
            };
        }
        Ok(())
    }

    fn object(&mut self, path: &str, data: &[u8]) -> Result<(), String> {
        let text = |e: object::read::Error| e.to_string();
        let file = ElfFile64::<Le>::parse(data).map_err(text)?;
        if file.elf_header().e_machine(Le) != elf::EM_X86_64 {
            return Err("made for another machine".to_owned());
        }
        let mut stranger = true;
        let mut code = false;
        for section in file.sections() {
            code |= section.kind() == object::SectionKind::Text && section.size() > 0;
            match section.name() {
                Ok(note::SECTION) => stranger = false,
                Ok(IMPORTS_SECTION) => self.declared(section.data().map_err(text)?),
                _ => {}
            }
        }
        if stranger && code {
            self.strangers.push(path.to_owned());
        }
        let table = file.elf_symbol_table();
        for symbol in table.iter() {
            let undefined = symbol.st_shndx(Le) == elf::SHN_UNDEF;
            let weak = symbol.st_bind() == elf::STB_WEAK;
            if !(undefined && weak || !undefined && symbol.st_bind() != elf::STB_LOCAL) {
                continue;
            }
            let name = symbol.name(Le, table.strings()).map_err(text)?;
            if undefined {
                let name = self.room.name(name)?;
                self.weak.insert(name);
            } else if name == b"main" {
                self.main = true;
            }
        }
        Ok(())
    }

    /// Names in the section that `RF_IMPORT` writes: strings, those of data objects with `=` in front.
    fn declared(&mut self, section: &[u8]) {
        for name in section.split(|b| *b == 0).filter(|n| !n.is_empty()) {
            let name = String::from_utf8_lossy(name).into_owned();
            match name.strip_prefix('=') {
                Some(data) => self.data_imports.insert(data.to_owned()),
                None => self.imports.insert(name),
            };
        }
    }
}

/// Modules that one was linked with; more are not looked at.
const LINKED_WITH: usize = 256;

/// The modules that a module was linked with, as files: for messages and for wrappers, which is no more than what the module says.
/// At most 256.
#[must_use]
pub fn linked_with(module: &[u8]) -> Vec<String> {
    let Ok(file) = ElfFile64::<Le>::parse(module) else {
        return Vec::new();
    };
    let data = file.section_by_name(MODULES_SECTION).and_then(|s| s.data().ok());
    let names = data
        .unwrap_or_default()
        .split(|b| *b == 0)
        .filter(|n| !n.is_empty());
    let names = names.take(LINKED_WITH);
    names.map(|n| String::from_utf8_lossy(n).into_owned()).collect()
}

/// The data that the modules among the inputs of a command line give: what is compiled in the same run reaches it indirectly.
pub(crate) fn given_data(items: &[Item]) -> Result<BTreeSet<String>, Error> {
    let mut found = Inputs::default();
    for item in items {
        if let Item::Input {
            path,
            language: Language::Linker,
        } = item
            && path.ends_with(".rf")
        {
            found.look(path)?;
        }
    }
    Ok(found.data_imports)
}

/// Which of the given objects and archive members refer to the undefined symbol `name`. For messages: reads them again.
pub(crate) fn referrers(paths: &[String], name: &str) -> Vec<String> {
    let refers = |data: &[u8]| {
        ElfFile64::<Le>::parse(data).is_ok_and(|file| {
            let table = file.elf_symbol_table();
            let strings = table.strings();
            table.iter().any(|s| {
                s.st_shndx(Le) == elf::SHN_UNDEF && s.name(Le, strings).is_ok_and(|n| n == name.as_bytes())
            })
        })
    };
    let mut found = Vec::new();
    for path in paths {
        let Some(data) = room::glance(Path::new(path)) else {
            continue;
        };
        if let Ok(archive) = ArchiveFile::parse(data.as_slice()) {
            for member in archive.members().flatten() {
                if member.data(data.as_slice()).is_ok_and(refers) {
                    found.push(format!("{path}({})", String::from_utf8_lossy(member.name())));
                }
            }
        } else if refers(&data) {
            found.push(path.clone());
        }
    }
    found
}

/// Libraries that a C library brings with it: asked for by habit, and empty or absent here.
const BUILT_IN: &[&str] = &[
    "c",
    "m",
    "pthread",
    "rt",
    "dl",
    "util",
    "crypt",
    "resolv",
    "xnet",
    "gcc",
    "gcc_s",
    "gcc_eh",
    "atomic",
    "ssp",
    "ssp_nonshared",
    "stdc++",
    "supc++",
];

/// Which of a library's two forms is wanted where both are there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// What is linked in reaches its data directly, and needs no other file.
    Archives,
    /// As ld does.
    Modules,
}

/// A library that was found.
pub(crate) struct Found {
    pub(crate) path: String,
    /// It is an archive, and beside it is a module.
    pub(crate) passed_over: bool,
}

/// Finds `-lNAME`, in the first directory that has it. `None` stands for a library that the C library takes the place of.
pub(crate) fn library(name: &str, dirs: &[String], prefer: Prefer) -> Result<Option<Found>, Error> {
    let mut candidates = match name.strip_prefix(':') {
        Some(file) => vec![file.to_owned()],
        None => vec![
            format!("lib{name}.a"),
            format!("lib{name}.rf"),
            format!("lib{name}.so"),
        ],
    };
    if prefer == Prefer::Modules {
        candidates.rotate_left(1);
    }
    for dir in dirs {
        let is_there = |file: &&String| {
            let path = Path::new(dir).join(file);
            path.is_file() && (!file.ends_with(".so") || is_module(&path))
        };
        let there: Vec<&String> = candidates.iter().filter(is_there).collect();
        if let [first, others @ ..] = there.as_slice() {
            return Ok(Some(Found {
                path: Path::new(dir).join(first).to_string_lossy().into_owned(),
                passed_over: first.ends_with(".a") && !others.is_empty(),
            }));
        }
    }
    if BUILT_IN.contains(&name) {
        return Ok(None);
    }
    let searched = if dirs.is_empty() {
        "no directories; give -L".to_owned()
    } else {
        dirs.join(", ")
    };
    Err(Error::Library {
        name: name.to_owned(),
        searched,
    })
}

/// Whether a shared object is a module: others, as the host's own libraries, are passed over.
fn is_module(path: &Path) -> bool {
    room::glance(path).is_some_and(|data| Image::parse(&data).is_ok_and(|i| i.note.is_some()))
}
