/* ringfence/bound.h - what the C that `ringfence bind` writes stands on: a library whose functions run in a domain,
 * called by their own names and types from a program that knows nothing of domains. docs/bind.md has the whole.
 *
 *     rfb_open(&sqlite3_fence, "sqlite3.rf", &options);   // or nothing: the first call opens what the binding names
 *     sqlite3_open(":memory:", &db);                      // as ever
 *     rfb_reset(&sqlite3_fence);                          // after a fault: on from the start
 *
 * A program uses rfb_open, rfb_reset, rfb_close, rfb_revoke and the library's `on_failure`; the rest is for the source
 * that bind has written. Threads: as the library's own, whose calls are passed on. */
#ifndef RINGFENCE_BOUND_H
#define RINGFENCE_BOUND_H

#include <ringfence.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    RFB_DEEPEST = 100, /* calls of a thread, one in the other: as many as a domain allows */
    RFB_SMALL = 4096,  /* pointers this close to 0 are numbers, such as SQLITE_TRANSIENT */
    RFB_NESTED = 4     /* structs in structs that are followed */
};
#define RFB_LARGEST ((size_t)1 << 30) /* bytes of one copy */
#define RFB_TEXT ((size_t)-1)         /* in place of a size: up to the NUL */
#define RFB_LOCAL static __attribute__((unused))

/* A pointer in a struct that host and domain have each their own of. All else in there is copied as it is. */
enum rfb_field_kind { RFB_FIELD_TWIN, RFB_FIELD_HOOK, RFB_FIELD_TEXT };
typedef struct rfb_field {
    size_t offset;
    enum rfb_field_kind kind;
    unsigned index; /* of the struct, or of the type of function */
} rfb_field;

typedef struct rfb_record {
    const char *name;
    size_t size;
    const rfb_field *fields;
    size_t count;
} rfb_record;

/* A type of host functions, of which the domain may have so many at a time. `refuse` stands for functions of the domain,
 * which a program cannot call as they are. */
typedef struct rfb_hook {
    const char *name;
    rf_callback call;
    void (*refuse)(void);
    unsigned first, loans;
} rfb_hook;

typedef struct rfb_library {
    const char *name, *path;       /* of the module, for the first call */
    const char *const *prototypes; /* of its functions */
    void **functions;              /* the same, once they have been called */
    size_t function_count;
    const rfb_record *records;
    const rfb_hook *hooks;
    size_t hook_count, loan_count;
    const char *layout_symbol;       /* sizes and offsets in the module, if it has them */
    const size_t *layout;            /* the same as the program was compiled */
    const char *const *layout_names; /* what each of them is */
    size_t layout_count;
    /* Is told of each failure, before the call returns its failure value; may jump. NULL: a line on standard error. */
    void (*on_failure)(const rf_error_info *error);
    struct rfb_state *state;
    pthread_mutex_t lock;
    char message[256];
} rfb_library;

/* What lies on both sides, or was made on one for the other. */
enum rfb_kind { RFB_GIVEN, RFB_KEPT, RFB_TWIN, RFB_IN, RFB_OUT, RFB_SYNC };
typedef struct rfb_pair {
    struct rfb_pair *next;
    enum rfb_kind kind;
    void *host, *domain;
    size_t size;
    const void *owner; /* goes when this handle ends */
    unsigned record;
    unsigned char *shown, *real; /* of twins: what each side had last */
} rfb_pair;

typedef struct rfb_loan {
    rfb_library *library;
    void (*function)(void);
    void *address;
} rfb_loan;

struct rfb_state {
    void *handle;
    rf_domain *domain;
    rfb_pair *pairs;
    void **users; /* what the program gave the library to get it back; the domain has the place in this list */
    size_t user_count, user_room;
    rfb_loan *loans;
};

/* A call that has begun. Those below the present stack were left by a jump. */
typedef struct rfb_level {
    uintptr_t at;
    rf_mark mark;
    rfb_library *library;
    rfb_pair *pairs;
} rfb_level;
static __thread __attribute__((unused)) rfb_level rfb_levels[RFB_DEEPEST];
static __thread __attribute__((unused)) unsigned rfb_depth;

/* Tells of a failure that is not the domain's. */
RFB_LOCAL __attribute__((format(printf, 3, 4))) rf_status rfb_fail(rfb_library *library, rf_status status, const char *format,
                                                                   ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(library->message, sizeof library->message, format, list);
    va_end(list);
    rf_error_info info;
    memset(&info, 0, sizeof info);
    info.size = sizeof info, info.status = status;
    info.message = info.public_message = library->message;
    if (library->on_failure)
        library->on_failure(&info);
    else
        fprintf(stderr, "%s: %s\n", library->name, info.message);
    return status;
}

RFB_LOCAL void rfb_free_pair(struct rfb_state *state, rfb_pair *pair) {
    if (pair->kind == RFB_GIVEN)
        free(pair->host);
    else if (pair->kind != RFB_SYNC && state)
        (void)rf_memory_free(state->domain, pair->domain);
    free(pair->shown);
    free(pair->real);
    free(pair);
}

/* Frees the list at `at` down to `until`. */
RFB_LOCAL void rfb_free_pairs(struct rfb_state *state, rfb_pair **at, rfb_pair *until) {
    while (*at != until) {
        rfb_pair *pair = *at;
        *at = pair->next;
        rfb_free_pair(state, pair);
    }
}

/* Ends what `owner`, a handle or a struct of the host's, owns; with `given` only the host's copies of what it gave. */
RFB_LOCAL void rfb_ends(rfb_library *library, const void *owner, int given) {
    struct rfb_state *state = library->state;
    if (!state || !owner)
        return;
    pthread_mutex_lock(&library->lock);
    for (rfb_pair **at = &state->pairs; *at;) {
        rfb_pair *pair = *at;
        if (given ? pair->owner == owner && pair->kind == RFB_GIVEN
                  : pair->owner == owner || (pair->kind == RFB_TWIN && pair->host == owner)) {
            *at = pair->next;
            rfb_free_pair(state, pair);
        } else
            at = &pair->next;
    }
    pthread_mutex_unlock(&library->lock);
}

/* Ends the domain and all that the program has of it: handles, strings. The next call opens it anew. */
RFB_LOCAL void rfb_close(rfb_library *library) {
    struct rfb_state *state = library->state;
    if (!state)
        return;
    rfb_free_pairs(state, &state->pairs, NULL);
    memset(library->functions, 0, library->function_count * sizeof *library->functions);
    (void)rf_dlclose(state->handle);
    free(state->users);
    free(state->loans);
    free(state);
    library->state = NULL;
}

/* Puts the domain back to its start, after a fault too. Handles, strings and host functions are gone then. */
RFB_LOCAL rf_status rfb_reset(rfb_library *library) {
    struct rfb_state *state = library->state;
    if (!state)
        return RF_OK;
    rfb_free_pairs(state, &state->pairs, NULL);
    for (size_t i = 0; i < library->loan_count; i++)
        state->loans[i].function = NULL;
    state->user_count = 0;
    return rf_domain_reset(state->domain);
}

/* Takes a host function back: calls of it fail from now on, and end the domain's call. */
RFB_LOCAL void rfb_revoke(rfb_library *library, void (*function)(void)) {
    struct rfb_state *state = library->state;
    for (size_t i = 0; state && i < library->loan_count; i++)
        if (state->loans[i].function == function)
            state->loans[i].function = NULL;
}

/* Compares the structs of the module with the program's, if the module tells them. */
RFB_LOCAL rf_status rfb_compare(rfb_library *library, rf_domain *domain) {
    size_t size = 0, there = 0;
    const void *at = rf_domain_find_object(domain, library->layout_symbol, &size);
    if (!at) {
        rf_error_clear();
        return RF_OK;
    }
    if (size != library->layout_count * sizeof there)
        return rfb_fail(library, RF_ERROR_FORMAT, "%s was built with another version of the header: it tells %zu sizes and offsets, not %zu",
                        library->path, size / sizeof there, library->layout_count);
    for (size_t i = 0; i < library->layout_count; i++) {
        rf_status status = rf_memory_read(domain, (const char *)at + i * sizeof there, &there, sizeof there);
        if (status != RF_OK)
            return status;
        if (there != library->layout[i])
            return rfb_fail(library, RF_ERROR_FORMAT, "%s was built with another header: %s is %zu there and %zu here",
                            library->path, library->layout_names[i], there, library->layout[i]);
    }
    return RF_OK;
}

/* Opens the module at `path` (NULL: as the binding names it) in place of what was open. `options` as for rf_domain_create,
 * or NULL. RF_ERROR_FORMAT: the module's structs are not those that the program was compiled with; the message names the
 * first. Other errors as for rf_dlopen_with; all are told to on_failure. */
RFB_LOCAL rf_status rfb_open(rfb_library *library, const char *path, const rf_domain_options *options) {
    rf_domain_options own = RF_DOMAIN_OPTIONS_INIT;
    if (options)
        own = *options;
    rfb_close(library);
    if (path)
        library->path = path;
    size_t loans = library->loan_count, given = own.import_count;
    struct rfb_state *state = (struct rfb_state *)calloc(1, sizeof *state);
    rf_import *imports = (rf_import *)calloc(given + loans + 1, sizeof *imports);
    char(*names)[64] = (char(*)[64])calloc(loans + 1, sizeof *names);
    if (state)
        state->loans = (rfb_loan *)calloc(loans + 1, sizeof *state->loans);
    rf_status status = RF_ERROR_LIMIT;
    if (state && imports && names && state->loans) {
        if (given)
            memcpy(imports, own.imports, given * sizeof *imports);
        for (size_t i = 0, hook = 0; i < loans; i++) {
            rfb_loan *loan = &state->loans[i];
            hook += i >= library->hooks[hook].first + library->hooks[hook].loans;
            loan->library = library;
            snprintf(names[i], sizeof names[i], "rfb_%zu", i);
            imports[given + i].name = names[i];
            imports[given + i].callback = library->hooks[hook].call;
            imports[given + i].context = loan;
        }
        own.imports = imports, own.import_count = given + loans;
        own.extensible = loans ? 1 : own.extensible;
        state->handle = rf_dlopen_with(library->path, 0, &own);
        state->domain = state->handle ? rf_dldomain(state->handle) : NULL;
        status = state->domain ? rfb_compare(library, state->domain) : RF_OK;
        for (size_t i = 0; state->domain && status == RF_OK && i < loans; i++) {
            state->loans[i].address = rf_import_address(state->domain, names[i]);
            if (!state->loans[i].address)
                status = rf_error()->status;
        }
    }
    if (state && state->domain && status == RF_OK) {
        library->state = state;
    } else {
        if (status != RF_ERROR_FORMAT && rf_error())
            status = rfb_fail(library, rf_error()->status, "%s", rf_error()->message);
        if (state && state->handle)
            (void)rf_dlclose(state->handle);
        if (state)
            free(state->loans);
        free(state);
    }
    free(imports);
    free(names);
    return status;
}

/* Before a call of function number `index` from the frame at `frame`: what to call, or NULL. */
RFB_LOCAL void *rfb_begin(rfb_library *library, unsigned index, const void *frame) {
    uintptr_t at = (uintptr_t)frame;
    while (rfb_depth && rfb_levels[rfb_depth - 1].at <= at) {
        rfb_level *left = &rfb_levels[--rfb_depth];
        (void)rf_call_unwind(left->mark);
        rfb_free_pairs(left->library->state, &left->pairs, NULL);
    }
    pthread_mutex_lock(&library->lock);
    rf_status status = library->state ? RF_OK : rfb_open(library, NULL, NULL);
    pthread_mutex_unlock(&library->lock);
    if (status != RF_OK)
        return NULL;
    if (rfb_depth == RFB_DEEPEST) {
        rfb_fail(library, RF_ERROR_NESTING, "%s: more than %d calls, one in the other", library->prototypes[index], RFB_DEEPEST);
        return NULL;
    }
    void *function = __atomic_load_n(&library->functions[index], __ATOMIC_ACQUIRE);
    if (!function) {
        function = rf_dlsym(library->state->handle, library->prototypes[index]);
        if (!function) {
            rfb_fail(library, rf_error()->status, "%s", rf_error()->message);
            return NULL;
        }
        __atomic_store_n(&library->functions[index], function, __ATOMIC_RELEASE);
    }
    rfb_level *level = &rfb_levels[rfb_depth++];
    level->at = at, level->mark = rf_call_mark(), level->library = library, level->pairs = NULL;
    return function;
}

/* What is in `pairs` under this address of the host's (or, with `domain`, of the domain's). */
RFB_LOCAL rfb_pair *rfb_find(rfb_library *library, enum rfb_kind kind, const void *address, int domain) {
    pthread_mutex_lock(&library->lock);
    rfb_pair *pair = library->state->pairs;
    while (pair && (pair->kind != kind || (domain ? pair->domain : pair->host) != address))
        pair = pair->next;
    pthread_mutex_unlock(&library->lock);
    return pair;
}

RFB_LOCAL rfb_pair *rfb_pair_add(rfb_library *library, int temporary, enum rfb_kind kind, void *host, void *domain, size_t size,
                                 const void *owner) {
    rfb_pair *pair = (rfb_pair *)calloc(1, sizeof *pair);
    if (!pair) {
        rfb_fail(library, RF_ERROR_LIMIT, "no memory for a pointer of a call");
        abort();
    }
    pair->kind = kind, pair->host = host, pair->domain = domain, pair->size = size, pair->owner = owner;
    if (temporary) {
        pair->next = rfb_levels[rfb_depth - 1].pairs;
        rfb_levels[rfb_depth - 1].pairs = pair;
        return pair;
    }
    pthread_mutex_lock(&library->lock);
    pair->next = library->state->pairs;
    library->state->pairs = pair;
    pthread_mutex_unlock(&library->lock);
    return pair;
}

/* An address as the domain knows it: of what the program has a copy of, or as it is. */
RFB_LOCAL void *rfb_address(rfb_library *library, const void *host) {
    rfb_pair *pair = host ? rfb_find(library, RFB_GIVEN, host, 0) : NULL;
    if (!pair && host)
        pair = rfb_find(library, RFB_TWIN, host, 0);
    return pair ? pair->domain : (void *)(uintptr_t)host;
}

/* `size` bytes of the host's in the domain: RFB_IN and RFB_OUT for this call, RFB_KEPT until `owner` ends. RFB_OUT with
 * `read`: what is there goes in, too. What lies in the domain, or is a copy from there, is passed as it is. */
RFB_LOCAL void *rfb_pass(rfb_library *library, enum rfb_kind kind, const void *host, size_t size, int read, const void *owner) {
    rf_domain *domain = library->state->domain;
    void *known = rfb_address(library, host);
    if (!host || known != host || rf_memory_contains(domain, host, 1))
        return known;
    if (size == RFB_TEXT)
        size = strlen((const char *)host) + 1;
    void *there = rf_memory_alloc(domain, size ? size : 1);
    if (!there || (read && size && rf_memory_write(domain, there, host, size) != RF_OK)) {
        rfb_fail(library, rf_error()->status, "%s", rf_error()->message);
        (void)rf_memory_free(domain, there);
        return NULL;
    }
    rfb_pair_add(library, kind != RFB_KEPT, kind, (void *)(uintptr_t)host, there, size, owner);
    return there;
}

/* `count` rows of `size` bytes each, by an array of pointers to them. */
RFB_LOCAL void *rfb_rows(rfb_library *library, enum rfb_kind kind, void *host, size_t count, size_t size) {
    void **rows = host ? (void **)calloc(count + 1, sizeof *rows) : NULL;
    for (size_t i = 0; rows && i < count; i++)
        rows[i] = rfb_pass(library, kind, ((void **)host)[i], size, kind == RFB_IN, NULL);
    void *there = rfb_pass(library, RFB_IN, rows, count * sizeof *rows, 1, NULL);
    free(rows);
    return there;
}

/* The host's own copy of what the domain has at `address`: `size` bytes, or a text. It stays until `owner` ends, and is
 * the same one as long as nothing has changed. Rows, arrays and data that functions return all come this way. */
RFB_LOCAL void *rfb_copy(rfb_library *library, const void *address, size_t size, const void *owner, int temporary) {
    rf_domain *domain = library->state->domain;
    if (!address)
        return NULL;
    int text = size == RFB_TEXT;
    size_t room = text ? 256 : size;
    char *to = NULL;
    rf_status status = RF_ERROR_TOO_LONG;
    while (room <= RFB_LARGEST) {
        free(to);
        to = (char *)malloc(room ? room : 1);
        status = !to ? RF_ERROR_LIMIT : text ? rf_memory_read_string(domain, address, to, room, &size) : rf_memory_read(domain, address, to, size);
        if (status != RF_ERROR_TOO_LONG || !text)
            break;
        room *= 4;
    }
    if (status != RF_OK) {
        free(to);
        rfb_fail(library, status, "%zu bytes that the library gives cannot be copied: %s", size, rf_status_name(status));
        return NULL;
    }
    size += (size_t)text;
    rfb_pair *before = temporary ? NULL : rfb_find(library, RFB_GIVEN, address, 1);
    if (before && before->owner == owner && before->size == size && memcmp(before->host, to, size) == 0) {
        free(to);
        return before->host;
    }
    rfb_pair_add(library, temporary, RFB_GIVEN, to, (void *)(uintptr_t)address, size, owner);
    return to;
}

/* An array of `count` texts (RFB_TEXT: up to NULL) as the host's own, for as long as a host function runs. */
RFB_LOCAL char **rfb_texts(rfb_library *library, const void *address, size_t count) {
    rf_domain *domain = library->state->domain;
    if (count == RFB_TEXT) {
        const void *one = address;
        for (count = 0; one && count < RFB_LARGEST / sizeof one; count += one != NULL)
            if (rf_memory_read(domain, (const char *)address + count * sizeof one, &one, sizeof one) != RF_OK)
                return NULL;
        count++;
    }
    char **list = (char **)rfb_copy(library, address, count * sizeof *list, NULL, 1);
    for (size_t i = 0; list && i < count; i++)
        list[i] = (char *)rfb_copy(library, list[i], RFB_TEXT, NULL, 1);
    return list;
}

/* A place in the host's `text` for a place in its copy in the domain. */
RFB_LOCAL void *rfb_within(const void *text, size_t size, const void *copy, const void *place) {
    size_t offset = (size_t)((const char *)place - (const char *)copy);
    return place && offset <= size ? (char *)(uintptr_t)text + offset : NULL;
}

/* What the program gives the library to get it back, as a number that means nothing in the domain. */
RFB_LOCAL void *rfb_user(rfb_library *library, const void *host) {
    struct rfb_state *state = library->state;
    if (!host)
        return NULL;
    pthread_mutex_lock(&library->lock);
    size_t i = 0;
    while (i < state->user_count && state->users[i] != host)
        i++;
    if (i == state->user_room) {
        size_t room = 2 * i + 16;
        void **more = (void **)realloc(state->users, room * sizeof *more);
        if (!more)
            abort();
        state->users = more, state->user_room = room;
    }
    state->users[i] = (void *)(uintptr_t)host;
    state->user_count += i == state->user_count;
    pthread_mutex_unlock(&library->lock);
    return (void *)(uintptr_t)(i + 1);
}

/* And back. What the domain has made up is NULL. */
RFB_LOCAL void *rfb_user_of(rfb_library *library, const void *number) {
    pthread_mutex_lock(&library->lock);
    size_t i = (size_t)(uintptr_t)number - 1;
    void *host = i < library->state->user_count ? library->state->users[i] : NULL;
    pthread_mutex_unlock(&library->lock);
    return host;
}

/* A pointer that the domain calls the host's `function` by. */
RFB_LOCAL void *rfb_lend(rfb_library *library, unsigned hook, void (*function)(void)) {
    uintptr_t number = (uintptr_t)function;
    if (number + RFB_SMALL < 2 * (uintptr_t)RFB_SMALL || rf_memory_contains(library->state->domain, (void *)number, 1))
        return (void *)number;
    pthread_mutex_lock(&library->lock);
    rfb_loan *loan = &library->state->loans[library->hooks[hook].first];
    rfb_loan *end = loan + library->hooks[hook].loans, *empty = NULL;
    for (; loan < end && loan->function != function; loan++)
        if (!empty && !loan->function)
            empty = loan;
    loan = loan < end ? loan : empty;
    if (loan)
        loan->function = function;
    pthread_mutex_unlock(&library->lock);
    if (!loan)
        rfb_fail(library, RF_ERROR_LIMIT, "%s: the library has %u host functions of this type, and no room for more (rfb_revoke)",
                 library->hooks[hook].name, library->hooks[hook].loans);
    return loan ? loan->address : NULL;
}

/* The host's function behind a pointer of the domain's; what is none of them is refused when it is called. */
RFB_LOCAL void (*rfb_lent(rfb_library *library, unsigned hook, const void *address))(void) {
    rfb_loan *loan = &library->state->loans[library->hooks[hook].first];
    for (unsigned i = 0; address && i < library->hooks[hook].loans; i++)
        if (loan[i].address == address && loan[i].function)
            return loan[i].function;
    return address ? library->hooks[hook].refuse : NULL;
}

/* The program has called a function of the domain's as if it were its own. */
RFB_LOCAL void rfb_refused(rfb_library *library, unsigned hook) {
    rfb_fail(library, RF_ERROR_NO_FUNCTION, "%s: a function in the domain cannot be called by its pointer", library->hooks[hook].name);
}

/* In a host function that the domain calls: the program's function, and where its temporaries begin. NULL: the call fails. */
RFB_LOCAL void (*rfb_enter(rf_caller *caller, const rfb_loan *loan, rfb_pair **mark))(void) {
    if (!loan->function || !rfb_depth)
        rf_caller_fail(caller, "a host function that was taken back was called");
    if (rfb_depth)
        *mark = rfb_levels[rfb_depth - 1].pairs;
    return rfb_depth ? loan->function : NULL;
}

#define RFB_WORD(struct_, offset) (*(void **)(void *)((unsigned char *)(struct_) + (offset)))

/* Shows the host what the domain has in a struct of both. */
RFB_LOCAL void rfb_show(rfb_library *library, rfb_pair *twin, int depth) {
    const rfb_record *record = &library->records[twin->record];
    unsigned char *now = (unsigned char *)malloc(2 * record->size), *shown = now + record->size;
    if (!now || rf_memory_read(library->state->domain, twin->domain, now, record->size) != RF_OK) {
        free(now);
        return;
    }
    memcpy(shown, now, record->size);
    for (size_t i = 0; i < record->count; i++) {
        const rfb_field *field = &record->fields[i];
        void *value = RFB_WORD(now, field->offset), *host = value;
        rfb_pair *other = field->kind == RFB_FIELD_TWIN && value ? rfb_find(library, RFB_TWIN, value, 1) : NULL;
        if (other && depth < RFB_NESTED)
            rfb_show(library, other, depth + 1);
        if (value == RFB_WORD(twin->real, field->offset))
            host = RFB_WORD(twin->shown, field->offset);
        else if (other)
            host = other->host;
        else if (field->kind == RFB_FIELD_HOOK)
            host = (void *)(uintptr_t)rfb_lent(library, field->index, value);
        else if (field->kind == RFB_FIELD_TEXT)
            host = rfb_copy(library, value, RFB_TEXT, twin->host, 0);
        RFB_WORD(shown, field->offset) = host;
    }
    memcpy(twin->real, now, record->size);
    memcpy(twin->shown, shown, record->size);
    memcpy(twin->host, shown, record->size);
    free(now);
}

/* The domain's own of a struct of the host's. `read`: with what the host has in it. */
RFB_LOCAL void *rfb_twin(rfb_library *library, unsigned number, void *host, int read, int depth) {
    const rfb_record *record = &library->records[number];
    rfb_pair *given = host ? rfb_find(library, RFB_GIVEN, host, 0) : NULL;
    if (!host || given || rf_memory_contains(library->state->domain, host, 1))
        return given ? given->domain : host;
    rfb_pair *twin = rfb_find(library, RFB_TWIN, host, 0);
    if (!twin) {
        void *there = rf_memory_alloc(library->state->domain, record->size);
        if (!there)
            return NULL;
        twin = rfb_pair_add(library, 0, RFB_TWIN, host, there, record->size, NULL);
        twin->record = number;
        twin->shown = (unsigned char *)calloc(1, record->size);
        twin->real = (unsigned char *)calloc(1, record->size);
        if (!twin->shown || !twin->real)
            abort();
    }
    if (read) {
        unsigned char *shown = twin->shown, *real = twin->real;
        for (size_t i = 0; i < record->count; i++) {
            const rfb_field *field = &record->fields[i];
            void *value = RFB_WORD(host, field->offset);
            void **to = &RFB_WORD(real, field->offset);
            if (field->kind == RFB_FIELD_TWIN && depth < RFB_NESTED)
                *to = rfb_twin(library, field->index, value, 1, depth + 1);
            else if (value == RFB_WORD(shown, field->offset))
                continue;
            else if (field->kind == RFB_FIELD_HOOK)
                *to = rfb_lend(library, field->index, (void (*)(void))(uintptr_t)value);
            else
                *to = rfb_pass(library, RFB_KEPT, value, RFB_TEXT, 1, host);
        }
        unsigned char *now = (unsigned char *)malloc(record->size);
        if (!now)
            abort();
        memcpy(now, host, record->size);
        for (size_t i = 0; i < record->count; i++)
            RFB_WORD(now, record->fields[i].offset) = RFB_WORD(real, record->fields[i].offset);
        (void)rf_memory_write(library->state->domain, twin->domain, now, record->size);
        memcpy(real, now, record->size);
        memcpy(shown, host, record->size);
        free(now);
    }
    rfb_pair_add(library, 1, RFB_SYNC, host, twin, 0, NULL);
    return twin->domain;
}

/* The host's own of a struct that the domain names, brought up to date; of the domain's own a copy, as rfb_copy makes. */
RFB_LOCAL void *rfb_twin_of(rfb_library *library, const void *address, size_t size, int temporary) {
    rfb_pair *twin = address ? rfb_find(library, RFB_TWIN, address, 1) : NULL;
    if (!twin)
        return rfb_copy(library, address, size, NULL, temporary);
    rfb_show(library, twin, 0);
    return twin->host;
}

/* Brings back what temporaries down to `until` were written to, and frees them. */
RFB_LOCAL void rfb_return(rfb_library *library, int good, rfb_pair *until) {
    rfb_pair **pairs = &rfb_levels[rfb_depth - 1].pairs;
    for (rfb_pair *pair = *pairs; good && pair != until; pair = pair->next) {
        if (pair->kind == RFB_SYNC)
            rfb_show(library, (rfb_pair *)pair->domain, 0);
        else if (pair->kind == RFB_OUT && rf_memory_read(library->state->domain, pair->domain, pair->host, pair->size) != RF_OK)
            memset(pair->host, 0, pair->size);
    }
    rfb_free_pairs(library->state, pairs, until);
}

/* After a call: 1 if it returned, 0 if it failed. */
RFB_LOCAL int rfb_end(rfb_library *library) {
    int good = rf_call_status() == RF_OK;
    rfb_return(library, good, NULL);
    rfb_depth--;
    if (!good) {
        const rf_error_info *error = rf_error();
        rfb_fail(library, error->status, "%s", error->message);
    }
    return good;
}

#ifdef __cplusplus
}
#endif
#endif
