/* Providers that the module registers, and what a module that registers none of its own functions gets from others: nothing. */
#include "inside.h"

#include "ap_provider.h"
#include "apr_optional.h"
#include "mod_auth.h"

apr_status_t ap_register_auth_provider(apr_pool_t *pool, const char *group, const char *name, const char *version, const void *provider,
                                       int type)
{
    int authorizes = strcmp(group, AUTHZ_PROVIDER_GROUP) == 0;
    question q;

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

/* Functions of other modules are in other domains. */
apr_opt_fn_t *apr_dynamic_fn_retrieve(const char *name)
{
    return NULL;
}

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
    char *hash = NULL;
    request_rec *r;
    int result;

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
    case STOCK_REALM_HASH: result = (int)((const authn_provider *)provider)->get_realm_hash(r, one, two, &hash); break;
    default: abort();
    }
    stock_put(p, (uint64_t)(int64_t)result);
    stock_put_text(p, hash);
    stock_tell_changes(p);
}
