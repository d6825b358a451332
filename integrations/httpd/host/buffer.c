/* Buffers: memory of the server's that a handler fills, and that is sent from where it lies.
 *
 * Each domain has its own, a region, so the server's filters read memory that is always there, whatever the module has done to its own. They
 * read it only while the module does not run: its only thread has called, or has returned. What they keep beyond that they copy, as of any
 * transient bucket. When the domain is reset, the whole buffer is zeroes again: before each request, or after a fault, or never (FencedReset).
 *
 * It is no memory of the domain's, so FencedMemoryLimit does not count it: MF_BUFFER_MOST, a sixteenth of the least limit, is its own. */
#include "mod_fenced.h"

/* Makes the domain's buffer, or a larger one. */
static int make(mf_domain *d, apr_size_t capacity)
{
    apr_size_t size = MF_BUFFER_LEAST;

    if (d->buffer && d->buffer_size >= capacity)
        return 1;
    mf_buffer_destroy(d);
    while (size < capacity)
        size *= 2;
    if (rf_region_create(size, NULL, &d->buffer) == RF_OK && (d->buffer_view = rf_region_host_address(d->buffer)) &&
        rf_region_give(d->buffer, NULL, d->rf, RF_RIGHTS_WRITE) == RF_OK && (d->buffer_address = rf_region_address(d->buffer, d->rf))) {
        d->buffer_size = size;
        return 1;
    }
    mf_buffer_destroy(d);
    rf_error_clear();
    return 0;
}

void mf_buffer_destroy(mf_domain *d)
{
    rf_region_destroy(d->buffer);
    d->buffer = NULL;
    d->buffer_size = 0;
}

/* The request is over, and another's module must not see what is left of it. */
void mf_buffer_wipe(mf_domain *d)
{
    if (d->buffer)
        memset(d->buffer_view, 0, d->buffer_size);
}

/* The buffer's address in the domain, NULL if there is none of that size. What was handed over before is sent first. */
void *mf_buffer_take(mf_request *q, apr_size_t capacity)
{
    q->taken = 0;
    if (q->module->kind != MF_HANDLER || q->gone || q->refused || capacity == 0 || capacity > MF_BUFFER_MOST)
        return NULL;
    if ((q->handed && mf_pass(q)) || !make(q->domain, capacity))
        return NULL;
    q->taken = capacity;
    return q->domain->buffer_address;
}

/* Hands over its first bytes. 0, or -1. Each buffer once: what is handed over twice, or has no bytes, would only lengthen the brigade. */
int mf_buffer_send(mf_request *q, apr_size_t length)
{
    if (q->gone || q->refused || !q->taken || length > q->taken)
        return -1;
    if (!length) {
        q->taken = 0;
        return 0;
    }
    if (mf_announce(q, length))
        return -1;
    mf_close_piece(q);
    APR_BRIGADE_INSERT_TAIL(q->out, apr_bucket_transient_create(q->domain->buffer_view, length, q->r->connection->bucket_alloc));
    q->written += (apr_off_t)length;
    q->taken = 0;
    q->handed = 1;
    return 0;
}
