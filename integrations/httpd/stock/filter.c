/* Output filters that pass on what they are given, and brigades of one file. */
#include "inside.h"

enum { FILTERS = 8 };

/* What a filter of the module is called with. */
typedef struct {
    ap_filter_rec_t rec;
    ap_out_filter_func function;
} registered;

static registered all[FILTERS];
static unsigned count;
static char next, given; /* what stands for the next filter, and for the brigade: they are the server's */

static ap_filter_rec_t subrequest = { .name = "SUBREQ_CORE" };
ap_filter_rec_t *ap_subreq_core_filter_handle = &subrequest;

ap_filter_rec_t *ap_register_output_filter(const char *name, ap_out_filter_func f, ap_init_filter_func init, ap_filter_type type)
{
    question q;

    if (init || count == FILTERS)
        abort();
    stock_ask_begin(&q, STOCK_ASK_REGISTER_FILTER);
    stock_put_text(&q.out, name);
    stock_put(&q.out, type);
    stock_put(&q.out, (uintptr_t)f);
    stock_ask_send(&q, STOCK_ASK_REGISTER_FILTER);
    stock_ask_end(&q, STOCK_ASK_REGISTER_FILTER);
    all[count].rec.name = apr_pstrdup(stock_pool, name);
    all[count].rec.ftype = type;
    all[count].rec.filter_func.out_func = f;
    all[count].function = f;
    return &all[count++].rec;
}

/* Modules do nothing with what this returns. */
static ap_filter_t *add(stock_op op, const char *name, void *context, const request_rec *r)
{
    question q;
    int good;

    if (context)
        return NULL; /* others' filters get nothing from this module */
    stock_ask_begin(&q, op);
    stock_put(&q.out, stock_number(r));
    stock_put_text(&q.out, name);
    stock_ask_send(&q, op);
    good = (int)stock_get(&q.in);
    stock_ask_end(&q, op);
    return good ? (ap_filter_t *)(void *)&next : NULL;
}

ap_filter_t *ap_add_output_filter(const char *name, void *context, request_rec *r, conn_rec *c)
{
    if (!ap_get_output_filter_handle(name))
        return add(STOCK_ASK_ADD_FILTER, name, context, r);
    stock_note_change(stock_twin_of(r), STOCK_ADD_OWN, (uintptr_t)context, name, NULL);
    return (ap_filter_t *)(void *)&next;
}

ap_filter_t *ap_add_input_filter(const char *name, void *context, request_rec *r, conn_rec *c)
{
    return add(STOCK_ASK_ADD_INPUT_FILTER, name, context, r);
}

ap_filter_t *ap_add_output_filter_handle(ap_filter_rec_t *f, void *context, request_rec *r, conn_rec *c)
{
    return ap_add_output_filter(f->name, context, r, c);
}

ap_filter_rec_t *ap_get_output_filter_handle(const char *name)
{
    for (unsigned i = 0; i < count; i++)
        if (strcasecmp(all[i].rec.name, name) == 0)
            return &all[i].rec;
    return NULL;
}

void ap_remove_output_filter(ap_filter_t *f)
{
    if (!stock_entry || f != stock_entry->filter)
        abort();
    stock_note_change(stock_entry->t, STOCK_REMOVE_FILTER, 0, NULL, NULL);
}

apr_status_t ap_pass_brigade(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    question q;
    apr_status_t status;

    if (f != (ap_filter_t *)(void *)&next || brigade != (apr_bucket_brigade *)(void *)&given)
        abort();
    stock_ask_begin(&q, STOCK_ASK_PASS_BRIGADE);
    stock_ask_send(&q, STOCK_ASK_PASS_BRIGADE);
    status = (apr_status_t)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_PASS_BRIGADE);
    return status;
}

/* ------------------------------------------------------------------------------------------------- a file as an answer */

/* What a handler makes to answer with a part of a file: nothing else fits into it. */
typedef struct {
    apr_file_t *file;
    apr_off_t start, length;
} part;

apr_bucket_brigade *apr_brigade_create(apr_pool_t *pool, apr_bucket_alloc_t *alloc)
{
    size_t size = sizeof(apr_bucket_brigade) + sizeof(part);
    apr_bucket_brigade *brigade = apr_pcalloc(pool, size);

    APR_RING_INIT(&brigade->list, apr_bucket, link);
    return brigade;
}

static part *part_of(apr_bucket_brigade *brigade)
{
    return (part *)(void *)(brigade + 1);
}

apr_bucket *apr_brigade_insert_file(apr_bucket_brigade *brigade, apr_file_t *file, apr_off_t start, apr_off_t length, apr_pool_t *pool)
{
    *part_of(brigade) = (part){ file, start, length };
    return apr_pcalloc(pool, sizeof(apr_bucket));
}

apr_bucket *apr_bucket_eos_create(apr_bucket_alloc_t *alloc)
{
    return calloc(1, sizeof(apr_bucket));
}

apr_status_t ap_pass_brigade_fchk(request_rec *r, apr_bucket_brigade *brigade, const char *format, ...)
{
    part *p = part_of(brigade);
    char bytes[8192];

    if (!p->file || apr_file_seek(p->file, APR_SET, &p->start) != APR_SUCCESS)
        return HTTP_INTERNAL_SERVER_ERROR;
    while (p->length > 0) {
        apr_size_t n = p->length < (apr_off_t)sizeof bytes ? (apr_size_t)p->length : sizeof bytes;

        if (apr_file_read(p->file, bytes, &n) != APR_SUCCESS || ap_rwrite(bytes, (int)n, r) < 0)
            return HTTP_INTERNAL_SERVER_ERROR;
        p->length -= (apr_off_t)n;
    }
    return OK;
}

/* ------------------------------------------------------------------------------------------------------------ being called */

void stock_filter(stock_unpack *u, stock_pack *p)
{
    twin *t = stock_take_requests(u);
    uintptr_t function = stock_get(u);
    ap_filter_t f = { 0 };
    apr_status_t status;

    f.ctx = (void *)(uintptr_t)stock_get(u);
    if (!t)
        abort();
    stock_entry->t = t;
    stock_entry->pool = t->pool;
    f.r = &stock_entry->t->r;
    f.c = &stock_entry->t->c;
    f.next = (ap_filter_t *)(void *)&next;
    for (unsigned i = 0; i < count; i++)
        if ((uintptr_t)all[i].function == function)
            f.frec = &all[i].rec;
    stock_entry->filter = &f;
    status = ((ap_out_filter_func)function)(&f, (apr_bucket_brigade *)(void *)&given);
    stock_entry->filter = NULL;
    stock_put(p, (uint64_t)(int64_t)status);
    stock_put(p, (uintptr_t)f.ctx);
    stock_tell_changes(p);
}
