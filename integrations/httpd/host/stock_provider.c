/* Providers of fenced stock modules: what the server's own modules ask to authorize and to authenticate; optional functions; and what others'
 * providers have made for fenced modules. */
#include "stock.h"

#include "ap_provider.h"
#include "mod_auth.h"

enum { PROVIDERS = 64 /* of all modules */ };

/* A provider that a module has registered. The server calls its functions without saying whose they are: each has a place here. */
static struct {
    mf_stock *m; /* NULL: none */
    apr_uint64_t address;
} all[PROVIDERS];

/* What a module has made of a Require line. */
typedef struct {
    apr_uint64_t address;
    unsigned generation;
} parsed;

enum { FUNCTIONS_CALLED = 3 };

/* Those that the server calls: their types are known by their names. */
static const char *const names[FUNCTIONS_CALLED] = { "authn_ap_auth_type", "authn_ap_auth_name", "authz_some_auth_required" };
static struct {
    mf_stock *m;
    apr_uint64_t address;
} functions[FUNCTIONS_CALLED];

void mf_stock_providers_end(mf_stock *m)
{
    for (int i = 0; i < PROVIDERS; i++)
        if (all[i].m == m)
            all[i].m = NULL;
    for (int i = 0; i < FUNCTIONS_CALLED; i++)
        if (functions[i].m == m)
            functions[i].m = NULL;
}

static const char *parse(int k, cmd_parms *cmd, const char *line, const void **result)
{
    mf_stock_call call = { .m = all[k].m, .cmd = cmd, .pool = cmd->pool, .server = cmd->server };
    parsed *made = apr_pcalloc(cmd->pool, sizeof *made);
    mf_stock_answer answer;
    stock_pack message;
    const char *error;

    if (!mf_stock_begin(&call, &message))
        return apr_psprintf(cmd->pool, "the fenced module %s has failed", call.m->name);
    stock_put(&message, STOCK_PARSE_REQUIRE);
    stock_put(&message, all[k].address);
    mf_stock_pack_directive(call.m, &message, cmd);
    stock_put_text(&message, line);
    if (!mf_stock_enter(&call, STOCK_PROVIDER, &message, &answer))
        return apr_psprintf(cmd->pool, "the fenced module %s has failed: see the error log", call.m->name);
    error = apr_pstrdup(cmd->pool, stock_get_text(&answer.u));
    made->address = stock_get(&answer.u);
    made->generation = call.m->ready ? call.m->generation : 0;
    if (answer.u.bad)
        error = "the fenced module gave no answer that can be read";
    mf_stock_answer_end(&answer);
    *result = made;
    return error;
}

/* Asks for a request. A result from 0 to `most`, or -1. */
static int check(int k, stock_provide what, request_rec *r, const char *one, const char *two, const parsed *line, int most, char **text)
{
    mf_stock *m = all[k].m;
    mf_stock_call call = { .m = m, .r = r, .pool = r->pool };
    int good_line = !line || line->generation == 0 || line->generation == m->generation, result = -1;
    mf_stock_answer answer;
    stock_pack message;

    if (mf_stock_failed(r) || !good_line || !mf_stock_begin(&call, &message)) {
        mf_stock_fail(r);
        return -1;
    }
    stock_put(&message, what);
    stock_put(&message, all[k].address);
    if (!mf_stock_pack_request(&call, &message)) {
        stock_pack_end(&message);
        mf_stock_fail(r);
        return -1;
    }
    stock_put_text(&message, one);
    stock_put_text(&message, two);
    stock_put(&message, line ? line->address : 0);
    if (!mf_stock_enter(&call, STOCK_PROVIDER, &message, &answer)) {
        mf_stock_fail(r);
        return -1;
    }
    result = (int)stock_get(&answer.u);
    if (text)
        *text = apr_pstrdup(r->pool, stock_get_text(&answer.u));
    else
        stock_get_text(&answer.u);
    if (!mf_stock_unpack_request(&call, &answer.u, 1) || result < 0 || result > most)
        result = -1;
    mf_stock_answer_end(&answer);
    return result;
}

static authz_status authorize(int k, request_rec *r, const char *line, const void *made)
{
    int result = check(k, STOCK_CHECK_AUTHORIZATION, r, line, NULL, made, AUTHZ_DENIED_NO_USER, NULL);

    return result < 0 ? AUTHZ_GENERAL_ERROR : (authz_status)result;
}

static authn_status authenticate(int k, request_rec *r, const char *user, const char *password)
{
    int result = check(k, STOCK_CHECK_PASSWORD, r, user, password, NULL, AUTH_GENERAL_ERROR, NULL);

    return result < 0 ? AUTH_GENERAL_ERROR : (authn_status)result;
}

static authn_status find_hash(int k, request_rec *r, const char *user, const char *realm, char **hash)
{
    int result = check(k, STOCK_REALM_HASH, r, user, realm, NULL, AUTH_GENERAL_ERROR, hash);

    return result < 0 ? AUTH_GENERAL_ERROR : (authn_status)result;
}

#define FUNCTIONS(k)                                                                                                                        \
    static const char *parse_##k(cmd_parms *cmd, const char *line, const void **made)                                                       \
    {                                                                                                                                       \
        return parse(k, cmd, line, made);                                                                                                   \
    }                                                                                                                                       \
    static authz_status authorize_##k(request_rec *r, const char *line, const void *made)                                                   \
    {                                                                                                                                       \
        return authorize(k, r, line, made);                                                                                                 \
    }                                                                                                                                       \
    static authn_status authenticate_##k(request_rec *r, const char *user, const char *password)                                            \
    {                                                                                                                                       \
        return authenticate(k, r, user, password);                                                                                          \
    }                                                                                                                                       \
    static authn_status find_hash_##k(request_rec *r, const char *user, const char *realm, char **hash)                                     \
    {                                                                                                                                       \
        return find_hash(k, r, user, realm, hash);                                                                                          \
    }
STOCK_64(FUNCTIONS)

#define AUTHZ(k) { authorize_##k, parse_##k },
#define AUTHZ_SILENT(k) { authorize_##k, NULL },
#define AUTHN(k) { authenticate_##k, NULL },
#define AUTHN_HASH(k) { authenticate_##k, find_hash_##k },
static const authz_provider authz[] = { STOCK_64(AUTHZ) }, authz_silent[] = { STOCK_64(AUTHZ_SILENT) };
static const authn_provider authn[] = { STOCK_64(AUTHN) }, authn_hash[] = { STOCK_64(AUTHN_HASH) };

/* Registers one with the server. 0: that cannot be. */
int mf_stock_add_provider(mf_stock *m, stock_unpack *u, apr_pool_t *pool)
{
    const char *group = stock_get_text(u), *name = stock_get_text(u), *version = stock_get_text(u);
    apr_uint64_t address = stock_get(u), type = stock_get(u), more = stock_get(u);
    const void *functions;
    int k = 0;

    while (k < PROVIDERS && all[k].m)
        k++;
    if (u->bad || !group || !name || !version || k == PROVIDERS)
        return 0;
    if (strcmp(group, AUTHZ_PROVIDER_GROUP) == 0 && strcmp(version, AUTHZ_PROVIDER_VERSION) == 0)
        functions = more ? &authz[k] : &authz_silent[k];
    else if (strcmp(group, AUTHN_PROVIDER_GROUP) == 0 && strcmp(version, AUTHN_PROVIDER_VERSION) == 0)
        functions = more ? &authn_hash[k] : &authn[k];
    else
        return 0;
    all[k].m = m;
    all[k].address = address;
    return ap_register_auth_provider(pool, apr_pstrdup(pool, group), apr_pstrdup(pool, name), apr_pstrdup(pool, version), functions,
                                     (int)type) == APR_SUCCESS;
}

/* ---------------------------------------------------------------------------------------------------- optional functions */

static int ask_function(int which, stock_provide what, request_rec *r, const char **text)
{
    mf_stock *m = functions[which].m;
    mf_stock_call call = { .m = m, .r = r, .pool = r->pool };
    mf_stock_answer answer;
    stock_pack message;
    int result;

    if (!m || mf_stock_failed(r) || !mf_stock_begin(&call, &message)) {
        mf_stock_fail(r);
        return 1;
    }
    stock_put(&message, what);
    stock_put(&message, functions[which].address);
    if (!mf_stock_pack_request(&call, &message)) {
        stock_pack_end(&message);
        mf_stock_fail(r);
        return 1;
    }
    stock_put_text(&message, NULL);
    stock_put_text(&message, NULL);
    stock_put(&message, 0);
    if (!mf_stock_enter(&call, STOCK_PROVIDER, &message, &answer)) {
        mf_stock_fail(r);
        return 1;
    }
    result = (int)stock_get(&answer.u) != 0;
    *text = apr_pstrdup(r->pool, stock_get_text(&answer.u));
    if (!mf_stock_unpack_request(&call, &answer.u, 1))
        mf_stock_fail(r);
    mf_stock_answer_end(&answer);
    return result;
}

static const char *auth_type(request_rec *r)
{
    const char *text = NULL;

    ask_function(0, STOCK_TEXT_OF, r, &text);
    return text;
}

static const char *auth_name(request_rec *r)
{
    const char *text = NULL;

    ask_function(1, STOCK_TEXT_OF, r, &text);
    return text;
}

/* Of a module that fails: yes. */
static int some_auth_required(request_rec *r)
{
    const char *text;

    return ask_function(2, STOCK_NUMBER_OF, r, &text);
}

/* Those of other names are for modules, which get none of each other's. 0: that cannot be. */
int mf_stock_add_function(mf_stock *m, stock_unpack *u)
{
    const char *name = stock_get_text(u);
    apr_uint64_t address = stock_get(u);
    int which = 0;

    if (u->bad || !name)
        return 0;
    while (which < FUNCTIONS_CALLED && strcmp(names[which], name) != 0)
        which++;
    if (which == FUNCTIONS_CALLED)
        return 1;
    functions[which].m = m;
    functions[which].address = address;
    if (which == 2)
        apr_dynamic_fn_register(names[which], (apr_opt_fn_t *)some_auth_required);
    else
        apr_dynamic_fn_register(names[which], (apr_opt_fn_t *)(which ? auth_name : auth_type));
    return 1;
}

/* -------------------------------------------------------------------------------------------------- lines of others */

/* What a provider has made of a Require line of the module, as long as the memory that it was made in. */
struct mf_stock_line {
    struct mf_stock_line *next;
    mf_stock *m;
    apr_uint64_t number;
    const void *provider, *made;
    apr_pool_t *pool;
    int stays; /* it is of the server's configuration */
};

static apr_status_t forget_line(void *line)
{
    struct mf_stock_line *gone = line, **at = &gone->m->lines;

    pthread_mutex_lock(&gone->m->lock);
    while (*at && *at != gone)
        at = &(*at)->next;
    if (*at)
        *at = gone->next;
    pthread_mutex_unlock(&gone->m->lock);
    return APR_SUCCESS;
}

/* A number for it, which is never 0: who parses lines need not do without. */
apr_uint64_t mf_stock_keep_line(mf_stock *m, const void *provider, const void *made, apr_pool_t *pool)
{
    struct mf_stock_line *line = apr_pcalloc(pool, sizeof *line);

    *line = (struct mf_stock_line){ NULL, m, 0, provider, made, pool, !m->ready };
    pthread_mutex_lock(&m->lock);
    line->number = ++m->last_line;
    line->next = m->lines;
    m->lines = line;
    pthread_mutex_unlock(&m->lock);
    apr_pool_cleanup_register(pool, line, forget_line, apr_pool_cleanup_null);
    return line->number;
}

/* Of the configuration, or of a .htaccess file of this request, whose memory lives at least as long. 0: there is none. */
int mf_stock_find_line(mf_stock *m, apr_uint64_t number, const void *provider, const request_rec *r, const void **made)
{
    const struct mf_stock_line *line;
    int found;

    pthread_mutex_lock(&m->lock);
    for (line = m->lines; line && line->number != number; line = line->next)
        ;
    found = line && line->provider == provider && (line->stays || apr_pool_is_ancestor(line->pool, r->pool));
    if (found)
        *made = line->made;
    pthread_mutex_unlock(&m->lock);
    return found;
}

ap_conf_vector_t *mf_stock_config(const mf_stock *m, apr_uint64_t number)
{
    return number && number <= (apr_uint64_t)m->configs->nelts ? APR_ARRAY_IDX(m->configs, (int)number - 1, ap_conf_vector_t *) : NULL;
}
