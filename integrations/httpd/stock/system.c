/* What APR asks of the system and a domain does not have: other processes and locks between them, databases, waiting for descriptors, other
 * character sets, files in memory. */
#include "inside.h"

#include "apr_atomic.h"
#include "apr_dbd.h"
#include "apr_dbm.h"
#include "apr_global_mutex.h"
#include "apr_mmap.h"
#include "apr_poll.h"
#include "apr_proc_mutex.h"
#include "apr_support.h"
#include "apr_thread_proc.h"
#include "apr_xlate.h"

#include <time.h>

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

apr_status_t apr_mmap_create(apr_mmap_t **to, apr_file_t *f, apr_off_t offset, apr_size_t size, apr_int32_t flags, apr_pool_t *pool)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_mmap_dup(apr_mmap_t **to, apr_mmap_t *from, apr_pool_t *pool)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_mmap_delete(apr_mmap_t *map)
{
    return APR_SUCCESS;
}

apr_status_t apr_mmap_offset(void **address, apr_mmap_t *map, apr_off_t offset)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_file_setaside(apr_file_t **to, apr_file_t *f, apr_pool_t *pool)
{
    *to = f; /* it is as long as the request's memory */
    return APR_SUCCESS;
}

apr_status_t apr_proc_create(apr_proc_t *made, const char *program, const char *const *words, const char *const *environment, apr_procattr_t *how,
                             apr_pool_t *pool)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_create(apr_procattr_t **how, apr_pool_t *pool)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_io_set(apr_procattr_t *how, apr_int32_t in, apr_int32_t out, apr_int32_t error)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_dir_set(apr_procattr_t *how, const char *dir)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_cmdtype_set(apr_procattr_t *how, apr_cmdtype_e type)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_child_errfn_set(apr_procattr_t *how, apr_child_errfn_t *f)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_error_check_set(apr_procattr_t *how, apr_int32_t check)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_user_set(apr_procattr_t *how, const char *user, const char *password)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_procattr_group_set(apr_procattr_t *how, const char *group)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_proc_mutex_lock(apr_proc_mutex_t *mutex)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_proc_mutex_unlock(apr_proc_mutex_t *mutex)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_global_mutex_child_init(apr_global_mutex_t **mutex, const char *name, apr_pool_t *pool)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_global_mutex_lock(apr_global_mutex_t *mutex)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_global_mutex_unlock(apr_global_mutex_t *mutex)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_global_mutex_destroy(apr_global_mutex_t *mutex)
{
    return APR_ENOTIMPL;
}

const char *apr_global_mutex_lockfile(apr_global_mutex_t *mutex)
{
    return NULL;
}

apr_status_t apr_dbm_open_ex(apr_dbm_t **dbm, const char *type, const char *name, apr_int32_t mode, apr_fileperms_t rights, apr_pool_t *pool)
{
    return APR_ENOTIMPL;
}

void apr_dbm_close(apr_dbm_t *dbm)
{
}

apr_status_t apr_dbm_fetch(apr_dbm_t *dbm, apr_datum_t key, apr_datum_t *value)
{
    return APR_ENOTIMPL;
}

apr_status_t apr_dbm_get_usednames_ex(apr_pool_t *pool, const char *type, const char *name, const char **one, const char **two)
{
    return APR_ENOTIMPL;
}

const char *apr_dbd_error(const apr_dbd_driver_t *driver, apr_dbd_t *handle, int number)
{
    return "a fenced module has no databases";
}

const char *apr_dbd_get_entry(const apr_dbd_driver_t *driver, apr_dbd_row_t *row, int column)
{
    return NULL;
}

int apr_dbd_get_row(const apr_dbd_driver_t *driver, apr_pool_t *pool, apr_dbd_results_t *from, apr_dbd_row_t **row, int number)
{
    return -1;
}

int apr_dbd_pvselect(const apr_dbd_driver_t *driver, apr_pool_t *pool, apr_dbd_t *handle, apr_dbd_results_t **to,
                     apr_dbd_prepared_t *statement, int random, ...)
{
    return -1;
}

apr_status_t apr_file_dup(apr_file_t **to, apr_file_t *f, apr_pool_t *pool)
{
    *to = f;
    return APR_SUCCESS;
}

/* APR gives no name of the zone, and takes that of the C library for granted. */
size_t stock_strftime(char *to, size_t size, const char *format, const struct tm *time)
{
    struct tm named = *time;

    tzset();
    if (!named.tm_zone)
        named.tm_zone = tzname[named.tm_isdst > 0];
    return strftime(to, size, format, &named);
}
