//! Subjects that live in a server: a page of Apache, functions of PostgreSQL. Natively the server loads them as it loads any module;
//! behind the fence it has them by mod_fenced and plfenced. Words do not come here.

use crate::keep::Room;
use crate::plan::Server;
use crate::told::{self, Told};
use crate::way::{WAYS, Way, run};
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
    /// Fetches the source of what gets the faults, if it is not here.
    ///
    /// # Errors
    /// It cannot be had.
    pub fn source(server: Server, root: &Path) -> Result<(), String> {
        run(Command::new(root.join("lab/servers.sh")).args(["source", server.name()])).map(drop)
    }

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

/// Where trials are made: a room, and clusters of PostgreSQL, if they are needed.
pub struct Desk {
    room: Room,
    /// One for each way: what a fault does to the one natively is nothing to the other.
    clusters: [Option<postgresql::Cluster>; WAYS.len()],
}

impl Desk {
    /// A desk in a room below a directory.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(of: &Path) -> Result<Desk, String> {
        Ok(Desk {
            room: Room::new(of)?,
            clusters: [const { None }; WAYS.len()],
        })
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        self.room.path()
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
            Server::Httpd => {
                // A server that has become another user does not end with who started it.
                self.room.keep()?;
                apache::ask(place, answers, program, self.room.path(), (way, fault))
            }
            Server::Postgresql => self.ask_cluster(place, answers, program, (way, fault)),
        }
    }

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
            Server::Httpd => apache::answers(place, program, self.room.path(), way),
            Server::Postgresql => self.cluster(place, way)?.without(program, way),
        }
    }

    fn cluster(&mut self, place: &Place, way: Way) -> Result<&mut postgresql::Cluster, String> {
        let cluster = &mut self.clusters[way as usize];
        if cluster.as_ref().is_none_or(|c| c.damaged) {
            *cluster = None;
            *cluster = Some(postgresql::Cluster::start(place)?);
        }
        cluster.as_mut().ok_or("no cluster".into())
    }

    /// A cluster that cannot be asked was damaged by a fault before, or is by this one: it is replaced, and asked once more.
    fn ask_cluster(
        &mut self,
        place: &Place,
        answers: &[String],
        program: &Path,
        (way, fault): (Way, usize),
    ) -> Result<Told, String> {
        let before = self.cluster(place, way)?.ask(answers, program, way, fault);
        if before.is_ok() {
            return before;
        }
        self.clusters[way as usize] = None;
        // Without a fault it has to answer, or something else is wrong.
        let cluster = self.cluster(place, way)?;
        if cluster.without(program, way)? != answers {
            return Err("a new cluster gives other answers without a fault".into());
        }
        Ok(cluster.ask(answers, program, way, fault).unwrap_or_else(|why| {
            cluster.damaged = true;
            Told {
                symptom: why.lines().last().unwrap_or_default().into(),
                ..told::judge("", Some(told::failed()))
            }
        }))
    }
}

/// What of a list of answers differs from the one without a fault: `ok` or `wrong`.
fn compare(answers: &[String], request: usize, answer: &str) -> &'static str {
    match answers.get(request).is_none_or(|a| a == answer) {
        true => "ok",
        false => "wrong",
    }
}
