/* Programs: their system calls for the standard streams, and the headers that they write. */
#include "mod_fenced.h"

#include "util_script.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/uio.h>

enum { VECTORS = 1024 /* of a readv or writev, as many as Linux takes */ };

/* Where the headers in q->head end, 0 if they do not yet. `from`: where to begin to look. */
static apr_size_t head_end(const mf_request *q, apr_size_t from)
{
    for (apr_size_t i = from < 2 ? 0 : from - 2; i < q->head_length; i++) {
        if (q->head[i] != '\n')
            continue;
        if (i == 0 || q->head[i - 1] == '\n' || (q->head[i - 1] == '\r' && (i == 1 || q->head[i - 2] == '\n')))
            return i + 1;
    }
    return 0;
}

/* The next line of the headers, for the server's own parser. */
static int next_line(char *to, int capacity, void *cursor)
{
    const char **at = cursor, *end = strchr(*at, '\n');
    apr_size_t length = end ? (apr_size_t)(end + 1 - *at) : strlen(*at);

    if (length == 0)
        return 0;
    if (length >= (apr_size_t)capacity)
        length = (apr_size_t)capacity - 1;
    memcpy(to, *at, length);
    to[length] = 0;
    *at += length;
    return 1;
}

/* q->head has all headers. */
static void read_head(mf_request *q, apr_size_t length)
{
    request_rec *r = q->r;
    const char *cursor = apr_pstrmemdup(r->pool, q->head, length), *location, *declared;
    int status;

    q->head_done = 1;
    if (memchr(q->head, 0, length)) {
        mf_refuse(q, HTTP_INTERNAL_SERVER_ERROR, "its headers have a zero byte");
        return;
    }
    status = ap_scan_script_header_err_core_ex(r, NULL, next_line, &cursor, APLOG_MODULE_INDEX);
    if (status != OK) {
        mf_refuse(q, status, "its headers are no answer");
        return;
    }
    /* The connection is the server's. */
    apr_table_unset(r->headers_out, "Connection");
    apr_table_unset(r->headers_out, "Transfer-Encoding");
    apr_table_unset(r->headers_out, "Keep-Alive");
    declared = apr_table_get(r->headers_out, "Content-Length");
    if (declared && mf_declare(q, declared)) {
        mf_refuse(q, HTTP_INTERNAL_SERVER_ERROR, "its Content-Length is no number");
        return;
    }
    location = apr_table_get(r->headers_out, "Location");
    if (location && r->status == HTTP_OK) {
        q->drop_body = 1;
        if (location[0] == '/')
            q->redirect = location;
        else
            mf_refuse(q, HTTP_MOVED_TEMPORARILY, "a redirection");
    }
}

/* Bytes of the program's output: its headers, then the body. As mf_write. */
int mf_program_write(mf_request *q, const void *from, apr_size_t length)
{
    const char *at = from;

    while (length && !q->head_done && !q->refused) {
        apr_size_t room = MF_HEAD - q->head_length, n = length < room ? length : room, end, before = q->head_length;

        if (n > MF_PIECE)
            n = MF_PIECE;
        if (n == 0) {
            mf_refuse(q, HTTP_INTERNAL_SERVER_ERROR, "its headers are too long");
            return -1;
        }
        if (!q->head || q->head_length + n > MF_PIECE) {
            char *larger = apr_palloc(q->r->pool, q->head ? MF_HEAD : MF_PIECE);

            if (q->head)
                memcpy(larger, q->head, q->head_length);
            q->head = larger;
        }
        if (rf_memory_read(q->domain->rf, at, q->head + q->head_length, n) != RF_OK)
            return -2;
        q->head_length += n;
        end = head_end(q, before);
        if (end) {
            n = end - before;
            read_head(q, end);
        }
        at += n;
        length -= n;
    }
    if (q->refused)
        return -1;
    return q->drop_body ? 0 : mf_write(q, at, length);
}

/* The program has ended by itself. What the handler returns. */
int mf_program_end(mf_request *q)
{
    if (!q->head_done)
        mf_refuse(q, HTTP_INTERNAL_SERVER_ERROR, "it ended before the end of its headers");
    if (q->redirect) {
        mf_discard(q);
        return OK;
    }
    return mf_finish(q);
}

/* Standard error, or whatever a handler prints. */
static int log_bytes(mf_domain *d, const void *from, apr_size_t length)
{
    char line[1024];
    apr_size_t n = length < sizeof line - 1 ? length : sizeof line - 1;

    if (rf_memory_read(d->rf, from, line, n) != RF_OK)
        return -2;
    while (n && line[n - 1] == '\n')
        n--;
    line[n] = 0;
    if (n)
        mf_log_text(d, line);
    return 0;
}

static apr_int64_t put(mf_domain *d, int stream, apr_uint64_t from, apr_uint64_t length)
{
    const void *at = (const void *)(apr_uintptr_t)from;
    int result;

    if (length > 1 << 30)
        length = 1 << 30;
    if (stream == 1 && d->module->kind == MF_PROGRAM)
        result = mf_program_write(d->request, at, length);
    else
        result = log_bytes(d, at, length);
    return result == 0 ? (apr_int64_t)length : result == -1 ? -EPIPE : -EFAULT;
}

static apr_int64_t get(mf_domain *d, apr_uint64_t to, apr_uint64_t length)
{
    const char *bytes;
    long n = mf_read(d->request, &bytes, length);

    if (n > 0 && rf_memory_write(d->rf, (void *)(apr_uintptr_t)to, bytes, (size_t)n) != RF_OK)
        return -EFAULT;
    return n < 0 ? -EIO : n;
}

/* A read stops where less came than was asked for. */
static apr_int64_t vectors(mf_domain *d, int stream, apr_uint64_t array, apr_uint64_t count)
{
    apr_int64_t all = 0;

    if (count > VECTORS)
        return -EINVAL;
    for (apr_uint64_t i = 0; i < count; i++) {
        struct iovec one;
        apr_int64_t n;

        if (rf_memory_read(d->rf, (const void *)(apr_uintptr_t)(array + i * sizeof one), &one, sizeof one) != RF_OK)
            return -EFAULT;
        if (one.iov_len == 0)
            continue;
        n = stream == 0 ? get(d, (apr_uint64_t)(apr_uintptr_t)one.iov_base, one.iov_len)
                        : put(d, stream, (apr_uint64_t)(apr_uintptr_t)one.iov_base, one.iov_len);
        if (n < 0)
            return all ? all : n;
        all += n;
        if ((apr_uint64_t)n < one.iov_len)
            break;
    }
    return all;
}

/* System calls of a domain: those for the standard streams are answered here, the policy has the others. */
rf_decision mf_syscall(rf_syscall *call, void *context)
{
    mf_domain *d = context;
    int stream = call->args[0] > 2 ? -1 : (int)call->args[0];
    int reads = call->number == SYS_read || call->number == SYS_readv;
    int writes = call->number == SYS_write || call->number == SYS_writev;

    if (stream < 0 || reads != (stream == 0) || (!reads && !writes))
        return RF_DECISION_POLICY;
    /* There is no request yet; the policy's null streams take what comes. */
    if (!d->request || (reads && d->module->kind == MF_HANDLER))
        return RF_DECISION_POLICY;
    if (call->number == SYS_readv || call->number == SYS_writev)
        call->result = vectors(d, stream, call->args[1], call->args[2]);
    else
        call->result = reads ? get(d, call->args[1], call->args[2]) : put(d, stream, call->args[1], call->args[2]);
    rf_error_clear();
    return RF_DECISION_RETURN;
}
