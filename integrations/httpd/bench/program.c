/* A CGI program: started for each request, or fenced. */
#include <stdio.h>

#include "body.h"

static void put(void *to, const char *from, size_t length)
{
    fwrite(from, 1, length, to);
}

int main(void)
{
    printf("Content-Type: text/plain\r\n\r\n");
    make_body(getenv("QUERY_STRING"), put, stdout);
    return 0;
}
