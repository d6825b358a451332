/* stock.h - fenced stock modules of the server: what the files of this part of mod_fenced share. */
#ifndef MF_STOCK_H
#define MF_STOCK_H

#include "mod_fenced.h"

#include "util_filter.h"

#include "../include/stock_image.h"

#include <pthread.h>

enum { MF_STOCK_KEPT = 8 << 20 /* bytes that modules make the server keep as long as a request, with all within it */ };
enum { MF_STOCK_MOST = 32 /* modules */, MF_STOCK_HOOKS = 12 /* of requests, for each */, MF_STOCK_FILTERS = 8, MF_STOCK_PIECES = 16, MF_STOCK_VECTORS = 256 /* configurations that a module makes */ };

#define MF_STOCK_HOARDS "it changes more of the request than the server keeps: 8 MiB"

/* What has become of a module, in all processes of the server. In shared memory: changed with atomic additions. */
typedef struct mf_stock_counters {
    apr_uint64_t in, out, faults, spared;
} mf_stock_counters;

typedef struct mf_stock_known mf_stock_known;

/* A hook that a module has registered. */
typedef struct mf_stock_hook {
    stock_hook hook;
    apr_uint64_t function; /* the module's address */
    int order;
    int follows;           /* the hook that the server calls before it is a fenced one, too */
    mf_stock_known *known; /* when it declines */
} mf_stock_hook;

/* Memory in the module's domain for one call's message. */
typedef struct mf_stock_frame {
    struct mf_stock_frame *next;
    char *address;
    apr_size_t size;
} mf_stock_frame;

/* A FencedLoadModule. */
typedef struct mf_stock {
    const char *name, *path;
    const char *where; /* the directive's file and line */
    unsigned number;
    module host;       /* as the server knows it */
    rf_module *handle;
    rf_domain *domain;
    apr_uint64_t (*enter)(int, const void *, apr_uint64_t);
    apr_uint64_t (*run)(apr_uint64_t, apr_uint64_t, apr_uint64_t, apr_uint64_t, int);
    apr_uint64_t object; /* the module's own structure */
    int has[STOCK_CONFIGS];
    mf_stock_hook hooks[MF_STOCK_HOOKS], server_hooks[MF_STOCK_HOOKS];
    unsigned hook_count, server_hook_count;
    ap_filter_rec_t *filters[MF_STOCK_FILTERS], made[MF_STOCK_FILTERS]; /* the second: for those that it makes itself */
    apr_uint64_t filter_records[MF_STOCK_FILTERS];
    unsigned filter_count;
    apr_array_header_t *configs;     /* of ap_conf_vector_t *: that it has made */
    struct mf_stock_line *lines;     /* what others' providers have made of its Require lines */
    apr_uint64_t last_line;
    pthread_mutex_t lock;            /* of the lines and the next three, and of resets */
    mf_stock_frame *frames;
    unsigned generation; /* of the domain's memory: another one after each reset */
    int ready;           /* the state that it is reset to has been kept */
    int down;            /* it has failed, and is not back */
    int remembers;       /* its hooks see of one another: each call counts */
    mf_stock_counters own, *counters;
} mf_stock;

/* The module's record of a directory or server. */
typedef struct mf_stock_record {
    apr_uint64_t address;
    unsigned generation; /* 0: from the start, as good as the module */
} mf_stock_record;

/* Blocks that a request has behind the slots, and an entry of a table that stands in its image. */
typedef struct mf_stock_piece {
    unsigned first, count;
} mf_stock_piece;
typedef struct mf_stock_written {
    const char *key, *value;
    apr_table_entry_t at;
} mf_stock_written;

/* A table when its image was written: all its entries, as they lay there, and those that stand in the image. */
typedef struct mf_stock_table {
    const apr_table_t *table;
    const apr_array_header_t *all;
    char *entries;
    int count, room;
    mf_stock_written *written;
    int written_count;
} mf_stock_table;

/* Parts of an image: each table has the bit of its number, all that is in request_rec this one, and all there is has all bits. */
enum { MF_STOCK_FIELDS = 1 << STOCK_TABLES };
#define MF_STOCK_ALL (~0u)

/* A request, as this part knows it. */
typedef struct mf_stock_request {
    struct mf_stock_request *next; /* of its connection */
    request_rec *r;
    apr_uint64_t number;
    int failed;           /* a module has failed where it could not say so: the answer is 500 */
    mf_stock *idle;       /* the module that has made it within its request, and may run or end it: nothing else has it in hand */
    struct mf_stock_request *account; /* on which `charged` is; NULL: nothing is */
    apr_size_t charged, kept;         /* bytes that modules have made the server keep: of this one; of all on its account */
    struct mf_stock_spare *spares;    /* brigades that nobody uses */
    apr_uint32_t holding; /* modules to which its end matters, by their bits */
    /* Its image, and of what that has been made. */
    stock_image *image; /* NULL: there is none yet */
    apr_uint32_t slot;
    int full; /* there was no room for it */
    unsigned stale; /* what of it may be other than the request is: since it was compared, nothing else has changed */
    request_rec last;
    const char *texts[STOCK_TEXT_COUNT];
    const apr_array_header_t *languages;
    int language_count;
    mf_stock_table tables[STOCK_TABLES];
    const void *said_for[5]; /* what the texts that it has been asked for hang on */
    unsigned said;           /* which, as bits */
    char *room, *end;
    mf_stock_piece pieces[MF_STOCK_PIECES];
    unsigned piece_count;
} mf_stock_request;

typedef struct mf_stock_brigade mf_stock_brigade;

/* A call of a module that is in progress on this thread. */
typedef struct mf_stock_call {
    struct mf_stock_call *up;
    mf_stock *m;
    request_rec *r;
    cmd_parms *cmd;
    apr_pool_t *pool;
    server_rec *server;
    ap_filter_t *filter; /* and the brigade that it was given */
    mf_stock_brigade *buckets;
    int reads;   /* it is an input filter */
    int changes; /* what of the request the hook may change */
    int hooking; /* it registers hooks */
    apr_size_t kept; /* bytes that it has made the server keep, if it is for no request */
} mf_stock_call;

/* What a module has answered. */
typedef struct mf_stock_answer {
    stock_unpack u;
    char *own, first[2048];
} mf_stock_answer;

/* stock_load.c */
extern const char *mf_stock_load(cmd_parms *cmd, void *nothing, int count, char *const words[]);
apr_array_header_t *mf_stocks(void); /* of mf_stock *; NULL if there are none */
int mf_stock_post_config(apr_pool_t *pool, server_rec *s);
void mf_stock_child_init(apr_pool_t *pool, server_rec *s);
void mf_stock_hooks(void);

/* stock_call.c */
mf_stock_call *mf_stock_current(void);
int mf_stock_begin(mf_stock_call *call, stock_pack *message);
int mf_stock_enter(mf_stock_call *call, stock_kind kind, stock_pack *message, mf_stock_answer *answer);
int mf_stock_run(mf_stock_call *call, const mf_stock_hook *hook, int watch, mf_stock_answer *answer, int *result);
void mf_stock_end_request(mf_stock *m, request_rec *r);
void mf_stock_answer_end(mf_stock_answer *answer);
apr_status_t mf_stock_keep(mf_stock *m, server_rec *s);

/* stock_image.c */
apr_status_t mf_stock_images_make(server_rec *s);
apr_uint64_t mf_stock_images_address(const mf_stock *m);
int mf_stock_images_give(const mf_stock *m);
void mf_stock_image_asked(stock_text which);
int mf_stock_image_update(mf_stock_request *q);
int mf_stock_image_update_stale(mf_stock_request *q);
void mf_stock_image_end(mf_stock_request *q);

/* stock_request.c */
mf_stock_request *mf_stock_request_of(request_rec *r);
request_rec *mf_stock_find(const mf_stock_call *call, apr_uint64_t number);
int mf_stock_charge(request_rec *r, apr_size_t bytes);
int mf_stock_hoards(const mf_stock_call *call);
apr_uint64_t mf_stock_record_of(const mf_stock *m, request_rec *r);
int mf_stock_pack_request(mf_stock_call *call, stock_pack *p);
int mf_stock_unpack_request(mf_stock_call *call, stock_unpack *u, int ends);
apr_table_t **mf_stock_table_of(request_rec *r, apr_uint64_t which);
int mf_stock_is_list(const request_rec *r, apr_table_t *const *table, const char *key);
int mf_stock_is_shared(const request_rec *r, apr_table_t *const *table, const char *key);
void mf_stock_forget_servers(void);
unsigned mf_stock_server_number(const server_rec *s);
void mf_stock_pack_server(mf_stock *m, stock_pack *p, const server_rec *s);

/* stock_config.c */
void mf_stock_pack_directive(mf_stock *m, stock_pack *p, cmd_parms *cmd);
const command_rec *mf_stock_commands(mf_stock *m, stock_unpack *u, apr_pool_t *pool);
void *mf_stock_configure(unsigned number, stock_config what, apr_pool_t *pool, const char *dir, server_rec *s, void *base, void *more);

/* stock_hook.c */
void mf_stock_register_hooks(unsigned number, apr_pool_t *pool);
int mf_stock_add_hook(mf_stock *m, stock_unpack *u, apr_pool_t *pool);
int mf_stock_run_hook(unsigned number, unsigned which, request_rec *r, const char *text);
int mf_stock_run_server_hooks(stock_hook hook, apr_pool_t *pool, server_rec *s);
void mf_stock_order_hooks(void);
void mf_stock_fail(request_rec *r);
int mf_stock_failed(request_rec *r);

/* stock_skip.c */
mf_stock_known *mf_stock_make_known(apr_pool_t *pool);
int mf_stock_is_known(const mf_stock *m, const mf_stock_hook *hook, request_rec *r, int *result);
int mf_stock_watches(const mf_stock *m, const mf_stock_hook *hook, request_rec *r);
void mf_stock_learn(mf_stock *m, const mf_stock_hook *hook, request_rec *r, stock_unpack *u, int result);

/* stock_filter.c */
apr_status_t mf_stock_filter(ap_filter_t *f, apr_bucket_brigade *brigade);
apr_status_t mf_stock_input_filter(ap_filter_t *f, apr_bucket_brigade *to, ap_input_mode_t mode, apr_read_type_e block, apr_off_t wanted);
int mf_stock_filter_begin(ap_filter_t *f);
int mf_stock_add_filter(mf_stock_call *call, const char *name, apr_uint64_t context);
int mf_stock_add_made(mf_stock_call *call, apr_uint64_t record, const char *context, const char *how);

/* stock_provider.c */
int mf_stock_add_provider(mf_stock *m, stock_unpack *u, apr_pool_t *pool);
int mf_stock_add_function(mf_stock *m, stock_unpack *u);
void mf_stock_providers_end(mf_stock *m);
apr_uint64_t mf_stock_keep_line(mf_stock *m, const void *provider, const void *made, apr_pool_t *pool);
int mf_stock_find_line(mf_stock *m, apr_uint64_t number, const void *provider, const request_rec *r, const void **made);
ap_conf_vector_t *mf_stock_config(const mf_stock *m, apr_uint64_t number);

/* stock_ask.c */
void mf_stock_ask(rf_caller *caller, void *module);

/* stock_trampolines.c: functions that know which module they are for */
typedef struct mf_stock_trampoline {
    void *(*create_dir)(apr_pool_t *, char *);
    void *(*merge_dir)(apr_pool_t *, void *, void *);
    void *(*create_server)(apr_pool_t *, server_rec *);
    void *(*merge_server)(apr_pool_t *, void *, void *);
    void (*register_hooks)(apr_pool_t *);
    int (*hooks[MF_STOCK_HOOKS])(request_rec *);
    void (*void_hooks[MF_STOCK_HOOKS])(request_rec *);
    int (*text_hooks[MF_STOCK_HOOKS])(request_rec *, const char *);
} mf_stock_trampoline;
extern const mf_stock_trampoline mf_stock_trampolines[MF_STOCK_MOST];

#endif
