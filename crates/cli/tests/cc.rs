//! `ringfence cc` as a drop-in for gcc: what makefiles, configure scripts and CMake ask of it.

mod common;

use common::Dir;

const ADD: &str = "int add(int a, int b) { return a + b; }\n";

#[test]
fn one_source_becomes_a_module() {
    let d = Dir::new();
    d.write("add.c", ADD);
    d.rf(&["cc", "-O2", "add.c", "-o", "add.rf"]).ok();
    assert!(d.rf(&["verify", "add.rf"]).ok().out.contains("add.rf: accepted"));
    assert_eq!(
        d.rf(&["call", "add.rf", "add", "--sig", "i32(i32,i32)", "2", "3"])
            .ok()
            .out,
        "5\n"
    );
}

#[test]
fn default_output_is_that_of_gcc() {
    let d = Dir::new();
    d.write("dir/add.c", ADD);
    d.rf(&["cc", "dir/add.c"]).ok();
    d.rf(&["verify", "a.out"]).ok();
    d.rf(&["cc", "-c", "dir/add.c"]).ok();
    assert!(d.exists("add.o"));
    d.rf(&["cc", "-S", "dir/add.c"]).ok();
    assert!(
        String::from_utf8(d.read("add.s")).unwrap().contains("nopl"),
        "-S yields fenced assembly"
    );
}

#[test]
fn fenced_assembly_may_come_back() {
    let d = Dir::new();
    d.write("t.c", "int g(int *p, int x) { switch (x) { case 0: return p[1]; case 1: return 5; case 2: return p[3]; case 3: return 1; case 4: return 2; } return 0; }\nint f(int x) { int a[4] = {1, 2, 3, 4}; return g(a, x); }\n");
    d.sh("$RF cc -O1 -S t.c && $RF cc -c t.s && $RF cc t.o -o t.rf && $RF cc t.s -o u.rf && cmp t.rf u.rf")
        .ok();
    assert_eq!(d.rf(&["call", "t.rf", "f", "2"]).ok().out, "4\n");
}

#[test]
fn check_mode_traps_at_the_access() {
    let d = Dir::new();
    d.write(
        "t.c",
        "int f(int *p)\n{\n\tint x = 1;\n\tx += *p;\n\treturn x;\n}\n",
    );
    d.rf(&["cc", "--check", "-g", "-O1", "t.c", "-o", "t.rf"]).ok();
    assert!(d.rf(&["inspect", "t.rf"]).ok().out.contains("with checks"));
    d.rf(&["call", "--sig", "i32(ptr)", "t.rf", "f", "0x123456789000"])
        .fails(139, &["t.c:4"]);
    assert_eq!(
        d.rf(&["call", "--sig", "i32(str)", "t.rf", "f", "abc"])
            .ok()
            .out
            .trim(),
        (0x0063_6261 + 1).to_string()
    );
}

#[test]
fn a_makefile_with_archives_subdirectories_and_parallel_jobs() {
    let d = Dir::new();
    for i in 0..12 {
        d.write(
            &format!("src/f{i}.c"),
            format!("int f{i}(int x) {{ return x + {i}; }}\n"),
        );
    }
    let calls: String = (0..12).map(|i| format!("int f{i}(int); ")).collect();
    let sum: Vec<String> = (0..12).map(|i| format!("f{i}(x)")).collect();
    d.write(
        "all.c",
        format!("{calls}\nint all(int x) {{ return {}; }}\n", sum.join("+")),
    );
    d.write(
        "Makefile",
        "OBJS := $(patsubst src/%.c,obj/%.o,$(wildcard src/*.c))\nall.rf: all.o libf.a\n\t$(CC) $(CFLAGS) -o $@ all.o -L. -lf\n\
         libf.a: $(OBJS)\n\tar rcs $@ $^\nobj/%.o: src/%.c\n\t@mkdir -p obj\n\t$(CC) $(CFLAGS) -MMD -MP -c $< -o $@\n\
         -include $(OBJS:.o=.d)\n",
    );
    d.sh("make -s -j8 CC=\"$RF cc\" CFLAGS='-O2 -g'").ok();
    assert_eq!(d.rf(&["call", "all.rf", "all", "1"]).ok().out, "78\n");
    let deps = String::from_utf8(d.read("obj/f3.d")).unwrap();
    assert!(deps.starts_with("obj/f3.o: src/f3.c"), "{deps}");
}

#[test]
fn dependency_files_are_named_as_by_gcc() {
    let d = Dir::new();
    d.write("h.h", "");
    d.write("x.c", "#include \"h.h\"\nint x;\n");
    d.rf(&["cc", "-MD", "-c", "x.c"]).ok();
    let deps = String::from_utf8(d.read("x.d")).unwrap();
    assert!(
        deps.starts_with("x.o: x.c ") && deps.ends_with(" h.h\n"),
        "{deps}"
    );
    d.rf(&[
        "cc", "-MMD", "-MF", "y.dep", "-MT", "target", "-c", "x.c", "-o", "y.o",
    ])
    .ok();
    assert_eq!(String::from_utf8(d.read("y.dep")).unwrap(), "target: x.c h.h\n");
    assert_eq!(d.rf(&["cc", "-MM", "x.c"]).ok().out, "x.o: x.c h.h\n");
    d.rf(&["cc", "-MD", "x.c", "-o", "prog"]).ok();
    assert!(d.exists("prog-x.d"));
}

#[test]
fn questions_go_to_gcc() {
    let d = Dir::new();
    let version = d.rf(&["cc", "--version"]).ok().out;
    assert!(
        version.starts_with("gcc") && version.contains("ringfence cc"),
        "{version}"
    );
    assert_eq!(
        d.rf(&["cc", "-dumpmachine"]).ok().out,
        d.sh("gcc -dumpmachine").ok().out
    );
    assert_eq!(
        d.rf(&["cc", "-print-prog-name=ld"]).ok().out,
        d.sh("gcc -print-prog-name=ld").ok().out
    );
    assert!(d.rf(&["cc", "-v"]).ok().err.contains("gcc version"));
    assert!(d.sh("echo __ringfence__ | $RF cc -E -").ok().out.ends_with("1\n"));
    assert!(
        d.sh("$RF cc -dM -E -x c /dev/null")
            .ok()
            .out
            .contains("#define __PIC__ 2")
    );
    assert!(
        d.rf(&["c++", "-E", "-dM", "-x", "c++", "/dev/null"])
            .ok()
            .out
            .contains("__cplusplus")
    );
    d.write("bad.c", "int f(void) { return x; }\n");
    d.rf(&["cc", "-fsyntax-only", "bad.c"]).fails(1, &["bad.c:1"]);
    let flags = d.rf(&["cc", "--print-flags"]).ok().out;
    assert!(flags.contains("-ffixed-r14"));
    let rewriter = flags.lines().find_map(|l| l.strip_prefix("rewriter: "));
    assert!(rewriter.is_some_and(|r| r.len() == 16), "{flags}");
    assert!(
        d.rf(&["cc", "-###", "-c", "bad.c"])
            .ok()
            .err
            .contains("-ffixed-r14")
    );
}

#[test]
fn inputs_of_every_kind() {
    let d = Dir::new();
    d.write("a.c", "int a(void) { return 1; }\n");
    d.write("b.txt", "int b(void) { return 2; }\n");
    d.write(
        "c.S",
        "#define N 3\n\t.globl c\n\t.type c, @function\nc:\tmovl $N, %eax\n\tret\n\t.size c, .-c\n\
         \t.section .note.GNU-stack,\"\",@progbits\n",
    );
    d.write(
        "d.s",
        "\t.globl d\n\t.type d, @function\nd:\tmovl (%rdi), %eax\n\tret\n\t.size d, .-d\n\
         \t.section .note.GNU-stack,\"\",@progbits\n",
    );
    d.write("args", "-O2 'a.c'\n\"-o\" out.rf");
    let script = "echo 'int e(int *p) { *p = 5; int d(int *); return d(p); }' | \
                  $RF cc @args -x c b.txt - -x none c.S d.s";
    d.sh(script).ok();
    for (function, result) in [("a", "1"), ("b", "2"), ("c", "3")] {
        assert_eq!(d.rf(&["call", "out.rf", function]).ok().out.trim(), result);
    }
    assert_eq!(
        d.rf(&["call", "--sig", "i32(str)", "out.rf", "e", "1234"])
            .ok()
            .out,
        "5\n"
    );
}

#[test]
fn flags_that_mean_nothing_here_do_no_harm() {
    let d = Dir::new();
    d.write("add.c", ADD);
    let flags = "-static -pie -fPIE -no-pie -rdynamic -pthread -pipe -fno-plt -Wl,-z,defs -Wl,--as-needed -Wl,-rpath,/x \
                 -Wl,-soname,libadd.so.1 -Wl,--no-undefined -lm -lpthread -ldl -s -Wl,-O1";
    d.sh(&format!("$RF cc -O2 add.c -o add.rf {flags}")).ok();
    d.rf(&["verify", "add.rf"]).ok();
    let ran = d.rf(&["cc", "-O2", "-flto", "add.c", "-o", "lto.rf"]).ok();
    assert!(
        ran.err.contains("ringfence: note: -flto is not used"),
        "{}",
        ran.err
    );
    d.rf(&["verify", "lto.rf"]).ok();
}

#[test]
fn relocatable_links() {
    let d = Dir::new();
    d.write("a.c", "static int t[] = {1,2,3,4,5,6,7,8};\nint a(int x) { switch (x) { case 0: return t[3]; case 1: return 7; case 2: return t[x]; case 3: return 11; case 4: return 9; case 5: return t[x+1]; } return 0; }\n");
    d.write("b.c", "int a(int);\nint b(int x) { return a(x) + 1; }\n");
    d.sh("$RF cc -O2 -c a.c; $RF cc -O2 -c b.c; $RF cc -r a.o b.o -o ab.o; $RF cc ab.o -o ab.rf")
        .ok();
    assert_eq!(d.rf(&["call", "ab.rf", "b", "3"]).ok().out, "12\n");
    assert_eq!(d.rf(&["call", "ab.rf", "b", "2"]).ok().out, "4\n");
}

#[test]
fn jump_tables_of_many_objects_do_not_clash() {
    let d = Dir::new();
    for i in 0..6 {
        let cases: String = (0..20)
            .map(|c| format!("case {c}: return g({}) + {c};\n", c * 3 + i))
            .collect();
        d.write(
            &format!("s{i}.c"),
            format!("int g(int); int s{i}(int x) {{ switch (x) {{ {cases} }} return -1; }}\n"),
        );
    }
    d.write("g.c", "int g(int x) { return 2 * x; }\n");
    d.sh("for i in 0 1 2 3 4 5; do $RF cc -O2 -c s$i.c; done; $RF cc -O1 -c g.c; $RF cc s?.o g.o -o s.rf")
        .ok();
    assert_eq!(
        d.rf(&["call", "s.rf", "s4", "7"]).ok().out,
        format!("{}\n", 2 * (7 * 3 + 4) + 7)
    );
    assert_eq!(
        d.rf(&["call", "s.rf", "s0", "19"]).ok().out,
        format!("{}\n", 2 * 57 + 19)
    );
}

#[test]
fn addressing_is_demanded_and_found_out() {
    let d = Dir::new();
    d.write("a.c", "long a(long **p) { return *p[1]; }\n");
    d.write("b.c", ADD);
    d.sh("$RF cc -nostdlib -O2 a.c b.c -o any.rf && $RF cc --addressing=segment -nostdlib -O2 a.c b.c -o segment.rf")
        .ok();
    for (file, addressing) in [("any.rf", "any"), ("segment.rf", "segment")] {
        let info = d.rf(&["inspect", "--json", file]).ok().out;
        assert!(
            info.contains(&format!("\"addressing\": \"{addressing}\"")),
            "{info}"
        );
    }
    d.rf(&["verify", "--addressing", "segment", "segment.rf"]).ok();
    let told = d
        .rf(&["verify", "--addressing", "segment", "any.rf"])
        .fails(1, &[])
        .out;
    assert!(told.contains("rule 1") && told.contains("<a"), "{told}");
    d.rf(&["call", "--addressing", "segment", "any.rf", "add", "1", "2"])
        .fails(2, &["--addressing=segment"]);
    assert_eq!(
        d.rf(&["call", "--addressing", "segment", "segment.rf", "add", "1", "2"])
            .ok()
            .out,
        "3\n"
    );
    // Objects of both kinds: the link says which it is.
    d.sh("$RF cc -O2 -c a.c && $RF cc --addressing=segment -nostdlib -O2 b.c a.o -o both.rf")
        .fails(1, &["rule 1", "--addressing=segment"]);
    d.rf(&["cc", "--addressing=some", "-c", "a.c"])
        .fails(1, &["any, segment"]);
}

#[test]
fn the_twins_of_an_object_are_what_their_names_say() {
    let d = Dir::new();
    d.write("a.c", "long a(long **p) { return *p[1]; }\n");
    d.write("b.c", ADD);
    d.sh("$RF cc --twin -O2 -c a.c && $RF cc --twin -O2 -c b.c && $RF cc -O2 --addressing=segment -c a.c -o alone.o && $RF cc -O2 --isolation=words -c a.c -o words.o")
        .ok();
    d.sh("cmp a.segment.o alone.o && cmp b.o b.segment.o && ! cmp -s a.o a.segment.o && cmp a.words.o words.o && ! cmp -s a.o a.words.o")
        .ok();
    // What clears by string instructions is compiled once more for rights to words.
    d.write("c.c", "void c(char *p) { __builtin_memset(p, 0, 128); }\n");
    d.sh(
        "$RF cc --twin -O2 -c c.c && $RF cc -O2 --isolation=words -c c.c -o words.o && cmp c.words.o words.o",
    )
    .ok();
    d.sh("objdump -d c.o | grep -q 'rep stos' && ! objdump -d c.words.o | grep 'rep stos'")
        .ok();
}

#[test]
fn isolation_is_noted_and_inherited_from_objects() {
    let d = Dir::new();
    d.write("a.c", "int a(int *p) { return *p; }\n");
    d.write("b.c", ADD);
    d.sh("$RF cc --isolation=integrity -O2 -c a.c; $RF cc -O2 b.c a.o -o m.rf")
        .ok();
    let info = d.rf(&["inspect", "--json", "m.rf"]).ok().out;
    assert!(info.contains("\"isolation\": \"integrity\""), "{info}");
    d.rf(&["call", "m.rf", "add", "1", "2"]).fails(2, &["integrity"]);
    assert_eq!(
        d.rf(&["call", "--allow-integrity", "m.rf", "add", "1", "2"])
            .ok()
            .out,
        "3\n"
    );
}

#[test]
fn cxx_sources() {
    let d = Dir::new();
    d.write(
        "v.cc",
        "struct B { virtual int f() const { return 1; } };\nstruct D : B { int f() const override { return 2; } };\n\
         static D d;\nextern \"C\" int call(bool base) { B b; const B *p = base ? &b : &d; return p->f(); }\n",
    );
    d.rf(&["c++", "-O1", "-fno-rtti", "-fno-exceptions", "v.cc", "-o", "v.rf"])
        .ok();
    assert_eq!(d.rf(&["call", "v.rf", "call", "1"]).ok().out, "1\n");
    assert_eq!(d.rf(&["call", "v.rf", "call", "0"]).ok().out, "2\n");
}

#[test]
fn temporary_files_are_kept_on_demand_only() {
    let d = Dir::new();
    d.write("add.c", ADD);
    d.sh("mkdir tmp; TMPDIR=$PWD/tmp $RF cc -O2 add.c -o add.rf; [ -z \"$(ls tmp)\" ]")
        .ok();
    d.rf(&["cc", "-save-temps", "-c", "add.c"]).ok();
    assert!(d.exists("add.gcc.s") && d.exists("add.rf.s"));
}

#[test]
fn output_may_be_a_device_or_an_old_file() {
    let d = Dir::new();
    d.write("add.c", ADD);
    d.write("old.rf", "old");
    d.rf(&["cc", "-O2", "add.c", "-o", "/dev/null"]).ok();
    d.rf(&["cc", "-O2", "-c", "add.c", "-o", "/dev/null"]).ok();
    assert!(std::fs::metadata("/dev/null").unwrap().len() == 0);
    d.rf(&["cc", "-O2", "add.c", "-o", "old.rf"]).ok();
    d.rf(&["verify", "old.rf"]).ok();
}

#[test]
fn the_frame_address_is_on_the_data_stack_and_callers_are_refused() {
    let d = Dir::new();
    // As natively: above the locals, below the arguments on the stack, and 16 bytes below where those start.
    d.write(
        "f.c",
        "#define HIDE(p) __asm__(\"\" : \"+r\"(p)) /* or gcc folds the compare */\n\
         long f(long a, long b, long c, long d, long e, long g, long on_stack)\n{\n\
         \tvolatile char local[40];\n\tlocal[0] = 1;\n\
         \tunsigned long frame = (unsigned long)__builtin_frame_address(0), low = (unsigned long)local, high = (unsigned long)&on_stack;\n\
         \tHIDE(frame);\n\tHIDE(low);\n\tHIDE(high);\n\
         \treturn frame > low && frame - low < 200 && frame + 16 == high;\n}\n\
         __attribute__((noipa)) int below(char *frame)\n{\n\tchar local = 0, *low = &local;\n\
         \tHIDE(frame);\n\tHIDE(low);\n\treturn frame > low;\n}\n\
         int above_callees(void)\n{\n\tint r = below(__builtin_frame_address(0));\n\tHIDE(r);\n\treturn r;\n}\n",
    );
    for (n, caller) in [
        "__builtin_frame_address(1)",
        "__builtin_frame_address(2)",
        "__builtin_return_address(1)",
    ]
    .iter()
    .enumerate()
    {
        d.write(
            &format!("c{n}.c"),
            format!("void *f(void) {{ return {caller}; }}\n"),
        );
    }
    d.write("r.c", "void *f(void) { return __builtin_return_address(0); }\n");
    for level in ["-O0", "-O1", "-O2", "-O3"] {
        d.rf(&["cc", level, "f.c", "-o", "f.rf"]).ok();
        let sig = "i64(i64,i64,i64,i64,i64,i64,i64)";
        let ran = d.rf(&[
            "call", "--sig", sig, "f.rf", "f", "1", "2", "3", "4", "5", "6", "7",
        ]);
        assert_eq!(ran.ok().out, "1\n", "{level}");
        let callee = d.rf(&["call", "--sig", "i32()", "f.rf", "above_callees"]);
        assert_eq!(
            callee.ok().out,
            "1\n",
            "{level}: above the locals of what it calls"
        );
        for n in 0..3 {
            d.rf(&["cc", level, &format!("c{n}.c"), "-o", "c.rf"]).fails(
                1,
                &[
                    &format!("c{n}.c:1"),
                    "frames of callers are out of a module's reach",
                ],
            );
        }
        d.rf(&["cc", level, "r.c", "-o", "r.rf"])
            .fails(1, &["r.c:1", "the return address is out of"]);
    }
}

#[test]
fn call_takes_types_from_debug_information() {
    let d = Dir::new();
    d.write(
        "t.c",
        "typedef const int number;\nenum sign { BELOW = -1, ABOVE = 1 };\nenum color { RED, GREEN };\nstruct two { int a, b; };\n\
         int negative(number x) { return -x; }\nunsigned top(void) { return 4294967295u; }\nenum sign sign(int x) { return x < 0 ? BELOW : ABOVE; }\n\
         enum color color(void) { return GREEN; }\nsigned char small(void) { return -2; }\n_Bool truth(int x) { return x; }\n\
         double half(double x) { return x / 2; }\nfloat third(float x, int n) { return x / 3 + n; }\nvoid nothing(void) { }\n\
         const char *name(const char *of) { return of + 1; }\nvoid *same(void *p) { return p; }\n\
         unsigned long first(const void *bytes) { return *(const unsigned char *)bytes; }\n\
         int sum(int n, ...) { __builtin_va_list l; __builtin_va_start(l, n); int s = 0; while (n--) s += __builtin_va_arg(l, int); return s; }\n\
         struct two pair(int a) { return (struct two){a, a}; }\nint of(struct two t) { return t.a; }\nlong double longer(void) { return 1; }\n",
    );
    for flags in ["-g -O0", "-g -O2", "-ggdb3 -gdwarf-5 -O1", "-gdwarf-4 -O2"] {
        d.sh(&format!("$RF cc {flags} t.c -o t.rf")).ok();
        let call = |line: &str| d.sh(&format!("$RF call t.rf {line}"));
        for (line, out) in [
            ("negative 1", "-1\n"),
            ("top", "4294967295\n"),
            ("sign -5", "-1\n"),
            ("color", "1\n"),
            ("small", "-2\n"),
            ("truth 7", "1\n"),
            ("half 3", "1.5\n"),
            ("third 3 2", "3\n"),
            ("nothing", ""),
            ("name xyz", "yz\n"),
            ("same 0x20", "0x20\n"),
            ("first A", "65\n"),
            ("sum 2 3 4", "7\n"),
            ("--sig 'i64(i32)' negative 1", "4294967295\n"),
        ] {
            let ran = call(line).ok();
            assert_eq!((ran.out.as_str(), ran.err.as_str()), (out, ""), "{flags}: {line}");
        }
        call("negative").fails(2, &["negative takes 1 argument (i32), 0 given"]);
        call("negative 1 2").fails(2, &["negative takes 1 argument (i32), 2 given"]);
        call("sum").fails(2, &["sum takes at least 1 argument (i32), 0 given"]);
        call("negative 4294967296").fails(2, &["argument 1", "out of range"]);
        call("half x").fails(2, &["'x' is no f64"]);
        call("pair 1").fails(2, &["pair returns struct two"]);
        call("longer").fails(2, &["longer returns long double"]);
        call("of 1").fails(2, &["argument 1 of of is of type struct two"]);
    }
    // Without debug information the width of the result is anybody's guess, and says so.
    d.sh("$RF cc -O2 t.c -o t.rf").ok();
    let pointer = d.rf(&["call", "t.rf", "name", "xyz"]).ok().out;
    assert!(pointer.starts_with("0x"), "{pointer}");
    let ran = d.rf(&["call", "t.rf", "negative", "1"]).ok();
    assert_eq!(ran.out, "4294967295\n");
    assert!(
        ran.err.contains("as a 32-bit int this is -1") && ran.err.contains("--sig"),
        "{}",
        ran.err
    );
}

/// A weak function is bound to another module of the domain, beside imports that are not weak, whether it is declared an import or not;
/// one that nobody gives and that is not declared is 0.
#[test]
fn weak_symbols_across_modules() {
    let d = Dir::new();
    d.write(
        "a.c",
        "extern int maybe(int) __attribute__((weak));\nextern int sure(int);\n\
         static int (*table[2])(int) = { maybe, sure };\n\
         int has(void) { return maybe != 0; }\nint direct(int x) { return maybe ? maybe(x) : -1; }\n\
         int indirect(int i) { return table[i] ? table[i](1) : -2; }\n",
    );
    d.write("maybe.c", "int maybe(int x) { return x + 10; }\n");
    d.write("sure.c", "int sure(int x) { return x + 100; }\n");
    let with = |modules: &str, function: &str| d.sh(&format!("$RF call {modules} a.rf {function}")).ok().out;
    let call = |function: &str| with("--module sure.rf --module maybe.rf", function);
    for module in ["maybe", "sure"] {
        d.rf(&[
            "cc",
            "-O2",
            "-shared",
            &format!("{module}.c"),
            "-o",
            &format!("{module}.rf"),
        ])
        .ok();
    }
    d.sh("timeout 60 $RF cc -O2 -shared --import=sure,maybe a.c -o a.rf")
        .ok();
    assert_eq!(call("'has'"), "1\n");
    assert_eq!(call("direct 5"), "15\n");
    assert_eq!(call("indirect 0"), "11\n");
    assert_eq!(call("indirect 1"), "101\n");
    d.sh("timeout 60 $RF cc -O2 -shared --import=sure a.c -o a.rf")
        .ok();
    assert_eq!(call("'has'"), "1\n");
    assert_eq!(call("direct 5"), "15\n");
    assert_eq!(call("indirect 0"), "11\n");
    let alone = |function: &str| with("--module sure.rf", function);
    assert_eq!(alone("'has'"), "0\n");
    assert_eq!(alone("direct 5"), "4294967295\n");
    assert_eq!(alone("indirect 0"), "4294967294\n");
    assert_eq!(alone("indirect 1"), "101\n");
}

#[test]
fn kept_files_lie_beside_the_object() {
    let d = Dir::new();
    d.write("add.c", ADD);
    d.sh("mkdir obj; $RF cc -save-temps=obj -c add.c -o obj/x.o").ok();
    assert!(d.exists("obj/x.gcc.s") && d.exists("obj/x.rf.s") && !d.exists("add.gcc.s"));
}

/// gcc repeats a string in a comment of the debug information, line breaks included.
#[test]
fn debug_information_of_strings_with_line_breaks() {
    let d = Dir::new();
    d.write(
        "s.c",
        "static const char usage[] = \"usage: x\\n\\t-a \\\"b\\\"\\n\\\"\\n.text\\n\";\nint f(void) { return usage[3]; }\n",
    );
    d.rf(&["cc", "-g", "-O2", "s.c", "-o", "s.rf"]).ok();
    assert_eq!(d.rf(&["call", "s.rf", "f"]).ok().out, "103\n");
}

/// A function that ends at a label, in front of one without padding; and a section that is named twice.
#[test]
fn what_follows_the_last_instruction() {
    let d = Dir::new();
    d.write(
        "u.c",
        "#define IN __attribute__((section(\"text_env\")))\nextern void g(int *);\nIN int a(int *p) { return *p; }\nint data = 5;\n\
         int u(int x) { int y = x; switch (x) { case 1: g(&y); return y; case 2: g(&x); return x; } __builtin_unreachable(); }\n\
         IN int b(int *p) { return *p + data; }\nvoid g(int *p) { *p += 1; }\n",
    );
    for level in ["-O0", "-O1", "-Os", "-O2"] {
        d.rf(&["cc", level, "u.c", "-o", "u.rf"]).ok();
        assert_eq!(d.rf(&["call", "u.rf", "u", "2"]).ok().out, "3\n");
    }
}

#[test]
fn the_time_stamp_counter_is_refused_with_the_option_that_helps() {
    let d = Dir::new();
    d.write(
        "t.c",
        "unsigned long f(void) { return __builtin_ia32_rdtsc(); }\n",
    );
    d.rf(&["cc", "-O1", "-c", "t.c"])
        .fails(1, &["t.c:1", "--rdtsc=clock"]);
    d.rf(&["cc", "-O1", "--rdtsc=clock", "-c", "t.c"]).ok();
    d.rf(&["cc", "-O1", "--rdtsc=fast", "-c", "t.c"])
        .fails(1, &["--rdtsc cannot be 'fast'"]);
}
