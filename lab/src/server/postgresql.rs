//! Functions of PostgreSQL: a cluster for each desk, a session for each trial.

use super::{Place, compare};
use crate::keep::{Room, guard, workers};
use crate::told::{self, Told};
use crate::way::{REQUESTS, WAYS, Way, run};
use std::fmt::Write;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

/// The functions: name, parameters, result.
const FUNCTIONS: [(&str, &str, &str); 8] = [
    ("lab_pick", "int", "int"),
    ("levenshtein", "text, text", "int"),
    ("levenshtein_less_equal", "text, text, int", "int"),
    ("metaphone", "text, int", "text"),
    ("soundex", "text", "text"),
    ("difference", "text, text", "int"),
    ("dmetaphone", "text", "text"),
    ("dmetaphone_alt", "text", "text"),
];
/// The requests.
const STATEMENTS: [&str; REQUESTS as usize] = [
    "select levenshtein('an engine of the fence', 'the offence of an engineer')",
    "select levenshtein_less_equal('extensive', 'exhaustive', n) from generate_series(1, 5) n",
    "select metaphone(w, 12) from unnest('{Thompson,knight,psychology,wrought,exchequer,scheduling,Xavier,laughing}'::text[]) w",
    "select soundex(w), difference(w, 'Robert') from unnest('{Rupert,Ashcraft,Tymczak,Pfister,Honeyman}'::text[]) w",
    "select dmetaphone(w) from unnest('{Schmidt,Caesar,Czerny,gnome,jalapeno,accident,bellocchio,whirl}'::text[]) w",
    "select dmetaphone_alt(w) from unnest('{Jose,Wagner,Arnow,Filipowicz,Guadalupe,Thumb,danger,succeed}'::text[]) w",
    "select dmetaphone(w), dmetaphone_alt(w) from unnest('{Zhao,Uomo,Hugh,rough,tagliaro,island,sugar,Van Gogh}'::text[]) w",
    "select metaphone('a sentence of several words that the function has to sound out', n) from generate_series(1, 40, 13) n",
];
/// What ends a statement that waits.
const SETTINGS: [&str; 3] = [
    "autovacuum = off",
    "shared_buffers = '8MB'",
    "plfenced.time_limit = '1s'",
];

/// A cluster of a server's, with the functions both ways.
pub struct Cluster {
    tree: PathBuf,
    psql: PathBuf,
    home: Room,
    /// Whether it can be asked no more.
    pub damaged: bool,
    /// The program whose functions are there, each way.
    given: [Option<(PathBuf, std::time::SystemTime)>; WAYS.len()],
}

/// What a statement gave.
#[derive(Debug)]
struct Answer {
    /// Its rows.
    text: String,
    /// The SQLSTATE.
    state: String,
    /// The server's message, if there is one.
    said: String,
}

/// What a session ended with.
struct Session {
    text: String,
    said: String,
    /// None if it hung.
    status: Option<ExitStatus>,
}

impl Cluster {
    /// A new one.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(place: &Place) -> Result<Cluster, String> {
        let mut home = Room::new(Path::new(place.named("out")))?;
        home.keep()?;
        let cluster = Cluster {
            tree: place.named("tree").into(),
            psql: place.named("program").into(),
            home,
            damaged: false,
            given: [const { None }; WAYS.len()],
        };
        run(Command::new(&cluster.tree)
            .arg("start")
            .arg(cluster.home.path())
            .args(SETTINGS))?;
        cluster.tell("create extension plfenced; create schema native; create schema fenced_lab")?;
        Ok(cluster)
    }

    /// A session of psql, which is not waited for when it and the server sleep for good.
    fn session(&self, arguments: &[&str]) -> Result<Session, String> {
        let error = |e: std::io::Error| format!("{}: {e}", self.psql.display());
        let files = ["answers", "errors"].map(|n| self.home.path().join(n));
        let mut psql = Command::new(&self.psql);
        psql.arg("-h").arg(self.home.path());
        psql.args(["-U", "postgres", "-d", "postgres", "-X", "-q", "-A", "-t"]);
        psql.args(arguments).stdin(Stdio::null());
        psql.stdout(File::create(&files[0]).map_err(error)?);
        psql.stderr(File::create(&files[1]).map_err(error)?);
        guard(&mut psql);
        let mut child = psql.spawn().map_err(error)?;
        let status = told::end(&mut child, &|| workers(self.home.path()))?;
        let read = |path: &PathBuf| std::fs::read(path).map(|b| String::from_utf8_lossy(&b).into_owned());
        Ok(Session {
            text: read(&files[0]).map_err(error)?,
            said: read(&files[1]).map_err(error)?,
            status,
        })
    }

    fn tell(&self, text: &str) -> Result<(), String> {
        let done = self.session(&["-v", "ON_ERROR_STOP=1", "-c", text])?;
        match done.status {
            Some(status) if status.success() => Ok(()),
            Some(_) => Err(done.said.trim_end().into()),
            None => Err("the server sleeps".into()),
        }
    }

    /// Makes a program's functions the ones that are called.
    fn give(&mut self, program: &Path, way: Way) -> Result<(), String> {
        let error = |e: std::io::Error| format!("{}: {e}", program.display());
        let age = std::fs::metadata(program)
            .and_then(|m| m.modified())
            .map_err(error)?;
        let this = Some((program.to_path_buf(), age));
        if self.given[way as usize] == this {
            return Ok(());
        }
        let file = self.home.path().join(format!("lab.{}", way.name()));
        // Sessions have mapped the one that is there.
        let _ = std::fs::remove_file(&file);
        std::fs::copy(program, &file).map_err(error)?;
        let mut text = String::from("begin;\n");
        if way != Way::Native {
            let _ = writeln!(
                text,
                "select fenced.install('lab', pg_read_binary_file('{}'));",
                file.display()
            );
        }
        for (name, parameters, result) in FUNCTIONS {
            let (schema, from) = match way {
                Way::Native => ("native", format!("'{}', '{name}' language c", file.display())),
                _ => ("fenced_lab", format!("'lab:{name}' language plfenced")),
            };
            let _ = writeln!(
                text,
                "create or replace function {schema}.{name}({parameters}) returns {result} as {from} strict;"
            );
        }
        text.push_str("commit;");
        self.tell(&text)?;
        self.given[way as usize] = this;
        Ok(())
    }

    /// The session of a trial: before each statement the fault is chosen, since a domain that was reset has forgotten it.
    fn script(way: Way, fault: usize) -> String {
        let schema = if way == Way::Native {
            "native"
        } else {
            "fenced_lab"
        };
        let mut text = format!("set client_min_messages = error;\nset search_path = {schema}, public;\n");
        for statement in STATEMENTS {
            let _ = writeln!(
                text,
                "\\o /dev/null\nselect lab_pick({fault});\n\\o\n{statement};"
            );
            let _ = writeln!(text, "\\echo = :SQLSTATE :LAST_ERROR_MESSAGE");
        }
        text.push_str("\\echo end\n");
        text
    }

    /// The answers, and whether the session came to its end; none if it hung.
    fn answers(&self, way: Way, fault: usize) -> Result<(Vec<Answer>, Option<bool>), String> {
        let file = self.home.path().join("script.sql");
        std::fs::write(&file, Self::script(way, fault)).map_err(|e| format!("{}: {e}", file.display()))?;
        let done = self.session(&["-f", &file.to_string_lossy()])?;
        let text = done.text;
        let (mut all, mut rows) = (Vec::new(), String::new());
        for line in text.lines() {
            match line.strip_prefix("= ") {
                Some(state) => {
                    let (state, said) = state.split_once(' ').unwrap_or((state, ""));
                    all.push(Answer {
                        text: std::mem::take(&mut rows),
                        state: state.into(),
                        said: said.into(),
                    });
                }
                None => {
                    rows.push_str(line);
                    rows.push('\n');
                }
            }
        }
        Ok((all, done.status.map(|_| text.ends_with("end\n"))))
    }

    /// Waits until the server takes sessions again.
    fn again(&self) -> Result<(), String> {
        for _ in 0..3000 {
            if self.tell("select 1").is_ok() {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!(
            "{}: the server does not come back",
            self.home.path().display()
        ))
    }

    /// The answers without a fault.
    ///
    /// # Errors
    /// One of them is an error.
    pub fn without(&mut self, program: &Path, way: Way) -> Result<Vec<String>, String> {
        self.give(program, way)?;
        let (all, whole) = self.answers(way, 0)?;
        if whole != Some(true) || all.len() != REQUESTS as usize || all.iter().any(|a| a.state != "00000") {
            return Err(format!(
                "functions without a fault in them do not answer: {all:?}"
            ));
        }
        Ok(all.into_iter().map(|a| a.text).collect())
    }

    /// A trial.
    ///
    /// # Errors
    /// What has nothing to do with the fault.
    pub fn ask(
        &mut self,
        answers: &[String],
        program: &Path,
        way: Way,
        fault: usize,
    ) -> Result<Told, String> {
        self.give(program, way)?;
        let log = self.home.path().join("log");
        let before = std::fs::metadata(&log).map_or(0, |m| m.len());
        let (all, whole) = self.answers(way, fault)?;
        let mut text = String::new();
        for (request, answer) in all.iter().enumerate() {
            // The states that plfenced gives to faults and limits; natively nobody does.
            let fenced =
                way != Way::Native && ["38000", "53200", "57014", "54001"].contains(&answer.state.as_str());
            let _ = match (answer.state.as_str(), fenced) {
                ("00000", _) => writeln!(text, "{}", compare(answers, request, &answer.text)),
                (_, true) => writeln!(text, "fault {}", answer.said),
                (state, false) => writeln!(text, "error {state}"),
            };
        }
        match whole {
            Some(true) => {
                return Ok(told::judge(&format!("{text}heap ok\nend\n"), Some(told::well())));
            }
            Some(false) => self.again()?,
            None => {
                self.damaged = true;
                return Ok(told::judge(&text, None));
            }
        }
        // `server process (PID 7) was terminated by signal 11: Segmentation fault`
        let said = std::fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(said.get(before as usize..).unwrap_or_default()).into_owned();
        let signal = said
            .split_once("was terminated by signal ")
            .and_then(|(_, s)| s.split(':').next()?.parse().ok());
        Ok(told::judge(
            &text,
            Some(signal.map_or_else(told::failed, ExitStatus::from_raw)),
        ))
    }
}
