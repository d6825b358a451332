/* What the server knows of itself: its names, its processes, its other modules. */
#include "inside.h"

#include "ap_mpm.h"
#include "apr_user.h"
#include "mpm_common.h"
#include "scoreboard.h"
#include "util_mutex.h"

#include <unistd.h>

int ap_extended_status;

static const char *server_text(stock_server_text which, const char *about)
{
    const char *text;
    question q;

    stock_ask_begin(&q, STOCK_ASK_SERVER_TEXT);
    stock_put(&q.out, which);
    stock_put_text(&q.out, about);
    stock_ask_send(&q, STOCK_ASK_SERVER_TEXT);
    text = apr_pstrdup(stock_entry && stock_entry->pool ? stock_entry->pool : stock_pool, stock_get_text(&q.in));
    stock_ask_end(&q, STOCK_ASK_SERVER_TEXT);
    return text;
}

const char *ap_get_server_banner(void)
{
    return server_text(STOCK_SERVER_BANNER, NULL);
}

const char *ap_get_server_description(void)
{
    return server_text(STOCK_SERVER_DESCRIPTION, NULL);
}

const char *ap_get_server_built(void)
{
    return server_text(STOCK_SERVER_BUILT, NULL);
}

const char *ap_show_mpm(void)
{
    return server_text(STOCK_SERVER_MPM, NULL);
}

/* Modules ask whether there is one of that name, and nothing more. */
module *ap_find_linked_module(const char *name)
{
    static module other;

    return server_text(STOCK_SERVER_MODULE, name) ? &other : NULL;
}

int ap_index_of_response(int status)
{
    const char *number = server_text(STOCK_SERVER_RESPONSE, apr_itoa(stock_pool, status));

    return number ? atoi(number) : -1;
}

/* getenv, as modules and the server's utilities call it. */
char *stock_getenv(const char *name)
{
    return (char *)(uintptr_t)server_text(STOCK_SERVER_VARIABLE, name);
}

static apr_status_t look_up(stock_server_text which, const char *about, char **found, apr_pool_t *pool)
{
    *found = apr_pstrdup(pool, server_text(which, about));
    return *found ? APR_SUCCESS : APR_ENOENT;
}

apr_status_t apr_uid_name_get(char **name, apr_uid_t user, apr_pool_t *pool)
{
    return look_up(STOCK_SERVER_USER, apr_ltoa(pool, (long)user), name, pool);
}

apr_status_t apr_gid_name_get(char **name, apr_gid_t group, apr_pool_t *pool)
{
    return look_up(STOCK_SERVER_GROUP, apr_ltoa(pool, (long)group), name, pool);
}

apr_status_t apr_uid_homepath_get(char **path, const char *user, apr_pool_t *pool)
{
    return look_up(STOCK_SERVER_HOME, user, path, pool);
}

apr_status_t ap_mpm_query(int what, int *result)
{
    apr_status_t status;
    question q;

    stock_ask_begin(&q, STOCK_ASK_MPM_QUERY);
    stock_put(&q.out, (uint64_t)what);
    stock_ask_send(&q, STOCK_ASK_MPM_QUERY);
    status = (apr_status_t)stock_get(&q.in);
    *result = (int)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_MPM_QUERY);
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- scoreboard */

/* A record of the server's scoreboard: the whole of it, a process, or a worker of one. 0: there is none. */
static int record(int process, int thread, void *to, size_t size)
{
    const char *bytes;
    size_t length;
    question q;

    stock_ask_begin(&q, STOCK_ASK_WORKER);
    stock_put(&q.out, (uint64_t)process);
    stock_put(&q.out, (uint64_t)thread);
    stock_ask_send(&q, STOCK_ASK_WORKER);
    bytes = stock_get_bytes(&q.in, &length);
    if (bytes && length == size)
        memcpy(to, bytes, size);
    stock_ask_end(&q, STOCK_ASK_WORKER);
    return bytes && length == size;
}

/* As they were when a thread looked last: modules read them at once. */
static __thread process_score seen_process;
static scoreboard image = { NULL, NULL, NULL };
scoreboard *ap_scoreboard_image = &image;

int ap_exists_scoreboard_image(void)
{
    image.global = ap_get_scoreboard_global();
    return image.global != NULL;
}

/* What all modules of a process see of it does not change while the process lives, but for the parent's times. */
global_score *ap_get_scoreboard_global(void)
{
    static global_score all;
    global_score now;

    if (!record(STOCK_WHOLE, STOCK_WHOLE, &now, sizeof now))
        return NULL;
    all = now;
    return &all;
}

process_score *ap_get_scoreboard_process(int process)
{
    return record(process, STOCK_WHOLE, &seen_process, sizeof seen_process) ? &seen_process : NULL;
}

void ap_copy_scoreboard_worker(worker_score *to, int process, int thread)
{
    if (!record(process, thread, to, sizeof *to))
        memset(to, 0, sizeof *to);
}

void ap_random_insecure_bytes(void *bytes, apr_size_t size)
{
    if (getentropy(bytes, size < 256 ? size : 256) != 0)
        abort();
}

apr_uint32_t ap_random_pick(apr_uint32_t least, apr_uint32_t most)
{
    uint32_t number;

    ap_random_insecure_bytes(&number, sizeof number);
    return least + (apr_uint32_t)(((uint64_t)most - least + 1) * number >> 32);
}

static void load(ap_sload_t *busy, ap_loadavg_t *average)
{
    const char *bytes;
    size_t length;
    question q;

    stock_ask_begin(&q, STOCK_ASK_LOAD);
    stock_ask_send(&q, STOCK_ASK_LOAD);
    bytes = stock_get_bytes(&q.in, &length);
    if (busy && bytes && length == sizeof *busy)
        memcpy(busy, bytes, length);
    bytes = stock_get_bytes(&q.in, &length);
    if (average && bytes && length == sizeof *average)
        memcpy(average, bytes, length);
    stock_ask_end(&q, STOCK_ASK_LOAD);
}

void ap_get_sload(ap_sload_t *busy)
{
    load(busy, NULL);
}

void ap_get_loadavg(ap_loadavg_t *average)
{
    load(NULL, average);
}

/* --------------------------------------------------------------------------------------------------------------- functions */

/* The server's own hook of that name, for which modules need no function of others: it is a question. */
static int run_status_hook(request_rec *r, int flags)
{
    int result;
    question q;

    stock_ask_begin(&q, STOCK_ASK_STATUS_HOOK);
    stock_put(&q.out, stock_number(r));
    stock_put(&q.out, (uint64_t)flags);
    stock_ask_send(&q, STOCK_ASK_STATUS_HOOK);
    result = (int)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_STATUS_HOOK);
    return result;
}

apr_array_header_t *apr_optional_hook_get(const char *name)
{
    static struct {
        int (*function)(request_rec *, int);
        const char *name;
        const char *const *before, *const *after;
        int order;
    } only = { run_status_hook, "the server's", NULL, NULL, 0 };
    static apr_array_header_t all = { NULL, sizeof only, 1, 1, (char *)&only };

    return strcmp(name, "status_hook") == 0 ? &all : NULL;
}

/* Locks between processes guard programs that a module starts: it starts none. */
apr_status_t ap_mutex_register(apr_pool_t *pool, const char *type, const char *dir, apr_lockmech_e mechanism, apr_int32_t options)
{
    return APR_SUCCESS;
}

apr_status_t ap_global_mutex_create(apr_global_mutex_t **mutex, const char **name, const char *type, const char *instance, server_rec *s,
                                    apr_pool_t *pool, apr_int32_t options)
{
    return APR_ENOTIMPL;
}

/* Nor logs that programs read. */
piped_log *ap_open_piped_log(apr_pool_t *pool, const char *program)
{
    ap_log_error_(__FILE__, __LINE__, APLOG_NO_MODULE, APLOG_ERR, 0, NULL, "a fenced module starts no programs: '%s'", program);
    return NULL;
}

apr_file_t *ap_piped_log_write_fd(piped_log *log)
{
    return NULL;
}
