/* What APR asks of the system and a domain does not have: other processes, waiting for descriptors, other
 * character sets. */
#include "inside.h"

#include "apr_atomic.h"
#include "apr_poll.h"
#include "apr_support.h"
#include "apr_thread_proc.h"
#include "apr_xlate.h"

apr_status_t apr_atomic_init(apr_pool_t *pool)
{
    return APR_SUCCESS;
}

apr_status_t apr_proc_kill(apr_proc_t *process, int signal)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_proc_wait(apr_proc_t *process, int *status, apr_exit_why_e *why, apr_wait_how_e how)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_wait_for_io_or_timeout(apr_file_t *f, apr_socket_t *s, int for_read)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_pollset_destroy(apr_pollset_t *set)
{
    return APR_SUCCESS;
}

apr_status_t apr_xlate_conv_buffer(apr_xlate_t *set, const char *from, apr_size_t *from_left, char *to, apr_size_t *to_left)
{
    return APR_ENOTIMPL;
}
