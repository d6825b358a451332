/* fenced.h - pages of Apache in native code, for mod_fenced. Compile with fenced-cc.
 *
 *     #include <fenced.h>
 *
 *     int fenced_handle(const fenced_request *r) {
 *         fenced_set_header("Content-Type", "text/plain");
 *         fenced_printf("Hello from %s\n", r->uri);
 *         return 0;
 *     }
 *
 * The module exports `fenced_handle`, and `void fenced_start(void)` if it wants to prepare something once, before the first
 * request. Unless the configuration says otherwise (FencedReset), each request finds the module as it was after that. */
#ifndef FENCED_H
#define FENCED_H

#include <stddef.h>
#include <stdint.h>

#include <ringfence/module.h>

typedef struct fenced_header {
    const char *name, *value;
} fenced_header;

/* A request. Strings are never NULL; what a request has not is "". Good until fenced_handle returns. */
typedef struct fenced_request {
    const char *method;      /* "GET" */
    const char *uri;         /* the decoded path, "/app/list" */
    const char *query;       /* what follows the '?', as it came */
    const char *path_info;   /* of the path, what follows the page's own */
    const char *protocol;    /* "HTTP/1.1" */
    const char *remote;      /* the client's address */
    const char *user;        /* who has logged in */
    int64_t content_length;  /* bytes of the body; -1 if the client has not said */
    uint64_t header_count;
    const fenced_header *headers;
    char *const *environment; /* "NAME=value", then NULL: what FencedEnv gives; programs have the CGI variables too */
} fenced_request;

/* Answers a request: 0, or a status from 300 to 599 for a page of the server's own. Until something was written, headers and status may
 * be set. */
#ifdef __ringfence__
RF_EXPORT int fenced_handle(const fenced_request *request);
RF_EXPORT void fenced_start(void);
#endif

/* The next bytes of the body, at most `capacity`. How many; 0 at its end, -1 if the client has gone, or has sent what is no body. */
RF_IMPORT(long, fenced_read, (void *to, size_t capacity))

/* Bytes of the answer. 0, or -1 if nobody takes them any more. */
RF_IMPORT(int, fenced_write, (const void *from, size_t length))

/* Memory for a large part of the answer, which is sent without a copy: `capacity` bytes, at most 1 MiB, that the module fills. It is zeroes, or
 * has what the request put there before (with FencedReset on-fault or never: what others did): there is one, and what was handed over before is
 * sent first. NULL: there is none, use fenced_write. */
RF_IMPORT(void *, fenced_take_buffer, (size_t capacity))

/* Hands over the first `length` bytes of the buffer that was taken last, as the next bytes of the answer. They are sent when fenced_handle
 * returns, when another buffer is taken, by fenced_flush, or when much is written; until then they stay as they are. 0, or -1: more than was
 * taken, none was taken since the last call, or as fenced_write. */
RF_IMPORT(int, fenced_send_buffer, (size_t length))

/* Sends what was written so far. As fenced_write. */
RF_IMPORT(int, fenced_flush, (void))

/* The answer's status, 200 to 599, instead of 200. 0, or -1 if it is none, or comes too late. */
RF_IMPORT(int, fenced_set_status, (int status))

/* A header of the answer. The first replaces one of that name, the second comes besides (Set-Cookie). 0, or -1 if it is refused: a name
 * or value that HTTP does not allow, line ends for instance; headers of the connection, which are the server's; too late. A
 * Content-Length holds: what is more is an error, what is less ends the connection, and one that is less than was written is refused. All that
 * a request sets, trailers and what is replaced included, is at most 64 KiB. */
RF_IMPORT(int, fenced_set_header, (const char *name, const char *value))
RF_IMPORT(int, fenced_add_header, (const char *name, const char *value))

/* `length` bytes of a file from `offset` on, or as many as it has: the server sends them without a copy where it can (EnableSendfile). `path`
 * begins with a name of FencedDir; links are not followed. 0, or -1: no such file, or as fenced_write. At most 256 for a request. */
RF_IMPORT(int, fenced_send_file, (const char *path, uint64_t offset, uint64_t length))

/* A header behind the body, a checksum for instance, until fenced_handle returns. Clients of HTTP/1.1 get it with answers of no announced
 * length, if something was flushed, or the body is large. Call it before the first byte, too, so that the header Trailer names it.
 * 0, or -1 as fenced_set_header. */
RF_IMPORT(int, fenced_set_trailer, (const char *name, const char *value))

/* A line of the server's error log. */
RF_IMPORT(void, fenced_log, (const char *text))

#ifdef __cplusplus
extern "C" {
#endif

/* Writes formatted text. As fenced_write. */
int fenced_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A header of the request, whatever the case of `name`; the first if there are several; NULL if there is none. */
const char *fenced_find_header(const fenced_request *request, const char *name);

/* A variable of the request's environment, NULL if there is none. */
const char *fenced_find_variable(const fenced_request *request, const char *name);

/* Copies the value of a cookie of the request into `to`, without its quotes. Its length, -1 if there is none, or if it needs more than
 * `capacity` bytes, the 0 at its end included. */
long fenced_find_cookie(const fenced_request *request, const char *name, char *to, size_t capacity);

/* Sets a cookie, as RFC 6265 writes it. `attributes`: what follows, "Max-Age=3600; HttpOnly; Secure; SameSite=Lax; Path=/", or NULL. 0, or
 * -1: a name, value or attribute with bytes that a cookie may not have (encode them), too long, or as fenced_add_header. */
int fenced_set_cookie(const char *name, const char *value, const char *attributes);

#ifdef __cplusplus
}
#endif
#endif
