//! What goes wrong, and how the command says so.

mod common;

use common::Dir;

#[test]
fn an_undefined_symbol_names_symbol_object_and_line() {
    let d = Dir::new();
    d.write(
        "u.c",
        "int host(int);\n\nint f(int x)\n{\n\treturn host(x) + 1;\n}\n",
    );
    let ran = d
        .rf(&["cc", "-g", "-O1", "u.c", "-o", "u.rf"])
        .fails(1, &["ringfence: error: undefined symbol 'host'", "u.c:5"]);
    assert!(ran.err.contains("--import=NAME"), "{}", ran.err);
    assert!(!d.exists("u.rf"));
    d.sh("$RF cc -O1 -c u.c").ok();
    d.rf(&["cc", "u.o", "-o", "u.rf"])
        .fails(1, &["undefined symbol 'host'", "u.o", "in f"]);
}

#[test]
fn undefined_symbols_become_imports_when_declared() {
    let d = Dir::new();
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../include");
    d.write("u.c", "int host(int);\nint f(int x) { return host(x) + 1; }\n");
    d.write(
        "m.c",
        "#include <ringfence/module.h>\nRF_IMPORT(int, host, (int x))\nRF_IMPORT(int, unused, (void))\n\
         int f(int x) { return host(x) + 1; }\n",
    );
    d.write("names", "# from the host\nhost\nother\n");
    d.rf(&["cc", "--import=host", "u.c", "-o", "1.rf"]).ok();
    d.rf(&["cc", "--imports-from=names", "u.c", "-o", "2.rf"]).ok();
    d.rf(&["cc", "-I", header, "-O2", "-Wall", "-Werror", "m.c", "-o", "3.rf"])
        .ok();
    d.sh(&format!(
        "$RF cc -I{header} -O2 -c m.c && ar rcs libm2.a m.o && $RF cc -Wl,--whole-archive libm2.a -o 4.rf"
    ))
    .ok();
    for module in ["1.rf", "2.rf", "3.rf", "4.rf"] {
        let info = d.rf(&["inspect", module]).ok().out;
        assert!(info.contains("imports     1\n"), "{info}");
        d.rf(&["verify", module]).ok();
        d.rf(&["call", module, "f", "1"]).fails(139, &["it called host"]);
    }
    // The header is for other compilers too, and for C++.
    d.sh(&format!("gcc -Wall -Wextra -Werror -I{header} -c m.c -o /dev/null; g++ -Wall -Wextra -Werror -I{header} -x c++ -c m.c -o /dev/null")).ok();
}

#[test]
fn exports_of_another_module_are_imports() {
    let d = Dir::new();
    d.write("lib.c", "int shared = 4;\nint twice(int x) { return 2 * x; }\n");
    d.write(
        "use.c",
        "extern int shared; int twice(int);\nint f(void) { return twice(shared); }\n",
    );
    d.rf(&["cc", "-O2", "lib.c", "-o", "lib.rf"]).ok();
    d.rf(&["cc", "-O2", "use.c", "lib.rf", "-o", "use.rf"]).ok();
    let info = d.rf(&["inspect", "use.rf"]).ok().out;
    assert!(
        info.contains("imports     2\n") && info.contains("shared") && info.contains("twice"),
        "{info}"
    );
}

#[test]
fn weak_functions_that_nobody_defines_are_null() {
    let d = Dir::new();
    d.write("w.c", "__attribute__((weak)) int maybe(int);\nint f(int x) { return maybe ? maybe(x) : -1; }\nint g(int x) { return maybe(x); }\n");
    d.write("maybe.c", "int maybe(int x) { return x; }\n");
    d.rf(&["cc", "-O2", "w.c", "-o", "w.rf"]).ok();
    assert_eq!(
        d.rf(&["call", "--sig", "i32(i32)", "w.rf", "f", "3"]).ok().out,
        "-1\n"
    );
    d.rf(&["call", "w.rf", "g", "3"])
        .fails(139, &["ringfence: error:"]);
    d.rf(&["cc", "-O2", "w.c", "maybe.c", "-o", "w2.rf"]).ok();
    assert_eq!(d.rf(&["call", "w2.rf", "f", "3"]).ok().out, "3\n");
    let info = d.rf(&["inspect", "w.rf"]).ok().out;
    assert!(
        info.contains("imports     1\n") && info.contains("weak"),
        "{info}"
    );
    // Assembly that is taken as it is calls it directly, which cannot lead out of a module: null, and no procedure linkage table.
    d.write("w.s", "\t.globl f\n\t.type f, @function\n\t.p2align 3\nf:\tnopl 0x629affff(%rax,%rax,1)\n\tcmpq $0, maybe@GOTPCREL(%rip)\n\tje 1f\n\tcall maybe@PLT\n1:\tret\n\t.size f, .-f\n\t.weak maybe\n");
    d.rf(&["cc", "--no-rewrite", "w.s", "-o", "w3.rf"]).ok();
    d.rf(&["call", "w3.rf", "f", "3"]).ok();
    assert!(d.rf(&["inspect", "w3.rf"]).ok().out.contains("imports     0\n"));
}

#[test]
fn what_cannot_be_fenced_names_source_line_and_instruction() {
    let d = Dir::new();
    d.write(
        "s.c",
        "int f(void)\n{\n\tint r;\n\t__asm__ volatile(\"syscall\" : \"=a\"(r));\n\treturn r;\n}\n",
    );
    for flags in [&["cc", "-O2", "-c", "s.c"][..], &["cc", "-g", "-O2", "-c", "s.c"]] {
        let ran = d
            .rf(flags)
            .fails(1, &["ringfence: error: cannot be fenced", "s.c:4", "syscall"]);
        assert!(!d.exists("s.o"), "{}", ran.err);
    }
}

#[test]
fn attackers_meet_the_verifier() {
    let d = Dir::new();
    d.write("s.s", "\t.globl f\n\t.type f, @function\n\t.p2align 3\nf:\tnopl 0x629affff(%rax,%rax,1)\n\tsyscall\n\tret\n\t.size f, .-f\n");
    d.rf(&["cc", "--no-rewrite", "s.s", "-o", "s.rf"])
        .fails(1, &["verifier rejects", "<f+0x8>", "syscall", "rule 8"]);
    assert!(!d.exists("s.rf"));
    d.rf(&["cc", "--no-rewrite", "--no-verify", "s.s", "-o", "s.rf"])
        .ok();
    d.rf(&["verify", "s.rf"])
        .fails(1, &["s.rf: rejected", "<f+0x8>: syscall", "[0f 05]", "rule 8"]);
    let json = d
        .rf(&["verify", "--json", "s.rf"])
        .fails(1, &["\"rule\": 8", "\"symbol\": \"f+0x8\""]);
    assert!(json.out.trim_start().starts_with('['));
    d.rf(&["call", "s.rf", "f"]).fails(2, &["ringfence: error:"]);
}

#[test]
fn strangers_are_named() {
    let d = Dir::new();
    d.write("n.c", "int n(int *p) { return *p; }\n");
    d.sh("gcc -O2 -c n.c; ar rcs libn.a n.o").ok();
    d.rf(&["cc", "n.o", "-o", "n.rf"])
        .fails(1, &["not built by ringfence cc: n.o", "rule 1"]);
    d.rf(&["cc", "-Wl,--whole-archive", "libn.a", "-o", "n.rf"])
        .fails(1, &["libn.a(n.o)"]);
    d.rf(&["cc", "n.o", "-lz", "-o", "n.rf"])
        .fails(1, &["cannot find -lz"]);
    d.rf(&["cc", "/lib/x86_64-linux-gnu/libc.so.6", "-o", "n.rf"])
        .fails(1, &["libc.so.6"]);
}

#[test]
fn compilers_that_will_not_do() {
    let d = Dir::new();
    d.write("a.c", "int a;\n");
    d.write("clang", "#!/bin/sh\necho 'clang version 16.0.0'\n");
    d.write(
        "old",
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'gcc (GCC) 9.1.0' || echo 9\n",
    );
    d.sh("chmod +x clang old; ln clang mycc").ok();
    for name in ["clang", "mycc"] {
        d.sh(&format!("RINGFENCE_CC=$PWD/{name} $RF cc -c a.c"))
            .fails(1, &["Clang", "before version 23", "RINGFENCE_CC"]);
    }
    d.sh("RINGFENCE_CC=$PWD/old $RF cc -c a.c")
        .fails(1, &["version 9", "gcc 12"]);
    d.sh("RINGFENCE_CC=/nowhere/gcc $RF cc -c a.c")
        .fails(1, &["/nowhere/gcc", "RINGFENCE_CC"]);
    d.sh("RINGFENCE_AS=/nowhere/as $RF cc -c a.c")
        .fails(1, &["/nowhere/as"]);
}

#[test]
fn command_lines_that_make_no_sense() {
    let d = Dir::new();
    d.write("a.c", "int a;\n");
    d.rf(&["cc"]).fails(1, &["ringfence: error: no input files"]);
    d.rf(&["cc", "-c", "a.c", "-o"])
        .fails(1, &["-o needs an argument"]);
    d.rf(&["cc", "-c", "a.c", "a.c", "-o", "x.o"])
        .fails(1, &["-o cannot name"]);
    d.rf(&["cc", "-m32", "-c", "a.c"]).fails(1, &["-m32"]);
    d.rf(&["cc", "--isolation=some", "-c", "a.c"])
        .fails(1, &["full, integrity"]);
    d.rf(&["cc", "-c", "missing.c"]).fails(1, &["missing.c"]);
    d.rf(&["cc", "missing.o"]).fails(1, &["missing.o"]);
    d.rf(&["cc", "-x", "fortran", "-c", "a.c"])
        .fails(1, &["-x fortran"]);
    d.write("bad.c", "int f(void) { return }\n");
    d.rf(&["cc", "-c", "bad.c", "-o", "bad.o"]).fails(1, &["bad.c:1"]);
    assert!(!d.exists("bad.o"));
}

#[test]
fn corrupted_files_are_unreadable_not_fatal() {
    let d = Dir::new();
    d.write("a.c", "int t[100]; int a(int x) { return t[x] / x; }\n");
    d.rf(&["cc", "-O2", "-g", "a.c", "-o", "a.rf"]).ok();
    let good = d.read("a.rf");
    d.rf(&["verify", "missing.rf"]).fails(2, &["missing.rf"]);
    d.write("text.rf", "hello");
    d.rf(&["verify", "text.rf"])
        .fails(2, &["not a readable ELF file"]);
    d.rf(&["inspect", "text.rf"])
        .fails(2, &["not a readable ELF file"]);
    d.rf(&["verify", "/bin/true"]).fails(2, &["ringfence: error:"]);
    for cut in [10, 64, 100, 500, 0x1000, 0x1010, good.len() / 2] {
        d.write("cut.rf", &good[..cut]);
        let ran = d.rf(&["verify", "cut.rf"]);
        assert!(
            ran.status == 2 || ran.status == 1,
            "cut at {cut}: {} {}",
            ran.status,
            ran.err
        );
        assert!(
            ran.status == 1 || ran.err.contains("ringfence: error: cut.rf"),
            "{}",
            ran.err
        );
    }
    let mut machine = good.clone();
    machine[18] = 0x28;
    d.write("arm.rf", &machine);
    d.rf(&["verify", "arm.rf"]).fails(2, &["another machine"]);
    let mut object = good.clone();
    object[16] = 1;
    d.write("rel.rf", &object);
    d.rf(&["verify", "rel.rf"]).fails(2, &["not a shared object"]);
    // One good file among bad ones does not make it better.
    d.rf(&["verify", "a.rf", "text.rf"]).fails(2, &["a.rf: accepted"]);
}

#[test]
fn every_single_byte_of_the_headers_may_be_wrong() {
    let d = Dir::new();
    d.write("a.c", "int a(int x) { return x; }\n");
    d.rf(&["cc", "-O2", "a.c", "-o", "a.rf"]).ok();
    let good = d.read("a.rf");
    // In process, for speed: what matters is that nothing panics and nothing takes long.
    for at in 0..0x300.min(good.len()) {
        for value in [0, 0xFF, good[at] ^ 1, good[at].wrapping_add(0x40)] {
            let mut bad = good.clone();
            bad[at] = value;
            let _ = ringfence_driver::check::check(&bad, &ringfence_driver::check::Rules::default());
            let _ = ringfence_driver::inspect::inspect(&bad);
        }
    }
}

#[test]
fn random_damage_anywhere_is_survived() {
    let d = Dir::new();
    d.write(
        "a.c",
        "__thread int v; int t[9] = {1}; int *p = t; int h(int); int a(int x) { return h(x) + t[x] + v; }\n",
    );
    d.rf(&["cc", "-O2", "-g", "--import=h", "a.c", "-o", "a.rf"]).ok();
    let good = d.read("a.rf");
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for _ in 0..1500 {
        let mut bad = good.clone();
        for _ in 0..1 + random() % 6 {
            let at = random() % bad.len();
            bad[at] = random() as u8;
            if random() % 4 == 0 {
                let end = (at + 8).min(bad.len());
                bad[at..end].fill(0xFF);
            }
        }
        if random() % 8 == 0 {
            bad.truncate(random() % good.len());
        }
        let _ = ringfence_driver::check::check(&bad, &ringfence_driver::check::Rules::default());
        let _ = ringfence_driver::inspect::inspect(&bad);
    }
}

#[test]
fn bare_code() {
    let d = Dir::new();
    d.write("ret", [0xC3]);
    d.write("syscall", [0x0F, 0x05, 0xC3]);
    assert!(d.rf(&["verify", "--raw", "ret"]).ok().out.contains("accepted"));
    d.rf(&["verify", "--raw", "syscall"])
        .fails(1, &["0x0: syscall", "rule 8"]);
    d.rf(&["verify", "--raw", "--entry", "0x2", "syscall"])
        .fails(1, &["rule 8"]);
    d.write("pop", [0x90, 0x58, 0xC3]);
    d.rf(&["verify", "--raw", "pop"]).fails(1, &["rule 3"]);
    d.rf(&["verify", "--raw", "--entry", "x", "pop"])
        .fails(2, &["hexadecimal"]);
    d.rf(&["verify", "--raw", "--entry", "7000000", "pop"])
        .fails(1, &["entry"]);
    d.write("empty", []);
    d.rf(&["verify", "--raw", "empty"]);
}

#[test]
fn calls_with_wrong_arguments() {
    let d = Dir::new();
    d.write("a.c", "double half(double x) { return x / 2; }\nint div(int a, int b) { return a / b; }\nint data;\nconst char *name(void) { return \"fenced\"; }\n");
    d.rf(&["cc", "-O2", "-g", "a.c", "-o", "a.rf"]).ok();
    assert_eq!(
        d.rf(&["call", "--sig", "f64(f64)", "a.rf", "half", "3"]).ok().out,
        "1.5\n"
    );
    assert_eq!(
        d.rf(&["call", "--sig", "str()", "a.rf", "name"]).ok().out,
        "fenced\n"
    );
    d.rf(&["call", "a.rf", "missing"]).fails(2, &["missing"]);
    d.rf(&["call", "a.rf", "data"]).fails(2, &["data"]);
    d.rf(&["call", "--sig", "i32(i32)", "a.rf", "div", "1", "2"])
        .fails(2, &["takes 1"]);
    d.rf(&["call", "--sig", "i32(i32", "a.rf", "div", "1"])
        .fails(2, &["no signature"]);
    d.rf(&["call", "--sig", "i32(i32,i32)", "a.rf", "div", "x", "1"])
        .fails(2, &["argument 1"]);
    let ran = d
        .rf(&["call", "--sig", "i32(i32,i32)", "a.rf", "div", "1", "0"])
        .fails(139, &["ringfence: error:", "div"]);
    assert!(ran.err.contains("a.c:2"), "{}", ran.err);
}

#[test]
fn imports_used_only_by_template_instances() {
    let d = Dir::new();
    let declarations: String = (0..40)
        .map(|i| format!("extern \"C\" int h{i}(int);\n"))
        .collect();
    let instances: String = (0..40)
        .map(|i| {
            format!("template <class T> struct S{i} {{ virtual T f(T x) {{ return h{i}(x); }} }}; template struct S{i}<int>;\n")
        })
        .collect();
    d.write(
        "t.cc",
        format!("{declarations}{instances}extern \"C\" int f(int x) {{ return h0(x) + S7<int>().f(x); }}\n"),
    );
    d.write("u.cc", format!("{declarations}{instances}"));
    d.write("names", (0..40).map(|i| format!("h{i}\n")).collect::<String>());
    let script = "for f in t u; do $RF c++ -O1 -fno-rtti -c $f.cc; done; \
                  $RF c++ -nodefaultlibs -shared t.o u.o --imports-from=names -o t.rf";
    d.sh(script).ok();
    assert!(d.rf(&["inspect", "t.rf"]).ok().out.contains("imports     40\n"));
    d.sh("$RF c++ -shared t.o u.o -o t.rf")
        .fails(1, &["undefined symbol 'h7'", "undefined symbol 'h39'", "t.o"]);
}

#[test]
fn typical_mistakes_are_told_with_what_to_do() {
    let d = Dir::new();
    d.write("ok.c", "int add(int a, int b) { return a + b; }\n");
    d.write(
        "libc.c",
        "int puts(const char *);\nint f(void) { return puts(\"x\"); }\n",
    );
    d.sh("$RF cc ok.c -o ok.rf && $RF cc -c ok.c && gcc -shared -fPIC ok.c -o plain.so")
        .ok();
    for (line, status, parts) in [
        (
            "cc -c ok.c -o nowhere/x.o",
            1,
            &["nowhere/x.o", "No such file"][..],
        ),
        ("cc ok.c -o nowhere/x.rf", 1, &["nowhere/x.rf", "No such file"]),
        (
            "cc --sysroot-rf=nowhere ok.c -o x.rf",
            1,
            &["no sysroot at nowhere", "ringfence setup"],
        ),
        (
            "cc libc.c -o x.rf",
            1,
            &[
                "undefined symbol 'puts'",
                "no libc is linked",
                "RINGFENCE_SYSROOT",
            ],
        ),
        (
            "cc plain.so ok.c -o x.rf",
            1,
            &["plain.so", "build it with ringfence cc"],
        ),
        ("call ok.rf ad 1 2", 2, &["no export \"ad\"", "ringfence inspect"]),
        (
            "call ok.o add 1 2",
            2,
            &["ok.o: not a Ringfence module", "ringfence cc -o NAME.rf"],
        ),
        (
            "call plain.so add 1 2",
            2,
            &["plain.so", "build it with `ringfence cc`"],
        ),
        ("call /bin/sh add 1 2", 2, &["/bin/sh", "ordinary program"]),
        ("run ok.rf", 125, &["not a program", "with a main"]),
        ("run ok.c", 125, &["ok.c: not a Ringfence module"]),
        ("run --memory-limit 1Q ok.rf", 2, &["1Q", "K, M or G"]),
        ("run --dir nowhere ok.rf", 125, &["nowhere", "No such file"]),
        ("verify ok.c", 2, &["ok.c: not a readable ELF file"]),
        ("inspect nowhere.rf", 2, &["nowhere.rf", "No such file"]),
        ("build ok.c", 2, &["unrecognized subcommand 'build'"]),
    ] {
        let ran = d.sh(&format!("$RF {line}"));
        assert_eq!(ran.status, status, "{line}: {}", ran.err);
        for part in parts {
            assert!(ran.err.contains(part), "{line}: no {part:?} in {}", ran.err);
        }
    }
}

#[test]
fn devices_and_large_files_are_refused_at_the_bound() {
    let d = Dir::new();
    d.sh("ulimit -v 4000000; $RF verify --max-file 1M /dev/zero")
        .fails(2, &["/dev/zero: larger than 1048576 bytes", "--max-file"]);
    d.sh("$RF inspect --max-file 1M /dev/zero")
        .fails(2, &["larger than 1048576 bytes"]);
    d.sh("truncate -s 3G sparse.rf; $RF verify sparse.rf")
        .fails(2, &["larger than 268435456 bytes"]);
    d.rf(&["call", "sparse.rf", "f"])
        .fails(2, &["larger than 268435456 bytes", "max_file_size"]);
}

#[test]
fn output_that_nobody_takes_changes_no_status() {
    let d = Dir::new();
    d.write("m.c", "int f(int x) { return x + 1; }\n");
    d.rf(&["cc", "-g", "m.c", "-o", "m.rf"]).ok();
    for command in [
        "inspect m.rf",
        "inspect --json m.rf",
        "verify m.rf",
        "verify --json m.rf",
        "call m.rf f 1",
    ] {
        let ran = d.sh(&format!("$RF {command} >/dev/full"));
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{command}");
    }
}

#[test]
fn constructors_end_a_program_as_its_main_does() {
    let d = Dir::new();
    let program = |constructor: &str| {
        format!(
            "long __rf_syscall(long);\n__attribute__((constructor)) static void first(void) {{ {constructor} }}\n\
             int __rf_main(int argc, char **argv, char **envp, unsigned long *auxv) {{ return 0; }}\n"
        )
    };
    d.write("loop.c", program("for (;;) __asm__ volatile(\"\");"));
    d.rf(&["cc", "-O1", "loop.c", "-o", "loop.rf"]).ok();
    d.rf(&["run", "--time-limit", "100ms", "loop.rf"])
        .fails(124, &["initialising", "time limit"]);
    let exit = "register long rax __asm__(\"rax\") = 231, rdi __asm__(\"rdi\") = 5; \
                __asm__ volatile(\"call __rf_syscall\" : \"+a\"(rax), \"+D\"(rdi) : : \"memory\", \"rcx\", \"r11\");";
    d.write("exit.c", program(exit));
    d.rf(&["cc", "-O1", "exit.c", "-o", "exit.rf"]).ok();
    let ran = d.rf(&["run", "exit.rf"]);
    assert_eq!((ran.status, ran.err.as_str()), (5, ""));
}

/// The doctor tells what is missing and what to do, and its exit status says whether modules can be made and run.
#[test]
fn the_doctor_says_what_to_do() {
    let d = Dir::new();
    let json = d.sh("$RF doctor --json").ok().out;
    for part in [
        "\"usable\": true",
        "\"processor\"",
        "fsgsbase",
        "\"gcc\"",
        "\"vm.max_map_count\"",
        "\"own processes\"",
    ] {
        assert!(json.contains(part), "{part}\n{json}");
    }
    assert!(
        d.sh("$RF doctor")
            .ok()
            .out
            .contains("no sysroot: modules without a libc only")
    );
    d.write("clang", "#!/bin/sh\necho 'clang version 16.0.0'\n");
    let ran = d.sh("chmod +x clang; RINGFENCE_CC=$PWD/clang $RF doctor");
    assert_eq!(ran.status, 1);
    assert!(
        ran.out.contains("bad   gcc") && ran.out.contains("RINGFENCE_CC"),
        "{}",
        ran.out
    );
    let ran = d.sh("ulimit -v 8000000; $RF doctor --json");
    assert_eq!(ran.status, 1);
    assert!(
        ran.out.contains("ulimit -v unlimited") && ran.out.contains("\"usable\": false"),
        "{}",
        ran.out
    );
    let ran = d.sh("RINGFENCE_WORKER=$PWD/nobody $RF doctor").ok();
    let line = ran
        .out
        .lines()
        .find(|l| l.contains("own processes"))
        .expect("a line");
    assert!(
        line.starts_with("less") && line.contains("nobody, which is no file"),
        "{line}"
    );
    let ran = d.sh("mkdir none; PATH=$PWD/none; $RF doctor");
    assert!(
        ran.status == 1 && ran.out.contains("install binutils"),
        "{}",
        ran.out
    );
}
