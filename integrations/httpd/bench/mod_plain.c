/* An ordinary module of the server, without a fence. */
#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"

#include "body.h"

static void put(void *to, const char *from, size_t length)
{
    ap_rwrite(from, (int)length, to);
}

static int handler(request_rec *r)
{
    if (!r->handler || strncmp(r->handler, "plain", 5) != 0)
        return DECLINED;
    ap_set_content_type(r, "text/plain");
    if (strcmp(r->handler, "plain-whole") == 0) {
        size_t length = body_length(r->args);
        char *text = apr_palloc(r->pool, length);

        make_whole(text, length);
        return ap_rwrite(text, (int)length, r) < 0 ? HTTP_INTERNAL_SERVER_ERROR : OK;
    }
    make_body(r->args, put, r);
    return OK;
}

static void hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA plain_module = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks, 0 };
