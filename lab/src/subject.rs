//! Subjects: libraries whose code gets faults, built as they are natively and fenced, with the host that serves requests by them.

use crate::coverage;
use crate::text::Unit;
use ringfence_attack::rng::Rng;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the laboratory breaks: recipes of `modules/`, with a `lab_work` of each below `lab/subjects`.
pub const SUBJECTS: [Plan; 3] = [
    Plan {
        name: "zlib",
        breaks: Breaks::Library,
        storage: 0,
    },
    Plan {
        name: "libpng",
        breaks: Breaks::Library,
        storage: 0,
    },
    Plan {
        name: "sqlite",
        breaks: Breaks::Work,
        storage: 8 << 20,
    },
];

/// What is known of a subject before it is built.
pub struct Plan {
    /// The recipe's name, and that of its file below `lab/subjects`.
    pub name: &'static str,
    /// What gets the faults.
    pub breaks: Breaks,
    /// Bytes of the host's that it keeps something in.
    pub storage: u64,
}

/// What of a subject gets the faults.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Breaks {
    /// The recipe's library.
    Library,
    /// The file below `lab/subjects`: what an application adds to the library.
    Work,
}

/// Requests of a run.
pub const REQUESTS: u32 = 8;

/// Where things are.
#[derive(Clone)]
pub struct Places {
    /// The top of the repository.
    pub root: PathBuf,
    /// The command `ringfence`.
    pub ringfence: PathBuf,
    /// Where all is built.
    pub out: PathBuf,
}

/// In place of the number of requests: only look at the storage.
const CHECK: &str = "check";
/// The storage's name in a run's directory.
const STORAGE: &str = "storage";

/// All ways.
pub const WAYS: [Way; 3] = [Way::Native, Way::Fenced, Way::Words];

/// How a subject is built and run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Linked with the host.
    Native,
    /// A module in a domain of the host.
    Fenced,
    /// The same, with rights to words of the host's objects.
    Words,
}

impl Way {
    /// The name in tables and of files.
    pub fn name(self) -> &'static str {
        ["native", "fenced", "words"][self as usize]
    }

    /// Its compiler.
    fn compiler(self, places: &Places) -> Command {
        let mut command = match self {
            Way::Native => return Command::new("gcc"),
            _ => Command::new(&places.ringfence),
        };
        command.arg("cc");
        if self == Way::Words {
            command.arg(WORDS);
        }
        command
    }
}

const WORDS: &str = "--isolation=words";

/// A subject that is ready for faults.
pub struct Subject {
    /// What it is.
    pub plan: &'static Plan,
    /// The assembly of what gets the faults.
    pub units: Vec<Unit>,
    /// What of it runs: unit and line.
    pub lines: Vec<(usize, usize)>,
    directory: PathBuf,
    /// What `ringfence cc` adds to gcc's command line.
    gcc_flags: Vec<String>,
    /// Objects of what gets no faults, for each way.
    others: [Vec<PathBuf>; WAYS.len()],
    places: Places,
}

/// Runs a command to its end; its standard output.
///
/// # Errors
/// What it said of its failure.
pub fn run(command: &mut Command) -> Result<String, String> {
    let done = command
        .output()
        .map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    let said = String::from_utf8_lossy(&done.stderr);
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("{command:?}:\n{}", said.trim_end())),
    }
}

/// A library with its sources and their flags, as `modules/make.sh sources` tells.
#[derive(Default)]
struct Group {
    name: String,
    flags: Vec<String>,
    /// Besides, where it is fenced.
    fenced_flags: Vec<String>,
    sources: Vec<PathBuf>,
}

impl Group {
    /// Its objects in the words mode; those that are younger than the compiler are there already.
    fn in_words(&self, places: &Places) -> Result<Vec<PathBuf>, String> {
        let directory = places.out.join("libraries").join(&self.name);
        std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        let age = |p: &Path| std::fs::metadata(p).and_then(|m| m.modified()).ok();
        let objects = self.sources.iter().map(|source| {
            let name = source.file_stem().and_then(|n| n.to_str()).unwrap_or("unit");
            let object = directory.join(format!("{name}.o"));
            if age(&object) < age(&places.ringfence).max(age(source)) {
                let mut command = Way::Words.compiler(places);
                command
                    .args(["-O2", "-w", "-c"])
                    .args(&self.flags)
                    .args(&self.fenced_flags);
                run(command.arg(source).arg("-o").arg(&object))?;
            }
            Ok(object)
        });
        objects.collect()
    }
}

/// The recipe's libraries: those that it needs, then its own.
fn groups(name: &str, places: &Places) -> Result<Vec<Group>, String> {
    let script = places.root.join("modules/make.sh");
    let make = |what| {
        run(Command::new(&script)
            .args([what, name])
            .env("RINGFENCE", &places.ringfence))
    };
    make("build")?;
    let mut groups: Vec<Group> = Vec::new();
    for line in make("sources")?.lines() {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match (word, groups.last_mut()) {
            ("group", _) => groups.push(Group {
                name: rest.into(),
                ..Group::default()
            }),
            ("fenced-flag", Some(group)) => group.fenced_flags.push(rest.into()),
            ("flag", Some(group)) => group.flags.push(rest.into()),
            ("source", Some(group)) => group.sources.push(rest.into()),
            _ => {}
        }
    }
    Ok(groups)
}

impl Subject {
    /// Builds it both ways and finds out which of its lines run.
    ///
    /// # Errors
    /// What could not be built or run.
    pub fn prepare(plan: &'static Plan, places: &Places) -> Result<Subject, String> {
        let name = plan.name;
        let directory = places.out.join(name);
        let objects = directory.join("objects");
        std::fs::create_dir_all(&objects).map_err(|e| format!("{}: {e}", objects.display()))?;
        let mut libraries = groups(name, places)?;
        let own = libraries
            .pop()
            .ok_or_else(|| format!("{name}: the recipe has no sources"))?;
        let mut subject = Subject {
            plan,
            units: Vec::new(),
            lines: Vec::new(),
            directory,
            gcc_flags: gcc_flags(places)?,
            others: [const { Vec::new() }; WAYS.len()],
            places: places.clone(),
        };
        let work = subject.assembly(&places.root.join(format!("lab/subjects/{name}.c")), &own.flags)?;
        let whole = match plan.breaks {
            Breaks::Library => {
                for source in &own.sources {
                    let unit = subject.assembly(source, &own.flags)?;
                    subject.units.push(unit);
                }
                Some(work)
            }
            Breaks::Work => {
                subject.units.push(work);
                libraries.push(own);
                None
            }
        };
        for way in WAYS {
            subject.host(way)?;
            for unit in subject.units.iter().chain(&whole) {
                subject.object(&unit.name, &unit.lines.join("\n"), &objects, way)?;
            }
            let variant = way.name();
            let object = whole
                .iter()
                .map(|u| objects.join(format!("{}.{variant}.o", u.name)));
            // What is needed stands behind what needs it.
            let mut others: Vec<PathBuf> = object.collect();
            for library in libraries.iter().rev() {
                match way {
                    Way::Words => others.extend(library.in_words(places)?),
                    _ => others.push(
                        places
                            .root
                            .join(format!("build/modules/{0}/{variant}/lib{0}.a", library.name)),
                    ),
                }
            }
            subject.others[way as usize] = others;
        }
        std::fs::write(subject.input(), input()).map_err(|e| e.to_string())?;
        subject.lines = subject.cover()?;
        for way in WAYS {
            let _ = std::fs::remove_file(subject.expected(way));
            let program = subject.link(&subject.directory, None, way)?;
            let told = run(&mut subject.command(&program, &subject.directory, way)?)?;
            let served = told.lines().filter(|l| *l == "ok").count() == REQUESTS as usize;
            if !served
                || !told.ends_with("heap ok\nend\n")
                || subject.whole(&subject.directory) == Some(false)
            {
                return Err(format!(
                    "{name} does not serve its requests without a fault in it:\n{told}"
                ));
            }
        }
        Ok(subject)
    }

    fn input(&self) -> PathBuf {
        self.directory.join("input")
    }

    fn expected(&self, way: Way) -> PathBuf {
        self.directory.join(format!("expected-{}", way.name()))
    }

    /// gcc's assembly of a source, as `ringfence cc` would have it before it rewrites: the same for all ways.
    fn assembly(&self, source: &Path, flags: &[String]) -> Result<Unit, String> {
        let name = source.file_stem().and_then(|n| n.to_str()).unwrap_or("unit");
        let to = self.directory.join(format!("{name}.s"));
        run(Command::new("gcc")
            .args(&self.gcc_flags)
            .args(["-O2", "-w", "-S"])
            .args(flags)
            .arg("-I")
            .arg(self.places.root.join("lab/subjects"))
            .arg(source)
            .arg("-o")
            .arg(&to))?;
        let text = std::fs::read_to_string(&to).map_err(|e| format!("{}: {e}", to.display()))?;
        Ok(Unit::new(name, &text))
    }

    /// The object of a unit's text.
    ///
    /// # Errors
    /// What the assembler or the rewriter refused.
    pub fn object(&self, name: &str, text: &str, directory: &Path, way: Way) -> Result<PathBuf, String> {
        let [from, to] =
            ["s".to_owned(), format!("{}.o", way.name())].map(|end| directory.join(format!("{name}.{end}")));
        std::fs::write(&from, format!("{text}\n")).map_err(|e| format!("{}: {e}", from.display()))?;
        run(way.compiler(&self.places).arg("-c").arg(from).arg("-o").arg(&to))?;
        Ok(to)
    }

    /// The host, which is linked with the subject or loads it.
    fn host(&self, way: Way) -> Result<(), String> {
        let Places { root, ringfence, .. } = &self.places;
        let libraries = ringfence.parent().ok_or("the command has no directory")?;
        let mut command = Command::new("gcc");
        command.args(["-O2", "-w"]).arg(root.join("lab/subjects/host.c"));
        match way {
            Way::Native => command.arg("-c").arg("-o").arg(self.directory.join("host.o")),
            Way::Fenced | Way::Words => command
                .arg("-DFENCED")
                .args((way == Way::Words).then_some("-DWORDS"))
                .arg("-I")
                .arg(root.join("include"))
                .arg(libraries.join("libringfence_c.a"))
                .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"])
                .arg(self.fence(way)),
        };
        run(&mut command).map(drop)
    }

    /// The host that loads modules.
    fn fence(&self, way: Way) -> PathBuf {
        self.directory.join(format!("host-{}", way.name()))
    }

    /// The program (natively) or module (fenced) of the subject's objects in a directory; one unit's may be another.
    ///
    /// # Errors
    /// What the linker or the verifier refused.
    pub fn link(&self, directory: &Path, broken: Option<&Path>, way: Way) -> Result<PathBuf, String> {
        let end = format!("{}.o", way.name());
        let objects = self.directory.join("objects");
        let mut own: Vec<PathBuf> = self
            .units
            .iter()
            .map(|u| objects.join(format!("{}.{end}", u.name)))
            .collect();
        if let Some(broken) = broken {
            own.retain(|o| o.file_name() != broken.file_name());
            own.push(broken.into());
        }
        let to = directory.join(["program", "module.rf", "words.rf"][way as usize]);
        let mut command = way.compiler(&self.places);
        match way {
            Way::Native => command.arg("-pie").arg(self.directory.join("host.o")),
            Way::Fenced | Way::Words => command.args(["-shared", "--import=lab_read,lab_write"]),
        };
        run(command
            .args(own)
            .args(&self.others[way as usize])
            .arg("-lm")
            .arg("-o")
            .arg(&to))?;
        Ok(to)
    }

    /// What serves the requests by a program or module, with empty storage in a directory.
    ///
    /// # Errors
    /// The storage cannot be made.
    pub fn command(&self, program: &Path, directory: &Path, way: Way) -> Result<Command, String> {
        let mut command = match way {
            Way::Native => Command::new(program),
            Way::Fenced | Way::Words => Command::new(self.fence(way)),
        };
        if self.plan.storage > 0 {
            let image = directory.join(STORAGE);
            let made = std::fs::File::create(&image).and_then(|f| f.set_len(self.plan.storage));
            made.map_err(|e| format!("{}: {e}", image.display()))?;
        }
        command.args(self.arguments(directory, &REQUESTS.to_string(), way));
        if way != Way::Native {
            command.arg(program);
        }
        Ok(command)
    }

    fn arguments(&self, directory: &Path, what: &str, way: Way) -> Vec<String> {
        let path = |p: PathBuf| p.to_string_lossy().into_owned();
        let image = match self.plan.storage {
            0 => "-".into(),
            _ => path(directory.join(STORAGE)),
        };
        vec![path(self.input()), path(self.expected(way)), image, what.into()]
    }

    /// Whether what a run left in the storage is whole, judged by the subject without a fault in it; `None` if it keeps nothing.
    pub fn whole(&self, directory: &Path) -> Option<bool> {
        let mut judge = Command::new(self.directory.join("program"));
        judge.args(self.arguments(directory, CHECK, Way::Native));
        (self.plan.storage > 0).then(|| judge.output().is_ok_and(|d| d.status.success()))
    }

    /// The lines that a native run executes.
    fn cover(&self) -> Result<Vec<(usize, usize)>, String> {
        let directory = self.directory.join("labelled");
        std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
        let mut command = Command::new("gcc");
        command.arg("-pie").arg(self.directory.join("host.o"));
        for (number, unit) in self.units.iter().enumerate() {
            let text = coverage::labelled(unit, number);
            command.arg(self.object(&unit.name, &text, &directory, Way::Native)?);
        }
        let program = directory.join("program");
        run(command
            .args(&self.others[Way::Native as usize])
            .arg("-lm")
            .arg("-o")
            .arg(&program))?;
        let _ = std::fs::remove_file(self.expected(Way::Native));
        let command = self.command(&program, &directory, Way::Native)?;
        let lines: Vec<_> = coverage::executed(command)?.into_iter().collect();
        match lines.is_empty() {
            true => Err(format!("{}: none of its lines runs", self.plan.name)),
            false => Ok(lines),
        }
    }
}

fn gcc_flags(places: &Places) -> Result<Vec<String>, String> {
    let told = run(Command::new(&places.ringfence).args(["cc", WORDS, "--print-flags"]))?;
    let line = told.lines().find_map(|l| l.strip_prefix("compile:"));
    let flags = line.ok_or("`ringfence cc --print-flags` tells no flags")?;
    Ok(flags.split_whitespace().map(String::from).collect())
}

/// Text of common words, the same each time.
fn input() -> Vec<u8> {
    let words = [
        "fence", "host", "module", "word", "page", "of", "the", "a", "and", "region", "gate", "10", "call",
        "\n",
    ];
    let mut rng = Rng::new(7);
    let mut text = Vec::new();
    while text.len() < 32 << 10 {
        text.extend_from_slice(rng.pick(&words).as_bytes());
        text.push(b' ');
    }
    text
}
