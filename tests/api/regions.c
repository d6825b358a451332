/* Memory shared between domains, from C. */
#define _GNU_SOURCE
#include <ringfence.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"

static void nothing(void) {}
static const rf_import imports[] = { RF_IMPORT_INIT(void, host_add, (void), nothing), RF_IMPORT_INIT(void, host_mix, (void), nothing),
                                     RF_IMPORT_INIT(void, host_eight, (void), nothing), RF_IMPORT_INIT(void, host_note, (void), nothing) };
static rf_module *module;

static rf_domain *make(void) {
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4;
    CHECK_STATUS(rf_domain_create(module, &o, &d), RF_OK);
    return d;
}

/* 0: neither, 1: read, 2: both, by trying. */
static int can(rf_domain *d, rf_region *r) {
    rf_value a[] = { rf_value_ptr(rf_region_address(r, d)), rf_value_i32(7) };
    if (rf_domain_call(d, "wild_read", a, 1, NULL) != RF_OK) {
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
        return 0;
    }
    if (rf_domain_call(d, "wild_write", a, 2, NULL) != RF_OK) {
        CHECK_STATUS(rf_domain_reset(d), RF_OK);
        return 1;
    }
    return 2;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return fprintf(stderr, "usage: regions MODULE\n"), 2;
    if (!HAS(REGIONS))
        return FINISH("regions");
    CHECK_STATUS(rf_module_create(argv[1], 0, &module), RF_OK);
    rf_domain *a = make(), *b = make();
    rf_region *r = NULL, *other = NULL;
    CHECK_STATUS(rf_region_create(0, NULL, &r), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_region_create(UINT64_MAX, NULL, &r), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_region_create(4096, NULL, NULL), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_region_create(4096, (rf_domain *)(uintptr_t)7, &r), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_region_create(5000, NULL, &r), RF_OK);
    CHECK(rf_region_length(r) == 5000 && can(a, r) == 0 && rf_region_rights(r, a) == RF_RIGHTS_NONE);
    CHECK_STATUS(rf_region_give(r, NULL, a, RF_RIGHTS_WRITE), RF_OK);
    CHECK_STATUS(rf_region_give(r, NULL, b, RF_RIGHTS_READ), RF_OK);
    CHECK(can(a, r) == 2 && can(b, r) == 1 && rf_region_rights(r, b) == RF_RIGHTS_READ);
    int *view = rf_region_host_address(r), value = 0;
    CHECK(view && *(volatile int *)view == 7);
    CHECK(rf_memory_read(b, rf_region_address(r, b), &value, sizeof value) == RF_OK && value == 7);
    CHECK_STATUS(rf_region_give(r, a, b, RF_RIGHTS_WRITE), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_region_give(r, NULL, a, (rf_rights)3), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_region_give(NULL, NULL, a, RF_RIGHTS_READ), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_region_give((rf_region *)a, NULL, a, RF_RIGHTS_READ), RF_ERROR_HANDLE);
    CHECK_STATUS(rf_region_give(r, NULL, NULL, RF_RIGHTS_READ), RF_ERROR_HANDLE);
    char text[400];
    CHECK(rf_overview_text(text, sizeof text) > 0 && strstr(text, "5000 bytes, of host:") && rf_overview_text(text, 5) > 5 && strlen(text) == 4);
    CHECK_STATUS(rf_region_give(r, NULL, a, RF_RIGHTS_NONE), RF_OK);
    CHECK(can(a, r) == 0);

    rf_group *g = NULL;
    CHECK_STATUS(rf_group_create(b, 0, &g), RF_OK);
    CHECK_STATUS(rf_region_give_group(r, NULL, g, RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_group_admit(g, a, a), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_group_admit(g, b, a), RF_OK);
    CHECK(can(a, r) == 1);
    CHECK(rf_overview_text(NULL, 0) < sizeof text && rf_overview_text(text, sizeof text) > 0);
    CHECK(strstr(text, "\ngroup ") && strstr(text, ", closed, of ") && strstr(text, "; region "));
    char json[800];
    size_t whole = rf_overview_json(json, sizeof json);
    CHECK(whole < sizeof json && whole == strlen(json) && json[0] == '{' && json[whole - 1] == '}');
    CHECK(strstr(json, "\"bytes\":5000,\"owner\":null,") && strstr(json, "\"open\":false,\"members\":[\""));
    CHECK(rf_overview_json(json, 9) == whole && strlen(json) == 8);
    CHECK_STATUS(rf_group_expel(g, a, a), RF_OK);
    CHECK_STATUS(rf_group_expel(g, NULL, a), RF_ERROR_RIGHTS);
    CHECK(can(a, r) == 0);
    CHECK_STATUS(rf_group_destroy(g), RF_OK);
    CHECK_STATUS(rf_group_destroy(g), RF_ERROR_HANDLE);

    CHECK_STATUS(rf_region_create(4096, a, &other), RF_OK);
    CHECK(can(a, other) == 2);
    CHECK_STATUS(rf_region_give(other, a, b, RF_RIGHTS_READ), RF_OK);
    CHECK_STATUS(rf_region_free(other, b), RF_ERROR_RIGHTS);
    CHECK(can(b, other) == 1);
    CHECK_STATUS(rf_domain_destroy(a), RF_OK); /* takes what it owns along */
    CHECK(can(b, other) == 0);
    CHECK_STATUS(rf_region_free(other, NULL), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_region_destroy(other), RF_OK);

    int fd = memfd_create("test", MFD_ALLOW_SEALING);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0 && pwrite(fd, "\x2a", 1, 0) == 1);
    CHECK_STATUS(rf_region_create_from_fd(-1, 4096, RF_RIGHTS_READ, &other), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_region_create_from_fd(0x7fffffff, 4096, RF_RIGHTS_READ, &other), RF_ERROR_ARGUMENT);
    CHECK_STATUS(rf_region_create_from_fd(fd, 4096, RF_RIGHTS_READ, &other), RF_OK);
    CHECK_STATUS(rf_region_give(other, NULL, b, RF_RIGHTS_WRITE), RF_ERROR_RIGHTS);
    CHECK_STATUS(rf_region_give(other, NULL, b, RF_RIGHTS_READ), RF_OK);
    CHECK(can(b, other) == 1 && *(volatile char *)rf_region_host_address(other) == 42 && ftruncate(fd, 0) != 0);
    close(fd);

    CHECK_STATUS(rf_region_destroy(other), RF_OK);
    CHECK_STATUS(rf_region_destroy(r), RF_OK);
    CHECK_STATUS(rf_region_destroy(r), RF_ERROR_HANDLE);
    CHECK(rf_region_host_address(r) == NULL && rf_region_length(r) == 0 && rf_region_rights(r, b) == -1);
    CHECK_STATUS(rf_domain_destroy(b), RF_OK);
    return FINISH("regions");
}
