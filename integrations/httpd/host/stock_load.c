/* FencedLoadModule: a stock module of the server, compiled for the fence, in place of LoadModule. */
#include "stock.h"

#include "ap_mpm.h"
#include "mod_so.h"

/* Of the present configuration: in its pool. */
static apr_array_header_t *stocks;

apr_array_header_t *mf_stocks(void)
{
    return stocks;
}

static apr_status_t forget(void *nothing)
{
    stocks = NULL;
    mf_stock_forget_servers();
    return APR_SUCCESS;
}

static apr_status_t unload(void *module)
{
    mf_stock *m = module;

    if (m->host.module_index >= 0)
        ap_remove_loaded_module(&m->host);
    mf_stock_providers_end(m);
    rf_domain_destroy(m->domain);
    rf_module_destroy(m->handle);
    rf_error_clear();
    m->domain = NULL;
    pthread_mutex_destroy(&m->lock);
    return APR_SUCCESS;
}

static const char NO_STOCK_MODULE[] = "it does not answer as a stock module";

static const char *wrong(cmd_parms *cmd, const mf_stock *m, const char *why)
{
    if (rf_error())
        why = rf_error()->message;
    why = apr_psprintf(cmd->pool, "FencedLoadModule %s: %s: %s; make the file with stock.sh of Ringfence's integrations/httpd", m->name,
                       m->path, why);
    rf_error_clear();
    return why;
}

/* The directories that the module may read, by the names that they have for the server. */
static rf_status grant(rf_policy *policy, cmd_parms *cmd, int count, char *const dirs[])
{
    rf_status status = RF_OK;

    for (int i = 0; i < count && status == RF_OK; i++) {
        const char *dir = ap_server_root_relative(cmd->pool, dirs[i]);

        status = rf_policy_dir(policy, dir ? dir : dirs[i], dir ? dir : dirs[i], RF_RIGHTS_READ);
    }
    return status;
}

static rf_status make_domain(mf_stock *m, cmd_parms *cmd, int count, char *const dirs[])
{
    rf_import import = RF_IMPORT_INIT_CALLBACK("stock_ask", mf_stock_ask, m);
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    rf_policy *policy;
    rf_status status = rf_policy_create(&policy);

    if (status != RF_OK)
        return status;
    o.imports = &import;
    o.import_count = 1;
    o.policy = policy;
    o.time_limit = (apr_uint64_t)MF_TIME_LIMIT * 1000;
    o.data_stack = 1 << 20;
    if ((status = rf_policy_clocks(policy, 1)) == RF_OK && (status = rf_policy_randomness(policy, 1)) == RF_OK &&
        (status = grant(policy, cmd, count, dirs)) == RF_OK)
        status = rf_domain_create(m->handle, &o, &m->domain);
    rf_policy_destroy(policy);
    return status;
}

/* Asks the module what it is, and fills in what the server will know. What is wrong with it, or NULL. */
static const char *describe(mf_stock *m, apr_pool_t *pool)
{
    const mf_stock_trampoline *own = &mf_stock_trampolines[m->number];
    mf_stock_call call = { .m = m, .pool = pool };
    mf_stock_answer answer;
    stock_pack message;
    const char *name;
    int good;

    if (!mf_stock_begin(&call, &message))
        return NO_STOCK_MODULE;
    stock_put(&message, m->object);
    if (!mf_stock_enter(&call, STOCK_OPEN, &message, &answer))
        return NO_STOCK_MODULE;
    /* Before anything else is read: with another layout, it means something else. */
    if (stock_get(&answer.u) != stock_layout()) {
        mf_stock_answer_end(&answer);
        return "it was made for another version of mod_fenced";
    }
    m->host.version = (int)stock_get(&answer.u);
    m->host.minor_version = (int)stock_get(&answer.u);
    m->host.magic = (unsigned long)stock_get(&answer.u);
    m->host.flags = (int)stock_get(&answer.u);
    name = stock_get_text(&answer.u);
    for (int i = 0; i < STOCK_CONFIGS; i++)
        m->has[i] = stock_get(&answer.u) != 0;
    m->host.create_dir_config = own->create_dir;
    m->host.merge_dir_config = m->has[STOCK_MERGE_DIR] ? own->merge_dir : NULL;
    m->host.create_server_config = own->create_server;
    m->host.merge_server_config = m->has[STOCK_MERGE_SERVER] ? own->merge_server : NULL;
    m->host.register_hooks = own->register_hooks;
    m->host.cmds = mf_stock_commands(m, &answer.u, pool);
    if (name && strrchr(name, '/'))
        name = strrchr(name, '/') + 1;
    m->host.name = apr_pstrdup(pool, name ? name : "");
    good = !answer.u.bad && m->host.cmds && *m->host.name && m->host.magic == MODULE_MAGIC_COOKIE;
    mf_stock_answer_end(&answer);
    return good ? NULL : NO_STOCK_MODULE;
}

const char *mf_stock_load(cmd_parms *cmd, void *nothing, int count, char *const words[])
{
    mf_stock *m;
    const char *error;

    if (count < 2)
        return "FencedLoadModule takes a module's name, its file, and the directories that it may read";
    error = ap_check_cmd_context(cmd, GLOBAL_ONLY);
    if (error)
        return error;
    if (!stocks) {
        stocks = apr_array_make(cmd->pool, MF_STOCK_MOST, sizeof(mf_stock *));
        apr_pool_cleanup_register(cmd->pool, NULL, forget, apr_pool_cleanup_null);
    }
    for (int i = 0; i < stocks->nelts; i++) {
        m = APR_ARRAY_IDX(stocks, i, mf_stock *);
        if (strcmp(m->name, words[0]) == 0)
            return apr_psprintf(cmd->pool, "FencedLoadModule %s: it has been loaded already, at %s", m->name, m->where);
    }
    if (stocks->nelts == MF_STOCK_MOST)
        return apr_psprintf(cmd->pool, "FencedLoadModule: a server has at most %d of them", MF_STOCK_MOST);
    m = apr_pcalloc(cmd->pool, sizeof *m);
    m->name = words[0];
    m->path = ap_server_root_relative(cmd->pool, words[1]);
    m->where = cmd->config_file ? apr_psprintf(cmd->pool, "%s:%u", cmd->config_file->name, cmd->config_file->line_number) : "another place";
    m->number = (unsigned)stocks->nelts;
    m->generation = 1;
    m->host.module_index = -1;
    m->counters = &m->own;
    m->configs = apr_array_make(cmd->pool, 4, sizeof(ap_conf_vector_t *));
    if (!m->path)
        return apr_psprintf(cmd->pool, "FencedLoadModule %s: '%s' is no path", m->name, words[1]);
    pthread_mutex_init(&m->lock, NULL);
    apr_pool_cleanup_register(cmd->pool, m, unload, apr_pool_cleanup_null);
    if (rf_module_create(m->path, 0, &m->handle) != RF_OK || make_domain(m, cmd, count - 2, words + 2) != RF_OK)
        return wrong(cmd, m, NO_STOCK_MODULE);
    m->object = (apr_uint64_t)(apr_uintptr_t)rf_domain_find_object(m->domain, m->name, NULL);
    m->enter = RF_DLSYM(m->domain, uint64_t, stock_enter, (int, const void *, uint64_t));
    m->run = RF_DLSYM(m->domain, uint64_t, stock_run, (uint64_t, uint64_t, uint64_t, uint64_t, int));
    if (!m->object || !m->enter || !m->run)
        return wrong(cmd, m, NO_STOCK_MODULE);
    APR_ARRAY_PUSH(stocks, mf_stock *) = m;
    error = describe(m, cmd->pool);
    if (error)
        return wrong(cmd, m, error);
    if (m->host.version != MODULE_MAGIC_NUMBER_MAJOR)
        return apr_psprintf(cmd->pool, "FencedLoadModule %s: %s was made for another version of the server: %d, not %d; make it again", m->name,
                            m->path, m->host.version, MODULE_MAGIC_NUMBER_MAJOR);
    error = ap_add_loaded_module(&m->host, cmd->pool, m->name);
    if (error)
        return error;
    if (m->host.module_index < 0)
        return wrong(cmd, m, NO_STOCK_MODULE);
    ap_single_module_configure(cmd->pool, cmd->server, &m->host);
    return NULL;
}

int mf_stock_post_config(apr_pool_t *pool, server_rec *s)
{
    mf_stock_counters *counters;

    if (!stocks)
        return OK;
    counters = mf_shared_counters(sizeof *counters * (apr_size_t)stocks->nelts, pool, s);
    if (!counters)
        return HTTP_INTERNAL_SERVER_ERROR;
    for (int i = 0; i < stocks->nelts; i++)
        APR_ARRAY_IDX(stocks, i, mf_stock *)->counters = &counters[i];
    return mf_stock_run_server_hooks(STOCK_HOOK_post_config, pool, s);
}

void mf_stock_child_init(apr_pool_t *pool, server_rec *s)
{
    if (!stocks)
        return;
    mf_stock_run_server_hooks(STOCK_HOOK_child_init, pool, s);
    if (mf_stock_images_make(s) != APR_SUCCESS)
        return;
    mf_stock_order_hooks();
    for (int i = 0; i < stocks->nelts; i++)
        mf_stock_keep(APR_ARRAY_IDX(stocks, i, mf_stock *), s);
}

/* What LogLevel asks for a module by its symbol: those of mod_so, and fenced ones. */
static APR_OPTIONAL_FN_TYPE(ap_find_loaded_module_symbol) *find_loaded;

static module *find_symbol(server_rec *s, const char *name)
{
    for (int i = 0; stocks && i < stocks->nelts; i++)
        if (strcmp(APR_ARRAY_IDX(stocks, i, mf_stock *)->name, name) == 0)
            return &APR_ARRAY_IDX(stocks, i, mf_stock *)->host;
    return find_loaded ? find_loaded(s, name) : NULL;
}

void mf_stock_hooks(void)
{
    find_loaded = APR_RETRIEVE_OPTIONAL_FN(ap_find_loaded_module_symbol);
    apr_dynamic_fn_register("ap_find_loaded_module_symbol", (apr_opt_fn_t *)find_symbol);
}
