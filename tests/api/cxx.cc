// The header and the library from C++.
#include <ringfence.hpp>

#include <memory>
#include <string>
#include <type_traits>

#include "check.h"

namespace {
struct Close {
    void operator()(rf_domain *d) const { (void)rf_domain_destroy(d); }
    void operator()(rf_module *m) const { (void)rf_module_destroy(m); }
};

void sum(rf_caller *caller, void *context) {
    ++*static_cast<int *>(context);
    rf_caller_return_int(caller, rf_caller_arg_int(caller, 0) + rf_caller_arg_int(caller, 1));
}
int host_add(int a, int b) { return a + b; }
double host_mix(int a, double x, long b, float y) noexcept { return a + x + static_cast<double>(b) + static_cast<double>(y); }
enum class byte_kind : unsigned char { small = 3 };

// Functions by their C++ types, in both directions.
void typed(rf_domain *d) {
    auto mixed = ringfence::dlsym<double(int, double, long, float, unsigned char)>(d, "mixed");
    CHECK(mixed && mixed(1, 2.5, 3, 4.25f, 250) == 1 + 5.0 + 3 + 17 + 250);
    CHECK(ringfence::dlsym<signed char(signed char)>(d, "narrow")(-128) == 127);
    CHECK(ringfence::dlsym<bool(unsigned long)>(d, "is_odd")(3));
    CHECK(ringfence::dlsym<float(float)>(d, "half")(3.0f) == 1.5f);
    CHECK(ringfence::dlsym<long(long, long, long, long, long, long, long, long)>(d, "eight")(1, 2, 3, 4, 5, 6, 7, 8) == 87654321);
    ringfence::dlsym<void()>(d, "nothing")();
    CHECK(!ringfence::dlsym<void()>(d, "no_such") && rf_error()->status == RF_ERROR_NO_FUNCTION);
    using ringfence::detail::prototype;
    CHECK(prototype<int()>::of("f") == "int f(void)");
    CHECK((prototype<long double(const char *, byte_kind, const unsigned short, char, size_t)>::of("f") ==
           "long double f(void *, unsigned char, unsigned short, signed char, long)"));
}

void imported(rf_module *module, const char *path) {
    rf_domain_options options = RF_DOMAIN_OPTIONS_INIT;
    ringfence::imports given;
    int calls = 0;
    given.function("host_add", host_add).function("host_mix", host_mix);
    given.callback("host_eight", sum, &calls).callback("host_note", sum, &calls).into(options);
    rf_domain *made = nullptr;
    CHECK_STATUS(rf_domain_create(module, &options, &made), RF_OK);
    std::unique_ptr<rf_domain, Close> domain(made);
    CHECK(ringfence::dlsym<int(int, int)>(made, "call_host_add")(20, 21) == 42);
    CHECK(ringfence::dlsym<double()>(made, "call_host_mix")() == 1 + 2.5 + 3 + 4.5);
    CHECK_STATUS(ringfence::provide("host_add", host_add), RF_OK);
    // The same in one step.
    std::unique_ptr<void, int (*)(void *)> handle(rf_dlopen_with(path, 0, &options), rf_dlclose);
    CHECK(handle && ringfence::dlsym<double()>(handle.get(), "call_host_mix")() == 1 + 2.5 + 3 + 4.5);
}
} // namespace

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    static_assert(std::is_standard_layout<rf_value>::value && sizeof(rf_value) == 16, "rf_value");
    rf_module *opened = nullptr;
    CHECK_STATUS(rf_module_create(argv[1], 0, &opened), RF_OK);
    std::unique_ptr<rf_module, Close> module(opened);
    imported(module.get(), argv[1]);
    int calls = 0;
    const rf_import imports[] = {
        RF_IMPORT_INIT_CALLBACK("host_add", sum, &calls),
        RF_IMPORT_INIT_CALLBACK("host_mix", sum, &calls),
        RF_IMPORT_INIT_CALLBACK("host_eight", sum, &calls),
        RF_IMPORT_INIT_CALLBACK("host_note", sum, &calls),
    };
    ringfence::domain_options options;
    options.imports = imports;
    options.import_count = 4;
    rf_domain *made = nullptr;
    CHECK_STATUS(rf_domain_create(module.get(), &options, &made), RF_OK);
    std::unique_ptr<rf_domain, Close> domain(made);
    auto add = ringfence::dlsym<int(int, int)>(domain.get(), "call_host_add");
    static_assert(std::is_same<decltype(add), int (*)(int, int)>::value, "a pointer of that type");
    CHECK(add && add(20, 21) == 42 && calls == 1);
    typed(domain.get());
    rf_value argument = rf_value_ptr(nullptr), result = {RF_TYPE_I32, {0}};
    CHECK_STATUS(rf_domain_call(domain.get(), "outer", &argument, 1, &result), RF_FAULT_ACCESS);
    CHECK(std::string(rf_error()->message).find("wild_read") != std::string::npos);
    domain.reset();
    module.reset();
    return FINISH("cxx");
}
