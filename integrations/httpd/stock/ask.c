/* Questions to the server. */
#include "inside.h"

#include <ringfence/module.h>

RF_IMPORT(uint64_t, stock_ask, (int op, const void *message, uint64_t length, void *reply, uint64_t capacity))

static int is_synced(stock_op op)
{
    return op > STOCK_LAST_PLAIN_;
}

void stock_ask_begin(question *q, stock_op op)
{
    stock_pack_begin(&q->out);
    q->own = NULL;
    if (is_synced(op))
        stock_tell_changes(&q->out);
}

void stock_ask_send(question *q, stock_op op)
{
    uint64_t length;

    if (q->out.failed)
        abort();
    stock_looks_further();
    length = stock_ask(op, q->out.bytes, q->out.length, q->first, sizeof q->first);
    stock_pack_end(&q->out);
    q->in = (stock_unpack){ q->first, length, 0 };
    if (length > sizeof q->first) {
        q->own = malloc(length);
        if (!q->own)
            abort();
        stock_ask(STOCK_ASK_FETCH, "", 0, q->own, length);
        q->in.at = q->own;
    }
}

/* After what the question itself has got, the answer has what the server has changed in the request meanwhile. */
void stock_ask_end(question *q, stock_op op)
{
    if (is_synced(op))
        stock_take_requests(&q->in);
    if (q->in.bad)
        abort();
    free(q->own);
    q->own = NULL;
}
