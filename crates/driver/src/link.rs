//! From objects to a module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use ringfence_isa::note::IMPORT_PREFIX;
use ringfence_isa::window::stub;
use ringfence_isa::{ABI_VERSION, identifier};

use crate::args::{Front, Invocation, Item, Language};
use crate::check;
use crate::compile;
use crate::error::{Error, Undefined};
use crate::finalize::finalize;
use crate::image::{Image, ImageError, Note};
use crate::inputs::{self, Inputs, Kind, Prefer};
use crate::temp::TempDir;
use crate::tools::Tools;

mod output;
mod undefined;

use undefined::{demangled, direct_references, has_plt, undefined_references, undefined_symbols};

/// Flags of every link of a module.
pub(crate) const FLAGS: &[&str] = &[
    "-shared",
    "-nostdlib",
    "-nostartfiles",
    "-fno-lto",
    "-Wl,--no-relax",
    "-Wl,-Bsymbolic",
    "-Wl,-z,noexecstack",
    "-Wl,-z,separate-code",
    "-Wl,-z,now",
    "-Wl,-z,relro",
    "-Wl,-z,text",
    // What is weak and not defined here is looked for when the module is loaded.
    "-Wl,-z,dynamic-undefined-weak",
    "-Wl,-z,max-page-size=4096",
    "-Wl,-z,common-page-size=4096",
    "-Wl,--hash-style=both",
    "-Wl,--eh-frame-hdr",
    // A libc's `_init` and `_fini` are for its own start files; ld would make DT_INIT and DT_FINI of them.
    "-Wl,-init=__rf_no_init",
    "-Wl,-fini=__rf_no_fini",
];

/// How a module is laid out, for ld.
const LAYOUT: &str = include_str!("module.ld");

/// Where `ringfence run` begins a program.
const START: &str = "__rf_main";

/// How many layouts are tried to get rid of bytes that look like an identifier.
const LAYOUTS: usize = 8;

struct Linker<'a> {
    inv: &'a Invocation,
    tools: &'a Tools,
    /// The file with [`LAYOUT`].
    layout: String,
    /// Objects, archives, flags, in order; then the libraries that come by themselves.
    line: Vec<String>,
    /// Those of them that this run compiled.
    temporary: Vec<String>,
    found: Inputs,
    /// What is weak and not defined here is null.
    weak_null: bool,
    /// An archive was taken where there is a module of the same name, too.
    passed_over: bool,
}

/// Links the items of the command line; `objects` holds, in order, what the sources among them were compiled to.
///
/// # Errors
///
/// Everything from a missing library to the verifier's verdict.
pub(crate) fn link(
    inv: &Invocation,
    tools: &Tools,
    temp: &TempDir,
    objects: Vec<String>,
) -> Result<(), Error> {
    let layout = temp.file("module.ld");
    fs::write(&layout, LAYOUT).map_err(|e| Error::read(&layout, e))?;
    let mut linker = Linker {
        inv,
        tools,
        layout,
        line: Vec::new(),
        temporary: objects,
        found: Inputs::default(),
        weak_null: false,
        passed_over: false,
    };
    linker.gather(Prefer::Archives)?;
    match make(&mut linker, temp) {
        // ld takes a shared library before an archive, and some archives lack what the library of their name has.
        Err(Error::Undefined(missing)) if linker.passed_over => {
            linker.line.clear();
            linker.found = Inputs::default();
            linker.gather(Prefer::Modules)?;
            // If that does not help, the first message is the one to be understood.
            make(&mut linker, temp).map_err(|e| match e {
                Error::Undefined(_) | Error::DirectData { .. } => Error::Undefined(missing),
                other => other,
            })
        }
        other => other,
    }
}

/// Makes the module of what was gathered.
fn make(linker: &mut Linker<'_>, temp: &TempDir) -> Result<(), Error> {
    let (inv, tools) = (linker.inv, linker.tools);
    let output = inv.output.clone().unwrap_or_else(|| "a.out".to_owned());
    let linked = temp.file("linked");

    let base = temp.file("base.o");
    linker.assemble(&base_assembly(inv, &linker.found.modules), &base)?;
    if tools.dry_run() {
        tools.pass_on(&linker.arguments(&linked, &[base], &[]))?;
        return Ok(());
    }
    let mut extra = vec![base];
    let mut undefined = linker.first_pass(&linked, &extra)?;
    let empty = fs::read(&linked).is_ok_and(|d| matches!(Image::parse(&d), Err(ImageError::TextSegments(0))));
    if empty {
        // Data only; a module has text, if only this.
        let object = temp.file("text.o");
        linker.assemble("\t.text\n\tud2\n", &object)?;
        extra.push(object);
    }
    let mut thunks = BTreeSet::new();
    let mut link_again = empty;
    // The second link can bring up symbols that the first one, which fails at a hidden one, had no chance to show.
    loop {
        // ld warns of places, and not of all; the symbol table has every symbol.
        for name in undefined_symbols(&linked) {
            undefined.entry(name).or_default();
        }
        // Those that are there stay: with its thunk, a weak symbol is undefined no more.
        let mut wanted = linker.thunks(&linked, &undefined)?;
        wanted.extend(thunks.iter().cloned());
        if !link_again && wanted == thunks {
            break;
        }
        link_again = false;
        thunks = wanted;
        let object = temp.file("imports.o");
        linker.assemble(&thunks.iter().map(|n| thunk(n)).collect::<String>(), &object)?;
        let mut with_thunks = extra.clone();
        with_thunks.push(object);
        linker.run(&linker.arguments(&linked, &with_thunks, &[]))?;
    }
    if !thunks.is_empty() {
        extra.push(temp.file("imports.o"));
    }

    if has_plt(&linked) {
        // Somebody calls a weak function directly: assembly that is taken as it is, or an object of an older rewriter. No call but
        // through the checked sequence can lead out of a module.
        linker.weak_null = true;
        linker.run(&linker.arguments(&linked, &extra, &[]))?;
    }

    let claims = Note {
        version: ABI_VERSION,
        flags: compile::note_flags(inv),
        features: 0,
    };
    let mut data = read(&linked)?;
    let mut summary = finalize(&mut data, &output, claims)?;
    for attempt in 1..LAYOUTS {
        if summary.accidental.is_empty() {
            break;
        }
        // Another distance between text and data changes every displacement that reaches from one into the other.
        let pad = temp.file("pad.o");
        linker.assemble(
            &format!("\t.text\n\t.p2align 6\n\t.skip {}, 0xcc\n", 64 * attempt),
            &pad,
        )?;
        linker.run(&linker.arguments(&linked, &extra, &[pad]))?;
        data = read(&linked)?;
        summary = finalize(&mut data, &output, claims)?;
    }
    if let Some(address) = summary.accidental.first()
        && !inv.own.no_verify
    {
        let image = Image::parse(&data).map_err(|source| Error::Image {
            path: output.clone(),
            source,
        })?;
        let place = image
            .place(*address)
            .map_or_else(String::new, |p| format!(" ({p})"));
        return Err(Error::Accidental {
            address: *address,
            place,
        });
    }
    if inv.verbose {
        if inv.front == Front::Cxx && tools.hosted(inv) {
            // As gcc shows its linker's line: CMake reads there what a program in C needs besides to link a library in C++.
            eprintln!(" collect2 -lstdc++ -lm -lc");
        }
        eprintln!(
            "ringfence: {} label classes, {} imports, {} bytes of fillers replaced, {} detours",
            summary.labels,
            thunks.len(),
            summary.fillers,
            summary.detours
        );
    }
    if !inv.own.no_verify {
        let rules = check::Rules {
            addressing: inv.own.addressing,
            ..check::Rules::default()
        };
        let verdict = check::check(&data, &rules).map_err(|source| Error::Image {
            path: output.clone(),
            source,
        })?;
        if !verdict.accepted() {
            return Err(Error::Rejected(verdict.explain(&output, &linker.found.strangers)));
        }
    }
    let program = Image::parse(&data).is_ok_and(|i| i.symbols.iter().any(|s| s.defined && s.name == START));
    if inv.strip {
        data = output::strip(tools, temp, &data)?;
    }
    match &inv.own.wrapper {
        Some(options) if program => output::write_wrapped(&output, &data, options, &linker.found.modules),
        _ => output::write_output(&output, &data),
    }
}

impl Linker<'_> {
    /// Puts the link line together.
    fn gather(&mut self, prefer: Prefer) -> Result<(), Error> {
        let mut objects = self.temporary.clone().into_iter();
        let mut dirs = self.inv.library_dirs.clone();
        let own = if self.tools.hosted(self.inv) {
            "lib"
        } else {
            "min/lib"
        };
        dirs.extend(self.tools.library(self.inv, own));
        dirs.extend(self.tools.sysroot_file(own));
        for item in &self.inv.items {
            match item {
                Item::Flag(flag) => self.line.push(flag.clone()),
                Item::Library(name) => {
                    if let Some(found) = inputs::library(name, &dirs, prefer)? {
                        self.passed_over |= found.passed_over;
                        self.add(found.path)?;
                    }
                }
                Item::Input {
                    path,
                    language: Language::Linker,
                } => self.add(path.clone())?,
                Item::Input { .. } => {
                    if let Some(object) = objects.next() {
                        self.add(object)?;
                    }
                }
            }
        }
        self.defaults()
    }

    fn add(&mut self, path: String) -> Result<(), Error> {
        let kind = if self.tools.dry_run() {
            Kind::Code
        } else {
            let strangers = self.found.strangers.len();
            let kind = self.found.look(&path)?;
            // Hand-written and confined by hand: what the sysroot has is no stranger.
            if self.tools.is_of_sysroot(&path) {
                self.found.strangers.truncate(strangers);
            }
            kind
        };
        if kind != Kind::Module {
            self.line.push(path);
        }
        Ok(())
    }

    /// Adds what the sysroot has: start file for a program, C library, compiler support.
    fn defaults(&mut self) -> Result<(), Error> {
        if !self.inv.no_default_libs {
            let hosted = self.tools.hosted(self.inv);
            let mut names = Vec::new();
            if self.inv.front == Front::Cxx && hosted {
                names.extend([
                    "lib/libc++.a",
                    "lib/libc++abi.a",
                    "lib/libstdc++.a",
                    "lib/libunwind.a",
                ]);
            }
            names.extend(if hosted {
                ["lib/libc.a", "lib/libgcc.a"]
            } else {
                ["min/lib/librfmin.a", "min/lib/libgcc.a"]
            });
            let libs: Vec<String> = names
                .iter()
                .filter_map(|n| self.tools.library(self.inv, n))
                .collect();
            if !libs.is_empty() {
                // What comes by itself is the module's own business: not exported.
                let hidden: Vec<&str> = libs.iter().filter_map(|l| l.rsplit('/').next()).collect();
                self.line.push(format!("-Wl,--exclude-libs,{}", hidden.join(":")));
                self.line.push("-Wl,--start-group".to_owned());
                for lib in libs {
                    self.add(lib)?;
                }
                self.line.push("-Wl,--end-group".to_owned());
            }
        }
        // A module without `main` is a library; one with it is a program, unless told otherwise.
        if self.found.main
            && !self.inv.shared
            && !self.inv.no_start_files
            && self.tools.hosted(self.inv)
            && let Some(start) = self.tools.library(self.inv, "lib/crt1.o")
        {
            self.found.look(&start)?;
            self.line.insert(0, start);
        }
        Ok(())
    }

    fn arguments(&self, output: &str, extra: &[String], front: &[String]) -> Vec<String> {
        let mut args: Vec<String> = front.to_vec();
        args.extend(self.line.iter().cloned());
        args.extend(extra.iter().cloned());
        // Last, so that no flag of the user undoes them.
        args.extend(FLAGS.iter().map(|s| (*s).to_owned()));
        args.push(format!("-Wl,-T,{}", self.layout));
        if self.weak_null {
            args.push("-Wl,-z,nodynamic-undefined-weak".to_owned());
        }
        args.extend(["-o".to_owned(), output.to_owned()]);
        args
    }

    fn assemble(&self, text: &str, object: &str) -> Result<(), Error> {
        self.tools
            .assemble(text, object, &[])
            .map_err(|messages| Error::Assembler {
                file: "link".to_owned(),
                messages,
            })
    }

    /// Links with everything undefined reported, and returns it: symbol to places.
    fn first_pass(&self, linked: &str, extra: &[String]) -> Result<BTreeMap<String, Vec<String>>, Error> {
        let mut args = self.arguments(linked, extra, &[]);
        args.extend(
            [
                "-Wl,-z,defs",
                "-Wl,--warn-unresolved-symbols",
                "-Wl,--no-demangle",
            ]
            .map(str::to_owned),
        );
        let out = self.tools.capture(&args)?;
        let messages = String::from_utf8_lossy(&out.stderr);
        let (undefined, rest) = undefined_references(&messages);
        let mut rest: Vec<String> = rest;
        if !out.status.success() {
            let given = |name: &String| {
                self.inv.own.data_imports.contains(name) || self.found.data_imports.contains(name)
            };
            let direct = direct_references(&messages).into_iter().find(|(_, n)| given(n));
            if let Some((object, symbol)) = direct {
                return Err(Error::DirectData { object, symbol });
            }
        }
        if !out.status.success() && undefined.is_empty() {
            for line in &rest {
                eprintln!("{line}");
            }
            return Err(Error::Failed(
                "linking".to_owned(),
                out.status.code().unwrap_or(1),
            ));
        }
        if undefined.is_empty() && undefined_symbols(linked).is_empty() {
            // The second link would print these; there is none.
            rest.iter_mut().for_each(|l| eprintln!("{l}"));
        }
        Ok(undefined)
    }

    /// Which of the undefined symbols get a thunk.
    fn thunks(
        &self,
        linked: &str,
        undefined: &BTreeMap<String, Vec<String>>,
    ) -> Result<BTreeSet<String>, Error> {
        let own = &self.inv.own;
        let is_import = |name: &str| {
            stub::NAMES.iter().any(|(n, _)| *n == name)
                || own.imports.iter().any(|n| n == name)
                || self.found.imports.contains(name)
        };
        let is_data = |name: &str| {
            name.starts_with(IMPORT_PREFIX)
                || own.data_imports.iter().any(|n| n == name)
                || self.found.data_imports.contains(name)
        };
        // A weak reference to a declared import counts as one; ld does not report it.
        let declared = own.imports.iter().chain(&self.found.imports);
        let weak: Vec<&String> = declared.filter(|n| self.found.weak.contains(*n)).collect();
        let mut thunks = BTreeSet::new();
        if !weak.is_empty()
            && let Ok(data) = fs::read(linked)
            && let Ok(image) = Image::parse(&data)
        {
            let undefined = |n: &&&String| !image.symbols.iter().any(|s| s.defined && s.name == ***n);
            thunks.extend(weak.iter().filter(undefined).map(|n| (*n).clone()));
        }
        let mut missing = Undefined {
            no_libc: self.tools.sysroot.is_none() && !self.inv.no_default_libs && !self.inv.freestanding,
            ..Undefined::default()
        };
        for (name, places) in undefined {
            if is_import(name) {
                thunks.insert(name.clone());
            } else if !is_data(name) {
                missing
                    .symbols
                    .push((demangled(name), places.clone(), self.objects_with(name)));
            }
        }
        if !missing.symbols.is_empty() {
            return Err(Error::Undefined(missing));
        }
        Ok(thunks)
    }

    /// The inputs that refer to a symbol, by the names that the user gave.
    fn objects_with(&self, name: &str) -> Vec<String> {
        let files: Vec<String> = self
            .line
            .iter()
            .filter(|l| !l.starts_with('-'))
            .cloned()
            .collect();
        let mut found = inputs::referrers(&files, name);
        found.retain(|f| !self.temporary.contains(f));
        found
    }

    fn run(&self, args: &[String]) -> Result<(), Error> {
        let out = self.tools.capture(args)?;
        eprint!("{}", String::from_utf8_lossy(&out.stderr));
        if out.status.success() {
            Ok(())
        } else {
            Err(Error::Failed(
                "linking".to_owned(),
                out.status.code().unwrap_or(1),
            ))
        }
    }
}

/// Everything that is linked into each module: the note, and the symbol that label identifiers are counted from.
fn base_assembly(inv: &Invocation, modules: &[String]) -> String {
    let mut text = compile::note_assembly(compile::note_flags(inv), 0, "a", "");
    text.push_str("\t.globl __rf_id_base\n\t.hidden __rf_id_base\n\t.set __rf_id_base, . - 16\n");
    for module in modules {
        let name: String = module.bytes().map(|b| format!("\\{b:03o}")).collect();
        text.push_str(&format!(
            "\t.section {},\"\",@progbits\n\t.asciz \"{name}\"\n",
            inputs::MODULES_SECTION
        ));
    }
    text.push_str("\t.section .note.GNU-stack,\"\",@progbits\n");
    text
}

/// The function that stands for an import.
fn thunk(name: &str) -> String {
    let (function, slot) = (symbol(name), symbol(&format!("{IMPORT_PREFIX}{name}")));
    format!(
        "\t.text\n\t.p2align 3\n\t.globl {function}\n\t.hidden {function}\n\t.type {function}, @function\n\
         {function}:\n\t.cfi_startproc\n\
         \tnopl {id}(%rax,%rax,1)\n\
         \tmovl {slot}@GOTPCREL(%rip), %r11d\n\
         \tandl $-8, %r11d\n\
         \tcmpl ${id}, %gs:4(%r11d)\n\
         \tcmovnel %r14d, %r11d\n\
         \taddq %r14, %r11\n\
         \tjmp *%r11\n\
         \t.cfi_endproc\n\t.size {function}, .-{function}\n\
         \t.section .note.GNU-stack,\"\",@progbits\n",
        id = identifier::FUNCTION,
    )
}

/// A symbol as the assembler takes it.
fn symbol(name: &str) -> String {
    if name
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || "_.$".contains(c))
    {
        name.to_owned()
    } else {
        format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

fn read(path: &str) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|e| Error::read(path, e))
}

/// `-r`: objects in, an object out.
pub(crate) fn relocatable(inv: &Invocation, tools: &Tools, objects: Vec<String>) -> Result<(), Error> {
    let mut objects = objects.into_iter();
    let mut args: Vec<String> = ["-r", "-nostdlib", "-fno-lto"].map(str::to_owned).into();
    for item in &inv.items {
        match item {
            Item::Flag(flag) => args.push(flag.clone()),
            Item::Library(name) => {
                let found = inputs::library(name, &inv.library_dirs, Prefer::Archives)?;
                args.extend(found.map(|f| f.path));
            }
            Item::Input {
                path,
                language: Language::Linker,
            } => args.push(path.clone()),
            Item::Input { .. } => args.extend(objects.next()),
        }
    }
    args.extend([
        "-o".to_owned(),
        inv.output.clone().unwrap_or_else(|| "a.out".to_owned()),
    ]);
    match tools.pass_on(&args)? {
        0 => Ok(()),
        status => Err(Error::Failed("linking".to_owned(), status)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_symbols_are_quoted() {
        assert_eq!(symbol("a.b$1"), "a.b$1");
        assert_eq!(symbol("operator new"), "\"operator new\"");
    }
}
