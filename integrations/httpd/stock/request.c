/* Twins: the module's own copies of requests. The server says what has changed in its ones before each call of the module and after each
 * question that may have changed something; changes that the module makes go the other way. */
#include "inside.h"

static twin twins[TWINS];
static __thread twin *untold[2 * STOCK_LINKS]; /* that this thread has made, and the server does not know of */
static __thread unsigned untold_count;
static core_dir_config core_dir; /* what a module sees that looks at the core's configuration: nothing set */
static const stock_field texts[] = { STOCK_TEXTS(STOCK_FIELD_) };
static const stock_field numbers[] = { STOCK_NUMBERS(STOCK_FIELD_) };

#define PLACE(name) &t->r.name,

size_t stock_twin_index(const twin *t)
{
    return (size_t)(t - twins);
}

twin *stock_twin_at(size_t index)
{
    return &twins[index];
}

twin *stock_twin_of(const request_rec *r)
{
    const char *at = (const char *)r;
    size_t offset = (size_t)(at - (const char *)twins);

    if (at < (const char *)twins || offset >= sizeof twins || offset % sizeof *twins)
        return NULL;
    return &twins[offset / sizeof *twins];
}

uint64_t stock_number(const request_rec *r)
{
    const twin *t = stock_twin_of(r);

    return t ? t->number : 0;
}

static apr_status_t release(void *gone)
{
    twin *t = gone;

    for (unsigned i = 0; i < untold_count; i++)
        if (untold[i] == t)
            untold[i--] = untold[--untold_count];
    __atomic_store_n(&t->number, 0, __ATOMIC_RELEASE);
    return APR_SUCCESS;
}

/* One in memory that goes when the server's does. */
static twin *make(uint64_t number, apr_pool_t *pool)
{
    static size_t next;

    for (size_t tries = 0; tries < TWINS; tries++) {
        twin *t = &twins[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED) % TWINS];
        uint64_t none = 0;

        if (!__atomic_compare_exchange_n(&t->number, &none, number, 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        memset(t, 0, sizeof *t);
        t->number = number;
        t->pool = pool;
        if (untold_count < 2 * STOCK_LINKS)
            untold[untold_count++] = t;
        apr_pool_cleanup_register(pool, t, release, apr_pool_cleanup_null);
        stock_tables_begin(stock_twin_index(t), pool);
        t->r.pool = t->c.pool = pool;
        t->r.connection = &t->c;
        t->dir_config[0] = &core_dir;
        t->r.per_dir_config = (ap_conf_vector_t *)t->dir_config;
        t->r.request_config = (ap_conf_vector_t *)t->request_config;
        t->c.conn_config = (ap_conf_vector_t *)apr_pcalloc(pool, (OWN + 1) * sizeof(void *));
        t->c.notes = apr_table_make(pool, 2);
        t->core_filter.frec = ap_subreq_core_filter_handle;
        t->r.output_filters = t->r.proto_output_filters = &t->core_filter;
        t->r.log = t->c.log = &t->log;
        return t;
    }
    abort(); /* more requests at a time than there is room for */
}

static apr_sockaddr_t *take_address(stock_unpack *u, apr_sockaddr_t *a, apr_pool_t *pool)
{
    size_t length;
    const char *bytes;

    memset(a, 0, sizeof *a);
    a->pool = pool;
    a->family = (apr_int32_t)stock_get(u);
    a->port = (apr_port_t)stock_get(u);
    bytes = stock_get_bytes(u, &length);
    if (!bytes || length > 16)
        return NULL;
    if (length == 4) {
        a->family = APR_INET;
        a->salen = sizeof a->sa.sin;
        a->ipaddr_ptr = &a->sa.sin.sin_addr;
        a->addr_str_len = 16;
    } else {
        a->family = APR_INET6;
        a->salen = sizeof a->sa.sin6;
        a->ipaddr_ptr = &a->sa.sin6.sin6_addr;
        a->addr_str_len = 46;
    }
    a->ipaddr_len = (int)length;
    a->sa.sin.sin_family = (sa_family_t)a->family;
    a->sa.sin.sin_port = htons(a->port);
    memcpy(a->ipaddr_ptr, bytes, length);
    return a;
}

static void take_connection(stock_unpack *u, twin *t)
{
    t->c.id = (long)stock_get(u);
    t->c.client_ip = apr_pstrdup(t->pool, stock_get_text(u));
    t->c.local_ip = apr_pstrdup(t->pool, stock_get_text(u));
    t->c.log_id = apr_pstrdup(t->pool, stock_get_text(u));
    t->c.client_addr = take_address(u, &t->client, t->pool);
    t->c.local_addr = take_address(u, &t->local, t->pool);
    t->r.useragent_addr = take_address(u, &t->agent, t->pool);
    t->c.base_server = t->r.server;
}

static void take_languages(stock_unpack *u, twin *t)
{
    uint64_t count = stock_get(u);

    t->languages = count ? apr_array_make(t->pool, 2, sizeof(char *)) : NULL;
    for (; count > 1 && !u->bad; count--)
        APR_ARRAY_PUSH(t->languages, const char *) = apr_pstrdup(t->pool, stock_get_text(u));
    t->language_count = t->languages ? t->languages->nelts : 0;
    t->r.content_languages = t->languages;
}

static twin *take_one(stock_unpack *u, apr_pool_t *pool, uint64_t links[3])
{
    uint64_t number = stock_get(u), known = stock_get(u), changed;
    twin *t = known ? stock_twin_of((const request_rec *)(uintptr_t)known) : NULL;
    size_t index;

    if (number == 0)
        abort();
    if (!t || t->number != number)
        t = make(number, pool);
    for (int i = 0; i < 3; i++)
        links[i] = stock_get(u);
    t->r.server = stock_server(stock_get(u));
    t->dir_config[OWN] = (void *)(uintptr_t)stock_get(u);
    t->log.level = (int)stock_get(u);
    t->c.keepalive = (ap_conn_keepalive_e)stock_get(u);
    t->c.keepalives = (int)stock_get(u);
    t->c.aborted = (unsigned)stock_get(u);
    for (int i = 0; i < STOCK_NUMBER_COUNT; i++) {
        t->numbers[i] = stock_get(u);
        stock_set_number(&t->r, &numbers[i], t->numbers[i]);
    }
    index = stock_twin_index(t);
    for (int i = 0; i < STOCK_TABLES; i++)
        t->stamps[i] = stock_get(u);
    {
        apr_table_t **places[] = { STOCK_TABLE_LIST(PLACE) };

        for (int i = 0; i < STOCK_TABLES; i++)
            *places[i] = t->stamps[i] ? stock_table_at(index, i) : NULL;
    }
    changed = stock_get(u);
    for (int i = 0; i < STOCK_TEXT_COUNT; i++)
        if (changed >> i & 1) {
            t->texts[i] = apr_pstrdup(t->pool, stock_get_text(u));
            t->copies[i] = apr_pstrdup(t->pool, t->texts[i]);
        }
    for (int i = 0; i < STOCK_TEXT_COUNT; i++)
        *stock_text_of(&t->r, &texts[i]) = t->copies[i];
    if (changed & STOCK_LANGUAGES_CHANGED)
        take_languages(u, t);
    if (changed & STOCK_CONNECTION_CHANGED)
        take_connection(u, t);
    return t;
}

/* Takes what the server says of requests. The first one's twin; NULL: there was none. */
twin *stock_take_requests(stock_unpack *u, apr_pool_t *pool)
{
    uint64_t count = stock_get(u), links[STOCK_LINKS][3];
    twin *all[STOCK_LINKS];

    if (count > STOCK_LINKS)
        abort();
    for (uint64_t i = 0; i < count; i++)
        all[i] = take_one(u, pool, links[i]);
    for (uint64_t i = 0; i < count; i++) {
        request_rec **places[] = { &all[i]->r.main, &all[i]->r.prev, &all[i]->r.next };

        for (int k = 0; k < 3; k++) {
            *places[k] = NULL;
            for (uint64_t n = 0; n < count; n++)
                if (links[i][k] && all[n]->number == links[i][k])
                    *places[k] = &all[n]->r;
        }
    }
    return count ? all[0] : NULL;
}

static void tell_numbers(stock_pack *p, const twin *t)
{
    uint64_t changed = 0;

    for (int i = 0; i < STOCK_NUMBER_COUNT; i++)
        if (stock_number_of(&t->r, &numbers[i]) != t->numbers[i])
            changed |= (uint64_t)1 << i;
    stock_put(p, changed);
    for (int i = 0; i < STOCK_NUMBER_COUNT; i++)
        if (changed >> i & 1)
            stock_put(p, stock_number_of(&t->r, &numbers[i]));
}

static int is_same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static void tell_texts(stock_pack *p, twin *t)
{
    uint64_t changed = 0;

    for (int i = 0; i < STOCK_TEXT_COUNT; i++)
        if (!is_same(*stock_text_of(&t->r, &texts[i]), t->texts[i])) {
            changed |= (uint64_t)1 << i;
            t->copies[i] = *stock_text_of(&t->r, &texts[i]);
            t->texts[i] = apr_pstrdup(t->pool, t->copies[i]);
        }
    if (t->r.content_languages != t->languages || (t->languages && t->languages->nelts != t->language_count))
        changed |= STOCK_LANGUAGES_CHANGED;
    stock_put(p, changed);
    for (int i = 0; i < STOCK_TEXT_COUNT; i++)
        if (changed >> i & 1)
            stock_put_text(p, t->texts[i]);
    if (changed & STOCK_LANGUAGES_CHANGED) {
        t->languages = t->r.content_languages;
        t->language_count = t->languages ? t->languages->nelts : 0;
        stock_put(p, t->languages ? (uint64_t)t->language_count + 1 : 0);
        for (int i = 0; i < t->language_count; i++)
            stock_put_text(p, APR_ARRAY_IDX(t->languages, i, const char *));
    }
}

/* Tables that the module has put in the place of the server's. */
static void tell_tables(stock_pack *p, twin *t)
{
    size_t index = stock_twin_index(t);
    apr_table_t **places[] = { STOCK_TABLE_LIST(PLACE) };
    uint64_t changed = 0;

    for (int i = 0; i < STOCK_TABLES; i++)
        if (*places[i] && *places[i] != stock_table_at(index, i) && t->stamps[i])
            changed |= (uint64_t)1 << i;
    stock_put(p, changed);
    for (int i = 0; i < STOCK_TABLES; i++)
        if (changed >> i & 1) {
            const apr_array_header_t *all = apr_table_elts(*places[i]);

            stock_put(p, (uint64_t)all->nelts);
            for (int k = 0; k < all->nelts; k++) {
                stock_put_text(p, APR_ARRAY_IDX(all, k, apr_table_entry_t).key);
                stock_put_text(p, APR_ARRAY_IDX(all, k, apr_table_entry_t).val);
            }
            *places[i] = stock_table_at(index, i);
            t->loaded[i] = 0; /* it is loaded anew */
            t->stamps[i] = 1;
        }
}

/* What the module has changed since it was last told or has told. */
void stock_tell_changes(stock_pack *p)
{
    twin *t = stock_entry ? stock_entry->t : NULL;

    stock_put(p, untold_count);
    for (; untold_count; untold_count--) {
        stock_put(p, untold[untold_count - 1]->number);
        stock_put(p, (uint64_t)(uintptr_t)untold[untold_count - 1]);
    }
    if (!t)
        return;
    tell_numbers(p, t);
    tell_texts(p, t);
    tell_tables(p, t);
}
