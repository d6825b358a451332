/* Filters of fenced stock modules, and the brigades that go in and out: the module sees numbers for the server's buckets, which stay here. */
#include "stock_ask.h"

#include "apr_portable.h"

#include <unistd.h>

enum { PIECE = 65536 /* bytes that are read at once */, OTHERS = 8 /* filters of others that one filter calls */ };

/* What a filter of a module keeps: its own addresses for its record and for what it knows, and what others' filters, which it calls, know. */
typedef struct {
    apr_uint64_t record, address;
    unsigned generation;
    struct {
        ap_filter_rec_t *rec;
        void *context;
    } others[OTHERS];
} kept;

/* ------------------------------------------------------------------------------------------------------------ of one call */

/* The brigade that a call is about, by the numbers that the module has for its buckets. */
struct mf_stock_brigade {
    apr_bucket_brigade *brigade; /* NULL: it has been passed on */
    apr_uint64_t first;          /* the number of the first */
    apr_bucket **all;
    unsigned count, room;
    apr_size_t held; /* bytes that it has got by GET_BRIGADE */
};

static int add_bucket(mf_stock_brigade *b, apr_bucket *e)
{
    if (b->count == b->room) {
        unsigned room = b->room ? 2 * b->room : 16;
        apr_bucket **all = realloc(b->all, room * sizeof *all);

        if (!all)
            return 0;
        b->all = all;
        b->room = room;
    }
    b->all[b->count++] = e;
    return 1;
}

static mf_stock_brigade make_brigade(apr_bucket_brigade *brigade)
{
    static apr_uint64_t last = 1;

    /* More than a brigade ever has: numbers of other calls name nothing. */
    return (mf_stock_brigade){ brigade, __atomic_fetch_add(&last, (apr_uint64_t)1 << 32, __ATOMIC_RELAXED), NULL, 0, 0, 0 };
}

static void end_brigade(mf_stock_brigade *b)
{
    free(b->all);
    b->all = NULL;
    b->count = b->room = 0;
}

static apr_bucket *find_bucket(const mf_stock_brigade *b, apr_uint64_t number)
{
    return b && b->brigade && number - b->first < b->count ? b->all[number - b->first] : NULL;
}

/* Describes buckets from `e` to the brigade's end. */
static int pack_buckets(mf_stock_brigade *b, apr_bucket *e, stock_pack *p)
{
    apr_uint64_t count = 0;

    for (apr_bucket *k = e; k != APR_BRIGADE_SENTINEL(b->brigade); k = APR_BUCKET_NEXT(k))
        count++;
    stock_put(p, b->first + b->count);
    stock_put(p, count);
    for (; e != APR_BRIGADE_SENTINEL(b->brigade); e = APR_BUCKET_NEXT(e)) {
        if (!add_bucket(b, e))
            return 0;
        stock_put(p, APR_BUCKET_IS_EOS(e)        ? STOCK_BUCKET_EOS
                     : APR_BUCKET_IS_FLUSH(e)    ? STOCK_BUCKET_FLUSH
                     : APR_BUCKET_IS_METADATA(e) ? STOCK_BUCKET_SIGN
                                                 : STOCK_BUCKET_DATA);
        stock_put(p, e->length);
    }
    return !p->failed;
}

/* Appends a copy of a part of a bucket. 0: there is no such part. */
static int copy_part(apr_bucket *e, apr_uint64_t start, apr_uint64_t length, apr_bucket_brigade *to)
{
    apr_bucket *copy, *tail;

    if (e->length != (apr_size_t)-1 && (start > e->length || length > e->length - start))
        return 0;
    if (e->length == (apr_size_t)-1 && (start || length != (apr_uint64_t)-1))
        return 0;
    if (apr_bucket_copy(e, &copy) != APR_SUCCESS) {
        const char *bytes;
        apr_size_t size;

        /* What cannot be copied is read; what is of unknown length is only passed on as it was. */
        if (e->length == (apr_size_t)-1 || apr_bucket_read(e, &bytes, &size, APR_BLOCK_READ) != APR_SUCCESS || start + length > size)
            return 0;
        copy = apr_bucket_heap_create(bytes + start, length, NULL, to->bucket_alloc);
        APR_BRIGADE_INSERT_TAIL(to, copy);
        return 1;
    }
    APR_BRIGADE_INSERT_TAIL(to, copy);
    if (length == (apr_uint64_t)-1)
        return 1;
    if (length < copy->length - start) {
        if (apr_bucket_split(copy, start + length) != APR_SUCCESS)
            return 0;
        tail = APR_BUCKET_NEXT(copy);
        apr_bucket_delete(tail);
    }
    if (start) {
        if (apr_bucket_split(copy, start) != APR_SUCCESS)
            return 0;
        apr_bucket_delete(copy);
    }
    return 1;
}

/* A bucket of the call's is moved: one without bytes, or one whose length is unknown. */
static int move_bucket(mf_stock_brigade *b, apr_uint64_t number, apr_bucket_brigade *to)
{
    apr_bucket *e = find_bucket(b, number);

    APR_BUCKET_REMOVE(e);
    b->all[number - b->first] = NULL;
    APR_BRIGADE_INSERT_TAIL(to, e);
    return 1;
}

/* Makes what a module describes. 0: it makes no sense. */
static int unpack_buckets(mf_stock_brigade *b, stock_unpack *u, apr_bucket_brigade *to)
{
    for (;;) {
        apr_uint64_t kind = stock_get(u), number, start, length;
        const char *bytes;
        apr_size_t size;
        apr_bucket *e;

        switch ((stock_bucket)kind) {
        case STOCK_BUCKETS_END: return !u->bad;
        case STOCK_BUCKET_EOS: e = apr_bucket_eos_create(to->bucket_alloc); break;
        case STOCK_BUCKET_FLUSH: e = apr_bucket_flush_create(to->bucket_alloc); break;
        case STOCK_BUCKET_BYTES:
            bytes = stock_get_bytes(u, &size);
            e = bytes ? apr_bucket_heap_create(bytes, size, NULL, to->bucket_alloc) : NULL;
            break;
        case STOCK_BUCKET_DATA:
        case STOCK_BUCKET_SIGN:
            number = stock_get(u);
            start = stock_get(u);
            length = stock_get(u);
            e = find_bucket(b, number);
            if (!e || (kind == STOCK_BUCKET_SIGN) != (APR_BUCKET_IS_METADATA(e) != 0))
                return 0;
            if (kind == STOCK_BUCKET_SIGN || (e->length == (apr_size_t)-1 && !start && length == (apr_uint64_t)-1)) {
                if (!move_bucket(b, number, to))
                    return 0;
            } else if (!copy_part(e, start, length, to)) {
                return 0;
            }
            continue;
        default: return 0;
        }
        if (!e || u->bad)
            return 0;
        APR_BRIGADE_INSERT_TAIL(to, e);
    }
}

/* Brigades are used again: each stays in the request's memory to its end, and a body may pass through many. */
struct mf_stock_spare {
    struct mf_stock_spare *next;
    apr_bucket_brigade *brigade;
};

static struct mf_stock_spare *take_spare(request_rec *r)
{
    mf_stock_request *q = mf_stock_request_of(r);
    struct mf_stock_spare *one = q->spares;

    if (one) {
        q->spares = one->next;
        return one;
    }
    one = apr_palloc(r->pool, sizeof *one);
    one->brigade = apr_brigade_create(r->pool, r->connection->bucket_alloc);
    return one;
}

static void give_spare(request_rec *r, struct mf_stock_spare *one)
{
    mf_stock_request *q = mf_stock_request_of(r);

    apr_brigade_cleanup(one->brigade);
    one->next = q->spares;
    q->spares = one;
}

/* What the module passes on: the brigade as it was given, or one that it has made, in `spare`. NULL: refused. */
static apr_bucket_brigade *passed(mf_stock_question *a, apr_uint64_t whole, struct mf_stock_spare *spare)
{
    mf_stock_brigade *b = a->call->buckets;
    apr_bucket_brigade *made;

    if (whole) {
        made = b ? b->brigade : NULL;
        if (b)
            b->brigade = NULL;
    } else {
        made = unpack_buckets(b, &a->in, spare->brigade) ? spare->brigade : NULL;
    }
    if (!made)
        a->refused = "it passes on what it was not given, or not any more";
    return made;
}

/* --------------------------------------------------------------------------------------------------------- registration */

/* Those of connections are called for no request. A name that is there already stands for another's filter, which the server would change. */
void mf_stock_op_REGISTER_FILTER(mf_stock_question *a)
{
    mf_stock *m = a->m;
    const char *name = stock_get_text(&a->in);
    apr_uint64_t type = stock_get(&a->in), record = stock_get(&a->in), begins = stock_get(&a->in), is_input = stock_get(&a->in);

    if (!a->call || !a->call->hooking || !name || m->filter_count == MF_STOCK_FILTERS || type >= AP_FTYPE_CONNECTION ||
        (is_input ? ap_get_input_filter_handle(name) : ap_get_output_filter_handle(name))) {
        a->refused = "it registers a filter that cannot be";
        return;
    }
    name = apr_pstrdup(a->call->pool, name);
    m->filter_records[m->filter_count] = record;
    m->filters[m->filter_count++] =
        is_input ? ap_register_input_filter(name, mf_stock_input_filter, begins ? mf_stock_filter_begin : NULL, (ap_filter_type)type)
                 : ap_register_output_filter(name, mf_stock_filter, begins ? mf_stock_filter_begin : NULL, (ap_filter_type)type);
}

/* Of the server's own, and of others: they get nothing from this module, which those of connections rely on. */
void mf_stock_op_ADD_FILTER(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    const char *name = stock_get_text(&a->in);
    ap_filter_rec_t *rec = name ? ap_get_output_filter_handle(name) : NULL;

    if (r)
        stock_put(&a->out, rec && rec->ftype < AP_FTYPE_CONNECTION && ap_add_output_filter_handle(rec, NULL, r, r->connection));
}

void mf_stock_op_ADD_INPUT_FILTER(mf_stock_question *a)
{
    request_rec *r = mf_stock_own_request(a);
    const char *name = stock_get_text(&a->in);
    ap_filter_rec_t *rec = name ? ap_get_input_filter_handle(name) : NULL;

    if (r)
        stock_put(&a->out, rec && rec->ftype < AP_FTYPE_CONNECTION && ap_add_input_filter_handle(rec, NULL, r, r->connection));
}

/* A record for filters that modules make themselves: the server tells them apart by their type alone. NULL: that cannot be. */
static ap_filter_rec_t *record_of(mf_stock *m, int type, int begins)
{
    ap_filter_rec_t *rec = NULL;

    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < MF_STOCK_FILTERS && !rec; i++) {
        ap_filter_rec_t *k = &m->made[i];

        if (!k->name) {
            k->name = m->name;
            k->filter_func.out_func = mf_stock_filter;
            k->filter_init_func = begins ? mf_stock_filter_begin : NULL;
            k->ftype = (ap_filter_type)type;
        }
        if ((int)k->ftype == type && (k->filter_init_func != NULL) == begins)
            rec = k;
    }
    pthread_mutex_unlock(&m->lock);
    return rec;
}

/* Adds one of the module's own filters to the request. 0: it has none of that name, or another has taken the name since and would rely on what
 * the module says. */
int mf_stock_add_filter(mf_stock_call *call, const char *name, apr_uint64_t context)
{
    mf_stock *m = call->m;
    const ap_filter_rec_t *rec = ap_get_output_filter_handle(name);
    kept *k = apr_pcalloc(call->r->pool, sizeof *k);

    k->address = context;
    k->generation = m->generation;
    for (unsigned i = 0; i < m->filter_count; i++)
        if (m->filters[i] == rec && rec->filter_func.out_func == mf_stock_filter) {
            k->record = m->filter_records[i];
            return ap_add_output_filter_handle(m->filters[i], k, call->r, call->r->connection) != NULL;
        }
    return 0;
}

/* The same of one that it has made. `how`: its type, and whether it begins. */
int mf_stock_add_made(mf_stock_call *call, apr_uint64_t record, const char *context, const char *how)
{
    int type = atoi(how), begins = strchr(how, ' ') && atoi(strchr(how, ' ') + 1) != 0;
    ap_filter_rec_t *rec;
    kept *k;

    if (type < AP_FTYPE_RESOURCE || type >= AP_FTYPE_CONNECTION || !(rec = record_of(call->m, type, begins)))
        return 0;
    k = apr_pcalloc(call->r->pool, sizeof *k);
    k->record = record;
    k->address = (apr_uint64_t)apr_strtoi64(context, NULL, 10);
    k->generation = call->m->generation;
    return ap_add_output_filter_handle(rec, k, call->r, call->r->connection) != NULL;
}

/* ----------------------------------------------------------------------------------------------------------------- calls */

/* The module whose filter that is. */
static mf_stock *owner(const ap_filter_rec_t *rec, apr_uint64_t *record)
{
    const apr_array_header_t *all = mf_stocks();

    *record = 0;
    for (int i = 0; all && i < all->nelts; i++) {
        mf_stock *m = APR_ARRAY_IDX(all, i, mf_stock *);

        if (rec >= m->made && rec < m->made + MF_STOCK_FILTERS)
            return m;
        for (unsigned k = 0; k < m->filter_count; k++)
            if (m->filters[k] == rec) {
                *record = m->filter_records[k];
                return m;
            }
    }
    return NULL;
}

/* Begins a call of a filter. 0: it cannot be called. */
static int begin(mf_stock_call *call, ap_filter_t *f, stock_pack *message)
{
    kept *k = f->ctx;
    apr_uint64_t record;

    *call = (mf_stock_call){ .m = owner(f->frec, &record), .r = f->r, .pool = f->r->pool, .filter = f };
    if (!k) {
        /* Directives such as SetOutputFilter add filters, too. */
        k = f->ctx = apr_pcalloc(f->r->pool, sizeof *k);
        k->generation = call->m->generation;
        k->record = record;
    }
    if (mf_stock_failed(f->r) || k->generation != call->m->generation || !mf_stock_begin(call, message))
        return 0;
    if (!mf_stock_pack_request(call, message)) {
        stock_pack_end(message);
        return 0;
    }
    stock_put(message, k->record);
    stock_put(message, k->address);
    return 1;
}

/* Calls it. 0: it failed; otherwise the answer is to be ended. */
static int enter(mf_stock_call *call, stock_kind kind, stock_pack *message, mf_stock_answer *answer, int *result)
{
    kept *k = call->filter->ctx;

    if (!mf_stock_enter(call, kind, message, answer))
        return 0;
    *result = (int)stock_get(&answer->u);
    k->address = stock_get(&answer->u);
    if (mf_stock_unpack_request(call, &answer->u, 1))
        return 1;
    mf_stock_answer_end(answer);
    return 0;
}

apr_status_t mf_stock_filter(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    mf_stock_brigade buckets = make_brigade(brigade);
    mf_stock_answer answer;
    mf_stock_call call;
    stock_pack message;
    int status = APR_EGENERAL;

    /* The page that tells of a failure goes past the filters that have failed. */
    if (mf_stock_failed(f->r) && f->r->status >= HTTP_INTERNAL_SERVER_ERROR) {
        ap_remove_output_filter(f);
        return ap_pass_brigade(f->next, brigade);
    }
    if (begin(&call, f, &message)) {
        call.buckets = &buckets;
        if (!pack_buckets(&buckets, APR_BRIGADE_FIRST(brigade), &message)) {
            stock_pack_end(&message);
            mf_stock_fail(f->r);
        } else if (enter(&call, STOCK_FILTER, &message, &answer, &status)) {
            mf_stock_answer_end(&answer);
        } else {
            mf_stock_fail(f->r);
            status = APR_EGENERAL;
        }
    } else {
        mf_stock_fail(f->r);
    }
    /* What has not been passed on is gone, as for any filter. */
    if (buckets.brigade)
        apr_brigade_cleanup(brigade);
    end_brigade(&buckets);
    return status;
}

apr_status_t mf_stock_input_filter(ap_filter_t *f, apr_bucket_brigade *to, ap_input_mode_t mode, apr_read_type_e block, apr_off_t wanted)
{
    mf_stock_brigade buckets = make_brigade(NULL);
    struct mf_stock_spare *spare;
    int status = APR_EGENERAL;
    mf_stock_answer answer;
    mf_stock_call call;
    stock_pack message;

    if (mf_stock_failed(f->r)) {
        ap_remove_input_filter(f);
        return ap_get_brigade(f->next, to, mode, block, wanted);
    }
    if (!begin(&call, f, &message)) {
        mf_stock_fail(f->r);
        return APR_EGENERAL;
    }
    spare = take_spare(f->r);
    buckets.brigade = spare->brigade;
    call.buckets = &buckets;
    call.reads = 1;
    stock_put(&message, mode);
    stock_put(&message, block);
    stock_put(&message, (apr_uint64_t)wanted);
    if (!enter(&call, STOCK_INPUT_FILTER, &message, &answer, &status)) {
        mf_stock_fail(f->r);
        status = APR_EGENERAL;
    } else {
        if (!unpack_buckets(&buckets, &answer.u, to)) {
            mf_stock_fail(f->r);
            status = APR_EGENERAL;
        }
        mf_stock_answer_end(&answer);
    }
    give_spare(f->r, spare);
    end_brigade(&buckets);
    return status;
}

int mf_stock_filter_begin(ap_filter_t *f)
{
    mf_stock_answer answer;
    mf_stock_call call;
    stock_pack message;
    int result;

    if (!begin(&call, f, &message) || !enter(&call, STOCK_FILTER_BEGIN, &message, &answer, &result)) {
        mf_stock_fail(f->r);
        return HTTP_INTERNAL_SERVER_ERROR;
    }
    mf_stock_answer_end(&answer);
    return result == OK || (result >= 100 && result <= 599) ? result : HTTP_INTERNAL_SERVER_ERROR;
}

/* ------------------------------------------------------------------------------------------------------------- questions */

void mf_stock_op_PASS_BRIGADE(mf_stock_question *a)
{
    apr_uint64_t first = stock_get(&a->in), whole;
    ap_filter_t *f = first ? a->call->r->output_filters : a->call->filter ? a->call->filter->next : NULL;
    apr_bucket_brigade *brigade;
    struct mf_stock_spare *spare;

    stock_get_text(&a->in);
    whole = stock_get(&a->in);
    if (!f || !a->call->r) {
        a->refused = "it passes on what it was not given, or not any more";
        return;
    }
    spare = take_spare(a->call->r);
    if ((brigade = passed(a, whole, spare)))
        stock_put(&a->out, (apr_uint64_t)ap_pass_brigade(f, brigade));
    give_spare(a->call->r, spare);
}

void mf_stock_op_GET_BRIGADE(mf_stock_question *a)
{
    mf_stock_brigade *b = a->call->buckets;
    ap_input_mode_t mode = (ap_input_mode_t)stock_get(&a->in);
    apr_read_type_e block = (apr_read_type_e)stock_get(&a->in);
    apr_off_t wanted = (apr_off_t)stock_get(&a->in);
    struct mf_stock_spare *spare;
    apr_bucket_brigade *got;
    apr_status_t status;
    apr_bucket *first;

    if (!b || !b->brigade || !a->call->filter || !a->call->reads || mode > AP_MODE_INIT ||
        block > APR_NONBLOCK_READ || wanted < 0) {
        a->refused = "it reads where there is nothing to read";
        return;
    }
    spare = take_spare(a->call->r);
    got = spare->brigade;
    status = ap_get_brigade(a->call->filter->next, got, mode, block, wanted);
    stock_put(&a->out, (apr_uint64_t)status);
    first = APR_BRIGADE_EMPTY(got) ? NULL : APR_BRIGADE_FIRST(got);
    for (apr_bucket *e = APR_BRIGADE_FIRST(got); e != APR_BRIGADE_SENTINEL(got); e = APR_BUCKET_NEXT(e))
        b->held += sizeof *e + (e->length == (apr_size_t)-1 ? 0 : e->length);
    APR_BRIGADE_CONCAT(b->brigade, got);
    give_spare(a->call->r, spare);
    if (!pack_buckets(b, first ? first : APR_BRIGADE_SENTINEL(b->brigade), &a->out))
        a->refused = "the server has no memory";
    /* All of it is there until the call ends. */
    if (b->held > MF_STOCK_KEPT)
        a->refused = MF_STOCK_HOARDS;
}

/* Bytes of a file, without the bucket's own way, which would keep them in memory as long as the request. */
static apr_status_t read_file(const apr_bucket *e, apr_uint64_t start, char *to, apr_size_t *size)
{
    const apr_bucket_file *f = e->data;
    apr_os_file_t file;
    ssize_t n;

    if (apr_os_file_get(&file, f->fd) != APR_SUCCESS)
        return APR_EGENERAL;
    do
        n = pread(file, to, *size, (off_t)(e->start + (apr_off_t)start));
    while (n < 0 && errno == EINTR);
    *size = n > 0 ? (apr_size_t)n : 0;
    return n > 0 ? APR_SUCCESS : n < 0 ? errno : APR_EOF;
}

void mf_stock_op_READ_BUCKET(mf_stock_question *a)
{
    mf_stock_brigade *b = a->call->buckets;
    apr_uint64_t number = stock_get(&a->in);
    apr_bucket *e = find_bucket(b, number), *behind;
    apr_uint64_t start = stock_get(&a->in), wanted = stock_get(&a->in), rest = 0, rest_length = 0;
    apr_read_type_e block = stock_get(&a->in) ? APR_NONBLOCK_READ : APR_BLOCK_READ;
    const char *bytes = NULL;
    char piece[PIECE];
    apr_status_t status;
    apr_size_t size = 0;
    int grows = e && e->length == (apr_size_t)-1;

    if (!e || APR_BUCKET_IS_METADATA(e) || (e->length != (apr_size_t)-1 && start > e->length)) {
        a->refused = "it reads what it was not given, or not any more";
        return;
    }
    if (wanted > PIECE)
        wanted = PIECE;
    behind = APR_BUCKET_NEXT(e);
    if (APR_BUCKET_IS_FILE(e)) {
        size = wanted < e->length - start ? wanted : e->length - start;
        bytes = piece;
        status = size ? read_file(e, start, piece, &size) : APR_SUCCESS;
    } else {
        status = apr_bucket_read(e, &bytes, &size, block);
        /* Reading may have made two of it. */
        if (status == APR_SUCCESS && APR_BUCKET_NEXT(e) != behind && add_bucket(b, APR_BUCKET_NEXT(e))) {
            rest = b->first + b->count - 1;
            rest_length = APR_BUCKET_NEXT(e)->length;
        }
        if (status == APR_SUCCESS) {
            bytes += start < size ? start : size;
            size -= start < size ? start : size;
            size = size < wanted ? size : wanted;
        }
    }
    stock_put(&a->out, (apr_uint64_t)status);
    stock_put(&a->out, e->length);
    stock_put(&a->out, rest);
    stock_put(&a->out, rest_length);
    stock_put_bytes(&a->out, status == APR_SUCCESS ? bytes : NULL, size);
    /* A program's output, say, comes to light piece by piece, without end: what the module has, the server need not keep. */
    if (grows && status == APR_SUCCESS && size == e->length) {
        b->all[number - b->first] = NULL;
        apr_bucket_delete(e);
    }
}

/* ------------------------------------------------------------------------------------------------------- others' filters */

void mf_stock_op_FIND_FILTER(mf_stock_question *a)
{
    const char *name = stock_get_text(&a->in);
    const ap_filter_rec_t *rec = name ? ap_get_output_filter_handle(name) : NULL;

    stock_put(&a->out, rec != NULL);
    stock_put(&a->out, rec ? (apr_uint64_t)rec->ftype : 0);
    stock_put(&a->out, rec && rec->filter_init_func);
}

/* A filter of another's in the place of the one that runs: what it knows is kept with that. NULL: there is none. */
static void **other(mf_stock_question *a, const char *name, ap_filter_rec_t **rec)
{
    kept *k = a->call->filter ? a->call->filter->ctx : NULL;
    apr_uint64_t record;

    *rec = name ? ap_get_output_filter_handle(name) : NULL;
    if (!k || !*rec || owner(*rec, &record) == a->m || (*rec)->ftype >= AP_FTYPE_PROTOCOL)
        return NULL;
    for (int i = 0; i < OTHERS; i++) {
        if (!k->others[i].rec)
            k->others[i].rec = *rec;
        if (k->others[i].rec == *rec)
            return &k->others[i].context;
    }
    return NULL;
}

void mf_stock_op_BEGIN_FILTER(mf_stock_question *a)
{
    ap_filter_rec_t *rec, *own;
    void **context = other(a, stock_get_text(&a->in), &rec), *before;
    ap_filter_t *f = a->call->filter;

    if (!context || !rec->filter_init_func) {
        a->refused = "it calls a filter that is not there";
        return;
    }
    own = f->frec;
    before = f->ctx;
    f->frec = rec;
    f->ctx = *context;
    stock_put(&a->out, (apr_uint64_t)rec->filter_init_func(f));
    *context = f->ctx;
    f->frec = own;
    f->ctx = before;
}

void mf_stock_op_CALL_FILTER(mf_stock_question *a)
{
    ap_filter_rec_t *rec, *own;
    apr_bucket_brigade *brigade;
    ap_filter_t *f = a->call->filter;
    struct mf_stock_spare *spare;
    void **context, *before;
    apr_uint64_t whole;

    stock_get(&a->in);
    context = other(a, stock_get_text(&a->in), &rec);
    whole = stock_get(&a->in);
    if (!context) {
        a->refused = "it calls a filter that is not there";
        return;
    }
    spare = take_spare(a->call->r);
    if (!(brigade = passed(a, whole, spare))) {
        give_spare(a->call->r, spare);
        return;
    }
    own = f->frec;
    before = f->ctx;
    f->frec = rec;
    f->ctx = *context;
    stock_put(&a->out, (apr_uint64_t)rec->filter_func.out_func(f, brigade));
    *context = f->ctx;
    f->frec = own;
    f->ctx = before;
    give_spare(a->call->r, spare);
}
