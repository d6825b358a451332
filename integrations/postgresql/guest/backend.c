/* Variables and checks of the server's that modules know by name. */
#include "guest.h"

#include "miscadmin.h"

/* The server interrupts fenced code itself: there is nothing to look for. */
volatile sig_atomic_t InterruptPending;
volatile sig_atomic_t QueryCancelPending;
volatile sig_atomic_t ProcDiePending;
volatile uint32 InterruptHoldoffCount;
volatile uint32 QueryCancelHoldoffCount;
volatile uint32 CritSectionCount;

void ProcessInterrupts(void)
{
}

/* The stack has guard pages; running into them ends the call. */
void check_stack_depth(void)
{
}

bool stack_is_too_deep(void)
{
	return false;
}
