/* A host with a call through both gates, for a debugger to look at. */
#include <ringfence.h>
#include <stdint.h>

#include "check.h"

typedef int (*binary)(int, int);
__attribute__((noinline)) static int host_add(int a, int b) { return a + b; }
__attribute__((noinline)) static int ask(binary f) { return f(20, 21) + 1; }
static void unused(rf_caller *c, void *context) {
    (void)context;
    rf_caller_return_int(c, 0);
}
static const rf_import imports[] = {
    RF_IMPORT_INIT(int, host_add, (int, int), host_add),
    RF_IMPORT_INIT_CALLBACK("host_mix", unused, NULL),
    RF_IMPORT_INIT_CALLBACK("host_eight", unused, NULL),
    RF_IMPORT_INIT_CALLBACK("host_note", unused, NULL),
};

int main(int argc, char **argv) {
    rf_module *m = NULL;
    rf_domain *d = NULL;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4;
    CHECK_STATUS(rf_module_create(argc > 1 ? argv[1] : "basic.rf", 0, &m), RF_OK);
    CHECK_STATUS(rf_domain_create(m, &o, &d), RF_OK);
    CHECK(ask(RF_DLSYM(d, int, call_host_add, (int, int))) == 43);
    return FINISH("backtrace");
}
