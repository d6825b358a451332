//! Subjects that live in a server: a page of Apache, functions of PostgreSQL. Natively the server loads them as it loads any module;
//! behind the fence it has them by mod_fenced and plfenced. Words do not come here.

use crate::plan::Server;
use crate::told::Told;
use crate::way::{Way, run};
use std::path::{Path, PathBuf};
use std::process::Command;

pub mod apache;
pub mod postgresql;

/// What `lab/servers.sh` tells.
#[derive(Default)]
pub struct Place {
    /// Flags of C, natively and fenced.
    pub flags: Vec<String>,
    /// What gets the faults.
    pub sources: Vec<PathBuf>,
    named: Vec<(String, String)>,
}

impl Place {
    /// Builds what a server needs.
    ///
    /// # Errors
    /// What failed.
    pub fn of(server: Server, root: &Path) -> Result<Place, String> {
        let told = run(Command::new(root.join("lab/servers.sh")).arg(server.name()))?;
        let mut place = Place::default();
        for line in told.lines() {
            match line.split_once(' ') {
                Some(("flag", flag)) => place.flags.push(flag.into()),
                Some(("source", file)) => place.sources.push(file.into()),
                Some((name, at)) => place.named.push((name.into(), at.into())),
                None => {}
            }
        }
        Ok(place)
    }

    /// A place by its name; nothing, if there is none.
    pub fn named(&self, name: &str) -> &str {
        let found = self.named.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, p)| p)
    }
}

/// Where trials are made: a directory, and a cluster of PostgreSQL, if one is needed, which ends with it.
pub struct Desk {
    /// The directory.
    pub directory: PathBuf,
    cluster: Option<postgresql::Cluster>,
}

impl Desk {
    /// A desk in a directory, which is made.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(directory: PathBuf) -> Result<Desk, String> {
        std::fs::create_dir_all(&directory).map_err(|e| format!("{}: {e}", directory.display()))?;
        Ok(Desk {
            directory,
            cluster: None,
        })
    }

    /// Serves the requests by a server's module with the fault of a number in it.
    ///
    /// # Errors
    /// What has nothing to do with the fault.
    pub fn ask(
        &mut self,
        place: &Place,
        answers: &[String],
        server: Server,
        program: &Path,
        (way, fault): (Way, usize),
    ) -> Result<Told, String> {
        match server {
            Server::Httpd => apache::ask(place, answers, program, &self.directory, (way, fault)),
            Server::Postgresql => self.cluster(place)?.ask(answers, program, way, fault),
        }
    }
}

impl Desk {
    /// The answers of a server's module without a fault.
    ///
    /// # Errors
    /// One of them is none.
    pub fn answers(
        &mut self,
        place: &Place,
        server: Server,
        program: &Path,
        way: Way,
    ) -> Result<Vec<String>, String> {
        match server {
            Server::Httpd => apache::answers(place, program, &self.directory, way),
            Server::Postgresql => self.cluster(place)?.without(program, way),
        }
    }

    fn cluster(&mut self, place: &Place) -> Result<&mut postgresql::Cluster, String> {
        if self.cluster.is_none() {
            self.cluster = Some(postgresql::Cluster::start(place)?);
        }
        self.cluster.as_mut().ok_or("no cluster".into())
    }
}

/// What of a list of answers differs from the one without a fault: `ok` or `wrong`.
fn compare(answers: &[String], request: usize, answer: &str) -> &'static str {
    match answers.get(request).is_none_or(|a| a == answer) {
        true => "ok",
        false => "wrong",
    }
}
