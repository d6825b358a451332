/* Cancelling: the library watches one word, and the server sets several.
 *
 * The server's own word, InterruptPending, is set for much that must not end a statement (notifications, barriers). So the
 * handlers that cancel or end a session are wrapped, once in each process, and set the library's word when they have decided so. */
#include "plfenced.h"

#include "miscadmin.h"

#include <signal.h>

volatile int plf_cancel;

/* SIGINT cancels, SIGTERM ends the session, SIGUSR1 brings recovery conflicts, SIGALRM timeouts. */
static const int wrapped[] = { SIGINT, SIGTERM, SIGUSR1, SIGALRM };
static struct sigaction before[lengthof(wrapped)];
static pid_t wrapped_in;

static bool
has_to_end(void)
{
#if PG_VERSION_NUM >= 170000
	if (TransactionTimeoutPending)
		return true;
#endif
	return QueryCancelPending || ProcDiePending;
}

static void
handler(int number, siginfo_t *info, void *context)
{
	for (int i = 0; i < (int) lengthof(wrapped); i++) {
		struct sigaction *a = &before[i];

		if (wrapped[i] != number)
			continue;
		if (a->sa_flags & SA_SIGINFO)
			a->sa_sigaction(number, info, context);
		else if (a->sa_handler != SIG_IGN && a->sa_handler != SIG_DFL)
			a->sa_handler(number);
	}
	if (has_to_end())
		plf_cancel = 1;
}

/* Once in each process, when it first calls a fenced function: the server's own handlers are there by then. */
void
plf_cancel_init(void)
{
	if (wrapped_in == MyProcPid)
		return;
	wrapped_in = MyProcPid;
	plf_cancel = 0;
	for (int i = 0; i < (int) lengthof(wrapped); i++) {
		struct sigaction now;

		if (sigaction(wrapped[i], NULL, &now) != 0)
			continue;
		/* After a fork of a process that had wrapped them: what was before is still there. */
		if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == handler)
			continue;
		if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
			continue;
		before[i] = now;
		now.sa_flags |= SA_SIGINFO;
		now.sa_sigaction = handler;
		sigaction(wrapped[i], &now, NULL);
	}
}

void
plf_cancel_check(void)
{
	if (likely(plf_cancel == 0))
		return;
	plf_cancel = 0;
	CHECK_FOR_INTERRUPTS();
	/* Still to come: interrupts are held off. */
	if (has_to_end())
		plf_cancel = 1;
}
