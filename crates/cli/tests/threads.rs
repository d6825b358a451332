//! Threads that a program makes: none without the policy's leave, and with it as many as it grants, which end with the program.

mod common;

use common::{Dir, Ran};

#[track_caller]
fn build(d: &Dir, front: &str, source: &str) {
    let sysroot = concat!(env!("CARGO_MANIFEST_DIR"), "/../../build/sysroot");
    assert!(
        std::path::Path::new(sysroot).join("lib/libc.a").exists(),
        "no libc in build/sysroot: run sysroot/build.sh first"
    );
    let (file, std) = if front == "c++" {
        ("p.cc", "-std=c++20")
    } else {
        ("p.c", "")
    };
    d.write(file, source);
    d.sh(&format!(
        "$RF {front} --sysroot-rf {sysroot} {std} -O2 -g -w {file} -o p.rf"
    ))
    .ok();
}

fn run(d: &Dir, options: &str, args: &str) -> Ran {
    d.sh(&format!(
        "timeout 60 $RF run --time-limit 30s {options} p.rf {args}"
    ))
}

const PTHREADS: &str = r#"
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t b;
static pthread_key_t key;
static __thread int mine = 7;
static long sum;
static int ready, dtors;

static void dtor(void *p) { __atomic_add_fetch(&dtors, 1, 5); free(p); }

static void *work(void *p)
{
	long n = (long)p;
	if (mine != 7) puts("an old thread's variables");
	mine = n, errno = n;
	pthread_setspecific(key, malloc(33));
	for (int i = 0; i < 5000; i++) {
		char *q = malloc(1 + i * 37 % 3000);
		memset(q, n, 1 + i * 37 % 3000);
		pthread_mutex_lock(&m);
		sum += n;
		pthread_mutex_unlock(&m);
		if (q[i * 37 % 3000] != n) puts("somebody else's memory");
		free(q);
	}
	pthread_barrier_wait(&b);
	if (mine != n || errno != n) puts("another thread's variables");
	if (n == 2) pthread_exit((void *)22L);
	return (void *)(n * 10);
}
static void *waiter(void *p)
{
	pthread_mutex_lock(&m);
	while (!ready) pthread_cond_wait(&c, &m);
	pthread_mutex_unlock(&m);
	return p;
}
static void *quick(void *p) { return p; }

int main(int argc, char **argv)
{
	pthread_t t[4];
	void *v;
	pthread_key_create(&key, dtor);
	pthread_barrier_init(&b, NULL, 4);
	for (long i = 0; i < 4; i++) {
		int r = pthread_create(&t[i], NULL, work, (void *)(i + 1));
		if (r) return r;
	}
	for (int i = 0; i < 4; i++) printf("%d ", pthread_join(t[i], &v)), printf("%ld\n", (long)v);
	printf("%ld %d\n", sum, dtors);
	for (int i = 0; i < 4; i++) pthread_create(&t[i], NULL, waiter, NULL);
	printf("%s\n", strerror(pthread_create(t, NULL, waiter, NULL)));
	pthread_mutex_lock(&m);
	ready = 1;
	pthread_cond_broadcast(&c);
	pthread_mutex_unlock(&m);
	for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
	/* One after the other, more than there are lanes: all of them leave. */
	for (long i = 0; i < 300; i++)
		if (pthread_create(t, NULL, quick, (void *)i) || pthread_join(*t, &v) || (long)v != i) return 99;
	printf("%d\n", pthread_join(pthread_self(), NULL) == EDEADLK);
	return 5;
}
"#;

#[test]
fn pthreads_as_many_as_are_granted() {
    let d = Dir::new();
    build(&d, "cc", PTHREADS);
    run(&d, "", "").fails(11, &[]); // EAGAIN
    run(&d, "--threads 3", "").fails(11, &[]);
    let ran = run(&d, "--threads 4", "").fails(5, &[]);
    assert_eq!(
        ran.out,
        "0 10\n0 22\n0 30\n0 40\n50000 4\nResource temporarily unavailable\n1\n"
    );
}

#[test]
fn they_end_with_the_program_and_it_with_them() {
    let d = Dir::new();
    build(
        &d,
        "cc",
        r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *leave(void *p) { usleep(20000); exit(9); }
static void *crash(void *p) { usleep(20000); *(volatile int *)0 = 1; return p; }
static void *spin(void *p) { for (;;) ; }
static void *sleepy(void *p) { sleep(100); return p; }
static void *late(void *p) { usleep(50000); puts("late"); return p; }
int main(int argc, char **argv)
{
	pthread_t t;
	switch (*argv[1]) {
	case 'e': pthread_create(&t, 0, leave, 0); for (;;) ;
	case 'c': pthread_create(&t, 0, crash, 0); for (;;) ;
	case 'm': pthread_create(&t, 0, sleepy, 0); *(volatile int *)0 = 1;
	case 's': pthread_create(&t, 0, spin, 0); pthread_create(&t, 0, sleepy, 0); return 3;
	case 'l': pthread_create(&t, 0, late, 0); pthread_exit(0);
	}
}
"#,
    );
    run(&d, "--threads 4", "exit").fails(9, &[]);
    run(&d, "--threads 4", "crash").fails(139, &["bad write", "crash"]);
    run(&d, "--threads 4", "main").fails(139, &["bad write", "main"]);
    run(&d, "--threads 4", "spin").fails(3, &[]);
    assert_eq!(run(&d, "--threads 4", "late").ok().out, "late\n");
}

#[test]
fn threads_of_cxx_and_of_c11() {
    let d = Dir::new();
    build(
        &d,
        "c++",
        r#"
#include <future>
#include <iostream>
#include <mutex>
#include <thread>
#include <threads.h>
struct Local { ~Local() { std::cout << "gone\n"; } int x = 1; };
thread_local Local local;
static int c11(void *p) { return *static_cast<int *>(p) + 1; }
int main()
try {
	std::mutex m;
	int n = 0;
	{
		auto add = [&](int i) { for (int k = 0; k < 1000; k++) { std::lock_guard g(m); n += i; } };
		std::jthread a(add, 1), b(add, 2);
	}
	std::cout << n << "\n";
	std::thread([] { local.x++; }).join();
	auto f = std::async(std::launch::async, []() -> int { throw std::runtime_error("from a thread"); });
	try { f.get(); } catch (std::exception &e) { std::cout << e.what() << "\n"; }
	thrd_t t;
	int r = 41;
	if (thrd_create(&t, c11, &r) != thrd_success || thrd_join(t, &r) != thrd_success) return 1;
	std::cout << r << "\n";
} catch (std::system_error &e) {
	std::cout << e.what() << "\n";
	return 2;
}
"#,
    );
    let refused = run(&d, "", "").fails(2, &[]);
    assert_eq!(refused.out, "Resource temporarily unavailable\n");
    let ran = run(&d, "--threads 2", "").ok();
    assert_eq!(ran.out, "3000\ngone\nfrom a thread\n42\n");
}
