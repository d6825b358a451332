/* Calls of fenced stock modules: the message goes in, the answer comes out, and what a fault leaves is put back. */
#include "stock.h"

enum {
    FRAME = 8192,  /* bytes of an ordinary message */
    SHORT = 256,   /* of an ordinary answer */
    PATIENCE = 200 /* ms that a reset waits for other threads */
};

/* What a module has for a pool of the server. */
typedef struct {
    mf_stock *m;
    apr_uint64_t address;
    unsigned generation;
} shadow;

static __thread mf_stock_call *current;

mf_stock_call *mf_stock_current(void)
{
    return current;
}

/* Whether what was made in that generation is still there. 0: before the state was kept that resets return to. */
static int is_good(const mf_stock *m, unsigned generation)
{
    return generation == 0 || generation == m->generation;
}

static unsigned generation(const mf_stock *m)
{
    return m->ready ? m->generation : 0;
}

static mf_stock_frame *take_frame(mf_stock *m, apr_size_t size)
{
    mf_stock_frame *frame = NULL;

    pthread_mutex_lock(&m->lock);
    if (size <= FRAME && m->frames) {
        frame = m->frames;
        m->frames = frame->next;
    }
    pthread_mutex_unlock(&m->lock);
    if (frame || !(frame = malloc(sizeof *frame)))
        return frame;
    frame->size = size < FRAME ? FRAME : size;
    frame->address = rf_memory_alloc(m->domain, frame->size);
    if (!frame->address) {
        free(frame);
        return NULL;
    }
    return frame;
}

/* `made`: the generation that the frame was taken in. A reset has freed those of earlier ones. */
static void give_frame(mf_stock *m, mf_stock_frame *frame, unsigned made)
{
    pthread_mutex_lock(&m->lock);
    if (made != m->generation) {
        free(frame);
    } else if (frame->size > FRAME) {
        if (rf_memory_free(m->domain, frame->address) != RF_OK)
            rf_error_clear();
        free(frame);
    } else {
        frame->next = m->frames;
        m->frames = frame;
    }
    pthread_mutex_unlock(&m->lock);
}

static void forget_frames(mf_stock *m, int free_them)
{
    while (m->frames) {
        mf_stock_frame *frame = m->frames;

        m->frames = frame->next;
        if (free_them && rf_memory_free(m->domain, frame->address) != RF_OK)
            rf_error_clear();
        free(frame);
    }
}

/* Puts a module that has failed back to its state after the start. Whoever comes first does it, when all others have left. */
static int revive(mf_stock *m)
{
    int good = 0;

    for (const mf_stock_call *call = current; call; call = call->up)
        if (call->m == m)
            return 0; /* this thread itself is inside */
    pthread_mutex_lock(&m->lock);
    if (rf_domain_state(m->domain) == RF_OK)
        good = 1;
    for (int i = 0; !good && m->ready && i < PATIENCE; i++) {
        rf_status status = rf_domain_reset(m->domain);

        if (status == RF_OK) {
            good = 1;
            m->generation++;
            forget_frames(m, 0);
        } else if (status == RF_ERROR_BUSY) {
            apr_sleep(1000);
        } else {
            break;
        }
    }
    if (good)
        m->down = 0;
    rf_error_clear();
    pthread_mutex_unlock(&m->lock);
    return good;
}

static void report(mf_stock_call *call)
{
    const rf_error_info *error = rf_error();
    const char *message = error ? error->message : "its answer cannot be read";
    const char *calls = error && call->pool ? mf_callers(call->pool, error) : "";

    if (call->r)
        ap_log_rerror(APLOG_MARK, APLOG_ERR, 0, call->r, "fenced %s: %s%s", call->m->name, message, calls);
    else
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, ap_server_conf, "fenced %s: %s%s", call->m->name, message, calls);
    rf_error_clear();
}

static apr_status_t end_pool(void *data)
{
    shadow *s = data;
    mf_stock_call call = { .m = s->m };
    mf_stock_answer answer;
    stock_pack message;

    if (!s->address || !is_good(s->m, s->generation) || !s->m->domain || !s->generation)
        return APR_SUCCESS;
    if (mf_stock_begin(&call, &message)) {
        stock_put(&message, s->address);
        if (mf_stock_enter(&call, STOCK_END_POOL, &message, &answer))
            mf_stock_answer_end(&answer);
    }
    return APR_SUCCESS;
}

static shadow *shadow_of(mf_stock *m, apr_pool_t *pool)
{
    static const char *const keys[] = { "fenced0",  "fenced1",  "fenced2",  "fenced3",  "fenced4",  "fenced5",  "fenced6",  "fenced7",
                                        "fenced8",  "fenced9",  "fenced10", "fenced11", "fenced12", "fenced13", "fenced14", "fenced15",
                                        "fenced16", "fenced17", "fenced18", "fenced19", "fenced20", "fenced21", "fenced22", "fenced23",
                                        "fenced24", "fenced25", "fenced26", "fenced27", "fenced28", "fenced29", "fenced30", "fenced31" };
    void *data = NULL;
    shadow *s;

    apr_pool_userdata_get(&data, keys[m->number], pool);
    if (data)
        return data;
    s = apr_pcalloc(pool, sizeof *s);
    s->m = m;
    apr_pool_userdata_setn(s, keys[m->number], end_pool, pool);
    return s;
}

/* For requests, the module sees to its memory itself. */
static int has_shadow(const mf_stock_call *call)
{
    return call->pool && !call->r;
}

/* Begins a message to the module of `call`. 0 if that cannot be called. */
int mf_stock_begin(mf_stock_call *call, stock_pack *message)
{
    mf_stock *m = call->m;
    shadow *s = has_shadow(call) ? shadow_of(m, call->pool) : NULL;

    if (m->down && !revive(m))
        return 0;
    if (s && !is_good(m, s->generation))
        s->address = 0;
    stock_pack_begin(message);
    stock_put(message, s ? s->address : 0);
    stock_put(message, s != NULL);
    return 1;
}

void mf_stock_answer_end(mf_stock_answer *answer)
{
    free(answer->own);
    answer->own = NULL;
}

/* The module says whether the request's end matters to it. */
static void hold(mf_stock_call *call, apr_uint64_t flags)
{
    if (flags & STOCK_REMEMBERS)
        call->m->remembers = 1;
    if (flags & STOCK_POOL_HELD)
        mf_stock_request_of(call->r)->holding |= (apr_uint32_t)1 << call->m->number;
}

/* Reads what lies at `at` in the domain: its length, and that many bytes. Behind each answer is memory for one of SHORT bytes. */
static int read_answer(mf_stock_call *call, apr_uint64_t at, mf_stock_answer *answer)
{
    apr_uint64_t length;
    char *to = answer->first + sizeof length;
    void *from = (void *)(apr_uintptr_t)at;

    answer->own = NULL;
    if (rf_memory_read(call->m->domain, from, answer->first, SHORT) != RF_OK)
        return 0;
    memcpy(&length, answer->first, sizeof length);
    if (length > STOCK_LARGEST)
        return 0;
    if (length > SHORT - sizeof length) {
        if (length > sizeof answer->first - sizeof length && !(to = answer->own = malloc(length)))
            return 0;
        if (rf_memory_read(call->m->domain, (char *)from + sizeof length, to, length) != RF_OK) {
            mf_stock_answer_end(answer);
            return 0;
        }
    }
    answer->u = (stock_unpack){ to, length, 0 };
    if (call->r) {
        hold(call, stock_get(&answer->u));
    } else if (has_shadow(call)) {
        shadow *s = shadow_of(call->m, call->pool);
        apr_uint64_t address = stock_get(&answer->u);

        if (!s->address) {
            s->address = address;
            s->generation = generation(call->m);
        }
    } else {
        stock_get(&answer->u);
    }
    return 1;
}

/* A call has failed. */
static void fail(mf_stock_call *call)
{
    report(call);
    __atomic_fetch_add(&call->m->counters->faults, 1, __ATOMIC_RELAXED);
    call->m->down = 1;
    revive(call->m);
}

/* Calls the module and ends the message. 1: `answer` is to be read, and ended; 0: it failed, which has been logged. */
int mf_stock_enter(mf_stock_call *call, stock_kind kind, stock_pack *message, mf_stock_answer *answer)
{
    mf_stock *m = call->m;
    unsigned made = m->generation;
    mf_stock_frame *frame = message->failed ? NULL : take_frame(m, message->length);
    apr_uint64_t at = 0;
    int good = 0;

    if (frame && rf_memory_write(m->domain, frame->address, message->bytes, message->length) == RF_OK) {
        call->up = current;
        current = call;
        at = m->enter(kind, frame->address, message->length);
        current = call->up;
        good = rf_call_status() == RF_OK && read_answer(call, at, answer);
        __atomic_fetch_add(&m->counters->in, 1, __ATOMIC_RELAXED);
    }
    stock_pack_end(message);
    if (frame)
        give_frame(m, frame, made);
    if (!good)
        fail(call);
    return good;
}

/* Calls a hook for a request that names no others: without a message. 1: `result`, and `answer`, if it has anything to read (answer->u.left),
 * are good; the answer is to be ended. `watch`: it has what the hook looked at, too. 0: it failed, which has been logged. */
int mf_stock_run(mf_stock_call *call, const mf_stock_hook *hook, int watch, mf_stock_answer *answer, int *result)
{
    mf_stock *m = call->m;
    apr_uint64_t at;
    int good;

    answer->own = NULL;
    answer->u = (stock_unpack){ NULL, 0, 0 };
    call->up = current;
    current = call;
    at = m->run(hook->hook, hook->function, mf_stock_request_of(call->r)->slot, mf_stock_record_of(m, call->r),
                ap_get_request_module_loglevel(call->r, m->host.module_index) | (watch ? STOCK_WATCHED : 0));
    current = call->up;
    __atomic_fetch_add(&m->counters->in, 1, __ATOMIC_RELAXED);
    good = rf_call_status() == RF_OK;
    if (good && at >> 32) {
        good = read_answer(call, at, answer);
        *result = good ? (int)stock_get(&answer->u) : 0;
    } else if (good) {
        *result = (apr_int16_t)at;
        hold(call, at);
    }
    if (!good)
        fail(call);
    return good;
}

/* The request ends, which the module wants to know. */
void mf_stock_end_request(mf_stock *m, request_rec *r)
{
    mf_stock_call call = { .m = m };
    mf_stock_answer answer;
    stock_pack message;

    if (!m->domain || rf_domain_state(m->domain) != RF_OK || !mf_stock_begin(&call, &message))
        return;
    stock_put(&message, mf_stock_request_of(r)->slot);
    if (mf_stock_enter(&call, STOCK_END_REQUEST, &message, &answer))
        mf_stock_answer_end(&answer);
}

static int tell_images(mf_stock *m)
{
    mf_stock_call call = { .m = m };
    mf_stock_answer answer;
    stock_pack message;
    apr_uint64_t address = mf_stock_images_address(m);

    if (!address || !mf_stock_begin(&call, &message))
        return 0;
    stock_put(&message, address);
    if (!mf_stock_enter(&call, STOCK_IMAGES, &message, &answer))
        return 0;
    mf_stock_answer_end(&answer);
    return 1;
}

/* In a new process: what resets return to is the state now. */
apr_status_t mf_stock_keep(mf_stock *m, server_rec *s)
{
    int told = tell_images(m);

    forget_frames(m, 1);
    /* A checkpoint refuses domains with rights to regions. */
    if (!told || rf_domain_checkpoint(m->domain) != RF_OK || !mf_stock_images_give(m)) {
        ap_log_error(APLOG_MARK, APLOG_ERR, 0, s, "fenced %s: it will not come back after a failure: %s", m->name, rf_error()->message);
        rf_error_clear();
        return APR_EGENERAL;
    }
    m->ready = 1;
    return APR_SUCCESS;
}
