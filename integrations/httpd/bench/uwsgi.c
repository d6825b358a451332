/* A function that uWSGI's processes call for each request (its plugin symcall). */
#include <stdint.h>
#include <stdlib.h>

#include "body.h"

/* uWSGI's own, as core/uwsgi.h has them */
struct wsgi_request;
int uwsgi_parse_vars(struct wsgi_request *);
char *uwsgi_get_var(struct wsgi_request *, char *name, uint16_t length, uint16_t *value_length);
int uwsgi_response_prepare_headers(struct wsgi_request *, char *status, uint16_t length);
int uwsgi_response_add_header(struct wsgi_request *, char *name, uint16_t name_length, char *value, uint16_t length);
int uwsgi_response_write_body_do(struct wsgi_request *, char *bytes, size_t length);

static void put(void *to, const char *from, size_t length)
{
    uwsgi_response_write_body_do(to, (char *)from, length);
}

int bench_page(struct wsgi_request *request)
{
    uint16_t length = 0;
    char *value, query[64] = "";

    if (uwsgi_parse_vars(request))
        return -1;
    value = uwsgi_get_var(request, "QUERY_STRING", 12, &length);
    if (value && length < sizeof query)
        memcpy(query, value, length);
    uwsgi_response_prepare_headers(request, "200 OK", 6);
    uwsgi_response_add_header(request, "Content-Type", 12, "text/plain", 10);
    make_body(query, put, request);
    return 0;
}
