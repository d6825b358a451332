/* Filters: the module's, which the server calls, and others', which the module calls by questions. */
#include "inside.h"

#include "apr_buckets.h"

#include <pthread.h>

enum { FILTERS = 8, OTHERS = 32, BUCKETS = 64 /* of a brigade that is told as it was given */ };

static ap_filter_rec_t own[FILTERS];
static int is_input[FILTERS];
static unsigned own_count;
static char next; /* what stands for the next filter: it is the server's */

static ap_filter_rec_t subrequest = { .name = "SUBREQ_CORE" };
ap_filter_rec_t *ap_subreq_core_filter_handle = &subrequest;

/* ----------------------------------------------------------------------------------------------------------- registration */

static ap_filter_rec_t *add_own(const char *name, ap_filter_func f, ap_init_filter_func init, ap_filter_type type, int input)
{
    ap_filter_rec_t *rec = &own[own_count];
    question q;

    if (own_count == FILTERS)
        abort();
    rec->name = apr_pstrdup(stock_pool, name);
    rec->ftype = type;
    rec->filter_func = f;
    rec->filter_init_func = init;
    is_input[own_count++] = input;
    stock_ask_begin(&q, STOCK_ASK_REGISTER_FILTER);
    stock_put_text(&q.out, name);
    stock_put(&q.out, type);
    stock_put(&q.out, (uintptr_t)rec);
    stock_put(&q.out, init != NULL);
    stock_put(&q.out, (uint64_t)input);
    stock_ask_send(&q, STOCK_ASK_REGISTER_FILTER);
    stock_ask_end(&q, STOCK_ASK_REGISTER_FILTER);
    return rec;
}

ap_filter_rec_t *ap_register_output_filter(const char *name, ap_out_filter_func f, ap_init_filter_func init, ap_filter_type type)
{
    return add_own(name, (ap_filter_func){ .out_func = f }, init, type, 0);
}

ap_filter_rec_t *ap_register_input_filter(const char *name, ap_in_filter_func f, ap_init_filter_func init, ap_filter_type type)
{
    return add_own(name, (ap_filter_func){ .in_func = f }, init, type, 1);
}

static ap_filter_rec_t *find_own(const char *name)
{
    for (unsigned i = 0; i < own_count; i++)
        if (!is_input[i] && strcasecmp(own[i].name, name) == 0)
            return &own[i];
    return NULL;
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
    if (!find_own(name))
        return add(STOCK_ASK_ADD_FILTER, name, context, r);
    stock_note_change(stock_twin_of(r), STOCK_ADD_OWN, (uintptr_t)context, name, NULL);
    return (ap_filter_t *)(void *)&next;
}

ap_filter_t *ap_add_input_filter(const char *name, void *context, request_rec *r, conn_rec *c)
{
    return add(STOCK_ASK_ADD_INPUT_FILTER, name, context, r);
}

static void remove_filter(const ap_filter_t *f)
{
    if (!stock_entry || f != stock_entry->filter)
        abort();
    stock_note_change(stock_entry->t, STOCK_REMOVE_FILTER, 0, NULL, NULL);
}

void ap_remove_output_filter(ap_filter_t *f)
{
    remove_filter(f);
}

void ap_remove_input_filter(ap_filter_t *f)
{
    remove_filter(f);
}

/* -------------------------------------------------------------------------------------------------------------- brigades */

/* What the filter that runs was given, to tell whether it is passed on as it was. */
static __thread struct given {
    apr_bucket_brigade *brigade;
    uint64_t first, count, lengths[BUCKETS];
} given;

/* Passes a brigade to the filter behind this one, to the first of the request, or (`name`) to another's function. */
static apr_status_t pass(stock_op op, uint64_t to, const char *name, apr_bucket_brigade *brigade)
{
    apr_status_t status = APR_SUCCESS, local = APR_SUCCESS;

    do {
        int whole = brigade == given.brigade && given.count <= BUCKETS && stock_is_whole(brigade, given.first, given.count, given.lengths);
        question q;

        stock_ask_begin(&q, op);
        stock_put(&q.out, to);
        stock_put_text(&q.out, name);
        stock_put(&q.out, (uint64_t)whole);
        if (whole)
            apr_brigade_cleanup(brigade);
        else
            local = stock_put_brigade(&q.out, brigade);
        stock_ask_send(&q, op);
        status = (apr_status_t)stock_get(&q.in);
        stock_ask_end(&q, op);
    } while (status == APR_SUCCESS && local == APR_SUCCESS && !APR_BRIGADE_EMPTY(brigade));
    return local != APR_SUCCESS ? local : status;
}

apr_status_t ap_pass_brigade(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    if (f == (ap_filter_t *)(void *)&next)
        return pass(STOCK_ASK_PASS_BRIGADE, 0, NULL, brigade);
    if (!stock_entry || !stock_entry->t || f != &stock_entry->t->core_filter)
        abort();
    return pass(STOCK_ASK_PASS_BRIGADE, 1, NULL, brigade);
}

/* The answer's beginning, as the server has it: the status is told by the connection. */
apr_status_t ap_pass_brigade_fchk(request_rec *r, apr_bucket_brigade *brigade, const char *format, ...)
{
    apr_status_t status = ap_pass_brigade(r->output_filters, brigade);

    return status == APR_SUCCESS || r->connection->aborted ? OK : HTTP_INTERNAL_SERVER_ERROR;
}

apr_status_t ap_get_brigade(ap_filter_t *f, apr_bucket_brigade *to, ap_input_mode_t mode, apr_read_type_e block, apr_off_t wanted)
{
    apr_status_t status;
    question q;

    if (f != (ap_filter_t *)(void *)&next)
        abort();
    stock_ask_begin(&q, STOCK_ASK_GET_BRIGADE);
    stock_put(&q.out, mode);
    stock_put(&q.out, block);
    stock_put(&q.out, (uint64_t)wanted);
    stock_ask_send(&q, STOCK_ASK_GET_BRIGADE);
    status = (apr_status_t)stock_get(&q.in);
    stock_take_brigade(&q.in, to);
    stock_ask_end(&q, STOCK_ASK_GET_BRIGADE);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- others' filters */

/* A filter of another's: a module may call its functions, which know by their number whose they are. */
static ap_filter_rec_t others[OTHERS];
static unsigned other_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int begin_other(int k)
{
    int result;
    question q;

    stock_ask_begin(&q, STOCK_ASK_BEGIN_FILTER);
    stock_put_text(&q.out, others[k].name);
    stock_ask_send(&q, STOCK_ASK_BEGIN_FILTER);
    result = (int)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_BEGIN_FILTER);
    return result;
}

#define OTHER(k)                                                                                                                            \
    static int begin_##k(ap_filter_t *f)                                                                                                    \
    {                                                                                                                                       \
        return begin_other(k);                                                                                                              \
    }                                                                                                                                       \
    static apr_status_t call_##k(ap_filter_t *f, apr_bucket_brigade *brigade)                                                               \
    {                                                                                                                                       \
        return pass(STOCK_ASK_CALL_FILTER, 0, others[k].name, brigade);                                                                     \
    }
STOCK_32(OTHER)
#define BEGIN(k) begin_##k,
#define CALL(k) call_##k,
static const ap_init_filter_func begins[] = { STOCK_32(BEGIN) };
static const ap_out_filter_func calls[] = { STOCK_32(CALL) };

ap_filter_rec_t *ap_get_output_filter_handle(const char *name)
{
    ap_filter_rec_t *rec = find_own(name);
    int there, begun, type;
    unsigned k = 0;
    question q;

    if (rec)
        return rec;
    stock_ask_begin(&q, STOCK_ASK_FIND_FILTER);
    stock_put_text(&q.out, name);
    stock_ask_send(&q, STOCK_ASK_FIND_FILTER);
    there = (int)stock_get(&q.in);
    type = (int)stock_get(&q.in);
    begun = (int)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_FIND_FILTER);
    if (!there)
        return NULL;
    pthread_mutex_lock(&lock);
    while (k < other_count && strcasecmp(others[k].name, name) != 0)
        k++;
    if (k == other_count && k < OTHERS) {
        others[k].name = strdup(name);
        others[k].ftype = (ap_filter_type)type;
        others[k].filter_func.out_func = calls[k];
        others[k].filter_init_func = begun ? begins[k] : NULL;
        other_count++;
    }
    pthread_mutex_unlock(&lock);
    return k < OTHERS ? &others[k] : NULL;
}

static int is_other(const ap_filter_rec_t *rec)
{
    return rec >= others && rec < others + OTHERS;
}

/* A filter by its record, which the module may have made itself. */
ap_filter_t *ap_add_output_filter_handle(ap_filter_rec_t *f, void *context, request_rec *r, conn_rec *c)
{
    if (is_other(f) || find_own(f->name) == f)
        return ap_add_output_filter(f->name, context, r, c);
    stock_note_change(stock_twin_of(r), STOCK_ADD_MADE, (uintptr_t)f,
                      apr_psprintf(r->pool, "%" APR_UINT64_T_FMT, (apr_uint64_t)(uintptr_t)context),
                      apr_psprintf(r->pool, "%d %d", (int)f->ftype, f->filter_init_func != NULL));
    return (ap_filter_t *)(void *)&next;
}

/* ------------------------------------------------------------------------------------------------------------ being called */

static ap_filter_rec_t *checked(uintptr_t address)
{
    return (ap_filter_rec_t *)address; /* the module's own memory, as it was told */
}

/* What each of the three begins with. */
static void begin(stock_unpack *u, ap_filter_t *f)
{
    twin *t = stock_take_requests(u);

    if (!t)
        abort();
    f->frec = checked(stock_get(u));
    f->ctx = (void *)(uintptr_t)stock_get(u);
    stock_entry->t = t;
    stock_entry->pool = t->pool;
    f->r = &t->r;
    f->c = &t->c;
    f->next = (ap_filter_t *)(void *)&next;
    stock_entry->filter = f;
}

void stock_filter_begin(stock_unpack *u, stock_pack *p)
{
    ap_filter_t f = { 0 };
    int result;

    begin(u, &f);
    result = f.frec->filter_init_func(&f);
    stock_entry->filter = NULL;
    stock_put(p, (uint64_t)(int64_t)result);
    stock_put(p, (uintptr_t)f.ctx);
    stock_tell_changes(p);
}

void stock_filter(stock_unpack *u, stock_pack *p)
{
    struct given outer = given;
    apr_bucket_brigade brigade = { 0 };
    ap_filter_t f = { 0 };
    stock_unpack ahead;
    apr_status_t status;

    begin(u, &f);
    brigade.p = f.r->pool;
    brigade.bucket_alloc = &stock_bucket_alloc;
    APR_RING_INIT(&brigade.list, apr_bucket, link);
    ahead = *u;
    given.brigade = &brigade;
    given.first = stock_get(&ahead);
    given.count = stock_get(&ahead);
    for (uint64_t i = 0; i < given.count && i < BUCKETS; i++) {
        uint64_t kind = stock_get(&ahead), length = stock_get(&ahead);

        given.lengths[i] = kind == STOCK_BUCKET_EOS ? (uint64_t)-2 : kind == STOCK_BUCKET_FLUSH ? (uint64_t)-3 : length;
    }
    stock_take_brigade(u, &brigade);
    status = f.frec->filter_func.out_func(&f, &brigade);
    apr_brigade_cleanup(&brigade);
    given = outer;
    stock_entry->filter = NULL;
    stock_put(p, (uint64_t)(int64_t)status);
    stock_put(p, (uintptr_t)f.ctx);
    stock_tell_changes(p);
}

void stock_input_filter(stock_unpack *u, stock_pack *p)
{
    apr_bucket_brigade brigade = { 0 };
    ap_filter_t f = { 0 };
    ap_input_mode_t mode;
    apr_read_type_e block;
    apr_status_t status;

    begin(u, &f);
    brigade.p = f.r->pool;
    brigade.bucket_alloc = &stock_bucket_alloc;
    APR_RING_INIT(&brigade.list, apr_bucket, link);
    mode = (ap_input_mode_t)stock_get(u);
    block = (apr_read_type_e)stock_get(u);
    status = f.frec->filter_func.in_func(&f, &brigade, mode, block, (apr_off_t)stock_get(u));
    stock_entry->filter = NULL;
    stock_put(p, (uint64_t)(int64_t)status);
    stock_put(p, (uintptr_t)f.ctx);
    stock_tell_changes(p);
    if (stock_put_brigade(p, &brigade) != APR_SUCCESS || !APR_BRIGADE_EMPTY(&brigade))
        abort(); /* more than was wanted */
}
