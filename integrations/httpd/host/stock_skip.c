/* Calls that the server spares: of hooks that have declined without looking at more of a request than what is the same again.
 *
 * A hook is watched in the module's domain for its first calls (stock/observe.c). If it declines, changes nothing, and looks at nothing but
 * its directory's record, its server and a few fields of the request, then it is not called again for the same record and server, as long as
 * those fields are equal. All of that is the module's word, and about its own hooks alone: it could as well decline. Texts that name a file or
 * a client are never among the fields, so nothing is kept for single requests. */
#include "stock.h"

enum { TRIES = 256 /* calls of a hook that are watched */, KNOWN = 8 /* outcomes of one */, VALUES = 6 };

typedef struct {
    unsigned field;
    int is_text;
    apr_uint64_t number;
    const char *text;
} value;

typedef struct {
    apr_uint64_t record;
    const server_rec *server;
    int level, result;
    unsigned count;
    value values[VALUES];
} outcome;

struct mf_stock_known {
    unsigned count, tries;
    outcome all[KNOWN];
};

static const stock_field texts[] = { STOCK_TEXTS(STOCK_FIELD_) };
static const stock_field numbers[] = { STOCK_NUMBERS(STOCK_FIELD_) };

#define AT(name) offsetof(request_rec, name)

/* Fields that requests have in common. */
static int is_common(apr_size_t offset)
{
    static const apr_uint16_t all[] = { AT(assbackwards), AT(proxyreq),    AT(header_only),    AT(proto_num),     AT(status),
                                        AT(method),       AT(method_number), AT(chunked),      AT(read_body),     AT(read_chunked),
                                        AT(used_path_info), AT(eos_sent),  AT(no_cache),       AT(no_local_copy), AT(finfo.filetype),
                                        AT(finfo.valid),  AT(protocol),    AT(content_type),   AT(handler),       AT(content_encoding),
                                        AT(user),         AT(ap_auth_type), AT(status_line),   AT(expecting_100) };

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] == offset)
            return 1;
    return 0;
}

/* Where each module always sees the same, whatever it does: what lies behind is watched. */
static int is_fixed(apr_size_t offset)
{
    static const apr_uint16_t all[] = { AT(pool),          AT(connection),       AT(server),          AT(next),           AT(prev),
                                        AT(main),          AT(headers_in),       AT(headers_out),     AT(err_headers_out), AT(subprocess_env),
                                        AT(notes),         AT(trailers_in),      AT(trailers_out),    AT(per_dir_config), AT(request_config),
                                        AT(log),           AT(output_filters),   AT(proto_output_filters), AT(htaccess) };

    for (unsigned i = 0; i < sizeof all / sizeof *all; i++)
        if (offset - all[i] < sizeof(void *))
            return 1;
    return 0;
}

/* The words of a request that a hook has looked at, as values to compare. 0: there are too many, or others. */
static int take_values(outcome *o, request_rec *r, const apr_uint64_t *looked)
{
    for (apr_size_t word = 0; word < 64 * STOCK_LOOKED; word++) {
        apr_size_t from = 4 * word, before = o->count;

        if (!(looked[word / 64] >> word % 64 & 1) || is_fixed(from))
            continue;
        for (unsigned i = 0; i < STOCK_TEXT_COUNT; i++)
            if (from - texts[i].offset < texts[i].size) {
                const char *text = *stock_text_of(r, &texts[i]);

                if (!is_common(texts[i].offset) || o->count == VALUES)
                    return 0;
                o->values[o->count++] = (value){ i, 1, 0, text };
            }
        for (unsigned i = 0; i < STOCK_NUMBER_COUNT; i++)
            if (numbers[i].offset < from + 4 && numbers[i].offset + numbers[i].size > from) {
                if (!is_common(numbers[i].offset) || o->count == VALUES)
                    return 0;
                o->values[o->count++] = (value){ i, 0, stock_number_of(r, &numbers[i]), NULL };
            }
        if (o->count == before)
            return 0;
    }
    return 1;
}

static int is_equal(const value *v, request_rec *r)
{
    const char *text;

    if (!v->is_text)
        return stock_number_of(r, &numbers[v->field]) == v->number;
    text = *stock_text_of(r, &texts[v->field]);
    return text == v->text || (text && v->text && strcmp(text, v->text) == 0);
}

/* What stays the same for a hook besides. 0: the record is one of this request's own, such as that of an .htaccess file. */
static int has_lasting_record(const mf_stock *m, const request_rec *r, apr_uint64_t *address)
{
    const mf_stock_record *record = r->per_dir_config ? ap_get_module_config(r->per_dir_config, &m->host) : NULL;

    *address = record ? record->address : 0;
    return !record || record->generation == 0;
}

static const outcome *find(const mf_stock_known *k, apr_uint64_t record, request_rec *r, int level)
{
    unsigned count = __atomic_load_n(&k->count, __ATOMIC_ACQUIRE);

    for (unsigned i = 0; i < count; i++) {
        const outcome *o = &k->all[i];
        unsigned n = 0;

        if (o->record != record || o->server != r->server || o->level != level)
            continue;
        while (n < o->count && is_equal(&o->values[n], r))
            n++;
        if (n == o->count)
            return o;
    }
    return NULL;
}

mf_stock_known *mf_stock_make_known(apr_pool_t *pool)
{
    return apr_pcalloc(pool, sizeof(mf_stock_known));
}

/* Whether the hook need not be called for the request: `*result`. */
int mf_stock_is_known(const mf_stock *m, const mf_stock_hook *hook, request_rec *r, int *result)
{
    const mf_stock_known *k = hook->known;
    const outcome *o;
    apr_uint64_t record;

    if (!k || !k->count || m->remembers || !has_lasting_record(m, r, &record))
        return 0;
    o = find(k, record, r, ap_get_request_module_loglevel(r, m->host.module_index));
    if (o)
        *result = o->result;
    return o != NULL;
}

/* Whether the call that comes is to be watched. */
int mf_stock_watches(const mf_stock *m, const mf_stock_hook *hook, request_rec *r)
{
    apr_uint64_t record;

    return hook->known && !m->remembers && hook->known->tries < TRIES && hook->known->count < KNOWN && has_lasting_record(m, r, &record) &&
           __atomic_fetch_add(&hook->known->tries, 1, __ATOMIC_RELAXED) < TRIES;
}

/* After such a call: what the module says of it. */
void mf_stock_learn(mf_stock *m, const mf_stock_hook *hook, request_rec *r, stock_unpack *u, int result)
{
    mf_stock_known *k = hook->known;
    apr_uint64_t same = stock_get(u), looked[STOCK_LOOKED];
    int level = ap_get_request_module_loglevel(r, m->host.module_index);
    outcome o = { .server = r->server, .level = level, .result = result };

    for (unsigned i = 0; i < STOCK_LOOKED; i++)
        looked[i] = stock_get(u);
    if (u->bad || !same || (result != OK && result != DECLINED) || !has_lasting_record(m, r, &o.record) || !take_values(&o, r, looked))
        return;
    pthread_mutex_lock(&m->lock);
    if (k->count < KNOWN && !find(k, o.record, r, level)) {
        int good = 1;

        for (unsigned i = 0; i < o.count; i++)
            if (o.values[i].text)
                good &= (o.values[i].text = strdup(o.values[i].text)) != NULL;
        if (good) {
            k->all[k->count] = o;
            __atomic_store_n(&k->count, k->count + 1, __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&m->lock);
}
