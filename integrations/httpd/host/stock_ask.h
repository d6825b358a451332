/* stock_ask.h - what a fenced stock module asks of the server: a question, and the functions that answer, one for each. */
#ifndef MF_STOCK_ASK_H
#define MF_STOCK_ASK_H

#include "stock.h"

typedef struct mf_stock_question {
    mf_stock *m;
    mf_stock_call *call;
    stock_unpack in;
    stock_pack out;
    const char *refused; /* the module's call ends, with this */
} mf_stock_question;

#define MF_STOCK_OP(name) void mf_stock_op_##name(mf_stock_question *a);
STOCK_PLAIN_OPS(MF_STOCK_OP)
STOCK_SYNCED_OPS(MF_STOCK_OP)

/* The request that is named next, of the connection; the same, if it is that of the call. NULL: refused. */
request_rec *mf_stock_asked_request(mf_stock_question *a);
request_rec *mf_stock_own_request(mf_stock_question *a);

#endif
