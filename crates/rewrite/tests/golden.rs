//! Golden files: `tests/rewrite/NAME.s` must become `NAME.out`, or fail with the messages in
//! `NAME.err`. A first line `# options: check integrity words segment handwritten` sets options.
//! `RINGFENCE_BLESS=1 cargo test -p ringfence-rewrite` writes the expected files anew.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use ringfence_rewrite::{Addressing, Isolation, Options, rewrite};

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
            "words" => options.isolation = Isolation::Words,
            "segment" => options.addressing = Addressing::Segment,
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

/// Mangled input gives an error or some output, never a panic.
#[test]
fn mangled_input() {
    const PIECES: [&str; 24] = [
        "%rsp",
        "(%rsp)",
        "-8",
        "9223372036854775807",
        "-9223372036854775808(%rsp)",
        "\t",
        "\n",
        ",",
        "(",
        ")",
        "$",
        "%",
        "1f",
        "1é",
        ".L5",
        "popq",
        "leave",
        "subq\t$9223372036854775807, %rsp",
        ".cfi_restore_state",
        ".cfi_escape\t0x2e",
        ".cfi_def_cfa_offset\t-9223372036854775808",
        ".cfi_startproc",
        "\"",
        "/*",
    ];
    let mut seed = 0x2545_F491_4F6C_DD1D_u64;
    let mut random = move |n: usize| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed % n.max(1) as u64) as usize
    };
    for path in inputs() {
        let text = fs::read_to_string(&path).expect("an input");
        let mut options = options(&text);
        for _ in 0..400 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..=random(4) {
                let at = random(bytes.len());
                match random(4) {
                    0 => bytes[at] = b' ' + random(95) as u8,
                    1 => drop(bytes.drain(at..(at + random(12)).min(text.len().min(bytes.len())).max(at))),
                    _ => drop(bytes.splice(at..at, PIECES[random(PIECES.len())].bytes())),
                }
            }
            options.check ^= random(8) == 0;
            options.handwritten ^= random(8) == 0;
            let mangled = String::from_utf8_lossy(&bytes);
            let _ = rewrite(&mangled, "mangled.s", &options);
        }
    }
}

#[test]
fn odd_statements() {
    const BODIES: [&str; 16] = [
        "jmp 1\u{e9}",
        "jne 1",
        "subq $9223372036854775807, %rsp",
        "addq $-4611686018427387905, %rsp\n\tret",
        "movl 4611686018427387903(%rsp), %eax",
        "movl -4611686018427387904(%rsp), %eax\n\tsubq $4611686018427387903, %rsp\n\tmovl -4611686018427387904(%rsp), %eax",
        "popq %rsp",
        "pushq %rsp\n\tpopq %rax\n\tret",
        "leaq (%rsp,%rsp), %rax",
        "call",
        "jmp *",
        "xchgq %rsp, %rax",
        "movq $5, %rsp",
        ".cfi_def_cfa_offset -9223372036854775808\n\tnop",
        ".cfi_escape 0x2e,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0xff,0x7f\n\tcall f",
        "leave\n\tleave\n\tret",
    ];
    for body in BODIES {
        for handwritten in [false, true] {
            let options = Options {
                handwritten,
                ..Options::default()
            };
            let text = format!("\t.type f, @function\nf:\n\t.cfi_startproc\n\t{body}\n\t.cfi_endproc\n");
            let _ = rewrite(&text, "odd.s", &options);
        }
    }
}
