/* stock.h - what mod_fenced and the library of fenced stock modules agree on: messages, and what stands in them.
 *
 * Control crosses by three functions. The server calls a module's `stock_enter(kind, message, length)`, which returns an answer, and, for
 * hooks of requests, `stock_run(hook, function, slot, record, level)`, which needs no message: the request is in stock_image.h. The
 * module's library calls the server's `stock_ask(op, message, length, reply, capacity)`, which returns the reply's length; what did not
 * fit is fetched. A message is a row of items, each a number of 8 bytes or a text: its length plus 1 (0: NULL), its bytes, a NUL, zeros up
 * to a multiple of 8. No addresses of the server's are in it; a module gets its own ones back as it gave them. */
#ifndef STOCK_H
#define STOCK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* X for each of 32 or 64 numbers, which are octal: a table of functions that know theirs. */
#define STOCK_8(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define STOCK_32(X) STOCK_8(X, 0) STOCK_8(X, 01) STOCK_8(X, 02) STOCK_8(X, 03)
#define STOCK_64(X) STOCK_32(X) STOCK_8(X, 04) STOCK_8(X, 05) STOCK_8(X, 06) STOCK_8(X, 07)

enum { STOCK_LARGEST = 1 << 20 /* bytes of a message */, STOCK_TABLES = 7, STOCK_LINKS = 16 /* requests that one names */ };

/* ------------------------------------------------------------------------------------------------------------------ calls */

/* What a module is called for. */
typedef enum stock_kind {
    STOCK_OPEN,         /* to describe itself */
    STOCK_HOOKS,        /* to register its hooks */
    STOCK_CONFIG,       /* a stock_config: to create or merge a record */
    STOCK_COMMAND,      /* a directive */
    STOCK_SERVER_HOOK,  /* a hook of the server's start */
    STOCK_REQUEST_HOOK, /* a hook of a request */
    STOCK_FILTER,       /* an output filter, with a brigade */
    STOCK_INPUT_FILTER, /* an input filter, for one */
    STOCK_FILTER_BEGIN, /* a filter, before it is called for the first time */
    STOCK_PROVIDER,     /* a stock_provide: a function that authorizes or authenticates */
    STOCK_END_POOL,     /* memory of the server is gone, and what the module has had for it */
    STOCK_END_REQUEST,  /* the same, of a request */
    STOCK_IMAGES        /* to be told where requests are */
} stock_kind;

typedef enum stock_config { STOCK_CREATE_DIR, STOCK_MERGE_DIR, STOCK_CREATE_SERVER, STOCK_MERGE_SERVER, STOCK_CONFIGS } stock_config;

/* What providers, and optional functions, do. The first is asked for a directive, the others for a request. */
typedef enum stock_provide {
    STOCK_PARSE_REQUIRE,
    STOCK_CHECK_AUTHORIZATION,
    STOCK_CHECK_PASSWORD,
    STOCK_REALM_HASH,
    STOCK_NUMBER_OF, /* an optional function of a request, whose result is a number */
    STOCK_TEXT_OF,   /* the same, a text */
    STOCK_PROVIDES
} stock_provide;

/* What a module asks for. What is in the second list sees and changes the request: the module's changes of it go with the question, the
 * server's come with the answer. */
#define STOCK_PLAIN_OPS(X)                                                                                                                  \
    X(FETCH) X(HOOK) X(LOG) X(CONTEXT) X(WALK_CONFIG) X(NEW_CONFIG) X(REGISTER_FILTER) X(ROOT_RELATIVE) X(DEFINED) X(LOAD)               \
    X(REGISTER_PROVIDER) X(FIND_PROVIDER) X(PARSE_REQUIRE) X(REGISTER_FUNCTION) X(METHOD) X(SERVER_TEXT) X(MPM_QUERY) X(WORKER) X(FIND_FILTER)
#define STOCK_SYNCED_OPS(X)                                                                                                                 \
    X(ADD_FILTER) X(ADD_INPUT_FILTER) X(PASS_BRIGADE) X(SUBREQUEST) X(RUN_SUBREQUEST) X(END_SUBREQUEST) X(REDIRECT) X(HANDLER_REDIRECT) X(FAST_REDIRECT) X(DIE) \
    X(CONTEXT_INFO) X(DOCUMENT_ROOT) X(WRITE) X(DISCARD_BODY) X(MEETS_CONDITIONS) X(ASK_TEXT) X(SET_NUMBER)                \
    X(CORE_TRANSLATE) X(NOTE_AUTH_FAILURE) X(CALL_PROVIDER) X(STATUS_HOOK) X(READ_BUCKET) X(GET_BRIGADE) X(BEGIN_FILTER)         \
    X(CALL_FILTER)
#define STOCK_OP_(name) STOCK_ASK_##name,
typedef enum stock_op {
    STOCK_PLAIN_OPS(STOCK_OP_) STOCK_PLAIN_END_,
    STOCK_LAST_PLAIN_ = STOCK_PLAIN_END_ - 1,
    STOCK_SYNCED_OPS(STOCK_OP_) STOCK_OPS
} stock_op;

/* STOCK_ASK_ASK_TEXT: a text that the server knows. */
typedef enum stock_text {
    STOCK_TEXT_URL,         /* ap_construct_url */
    STOCK_TEXT_SERVER_NAME, /* ap_get_server_name */
    STOCK_TEXT_REMOTE_HOST, /* ap_get_useragent_host, with its type */
    STOCK_TEXT_AUTH_NAME,
    STOCK_TEXT_AUTH_TYPE,
    STOCK_TEXT_SSL,       /* ap_ssl_var_lookup */
    STOCK_TEXT_SIGNATURE, /* ap_psignature */
    STOCK_TEXT_ETAG,
    STOCK_TEXT_PORT,   /* ap_get_server_port, as a number in decimal */
    STOCK_TEXT_OPTIONS, /* ap_allow_options, the same */
    STOCK_TEXT_URL_NAME,       /* ap_get_server_name_for_url */
    STOCK_TEXT_DOCUMENT_ROOT,
    STOCK_TEXT_CONTEXT_PREFIX,
    STOCK_TEXT_CONTEXT_ROOT,
    STOCK_TEXT_LOGNAME,      /* ap_get_remote_logname */
    STOCK_TEXT_SCHEME,       /* ap_run_http_scheme */
    STOCK_TEXT_DEFAULT_PORT, /* ap_run_default_port, as a number */
    STOCK_TEXT_IS_SSL,       /* ap_ssl_conn_is_ssl, the same */
    STOCK_TEXT_BODY_LIMIT,   /* ap_get_limit_req_body, the same */
    STOCK_TEXT_MATCHES_HOST, /* ap_matches_request_vhost, with a port: 0 or 1 */
    STOCK_TEXT_KINDS
} stock_text;

/* Those that hang on nothing but the server, the directory and the host that was asked for: in the image of a request stand those that a module
 * of this process has asked for before. */
#define STOCK_TEXTS_SAID                                                                                                                    \
    (1u << STOCK_TEXT_SERVER_NAME | 1u << STOCK_TEXT_PORT | 1u << STOCK_TEXT_URL_NAME | 1u << STOCK_TEXT_SCHEME | 1u << STOCK_TEXT_DEFAULT_PORT)

/* STOCK_ASK_WORKER: a record of the scoreboard, by process and thread; this in place of both: the whole, of a thread: the process. */
enum { STOCK_WHOLE = -1 };

/* STOCK_ASK_SERVER_TEXT: what the server says of itself. */
typedef enum stock_server_text {
    STOCK_SERVER_BANNER,
    STOCK_SERVER_DESCRIPTION,
    STOCK_SERVER_BUILT,
    STOCK_SERVER_MPM,
    STOCK_SERVER_MODULE, /* the name again, if there is such a module */
    STOCK_SERVER_USER,   /* of a number in decimal */
    STOCK_SERVER_GROUP,
    STOCK_SERVER_HOME,    /* of a user */
    STOCK_SERVER_RESPONSE, /* ap_index_of_response, numbers in decimal */
    STOCK_SERVER_VARIABLE  /* of its environment: those that pages get, and those that the directive names which is called */
} stock_server_text;

/* STOCK_ASK_SET_NUMBER */
typedef enum stock_set { STOCK_SET_LENGTH, STOCK_SET_MTIME, STOCK_SET_ETAG, STOCK_SET_MODIFIED, STOCK_SET_RANGES } stock_set;

/* A note whose value is an array of texts, which are parts of a file's name: mod_mime tells mod_negotiation by it what it does not know. In
 * messages it is a text, with slashes between the parts. */
#define STOCK_LIST_NOTE "ap-mime-exceptions-list"

/* What a module has done to its request, besides what is in its twin. The server does the same when it is told: with the next question that
 * sees it, or when the module returns. */
typedef enum stock_change {
    STOCK_SET, /* a table */
    STOCK_ADD,
    STOCK_MERGE,
    STOCK_UNSET,
    STOCK_CLEAR,
    STOCK_SET_TYPE,     /* ap_set_content_type_ex */
    STOCK_ADD_OWN,      /* one of the module's own output filters */
    STOCK_ADD_MADE,     /* the same, which is not registered: its record, its context, its type and whether it begins */
    STOCK_REMOVE_FILTER /* the one that runs */
} stock_change;

/* What is in a brigade. From the server: the number of the first, the count, and a kind and a length (-1: unknown) of each. From a module: a
 * kind each, and STOCK_BUCKETS_END; with data a number, a start and a length, with signs the same, with bytes these. */
typedef enum stock_bucket {
    STOCK_BUCKETS_END,
    STOCK_BUCKET_DATA,
    STOCK_BUCKET_SIGN, /* without bytes */
    STOCK_BUCKET_EOS,
    STOCK_BUCKET_FLUSH,
    STOCK_BUCKET_BYTES
} stock_bucket;

/* What stock_run returns if there is no answer to read: the result, and these. An address is larger. */
enum { STOCK_POOL_HELD = 1 << 16 /* the request's end matters to the module */, STOCK_REMEMBERS = 1 << 17 /* its hooks see of one another, from request to request */ };

/* Added to the level: the answer is to end with what the hook has looked at: whether it would decline again for the same, and words. */
enum { STOCK_WATCHED = 1 << 16 };

/* ------------------------------------------------------------------------------------------------------------------ hooks */

/* Hooks of requests: name, and what of the request they may change besides what all may (see below). */
#define STOCK_REQUEST_HOOKS(X)                                                                                                              \
    X(post_read_request, STOCK_CHANGES_NAME)                                                                                                \
    X(translate_name, STOCK_CHANGES_NAME)                                                                                                   \
    X(map_to_storage, STOCK_CHANGES_NAME)                                                                                                   \
    X(header_parser, STOCK_CHANGES_NAME)                                                                                                    \
    X(type_checker, 0)                                                                                                                      \
    X(fixups, 0)                                                                                                                            \
    X(access_checker, 0)                                                                                                                    \
    X(handler, 0)                                                                                                                           \
    X(log_transaction, 0)
/* The same of those that are registered with a type. */
#define STOCK_ACCESS_HOOKS(X)                                                                                                               \
    X(check_access, 0) X(check_access_ex, 0) X(check_authn, STOCK_CHANGES_USER) X(check_authz, 0)
/* Those that get a text besides. */
#define STOCK_TEXT_HOOKS(X) X(note_auth_failure, 0)
/* Those that return nothing. */
#define STOCK_VOID_HOOKS(X) X(insert_filter, 0) X(insert_error_filter, 0)
#define STOCK_SERVER_HOOKS(X) X(pre_config, 0) X(check_config, 0) X(open_logs, 0) X(post_config, 0) X(child_init, 0) X(optional_fn_retrieve, 0)
#define STOCK_HOOK_(name, changes) STOCK_HOOK_##name,
typedef enum stock_hook {
    STOCK_REQUEST_HOOKS(STOCK_HOOK_) STOCK_ACCESS_HOOKS(STOCK_HOOK_) STOCK_VOID_HOOKS(STOCK_HOOK_) STOCK_TEXT_HOOKS(STOCK_HOOK_)
    STOCK_SERVER_HOOKS(STOCK_HOOK_) STOCK_HOOK_COUNT
} stock_hook;

/* ---------------------------------------------------------------------------------------------------------------- requests */

/* Who may change a field. The file's name and the user are settled before access is decided: later changes of them are not taken over.
 * In place: the server, or a module, also changes the text where it lies. */
enum { STOCK_READ = 0, STOCK_CHANGES_ALWAYS = 1, STOCK_CHANGES_NAME = 2, STOCK_CHANGES_USER = 4, STOCK_IN_PLACE = 8 };

/* Texts of request_rec: those that are changed in place, and the others. */
#define STOCK_TEXTS_IN_PLACE(X)                                                                                                             \
    X(user, STOCK_CHANGES_USER | STOCK_IN_PLACE) X(uri, STOCK_CHANGES_NAME | STOCK_IN_PLACE) X(filename, STOCK_CHANGES_NAME | STOCK_IN_PLACE) \
    X(canonical_filename, STOCK_CHANGES_NAME | STOCK_IN_PLACE) X(path_info, STOCK_CHANGES_NAME | STOCK_IN_PLACE)                             \
    X(args, STOCK_CHANGES_NAME | STOCK_IN_PLACE) X(parsed_uri.path, STOCK_READ | STOCK_IN_PLACE) X(parsed_uri.query, STOCK_READ | STOCK_IN_PLACE)
#define STOCK_TEXTS_CONSTANT(X)                                                                                                             \
    X(the_request, STOCK_READ) X(protocol, STOCK_READ) X(hostname, STOCK_READ) X(status_line, STOCK_CHANGES_ALWAYS) X(method, STOCK_READ)    \
    X(range, STOCK_READ) X(content_type, STOCK_CHANGES_ALWAYS) X(handler, STOCK_CHANGES_ALWAYS) X(content_encoding, STOCK_CHANGES_ALWAYS)    \
    X(vlist_validator, STOCK_CHANGES_ALWAYS) X(ap_auth_type, STOCK_CHANGES_USER) X(unparsed_uri, STOCK_READ)                                 \
    X(useragent_ip, STOCK_READ) X(useragent_host, STOCK_READ) X(log_id, STOCK_READ)                                                         \
    X(parsed_uri.scheme, STOCK_READ) X(parsed_uri.hostinfo, STOCK_READ) X(parsed_uri.user, STOCK_READ) X(parsed_uri.password, STOCK_READ)    \
    X(parsed_uri.hostname, STOCK_READ) X(parsed_uri.port_str, STOCK_READ) X(parsed_uri.fragment, STOCK_READ)
#define STOCK_TEXTS(X) STOCK_TEXTS_IN_PLACE(X) STOCK_TEXTS_CONSTANT(X)

/* Its numbers. */
#define STOCK_NUMBERS(X)                                                                                                                    \
    X(assbackwards, STOCK_READ) X(proxyreq, STOCK_READ) X(header_only, STOCK_READ) X(proto_num, STOCK_READ) X(request_time, STOCK_READ)      \
    X(status, STOCK_CHANGES_ALWAYS) X(method_number, STOCK_READ) X(allowed, STOCK_CHANGES_ALWAYS) X(sent_bodyct, STOCK_READ)                 \
    X(bytes_sent, STOCK_READ) X(mtime, STOCK_CHANGES_ALWAYS) X(clength, STOCK_READ) X(chunked, STOCK_READ) X(read_body, STOCK_READ)          \
    X(read_chunked, STOCK_READ) X(expecting_100, STOCK_READ) X(remaining, STOCK_READ) X(read_length, STOCK_READ)                             \
    X(used_path_info, STOCK_CHANGES_ALWAYS) X(eos_sent, STOCK_READ) X(no_cache, STOCK_CHANGES_ALWAYS)                                        \
    X(no_local_copy, STOCK_CHANGES_ALWAYS) X(double_reverse, STOCK_READ) X(bnotes, STOCK_READ) X(parsed_uri.port, STOCK_READ)                \
    X(finfo.valid, STOCK_READ) X(finfo.protection, STOCK_READ) X(finfo.filetype, STOCK_READ) X(finfo.user, STOCK_READ)                       \
    X(finfo.group, STOCK_READ) X(finfo.inode, STOCK_READ) X(finfo.device, STOCK_READ) X(finfo.nlink, STOCK_READ) X(finfo.size, STOCK_READ)   \
    X(finfo.csize, STOCK_READ) X(finfo.atime, STOCK_READ) X(finfo.mtime, STOCK_READ) X(finfo.ctime, STOCK_READ)

/* Its tables, STOCK_TABLES of them. */
#define STOCK_TABLE_LIST(X)                                                                                                                 \
    X(headers_in) X(headers_out) X(err_headers_out) X(subprocess_env) X(notes) X(trailers_in) X(trailers_out)

typedef struct stock_field {
    uint16_t offset, size, changes;
} stock_field;
#define STOCK_FIELD_(name, changes) { offsetof(request_rec, name), sizeof(((request_rec *)0)->name), changes },
#define STOCK_COUNT_(name, changes) +1
enum {
    STOCK_TEXT_COUNT = 0 STOCK_TEXTS(STOCK_COUNT_),
    STOCK_IN_PLACE_COUNT = 0 STOCK_TEXTS_IN_PLACE(STOCK_COUNT_), /* the first ones */
    STOCK_NUMBER_COUNT = 0 STOCK_NUMBERS(STOCK_COUNT_)
};
_Static_assert(STOCK_TEXT_COUNT < 62, "texts are told by the bits of a number");

/* A bit of the mask of what has changed, above those of texts. */
#define STOCK_LANGUAGES_CHANGED ((uint64_t)1 << 62)

static inline uint64_t stock_number_of(const void *record, const stock_field *f) {
    uint64_t value = 0;
    memcpy(&value, (const char *)record + f->offset, f->size);
    return value;
}

static inline void stock_set_number(void *record, const stock_field *f, uint64_t value) {
    memcpy((char *)record + f->offset, &value, f->size);
}

static inline char **stock_text_of(void *record, const stock_field *f) {
    return (char **)(void *)((char *)record + f->offset);
}

/* ---------------------------------------------------------------------------------------------------------------- messages */

/* A message that is written. Begin with stock_pack_begin, end with stock_pack_end. */
typedef struct stock_pack {
    char *bytes;
    size_t length, room;
    int failed; /* no memory, or longer than STOCK_LARGEST */
    char first[1024];
} stock_pack;

static inline void stock_pack_begin(stock_pack *p) {
    p->bytes = p->first;
    p->length = 0;
    p->room = sizeof p->first;
    p->failed = 0;
}

static inline void stock_pack_end(stock_pack *p) {
    if (p->bytes != p->first)
        free(p->bytes);
    stock_pack_begin(p);
}

/* Room for `size` bytes more; NULL if there is none. */
static inline char *stock_pack_room(stock_pack *p, size_t size) {
    if (size > p->room - p->length) {
        size_t room = 2 * (p->length + size);
        char *bytes = size > STOCK_LARGEST || p->length + size > STOCK_LARGEST ? NULL : (char *)malloc(room);

        if (!bytes) {
            p->failed = 1;
            return NULL;
        }
        memcpy(bytes, p->bytes, p->length);
        if (p->bytes != p->first)
            free(p->bytes);
        p->bytes = bytes;
        p->room = room;
    }
    p->length += size;
    return p->bytes + p->length - size;
}

static inline void stock_put(stock_pack *p, uint64_t number) {
    char *at = stock_pack_room(p, 8);

    if (at)
        memcpy(at, &number, 8);
}

static inline void stock_put_bytes(stock_pack *p, const void *bytes, size_t length) {
    size_t room = (length + 8) & ~(size_t)7;
    char *at;

    stock_put(p, bytes ? length + 1 : 0);
    if (!bytes || length > STOCK_LARGEST || !(at = stock_pack_room(p, room))) {
        p->failed |= bytes != NULL;
        return;
    }
    memset(at + room - 8, 0, 8);
    memcpy(at, bytes, length);
}

static inline void stock_put_text(stock_pack *p, const char *text) {
    stock_put_bytes(p, text, text ? strlen(text) : 0);
}

/* A message that is read. What does not hold sets `bad`, and all further items are 0 and NULL. */
typedef struct stock_unpack {
    const char *at;
    size_t left;
    int bad;
} stock_unpack;

static inline uint64_t stock_get(stock_unpack *u) {
    uint64_t number;

    if (u->left < 8) {
        u->bad = 1;
        u->left = 0;
        return 0;
    }
    memcpy(&number, u->at, 8);
    u->at += 8;
    u->left -= 8;
    return number;
}

/* A text in the message; its length may be asked for. It ends with a NUL there. */
static inline const char *stock_get_bytes(stock_unpack *u, size_t *length) {
    uint64_t size = stock_get(u);
    const char *bytes = u->at;
    size_t room;

    if (length)
        *length = size ? size - 1 : 0;
    if (size == 0)
        return NULL;
    if (size > STOCK_LARGEST || (room = (size + 7) & ~(size_t)7) > u->left || bytes[size - 1] != 0) {
        u->bad = 1;
        u->left = 0;
        if (length)
            *length = 0;
        return NULL;
    }
    u->at += room;
    u->left -= room;
    return bytes;
}

/* The same, where bytes in the middle of a text that are 0 are wrong. */
static inline const char *stock_get_text(stock_unpack *u) {
    size_t length;
    const char *text = stock_get_bytes(u, &length);

    if (text && strlen(text) != length) {
        u->bad = 1;
        u->left = 0;
        return NULL;
    }
    return text;
}

#endif
