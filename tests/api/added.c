/* Code that comes to a living domain, what a domain uses, and limits, from C. */
#define _GNU_SOURCE
#include <pthread.h>
#include <ringfence.h>
#include <stdint.h>
#include <string.h>

#include "check.h"

static void nothing(void) {}

static rf_domain *own;
static rf_module *plugin;
static rf_status nested;

/* What a domain looks symbols up with. */
static void *host_find(const char *at) {
    char name[64];
    if (rf_memory_read_string(own, at, name, sizeof name, NULL) != RF_OK)
        return NULL;
    if (strcmp(name, "remove") == 0) {
        nested = rf_domain_remove_module(own, "plug");
        return NULL;
    }
    return rf_domain_find_symbol(own, NULL, name);
}

static int counter(rf_domain *d) {
    int value = 0;
    CHECK_STATUS(rf_memory_read(d, rf_domain_find_symbol(d, NULL, "counter"), &value, sizeof value), RF_OK);
    return value;
}

static long by_name(rf_domain *d, const char *name) {
    rf_value r = { RF_TYPE_I64, { 0 } };
    rf_function *f = NULL;
    CHECK_STATUS(rf_function_create_in(d, "plug", "call_by_name", &f), RF_OK);
    char *text = rf_memory_alloc(d, 64);
    CHECK_STATUS(rf_memory_write(d, text, name, strlen(name) + 1), RF_OK);
    rf_value a[] = { rf_value_ptr(text), rf_value_i32(20), rf_value_i32(22) };
    CHECK_STATUS(rf_function_call(f, a, 3, &r), RF_OK);
    CHECK_STATUS(rf_memory_free(d, text), RF_OK);
    CHECK_STATUS(rf_function_destroy(f), RF_OK);
    return (long)r.as.i64;
}

static int32_t doubled(int32_t n) { return (int32_t)((uint32_t)n * 2); }

/* Host functions as pointers for the domain's code: those that no module needs too, if it is extensible. */
static void pointers(rf_module *module, rf_domain_options o) {
    rf_domain *d = NULL;
    rf_import imports[6];
    memcpy(imports, o.imports, 5 * sizeof *imports);
    imports[5] = (rf_import)RF_IMPORT_INIT(int32_t, doubled, (int32_t), doubled);
    o.imports = imports, o.import_count = 6;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    void *f = rf_import_address(d, "doubled");
    CHECK(f != NULL && rf_memory_contains(d, f, 32));
    CHECK(rf_import_address(d, "host_add") != NULL && rf_import_address(d, "host_add") != f);
    for (int i = 0; i < 2; i++) {
        rf_value r = { RF_TYPE_I32, { 0 } };
        rf_value a[] = { rf_value_ptr(f), rf_value_i32(21) };
        CHECK_STATUS(rf_domain_call(d, "apply", a, 2, &r), RF_OK);
        CHECK(r.as.i32 == 42);
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
    }
    CHECK(rf_import_address(d, "nobody") == NULL && rf_error()->status == RF_ERROR_NO_FUNCTION);
    CHECK(rf_import_address(NULL, "doubled") == NULL && rf_error()->status == RF_ERROR_HANDLE);
    CHECK(rf_import_address(d, NULL) == NULL && rf_error()->status == RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    o.extensible = 0;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    CHECK(rf_import_address(d, "doubled") == NULL && rf_import_address(d, "host_add") != NULL);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

/* Whole modules. */
static void modules(rf_module *module, rf_domain_options o, const char *path) {
    rf_module *again = NULL;
    rf_domain *d = NULL;
    CHECK_STATUS(rf_module_create(path, 0, &plugin), RF_OK);
    CHECK_STATUS(rf_module_create(path, 0, &again), RF_OK);
    o.extensible = 0;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    CHECK_STATUS(rf_domain_add_module(d, "plug", plugin), RF_ERROR_IMPORT);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    o.extensible = 1, o.module_limit = 4096;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    CHECK_STATUS(rf_domain_add_module(d, "plug", plugin), RF_ERROR_LIMIT);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    o.module_limit = 0;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    own = d;

    CHECK_STATUS(rf_domain_add_module(d, "plug", plugin), RF_OK);
    CHECK(counter(d) == 107);
    rf_function *f = NULL, *g = NULL;
    rf_value r = { RF_TYPE_I64, { 0 } };
    CHECK_STATUS(rf_function_create_in(d, "plug", "plugged", &f), RF_OK);
    CHECK_STATUS(rf_function_call(f, NULL, 0, &r), RF_OK);
    CHECK(r.as.i64 == 108 * 1000 + 41 + 6);
    CHECK_STATUS(rf_domain_call(d, "plugged", NULL, 0, &r), RF_OK);
    CHECK(r.as.i64 == 109 * 1000 + 42 + 7);
    CHECK(by_name(d, "add") == 42 && by_name(d, "nobody") == -1);
    CHECK(by_name(d, "remove") == -1 && nested == RF_ERROR_BUSY);
    CHECK(rf_domain_find_symbol(d, "plug", "plugged") == rf_function_address(f));
    rf_usage u = RF_USAGE_INIT;
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.modules > 0);

    CHECK_STATUS(rf_domain_add_module(d, "plug", again), RF_ERROR_EXISTS);
    CHECK_STATUS(rf_domain_add_module(d, "other", plugin), RF_ERROR_EXISTS);
    CHECK_STATUS(rf_domain_add_module(d, "other", again), RF_OK);
    CHECK_STATUS(rf_domain_remove_module(d, "other"), RF_OK);
    CHECK_STATUS(rf_domain_add_module(d, NULL, again), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_add_module(d, "x", NULL), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_add_module(NULL, "x", again), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_remove_module(d, "nobody"), RF_ERROR_NO_OBJECT);
    CHECK_STATUS(rf_domain_remove_module(d, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_remove_module(NULL, "plug"), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_function_create_in(d, "nobody", "plugged", &g), RF_ERROR_NO_OBJECT);
    CHECK_STATUS(rf_function_create_in(d, "plug", "nobody", &g), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_function_create_in(d, NULL, "plugged", &g), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_function_create_in(d, "plug", "plugged", NULL), RF_ERROR_ARGUMENT);
    CHECK(rf_domain_find_symbol(d, "plug", "counter") == NULL && rf_error()->status == RF_ERROR_NO_OBJECT);
    CHECK(g == NULL);
    CHECK_STATUS(rf_domain_checkpoint(d), RF_ERROR_SNAPSHOT);

    CHECK_STATUS(rf_domain_remove_module(d, "plug"), RF_OK);
    CHECK(counter(d) == -1);
    CHECK_STATUS(rf_function_call(f, NULL, 0, &r), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_function_destroy(f), RF_OK);
    CHECK_STATUS(rf_domain_remove_module(d, "plug"), RF_ERROR_NO_OBJECT);
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.modules == 0);
    CHECK_STATUS(rf_domain_add_module(d, "plug", plugin), RF_OK);
    CHECK_STATUS(rf_module_destroy(plugin), RF_OK);
    CHECK_STATUS(rf_domain_reset(d), RF_OK);
    CHECK_STATUS(rf_domain_call(d, "plugged", NULL, 0, &r), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_module_destroy(again), RF_OK);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

/* marker; leal (%rdi,%rsi), %eax; ret */
static const unsigned char sum[] = { 0x0F, 0x1F, 0x84, 0x00, 0xFF, 0xFF, 0x9A, 0x62, 0x8D, 0x04, 0x37, 0xC3 };
static const unsigned char bad[] = { 0x0F, 0x05, 0xC3 };

struct hits {
    int count;
    rf_limit_hit last;
    uint64_t answer;
};

static uint64_t on_limit(const rf_limit_hit *hit, void *context) {
    struct hits *hits = context;
    hits->count++;
    hits->last = *hit;
    return hits->answer;
}

static void *elsewhere(void *f) {
    rf_value a[] = { rf_value_i32(2), rf_value_i32(3) };
    return (void *)(intptr_t)rf_function_call(f, a, 2, NULL);
}

/* How many calls, and how many threads. */
static void calls_and_threads(rf_module *module, rf_domain_options o, struct hits *hits) {
    rf_domain *d = NULL;
    rf_function *f = NULL;
    rf_usage u = RF_USAGE_INIT;
    rf_value a[] = { rf_value_i32(2), rf_value_i32(3) };
    o.max_lanes = 64;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_ERROR_ARGUMENT);
    o.max_lanes = 1, o.call_limit = 3, o.time_limit = 0;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    CHECK_STATUS(rf_function_create(d, "add", &f), RF_OK);
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    hits->count = 0, hits->answer = 0;
    for (uint64_t i = u.calls; i < 3; i++)
        CHECK_STATUS(rf_function_call(f, a, 2, NULL), RF_OK);
    CHECK_STATUS(rf_function_call(f, a, 2, NULL), RF_ERROR_LIMIT);
    CHECK(strstr(rf_error()->message, "3 calls") != NULL);
    CHECK(hits->count == 1 && hits->last.what == RF_LIMIT_CALLS && hits->last.used == 3 && hits->last.limit == 3);
    CHECK(hits->last.domain == d);
    CHECK_STATUS(rf_domain_state(d), RF_OK);
    hits->answer = 100;
    CHECK_STATUS(rf_function_call(f, a, 2, NULL), RF_OK);
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(hits->count == 2 && u.calls == 4);

    pthread_t thread;
    void *status = NULL;
    hits->answer = 0;
    CHECK(pthread_create(&thread, NULL, elsewhere, f) == 0 && pthread_join(thread, &status) == 0);
    CHECK((intptr_t)status == RF_ERROR_LIMIT && hits->count == 3 && hits->last.what == RF_LIMIT_LANES && hits->last.limit == 1);
    hits->answer = 2;
    CHECK(pthread_create(&thread, NULL, elsewhere, f) == 0 && pthread_join(thread, &status) == 0);
    CHECK((intptr_t)status == RF_OK && hits->count == 4);
    CHECK_STATUS(rf_function_destroy(f), RF_OK);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

/* A function of the program's for limits. */
static void limits(rf_module *module, rf_domain_options o) {
    struct hits hits = { 0, { 0 }, 0 };
    rf_domain *d = NULL;
    o.on_limit = on_limit, o.on_limit_context = &hits;
    o.memory_limit = 1 << 19, o.fault_limit = 1, o.time_limit = 5000000;
    o.data_stack = o.control_stack = 1 << 16;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    CHECK(rf_memory_alloc(d, 1 << 20) == NULL && rf_error()->status == RF_ERROR_LIMIT);
    CHECK(hits.count == 1 && hits.last.what == RF_LIMIT_MEMORY && hits.last.domain == d);
    CHECK(hits.last.wanted == 1 << 20 && hits.last.limit == 1 << 19);
    hits.answer = 1 << 22;
    void *at = rf_memory_alloc(d, 1 << 20);
    CHECK(at != NULL && hits.count == 2);
    CHECK(rf_memory_alloc(d, 1 << 20) != NULL && hits.count == 2);

    hits.answer = 0;
    CHECK_STATUS(rf_domain_call(d, "spin", NULL, 0, NULL), RF_FAULT_TIME);
    CHECK(hits.count == 3 && hits.last.what == RF_LIMIT_CALL_TIME && hits.last.limit == 5000000);
    CHECK_STATUS(rf_domain_reset(d), RF_ERROR_LIMIT);
    CHECK(hits.count == 4 && hits.last.what == RF_LIMIT_FAULTS && hits.last.used == 1 && hits.last.limit == 1);
    CHECK_STATUS(rf_domain_state(d), RF_ERROR_FAULTED);
    hits.answer = 2;
    CHECK_STATUS(rf_domain_reset(d), RF_OK);
    CHECK(hits.count == 5);
    hits.answer = 0;
    CHECK(rf_memory_alloc(d, 1 << 20) == NULL && hits.count == 6 && hits.last.limit == 1 << 19);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    calls_and_threads(module, o, &hits);
}

/* Single functions. */
static void code(rf_module *module, rf_domain_options o) {
    o.fault_limit = 2, o.code_limit = UINT64_MAX;
    rf_domain *d = NULL;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_ERROR_ARGUMENT);
    o.code_limit = 4096;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);

    rf_function *f = NULL, *g = NULL;
    CHECK_STATUS(rf_code_add(d, "sum", sum, sizeof sum, 0, &f), RF_OK);
    rf_value r = { RF_TYPE_I32, { 0 } };
    rf_value a[] = { rf_value_i32(2), rf_value_i32(3) };
    CHECK_STATUS(rf_function_call(f, a, 2, &r), RF_OK);
    CHECK(r.as.i32 == 5);
    CHECK_STATUS(rf_domain_call_address(d, rf_function_address(f), a, 2, &r), RF_OK);
    CHECK_STATUS(rf_code_find(d, "sum", &g), RF_OK);
    CHECK(rf_function_address(g) == rf_function_address(f));
    CHECK_STATUS(rf_function_destroy(g), RF_OK);

    CHECK_STATUS(rf_code_add(d, "sum", sum, sizeof sum, 0, &g), RF_ERROR_EXISTS);
    CHECK_STATUS(rf_code_add(d, "add", sum, sizeof sum, 0, &g), RF_ERROR_EXISTS);
    CHECK_STATUS(rf_code_add(d, "bad", bad, sizeof bad, 0, &g), RF_ERROR_REJECTED);
    CHECK_STATUS(rf_code_add(d, "at", sum, sizeof sum, 3, &g), RF_ERROR_REJECTED);
    CHECK_STATUS(rf_code_add(d, "at", sum, sizeof sum, SIZE_MAX, &g), RF_ERROR_REJECTED);
    CHECK_STATUS(rf_code_add(d, "none", sum, 0, 0, &g), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_code_add(d, "null", NULL, 4, 0, &g), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_code_add(d, NULL, sum, sizeof sum, 0, &g), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_code_add(d, "x", sum, sizeof sum, 0, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_code_add(d, "x", sum, SIZE_MAX, 0, &g), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_code_add(NULL, "x", sum, sizeof sum, 0, &g), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_code_find(d, "nobody", &g), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_code_remove(d, "nobody"), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_code_remove(d, "add"), RF_ERROR_NO_FUNCTION);
    CHECK(g == NULL);
    static unsigned char large[8192];
    memset(large, 0xCC, sizeof large);
    CHECK_STATUS(rf_code_add(d, "large", large, sizeof large, 0, &g), RF_ERROR_LIMIT);

    rf_usage u = RF_USAGE_INIT;
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.size == sizeof u && u.calls == 2 && u.code == 64 && u.faults == 0 && u.lanes == 1 && u.active == 0);
    CHECK_STATUS(rf_code_remove(d, "sum"), RF_OK);
    CHECK_STATUS(rf_function_call(f, a, 2, &r), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_domain_state(d), RF_OK);
    CHECK_STATUS(rf_function_destroy(f), RF_OK);

    rf_value wild = rf_value_ptr((void *)(uintptr_t)1);
    for (int i = 0; i < 2; i++) {
        CHECK(rf_domain_call(d, "wild_read", &wild, 1, NULL) != RF_OK);
        CHECK_STATUS(rf_domain_reset(d), i == 0 ? RF_OK : RF_ERROR_LIMIT);
    }
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.faults == 2 && u.resets == 1 && u.code == 0);
    u.size = 16, u.code = 99;
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.code == 99);
    u.size = 3;
    CHECK_STATUS(rf_domain_usage(d, &u), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_usage(d, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_usage(NULL, &u), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return fprintf(stderr, "usage: link MODULE PLUGIN\n"), 2;
    rf_import imports[] = { RF_IMPORT_INIT(void, host_add, (void), nothing), RF_IMPORT_INIT(void, host_mix, (void), nothing),
                            RF_IMPORT_INIT(void, host_eight, (void), nothing), RF_IMPORT_INIT(void, host_note, (void), nothing),
                            RF_IMPORT_INIT(void *, host_find, (const char *), host_find) };
    rf_module *module = NULL;
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 5, o.extensible = 1;
    if (HAS(CODE))
        code(module, o);
    o.code_limit = 4096;
    if (HAS(MODULES)) {
        pointers(module, o);
        modules(module, o, argv[2]);
    }
    if (HAS(LIMITS) && HAS(ON_LIMIT) && HAS(FAULTS))
        limits(module, o);
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("added");
}
