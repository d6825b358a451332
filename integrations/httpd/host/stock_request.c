/* Requests as stock modules see them: what has changed since the module last saw one goes in, what it may change comes out. */
#include "stock.h"

#include "apr_random.h"

static const stock_field texts[] = { STOCK_TEXTS(STOCK_FIELD_) };
static const stock_field numbers[] = { STOCK_NUMBERS(STOCK_FIELD_) };

static apr_status_t forget(void *request)
{
    mf_stock_request *gone = request;
    mf_stock_request **at = (mf_stock_request **)ap_get_module_config(gone->r->connection->conn_config, &fenced_module);

    while (at && *at && *at != gone)
        at = &(*at)->next;
    if (at && *at)
        *at = gone->next;
    return APR_SUCCESS;
}

/* What this part knows of a request, from its first module on. */
mf_stock_request *mf_stock_request_of(request_rec *r)
{
    static apr_uint64_t last;
    mf_stock_request *q = ap_get_module_config(r->request_config, &fenced_module);
    mf_stock_request **list = ap_get_module_config(r->connection->conn_config, &fenced_module);

    if (q && q->r == r)
        return q;
    if (!list) {
        list = apr_pcalloc(r->connection->pool, sizeof *list);
        ap_set_module_config(r->connection->conn_config, &fenced_module, list);
    }
    q = apr_pcalloc(r->pool, sizeof *q);
    q->r = r;
    q->number = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    q->next = *list;
    *list = q;
    ap_set_module_config(r->request_config, &fenced_module, q);
    apr_pool_cleanup_register(r->pool, q, forget, apr_pool_cleanup_null);
    return q;
}

/* The request of that number, of those on the connection that the call is for; NULL: there is none. */
request_rec *mf_stock_find(const mf_stock_call *call, apr_uint64_t number)
{
    mf_stock_request **list;

    if (!call || !call->r)
        return NULL;
    list = ap_get_module_config(call->r->connection->conn_config, &fenced_module);
    for (mf_stock_request *q = list ? *list : NULL; q; q = q->next)
        if (q->number == number)
            return q->r;
    return NULL;
}

/* A number that changes with the table. Not its addresses: those are the server's. */
apr_uint64_t mf_stock_stamp(const apr_table_t *table)
{
    static apr_uint64_t secret;
    const apr_array_header_t *all = apr_table_elts(table);
    const apr_table_entry_t *e = (const apr_table_entry_t *)(const void *)all->elts;
    apr_uint64_t stamp;

    if (!secret) {
        apr_generate_random_bytes((unsigned char *)&secret, sizeof secret);
        secret |= 1;
    }
    stamp = secret + (apr_uint64_t)all->nelts;
    for (int i = 0; i < all->nelts; i++) {
        stamp = (stamp ^ (apr_uintptr_t)e[i].key) * secret;
        stamp = ((stamp >> 29) ^ stamp ^ (apr_uintptr_t)e[i].val) * secret;
    }
    return (stamp >> 32) | 1;
}

apr_table_t **mf_stock_table(request_rec *r, apr_uint64_t which)
{
#define TABLE(name) &r->name,
    apr_table_t **tables[] = { STOCK_TABLE_LIST(TABLE) };

    return which < STOCK_TABLES && *tables[which] ? tables[which] : NULL;
}

static void pack_address(stock_pack *p, const apr_sockaddr_t *a)
{
    stock_put(p, a ? (apr_uint64_t)a->family : 0);
    stock_put(p, a ? a->port : 0);
    stock_put_bytes(p, a ? a->ipaddr_ptr : NULL, a ? (apr_size_t)a->ipaddr_len : 0);
}

static void pack_connection(stock_pack *p, const request_rec *r)
{
    const conn_rec *c = r->connection;

    stock_put(p, (apr_uint64_t)c->id);
    stock_put_text(p, c->client_ip);
    stock_put_text(p, c->local_ip);
    stock_put_text(p, c->log_id);
    pack_address(p, c->client_addr);
    pack_address(p, c->local_addr);
    pack_address(p, r->useragent_addr);
}

static unsigned server_number(const server_rec *s);

static apr_uint64_t number_of(request_rec *r)
{
    return r ? mf_stock_request_of(r)->number : 0;
}

static apr_uint64_t record_address(const mf_stock *m, const mf_stock_record *record)
{
    return record && (record->generation == 0 || record->generation == m->generation) ? record->address : 0;
}

/* Without a file, what is known of files has never been set: a module must not see what lies there. */
static int is_set(const request_rec *r, const stock_field *f)
{
    return r->finfo.filetype != APR_NOFILE || f->offset < offsetof(request_rec, finfo) ||
           f->offset >= offsetof(request_rec, finfo) + sizeof r->finfo;
}

/* What the module has not seen yet of one request. */
static void pack_one(mf_stock *m, stock_pack *p, request_rec *r)
{
    mf_stock_request *q = mf_stock_request_of(r);
    mf_stock_seen *seen = q->seen[m->number];
    int fresh = !seen || seen->generation != m->generation;
    apr_uint64_t changed = 0;
    const char *now[STOCK_TEXT_COUNT];

    if (fresh) {
        seen = q->seen[m->number] = apr_pcalloc(r->pool, sizeof *seen);
        seen->generation = m->generation;
        changed = STOCK_CONNECTION_CHANGED;
    }
    stock_put(p, q->number);
    stock_put(p, seen->twin);
    stock_put(p, number_of(r->main));
    stock_put(p, number_of(r->prev));
    stock_put(p, number_of(r->next));
    stock_put(p, server_number(r->server));
    stock_put(p, r->per_dir_config ? record_address(m, ap_get_module_config(r->per_dir_config, &m->host)) : 0);
    stock_put(p, (apr_uint64_t)ap_get_request_module_loglevel(r, m->host.module_index));
    stock_put(p, (apr_uint64_t)r->connection->keepalive);
    stock_put(p, (apr_uint64_t)r->connection->keepalives);
    stock_put(p, (apr_uint64_t)r->connection->aborted);
    for (int i = 0; i < STOCK_NUMBER_COUNT; i++)
        stock_put(p, is_set(r, &numbers[i]) ? stock_number_of(r, &numbers[i]) : 0);
    for (int i = 0; i < STOCK_TABLES; i++)
        stock_put(p, mf_stock_table(r, (apr_uint64_t)i) ? mf_stock_stamp(*mf_stock_table(r, (apr_uint64_t)i)) : 0);
    for (int i = 0; i < STOCK_TEXT_COUNT; i++) {
        now[i] = *stock_text_of(r, &texts[i]);
        if (now[i] != seen->texts[i] && (!now[i] || !seen->texts[i] || strcmp(now[i], seen->texts[i]) != 0))
            changed |= (apr_uint64_t)1 << i;
    }
    if (r->content_languages != seen->languages)
        changed |= STOCK_LANGUAGES_CHANGED;
    stock_put(p, changed);
    for (int i = 0; i < STOCK_TEXT_COUNT; i++)
        if (changed >> i & 1) {
            stock_put_text(p, now[i]);
            /* A copy: the server changes some of them where they are. */
            seen->texts[i] = apr_pstrdup(r->pool, now[i]);
        }
    if (changed & STOCK_LANGUAGES_CHANGED) {
        seen->languages = r->content_languages;
        stock_put(p, r->content_languages ? (apr_uint64_t)r->content_languages->nelts + 1 : 0);
        for (int i = 0; r->content_languages && i < r->content_languages->nelts; i++)
            stock_put_text(p, APR_ARRAY_IDX(r->content_languages, i, const char *));
    }
    if (changed & STOCK_CONNECTION_CHANGED)
        pack_connection(p, r);
}

/* The request of the call, and those that it names. */
void mf_stock_pack_request(mf_stock_call *call, stock_pack *p)
{
    request_rec *all[STOCK_LINKS];
    unsigned count = 0;

    if (call->r)
        all[count++] = call->r;
    for (unsigned i = 0; i < count; i++) {
        request_rec *linked[] = { all[i]->main, all[i]->prev, all[i]->next };

        for (unsigned k = 0; k < 3; k++) {
            unsigned at = 0;

            while (linked[k] && at < count && all[at] != linked[k])
                at++;
            if (linked[k] && at == count && count < STOCK_LINKS)
                all[count++] = linked[k];
        }
    }
    stock_put(p, count);
    for (unsigned i = 0; i < count; i++)
        pack_one(call->m, p, all[i]);
}

static void take_number(mf_stock_call *call, unsigned i, apr_uint64_t value)
{
    request_rec *r = call->r;

    if (!(numbers[i].changes & (STOCK_CHANGES_ALWAYS | call->changes)))
        return;
    if (numbers[i].offset == offsetof(request_rec, status) && (value < 100 || value > 599))
        return;
    stock_set_number(r, &numbers[i], value);
}

static void take_text(mf_stock_call *call, mf_stock_seen *seen, unsigned i, const char *value)
{
    /* What is not taken over is told again. The server relies on there being a URI. */
    if (!(texts[i].changes & (STOCK_CHANGES_ALWAYS | call->changes)) || (!value && texts[i].offset == offsetof(request_rec, uri))) {
        seen->texts[i] = "\1";
        return;
    }
    *stock_text_of(call->r, &texts[i]) = apr_pstrdup(call->r->pool, value);
    seen->texts[i] = apr_pstrdup(call->r->pool, value);
}

/* Modules of the server keep addresses in notes, under names of their own. Fenced ones see and write only those that are known to be
 * texts, and those that begin with X-. */
int mf_stock_is_shared(const request_rec *r, apr_table_t *const *table, const char *key)
{
    static const char *const texts_of_notes[] = { "alias-forced-type", "dir-index-names", "error-notes", "no-etag", "verbose-error-to" };

    if (table != &r->notes || strncasecmp(key, "X-", 2) == 0)
        return 1;
    for (unsigned i = 0; i < sizeof texts_of_notes / sizeof *texts_of_notes; i++)
        if (strcasecmp(key, texts_of_notes[i]) == 0)
            return 1;
    return 0;
}

static void take_table(request_rec *r, apr_uint64_t which, stock_unpack *u)
{
    apr_table_t **table = mf_stock_table(r, which);
    apr_uint64_t count = stock_get(u);
    apr_table_t *all = apr_table_make(r->pool, count < 64 ? (int)count : 64);

    while (count-- && !u->bad) {
        const char *key = stock_get_text(u), *value = stock_get_text(u);

        if (key && value && table && mf_stock_is_shared(r, table, key))
            apr_table_add(all, key, value);
    }
    if (!table || u->bad)
        return;
    /* What the module has not seen stays. */
    for (int i = 0; i < apr_table_elts(*table)->nelts; i++) {
        const apr_table_entry_t *e = &APR_ARRAY_IDX(apr_table_elts(*table), i, apr_table_entry_t);

        if (!mf_stock_is_shared(r, table, e->key))
            apr_table_addn(all, e->key, e->val);
    }
    *table = all;
}

/* Takes over what the module has changed in the request of the call, as far as it may. 0: that cannot be read. */
int mf_stock_unpack_request(mf_stock_call *call, stock_unpack *u)
{
    request_rec *r = call->r;
    apr_uint64_t twins = stock_get(u), number, changed, tables;
    mf_stock_seen *seen;

    for (; twins && !u->bad; twins--) {
        request_rec *one;
        mf_stock_request *q;

        number = stock_get(u);
        one = mf_stock_find(call, number);
        q = one ? mf_stock_request_of(one) : NULL;
        number = stock_get(u);
        if (q && q->seen[call->m->number])
            q->seen[call->m->number]->twin = number;
    }
    if (!r || u->bad)
        return !u->bad;
    seen = mf_stock_request_of(r)->seen[call->m->number];
    changed = stock_get(u);
    for (unsigned i = 0; i < STOCK_NUMBER_COUNT; i++)
        if (changed >> i & 1)
            take_number(call, i, stock_get(u));
    changed = stock_get(u);
    for (unsigned i = 0; i < STOCK_TEXT_COUNT; i++)
        if (changed >> i & 1)
            take_text(call, seen, i, stock_get_text(u));
    if (changed & STOCK_LANGUAGES_CHANGED) {
        apr_uint64_t count = stock_get(u);

        r->content_languages = count ? apr_array_make(r->pool, 2, sizeof(char *)) : NULL;
        for (; count > 1 && !u->bad; count--) {
            const char *language = stock_get_text(u);

            if (language)
                APR_ARRAY_PUSH(r->content_languages, const char *) = apr_pstrdup(r->pool, language);
        }
        seen->languages = r->content_languages;
    }
    tables = stock_get(u);
    for (unsigned i = 0; i < STOCK_TABLES; i++)
        if (tables >> i & 1)
            take_table(r, i, u);
    return !u->bad;
}

/* Numbers are given while the configuration is read, and kept in the servers' vectors: virtual hosts share what they do not have. */
typedef struct {
    const server_rec *s;
    unsigned number;
} numbered;

static unsigned servers;

void mf_stock_forget_servers(void)
{
    servers = 0;
}

static unsigned server_number(const server_rec *s)
{
    numbered *n = ap_get_module_config(s->module_config, &fenced_module);

    if (!n || n->s != s) {
        n = apr_palloc(s->process->pconf, sizeof *n);
        n->s = s;
        n->number = servers++;
        ap_set_module_config(s->module_config, &fenced_module, n);
    }
    return n->number;
}

void mf_stock_pack_server(mf_stock *m, stock_pack *p, const server_rec *s)
{
    stock_put(p, server_number(s));
    stock_put(p, s->module_config ? record_address(m, ap_get_module_config(s->module_config, &m->host)) : 0);
    stock_put_text(p, s->server_hostname);
    stock_put_text(p, s->server_admin);
    stock_put_text(p, s->server_scheme);
    stock_put_text(p, s->defn_name);
    stock_put_text(p, s->path);
    stock_put(p, s->port);
    stock_put(p, (apr_uint64_t)s->is_virtual);
    stock_put(p, (apr_uint64_t)s->log.level);
    stock_put(p, (apr_uint64_t)s->timeout);
    stock_put(p, (apr_uint64_t)s->keep_alive_timeout);
    stock_put(p, (apr_uint64_t)s->keep_alive_max);
    stock_put(p, (apr_uint64_t)s->keep_alive);
}
