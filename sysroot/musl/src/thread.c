/* Threads are the host's lanes: they come and go without the libc being told. The libc can ask for more, if the policy grants them.
 * This replaces musl's thread creation, thread-local set-up and cancellation. */
#define _GNU_SOURCE
#include "pthread_impl.h"
#include "libc.h"
#include "syscall.h"
#include "stdio_impl.h"
#include <sched.h>
#include <setjmp.h>
#include <stdlib.h>
#include <threads.h>

__attribute__((visibility("hidden"))) void __rf_thread_exit(void), __rf_malloc_share(void),
	__rf_malloc_enter(void), __rf_malloc_leave(void);
__attribute__((visibility("hidden"))) void __pthread_tsd_run_dtors(void);
void __tl_lock(void), __tl_unlock(void);

__typeof__(__rf_thread) __thread __rf_thread __attribute__((visibility("hidden"), aligned(16)));
_Static_assert(sizeof(struct pthread) <= sizeof __rf_thread.bytes, "struct pthread has outgrown its place");

static __thread void *specific[PTHREAD_KEYS_MAX];
static volatile int last_tid;

volatile int __thread_list_lock;

void __rf_thread_init(void)
{
	struct pthread *self = (struct pthread *)&__rf_thread;
	self->self = self;
	self->prev = self->next = self;
	self->detach_state = DT_JOINABLE;
	/* Lock owners are told apart by it. It is the domain's own number, no thread of the host's. */
	self->tid = a_fetch_add(&last_tid, 1) + 1;
	self->locale = &libc.global_locale;
	self->robust_list.head = &self->robust_list.head;
	self->tsd = specific;
	__rf_thread.ready = 1;
}

/* What a new thread is told; on the stack of the thread that makes it, which waits for `self`. */
struct start {
	void *(*run)(void *);
	void *argument;
	int c11, detached;
	struct pthread *volatile self;
	volatile int started;
};

typedef __typeof__(__rf_thread) record;

/* The domain's threads without those that the host brought: a list through prev and next, under the list's lock. */
static struct pthread made = {.prev = &made, .next = &made};
static volatile int count;

static void list(struct pthread *self, int in)
{
	__tl_lock();
	if (in) {
		self->prev = made.prev;
		self->next = &made;
		self->prev->next = self->next->prev = self;
	} else {
		self->prev->next = self->next;
		self->next->prev = self->prev;
		self->prev = self->next = self;
	}
	__tl_unlock();
}

/* Runs what a thread leaves to be run, and tells who joins it. Its record lies in the lane, which stays until it has been read. */
static void leave(struct pthread *self, void *result)
{
	record *mine = (record *)self;
	self->result = result;
	while (self->cancelbuf) {
		void (*f)(void *) = self->cancelbuf->__f;
		void *x = self->cancelbuf->__x;
		self->cancelbuf = self->cancelbuf->__next;
		f(x);
	}
	__rf_thread_exit();
	__pthread_tsd_run_dtors();
	__rf_malloc_leave();
	list(self, 0);
	a_dec(&count);
	__wake(&count, -1, 1);
	if (a_cas(&self->detach_state, DT_JOINABLE, DT_EXITED) == DT_DETACHED)
		return;
	__wake(&self->detach_state, -1, 1);
	while (!mine->joined)
		__futexwait(&mine->joined, 0, 1);
}

/* The runtime calls it on a thread of its own. */
static void entry(struct start *given)
{
	struct pthread *self = __pthread_self();
	struct start s = *given;
	jmp_buf end;
	void *result;

	__rf_malloc_enter();
	if (s.detached)
		self->detach_state = DT_DETACHED;
	list(self, 1);
	__rf_thread.end = end;
	given->self = self;
	a_store(&given->started, 1);
	__wake(&given->started, 1, 1); /* at worst an address that is in use no more */
	if (setjmp(end))
		result = self->result;
	else if (s.c11)
		result = (void *)(intptr_t)((int (*)(void *))s.run)(s.argument);
	else
		result = s.run(s.argument);
	leave(self, result);
}

/* From now on there is more than one thread. */
static void with_locks(void)
{
	FILE *const streams[] = {stdin, stdout, stderr};
	if (libc.need_locks)
		return;
	__rf_malloc_share();
	for (FILE *f = *__ofl_lock(); f; f = f->next)
		if (f->lock < 0)
			f->lock = 0;
	__ofl_unlock();
	for (unsigned i = 0; i < 3; i++)
		streams[i]->lock = 0;
	libc.threaded = 1;
	libc.need_locks = 1;
}

int __pthread_create(pthread_t *restrict t, const pthread_attr_t *restrict a, void *(*f)(void *), void *restrict arg)
{
	int c11 = a == __ATTRP_C11_THREAD;
	struct start s = {.run = f, .argument = arg, .c11 = c11, .detached = a && !c11 && a->_a_detach};
	with_locks();
	a_inc(&count);
	/* The policy counts. The stack is the lane's, of the domain's size. */
	if (__syscall(SYS_clone, CLONE_VM | CLONE_THREAD, entry, &s)) {
		a_dec(&count);
		return EAGAIN;
	}
	while (!s.started)
		__futexwait(&s.started, 0, 1);
	*t = s.self;
	return 0;
}
weak_alias(__pthread_create, pthread_create);

static int timed_join(pthread_t t, void **result, const struct timespec *at)
{
	int state, r = 0;
	if (t == __pthread_self())
		return EDEADLK;
	while ((state = t->detach_state)) {
		if (state >= DT_DETACHED)
			return EINVAL;
		r = __timedwait(&t->detach_state, state, CLOCK_REALTIME, at, 1);
		if (r == ETIMEDOUT || r == EINVAL)
			return r;
	}
	if (result)
		*result = t->result;
	volatile int *joined = &((record *)t)->joined;
	a_store(joined, 1);
	__wake(joined, 1, 1);
	return 0;
}

int __pthread_join(pthread_t t, void **result) { return timed_join(t, result, 0); }
weak_alias(__pthread_join, pthread_join);
weak_alias(timed_join, pthread_timedjoin_np);

int pthread_tryjoin_np(pthread_t t, void **result)
{
	return t->detach_state == DT_JOINABLE ? EBUSY : __pthread_join(t, result);
}

static void no_destructors(void) {}
weak_alias(no_destructors, __pthread_tsd_run_dtors);

_Noreturn void __pthread_exit(void *result)
{
	struct pthread *self = __pthread_self();
	if (__rf_thread.end) {
		self->result = result;
		longjmp(__rf_thread.end, 1);
	}
	/* A program's first thread, or one of the host's in a library. */
	while (self->cancelbuf) {
		void (*f)(void *) = self->cancelbuf->__f;
		void *x = self->cancelbuf->__x;
		self->cancelbuf = self->cancelbuf->__next;
		f(x);
	}
	__pthread_tsd_run_dtors();
	for (int n; (n = count);)
		__futexwait(&count, n, 1);
	exit(0); /* the last thread there is */
}
weak_alias(__pthread_exit, pthread_exit);

void __do_cleanup_push(struct __ptcb *cb)
{
	struct pthread *self = __pthread_self();
	cb->__next = self->cancelbuf;
	self->cancelbuf = cb;
}

void __do_cleanup_pop(struct __ptcb *cb) { __pthread_self()->cancelbuf = cb->__next; }

void __tl_lock(void)
{
	while (a_cas(&__thread_list_lock, 0, 1))
		a_spin();
}
void __tl_unlock(void) { a_store(&__thread_list_lock, 0); }
void __tl_sync(pthread_t t) { (void)t; }

void __acquire_ptc(void) {}
void __release_ptc(void) {}
void __inhibit_ptc(void) {}

/* Nothing can be cancelled: there is no signal to do it with. */
int pthread_cancel(pthread_t t)
{
	(void)t;
	return ENOSYS;
}

void __reset_tls(void) {}

int __set_thread_area(void *p)
{
	(void)p;
	return -ENOSYS;
}

int __clone(int (*f)(void *), void *stack, int flags, void *arg, ...)
{
	(void)f, (void)stack, (void)flags, (void)arg;
	return -EPERM; /* posix_spawn: there are no other processes */
}

/* Runs f in every thread where that can be done by interrupting them; here it cannot. */
void __synccall(void (*f)(void *), void *arg) { f(arg); }

/* The child has memory of its own. */
pid_t __vfork(void)
{
	return fork();
}
weak_alias(__vfork, vfork);

/* The kernel would return from a signal handler here; no handler is ever installed. */
void __restore_rt(void) {}
void __restore(void) {}
