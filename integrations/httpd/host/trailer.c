/* Headers behind the body. mod_http2 sends r->trailers_out; for HTTP/1.1 the server does not, so a filter behind its own puts them between
 * the last chunk and the line that ends it. */
#include "mod_fenced.h"

static const char FILTER[] = "FENCED_TRAILERS", LAST[] = "0\r\n\r\n";
enum { END = sizeof LAST - 1 };

static int put(void *to, const char *name, const char *value)
{
    apr_brigade_puts(to, NULL, NULL, name);
    apr_brigade_puts(to, NULL, NULL, ": ");
    apr_brigade_puts(to, NULL, NULL, value);
    apr_brigade_puts(to, NULL, NULL, "\r\n");
    return 1;
}

/* Whether this is the last chunk: the server makes it as a bucket of its own, before the answer's end. */
static int is_last(const request_rec *r, apr_bucket *b, const apr_bucket_brigade *brigade)
{
    const char *data;
    apr_size_t length;

    return b != APR_BRIGADE_SENTINEL(brigade) && !APR_BUCKET_IS_METADATA(b) && b->length == END && r->chunked &&
           apr_bucket_read(b, &data, &length, APR_BLOCK_READ) == APR_SUCCESS && length == END && memcmp(data, LAST, END) == 0;
}

static apr_status_t filter(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    for (apr_bucket *b = APR_BRIGADE_FIRST(brigade); b != APR_BRIGADE_SENTINEL(brigade); b = APR_BUCKET_NEXT(b)) {
        apr_bucket *last = APR_BUCKET_PREV(b), *end;
        apr_bucket_brigade *trailers;

        if (!APR_BUCKET_IS_EOS(b))
            continue;
        if (is_last(f->r, last, brigade)) {
            /* "0", the trailers, and the empty line */
            apr_bucket_split(last, END - 2);
            end = APR_BUCKET_NEXT(last);
            trailers = apr_brigade_create(f->r->pool, f->c->bucket_alloc);
            apr_table_do(put, trailers, f->r->trailers_out, NULL);
            while (!APR_BRIGADE_EMPTY(trailers)) {
                apr_bucket *one = APR_BRIGADE_FIRST(trailers);

                APR_BUCKET_REMOVE(one);
                APR_BUCKET_INSERT_BEFORE(end, one);
            }
        }
        ap_remove_output_filter(f);
        break;
    }
    return ap_pass_brigade(f->next, brigade);
}

/* Names that a recipient would merge into what it has decided by already. */
static int decides(const char *name)
{
    static const char *const those[] = { "Content-Length", "Content-Type", "Content-Encoding", "Content-Range", "Host", "Location",
                                         "Set-Cookie", "Cookie", "Authorization", "WWW-Authenticate", "Cache-Control", "Expires",
                                         "Age", "Vary", "Retry-After" };

    for (unsigned i = 0; i < sizeof those / sizeof *those; i++)
        if (strcasecmp(name, those[i]) == 0)
            return 1;
    return 0;
}

int mf_trailer(mf_request *q, const char *name, const char *value)
{
    request_rec *r = q->r;

    if (decides(name) || (!apr_table_get(r->trailers_out, name) && apr_table_elts(r->trailers_out)->nelts >= MF_TRAILERS))
        return -1;
    if (apr_is_empty_table(r->trailers_out) && r->proto_num == HTTP_VERSION(1, 1))
        ap_add_output_filter(FILTER, NULL, r, r->connection);
    if (!q->begun && !apr_table_get(r->trailers_out, name))
        apr_table_merge(r->headers_out, "Trailer", name);
    apr_table_set(r->trailers_out, name, value);
    return 0;
}

void mf_trailer_register(void)
{
    ap_register_output_filter(FILTER, filter, NULL, AP_FTYPE_TRANSCODE + 1);
}
