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

#include "stock.h"

enum { TWINS = 512 /* requests at a time */, OWN = 1 /* the module's place in vectors of configuration; 0 is the core's */ };

/* The module's own of a request of the server's. */
typedef struct twin {
    request_rec r;
    conn_rec c;
    uint64_t number; /* the server's for it; 0: unused */
    apr_pool_t *pool;
    const char *texts[STOCK_TEXT_COUNT]; /* as the server gave them */
    char *copies[STOCK_TEXT_COUNT];      /* what the module was given to see, and may change where it is */
    uint64_t numbers[STOCK_NUMBER_COUNT];
    apr_array_header_t *languages;
    int language_count;
    uint64_t stamps[STOCK_TABLES], loaded[STOCK_TABLES]; /* of the server's tables, and of what is here */
    void *dir_config[OWN + 1], *request_config[OWN + 1];
    struct ap_logconf log;
    apr_sockaddr_t client, local, agent;
    ap_filter_t core_filter; /* what stands for the server's filters */
} twin;

/* The call from the server that runs on this thread. */
typedef struct entry {
    struct entry *up;
    twin *t;                     /* of the request that it is for; NULL: none */
    apr_pool_t *pool;
    ap_filter_t *filter;
    apr_bucket_brigade *brigade;
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
twin *stock_twin_of(const request_rec *r);
twin *stock_take_requests(stock_unpack *u, apr_pool_t *pool);
void stock_tell_changes(stock_pack *p);
uint64_t stock_number(const request_rec *r);

/* table.c */
apr_table_t *stock_table_at(size_t twin, int which);
void stock_tables_begin(size_t twin, apr_pool_t *pool);
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

/* hook.c */
void stock_server_hook(stock_unpack *u, stock_pack *p, apr_pool_t *pool);
void stock_request_hook(stock_unpack *u, stock_pack *p, apr_pool_t *pool);

/* provider.c */
void stock_provider(stock_unpack *u, stock_pack *p, apr_pool_t *pool);

/* filter.c */
void stock_filter(stock_unpack *u, stock_pack *p, apr_pool_t *pool);

#endif
