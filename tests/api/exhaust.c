/* What runs out, and what goes away under a call: a typed error, everything else as it was, and on it goes when there is room. */
#define _GNU_SOURCE
#include <pthread.h>
#include <ringfence.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

static void nothing(void) {}
static const rf_import imports[] = { RF_IMPORT_INIT(void, host_add, (void), nothing), RF_IMPORT_INIT(void, host_mix, (void), nothing),
                                     RF_IMPORT_INIT(void, host_eight, (void), nothing), RF_IMPORT_INIT(void, host_note, (void), nothing) };
static rf_module *module;

static rf_status make(rf_domain **d) {
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4;
    *d = NULL;
    return rf_domain_create(module, &o, d);
}

static rf_status add(rf_domain *d) {
    rf_value a[] = { rf_value_i32(2), rf_value_i32(3) }, r = { RF_TYPE_I32, { 0 } };
    rf_status s = rf_domain_call(d, "add", a, 2, &r);
    return s == RF_OK && r.as.i32 != 5 ? RF_ERROR_INTERNAL : s;
}
static int adds(rf_domain *d) { return add(d) == RF_OK; }
/* A first call may have no room for its stacks: an error then, and no fault. */
static int adds_or_not(rf_domain *d) {
    rf_status s = add(d);
    return (s == RF_OK || s == RF_ERROR_LIMIT) && rf_domain_state(d) == RF_OK;
}

/* Reads a region from end to end until that fails. */
static rf_domain *reader;
static rf_region *region;
static void *reads(void *argument) {
    (void)argument;
    rf_value a[] = { rf_value_ptr(rf_region_address(region, reader)), rf_value_u64(1 << 20) };
    rf_status s;
    while ((s = rf_domain_call(reader, "checksum", a, 2, NULL)) == RF_OK)
        ;
    return (void *)(long)s;
}

/* Takes the region's mapping away while the reader reads: by its rights, or with the region. */
static void unmapped_under_a_call(int with_the_region) {
    if (!HAS(REGIONS))
        return;
    rf_domain *other;
    pthread_t t;
    void *status;
    CHECK_STATUS(make(&reader), RF_OK);
    CHECK_STATUS(make(&other), RF_OK);
    CHECK_STATUS(rf_region_create(1 << 20, NULL, &region), RF_OK);
    CHECK_STATUS(rf_region_give(region, NULL, reader, RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_region_give(region, NULL, other, RF_RIGHTS_WRITE), RF_OK);
    CHECK(pthread_create(&t, NULL, reads, NULL) == 0);
    rf_usage u = RF_USAGE_INIT;
    do {
        CHECK_STATUS(rf_domain_usage(reader, &u), RF_OK);
    } while (u.calls < 3 || !u.active);
    if (with_the_region)
        CHECK_STATUS(rf_region_free(region, NULL), RF_OK);
    else
        CHECK_STATUS(rf_region_give(region, NULL, reader, RF_RIGHTS_NONE), RF_OK);
    pthread_join(t, &status);
    CHECK((rf_status)(long)status == RF_FAULT_ACCESS);
    CHECK_STATUS(rf_domain_state(reader), RF_ERROR_FAULTED);
    CHECK_STATUS(rf_domain_state(other), RF_OK);
    CHECK(rf_region_rights(region, reader) == RF_RIGHTS_NONE && rf_region_rights(region, other) == (with_the_region ? RF_RIGHTS_NONE : RF_RIGHTS_WRITE));
    CHECK(adds(other));
    if (with_the_region)
        CHECK_STATUS(rf_region_give(region, NULL, other, RF_RIGHTS_READ), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_domain_reset(reader), RF_OK);
    CHECK(adds(reader));
    CHECK_STATUS(rf_region_destroy(region), RF_OK);
    CHECK_STATUS(rf_domain_destroy(reader), RF_OK);
    CHECK_STATUS(rf_domain_destroy(other), RF_OK);
}

/* Makes domains until there is no room, which `again` makes. */
enum { MOST = 4000 };
static rf_domain *all[MOST];
static uintptr_t window_of(rf_domain *d) {
    size_t size;
    return (uintptr_t)rf_domain_find_object(d, "counter", &size) >> 32;
}
static void no_room(const char *what, const char *message, void (*again)(void)) {
    int n = 0;
    rf_status s;
    while (n < MOST && (s = make(&all[n])) == RF_OK) {
        if (n == 0)
            CHECK(adds(all[0]));
        n++;
    }
    if (n < 3 || n == MOST || s != RF_ERROR_LIMIT || !rf_error() || !strstr(rf_error()->message, message) || all[n]) {
        fprintf(stderr, "%s: %d domains, then %s: %s\n", what, n, rf_status_name(s), rf_error() ? rf_error()->message : "none");
        failures++;
        return;
    }
    /* As often as one likes, and those that there are do not notice. */
    for (int i = 0; i < 3; i++)
        CHECK_STATUS(make(&all[n]), RF_ERROR_LIMIT);
    for (int i = 0; i < n; i++)
        CHECK(i == 0 ? adds(all[i]) : adds_or_not(all[i]));
    /* The room of one is room for one. */
    CHECK_STATUS(rf_domain_destroy(all[n - 1]), RF_OK);
    CHECK_STATUS(make(&all[n - 1]), RF_OK);
    again();
    for (int i = 0; i < n; i++)
        CHECK(adds(all[i]));
    CHECK_STATUS(make(&all[n]), RF_OK);
    CHECK(adds(all[n]));
    uintptr_t most = 0;
    for (int i = 0; i < n; i++)
        most = window_of(all[i]) > most ? window_of(all[i]) : most;
    if (window_of(all[n]) != most + 1) {
        fprintf(stderr, "%s: windows went on at %#lx, after %#lx\n", what, (long)window_of(all[n]), (long)most);
        failures++;
    }
    for (int i = 0; i <= n; i++)
        CHECK_STATUS(rf_domain_destroy(all[i]), RF_OK);
}

static struct rlimit before;
static void more_addresses(void) { CHECK(setrlimit(RLIMIT_AS, &before) == 0); }
static void windows(void) {
    if (!HAS(FENCE))
        return;
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    CHECK(f && fscanf(f, "%lu", &pages) == 1);
    if (f)
        fclose(f);
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    /* Room for five windows, and for what else domains need. */
    struct rlimit less = before;
    less.rlim_cur = pages * 4096 + 5 * (1ul << 32) + (1ul << 31);
    CHECK(setrlimit(RLIMIT_AS, &less) == 0);
    no_room("windows", "no room for another window", more_addresses);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
}

/* The limit on mappings is the system's: a lower one is shown to this process in the place of the file that tells it. */
static const char *shown;
static int show(const char *limit) {
    FILE *f = fopen(shown, "w");
    return f && fputs(limit, f) >= 0 && fclose(f) == 0;
}
static void more_mappings(void) { CHECK(show("65530\n")); }
static int lower_limit(const char *file) {
    shown = file;
    return show("4500\n") && unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount(file, "/proc/sys/vm/max_map_count", NULL, MS_BIND, NULL) == 0;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: exhaust MODULE [FILE]\n"), 2;
    if (argc > 2 && !lower_limit(argv[2]))
        return perror("mounts of its own"), 77;
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    if (argc > 2) {
        no_room("mappings", "mappings", more_mappings);
    } else {
        unmapped_under_a_call(0);
        unmapped_under_a_call(1);
        windows();
    }
    CHECK_STATUS(rf_module_destroy(module), RF_OK);
    return FINISH("exhaust");
}
