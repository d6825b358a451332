//! Subjects: code that gets faults, built as it is natively, fenced and with rights to words, with the host that serves requests by it.

use crate::coverage::Marks;
use crate::family;
use crate::keep::Room;
use crate::kinds::{KINDS, Kind, Mutation};
use crate::library::{groups, make, own};
use crate::plan::{Breaks, Judge, Plan, Server};
use crate::server::{Desk, Place};
use crate::text::Unit;
use crate::way::{Places, REQUESTS, WAYS, WORDS, Way, run};
use ringfence_attack::rng::Rng;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// In place of the number of requests: only look at the storage.
const CHECK: &str = "check";
/// Objects of units without a fault, in a subject's directory.
const OBJECTS: &str = "objects";
/// What is built, without its suffix.
const PROGRAM: &str = "program";
/// The storage's name in a run's directory.
const STORAGE: &str = "storage";

/// Why a subject is not ready.
#[derive(Debug)]
pub enum Unready {
    /// Its sources are not here and cannot be fetched.
    Missing(String),
    /// Anything else.
    Broken(String),
}

impl From<String> for Unready {
    fn from(why: String) -> Unready {
        Unready::Broken(why)
    }
}

/// Libraries and what servers need are of several subjects: one at a time builds them.
fn building() -> MutexGuard<'static, ()> {
    static BUILDING: Mutex<()> = Mutex::new(());
    BUILDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A subject that is ready for faults.
pub struct Subject {
    /// What it is.
    pub plan: &'static Plan,
    /// The assembly of what gets the faults.
    pub units: Vec<Unit>,
    /// What of it runs: unit and line.
    pub lines: Vec<(usize, usize)>,
    /// Types of faults that have a place in it.
    pub kinds: Vec<Kind>,
    /// What its server needs, if it lives in one.
    pub place: Place,
    /// Answers of a server without a fault in what it has loaded.
    pub answers: Vec<String>,
    directory: PathBuf,
    /// What `ringfence cc` adds to gcc's command line.
    gcc_flags: Vec<String>,
    /// Objects of what gets no faults, for each way.
    others: [Vec<PathBuf>; WAYS.len()],
    places: Places,
}

impl Subject {
    /// Builds it each way and finds out which of its lines run.
    ///
    /// # Errors
    /// Its sources cannot be had, or what could not be built or run.
    pub fn prepare(plan: &'static Plan, places: &Places) -> Result<Subject, Unready> {
        let directory = places.out.join(plan.name);
        let objects = directory.join(OBJECTS);
        std::fs::create_dir_all(&objects).map_err(|e| format!("{}: {e}", objects.display()))?;
        let mut subject = Subject {
            plan,
            units: Vec::new(),
            lines: Vec::new(),
            kinds: Vec::new(),
            place: Place::default(),
            answers: Vec::new(),
            directory,
            gcc_flags: gcc_flags(places)?,
            others: [const { Vec::new() }; WAYS.len()],
            places: places.clone(),
        };
        match plan.server {
            Some(server) => subject.prepare_server(server)?,
            None => subject.prepare_program()?,
        }
        let has = |k: &Kind| !Mutation::places(*k, &subject.units, &subject.lines).is_empty();
        let mut kinds: Vec<Kind> = KINDS.into_iter().filter(has).collect();
        // In another order for each subject, so that few faults are of many types.
        let mut rng = Rng::new(plan.name.bytes().map(u64::from).sum());
        while !kinds.is_empty() {
            let at = rng.below(kinds.len() as u64) as usize;
            subject.kinds.push(kinds.swap_remove(at));
        }
        Ok(subject)
    }

    /// Units without a fault as objects, and `choose.c`, which is told to `others`.
    fn objects(&mut self, whole: Option<&Unit>, way: Way) -> Result<(), String> {
        let objects = self.directory.join(OBJECTS);
        for unit in &self.units {
            self.object(&unit.name, &family::text(unit, &[]), &objects, way)?;
        }
        let choose = self.assembly(&self.places.root.join("lab/subjects/choose.c"), &[])?;
        for unit in whole.into_iter().chain([&choose]) {
            let object = self.object(&unit.name, &family::text(unit, &[]), &objects, way)?;
            self.others[way as usize].push(object);
        }
        Ok(())
    }

    /// What lives in a server: the server's module, and a module behind the fence.
    fn prepare_server(&mut self, server: Server) -> Result<(), Unready> {
        let building = building();
        Place::source(server, &self.places.root).map_err(Unready::Missing)?;
        self.place = Place::of(server, &self.places.root)?;
        drop(building);
        let mut flags = vec!["-fPIC".to_owned()];
        flags.extend(self.place.flags.iter().cloned());
        for source in self.place.sources.clone() {
            let unit = self.assembly(&source, &flags)?;
            self.units.push(unit);
        }
        for way in self.plan.ways() {
            self.objects(None, way)?;
            let name = server.adapter(way);
            let object = self
                .directory
                .join(OBJECTS)
                .join(format!("{name}.{}.o", way.name()));
            let mut command = way.compiler(&self.places);
            command.args(["-O2", "-w", "-c"]).args(&flags);
            run(command
                .arg(self.places.root.join(format!("lab/subjects/{name}.c")))
                .arg("-o")
                .arg(&object))?;
            self.others[way as usize].push(object);
        }
        let mut desk = Desk::new(&self.places.rooms())?;
        // The array of what is executed is a file that the server's user writes, if he knows where it is.
        let room = Room::new(Path::new(self.place.named("out")))?;
        let hits = room.path().join("hits");
        let (mut objects, marks) = self.marked(&hits)?;
        for (path, mode) in [(room.path(), 0o711), (&hits, 0o666)] {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(path, mode).map_err(|e| format!("{}: {e}", path.display()))?;
        }
        let others = self.others[Way::Native as usize].clone();
        self.others[Way::Native as usize].extend(objects.pop());
        let program = self.link(
            &self.directory.join("labelled").join(PROGRAM),
            &objects,
            Way::Native,
        )?;
        self.others[Way::Native as usize] = others;
        self.answers = desk.answers(&self.place, server, &program, Way::Native)?;
        self.lines = marks.met(&hits)?.into_iter().collect();
        for way in self.plan.ways() {
            let program = self.link(&self.directory.join(PROGRAM), &[], way)?;
            if desk.answers(&self.place, server, &program, way)? != self.answers {
                let why = format!(
                    "{}: other answers without a fault, {}",
                    self.plan.name,
                    way.name()
                );
                return Err(why.into());
            }
        }
        match self.lines.is_empty() {
            true => Err(format!("{}: none of its lines runs", self.plan.name).into()),
            false => Ok(()),
        }
    }

    /// What the host of the laboratory serves requests by.
    fn prepare_program(&mut self) -> Result<(), Unready> {
        let (plan, places) = (self.plan, self.places.clone());
        let subject = self;
        let (name, recipe) = (plan.name, plan.recipe());
        let shared = building();
        let mut libraries = groups(recipe, &places).map_err(Unready::Missing)?;
        if let Breaks::Others { recipe, .. } = plan.breaks {
            groups(recipe, &places).map_err(Unready::Missing)?;
        }
        make("library", recipe, &places)?;
        drop(shared);
        let own_library = own(&mut libraries, recipe)?;
        let mut flags = own_library.flags.clone();
        flags.extend(plan.in_place.then(|| "-DLAB_IN_PLACE".into()));
        match plan.breaks {
            Breaks::Library => {
                for source in &own_library.sources {
                    let unit = subject.assembly(source, &own_library.flags)?;
                    subject.units.push(unit);
                }
            }
            Breaks::Work => libraries.push(own_library),
            Breaks::Others {
                recipe,
                files,
                flags: more,
            } => {
                libraries.push(own_library);
                let other = own(&mut groups(recipe, &places)?, recipe)?;
                let mut theirs = other.flags.clone();
                theirs.extend(more.iter().map(|&f| f.into()));
                for source in other
                    .sources
                    .iter()
                    .filter(|s| files.iter().any(|f| s.ends_with(f)))
                {
                    let unit = subject.assembly(source, &theirs)?;
                    subject.units.push(unit);
                    // Their headers stand beside them.
                    flags.extend(source.parent().map(|p| format!("-I{}", p.display())));
                }
                flags.extend(theirs);
            }
        }
        let work = places.root.join(format!("lab/subjects/{}.c", plan.work()));
        let work = subject.assembly(&work, &flags)?;
        let whole = match plan.breaks {
            Breaks::Work => {
                subject.units.push(work);
                None
            }
            _ => Some(work),
        };
        for way in WAYS {
            subject.host(way)?;
            subject.objects(whole.as_ref(), way)?;
            let others = &mut subject.others[way as usize];
            // What is needed stands behind what needs it.
            for library in libraries.iter().rev() {
                match way {
                    Way::Words => {
                        let _shared = building();
                        others.extend(library.in_words(&places)?);
                    }
                    _ => others.push(places.root.join(format!(
                        "build/modules/{0}/{1}/lib{0}.a",
                        library.name,
                        way.name()
                    ))),
                }
            }
        }
        std::fs::write(subject.input(), input()).map_err(|e| e.to_string())?;
        subject.lines = subject.cover()?;
        for way in WAYS {
            let _ = std::fs::remove_file(subject.expected(way));
            let program = subject.link(&subject.directory.join(PROGRAM), &[], way)?;
            let told = run(&mut subject.command(&program, &subject.directory, way, 0)?)?;
            let served = told.lines().filter(|l| *l == "ok").count() == REQUESTS as usize;
            if !served
                || !told.ends_with("heap ok\nend\n")
                || subject.whole(&subject.directory) == Some(false)
            {
                let why = format!("{name} does not serve its requests without a fault in it:\n{told}");
                return Err(why.into());
            }
        }
        Ok(())
    }

    fn input(&self) -> PathBuf {
        self.directory.join("input")
    }

    /// What the storage has at first, if not nothing: what is judged has to be whole before anything is done.
    fn begin(&self) -> PathBuf {
        self.directory.join("begin")
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
        let source = root.join("lab/subjects/host.c");
        let library = ringfence.parent().ok_or("the command has no directory")?;
        let library = library.join("libringfence_c.a");
        let mut command = Command::new("gcc");
        command.args(["-O2", "-w"]).arg(&source);
        if way == Way::Native {
            return run(command.arg("-c").arg("-o").arg(self.directory.join("host.o"))).map(drop);
        }
        // The same for all subjects: once for each run.
        static BUILT: Mutex<[bool; WAYS.len()]> = Mutex::new([false; WAYS.len()]);
        let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
        if built[way as usize] {
            return Ok(());
        }
        let words = (way == Way::Words).then_some("-DWORDS");
        command
            .arg("-DFENCED")
            .args(words)
            .arg("-I")
            .arg(root.join("include"));
        command
            .arg(library)
            .args(["-lpthread", "-ldl", "-lm", "-lgcc_s", "-o"]);
        run(command.arg(self.fence(way)))?;
        built[way as usize] = true;
        Ok(())
    }

    /// The host that loads modules.
    fn fence(&self, way: Way) -> PathBuf {
        self.places.out.join(format!("host-{}", way.name()))
    }

    /// The program (natively) or module (fenced) of the subject's objects, with some in the place of those of their name; `to` gets a
    /// suffix.
    ///
    /// # Errors
    /// What the linker or the verifier refused.
    pub fn link(&self, to: &Path, broken: &[PathBuf], way: Way) -> Result<PathBuf, String> {
        let objects = self.directory.join(OBJECTS);
        let own = self.units.iter().map(|u| {
            let name = format!("{}.{}.o", u.name, way.name());
            let broken = broken.iter().find(|b| b.file_name() == Some(name.as_ref()));
            broken.cloned().unwrap_or_else(|| objects.join(name))
        });
        let to = to.with_extension(way.name());
        let mut command = way.compiler(&self.places);
        match (way, self.plan.server) {
            (Way::Native, None) => command.arg("-pie").arg(self.directory.join("host.o")),
            (_, None) => command.args(["-shared", "--import=lab_read,lab_write,lab_map"]),
            // Its own functions are its own, as behind the fence; what is the server's is found when it is loaded.
            (Way::Native, Some(_)) => command.args(["-shared", "-Wl,-Bsymbolic"]),
            (_, Some(_)) => {
                command = Command::new(self.place.named("cc"));
                command.env("RINGFENCE", &self.places.ringfence)
            }
        };
        run(command
            .args(own)
            .args(&self.others[way as usize])
            .args(["-lm", "-lpthread", "-o"])
            .arg(&to))?;
        Ok(to)
    }

    /// A program or module with some faults in it, each under its number.
    ///
    /// # Errors
    /// What the assembler, the rewriter, the linker or the verifier refused.
    pub fn build(
        &self,
        faults: &[(usize, &Mutation)],
        directory: &Path,
        way: Way,
    ) -> Result<PathBuf, String> {
        let with = |u: &&Unit| faults.iter().any(|(_, f)| f.unit == u.name);
        let broken = self.units.iter().filter(with);
        let broken = broken.map(|u| self.object(&u.name, &family::text(u, faults), directory, way));
        let broken = broken.collect::<Result<Vec<_>, _>>()?;
        let first = faults.first().map_or(0, |f| f.0);
        self.link(&directory.join(format!("{PROGRAM}-{first}")), &broken, way)
    }

    /// What serves the requests by a program or module, with the fault of a number in it, and empty storage in a directory.
    ///
    /// # Errors
    /// The storage cannot be made.
    pub fn command(
        &self,
        program: &Path,
        directory: &Path,
        way: Way,
        choice: usize,
    ) -> Result<Command, String> {
        let mut command = match way {
            Way::Native => Command::new(program),
            Way::Fenced | Way::Words => Command::new(self.fence(way)),
        };
        if self.plan.storage > 0 {
            let (image, begin) = (directory.join(STORAGE), self.begin());
            let made = match begin.exists() {
                true => std::fs::copy(begin, &image).map(drop),
                false => std::fs::File::create(&image).and_then(|f| f.set_len(self.plan.storage)),
            };
            made.map_err(|e| format!("{}: {e}", image.display()))?;
        }
        command
            .args(self.arguments(directory, &REQUESTS.to_string(), way))
            .args([&choice.to_string(), self.plan.flags()]);
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

    /// Whether what a run left in the storage is whole; `None` if it keeps nothing.
    pub fn whole(&self, directory: &Path) -> Option<bool> {
        let mut judge = match self.plan.judge? {
            Judge::Subject => {
                let mut subject =
                    Command::new(self.directory.join(PROGRAM).with_extension(Way::Native.name()));
                subject.args(self.arguments(directory, CHECK, Way::Native));
                subject
            }
            Judge::E2fsck => {
                let mut e2fsck = Command::new(e2fsck().unwrap_or("e2fsck".into()));
                e2fsck.arg("-fn").arg(directory.join(STORAGE));
                e2fsck
            }
        };
        Some(judge.output().is_ok_and(|d| d.status.success()))
    }

    /// Units with marks in each line, as native objects, and what the marks are, behind them; `hits` gets what is met.
    fn marked(&self, hits: &Path) -> Result<(Vec<PathBuf>, Marks), String> {
        let directory = self.directory.join("labelled");
        std::fs::create_dir_all(&directory).map_err(|e| e.to_string())?;
        let (mut marks, mut objects) = (Marks::default(), Vec::new());
        for (number, unit) in self.units.iter().enumerate() {
            let text = marks.mark(unit, number)?;
            objects.push(self.object(&unit.name, &text, &directory, Way::Native)?);
        }
        Marks::file(hits)?;
        let cover = directory.join("cover.o");
        run(Command::new("gcc")
            .args(["-O2", "-fPIC", "-c"])
            .arg(format!("-DLAB_HITS=\"{}\"", hits.display()))
            .arg(self.places.root.join("lab/subjects/cover.c"))
            .arg("-o")
            .arg(&cover))?;
        objects.push(cover);
        Ok((objects, marks))
    }

    /// The lines that a native run executes.
    fn cover(&self) -> Result<Vec<(usize, usize)>, String> {
        let directory = self.directory.join("labelled");
        let hits = directory.join("hits");
        let (objects, marks) = self.marked(&hits)?;
        let program = directory.join(PROGRAM);
        run(Command::new("gcc")
            .arg("-pie")
            .arg(self.directory.join("host.o"))
            .args(objects)
            .args(&self.others[Way::Native as usize])
            .args(["-lm", "-lpthread", "-o"])
            .arg(&program))?;
        let _ = std::fs::remove_file(self.expected(Way::Native));
        let _ = std::fs::remove_file(self.begin());
        run(&mut self.command(&program, &directory, Way::Native, 0)?)?;
        if self.plan.judge == Some(Judge::E2fsck) {
            std::fs::copy(directory.join(STORAGE), self.begin())
                .map_err(|e| format!("{}: {e}", self.begin().display()))?;
        }
        let lines: Vec<_> = marks.met(&hits)?.into_iter().collect();
        match lines.is_empty() {
            true => Err(format!("{}: none of its lines runs", self.plan.name)),
            false => Ok(lines),
        }
    }
}

/// Where `e2fsck` is; users' search paths often lack it.
pub fn e2fsck() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(PathBuf::from);
    let mut places = std::env::split_paths(&path).chain(more);
    places.find_map(|p| Some(p.join("e2fsck")).filter(|p| p.is_file()))
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
