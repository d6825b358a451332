/* The page as a handler of mod_fenced. */
#include "lab.h"
#include "page.h"

#include <fenced.h>
#include <stdio.h>

static void put(void *to, const char *from, size_t length)
{
    (void)to;
    fenced_write(from, length);
}

int fenced_handle(const fenced_request *r)
{
    unsigned fault = 0;
    int used = 0;

    if (sscanf(r->query, "fault=%u&%n", &fault, &used) != 1)
        return 400;
    lab_choose(fault);
    fenced_set_header("Content-Type", "text/html");
    return page(r->query + used, put, NULL) == 0 ? 0 : 503;
}
