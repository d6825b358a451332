/* Signals, as far as a domain has them: nobody outside sends it any, and nothing interrupts its code. Handlers are kept here.
 *
 * They run where a program sends itself a signal (raise, kill, abort), and when a system call comes back that could have waited: for
 * the alarm clock (alarm, setitimer with ITIMER_REAL), which ends the wait, and SIGPIPE. Handlers of other signals are kept, and never
 * run: a fault ends the call. Musl's own actions and masks are replaced by these. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include "ksigaction.h"
#include "lock.h"
#include "pthread_impl.h"
#include "syscall.h"

#define HIDDEN __attribute__((visibility("hidden")))
#define BIT(sig) (1UL << ((sig) - 1))
#define SECOND 1000000000LL

HIDDEN long __rf_gate(long a, long b, long c, long d, long e, long f, long number);

/* Whether system calls have to be looked at: an alarm clock runs, or SIGPIPE has a handler. */
HIDDEN volatile int __rf_signals;

static struct sigaction actions[_NSIG];
static volatile unsigned long pending;
static __thread unsigned long mask;
static volatile int lock[1];
/* Of CLOCK_MONOTONIC, in nanoseconds; 0: no alarm. */
static volatile long long due, every;

static long direct(long number, long a, long b, long c, long d) { return __rf_gate(a, b, c, d, 0, 0, number); }

static long long now(void)
{
	struct timespec t;
	if (direct(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0))
		return -1;
	return t.tv_sec * SECOND + t.tv_nsec;
}

static void look(void) { __rf_signals = due || (uintptr_t)actions[SIGPIPE].sa_handler > 1; }

/* Runs the handler, or does what is done without one. Whether a handler ran that lets a wait go on is 0, else 1. */
static int deliver(int sig)
{
	struct sigaction a = actions[sig];
	unsigned long before = mask;
	siginfo_t info = {.si_signo = sig, .si_code = SI_USER};
	ucontext_t context = {0};

	if (a.sa_handler == SIG_IGN)
		return 0;
	if (a.sa_handler == SIG_DFL) {
		/* The policy knows which of them end a program. */
		direct(SYS_tkill, 0, sig, 0, 0);
		return 0;
	}
	if (a.sa_flags & SA_RESETHAND) {
		actions[sig].sa_handler = SIG_DFL;
		look();
	}
	mask |= *(unsigned long *)&a.sa_mask | (a.sa_flags & SA_NODEFER ? 0 : BIT(sig));
	if (a.sa_flags & SA_SIGINFO)
		a.sa_sigaction(sig, &info, &context);
	else
		a.sa_handler(sig);
	mask = before;
	return !(a.sa_flags & SA_RESTART);
}

static int deliver_pending(void)
{
	unsigned long ready;
	int interrupts = 0;
	while ((ready = pending & ~mask)) {
		int sig = __builtin_ctzl(ready) + 1;
		a_and_64((volatile uint64_t *)&pending, ~BIT(sig));
		interrupts |= deliver(sig);
	}
	return interrupts;
}

static int send(int sig)
{
	if ((unsigned)sig >= _NSIG)
		return EINVAL;
	if (sig) {
		a_or_64((volatile uint64_t *)&pending, BIT(sig));
		deliver_pending();
	}
	return 0;
}

/* Takes the alarm if it is due at `time`. */
static void ring(long long time)
{
	LOCK(lock);
	if (due && time >= due) {
		/* As often as it was missed, it rings once. */
		due = every ? due + every * ((time - due) / every + 1) : 0;
		a_or_64((volatile uint64_t *)&pending, BIT(SIGALRM));
		look();
	}
	UNLOCK(lock);
}

/* --- system calls while something may come between --------------------------------------------------------------- */

static long long milliseconds(long long left) { return (left + 999999) / 1000000; }

/* Sleeps no longer than the alarm allows. */
static long sleep_until(long number, long a, long b, long c, long d, long long left, long long time)
{
	const struct timespec *asked = (const void *)(number == SYS_nanosleep ? a : c);
	struct timespec *rest = (void *)(number == SYS_nanosleep ? b : d);
	int absolute = number == SYS_clock_nanosleep && b & TIMER_ABSTIME;
	struct timespec at = {0};
	long long span = asked->tv_sec > 1LL << 32 ? 1LL << 62 : asked->tv_sec * SECOND + asked->tv_nsec, end;

	if (asked->tv_sec < 0 || asked->tv_nsec < 0 || asked->tv_nsec >= SECOND)
		return -EINVAL;
	if (absolute) {
		direct(SYS_clock_gettime, a, (long)&at, 0, 0);
		span -= at.tv_sec * SECOND + at.tv_nsec;
	}
	if (span <= left)
		return number == SYS_nanosleep ? direct(number, a, b, c, d) : direct(number, a, b, c, d);
	end = time + span;
	struct timespec part = {left / SECOND, left % SECOND};
	direct(SYS_nanosleep, (long)&part, 0, 0, 0);
	time = now();
	ring(time);
	deliver_pending();
	if (rest && !absolute) {
		left = end > time ? end - time : 0;
		*rest = (struct timespec){left / SECOND, left % SECOND};
	}
	return -EINTR;
}

HIDDEN long __rf_interrupted(long a, long b, long c, long d, long e, long f, long number)
{
	long r, look_again = 100000;
	switch (number) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_brk:
	case SYS_clone:
	case SYS_kill:
	case SYS_rt_sigaction:
		/* The libc makes them with locks held. */
		return __rf_gate(a, b, c, d, e, f, number);
	}
	if (number == SYS_fork) {
		r = __rf_gate(a, b, c, d, e, f, number);
		if (!r) {
			/* The alarm is its parent's, and so is what has come. */
			due = every = 0;
			pending = 0;
			look();
		}
		return r;
	}
	for (;;) {
		long long time = due ? now() : 0, left = due - time;
		if (due && time >= 0) {
			ring(time);
			if (left <= 0) {
				deliver_pending();
				time = due ? now() : 0;
				left = due - time;
			}
		}
		if (due && time >= 0 && left > 0) {
			if (number == SYS_nanosleep || number == SYS_clock_nanosleep)
				return sleep_until(number, a, b, c, d, left, time);
			int set = number == SYS_epoll_wait || number == SYS_epoll_pwait;
			long timeout = (int)(set ? d : c);
			if ((set || number == SYS_poll) && (timeout < 0 || timeout > milliseconds(left))) {
				r = __rf_gate(a, b, set ? c : milliseconds(left), set ? milliseconds(left) : d, e, f, number);
				if (r)
					return r;
				ring(now());
				deliver_pending();
				return -EINTR;
			}
			if (number == SYS_wait4 && !(c & WNOHANG)) {
				/* Nothing tells of both: the end of a process and of a time. */
				struct timespec part = {0, left < look_again ? left : look_again};
				r = __rf_gate(a, b, c | WNOHANG, d, e, f, number);
				if (r)
					return r;
				direct(SYS_nanosleep, (long)&part, 0, 0, 0);
				if (look_again < 10000000)
					look_again *= 2;
				ring(now());
				if (deliver_pending())
					return -EINTR;
				continue;
			}
			if (number == SYS_read || number == SYS_readv || number == SYS_recvfrom) {
				struct pollfd one = {.fd = (int)a, .events = POLLIN};
				if (direct(SYS_poll, (long)&one, 1, milliseconds(left), 0) == 0) {
					ring(now());
					if (deliver_pending())
						return -EINTR;
					continue;
				}
			}
		}
		r = __rf_gate(a, b, c, d, e, f, number);
		if (r == -EPIPE && (uintptr_t)actions[SIGPIPE].sa_handler > 1) {
			send(SIGPIPE);
			return r;
		}
		if (due && number != SYS_futex) {
			ring(now());
			deliver_pending();
		}
		return r;
	}
}

/* --- what programs call ---------------------------------------------------------------------------------------------- */

volatile int __eintr_valid_flag;

void __get_handler_set(sigset_t *set) { memset(set, 0, sizeof *set); }

int __libc_sigaction(int sig, const struct sigaction *restrict new, struct sigaction *restrict old)
{
	struct sigaction set;
	if (new)
		set = *new;
	if (old)
		*old = actions[sig];
	if (!new)
		return 0;
	actions[sig] = set;
	if (set.sa_handler == SIG_IGN)
		a_and_64((volatile uint64_t *)&pending, ~BIT(sig));
	if (sig == SIGPIPE) {
		/* With a handler, the policy must not end the program. */
		struct k_sigaction k = {.handler = set.sa_handler == SIG_DFL ? SIG_DFL : SIG_IGN};
		direct(SYS_rt_sigaction, sig, (long)&k, 0, _NSIG / 8);
	}
	look();
	return 0;
}

int __sigaction(int sig, const struct sigaction *restrict new, struct sigaction *restrict old)
{
	if (sig - 32U < 3 || sig - 1U >= _NSIG - 1 || (new && (sig == SIGKILL || sig == SIGSTOP))) {
		errno = EINVAL;
		return -1;
	}
	return __libc_sigaction(sig, new, old);
}
weak_alias(__sigaction, sigaction);

int pthread_sigmask(int how, const sigset_t *restrict set, sigset_t *restrict old)
{
	unsigned long before = mask, bits = set ? *(const unsigned long *)set : 0;
	if (set && (unsigned)how > SIG_SETMASK)
		return EINVAL;
	bits &= ~(BIT(SIGKILL) | BIT(SIGSTOP));
	if (old) {
		memset(old, 0, sizeof *old);
		*(unsigned long *)old = before;
	}
	if (set) {
		mask = how == SIG_BLOCK ? before | bits : how == SIG_UNBLOCK ? before & ~bits : bits;
		deliver_pending();
	}
	return 0;
}

int sigpending(sigset_t *set)
{
	memset(set, 0, sizeof *set);
	*(unsigned long *)set = pending & mask;
	return 0;
}

/* Waits for the alarm. Without one it is forever, which a time limit ends. */
static void wait_for_signal(void)
{
	struct timespec long_time = {3600, 0};
	for (;;) {
		if (deliver_pending())
			return;
		unsigned long before = pending;
		if (nanosleep(&long_time, 0) || pending != before)
			return;
	}
}

int sigsuspend(const sigset_t *set)
{
	unsigned long before = mask;
	mask = *(const unsigned long *)set;
	if (!(pending & ~mask))
		wait_for_signal();
	deliver_pending();
	mask = before;
	deliver_pending();
	errno = EINTR;
	return -1;
}

int pause(void)
{
	wait_for_signal();
	errno = EINTR;
	return -1;
}

int raise(int sig)
{
	int e = send(sig);
	if (e)
		errno = e;
	return e ? -1 : 0;
}

int kill(pid_t pid, int sig)
{
	pid_t group = pid == 0 || pid < -1 ? __syscall(SYS_getpgid, 0) : 0;
	if (pid > 0 ? pid == __syscall(SYS_getpid) : group && (pid == 0 || pid == -group)) {
		/* The policy reaches those of the group that this process has made; there may be none. */
		if (group)
			direct(SYS_kill, -group, sig, 0, 0);
		return raise(sig);
	}
	return __syscall_ret(direct(SYS_kill, pid, sig, 0, 0));
}

int pthread_kill(pthread_t t, int sig)
{
	if (t == __pthread_self())
		return send(sig);
	if ((unsigned)sig >= _NSIG)
		return EINVAL;
	return sig ? ENOSYS : 0; /* no thread can be interrupted */
}

static struct timeval from(long long t) { return (struct timeval){t / SECOND, t % SECOND / 1000}; }

static void left_of(struct itimerval *it, long long time)
{
	long long left = due ? due - time : 0;
	it->it_interval = from(every);
	it->it_value = from(due && left < 1000 ? 1000 : left);
}

int getitimer(int which, struct itimerval *old)
{
	if (which != ITIMER_REAL) {
		errno = which == ITIMER_VIRTUAL || which == ITIMER_PROF ? ENOSYS : EINVAL;
		return -1;
	}
	left_of(old, due ? now() : 0);
	return 0;
}

int setitimer(int which, const struct itimerval *restrict new, struct itimerval *restrict old)
{
	if (which != ITIMER_REAL) {
		errno = which == ITIMER_VIRTUAL || which == ITIMER_PROF ? ENOSYS : EINVAL;
		return -1;
	}
	if ((unsigned long)new->it_value.tv_usec >= 1000000 || (unsigned long)new->it_interval.tv_usec >= 1000000 ||
	    new->it_value.tv_sec < 0 || new->it_interval.tv_sec < 0) {
		errno = EINVAL;
		return -1;
	}
	long long time = now();
	if (time < 0) {
		errno = EPERM; /* no clock was granted */
		return -1;
	}
	long long most = 1LL << 31;
	long long value = (new->it_value.tv_sec < most ? new->it_value.tv_sec : most) * SECOND + new->it_value.tv_usec * 1000;
	long long interval =
		(new->it_interval.tv_sec < most ? new->it_interval.tv_sec : most) * SECOND + new->it_interval.tv_usec * 1000;
	LOCK(lock);
	if (old)
		left_of(old, time);
	due = value ? time + value : 0;
	every = interval;
	look();
	UNLOCK(lock);
	return 0;
}

/* The program's handler runs first, as natively. */
HIDDEN void __rf_signal_abort(void)
{
	if ((uintptr_t)actions[SIGABRT].sa_handler > 1) {
		mask &= ~BIT(SIGABRT);
		deliver(SIGABRT);
	}
}
