// A host function that throws: the exception must not pass the gates, where nothing would be put in order. The C++
// library finds no handler beyond them and ends the process. run.sh expects that.
#include <ringfence.hpp>

#include <cstdio>
#include <stdexcept>

static int thrower(int, int) { throw std::runtime_error("from the host"); }
static void unused(rf_caller *c, void *) { rf_caller_return_int(c, 0); }

int main(int argc, char **argv) {
    const rf_import imports[] = {
        RF_IMPORT_INIT(int, host_add, (int, int), thrower),
        RF_IMPORT_INIT_CALLBACK("host_mix", unused, nullptr),
        RF_IMPORT_INIT_CALLBACK("host_eight", unused, nullptr),
        RF_IMPORT_INIT_CALLBACK("host_note", unused, nullptr),
    };
    rf_module *m = nullptr;
    rf_domain *d = nullptr;
    rf_domain_options o = RF_DOMAIN_OPTIONS_INIT;
    o.imports = imports, o.import_count = 4;
    if (rf_module_create(argc > 1 ? argv[1] : "basic.rf", 0, &m) != RF_OK || rf_domain_create(m, &o, &d) != RF_OK)
        return std::puts(rf_error()->message), 2;
    auto f = ringfence::dlsym<int(int, int)>(d, "call_host_add");
    try {
        f(1, 2);
        std::puts("returned");
    } catch (const std::exception &e) {
        std::printf("caught %s\n", e.what());
    }
    return 1;
}
