/* Providers and optional functions: what the module registers for others, and what it gets from them. Those of other modules are
 * proxies: each call is a question. */
#include "inside.h"

#include "ap_provider.h"
#include "apr_optional.h"
#include "mod_auth.h"

#include <pthread.h>

enum { OWN_ONES = 64, OTHERS = 64, FUNCTIONS = 16 };

/* The module's own: it gets them as they are. */
static struct {
    const char *group, *name;
    const void *provider;
} own[OWN_ONES];
static unsigned own_count;

apr_status_t ap_register_auth_provider(apr_pool_t *pool, const char *group, const char *name, const char *version, const void *provider,
                                       int type)
{
    int authorizes = strcmp(group, AUTHZ_PROVIDER_GROUP) == 0;
    question q;

    if (own_count == OWN_ONES)
        return APR_ENOMEM;
    own[own_count].group = apr_pstrdup(stock_pool, group);
    own[own_count].name = apr_pstrdup(stock_pool, name);
    own[own_count++].provider = provider;
    stock_ask_begin(&q, STOCK_ASK_REGISTER_PROVIDER);
    stock_put_text(&q.out, group);
    stock_put_text(&q.out, name);
    stock_put_text(&q.out, version);
    stock_put(&q.out, (uintptr_t)provider);
    stock_put(&q.out, (uint64_t)type);
    stock_put(&q.out, authorizes ? ((const authz_provider *)provider)->parse_require_line != NULL
                                 : ((const authn_provider *)provider)->get_realm_hash != NULL);
    stock_ask_send(&q, STOCK_ASK_REGISTER_PROVIDER);
    stock_ask_end(&q, STOCK_ASK_REGISTER_PROVIDER);
    return APR_SUCCESS;
}

/* ------------------------------------------------------------------------------------------------------ those of others */

static struct {
    const char *group, *name;
    authz_provider authz;
    authn_provider authn;
} others[OTHERS];
static unsigned other_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of them: .htaccess files name providers, too */

static const char *ask_parse(int k, cmd_parms *cmd, const char *line, const void **made)
{
    const char *error;
    question q;

    stock_ask_begin(&q, STOCK_ASK_PARSE_REQUIRE);
    stock_put_text(&q.out, others[k].name);
    stock_put_text(&q.out, line);
    stock_ask_send(&q, STOCK_ASK_PARSE_REQUIRE);
    error = apr_pstrdup(cmd->pool, stock_get_text(&q.in));
    *made = (const void *)(uintptr_t)stock_get(&q.in); /* the server's number for it */
    stock_ask_end(&q, STOCK_ASK_PARSE_REQUIRE);
    return error;
}

static int ask(int k, stock_provide what, request_rec *r, const char *one, const char *two, const void *made, char **text)
{
    int result;
    question q;

    stock_ask_begin(&q, STOCK_ASK_CALL_PROVIDER);
    stock_put(&q.out, stock_number(r));
    stock_put(&q.out, what);
    stock_put_text(&q.out, others[k].group);
    stock_put_text(&q.out, others[k].name);
    stock_put_text(&q.out, one);
    stock_put_text(&q.out, two);
    stock_put(&q.out, (uintptr_t)made);
    stock_put(&q.out, stock_other_config(r));
    stock_ask_send(&q, STOCK_ASK_CALL_PROVIDER);
    result = (int)stock_get(&q.in);
    if (text)
        *text = apr_pstrdup(r->pool, stock_get_text(&q.in));
    else
        stock_get_text(&q.in);
    stock_ask_end(&q, STOCK_ASK_CALL_PROVIDER);
    return result;
}

#define PROXY(k)                                                                                                                            \
    static const char *parse_##k(cmd_parms *cmd, const char *line, const void **made)                                                       \
    {                                                                                                                                       \
        return ask_parse(k, cmd, line, made);                                                                                               \
    }                                                                                                                                       \
    static authz_status authorize_##k(request_rec *r, const char *line, const void *made)                                                   \
    {                                                                                                                                       \
        return (authz_status)ask(k, STOCK_CHECK_AUTHORIZATION, r, line, NULL, made, NULL);                                                  \
    }                                                                                                                                       \
    static authn_status authenticate_##k(request_rec *r, const char *user, const char *password)                                            \
    {                                                                                                                                       \
        return (authn_status)ask(k, STOCK_CHECK_PASSWORD, r, user, password, NULL, NULL);                                                   \
    }                                                                                                                                       \
    static authn_status find_hash_##k(request_rec *r, const char *user, const char *realm, char **hash)                                     \
    {                                                                                                                                       \
        return (authn_status)ask(k, STOCK_REALM_HASH, r, user, realm, NULL, hash);                                                          \
    }
STOCK_64(PROXY)
#define AUTHZ(k) { authorize_##k, parse_##k },
#define AUTHN(k) { authenticate_##k, find_hash_##k },
static const authz_provider proxy_authz[] = { STOCK_64(AUTHZ) };
static const authn_provider proxy_authn[] = { STOCK_64(AUTHN) };

/* `more`: 1: there is one, 2: it has the second function, too. */
static const void *add_other(const char *group, const char *name, int more)
{
    unsigned k = 0;

    pthread_mutex_lock(&lock);
    while (k < other_count && (strcmp(others[k].group, group) != 0 || strcmp(others[k].name, name) != 0))
        k++;
    if (k == other_count && k < OTHERS) {
        others[k].group = strdup(group);
        others[k].name = strdup(name);
        others[k].authz = proxy_authz[k];
        others[k].authn = proxy_authn[k];
        if (more < 2) {
            others[k].authz.parse_require_line = NULL;
            others[k].authn.get_realm_hash = NULL;
        }
        other_count++;
    }
    pthread_mutex_unlock(&lock);
    if (k == OTHERS)
        return NULL;
    return strcmp(group, AUTHZ_PROVIDER_GROUP) == 0 ? (const void *)&others[k].authz : (const void *)&others[k].authn;
}

void *ap_lookup_provider(const char *group, const char *name, const char *version)
{
    question q;
    int more;

    for (unsigned i = 0; i < own_count; i++)
        if (strcmp(own[i].group, group) == 0 && strcmp(own[i].name, name) == 0)
            return (void *)(uintptr_t)own[i].provider;
    stock_ask_begin(&q, STOCK_ASK_FIND_PROVIDER);
    stock_put_text(&q.out, group);
    stock_put_text(&q.out, name);
    stock_put_text(&q.out, version);
    stock_ask_send(&q, STOCK_ASK_FIND_PROVIDER);
    more = (int)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_FIND_PROVIDER);
    return more ? (void *)(uintptr_t)add_other(group, name, more) : NULL;
}

/* ---------------------------------------------------------------------------------------------------- optional functions */

static struct {
    const char *name;
    apr_opt_fn_t *function;
} functions[FUNCTIONS];
static unsigned function_count;

/* The server takes those that it calls itself (host/stock_provider.c). */
void apr_dynamic_fn_register(const char *name, apr_opt_fn_t *function)
{
    question q;

    if (function_count == FUNCTIONS)
        abort();
    functions[function_count].name = apr_pstrdup(stock_pool, name);
    functions[function_count++].function = function;
    stock_ask_begin(&q, STOCK_ASK_REGISTER_FUNCTION);
    stock_put_text(&q.out, name);
    stock_put(&q.out, (uintptr_t)function);
    stock_ask_send(&q, STOCK_ASK_REGISTER_FUNCTION);
    stock_ask_end(&q, STOCK_ASK_REGISTER_FUNCTION);
}

/* The module's own; those of others are in other domains. */
apr_opt_fn_t *apr_dynamic_fn_retrieve(const char *name)
{
    for (unsigned i = 0; i < function_count; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].function;
    return NULL;
}

/* ----------------------------------------------------------------------------------------------------- being called */

static void parse(const authz_provider *provider, stock_unpack *u, stock_pack *p, apr_pool_t *pool)
{
    ap_directive_t directive = { 0 };
    cmd_parms cmd = { 0 };
    const void *made = NULL;

    stock_take_directive(u, &cmd, &directive, pool);
    stock_put_text(p, provider->parse_require_line(&cmd, apr_pstrdup(pool, stock_get_text(u)), &made));
    stock_put(p, (uintptr_t)made);
}

void stock_provider(stock_unpack *u, stock_pack *p, apr_pool_t *pool)
{
    stock_provide what = (stock_provide)stock_get(u);
    const void *provider = (const void *)(uintptr_t)stock_get(u), *made;
    const char *one, *two;
    char *text = NULL;
    request_rec *r;
    int result = OK;

    if (what == STOCK_PARSE_REQUIRE) {
        parse(provider, u, p, pool);
        return;
    }
    stock_entry->t = stock_take_requests(u);
    if (!stock_entry->t)
        abort();
    r = &stock_entry->t->r;
    pool = stock_entry->pool = r->pool;
    one = apr_pstrdup(pool, stock_get_text(u));
    two = apr_pstrdup(pool, stock_get_text(u));
    made = (const void *)(uintptr_t)stock_get(u);
    switch (what) {
    case STOCK_CHECK_AUTHORIZATION: result = (int)((const authz_provider *)provider)->check_authorization(r, one, made); break;
    case STOCK_CHECK_PASSWORD: result = (int)((const authn_provider *)provider)->check_password(r, one, two); break;
    case STOCK_REALM_HASH: result = (int)((const authn_provider *)provider)->get_realm_hash(r, one, two, &text); break;
    case STOCK_NUMBER_OF: result = ((int (*)(request_rec *))(uintptr_t)provider)(r); break;
    case STOCK_TEXT_OF: text = (char *)(uintptr_t)((const char *(*)(request_rec *))(uintptr_t)provider)(r); break;
    default: abort();
    }
    stock_put(p, (uint64_t)(int64_t)result);
    stock_put_text(p, text);
    stock_tell_changes(p);
}
