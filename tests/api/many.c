/* Links between domains, snapshots, images and pools, from C. */
#include <ringfence.h>
#include <stdint.h>

#include "check.h"

static void nothing(void) {}
static const rf_import imports[] = { RF_IMPORT_INIT(void, host_mix, (void), nothing), RF_IMPORT_INIT(void, host_eight, (void), nothing),
                                     RF_IMPORT_INIT(void, host_note, (void), nothing), RF_IMPORT_INIT(void, host_add, (void), nothing) };
static const rf_slot slots[] = { { "host_add", 2, 0, 1, 0, RF_ON_FAILURE_RETURN, 1000 } };
static rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
static rf_module *module;

static long call(rf_domain *d, const char *name, int a, int b) {
    rf_value args[] = { rf_value_i32(a), rf_value_i32(b) }, result;
    result.type = RF_TYPE_I32;
    if (rf_domain_call(d, name, args, 2, &result) != RF_OK)
        return -1;
    return result.as.i32;
}

static long bump(rf_domain *d) {
    rf_value result;
    result.type = RF_TYPE_I64;
    return rf_domain_call(d, "bump", NULL, 0, &result) == RF_OK ? (long)result.as.i64 : -1;
}

static rf_domain *make(void) {
    rf_domain *d = NULL;
    CHECK_STATUS(rf_domain_create(module, &options, &d), RF_OK);
    return d;
}

static void links(void) {
    if (!HAS(GRANTS))
        return;
    rf_domain *a = make(), *b = make();
    /* call_host_add(x, y) is host_add(x, y) + 1 */
    CHECK(call(a, "call_host_add", 1, 2) == 1001);
    CHECK_STATUS(rf_domain_grant(a, "host_add", b, "add"), RF_OK);
    CHECK(call(a, "call_host_add", 1, 2) == 4);
    CHECK_STATUS(rf_domain_grant(a, "host_add", b, "divide"), RF_OK);
    CHECK(call(a, "call_host_add", 8, 2) == 5 && call(a, "call_host_add", 8, 0) == 1001);
    CHECK_STATUS(rf_domain_state(b), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_state(a), RF_OK);
    CHECK_STATUS(rf_domain_reset(b), RF_OK);
    CHECK(call(a, "call_host_add", 8, 2) == 5);
    CHECK_STATUS(rf_domain_revoke(a, "host_add"), RF_OK);
    CHECK(call(a, "call_host_add", 8, 2) == 1001);
    CHECK_STATUS(rf_domain_grant(a, "host_add", b, "add"), RF_OK);
    CHECK_STATUS(rf_domain_revoke_all(b), RF_OK);
    CHECK(call(a, "call_host_add", 8, 2) == 1001);
    CHECK_STATUS(rf_domain_grant(a, "host_mix", b, "add"), RF_ERROR_IMPORT);
    CHECK_STATUS(rf_domain_grant(a, "host_add", b, "no_such"), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_domain_grant(a, "host_add", b, "counter"), RF_ERROR_NO_FUNCTION);
    CHECK_STATUS(rf_domain_grant(NULL, "host_add", b, "add"), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_grant(a, NULL, b, "add"), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_domain_revoke(a, "no_such"), RF_ERROR_IMPORT);
    CHECK_STATUS(rf_domain_grant(a, "host_add", b, "add"), RF_OK);
    CHECK_STATUS(rf_domain_destroy(b), RF_OK);
    CHECK(call(a, "call_host_add", 8, 2) == 1001);
    CHECK_STATUS(rf_domain_destroy(a), RF_OK);
    /* A domain that cannot ask what happened is ended rather than given a 0. */
    rf_slot tell = slots[0], wrong = slots[0];
    tell.on_failure = RF_ON_FAILURE_TELL;
    rf_domain_options o = options;
    o.slots = &tell;
    CHECK_STATUS(rf_domain_create(module, &o, &a), RF_OK);
    CHECK(call(a, "call_host_add", 1, 2) == -1);
    CHECK_STATUS(rf_domain_state(a), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_destroy(a), RF_OK);
    o.slots = &wrong, wrong.ints = 7;
    CHECK_STATUS(rf_domain_create(module, &o, &a), RF_ERROR_ARGUMENT);
    wrong.ints = 2, wrong.on_failure = (rf_on_failure)7;
    CHECK_STATUS(rf_domain_create(module, &o, &a), RF_ERROR_ARGUMENT);
    o.slots = NULL;
    CHECK_STATUS(rf_domain_create(module, &o, &a), RF_ERROR_ARGUMENT);
    rf_error_clear();
}

static int warm(rf_domain *d, void *context) {
    for (int i = 0; i < 5; i++)
        bump(d);
    return *(int *)context;
}

static int chance(rf_domain *d, void *context) {
    int run = ++*(int *)context;
    for (int i = 0; i < run; i++)
        bump(d);
    return 0;
}

static void checkpoints(void) {
    if (!HAS(CHECKPOINTS))
        return;
    rf_domain *d = make();
    int zero = 0;
    warm(d, &zero);
    CHECK_STATUS(rf_domain_checkpoint(d), RF_OK);
    CHECK(bump(d) == 13);
    CHECK_STATUS(rf_domain_reset(d), RF_OK);
    CHECK(bump(d) == 13);
    CHECK(call(d, "divide", 1, 0) == -1);
    CHECK_STATUS(rf_domain_checkpoint(d), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_checkpoint(NULL), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
}

static void snapshots(void) {
    if (!HAS(SNAPSHOTS))
        return;
    rf_domain *d = NULL;
    int zero = 0, one = 1, runs = 0;
    rf_snapshot *image = NULL;
    CHECK_STATUS(rf_snapshot_create(module, &options, NULL, NULL, &image), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_snapshot_create(module, &options, warm, &one, &image), RF_ERROR_SNAPSHOT);
    CHECK(rf_error() && strstr(rf_error()->message, "init returned 1"));
    CHECK_STATUS(rf_snapshot_create(module, NULL, warm, &zero, &image), RF_ERROR_IMPORT);
    CHECK(image == NULL);
    /* Two runs that differ: nobody could tell what a third window needs. */
    CHECK_STATUS(rf_snapshot_create(module, &options, chance, &runs, &image), RF_ERROR_SNAPSHOT);
    CHECK(rf_error() && strstr(rf_error()->message, "counter"));
    CHECK_STATUS(rf_snapshot_create(module, &options, warm, &zero, &image), RF_OK);
    rf_domain *all[3];
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(rf_domain_create_from_snapshot(image, &all[i]), RF_OK);
        CHECK(bump(all[i]) == 13 && bump(all[i]) == 14);
        CHECK(call(all[i], "call_host_add", 1, 2) == 1001);
    }
    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(rf_domain_reset(all[i]), RF_OK);
        CHECK(bump(all[i]) == 13);
        CHECK_STATUS(rf_domain_destroy(all[i]), RF_OK);
    }

    rf_pool *pool = NULL;
    CHECK_STATUS(rf_pool_create_from_snapshot(image, 2, &pool), RF_OK);
    CHECK_STATUS(rf_snapshot_destroy(image), RF_OK);
    CHECK_STATUS(rf_domain_create_from_snapshot(image, &d), RF_ERROR_HANDLE);
    for (int i = 0; i < 4; i++) {
        CHECK_STATUS(rf_pool_take(pool, &d), RF_OK);
        CHECK(bump(d) == 13);
        CHECK_STATUS(rf_pool_give(pool, d), RF_OK);
    }
    CHECK_STATUS(rf_pool_destroy(pool), RF_OK);
    CHECK_STATUS(rf_pool_destroy(pool), RF_ERROR_HANDLE);
    rf_error_clear();
}

static void pools(void) {
    rf_pool *pool = NULL, *other = NULL;
    rf_domain *d = NULL, *e = NULL;
    rf_region *region = NULL;
    CHECK_STATUS(rf_pool_create(NULL, &options, 2, &pool), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_pool_create(module, &options, 2, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_pool_create(module, &options, 2, &pool), RF_OK);
    CHECK_STATUS(rf_pool_create(module, &options, 2, &other), RF_OK);
    CHECK_STATUS(rf_region_create(4096, NULL, &region), RF_OK);
    CHECK_STATUS(rf_pool_take(pool, &d), RF_OK);
    CHECK_STATUS(rf_pool_give(other, d), RF_ERROR_ARGUMENT);
    CHECK(bump(d) == 8);
    void *window = rf_domain_find_object(d, "counter", NULL), *kept = rf_memory_alloc(d, 100000);
    CHECK(window && kept);
    CHECK_STATUS(rf_region_give(region, NULL, d, RF_RIGHTS_WRITE), HAS(REGIONS) ? RF_OK : RF_ERROR_UNSUPPORTED);
    CHECK(!HAS(FAULTS) || call(d, "divide", 1, 0) == -1);
    CHECK_STATUS(rf_pool_give(pool, d), RF_OK);
    CHECK_STATUS(rf_pool_give(pool, d), RF_ERROR_HANDLE);
    CHECK(call(d, "add", 1, 2) == -1);
    CHECK_STATUS(rf_pool_take(pool, &e), RF_OK);
    CHECK(e != d && rf_domain_find_object(e, "counter", NULL) == window);
    CHECK(bump(e) == 8 && rf_region_rights(region, e) == RF_RIGHTS_NONE);
    /* What is still accessible of the last user's heap is zero, and goes with a trim. */
    char byte = 0;
    rf_status s = rf_memory_read(e, kept, &byte, 1);
    CHECK((s == RF_OK || s == RF_ERROR_ACCESS) && byte == 0);
    CHECK_STATUS(rf_domain_trim(e, NULL), RF_OK);
    CHECK(!HAS(FENCE) || rf_memory_read(e, kept, &byte, 1) == RF_ERROR_ACCESS);
    CHECK_STATUS(rf_domain_destroy(e), RF_OK);
    CHECK_STATUS(rf_region_destroy(region), RF_OK);
    CHECK_STATUS(rf_pool_destroy(pool), RF_OK);
    CHECK_STATUS(rf_pool_destroy(other), RF_OK);
    CHECK_STATUS(rf_pool_destroy(NULL), RF_OK);
    rf_error_clear();
}

static void trims(void) {
    if (!HAS(FENCE))
        return;
    rf_domain *d = make();
    rf_usage u = RF_USAGE_INIT;
    size_t count = 77;
    CHECK(bump(d) == 8 && bump(d) == 9);
    int *kept = rf_memory_alloc(d, sizeof *kept);
    CHECK_STATUS(rf_memory_write(d, kept, &(int){ 5 }, sizeof(int)), RF_OK);
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.lanes == 1);
    CHECK_STATUS(rf_domain_trim(d, &count), RF_OK);
    CHECK(count == 1);
    CHECK_STATUS(rf_domain_usage(d, &u), RF_OK);
    CHECK(u.lanes == 0 && u.calls == 2 && u.memory > 0);
    CHECK_STATUS(rf_domain_trim(d, &count), RF_OK);
    CHECK(count == 0);
    int value = 0;
    CHECK_STATUS(rf_memory_read(d, kept, &value, sizeof value), RF_OK);
    CHECK(value == 5 && bump(d) == 10);
    CHECK_STATUS(rf_domain_trim(d, NULL), RF_OK);
    CHECK_STATUS(rf_domain_trim(NULL, &count), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_domain_destroy(d), RF_OK);
    CHECK_STATUS(rf_domain_trim(d, &count), RF_ERROR_HANDLE);
    rf_error_clear();
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: many MODULE\n"), 2;
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    options.imports = imports, options.import_count = 4;
    if (HAS(GRANTS))
        options.import_count = 3, options.slots = slots, options.slot_count = 1;
    links();
    checkpoints();
    snapshots();
    pools();
    trims();
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("many");
}
