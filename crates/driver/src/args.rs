//! gcc's command line, taken apart far enough to know what each argument means for a fenced build.

use std::fmt;
use std::path::Path;

mod linker;
mod own;
mod refused;
mod response;

pub use own::Own;
pub(crate) use own::help;

use crate::error::Error;

/// Which of the two drivers was called: decides the default language of inputs and the C++ libraries at a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Front {
    /// `ringfence cc`.
    C,
    /// `ringfence c++`.
    Cxx,
}

/// What the command line asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing to fence: the compiler answers by itself (`-E`, `-M`, `--version`, `-print-…`).
    PassOn,
    /// `-fsyntax-only`: as [`Mode::PassOn`], with the flags of a fenced compile.
    Check,
    /// `-S`: the rewritten assembly.
    Assembly,
    /// `-c`: an object file.
    Object,
    /// `-r`: a relocatable object made of others.
    Relocatable,
    /// A module.
    Link,
}

/// Where `-save-temps` keeps what is made on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SaveTemps {
    /// Nowhere.
    #[default]
    No,
    /// In the current directory, by the source's name.
    Here,
    /// `=obj`: beside the object, by its name.
    Beside,
}

/// The language of an input, from its name or from `-x`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Language {
    /// Anything that gcc compiles to assembly; the name that `-x` takes if one was given.
    Source(Option<String>),
    /// Assembly to be preprocessed (`.S`).
    AssemblyCpp,
    /// Assembly (`.s`).
    Assembly,
    /// Goes to the linker.
    Linker,
}

/// One item of the link line. The order matters to the linker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// An input file: source, object, archive or module.
    Input {
        /// As named on the command line; `-` is the standard input.
        path: String,
        /// What it is.
        language: Language,
    },
    /// `-lNAME`, without the `-l`.
    Library(String),
    /// Anything else the linker should see at this place.
    Flag(String),
}

/// A command line, understood.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Which driver.
    pub front: Front,
    /// What to do.
    pub mode: Mode,
    /// `-o`.
    pub output: Option<String>,
    /// Inputs, libraries and linker flags in order.
    pub items: Vec<Item>,
    /// Flags for the compiler.
    pub compile: Vec<String>,
    /// Flags for the assembler (`-Wa,…`, `-Xassembler`).
    pub assemble: Vec<String>,
    /// `-L` directories in order.
    pub library_dirs: Vec<String>,
    /// `-MD` or `-MMD` was given.
    pub deps: bool,
    /// `-MF` was given.
    pub deps_file: bool,
    /// `-MT` or `-MQ` was given.
    pub deps_target: bool,
    /// `-shared`: never a program, so no start file.
    pub shared: bool,
    /// `-nostartfiles` or `-nostdlib`.
    pub no_start_files: bool,
    /// `-nodefaultlibs` or `-nostdlib`.
    pub no_default_libs: bool,
    /// `-nostdinc` was given: no headers of the sysroot either.
    pub no_std_inc: bool,
    /// `-ffreestanding`: the minimal library only.
    pub freestanding: bool,
    /// `-s`.
    pub strip: bool,
    /// `-v`.
    pub verbose: bool,
    /// `-###`.
    pub dry_run: bool,
    /// `-save-temps`: keep the assembly before and after rewriting.
    pub save_temps: SaveTemps,
    /// The whole line after response files were expanded, without Ringfence's own options.
    pub raw: Vec<String>,
    /// Things to tell the user.
    pub notes: Vec<String>,
    /// Ringfence's own options.
    pub own: Own,
}

/// Options of gcc whose argument may be the next word; the flag tells whether the compiler wants to see them.
const SEPARATE: &[&str] = &[
    "-I",
    "-D",
    "-U",
    "-A",
    "-B",
    "-G",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-imultilib",
    "-Xpreprocessor",
    "-aux-info",
    "--param",
    "-specs",
    "-dumpbase",
    "-dumpbase-ext",
    "-dumpdir",
    "-wrapper",
];

/// Options after which gcc only answers a question.
pub(crate) fn is_question(arg: &str) -> bool {
    matches!(
        arg,
        "--version"
            | "-dumpversion"
            | "-dumpmachine"
            | "-dumpspecs"
            | "-dumpfullversion"
            | "--help"
            | "--target-help"
            // Meson and others ask the linker through the compiler.
            | "-Wl,--version"
            | "-Wl,-v"
            | "-Wl,-V"
            | "-Wl,--help"
    ) || arg.starts_with("-print-")
        || arg.starts_with("--print-")
        || arg.starts_with("--help=")
        || arg.starts_with("-Q")
}

impl Language {
    /// What gcc takes a file of this name for.
    fn of_name(path: &str) -> Language {
        match Path::new(path).extension().and_then(|e| e.to_str()) {
            Some("s") => Language::Assembly,
            Some("S" | "sx") => Language::AssemblyCpp,
            Some(
                "c" | "i" | "ii" | "cc" | "cp" | "cxx" | "cpp" | "CPP" | "c++" | "C" | "h" | "H" | "hh"
                | "hpp" | "hxx",
            ) => Language::Source(None),
            _ => Language::Linker,
        }
    }

    /// Sources that gcc would compile, and the rewriter was not made for.
    fn foreign(path: &str) -> Option<&'static str> {
        Some(match Path::new(path).extension()?.to_str()? {
            "f" | "for" | "ftn" | "f90" | "f95" | "f03" | "f08" | "F" | "FOR" | "F90" | "F95" | "F03"
            | "F08" => "Fortran",
            "m" | "mi" | "mm" | "M" | "mii" => "Objective-C",
            "adb" | "ads" => "Ada",
            "go" => "Go",
            "d" | "di" | "dd" => "D",
            _ => return None,
        })
    }

    fn of_x(name: &str) -> Result<Option<Language>, Error> {
        Ok(Some(match name {
            "none" => return Ok(None),
            "c" | "c++" | "cpp-output" | "c++-cpp-output" | "c-header" | "c++-header" => {
                Language::Source(Some(name.to_owned()))
            }
            "assembler" => Language::Assembly,
            "assembler-with-cpp" => Language::AssemblyCpp,
            other => return Err(Error::Language(other.to_owned())),
        }))
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Front::C => "ringfence cc",
            Front::Cxx => "ringfence c++",
        })
    }
}

impl Invocation {
    /// Reads a command line (without the program's name).
    ///
    /// # Errors
    ///
    /// Options that cannot work in a fenced build, missing arguments, unreadable response files.
    pub fn parse(front: Front, args: Vec<String>) -> Result<Invocation, Error> {
        let args = response::expand_response_files(args)?;
        let mut inv = Invocation {
            front,
            mode: Mode::Link,
            output: None,
            items: Vec::new(),
            compile: Vec::new(),
            assemble: Vec::new(),
            library_dirs: Vec::new(),
            deps: false,
            deps_file: false,
            deps_target: false,
            shared: false,
            no_start_files: false,
            no_default_libs: false,
            no_std_inc: false,
            freestanding: false,
            strip: false,
            verbose: false,
            dry_run: false,
            save_temps: SaveTemps::No,
            raw: Vec::new(),
            notes: Vec::new(),
            own: Own::default(),
        };
        let mut language = None;
        let mut pending_linker = false;
        let mut it = args.into_iter().peekable();
        while let Some(arg) = it.next() {
            if inv.own_option(&arg, &mut it)? {
                continue;
            }
            if let Some(why) = refused::why(&arg) {
                return Err(Error::Unsupported { option: arg, why });
            }
            inv.raw.push(arg.clone());
            let mut next = |inv: &mut Invocation, name: &str| -> Result<String, Error> {
                let value = it.next().ok_or_else(|| Error::MissingArgument(name.to_owned()))?;
                inv.raw.push(value.clone());
                Ok(value)
            };
            match arg.as_str() {
                "-" => inv.input(&arg, language.clone())?,
                a if !a.starts_with('-') => inv.input(a, language.clone())?,
                "-c" => inv.mode = inv.mode.at_most(Mode::Object),
                "-S" => inv.mode = inv.mode.at_most(Mode::Assembly),
                "-E" | "-M" | "-MM" => {
                    inv.mode = Mode::PassOn;
                    inv.compile.push(arg);
                }
                "-fsyntax-only" => {
                    inv.mode = inv.mode.at_most(Mode::Check);
                    inv.compile.push(arg);
                }
                "-r" => inv.mode = inv.mode.at_most(Mode::Relocatable),
                a if is_question(a) => inv.mode = Mode::PassOn,
                "-o" | "--output" => inv.output = Some(next(&mut inv, "-o")?),
                "-x" | "--language" => language = Language::of_x(&next(&mut inv, "-x")?)?,
                a if a.starts_with("-x") => language = Language::of_x(&a[2..])?,
                a if a.starts_with("--language=") => language = Language::of_x(&a[11..])?,
                a if a.starts_with("--output=") => inv.output = Some(a[9..].to_owned()),
                "-v" => {
                    inv.verbose = true;
                    inv.compile.push(arg);
                }
                "-###" => inv.dry_run = true,
                "-pipe" => {}
                "-MD" | "-MMD" => {
                    inv.deps = true;
                    inv.compile.push(arg);
                }
                "-MF" | "-MT" | "-MQ" => {
                    let value = next(&mut inv, &arg)?;
                    *(if arg == "-MF" {
                        &mut inv.deps_file
                    } else {
                        &mut inv.deps_target
                    }) = true;
                    inv.compile.extend([arg, value]);
                }
                a if a.starts_with("-MF") => {
                    inv.deps_file = true;
                    inv.compile.push(arg);
                }
                a if a.starts_with("-MT") || a.starts_with("-MQ") => {
                    inv.deps_target = true;
                    inv.compile.push(arg);
                }
                "-L" => {
                    let dir = next(&mut inv, "-L")?;
                    inv.library_dirs.push(dir);
                }
                a if a.starts_with("-L") => inv.library_dirs.push(a[2..].to_owned()),
                "-l" => {
                    let name = next(&mut inv, "-l")?;
                    inv.items.push(Item::Library(name));
                }
                a if a.starts_with("-l") => inv.items.push(Item::Library(a[2..].to_owned())),
                "-u" | "-T" | "-z" => {
                    let value = next(&mut inv, &arg)?;
                    let flag = if arg == "-T" {
                        format!("-T{value}")
                    } else {
                        format!("-Wl,{arg},{value}")
                    };
                    inv.items.push(Item::Flag(flag));
                }
                "-Xlinker" => {
                    let value = next(&mut inv, "-Xlinker")?;
                    inv.linker_words(vec![value], &mut pending_linker);
                }
                a if a.starts_with("-Wl,") => {
                    let words = a[4..].split(',').map(str::to_owned).collect();
                    inv.linker_words(words, &mut pending_linker);
                }
                "-Xassembler" => {
                    let value = next(&mut inv, "-Xassembler")?;
                    inv.assemble.push(value);
                }
                a if a.starts_with("-Wa,") => inv.assemble.extend(a[4..].split(',').map(str::to_owned)),
                "-shared" => inv.shared = true,
                "-s" => inv.strip = true,
                "-nostartfiles" => inv.no_start_files = true,
                "-nodefaultlibs" | "-nolibc" => inv.no_default_libs = true,
                "-nostdlib" => {
                    inv.no_start_files = true;
                    inv.no_default_libs = true;
                }
                "-nostdinc" => {
                    inv.no_std_inc = true;
                    inv.compile.push(arg);
                }
                "-ffreestanding" => {
                    inv.freestanding = true;
                    inv.compile.push(arg);
                }
                // Modules are always position independent and linked one way.
                "-static" | "-static-pie" | "-pie" | "-no-pie" | "-nopie" | "-rdynamic"
                | "-static-libgcc" | "-shared-libgcc" | "-static-libstdc++" | "-symbolic" | "-pthread"
                | "-fPIE" | "-fpie" | "-fPIC" | "-fpic" | "-fno-PIE" | "-fno-pie" | "-fno-PIC"
                | "-fno-pic" | "-fno-plt" | "-fplt" => {
                    if arg == "-pthread" {
                        inv.compile.push("-D_REENTRANT".to_owned());
                    }
                }
                a if a.starts_with("-fuse-ld=") || a.starts_with("-fuse-linker-plugin") => {}
                "-save-temps=obj" | "--save-temps=obj" => inv.save_temps = SaveTemps::Beside,
                a if a.starts_with("-save-temps") || a.starts_with("--save-temps") => {
                    inv.save_temps = SaveTemps::Here;
                }
                "-fno-lto" | "-ffat-lto-objects" | "-fno-fat-lto-objects" => {}
                a if a.starts_with("-flto") => {
                    inv.note("-flto is not used: link-time code generation would bypass the rewriter");
                }
                a if a.starts_with("-gsplit-dwarf") => {
                    inv.note("-gsplit-dwarf is not used: debug information stays in the object");
                }
                "-m64" => {}
                a if SEPARATE.contains(&a) => {
                    let value = next(&mut inv, a)?;
                    inv.compile.extend([arg, value]);
                }
                _ => inv.compile.push(arg),
            }
        }
        refused::sanitizers(&inv.compile)?;
        Ok(inv)
    }

    fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|n| n == text) {
            self.notes.push(text.to_owned());
        }
    }

    fn input(&mut self, path: &str, forced: Option<Language>) -> Result<(), Error> {
        if forced.is_none()
            && let Some(other) = Language::foreign(path)
        {
            return Err(Error::Input {
                path: path.to_owned(),
                what: format!("{other} is not supported; fenced code is C, C++ or assembly"),
            });
        }
        let language = forced.unwrap_or_else(|| Language::of_name(path));
        self.items.push(Item::Input {
            path: path.to_owned(),
            language,
        });
        Ok(())
    }

    /// Whether any input is there at all.
    #[must_use]
    pub fn has_inputs(&self) -> bool {
        self.items
            .iter()
            .any(|i| matches!(i, Item::Input { .. } | Item::Library(_)))
    }
}

impl Mode {
    /// `-c`, `-S` and kin: the earliest stage wins.
    fn at_most(self, other: Mode) -> Mode {
        let rank = |m: Mode| match m {
            Mode::PassOn => 0,
            Mode::Check => 1,
            Mode::Assembly => 2,
            Mode::Object => 3,
            Mode::Relocatable => 4,
            Mode::Link => 5,
        };
        if rank(other) < rank(self) { other } else { self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ringfence_isa::Isolation;

    fn parse(line: &str) -> Invocation {
        Invocation::parse(Front::C, line.split_whitespace().map(str::to_owned).collect()).unwrap()
    }

    #[test]
    fn earliest_stage_wins() {
        assert_eq!(parse("-S -c a.c").mode, Mode::Assembly);
        assert_eq!(parse("-c a.c -E").mode, Mode::PassOn);
        assert_eq!(parse("a.c").mode, Mode::Link);
    }

    #[test]
    fn languages() {
        let inv = parse("a.c -x c++ - -x none b.o c.S d.s");
        let langs: Vec<_> = inv
            .items
            .iter()
            .map(|i| match i {
                Item::Input { language, .. } => language.clone(),
                _ => unreachable!(),
            })
            .collect();
        assert_eq!(
            langs,
            [
                Language::Source(None),
                Language::Source(Some("c++".into())),
                Language::Linker,
                Language::AssemblyCpp,
                Language::Assembly
            ]
        );
    }

    #[test]
    fn missing_and_bad_arguments() {
        assert!(Invocation::parse(Front::C, vec!["-o".into()]).is_err());
        assert!(Invocation::parse(Front::C, vec!["--isolation=none".into()]).is_err());
    }

    #[test]
    fn own_options_do_not_reach_gcc() {
        let inv = parse("--isolation=integrity --import=a,b --no-rewrite -c x.c");
        assert_eq!(inv.own.isolation, Isolation::Integrity);
        assert_eq!(inv.own.imports, ["a", "b"]);
        assert_eq!(inv.raw, ["-c", "x.c"]);
    }
}
