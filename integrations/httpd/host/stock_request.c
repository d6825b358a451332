/* Requests of fenced stock modules: which there are, and what modules may change of them. */
#include "stock.h"

enum { FILTER = 1024 /* bytes that the server has for a filter of a request */ };

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
    if (gone->account)
        gone->account->kept -= gone->charged;
    for (int i = 0; gone->holding; i++, gone->holding >>= 1)
        if (gone->holding & 1)
            mf_stock_end_request(APR_ARRAY_IDX(mf_stocks(), i, mf_stock *), gone->r);
    mf_stock_image_end(gone);
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
    q->stale = MF_STOCK_ALL;
    q->next = *list;
    *list = q;
    ap_set_module_config(r->request_config, &fenced_module, q);
    apr_pool_cleanup_register(r->pool, q, forget, apr_pool_cleanup_null);
    return q;
}

/* A module makes the server keep so many bytes more, until the request ends. 0: together with all requests within it, and those that it was
 * redirected from, that is too much. */
int mf_stock_charge(request_rec *r, apr_size_t bytes)
{
    mf_stock_request *q = mf_stock_request_of(r);

    while (!q->account && (r->main || r->prev))
        r = r->main ? r->main : r->prev;
    if (!q->account)
        q->account = mf_stock_request_of(r);
    q->charged += bytes;
    q->account->kept += bytes;
    return q->account->kept <= MF_STOCK_KEPT;
}

/* Whether its modules have made the server keep too much. */
int mf_stock_hoards(const mf_stock_call *call)
{
    const mf_stock_request *q = call && call->r ? mf_stock_request_of(call->r)->account : NULL;

    return q ? q->kept > MF_STOCK_KEPT : call && call->kept > MF_STOCK_KEPT;
}

/* The request of that number, of those on the connection that the call is for; NULL: there is none. */
request_rec *mf_stock_find(const mf_stock_call *call, apr_uint64_t number)
{
    mf_stock_request **list;

    if (!call || !call->r)
        return NULL;
    if (mf_stock_request_of(call->r)->number == number)
        return call->r;
    list = ap_get_module_config(call->r->connection->conn_config, &fenced_module);
    for (mf_stock_request *q = list ? *list : NULL; q; q = q->next)
        if (q->number == number)
            return q->r;
    return NULL;
}

apr_table_t **mf_stock_table_of(request_rec *r, apr_uint64_t which)
{
#define TABLE(name) offsetof(request_rec, name),
    static const apr_uint16_t places[] = { STOCK_TABLE_LIST(TABLE) };
    apr_table_t **table = which < STOCK_TABLES ? (apr_table_t **)(void *)((char *)r + places[which]) : NULL;

    return table && *table ? table : NULL;
}

static apr_uint64_t record_address(const mf_stock *m, const mf_stock_record *record)
{
    return record && (record->generation == 0 || record->generation == m->generation) ? record->address : 0;
}

/* The module's record of the directory that the request is in. */
apr_uint64_t mf_stock_record_of(const mf_stock *m, request_rec *r)
{
    return r->per_dir_config ? record_address(m, ap_get_module_config(r->per_dir_config, &m->host)) : 0;
}

/* The request of the call, and those that it names: where their images are, and what each module has for itself. 0: there is no room. */
int mf_stock_pack_request(mf_stock_call *call, stock_pack *p)
{
    request_rec *all[STOCK_LINKS];
    unsigned count = 0;
    int good = 1;

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
    for (unsigned i = count; i > 0; i--) /* links need slots */
        good &= mf_stock_image_update(mf_stock_request_of(all[i - 1]));
    for (unsigned i = 0; i < count; i++) {
        stock_put(p, mf_stock_request_of(all[i])->slot);
        stock_put(p, mf_stock_record_of(call->m, all[i]));
        stock_put(p, (apr_uint64_t)ap_get_request_module_loglevel(all[i], call->m->host.module_index));
    }
    return good;
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

/* A name that is none of a file, and ends in a request that is decided on as any other: mod_rewrite leaves it for its handler. */
static int is_redirect(unsigned i, const char *value)
{
    return texts[i].offset == offsetof(request_rec, filename) && value && strncmp(value, "redirect:/", 10) == 0;
}

/* The query of such a request, which comes behind its name. */
static int is_redirect_query(const request_rec *r, unsigned i)
{
    return texts[i].offset == offsetof(request_rec, args) && r->filename && strncmp(r->filename, "redirect:/", 10) == 0;
}

static void take_text(mf_stock_call *call, unsigned i, const char *value)
{
    int may = texts[i].changes & (STOCK_CHANGES_ALWAYS | call->changes) || is_redirect(i, value) || is_redirect_query(call->r, i);

    /* The server relies on there being a URI. */
    if (may && (value || texts[i].offset != offsetof(request_rec, uri)))
        *stock_text_of(call->r, &texts[i]) = apr_pstrdup(call->r->pool, value);
}

/* Modules of the server keep addresses in notes, under names of their own. Fenced ones see and write only those that are known to be
 * texts, and those that begin with X-. */
int mf_stock_is_shared(const request_rec *r, apr_table_t *const *table, const char *key)
{
    static const char *const texts_of_notes[] = {
        "alias-forced-type",       "authn_provider_name",   "authz_provider_name",    "dir-index-names",         "error-notes",
        "mod_rewrite_rewritten",   "mod_rewrite_uri_reduced", "no-etag",              "redirect-keeps-vary",     "rewrite-forced-handler",
        "rewrite-forced-mimetype", "variant-list",          "verbose-error-to"
    };

    if (table != &r->notes || strncasecmp(key, "X-", 2) == 0)
        return 1;
    for (unsigned i = 0; i < sizeof texts_of_notes / sizeof *texts_of_notes; i++)
        if (strcasecmp(key, texts_of_notes[i]) == 0)
            return 1;
    return 0;
}

static void take_table(request_rec *r, apr_uint64_t which, stock_unpack *u)
{
    apr_table_t **table = mf_stock_table_of(r, which);
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

int mf_stock_is_list(const request_rec *r, apr_table_t *const *table, const char *key)
{
    return table == &r->notes && strcasecmp(key, STOCK_LIST_NOTE) == 0;
}

static void set_list(request_rec *r, const char *key, const char *value)
{
    apr_array_header_t *all = apr_array_make(r->pool, 2, sizeof(char *));
    char *next, *part = apr_strtok(apr_pstrdup(r->pool, value), "/", &next);

    for (; part; part = apr_strtok(NULL, "/", &next))
        APR_ARRAY_PUSH(all, char *) = part;
    apr_table_setn(r->notes, apr_pstrdup(r->pool, key), (char *)all);
}

/* A change of one of the tables. Wrong headers are the server's to find: it answers 500. */
static int change_table(request_rec *r, stock_change how, apr_uint64_t which, const char *key, const char *value)
{
    apr_table_t **table = mf_stock_table_of(r, which);

    if (!table || (how != STOCK_CLEAR && !key) || (how < STOCK_UNSET && !value))
        return 0;
    if (key && mf_stock_is_list(r, table, key)) {
        if (how == STOCK_SET)
            set_list(r, key, value);
        return 1;
    }
    if ((how == STOCK_CLEAR && *table == r->notes) || (key && !mf_stock_is_shared(r, table, key)))
        return 1; /* others' stay */
    /* What it adds to stays as well. */
    if (how == STOCK_MERGE) {
        const char *before = apr_table_get(*table, key);

        if (before && !mf_stock_charge(r, strlen(before)))
            return 0;
    }
    if (how == STOCK_SET)
        apr_table_set(*table, key, value);
    else if (how == STOCK_ADD)
        apr_table_add(*table, key, value);
    else if (how == STOCK_MERGE)
        apr_table_merge(*table, key, value);
    else if (how == STOCK_UNSET)
        apr_table_unset(*table, key);
    else
        apr_table_clear(*table);
    return 1;
}

/* Does what the module has done. 0: it makes no sense. */
static int take_change(mf_stock_call *call, stock_unpack *u)
{
    request_rec *r = call->r, *of = r;
    apr_size_t left = u->left;
    apr_uint64_t how = stock_get(u), number = stock_get(u), which = stock_get(u);
    const char *key = stock_get_text(u), *value = stock_get_text(u);

    /* Tables are those of the request, or of one that it is within; all else is its own. */
    while (of && mf_stock_request_of(of)->number != number)
        of = of->main;
    if (u->bad || !of || (of != r && how > STOCK_CLEAR) || !mf_stock_charge(of, left - u->left + (how == STOCK_ADD_OWN || how == STOCK_ADD_MADE ? FILTER : 0)))
        return 0;
    /* Types and filters are fields. */
    mf_stock_request_of(of)->stale |= how <= STOCK_CLEAR && which < STOCK_TABLES ? 1u << which : MF_STOCK_FIELDS;
    switch (how) {
    case STOCK_SET:
    case STOCK_ADD:
    case STOCK_MERGE:
    case STOCK_UNSET:
    case STOCK_CLEAR: return change_table(of, (stock_change)how, which, key, value);
    case STOCK_SET_TYPE: ap_set_content_type_ex(r, apr_pstrdup(r->pool, key), which != 0); return 1;
    case STOCK_ADD_OWN: return key && mf_stock_add_filter(call, key, which);
    case STOCK_ADD_MADE: return key && value && mf_stock_add_made(call, which, key, value);
    case STOCK_REMOVE_FILTER:
        if (call->filter && call->reads)
            ap_remove_input_filter(call->filter);
        else if (call->filter)
            ap_remove_output_filter(call->filter);
        return call->filter != NULL;
    default: return 0;
    }
}

static void take_languages(request_rec *r, stock_unpack *u)
{
    apr_uint64_t count = stock_get(u);

    r->content_languages = count ? apr_array_make(r->pool, 2, sizeof(char *)) : NULL;
    for (; count > 1 && !u->bad; count--) {
        const char *language = stock_get_text(u);

        if (language)
            APR_ARRAY_PUSH(r->content_languages, const char *) = apr_pstrdup(r->pool, language);
    }
}

/* Numbers and texts, each kind behind a mask of those that have changed. 0: the masks make no sense. */
static int take_fields(mf_stock_call *call, stock_unpack *u)
{
    apr_uint64_t changed = stock_get(u);

    if (changed >> STOCK_NUMBER_COUNT)
        return 0;
    for (; changed; changed &= changed - 1)
        take_number(call, (unsigned)__builtin_ctzll(changed), stock_get(u));
    changed = stock_get(u);
    if ((changed & ~STOCK_LANGUAGES_CHANGED) >> STOCK_TEXT_COUNT)
        return 0;
    for (apr_uint64_t left = changed & ~STOCK_LANGUAGES_CHANGED; left; left &= left - 1)
        take_text(call, (unsigned)__builtin_ctzll(left), stock_get_text(u));
    if (changed & STOCK_LANGUAGES_CHANGED)
        take_languages(call->r, u);
    return !u->bad;
}

/* Takes over what the module has changed in the request of the call, as far as it may. `ends`: the call does. 0: that makes no sense. */
int mf_stock_unpack_request(mf_stock_call *call, stock_unpack *u, int ends)
{
    apr_size_t left = u->left;
    apr_uint64_t fields = stock_get(u), changed;
    int good = call->r && (!fields || take_fields(call, u));

    good = good && (!fields || mf_stock_charge(call->r, left - u->left));
    if (good && fields)
        mf_stock_request_of(call->r)->stale |= MF_STOCK_FIELDS;
    for (changed = stock_get(u); good && changed && !u->bad; changed--)
        good = take_change(call, u);
    if (!good || !fields)
        return good && !u->bad;
    left = u->left;
    changed = stock_get(u);
    for (unsigned i = 0; i < STOCK_TABLES; i++)
        if (changed >> i & 1) {
            mf_stock_request_of(call->r)->stale |= 1u << i;
            take_table(call->r, i, u);
        }
    if (!mf_stock_charge(call->r, left - u->left))
        return 0;
    /* What is not taken over is told again when the call is over. Until then the module has what it has written. */
    if (ends)
        mf_stock_request_of(call->r)->image->version++;
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

unsigned mf_stock_server_number(const server_rec *s)
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
    stock_put(p, mf_stock_server_number(s));
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
    stock_put(p, (apr_uint64_t)s->limit_req_line);
    stock_put(p, (apr_uint64_t)s->limit_req_fieldsize);
    stock_put(p, (apr_uint64_t)s->limit_req_fields);
}
