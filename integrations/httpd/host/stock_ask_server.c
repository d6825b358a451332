/* What fenced stock modules ask of the server itself: its names, its scoreboard, and its other modules' providers. */
#include "stock_ask.h"

#include "ap_mpm.h"
#include "ap_provider.h"
#include "apr_optional_hooks.h"
#include "apr_user.h"
#include "mod_auth.h"
#include "mod_status.h"
#include "scoreboard.h"

void mf_stock_op_LOAD(mf_stock_question *a)
{
    ap_sload_t load = { 0 };
    ap_loadavg_t average = { 0 };

    ap_get_sload(&load);
    ap_get_loadavg(&average);
    stock_put_bytes(&a->out, &load, sizeof load);
    stock_put_bytes(&a->out, &average, sizeof average);
}

/* A name of the system's. NULL: there is none. */
static const char *name_of(stock_server_text which, const char *about, apr_pool_t *pool)
{
    apr_uint64_t number = about ? (apr_uint64_t)apr_atoi64(about) : 0;
    apr_status_t status = APR_EINVAL;
    char *name = NULL;

    if (!about || !pool)
        return NULL;
    switch (which) {
    case STOCK_SERVER_USER: status = apr_uid_name_get(&name, (apr_uid_t)number, pool); break;
    case STOCK_SERVER_GROUP: status = apr_gid_name_get(&name, (apr_gid_t)number, pool); break;
    default: status = apr_uid_homepath_get(&name, about, pool);
    }
    return status == APR_SUCCESS ? name : NULL;
}

/* Whether the words of a directive have that one, bare or in quotes. */
static int has_word(const char *words, const char *word)
{
    apr_size_t length = strlen(word);

    for (const char *at = words; length && at && (at = strstr(at, word)); at++)
        if ((at == words || strchr(" \t\"'", at[-1])) && (!at[length] || strchr(" \t\"'", at[length])))
            return 1;
    return 0;
}

/* The environment may hold secrets: a module sees of it what all pages get (ap_add_common_vars), and what the directive names that it is called
 * for (PassEnv). */
static const char *variable(const mf_stock_call *call, const char *name)
{
    static const char *const public[] = { "LD_LIBRARY_PATH", "PATH", "TZ" };

    for (unsigned i = 0; name && i < sizeof public / sizeof *public; i++)
        if (strcmp(name, public[i]) == 0)
            return getenv(name);
    if (!name || !call || !call->cmd || !call->cmd->directive || !has_word(call->cmd->directive->args, name))
        return NULL;
    return getenv(name);
}

void mf_stock_op_SERVER_TEXT(mf_stock_question *a)
{
    apr_uint64_t which = stock_get(&a->in);
    const char *text = stock_get_text(&a->in);
    char number[16];

    switch ((stock_server_text)which) {
    case STOCK_SERVER_BANNER: text = ap_get_server_banner(); break;
    case STOCK_SERVER_DESCRIPTION: text = ap_get_server_description(); break;
    case STOCK_SERVER_BUILT: text = ap_get_server_built(); break;
    case STOCK_SERVER_MPM: text = ap_show_mpm(); break;
    case STOCK_SERVER_MODULE: text = text && ap_find_linked_module(text) ? text : NULL; break;
    case STOCK_SERVER_USER:
    case STOCK_SERVER_GROUP:
    case STOCK_SERVER_HOME: text = name_of((stock_server_text)which, text, a->call ? a->call->pool : NULL); break;
    case STOCK_SERVER_RESPONSE:
        apr_snprintf(number, sizeof number, "%d", text ? ap_index_of_response(atoi(text)) : -1);
        text = number;
        break;
    case STOCK_SERVER_VARIABLE: text = variable(a->call, text); break;
    default: text = NULL;
    }
    stock_put_text(&a->out, text);
}

void mf_stock_op_MPM_QUERY(mf_stock_question *a)
{
    int result = 0;
    apr_status_t status = ap_mpm_query((int)stock_get(&a->in), &result);

    stock_put(&a->out, (apr_uint64_t)(apr_int64_t)status);
    stock_put(&a->out, (apr_uint64_t)(apr_int64_t)result);
}

/* A record of the scoreboard. Numbers and texts only: of threads, which the server tells by addresses, nothing. */
void mf_stock_op_WORKER(mf_stock_question *a)
{
    int process = (int)stock_get(&a->in), thread = (int)stock_get(&a->in);
    const global_score *all = ap_exists_scoreboard_image() ? ap_get_scoreboard_global() : NULL;
    worker_score worker;

    if (!all || process < STOCK_WHOLE || process >= all->server_limit || thread < STOCK_WHOLE || thread >= all->thread_limit) {
        stock_put_bytes(&a->out, NULL, 0);
    } else if (process == STOCK_WHOLE) {
        stock_put_bytes(&a->out, all, sizeof *all);
    } else if (thread == STOCK_WHOLE) {
        stock_put_bytes(&a->out, ap_get_scoreboard_process(process), sizeof(process_score));
    } else {
        ap_copy_scoreboard_worker(&worker, process, thread);
        worker.tid = 0;
        stock_put_bytes(&a->out, &worker, sizeof worker);
    }
}

APR_IMPLEMENT_OPTIONAL_HOOK_RUN_ALL(ap, STATUS, int, status_hook, (request_rec *r, int flags), (r, flags), OK, DECLINED)

void mf_stock_op_STATUS_HOOK(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    int flags = (int)stock_get(&a->in);

    if (r)
        stock_put(&a->out, (apr_uint64_t)ap_run_status_hook(r, flags));
}

/* ------------------------------------------------------------------------------------------------------------- providers */

void mf_stock_op_REGISTER_PROVIDER(mf_stock_question *a)
{
    /* Directives make providers, too, while the server starts. */
    if (!a->call || !(a->call->hooking || (a->call->cmd && !a->m->ready)) || !mf_stock_add_provider(a->m, &a->in, a->call->pool))
        a->refused = "it registers a provider that cannot be";
}

void mf_stock_op_REGISTER_FUNCTION(mf_stock_question *a)
{
    if (!a->call || !a->call->hooking || !mf_stock_add_function(a->m, &a->in))
        a->refused = "it registers a function that cannot be";
}

static const char *version_of(const char *group)
{
    return group && strcmp(group, AUTHZ_PROVIDER_GROUP) == 0 ? AUTHZ_PROVIDER_VERSION :
           group && strcmp(group, AUTHN_PROVIDER_GROUP) == 0 ? AUTHN_PROVIDER_VERSION : NULL;
}

/* 0: there is none; 2: it has the second of its functions, too. */
void mf_stock_op_FIND_PROVIDER(mf_stock_question *a)
{
    const char *group = stock_get_text(&a->in), *name = stock_get_text(&a->in), *version = version_of(group);
    const void *provider = version && name ? ap_lookup_provider(group, name, version) : NULL;
    int authorizes = version && strcmp(group, AUTHZ_PROVIDER_GROUP) == 0, more;

    stock_get_text(&a->in); /* the version: there is but one */
    more = provider && (authorizes ? ((const authz_provider *)provider)->parse_require_line != NULL
                                   : ((const authn_provider *)provider)->get_realm_hash != NULL);
    stock_put(&a->out, !provider ? 0 : more ? 2 : 1);
}

/* What another's provider makes of a Require line is the server's to keep: the module gets a number. */
void mf_stock_op_PARSE_REQUIRE(mf_stock_question *a)
{
    const char *name = stock_get_text(&a->in), *line = stock_get_text(&a->in), *error;
    const authz_provider *provider = name ? ap_lookup_provider(AUTHZ_PROVIDER_GROUP, name, AUTHZ_PROVIDER_VERSION) : NULL;
    const void *made = NULL;

    if (!a->call || !a->call->cmd || !provider || !provider->parse_require_line || !line) {
        a->refused = "it has a line parsed outside of a directive, or by nobody";
        return;
    }
    error = provider->parse_require_line(a->call->cmd, apr_pstrdup(a->call->cmd->pool, line), &made);
    stock_put_text(&a->out, error);
    stock_put(&a->out, error ? 0 : mf_stock_keep_line(a->m, provider, made, a->call->cmd->pool));
}

static int call(request_rec *r, stock_provide what, const void *provider, const char *one, const char *two, const void *made, char **hash)
{
    switch (what) {
    case STOCK_CHECK_AUTHORIZATION: return (int)((const authz_provider *)provider)->check_authorization(r, one, made);
    case STOCK_CHECK_PASSWORD: return one && two ? (int)((const authn_provider *)provider)->check_password(r, one, two) : AUTH_DENIED;
    case STOCK_REALM_HASH:
        return one && two && ((const authn_provider *)provider)->get_realm_hash
                   ? (int)((const authn_provider *)provider)->get_realm_hash(r, one, two, hash)
                   : AUTH_USER_NOT_FOUND;
    default: return -1;
    }
}

/* Who authorizes relies on there being a line, and on what it has made of that. */
static int has_line(const authz_provider *provider, const char *text, apr_uint64_t line)
{
    return text && (line || !provider->parse_require_line);
}

void mf_stock_op_CALL_PROVIDER(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    stock_provide what = (stock_provide)stock_get(&a->in);
    const char *group = stock_get_text(&a->in), *name = stock_get_text(&a->in), *version = version_of(group);
    const char *one = stock_get_text(&a->in), *two = stock_get_text(&a->in);
    apr_uint64_t line = stock_get(&a->in), config = stock_get(&a->in);
    const void *provider = version && name ? ap_lookup_provider(group, name, version) : NULL, *made = NULL;
    ap_conf_vector_t *before, *more = config ? mf_stock_config(a->m, config) : NULL;
    int authorizes = version && strcmp(group, AUTHZ_PROVIDER_GROUP) == 0;
    char *hash = NULL;

    if (!r)
        return;
    if (!provider || (what == STOCK_CHECK_AUTHORIZATION) != authorizes || (config && !more) || (authorizes && !has_line(provider, one, line)) ||
        (line && !mf_stock_find_line(a->m, line, provider, r, &made))) {
        a->refused = "it asks a provider that is not there, or about a line that is not its own";
        return;
    }
    /* Texts that providers keep, in notes say, live as long as the request. */
    one = apr_pstrdup(r->pool, one);
    two = apr_pstrdup(r->pool, two);
    before = r->per_dir_config;
    if (more)
        r->per_dir_config = ap_merge_per_dir_configs(r->pool, before, more);
    stock_put(&a->out, (apr_uint64_t)call(r, what, provider, one, two, made, &hash));
    r->per_dir_config = before;
    stock_put_text(&a->out, hash);
}

/* --------------------------------------------------------------------------------------------------------- configuration */

void mf_stock_op_NEW_CONFIG(mf_stock_question *a)
{
    if (!a->call || !a->call->cmd || a->m->ready || a->m->configs->nelts == MF_STOCK_VECTORS) {
        a->refused = "it makes a configuration while there is none to be read, or too many";
        return;
    }
    APR_ARRAY_PUSH(a->m->configs, ap_conf_vector_t *) = ap_create_per_dir_config(a->call->cmd->pool);
    stock_put(&a->out, (apr_uint64_t)a->m->configs->nelts);
}

/* What is inside a section. Rights of .htaccess files grow by no more than what Require lines need. */
void mf_stock_op_WALK_CONFIG(mf_stock_question *a)
{
    cmd_parms *cmd = a->call ? a->call->cmd : NULL;
    apr_uint64_t config = stock_get(&a->in);
    unsigned override = (unsigned)stock_get(&a->in);
    apr_int64_t limited = (apr_int64_t)stock_get(&a->in), limited_before;
    ap_conf_vector_t *to = config ? mf_stock_config(a->m, config) : cmd ? cmd->context : NULL;
    ap_directive_t *directive;
    int override_before;

    if (!cmd || !cmd->directive || !to) {
        a->refused = "it reads a section outside of one";
        return;
    }
    directive = cmd->directive;
    override_before = cmd->override;
    limited_before = cmd->limited;
    cmd->override = (int)override & (cmd->override | OR_AUTHCFG | (cmd->pool == cmd->temp_pool ? 0 : ACCESS_CONF));
    cmd->limited = limited;
    stock_put_text(&a->out, ap_walk_config(directive->first_child, cmd, to));
    cmd->override = override_before;
    cmd->limited = limited_before;
    cmd->directive = directive;
}
