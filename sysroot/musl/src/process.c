/* There are no other processes: what would make one says so, at once and by an errno that nobody takes for a shortage. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

FILE *popen(const char *command, const char *mode)
{
	(void)command;
	errno = *mode == 'r' || *mode == 'w' ? EPERM : EINVAL;
	return 0;
}

int system(const char *command)
{
	if (!command)
		return 0; /* no shell */
	errno = EPERM;
	return -1;
}
