/* Functions of the server that modules call, as questions to it; and those of its configuration that need no question. */
#include "inside.h"

#include "http_ssl.h"
#include "util_script.h"

/* Modules find the core's configuration by its place, which is the first everywhere. */
module core_module = { .version = MODULE_MAGIC_NUMBER_MAJOR,
                       .minor_version = MODULE_MAGIC_NUMBER_MINOR,
                       .module_index = AP_CORE_MODULE_INDEX,
                       .name = "core.c",
                       .magic = MODULE_MAGIC_COOKIE };
server_rec *ap_server_conf;

/* --------------------------------------------------------------------------------------------------------------------- log */

static void write_log(const char *file, int line, int level, apr_status_t status, const char *format, va_list list)
{
    char text[MAX_STRING_LEN];
    question q;

    apr_vsnprintf(text, sizeof text, format, list);
    stock_ask_begin(&q, STOCK_ASK_LOG);
    stock_put(&q.out, (uint64_t)level);
    stock_put(&q.out, (uint64_t)status);
    stock_put_text(&q.out, file);
    stock_put(&q.out, (uint64_t)line);
    stock_put_text(&q.out, text);
    stock_ask_send(&q, STOCK_ASK_LOG);
    stock_ask_end(&q, STOCK_ASK_LOG);
}

#define LOG(name, of)                                                                                                                       \
    void name(const char *file, int line, int index, int level, apr_status_t status, of, const char *format, ...)                           \
    {                                                                                                                                       \
        va_list list;                                                                                                                       \
                                                                                                                                            \
        va_start(list, format);                                                                                                             \
        write_log(file, line, level, status, format, list);                                                                                 \
        va_end(list);                                                                                                                       \
    }
LOG(ap_log_error_, const server_rec *s)
LOG(ap_log_rerror_, const request_rec *r)
LOG(ap_log_cerror_, const conn_rec *c)
LOG(ap_log_perror_, apr_pool_t *p)

void ap_log_assert(const char *what, const char *file, int line)
{
    ap_log_error_(file, line, APLOG_NO_MODULE, APLOG_CRIT, 0, NULL, "file %s, line %d, assertion \"%s\" failed", file, line, what);
    abort();
}

/* -------------------------------------------------------------------------------------------------------------- directives */

const char *ap_check_cmd_context(cmd_parms *cmd, unsigned forbidden)
{
    const char *error;
    question q;

    stock_ask_begin(&q, STOCK_ASK_CONTEXT);
    stock_put(&q.out, forbidden);
    stock_ask_send(&q, STOCK_ASK_CONTEXT);
    error = apr_pstrdup(cmd->pool, stock_get_text(&q.in));
    stock_ask_end(&q, STOCK_ASK_CONTEXT);
    return error;
}

#define PLACE(type) (*(type *)(void *)((char *)record + (size_t)(uintptr_t)cmd->info))

const char *ap_set_string_slot(cmd_parms *cmd, void *record, const char *arg)
{
    PLACE(const char *) = arg;
    return NULL;
}

const char *ap_set_string_slot_lower(cmd_parms *cmd, void *record, const char *arg)
{
    char *lower = apr_pstrdup(cmd->pool, arg);

    ap_str_tolower(lower);
    PLACE(char *) = lower;
    return NULL;
}

const char *ap_set_int_slot(cmd_parms *cmd, void *record, const char *arg)
{
    char *end;
    long value = strtol(arg, &end, 10);

    if (*arg == 0 || *end != 0)
        return apr_psprintf(cmd->pool, "Invalid value for directive %s, expected integer", cmd->directive->directive);
    PLACE(int) = (int)value;
    return NULL;
}

const char *ap_set_flag_slot(cmd_parms *cmd, void *record, int arg)
{
    PLACE(int) = arg ? 1 : 0;
    return NULL;
}

const char *ap_set_flag_slot_char(cmd_parms *cmd, void *record, int arg)
{
    PLACE(char) = arg ? 1 : 0;
    return NULL;
}

const char *ap_set_file_slot(cmd_parms *cmd, void *record, const char *arg)
{
    const char *path = ap_server_root_relative(cmd->pool, arg);

    if (!path)
        return apr_pstrcat(cmd->pool, "Invalid file path ", arg, NULL);
    PLACE(const char *) = path;
    return NULL;
}

const char *ap_set_deprecated(cmd_parms *cmd, void *record, const char *arg)
{
    return cmd->cmd->errmsg;
}

char *ap_server_root_relative(apr_pool_t *pool, const char *path)
{
    char *full;
    question q;

    stock_ask_begin(&q, STOCK_ASK_ROOT_RELATIVE);
    stock_put_text(&q.out, path);
    stock_ask_send(&q, STOCK_ASK_ROOT_RELATIVE);
    full = apr_pstrdup(pool, stock_get_text(&q.in));
    stock_ask_end(&q, STOCK_ASK_ROOT_RELATIVE);
    return full;
}

int ap_exists_config_define(const char *name)
{
    question q;
    int yes;

    stock_ask_begin(&q, STOCK_ASK_DEFINED);
    stock_put_text(&q.out, name);
    stock_ask_send(&q, STOCK_ASK_DEFINED);
    yes = (int)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_DEFINED);
    return yes;
}

/* ---------------------------------------------------------------------------------------------------------------- requests */

void ap_set_content_type_ex(request_rec *r, const char *type, int trusted)
{
    r->content_type = type;
    /* Of a request that it only looks at (mod_negotiation's candidates), the type is the module's own note. */
    if (stock_is_own(stock_twin_of(r)))
        stock_note_change(stock_twin_of(r), STOCK_SET_TYPE, trusted != 0, type, NULL);
}

void ap_set_content_type(request_rec *r, const char *type)
{
    ap_set_content_type_ex(r, type, 0);
}

static request_rec *look_up(const request_rec *r, const char *name, int by_file, int filtered)
{
    question q;
    twin *sub;

    stock_ask_begin(&q, STOCK_ASK_SUBREQUEST);
    stock_put(&q.out, stock_number(r));
    stock_put(&q.out, (uint64_t)by_file);
    stock_put(&q.out, (uint64_t)filtered);
    stock_put_text(&q.out, name);
    stock_ask_send(&q, STOCK_ASK_SUBREQUEST);
    sub = stock_take_requests(&q.in);
    stock_ask_end(&q, STOCK_ASK_SUBREQUEST);
    if (!sub)
        abort();
    return &sub->r;
}

request_rec *ap_sub_req_lookup_uri(const char *uri, const request_rec *r, ap_filter_t *next)
{
    return look_up(r, uri, 0, next != NULL);
}

request_rec *ap_sub_req_method_uri(const char *method, const char *uri, const request_rec *r, ap_filter_t *next)
{
    return look_up(r, uri, 0, next != NULL);
}

request_rec *ap_sub_req_lookup_file(const char *file, const request_rec *r, ap_filter_t *next)
{
    return look_up(r, file, 1, next != NULL);
}

request_rec *ap_sub_req_lookup_dirent(const apr_finfo_t *info, const request_rec *r, int how, ap_filter_t *next)
{
    return look_up(r, info->name, 1, next != NULL);
}

static uint64_t simple(stock_op op, const request_rec *r, const char *text, int answers)
{
    uint64_t result = 0;
    question q;

    stock_ask_begin(&q, op);
    stock_put(&q.out, stock_number(r));
    if (text)
        stock_put_text(&q.out, text);
    stock_ask_send(&q, op);
    if (answers)
        result = stock_get(&q.in);
    stock_ask_end(&q, op);
    return result;
}

void ap_destroy_sub_req(request_rec *r)
{
    simple(STOCK_ASK_END_SUBREQUEST, r, NULL, 0);
}

void ap_internal_redirect(const char *uri, request_rec *r)
{
    simple(STOCK_ASK_REDIRECT, r, uri, 0);
}

/* The page of that status takes the place of what else the request would be answered with. */
void ap_die(int status, request_rec *r)
{
    question q;

    stock_ask_begin(&q, STOCK_ASK_DIE);
    stock_put(&q.out, stock_number(r));
    stock_put(&q.out, (uint64_t)status);
    stock_ask_send(&q, STOCK_ASK_DIE);
    stock_ask_end(&q, STOCK_ASK_DIE);
}

void ap_internal_fast_redirect(request_rec *sub, request_rec *r)
{
    question q;

    stock_ask_begin(&q, STOCK_ASK_FAST_REDIRECT);
    stock_put(&q.out, stock_number(sub));
    stock_put_text(&q.out, sub->args);
    stock_ask_send(&q, STOCK_ASK_FAST_REDIRECT);
    stock_ask_end(&q, STOCK_ASK_FAST_REDIRECT);
}

void ap_internal_redirect_handler(const char *uri, request_rec *r)
{
    simple(STOCK_ASK_HANDLER_REDIRECT, r, uri, 0);
}

int ap_run_sub_req(request_rec *r)
{
    return (int)simple(STOCK_ASK_RUN_SUBREQUEST, r, NULL, 1);
}

void ap_set_document_root(request_rec *r, const char *root)
{
    simple(STOCK_ASK_DOCUMENT_ROOT, r, root, 0);
}

int ap_core_translate(request_rec *r)
{
    return (int)simple(STOCK_ASK_CORE_TRANSLATE, r, NULL, 1);
}

void ap_note_auth_failure(request_rec *r)
{
    simple(STOCK_ASK_NOTE_AUTH_FAILURE, r, NULL, 0);
}

apr_status_t ap_stat_check(const char *path, apr_pool_t *pool)
{
    return APR_SUCCESS;
}

int ap_discard_request_body(request_rec *r)
{
    return (int)simple(STOCK_ASK_DISCARD_BODY, r, NULL, 1);
}

int ap_meets_conditions(request_rec *r)
{
    return (int)simple(STOCK_ASK_MEETS_CONDITIONS, r, NULL, 1);
}

const char *stock_text_from(const request_rec *r, apr_pool_t *pool, stock_text which, int number, const char *about)
{
    const twin *t = STOCK_TEXTS_SAID >> which & 1 ? stock_twin_of(r) : NULL;
    const char *text;
    question q;

    if (t && t->number && stock_image_of(t)->said[which]) {
        stock_looks_further();
        return stock_at(stock_image_of(t)->said[which]);
    }
    stock_ask_begin(&q, STOCK_ASK_ASK_TEXT);
    stock_put(&q.out, stock_number(r));
    stock_put(&q.out, which);
    stock_put(&q.out, (uint64_t)number);
    stock_put_text(&q.out, about);
    stock_ask_send(&q, STOCK_ASK_ASK_TEXT);
    text = apr_pstrdup(pool, stock_get_text(&q.in));
    stock_ask_end(&q, STOCK_ASK_ASK_TEXT);
    return text;
}

char *ap_construct_url(apr_pool_t *pool, const char *uri, request_rec *r)
{
    return (char *)(uintptr_t)stock_text_from(r, pool, STOCK_TEXT_URL, 0, uri);
}

const char *ap_get_server_name(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_SERVER_NAME, 0, NULL);
}

const char *ap_get_useragent_host(request_rec *r, int type, int *is_ip)
{
    if (is_ip)
        *is_ip = 0;
    return stock_text_from(r, r->pool, STOCK_TEXT_REMOTE_HOST, type, NULL);
}

const char *ap_auth_name(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_AUTH_NAME, 0, NULL);
}

const char *ap_auth_type(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_AUTH_TYPE, 0, NULL);
}

const char *ap_psignature(const char *prefix, request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_SIGNATURE, 0, prefix);
}

const char *ap_ssl_var_lookup(apr_pool_t *pool, server_rec *s, conn_rec *c, request_rec *r, const char *name)
{
    return r ? stock_text_from(r, pool, STOCK_TEXT_SSL, 0, name) : NULL;
}

char *ap_make_etag(request_rec *r, int weak)
{
    return (char *)(uintptr_t)stock_text_from(r, r->pool, STOCK_TEXT_ETAG, weak, NULL);
}

static apr_off_t number_from(const request_rec *r, stock_text which, int number, const char *about)
{
    const char *text = stock_text_from(r, r->pool, which, number, about);

    return text ? apr_atoi64(text) : 0;
}

apr_port_t ap_get_server_port(const request_rec *r)
{
    return (apr_port_t)number_from(r, STOCK_TEXT_PORT, 0, NULL);
}

int ap_allow_options(request_rec *r)
{
    return (int)number_from(r, STOCK_TEXT_OPTIONS, 0, NULL);
}

apr_port_t ap_run_default_port(const request_rec *r)
{
    return (apr_port_t)number_from(r, STOCK_TEXT_DEFAULT_PORT, 0, NULL);
}

/* Of the connection of the call's request. */
int ap_ssl_conn_is_ssl(conn_rec *c)
{
    return stock_entry && stock_entry->t && number_from(&stock_entry->t->r, STOCK_TEXT_IS_SSL, 0, NULL);
}

apr_off_t ap_get_limit_req_body(const request_rec *r)
{
    return number_from(r, STOCK_TEXT_BODY_LIMIT, 0, NULL);
}

int ap_matches_request_vhost(request_rec *r, const char *host, apr_port_t port)
{
    return number_from(r, STOCK_TEXT_MATCHES_HOST, port, host) != 0;
}

const char *ap_run_http_scheme(const request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_SCHEME, 0, NULL);
}

const char *ap_get_server_name_for_url(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_URL_NAME, 0, NULL);
}

const char *ap_document_root(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_DOCUMENT_ROOT, 0, NULL);
}

const char *ap_context_document_root(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_CONTEXT_ROOT, 0, NULL);
}

const char *ap_context_prefix(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_CONTEXT_PREFIX, 0, NULL);
}

const char *ap_get_remote_logname(request_rec *r)
{
    return stock_text_from(r, r->pool, STOCK_TEXT_LOGNAME, 0, NULL);
}

const char *ap_get_remote_host(conn_rec *c, void *dir_config, int type, int *is_ip)
{
    if (!stock_entry || !stock_entry->t)
        return c->client_ip;
    if (is_ip)
        *is_ip = 0;
    return stock_text_from(&stock_entry->t->r, stock_entry->t->r.pool, STOCK_TEXT_REMOTE_HOST, type, "");
}

static void set(request_rec *r, stock_set which, uint64_t value)
{
    question q;

    stock_ask_begin(&q, STOCK_ASK_SET_NUMBER);
    stock_put(&q.out, stock_number(r));
    stock_put(&q.out, which);
    stock_put(&q.out, value);
    stock_ask_send(&q, STOCK_ASK_SET_NUMBER);
    stock_ask_end(&q, STOCK_ASK_SET_NUMBER);
}

void ap_set_content_length(request_rec *r, apr_off_t length)
{
    set(r, STOCK_SET_LENGTH, (uint64_t)length);
}

/* The call's own request has a field for it, which is told with the others. */
void ap_update_mtime(request_rec *r, apr_time_t time)
{
    if (!stock_entry || !stock_entry->t || r != &stock_entry->t->r)
        set(r, STOCK_SET_MTIME, (uint64_t)time);
    else if (r->mtime < time)
        r->mtime = time;
}

void ap_set_etag(request_rec *r)
{
    set(r, STOCK_SET_ETAG, 0);
}

void ap_set_last_modified(request_rec *r)
{
    set(r, STOCK_SET_MODIFIED, 0);
}

void ap_set_context_info(request_rec *r, const char *prefix, const char *root)
{
    question q;

    stock_ask_begin(&q, STOCK_ASK_CONTEXT_INFO);
    stock_put(&q.out, stock_number(r));
    stock_put_text(&q.out, prefix);
    stock_put_text(&q.out, root);
    stock_ask_send(&q, STOCK_ASK_CONTEXT_INFO);
    stock_ask_end(&q, STOCK_ASK_CONTEXT_INFO);
}

void ap_set_accept_ranges(request_rec *r)
{
    set(r, STOCK_SET_RANGES, 0);
}

/* The methods are in the twin: the server takes them over. */
void ap_allow_standard_methods(request_rec *r, int reset, ...)
{
    apr_int64_t mask = 0;
    va_list list;
    int method;

    va_start(list, reset);
    while ((method = va_arg(list, int)) != -1)
        mask |= AP_METHOD_BIT << method;
    va_end(list);
    r->allowed = reset ? mask : r->allowed | mask;
}

static int method(const char *name, int add)
{
    question q;
    int number;

    stock_ask_begin(&q, STOCK_ASK_METHOD);
    stock_put_text(&q.out, name);
    stock_put(&q.out, (uint64_t)add);
    stock_ask_send(&q, STOCK_ASK_METHOD);
    number = (int)stock_get(&q.in);
    stock_ask_end(&q, STOCK_ASK_METHOD);
    return number;
}

int ap_method_number_of(const char *name)
{
    return method(name, 0);
}

int ap_method_register(apr_pool_t *pool, const char *name)
{
    return method(name, 1);
}

int ap_is_initial_req(request_rec *r)
{
    return r->main == NULL && r->prev == NULL;
}

/* ------------------------------------------------------------------------------------------------------------------ output */

int ap_rwrite(const void *bytes, int count, request_rec *r)
{
    int done = 0;

    while (done < count) {
        int piece = count - done < STOCK_LARGEST / 2 ? count - done : STOCK_LARGEST / 2;
        question q;
        int wrote;

        stock_ask_begin(&q, STOCK_ASK_WRITE);
        stock_put(&q.out, stock_number(r));
        stock_put_bytes(&q.out, (const char *)bytes + done, (size_t)piece);
        stock_ask_send(&q, STOCK_ASK_WRITE);
        wrote = (int)stock_get(&q.in);
        stock_ask_end(&q, STOCK_ASK_WRITE);
        if (wrote < 0)
            return -1;
        done += piece;
    }
    return done;
}

int ap_rputc(int c, request_rec *r)
{
    char one = (char)c;

    return ap_rwrite(&one, 1, r) < 0 ? -1 : c;
}

int ap_vrprintf(request_rec *r, const char *format, va_list list)
{
    const char *text = apr_pvsprintf(r->pool, format, list);

    return ap_rwrite(text, (int)strlen(text), r);
}

int ap_rprintf(request_rec *r, const char *format, ...)
{
    va_list list;
    int n;

    va_start(list, format);
    n = ap_vrprintf(r, format, list);
    va_end(list);
    return n;
}

int ap_rvputs(request_rec *r, ...)
{
    va_list list;
    const char *text;
    int sum = 0;

    va_start(list, r);
    while ((text = va_arg(list, const char *)))
        sum += ap_rwrite(text, (int)strlen(text), r);
    va_end(list);
    return sum;
}
