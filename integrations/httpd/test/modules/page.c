/* A handler that does what its path's last part says, for test.py. */
#include <fenced.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static int served, started;
static char kept[64];
static volatile int zero;

void fenced_start(void)
{
    started++;
}

static int echo(void)
{
    char piece[5000];
    long n;

    while ((n = fenced_read(piece, sizeof piece)) > 0)
        if (fenced_write(piece, (size_t)n))
            return 500;
    return n < 0 ? 400 : 0;
}

/* The body, byte by byte: how many there are, and their sum. */
static int sip(void)
{
    unsigned long count = 0, sum = 0;
    unsigned char byte;
    long n;

    while ((n = fenced_read(&byte, 1)) == 1) {
        count++;
        sum += byte;
    }
    return fenced_printf("%lu %lu\n", count, sum) || n < 0 ? 500 : 0;
}

/* So many bytes, in pieces of so many. */
static int fill(const char *query)
{
    size_t total = strtoul(query, NULL, 10), step = 8000;
    static char piece[100000];
    const char *comma = strchr(query, ',');

    if (comma)
        step = strtoul(comma + 1, NULL, 10);
    memset(piece, 'x', sizeof piece);
    while (total) {
        size_t n = total < step ? total : step;

        if (fenced_write(piece, n))
            return 500;
        total -= n;
    }
    return 0;
}

/* BYTES,LETTER,TIMES: so many buffers full of it. */
static int buffers(const char *query)
{
    char *comma, letter = 'b', *buffer;
    size_t length = strtoul(query, &comma, 10), times = 1;

    if (*comma) {
        letter = comma[1];
        times = strtoul(comma + 3, NULL, 10);
    }
    while (times--) {
        if (!(buffer = fenced_take_buffer(length)))
            return 503;
        memset(buffer, letter, length);
        if (fenced_send_buffer(length))
            return 500;
    }
    return 0;
}

static int __attribute__((noinline)) divide(int by)
{
    return 100 / by;
}

int fenced_handle(const fenced_request *r)
{
    const char *what = strrchr(r->uri, '/') + 1;

    served++;
    fenced_set_header("Content-Type", "text/plain");
    if (!strcmp(what, "echo"))
        return echo();
    if (!strcmp(what, "sip"))
        return sip();
    if (!strcmp(what, "fill"))
        return fill(r->query);
    if (!strcmp(what, "buffers"))
        return buffers(r->query);
    if (!strcmp(what, "around-buffer")) {
        fenced_printf("before ");
        memcpy(fenced_take_buffer(100), "within", 6);
        return fenced_send_buffer(6) || fenced_printf(" after\n") ? 500 : 0;
    }
    if (!strcmp(what, "wrong-buffers")) {
        int refused = (fenced_send_buffer(1) == -1) + (fenced_send_buffer(0) == -1);

        refused += !fenced_take_buffer(0) + !fenced_take_buffer((1 << 20) + 1) + !fenced_take_buffer(SIZE_MAX);
        refused += fenced_send_buffer(1) == -1;
        refused += fenced_take_buffer(100) && fenced_send_buffer(101) == -1;
        refused += fenced_send_buffer(50) == 0 && fenced_send_buffer(1) == -1;
        refused += fenced_send_buffer(0) == -1;
        refused += fenced_take_buffer(100) && fenced_send_buffer(0) == 0 && fenced_send_buffer(0) == -1;
        return fenced_printf(" refused %d\n", refused) ? 500 : 0;
    }
    if (!strcmp(what, "keep-buffer")) {
        /* Behind what it took, too: it may write all of it. */
        char *buffer = fenced_take_buffer(60000);

        fenced_printf("was '%s' '%s'\n", buffer, buffer + 65000);
        snprintf(buffer, 100, "%s", r->query);
        snprintf(buffer + 65000, 100, "%s", r->query);
        return 0;
    }
    if (!strcmp(what, "beyond-buffer")) {
        volatile char *buffer = fenced_take_buffer(1 << 20);

        return fenced_printf("%d", buffer[1 << 20]) ? 500 : 0;
    }
    if (!strcmp(what, "crash-buffer")) {
        memset(fenced_take_buffer(60000), 'x', 60000);
        fenced_send_buffer(60000);
        return *(volatile int *)8;
    }
    if (!strcmp(what, "change-buffer")) {
        /* The server has it, and a client that does not read leaves it there: what comes later must not get into it. */
        char *buffer = fenced_take_buffer(1 << 20);

        memset(buffer, 'a', 1 << 20);
        if (fenced_send_buffer(1 << 20) || fenced_flush())
            return 500;
        memset(buffer, 'b', 1 << 20);
        return fenced_flush() ? 500 : 0;
    }
    if (!strcmp(what, "unmap-buffer")) {
        char *buffer = fenced_take_buffer(1 << 20);

        memset(buffer, 'a', 1 << 20);
        int refused = (mprotect(buffer, 1 << 20, PROT_NONE) != 0) + (munmap(buffer, 1 << 20) != 0) + (madvise(buffer, 1 << 20, MADV_DONTNEED) != 0) +
                      (mmap(buffer, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED);
        return fenced_send_buffer(1 << 20) || fenced_printf(" refused %d", refused) ? 500 : 0;
    }
    if (!strcmp(what, "declare-buffer")) {
        fenced_set_header("Content-Length", "5");
        fenced_take_buffer(10);
        return fenced_send_buffer(6) == -1 ? 0 : 500;
    }
    if (!strcmp(what, "show")) {
        fenced_printf("method=%s\nuri=%s\nquery=%s\npath_info=%s\nprotocol=%s\nremote=%s\nuser=%s\nlength=%ld\n", r->method, r->uri,
                      r->query, r->path_info, r->protocol, r->remote, r->user, (long)r->content_length);
        for (uint64_t i = 0; i < r->header_count; i++)
            fenced_printf("%s: %s\n", r->headers[i].name, r->headers[i].value);
        for (char *const *v = r->environment; *v; v++)
            fenced_printf("env %s\n", *v);
        return 0;
    }
    if (!strcmp(what, "count"))
        return fenced_printf("served %d, started %d\n", served, started) ? 500 : 0;
    if (!strcmp(what, "mark")) {
        /* What another request has left, and what this one leaves. */
        fenced_printf("was '%s' ", kept);
        snprintf(kept, sizeof kept, "%s", r->query);
        char *heap = malloc(4000);
        fenced_printf("heap '%.20s' ", heap);
        memset(heap, 0, 4000);
        snprintf(heap, 4000, "%s", r->query);
        fenced_printf("own '%s' '%s'\n", kept, fenced_find_header(r, "x-mark") ? fenced_find_header(r, "X-MARK") : "");
        return 0;
    }
    if (!strcmp(what, "status")) {
        fenced_set_status(atoi(r->query));
        fenced_printf("body\n");
        return 0;
    }
    if (!strcmp(what, "error"))
        return atoi(r->query);
    if (!strcmp(what, "inject")) {
        int refused = 0;

        refused += fenced_set_header("X-A", "b\r\nX-Injected: 1") == -1;
        refused += fenced_set_header("X-A\r\nX-Injected", "1") == -1;
        refused += fenced_set_header("X-A", "b\nX-Injected: 1") == -1;
        refused += fenced_set_header("X A", "1") == -1;
        refused += fenced_set_header("", "1") == -1;
        refused += fenced_set_header("Transfer-Encoding", "chunked") == -1;
        refused += fenced_set_header("Content-Length", "-5") == -1;
        refused += fenced_set_header("Content-Type", "a\r\n\r\nb") == -1;
        refused += fenced_set_status(100) == -1;
        refused += fenced_set_status(1000) == -1;
        return fenced_printf("refused %d\n", refused) ? 500 : 0;
    }
    if (!strcmp(what, "hoard")) {
        /* Texts that the server keeps for as long as the request: those that others replace, too. How many it takes of 100. */
        static char text[8001];
        int taken = 0;

        memset(text, 'x', 8000);
        for (int i = 0; i < 100; i++)
            taken += !(strcmp(r->query, "add") == 0       ? fenced_add_header("X-Add", text)
                       : strcmp(r->query, "set") == 0     ? fenced_set_header("X-Set", text)
                       : strcmp(r->query, "type") == 0    ? fenced_set_header("Content-Type", text)
                       : strcmp(r->query, "length") == 0  ? fenced_set_header("Content-Length", "12")
                       : strcmp(r->query, "trailer") == 0 ? fenced_set_trailer("X-Sum", text)
                                                          : fenced_set_cookie("n", text, NULL));
        fenced_set_header("X-Set", "");
        return fenced_printf("taken %5d\n", taken) ? 500 : 0;
    }
    if (!strcmp(what, "cookies")) {
        fenced_add_header("Set-Cookie", "a=1");
        fenced_add_header("Set-Cookie", "b=2");
        return fenced_printf("ok\n") ? 500 : 0;
    }
    if (!strcmp(what, "cookie")) {
        char value[20] = "?";
        long length = fenced_find_cookie(r, "b", value, sizeof value), long_one = fenced_find_cookie(r, "long", value + 10, 5);

        fenced_set_cookie("n", "v", "Path=/; HttpOnly");
        fenced_set_cookie("m", "w", NULL);
        int refused = (fenced_set_cookie("n", "a;b", NULL) == -1) + (fenced_set_cookie("n m", "a", NULL) == -1) +
                      (fenced_set_cookie("n", "a", "Path=/\r\nX-Injected: 1") == -1) + (fenced_set_cookie("", "a", NULL) == -1);
        return fenced_printf("%ld '%s' %ld %ld refused %d\n", length, value, long_one, fenced_find_cookie(r, "none", value, 20), refused) ? 500 : 0;
    }
    if (!strcmp(what, "trailer")) {
        int refused = (fenced_set_trailer("X-A", "b\r\nX-Injected: 1") == -1) + (fenced_set_trailer("Content-Length", "5") == -1) +
                      (fenced_set_trailer("Transfer-Encoding", "chunked") == -1) + (fenced_set_trailer("", "a") == -1);

        fenced_set_trailer("X-Sum", "");
        fenced_printf("refused %d\n", refused);
        fenced_flush();
        fenced_set_trailer("X-Sum", "77");
        return *r->query ? *(volatile int *)8 : 0;
    }
    if (!strcmp(what, "send")) {
        char name[200];
        char *comma;
        uint64_t from = 0, length = UINT64_MAX;

        snprintf(name, sizeof name, "/data/%s", r->query);
        if ((comma = strchr(name, ','))) {
            *comma = 0;
            from = strtoull(comma + 1, &comma, 10);
            length = *comma ? strtoull(comma + 1, NULL, 10) : UINT64_MAX;
        }
        return fenced_send_file(name, from, length) ? 404 : 0;
    }
    if (!strcmp(what, "around")) {
        fenced_printf("before ");
        fenced_send_file("/data/file.txt", 0, 4);
        return fenced_printf(" after\n") ? 500 : 0;
    }
    if (!strcmp(what, "declare")) {
        fenced_set_header("Content-Length", r->query);
        return fenced_printf("12345") ? 500 : 0;
    }
    if (!strcmp(what, "declare-late")) {
        fenced_printf("12345");
        return fenced_set_header("Content-Length", "3") == -1 && fenced_set_header("Content-Length", "5") == 0 ? 0 : 500;
    }
    if (!strcmp(what, "crash"))
        return *(volatile int *)8;
    if (!strcmp(what, "divide"))
        return divide(zero);
    if (!strcmp(what, "spin"))
        for (;;)
            __asm__ volatile("");
    if (!strcmp(what, "eat"))
        for (;;)
            memset(malloc(1 << 20), 1, 1 << 20);
    if (!strcmp(what, "late")) {
        fenced_printf("half of it");
        fenced_flush();
        return *(volatile int *)8;
    }
    if (!strcmp(what, "buffered")) {
        fenced_printf("never seen");
        return *(volatile int *)8;
    }
    if (!strcmp(what, "wild")) {
        fenced_write((const void *)0x10, 100);
        return fenced_printf("went on\n");
    }
    if (!strcmp(what, "wildread")) {
        fenced_read((void *)0x10, 100);
        return fenced_printf("went on\n");
    }
    if (!strcmp(what, "log")) {
        fenced_log("a line of the module's");
        fenced_log("forged\n[error] line");
        printf("printed\n");
        fflush(stdout);
        return 0;
    }
    if (!strcmp(what, "file")) {
        char line[100] = "none";
        FILE *f = fopen("/data/file.txt", "r");

        if (f && !fgets(line, sizeof line, f))
            return 500;
        return fenced_printf("%s %s\n", line, fopen("/data/new.txt", "w") ? "written" : "not written") ? 500 : 0;
    }
    return 404;
}
