/* The page as an ordinary module of the server. */
#include "lab.h"
#include "page.h"

#include "httpd.h"
#include "http_config.h"
#include "http_protocol.h"

#include <stdio.h>

static void put(void *to, const char *from, size_t length)
{
    ap_rwrite(from, (int)length, to);
}

static int handler(request_rec *r)
{
    unsigned fault = 0;
    int used = 0;

    if (!r->handler || strcmp(r->handler, "lab") != 0)
        return DECLINED;
    if (!r->args || sscanf(r->args, "fault=%u&%n", &fault, &used) != 1)
        return HTTP_BAD_REQUEST;
    lab_choose(fault);
    ap_set_content_type(r, "text/html");
    return page(r->args + used, put, r) == 0 ? OK : HTTP_SERVICE_UNAVAILABLE;
}

static void hooks(apr_pool_t *pool)
{
    (void)pool;
    ap_hook_handler(handler, NULL, NULL, APR_HOOK_MIDDLE);
}

module AP_MODULE_DECLARE_DATA lab_module = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, NULL, hooks, 0 };
