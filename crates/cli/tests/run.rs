//! `ringfence run`: the policy, from inside a program that tries to get round it. The programs need no libc: they make
//! their system calls through the gate themselves.

mod common;

use common::{Dir, Ran};

const PRELUDE: &str = r#"
#define C "rcx", "r11", "memory", "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", \
	"xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
static long sc(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	__asm__ volatile("call __rf_syscall" : "+a"(n), "+D"(a), "+S"(b), "+d"(c), "+r"(r10), "+r"(r8), "+r"(r9) : : C);
	return n;
}
#define S0(n) sc(n, 0, 0, 0, 0, 0, 0)
#define S1(n, a) sc(n, (long)(a), 0, 0, 0, 0, 0)
#define S2(n, a, b) sc(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define S3(n, a, b, c) sc(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define S4(n, a, b, c, d) sc(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define S6(n, a, b, c, d, e, f) sc(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
enum { READ, WRITE, OPEN, CLOSE, STAT, FSTAT, POLL = 7, LSEEK, MMAP, MPROTECT, MUNMAP, BRK, SIGACTION, IOCTL = 16, PREAD,
	READV = 19, WRITEV, ACCESS, PIPE, DUP = 32, DUP2, NANOSLEEP = 35, GETPID = 39, SOCKET = 41, CONNECT, CLONE = 56,
	FORK, VFORK, EXECVE, EXIT, WAIT4, KILL, FCNTL = 72, TRUNCATE = 76, FTRUNCATE, GETCWD = 79, CHDIR, FCHDIR, RENAME, MKDIR, RMDIR,
	CREAT, LINK, UNLINK, SYMLINK, READLINK, CHMOD, FCHMOD, PTRACE = 101, MKNOD = 133, PRCTL = 157, TKILL = 200, FUTEX = 202,
	GETDENTS = 217, CLOCK = 228, OPENAT = 257, UTIMENSAT = 280, RANDOM = 318, STATX = 332 };
enum { EPERM = 1, ENOENT, ESRCH, EINTR, EIO, EBADF = 9, EAGAIN = 11, ENOMEM, EACCES, EFAULT, EBUSY = 16, EEXIST, EXDEV,
	ENODEV, ENOTDIR, EISDIR, EINVAL, EMFILE = 24, ENOTTY, ENOSPC = 28, ESPIPE, EROFS, ENAMETOOLONG = 36, ENOSYS = 38, ELOOP = 40 };
static unsigned long length(const char *s) { unsigned long n = 0; while (s[n]) n++; return n; }
static void say(const char *s) { S3(WRITE, 2, s, length(s)); }
static void number(long n)
{
	char b[24], *p = b + 23;
	unsigned long u = n < 0 ? -n : n;
	*p = 0;
	do *--p = '0' + u % 10; while (u /= 10);
	if (n < 0) *--p = '-';
	say(p);
}
static int failures;
static void expect(int line, long got, long want)
{
	if (got == want) return;
	failures++;
	say("line "), number(line), say(": got "), number(got), say(", wanted "), number(want), say("\n");
}
#define IS(want, got) expect(__LINE__, got, want)
#define OK(got) do { long r_ = got; if (r_ < 0) expect(__LINE__, r_, 0); } while (0)
"#;

/// Compiles `body` as a program's main and runs it with `options`.
fn run(d: &Dir, options: &str, body: &str) -> Ran {
    build(d, body);
    d.sh(&format!("$RF run {options} p.rf one two </dev/null"))
}

fn build(d: &Dir, body: &str) {
    let main = "int __rf_main(int argc, char **argv, char **envp, unsigned long *auxv)\n";
    d.write("p.c", format!("{PRELUDE}\n{main}#line 1\n{body}"));
    d.rf(&[
        "cc",
        "-O1",
        "-g",
        "-Wall",
        "-Wno-unused-function",
        "p.c",
        "-o",
        "p.rf",
    ])
    .ok();
}

#[test]
fn a_wrapper_is_started_like_any_program() {
    let d = Dir::new();
    build(
        &d,
        "{ IS(3, argc); OK(S3(OPEN, argv[1], 0, 0)); IS('o', argv[2][0]); return failures ? 1 : 7; }",
    );
    d.write("sub dir/file", "");
    d.sh("$RF cc p.c -O1 -s '--wrapper=--dir=.,--time-limit=9s' -o 'sub dir/prog'")
        .ok();
    d.rf(&["verify", "sub dir/prog.rf"]).ok();
    let ran = d.sh("cd 'sub dir'; PATH=$PWD:$PATH; prog file 'one two'");
    assert_eq!((ran.status, ran.err.as_str()), (7, ""));
    // A library stays what it is, whatever the options of the whole build are.
    d.write("l.c", "int f(void) { return 1; }\n");
    d.rf(&["cc", "--wrapper=--dir=.", "l.c", "-o", "l.rf"]).ok();
    d.rf(&["verify", "l.rf"]).ok();
    assert!(!d.exists("l.rf.rf"));
}

/// What a build's own tests see is what they would see of a native program.
#[test]
fn a_native_start() {
    let d = Dir::new();
    build(
        &d,
        r#"{
        IS('a', argv[1][0]);
        if (argv[1][1] == 'k') { S3(62 /* kill */, 1, 15, 0); }
        if (argv[1][1] == 's') *(volatile int *)16 = 1;
        if (argv[1][1] == 'd') { volatile int zero = 0; return argc / zero; }
        OK(S3(OPEN, argv[2], 0, 0)); /* relative to where it was started */
        int found = 0;
        for (; *envp; envp++)
            if ((*envp)[0] == 'R' && (*envp)[1] == 'F' && (*envp)[2] == 'X' && (*envp)[4] == 'y') found = 1;
        IS(1, found);
        const char *name = argv[0];
        while (*name) name++;
        IS('q', name[-1]); /* the wrapper's name, or that of a link to it */
        return failures ? 1 : 0;
    }"#,
    );
    d.write("sub/file", "");
    d.sh("$RF cc p.c -O1 --wrapper -o q; ln -s ../q sub/lq").ok();
    d.sh("cd sub; RFX=y ../q a file; RFX=y ./lq a file; cp ../q cq; RFX=y ./cq a file")
        .ok();
    for (letter, signal) in [("k", 15), ("s", 11), ("d", 8)] {
        let ran = d.sh(&format!(
            "python3 -c 'import subprocess; print(subprocess.run([\"./q\", \"a{letter}\"], stderr=subprocess.DEVNULL).returncode)'"
        ));
        assert_eq!(ran.ok().out, format!("{}\n", -signal));
    }
}

#[test]
fn arguments_environment_and_status() {
    let d = Dir::new();
    let body = r#"{
        IS(3, argc);
        IS('t', argv[2][0]);
        IS(0, (long)argv[3]);
        IS('A', envp[0][0]);
        IS('1', envp[0][2]);
        IS(0, (long)envp[1]);
        while (auxv[0] && auxv[0] != 6) auxv += 2;
        IS(4096, auxv[1]);
        say("done\n");
        return failures ? 1 : 42;
    }"#;
    run(&d, "--env A=1 --env UNSET_VARIABLE", body).fails(42, &["done"]);
    run(&d, "", "{ S1(EXIT, 7); return 1; }").fails(7, &[]);
    run(&d, "", "{ S1(EXIT, 0x1ff); return 1; }").fails(255, &[]);
}

#[test]
fn nothing_is_granted_by_default() {
    let d = Dir::new();
    let body = r#"{
        char b[64];
        IS(-ENOENT, S3(OPEN, "/etc/passwd", 0, 0));
        IS(-ENOENT, S3(OPEN, "p.c", 0, 0));
        IS(-ENOENT, S3(OPEN, ".", 0, 0));
        IS(-ENOENT, S2(STAT, "/etc/passwd", b));
        IS(-ENOENT, S2(MKDIR, "/x", 0777));
        IS(-13, S3(SOCKET, 2, 1, 0));
        IS(-EAGAIN, S0(FORK));
        IS(-EAGAIN, S0(VFORK));
        IS(-EAGAIN, sc(CLONE, 0x11, 0, 0, 0, 0, 0));
        IS(-EACCES, S3(EXECVE, "/bin/sh", 0, 0));
        IS(-EPERM, S4(PTRACE, 0, 0, 0, 0));
        IS(-EPERM, S2(KILL, 5, 9));
        IS(-ESRCH, S2(KILL, 5, 0));
        IS(-EPERM, S3(MKNOD, "/x", 0, 0));
        IS(-EPERM, S2(SYMLINK, "/etc", "/x"));
        IS(-EPERM, S2(PRCTL, 38, 1));
        IS(-ENOSYS, S0(9999));
        IS(-ENOSYS, S0(-1));
        IS(-10, S4(WAIT4, -1, 0, 0, 0));
        IS(1, S0(GETPID));
        IS(-EPERM, S2(CLOCK, 0, b));
        IS(-ENOSYS, S3(RANDOM, b, 16, 0));
        long handler[4] = { 0x1234 };
        IS(-EINVAL, S4(SIGACTION, 2, handler, 0, 8));
        handler[0] = 1;
        IS(0, S4(SIGACTION, 13, handler, 0, 8));
        return failures;
    }"#;
    run(&d, "--no-clocks --no-randomness", body).ok();
}

#[test]
fn files_below_a_directory() {
    let d = Dir::new();
    d.write("data/sub/file", "hello");
    let body = r#"{
        char b[256];
        OK(S2(CLOCK, 0, b));
        OK(S3(RANDOM, b, 16, 0));
        long fd = S3(OPEN, "/data/sub/file", 0, 0);
        IS(3, fd);
        IS(5, S3(READ, fd, b, 64));
        IS('h', b[0]);
        IS(0, S3(READ, fd, b, 64));
        IS(1, S3(LSEEK, fd, 1, 0));
        IS(4, S3(READ, fd, b, 64));
        IS(-EBADF, S3(WRITE, fd, b, 1));
        IS(0, S1(CLOSE, fd));
        IS(-EBADF, S1(CLOSE, fd));
        fd = S3(OPEN, "sub/../sub/./new", 0101, 0666);
        IS(3, fd);
        IS(3, S3(WRITE, fd, "abc", 3));
        IS(0, S2(FTRUNCATE, fd, 2));
        IS(0, S2(FSTAT, fd, b));
        IS(2, *(long *)(b + 48));
        IS(4, S1(DUP, fd));
        IS(7, S2(DUP2, fd, 7));
        IS(5, S3(FCNTL, fd, 0, 5));
        OK(S1(CLOSE, 3)); OK(S1(CLOSE, 4)); OK(S1(CLOSE, 5)); OK(S1(CLOSE, 7));
        IS(0, S2(MKDIR, "dir", 0777));
        IS(-EEXIST, S2(MKDIR, "dir", 0777));
        IS(-EEXIST, S2(MKDIR, "/data", 0777));
        IS(-EEXIST, S2(MKDIR, "/", 0777));
        IS(0, S2(RENAME, "sub/new", "dir/moved"));
        IS(-ENOENT, S2(STAT, "sub/new", b));
        IS(0, S2(STAT, "dir/moved", b));
        IS(0, S2(STAT, "/", b));
        IS(-39, S1(RMDIR, "dir"));
        IS(0, S2(LINK, "dir/moved", "dir/second"));
        IS(0, S2(CHMOD, "dir/moved", 06755));
        IS(0, S2(STAT, "dir/moved", b));
        IS(0100755, *(int *)(b + 24));
        IS(0, S1(UNLINK, "dir/moved"));
        IS(0, S1(UNLINK, "dir/second"));
        IS(-ENOTDIR, S1(CHDIR, "sub/file"));
        IS(0, S1(CHDIR, "sub"));
        IS(10, S2(GETCWD, b, 256));
        IS('/', b[0]);
        IS(-34, S2(GETCWD, b, 9));
        IS(0, S2(ACCESS, "file", 6));
        IS(0, S1(CHDIR, ".."));
        IS(0, S1(RMDIR, "dir"));
        fd = S3(OPEN, ".", 0200000, 0);
        long n = S3(GETDENTS, fd, b, sizeof b);
        if (n < 24 * 3) IS(72, n);
        long inner = S4(OPENAT, fd, "sub/file", 0, 0);
        IS(4, inner);
        IS(4096, (S6(MMAP, 0, 4096, 1, 2, inner, 0) & 0xfff) + 4096);
        IS(-EACCES, S6(MMAP, 0, 4096, 5, 2, inner, 0));
        IS(-EACCES, S6(MMAP, 0, 4096, 3, 1, inner, 0));
        IS('h', *(char *)S6(MMAP, 0, 4096, 1, 1, inner, 0));
        char *map = (char *)S6(MMAP, 0, 4096, 1, 2, inner, 0);
        IS('e', map[1]);
        IS(0, map[5]);
        return failures;
    }"#;
    run(&d, "--dir data:/data", body).ok();
    assert_eq!(d.read("data/sub/file"), b"hello");
}

#[test]
fn read_only_directories_stay_as_they_are() {
    let d = Dir::new();
    d.write("ro/file", "hello");
    d.write("rw/file", "hello");
    let body = r#"{
        char b[256];
        IS(-EROFS, S3(OPEN, "/ro/file", 2, 0));
        IS(-EROFS, S3(OPEN, "/ro/file", 01000, 0));
        IS(-EROFS, S3(OPEN, "/ro/new", 0101, 0666));
        IS(-EROFS, S1(UNLINK, "/ro/file"));
        IS(-EROFS, S2(RENAME, "/ro/file", "/rw/stolen"));
        IS(-EROFS, S2(LINK, "/ro/file", "/rw/stolen"));
        IS(-EROFS, S2(RENAME, "/rw/file", "/ro/file"));
        IS(-EROFS, S2(MKDIR, "/ro/d", 0777));
        IS(-EROFS, S2(CHMOD, "/ro/file", 0777));
        IS(-EROFS, S2(TRUNCATE, "/ro/file", 0));
        IS(-EROFS, S4(UTIMENSAT, -100, "/ro/file", 0, 0));
        IS(-EROFS, S2(ACCESS, "/ro/file", 2));
        IS(0, S2(ACCESS, "/ro/file", 4));
        long fd = S3(OPEN, "/ro/file", 0100, 0666);
        IS(3, fd);
        IS(-EROFS, S2(FCHMOD, fd, 0777));
        IS(-EROFS, S2(FTRUNCATE, fd, 0));
        IS(-EROFS, S4(UTIMENSAT, fd, 0, 0, 0));
        IS(5, S3(READ, fd, b, 10));
        OK(S3(OPEN, "/ro/../rw/file", 2, 0));
        return failures;
    }"#;
    run(&d, "--dir ro:/ro:ro --dir rw:/rw", body).ok();
}

#[test]
fn nothing_leads_out_of_a_directory() {
    let d = Dir::new();
    d.write("secret", "secret");
    d.write("data/file", "x");
    d.sh("cd data; ln -s ../secret up; ln -s /etc abs; ln -s loop loop; ln -s file in; ln -s /proc/self/root magic; \
          mkdir a; ln -s a/../../secret a/deep; mkfifo fifo; ln -s .. parent").ok();
    let body = r#"{
        char b[512], l[5000];
        IS(-ENOENT, S3(OPEN, "../secret", 0, 0));
        IS(-ENOENT, S3(OPEN, "../../../../../../etc/passwd", 0, 0));
        IS(-ENOENT, S3(OPEN, "/data/../etc/passwd", 0, 0));
        IS(-EACCES, S3(OPEN, "up", 0, 0));
        IS(-EACCES, S3(OPEN, "abs/passwd", 0, 0));
        IS(-EACCES, S3(OPEN, "magic/etc/passwd", 0, 0));
        IS(-EACCES, S3(OPEN, "parent/secret", 0, 0));
        IS(-EACCES, S2(STAT, "parent/secret", b));
        IS(-EACCES, S1(CHDIR, "parent"));
        IS(-EACCES, S1(UNLINK, "parent/secret"));
        IS(-EACCES, S2(RENAME, "file", "parent/out"));
        IS(-EACCES, S2(MKDIR, "parent/out", 0777));
        IS(-ELOOP, S3(OPEN, "loop", 0, 0));
        OK(S3(OPEN, "in", 0, 0));
        IS(9, S3(READLINK, "up", b, 100));
        IS(-EINVAL, S3(READLINK, "file", b, 100));
        IS(-EINVAL, S3(READLINK, "/data", b, 100));
        IS(-EACCES, S2(CREAT, "up", 0666));
        for (int i = 0; i < 4999; i++) l[i] = 'a';
        l[4999] = 0;
        IS(-ENAMETOOLONG, S3(OPEN, l, 0, 0));
        IS(-ENOENT, S3(OPEN, "", 0, 0));
        IS(-EFAULT, S3(OPEN, 0, 0, 0));
        IS(-EFAULT, S3(OPEN, 0x10, 0, 0));
        long fd = S3(OPEN, "fifo", 04000, 0);
        if (fd < 0) IS(0, fd);
        return failures;
    }"#;
    run(&d, "--dir data:/data", body).ok();
    assert_eq!(d.read("secret"), b"secret");
    assert!(!d.exists("out") && d.exists("data/file"));
    d.sh("$RF run --dir /proc:/p p.rf").fails(125, &["procfs"]);
    d.sh("$RF run --dir missing:/p p.rf").fails(125, &["missing"]);
    // Device nodes are not opened, even where a whole tree of them is granted: null and zero are the policy's own.
    let body = r#"{
        char b[4] = "abc";
        long zero = S3(OPEN, "/dev/zero", 2, 0);
        IS(4, S3(READ, zero, b, 4));
        IS(0, b[0] | b[1] | b[2] | b[3]);
        IS(0, S3(READ, S3(OPEN, "/dev/null", 0, 0), b, 4));
        IS(-EACCES, S3(OPEN, "/dev/full", 0, 0));
        IS(-EACCES, S3(OPEN, "/dev/tty", 0, 0));
        IS(-ENOENT, S3(OPEN, "/dev/there-is-no-such-device", 0, 0));
        return failures;
    }"#;
    run(&d, "--dir /dev:/dev", body).ok();
}

#[test]
fn pointers_that_point_anywhere() {
    let d = Dir::new();
    d.write("data/file", "hello");
    let body = r#"{
        char b[64];
        long base = (long)b & ~0xffffffffL;
        long fd = S3(OPEN, "/data/file", 2, 0);
        IS(3, fd);
        IS(-EFAULT, S3(READ, fd, 0, 4));
        IS(-EFAULT, S3(READ, fd, base, 4));
        IS(-EFAULT, S3(READ, fd, base + 0xfffffffcL, 16));
        IS(-EFAULT, S3(READ, fd, b, -1));
        IS(-EFAULT, S3(READ, fd, b, 0x7fffffffffffffffL));
        IS(-EFAULT, S3(READ, fd, base + 0x10000, 4));
        IS(-EFAULT, S3(READ, fd, base + 0x20000, 4));
        IS(-EFAULT, S3(READ, fd, (long)&sc, 4));
        IS(-EFAULT, S3(WRITE, fd, 8, 4));
        IS(-EFAULT, S2(FSTAT, fd, 8));
        IS(-EFAULT, S2(STAT, "/data/file", (long)&sc));
        IS(-EFAULT, S3(IOCTL, fd, 0x541B, 8));
        IS(-ENOTTY, S3(IOCTL, fd, 0x5413, b));
        IS(-ENOTTY, S3(IOCTL, fd, 0x5412, "x"));
        IS(-EFAULT, S3(READV, fd, 16, 2));
        IS(-EINVAL, S3(READV, fd, b, 1025));
        long iov[4] = { 8, 4, (long)b, 4 };
        IS(-EFAULT, S3(READV, fd, iov, 2));
        iov[0] = (long)b; iov[1] = -1;
        IS(-EFAULT, S3(READV, fd, iov, 2));
        /* The upper half of a pointer means nothing: this is b. */
        IS(4, S3(READ, fd, (long)b & 0xffffffffL, 4));
        IS('h', b[0]);
        IS(-EBADF, S3(READ, 77, b, 1));
        IS(-EBADF, S3(READ, -1, b, 1));
        IS(-EBADF, S1(CLOSE, 63));
        IS(-EFAULT, S3(POLL, 8, 1, 0));
        IS(-EINVAL, S3(POLL, b, 1000000, 0));
        IS(-EINVAL, S3(FUTEX, b + 1, 0, 0));
        IS(-EFAULT, S1(PIPE, 8));
        IS(4, S3(OPEN, "/data/file", 0, 0));
        return failures;
    }"#;
    run(&d, "--dir data:/data", body).ok();
}

#[test]
fn limits() {
    let d = Dir::new();
    d.write("data/file", "hello");
    let body = r#"{
        long n = 0, fd;
        while ((fd = S3(OPEN, "/data/file", 0, 0)) >= 0) n++;
        IS(-EMFILE, fd);
        IS(17, n);
        IS(-EMFILE, S1(DUP, 0));
        int p[2];
        IS(-EMFILE, S1(PIPE, p));
        S1(CLOSE, 10);
        IS(-EMFILE, S1(PIPE, p));
        IS(10, S1(DUP, 0));
        IS(-EINVAL, S3(FCNTL, 0, 0, 20));
        IS(-EBADF, S2(DUP2, 0, 20));
        IS(-ENOMEM, S6(MMAP, 0, 5L << 30, 3, 0x22, -1, 0));
        IS(-ENOMEM, S6(MMAP, 0, 64L << 20, 3, 0x22, -1, 0));
        OK(S6(MMAP, 0, 1L << 20, 3, 0x22, -1, 0));
        return failures;
    }"#;
    run(&d, "--dir data:/data --descriptors 20 --memory-limit 16M", body).ok();
    let t = std::time::Instant::now();
    run(
        &d,
        "--time-limit 50ms",
        "{ for (;;) __asm__ volatile(\"\"); return 0; }",
    )
    .fails(124, &["ringfence: error:"]);
    let body = "{ long t[2] = {60, 0}; S2(NANOSLEEP, t, 0); return 0; }";
    run(&d, "--time-limit 50ms", body).fails(124, &["ringfence: error:"]);
    assert!(t.elapsed() < std::time::Duration::from_secs(20));
}

#[test]
fn faults_and_signals_end_the_program_only() {
    let d = Dir::new();
    let ran = run(&d, "", "{\n\t*(volatile int *)8 = 1;\n\treturn 0;\n}")
        .fails(139, &["ringfence: error:", "__rf_main"]);
    assert!(
        ran.err.contains(":2)") || ran.err.contains(":2 ") || ran.err.contains(":2"),
        "{}",
        ran.err
    );
    run(&d, "", "{ S2(TKILL, 1, 6); return 0; }").fails(134, &[]);
    run(&d, "", "{ S2(KILL, 0, 17); return 3; }").fails(3, &[]);
    d.write("lib.c", "int f(void) { return 1; }\n");
    d.rf(&["cc", "lib.c", "-o", "lib.rf"]).ok();
    d.rf(&["run", "lib.rf"]).fails(125, &["not a program", "-shared"]);
    d.rf(&["run", "missing.rf"]).fails(125, &["missing.rf"]);
    d.rf(&["run", "--dir", "x:y", "lib.rf"])
        .fails(2, &["must start with '/'"]);
    d.rf(&["run", "--descriptors", "2", "lib.rf"])
        .fails(2, &["3..=65536"]);
    d.rf(&["run", "--threads", "63", "lib.rf"]).fails(2, &["62"]);
    for name in ["", "=x"] {
        d.rf(&["run", "--env", name, "lib.rf"])
            .fails(2, &["a variable has a name"]);
    }
}

#[test]
fn traces_read_like_those_of_strace() {
    let d = Dir::new();
    d.write("data/file", "hello");
    let body = r#"{
        char b[8];
        int p[2];
        long t[2] = { 0, 1000 }, v[4] = { (long)"ab", 2, (long)"\n", 1 }, st[18];
        struct { int fd; short events, revents; } f[2] = { { 0, 1, 0 }, { 0, 1, 0 } };
        struct { short family; unsigned char port[2], ip[4]; char zero[8]; } to = { 2, { 0, 80 }, { 127, 0, 0, 1 } };
        long fd = S3(OPEN, "/data/file", 0100000, 0);
        S3(READ, fd, b, 8);
        S3(WRITE, 1, "a\n", 2);
        S3(LSEEK, fd, 1, 0);
        S4(OPENAT, -100, "new", 0x241, 0644);
        S3(OPEN, "nothere", 0, 0);
        S1(CLOSE, 9);
        S3(WRITE, 4, "\0011\1", 3);
        S3(WRITEV, 1, v, 2);
        S2(FSTAT, fd, st);
        S2(NANOSLEEP, t, 0);
        S1(PIPE, p);
        S3(WRITE, p[1], "x", 1);
        f[0].fd = f[1].fd = p[0];
        f[1].events = 4;
        S3(POLL, f, 2, 100);
        S3(CONNECT, 77, &to, 16);
        S3(IOCTL, 4, 0x5413, b);
        S3(READ, 77, b, 8);
        S4(READV, p[0], v, 0, 0);
        S1(291, 02000000);
        S4(233, 7, 1, p[0], v);
        S2(290, 0, 02000000);
        S1(282, 0);
        S1(EXIT, 3);
        return 0;
    }"#;
    let ran = run(&d, "--trace --dir data:/data", body).fails(3, &[]);
    assert_eq!(ran.out, "a\nab\n");
    for line in [
        "open(\"/data/file\", O_RDONLY|O_LARGEFILE) = 3",
        "openat(AT_FDCWD, \"new\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 4",
        "lseek(3, 1, SEEK_SET) = 1",
        "write(1, \"a\\n\", 2) = 2",
        "open(\"nothere\", O_RDONLY) = -1 ENOENT (No such file or directory)",
        "close(9) = -1 EBADF (Bad file descriptor)",
        "read(3, \"hello\", 8) = 5",
        "write(4, \"\\0011\\1\", 3) = 3",
        "writev(1, [{iov_base=\"ab\", iov_len=2}, {iov_base=\"\\n\", iov_len=1}], 2) = 3",
        "fstat(3, {st_mode=S_IFREG|0644, st_size=5, ...}) = 0",
        "nanosleep({tv_sec=0, tv_nsec=1000}, NULL) = 0",
        "pipe([5, 6]) = 0",
        "poll([{fd=5, events=POLLIN}, {fd=5, events=POLLOUT}], 2, 100) = 1 ([{fd=5, revents=POLLIN}])",
        "connect(77, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"127.0.0.1\")}, 16) = -1 EBADF",
        "ioctl(4, TIOCGWINSZ, 0x",
        "read(77, 0x",
        "epoll_create1(O_CLOEXEC) = 7",
        "epoll_ctl(7, EPOLL_CTL_ADD, 5, 0x",
        "eventfd2(0, O_CLOEXEC) = 8",
        "signalfd(0x0",
        " = -1 ENOSYS (Function not implemented)",
        "exit(3) = ?",
        "+++ exited with 3 +++",
    ] {
        assert!(ran.err.contains(line), "no {line:?} in:\n{}", ran.err);
    }
}

#[test]
fn the_disk_has_a_limit() {
    let d = Dir::new();
    d.write("data/file", "hello");
    let body = r#"{
        static char b[8192];
        long fd = S3(OPEN, "/data/file", 1, 0);
        IS(3, fd);
        IS(4096, S3(WRITE, fd, b, 8192));
        IS(-122, S3(WRITE, fd, b, 1));
        IS(-122, S2(FTRUNCATE, fd, 1 << 20));
        IS(-122, S2(MKDIR, "/data/d", 0777));
        return failures;
    }"#;
    let ran = run(&d, "--usage --disk-limit 8K --dir data:/data", body).ok();
    assert!(ran.err.contains("disk 8192 bytes"), "{}", ran.err);
    assert_eq!(d.read("data/file").len(), 4096);
}

/// A bind mount is another name for the same directory, or for one below it.
#[test]
fn a_mount_does_not_give_a_second_right() {
    let d = Dir::new();
    d.write("data/sub/file", "hello");
    d.write("same/x", "");
    d.write("below/x", "");
    build(&d, "{ return 0; }");
    let ran = |mounts: &str, options: &str| {
        d.sh(&format!(
            "unshare -rm sh -c '{mounts}; exec $RF run {options} p.rf'"
        ))
    };
    if ran("mount --bind data same", "").status != 0 {
        assert!(
            std::env::var_os("CI").is_none(),
            "mounts have to be possible in CI"
        );
        eprintln!("skipped: this system does not allow mounts");
        return;
    }
    ran("mount --bind data same", "--dir data:/a --dir same:/b:ro")
        .fails(125, &["same directory", "\"/a\"", "\"/b\""]);
    ran("mount --bind data/sub below", "--dir data:/a --dir below:/b:ro")
        .fails(125, &["lies in", "\"/a\"", "\"/b\""]);
    ran("mount --bind data/sub below", "--dir data:/a:ro --dir below:/b").ok();
}

#[test]
fn pipes_and_streams() {
    let d = Dir::new();
    let body = r#"{
        char b[64];
        int p[2];
        OK(S1(PIPE, p));
        IS(3, S3(WRITE, p[1], "abc", 3));
        struct { int fd; short events, revents; } f[2] = { { p[0], 1, 0 }, { 99, 1, 0 } };
        IS(2, S3(POLL, f, 2, 1000));
        IS(1, f[0].revents);
        IS(32, f[1].revents);
        IS(3, S3(READ, p[0], b, 64));
        OK(S1(CLOSE, p[1]));
        IS(0, S3(READ, p[0], b, 64));
        IS(-ESPIPE, S3(LSEEK, 1, 0, 0));
        OK(S1(PIPE, p));
        OK(S1(CLOSE, p[0]));
        long ignore[4] = { 1 };
        OK(S4(SIGACTION, 13, ignore, 0, 8));
        IS(-32, S3(WRITE, p[1], "x", 1));
        long n = S3(READ, 0, b, 64);
        S3(WRITE, 1, b, n);
        IS(0, S1(CLOSE, 0));
        IS(-EBADF, S3(READ, 0, b, 64));
        return failures;
    }"#;
    build(&d, body);
    assert_eq!(d.sh("printf piped | $RF run p.rf").ok().out, "piped");
}

#[test]
fn programs_with_the_c_library() {
    let sysroot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");
    if !std::path::Path::new(sysroot).join("lib/libc.a").exists() {
        eprintln!("skipped: no libc in build/sysroot (make sysroot)");
        return;
    }
    let d = Dir::new();
    d.write(
        "h.c",
        "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n#include <errno.h>\n\
         int main(int argc, char **argv)\n{\n\tchar *p = malloc(1 << 20);\n\tmemset(p, 1, 1 << 20);\n\
         \tFILE *f = fopen(\"/etc/passwd\", \"r\");\n\tprintf(\"%s %d %.3f %s\\n\", argv[1], argc, 1.5, f ? \"open\" : strerror(errno));\n\
         \treturn 5;\n}\n",
    );
    let ran = d.sh(&format!(
        "$RF cc --sysroot-rf {sysroot} -O2 h.c -o h.rf -lm && $RF run h.rf x"
    ));
    assert_eq!(
        (ran.status, ran.out.as_str()),
        (5, "x 2 1.500 No such file or directory\n"),
        "{}",
        ran.err
    );
}

#[test]
fn what_harmless_calls_answer() {
    let d = Dir::new();
    d.write("data/file", "hello");
    let body = r#"{
        enum { MLOCK = 149, MSYNC = 26, SETUID = 105, GETGROUPS = 115, SIGPENDING = 127, STATFS = 137, FSTATFS, TMPFILE = 020200000 };
        unsigned long fs[15], pending = 7;
        char b[8];
        OK(S2(STATFS, "/data/file", fs));
        IS(1, fs[1] >= 512 && fs[2] > 0 && fs[2] >= fs[3] && fs[7] == 0);
        IS(-ENOENT, S2(STATFS, "/etc", fs));
        IS(-EFAULT, S2(STATFS, "/data", 0xffffffff));
        long fd = S3(OPEN, "/data", TMPFILE | 2, 0600);
        OK(fd);
        IS(3, S3(WRITE, fd, "abc", 3));
        IS(3, S4(PREAD, fd, b, 8, 0));
        OK(S2(FSTATFS, fd, fs));
        IS(-ENOSYS, S2(FSTATFS, 1, fs));
        IS(-EBADF, S2(FSTATFS, 99, fs));
        IS(-EINVAL, S3(OPEN, "/data", TMPFILE, 0600));
        IS(-EROFS, S3(OPEN, "/fixed", TMPFILE | 2, 0600));
        IS(-ENOTDIR, S3(OPEN, "/data/file", TMPFILE | 2, 0600));
        /* Shared with nobody: there is no other process. */
        char *m = (char *)S6(MMAP, 0, 8192, 3, 0x21, -1, 0);
        IS(1, (unsigned long)m < -4096ul);
        m[8191] = 1;
        IS(0, S3(MSYNC, m, 8192, 4));
        OK(S2(MUNMAP, m, 8192));
        m = (char *)S6(MMAP, 0, 4096, 3, 1, fd, 0);
        IS('a', m[0]);
        m[1] = 'x';
        IS(3, S4(PREAD, fd, b, 8, 0));
        IS('x', b[1]);
        IS(0, S3(MSYNC, m, 4096, 4));
        IS(-EPERM, S2(MLOCK, b, 1));
        IS(0, S1(SETUID, 1000));
        IS(-EPERM, S1(SETUID, 0));
        IS(0, S2(GETGROUPS, 0, 0));
        IS(0, S2(SIGPENDING, &pending, 8));
        IS(0, pending);
        return failures;
    }"#;
    d.write("fixed/file", "");
    run(&d, "--dir data:/data --dir fixed:/fixed:ro", body).ok();
    assert_eq!(std::fs::read_dir(d.path().join("data")).unwrap().count(), 1);
}

#[test]
fn nobody_reads() {
    let d = Dir::new();
    // Writes for ever, as `yes` does; with the signal ignored it is told.
    build(&d, "{ for (;;) S3(WRITE, 1, \"y\\n\", 2); }");
    let ran = d
        .sh("set +e; timeout 60 $RF run p.rf | head -1; echo ${PIPESTATUS[0]}")
        .ok();
    assert_eq!(ran.out, "y\n141\n");
    build(
        &d,
        "{ long ignore[4] = { 1 }, n; S4(SIGACTION, 13, ignore, 0, 8); while ((n = S3(WRITE, 1, \"y\\n\", 2)) > 0) ; return -n; }",
    );
    let ran = d
        .sh("set +e; timeout 60 $RF run p.rf | head -1; echo ${PIPESTATUS[0]}")
        .ok();
    assert_eq!(ran.out, "y\n32\n");
    // Nor the messages.
    build(&d, "{ for (;;) ; }");
    let ran = d
        .sh("set +e; $RF run --time-limit 300ms p.rf 2>&1 | true; echo ${PIPESTATUS[0]}")
        .ok();
    assert_eq!(ran.out, "124\n");
}
