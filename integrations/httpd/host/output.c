/* Bodies, both ways. What a module writes is copied once, from its memory into the pieces that the server sends; what it has put into a buffer
 * (buffer.c) is not. */
#include "mod_fenced.h"

#include "apr_lib.h"
#include "apr_portable.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Whatever waits for the client does not count as the module's time. */
static apr_uint64_t wait_begin(mf_request *q)
{
    if (q->domain->request)
        rf_domain_pause_time(q->domain->rf);
    return mf_now();
}

static void wait_end(mf_request *q, apr_uint64_t since)
{
    if (!q->domain->request)
        return;
    q->waited += mf_now() - since;
    rf_domain_resume_time(q->domain->rf);
}

void mf_refuse(mf_request *q, int status, const char *why)
{
    if (!q->refused) {
        q->refused = why;
        q->refused_status = status;
    }
}

/* Moves the piece to those that wait. */
void mf_close_piece(mf_request *q)
{
    apr_bucket_alloc_t *list = q->r->connection->bucket_alloc;

    if (!q->used)
        return;
    APR_BRIGADE_INSERT_TAIL(q->out, apr_bucket_heap_create(q->piece, q->used, apr_bucket_free, list));
    q->waiting += q->used;
    q->piece = NULL;
    q->used = 0;
}

/* Gives what waits to the server's filters, which may have to wait for the client. */
int mf_pass(mf_request *q)
{
    apr_uint64_t since;
    apr_status_t status;

    q->begun = 1;
    q->waiting = 0;
    q->handed = 0;
    since = wait_begin(q);
    status = ap_pass_brigade(q->r->output_filters, q->out);
    wait_end(q, since);
    apr_brigade_cleanup(q->out);
    if (status == APR_SUCCESS && !q->r->connection->aborted)
        return 0;
    q->gone = 1;
    return -1;
}

/* So many more bytes of the body: 0, or -1 if its Content-Length has no room for them. */
int mf_announce(mf_request *q, apr_uint64_t length)
{
    if (q->declared < 0 || length <= (apr_uint64_t)(q->declared - q->written))
        return 0;
    mf_refuse(q, HTTP_INTERNAL_SERVER_ERROR, "it wrote more than its Content-Length");
    return -1;
}

/* Bytes of the domain's memory. 0; -1: nobody takes them; -2: the address is not the module's. */
int mf_write(mf_request *q, const void *from, apr_size_t length)
{
    const char *at = from;

    if (q->gone || q->refused)
        return -1;
    if (mf_announce(q, length))
        return -1;
    while (length) {
        apr_size_t n;

        if (!q->piece) {
            q->piece_size = length > MF_LARGE ? MF_LARGE : length > MF_PIECE ? length : MF_PIECE;
            q->piece = apr_bucket_alloc(q->piece_size, q->r->connection->bucket_alloc);
        }
        n = q->piece_size - q->used < length ? q->piece_size - q->used : length;
        if (rf_memory_read(q->domain->rf, at, q->piece + q->used, n) != RF_OK)
            return -2;
        q->used += n;
        q->written += (apr_off_t)n;
        at += n;
        length -= n;
        if (q->used == q->piece_size) {
            mf_close_piece(q);
            if (q->waiting >= MF_LARGE && mf_pass(q))
                return -1;
        }
    }
    return 0;
}

static apr_status_t close_file(void *file)
{
    return apr_file_close(file);
}

/* A file of the request's directories, as the module names it: its descriptor, -1 if it may not have it. Names cannot lead out. */
static int open_file(mf_request *q, const char *path)
{
    const apr_array_header_t *dirs = q->settings->dirs;
    const mf_dir *in = NULL;
    apr_size_t most = 0;
    struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS };
    int top, file;

    for (int i = 0; dirs && i < dirs->nelts; i++) {
        const mf_dir *dir = &APR_ARRAY_IDX(dirs, i, mf_dir);
        apr_size_t length = strlen(dir->guest);

        while (length && dir->guest[length - 1] == '/')
            length--;
        if (strncmp(path, dir->guest, length) == 0 && path[length] == '/' && (!in || length > most)) {
            in = dir;
            most = length;
        }
    }
    if (!in)
        return -1;
    for (path += most; *path == '/';)
        path++;
    top = open(in->host, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (top < 0)
        return -1;
    file = (int)syscall(SYS_openat2, top, path, &how, sizeof how);
    close(top);
    return file;
}

/* Bytes of a file, which the server sends by itself. 0, or -1. */
int mf_write_file(mf_request *q, const char *path, apr_uint64_t offset, apr_uint64_t length)
{
    apr_pool_t *pool = q->r->pool;
    apr_file_t *opened;
    struct stat is;
    int file;

    if (q->gone || q->refused || q->files >= MF_FILES || (file = open_file(q, path)) < 0)
        return -1;
    if (fstat(file, &is) || !S_ISREG(is.st_mode) || offset > (apr_uint64_t)is.st_size) {
        close(file);
        return -1;
    }
    if (length > (apr_uint64_t)is.st_size - offset)
        length = (apr_uint64_t)is.st_size - offset;
    if (mf_announce(q, length)) {
        close(file);
        return -1;
    }
    if (apr_os_file_put(&opened, &file, APR_READ | APR_SENDFILE_ENABLED, pool) != APR_SUCCESS) {
        close(file);
        return -1;
    }
    apr_pool_cleanup_register(pool, opened, close_file, apr_pool_cleanup_null);
    mf_close_piece(q);
    apr_brigade_insert_file(q->out, opened, (apr_off_t)offset, (apr_off_t)length, pool);
    q->written += (apr_off_t)length;
    q->files++;
    return 0;
}

int mf_flush(mf_request *q)
{
    if (q->gone || q->refused)
        return -1;
    mf_close_piece(q);
    APR_BRIGADE_INSERT_TAIL(q->out, apr_bucket_flush_create(q->r->connection->bucket_alloc));
    return mf_pass(q);
}

/* Content-Length. 0, or -1 if it is none, or less than there is already. */
int mf_declare(mf_request *q, const char *value)
{
    apr_off_t length;
    char *end;

    if (!apr_isdigit(*value) || apr_strtoff(&length, value, &end, 10) != APR_SUCCESS || *end || length < q->written)
        return -1;
    q->declared = length;
    return 0;
}

/* Throws away what has not gone to the filters yet. */
void mf_discard(mf_request *q)
{
    if (q->piece)
        apr_bucket_free(q->piece);
    q->piece = NULL;
    q->used = q->waiting = 0;
    q->handed = 0;
    apr_brigade_cleanup(q->out);
}

/* The answer is complete, or as much of it as there is. What the handler returns. */
int mf_finish(mf_request *q)
{
    request_rec *r = q->r;
    apr_bucket_alloc_t *list = r->connection->bucket_alloc;
    int cut = q->refused || (q->declared >= 0 && q->written < q->declared && !r->header_only);

    if (cut && !q->begun) {
        mf_discard(q);
        return q->refused ? q->refused_status : HTTP_INTERNAL_SERVER_ERROR;
    }
    if (q->gone) {
        mf_discard(q);
        return OK;
    }
    mf_close_piece(q);
    if (cut) {
        /* The client must not take the part for the whole: the connection ends without the end of the answer. */
        r->connection->keepalive = AP_CONN_CLOSE;
        APR_BRIGADE_INSERT_TAIL(q->out, ap_bucket_error_create(HTTP_BAD_GATEWAY, NULL, r->pool, list));
    } else if (!q->begun && q->declared >= 0) {
        ap_set_content_length(r, q->declared);
    }
    APR_BRIGADE_INSERT_TAIL(q->out, apr_bucket_eos_create(list));
    mf_pass(q);
    return OK;
}

/* The next piece of the body, into memory that the request has once: ap_get_client_block takes some of the request's pool for each call, and a
 * module may call as often as there are bytes. */
static void next_piece(mf_request *q)
{
    request_rec *r = q->r;
    apr_size_t length = MF_PIECE;
    apr_uint64_t since;
    apr_status_t status;

    if (!q->in) {
        q->in = apr_brigade_create(r->pool, r->connection->bucket_alloc);
        q->ahead = apr_palloc(r->pool, MF_PIECE);
    }
    since = wait_begin(q);
    status = ap_get_brigade(r->input_filters, q->in, AP_MODE_READBYTES, APR_BLOCK_READ, MF_PIECE);
    wait_end(q, since);
    if (status == APR_SUCCESS && !APR_BRIGADE_EMPTY(q->in) && APR_BUCKET_IS_EOS(APR_BRIGADE_LAST(q->in)))
        q->body = MF_BODY_ENDED;
    if (status == APR_SUCCESS)
        status = apr_brigade_flatten(q->in, q->ahead, &length);
    apr_brigade_cleanup(q->in);
    /* A filter that waits for bytes and brings none would do so for ever. */
    if (status != APR_SUCCESS || (length == 0 && q->body == MF_BODY_READING)) {
        q->body = MF_BODY_BROKEN;
        r->connection->keepalive = AP_CONN_CLOSE;
        return;
    }
    q->ahead_at = 0;
    q->ahead_length = length;
    r->read_length += (apr_off_t)length;
    __atomic_fetch_add(&q->module->counters->received, (apr_uint64_t)length, __ATOMIC_RELAXED);
}

/* Bytes of the body, at most `capacity`: how many, and where they are until the next call. 0: its end; -1: it is broken. */
long mf_read(mf_request *q, const char **bytes, apr_size_t capacity)
{
    apr_size_t n;

    if (q->body == MF_BODY_NEW) {
        if (ap_setup_client_block(q->r, REQUEST_CHUNKED_DECHUNK) != OK)
            q->body = MF_BODY_BROKEN;
        else
            q->body = ap_should_client_block(q->r) ? MF_BODY_READING : MF_BODY_ENDED;
    }
    while (capacity && q->ahead_at == q->ahead_length && q->body == MF_BODY_READING)
        next_piece(q);
    n = q->ahead_length - q->ahead_at < capacity ? q->ahead_length - q->ahead_at : capacity;
    if (!n)
        return q->body == MF_BODY_BROKEN ? -1 : 0;
    *bytes = q->ahead + q->ahead_at;
    q->ahead_at += n;
    return (long)n;
}
