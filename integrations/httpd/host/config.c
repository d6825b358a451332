/* Where the server comes in: directives, their checks, what happens when processes start. */
#include "stock.h"

#include "apr_lib.h"
#include "apr_shm.h"
#include "mpm_common.h"

/* Of the present configuration: in its pool. */
static apr_array_header_t *modules;

apr_array_header_t *mf_modules(void)
{
    return modules;
}

mf_module *mf_module_find(const char *name)
{
    for (int i = 0; modules && i < modules->nelts; i++) {
        mf_module *m = APR_ARRAY_IDX(modules, i, mf_module *);

        if (strcmp(m->name, name) == 0)
            return m;
    }
    return NULL;
}

static void *create_settings(apr_pool_t *pool, char *dir)
{
    mf_settings *s = apr_pcalloc(pool, sizeof *s);

    (void)dir;
    s->time_limit = s->memory_limit = s->reset = s->log_lines = -1;
    return s;
}

/* What both give: later directories take the place of earlier ones of that name. */
static apr_array_header_t *merge_dirs(apr_pool_t *pool, const apr_array_header_t *base, const apr_array_header_t *more)
{
    apr_array_header_t *all = apr_array_copy(pool, base);

    for (int i = 0; i < more->nelts; i++) {
        const mf_dir *one = &APR_ARRAY_IDX(more, i, mf_dir);
        int k = 0;

        while (k < all->nelts && strcmp(APR_ARRAY_IDX(all, k, mf_dir).guest, one->guest) != 0)
            k++;
        if (k == all->nelts)
            apr_array_push(all);
        APR_ARRAY_IDX(all, k, mf_dir) = *one;
    }
    return all;
}

static void *merge_settings(apr_pool_t *pool, void *outer, void *inner)
{
    mf_settings *a = outer, *b = inner, *s = apr_pcalloc(pool, sizeof *s);

    s->time_limit = b->time_limit < 0 ? a->time_limit : b->time_limit;
    s->memory_limit = b->memory_limit < 0 ? a->memory_limit : b->memory_limit;
    s->reset = b->reset < 0 ? a->reset : b->reset;
    s->log_lines = b->log_lines < 0 ? a->log_lines : b->log_lines;
    s->log_time = b->log_lines < 0 ? a->log_time : b->log_time;
    s->dirs = !a->dirs ? b->dirs : !b->dirs ? a->dirs : merge_dirs(pool, a->dirs, b->dirs);
    s->environment = !a->environment   ? b->environment
                     : !b->environment ? a->environment
                                       : apr_table_overlay(pool, a->environment, b->environment);
    if (a->environment && b->environment)
        apr_table_compress(s->environment, APR_OVERLAP_TABLES_SET);
    return s;
}

static const char *set_module(cmd_parms *cmd, void *settings, const char *name, const char *path)
{
    const char *wrong = ap_check_cmd_context(cmd, NOT_IN_DIR_LOC_FILE);
    mf_module *m;

    (void)settings;
    if (wrong)
        return wrong;
    for (const char *c = name; *c; c++)
        if (!apr_isalnum(*c) && !strchr("_.-", *c))
            return apr_psprintf(cmd->pool, "FencedModule %s: the name has letters, digits, and _ . - only", name);
    if ((m = mf_module_find(name)))
        return apr_psprintf(cmd->pool, "FencedModule %s: there is one of that name, at %s", name, m->where);
    m = apr_pcalloc(cmd->pool, sizeof *m);
    m->name = name;
    m->path = ap_server_root_relative(cmd->pool, path);
    m->where = apr_psprintf(cmd->pool, "%s:%u", cmd->directive->filename, cmd->directive->line_num);
    m->number = (unsigned)modules->nelts;
    if (!m->path)
        return apr_psprintf(cmd->pool, "FencedModule %s: '%s' is no path", name, path);
    APR_ARRAY_PUSH(modules, mf_module *) = m;
    return NULL;
}

static const char *set_time_limit(cmd_parms *cmd, void *settings, const char *text)
{
    apr_interval_time_t *limit = &((mf_settings *)settings)->time_limit;

    if (ap_timeout_parameter_parse(text, limit, "s") != APR_SUCCESS || *limit < 0)
        return apr_psprintf(cmd->pool, "FencedTimeLimit: '%s' is no time: write 5, 500ms, or 0 for none", text);
    return NULL;
}

static const char *set_memory_limit(cmd_parms *cmd, void *settings, const char *text)
{
    char *end;
    apr_off_t bytes;
    int shift = 0;

    if (apr_strtoff(&bytes, text, &end, 10) != APR_SUCCESS || end == text || bytes < 0)
        bytes = -1;
    if (*end) {
        shift = strcasecmp(end, "K") == 0 ? 10 : strcasecmp(end, "M") == 0 ? 20 : strcasecmp(end, "G") == 0 ? 30 : -1;
    }
    if (bytes < 0 || shift < 0 || bytes > (APR_INT64_C(4) << 30) >> shift || bytes << shift < 16 << 20)
        return apr_psprintf(cmd->pool, "FencedMemoryLimit: '%s' is not 16M to 4G: write 65536K, 64M, or 1G", text);
    ((mf_settings *)settings)->memory_limit = bytes << shift;
    return NULL;
}

static const char *set_reset(cmd_parms *cmd, void *settings, const char *text)
{
    int *reset = &((mf_settings *)settings)->reset;

    *reset = strcasecmp(text, "request") == 0    ? MF_RESET_REQUEST
             : strcasecmp(text, "on-fault") == 0 ? MF_RESET_FAULT
             : strcasecmp(text, "never") == 0    ? MF_RESET_NEVER
                                                 : -1;
    if (*reset < 0)
        return apr_psprintf(cmd->pool, "FencedReset: '%s' is none of request, on-fault, never", text);
    return NULL;
}

static const char *set_log_limit(cmd_parms *cmd, void *settings, const char *text, const char *time)
{
    mf_settings *s = settings;
    apr_interval_time_t every = apr_time_from_sec(60);
    apr_off_t lines;
    char *end;

    if (apr_strtoff(&lines, text, &end, 10) != APR_SUCCESS || end == text || *end || lines < 0 || lines > 1000000000)
        return apr_psprintf(cmd->pool, "FencedLogLimit: '%s' is no number of lines: write 1000, or 0 for no limit", text);
    if (time && (ap_timeout_parameter_parse(time, &every, "s") != APR_SUCCESS || every <= 0))
        return apr_psprintf(cmd->pool, "FencedLogLimit: '%s' is no time: write 60, or 1h", time);
    s->log_lines = (int)lines;
    s->log_time = (apr_uint64_t)every * 1000;
    return NULL;
}

static const char *set_dir(cmd_parms *cmd, void *settings, const char *host, const char *guest, const char *rights)
{
    mf_settings *s = settings;
    apr_finfo_t info;
    mf_dir *dir;

    host = ap_server_root_relative(cmd->pool, host);
    if (!host || apr_stat(&info, host, APR_FINFO_TYPE, cmd->temp_pool) != APR_SUCCESS || info.filetype != APR_DIR)
        return apr_psprintf(cmd->pool, "FencedDir: '%s' is no directory", host ? host : "");
    if (*guest != '/')
        return apr_psprintf(cmd->pool, "FencedDir: '%s', the name that the module uses, begins with no '/'", guest);
    if (rights && strcasecmp(rights, "read") != 0 && strcasecmp(rights, "write") != 0)
        return apr_psprintf(cmd->pool, "FencedDir: '%s' is neither read nor write", rights);
    if (!s->dirs)
        s->dirs = apr_array_make(cmd->pool, 2, sizeof(mf_dir));
    dir = apr_array_push(s->dirs);
    dir->host = host;
    dir->guest = guest;
    dir->rights = rights && strcasecmp(rights, "write") == 0 ? RF_RIGHTS_WRITE : RF_RIGHTS_READ;
    return NULL;
}

static const char *set_environment(cmd_parms *cmd, void *settings, const char *name, const char *value)
{
    mf_settings *s = settings;

    if (!*name || strchr(name, '='))
        return apr_psprintf(cmd->pool, "FencedEnv: '%s' is no name of a variable", name);
    if (!s->environment)
        s->environment = apr_table_make(cmd->pool, 4);
    apr_table_setn(s->environment, name, value);
    return NULL;
}

static const command_rec directives[] = {
    AP_INIT_TAKE_ARGV("FencedLoadModule", mf_stock_load, NULL, RSRC_CONF | EXEC_ON_READ,
                      "NAME FILE [DIRECTORY...]: a stock module of the server in a domain of its own; it may read these directories"),
    AP_INIT_TAKE2("FencedModule", set_module, NULL, RSRC_CONF, "NAME FILE: a module, for SetHandler fenced:NAME"),
    AP_INIT_TAKE1("FencedTimeLimit", set_time_limit, NULL, RSRC_CONF | ACCESS_CONF,
                  "how long a request may take in the module, waits for the client left out: 5, 500ms; 0: no limit"),
    AP_INIT_TAKE1("FencedMemoryLimit", set_memory_limit, NULL, RSRC_CONF | ACCESS_CONF,
                  "how much memory each of the module's domains may have: 64M"),
    AP_INIT_TAKE1("FencedReset", set_reset, NULL, RSRC_CONF | ACCESS_CONF,
                  "when a module's domain is put back to its first state: request, on-fault, never"),
    AP_INIT_TAKE12("FencedLogLimit", set_log_limit, NULL, RSRC_CONF | ACCESS_CONF,
                   "LINES [TIME]: how many lines of the error log a module may cause in that time, in all processes: 6000 60; 0: no limit"),
    AP_INIT_TAKE23("FencedDir", set_dir, NULL, RSRC_CONF | ACCESS_CONF,
                   "DIRECTORY NAME [read|write]: a directory that the module may use under that name"),
    AP_INIT_TAKE2("FencedEnv", set_environment, NULL, RSRC_CONF | ACCESS_CONF,
                  "NAME VALUE: a variable of the module's environment"),
    { NULL, { NULL }, NULL, 0, 0, NULL }
};

static int pre_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp)
{
    (void)log, (void)temp;
    modules = apr_array_make(pool, 4, sizeof(mf_module *));
    return mf_stock_run_server_hooks(STOCK_HOOK_pre_config, pool, NULL);
}

static apr_status_t forget_modules(void *nothing)
{
    (void)nothing;
    modules = NULL;
    return APR_SUCCESS;
}

/* Also for `apachectl configtest`: what is wrong with a module shows before the server starts. */
static int check_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp, server_rec *s)
{
    int wrong = 0;

    (void)log, (void)temp;
    apr_pool_cleanup_register(pool, NULL, forget_modules, apr_pool_cleanup_null);
    for (int i = 0; i < modules->nelts; i++)
        wrong |= mf_module_open(APR_ARRAY_IDX(modules, i, mf_module *), pool, s) != OK;
    return wrong ? HTTP_INTERNAL_SERVER_ERROR : mf_stock_run_server_hooks(STOCK_HOOK_check_config, pool, s);
}

static int open_logs(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp, server_rec *s)
{
    (void)log, (void)temp;
    return mf_stock_run_server_hooks(STOCK_HOOK_open_logs, pool, s);
}

static void retrieve_functions(void)
{
    mf_stock_run_server_hooks(STOCK_HOOK_optional_fn_retrieve, NULL, NULL);
}

void *mf_shared_counters(apr_size_t size, apr_pool_t *pool, server_rec *s)
{
    apr_shm_t *shared;
    apr_status_t status = apr_shm_create(&shared, size, NULL, pool);

    if (status != APR_SUCCESS) {
        ap_log_error(APLOG_MARK, APLOG_CRIT, status, s, "mod_fenced: no shared memory for counters");
        return NULL;
    }
    return memset(apr_shm_baseaddr_get(shared), 0, size);
}

static int post_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temp, server_rec *s)
{
    mf_counters *counters;

    (void)log, (void)temp;
    if (mf_stock_post_config(pool, s) != OK)
        return HTTP_INTERNAL_SERVER_ERROR;
    if (!modules->nelts)
        return OK;
    counters = mf_shared_counters(sizeof *counters * (apr_size_t)modules->nelts, pool, s);
    if (!counters)
        return HTTP_INTERNAL_SERVER_ERROR;
    for (int i = 0; i < modules->nelts; i++)
        APR_ARRAY_IDX(modules, i, mf_module *)->counters = &counters[i];
    return OK;
}

/* In a new process while it may still look at its own page tables, which it may not once it has changed its user: resets are
 * faster with them. And while it has one thread. */
static int drop_privileges(apr_pool_t *pool, server_rec *s)
{
    (void)pool;
    if ((modules->nelts || mf_stocks()) && rf_process_init(NULL) != RF_OK)
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "mod_fenced: %s", rf_error()->message);
    rf_error_clear();
    return OK;
}

static void child_init(apr_pool_t *pool, server_rec *s)
{
    apr_status_t status;

    if (!modules->nelts && !mf_stocks())
        return;
    /* Once more: other modules may have set handlers for signals since. */
    drop_privileges(pool, s);
    status = mf_domains_init(pool);
    if (status != APR_SUCCESS)
        ap_log_error(APLOG_MARK, APLOG_ERR, status, s, "mod_fenced: no variables for threads");
    mf_stock_child_init(pool, s);
}

/* A request in which a stock module has failed is answered with that. */
static int fail_request(request_rec *r)
{
    return mf_stock_failed(r) ? HTTP_INTERNAL_SERVER_ERROR : DECLINED;
}

static void hooks(apr_pool_t *pool)
{
    ap_hook_handler(fail_request, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_pre_config(pre_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_check_config(check_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_open_logs(open_logs, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_optional_fn_retrieve(retrieve_functions, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_drop_privileges(drop_privileges, NULL, NULL, APR_HOOK_REALLY_FIRST);
    ap_hook_child_init(child_init, NULL, NULL, APR_HOOK_LAST);
    ap_hook_handler(mf_handler, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_handler(mf_status_handler, NULL, NULL, APR_HOOK_MIDDLE);
    mf_status_register(pool);
    mf_trailer_register();
    mf_stock_hooks();
}

/* Its name is what <IfModule> and server-info know, whatever this file is called. */
module AP_MODULE_DECLARE_DATA fenced_module = { .version = MODULE_MAGIC_NUMBER_MAJOR,
                                                .minor_version = MODULE_MAGIC_NUMBER_MINOR,
                                                .module_index = -1,
                                                .name = "mod_fenced.c",
                                                .magic = MODULE_MAGIC_COOKIE,
                                                .create_dir_config = create_settings,
                                                .merge_dir_config = merge_settings,
                                                .cmds = directives,
                                                .register_hooks = hooks };
