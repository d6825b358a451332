/* Providers of fenced stock modules: what the server's own modules ask to authorize and to authenticate. */
#include "stock.h"

#include "ap_provider.h"
#include "mod_auth.h"

enum { PROVIDERS = 16 /* of all modules */ };

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

void mf_stock_providers_end(mf_stock *m)
{
    for (int i = 0; i < PROVIDERS; i++)
        if (all[i].m == m)
            all[i].m = NULL;
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
    if (!mf_stock_unpack_request(&call, &answer.u) || result < 0 || result > most)
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

#define ALL(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
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
ALL(FUNCTIONS)

#define AUTHZ(k) { authorize_##k, parse_##k },
#define AUTHZ_SILENT(k) { authorize_##k, NULL },
#define AUTHN(k) { authenticate_##k, NULL },
#define AUTHN_HASH(k) { authenticate_##k, find_hash_##k },
static const authz_provider authz[] = { ALL(AUTHZ) }, authz_silent[] = { ALL(AUTHZ_SILENT) };
static const authn_provider authn[] = { ALL(AUTHN) }, authn_hash[] = { ALL(AUTHN_HASH) };

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
