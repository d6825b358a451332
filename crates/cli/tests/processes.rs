//! Processes that a program makes by `fork`: as natively, as far as the policy grants them, and none is left behind.

mod common;

use common::{Dir, Ran};

const HEAD: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#define CHECK(x) do { if (!(x)) { printf("line %d: %s: %s\n", __LINE__, #x, strerror(errno)); exit(90); } } while (0)
static int status_of(pid_t p) { int s = -1; CHECK(waitpid(p, &s, 0) == p); return s; }
"#;

/// A grant that is enough, a time limit that is never reached, and a guard should something be left behind.
const USUAL: &str = "--processes 8 --time-limit 60s";

#[track_caller]
fn run(d: &Dir, options: &str, body: &str) -> Ran {
    d.program(&format!("{HEAD}{body}"));
    d.sh(&format!("timeout -k 5 100 $RF run {options} p.rf"))
}

#[test]
fn children_go_on_and_are_waited_for() {
    let d = Dir::new();
    let body = r#"
int main(void)
{
	int p[2], mine = 1;
	char text[64] = "";
	CHECK(getpid() == 1 && pipe(p) == 0);
	printf("written once, ");
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		mine = 2;
		CHECK(getppid() == 1 && getpid() > 1);
		close(p[0]);
		dprintf(p[1], "%d %d", getpid(), mine);
		exit(7);
	}
	close(p[1]);
	CHECK(read(p[0], text, sizeof text) > 0);
	while (read(p[0], text + 40, 1) > 0) ;
	CHECK(atoi(text) == child && strstr(text, " 2") && mine == 1);
	int s = status_of(child);
	CHECK(WIFEXITED(s) && WEXITSTATUS(s) == 7);
	CHECK(wait(&s) == -1 && errno == ECHILD);
	CHECK(kill(child, 0) == -1 && errno == ESRCH);
	/* From the return of main, and from a grandchild. */
	child = fork();
	if (!child) {
		pid_t grand = fork();
		CHECK(grand >= 0);
		if (!grand) return 5;
		CHECK(getpid() != grand);
		return WEXITSTATUS(status_of(grand)) + 1;
	}
	CHECK(WEXITSTATUS(status_of(child)) == 6);
	/* Any of several, and one that runs on. */
	CHECK(pipe(p) == 0);
	pid_t waits = fork();
	if (!waits) { char c; close(p[1]); read(p[0], &c, 1); _exit(c); }
	CHECK(waitpid(waits, &s, WNOHANG) == 0 && waitpid(-1, &s, WNOHANG) == 0);
	pid_t quick = fork();
	if (!quick) _exit(9);
	CHECK(wait(&s) == quick && WEXITSTATUS(s) == 9);
	CHECK(write(p[1], "\x21", 1) == 1);
	struct rusage u;
	CHECK(wait4(waits, &s, 0, &u) == waits && WEXITSTATUS(s) == 0x21);
	puts("done");
	return 3;
}
"#;
    let ran = run(&d, USUAL, body).fails(3, &[]);
    assert_eq!(ran.out, "written once, done\n");
}

/// The alarm clock is its maker's, and so are signals that have come and wait.
#[test]
fn an_alarm_is_not_inherited() {
    let d = Dir::new();
    let body = r#"
static volatile int rung;
static void ring(int s) { rung += s == SIGALRM; }
int main(void)
{
	sigset_t set, old;
	sigemptyset(&set);
	sigaddset(&set, SIGALRM);
	signal(SIGALRM, ring);
	CHECK(alarm(1) == 0);
	pid_t child = fork();
	if (!child) {
		CHECK(alarm(0) == 0 && sleep(2) == 0 && rung == 0);
		CHECK(alarm(1) == 0 && sleep(5) > 0 && rung == 1);
		_exit(4);
	}
	CHECK(sleep(5) > 0 && rung == 1 && WEXITSTATUS(status_of(child)) == 4);
	/* One that waits behind a mask. */
	alarm(60);
	sigprocmask(SIG_BLOCK, &set, &old);
	raise(SIGALRM);
	child = fork();
	if (!child) {
		CHECK(sigpending(&set) == 0 && !sigismember(&set, SIGALRM));
		sigprocmask(SIG_SETMASK, &old, 0);
		_exit(rung);
	}
	CHECK(WEXITSTATUS(status_of(child)) == 1 && rung == 1);
	sigprocmask(SIG_SETMASK, &old, 0);
	return rung == 2 ? 0 : 91;
}
"#;
    run(&d, USUAL, body).ok();
}

#[test]
fn ends_by_signals_are_told() {
    let d = Dir::new();
    let body = r#"
static int ends(int how)
{
	pid_t p = fork();
	CHECK(p >= 0);
	if (!p) {
		switch (how) {
		case 0: abort();
		case 1: *(volatile int *)0 = 1;
		case 2: raise(SIGTERM);
		case 3: __builtin_trap();
		case 4: kill(getpid(), SIGKILL);
		default: for (;;) pause();
		}
	}
	if (how >= 10) CHECK(kill(p, how) == 0);
	int s = status_of(p);
	CHECK(WIFSIGNALED(s) && !WCOREDUMP(s));
	return WTERMSIG(s);
}
int main(void)
{
	CHECK(ends(0) == SIGABRT && ends(1) == SIGSEGV && ends(2) == SIGTERM && ends(3) == SIGILL && ends(4) == SIGKILL);
	CHECK(ends(SIGTERM) == SIGTERM && ends(SIGUSR1) == SIGUSR1 && ends(SIGALRM) == SIGALRM);
	/* Nobody but its own children. */
	CHECK(kill(getppid() + 4711, SIGTERM) == -1 && errno == EPERM);
	pid_t p = fork();
	if (!p) { CHECK(kill(getppid(), SIGTERM) == -1 && errno == EPERM); _exit(4); }
	CHECK(kill(p, SIGSEGV) == -1 || WEXITSTATUS(status_of(p)) == 4);
	puts("done");
	return 0;
}
"#;
    let ran = run(&d, USUAL, body).ok();
    assert_eq!(ran.out, "done\n");
    assert!(ran.err.contains("ringfence: error: process "), "{}", ran.err);
}

/// A pipeline, as shells make it: who reads ends when who writes has ended.
#[test]
fn pipelines() {
    let d = Dir::new();
    let body = r#"
static void filter(const char *what)
{
	char line[256];
	while (fgets(line, sizeof line, stdin))
		if (strstr(line, what)) fputs(line, stdout);
	exit(0);
}
int main(void)
{
	int a[2], b[2];
	CHECK(pipe(a) == 0 && pipe(b) == 0);
	pid_t first = fork();
	if (!first) {
		dup2(a[1], 1);
		for (int i = 0; i < 2; i++) close(a[i]), close(b[i]);
		for (int i = 0; i < 30000; i++) printf("line %d\n", i);
		exit(0);
	}
	pid_t second = fork();
	if (!second) {
		dup2(a[0], 0), dup2(b[1], 1);
		for (int i = 0; i < 2; i++) close(a[i]), close(b[i]);
		filter("77");
	}
	close(a[0]), close(a[1]), close(b[1]);
	FILE *f = fdopen(b[0], "r");
	char line[256];
	int n = 0;
	while (fgets(line, sizeof line, f)) n++;
	CHECK(status_of(first) == 0 && status_of(second) == 0);
	printf("%d\n", n);
	return 0;
}
"#;
    let expected = (0..30000).filter(|n: &u32| n.to_string().contains("77")).count();
    assert_eq!(run(&d, USUAL, body).ok().out, format!("{expected}\n"));
}

/// Memory that was mapped to be shared is, and no other; files have one position.
#[test]
fn what_is_shared() {
    let d = Dir::new();
    let body = r#"
int main(void)
{
	static int own;
	int *shared = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int *private = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open("file", O_RDWR | O_CREAT, 0600);
	CHECK(shared != MAP_FAILED && private != MAP_FAILED && fd >= 0);
	pthread_mutexattr_t shares;
	pthread_mutex_t *m = (void *)(shared + 16);
	pthread_mutexattr_init(&shares);
	CHECK(pthread_mutexattr_setpshared(&shares, PTHREAD_PROCESS_SHARED) == 0 && pthread_mutex_init(m, &shares) == 0);
	for (int i = 0; i < 4; i++) {
		pid_t p = fork();
		CHECK(p >= 0);
		if (p) continue;
		for (int k = 0; k < 2000; k++) {
			pthread_mutex_lock(m);
			shared[1]++;
			pthread_mutex_unlock(m);
		}
		own++, private[0]++;
		CHECK(write(fd, "x", 1) == 1);
		exit(0);
	}
	for (int i = 0; i < 4; i++) { int s; CHECK(wait(&s) > 0 && s == 0); }
	CHECK(shared[1] == 8000 && own == 0 && private[0] == 0);
	CHECK(lseek(fd, 0, SEEK_CUR) == 4);
	puts("done");
	return 0;
}
"#;
    let ran = run(&d, &format!("{USUAL} --dir .:/d"), body);
    assert_eq!(ran.ok().out, "done\n");
    assert_eq!(d.read("file"), b"xxxx");
}

#[test]
fn there_are_as_many_as_granted() {
    let d = Dir::new();
    let body = r#"
int main(int argc, char **argv)
{
	int p[2], n = 0;
	CHECK(pipe(p) == 0);
	for (;;) {
		pid_t child = fork();
		if (child < 0) break;
		if (!child) { char c; close(p[1]); read(p[0], &c, 1); _exit(0); }
		CHECK(++n < 100);
	}
	CHECK(errno == EAGAIN);
	printf("%d ", n);
	fflush(stdout);
	close(p[1]);
	for (int i = 0; i < n; i++) CHECK(wait(0) > 0);
	/* All of a program together: one below the other. */
	int depth = 0;
	for (pid_t child; (child = fork()) >= 0; depth++)
		if (child) { int s; CHECK(waitpid(child, &s, 0) == child); exit(WEXITSTATUS(s)); }
	printf("%d\n", depth);
	return 0;
}
"#;
    assert_eq!(run(&d, "--processes 5 --time-limit 60s", body).ok().out, "5 5\n");
    assert_eq!(run(&d, "--time-limit 60s", body).ok().out, "0 0\n");
    let other = run(&d, "--backend process --processes 5 --time-limit 60s", body);
    assert!(
        other.out.contains("errno == EAGAIN: Function not implemented"),
        "{}",
        other.out
    );
}

/// A process ends with the one that made it, and limits of time hold in it. What is left behind would hold the output open.
#[test]
fn none_is_left_behind() {
    let d = Dir::new();
    let body = r#"
int main(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t p = fork();
		CHECK(p >= 0);
		if (!p && i == 0) for (;;) ;
		if (!p && i == 1) { if (fork() >= 0) for (;;) sleep(1000); }
		if (!p) sleep(1000);
	}
	puts("gone");
	return 0;
}
"#;
    assert_eq!(run(&d, "--processes 8", body).ok().out, "gone\n");
    let body = r#"
int main(void)
{
	pid_t p = fork();
	CHECK(p >= 0);
	if (!p) { printf("turns\n"); fflush(stdout); for (;;) ; }
	int s = status_of(p);
	/* The limit of the child's call, which is that of ours, and was reached first, or never. */
	CHECK(WIFSIGNALED(s) && WTERMSIG(s) == SIGKILL);
	puts("told");
	return 0;
}
"#;
    let ran = run(&d, "--processes 8 --time-limit 2s", body);
    assert!(
        ran.status == 124 || ran.out == "turns\ntold\n",
        "{}: {}",
        ran.status,
        ran.out
    );
    // A parent that crashes takes them with it.
    let body = r#"
int main(void)
{
	if (!fork()) sleep(1000);
	*(volatile int *)0 = 1;
}
"#;
    run(&d, "--processes 8", body).fails(139, &[]);
}

#[test]
fn threads_do_not_come_along_and_programs_are_not_started() {
    let d = Dir::new();
    let body = r#"
static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static void *wait_for(void *p) { pthread_mutex_lock(&m); pthread_mutex_unlock(&m); return p; }
int main(void)
{
	pthread_t t;
	pthread_mutex_lock(&m);
	CHECK(pthread_create(&t, 0, wait_for, 0) == 0);
	CHECK(fork() == -1 && errno == EAGAIN);
	pthread_mutex_unlock(&m);
	CHECK(pthread_join(t, 0) == 0);
	pid_t p;
	for (int i = 0; (p = fork()) < 0 && i < 10000; i++) usleep(1000);
	CHECK(p >= 0);
	if (!p) {
		CHECK(pthread_create(&t, 0, wait_for, 0) == 0 && pthread_join(t, 0) == 0);
		CHECK(execl("/bin/true", "true", (char *)0) == -1 && errno == EACCES);
		_exit(8);
	}
	CHECK(WEXITSTATUS(status_of(p)) == 8);
	CHECK(!popen("true", "r") && errno == EPERM);
	CHECK(system("true") == -1 && errno == EPERM && system(0) == 0);
	puts("done");
	return 0;
}
"#;
    let ran = run(&d, &format!("{USUAL} --threads 4 --dir /bin:/bin:ro"), body);
    assert_eq!(ran.ok().out, "done\n");
}

/// A limit that each new process had anew would be none.
#[test]
fn the_disk_is_one_for_all() {
    let d = Dir::new();
    let body = r#"
int main(void)
{
	static char bytes[4096];
	int fd = open("file", O_RDWR | O_CREAT, 0600), n = 0;
	CHECK(fd >= 0);
	for (; n < 1000; n++) {
		pid_t p = fork();
		CHECK(p >= 0);
		if (!p) _exit(write(fd, bytes, sizeof bytes) == sizeof bytes ? 0 : errno == EDQUOT ? 1 : 2);
		int s = status_of(p);
		CHECK(WIFEXITED(s) && WEXITSTATUS(s) < 2);
		if (s) break;
	}
	CHECK(write(fd, bytes, sizeof bytes) == -1 && errno == EDQUOT);
	printf("%d\n", n);
	return 0;
}
"#;
    // The name is a block, and so is each first write.
    let ran = run(&d, &format!("{USUAL} --dir .:/d --disk-limit 64K"), body).ok();
    let n: u64 = ran.out.trim().parse().unwrap();
    assert!((5..=15).contains(&n), "{n}");
    assert!(d.read("file").len() as u64 <= 64 << 10);
}

#[test]
fn an_end_is_told_as_a_signal_would_tell_it() {
    let d = Dir::new();
    let body = r#"
int main(void)
{
	siginfo_t info;
	CHECK(waitid(P_ALL, 0, &info, WEXITED) == -1 && errno == ECHILD);
	pid_t one = fork();
	if (!one) _exit(7);
	pid_t two = fork();
	if (!two) for (;;) pause();
	CHECK(one > 0 && two > one);
	CHECK(waitid(P_ALL, 0, &info, 0) == -1 && errno == EINVAL);
	CHECK(waitid(P_PID, one, &info, WEXITED | WNOWAIT) == -1 && errno == EINVAL);
	CHECK(waitid(P_PID, 99, &info, WEXITED) == -1 && errno == ECHILD);
	info.si_pid = 5;
	CHECK(waitid(P_PID, two, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0 && info.si_signo == 0);
	CHECK(waitid(P_PID, one, &info, WEXITED) == 0 && info.si_pid == one && info.si_signo == SIGCHLD);
	CHECK(info.si_code == CLD_EXITED && info.si_status == 7 && info.si_uid == getuid());
	CHECK(kill(two, SIGKILL) == 0 && waitid(P_ALL, 0, &info, WEXITED) == 0);
	CHECK(info.si_pid == two && info.si_code == CLD_KILLED && info.si_status == SIGKILL);
	CHECK(waitid(P_ALL, 0, 0, WEXITED) == -1 && errno == ECHILD);
	return 0;
}
"#;
    run(&d, USUAL, body).ok();
}

/// Groups as shells and test frameworks use them: made by parent and child alike, ended and waited for as a whole.
#[test]
fn groups_are_ended_as_a_whole() {
    let d = Dir::new();
    let body = r#"
static volatile int rung;
static void ring(int s) { rung = s; }
static pid_t sleeper(pid_t group)
{
	pid_t p = fork();
	CHECK(p >= 0);
	if (!p) {
		setpgid(0, group);
		for (;;) pause();
	}
	CHECK(setpgid(p, group) == 0 && getpgid(p) == (group ? group : p));
	return p;
}
int main(void)
{
	pid_t mine = getpgrp();
	int s, pipe_[2];
	CHECK(mine > 1 && getpgid(0) == mine && getpgid(getpid()) == mine && getsid(0) == mine);
	CHECK(setsid() == -1 && errno == EPERM && setpgid(0, 0) == -1 && errno == EPERM);
	CHECK(getpgid(4711) == -1 && errno == ESRCH && setpgid(4711, 0) == -1 && errno == ESRCH);
	CHECK(setpgid(0, -1) == -1 && errno == EINVAL && killpg(4711, 0) == -1 && errno == ESRCH);
	/* Three of one group, one beside them. */
	pid_t first = sleeper(0), second = sleeper(first), third = sleeper(first), other = sleeper(0);
	CHECK(killpg(first, 0) == 0 && waitpid(-first, &s, WNOHANG) == 0);
	CHECK(setpgid(other, 4711) == -1 && errno == EPERM);
	CHECK(killpg(first, SIGTERM) == 0);
	for (int i = 0; i < 3; i++) {
		pid_t p = waitpid(-first, &s, 0);
		CHECK((p == first || p == second || p == third) && WIFSIGNALED(s) && WTERMSIG(s) == SIGTERM);
	}
	CHECK(waitpid(-first, &s, 0) == -1 && errno == ECHILD && killpg(first, 0) == -1 && errno == ESRCH);
	CHECK(waitpid(0, &s, WNOHANG) == -1 && errno == ECHILD && waitpid(-1, &s, WNOHANG) == 0);
	/* Back into ours, and our own group with us: a handler runs, the other ends. */
	CHECK(setpgid(other, mine) == 0 && getpgid(other) == mine && waitpid(0, &s, WNOHANG) == 0);
	signal(SIGUSR1, ring);
	CHECK(kill(0, SIGUSR1) == 0 && rung == SIGUSR1 && waitpid(0, &s, 0) == other && WTERMSIG(s) == SIGUSR1);
	rung = 0;
	CHECK(killpg(mine, SIGUSR1) == 0 && rung == SIGUSR1);
	/* What a test framework does: a process in a group of its own, which has made one, and both are gone at once. */
	CHECK(pipe(pipe_) == 0);
	pid_t p = fork();
	if (!p) {
		setpgid(0, 0);
		if (!fork()) for (;;) pause();
		write(pipe_[1], "x", 1);
		for (;;) pause();
	}
	char c;
	CHECK(read(pipe_[0], &c, 1) == 1 && close(pipe_[1]) == 0);
	CHECK(killpg(p, SIGKILL) == 0 && WTERMSIG(status_of(p)) == SIGKILL);
	/* The grandchild held the pipe open. */
	CHECK(read(pipe_[0], &c, 1) == 0);
	/* A session of one's own, and nobody's group but one's own. */
	p = fork();
	if (!p) {
		pid_t own = getpid();
		CHECK(setsid() == own && getsid(0) == own && getpgrp() == own);
		CHECK(setsid() == -1 && errno == EPERM && setpgid(0, mine) == -1 && errno == EPERM);
		CHECK(killpg(mine, SIGTERM) == -1 && errno == EPERM && getpgid(1) == mine && getsid(1) == mine);
		pid_t q = fork();
		if (!q) { CHECK(getsid(0) == own && getpgrp() == own && setpgid(0, 0) == 0 && getpgrp() == getpid()); _exit(6); }
		CHECK(WEXITSTATUS(status_of(q)) == 6);
		_exit(5);
	}
	CHECK(WEXITSTATUS(status_of(p)) == 5);
	/* All that this one has made. */
	pid_t a = sleeper(0), b = sleeper(0);
	CHECK(kill(-1, SIGKILL) == 0 && WTERMSIG(status_of(a)) == SIGKILL && WTERMSIG(status_of(b)) == SIGKILL);
	puts("done");
	return 0;
}
"#;
    assert_eq!(run(&d, USUAL, body).ok().out, "done\n");
    let alone = r#"
int main(void)
{
	CHECK(getpgrp() == getsid(0) && setsid() == -1 && errno == EPERM && setpgid(0, 0) == -1 && errno == EPERM);
	CHECK(killpg(getpgrp(), SIGTERM) == 0);
	return 3;
}
"#;
    assert_eq!(run(&d, "--time-limit 60s", alone).status, 128 + 15);
}

/// As test frameworks end what takes too long.
#[test]
fn an_alarm_ends_a_wait() {
    let d = Dir::new();
    let body = r#"
static pid_t child;
static volatile int rung;
static void ring(int s) { rung = s; }
static void end(int s) { rung = s; killpg(child, SIGKILL); }
static pid_t sleeper(void)
{
	pid_t p = fork();
	CHECK(p >= 0);
	if (!p) { setpgid(0, 0); for (;;) pause(); }
	setpgid(p, p);
	return p;
}
int main(void)
{
	int s;
	struct sigaction a = {.sa_handler = ring};
	child = sleeper();
	CHECK(sigaction(SIGALRM, &a, 0) == 0 && alarm(1) == 0);
	CHECK(waitpid(child, &s, 0) == -1 && errno == EINTR && rung == SIGALRM);
	rung = 0;
	/* One that lets the wait go on, and ends what it is for. */
	signal(SIGALRM, end);
	alarm(1);
	CHECK(waitpid(child, &s, 0) == child && WTERMSIG(s) == SIGKILL && rung == SIGALRM);
	/* One that does not ring. */
	child = fork();
	if (!child) _exit(4);
	alarm(100);
	CHECK(waitpid(child, &s, 0) == child && WEXITSTATUS(s) == 4 && alarm(0) > 90);
	CHECK(waitpid(-1, &s, 0) == -1 && errno == ECHILD);
	puts("done");
	return 0;
}
"#;
    assert_eq!(run(&d, USUAL, body).ok().out, "done\n");
}

/// Processes whose maker was ended make room for others.
#[test]
fn those_who_went_with_their_maker_are_not_counted() {
    let d = Dir::new();
    let body = r#"
int main(void)
{
	for (int i = 0; i < 50; i++) {
		int p[2];
		char c;
		CHECK(pipe(p) == 0);
		pid_t child = fork();
		CHECK(child >= 0);
		if (!child) {
			if (!fork()) { if (!fork()) { write(p[1], "x", 1); for (;;) pause(); } for (;;) pause(); }
			for (;;) pause();
		}
		CHECK(read(p[0], &c, 1) == 1 && kill(child, SIGKILL) == 0 && WTERMSIG(status_of(child)) == SIGKILL);
		close(p[0]), close(p[1]);
	}
	puts("done");
	return 0;
}
"#;
    assert_eq!(run(&d, "--processes 3 --time-limit 60s", body).ok().out, "done\n");
}
