//! What the laboratory breaks, before anything is built.

use crate::way::{WAYS, Way};

/// The subjects: recipes of `modules/`, with a `lab_work` of each below `lab/subjects`.
pub const SUBJECTS: [Plan; 8] = [
    Plan {
        name: "zlib",
        ..LIBRARY
    },
    Plan {
        name: "libpng",
        ..LIBRARY
    },
    Plan {
        name: "sqlite",
        breaks: Breaks::Work,
        storage: 4 << 20,
        judge: Some(Judge::Subject),
        ..LIBRARY
    },
    Plan {
        name: "sqlite-in-place",
        recipe: "sqlite",
        work: "sqlite",
        breaks: Breaks::Work,
        storage: 4 << 20,
        judge: Some(Judge::Subject),
        in_place: true,
        ..LIBRARY
    },
    Plan {
        name: "libext2fs",
        storage: 4 << 20,
        judge: Some(Judge::E2fsck),
        ..LIBRARY
    },
    Plan {
        name: "threads",
        recipe: "zlib",
        breaks: Breaks::Others {
            recipe: "zstd",
            files: &["pool.c", "threading.c"],
            flags: &["-DZSTD_MULTITHREAD"],
        },
        threads: true,
        ..LIBRARY
    },
    Plan {
        name: "apache",
        server: Some(Server::Httpd),
        ..LIBRARY
    },
    Plan {
        name: "postgresql",
        server: Some(Server::Postgresql),
        ..LIBRARY
    },
];

const LIBRARY: Plan = Plan {
    name: "",
    recipe: "",
    work: "",
    breaks: Breaks::Library,
    storage: 0,
    judge: None,
    in_place: false,
    threads: false,
    server: None,
};

/// What is known of a subject before it is built.
pub struct Plan {
    /// Its name.
    pub name: &'static str,
    /// The recipe of its library; the same as the name, if empty.
    recipe: &'static str,
    /// Its file below `lab/subjects`, likewise.
    work: &'static str,
    /// What gets the faults.
    pub breaks: Breaks,
    /// Bytes of the host's that it keeps something in.
    pub storage: u64,
    /// Who says whether that is whole.
    pub judge: Option<Judge>,
    /// Whether it works on the storage where it lies.
    pub in_place: bool,
    /// Whether it has threads of its own.
    pub threads: bool,
    /// The server that it lives in, if that is not the laboratory's own host.
    pub server: Option<Server>,
}

impl Plan {
    /// The recipe of its library.
    pub fn recipe(&self) -> &'static str {
        or_name(self.recipe, self.name)
    }

    /// Its file below `lab/subjects`, without suffix.
    pub fn work(&self) -> &'static str {
        or_name(self.work, self.name)
    }

    /// How it can be run.
    pub fn ways(&self) -> Vec<Way> {
        let words = self.server.is_none();
        WAYS.into_iter().filter(|&w| words || w != Way::Words).collect()
    }

    /// What the host has to know (`lab/subjects/host.c`).
    pub fn flags(&self) -> &'static str {
        match (self.in_place, self.threads) {
            (false, false) => "-",
            (true, false) => "p",
            (false, true) => "t",
            (true, true) => "pt",
        }
    }
}

fn or_name(other: &'static str, name: &'static str) -> &'static str {
    if other.is_empty() { name } else { other }
}

/// What of a subject gets the faults.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Breaks {
    /// The recipe's library.
    Library,
    /// The file below `lab/subjects`: what an application adds to the library.
    Work,
    /// Some files of another recipe, which do without the rest of it.
    Others {
        /// The recipe.
        recipe: &'static str,
        /// Its files.
        files: &'static [&'static str],
        /// Their flags, besides the recipe's.
        flags: &'static [&'static str],
    },
}

/// Who judges what a run left in the storage.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Judge {
    /// The subject without a fault in it (`lab_check`).
    Subject,
    /// `e2fsck -fn`.
    E2fsck,
}

/// A server, by the name that `lab/servers.sh` has for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// Apache, with a page.
    Httpd,
    /// PostgreSQL, with functions in C.
    Postgresql,
}

impl Server {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Server::Httpd => "httpd",
            Server::Postgresql => "postgresql",
        }
    }

    /// A program without which it cannot be had.
    fn needs(self) -> &'static str {
        match self {
            Server::Httpd => "apxs",
            Server::Postgresql => "pg_config",
        }
    }

    /// Whether it is there; what to do, if not.
    ///
    /// # Errors
    /// It is not there.
    pub fn there(self) -> Result<(), String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        match std::env::split_paths(&path).any(|p| p.join(self.needs()).is_file()) {
            true => Ok(()),
            false => Err(format!(
                "there is no {}; scripts/setup.sh {} installs it",
                self.needs(),
                self.name()
            )),
        }
    }

    /// The files below `lab/subjects` that lead from the server to the subject, each way.
    pub fn adapter(self, way: Way) -> &'static str {
        match (self, way) {
            (Server::Httpd, Way::Native) => "page_plain",
            (Server::Httpd, _) => "page_fenced",
            (Server::Postgresql, _) => "pick",
        }
    }
}
