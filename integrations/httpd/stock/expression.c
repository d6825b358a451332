/* Expressions: the server's own source, which this file includes under other names. It runs in the domain, and sees the request as the module
 * does; what other modules add to the language is not there. */
#include "httpd.h"

#include "ap_expr.h"

#define ap_expr_parse own_expr_parse
#define ap_expr_parse_cmd_mi own_expr_parse_cmd_mi
#define ap_hook_post_config own_hook_post_config
#include "server/util_expr_eval.c"
#undef ap_expr_parse
#undef ap_expr_parse_cmd_mi
#undef ap_hook_post_config

#include "inside.h"

#include <pthread.h>

/* What the macros of APR's hooks need. */
apr_pool_t *apr_hook_global_pool;
int apr_hook_debug_enabled;
const char *apr_hook_debug_current;

void apr_hook_debug_show(const char *name, const char *const *before, const char *const *after)
{
}

/* They run in the order in which they come, which is that of their source. */
void apr_hook_sort_register(const char *name, apr_array_header_t **hooks)
{
}

void own_hook_post_config(ap_HOOK_post_config_t *f, const char *const *before, const char *const *after, int order)
{
}

static void begin(void)
{
    apr_hook_global_pool = stock_pool;
    ap_expr_init(stock_pool);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *ap_expr_parse(apr_pool_t *pool, apr_pool_t *temporary, ap_expr_info_t *info, const char *text, ap_expr_lookup_fn_t *look)
{
    pthread_once(&once, begin);
    return own_expr_parse(pool, temporary, info, text, look);
}

ap_expr_info_t *ap_expr_parse_cmd_mi(const cmd_parms *cmd, const char *text, unsigned flags, const char **error, ap_expr_lookup_fn_t *look,
                                     int index)
{
    pthread_once(&once, begin);
    return own_expr_parse_cmd_mi(cmd, text, flags, error, look, index);
}
