/* A CGI program as one would have written it long ago: nothing in it knows of the fence. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int runs;

static void end(void)
{
    printf("ended\n");
}

int main(int argc, char **argv)
{
    const char *what = getenv("QUERY_STRING"), *length = getenv("CONTENT_LENGTH");
    char piece[3000];
    size_t n;

    runs++;
    if (!strcmp(what, "redirect"))
        return printf("Location: /static.txt\r\n\r\n") < 0;
    if (!strcmp(what, "away"))
        return printf("Location: http://example.com/\r\n\r\n") < 0;
    if (!strcmp(what, "status"))
        return printf("Status: 404 Nothing Here\nContent-Type: text/plain\n\nnothing\n") < 0;
    if (!strcmp(what, "nothing"))
        return 0;
    if (!strcmp(what, "bad"))
        return printf("this is no header\n\nbody\n") < 0;
    if (!strcmp(what, "long")) {
        for (int i = 0; i < 100000; i++)
            printf("X-%d: y\n", i);
        return 0;
    }
    if (!strcmp(what, "inject"))
        return printf("Content-Type: text/plain\nTransfer-Encoding: chunked\nX-A: b\rX-Injected: 1\n\nok\n") < 0;
    printf("Content-Type: text/plain\r\n");
    printf("X-Runs: %d\r\n\r\n", runs);
    if (!strcmp(what, "crash")) {
        fflush(stdout);
        return *(volatile int *)8;
    }
    if (!strcmp(what, "exit")) {
        atexit(end);
        printf("leaving\n");
        exit(3);
    }
    if (!strcmp(what, "complain"))
        fprintf(stderr, "a complaint\n");
    if (!strcmp(what, "env")) {
        extern char **environ;
        for (char **v = environ; *v; v++)
            printf("%s\n", *v);
        printf("argc %d argv %s\n", argc, argv[0]);
        return 0;
    }
    if (!strcmp(what, "fill")) {
        for (int i = 0; i < 100000; i++)
            printf("line %d\n", i);
        return 0;
    }
    if (length) {
        while ((n = fread(piece, 1, sizeof piece, stdin)) > 0)
            fwrite(piece, 1, n, stdout);
        return 0;
    }
    printf("runs %d\n", runs);
    return 0;
}
