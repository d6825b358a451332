/* Directives, records of configuration, and servers. */
#include "inside.h"

enum { SERVERS = 4096, WORDS = 256, CONFIGS = 256 };

/* A server of the host's. */
typedef struct {
    server_rec s;
    uint64_t number;
    void *config[OWN + 1];
} server;

static server *servers[SERVERS];
static __thread cmd_parms *now;

cmd_parms *stock_command_now(void)
{
    return now;
}

static server *server_of(uint64_t number)
{
    if (number >= SERVERS)
        abort();
    if (!servers[number]) {
        server *one = apr_pcalloc(stock_pool, sizeof *one);

        one->number = number;
        one->s.module_config = (ap_conf_vector_t *)one->config;
        one->s.lookup_defaults = (ap_conf_vector_t *)one->config;
        servers[number] = one;
    }
    return servers[number];
}

server_rec *stock_server(uint64_t number)
{
    return &server_of(number)->s;
}

server_rec *stock_take_server(stock_unpack *u)
{
    server *one = server_of(stock_get(u));
    server_rec *s = &one->s;

    one->config[OWN] = (void *)(uintptr_t)stock_get(u);
    s->server_hostname = apr_pstrdup(stock_pool, stock_get_text(u));
    s->server_admin = apr_pstrdup(stock_pool, stock_get_text(u));
    s->server_scheme = apr_pstrdup(stock_pool, stock_get_text(u));
    s->defn_name = apr_pstrdup(stock_pool, stock_get_text(u));
    s->path = apr_pstrdup(stock_pool, stock_get_text(u));
    s->pathlen = s->path ? (int)strlen(s->path) : 0;
    s->port = (apr_port_t)stock_get(u);
    s->is_virtual = (char)stock_get(u);
    s->log.level = (int)stock_get(u);
    s->timeout = (apr_interval_time_t)stock_get(u);
    s->keep_alive_timeout = (apr_interval_time_t)stock_get(u);
    s->keep_alive_max = (int)stock_get(u);
    s->keep_alive = (int)stock_get(u);
    s->limit_req_line = (int)stock_get(u);
    s->limit_req_fieldsize = (int)stock_get(u);
    s->limit_req_fields = (int)stock_get(u);
    return s;
}

void *stock_server_record(const server_rec *s)
{
    return ((void **)s->module_config)[OWN];
}

/* ------------------------------------------------------------------------------------------------------------ description */

void stock_describe(module *m, stock_pack *p)
{
    uint64_t count = 0;

    m->module_index = OWN;
    stock_put(p, stock_layout());
    stock_put(p, (uint64_t)m->version);
    stock_put(p, (uint64_t)m->minor_version);
    stock_put(p, m->magic);
    stock_put(p, (uint64_t)m->flags);
    stock_put_text(p, m->name);
    stock_put(p, m->create_dir_config != NULL);
    stock_put(p, m->merge_dir_config != NULL);
    stock_put(p, m->create_server_config != NULL);
    stock_put(p, m->merge_server_config != NULL);
    while (m->cmds && m->cmds[count].name)
        count++;
    stock_put(p, count);
    for (uint64_t i = 0; i < count; i++) {
        const command_rec *c = &m->cmds[i];

        stock_put(p, (uint64_t)(uintptr_t)c);
        stock_put_text(p, c->name);
        stock_put_text(p, c->errmsg);
        stock_put(p, (uint64_t)c->req_override);
        stock_put(p, (uint64_t)c->args_how);
    }
}

void stock_configure(stock_unpack *u, stock_pack *p, apr_pool_t *pool)
{
    uint64_t what = stock_get(u);
    void *base = (void *)(uintptr_t)stock_get(u), *more = (void *)(uintptr_t)stock_get(u), *made = NULL;
    char *dir = apr_pstrdup(pool, stock_get_text(u));
    server_rec *s = stock_get(u) ? stock_take_server(u) : NULL;

    switch (what) {
    case STOCK_CREATE_DIR: made = stock_module->create_dir_config(pool, dir); break;
    case STOCK_MERGE_DIR: made = base && more ? stock_module->merge_dir_config(pool, base, more) : more ? more : base; break;
    case STOCK_CREATE_SERVER: made = stock_module->create_server_config(pool, s); break;
    case STOCK_MERGE_SERVER: made = base && more ? stock_module->merge_server_config(pool, base, more) : more ? more : base; break;
    }
    stock_put(p, (uint64_t)(uintptr_t)made);
}

/* ------------------------------------------------------------------------------------------------------------- directives */

static const char *call(const command_rec *c, cmd_parms *cmd, void *record, int flag, int count, const char *const w[])
{
    switch (c->args_how) {
    case NO_ARGS: return c->AP_NO_ARGS(cmd, record);
    case RAW_ARGS: return c->AP_RAW_ARGS(cmd, record, w[0]);
    case TAKE1:
    case ITERATE: return c->AP_TAKE1(cmd, record, w[0]);
    case TAKE2:
    case TAKE12:
    case ITERATE2: return c->AP_TAKE2(cmd, record, w[0], w[1]);
    case TAKE3:
    case TAKE23:
    case TAKE13:
    case TAKE123: return c->AP_TAKE3(cmd, record, w[0], w[1], w[2]);
    case FLAG: return c->AP_FLAG(cmd, record, flag);
    case TAKE_ARGV: return c->AP_TAKE_ARGV(cmd, record, count, (char *const *)(uintptr_t)w);
    default: abort();
    }
}

/* Directories' configurations that the module makes, and asks the server to fill: their numbers are the server's, plus 1. */
static char configs[CONFIGS];

ap_conf_vector_t *ap_create_per_dir_config(apr_pool_t *pool)
{
    uint64_t number;
    question q;

    stock_ask_begin(&q, STOCK_ASK_NEW_CONFIG);
    stock_ask_send(&q, STOCK_ASK_NEW_CONFIG);
    number = stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_NEW_CONFIG);
    if (number == 0 || number > CONFIGS)
        abort();
    return (ap_conf_vector_t *)(void *)&configs[number - 1];
}

static uint64_t number_of(const ap_conf_vector_t *config)
{
    uintptr_t at = (uintptr_t)config - (uintptr_t)configs;

    return at < CONFIGS ? at + 1 : 0;
}

/* What a request has then is told with its next call of a provider: modules merge for nothing else. */
ap_conf_vector_t *ap_merge_per_dir_configs(apr_pool_t *pool, ap_conf_vector_t *base, ap_conf_vector_t *more)
{
    return more;
}

uint64_t stock_other_config(const request_rec *r)
{
    return number_of(r->per_dir_config);
}

/* What the directive that is called has inside; `config`: the module's own, or that of the directive. */
const char *ap_walk_config(ap_directive_t *first, cmd_parms *cmd, ap_conf_vector_t *config)
{
    const char *error;
    question q;

    stock_ask_begin(&q, STOCK_ASK_WALK_CONFIG);
    stock_put(&q.out, number_of(config));
    stock_put(&q.out, (uint64_t)(unsigned)cmd->override);
    stock_put(&q.out, (uint64_t)cmd->limited);
    stock_ask_send(&q, STOCK_ASK_WALK_CONFIG);
    error = apr_pstrdup(cmd->pool, stock_get_text(&q.in));
    stock_ask_end(&q, STOCK_ASK_WALK_CONFIG);
    return error;
}

void stock_take_directive(stock_unpack *u, cmd_parms *cmd, ap_directive_t *directive, apr_pool_t *pool)
{
    cmd->server = stock_take_server(u);
    cmd->override = (int)stock_get(u);
    cmd->limited = (apr_int64_t)stock_get(u);
    cmd->path = apr_pstrdup(pool, stock_get_text(u));
    directive->directive = apr_pstrdup(pool, stock_get_text(u));
    directive->args = apr_pstrdup(pool, stock_get_text(u));
    directive->filename = apr_pstrdup(pool, stock_get_text(u));
    directive->line_num = (int)stock_get(u);
    cmd->directive = directive;
    cmd->pool = pool;
    /* Modules tell .htaccess files by that: there, both are one. */
    cmd->temp_pool = stock_get(u) ? pool : stock_pool;
}

void stock_command(stock_unpack *u, stock_pack *p, apr_pool_t *pool)
{
    const command_rec *c = (const command_rec *)(uintptr_t)stock_get(u);
    void *record = (void *)(uintptr_t)stock_get(u);
    const char *words[WORDS] = { NULL };
    ap_directive_t directive = { 0 };
    cmd_parms cmd = { 0 }, *before = now;
    int flag, count;

    stock_take_directive(u, &cmd, &directive, pool);
    flag = (int)stock_get(u);
    count = (int)stock_get(u);
    if (count < 0 || count > WORDS)
        abort();
    for (int i = 0; i < count; i++)
        words[i] = apr_pstrdup(pool, stock_get_text(u));
    cmd.info = c->cmd_data;
    cmd.cmd = c;
    cmd.context = (ap_conf_vector_t *)(void *)&cmd; /* the server's own: it stands for itself */
    now = &cmd;
    stock_put_text(p, call(c, &cmd, record, flag, count, words));
    now = before;
    stock_put(p, (uint64_t)(uintptr_t)stock_server_record(cmd.server));
}
