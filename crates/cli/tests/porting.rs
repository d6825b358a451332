//! What the builds of projects that nobody here has seen ask for, with the C library: each of these stopped a port once.

mod common;

use common::{Dir, Ran};

const SYSROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");

/// Runs a shell script with the sysroot.
#[track_caller]
fn sh(d: &Dir, script: &str) -> Ran {
    assert!(
        std::path::Path::new(SYSROOT).join("lib/libc.a").exists(),
        "no libc in build/sysroot: run sysroot/build.sh first"
    );
    d.sh(&format!("export RINGFENCE_SYSROOT={SYSROOT}; {script}"))
}

/// Compiles and runs a program like one that was started natively.
#[track_caller]
fn run(d: &Dir, flags: &str, source: &str) -> Ran {
    d.write("p.c", source);
    sh(d, &format!("$RF cc -O1 -g {flags} p.c --wrapper -o p; ./p"))
}

/// `libgtest_main.a` and its like.
#[test]
fn a_main_in_an_archive_makes_a_program() {
    let d = Dir::new();
    d.write("m.c", "int real(void);\nint main(void) { return real(); }\n");
    d.write("r.c", "int real(void) { return 7; }\n");
    sh(
        &d,
        "$RF cc -c m.c r.c; ar rcs libm_main.a m.o; $RF cc r.o -L. -lm_main -o p.rf; $RF run p.rf",
    )
    .fails(7, &[]);
    sh(&d, "$RF cc -shared r.o libm_main.a -o l.rf; $RF run l.rf").fails(125, &["not a program"]);
}

/// The libc's own hand-written objects are not to blame for what somebody else's do.
#[test]
fn the_sysroot_is_no_stranger() {
    let d = Dir::new();
    d.write("m.c", "#include <string.h>\nint n(int *);\nint main(int c, char **v) { char a[99]; memset(a, c, 99); return n(&c) + a[c]; }\n");
    d.write("n.c", "int n(int *p) { return *p; }\n");
    let ran = sh(&d, "gcc -O2 -c n.c; $RF cc m.c n.o -o p.rf").fails(1, &["not built by ringfence cc: n.o"]);
    assert!(!ran.err.contains("libc.a"), "{}", ran.err);
}

/// What a program was linked with is named where it is missing, and found by its wrapper.
#[test]
fn modules_that_a_program_was_linked_with() {
    let d = Dir::new();
    d.write(
        "l.c",
        "int below(void);\nint quant(int x) { return x + below(); }\n",
    );
    d.write("b.c", "int below(void) { return 4; }\n");
    d.write("m.c", "int quant(int);\nint main(void) { return quant(3); }\n");
    sh(
        &d,
        "mkdir lib; $RF cc -shared b.c -o lib/libbelow.so; $RF cc -shared l.c lib/libbelow.so -o lib/libq.so\n\
         $RF cc m.c -Llib -lq --wrapper -o p; ! cd / || $OLDPWD/p",
    )
    .fails(7, &[]);
    sh(&d, "$RF run p.rf").fails(
        125,
        &["needs quant, which nobody gives", "libq.so has it", "--module="],
    );
}

/// Where the distribution's headers are not.
#[test]
fn questions_about_the_target() {
    let d = Dir::new();
    assert_eq!(sh(&d, "$RF cc -dumpmachine").ok().out, "x86_64-linux-musl\n");
    assert_eq!(sh(&d, "$RF cc -print-multiarch").ok().out, "\n");
}

#[test]
fn instructions_that_ask_the_processor() {
    let d = Dir::new();
    let source = r#"
#include <cpuid.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <emmintrin.h>
static void ask(unsigned leaf, unsigned *a, unsigned *b, unsigned *c, unsigned *d)
{
	__asm__ volatile("cpuid" : "=a"(*a), "=b"(*b), "=c"(*c), "=d"(*d) : "0"(leaf), "2"(0));
}
static __attribute__((noinline)) uint64_t tick(void)
{
	unsigned lo, hi;
	__asm__ volatile(".byte 0x0f, 0x31" : "=a"(lo), "=d"(hi));
	return (uint64_t)hi << 32 | lo;
}
int main(void)
{
	unsigned a, b, c, d, e[4], lo, hi;
	char name[13] = "";
	ask(0, &a, &b, &c, &d);
	memcpy(name, &b, 4), memcpy(name + 4, &d, 4), memcpy(name + 8, &c, 4);
	printf("%s\n", name);
	ask(1, &a, &b, &c, &d);
	__get_cpuid(1, &e[0], &e[1], &e[2], &e[3]);
	if (c != e[2] || d != e[3] || !(d & bit_SSE2)) return 1;
	__asm__ volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(lo), "=d"(hi) : "c"(0));
	if (lo != (c & bit_AVX ? 7u : 3u) || hi) return 2;
	/* what the instruction leaves alone stays: vectors, and locals below the stack pointer */
	volatile double x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	double y[8];
	for (int i = 0; i < 8; i++) y[i] = x[i] * 3;
	uint64_t t = tick(), u;
	for (int i = 0; i < 8; i++) if (y[i] != x[i] * 3) return 3;
	do u = __builtin_ia32_rdtsc(); while (u == t);
	if (u < t) return 4;
	__m128i k = _mm_set1_epi8(3);
	__asm__ volatile(".byte 0x66,0x0f,0xfc,0xc9" : "+x"(k) : : "xmm1"); /* paddb %xmm1, %xmm1 */
	return 0;
}
"#;
    for level in ["-O0", "-O2", "-O3 -mavx2"] {
        assert_eq!(
            run(&d, &format!("{level} --rdtsc=clock"), source).ok().out,
            "RingfenceDom\n"
        );
    }
    // Without a clock it is a trap, as where a process may not use the instruction.
    sh(&d, "$RF run --no-clocks p.rf").fails(139, &["__rf_clock"]);
}

/// Handlers run where the program sends itself a signal, and at system calls; the alarm ends what waits.
#[test]
fn signals_of_ones_own() {
    let d = Dir::new();
    let source = r#"
#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
static volatile int got[65];
static sigjmp_buf away;
static void count(int s) { got[s]++; }
static void info(int s, siginfo_t *i, void *c) { got[s] += i->si_signo == s && c; }
static void leave(int s) { siglongjmp(away, s); }
static void last(int s) { _exit(got[SIGUSR1] == 3 ? 9 : 1); }
int main(void)
{
	struct sigaction a = {.sa_handler = count}, old;
	sigset_t set;
	if (sigaction(SIGUSR1, &a, 0) || sigaction(SIGSEGV, &a, 0) || sigaction(SIGUSR1, 0, &old) || old.sa_handler != count) return 10;
	if (raise(SIGUSR1) || got[SIGUSR1] != 1) return 11;
	sigemptyset(&set), sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, 0);
	kill(getpid(), SIGUSR1);
	if (got[SIGUSR1] != 1 || sigpending(&set) || !sigismember(&set, SIGUSR1)) return 12;
	sigprocmask(SIG_UNBLOCK, &set, 0);
	if (got[SIGUSR1] != 2) return 13;
	a.sa_flags = SA_SIGINFO | SA_RESETHAND, a.sa_sigaction = info;
	sigaction(SIGUSR2, &a, 0);
	raise(SIGUSR2);
	sigaction(SIGUSR2, 0, &old);
	if (got[SIGUSR2] != 1 || old.sa_handler != SIG_DFL) return 14;
	/* the alarm ends a sleep, a wait for input, and a pause */
	signal(SIGALRM, count);
	struct itimerval t = {.it_value = {0, 20000}}, rest;
	setitimer(ITIMER_REAL, &t, 0);
	if (getitimer(ITIMER_REAL, &rest) || rest.it_value.tv_usec > 20000 || !rest.it_value.tv_usec) return 15;
	struct timespec hour = {3600, 0}, left;
	if (nanosleep(&hour, &left) != -1 || errno != EINTR || got[SIGALRM] != 1 || left.tv_sec < 3500) return 16;
	struct sigaction no_restart = {.sa_handler = count};
	sigaction(SIGALRM, &no_restart, 0);
	int p[2];
	char c;
	pipe(p);
	setitimer(ITIMER_REAL, &t, 0);
	if (read(p[0], &c, 1) != -1 || errno != EINTR || got[SIGALRM] != 2) return 17;
	setitimer(ITIMER_REAL, &t, 0);
	struct pollfd f = {.fd = p[0], .events = POLLIN};
	if (poll(&f, 1, -1) != -1 || errno != EINTR || got[SIGALRM] != 3) return 18;
	setitimer(ITIMER_REAL, &t, 0);
	if (pause() != -1 || got[SIGALRM] != 4) return 19;
	t.it_interval.tv_usec = 1000;
	setitimer(ITIMER_REAL, &t, 0);
	while (got[SIGALRM] < 7) { struct timespec n; clock_gettime(CLOCK_MONOTONIC, &n); }
	alarm(0);
	int now = got[SIGALRM];
	usleep(5000);
	if (got[SIGALRM] != now) return 20;
	signal(SIGALRM, leave);
	int s = sigsetjmp(away, 1);
	if (s == 0) { t.it_interval.tv_usec = 0; setitimer(ITIMER_REAL, &t, 0); sleep(3600); return 21; }
	if (s != SIGALRM) return 22;
	/* a pipe that nobody reads */
	signal(SIGPIPE, count);
	close(p[0]);
	if (write(p[1], "x", 1) != -1 || errno != EPIPE || got[SIGPIPE] != 1) return 23;
	/* processes are refused by an errno that nobody takes for a shortage */
	errno = 0;
	if (popen("true", "r") || errno != EPERM || system(0) || system("true") != -1 || errno != EPERM) return 24;
	raise(SIGUSR1);
	signal(SIGABRT, last);
	abort();
}
"#;
    run(&d, "", source).fails(9, &[]);
    // What is done without a handler: it ends.
    let source = "#include <unistd.h>\n#include <time.h>\nint main(void) { alarm(1); for (;;) pause(); }\n";
    let script = "python3 -c 'import subprocess; print(subprocess.run([\"./p\"], stderr=subprocess.DEVNULL).returncode)'";
    d.write("p.c", source);
    let ran = sh(&d, &format!("$RF cc -O1 p.c --wrapper -o p; {script}"));
    assert_eq!(ran.ok().out, "-14\n");
}

/// The one-line recipes of docs/porting.md, each on a small project with a library, a program and a test.
fn project(d: &Dir) {
    d.write("src/lib.c", "int twice(int x) { return 2 * x; }\n");
    d.write(
        "src/main.c",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint twice(int);\n\
         int main(int c, char **v) { if (c > 1 && !getenv(\"HOME\")) return 3;\n\
         FILE *f = fopen(\"data\", \"r\"); char t[9] = \"\"; if (f && !fgets(t, 9, f)) return 4;\n\
         printf(\"%d %s\\n\", twice(21), t); return strcmp(t, \"here\") != 0; }\n",
    );
    d.write("src/t/data", "here");
}

/// A script in which `ringfence` is a command.
#[track_caller]
fn with_tools(d: &Dir, tools: &[&str], script: &str) -> Option<Ran> {
    for tool in tools {
        if !d.sh(&format!("command -v {tool}")).out.contains('/') {
            assert!(
                std::env::var("CI").is_ok_and(|v| v == "true").eq(&false),
                "{tool} is not here: scripts/setup.sh test installs it"
            );
            eprintln!("skipped: {tool} is not here");
            return None;
        }
    }
    let path =
        "mkdir -p bin; ln -sf $RF bin/ringfence; ln -sf $RF bin/ringfence-cc; export PATH=$PWD/bin:$PATH";
    Some(sh(d, &format!("{path}; {script}")))
}

#[test]
fn the_recipe_for_cmake() {
    let d = Dir::new();
    project(&d);
    d.write(
        "src/CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.13)\nproject(p C CXX)\nadd_library(l lib.c)\nadd_executable(m main.c)\n\
         target_link_libraries(m l)\nadd_library(x STATIC x.cc)\nadd_executable(c c.c)\ntarget_link_libraries(c x)\n\
         set_target_properties(c PROPERTIES LINKER_LANGUAGE C)\ninclude(CheckCSourceRuns)\ncheck_c_source_runs(\"int main(void) { return 0; }\" RUNS)\n\
         if(NOT RUNS)\nmessage(FATAL_ERROR \"does not run\")\nendif()\nenable_testing()\n\
         include(CheckTypeSize)\ncheck_type_size(\"long double\" SIZE)\ninclude(TestBigEndian)\ntest_big_endian(BIG)\n\
         if(BIG OR NOT \"${SIZE} ${CMAKE_SIZEOF_VOID_P}\" STREQUAL \"16 8\")\nmessage(FATAL_ERROR \"sizes: ${SIZE} ${CMAKE_SIZEOF_VOID_P}\")\nendif()\n\
         add_test(NAME target COMMAND m x WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/t)\n\
         add_test(NAME emulator COMMAND ${CMAKE_CROSSCOMPILING_EMULATOR} m)\n\
         set_tests_properties(emulator PROPERTIES PASS_REGULAR_EXPRESSION \"^42 \")\n\
         add_test(NAME file COMMAND sh -c \"cd ${CMAKE_SOURCE_DIR}/t && $<TARGET_FILE:m> x | grep '^42 here$'\")\n",
    );
    d.write("src/x.cc", "extern \"C\" int *x(void) { return new int(7); }\n");
    d.write("src/c.c", "int *x(void);\nint main(void) { return *x() - 7; }\n");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../share/ringfence.cmake");
    for shared in ["OFF", "ON"] {
        let script = format!(
            "rm -rf b; cmake -S src -B b -DCMAKE_TOOLCHAIN_FILE={file} -DBUILD_SHARED_LIBS={shared} >log && make -C b >>log && \
             cd b && ctest 2>&1"
        );
        let Some(ran) = with_tools(&d, &["cmake"], &script) else {
            return;
        };
        assert!(ran.ok().out.contains("100% tests passed"), "{shared}");
    }
}

#[test]
fn the_recipe_for_meson() {
    let d = Dir::new();
    project(&d);
    d.write(
        "src/meson.build",
        "project('p', 'c')\nl = library('l', 'lib.c')\nm = executable('m', 'main.c', link_with: l)\n\
         r = meson.get_compiler('c').run('int main(void) { return 5; }')\nassert(r.returncode() == 5)\n\
         test('t', m, args: ['x'], workdir: meson.current_source_dir() / 't')\n",
    );
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../share/ringfence.meson");
    let script = format!("meson setup b src --cross-file {file} && meson test -C b");
    let Some(ran) = with_tools(&d, &["meson", "ninja"], &script) else {
        return;
    };
    let out = ran.ok().out;
    assert!(out.contains("Ok:                 1"), "{out}");
}

#[test]
fn the_recipe_for_autoconf() {
    let d = Dir::new();
    project(&d);
    d.write(
        "src/configure.ac",
        "AC_INIT([p], [1])\nAC_PROG_CC\nAC_CHECK_FUNCS([rawmemchr fpurge clone no_such_function])\nAC_CHECK_DECLS([rawmemchr], [], [], [#define _GNU_SOURCE\n#include <string.h>])\n\
         AC_RUN_IFELSE([AC_LANG_PROGRAM], [r=ran], [r=not], [r=crossing])\nAC_MSG_NOTICE([r is $r])\nAC_CONFIG_FILES([Makefile])\nAC_OUTPUT\n",
    );
    d.write(
        "src/Makefile.in",
        "CC = @CC@\nm: main.o lib.o\n\t@CC@ @CFLAGS@ -o m main.o lib.o\nclean:\n\trm -f m *.o\ncheck: m\n\tcd t && HOME=/x ../m x | grep '^42 here$$'\n",
    );
    for (host, answer) in [
        ("", "r is ran"),
        (
            "--build=x86_64-pc-linux-gnu --host=x86_64-linux-musl",
            "r is crossing",
        ),
    ] {
        let script = format!(
            "cd src; autoconf && ./configure CC='ringfence cc --wrapper' {host} && make -s clean check"
        );
        let Some(ran) = with_tools(&d, &["autoconf"], &script) else {
            return;
        };
        let out = ran.ok().out;
        for line in [
            answer,
            "checking for rawmemchr... yes",
            "checking whether rawmemchr is declared... yes",
            "checking for no_such_function... no",
            "42 here",
        ] {
            assert!(out.contains(line), "{line}\n{out}");
        }
    }
}

/// What the GNU C library's headers declare by `_GNU_SOURCE`, which g++ defines; and headers of the kernel's.
#[test]
fn headers_of_gnu_and_of_the_kernel() {
    let d = Dir::new();
    d.write(
        "p.cc",
        "#include <cstdio>\n#include <sys/soundcard.h>\n#include <linux/limits.h>\n#include <linux/fs.h>\n#include <asm/types.h>\n\
         #include <asm/ioctls.h>\n#include <sys/kd.h>\nstatic_assert(BUFSIZ == 8192);\n\
         int main(int, char **v)\n{\n\tFILE *f = fopen64(v[0], \"r\");\n\treturn fseeko64(f, 0, SEEK_END) || ftello64(f) < 10 || !FIGETBSZ;\n}\n",
    );
    sh(&d, "$RF c++ -std=c++17 --wrapper p.cc -o p && ./p").ok();
}

/// gnulib loads the control word of the x87 unit that is there already, around what it computes with `long double`.
#[test]
fn a_control_word_that_is_there_already() {
    let d = Dir::new();
    let source = r#"
static long double scale(long double x, unsigned short flip)
{
	unsigned short old, new;
	__asm__ volatile("fnstcw %0" : "=m"(old));
	new = ((old & ~0x300) | 0x300) ^ flip;
	__asm__ volatile("fldcw %0" : : "m"(*&new));
	x *= 3;
	__asm__ volatile("fldcw %0" : : "m"(*&old));
	return x;
}
int main(int argc, char **argv)
{
	return (int)scale(argc, argc > 1 ? 0x400 : 0);
}
"#;
    run(&d, "", source).fails(3, &[]);
    sh(&d, "$RF run p.rf down").fails(139, &[]);
}

/// Random numbers by the names that the GNU C library has for them since 2.36.
#[test]
fn random_numbers_of_the_system() {
    let d = Dir::new();
    let source = r#"
#include <stdlib.h>
#include <string.h>
int main(void)
{
	unsigned char a[600], seen[5] = {0};
	memset(a, 0, sizeof a);
	arc4random_buf(a, sizeof a);
	for (int i = 0; i < 600; i += 50) if (!memcmp(a + i, (char[50]){0}, 50)) return 1;
	for (int i = 0; i < 400; i++) seen[arc4random_uniform(5)]++;
	for (int i = 0; i < 5; i++) if (!seen[i]) return 2;
	return arc4random_uniform(1) || arc4random_uniform(0) || arc4random() == arc4random();
}
"#;
    run(&d, "-D_GNU_SOURCE", source).ok();
    sh(&d, "$RF run --no-randomness p.rf").fails(134, &[]);
}

/// There are no locales of other encodings than UTF-8, and programs that look for one are told so.
#[test]
fn locales_of_other_encodings_are_not_there() {
    let d = Dir::new();
    let source = r#"
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
	const char *names[] = {"en_US.ISO-8859-1", "ja_JP.eucJP", "en_US.UTF-8", "de_DE.utf8", "C", "C.UTF-8", "POSIX", ""};
	for (int i = 0; i < 8; i++) printf("%d", setlocale(LC_ALL, names[i]) != 0);
	setenv("LC_ALL", "ja_JP.eucJP", 1);
	locale_t l = newlocale(LC_ALL_MASK, "", 0);
	printf(" %s", setlocale(LC_CTYPE, ""));
	printf(" %d %d\n", MB_CUR_MAX > 1, l != 0);
	return newlocale(LC_ALL_MASK, "de_DE.ISO8859-15", 0) != 0;
}
"#;
    assert_eq!(run(&d, "", source).ok().out, "00111111 C.UTF-8 1 1\n");
}

/// Standard streams that are files are files, and a file stays whose it is.
#[test]
fn streams_that_are_files() {
    let d = Dir::new();
    let source = r#"
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
	struct stat in, out;
	char line[4] = "";
	if (fstat(0, &in) || fstat(1, &out) || !S_ISREG(in.st_mode) || !S_ISREG(out.st_mode) || in.st_size != 9) return 1;
	if (read(0, line, 3) != 3 || lseek(0, 0, SEEK_CUR) != 6 || pread(0, line, 3, 0) != 3 || line[0] != 'a') return 2;
	char *map = mmap(0, 9, PROT_READ, MAP_PRIVATE, 0, 0);
	if (map == MAP_FAILED || map[8] != '\n' || ftruncate(0, 0) == 0) return 3;
	if (write(1, "xyz", 3) != 3 || lseek(1, 0, SEEK_CUR) != 6) return 4;
	if (fchown(1, out.st_uid, out.st_gid) || chown("in", -1, -1) || lchown("in", in.st_uid, -1)) return 5;
	if (!fchown(1, out.st_uid + 1, -1) || !chown("in", in.st_uid, in.st_gid + 1)) return 6;
	return 0;
}
"#;
    d.write("p.c", source);
    sh(
        &d,
        "$RF cc -O1 p.c --wrapper -o p && printf 'ab\ncd\nef\n' >in && { head -c3 >/dev/null; echo pq; ./p; s=$?; cat >&2; exit $s; } <in >out; s=$?; cat out; exit $s",
    )
    .ok();
    assert_eq!(std::fs::read_to_string(d.path().join("out")).unwrap(), "pq\nxyz");
}

/// As ld takes the shared library of a name: where the archive of the name lacks something that the module has.
#[test]
fn a_module_in_place_of_an_archive_that_lacks_something() {
    let d = Dir::new();
    d.write("a.c", "int count;\nint one(void) { return ++count; }\n");
    d.write("b.c", "int one(void);\nint two(void) { return one() + 1; }\n");
    d.write(
        "m.c",
        "int one(void);\nint two(void);\nint main(void) { return one() * 10 + two(); }\n",
    );
    sh(
        &d,
        "$RF cc -c a.c b.c && ar rcs libn.a a.o && $RF cc -shared a.o b.o -o libn.so && $RF cc m.c -L. -ln --wrapper -o p && ./p",
    )
    .fails(13, &[]);
    sh(&d, "rm libn.so; $RF cc m.c -L. -ln --wrapper -o p").fails(1, &["two"]);
}

/// What a `build.rs` with the `cc` crate leaves becomes a module.
#[test]
fn the_recipe_for_the_cc_crate() {
    let d = Dir::new();
    d.write(
        "lib.c",
        "#include <string.h>\nint longest(const char *s) { return (int)strlen(s); }\n",
    );
    sh(&d, "ln -s $RF ringfence-cc").ok();
    let compiler = d.path().join("ringfence-cc");
    cc::Build::new()
        .compiler(&compiler)
        .env("RINGFENCE_SYSROOT", SYSROOT)
        .archiver("ar")
        .target("x86_64-unknown-linux-gnu")
        .host("x86_64-unknown-linux-gnu")
        .opt_level(2)
        .debug(true)
        .out_dir(d.path())
        .cargo_metadata(false)
        .cargo_warnings(false)
        .file(d.path().join("lib.c"))
        .compile("longest");
    let link = "$RF cc -shared -Wl,--whole-archive liblongest.a -Wl,--no-whole-archive -o l.rf; $RF call l.rf longest abcd";
    assert_eq!(sh(&d, link).ok().out, "4\n");
}
