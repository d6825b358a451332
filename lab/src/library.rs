//! Libraries of the recipes in `modules/`, which subjects are linked with.

use crate::way::{Places, Way, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A library with its sources and their flags, as `modules/make.sh sources` tells.
#[derive(Default)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Flags of C.
    pub flags: Vec<String>,
    /// Besides, where it is fenced.
    fenced_flags: Vec<String>,
    /// Its sources.
    pub sources: Vec<PathBuf>,
}

impl Group {
    /// Its objects in the words mode; those that are younger than the compiler are there already.
    ///
    /// # Errors
    /// What does not compile.
    pub fn in_words(&self, places: &Places) -> Result<Vec<PathBuf>, String> {
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

/// What `modules/make.sh` prints for a recipe.
///
/// # Errors
/// What it said of its failure.
pub fn make(what: &str, recipe: &str, places: &Places) -> Result<String, String> {
    let script = places.root.join("modules/make.sh");
    run(Command::new(script)
        .args([what, recipe])
        .env("RINGFENCE", &places.ringfence))
}

/// The recipe's libraries: those that it needs, then its own.
///
/// # Errors
/// There is no such recipe.
pub fn groups(recipe: &str, places: &Places) -> Result<Vec<Group>, String> {
    let mut groups: Vec<Group> = Vec::new();
    for line in make("sources", recipe, places)?.lines() {
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

/// The last of a recipe's libraries: its own.
///
/// # Errors
/// There is none.
pub fn own(groups: &mut Vec<Group>, recipe: &str) -> Result<Group, String> {
    groups
        .pop()
        .ok_or_else(|| format!("{recipe}: the recipe has no sources"))
}
