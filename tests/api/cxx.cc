// The header and the library from C++.
#include <ringfence.h>

#include <memory>
#include <string>
#include <type_traits>

#include "check.h"

namespace {
struct Close {
    void operator()(rf_domain *d) const { (void)rf_domain_destroy(d); }
    void operator()(rf_module *m) const { (void)rf_module_close(m); }
};

void sum(rf_caller *caller, void *context) {
    ++*static_cast<int *>(context);
    rf_return_int(caller, rf_arg_int(caller, 0) + rf_arg_int(caller, 1));
}
} // namespace

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    static_assert(std::is_standard_layout<rf_value>::value && sizeof(rf_value) == 16, "rf_value");
    rf_module *opened = nullptr;
    CHECK_STATUS(rf_module_open(argv[1], 0, &opened), RF_OK);
    std::unique_ptr<rf_module, Close> module(opened);
    int calls = 0;
    const rf_import imports[] = {
        RF_IMPORT_CALLBACK("host_add", sum, &calls),
        RF_IMPORT_CALLBACK("host_mix", sum, &calls),
        RF_IMPORT_CALLBACK("host_eight", sum, &calls),
        RF_IMPORT_CALLBACK("host_note", sum, &calls),
    };
    rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
    options.imports = imports;
    options.import_count = 4;
    rf_domain *made = nullptr;
    CHECK_STATUS(rf_domain_create(module.get(), &options, &made), RF_OK);
    std::unique_ptr<rf_domain, Close> domain(made);
    auto add = reinterpret_cast<int (*)(int, int)>(rf_dlsym(domain.get(), "call_host_add"));
    CHECK(add && add(20, 21) == 42 && calls == 1);
    rf_value argument = rf_p(nullptr), result = {RF_I32, {0}};
    CHECK_STATUS(rf_call_name(domain.get(), "outer", &argument, 1, &result), RF_FAULT_ACCESS);
    CHECK(std::string(rf_error()->message).find("wild_read") != std::string::npos);
    domain.reset();
    module.reset();
    return FINISH("cxx");
}
