/* A FastCGI program, unchanged from a text book. */
#include "fcgi_stdio.h"

#include <stdlib.h>

int main(void)
{
    int count = 0;

    while (FCGI_Accept() >= 0) {
        const char *length = getenv("CONTENT_LENGTH");
        int n = length ? atoi(length) : 0, c;

        printf("Content-type: text/plain\r\n\r\nrequest %d of %s: ", ++count, getenv("REMOTE_ADDR"));
        for (int i = 0; i < n && (c = getchar()) != EOF; i++)
            putchar(c);
        printf("\n");
    }
    return 0;
}
