//! From one source file to fenced assembly or to an object.

use std::borrow::Cow;

use ringfence_isa::{ABI_VERSION, Addressing, Isolation, note, window::feature};
use ringfence_rewrite::{FlagKind, Options, compile_flags};

use crate::args::{Front, Invocation, Language, Mode, SaveTemps};
use crate::error::Error;
use crate::inputs;
use crate::nudge;
use crate::tools::Tools;

/// What one run compiles with.
#[derive(Debug)]
pub(crate) struct Compiler<'a> {
    inv: &'a Invocation,
    tools: &'a Tools,
    flags: Vec<String>,
    features: u32,
    /// Data that other modules give, as far as this command line tells.
    data_imports: Vec<String>,
}

/// First line of what `-S` prints: such assembly is not rewritten once more when it comes back. (Who writes the line into other
/// assembly meets the verifier.)
pub(crate) const FENCED: &str = "# ringfence: fenced assembly";

/// The macro that tells fenced compiles from others.
const MACRO: &str = "-D__ringfence__=1";

/// Whether a flag says which machine the module is for. `-mavx2` and its like do not: they are given to single files
/// whose functions are called only where the processor is known to have the extension.
fn chooses_processor(flag: &str) -> bool {
    flag.starts_with("-march=")
}

/// Macros that gcc defines for extensions, and the bits that stand for them in a module's note.
const FEATURES: &[(&str, u32)] = &[
    ("__SSSE3__", feature::SSSE3),
    ("__SSE4_1__", feature::SSE4),
    ("__SSE4_2__", feature::SSE4),
    ("__POPCNT__", feature::SSE4),
    ("__AVX__", feature::AVX),
    ("__AVX2__", feature::AVX2),
    ("__FMA__", feature::FMA),
    ("__BMI__", feature::BMI),
    ("__BMI2__", feature::BMI),
    ("__LZCNT__", feature::BMI),
    ("__MOVBE__", feature::MOVBE),
    ("__F16C__", feature::F16C),
    ("__AES__", feature::AES),
    ("__PCLMUL__", feature::AES),
    ("__SHA__", feature::SHA),
    ("__ADX__", feature::ADX),
];

/// String instructions reach the module's own memory only: in the words mode structures are copied and cleared without them.
const NO_STRING_INSTRUCTIONS: [&str; 2] = [
    "-mmemcpy-strategy=unrolled_loop:8192:noalign,libcall:-1:noalign",
    "-mmemset-strategy=unrolled_loop:8192:noalign,libcall:-1:noalign",
];

/// Whether gcc copies or clears by string instructions in this assembly.
fn has_string_instructions(assembly: &str) -> bool {
    assembly.lines().any(|line| {
        let code = line.split('#').next().unwrap_or_default();
        let name = code.split_whitespace().next_back().unwrap_or_default();
        let width = name.strip_prefix("movs").or_else(|| name.strip_prefix("stos"));
        matches!(width, Some("b" | "w" | "l" | "q"))
    })
}

/// The note flags that go with the options.
pub(crate) fn note_flags(inv: &Invocation) -> u32 {
    flags_of(inv, inv.own.isolation)
}

fn flags_of(inv: &Invocation, isolation: Isolation) -> u32 {
    let isolation = match isolation {
        Isolation::Full => 0,
        Isolation::Integrity => note::flag::INTEGRITY,
        Isolation::Words => note::flag::WORDS,
    };
    let check = if inv.own.check { note::flag::CHECK } else { 0 };
    isolation | check
}

/// A note section for an object file; equal ones of several objects are kept once.
pub(crate) fn note_assembly(flags: u32, features: u32, section_flags: &str, group: &str) -> String {
    format!(
        "\t.section\t{section},\"{section_flags}\",@note{group}\n\t.p2align 2\n\t.long {len}, {desc}, {kind}\n\
         \t.asciz \"{name}\"\n\t.p2align 2\n\t.long {ABI_VERSION}, {flags}, {features}, 0\n",
        section = note::SECTION,
        len = note::NAME.len() + 1,
        desc = note::DESC_LEN,
        kind = note::TYPE,
        name = note::NAME,
    )
}

impl<'a> Compiler<'a> {
    pub(crate) fn new(inv: &'a Invocation, tools: &'a Tools) -> Result<Compiler<'a>, Error> {
        let mut compiler = Compiler {
            inv,
            tools,
            flags: flags(inv, tools)?,
            features: 0,
            data_imports: inv.own.data_imports.clone(),
        };
        if !tools.dry_run() {
            compiler.data_imports.extend(inputs::given_data(&inv.items)?);
        }
        if inv.compile.iter().any(|f| chooses_processor(f)) && !tools.dry_run() {
            compiler.features = compiler.processor_features()?;
        }
        Ok(compiler)
    }

    /// The flags for the compiler, the user's own first.
    pub(crate) fn flags(&self) -> &[String] {
        &self.flags
    }

    /// Asks gcc what the user's flags switch on.
    fn processor_features(&self) -> Result<u32, Error> {
        let machine = self.inv.compile.iter().filter(|f| f.starts_with("-m")).cloned();
        let mut args: Vec<String> = machine.collect();
        args.extend(["-E", "-dM", "-x", "c", "/dev/null"].map(str::to_owned));
        let out = self.tools.capture(&args)?;
        let text = String::from_utf8_lossy(&out.stdout);
        let macros: Vec<&str> = text.lines().filter_map(|l| l.split_whitespace().nth(1)).collect();
        Ok(FEATURES
            .iter()
            .filter(|(m, _)| macros.contains(m))
            .fold(0, |bits, (_, b)| bits | b))
    }

    /// Fenced assembly for one input. `object` is the name that dependencies are recorded for.
    pub(crate) fn assembly(&self, path: &str, language: &Language, object: &str) -> Result<String, Error> {
        let input = self.input(path, language, object, &[])?;
        self.fenced(&input, path, language, object, &self.own_options(language))
    }

    /// What is to be fenced: what gcc makes of one input, with flags of its own, or an assembly file itself.
    fn input(&self, path: &str, language: &Language, object: &str, extra: &[&str]) -> Result<String, Error> {
        let input = match language {
            Language::Assembly => read_input(path)?,
            _ => String::from_utf8_lossy(&self.run_gcc(path, language, object, extra)?).into_owned(),
        };
        if let Some(start) = self.saved(path, object)
            && !self.tools.dry_run()
        {
            save(&format!("{start}.gcc.s"), &input)?;
        }
        Ok(input)
    }

    /// What fences it as the command line says, or another way.
    fn options(&self, isolation: Isolation, addressing: Addressing, language: &Language) -> Options {
        Options {
            isolation,
            addressing,
            check: self.inv.own.check,
            handwritten: !matches!(language, Language::Source(_)),
            data_imports: self.data_imports.clone(),
            clock: self.inv.own.clock,
        }
    }

    fn own_options(&self, language: &Language) -> Options {
        self.options(self.inv.own.isolation, self.inv.own.addressing, language)
    }

    fn fenced(
        &self,
        input: &str,
        path: &str,
        language: &Language,
        object: &str,
        options: &Options,
    ) -> Result<String, Error> {
        if self.tools.dry_run() {
            return Ok(String::new());
        }
        if self.inv.own.no_rewrite || options.handwritten && input.starts_with(FENCED) {
            return Ok(input.to_owned());
        }
        let name = if path == "-" { "<stdin>" } else { path };
        let mut rewritten = ringfence_rewrite::rewrite(input, name, options);
        if let Err(errors) = &rewritten
            && let (Some(flag), Language::Source(_)) = (errors.remedy(), language)
            && path != "-"
        {
            let again = self.input(path, language, object, &[flag])?;
            rewritten = ringfence_rewrite::rewrite(&again, name, options);
        }
        rewritten.map_err(|errors| self.explain(path, language, object, options, errors))
    }

    /// What the names of kept assembly begin with, if it is kept; `object` is what the user calls the object.
    fn saved(&self, path: &str, object: &str) -> Option<String> {
        match self.inv.save_temps {
            SaveTemps::No => None,
            SaveTemps::Here => Some(stem(path)),
            SaveTemps::Beside => Some(
                std::path::Path::new(object)
                    .with_extension("")
                    .to_string_lossy()
                    .into_owned(),
            ),
        }
    }

    /// Finds the source lines of what could not be rewritten, by compiling once more with line information.
    fn explain(
        &self,
        path: &str,
        language: &Language,
        object: &str,
        options: &Options,
        errors: ringfence_rewrite::Errors,
    ) -> Error {
        let lacking = errors.0.iter().any(|e| e.source_line.is_none());
        let mut errors = errors;
        if lacking
            && path != "-"
            && matches!(language, Language::Source(_))
            && let Ok(text) = self.run_gcc(path, language, object, &["-g1", "-gdwarf-2", "-dA"])
            && let Err(better) = ringfence_rewrite::rewrite(&String::from_utf8_lossy(&text), path, options)
            && better.0.len() >= errors.0.len()
        {
            errors = better;
        }
        let lines: Vec<String> = errors
            .0
            .iter()
            .map(|e| format!("cannot be fenced: {e}"))
            .collect();
        Error::Rewrite(lines.join("\nringfence: error: "))
    }

    /// Runs gcc on one input and returns what it prints: assembly, or preprocessed assembly for `.S`.
    fn run_gcc(
        &self,
        path: &str,
        language: &Language,
        object: &str,
        extra: &[&str],
    ) -> Result<Vec<u8>, Error> {
        let mut args = self.flags.clone();
        args.extend(extra.iter().map(|s| (*s).to_owned()));
        match language {
            Language::Source(Some(name)) => args.extend(["-x".to_owned(), name.clone()]),
            Language::AssemblyCpp | Language::Assembly => {
                args.extend(["-x".to_owned(), "assembler-with-cpp".to_owned()]);
            }
            _ => {}
        }
        if self.inv.deps {
            if !self.inv.deps_file {
                args.extend([
                    "-MF".to_owned(),
                    std::path::Path::new(object)
                        .with_extension("d")
                        .to_string_lossy()
                        .into_owned(),
                ]);
            }
            if !self.inv.deps_target {
                args.extend(["-MQ".to_owned(), object.to_owned()]);
            }
        }
        let stage = if matches!(language, Language::AssemblyCpp) {
            "-E"
        } else {
            "-S"
        };
        args.extend([stage, "-o", "-"].map(str::to_owned));
        args.push(path.to_owned());
        self.tools.compile(&args)
    }

    /// Compiles one input into the object file `object`. `target` is the name that dependencies are recorded for.
    pub(crate) fn object(
        &self,
        path: &str,
        language: &Language,
        object: &str,
        target: &str,
    ) -> Result<(), Error> {
        let own = &self.inv.own;
        let input = self.input(path, language, target, &[])?;
        let text = self.fenced(&input, path, language, target, &self.own_options(language))?;
        if let Some(start) = self.saved(path, target)
            && !own.no_rewrite
            && !self.tools.dry_run()
        {
            save(&format!("{start}.rf.s"), &text)?;
        }
        self.assemble(path, &text, object, own.isolation)?;
        if own.twin && self.inv.mode == Mode::Object {
            for (end, isolation, addressing) in [
                ("segment.o", own.isolation, Addressing::Segment),
                ("words.o", Isolation::Words, own.addressing),
            ] {
                let twin = std::path::Path::new(object).with_extension(end);
                let twin = twin.to_string_lossy();
                let options = self.options(isolation, addressing, language);
                // Words of a host are copied and cleared without string instructions.
                let own_run = isolation == Isolation::Words
                    && own.isolation != Isolation::Words
                    && matches!(language, Language::Source(_))
                    && has_string_instructions(&input);
                let input = if own_run {
                    Cow::Owned(self.input(path, language, target, &NO_STRING_INSTRUCTIONS)?)
                } else {
                    Cow::Borrowed(&input)
                };
                let other = self.fenced(&input, path, language, target, &options)?;
                if other != text {
                    self.assemble(path, &other, &twin, isolation)?;
                } else if !self.tools.dry_run() {
                    std::fs::copy(object, &*twin).map_err(|e| Error::read(&twin, e))?;
                }
            }
        }
        Ok(())
    }

    /// Assembles what was fenced, with a module's note, into the object file `object`.
    fn assemble(&self, path: &str, text: &str, object: &str, isolation: Isolation) -> Result<(), Error> {
        let mut text = text.to_owned();
        let (flags, features) = (flags_of(self.inv, isolation), self.features);
        text.push('\n');
        text.push_str(&note_assembly(
            flags,
            features,
            "aG",
            &format!(",__rf_note.{flags}.{features},comdat"),
        ));
        let mut text = Cow::Owned(text);
        for attempt in 0.. {
            let arguments = self.assembler_flags();
            if let Err(messages) = self.tools.assemble(&text, object, &arguments) {
                let messages = messages.replace("{standard input}", "fenced assembly");
                let _ = std::fs::remove_file(object);
                if messages.contains("can't create ") {
                    let source = std::fs::File::create(object).err();
                    let source = source.unwrap_or_else(|| std::io::ErrorKind::Other.into());
                    return Err(Error::read(object, source));
                }
                return Err(Error::Assembler {
                    file: path.to_owned(),
                    messages: messages.trim_end().to_owned(),
                });
            }
            if self.tools.dry_run() || self.inv.own.no_rewrite || attempt == nudge::ATTEMPTS {
                break;
            }
            match nudge::nudge(self.tools, &text, object, &arguments)? {
                Some(better) => text = Cow::Owned(better),
                None => break,
            }
        }
        Ok(())
    }

    fn assembler_flags(&self) -> Vec<String> {
        let mut flags = Vec::new();
        let mut it = self.inv.compile.iter();
        while let Some(f) = it.next() {
            // For `.include` and `.incbin`.
            if f == "-I" {
                flags.extend(it.next().map(|d| format!("-I{d}")));
            } else if f.starts_with("-I") {
                flags.push(f.clone());
            }
        }
        flags.extend(self.inv.assemble.iter().cloned());
        flags
    }
}

/// The flags for every compile: the user's, the sysroot's headers, and those that make output rewritable.
pub(crate) fn flags(inv: &Invocation, tools: &Tools) -> Result<Vec<String>, Error> {
    let mut flags = inv.compile.clone();
    flags.push(MACRO.to_owned());
    let headers = if tools.hosted(inv) {
        "include"
    } else {
        "min/include"
    };
    if !inv.no_std_inc
        && let Some(include) = tools.sysroot_file(headers)
    {
        flags.push("-nostdinc".to_owned());
        if inv.front == Front::Cxx || inv.items.iter().any(is_cxx) {
            for dir in cxx_dirs(&include) {
                flags.extend(["-isystem".to_owned(), dir]);
            }
        }
        flags.extend([
            "-isystem".to_owned(),
            include,
            "-isystem".to_owned(),
            tools.compiler_include()?,
        ]);
    }
    if inv.own.no_rewrite {
        return Ok(flags);
    }
    flags.extend(compile_flags(FlagKind::Compile).iter().map(|s| (*s).to_owned()));
    // EVEX is refused as a whole, and `-march=native` may switch it on. The assembler takes EVEX for what AVX-VNNI has
    // in both encodings.
    flags.extend(["-mno-avx512f", "-mno-avxvnni"].map(str::to_owned));
    if inv.own.isolation == Isolation::Words {
        flags.extend(NO_STRING_INSTRUCTIONS.map(str::to_owned));
        // Then gcc asks no table.
        if inv
            .compile
            .iter()
            .rfind(|f| f.starts_with("-O"))
            .is_some_and(|f| matches!(f.as_str(), "-Os" | "-Oz"))
        {
            flags.push("-mstringop-strategy=unrolled_loop".to_owned());
        }
    }
    let debug = inv
        .compile
        .iter()
        .rfind(|f| f.starts_with("-g") && !f.starts_with("-grecord"));
    if debug.is_some_and(|f| f != "-g0") {
        flags.extend(
            compile_flags(FlagKind::CompileDebug)
                .iter()
                .map(|s| (*s).to_owned()),
        );
    }
    Ok(flags)
}

fn is_cxx(item: &crate::args::Item) -> bool {
    let crate::args::Item::Input {
        path,
        language: Language::Source(x),
    } = item
    else {
        return false;
    };
    match x {
        Some(name) => name.starts_with("c++"),
        None => [".cc", ".cp", ".cxx", ".cpp", ".c++", ".C", ".ii", ".CPP"]
            .iter()
            .any(|e| path.ends_with(e)),
    }
}

/// Directories with C++ headers under the sysroot's `include`.
fn cxx_dirs(include: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(format!("{include}/c++")) else {
        return Vec::new();
    };
    let mut dirs = Vec::new();
    for version in entries.flatten().map(|e| e.path()).filter(|p| p.is_dir()) {
        let dir = version.to_string_lossy().into_owned();
        dirs.push(dir.clone());
        for sub in ["x86_64-linux-gnu", "x86_64-linux-musl", "backward"] {
            if version.join(sub).is_dir() {
                dirs.push(format!("{dir}/{sub}"));
            }
        }
    }
    dirs
}

/// An input's name without directory and extension, as gcc derives output names from it.
pub(crate) fn stem(path: &str) -> String {
    match path {
        "-" => "-".to_owned(),
        _ => std::path::Path::new(path)
            .file_stem()
            .map_or_else(|| path.to_owned(), |s| s.to_string_lossy().into_owned()),
    }
}

fn save(path: &str, text: &str) -> Result<(), Error> {
    std::fs::write(path, text).map_err(|e| Error::read(path, e))
}

fn read_input(path: &str) -> Result<String, Error> {
    let bytes = if path == "-" {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin(), &mut bytes)
            .map_err(|e| Error::read("<stdin>", e))?;
        bytes
    } else {
        std::fs::read(path).map_err(|e| Error::read(path, e))?
    };
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_flags() {
        assert!(chooses_processor("-march=x86-64-v3"));
        assert!(!chooses_processor("-mavx2"));
    }

    #[test]
    fn names_follow_gcc() {
        assert_eq!(stem("dir/a.b.c"), "a.b");
        assert_eq!(stem("-"), "-");
    }
}
