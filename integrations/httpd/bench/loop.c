/* A FastCGI program, in a process of its own. */
#include <fcgi_stdio.h>

#include "body.h"

static void put(void *to, const char *from, size_t length)
{
    FCGI_fwrite((void *)from, 1, length, to);
}

int main(void)
{
    while (FCGI_Accept() >= 0) {
        printf("Content-Type: text/plain\r\n\r\n");
        make_body(getenv("QUERY_STRING"), put, FCGI_stdout);
    }
    return 0;
}
