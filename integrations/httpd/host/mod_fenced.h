/* mod_fenced.h - what the files of mod_fenced share. */
#ifndef MOD_FENCED_H
#define MOD_FENCED_H

#include "httpd.h"
#include "http_config.h"
#include "http_core.h"
#include "http_log.h"
#include "http_main.h"
#include "http_protocol.h"
#include "http_request.h"
#include "apr_strings.h"
#include "util_filter.h"

#include <ringfence.h>

#include "fenced.h"

APLOG_USE_MODULE(fenced);
extern module AP_MODULE_DECLARE_DATA fenced_module __attribute__((visibility("default")));

/* What a module is: what it exports. */
typedef enum { MF_HANDLER, MF_PROGRAM } mf_kind;

/* What became of a module's requests, in all processes of the server. In shared memory: changed with atomic additions. */
typedef struct mf_counters {
    apr_uint64_t started, requests, faults, time_faults, memory_faults; /* begun, and ended */
    apr_uint64_t nanoseconds, most_nanoseconds; /* in the module, its waits for clients left out */
    apr_uint64_t received, sent;                /* bytes of bodies */
    apr_int64_t domains;                        /* there are */
    apr_uint64_t most_memory;                   /* bytes that one of them had */
    apr_uint64_t log_since, log_lines;          /* FencedLogLimit: when its present time began, and lines since */
    apr_uint64_t log_left_out;                  /* lines, ever */
} mf_counters;

/* A FencedModule. */
typedef struct mf_module {
    const char *name, *path;
    const char *where; /* the directive's file and line */
    mf_kind kind;
    int has_start;
    unsigned number;
    rf_module *handle;
    mf_counters *counters;
} mf_module;

/* FencedReset */
typedef enum { MF_RESET_REQUEST, MF_RESET_FAULT, MF_RESET_NEVER } mf_reset;

/* FencedDir */
typedef struct mf_dir {
    const char *host, *guest;
    rf_rights rights;
} mf_dir;

/* The configuration of a directory. */
typedef struct mf_settings {
    apr_interval_time_t time_limit; /* -1: not set, 0: none; so the next */
    apr_int64_t memory_limit;
    int reset; /* an mf_reset, -1: not set */
    apr_array_header_t *dirs; /* of mf_dir; NULL: none */
    apr_table_t *environment;
    int log_lines; /* FencedLogLimit, -1: not set, 0: none */
    apr_uint64_t log_time; /* nanoseconds for so many */
} mf_settings;

enum {
    MF_TIME_LIMIT = 5000000,          /* microseconds, if nothing is set */
    MF_MEMORY_LIMIT = 64 << 20,       /* bytes, the same */
    MF_LOG_LINES = 6000,              /* a minute, the same */
    MF_TRAILERS = 64,                 /* of an answer */
    MF_FILES = 256,                   /* of an answer: each is a descriptor until its end */
    MF_BLOCK = 16384,                 /* bytes that each domain has for requests; larger ones get memory of their own */
    MF_HEAD = 65536,                  /* bytes of headers that a program may write, and of those that a handler may set */
    MF_NAME = 256, MF_VALUE = 8190,   /* bytes of a header's name and value */
    MF_PIECE = 8000, MF_LARGE = 65536, /* bytes of a piece of the answer, and of those that wait for others */
    MF_BUFFER_LEAST = 4096, MF_BUFFER_MOST = 1 << 20 /* bytes of a domain's buffer */
};

struct mf_request;

/* A domain of a thread: for a module, and what of the configuration holds for as long as the domain. */
typedef struct mf_domain {
    struct mf_domain *next;
    mf_module *module;
    apr_int64_t memory_limit;
    mf_reset reset;
    char *dirs; /* as a text that is equal for equal ones; NULL for none */
    rf_domain *rf;
    int (*serve)(const void *);
    char *block;  /* in the domain: for requests up to MF_BLOCK; NULL if a reset takes such memory away */
    rf_region *buffer; /* NULL: no request has taken one */
    char *buffer_view; /* the server's own */
    void *buffer_address;
    apr_size_t buffer_size;
    apr_uint64_t time_limit, requests;
    int busy, down; /* a request is in it; it stays faulted (FencedReset never) */
    struct mf_request *request;
} mf_domain;

/* A request in a domain. */
typedef struct mf_request {
    request_rec *r;
    mf_module *module;
    mf_domain *domain;
    const mf_settings *settings;
    enum { MF_BODY_NEW, MF_BODY_READING, MF_BODY_ENDED, MF_BODY_BROKEN } body;
    apr_bucket_brigade *in;           /* NULL until it is read */
    char *ahead;                      /* MF_PIECE bytes: a piece of it, of which the module has got the first ones */
    apr_size_t ahead_at, ahead_length;
    /* the answer */
    apr_bucket_brigade *out;
    char *piece;
    apr_size_t piece_size, used, waiting; /* of the piece; bytes in `out` */
    apr_size_t taken;                     /* bytes of the domain's buffer that the module fills */
    int handed;                           /* `out` has a part of that buffer */
    int begun;                            /* something has gone to the server's filters */
    int gone;                             /* nobody takes the answer any more */
    apr_off_t declared, written;          /* Content-Length, -1 if there is none; bytes of the body so far */
    const char *refused;                  /* why the answer is none; NULL if it is one */
    int refused_status;
    /* a program's */
    char *head;
    apr_size_t head_length;
    int head_done, drop_body;
    const char *redirect;
    unsigned lines, files; /* in the log; of the answer */
    apr_size_t kept;       /* bytes of headers and trailers that the request keeps, replaced ones too */
    apr_uint64_t waited; /* nanoseconds, for the client */
} mf_request;

/* config.c */
mf_module *mf_module_find(const char *name);
apr_array_header_t *mf_modules(void); /* of mf_module * */
/* Zeroes that all processes of the server share; NULL, and a line in the log, if there is no room. */
void *mf_shared_counters(apr_size_t size, apr_pool_t *pool, server_rec *s);

/* module.c */
int mf_module_open(mf_module *m, apr_pool_t *pool, server_rec *s);

/* domain.c */
apr_status_t mf_domains_init(apr_pool_t *child);
mf_domain *mf_domain_take(mf_module *m, const mf_settings *settings, request_rec *r);
void mf_domain_give(mf_domain *d, int faulted, request_rec *r);
apr_uint64_t mf_now(void);

/* import.c */
extern const rf_import mf_imports[];
extern const unsigned mf_import_count;
const char *mf_imports_missing(const char *name); /* NULL if the server gives that function */

/* output.c */
int mf_write(mf_request *q, const void *from, apr_size_t length);
int mf_flush(mf_request *q);
int mf_write_file(mf_request *q, const char *path, apr_uint64_t offset, apr_uint64_t length);
int mf_announce(mf_request *q, apr_uint64_t length);
void mf_close_piece(mf_request *q);
int mf_pass(mf_request *q);
int mf_finish(mf_request *q);
void mf_discard(mf_request *q);
int mf_declare(mf_request *q, const char *value);
long mf_read(mf_request *q, const char **bytes, apr_size_t capacity);
void mf_refuse(mf_request *q, int status, const char *why);

/* buffer.c */
void *mf_buffer_take(mf_request *q, apr_size_t capacity);
int mf_buffer_send(mf_request *q, apr_size_t length);
void mf_buffer_wipe(mf_domain *d);
void mf_buffer_destroy(mf_domain *d);

/* trailer.c */
int mf_trailer(mf_request *q, const char *name, const char *value);
void mf_trailer_register(void);

/* program.c */
rf_decision mf_syscall(rf_syscall *call, void *context);
int mf_program_write(mf_request *q, const void *from, apr_size_t length);
int mf_program_end(mf_request *q);

/* request.c */
int mf_handler(request_rec *r);

/* report.c */
const char *mf_callers(apr_pool_t *pool, const rf_error_info *error);
void mf_report(mf_request *q, const rf_error_info *error);
void mf_log_text(mf_domain *d, const char *text);

/* status.c */
int mf_status_handler(request_rec *r);
void mf_status_register(apr_pool_t *pool);

#endif
