/* inside.h - what the files of the library of fenced stock modules share. It runs in the module's domain, beside the module. */
#ifndef STOCK_INSIDE_H
#define STOCK_INSIDE_H

#include "httpd.h"
#include "http_config.h"
#include "http_core.h"
#include "http_log.h"
#include "http_protocol.h"
#include "http_request.h"
#include "ap_expr.h"
#include "apr_lib.h"
#include "apr_strings.h"
#include "apr_tables.h"
#include "util_filter.h"

#include "stock_image.h"

enum { OWN = 1 /* the module's place in vectors of configuration; 0 is the core's */ };

enum { TEXTS = 480 /* bytes of texts that a twin has room for */ };

/* The module's own of a request of the server's. A page: what a call touches anew costs more than what it does. */
typedef struct twin {
    _Alignas(4096) request_rec r;
    uint64_t number, version; /* of the image that it was made from; 0: unused */
    request_rec taken;        /* `r`, as it was when the server and the module agreed last */
    conn_rec c;
    apr_pool_t *pool;         /* cleared when the next request has the slot */
    int used;                 /* it has been, so that it matters */
    unsigned made;            /* tables that have been, bits */
    unsigned own;             /* those whose entries are the module's own, and not the image's */
    stock_image_text texts[STOCK_TEXT_COUNT];
    char *copies;             /* of texts that may be changed where they are, with room for another copy */
    const char *was;          /* what is in them if nothing was changed: in the image, or that other copy */
    uint32_t copied;          /* bytes of them */
    uint32_t place;           /* where they are from */
    int elsewhere;            /* such a text is where the module has put it */
    uint32_t languages_at;
    int language_count;
    uint32_t loaded[STOCK_TABLES]; /* versions of tables */
    void *dir_config[OWN + 1], *request_config[OWN + 1], *conn_config[OWN + 1];
    struct ap_logconf log;
    ap_filter_t core_filter; /* what stands for the server's filters */
    stock_pack *changes;     /* that the server does not know of, and are not in `r` */
    uint64_t change_count;
    char first[2 * TEXTS];
} twin;
_Static_assert(sizeof(twin) == 4096, "a twin is a page");

enum { SEEN = 6 };

/* The call from the server that runs on this thread. */
typedef struct entry {
    struct entry *up;
    twin *t;                     /* of the request that it is for; NULL: none */
    apr_pool_t *pool;
    ap_filter_t *filter;
    int allocates; /* it has used a pool */
    int observed, further;         /* what it looks at is noted; it has looked at more than that notes */
    uint64_t looked[STOCK_LOOKED]; /* words of the request */
    int seen_count;
    twin *seen[SEEN];              /* other requests that it has to do with */
} entry;
extern __thread entry *stock_entry;

/* enter.c */
extern module *stock_module;
extern apr_pool_t *stock_pool; /* as long as the domain */

/* ask.c: questions to the server. begin, put what is asked, ask; then read from the answer, and end. */
typedef struct question {
    stock_pack out;
    stock_unpack in;
    char *own, first[2048];
} question;
void stock_ask_begin(question *q, stock_op op);
void stock_ask_send(question *q, stock_op op);
void stock_ask_end(question *q, stock_op op);

/* request.c */
extern const char *stock_images; /* where requests are */
/* What each call runs stands together. */
#define OFTEN __attribute__((section(".text.often")))
twin *stock_twin_of(const request_rec *r);
int stock_in_twins(const void *at);
twin *stock_take_request(uint64_t slot, void *record, int level);
twin *stock_take_requests(stock_unpack *u);
int stock_has_changed(twin *t);
void stock_tell_changes(stock_pack *p);
void stock_end_request(uint64_t slot);
uint64_t stock_number(const request_rec *r);
int stock_is_own(const twin *t);
void stock_note_change(twin *t, stock_change how, uint64_t which, const char *key, const char *value);
const stock_image *stock_image_of(const twin *t);
const char *stock_at(uint32_t offset);
uint64_t stock_flags(const entry *e);

/* observe.c */
extern int stock_remembers;
void stock_watch(int change);
void stock_looks_further(void);

/* pool.c */
extern const char stock_request_tag[]; /* of requests' pools */
int stock_pool_has(const apr_pool_t *pool, const void *at);
int stock_pool_matters(const apr_pool_t *pool);

/* table.c */
apr_table_t *stock_table_at(size_t twin, int which);
void stock_place_tables(twin *t, const stock_image *image);
size_t stock_twin_index(const twin *t);
twin *stock_twin_at(size_t index);

/* config.c */
server_rec *stock_take_server(stock_unpack *u);
server_rec *stock_server(uint64_t number);
void *stock_server_record(const server_rec *s);
void stock_describe(module *m, stock_pack *p);
void stock_command(stock_unpack *u, stock_pack *p, apr_pool_t *pool);
void stock_take_directive(stock_unpack *u, cmd_parms *cmd, ap_directive_t *directive, apr_pool_t *pool);
void stock_configure(stock_unpack *u, stock_pack *p, apr_pool_t *pool);
cmd_parms *stock_command_now(void);

uint64_t stock_other_config(const request_rec *r);

/* core.c */
const char *stock_text_from(const request_rec *r, apr_pool_t *pool, stock_text which, int number, const char *about);

/* hook.c */
void stock_server_hook(stock_unpack *u, stock_pack *p, apr_pool_t *pool);
void stock_request_hook(stock_unpack *u, stock_pack *p);
int stock_call_hook(stock_hook hook, uintptr_t function, request_rec *r);

/* provider.c */
void stock_provider(stock_unpack *u, stock_pack *p, apr_pool_t *pool);

/* bucket.c */
int stock_is_bucket(const void *at);
extern apr_bucket_alloc_t stock_bucket_alloc;
void stock_take_brigade(stock_unpack *u, apr_bucket_brigade *to);
int stock_is_whole(const apr_bucket_brigade *brigade, uint64_t first, uint64_t count, const uint64_t *lengths);
apr_status_t stock_put_brigade(stock_pack *p, apr_bucket_brigade *brigade);

/* filter.c */
void stock_filter(stock_unpack *u, stock_pack *p);
void stock_input_filter(stock_unpack *u, stock_pack *p);
void stock_filter_begin(stock_unpack *u, stock_pack *p);

#endif
