#include "rf.h"
#include <assert.h>
#include <stdlib.h>

void abort(void) { __rf_abort(RF_ABORT_ABORT); }

void __assert_fail(const char *expression, const char *file, int line, const char *function)
{
	(void)expression, (void)file, (void)line, (void)function;
	__rf_abort(RF_ABORT_ASSERT);
}
