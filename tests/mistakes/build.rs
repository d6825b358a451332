//! Makes a copy of the verifier's sources with the mistakes of `rule-*.txt` in it (see README.md). Each takes the place of what it
//! names while it is open; a mistake whose place is not there, or there more often than it says, ends the build.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// What stands in the source, and what stands there instead while mistake `number` is open.
struct Edit {
    number: usize,
    places: usize,
    original: String,
    mistake: String,
}

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo")).join("verifier");
    let sources = here.join("../../crates/verify/src");
    println!("cargo::rerun-if-changed={}", sources.display());
    println!("cargo::rerun-if-changed={}", here.display());
    let (names, mut edits) = mistakes(&here);

    let _ = fs::remove_dir_all(&out);
    copy(&sources, &sources, &out, &mut edits);
    assert!(edits.is_empty(), "no such files: {:?}", edits.keys());
    let list =
        format!("/// What each mistake is, from number 1 on.\npub const MISTAKES: &[&str] = &{names:#?};\n");
    fs::write(out.join("names.rs"), list).expect("write the list");
}

/// The names of all mistakes, and their edits by file.
fn mistakes(here: &Path) -> (Vec<String>, BTreeMap<String, Vec<Edit>>) {
    let mut files: Vec<PathBuf> = fs::read_dir(here)
        .expect("this directory")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "txt"))
        .collect();
    files.sort();
    let mut names = Vec::new();
    let mut edits: BTreeMap<String, Vec<Edit>> = BTreeMap::new();
    for path in files {
        let text = fs::read_to_string(&path).expect("a list of mistakes");
        let mut file = (String::new(), 1);
        for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
            let (mut original, mut mistake) = (String::new(), String::new());
            for line in block.lines() {
                if let Some(name) = line.strip_prefix("# ") {
                    names.push(name.to_string());
                } else if let Some(place) = line.strip_prefix("@ ") {
                    let (name, count) = place.split_once(" x").unwrap_or((place, "1"));
                    file = (name.to_string(), count.parse().expect("how many places"));
                } else if let Some(line) = line.strip_prefix('-') {
                    original.push_str(line);
                } else if let Some(line) = line.strip_prefix('+') {
                    mistake.push_str(line);
                } else {
                    panic!("{}: what is this line: {line}", path.display());
                }
            }
            if !original.is_empty() {
                edits.entry(file.0.clone()).or_default().push(Edit {
                    number: names.len(),
                    places: file.1,
                    original,
                    mistake,
                });
            }
        }
    }
    (names, edits)
}

fn copy(root: &Path, from: &Path, to: &Path, edits: &mut BTreeMap<String, Vec<Edit>>) {
    fs::create_dir_all(to).expect("create a directory");
    for entry in fs::read_dir(from).expect("the sources") {
        let path = entry.expect("an entry").path();
        let copied = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(root, &path, &copied, edits);
            continue;
        }
        let name = path
            .strip_prefix(root)
            .expect("below the root")
            .display()
            .to_string();
        let text = fs::read_to_string(&path).expect("a source file");
        let mut text = text.replace("#[cfg(test)]\nmod tests;\n", "");
        if name == "lib.rs" {
            // It is included, so it cannot have attributes of the crate, and has to say where its modules are.
            let inner = |line: &&str| !line.starts_with("//!") && !line.starts_with("#![");
            let lines = text.lines().filter(inner).map(|line| module_path(line, to));
            text = lines.collect::<Vec<_>>().join("\n");
        }
        if let Some(edits) = edits.remove(&name) {
            text = plant(&name, &text, &edits);
        }
        fs::write(copied, text).expect("write a copy");
    }
}

fn module_path(line: &str, to: &Path) -> String {
    match line.strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';')) {
        Some(module) => {
            let file = [format!("{module}.rs"), format!("{module}/mod.rs")];
            let file = file
                .iter()
                .find(|f| source(f).exists())
                .expect("the module's file");
            format!("#[path = {:?}]\n{line}", to.join(file))
        }
        None => line.to_string(),
    }
}

fn source(file: &str) -> PathBuf {
    Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .join("../../crates/verify/src")
        .join(file)
}

fn plant(name: &str, text: &str, edits: &[Edit]) -> String {
    // From the end to the beginning, so that places stay where they are. Mistakes in one place make one choice.
    let mut places: BTreeMap<(usize, usize), Vec<&Edit>> = BTreeMap::new();
    for edit in edits {
        let found = find(text, &edit.original);
        assert!(
            found.len() == edit.places,
            "{name}: {} places, not {}, have:{}",
            found.len(),
            edit.places,
            edit.original
        );
        for place in found {
            places.entry(place).or_default().push(edit);
        }
    }
    let mut out = text.to_string();
    let mut later = text.len();
    for ((start, end), edits) in places.into_iter().rev() {
        assert!(end <= later, "{name}: mistakes overlap at {}", &text[start..end]);
        later = start;
        let mut choice = String::from("{ ");
        for edit in edits {
            write!(
                choice,
                "if crate::open({}) {{{} }} else ",
                edit.number, edit.mistake
            )
            .expect("a string");
        }
        write!(choice, "{{ {} }} }}", &text[start..end]).expect("a string");
        out.replace_range(start..end, &choice);
    }
    out
}

/// Where `original` stands in `text`, whatever the white space.
fn find(text: &str, original: &str) -> Vec<(usize, usize)> {
    let letters =
        |s: &str| -> Vec<(usize, char)> { s.char_indices().filter(|(_, c)| !c.is_whitespace()).collect() };
    let (all, wanted) = (letters(text), letters(original));
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    (0..(all.len() + 1).saturating_sub(wanted.len()))
        .filter(|&i| {
            all[i..i + wanted.len()]
                .iter()
                .zip(&wanted)
                .all(|(a, b)| a.1 == b.1)
        })
        .map(|i| (all[i].0, all[i + wanted.len() - 1].0 + 1))
        .filter(|&(start, end)| {
            let before = text[..start].chars().next_back().is_some_and(word);
            let behind = text[end..].chars().next().is_some_and(word);
            let edge = |c: Option<&(usize, char)>| c.is_some_and(|c| word(c.1));
            !(before && edge(wanted.first()) || behind && edge(wanted.last()))
        })
        .collect()
}
