//! Programs with the C library, run as a user runs them: how the bad ones end, and that the odd corners of the library work.

mod common;

use common::{Dir, Ran};

/// Compiles a program against the sysroot and runs it with `options`.
#[track_caller]
fn run(d: &Dir, options: &str, source: &str) -> Ran {
    let sysroot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");
    assert!(
        std::path::Path::new(sysroot).join("lib/libc.a").exists(),
        "no libc in build/sysroot: run sysroot/build.sh first"
    );
    d.write("p.c", source);
    d.sh(&format!(
        "$RF cc --sysroot-rf {sysroot} -O1 -g -w p.c -o p.rf -lm && $RF run {options} p.rf one two"
    ))
}

#[test]
fn abort_is_134() {
    let d = Dir::new();
    run(&d, "", "#include <stdlib.h>\nint main(void) { abort(); }\n").fails(134, &["ringfence: error:"]);
    run(
        &d,
        "",
        "#include <assert.h>\nint main(int c, char **v) { assert(c == 1); }\n",
    )
    .fails(134, &["Assertion failed: c == 1 (p.c: main: 2)"]);
    // A handler runs first; what comes back from it ends all the same.
    let source = "#include <stdlib.h>\n#include <signal.h>\nstatic void h(int s) { if (s != SIGABRT) exit(3); }\n\
                  int main(void) { if (signal(SIGABRT, h) == SIG_ERR) return 4; abort(); }\n";
    run(&d, "", source).fails(134, &[]);
}

#[test]
fn a_stack_that_overflows_in_printf_is_139() {
    let d = Dir::new();
    // Frames until there is no room for what printf needs for a long double.
    let source = "#include <stdio.h>\n\
                  static int deep(int n, long double x) { volatile char b[1000]; b[0] = n;\n\
                  \tchar t[64]; snprintf(t, sizeof t, \"%Lf\", x); return deep(n + 1, x) + b[0] + t[0]; }\n\
                  int main(int c, char **v) { return deep(0, 1e4000L * c); }\n";
    let ran = run(&d, "", source).fails(139, &["ringfence: error:", "stack"]);
    assert!(
        ran.err.contains("fmt_fp") || ran.err.contains("printf"),
        "not in printf:\n{}",
        ran.err
    );
}

#[test]
fn jumping_to_a_frame_that_is_gone_is_139() {
    let d = Dir::new();
    let source = "#include <setjmp.h>\nstatic jmp_buf b;\nstatic volatile int n;\n\
                  static __attribute__((noinline)) int set(void) { return setjmp(b); }\n\
                  int main(void) { set(); for (;;) { n++; longjmp(b, 1); } }\n";
    run(&d, "--time-limit 20s", source).fails(139, &["longjmp"]);
    // One that lives, as often as one likes.
    let source = "#include <setjmp.h>\nstatic jmp_buf b;\nstatic volatile int n;\n\
                  int main(void) { setjmp(b); if (n++ < 100000) longjmp(b, 1); return n != 100001; }\n";
    run(&d, "--time-limit 20s", source).ok();
}

#[test]
fn select_and_sockets_of_the_library() {
    let d = Dir::new();
    let source = r#"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <unistd.h>
int main(void)
{
	int p[2];
	fd_set r;
	struct timeval t = { 0, 1000 };
	pipe(p);
	FD_ZERO(&r);
	FD_SET(p[0], &r);
	if (select(p[0] + 1, &r, 0, 0, &t) != 0 || FD_ISSET(p[0], &r)) return 1;
	write(p[1], "x", 1);
	FD_SET(p[0], &r);
	if (select(p[0] + 1, &r, 0, 0, 0) != 1 || !FD_ISSET(p[0], &r)) return 2;
	struct timespec s = { 0, 1000 };
	if (pselect(p[0] + 1, &r, 0, 0, &s, 0) != 1) return 3;
	/* no network: names are denied at once and cleanly */
	struct addrinfo *a = 0;
	int e = getaddrinfo("example.org", "80", 0, &a);
	if (e == 0) return 4;
	printf("%s\n", gai_strerror(e));
	if (getaddrinfo("127.0.0.1", "80", 0, &a) != 0) return 5;
	freeaddrinfo(a);
	if (socket(AF_INET, SOCK_STREAM, 0) != -1 || errno != EACCES) return 6;
	return 0;
}
"#;
    let begin = std::time::Instant::now();
    let ran = run(&d, "", source).ok();
    assert!(!ran.out.trim().is_empty());
    assert!(begin.elapsed() < std::time::Duration::from_secs(20));
}

/// A loop of events as programs write it: what is ready, who woke it, how late it is.
#[test]
fn loops_of_events() {
    let d = Dir::new();
    let source = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
static int wake;
static void *other(void *x) { for (int i = 0; i < 3; i++) eventfd_write(wake, 1); return x; }
static void rings(int s) { (void)s; }
int main(void)
{
	int e = epoll_create1(EPOLL_CLOEXEC), t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	struct epoll_event v[4] = { { EPOLLIN | EPOLLET, { .fd = wake } }, { EPOLLIN, { .fd = t } } };
	struct itimerspec each = { { 0, 1000000 }, { 0, 1000000 } };
	if (e < 0 || t < 0 || wake < 0) return 1;
	if (epoll_ctl(e, EPOLL_CTL_ADD, wake, v) || epoll_ctl(e, EPOLL_CTL_ADD, t, v + 1)) return 2;
	if (timerfd_settime(t, 0, &each, 0)) return 3;
	pthread_t p;
	if (pthread_create(&p, 0, other, 0)) return 4;
	uint64_t woken = 0, rung = 0, n;
	while (woken < 3 || rung < 3) {
		int k = epoll_wait(e, v, 4, -1);
		if (k < 1) return 5;
		for (int i = 0; i < k; i++) {
			if (v[i].data.fd == wake && eventfd_read(wake, &n) == 0) woken += n;
			if (v[i].data.fd == t && read(t, &n, 8) == 8) rung += n;
		}
	}
	pthread_join(p, 0);
	if (woken != 3 || eventfd_read(wake, &n) != -1 || errno != EAGAIN) return 6;
	/* The alarm clock ends a wait. */
	if (epoll_ctl(e, EPOLL_CTL_DEL, t, 0)) return 7;
	signal(SIGALRM, rings);
	alarm(1);
	if (epoll_wait(e, v, 4, -1) != -1 || errno != EINTR) return 8;
	return 0;
}
"#;
    run(&d, "--threads 1 --time-limit 60s", source).ok();
}

/// Calls that move bytes and memory about, from the library.
#[test]
fn bytes_and_memory_are_moved() {
    let d = Dir::new();
    d.write("data/file", "0123456789");
    let source = r#"
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
int main(void)
{
	int from = open("/data/file", O_RDONLY), to = open("/data/copy", O_CREAT | O_RDWR, 0600);
	off_t at = 8;
	if (sendfile(to, from, 0, 100) != 10 || sendfile(to, from, &at, 100) != 2 || at != 10) return 1;
	at = 0;
	if (copy_file_range(from, &at, to, 0, 3, 0) != 3) return 2;
	char b[32] = "";
	if (pread(to, b, sizeof b, 0) != 15 || strcmp(b, "012345678989012")) return 3;
	if (sendfile(1, from, 0, 1) != -1 || errno != EINVAL) return 4;
	char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	strcpy(p + 8000, "moved");
	mprotect(p + 4096, 4096, PROT_READ);
	char *q = mremap(p + 4096, 4096, 1 << 24, MREMAP_MAYMOVE);
	if (q == MAP_FAILED || strcmp(q + 3904, "moved") || q[(1 << 24) - 1]) return 5;
	if (mremap(p, 8192, 4096, 0) != MAP_FAILED || errno != EFAULT) return 6;
	if (mremap(q, 1 << 24, 4096, MREMAP_FIXED | MREMAP_MAYMOVE, p) != MAP_FAILED || errno != EINVAL) return 7;
	return 0;
}
"#;
    run(&d, "--dir data:/data", source).ok();
}

/// The parts of the library that data files, tables or odd types stand behind; natively the same program prints the same.
#[test]
fn corners_of_the_library() {
    let d = Dir::new();
    let source = r#"
#include <iconv.h>
#include <locale.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>
int main(void)
{
	regex_t r;
	regmatch_t m[3];
	if (regcomp(&r, "([a-z]+)[0-9]{2,3}\\.(txt|c)$", REG_EXTENDED)) return 1;
	if (regexec(&r, "see file042.txt", 3, m, 0)) return 2;
	printf("regex %d-%d %d-%d %d\n", (int)m[1].rm_so, (int)m[1].rm_eo, (int)m[2].rm_so, (int)m[2].rm_eo, regexec(&r, "file1.txt", 0, 0, 0) == REG_NOMATCH);
	regfree(&r);

	char in[] = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac", out[64] = "", *i = in, *o = out;
	size_t il = strlen(in), ol = sizeof out;
	iconv_t c = iconv_open("UTF-16LE", "UTF-8");
	if (c == (iconv_t)-1 || iconv(c, &i, &il, &o, &ol)) return 3;
	for (char *p = out; p < o; p++) printf("%02x", (unsigned char)*p);
	iconv_close(c);
	i = "\xfc\x80", il = 1, o = out, ol = sizeof out;
	c = iconv_open("UTF-8", "ISO-8859-1");
	iconv(c, &i, &il, &o, &ol);
	printf(" %02x%02x\n", (unsigned char)out[0], (unsigned char)out[1]);

	int a; long double ld; char w[16]; unsigned x; double e; char set[8];
	int n = sscanf("-42 3.25e10 word 0xff 1e-3 abcXYZ", "%d %Lf %15s %x %lf %7[a-z]", &a, &ld, w, &x, &e, set);
	printf("scanf %d %d %.1Lf %s %u %g %s\n", n, a, ld, w, x, e, set);
	printf("long double %.20Lf %La %.3Le %Lg\n", 1.0L / 3, 1.0L / 3, 1e4000L, expl(1));
	printf("double %a %.17g %g %g %s\n", 0.1, 0.1, INFINITY, -0.0, isnan(nan("")) ? "nan" : "?");
	printf("%s\n", setlocale(LC_ALL, "C") ? "locale" : "none");
	wchar_t wide[16];
	setlocale(LC_CTYPE, "C.UTF-8");
	printf("wide %d %lc\n", (int)mbstowcs(wide, "gr\xc3\xbc\xc3\x9f", 16), L'\u20ac');

	time_t t = 1700000000;
	char text[64];
	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z", localtime(&t));
	printf("time %s\n", text);
	struct tm tm = { .tm_year = 124, .tm_mon = 6, .tm_mday = 1, .tm_hour = 12, .tm_isdst = -1 };
	long long made = mktime(&tm);
	printf("mktime %lld %d\n", made, tm.tm_yday);
	memset(&tm, 0, sizeof tm);
	printf("strptime %d\n", strptime("2024-02-29 23:59", "%Y-%m-%d %H:%M", &tm) ? tm.tm_mday * 100 + tm.tm_min : -1);
	return 0;
}
"#
    .replace("#include <iconv.h>", "#define _GNU_SOURCE\n#include <iconv.h>");
    let zones = "/usr/share/zoneinfo";
    let with_zones = std::path::Path::new(zones).join("Europe/Berlin").exists();
    let options = if with_zones {
        format!("--dir {zones}:{zones}:ro --env TZ=Europe/Berlin")
    } else {
        "--env TZ=CET-1CEST,M3.5.0,M10.5.0/3".to_owned()
    };
    let ran = run(&d, &options, &source).ok();
    let wanted = "regex 4-8 12-15 1\n\
                  67007200fc00df002000ac20 c3bc\n\
                  scanf 6 -42 32500000000.0 word 255 0.001 abc\n\
                  long double 0.33333333333333333334 0x1.5555555555555556p-2 1.000e+4000 2.71828\n\
                  double 0x1.999999999999ap-4 0.10000000000000001 inf -0 nan\n\
                  locale\nwide 4 \u{20ac}\n\
                  time 2023-11-14 23:13:20 CET\nmktime 1719828000 182\nstrptime 2959\n";
    assert_eq!(ran.out, wanted);
}

#[test]
fn numbers_are_written_and_read_as_by_another_libc() {
    let d = Dir::new();
    let source = include_str!("programs/numbers.c");
    run(&d, "", source).ok();
    let ours = d.sh("$RF run p.rf 1000").ok();
    let theirs = d.sh("gcc -O1 -w p.c -o p -lm && ./p 1000").ok();
    assert_eq!(
        ours.out, theirs.out,
        "`./p 1000 all` prints everything, and `ringfence run p.rf 1000 all`"
    );
}

#[test]
fn only_a_program_with_long_double_has_x87_code() {
    let d = Dir::new();
    let start = "#include <math.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <wchar.h>\nint main(int c, char **v) {\n";
    let uses = |source: &str| {
        run(&d, "", &format!("{start}{source}return 0; }}\n")).ok();
        let told = d.sh("$RF inspect p.rf").ok().out;
        let line = told.lines().find(|line| line.starts_with("uses"));
        line.is_some_and(|line| line.contains("x87"))
    };
    assert!(
        !uses(
            "double x = strtod(v[1], 0) + atof(\"1\"); float y = strtof(\"2\", 0); char b[99]; wchar_t w[99];\n\
             snprintf(b, 99, \"%g %a\", x, y); sscanf(b, \"%lf %f\", &x, &y); printf(\"%.3e\", nearbyint(fmaf(x, 2, y)));\n\
             swprintf(w, 99, L\"%f\", x); x = wcstod(w, 0); printf(\"%f\", x);\n"
        ),
        "the libc's common functions have none"
    );
    d.write(
        "s.cc",
        "#include <iomanip>\n#include <iostream>\n#include <sstream>\n#include <unordered_map>\n\
         int main() { std::stringstream s(\"1.5 x\"); double a; std::string b; s >> a >> b;\n\
         std::unordered_map<std::string, double> m{{b, a}}; std::wcout << L\"w\" << a;\n\
         std::cout << std::setprecision(3) << m[b] << std::stod(\"2.5\") << std::to_string(a); }\n",
    );
    let sysroot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");
    let streams = d
        .sh(&format!(
            "$RF c++ --sysroot-rf {sysroot} -O1 s.cc -o s.rf && $RF inspect s.rf"
        ))
        .ok();
    assert!(!streams.out.contains("x87"), "streams have none: {}", streams.out);
    assert!(
        uses("volatile long double x = c; printf(\"%Lf\", x / 3);\n"),
        "the test sees x87 code where there is some"
    );
}

/// gcc compares once, in front of the switch's jump, what all its cases compare first.
#[test]
fn flags_over_a_jump_through_a_table_are_kept() {
    let d = Dir::new();
    let source = r#"
#include <stdio.h>
static unsigned p[16], q[8];
__attribute__((noinline)) static unsigned work(unsigned kind, unsigned from, unsigned to)
{
    unsigned i = from, s = 0;
    switch (kind) {
    case 0: for (; i < to; i++) { s += p[i]; if (p[i] == 77) break; } break;
    case 1: for (; i < to; i++) { s ^= p[i] << 3; if (p[i] == 78) break; } break;
    case 2: for (; i < to; i++) { s += q[p[i] & 7]; if (p[i] == 79) break; } break;
    case 3: for (; i < to; i++) { s = s * 31 + p[i]; if (p[i] == 80) break; } break;
    case 4: for (; i < to; i++) { q[i & 7] += p[i]; if (p[i] == 81) break; } break;
    case 5: for (; i < to; i++) { p[i] += 3; if (p[i] == 82) break; } break;
    default: __builtin_unreachable();
    }
    return s * 2 + i;
}
int main(void)
{
    for (unsigned i = 0; i < 16; i++)
        p[i] = i * 5;
    for (unsigned kind = 0; kind < 6; kind++)
        if (work(kind, 9, 9) != 9 || work(kind, 9, 2) != 9 || work(kind, 2, 3) < 3)
            return printf("case %u\n", kind), 1;
    return 0;
}
"#;
    let sysroot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");
    for flags in ["-O1", "-O2", "-O2 -g", "-O3", "-Os", "-O2 --check"] {
        d.write("flags.c", source);
        d.sh(&format!(
            "$RF cc --sysroot-rf {sysroot} {flags} flags.c -o flags.rf && $RF run flags.rf"
        ))
        .ok();
    }
}
