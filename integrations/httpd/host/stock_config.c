/* Directives and records of configuration of fenced stock modules: the server has a number for each record, the module its memory. */
#include "stock.h"

enum { DIRECTIVES = 512, WORDS = 256 };

/* What the server passes on with each directive. */
typedef struct {
    mf_stock *m;
    apr_uint64_t address; /* of the module's description of it */
} directive;

/* -------------------------------------------------------------------------------------------------------------- directives */

/* The directive that is read, without its words. */
void mf_stock_pack_directive(mf_stock *m, stock_pack *p, cmd_parms *cmd)
{
    mf_stock_pack_server(m, p, cmd->server);
    stock_put(p, (apr_uint64_t)(unsigned)cmd->override);
    stock_put(p, (apr_uint64_t)cmd->limited);
    stock_put_text(p, cmd->path);
    stock_put_text(p, cmd->directive ? cmd->directive->directive : NULL);
    stock_put_text(p, cmd->directive ? cmd->directive->args : NULL);
    stock_put_text(p, cmd->directive ? cmd->directive->filename : NULL);
    stock_put(p, cmd->directive ? (apr_uint64_t)cmd->directive->line_num : 0);
    stock_put(p, cmd->pool == cmd->temp_pool);
}

static const char *run(cmd_parms *cmd, void *record, unsigned count, const char *const words[], int flag)
{
    const directive *d = cmd->cmd->cmd_data;
    const mf_stock_record *config = record;
    mf_stock_call call = { .m = d->m, .cmd = cmd, .pool = cmd->pool, .server = cmd->server };
    mf_stock_record *of_server;
    mf_stock_answer answer;
    stock_pack message;
    const char *error;
    apr_uint64_t address;

    if (!mf_stock_begin(&call, &message))
        return apr_psprintf(cmd->pool, "the fenced module %s has failed", d->m->name);
    stock_put(&message, d->address);
    stock_put(&message, config ? config->address : 0);
    mf_stock_pack_directive(d->m, &message, cmd);
    stock_put(&message, (apr_uint64_t)flag);
    stock_put(&message, count);
    for (unsigned i = 0; i < count; i++)
        stock_put_text(&message, words[i]);
    if (!mf_stock_enter(&call, STOCK_COMMAND, &message, &answer))
        return apr_psprintf(cmd->pool, "the fenced module %s has failed: see the error log", d->m->name);
    error = apr_pstrdup(cmd->pool, stock_get_text(&answer.u));
    /* A module may put another record in the place of the server's. */
    address = stock_get(&answer.u);
    of_server = ap_get_module_config(cmd->server->module_config, &d->m->host);
    if (!answer.u.bad && of_server && of_server->address != address && !d->m->ready)
        of_server->address = address;
    if (answer.u.bad)
        error = apr_psprintf(cmd->pool, "the fenced module %s gave no answer that can be read", d->m->name);
    mf_stock_answer_end(&answer);
    return error;
}

static const char *no_args(cmd_parms *cmd, void *record)
{
    return run(cmd, record, 0, NULL, 0);
}

static const char *one(cmd_parms *cmd, void *record, const char *a)
{
    return run(cmd, record, 1, &a, 0);
}

static const char *two(cmd_parms *cmd, void *record, const char *a, const char *b)
{
    const char *words[] = { a, b };

    return run(cmd, record, 2, words, 0);
}

static const char *three(cmd_parms *cmd, void *record, const char *a, const char *b, const char *c)
{
    const char *words[] = { a, b, c };

    return run(cmd, record, 3, words, 0);
}

static const char *flag(cmd_parms *cmd, void *record, int on)
{
    return run(cmd, record, 0, NULL, on != 0);
}

static const char *many(cmd_parms *cmd, void *record, int count, char *const words[])
{
    if (count > WORDS)
        return apr_psprintf(cmd->pool, "%s takes at most %d words", cmd->cmd->name, WORDS);
    return run(cmd, record, (unsigned)count, (const char *const *)words, 0);
}

static int set_function(command_rec *c)
{
    switch (c->args_how) {
    case NO_ARGS: c->AP_NO_ARGS = no_args; return 1;
    case RAW_ARGS: c->AP_RAW_ARGS = one; return 1;
    case TAKE1:
    case ITERATE: c->AP_TAKE1 = one; return 1;
    case TAKE2:
    case TAKE12:
    case ITERATE2: c->AP_TAKE2 = two; return 1;
    case TAKE3:
    case TAKE23:
    case TAKE13:
    case TAKE123: c->AP_TAKE3 = three; return 1;
    case FLAG: c->AP_FLAG = flag; return 1;
    case TAKE_ARGV: c->AP_TAKE_ARGV = many; return 1;
    default: return 0;
    }
}

/* The directives that a module describes, as the server wants them. NULL: they make no sense. */
const command_rec *mf_stock_commands(mf_stock *m, stock_unpack *u, apr_pool_t *pool)
{
    apr_uint64_t count = stock_get(u);
    command_rec *all;

    if (count > DIRECTIVES)
        return NULL;
    all = apr_pcalloc(pool, (count + 1) * sizeof *all);
    for (apr_uint64_t i = 0; i < count && !u->bad; i++) {
        directive *d = apr_pcalloc(pool, sizeof *d);

        d->m = m;
        d->address = stock_get(u);
        all[i].name = apr_pstrdup(pool, stock_get_text(u));
        all[i].errmsg = apr_pstrdup(pool, stock_get_text(u));
        all[i].req_override = (int)stock_get(u);
        all[i].args_how = (enum cmd_how)stock_get(u);
        all[i].cmd_data = d;
        if (!all[i].name || !set_function(&all[i]))
            return NULL;
    }
    return all;
}

/* ----------------------------------------------------------------------------------------------------------------- records */

/* Creates or merges records. A module that does not create any gets none. */
void *mf_stock_configure(unsigned number, stock_config what, apr_pool_t *pool, const char *dir, server_rec *s, void *base, void *more)
{
    mf_stock *m = APR_ARRAY_IDX(mf_stocks(), (int)number, mf_stock *);
    const mf_stock_record *outer = base, *inner = more;
    mf_stock_record *record = apr_pcalloc(pool, sizeof *record);
    mf_stock_call call = { .m = m, .pool = pool, .server = s };
    mf_stock_answer answer;
    stock_pack message;

    record->generation = m->ready ? m->generation : 0;
    if (!m->has[what] || !mf_stock_begin(&call, &message))
        return record;
    stock_put(&message, what);
    stock_put(&message, outer ? outer->address : 0);
    stock_put(&message, inner ? inner->address : 0);
    stock_put_text(&message, dir);
    stock_put(&message, s != NULL);
    if (s)
        mf_stock_pack_server(m, &message, s);
    if (mf_stock_enter(&call, STOCK_CONFIG, &message, &answer)) {
        record->address = stock_get(&answer.u);
        mf_stock_answer_end(&answer);
    }
    return record;
}
