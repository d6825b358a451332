/* Threads are the host's lanes: they come and go without the libc being told, and it cannot make any. This replaces
 * musl's thread creation, thread-local set-up and cancellation. */
#include "pthread_impl.h"
#include "libc.h"
#include "syscall.h"
#include <stdlib.h>

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

int __pthread_create(pthread_t *restrict t, const pthread_attr_t *restrict a, void *(*f)(void *), void *restrict arg)
{
	(void)t, (void)a, (void)f, (void)arg;
	return EAGAIN;
}
weak_alias(__pthread_create, pthread_create);

static void no_destructors(void) {}
weak_alias(no_destructors, __pthread_tsd_run_dtors);

_Noreturn void __pthread_exit(void *result)
{
	struct pthread *self = __pthread_self();
	self->result = result;
	while (self->cancelbuf) {
		void (*f)(void *) = self->cancelbuf->__f;
		void *x = self->cancelbuf->__x;
		self->cancelbuf = self->cancelbuf->__next;
		f(x);
	}
	__pthread_tsd_run_dtors();
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
	return -ENOSYS;
}

/* Runs f in every thread where that can be done by interrupting them; here it cannot. */
void __synccall(void (*f)(void *), void *arg) { f(arg); }

pid_t __vfork(void)
{
	errno = ENOSYS;
	return -1;
}
weak_alias(__vfork, vfork);

/* The kernel would return from a signal handler here; no handler is ever installed. */
void __restore_rt(void) {}
void __restore(void) {}
