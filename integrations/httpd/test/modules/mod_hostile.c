/* A stock module that does what it likes, by the request's query. */
#include "httpd.h"
#include "http_config.h"
#include "http_core.h"
#include "http_log.h"
#include "http_protocol.h"
#include "http_request.h"
#include "apr_strings.h"
#include "mod_auth.h"
#include "util_filter.h"

#include "stock_image.h"

module AP_MODULE_DECLARE_DATA hostile_module;
extern apr_uint64_t stock_ask(int, const void *, apr_uint64_t, void *, apr_uint64_t);

static request_rec *kept;
static apr_pool_t *stay;

extern apr_uint64_t stock_number(const request_rec *);

/* A question that is well-formed. */
static void forge(stock_op op, request_rec *r, int count, const apr_uint64_t *numbers)
{
    static char answer[1 << 17];
    stock_pack p;

    stock_pack_begin(&p);
    if (op > STOCK_LAST_PLAIN_) {
        stock_put(&p, 0); /* no changes */
        stock_put(&p, 0);
    }
    if (op == STOCK_ASK_CALL_PROVIDER) {
        stock_put(&p, stock_number(r));
        stock_put(&p, STOCK_CHECK_AUTHORIZATION);
        stock_put_text(&p, AUTHZ_PROVIDER_GROUP);
        stock_put_text(&p, "ip");
        stock_put_text(&p, "10.0.0.0/8");
        stock_put_text(&p, NULL);
    }
    for (int i = 0; i < count; i++)
        stock_put(&p, numbers[i]);
    stock_ask(op, p.bytes, p.length, answer, sizeof answer);
    stock_pack_end(&p);
}

static int asks(request_rec *r, const char *what)
{
    return r->args && strcmp(r->args, what) == 0;
}

/* A request within the request, which others have in hand. */
static request_rec *inner;

static apr_status_t filter(ap_filter_t *f, apr_bucket_brigade *brigade)
{
    if (asks(f->r, "inner-running"))
        ap_destroy_sub_req(inner);
    if (asks(f->r, "filter-crash"))
        *(volatile int *)8 = 1;
    if (asks(f->r, "filter-bucket"))
        forge(STOCK_ASK_READ_BUCKET, f->r, 4, (apr_uint64_t[]){ 3, 0, 1 << 16, 0 });
    if (asks(f->r, "filter-part")) {
        /* more than there is of its first bucket */
        apr_bucket *first = APR_BRIGADE_FIRST(brigade);

        first->length += 4096;
    }
    if (asks(f->r, "filter-twice"))
        ap_pass_brigade(f->next, brigade);
    ap_remove_output_filter(f);
    return ap_pass_brigade(f->next, brigade);
}

/* Reads all of a body at once, and passes nothing on; or finds nothing, without end. */
static apr_status_t input_filter(ap_filter_t *f, apr_bucket_brigade *brigade, ap_input_mode_t mode, apr_read_type_e block, apr_off_t wanted)
{
    while (asks(f->r, "input-all"))
        forge(STOCK_ASK_GET_BRIGADE, f->r, 3, (apr_uint64_t[]){ AP_MODE_READBYTES, APR_BLOCK_READ, 8192 });
    return APR_SUCCESS;
}

/* The request's end, which the server tells if it matters. */
static apr_status_t end(void *number)
{
    ap_log_perror(APLOG_MARK, APLOG_WARNING, 0, stay, "a request is over: %d", ++*(int *)number);
    return APR_SUCCESS;
}

static void insert(request_rec *r)
{
    if (asks(r, "insert-crash"))
        *(volatile int *)8 = 1;
    if (r->args && strncmp(r->args, "filter-", 7) == 0)
        ap_add_output_filter("HOSTILE", NULL, r, r->connection);
    if (r->args && strncmp(r->args, "input-", 6) == 0)
        ap_add_input_filter("HOSTILE_IN", NULL, r, r->connection);
}

/* Looks at nothing of the request, so the server spares itself the call: until another hook has changed its mind. */
static int refusals;

static int access_checker(request_rec *r)
{
    if (!refusals)
        return DECLINED;
    refusals--;
    return HTTP_FORBIDDEN;
}

/* A question that brings a change of the request with it: the library of this domain has no part in it. */
static void hoard_once(request_rec *r, const char *what, const char *text)
{
    static const stock_field texts[] = { STOCK_TEXTS(STOCK_FIELD_) };
    static const struct {
        const char *name;
        stock_change how;
    } changes[] = { { "set", STOCK_SET }, { "add", STOCK_ADD }, { "merge", STOCK_MERGE }, { "type", STOCK_SET_TYPE }, { "filter", STOCK_ADD_OWN } };
    static char answer[1 << 18];
    int text_of = -1, change = -1, language = strcmp(what, "language") == 0, table = strcmp(what, "table") == 0;
    stock_pack p;

    for (int i = 0; i < (int)(sizeof texts / sizeof *texts); i++)
        if (strcmp(what, "text") == 0 && texts[i].offset == offsetof(request_rec, vlist_validator))
            text_of = i;
    for (int i = 0; i < (int)(sizeof changes / sizeof *changes); i++)
        if (strcmp(what, changes[i].name) == 0)
            change = i;
    stock_pack_begin(&p);
    stock_put(&p, text_of >= 0 || language || table);
    if (text_of >= 0 || language || table) {
        stock_put(&p, 0);
        stock_put(&p, text_of >= 0 ? (apr_uint64_t)1 << text_of : language ? STOCK_LANGUAGES_CHANGED : 0);
        if (language)
            stock_put(&p, 2);
        if (!table)
            stock_put_text(&p, text);
    }
    stock_put(&p, change >= 0);
    if (change >= 0) {
        stock_put(&p, changes[change].how);
        stock_put(&p, stock_number(r));
        stock_put(&p, 1); /* headers_out */
        stock_put_text(&p, changes[change].how == STOCK_SET_TYPE ? text : changes[change].how == STOCK_ADD_OWN ? "HOSTILE" : "X-Hoard");
        stock_put_text(&p, text);
    }
    if (text_of >= 0 || language || table)
        stock_put(&p, table ? 1 << 1 : 0);
    if (table) {
        stock_put(&p, 1);
        stock_put_text(&p, "X-Hoard");
        stock_put_text(&p, text);
    }
    stock_put(&p, stock_number(r));
    if (strcmp(what, "root") == 0) {
        stock_put_text(&p, text);
        stock_ask(STOCK_ASK_DOCUMENT_ROOT, p.bytes, p.length, answer, sizeof answer);
    } else if (strcmp(what, "url") == 0) {
        stock_put(&p, STOCK_TEXT_URL);
        stock_put(&p, 0);
        stock_put_text(&p, text);
        stock_ask(STOCK_ASK_ASK_TEXT, p.bytes, p.length, answer, sizeof answer);
    } else if (strcmp(what, "redirect") == 0) {
        stock_put_text(&p, "/a.txt");
        stock_ask(STOCK_ASK_REDIRECT, p.bytes, p.length, answer, sizeof answer);
    } else {
        stock_put(&p, STOCK_SET_RANGES);
        stock_put(&p, 0);
        stock_ask(STOCK_ASK_SET_NUMBER, p.bytes, p.length, answer, sizeof answer);
    }
    stock_pack_end(&p);
}

/* Half a gigabyte of what the server keeps as long as the request. The same text again needs no room in the request's image. */
static void hoard(request_rec *r, const char *what)
{
    static char text[100001];

    memset(text, 'x', 100000);
    for (int i = 0; i < 5000; i++)
        hoard_once(r, what, strcmp(what, "merge") == 0 && i % 100 ? "0123456789" : text);
}

/* Ends requests within the request at the wrong time. */
static void end_inner(request_rec *r, const char *when)
{
    if (strcmp(when, "running") == 0)
        ap_add_output_filter("HOSTILE", NULL, r, r->connection);
    inner = ap_sub_req_lookup_uri("/page.html", r, r->output_filters);
    if (strcmp(when, "running") == 0)
        ap_run_sub_req(inner); /* the filter ends it */
    else
        ap_internal_fast_redirect(inner, r);
    ap_destroy_sub_req(inner);
}

static int fixups(request_rec *r)
{
    static char all[100];

    if (r->args && strncmp(r->args, "inner-", 6) == 0)
        end_inner(r, r->args + 6);
    if (asks(r, "filter-of-connection")) {
        /* The server's own are added with what they need. */
        if (ap_add_input_filter("CORE_IN", NULL, r, r->connection) || ap_add_output_filter("CORE", NULL, r, r->connection))
            return HTTP_INTERNAL_SERVER_ERROR;
    }
    if (r->args && strncmp(r->args, "hoard-", 6) == 0)
        hoard(r, r->args + 6);
    if (asks(r, "refuse"))
        refusals = 1;
    if (asks(r, "core")) {
        /* As modules look at the core's configuration that know nothing of its macros. */
        const core_dir_config *core = ap_get_module_config(r->per_dir_config, &core_module);

        return core->enable_sendfile == ENABLE_SENDFILE_ON ? HTTP_INTERNAL_SERVER_ERROR : DECLINED;
    }
    if (asks(r, "die") || asks(r, "die-badly")) {
        ap_die(asks(r, "die") ? HTTP_PAYMENT_REQUIRED : 77, r);
        return DONE;
    }
    if (asks(r, "crash"))
        *(volatile int *)8 = 1;
    if (asks(r, "loop"))
        for (;;)
            __asm__ volatile("");
    if (asks(r, "stack"))
        return fixups(r) + 1;
    if (asks(r, "status"))
        return 99999;
    if (asks(r, "name"))
        r->filename = apr_pstrdup(r->pool, "/etc/passwd");
    if (asks(r, "user"))
        r->user = apr_pstrdup(r->pool, "root");
    if (asks(r, "number"))
        r->status = -7;
    if (asks(r, "header"))
        apr_table_setn(r->headers_out, "X-Forged", "a\r\nSet-Cookie: b");
    if (asks(r, "op"))
        stock_ask(999, all, 8, all, sizeof all);
    if (asks(r, "from"))
        stock_ask(4, (void *)0x7fff00000000, 64, all, sizeof all);
    if (asks(r, "length"))
        stock_ask(4, all, ~(apr_uint64_t)0, all, sizeof all);
    if (asks(r, "hook"))
        ap_hook_fixups(fixups, NULL, NULL, APR_HOOK_MIDDLE);
    if (asks(r, "bucket"))
        forge(STOCK_ASK_READ_BUCKET, r, 4, (apr_uint64_t[]){ 1, 0, 1 << 16, 0 });
    if (asks(r, "pass"))
        forge(STOCK_ASK_PASS_BRIGADE, r, 3, (apr_uint64_t[]){ 0, 0, 1 });
    if (asks(r, "input"))
        forge(STOCK_ASK_GET_BRIGADE, r, 3, (apr_uint64_t[]){ AP_MODE_READBYTES, APR_BLOCK_READ, 8192 });
    if (asks(r, "begin"))
        forge(STOCK_ASK_BEGIN_FILTER, r, 1, (apr_uint64_t[]){ 0 });
    if (asks(r, "line"))
        forge(STOCK_ASK_CALL_PROVIDER, r, 2, (apr_uint64_t[]){ 1, 0 });
    if (asks(r, "unparsed"))
        forge(STOCK_ASK_CALL_PROVIDER, r, 2, (apr_uint64_t[]){ 0, 0 });
    if (asks(r, "vector"))
        forge(STOCK_ASK_CALL_PROVIDER, r, 2, (apr_uint64_t[]){ 0, 77 });
    if (asks(r, "section"))
        forge(STOCK_ASK_WALK_CONFIG, r, 3, (apr_uint64_t[]){ 0, ~0u, 0 });
    if (asks(r, "image"))
        ((char *)r->hostname)[0] = 'X'; /* where all modules read it */
    if (asks(r, "entries") && apr_table_get(r->headers_in, "Host"))
        ((apr_table_entry_t *)(void *)((apr_array_header_t *)(void *)r->headers_in)->elts)->val = ""; /* the same */
    if (asks(r, "cleanup"))
        apr_pool_cleanup_register(r->pool, apr_pcalloc(r->pool, sizeof(int)), end, apr_pool_cleanup_null);
    if (asks(r, "keep"))
        kept = r;
    if (asks(r, "kept") && kept)
        apr_table_setn(kept->headers_out, "X-Kept", "yes");
    if (asks(r, "free"))
        apr_pool_destroy(r->pool);
    if (asks(r, "scribble"))
        memset(r, 0x41, 1 << 24);
    if (asks(r, "memory"))
        for (;;)
            memset(apr_palloc(r->pool, 1 << 20), 1, 1 << 20);
    if (asks(r, "notes")) {
        /* The server's own mod_negotiation takes this for the address of a list. */
        apr_table_setn(r->notes, "ap-mime-exceptions-list", "AAAAAAAAAAAAAAAAAAAAAAAA");
        r->notes = apr_table_make(r->pool, 1);
        apr_table_setn(r->notes, "ap-mime-exceptions-list", "AAAAAAAAAAAAAAAAAAAAAAAA");
    }
    if (asks(r, "server")) {
        r->server->server_hostname = NULL;
        ((void **)r->server->module_config)[0] = r;
        memset(r->server, 0x41, sizeof *r->server);
    }
    return DECLINED;
}

/* HostileStart: what the server's start meets. */
static const char *at_start = "";

static const char *set_start(cmd_parms *cmd, void *record, const char *what)
{
    at_start = apr_pstrdup(stay, what);
    return NULL;
}

static int post_config(apr_pool_t *pool, apr_pool_t *log, apr_pool_t *temporary, server_rec *s)
{
    if (strcmp(at_start, "crash") == 0)
        *(volatile int *)8 = 1;
    return strcmp(at_start, "refuse") == 0 ? HTTP_INTERNAL_SERVER_ERROR : OK;
}

static const command_rec commands[] = { AP_INIT_TAKE1("HostileStart", set_start, NULL, RSRC_CONF, "crash or refuse"), { NULL } };

static void hooks(apr_pool_t *pool)
{
    stay = pool;
    ap_hook_post_config(post_config, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_access_checker(access_checker, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_fixups(fixups, NULL, NULL, APR_HOOK_MIDDLE);
    ap_hook_insert_filter(insert, NULL, NULL, APR_HOOK_MIDDLE);
    ap_register_output_filter("HOSTILE", filter, NULL, AP_FTYPE_RESOURCE);
    ap_register_input_filter("HOSTILE_IN", input_filter, NULL, AP_FTYPE_RESOURCE);
    if (ap_exists_config_define("HOSTILE_CONNECTION"))
        ap_register_output_filter("CONNECTION", filter, NULL, AP_FTYPE_CONNECTION);
    if (ap_exists_config_define("HOSTILE_NAME"))
        ap_register_output_filter("Content_Length", filter, NULL, AP_FTYPE_RESOURCE);
}

AP_DECLARE_MODULE(hostile) = { STANDARD20_MODULE_STUFF, NULL, NULL, NULL, NULL, commands, hooks };
