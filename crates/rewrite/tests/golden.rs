//! Golden files: `tests/rewrite/NAME.s` must become `NAME.out`, or fail with the messages in
//! `NAME.err`. A first line `# options: check integrity handwritten` sets options.
//! `RINGFENCE_BLESS=1 cargo test -p ringfence-rewrite` writes the expected files anew.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use ringfence_rewrite::{Isolation, Options, rewrite};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/rewrite")
}

fn inputs() -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = fs::read_dir(directory())
        .expect("tests/rewrite")
        .map(|e| e.expect("an entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "s"))
        .collect();
    list.sort();
    assert!(list.len() >= 10, "golden files are missing");
    list
}

fn options(text: &str) -> Options {
    let mut options = Options::default();
    let first = text.lines().next().unwrap_or("");
    for word in first.strip_prefix("# options:").unwrap_or("").split_whitespace() {
        match word {
            "check" => options.check = true,
            "integrity" => options.isolation = Isolation::Integrity,
            "handwritten" => options.handwritten = true,
            _ => panic!("unknown option {word}"),
        }
    }
    options
}

#[test]
fn golden_files() {
    let mut wrong = Vec::new();
    for path in inputs() {
        let text = fs::read_to_string(&path).expect("an input");
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
        let (got, extension) = match rewrite(&text, name, &options(&text)) {
            Ok(out) => (out, "out"),
            Err(e) => (format!("{e}\n"), "err"),
        };
        let expected = path.with_extension(extension);
        if env::var_os("RINGFENCE_BLESS").is_some() {
            fs::write(&expected, &got).expect("writing an expected file");
        } else if fs::read_to_string(&expected).unwrap_or_default() != got {
            wrong.push(format!(
                "{name}: differs from {}; got:\n{got}",
                expected.display()
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What is written must be what the assembler takes.
#[test]
fn results_assemble() {
    for path in inputs() {
        let text = fs::read_to_string(&path).expect("an input");
        let Ok(out) = rewrite(&text, "in.s", &options(&text)) else {
            continue;
        };
        let mut child = Command::new("as")
            .args(["-o", "/dev/null", "-"])
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the assembler");
        std::io::Write::write_all(&mut child.stdin.take().expect("a pipe"), out.as_bytes()).expect("a write");
        let done = child.wait_with_output().expect("an exit");
        assert!(
            done.status.success(),
            "{}: {}",
            path.display(),
            String::from_utf8_lossy(&done.stderr)
        );
    }
}
