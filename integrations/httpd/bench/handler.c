/* The fenced handler. */
#include <fenced.h>

#include "body.h"

static void put(void *to, const char *from, size_t length)
{
    (void)to;
    fenced_write(from, length);
}

int fenced_handle(const fenced_request *r)
{
    if (strstr(r->uri, "crash"))
        return *(volatile int *)8;
    if (strstr(r->uri, "spin"))
        for (;;)
            __asm__ volatile("");
    if (strstr(r->uri, "eat"))
        for (;;)
            memset(malloc(1 << 20), 1, 1 << 20);
    fenced_set_header("Content-Type", "text/plain");
    if (strstr(r->uri, "buffer")) {
        size_t length = body_length(r->query);
        char *buffer = fenced_take_buffer(length);

        if (!buffer)
            return 503;
        make_whole(buffer, length);
        return fenced_send_buffer(length) ? 500 : 0;
    }
    make_body(r->query, put, NULL);
    return 0;
}
