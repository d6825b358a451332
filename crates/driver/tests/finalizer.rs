//! The last steps of a build, on what gcc, as and ld really make.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ringfence_driver::args::Front;
use ringfence_driver::check::{Rules, check};
use ringfence_driver::image::{Image, ImageError};
use ringfence_isa::identifier;

struct Dir(PathBuf);

impl Dir {
    fn new() -> Dir {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "rf-driver-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Dir(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn cc(args: &[&str]) -> i32 {
    let mut all = vec![OsString::from("--sysroot-rf=")];
    all.extend(args.iter().map(OsString::from));
    ringfence_driver::cc(Front::C, all)
}

/// Builds one C file and returns the accepted module's bytes.
fn build(text: &str, flags: &[&str]) -> Vec<u8> {
    let d = Dir::new();
    let (source, module) = (d.write("t.c", text), d.path("t.rf"));
    let mut args = flags.to_vec();
    args.extend([source.as_str(), "-o", module.as_str()]);
    assert_eq!(cc(&args), 0);
    let data = std::fs::read(Path::new(&module)).unwrap();
    let verdict = check(&data, &Rules::default()).unwrap();
    assert!(verdict.accepted(), "{:?}", verdict.findings);
    data
}

#[test]
fn constants_that_look_like_identifiers_are_moved() {
    // The immediate of the `mov` stands at an address ≡ 4 (mod 8), whatever gcc puts around it.
    let text = "unsigned f(void)\n{\n\tunsigned x;\n\t__asm__ volatile(\".p2align 3\\n\\tnop\\n\\tnop\\n\\tnop\\n\\tmovl $0x629a5678, %0\" : \"=a\"(x));\n\treturn x;\n}\n";
    for level in ["-O0", "-O2"] {
        let data = build(text, &[level]);
        let image = Image::parse(&data).unwrap();
        let code = image.text_bytes();
        let at = code
            .windows(4)
            .position(|w| w == 0x629A_5678u32.to_le_bytes())
            .expect("the constant is there");
        assert_ne!(
            (image.text.address as usize + at) % 8,
            4,
            "the constant has moved"
        );
    }
}

#[test]
fn label_numbers_are_compact_and_each_function_has_its_own() {
    // The arrays can be written: jumps through what never changes are jumps through tables, which need no numbers.
    let mut text = String::from("int g(int x) { return x; }\nvoid **seen;\n");
    for f in 0..5 {
        let names: String = (0..16).map(|l| format!("&&l{l}, ")).collect();
        let labels: String = (0..16)
            .map(|l| format!("l{l}: return g({}) ^ {l};\n", l * 7 + f))
            .collect();
        text.push_str(&format!(
            "int f{f}(int x) {{ static void *at[] = {{ {names} }}; seen = at; goto *at[x & 15]; {labels} }}\n"
        ));
    }
    let data = build(&text, &["-O2", "-fno-inline"]);
    let image = Image::parse(&data).unwrap();
    let places = ringfence_verify::identifiers(&image.text_pages(), image.text.address as u32).unwrap();
    let mut numbers: Vec<u32> = places
        .iter()
        .map(|p| p.id)
        .filter(|id| *id != identifier::FUNCTION)
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(
        numbers,
        (1..=5).map(|n| identifier::label(n).unwrap()).collect::<Vec<_>>()
    );
}

#[test]
fn a_filler_that_looks_like_a_marker_stays_a_filler() {
    // The same long no-op in two functions: as a label it would belong to both, which no verifier accepts.
    let function = |name: &str| {
        format!(
            "\t.globl {name}\n\t.type {name}, @function\n\t.p2align 3\n{name}:\tnopl 0x629affff(%rax,%rax,1)\n\
             \tnopl 0x100(%rax,%rax,1)\n\tmovl $1, %eax\n\tret\n\t.size {name}, .-{name}\n"
        )
    };
    let text = function("f") + &function("g") + "\t.section .note.GNU-stack,\"\",@progbits\n";
    let d = Dir::new();
    let (source, module) = (d.write("t.s", &text), d.path("t.rf"));
    assert_eq!(cc(&["--no-rewrite", &source, "-o", &module]), 0);
    let data = std::fs::read(&module).unwrap();
    let image = Image::parse(&data).unwrap();
    let filler = [0x0F, 0x1F, 0x84, 0x00, 0x00, 0x01, 0x00, 0x00];
    let kept = image.text_bytes().windows(8).filter(|w| *w == filler).count();
    assert_eq!(kept, 2, "the fillers are as they were written");
    let places = ringfence_verify::identifiers(&image.text_pages(), image.text.address as u32).unwrap();
    assert!(places.is_empty(), "{places:?}");
}

#[test]
fn builds_are_reproducible() {
    let text = "int t[64]; int f(int x) { switch (x) { case 1: return t[2]; case 2: return t[5]; case 3: return 9; \
                case 4: return t[1]; case 5: return 3; } return t[x]; }\n";
    let d = Dir::new();
    let source = d.write("t.c", text);
    let (one, two) = (d.path("1.rf"), d.path("2.rf"));
    assert_eq!(cc(&["-O2", &source, "-o", &one]), 0);
    assert_eq!(cc(&["-O2", &source, "-o", &two]), 0);
    assert!(
        std::fs::read(one).unwrap() == std::fs::read(two).unwrap(),
        "two builds of one source differ"
    );
}

#[test]
fn no_plt_no_needed_libraries_no_text_relocations() {
    let text = "__attribute__((weak)) int maybe(void); extern int other(int); int (*p)(int) = other;\n\
                int f(int x) { return (maybe ? maybe() : 0) + other(x); }\n";
    let data = build(text, &["-O2", "--import=other"]);
    let image = Image::parse(&data).unwrap();
    assert!(image.needed.is_empty());
    assert!(
        image
            .relocations
            .iter()
            .all(|(kind, _)| [1, 6, 8, 18].contains(kind)),
        "{:?}",
        image.relocations
    );
    let mut imports: Vec<(&str, bool)> = image
        .dynamic
        .iter()
        .filter(|s| !s.defined)
        .map(|s| (s.name, s.weak))
        .collect();
    imports.sort_unstable();
    assert_eq!(imports, [("__rf_import.other", false), ("maybe", true)]);
    assert_eq!(image.require_note().unwrap().version, ringfence_isa::ABI_VERSION);
}

#[test]
fn hand_written_fillers_and_text_sections_of_all_kinds() {
    let text = "__attribute__((section(\".text.special\"))) int a(int x) { return x + 1; }\n\
                __attribute__((cold, noinline)) int b(int x) { return x * 3; }\n\
                __attribute__((section(\"odd_section\"))) int c(int x) { return x - 1; }\n\
                int d(int x) { for (int i = 0; i < x; i++) __asm__ volatile(\".p2align 6\"); return a(x) + b(x) + c(x); }\n";
    let data = build(text, &["-O2", "-falign-functions=64"]);
    let image = Image::parse(&data).unwrap();
    // What gas fills with has prefixes that are not accepted.
    assert!(!image.text_bytes().windows(3).any(|w| w == [0x2E, 0x0F, 0x1F]));
}

#[test]
fn ordinary_shared_objects_are_told_from_modules() {
    let d = Dir::new();
    let source = d.write("t.c", "int f(void) { return 1; }\n");
    let plain = d.path("plain.so");
    let status = std::process::Command::new("gcc")
        .args(["-shared", "-fPIC", &source, "-o", &plain])
        .status()
        .unwrap();
    assert!(status.success());
    let data = std::fs::read(plain).unwrap();
    assert!(matches!(check(&data, &Rules::default()), Err(ImageError::NoNote)));
}

#[test]
fn what_a_module_defines_is_reached_directly() {
    let text = "int counter; extern int later; __thread int mine; int later = 3; int one(int x) { return x + counter; }\n\
                int (*pointer(void))(int) { return one; } int *where(void) { return &later; }\n\
                int all(int x) { mine += x; return one(x) + later + mine; }\n";
    let data = build(text, &["-O2"]);
    let image = Image::parse(&data).unwrap();
    // No slot of the global offset table but that of the thread-local variable's distance.
    let kinds: Vec<u32> = image.relocations.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [18], "{:?}", image.relocations);
    for name in ["counter", "later", "one", "pointer", "where", "all"] {
        assert!(
            image.dynamic.iter().any(|s| s.defined && s.name == name),
            "{name} is exported"
        );
    }
}

#[test]
fn data_of_another_module_goes_through_the_table() {
    let d = Dir::new();
    let (giver, taker) = (
        d.write("a.c", "int given = 7;\n"),
        d.write("b.c", "extern int given; int take(void) { return given; }\n"),
    );
    let declared = d.write(
        "c.c",
        "#ifdef __ringfence__\n__asm__(\".pushsection .rf.imports,\\\"e\\\",@progbits\\n\\t.asciz \\\"=given\\\"\\n\\t.popsection\");\n#endif\n\
         extern int given; int take(void) { return given; }\n",
    );
    let (a, out, object) = (d.path("a.rf"), d.path("b.rf"), d.path("b.o"));
    assert_eq!(cc(&["-O2", "-shared", &giver, "-o", &a]), 0);
    for args in [
        &[
            "-O2",
            "-shared",
            "--import-data=given",
            taker.as_str(),
            "-o",
            &out,
        ] as &[&str],
        &["-O2", "-shared", taker.as_str(), a.as_str(), "-o", &out],
        &["-O2", "-shared", declared.as_str(), "-o", &out],
    ] {
        assert_eq!(cc(args), 0, "{args:?}");
        let data = std::fs::read(&out).unwrap();
        let undefined = Image::parse(&data)
            .unwrap()
            .dynamic
            .into_iter()
            .filter(|s| !s.defined);
        assert_eq!(undefined.map(|s| s.name).collect::<Vec<_>>(), ["given"]);
    }
    // Compiled without a word about it, it is taken for the module's own: the link refuses.
    assert_eq!(cc(&["-O2", "-c", &taker, "-o", &object]), 0);
    std::fs::remove_file(&out).unwrap();
    assert_eq!(cc(&["-shared", &object, &a, "-o", &out]), 1);
    assert!(!std::path::Path::new(&out).exists());
}
