//! What makefiles, configure scripts and build systems ask of a compiler, one table row for each: it works, or one clear
//! message says why not. Never silently something else.

mod common;

use common::Dir;

/// A command line behind `ringfence cc`, run where `a.c` defines `add` and `b.c` uses it.
enum Expect {
    /// It links a module in which `use(1)` is 42.
    Works,
    /// As before, and the note is printed.
    Notes(&'static str),
    /// It fails, and says this.
    Says(&'static [&'static str]),
}
use Expect::{Notes, Says, Works};

const LINES: &[(&str, Expect)] = &[
    ("-O2 -static a.c b.c", Works),
    ("-O2 -pie -fPIE a.c b.c", Works),
    ("-O2 -no-pie -fno-pic -fno-PIE a.c b.c", Works),
    ("-O2 -shared -fpic a.c b.c", Works),
    ("-O2 -pthread -rdynamic a.c b.c -lpthread -lm -ldl -lrt", Works),
    ("-O2 -fcf-protection=none a.c b.c", Works),
    ("-O2 -fcf-protection=full -mshstk a.c b.c", Works),
    (
        "-O2 -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=2 a.c b.c",
        Works,
    ),
    (
        "-O2 -fno-asynchronous-unwind-tables -fno-unwind-tables a.c b.c",
        Works,
    ),
    ("-O3 -march=native a.c b.c", Works),
    ("-O3 -march=x86-64-v4 -mprefer-vector-width=512 a.c b.c", Works),
    ("-O3 -mavx512f -mavx512vl a.c b.c", Works),
    ("-O3 -march=sapphirerapids a.c b.c", Works),
    ("-O3 -mavxvnni a.c b.c", Works),
    ("-O2 -mno-sse a.c b.c", Works),
    ("-O2 -mno-red-zone -fomit-frame-pointer a.c b.c", Works),
    ("-O2 -fuse-ld=gold a.c b.c", Works),
    ("-O2 -mcmodel=small a.c b.c", Works),
    ("-O2 -g3 -gdwarf-5 -gz a.c b.c", Works),
    ("-Og -ggdb3 a.c b.c -s", Works),
    (
        "-O2 -ffunction-sections -fdata-sections a.c b.c -Wl,--gc-sections",
        Works,
    ),
    (
        "-O2 a.c b.c -Wl,-O1,--as-needed,-z,relro,-z,now,-soname,libx.so.1",
        Works,
    ),
    (
        "-O2 -fsanitize=undefined -fsanitize-undefined-trap-on-error a.c b.c",
        Works,
    ),
    ("-O2 -fopenmp-simd a.c b.c", Works),
    ("-O2 -fprofile-use -Wno-missing-profile a.c b.c", Works),
    ("-pipe -O2 -fpatchable-function-entry=2 a.c b.c", Works),
    ("@args", Works),
    (
        "-O2 -I'dir with space' 'dir with space/a \"quoted\".c' b.c",
        Works,
    ),
    ("-O2 b.c -L. -lone -ltwo", Works),
    ("-O2 b.c -L. -l:libone.a -ltwo", Works),
    ("-O2 b.c libsame.a", Works),
    (
        "-O2 b.c -Wl,--start-group libtwo.a libone.a -Wl,--end-group",
        Works,
    ),
    ("-O2 a.c -x c b.txt -x none", Works),
    ("-O2 a.c -xc - < b.c", Works),
    ("-O2 -include a.c -x c b.c", Works),
    ("-O2 -flto -ffat-lto-objects a.c b.c", Notes("-flto is not used")),
    ("-O2 -gsplit-dwarf a.c b.c", Notes("-gsplit-dwarf is not used")),
    ("-O2 -o first.rf a.c b.c", Works),
    ("-O2 -pg a.c b.c", Says(&["-pg cannot be used", "perf"])),
    ("-O2 --coverage a.c b.c", Says(&["--coverage cannot be used"])),
    (
        "-fprofile-generate a.c b.c",
        Says(&["-fprofile-generate cannot be used"]),
    ),
    (
        "-fsanitize=address a.c b.c",
        Says(&["-fsanitize=address cannot be used", "run-time library"]),
    ),
    ("-fopenmp a.c b.c", Says(&["-fopenmp cannot be used", "threads"])),
    ("-mcmodel=large a.c b.c", Says(&["-mcmodel=large cannot be used"])),
    ("-m32 a.c b.c", Says(&["-m32 cannot be used", "64-bit"])),
    ("-mabi=ms a.c b.c", Says(&["-mabi=ms cannot be used", "System V"])),
    (
        "-mfunction-return=thunk a.c b.c",
        Says(&["-mfunction-return=thunk cannot be used", "return address"]),
    ),
    (
        "-mindirect-branch=thunk a.c b.c",
        Says(&["-mindirect-branch=thunk cannot be used"]),
    ),
    (
        "-finstrument-functions a.c b.c",
        Says(&["-finstrument-functions cannot be used"]),
    ),
    (
        "-masm=intel a.c b.c",
        Says(&["-masm=intel cannot be used", "AT&T"]),
    ),
    (
        "-c a.c b.c",
        Says(&["-o cannot name one output for several inputs"]),
    ),
    ("-O2 b.c -L. -ltwo", Says(&["undefined symbol 'add'", "b.c"])),
    (
        "-O2 a.c b.c -lnowhere",
        Says(&["cannot find -lnowhere", "looked in"]),
    ),
    ("-O2 nowhere.c", Says(&["nowhere.c", "No such file"])),
    ("-O2 nowhere.o", Says(&["nowhere.o", "No such file"])),
    ("-O2 a.f90", Says(&["a.f90", "Fortran"])),
    ("-x fortran a.f90", Says(&["-x fortran is not supported"])),
    ("-O2 plain.o b.c", Says(&["verifier rejects", "plain.o"])),
    ("-march=nonsense a.c b.c", Says(&["nonsense"])),
    ("-fnonsense a.c b.c", Says(&["-fnonsense"])),
];

#[test]
fn command_lines() {
    let d = Dir::new();
    let a = "int add(int a, int b) { return a + b; }\n\
             int dot(const unsigned char *a, const signed char *b, int n)\n\
             { int s = 0; for (int i = 0; i < n; i++) s += a[i] * b[i]; return s; }\n\
             float total(const float *a, int n) { float s = 0; for (int i = 0; i < n; i++) s += a[i] * a[i]; return s; }\n";
    let b = "int add(int, int);\nint use(int x) { int (*volatile f)(int, int) = add; return f(x, 41); }\n";
    d.write("a.c", a);
    d.write("dir with space/a \"quoted\".c", a);
    d.write("b.c", b);
    d.write("b.txt", b);
    d.write("a.f90", "end\n");
    d.write("args", "-O2 -DX='\"a b\"'\n\"a.c\" b.c @more");
    d.write("more", "-Wall\n");
    // libone: add, but by way of libtwo. libsame: two members of one name.
    d.write(
        "one.c",
        "int two(int, int);\nint add(int a, int b) { return two(a, b); }\n",
    );
    d.write("two.c", "int two(int a, int b) { return a + b; }\n");
    d.sh(
        "$RF cc -O2 -c one.c two.c; ar rc libone.a one.o; ranlib libone.a; ar rcs libtwo.a two.o\n\
         mkdir x y; $RF cc -O2 -c one.c -o x/m.o; $RF cc -O2 -c two.c -o y/m.o; ar qcs libsame.a x/m.o y/m.o\n\
         gcc -O2 -c a.c -o plain.o",
    )
    .ok();
    for (line, expect) in LINES {
        let output = if line.contains("-o ") { "" } else { "-o first.rf" };
        let ran = d.sh(&format!("rm -f first.rf; $RF cc {output} {line}"));
        match expect {
            Says(parts) => {
                let ran = ran.fails(1, parts);
                assert!(ran.err.contains("ringfence: error:"), "{line}: {}", ran.err);
                assert!(!d.exists("first.rf"), "{line}: wrote a module all the same");
                continue;
            }
            Works => assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{line}"),
            Notes(note) => assert!(ran.status == 0 && ran.err.contains(note), "{line}: {}", ran.err),
        }
        let called = d.rf(&["call", "--sig", "i32(i32)", "first.rf", "use", "1"]);
        assert_eq!(called.out, "42\n", "{line}: {}", called.err);
    }
}

#[test]
fn questions_have_gccs_answers() {
    let d = Dir::new();
    d.write("a.c", "#include \"a.h\"\nint a(void) { return A; }\n");
    d.write("a.h", "#define A 3\n");
    let questions = [
        "-dumpmachine",
        "-dumpversion",
        "-dumpfullversion",
        "-dumpspecs",
        "-print-multiarch",
        "-print-multi-os-directory",
        "-print-search-dirs",
        "-print-prog-name=ld",
        "-print-sysroot",
        "-Wl,--version",
        "--help=warnings",
        "-M a.c | sed 's/ .*a.h/ a.h/'",
        "-MM a.c",
        "-MM -MT x.o a.c",
        "-MM -MG -MP a.c",
        "-E -P a.c",
        "-E -x c - < a.c | grep -v '^#'",
        "-fsyntax-only a.c",
    ];
    for question in questions {
        let ours = d.sh(&format!("$RF cc {question}")).ok().out;
        let theirs = d.sh(&format!("gcc {question}")).ok().out;
        assert_eq!(ours, theirs, "{question}");
    }
}

#[test]
fn dependency_files_are_gccs() {
    let d = Dir::new();
    d.write("src/a.c", "#include \"a.h\"\nint a(void) { return A; }\n");
    d.write("src/a.h", "#define A 3\n");
    let lines = [
        "-MMD -c src/a.c -o obj/a.o",
        "-MMD -MP -c src/a.c -o obj/a.lo",
        "-MMD -MF obj/dep -c src/a.c -o obj/a.o",
        "-MMD -MF obj/dep -MT 'x y' -MQ 'x$y' -c src/a.c -o obj/a.o",
        "-MMD -MFobj/dep -MTq -c src/a.c",
        "-Wp,-MMD,obj/dep -c src/a.c -o obj/a.o",
        "-Wp,-MMD,obj/dep,-MT,z -c src/a.c -o obj/a.o",
        "-MMD -S src/a.c -o obj/a.s",
        "-MMD -c src/a.c -o 'obj/with space.o'",
        "-MMD -MP -c -x c src/a.c -o obj/a.x.o",
        "-MMD -c src/a.c",
    ];
    for line in lines {
        let list = "find . -name 'a.*d' -o -name dep -o -name '*.d' | sort; cat $(find . -name dep) /dev/null; \
                    find . -name '*.d' -print0 | sort -z | xargs -0 -r cat";
        let run = |cc: &str| {
            d.sh(&format!("rm -rf obj a.o a.d; mkdir obj; {cc} {line}; {list}"))
                .ok()
                .out
        };
        assert_eq!(run("$RF cc"), run("gcc"), "{line}");
    }
}

#[test]
fn cxx_across_objects() {
    let d = Dir::new();
    // Templates and inline variables in two objects are one; constructors run in link order; weak yields to strong.
    d.write(
        "t.h",
        "template <class T> struct Count { static T n; static T next() { return ++n; } };\n\
         template <class T> T Count<T>::n = 0;\n\
         inline int shared = 5;\ninline int &once() { static int local = 100; return local; }\n\
         extern int order;\nstruct Mark { Mark(int n) { order = order * 10 + n; } };\nint weak();\n",
    );
    d.write(
        "one.cc",
        "#include \"t.h\"\nint order = 0;\nstatic Mark m(1);\n__attribute__((weak)) int weak() { return 1; }\n\
         int one() { shared += 1; once() += 1; return Count<int>::next(); }\n",
    );
    d.write(
        "two.cc",
        "#include \"t.h\"\nstatic Mark m(2);\nint weak() { return 2; }\n\
         int two() { shared += 10; once() += 10; return Count<int>::next(); }\n",
    );
    d.write(
        "all.cc",
        "#include \"t.h\"\nint one(); int two();\nstatic Mark m(3);\n\
         extern \"C\" long all() { int a = one(), b = two(); return a * 10000000000 + b * 1000000000L + shared * 10000000L \
         + once() * 10000 + order * 10 + weak(); }\n",
    );
    d.sh(
        "for f in one two all; do $RF c++ -O1 -fno-exceptions -fno-threadsafe-statics -c $f.cc; done\n\
          $RF c++ -fno-exceptions one.o two.o all.o -o all.rf",
    )
    .ok();
    let out = d.rf(&["call", "--sig", "i64()", "all.rf", "all"]).ok().out;
    // 1, 2, 16, 111, 123, 2
    let wanted = 10_000_000_000i64 + 2_000_000_000 + 16 * 10_000_000 + 111 * 10_000 + 123 * 10 + 2;
    assert_eq!(out.trim(), wanted.to_string());
}
