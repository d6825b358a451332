//! What is measured: kernels of this directory, and the libraries of `modules/` with a driver.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::configuration::Kind;

/// Sources that are compiled with the same flags.
#[derive(Default)]
pub struct Group {
    /// For file names.
    pub name: String,
    flags: Vec<String>,
    fenced_flags: Vec<String>,
    wasm_flags: Vec<String>,
    sources: Vec<PathBuf>,
    fenced_sources: Vec<PathBuf>,
    wasm_sources: Vec<PathBuf>,
}

impl Group {
    /// Its sources when built by these tools.
    pub fn sources(&self, kind: Kind) -> &[PathBuf] {
        let own = match kind {
            Kind::Native => &self.sources,
            Kind::Fenced => &self.fenced_sources,
            Kind::Wasm => &self.wasm_sources,
        };
        if own.is_empty() { &self.sources } else { own }
    }

    /// Its flags when built by these tools.
    pub fn flags(&self, kind: Kind) -> Vec<String> {
        let own: &[String] = match kind {
            Kind::Native => &[],
            Kind::Fenced => &self.fenced_flags,
            Kind::Wasm => &self.wasm_flags,
        };
        self.flags.iter().chain(own).cloned().collect()
    }
}

/// One function to call: 1000 thousandths are the whole work.
#[derive(Clone)]
pub struct Workload {
    /// As tables and `--only` have it.
    pub name: String,
    /// The exported function.
    pub symbol: String,
}

/// Sources that become one module, with one workload or more.
pub struct Program {
    /// The kernel or the recipe.
    pub name: String,
    /// Whether the unmodified library of a recipe is in it.
    pub recipe: bool,
    /// Its sources.
    pub groups: Vec<Group>,
    /// What it exports, whether measured or not.
    pub exports: Vec<String>,
    /// What is measured of it.
    pub workloads: Vec<Workload>,
}

impl Program {
    /// Whether it is C++.
    pub fn cxx(&self) -> bool {
        self.groups.iter().any(|g| g.sources.iter().any(|s| is_cxx(s)))
    }
}

/// The benchmark's own directory.
pub fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn include(dir: &Path) -> String {
    format!("-I{}", dir.display())
}

/// A driver: its name, its sources, and the workloads that they define.
struct Driver {
    name: String,
    sources: Vec<PathBuf>,
    workloads: Vec<String>,
}

/// Whether a source is C++.
pub fn is_cxx(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "cpp" || e == "cc")
}

fn is_source(path: &Path) -> bool {
    is_cxx(path) || path.extension().is_some_and(|e| e == "c")
}

/// What is in a directory, sorted.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    Ok(paths)
}

/// The headers in a source's folder.
pub fn headers_beside(source: &Path) -> Result<Vec<PathBuf>, String> {
    let mut paths = entries(source.parent().unwrap_or(Path::new(".")))?;
    paths.retain(|p| p.extension().is_some_and(|e| e == "h"));
    Ok(paths)
}

/// The drivers of a directory, sorted. A folder is one of several translation units.
fn drivers(dir: &str) -> Result<Vec<Driver>, String> {
    let mut found = Vec::new();
    for path in entries(&here().join(dir))? {
        let mut sources = if path.is_dir() {
            entries(&path)?
        } else {
            vec![path.clone()]
        };
        sources.retain(|s| is_source(s));
        if sources.is_empty() {
            continue;
        }
        let mut workloads = Vec::new();
        for source in &sources {
            let text = std::fs::read_to_string(source).map_err(|e| format!("{}: {e}", source.display()))?;
            let lines = text
                .lines()
                .filter_map(|line| line.strip_prefix("WORKLOAD(")?.split_once(')'));
            workloads.extend(lines.map(|(name, _)| name.to_owned()));
        }
        if workloads.is_empty() {
            return Err(format!("{}: no line starts with WORKLOAD(name)", path.display()));
        }
        let stem = path.file_stem().unwrap_or_default();
        found.push(Driver {
            name: stem.to_string_lossy().into_owned(),
            sources,
            workloads,
        });
    }
    Ok(found)
}

/// Every program; those of recipes without their library's sources, which [`complete`] adds.
pub fn all() -> Result<Vec<Program>, String> {
    let mut programs = Vec::new();
    for (dir, recipe) in [("kernels", false), ("recipes", true)] {
        for Driver {
            name,
            sources,
            workloads: symbols,
        } in drivers(dir)?
        {
            let mut flags = vec![include(&here().join("kernels"))];
            if recipe {
                flags.push(include(&here().join("../modules/common")));
            }
            let workloads = symbols.into_iter().map(|symbol| Workload {
                name: if symbol == name {
                    name.clone()
                } else {
                    format!("{name}-{}", symbol.replace('_', "-"))
                },
                symbol: format!("run_{symbol}"),
            });
            let workloads: Vec<Workload> = workloads.collect();
            programs.push(Program {
                exports: workloads.iter().map(|w| w.symbol.clone()).collect(),
                workloads,
                groups: vec![Group {
                    name: format!("{name}-driver"),
                    flags,
                    sources,
                    ..Group::default()
                }],
                name,
                recipe,
            });
        }
    }
    Ok(programs)
}

/// Fetches what a recipe's program is made of.
pub fn complete(program: &mut Program) -> Result<(), String> {
    if !program.recipe || program.groups.len() > 1 {
        return Ok(());
    }
    let script = here().join("../modules/make.sh");
    let output = Command::new(&script)
        .args(["sources", &program.name])
        .output()
        .map_err(|e| format!("{}: {e}", script.display()))?;
    if !output.status.success() {
        return Err(format!(
            "{} sources {}: {}",
            script.display(),
            program.name,
            String::from_utf8_lossy(&output.stderr)
        ));
    }
    let groups = parse(&String::from_utf8_lossy(&output.stdout))?;
    // The driver sees the headers of all libraries.
    let driver = &mut program.groups[0];
    for group in &groups {
        driver.flags.extend(group.flags.iter().cloned());
        driver.wasm_flags.extend(group.wasm_flags.iter().cloned());
    }
    program.groups.extend(groups);
    Ok(())
}

/// Reads what `modules/make.sh sources` prints.
fn parse(text: &str) -> Result<Vec<Group>, String> {
    let mut groups: Vec<Group> = Vec::new();
    for line in text.lines() {
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        if key == "group" {
            groups.push(Group {
                name: value.to_owned(),
                ..Group::default()
            });
            continue;
        }
        let group = groups
            .last_mut()
            .ok_or_else(|| format!("'{line}' stands before the first group"))?;
        match key {
            "flag" => group.flags.push(value.to_owned()),
            "fenced-flag" => group.fenced_flags.push(value.to_owned()),
            "wasm-flag" => group.wasm_flags.push(value.to_owned()),
            "source" => group.sources.push(value.into()),
            "fenced-source" => group.fenced_sources.push(value.into()),
            "wasm-source" => group.wasm_sources.push(value.into()),
            _ => return Err(format!("modules/make.sh sources printed '{line}'")),
        }
    }
    Ok(groups)
}

#[cfg(test)]
mod tests {
    use super::{all, parse};
    use crate::configuration::Kind;

    #[test]
    fn recipes_are_read() {
        let groups =
            parse("group z\nflag -DA=b c\nfenced-flag -DF\nsource /z.c\nwasm-source /w.c\n").expect("groups");
        assert_eq!(groups[0].flags(Kind::Fenced), ["-DA=b c", "-DF"]);
        assert_eq!(groups[0].flags(Kind::Wasm), ["-DA=b c"]);
        assert_eq!(groups[0].sources(Kind::Wasm)[0].to_str(), Some("/w.c"));
        assert_eq!(groups[0].sources(Kind::Fenced)[0].to_str(), Some("/z.c"));
        assert!(parse("source x").is_err());
    }

    #[test]
    fn workloads_have_names_of_their_own() {
        let programs = all().expect("programs");
        let mut names: Vec<_> = programs
            .iter()
            .flat_map(|p| &p.workloads)
            .map(|w| &w.name)
            .collect();
        assert!(names.len() >= 60, "{names:?}");
        names.sort();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
